"""Needle: automatic differentiation to read, run and draw.

>>> import needle as ndl
>>> x = ndl.Tensor([1, 2, 3])
>>> (x * x).sum().backward()
>>> x.grad
needle.Tensor([2. 4. 6.])
"""

from . import autograd, backend_ndarray, backend_selection, data, init, nn, ops, optim
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
from .diagnostics import diagnose
from .gradcheck import gradcheck
from .init import ones, ones_like, zeros, zeros_like
from .ops import *
from .ops import __all__ as _ops
from .serialization import load, save

__all__ = [
    "BACKEND", "NDArray", "Tensor", "TensorTuple", "all_devices", "array_api", "autograd", "backend_ndarray",
    "backend_selection", "cpu", "cpu_numpy", "cuda", "data", "default_device", "diagnose", "gradcheck",
    "gradients", "init", "lazy", "load", "nn", "no_grad", "ones", "ones_like", "ops", "optim", "save",
    "scope", "zeros", "zeros_like", *_ops,
]  # fmt: skip
