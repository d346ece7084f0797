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

from needle import autograd, ops
from needle.autograd import Tensor, find_topo_sort, lazy, no_grad
from needle.backend_ndarray.memory import blocks
from needle.nn import Parameter
from needle.optim import SGD

from .checking import Lecture, case, given

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict
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


# --- What is counted ----------------------------------------------------------------------------------------


def alive() -> int:
    """How many Tensors there are, once cycles are freed: a node and its gradient refer to each other."""
    gc.collect()
    return autograd.TENSOR_COUNTER


@contextmanager
def only_new_cycles() -> Iterator[None]:
    """Within this block, what there was before is not looked through for cycles: that would take long."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class Batches:
    """Gives Tensors one by one, and counts how many Tensors there are at the first and at the last."""

    def __init__(self, make: Callable[[Any], Any], items: Sequence[Any]):
        self.make = make
        self.items = items
        self.counts: list[int] = []

    def __iter__(self) -> Iterator[Any]:
        for number, item in enumerate(self.items):
            if number in (1, len(self.items) - 1):  # after the first step, and before the last one
                self.counts.append(alive())
            yield self.make(item)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def more(self) -> int:
        """How many Tensors more there were at the end."""
        return self.counts[-1] - self.counts[0] if self.counts else 0


# --- 1 Count the bytes --------------------------------------------------------------------------------------


def three_steps() -> dict[str, Any]:
    """Three steps of the loop, each with three numbers of its own."""
    sum_loss = Tensor(0.0)
    for start in (1.0, 2.0, 3.0):
        x = Tensor([start, start, start])
        sum_loss = sum_loss + (x * x).sum()
    return {"sum_loss": sum_loss}


def one_square() -> dict[str, Any]:
    """A leaf that one operator takes twice."""
    x = Tensor(np.ones(10))
    return {"square": x * x}


def double_precision() -> dict[str, Any]:
    """Numbers of eight bytes, used at two places."""
    x = Tensor(np.ones((2, 3)), dtype="float64")
    y = ops.exp(x)
    return {"total": (y * x + y).sum()}


def cut_off() -> dict[str, Any]:
    """A detached sum."""
    return {"detached": three_steps()["sum_loss"].detach()}


THREE_STEPS = """\
sum_loss = ndl.Tensor(0.0)
for start in (1.0, 2.0, 3.0):
    x = ndl.Tensor([start, start, start])
    sum_loss = sum_loss + (x * x).sum()"""

ONE_SQUARE = """\
x = ndl.Tensor(np.ones(10))
square = x * x"""

DOUBLE_PRECISION = """\
x = ndl.Tensor(np.ones((2, 3)), dtype="float64")
y = ndl.exp(x)
total = (y * x + y).sum()"""

#: The lines that a message shows of each case.
PROGRAMS = {
    three_steps: THREE_STEPS,
    one_square: ONE_SQUARE,
    double_precision: DOUBLE_PRECISION,
    cut_off: f"{THREE_STEPS}\ndetached = sum_loss.detach()",
}


@lecture.exercise(
    given(three_steps, "sum_loss", program=PROGRAMS[three_steps]),
    given(one_square, "square", program=PROGRAMS[one_square]),
    given(double_precision, "total", program=PROGRAMS[double_precision]),
    given(cut_off, "detached", program=PROGRAMS[cut_off]),
    otherwise="Draw this graph on paper, and write into each box how many bytes its numbers take.",
)
def kept_bytes(output):
    """The bytes of the arrays of all nodes, by the arrays themselves."""
    return sum(node.numpy().nbytes for node in find_topo_sort([output]))


@kept_bytes.mistake("These are numbers. Each of them takes `dtype.itemsize` bytes.")
def numbers_not_bytes(output):
    return sum(node.size for node in find_topo_sort([output]))


@kept_bytes.mistake("You count a node once for each way that leads to it. It is kept only once.")
def each_way(output):
    return output.numpy().nbytes + sum(each_way(i) for i in output.inputs)


@kept_bytes.mistake("This is the output alone. It keeps its inputs, and they keep theirs.")
def output_alone(output):
    return output.numpy().nbytes


@kept_bytes.mistake(
    "This is one node, the first of the list. Your `return` stands inside the loop: move it to the left."
)
def returned_in_the_loop(output):
    return find_topo_sort([output])[0].numpy().nbytes


@kept_bytes.mistake("Leaves take memory, too: you count only what an operator made.")
def without_the_leaves(output):
    return sum(node.numpy().nbytes for node in find_topo_sort([output]) if not node.is_leaf())


@kept_bytes.mistake("`find_topo_sort` takes a list of outputs: `find_topo_sort([output])`.")
def not_in_a_list(output):
    return sum(node.numpy().nbytes for node in find_topo_sort(output))


@kept_bytes.mistake(
    "Is it `find_topo_sort`? Its full name is `ndl.autograd.find_topo_sort`, and it takes a list: `[output]`."
)
def unknown_name(output):
    raise NameError("name 'find_topo_sort' is not defined")


@kept_bytes.mistake("The output and its own inputs are there. Go on: they have inputs, too.")
def one_level(output):
    return output.numpy().nbytes + sum(i.numpy().nbytes for i in dict.fromkeys(output.inputs))


@kept_bytes.mistake("These are the leaves alone. What was computed from them is kept as well.")
def leaves_alone(output):
    return sum(node.numpy().nbytes for node in find_topo_sort([output]) if node.is_leaf())


@kept_bytes.mistake("The output itself is missing: it has numbers, too.")
def without_the_output(output):
    return sum(node.numpy().nbytes for node in find_topo_sort([output])[:-1])


@kept_bytes.mistake("Not every number takes four bytes: float64 takes eight. `dtype.itemsize` knows.")
def always_four(output):
    return sum(4 * node.size for node in find_topo_sort([output]))


@kept_bytes.mistake("This is how many nodes there are. Ask each for its `size` and its `dtype.itemsize`.")
def how_many_nodes(output):
    return len(find_topo_sort([output]))


# --- 2 Add up, and keep nothing -----------------------------------------------------------------------------

MORE = "Tensors more at the end of the loop"
NO_RETURN = "Your function gives None back. Is a `return` missing?"


def _add_up(answer: Callable, rows: Sequence[Sequence[float]]) -> Any:
    batches = Batches(Tensor, rows)
    with only_new_cycles():
        total = answer(batches)
    if total is ...:
        return total
    kept = len(find_topo_sort([total])) - 1 if isinstance(total, Tensor) else 0
    number = None if total is None else float(total)
    return {"sum": number, MORE: batches.more, "nodes that the result keeps": kept}


@lecture.exercise(
    case([[1.0, 2.0], [3.0, 1.0], [0.0, 2.0], [1.0, 1.0]]),
    case([[float(number)] for number in range(1, 9)]),
    otherwise="If the sum is wrong, do one step with pencil and paper. If it is right: which Tensor of the "
    "step before can your step still reach?",
    use=_add_up,
)
def add_up(batches):
    """The sum of the losses, without a graph."""
    total = Tensor(0.0, requires_grad=False)
    with no_grad():
        for x in batches:
            total = total + (x * x).sum()
    return total


@add_up.mistake(
    "Each sum still holds the one before it. `detach` leaves its Tensor as it is and returns a new one: go "
    "on with that one."
)
def nothing_cut(batches):
    total = Tensor(0.0)
    for x in batches:
        total = total + (x * x).sum()
    return total


@add_up.mistake(
    "The result is free of its past, but while the loop ran, everything was kept. Cut in every step."
)
def cut_at_the_end(batches):
    return nothing_cut(batches).detach()


@add_up.mistake("The losses are cut off now, but each sum still holds the sum before it. Cut the sum.")
def losses_cut(batches):
    total = Tensor(0.0)
    for x in batches:
        total = total + (x * x).sum().detach()
    return total


@add_up.mistake(
    "Your loop lets the past go, but the result still hangs on the last step. Cut after the addition: "
    "`(… + …).detach()`."
)
def cut_before_the_addition(batches):
    total = Tensor(0.0)
    for x in batches:
        total = total.detach() + (x * x).sum()
    return total


@add_up.mistake("The batches come one by one, and have no numbers: `for x in batches:` gives you each.")
def by_index(batches):
    return batches[0]


@add_up.mistake("This is the loss of the last batch. Add it to what you have so far.")
def last_one(batches):
    total = Tensor(0.0)
    for x in batches:
        total = (x * x).sum().detach()
    return total


@add_up.mistake("You keep all losses in a list, and each loss keeps its step. Add up as you go.")
def in_a_list(batches):
    losses = [(x * x).sum() for x in batches]
    return Tensor(sum(loss.item() for loss in losses))


@add_up.mistake(
    "Here all batches are in one list, and it keeps them. Take them one by one, so that each can go."
)
def all_batches_first(batches):
    return Tensor(sum((x * x).sum().item() for x in list(batches)))


@add_up.mistake(NO_RETURN)
def no_sum(batches):
    add_up.right(batches)


@add_up.mistake("This is the mean. The exercise asks for the sum.")
def the_mean(batches):
    return add_up.right(batches) / len(batches)


# --- 3 The shape, and nothing else --------------------------------------------------------------------------


class Runs:
    """How many operators were computed."""

    count = 0


class CountedMatMul(ops.MatMul):
    """A matrix product that counts its computations."""

    def compute(self, a, b):
        Runs.count += 1
        return super().compute(a, b)


class CountedSummation(ops.Summation):
    """A sum that counts its computations."""

    def compute(self, a):
        Runs.count += 1
        return super().compute(a)


WEIGHTS = Tensor(np.ones((5, 2)))


def layer(x):
    """A product with a 5 × 2 matrix."""
    return CountedMatMul()(x, WEIGHTS)


def row_sums(x):
    """The sum of each row."""
    return CountedSummation((1,))(x)


def gram(x):
    """All products of two columns."""
    return CountedMatMul()(x.transpose(), x)


def _shape_of(answer: Callable, f: Callable, x: Tensor) -> Any:
    Runs.count, default = 0, autograd.LAZY_MODE
    try:
        result = answer(f, x)
        left_on = autograd.LAZY_MODE is not default
    finally:
        autograd.LAZY_MODE = default
    if result is ...:
        return result
    return {"the shape": result, "operators that ran": Runs.count, "LAZY_MODE is left on": left_on}


def _batch() -> dict[str, Any]:
    x = Tensor(np.ones((3, 5)))
    return {"x": x, "layer": layer, "row_sums": row_sums, "gram": gram}


@lecture.exercise(
    given(_batch, "layer", "x"),
    given(_batch, "row_sums", "x"),
    given(_batch, "gram", "x"),
    otherwise="Call `f` within `with ndl.lazy():`, and ask the Tensor that comes back for its `shape`.",
    use=_shape_of,
)
def shape_of(f, x):
    """The shape, from a lazy result."""
    with lazy():
        return f(x).shape


@shape_of.mistake(
    "The shape is right, but `f` ran for it. In lazy mode it runs only when you ask for numbers, by "
    "`.numpy()`, say. A lazy Tensor knows its `shape` without them."
)
def eager(f, x):
    return f(x).shape


@shape_of.mistake(NO_RETURN)
def no_shape(f, x):
    with lazy():
        f(x)


@shape_of.mistake(NO_RETURN)
def no_shape_and_eager(f, x):
    f(x)


@shape_of.mistake("This is the whole Tensor. The exercise asks for its `shape`.")
def the_tensor(f, x):
    with lazy():
        return f(x)


@shape_of.mistake("This is the shape of what goes in. You want the shape of what comes out: call `f`.")
def input_shape(f, x):
    return x.shape


@shape_of.mistake("This is how many axes there are. The shape has the length of each axis.")
def axes(f, x):
    with lazy():
        return f(x).ndim


@shape_of.mistake("This is how many numbers there are. The shape has the length of each axis.")
def size(f, x):
    with lazy():
        return f(x).size


@shape_of.mistake(
    "Now everything that follows is lazy, too. Use `with ndl.lazy():`, which ends with its block."
)
def left_on(f, x):
    autograd.LAZY_MODE = True
    return f(x).shape


# --- 4 The training that ran out of memory ------------------------------------------------------------------


def _train(answer: Callable, pairs: Sequence[tuple[float, float]]) -> Any:
    batches = Batches(lambda pair: (Tensor([pair[0]]), Tensor([pair[1]])), pairs)
    with only_new_cycles():
        losses = answer(batches)
    if losses is ...:
        return losses
    if isinstance(losses, (list, tuple)):
        if any(loss is ... for loss in losses):
            return losses
        losses = [float(loss) for loss in losses]
    return {"losses": losses, MORE: batches.more}


@lecture.exercise(
    case([(1.0, 2.0), (2.0, 4.0), (0.5, 1.0), (1.0, 2.0), (1.5, 3.0), (2.0, 4.0)]),
    case([(1.0, -1.0), (3.0, 1.0), (1.0, 1.0), (-1.0, 2.0)]),
    otherwise="If the losses differ, compare your step with the loop above, line by line. If they agree, "
    "follow `inputs` from what a step leaves behind: does a way lead into the step before?",
    use=_train,
)
def train(batches):
    """The losses, with the library's optimiser."""
    w = Parameter(Tensor([0.0]))
    optimizer, losses = SGD([w], lr=0.1), []
    for x, y in batches:
        loss = ((x * w - y) ** 2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@train.mistake(
    "This is the loop as it was. Two of its lines keep the past: what is in the list, and what was `w` "
    "computed from?"
)
def as_it_was(batches):
    w, losses = Tensor([0.0]), []
    for x, y in batches:
        loss = ((x * w - y) ** 2).sum()
        loss.backward()
        w = w - 0.1 * w.grad
        losses.append(loss)
    return losses


@train.mistake(
    "The list holds plain numbers now, good. But each `w` was computed from the one before: there is a chain "
    "through all steps. Write to `w.data`."
)
def chain_of_weights(batches):
    w, losses = Tensor([0.0]), []
    for x, y in batches:
        loss = ((x * w - y) ** 2).sum()
        loss.backward()
        w = w - 0.1 * w.grad
        losses.append(loss.item())
    return losses


@train.mistake(
    "`w` is one leaf now, good. But each loss in the list is a Tensor that keeps its whole step. Keep its "
    "number."
)
def losses_with_their_past(batches):
    w, losses = Tensor([0.0]), []
    for x, y in batches:
        loss = ((x * w - y) ** 2).sum()
        loss.backward()
        w.data = w.data - 0.1 * w.grad.data
        losses.append(loss)
    return losses


NO_GRADIENT = (
    "There is no gradient here: `w.grad` is None. Do you call `loss.backward()` first? And is `w` still "
    "the leaf from before the loop? One that is detached, or made under `no_grad`, asks for no gradient. "
    "Keep one `w`, and write to `w.data`."
)


@train.mistake(NO_GRADIENT)
def weight_detached(batches):
    w, losses = Tensor([0.0]), []
    for x, y in batches:
        loss = ((x * w - y) ** 2).sum()
        loss.backward()
        w = (w - 0.1 * w.grad).detach()
        losses.append(loss.item())
    return losses


@train.mistake(NO_GRADIENT)
def both_detached(batches):
    w, losses = Tensor([0.0]), []
    for x, y in batches:
        loss = ((x * w - y) ** 2).sum()
        loss.backward()
        w = w.detach() - 0.1 * w.grad.detach()
        losses.append(loss.item())
    return losses


@train.mistake(NO_GRADIENT)
def weight_of_data(batches):
    w, losses = Tensor([0.0]), []
    for x, y in batches:
        loss = ((x * w - y) ** 2).sum()
        loss.backward()
        w = w.data - 0.1 * w.grad.data
        losses.append(loss.item())
    return losses


@train.mistake(
    "The losses have no past now, good. But each `w` was computed from the one before: there is a chain "
    "through all steps. Write to `w.data`."
)
def chain_and_losses_detached(batches):
    w, losses = Tensor([0.0]), []
    for x, y in batches:
        loss = ((x * w - y) ** 2).sum()
        loss.backward()
        w = w - 0.1 * w.grad
        losses.append(loss.detach())
    return losses


@train.mistake(
    "A plain number has neither `backward` nor `grad`. Take the loss's `item()` after `backward()`, and let "
    "`w` stay a Tensor."
)
def number_too_early(batches):
    w = Tensor([0.0])
    for x, y in batches:
        loss = ((x * w - y) ** 2).sum().item()
        loss.backward()
    return []


@train.mistake("This is the first loss alone: your `return` stands inside the loop. Move it to the left.")
def first_loss(batches):
    return [((x * 0.0 - y) ** 2).sum().item() for x, y in batches][:1]


@train.mistake("This is the sum of the losses. Return the list of them, one per batch.")
def sum_of_losses(batches):
    return sum(train.right(batches))


@train.mistake(NO_RETURN)
def no_losses(batches):
    train.right(batches)


@train.mistake("This is the loss of the last batch. Return the list of all losses.")
def last_loss(batches):
    return train.right(batches)[-1]


@train.mistake(
    "A detached loss has no past, good. But it is still a Tensor of an earlier step, and a list of plain "
    "numbers is all you need: `loss.item()`."
)
def losses_detached(batches):
    w, losses = Tensor([0.0]), []
    for x, y in batches:
        loss = ((x * w - y) ** 2).sum()
        loss.backward()
        w.data = w.data - 0.1 * w.grad.data
        losses.append(loss.detach())
    return losses


@train.mistake(
    "You detach the loss before `backward()`, so there is no way back. Take its number afterwards."
)
def detached_too_early(batches):
    w, losses = Tensor([0.0]), []
    for x, y in batches:
        loss = ((x * w - y) ** 2).sum().detach()
        loss.backward()
        w.data = w.data - 0.1 * w.grad.data
        losses.append(loss.item())
    return losses


@train.mistake("`w` never moves. Each step goes downhill: `w` minus 0.1 times its gradient.")
def never_moves(batches):
    w = Tensor([0.0])
    return [((x * w - y) ** 2).sum().item() for x, y in batches]


@train.mistake("This goes uphill: the loss grows. Subtract the gradient.")
def uphill(batches):
    w, losses = Tensor([0.0]), []
    for x, y in batches:
        loss = ((x * w - y) ** 2).sum()
        loss.backward()
        w.data = w.data + 0.1 * w.grad.data
        losses.append(loss.item())
    return losses
