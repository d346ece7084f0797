"""The generated source as plain Python: what it reads lies within its array, and was written before.

Most tests run programs so: it takes no time to compile, and it sees what machine code would not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from needle.backend_ndarray.scalar_functions import SCALAR_FUNCTIONS
from needle.compiler import runtime
from needle.compiler.codegen import Part, rows_in, typed
from needle.compiler.lower import Call
from needle.compiler.names import TYPES
from needle.compiler.program import Program


def make_plain(program: Program) -> None:
    """Let a program run its source as plain Python from now on."""
    known = set(program.kept) if any(isinstance(x, Call) for x in program.parts) else set()
    unwritten = {buffer.name for buffer in program.plan.work if buffer in program._kept}
    unwritten |= {buffer.name for buffer, _ in program.results}
    program.kernels.clear()
    for part in program.parts:
        if isinstance(part, Call):
            program.kernels.append(None)
            continue
        name = part.original or part.name
        written = next(x for x in program.parts if isinstance(x, Part) and x.name == name)
        kernel = plain_source(written.source, written.name, unwritten - known | set(part.own))
        if part.length is not None:
            kernel = runtime.shared(kernel, part.length, part.own, threads=1)
        program.kernels.append(_typed(kernel, part))
        known |= set(part.arguments)


def _typed(kernel: Callable, part: Part) -> Callable:
    """What the compiled kernel does with its arguments."""
    kinds = part.arguments.values()

    def run(*given: Any) -> Any:
        return kernel(
            *[x if k.endswith("*") else np.dtype(k).type(x) for x, k in zip(given, kinds, strict=True)]
        )

    return run


def _plus(total, x):
    return total + x


#: Storage that is not written yet holds this byte everywhere.
_UNWRITTEN = 0x7E


class CheckedArray:
    """An array of the debug mode: what is read from it is checked.

    Attributes
    ----------
    values : numpy.ndarray
        With one axis.
    name : str
        What the source calls it.
    """

    def __init__(self, values: np.ndarray, name: str):
        self.values = values
        self.name = name
        self._bits = values.view(f"u{values.itemsize}")
        self._unwritten = int.from_bytes(bytes([_UNWRITTEN] * values.itemsize), "big")

    def __getitem__(self, i: int) -> Any:
        self._check_place(i)
        if self._bits[i] == self._unwritten and self.values.dtype != np.uint8:
            raise IndexError(f"jit: the generated source reads {self.name}[{i}] before it writes it")
        return self.values[i]

    def __setitem__(self, i: int, value: Any) -> None:
        self._check_place(i)
        self.values[i] = value

    def _check_place(self, i: int) -> None:
        if not 0 <= i < self.values.size:
            raise IndexError(f"jit: the generated source uses {self.name}[{i}] of {self.values.size} numbers")

    def matrix(self, start: int, rows: int, columns: int, width: int) -> np.ndarray:
        """A matrix in it, checked as a whole; `width` is from the start of a row to that of the next."""
        if rows and columns:
            if width < columns:
                raise IndexError(f"jit: rows of {columns} numbers in {self.name} begin {width} numbers apart")
            self._check_place(start)
            self._check_place(start + (rows - 1) * width + columns - 1)
        size = self.values.itemsize

        def seen(array: np.ndarray) -> np.ndarray:
            return np.ndarray((rows, columns), array.dtype, array, start * size, (width * size, size))

        if (seen(self._bits) == self._unwritten).any():
            raise IndexError(f"jit: the generated source multiplies {self.name} before it is written")
        return seen(self.values)


def plain_source(source: str, name: str, unwritten: Iterable[str] = ()) -> Callable:
    """The function `name` in `source` as plain Python, for arrays of NumPy's: the debug mode.

    Parameters
    ----------
    source : str
    name : str
    unwritten : iterable of str
        The arguments that hold nothing yet when it is called.
    """
    names = plain_names(source)
    exec(compile(source, "<needle>", "exec"), names)
    plain = names[name]
    arguments = plain.__code__.co_varnames[: plain.__code__.co_argcount]
    unwritten = set(unwritten)

    def run(*values: Any) -> Any:
        given = []
        for argument, x in zip(arguments, values, strict=True):
            if argument in unwritten:
                x.view("u1").fill(_UNWRITTEN)
            given.append(CheckedArray(x, argument) if isinstance(x, np.ndarray) else x)
        with np.errstate(all="ignore"):
            return plain(*given)

    return run


def plain_names(source: str) -> dict[str, Any]:
    """The global names of generated source that runs as plain Python."""
    found: dict[str, Any] = {"__name__": "needle_plain", "inf": math.inf, "nan": math.nan}
    found |= {
        "part": _plain_part,
        "matmul": _plain_matmul,
        "add_matmul": _plain_add_matmul,
        "plus": _plus,
    }
    found |= {name: _plain_cast(name) for name in TYPES}
    found |= {name: _plain_row(*row) for name, row in rows_in(source).items()}
    found |= {typed("local", t): _plain_local(t) for t in (*TYPES, "bool")}
    return found


def _plain_local(dtype: str) -> Callable:
    def local(size: int) -> CheckedArray:
        unwritten = np.full(size * np.dtype(dtype).itemsize, _UNWRITTEN, "u1")
        return CheckedArray(unwritten.view(dtype), "an array")

    return local


def _plain_cast(name: str) -> Callable:
    dtype = np.dtype(name.rstrip("_"))
    return lambda x: np.asarray(x).astype(dtype)[()]


def _plain_row(name: str, t: str) -> Callable:
    """A row of the table for NumPy's scalars of the type `t`."""
    row, dtype = SCALAR_FUNCTIONS[name].numpy, np.dtype(t)

    def function(*operands: Any) -> Any:
        return np.asarray(row(*operands)).astype(dtype)[()]

    return function


def _plain_part(array: CheckedArray, start: int, size: int) -> CheckedArray:
    if not 0 <= start <= start + size <= array.values.size:
        raise IndexError(
            f"jit: the generated source uses {array.name}[{start}:{start + size}] of {array.values.size}"
        )
    return CheckedArray(array.values[start : start + size], f"{array.name} from {start} on, ")


def _plain_matmul(gemm: int, a: tuple, b: tuple, out: tuple, sizes: tuple) -> None:
    (a, a_start, a_width, a_turned), (b, b_start, b_width, b_turned), (m, n, p) = a, b, sizes
    left = a.matrix(a_start, n, m, a_width).T if a_turned else a.matrix(a_start, m, n, a_width)
    right = b.matrix(b_start, p, n, b_width).T if b_turned else b.matrix(b_start, n, p, b_width)
    _plain_product(out, sizes)[...] = left @ right


def _plain_product(out: tuple, sizes: tuple) -> np.ndarray:
    (array, start), (m, _, p) = out, sizes
    return array.values[start : start + m * p].reshape(m, p)


def _plain_add_matmul(scale: float, gemm: int, a: tuple, b: tuple, out: tuple, sizes: tuple) -> None:
    (array, start), (m, _, p) = out, sizes
    before = array.matrix(start, m, p, p).copy()
    _plain_matmul(gemm, a, b, out, sizes)
    _plain_product(out, sizes)[...] *= scale
    _plain_product(out, sizes)[...] += before
