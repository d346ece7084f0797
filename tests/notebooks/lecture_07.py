"""Lecture 07: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

SQUARE = (
    "class Square(ndl.autograd.TensorOp):\n    def compute(self, a):\n        return a * a\n"
    "    def gradient(self, out_grad, node):\n        "
)

SHOWN = [
    ("adjoint", "the thousand numbers agree", "hook-code", "(2000, 1, True)"),
    (
        "one-step",
        "We stay at `v1 = 0`",
        "v1-to-v4",
        "(needle.Tensor([1.]), needle.Tensor([2.]), needle.Tensor([2.]))",
    ),
    (
        "product-rule",
        "a nudge of `v2` is multiplied by `v3`",
        "one-step-back",
        "(needle.Tensor([2.]), needle.Tensor([1.]))",
    ),
    ("check-one-step", "You can check every claim", "central-difference", "(2.0, 1.0)"),
    ("adjoint-is-a-node", "one is the very `v3`", "adjoint-is-a-node-code", "('EWiseMul', True)"),
    (
        "sum",
        "the **sum** of its partial adjoints",
        "sum-of-partials",
        "(needle.Tensor([2.]), needle.Tensor([1.]), needle.Tensor([3.]))",
    ),
    ("check-sum", "`v2 · (v2 + 1)`, and `v2` is 1", "check-sum-code", "3.0"),
    ("order", "`v1` gets what `v2` passes on", "too-early", "(needle.Tensor([2.]), needle.Tensor([3.]))"),
    ("many-ways", "you would get 4 as well", "doubling", "(needle.Tensor([4.]), 4.0)"),
    (
        "many-ways",
        "2³⁰ of them, about a billion, while the graph has 31 variables",
        "thirty-doublings",
        "(1073741824, 1073741824, 31)",
    ),
    (
        "steps",
        "the partial adjoints, each with the consumer it came through, and their sum",
        "step-through",
        "adjoint of v4 = 1   1 (seed)\nadjoint of v3 = 1   1 (via v4)\n"
        "adjoint of v2 = 3   2 (via v4) + 1 (via v3)\nadjoint of v1 = 3   3 (via v2)\n",
    ),
    (
        "backward",
        "which is `None` before",
        "backward-code",
        "(None,\n needle.Tensor([3.]),\n needle.Tensor([3.]),\n needle.Tensor([1.]),\n needle.Tensor([1.]))",
    ),
    ("check-backward", "at 0 and, so that", "check-backward-code", "(3.0, 7.085285, 7.0853)"),
    (
        "second-order",
        "you can differentiate it once more",
        "second-derivative",
        "(needle.Tensor([3.]), needle.Tensor([5.]), 5.0)",
    ),
    ("replaced", "`grad` is **replaced**", "backward-again", "needle.Tensor([3.])"),
    ("replaced", "add it up yourself", "add-up", "needle.Tensor([6.])"),
    ("same-numbers", "Compare all 33 numbers", "same-numbers-code", "True"),
]

TRUE = [
    ("one-step", "`v1 = 0`", "v1.item() == 0"),
    (
        "adjoint-is-a-node",
        "`out_grad * b` and `out_grad * a`",
        "[type(p.op).__name__ for p in v4.op.gradient_as_tuple(v1, v4)] == ['EWiseMul'] * 2",
    ),
    ("many-ways", "you visit each of them **once**", "len(list(ndl.autograd.adjoints(top))) == 31"),
    (
        "backward",
        "stores the adjoint of every variable in its `grad`",
        "all(node.grad.item() == total.item() for node, _, total in ndl.autograd.adjoints(v4))",
    ),
    ("step-widget-intro", "`v1` is 0.5", "u1.item() == 0.5"),
    (
        "memory",
        "`v2` and `v3`, each a factor of some product",
        "set(re.findall(r'(n.) -> a._op .*dashed', viz.draw_gradient(v4).source)) == {'n2', 'n3'}",
    ),
    ("second-order", "touches no `grad`", "[v1.grad, ndl.gradients(v4, [v1])][0] is v1.grad"),
    ("second-backward", "`v1.grad` is 3", "v1.grad.item() == 3"),
    (
        "reverse-order-solution",
        "a few thousand calls deep",
        "1_000 <= sys.getrecursionlimit() <= 10_000",
    ),
    (
        "reverse-solution",
        "is `walk_back` in `needle/reverse.py`",
        "ndl.reverse.walk_back.__name__ in ndl.autograd.adjoints.__code__.co_names",
    ),
    (
        "reverse-solution",
        "begins with another adjoint than 1 if you give it one",
        "ndl.gradients(v4, [v1], ndl.Tensor([2.0]))[0].item() == 6",
    ),
    ("pay-off", "It has 33 knobs", "sum(p.numpy().size for p in model.parameters()) == 33"),
    (
        "same-numbers",
        "where the network gives 0",
        "np.mean((model(X).numpy() > 0) == (y.numpy() > 0)) > 0.95",
    ),
    ("square-solution", "compares your rule", "ndl.gradcheck(Square(), ndl.Tensor([3.0]))"),
    (
        "summary",
        "a node after all its consumers",
        "[node for node, *_ in ndl.autograd.adjoints(v4)] == [v4, v3, v2, v1]",
    ),
]

NEAR_MISSES = {
    "adjoints_by_hand": [
        ("def adjoints_by_hand(a, b):\n    return 1.0, 1.0, a, b", "How many ways lead back"),
        ("def adjoints_by_hand(a, b):\n    return [1.0, 1.0, b, 1.0 + a]", "the *other* factor"),
        ("def adjoints_by_hand(a, b):\n    return [1.0 + b, a, 1.0, 1.0]", "in another order"),
        ("def adjoints_by_hand(a, b):\n    return b + 1.0", "Begin with 1 for q"),
    ],
    "reverse_order": [
        (
            "def reverse_order(output):\n    return ndl.autograd.find_topo_sort([output])[::-1]",
            "so write it without it",
        ),
        (
            "def reverse_order(output):\n    order, stack = [], [output]\n    while stack:\n"
            "        node = stack.pop(0)\n        order.append(node)\n"
            "        for i in node.inputs:\n            if i not in order + stack:\n"
            "                stack.append(i)\n    return order",
            "level by level",
        ),
        (
            "def reverse_order(output):\n    order = []\n    def visit(node):\n"
            "        if node in order:\n            return\n        for i in node.inputs:\n"
            "            visit(i)\n        order.append(node)\n    visit(output)\n    return order",
            "the order of the forward pass",
        ),
        (
            "def reverse_order(output):\n    order, stack = [], [output]\n    while stack:\n"
            "        node = stack.pop()\n        order.append(node)\n"
            "        stack += reversed(node.inputs)\n    return order",
            "once for each way",
        ),
    ],
    "derivative": [
        (
            "def derivative(output, leaf):\n    output.backward()\n    return leaf.grad",
            "This call walks back for you",
        ),
        (
            "def derivative(output, leaf):\n"
            "    grads = {output: ndl.ones_like(output)}\n"
            "    for node in reversed(ndl.autograd.find_topo_sort([output])):\n"
            "        if not node.is_leaf():\n"
            "            for i, g in zip(node.inputs, node.op.gradient_as_tuple(grads[node], node)):\n"
            "                grads[i] = g\n"
            "    return grads[leaf]",
            "What arrives later replaces",
        ),
        (
            "def derivative(output, leaf):\n"
            "    return output.op.gradient_as_tuple(ndl.ones_like(output), output)[1]",
            "one step back from the output",
        ),
    ],
    "second_derivative": [
        (
            "def second_derivative(f, x):\n    f(x).backward()\n    return x.grad",
            "This is the first derivative. It",
        ),
        (
            "def second_derivative(f, x):\n    y = f(x)\n    y.backward()\n    y.backward()\n"
            "    return x.grad",
            "This is the first derivative. It",
        ),
        (
            "def second_derivative(f, x):\n    (slope,) = ndl.gradients(f(x), [x])\n"
            "    return ndl.power_scalar(slope, 2)",
            "the derivative *of* the first",
        ),
    ],
    "Square": [
        (SQUARE + "(a,) = node.inputs\n        return a + a", "Multiply it by what came back"),
        (SQUARE + "return ndl.multiply(out_grad, node.inputs[0])", "both factors move"),
        (SQUARE + "return (node * 2) * out_grad", "Its operand is"),
        (SQUARE + "out_grad * 2 * node.inputs[0]", "Is a `return` missing?"),
    ],
}
