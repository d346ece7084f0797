"""The sliders of `viz.drag`: from what a caller writes, ``(-2, 2)``, to the stops that one can reach."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TypeGuard

import numpy as np

from .text import elide, number

__all__ = ["Slider", "Stop", "is_number", "slider_of"]

STEPS = 200  # from one end of a linear slider to the other, at most
STEPS_IN_A_DECADE = 20  # of a logarithmic slider
DECADES = 3  # from so many powers of ten on, a slider is logarithmic
MOST_STOPS = 1000
STRIDES = (1, 2, 4, 5, 10, 20, 50, 100, 200, 500, 1000)

Stop = float | int | str | bool  # floats become Tensors; anything else a function gets as it is


@dataclass(frozen=True)
class Slider:
    """A slider.

    Attributes
    ----------
    name : str
    stops : tuple of numbers or words
    start : int
        The place of the stop at which it starts.
    """

    name: str
    stops: tuple[Stop, ...]
    start: int

    @property
    def labels(self) -> list[str]:
        """Each stop as people read it."""
        return [_label(stop) for stop in self.stops]

    def few(self, most: int) -> list[int]:
        """The places of about `most` stops, evenly spread; the start and both ends are among them."""
        last = len(self.stops) - 1
        stride = next(x for x in STRIDES if last // x < most)
        return sorted({*range(0, last, stride), self.start, last})

    def place(self, value: object) -> int:
        """The place of the stop that is nearest to a value.

        Raises
        ------
        ValueError
            If the value is beyond the ends, or none of the words.
        """
        if value in self.stops:
            return self.stops.index(value)
        floats = [x for x in self.stops if is_number(x)]
        if len(floats) == len(self.stops) and is_number(value) and min(floats) <= value <= max(floats):
            return min(range(len(floats)), key=lambda place: abs(floats[place] - value))
        ends = f"a number from {self.labels[0]} to {self.labels[-1]}" if floats else f"one of {self.labels}"
        raise ValueError(f"{self.name}: needs {ends}, got {value!r}")


def is_number(thing: object) -> TypeGuard[float]:
    """Whether this is a real number; True and False are not."""
    return isinstance(thing, Real) and not isinstance(thing, (bool, np.bool_))


def slider_of(name: str, given: object) -> Slider | None:
    """The slider that a caller describes, or None if `given` stays fixed.

    Raises
    ------
    ValueError
        If it describes no slider: a range without an inside, a start beyond its ends, a single stop.
    """
    if isinstance(given, tuple):
        return _of_range(name, given)
    if isinstance(given, np.ndarray) and given.ndim == 1:
        given = given.tolist()
    if not isinstance(given, (range, list)):
        return None
    stops = tuple(x.item() if isinstance(x, np.generic) else x for x in given)
    if not all(isinstance(x, (int, float, str)) for x in stops):
        raise ValueError(f"{name}: the stops of a slider are numbers or words, got {elide(repr(given), 60)}")
    if all(map(is_number, stops)) and any(isinstance(x, float) for x in stops):
        stops = tuple(map(float, stops))
    if not 2 <= len(set(stops)) == len(stops) <= MOST_STOPS:
        raise ValueError(
            f"{name}: a slider needs 2 to {MOST_STOPS:,} stops, each once, got {elide(repr(given), 60)}"
        )
    return Slider(name, stops, 0)


def _of_range(name: str, given: tuple) -> Slider:
    """A slider from (low, high) or (low, high, start)."""
    if len(given) not in (2, 3) or not all(is_number(x) and math.isfinite(x) for x in given):
        raise ValueError(
            f"{name}: needs (low, high) or (low, high, start), three numbers, got {elide(repr(given), 60)}; "
            "for stops of your own write a list"
        )
    low, high, *start = map(float, given)
    if not low < high:
        raise ValueError(f"{name}: the range goes from low to high, so ({low:g}, {high:g}) is empty")
    if start and not low <= start[0] <= high:
        raise ValueError(f"{name}: the start {start[0]:g} is not between {low:g} and {high:g}")
    is_log = low > 0 and high / low >= 0.999 * 10**DECADES
    if start:
        first = start[0]
    elif is_log:  # the power of ten in the middle
        first = 10.0 ** round((math.log10(low) + math.log10(high)) / 2)
    else:
        first = low + (high - low) / 2
    inner = [x for x in (_powers if is_log else _steps)(low, high) if low < x < high]
    stops = [low, *inner, high]
    if start:
        stops = sorted({*stops, first})
    return Slider(name, tuple(stops), min(range(len(stops)), key=lambda place: abs(stops[place] - first)))


def _steps(low: float, high: float) -> Iterator[float]:
    """The multiples of a step, which is 1, 2 or 5 times a power of ten."""
    least = (high - low) / STEPS
    power = 10.0 ** math.floor(math.log10(least))
    step = next(x * power for x in (1, 2, 5, 10) if x * power >= 0.999 * least)
    for i in range(math.floor(low / step), math.ceil(high / step) + 1):
        yield float(f"{i * step:.10g}") + 0.0  # no "-0"


def _powers(low: float, high: float) -> Iterator[float]:
    """The same number of steps for each power of ten, in two digits."""
    steps = STEPS_IN_A_DECADE if high / low <= 10.0**STEPS_IN_A_DECADE else 1
    first, last = (math.floor(steps * math.log10(x)) for x in (low, high))
    for i in range(first, last + 2):
        yield float(f"{10 ** (i / steps):.1e}")


def _label(stop: Stop) -> str:
    if not is_number(stop):
        return elide(str(stop))
    is_short = float(f"{stop:.4g}") == stop
    return number(stop) if is_short else f"{stop:.10g}".replace("-", "−")


def labelled(sliders: Sequence[Slider], places: Sequence[int]) -> str:
    """``v1 = 0.5, n = 3``."""
    return ", ".join(f"{x.name} = {x.labels[i]}" for x, i in zip(sliders, places, strict=True))
