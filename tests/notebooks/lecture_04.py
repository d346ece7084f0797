"""Lecture 04: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

TAXI = "{'base': 1.1, 'rate': 8.8, 'km': 2.2, 'tip': 20.0}"
SCALAR = "from needle.lecture.lecture_04 import Scalar\n"
ORDER = "from needle.lecture.lecture_04 import in_order as order\n"
DUAL = (
    "class Dual:\n    def __init__(self, value, slope=0.0):\n        self.value, self.slope = value, slope\n"
    "    def __add__(self, other):\n        return Dual(self.value + other.value, self.slope + other.slope)\n"
    "    def __mul__(self, other):\n        "
)

SHOWN = [
    ("taxi", "4 for getting in and 2 for each kilometre. Then you add a tip of a tenth", "taxi-code", "22.0"),
    ("derivative", "move one input, run it again, and look", "kilometre", "2.2"),
    ("four", "How far does each input of the taxi move the bill?", "four-code", TAXI),
    ("how-small", "one kilometre more costs 2.20 more", "four-code", TAXI),
    ("how-small", "the ride costs 8.80 more", "four-code", TAXI),
    ("how-small", "as much as the whole fare, 20", "four-code", TAXI),
    ("chain", "along the way you multiply", "two-factors", "6.0"),
    (
        "scalar",
        "For a sum, both derivatives are 1",
        "first-history",
        "(Scalar(30), [(Scalar(10), 1.0), (Scalar(20), 1.0)])",
    ),
    (
        "back",
        "its two factors have the derivatives 1.1 and 20",
        "taxi-remembers",
        "(Scalar(22), [(Scalar(20), 1.1), (Scalar(1.1), 20.0)])",
    ),
    ("doubling", "the same four numbers", "naive", TAXI),
    ("order", "`b.grad` is right: 2.", "naive-doubling", "(2.0, 8.0)"),
    ("second-walk-intro", "each summand counts once", "first-walk", "(1.0, 1.0)"),
    ("clear", "`+=` added to them", "second-walk", "(4.0, 2.0)"),
    ("clear", "The derivatives of this `y` are 3 and 1.", "cleared", "(3.0, 1.0)"),
    ("z-intro", "the doubling that the naive walk got wrong", "z-code", "(6.0, 4.0)"),
    ("learned-explained", "you can ask for any time of the day", "half-past-ten", "14.7"),
    ("passes-explained", "The same 19 derivatives", "forward-runs", "(19, True)"),
]

ENGINE = ("class Scalar", "def multiply", "product = ", "def topological_order", "def backward")

TRUE = [
    (
        "title",
        "It has about sixty lines",
        f"50 <= sum(len(source.splitlines()) for source in In if source.startswith({ENGINE})) <= 70",
    ),
    ("how-small", "for x³ it is 3x², so at 2 it is 12", "abs(measure(cube, 2.0) - 12) < 1e-9"),
    (
        "two-errors",
        "you get 12 + e²",
        "all(abs(measure(cube, 2.0, e) - 12 - e**2) < 1e-9 for e in (1, .1, .01))",
    ),
    ("two-errors", "at e = 0.1 it is 0.01", "abs(measure(cube, 2.0, 0.1) - 12.01) < 1e-9"),
    (
        "two-errors",
        "about 10⁻¹⁵ apart",
        "0.5e-15 < 8 - np.nextafter(8.0, 0.0) < np.nextafter(8.0, 9.0) - 8 < 2e-15",
    ),
    ("too-slow", "right to ten digits", "f'{measure(cube, 2.0, 1e-5):.9g}' == '12'"),
    ("too-slow", "two runs of the program for each input", "len(errors) == len(steps)"),
    ("chain", "Altogether: 2 · 1 · 1.1 = 2.2", "round(2 * 1 * 1.1, 6) == round(ride['km'].grad, 6) == 2.2"),
    (
        "operators",
        "its derivative is 1 - tanh²",
        "abs(measure(np.tanh, 0.7) - tanh(Scalar(0.7)).history[0][1]) < 1e-9",
    ),
    (
        "operators",
        "The rest of arithmetic follows from these",
        "((1 - Scalar(3.0) / 4) ** 2).value == 0.0625",
    ),
    ("doubling", "and `c` by 4", "measure(lambda x: (x + x) + (x + x), 3.0, 1.0) == 4"),
    ("order", "that is `[a, b, c]`", "[x.value for x in order(c)] == [3, 6, 12]"),
    (
        "library",
        "each variable gets what you found: 1.1, 8.8, 2.2 and 20",
        "[round(x.item(), 4) for x in ndl.gradients(bill, [base, rate, km, tip])] == [1.1, 8.8, 2.2, 20]",
    ),
    ("model", "a sum of six bent steps", "(len(w) - 1) / 3 == 6"),
    ("model", "these are 19 **weights**", "len(w) == 19"),
    ("learned-explained", "300 times", "len(losses) == 300 and losses[-1] < 0.01 < 1 < losses[0]"),
    (
        "learned-explained",
        "The dots are the readings",
        "all(abs(temperature(h) - t) < 0.6 for h, t in zip(hours, degrees))",
    ),
    (
        "passes-explained",
        "after **one** run",
        "np.allclose([x.grad for x in w], [measure(lambda v: loss([*w[:i], Scalar(v), *w[i + 1:]], Scalar)"
        ".value, x.value) for i, x in enumerate(w)], atol=1e-6)",
    ),
]

NEAR_MISSES = {
    "central_difference": [
        ("def central_difference(f, x, e=1e-5):\n    return (f(x) - f(x - e)) / e", "with one side only"),
        (
            "def central_difference(f, x, e=1e-5):\n    here = f(x)\n    return f(x + e) / e - here / e",
            "one side only",
        ),
        (
            "def central_difference(f, x, e=1e-5):\n    rise = f(x + e) - f(x - e)\n    return rise / e",
            "not e",
        ),
        ("def central_difference(f, x, e=1e-5):\n    return (f(x + e) - f(x - e)) * e / 2", "left to right"),
        ("def central_difference(f, x, e=1e-5):\n    (f(x + e) - f(x - e)) / (2 * e)", "`return` missing"),
    ],
    "multiply": [
        (
            SCALAR
            + "def multiply(a, b):\n    return Scalar(a.value * b.value, [(b, b.value), (a, a.value)])",
            "times *b*",
        ),
        (
            SCALAR + "def multiply(a, b):\n    return Scalar(a.value * b.value)",
            "forgotten where it came from",
        ),
        (SCALAR + "def multiply(a, b):\n    return Scalar(b.value * a.value, ((a, 1), (b, 1)))", "of a sum"),
        ("def multiply(a, b):\n    return b.value * a.value", "remembers nothing"),
        (
            SCALAR + "def multiply(a, b):\n    pairs = [(a.value, b.value), (b.value, a.value)]\n"
            "    return Scalar(a.value * b.value, pairs)",
            "hold plain numbers",
        ),
    ],
    "topological_order": [
        (
            "def topological_order(output):\n    order, waiting = [], [output]\n    for node in waiting:\n"
            "        waiting += [i for i, _ in node.history]\n    for node in reversed(waiting):\n"
            "        if node not in order:\n            order.append(node)\n    return order[::-1]",
            "output first",
        ),
        (
            "def topological_order(output):\n    order = []\n    def visit(node):\n"
            "        if node in order:\n            return\n        order.append(node)\n"
            "        for i, slope in node.history:\n            visit(i)\n"
            "    visit(output)\n    return order",
            "as soon as you meet it",
        ),
        (
            "def topological_order(output):\n    order = []\n    def visit(node):\n"
            "        for i, slope in node.history:\n            visit(i)\n        order.append(node)\n"
            "    visit(output)\n    return order",
            "once for each way",
        ),
        (
            "def topological_order(output):\n    return [i for i, _ in output.history] + [output]",
            "Draw this graph",
        ),
    ],
    "backward": [
        (
            ORDER + "def backward(output):\n    output.grad = 1.0\n    for node in order(output)[::-1]:\n"
            "        for i, slope in node.history:\n            i.grad = slope * node.grad",
            "write `+=`",
        ),
        (
            ORDER + "def backward(output):\n    output.grad = 1\n    for node in order(output):\n"
            "        for i, slope in node.history:\n            i.grad += slope * node.grad",
            "turn the order around",
        ),
        (
            ORDER + "def backward(output):\n    for node in reversed(order(output)):\n"
            "        for i, slope in node.history:\n            i.grad += slope * node.grad",
            "begins with the output",
        ),
        (
            "def backward(output):\n    output.grad = 1.0\n    def walk(node):\n"
            "        for i, slope in node.history:\n            i.grad += node.grad * slope\n"
            "            walk(i)\n    walk(output)",
            "as soon as something arrives",
        ),
        (
            ORDER + "def backward(output):\n    for node in order(output):\n        node.grad = 0\n"
            "    output.grad = 1\n    for node in reversed(order(output)):\n"
            "        for i, slope in node.history:\n            i.grad += slope * node.grad",
            "an earlier walk left",
        ),
    ],
    "Dual": [
        (DUAL + "return Dual(self.value * other.value, other.slope * self.slope)", "multiply the two slopes"),
        (DUAL + "return Dual(self.value * other.value, other.value * self.slope)", "Only the first factor"),
        (DUAL + "return Dual(self.value * other.value, other.slope + self.slope)", "as for a sum"),
        (DUAL + "self.value * other.value", "`return` missing"),
    ],
}
