"""The page about functions: its numbers against central differences, and what it says of other texts."""

from __future__ import annotations

import numpy as np
import pytest

from playground.pages import maths

from .apps import address_of, run, shown, start, takes_any_text

STEP = 1e-6


def in_numpy(function, **arguments):
    """A function of the page, computed by NumPy in double precision."""
    known = {"sin": np.sin, "cos": np.cos, "exp": np.exp, "log": np.log, "pi": np.pi}
    known["relu"] = lambda x: np.maximum(x, 0)
    with np.errstate(all="ignore"):
        return eval(function, known, arguments)


@pytest.mark.parametrize("function", maths.EXAMPLES["curve"].values())
def test_a_curve_and_its_slopes(function):
    computed = maths.compute(function, "curve", 3)
    x = computed.places
    values, (slopes,) = computed.values, computed.slopes
    expected = in_numpy(function, x=x)
    differences = (in_numpy(function, x=x + STEP) - in_numpy(function, x=x - STEP)) / (2 * STEP)
    smooth = np.isfinite(expected) & (np.abs(x) > 0.01)  # not at the corner of ReLU, nor at the pole of 1 / x
    assert smooth.sum() > 100
    np.testing.assert_allclose(values[smooth], expected[smooth], rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(slopes[smooth], differences[smooth], rtol=1e-3, atol=1e-4)
    assert not np.isfinite(slopes[np.isnan(expected)]).any()


@pytest.mark.parametrize("function", maths.EXAMPLES["surface"].values())
def test_a_map_and_its_gradients(function):
    computed = maths.compute(function, "surface", 3)
    x, y = np.meshgrid(computed.places, computed.places)
    np.testing.assert_allclose(computed.values, in_numpy(function, x=x, y=y), rtol=1e-3, atol=1e-4)
    for slopes, dx, dy in zip(computed.slopes, (STEP, 0), (0, STEP), strict=True):
        above, below = (in_numpy(function, x=x + s * dx, y=y + s * dy) for s in (1, -1))
        np.testing.assert_allclose(slopes, (above - below) / (2 * STEP), rtol=2e-3, atol=2e-3)


def test_a_constant_and_a_step_have_slope_0():
    for function in ("3", "x < 0", "x * 0"):
        computed = maths.compute(function, "curve", 3)
        assert not computed.slopes[0].any()


@pytest.mark.parametrize(
    "function", ["sum(x)", "softmax(x)", "mean(x) + x", "x[0]", "reshape(x, 241, 1)", "x @ x"]
)
def test_a_function_that_mixes_places_is_refused(function):
    assert isinstance(maths.compute(function, "curve", 3), str)


def test_x_stays_what_it_is():
    assert maths.compute("x = 2; x * x", "curve", 3) == "X has its value already; choose another name."


def test_no_text_breaks_the_page():
    app = start("maths")
    takes_any_text(app, "maths_curve")
    app.text_input(key="maths_curve").set_value("x * x")
    assert shown(run(app))["values"][120] == 0
    assert address_of(app) == {"f": "x * x"}


def test_where_there_is_no_value_it_says_so():
    app = start("maths", f="log(x)")
    assert shown(app)["values"][0] is None
    assert any("no curve" in caption.value for caption in app.caption)
    assert any("no value anywhere" in info.value for info in start("maths", f="log(-1 - x * x)").info)


def test_an_example_is_taken():
    app = start("maths")
    app.segmented_control(key="maths_mode").select("surface")
    run(app)
    app.pills(key="maths_surface_example").select("Saddle")
    assert shown(run(app))["expression"] == "x ** 2 - y ** 2"
    assert address_of(app) == {"mode": "surface", "g": "x ** 2 - y ** 2"}


def test_a_pole_does_not_flatten_the_rest():
    low, high = maths._range(maths.compute("1 / x", "curve", 3).values)
    assert -20 < low < high < 20
