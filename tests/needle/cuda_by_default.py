"""A pytest plugin: `cuda()` is the device of an array that names none, and the only one to test.

``NUMBA_ENABLE_CUDASIM=1 PYTHONPATH=tests/needle pytest -p cuda_by_default tests/needle/test_ndarray.py`` runs
tests on the simulator, which must be asked for before Numba is imported; without the variable, on a card.
"""

from __future__ import annotations

import os
import sys

import hypothesis

import needle as ndl

for module in [module for name, module in sys.modules.items() if name.partition(".")[0] == "needle"]:
    for name, replacement in {"default_device": ndl.cuda, "all_devices": lambda: [ndl.cuda()]}.items():
        if hasattr(module, name):
            setattr(module, name, replacement)

if os.environ.get("NUMBA_ENABLE_CUDASIM"):
    # A thread of the simulator that looks whether others are ready keeps them waiting for a whole interval.
    sys.setswitchinterval(1e-4)

    class FewExamples(hypothesis.settings):
        """Hypothesis' settings with fewer examples than a test asks for."""

        def __init__(self, *args, max_examples=25, **options):
            super().__init__(*args, max_examples=min(max_examples, 25), **options)

    hypothesis.settings = FewExamples
