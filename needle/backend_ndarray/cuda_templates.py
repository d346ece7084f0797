"""Templates: how a kernel that is written once becomes kernels for all data types.

A template is a function such as ::

    def map_aligned(a, out, n):
        i = cuda.grid(1)
        if i < n:
            out[i] = dtype(f(a[i]))

The names `f` and `dtype` in it stand for a scalar function and a data type, and there are some more; see
`names_for`. A `Template` fills them in, and has the function compiled, when the kernel is first needed. Numba
is imported only for that: a kernel that is on disk needs no compiler.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from .scalar_functions import SCALAR_FUNCTIONS, ScalarFunction
from .shapes import Shape

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") != "0"

if SIMULATED:
    from . import simulator as gpu
else:
    from . import launching as gpu  # type: ignore[no-redef]

IDENTITY = ScalarFunction("copy", lambda x: x, lambda x: x)  # a copy changes nothing but, perhaps, the type


class Template(dict):
    """A kernel for all data types: ``template[dtype]`` is the compiled one.

    Parameters
    ----------
    function : callable
        The kernel in Python.
    arguments : str
        A letter for each of its arguments: a (pointer to numbers), s (pointer to numbers of the data type
        `source`), n (pointer to int64), A (an array of Numba's), x (a number), i (a whole number), p and q (a
        tuple of whole numbers, one for each of `axes`), d (a tuple of two).
    row : ScalarFunction, optional
        What `f` stands for.
    **names
        What other names stand for.
    """

    def __init__(self, function: Callable, arguments: str, row: ScalarFunction | None = None, **names: Any):
        super().__init__()
        self.function = function
        self.arguments = arguments
        self.row = row
        self.names = names

    def __missing__(self, dtype: np.dtype) -> Any:
        found = self[dtype] = self.version(dtype)
        return found

    def version(
        self, dtype: np.dtype, axes: Shape = (), source: np.dtype | None = None, **constants: int
    ) -> Any:
        """The compiled kernel for a data type, numbers of axes, and values of names in the function."""
        which = (dtype, axes, source, *constants.values())
        if (kernel := self.get(which)) is None:
            with _compiling:
                if (kernel := self.get(which)) is None:
                    kernel = self[which] = self._compiled(dtype, axes, source or dtype, constants)
        return kernel

    def _compiled(self, dtype: np.dtype, axes: Shape, source: np.dtype, constants: dict[str, int]) -> Any:
        kinds = {"a": f"{stored(dtype)}*", "s": f"{stored(source)}*", "n": "int64*", "i": "int64"}
        kinds |= {"A": f"{stored(dtype)}[]", "x": stored(dtype), "d": "int64[2]"}
        kinds |= {letter: f"int64[{count}]" for letter, count in zip("pq", axes, strict=False)}
        signature = " ".join(kinds[letter] for letter in self.arguments)
        row = self.row
        key = None  # a row of your own may mean something else next time
        if row is None or is_ours(row):
            name = row.name if row else ""
            key = f"{sources()} {self.function.__name__} {name} {dtype} {self.arguments} {constants}"
        names = {"origin": np.dtype(stored(source)).type} | self.names | constants
        return gpu.compile(lambda: filled_in(self.function, names_for(dtype, row) | names), signature, key)


_compiling = threading.RLock()


def is_ours(row: ScalarFunction) -> bool:
    """Whether a row comes with the library, whose sources say what it does."""
    return row.python.__module__.startswith(f"{__package__}.")


def stored(dtype: np.dtype) -> str:
    """The name of the type with which a kernel reads and writes numbers: booleans are 0 and 1."""
    return "uint8" if dtype == np.bool_ else dtype.name


def names_for(dtype: np.dtype, row: ScalarFunction | None = None) -> dict[str, Any]:
    """What a template's names stand for."""
    wide = dtype.type if dtype.kind == "f" else np.int64
    bounds = np.finfo(wide) if dtype.kind == "f" else np.iinfo(wide)
    names: dict[str, Any] = {"wide": wide, "lowest": wide(bounds.min)}
    names["dtype"] = number_type(dtype) if SIMULATED or dtype != np.bool_ else _truth
    names |= {name: scalar_function(SCALAR_FUNCTIONS[name], dtype) for name in ("exp", "log")}
    if row is not None:
        names["f"] = scalar_function(row, dtype)
        names["neutral"] = _neutral(row.name, wide)
    return names


def _neutral(name: str, wide: Any) -> Any:
    """What a total begins with: ``f(neutral, x)`` is x."""
    if issubclass(wide, np.floating):
        return wide({"maximum": -math.inf, "minimum": math.inf, "multiply": 1}.get(name, -0.0))
    bounds = np.iinfo(wide)
    return wide({"maximum": bounds.min, "minimum": bounds.max, "multiply": 1}.get(name, 0))


def number_type(dtype: np.dtype) -> Any:
    """What makes a number of this type of another number."""
    return gpu.NumberType(dtype) if SIMULATED else dtype.type


def _truth(x):
    return x != 0


def scalar_function(row: ScalarFunction, dtype: np.dtype) -> Callable:
    """The function of a row, to be called by a kernel for numbers of type `dtype`.

    The simulator runs a kernel in Python, which raises an exception where IEEE arithmetic gives an infinity
    or NaN. So it uses NumPy's form there, on one number at a time.
    """
    if SIMULATED:
        return row.numpy
    return WITHOUT_DOUBLES.get(row.name, row.python) if dtype == np.float32 else row.python


def _sigmoid(x):
    one = np.float32(1)
    return one / (one + math.exp(-x)) if x >= 0 else math.exp(x) / (one + math.exp(x))


def _sign(x):
    return x if x != x else np.float32((x > 0) - (x < 0))


#: Numba computes the sum of a whole number and a float32 in float64, which is slow on most GPUs. Rows of the
#: table in which that happens have another version here.
WITHOUT_DOUBLES = {"sigmoid": _sigmoid, "sign": _sign}


def filled_in(function: Callable, names: dict[str, Any]) -> Callable:
    """A template with its names filled in. What it calls is compiled for the GPU, too."""
    from numba import cuda

    home, names = function.__globals__, names | {"cuda": cuda}
    world: dict[str, Any] = home | names

    def prepared(function: Any) -> FunctionType:
        for name in function.__code__.co_names:
            called = world.get(name)
            if isinstance(called, FunctionType) and called.__globals__ is not world:
                if called.__globals__ is home and not names.keys().isdisjoint(_names_in(called)):
                    called = prepared(called)
                world[name] = called_by_kernels(called)
        return FunctionType(function.__code__, world, function.__name__, None, function.__closure__)

    return prepared(function)


def _names_in(function: FunctionType) -> set[str]:
    """The names in a function and in those of its file that it calls."""
    found = set(function.__code__.co_names)
    for called in [function.__globals__.get(name) for name in found]:
        if isinstance(called, FunctionType) and called.__globals__ is function.__globals__:
            found |= _names_in(called)
    return found


@cache
def called_by_kernels(function: Callable) -> Callable:
    """What kernels call for a function, compiled once for all of them; the simulator calls it as it is."""
    from numba import cuda

    return function if SIMULATED else cuda.jit(device=True)(function)


@cache
def sources() -> str:
    """What the library's kernels are made of."""
    folder = Path(__file__).parent
    files = ("ndarray_backend_numba_cuda.py", "cuda_templates.py", "scalar_functions.py")
    return "".join((folder / file).read_text("utf-8") for file in files)
