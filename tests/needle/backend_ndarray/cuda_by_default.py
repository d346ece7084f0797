"""A pytest plugin: `cuda()` is the device of an array that names none, and the only one to test.

``NUMBA_ENABLE_CUDASIM=1 PYTHONPATH=tests/needle/backend_ndarray pytest -p cuda_by_default tests/needle/ops``
runs tests on the simulator, which must be asked for before Numba is imported; without the variable, tests run
on a GPU.
"""

from __future__ import annotations

import os
import sys
import threading

import hypothesis

import needle as ndl

for module in [module for name, module in sys.modules.items() if name.partition(".")[0] == "needle"]:
    for name, replacement in {"default_device": ndl.cuda, "all_devices": lambda: [ndl.cuda()]}.items():
        if hasattr(module, name):
            setattr(module, name, replacement)

if ndl.cuda().enabled():
    ndl.cuda().checks.at_once = True  # tests expect an error where it is made

if os.environ.get("NUMBA_ENABLE_CUDASIM"):
    # A thread of the simulator that looks whether others are ready keeps them waiting for a whole interval.
    sys.setswitchinterval(1e-4)
    # Only one of its threads works at a time. Where something else is at work, too, they take more than twice
    # as long on several processors as on one: the next thread waits there until its processor is free.
    if hasattr(os, "sched_setaffinity"):
        processors = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {processors[os.getpid() % len(processors)]})

    class FewExamples(hypothesis.settings):
        """Hypothesis' settings with fewer examples than a test asks for."""

        def __init__(self, *args, max_examples=25, **options):
            super().__init__(*args, max_examples=min(max_examples, 25), **options)

    hypothesis.settings = FewExamples

    from numba.cuda.simulator.kernelapi import FakeCUDAShared

    class SharedArrays(dict):
        """The simulator's shared arrays, by line of the kernel: each made by one thread of the block.

        The simulator looks whether there is an array and, if not, makes one. Where threads take turns between
        the two, each gets an array of its own. So who finds none keeps the others out until it is made.
        """

        def __init__(self):
            super().__init__()
            self.making = threading.Lock()

        def get(self, line):
            self.making.acquire()
            if line in self:
                self.making.release()
            return super().get(line)

        def __setitem__(self, line, array):
            super().__setitem__(line, array)
            self.making.release()

    def with_shared_arrays(self, size, make=FakeCUDAShared.__init__):
        make(self, size)
        self._allocations = SharedArrays()

    FakeCUDAShared.__init__ = with_shared_arrays
