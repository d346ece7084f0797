"""Data in drawings: a constant batch, its transpose and its parts hang together with what uses them."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import needle as ndl
import viz
from needle import nn
from needle.apps.models import ResNet9
from needle.autograd import Spec, TensorOp
from viz.operators import symbol
from viz.step_data import record_passes
from viz.views import view_of

LAZY = pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])


def data(*shape: int) -> ndl.Tensor:
    """A batch, as a loader gives it."""
    numbers = np.random.default_rng(0).normal(size=shape)
    return ndl.Tensor(numbers, requires_grad=False, device=ndl.cpu_numpy())


def weights(*shape: int) -> ndl.Tensor:
    return ndl.Tensor(np.random.default_rng(1).normal(size=shape), device=ndl.cpu_numpy())


def by_name(drawing: viz.Drawing) -> dict[str, object]:
    return {variable.name: variable for variable in drawing.graph.variables}


def made(drawing: viz.Drawing) -> list[tuple[str, ...]]:
    """Each operator of the forward graph: the names of its operands, its words, the name of its result."""
    names = {variable.key: variable.name for variable in drawing.graph.variables}
    return [
        (*(names[operand.key] for operand in v.operands), v.operator.symbol, v.name)
        for v in drawing.graph.variables
        if v.operator and not v.row
    ]


def reused(drawing: viz.Drawing) -> list[tuple[str, str]]:
    """The dashed edges: a variable, and the operator in a later row that uses it."""
    by_key = {variable.key: variable for variable in drawing.graph.variables}
    return [
        (by_key[operand.key].name, v.operator.symbol)
        for v in drawing.graph.variables
        for operand in v.operands
        if by_key[operand.key].row < v.row
    ]


def closed(output: ndl.Tensor, depth: int = 0) -> dict[str, str]:
    """The facts of the closed groups by title, and the names of the edges into the first of them."""
    source = viz.draw(output, names={}, depth=depth)
    graph = viz.groups.fold(source.graph, source.opened)
    return {v.name: v.facts for v in graph.variables if v.kind == "group"}


# The gradient


@LAZY
def test_the_gradient_of_a_product_uses_the_batch_again(lazy: bool, parse) -> None:
    X, W = data(2, 3), weights(3, 2)
    with ndl.lazy(lazy):
        y = (X @ W).sum()
        drawing = viz.draw_gradient(y)
    assert reused(drawing) == [("X", "transpose")]
    dot = parse(drawing.source)
    (dashed,) = [dot.labels[head] for tail, head, look in dot.edges if "dashed" in look]
    assert dashed == "transpose"
    later = [v for v in drawing.graph.variables if v.row]
    assert [v.name for v in later if v.operator is None] == ["adjoint of y"]  # all else hangs on something
    assert y.cached_data is not None or not any(v.computed for v in later if v.operator)


@LAZY
def test_the_second_order_knows_where_the_transpose_of_the_batch_comes_from(lazy: bool) -> None:
    X, W = data(2, 3), weights(3, 2)
    with ndl.lazy(lazy):
        ((X @ W) ** 2).sum().backward()
        size = (W.grad**2).sum()
        drawing = viz.draw_gradient(size)
    assert ("X", "transpose") in reused(drawing)
    assert len(drawing.graph.rows) == 4
    plain = viz.draw(W.grad, names={"X": X, "W": W})
    assert ("X", "transpose") in reused(plain)


def test_the_gradient_of_a_sum_begins_with_the_seed() -> None:
    X, W = data(2, 3), weights(3, 2)
    y = ((X @ W) ** 2).sum()
    y.backward()
    drawing = viz.draw(W.grad)
    (seed,) = [v for v in drawing.graph.variables if v.kind == "seed"]
    assert seed.name == "y.grad"
    users = [v for v in drawing.graph.variables if seed.key in {operand.key for operand in v.operands}]
    assert [v.operator.symbol for v in users] == ["broadcast to (2, 2)"]


def test_a_detached_gradient_is_drawn_without_its_graph() -> None:
    X, W = data(2, 3), weights(3, 2)
    ((X @ W) ** 2).sum().backward()
    for cut in (W.grad.detach(), W.grad.detach().transpose()):
        drawing = viz.draw(cut * weights(*cut.shape), names={"X": X, "W": W, "cut": cut})
        assert by_name(drawing)["cut"].operator is None


def test_nothing_is_remembered_outside_of_a_drawing() -> None:
    X, W = data(2, 3), weights(3, 2)
    y = (X @ W).sum()
    viz.draw_gradient(y)
    y.backward()
    part = X.transpose()
    assert part.op is None
    assert part.inputs == []
    assert W.grad.inputs == []


def test_the_step_through_shows_the_transpose_of_the_batch() -> None:
    X, W = data(2, 3), weights(3, 2)
    y = (X @ W).sum()
    passes = record_passes(y, {X: "X", W: "W", y: "y"})
    (transpose,) = [v for v in passes.graph.variables if v.operator and v.operator.symbol == "transpose"]
    assert [operand.key for operand in transpose.operands] == ["n1"]
    assert passes.frames[passes.appears(transpose.key)].title.endswith("what n3 passes on to W")


def test_the_step_through_of_a_part_of_the_batch_begins_with_the_batch() -> None:
    xs, W = data(3, 2, 3), weights(3, 2)
    passes = record_passes((xs[1] @ W).sum(), {xs: "xs", W: "W"})
    assert passes.order == ("xs", "n2", "W", "n4", "n5")
    assert [frame.key for frame in passes.frames[:5]] == ["n1", "n2", "n3", "n4", "n5"]
    assert passes.frames[1].marked == ("n1",)
    assert str(passes.frames[1].equations[0]).startswith("n2 = xs[1] = ")
    transposed = record_passes((xs[1].transpose() @ W.transpose()).sum(), {xs: "xs", W: "W"})
    assert str(transposed.frames[1].equations[0]).startswith("n2 = view(xs) = ")


# Views of data


@pytest.mark.parametrize("library", ["NDArray", "numpy"])
@pytest.mark.parametrize(
    ("way", "view"),
    [
        ("[1]", lambda a: a[1:2].reshape((4, 5))),
        ("[:, 2]", lambda a: a[:, 2:3].reshape((3, 5))),
        ("[2, 1, 3]", lambda a: a[2:3, 1:2, 3:4].reshape(())),
        ("[1:, ::2]", lambda a: a[1:3, 0:4:2]),
        ("[:, 1:2]", lambda a: a[:, 1:2]),
        ("[::-1, :1:-1]", lambda a: a[::-1, :1:-1]),
        ("reshape (12, 5)", lambda a: a.reshape((12, 5))),
        ("broadcast to (2, 3, 4, 5)", lambda a: ndl.array_api.broadcast_to(a, (2, 3, 4, 5))),
        ("identity", lambda a: a[:]),
        (None, lambda a: a.reshape((2, 30))[1:2, 3:9].reshape((2, 3))),
    ],
)
def test_a_view_is_known_by_its_strides(way: str | None, view, library: str) -> None:
    a = np.arange(60.0).reshape(60).copy().reshape(3, 4, 5)
    if library == "NDArray":
        array = ndl.Tensor(a, requires_grad=False).cached_data
    elif way and way.startswith("broadcast"):
        array, view = a, lambda a: np.broadcast_to(a, (2, 3, 4, 5))
    else:
        array = a
    found = view_of(array, view(array))
    assert (found if found is None else symbol(found)) == way


@pytest.mark.parametrize(
    ("way", "axes"), [("transpose", (0, 2, 1)), ("transpose axes=(0, 2)", (2, 1, 0)), (None, (1, 2, 0))]
)
def test_a_view_with_its_axes_in_another_order(way: str | None, axes: tuple[int, ...]) -> None:
    array = data(3, 4, 5).cached_data
    assert symbol(view_of(array, array.permute(axes))) == (way or f"permute axes={axes}")


def test_the_steps_of_a_sequence_come_from_the_sequence() -> None:
    xs, W, U = data(3, 2, 4), weights(4, 3), weights(3, 3)
    h = data(2, 3)
    for t in range(3):
        h = ndl.tanh(xs[t] @ W + h @ U)
    operators = {words for operand, words, *_ in made(viz.draw(h)) if operand == "xs"}
    assert operators == {"[0]", "[1]", "[2]"}


def test_two_parts_of_the_same_data_do_not_come_from_each_other() -> None:
    xs = data(4, 3)
    first, second = xs[:2], xs[2:]
    del xs
    drawing = viz.draw(first * weights(2, 3) + second)
    assert by_name(drawing)["first"].operator is None
    assert by_name(drawing)["second"].operator is None


def test_a_view_that_takes_two_steps_is_still_a_view() -> None:
    xs, w = data(3, 4, 4), weights(4, 4)
    assert ("xs", "view", "n2") in made(viz.draw(xs[1].transpose() * w))


@LAZY
def test_a_view_of_what_was_detached_is_cut_from_it(lazy: bool) -> None:
    x = weights(2, 3)
    with ndl.lazy(lazy):
        y = x * 2
        z = y.detach().transpose() @ y
        drawing = viz.draw(z)
    copy, *_ = (words for words in made(drawing) if "transpose" in words)
    assert by_name(drawing)[copy[0]].cut_from == by_name(drawing)["y"].key
    assert by_name(drawing)[copy[0]].kind == "constant"


def test_a_lazy_constant_shows_how_it_will_be_computed() -> None:
    x = data(2, 3)
    with ndl.lazy():
        y = (x * 2).transpose() + 1
    drawing = viz.draw(y)
    assert made(drawing) == [("x", "× 2", "n2"), ("n2", "transpose", "n3"), ("n3", "+ 1", "y")]
    assert [v.computed for v in drawing.graph.variables] == [True, False, False, False]
    assert y.op is None
    assert y.cached_data is None


def test_a_view_keeps_no_tensor_alive(no_gc) -> None:
    X = data(2, 3)
    part, gone = X.transpose(), weakref.ref(X)
    del X
    assert gone() is None
    drawing = viz.draw(part * weights(3, 2), names={})
    assert made(drawing) == [("n1", "n2", "×", "n3")]


# Modules


@LAZY
def test_a_recurrent_network_on_data_begins_with_the_data(lazy: bool) -> None:
    model = nn.RNN(4, 3, device=ndl.cpu_numpy(), rng=0)
    with ndl.lazy(lazy):
        xs = data(3, 2, 4)
        _, last = model(xs)
        assert closed(last) == {"RNN": "(3, 2, 4) → (1, 2, 3)"}
        drawing = viz.draw(last)
        inside = {v.name: bool(v.group) for v in drawing.graph.variables}
        assert not inside["xs"]
        assert ("xs", "reshape (6, 4)", "n2") in made(drawing)
        _, last = model(data(3, 2, 4))  # nobody has a name for these data, and nobody holds them
        assert closed(last) == {"RNN": "(3, 2, 4) → (1, 2, 3)"}


def test_a_convolutional_network_on_data_begins_with_the_data() -> None:
    model = ResNet9(device=ndl.cpu_numpy())
    x = data(2, 3, 32, 32)
    for logits in (model(x), model(data(2, 3, 32, 32))):
        assert closed(logits) == {"ResNet9": "(2, 3, 32, 32) → (2, 10)"}
        parts = closed(logits, depth=1)
        assert parts["Sequential 1"] == "(2, 3, 32, 32) → (2, 16, 8, 8)"
    drawing = viz.draw(model(x), depth=1)
    assert by_name(drawing)["x"].group == ""


def test_what_a_module_makes_itself_is_inside_it() -> None:
    class Shift(nn.Module):
        def forward(self, x):
            zeros = ndl.init.zeros(3, 2, device=x.device)
            return x.transpose() @ weights(2, 2) + zeros.transpose().transpose()

    shift = Shift()
    drawing = viz.draw(shift(data(2, 3)), names={})
    inside = {v.shape: bool(v.group) for v in drawing.graph.variables if v.operator is None}
    assert inside == {(2, 3): False, (2, 2): True, (3, 2): True}


@pytest.mark.parametrize("depth", [0, 1])
def test_a_network_on_a_batch_has_all_its_edges(depth: int) -> None:
    rng = np.random.default_rng(0)
    where = {"device": ndl.cpu_numpy(), "rng": rng}
    model = nn.Sequential(nn.Flatten(), nn.Linear(6, 4, **where), nn.ReLU(), nn.Linear(4, 2, **where))
    x = data(5, 2, 3)
    drawing = viz.draw_gradient(model(x).sum(), depth=depth)
    assert [v.name for v in drawing.graph.variables if v.row and v.operator is None] == ["adjoint of n12"]
    graph = viz.groups.fold(drawing.graph, drawing.opened)
    (first,) = [v for v in graph.variables if [o.key for o in v.operands] == [by_name(drawing)["x"].key]]
    assert first.kind == "group"
    assert first.facts.startswith("(5, 2, 3) →")


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_the_words_that_are_looked_up_are_the_index(dtype: str) -> None:
    words = ndl.Tensor([[0, 1], [2, 4], [4, 1]], dtype=dtype, requires_grad=False)
    model = nn.Sequential(nn.Embedding(5, 3, rng=0), nn.Linear(3, 2, rng=0))
    out = model(words)
    assert closed(out, depth=1)["Embedding"] == "(3, 2) → (3, 2, 3)"
    drawing = viz.draw(out)
    assert by_name(drawing)["words"].group == ""
    (look_up,) = [
        v for v in drawing.graph.variables if by_name(drawing)["words"].key in {o.key for o in v.operands}
    ]
    assert [operand.label for operand in look_up.operands] == ["", "index"]
    gradient = viz.draw_gradient(out.sum())
    assert [v.name for v in gradient.graph.variables if v.row and v.operator is None] == ["adjoint of n10"]


@LAZY
def test_a_loss_begins_with_the_labels(lazy: bool) -> None:
    y = ndl.Tensor([0, 1, 1, 0], requires_grad=False)
    logits = weights(4, 3).to(y.device)
    with ndl.lazy(lazy):
        loss = nn.SoftmaxLoss()(logits, y)
    drawing = viz.draw(loss)
    assert [words for operand, words, *_ in made(drawing) if operand == "y"] == ["one hot"]
    assert closed(loss) == {"SoftmaxLoss": "(4, 3), (4,) → ()"}
    passes = record_passes(loss, {y: "y", logits: "logits"})
    said = [str(line) for frame in passes.frames for line in frame.equations]
    assert any("= one_hot(y)" in line for line in said)


def test_what_is_subtracted_comes_from_the_targets() -> None:
    X, w, y = data(4, 3), weights(3, 1), data(4, 1)
    assert ("y", "−", "n5") in made(viz.draw(((X @ w - y) ** 2).mean()))
    loss = nn.MSELoss()(X @ w, y)
    assert closed(loss) == {"MSELoss": "(4, 1) → ()"}
    assert by_name(viz.draw(loss))["y"].group == ""
    zeros = ndl.init.zeros(4, 1, device=y.device)
    anonymous = ndl.init.zeros(4, 1, device=y.device) + zeros
    names = {"zeros": zeros, "y": y, "w": w, "X": X}
    assert not [words for *_, words, _ in made(viz.draw(X @ w + anonymous, names=names)) if words == "−"]


def test_the_states_of_a_network_are_parts_of_one_array() -> None:
    model = nn.LSTM(4, 3, device=ndl.cpu_numpy(), rng=0)
    out, _ = model(data(3, 2, 4))
    words = [words for *_, words, _ in made(viz.draw(out, names={}))]
    assert "identity" not in words


def test_a_constant_that_a_module_passes_on_stays_outside() -> None:
    class Again(nn.Module):
        def forward(self, x):
            return weights(2, 3) * x.detach()

    x = data(2, 3)
    drawing = viz.draw(Again()(x))
    assert [v.name for v in drawing.graph.variables if not v.group] == ["x"]
    assert [v.name for v in drawing.graph.variables if v.kind == "constant"] == ["x"]


def test_a_module_does_not_keep_its_input(no_gc) -> None:
    class Double(nn.Module):
        def forward(self, x):
            return ndl.init.ones(2, device=x.device, requires_grad=True) * 2

    x = data(1000)
    array = weakref.ref(x.cached_data)
    result = Double()(x)
    del x
    gc.collect()
    assert array() is None
    assert result.scope.name == "Double"


# Errors


class Odd(TensorOp):
    """An operator that fails only when it is computed."""

    def infer(self, a, b):
        return Spec(a.shape, a.dtype, a.device)

    def compute(self, a, b):
        raise ZeroDivisionError("this one is odd")


@pytest.mark.parametrize("named", [True, False])
def test_a_lazy_failure_among_constants_has_its_operator(named: bool) -> None:
    x = data(2, 3)
    with ndl.lazy():
        z = x * 2
        result = Odd()(z, x.transpose()) + 1
    with pytest.raises(ZeroDivisionError) as caught:
        result.numpy()
    drawing = viz.draw_error(caught.value, names={"x": x, "z": z} if named else {})
    (failed,) = [v for v in drawing.graph.variables if v.kind == "failed"]
    assert failed.operator.symbol == "odd"
    assert [operand.label for operand in failed.operands] == ["1st (2, 3)", "2nd (3, 2)"]
    if named:
        assert made(drawing) == [("x", "transpose", "n3"), ("z", "n3", "odd", "ZeroDivisionError")]
