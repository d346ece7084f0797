"""Run kernels on the simulator with a card's own blocks: ``NUMBA_ENABLE_CUDASIM=1 python cuda_blocks.py``.

The backend makes its blocks tiny for the simulator, and does without warps, which the simulator does not
have. Here the blocks have the size that they have on a card, and a warp's exchange of values is acted out.
"""

from __future__ import annotations

import threading
from collections import defaultdict

import cuda_by_default  # noqa: F401  (its care for threads that wait, and for shared arrays)
import numpy as np
from numba.cuda.simulator import kernelapi

from needle import backend_ndarray as nd
from needle.backend_ndarray import ndarray_backend_numba_cuda as backend

CARD = {
    "THREADS": 256,
    "BLOCKS": 1 << 20,
    "WARP": 32,
    "SHARE": 64,
    "DEPTH": 16,
    "EACH": (8, 4, 2),
    "ENOUGH": 1,
}
CARD |= {"TILE": 16, "COPY_TILE": 32, "COPY_ROWS": 8, "COPY_PITCH": 33}


class Warp:
    """The first warp of a block: a value of each thread, and a point where all of them meet."""

    def __init__(self):
        self.values = [None] * CARD["WARP"]
        self.meeting = threading.Barrier(CARD["WARP"], timeout=60)


warps = defaultdict(Warp)
lock = threading.Lock()


def shfl_down_sync(self, mask, value, distance):
    """What the thread that is `distance` further on gives as `value`."""
    thread = threading.current_thread()
    lane = thread.thread_id
    with lock:
        warp = warps[thread._manager]
    warp.values[lane] = value
    warp.meeting.wait()
    found = warp.values[lane + distance] if lane + distance < len(warp.values) else value
    warp.meeting.wait()
    return found


def numbers(*shape):
    """Small whole numbers, with which float32 arithmetic is exact, for NumPy and on the card."""
    x = np.random.default_rng(0).integers(-9, 9, shape).astype("float32")
    return x, nd.array(x, device=nd.cuda())


def same(array, expected):
    np.testing.assert_array_equal(array.numpy(), expected)
    warps.clear()


kernelapi.FakeCUDAModule.shfl_down_sync = shfl_down_sync
for name, value in CARD.items():
    assert hasattr(backend, name)
    setattr(backend, name, value)

for n in (1, 7, 9, 33, 100, 257, 2047, 16385):
    x, a = numbers(2, n)
    same(a.sum(1), x.sum(1))
    same(a.max(1), x.max(1))
x, a = numbers(700, 5)
same(a.sum(0), x.sum(0))
x, a = numbers(70, 40)
same(a.sum(0), x.sum(0))
same(a.permute((1, 0)).compact(), x.T)
same(a.permute((1, 0)) + a[:1, :1], x.T + x[:1, :1])
for m, n, p, enough in ((33, 17, 40, 10), (70, 20, 35, 2), (129, 18, 130, 1)):
    backend.ENOUGH = enough
    (x, a), (y, b) = numbers(m, n), numbers(n, p)
    same(a @ b, x @ y)
    (x, a), (y, b) = numbers(n, m), numbers(p, n)
    same(a.permute((1, 0)) @ b.permute((1, 0)), x.T @ y.T)
