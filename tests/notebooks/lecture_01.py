"""Lecture 01: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

FOUND = "sys.modules['needle.lecture.lecture_01'].counterexample"  # the same as `hunt` prints

SHOWN = [
    ("hook", "every schoolchild passes", "hook-code", "(False, 0.30000000000000004)"),
    (
        "exercise-close",
        "about 2 · 10⁻¹⁶ at 1, and a whole 2",
        "gaps-code",
        "(0.0, 2.220446049250313e-16, 2.0)",
    ),
    ("operators", "Numbers go in, one number comes out", "operators-code", "(0.0, 0.25, 1.0)"),
    ("sigmoid", "into the range from 0 to 1", "naive", "[0.0, 0.0067, 0.2689, 0.5, 0.7311, 0.9933, 1.0]"),
    (
        "shrinking",
        "a round one just beyond the edge",
        "edge",
        "(1.216780750623423e-308, 'OverflowError: math range error')",
    ),
    (
        "property",
        "what must be true for **every** number",
        "first-hunt",
        "stays_between_0_and_1(x=-710.0) stops with OverflowError: math range error\n",
    ),
    ("by-hand", "where it rounds depends on the brackets", "by-hand-code", "(0.6000000000000001, 0.6)"),
    ("higher-order", "*makes a new one*", "map-code", "[-1.0, 2.0, -3.0]"),
    ("parallel", "one that is put together from others", "compose", "-6.0"),
    (
        "compile-why",
        "`mul` is just a Python object with that name",
        "compile",
        "Untyped global name 'mul': Cannot determine Numba type of <class 'function'>\n",
    ),
    ("compile-why", "two ways out", "compile-right", "(-6.0, 1.7616)"),
    (
        "backs",
        "Nothing but `math` and its functions",
        "table-code",
        "(27, ['abs', 'cos', 'erf', 'exp', 'log', 'math', 'sin', 'sqrt', 'tanh'])",
    ),
    ("backs", "tested by hand at x = 1", "backs-code", "[True, True, True, True, True]"),
    (
        "equal-words",
        "Right, right, and NumPy agrees",
        "quick",
        "(1.118033988749895, 0.0, np.float64(1.118033988749895))",
    ),
]

TRUE = [
    (
        "imports",
        "no files are left behind",
        "(d := __import__('hypothesis.configuration', fromlist=['x']).storage_directory())"
        " and 'hypothesis-of-lectures' in str(getattr(d, 'path', d))",
    ),
    ("title", "not even 0.1 + 0.2 is 0.3", "0.1 + 0.2 != 0.3"),
    (
        "pay-off",
        "1 and 1² are the same",
        "pairs['inv'][1](1.0, 1.0) == -1 and pairs['inv'][1](2.0, 1.0) == -0.5",
    ),
    ("gaps", "stored in 64 bits", "np.float64(0.1).itemsize * 8 == 64"),
    ("operators", "A dozen functions", "len(functions) + 1 == 12"),
    ("sigmoid", "you try it on seven numbers", "len((-100, -5, -1, 0, 1, 5, 100)) == 7"),
    ("shrinking", "a hundred numbers", "settings().max_examples == 100"),
    ("exercise-sigmoid", "about 1.8 · 10³⁰⁸", "round(sys.float_info.max / 1e308, 1) == 1.8"),
    (
        "exercise-sigmoid",
        "e⁷¹⁰ is more than that",
        "math.exp(709) < sys.float_info.max and 710 > math.log(sys.float_info.max)",
    ),
    (
        "sigmoid-solution",
        "it gives one between 0 and 1",
        "all(0 <= math.exp(-abs(x)) <= 1 for x in xs) and math.exp(-1000) == 0",
    ),
    ("drag-words", "Drag `x` to the left", "np.isinf(naive_powers[0])"),
    (
        "drag-words",
        "where it falls out of the picture, it is rounded to 0",
        "math.exp(-1000) == 0 and np.isneginf(stable_powers[[0, -1]]).all()",
    ),
    (
        "second-hunt-words",
        "it stays between 0 and 1, and it never falls",
        f"not {FOUND}(still_between_0_and_1) and not {FOUND}(never_falls)",
    ),
    (
        "exercise-law",
        "it takes the logarithm of 0",
        f"'always_below_1(x=40)' in {FOUND}(always_below_1) and 1 - stable_sigmoid(40.0) == 0",
    ),
    (
        "exercise-law",
        "σ(-x) = 1 - σ(x)",
        f"not {FOUND}(sigmoid_is_symmetric) and 'breaks the law' in {FOUND}(tanh_is_symmetric)",
    ),
    ("law-solution", "because of the last digit", "stable_sigmoid(-2.0) != 1 - stable_sigmoid(2.0)"),
    (
        "by-hand",
        "`max` only picks one of its numbers",
        f"'breaks the law' in {FOUND}(addition_is_associative) and not {FOUND}(addition_commutes)"
        f" and not {FOUND}(maximum_is_associative)",
    ),
    ("regroup-solution", "what remains after the subtraction is 0", "(5 + 1e20) - 1e20 == 0"),
    ("regroup-solution", "`x` survives", "5 + (1e20 - 1e20) == 5"),
    ("exercise-zip", "is `[11, 22]`", "zip_with(operator.add)([1, 2], [10, 20]) == [11, 22]"),
    ("exercise-fold", "10, then 9, then 7, then 3", "fold(operator.sub, 10)([1, 2, 4]) == 3"),
    (
        "fold-solution",
        "`fold(mul, 1)` is the product",
        "fold(operator.mul, 1)([2, 3, 4]) == 24 and fold(operator.add, 0)([2, 3, 4]) == 9",
    ),
    (
        "parallel",
        "The last number is the true sum, rounded once",
        "len({total(many), total(many[::-1]), math.fsum(many)}) == 3",
    ),
    (
        "backs",
        "`d` times the derivative at `x`",
        f"\"back_is_d_times_the_slope(name='inv'\" in {FOUND}(back_is_d_times_the_slope)",
    ),
    (
        "exercise-spread",
        "the root of that is an error",
        f"'stops with ValueError' in {FOUND}(equal_numbers_have_no_spread)",
    ),
    ("spread-solution", "`np.std` does it in the same way", "spread([1, 2, 4]) == np.std([1, 2, 4])"),
    (
        "last-words",
        "The same law as before",
        f"not {FOUND}(still_no_spread) and not {FOUND}(sigmoid_of_the_library_is_symmetric)",
    ),
]

STABLE = "import math\ndef sigmoid(x):\n    "

NEAR_MISSES = {
    "close": [
        ("def close(x, y):\n    return not x != y", "the very same number"),
        ("def close(x, y):\n    return -1e-9 < x - y < 1e-9", "let what you allow grow"),
        ("import math\ndef close(x, y):\n    return math.isclose(x, y)", "why the 1 stands in the rule"),
        ("def close(x, y):\n    return max(x, y) - min(x, y) <= 1e-9 * max(1, x, y)", "only negative"),
        ("def close(x, y):\n    return 1e-9 * max(1, abs(x), abs(y)) < abs(y - x)", "whether they differ"),
        ("def close(x, y):\n    abs(x - y) <= 1e-9 * max(1, abs(x), abs(y))", "Is a `return` missing?"),
    ],
    "sigmoid": [
        (STABLE + "return math.exp(x) / (math.exp(x) + 1)", "asks for e to the 1000 when x is 1000"),
        (STABLE + "return (1 + math.exp(-x)) ** -1", "Use the other form where x is"),
        (
            STABLE + "if x < 0:\n        return 1 / (1 + math.exp(x))\n    return 1 / (1 + math.exp(-x))",
            "the numerator is",
        ),
        (
            STABLE + "if x <= 0:\n        return 1 / (1 + math.exp(-x))\n"
            "    e = math.exp(x)\n    return e / (e + 1)",
            "Swap them",
        ),
        (STABLE + "return 1 / (1 + math.exp(-np.clip(x, -10, 10)))", "You cut x off"),
    ],
    "symmetric": [
        ("def symmetric(f, x):\n    return f(-x) - (1 - f(x)) == 0", "Compare them with"),
        ("def symmetric(f, x):\n    return abs(f(x) + f(-x)) < 1e-9", "which is true of tanh"),
        ("def symmetric(f, x):\n    return abs(f(x) - f(-x)) < 1e-9", "the same height on both sides"),
        ("def symmetric(f, x):\n    return f(0) == 1 - f(0)", "You look at one point"),
        ("def symmetric(f, x):\n    assert abs(f(x) + f(-x) - 1) < 1e-9", "Is a `return` missing?"),
    ],
    "regroup": [
        ("def regroup(x):\n    return [2.0 * x, 4.0 * x]", "Such additions are exact"),
        ("def regroup(x):\n    return 1e18, 1e19", "what if z takes away again"),
        ("def regroup(x):\n    return [0.0, -1e25]", "Add a second large one"),
        ("def regroup(x):\n    return [float('inf'), float('-inf')]", "among ordinary numbers"),
    ],
    "zip_with": [
        ("def zip_with(f):\n    return lambda xs, ys: [f(*p) for p in zip(ys, xs)]", "the wrong way round"),
        (
            "def zip_with(f):\n    def zipped(xs, ys):\n        out = []\n        for x in xs:\n"
            "            for y in ys:\n                out.append(f(x, y))\n        return out\n"
            "    return zipped",
            "You combine each x with each y",
        ),
        (
            "def zip_with(f):\n    def zipped(xs, ys):\n        for i in range(len(xs)):\n"
            "            return f(xs[i], ys[i])\n    return zipped",
            "This stops after the first pair",
        ),
        ("def zip_with(f):\n    return lambda xs, ys: map(f, xs, ys)", "Make a list of them"),
        ("def zip_with(f):\n    return lambda xs, ys: list(map(f, zip(xs, ys)))", "Take the pair apart"),
    ],
    "fold": [
        (
            "def fold(f, start):\n    def folded(xs):\n        total = xs[0]\n        for x in xs[1:]:\n"
            "            total = f(total, x)\n        return total\n    return folded",
            "Where is `start`?",
        ),
        (
            "def fold(f, start):\n    def folded(xs):\n        for x in xs:\n            f(start, x)\n"
            "        return start\n    return folded",
            "`start` comes back as it was",
        ),
        (
            "def fold(f, start):\n    def folded(xs):\n        total = start\n        for x in xs:\n"
            "            total = f(x, total)\n        return total\n    return folded",
            "the wrong way round",
        ),
        (
            "def fold(f, start):\n    def folded(xs):\n        total = start\n        for x in xs:\n"
            "            total = f(start, x)\n        return total\n    return folded",
            "only the last item counts",
        ),
        (
            "def fold(f, start):\n    def folded(xs):\n        total = start\n        for x in xs[::-1]:\n"
            "            total = f(x, total)\n        return total\n    return folded",
            "You come from the right",
        ),
        (
            "def fold(f, start):\n    def folded(xs):\n        xs, total = list(xs), start\n"
            "        while xs:\n"
            "            total = f(total, xs.pop())\n        return total\n    return folded",
            "You begin with the last item",
        ),
    ],
    "spread": [
        (
            "import math\ndef spread(xs):\n    m = sum(xs) / len(xs)\n"
            "    return math.sqrt(sum(x * x for x in xs) / len(xs) - m * m)",
            "two large numbers that nearly cancel",
        ),
        (
            "def spread(xs):\n    m = sum(xs) / len(xs)\n"
            "    return (sum(x * x for x in xs) / len(xs) - m**2) ** 0.5",
            "is a complex number in Python",
        ),
        (
            "def spread(xs):\n    m = sum(xs) / len(xs)\n"
            "    return max(sum(x * x for x in xs) / len(xs) - m * m, 0) ** 0.5",
            "Now the crash is gone",
        ),
        ("def spread(xs):\n    return np.square(np.array(xs) - np.mean(xs)).mean().item()", "square root"),
        (
            "def spread(xs):\n    m = sum(xs) / len(xs)\n    return sum((x - m) ** 2 for x in xs) ** 0.5",
            "divide by the number",
        ),
        (
            "def spread(xs):\n    m = sum(xs) / len(xs)\n"
            "    return (sum((x - m) ** 2 for x in xs) / (len(xs) - 1)) ** 0.5",
            "You divide by n - 1",
        ),
    ],
}
