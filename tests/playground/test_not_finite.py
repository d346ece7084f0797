"""What the Explorer says where a value or a gradient is not finite, and where that began."""

from __future__ import annotations

import pytest

from playground.language.expression import run as run_text
from playground.language.not_finite import explain

from .apps import plain, start

TOO_LARGE = "which is inf (too large: 32-bit numbers end at 3.4·10³⁸)."

SAID = {
    "x = 0\ny = log(x)": "y holds −inf: it begins with y = log of 0, which is −inf (infinity).",
    "x = 0\ny = x / x": "y holds nan: it begins with y = 0 ÷ 0, which is nan (not a number).",
    "x = 1\ny = x / 0": "y holds inf: it begins with y = 1 ÷ 0, which is inf (infinity).",
    "x = -1\ny = sqrt(x)": "y holds nan: it begins with y = √ of −1, which is nan (not a number).",
    "x = 1e30\ny = x * x": f"y holds inf: it begins with y = 10³⁰ × 10³⁰, {TOO_LARGE}",
    "x = 100\ny = exp(x)\nz = 2 * y": f"z holds inf: it begins with y = exp of 100, {TOO_LARGE}",
    "X = [[1e30]]\nY = X @ X": f"Y holds inf: it begins with Y = X @ X, {TOO_LARGE}",
    "x = [0, 1]\ny = sum(x * log(x))": "y holds nan: it begins with log of 0, which is −inf (infinity).",
    "x = 0\ny = sqrt(x)": (
        "The gradient of x holds inf: in the backward pass it begins with 1 ÷ 0, which is inf (infinity)."
    ),
    "x = constant([0])\n1 / x": "result holds inf, which is infinity.",
    "x = 2\ny = x * x": "",
    "x = [0, 2]\ny = log(x + 1) / (x + 1)": "",
}


@pytest.mark.parametrize("text", SAID)
def test_where_it_begins(text):
    result = run_text(text)
    if result.value.requires_grad:
        result.backward()
    assert explain(result) == SAID[text]


def test_the_explorer_says_it():
    app = start("explorer", text="x = 0\ny = log(x)")
    (warning,) = app.warning
    assert plain(warning.value) == SAID["x = 0\ny = log(x)"]
    assert not start("explorer").warning
