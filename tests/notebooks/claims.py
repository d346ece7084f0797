"""What the prose of each lecture claims, and what proves it, by the id of the cell with the prose.

Each claim quotes its cell, so that a sentence that changes is looked at again. A sentence that states a
number, a count, an order, a type or "the same" belongs here.
"""

from __future__ import annotations

V1_TO_V4 = """\
n1   leaf       inputs: -        data: [0.]
n2   Exp        inputs: n1       data: [1.]
n3   AddScalar  inputs: n2       data: [2.]
n4   EWiseMul   inputs: n2, n3   data: [2.]
"""

#: By lecture: the cell with the words, the words, the cell that shows it, and all that this one shows.
SHOWN = {
    "05_computational_graph": [
        ("arrays", "show the same", "first-tensor", "needle.Tensor([1. 2. 3.])\nneedle.Tensor([1. 2. 3.])"),
        ("add-one", "Add 1, and you get another Tensor", "add-one-code", "needle.Tensor([2. 3. 4.])"),
        (
            "add-one",
            "you get what the function `ndl.add_scalar` gives",
            "add-scalar",
            "needle.Tensor([2. 3. 4.])",
        ),
        (
            "why-numpy",
            "`y` is as it was",
            "numpy-is-a-copy",
            "(array([100.,   3.,   4.], dtype=float32), needle.Tensor([2. 3. 4.]))",
        ),
        ("exercise-table", "the very same objects", "inputs-are-tensors", "(True, True, True)"),
        ("op-attributes", "`EWiseMul` multiplies", "op-of-v4", "('EWiseMul', True)"),
        ("op-attributes", "not a variable, only an attribute", "op-of-v3", "('AddScalar', True, 1)"),
        ("leaf", "no operator made it", "leaf-code", "(True, 0, True)"),
        ("print-node", "each *after* its inputs", "print-graph", V1_TO_V4),
        (
            "square-explained",
            "Two variables, two arrows",
            "draw-square",
            "<computational graph of s: 2 variables, 1 operator>",
        ),
        (
            "what-ran",
            "you wrote `exp` twice, so it ran twice",
            "draw-one-liner",
            "<computational graph of w4: 5 variables, 4 operators>",
        ),
        (
            "what-ran",
            "no loops and no `if`s",
            "loop",
            "n1   leaf       inputs: -        data: [1. 2. 3.]\n"
            "n2   EWiseMul   inputs: n1, n1   data: [1. 4. 9.]\n"
            "n3   EWiseMul   inputs: n2, n2   data: [ 1. 16. 81.]\n",
        ),
        (
            "chain",
            "Three steps, each with one job:\n\n| step | what it does |\n|---|---|\n| `TensorOp.__call__` |",
            "show-calls-multiply",
            "TensorOp.__call__\n    Value.make_from_op\n        Elementwise.compute\nneedle.Tensor([2.])",
        ),
        (
            "chain",
            "the third step waits until you ask for the numbers. Then `realize_cached_data` takes it",
            "show-calls-lazy",
            "TensorOp.__call__\n    Value.make_from_op\n"
            "Now the numbers, please:\n"
            "Value.realize_cached_data\n    Elementwise.compute\narray([2.], dtype=float32)",
        ),
        ("by-hand-intro", "build the example by hand", "by-hand", V1_TO_V4),
    ],
    "07_reverse_mode": [
        ("adjoint", "the thousand numbers agree", "hook-code", "(2000, 1, np.True_)"),
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
            "(None,\n needle.Tensor([3.]),\n needle.Tensor([3.]),\n"
            " needle.Tensor([1.]),\n needle.Tensor([1.]))",
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
    ],
}

#: By lecture: the cell with the words, the words, and an expression that is true on the lecture's kernel.
TRUE = {
    "05_computational_graph": [
        ("arrays", "stored as 32-bit floats", "x.numpy().dtype == 'float32'"),
        (
            "add-one",
            "what the function `ndl.add_scalar` gives",
            "type(y.op) is type(ndl.add_scalar(x, 1).op)",
        ),
        ("own-curve-explained", "run 81 times", "len(outputs) == 81"),
        ("draw", "writes each value into its box", "viz.draw(v4).source.count('[2]') == 2"),
        (
            "square-explained",
            "each operand gets its own arrow",
            "viz.draw(s).source.count('n1 -> n2_op') == 2",
        ),
        ("what-ran", "The same value", "w4.item() == v4.item()"),
        ("chain", "inherits its `compute`", "'compute' not in vars(ndl.ops.EWiseMul)"),
        (
            "leaves-solution",
            "from its end to its beginning",
            "[node for node, *_ in ndl.autograd.adjoints(v4)] == ndl.autograd.find_topo_sort([v4])[::-1]",
        ),
        (
            "square-solution",
            "a Tensor with a history like any other",
            "type('Sq', (ndl.autograd.TensorOp,), {'compute': lambda self, a: a * a})()(x).inputs[0] is x",
        ),
    ],
    "07_reverse_mode": [
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
    ],
}
