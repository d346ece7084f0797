"""Lecture 10, beside PyTorch: the same lines in two libraries, its exercises and its predictions."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..autograd import Tensor, gradients
from ..ops import stack, tanh
from .comparison import to_numpy
from .exercises import Exercises, case, given
from .predictions import Predictions

exercises, predictions = Exercises(), Predictions()
check, ready, predict = exercises.check, exercises.ready, predictions.predict


# --- Two libraries side by side -----------------------------------------------------------------------------

#: What PyTorch 2.13 gives for the functions of the notebook, by name: shown where it is not installed.
STATED: dict[str, dict[str, Any]] = {
    "mean": {
        "z": [[27.0, 27.0], [27.0, 27.0]],
        "out": 27.0,
        "gradient of x": [[4.5, 4.5], [4.5, 4.5]],
    },
    "square": {"L": 49.0, "gradient of w": 42.0, "gradient of x": 28.0, "gradient of b": 14.0},
    "twice": {"after one backward": 6.0, "after another": 12.0},
    "matrices": {
        "L": 166.0,
        "gradient of X": [[10.0, 24.0], [22.0, 52.0]],
        "gradient of W": [[76.0, 28.0], [108.0, 40.0]],
    },
    "training": {
        "first losses": [0.7604, 0.4948, 0.4367],
        "last loss": 0.2733,
    },
}


class Beside:
    """The results of two functions, side by side, as a notebook shows them."""

    def __init__(self, ours: dict[str, Any], theirs: dict[str, Any], note: str):
        self.ours, self.theirs, self.note = ours, theirs, note

    @property
    def rows(self) -> list[tuple[str, str, str, bool]]:
        """What it is, needle's result and PyTorch's in digits, and whether they are the same digits."""
        both = [(key, digits(self.ours.get(key)), digits(value)) for key, value in self.theirs.items()]
        return [(*row, row[1] == row[2]) for row in both]

    def __repr__(self) -> str:
        width = max(len(key) for key, *_ in self.rows)
        lines = [
            f"{key:{width}}  {ours}  {'=' if same else '≠'}  {theirs}"
            for key, ours, theirs, same in self.rows
        ]
        return "\n".join([*(line.replace("\n", " ") for line in lines), self.note])

    def _repr_html_(self) -> str:
        cell = 'style="text-align: left; white-space: pre; font-family: monospace; padding: 4px 16px 4px 0"'
        rows = "".join(
            f'<tr><td style="text-align: left">{escape(key)}</td><td {cell}>{escape(ours)}</td>'
            f"<td {cell}>{escape(theirs)}</td><td>{'the same' if same else 'not the same'}</td></tr>"
            for key, ours, theirs, same in self.rows
        )
        head = "<tr><th></th><th>needle</th><th>PyTorch</th><th></th></tr>"
        return f"<table>{head}{rows}</table><p>{escape(self.note)}</p>"


def beside(name: str, in_needle: Callable[[], dict], in_torch: Callable[[], dict]) -> Beside:
    """Run the same lines in both libraries, and show what they give.

    Parameters
    ----------
    name : str
        A key of `STATED`. Where PyTorch is not installed, its results stand there.
    in_needle, in_torch : function
        Each returns its results by name: Tensors, numbers or lists of numbers.

    Raises
    ------
    AssertionError
        If PyTorch is installed, and gives something else than what is stated.
    """
    ours = in_needle()
    if find_spec("torch") is None:
        note = "PyTorch is not installed here. Its numbers are those that version 2.13 gave."
        return Beside(ours, STATED[name], note)
    theirs = in_torch()
    for key, stated in STATED[name].items():
        if digits(theirs[key]) != digits(stated):
            raise AssertionError(f"{name}: PyTorch gives {theirs[key]} for {key!r}; {stated} is stated")
    return Beside(ours, theirs, "Both were computed just now.")


def digits(value: Any) -> str:
    """Numbers with four digits after the point at most: so both libraries are compared."""
    if value is None:
        return "nothing"
    plain = value.detach() if hasattr(value, "detach") else value
    array = np.round(to_numpy(plain).astype(float), 4)
    return np.array2string(array, separator=", ", formatter={"float_kind": lambda x: f"{x:g}"})


# --- 1 By hand ----------------------------------------------------------------------------------------------


@exercises.exercise(
    case(2.0, 3.0, 1.0),
    case(-1.0, 0.5, 2.0),
    otherwise=(
        "Go outside in: the derivative of the square is 2 (w·x + b). Then multiply by the derivative of what "
        "is inside."
    ),
)
def gradients_by_hand(w, x, b):
    """The derivatives of (w·x + b)² with respect to w, x and b, by the library."""
    leaves = [Tensor([value], dtype="float64") for value in (w, x, b)]
    loss = (leaves[0] * leaves[1] + leaves[2]) ** 2
    return [gradient.item() for gradient in gradients(loss, leaves)]


@gradients_by_hand.mistake("The 2 of the square is missing: the derivative of u² is 2u.")
def without_the_two(w, x, b):
    u = w * x + b
    return [u * x, u * w, u]


@gradients_by_hand.mistake("In w·x, a nudge of w is multiplied by x, and a nudge of x by w.")
def factors_swapped(w, x, b):
    u = w * x + b
    return [2 * u * w, 2 * u * x, 2 * u]


@gradients_by_hand.mistake(
    "That is the derivative of the square alone, three times. Each of the three moves the inside differently."
)
def outside_only(w, x, b):
    u = w * x + b
    return [2 * u, 2 * u, 2 * u]


@gradients_by_hand.mistake("That is the derivative of the inside alone. The square around it is missing.")
def inside_only(w, x, b):
    return [x, w, 1.0]


# --- 2 Matrices ---------------------------------------------------------------------------------------------


def _matrices() -> dict[str, Any]:
    return {"X": np.array([[1.0, 2.0], [3.0, 4.0]]), "W": np.array([[1.0, 0.0], [2.0, 1.0]])}


def _oblong() -> dict[str, Any]:
    return {"X": np.array([[1.0, -1.0, 2.0]]), "W": np.array([[1.0, 3.0], [0.0, -2.0], [0.5, 1.0]])}


@exercises.exercise(
    given(_matrices, "X", "W"),
    given(_oblong, "X", "W"),
    otherwise="First the gradient of Y = X W, which is 2 Y. Then a product of two matrices, by the shapes.",
)
def matrix_gradients(X, W):
    """The gradients of sum((X W)²) with respect to X and W, by the library."""
    leaves = [Tensor(X, dtype="float64"), Tensor(W, dtype="float64")]
    loss = ((leaves[0] @ leaves[1]) ** 2).sum()
    return [gradient.numpy() for gradient in gradients(loss, leaves)]


@matrix_gradients.mistake("The 2 of the square is missing: the gradient of Y is 2 Y.")
def one_y(X, W):
    Y = X @ W
    return [Y @ W.T, X.T @ Y]


@matrix_gradients.mistake(
    "Your gradient of Y is all ones, as if the loss were the sum of Y. It is the sum of the squares."
)
def ones_come_back(X, W):
    ones = np.ones_like(X @ W)
    return [ones @ W.T, X.T @ ones]


@matrix_gradients.mistake(
    "The transposes are missing. With square matrices that gives numbers, and wrong ones; look at the shapes "
    "for oblong ones."
)
def no_transposes(X, W):
    Y = X @ W
    return [2 * Y @ W, X @ (2 * Y)]


@matrix_gradients.mistake("You return the two in the other order: first the gradient of X, then that of W.")
def other_order(X, W):
    Y = X @ W
    return [2 * X.T @ Y, 2 * Y @ W.T]


@matrix_gradients.mistake("This multiplies entry by entry. Both gradients are products of matrices: use `@`.")
def entry_by_entry(X, W):
    Y = X @ W
    return [2 * Y * W, 2 * X * Y]


# --- 3 The Jacobian -----------------------------------------------------------------------------------------


def three_of_two(x):
    """The function of the lecture: two numbers in, three out."""
    return stack([x[0] * x[1], x[0] + x[1], x[1] ** 2], 0)


def two_of_two(x):
    """Another one, whose Jacobian is not symmetric."""
    return stack([3 * x[0], x[0] * x[0] * x[1]], 0)


def _first() -> dict[str, Any]:
    return {"f": three_of_two, "x": Tensor([2.0, 3.0])}


def _second() -> dict[str, Any]:
    return {"g": two_of_two, "x": Tensor([1.0, -1.0])}


@exercises.exercise(
    given(_first, "f", "x"),
    given(_second, "g", "x"),
    otherwise="Row i holds the derivatives of output i. Print one row, and nudge each input to check it.",
)
def jacobian(f, x):
    """The Jacobian of f at x, column by column, by central differences."""
    e = 1e-3
    nudges = e * np.eye(len(x.numpy()))
    start = x.numpy().astype("float64")
    values = [
        [f(Tensor(start + way * nudge, dtype="float64")).numpy() for way in (1, -1)] for nudge in nudges
    ]
    return np.stack([(up - down) / (2 * e) for up, down in values], axis=1)


@jacobian.mistake(
    "You sum over all outputs: a seed of ones asks for the gradient of the sum. For row i, the seed is 1 at "
    "place i and 0 elsewhere."
)
def summed(f, x):
    y = f(x)
    (row,) = gradients(y, [x], Tensor(np.ones(y.shape)))
    return np.stack([row.numpy() for _ in range(len(y.numpy()))])


@jacobian.mistake("Rows and columns are swapped. Row i belongs to output i, column j to input j.")
def transposed(f, x):
    return jacobian.right(f, x).T


@jacobian.mistake(
    "This is one row, that of the first output. Do the same for each output, and stack the rows."
)
def one_row(f, x):
    return jacobian.right(f, x)[0]


@jacobian.mistake("The rows come in reverse: the first row belongs to the first output.")
def upside_down(f, x):
    return jacobian.right(f, x)[::-1]


# --- 4 Seven equations --------------------------------------------------------------------------------------


def _network() -> dict[str, Any]:
    rng = np.random.default_rng(7)
    return {
        "x": rng.normal(size=(1, 3)),
        "y": np.array([[1.0]]),
        "W1": rng.normal(size=(3, 4)),
        "W2": rng.normal(size=(4, 1)),
        "lam": 0.1,
    }


@exercises.exercise(
    given(_network, "x", "y", "W1", "W2", "lam"),
    otherwise=(
        "Compare with the equations one by one, from the first to the last: the first that differs counts."
    ),
)
def seven_equations(x, y, W1, W2, lam):
    """The gradients of J = L + s, by the library."""
    leaves = [Tensor(array, dtype="float64") for array in (W1, W2)]
    z = Tensor(x, dtype="float64") @ leaves[0]
    h = tanh(z)
    o = h @ leaves[1]
    error = o - Tensor(y, dtype="float64")
    penalty = lam / 2 * sum((leaf**2).sum() for leaf in leaves)
    J = (error**2).sum() / 2 + penalty
    inner = gradients(J, [o, h, z])
    names = ("dJ_do", "dJ_dh", "dJ_dz", "dJ_dW1", "dJ_dW2")
    found = dict(zip(names, [*inner, *gradients(J, leaves)], strict=True))
    return {"dJ_dL": 1.0, "dJ_ds": 1.0} | {name: gradient.numpy() for name, gradient in found.items()}


def _by_hand(x, y, W1, W2, lam, **changed):
    h = np.tanh(x @ W1)
    do = h @ W2 - y
    dh = do @ W2.T
    dz = changed.get("dz", lambda dh, h: dh * (1 - h**2))(dh, h)
    penalty = changed.get("penalty", lambda W: lam * W)
    return {
        "dJ_dL": 1.0, "dJ_ds": 1.0, "dJ_do": do, "dJ_dh": dh, "dJ_dz": dz,
        "dJ_dW1": x.T @ dz + penalty(W1), "dJ_dW2": h.T @ do + penalty(W2),
    }  # fmt: skip


@seven_equations.mistake(
    "The weights are used twice: in the network, and in the penalty. What comes back through the penalty is "
    "missing."
)
def without_the_penalty(x, y, W1, W2, lam):
    return _by_hand(x, y, W1, W2, lam, penalty=lambda W: 0 * W)


@seven_equations.mistake("The derivative of λ/2 · w² is λ w: the 2 cancels.")
def penalty_doubled(x, y, W1, W2, lam):
    return _by_hand(x, y, W1, W2, lam, penalty=lambda W: 2 * lam * W)


@seven_equations.mistake("`dJ_dz` has to pass through tanh: its derivative is 1 − tanh², so 1 − h².")
def tanh_passed_over(x, y, W1, W2, lam):
    return _by_hand(x, y, W1, W2, lam, dz=lambda dh, h: dh)


@seven_equations.mistake("The derivative of tanh(z) is 1 − tanh(z)². You have 1 − h, without the square.")
def square_forgotten(x, y, W1, W2, lam):
    return _by_hand(x, y, W1, W2, lam, dz=lambda dh, h: dh * (1 - h))


# --- Predictions --------------------------------------------------------------------------------------------

predictions.ask(
    "the mean",
    "z is 27 everywhere, and `out` is the mean of its four numbers. How far does `out` move per unit of "
    "`x[0, 0]`?",
    right="4.5",
    why="z = 3 (x + 2)², so z moves by 6 (x + 2) = 18. The mean takes a quarter of it.",
    replies={
        "18": "So far moves one entry of z. But `out` is the mean of four.",
        "27": "That is the value, not how far it moves.",
        "9": "(x + 2)² is 9. Its derivative is 2 (x + 2) = 6; then the 3, then the quarter.",
        "1.5": "You have the 6 and the quarter. The factor 3 is missing.",
    },
    otherwise="z = 3 (x + 2)². Differentiate, put in x = 1, and divide by 4.",
)
predictions.choose(
    "twice",
    "y = (a + 2)² at a = 1, so the derivative is 6. You call `backward()` twice, each time on a new "
    "graph. What "
    "does `a.grad` hold in the end?",
    {
        "6 in both libraries": "In needle, yes. PyTorch adds the second to the first.",
        "12 in both libraries": "In PyTorch, yes. Needle replaces the first by the second.",
        "6 in needle, 12 in PyTorch": "Right. This is the habit that costs beginners most time.",
        "12 in needle, 6 in PyTorch": "The other way round: PyTorch is the one that adds.",
    },
    right="6 in needle, 12 in PyTorch",
)
predictions.ask(
    "passes",
    "A function has 1,000 inputs and 3 outputs. How many backward passes give you its whole Jacobian?",
    right="3",
    why="One pass for each row, whatever the number of inputs.",
    replies={
        "1": "One pass gives one row: the derivatives of one output, or of one weighted sum of them.",
        "1000": "That is forward mode, or nudging: one for each input. A backward pass gives a row.",
        "3000": "That is the number of entries. A pass gives a whole row of them.",
    },
    otherwise="A pass begins at one output and reaches all inputs.",
)
predictions.choose(
    "what is missing",
    "A colleague's PyTorch loop: `loss = f(X, y); loss.backward(); optimizer.step()`, and again. The loss "
    "falls "
    "at first, then jumps about. What is missing?",
    {
        "a smaller learning rate": "It might help a little. But look at what `backward()` does to `grad`.",
        "`optimizer.zero_grad()`": "Right: without it, each step follows the sum of all gradients so far.",
        "`torch.no_grad()` around the loss": "Then there would be no graph, and `backward()` an error.",
        "`loss.detach()`": "Then there would be nothing to go back through.",
    },
    right="`optimizer.zero_grad()`",
)
