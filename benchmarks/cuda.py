"""Arrays, formulas and training steps on a GPU, eager and compiled, beside torch, jax and CuPy.

The table takes some two minutes. Calls follow one another, and the GPU is waited for before the first and
after the last of them. "of best" sets eager needle beside the fastest of the other libraries. Behind the
figures stands the same for `needle.jit`, and what needle and the fastest of the others do in a second. Nobody
may use TF32. What fails is told below its row, and the run goes on.
"""

from __future__ import annotations

import gc
import math
import platform
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module, metadata
from textwrap import shorten, wrap
from time import perf_counter
from types import ModuleType
from typing import NamedTuple

import numpy as np

import needle as ndl
from needle import nn, ops
from needle.apps.models import ResNet9

from . import in_jax, in_torch
from .compiler import in_fresh_process, without_graph
from .in_numpy import EPS
from .timing import Case, agree, torch
from .training import initial, mlp_step, photographs, resnet9_step, step_name, tensor, training_data

BEST_OF = ("torch", "jax", "CuPy")
RIVALS = ("jit", "own kernel", *BEST_OF)  # own kernel: needle's products without cuBLAS
FUNCTIONS = ("needle", "jit", "torch", "jax")  # CuPy has arrays, but no gradients

ROUNDS = 7
SECONDS = 0.01  # of calls between two waits, at least; of a single call if that takes longer
WARM_UP = 3  # calls before the clock starts; the results of the last of them must agree
COMPARED = 1000  # numbers of a result, the last ones
PACKAGES = ("numba", "cuda-", "nvidia-cu", "torch", "jax", "cupy")  # how those begin whose versions matter


def why_not() -> str:
    """Say why there is nothing to measure; nothing if there is."""
    reason = ndl.cuda().why() or ("Numba's simulator is no GPU." if ndl.cuda().SIMULATED else "")
    return reason and f"no GPU: {reason}"


def notes() -> Iterator[str]:
    """Yield what the figures depend on: the GPU, its driver, and the versions of what computes on it."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        gpus = subprocess.run(query, capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError) as error:
        gpus = in_a_line(error)
    yield from gpus.splitlines()
    found = {package.name: package.version for package in metadata.distributions() if package.name}
    versions = [f"{name} {found[name]}" for name in sorted(found) if name.lower().startswith(PACKAGES)]
    yield from wrap(", ".join(versions), 108)
    yield platform.platform()
    yield f"on the GPU: {', '.join(libraries(ndl.cuda()))}; medians of {ROUNDS} rounds"


def cases() -> Iterator[Case]:
    """Yield the lines of this group, and give the memory of each back before the next."""
    table = Table(ndl.cuda())
    for rows in (table.arrays, table.products, table.formulas, table.networks, table.resnet9):
        for row in rows():
            yield row
            gc.collect()
            for library in table.libraries.values():
                with suppress(Exception):  # after some errors, a GPU does nothing any more
                    library.free()


# The libraries


class Library(NamedTuple):
    """A way to compute on the device."""

    functions: ModuleType  # of arrays, such as exp
    array: Callable  # turns a NumPy array into one on the device
    numpy: Callable  # and back
    wait: Callable  # waits until the device has computed a result
    written: ModuleType | None = None  # where formulas and steps are written for it, if not in `Table`
    compile: Callable = lambda function: function  # what makes a function fast
    made: Callable[[], AbstractContextManager] = nullcontext  # where arrays and networks are made
    called: Callable[[], AbstractContextManager] = nullcontext  # where functions are called
    free: Callable = lambda: None  # gives the memory back that no array uses


def libraries(device) -> dict[str, Library]:
    """Those that can compute where `device` does: needle's ways first, then the others."""
    needle = Library(ndl.backend_ndarray, device.array, lambda result: result.numpy(), waiting_for(device))
    found = {"needle": needle, "jit": needle._replace(compile=ndl.jit)}
    if hasattr(device.mod, "blas"):
        found["own kernel"] = needle._replace(called=partial(without_cublas, device.mod))
    on_gpu = device == ndl.cuda() and not device.SIMULATED
    if torch and (torch.cuda.is_available() or not on_gpu):
        found["torch"] = library_of_torch("cuda" if on_gpu else "cpu")
    # Each library has errors of its own for a GPU that it cannot use.
    with suppress(Exception):
        if in_jax.jax and on_gpu == (in_jax.jax.default_backend() != "cpu"):
            found["jax"] = library_of_jax()
    with suppress(Exception):
        if on_gpu:
            found["CuPy"] = library_of_cupy()
    return found


def waiting_for(device) -> Callable:
    """Return what waits until needle's device has done all that it was asked for."""
    if hasattr(device, "synchronize"):
        return lambda result: device.synchronize()
    if device == ndl.cuda():
        from numba import cuda

        return lambda result: cuda.synchronize()
    return lambda result: None


@contextmanager
def without_cublas(kernels) -> Iterator[None]:
    """Let a device's own kernel multiply matrices, whatever their size."""
    blas, kernels.blas = kernels.blas, None
    try:
        yield
    finally:
        kernels.blas = blas


def library_of_torch(device: str) -> Library:
    """torch on one of its devices."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    library = Library(
        torch,
        in_torch.constant,
        lambda result: result.detach().cpu().numpy(),
        lambda result: None,
        in_torch,
        made=lambda: torch.device(device),
    )
    if device == "cpu":
        return library
    return library._replace(wait=lambda result: torch.cuda.synchronize(), free=torch.cuda.empty_cache)


def library_of_jax() -> Library:
    """jax on its default device."""
    jax = in_jax.jax
    return Library(in_jax.jnp, in_jax.constant, np.asarray, jax.block_until_ready, in_jax, jax.jit)


def library_of_cupy() -> Library:
    """CuPy, if it is installed and a first sum comes out."""
    cupy = import_module("cupy")
    int(cupy.ones(3).sum())
    wait = cupy.cuda.Device().synchronize
    free = cupy.get_default_memory_pool().free_all_blocks
    return Library(cupy, cupy.asarray, cupy.asnumpy, lambda result: wait(), free=free)


# How a row is timed


class Burst:
    """A stopwatch of a function: how long one of several calls takes, between two waits for the device."""

    def __init__(self, library: Library, make: Callable[[Library], Callable]):
        self.library = library
        with library.made():
            self.run = make(library)
        with library.called():
            for _ in range(WARM_UP):
                result = self.run()
        self.end = library.numpy(result.reshape((-1,))[-COMPARED:])
        self.calls = 1
        while self() * self.calls < SECONDS:
            self.calls *= 2

    def __call__(self) -> float:
        """The seconds of a call."""
        with self.library.called():
            self.library.wait(self.run())
            start = perf_counter()
            for _ in range(self.calls):
                result = self.run()
            self.library.wait(result)
            return (perf_counter() - start) / self.calls


@dataclass
class Row(Case):
    """A line of the table, of which a part may fail.

    A contender makes what is timed and returns a stopwatch: a function that returns seconds (a `Burst`).
    """

    work: float = 0  # bytes that are read and written, or sums and products; 0 where nobody counts them
    unit: str = "B/s"
    rounds: int = ROUNDS
    failures: dict[str, str] = field(default_factory=dict)  # what went wrong, by contender

    def run(self) -> None:
        """Fill `samples` and `failures`."""
        stopwatches = {}
        for name, make in self.contenders.items():
            with self._noting_failure(name):
                stopwatches[name] = make()
        self._compare({name: watch.end for name, watch in stopwatches.items() if isinstance(watch, Burst)})
        self.samples = {name: [] for name in stopwatches}
        for _ in range(self.rounds):
            for name in [*self.samples]:
                with self._noting_failure(name):
                    self.samples[name].append(stopwatches[name]())

    def _compare(self, ends: dict[str, np.ndarray]) -> None:
        """Set each result beside that of the last contender, which is another library where there is one."""
        for last in [*ends][-1:]:
            for name, end in ends.items():
                with self._noting_failure(name):
                    agree(end, ends[last].reshape(end.shape), f"not the numbers of {last}")

    @contextmanager
    def _noting_failure(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # whatever it is, the other contenders and rows go on
            self.failures[name] = in_a_line(error)
            self.samples.pop(name, None)

    def remark(self) -> str:
        """The ratio of what is compiled, work in a second, and what failed."""
        best = self.fastest(BEST_OF)
        compiled = self.ratio(best, "jit")
        parts = [f"jit {compiled:.2g}x"] if compiled else []
        if self.work:
            for name in filter(None, (self.fastest(("needle", "jit")), best)):
                parts.append(f"{name} {self.work / self.seconds(name) / 1e9:,.0f} G{self.unit}")
        failures = (f"\n    {name}: {words}" for name, words in self.failures.items())
        return ", ".join(parts) + "".join(failures)


def in_a_line(error: Exception) -> str:
    """The kind of an error and how its message begins."""
    return shorten(f"{type(error).__name__}: {error}", 300)


# The rows


class Table:
    """The rows for a device; no size in them is larger than `largest`: a test takes tiny ones."""

    def __init__(self, device, largest: float = math.inf):
        self.device = device
        self.largest = largest
        self.libraries = libraries(device)
        self.random = np.random.default_rng(0).random(math.prod(self.cut(1 << 26)) + 3000, dtype="float32")

    def arrays(self) -> Iterator[Row]:
        """What reads and writes memory; `passes` says how often all numbers are read or written."""
        few, many, side = self.cut(1000, 1 << 26, 8192)
        n, flat, square, size = f"{many:,} numbers", (many,), (side, side), f"{side} x {side}"

        def row(name: str, passes: int, shapes: list, *functions: Callable) -> Row:
            return self.operation(name, shapes, *functions, work=4 * passes * math.prod(shapes[0]))

        def add(_, a, b):
            return a + b

        yield row(f"a launch: a + b, {few:,} numbers", 3, [(few,)] * 2, add)
        yield self.formula("… of Tensors", ndl.add, "", self.numbers((few,), (few,)), who=("needle", "jit"))
        yield row(f"a + b, {n}", 3, [flat] * 2, add)
        yield row(f"exp(a), {n}", 2, [flat], lambda m, a: m.exp(a))
        yield row(f"a + 0.0, {n}", 2, [flat], lambda m, a: a + 0.0)
        fill = lambda m, a: m.full(a.shape, 1.0, device=a.device)  # noqa: E731
        yield row(f"filled with 1.0, {n}", 1, [flat], lambda m, a: m.full_like(a, 1.0), fill)
        yield row(f"a.sum(), {n}", 1, [flat], lambda m, a: a.sum())
        yield row(f"a.sum(1), rows of {size}", 1, [square], lambda m, a: a.sum(1))
        yield row(f"a.sum(0), columns of {size}", 1, [square], lambda m, a: a.sum(0))
        largest = lambda m, a: a.max(1)  # noqa: E731
        yield row(f"a.max(1), rows of {size}", 1, [square], lambda m, a: m.amax(a, 1), largest)
        yield row(f"a + row, {size}", 2, [square, (1, side)], add)
        yield row(f"a + column, {size}", 2, [square, (side, 1)], add)
        copy = lambda m, a: a.permute((1, 0)).compact()  # noqa: E731
        yield row(f"a.T copied, {size}", 2, [square], lambda m, a: a.T.reshape(-1), copy)

    def products(self) -> Iterator[Row]:
        """Matrix products, each also by needle's own kernel where cuBLAS multiplies otherwise."""

        def row(name: str, a: tuple, b: tuple, *functions: Callable) -> Row:
            work = 2 * math.prod(a) * b[-1]
            return self.operation(name, [a, b], *functions, own=True, work=work, unit="FLOP/s")

        def product(_, a, b):
            return a @ b

        for n in self.cut(64, 512, 1024, 4096):
            yield row(f"a @ b, {n} x {n}", (n, n), (n, n), product)
        m, k, batch, n, side = self.cut(100, 784, 64, 128, 1024)
        yield row(f"a @ b, {m} x {k} @ {k} x {m}", (m, k), (k, m), product)
        yield row(f"a @ b, {batch} products of {n} x {n}", (batch, n, n), (batch, n, n), product)
        ours = lambda m, a, b: a.permute((1, 0)) @ b  # noqa: E731
        yield row(f"a.T @ b, {side} x {side}", *[(side, side)] * 2, lambda m, a, b: a.T @ b, ours)

    def formulas(self) -> Iterator[Row]:
        """Functions of Tensors, without gradients."""
        (many,) = self.cut(1 << 24)
        yield self.formula(
            f"tanh(x) * y + exp(-x) * x, {many:,} numbers",
            lambda x, y: ndl.tanh(x) * y + ndl.exp(-x) * x,
            "six_operators",
            self.numbers((many,), (many,)),
            work=12 * many,
        )
        rows, columns = self.cut(8192, 1024)
        x, *weights = self.numbers((rows, columns), (columns,), (columns,))
        of_rows, work = f"of rows, {rows} x {columns}", 8 * rows * columns
        yield self.formula(f"softmax {of_rows}", ndl.softmax, "softmax", [x], work=work)

        def layer_norm(x, weight, bias):
            return ops.standardize(x, -1, EPS)[0] * weight + bias  # as in nn.LayerNorm1d

        yield self.formula(f"layer norm {of_rows}", layer_norm, "layer_norm", [x, *weights], work=work)
        attention = nn.MultiHeadAttention(device=self.device)
        for shape in (self.cut(8, 4, 128, 16), self.cut(8, 8, 1024, 64)):
            batch, heads, time, width = shape
            yield self.formula(
                f"attention, batch {batch}, {heads} heads, {time} steps of {width}",
                lambda q, k, v: attention(q, k, v)[0],
                "dot_product_attention",
                self.numbers(shape, shape, shape),
                work=4 * math.prod(shape) * time,
                unit="FLOP/s",
            )

    def networks(self) -> Iterator[Row]:
        """Forward, loss, backward and update of networks of linear layers."""
        for sizes, batch, lr, *optimizer in (
            ((2, 8, 8, 2), 10, 1e-3),
            ((784, 100, 10), 100, 1e-3),
            ((784, 500, 10), 128, 1e-3),
            ((1024, 4096, 4096, 10), 1024, 1e-5, "Adam"),
        ):
            sizes, (batch,) = self.cut(*sizes), self.cut(batch)
            x, y, weights = training_data(sizes, batch)
            name = ", ".join([step_name(sizes, batch), *optimizer])
            yield self.step(name, mlp_step, "mlp_step", weights, x, y, lr, *optimizer)

    def resnet9(self) -> Iterator[Row]:
        """A step of ResNet9, and the first one of a new process, which finds the kernels on disk."""
        (batch,) = self.cut(64)
        who = [name for name in self.libraries if name in ("needle", "jit", "torch")]
        name, arguments = (
            f"training step ResNet9, batch {batch}, Adam",
            (initial(ResNet9), *photographs(batch)),
        )
        yield self.step(name, resnet9_step, "resnet9_step", *arguments, 1e-4, who=who)
        calls = {name: f"resnet9({name!r}, {self.device.name!r}, {batch})" for name in who}
        contenders = {name: partial(partial, in_fresh_process, call) for name, call in calls.items()}
        yield Row("… the first of a second process", contenders, rounds=1)

    # What they consist of

    def cut(self, *sizes: int) -> tuple[int, ...]:
        """The sizes, none of which is too large."""
        return tuple(int(min(size, self.largest)) for size in sizes)

    def numbers(self, *shapes: tuple[int, ...]) -> list[np.ndarray]:
        """Random numbers between 0 and 1. The arrays share most of them, but not at the same places."""
        return [self.random[1000 * i :][: math.prod(shape)].reshape(shape) for i, shape in enumerate(shapes)]

    def row(self, name: str, make: Callable, who: Iterable[str], **options) -> Row:
        """The row of those who can compute here; ``make(library)`` returns what is timed."""
        taking_part = {key: library for key, library in self.libraries.items() if key in who}
        contenders = {key: partial(Burst, library, make) for key, library in taking_part.items()}
        return Row(name, contenders, **options)

    def operation(self, name, shapes, function, ours=None, own=False, **options) -> Row:
        """An operation of arrays: the functions take the library's module and the arrays."""
        arrays = self.numbers(*shapes)

        def make(library: Library) -> Callable:
            is_ours = library.functions is ndl.backend_ndarray
            run = library.compile(partial(ours if ours and is_ours else function, library.functions))
            return partial(run, *(library.array(a) for a in arrays))

        return self.row(name, make, ["needle", *BEST_OF, *["own kernel"] * own], **options)

    def formula(self, name, function, in_library: str, arrays, who=FUNCTIONS, **options) -> Row:
        """A function of Tensors, eager and compiled, and what the other libraries call it."""

        def make(library: Library) -> Callable:
            if library.written:
                return getattr(library.written, in_library)(*arrays)
            return without_graph(library.compile(function), [tensor(a, self.device) for a in arrays])

        return self.row(name, make, who, **options)

    def step(self, name, step, in_library: str, weights, x, y, lr, *optimizer: str, who=FUNCTIONS) -> Row:
        """A step of training, eager and compiled, and what the other libraries call it."""

        def make(library: Library) -> Callable:
            if library.written:
                run, array = getattr(library.written, in_library)(weights, lr, *optimizer), library.array
            else:
                run = library.compile(step(weights, lr, *optimizer, device=self.device))
                array = partial(tensor, device=self.device)
            return partial(run, array(x), array(y))

        return self.row(name, make, who)
