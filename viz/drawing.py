"""`draw` and `draw_gradient`, and the `Drawing` that they return, which shows itself and saves itself."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from needle.autograd import Tensor, Value
from needle.nn import Module

from .dot import check_rankdir, to_dot
from .engines import CannotRender
from .facts import showing
from .graph_data import Graph
from .graph_reader import MOST, read_gradient, read_graph
from .groups import MOST_DRAWN, at_depth, fold, readable
from .interactive import fragment
from .names import names_of, tensor_of, values_of
from .picture import Picture
from .render import LARGEST_PNG, PNG_DPI, render, render_all, tidy_svg
from .style import style_called
from .text import counted, elide

if TYPE_CHECKING:
    from graphviz import Source

__all__ = [
    "MODELS",
    "PROGRAMS",
    "Drawing",
    "check_size",
    "draw",
    "draw_gradient",
    "drawing_of",
    "is_compiled",
]

LONGEST_TITLE = 300  # characters: it can hold the message of an error
WIDTHS = {"page": 1000, "slide": 1600, "phone": 390}  # pixels of a screen, of which 96 are an inch
MOST_PIXELS, LEAST_DPI = 20_000_000, 60  # of a PNG: painting more takes long, and less cannot be read


class Drawing(Picture):
    """A picture of a graph. It holds plain data and no Tensor.

    In JupyterLab, Colab and VS Code it shows itself. Elsewhere, `html` gives a piece of a web page and `svg`
    an image.

    Attributes
    ----------
    graph : Graph
        What is drawn, as plain data, with everything inside its groups.
    opened : frozenset of str
        The keys of the open groups.
    fitting : bool
        Whether a page may open fewer groups at first: as many as can be read in its width.
    """

    def __init__(
        self,
        graph: Graph,
        title: str,
        *,
        opened: Collection[str] | None = None,
        fitting: bool = False,
        legend: bool = True,
        rankdir: str = "LR",
        style: str | None = None,
        width: str | float | None = None,
        below: bool = False,
    ):
        check_rankdir(rankdir)
        self.style = style_called(style)
        self.graph = graph
        self.title = elide(title, LONGEST_TITLE)
        self.legend = legend
        self.rankdir = rankdir
        self.opened = readable(graph) if opened is None else frozenset(opened)
        self.fitting = fitting
        self.width = _points(width)
        self.below = below

    @cached_property
    def source(self) -> str:
        """The picture as DOT text. The same graph gives the same text."""
        return self.source_of(fold(self.graph, self.opened))

    def source_of(self, graph: Graph) -> str:
        """The DOT text of a graph in the look of this drawing."""
        return to_dot(
            graph, self.style,
            legend=self.legend, rankdir=self.rankdir, width=self.width, below=self.below,
        )  # fmt: skip

    @property
    def graphviz(self) -> Source:
        """The picture for the package graphviz: ``drawing.graphviz.render("graph", format="png")``.

        Its methods call the program `dot`, which has to be installed. Everything keeps its place.
        """
        from graphviz import Source

        return Source(self.source)

    def svg(self) -> str:
        """The picture as an ``<svg>`` element.

        Raises
        ------
        CannotRender
            If Graphviz is missing: neither a `dot` on PATH nor the package pygraphviz is there.
        """
        return self._svg

    @cached_property
    def _svg(self) -> str:
        return tidy_svg(render(self.source, "svg").decode(), self.title, self.style)

    def html(self) -> str:
        """The picture as a piece of a web page that needs nothing else.

        You can move, zoom and search it with the mouse or the keyboard. A click opens or closes a group, and
        its gradient with it; then you see the boxes and edges of the static picture of that state. A picture
        that has a given width stays as it is: its groups do not open.
        Where scripts do not run, it shows an image.

        Raises
        ------
        CannotRender
            If Graphviz is missing.
        """
        return self._html

    @cached_property
    def _html(self) -> str:
        return fragment(
            self.graph if self.width is None else replace(fold(self.graph, self.opened), groups=()),
            self.svg(),
            self.title,
            self.style,
            legend=self.legend,
            rankdir=self.rankdir,
            opened=self.opened,
            fitting=self.fitting,
        )

    def _file(self, kind: str) -> bytes:
        if kind == "svg":
            return f"{self.svg()}\n".encode()
        return self._png() if kind == "png" else render(self.source, kind)

    def _png(self) -> bytes:
        """A PNG that is as sharp as its size allows.

        Raises
        ------
        ValueError
            If nothing could be read in it.
        """
        size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', self.svg())
        width, height = (float(x) / 72 for x in size.groups()) if size else (1.0, 1.0)
        dpi = min(PNG_DPI, math.sqrt(MOST_PIXELS / (width * height)), LARGEST_PNG / max(width, height))
        if dpi < LEAST_DPI:
            pixels = f"{round(width * LEAST_DPI):,} x {round(height * LEAST_DPI):,}"
            raise ValueError(
                f"save: a PNG would need {pixels} pixels to be read, which is too many. Save it as .svg or "
                ".pdf, or draw less with a smaller limit="
            )
        return render_all([self.source], "png", dpi)[0]

    def _in_words(self, error: CannotRender) -> str:
        return f"{error} Until then, this is the drawing as DOT text:\n\n{self.source}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        try:
            svg = self.svg()
        except CannotRender as error:
            return {"text/plain": self._in_words(error)}
        return {"text/html": self._repr_html_(), "image/svg+xml": svg, "text/plain": repr(self)}


#: What draws a model. It needs matplotlib, so that `viz` puts it here: it knows what is imported when.
MODELS: list[Callable[[Module, int | None], Picture]] = []
#: What draws a compiled function. It needs Numba.
PROGRAMS: list[Callable[[Any, str | None], Picture]] = []


def is_compiled(thing: object) -> bool:
    """Whether `needle.jit` returned it. If so, the compiler is imported."""
    compiler = sys.modules.get("needle.compiler")
    return compiler is not None and isinstance(thing, compiler.Compiled)


@overload
def draw(tensors: Module, *, depth: int | None = None) -> Picture: ...
@overload
def draw(tensors: Callable, *, style: str | None = None) -> Picture: ...
@overload
def draw(tensors: Value | Sequence[Value], **options: Any) -> Drawing: ...
def draw(  # type: ignore[misc]  # the options are these
    tensors: Value | Sequence[Value] | Module | Callable,
    *,
    names: Mapping[str, Value] | None = None,
    legend: bool = True,
    rankdir: str = "LR",
    limit: int | None = None,
    depth: int | None = None,
    style: str | None = None,
    show: Collection[str] | None = None,
    width: str | float | None = None,
    unroll: bool | None = None,
) -> Picture:
    """Draw the computational graph that leads to one or several Tensors.

    Boxes are variables: name, shape, value if it is small, and gradient if there is one. Circles are
    operators. Each operand has its own edge, so ``x * x`` shows two. Drawing computes nothing: a lazy
    Tensor that is not computed yet is drawn hollow.

    Everything that one call of a module computes is a group, and so is a block of `needle.scope`. An open
    group is a frame; a closed one is a box that says which shapes go in and come out, and how many
    parameters it has. Groups in a row that are alike form a group too: "3 times Residual".

    A constant remembers no operator. Its array still tells whether it is a view, such as ``X[0]``, and a lazy
    one knows how it will be computed: so data, too, are drawn with what is made of them.

    Parameters
    ----------
    tensors : Tensor, TensorTuple, or sequence of them
        Of a model, `module_tree` is drawn; for that, there is only `depth`. Of a function that `needle.jit`
        compiled, the operators are drawn in the groups that they were fused to, beside the source that each
        group became; for that, there is only `style`. See also `draw_schedule`.
    names : dict from str to Tensor, optional
        What to call the variables. By default they have the names of your own variables. Parameters have
        those that their module gives them; all others are called n1, n2, … in topological order.
    legend : bool
        Whether to explain the colours.
    rankdir : "LR", "TB", "RL" or "BT"
        From left to right, from top to bottom, or the other way round.
    limit : int, optional
        Draw at most this many variables, the nearest to `tensors`; a box tells how many were left out. By
        default, of what a large graph repeats only the first and the last are drawn, with a box for those
        between them; if that still leaves more than 1000 boxes, the nearest 1000.
    depth : int, optional
        How many levels of modules are open: 0 draws the outermost modules as one box each, 1 shows their
        parts, and so on. By default as many as can be read: all of them in a small graph.
    style : "needle", "d2l", "print", "dark" or None
        The look: this package's own; that of the figures in Dive into Deep Learning, with square variables,
        the way to the output in one row and weights below it; black and white; light on dark. By
        default the one chosen with `set_style`, and else the own one, light or dark as the page is.
    show : collection of str, optional
        Which facts to show, of "value", "gradient", "shape", "dtype", "device", "bytes" (of its array; a
        storage that several arrays share counts once) and "requires_grad". By default value, gradient and
        shape, and the dtype where it is not float32.
    width : "page", "slide", "phone" or float, optional
        How wide the picture may be: 1000, 1600 or 390 pixels, or as many as you say; an inch has 96 of them.
        A longer drawing from left to right goes on in rows, one below the other, and its text keeps its size.
        By default only a drawing of more than 3200 pixels does so.
    unroll : bool, optional
        What to do with the parts of a loop that are alike, such as the steps of a recurrent network: draw
        them side by side, however many, each as one box, with inputs and weights below; or draw one box for
        all of them. By default as much as can be read.

    Returns
    -------
    Drawing

    Raises
    ------
    TypeError
        If one of `tensors` is no Tensor.

    Examples
    --------
    >>> v1 = ndl.Tensor([0.0])
    >>> v2 = ndl.exp(v1)
    >>> v4 = v2 * (v2 + 1)
    >>> viz.draw(v4).save("graph.svg")
    """
    if isinstance(tensors, Module):
        return MODELS[0](tensors, depth)
    if is_compiled(tensors):
        return PROGRAMS[0](tensors, style)
    outputs = values_of("draw", tensors)  # type: ignore[arg-type]
    known = names_of(names, sys._getframe(1))
    return drawing_of(
        lambda limit: read_graph(outputs, known, limit=limit),
        lambda graph: _title("computational graph", outputs, known, graph),
        legend=legend, rankdir=rankdir, limit=limit, depth=depth, style=style, show=show,
        width=width, unroll=unroll,
    )  # fmt: skip


def draw_gradient(
    output: Tensor,
    wrt: Tensor | Sequence[Tensor] | None = None,
    *,
    out_grad: Tensor | None = None,
    names: Mapping[str, Value] | None = None,
    legend: bool = True,
    rankdir: str = "LR",
    limit: int | None = None,
    depth: int | None = None,
    style: str | None = None,
    show: Collection[str] | None = None,
    width: str | float | None = None,
    unroll: bool | None = None,
) -> Drawing:
    """Draw the gradient graph of a Tensor: its computational graph, and below it the graph of its adjoints.

    The adjoint of a variable stands below the variable, and adjoints run from right to left. A dashed edge
    brings a value of the forward graph to a gradient that uses it again. A variable that is used several
    times gets one partial adjoint from each use, and you see the + that sums them. You can draw the
    gradient of a gradient: ``draw_gradient(v1.grad)``.

    The graph is the one that `needle.autograd.adjoints` builds. No Tensor's `grad` is read as an adjoint or
    written. If `output` is lazy and not computed yet, neither it nor its adjoints are computed.

    Parameters
    ----------
    output : Tensor
    wrt : Tensor or sequence of Tensor, optional
        Draw only the adjoints on the way to these. By default, to all that require a gradient.
    out_grad : Tensor of the shape of `output`, optional
        The adjoint to begin with. Default: ones.
    names, legend, rankdir, limit, depth, style, show, width, unroll
        As for `draw`.

    Returns
    -------
    Drawing

    Raises
    ------
    RuntimeError
        If `output` does not require a gradient.
    ValueError
        If a Tensor in `wrt` does not lead to `output`, or requires no gradient.
    """
    output = tensor_of("draw_gradient", output, differentiated=True)
    if out_grad is not None:
        out_grad = tensor_of("draw_gradient: out_grad", out_grad)
    inputs = None if wrt is None else values_of("draw_gradient: wrt", wrt)
    known = names_of(names, sys._getframe(1))
    return drawing_of(
        lambda limit: read_gradient(output, inputs, known, limit=limit, out_grad=out_grad),
        lambda graph: _title("gradient graph", [output], known, graph),
        legend=legend, rankdir=rankdir, limit=limit, depth=depth, style=style, show=show,
        width=width, unroll=unroll,
    )  # fmt: skip


def drawing_of(
    read: Callable[[int | None], Graph],
    title: Callable[[Graph], str],
    *,
    legend: bool,
    rankdir: str,
    limit: int | None,
    depth: int | None,
    style: str | None,
    show: Collection[str] | None,
    width: str | float | None = None,
    unroll: bool | None = None,
    always_open: Callable[[Graph], set[str]] | None = None,
) -> Drawing:
    """A drawing of the graph that `read` finds within a limit; the other arguments are those of `draw`.

    `always_open` says which groups are open whatever their depth; the page then opens no fewer.
    """
    check_size("limit", limit, 1)
    check_size("depth", depth, 0)
    graph, opened = _scaled(read, MOST if unroll and limit is None else limit, depth)
    if unroll is not None:
        opened = _unrolled(graph, unroll)
    fitting = depth is None and always_open is None and unroll is None
    return Drawing(
        showing(graph, show),
        title(graph),
        opened=opened | (always_open(graph) if always_open else set()),
        fitting=fitting,
        legend=legend,
        rankdir=rankdir,
        style=style,
        width=width,
        below=bool(unroll),
    )


def _unrolled(graph: Graph, unroll: bool) -> frozenset[str]:
    """The groups that are open when repeats are, or are not, and their parts are closed."""
    parents = {group.key: group.parent for group in graph.groups}
    repeats = [group.key for group in graph.groups if group.count > 1]
    opened: set[str] = set()
    for key in repeats:
        opened |= {key} if unroll else set()
        while key := parents[key]:
            opened.add(key)
    return frozenset(opened if unroll else opened - set(repeats))


def _points(width: str | float | None) -> float | None:
    """A width in points; None stays None.

    Raises
    ------
    ValueError
        If it is no positive number and no name of a width.
    """
    if width is None:
        return None
    if isinstance(width, str) and width in WIDTHS:
        return WIDTHS[width] * 0.75
    if isinstance(width, bool) or not isinstance(width, (int, float)) or not 0 < width < math.inf:
        names = ", ".join(map(repr, WIDTHS))
        raise ValueError(f"width: needs a number of pixels or one of {names}, got {width!r}")
    return width * 0.75


def check_size(name: str, size: int | None, least: int) -> None:
    """Raise ValueError for a size that is given and is no whole number of at least `least`."""
    if size is None:
        return
    if isinstance(size, bool) or not isinstance(size, int) or size < least:
        raise ValueError(f"{name}: needs a whole number of at least {least}, got {size!r}")


def _scaled(
    read: Callable[[int | None], Graph], limit: int | None, depth: int | None
) -> tuple[Graph, frozenset[str]]:
    """The graph within the limit, and which of its groups are open."""
    graph = read(limit)
    opened = readable(graph) if depth is None else at_depth(graph, depth)
    if limit is None and len(fold(graph, opened).variables) > MOST_DRAWN:
        return _scaled(read, MOST_DRAWN, depth)
    return graph, opened


def _title(what: str, outputs: Sequence[Value], names: Mapping[Value, str], graph: Graph) -> str:
    """What the picture shows, in words."""
    of = ", ".join(names[x] for x in outputs if x in names)
    variables = [x for x in graph.variables if x.kind not in ("group", "left out")]  # and no box for others
    operators = sum(variable.operator is not None for variable in variables)
    what += f" of {of}" if of else ""
    what += ", in part" if len(variables) < len(graph.variables) else ""
    return f"{what}: {counted(len(variables), 'variable')}, {counted(operators, 'operator')}"
