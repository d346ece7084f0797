"""By lecture and exercise: answers that somebody might well give, each with words of the hint that it gets.

They are written in another way than the mistakes in the lecture's module.
"""

from __future__ import annotations

SQUARE = (
    "class Square(ndl.autograd.TensorOp):\n    def compute(self, a):\n        return a * a\n"
    "    def gradient(self, out_grad, node):\n        "
)

NEAR_MISSES = {
    "05_computational_graph": {
        "from_the_table": [
            (
                "def from_the_table(n1, n2):\n    return n2 / (1 + ndl.exp(-1 * (n1 * n2)))",
                "compare it with the table line by line",
            ),
            (
                "def from_the_table(n1, n2):\n    n4 = n1 * n2\n    return n1 / (ndl.exp(n4) + 1)",
                "n4 is missing",
            ),
            (
                "def from_the_table(n1, n2):\n    return ndl.add_scalar(n1 / ndl.exp(-(n1 * n2)), 1)",
                "Where do brackets belong?",
            ),
            ("def from_the_table(n1, n2):\n    n1 / (ndl.exp(-(n1 * n2)) + 1)", "Is a `return` missing?"),
        ],
        "leaves": [
            (
                "def leaves(output):\n    return list(ndl.autograd.find_topo_sort([output]))",
                "Keep only the leaves",
            ),
            ("def leaves(output):\n    return [i for i in output.inputs]", "go on from there"),
            (
                "def leaves(output):\n    if output.op is None:\n        return [output]\n"
                "    return sum((leaves(i) for i in output.inputs), [])",
                "List each leaf once",
            ),
            (
                "def leaves(output):\n    found = []\n    stack = [output]\n    while stack:\n"
                "        node = stack.pop()\n        stack += node.inputs\n"
                "        if node.is_leaf() and node not in found:\n            found.insert(0, node)\n"
                "    return found",
                "in the opposite order",
            ),
        ],
        "rerun": [
            ("def rerun(output, leaf, value):\n    return output.detach()", "Go through the nodes"),
            (
                "def rerun(output, leaf, value):\n    return output.op(*(len(output.inputs) * [value]))",
                "The operators before it",
            ),
            (
                "def rerun(output, leaf, value):\n    if output is leaf:\n        return value\n"
                "    return output.op(*[rerun(i, leaf, value) for i in output.inputs])",
                "your graph computes it twice",
            ),
        ],
        "Square": [
            (
                "class Square(ndl.autograd.TensorOp):\n    def compute(self, a):\n        return 2 * a",
                "You doubled",
            ),
            (
                "class Square(ndl.autograd.TensorOp):\n    def compute(self, a):\n        a * a",
                "`return` missing",
            ),
            (
                "class Square(ndl.autograd.TensorOp):\n    def compute(self, a):\n        return a.square()",
                "They have no such method",
            ),
        ],
    },
    "07_reverse_mode": {
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
    },
}
