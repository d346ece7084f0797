"""Explain: what the compiler made of a function, in a few sentences.

For ``layer(x) = relu(x @ W + b)`` and 10 rows they begin like this:

    layer: 3 operators became 1 loop.
    The largest loop runs 10 times and fuses 3 operators: MatMul, Add, ReLU.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from .codegen import Block, Part, Writer, by_module, makers_of, words_of
from .lower import SMALL, SMALL_ON_GPU, Access, Buffer, Call, Nest
from .program import Program
from .schedule import Loop, LoopSchedule

__all__ = ["Cost", "cost_of", "explain", "loop_of", "separate_source", "shape_of"]

_MOST_PRODUCTS = 4


class Cost(NamedTuple):
    """What one call of a program costs.

    Attributes
    ----------
    operations : int
        Additions, multiplications and other functions of numbers.
    bytes_read, bytes_written : int
        Of arrays that come from outside or are left behind: arguments, parameters, results.
    """

    operations: int
    bytes_read: int
    bytes_written: int


def explain(program: Program, name: str) -> str:
    """What the compiler made of a function, a sentence on each line.

    Parameters
    ----------
    program : Program
    name : str
        What the function is called.
    """
    sentences = [
        _loops(program, name),
        *_largest(program),
        *_products(program),
        *_calls(program),
        *_threads(program),
        *_storage(program),
        _costs(program),
        *_compiling(program),
    ]
    return "\n".join(sentences)


def _blocks(program: Program) -> list[tuple[Part, Block]]:
    return [(part, block) for part in program.parts if not isinstance(part, Call) for block in part.blocks]


def _loops(program: Program, name: str) -> str:
    blocks = [block for _, block in _blocks(program)]
    loops = sum(loop_of(program, block) is not None for block in blocks)
    made = [_counted(loops, "loop")] if loops else []
    rest = len(blocks) - loops
    made += [_counted(rest, "single statement")] if rest else []
    calls = sum(isinstance(part, Call) for part in program.parts)
    made += [_counted(calls, "call of a kernel")] if calls else []
    operators = len(makers_of(program.nests))
    if not operators:
        return f"{name}: there is nothing to compute."
    return f"{name}: {_counted(operators, 'operator')} became {_listed(made)}."


def _largest(program: Program) -> list[str]:
    """The loops that fuse most."""
    fused = []
    for _, block in _blocks(program):
        loop, count = loop_of(program, block), len(makers_of(block.lines))
        if loop is not None and count > 1:
            fused.append((count, loop, block))
    fused.sort(key=lambda found: -found[0])
    said = [] if fused else ["No two operators share a loop."]
    for begin, (count, loop, block) in zip(("The largest loop", "The next largest"), fused, strict=False):
        runs = _counted(loop.length, "time")
        said.append(f"{begin} runs {runs} and fuses {count} operators: {by_module(block.lines)}.")
    return said


def loop_of(program: Program, block: Block) -> Loop | None:
    """The loop that lines of the source are; None for a single statement."""
    for segment in program.plan.segments:
        if isinstance(segment, Call):
            continue
        for part in segment if isinstance(segment, list) else [segment]:
            if isinstance(part, Loop) and next(part.nests()) in block.lines:
                return part
    return None


def _products(program: Program) -> list[str]:
    products = [nest for nest in program.nests if isinstance(nest, Nest) and _is_product(nest)]
    by_blas = [nest for nest in products if nest.product]
    if not products:
        return []
    small, blas = (SMALL_ON_GPU, "cuBLAS") if program.plan.on_gpu else (SMALL, "BLAS")
    bound = f"{small:,} multiplications"
    if not by_blas:
        those = "The matrix product has" if len(products) == 1 else "All matrix products have"
        return [f"{those} at most {bound}, so that a plain loop is as fast as {blas}."]
    shapes: dict[str, None] = {}
    for nest in by_blas:
        m, n, p = nest.shape[-3:]
        shapes[f"({m}, {n}) @ ({n}, {p})"] = None
    few = list(shapes)[:_MOST_PRODUCTS]
    more = [f"{len(shapes) - len(few)} more"] if len(shapes) > len(few) else []
    it = "it has" if len(by_blas) == 1 else "they have"
    said = f"{_counted(len(by_blas), 'matrix product')} went to {blas}, because {it} more than {bound}"
    return [f"{said}: {_listed([*few, *more])}."]


def _is_product(nest: Nest) -> bool:
    is_sum = nest.product or (nest.function == "multiply" and nest.fold == "add")
    return is_sum and nest.maker is not None and words_of(nest.maker.op) == "MatMul"


def _calls(program: Program) -> list[str]:
    names = list(dict.fromkeys(words_of(part.op) for part in program.parts if isinstance(part, Call)))
    if not names:
        return []
    were, its = ("was", "its") if len(names) == 1 else ("were", "their")
    return [
        f"{_listed(names)} {were} not lowered, because {its} compute asks for numbers, which are not known "
        f"while a function is compiled; {its} own kernel computes between the parts of the source."
    ]


def _threads(program: Program) -> list[str]:
    if program.plan.on_gpu:
        count = len(program.parts) - sum(isinstance(part, Call) for part in program.parts)
        launches = "one kernel launch" if count == 1 else f"{count:,} kernel launches, one after the other"
        return [f"On the GPU that is {launches}."]
    shared = [part.blocks[0] for part in program.parts if isinstance(part, Part) and part.length is not None]
    if not shared:
        return ["No loop is so long that threads share it."]
    which = "; ".join(by_module(block.lines) for block in shared)
    return [f"Threads share the iterations of {_counted(len(shared), 'loop')}: {which}."]


def _storage(program: Program) -> list[str]:
    plan = program.plan
    ours = [
        buffer
        for buffer in plan.sizes
        if buffer.is_ours and buffer.data is None and not buffer.counts and buffer.value is None
    ]
    before = sum(plan.sizes[buffer] for buffer in ours)
    if not before:
        return []
    now = sum(buffer.size for buffer in ours if buffer in plan.work)
    variables = sum(buffer in plan.variables for buffer in ours)
    arrays = sum(buffer in plan.work for buffer in ours)
    kept = [f"{_counted(arrays, 'array')} of {_counted(now, 'number')}"] if arrays else []
    kept += [_counted(variables, "plain variable")] if variables else []
    eager = f"{_counted(len(ours), 'array')} of {_counted(before, 'number')}"
    return [f"Unfused, {eager} would lie between the operators; the program keeps {_listed(kept)}."]


def cost_of(program: Program) -> Cost:
    """What one call costs."""
    operations = 0
    read: dict[Buffer, None] = {}
    written: dict[Buffer, None] = {}
    for nest in program.nests:
        if isinstance(nest, Call):
            continue
        each = (nest.function != "copy" and not nest.is_check) + (nest.fold is not None)
        operations += each * math.prod(nest.shape)
        read |= dict.fromkeys(x.buffer for x in nest.sources if not x.buffer.is_ours)
        written |= {} if nest.out.buffer.is_ours else {nest.out.buffer: None}

    def size(buffers: Iterable[Buffer]) -> int:
        return sum(buffer.size * buffer.dtype.itemsize for buffer in buffers)

    results = {buffer for buffer, _ in program.results}
    return Cost(operations, size(x for x in read if x not in results), size(written))


def _costs(program: Program) -> str:
    cost = cost_of(program)
    moved = f"reads {_counted(cost.bytes_read, 'byte')} and writes {_counted(cost.bytes_written, 'byte')}"
    return f"A call makes {_counted(cost.operations, 'operation')} on numbers; it {moved}."


def _compiling(program: Program) -> list[str]:
    """How long Numba took, where it has compiled in this process and all of it is known."""
    seconds = 0.0
    for kernel in set(program.compiled.values()):
        passes = [(x.metadata or {}).get("pipeline_times") for x in kernel.overloads.values()]
        if not passes or None in passes:
            return []
        for times in filter(None, passes):
            seconds += sum(x.run for stages in times.values() for x in stages.values())
    return [f"Numba took {seconds:.1f} seconds to compile it."] if seconds else []


def _counted(number: int, what: str) -> str:
    ending = "s" * (number != 1)
    if what.startswith("call "):
        return f"{number:,} call{ending}{what.removeprefix('call')}"
    return f"{number:,} {what}{ending}"


def _listed(words: list[str]) -> str:
    """``a, b and c``."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


# Before fusion


class _PlainWriter(Writer):
    """Writes source for readers alone."""

    def bounds(self, loop: Loop, shared: Loop | None) -> str:
        return str(loop.length)

    def name_places(self, loop: Loop, body: int, indent: str) -> None:
        pass  # each place stands where it is used


def separate_source(program: Program) -> tuple[list[str], list[Block]]:
    """The source as it would be if each statement kept loops of its own, as it was lowered.

    Returns
    -------
    lines : list of str
    blocks : list of Block
        One for each statement of the program, in the same order as its nests.
    """
    plan = LoopSchedule()
    parts: list[Loop | Nest] = []
    own: dict[Nest, Nest] = {}
    for nest, before in program.plan.lowered.items():
        own[before] = nest
        of_blas = 3 if before.product else 0
        loops = [Loop(n) for n in before.shape[: len(before.shape) - of_blas]]
        plan.loops[before] = [*loops, *[None] * of_blas]
        part: Loop | Nest = before
        for loop in reversed(loops):
            loop.body = [part]
            part = loop
        parts.append(part)
    writer = _PlainWriter(plan, {text: (name, True) for text, name in program._formulas.items()})
    writer.write(parts)
    blocks = [
        Block(block.first, block.stop, {own[nest]: lines for nest, lines in block.lines.items()})
        for block in writer.blocks
    ]
    return writer.lines, blocks


def shape_of(x: Access, size: int) -> tuple[int, ...]:
    """The shape of a compact array of `size` numbers, by the strides of an access: ``(10, 8)`` for (8, 1)."""
    shape, outer = [], size
    for stride in sorted({s for s in x.strides if s > 0}, reverse=True):
        if outer % stride:
            return (size,)
        shape.append(outer // stride)
        outer = stride
    return tuple(shape) if outer == 1 else (size,)
