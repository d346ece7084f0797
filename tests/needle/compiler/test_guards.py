"""When a function is traced anew: where a shape, a mode, a module or anything else it uses is different."""

from __future__ import annotations

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.autograd import Tensor

from ...training import SmallTraining
from .conftest import assert_close, assert_equals_eager, assert_same, count_of, jit, tensor


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
    for p in (0.1, 0.9, 0.0, 1.0, 0.5):
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


def test_a_parameter_is_replaced():
    model = nn.Linear(2, 2, rng=0)
    g = jit(lambda x: model(x))
    x = tensor(3, 2)
    for seed in range(3):
        model.weight = nn.Parameter(np.random.default_rng(seed).normal(size=(2, 2)))
        assert_same(g(x), model(x).detach())


def test_a_parameter_is_written_between_calls():
    model = nn.Linear(2, 2, rng=0)
    g = jit(lambda x: model(x))
    x = tensor(3, 2)
    for seed in range(3):
        model.weight.data = tensor(2, 2, seed=seed)
        assert_same(g(x), model(x).detach())


def test_a_parameter_moves_to_another_device_and_back():
    model = nn.Linear(2, 2, rng=0)
    g = jit(lambda x: model(x))
    for device in (ndl.cpu(), ndl.cpu_numpy(), ndl.cpu()):
        model.to(device)
        x = tensor(3, 2, device=device)
        assert_same(g(x), model(x).detach())


def test_a_closed_over_name_is_rebound():
    w = tensor(3)
    k = 2.0

    def f(x):
        return x * w * k

    g = jit(f)
    x = tensor(3, seed=5)
    assert_same(g(x), f(x).detach())
    w = tensor(3, seed=1)
    assert_same(g(x), f(x).detach())
    k = 3.0
    assert_same(g(x), f(x).detach())
    w = tensor(1, seed=1)
    assert_same(g(x), f(x).detach())
    w = 2.0
    assert_same(g(x), f(x).detach())
    w = None

    with pytest.raises(TypeError):
        g(x)


WEIGHT = 2.0


def test_a_global_is_rebound(monkeypatch):
    def f(x):
        return x * WEIGHT

    g = jit(f)
    x = tensor(3)
    for weight in (3.0, tensor(3), tensor(3, seed=1), 5, tensor(1)):
        monkeypatch.setitem(globals(), "WEIGHT", weight)
        assert_same(g(x), f(x).detach())
        assert_same(g(x), f(x).detach())


def test_a_container_changes_between_calls():
    weights = [tensor(3), tensor(3, seed=1)]
    settings = {"scale": 2.0, "names": ["a"]}

    def f(x):
        for w in weights:
            x = x * w * settings["scale"]
        return x + len(settings["names"])

    g = jit(f)
    x = tensor(3, seed=2)
    assert_same(g(x), f(x).detach())
    weights.append(tensor(3, seed=3))
    assert_same(g(x), f(x).detach())
    weights[0] = tensor(3, seed=4)
    assert_same(g(x), f(x).detach())
    settings["scale"] = 3.0
    assert_same(g(x), f(x).detach())
    settings["names"].append("b")
    assert_same(g(x), f(x).detach())


def test_an_array_in_a_container_is_replaced():
    settings = {"data": np.zeros(3, "float32"), "more": [np.ones(3, "float32")]}

    def f(x):
        return x + Tensor(settings["data"], requires_grad=False) + Tensor(settings["more"][0])

    g = jit(f)
    for value in range(3):
        settings["data"] = np.full(3, value, "float32")
        settings["more"][0] = np.full(3, 2 * value, "float32")
        assert g(ndl.zeros(3)).numpy().tolist() == [3 * value] * 3


def test_an_equal_list_is_another_list():
    settings = {"scales": [2.0], "more": {"shift": (1.0,)}}

    def f(x):
        return x * settings["scales"][0] + settings["more"]["shift"][0]

    g = jit(f)
    x = tensor(3)
    assert_same(g(x), f(x))
    settings["scales"] = [2.0]
    settings["more"] = {"shift": (1.0,)}
    assert_same(g(x), f(x))
    settings["scales"][0] = 3.0
    assert_same(g(x), f(x))
    settings["more"]["shift"] = (2.0,)
    assert_same(g(x), f(x))


def test_numbers_of_another_type_are_different():
    settings = {"scale": 2}
    k = 2

    def f(x):
        return x * settings["scale"], x * k

    g = jit(f)
    x = Tensor([1, 2], dtype="int64", requires_grad=False)
    for value in (2, 2.0, True, 2):
        settings["scale"] = k = value
        assert_same(g(x), f(x))


def test_an_attribute_of_an_own_object_changes_between_calls():
    class Config:
        scale = 2.0

    config = Config()

    def f(x):
        return x * config.scale

    g = jit(f)
    x = tensor(3)
    assert_same(g(x), f(x).detach())
    config.scale = 3.0
    assert_same(g(x), f(x).detach())
    config.scale = 4.0
    assert_same(g(x), f(x).detach())
    del config.scale
    Config.scale = 5.0
    assert_same(g(x), f(x).detach())


def test_a_function_that_is_called_is_rebound():
    def helper(x):
        return x * 2

    def f(x):
        return helper(x)

    g = jit(f)
    x = tensor(3)
    assert_same(g(x), f(x).detach())

    def triple(x):
        return x * 3

    helper = triple  # noqa: F811
    assert_same(g(x), f(x).detach())


def test_names_of_attributes_are_not_globals(monkeypatch):
    """`x.WEIGHT`-like attributes do not reach the global of that name."""
    monkeypatch.setitem(globals(), "mean", iter([1, 2, 3]))
    g = jit(lambda x: x.mean())
    x = tensor(3)
    g(x)
    monkeypatch.setitem(globals(), "mean", [0])
    g(x)
    assert count_of(g) == 1


SCALE_OF_ALL = Tensor([1.0, 2.0, 3.0])


class Scaled(nn.Module):
    """Its method uses a global Tensor, and an attribute of its class."""

    shift = Tensor([0.5, 0.5, 0.5])

    def __init__(self):
        self.inner = nn.Identity()

    def forward(self, x):
        return self.inner(x) * SCALE_OF_ALL + self.shift + self.more()

    @property
    def twice(self):
        return SCALE_OF_ALL * 2

    def more(self):
        return self.twice


@pytest.mark.parametrize("which", ["SCALE_OF_ALL", "shift"])
def test_what_a_method_uses(which):
    """A method is reached through its object, and what it uses is found."""
    model = Scaled()
    g = jit(lambda x: model(x))
    x = tensor(3)
    value = SCALE_OF_ALL if which == "SCALE_OF_ALL" else Scaled.shift
    for number in range(3):
        value.data = ndl.ones(3) * number
        assert_same(g(x), model(x).detach())
    assert count_of(g) == 1


class Trainer:
    """Attributes that its step does not name may change."""

    def __init__(self):
        self.training = SmallTraining()
        self.losses = []
        self.epoch = 0
        self.factor = 1.0
        self.shifts = {"x": 0.0}

    def step(self, x, y):
        return self.training.step(x * self.factor + self.shift(), y)

    def shift(self):
        return self.shifts["x"]

    def run(self, step):
        self.losses.append(step(self.training.x, self.training.y).numpy())
        self.epoch += 1
        return len(self.losses)


def test_a_method_of_an_object_that_changes():
    ours, theirs = Trainer(), Trainer()
    step = jit(ours.step)
    for _ in range(4):
        ours.run(step)
        theirs.run(theirs.step)
    assert count_of(step) == 1
    assert_close(np.array(ours.losses), np.array(theirs.losses), 1e-5)
    for trainer in (ours, theirs):
        trainer.factor, trainer.shifts["x"] = 2.0, 0.5
    ours.run(step)
    theirs.run(theirs.step)
    assert_close(np.array(ours.losses), np.array(theirs.losses), 1e-5)
    assert count_of(step) == 2


def test_an_attribute_by_its_name():
    class Config:
        def __init__(self):
            self.scale = 2.0

    config, name = Config(), "scale"

    def f(x):
        return x * getattr(config, name)

    g = jit(f)
    for scale in (2.0, 3.0):
        config.scale = scale
        assert_same(g(tensor(3)), f(tensor(3)).detach())


class Settings:
    scale = 2.0
    w = Tensor([1.0, 2.0, 3.0])

    @staticmethod
    def of(x):
        return x * SCALE_OF_ALL


def test_an_attribute_of_a_class():
    g = jit(lambda x: Settings.of(x * Settings.scale * Settings.w))
    x = tensor(3)
    for scale in (2.0, 3.0, 4):
        Settings.scale = scale
        Settings.w.data = ndl.ones(3) * scale
        SCALE_OF_ALL.data = ndl.ones(3) * (scale + 1)
        assert_same(g(x), Settings.of(x * scale * Settings.w).detach())
