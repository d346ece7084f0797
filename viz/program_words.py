"""What the compiler made of a function, in a few sentences.

For ``layer(x) = relu(x @ W + b)`` and 10 rows they begin like this:

    layer: 3 operators became 1 loop.
    The largest loop runs 10 times and fuses 3 operators: MatMul, Add, ReLU.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from needle.compiler import Compiled
from needle.compiler.codegen import Part
from needle.compiler.lower import SMALL, SMALL_ON_GPU, Buffer, Call, Nest
from needle.compiler.names import by_module, makers_of, words_of
from needle.compiler.numpy_program import NumpyProgram
from needle.compiler.program import Program

from .program_data import called, loop_of
from .text import counted

__all__ = ["Cost", "cost_of", "explain"]

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


def explain(compiled: Compiled) -> str:
    """Say what the compiler made of a function: what is fused, what is not, and why; a sentence on each line.

    Parameters
    ----------
    compiled : Compiled
        What `needle.jit` returned; call it before, so that it is compiled.

    Examples
    --------
    >>> step = ndl.jit(lambda x, y: ndl.relu(x * y + x))
    >>> step(x, y)
    >>> print(viz.explain(step))
    """
    name, program = called(compiled), compiled.program
    if program is None:
        return f"{name} is not compiled yet: call it once, and ask again."
    return in_sentences(program, name)


def in_sentences(program: Program, name: str) -> str:
    """The sentences about one program."""
    if isinstance(program, NumpyProgram):
        return "\n".join([_lines(program, name), *_calls(program), _costs(program)])
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


def _blocks(program: Program) -> list[list[Nest]]:
    return [block for part in program.parts if not isinstance(part, Call) for block in part.blocks]


def _lines(program: NumpyProgram, name: str) -> str:
    operators = counted(len(makers_of(program.nests)), "operator")
    return f"{name}: {operators} became lines of NumPy, one call each. Nothing is fused, nothing is compiled."


def _loops(program: Program, name: str) -> str:
    blocks, operators = _blocks(program), len(makers_of(program.nests))
    if not operators:
        return f"{name}: there is nothing to compute."
    loops = sum(loop_of(program, block) is not None for block in blocks)
    calls = sum(isinstance(part, Call) for part in program.parts)
    counts = [
        (loops, counted(loops, "loop")),
        (len(blocks) - loops, counted(len(blocks) - loops, "single statement")),
        (calls, f"{counted(calls, 'call')} of a kernel"),
    ]
    made = [words for count, words in counts if count]
    return f"{name}: {counted(operators, 'operator')} became {_listed(made)}."


def _largest(program: Program) -> list[str]:
    """The loops that fuse most."""
    fused = []
    for block in _blocks(program):
        loop, count = loop_of(program, block), len(makers_of(block))
        if loop is not None and count > 1:
            fused.append((count, loop, block))
    fused.sort(key=lambda found: -found[0])
    said = [] if fused else ["No two operators share a loop."]
    for begin, (count, loop, block) in zip(("The largest loop", "The next largest"), fused, strict=False):
        runs = counted(loop.length, "time")
        said.append(f"{begin} runs {runs} and fuses {count} operators: {by_module(block)}.")
    return said


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
    sizes = [nest.shape[-3:] for nest in by_blas]
    shapes = list(dict.fromkeys(f"({m}, {n}) @ ({n}, {p})" for m, n, p in sizes))
    few = shapes[:_MOST_PRODUCTS]
    more = [f"{len(shapes) - len(few)} more"] if len(shapes) > len(few) else []
    it = "it has" if len(by_blas) == 1 else "they have"
    said = f"{counted(len(by_blas), 'matrix product')} went to {blas}, because {it} more than {bound}"
    return [f"{said}: {_listed([*few, *more])}."]


def _is_product(nest: Nest) -> bool:
    return nest.is_product and nest.maker is not None and words_of(nest.maker.op) == "MatMul"


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
    which = "; ".join(by_module(block) for block in shared)
    return [f"Threads share the iterations of {counted(len(shared), 'loop')}: {which}."]


def _storage(program: Program) -> list[str]:
    plan = program.plan
    ours = [
        buffer
        for buffer in plan.sizes
        if buffer.is_ours and buffer.data is None and not buffer.is_iota and buffer.value is None
    ]
    before = sum(plan.sizes[buffer] for buffer in ours)
    if not before:
        return []
    arrays = [buffer for buffer in ours if buffer in plan.work]
    variables = sum(buffer in plan.variables for buffer in ours)
    now = counted(sum(buffer.size for buffer in arrays), "number")
    kept = [f"{counted(len(arrays), 'array')} of {now}"] if arrays else []
    kept += [counted(variables, "plain variable")] if variables else []
    eager = f"{counted(len(ours), 'array')} of {counted(before, 'number')}"
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
        read |= dict.fromkeys(x for x in nest.read if not x.is_ours)
        written |= dict.fromkeys(x for x in nest.written if not x.is_ours)

    def size(buffers: Iterable[Buffer]) -> int:
        return sum(buffer.size * buffer.dtype.itemsize for buffer in buffers)

    results = {buffer for buffer, _ in program.results}
    return Cost(operations, size(x for x in read if x not in results), size(written))


def _costs(program: Program) -> str:
    cost = cost_of(program)
    moved = f"reads {counted(cost.bytes_read, 'byte')} and writes {counted(cost.bytes_written, 'byte')}"
    return f"A call makes {counted(cost.operations, 'operation')} on numbers; it {moved}."


def _compiling(program: Program) -> list[str]:
    """How long Numba took, if it has compiled in this process and all of it is known."""
    seconds = 0.0
    for kernel in set(program.compiled.values()):
        passes = [(x.metadata or {}).get("pipeline_times") for x in kernel.overloads.values()]
        if not passes or None in passes:
            return []
        for times in filter(None, passes):
            seconds += sum(x.run for stages in times.values() for x in stages.values())
    return [f"Numba took {seconds:.1f} seconds to compile it."] if seconds else []


def _listed(words: list[str]) -> str:
    """``a, b and c``."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
