"""Devices: where arrays live and which kernels work on them."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from textwrap import shorten
from types import ModuleType
from typing import Any

import numpy as np


def generator(rng: Any) -> np.random.Generator | None:
    """The generator that an argument `rng` stands for: itself, or a new one if it is a seed.

    None stays None. It means NumPy's global state, which ``numpy.random.seed`` sets. So random numbers are
    drawn from ``generator(rng) or numpy.random``.

    Raises
    ------
    TypeError
        If `rng` is anything else.
    """
    if rng is None or isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, bool) or not isinstance(rng, (int, np.integer)):
        raise TypeError(
            f"rng: needs a numpy.random.Generator, a seed (int) or None, got {type(rng).__name__}; "
            "make a generator with numpy.random.default_rng(seed)"
        )
    return np.random.default_rng(rng)


class DeviceUnavailable(RuntimeError, AttributeError):
    """A device that cannot work on this machine was used.

    An `AttributeError` too, so that ``hasattr(device, name)`` is False instead of an error.
    """


class Device:
    """A place where arrays live, and the ways to make new ones there.

    A subclass says how to make an array (`array`); all the rest follows from that. Two devices are equal if
    their types and names are.

    Parameters
    ----------
    name : str
        ``repr(device)`` is this name followed by ``()``, the call that returns the device.
    """

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"{self.name}()"

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self.name == other.name)

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def enabled(self) -> bool:
        """Whether the device works on this machine."""
        return self.why() == ""

    def why(self) -> str:
        """One sentence that says why the device is not enabled; empty where it is."""
        return ""

    def array(self, values: Any, dtype: Any = "float32") -> Any:
        """A new array on this device that holds `values` (a scalar, nested lists or a NumPy array)."""
        raise NotImplementedError

    def rand(self, *shape: int, dtype: Any = "float32", rng: Any = None) -> Any:
        """Uniform random numbers in [0, 1); for `rng` see `generator`."""
        return self.array((generator(rng) or np.random).random(shape), dtype)

    def randn(self, *shape: int, dtype: Any = "float32", rng: Any = None) -> Any:
        """Standard normal random numbers; for `rng` see `generator`."""
        return self.array((generator(rng) or np.random).standard_normal(shape), dtype)

    def one_hot(self, n: int, i: Any, dtype: Any = "float32") -> Any:
        """Rows of zeros with a single one: shape ``i.shape + (n,)``.

        Parameters
        ----------
        n : int
            Number of classes.
        i : int, list or array of whole numbers
            The class of each row, in ``0 .. n - 1``.
        """
        given = np.asarray(i)
        rows = given[..., None] == np.arange(n)
        if np.count_nonzero(rows) != given.size:
            raise IndexError(
                f"one_hot: classes must lie in 0..{n - 1} and be whole, got {given.min()}..{given.max()}"
            )
        return self.array(rows, dtype)

    def empty(self, shape: tuple[int, ...], dtype: Any = "float32") -> Any:
        """An array whose numbers are yet to be written."""
        return self.array(np.empty(shape, dtype), dtype)

    def full(self, shape: tuple[int, ...], fill_value: float, dtype: Any = "float32") -> Any:
        """An array that holds `fill_value` everywhere."""
        return self.array(np.full(shape, fill_value, dtype), dtype)

    def zeros(self, *shape: int, dtype: Any = "float32") -> Any:
        """An array of zeros."""
        return self.full(shape, 0, dtype)

    def ones(self, *shape: int, dtype: Any = "float32") -> Any:
        """An array of ones."""
        return self.full(shape, 1, dtype)


def common_device(name: str, operands: Sequence) -> Any:
    """The device that all operands are on.

    Parameters
    ----------
    name : str
        The operation, for the error message.
    operands : sequence, not empty
        Arrays, Tensors, or anything else with a `device`.

    Raises
    ------
    ValueError
        If they are on different devices: nothing is moved behind your back.
    """
    device = operands[0].device
    for operand in operands[1:]:
        if operand.device != device:
            raise ValueError(
                f"{name}: operands are on {device} and {operand.device}; move one of them with .to({device})"
            )
    return device


class BackendDevice(Device):
    """A device whose kernels are in a backend module.

    The module is ``device.mod``. Its functions are attributes of the device too: ``device.ewise_add``.

    Parameters
    ----------
    name : str
    mod : module, str or None
        The backend module, or its dotted name: then it is imported when the device is first used.
        None makes a device that is not enabled; to use it raises `DeviceUnavailable`.
    reason : str
        Why the device is not enabled, in one sentence.
    """

    array_type: Any  # NDArray, set by ndarray.py, which imports this module
    mod: ModuleType  # set when it is first needed

    def __init__(self, name: str, mod: ModuleType | str | None, reason: str = "It has no kernels."):
        super().__init__(name)
        self._mod = mod
        self._reason = reason

    def __getattr__(self, name: str) -> Any:
        # Called for what the device itself does not have: functions of its module and, at first, the module.
        if name != "mod":
            return getattr(self.mod, name)
        if reason := self.why():
            raise DeviceUnavailable(f"{self} is not available here: {reason} Use needle.cpu() instead.")
        assert self._mod is not None
        self.mod = import_module(self._mod) if isinstance(self._mod, str) else self._mod
        return self.mod

    def __reduce__(self):
        module = self._mod.__name__ if isinstance(self._mod, ModuleType) else self._mod
        return BackendDevice, (self.name, module, self._reason)

    def why(self) -> str:
        return self._reason if self._mod is None else ""

    def array(self, values: Any, dtype: Any = "float32") -> Any:
        return self.array_type(values, device=self, dtype=dtype)

    def empty(self, shape: tuple[int, ...], dtype: Any = "float32") -> Any:
        return self.array_type.make(shape, device=self, dtype=dtype)

    def full(self, shape: tuple[int, ...], fill_value: float, dtype: Any = "float32") -> Any:
        array = self.array_type.make(shape, device=self, dtype=dtype)
        self.mod.fill(array._handle, fill_value)
        return array


class CudaDevice(BackendDevice):
    """The GPU. It is enabled if a first, trivial kernel runs on it; this is tried once."""

    def __init__(self):
        super().__init__("cuda", _CUDA_KERNELS)
        self._lock = threading.Lock()
        self._answer: str | None = None

    def __reduce__(self):
        return cuda, ()

    def why(self) -> str:
        with self._lock:
            if self._answer is None:
                self._answer = _why_no_kernel_runs()
        return self._answer


def _why_no_kernel_runs() -> str:
    """One sentence that says why no kernel runs on a GPU; empty if a first one did."""
    simulated = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") != "0"
    if find_spec("llvmlite") is None:
        return "There is no Numba here, which compiles for a GPU."
    if not simulated and not _has_driver():
        return _NO_DRIVER
    if not simulated and find_spec("numba_cuda") is None:
        return f"The package numba-cuda is missing: {_INSTALL}."
    try:
        import_module(_CUDA_KERNELS).try_out()
    except Exception as error:  # whatever is wrong with the GPU, the lecture goes on without it
        found = f"{type(error).__name__}: {error}"
        releases = _release("numba-cuda"), _release("numpy")
        known = (
            sentence.format(*releases)
            for pattern, sentence in _CAUSES
            if re.search(pattern, found, re.IGNORECASE)
        )
        return next(known, shorten(found, 300).rstrip(" .:") + ".")
    return ""


def _release(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def _has_driver() -> bool:
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


_CUDA_KERNELS = f"{__package__}.ndarray_backend_numba_cuda"
_NO_DRIVER = (
    "There is no NVIDIA driver here, hence no GPU to compute on; for Numba's simulator of one, set "
    "NUMBA_ENABLE_CUDASIM=1 in the environment before Python starts."
)
_INSTALL = "pip install -e '.[cuda]' in the checkout, or '.[cuda12]' if nvidia-smi shows CUDA 12"

#: What the error of the first kernel says, and what it means.
_CAUSES = (
    (
        r"PTX_VERSION|unsupported \.version|unsupported toolchain",
        "The CUDA toolkit is newer than the GPU's driver, which cannot read what it compiles: "
        f"{_INSTALL}, or install a newer driver.",
    ),
    (
        "module 'numpy' has no attribute|a module that was compiled using NumPy|numpy.core.multiarray failed",
        f"numba-cuda {{}} and NumPy {{}} do not fit; numba-cuda 0.30.4 and NumPy 2.4.6 do: {_INSTALL}.",
    ),
    (
        "INVALID_PTX|INVALID_IMAGE|NO_BINARY_FOR_GPU|SYSTEM_DRIVER_MISMATCH",
        f"The GPU's driver cannot load what the CUDA toolkit made: {_INSTALL}, or install a newer driver.",
    ),
    ("NO_DEVICE", "There is an NVIDIA driver, but no GPU that it can use."),
    ("driver library", _NO_DRIVER),
    ("No module named 'cuda", f"The package cuda-bindings is missing: {_INSTALL}."),
    ("nvvm|nvrtc|nvjitlink|libdevice", f"The part of the CUDA toolkit that compiles is missing: {_INSTALL}."),
)


_NUMPY_KERNELS = f"{__package__}.ndarray_backend_numpy"
_CPU_NUMPY = BackendDevice("cpu_numpy", _NUMPY_KERNELS)
#: Without Numba, which no browser has, NumPy computes. Numba compiles with llvmlite, which no stand-in has.
_CPU = (
    BackendDevice("cpu", f"{__package__}.ndarray_backend_numba_cpu") if find_spec("llvmlite") else _CPU_NUMPY
)
_CUDA = CudaDevice()


def cpu() -> BackendDevice:
    """The processor, and the default device. Where Numba is not installed, it is `cpu_numpy`."""
    return _CPU


def cuda() -> BackendDevice:
    """The GPU. ``cuda().enabled()`` says whether it can be used, ``cuda().why()`` says why not."""
    return _CUDA


def cpu_numpy() -> BackendDevice:
    """The processor with NumPy's kernels: the reference that every other device is tested against."""
    return _CPU_NUMPY


def default_device() -> BackendDevice:
    """The device of an array that names none."""
    return _CPU


def all_devices() -> list[BackendDevice]:
    """Every device, enabled or not."""
    return [*dict.fromkeys((_CPU, _CUDA, _CPU_NUMPY))]
