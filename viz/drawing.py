"""The drawings themselves: `draw` and `draw_gradient`, and the object that shows itself and saves itself."""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path

from needle.autograd import Tensor, Value

from .dot import check_rankdir, to_dot
from .facts import showing
from .groups import MOST_DRAWN, at_depth, fold, readable
from .interactive import fragment, page
from .names import names_of, values_of
from .plain import Graph
from .render import LARGEST_PNG, PNG_DPI, CannotRender, render, tidy_svg
from .style import style_called
from .text import counted, elide
from .trace import trace, trace_gradient

__all__ = ["Drawing", "check_size", "draw", "draw_gradient", "scaled"]

LONGEST_TITLE = 300  # characters: it can hold the message of an error


class Drawing:
    """A picture of a graph. It holds plain data and no Tensor.

    In JupyterLab, Colab and VS Code it shows itself. Elsewhere `html` is a piece of a web page, and `svg` an
    image.

    Attributes
    ----------
    graph : Graph
        What is drawn, as plain data, with all that its groups hold.
    opened : frozenset of str
        Keys of the groups that are open.
    fitting : bool
        Whether a page may open fewer of them at first, as many as can be read in its width.
    source : str
        The picture as DOT text. The same graph gives the same text.
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
        style: str = "needle",
    ):
        check_rankdir(rankdir)
        self.style = style_called(style)
        self.graph = graph
        self.title = elide(title, LONGEST_TITLE)
        self.legend = legend
        self.rankdir = rankdir
        self.opened = readable(graph) if opened is None else frozenset(opened)
        self.fitting = fitting
        self.source = to_dot(fold(graph, self.opened), self.style, legend=legend, rankdir=rankdir)

    def svg(self) -> str:
        """The picture as an ``<svg>`` element.

        Raises
        ------
        CannotRender
            If there is no Graphviz: neither a `dot` on PATH nor the package pygraphviz.
        """
        return self._svg

    @cached_property
    def _svg(self) -> str:
        return tidy_svg(render(self.source, "svg").decode(), self.title, self.style)

    def html(self) -> str:
        """The picture as a piece of a web page that needs nothing else.

        With the mouse or the keyboard it can be moved, zoomed and searched, and its groups open and close by
        a click. It holds an image of the picture, which is what shows where scripts do not run.

        Raises
        ------
        CannotRender
            If there is no Graphviz.
        """
        return self._html

    @cached_property
    def _html(self) -> str:
        return fragment(
            self.graph,
            self.svg(),
            self.title,
            self.style,
            legend=self.legend,
            rankdir=self.rankdir,
            opened=self.opened,
            fitting=self.fitting,
        )

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the picture to a file, in the format that its suffix names.

        That is ``.svg``, ``.png``, ``.pdf``, or ``.html`` for a page that shows what `html` gives.

        Returns
        -------
        Path
            Where it was written.

        Raises
        ------
        ValueError
            For another suffix, and for a PNG that would be too large.
        CannotRender
            If there is no Graphviz.
        """
        path = Path(path)
        kind = path.suffix.lower().removeprefix(".")
        if kind == "svg":
            path.write_text(self.svg() + "\n", encoding="utf-8")
        elif kind == "html":
            path.write_text(page(self.html(), self.title, self.style.background), encoding="utf-8")
        elif kind in ("png", "pdf"):
            if kind == "png":
                self._check_fits_png(path)
            path.write_bytes(render(self.source, kind))
        else:
            raise ValueError(f"save: cannot write {path.name!r}; end the name in .svg, .png, .pdf or .html")
        return path

    def _check_fits_png(self, path: Path) -> None:
        size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', self.svg())
        pixels = [round(float(x) * PNG_DPI / 72) for x in size.groups()] if size else [0, 0]
        if max(pixels) > LARGEST_PNG:
            raise ValueError(
                f"save: {path.name} would be {pixels[0]:,} x {pixels[1]:,} pixels, and a PNG of more than "
                f"{LARGEST_PNG:,} is scaled down until nothing can be read; save it as .svg or .pdf, or draw "
                "less with a smaller limit="
            )

    def _as_text(self, error: CannotRender) -> str:
        return f"{error} Until then, here is the drawing as DOT text.\n\n{self.source}"

    def __repr__(self) -> str:
        return f"<{self.title}>"

    def _repr_html_(self) -> str:
        try:
            return self.html()
        except CannotRender as error:
            return f"<pre>{html.escape(self._as_text(error))}</pre>"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        try:
            svg = self.svg()
        except CannotRender as error:
            return {"text/plain": self._as_text(error)}
        return {"text/html": self._repr_html_(), "image/svg+xml": svg, "text/plain": repr(self)}


def draw(
    tensors: Value | Sequence[Value],
    *,
    names: Mapping[str, Value] | None = None,
    legend: bool = True,
    rankdir: str = "LR",
    limit: int | None = None,
    depth: int | None = None,
    style: str = "needle",
    show: Collection[str] | None = None,
) -> Drawing:
    """Draw the computational graph that leads to one or several Tensors.

    Boxes are variables: name, shape, value if it is small, and gradient if there is one. Circles are
    operators. There is an edge for each operand, so ``x * x`` shows two. Nothing is computed by drawing: what
    is lazy and not computed yet is drawn hollow.

    What one call of a module made, or one block of `needle.scope`, is a group. An open group is a frame, a
    closed one a box with the shapes that go in and come out and the number of its parameters. Groups that
    follow each other and are alike are a group as well: "Residual × 3".

    Parameters
    ----------
    tensors : Tensor, TensorTuple, or sequence of them
    names : dict from str to Tensor, optional
        What to call the variables. By default they are called as the caller's variables are; what has no name
        there is called n1, n2, … in topological order.
    legend : bool
        Whether to say what the colours mean.
    rankdir : "LR", "TB", "RL" or "BT"
        From left to right, from top to bottom, or the other way round.
    limit : int, optional
        At most so many variables are drawn, those nearest to `tensors`; a box tells how many were left out.
        By default, of what a large graph repeats the first and the last are drawn, with a box for what is
        between them; if that leaves more than 1000 boxes, the nearest 1000.
    depth : int, optional
        How many modules deep the drawing goes: 0 closes the outermost modules to one box each, 1 their parts,
        and so on. By default as deep as can be read: all of a small graph.
    style : "needle", "d2l", "print" or "dark"
        The look: of this package; of the figures in Dive into Deep Learning, with square variables, inputs at
        the lower left and the output at the upper right; black and white; light on dark.
    show : collection of str, optional
        Which facts to show, of "value", "gradient", "shape", "dtype", "device", "bytes" (of its array; a
        storage that several share counts once) and "requires_grad". By default value, gradient and shape,
        and the dtype where it is not float32.

    Returns
    -------
    Drawing

    Examples
    --------
    >>> v1 = ndl.Tensor([0.0])
    >>> v2 = ndl.exp(v1)
    >>> v4 = v2 * (v2 + 1)
    >>> viz.draw(v4).save("graph.svg")
    """
    outputs = values_of("draw", tensors)
    check_size("limit", limit, 1)
    check_size("depth", depth, 0)
    known = names_of(names, sys._getframe(1))
    graph, opened = scaled(lambda limit: trace(outputs, known, limit=limit), limit, depth)
    return Drawing(
        showing(graph, show),
        _title("computational graph", outputs, known, graph),
        opened=opened,
        fitting=depth is None,
        legend=legend,
        rankdir=rankdir,
        style=style,
    )


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
    style: str = "needle",
    show: Collection[str] | None = None,
) -> Drawing:
    """Draw the gradient graph of a Tensor: its computational graph, and below it the graph of its adjoints.

    The adjoint of a variable stands below the variable, and adjoints run from right to left. Dashed edges are
    values of the forward graph that a gradient uses again. Where a variable is used several times, each use
    gives a partial adjoint, and the operator + that sums them is drawn. The gradient of a gradient can be
    drawn: ``draw_gradient(v1.grad)``.

    The graph is the one that `needle.autograd.adjoints` builds; no Tensor's `grad` is read as an adjoint or
    written. If `output` is lazy and not computed yet, neither it nor its adjoints are computed.

    Parameters
    ----------
    output : Tensor
    wrt : Tensor or sequence of Tensor, optional
        Only adjoints on the way to these. By default, to all that require a gradient.
    out_grad : Tensor of the shape of `output`, optional
        The adjoint to begin with. Default: ones.
    names, legend, rankdir, limit, depth, style, show
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
    if not isinstance(output, Tensor):
        raise TypeError(f"draw_gradient: needs a Tensor, got {type(output).__name__}")
    if out_grad is not None and not isinstance(out_grad, Tensor):
        raise TypeError(f"draw_gradient: out_grad: needs a Tensor, got {type(out_grad).__name__}")
    if not output.requires_grad:
        raise RuntimeError(
            "draw_gradient: this Tensor does not require a gradient: it is a constant, or made in no_grad()"
        )
    inputs = None if wrt is None else values_of("draw_gradient: wrt", wrt)
    check_size("limit", limit, 1)
    check_size("depth", depth, 0)
    known = names_of(names, sys._getframe(1))
    graph, opened = scaled(
        lambda limit: trace_gradient(output, inputs, known, limit=limit, out_grad=out_grad), limit, depth
    )
    return Drawing(
        showing(graph, show),
        _title("gradient graph", [output], known, graph),
        opened=opened,
        fitting=depth is None,
        legend=legend,
        rankdir=rankdir,
        style=style,
    )


def check_size(name: str, size: int | None, least: int) -> None:
    """Raise ValueError if a size was given that is no whole number of at least `least`."""
    if size is None:
        return
    if isinstance(size, bool) or not isinstance(size, int) or size < least:
        raise ValueError(f"{name}: needs a whole number of at least {least}, got {size!r}")


def scaled(
    traced: Callable[[int | None], Graph], limit: int | None, depth: int | None
) -> tuple[Graph, frozenset[str]]:
    """What is `traced` within the limit, and which groups of it are open."""
    graph = traced(limit)
    opened = readable(graph) if depth is None else at_depth(graph, depth)
    if limit is None and len(fold(graph, opened).variables) > MOST_DRAWN:
        return scaled(traced, MOST_DRAWN, depth)
    return graph, opened


def _title(what: str, outputs: Sequence[Value], names: Mapping[Value, str], graph: Graph) -> str:
    """What the picture shows, in words."""
    of = ", ".join(names[x] for x in outputs if x in names)
    variables = [x for x in graph.variables if x.kind not in ("group", "left out")]  # and no box for others
    operators = sum(variable.operator is not None for variable in variables)
    what += f" of {of}" if of else ""
    what += ", in part" if len(variables) < len(graph.variables) else ""
    return f"{what}: {counted(len(variables), 'variable')}, {counted(operators, 'operator')}"
