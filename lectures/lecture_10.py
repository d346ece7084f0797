"""Lecture 10, beside PyTorch: the same lines in two libraries, its exercises, predictions and count."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st

import needle as ndl
import viz
from needle import autograd
from needle.autograd import Tensor, gradients

from .checking import (
    NUMBERS,
    Attempt,
    Case,
    Contract,
    Fault,
    Lecture,
    arrays,
    as_array,
    case,
    closely,
    drawn,
    given,
    no_complex_step,
    outcome,
    program_case,
    to_numpy,
)

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade


# --- Two libraries side by side -----------------------------------------------------------------------------

#: (w − 3)² over 40 steps of PyTorch's SGD from w = 0, at a rate of 0.1, with gradients that add up.
FORGOTTEN = [
    9.0, 5.76, 1.7424, 0.0006, 1.8583, 5.9037, 9.0623, 8.9335, 5.6153, 1.6294,
    0.0052, 1.977, 6.0463, 9.1204, 8.863, 5.4697, 1.5194, 0.0144, 2.0984, 6.1877,
    9.1743, 8.7884, 5.3234, 1.4126, 0.0282, 2.2224, 6.3276, 9.2238, 8.7099, 5.1765,
    1.309, 0.0466, 2.3488, 6.4659, 9.269, 8.6276, 5.0292, 1.2087, 0.0695, 2.4775
]  # fmt: skip

#: What PyTorch 2.13 gives for the functions of the notebook, by name: shown where it is not installed.
STATED: dict[str, dict[str, Any]] = {
    "mean": {"z": [[27.0, 27.0], [27.0, 27.0]], "out": 27.0, "gradient of x": [[4.5, 4.5], [4.5, 4.5]]},
    "square": {"L": 49.0, "gradient of w": 42.0, "gradient of x": 28.0, "gradient of b": 14.0},
    "twice": {"y": 9.0, "after one backward": 6.0, "after another": 12.0},
    "forgotten": {"losses": FORGOTTEN},
    "parts": {"all at once": [[10.0], [66.0], [-78.0]], "in four parts": [[10.0], [66.0], [-78.0]]},
    "matrices": {
        "L": 166.0,
        "gradient of X": [[10.0, 24.0], [22.0, 52.0]],
        "gradient of W": [[76.0, 28.0], [108.0, 40.0]],
    },
    "seed": {"gradient of x": [13.0, 612.0]},
    "seven": {
        "dJ_dL": 1.0,
        "dJ_ds": 1.0,
        "dJ_do": [[1.6049]],
        "dJ_dh": [[1.6049, -3.2099]],
        "dJ_dz": [[0.674, -0.4832]],
        "dJ_dW1": [[0.724, -0.5032], [-0.664, 0.5232], [1.3781, -1.0163]],
        "dJ_dW2": [[1.3223], [-1.6792]],
    },
    "training": {"first losses": [0.7604, 0.4948, 0.4367], "last loss": 0.2733},
}


class Beside:
    """Results side by side, as a notebook shows them: a column for each way to compute them, by its name."""

    def __init__(self, columns: dict[str, dict[str, Any]], note: str):
        self.columns, self.note = columns, note

    @property
    def rows(self) -> list[list[Any]]:
        """What it is, the digits in each column, "" where it has none, and whether all are the same digits."""
        texts = {
            key: [digits(column[key]) if key in column else "" for column in self.columns.values()]
            for key in self.columns["PyTorch"]
        }
        return [[key, *found, len({*found} - {""}) == 1] for key, found in texts.items()]

    def __repr__(self) -> str:
        width = max(len(key) for key, *_ in self.rows)
        lines = [
            f"{key:{width}}  " + ("  =  " if same else "  ≠  ").join(text for text in found if text)
            for key, *found, same in self.rows
        ]
        return "\n".join([*(line.replace("\n", " ") for line in lines), self.note])

    def _repr_html_(self) -> str:
        left = "text-align: left; vertical-align: top; padding: 4px 16px 4px 0"
        numbers = f"{left}; white-space: pre; font-family: monospace"
        head = "".join(f'<th style="{left}">{name}</th>' for name in ["", *self.columns, ""])
        rows = "".join(
            f'<tr><td style="{left}">{key}</td>'
            + "".join(f'<td style="{numbers}">{escape(text)}</td>' for text in found)
            + f'<td style="{left}">{"" if same else "not "}the same</td></tr>'
            for key, *found, same in self.rows
        )
        return (
            f'<div style="overflow-x: auto"><table><tr>{head}</tr>{rows}</table></div>'
            f"<p>{escape(self.note)}</p>"
        )


def theirs(name: str, in_torch: Callable[[], dict]) -> dict[str, Any]:
    """What a function gives in PyTorch. Where that is not installed, what version 2.13 gave; where it is, both agree."""
    if find_spec("torch") is None:
        return STATED[name]
    found = in_torch()
    for key, stated in STATED[name].items():
        if not np.allclose(to_numpy(_detached(found[key])), stated, rtol=0, atol=1e-3):
            raise AssertionError(f"{name}: PyTorch gives {found[key]} for {key!r}; {stated} is stated")
    return found


def beside(
    name: str,
    in_needle: Callable[[], dict],
    in_torch: Callable[[], dict],
    by_hand: dict[str, Any] | None = None,
    **others: dict[str, Any],
) -> Beside:
    """Run the same lines in both libraries, and show what they give, by name.

    Results without either library get columns of their own: first `by_hand`, then the others.
    """
    note = "Both were computed just now."
    if find_spec("torch") is None:
        note = "PyTorch is not installed here. Its numbers are those that version 2.13 gave."
    first = {"by hand": by_hand} if by_hand else {}
    return Beside(first | others | {"needle": in_needle(), "PyTorch": theirs(name, in_torch)}, note)


def _detached(value: Any) -> Any:
    return value.detach() if hasattr(value, "detach") else value


def digits(value: Any) -> str:
    """Numbers with four digits after the point at most: so both libraries are compared."""
    if value is None:
        return "nothing"
    array = np.round(to_numpy(_detached(value)).astype(float), 4) + 0.0  # and no -0
    return np.array2string(array, separator=", ", formatter={"float_kind": lambda x: f"{x:g}"})


LIBRARY = "This is a library's own walk back. Here *you* are the library: write the gradients as formulas."
WALKS: dict[Callable, str] = {gradients: LIBRARY, Tensor.backward: LIBRARY}
OTHERS = ("backward", "grad", "gradients", "vjp", "elementwise_grad", "value_and_grad")

by_formulas: dict[str, Any] = {
    "without": WALKS,
    "own": OTHERS,
    "compare": closely,
    "contracts": (no_complex_step,),
}


# --- 1 By hand ----------------------------------------------------------------------------------------------


@lecture.exercise(
    case(4.0, 0.5, 1.0),
    # beside 1e200 a nudge is lost, and the square is too large for a number: its derivative is not
    draws=drawn(NUMBERS, (3, 0.5, -2, 5, 0, 1), (1, 2, -3, 0.5, 0, np.float64(1e200))),
    otherwise=(
        "Go outside in: the derivative of the square is 2 (w x + b). Then multiply by the derivative of what "
        "is inside. A nudge comes only near it."
    ),
    **by_formulas,
)
def gradients_by_hand(w, x, b):
    u = w * x + b
    return [2 * u * x, 2 * u * w, 2 * u]


# --- 2 Matrices ---------------------------------------------------------------------------------------------


def pair(X: Any, W: Any, size: float = 1.0) -> Case:
    """A case of two matrices, times such a size."""
    return given(lambda: {"X": size * np.array(X), "W": size * np.array(W)}, "X", "W")


def of_shapes(n: int, k: int, m: int) -> st.SearchStrategy[Case]:
    """Cases of an (n, k) and a (k, m). Some are so large that no nudge moves them."""
    fills, layouts = ("counted", "irregular", "signed", "zeros between"), ("plain", "transposed")
    X, W = (arrays([shape], fills, layouts) for shape in ((n, k), (k, m)))
    return st.builds(pair, X, W, st.sampled_from([1.0, 1.0, 1.0, 2.0**266]))


@lecture.exercise(
    pair([[1.0, -1.0, 2.0]], [[1.0, 3.0], [0.0, -2.0], [0.5, 1.0]]),
    pair([[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [2.0, 1.0]]),
    draws=st.sampled_from(
        [(2, 3, 4), (3, 2, 1), (1, 3, 2), (4, 2, 3), (2, 2, 2), (3, 1, 2), (1, 1, 1)]
    ).flatmap(lambda shape: of_shapes(*shape)),
    otherwise="First the gradient of Y = X W, which is 2 Y. Then a product of two matrices, by the shapes. A nudge "
    "comes only near it.",
    **by_formulas,
)
def matrix_gradients(X, W):
    Y = X @ W
    return [2 * Y @ W.T, X.T @ (2 * Y)]


# --- 3 The Jacobian -----------------------------------------------------------------------------------------


def function_case(outputs: str, *x: float) -> Case:
    """The function with these outputs, at x."""
    lines = ("def f(x):", f"    return ndl.stack([{outputs}], 0)", f"x = ndl.Tensor({list(x)})")
    return program_case(lines, {"ndl": ndl}, "f", "x")


@lecture.exercise(
    function_case("x[0] * x[1], x[0] + x[1], x[1] ** 2", 2.0, 3.0),
    draws=st.one_of(
        st.tuples(
            st.sampled_from(
                [
                    *(
                        "3 * x[0], x[0] * x[0] * x[1]",
                        "x[1] * x[1], 5 * x[0], x[0] * x[1], x[0]",
                        "x[0] * x[1]",
                    ),
                    "x[0] + x[1], 3 * x[0] + 1e30",  # beside 1e30 a nudge is lost
                ]
            ),
            *[st.sampled_from([2.0, 3.0, -1.0, 0.5, 0.0])] * 2,
        ),
        st.tuples(
            st.sampled_from(["x[0] ** 2, 2 * x[0], x[0], -x[0]", "x[0] ** 2"]), st.sampled_from([3.0, -1.0])
        ),
        st.tuples(
            st.sampled_from(["x[0] * x[1] * x[2]", "x[2] * x[1], 4 * x[0]", "x[1], x[2] ** 2, x[0] * x[1]"]),
            *[st.sampled_from([2.0, 3.0, -1.0])] * 3,
        ),
    ).map(lambda parts: function_case(*parts)),
    number=60,
    otherwise="Row i holds the derivatives of output i: what comes back from a seed of 1 at place i. A nudge comes "
    "only near it.",
    use=as_array,
    own=("jacobian", "jacrev", "jacfwd"),
)
def jacobian(f, x):
    y = f(x)
    rows = [ndl.gradients(y, [x], ndl.Tensor(seed))[0] for seed in np.eye(y.shape[0])]
    return np.stack([row.numpy() for row in rows])


# --- 4 Seven equations --------------------------------------------------------------------------------------


def network_case(x: Any, y: float, W1: Any, W2: Any, lam: float) -> Case:
    """A case of the lecture's network."""
    made = {"x": x, "y": [[y]], "W1": W1, "W2": W2}
    return given(lambda: {name: np.array(v) for name, v in made.items()} | {"lam": lam}, *made, "lam")


def small(*shape: int) -> st.SearchStrategy[np.ndarray]:
    """Numbers small enough for tanh to bend."""
    return arrays([shape], ("irregular", "signed", "falling", "zeros between")).map(lambda a: a / 4)


normal = np.random.default_rng(7).normal


@lecture.exercise(
    network_case(normal(size=(1, 3)), 1.0, normal(size=(3, 2)), normal(size=(2, 1)), 0.1),
    draws=st.builds(
        network_case,
        small(1, 3),
        st.sampled_from((3.0, 0.5, -2.0, 1.0, 0.0, -1e200)),
        small(3, 2),
        small(2, 1),
        st.sampled_from((2.0, 0.5, 0.1, 5.0, 0.0)),
    ),
    otherwise=(
        "Go through the seven in their order: the first that is missing or differs counts, and those after "
        "it may be wrong because of it. A nudge comes only near it."
    ),
    **by_formulas,
)
def seven_equations(x, y, W1, W2, lam):
    h = np.tanh(x @ W1)
    do = h @ W2 - y
    dh = do @ W2.T
    dz = dh * (1 - h**2)
    dW1 = x.T @ dz + lam * W1
    dW2 = h.T @ do + lam * W2
    names = ["dJ_dL", "dJ_ds", "dJ_do", "dJ_dh", "dJ_dz", "dJ_dW1", "dJ_dW2"]
    return dict(zip(names, [1.0, 1.0, do, dh, dz, dW1, dW2], strict=True))


# --- 5 The loop ---------------------------------------------------------------------------------------------


def points_case(parts: tuple[int, int, int] = (6, 3, 6)) -> Case:
    """So many points with targets, weights for so many hidden numbers, and the seed of all of them."""
    n, hidden, seed = parts

    def make() -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(n, 2)).round(1).astype("float32")
        W1, W2 = (rng.normal(size=shape).round(1).astype("float32") for shape in ((2, hidden), (hidden, 1)))
        target = (points[:, :1] * points[:, 1:] > 0).astype("float32")
        return {"points": points, "target": target, "W1": W1, "W2": W2}

    return given(make, "points", "target", "W1", "W2")


class WalksInNeedle(Contract):
    """The answer walks back in needle, each time through a graph of the same size."""

    def compare(self, attempt: Attempt) -> Fault | None:
        sizes = set()

        def counted(output: Tensor, seed: Tensor, walk_back: Callable = autograd.walk_back) -> Any:
            sizes.add(len(autograd.find_topo_sort([output])))
            return walk_back(output, seed)

        with patch.object(autograd, "walk_back", counted):
            outcome(attempt.answer, *attempt.case.make().values())
        if max(sizes, default=0) < 5:
            return Fault(
                "the losses are right, but needle never walks back", "Let needle find the gradients."
            )
        if len(sizes) > 1:
            return Fault(
                "the losses are right, but the graph grows with each step",
                "Each step hangs on the steps before it. Write it on `data`, which is outside of every graph.",
            )
        return None


@lecture.exercise(
    points_case(),
    draws=st.tuples(*map(st.sampled_from, [(4, 9, 2, 1), (3, 2, 4, 1), (1, 2, 3, 4, 5)])).map(points_case),
    number=12,
    otherwise=(
        "Compare the first loss that differs: the first of all is that of the given weights, and the second "
        "comes after one step of 0.1."
    ),
    contracts=(WalksInNeedle(),),
)
def train_in_needle(points, target, W1, W2):
    X, target = (ndl.Tensor(a, requires_grad=False) for a in (points, target))
    W1, W2 = ndl.Tensor(W1), ndl.Tensor(W2)
    losses = []
    for _ in range(20):
        loss = ((ndl.tanh(X @ W1) @ W2 - target) ** 2).mean()
        loss.backward()
        for W in (W1, W2):
            W.data = W.data - 0.1 * W.grad.data
        losses.append(loss.item())
    return losses


# --- Pictures -----------------------------------------------------------------------------------------------


def wave(penalty: float) -> Any:
    """Fifteen points of a noisy wave, and the curve of fifteen bumps that learned them with this penalty."""
    rng = np.random.default_rng(2)
    t = np.linspace(-1, 1, 15)
    seen = np.sin(3 * t) + 0.3 * rng.normal(size=15)
    centres = np.linspace(-1.2, 1.2, 15)

    def bumps(t: np.ndarray) -> np.ndarray:
        return np.exp(-18 * (t[:, None] - centres) ** 2)

    F = bumps(t)
    heights = np.linalg.solve(F.T @ F + penalty * np.eye(15), F.T @ seen)  # where the gradient of J is 0
    fine = np.linspace(-1, 1, 121)
    title = f"penalty {penalty:.2g}: heights up to {abs(heights).max():.1f}"
    ax = viz.curve(bumps(fine) @ heights, fine, xlabel="t", title=title)
    ax.plot(t, seen, "o")
    ax.set_ylim(-2, 2)
    return ax
