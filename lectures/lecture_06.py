"""Lecture 06, eager, lazy, and memory: its exercises, the usual mistakes in them, and its predictions."""

from __future__ import annotations

import gc
import math
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numba
import numpy as np
from hypothesis import strategies as st

import needle as ndl
import viz
from needle import autograd, ops
from needle.autograd import Tensor, find_topo_sort
from needle.backend_ndarray.memory import blocks

from .checking import Case, Lecture, arrays, case, graphs, program_case

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade
Result = TypeVar("Result")


# --- What the cells use -------------------------------------------------------------------------------------


def growth(program: Callable[[], Result]) -> tuple[Result, int]:
    """What ``program()`` returns, and by how many megabytes the process has grown, rounded to tens.

    It counts what was asked of the system and not given back, by Python's own book. So it is the same with
    every allocator and in every run. The program runs once before, so that nothing is compiled while we
    count.
    """
    program()
    gc.collect()
    blocks.release()  # so that what the library holds ready for new arrays is not taken for nothing
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    try:
        result = program()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - blocks.size - before
    finally:
        if not tracing:
            tracemalloc.stop()
    return result, 10 * round(grown / 1e7)


#: How a line of a program writes an operator.
SIGNS = {
    ops.EWiseAdd: "{} + {}",
    ops.EWiseMul: "{} * {}",
    ops.EWiseDiv: "{} / {}",
    ops.Negate: "-{}",
    ops.Exp: "exp({})",
    ops.Log: "log({})",
    ops.Tanh: "tanh({})",
}


def one_loop(output: Tensor) -> Callable[..., np.ndarray]:
    """Write a graph of elementwise operators as a program, print it, and compile it into one loop."""
    nodes = find_topo_sort([output])
    ids = {node: f"n{number}" for number, node in enumerate(nodes, start=1)}
    lines = [f"def fused({', '.join(ids[node] for node in nodes if node.is_leaf())}):"]
    for node in nodes:
        if node.op is None:
            continue
        if type(node.op) not in SIGNS:
            known = ", ".join(kind.__name__ for kind in SIGNS)
            raise TypeError(f"one_loop: {node.op!r} is none of the operators that it can write: {known}")
        lines.append(f"    {ids[node]} = " + SIGNS[type(node.op)].format(*[ids[i] for i in node.inputs]))
    program = "\n".join([*lines, f"    return {ids[output]}"])
    print(program)
    names: dict[str, Any] = {"exp": math.exp, "log": math.log, "tanh": math.tanh}
    exec(program, names)
    return numba.vectorize(names["fused"])


def what_happens(program: Callable[[], Any]) -> None:
    """Run a program, and print what it gives, or what stopped it."""
    try:
        print(program())
    except Exception as error:
        print(error)


# --- What is counted ----------------------------------------------------------------------------------------

TENSORS = "Tensors more at the end of the loop"
NUMBERS = "the numbers of earlier batches are still there at its end"
LARGE = 1000  # numbers in a batch whose bytes stand out


def alive() -> int:
    """How many Tensors there are, once cycles are freed: a node and its gradient refer to each other."""
    gc.collect()
    return autograd.TENSOR_COUNTER


@contextmanager
def counting() -> Iterator[None]:
    """Within this block, count new memory. What there was before is not looked through for cycles."""
    gc.freeze()
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    try:
        yield
    finally:
        if not tracing:
            tracemalloc.stop()
        gc.unfreeze()


class Batches:
    """Gives batches one by one, and looks at the second and at the last what there is in memory."""

    def __init__(self, make: Callable[[Any], Any], items: Sequence[Any]):
        self.make, self.items = make, items
        self.tensors: list[int] = []
        self.bytes: list[int] = []

    def __iter__(self) -> Iterator[Any]:
        for number, item in enumerate(self.items):
            if number in (1, len(self.items) - 1):  # after the first step, and before the last one
                self.tensors.append(alive())
                self.bytes.append(tracemalloc.get_traced_memory()[0] - blocks.size)
            yield self.make(item)

    def __len__(self) -> int:
        return len(self.items)

    def kept(self) -> dict[str, Any]:
        """What there was more at the end: Tensors, and numbers of large batches in any form."""
        tensors, held = (counts[-1] - counts[0] if counts else 0 for counts in (self.tensors, self.bytes))
        smallest = min((np.size(item) for item in self.items), default=0)
        leaks = tensors >= max(1, len(self.items) - 2)  # one or two come and go with what a step needs
        return {TENSORS: tensors if leaks else 0, NUMBERS: smallest >= LARGE and held > 3 * 4 * smallest}


def of_shapes(*shapes: tuple[int, ...]) -> st.SearchStrategy[list[np.ndarray]]:
    """A batch of each of these shapes. The squares in it add up to about 1, so that a training converges."""
    parts = [arrays([shape], fills=("irregular", "signed", "equal")) for shape in shapes]
    return st.tuples(*parts).map(lambda made: [(x / np.linalg.norm(x)).astype("float32") for x in made])


#: Small batches and large ones, of equal and unequal sizes and of more than one axis.
drawn_batches = st.one_of(
    of_shapes((3,), (2,), (4,), (3,)),
    of_shapes((2, 3), (3,), (1,), (2, 1), (4, 3, 2)),
    of_shapes(*[(LARGE,)] * 8),
    of_shapes(*[(2 * LARGE,), (40, 50)] * 4),
    of_shapes((3,)),
)


# --- 1 Count the bytes --------------------------------------------------------------------------------------

LIBRARY = {"ndl": ndl, "np": np}
#: Three steps of the loop, each with three numbers of its own.
THREE_STEPS = (
    "sum_loss = ndl.Tensor(0.0)",
    "for start in (1.0, 2.0, 3.0):\n    x = ndl.Tensor([start, start, start])\n"
    "    sum_loss = sum_loss + (x * x).sum()",
)
LEAVES: Any = ("[2.0, 3.0]", '[2.0, 3.0], dtype="float64"', "2.0", "[[2.0, 3.0], [1.0, 0.0]]")
OPERATORS = ("{a} * {b}", 'ndl.cast({a}, "float64")', "{a}.sum()")


def of_graph(lines: Sequence[str]) -> Case:
    """A case of the graph that a program leaves."""
    return program_case(lines, LIBRARY, lines[-1].split()[0])


def bytes_found(answer: Callable, output: Tensor) -> Any:
    """What an answer gives for an output, if it gives that again."""
    found = answer(output)
    return (
        found if found is ... or answer(output) == found else f"{found!r}, and another number if asked again"
    )


@lecture.exercise(
    program_case(THREE_STEPS, LIBRARY, "sum_loss"),
    of_graph((*THREE_STEPS, "detached = sum_loss.detach()")),
    draws=graphs("ndl.Tensor({})", OPERATORS, LEAVES).map(of_graph),
    number=40,
    use=bytes_found,
    otherwise="Draw this graph on paper, and write into each box how many bytes its numbers take.",
    without={
        viz.memory: "`viz.memory` makes this very count. Make it yourself: go through the nodes, and add up."
    },
)
def kept_bytes(output):
    nodes = ndl.autograd.find_topo_sort([output])
    return sum(node.size * node.dtype.itemsize for node in nodes)


# --- 2 Add up, and keep nothing -----------------------------------------------------------------------------


def added_up(answer: Callable, rows: Sequence[Any]) -> Any:
    """The sum that an answer gives, and what it keeps."""
    batches = Batches(Tensor, rows)
    with counting():
        total = answer(batches)
        if total is ... or total is None:
            return total
        kept = len(find_topo_sort([total])) - 1 if isinstance(total, Tensor) else 0
        return {"sum": float(total), "nodes that the result keeps": kept, **batches.kept()}


@lecture.exercise(
    case([[1.0, 2.0], [3.0, 1.0], [0.0, 2.0], [1.0, 1.0]]),
    draws=drawn_batches.map(case),
    number=40,
    otherwise="If the sum is wrong, do one step with pencil and paper. If it is right: which Tensor of the "
    "step before can your step still reach?",
    use=added_up,
)
def add_up(batches):
    sum_loss = ndl.Tensor(0.0)
    for x in batches:
        sum_loss = (sum_loss + (x * x).sum()).detach()
    return sum_loss


# --- 3 The shape, and nothing else --------------------------------------------------------------------------


class Runs:
    """How many operators were computed."""

    count = 0


def counted(kind: Any, *arguments: Any) -> ops.Op:
    """An operator that counts how often it is computed."""

    def compute(self: Any, *inputs: Any) -> Any:
        Runs.count += 1
        return kind.compute(self, *inputs)

    return type(f"Counted{kind.__name__}", (kind,), {"compute": compute})(*arguments)


WEIGHTS = Tensor(np.ones((5, 2)))
NETWORKS = {
    "ndl": ndl,
    "layer": lambda x: counted(ops.MatMul)(x, WEIGHTS),
    "row_sums": lambda x: counted(ops.Summation, (1,))(x),
    "gram": lambda x: counted(ops.MatMul)(x.transpose(), x),
    "squares": lambda x: counted(ops.EWiseMul)(x, x),
}


PROGRAMS = (
    "layer(x)",
    "row_sums(x)",
    "gram(x)",
    "row_sums(layer(x))",
    "squares(layer(x))",
    "gram(squares(x))",
)


def shape_found(answer: Callable, f: Callable, x: Tensor, is_lazy: bool) -> Any:
    """The shape that an answer gives, what ran for it, and whether it changed the mode."""
    Runs.count, before = 0, autograd.LAZY_MODE
    autograd.LAZY_MODE = is_lazy
    try:
        result = answer(f, x)
        changed = autograd.LAZY_MODE is not is_lazy
    finally:
        autograd.LAZY_MODE = before
    if result is ... or result is None:
        return result
    return {"the shape": result, "operators that ran": Runs.count, "LAZY_MODE is changed": changed}


def network_case(parts: tuple[str, str, bool]) -> Case:
    """A case of a network, a batch, and whether everything is lazy already."""
    network, shape, is_lazy = parts
    lines = [f"x = ndl.ones({shape})", f"f = lambda x: {network}", f"is_lazy = {is_lazy}"]
    return program_case(lines, NETWORKS, "f", "x", "is_lazy")


@lecture.exercise(
    network_case(("layer(x)", "3, 5", False)),
    draws=st.tuples(
        st.sampled_from(PROGRAMS), st.sampled_from(["3, 5", "4, 5", "1, 5", "5, 5"]), st.booleans()
    ).map(network_case),
    number=40,
    otherwise="Call `f` within `with ndl.lazy():`, and ask the Tensor that comes back for its `shape`.",
    use=shape_found,
    form="shape_of({}, {}), where LAZY_MODE was {} before,",
)
def shape_of(f, x):
    with ndl.lazy():
        return f(x).shape


# --- 4 The training that ran out of memory ------------------------------------------------------------------


def trained(answer: Callable, pairs: Sequence[tuple[Any, Any]]) -> Any:
    """The losses that an answer gives, and what it keeps."""
    batches = Batches(lambda pair: (Tensor(pair[0]), Tensor(pair[1])), pairs)
    with counting():
        losses = answer(batches)
        if isinstance(losses, (list, tuple)) and ... not in losses:
            losses = [float(loss) for loss in losses]
        elif losses is None or losses is ... or isinstance(losses, (list, tuple)):
            return losses
        return {"losses": losses, **batches.kept()}


def pairs_of(batches: list[np.ndarray]) -> Case:
    """A case of pairs, in which y is twice x and a bit more."""
    return case([(x, 2 * x + np.float32(0.01)) for x in batches])


@lecture.exercise(
    case([([1.0], [2.0]), ([2.0], [4.0]), ([0.5], [1.0]), ([1.0], [2.0]), ([1.5], [3.0]), ([2.0], [4.0])]),
    draws=drawn_batches.map(pairs_of),
    number=16,
    otherwise="If the losses differ, compare your step with the loop above, line by line. If they agree, "
    "follow `inputs` from what a step leaves behind: does a way lead into the step before?",
    use=trained,
)
def train(batches):
    w, losses = ndl.Tensor([0.0]), []
    for x, y in batches:
        loss = ((x * w - y) ** 2).sum()
        loss.backward()
        w.data = w.data - 0.1 * w.grad.data
        losses.append(loss.item())
    return losses
