"""The frames of `viz.drag`, and the pictures that they share.

A frame is a picture and the numbers in it. Graphs that differ in their numbers only have one picture, whose
boxes have room for the widest of them: a move then changes texts, and nothing is laid out again.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from itertools import compress
from typing import Any

import numpy as np

from needle.autograd import Value

from .dot import LONGEST_IN_SQUARE
from .drawing import Drawing
from .graph_data import Graph, Variable
from .groups import fold
from .render import render_all, tidy_svg
from .style import TEXT_SIZE, Style, style_called
from .text import Rows, elide, text_width

__all__ = ["Album", "Frame", "Places", "check_picture", "frame_of", "packed"]

BYTES_OF_A_GRAPH = 5_000  # about
SHARPNESS = 2  # pixels of an image for one of the page

Places = tuple[int, ...]  # of each slider, the place of its stop


@dataclass(frozen=True)
class Frame:
    """What one place of the sliders shows.

    Attributes
    ----------
    look : str or tuple
        Frames with the same look have one picture: an image, or what a graph is without its numbers.
    graph : Graph or None
        With its numbers, if the picture is a graph.
    drawing : Drawing or None
        Where the graph comes from.
    error : str
        What went wrong, in place of a picture.
    """

    look: Hashable = ""
    graph: Graph | None = None
    drawing: Drawing | None = None
    error: str = ""

    @property
    def texts(self) -> list[str]:
        """The numbers, in the order of the picture."""
        return [text for x in (self.graph.variables if self.graph else ()) for text in _as_drawn(x)]

    @cached_property
    def size(self) -> int:
        """About how many bytes of a page its picture takes."""
        return len(packed(self.look)) if isinstance(self.look, str) else BYTES_OF_A_GRAPH


def packed(text: str) -> str:
    """A text as it stands in a page: compressed, and written in base64."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


class Album:
    """Frames, and the pictures that they need.

    Attributes
    ----------
    frames : dict from places to Frame
    pictures : list of dict
        Each is an image or an ``<svg>``. Its "nodes" say which of them have numbers, and how many.
    """

    def __init__(self, frames: Mapping[Places, Frame]):
        self.frames = frames
        self.pictures: list[dict[str, Any]] = []
        self._numbers: dict[Hashable, int] = {}  # of the picture with a look
        self._seen: dict[Hashable, list[bool]] = {}  # for a look: which numbers have room in their boxes
        self._put(frames.values())

    @property
    def style(self) -> Style:
        """The look of the first drawing; of other pictures, this package's own."""
        drawings = (frame.drawing for frame in self.frames.values())
        return next((drawing.style for drawing in drawings if drawing), style_called(None))

    def shown(self, frame: Frame) -> list[Any]:
        """A frame for the script: the number of its picture, and the texts in it; or an error."""
        if frame.error:
            return [-1, [frame.error]]
        if frame.look not in self._numbers:
            self._put([frame])
        return [self._numbers[frame.look], list(compress(frame.texts, self._seen[frame.look]))]

    def _put(self, frames: Iterable[Frame]) -> None:
        """Add the pictures of frames, with room for the widest number at each place."""
        alike: dict[Hashable, list[Frame]] = {}
        for frame in frames:
            if not frame.error:
                alike.setdefault(frame.look, []).append(frame)
        drawings = {look: same[0].drawing for look, same in alike.items() if same[0].drawing}
        graphs = {look: _widest(alike[look]) for look in drawings}
        sources = [drawing.source_of(graphs[look]) for look, drawing in drawings.items()]
        svgs = dict(zip(drawings, render_all(sources, "svg"), strict=True))
        for look in alike:
            self._numbers[look] = len(self.pictures)
            drawing = drawings.get(look)
            if drawing is None:
                self._seen[look] = []
                self.pictures.append({"markup": look, "nodes": []})
                continue
            markup = tidy_svg(svgs[look].decode(), drawing.title, drawing.style)
            seen = {x.key: _has_room(x, drawing.style) for x in graphs[look].variables}
            self._seen[look] = [x for of_node in seen.values() for x in of_node]
            nodes = [(key, sum(of_node)) for key, of_node in seen.items() if any(of_node)]
            self.pictures.append({"markup": markup, "nodes": nodes, "centred": drawing.style.rises})


def frame_of(picture: Any) -> Frame:
    """A picture as a frame."""
    if isinstance(picture, Drawing):
        graph = fold(picture.graph, picture.opened)
        return Frame(_look_of(graph, picture), graph, picture)
    figure = _figure_of(picture)
    if figure is not None:
        return Frame(_image(figure))
    if hasattr(picture, "svg"):
        return Frame(picture.svg())
    return Frame(picture._repr_svg_() if hasattr(picture, "_repr_svg_") else picture._repr_html_())


def check_picture(thing: object) -> None:
    """Raise TypeError for what cannot be a frame."""
    is_picture = isinstance(thing, Value) or _figure_of(thing) is not None
    if not is_picture and not any(hasattr(thing, name) for name in ("svg", "_repr_svg_", "_repr_html_")):
        raise TypeError(
            f"drag: the function returned {elide(repr(thing), 60)}, of type {type(thing).__name__}; it needs "
            "to return a Tensor, a figure of matplotlib or another picture"
        )


def _figure_of(thing: Any) -> Any:
    """The figure of matplotlib that this is or belongs to, such as Axes or the lines of a plot; else None."""
    if isinstance(thing, (list, tuple, np.ndarray)) and len(thing):
        return _figure_of(thing[0])
    if hasattr(thing, "savefig"):
        return thing
    return thing.get_figure() if hasattr(thing, "get_figure") else None


def _image(figure: Any) -> str:
    """A figure as an ``<img>``; one of this package follows the page, light or dark."""
    if hasattr(figure, "html"):
        return figure.html(whole=True)
    file = BytesIO()
    figure.savefig(file, format="png", dpi=100 * SHARPNESS)
    width = 100 * figure.get_size_inches()[0]
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="" style="width:{width:.0f}px;max-width:100%" src="data:image/png;base64,{data}">'


# --- the numbers in a graph ---


def _cells(rows: Rows) -> list[str]:
    return [cell for row in rows for cell in row]


def _as_drawn(variable: Variable) -> list[str]:
    """The numbers of a variable as the texts that end its box: see `dot.value_lines`."""
    value, gradient = _cells(variable.value), _cells(variable.gradient)
    if len(variable.gradient) > 1:
        return [*value, "grad", *gradient]
    return [*value, *(f"grad {cell}" for cell in gradient)]


def _has_room(variable: Variable, style: Style) -> list[bool]:
    """Which of the texts of `_as_drawn` are drawn: a small square leaves out what is large."""

    def fits(rows: Rows) -> bool:
        return not style.rises or (len(rows) == 1 and len(rows[0][0]) <= LONGEST_IN_SQUARE)

    values, texts = len(_cells(variable.value)), len(_as_drawn(variable))
    return [fits(variable.value)] * values + [fits(variable.gradient)] * (texts - values)


def _look_of(graph: Graph, drawing: Drawing) -> Hashable:
    """All that a layout depends on but the numbers: to compare is quicker than to lay out."""
    variables = _with_cells(graph, lambda cell: "").variables
    return (
        tuple(replace(x, numbers=(), line=None) for x in variables),
        *(graph.columns, graph.groups, graph.left_out, graph.forward_rows, graph.shown),
        *(id(drawing.style), drawing.legend, drawing.rankdir, drawing.width),
    )


def _with_cells(graph: Graph, written: Callable[[str], str]) -> Graph:
    """The graph with other texts in place of its numbers."""

    def rows(given: Rows) -> Rows:
        return tuple(tuple(map(written, row)) for row in given)

    return replace(
        graph,
        variables=tuple(
            replace(x, value=rows(x.value), gradient=rows(x.gradient)) if x.value or x.gradient else x
            for x in graph.variables
        ),
    )


def _widest(frames: Sequence[Frame]) -> Graph:
    """A graph with the widest number of all frames at each place."""
    graphs = [frame.graph for frame in frames if frame.graph]
    rows = [
        [cell for x in graph.variables for cell in _cells(x.value) + _cells(x.gradient)] for graph in graphs
    ]
    columns = zip(*rows, strict=True)
    widest = iter([max(column, key=lambda cell: text_width(cell, TEXT_SIZE)) for column in columns])
    return _with_cells(graphs[0], lambda cell: next(widest))
