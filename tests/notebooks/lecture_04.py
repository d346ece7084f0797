"""Lecture 04: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

TAXI = "{'base': 1.1, 'rate': 8.8, 'km': 2.2, 'tip': 20.0}"
CLEARED = "cleared:   3.0 1.0\ndoubling:  4.0\n2 times 3: 6.0\n"
SCALAR = "from lectures.lecture_04 import Scalar\n"
ORDER = "from lectures.lecture_04 import in_order as order\n"
DUAL = (
    "class Dual:\n    def __init__(self, value, slope=0.0):\n        self.value, self.slope = value, slope\n"
    "    def __add__(self, other):\n        return Dual(self.value + other.value, self.slope + other.slope)\n"
    "    def __mul__(self, other):\n        "
)


def visiting(*lines: str) -> str:
    """An answer to the exercise of the order, with these lines in its frame."""
    head = "def topological_order(output):\n    order = []\n    def visit(node):\n        "
    return head + "\n        ".join(lines) + "\n    visit(output)\n    return order"


SHOWN = [
    (
        "taxi",
        "4 for getting in and 2 for each kilometre. Then you add a tip of a tenth. You ride 8 kilometres",
        "taxi-code",
        "8 km cost 22.00, 9 km cost 24.20: 2.20 more\n",
    ),
    ("how-small", "One kilometre more costs 2.20 more", "four-code", TAXI),
    ("how-small", "the ride costs 8.80 more", "four-code", TAXI),
    ("how-small", "the whole fare of 20 once more", "four-code", TAXI),
    (
        "chain",
        "For a sum, both derivatives are 1",
        "scalar-class",
        "(Scalar(30), [(Scalar(10), 1.0), (Scalar(20), 1.0)])",
    ),
    (
        "back",
        "its two factors have the derivatives 1.1 and 20",
        "operators-code",
        "(Scalar(22), [(Scalar(20), 1.1), (Scalar(1.1), 20.0)])",
    ),
    ("order", "the same four numbers as in section 1", "naive", TAXI),
    ("order", "`b.grad` is right: 2.", "naive-doubling", "(2.0, 8.0)"),
    ("it-runs", "each summand counts once", "first-walk", "(1.0, 1.0)"),
    ("clear", "`+=` added to them", "second-walk", "(4.0, 2.0)"),
    ("clear", "The derivatives of this `y` are 3 and 1.", "cleared", CLEARED),
    ("clear", "the doubling that the simple walk got wrong", "cleared", CLEARED),
    ("clear", "a chain of two factors, 2 and 3", "cleared", CLEARED),
    (
        "passes-explained",
        "the same 19 derivatives",
        "forward-runs",
        "the same derivatives: True\nruns of forward mode: 19\n",
    ),
]

ENGINE = ("class Scalar", "def multiply", "product = ", "def topological_order", "order = ready")

TRUE = [
    (
        "title",
        "It has about sixty lines",
        f"50 <= sum(len(source.splitlines()) for source in In if source.startswith({ENGINE})) <= 70",
    ),
    ("how-small", "for x³ it is 3x², so at 2 it is 12", "abs(measure(cube, 2.0, 1e-5) - 12) < 1e-9"),
    (
        "two-errors",
        "you get 12 + e²",
        "all(abs(measure(cube, 2.0, e) - 12 - e**2) < 1e-9 for e in (1, .1, .01))",
    ),
    ("predict-step", "best step", "abs(measure(cube, 2.0, 0.1) - 12.01) < 1e-9"),
    (
        "predict-step",
        "best step",
        "[1000 * abs(measure(cube, 2.0, 1e-5) - 12) < abs(measure(cube, 2.0, e) - 12)"
        " for e in (0.1, 1e-10, 1e-15)] == 3 * [True]",
    ),
    (
        "two-errors",
        "an error a hundred times smaller",
        "abs((measure(cube, 2.0, 0.1) - 12) / (measure(cube, 2.0, 0.01) - 12) - 100) < 1e-6",
    ),
    (
        "two-errors",
        "about 10⁻¹⁵ apart",
        "0.5e-15 < 8 - np.nextafter(8.0, 0.0) < np.nextafter(8.0, 9.0) - 8 < 2e-15",
    ),
    ("two-errors", "right to nine digits after the point", "round(measure(cube, 2.0, 1e-5), 9) == 12"),
    ("two-errors", "two runs of the program for each input", "len(errors) == len(steps)"),
    ("chain", "Altogether: 2 · 1 · 1.1 = 2.2", "round(2 * 1 * 1.1, 6) == round(ride['km'].grad, 6) == 2.2"),
    (
        "operators",
        "Its derivative is 1 - tanh²",
        "abs(measure(np.tanh, 0.7, 1e-5) - tanh(Scalar(0.7)).history[0][1]) < 1e-9",
    ),
    (
        "operators",
        "one for powers",
        "[(y.value, [s for _, s in y.history]) for y in [Scalar(3.0) ** 2]] == [(9, [6])]",
    ),
    ("order", "and `c` by 4", "measure(lambda x: (x + x) + (x + x), 3.0, 1.0) == 4"),
    ("order", "that is `[a, b, c]`", "[x.value for x in order(c)] == [3, 6, 12]"),
    ("curve", "a sum of six bent steps", "(len(w) - 1) / 3 == 6"),
    ("curve", "these are 19 **weights**", "len(w) == 19"),
    ("curve", "every three hours", "list(readings) == list(range(0, 24, 3))"),
    ("train-intro", "0.2 times the derivative", "'0.2 * weight.grad' in ''.join(In)"),
    ("forward-mode", "you can ask for any time of the day", "round(temperature(10.5), 1) == 14.7"),
    (
        "forward-mode",
        "have learned a curve",
        "now.value < 0.01 and all(abs(temperature(h) - t) < 0.6 for h, t in readings.items())",
    ),
    (
        "passes-explained",
        "your engine: one, and one walk back",
        "np.allclose([x.grad for x in w], [measure(lambda v: loss([*w[:i], Scalar(v), *w[i + 1:]], Scalar)"
        ".value, x.value, 1e-5) for i, x in enumerate(w)], atol=1e-6)",
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
        ("def central_difference(f, x, e):\n    return f(x + e) - f(x - e) / (2 * e)", "only f(x - e)"),
        ("def central_difference(f, x, e):\n    return f(x + e) - f(x - e) / 2*e", "Two pairs of brackets"),
        ("def central_difference(f, x, e):\n    return (f * (x + e) - f * (x - e)) / (2 * e)", "Call it"),
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
        (
            SCALAR + "def multiply(a, b):\n    return Scalar(a.value * b.value, ((a, b), (b, a)))",
            "Yours are Scalars",
        ),
        (
            SCALAR + "def multiply(a, b):\n    return Scalar(a * b, [(a, b.value), (b, a.value)])",
            "a Scalar again",
        ),
        (
            "class Scalar:\n    def __init__(self, value, history=()):\n"
            "        self.value, self.history = value, history\n"
            "def multiply(a, b):\n    return Scalar(a * b, [(a, b.value), (b, a.value)])",
            "no `*` yet",
        ),
        (
            SCALAR + "def multiply(a, b):\n    return Scalar(a.value * b.value, [b.value, a.value])",
            "a list of two pairs",
        ),
        (
            SCALAR + "def multiply(a, b):\n    return Scalar(a.value * b.value, (a, b.value))",
            "a list of two pairs",
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
            "Visit them",
        ),
        (
            "def topological_order(output, order=[]):\n    if output not in order:\n"
            "        for i, _ in output.history:\n            topological_order(i, order)\n"
            "        order.append(output)\n    return order",
            "inside the function",
        ),
        (
            "def topological_order(output):\n    order = []\n    for i, slope in output.history:\n"
            "        topological_order(i)\n    order.append(output)\n    return order",
            "thrown away",
        ),
        (
            "def topological_order(output):\n    order = []\n    for i in output.history:\n"
            "        order += topological_order(i)\n    return order + [output]",
            "Take it apart",
        ),
        (
            "def topological_order(output):\n    order = []\n    for i in output.inputs:\n"
            "        order += topological_order(i)\n    return order + [output]",
            "and nothing else",
        ),
        (
            "seen = []\ndef topological_order(output):\n    for i, _ in output.history:\n"
            "        topological_order(i)\n    if output not in seen:\n        seen.append(output)\n"
            "    return seen",
            "inside the function",
        ),
        (
            "def topological_order(output):\n    order = []\n    for i, _ in output.history:\n"
            "        order.append(topological_order(i))\n    order.append(output)\n    return order",
            "`extend` puts in",
        ),
        (
            "def topological_order(output):\n    order, waiting = [], [output]\n    while waiting:\n"
            "        node = waiting.pop()\n        if node not in order:\n            order.append(node)\n"
            "            for i, _ in node.history:\n                waiting.append(i)\n"
            "    order.reverse()\n    return order",
            "a stack gives out",
        ),
        (
            visiting(
                "for i, _ in node.history:",
                "    visit(node)",
                "order.append(node)",
            ),
            "goes on to itself",
        ),
        (
            visiting(
                "for i, _ in node.history:",
                "    order.append(i)",
                "order.append(node)",
            ),
            "Visit them",
        ),
        (
            visiting(
                "for i, _ in node.history:",
                "    visit(i)",
                "    order.append(i)",
            ),
            "not the number itself",
        ),
        (
            visiting(
                "if node not in order:",
                "    for i, _ in node.history:",
                "        visit(i)",
                "        order.append(node)",
            ),
            "less far to the right",
        ),
        (
            visiting(
                "for i, _ in node.history:",
                "    if i in order:",
                "        return",
                "    visit(i)",
                "order.append(node)",
            ),
            "ends the whole visit",
        ),
        (
            visiting(
                "for i, _ in node.history:",
                "    topological_order(i)",
                "order.append(node)",
            ),
            "thrown away",
        ),
        (
            visiting(
                "order = []",
                "for i, _ in node.history:",
                "    visit(i)",
                "order.append(node)",
            ),
            "one of its own",
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
        (
            ORDER + "def backward(output):\n    output.grad = 1.0\n    for node in order(output).reverse():\n"
            "        for i, slope in node.history:\n            i.grad += slope * node.grad",
            "turns a list around in place",
        ),
        (
            ORDER + "def backward(output):\n    output.grad = 1.0\n    for node in reversed(order(output)):\n"
            "        for i, slope in node.history:\n            node.grad += slope * i.grad",
            "Nothing leaves the output",
        ),
    ],
    "Dual": [
        (DUAL + "return Dual(self.value * other.value, other.slope * self.slope)", "multiply the two slopes"),
        (DUAL + "return Dual(self.value * other.value, other.value * self.slope)", "Only the first factor"),
        (DUAL + "return Dual(self.value * other.value, other.slope + self.slope)", "as for a sum"),
        (
            SCALAR
            + "a = b = Scalar(1.0)\n"
            + DUAL
            + "return Dual(a.value * b.value, a.slope * b.value + a.value * b.slope)",
            "`self` and `other`",
        ),
        (DUAL + "self.value * other.value", "`return` missing"),
        (
            DUAL + "return (self.value * other.value, self.value * other.slope + self.slope * other.value)",
            "make a Dual of them",
        ),
        (
            DUAL + "return Dual(a.value * b.value, a.slope * b.value + a.value * b.slope)",
            "`self` and `other`",
        ),
        (DUAL + "return Dual(self.value * other, self.slope * other)", "not a plain number"),
        (
            DUAL + "self.slope = other.slope * self.value + other.value * self.slope\n"
            "        self.value = self.value * other.value\n        return self",
            "leave `self` and `other` as they are",
        ),
    ],
}
