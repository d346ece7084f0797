"""Steps of training under `jit`: the first, options that change, schedules, snapshots, own optimisers."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest

import needle as ndl
from needle import nn, optim
from needle.autograd import Tensor
from needle.compiler import CannotTrace

from ...training import SmallTraining, Training
from .conftest import assert_close, assert_same, assert_same_training, count_of, jit


def nothing(training: SmallTraining, i: int) -> None:
    pass


def assert_trains_alike(
    make: Callable = SmallTraining,
    times: int = 4,
    before: Callable = nothing,
    step: Callable = SmallTraining.step,
    programs: int | None = None,
) -> tuple[SmallTraining, SmallTraining]:
    """A compiled step and the step as it is do the same, so many `times` with `before` ahead of each."""
    ours, theirs = make(), make()
    compiled = jit(lambda x, y: step(ours, x, y))
    for i in range(times):
        found = []
        for training, run in ((ours, compiled), (theirs, lambda x, y: step(theirs, x, y))):
            before(training, i)
            found.append(run(training.x, training.y))
        if found[1] is not None:
            assert_same(found[0], found[1].detach(), 1e-5)
        assert_same_training(ours, theirs)
    assert programs is None or count_of(compiled) == programs
    return ours, theirs


def test_a_step_equals_eager():
    assert_trains_alike(programs=1)


def test_a_step_that_takes_nothing():
    ours, theirs = SmallTraining(), SmallTraining()
    step = jit(lambda: ours.step(ours.x, ours.y))
    for _ in range(3):
        assert_same(step(), theirs.step(theirs.x, theirs.y).detach(), 1e-5)
    assert_same_training(ours, theirs)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SmallTraining(optim.SGD, momentum=0.9),
        lambda: SmallTraining(optim.Adam, lr=0.1),
        lambda: SmallTraining(optim.RMSProp, lr=0.1, momentum=0.5),
    ],
    ids=["momentum", "Adam", "RMSProp"],
)
def test_the_first_step_makes_the_state(make):
    ours, theirs = assert_trains_alike(make, programs=1)
    for p, q in zip(ours.optimizer.params, theirs.optimizer.params, strict=True):
        assert ours.optimizer._updates[p] == theirs.optimizer._updates[q] == 4
        assert type(ours.optimizer._updates[p]) is int
        for name, x in theirs.optimizer.state[q].items():
            assert_close(ours.optimizer.state[p][name].numpy(), x.numpy(), 1e-4)


def test_eager_and_compiled_steps_may_alternate():
    ours, theirs = SmallTraining(optim.Adam, lr=0.1), SmallTraining(optim.Adam, lr=0.1)
    step = jit(ours.step)
    for i in range(8):
        (step if i % 3 else ours.step)(ours.x, ours.y)
        theirs.step(theirs.x, theirs.y)
        assert_same_training(ours, theirs)


def test_a_changed_learning_rate_is_not_traced_anew():
    def before(training, i):
        training.optimizer.lr = (0.5, 0.5, 0.1, 1.5, 0.01)[i]

    assert_trains_alike(lambda: SmallTraining(optim.SGD, momentum=0.9), 5, before, programs=1)


def with_groups():
    training = SmallTraining()
    first, *rest = training.model.parameters()
    groups = [{"params": [first], "lr": 0.2}, {"params": rest, "momentum": 0.5}]
    training.optimizer = optim.SGD(groups, lr=1.0)
    return training


@pytest.mark.parametrize("make", [SmallTraining, with_groups])
def test_an_option_of_a_group(make):
    """Also one that the group did not have before."""

    def before(training, i):
        if i:
            training.optimizer.groups[0]["lr"] = (0.2, 0.4, 0.1)[i - 1]

    assert_trains_alike(make, 4, before)


def test_an_option_that_decides_is_traced_anew():
    def before(training, i):
        training.optimizer.weight_decay = (0.0, 0.1, 0.2, 0.0)[i]

    assert_trains_alike(before=before)


def test_a_schedule():
    def make():
        training = SmallTraining(lr=1.0)
        training.schedule = optim.CosineLR(training.optimizer, 10)
        return training

    assert_trains_alike(make, before=lambda training, i: i and training.schedule.step(), programs=1)


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


def backward(training: SmallTraining, i: int) -> None:
    training.loss_of(training.model, training.x, training.y).backward()


def test_a_step_with_grads_of_before():
    """The step reads gradients that another call left."""
    assert_trains_alike(before=backward, step=lambda training, x, y: training.optimizer.step())


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

    def before(training, i):
        if i in (1, 3):  # when the program is made, and after it
            backward(training, i)

    for training in assert_trains_alike(before=before, programs=1):
        assert [p.grad for p in training.optimizer.params] == [None] * 4


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

    def before(training, i):
        training.x = training.x * (1.0, 2.0, 0.25)[i]

    def step(training, x, y):
        training.loss_of(training.model, x, y).backward()

    ours, theirs = assert_trains_alike(times=3, before=before, step=step, programs=1)
    for p, q in zip(ours.model.parameters(), theirs.model.parameters(), strict=True):
        assert_close(p.grad.numpy(), q.grad.numpy(), 1e-5)


def test_batch_norm_follows():
    def make():
        model = nn.Sequential(nn.Linear(3, 4, rng=0), nn.BatchNorm1d(4))
        training = Training(model, lambda model, x, y: (model(x) ** 3).mean(), lambda p: optim.SGD(p, lr=0.1))
        training.y = ndl.ones(1)
        return training

    def before(training, i):
        training.x = Tensor(np.random.default_rng(i).normal(size=(5, 3)), requires_grad=False)

    ours, theirs = (training.model.state_dict() for training in assert_trains_alike(make, before=before))
    for name, value in theirs.items():
        assert_close(ours[name].numpy(), value.numpy(), 1e-5)


@pytest.mark.filterwarnings("ignore:jit. the function is compiled for time number 5")
def test_a_step_that_skips_parameters_without_gradients():
    def before(training, i):
        which = ([0, 1], [2], [0, 1, 2, 3], [], [2])[i]
        for n, p in enumerate(training.optimizer.params):
            p.grad = ndl.ones(*p.shape) * (n + 1) if n in which else None

    assert_trains_alike(times=5, before=before, step=lambda training, x, y: training.optimizer.step())


def test_a_state_that_is_replaced():
    """As an eager step does, where gradients are still to be computed."""

    def before(training, i):
        if i == 2:
            for memory in training.optimizer.state.values():
                memory["u"] = memory["u"] * 0

    assert_trains_alike(lambda: SmallTraining(optim.SGD, momentum=0.9), before=before)


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
    def before(training, i):
        training.optimizer.sign = (1.0, -1.0, 0.5)[i]

    assert_trains_alike(lambda: SmallTraining(Signed), 3, before)


def test_an_optimiser_that_changes_itself_is_refused():
    ours = SmallTraining(Counting)
    with pytest.raises(CannotTrace, match=r"changes steps of Counting"):
        jit(ours.step)(ours.x, ours.y)
    assert ours.optimizer.steps == 0


def test_a_copy_of_the_array_of_a_tensor_keeps_its_numbers():
    p = ndl.Tensor([1.0, 2.0, 3.0], dtype="float32")

    def step():
        p.data = p * 2

    compiled = jit(step)
    compiled(), compiled()
    kept = copy.copy(p.realize_cached_data())
    compiled()
    assert kept.numpy().tolist() == [4, 8, 12]
    assert p.numpy().tolist() == [8, 16, 24]
