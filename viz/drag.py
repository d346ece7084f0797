"""`viz.drag`: a picture with sliders. In a kernel it computes; elsewhere it moves through frames."""

from __future__ import annotations

import base64
import html
import inspect
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import product
from math import prod
from types import FrameType
from typing import Any

import numpy as np

from needle.autograd import Tensor, Value

from .drawing import Drawing, check_size, draw, draw_gradient
from .engines import CannotRender
from .frames import Album, Frame, Places, check_picture, frame_of, packed
from .names import names_in, variables_in
from .picture import LivePicture
from .sliders import Slider, is_number, labelled, slider_of
from .steps import STATIC
from .style import FOLLOW
from .text import counted, elide

__all__ = ["Drag", "drag"]

# How many stops of each slider are computed beforehand: as many as there is time and room for.
STOPS = (5, 11, 21, 41, 101, 201)
MOST_FRAMES = 450
MOST_BYTES = 4_000_000  # of a page
SECONDS_TO_SAVE = 30.0  # for frames, before it is saved
SECONDS_FOR_A_LAYOUT = 0.08


def _seconds(asked: str) -> float:
    """What ``NEEDLE_DRAG_SECONDS`` says."""
    try:
        seconds = float(asked)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        raise ValueError(
            f"NEEDLE_DRAG_SECONDS is {asked!r}: give a number of seconds, such as 120, or unset it"
        )
    return seconds


SECONDS_TO_SHOW = _seconds(os.environ.get("NEEDLE_DRAG_SECONDS") or "2")  # for frames, before it shows itself


class Drag(LivePicture):
    """A picture with sliders below it. It shows itself in a notebook, and saves itself.

    Attributes
    ----------
    sliders : list of Slider
    title : str
    """

    formats = ("html",)  # `at` gives a picture that can be saved in others

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Mapping[str, object],
        *,
        gradient: bool = True,
        frames: int | None = None,
        style: str | None = None,
    ):
        self._function = function
        self._gradient = gradient
        self._looks = {} if style is None else {"style": style}
        self._as_tensors: bool | None = None  # not known before the first call that works
        self._most = frames
        self._known: dict[Places, Frame] = {}
        self._seconds = 0.0  # in which these were computed
        self._fixed = dict(arguments)
        self.sliders: list[Slider] = []
        for name, given in arguments.items():
            slider = slider_of(f"drag: {name}", given)
            if slider is not None:
                self.sliders.append(replace(slider, name=name))
                del self._fixed[name]
        if not self.sliders:
            raise ValueError("drag: there is nothing to drag; give a range, such as v1=(-2, 2)")
        names = [slider.name for slider in self.sliders]
        called = getattr(function, "__name__", "")
        self._called = "" if called == "<lambda>" else called
        self.title = f"{self._called or 'a picture'}, with {' and '.join(names)} to drag"
        check_size("drag: frames", frames, 1)
        self._check_signature(arguments)
        self._check_works()

    def _check_signature(self, arguments: Mapping[str, object]) -> None:
        if not callable(self._function):
            raise TypeError(
                f"drag: needs a function that draws, got {type(self._function).__name__}; write "
                "viz.drag(lambda v1: …, v1=(-2, 2))"
            )
        try:
            inspect.signature(self._function).bind(**arguments)
        except TypeError as error:
            takes = ", ".join(inspect.signature(self._function).parameters) or "nothing"
            raise TypeError(f"drag: the function takes {takes}; you gave {', '.join(arguments)}") from error
        except ValueError:  # it does not say what it takes
            pass

    def _check_works(self) -> None:
        """Raise what the function raises if it does so at the start and at both ends of every slider."""
        try:
            self._picture_at(self.start)
        except Exception:
            others = [p for p in self._alone(2) if p != self.start]
            if all(self._frame(places).error for places in others):
                raise

    @property
    def start(self) -> Places:
        """Where the sliders start."""
        return tuple(slider.start for slider in self.sliders)

    def at(self, **values: object) -> Any:
        """The picture at some values, to save or to look at alone; the other sliders are at their start.

        Returns
        -------
        Drawing, or what the function returns if that is no Tensor
        """
        unknown = sorted(set(values) - {slider.name for slider in self.sliders})
        if unknown:
            raise TypeError(f"at: there is no slider {unknown[0]!r}")
        return self._picture_at(
            tuple(x.place(values[x.name]) if x.name in values else x.start for x in self.sliders)
        )

    # --- one frame ---

    def _picture_at(self, places: Places) -> Any:
        """What the function draws there."""
        result, names = self._result(places)
        if isinstance(result, Value):
            looks: dict[str, Any] = {"names": names, "legend": False, **self._looks}
            if self._gradient and isinstance(result, Tensor) and result.requires_grad:
                return draw_gradient(result, **looks)
            return draw(result, **looks)
        return result

    def _result(self, places: Places) -> tuple[Any, dict[str, Value]]:
        """What the function returns there, and the names of its Tensors.

        It gets Tensors if it makes a graph of them, and plain numbers if it draws something else.
        """
        values = dict(self._fixed)
        values |= {x.name: x.stops[place] for x, place in zip(self.sliders, places, strict=True)}
        if self._as_tensors is not None:
            return self._call(values, self._as_tensors)
        try:
            result = self._call(values, True)
        except Exception as with_tensors:
            try:
                result = self._call(values, False)
            except Exception as with_numbers:
                raise with_numbers if isinstance(with_tensors, TypeError) else with_tensors from None
            check_picture(result[0])
            self._as_tensors = False
            return result
        self._as_tensors = True
        if not isinstance(result[0], (Value, Drawing)):
            try:  # a caption, an axis or NumPy reads a number better than a Tensor of one
                plain = self._call(values, False)
                check_picture(plain[0])
                self._as_tensors = False
                return plain
            except Exception:
                check_picture(result[0])
        return result

    def _call(self, values: Mapping[str, Any], as_tensors: bool) -> tuple[Any, dict[str, Value]]:
        if not as_tensors:
            with _figures_closed():
                return self._function(**values), {}
        arguments = {name: Tensor([x]) if _is_variable(x) else x for name, x in values.items()}
        with _figures_closed(), _Variables() as variables:
            result = self._function(**arguments)
        names = names_in({**arguments, **variables.found})
        if self._called and isinstance(result, Value):
            names.setdefault(result, self._called)
        return result, {name: value for value, name in names.items()}

    def _frame(self, places: Places) -> Frame:
        """The frame there, which is computed once."""
        if places not in self._known:
            begin = time.perf_counter()
            self._known[places] = self._computed(places)
            self._seconds += time.perf_counter() - begin
        return self._known[places]

    def _computed(self, places: Places) -> Frame:
        try:
            return frame_of(self._picture_at(places))
        except CannotRender:
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {elide(str(error), 300)}".rstrip(".: ")
            return Frame(error=f"At {labelled(self.sliders, places)} there is no picture: {what}.")

    # --- frames computed beforehand ---

    def _alone(self, most: int) -> set[Places]:
        """Each slider moves alone."""
        start = self.start
        return {
            (*start[:i], place, *start[i + 1 :]) for i, x in enumerate(self.sliders) for place in x.few(most)
        }

    def _together(self, most: int) -> set[Places]:
        return set(product(*(slider.few(most) for slider in self.sliders)))

    def _count(self, most: int) -> int:
        return prod(len(slider.few(most)) for slider in self.sliders)

    def _grids(self) -> Iterator[set[Places]]:
        """What could be computed beforehand, from little to much."""
        several = len(self.sliders) > 1
        if self._most is not None:
            most = self._most
            yield self._together(most) if self._count(most) <= MOST_FRAMES else self._alone(most)
            return
        for most in STOPS:
            yield self._alone(most)
        for most in STOPS:
            if several and self._count(most) <= MOST_FRAMES:
                yield self._together(most)

    def _beforehand(self, seconds: float) -> Album:
        """As many frames as there is time and room for."""
        frames: dict[Places, Frame] = {}
        for grid in self._grids():
            if frames:
                each = self._seconds / len(self._known) + SECONDS_FOR_A_LAYOUT * _looks(frames) / len(frames)
                size = _size(frames) / len(frames)
                if len(grid) * each > seconds or len(grid) * size > MOST_BYTES:
                    continue
            frames = {places: self._frame(places) for places in sorted(grid | {self.start})}
        return Album(frames)

    def data(self, seconds: float = SECONDS_TO_SHOW) -> dict[str, Any]:
        """What the script needs.

        Raises
        ------
        CannotRender
            If Graphviz is missing.
        """
        return self._data_of(self._beforehand(seconds))

    def _data_of(self, album: Album) -> dict[str, Any]:
        frames = album.frames
        stops = [sorted({places[i] for places in frames}) for i in range(len(self.sliders))]
        together = len(frames) == prod(map(len, stops))
        style = album.style
        return {
            "title": self.title,
            "sliders": [
                {"name": x.name, "labels": x.labels, "start": x.start, "few": few}
                for x, few in zip(self.sliders, stops, strict=True)
            ],
            "pictures": album.pictures,
            "frames": {",".join(map(str, places)): album.shown(frame) for places, frame in frames.items()},
            "together": together,
            "note": self._note(stops, len(frames), together),
            "scheme": style.scheme,
            "colours": {
                "ground": style.css(style.background),
                "ink": style.css(style.text),
                "quiet": style.css(style.quiet),
                "line": style.css(style.forward.line),
                "accent": style.css(style.reuse),
                "failed": style.css(style.boxes["failed"].line),
            },
        }

    def _note(self, stops: Sequence[Sequence[int]], count: int, together: bool) -> str:
        """Which frames there are, in words."""
        here = f"Here are {counted(count, 'picture')} that were computed beforehand"
        values = [f"{len(few)} values of {x.name}" for x, few in zip(self.sliders, stops, strict=True)]
        if all(len(few) == len(x.stops) for x, few in zip(self.sliders, stops, strict=True)) and together:
            return f"{here}: one for each value."
        if len(values) == 1:
            return f"{here}. In a running notebook you can drag to any value."
        if together:
            return f"{here}: {' times '.join(values)}. In a running notebook you can drag to any value."
        return (
            f"{here}: {', '.join(values)}. One slider moves at a time, and the others go back to their "
            "start. In a running notebook they move together."
        )

    # --- showing ---

    def html(self) -> str:
        """The picture with its sliders as a piece of a web page that needs nothing else.

        It moves through frames that are computed beforehand: as many as two seconds allow, or as the
        environment variable ``NEEDLE_DRAG_SECONDS`` says. Where scripts do not run, it shows the picture at
        the start.

        Raises
        ------
        CannotRender
            If Graphviz is missing.
        """
        return self._html(self.data())

    def _html(self, data: Mapping[str, Any]) -> str:
        script = (STATIC / "drag.js").read_text("utf-8")
        written = packed(json.dumps(data, ensure_ascii=False))
        return (
            f"<style>{_look()}</style>"
            f'<div data-needle-drag="{written}" data-lm-suppress-shortcuts="true">{self._still()}</div>'
            f'<script type="module">\n{script}\ndragAll(document);\n</script>'
        )

    def _still(self) -> str:
        """The picture at the start as an image."""
        frame = self._frame(self.start)
        if frame.error:
            return f"<p>{html.escape(frame.error)}</p>"
        if frame.drawing is None:
            return str(frame.look)
        data = base64.b64encode(frame.drawing.svg().encode()).decode()
        title = html.escape(self.title)
        return f'<img alt="{title}" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'

    def _instead(self) -> str:
        return f", or save the picture at one place: drag.at({self.sliders[0].name}=…).save(…)"

    def _page(self) -> str:
        return self._as_page(self._html(self.data(SECONDS_TO_SAVE)))

    @cached_property
    def widget(self) -> Any:
        """The picture as a widget (an `anywidget.AnyWidget`), which computes each move in the kernel.

        Raises
        ------
        ImportError
            If the package anywidget is missing.
        """
        import anywidget
        import traitlets

        class Sliders(anywidget.AnyWidget):
            _esm = STATIC / "drag.js"
            _css = _look()
            data = traitlets.Dict().tag(sync=True)

        album = self._beforehand(SECONDS_TO_SHOW)
        widget = Sliders(data=self._data_of(album))
        widget.on_msg(lambda widget, asked, buffers: widget.send(self._answer(album, asked)))
        return widget

    def _answer(self, album: Album, asked: Any) -> dict[str, Any]:
        """The frame that the script asked for: ``{"number": 3, "places": [100, 0]}``."""
        places = tuple(int(place) for place in asked["places"])
        if len(places) != len(self.sliders) or not all(
            0 <= place < len(slider.stops) for place, slider in zip(places, self.sliders, strict=True)
        ):
            raise ValueError(f"drag: there are no such places: {places}")
        frame = self._computed(places)
        known = len(album.pictures)
        if frame.look and frame.drawing is None:  # an image, which does not come back
            return {
                "number": asked["number"], "frame": ["now", []],
                "pictures": {"now": {"markup": frame.look, "nodes": []}},
            }  # fmt: skip
        shown = album.shown(frame)
        return {
            "number": asked["number"],
            "frame": shown,
            "pictures": dict(enumerate(album.pictures[known:], known)),
        }


def _look() -> str:
    return FOLLOW + (STATIC / "drag.css").read_text("utf-8")


def _looks(frames: Mapping[Places, Frame]) -> int:
    return len({frame.look for frame in frames.values() if frame.graph})


def _size(frames: Mapping[Places, Frame]) -> int:
    """About how many bytes the frames take on a page."""
    pictures = {frame.look: frame.size for frame in frames.values()}
    return sum(pictures.values()) + sum(len(text) + 4 for frame in frames.values() for text in frame.texts)


@contextmanager
def _figures_closed() -> Iterator[None]:
    """Close the figures that are opened within this block: a notebook would show each below the sliders."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    before = set(pyplot.get_fignums()) if pyplot else set()
    try:
        yield
    finally:
        pyplot = sys.modules.get("matplotlib.pyplot")
        for number in set(pyplot.get_fignums()) - before if pyplot else ():
            pyplot.close(number)


def _is_variable(x: object) -> bool:
    """Whether a function gets this value as a Tensor: a number, but not one that counts."""
    return is_number(x) and isinstance(x, (float, np.floating))


class _Variables:
    """Within this block: the variables of the first function that is called, when it returns."""

    def __enter__(self) -> _Variables:
        self.found: dict[str, object] = {}
        self._frame: FrameType | None = None
        self._before = sys.getprofile()
        sys.setprofile(self._follow)
        return self

    def _follow(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and self._frame is None:
            self._frame = frame
        elif event == "return" and frame is self._frame:
            self.found = variables_in(frame.f_locals, frame.f_globals)

    def __exit__(self, *error: object) -> None:
        sys.setprofile(self._before)
        self._frame = None


def drag(
    function: Callable[..., Any],
    /,
    *,
    gradient: bool = True,
    frames: int | None = None,
    style: str | None = None,
    **arguments: Any,
) -> Drag:
    """Drag the inputs of a picture: sliders below it, and the picture follows.

    The function gets its arguments by name and returns what to draw. Of a Tensor you see the gradient graph,
    whose values and adjoints change in their boxes while you drag; the layout stays as long as the graph has
    the same nodes. It may as well return a figure of matplotlib, or any picture of `viz`.

    In a notebook each move is computed by the kernel. Saved, exported or without a kernel, the picture moves
    through frames that were computed beforehand, and says which there are. If the function fails at some
    value, its message takes the place of the picture, and the sliders go on.

    Parameters
    ----------
    function : callable
        With the variables that you name in it, the picture calls them the same.
    **arguments
        What each argument of the function is:

        - ``v1=(-2, 2)``: a slider from low to high. It starts in the middle; ``(-2, 2, 0.5)`` says where
          else. Over three powers of ten or more, as in ``(1e-8, 1)``, it is logarithmic.
        - ``n=range(1, 11)``: a slider over whole numbers, which starts at the first.
        - ``name=["relu", "tanh"]``, or a list of numbers: a slider with these stops.
        - ``v2=1.5``, or anything else: fixed.

        A function that computes with Tensors gets floats as Tensors of shape (1,), among them all numbers of
        a range (low, high); one that draws something else gets plain numbers. Integers are plain numbers to
        both: they count, as in ``for _ in range(n)``.
    gradient : bool
        Whether to draw the gradient graph of a Tensor, or only its computational graph.
    frames : int, optional
        About how many stops of each slider are computed beforehand. By default as many as two seconds allow
        (or as ``NEEDLE_DRAG_SECONDS`` says, in the environment), and thirty when you save it. With more than
        one slider, each moves alone if there would be more than 450 frames.
    style : "needle", "d2l", "print" or "dark", optional
        As for `draw`.

    Returns
    -------
    Drag

    Raises
    ------
    TypeError
        If the function takes other arguments, or returns nothing to draw.
    ValueError
        If nothing can be dragged, or a range is empty.

    Examples
    --------
    >>> def v4(v1):
    ...     v2 = ndl.exp(v1)
    ...     v3 = v2 + 1
    ...     return v2 * v3
    >>> viz.drag(v4, v1=(-2, 2))
    >>> viz.drag(lambda e: viz.curve(errors(e)), e=(1e-8, 1)).save("steps.html")
    """
    return Drag(function, arguments, gradient=gradient, frames=frames, style=style)
