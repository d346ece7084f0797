"""Lecture 19: what its prose claims and what proves it, and answers that somebody might well give."""

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
        "the box hears five products, and not the `for`",
        "trace-code",
        "('t1', 'multiply', ('a', 'b'))\n('t2', 'add', ('t1', 'a'))\n('t3', 'maximum', ('t2', 0))\n"
        "and 5 lines for power\n",
    ),
    (
        "trace",
        "one line for each operator",
        "lazy-code",
        "<computational graph of out: 5 variables, 3 operators>",
    ),
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
        "a wrong number, and not a word",
        "branch-code",
        "('t1', 'greater', ('limit', 1))\n('t2', 'multiply', ('a', 0.5))\n"
        "should be [6.] but the program says [1.5]\n",
    ),
    (
        "refuse-library",
        "does the same, and names the way out",
        "refuse-library-code",
        "your recorder stops at the branch\njit: numbers were asked for that depend on limit, by .numpy(), "
        ".item(), float(), print or an `if`. They are different in each call, and are not known while the "
        "function is traced. Return the Tensor and look at it outside; to choose between numbers use "
        "ndl.where\n[6.0, 1.5]\n",
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
        "step",
        "you hear it only while the function is traced",
        "traced-code",
        "these lines run\nhalf of the batch:\nthese lines run\n",
    ),
]

TRAFFIC = "[round(sum(Loops(n, ['x'], [n[:k], *[[z] for z in n[k:]]]).moved().values())) for k in {}]"
MOVED = "(lambda n: " + TRAFFIC + ")(record(six, 'x'))"
GROUP = "dict(re.findall(r'(\\d): ([^;)]*)', repr(viz.draw(compiled_step))))"

TRUE = [
    ("record", "`a * b` calls `np.multiply`", "record(lambda a, b: a * b, 'a', 'b')[0][1] == 'multiply'"),
    (
        "trace",
        "of `power`, the box hears five products",
        "{z[1] for z in record(power, 'a')} == {'multiply'}",
    ),
    (
        "lower",
        '"maximum": "max({}, {})", "greater": "({} > {})", "exp": "exp({})"',
        "SIGNS == {'add': '{} + {}', 'subtract': '{} - {}', 'multiply': '{} * {}', 'divide': '{} / {}',"
        " 'maximum': 'max({}, {})', 'greater': '({} > {})', 'exp': 'exp({})'}",
    ),
    (
        "lower",
        "as `t1[i]`, or in a variable of its own, `t1`",
        "(in_array('t1'), plain('t1')) == ('t1[i]', 't1')",
    ),
    (
        "drag-intro",
        "12 MB instead of 32 for each million",
        "(lambda n: [sum(Loops(n, ['a', 'b'], g).moved().values()) for g in ([n], [[z] for z in n])])"
        "(record(f, 'a', 'b')) == [12, 32]",
    ),
    ("drag-intro", "One by one they move 52 MB", MOVED.format("[1]") + " == [52]"),
    ("branch", "in the end `x` is read once and `out` written once", MOVED.format("[6]") + " == [8]"),
    ("exercise-refuse", "any object that does not say otherwise counts as true", "bool(object())"),
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
        "library",
        "Over `j` there are your three loops",
        "re.findall(r'for (.) in range', shares_of.source) == ['i', 'j', 'j', 'j']",
    ),
    (
        "library",
        "of a million numbers, 8 MB read and 4 written",
        "(lambda g, n: [g(n, n * 2), 'reads 8,000,000 bytes and writes 4,000,000 bytes' in g.explain()][1])"
        "(ndl.jit(lambda a, b: ndl.relu(a * b + a)), ndl.ones(1_000_000))",
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
        "step",
        "The learning rate is a number that the program takes as an argument",
        "'optimizer_lr' in compiled_step.source.split(')')[0]",
    ),
    ("step", "the update of four parameters", "len(model.parameters()) == 4"),
    (
        "pay-off",
        "34 operators have become 9 loops and 3 single statements",
        "said[0] == 'step: 34 operators became 9 loops and 3 single statements.'",
    ),
    (
        "pay-off",
        "of the 861 numbers that would lie between them, 226 are kept in arrays",
        "re.findall(r'arrays of (\\d+) numbers', said[5]) == ['861', '226']",
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
        GROUP + "['4'] == 'loop of 2' and 'weight_0[at_ij] = add' in compiled_step.source.split('div1')[-1]",
    ),
    (
        "pay-off",
        "First they have to agree",
        "all(np.allclose(z, losses['eager'], rtol=1e-4) for z in losses.values()) and len(losses) >= 2",
    ),
    ("honest", "no Python runs between the operators any more", "speed['compiled'] > 5"),
]

BOX = (
    "from numpy.lib.mixins import NDArrayOperatorsMixin\n\n\n"
    "class Box(NDArrayOperatorsMixin):\n    def __init__(self, name, notes):\n"
    "        self.name, self.notes = name, notes\n\n"
    "    def __array_ufunc__(self, function, method, *operands):\n        "
)
LINE = (
    "from lectures.lecture_19 import SIGNS\n\n\ndef statement(line, place):\n"
    "    name, function, operands = line\n    "
)
FUSE = (
    "from lectures.lecture_19 import statement\nwrite = statement.right\n\n\ndef fuse(lines, inputs):\n"
    "    result = lines[-1][0]\n"
)
HEAD = "    text = 'def fused(' + ', '.join([*inputs, 'out']) + '):\\n'\n"
GROUPS = "def groups(lines):\n    found, loops, totals = [], {}, set()\n    for line in lines:\n"

NEAR_MISSES = {
    "Box": [
        (
            BOX + "r = Box('t' + str(len(self.notes) + 1), self.notes)\n"
            "        self.notes.append((r.name, function.__name__, operands))\n        return r",
            "Write down their names",
        ),
        (
            BOX + "n = [x.name for x in operands]\n        r = Box(f't{len(self.notes) + 1}', self.notes)\n"
            "        self.notes.append((r.name, function.__name__, tuple(n)))\n        return r",
            "may be a plain number",
        ),
        (
            BOX + "n = tuple(getattr(x, 'name', x) for x in operands)\n        r = Box('t1', self.notes)\n"
            "        self.notes.append((r.name, function.__name__, n))\n        return r",
            "Two results have the same name",
        ),
        (
            BOX
            + "n = tuple(getattr(x, 'name', x) for x in operands)\n        r = f't{len(self.notes) + 1}'\n"
            "        self.notes.append((r, function.__name__, n))\n        return Box(r, [])",
            "has a list of its own",
        ),
        (
            BOX
            + "n = tuple(getattr(x, 'name', x) for x in operands)\n        r = f't{len(self.notes) + 1}'\n"
            "        self.notes.append((r, function, n))\n        return Box(r, self.notes)",
            "Note what it is called",
        ),
        (
            BOX + "n = tuple(getattr(x, 'name', x) for x in operands)\n        r = f't{len(self.notes)}'\n"
            "        self.notes.append((r, function.__name__, n))\n        return Box(r, self.notes)",
            "You begin with `t0`",
        ),
        (BOX + "return function(*[x for x in operands])", "without end"),
        (
            BOX + "n = tuple(getattr(x, 'name', x) for x in operands)\n"
            "        self.notes.append((f't{len(self.notes) + 1}', function.__name__, n))\n"
            "        return Box(f't{len(self.notes) + 1}', self.notes)",
            "Make the name once",
        ),
        (
            BOX
            + "n = tuple(getattr(x, 'name', x) for x in operands)\n        r = f't{len(self.notes) + 1}'\n"
            "        self.notes += r, function.__name__, n\n        return Box(r, self.notes)",
            "mind the two pairs of brackets",
        ),
        (
            BOX + "n = tuple(str(getattr(x, 'name', x)) for x in operands)\n"
            "        r = f't{len(self.notes) + 1}'\n"
            "        self.notes.append((r, function.__name__, n))\n        return Box(r, self.notes)",
            "0, and not '0'",
        ),
        (
            BOX
            + "n = tuple(getattr(x, 'name', x) for x in operands)\n        r = f't{len(self.notes) + 1}'\n"
            "        self.notes.append((r, function.__name__, n))",
            "and then None is given back",
        ),
        (
            BOX + "n = tuple(getattr(x, 'name', x) for x in operands)\n"
            "        self.notes.append(f't{len(self.notes) + 1}', function.__name__, n)",
            "`append` takes one thing",
        ),
        (
            BOX + "n = tuple(getattr(x, 'name', x) for x in operands)\n"
            "        self.notes.append((f't{len(self.notes) + 1}', function.__name__, n))\n"
            "        return self",
            "You give back the Box that was asked",
        ),
        (
            BOX + "n = tuple(getattr(x, 'name', x) for x in operands)\n"
            "        self.name = f't{len(self.notes) + 1}'\n"
            "        self.notes.append((self.name, function.__name__, n))\n        return self",
            "under a new name",
        ),
    ],
    "statement": [
        (
            LINE + "return place(name) + ' = ' + SIGNS[function].format(*operands)",
            "work with their names alone",
        ),
        (
            LINE + "return place(name) + ' = ' + SIGNS[function].format(*[place(x) for x in operands])",
            "as it is",
        ),
        (
            LINE + "t = [f'{x}[i]' if isinstance(x, str) else x for x in operands]\n"
            "    return f'{name}[i] = ' + SIGNS[function].format(*t)",
            "is for `place` to say",
        ),
        (
            LINE + "t = [x if isinstance(x, (int, float)) else place(x) for x in operands]\n"
            "    return name + ' = ' + SIGNS[function].format(*t)",
            "The result needs its place",
        ),
        (
            LINE + "t = [x if isinstance(x, (int, float)) else place(x) for x in operands]\n"
            "    return SIGNS[function].format(*t)",
            "the right side alone",
        ),
        (
            LINE + "t = [x if isinstance(x, (int, float)) else place(x) for x in operands]\n"
            "    return place(name) + '=' + SIGNS[function].format(t[1], t[0])",
            "in the wrong order",
        ),
        (
            LINE + "t = [place(x) if not x.isnumeric() else x for x in operands]\n"
            "    return place(name) + ' = ' + SIGNS[function].format(*t)",
            "0 is a number and no text",
        ),
        (LINE + "return place(name) + ' = ' + SIGNS[function].format(place(operands))", "With a star"),
    ],
    "fuse": [
        (
            FUSE + HEAD + "    text += '    for i in range(len(out)):\\n'\n    for line in lines:\n"
            "        text += '        ' + write(line, lambda x: x + '[i]') + '\\n'\n    return text",
            "there is none",
        ),
        (
            FUSE + HEAD + "    text += '    for i in range(len(out)):\\n'\n    for line in lines:\n"
            "        place = lambda x: x + '[i]' if x in inputs else 'out[i]'\n"
            "        text += ' ' * 8 + write(line, place) + '\\n'\n"
            "    return text",
            "is still needed when `t2` is there",
        ),
        (
            FUSE + HEAD + "    text += '    for i in range(len(out)):\\n'\n    for line in lines:\n"
            "        text += ' ' * 8 + write(line, lambda x: x + '[i]' if x in inputs else x) + '\\n'\n"
            "    return text + '    out[i] = ' + result",
            "so it is written once",
        ),
        (
            FUSE + HEAD + "    text += '    for i in range(len(out)):\\n'\n    for line in lines:\n"
            "        text += '        ' + write(line, lambda x: x + '[i]' if x in inputs else x) + '\\n'\n"
            "    return text",
            "`out` stays as it was",
        ),
        (
            FUSE
            + HEAD
            + "    for line in lines:\n        text += '    for i in range(len(out)):\\n        '\n        "
            "text += write(line, lambda x: x + '[i]' if x in inputs else 'out[i]' if x == result else x)\n   "
            "     text += '\\n'\n    return text",
            "a loop of its own",
        ),
        (
            FUSE
            + HEAD
            + "    text += '    for i in range(len(out)):\\n'\n    for line in lines[::-1]:\n        text += "
            "' ' * 8 + write(line, lambda x: x + '[i]' if x in inputs else 'out[i]' if x == result else x) + "
            "'\\n'\n    return text",
            "in the wrong order",
        ),
        (
            FUSE
            + HEAD
            + "    text = [text, '    for i in range(len(out)):']\n    for line in lines:\n        "
            "text.append(' ' * 8 + write(line, lambda x: x + '[i]' if x in inputs else 'out[i]' if x == "
            "result else x))\n    return text",
            "A text is asked for",
        ),
        (
            FUSE
            + HEAD
            + "    text += '    for i in range(len(out)):\\n'\n    for line in lines:\n        text += ' ' * "
            "8 + write(line, lambda x: x + '[i]' if x in inputs else 'out[i]' if x == result else x) + "
            "'\\n'\n    return text + '        return out\\n'",
            "ends after one round",
        ),
        (
            FUSE + HEAD + "    text += '    for i in range(len(out)):\\n'\n    for line in lines[:-1]:\n"
            "        text += ' ' * 8 + write(line, lambda x: x + '[i]' if x in inputs else x) + '\\n'\n"
            "    return text + ' ' * 8 + write(lines[-1], lambda x: x + '[i]')",
            "In the last line, too",
        ),
        (
            FUSE + HEAD + "    text += '    import numpy as np\\n'\n    for line in lines:\n"
            "        text += f'    {line[0]} = np.empty(len(out))\\n'\n"
            "    text += '    for i in range(len(out)):\\n'\n    for line in lines:\n"
            "        text += ' ' * 8 + write(line, lambda x: x + '[i]') + '\\n'\n"
            "    return text + f'        out[i] = {result}[i]'",
            "the whole point of fusion",
        ),
        (
            FUSE + HEAD + "    text += '    for i in range(len(out)):\\n'\n    for line in lines:\n"
            "        text += ' ' * 8 + write(line, str) + '\\n'\n    return text",
            "The inputs are arrays",
        ),
        (
            "def fuse(lines, inputs):\n    def fused(a, b, out):\n        for i in range(len(out)):\n"
            "            out[i] = max(a[i] * b[i] + a[i], 0)\n    return fused",
            "This is the function itself",
        ),
        (
            "from lectures.lecture_19 import Loops\n\n\ndef fuse(lines, inputs):\n"
            "    return repr(Loops(lines, inputs, [lines])).replace('program', 'fused')",
            "Put it together yourself",
        ),
    ],
    "refuse": [
        ("def refuse(box):\n    return bool(box.notes) or True", "as if nothing had happened"),
        ("def refuse(box):\n    return 'not known: ' + box.name", "Yours gives something else back"),
        ("def refuse(box):\n    raise TypeError('ask me later')", "But which value was asked for?"),
        (
            "def refuse(box):\n    raise RuntimeError(box.name + ' is not known')",
            "But by the other error",
        ),
        ("def refuse(box):\n    raise box.name", "needs an error to raise"),
    ],
    "damped": [
        ("def damped(a, limit):\n    return [2 * a, a / 2][int(limit > 1)]", "no position in a list"),
        ("def damped(a, limit):\n    return (2 * a, a / 2)[limit > 1]", "no position in a list"),
        ("def damped(a, limit):\n    return a / 2 if limit > 1 else 2 * a", "was asked whether it is true"),
        (
            "def damped(a, limit):\n    return (limit > 1) and a * 0.5 or a + a",
            "was asked whether it is true",
        ),
        (
            "import numpy as np\n\n\ndef damped(a, limit):\n    return np.where(limit > 1, a / 2, a + a)",
            "or by `np.where`, which asks as well",
        ),
        ("def damped(a, limit):\n    return a * 0.5 * (limit > 1)", "nothing is left"),
        (
            "def damped(a, limit):\n    return a / 2 * (limit > 1) + 2 * a * (1 > limit)",
            "At `limit = 1` itself",
        ),
        (
            "def damped(a, limit):\n    big = 1 * (limit > 1)\n    return big * (a * 2) + (1 - big) * a / 2",
            "The two are swapped",
        ),
        ("def damped(a, limit):\n    return 2 * a + (limit > 1) * a * 0.5", "is always added"),
    ],
    "groups": [
        ("def groups(lines):\n    return [[line for line in lines]]", "All lines are in one loop"),
        ("def groups(lines):\n    return [[line] for line in lines]", "Every line has a loop"),
        (
            GROUPS + "        if not found or found[-1][-1][1] == 'sum':\n            found.append([])\n"
            "        found[-1].append(line)\n    return found",
            "even where nobody reads it yet",
        ),
        (
            GROUPS + "        waits = any(x in totals for x in line[2])\n        loops.setdefault(waits, "
            "[]).append(line)\n        if line[1] == 'sum':\n            totals.add(line[0])\n    return "
            "list(loops.values())",
            "A line waits for its operands",
        ),
        (
            GROUPS + "        n = 0\n        for x in line[2]:\n            if x in loops:\n"
            "                n = loops[x] + (x in totals)\n        loops[line[0]] = n\n"
            "        if line[1] == 'sum':\n            totals.add(line[0])\n        if n == len(found):\n"
            "            found.append([])\n        found[n].append(line)\n    return found",
            "all of them: take the `max`",
        ),
        (
            "def groups(lines):\n    found, ready = [[]], {}\n    for line in lines:\n"
            "        if any(ready.get(x, 0) == len(found) for x in line[2]):\n            found.append([])\n"
            "        found[-1].append(line)\n"
            "        ready[line[0]] = len(found) - (line[1] != 'sum')\n    return found",
            "never go back to an earlier one",
        ),
        (
            GROUPS + "        n = max(loops.get(x, 0) for x in line[2])\n        n += line[1] == 'sum'\n"
            "        loops[line[0]] = n\n        found += [[] for _ in range(n + 1 - len(found))]\n"
            "        found[n].append(line)\n    return found",
            "The total itself need not wait",
        ),
        (
            GROUPS + "        n = max(loops.get(x, 0) for x in line[2])\n"
            "        loops[line[0]] = n + (line[1] == 'sum')\n"
            "        found += [[]] if n == len(found) else []\n"
            "        found[n].append(line[0])\n    return found",
            "These are the names alone",
        ),
        (
            GROUPS + "        n = max(loops[x] for x in line[2])\n        loops[line[0]] = n\n"
            "        found[n].append(line)\n    return found",
            "are computed by no line",
        ),
        (
            GROUPS + "        n = max(loops.get(x, 0) for x in line[2])\n        found[n].append(line)\n"
            "    return found",
            "There is no such list yet",
        ),
        (
            "def groups(lines):\n    loops, found = {}, [[] for _ in lines]\n    for line in lines:\n"
            "        n = max(loops.get(x, 0) for x in line[2])\n        found[n].append(line)\n"
            "        loops[line[0]] = n + (line[1] == 'sum')\n    return found",
            "Some of your loops are empty",
        ),
        (
            "def groups(lines):\n    found, late = [[]], set()\n    for line in lines:\n"
            "        if any(x in late for x in line[2]):\n            found.append([])\n"
            "        found[-1].append(line)\n        if line[1] == 'sum':\n            late.add(line[0])\n"
            "    return found",
            "at each line that reads a total",
        ),
        (
            "def groups(lines):\n    loops, found = {}, []\n    for line in lines:\n"
            "        n = sum(loops.get(x, 0) for x in line[2])\n"
            "        found += [[] for _ in range(n + 1 - len(found))]\n        found[n].append(line)\n"
            "        loops[line[0]] = n + (line[1] == 'sum')\n    return found",
            "take the `max`",
        ),
    ],
}
