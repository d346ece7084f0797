"""The interface of the course's third homework: arrays by shape, strides and handle; kernels by name."""

from __future__ import annotations

import numpy as np
import pytest

from needle import backend_ndarray as nd
from needle.backend_ndarray import NDArray

DEVICES = [device for device in nd.all_devices() if device.enabled()]
devices = pytest.mark.parametrize("device", DEVICES, ids=repr)


def pair(device, *shape):
    """The same random numbers, ours and NumPy's."""
    x = np.random.standard_normal(shape).astype("float32")
    return nd.array(x, device=device), x


def same(array, x, rtol=1e-5):
    assert array.shape == x.shape
    np.testing.assert_allclose(array.numpy(), x, rtol, 1e-5)


def same_memory(a, b):
    return a._handle is b._handle and a._handle.ptr() == b._handle.ptr()


def same_strides(array, x):
    """Whether both walk through memory alike; along an axis of length 1 there is no walking."""
    return [s for n, s in zip(array.shape, array.strides, strict=True) if n > 1] == [
        s // x.itemsize for n, s in zip(x.shape, x.strides, strict=True) if n > 1
    ]


# Shape, strides, offset and handle


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((), ()), ((5,), (1,)), ((4, 5), (5, 1)), ((4, 5, 6), (30, 6, 1)), ((2, 1, 3, 1), (3, 3, 1, 1))],
    ids=str,
)
def test_compact_strides(shape, strides):
    assert NDArray.compact_strides(shape) == strides
    assert nd.empty(shape).strides == strides


@devices
def test_an_array_made_over_a_handle(device):
    base, x = pair(device, 24)
    for shape, strides, offset in [
        ((24,), None, 0),
        ((4, 6), None, 0),
        ((2, 3), (12, 2), 1),
        ((3, 4, 2), (0, 1, 4), 5),
        ((5,), (-2,), 20),
        ((), (), 7),
    ]:
        array = NDArray.make(shape, strides, device, base._handle, offset)
        steps = [s * x.itemsize for s in array.strides]
        expected = np.ndarray(shape, x.dtype, x.data, offset * x.itemsize, steps)
        same(array, expected, 0)
        assert (array.offset, array.device) == (offset, device)
        assert same_memory(array, base)
    new = NDArray.make((2, 3), device=device)
    assert (new.strides, new.offset, new.dtype) == ((3, 1), 0, np.dtype("float32"))
    assert not same_memory(new, base)


VIEWS = {
    "permute": (lambda a: a.permute((2, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    "reshape": (lambda a: a.reshape((6, 20)), lambda x: x.reshape(6, 20)),
    "flat": (lambda a: a.flat, lambda x: x.reshape(-1)),
    "as_strided": (
        lambda a: a.as_strided((3, 2, 2), (20, 4, 1)),
        lambda x: np.lib.stride_tricks.as_strided(x, (3, 2, 2), (80, 16, 4)),
    ),
    "new axis, broadcast": (
        lambda a: a[:, :1].broadcast_to((4, 3, 8, 5)),
        lambda x: np.broadcast_to(x[:, :1], (4, 3, 8, 5)),
    ),
    "first": (lambda a: a[0], lambda x: x[:1]),
    "last column": (lambda a: a[:, :, -1], lambda x: x[:, :, -1:]),
    "one element": (lambda a: a[2, 3, 1], lambda x: x[2:3, 3:4, 1:2]),
    "slices": (lambda a: a[1:, ::2, 1:4], lambda x: x[1:, ::2, 1:4]),
    "steps backwards": (lambda a: a[::-1, 6:1:-2], lambda x: x[::-1, 6:1:-2]),
    "slices of slices": (lambda a: a[1:][:, 2:][:, ::3], lambda x: x[1:, 2::3]),
    "permuted slices": (lambda a: a[1:, 2:6].permute((1, 2, 0)), lambda x: x[1:, 2:6].transpose(1, 2, 0)),
    "split axis": (lambda a: a.reshape((3, 2, 4, 5))[:, 1], lambda x: x.reshape(3, 2, 4, 5)[:, 1:2]),
}
views = pytest.mark.parametrize(("ours", "numpys"), VIEWS.values(), ids=VIEWS)


@devices
@views
def test_views_share_memory_and_walk_as_numpys_do(device, ours, numpys):
    a, x = pair(device, 3, 8, 5)
    view, expected = ours(a), numpys(x)
    same(view, expected, 0)
    assert same_strides(view, expected)
    assert same_memory(view, a)
    assert view.base is a
    assert view[:1].base is a
    assert a.base is None
    assert (view + view).base is None


@devices
@views
def test_compact_copies_of_views(device, ours, numpys):
    a, x = pair(device, 3, 8, 5)
    view = ours(a)
    compact = view.compact()
    same(compact, numpys(x), 0)
    assert compact.is_compact()
    assert (compact.strides, compact.offset) == (NDArray.compact_strides(view.shape), 0)
    assert compact._handle.size == compact.size
    assert same_memory(compact, a) == view.is_compact()


WRITABLE = {name: view for name, view in VIEWS.items() if "broadcast" not in name}
writable = pytest.mark.parametrize(("ours", "numpys"), WRITABLE.values(), ids=WRITABLE)


@devices
@writable
def test_writing_arrays_and_numbers_through_views(device, ours, numpys):
    a, x = pair(device, 3, 8, 5)
    value, numbers = pair(device, *numpys(x).shape)
    before = a._handle.ptr()
    ours(a)[...] = value
    numpys(x)[...] = numbers
    same(a, x, 0)
    ours(a)[...] = 1.5
    numpys(x)[...] = 1.5
    same(a, x, 0)
    ours(a).fill(-2)
    numpys(x)[...] = -2
    same(a, x, 0)
    assert a._handle.ptr() == before


@devices
@pytest.mark.parametrize(
    ("index", "source"),
    [
        (np.s_[:2, :3], np.s_[1:, 3:6]),
        (np.s_[1:, ::2], np.s_[:2, 4:]),
        (np.s_[::2, 1], np.s_[1:, 0]),
        (np.s_[0, :, ::-1], np.s_[2, :, :]),
        (np.s_[..., 1:3], np.s_[..., 3:]),
    ],
    ids=str,
)
def test_writing_views_into_views(device, index, source):
    a, x = pair(device, 3, 8, 5)
    b, y = pair(device, 3, 8, 5)

    def kept(indices):  # an integer index keeps its axis
        return tuple(slice(i, i + 1) if isinstance(i, int) else i for i in indices)

    a[index] = b[source]
    x[kept(index)] = y[kept(source)]
    same(a, x, 0)
    same(b, y, 0)


# Kernels by name


def handles(device, n=7):
    a, b = (nd.array(np.random.uniform(0.5, 2, n), device=device) for _ in range(2))
    b[::2] = a[::2]  # so that some are equal
    return a, a.numpy(), b, b.numpy(), nd.full((n,), np.nan, device=device)


EWISE = {
    "add": np.add, "mul": np.multiply, "div": np.divide, "power": np.power, "maximum": np.maximum,
    "eq": np.equal, "ge": np.greater_equal,
}  # fmt: skip


@devices
@pytest.mark.parametrize(("name", "numpys"), EWISE.items(), ids=EWISE)
def test_kernels_of_two_operands(device, name, numpys):
    a, x, b, y, out = handles(device)
    getattr(device, f"ewise_{name}")(a._handle, b._handle, out._handle)
    same(out, numpys(x, y))
    for number in (1.5, 2, float(x[3])):
        getattr(device, f"scalar_{name}")(a._handle, number, out._handle)
        same(out, numpys(x, np.float32(number)))
    same(a, x, 0)  # operands stay what they were
    same(b, y, 0)


@devices
@pytest.mark.parametrize("name", ["log", "exp", "tanh"])
def test_kernels_of_one_operand(device, name):
    a, x, _, _, out = handles(device)
    getattr(device, f"ewise_{name}")(a._handle, out._handle)
    same(out, getattr(np, name)(x))


@devices
def test_a_kernel_may_write_where_it_reads(device):
    a, x, b, y, _ = handles(device)
    device.ewise_add(a._handle, b._handle, a._handle)
    same(a, x + y)
    device.scalar_mul(a._handle, 2.0, a._handle)
    same(a, (x + y) * 2)


@devices
def test_storage_by_name(device):
    handle = device.Array(12)
    assert handle.size == 12
    assert isinstance(handle.ptr(), int)
    assert handle.ptr() != device.Array(12).ptr()
    x = np.arange(12, dtype="float32")
    device.from_numpy(x, handle)
    np.testing.assert_array_equal(device.to_numpy(handle, (12,), (1,), 0), x)
    np.testing.assert_array_equal(device.to_numpy(handle, (2, 3), (4, -1), 3), [[3, 2, 1], [7, 6, 5]])
    out = device.Array(6)
    device.compact(handle, out, (3, 2), (1, 4), 1)
    np.testing.assert_array_equal(device.to_numpy(out, (6,), (1,), 0), [1, 5, 2, 6, 3, 7])
    device.ewise_setitem(out, handle, (2, 3), (4, 1), 5)
    x[[5, 6, 7, 9, 10, 11]] = [1, 5, 2, 6, 3, 7]
    np.testing.assert_array_equal(device.to_numpy(handle, (12,), (1,), 0), x)
    device.scalar_setitem(2, -1.0, handle, (2,), (6,), 4)
    x[[4, 10]] = -1
    np.testing.assert_array_equal(device.to_numpy(handle, (12,), (1,), 0), x)
    device.fill(handle, 2.5)
    np.testing.assert_array_equal(device.to_numpy(handle, (12,), (1,), 0), np.full(12, 2.5))


@devices
def test_names_of_a_device_module(device):
    assert isinstance(device.__device_name__, str)
    assert device.__tile_size__ > 0
    assert device.mod.ewise_add is device.ewise_add
    assert device.enabled() is True


# Reductions


@devices
@pytest.mark.parametrize(("name", "numpys"), [("sum", np.sum), ("max", np.max)])
@pytest.mark.parametrize("shape", [(6, 4), (4, 1, 5), (1, 1), (3, 9, 2)], ids=str)
def test_reductions(device, name, numpys, shape):
    a, x = pair(device, *shape)
    for axis in (*range(len(shape)), None):
        for keepdims in (False, True):
            same(getattr(a, name)(axis=axis, keepdims=keepdims), numpys(x, axis=axis, keepdims=keepdims))
    backwards = tuple(reversed(range(len(shape))))
    same(getattr(a.permute(backwards), name)(axis=0), numpys(x, axis=-1).T)
    rows, k = x.size // shape[-1], shape[-1]
    out = nd.full((rows,), np.nan, device=device)
    getattr(device, f"reduce_{name}")(a._handle, out._handle, k)
    same(out, numpys(x.reshape(rows, k), axis=1))


# Matrix products


@devices
@pytest.mark.parametrize(
    ("m", "n", "p"),
    [
        *[(1, 1, 1), (8, 8, 8), (7, 8, 9), (9, 8, 7), (7, 6, 5), (1, 9, 1), (9, 1, 9)],
        *[(16, 8, 24), (17, 16, 19), (33, 5, 40)],
    ],
)
def test_matrix_products(device, m, n, p):
    (a, x), (b, y) = pair(device, m, n), pair(device, n, p)
    same(a @ b, x @ y)
    same(b.permute((1, 0)) @ a.permute((1, 0)), y.T @ x.T)
    out = nd.full((m, p), np.nan, device=device)
    device.matmul(a._handle, b._handle, out._handle, m, n, p)
    same(out, x @ y)


def tiled(array, tile):
    rows, columns = array.shape
    parts = array.reshape((rows // tile, tile, columns // tile, tile))
    return parts.permute((0, 2, 1, 3)).compact()


@devices
@pytest.mark.parametrize("counts", [(1, 1, 1), (2, 1, 3), (1, 3, 2), (3, 2, 1)], ids=str)
def test_matrix_products_tile_by_tile(device, counts):
    tile = device.__tile_size__
    m, n, p = (count * tile for count in counts)
    (a, x), (b, y) = pair(device, m, n), pair(device, n, p)
    out = nd.full((m // tile, p // tile, tile, tile), np.nan, device=device)
    device.matmul_tiled(tiled(a, tile)._handle, tiled(b, tile)._handle, out._handle, m, n, p)
    same(out.permute((0, 2, 1, 3)).reshape((m, p)), x @ y)
