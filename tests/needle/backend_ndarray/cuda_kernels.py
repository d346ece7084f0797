"""Compile the CUDA kernels for a card that is not here: ``python cuda_kernels.py 7.5`` (compute capability).

Operations on arrays run as usual, but a launch only compiles, and results are whatever the memory held.
Prints a line of JSON for each kernel: its name, the types of its arguments, its assembly code (PTX). Needs
numba-cuda and the CUDA toolkit's compiler; where one is missing, the last line says so and the exit status
is 3.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from types import SimpleNamespace

if find_spec("numba_cuda") is None:  # Numba's own, older CUDA is not what the device uses
    print("The package numba-cuda is missing.")
    sys.exit(3)

import numba
import numpy as np
from numba import cuda

from needle.backend_ndarray import NDArray, elementwise
from needle.backend_ndarray import ndarray_backend_numba_cuda as backend
from needle.backend_ndarray.device import BackendDevice
from needle.backend_ndarray.ndarray import DTYPES
from needle.backend_ndarray.scalar_functions import REDUCTIONS, SCALAR_FUNCTIONS

CAPABILITY = tuple(int(part) for part in sys.argv[1].split("."))
seen = set()


def compile_only(kernel, blocks, threads, *arguments):
    types = tuple(numba.typeof(argument) for argument in arguments)
    if (kernel, types) not in seen:
        seen.add((kernel, types))
        code, _ = cuda.compile_ptx(kernel.py_func, types, cc=CAPABILITY)
        print(
            json.dumps({"kernel": kernel.py_func.__qualname__, "row": row, "types": str(types), "ptx": code})
        )


def run(dtype: np.dtype) -> None:
    global row

    def array(*shape):
        return NDArray.make(shape, device=device, dtype=dtype)

    a, square = array(4, 64, 64), array(64, 64)
    out = array(64, 64)._handle
    for row, function in SCALAR_FUNCTIONS.items():
        if dtype.kind != "f" and row in ("sin", "tanh", "sigmoid", "erf"):  # they are computed in float64
            continue
        if function.arity == 1:
            backend.MAPS[row](square._handle, out)
            backend.MAPS[row](square._handle, out, ((64, 64), (1, 64), 0))
        else:
            backend.ZIPS[row](square._handle, square._handle, out)
            backend.ZIPS[row](square._handle, 1, out)
            backend.ZIPS[row](1, square._handle, out)
            backend.ZIPS[row](square._handle, square._handle, out, ((64, 64), (1, 64), 0, (0, 1), 0))
    for row in REDUCTIONS:
        backend.REDUCES[row](a._handle, out, 4)
        backend.REDUCES[row](a._handle, out, 16, ((64, 4), (1, 64), (2, 8), (512, 64), 0))
    row = ""
    square @ square, a @ a, array(800, 3) @ array(3, 800), array(2048, 3) @ array(3, 2048)
    backend.matmul_tiled(square._handle, square._handle, out, 64, 64, 64)
    index = backend.Array(64, np.int64)
    backend.fill(index, 0)
    backend.gather(square._handle, out, index, 64, 1)
    if dtype.kind == "f" or dtype == np.int64:  # the types of sums
        backend.scatter_add(square._handle, out, index, 64, 1)
    a.fill(1)
    a[:, ::2] = 1
    a[:, ::2] = array(4, 32, 64)
    for kind in DTYPES:
        for view in (a, a[::2, ::2], a.permute((0, 2, 1))):
            view.astype(kind)
    if dtype.kind == "f":
        elementwise("add", a, square)


row = ""
device = BackendDevice("cuda", backend)
cuda.dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=CAPABILITY)
backend.Unused.take = lambda self, size, dtype: np.empty(size, dtype)
backend.Unused.put = lambda self, buffer: None
backend.from_numpy = lambda a, out: None
backend.launch = compile_only

try:
    cuda.compile_ptx(lambda: None, (), cc=CAPABILITY)
except Exception as error:
    print(f"{type(error).__name__}: {error}".splitlines()[0])
    sys.exit(3)
for dtype in DTYPES:
    run(dtype)
