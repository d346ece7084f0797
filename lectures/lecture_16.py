"""Lecture 16, convolutions: exercises, usual mistakes, predictions, the picture of a sliding kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from matplotlib.axes import Axes

from needle import nn, ops
from needle.autograd import Tensor, gradients
from needle.backend_ndarray import NDArray
from viz.plots.look import DIVERGING, INK, ORANGE, PAPER, drawing, figure_of, framed_image

from .checking import Case, Lecture, Names, arrays, case, given, is_tensor, kind, to_numpy, values

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict

#: Nine numbers each: what they answer to is what they are called.
KERNELS = {
    "left edge": np.array([[-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]]),
    "top edge": np.array([[-1.0, -1.0, -1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]),
    "mean": np.full((3, 3), 1 / 9),
}


def as_array(answer: Any, *inputs: Any) -> Any:
    """What an answer gives, as an array, also if it is a list of numbers or a Tensor."""
    found = answer(*inputs)
    if isinstance(found, list) and found and not any(item is ... for item in found):
        return np.array(found)
    return to_numpy(found) if is_tensor(found) else found


def named(**arrays: Any) -> Any:
    """Makes the inputs of a case, copied from these arrays."""
    return lambda: {name: np.array(array, dtype="float64") for name, array in arrays.items()}


CONV = "This is the library's own convolution. Here you write one yourself, with NumPy."
WALK = "This is the library's own walk back. Write the gradient yourself: `slide` is enough."
WALKS: dict[Callable, str] = {gradients: WALK, Tensor.backward: WALK, ops.Conv.gradient: WALK}
POOL = "This is the library's own pooling. Here you write it yourself, with NumPy."
BY_HAND = "This is the library's own layer. Here you work the shapes and the numbers out by hand."
READY = ("conv", "conv1d", "conv2d", "convolve2d", "correlate", "correlate2d", "fftconvolve", "oaconvolve")
BACK = (*READY, "backward", "grad", "gradients", "vjp", "conv2d_weight", "conv2d_input", "conv_transpose2d")

#: Images and kernels that fit: those that are higher than wide, wider than high, and as small as can be.
SIZES = (
    *(((3, 4), (2, 2)), ((4, 6), (3, 2)), ((6, 4), (2, 3)), ((5, 5), (3, 3)), ((5, 4), (1, 2))),
    *(((4, 5), (2, 1)), ((3, 7), (3, 4)), ((4, 3), (4, 3)), ((3, 2), (1, 1))),
)
FILLINGS = ("counted", "irregular", "signed", "falling", "zeros between")


def filled(shape: Sequence[int]) -> SearchStrategy[np.ndarray]:
    """Arrays of this shape, some of them views of another."""
    return arrays([tuple(shape)], FILLINGS, ("plain", "transposed", "every second"))


@st.composite
def slidings(draw: Any, out_grad: bool = False) -> Case:
    """An image and a kernel; with `out_grad`, also what came back to their map."""
    image, kernel = draw(st.sampled_from(SIZES))
    made = {"image": draw(filled(image)), "kernel": draw(filled(kernel))}
    if out_grad:
        made["out_grad"] = draw(filled([n - k + 1 for n, k in zip(image, kernel, strict=True)]))
    elif draw(st.booleans()):
        made["image"] = made["image"].astype(int)  # a picture may hold whole numbers
    return given(lambda: {name: array.copy("K") for name, array in made.items()}, *made)


# --- 1 One loop ---------------------------------------------------------------------------------------------

SMALL = [[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 3.0, 2.0], [2.0, 0.0, 1.0, 1.0]]


@lecture.exercise(
    given(named(image=SMALL, kernel=[[1.0, 2.0], [3.0, 4.0]]), "image", "kernel"),
    draws=slidings(),
    otherwise="Take the window in the upper left corner: `image[:2, :2]` for a kernel of 2 × 2. Multiply it "
    "by the kernel, number by number, and add up. That is the first number of the map.",
    use=as_array,
    without={ops.conv: CONV},
    own=READY,
)
def convolve(image, kernel):
    height, width = kernel.shape
    out = np.zeros((image.shape[0] - height + 1, image.shape[1] - width + 1))
    for row, column in np.ndindex(*out.shape):
        out[row, column] = (image[row : row + height, column : column + width] * kernel).sum()
    return out


slide = convolve

COUNTS = "(image.shape[0] - height + 1, image.shape[1] - width + 1)"
WINDOW = "image[row : row + height, column : column + width]"
convolve.slip(
    "You turn the kernel around. In mathematics, that is what convolution means; in deep learning, the "
    "kernel is laid on the window as it is.",
    *("* kernel)", "* kernel[::-1, ::-1])"),
)
convolve.slip(
    "Your map is one row and one column too small. In 4 columns, a kernel of width 2 has 3 places: n − k + 1.",
    *(COUNTS, "(image.shape[0] - height, image.shape[1] - width)"),
)
convolve.slip(
    "Your map is as large as the image. At the edge, the kernel would hang over; here it stays inside, so "
    "there are n − k + 1 places along each axis.",
    *("return out", "return np.pad(out, ((0, height - 1), (0, width - 1)))"),
)
convolve.slip(
    "Your windows get smaller towards the edge, and no longer fit the kernel. The kernel stays inside the "
    "image, so there are n − k + 1 places along each axis.",
    *(COUNTS, "image.shape"),
)
convolve.slip(
    "Your kernel is square, and this one is not: it has `kernel.shape[0]` rows and `kernel.shape[1]` columns.",
    *("kernel.shape\n", "len(kernel), len(kernel)\n"),
)
convolve.slip(
    "There are zeros around your image. Here the kernel stays inside, so there are n − k + 1 places along "
    "each axis.",
    (
        "kernel.shape\n",
        "kernel.shape\n    image = np.pad(image, (((height - 1) // 2, height // 2), (width // 2, width // 2)))\n",
    ),
)
convolve.slip(
    "Your loop ends after its first round: does the `return` stand inside it?",
    *("    return out", "        return out"),
)
convolve.slip(
    "`@` is the matrix product. Here each number is multiplied by its own weight: `*`.",
    "* kernel",
    "@ kernel",
)
convolve.slip("You take the mean of the products. Their sum is asked for.", ".sum()", ".mean()")
convolve.slip(
    "Your windows lie side by side. They overlap: the next one begins one pixel further.",
    (COUNTS, "(image.shape[0] // height, image.shape[1] // width)"),
    (WINDOW, "image[height * row : height * row + height, width * column : width * column + width]"),
)
convolve.slip(
    "This is a window of products, and a single number is needed for each place. Add them up: `.sum()`.",
    *(".sum()", ""),
)
convolve.slip(
    "A slice goes from its start to its end, and the end moves along: `image[row : row + height, …]`.",
    *(WINDOW, "image[row:height, column:width]"),
)
convolve.slip(
    "You mix up rows and columns: the first index of an array counts the rows, and `shape[0]` is how many "
    "there are.",
    "height, width = kernel.shape",
    "width, height = kernel.shape",
)
convolve.slip(
    "The numbers are right, but they stand in one row. Make a map of them, with rows and columns.",
    *("return out", "return out.ravel()"),
)
convolve.slip(
    "You count the places along one axis and take them for both. An image may be wider than it is high: "
    "n − k + 1 for the rows, and again for the columns.",
    *("image.shape[1] - width + 1", "image.shape[0] - height + 1"),
)
convolve.slip(
    "Your array holds whole numbers only, and drops what stands behind the point. Make it with `np.zeros`, "
    "without a `dtype`.",
    *("- width + 1))", "- width + 1), dtype=int)"),
)


# --- 2 All windows, and no copy -----------------------------------------------------------------------------

#: What an image may be a view of, by the line that makes it.
VIEWS: dict[str, Callable[[int, int], NDArray]] = {
    "counted({0}, {1})": lambda rows, columns: counted(rows, columns),
    "counted({1}, {0}).permute((1, 0))": lambda rows, columns: counted(columns, rows).permute((1, 0)),
    "counted({0} + 1, {1} + 2)[1:, 1:-1]": lambda rows, columns: counted(rows + 1, columns + 2)[1:, 1:-1],
    "counted({0}, 2 * {1})[:, ::2]": lambda rows, columns: counted(rows, 2 * columns)[:, ::2],
}


def counted(rows: int, columns: int) -> NDArray:
    """An image that counts its pixels in memory."""
    return NDArray(np.arange(rows * columns).reshape(rows, columns))


def windows_case(
    lengths: tuple[int, int], size_and_step: tuple[int, int], view: str = "counted({0}, {1})"
) -> Case:
    """An image that is a view of this kind, with the size of its windows and their step."""
    size, step = size_and_step
    return given(
        lambda: {"image": VIEWS[view](*lengths), "size": size, "step": step},
        *("image", "size", "step"),
        program="image = " + view.format(*lengths),
    )


def _seen(answer: Any, image: Any, size: int, step: int) -> Any:
    """The windows, and whether they are read in the memory of the image."""
    found = answer(image, size, step)
    if not isinstance(found, NDArray):
        return found
    return {"windows": found, "reads the memory of the image": found.storage is image.storage}


def _windows(expected: Any, got: Any, names: Names) -> str:
    """`values`, in words that speak of an NDArray."""
    if isinstance(expected, Mapping) and not isinstance(got, Mapping):
        return f"the type is {'tuple' if isinstance(got, tuple) else kind(got)}, but should be NDArray"
    return values(expected, got, names)


@lecture.exercise(
    windows_case((4, 4), (3, 1)),
    windows_case((5, 7), (2, 2)),
    draws=st.tuples(
        st.sampled_from([(4, 6), (6, 5), (5, 7), (7, 4), (4, 4)]),
        st.sampled_from([(3, 1), (2, 1), (2, 2), (3, 2), (2, 3), (4, 1), (1, 2), (1, 1)]),
        st.sampled_from(list(VIEWS)),
    ).map(lambda parts: windows_case(*parts)),
    otherwise="Four questions, one for each axis: how far in memory is it to the window below, to the window "
    "on the right, to the pixel below, to the pixel on the right?",
    compare=_windows,
    use=_seen,
)
def windows_of(image, size, step):
    rows, columns = ((n - size) // step + 1 for n in image.shape)
    down, right = image.strides
    return image.as_strided((rows, columns, size, size), (step * down, step * right, down, right))


VIEW = "image.as_strided((rows, columns, size, size), (step * down, step * right, down, right))"
STRIDES = "(step * down, step * right, down, right)"
windows_of.slip(
    "You step from window to window by one pixel, whatever `step` is. The next window begins `step` pixels "
    "further.",
    *(STRIDES, "(down, right, down, right)"),
)
windows_of.slip(
    "The strides of the two pairs of axes are exchanged: the first two lead from window to window, and the "
    "last two from pixel to pixel.",
    *(STRIDES, "(down, right, step * down, step * right)"),
)
windows_of.slip(
    "You step from window to window by `size` pixels, as if they lay side by side. The next window begins "
    "`step` pixels further.",
    *(STRIDES, "(size * down, size * right, down, right)"),
)
windows_of.slip(
    "The pixel below is not `size` numbers away: the window lies in a wider image, and the way down is the "
    "image's own stride.",
    *(STRIDES, "(step * down, step * right, size, 1)"),
)
windows_of.slip(
    "Inside a window, the pixels are neighbours. `step` is only for the way from one window to the next.",
    *(STRIDES, "(step * down, step * right, step * down, step * right)"),
)
windows_of.slip(
    "One window is missing along each axis: a window of 3 has 2 places in 4 pixels, (n − size) // step + 1.",
    "(n - size) // step + 1",
    "(n - size) // step",
)
windows_of.slip(
    "The + 1 comes last: the first window counts, too, whatever the step. (n − size) // step + 1.",
    *("(n - size) // step + 1", "(n - size + 1) // step"),
)
windows_of.slip(
    "That would read beyond the end of the memory: too many windows. With a step there are "
    "(n − size) // step + 1 of them along an axis.",
    *("(n - size) // step + 1", "n - size + 1"),
)
windows_of.slip(
    "You mix up down and right. The first stride of an image leads to the row below, the second to the next "
    "column.",
    *("down, right = image", "right, down = image"),
)
windows_of.slip(
    "You assume that a row lies right behind the one above it. This image is a view itself, so ask it for "
    "its own steps: `image.strides`.",
    *("image.strides", "image.shape[1], 1"),
)
windows_of.slip(
    "The numbers are right, but they have been copied. Make a view of the same memory: "
    "`image.as_strided(shape, strides)`.",
    *(VIEW, f"NDArray({VIEW}.numpy())"),
)
windows_of.slip(
    "This is the shape and the strides. Give both to `image.as_strided`, and return the view that it makes.",
    *("image.as_strided(", "("),
)
windows_of.slip(
    "The axes are in another order: first (rows, columns) of windows, then (size, size) of the pixels in "
    "each.",
    *(VIEW, VIEW + ".permute((2, 3, 0, 1))"),
)
windows_of.slip(
    "The two axes of windows have become one. Leave them apart: (rows, columns, size, size), four axes.",
    VIEW,
    "image.as_strided((rows * columns, size, size), (step * right, down, right))",
)
windows_of.slip(
    "You count the windows along one axis and take them for both. An image may be wider than it is high: "
    "(n − size) // step + 1 for the rows, and again for the columns.",
    *("(rows, columns, size", "(rows, rows, size"),
)
windows_of.slip("`/` gives a float, and a shape is made of whole numbers. Round down with `//`.", "//", "/")
windows_of.slip(
    "Inside each window, rows and columns are exchanged: first the way to the pixel below, then the way to "
    "the pixel on the right.",
    *("right, down, right", "right, right, down"),
)


# --- 3 Both gradients ---------------------------------------------------------------------------------------

GRADIENT_CASE = given(
    named(image=SMALL, kernel=[[1.0, 2.0], [3.0, 4.0]], out_grad=[[1.0, 0.0, 2.0], [0.0, -1.0, 0.5]]),
    *("image", "kernel", "out_grad"),
)


@lecture.exercise(
    GRADIENT_CASE,
    draws=slidings(out_grad=True),
    otherwise="A weight meets one pixel in each window. Add up: that pixel times what came back to the "
    "window. Which array slides over which?",
    use=as_array,
    without=WALKS,
    own=BACK,
)
def kernel_gradient(image, kernel, out_grad):
    return slide(image, out_grad)


OVER = "slide(image, out_grad)"
kernel_gradient.slip(
    "You turn `out_grad` around. The weight in the upper left corner meets the pixels in the order of the "
    "windows, so nothing is turned here.",
    *(OVER, "slide(image, out_grad[::-1, ::-1])"),
)
kernel_gradient.slip(
    "This has the size of the map. What comes back to the kernel has its shape. Which array takes the place "
    "of the kernel?",
    *(OVER, "slide(image, kernel)"),
)
kernel_gradient.slip(
    "This has the size of the map. Each weight collects from all windows: add up, weight by weight, with "
    "`slide`.",
    *(OVER, "slide(image, kernel) * out_grad"),
)
kernel_gradient.slip(
    "You leave out what came back to the windows. Each pixel is multiplied by the `out_grad` of its window.",
    *(OVER, "slide(image, np.ones_like(out_grad))"),
)
kernel_gradient.slip(
    "You divide by the number of windows. Small effects add up, they are not averaged.",
    *(OVER, OVER + " / out_grad.size"),
)
kernel_gradient.slip(
    "Each window overwrites what the one before it gave. Add up: `+=`.",
    *(OVER, "image[-len(kernel) :, -len(kernel[0]) :] * out_grad[-1, -1]"),
)
kernel_gradient.slip(
    "What comes back to a weight depends on the pixels that it met, and on no weight. Leave the kernel out.",
    OVER,
    "slide(out_grad, kernel)",
)
kernel_gradient.slip(
    "No margin is needed here. The image is larger than `out_grad`, and each weight met pixels inside of it "
    "only.",
    *(OVER, "slide(np.pad(image, [(n - 1, n - 1) for n in kernel.shape]), out_grad)"),
)
kernel_gradient.slip(
    "You swap rows and columns: leave `.T` out. The numbers stay where they are.",
    OVER,
    "slide(image, out_grad.T)",
)
kernel_gradient.slip(
    "The image has to be the one that is slid over: it is the larger one. `slide(image, …)`.",
    *(OVER, "slide(out_grad, image)"),
)
kernel_gradient.slip(
    "That is the shape of the image. What comes back to the kernel has the kernel's shape.",
    *(OVER, "slide(np.pad(out_grad, [(n - 1, n - 1) for n in kernel.shape]), kernel)"),
)


@lecture.exercise(
    GRADIENT_CASE,
    draws=slidings(out_grad=True),
    otherwise="Give `out_grad` a margin of zeros, as wide as the kernel minus 1, on each side. Slide the "
    "kernel over it, turned by half a turn.",
    use=as_array,
    without=WALKS,
    own=BACK,
)
def image_gradient(image, kernel, out_grad):
    rows, columns = (n - 1 for n in kernel.shape)
    with_margin = np.pad(out_grad, ((rows, rows), (columns, columns)))
    return slide(with_margin, kernel[::-1, ::-1])


RETURN = "return slide(with_margin, kernel[::-1, ::-1])"
MARGIN = "((rows, rows), (columns, columns))"
image_gradient.slip(
    "The kernel has to be turned by half a turn: a pixel lies further left in a window that begins further "
    "right.",
    *("kernel[::-1, ::-1]", "kernel"),
)
image_gradient.slip(
    "This is smaller than the image. Give `out_grad` a margin of zeros first: `np.pad(out_grad, …)`.",
    *(MARGIN, "0"),
)
image_gradient.slip(
    "Your margin is as wide as the kernel, and so the result is larger than the image. The kernel minus 1 is "
    "enough: then the first window just touches a number.",
    *("(n - 1 for n", "(n for n"),
)
image_gradient.slip(
    "Your margin is 1 for every kernel. It has to be the size of the kernel minus 1, for each axis.",
    MARGIN,
    "1",
)
image_gradient.slip(
    "`np.pad(…, (a, b))` puts a before and b behind, along *each* axis. Give it a pair for each axis: "
    "`((a, a), (b, b))`.",
    *(MARGIN, "(rows, columns)"),
)
image_gradient.slip(
    "Where two windows overlap, the later one overwrites the earlier one. Add up: `+=`.",
    (
        RETURN,
        "out = np.zeros(image.shape)\n"
        "    for (row, column), number in np.ndenumerate(out_grad):\n"
        "        out[row : row + rows + 1, column : column + columns + 1] = number * kernel\n"
        "    return out",
    ),
)
image_gradient.slip(
    "What comes back to a pixel depends on `out_grad` and the weights, not on pixels. Slide over `out_grad`.",
    "np.pad(out_grad",
    "np.pad(image",
)
image_gradient.slip(
    "You turn the kernel upside down, but not left to right. Both: `kernel[::-1, ::-1]`.",
    *("kernel[::-1, ::-1]", "kernel[::-1]"),
)
image_gradient.slip(
    "A transpose swaps rows and columns. Half a turn reverses both: `kernel[::-1, ::-1]`.",
    *("kernel[::-1, ::-1]", "kernel.T"),
)
image_gradient.slip(
    "You turn `out_grad` around. Its numbers stay where their windows are; the kernel is turned.",
    *(RETURN, "return slide(with_margin[::-1, ::-1], kernel)"),
)
image_gradient.slip(
    "You use one margin for both axes. The kernel may be higher than it is wide: `kernel.shape[0] - 1` above "
    "and below, `kernel.shape[1] - 1` left and right.",
    *(MARGIN, "rows"),
)
image_gradient.slip(
    "You exchange the margins. Above and below it is `kernel.shape[0] - 1`, left and right "
    "`kernel.shape[1] - 1`.",
    *("rows, columns =", "columns, rows ="),
)
image_gradient.slip(
    "Your margin is on one side only. There are windows that end at a pixel and windows that begin there: "
    "put zeros on both sides.",
    *(MARGIN, "((rows, 0), (columns, 0))"),
)
image_gradient.slip(
    "You exchange the two inputs of `slide`: first what is slid over, with its margin, then the kernel.",
    *("with_margin, kernel[::-1, ::-1]", "kernel[::-1, ::-1], with_margin"),
)


# --- 4 Pooling ----------------------------------------------------------------------------------------------

EVEN = [[1.0, 3, 2, 0, 5, 1], [0, 2, 4, 1, 1, 6], [7, 0, 1, 1, 2, 2], [3, 1, 0, 9, 0, 1]]


@lecture.exercise(
    given(named(image=EVEN), "image"),
    draws=arrays(
        [(4, 6), (5, 7), (6, 4), (5, 4), (4, 3), (3, 2), (2, 5), (2, 2)],
        ("irregular", "hugely negative", "signed", "falling", "zeros between", "counted"),
        ("plain", "transposed", "every second"),
    ).map(lambda image: given(lambda: {"image": image.copy("K")}, "image")),
    otherwise="The upper left number of the result is the largest of `image[:2, :2]`, the one beside it the "
    "largest of `image[:2, 2:4]`.",
    use=as_array,
    without={ops.max_pool2d: POOL},
    own=("max_pool2d", "max_pool", "maximum_filter", "block_reduce"),
)
def max_pool(image):
    rows, columns = (n // 2 for n in image.shape)
    blocks = image[: 2 * rows, : 2 * columns].reshape(rows, 2, columns, 2)
    return blocks.max(axis=(1, 3))


LARGEST = "blocks.max(axis=(1, 3))"
CUT = "[: 2 * rows, : 2 * columns]"
max_pool.slip("This is the mean of each block. The largest number is asked for.", ".max(", ".mean(")
max_pool.slip(
    "Your blocks overlap. The next one begins 2 pixels further, so the result is half as long.",
    *(LARGEST, "np.lib.stride_tricks.sliding_window_view(image, (2, 2)).max(axis=(2, 3))"),
)
max_pool.slip(
    "You keep the upper left pixel of each block, however small it is. Take the largest.",
    *(LARGEST, "blocks[:, 0, :, 0]"),
)
max_pool.slip(
    "`reshape` cuts the numbers in the order in which they lie in memory, so your blocks are pieces of a "
    "row. Cut into (rows, 2, columns, 2), and take the maximum along the axes of length 2.",
    ("(rows, 2, columns, 2)", "(rows, columns, 2, 2)"),
    ("(1, 3)", "(2, 3)"),
)
max_pool.slip(
    "An odd row or column at the end makes no whole block, and is left out: "
    "`image[: 2 * rows, : 2 * columns]`.",
    (
        "    rows",
        "    image = np.pad(image, [(0, n % 2) for n in image.shape], constant_values=-np.inf)\n    rows",
    ),
)
max_pool.slip(
    "This image has an odd number of rows or columns, so it cannot be cut into blocks. Leave the last one "
    "out first: `image[: 2 * rows, : 2 * columns]`.",
    *(CUT, ""),
)
max_pool.slip(
    "You begin at 0, and all numbers of this block are below it. Begin with the block itself.",
    *("axis=(1, 3)", "axis=(1, 3), initial=0"),
)
max_pool.slip(
    "One number must be left of each block, and you took the maximum along one of its two axes only: "
    "`max(axis=(1, 3))`.",
    *("(1, 3)", "1"),
)
max_pool.slip("This is the smallest of each block. The largest is asked for.", ".max(", ".min(")
max_pool.slip(
    "You pool along one axis only. A block has 2 rows and 2 columns, and one number comes out of it.",
    *(LARGEST, "image[: 2 * rows].reshape(rows, 2, -1).max(axis=1)"),
)
max_pool.slip(
    "You take the maximum along the wrong axes. In (rows, 2, columns, 2), the two axes of a block are 1 and "
    "3: `max(axis=(1, 3))`.",
    "(1, 3)",
    "(2, 3)",
)
max_pool.slip(
    "After the first `max` there is one axis less, and the others move up. Take both at once: "
    "`max(axis=(1, 3))`.",
    *(LARGEST, "blocks.max(axis=1).max(axis=1)"),
)
CROPPED = (
    "You always leave out the last row and the last column. This image has an even number of both, so each "
    "belongs to a block."
)
max_pool.slip(CROPPED, CUT, "[:-1, :-1]")
max_pool.slip(CROPPED, "n // 2", "(n - 1) // 2")
max_pool.slip(
    "Python's `max` cannot compare whole rows of a block. Ask the array itself: `block.max()`.",
    *(LARGEST, "max(image[:2, :2])"),
)
max_pool.slip("`/` gives a float, and a slice needs whole numbers. Round down with `//`.", "n // 2", "n / 2")
max_pool.slip(
    "You count the blocks along one axis and take them for both. An image may be wider than it is high.",
    *(LARGEST, LARGEST + "[:, :rows]"),
)


# --- 5 Shapes by hand ---------------------------------------------------------------------------------------

DIGITS = ((1, 8, 8), [("conv", 4, 3, 1, 1), ("pool", 2), ("flatten",), ("linear", 10)])
MAPS = (
    *(("conv", 6, 5, 2, 2), ("pool", 3), ("conv", 7, 2, 1, 0), ("pool", 2), ("conv", 2, 3, 2, 1)),
    *(("conv", 5, 4, 3, 1), ("conv", 3, 1, 2, 0)),
)
ENDS: tuple[list[tuple[Any, ...]], ...] = (
    [],
    [("flatten",)],
    [("flatten",), ("linear", 5)],
    [("flatten",), ("linear", 3), ("linear", 2)],
)


def whole(expected: Any, got: Any, names: Names) -> str:
    """`values`, and whether all lengths are whole numbers."""
    if difference := values(expected, got, names):
        return difference
    floats = [
        n for n in (*(n for shape in got[0] for n in shape), got[1]) if isinstance(n, (float, np.floating))
    ]
    return f"{floats[0]!r} is a float, but should be a whole number" if floats else ""


whole.exactly = values  # type: ignore[attr-defined]


def networks() -> SearchStrategy[Case]:
    """A picture that goes through convolutions and poolings, as far as they fit; or a list of numbers."""
    pictures = st.tuples(
        st.sampled_from([(3, 15, 22), (2, 24, 11), (1, 9, 8), (4, 12, 12)]),
        st.tuples(st.lists(st.sampled_from(MAPS), max_size=3), st.sampled_from(ENDS)).map(
            lambda x: x[0] + x[1]
        ),
    )
    lists = st.tuples(
        st.sampled_from([(5,), (1,)]), st.sampled_from([[("linear", 3)], [("linear", 4), ("linear", 2)]])
    )
    return (
        st.one_of(pictures, lists)
        .filter(lambda x: bool(x[1]) and all(n > 0 for shape in shapes_by_hand(*x)[0] for n in shape))
        .map(lambda x: case(*x))
    )


@lecture.exercise(
    case(*DIGITS),
    draws=st.deferred(networks),
    otherwise="Go through the layers one by one, with the shape so far. Compare your list with the one that "
    "is expected, from its beginning: which layer is the first to differ?",
    compare=whole,
    without={nn.Conv.__init__: BY_HAND, nn.Linear.__init__: BY_HAND},
    own=("conv", "conv2d", "linear"),
)
def shapes_by_hand(shape, layers):
    shapes, numbers = [], 0
    for name, *details in layers:
        if name == "conv":
            channels, size, stride, padding = details
            numbers += (size * size * shape[0] + 1) * channels
            shape = (channels, *[(n + 2 * padding - size) // stride + 1 for n in shape[1:]])
        elif name == "pool":
            shape = (shape[0], *[n // details[0] for n in shape[1:]])
        elif name == "flatten":
            shape = (shape[0] * shape[1] * shape[2],)
        else:
            numbers += (shape[0] + 1) * details[0]
            shape = (details[0],)
        shapes.append(shape)
    return shapes, numbers


LENGTH = "(n + 2 * padding - size) // stride + 1"
OF_CONV = "numbers += (size * size * shape[0] + 1) * channels"
OF_LINEAR = "numbers += (shape[0] + 1) * details[0]"
NEXT = f"shape = (channels, *[{LENGTH} for n in shape[1:]])"
POOLED = "shape = (shape[0], *[n // details[0] for n in shape[1:]])"
FLAT = "(shape[0] * shape[1] * shape[2],)"
shapes_by_hand.slip(
    "You leave out the biases: one for each channel that comes out, and for each feature.",
    (OF_CONV, "numbers += size * size * shape[0] * channels"),
    (OF_LINEAR, "numbers += shape[0] * details[0]"),
)
shapes_by_hand.slip(
    "The padding stands on both sides of the image, so it counts twice: n + 2 · padding.",
    "2 * padding",
    "padding",
)
shapes_by_hand.slip(
    "You leave the stride out. With stride 2 only every second place is taken.", " // stride", ""
)
shapes_by_hand.slip(
    "You are one short along an axis: the first window counts too, (n + 2 · padding − size) // stride + 1.",
    *("// stride + 1", "// stride"),
)
shapes_by_hand.slip(
    "Each kernel looks at all channels that go in. So it has size · size · channels weights, and not only "
    "size · size.",
    *("size * size * shape[0]", "size * size"),
)
shapes_by_hand.slip(
    "You count one bias for the whole layer. Each channel that comes out has one of its own.",
    *(OF_CONV, "numbers += size * size * shape[0] * channels + 1"),
)
shapes_by_hand.slip(
    "You exchange the channels that go in and those that come out: there is a kernel, and a bias, for each "
    "that comes out.",
    *(OF_CONV, "numbers += (size * size * channels + 1) * shape[0]"),
)
shapes_by_hand.slip(
    "A convolution overwrites what was counted before it. Add its numbers: `+=`.",
    *("numbers += (size", "numbers = (size"),
)
shapes_by_hand.slip(
    "You count the numbers of one layer only. Add up those of all layers: `+=`.",
    *("numbers += (shape", "numbers = (shape"),
)
shapes_by_hand.slip(
    "You count weights for each place of the map. The same kernel is used at all places: that is the point.",
    *(
        NEXT,
        f"before = (size * size * shape[0] + 1) * channels\n            {NEXT}\n"
        "            numbers += before * (shape[1] * shape[2] - 1)",
    ),
)
shapes_by_hand.slip(
    "You count a bias for each place of a map. A map has a single bias, the same for all of its places.",
    *(NEXT, f"{NEXT}\n            numbers += channels * (shape[1] * shape[2] - 1)"),
)
shapes_by_hand.slip(
    "Pooling divides the height and the width. The channels stay as they are.",
    *(POOLED, "shape = tuple(n // details[0] for n in shape)"),
)
shapes_by_hand.slip(
    "The blocks of a pooling do not overlap: the length is n // size, and a rest is left out.",
    *("n // details[0]", "n - details[0] + 1"),
)
shapes_by_hand.slip(
    "A rest that makes no whole block is left out of a pooling: n // size, rounded down.",
    *("n // details[0]", "-(-n // details[0])"),
)
ROUNDED = "Half a window is none: round down, with `//`. `round` goes to the nearer one, which may lie above."
shapes_by_hand.slip(ROUNDED, LENGTH, "round((n + 2 * padding - size) / stride) + 1")
shapes_by_hand.slip(ROUNDED, LENGTH, "-(-(n + 2 * padding - size) // stride) + 1")
shapes_by_hand.slip(
    "Flatten lays all channels in one row, too: channels · height · width numbers.",
    FLAT,
    "(shape[1] * shape[2],)",
)
shapes_by_hand.slip(
    "The shape that goes in is in your list. Begin it with what comes out of the first layer.",
    *("shapes, numbers = []", "shapes, numbers = [shape]"),
)
shapes_by_hand.slip(
    "A shape has one length for each axis. After `flatten` and `linear` there is one axis left: `(n,)`, with "
    "a comma.",
    "shapes.append(shape)",
    "shapes.append(shape if len(shape) > 1 else shape[0])",
)
shapes_by_hand.slip(
    "After `flatten`, your shape is a number, and a number has no first item. One axis is a shape, too: "
    "`(n,)`, with a comma.",
    *(FLAT, FLAT.replace(",)", ")")),
)
shapes_by_hand.slip(
    "You use the channels that come out twice, since you had changed `shape` already. Count the weights "
    "first.",
    *("* shape[0] + 1) * channels", "* channels + 1) * channels"),
)
shapes_by_hand.slip(
    "The size of a block stands in the layer: `details[0]`. It need not be 2.", "n // details[0]", "n // 2"
)
shapes_by_hand.slip(
    "The height and the width differ here, and each has its own length after the layer.",
    *("shapes, numbers = [], 0", "shapes, numbers, shape = [], 0, shape[:2] + shape[1:2]"),
)
shapes_by_hand.slip(
    "`/` gives a float, and a length is a whole number: round down with `//`.",
    ("n // details[0]", "n / details[0]"),
    ("// stride", "/ stride"),
)


# --- Pictures -----------------------------------------------------------------------------------------------


def sliding(image: np.ndarray, kernel: np.ndarray, place: int) -> Axes:
    """Draw a kernel at one place of an image: the window, its products, and the map up to there."""
    x = Tensor(image[None, :, :, None], requires_grad=False)
    whole = ops.conv(x, Tensor(kernel[:, :, None, None]), padding=0).numpy()[0, :, :, 0]
    (height, width), (rows, columns) = kernel.shape, whole.shape
    row, column = divmod(place, columns)
    products = image[row : row + height, column : column + width] * kernel
    done = np.where(np.arange(whole.size) <= place, whole.ravel(), np.nan).reshape(whole.shape)
    with drawing(None, 5.5, 2.45) as ax:
        figure_of(ax).set_layout_engine("none")  # it would lay out each frame anew
        ax.set_position((0.01, 0.01, 0.98, 0.98))
        left, top = image.shape[1] + 1.0, (image.shape[0] - 4.5) / 2  # of the products, which are larger
        right, low = left + 6.0, (image.shape[0] - rows) / 2
        framed_image(ax, image, 0, 0, *image.shape[::-1], cmap="gray_r", vmin=0, vmax=1)
        reach = float(abs(kernel).max())
        framed_image(ax, products, left, top, 4.5, 4.5, cmap=DIVERGING, vmin=-reach, vmax=reach)
        limit = float(abs(whole).max())
        colours = DIVERGING.with_extremes(bad="#D5DAE3")
        framed_image(ax, done, right, low, columns, rows, cmap=colours, vmin=-limit, vmax=limit)
        for (i, j), product in np.ndenumerate(products + 0.0):  # no minus before a zero
            middle = (left + (j + 0.5) * 4.5 / width, top + (i + 0.5) * 4.5 / height)
            dark = abs(product) > 0.4 * reach
            ax.text(*middle, f"{product:.2f}", ha="center", va="center", color=PAPER if dark else INK)
        for x0, y0, w, h, colour in (
            (column, row, width, height, ORANGE),
            (right + column, low + row, 1, 1, INK),
        ):
            ax.plot([x0, x0 + w, x0 + w, x0, x0], [y0, y0, y0 + h, y0 + h, y0], color=colour, linewidth=3)
        words = ((0, 0, "image"), (left, top, f"adds up to {whole[row, column]:.2f}"), (right, low, "map"))
        for x0, y0, title in words:
            ax.text(x0, y0 - 0.35, title, weight="bold", fontsize=10)
        ax.set(xlim=(-0.2, right + columns + 0.2), ylim=(image.shape[0] + 0.2, -1.3), aspect="equal")
        ax.set_axis_off()
        ax.set_label(f"A kernel over an image, at row {row}, column {column}: {whole[row, column]:.2f}")
    return ax
