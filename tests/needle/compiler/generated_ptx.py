"""Compile the generated kernels of a model for a GPU that is not here: ``python generated_ptx.py 9.0 ResNet9``.

A step of training is compiled as usual, forward, backward and update. But nothing is launched, so that no driver
is needed, and arrays hold nothing. Prints a line of JSON for each kernel: the model, its source, the types of its
arguments and its assembly code (PTX). Needs numba-cuda and the CUDA toolkit's compiler; where one is missing,
the last line says so and the exit status is 3.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "needle" / "backend_ndarray")]
CAPABILITY = tuple(int(part) for part in sys.argv[1].split("."))

try:
    from numba import cuda

    from needle.backend_ndarray import launching

    cuda.dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=CAPABILITY)
    cuda.compile_ptx(lambda: None, (), cc=CAPABILITY)
except Exception as error:
    print(f"{type(error).__name__}: {error}".splitlines()[0])
    sys.exit(3)

import numpy as np

launching.gpu = lambda: SimpleNamespace(capability=CAPABILITY, processors=132)
launching.compile = lambda make, signature, key: None
launching.launch = lambda kernel, blocks, threads, *arguments: None
launching.allocate = lambda size, dtype: (0, None)
launching.upload = lambda values, address: None
launching.download = lambda address, size, dtype: np.zeros(size, dtype)

import needle as ndl

ndl.cuda()._answer = ""  # it is enabled

import cuda_by_default  # noqa: F401

from needle.backend_ndarray import cublas
from needle.compiler import cuda as compiler
from needle.compiler.kernels import function_of
from tests.needle.compiler.test_training import MODELS, model_side

cublas.multiply = lambda *operands: True
seen: dict[str, None] = {}


def compile_only(kernel, mod):
    signature = " ".join(kernel.arguments.values())
    if kernel.source not in seen:
        seen[kernel.source] = None
        code = launching.to_ptx(function_of(kernel, mod), signature, CAPABILITY)
        print(json.dumps({"model": model, "source": kernel.source, "types": signature, "ptx": code}))


compiler.compile_kernel = compile_only
for model in sys.argv[2:] or MODELS:
    side, batch = model_side(model, "Adam"), MODELS[model][2]
    side.step(*batch)  # the optimiser makes its state
    ndl.jit(side.step).program_for(*batch)
