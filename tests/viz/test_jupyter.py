"""Drawings and the stepper as a reader sees them: in a notebook, in JupyterLab, in a real browser."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser

EXAMPLE = """\
import needle as ndl
import viz

v1 = ndl.Tensor([0.0])
v2 = ndl.exp(v1)
v3 = v2 + 1
v4 = v2 * v3
"""


def test_a_drawing_shows_itself(notebook):
    page = notebook(EXAMPLE, "viz.draw_gradient(v4)")
    page.get_by_text("adjoint of v1").first.wait_for()
