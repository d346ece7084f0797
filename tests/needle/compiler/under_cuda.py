"""Compiled programs on a GPU; ``backend_ndarray/test_cuda.py`` runs this on the simulator, and on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings

import needle as ndl
from needle import nn, optim
from needle.autograd import Tensor
from needle.backend_ndarray import ndarray_backend_numba_cuda as backend
from needle.compiler import grid, lower
from needle.compiler import kernels as generated

from ...training import SmallTraining
from .conftest import assert_close, assert_same, count_of
from .test_random_graphs import Program, check, programs, quiet

CUDA = ndl.cuda()


def tensor(*shape: int, device=CUDA, seed: int = 0, **options) -> Tensor:
    values = np.random.default_rng(seed).normal(size=shape).astype("float32")
    return Tensor(values, device=device, **options)


def assert_equals_eager(f: Callable, *args) -> ndl.compiler.Compiled:
    """Compiled for the GPU it is as it was there, and as on the CPU."""
    compiled = ndl.jit(f)
    on_cpu = f(*[x.to(ndl.cpu_numpy()) if isinstance(x, Tensor) else x for x in args])
    for _ in range(2):
        found = compiled(*args)
        assert_same(found, f(*args), 1e-5)
        assert_close(found.numpy(), on_cpu.numpy(), 1e-5)
        assert found.device == CUDA
    return compiled


def kernels(compiled) -> int:
    return compiled.source.count("def ")


# One operator after another


def test_a_chain_is_one_kernel():
    compiled = assert_equals_eager(lambda x: ndl.tanh(x * 2) / 3 + ndl.exp(x), tensor(3, 4))
    assert kernels(compiled) == 1
    assert "i = cuda.grid(1)" in compiled.source  # one index for both axes


def test_a_layer_is_one_kernel_with_a_thread_for_each_number():
    compiled = assert_equals_eager(
        lambda x, W, b: ndl.relu(x @ W + b), tensor(3, 4), tensor(4, 5, seed=1), tensor(5, seed=2)
    )
    assert kernels(compiled) == 1
    assert "i, j = thread // 5, thread % 5" in compiled.source
    assert "local" not in compiled.source


@pytest.fixture(params=["a thread", "a warp", "a block", "a block without registers", "columns"])
def takes_a_row(request, monkeypatch):
    """Who computes a row. What is chosen by the sizes of arrays is tried out here with small ones."""
    monkeypatch.setattr(grid, "SHARED", 100 if request.param == "a thread" else 2)
    if "block" in request.param:
        monkeypatch.setattr(generated, "_MOST_OF_WARP", 0)
    if "without" in request.param:
        monkeypatch.setattr(generated, "_KEPT", 0)
    for module in (generated, grid):
        monkeypatch.setattr(module, "goes_across", lambda *_: request.param == "columns")
    return request.param


ROWS = {
    "softmax": lambda x: ndl.exp(ndl.logsoftmax(x)),
    "layer norm": lambda x: nn.LayerNorm1d(x.shape[1], device=x.device)(x),
    "maximum": lambda x: ndl.max(x * 2, axes=1) - 1,
    "mean of squares": lambda x: x / (x * x).sum(1).reshape((x.shape[0], 1)),
}


@pytest.mark.parametrize("columns", [1, 3, 8, 11])
@pytest.mark.parametrize("name", ROWS)
def test_rows_are_one_kernel(name, columns, takes_a_row):
    x = tensor(3, columns)
    compiled = assert_equals_eager(ROWS[name], x)
    assert kernels(compiled) == 1


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=quiet)
@given(program=programs())
def test_random_programs(takes_a_row: str, program: Program):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lower, "SMALL_ON_GPU", 24)
        check(program, CUDA, plain=False)


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 11), (3, 4, 5)])
@pytest.mark.parametrize("name", ["sum", "max"])
def test_a_total_is_the_work_of_a_block(shape, name):
    fold = {"sum": lambda x: x.sum() * 2 + x.sum(), "max": lambda x: ndl.max(x)}[name]
    compiled = assert_equals_eager(fold, tensor(*shape))
    if shape != (1,):
        assert "cuda.shared.array" in compiled.source


def test_a_long_total_is_left_to_the_device(monkeypatch):
    monkeypatch.setattr(grid, "LONG", 8)
    compiled = assert_equals_eager(lambda x: (x * x).sum() / 2, tensor(3, 5))
    assert "by the device's own kernel" in compiled.source


def test_products_are_left_to_the_device(monkeypatch):
    monkeypatch.setattr(lower, "SMALL_ON_GPU", 8)
    a, b = tensor(2, 3, 4), tensor(4, 5, seed=1)
    compiled = assert_equals_eager(lambda a, b: ndl.relu(a @ b.transpose((0, 1)).transpose((0, 1))) + 1, a, b)
    assert "by the device's own kernel" in compiled.source
    assert_equals_eager(lambda a, b: b.transpose() @ a.transpose(), a[0], b)


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
def test_other_data_types(dtype):
    x = Tensor(np.array([[1, 0, 3], [4, 5, 0]]), dtype=dtype, device=CUDA, requires_grad=False)
    compiled = ndl.jit(lambda x: (x.astype("float32") * 2, x.sum(1), x.sum()))
    expected = (x.astype("float32") * 2, x.sum(1), x.sum())
    assert_same(compiled(x), expected)


def test_a_large_array_of_a_thread_stays_in_memory(monkeypatch):
    def f(x):
        e = ndl.exp(x - 1)
        return e / e.sum(1).reshape((2, 1)).broadcast_to((2, 6))

    assert "local" in assert_equals_eager(f, tensor(2, 6)).source
    monkeypatch.setattr(grid, "_MOST_OF_THREAD", 4)
    assert "local" not in assert_equals_eager(f, tensor(2, 6)).source


def test_what_cannot_be_lowered_keeps_its_own_kernel():
    compiled = ndl.jit(lambda x: ndl.argmax(x * 2, axes=1) + 1)
    x = tensor(3, 4)
    for _ in range(2):
        assert_same(compiled(x), ndl.argmax(x * 2, axes=1) + 1)


def test_numpy_arrays_and_numbers_come_from_the_host():
    def f(x, a, s):
        return x * Tensor(a, device=CUDA, requires_grad=False) + s

    compiled = ndl.jit(f)
    x, a = tensor(2, 3), np.arange(3, dtype="float32")
    for s in (2.0, 3.0):
        assert_same(compiled(x, a, s), f(x, a, s))
    assert kernels(compiled) == 1


def test_gradients():
    def f(x):
        y = (ndl.sigmoid(x) * x).sum()
        y.backward()
        return y

    x = tensor(2, 3)
    f(x)
    expected = x.grad.numpy()
    compiled = ndl.jit(f)
    x.grad = None
    compiled(x)
    assert_close(x.grad.numpy(), expected, 1e-5)
    assert x.grad.device == CUDA


# Training


class Side(SmallTraining):
    """A training on a device. A step takes labels: arrays of NumPy, which come from the host."""

    def __init__(self, device, make: type[optim.Optimizer], **options):
        super().__init__(make, sizes=(2, 3, 2), rows=4, device=device, **options)

    def step(self, y: np.ndarray) -> Tensor:
        return super().step(self.x, y)


SIDES = {
    "SGD": lambda device: Side(device, optim.SGD, lr=0.1, momentum=0.9),
    "Adam": lambda device: Side(device, optim.Adam, lr=0.01, weight_decay=0.01),
}
LABELS = np.array([0, 1, 1, 0])


@pytest.mark.parametrize("name", [pytest.param("SGD", marks=pytest.mark.slow), "Adam"])
def test_training(name):
    sides = [SIDES[name](device) for device in (CUDA, CUDA, ndl.cpu_numpy())]
    compiled = ndl.jit(sides[0].step)
    for number in range(3):
        if number == 2:
            for side in sides:
                side.optimizer.lr = 0.05
        losses = [step(LABELS) for step in (compiled, sides[1].step, sides[2].step)]
        assert_close(losses[0].numpy(), losses[1].numpy(), 1e-5)
        assert_close(losses[0].numpy(), losses[2].numpy(), 1e-5)
        for ours, on_gpu, on_cpu in zip(*[side.numbers() for side in sides], strict=True):
            assert_close(ours, on_gpu, 1e-5, least=0.1)
            assert_close(ours, on_cpu, 1e-5, least=0.1)
    assert count_of(compiled) == 1


def test_a_label_out_of_range_changes_nothing(monkeypatch):
    monkeypatch.setattr(backend.checks, "at_once", False)
    side = SIDES["SGD"](CUDA)
    compiled = ndl.jit(side.step)
    for _ in range(2):
        compiled(LABELS)
    before = side.numbers()
    loss = compiled(np.array([0, 7, 1, 0]))
    compiled(LABELS)  # does nothing
    with pytest.raises(IndexError, match="7"):
        loss.numpy()
    for a, b in zip(side.numbers(), before, strict=True):
        np.testing.assert_array_equal(a, b)
    compiled(LABELS)
    assert any((a != b).any() for a, b in zip(side.numbers(), before, strict=True))


def test_an_index_out_of_range_reads_nothing():
    module = nn.Embedding(3, 2, device=CUDA)
    compiled = ndl.jit(lambda index: module(index) * 2)

    def index(*numbers):
        return Tensor(np.array([numbers]), device=CUDA, dtype="int64", requires_grad=False)

    assert_same(compiled(index(2, 0)), module(index(2, 0)) * 2)
    with pytest.raises(IndexError, match="5"):
        compiled(index(2, 5)).numpy()


def test_a_function_without_arguments():
    compiled = ndl.jit(lambda: (ndl.ones(3, device=CUDA) * 2, ndl.init.rand(2, 2, device=CUDA) * 0))
    assert_same(compiled(), (ndl.ones(3, device=CUDA) * 2, ndl.zeros(2, 2, device=CUDA)))


def test_a_snapshot_keeps_its_numbers():
    side = SIDES["Adam"](CUDA)
    compiled = ndl.jit(side.step)
    for _ in range(2):
        compiled(LABELS)
    snapshot = side.model.state_dict()
    then = {name: x.numpy() for name, x in snapshot.items()}
    compiled(LABELS)
    assert any((x.numpy() != then[name]).any() for name, x in side.model.state_dict().items())
    for name, x in snapshot.items():
        np.testing.assert_array_equal(x.numpy(), then[name])
    side.model.load_state_dict(snapshot)
    for name, x in side.model.state_dict().items():
        np.testing.assert_array_equal(x.numpy(), then[name])


def test_steps_take_no_new_memory(monkeypatch):
    side = SIDES["SGD"](CUDA)
    compiled = ndl.jit(side.step)
    for _ in range(3):
        compiled(LABELS)
    sizes, allocate = [], backend.gpu.allocate
    monkeypatch.setattr(
        backend.gpu, "allocate", lambda size, dtype: sizes.append(size) or allocate(size, dtype)
    )
    addresses = [p.realize_cached_data()._handle.ptr() for p in side.model.parameters()]
    compiled(LABELS)
    assert sizes == [1]  # the loss
    assert addresses == [p.realize_cached_data()._handle.ptr() for p in side.model.parameters()]


@pytest.mark.parametrize("dropout", [0, 0.5])
def test_scan_is_a_loop_over_the_steps(dropout):
    ours, theirs = (Side(CUDA, optim.SGD, lr=0.1, momentum=0.9, dropout=dropout) for _ in range(2))
    labels = np.array([[0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]])
    losses = ndl.scan(ours.step, labels)
    expected = [theirs.step(y).numpy() for y in labels]
    assert losses.device == CUDA
    assert_close(losses.numpy(), np.stack(expected), 1e-5)
    for a, b in zip(ours.numbers(), theirs.numbers(), strict=True):
        assert_close(a, b, 1e-5, least=0.1)


def test_nobody_waits_for_a_scan():
    step, x = ndl.jit(lambda x: x * 2, background=True), tensor(3, 2)
    assert_same(ndl.scan(step, x), x * 2)
    step.wait()


def test_scan_calls_what_cannot_be_lowered():
    x = tensor(4, 3, 5)
    found = ndl.scan(lambda x: ndl.argmax(x * 2, axes=1) + 1, x)
    assert_same(found, ndl.argmax(x, axes=2) + 1)


def test_two_devices_are_refused():
    compiled = ndl.jit(lambda a, b: a + b.to(CUDA))
    with pytest.raises(ndl.compiler.CannotTrace, match=r"cpu.*cuda.*\.to\("):
        compiled(tensor(2), tensor(2, device=ndl.cpu_numpy()))
