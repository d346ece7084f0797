"""What a compiled function takes and returns: structures, numbers, arrays of NumPy, the same Tensor twice."""

from __future__ import annotations

import copy
import decimal
import fractions
import functools
import math
import operator
import warnings
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.autograd import Tensor
from needle.compiler import CannotTrace

from .conftest import assert_close, assert_equals_eager, assert_same, count_of, jit, tensor


def test_structure_of_arguments_and_results():
    def f(pair, *, named, factor=2.0, flag=True):
        a, (b,) = pair
        return {"sum": a + b, "rest": [named["w"] * factor, (a, None)], "flag": flag, "three": 3}

    given = ((tensor(2, 3), [tensor(3, seed=1)]),)
    named = {"named": {"w": tensor(4, seed=2)}}
    g = jit(f)
    for _ in range(2):
        assert_same(g(*given, **named), f(*given, **named))
        assert_same(g(*given, **named, factor=3.5), f(*given, **named, factor=3.5))
        assert_same(g(*given, **named, flag=False), f(*given, **named, flag=False))


class Pair(NamedTuple):
    a: Any
    b: Any


def test_named_tuples_stay_named_tuples():
    def f(x):
        return Pair(x + 1, x * 2)

    x = tensor(3)
    found = jit(f)(x)
    assert type(found) is Pair
    assert_same(found, f(x))


def test_named_tuples_as_arguments():
    def f(pair):
        return pair.a * pair.b

    g = jit(f)
    for seed in (0, 3):
        pair = Pair(tensor(3, seed=seed), tensor(3, seed=seed + 1))
        assert_same(g(pair), f(pair))


def test_named_tuples_with_other_names():
    other = namedtuple("other", "b a")
    g = jit(lambda pair: pair.a - 2 * pair.b)
    x, y = tensor(3, seed=0), tensor(3, seed=1)
    for pair in (Pair(a=x, b=y), other(a=x, b=y), Pair(a=y, b=x)):
        assert_same(g(pair), pair.a - 2 * pair.b)
    with pytest.raises(AttributeError):
        g((x, y))


def test_an_input_that_is_returned_is_the_input():
    w = tensor(2)
    g = jit(lambda x: (x, x + 1, w))
    for seed in range(3):
        x = tensor(3, seed=seed)
        same, _, closed_over = g(x)
        assert same is x
        assert closed_over is w


def test_only_inputs_returned():
    g = jit(lambda x: x)
    for seed in range(3):
        x = tensor(3, seed=seed)
        assert g(x) is x


def test_no_tensor_at_all():
    assert_equals_eager(lambda: ndl.ones(3) * 2)
    assert jit(lambda: None)() is None
    assert jit(lambda: 3)() == 3


def test_the_same_tensor_twice():
    x, y = tensor(3), tensor(3, seed=1)

    def f(a, b):
        out = a * b + a
        return out, ndl.gradients(out.sum(), [a] if a is b else [a, b])

    g = jit(f)
    for pair in ((x, x), (x, y), (y, x), (y, y), (x, y)):
        assert_same(g(*pair), f(*pair))
    assert count_of(g) == 2


def test_the_same_tensor_thrice():
    a, b = tensor(3), tensor(3, seed=1)

    def f(*args):
        out = args[0] * 2 + args[1] * 3 + args[2] * 5 + args[3] * 7 + args[4] * 11 + args[5] * 13
        return ndl.gradients(out.sum(), list(dict.fromkeys(args)))

    g = jit(f)
    for args in ((a, b, a, b, a, b), (a, b, a, b, a, a), (a, a, a, a, a, b), (a, b, a, b, a, b)):
        assert_same(g(*args), f(*args))


def test_one_result_twice():
    def f(x):
        y = x + 1
        return y, y, [y * 1]

    found = jit(f)(tensor(3))
    assert_same(found, f(tensor(3)))
    assert found[0] is found[1]


def test_an_argument_that_is_closed_over_as_well():
    w = tensor(3)

    def f(x):
        return x * w

    g = jit(f)
    for x in (w, tensor(3, seed=1), w):
        assert_same(g(x), f(x))


def test_an_argument_that_is_written_and_closed_over():
    w = tensor(3)

    def f(x):
        w.data = w * 0.5
        return x + w

    def expected(x, before):
        half = before * np.float32(0.5)
        return (half if x is w else x.numpy()) + half

    g = jit(f)
    for x in (w, tensor(3, seed=1), w):
        before = w.numpy()
        now = expected(x, before)
        assert_close(g(x).numpy(), now)
        assert_close(w.numpy(), before / 2)


def test_arrays_of_numpy_are_arguments():
    def f(x, y):
        return Tensor(x, requires_grad=False) * 2 + Tensor(y, dtype="float32", requires_grad=False).sum()

    g = jit(f)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(2, 3)).astype("float32"), rng.integers(0, 9, 4)
        assert_same(g(x, y), f(x, y))
    assert count_of(g) == 1


def test_the_length_of_an_array_of_numpy():
    g = jit(lambda x: Tensor(x) * len(x))
    assert_same(g(np.ones(3)), ndl.ones(3) * 3)
    with pytest.raises(TypeError, match="unsized"):
        g(np.ones(()))


def test_labels_may_be_an_array_of_numpy():
    f = nn.SoftmaxLoss()
    g = jit(lambda x, y: f(x, y))
    for labels in ([0, 1, 2], [2, 2, 0]):
        x, y = tensor(3, 3), np.array(labels)
        assert_same(g(x, y), f(x, y), 1e-5)
    assert count_of(g) == 1


def test_numbers_are_arguments():
    g = jit(lambda x, s, k: x * s + k)
    x = tensor(3)
    for s, k in ((0.5, 1), (2.5, 3), (-1.0, 0), (1.0, 2)):
        assert_close(g(x, s, k).numpy(), x.numpy() * np.float32(s) + k)
    assert count_of(g) <= 2


def test_numbers_that_are_returned():
    g = jit(lambda x, n: (x * n, n + 1, n))
    for n in (2, 5, 7):
        _, after, same = g(tensor(2), n)
        assert (after, same) == (n + 1, n)
        assert type(after) is int


def _matched(n):
    match n:
        case 1:
            return 5
        case int(k):
            return k
        case float():
            return 7


@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: x * 2 if n > 3 else x + n,
        lambda x, n: x * sum(1 for _ in range(int(n))),
        lambda x, n: x * (2 if n in {1, 2} else 3),
        lambda x, n: x * {1: 5.0}.get(n, 1.0),
        lambda x, n: x * _matched(n),
        lambda x, n: x * len(f"{n}") * len(f"{n:.3f}") * len("a" + str(n)) * len(repr(n)) * len(f"{n!s}"),
        lambda x, n: x[n],
        lambda x, n: x[:n],
        lambda x, n: x.sum(axes=n),
        lambda x, n: x.sum(axes=(n, 0)),
        lambda x, n: ndl.flip(x, (n,)),
        lambda x, n: ndl.stack([x, x], n),
        lambda x, n: x.argmax(axes=n),
        lambda x, n: x * ndl.init.rand(3, rng=n),
        lambda x, n: x * int(n) * float(n) * math.cos(n),
        lambda x, n: x * round(n) + round(n, 1),
        lambda x, n: x * math.floor(n) + math.ceil(n) + math.trunc(n),
        lambda x, n: x * divmod(n, 2)[0] + divmod(7.5, n + 9)[1],
        lambda x, n: x * (n & 1) + (n << 2) + ~n,
        lambda x, n: x * np.float32(n) * np.cos(n),
        lambda x, n: x * len(np.arange(n)),
        lambda x, n: x * Tensor(np.ones(3, "float32") * n) + Tensor([n, 1, 2.0]),
        lambda x, n: x * (2 if fractions.Fraction(2) == n or decimal.Decimal(3) == n else 3),
        lambda x, n: x * copy.deepcopy([n])[0],
        lambda x, n: x * n.real + n.is_integer(),
        lambda x, n: {n: x * n},
        lambda x, n: f"{n}",
    ],
)
def test_numbers_that_python_looks_at(f):
    """They have to be named, and then there is a program for each."""
    x = tensor(3, 3)
    with pytest.raises(CannotTrace, match='static="n"'):
        jit(f)(x, 2)
    g = jit(f, static="n")
    for n in (1, 2, 1000, 1, 1.0, 2.5, -0.0, 0.0, -1, 0, -3.25, 3):
        try:
            expected = f(x, n)
        except Exception as error:
            with pytest.raises(type(error)):
                g(x, n)
        else:
            found = g(x, n)
            assert_same(found, expected)
            if isinstance(found, dict):
                assert [*map(type, found)] == [*map(type, expected)]


@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: x * (n // 2) + 7 // n,
        lambda x, n: x * (n % 3) + 7 % n,
        lambda x, n: x * abs(-n) + +n,
        lambda x, n: x * (-2) ** n,
        lambda x, n: x * (-1) ** n,
        lambda x, n: (x, n // 2, -n % 3, abs(-n)),
        lambda x, n: x * (2 if isinstance(n, int) else 3),
        lambda x, n: x.astype("int64") ** n,
    ],
)
def test_arithmetic_stays_a_formula(f):
    g = jit(f)
    x = tensor(3)
    for n in (5, 8, 2, 1):
        assert_same(g(x, n), f(x, n))
    assert count_of(g) == 1


def test_static_names_an_argument():
    with pytest.raises(ValueError, match="static names 'm', but the function has the arguments x, n"):
        ndl.jit(lambda x, n: x, static="m")


def test_a_static_argument_that_is_changed_in_place():
    for static, change in (
        ([1], lambda a: a.__setitem__(0, 2)),
        (np.ones(2), lambda a: a.fill(3)),
        ((np.ones(2),), lambda a: a[0].fill(3)),
        ({"k": [1]}, lambda a: a["k"].append(2)),
        ({1, 2}, lambda a: a.add(3)),
    ):

        def f(x, a):
            return x * len(str(a)) * float(np.sum(next(iter(a.values())) if type(a) is dict else list(a)))

        g, x = jit(f, static="a"), tensor(2)
        assert_same(g(x, static), f(x, static))
        change(static)
        assert_same(g(x, static), f(x, static))
        assert count_of(g) == 2


@pytest.mark.parametrize("static", ["a", None])
def test_equal_objects_need_no_new_program(static):
    for made in (
        lambda: slice(0, 2),
        lambda: (slice(None), slice(0, 2)),
        lambda: {"k": "v", "on": True},
        lambda: {"a", "b"},
        lambda: frozenset("ab"),
        lambda: range(3),
        lambda: OrderedDict(k="v"),
        lambda: (np.ones(2),),
    ):
        g = jit(lambda x, a: x * 2, static=static)
        for _ in range(3):
            g(tensor(3), made())
        assert count_of(g) == 1


def test_objects_that_are_others_each_time_are_told_of():
    g = jit(lambda x, a: x * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(19):
            g(tensor(3), object())
    with pytest.warns(RuntimeWarning, match=r"compiled for time number 20, .* has to be the same object"):
        g(tensor(3), object())


def test_the_order_of_keys_counts():
    def f(x, how, **more):
        for key, on in (how | more).items():
            x = (ndl.exp(x) if key == "exp" else x * 2) if on else x
        return x

    g, x = jit(f), tensor(3)
    for how in ({"exp": True, "twice": True}, {"twice": True, "exp": True}):
        assert_same(g(x, how), f(x, how))
        assert_same(g(x, {}, **how), f(x, {}, **how))


def test_other_kinds_of_dictionaries():
    def f(d):
        first = next(iter(d))
        return copy.copy(d), d[first] * 2 - (d["none"] if isinstance(d, defaultdict) else 0)

    g = jit(f)
    for seed in (0, 2):
        x, y = tensor(3, seed=seed), tensor(3, seed=seed + 1)
        for d in (OrderedDict(a=x, b=y), OrderedDict(b=y, a=x), {"a": x, "b": y}):
            assert_same(g(d), f(d))
        d = defaultdict(lambda: 3.0, a=x)
        assert_same(g(d.copy()), f(d.copy()))


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
def test_a_number_is_compared_with_a_tensor_from_either_side(compare):
    def f(x, n):
        return compare(x, n), compare(n, x)

    g, x = jit(f), Tensor(np.arange(4))
    for n in (1.0, 2.0):
        assert_same(g(x, n), f(x, n))
    assert count_of(g) == 1


def test_the_kind_of_a_number_is_known():
    g = jit(lambda x, n: x * (2 if isinstance(n, int) else 3) * (np.float32(2) * n) + n * np.float32(2))
    for n in (2, 3.0, 4):
        assert_same(g(tensor(3), n), tensor(3) * (2 if isinstance(n, int) else 3) * (2 * n) + n * 2)
    assert count_of(g) == 2


def test_numbers_as_formulas():
    def f(x, lr, t):
        return x * lr / (1 - 0.9**t) + (1 - lr) * -lr

    g = jit(f)
    x = tensor(3)
    for lr, t in ((0.1, 1), (0.2, 2), (0.05, 10)):
        assert_same(g(x, lr, t), f(x, lr, t))
    assert count_of(g) == 1


def test_true_and_one_are_different():
    def f(x, flag):
        return x * 2 if flag is True else x * 3

    g = jit(f)
    x = tensor(2)
    for flag in (True, 1, False, 0, True):
        assert_same(g(x, flag), f(x, flag))


def test_true_is_no_place_of_an_argument():
    def f(a, b, c):
        return a * b if c is True else a * b * c

    g = jit(f)
    a, b = tensor(3), tensor(3, seed=1)
    for c in (True, b, a, True):
        assert_same(g(a, b, c), f(a, b, c))


@pytest.mark.parametrize(
    "name",
    [
        *("mode", "lock", "grad", "lazy", "owned", "program", "result", "work", "state", "empty", "fixed"),
        *("x0", "a0", "AGAIN", "Tensor", "now", "i", "part", "exp", "data", "tensor", "status", "arrays"),
        *("own", "references", "id", "len", "type", "isinstance", "flat", "random", "steps", "exp_float64"),
        *("float32", "numpy", "array", "outcome0", "several", "dtype0", "_", "matmul", "plus", "number"),
    ],
)
def test_arguments_have_any_name(name):
    """The generated source has names of its own."""
    names = {"ndl": ndl}
    exec(
        f"def f(y, {name}, other_{name}):\n    return ndl.exp(y) * {name} * 2 + other_{name} / {name}\n",
        names,
    )
    f, g = names["f"], jit(names["f"])
    for factor in (2.0, 3.0):
        assert_same(g(tensor(2), factor, 1.5), f(tensor(2), factor, 1.5))
        assert_same(g(tensor(2), tensor(2, seed=1), factor), f(tensor(2), tensor(2, seed=1), factor))


def test_infinite_numbers():
    low, settings, nothing = -math.inf, {"high": math.inf}, math.nan

    def f(x, s):
        return ndl.maximum(x, x * 0 + s), x + low, x - settings["high"], x * (s - math.inf), x + nothing

    g = jit(f)
    for s in (0.5, math.inf, -math.inf, math.nan, 2.0):
        assert_same(g(tensor(3), s), f(tensor(3), s))
        assert_same(g(tensor(3), s), f(tensor(3), s))


def test_large_and_small_numbers():
    def f(x, s):
        return x * s, x * 1e-40, x + 1e30, x * 3e38 * s, x.astype("int64") + 2**40, x * 0.1 + 1 / 3

    for dtype in ("float32", "float64"):
        assert_equals_eager(f, tensor(3, dtype=dtype), 1e-30)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "bool"])
@pytest.mark.parametrize("device", [ndl.cpu(), ndl.cpu_numpy()], ids=str)
def test_numbers_beside_whole_numbers(dtype, device):
    x = Tensor([0, 1, 1], dtype=dtype, device=device)
    functions = {
        "+": lambda x, n: x + n,
        "-": lambda x, n: x - n,
        "n -": lambda x, n: n - x,
        "*": lambda x, n: x * n,
        "* -n": lambda x, n: x * -n,
        "**": lambda x, n: x**n,
        "n **": lambda x, n: n**x,
        ">": lambda x, n: x > n,
        "clip": lambda x, n: ndl.clip(x, n, 5),
    }

    def outcome(f, n):
        """What a function returns, or its error: a number that does not fit, or a negative power."""
        try:
            return f(x, n)
        except (OverflowError, ValueError) as error:
            return type(error)

    for name, f in functions.items():
        g = jit(f)
        for n in (2, -1, 300, 2**40, 2**70, 2.5):
            eager, compiled = outcome(f, n), outcome(g, n)
            if name != ">" or compiled is not OverflowError:  # which eager compares all the same
                assert_same(compiled, eager)


def test_a_number_that_whole_numbers_cannot_hold_is_refused_in_words():
    g = jit(lambda x, n: x > n)
    x = Tensor([0, 1, 2], dtype="uint8")
    assert g(x, 1).numpy().tolist() == [False, False, True]
    with pytest.raises(OverflowError, match=r"300 does not fit into uint8.*use .astype"):
        g(x, 300)


def test_a_tensor_of_a_number_has_the_type_that_it_is_given():
    for dtype in ("bool", "int64", "float32"):
        for n in (3, 2.5, 0):
            assert_equals_eager(lambda n, dtype=dtype: Tensor(n, dtype=dtype), n)


def test_a_large_number_beside_whole_numbers_and_floats():
    assert_equals_eager(lambda x, y, n: (x + n, y * n), Tensor([1], dtype="int64"), tensor(2), 2**53 + 1)
    for device in (ndl.cpu(), ndl.cpu_numpy()):
        assert_equals_eager(lambda x, n: (n**x, x * n), Tensor([1.0, 2.0], device=device), 2**70)


def test_numbers_of_numpy():
    def f(x, s):
        return x * s

    g = jit(f)
    for s in (np.float32(0.5), np.float64(2.0), np.int64(3), np.float32(0.25)):
        assert_same(g(tensor(3), s), f(tensor(3), s))


def test_methods_and_decorators():
    class Model:
        def __init__(self, w):
            self.w = w

        @ndl.jit
        def plain(self, x):
            return x * self.w

        @functools.partial(jit)
        def forward(self, x):
            """Multiply."""
            return x * self.w

    one, two = Model(tensor(3)), Model(tensor(3, seed=1))
    x = tensor(3, seed=2)
    for model in (one, two, one):
        assert_close(model.forward(x).numpy(), (x * model.w).numpy())
    assert Model.forward.__doc__ == "Multiply."
    assert Model.forward.__name__ == "forward"


def test_a_method_keeps_the_options_of_its_function():
    class Model:
        @ndl.jit(static="n")
        def scaled(self, x, n):
            return x * (2 if n else 3)

    model = Model()
    assert ndl.jit(model.scaled) is not Model.scaled
    for method in (ndl.jit(model.scaled), ndl.jit(model.scaled, debug=True)):
        assert method.static == ("n",)
        assert_same(method(tensor(3), 0), tensor(3).detach() * 3)
        assert_same(method(tensor(3), n=1), tensor(3).detach() * 2)


def test_modules_are_arguments():
    def f(model, x):
        return model(x)

    g = jit(f)
    models = [nn.Linear(3, 2, rng=0), nn.Linear(3, 2, rng=1), nn.Linear(3, 4, rng=2)]
    for model in (*models, *models):
        assert_same(g(model, tensor(5, 3)), f(model, tensor(5, 3)))


SCALE = ndl.ones(3) * 3


def test_partial_and_default_arguments():
    def f(x, y, scale=SCALE):
        return x * y * scale

    bound = functools.partial(f, tensor(3))
    assert_same(jit(bound)(tensor(3, seed=1)), bound(tensor(3, seed=1)))


def test_a_jit_within_a_jit_becomes_part_of_it():
    inner = jit(lambda x: ndl.tanh(x))
    outer = jit(lambda x: inner(x) * inner(x * 2))
    x = tensor(3)
    for _ in range(2):
        assert_close(outer(x).numpy(), np.tanh(x.numpy()) * np.tanh(2 * x.numpy()))
    assert count_of(inner) == 0
    assert jit(inner) is inner


def test_results_have_no_graph():
    w = tensor(3)
    out = jit(lambda x: x * w)(tensor(3))
    assert out.op is None
    assert not out.requires_grad


def test_results_do_not_share_storage_from_call_to_call():
    g = jit(lambda x: x * 2)
    first = g(ndl.ones(3))
    g(ndl.ones(3) * 5)
    assert first.numpy().tolist() == [2, 2, 2]


def test_a_result_that_is_a_view_of_an_argument():
    x = tensor(3, 4)
    for f in (
        lambda x: x.transpose(),
        lambda x: x[1:, ::2],
        lambda x: x.reshape((2, 6)),
        lambda x: x.detach(),
        lambda x: ndl.flip(x, 0),
        lambda x: x.broadcast_to((2, 3, 4)),
    ):
        assert_equals_eager(f, x)


def test_names_of_numbers_that_meet():
    def f(x_0, x, **more):
        return x_0 + x[0] * 10 + more["a b"] * 100 + more["a_b"] * 1000 + ndl.ones(2)

    g = jit(f)
    for numbers in ((1.0, 2.0, 3.0, 4.0), (5.0, 6.0, 7.0, 8.0)):
        a, b, c, d = numbers
        assert_same(g(a, [b], **{"a b": c, "a_b": d}), f(a, [b], **{"a b": c, "a_b": d}))


def test_many_arguments():
    def f(*args):
        return sum(args[1:], args[0])

    for given in ([tensor(2), 1.0, 1.0, 2], [tensor(2), tensor(2, seed=1), 1.0, 1.0]):
        assert_equals_eager(f, *given)
