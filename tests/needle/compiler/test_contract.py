"""The contract of `jit`: what is read anew in each call, what is frozen, and what is refused."""

from __future__ import annotations

import copy
import functools
import json
import os
import random
import re
import time
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import needle as ndl
from needle import nn, optim
from needle.autograd import Tensor
from needle.compiler import CannotTrace
from needle.compiler.structures import Leaf
from needle.compiler.trace import trace

from ...training import SmallTraining
from .conftest import assert_close, assert_equals_eager, assert_same, count_of, jit, tensor


def test_the_example_of_a_trace():
    W, b = tensor(2, 8), tensor(8)
    found = trace(lambda x: ndl.relu(x @ W + b), ((Leaf(0),), {}), [tensor(10, 2)], ["x"])
    assert [(x.name, x.cell.shape, x.leaf) for x in found.inputs] == [
        ("x", (10, 2), 0),
        ("W", (2, 8), None),
        ("b", (8,), None),
    ]
    made = [str(cell.op) for cell in found.cells if cell.operands]
    assert made == ["MatMul()", "EWiseAdd()", "ReLU()"]
    assert found.template == Leaf(0)
    assert W.numpy().shape == (2, 8)  # it has its numbers again


# Read anew: structure, shape, dtype and device of the arguments, and what needle's own objects hold


def test_shapes_and_dtypes():
    def f(x):
        return (x * 2).sum() / len(x)

    g = jit(f)
    for _ in range(2):
        for x in (tensor(3), tensor(4), tensor(3, 2), tensor(3, dtype="float64"), ndl.zeros(1)):
            assert_same(g(x), f(x))
    assert count_of(g) == 5


def test_integers_and_booleans():
    def f(x):
        return x + 1, x.sum(), x * x > 2

    for dtype in ("int64", "int32", "uint8", "bool"):
        x = Tensor([[0, 1, 2], [3, 0, 5]], dtype=dtype, requires_grad=False)
        assert_equals_eager(f, x)


def test_layouts_of_arguments():
    def f(x):
        return ndl.exp(x).sum(0)

    g = jit(f)
    x = tensor(4, 3)
    for _ in range(2):
        for view in (x, x.transpose(), x[::2], ndl.flip(x), x[:1].broadcast_to((4, 3)), x[1:, 1:]):
            assert_same(g(view), f(view))


def test_a_lazy_argument():
    g = jit(lambda x: x * 2)
    g(ndl.ones(3))
    for _ in range(2):
        with ndl.lazy():
            x = ndl.ones(3) + 1
        assert g(x).numpy().tolist() == [4, 4, 4]


def test_an_argument_with_a_graph():
    w = tensor(3)

    def f(x):
        return ndl.gradients((x * x).sum(), [x])[0]

    g = jit(f)
    for _ in range(2):
        x = w * 2
        assert_same(g(x), f(x))


def test_requires_grad():
    def f(x):
        out = x * 3
        return out.requires_grad, out

    g = jit(f)
    for requires_grad in (True, False, True):
        x = Tensor([1.0, 2.0], requires_grad=requires_grad)
        flag, _ = g(x)
        assert flag is requires_grad


def test_requires_grad_of_what_is_closed_over():
    w = tensor(3)

    def f(x):
        return (x * w).requires_grad

    x = Tensor([1.0, 2.0, 3.0], requires_grad=False)
    g = jit(f)
    for requires_grad in (True, False, True):
        w.requires_grad = requires_grad
        assert g(x) is requires_grad


def test_no_grad():
    w = tensor(3)

    def f(x):
        return (x * w).requires_grad

    g = jit(f)
    for _ in range(2):
        assert g(tensor(3)) is True
        with ndl.no_grad():
            assert g(tensor(3)) is False


def test_train_and_eval():
    model = nn.Sequential(nn.Linear(3, 4, rng=0), nn.BatchNorm1d(4), nn.Dropout(0.5, rng=1))
    x = tensor(5, 3)
    g = jit(lambda x: model(x))
    g(x)
    model.eval()
    first = g(x)
    assert_same(first, model(x).detach())
    assert_same(g(x), first)
    model.train()
    assert (g(x).numpy() == 0).any()
    model.eval()
    assert (g(x).numpy() != 0).all()


def test_train_and_eval_of_a_module_that_is_an_argument():
    model = nn.Dropout(0.5, rng=1)
    x = ndl.ones(64)
    g = jit(lambda model, x: model(x))
    for _ in range(2):
        model.train()
        assert (g(model, x).numpy() == 0).any()
        model.eval()
        assert g(model, x).numpy().tolist() == [1] * 64


def test_a_changed_setting_of_a_module():
    dropout = nn.Dropout(0.5, rng=0)
    g = jit(lambda x: dropout(x))
    x = ndl.ones(1000)
    g(x)
    for p in (0.1, 0.9, 0.5):
        dropout.p = p
        assert abs((g(x).numpy() == 0).mean() - p) < 0.1


def test_a_changed_setting_deep_in_a_model():
    model = nn.Sequential(nn.Linear(2, 2, rng=0), nn.Residual(nn.LeakyReLU(0.1)))
    g = jit(lambda x: model(x))
    x = tensor(3, 2)
    for slope in (0.1, 0.3, 2.0):
        model.modules[1].fn.slope = slope
        assert_same(g(x), model(x).detach())


def test_a_module_is_replaced():
    model = nn.Sequential(nn.Linear(2, 2, rng=0), nn.ReLU())
    g = jit(lambda x: model(x))
    x = tensor(3, 2)
    for module in (nn.ReLU(), nn.Tanh(), nn.Linear(2, 3, rng=1), nn.Identity()):
        model.modules = (model.modules[0], module)
        assert_same(g(x), model(x).detach())


@pytest.mark.parametrize(
    "change",
    [
        lambda model, new: setattr(model, "weight", nn.Parameter(new.numpy())),
        lambda model, new: setattr(model.weight, "data", new),
    ],
    ids=["replaced", "written"],
)
def test_a_parameter_is_another_in_the_next_call(change):
    model = nn.Linear(2, 2, rng=0)
    g = jit(lambda x: model(x))
    x = tensor(3, 2)
    for seed in range(3):
        change(model, tensor(2, 2, seed=seed))
        assert_same(g(x), model(x).detach())


class Parts(nn.Module):
    """A module that is used by its parts, and holds collections."""

    def __init__(self):
        super().__init__()
        self.layers = [nn.ReLU()]
        self.weights = {"a": [nn.Parameter(np.ones(2))]}
        self.scales, self.offset, self.array = [2.0], np.float32(1.0), np.ones(2, "float32")

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        for (weight,) in self.weights.values():
            x = x * weight
        return x * self.scales[0] * float(self.array[0]) + self.offset


def changes_of_parts():
    return {
        "another layer": lambda m: m.layers.__setitem__(0, nn.Tanh()),
        "one more layer": lambda m: m.layers.append(nn.Sigmoid()),
        "no layer": lambda m: m.layers.clear(),
        "another weight": lambda m: m.weights["a"].__setitem__(0, nn.Parameter(np.full(2, 3.0))),
        "one more weight": lambda m: m.weights.update(b=[nn.Parameter(np.full(2, 5.0))]),
        "a number in a list": lambda m: m.scales.__setitem__(0, 7.0),
        "another list": lambda m: setattr(m, "scales", [9.0]),
        "a number of NumPy's": lambda m: setattr(m, "offset", np.float32(3)),
        "an array": lambda m: m.array.fill(4),
        "another array": lambda m: setattr(m, "array", np.full(3, 5, "float32")),
    }


@pytest.mark.parametrize("which", changes_of_parts())
def test_what_a_module_holds_is_read_anew(which):
    module, x = Parts(), tensor(3, 2)
    called, used = jit(lambda x: module(x)), jit(lambda x: module.forward(x))
    for _ in range(2):
        assert_same(called(x), module(x).detach())
        assert_same(used(x), module(x).detach())
    changes_of_parts()[which](module)
    for _ in range(2):
        assert_same(called(x), module(x).detach())
        assert_same(used(x), module(x).detach())
    assert count_of(called) == count_of(used) == 2


def test_equal_settings_need_no_new_program():
    module = Parts()
    g = jit(lambda x: module(x))
    for _ in range(3):
        module.scales, module.offset = [float("2")], np.float32(1.0)
        module.array, module.layers = np.ones(2, "float32"), list(module.layers)
        g(tensor(3, 2))
    assert count_of(g) == 1


def test_a_module_that_is_not_called():
    module, held = nn.Linear(2, 2, rng=0), SimpleNamespace()
    held.module = module
    x = tensor(3, 2)

    def f(x):
        return x @ held.module.weight * (2.0 if held.module.training else 1.0)

    g = jit(f)
    for change in (module.train, module.eval, lambda: setattr(module, "weight", nn.Parameter(np.eye(2)))):
        change()
        assert_same(g(x), f(x).detach())
    assert "__getattribute__" not in vars(nn.Linear)
    assert nn.Module.__getattribute__ is object.__getattribute__  # nothing is asked while nothing is traced


def test_what_only_the_class_has():
    class Scaled(nn.Module):
        scale = 2.0

        def forward(self, x):
            return x * self.scale * (self.more if hasattr(self, "more") else 1)

    module, x = Scaled(), tensor(3)
    g = jit(lambda x: module(x))
    for name, value in (("scale", 3.0), ("more", 5.0), ("more", 6.0)):
        assert_same(g(x), module(x).detach())
        setattr(module, name, value)
    assert_same(g(x), module(x).detach())
    assert count_of(g) == 4


def test_a_module_that_is_asked_for_its_parameters():
    model, x = nn.Sequential(nn.Linear(2, 2, rng=0)), tensor(3, 2)

    def f(x):
        return x * sum((p * p).sum() for p in model.parameters())

    g = jit(f)
    for number in range(4):
        for _ in range(2):
            assert_same(g(x), f(x).detach())
        setattr(model if number % 2 else model.modules[0], f"layer{number}", nn.Linear(2, 2, rng=number))
    assert count_of(g) == 4


def test_what_a_module_is_not_asked_for_may_change():
    module = nn.Linear(2, 2, rng=0)
    module.losses, module.calls = [], 0
    g = jit(lambda x: module(x))
    for number in range(3):
        module.losses.append(g(tensor(3, 2)))
        module.calls, module.array = number, np.ones(number)
    assert count_of(g) == 1


def test_only_what_is_used_of_a_model_is_compared():
    model = nn.Sequential(nn.Linear(2, 2, rng=0), nn.Dropout(0.5))
    g = jit(lambda x: model.modules[0](x))
    g(tensor(3, 2))
    model.modules[1].eval()
    g(tensor(3, 2))
    assert count_of(g) == 1


def test_a_parameter_moves_to_another_device_and_back():
    model = nn.Linear(2, 2, rng=0)
    g = jit(lambda x: model(x))
    for device in (ndl.cpu(), ndl.cpu_numpy(), ndl.cpu()):
        model.to(device)
        x = tensor(3, 2, device=device)
        assert_same(g(x), model(x).detach())


def test_a_gradient_that_is_written():
    w, x = tensor(3), ndl.ones(3)

    def f(x):
        w.grad.data = w.grad * 0.5
        return x * w.grad

    g = jit(f)
    for number in (2, 4, 6):
        w.grad = ndl.ones(3) * number
        for halved in (number / 2, number / 4):
            assert g(x).numpy().tolist() == w.grad.numpy().tolist() == [halved] * 3


# Frozen: all else that Python reads. `debug=True` says where that is something else by now


SCALE = 2.0


def frozen():
    """A function, a change of what it reads, and what the warning names."""
    number, names, settings, array, large = 2.0, ["a"], {"on": True, "k": 0}, np.ones(3), np.ones(300)
    plain, first, second = SimpleNamespace(factor=2.0), tensor(3), tensor(3, seed=1)
    holder = SimpleNamespace(tensor=tensor(3, seed=2))
    os.environ["NEEDLE_TEST_FACTOR"] = "2"

    class Settings:
        factor = 2.0

    def count():
        nonlocal number
        number += 1

    return {
        "a number": (lambda x: x * number, count, "MulScalar(scalar=3.0)"),
        "a list": (lambda x: x * len(names), lambda: names.append("b"), "MulScalar(scalar=2)"),
        "a branch": (
            lambda x: x * 2 if settings["on"] else ndl.exp(x),
            lambda: settings.update(on=False),
            "Now it computes Exp() of x; before, it computed MulScalar",
        ),
        "an index": (lambda x: x[settings["k"]] * 2, lambda: settings.update(k=1), "1"),
        "a class": (
            lambda x: x * Settings.factor,
            lambda: setattr(Settings, "factor", 5.0),
            "MulScalar(scalar=5.0) of x",
        ),
        "a plain object": (
            lambda x: x * plain.factor,
            lambda: setattr(plain, "factor", 5.0),
            "computes MulScalar(scalar=5.0) of x; before, it computed MulScalar(scalar=2.0) of x",
        ),
        "a global name": (lambda x: x * SCALE, lambda: globals().update(SCALE=5.0), "MulScalar(scalar=5.0)"),
        "the environment": (
            lambda x: x * float(os.environ["NEEDLE_TEST_FACTOR"]),
            lambda: os.environ.update(NEEDLE_TEST_FACTOR="5"),
            "MulScalar(scalar=5.0)",
        ),
        "an array of NumPy's": (
            lambda x: x + Tensor(array, requires_grad=False),
            lambda: array.fill(7.0),
            "constant [7. 7. 7.]",
        ),
        "one number of many": (
            lambda x: x + Tensor(large, requires_grad=False).sum(),
            lambda: large.__setitem__(150, 7.0),
            "constant [1. 1. 1. ... 1. 1. 1.]",
        ),
        "how often": (
            lambda x: [x := x * 2 for _ in names][-1],
            lambda: names.append("b"),
            "Now it computes MulScalar(scalar=2) of #1 (3,); before, it computed the result #1 (3,)",
        ),
        "a number that is returned": (
            lambda x: (x, len(names)),
            lambda: names.append("b"),
            "Now it computes the result ('x', 2); before, it computed the result ('x', 1)",
        ),
        "which Tensor": (
            lambda x: x + (first if settings["on"] else second),
            lambda: settings.update(on=False),
            "EWiseAdd() of x, second; before, it computed EWiseAdd() of x, first",
        ),
        "a Tensor of a plain object": (
            lambda x: x + holder.tensor,
            lambda: setattr(holder, "tensor", second),
            "EWiseAdd() of x, tensor",
        ),
    }


@pytest.mark.parametrize("which", frozen())
def test_what_is_frozen_is_found_by_debug(which):
    f, change, said = frozen()[which]
    compiled, x = jit(f), tensor(3)
    first = compiled(x)
    change()
    assert_same(compiled(x), first)
    assert count_of(compiled) == 1

    globals()["SCALE"] = 2.0
    f, change, _ = frozen()[which]
    compiled = jit(f, debug=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            compiled(x)
    change()
    with pytest.warns(RuntimeWarning) as told:
        assert_same(compiled(x), f(x))
    (message,) = [str(warning.message) for warning in told]
    assert said in message
    assert f"(line {f.__code__.co_firstlineno} of test_contract.py, in " in message
    assert re.search("at `.*lambda x: ", message)  # the line itself


@pytest.mark.parametrize(
    ("do", "now", "before"),
    [
        (lambda a, b, p, q, other: b - a if other else a - b, "Negate() of #1 (3,)", "Negate() of #2 (3,)"),
        (lambda a, b, p, q, other: b if other else a, "the result #2 (3,)", "the result #1 (3,)"),
        (lambda a, b, p, q, other: setattr(q if other else p, "data", a), "q.data = #1", "p.data = #1"),
        (lambda a, b, p, q, other: setattr(p, "data", b if other else a), "p.data = #2", "p.data = #1"),
        (lambda a, b, p, q, other: setattr(p, "grad", b if other else a), "p.grad = #2", "p.grad = #1"),
        (lambda a, b, p, q, other: other and setattr(p, "grad", None), "p.grad = None", "the result False"),
    ],
)
def test_debug_tells_values_of_one_shape_apart(do, now, before):
    p, q, other = nn.Parameter(np.ones(3)), nn.Parameter(np.ones(3)), False

    def f(x):
        return do(x + p, x * q, p, q, other)

    g, x = jit(f, debug=True), tensor(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g(x)
        g(x)
    other = True
    said = f"{re.escape(now)}.*; before, it computed .*{re.escape(before)}"
    with pytest.warns(RuntimeWarning, match=said):
        g(x)


def test_debug_says_nothing_of_what_is_read_anew():
    model, x = nn.Sequential(nn.Linear(2, 2, rng=0), nn.Dropout(0.5)), tensor(3, 2)
    g = jit(lambda x: model(x), debug=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for change in (model.eval, model.train, lambda: setattr(model, "modules", model.modules[:1])):
            change()
            g(x)


def test_the_time_is_frozen_and_found_by_debug():
    compiled, debugged, x = (
        jit(lambda x: x * time.time()),
        jit(lambda x: x * time.time(), debug=True),
        ndl.ones(2),
    )
    assert_same(compiled(x), compiled(x))
    debugged(x)
    with pytest.warns(RuntimeWarning, match=r"line \d+ of test_contract.py.*computes MulScalar\(scalar="):
        debugged(x)


def test_debug_with_a_tuple_of_tensors():
    first, second = ndl.split(tensor(2, 3), 0), tensor(3)
    f = lambda x: x + first[0] * second  # noqa: E731
    assert_same(jit(f, debug=True)(tensor(3)), f(tensor(3)))


def test_a_step_of_training_does_the_same_each_time():
    training = SmallTraining(optim.Adam)
    step = jit(training.step, debug=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for lr in (0.1, 0.2, 0.1):
            training.optimizer.lr = lr
            step(training.x, training.y)


def test_a_gradient_from_before_is_read_anew():
    w, v = tensor(3), tensor(3, seed=1)
    w.grad = v.grad = tensor(3, seed=2)

    def f(x):
        return x * w.grad - 2 * v.grad

    g, x = jit(f), ndl.ones(3)
    for seed in (2, 3, 4):
        w.grad = v.grad = tensor(3, seed=seed)
        assert_same(g(x), f(x))
        v.grad = tensor(3, seed=5)
        assert_same(g(x), f(x))


def test_clipped_gradients_from_before():
    model = nn.Linear(3, 2, rng=0)
    optimizer = optim.SGD(model.parameters())
    g = jit(lambda: optimizer.clip_grad_norm(0.25))
    for seed in range(3):
        for p in model.parameters():
            p.grad = tensor(*p.shape, seed=seed)
        norm = np.sqrt(sum((p.grad.numpy() ** 2).sum() for p in model.parameters()))
        assert_close(g().numpy(), np.float64(norm), 1e-5)
        assert_close(np.float32(optimizer.clip_grad_norm(1e9)), np.float32(0.25), 1e-4)


def test_no_gradients_to_clip():
    optimizer = optim.SGD([tensor(3)], lr=0.1)
    assert jit(optimizer.clip_grad_norm)() == optimizer.clip_grad_norm() == 0


def test_an_optimiser_s_own_attribute():
    class Signed(optim.Optimizer):
        sign = 1.0

        def rule(self, p, grad, state, t, lr):
            for keep in keeps:
                keep(self)
            return p - self.sign * self.signs["all"][0] * lr * grad

    keeps: list[Any] = []
    p = nn.Parameter(np.ones(2))
    optimizer = Signed([p], lr=0.5)
    optimizer.signs = {"all": [1.0]}

    def step():
        p.sum().backward()
        optimizer.step()

    g = jit(step)
    for sign, after in ((1.0, 0.5), (-1.0, 1.0), (-2.0, 2.0)):
        optimizer.sign = sign
        g()
        assert p.numpy().tolist() == [after] * 2
    optimizer.signs["all"][0] = -1.0
    for after in (1.0, 0.0):
        g()
        assert p.numpy().tolist() == [after] * 2
    assert count_of(g) == 4
    for path, keep in (
        ("signs.all.1", lambda optimizer: optimizer.signs["all"].append(1)),
        ("sign", lambda optimizer: setattr(optimizer, "sign", -optimizer.sign)),
        ("seen", lambda optimizer: setattr(optimizer, "seen", 1)),
    ):
        keeps[:] = [keep]
        with pytest.raises(CannotTrace, match=f"changes {path} of Signed"):
            jit(step)()
        assert (optimizer.sign, optimizer.signs) == (-2.0, {"all": [-1.0]})


def changes_of_groups():
    def lr(value):
        return lambda o, a, b: o.groups.__setitem__(0, {"params": [a], "lr": value})

    return {
        "another lr": lr(0.25),
        "an equal group": lr(0.5),
        "another order": lambda o, a, b: o.groups.reverse(),
        "other parameters": lambda o, a, b: o.groups[0].update(params=[b]) or o.groups[1].update(params=[a]),
        "swapped in place": lambda o, a, b: o.groups[0]["params"].append(o.groups[1]["params"].pop()),
        "no parameters": lambda o, a, b: o.groups[0]["params"].clear(),
        "another list": lambda o, a, b: setattr(o, "groups", [{"params": [b], "lr": 0.125}]),
        "an option more": lambda o, a, b: o.groups[1].update(momentum=0.5),
        "all parameters": lambda o, a, b: o.params.remove(b),
    }


@pytest.mark.parametrize("which", changes_of_groups())
def test_groups_of_an_optimiser(which):
    def trained(wrap):
        a, b = nn.Parameter(np.ones(2)), nn.Parameter(np.ones(2) * 2)
        optimizer = optim.SGD([{"params": [a], "lr": 0.5}, {"params": [b]}], lr=0.75)

        def step(x):
            (a * b * x).sum().backward()
            optimizer.step()

        step, x = wrap(step), ndl.ones(2) * 0.1
        found = []
        for number in range(5):
            if number == 2:
                changes_of_groups()[which](optimizer, a, b)
            if number == 4 and "lr" in optimizer.groups[0]:
                optimizer.groups[0]["lr"] = 0.0625
            step(x)
            found += [a.numpy(), b.numpy(), a.grad is None, b.grad is None]
        return found

    for compiled, eager in zip(trained(jit), trained(lambda f: f), strict=True):
        np.testing.assert_allclose(compiled, eager, rtol=1e-6)


# Refused, where it happens


@pytest.mark.parametrize("draw", [lambda: np.random.randn(3), lambda: [random.random()] * 3])
def test_random_numbers_of_the_host_are_refused(draw):
    with pytest.raises(CannotTrace, match=r"draws random numbers by NumPy or Python.*ndl\.init\.rand"):
        jit(lambda x: x + Tensor(np.array(draw()), requires_grad=False))(tensor(3))


@pytest.mark.parametrize(
    ("generator", "draw"),
    [
        (np.random.default_rng, lambda rng: rng.normal()),
        (np.random.RandomState, lambda rng: rng.rand()),
        (random.Random, lambda rng: rng.random()),
    ],
)
def test_a_generator_of_the_host_is_refused_once_it_draws(generator, draw):
    class Noisy(nn.Module):
        def __init__(self):
            self.rng, self.all = generator(0), {"rng": [generator(1)]}

        def forward(self, x, of):
            return x * draw(of(self))

    rng, module, x = generator(2), Noisy(), tensor(3)
    for f in (
        lambda x, given: x * draw(rng),
        lambda x, given: x * draw(given[0]),
        lambda x, given: module(x, lambda m: m.rng),
        lambda x, given: module(x, lambda m: m.all["rng"][0]),
    ):
        with pytest.raises(CannotTrace, match="draws random numbers by NumPy or Python"):
            jit(f)(x, [rng])
    g = jit(lambda x, given: x * 2 if given is rng and module.rng else x)
    assert_same(g(x, rng), x.detach() * 2)


def test_a_schedule_steps_outside():
    training = SmallTraining()
    schedule = optim.StepLR(training.optimizer, 1)

    def step(x, y):
        training.step(x, y)
        schedule.step()

    with pytest.raises(CannotTrace, match="sets the option lr of SGD"):
        jit(step)(training.x, training.y)
    assert schedule.t == 0


@pytest.mark.parametrize(
    "look",
    [
        lambda x, n: x.cached_data.shape,
        lambda x, n: x if x.sum() else -x,
        lambda x, n: x if n else -x,
        lambda x, n: x * np.arange(n),
        lambda x, n: copy.deepcopy(n) + x,
    ],
)
def test_looking_at_what_may_change_is_refused_in_words(look):
    with pytest.raises(CannotTrace, match=r"jit: (numbers were asked for|Python asks what n is)"):
        jit(look)(tensor(3), 3)


def test_what_needs_the_number_itself_is_told_so():
    with pytest.raises(CannotTrace, match=r'JSON.*static="n"'):
        jit(lambda x, n: json.dumps(n))(tensor(3), 3)


@pytest.mark.parametrize("copied_by", [copy.copy, copy.deepcopy])
def test_a_copy_compiles_itself(copied_by):
    compiled = jit(lambda x: x * 2)
    compiled(tensor(3))
    copied = copied_by(compiled)
    assert copied.program is None
    assert_same(copied(tensor(3)), tensor(3).detach() * 2)


def test_a_module_that_counts_is_refused():
    class Counting(nn.Module):
        calls = 0

        def __init__(self):
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    model = Counting()
    with pytest.raises(CannotTrace, match="changes calls of Counting"):
        jit(lambda x: model(x))(tensor(3))
    assert model.calls == 0


def test_backward_ends_at_an_argument():
    w = tensor(3)

    def f(h):
        (h * h).sum().backward()

    g = jit(f)
    for _ in range(2):
        leaf = tensor(3)
        g(leaf)
        assert_same(leaf.grad, leaf.detach() * 2)
    with pytest.warns(RuntimeWarning, match="f gives h a gradient, but not the Tensors from which"):
        g(w * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for h in (w * 2, tensor(3), w * 3):
            g(h)
    assert count_of(g) == 2
    assert w.grad is None


def test_what_cannot_be_returned_is_refused():
    class Own:
        def __init__(self, x):
            self.x = x

    for f in (
        lambda x: {x},
        lambda x: Own(x),
        lambda x: iter([x]),
        lambda x: ndl.split(x, 0),
        lambda x: (i for i in [x]),
    ):
        with pytest.raises(CannotTrace, match="return Tensors and numbers"):
            jit(f)(tensor(3))


def test_an_index_out_of_range_raises_as_eager_does():
    embedding = nn.Embedding(4, 3)
    g = jit(lambda i: embedding(i))
    for _ in range(2):
        assert g(Tensor([0, 3, 1], requires_grad=False)).shape == (3, 3)
        for wrong in ([0, 4, 1], [0, -1, 1]):
            index = Tensor(wrong, requires_grad=False)
            with pytest.raises(IndexError) as ours:
                g(index)
            with pytest.raises(IndexError) as theirs:
                embedding(index)
            assert str(ours.value) == str(theirs.value)


def test_a_wrong_label_changes_nothing():
    training = SmallTraining()
    step = jit(training.step)
    step(training.x, training.y)
    before = training.numbers()
    with pytest.raises(IndexError):
        step(training.x, Tensor([0, 1, 2, 0, 1], requires_grad=False))
    for a, b in zip(training.numbers(), before, strict=True):
        np.testing.assert_array_equal(a, b)
    step(training.x, training.y)


def test_numbers_that_are_asked_for_are_refused():
    w = tensor(3)

    for ask in (
        lambda x: x.numpy(),
        lambda x: float(x.sum()),
        lambda x: x.sum().item(),
        lambda x: x if x.sum() > 0 else -x,
        lambda x: print(x),
        lambda x: f"{x.sum():.3f}",
        lambda x: np.asarray(x),
        lambda x: int(x.sum()),
        lambda x: 2 in x,
        lambda x: (x * w).numpy(),
    ):
        value = w.numpy()
        with pytest.raises(CannotTrace, match=r"numbers were asked for.*Return the Tensor"):
            jit(ask)(tensor(3))
        np.testing.assert_array_equal(w.numpy(), value)  # all is as it was


def test_what_numpy_computes_is_refused():
    for f in (
        lambda x, a: x + a.sum(),
        lambda x, a: x + np.sum(a),
        lambda x, a: x * a[0],
        lambda x, a: x + (a + 1),
        lambda x, a: x * float(a[0]),
        lambda x, a: x * np.sqrt(a),
        lambda x, a: x if a.any() else -x,
        lambda x, a: [x + number for number in a],
        lambda x, a: x * (a @ a),
        lambda x, a: x + a.astype("float64"),
        lambda x, a: x * (a % 2),
        lambda x, a: x if a is x or a == 3 else -x,
        lambda x, a: x * abs(a).T,
        lambda x, a: x if 3 in a else -x,
    ):
        with pytest.raises(CannotTrace, match="make a Tensor of it"):
            jit(f)(tensor(3), np.ones(3, "float32"))


def test_after_a_refusal_everything_is_as_it_was():
    training = SmallTraining(optim.Adam)
    training.step(training.x, training.y)
    training.loss_of(training.model, training.x, training.y).backward()
    before = training.numbers()
    state = training.optimizer.state_dict()
    grads = [p.grad.numpy() for p in training.model.parameters()]

    def step():
        loss = training.step(training.x, training.y)
        return loss.item()

    with pytest.raises(CannotTrace):
        jit(step)()
    for a, b in zip(training.numbers(), before, strict=True):
        np.testing.assert_array_equal(a, b)
    for p, grad in zip(training.model.parameters(), grads, strict=True):
        np.testing.assert_array_equal(p.grad.numpy(), grad)
    now = training.optimizer.state_dict()
    assert now["options"] == state["options"]
    assert now["updates"] == state["updates"]


def test_an_error_of_the_function_is_its_own():
    w = tensor(3)
    with pytest.raises(ValueError, match="matmul"):
        jit(lambda x: x @ tensor(4, 2))(tensor(3, 3))
    with pytest.raises(ZeroDivisionError):
        jit(lambda x: 1 / 0)(w)
    assert w.cached_data is not None


def test_a_printed_line_is_not_refused(capsys):
    def f(x):
        print("tracing")
        return x * 2

    g = jit(f)
    g(tensor(3))
    g(tensor(3))
    assert capsys.readouterr().out == "tracing\n"


def test_after_an_error_before_the_function_runs():
    """A Tensor that waits is computed first, and cannot be."""
    w = tensor(2)
    with ndl.lazy():
        bad = w[Tensor([7], dtype="int32", requires_grad=False)]
    for _ in range(2):
        with pytest.raises(IndexError):
            jit(lambda x: x + w + bad)(tensor(2))
        assert w.numpy().shape == (2,)


# A refusal leaves all as it was


def test_a_gradient_that_the_function_finds():
    w, found = tensor(3), tensor(3, seed=1)

    def f(x):
        w.grad = found
        return x * 2

    g = jit(f)
    for _ in range(2):
        assert_same(g(ndl.ones(3)), ndl.ones(3) * 2)
        assert_same(w.grad, found)


@pytest.mark.parametrize("refused", [True, False])
def test_a_module_that_keeps_what_it_computed_is_as_it_was(refused):
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = ndl.zeros(1)

        def forward(self, x):
            self.hidden = ndl.tanh(self.hidden + x)
            self.last = x * 2
            if not refused:
                raise LookupError
            return self.hidden

    module = Recurrent()
    before = module.hidden
    said = {"match": "changes hidden of Recurrent"} if refused else {}
    with pytest.raises(CannotTrace if refused else LookupError, **said):
        jit(lambda x: module(x))(ndl.ones(1))
    assert module.hidden is before
    assert before.numpy().tolist() == [0]
    assert not hasattr(module, "last")


class Keeping(nn.Module):
    """A module that keeps something of each call."""

    count = 0
    last: Any = None

    def __init__(self):
        self.list, self.numbers, self.within = [1.0], {"n": 1}, ({"list": [1]},)

    def forward(self, x, keep):
        keep(self, x)
        return x * self.count


@pytest.mark.parametrize(
    ("keep", "path"),
    [
        (lambda m, x: setattr(m, "count", m.count + 1), "count"),
        (lambda m, x: setattr(m, "last", x if m.last is None else m.last + x), "last"),
        (lambda m, x: setattr(m, "shape", x.shape), "shape"),
        (lambda m, x: delattr(m, "list"), "list"),
        (lambda m, x: m.list.append(x), "list.1"),
        (lambda m, x: m.list.__setitem__(0, x), "list.0"),
        (lambda m, x: m.numbers.update(n=m.numbers["n"] + 1), "numbers.n"),
        (lambda m, x: m.numbers.clear(), "numbers.n"),
        (lambda m, x: m.within[0]["list"].append(2), "within.0.list.1"),
        (lambda m, x: vars(m)["numbers"].update(k=x), "numbers.k"),
    ],
)
def test_what_a_module_keeps_of_a_call_is_refused(keep, path):
    module = Keeping()
    for _ in range(2):
        with pytest.raises(CannotTrace, match=f"changes {path} of Keeping"):
            jit(lambda x: module(x, keep))(tensor(3))
        held = {"list": [1.0], "numbers": {"n": 1}, "within": ({"list": [1]},), "training": True}
        assert vars(module) == held


def test_what_is_put_into_a_module_is_refused():
    module = nn.Linear(2, 2)
    with pytest.raises(CannotTrace, match="changes last of Linear"):
        jit(lambda x: setattr(module, "last", x * 2))(tensor(3))
    assert not hasattr(module, "last")


def test_a_module_may_set_what_it_has_and_new_ones_may_be_made():
    class Sized(nn.Module):
        def __init__(self, size):
            self.size, self.seen = size, []
            self.twice = self.size * 2

        def forward(self, x):
            self.size = len(x.shape)
            return x * self.size * self.twice

    module, x = Sized(1), tensor(3)

    def f(x):
        made = Sized(3)
        made.seen.append(module(x))
        return made(x) + made.seen[0] + nn.Sequential(nn.LayerNorm1d(3), nn.ReLU())(x.reshape((1, 3)))

    assert_equals_eager(f, x)


def test_a_module_may_cache_a_setting():
    class Cached(nn.Module):
        factor = 1.5

        @functools.cached_property
        def twice(self):
            return self.factor * 2

        def forward(self, x):
            return x * self.twice

    module, x = Cached(), tensor(3)
    g = jit(lambda x: module(x))
    for _ in range(2):
        assert_same(g(x), x.detach() * 3)
    assert "twice" not in vars(module)
    assert count_of(g) == 1
    assert_same(module(x).detach(), g(x))
