"""The array library that needle computes with, chosen by the environment variable ``NEEDLE_BACKEND``.

``nd`` (the default) is `needle.backend_ndarray`, with its devices; ``np`` is NumPy itself. Everything above
asks this module for arrays, devices and functions of arrays. The names below are all that it asks for, and
both libraries have them.
"""

from __future__ import annotations

import os
from types import ModuleType

BACKEND = os.environ.get("NEEDLE_BACKEND", "nd")

if BACKEND == "nd":
    from . import backend_ndarray as library

    array_api: ModuleType = library
elif BACKEND == "np":
    import numpy

    from . import backend_numpy as library  # type: ignore[no-redef]

    array_api = numpy
else:
    raise ValueError(f"NEEDLE_BACKEND={BACKEND}: there is no such array library; use nd (the default) or np")

NDArray = library.NDArray

Device = library.Device
all_devices = library.all_devices
cpu = library.cpu
cpu_numpy = library.cpu_numpy
cuda = library.cuda
default_device = library.default_device
device_of = library.device_of

adam = library.adam
array_from_numpy = library.array_from_numpy
astype = library.astype
broadcast_to = library.broadcast_to
checked_index = library.checked_index
checked_not_zero = library.checked_not_zero
concatenate = library.concatenate
elementwise = library.elementwise
full = library.full
one_hot = library.one_hot
permute = library.permute
scatter_add = library.scatter_add
softmax_of_rows = library.softmax_of_rows
stack = library.stack
standardized_rows = library.standardized_rows
take = library.take
to_numpy = library.to_numpy
unstack = library.unstack
windows = library.windows
