"""`viz.module_tree`: the tree of a network's modules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from needle.nn import Module, Parameter

from ..drawing import check_size
from ..operators import in_words
from ..text import counted, elide
from .look import BLUE, FAINT, GREY, INK, MAGENTA, PALE_BLUE, PALE_GREY, QUIET, figure_of
from .sketch import SMALL, Sketch, text_width
from .theme import PictureFigure

__all__ = ["module_picture", "module_tree"]

ROW = 19.0  # points
INDENT = 20.0
BAR = 90.0
MOST_ROWS = 80


@dataclass
class _Row:
    """A line of the tree: one module, or several neighbours that are built alike."""

    name: str
    depth: int
    module: Module
    settings: str
    tensors: str
    parameters: int
    times: int = 1
    same_as: str = ""
    parts: list[_Row] = field(default_factory=list)

    def look(self) -> tuple:
        """What two modules have in common if they are built alike."""
        return (
            *(type(self.module), self.settings, self.tensors, self.parameters, self.same_as),
            tuple((part.name, part.times, part.look()) for part in self.parts),
        )


def module_tree(model: Module, *, depth: int | None = None, ax: Axes | None = None) -> Axes:
    """Draw the tree of a network's modules: names, classes, settings, shapes and numbers of parameters.

    Neighbours that are built alike are drawn once, with their number. A module in several places counts at
    the first of them and is marked at the others. The bars compare numbers of parameters.

    Parameters
    ----------
    model : Module
    depth : int, optional
        Draw this many levels below `model`. Default: all, or as many as fit.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> viz.module_tree(nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1)))
    """
    if not isinstance(model, Module):
        raise TypeError(f"module_tree: needs a Module, got {type(model).__name__}")
    check_size("module_tree: depth", depth, 0)
    root = _tree(model, "", "", 0, {})
    if depth is None:
        depth = max(row.depth for row in _lines(root, 10**6))
        while depth > 1 and len(_lines(root, depth)) > MOST_ROWS:
            depth -= 1
    return _draw(_lines(root, depth), root, depth, ax)


def module_picture(model: Module, depth: int | None) -> PictureFigure:
    """The same as a picture of its own, which `viz.draw` returns for a model."""
    figure = cast(PictureFigure, figure_of(module_tree(model, depth=depth)))
    plt.close(figure)  # or a notebook would show it twice
    return figure


def _tree(module: Module, name: str, path: str, depth: int, seen: dict[int, str]) -> _Row:
    if id(module) in seen:
        same = seen[id(module)] or "the whole"
        return _Row(name, depth, module, "", "", 0, same_as=same)
    seen[id(module)] = path
    parts, tensors = _contents(module)
    settings = ", ".join(
        f"{key}={in_words(value) if isinstance(value, float) else repr(value)}"
        for key, value in vars(module).items()
        if isinstance(value, (bool, int, float, str)) and not key.startswith("_") and key != "training"
    )
    shapes = ", ".join(f"{key} {_times(tensor.shape)}" for key, tensor in tensors)
    row = _Row(name, depth, module, settings, shapes, sum(p.size for p in module.parameters()))
    for key, part in parts:
        row.parts.append(_tree(part, key, f"{path}.{key}".removeprefix("."), depth + 1, seen))
    row.parts = _folded(row.parts)
    return row


def _contents(module: Module) -> tuple[list[tuple[str, Module]], list[tuple[str, Parameter]]]:
    """The modules and parameters among a module's attributes, and in lists and dictionaries there."""
    modules: list[tuple[str, Module]] = []
    parameters: list[tuple[str, Parameter]] = []
    around: list[int] = []

    def look(name: str, thing: Any) -> None:
        if isinstance(thing, Module):
            modules.append((name, thing))
        elif isinstance(thing, Parameter):
            parameters.append((name, thing))
        elif isinstance(thing, (dict, list, tuple)) and id(thing) not in around:
            around.append(id(thing))
            for key, item in thing.items() if isinstance(thing, dict) else enumerate(thing):
                look(f"{name}.{key}", item)
            around.pop()

    for name, thing in vars(module).items():
        # The modules of a Sequential are named by their numbers.
        if name == "modules" and isinstance(thing, (list, tuple)):
            for key, item in enumerate(thing):
                look(str(key), item)
        else:
            look(name, thing)
    return modules, parameters


def _folded(rows: list[_Row]) -> list[_Row]:
    """Neighbours that are built alike as one row."""
    folded: list[_Row] = []
    for row in rows:
        if folded and folded[-1].look() == row.look() and not row.same_as:
            last = folded[-1]
            last.times += 1
            last.name = f"{last.name.split(' … ')[0]} … {row.name}"
        else:
            folded.append(row)
    return folded


def _lines(row: _Row, depth: int) -> list[_Row]:
    if row.depth >= depth:
        return [row]
    return [row, *(line for part in row.parts for line in _lines(part, depth))]


def _times(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "()"


def _draw(rows: list[_Row], root: _Row, depth: int, ax: Axes | None) -> Axes:
    sketch = Sketch()
    words = [(_name(row), _class(row, depth)) for row in rows]
    ends = []
    for row, (name, kind) in zip(rows, words, strict=True):
        x = row.depth * INDENT
        if name:
            x += text_width(name, 8.5) + 7
        ends.append(x + text_width(kind, 8.5, True) + 14)
    middle = max(ends) + 16
    settings = [elide(row.settings, 74) for row in rows]
    shapes = [elide(row.tensors, 44) for row in rows]
    after = middle + max(text_width("settings", SMALL), *(text_width(s, SMALL) for s in settings)) + 16
    bars = after + max(text_width("shapes", SMALL), *(text_width(s, SMALL) for s in shapes)) + 16
    heads = ((0, "module"), (middle, "settings"), (after, "shapes"), (bars, "parameters"))
    for x, head in heads:
        sketch.text(x, 0, head, size=SMALL, colour=QUIET)
    sketch.line((0, 9), (bars + BAR + 56, 9), FAINT)
    reached: dict[int, float] = {}  # by depth, the lower end of the line to a module's parts
    for place, (row, (name, kind)) in enumerate(zip(rows, words, strict=True)):
        y = 22 + place * ROW
        x = row.depth * INDENT
        if row.depth:
            trunk = x - INDENT + 7
            sketch.path([(trunk, reached[row.depth]), (trunk, y), (x - 1, y)], "#98A2B3", thick=0.8)
            reached[row.depth] = y
        reached[row.depth + 1] = y + 7.5
        if name:
            x += sketch.text(x + 2, y, name, size=8.5, colour=GREY) + 7
        inner = bool(row.parts)
        width = text_width(kind, 8.5, True) + 10
        sketch.box(
            *(x, y - 7.5, width, 15),
            PALE_GREY if inner or row.same_as or not row.parameters else PALE_BLUE,
            MAGENTA if row.same_as else "#98A2B3" if inner or not row.parameters else BLUE,
            words=kind,
            size=8.5,
            bold=True,
            rounded=4,
            dashed=bool(row.same_as),
            colour=INK,
            gid="module",
        )
        if row.same_as:
            sketch.text(middle, y, f"the same as {row.same_as}", size=SMALL, colour=MAGENTA)
        sketch.text(middle, y, settings[place], size=SMALL, colour=GREY)
        sketch.text(after, y, shapes[place], size=SMALL, colour=GREY)
        if row.parameters:
            share = row.parameters * row.times / max(root.parameters, 1)
            fill = BLUE if not inner else "#A9C4F5"
            sketch.box(bars, y - 4, max(BAR * min(share, 1.0), 0.8), 8, fill, "none")
            each = f"{row.times} × {row.parameters:,}" if row.times > 1 else f"{row.parameters:,}"
            sketch.text(bars + BAR * min(share, 1.0) + 5, y, each, size=SMALL, colour=INK)
    return sketch.on(ax, f"{type(root.module).__name__}: {counted(root.parameters, 'parameter')}")


def _name(row: _Row) -> str:
    return f"{row.name}:" if row.name else ""


def _class(row: _Row, depth: int) -> str:
    """A class, its number if there are several, and how much inside is not drawn."""
    words = type(row.module).__name__
    if row.times > 1:
        words += f"  × {row.times}"
    inside = len(row.module._children())
    if row.depth >= depth and row.parts:
        words += f"  ({inside} inside)"
    return words
