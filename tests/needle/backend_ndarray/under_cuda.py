"""What the CUDA device does of its own; `test_cuda.py` runs it on the simulator, a stand-in, and a GPU."""

from __future__ import annotations

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


def on_gpu(x, dtype="float32") -> NDArray:
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
        for size in (1, 2, backend.TILE, backend.THREADS, backend.PART, 4 * backend.PART)
        for n in (size - 1, size, size + 1)
        if n
    }
)


@pytest.mark.parametrize("n", [*around, 12 * backend.PART + 5])
def test_folds_of_every_length(n):
    x = np.random.default_rng(n).integers(-8, 8, (3, n)).astype("float32")
    a = on_gpu(x)
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

    x = np.random.default_rng(0).integers(-8, 8, 60 * backend.PART + 1).astype("float32")
    a, rows = on_gpu(x), on_gpu(x[:-1]).reshape((30 * backend.PART, 2))
    monkeypatch.setattr(backend, "launch", noting)
    for fold, expected in ((a.sum, x.sum()), (lambda: rows.sum(0), x[:-1].reshape(-1, 2).sum(0))):
        same(fold(), expected)
        (_, parts), *last = [grid for grid in grids if type(grid) is tuple]
        assert parts > 1
        assert last[0][1] == 1
        grids.clear()


@pytest.mark.slow
def test_a_long_float32_sum_is_accurate():
    n = 4_000 if backend.SIMULATED else 10_000_000
    x = np.random.default_rng(0).random(n).astype("float32")
    same(on_gpu(x).sum(), x.sum(dtype="float64"), rtol=2e-7)
    same(on_gpu(x).reshape((n // 4, 4)).sum(0), x.reshape(-1, 4).sum(0, dtype="float64"), rtol=2e-7)


@pytest.mark.slow
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (3,), (0, 2), (1, 3), (0, 2, 3), (0, 1, 2, 3)])
def test_folds_of_views(axes):
    x = np.random.default_rng(0).integers(-9, 9, (3, 4, 5, 6)).astype("float32")
    for order in ((0, 1, 2, 3), (3, 1, 0, 2), (2, 3, 1, 0)):
        view, expected = on_gpu(x).permute(order)[::-1, 1:], x.transpose(order)[::-1, 1:]
        same(view.sum(axes), expected.sum(axes))
        same(view.max(axes), expected.max(axes))


def test_maxima_of_rows_with_nan():
    x = np.array([[1, np.nan, 3], [np.nan, 1, 2], [-np.inf, -1, -2], [4, 5, np.nan]], "float32")
    for n in (1, 2, 7):
        rows = np.tile(x, (1, n))
        same(on_gpu(rows).max(1), rows.max(1))


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
    same(on_gpu(x) @ on_gpu(y), x @ y)
    same(on_gpu(x.T).permute((1, 0)) @ on_gpu(y), x @ y)
    same(on_gpu(x) @ on_gpu(y.T).permute((1, 0)), x @ y)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
@pytest.mark.parametrize("processors", [1, 100])
def test_a_product_in_tiles_of_each_size(dtype, processors, monkeypatch):
    monkeypatch.setattr(backend, "blas", None)
    monkeypatch.setattr(backend.gpu.gpu(), "processors", processors)
    side = backend.TILE * backend.SHARES[0][0] + 3
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 9, shape).astype(dtype) for shape in ((side, 5), (5, side + 1)))
    product = on_gpu(x, dtype) @ on_gpu(y, dtype)
    assert product.dtype == dtype
    same(product, x @ y)


def test_products_of_batches_and_views():
    rng = np.random.default_rng(0)
    x, y = (
        rng.integers(-9, 9, (3, 1, 4, 5)).astype("float32"),
        rng.integers(-9, 9, (2, 5, 3)).astype("float32"),
    )
    a, b = on_gpu(x), on_gpu(y)
    same(a @ b, x @ y)
    same(
        a.permute((1, 0, 2, 3))[:, ::-1, ::2] @ b[1:, ::-1, 1:],
        x.transpose(1, 0, 2, 3)[:, ::-1, ::2] @ y[1:, ::-1, 1:],
    )
    same(a.broadcast_to((3, 2, 4, 5)) @ b[:1].broadcast_to((2, 5, 3)), x.repeat(2, 1) @ y[:1])
    true = np.array([[1, 0], [1, 1]], "bool")
    same(on_gpu(true, "bool") @ on_gpu(true, "bool"), true @ true)


@pytest.mark.parametrize("counts", [(1, 1, 1), (2, 3, 1), (2, 1, 3)])
def test_a_product_of_tiles(counts):
    t = backend.__tile_size__
    m, n, p = (count * t for count in counts)
    rng = np.random.default_rng(0)
    x, y = rng.integers(-9, 9, (m, n)).astype("float32"), rng.integers(-9, 9, (n, p)).astype("float32")

    def tiles(matrix):
        rows, columns = matrix.shape
        return on_gpu(matrix.reshape(rows // t, t, columns // t, t).swapaxes(1, 2))

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
    a = on_gpu(x)
    for order in ((0, 2, 1), (1, 2, 0), (2, 1, 0), (2, 0, 1)):
        view = a.permute(order)
        same(view.compact(), x.transpose(order))
        same(view.astype("float64"), x.transpose(order))
        target = nd.full((3, height, width), -1, device=CUDA)
        target.permute(order)[...] = np.ascontiguousarray(x.transpose(order))
        same(target, x)


def test_setitem_backwards_and_in_steps():
    x = np.arange(35, dtype="float32").reshape(5, 7)
    a = on_gpu(x)
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
        (on_gpu(x, source), x),
        (on_gpu(x, source).permute((1, 0)), x.T),
        (on_gpu(x, source)[:, ::-1], x[:, ::-1]),
    ]:
        converted = view.astype(target)
        assert converted.dtype == target
        same(converted, expected.astype(target))
    if source == "float32":
        special = on_gpu([np.nan, np.inf, -np.inf, 0.5]).astype(target)
        if target.kind == "f":
            same(special, [np.nan, np.inf, -np.inf, 0.5])
        elif target.kind == "b":
            same(special, [True, True, True, True])


@pytest.mark.parametrize("number", [2, -1.5, True, math.inf, 1e300])
def test_numbers_take_the_data_type_of_the_array(number):
    x = np.array([0.5, 3.0], "float32")
    with np.errstate(over="ignore"):
        for ours, numpys in [(on_gpu(x) * number, x * number), (number - on_gpu(x), number - x)]:
            assert ours.dtype == "float32"
            same(ours, numpys)


# Devices


def test_operands_on_two_devices():
    a, b = on_gpu([[1.0]]), nd.array([[1.0]], device=ndl.cpu_numpy())
    for use in (lambda: a + b, lambda: b @ a, lambda: a.__setitem__(0, b), lambda: Tensor(a) * Tensor(b)):
        with pytest.raises(ValueError, match=r"(cuda\(\).*cpu_numpy\(\)|cpu_numpy\(\).*cuda\(\)).*\.to\("):
            use()
    same(a + b.to(CUDA), [[2.0]])


def test_a_layer_norm_on_two_devices_is_refused():
    here, there = (ndl.Tensor([[1.0, 2.0]], device=device) for device in (CUDA, ndl.cpu_numpy()))
    for a, other in ((here, there), (there, here)):
        with pytest.raises(ValueError, match=r"layer_norm: operands are on .*\.to\("):
            ndl.layer_norm(a, other[0], other[0])


@pytest.mark.parametrize("way", [(CUDA, ndl.cpu_numpy()), (ndl.cpu_numpy(), CUDA)], ids=str)
def test_gradients_cross_devices(way):
    here, there = way
    x = Tensor([1.0, 2.0, 3.0], device=here)
    y = (x * 2).to(there)
    loss = (y * y).sum()
    loss.backward()
    assert (y.device, loss.device, x.grad.device) == (there, there, here)
    np.testing.assert_allclose(x.grad.numpy(), [8.0, 16.0, 24.0])


# Rows


@pytest.mark.parametrize(
    "n", [1, 3, backend.WARP * 2, backend.WARP * 3 + 1, backend.MOST_HELD * backend.THREADS]
)
def test_rows_of_every_length(n):
    x = np.random.default_rng(n).normal(size=(2, 3, n)).astype("float32") * 4
    powers = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    softmax = powers / powers.sum(-1, keepdims=True)
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    t = Tensor(x, device=CUDA)
    same(ndl.softmax(t), softmax, rtol=1e-5, atol=1e-7)
    same(ndl.logsoftmax(t), np.log(softmax), rtol=1e-5, atol=2e-6)
    found = ndl.standardize(t, -1, 0.1)
    for ours, expected in zip(found, ((x - mean) / np.sqrt(variance + 0.1), mean, variance), strict=True):
        same(ours, expected, rtol=1e-5, atol=2e-6)
    weight, bias = np.arange(n, dtype="float32"), np.float32(1) - np.arange(n, dtype="float32") / 2
    scaled = ndl.layer_norm(t, Tensor(weight, device=CUDA), Tensor(bias, device=CUDA), 0.1)
    same(scaled, (x - mean) / np.sqrt(variance + 0.1) * weight + bias, rtol=1e-5, atol=1e-5 * n)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_a_step_of_adam_is_that_of_its_rule(weight_decay):
    rng = np.random.default_rng(0)
    start, grads = rng.normal(size=5), rng.normal(size=(4, 5))
    found = []
    for device in (CUDA, ndl.cpu_numpy()):
        p = ndl.nn.Parameter(ndl.Tensor(start, device=device))
        optimizer = ndl.optim.Adam([p], lr=0.1, weight_decay=weight_decay)
        for grad in grads:
            p.grad = Tensor(grad, device=device)
            optimizer.step()
        found.append([p.numpy(), *[x.numpy() for x in optimizer.state[p].values()]])
    for ours, expected in zip(*found, strict=True):
        # A number near 0 is what is left of larger ones, and so is its error: of 0.1 a step, four times.
        np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-7)


# Checks


@pytest.fixture
def later(monkeypatch):
    """The host looks at checks when numbers are copied to it, as it does unless one asks for more."""
    monkeypatch.setattr(backend.checks, "at_once", False)


def test_a_wrong_index_is_told_when_numbers_come_to_the_host(later):
    table, good = Tensor(np.eye(3), device=CUDA), Tensor([2.0, -1.0], device=CUDA).detach()
    wrong = Tensor([2.0, 3.0], device=CUDA).detach()
    right, found = table[good.astype("int64")], table[wrong.astype("int64")]
    with pytest.raises(IndexError, match="2 to 3 reach beyond axis 0 of length 3"):
        right.numpy()
    assert right.numpy().tolist() == [[0, 0, 1], [0, 0, 1]]
    assert found.numpy().tolist() == [[0, 0, 1], [1, 0, 0]]  # nothing was read elsewhere


def test_many_checks_do_not_wait_forever(later):
    index = Tensor([1.0], device=CUDA).detach().astype("int64")
    table = Tensor(np.eye(3), device=CUDA)
    for _ in range(backend.checks.MOST):
        found = table[index]
    assert not backend.checks._waiting
    assert found.numpy().tolist() == [[0, 1, 0]]


def test_an_index_that_was_overwritten_is_told_as_well(later):
    index = on_gpu([5], "int64")
    found = nd.take(on_gpu([1.0, 2.0]), nd.checked_index(index, 2, lambda low, high: "beyond"), 0)
    index.fill(0)
    with pytest.raises(IndexError, match="overwritten since"):
        found.numpy()


def test_threads_compute_on_one_gpu():
    results = []

    def work(seed):
        x = np.random.default_rng(seed).random((3, 4)).astype("float32")
        a = on_gpu(x)
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
