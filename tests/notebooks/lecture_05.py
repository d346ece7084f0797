"""Lecture 05: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

V1_TO_V4 = """\
id  op         inputs  data
n1  leaf       -       [0.]
n2  Exp        n1      [1.]
n3  AddScalar  n2      [2.]
n4  EWiseMul   n2, n3  [2.]
"""

RERUN = (
    "def rerun(output, leaf, value):\n    new = {leaf: value}\n"
    "    for n in ndl.autograd.find_topo_sort([output]):\n"
)
NEW_NODE = "n.op(*[new.get(i, i) for i in n.inputs])\n    return new[output]"

SHOWN = [
    ("exercise-table", "the very same objects", "inputs-are-tensors", "(True, True, True)"),
    (
        "operators",
        "`EWiseMul` multiplies entry by entry. The 1 in `v3 = v2 + 1` is no variable",
        "operators-code",
        "v4: EWiseMul() of 2 inputs\nv3: AddScalar(scalar=1) of 1 input\nv1: None\nTrue",
    ),
    ("print-node", "each after its inputs", "print-graph", V1_TO_V4),
    (
        "what-ran",
        "you wrote `exp` twice, so it ran twice",
        "draw-one-liner",
        "<computational graph of w4: 5 variables, 4 operators>",
    ),
    (
        "what-ran",
        "This loop goes round three times, and its `if` lets two of them multiply",
        "loop",
        "id  op         inputs  data\n"
        "n1  leaf       -       [1. 2. 3.]\n"
        "n2  EWiseMul   n1, n1  [1. 4. 9.]\n"
        "n3  EWiseMul   n2, n2  [ 1. 16. 81.]\n",
    ),
    (
        "add-one",
        "`x + 1` calls the function `ndl.add_scalar`",
        "add-one-code",
        "(needle.Tensor([1. 2. 3.]),\n needle.Tensor([2. 3. 4.]),\n needle.Tensor([2. 3. 4.]))",
    ),
    (
        "what-calls-what",
        "`y` is as it was",
        "numpy-code",
        "(array([100.,   3.,   4.], dtype=float32), needle.Tensor([2. 3. 4.]))",
    ),
    (
        "chain",
        "`__call__` calls `make_from_op`, and that calls `compute`",
        "show-calls-multiply",
        "TensorOp.__call__\n    Value.make_from_op\n        Elementwise.compute\nneedle.Tensor([2.])",
    ),
    (
        "waits",
        "`x * y`, the line that multiplies",
        "multiplies",
        "    def compute(self, *arrays):\n        return elementwise(self.function, *arrays)\n\n"
        '        ScalarFunction("multiply", lambda x, y: x * y, np.multiply, text="{x} * {y}"),\n\n',
    ),
    (
        "waits",
        "`make_from_op` leaves the numbers open, and `realize_cached_data` calls `compute` when you ask",
        "show-calls-lazy",
        "TensorOp.__call__\n    Value.make_from_op\n"
        "Now the numbers, please:\n"
        "Value.realize_cached_data\n    Elementwise.compute\narray([2.], dtype=float32)",
    ),
    ("by-hand-intro", "build the example by hand", "by-hand", V1_TO_V4),
]

TRUE = [
    (
        "operators",
        "The 1 in `v3 = v2 + 1` is no variable, only an attribute of the operator: its `scalar`",
        "v3.op.scalar == 1 and v1.op is None and isinstance(v4.op, ndl.ops.EWiseMul)",
    ),
    (
        "exercise-table",
        "`EWiseMul` from `*`, `EWiseDiv` from `/`, `AddScalar` from `+ 1`, `Negate` from the sign in `-x`, "
        "and `Exp` from `ndl.exp(x)`",
        "[type(t.op).__name__ for t in (v1 * v2, v1 / v2, v1 + 1, -v1, ndl.exp(v1))] == "
        "['EWiseMul', 'EWiseDiv', 'AddScalar', 'Negate', 'Exp']",
    ),
    ("print-node", "the array in `cached_data`", "type(v4.cached_data) is ndl.NDArray"),
    ("draw", "with their values", "viz.draw(v4).source.count('[2]') == 2"),
    ("what-ran", "The value is the same", "w4.item() == v4.item()"),
    ("add-one", "three 32-bit floats", "x.numpy().dtype == 'float32'"),
    (
        "add-one",
        "`x + 1` calls the function `ndl.add_scalar`",
        "type(y.op) is type(ndl.add_scalar(x, 1).op)",
    ),
    (
        "chain",
        "inherits its `compute` from `Elementwise`",
        "'compute' not in vars(ndl.ops.EWiseMul) and "
        "ndl.ops.EWiseMul.compute.__qualname__ == 'Elementwise.compute'",
    ),
    (
        "chain",
        "the row of the table in which it looks up what to do",
        "ndl.ops.EWiseMul.function == 'multiply'",
    ),
    ("own-curve-explained", "run 81 times", "len(outputs) == 81"),
    ("own-curve-explained", "You wrote the formula once, for `a = 1`", "a.item() == 1 and out.inputs"),
    (
        "own-curve-explained",
        "know `+`, `-`, `*`, `/` and `**`",
        "(lambda a: all(len((x).numpy()) == 3 for x in (a + a, a - a, a * a, a / a, a**2)))(x.cached_data)",
    ),
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
            "Go up the table from n7",
        ),
        (
            "def from_the_table(n1, n2):\n    bottom = ndl.exp(-n1 * n2) + 1\n    return n1 / bottom",
            "Python reads `-n1 * n2` as",
        ),
        (
            "def from_the_table(n1, n2):\n    return n1 / (1 + ndl.exp((n1 * n2) * -1))",
            "Times -1 gives the same numbers",
        ),
        (
            "def from_the_table(n1, n2):\n    return n1 / (1 + ndl.exp(0 - (n1 * n2)))",
            "it adds 0 as well",
        ),
        (
            "def from_the_table(n1, n2):\n    n3 = n2 * n1\n    return n1 / (ndl.exp(-n3) + 1)",
            "in this order",
        ),
        ("def from_the_table(n1, n2):\n    return n1 / (exp(-(n1 * n2)) + 1)", "its name is `ndl.exp`"),
        ("def from_the_table(n1, n2):\n    e = np.exp(-(n1 * n2))\n    return n1 / (e + 1)", "NumPy's `exp`"),
        (
            "import math\ndef from_the_table(n1, n2):\n    return n1 / (1 + math.exp(-(n1 * n2)))",
            "one plain number",
        ),
        ("def from_the_table(n1, n2):\n    return n1 / ndl.exp(-(n1 * n2))", "n6 is missing"),
        (
            "def from_the_table(n1, n2):\n    n4 = n1 * n2\n    return n1 / (ndl.exp(n4) + 1)",
            "n4 is missing",
        ),
        (
            "def from_the_table(n1, n2):\n    return ndl.add_scalar(n1 / ndl.exp(-(n1 * n2)), 1)",
            "Where do brackets belong?",
        ),
        ("def from_the_table(n1, n2):\n    n1 / (ndl.exp(-(n1 * n2)) + 1)", "Is a `return` missing?"),
        (
            "def from_the_table(n1, n2):\n    n3 = n1 * n2\n    return n3 / (1 + ndl.exp(-n3))",
            "The table divides n1",
        ),
        ("def from_the_table(n1, n2):\n    return n1 / (ndl.exp(-(n2 * n2)) + 1)", "Go up the table"),
        ("def from_the_table(n1, n2):\n    return n2.EWiseMul(n1)", "a sign leaves each of them"),
        (
            "def from_the_table(n1, n2):\n    n3 = ndl.EWiseMul(n1, n2)\n"
            "    return ndl.EWiseDiv(n1, ndl.exp(-n3) + 1)",
            "a sign leaves each of them",
        ),
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
            "    return list(reversed(found)) + [output]",
            "no arrow leads to",
        ),
        (
            "def leaves(output):\n    return [n for n in find_topo_sort([output]) if n.op is None]",
            "Its full name is",
        ),
        (
            "def leaves(output):\n    return [n for n in ndl.autograd.find_topo_sort(output) if n.inputs]",
            "get a list",
        ),
        (
            "def leaves(output):\n    return [n for n in ndl.autograd.find_topo_sort([output]) if n.inputs]",
            "the operators' results",
        ),
        ("def leaves(output):\n    return [i for i in set(output.inputs) if not i.op]", "one step back only"),
        (
            "def leaves(output):\n    nodes = ndl.autograd.find_topo_sort([output])\n"
            "    return [n for n in nodes if n.is_leaf]",
            "needs its brackets",
        ),
        (
            "def leaves(output):\n    nodes = ndl.autograd.find_topo_sort([output])\n"
            "    return [n for n in nodes if n.is_leaf == True]",
            "Your list is empty",
        ),
        (
            "def leaves(output):\n    nodes = ndl.autograd.find_topo_sort([output])\n"
            "    return {n for n in nodes if n.op is None}",
            "A list is asked for",
        ),
        (
            "def leaves(output):\n    return [n.op for n in ndl.autograd.find_topo_sort([output])]",
            "These are operators",
        ),
        (
            "def leaves(output):\n    nodes = ndl.autograd.find_topo_sort([output])\n"
            "    return [n.op for n in nodes if n.op is None]",
            "a leaf has none",
        ),
        (
            "def leaves(output):\n    for n in ndl.autograd.find_topo_sort([output]):\n"
            "        if n.is_leaf():\n            return n",
            "stands inside the loop",
        ),
        (
            "def leaves(output):\n    found = []\n    for n in ndl.autograd.find_topo_sort([output]):\n"
            "        if n.is_leaf():\n            found.append(n)\n        return found",
            "stands inside the loop",
        ),
    ],
    "rerun": [
        ("def rerun(output, leaf, value):\n    return output.detach()", "Go through the nodes"),
        ("def rerun(output, leaf, value):\n    leaf = value\n    return output", "This is the old graph"),
        (
            "def rerun(output, leaf, value):\n    new = {leaf: value}\n"
            "    for n in ndl.autograd.find_topo_sort([output]):\n"
            "        new[n] = n.op(*[new[i] for i in n.inputs]) if n.op else n\n    return new[output]",
            "write over the entry of `leaf`",
        ),
        (
            "def rerun(output, leaf, value):\n    if output is leaf:\n        return value\n"
            "    if output.op is None:\n        return output\n"
            "    new = [rerun(i, leaf, value).cached_data for i in output.inputs]\n"
            "    return ndl.Tensor(output.op.compute(*new))",
            "but they have no history",
        ),
        (
            "def rerun(output, leaf, value):\n    new = {leaf: ndl.Tensor(value.numpy())}\n"
            "    for n in ndl.autograd.find_topo_sort([output]):\n        if not n.is_leaf():\n"
            "            new[n] = n.op(*[new.get(i, i) for i in n.inputs])\n    return new[output]",
            "not a copy of it",
        ),
        (
            "def rerun(output, leaf, value):\n    new = {leaf: value}\n"
            "    for n in ndl.autograd.find_topo_sort([output]):\n        if n.op:\n"
            "            new[n] = n.op(tuple(new.get(i, i) for i in n.inputs))\n    return new[output]",
            "with the star",
        ),
        (
            "def rerun(output, leaf, value):\n    return output.op(*(len(output.inputs) * [value]))",
            "The operators before it",
        ),
        (
            "def rerun(output, leaf, value):\n    new = {leaf: value}\n"
            "    for n in ndl.autograd.find_topo_sort([output]):\n        if n.op:\n"
            "            new[n] = n.op(*[new.get(i, i) for i in n.inputs])\n    return new",
            "the whole dictionary",
        ),
        (
            "def rerun(output, leaf, value):\n    new = {leaf: value}\n"
            "    for n in ndl.autograd.find_topo_sort([output]):\n        if n.op:\n"
            "            new[n] = n.op(*map(new.get, n.inputs))\n    return new[output]",
            "is None for a leaf that stays",
        ),
        (
            "def rerun(output, leaf, value):\n    if output is leaf:\n        return value\n"
            "    return output.op(*[rerun(i, leaf, value) for i in output.inputs])",
            "your graph computes it twice",
        ),
        (RERUN + "        if not n.is_leaf:\n            new[n] = " + NEW_NODE, "with its brackets"),
        (
            RERUN
            + "        if not n.is_leaf():\n            new[n] = "
            + NEW_NODE.replace("    ret", "        ret"),
            "stand after the loop?",
        ),
        (
            RERUN + "        if n.op:\n            return n.op(*[new.get(i, i) for i in n.inputs])",
            "the first new node",
        ),
        (
            RERUN.replace("ndl.autograd.find_topo_sort([output])", "find_topo_sort([output])")
            + "        if n.op:\n            new[n] = "
            + NEW_NODE,
            "Its full name is",
        ),
        (
            RERUN.replace("([output])", "([output])[::-1]")
            + "        if n.op:\n            new[n] = "
            + NEW_NODE,
            "take the list in its own order",
        ),
        (
            RERUN + "        if n.op:\n            new[n] = " + NEW_NODE.replace("n.op(", "type(n.op)()("),
            "You make a new operator",
        ),
        (RERUN + "        new[n] = " + NEW_NODE, "gives you the leaf itself"),
        (
            "def rerun(output, leaf, value):\n    new = {leaf: value}\n    for n in output.inputs:\n"
            "        if n.op:\n            new[n] = n.op(*[new.get(i, i) for i in n.inputs])\n"
            "    return output.op(*[new.get(i, i) for i in output.inputs])",
            "two steps back and no further",
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
        (
            "class Square(ndl.autograd.TensorOp):\n    def compute(self, a):\n        return a ^ 2",
            "written `**`",
        ),
        (
            "class Square(ndl.autograd.TensorOp):\n    def compute(self, x):\n        return np.power(x, 2)",
            "the library's own",
        ),
        (
            "class Square(ndl.autograd.TensorOp):\n    def compute(self, a):\n        b = a.numpy()\n"
            "        return b * b",
            "this is NumPy's array",
        ),
        (
            "class Square(ndl.autograd.TensorOp):\n    def compute(self, a):\n"
            "        return [x**2 for x in a]",
            "No loop is needed",
        ),
        (
            "class Square(ndl.autograd.TensorOp):\n    def compute(self, a):\n"
            "        return ndl.multiply(a, a)",
            "takes Tensors",
        ),
        (
            "class Square(ndl.autograd.TensorOp):\n    def compute(self, a):\n        return a @ a",
            "Nothing is added up",
        ),
        (
            "class Square(ndl.autograd.TensorOp):\n    def compute(self, a):\n        return sum(a**2)",
            "Nothing is added up",
        ),
        (
            "class Square(ndl.autograd.TensorOp):\n    def compute(self, a):\n        return self * self",
            "`self` is the operator",
        ),
        (
            "class Square(ndl.autograd.TensorOp):\n    def compute(a):\n        return a * a",
            "its own object first",
        ),
        (
            "class Square(ndl.autograd.TensorOp):\n    def compute(self, a, b):\n        return a * b",
            "has one input",
        ),
    ],
}
