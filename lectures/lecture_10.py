"""Lecture 10, beside PyTorch: the same lines in two libraries, its exercises, predictions and count."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from importlib.util import find_spec
from typing import Any

import numpy as np

import viz
from needle.autograd import Tensor, gradients
from needle.ops import stack, tanh
from needle.optim import SGD

from .checking import Lecture, case, given, to_numpy

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


# --- 1 By hand ----------------------------------------------------------------------------------------------


@lecture.exercise(
    case(4.0, 0.5, 1.0),
    case(-1.0, 0.5, 2.0),
    otherwise=(
        "Go outside in: the derivative of the square is 2 (w x + b). Then multiply by the derivative of what "
        "is inside."
    ),
)
def gradients_by_hand(w, x, b):
    """The derivatives of (w x + b)² with respect to w, x and b, by the library."""
    leaves = [Tensor([value], dtype="float64") for value in (w, x, b)]
    loss = (leaves[0] * leaves[1] + leaves[2]) ** 2
    return [gradient.item() for gradient in gradients(loss, leaves)]


@gradients_by_hand.mistake("The 2 of the square is missing: the derivative of u² is 2u.")
def without_the_two(w, x, b):
    u = w * x + b
    return [u * x, u * w, u]


@gradients_by_hand.mistake("In w x, a nudge of w is multiplied by x, and a nudge of x by w.")
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


@gradients_by_hand.mistake(
    "`w`, `x` and `b` are plain numbers here, so `@` has nothing to multiply: write `w * x`."
)
def as_matrices(w, x, b):
    return 2 * (w @ x + b)


@gradients_by_hand.mistake(
    "Plain numbers know no `sum` and no `backward()`. Here *you* are the library: write the three "
    "derivatives as formulas, from `w * x + b`."
)
def as_arrays(w, x, b):
    return 2 * ((w * x).sum() + b)


B_INSIDE = (
    "The first two are right. b is inside the square, too: a nudge of b moves the inside by just as much, so "
    "its derivative is 2 (w x + b)."
)


@gradients_by_hand.mistake(B_INSIDE)
def b_left_out(w, x, b):
    u = w * x + b
    return [2 * u * x, 2 * u * w, 0.0]


@gradients_by_hand.mistake(B_INSIDE)
def b_like_a_factor(w, x, b):
    u = w * x + b
    return [2 * u * x, 2 * u * w, 2 * u * b]


@gradients_by_hand.mistake(B_INSIDE)
def b_alone(w, x, b):
    u = w * x + b
    return [2 * u * x, 2 * u * w, 2 * b]


@gradients_by_hand.mistake(B_INSIDE)
def b_as_one(w, x, b):
    u = w * x + b
    return [2 * u * x, 2 * u * w, 1.0]


@gradients_by_hand.mistake("These are two. Three are asked for: of w, of x and of b.")
def two_of_three(w, x, b):
    u = w * x + b
    return [2 * u * x, 2 * u * w]


@gradients_by_hand.mistake("That is the value of L. What is asked for are its three derivatives, in a list.")
def the_value(w, x, b):
    return (w * x + b) ** 2


# --- 2 Matrices ---------------------------------------------------------------------------------------------


def _matrices() -> dict[str, Any]:
    return {"X": np.array([[1.0, 2.0], [3.0, 4.0]]), "W": np.array([[1.0, 0.0], [2.0, 1.0]])}


def _oblong() -> dict[str, Any]:
    return {"X": np.array([[1.0, -1.0, 2.0]]), "W": np.array([[1.0, 3.0], [0.0, -2.0], [0.5, 1.0]])}


@lecture.exercise(
    given(_oblong, "X", "W"),
    given(_matrices, "X", "W"),
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
    "The transposes are missing, so the shapes do not fit here. With square matrices you would get numbers, "
    "but wrong ones."
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


@matrix_gradients.mistake(
    "The gradient of X is right. For that of W, transpose X and put it in front: `X.T @ (2 * Y)`."
)
def behind_both(X, W):
    Y = X @ W
    return [2 * Y @ W.T, 2 * Y @ X.T]


@matrix_gradients.mistake(
    "Both products stand the wrong way around. X is (n, k), W is (k, m) and Y is (n, m): for the gradient of "
    "X, W is behind; for that of W, X is in front."
)
def turned_around(X, W):
    Y = X @ W
    return [2 * W.T @ Y, 2 * Y @ X.T]


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


def _as_array(answer: Any, *inputs: Any) -> Any:
    """What an answer gives; of a list of rows, the table."""
    found = answer(*inputs)
    if isinstance(found, list) and found and not any(row is ... for row in found):
        return np.stack([to_numpy(row) for row in found])
    return found.numpy() if isinstance(found, Tensor) else found


@lecture.exercise(
    given(_first, "f", "x"),
    given(_second, "g", "x"),
    otherwise="Row i holds the derivatives of output i. Print one row, and nudge each input to check it.",
    use=_as_array,
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


ALL_AT_ONCE = (
    "This is the sum of all rows: a seed of ones asks for all outputs at once. Take one seed for each "
    "output, with a single 1 in it."
)


@jacobian.mistake(ALL_AT_ONCE)
def one_pass(f, x):
    y = f(x)
    return gradients(y, [x], Tensor(np.ones(y.shape)))[0].numpy()


@jacobian.mistake(ALL_AT_ONCE)
def one_pass_in_a_list(f, x):
    return one_pass(f, x)[None]


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


@jacobian.mistake("`ndl.gradients` returns a list, here with one gradient in it. Take it out: `[0]`.")
def rows_in_lists(f, x):
    return jacobian.right(f, x)[:, None]


@jacobian.mistake(
    "A seed has a place for each output, and there is one seed for each: `np.eye(y.shape[0])`. The inputs do "
    "not count here."
)
def seeds_of_the_inputs(f, x):
    return gradients(f(x), [x], Tensor(np.eye(x.shape[0] + 3)[0]))


# --- 4 Seven equations --------------------------------------------------------------------------------------


def _network() -> dict[str, Any]:
    rng = np.random.default_rng(7)
    return {
        "x": rng.normal(size=(1, 3)),
        "y": np.array([[1.0]]),
        "W1": rng.normal(size=(3, 2)),
        "W2": rng.normal(size=(2, 1)),
        "lam": 0.1,
    }


@lecture.exercise(
    given(_network, "x", "y", "W1", "W2", "lam"),
    otherwise=(
        "Go through the seven in their order: the first that is missing or differs counts, and those after "
        "it may be wrong because of it."
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
    do = changed.get("do", lambda o, y: o - y)(h @ W2, y)
    dh = changed.get("dh", lambda do: do @ W2.T)(do)
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


@seven_equations.mistake("The derivative of ½ (o − y)² is o − y: the half and the 2 of the square cancel.")
def error_doubled(x, y, W1, W2, lam):
    return _by_hand(x, y, W1, W2, lam, do=lambda o, y: 2 * (o - y))


@seven_equations.mistake("The sign is turned around: the loss grows with o where o is above y, so o − y.")
def error_turned(x, y, W1, W2, lam):
    return _by_hand(x, y, W1, W2, lam, do=lambda o, y: y - o)


@seven_equations.mistake(
    "A product passes back what came, times its other factor *transposed*. Look at the shapes: h is "
    "(1, 2) and W2 is (2, 1)."
)
def not_transposed(x, y, W1, W2, lam):
    return (x @ W1).T @ np.ones((2, 2)) @ W2.T


@seven_equations.mistake("h is tanh z already. So the derivative of tanh is 1 − h², without another tanh.")
def tanh_again(x, y, W1, W2, lam):
    return _by_hand(x, y, W1, W2, lam, dz=lambda dh, h: dh * (1 - np.tanh(h) ** 2))


@seven_equations.mistake("That is L itself. Its derivative with respect to o is o − y.")
def the_loss_itself(x, y, W1, W2, lam):
    return _by_hand(x, y, W1, W2, lam, do=lambda o, y: (o - y) ** 2 / 2)


@seven_equations.mistake("You add the penalty itself. Its derivative is wanted, and that of λ/2 · w² is λ w.")
def the_penalty_itself(x, y, W1, W2, lam):
    return _by_hand(x, y, W1, W2, lam, penalty=lambda W: lam / 2 * W**2)


@seven_equations.mistake(
    "W2 is only what this one step does. Multiply by what comes back to it: `dJ_dh` is made of `dJ_do` and "
    "the transposed W2."
)
def the_step_alone(x, y, W1, W2, lam):
    return _by_hand(x, y, W1, W2, lam, dh=lambda do: W2.T)


@seven_equations.mistake(
    "The gradient of W1 has the shape of W1, (3, 2). For (3, 2) out of x, (1, 3), and `dJ_dz`, (1, 2), "
    "transpose x and put it in front."
)
def first_weights_turned(x, y, W1, W2, lam):
    return _by_hand(x, y, W1, W2, lam)["dJ_dz"].T @ x + lam * W1


@seven_equations.mistake(
    "The gradient of W2 has the shape of W2, (2, 1). For (2, 1) out of h, (1, 2), and `dJ_do`, (1, 1), "
    "transpose h and put it in front."
)
def second_weights_turned(x, y, W1, W2, lam):
    found = _by_hand(x, y, W1, W2, lam)
    return found | {"dJ_dW2": found["dJ_do"] @ np.tanh(x @ W1) + lam * W2}


@seven_equations.mistake('Return a dictionary, so that each has its name: `{"dJ_dL": 1.0, …}`.')
def as_a_list(x, y, W1, W2, lam):
    return list(_by_hand(x, y, W1, W2, lam).values())


# --- 5 The loop ---------------------------------------------------------------------------------------------


def _points(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    points = rng.normal(size=(n, 2)).round(1).astype("float32")
    return {
        "points": points,
        "target": (points[:, :1] * points[:, 1:] > 0).astype("float32"),
        "W1": rng.normal(size=(2, 3)).round(1).astype("float32"),
        "W2": rng.normal(size=(3, 1)).round(1).astype("float32"),
    }


@lecture.exercise(
    given(lambda: _points(6), "points", "target", "W1", "W2"),
    given(lambda: _points(9), "points", "target", "W1", "W2"),
    otherwise=(
        "Compare the first loss that differs: the first of all is that of the given weights, and the second "
        "comes after one step of 0.1."
    ),
)
def train_in_needle(points, target, W1, W2):
    """Twenty steps downhill, and the loss before each."""
    X, wanted = Tensor(points, requires_grad=False), Tensor(target, requires_grad=False)
    leaves, losses = [Tensor(W1), Tensor(W2)], []
    for _ in range(20):
        loss = ((tanh(X @ leaves[0]) @ leaves[1] - wanted) ** 2).mean()
        losses.append(loss.item())
        found = gradients(loss, leaves)
        leaves = [Tensor(leaf.numpy() - 0.1 * step.numpy()) for leaf, step in zip(leaves, found, strict=True)]
    return losses


def _steps(points, target, W1, W2, rate=0.1, share=None, bend=np.tanh, adds_up=False, trained=(1, 1), n=20):
    """The loop with NumPy, its gradients by hand."""
    w1, w2, losses = W1.astype(float), W2.astype(float), []
    sums = [0.0, 0.0]
    for _ in range(n):
        h = bend(points @ w1)
        error = h @ w2 - target
        count = share or len(points)
        losses.append(float((error**2).sum() / count))
        back = 2 * error / count
        slope = 1 - h**2 if bend is np.tanh else 1.0
        found = [points.T @ (back @ w2.T * slope), h.T @ back]
        sums = [total * adds_up + new for total, new in zip(sums, found, strict=True)]
        w1, w2 = w1 - rate * trained[0] * sums[0], w2 - rate * trained[1] * sums[1]
    return losses


@train_in_needle.mistake("This climbs: the step goes against the gradient, so subtract it.")
def climbs(points, target, W1, W2):
    return _steps(points, target, W1, W2, rate=-0.1)


@train_in_needle.mistake("Your steps are ten times as long: the learning rate of the PyTorch program is 0.1.")
def without_rate(points, target, W1, W2):
    return _steps(points, target, W1, W2, rate=1.0)


@train_in_needle.mistake(
    "Your gradients add up from step to step. Needle replaces `grad`, so nothing is left of the step before: "
    "use `W1.grad` as it is."
)
def adds_up(points, target, W1, W2):
    return _steps(points, target, W1, W2, adds_up=True)


@train_in_needle.mistake("The loss is the *mean* of the squares, and not their sum.")
def sum_of_squares(points, target, W1, W2):
    return _steps(points, target, W1, W2, share=1)


@train_in_needle.mistake("Where is tanh? It stands between the two products.")
def without_tanh(points, target, W1, W2):
    return _steps(points, target, W1, W2, bend=lambda z: z)


@train_in_needle.mistake("Only one of the two weights moves. The optimiser has both.")
def one_weight(points, target, W1, W2):
    return _steps(points, target, W1, W2, trained=(0, 1))


@train_in_needle.mistake(
    "The losses do not change: no weight moves. Give `W1.data` and `W2.data` new numbers."
)
def nothing_moves(points, target, W1, W2):
    return _steps(points, target, W1, W2, rate=0.0)


@train_in_needle.mistake("The numbers are right, but they are Tensors. `loss.item()` makes a plain number.")
def tensors(points, target, W1, W2):
    return [Tensor(loss) for loss in train_in_needle.right(points, target, W1, W2)]


@train_in_needle.mistake("That is one loss. Return all twenty, in a list.")
def last_loss(points, target, W1, W2):
    return train_in_needle.right(points, target, W1, W2)[-1]


@train_in_needle.mistake("`np.tanh` does not know Tensors. Use `ndl.tanh`, which remembers what it did.")
def tanh_of_numpy(points, target, W1, W2):
    return np.tanh(Tensor(points))


@train_in_needle.mistake("All four arguments are NumPy arrays. Make Tensors of them first: `ndl.Tensor(W1)`.")
def arrays_to_the_optimiser(points, target, W1, W2):
    return SGD([W1, W2], lr=0.1)


@train_in_needle.mistake("All four arguments are NumPy arrays. Make Tensors of them first: `ndl.Tensor(X)`.")
def arrays_into_the_network(points, target, W1, W2):
    return tanh(points @ W1)


@train_in_needle.mistake(
    "These are the losses *after* each step. Keep the loss that you walked back from: its `item()` is asked "
    "for."
)
def after_the_step(points, target, W1, W2):
    return _steps(points, target, W1, W2, n=21)[1:]


@train_in_needle.mistake("This is the first loss only. Is the `return` inside the loop?")
def stops_at_once(points, target, W1, W2):
    return train_in_needle.right(points, target, W1, W2)[:1]


@train_in_needle.mistake(
    "`grad` is None until something has walked back to it. First the loss, then `loss.backward()`, then the "
    "step."
)
def steps_too_early(points, target, W1, W2):
    return Tensor(W1).grad.data


@train_in_needle.mistake(
    "What stands before the dot does not know this word. Arrays have no `backward()`: make Tensors first, "
    "with `ndl.tanh`. And PyTorch's `zero_grad()` is `reset_grad()` here."
)
def a_word_of_the_other_library(points, target, W1, W2):
    optimizer: Any = SGD([Tensor(W1)], lr=0.1)
    return optimizer.zero_grad()


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
