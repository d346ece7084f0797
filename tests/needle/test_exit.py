"""A program that ends with live Tensors says nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import needle as ndl

PROGRAM = """
import builtins
import needle as ndl

a = ndl.Tensor([1.0, 2.0], device=ndl.{device})
b = (a * a).sum()
b.backward()
a.itself = a  # in a circle
# The last names of a module that lives until the end: those before them are gone when their Tensors go.
builtins.module, ndl.autograd.kept = ndl.autograd, b
ndl.backend_ndarray.kept = ndl.Tensor([3.0], device=ndl.{device})
"""


@pytest.mark.parametrize("device", ndl.autograd.all_devices(), ids=repr)
def test_a_program_ends_without_a_word(device):
    if not device.enabled():
        pytest.skip(f"no GPU: {device.why()}")
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM.format(device=device)], capture_output=True, text=True
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
