"""Devices: names, equality, what they make, and what a device says that is not enabled."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

from needle import backend_ndarray as nd
from needle.backend_ndarray import ndarray_backend_numpy
from needle.backend_ndarray.device import common_device
from needle.backend_ndarray.scalar_functions import SCALAR_FUNCTIONS

ENABLED = [device for device in nd.all_devices() if device.enabled()]
devices = pytest.mark.parametrize("device", ENABLED, ids=repr)


def test_names():
    assert [repr(device) for device in nd.all_devices()] == ["cpu()", "cuda()", "cpu_numpy()"]
    assert nd.default_device() == nd.cpu()
    assert nd.array([1.0]).device == nd.cpu()


def test_devices_are_equal_by_name_and_hashable():
    assert nd.cpu() == nd.cpu()
    assert nd.cpu() != nd.cpu_numpy()
    assert nd.cpu() != "cpu()"
    assert {nd.cpu(): 1, nd.cpu_numpy(): 2}[nd.BackendDevice("cpu", None)] == 1


@devices
def test_devices_and_arrays_survive_pickle_and_deepcopy(device):
    array = nd.array([[1.0, 2.0], [3.0, 4.0]], device=device)[:, 1:]
    for twin in (pickle.loads(pickle.dumps(array)), copy.deepcopy(array)):
        assert twin.device == device
        np.testing.assert_array_equal((twin + array).numpy(), [[4.0], [8.0]])
        twin.fill(0)
        np.testing.assert_array_equal(array.numpy(), [[2.0], [4.0]])


def test_operands_have_one_device_in_common():
    here, there = nd.cpu().ones(1), nd.cpu_numpy().ones(1)
    assert common_device("add", [here, here, here]) is nd.cpu()
    assert common_device("add", [there]) is nd.cpu_numpy()
    with pytest.raises(ValueError, match=r"add: .* cpu\(\) and cpu_numpy\(\); .*\.to\(cpu\(\)\)"):
        common_device("add", [here, here, there])


def test_a_device_of_ones_own():
    device = nd.BackendDevice("mine", ndarray_backend_numpy)
    assert device.enabled()
    assert repr(device.ones(2) + 1) == "NDArray([2. 2.], device=mine())"


@pytest.mark.parametrize(
    "use",
    [
        lambda device: device.zeros(2),
        lambda device: device.rand(2),
        lambda device: nd.array([1.0], device=device),
        lambda device: nd.array([1.0]).to(device),
        lambda device: nd.NDArray.make((2,), device=device),
        lambda device: device.ewise_add,
    ],
)
def test_a_disabled_device_says_why_and_the_way_out(use):
    device = nd.BackendDevice("abacus", None, "The beads are lost.")
    assert not device.enabled()
    assert device.why() == "The beads are lost."
    assert not hasattr(device, "ewise_add")
    with pytest.raises(nd.DeviceUnavailable, match=r"abacus\(\).*The beads are lost\. Use needle\.cpu\(\)"):
        use(device)


def test_cuda_is_enabled_or_says_why_not():
    assert nd.cuda().enabled() == (nd.cuda().why() == "")
    assert nd.cuda().enabled() or nd.cuda().why().endswith(".")


@devices
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
def test_new_arrays(device, dtype):
    for array, expected in [
        (device.zeros(2, 3, dtype=dtype), np.zeros((2, 3))),
        (device.ones(2, 3, dtype=dtype), np.ones((2, 3))),
        (device.full((2, 1), 1, dtype), np.ones((2, 1))),
        (device.one_hot(3, [[2, 0]], dtype), np.eye(3)[[[2, 0]]]),
        (device.ones(dtype=dtype), np.ones(())),
        (device.zeros(0, 3, dtype=dtype), np.zeros((0, 3))),
    ]:
        assert isinstance(array, nd.NDArray)
        assert (array.device, array.dtype, array.shape) == (device, dtype, expected.shape)
        np.testing.assert_array_equal(array.numpy(), expected.astype(dtype))
    empty = device.empty((4, 2), dtype)
    assert (empty.shape, empty.dtype, empty.device) == ((4, 2), dtype, device)


@devices
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_random_numbers_are_numpys(device, dtype):
    for name in ("rand", "randn"):
        np.random.seed(3)
        expected = getattr(np.random, name)(4, 5).astype(dtype)
        np.random.seed(3)
        np.testing.assert_array_equal(getattr(device, name)(4, 5, dtype=dtype).numpy(), expected)
        state = np.random.get_state()[1].copy()
        own = [getattr(device, name)(7, dtype=dtype, rng=np.random.default_rng(5)).numpy() for _ in range(2)]
        np.testing.assert_array_equal(*own)
        np.testing.assert_array_equal(np.random.get_state()[1], state)  # untouched
    assert device.rand(dtype=dtype).shape == ()


@devices
def test_one_hot_takes_arrays_and_refuses_unknown_classes(device):
    expected = [[0, 1], [1, 0]]
    for classes in ([1, 0], np.array([1.0, 0.0]), nd.array([1, 0], device=device)):
        np.testing.assert_array_equal(device.one_hot(2, classes).numpy(), expected)
    for classes in ([0, 2], [-1]):
        with pytest.raises(IndexError, match=r"one_hot: classes must lie in 0\.\.1"):
            device.one_hot(2, classes)


@pytest.mark.parametrize(
    "device",
    [
        pytest.param(d, marks=pytest.mark.slow) if d == nd.cpu() else d for d in ENABLED
    ],  # it compiles for long
    ids=repr,
)
def test_the_module_names_of_a_backend(device):
    """The course's names for kernels: each is the row's function on flat storage."""
    assert isinstance(device.__device_name__, str)
    a, b = np.array([0.5, 1.0, 2.0], "float32"), np.array([2.0, 1.0, 0.5], "float32")
    x, y = nd.array(a, device=device)._handle, nd.array(b, device=device)._handle
    out = nd.empty((3,), device=device)
    for name, row in SCALAR_FUNCTIONS.items():
        short = {"multiply": "mul", "divide": "div"}.get(name, name)
        if row.arity == 1:
            getattr(device, f"ewise_{short}")(x, out._handle)
            np.testing.assert_allclose(out.numpy(), row.numpy(a), rtol=1e-6)
        else:
            getattr(device, f"ewise_{short}")(x, y, out._handle)
            np.testing.assert_allclose(out.numpy(), row.numpy(a, b), rtol=1e-6)
            getattr(device, f"scalar_{short}")(x, 2.0, out._handle)
            np.testing.assert_allclose(out.numpy(), row.numpy(a, 2), rtol=1e-6)
    total = nd.empty((1,), device=device)
    for name, expected in [("sum", 3.5), ("max", 2.0), ("prod", 1.0), ("min", 0.5)]:
        getattr(device, f"reduce_{name}")(x, total._handle, 3)
        assert total.numpy() == expected


@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 2, 3), (1, 2, 1), (3, 3, 3)])
def test_matmul_of_tiles(sizes):
    device = nd.cpu()
    t = device.__tile_size__
    m, n, p = (count * t for count in sizes)
    a, b = np.random.randn(m, n), np.random.randn(n, p)

    def tiles(matrix):
        rows, columns = matrix.shape
        return nd.array(matrix.reshape(rows // t, t, columns // t, t).swapaxes(1, 2))

    out = nd.empty((m // t, p // t, t, t))
    device.matmul_tiled(tiles(a)._handle, tiles(b)._handle, out._handle, m, n, p)
    np.testing.assert_allclose(out.numpy().swapaxes(1, 2).reshape(m, p), a @ b, rtol=1e-4, atol=1e-4)


def test_a_backend_is_imported_when_its_device_is_first_used():
    code = (
        "import sys, needle.backend_ndarray.device as d;"
        "mod = 'needle.backend_ndarray.not_there'; device = d.BackendDevice('late', mod);"
        "print(mod in sys.modules, 'numba' in sys.modules);"
        "device.empty((1,))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "False False\n"
    assert "ModuleNotFoundError: No module named 'needle.backend_ndarray.not_there'" in run.stderr
