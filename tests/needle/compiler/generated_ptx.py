"""Compile the kernels of models for GPUs that are not here: ``python generated_ptx.py CNN``.

Each model's step of training is compiled as usual, forward, backward and update. With the name ``rows``, so
are functions of rows that are as long as they may be on a GPU. But nothing is launched, and arrays hold
nothing. Prints a line of JSON for each kernel: its source, the types of its arguments, and its PTX,
as a list (see `ptx_of`). Needs numba-cuda with the CUDA toolkit.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "needle" / "backend_ndarray")]

from capabilities import ptx_of, stand_in  # noqa: E402

stand_in()

import needle as ndl  # noqa: E402
from needle import nn  # noqa: E402
from needle.backend_ndarray import cublas, launching  # noqa: E402

launching.compile = lambda make, signature, key: None
cublas.takes = lambda *operands: True
cublas.multiply = lambda *operands: None
ndl.cuda()._answer = ""  # it is enabled

import cuda_by_default  # noqa: E402, F401

from needle.compiler import cuda  # noqa: E402
from needle.compiler.kernels import function_of  # noqa: E402
from tests.needle.compiler.test_training import MODELS, model_side  # noqa: E402

seen: set[str] = set()


def compile_only(kernel, mod):
    """Compile a kernel, unless there was one that is the same but for its names and, without lanes, sizes."""
    numbers = r"(?<=[a-z_])\d+" if "lane" in kernel.source else r"\d+"
    form = re.sub(numbers, "", kernel.source.partition(":\n")[2])
    if form not in seen:
        seen.add(form)
        signature = " ".join(kernel.arguments.values())
        ptx = ptx_of(function_of(kernel, mod), signature)
        print(json.dumps({"source": kernel.source, "signature": signature, "ptx": ptx}))


def zeros(*shape: int, dtype: str = "float32") -> ndl.Tensor:
    return ndl.Tensor(np.zeros(shape), dtype=dtype)


def with_backward(f):
    def step(*operands):
        result = f(*operands).sum()
        result.backward()
        return result

    return step


def rows() -> dict:
    """Functions of rows, and what they take."""
    heads = [zeros(8, 4, 128, 16) for _ in range(3)]
    return {
        "softmax": (ndl.softmax, [zeros(8192, 1024)]),
        "a long softmax": (ndl.logsoftmax, [zeros(512, 5000)]),
        "layer norm": (with_backward(nn.LayerNorm1d(1024)), [zeros(8192, 1024)]),
        "loss": (with_backward(nn.SoftmaxLoss()), [zeros(128, 1000), zeros(128, dtype="int64")]),
        "attention": (with_backward(lambda *x: nn.MultiHeadAttention(causal=True)(*x)[0]), heads),
        "columns": (with_backward(nn.BatchNorm1d(512)), [zeros(4096, 512)]),
        "images": (with_backward(nn.BatchNorm2d(64)), [zeros(64, 64, 32, 32)]),
    }


cuda.compile_kernel = compile_only
for name in sys.argv[1:]:
    if name == "rows":
        for f, operands in rows().values():
            ndl.jit(f).program_for(*operands)
        continue
    side, batch = model_side(name, "Adam"), MODELS[name][2]
    side.step(*batch)  # the optimiser makes its state
    ndl.jit(side.step).program_for(*batch)
