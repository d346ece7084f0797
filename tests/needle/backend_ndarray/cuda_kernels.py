"""Compile the CUDA kernels for GPUs that are not here: ``python cuda_kernels.py float32``.

Operations on arrays run as usual, but nothing is launched. Prints a line of JSON for each kernel: its name,
the row of the table that it is for, its signature, and its PTX, as a list (see `ptx_of`). Needs numba-cuda
with the CUDA toolkit.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from capabilities import ptx_of, stand_in

from needle.backend_ndarray import NDArray, elementwise, launching

stand_in()

from needle.backend_ndarray import ndarray_backend_numba_cuda as backend  # noqa: E402
from needle.backend_ndarray.device import BackendDevice  # noqa: E402
from needle.backend_ndarray.ndarray import DTYPES  # noqa: E402
from needle.backend_ndarray.scalar_functions import REDUCTIONS, SCALAR_FUNCTIONS  # noqa: E402

row = ""


def compile_only(make, signature, key):
    function = make()
    found = {"name": function.__name__, "row": row, "signature": signature}
    print(json.dumps(found | {"ptx": ptx_of(function, signature)}))


def run(dtype: np.dtype) -> None:
    """Make use of every kernel, for numbers of one data type."""
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
        backend.REDUCES[row](a._handle, out, 4, ((4096,), (1,), (4,), (4096,), 0))
    row = ""
    square @ square, a @ a, array(8000, 3) @ array(3, 8000)
    backend.matmul_tiled(square._handle, square._handle, out, 64, 64, 64)
    index = backend.Array(64, np.int64)
    backend.gather(square._handle, out, index, 64, 1)
    if dtype.kind == "f" or dtype == np.int64:  # the types of sums
        backend.scatter_add(square._handle, out, index, 64, 1)
    backend.checked_index(square, 64, str, True)
    backend.one_hot(array(4), 3, dtype)
    backend.checked_not_zero(square, "")
    a.fill(1)
    a[:, ::2] = 1
    a[:, ::2] = array(4, 32, 64)
    for kind in DTYPES:
        for view in (a, a[::2, ::2], a.permute((0, 2, 1))):
            view.astype(kind)
    if dtype.kind == "f":
        elementwise("add", a, square)
        backend.adam(*[square] * 4, *[0.5] * 9)
        for length in (5, 100, 300, 1000, 2000, 8000):
            backend.softmax(array(2, length), False)
            backend.softmax(array(2, length), True)
            backend.standardize(array(2, length), 1e-5)


launching.compile = compile_only
device = BackendDevice("cuda", backend)
run(np.dtype(sys.argv[1]))
