"""`viz.memory`: what a Tensor keeps alive, the nodes that it leads to and the bytes of their arrays.

It is a picture of how the memory grows, node by node, and a table of what takes most.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from needle.autograd import Tensor, Value
from needle.backend_selection import NDArray
from needle.graph import Pending, find_topo_sort
from needle.nn import Parameter

from .constants import around
from .names import names_of, values_of
from .operators import symbol
from .picture import Picture
from .plots.growth import GRADIENTS, LEAVES, PARAMETERS, draw_growth
from .plots.theme import PictureFigure
from .storage import arrays_of, storage_of
from .text import byte_count, counted, elide

__all__ = ["Kept", "Memory", "memory"]

MOST_ROWS = 20  # are shown of a table
COLUMNS = ("bytes", "name", "made by", "shape", "dtype", "")


@dataclass(frozen=True)
class Kept:
    """A node that is kept alive, or an array that is kept for one.

    Attributes
    ----------
    name, made_by : str
        `made_by` is the operator, or the kind of a leaf.
    group : str
        What it is counted with in the picture: "parameters", "leaves" (all other ones), "gradients", or the
        module or operator that made it.
    bytes : int
        The size of its array's storage; 0 if that counts elsewhere, or is not computed yet.
    shape : tuple of int or None
        None for a TensorTuple.
    dtype : str
    note : str
        Which storage it shares, or how much of its storage it uses.
    """

    name: str
    made_by: str
    group: str
    bytes: int
    shape: tuple[int, ...] | None
    dtype: str
    note: str = ""


@dataclass(frozen=True, repr=False)
class Memory(Picture):
    """All that some Tensors keep alive. It shows itself as a picture, and as a table, the largest first.

    Attributes
    ----------
    title : str
    kept : tuple of Kept
        In the order in which they were computed: forward, then gradients.
    nodes : int
        How many of these are nodes; the others are arrays that nodes keep.
    """

    title: str
    kept: tuple[Kept, ...]
    nodes: int

    @cached_property
    def rows(self) -> tuple[Kept, ...]:
        """The largest first; those of the same size in the order in which they were computed."""
        return tuple(sorted(self.kept, key=lambda row: -row.bytes))

    @property
    def total(self) -> int:
        """Bytes of all storages, each counted once."""
        return sum(row.bytes for row in self.kept)

    @property
    def _more(self) -> tuple[int, int]:
        """How many rows are not shown, and their bytes."""
        hidden = self.rows[MOST_ROWS:]
        return len(hidden), sum(row.bytes for row in hidden)

    def _cells(self) -> list[tuple[str, ...]]:
        """The table, without its head."""
        shown: list[tuple[str, ...]] = [
            (
                byte_count(row.bytes),
                elide(row.name),
                elide(row.made_by),
                "" if row.shape is None else elide(str(row.shape), 24),
                row.dtype,
                row.note,
            )
            for row in self.rows[:MOST_ROWS]
        ]
        hidden, size = self._more
        return [*shown, (byte_count(size), f"… {hidden:,} more", "", "", "", "")] if hidden else shown

    def __repr__(self) -> str:
        table = [COLUMNS, *self._cells()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join([row[0].rjust(widths[0]), *map(str.ljust, row[1:], widths[1:])]).rstrip()
            for row in table
        ]
        return "\n".join([self.title, *lines])

    def html(self, *, as_text: bool = False) -> str:
        """The picture and the table, as a piece of a web page; the picture's words `as_text` if you like."""
        return f"{self._figure.html(as_text=as_text)}{self._table()}"

    def _file(self, kind: str) -> bytes:
        return self._figure._file(kind)

    @cached_property
    def _figure(self) -> PictureFigure:
        return draw_growth(self.title, self.kept)

    def _table(self) -> str:
        def line(tag: str, cells: Sequence[str]) -> str:
            sides = ["right", *["left"] * (len(cells) - 1)]
            return "".join(
                f'<{tag} style="text-align:{side};padding:2px 10px;white-space:nowrap">'
                f"{html.escape(cell)}</{tag}>"
                for cell, side in zip(cells, sides, strict=True)
            )

        body = "".join(f"<tr>{line('td', cells)}</tr>" for cells in self._cells())
        return (
            f'<div style="overflow-x:auto"><table style="border-collapse:collapse;color:inherit">'
            f'<caption style="text-align:left;caption-side:top;padding:4px 10px;color:inherit">'
            "<b>what takes most</b></caption>"
            f'<thead><tr style="border-bottom:1px solid">{line("th", COLUMNS)}</tr></thead>'
            f'<tbody style="font-variant-numeric:tabular-nums">{body}</tbody></table></div>'
        )


def memory(tensors: Value | Sequence[Value], *, names: Mapping[str, Value] | None = None) -> Memory:
    """What one or several Tensors keep alive, as a picture and a table. Nothing is computed.

    A Tensor keeps the inputs that it was computed from, and they keep theirs: a loss that is summed up over a
    whole training keeps all of it, and ``loss.detach()`` keeps nothing but its number. The table counts

    - every node that can be reached through `inputs` and through `grad`;
    - the storages of their arrays, once each: a view (reshape, permute, broadcast, a slice) shares the
      storage of the array that it looks at, and keeps all of it; a detached Tensor shares it too;
    - arrays that a node keeps for its gradient (the value of an operand before a write, what its operator
      holds), and those that a lazy node will be computed from.

    It does not count the Python objects themselves, about a thousand bytes for each node.

    Parameters
    ----------
    tensors : Tensor, TensorTuple, or sequence of them
    names : dict from str to Tensor, optional
        What to call the nodes. By default they have the names of your own variables; all others are called
        n1, n2, …, as in `viz.draw`.

    Returns
    -------
    Memory
        A picture of how the memory grows from node to node, forward and then backward, with a table below
        it. It has the `rows` of the table, the `total` in bytes, and the number of `nodes`.

    Examples
    --------
    >>> sum_loss = ndl.Tensor([0.0])
    >>> for x in data:
    ...     sum_loss = sum_loss + x * x
    >>> viz.memory(sum_loss)  # all of data is still there
    """
    outputs = values_of("memory", tensors)
    known = names_of(names, sys._getframe(1))
    forward = set(find_topo_sort(dict.fromkeys(outputs)))
    nodes = _nodes(outputs)
    called = _names(nodes, known)
    owners: dict[int, str] = {}  # id of a storage -> where it is counted
    rows: list[list[Kept]] = []  # of each node
    for node in nodes:
        group = _group(node) if node in forward else GRADIENTS
        row = _row(called[node], _made_by(node), group, arrays_of(node._data), owners)
        if isinstance(node, Tensor):
            row = replace(row, shape=node.shape, dtype=str(node.dtype))
        rows.append([row])
    for node, of_node in zip(nodes, rows, strict=True):
        for what, arrays in _kept_for(node, called):
            unknown = [array for array in arrays if id(storage_of(array)[0]) not in owners]
            if unknown:
                of_node.append(_row(what, "", of_node[0].group, unknown, owners))
    kept = tuple(row for of_node in rows for row in of_node)
    of = [called[node] for node in dict.fromkeys(outputs)]
    bytes_kept = byte_count(sum(row.bytes for row in kept))
    title = f"{elide(', '.join(of), 60)} {'keeps' if len(of) == 1 else 'keep'} alive: "
    return Memory(f"{title}{counted(len(nodes), 'node')}, {bytes_kept} of arrays", kept, len(nodes))


def _group(node: Value) -> str:
    """What a node of the forward graph is counted with: its module, or else what made it."""
    if node.op is None:
        return PARAMETERS if isinstance(node, Parameter) else LEAVES
    path = around(node.scope)
    return path[min(1, len(path) - 1)].name if path else symbol(node.op)


def _nodes(outputs: Sequence[Value]) -> list[Value]:
    """Every node that can be reached through `inputs` and `grad`, each after its inputs."""
    nodes: dict[Value, None] = {}
    reached = find_topo_sort(dict.fromkeys(outputs))
    while reached:
        new = [node for node in reached if node not in nodes]
        nodes.update(dict.fromkeys(new))
        reached = find_topo_sort(node.grad for node in reversed(new) if isinstance(node.grad, Value))
        if all(node in nodes for node in reached):
            break
    return list(nodes)


def _names(nodes: Sequence[Value], given: Mapping[Value, str]) -> dict[Value, str]:
    """The names of the nodes, the same as in a drawing."""
    called = {node: given.get(node, f"n{number}") for number, node in enumerate(nodes, 1)}
    for node in nodes:
        if isinstance(node.grad, Value) and node.grad not in given:
            called[node.grad] = f"{called[node]}.grad"
    return called


def _made_by(node: Value) -> str:
    if node.op is not None:
        return symbol(node.op)
    return "parameter" if isinstance(node, Parameter) else "leaf" if node.requires_grad else "constant"


def _row(name: str, made_by: str, group: str, arrays: Sequence[NDArray], owners: dict[int, str]) -> Kept:
    """A row of the table; it counts those storages of `arrays` that have no owner yet."""
    sizes: dict[int, int] = {}
    in_use, notes = 0, []
    for array in arrays:
        storage, size = storage_of(array)
        if id(storage) in owners:
            notes.append(f"in the storage of {elide(owners[id(storage)])}")
        else:
            sizes[id(storage)] = size
            in_use += array.size * array.dtype.itemsize
    owners.update(dict.fromkeys(sizes, name))
    total = sum(sizes.values())
    if in_use < total:
        notes.append(f"uses {byte_count(in_use)} of them")
    if not arrays:
        notes.append("not computed yet")
    dtypes = dict.fromkeys(str(array.dtype) for array in arrays)
    shape = tuple(arrays[0].shape) if len(arrays) == 1 else None
    return Kept(name, made_by, group, total, shape, ", ".join(dtypes), ", ".join(dict.fromkeys(notes)))


def _kept_for(node: Value, called: Mapping[Value, str]) -> Iterator[tuple[str, list]]:
    """Arrays that a node keeps besides its own, each with a description."""
    for x, operand in zip(node.inputs, node._operands, strict=False):
        yield f"{called[x]}, before a write", arrays_of(operand)
    yield f"{called[node]}, before a write", arrays_of(node._overwritten)
    if node.op is not None:
        for thing in vars(node.op).values():
            if isinstance(thing, (NDArray, np.ndarray)):
                yield f"in {symbol(node.op)}", [thing]
            elif isinstance(thing, Value):
                yield f"in {symbol(node.op)}", arrays_of(thing._data)
    waiting, seen = [node._data], set()
    while waiting:
        cell = waiting.pop()
        if type(cell) is not Pending or cell in seen or cell.operands is None:
            continue
        seen.add(cell)
        for operand in cell.operands:
            yield f"for {symbol(cell.op)}, lazy" if cell.op else "", arrays_of(operand)
            waiting.append(operand)
