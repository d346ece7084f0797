"""Optimisers against their formulas and against torch where the formulas agree; groups, clipping, schedules,
and states saved and restored."""

from __future__ import annotations

import itertools
import math
import operator
import subprocess
import sys

import numpy as np
import pytest

import needle as ndl
from needle import autograd, optim
from needle.autograd import Tensor
from needle.nn import Parameter

VARIANTS = [(0.0, 0.0), (0.9, 0.0), (0.0, 0.1), (0.9, 0.1), (0.5, 0.01)]


def parameters(dtype="float64"):
    rng = np.random.default_rng(0)
    return [Parameter(rng.normal(size=shape), dtype=dtype) for shape in [(3, 2), (1, 2), ()]]


def loss_of(params, module=ndl):
    w, b, s = params
    return (module.tanh(w + b) * s).sum() + (b * b * b).sum() + s * s


def gradient_by_hand(values):
    w, b, s = values
    t = np.tanh(w + b)
    by_sum = (1 - t**2) * s
    return [by_sum, by_sum.sum(axis=0, keepdims=True) + 3 * b**2, t.sum() + 2 * s]


def train(params, optimizer, steps, schedule=None):
    for _ in range(steps):
        loss_of(params).backward(create_graph=False)
        optimizer.step()
        if schedule is not None:
            schedule.step()


def values(params):
    return [p.numpy() for p in params]


# Every optimiser with each of its options at work.
ALL = {
    "SGD": lambda params: optim.SGD(params, lr=0.05),
    "momentum": lambda params: optim.SGD(params, lr=0.05, momentum=0.9, weight_decay=0.1),
    "Nesterov": lambda params: optim.SGD(params, lr=0.05, momentum=0.9, nesterov=True),
    "Adam": lambda params: optim.Adam(params, lr=0.05, weight_decay=0.1),
    "AdamW": lambda params: optim.AdamW(params, lr=0.05, weight_decay=0.1),
    "RMSProp": lambda params: optim.RMSProp(params, lr=0.05, momentum=0.5, weight_decay=0.1),
}
each = pytest.mark.parametrize("make", ALL.values(), ids=ALL)


# Formulas


@pytest.mark.parametrize(("momentum", "weight_decay"), VARIANTS)
def test_sgd_follows_its_formula(momentum, weight_decay, mode):
    params = parameters()
    optimizer = optim.SGD(params, lr=0.1, momentum=momentum, weight_decay=weight_decay)
    expected = values(params)
    velocity = [np.zeros(p.shape) for p in params]
    for step in range(10):
        optimizer.lr = 0.1 / (1 + step)  # may change while learning
        loss_of(params).backward(create_graph=False)
        optimizer.step()
        for i, g in enumerate(gradient_by_hand(expected)):
            decayed = g + weight_decay * expected[i]
            velocity[i] = momentum * velocity[i] + (1 - momentum) * decayed
            expected[i] = expected[i] - 0.1 / (1 + step) * velocity[i]
    for p, array in zip(params, expected, strict=True):
        np.testing.assert_allclose(p.numpy(), array, rtol=1e-12)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_adam_follows_its_formula(weight_decay, mode):
    """Algorithm 1 of Kingma and Ba (2015), with an L2 penalty's gradient."""
    params = parameters()
    optimizer = optim.Adam(params, lr=0.1, beta1=0.8, beta2=0.99, eps=0.01, weight_decay=weight_decay)
    expected = values(params)
    m, v = [0, 0, 0], [0, 0, 0]
    for t in range(1, 11):
        loss_of(params).backward(create_graph=False)
        optimizer.step()
        for i, g in enumerate(gradient_by_hand(expected)):
            g = g + weight_decay * expected[i]
            m[i] = 0.8 * m[i] + 0.2 * g
            v[i] = 0.99 * v[i] + 0.01 * g**2
            m_hat, v_hat = m[i] / (1 - 0.8**t), v[i] / (1 - 0.99**t)
            expected[i] = expected[i] - 0.1 * m_hat / (np.sqrt(v_hat) + 0.01)
    for i, (p, array) in enumerate(zip(params, expected, strict=True)):
        np.testing.assert_allclose(p.numpy(), array, rtol=1e-12)
        np.testing.assert_allclose(optimizer.state[p]["mean"].numpy(), m[i], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(optimizer.state[p]["mean_square"].numpy(), v[i], rtol=1e-12, atol=1e-15)


def test_betas_changed_between_steps_against_torch(mode, torch):
    """Also where the change comes between saving and loading."""
    params = parameters()
    twins = [torch.tensor(p.numpy(), requires_grad=True) for p in params]
    ours = optim.Adam([{"params": params[:1]}, {"params": params[1:], "beta2": 0.99}], lr=0.05)
    theirs = torch.optim.Adam([{"params": twins[:1]}, {"params": twins[1:], "betas": (0.9, 0.99)}], lr=0.05)
    for step in range(12):
        if step in (4, 8):
            ours.beta1 = 0.5 + step / 100
            ours.groups[1]["beta2"] = 0.9
            theirs.param_groups[0]["betas"] = (ours.beta1, 0.999)
            theirs.param_groups[1]["betas"] = (ours.beta1, 0.9)
        if step == 8:
            state = ours.state_dict()
            ours = optim.Adam([{"params": params[:1]}, {"params": params[1:]}])
            ours.load_state_dict(state)
        loss_of(params).backward(create_graph=False)
        ours.step()
        theirs.zero_grad()
        loss_of(twins, torch).backward()
        theirs.step()
        for p, q in zip(params, twins, strict=True):
            np.testing.assert_allclose(p.numpy(), q.detach(), rtol=1e-11, err_msg=f"step {step}")


def torch_pairs(torch):
    ours, theirs = optim, torch.optim
    yield "SGD", lambda ps: ours.SGD(ps, 0.05), lambda qs: theirs.SGD(qs, 0.05)
    for decay in (0.0, 0.1):
        wd = {"weight_decay": decay}
        yield (
            f"momentum {decay}",
            lambda ps, wd=wd: ours.SGD(ps, 0.05, 0.9, dampening=0, **wd),
            lambda qs, wd=wd: theirs.SGD(qs, 0.05, 0.9, **wd),
        )
        yield (
            f"Nesterov {decay}",
            lambda ps, wd=wd: ours.SGD(ps, 0.05, 0.9, dampening=0, nesterov=True, **wd),
            lambda qs, wd=wd: theirs.SGD(qs, 0.05, 0.9, nesterov=True, **wd),
        )
        yield (  # the course's dampened velocity makes the steps (1 - momentum) times as long
            f"dampened Nesterov {decay}",
            lambda ps, wd=wd: ours.SGD(ps, 0.5, 0.9, nesterov=True, **wd),
            lambda qs, wd=wd: theirs.SGD(qs, 0.5 * (1 - 0.9), 0.9, nesterov=True, **wd),
        )
        yield (
            f"Adam {decay}",
            lambda ps, wd=wd: ours.Adam(ps, 0.05, 0.8, 0.99, 1e-3, **wd),
            lambda qs, wd=wd: theirs.Adam(qs, 0.05, (0.8, 0.99), 1e-3, **wd),
        )
        yield (
            f"AdamW {decay}",
            lambda ps, wd=wd: ours.AdamW(ps, 0.05, **wd),
            lambda qs, wd=wd: theirs.AdamW(qs, 0.05, **wd),
        )
        for momentum in (0.0, 0.9):
            yield (
                f"RMSProp {decay} {momentum}",
                lambda ps, wd=wd, m=momentum: ours.RMSProp(ps, 0.01, 0.9, momentum=m, **wd),
                lambda qs, wd=wd, m=momentum: theirs.RMSprop(qs, 0.01, 0.9, momentum=m, **wd),
            )


def test_every_optimiser_against_torch(torch):
    for name, make_ours, make_theirs in torch_pairs(torch):
        params = parameters()
        twins = [torch.tensor(p.numpy(), requires_grad=True) for p in params]
        ours, theirs = make_ours(params), make_theirs(twins)
        for step in range(20):
            loss_of(params).backward(create_graph=False)
            ours.step()
            theirs.zero_grad()
            loss_of(twins, torch).backward()
            theirs.step()
            for p, q in zip(params, twins, strict=True):
                np.testing.assert_allclose(p.numpy(), q.detach(), rtol=1e-11, err_msg=f"{name}, step {step}")


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_dampened_sgd_against_torch(momentum, weight_decay, torch):
    params = parameters()
    theirs = [torch.tensor(p.numpy(), requires_grad=True) for p in params]
    ours = optim.SGD(params, lr=0.05, momentum=momentum, weight_decay=weight_decay)
    # torch's first velocity is the whole gradient, ours the dampened one: it begins at 0 as the formula says.
    other = torch.optim.SGD(theirs, lr=0.05, momentum=momentum, dampening=momentum, weight_decay=weight_decay)
    if momentum:
        for q in theirs:
            other.state[q]["momentum_buffer"] = torch.zeros_like(q)
    for _ in range(10):
        loss_of(params).backward(create_graph=False)
        ours.step()
        other.zero_grad()
        loss_of(theirs, torch).backward()
        other.step()
    for p, q in zip(params, theirs, strict=True):
        np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=1e-12)


# What a step changes, and what it leaves


@each
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_step_keeps_dtype_and_leaves(make, dtype, mode):
    p = Parameter([1.0, 2.0], dtype=dtype)
    optimizer = make([p])
    for create_graph in (True, False):
        (p * p).backward(create_graph=create_graph)
        optimizer.step()
        assert p.dtype == dtype
        assert p.realize_cached_data().dtype == dtype
        assert p.is_leaf()
        assert p.requires_grad
    # Nothing of the graph of the gradients is kept.
    remembered = optimizer.state[p].values()
    assert all(x.is_leaf() and not x.requires_grad and x.dtype == dtype for x in remembered)


@each
def test_a_gradient_of_another_dtype_does_not_widen_the_parameter(make, mode):
    p = Parameter([1.0, 2.0], dtype="float32")
    optimizer = make([p])
    for _ in range(2):
        p.grad = Tensor([3.0, 4.0], dtype="float64")
        optimizer.step()
    assert p.realize_cached_data().dtype == "float32"
    assert {x.dtype for x in optimizer.state[p].values()} <= {np.dtype("float32")}


@each
def test_lazy_and_eager_steps_are_the_same(make):
    results = []
    for lazy_steps in ([False] * 4, [True] * 4, [False, True, True, False]):
        params = parameters()
        optimizer = make(params)
        for lazy in lazy_steps:
            with ndl.lazy(lazy):
                train(params, optimizer, 1)
        results.append(np.concatenate([a.ravel() for a in values(params)]))
    np.testing.assert_allclose(results[1], results[0], rtol=1e-13)
    np.testing.assert_allclose(results[2], results[0], rtol=1e-13)


class Unknown:
    """A number that changes from step to step, in a rule that is written down once: nobody may ask for it."""

    __array_ufunc__ = None

    def __init__(self, value):
        self.value = value

    def _asked(self, *_):
        raise AssertionError("a rule asks for a number that changes from step to step")

    __bool__ = __float__ = __int__ = __index__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = _asked
    __hash__ = None


def _arithmetic(name, f):
    def method(self, other):
        result = f(self.value, other.value if isinstance(other, Unknown) else other)
        return Unknown(result) if isinstance(result, float) else result

    setattr(Unknown, name, method)


for _name in ("add", "sub", "mul", "truediv", "pow"):
    _f = getattr(operator, _name)
    _arithmetic(f"__{_name}__", _f)
    _arithmetic(f"__r{_name}__", lambda a, b, f=_f: f(b, a))


@each
def test_a_rule_does_not_ask_for_numbers_that_change(make):
    grad = np.array([0.5, -2.0])
    states, found = ({}, {}), [np.array([1.0, 3.0])] * 2
    optimizer = make([Parameter([1.0])])
    options = optimizer.options_of({})
    for t in (1, 2, 3):
        before = states[0].copy()
        found[0] = optimizer.rule(
            found[0], grad, states[0], Unknown(float(t)), **options | {"lr": Unknown(0.05)}
        )
        found[1] = optimizer.rule(found[1], grad, states[1], t, **options)
        assert all(
            states[0][name] is not x for name, x in before.items()
        )  # written anew, not changed in place
    np.testing.assert_allclose(*found, rtol=1e-14)


@each
def test_the_number_of_tensors_is_flat(make, mode, no_gc):
    params = parameters("float32")
    optimizer = make(params)
    counts = []
    for _ in range(50):
        train(params, optimizer, 1)
        values(params)
        counts.append(autograd.TENSOR_COUNTER)
    assert counts == counts[:1] * 50


def test_reset_grad_forgets_and_step_passes_over():
    p, q = Parameter([1.0]), Parameter([2.0])
    optimizer = optim.SGD([p, q], lr=1.0, weight_decay=0.5)
    (p * 3).backward()
    optimizer.step()
    assert p.numpy() == 1 - (3 + 0.5)
    assert q.numpy() == 2  # it has no gradient, so it stays
    (q * 3).backward()
    optimizer.reset_grad()
    assert q.grad is None
    optimizer.step()
    assert (p.numpy().item(), q.numpy().item()) == (-2.5, 2.0)


@each
def test_a_step_uses_each_gradient_once(make, mode):
    """Losses in turn, each on a parameter of its own, do not move the other's again."""
    together, alone = parameters("float64"), parameters("float64")
    optimizer, optimizers = make(together), [make([p]) for p in alone]
    for _ in range(3):
        for p, q, one in zip(together, alone, optimizers, strict=True):
            (p * p).sum().backward()
            (q * q).sum().backward()
            optimizer.step()
            one.step()
            assert [p.grad for p in together] == [None] * len(together)
            np.testing.assert_array_equal(p.numpy(), q.numpy())


def test_a_frozen_parameter_stays_where_it_is(mode):
    p, q = Parameter([3.0], dtype="float64"), Parameter([4.0], dtype="float64")
    optimizer = optim.SGD([p, q], lr=1.0, weight_decay=0.5)
    (p * p + q).backward()
    p.requires_grad = False
    assert optimizer.clip_grad_norm(2.0) == 1.0  # of the gradient of q alone
    optimizer.step()
    assert (p.numpy().item(), q.numpy().item()) == (3.0, 1.0)
    p.requires_grad = True
    optimizer.step()
    assert p.numpy() == 3.0  # its gradient from before it was frozen is gone


def test_a_late_parameter_begins_at_its_own_first_step():
    early, late = Parameter([1.0], dtype="float64"), Parameter([1.0], dtype="float64")
    optimizer = optim.Adam([early, late], lr=0.1)
    for _ in range(5):
        early.backward()
        optimizer.step()
    (late * 7).backward()
    optimizer.step()
    np.testing.assert_allclose(late.numpy(), 0.9, rtol=1e-8)  # the first step's length is lr


def test_parameters_may_come_from_an_iterator():
    p, q = Parameter([1.0]), Parameter([2.0])
    optimizer = optim.SGD(iter([p, q]), lr=1.0)
    assert optimizer.params == [p, q]
    for _ in range(2):
        (p * q).backward()
        optimizer.step()
    assert (p.numpy().item(), q.numpy().item()) == (-2.0, 2.0)


def test_the_defaults_are_the_courses():
    p = Parameter([1.0])
    optimizer = optim.SGD([p])
    assert isinstance(optimizer, optim.Optimizer)
    assert (optimizer.lr, optimizer.momentum, optimizer.weight_decay) == (0.01, 0.0, 0.0)
    adam = optim.Adam([p])
    assert (adam.lr, adam.beta1, adam.beta2, adam.eps, adam.weight_decay) == (0.01, 0.9, 0.999, 1e-8, 0.0)
    p.backward()
    with pytest.raises(NotImplementedError, match="rule"):
        optim.Optimizer([p]).step()


def test_earlier_graphs_do_not_see_a_step(mode):
    p = Parameter([3.0])
    before = p * p
    (p * 1).backward()
    optim.SGD([p], lr=1.0).step()
    assert p.numpy() == 2
    before.backward()
    assert p.grad.numpy() == 6
    assert isinstance(before, Tensor)
    assert before.numpy() == 9


@pytest.mark.parametrize("make", [ALL["Adam"], lambda ps: optim.SGD(ps, 0.1, 0.9, dampening=0)])
def test_no_gradient_is_kept(make, mode):
    """Nor the storage that it is a view of."""
    p = Parameter(np.ones((4, 1)), dtype="float64")
    optimizer = make([{"params": [p], "weight_decay": 0.0}])
    p.grad = given = Tensor(np.arange(400.0).reshape(4, 100), dtype="float64")[:, 3:4]
    optimizer.step()
    arrays = [remembered.realize_cached_data() for remembered in optimizer.state[p].values()]
    given.realize_cached_data()[...] = 7.0
    for array in arrays:
        assert array.base is None if ndl.BACKEND == "np" else array.is_compact()
        assert not (np.asarray(array) == 7).any()


@pytest.mark.skipif(ndl.BACKEND != "nd", reason="NumPy has one device")
@each
def test_the_state_follows_a_parameter_that_is_moved(make):
    p, twin = Parameter([1.0, 2.0]), Parameter([1.0, 2.0])
    optimizer, other = make([p]), make([twin])
    for step in range(4):
        if step == 2:
            module = ndl.nn.Module()
            module.weight = p
            module.to(ndl.cpu_numpy())
        for q, rule in ((p, optimizer), (twin, other)):
            (q * q).backward(create_graph=False)
            rule.step()
    assert {x.device for x in (p, *optimizer.state[p].values())} == {ndl.cpu_numpy()}
    np.testing.assert_allclose(p.numpy(), twin.numpy(), rtol=1e-5)


# Groups


def test_groups_have_options_of_their_own():
    p, q = Parameter([1.0], dtype="float64"), Parameter([1.0], dtype="float64")
    optimizer = optim.SGD([{"params": [p], "lr": 0.5}, {"params": q, "weight_decay": 1.0}], lr=0.1)
    assert optimizer.params == [p, q]
    (p + q).backward()
    optimizer.step()
    np.testing.assert_allclose(p.numpy(), 1 - 0.5, rtol=1e-15)
    np.testing.assert_allclose(q.numpy(), 1 - 0.1 * (1 + 1), rtol=1e-15)
    optimizer.lr = 0.2  # holds where no group says otherwise
    (p + q).backward()
    optimizer.step()
    np.testing.assert_allclose(p.numpy(), 0.0, atol=1e-15)
    np.testing.assert_allclose(q.numpy(), 0.8 - 0.2 * (1 + 0.8), rtol=1e-14)


MISTAKES = {
    "a single Tensor": (lambda p: optim.SGD(p), TypeError, "single Parameter; put it into a list"),
    "a single group": (lambda p: optim.SGD({"params": [p]}), TypeError, "single dict; put it into a list"),
    "no Tensors": (lambda p: optim.SGD([1.0]), TypeError, r"got a float; use model.parameters\(\)"),
    "nothing": (lambda p: optim.SGD([]), ValueError, "nothing to optimise"),
    "integers": (lambda p: optim.SGD([Tensor([1], dtype="int64")]), TypeError, "floats, got one of int64"),
    "twice": (lambda p: optim.SGD([p, p]), ValueError, "comes twice"),
    "in two groups": (lambda p: optim.SGD([{"params": [p]}, {"params": p}]), ValueError, "comes twice"),
    "mixed": (lambda p: optim.SGD([{"params": [p]}, p]), TypeError, "every group needs to be a dict"),
    "unknown": (lambda p: optim.SGD([{"params": [p], "beta1": 0.5}]), ValueError, "'beta1'; it has lr, mom"),
    "lr": (lambda p: optim.Adam([p], lr=-1), ValueError, "Adam: lr must be 0 or more, got -1"),
    "NaN": (lambda p: optim.Adam([p], lr=math.nan), ValueError, "lr must be 0 or more, got nan"),
    "beta": (lambda p: optim.Adam([p], beta2=1.0), ValueError, "beta2 must be from 0 to below 1, got 1.0"),
    "momentum": (lambda p: optim.SGD([p], momentum=1.5), ValueError, "momentum must be from 0 to below 1"),
    "no rate": (lambda p: optim.SGD([p], lr=None), ValueError, "SGD: lr must be 0 or more, got None"),
    "a group's rate": (
        lambda p: optim.Adam([{"params": [p], "lr": None}]),
        ValueError,
        "lr must be 0 or more, got None",
    ),
    "a word": (lambda p: optim.RMSProp([p], alpha="0.9"), ValueError, "alpha must be from 0 .* got '0.9'"),
    "max_norm": (lambda p: optim.SGD([p]).clip_grad_norm(0), ValueError, "max_norm must be above 0, got 0"),
    "steps": (lambda p: optim.CosineLR(optim.SGD([p]), 0), ValueError, "steps must be 1 or more, got 0"),
    "no lr": (lambda p: optim.StepLR(optim.Optimizer([p]), 1), TypeError, "has an lr"),
    "another's": (
        lambda p: optim.WarmUp(optim.SGD([p]), 2, then=optim.StepLR(optim.SGD([p]), 1)),
        ValueError,
        "`then` is a schedule of another optimiser",
    ),
}


@pytest.mark.parametrize(("mistake", "error", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_explained(mistake, error, words):
    with pytest.raises(error, match=words):
        mistake(Parameter([1.0]))


def test_a_gradient_of_another_shape_is_refused():
    p = Parameter([1.0, 2.0])
    p.grad = Tensor([1.0])
    with pytest.raises(ValueError, match=r"shape \(2,\) has a grad of shape \(1,\)"):
        optim.SGD([p]).step()
    assert p.numpy().tolist() == [1, 2]


# Clipping


def test_gradients_are_clipped_together(mode):
    p, q, r = Parameter([0.0, 0.0]), Parameter([[0.0]]), Parameter([0.0])
    optimizer = optim.SGD([p, q, r])
    p.grad, q.grad = Tensor([3.0, 0.0]), Tensor([[4.0]])
    assert optimizer.clip_grad_norm(max_norm=10.0) == 5.0
    assert (p.grad.numpy().tolist(), q.grad.numpy().tolist()) == ([3, 0], [[4]])
    assert optimizer.clip_grad_norm() == 5.0
    np.testing.assert_allclose(p.grad.numpy(), [0.15, 0], rtol=1e-6)
    np.testing.assert_allclose(q.grad.numpy(), [[0.2]], rtol=1e-6)
    assert r.grad is None
    assert q.grad.is_leaf()


def test_clipping_against_torch(torch):
    params = parameters()
    twins = [torch.tensor(p.numpy(), requires_grad=True) for p in params]
    loss_of(params).backward()
    loss_of(twins, torch).backward()
    norm = optim.Adam(params).clip_grad_norm(0.3)
    np.testing.assert_allclose(norm, torch.nn.utils.clip_grad_norm_(twins, 0.3).item(), rtol=1e-14)
    for p, q in zip(params, twins, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad, rtol=1e-13)


def test_gradients_whose_squares_overflow_are_clipped(mode):
    p, q = Parameter([0.0, 0.0], dtype="float32"), Parameter([0.0], dtype="float64")
    p.grad = Tensor([3e25, 0.0])
    q.grad = Tensor([-4e25], dtype="float64")
    np.testing.assert_allclose(optim.SGD([p, q]).clip_grad_norm(1.0), 5e25, rtol=1e-6)
    np.testing.assert_allclose(p.grad.numpy(), [0.6, 0], rtol=1e-5)
    np.testing.assert_allclose(q.grad.numpy(), [-0.8], rtol=1e-5)


@pytest.mark.parametrize("odd", [math.inf, math.nan])
def test_gradients_that_are_not_finite_are_not_clipped(odd):
    p = Parameter([0.0, 0.0])
    p.grad = Tensor([odd, 3.0])
    assert not math.isfinite(optim.SGD([p]).clip_grad_norm())
    np.testing.assert_array_equal(p.grad.numpy(), [odd, 3.0])


@pytest.mark.parametrize(
    "gradients",
    [
        {"float32": [3.0, 0.0], "float64": [4.0]},
        {"float32": [3.0, 0.0]},
        {"float32": [0.001, 0.0], "float64": [0.0]},
        {"float32": [3e25, 1.0]},
        {"float32": [3.0, 4.0], "float64": [1e200, -3e300]},
        {"float64": [0.0, 0.0]},
        {"float32": [1.0], "float64": []},
        {"float32": [3.0, math.inf]},
        {"float32": [math.nan, 1.0], "float64": [1.0]},
        {"float64": [1.0, -math.inf]},
        {"float64": [math.inf, math.nan]},
    ],
    ids=str,
)
def test_gradients_that_are_still_to_be_computed_are_clipped_later(gradients, computed):
    params, norms, clipped = [Parameter(x, dtype=dtype) for dtype, x in gradients.items()], [], []
    optimizer = optim.SGD(params)
    for lazy in (False, True):
        with ndl.lazy(lazy):
            for p in params:
                p.grad = p.detach() * 1
            computed.clear()
            norms.append(optimizer.clip_grad_norm(1.0))
            assert not (lazy and computed)
        clipped.append([p.grad for p in params])
    assert (type(norms[0]), type(norms[1]), norms[1].shape) == (float, Tensor, ())
    np.testing.assert_allclose(norms[1].numpy(), norms[0], rtol=1e-6)
    for eager, lazy in zip(*clipped, strict=True):
        assert eager.dtype == lazy.dtype
        np.testing.assert_allclose(lazy.numpy(), eager.numpy(), rtol=1e-6)


# Schedules


def rates(optimizer, schedule, steps):
    found = [optimizer.lr]
    for _ in range(steps):
        schedule.step()
        found.append(optimizer.lr)
    return found


def optimizer_with(lr):
    return optim.SGD([Parameter([1.0])], lr=lr)


def test_steps():
    optimizer = optimizer_with(0.8)
    found = rates(optimizer, optim.StepLR(optimizer, 2, gamma=0.5), 5)
    np.testing.assert_allclose(found, [0.8, 0.8, 0.4, 0.4, 0.2, 0.2], rtol=1e-15)


def test_half_a_cosine():
    optimizer = optimizer_with(1.0)
    found = rates(optimizer, optim.CosineLR(optimizer, 4, min_lr=0.2), 6)
    expected = [1.0, 0.6 + 0.4 * math.sqrt(0.5), 0.6, 0.6 - 0.4 * math.sqrt(0.5), 0.2, 0.2, 0.2]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_warm_up():
    optimizer = optimizer_with(0.4)
    np.testing.assert_allclose(
        rates(optimizer, optim.WarmUp(optimizer, 4), 5), [0.1, 0.2, 0.3, 0.4, 0.4, 0.4], rtol=1e-15
    )
    optimizer = optimizer_with(0.4)
    schedule = optim.WarmUp(optimizer, 2, then=optim.StepLR(optimizer, 2, gamma=0.1))
    np.testing.assert_allclose(
        rates(optimizer, schedule, 6), [0.2, 0.4, 0.4, 0.4, 0.04, 0.04, 0.004], rtol=1e-14
    )
    optimizer = optimizer_with(0.4)  # one that begins with another rate than the base
    schedule = optim.WarmUp(optimizer, 1, then=optim.WarmUp(optimizer, 2))
    np.testing.assert_allclose(rates(optimizer, schedule, 3), [0.4, 0.2, 0.4, 0.4], rtol=1e-14)


def test_schedules_against_torch(torch):
    theirs = torch.optim.lr_scheduler
    pairs = [
        (lambda o: optim.StepLR(o, 3, 0.3), lambda o: theirs.StepLR(o, 3, 0.3)),
        (lambda o: optim.CosineLR(o, 10, 0.01), lambda o: theirs.CosineAnnealingLR(o, 10, 0.01)),
        (lambda o: optim.WarmUp(o, 5), lambda o: theirs.LinearLR(o, 0.2, total_iters=4)),
    ]
    for ours, other in pairs:
        optimizer, twin = optimizer_with(0.7), torch.optim.SGD([torch.ones(1)], lr=0.7)
        schedule = other(twin)
        expected = [0.0] * 11
        for i in range(11):
            expected[i] = twin.param_groups[0]["lr"]
            twin.step()
            schedule.step()
        np.testing.assert_allclose(rates(optimizer, ours(optimizer), 10), expected, rtol=1e-12)


def test_a_groups_own_rate_is_scheduled_alike():
    p, q = Parameter([1.0]), Parameter([1.0])
    optimizer = optim.SGD([{"params": [p], "lr": 1.0}, {"params": [q]}], lr=0.1)
    optim.StepLR(optimizer, 1, gamma=0.5).step()
    assert (optimizer.groups[0]["lr"], optimizer.lr) == (0.5, 0.05)
    assert "lr" not in optimizer.groups[1]


# States


def training(make):
    """Parameters in two groups, their optimiser and schedule."""
    params = parameters()
    optimizer = make([{"params": params[:1], "lr": 0.02}, {"params": params[1:]}])
    schedule = optim.WarmUp(optimizer, 3, then=optim.CosineLR(optimizer, 10))
    return params, optimizer, schedule


@each
def test_a_restored_training_goes_on_bit_by_bit(make):
    params, optimizer, schedule = training(make)
    train(params, optimizer, 5, schedule)
    saved = values(params), optimizer.state_dict(), schedule.state_dict()
    train(params, optimizer, 5, schedule)

    again, optimizer, schedule = training(make)
    for p, value in zip(again, saved[0], strict=True):
        p.data = Tensor(value, dtype="float64")
    optimizer.load_state_dict(saved[1])
    schedule.load_state_dict(saved[2])
    train(again, optimizer, 5, schedule)
    for p, q in zip(params, again, strict=True):
        np.testing.assert_array_equal(p.numpy(), q.numpy())


@each
def test_a_state_is_plain(make):
    def leaves(value):
        if isinstance(value, dict):
            assert all(type(key) is str for key in value)
            return itertools.chain.from_iterable(map(leaves, value.values()))
        if isinstance(value, list):
            return itertools.chain.from_iterable(map(leaves, value))
        return [value]

    params, optimizer, schedule = training(make)
    train(params, optimizer, 2, schedule)
    found = {type(x) for x in leaves([optimizer.state_dict(), schedule.state_dict()])}
    assert found <= {str, int, float, bool, type(None), Tensor}


def test_a_state_does_not_follow_later_steps():
    params = parameters()
    optimizer = optim.Adam(params)
    train(params, optimizer, 1)
    state = optimizer.state_dict()
    before = state["state"][0]["mean"].numpy()
    train(params, optimizer, 1)
    np.testing.assert_array_equal(state["state"][0]["mean"].numpy(), before)
    assert state["updates"] == [1, 1, 1]


def test_a_restored_state_has_the_parameters_dtype():
    params = parameters("float32")
    optimizer = optim.Adam(params)
    other = optim.Adam(twins := parameters("float64"))
    train(twins, other, 1)
    optimizer.load_state_dict(other.state_dict())
    assert optimizer.state[params[0]]["mean"].dtype == "float32"


def test_a_restored_state_may_be_of_numpys_arrays():
    params, optimizer, _ = training(ALL["Adam"])
    train(params, optimizer, 1)
    state = optimizer.state_dict()
    state["state"] = [{k: x.numpy() for k, x in memory.items()} for memory in state["state"]]
    optimizer.load_state_dict(state)
    assert type(optimizer.state[params[0]]["mean"]) is Tensor
    train(params, optimizer, 1)


def test_velocity_may_be_missing_where_momentum_was_switched_on():
    params = parameters()
    optimizer = optim.SGD(params)
    train(params, optimizer, 1)
    optimizer.momentum = 0.9
    optimizer.load_state_dict(optimizer.state_dict())
    train(params, optimizer, 1)
    assert set(optimizer.state[params[0]]) == {"u"}


def memory(**changes):
    """A change of what a state remembers of the first parameter."""
    return lambda state: state | {"state": [state["state"][0] | changes, *state["state"][1:]]}


def first_group(**changes):
    """A change of the options of the first group."""
    return lambda state: state | {"groups": [state["groups"][0] | changes, state["groups"][1]]}


UNFIT = {
    "None": (lambda state: None, "needs what an optimiser's state_dict returned, got None"),
    "nothing": (lambda state: {}, "needs what an optimiser's state_dict returned, got {}"),
    "a model's state": (lambda state: {"weight": ndl.ones(2)}, "state_dict returned, got {'weight'"),
    "no groups": (lambda state: state | {"groups": None}, "state_dict returned, got"),
    "empty groups": (lambda state: state | {"groups": [{}]}, "state_dict returned, got"),
    "options None": (lambda state: state | {"options": None}, "state_dict returned, got"),
    "memory None": (lambda state: state | {"state": [None, {}, {}]}, "state_dict returned, got"),
    "another optimiser": (lambda state: state | {"optimizer": "SGD"}, "optimizer: got SGD, needed Adam"),
    "another grouping": (
        lambda state: state | {"groups": [{"params": [0, 1, 2]}]},
        r"groups of parameters: got \[\[0, 1, 2\]\], needed \[\[0\], \[1, 2\]\]",
    ),
    "other options": (
        lambda state: state | {"options": {"lr": 0.1}},
        r"options: got \['lr'\], needed \['beta1', 'beta2', 'eps', 'lr', 'weight_decay'\]",
    ),
    "an odd option": (
        lambda state: state | {"options": state["options"] | {"beta1": 2.0}},
        "beta1 must be from 0 to below 1",
    ),
    "a word": (lambda state: state | {"options": state["options"] | {"lr": "fast"}}, "lr must be 0 or more"),
    "a group's unknown option": (first_group(gamma=1), "no option 'gamma'"),
    "a group's odd option": (first_group(lr=-1.0), "lr must be 0 or more, got -1.0"),
    "too few": (lambda state: state | {"state": state["state"][:2]}, "have a state: got 2, needed 3"),
    "negative updates": (lambda state: state | {"updates": [-1, 1, 1]}, "whole numbers from 0 on"),
    "half an update": (lambda state: state | {"updates": [1, 0.5, 1]}, "whole numbers from 0 on"),
    "an array as groups": (
        lambda state: state | {"groups": np.ones((9, 9))},
        "what an optimiser's state_dict",
    ),
    "sums of an earlier Adam": (
        lambda state: state | {"state": [{"m": x["mean"], "v": x["mean_square"]} for x in state["state"]]},
        r"got {'m': \(3, 2\), 'v': \(3, 2\)}, needed {'mean': \(3, 2\), 'mean_square': \(3, 2\)}",
    ),
    "too few updates": (lambda state: state | {"updates": [1]}, "were updated: got 1, needed 3"),
    "never updated": (
        lambda state: state | {"updates": [0, 1, 1]},
        r"\(3, 2\), after 0 updates: got {'mean': \(3, 2\), 'mean_square': \(3, 2\)}, needed {}",
    ),
    "forgotten": (
        lambda state: state | {"state": [{}] * 3},
        r"after 1 updates: got {}, needed {'mean': \(3, 2\), 'mean_square': \(3, 2\)}",
    ),
    "an odd name": (
        memory(w=ndl.ones(3, 2)),
        r"'w': \(3, 2\)}, needed {'mean': \(3, 2\), 'mean_square': \(3, 2\)}",
    ),
    "a number": (memory(mean_square=1.0), r"got {'mean': \(3, 2\), 'mean_square': \(\)}, needed"),
    "other shapes": (memory(mean=ndl.ones(2)), r"got {'mean': \(2,\), .* needed {'mean': \(3, 2\), "),
}


@pytest.mark.parametrize(("change", "words"), UNFIT.values(), ids=UNFIT)
def test_a_state_that_does_not_fit_changes_nothing(change, words):
    params, optimizer, _ = training(ALL["Adam"])
    train(params, optimizer, 1)
    before = optimizer.state_dict()
    with pytest.raises(ValueError, match=words):
        optimizer.load_state_dict(change(optimizer.state_dict()))
    after = optimizer.state_dict()
    for part in ("options", "groups", "updates"):
        assert after[part] == before[part]
    np.testing.assert_array_equal(after["state"][0]["mean"].numpy(), before["state"][0]["mean"].numpy())


def test_a_schedules_state_that_does_not_fit():
    schedule = optim.StepLR(optimizer_with(0.1), 1)
    odd = [None, {}, {"t": 1}, {"t": 1, "bases": [0.1, 0.2]}, {"t": -1, "bases": [0.1]}]
    for state in (*odd, {"t": 1, "bases": ["a"]}):
        with pytest.raises(ValueError, match="needs t and 1 base"):
            schedule.load_state_dict(state)


# NumPy's own arrays

UNDER_NUMPY = """
import numpy as np
import needle as ndl
assert ndl.BACKEND == "np"
rng = np.random.default_rng(0)
for make in (ndl.optim.SGD, ndl.optim.Adam, ndl.optim.AdamW, ndl.optim.RMSProp):
    params = [ndl.nn.Parameter(rng.normal(size=s).astype("float32")) for s in [(3, 2), (1, 2), ()]]
    optimizer = make(params, lr=0.01)
    for _ in range(3):
        w, b, s = params
        x = ndl.Tensor(np.ones((3, 2)))
        loss = (ndl.tanh(w * x + b) * s).sum() + s * s
        loss.backward()
        assert loss.dtype == np.float64
        optimizer.clip_grad_norm(0.5)
        optimizer.step()
    for p in params:
        assert type(p.realize_cached_data()) is np.ndarray
        assert p.realize_cached_data().dtype == np.float32
    again = make(params, lr=0.01)
    again.load_state_dict(optimizer.state_dict())
print("ok")
"""


def test_float64_gradients_do_not_widen_numpys_float32(monkeypatch):
    monkeypatch.setenv("NEEDLE_BACKEND", "np")
    done = subprocess.run([sys.executable, "-W", "error", "-c", UNDER_NUMPY], capture_output=True, text=True)
    assert done.stdout == "ok\n", done.stderr


def test_the_text_of_an_optimiser():
    optimizer = ndl.optim.RMSProp([ndl.nn.Parameter([1.0])], lr=0.5)
    assert repr(optimizer).startswith("RMSProp(lr=0.5, ")
    assert repr(optimizer).endswith("), parameters: 1")
