"""Needle: automatic differentiation to read, run and draw.

>>> import needle as ndl
>>> x = ndl.Tensor([1, 2, 3])
>>> (x * x).sum().backward()
>>> x.grad
needle.Tensor([2. 4. 6.])
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# Threads that wait for work should sleep. Those of OpenBLAS, which multiplies matrices for NumPy, keep the
# processors busy for a tenth of a second after each product. Those of OpenMP, which Numba uses where it finds
# no TBB (see numba_kernels.py), try again and again: on busy processors a loop of microseconds then takes
# milliseconds. Each library reads its setting when it is loaded, so this comes before anything loads them.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")  # 2**16 ticks of the clock
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from . import autograd, backend_ndarray, backend_selection, init, nn, ops, optim
from .autograd import Tensor, TensorTuple, gradients, lazy, no_grad, scope
from .backend_selection import (
    BACKEND,
    NDArray,
    all_devices,
    array_api,
    cpu,
    cpu_numpy,
    cuda,
    default_device,
)
from .gradcheck import gradcheck
from .init import ones, ones_like, zeros, zeros_like
from .ops import *
from .ops import __all__ as _ops

if TYPE_CHECKING:
    from . import data, parallel
    from .compiler import jit, scan
    from .diagnostics import diagnose
    from .serialization import load, save

__all__ = [
    "BACKEND", "NDArray", "Tensor", "TensorTuple", "all_devices", "array_api", "autograd", "backend_ndarray",
    "backend_selection", "cpu", "cpu_numpy", "cuda", "data", "default_device", "diagnose", "gradcheck",
    "gradients", "init", "jit", "lazy", "load", "nn", "no_grad", "ones", "ones_like", "ops", "optim",
    "parallel", "save", "scan", "scope", "zeros", "zeros_like", *_ops,
]  # fmt: skip

# What not every program needs is imported when it is first asked for: these modules, and their names.
_LATER = {
    "compiler": ".compiler",
    "data": ".data",
    "diagnose": ".diagnostics",
    "diagnostics": ".diagnostics",
    "jit": ".compiler",
    "load": ".serialization",
    "parallel": ".parallel",
    "save": ".serialization",
    "scan": ".compiler",
    "serialization": ".serialization",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_LATER[name], __name__)
    if name not in globals():  # by now a module is: importing it has seen to that
        globals()[name] = getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
