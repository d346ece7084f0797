"""What only a GPU can show: large sizes, and memory over thousands of steps. `make test-cuda` runs it."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

import needle as ndl
from needle import backend_ndarray as nd
from needle import nn, optim
from needle.backend_ndarray import launching
from needle.backend_ndarray import ndarray_backend_numba_cuda as backend

CUDA = ndl.cuda()
LARGE = 1 << 26


def drawn(*shape):
    """Small whole numbers, whose float32 sums are exact, for NumPy and on the GPU."""
    x = np.random.default_rng(0).integers(-3, 4, shape).astype("float32")
    return x, nd.array(x, device=CUDA)


def equal(array, expected):
    np.testing.assert_array_equal(array.numpy(), expected)


def test_elementwise_on_many_numbers():
    x, a = drawn(LARGE + 3)
    equal(a + a, x + x)
    equal(a * 2 - a, x)
    equal(a[5:], x[5:])
    equal(a[::-2], x[::-2])
    np.testing.assert_allclose(a.exp().numpy(), np.exp(x), rtol=1e-6)


def test_folds_of_many_numbers():
    x, a = drawn(8192, 8192)
    equal(a.sum(), x.sum(dtype="int64"))
    equal(a.sum(1), x.sum(1))
    equal(a.sum(0), x.sum(0))
    equal(a.max(0), x.max(0))
    equal(a.permute((1, 0)).sum(1), x.sum(0))


def test_a_long_sum_of_float32_is_accurate():
    x = np.random.default_rng(0).random(LARGE, "float32")
    total = nd.array(x, device=CUDA).sum().numpy()
    np.testing.assert_allclose(total, x.sum(dtype="float64"), rtol=2e-7)


def test_broadcast_and_transposed_matrices():
    x, a = drawn(8192, 4096)
    y, b = drawn(1, 4096)
    equal(a + b, x + y)
    equal(a + a[:, :1], x + x[:, :1])
    equal(a.permute((1, 0)).compact(), x.T)
    a[:, 1:] = 7
    x[:, 1:] = 7
    equal(a, x)


@pytest.mark.parametrize("shape", [(1 << 20, 3), (3, 1 << 20), (70_000, 33), (1 << 17, 2, 5)])
def test_grids_beyond_the_second_axis_of_65535_blocks(shape):
    x, a = drawn(*shape)
    equal(a + a[:1], x + x[:1])
    equal(a.permute(tuple(range(len(shape)))[::-1]).compact(), x.T)
    equal(a.sum(-1), x.sum(-1))
    equal(a.sum(0), x.sum(0))
    t = ndl.Tensor(a)
    np.testing.assert_allclose(ndl.softmax(t).numpy().sum(-1), np.ones(shape[:-1]), rtol=1e-5)


@pytest.mark.parametrize("kernels", ["cuBLAS", "ours"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_products(kernels, dtype, monkeypatch):
    if kernels == "ours":
        monkeypatch.setattr(backend, "blas", None)
    elif CUDA.why_not_cublas():
        pytest.skip(CUDA.why_not_cublas())
    side = 4096 if dtype == "float32" else 1024
    x, y = (np.random.default_rng(i).integers(-3, 4, (side, side)).astype(dtype) for i in (0, 1))
    a, b = (nd.array(z, dtype, CUDA) for z in (x, y))
    rows = slice(0, side, 97)
    equal((a @ b)[rows], (x[rows] @ y))
    equal((a.permute((1, 0)) @ b)[rows], x.T[rows] @ y)
    equal((a @ b.permute((1, 0)))[rows], x[rows] @ y.T)
    stack = a.reshape((side // 64, 64, side))
    equal((stack @ b)[3], (x.reshape(side // 64, 64, side)[3] @ y)[None])
    equal(a[: side - 3, 1:] @ b[: side - 1, 5:], x[: side - 3, 1:] @ y[: side - 1, 5:])


def test_memory_stays_flat_over_2000_steps_whose_tensors_stand_in_circles():
    rng = np.random.default_rng(0)
    model = nn.Sequential(
        nn.Linear(64, 256, device=CUDA, rng=rng), nn.ReLU(), nn.Linear(256, 10, device=CUDA, rng=rng)
    )
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    x = ndl.Tensor(rng.normal(size=(512, 64)), device=CUDA, requires_grad=False)
    y = ndl.Tensor(rng.integers(0, 10, 512), device=CUDA, requires_grad=False)
    kind = launching.driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
    used = []  # bytes of this process
    for step in range(2000):
        loss = nn.SoftmaxLoss()(model(x), y)
        loss.backward()
        loss.itself = loss  # only the garbage collector finds that nobody uses the graph any more
        optimizer.step()
        if step in (1000, 1999):
            del loss
            launching.release()
            used.append(
                int(launching.call(launching.driver.cuMemPoolGetAttribute, launching.gpu().pool, kind))
            )
    assert used[0] == used[1]


def test_steps_copy_nothing_to_the_host(monkeypatch):
    def never(*_):
        raise AssertionError("a step waits for the GPU")

    rng = np.random.default_rng(0)
    model = nn.Sequential(
        nn.Linear(8, 8, device=CUDA, rng=rng), nn.LayerNorm1d(8, device=CUDA), nn.Dropout(0.1)
    )
    optimizer = optim.Adam(model.parameters())
    x = ndl.Tensor(rng.normal(size=(16, 8)), device=CUDA)
    y = ndl.Tensor(rng.integers(0, 8, 16), device=CUDA, requires_grad=False)
    monkeypatch.setattr(backend.checks, "at_once", False)
    monkeypatch.setattr(launching, "download", never)
    monkeypatch.setattr(launching, "synchronize", never)
    for _ in range(3):
        nn.SoftmaxLoss()(model(x), y).backward(create_graph=False)
        optimizer.step()


def test_a_second_process_compiles_nothing():
    code = (
        "import needle as ndl, sys; x = ndl.Tensor([[1., 2.]], device=ndl.cuda()); "
        "y = ndl.softmax(x + x.exp()).sum(); y.backward(); print(y.numpy(), 'numba' in sys.modules)"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    subprocess.run(command, check=True, capture_output=True)
    start = time.perf_counter()
    second = subprocess.run(command, check=True, capture_output=True, text=True)
    print(f"a second process: {time.perf_counter() - start:.2f} s")
    assert second.stdout == "1.0 False\n"
    assert second.stderr == ""
