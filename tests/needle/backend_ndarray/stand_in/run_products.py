"""Matrix products on the stand-in, with a cuBLAS in Python that reads column by column, as the real one."""

import ctypes
from types import SimpleNamespace

import numpy as np
import on_stand_in  # noqa: F401  (the driver of this process)

import needle as ndl
from needle import backend_ndarray as nd
from needle.backend_ndarray import cublas

CUDA = ndl.cuda()
calls = []


def matrix(dtype, address, rows, columns, pitch):
    """A view of memory, whose columns are `pitch` numbers apart."""
    assert pitch >= rows
    size = dtype.itemsize
    memory = (ctypes.c_byte * ((pitch * (columns - 1) + rows) * size)).from_address(address)
    return np.lib.stride_tricks.as_strided(
        np.frombuffer(memory, dtype), (rows, columns), (size, pitch * size)
    )


def multiply(dtype, as_a, as_b, m, n, k, a, b, c):
    a, b = ((matrix(dtype, x[0], *shape[:: -1 if kind else 1], x[1]), kind) for x, shape, kind in (
        (a, (m, k), as_a), (b, (k, n), as_b)))  # fmt: skip
    product = (a[0].T if a[1] else a[0]) @ (b[0].T if b[1] else b[0])
    matrix(dtype, c[0], m, n, c[1])[...] = product


def one(dtype):
    def gemm(handle, as_a, as_b, m, n, k, alpha, a, a_pitch, b, b_pitch, beta, c, c_pitch):
        calls.append(1)
        multiply(dtype, as_a, as_b, m, n, k, (a, a_pitch), (b, b_pitch), (c, c_pitch))
        return 0

    return gemm, 1, 0


def each(dtype):
    def gemm(
        handle,
        as_a,
        as_b,
        m,
        n,
        k,
        alpha,
        a,
        a_pitch,
        a_step,
        b,
        b_pitch,
        b_step,
        beta,
        c,
        c_pitch,
        c_step,
        count,
    ):
        calls.append(count)
        for i in range(count):
            places = ((x + i * step * dtype.itemsize, pitch) for x, pitch, step in (
                (a, a_pitch, a_step), (b, b_pitch, b_step), (c, c_pitch, c_step)))  # fmt: skip
            multiply(dtype, as_a, as_b, m, n, k, *places)
        return 0

    return gemm, 1, 0


floats = [np.dtype("float32"), np.dtype("float64")]
found = SimpleNamespace(handle=None, one={t: one(t) for t in floats}, each={t: each(t) for t in floats})


def products(expected_calls, make, *shapes, dtype="float32"):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-9, 9, shape).astype(dtype) for shape in shapes)
    calls.clear()
    ours = make(*(nd.array(z, dtype, CUDA) for z in (x, y))).numpy()
    assert calls == expected_calls, calls
    return ours, x, y


def equal(found, expected):
    np.testing.assert_array_equal(found, expected)


def turned(a):
    return a.permute((*range(a.ndim - 2), a.ndim - 1, a.ndim - 2))


for library in (found, None):  # with cuBLAS, and by our own kernel
    cublas.library = lambda library=library: library
    once = [1] if library else []
    for dtype in ("float32", "float64"):
        for m, n, p in ((3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (1, 1, 1), (1, 6, 1), (130, 17, 70)):
            ours, x, y = products(once, lambda a, b: a @ b, (m, n), (n, p), dtype=dtype)
            equal(ours, x @ y)
            ours, x, y = products(once, lambda a, b: turned(a) @ b, (n, m), (n, p), dtype=dtype)
            equal(ours, x.T @ y)
            ours, x, y = products(once, lambda a, b: a @ turned(b), (m, n), (p, n), dtype=dtype)
            equal(ours, x @ y.T)
            ours, x, y = products(once, lambda a, b: turned(a) @ turned(b), (n, m), (p, n), dtype=dtype)
            equal(ours, x.T @ y.T)
    ours, x, y = products(once, lambda a, b: a[1:, 2:] @ b[:6, 1:], (5, 8), (9, 4))
    equal(ours, x[1:, 2:] @ y[:6, 1:])
    batch = [6] if library else []
    ours, x, y = products(batch, lambda a, b: a @ b, (6, 3, 4), (6, 4, 5))
    equal(ours, x @ y)
    ours, x, y = products(batch, lambda a, b: a @ turned(b), (2, 3, 3, 4), (2, 3, 5, 4))
    equal(ours, x @ y.swapaxes(-1, -2))
    ours, x, y = products(batch, lambda a, b: a @ b, (6, 3, 4), (4, 5))
    equal(ours, x @ y)
    heads = [4] * 2 if library else []  # heads of two sequences, whose axes do not merge
    ours, x, y = products(
        heads, lambda q, k: q.permute((0, 2, 1, 3)) @ k.permute((0, 2, 3, 1)), *[(2, 5, 4, 3)] * 2
    )
    equal(ours, x.transpose(0, 2, 1, 3) @ y.transpose(0, 2, 3, 1))
    ours, x, y = products(
        [], lambda a, b: a[:, ::2] @ b, (3, 8), (4, 5)
    )  # neither rows nor columns are whole
    equal(ours, x[:, ::2] @ y)
    ours, x, y = products([], lambda a, b: a @ b, (3, 4), (4, 5), dtype="int32")
    equal(ours, x @ y)
assert "pip install nvidia-cublas" in cublas.why_not(), cublas.why_not()
