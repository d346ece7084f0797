"""How Python reaches the GPU: `compile` makes a kernel, `launch` starts it, `allocate` gets memory for it.

Take ``c = a + b`` for two arrays of 1,000 numbers. What happens:

1. **compile**, once. A kernel is a function in Python, and its arguments have types: here three pointers to
   float32 and a whole number, ``"float32* float32* float32* int64"``. Numba translates it into PTX, NVIDIA's
   portable assembly language, and nvJitLink makes machine code of that, for this GPU. We keep it on disk, so
   that the next process needs neither of them. The driver loads it and hands out a `LoadedKernel`.
2. **allocate**: memory for c comes from the driver's pool. A pointer is a number, the address of the first
   byte. When nobody uses the array any more, its memory goes back to the pool.
3. **launch**: the host writes the three addresses and the number 1,000 into a small buffer, one after the
   other, as C would lay them out. It gives the driver the kernel, the grid (here one block of 256 threads)
   and, for each argument, the place in that buffer. The driver copies the arguments and puts the launch into
   a queue, the stream. It does not wait: the host goes on after some microseconds, often before the GPU has
   begun.

The GPU takes from the stream in order. So a kernel finds what earlier ones wrote. And memory that goes back
to the pool while a kernel still uses it is given away only after that kernel. Only `download` waits.

Numba has a launch of its own, ``kernel[blocks, threads](a, b, c)``. It looks at each argument to find out its
type, and takes six times as long. Numba's simulator has nothing but that one, so `simulator.py` offers the
same functions for it.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from struct import Struct, calcsize
from types import SimpleNamespace
from typing import Any
from weakref import finalize, ref

import numpy as np
from cuda.bindings import driver

from .disk import kept

#: The default stream. All threads share it, and so do Numba, CuPy and PyTorch: work is done in one order.
STREAM = 0


# The driver. Each of its functions returns a status and, if there is one, a result.


class DriverError(RuntimeError):
    """The driver refused a call."""


def call(function: Callable, *arguments: Any) -> Any:
    """The result of one of the driver's functions.

    Raises
    ------
    DriverError
        If it refuses.
    """
    found = function(*arguments)
    if found[0]:
        if found[0] in _NOT_ENTERED:
            enter()
            found = function(*arguments)
        if found[0]:
            raise DriverError(f"{function.__name__}: {found[0].name}")
    return found[1] if len(found) > 1 else None


#: What the driver says to a thread that has not called `enter` yet.
_NOT_ENTERED = (
    driver.CUresult.CUDA_ERROR_NOT_INITIALIZED,
    driver.CUresult.CUDA_ERROR_INVALID_CONTEXT,
)
_entering = threading.RLock()
_gpu: SimpleNamespace | None = None


def enter() -> None:
    """Let this thread work with the first GPU.

    For each GPU the driver has a context: what a process has there, its memory and its kernels. A thread says
    once in which context it works. All libraries of a process share the primary one, and so do we.
    """
    global _gpu
    with _entering:
        if _gpu is None:
            _must(driver.cuInit, 0)
            device = _must(driver.cuDeviceGet, 0)
            context = _must(driver.cuDevicePrimaryCtxRetain, device)
            _must(driver.cuCtxSetCurrent, context)
            _gpu = _found(device, context)
    _must(driver.cuCtxSetCurrent, _gpu.context)


def _must(function: Callable, *arguments: Any) -> Any:
    """As `call`, before a thread has entered, when there is no second try."""
    status, *results = function(*arguments)
    if status:
        after_fork = "; a process that was forked after the GPU was used cannot use it" if _gpu else ""
        raise DriverError(f"{function.__name__}: {status.name}{after_fork}")
    return results[0] if results else None


def _found(device: Any, context: Any) -> SimpleNamespace:
    """What there is to know of a GPU, whose pool of memory is set up."""
    gpu = SimpleNamespace(context=context, pool=None)

    def attribute(name: str) -> int:
        kind = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return call(driver.cuDeviceGetAttribute, kind, device)

    gpu.name = call(driver.cuDeviceGetName, 100, device).split(b"\0")[0].decode()
    gpu.capability = attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR")
    number = call(driver.cuDriverGetVersion)
    gpu.driver = f"driver for CUDA {number // 1000}.{number % 1000 // 10}"
    gpu.processors = attribute("MULTIPROCESSOR_COUNT")
    if attribute("MEMORY_POOLS_SUPPORTED"):
        gpu.pool = call(driver.cuDeviceGetDefaultMemPool, device)
        # What is free stays in the pool. Else it would go back to the system each time that somebody waits.
        threshold = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        call(driver.cuMemPoolSetAttribute, gpu.pool, threshold, driver.cuuint64_t(2**64 - 1))
    return gpu


def gpu() -> SimpleNamespace:
    """The GPU: its `name`, compute `capability`, such as (9, 0), number of `processors`, and its `driver`."""
    if _gpu is None:
        enter()
    return _gpu  # type: ignore[return-value]


def synchronize() -> None:
    """Wait until the GPU has done all that it was asked for."""
    call(driver.cuCtxSynchronize)


# Compiling

#: The types that arguments have, as `struct` packs them.
_LETTERS = {"float32": "f", "float64": "d", "int64": "q", "int32": "i", "uint8": "B"}
#: An array of Numba's has seven parts: two pointers that we leave empty, its size, the bytes of a number, the
#: address, its length and its stride in bytes.
_ARRAY = "QQqqQqq"


class LoadedKernel:
    """A kernel that the driver has loaded.

    Parameters
    ----------
    image : bytes
        Machine code, or PTX, with one function, ``kernel``.
    signature : str
        See `compile`.

    Attributes
    ----------
    spare : list of Room
        Where the arguments of the next launch can be written.
    """

    def __init__(self, image: bytes, signature: str):
        self.module = call(driver.cuModuleLoadData, image)
        self.function = call(driver.cuModuleGetFunction, self.module, b"kernel")
        self.letters = "".join(_letters(name) for name in signature.split())
        self.pack = Struct(self.letters).pack_into
        self.takes_tuples = "[" in signature
        self.spare: list[Room] = []


class Room:
    """Room for the arguments of a launch.

    For ``"float32* int64 uint8"`` the buffer has 17 bytes: an address in bytes 0 to 7, a number in 8 to 15,
    and one in 16. `places` holds where in memory these three begin. That is what the driver asks for.
    """

    def __init__(self, letters: str):
        self.buffer = ctypes.create_string_buffer(calcsize(letters))
        begins = [calcsize(letters[: i + 1]) - calcsize(letters[i]) for i in range(len(letters))]
        first = ctypes.addressof(self.buffer)
        self.places = (ctypes.c_void_p * len(letters))(*[first + begin for begin in begins])
        self.address = ctypes.addressof(self.places)


def _letters(name: str) -> str:
    if name.endswith("*"):
        return "Q"
    if name.endswith("[]"):
        return _ARRAY
    name, _, count = name.rstrip("]").partition("[")
    return _LETTERS[name] * int(count or 1)


def compile(make: Callable[[], Callable], signature: str, key: str | None) -> LoadedKernel:
    """A kernel, compiled for this GPU, unless it is on disk already.

    Parameters
    ----------
    make : callable
        Returns the kernel as a function in Python; called only if it has to be compiled.
    signature : str
        The types of its arguments: ``float32*`` is a pointer, ``int64`` a number, ``int64[2]`` a tuple of
        two, ``float32[]`` an array of Numba's, for what pointers cannot do.
    key : str or None
        All that the function depends on, to find it on disk. None: it is not kept there.
    """
    capability = gpu().capability

    def made() -> bytes:
        return machine_code(to_ptx(make(), signature, capability), capability)

    if key is not None:
        with suppress(DriverError):  # what was kept does not load: the driver has changed
            return LoadedKernel(kept("cuda", f"{_versions()}\n{signature}\n{key}", made), signature)
    return LoadedKernel(made(), signature)


@cache
def _versions() -> str:
    """What machine code depends on besides its source."""
    names = ["numba", "numba-cuda", "cuda-bindings", "cuda-toolkit", "nvidia-nvvm", "nvidia-nvjitlink"]
    names += ["nvidia-cuda-nvcc-cu12", "nvidia-nvjitlink-cu12"]
    found = []
    for name in names:
        with suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return ", ".join([*found, str(gpu().capability), gpu().driver])


def types_of(signature: str) -> Any:
    """The types of a kernel's arguments, as Numba has them."""
    from numba import types  # importing it takes half a second, and only those wait who compile

    def of(name: str) -> Any:
        if name.endswith("*"):
            return types.CPointer(getattr(types, name[:-1]))
        if name.endswith("[]"):
            return types.Array(getattr(types, name[:-2]), 1, "C")
        name, _, count = name.rstrip("]").partition("[")
        return types.UniTuple(getattr(types, name), int(count)) if count else getattr(types, name)

    return types.void(*[of(name) for name in signature.split()])


def to_ptx(function: Callable, signature: str, capability: tuple[int, int]) -> str:
    """A kernel in PTX, with the name ``kernel``. No GPU is needed for that."""
    from numba import cuda

    code, _ = cuda.compile_ptx(function, types_of(signature), cc=capability)
    (name,) = re.findall(r"\.entry (\w+)\(", code)
    return code.replace(name, "kernel")


def machine_code(ptx: str, capability: tuple[int, int]) -> bytes:
    """Machine code from PTX. Where nvJitLink is missing or too old, PTX itself: the driver compiles it."""
    code = ptx.encode() + b"\0"
    try:
        from cuda.bindings import nvjitlink

        linker = nvjitlink.create(1, [f"-arch=sm_{capability[0]}{capability[1]}"])
        try:
            nvjitlink.add_data(linker, nvjitlink.InputType.PTX, code, len(code), "kernel")
            nvjitlink.complete(linker)
            image = bytearray(nvjitlink.get_linked_cubin_size(linker))
            nvjitlink.get_linked_cubin(linker, image)
        finally:
            nvjitlink.destroy(linker)
    except Exception:  # nvJitLink's own are of no common class
        return code
    return bytes(image)


# Launching


class _Here(threading.local):
    """Where the launches of this thread go."""

    stream: Any = STREAM
    memory: list[Any] | None = None  # what stands for the memory that recorded launches need


_here = _Here()


def launch(
    kernel: LoadedKernel, blocks: int | tuple[int, int], threads: int | tuple[int, int], *arguments: Any
) -> None:
    """Put a launch into the stream: a grid of `blocks`, with so many `threads` in each."""
    across, down = blocks if type(blocks) is tuple else (blocks, 1)
    if not across or not down:  # the driver refuses an empty grid
        return
    wide, high = threads if type(threads) is tuple else (threads, 1)
    if kernel.takes_tuples:
        arguments = tuple([x for given in arguments for x in (given if type(given) is tuple else (given,))])
    try:
        room = kernel.spare.pop()
    except IndexError:  # the first launch, or another thread is launching this kernel, too
        room = Room(kernel.letters)
    kernel.pack(room.buffer, 0, *arguments)
    grid = (across, down, 1, wide, high, 1)
    call(driver.cuLaunchKernel, kernel.function, *grid, 0, _here.stream, room.address, 0)
    kernel.spare.append(room)


class Graph:
    """Launches that are recorded once, and then started all at once, as often as one likes.

    The driver notes each launch with its arguments, and does not start it. So what the kernels read and write
    has to stay where it is; memory that was allocated meanwhile lives as long as the graph.

    Parameters
    ----------
    work : callable
        Launches kernels; it neither waits for the GPU nor copies numbers to it or from it. All of it has run
        before, so that nothing has to be compiled or loaded.
    """

    def __init__(self, work: Callable[[], Any]):
        with _recording:
            _here.stream, _here.memory = recording_stream(), []
            try:
                call(driver.cuStreamBeginCapture, _here.stream, _RELAXED)
                try:
                    work()
                finally:
                    graph = call(driver.cuStreamEndCapture, _here.stream)
            finally:
                self._memory = _here.memory
                _here.stream, _here.memory = STREAM, None
        executable = call(driver.cuGraphInstantiate, graph, 0)
        call(driver.cuGraphDestroy, graph)
        self.replay = partial(call, driver.cuGraphLaunch, executable, STREAM)
        finalize(self, driver.cuGraphExecDestroy, executable).atexit = False


_recording = threading.RLock()
#: Other threads, and the garbage collector in this one, may allocate memory while a graph is recorded.
_RELAXED = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED


def is_recording() -> bool:
    """Whether what this thread launches is recorded."""
    return _here.memory is not None


@cache
def recording_stream() -> Any:
    """The stream whose launches are recorded. The default one cannot be, and must not wait for it."""
    return call(driver.cuStreamCreate, driver.CUstream_flags.CU_STREAM_NON_BLOCKING)


# Memory


class DeviceLoan(ref):
    """A weak reference to what stands for a piece of memory; it knows the address. When what it refers to is
    gone, the memory goes back."""

    __slots__ = ("address",)

    address: int


_loans: dict[int, DeviceLoan] = {}  # a weak reference has to be kept, or nobody hears from it
# When the program ends, its modules go in any order, and the driver takes all memory back by itself. A
# process that was forked has none.
atexit.register(_loans.clear)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_loans.clear)


def allocate(size: int, dtype: np.dtype) -> tuple[int, Any]:
    """Memory for `size` numbers, not yet written: its address, and an object that stands for it.

    As long as the object lives, the memory is ours. The object is an empty NumPy array. Why? When Python
    collects objects that hold each other in a circle, it calls their ``__del__`` and the callbacks of weak
    references to them in an order of its own. So somebody could still read an array whose memory was given
    away. NumPy's arrays are never collected like that: one goes when the last of those that hold it is gone.

    Raises
    ------
    MemoryError
        If there is not enough memory, not even after all that is free has been given back.
    """
    nbytes = size * dtype.itemsize or 1
    try:
        address = int(_take(nbytes))
    except DriverError as error:
        if _OUT_OF_MEMORY not in str(error):
            raise
        release()
        try:
            address = int(_take(nbytes))
        except DriverError:
            raise _no_memory(size, dtype) from None
    memory = np.empty(0, np.uint8)
    loan = DeviceLoan(memory, _give_back)
    loan.address = address
    _loans[id(loan)] = loan
    if _here.memory is not None:
        _here.memory.append(memory)
    return address, memory


_OUT_OF_MEMORY = "OUT_OF_MEMORY"


def _take(nbytes: int) -> Any:
    if gpu().pool is None:
        return call(driver.cuMemAlloc, nbytes)
    return call(driver.cuMemAllocAsync, nbytes, STREAM)


def _give_back(loan: DeviceLoan) -> None:
    del _loans[id(loan)]
    with suppress(DriverError):  # an error of an earlier kernel: whoever waits for the GPU is told
        if gpu().pool is None:
            call(driver.cuMemFree, loan.address)
        else:
            call(driver.cuMemFreeAsync, loan.address, STREAM)


def release() -> None:
    """Give all memory that is free back to the system, that of objects in circles, too."""
    gc.collect()
    synchronize()
    if gpu().pool is not None:
        call(driver.cuMemPoolTrimTo, gpu().pool, 0)


def _no_memory(size: int, dtype: np.dtype) -> MemoryError:
    status, free, total = driver.cuMemGetInfo()
    numbers = "" if status else f"; {_readable(free)} of the GPU's {_readable(total)} are free"
    return MemoryError(
        f"cuda(): no memory for {_readable(size * dtype.itemsize)}, {size} numbers of type {dtype}{numbers}. "
        "Delete arrays that you no longer need, take smaller batches, or use needle.cpu()."
    )


def _readable(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"


def at(address: int, offset: int, dtype: np.dtype) -> int:
    """The address of number `offset` of an array."""
    return address + offset * dtype.itemsize


def upload(values: np.ndarray, address: int) -> None:
    """Copy a compact NumPy array to the GPU. The driver reads ordinary memory before this returns."""
    call(driver.cuMemcpyHtoDAsync, address, values.ctypes.data, values.nbytes, STREAM)


def copy(source: int, target: int, nbytes: int) -> None:
    """Copy memory on the GPU."""
    call(driver.cuMemcpyDtoDAsync, target, source, nbytes, STREAM)


def download(address: int, size: int, dtype: np.dtype) -> np.ndarray:
    """A NumPy array with a copy of numbers on the GPU. It waits until all earlier work is done."""
    values = np.empty(size, dtype)
    if size:
        call(driver.cuMemcpyDtoH, values.ctypes.data, address, values.nbytes)
    return values


def whole(address: int, size: int, dtype: np.dtype) -> tuple:
    """An array of Numba's for a kernel that takes ``float32[]``."""
    nbytes = dtype.itemsize
    return 0, 0, size, nbytes, address, size, nbytes
