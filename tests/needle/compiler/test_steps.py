"""Steps of training under `jit`: the first, options that change, schedules, snapshots, own optimisers."""

from __future__ import annotations

import numpy as np
import pytest

import needle as ndl
from needle import nn, optim
from needle.autograd import Tensor
from needle.compiler import CannotTrace

from ...training import SmallTraining
from .conftest import assert_close, assert_same, assert_same_training, count_of, jit


def test_a_step_equals_eager():
    ours, theirs = SmallTraining(), SmallTraining()
    step = jit(ours.step)
    for _ in range(5):
        assert_same(step(ours.x, ours.y), theirs.step(theirs.x, theirs.y).detach(), 1e-5)
        assert_same_training(ours, theirs)
    assert count_of(step) == 1


def test_a_step_that_takes_nothing():
    ours, theirs = SmallTraining(), SmallTraining()
    step = jit(lambda: ours.step(ours.x, ours.y))
    for _ in range(3):
        assert_same(step(), theirs.step(theirs.x, theirs.y).detach(), 1e-5)
    assert_same_training(ours, theirs)


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: SmallTraining(optim.SGD, momentum=0.9, **k),
        lambda **k: SmallTraining(optim.Adam, lr=0.1, **k),
        lambda **k: SmallTraining(optim.RMSProp, lr=0.1, momentum=0.5, **k),
    ],
    ids=["momentum", "Adam", "RMSProp"],
)
def test_the_first_step_makes_the_state(make):
    ours, theirs = make(), make()
    step = jit(ours.step)
    for _ in range(4):
        assert_same(step(ours.x, ours.y), theirs.step(theirs.x, theirs.y).detach(), 1e-5)
    assert_same_training(ours, theirs)
    for p, q in zip(ours.optimizer.params, theirs.optimizer.params, strict=True):
        assert ours.optimizer._updates[p] == theirs.optimizer._updates[q] == 4
        assert type(ours.optimizer._updates[p]) is int
        for name, x in theirs.optimizer.state[q].items():
            assert_close(ours.optimizer.state[p][name].numpy(), x.numpy(), 1e-4)
    assert count_of(step) == 1


def test_eager_and_compiled_steps_may_alternate():
    ours, theirs = SmallTraining(optim.Adam, lr=0.1), SmallTraining(optim.Adam, lr=0.1)
    step = jit(ours.step)
    for i in range(8):
        (step if i % 3 else ours.step)(ours.x, ours.y)
        theirs.step(theirs.x, theirs.y)
        assert_same_training(ours, theirs)


def test_a_changed_learning_rate_is_not_traced_anew():
    ours, theirs = SmallTraining(optim.SGD, momentum=0.9), SmallTraining(optim.SGD, momentum=0.9)
    step = jit(ours.step)
    step(ours.x, ours.y)
    theirs.step(theirs.x, theirs.y)
    for lr in (0.5, 0.1, 1.5, 0.01):
        ours.optimizer.lr = theirs.optimizer.lr = lr
        step(ours.x, ours.y)
        theirs.step(theirs.x, theirs.y)
        assert_same_training(ours, theirs)
    assert count_of(step) == 1


def test_options_of_groups():
    def make():
        training = SmallTraining()
        first, *rest = training.model.parameters()
        training.optimizer = optim.SGD(
            [{"params": [first], "lr": 0.2}, {"params": rest, "momentum": 0.5}], lr=1.0
        )
        return training

    ours, theirs = make(), make()
    step = jit(ours.step)
    for lr in (0.2, 0.4, 0.1):
        ours.optimizer.groups[0]["lr"] = theirs.optimizer.groups[0]["lr"] = lr
        step(ours.x, ours.y)
        theirs.step(theirs.x, theirs.y)
        assert_same_training(ours, theirs)


def test_an_option_that_decides_is_traced_anew():
    ours, theirs = SmallTraining(optim.SGD), SmallTraining(optim.SGD)
    step = jit(ours.step)
    for weight_decay in (0.0, 0.1, 0.2, 0.0):
        ours.optimizer.weight_decay = theirs.optimizer.weight_decay = weight_decay
        step(ours.x, ours.y)
        theirs.step(theirs.x, theirs.y)
        assert_same_training(ours, theirs)


def test_a_schedule():
    ours, theirs = SmallTraining(lr=1.0), SmallTraining(lr=1.0)
    schedules = [optim.CosineLR(t.optimizer, 10) for t in (ours, theirs)]
    step = jit(ours.step)
    for _ in range(5):
        step(ours.x, ours.y)
        theirs.step(theirs.x, theirs.y)
        for schedule in schedules:
            schedule.step()
        assert_same_training(ours, theirs)
    assert count_of(step) == 1


def test_a_snapshot_keeps_its_values():
    training = SmallTraining()
    step = jit(training.step)
    step(training.x, training.y)
    snapshots = []
    for _ in range(4):
        snapshot = training.model.state_dict()
        snapshots.append((snapshot, {name: x.numpy() for name, x in snapshot.items()}))
        step(training.x, training.y)
    for snapshot, values in snapshots:
        for name, x in snapshot.items():
            np.testing.assert_array_equal(x.numpy(), values[name])


def test_a_snapshot_can_be_loaded():
    ours, theirs = SmallTraining(optim.Adam), SmallTraining(optim.Adam)
    step = jit(ours.step)
    for training, run in ((ours, step), (theirs, theirs.step)):
        for _ in range(3):
            run(training.x, training.y)
        model, optimizer = training.model.state_dict(), training.optimizer.state_dict()
        for _ in range(2):
            run(training.x, training.y)
        training.model.load_state_dict(model)
        training.optimizer.load_state_dict(optimizer)
        for _ in range(2):
            run(training.x, training.y)
    assert_same_training(ours, theirs)


def test_a_step_with_grads_of_before():
    """The step reads gradients that another call left."""
    ours, theirs = SmallTraining(), SmallTraining()
    step = jit(lambda: ours.optimizer.step())
    for _ in range(3):
        for training, run in ((ours, step), (theirs, theirs.optimizer.step)):
            loss = training.loss_of(training.model, training.x, training.y)
            loss.backward()
            run()
        assert_same_training(ours, theirs)


def turns(compiler):
    """Two losses in turn, each on a parameter of its own; what is there after each step."""
    a, b = (nn.Parameter([1.0], dtype="float64") for _ in "ab")
    optimizer = optim.SGD([a, b], lr=0.1)

    def step(p):
        loss = (p * p).sum()
        loss.backward()
        optimizer.step()
        return loss

    steps = [compiler(lambda: step(a)), compiler(lambda: step(b))]
    for number in range(8):
        if number == 4:
            a.requires_grad, b.grad = False, ndl.ones(1, dtype="float64")
            steps[0] = compiler(optimizer.step)
        yield steps[number % 2]() is None, a.numpy().item(), b.numpy().item(), a.grad, b.grad
        if number == 5:
            (a.detach() * b).sum().backward()  # only to look at


def test_losses_in_turn_move_what_they_depend_on():
    found = list(turns(jit))
    assert found == list(turns(lambda f: f))
    assert [a for _, a, *_ in found] == [0.8, 0.8, 0.64, 0.64, 0.64, 0.64, 0.64, 0.64]


def test_a_gradient_from_before_is_no_reason_for_another_program():
    """Where the function replaces it."""
    ours, theirs = SmallTraining(), SmallTraining()
    step = jit(ours.step)
    for number in range(4):
        for training, run in ((ours, step), (theirs, theirs.step)):
            if number in (1, 3):  # when the program is made, and after it
                training.loss_of(training.model, training.x, training.y).backward()
            run(training.x, training.y)
            assert [p.grad for p in training.optimizer.params] == [None] * 4
        assert_same_training(ours, theirs)
    assert count_of(step) == 1


def test_gradients_after_two_steps_and_a_third_backward():
    ours, theirs = SmallTraining(optim.SGD), SmallTraining(optim.SGD)

    def steps(training):
        for _ in range(2):
            training.step(training.x, training.y)
        training.loss_of(training.model, training.x, training.y).backward()

    step = jit(lambda: steps(ours))
    for _ in range(2):
        step()
        steps(theirs)
        assert_same_training(ours, theirs)
        for p, q in zip(ours.optimizer.params, theirs.optimizer.params, strict=True):
            assert_close(p.grad.numpy(), q.grad.numpy(), 1e-5)


def test_gradients_of_a_call_without_a_step():
    """As in eager, `backward` replaces the gradients of the call before."""
    ours, theirs = SmallTraining(), SmallTraining()
    g = jit(lambda x, y: ours.loss_of(ours.model, x, y).backward())
    for scale in (1.0, 2.0, 0.5):
        for training, run in (
            (ours, g),
            (theirs, lambda x, y: theirs.loss_of(theirs.model, x, y).backward()),
        ):
            run(training.x * scale, training.y)
        for p, q in zip(ours.model.parameters(), theirs.model.parameters(), strict=True):
            assert_close(p.grad.numpy(), q.grad.numpy(), 1e-5)
    assert count_of(g) == 1


def test_batch_norm_follows():
    def make():
        model = nn.Sequential(nn.Linear(3, 4, rng=0), nn.BatchNorm1d(4))
        return model, optim.SGD(model.parameters(), lr=0.1)

    (ours, our_optimizer), (theirs, their_optimizer) = make(), make()

    def step(model, optimizer, x):
        loss = (model(x) ** 3).mean()
        loss.backward()
        optimizer.step()
        return loss

    g = jit(lambda x: step(ours, our_optimizer, x))
    for seed in range(4):
        x = Tensor(np.random.default_rng(seed).normal(size=(5, 3)), requires_grad=False)
        assert_same(g(x), step(theirs, their_optimizer, x).detach(), 1e-5)
    for name, value in theirs.state_dict().items():
        assert_close(ours.state_dict()[name].numpy(), value.numpy(), 1e-5)


@pytest.mark.filterwarnings("ignore:jit. the function is compiled for time number 5")
def test_a_step_that_skips_parameters_without_gradients():
    ours, theirs = SmallTraining(), SmallTraining()
    step = jit(lambda: ours.optimizer.step())
    for which in ([0, 1], [2], [0, 1, 2, 3], [], [2]):
        for training, run in ((ours, step), (theirs, theirs.optimizer.step)):
            for i, p in enumerate(training.optimizer.params):
                p.grad = ndl.ones(*p.shape) * (i + 1) if i in which else None
            run()
        assert_same_training(ours, theirs)


def test_a_state_that_is_replaced():
    """As an eager step does, where gradients are still to be computed."""
    ours, theirs = (SmallTraining(optim.SGD, momentum=0.9) for _ in range(2))
    step = jit(ours.step)
    for _ in range(2):
        step(ours.x, ours.y)
        theirs.step(theirs.x, theirs.y)
    for training in (ours, theirs):
        for memory in training.optimizer.state.values():
            memory["u"] = memory["u"] * 0
    for _ in range(2):
        step(ours.x, ours.y)
        theirs.step(theirs.x, theirs.y)
        assert_same_training(ours, theirs)


class Signed(optim.Optimizer):
    """An optimiser of one's own, with an attribute that is no option."""

    sign = 1.0

    def __init__(self, params, lr):
        super().__init__(params, lr=lr)
        self.steps = 0

    def rule(self, p, grad, state, t, lr):
        return p - self.sign * lr * grad


class Counting(Signed):
    def rule(self, p, grad, state, t, lr):
        self.steps += 1
        return p - lr * grad / self.steps


def test_an_optimiser_of_one_s_own():
    ours, theirs = SmallTraining(Signed), SmallTraining(Signed)
    step = jit(ours.step)
    for sign in (1.0, -1.0, 0.5):
        ours.optimizer.sign = theirs.optimizer.sign = sign
        step(ours.x, ours.y)
        theirs.step(theirs.x, theirs.y)
        assert_same_training(ours, theirs)


def test_an_optimiser_that_changes_itself_is_refused():
    ours = SmallTraining(Counting)
    with pytest.raises(CannotTrace, match=r"changes steps of Counting"):
        jit(ours.step)(ours.x, ours.y)
    assert ours.optimizer.steps == 0


def test_a_group_is_added_an_option():
    ours, theirs = SmallTraining(), SmallTraining()
    step = jit(ours.step)
    for lr in (None, 0.1, 0.2):
        for training, run in ((ours, step), (theirs, theirs.step)):
            if lr:
                training.optimizer.groups[0]["lr"] = lr
            run(training.x, training.y)
        assert_same_training(ours, theirs)
