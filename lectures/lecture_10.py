"""Lecture 10, beside PyTorch: the same lines in two libraries, its exercises, predictions and count."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from importlib.util import find_spec
from typing import Any

import numpy as np
from hypothesis import strategies as st

import needle as ndl
import viz
from needle.autograd import Tensor, gradients

from .checking import NUMBERS, Case, Lecture, arrays, case, drawn, given, program_case, to_numpy

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict


# --- Two libraries side by side -----------------------------------------------------------------------------

#: (w − 3)² over 40 steps of PyTorch's SGD from w = 0, at a rate of 0.1, with gradients that add up.
FORGOTTEN = [
    9.0, 5.76, 1.7424, 0.0006, 1.8583, 5.9037, 9.0623, 8.9335, 5.6153, 1.6294,
    0.0052, 1.977, 6.0463, 9.1204, 8.863, 5.4697, 1.5194, 0.0144, 2.0984, 6.1877,
    9.1743, 8.7884, 5.3234, 1.4126, 0.0282, 2.2224, 6.3276, 9.2238, 8.7099, 5.1765,
    1.309, 0.0466, 2.3488, 6.4659, 9.269, 8.6276, 5.0292, 1.2087, 0.0695, 2.4775,
]  # fmt: skip

#: What PyTorch 2.13 gives for the functions of the notebook, by name: shown where it is not installed.
STATED: dict[str, dict[str, Any]] = {
    "mean": {
        "z": [[27.0, 27.0], [27.0, 27.0]],
        "out": 27.0,
        "gradient of x": [[4.5, 4.5], [4.5, 4.5]],
    },
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
        head = "".join(f'<th style="{left}">{name}</th>' for name in ["", *self.columns, ""])
        rows = ""
        for key, *found, same in self.rows:
            cells = [key, *found, "the same" if same else "not the same"]
            fonts = ["", *["; white-space: pre; font-family: monospace"] * len(found), ""]
            rows += "<tr>"
            rows += "".join(
                f'<td style="{left}{font}">{escape(text)}</td>'
                for text, font in zip(cells, fonts, strict=True)
            )
            rows += "</tr>"
        return (
            f'<div style="overflow-x: auto"><table><tr>{head}</tr>{rows}</table></div>'
            f"<p>{escape(self.note)}</p>"
        )


def theirs(name: str, in_torch: Callable[[], dict]) -> dict[str, Any]:
    """What a function gives in PyTorch; where PyTorch is not installed, what version 2.13 gave.

    Raises
    ------
    AssertionError
        If PyTorch is installed, and gives something else than what is stated.
    """
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
    """Run the same lines in both libraries, and show what they give.

    Parameters
    ----------
    name : str
        A key of `STATED`. Where PyTorch is not installed, its results stand there.
    in_needle, in_torch : function
        Each returns its results by name: Tensors, numbers or lists of numbers.
    by_hand, **others : dict, optional
        Results without either library; each gets a column of its own.
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


# --- 1 By hand ----------------------------------------------------------------------------------------------


@lecture.exercise(
    case(4.0, 0.5, 1.0),
    draws=drawn(NUMBERS, (3, 0.5, -2, 5, 0, 1), (1, 2, -3, 0.5, 0)),
    otherwise=(
        "Go outside in: the derivative of the square is 2 (w x + b). Then multiply by the derivative of what "
        "is inside."
    ),
    without=WALKS,
    own=OTHERS,
)
def gradients_by_hand(w, x, b):
    u = w * x + b
    return [2 * u * x, 2 * u * w, 2 * u]


# --- 2 Matrices ---------------------------------------------------------------------------------------------


def _oblong() -> dict[str, Any]:
    return {"X": np.array([[1.0, -1.0, 2.0]]), "W": np.array([[1.0, 3.0], [0.0, -2.0], [0.5, 1.0]])}


@st.composite
def products(draw: Any) -> Case:
    """Two matrices whose product there is: (n, k) and (k, m)."""
    n, k, m = draw(
        st.sampled_from([(2, 3, 4), (3, 2, 1), (1, 3, 2), (4, 2, 3), (2, 2, 2), (3, 1, 2), (1, 1, 1)])
    )
    fills = ("counted", "irregular", "signed", "zeros between")
    X, W = (draw(arrays([shape], fills, ("plain", "transposed"))) for shape in ((n, k), (k, m)))
    return given(lambda: {"X": X.copy("K"), "W": W.copy("K")}, "X", "W")


@lecture.exercise(
    given(_oblong, "X", "W"),
    given(
        lambda: {"X": np.array([[1.0, 2.0], [3.0, 4.0]]), "W": np.array([[1.0, 0.0], [2.0, 1.0]])}, "X", "W"
    ),
    draws=products(),
    otherwise="First the gradient of Y = X W, which is 2 Y. Then a product of two matrices, by the shapes.",
    without=WALKS,
    own=OTHERS,
)
def matrix_gradients(X, W):
    Y = X @ W
    return [2 * Y @ W.T, X.T @ (2 * Y)]


# --- 3 The Jacobian -----------------------------------------------------------------------------------------


def function_case(outputs: str, *x: float) -> Case:
    """The function with these outputs, at x."""
    lines = ("def f(x):", f"    return ndl.stack([{outputs}], 0)", f"x = ndl.Tensor({list(x)})")
    return program_case(lines, {"ndl": ndl}, "f", "x")


def as_table(answer: Any, *inputs: Any) -> Any:
    """What an answer gives; of a list of rows, the table."""
    found = answer(*inputs)
    if isinstance(found, list) and found and not any(row is ... for row in found):
        return np.stack([to_numpy(row) for row in found])
    return found.numpy() if isinstance(found, Tensor) else found


@lecture.exercise(
    function_case("x[0] * x[1], x[0] + x[1], x[1] ** 2", 2.0, 3.0),
    draws=st.one_of(
        st.tuples(
            st.sampled_from(
                ["3 * x[0], x[0] * x[0] * x[1]", "x[1] * x[1], 5 * x[0], x[0] * x[1], x[0]", "x[0] * x[1]"]
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
    otherwise="Row i holds the derivatives of output i. Print one row, and nudge each input to check it.",
    use=as_table,
    own=("jacobian", "jacrev", "jacfwd"),
)
def jacobian(f, x):
    y = f(x)
    rows = [ndl.gradients(y, [x], ndl.Tensor(seed))[0] for seed in np.eye(y.shape[0])]
    return np.stack([row.numpy() for row in rows])


# --- 4 Seven equations --------------------------------------------------------------------------------------


def _network() -> dict[str, Any]:
    rng = np.random.default_rng(7)
    x = rng.normal(size=(1, 3))
    return {
        "x": x, "y": np.array([[1.0]]),
        "W1": rng.normal(size=(3, 2)), "W2": rng.normal(size=(2, 1)), "lam": 0.1,
    }  # fmt: skip


@st.composite
def networks(draw: Any) -> Case:
    """The lecture's network with other numbers, small enough for tanh to bend."""
    fills = ("irregular", "signed", "falling", "zeros between")
    made = {name: draw(arrays([shape], fills)) / 4 for name, shape in SHAPES_OF.items()}
    made |= {"y": np.array([[draw(st.sampled_from((3.0, 0.5, -2.0, 1.0, 0.0)))]])}
    return case_of(made | {"lam": draw(st.sampled_from((2.0, 0.5, 0.1, 5.0, 0.0)))})


SHAPES_OF = {"x": (1, 3), "W1": (3, 2), "W2": (2, 1)}


def case_of(made: dict[str, Any]) -> Case:
    """These values, in the order in which `seven_equations` takes them."""
    copies = lambda: {name: np.array(value) if name != "lam" else value for name, value in made.items()}  # noqa: E731
    return given(copies, "x", "y", "W1", "W2", "lam")


@lecture.exercise(
    given(_network, "x", "y", "W1", "W2", "lam"),
    draws=networks(),
    otherwise=(
        "Go through the seven in their order: the first that is missing or differs counts, and those after "
        "it may be wrong because of it."
    ),
    without=WALKS,
    own=OTHERS,
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


@lecture.exercise(
    points_case(),
    draws=st.tuples(*map(st.sampled_from, [(4, 9, 2, 1), (3, 2, 4, 1), (1, 2, 3, 4, 5)])).map(points_case),
    number=12,
    otherwise=(
        "Compare the first loss that differs: the first of all is that of the given weights, and the second "
        "comes after one step of 0.1."
    ),
    own=("tensor", "as_tensor", "from_numpy"),
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
