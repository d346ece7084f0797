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
    """The results of two functions, side by side, as a notebook shows them; those by hand, if any, first."""

    def __init__(self, ours: dict[str, Any], theirs: dict[str, Any], hand: dict[str, Any], note: str):
        self.ours, self.theirs, self.hand, self.note = ours, theirs, hand, note

    @property
    def rows(self) -> list[tuple[str, str, str, bool]]:
        """What it is, needle's result and PyTorch's in digits, and whether all are the same digits."""
        both = [(key, digits(self.ours.get(key)), digits(value)) for key, value in self.theirs.items()]
        return [(*row, row[2] == row[1] == self.by_hand(row[0], row[1])) for row in both]

    def by_hand(self, key: str, otherwise: str = "") -> str:
        """The result by hand, in digits, if there is one."""
        return digits(self.hand[key]) if key in self.hand else otherwise

    def __repr__(self) -> str:
        width = max(len(key) for key, *_ in self.rows)
        lines = [
            f"{key:{width}}  {ours}  {'=' if same else '≠'}  {theirs}"
            for key, ours, theirs, same in self.rows
        ]
        return "\n".join([*(line.replace("\n", " ") for line in lines), self.note])

    def _repr_html_(self) -> str:
        left = "text-align: left; vertical-align: top; padding: 4px 16px 4px 0"
        cell = f'style="{left}; white-space: pre; font-family: monospace"'
        names = ["", *(["by hand"] if self.hand else []), "needle", "PyTorch", ""]
        head = "".join(f'<th style="{left}">{name}</th>' for name in names)
        rows = ""
        for key, ours, theirs, same in self.rows:
            shown = [*([self.by_hand(key)] if self.hand else []), ours, theirs]
            cells = "".join(f"<td {cell}>{escape(text)}</td>" for text in shown)
            verdict = "the same" if same else "not the same"
            rows += f'<tr><td style="{left}">{escape(key)}</td>{cells}<td style="{left}">{verdict}</td></tr>'
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
) -> Beside:
    """Run the same lines in both libraries, and show what they give.

    Parameters
    ----------
    name : str
        A key of `STATED`. Where PyTorch is not installed, its results stand there.
    in_needle, in_torch : function
        Each returns its results by name: Tensors, numbers or lists of numbers.
    by_hand : dict, optional
        Results without either library.
    """
    note = (
        "PyTorch is not installed here. Its numbers are those that version 2.13 gave."
        if find_spec("torch") is None
        else "Both were computed just now."
    )
    return Beside(in_needle(), theirs(name, in_torch), by_hand or {}, note)


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


THREE = "[2 * u * x, 2 * u * w, 2 * u]"
gradients_by_hand.slip(
    "The 2 of the square is missing: the derivative of u² is 2u.", THREE, "[u * x, u * w, u]"
)
gradients_by_hand.slip(
    "In w x, a nudge of w is multiplied by x, and a nudge of x by w.", THREE, "[2 * u * w, 2 * u * x, 2 * u]"
)
gradients_by_hand.slip(
    "That is the derivative of the square alone, three times. Each of the three moves the inside differently.",
    *(THREE, "[2 * u, 2 * u, 2 * u]"),
)
gradients_by_hand.slip(
    "That is the derivative of the inside alone. The square around it is missing.", THREE, "[x, w, 1.0]"
)
gradients_by_hand.slip(
    "Plain numbers know no `sum` and no `backward()`. Here *you* are the library: write the three "
    "derivatives as formulas, from `w * x + b`.",
    *("w * x + b", "(w * x).sum() + b"),
)
B_INSIDE = (
    "The first two are right. b is inside the square, too: a nudge of b moves the inside by just as much, so "
    "its derivative is 2 (w x + b)."
)
gradients_by_hand.slip(B_INSIDE, ", 2 * u]", ", 0.0]")
gradients_by_hand.slip(B_INSIDE, ", 2 * u]", ", 2 * b]")
gradients_by_hand.slip("These are two. Three are asked for: of w, of x and of b.", ", 2 * u]", "]")
gradients_by_hand.slip(
    "That is the value of L. What is asked for are its three derivatives, in a list.", THREE, "u**2"
)


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


BOTH = "[2 * Y @ W.T, X.T @ (2 * Y)]"
matrix_gradients.slip("The 2 of the square is missing: the gradient of Y is 2 Y.", BOTH, "[Y @ W.T, X.T @ Y]")
matrix_gradients.slip(
    "Your gradient of Y is all ones, as if the loss were the sum of Y. It is the sum of the squares.",
    *("X @ W\n", "np.ones_like(X @ W) / 2\n"),
)
matrix_gradients.slip(
    "The transposes are missing, so the shapes do not fit here. With square matrices you would get numbers, "
    "but wrong ones.",
    *(BOTH, "[2 * Y @ W, X @ (2 * Y)]"),
)
matrix_gradients.slip(
    "You return the two in the other order: first the gradient of X, then that of W.",
    *(BOTH, BOTH + "[::-1]"),
)
matrix_gradients.slip(
    "This multiplies entry by entry. Both gradients are products of matrices: use `@`.",
    *(BOTH, "[2 * Y * W, 2 * X * Y]"),
)
matrix_gradients.slip(
    "The gradient of X is right. For that of W, transpose X and put it in front: `X.T @ (2 * Y)`.",
    *("X.T @ (2 * Y)", "2 * Y @ X.T"),
)
matrix_gradients.slip(
    "Both products stand the wrong way around. X is (n, k), W is (k, m) and Y is (n, m): for the gradient of "
    "X, W is behind; for that of W, X is in front.",
    *(BOTH, "[2 * W.T @ Y, 2 * Y @ X.T]"),
)


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


SEEDS = "np.eye(y.shape[0])"
TABLE = "np.stack([row.numpy() for row in rows])"
jacobian.slip(
    "You sum over all outputs: a seed of ones asks for the gradient of the sum. For row i, the seed is 1 at "
    "place i and 0 elsewhere.",
    *(SEEDS, "np.ones((y.shape[0], y.shape[0]))"),
)
jacobian.slip(
    "This is the sum of all rows: a seed of ones asks for all outputs at once. Take one seed for each "
    "output, with a single 1 in it.",
    *(SEEDS, "np.ones((1, y.shape[0]))"),
)
jacobian.slip(
    "Rows and columns are swapped. Row i belongs to output i, column j to input j.", TABLE, TABLE + ".T"
)
jacobian.slip(
    "This is one row, that of the first output. Do the same for each output, and stack the rows.",
    *(TABLE, TABLE + "[0]"),
)
jacobian.slip(
    "`ndl.gradients` returns a list, here with one gradient in it. Take it out: `[0]`.",
    *(TABLE, TABLE + "[:, None]"),
)
jacobian.slip(
    "A seed has a place for each output, and there is one seed for each: `np.eye(y.shape[0])`. The inputs do "
    "not count here.",
    *(SEEDS, "np.eye(x.shape[0])"),
)


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


seven_equations.slip(
    "The weights are used twice: in the network, and in the penalty. What comes back through the penalty is "
    "missing.",
    (" + lam * W1", ""),
    (" + lam * W2", ""),
)
seven_equations.slip(
    "The derivative of λ/2 · w² is λ w: the 2 cancels.",
    ("lam * W1", "2 * lam * W1"),
    ("lam * W2", "2 * lam * W2"),
)
seven_equations.slip(
    "`dJ_dz` has to pass through tanh: its derivative is 1 − tanh², so 1 − h².", "dh * (1 - h**2)", "dh"
)
seven_equations.slip(
    "The derivative of tanh(z) is 1 − tanh(z)². You have 1 − h, without the square.", "1 - h**2", "1 - h"
)
seven_equations.slip(
    "The derivative of ½ (o − y)² is o − y: the half and the 2 of the square cancel.",
    *("h @ W2 - y", "2 * (h @ W2 - y)"),
)
seven_equations.slip(
    "The sign is turned around: the loss grows with o where o is above y, so o − y.",
    "h @ W2 - y",
    "y - h @ W2",
)
seven_equations.slip(
    "A product passes back what came, times its other factor *transposed*. Look at the shapes: h is "
    "(1, 2) and W2 is (2, 1).",
    *("do @ W2.T", "do @ W2"),
)
seven_equations.slip(
    "W2 is only what this one step does. Multiply by what comes back to it: `dJ_dh` is made of `dJ_do` and "
    "the transposed W2.",
    *("do @ W2.T", "W2.T"),
)
seven_equations.slip(
    "The gradient of W1 has the shape of W1, (3, 2). For (3, 2) out of x, (1, 3), and `dJ_dz`, (1, 2), "
    "transpose x and put it in front.",
    *("x.T @ dz", "dz.T @ x"),
)
seven_equations.slip(
    "The gradient of W2 has the shape of W2, (2, 1). For (2, 1) out of h, (1, 2), and `dJ_do`, (1, 1), "
    "transpose h and put it in front.",
    *("h.T @ do", "do @ h"),
)
seven_equations.slip(
    "λ is an input, `lam`: it need not be 0.1.", ("lam * W1", "0.1 * W1"), ("lam * W2", "0.1 * W2")
)
seven_equations.slip(
    'Return a dictionary, so that each has its name: `{"dJ_dL": 1.0, …}`.',
    *("dict(zip(names, [1.0, 1.0, do, dh, dz, dW1, dW2], strict=True))", "[1.0, 1.0, do, dh, dz, dW1, dW2]"),
)


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


train_in_needle.slip(
    "This climbs: the step goes against the gradient, so subtract it.", "W.data - 0.1", "W.data + 0.1"
)
train_in_needle.slip(
    "Your steps are ten times as long: the learning rate of the PyTorch program is 0.1.", "0.1 * W", "W"
)
train_in_needle.slip(
    "Your gradients add up from step to step. Needle replaces `grad`, so nothing is left of the step before: "
    "use `W1.grad` as it is.",
    ("losses = []", "losses, sums = [], {}"),
    (
        "W.data = W.data - 0.1 * W.grad.data",
        "sums[id(W)] = sums.get(id(W), 0) + W.grad.data\n            W.data = W.data - 0.1 * sums[id(W)]",
    ),
)
train_in_needle.slip("The loss is the *mean* of the squares, and not their sum.", ".mean()", ".sum()")
train_in_needle.slip("Where is tanh? It stands between the two products.", "ndl.tanh(X @ W1)", "(X @ W1)")
train_in_needle.slip(
    "Only one of the two weights moves. The optimiser has both.", "for W in (W1, W2)", "for W in (W2,)"
)
train_in_needle.slip(
    "The losses do not change: no weight moves. Give `W1.data` and `W2.data` new numbers.",
    *("W.data = W", "W = W"),
)
train_in_needle.slip(
    "The numbers are right, but they are Tensors. `loss.item()` makes a plain number.", "loss.item()", "loss"
)
train_in_needle.slip(
    "`np.tanh` does not know Tensors. Use `ndl.tanh`, which remembers what it did.", "ndl.tanh", "np.tanh"
)
train_in_needle.slip(
    "All four arguments are NumPy arrays. Make Tensors of them first: `ndl.Tensor(W1)`.",
    *("losses = []", "ndl.optim.SGD([points, W1.data], lr=0.1)"),
)
train_in_needle.slip(
    "These are the losses *after* each step. Keep the loss that you walked back from: its `item()` is asked "
    "for.",
    *("loss.item()", "((ndl.tanh(X @ W1) @ W2 - target) ** 2).mean().item()"),
)
train_in_needle.slip(
    "This is the first loss only. Is the `return` inside the loop?",
    "    return losses",
    "        return losses",
)
train_in_needle.slip(
    "`grad` is None until something has walked back to it. First the loss, then `loss.backward()`, then the "
    "step.",
    *("loss.backward()", "pass"),
)
train_in_needle.slip(
    "What stands before the dot does not know this word. Arrays have no `backward()`: make Tensors first, "
    "with `ndl.tanh`. And PyTorch's `zero_grad()` is `reset_grad()` here.",
    *("loss.backward()", "ndl.optim.SGD([W1, W2], lr=0.1).zero_grad()"),
)


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
