"""Lecture 04: what its prose claims, and what proves it."""

from __future__ import annotations

TAXI = "{'base': 1.1, 'rate': 8.8, 'km': 2.2, 'tip': 20.0}"
CLEARED = "cleared:   3.0 1.0\ndoubling:  4.0\n2 times 3: 6.0\n"
HAND = "{'q': 4.0, 'd': 5.0, 'p': 4.0, 'c': 4.0, 'a': 8.0, 'b': 12.0}"
BESIDE = (
    "w1  yours  2.8831   theirs  2.8831\nw2  yours  1.9221   theirs  1.9221\n"
    "x1  yours  0.4805   theirs  0.4805\nx2  yours -0.9610   theirs -0.9610\n"
    "b   yours  0.9610   theirs  0.9610\n"
)

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
    ("twice", "Those are your numbers again, measured", "by-hand-nudged", HAND),
    ("remembers", "for 3 times x", "scalar-class", "(Scalar(30), [(Scalar(10), 3.0)])"),
    ("curve", "Every number agrees", "beside-shown", BESIDE),
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

#: What the cells of the engine begin with.
ENGINE = ("class Scalar", "def __add__", "plus, product", "def topological", "order = ready", "def tanh")

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
    (
        "predict-step",
        "best step",
        "abs(measure(cube, 2.0, 0.1) - 12.01) < 1e-9"
        " and [1000 * abs(measure(cube, 2.0, 1e-5) - 12) < abs(measure(cube, 2.0, e) - 12)"
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
        "exercise-tanh",
        "Its derivative is 1 - tanh²",
        "abs(measure(np.tanh, 0.7, 1e-5) - tanh(Scalar(0.7)).history[0][1]) < 1e-9",
    ),
    ("by-hand-solution", "4 · 2 = 8. For b it is 4 · 3 = 12", "by_hand()['a'] == 8 and by_hand()['b'] == 12"),
    ("predict-twice", "a plus a", "round(measure(lambda x: x + x, 3.0, 0.01), 6) == 2"),
    (
        "curve",
        "each is a neuron with one input",
        "[neuron([w[1]], [Scalar(0.5)], w[2]).value * w[0].value] == "
        "[(w[0] * (w[1] * 0.5 + w[2]).tanh()).value]",
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
