"""What variables are called: as the caller's own variables are."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np

import needle as ndl
import viz

somewhere_global = ndl.Tensor([1.0])


def names(drawing: viz.Drawing) -> list[str]:
    return [variable.name for variable in drawing.graph.variables]


def test_local_variables_give_the_names() -> None:
    v1 = ndl.Tensor([0.0])
    v2 = ndl.exp(v1)
    v4 = v2 * (v2 + 1)
    assert names(viz.draw(v4)) == ["v1", "v2", "n3", "v4"]


def test_a_global_variable_gives_a_name_unless_a_local_one_does() -> None:
    y = somewhere_global + 1
    assert names(viz.draw(y)) == ["somewhere_global", "y"]
    here = somewhere_global
    assert names(viz.draw(here + 1)) == ["here", "n2"]


def test_a_local_variable_hides_a_global_one() -> None:
    somewhere_global = ndl.Tensor([2.0])
    assert names(viz.draw(somewhere_global + 1)) == ["somewhere_global", "n2"]


def test_underscored_names_are_not_meant_to_be_read() -> None:
    _12 = ndl.Tensor([0.0])
    assert names(viz.draw(_12 + 1)) == ["n1", "n2"]


def test_names_that_are_given_are_the_only_ones() -> None:
    x = ndl.Tensor([0.0])
    y = x + 1
    assert names(viz.draw(y, names={"input": x})) == ["input", "n2"]


def test_a_number_does_not_repeat_a_given_name() -> None:
    n2 = ndl.Tensor([0.0])
    assert names(viz.draw((n2 + 1) * 2)) == ["n2", "n2′", "n3"]


def test_parameters_and_items_of_lists_are_named() -> None:
    model = ndl.nn.Linear(2, 1)
    xs = [ndl.Tensor(np.ones((1, 2)))]
    assert names(viz.draw(model(xs[0])))[:2] == ["xs[0]", "weight"]
    other = ndl.nn.Linear(1, 1)
    assert {"model.weight", "other.weight"} <= set(names(viz.draw(other(model(xs[0])))))


def test_a_gradient_is_called_after_what_it_is_the_gradient_of() -> None:
    x = ndl.Tensor([2.0])
    y = x * x
    z = ndl.exp(y)
    z.backward()
    assert {"x", "y", "z.grad", "y.grad", "x.grad"} <= set(names(viz.draw(x.grad)))


def test_drawing_leaves_no_tensor_alive(no_gc) -> None:
    def function() -> tuple[viz.Drawing, viz.Drawing, weakref.ref, int]:
        before = ndl.autograd.TENSOR_COUNTER
        x = ndl.Tensor([2.0])
        y = x * x
        drawings = viz.draw(y), viz.draw_gradient(y)
        alive = weakref.ref(y)
        del x, y  # the frame must not remember them either, while it still runs
        assert alive() is None
        return *drawings, alive, ndl.autograd.TENSOR_COUNTER - before

    _, _, _, more = function()
    assert more == 0


def test_drawing_remembers_no_frame() -> None:
    frame = sys._getframe()
    before = gc.get_referrers(frame)
    drawing = viz.draw(ndl.Tensor([1.0]) + 1)
    assert len(gc.get_referrers(frame)) <= len(before)
    assert names(drawing) == ["n1", "n2"]


class Trainer:
    """Keeps its models to itself."""

    def __init__(self, *models: ndl.nn.Module) -> None:
        self.models = models

    def loss(self) -> ndl.Tensor:
        return sum(model(ndl.Tensor(np.ones((1, 2)))) for model in self.models).sum()


def parameters(drawing: viz.Drawing) -> set[str]:
    return {x.name for x in drawing.graph.variables if x.kind == "parameter"}


def test_parameters_are_called_as_their_module_calls_them_wherever_it_is() -> None:
    trainer = Trainer(ndl.nn.Sequential(ndl.nn.Linear(2, 2), ndl.nn.Linear(2, 1, bias=False)))
    loss = trainer.loss()
    known = {path for path, _ in trainer.models[0].named_parameters()}
    assert parameters(viz.draw(loss)) == parameters(viz.draw_gradient(loss)) == known
    assert len(known) == 3
    mine = trainer.models[0].parameters()[0]
    assert "mine" in parameters(viz.draw(loss))
    assert mine is trainer.models[0].parameters()[0]


def test_several_models_are_told_apart_by_their_class_and_number() -> None:
    models = [ndl.nn.Linear(2, 1, bias=False), ndl.nn.Linear(2, 1, bias=False)]
    trainer = Trainer(*models, ndl.nn.Sequential(ndl.nn.Linear(2, 1, bias=False), ndl.nn.ReLU()))
    (path,) = dict(trainer.models[2].named_parameters())
    del models
    assert parameters(viz.draw(trainer.loss())) == {
        "Linear 1.weight",
        "Linear 2.weight",
        f"Sequential.{path}",
    }


def test_a_model_that_is_gone_names_nothing() -> None:
    loss = Trainer(ndl.nn.Linear(2, 1, bias=False)).loss()
    gc.collect()
    assert all(name.startswith("n") for name in parameters(viz.draw(loss)))
