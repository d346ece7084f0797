"""Figures that are light or dark as the page is.

A figure is drawn once, light. Each colour has a twin of the other lightness and about the same hue, and the
picture on a page holds both.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO, StringIO
from typing import Any, cast

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, ListedColormap, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from ..picture import Picture
from ..style import FOLLOW, OF_THE_PAGE, STYLES, Style, style_called

__all__ = ["PictureFigure", "dark_twin", "settings"]

GROUND, INK = (np.array(to_rgb(x)) for x in (STYLES["dark"].background, STYLES["dark"].text))
SMALLEST = 0.7  # of its size: where there is less room you scroll, so that words can be read

_ELEMENT, _TAG = re.compile("(?=<)"), re.compile(r"^<(\w+)")
_WIDTH = re.compile(r'width="([\d.]+)pt"')
_FONT = re.compile("font-family: [^;]+")
_COLOUR = re.compile(r"(fill|stroke): ?(#[0-9a-f]{6})")
_KNOWN = {colour.lower(): twin for colour, twin in OF_THE_PAGE.twins.items()}
_SWITCH = (
    ".on-dark{display:none}@media(prefers-color-scheme:dark){.on-light{display:none}.on-dark{display:inline}}"
)
# In a page of its own, a figure may say how all is drawn. In yours, it says so of itself only.
_OF_ALL = re.compile(r'<style type="text/css">\*\{(.*?)\}</style>')


class PictureFigure(Figure, Picture):
    """A figure that is light on a light page and dark on a dark one. As a file it is light."""

    @property
    def title(self) -> str:  # type: ignore[override]
        """The titles in it."""
        return "; ".join(x for x in (_title(ax) or _label(ax) for ax in self.axes) if x)

    @property
    def words(self) -> str:
        """What it shows, for those who do not see it: titles, what the axes say, names of lines."""
        return "; ".join(x for x in map(_words, self.axes) if x)

    def _file(self, kind: str) -> bytes:
        file = BytesIO()
        self.savefig(file, format=kind, dpi=2 * self.get_dpi(), bbox_inches="tight")
        return file.getvalue()

    def _repr_html_(self) -> str:
        return self.html()

    def html(self, *, whole: bool = False, as_text: bool = False) -> str:
        """The figure as a piece of a web page.

        Parameters
        ----------
        whole : bool
            With its empty margins.
        as_text : bool
            Words are text in the page's own font, and no outlines: for pages whose font is no wider.
        """
        style = style_called(None)
        svg = _for_the_page(self, style, whole, as_text)
        width = float(_WIDTH.search(svg)[1]) * 100 / 72  # type: ignore[index]
        look = f"width:100%;max-width:{width:.0f}px;min-width:{SMALLEST * width:.0f}px;height:auto"
        words = html.escape(self.words)
        if as_text:
            look += f";{_OF_ALL.search(svg)[1]}"  # type: ignore[index]
            picture = _OF_ALL.sub("", svg, count=1)
            picture = picture.replace("<svg", f'<svg role="img" aria-label="{words}" style="{look}"', 1)
        else:
            svg = svg.replace("<defs>", "<defs><style>svg{color-scheme:light dark}</style>", 1)
            image = base64.b64encode(svg.encode()).decode()
            picture = f'<img alt="{words}" style="{look}" src="data:image/svg+xml;base64,{image}">'
        return (
            f"<style>{FOLLOW}</style><div {style.attribute}>"
            f'<div style="overflow-x:auto">{picture}</div></div>'
        )


def _title(ax: Axes) -> str:
    return ax.get_title("left") or ax.get_title()


def _label(ax: Axes) -> str:
    """What a picture says of itself, if it does."""
    label = str(ax.get_label())
    return "" if label.startswith("<") else label  # such as matplotlib's own "<colorbar>"


def _words(ax: Axes) -> str:
    """What one pair of axes shows."""
    title, label = _title(ax), _label(ax)
    if label:
        return label if label.startswith(title) else f"{title}: {label}"
    has_words = ax.axison and ax.get_label() != "<colorbar>"
    axes = [x for x in (ax.get_ylabel(), ax.get_xlabel()) if x and has_words]
    names = [name for name in ax.get_legend_handles_labels()[1] if name]
    said = [" over ".join(axes), ", ".join(names)]
    return ": ".join(x for x in (title, "; ".join(filter(None, said))) if x).replace(r"\$", "$")


def dark_twin(colours: Any) -> Any:
    """The colours that take the place of others on a dark page.

    White becomes the dark ground, and black the light ink. In between, what was lighter becomes darker, and
    the hue remains: it is the lightness of the model HLS that is turned round.

    Parameters
    ----------
    colours : array, (…, 3)
        Red, green and blue, from 0 to 1.
    """
    colours = np.asarray(colours)
    turned = colours + 1 - colours.max(-1, keepdims=True) - colours.min(-1, keepdims=True)
    return GROUND + turned * (INK - GROUND)


@contextmanager
def settings(values: Mapping[str, Any]) -> Iterator[None]:
    """Within this block, matplotlib has these settings."""
    # Not matplotlib's rc_context, which would also put back what a backend sets when it is first used.
    all_settings = cast("dict[str, Any]", mpl.rcParams)
    before = {key: all_settings[key] for key in values}
    all_settings.update(values)
    try:
        yield
    finally:
        all_settings.update(before)


def _svg(figure: Figure, box: Bbox | None, as_text: bool) -> str:
    """What is in a box of a figure, or all of it, as SVG."""
    stream = StringIO()
    fonts = "none" if as_text else "path"
    with settings({"svg.fonttype": fonts, "svg.hashsalt": "needle"}):  # the same figure is the same text
        figure.savefig(stream, format="svg", bbox_inches=box, metadata={"Date": None})
    svg = stream.getvalue()
    # Matplotlib leaves out what SVG does anyway: to fill with black. We need to find it, so we say it once.
    svg = svg.replace('<g id="figure_1">', '<g id="figure_1" style="fill: #000000">', 1)
    return _FONT.sub("font-family: inherit", svg[svg.index("<svg") :])


def _for_the_page(figure: Figure, style: Style, whole: bool, as_text: bool) -> str:
    """A figure as SVG, which is light or dark as the style says, or as the page is."""
    with _fixed(figure) as box:
        part = None if whole else box
        light = dark = _svg(figure, part, as_text)
        if style.scheme != "light":
            with _dark_maps(figure) as maps:
                dark = _svg(figure, part, as_text) if maps else light
    if style.scheme:
        return _COLOUR.sub(lambda x: f"{x[1]}: {_twin_of(x[2])}", dark) if style.scheme == "dark" else light

    def either(match: re.Match[str]) -> str:
        part, colour = match.groups()
        return f"{part}: {colour}; {part}: light-dark({colour}, {_twin_of(colour)})"

    pieces = []
    one_by_one, others = _ELEMENT.split(light), _ELEMENT.split(dark)
    if len(others) != len(one_by_one):  # another colour map has brought other elements: its colours remain
        others = one_by_one
    for one, other in zip(one_by_one, others, strict=True):
        if one == other:
            pieces.append(_COLOUR.sub(either, one))
        else:  # its colours stand for numbers: both are there, and one of them is seen
            pieces += [
                _TAG.sub(rf'<\1 class="on-{page}"', x, count=1)
                for x, page in ((one, "light"), (other, "dark"))
            ]
    return "".join(pieces).replace("<defs>", f"<style>{_SWITCH}</style><defs>", 1)


def _twin_of(colour: str) -> str:
    return _KNOWN.get(colour) or to_hex(dark_twin(to_rgb(colour)))


@contextmanager
def _fixed(figure: Figure) -> Iterator[Bbox]:
    """Within this block nothing moves: whenever it is drawn, a figure is laid out a little differently.

    It gives the box around all that is drawn. With ``bbox_inches="tight"``, or with a layout engine, even the
    one that does nothing, matplotlib draws a figure twice to save it.
    """
    figure.draw_without_rendering()
    box = figure.get_tightbbox().padded(mpl.rcParams["savefig.pad_inches"])
    engine, figure._layout_engine = figure.get_layout_engine(), None  # type: ignore[attr-defined]
    try:
        yield box
    finally:
        figure._layout_engine = engine  # type: ignore[attr-defined]


@contextmanager
def _dark_maps(figure: Figure) -> Iterator[bool]:
    """Within this block, colours that stand for numbers are those of a dark page; tells if there are any."""
    found = figure.findobj(lambda x: isinstance(x, ScalarMappable) and x.get_array() is not None)
    mapped = cast("list[ScalarMappable]", found)
    before = [x.get_cmap() for x in mapped]
    for x, cmap in zip(mapped, before, strict=True):
        x.set_cmap(_dark_map(cmap))
    try:
        yield bool(mapped)
    finally:
        for x, cmap in zip(mapped, before, strict=True):
            x.set_cmap(cmap)


def _dark_map(cmap: Colormap) -> Colormap:
    def twin(colours: Any) -> Any:
        return np.concatenate([dark_twin(colours[..., :3]), colours[..., 3:]], -1)

    under, over, bad = map(twin, (cmap.get_under(), cmap.get_over(), cmap.get_bad()))
    colours = twin(cmap(np.arange(cmap.N)))
    return ListedColormap(colours, name=f"{cmap.name}_dark").with_extremes(under=under, over=over, bad=bad)
