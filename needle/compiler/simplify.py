"""Simplify: leave out what need not be computed, and split loops so that they can be fused.

A good programmer would not write the loops as the operators do. `simplify` replaces an array that holds one
number everywhere by that number, turns ``a + (-b)`` into ``a - b``, computes once what is computed twice, and
drops what nobody reads. A matrix product that BLAS computes, and that is only scaled and added to a
parameter, as in ``W - lr * (x.T @ d)``, becomes one call of BLAS (`_accumulated`).

All five nests of ``relu(x @ W + b)`` are needed. But they go through the 80 numbers in different ways: the
product and the sum have loops over 10 and 8, while `relu` has one loop over 80. So `cut`, which `schedule.py`
calls first, splits this loop in two: it turns

    loop  (i 80)              relu1[i]          = relu(add1[i])

into

    loops (i 10, j 8)         relu1[8 i + j]    = relu(add1[8 i + j])

Now all five nests have a loop over `i` that goes through the batch, and `schedule.py` can join these loops.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..backend_ndarray.scalar_functions import SCALAR_FUNCTIONS
from .lower import Access, Buffer, Call, Nest
from .stand_ins import Number

__all__ = ["PASSES", "cut", "simplify"]


def simplify(steps: list[Nest | Call], wanted: set[Buffer], passes: Sequence[Callable]) -> list[Nest | Call]:
    """Leave out what nobody needs and what is computed twice; put numbers in the place of constants.

    Steps are changed in place; those that are left are returned.

    Parameters
    ----------
    steps : list of Nest or Call
    wanted : set of Buffer
        The buffers that are read afterwards.
    passes : sequence of callable
        What is done, in this order: `PASSES`, or all but the last where no product adds to what is there.
    """
    for run in passes:
        steps = run(steps, wanted)
    return steps


def _writers(steps: Iterable[Nest | Call]) -> Counter:
    """How many steps write each buffer."""
    return Counter(x for step in steps for x in step.written)


def _with_numbers(steps: list[Nest | Call], wanted: set[Buffer]) -> list[Nest | Call]:
    """Constant folding: a buffer that holds one number everywhere is replaced by that number.

    Then ``x * 1`` becomes x. In the same pass, ``a + (-b)`` becomes ``a - b``.
    """
    writers = _writers(steps)
    last = {buffer: i for i, step in enumerate(steps) for buffer in step.written}  # who writes it last
    values: dict[Buffer, Any] = {}
    negated: dict[Buffer, Buffer] = {}

    def number_of(x: Any, target: np.dtype) -> Any:
        """The number that an access reads everywhere, if it is known and fits `target`; else the access."""
        if not isinstance(x, Access):
            return x
        value, dtype = values.get(x.buffer, x.buffer.value), x.buffer.dtype
        wider = dtype.kind == target.kind == "f" and dtype.itemsize <= target.itemsize
        return x if value is None or not (dtype == target or wider) else value

    for i, step in enumerate(steps):
        if isinstance(step, Call) or step.is_check or step.product:  # BLAS needs arrays
            continue
        out = step.out.buffer
        step.reads = [number_of(x, out.dtype) for x in step.reads]
        if step.fold is not None:
            continue
        if len(step.reads) == 2:
            a, b = step.reads
            if _is_one(b) and step.function in ("multiply", "divide", "power"):
                step.function, step.reads = "copy", [a]
            elif _is_one(a) and step.function == "multiply":
                step.function, step.reads = "copy", [b]
            for x, y in ((a, b), (b, a)) if step.function == "add" else ():
                if isinstance(y, Access) and y.buffer in negated:
                    step.function, step.reads = "subtract", [x, y._replace(buffer=negated[y.buffer])]
                    break
        if math.prod(step.shape) != out.size or writers[out] > 1 or not out.is_ours:
            continue
        if all(map(_is_number, step.reads)):
            values[out] = _computed(step.function, step.reads, out.dtype)
        elif step.function == "negate" and step.is_elementwise and last.get(step.read[0], -1) < i:
            negated[out] = step.read[0]
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


def _without_repeats(steps: list[Nest | Call], wanted: set[Buffer]) -> list[Nest | Call]:
    """Common subexpressions: keep the first of the nests that compute the same. Copies are left out, too."""
    writers = _writers(steps)
    same: dict[Buffer, Buffer] = {}  # for a buffer that is left out, the one that is read instead
    known: dict[Any, Buffer] = {}  # for what a nest computes, the buffer that has it
    kept: list[Nest | Call] = []
    for step in steps:
        if isinstance(step, Call):
            for operand in step.operands:
                for array in operand if isinstance(operand, tuple) else (operand,):
                    array._handle = same.get(array._handle, array._handle)
            kept.append(step)
            continue
        step.change(lambda x: x._replace(buffer=same.get(x.buffer, x.buffer)))
        out = step.out.buffer
        stable = writers[out] == 1 and all(writers[x] <= 1 for x in step.read)
        if stable and step.fold is None and out.is_ours:
            source = step.reads[0]
            if step.is_copy and source.buffer.is_ours and source.buffer.dtype == out.dtype:
                same[out] = source.buffer
                continue
            key = (step.function, step.shape, step.out[1:], out.size, out.dtype, *map(_key, step.reads))
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


def _needed(steps: list[Nest | Call], wanted: set[Buffer]) -> list[Nest | Call]:
    """Dead code elimination: keep the steps that lead to the wanted buffers, and the checks."""
    needed = set(wanted)
    kept = []
    for step in reversed(steps):
        if step.is_check or needed.intersection(step.written):
            needed.update(step.read)
            kept.append(step)
    return kept[::-1]


def _accumulated(steps: list[Nest | Call], wanted: set[Buffer]) -> list[Nest | Call]:
    """Let BLAS add a product to what is there: ``W - lr * (x.T @ d)`` needs no array for the gradient.

    From the product a chain of steps must lead back to W, and nobody else may read what they compute: the
    product is multiplied by numbers, then added to W or subtracted from it, and the sum is written to W. The
    product takes the place of the whole chain, and comes last, because others may still read the old W.
    """
    readers: dict[Buffer, list[Any]] = defaultdict(list)
    for step in steps:
        for buffer in step.read:
            readers[buffer].append(step)
    updated = {buffer for step in steps for buffer in step.written if not buffer.is_ours}
    gone: set[Any] = set()
    last: list[Nest | Call] = []
    for product in steps:
        if isinstance(product, Call) or not product.product or not updated.isdisjoint(product.read):
            continue  # it reads a parameter that is updated: it has to come before the update
        chain: list[Nest] = []
        scales: list[Any] = []
        current = product.out.buffer
        while current.is_ours and len(readers[current]) == 1:
            (user,) = readers[current]
            if isinstance(user, Call) or user.fold is not None or not user.is_elementwise:
                break
            chain.append(user)
            if user.function == "multiply" and user.numbers:
                scales += user.numbers
                current = user.out.buffer
                continue
            targets = [x.buffer for x in user.sources if x.buffer is not current]
            is_sum = user.function == "add" or (user.function == "subtract" and user.read[0] is not current)
            write, *others = readers[user.out.buffer] or [user]
            is_update = isinstance(write, Nest) and write.is_copy and write.written == targets and not others
            if is_sum and is_update and not targets[0].is_ours:
                product.fold, product.scales = user.function, scales
                product.out = product.out._replace(buffer=targets[0])
                gone.update([product, *chain, write])
                last.append(product)
            break
    return [step for step in steps if step not in gone] + last


#: What `simplify` can do. Each pass takes steps and the wanted buffers, and returns steps.
PASSES = (_with_numbers, _without_repeats, _needed, _accumulated)


# Cut


def cut(nests: list[Nest]) -> None:
    """Cut loops, so that all nests go through a buffer by the same strides; leave out loops of one iteration.

    A loop is cut at each stride by which some other nest goes through the same buffer. This makes new
    strides, so it is repeated until there are none.
    """
    strides: dict[Buffer, set[int]] = defaultdict(set)
    for nest in nests:
        _drop_short(nest)
    is_new = True
    while is_new:
        is_new = False
        for nest in reversed(nests):
            _cut_nest(nest, strides)
            for x in nest.accesses:
                own = {abs(stride) for stride in x.strides if stride}
                is_new |= not own <= strides[x.buffer]
                strides[x.buffer] |= own


def _drop_short(nest: Nest) -> None:
    kept = [i for i, n in enumerate(nest.shape) if n != 1 or i not in nest.axes]
    nest.shape = tuple([nest.shape[i] for i in kept])
    nest.change(lambda x: x._replace(strides=tuple([x.strides[i] for i in kept])))


def _cut_nest(nest: Nest, strides: dict[Buffer, set[int]]) -> None:
    """Cut each loop of a nest, if its outer piece can then go through a buffer by one of these strides."""
    axis = 0
    while axis in nest.axes:
        n = nest.shape[axis]
        steps = [(x.strides[axis], strides[x.buffer]) for x in nest.accesses if x.strides[axis] > 0]
        lengths = {stride // step for step, known in steps for stride in known if stride % step == 0}
        fitting = [length for length in lengths if 1 < length < n and n % length == 0]
        if fitting:
            _split(nest, axis, max(fitting))
        else:
            axis += 1


def _split(nest: Nest, axis: int, length: int) -> None:
    """Make two loops of one; `length` is that of the inner one."""
    nest.shape = (*nest.shape[:axis], nest.shape[axis] // length, length, *nest.shape[axis + 1 :])
    nest.change(
        lambda x: x._replace(strides=(*x.strides[:axis], x.strides[axis] * length, *x.strides[axis:]))
    )
