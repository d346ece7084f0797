"""What the CUDA device does of its own; `test_cuda.py` runs it on the simulator, and on a card."""

from __future__ import annotations

import gc
import math
import threading

import numpy as np
import pytest

import needle as ndl
from needle import backend_ndarray as nd
from needle.autograd import Tensor
from needle.backend_ndarray import NDArray
from needle.backend_ndarray import ndarray_backend_numba_cuda as backend

CUDA = ndl.cuda()


def on_card(x, dtype="float32") -> NDArray:
    return nd.array(x, dtype, CUDA)


def same(array: NDArray, expected, **tolerance) -> None:
    assert (array.device, array.shape) == (CUDA, np.shape(expected))
    np.testing.assert_allclose(array.numpy(), expected, **(tolerance or {"rtol": 0}))


def test_it_is_enabled():
    assert CUDA.enabled()
    assert CUDA.why() == ""
    assert CUDA.__device_name__ == "cuda"


# Lengths at, before and behind every length of a tile, a block and a thread's share

around = sorted(
    {
        n
        for size in (1, 2, backend.TILE, backend.THREADS, backend.THREADS * backend.SHARE)
        for n in (size - 1, size, size + 1)
        if n
    }
)


@pytest.mark.parametrize("n", [*around, 3 * backend.THREADS * backend.SHARE + 5])
def test_folds_of_every_length(n):
    x = np.random.default_rng(n).integers(-8, 8, (3, n)).astype("float32")
    a = on_card(x)
    same(a.sum(1), x.sum(1))
    same(a.permute((1, 0)).sum(0), x.sum(1))
    same(a.sum(0), x.sum(0))
    same(a.sum(), x.sum())
    same(a.max(1), x.max(1))
    same(a[:, ::-1].sum(1), x.sum(1))
    same(a[:, ::2].max(), x[:, ::2].max())


def test_a_long_fold_keeps_several_blocks_busy(monkeypatch):
    grids = []
    launch = backend.launch

    def noting(kernel, blocks, threads, *arguments):
        grids.append(blocks)
        launch(kernel, blocks, threads, *arguments)

    x = np.random.default_rng(0).integers(-8, 8, 5 * backend.THREADS * backend.SHARE + 1).astype("float32")
    a = on_card(x)
    monkeypatch.setattr(backend, "launch", noting)
    same(a.sum(), x.sum())
    assert grids == [6, 1] if not backend.SIMULATED else grids[0] == 6 and grids[-1] == 1


@pytest.mark.slow
def test_a_long_float32_sum_is_accurate():
    n = 4_000 if backend.SIMULATED else 10_000_000
    x = np.random.default_rng(0).random(n).astype("float32")
    same(on_card(x).sum(), x.sum(dtype="float64"), rtol=2e-7)
    same(on_card(x).reshape((n // 4, 4)).sum(0), x.reshape(-1, 4).sum(0, dtype="float64"), rtol=2e-7)


@pytest.mark.slow
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (3,), (0, 2), (1, 3), (0, 2, 3), (0, 1, 2, 3)])
def test_folds_of_views(axes):
    x = np.random.default_rng(0).integers(-9, 9, (3, 4, 5, 6)).astype("float32")
    for order in ((0, 1, 2, 3), (3, 1, 0, 2), (2, 3, 1, 0)):
        view, expected = on_card(x).permute(order)[::-1, 1:], x.transpose(order)[::-1, 1:]
        same(view.sum(axes), expected.sum(axes))
        same(view.max(axes), expected.max(axes))


def test_maxima_of_rows_with_nan():
    x = np.array([[1, np.nan, 3], [np.nan, 1, 2], [-np.inf, -1, -2], [4, 5, np.nan]], "float32")
    for n in (1, 2, 7):
        rows = np.tile(x, (1, n))
        same(on_card(rows).max(1), rows.max(1))


# Matrix products

sides = [1, backend.TILE - 1, backend.TILE + 1, 2 * backend.TILE + 1]


def some_slow(sizes, often):
    """The sizes; those that are not among the ones tested often are slow."""
    return [size if size in often else pytest.param(size, marks=pytest.mark.slow) for size in sizes]


@pytest.mark.parametrize("m", some_slow(sides, often=(sides[0], sides[3])))
@pytest.mark.parametrize("n", [1, backend.DEPTH, 2 * backend.DEPTH + 1])
@pytest.mark.parametrize("p", some_slow(sides, often=(sides[1], sides[2])))
def test_products_of_ragged_matrices(m, n, p):
    rng = np.random.default_rng(0)
    x, y = rng.integers(-9, 9, (m, n)).astype("float32"), rng.integers(-9, 9, (n, p)).astype("float32")
    same(on_card(x) @ on_card(y), x @ y)
    same(on_card(x.T).permute((1, 0)) @ on_card(y), x @ y)
    same(on_card(x) @ on_card(y.T).permute((1, 0)), x @ y)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_a_product_in_large_tiles(dtype):
    side = math.isqrt(backend.ENOUGH) * backend.TILE * backend.EACH[0] + 3
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 9, shape).astype(dtype) for shape in ((side, 5), (5, side + 1)))
    product = on_card(x, dtype) @ on_card(y, dtype)
    assert product.dtype == dtype
    same(product, x @ y)


def test_products_of_batches_and_views():
    rng = np.random.default_rng(0)
    x, y = (
        rng.integers(-9, 9, (3, 1, 4, 5)).astype("float32"),
        rng.integers(-9, 9, (2, 5, 3)).astype("float32"),
    )
    a, b = on_card(x), on_card(y)
    same(a @ b, x @ y)
    same(
        a.permute((1, 0, 2, 3))[:, ::-1, ::2] @ b[1:, ::-1, 1:],
        x.transpose(1, 0, 2, 3)[:, ::-1, ::2] @ y[1:, ::-1, 1:],
    )
    same(a.broadcast_to((3, 2, 4, 5)) @ b[:1].broadcast_to((2, 5, 3)), x.repeat(2, 1) @ y[:1])
    true = np.array([[1, 0], [1, 1]], "bool")
    same(on_card(true, "bool") @ on_card(true, "bool"), true @ true)


@pytest.mark.parametrize("counts", [(1, 1, 1), (2, 3, 1), (2, 1, 3)])
def test_a_product_of_tiles(counts):
    t = backend.__tile_size__
    m, n, p = (count * t for count in counts)
    rng = np.random.default_rng(0)
    x, y = rng.integers(-9, 9, (m, n)).astype("float32"), rng.integers(-9, 9, (n, p)).astype("float32")

    def tiles(matrix):
        rows, columns = matrix.shape
        return on_card(matrix.reshape(rows // t, t, columns // t, t).swapaxes(1, 2))

    out = nd.empty((m // t, p // t, t, t), "float32", CUDA)
    CUDA.matmul_tiled(tiles(x)._handle, tiles(y)._handle, out._handle, m, n, p)
    np.testing.assert_array_equal(out.numpy().swapaxes(1, 2).reshape(m, p), x @ y)


# Copies


heights = [1, backend.COPY_TILE, 2 * backend.COPY_TILE + 1]
widths = [backend.COPY_TILE - 1, backend.COPY_TILE, backend.COPY_TILE + 1]


@pytest.mark.parametrize("height", some_slow(heights, often=(heights[0], heights[2])))
@pytest.mark.parametrize("width", some_slow(widths, often=(widths[0], widths[2])))
def test_transposed_copies(height, width):
    x = np.arange(3 * height * width, dtype="float32").reshape(3, height, width)
    a = on_card(x)
    for order in ((0, 2, 1), (1, 2, 0), (2, 1, 0), (2, 0, 1)):
        view = a.permute(order)
        same(view.compact(), x.transpose(order))
        same(view.astype("float64"), x.transpose(order))
        target = nd.full((3, height, width), -1, device=CUDA)
        target.permute(order)[...] = np.ascontiguousarray(x.transpose(order))
        same(target, x)


def test_setitem_backwards_and_in_steps():
    x = np.arange(35, dtype="float32").reshape(5, 7)
    a = on_card(x)
    for index in (np.s_[::-1, ::2], np.s_[4:0:-2, 5::-3], np.s_[1, ...], np.s_[:, -2:]):
        value = np.arange(x[index].size, dtype="float32").reshape(x[index].shape) + 100
        a[index] = x[index] = value
        same(a, x)
        a[index] = x[index] = -3
        same(a, x)


@pytest.mark.parametrize("source", nd.ndarray.DTYPES, ids=str)
@pytest.mark.parametrize("target", nd.ndarray.DTYPES, ids=str)
def test_conversions(source, target):
    x = np.array([[0, 1, 2], [3, 100, 200]]).astype(source)
    for view, expected in [
        (on_card(x, source), x),
        (on_card(x, source).permute((1, 0)), x.T),
        (on_card(x, source)[:, ::-1], x[:, ::-1]),
    ]:
        converted = view.astype(target)
        assert converted.dtype == target
        same(converted, expected.astype(target))
    if source == "float32":
        special = on_card([np.nan, np.inf, -np.inf, 0.5]).astype(target)
        if target.kind == "f":
            same(special, [np.nan, np.inf, -np.inf, 0.5])
        elif target.kind == "b":
            same(special, [True, True, True, True])


@pytest.mark.parametrize("number", [2, -1.5, True, math.inf, 1e300])
def test_numbers_take_the_data_type_of_the_array(number):
    x = np.array([0.5, 3.0], "float32")
    with np.errstate(over="ignore"):
        for ours, numpys in [(on_card(x) * number, x * number), (number - on_card(x), number - x)]:
            assert ours.dtype == "float32"
            same(ours, numpys)


# Devices


def test_operands_on_two_devices():
    a, b = on_card([[1.0]]), nd.array([[1.0]], device=ndl.cpu_numpy())
    for use in (lambda: a + b, lambda: b @ a, lambda: a.__setitem__(0, b), lambda: Tensor(a) * Tensor(b)):
        with pytest.raises(ValueError, match=r"(cuda\(\).*cpu_numpy\(\)|cpu_numpy\(\).*cuda\(\)).*\.to\("):
            use()
    same(a + b.to(CUDA), [[2.0]])


@pytest.mark.parametrize("way", [(CUDA, ndl.cpu_numpy()), (ndl.cpu_numpy(), CUDA)], ids=str)
def test_gradients_cross_devices(way):
    here, there = way
    x = Tensor([1.0, 2.0, 3.0], device=here)
    y = (x * 2).to(there)
    loss = (y * y).sum()
    loss.backward()
    assert (y.device, loss.device, x.grad.device) == (there, there, here)
    np.testing.assert_allclose(x.grad.numpy(), [8.0, 16.0, 24.0])


# Memory


@pytest.fixture
def allocated(monkeypatch):
    """A list to which every request for memory of the card adds its size in bytes."""
    backend.unused.clear()
    requests = []
    device_array = backend.device_array

    def counting(size, dtype):
        requests.append(size * np.dtype(dtype).itemsize)
        return device_array(size, dtype)

    monkeypatch.setattr(backend, "device_array", counting)
    return requests


@pytest.mark.slow
def test_training_takes_no_new_memory(allocated, no_gc):
    rng = np.random.default_rng(0)
    model = ndl.nn.Sequential(
        ndl.nn.Linear(4, 6, device=CUDA, rng=rng), ndl.nn.ReLU(), ndl.nn.Linear(6, 3, device=CUDA, rng=rng)
    )
    optimizer = ndl.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    X, y = Tensor(rng.normal(size=(8, 4)), device=CUDA, requires_grad=False), rng.integers(0, 3, size=8)
    after_each_step = []
    for _ in range(6):
        loss = ndl.nn.SoftmaxLoss()(model(X), y)
        loss.backward(create_graph=False)
        optimizer.step()
        after_each_step.append(sum(allocated))
    assert after_each_step[0] > 0
    assert set(after_each_step[2:]) == {after_each_step[2]}


def test_what_is_kept_for_later_is_bounded(allocated, monkeypatch):
    monkeypatch.setattr(backend.unused, "limit", 1000)
    for size in range(1, 100):
        nd.empty((size,), device=CUDA)
        assert backend.unused.bytes <= 1000
    assert backend.unused.bytes == sum(
        buffer.nbytes for buffers in backend.unused.buffers.values() for buffer in buffers
    )
    address = nd.empty((7,), device=CUDA)._handle.ptr()
    assert nd.empty((7,), device=CUDA)._handle.ptr() == address


def test_out_of_memory_says_what_was_asked_for_and_the_way_out(monkeypatch):
    def full(size, dtype):
        raise RuntimeError("Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")

    monkeypatch.setattr(backend, "device_array", full)
    with pytest.raises(
        MemoryError,
        match=r"no memory for 4\.0 GiB, 1073741824 numbers of type float32; .*free.*needle\.cpu\(\)",
    ):
        nd.empty((1 << 15, 1 << 15), device=CUDA)


def test_unused_memory_is_given_back_before_memory_is_short(monkeypatch):
    array = nd.empty((11,), device=CUDA)
    del array
    device_array = backend.device_array

    def nearly_full(size, dtype):
        if backend.unused.bytes:
            raise RuntimeError("Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")
        return device_array(size, dtype)

    assert backend.unused.bytes
    monkeypatch.setattr(backend, "device_array", nearly_full)
    assert nd.full((13,), 2, device=CUDA).numpy().sum() == 26


def test_another_error_of_the_driver_is_passed_on(monkeypatch):
    def broken(size, dtype):
        raise RuntimeError("Call to cuMemAlloc results in CUDA_ERROR_ILLEGAL_ADDRESS")

    monkeypatch.setattr(backend, "device_array", broken)
    with pytest.raises(RuntimeError, match="ILLEGAL_ADDRESS"):
        nd.empty((12345,), device=CUDA)
    gc.collect()  # the array that was never made is let go without a word


def test_threads_compute_on_one_card():
    results = []

    def work(seed):
        x = np.random.default_rng(seed).random((3, 4)).astype("float32")
        a = on_card(x)
        for _ in range(5):
            found = ((a @ a.permute((1, 0))).exp() / 2).sum(0)
        np.testing.assert_allclose(found.numpy(), (np.exp(x @ x.T) / 2).sum(0), rtol=1e-5)
        results.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [0, 1, 2, 3]
