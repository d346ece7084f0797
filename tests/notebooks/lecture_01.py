"""Lecture 01: what its prose claims, and what proves it."""

from __future__ import annotations

NONE = "no counterexample in 100 tries\n"
SHOWN = [
    (
        "exercise-close",
        "about 2 · 10⁻¹⁶ at 1, and a whole 2",
        "gaps-code",
        "(0.0, 2.220446049250313e-16, 2.0)",
    ),
    (
        "property",
        "All seven are right",
        "operators-code",
        "[0.0067, 0.1192, 0.2689, 0.5, 0.7311, 0.8808, 0.9933]",
    ),
    (
        "property",
        "what must be true for **every** number",
        "first-hunt",
        "stays_between_0_and_1(x=-710.0) stops with OverflowError: math range error\n",
    ),
    (
        "drag-words",
        "it takes the logarithm of 0",
        "second-hunt",
        f"never_falls: {NONE}stays_below_1(x=40) breaks the law\n",
    ),
    (
        "exercise-law",
        "lies between -1 and 1",
        "law-hunt",
        f"sigmoid_is_symmetric: {NONE}tanh_is_symmetric(x=0.0) breaks the law\n",
    ),
    (
        "exercise-regroup",
        "Here the two sides differ in the last digit only",
        "school-laws",
        f"addition_commutes: {NONE}addition_is_associative(x=0.1, y=0.1, z=0.4) breaks the law\n"
        "(0.6000000000000001, 0.6)",
    ),
    (
        "compiler",
        "the same numbers have two sums, and neither is right to the last digit",
        "order",
        "(9.787606036044348, 9.787606036044386, 9.787606036044382)",
    ),
    ("higher-order", "*makes a new one*", "map-code", "([-1.0, 2.0, -3.0], [11.0, 22.0])"),
    ("backs", "No error at -710, this time", "compile-right", f"compiled_agrees_with_yours: {NONE}0.0"),
    ("backs", "We test them at x = 1", "backs-code", "True"),
    ("quick", "could not see the mistake", "back-hunt", "back_is_right(name='inv', x=0.5) breaks the law\n"),
    ("quick", "if you multiply that out", "quick-code", "(1.118033988749895, 0.0, 1.118033988749895)"),
    (
        "exercise-spread",
        "the root of that is an error",
        "spread-hunt",
        "equal_numbers_have_no_spread(x=3.3, n=6) stops with ValueError: math domain error\n",
    ),
]

TRUE = [
    (
        "imports",
        "no files are left behind",
        "(d := __import__('hypothesis.configuration', fromlist=['x']).storage_directory())"
        " and 'hypothesis-of-lectures' in str(getattr(d, 'path', d))",
    ),
    ("gaps", "answers 0.30000000000000004", "str(0.1 + 0.2) == '0.30000000000000004'"),
    ("gaps", "end up on neighbouring floats", "math.nextafter(0.3, 1) == 0.1 + 0.2"),
    (
        "close-solution",
        "its absolute one is 0 unless you set `abs_tol`",
        "not math.isclose(1e-12, 0) and math.isclose(1e-12, 0, abs_tol=1e-9)",
    ),
    (
        "close-solution",
        "`np.isclose` adds the two",
        "np.isclose(1 + 1.5e-5, 1, rtol=1e-5, atol=1e-5)"
        " and not np.isclose(1 + 2.5e-5, 1, rtol=1e-5, atol=1e-5)",
    ),
    (
        "operators",
        "made of the twelve functions below: one or two numbers go in",
        "len(functions) == 12 and {f.__code__.co_argcount for f in functions.values()} == {1, 2}",
    ),
    ("exercise-sigmoid", "Hypothesis tries a hundred numbers", "settings().max_examples == 100"),
    ("exercise-sigmoid", "-709 is still fine", "0 < naive_sigmoid(-709.0) < 1e-300"),
    (
        "exercise-sigmoid",
        "about 1.8 · 10³⁰⁸, and e⁷¹⁰ is more than that",
        "round(sys.float_info.max / 1e308, 1) == 1.8 and sys.float_info.max < math.exp(709) * math.e",
    ),
    (
        "sigmoid-solution",
        "it gives one between 0 and 1",
        "all(0 <= math.exp(-abs(x)) <= 1 for x in xs) and math.exp(-1000) == 0",
    ),
    ("drag-words", "takes the logarithm of 0", "1 - stable_sigmoid(40) == 0"),
    (
        "drag-words",
        "σ(-0.7898641256973269) comes out larger than σ(-0.7898641256973268), by one step of the last digit",
        "-0.7898641256973268 == math.nextafter(-0.7898641256973269, 1)"
        " and math.nextafter(sigmoid(-0.7898641256973268), 1) == sigmoid(-0.7898641256973269)",
    ),
    (
        "drag-words",
        "Between -1 and 0, about one of a hundred pairs of neighbouring floats is swapped like this",
        "80 < 20000 / sum(sigmoid(x) > sigmoid(math.nextafter(x, 1))"
        " for x in -np.random.default_rng(0).random(20000)) < 125",
    ),
    (
        "drag-words",
        "Drag `x` to the left until the naive one hits the ceiling",
        "np.isinf(powers['naive'][0]) and np.isfinite(powers['naive'][np.searchsorted(xs, -300)])"
        " and (powers['stable'] <= 0).all()",
    ),
    ("exercise-law", "at x = 0 it has to be 0.5", "stable_sigmoid(0.0) == 0.5"),
    ("law-solution", "because of the last digit", "stable_sigmoid(-2.0) != 1 - stable_sigmoid(2.0)"),
    (
        "exercise-regroup",
        "the check tries 1, 7, -0.375 and others",
        "[case.make()['0'] for case in sys.modules['lectures.lecture_01'].regroup.cases] == [1, 7, -0.375]",
    ),
    ("regroup-solution", "what remains after the subtraction is 0", "(5 + 1e20) - 1e20 == 0"),
    ("regroup-solution", "`x` survives", "5 + (1e20 - 1e20) == 5"),
    ("exercise-fold", "10, then 9, then 7, then 3", "fold(operator.sub, 10)([1, 2, 4]) == 3"),
    ("fold-solution", "`fold(mul, 1)` is the product", "fold(operator.mul, 1)([2, 3, 4]) == 24"),
    (
        "compiler",
        "call nothing but `math` and `abs`",
        "all(set(row.python.__code__.co_names) <= {'math', 'abs', *dir(math)} for row in table.values())",
    ),
    (
        "backs",
        "the compiled one gives infinity, and 1 / (1 + infinity) is 0",
        "njit(lambda x: math.exp(x))(710.0) == math.inf and 1 / (1 + math.inf) == 0",
    ),
    (
        "backs",
        "the seven functions that take one number",
        "list(backs) == [n for n in backs if functions[n].__code__.co_argcount == 1] and len(backs) == 7"
        " and sum(f.__code__.co_argcount == 1 for f in functions.values()) == 7",
    ),
    ("quick", "1 and 1² are the same", "backs['inv'](1.0, 1.0) == -1 and backs['inv'](2.0, 1.0) == -0.5"),
    ("spread-solution", "`np.std` does it in the same way", "spread([1, 2, 4]) == np.std([1, 2, 4])"),
]
