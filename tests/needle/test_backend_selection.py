"""Both array libraries answer alike: `needle.backend_ndarray` and, with NEEDLE_BACKEND=np, NumPy itself.

The library is chosen when needle is imported, so each is asked in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def run(code: str, backend: str | None) -> subprocess.CompletedProcess:
    """Run code in a fresh interpreter, with warnings as errors."""
    environment = {name: value for name, value in os.environ.items() if name != "NEEDLE_BACKEND"}
    if backend is not None:
        environment["NEEDLE_BACKEND"] = backend
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


SAME_IN_BOTH = """
import numpy as np
from needle import backend_selection as library
from needle.backend_selection import (
    BACKEND, Device, NDArray, all_devices, array_from_numpy, astype, broadcast_to, cpu, cpu_numpy, cuda,
    default_device, device_of, elementwise, full, permute, to_numpy,
)

assert BACKEND == EXPECTED
x = np.arange(6, dtype="float32").reshape(2, 3)
a = array_from_numpy(x, "float32", cpu())
assert isinstance(a, NDArray) and device_of(a) == cpu() == default_device() and isinstance(cpu(), Device)
x[...] = 7  # array_from_numpy has copied
x = np.arange(6, dtype="float32").reshape(2, 3)

def same(array, expected):
    assert isinstance(array, NDArray), type(array)
    assert (array.shape, array.dtype) == (expected.shape, expected.dtype), (array, expected)
    np.testing.assert_allclose(to_numpy(array), expected, rtol=1e-6)

same(elementwise("add", a, a), x + x)
same(elementwise("subtract", 1.5, a), np.float32(1.5) - x)
same(elementwise("multiply", a, 2), x * 2)
same(elementwise("sigmoid", a), 1 / (1 + np.exp(-x)))
same(elementwise("relu", elementwise("subtract", a, 2)), np.maximum(x - 2, 0))
comparisons = {"eq": x == 2, "ne": x != 2, "lt": x < 2, "le": x <= 2, "gt": x > 2, "ge": x >= 2}
for name, answer in comparisons.items():
    same(elementwise(name, a, 2), answer.astype("float32"))
    same(elementwise(name, a, np.nan), np.full((2, 3), float(name == "ne"), "float32"))
same(elementwise("exp", array_from_numpy(1.0, "float64", cpu())), np.asarray(np.exp(1.0)))
with np.errstate(all="raise"):
    same(elementwise("divide", a[1:], 0), np.full((1, 3), np.inf, "float32"))
    same(elementwise("log", elementwise("negate", a[1:])), np.full((1, 3), np.nan, "float32"))
same(permute(a, (1, 0)), x.T)
same(broadcast_to(a[:1], (4, 2, 3)), np.broadcast_to(x[:1], (4, 2, 3)))
same(astype(a, "float64"), x.astype("float64"))
same(full((2, 1), 2.5, "float64", cpu()), np.full((2, 1), 2.5))
same(a.reshape((3, 2)), x.reshape(3, 2))
same(a.sum(axis=(0,), keepdims=True), x.sum(0, keepdims=True))
same(a.max(axis=-1), x.max(-1))
same(permute(a, (1, 0)) @ a, x.T @ x)
same(a[:, ::-1], x[:, ::-1])
a[:, :1] = 9
assert to_numpy(a)[1, 0] == 9
to_numpy(a)[...] = 0
assert to_numpy(a)[1, 0] == 9
device = cpu()
same(device.zeros(2, 3), np.zeros((2, 3), "float32"))
same(device.ones(2, dtype="int64"), np.ones(2, "int64"))
same(device.full((2,), 3), np.full(2, 3, "float32"))
same(device.one_hot(3, [2, 0]), np.eye(3, dtype="float32")[[2, 0]])
drawn = device.rand(2, 2, rng=np.random.default_rng(0))
same(drawn, np.random.default_rng(0).random((2, 2)).astype("float32"))
assert device.empty((2, 5)).shape == (2, 5)
np.random.seed(0)
drawn = device.randn(3, dtype="float64")
np.random.seed(0)
same(drawn, np.random.randn(3))
assert [repr(d) for d in all_devices()] == ["cpu()", "cuda()", "cpu_numpy()"]
assert len({*all_devices(), cpu(), cuda(), cpu_numpy()}) == 3
for d in all_devices():
    assert d.enabled() == (d.why() == "")
    if not d.enabled():
        try:
            d.zeros(1)
        except RuntimeError as error:
            assert repr(d) in str(error) and d.why() in str(error) and "needle.cpu()" in str(error)
        else:
            raise AssertionError(f"{d} is disabled and works")
for misfit in [(2, 2), (4, 3)]:
    try:
        elementwise("add", a, array_from_numpy(np.zeros(misfit), "float32", cpu()))
    except ValueError as error:
        assert f"add: shapes (2, 3) and {misfit} do not broadcast" in str(error), error
    else:
        raise AssertionError(misfit)
print("same in both")
"""


@pytest.mark.parametrize("backend", [pytest.param(None, marks=pytest.mark.slow), "nd", "np"])
def test_both_libraries_answer_alike(backend):
    found = run(f"EXPECTED = {backend or 'nd'!r}\n{SAME_IN_BOTH}", backend)
    assert found.stdout == "same in both\n", found.stderr


def test_numpy_keeps_the_data_type_that_it_is_given():
    code = """
import numpy, needle.backend_selection as b
assert b.array_api is numpy and b.NDArray is numpy.ndarray
for dtype in ("float64", "int64", "uint8", "float32"):
    assert b.array_from_numpy(numpy.ones(2, dtype), None, b.cpu()).dtype == dtype
print(b.cpu_numpy().enabled(), b.cuda().enabled())
"""
    assert run(code, "np").stdout == "False False\n"


def test_our_arrays_are_float32_where_nothing_else_is_asked_for():
    code = "import needle.backend_selection as b; print(b.array_from_numpy([1.0], None, b.cpu()).dtype)"
    assert run(code, "nd").stdout == "float32\n"


def test_an_unknown_library_is_named():
    found = run("import needle", "torch")
    assert "NEEDLE_BACKEND=torch: there is no such array library; use nd (the default) or np" in found.stderr


def test_importing_a_library_imports_no_compiler():
    code = (
        "import sys, needle.backend_selection; print([m for m in ('numba', 'llvmlite') if m in sys.modules])"
    )
    for backend in ("nd", "np"):
        assert run(code, backend).stdout == "[]\n"


def test_every_name_comes_from_the_library_that_was_chosen():
    code = """
import needle.backend_selection as b
names = {"BACKEND", "annotations", "array_api", "library", "numpy", "os", "ModuleType"}
names = {name for name in vars(b) if not name.startswith("_")} - names
assert all(getattr(b, name) is getattr(b.library, name) for name in names)
print(*sorted(names))
"""
    ours, numpys = (run(code, backend) for backend in ("nd", "np"))
    assert ours.stdout == numpys.stdout, ours.stderr + numpys.stderr
    assert {"NDArray", "Device", "elementwise", "windows"} <= set(ours.stdout.split())
