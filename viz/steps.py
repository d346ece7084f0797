"""`viz.steps`: the forward and the backward pass, step by step, as a strip, an animated picture or a page.

Of a compiled function it shows the passes of the compiler; see `program_steps.py`.
"""

from __future__ import annotations

import base64
import html
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, overload

from needle.autograd import Tensor, Value
from needle.graph import find_topo_sort

from .dot import check_rankdir
from .drawing import check_size, is_compiled
from .engines import CannotRender
from .names import names_of, tensor_of
from .picture import Picture
from .render import PNG_DPI, render_all, tidy_svg
from .step_data import Passes, StepFrame, record_passes
from .step_pictures import PictureLayout, with_faint
from .style import FOLLOW, FOLLOWS, Style, style_called

__all__ = ["COMPILED", "StepPicture", "Steps", "steps"]

LIMIT = 300  # nodes: nobody looks at more, one by one
MOST_IN_A_STRIP = 24
SECONDS_PER_FRAME = 1.8
COLUMNS = 100  # of printed frames
SECONDS_AT_THE_END = 4.0
LARGEST_GIF = 1000  # pixels across
FRAMES_OF_PALETTE = 8

#: What steps through the passes of a compiled function. It needs the compiler.
COMPILED: list[Callable[[str, Any, int, str | None], Steps]] = []

STATIC = Path(__file__).parent / "static"


@dataclass(frozen=True, repr=False)
class StepPicture(Picture):
    """The picture of one frame, with its equations below it.

    Attributes
    ----------
    title : str
        What happens, in words.
    equations : tuple of str
        What is computed, in names and in numbers.
    source : str
        The picture as DOT text, with the position of everything.
    words : str
        Title and equations for a terminal: what `print` shows.
    """

    title: str
    equations: tuple[str, ...]
    source: str
    style: Style
    words: str

    def svg(self) -> str:
        """The picture as an ``<svg>`` element."""
        return _svgs([self])[0]

    def html(self) -> str:
        """The picture as an image in a piece of a web page."""
        return _image(self.svg(), self)

    def _file(self, kind: str) -> bytes:
        return f"{self.svg()}\n".encode() if kind == "svg" else render_all([self.source], kind)[0]

    def __str__(self) -> str:
        return self.words

    def __repr__(self) -> str:
        return f"<{self.title}: {'; '.join(self.equations)}>"


class Steps(Picture, Sequence[StepPicture]):
    """All steps of a forward and a backward pass: a sequence of pictures.

    In a notebook it shows itself as a player, or as a strip of pictures where scripts do not run. It holds
    plain data and no Tensor.

    Attributes
    ----------
    passes : Passes
        What happens in each frame, as plain data.
    title : str
    """

    formats: ClassVar[tuple[str, ...]] = ("gif", "html")

    def __init__(self, passes: Passes, title: str, *, style: str | None = None, rankdir: str = "LR"):
        check_rankdir(rankdir)
        self.passes = passes
        self.title = title
        self.style = style_called(style)
        self.rankdir = rankdir

    @cached_property
    def _layout(self) -> PictureLayout:
        return PictureLayout(self.passes, self.style, self.rankdir)

    def __len__(self) -> int:
        return len(self.passes.frames)

    @overload
    def __getitem__(self, index: int) -> StepPicture: ...
    @overload
    def __getitem__(self, index: slice) -> list[StepPicture]: ...
    def __getitem__(self, index: int | slice) -> StepPicture | list[StepPicture]:
        count = len(self)
        try:
            numbers = range(count)[index]
        except IndexError:
            raise IndexError(
                f"steps: there is no frame {index}; there are {count}, numbered from 0"
            ) from None
        except TypeError:
            got = type(index).__name__
            raise TypeError(f"steps: needs the number of a frame, or a slice like 2:5; got {got}") from None
        if isinstance(numbers, range):
            return [self._picture(number) for number in numbers]
        return self._picture(numbers)

    def _picture(self, number: int) -> StepPicture:
        frame = self.passes.frames[number]
        source = self._layout.source_of(number)
        return StepPicture(frame.title, frame.said(), source, self.style, frame.in_words(COLUMNS))

    def data(self) -> dict[str, Any]:
        """What the player needs: one picture, and which parts of it each frame shows.

        Raises
        ------
        CannotRender
            If Graphviz is missing.
        """
        return self._data

    @cached_property
    def _data(self) -> dict[str, Any]:
        style = self.style
        (svg,) = render_all([self._layout.picture.text()], "svg")
        return {
            "title": self.title,
            "svg": tidy_svg(svg.decode(), self.title, style),
            "order": list(self.passes.order),
            "frames": [_for_player(frame) for frame in self.passes.frames],
            "since": dict(self.passes.since),
            **self._look(),
        }

    def _look(self) -> dict[str, Any]:
        style = self.style
        return {
            "scheme": style.scheme,
            "colours": {
                "ground": style.css(style.background),
                "ink": style.css(style.text),
                "quiet": style.css(style.quiet),
                "line": style.css(style.forward.line),
                "hover": style.css(style.boxes["intermediate"].fill),
                "accent": style.css(style.reuse),
                "mark": style.css(style.boxes["leaf"].fill),
                "forward": style.css(style.forward.operator),
                "backward": style.css(style.backward.operator),
            },
        }

    def html(self, *, still: bool = True) -> str:
        """A player as a piece of a web page that needs nothing else.

        It has buttons, a slider and keys (left, right, space, home, end; 0, + and − for the size). Where
        scripts do not run, it shows a picture of the last frame.

        Parameters
        ----------
        still : bool
            Whether that picture is there. Drawing it takes as long as all the rest.

        Raises
        ------
        CannotRender
            If Graphviz is missing.
        """
        return self._player(self[-1].html() if still else "")

    def _player(self, without_scripts: str, begin: str = "playAll(document)") -> str:
        script, look = ((STATIC / f"step.{kind}").read_text("utf-8") for kind in ("js", "css"))
        data = html.escape(json.dumps(self._data, ensure_ascii=False))
        return (
            f"<style>{FOLLOW}{look}</style>"
            f'<div {self.style.attribute} data-needle-steps="{data}" data-lm-suppress-shortcuts="true">'
            f"{without_scripts}</div>"
            f'<script type="module">\n{script}\n{begin}\n</script>'
        )

    def save(self, path: str | PathLike[str]) -> Path:
        """Write all frames to a file that ends in ``.gif`` (animated) or ``.html`` (a page with the player).

        The word ``"gif"`` or ``"html"`` alone means ``steps.gif`` or ``steps.html`` in the current folder. In
        the page the keys work at once, without a click.

        Returns
        -------
        Path
            Where it was written.

        Raises
        ------
        ValueError
            For another suffix.
        CannotRender
            If Graphviz is missing.
        """
        return super().save(f"steps.{path}" if path in ("gif", "html") else path)

    def _instead(self) -> str:
        return ", or save one frame: steps[0].save('first.png')"

    def _page(self) -> str:
        return self._as_page(self._player(self[-1].html(), "playAll(document, document)"))

    def _file(self, kind: str) -> bytes:
        return self._gif()

    def _gif(self) -> bytes:
        try:
            from PIL import Image
        except ImportError:
            raise ImportError(
                "save: a .gif needs Pillow: `pip install pillow`; .html needs nothing"
            ) from None

        dpi = min(PNG_DPI / 1.5, 72 * LARGEST_GIF / self._layout.width)
        pictures = render_all([picture.source for picture in self], "png", dpi)
        images = [Image.open(BytesIO(picture)).convert("RGB") for picture in pictures]
        # One palette for all frames, so that what does not change keeps its colour. It comes from a few of
        # them, for no single frame of a wide picture shows all colours.
        some = [*images[:: len(images) // FRAMES_OF_PALETTE + 1], images[-1]]
        width, height = images[-1].size
        together = Image.new("RGB", (width, height * len(some)))
        for place, image in enumerate(some):
            together.paste(image, (0, height * place))
        palette = together.quantize(255, Image.Quantize.MAXCOVERAGE)  # rare colours count as much
        frames = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
        seconds = [SECONDS_PER_FRAME] * (len(frames) - 1) + [SECONDS_AT_THE_END]
        file = BytesIO()
        milliseconds = [int(1000 * s) for s in seconds]
        frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=milliseconds, loop=0)
        return file.getvalue()

    def __str__(self) -> str:
        return "\n\n".join([self.title, *(frame.in_words(COLUMNS) for frame in self.passes.frames)])

    def _repr_html_(self) -> str:
        try:
            return self._player(self.strip())
        except CannotRender as error:
            return self.in_words(error)

    def in_words(self, error: CannotRender) -> str:
        """The title and the equations of each frame, as HTML, below the reason why there is no picture."""
        return f"<pre>{html.escape(str(error))}\n\n{html.escape(str(self))}</pre>"

    def strip(self) -> str:
        """The frames side by side, as HTML without scripts; if they are many, the first of them.

        Raises
        ------
        CannotRender
            If Graphviz is missing.
        """
        pictures = self[:MOST_IN_A_STRIP]
        cells = [
            f'<div style="flex:1 1 420px;max-width:640px;min-width:0">{_image(svg, picture)}</div>'
            for svg, picture in zip(_svgs(pictures), pictures, strict=True)
        ]
        if len(self) > len(pictures):
            more = len(self) - len(pictures)
            cells.append(f"<div>&hellip; {more} more frames: steps.save('steps.html')</div>")
        return f'<div style="display:flex;flex-wrap:wrap;gap:12px">{"".join(cells)}</div>'


@overload
def steps(output: Callable, *, limit: int = LIMIT, style: str | None = None) -> Steps: ...
@overload
def steps(
    output: Tensor,
    *,
    out_grad: Tensor | None = None,
    names: Mapping[str, Value] | None = None,
    rankdir: str = "LR",
    limit: int = LIMIT,
    style: str | None = None,
) -> Steps: ...
def steps(
    output: Any,
    *,
    out_grad: Tensor | None = None,
    names: Mapping[str, Value] | None = None,
    rankdir: str = "LR",
    limit: int = LIMIT,
    style: str | None = None,
) -> Steps:
    """The forward pass to a Tensor and the backward pass from it, step by step, as pictures.

    The forward pass goes through the nodes in topological order, with the equation of each. The backward pass
    goes in reverse: a node sums the partial adjoints that have arrived, and its operator passes the sum on
    to each operand, multiplied by a local derivative. The adjoints are those of `needle.autograd.adjoints`;
    no Tensor's `grad` is read as an adjoint or written.

    If `output` is lazy and not computed yet, nothing is computed, and you see shapes in place of numbers.

    If `output` is a function that `needle.jit` returned, the steps are the passes of the compiler: the graph,
    the loops that it is lowered to, each simplification and each fusion that has changed something, and the
    source. Every frame marks what is new (+), gone (−) and changed (~). A page is the only format.

    Parameters
    ----------
    output : Tensor, or a compiled function that was called once
    out_grad : Tensor of the shape of `output`, optional
        The adjoint to begin with. Default: ones.
    names : dict from str to Tensor, optional
        What to call the variables. By default they have the names of your own variables.
    rankdir : "LR", "TB", "RL" or "BT"
        As for `draw`.
    limit : int
        Refuse a graph with more nodes, or a compiled function with more statements.
    style : "needle", "d2l", "print", "dark" or None
        As for `draw`.

    Returns
    -------
    Steps

    Raises
    ------
    RuntimeError
        If `output` does not require a gradient.
    ValueError
        If there are more than `limit` nodes, or `out_grad` has another shape, or the function was not called
        yet.

    Examples
    --------
    >>> viz.steps(v4).save("gif")
    PosixPath('steps.gif')
    >>> layer = ndl.jit(lambda x: ndl.relu(x @ W + b))
    >>> h = layer(x)
    >>> viz.steps(layer)
    """
    known = names_of(names, sys._getframe(1))
    return steps_of("steps", output, known, out_grad=out_grad, rankdir=rankdir, limit=limit, style=style)


def steps_of(
    function: str,
    output: Any,
    names: Mapping[Value, str],
    *,
    out_grad: Tensor | None,
    rankdir: str,
    limit: int,
    style: str | None,
) -> Steps:
    """What `steps` does, for `function`, once the names are known."""
    if is_compiled(output):
        check_size("limit", limit, 1)
        return COMPILED[0](function, output, limit, style)
    output = tensor_of(function, output, differentiated=True)
    if out_grad is not None:
        out_grad = tensor_of(f"{function}: out_grad", out_grad)
    check_size("limit", limit, 1)
    nodes = len(find_topo_sort([output]))
    if nodes > limit:
        raise ValueError(
            f"{function}: {nodes:,} nodes lead to this Tensor, more than limit={limit}; step through a "
            "part of it (fewer layers, fewer steps in time, an earlier Tensor), raise limit=, or look at the "
            "whole with viz.draw_gradient"
        )
    passes = record_passes(output, names, out_grad=out_grad)
    title = f"Steps to {passes.order[-1]} and back: {nodes} nodes, {len(passes.frames)} frames"
    return Steps(passes, title, style=style, rankdir=rankdir)


def _for_player(frame: StepFrame) -> dict[str, Any]:
    equations = [*(x.html() for x in frame.equations), html.escape(frame.more)]
    return {
        "phase": frame.phase,
        "title": frame.title,
        "equations": "".join(equations),
        "place": frame.place,
        "key": frame.key,
        "marked": frame.marked,
    }


def _svgs(pictures: Sequence[StepPicture]) -> list[str]:
    svgs = render_all([picture.source for picture in pictures], "svg")
    return [
        tidy_svg(svg.decode(), picture.title, picture.style, with_faint(picture.style))
        for svg, picture in zip(svgs, pictures, strict=True)
    ]


def _image(svg: str, picture: StepPicture) -> str:
    words = html.escape(f"{picture.title}: {'; '.join(picture.equations)}")
    data = base64.b64encode(svg.encode()).decode()
    follows = "" if picture.style.scheme else f"<style>{FOLLOW}</style>"
    return (
        f'{follows}<img class="{FOLLOWS * (not picture.style.scheme)}" alt="{words}" style="max-width:100%" '
        f'src="data:image/svg+xml;base64,{data}">'
    )
