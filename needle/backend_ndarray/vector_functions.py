"""Branch-free forms of scalar functions, which a compiler turns into vector instructions.

In a loop `math.exp` is a call per element. Below is nothing but arithmetic and selection, in one data type:
every constant is a NumPy scalar, because `float32 * 0.5` is computed in float64 by Numba.
"""

from __future__ import annotations

import numpy as np

ONE = np.float32(1)
LOWEST, HIGHEST = np.float32(-104), np.float32(89)
LOG2_E = np.float32(1.4426950408889634)
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
SHIFT = np.float32(1.5 * 2**23 + 254)
E2, E3, E4, E5, E6 = (np.float32(1 / n) for n in (2, 6, 24, 120, 720))
INT_1, INT_23 = np.int32(1), np.int32(23)


def exp32(x):
    """e**x in float32."""
    x = min(max(x, LOWEST), HIGHEST)
    shifted = x * LOG2_E + SHIFT
    n = shifted - SHIFT
    r = x - n * LN2_HIGH - n * LN2_LOW
    p = ONE + r * (ONE + r * (E2 + r * (E3 + r * (E4 + r * (E5 + r * E6)))))
    bits = np.float32(shifted).view(np.int32)
    half = bits >> INT_1
    return p * np.int32(half << INT_23).view(np.float32) * np.int32((bits - half) << INT_23).view(np.float32)


def sigmoid32(x):
    """1 / (1 + e**-x) in float32."""
    e = exp32(-abs(x))
    return (e if x < 0 else ONE) / (ONE + e)
