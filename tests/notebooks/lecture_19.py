"""Lecture 19: what its prose claims, and what proves it."""

from __future__ import annotations

THREE_LOOPS = (
    "t1[i] = a[i] * b[i] or t1 = a * b\n"
    "def program(a, b, out):\n"
    "    t1 = np.empty(len(out), np.float32)\n"
    "    t2 = np.empty(len(out), np.float32)\n"
    "    for i in range(len(out)):\n"
    "        t1[i] = a[i] * b[i]\n"
    "    for i in range(len(out)):\n"
    "        t2[i] = t1[i] + a[i]\n"
    "    for i in range(len(out)):\n"
    "        out[i] = max(t2[i], 0)\n"
    "MB moved by each line: {'t1': 12.0, 't2': 12.0, 't3': 8.0} in all: 32.0\n"
)
FUSED = (
    "def fused(a, b, out):\n    for i in range(len(out)):\n        t1 = a[i] * b[i]\n"
    "        t2 = t1 + a[i]\n        out[i] = max(t2, 0)\n"
)

NUMPY = (
    'mul1 = add1 = np.empty((2,), "float32")\n\n\ndef step(a, b, result):\n    # Mul, Add, ReLU\n'
    "    np.multiply(a, b, out=mul1)\n    np.add(mul1, a, out=add1)\n    np.maximum(add1, 0, out=result)\n"
    "    return 0\n\n"
)

SHOWN = [
    (
        "record",
        "Both steps call 37 kernels",
        "hook-code",
        "small: 37 kernels; more than half between them: True\n"
        "large: 37 kernels; more than half between them: False\n<bars, with shown to drag>",
    ),
    (
        "trace",
        "for `power` the notes hold five products",
        "trace-code",
        "('t1', 'multiply', ('a', 'b'))\n('t2', 'add', ('t1', 'a'))\n('t3', 'maximum', ('t2', 0))\n"
        "and 5 lines for power\n",
    ),
    ("lower", "These are your three lines", "numpy-code", NUMPY),
    ("exercise-fuse", "12 + 12 + 8 MB go between memory and processor", "three-loops-code", THREE_LOOPS),
    ("compile", "NumPy has to agree", "compile-code", FUSED + "NumPy agrees: True\n"),
    (
        "drag-intro",
        "is ahead of NumPy",
        "race-code",
        "yours is the fastest: True\n<bars, with shown to drag>",
    ),
    (
        "exercise-refuse",
        "a wrong number without any error",
        "branch-code",
        "('t1', 'greater', ('limit', 1))\n('t2', 'multiply', ('a', 0.5))\n"
        "should be [6.] but the program says [1.5]\n",
    ),
    (
        "refuse-library",
        "its message says what to use instead",
        "refuse-library-code",
        "your recorder stops at the branch\njit: numbers were asked for that depend on limit, by .numpy(), "
        ".item(), float(), print or an `if`. They are different in each call, and are not known while the "
        "function is traced. Return the Tensor and look at it outside; to choose between numbers use "
        "ndl.where\n0.5 6.0 6.0\n2.0 1.5 1.5\n",
    ),
    (
        "softmax",
        "so it has to be an array again",
        "softmax-code",
        "def program(a, out):\n    t1 = np.empty(len(out), np.float32)\n    t2 = 0.0\n"
        "    for i in range(len(out)):\n        t1[i] = exp(a[i])\n        t2 += t1[i]\n"
        "    for i in range(len(out)):\n        out[i] = t1[i] / t2\nNumPy agrees: True\n",
    ),
    (
        "contract",
        "you see its text only while the function is traced",
        "traced-code",
        "these lines run\nhalf of the batch:\nthese lines run\n",
    ),
]

TRAFFIC = "[round(sum(Loops(n, ['x'], [n[:k], *[[z] for z in n[k:]]]).moved().values())) for k in {}]"
MOVED = "(lambda n: " + TRAFFIC + ")(record(six, 'x'))"
GROUP = "dict(re.findall(r'(\\d): ([^;)]*)', repr(viz.draw(compiled_step))))"

TRUE = [
    ("record", "`a * b` calls `np.multiply`", "record(lambda a, b: a * b, 'a', 'b')[0][1] == 'multiply'"),
    ("trace", "the notes hold five products", "{z[1] for z in record(power, 'a')} == {'multiply'}"),
    (
        "lower",
        '"maximum": "max({}, {})", "greater": "({} > {})", "exp": "exp({})"',
        "SIGNS == {'add': '{} + {}', 'subtract': '{} - {}', 'multiply': '{} * {}', 'divide': '{} / {}',"
        " 'maximum': 'max({}, {})', 'greater': '({} > {})', 'exp': 'exp({})'}",
    ),
    (
        "lower",
        '`in_array("t1")` gives `t1[i]`, and `plain("t1")` gives `t1`',
        "(in_array('t1'), plain('t1')) == ('t1[i]', 't1')",
    ),
    (
        "drag-intro",
        "12 MB instead of 32 for each million",
        "(lambda n: [sum(Loops(n, ['a', 'b'], g).moved().values()) for g in ([n], [[z] for z in n])])"
        "(record(f, 'a', 'b')) == [12, 32]",
    ),
    ("drag-intro", "One by one they move 52 MB", MOVED.format("[1]") + " == [52]"),
    ("branch", "`x` is read once and `out` is written once", MOVED.format("[6]") + " == [8]"),
    ("exercise-refuse", "any object is true unless its class says otherwise", "bool(object())"),
    (
        "refuse-solution",
        "Python itself refuses `float(box)`",
        "(lambda cls: not hasattr(cls, '__float__'))(type(Recorder('a', [])))",
    ),
    (
        "refuse-library",
        "chooses number by number, as you have just done with 0 and 1",
        "[damp_where(ndl.Tensor([3.0]), ndl.Tensor([z])).item() for z in (0.5, 2.0)]"
        " == [float(damp(3.0, z)) for z in (0.5, 2.0)]",
    ),
    (
        "refuse-library",
        "0 times infinity is not 0, it is `nan`",
        "np.isnan((ndl.Tensor([0.0]) * np.inf).item())"
        " and ndl.where(ndl.Tensor([0.0]) > 1, ndl.Tensor([np.inf]), ndl.Tensor([2.0])).item() == 2",
    ),
    (
        "totals",
        "`[[exp, sum], [divide]]`",
        "[[z[1] for z in g] for g in groups(lines)] == [['exp', 'sum'], ['divide']]",
    ),
    (
        "groups-solution",
        "Two totals that do not wait for each other share a loop",
        "len(groups([('t1', 'sum', ('a',)), ('t2', 'multiply', ('a', 'a')), ('t3', 'sum', ('t2',)),"
        " ('t4', 'subtract', ('t3', 't1'))])) == 2",
    ),
    (
        "refuse-library",
        "each value gets a program of its own",
        "len({damp_static.program_for(ndl.Tensor([3.0]), z) for z in (0.5, 2.0)}) == 2",
    ),
    (
        "contract",
        "a warning shows you the line",
        "re.search(r'line \\d.*scalar=3.*scalar=2', str(told[0].message)) and len(told) == 1",
    ),
    (
        "step",
        "The compiled function goes on with 2, and there is no error",
        "bend == 3 and [z(ndl.Tensor([1.0])).item() for z in (compiled, watched, bent)] == [2, 3, 3]",
    ),
    (
        "step",
        "Make `bend` an argument, and it may be another number in each call",
        "(lambda g, z: [g(z, n).item() for n in (2, 3)] == [2, 3]"
        " and g.program_for(z, 2) is g.program_for(z, 3))"
        "(ndl.jit(lambda x, bend: ndl.relu(x * bend)), ndl.Tensor([1.0]))",
    ),
    (
        "library",
        "Over `j` there are your three loops",
        "re.findall(r'for (.) in range', shares_of.source) == ['i', 'j', 'j', 'j']",
    ),
    (
        "traced",
        "of the product's 80 numbers only 8 are kept at a time",
        "'matmul1 = local(8)' in layer.source and 10 * 8 == 80",
    ),
    (
        "traced",
        "`add1` and `relu1` are plain variables",
        "all(z + ' = ' in layer.source and z + '[' not in layer.source for z in ('add1', 'relu1'))",
    ),
    (
        "contract",
        "The learning rate belongs to the optimiser, so it needs none",
        "'lr' in re.findall(r'\\w+', compiled_step.source.split(')')[0])",
    ),
    ("step", "the update of four parameters", "len(model.parameters()) == 4"),
    (
        "pay-off",
        "29 operators have become 9 loops and 3 single statements",
        "said[0] == 'step: 29 operators became 9 loops and 3 single statements.'",
    ),
    (
        "pay-off",
        "of the 799 numbers that would lie between them, 226 are kept in arrays",
        "re.findall(r'arrays of (\\d+) numbers', said[5]) == ['799', '226']",
    ),
    ("pay-off", "Group 2 is the batch", GROUP + "['2'] == 'loop of 10'"),
    ("pay-off", "groups 4 to 8", "max(" + GROUP + ") == '8'"),
    (
        "pay-off",
        "(The picture has 7 loops",
        "len(re.findall('(?m)^    for ', compiled_step.source)) == 9"
        " and repr(viz.draw(compiled_step)).count(': loop') == 7",
    ),
    ("pay-off", "such as `mask3`", "'mask3 = local(80)' in compiled_step.source"),
    (
        "pay-off",
        "in group 4, `weight_0` is updated in place",
        GROUP
        + "['4'] == 'loop of 2' and 'weight_0[8 * i + j] = add' in compiled_step.source.split('div1')[-1]",
    ),
    (
        "pay-off",
        "First they have to agree",
        "all(np.allclose(z, losses['eager'], rtol=1e-4) for z in losses.values()) and len(losses) >= 2",
    ),
    ("honest", "no Python runs between the operators any more", "speed['compiled'] > 5"),
]
