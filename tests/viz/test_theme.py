"""Pictures are light on a light page and dark on a dark one: drawings, steps and figures, in Chromium."""

from __future__ import annotations

from io import BytesIO

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import needle as ndl
import viz

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGE = '<!doctype html><meta charset="utf-8"><body {attribute}>{pictures}'
PICTURES = ("drawing", "svg", "steps", "frame", "curve", "matrix")


@pytest.fixture(scope="module")
def pictures() -> str:
    """One of each kind, as HTML."""
    v1 = ndl.Tensor([0.0])
    v4 = ndl.exp(v1) * (ndl.exp(v1) + 1)
    steps = viz.steps(v4)
    all_kinds = {
        "drawing": viz.draw(v4).html(),
        "svg": viz.draw_gradient(v4).svg(),
        "steps": steps.html(),
        "frame": steps[1]._repr_html_(),
        "curve": viz.curve([1.0, 2.0, 4.0]).figure._repr_html_(),
        "matrix": viz.matrix(np.eye(3) * 0.1).figure._repr_html_(),
    }
    assert tuple(all_kinds) == PICTURES
    return "".join(f'<div id="{name}">{picture}</div>' for name, picture in all_kinds.items())


@pytest.fixture(scope="module")
def lightness(browser, pictures, tmp_path_factory):
    """A function that gives the lightness of each picture, from 0 to 1: the median of its pixels."""
    from PIL import Image

    def lightness(scheme: str, attribute: str = "", change: str = "") -> dict[str, float]:
        path = tmp_path_factory.mktemp("theme") / "page.html"
        path.write_text(PAGE.format(attribute=attribute, pictures=pictures), encoding="utf-8")
        page = browser.new_page(viewport={"width": 700, "height": 700}, color_scheme=scheme)
        page.goto(path.as_uri())
        page.locator("#steps button").first.wait_for()
        page.locator("#drawing .view").wait_for()
        if change:
            page.evaluate(change)
        found = {}
        for name in PICTURES:
            image = Image.open(BytesIO(page.locator(f"#{name}").screenshot())).convert("L")
            picture = np.asarray(image)[:, : image.width // 3]  # where there is no empty page beside it
            found[name] = float(np.median(picture)) / 255
        page.close()
        return found

    return lightness


def is_light(found: dict[str, float]) -> bool:
    assert all(x > 0.9 for x in found.values()) or all(x < 0.2 for x in found.values()), found
    return found["drawing"] > 0.9


def test_pictures_are_light_or_dark_as_the_reader_likes_pages(lightness) -> None:
    assert is_light(lightness("light"))
    assert not is_light(lightness("dark"))


@pytest.mark.parametrize("attribute", ['data-jp-theme-light="{}"', 'data-theme="{}"', 'theme="{}"'])
def test_the_theme_of_a_notebook_decides(lightness, attribute) -> None:
    light, dark = ("true", "false") if "light" in attribute else ("light", "dark")
    assert is_light(lightness("dark", attribute.format(light)))
    assert not is_light(lightness("light", attribute.format(dark)))


def test_pictures_change_with_the_theme_of_jupyterlab(lightness) -> None:
    change = "document.body.dataset.jpThemeLight = 'false'"
    assert not is_light(lightness("light", 'data-jp-theme-light="true"', change))
