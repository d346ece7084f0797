"""Lecture 11: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations


def answer(head: str, *lines: str) -> str:
    """The source of an answer, from its name with its arguments and its lines."""
    return f"def {head}:\n    " + "\n    ".join(lines)


CELL = "cell_of(index, strides, offset)"
INDEX = "index_of(cell, shape)"
PERMUTED = "permuted(shape, strides, offset, axes)"
SLICED = "sliced(shape, strides, offset, axis, start, step)"
LISTS = "shape, strides = list(shape), list(strides)"
FLIPPED = "flipped(shape, strides, offset, axis)"
STRETCHED = "stretched_strides(shape, strides, new_shape)"
COPY = "must_copy(shape, strides)"
WINDOWS = "windows(image, size)"
SIZES = "(H, W), (h, w) = image.shape, size"
STEPS = "down, right = image.strides"

SHOWN = [
    (
        "one-row",
        "for all 268 million numbers, in less than a tenth of a millisecond",
        "hook-code",
        "bytes: 1,073,741,824\nelement [5, 3] of the transpose: 42.0\nin less than 0.1 milliseconds: True\n"
        "in the very same memory: True\n",
    ),
    (
        "view",
        "another shape, other strides or another offset for the same storage",
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
        "whoever writes through one of them writes for all",
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
        "is the second opinion",
        "edges",
        "as ndl.conv has it: True\n<PictureFigure size 900x320 with 3 Axes>",
    ),
]

TRUE = [
    ("hook", "16,384 rows of 16,384 numbers, 4 bytes each", "16_384**2 * 4 == 2**30"),
    ("one-row", "all 268 million numbers", "round(16_384**2 / 1e6) == 268"),
    (
        "hook",
        "Underneath every Tensor lies an `NDArray`",
        "isinstance(ndl.Tensor([1.0]).realize_cached_data(), NDArray)",
    ),
    ("one-row", "with the numbers 0 to 11", "a.numpy().ravel().tolist() == list(range(12))"),
    (
        "one-row",
        "The orange element is `a[1, 2]`, in cell 6",
        "a[1, 2].numpy().item() == cell_of((1, 2), (4, 1), 0) == 6",
    ),
    (
        "exercise-cells",
        "in `a` a step down is 4 cells, since a row is 4 long, and a step to the right is 1",
        "a.strides == (4, 1)",
    ),
    ("exercise-cells", "`divmod(6, 4)` gives 1 and 2", "divmod(6, 4) == (1, 2)"),
    (
        "cells-solution",
        "7,384 seconds are 123 minutes and 4 seconds, and 123 minutes are 2 hours and 3 minutes",
        "divmod(7384, 60) == (123, 4) and divmod(123, 60) == (2, 3)",
    ),
    (
        "cells-solution",
        "each is the product of the lengths after it",
        "NDArray(np.ones((2, 3, 4))).strides == (12, 4, 1)",
    ),
    (
        "cells-solution",
        "NumPy has this as `np.unravel_index`",
        "all(index_of(k, (2, 3, 4)) == np.unravel_index(k, (2, 3, 4)) for k in range(24))",
    ),
    (
        "view",
        "The memory is still 0, 1, 2, …",
        "t.storage is a.storage and a[2, 3].numpy() == 11",
    ),
    (
        "drag-intro",
        "NumPy counts its strides in bytes, and a float32 takes 4 of them",
        "all(tuple(4 * s for s in x.strides) == y.strides for x, y in [(a, b), (a.permute((1, 0)), b.T)])",
    ),
    (
        "views-solution",
        "flipping twice gives you back the array you began with",
        "flipped(*flipped((3, 4), (4, 1), 0, 0), 0) == ([3, 4], [4, 1], 0)",
    ),
    (
        "refusal-after",
        "`per_row.reshape((5, 1))` is a column",
        "(scores + column).numpy()[:, 2].tolist() == per_row.numpy().tolist()",
    ),
    (
        "refusal-after",
        "its missing axis counts as 1, and stretches",
        "np.broadcast_shapes((3,), (5, 3)) == (5, 3)",
    ),
    (
        "summary",
        "How can fifteen elements live in five cells?",
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
    ("exercise-copy", "one step down, since 4 · 1 = 4", "not must_copy(a.shape, a.strides)"),
    (
        "exercise-copy",
        "2 · 1 is not 4",
        "a[:, :2].strides == (4, 1) and must_copy((3, 2), (4, 1))",
    ),
    (
        "exercise-copy",
        "After two steps you stand in cell 2, but the next row begins in cell 4",
        "a[:, :2].shape == (3, 2) and cell_of((1, 0), a[:, :2].strides, 0) == 4",
    ),
    (
        "copy-solution",
        "so does an array that is read backwards from end to end",
        "a[::-1, ::-1].reshape((12,)).strides == (-1,)",
    ),
    (
        "copy-solution",
        "Every second element passes, too",
        "NDArray(np.ones((3, 8)))[:, ::2].reshape((12,)).strides == (2,)",
    ),
    (
        "copy-solution",
        "What must copy: `t`, `a[:, :2]`, and rows that were repeated by stride 0",
        "all(must_copy(x.shape, x.strides) for x in [t, a[:, :2], row.broadcast_to((4, 3))])",
    ),
    ("compact", "a table of 67 megabytes", "round(big.size * 4 / 1e6) == 67"),
    (
        "compact",
        "of the axes that it joins",
        "a[:, :2].reshape((3, 1, 2)).storage is a.storage and must_copy((3, 2), (4, 1))",
    ),
    (
        "needed",
        "It would read `t` as 0, 1, 2, …: the right numbers in the wrong order",
        "t.storage is a.storage and t.numpy().ravel().tolist()[:4] == [0, 4, 8, 1]",
    ),
    ("needed", "the sum is a single number", "big.permute((1, 0)).sum().size == 1"),
    ("needed", "`compact()` gives you the array itself", "big.compact() is big and t.compact() is not t"),
    ("needed", "After `corner = corner.compact()`, it can go", "corner.compact().base is None"),
    ("windows", "eight numbers, seen as six rows of three", "triples.shape == (6, 3) and eight.size == 8"),
    ("exercise-windows", "8 − 3 + 1 = 6 windows of three", "8 - 3 + 1 == len(triples.numpy()) == 6"),
    (
        "exercise-windows",
        "you have a moving average",
        "np.allclose((triples.sum(axis=1) / 3).numpy(), np.convolve(range(8), [1 / 3] * 3, 'valid'))",
    ),
    (
        "windows-of-image-solution",
        "NumPy has this as `np.lib.stride_tricks.sliding_window_view`",
        "np.array_equal(windows(a, (2, 2)).numpy(), "
        "np.lib.stride_tricks.sliding_window_view(a.numpy(), (2, 2)))",
    ),
    (
        "pay-off",
        "The `reshape` that joins the axes must copy",
        "digit.broadcast_to((8, 48, 8, 48)).reshape((384, 384)).storage is not digit.storage",
    ),
    (
        "edges-intro",
        "591 million elements, out of 295,936 cells",
        "round(look.size / 1e6) == 591 and look.storage.size == 295_936",
    ),
    ("edges-intro", "more than two gigabytes of windows", "2 * 2**30 < look.size * 4"),
    ("edges-intro", "The 1 MB is their result", "round(sums.size * 4 / 1e6) == 1"),
    (
        "edges-intro",
        "Blur it again, over 25 × 25 pixels",
        "np.allclose(smooth.numpy()[100, 200], (sums / 49**2)[100:125, 200:225].mean(), atol=1e-4)",
    ),
    ("edges-intro", "The view costs nothing", "look.storage is large.storage"),
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
    (
        "summary",
        "1 within a row, and 3 from the end of a row to the next",
        "np.diff(a[:, :2].numpy().ravel()).tolist() == [1, 3, 1, 3, 1]",
    ),
    ("summary", "These are four numbers", "len(table.shape) + len(table.strides) == 4"),
]

NEAR_MISSES = {
    "cell_of": [
        (answer(CELL, "return index[0] * 4 + index[1]"), "are the strides of `a`"),
        (
            answer(
                CELL, "cell = 0", "for k in range(len(index)): cell += strides[k] * index[k]", "return cell"
            ),
            "You start at cell 0",
        ),
        (answer(CELL, "return offset + sum(np.multiply(index, strides[::-1]))"), "from the other end"),
        (
            answer(CELL, "i, j, *rest = index", "return offset + i * strides[0] + j * strides[1]"),
            "first two axes",
        ),
        (answer(CELL, "return offset + sum(index) + sum(strides)"), "add index and stride"),
        (
            answer(CELL, "for i, s in zip(index, strides):", "    offset += i * s", "    return offset"),
            "is the `return` inside of the loop",
        ),
        (
            answer(
                CELL,
                "cell = offset",
                "for i, s in zip(index, strides):",
                "    cell = offset + i * s",
                "return cell",
            ),
            "does your loop begin anew",
        ),
        (
            answer(CELL, "cell = offset", "for i in index:", "    cell += i * strides[i]", "return cell"),
            "not their places",
        ),
        (
            answer(
                CELL,
                "total = 0",
                "for i, s in zip(index, strides):",
                "    total += offset + i * s",
                "return total",
            ),
            "once for each axis",
        ),
        (answer(CELL, "return offset + sum(index)"), "Start at the offset"),
    ],
    "index_of": [
        (answer(INDEX, "return divmod(cell, shape[1])"), "the last axis of a table"),
        (
            answer(
                INDEX,
                "index = []",
                "for n in shape[::-1]:",
                "    index += [cell % n]",
                "    cell //= n",
                "return index",
            ),
            "in the wrong order",
        ),
        (
            answer(
                INDEX,
                "index = []",
                "for n in shape:",
                "    index += [cell % n]",
                "    cell //= n",
                "return index",
            ),
            "You fill the columns first",
        ),
        (answer(INDEX, "return cell // shape[-1], cell % shape[-1]"), "right for two axes only"),
        (
            answer(
                INDEX,
                "strides = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]",
                "return [cell // s for s in strides]",
            ),
            "take the remainder",
        ),
        (answer(INDEX, "return [cell % n for n in shape]"), "always of the same cell"),
        (answer(INDEX, "return cell // shape[0], cell % shape[0]"), "by the length of the first axis"),
    ],
    "permuted": [
        (
            answer(PERMUTED, "return [strides[k] for k in axes], [shape[k] for k in axes], offset"),
            "strides first",
        ),
        (answer(PERMUTED, "return [shape[k] for k in axes], strides, offset"), "but the strides are not"),
        (
            answer(
                PERMUTED,
                "new, steps = list(shape), list(strides)",
                "for i, k in enumerate(axes):",
                "    new[k], steps[k] = shape[i], strides[i]",
                "return new, steps, offset",
            ),
            "*comes from*",
        ),
        (
            answer(
                PERMUTED,
                "new = [shape[k] for k in axes]",
                "steps, walk = [], 1",
                "for n in new[::-1]:",
                "    steps.insert(0, walk)",
                "    walk *= n",
                "return new, steps, offset",
            ),
            "of a fresh array",
        ),
        (
            answer(PERMUTED, "return list(reversed(shape)), list(reversed(strides)), offset"),
            "You turn all axes",
        ),
        (answer(PERMUTED, "return [shape[k] for k in axes], [strides[k] for k in axes], 0"), "offset stays"),
        (answer(PERMUTED, "strides[0], strides[1] = strides[1], strides[0]", "return strides"), "in place"),
    ],
    "sliced": [
        (
            answer(
                SLICED,
                LISTS,
                "shape[axis] = len(range(start, shape[axis], step))",
                "strides[axis] *= step",
                "return shape, strides",
            ),
            "return all three",
        ),
        (
            answer(
                SLICED,
                LISTS,
                "shape[axis] = len(range(start, shape[axis], step))",
                "offset += start * strides[axis]",
                "strides[axis] += step",
                "return shape, strides, offset",
            ),
            "walks three strides",
        ),
        (
            answer(
                SLICED,
                LISTS,
                "shape[axis] = (shape[axis] - start) // step",
                "offset += start * strides[axis]",
                "strides[axis] *= step",
                "return shape, strides, offset",
            ),
            "rounded the wrong way",
        ),
        (
            answer(
                SLICED,
                LISTS,
                "shape[axis] = len(range(start, shape[axis], step))",
                "strides[axis] *= step",
                "offset += start * strides[axis]",
                "return shape, strides, offset",
            ),
            "multiplied the stride by `step` first",
        ),
        (
            answer(
                SLICED,
                LISTS,
                "shape[axis] = len(range(start, shape[axis], step))",
                "strides[axis] *= step",
                "return shape, strides, offset + start",
            ),
            "by `start` cells",
        ),
        (
            answer(
                SLICED,
                LISTS,
                "shape[axis] = len(range(start, shape[axis], step))",
                "offset += start * strides[axis]",
                "return shape, strides, offset",
            ),
            "If you skip elements",
        ),
        (
            answer(
                SLICED,
                LISTS,
                "shape[axis] = len(range(start, shape[axis], step))",
                "offset += start * strides[axis]",
                "strides[axis] = step",
                "return shape, strides, offset",
            ),
            "times the old one",
        ),
        (
            answer(
                SLICED,
                LISTS,
                "shape[axis] = len(range(start, shape[axis], step))",
                "offset += start * strides[axis]",
                "return shape, [s * step for s in strides], offset",
            ),
            "You multiply all the strides",
        ),
        (
            answer(
                SLICED,
                LISTS,
                "shape[axis] = len(range(start, len(shape), step))",
                "offset += start * strides[axis]",
                "strides[axis] *= step",
                "return shape, strides, offset",
            ),
            "`len(shape)` is the number of axes",
        ),
    ],
    "flipped": [
        (
            answer(FLIPPED, LISTS, "strides[axis] = -1", "return shape, strides, offset + shape[axis] - 1"),
            "You walk by single cells",
        ),
        (
            answer(FLIPPED, "s = list(strides)", "s[axis] *= -1", "return shape, s, offset"),
            "Begin at the *last* one",
        ),
        (
            answer(
                FLIPPED,
                "s = list(strides)",
                "offset += shape[axis] * s[axis]",
                "s[axis] *= -1",
                "return shape, s, offset",
            ),
            "One step too far",
        ),
        (
            answer(
                FLIPPED,
                "s = list(strides)",
                "s[axis] *= -1",
                "offset += (shape[axis] - 1) * s[axis]",
                "return shape, s, offset",
            ),
            "turned around already",
        ),
        (
            answer(
                FLIPPED,
                "s = [-x for x in strides]",
                "return shape, s, offset + (shape[axis]-1)*strides[axis]",
            ),
            "of this one axis",
        ),
        (
            answer(FLIPPED, "return shape, strides, offset + (shape[axis] - 1) * strides[axis]"),
            "changes its sign",
        ),
    ],
    "stretched_strides": [
        (
            answer(
                STRETCHED,
                "steps, walk = [], 1",
                "for n in new_shape[::-1]:",
                "    steps.insert(0, walk)",
                "    walk *= n",
                "return steps",
            ),
            "strides of a copy",
        ),
        (answer(STRETCHED, "return (0,) * (len(new_shape) - len(shape)) + strides"), "keep their strides"),
        (
            answer(STRETCHED, "return [0 if n == 1 else s for n, s in zip(shape, strides)]"),
            "new axes in front are missing",
        ),
        (answer(STRETCHED, "return [0 for n in new_shape]"), "Everything stands still"),
        (
            answer(
                STRETCHED,
                "own = [0 if n == 1 else s for n, s in zip(shape, strides)]",
                "while len(own) < len(new_shape): own.append(0)",
                "return own",
            ),
            "Line",
        ),
    ],
    "must_copy": [
        (
            answer(
                COPY,
                "for i in range(len(shape) - 1):",
                "    if 1 not in shape[i:i + 2] and strides[i] != shape[i + 1] * strides[i + 1]: return True",
                "return False",
            ),
            "its neighbours are never compared",
        ),
        (
            answer(
                COPY,
                "axes = [(n, abs(s)) for n, s in zip(shape, strides) if n != 1]",
                "return any(s != n * t for (_, s), (n, t) in zip(axes, axes[1:]))",
            ),
            "the next row begins 4 cells back",
        ),
        (
            answer(
                COPY,
                "walk = 1",
                "for n, s in zip(shape[::-1], strides[::-1]):",
                "    if s != walk: return True",
                "    walk *= n",
                "return False",
            ),
            "whether the array is compact",
        ),
        (
            answer(COPY, "return list(strides) != sorted(strides, reverse=True)"),
            "whether the strides go down",
        ),
        (
            answer(
                COPY,
                "for k in range(1, len(shape)):",
                "    if strides[k - 1] != shape[k] * strides[k]: return True",
                "return False",
            ),
            "An axis of length 1 is never walked along",
        ),
        (
            answer(
                COPY,
                "for k in range(1, len(shape)):",
                "    if strides[k - 1] == shape[k] * strides[k]: return True",
                "return False",
            ),
            "the wrong way around",
        ),
        (
            answer(
                COPY,
                "axes = [(n, s) for n, s in zip(shape, strides) if n > 1]",
                "(_, s), (n, step) = axes[-2:]",
                "return s != n * step",
            ),
            "look at two axes only",
        ),
        (answer(COPY, "return 0 in strides"), "No single stride does that"),
        (
            answer(
                COPY,
                "cells = 1 + sum((n - 1) * abs(s) for n, s in zip(shape, strides))",
                "return cells % int(np.prod(shape)) != 0",
            ),
            "but in which order?",
        ),
        (answer(COPY, "return True"), "and then the answer is False"),
        (answer(COPY, "return False"), "No single stride does that"),
        (
            answer(
                COPY,
                "for k in range(len(shape) - 1):",
                "    if strides[k] != shape[k] * strides[k + 1]: return True",
                "return False",
            ),
            "length of the wrong axis",
        ),
    ],
    "windows": [
        (
            answer(
                WINDOWS,
                SIZES,
                STEPS,
                "return image.as_strided((H - h, W - w, h, w), (down, right, down, right))",
            ),
            "One window is missing",
        ),
        (
            answer(
                WINDOWS,
                SIZES,
                STEPS,
                "return image.as_strided((h, w, H - h + 1, W - w + 1), (down, right, down, right))",
            ),
            "the other way around",
        ),
        (
            answer(WINDOWS, SIZES, "return image.as_strided((H - h + 1, W - w + 1, h, w), (W, 1, W, 1))"),
            "count on an image that is compact",
        ),
        (
            answer(
                WINDOWS,
                "from needle.backend_ndarray import NDArray",
                SIZES,
                "x = image.numpy()",
                "return NDArray([[x[r:r+h, c:c+w] for c in range(W - w + 1)] for r in range(H - h + 1)])",
            ),
            "in new memory",
        ),
        (
            answer(
                WINDOWS, SIZES, STEPS, "return image.as_strided((H, W, h, w), (down, right, down, right))"
            ),
            "reach beyond the memory",
        ),
        (
            answer(
                WINDOWS,
                SIZES,
                STEPS,
                "return image.as_strided((H // h, W // w, h, w), (h * down, w * right, down, right))",
            ),
            "These are tiles",
        ),
    ],
}
