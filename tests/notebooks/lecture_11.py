"""Lecture 11: what its prose claims, and what proves it."""

from __future__ import annotations

SHOWN = [
    (
        "one-row",
        "in less than a tenth of a millisecond",
        "hook-code",
        "bytes: 1,073,741,824\nelement [5, 3] of the transpose: 42.0\nin less than 0.1 milliseconds: True\n"
        "in the very same memory: True\n",
    ),
    (
        "view",
        "for the same storage",
        "transpose",
        "(4, 3) (1, 4) 0 same storage: True\n<PictureFigure size 494.444x395.972 with 1 Axes>",
    ),
    (
        "drag-intro",
        "a start moves the offset, a step multiplies the stride, and both may shorten the axis",
        "backwards",
        "a[:, ::-1]  shape (3, 4), strides (4, -1), offset 3  (NumPy: strides (16, -4))\n"
        "a[1:]       shape (2, 4), strides (4, 1), offset 4  (NumPy: strides (16, 4))\n"
        "a[:, 1::2]  shape (3, 2), strides (4, 2), offset 1  (NumPy: strides (16, 8))\n",
    ),
    (
        "exercise-stretch",
        "all the others see it",
        "write",
        "[[9. 2. 3.]\n [9. 2. 3.]\n [9. 2. 3.]\n [9. 2. 3.]]\nrow: [9. 2. 3.]\n",
    ),
    (
        "exercise-copy",
        "Where strides can express the new shape, you get a view, otherwise a copy",
        "reshape-code",
        "a        to shape (2, 6)   : a view, strides (6, 1)\n"
        "t        to shape (12,)    : a copy\n"
        "a[::2]   to shape (2, 2, 2): a view, strides (8, 2, 1)\n"
        "a[:, :2] to shape (6,)     : a copy\n",
    ),
    (
        "needed",
        "A view is free. Its compact copy costs the whole array once more",
        "cost",
        "big.permute((1, 0))            0 MB\nbig.permute((1, 0)).compact()  67 MB\n"
        "big.compact()                  0 MB\nbig.permute((1, 0)) + 1        67 MB\n"
        "big.permute((1, 0)).sum()      0 MB\n"
        "the copy takes more than a hundred times as long as the view: True\n"
        "elements of corner: 4   kept in memory: 268,435,456\nafter compact(): 4\n",
    ),
    (
        "edges-intro",
        "591 million elements, out of 295,936 cells",
        "gigabyte",
        "windows: (496, 496, 49, 49) would take 2,362,737,664 bytes\nstored:  1,183,744 bytes\n"
        "memory to add them up: 1 MB\nas NumPy has it, at three places: True\n",
    ),
    (
        "edges-intro",
        "checks the result",
        "edges",
        "as ndl.conv has it: True\n<PictureFigure size 900x320 with 3 Axes>",
    ),
]

TRUE = [
    ("hook", "16,384 rows of 16,384 numbers, 4 bytes each", "16_384**2 * 4 == 2**30"),
    ("one-row", "all 268 million numbers", "round(16_384**2 / 1e6) == 268"),
    ("hook", "Underneath every Tensor", "isinstance(ndl.Tensor([1.0]).realize_cached_data(), NDArray)"),
    (
        "one-row",
        "The orange element is `a[1, 2]`, in cell 6",
        "a[1, 2].numpy().item() == cell_of((1, 2), (4, 1), 0) == 6",
    ),
    ("exercise-cells", "in `a` a step down is 4 cells", "a.strides == (4, 1)"),
    ("cells-solution", "2 hours and 3 minutes", "divmod(7384, 60) + divmod(123, 60) == (123, 4, 2, 3)"),
    ("cells-solution", "each is the product", "NDArray(np.ones((2, 3, 4))).strides == (12, 4, 1)"),
    (
        "cells-solution",
        "NumPy has this as `np.unravel_index`",
        "all(index_of(k, (2, 3, 4)) == np.unravel_index(k, (2, 3, 4)) for k in range(24))",
    ),
    (
        "drag-intro",
        "NumPy counts its strides in bytes, and a float32 takes 4 of them",
        "all(tuple(4 * s for s in x.strides) == y.strides for x, y in [(a, b), (a.permute((1, 0)), b.T)])",
    ),
    ("views-solution", "flipping twice", "flipped(*flipped((3, 4), (4, 1), 0, 0), 0) == ([3, 4], [4, 1], 0)"),
    (
        "refusal-after",
        "`per_row.reshape((5, 1))` is a column",
        "(scores + column).numpy()[:, 2].tolist() == per_row.numpy().tolist()",
    ),
    (
        "summary",
        "fifteen elements live in five cells",
        "[(x.size, x.storage.size) for x in [column.broadcast_to((5, 3))]] == [(15, 5)]",
    ),
    (
        "exercise-stretch",
        "NumPy's `broadcast_to` gives you a read-only view",
        "not np.broadcast_to(np.ones(3), (4, 3)).flags.writeable",
    ),
    (
        "stretch-solution",
        "so both strides are 0",
        "(*NDArray([[1]]).broadcast_to((3, 4)).strides, *row.broadcast_to((4, 3)).strides[:1]) == (0, 0, 0)",
    ),
    (
        "exercise-copy",
        "the next row begins in cell 4",
        "a[:, :2].shape == (3, 2) and cell_of((1, 0), a[:, :2].strides, 0) == 4",
    ),
    ("copy-solution", "backwards from end to end", "a[::-1, ::-1].reshape((12,)).strides == (-1,)"),
    (
        "copy-solution",
        "Every second element",
        "NDArray(np.ones((3, 8)))[:, ::2].reshape((12,)).strides == (2,)",
    ),
    (
        "copy-solution",
        "and rows that were repeated by stride 0",
        "all(must_copy(x.shape, x.strides) for x in [t, a[:, :2], row.broadcast_to((4, 3))])",
    ),
    ("compact", "a table of 67 megabytes", "round(big.size * 4 / 1e6) == 67"),
    (
        "compact",
        "for the axes that it joins",
        "a[:, :2].reshape((3, 1, 2)).storage is a.storage and must_copy((3, 2), (4, 1))",
    ),
    (
        "needed",
        "It would read `t` as 0, 1, 2, …: the right numbers in the wrong order",
        "t.storage is a.storage and t.numpy().ravel().tolist()[:4] == [0, 4, 8, 1]",
    ),
    ("exercise-windows", "8 − 3 + 1 = 6 windows of three", "8 - 3 + 1 == len(triples.numpy()) == 6"),
    (
        "exercise-windows",
        "you have a moving average",
        "np.allclose((triples.sum(axis=1) / 3).numpy(), np.convolve(range(8), [1 / 3] * 3, 'valid'))",
    ),
    (
        "windows-of-image-solution",
        "NumPy has this as",
        "np.array_equal(windows(a, (2, 2)).numpy(), "
        "np.lib.stride_tricks.sliding_window_view(a.numpy(), (2, 2)))",
    ),
    (
        "pay-off",
        "The `reshape` that joins the axes must copy",
        "digit.broadcast_to((8, 48, 8, 48)).reshape((384, 384)).storage is not digit.storage",
    ),
    ("edges-intro", "The 1 MB is their result", "round(sums.size * 4 / 1e6) == 1"),
    (
        "edges-intro",
        "Blur it again, over 25 × 25 pixels",
        "np.allclose(smooth.numpy()[100, 200], (sums / 49**2)[100:125, 200:225].mean(), atol=1e-4)",
    ),
    (
        "edges-intro",
        "Transposed, which costs nothing, it takes what is below minus what is above",
        "np.isclose(down.numpy()[99, 99], ((smooth.numpy()[101, 99:102] - smooth.numpy()[99, 99:102]) "
        "* [1, 2, 1]).sum(), atol=1e-5)",
    ),
    (
        "edges-intro",
        "nine for each pixel",
        "(slide(smooth, (3, 3)) * kernel).storage.size == 9 * across.size",
    ),
    ("summary", "1 within a row, and 3", "np.diff(a[:, :2].numpy().ravel()).tolist() == [1, 3, 1, 3, 1]"),
    ("summary", "These are four numbers", "len(table.shape) + len(table.strides) == 4"),
]
