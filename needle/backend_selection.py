"""The array library that needle computes with, chosen by the environment variable ``NEEDLE_BACKEND``.

``nd`` (the default) is `needle.backend_ndarray`, with its devices; ``np`` is NumPy itself. Everything above
asks this module for arrays, devices and functions of arrays, which have the same names in both.
"""

from __future__ import annotations

import os

BACKEND = os.environ.get("NEEDLE_BACKEND", "nd")

if BACKEND == "nd":
    from . import backend_ndarray as array_api
    from .backend_ndarray import (
        Device,
        NDArray,
        all_devices,
        array_from_numpy,
        astype,
        broadcast_to,
        concatenate,
        cpu,
        cpu_numpy,
        cuda,
        default_device,
        device_of,
        elementwise,
        full,
        permute,
        scatter_add,
        stack,
        take,
        to_numpy,
        unstack,
        windows,
    )
elif BACKEND == "np":
    import numpy as array_api  # type: ignore[no-redef]
    from numpy import ndarray as NDArray  # type: ignore[assignment]

    from .backend_numpy import (  # type: ignore[assignment]
        Device,
        all_devices,
        array_from_numpy,
        astype,
        broadcast_to,
        concatenate,
        cpu,
        cpu_numpy,
        cuda,
        default_device,
        device_of,
        elementwise,
        full,
        permute,
        scatter_add,
        stack,
        take,
        to_numpy,
        unstack,
        windows,
    )
else:
    raise ValueError(f"NEEDLE_BACKEND={BACKEND}: there is no such array library; use nd (the default) or np")

__all__ = [
    "BACKEND",
    "Device",
    "NDArray",
    "all_devices",
    "array_api",
    "array_from_numpy",
    "astype",
    "broadcast_to",
    "concatenate",
    "cpu",
    "cpu_numpy",
    "cuda",
    "default_device",
    "device_of",
    "elementwise",
    "full",
    "permute",
    "scatter_add",
    "stack",
    "take",
    "to_numpy",
    "unstack",
    "windows",
]
