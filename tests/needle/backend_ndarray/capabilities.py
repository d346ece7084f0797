"""Kernels compiled for GPUs that are not here: `stand_in` before anything else, then `ptx_of`."""

from __future__ import annotations

from types import SimpleNamespace

import numba.cuda.dispatcher
import numpy as np
from numba.cuda.compiler import _compile_pyfunc_with_fixup

from needle.backend_ndarray import cublas, launching

CAPABILITIES = [(7, 5), (8, 0), (9, 0)]
_compiled: set[str] = set()


def stand_in() -> None:
    """Let operations on arrays run as usual, but launch nothing; arrays hold nothing."""
    found = SimpleNamespace(capability=CAPABILITIES[0], compute_capability=CAPABILITIES[0], processors=132)
    numba.cuda.dispatcher.get_current_device = launching.gpu = lambda: found
    launching.launch = launching.upload = lambda *arguments: None
    launching.allocate = lambda size, dtype: (0, None)
    launching.download = lambda address, size, dtype: np.zeros(size, dtype)
    cublas.library = lambda: None


def ptx_of(function, signature: str) -> list[str]:
    """A kernel in PTX, as `launching.to_ptx` makes it: the first of its name for each capability.

    The others are made for the first capability only: the PTX for another differs in its head alone.
    """
    capabilities = CAPABILITIES[:1] if function.__name__ in _compiled else CAPABILITIES
    _compiled.add(function.__name__)
    types = launching.types_of(signature)
    library, _ = _compile_pyfunc_with_fixup(function, types, device=False, abi="numba", cc=CAPABILITIES[0])
    return [library.get_asm_str(cc=capability) for capability in capabilities]
