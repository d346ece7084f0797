"""The graph up to the operation that failed: what is in it, from which exceptions, and how it is offered."""

from __future__ import annotations

import pickle
import sys
import traceback

import numpy as np
import pytest

import needle as ndl
import viz
from needle import nn
from needle.autograd import Spec, TensorOp
from needle.failures import OFFER


class Cube(TensorOp):
    """An operator of a reader's own, with a mistake in it."""

    def infer(self, x):
        return Spec(x.shape, x.dtype, x.device)

    def compute(self, x):
        raise ZeroDivisionError("this one is wrong")


@pytest.fixture
def tensors() -> dict[str, ndl.Tensor]:
    return {"a": ndl.Tensor(np.ones((2, 3))), "b": ndl.Tensor(np.ones(4))}


def error_of(function) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which error it is, the tests below say
        function()
    return caught.value


def failure(drawing: viz.Drawing):
    (failed,) = [variable for variable in drawing.graph.variables if variable.kind == "failed"]
    return failed


FAILURES = {
    "add": (lambda a, b: ndl.exp(a) + b, "+", ["1st (2, 3)", "2nd (4,)"]),
    "matmul": (lambda a, b: a @ b.reshape((2, 2)), "@", ["1st (2, 3)", "2nd (2, 2)"]),
    "matmul with a vector": (lambda a, b: a @ b, "@", ["1st (2, 3)", "2nd (4,)"]),
    "reshape": (lambda a, b: (a * 2).reshape((4, 4)), "reshape (4, 4)", ["(2, 3)"]),
    "concatenate": (
        lambda a, b: ndl.concatenate([a, a * 2, b.reshape((1, 4))], 0),
        "concatenate axis=0",
        ["1st (2, 3)", "2nd (2, 3)", "3rd (1, 4)"],
    ),
    "index": (lambda a, b: (a * 2)[5], "[5]", ["(2, 3)"]),
    "index of several items": (lambda a, b: a[::-1, ..., 1, 2], "[::-1, ..., 1, 2]", ["(2, 3)"]),
    "index by name": (lambda a, b: a["a"], "['a']", ["(2, 3)"]),
    "index by a Tensor": (lambda a, b: a[b * 2], "[Tensor]", ["1st (2, 3)", "2nd (4,)"]),
    "index by an array": (lambda a, b: a[:, np.full(7, 3)], "[:, ndarray]", ["(2, 3)"]),
    "index of a tuple": (lambda a, b: ndl.ops.split(a, 0)[2], "[2]", ["tuple of 2"]),
    "adjoint to begin with": (lambda a, b: (a * 2).backward(b), "backward", ["1st (2, 3)", "2nd (4,)"]),
    "one's own": (lambda a, b: Cube()(a), "cube", ["(2, 3)"]),
}


@pytest.mark.parametrize("name", FAILURES)
def test_the_operator_its_message_and_the_shapes_that_met_are_drawn(name: str, tensors) -> None:
    function, symbol, shapes = FAILURES[name]
    error = error_of(lambda: function(**tensors))
    drawing = viz.draw_error(error, names=tensors)
    failed = failure(drawing)
    assert failed.operator.symbol == symbol
    assert [operand.label for operand in failed.operator.operands] == shapes
    assert (failed.name, failed.note) == (type(error).__name__, str(error))
    assert "a" in {variable.name for variable in drawing.graph.variables}
    red = viz.style.STYLES["needle"].boxes["failed"].line
    (operator,) = [line for line in drawing.source.splitlines() if line.startswith(f"  {failed.key}_op [")]
    assert f'color="{red}"' in operator
    assert "the operator that failed" in drawing.source
    assert drawing.svg().count(red.lower()) + drawing.svg().count(red) >= 3


def test_a_layer_whose_sizes_do_not_fit() -> None:
    rng = np.random.default_rng(0)
    layers = [nn.Linear(4, 8, rng=rng), nn.ReLU(), nn.Linear(8, 5, rng=rng), nn.ReLU(), nn.Linear(6, 2)]
    model = nn.Sequential(*layers)
    images = ndl.Tensor(np.ones((3, 4)), requires_grad=False)
    try:
        model(images)
    except ValueError:
        drawing = viz.draw_error()
    failed = failure(drawing)
    assert failed.operator.symbol == "Linear in_features=6, out_features=2"
    assert [operand.label for operand in failed.operator.operands] == ["(3, 5)"]
    assert failed.note == "Linear: needs shape (..., 6), got (3, 5)"
    titles = {group.key: group.title for group in drawing.graph.groups}
    assert titles[failed.group] == "Sequential"
    assert "images" in {variable.name for variable in drawing.graph.variables}
    assert failed.key in viz.draw_error(error_of(lambda: model(images)), depth=0).source


def test_an_image_for_another_convolution() -> None:
    conv = nn.Conv(3, 4, 3)
    error = error_of(lambda: conv(ndl.Tensor(np.ones((2, 5, 8, 8)))))
    failed = failure(viz.draw_error(error))
    assert failed.operator.symbol.startswith("Conv in_channels=3")
    assert [operand.label for operand in failed.operator.operands] == ["(2, 5, 8, 8)"]


@pytest.mark.parametrize("ask", ["numpy", "eager"])
def test_a_lazy_graph_that_fails_when_it_is_computed(ask: str, tensors) -> None:
    a = tensors["a"]
    with ndl.lazy():
        z = a * 2
        result = ndl.exp(Cube()(z))
    error = error_of(result.numpy if ask == "numpy" else lambda: result + 1)
    drawing = viz.draw_error(error, names={"a": a, "z": z})
    assert [variable.name for variable in drawing.graph.variables] == ["a", "z", "ZeroDivisionError"]
    assert OFFER in error.__notes__


def test_an_operator_that_fails_in_the_gradient(tensors) -> None:
    class Half(TensorOp):
        def compute(self, x):
            return x / 2

        def gradient(self, out_grad, node):
            return Cube()(out_grad)

    error = error_of(Half()(tensors["a"]).backward)
    assert failure(viz.draw_error(error)).operator.symbol == "cube"


def unknown_key(out_grad, node):
    raise KeyError("weights")


WRONG_GRADIENTS = {
    "shape": (lambda out_grad, node: out_grad.sum(), ValueError, ["1st ()", "2nd (2, 3)"]),
    "count": (lambda out_grad, node: (out_grad, out_grad), ValueError, ["1st (2, 3)", "2nd (2, 3)"]),
    "type": (lambda out_grad, node: 2.0, TypeError, ["1st (2, 3)", "2nd (2, 3)"]),
    "error": (unknown_key, KeyError, ["1st (2, 3)", "2nd (2, 3)"]),
}


@pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])
@pytest.mark.parametrize("name", WRONG_GRADIENTS)
def test_an_operator_whose_own_gradient_is_wrong(name: str, lazy: bool, tensors) -> None:
    wrong, kind, shapes = WRONG_GRADIENTS[name]

    class Twice(TensorOp):
        def infer(self, x):
            return Spec(x.shape, x.dtype, x.device)

        def compute(self, x):
            return x + x

        def gradient(self, out_grad, node):
            return wrong(out_grad, node)

    a = tensors["a"]
    with ndl.lazy(lazy):
        h = ndl.exp(a)
        with ndl.scope("second half"):
            z = Twice()(h)
        error = error_of((z * 3).sum().backward)
    assert (type(error), error.__notes__) == (kind, [OFFER])
    drawing = viz.draw_error(error, names={"a": a, "h": h, "z": z})
    failed = failure(drawing)
    assert failed.operator.symbol == "Twice().gradient"
    assert [operand.label for operand in failed.operator.operands] == shapes
    assert {"a", "h"} <= {variable.name for variable in drawing.graph.variables}
    titles = {group.key: group.title for group in drawing.graph.groups}
    assert titles[failed.group] == "second half"


def test_an_operator_without_a_gradient(tensors) -> None:
    class Twice(TensorOp):
        def compute(self, x):
            return x + x

    error = error_of(Twice()(tensors["a"]).backward)
    assert failure(viz.draw_error(error)).note == str(error) == "Twice has no gradient method"


def test_names_come_from_the_functions_that_the_exception_passed_through() -> None:
    def step(batch):
        hidden = ndl.exp(batch)
        return hidden + ndl.Tensor(np.ones(5))

    images = ndl.Tensor(np.ones(2))
    error = error_of(lambda: step(images))
    names = [variable.name for variable in viz.draw_error(error).graph.variables]
    assert names == ["images", "hidden", "n3", "ValueError"]


def test_the_last_exception_is_found(tensors, monkeypatch) -> None:
    error = error_of(lambda: tensors["a"] + tensors["b"])
    monkeypatch.setattr(sys, "last_exc", None, raising=False)
    monkeypatch.setattr(sys, "last_value", None, raising=False)
    with pytest.raises(ValueError, match="there was no exception yet"):
        viz.draw_error()
    monkeypatch.setattr(sys, "last_value", error, raising=False)
    assert failure(viz.draw_error()).note == str(error)
    monkeypatch.setattr(sys, "last_exc", error_of(lambda: Cube()(tensors["a"])), raising=False)
    assert failure(viz.draw_error()).note == "this one is wrong"


def test_what_an_exception_was_raised_from_is_searched(tensors) -> None:
    def from_cause():
        try:
            tensors["a"] + tensors["b"]
        except ValueError as error:
            raise RuntimeError("training failed") from error

    def in_context():
        try:
            from_cause()
        finally:
            raise KeyError("and then this")

    for error in (error_of(from_cause), error_of(in_context)):
        assert failure(viz.draw_error(error)).name == "ValueError"


def test_an_exception_without_a_graph_is_told() -> None:
    with pytest.raises(ValueError, match=r"ZeroDivisionError \(division by zero\) has no graph"):
        viz.draw_error(error_of(lambda: 1 / 0))
    with pytest.raises(TypeError, match="draw_error: needs an exception, got int"):
        viz.draw_error(3)


def test_errors_offer_the_drawing_once_and_keep_their_message(tensors) -> None:
    error = error_of(lambda: tensors["a"] + tensors["b"])
    assert error.__notes__ == [OFFER]
    assert OFFER not in str(error)
    shown = "".join(traceback.format_exception_only(error))
    assert shown == f"ValueError: {error}\n{OFFER}\n"
    copy = pickle.loads(pickle.dumps(ValueError(*error.args)))
    assert str(copy) == str(error)


def test_the_offer_does_what_it_says(tensors, tmp_path, monkeypatch) -> None:
    in_notebooks, in_scripts = (line.partition(": ")[2] for line in OFFER.splitlines())
    monkeypatch.chdir(tmp_path)
    exec(f"import viz\ntry: a + b\n{in_scripts}", dict(tensors))
    assert "the operator that failed" in (tmp_path / "error.svg").read_text()
    monkeypatch.setattr(sys, "last_exc", error_of(lambda: tensors["a"] + tensors["b"]), raising=False)
    exec(in_notebooks, {})


def test_an_index_that_is_computed_wrongly_is_not_to_blame(tensors) -> None:
    with ndl.lazy():
        index = Cube()(tensors["b"])
    error = error_of(lambda: tensors["a"][index])
    assert failure(viz.draw_error(error)).operator.symbol == "cube"


def test_nothing_is_computed(tensors) -> None:
    with ndl.lazy():
        z = tensors["a"] * 2
        error = error_of(lambda: z + tensors["b"])
    assert not viz.draw_error(error).graph.variables[1].computed
    assert z.cached_data is None
