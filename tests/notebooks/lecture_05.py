"""Lecture 05: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

V1_TO_V4 = """\
n1   leaf       inputs: -        data: [0.]
n2   Exp        inputs: n1       data: [1.]
n3   AddScalar  inputs: n2       data: [2.]
n4   EWiseMul   inputs: n2, n3   data: [2.]
"""

SHOWN = [
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
]

TRUE = [
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
]

NEAR_MISSES = {
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
}
