"""From Python to machine code, without a GPU; and code on disk that the driver does not take any more."""

import os
import shutil
import tempfile

import pytest

from needle.backend_ndarray import launching

linked = launching.machine_code  # the stand-in takes PTX in its place

import on_stand_in  # noqa: E402, F401
from numba import cuda  # noqa: E402


def twice(out, number):
    out[cuda.threadIdx.x] = 2 * number


SIGNATURE = "int64* int64"
for capability in ((7, 5), (8, 0), (9, 0), (12, 0)):
    ptx = launching.to_ptx(twice, SIGNATURE, capability)
    assert ".visible .entry kernel(" in ptx
    assert linked(ptx, capability).startswith(b"\x7fELF"), capability
assert linked(ptx, (99, 9)) == ptx.encode() + b"\0"  # nvJitLink is too old for that: the driver may know it

compiled = []


def make():
    compiled.append(None)
    return twice


def run(kernel):
    address, memory = launching.allocate(3, launching.np.dtype("int64"))
    launching.launch(kernel, 1, 3, address, 21)
    assert launching.download(address, 3, launching.np.dtype("int64")).tolist() == [42] * 3
    del memory


folder = tempfile.mkdtemp()
try:
    os.environ["NUMBA_CACHE_DIR"] = folder
    for _ in range(2):
        run(launching.compile(make, SIGNATURE, "twice"))
    assert len(compiled) == 1  # the second is from disk
    machine_code, launching.machine_code = (
        launching.machine_code,
        lambda ptx, capability: b"not for this driver\0",
    )
    with pytest.raises(launching.DriverError, match="cuModuleLoadData: CUDA_ERROR_INVALID_PTX"):
        launching.compile(make, SIGNATURE, "other")
    launching.machine_code = (
        machine_code  # a newer toolkit, say: what is on disk does not load, and is made anew
    )
    run(launching.compile(make, SIGNATURE, "other"))
    del compiled[:]
    for _ in range(2):
        run(launching.compile(make, SIGNATURE, None))
    assert len(compiled) == 2  # nothing is kept without a key
finally:
    shutil.rmtree(folder)
