"""Simplify: what need not be computed, and loops that are in step.

The loops that operators write down are not yet those of a good programmer. Here numbers take the place of
constants, what is computed twice is computed once, and what nobody reads is left out. A product that is only
scaled and added to a parameter becomes one call of BLAS (`_accumulated`).

Before they are scheduled, loops are cut (`cut`). An elementwise operator goes through a compact array of
shape (10, 8) by one loop over 80 numbers; the product before it was written by loops over 10 and 8. Cut at
the stride 8, the long loop becomes two, and `schedule.py` can see that both go through the batch.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..backend_ndarray.scalar_functions import SCALAR_FUNCTIONS
from ..backend_ndarray.strides import compact_strides
from ..stand_ins import Number
from .lower import Access, Buffer, Call, Nest

__all__ = ["cut", "simplify"]


def simplify(steps: list[Nest | Call], wanted: set[Buffer], accumulates: bool = True) -> list[Nest | Call]:
    """Leave out what nobody needs and what is computed twice; put numbers in the place of constants.

    Steps are changed in place; which are left is returned.

    Parameters
    ----------
    steps : list of Nest or Call
    wanted : set of Buffer
    accumulates : bool
        Whether matrix products can add to what is there.
    """
    steps = _needed(_without_repeats(_with_numbers(steps)), wanted)
    return _accumulated(steps) if accumulates else steps


def _writers(steps: Iterable[Nest | Call]) -> Counter:
    return Counter(x for step in steps for x in step.written)


def _with_numbers(steps: list[Nest | Call]) -> list[Nest | Call]:
    """A buffer that holds one number everywhere is that number; what follows from numbers alone is one."""
    writers = _writers(steps)
    values: dict[Buffer, Any] = {}

    def number_of(x: Any, wanted: np.dtype) -> Any:
        """A number in the place of what is read, if it is the same number in the `wanted` type."""
        if not isinstance(x, Access):
            return x
        value, dtype = values.get(x.buffer, x.buffer.value), x.buffer.dtype
        wider = dtype.kind == wanted.kind == "f" and dtype.itemsize <= wanted.itemsize
        return x if value is None or not (dtype == wanted or wider) else value

    for step in steps:
        if isinstance(step, Call) or step.is_check or step.product:  # BLAS needs arrays
            continue
        step.reads = [number_of(x, step.out.buffer.dtype) for x in step.reads]
        if step.fold is None and step.function in ("multiply", "divide", "power"):
            a, b = step.reads
            if _is_one(b):
                step.function, step.reads = "copy", [a]
            elif _is_one(a) and step.function == "multiply":
                step.function, step.reads = "copy", [b]
        out = step.out.buffer
        covers = math.prod(step.shape) == out.size and writers[out] == 1 and out.is_ours
        if covers and step.fold is None and all(map(_is_number, step.reads)):
            values[out] = _computed(step.function, step.reads, out.dtype)
    return steps


def _is_number(x: Any) -> bool:
    return type(x) in (int, float, bool)


def _is_one(x: Any) -> bool:
    return _is_number(x) and x == 1


def _computed(function: str, numbers: list[Any], dtype: np.dtype) -> Any:
    """A row of the table for numbers, in the arithmetic of `dtype`."""
    operands = [np.asarray(x, dtype) for x in numbers]
    with np.errstate(all="ignore"):
        result = operands[0] if function == "copy" else SCALAR_FUNCTIONS[function].numpy(*operands)
    return np.asarray(result, dtype).item()


def _without_repeats(steps: list[Nest | Call]) -> list[Nest | Call]:
    """Of two nests that compute the same, the first does for both."""
    writers = _writers(steps)
    same: dict[Buffer, Buffer] = {}
    known: dict[Any, Buffer] = {}
    kept: list[Nest | Call] = []

    def renamed(x: Any) -> Any:
        if not isinstance(x, Access):
            return x
        index = renamed(x.via)
        return x._replace(buffer=same.get(x.buffer, x.buffer), via=index)

    for step in steps:
        if isinstance(step, Call):
            for operand in step.operands:
                for array in operand if isinstance(operand, tuple) else (operand,):
                    array._handle = same.get(array._handle, array._handle)
            kept.append(step)
            continue
        step.reads = [renamed(x) for x in step.reads]
        step.out = renamed(step.out)
        out = step.out.buffer
        stable = all(writers[x] <= 1 for x in step.read)
        if writers[out] == 1 and step.fold is None and out.is_ours and stable:
            whole = Access(out, 0, step.out.strides) == step.out and _is_compact(step)
            source = step.reads[0]
            if (
                whole
                and step.function == "copy"
                and isinstance(source, Access)
                and source.via is None
                and source.offset == 0
                and source.strides == step.out.strides
                and source.buffer.size == out.size
                and source.buffer.dtype == out.dtype
                and source.buffer.is_ours
                and writers[source.buffer] <= 1
            ):
                same[out] = source.buffer  # a copy of the whole
                continue
            key = (
                step.function,
                step.shape,
                step.out.strides,
                step.out.offset,
                out.size,
                out.dtype,
                *map(_key, step.reads),
            )
            if key in known:
                same[out] = known[key]
                continue
            known[key] = out
        kept.append(step)
    return kept


def _key(x: Any) -> Any:
    if isinstance(x, Access):
        return x
    return type(x), x.text if isinstance(x, Number) else repr(x)  # 0.0 is not -0.0


def _is_compact(step: Nest) -> bool:
    return math.prod(step.shape) == step.out.buffer.size


def _needed(steps: list[Nest | Call], wanted: set[Buffer]) -> list[Nest | Call]:
    """The steps that lead to the wanted buffers."""
    needed = set(wanted)
    kept = []
    for step in reversed(steps):
        if step.is_check or needed.intersection(step.written):
            needed.update(step.read)
            kept.append(step)
    return kept[::-1]


def _accumulated(steps: list[Nest | Call]) -> list[Nest | Call]:
    """Let BLAS add a product to what is there: ``W - lr * (x.T @ d)`` needs no array for the gradient.

    That is a product whose result is only scaled by numbers and added to W, and only W gets the sum.
    """
    readers: dict[Buffer, list[Any]] = defaultdict(list)
    for step in steps:
        for buffer in step.read:
            readers[buffer].append(step)
    gone: set[Nest] = set()
    updated = {buffer for step in steps for buffer in step.written if not buffer.is_ours}
    for product in steps:
        if not (isinstance(product, Nest) and product.product):
            continue
        if any(isinstance(x, Access) and x.buffer in updated for x in product.reads):
            continue  # it must read the value from before, and is done last here
        chain: list[Nest] = []
        scales: list[tuple[str, Any]] = []
        current = product.out.buffer
        while current.is_ours and len(readers[current]) == 1:
            (user,) = readers[current]
            if not isinstance(user, Nest) or user.fold is not None or not _is_elementwise(user, current.size):
                break
            chain.append(user)
            numbers = [x for x in user.reads if not isinstance(x, Access)]
            others = [x for x in user.reads if isinstance(x, Access) and x.buffer is not current]
            if user.function == "negate" or (user.function == "multiply" and numbers):
                scales.append((user.function, *numbers))
                current = user.out.buffer
                continue
            if user.function == "add" and others:
                target = others[0].buffer
                users = readers[user.out.buffer]
                write: Any = users[0] if len(users) == 1 else None
                is_copy = isinstance(write, Nest) and write.function == "copy"
                if is_copy and write.out.buffer is target and not target.is_ours:
                    product.scales = scales
                    product.out = product.out._replace(buffer=target)
                    gone.update([*chain, write])
                    steps = [step for step in steps if step is not product]
                    steps.append(product)
            break
    return [step for step in steps if step not in gone]


def _is_elementwise(nest: Nest, size: int) -> bool:
    """Whether all that it reads and writes are whole arrays in the same order."""
    whole = compact_strides(nest.shape)
    return math.prod(nest.shape) == size and all(
        x.strides == whole and x.offset == 0 and x.via is None and x.buffer.size == size
        for x in nest.accesses
    )


# Cut: the loops of all nests in the same pieces


def cut(nests: list[Nest]) -> None:
    """Cut loops into pieces, until those over the same buffer are in step.

    An elementwise kernel goes through a compact array of shape (10, 8) by one loop over 80 numbers. A product
    wrote it by loops over 10 and 8. So the long loop is cut at the stride 8.
    """
    cuts: dict[Buffer, set[int]] = defaultdict(set)
    users: dict[Buffer, list[Nest]] = defaultdict(list)
    for nest in nests:
        _drop_short(nest)
        for x in nest.accesses:
            users[x.buffer].append(nest)
    waiting = list(nests)
    queued = set(waiting)
    while waiting:
        nest = waiting.pop()
        queued.discard(nest)
        _cut_nest(nest, cuts)
        for x in nest.accesses:
            new = {abs(s) for s in x.strides if s} - cuts[x.buffer]
            if new:
                cuts[x.buffer] |= new
                for user in users[x.buffer]:
                    if user not in queued:
                        queued.add(user)
                        waiting.append(user)


def _drop_short(nest: Nest) -> None:
    """Leave out loops of one iteration."""
    if nest.product:  # BLAS takes the last three as they are
        kept = [i for i, n in enumerate(nest.shape) if n != 1 or i >= len(nest.shape) - 3]
    else:
        kept = [i for i, n in enumerate(nest.shape) if n != 1]
    if len(kept) < len(nest.shape):
        _rewrite(nest, [nest.shape[i] for i in kept], lambda strides: tuple([strides[i] for i in kept]))


def _rewrite(nest: Nest, shape: Iterable[int], change: Any) -> None:
    """Give a nest other loops; `change` turns an access's strides into those for the new loops."""

    def changed(x: Any) -> Any:
        if not isinstance(x, Access):
            return x
        return x._replace(strides=change(x.strides), via=changed(x.via))

    nest.shape = tuple(shape)
    nest.out = changed(nest.out)
    nest.reads = [changed(x) for x in nest.reads]


def _cut_nest(nest: Nest, cuts: dict[Buffer, set[int]]) -> None:
    free = len(nest.shape) - (3 if nest.product else 0)
    axis = 0
    while axis < free:
        piece = _piece(nest, axis, cuts)
        if piece:
            n = nest.shape[axis]
            shape = (*nest.shape[:axis], n // piece, piece, *nest.shape[axis + 1 :])
            _rewrite(
                nest,
                shape,
                lambda s, a=axis, p=piece: (*s[:a], s[a] * p, *s[a:]),
            )
            free += 1
        else:
            axis += 1


def _piece(nest: Nest, axis: int, cuts: dict[Buffer, set[int]]) -> int:
    """How long the inner piece of a loop is to be; 0 if the loop stays whole."""
    n = nest.shape[axis]
    best = 0
    for x in nest.accesses:
        stride = x.strides[axis]
        if stride <= 0:
            continue
        for c in cuts[x.buffer]:
            piece, rest = divmod(c, stride)
            if not rest and 1 < piece < n and n % piece == 0:
                best = max(best, piece)
    return best
