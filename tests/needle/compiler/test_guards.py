"""When a function is traced anew: where a shape, a mode, a module or anything else it uses is different."""

from __future__ import annotations

import argparse
import enum
import math
from array import array
from collections import ChainMap, Counter, UserDict, UserList, UserString, defaultdict, deque, namedtuple
from dataclasses import dataclass
from functools import partialmethod
from types import MappingProxyType, ModuleType, SimpleNamespace

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


def assert_follows(f, *changes):
    """A compiled `f` does what `f` does, also after each of the changes; returns how often it was traced."""
    g = jit(f)
    x = tensor(3, seed=5)
    for change in (lambda: None, *changes):
        change()
        for _ in range(2):
            assert_same(g(x), f(x).detach())
    return count_of(g)


def test_a_compiled_function_in_a_compiled_one():
    w, k = tensor(3), 2.0
    inner = jit(lambda x: x * w * k)

    def write():
        w.data = tensor(3, seed=1)

    def rebind():
        nonlocal k
        k = 3.0

    assert assert_follows(lambda x: inner(x) + 0.5, write, rebind) == 2


class Slots:
    __slots__ = ("k",)


class Bag(list):
    """A list with an attribute."""


class Choice(enum.Enum):
    FEW = 2.0
    MANY = 3.0


def remembers(x):
    return x * remembers.k


@pytest.mark.parametrize(
    "holder",
    [SimpleNamespace(), argparse.Namespace(), Slots(), Bag(), ModuleType("settings"), Choice, remembers],
    ids=["SimpleNamespace", "Namespace", "slots", "list", "module", "class", "function"],
)
def test_whatever_has_attributes(holder):
    holder.k = 2.0
    count = assert_follows(
        lambda x: x * holder.k,
        lambda: setattr(holder, "k", 3.0),
        lambda: setattr(holder, "k", tensor(3)),
    )
    assert count == 3


def test_an_attribute_of_a_module_by_its_name():
    settings = ModuleType("settings")
    settings.k, settings.name = 2.0, "k"

    def f(x):
        return x * getattr(settings, settings.name)

    assert assert_follows(f, lambda: setattr(settings, "k", 3.0)) == 2


def test_an_imported_module(monkeypatch):
    settings = ModuleType("settings_of_this_test")
    monkeypatch.setitem(__import__("sys").modules, settings.__name__, settings)
    settings.k = 2.0

    def f(x):
        import settings_of_this_test

        return x * settings_of_this_test.k

    assert assert_follows(f, lambda: setattr(settings, "k", 3.0)) == 2


@pytest.mark.parametrize("holder", [{1.0, 2.0}, deque([1.0, 2.0])], ids=["set", "deque"])
def test_a_set_and_a_deque(holder):
    add = getattr(holder, "add", None) or holder.append

    def replace_by_another_type():
        holder.remove(1.0)
        add(True)

    def f(x):
        return x * sum(holder), len([1 for number in holder if number is True])

    g = jit(f)
    for change in (lambda: None, lambda: add(7.0), replace_by_another_type):
        change()
        for _ in range(2):
            assert_same(g(tensor(3)), f(tensor(3)))
    assert count_of(g) == 3


NUMBERS = {"k": 2.0}
VIEW, ITEMS = MappingProxyType(NUMBERS), NUMBERS.items()


class OwnList(UserList):
    """A container of one's own."""


@pytest.mark.parametrize(
    ("holder", "key"),
    [
        (bytearray([2]), 0),
        (array("d", [2.0]), 0),
        (UserList([2.0]), 0),
        (OwnList([2.0]), 0),
        (deque([2.0]), 0),
        (UserDict(k=2.0), "k"),
        (Counter(k=2), "k"),
        (defaultdict(float, k=2.0), "k"),
        (ChainMap({}, {"k": 2.0}), "k"),
    ],
    ids=lambda holder: type(holder).__name__,
)
def test_whatever_holds_a_number_by_a_key(holder, key):
    def change():
        holder[key] = 5

    def f(x):
        return x * holder[key]

    assert assert_follows(f, change) == 2


@pytest.mark.parametrize(
    "find",
    [
        VIEW.__getitem__,
        NUMBERS.get,
        lambda key, view=ITEMS: dict(view)[key],
        lambda key, view=VIEW: view[key],
    ],
    ids=["method of a view", "method", "items", "mappingproxy"],
)
def test_a_dictionary_is_seen_through_something_else(find, monkeypatch):
    assert assert_follows(lambda x: x * find("k"), lambda: monkeypatch.setitem(NUMBERS, "k", 3.0)) == 2


def test_a_text_that_is_replaced_inside():
    text = UserString("2")
    assert assert_follows(lambda x: x * int(str(text)), lambda: setattr(text, "data", "3")) == 2


def test_zeros_and_nan_in_an_array_of_python():
    numbers = array("d", [0.0, math.nan])
    count = assert_follows(
        lambda x: x * math.copysign(1.0, numbers[0]) * len(numbers),
        lambda: numbers.__setitem__(0, -0.0),
        lambda: numbers.append(0.0),
    )
    assert count == 3


def test_what_a_partial_method_uses():
    class Scaled:
        k = 2.0

        def times(self, x, factor):
            return x * self.k * factor

        twice = partialmethod(times, factor=2)

    scaled = Scaled()
    assert assert_follows(lambda x: scaled.twice(x), lambda: setattr(Scaled, "k", 3.0)) == 2


class OfClass:
    array = np.ones(3, "float32")


@dataclass(frozen=True)
class Frozen:
    array: np.ndarray


@dataclass(slots=True)
class InSlots:
    array: np.ndarray


Pair = namedtuple("Pair", "array k")


def an_array():
    return np.ones(3, "float32")


def with_default(x, array=an_array()):  # noqa: B008
    return x * Tensor(array, requires_grad=False)


@pytest.mark.parametrize(
    ("holder", "find"),
    [
        (OfClass, lambda holder: holder.array),
        (Frozen(an_array()), lambda holder: holder.array),
        (InSlots(an_array()), lambda holder: holder.array),
        ((an_array(), 3), lambda holder: holder[0]),
        (Pair(an_array(), 3), lambda holder: holder.array),
        ((1, (2, (an_array(),))), lambda holder: holder[1][1][0]),
        ((1, [an_array()]), lambda holder: holder[1][0]),
        ([(an_array(), 1)], lambda holder: holder[0][0]),
        (deque([an_array()]), lambda holder: holder[0]),
    ],
    ids=[
        "class",
        "frozen",
        "slots",
        "tuple",
        "named tuple",
        "deep",
        "list in tuple",
        "tuple in list",
        "deque",
    ],
)
def test_an_array_is_changed_in_place(holder, find):
    def change():
        find(holder)[:] = 5

    count = assert_follows(lambda x: x * Tensor(find(holder), requires_grad=False), change)
    assert count == 1
    assert type(find(holder)) is np.ndarray


def test_an_array_that_is_a_default_is_changed_in_place():
    def change():
        with_default.__defaults__[0][:] = 5

    assert assert_follows(lambda x: with_default(x), change) == 1


def test_an_array_that_is_an_attribute_is_replaced():
    holder = SimpleNamespace(array=an_array())

    def f(x):
        return x * Tensor(holder.array, requires_grad=False)

    assert assert_follows(f, lambda: setattr(holder, "array", 2 * an_array())) == 1


def test_the_shape_and_dtype_of_an_array():
    array = an_array()

    def longer():
        nonlocal array
        array = np.ones(5, "float32")

    def whole():
        nonlocal array
        array = np.ones(5, "int64")

    def f(x):
        return x * len(array) if array.dtype == "float32" else x

    assert assert_follows(f, longer, whole) == 3


def test_minus_zero_is_not_zero():
    zero, numbers, settings = 0.0, [0.0], {"zero": 0.0}

    def f(x):
        return x * zero, x * numbers[0], x * settings["zero"]

    g, x = jit(f), ndl.ones(2)
    for sign in (1, -1, 1):
        zero = numbers[0] = settings["zero"] = math.copysign(0.0, sign)
        for _ in range(2):
            assert [bool(np.signbit(y.numpy()).any()) for y in g(x)] == [sign < 0] * 3


def test_nan_is_nan():
    """Else the function would be traced for ever."""
    nan, numbers = float("nan"), [float("nan")]

    def change():
        nonlocal nan
        nan, numbers[0] = float("nan"), float("nan")

    def f(x):
        return x * (1 if nan == nan else 2) * (1 if numbers[0] == numbers[0] else 3)

    assert assert_follows(f, change) == 1


@pytest.mark.parametrize("make", [tensor, lambda n: Tensor(an_array()), lambda n: an_array()])
def test_two_names_of_one_object(make):
    a = b = make(3)
    holder = [a]

    def of(x):
        return x if isinstance(x, Tensor) else Tensor(x, requires_grad=False)

    def f(x):
        return x * of(a) + of(b) - of(holder[0]) * 3

    def rebind_one():
        nonlocal b
        b = 2 * make(3)

    def rebind_both():
        nonlocal a, b
        a = b = 3 * make(3)

    assert_follows(f, rebind_one, rebind_both, lambda: holder.__setitem__(0, 4 * make(3)))


@pytest.mark.parametrize("first", ["name", "grad"])
def test_a_gradient_that_is_found_twice(first):
    w, v = tensor(3), tensor(3, seed=1)
    w.grad = v.grad = name = tensor(3, seed=2)

    def f(x):
        if first == "name":
            return x * name + w.grad - 2 * v.grad
        return x * w.grad + name - 2 * v.grad

    def rebind():
        nonlocal name
        name = tensor(3, seed=3)

    def share():
        w.grad = v.grad = tensor(3, seed=4)

    assert_follows(f, rebind, share, lambda: setattr(v, "grad", tensor(3, seed=5)))


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


def test_a_method_is_replaced():
    class Model(nn.Module):
        def forward(self, x):
            return self.more(x) * 2

        def more(self, x):
            return x + 1

    model = Model()
    count = assert_follows(
        lambda x: model(x),
        lambda: setattr(Model, "more", lambda self, x: x + 2),
        lambda: setattr(Model, "forward", lambda self, x: x * 3),
    )
    assert count == 3


def test_a_name_of_pythons_own_is_set(monkeypatch):
    count = assert_follows(
        lambda x: x * abs(-2.0), lambda: monkeypatch.setitem(globals(), "abs", lambda x: 3 * x)
    )
    assert count == 2


def test_a_name_is_deleted():
    w = tensor(3)
    g = jit(lambda x: x * GONE)  # noqa: F821
    globals()["GONE"] = w
    g(w)
    del globals()["GONE"]
    with pytest.raises(NameError):
        g(w)
