"""The inputs of the network: expressions of x1 and x2 in the Explorer's language."""

from __future__ import annotations

import ast
from difflib import get_close_matches
from functools import lru_cache

import numpy as np

from needle.data import toy

from ..language.expression import LIKE, run
from ..language.reading import ExpressionError, read
from ..language.values import LARGEST_TENSOR, constant

__all__ = [
    "FEATURES",
    "FUNCTIONS",
    "MOST_CHARACTERS",
    "RESOLUTION",
    "FeatureError",
    "checked",
    "evaluate",
    "functions_in",
    "on_grid",
]

#: The inputs that the page offers, and what it calls them.
FEATURES = {
    "x1": "x₁",
    "x2": "x₂",
    "x1**2": "x₁²",
    "x2**2": "x₂²",
    "x1*x2": "x₁x₂",
    "sin(x1)": "sin x₁",
    "sin(x2)": "sin x₂",
}
#: Functions of one point at a time: in `needle.ops` they have the same names.
FUNCTIONS = (
    "abs", "cos", "exp", "log", "maximum", "minimum", "relu", "sigmoid", "sign", "sin", "sqrt", "tanh",
    "where",
)  # fmt: skip
MOST_CHARACTERS = 60
#: The plane is drawn at so many places in each direction, from edge to edge.
RESOLUTION = 73


class FeatureError(ValueError):
    """An expression that can't be an input."""


def functions_in(text: str) -> set[str]:
    """The names of the functions that an expression calls.

    Raises
    ------
    FeatureError
        If it is no single expression of x1 and x2 with `FUNCTIONS`.
    """
    if len(text) > MOST_CHARACTERS:
        raise FeatureError(
            f"an expression has at most {MOST_CHARACTERS} characters, this one has {len(text)}."
        )
    try:
        body = read(text).body
    except ExpressionError as error:
        raise FeatureError(f"in “{text}”, {error.reason}.") from None
    if len(body) != 1 or not isinstance(body[0], ast.Expr) or "#" in text:
        raise FeatureError(f"“{text}” must be a single expression, such as x1**2 + x2**2.")
    nodes = list(ast.walk(body[0]))
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    called = {call.id for call in calls if isinstance(call, ast.Name)}
    for name in sorted(called - {*FUNCTIONS}):
        near = get_close_matches(name, FUNCTIONS, n=1, cutoff=LIKE)
        if near:
            raise FeatureError(f"in “{text}”, there is no function {name}; did you mean {near[0]}?")
    parts = (ast.Attribute, ast.Subscript, ast.List, ast.Tuple, ast.keyword, ast.MatMult)
    if called - {*FUNCTIONS} or any(isinstance(x, parts) for x in nodes):
        raise FeatureError(f"in “{text}”, use x1, x2, numbers, + - * / ** and {', '.join(FUNCTIONS)}.")
    names = {node.id for node in nodes if isinstance(node, ast.Name)} - called
    if names - {"x1", "x2", "pi"}:
        unknown = min(names - {"x1", "x2", "pi"})
        raise FeatureError(f"in “{text}”, {unknown} has no value; use x1 and x2.")
    if not names & {"x1", "x2"}:
        raise FeatureError(f"“{text}” is the same everywhere; use x1 or x2 in it.")
    return called


def checked(text: str) -> str:
    """The expression with ** for ^, if it has a number wherever the plane is drawn.

    Raises
    ------
    FeatureError
        If it can't be read, or has no number at one of these places.
    """
    text = text.replace("^", "**")
    if text not in FEATURES:
        functions_in(text)
        _of_grid(text, RESOLUTION)
    return text


def evaluate(text: str, points: np.ndarray) -> np.ndarray:
    """An input at some points.

    Parameters
    ----------
    text : str
        An expression of x1 and x2.
    points : numpy.ndarray
        Shape (n, 2).

    Returns
    -------
    numpy.ndarray
        Shape (n,), float32.

    Raises
    ------
    FeatureError
        If the text can't be read, or has no finite value at a point.
    """
    parts = [_evaluate(text, points[i : i + LARGEST_TENSOR]) for i in range(0, len(points), LARGEST_TENSOR)]
    return np.concatenate(parts) if parts else np.empty(0, "float32")


def _evaluate(text: str, points: np.ndarray) -> np.ndarray:
    names = {"x1": constant(points[:, 0]), "x2": constant(points[:, 1])}
    try:
        with np.errstate(all="ignore"):
            value = run(text, given=names).value.numpy()
    except ExpressionError as error:
        raise FeatureError(f"in “{text}”, {error.reason}.") from None
    value = value.astype("float32")
    if not np.isfinite(value).all():
        x1, x2 = points[np.argmin(np.isfinite(value))]
        raise FeatureError(
            f"“{text}” has no finite value at x1 = {x1:.3g}, x2 = {x2:.3g}; it needs one everywhere."
        )
    return value


@lru_cache(maxsize=256)
def _of_grid(text: str, resolution: int) -> np.ndarray:
    low, high = toy.DOMAIN
    along = np.linspace(low, high, resolution)
    x1, x2 = np.meshgrid(along, along[::-1])
    return evaluate(text, np.stack([x1.ravel(), x2.ravel()], axis=1))


def on_grid(texts: tuple[str, ...], resolution: int) -> np.ndarray:
    """Inputs over the plane, from edge to edge, row by row from the upper left corner.

    Returns
    -------
    numpy.ndarray
        Shape (resolution², inputs).
    """
    return np.stack([_of_grid(text, resolution) for text in texts], axis=1)
