"""`viz.pad`: a sheet to draw on, and what a function says of the drawing."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .picture import LivePicture
from .steps import STATIC
from .style import FOLLOW, style_called
from .text import counted, elide

__all__ = ["Pad", "pad"]

MOST_PIXELS = 64 * 64
SHOWN = 10  # answers, at most

Answers = Mapping[Any, float] | Sequence[float] | np.ndarray


class Pad(LivePicture):
    """A sheet to draw on. In a running notebook the answers follow each stroke.

    Attributes
    ----------
    image : array (height, width), float32
        What is drawn: 0 is paper, 1 is ink. Set it to draw from Python.
    title : str
    """

    formats = ("html",)

    #: What brings a `sheet` to life in a browser: a script whose default export has ``render({model, el})``,
    #: and its CSS. The model has ``markup``, ``pixels`` and ``said``, as that of the widget.
    script = STATIC / "pad.js"
    look = STATIC / "pad.css"

    def __init__(self, function: Callable[[np.ndarray], Answers], image: np.ndarray, title: str):
        self._function = function
        self._image = image
        self.title = title
        self._answers()  # raises what the function raises of the first image

    @property
    def image(self) -> np.ndarray:
        return self._image.copy()

    @image.setter
    def image(self, image: Any) -> None:
        self._image = _checked("image", image, self._image.shape)
        if "widget" in vars(self):
            self.widget.pixels = self._pixels()

    def _pixels(self) -> list[float]:
        return [round(float(x), 3) for x in self._image.ravel()]

    def _answers(self) -> list[tuple[str, float]]:
        """Each answer with its share: those that are largest, in the order in which the function has them.

        Raises
        ------
        TypeError
            If the function gives back something else.
        """
        given = self._function(self.image)
        if not isinstance(given, Mapping):
            numbers = given.numpy() if hasattr(given, "numpy") else given
            if not isinstance(numbers, (Sequence, np.ndarray)) or np.ndim(numbers) != 1:
                raise TypeError(
                    "pad: the function should return a mapping from answers to numbers from 0 to 1, or a "
                    f"list of numbers; it returned {elide(repr(given), 60)}"
                )
            given = dict(enumerate(numbers))
        shares = [(str(answer), float(share)) for answer, share in given.items()]
        least = sorted((share for _, share in shares), reverse=True)[:SHOWN][-1:]
        return [(answer, share) for answer, share in shares if [share] >= least][:SHOWN]

    def _said(self) -> dict[str, Any]:
        """What the page writes beside the drawing."""
        try:
            return {"rows": self._answers()}
        except Exception as error:
            return {"rows": [], "trouble": f"{type(error).__name__}: {error}"}

    def html(self) -> str:
        """The sheet as it is now, with its answers, as a piece of a web page without scripts."""
        note = '<p class="note">In a running notebook you can draw here.</p>'
        return f"<style>{_look()}</style><div {self._frame}>{self._markup(self._said(), note)}</div>"

    def sheet(self) -> str:
        """The sheet as it is now, with its answers and its tools, as HTML for the `script`."""
        tools = (
            '<div class="tools"><button data-do="draw" aria-pressed="true">Draw</button>'
            '<button data-do="erase" aria-pressed="false">Erase</button>'
            '<button data-do="clear">Clear</button></div>'
        )
        return f"<div {self._frame}>{self._markup(self._said(), tools)}</div>"

    @property
    def _frame(self) -> str:
        """The attributes of the element around it all: its colours."""
        style = style_called(None)
        colours = {
            "ground": style.background, "ink": style.text, "quiet": style.quiet,
            "line": style.forward.line, "accent": style.reuse,
        }  # fmt: skip
        set_here = ";".join(f"--{name}:{style.css(colour)}" for name, colour in colours.items())
        follows = "" if style.scheme else " needle-follows"
        scheme = f"color-scheme:{style.scheme};" if style.scheme else ""
        return f'class="needle-pad{follows}" style="{scheme}{set_here}"'

    def _markup(self, said: Mapping[str, Any], below: str) -> str:
        height, width = self._image.shape
        cells = "".join(
            f'<rect x="{x}" y="{y}" width="1" height="1" fill-opacity="{ink:.3g}"/>'
            for (y, x), ink in np.ndenumerate(self._image)
        )
        lines = f"M{'M'.join(f'{x} 0V{height}' for x in range(1, width))}"
        lines += f"M{'M'.join(f'0 {y}H{width}' for y in range(1, height))}"
        most = max((share for _, share in said["rows"]), default=0)
        rows = "".join(
            f'<li class="{"most" * (0 < share == most)}"><span>{html.escape(answer)}</span>'
            f'<span class="bar"><i style="width:{100 * min(max(share, 0), 1):.1f}%"></i></span>'
            f"<span>{share:.0%}</span></li>"
            for answer, share in said["rows"]
        )
        return (
            f'<div class="sheet"><svg viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{html.escape(self.title)}"><g>{cells}</g>'
            f'<path class="grid" d="{lines}"/></svg>{below}</div>'
            f'<ol aria-live="polite">{rows}</ol>'
            f'<p class="trouble" role="status">{html.escape(said.get("trouble", ""))}</p>'
        )

    @cached_property
    def widget(self) -> Any:
        """The sheet as a widget (an `anywidget.AnyWidget`).

        Raises
        ------
        ImportError
            If the package anywidget is missing.
        """
        import anywidget
        import traitlets

        class Sheet(anywidget.AnyWidget):
            _esm = Pad.script
            _css = _look()
            markup = traitlets.Unicode().tag(sync=True)
            pixels = traitlets.List(traitlets.Float()).tag(sync=True)
            said = traitlets.Dict().tag(sync=True)

        sheet = Sheet(markup=self.sheet(), pixels=self._pixels(), said=self._said())

        def drawn(change: Mapping[str, Any]) -> None:
            self._image = _checked("pixels", np.reshape(change["new"], self._image.shape), self._image.shape)
            sheet.said = self._said()

        sheet.observe(drawn, "pixels")
        return sheet


def _look() -> str:
    return FOLLOW + Pad.look.read_text("utf-8")


def _checked(name: str, image: Any, shape: tuple[int, ...] | None) -> np.ndarray:
    """An image as an array of float32 from 0 to 1."""
    image = np.asarray(image.numpy() if hasattr(image, "numpy") else image, dtype=np.float32)
    if image.ndim != 2 or not 0 < image.size <= MOST_PIXELS:
        raise ValueError(
            f"pad: {name} has the shape {image.shape}; needs (height, width), with at most "
            f"{counted(MOST_PIXELS, 'pixel')}"
        )
    if shape is not None and image.shape != shape:
        raise ValueError(f"pad: {name} has the shape {image.shape}, but the sheet has {shape}")
    return np.clip(np.nan_to_num(image), 0, 1)


def pad(
    function: Callable[[np.ndarray], Answers],
    *,
    shape: tuple[int, int] = (28, 28),
    start: Any = None,
    title: str = "A sheet to draw on",
) -> Pad:
    """Draw with the mouse, a finger or the keyboard, and see what a function says of it.

    In a running notebook the function is called after each stroke, and its answers are shown as bars. In an
    exported page, and where no kernel runs, you see the sheet as it starts. If the function fails, its
    message stands below the drawing.

    Keys, once the sheet has the focus: the arrows move over the pixels, space draws or erases one, Delete
    clears the sheet.

    Parameters
    ----------
    function : callable
        Is called with an array (height, width), float32, from 0 (paper) to 1 (ink). It returns a mapping from
        each answer to a number from 0 to 1, or a list of such numbers for the answers 0, 1, 2, …. The ten
        largest are shown.
    shape : (height, width)
        Of the sheet, in pixels.
    start : array (height, width), optional
        What is drawn at the start, instead of nothing. It gives the shape.
    title : str
        What the sheet shows, for those who do not see it.

    Returns
    -------
    Pad
        Its `image` is what is drawn now.

    Raises
    ------
    ValueError
        If the sheet has no pixels, or too many.
    TypeError
        If the function returns something else.

    Examples
    --------
    >>> sheet = viz.pad(lambda image: {"ink": image.mean(), "paper": 1 - image.mean()}, shape=(8, 8))
    >>> sheet.image.shape
    (8, 8)
    """
    return Pad(function, _checked("start", np.zeros(shape) if start is None else start, None), title)
