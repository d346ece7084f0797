"""Lecture 05: what its prose claims, and what proves it."""

from __future__ import annotations

V1_TO_V4 = """\
id  op         inputs  data
n1  leaf       -       [0.]
n2  Exp        n1      [1.]
n3  AddScalar  n2      [2.]
n4  EWiseMul   n2, n3  [2.]
"""

SHOWN = [
    ("grown", "its inputs are the very Tensors", "grown-code", "(EWiseMul(), [True, True])"),
    (
        "exercise-table",
        "the very same objects",
        "inputs-are-tensors",
        "[False, True, False]\n[False, False, True]\n",
    ),
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
        "`make_from_op` computes no numbers yet, and `realize_cached_data` calls `compute` when you ask",
        "show-calls-lazy",
        "TensorOp.__call__\n    Value.make_from_op\n"
        "Now the numbers, please:\n"
        "Value.realize_cached_data\n    Elementwise.compute\narray([2.], dtype=float32)",
    ),
    ("by-hand-intro", "build the example by hand", "by-hand", V1_TO_V4),
]

TRUE = [
    (
        "by-hand-intro",
        "`value.op = op` and `value.inputs = inputs`",
        "all(f'value.{x} = {x}' in inspect.getsource(ndl.Tensor.make_from_op) for x in ('op', 'inputs'))",
    ),
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
    ("add-one", "`x + 1` calls the function `ndl.add_scalar`", "type(y.op) is type(ndl.add_scalar(x, 1).op)"),
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
