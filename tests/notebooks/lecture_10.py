"""Lecture 10: what its prose claims, and what proves it."""

from __future__ import annotations

BOTH = "Both were computed just now."
STATED = "PyTorch is not installed here. Its numbers are those that version 2.13 gave."


def same(call: str) -> str:
    """Whether `beside` finds the same digits in every row, …"""
    return f"all(row[-1] for row in {call}.rows)"


def same_without_torch(call: str) -> str:
    """… and also where PyTorch is not installed."""
    hide = "__import__('unittest.mock').mock.patch('lectures.lecture_10.find_spec', lambda name: None)"
    told = f"{same(call)} and 'not installed' in {call}.note"
    return f"(lambda hidden: [hidden.start(), {told}, hidden.stop()])({hide})[1]"


CALLS = {
    "mean-beside": ("hook", "put their results side by side", "beside('mean', in_needle, in_torch)"),
    "square": ("square-intro", "The square is 49", "beside('square', square_needle, square_torch)"),
    "in-parts": (
        "missing-explained",
        "the gradient of a sum is the sum of the gradients",
        "beside('parts', parts_needle, parts_torch)",
    ),
    "matrices-beside": (
        "matrices-draw-intro",
        "All three say the same",
        "beside('matrices', matrices_needle, matrices_torch, "
        "dict(zip(['gradient of X', 'gradient of W'], matrix_gradients(A, B))))",
    ),
    "vector-jacobian": (
        "jacobian-intro",
        "v times the Jacobian, a row times a table: a weighted sum of its rows",
        "beside('seed', seed_needle, seed_torch, "
        "{'gradient of x': np.array([1, 10, 100]) @ np.array([[3, 2], [1, 1], [0, 6]])})",
    ),
    "seven-compare": (
        "seven-backward",
        "your seven equations beside the nudged values, and beside both libraries",
        "beside('seven', seven_needle, seven_torch, "
        "seven_equations(*(v.numpy() for v in (x, y, W1, W2)), 0.1), nudged=nudged)",
    ),
    "loop-beside": (
        "habits",
        "step for step",
        "beside('training', lambda: ends(train_in_needle(*moons)), lambda: ends(train_in_torch(*moons)))",
    ),
}

SHOWN = [("network-intro", "all 3,000 entries are right", "passes", "((3, 1000), True)")]

TRUE = [
    *((cell, words, same(call)) for cell, words, call in CALLS.values()),
    *((cell, words, same_without_torch(call)) for cell, words, call in CALLS.values()),
    (
        "hook",
        "The only difference is one word",
        "[x.replace('torch', 'ndl') for x in in_torch.__code__.co_names]"
        " == list(in_needle.__code__.co_names)",
    ),
    (
        "hook",
        "Where PyTorch is not installed, it says so",
        "beside('mean', in_needle, in_torch).note in "
        f"({STATED!r}, {BOTH!r}) and (find_spec('torch') is None) == "
        f"(beside('mean', in_needle, in_torch).note == {STATED!r})",
    ),
    (
        "square-intro",
        "Your three derivatives stand in the first column",
        "[row[1] for row in beside('square', square_needle, square_torch).rows] == ['49', '42', '28', '14']"
        " and gradients_by_hand(2.0, 3.0, 1.0) == [42, 28, 14]",
    ),
    ("first-habit", "unless you say `requires_grad=False`", "ndl.Tensor([1.0]).requires_grad"),
    ("first-habit", "you have to say it in both", "not ndl.ones(2).requires_grad"),
    (
        "first-habit",
        "nothing takes part unless you say",
        "find_spec('torch') is None or not torch.tensor([1.0]).requires_grad",
    ),
    (
        "accumulate",
        "Needle **replaces** it",
        "[r[1:3] for r in beside('twice', lambda: run_twice(ndl.Tensor(1.0)), twice_torch).rows]"
        " == [['9', '9'], ['6', '6'], ['6', '12']]",
    ),
    (
        "missing-explained",
        "up the other side and back again",
        "(t := both['PyTorch'])[3] < 0.01 and max(t[4:]) > 9 and min(t[8:]) < 0.01 and len(t) == 40",
    ),
    ("missing-explained", "`optimizer.zero_grad()`", "both['needle'][-1] < 1e-6"),
    (
        "missing-explained",
        "each step follows the sum of all gradients so far",
        "[w := 0.0, g := 0.0] and np.allclose([((w - 3) ** 2, g := g + 2 * (w - 3), w := w - 0.1 * g)[0] "
        "for _ in range(40)], both['PyTorch'], atol=2e-3)",
    ),
    (
        "matrices-task",
        "the sum of the squares of all entries of `Y`",
        "beside('matrices', matrices_needle, matrices_torch).rows[0][1] == '166'",
    ),
    (
        "matrices-draw-intro",
        "the two transposes",
        "len(re.findall(r'transpose|>T<', viz.draw_gradient(Y, out_grad=2 * Y.detach()).source)) >= 2",
    ),
    ("jacobian-intro", "If it is three,", "len(outputs_of(np.array([2.0, 3.0]))) == 3"),
    (
        "jacobian-task",
        "leaves `x.grad` alone",
        "[q := ndl.Tensor([1.0]), ndl.gradients(q * q, [q])][0].grad is None",
    ),
    (
        "drag-intro",
        "adds λ W to the gradient of each weight",
        "find_spec('torch') is None or [w := torch.tensor([2.0], requires_grad=True), "
        "(0 * w).sum().backward(), torch.optim.SGD([w], lr=1.0, weight_decay=0.1).step(), "
        "abs(w.item() - 1.8) < 1e-6][-1]",
    ),
    (
        "drag-intro",
        "needle's has the same",
        "[w := ndl.nn.Parameter([2.0]), (0 * w).sum().backward(), "
        "ndl.optim.SGD([w], lr=1.0, weight_decay=0.1).step(), abs(w.item() - 1.8) < 1e-6][-1]",
    ),
    (
        "nudge-intro",
        "here in NumPy's float64",
        "all(v.dtype == np.float64 and np.allclose(v, right, atol=1e-8) "
        "for v, right in zip(nudged.values(), seven_equations(*known.values(), 0.1).values()))",
    ),
    ("loop-intro", "twenty steps", "len(train_in_torch(*moons) if find_spec('torch') else [0] * 20) == 20"),
    ("loop-intro", "a hundred points", "len(points) == 100"),
    (
        "train-in-needle-solution",
        "`zero_grad()` is called `reset_grad()`",
        "all(hasattr(ndl.optim.SGD([ndl.Tensor([1.0])], lr=0.1), n) for n in ('reset_grad', 'step'))",
    ),
    ("habits", "a copy", "not np.shares_memory((q := ndl.Tensor([1.0])).numpy(), q.numpy())"),
    (
        "habits",
        "the same memory",
        "find_spec('torch') is None or "
        "np.shares_memory((t := torch.tensor([1.0])).detach().numpy(), t.detach().numpy())",
    ),
]
