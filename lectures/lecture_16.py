"""Lecture 16, convolutions: exercises, usual mistakes, predictions, the picture of a sliding kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from needle import nn, ops
from needle.autograd import Tensor, gradients
from needle.backend_ndarray import NDArray
from viz.plots.look import DIVERGING, INK, ORANGE, PAPER, drawing, figure_of, framed_image

from .checking import Lecture, Names, case, given, is_tensor, kind, to_numpy, values

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

# --- 1 One loop ---------------------------------------------------------------------------------------------

SMALL = [[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 3.0, 2.0], [2.0, 0.0, 1.0, 1.0]]
SQUARE = np.random.default_rng(1).integers(-4, 9, (5, 5)) / 2.0
WIDE = np.random.default_rng(2).integers(-4, 9, (4, 6)) / 2.0


@lecture.exercise(
    given(named(image=SMALL, kernel=[[1.0, 2.0], [3.0, 4.0]]), "image", "kernel"),
    given(named(image=SQUARE, kernel=[[0.5, -1, 2], [0, 1, -2], [3, 1, 0]]), "image", "kernel"),
    given(named(image=WIDE, kernel=[[1, 0.5], [-1, 2], [0, -3]]), "image", "kernel"),
    otherwise="Take the window in the upper left corner: `image[:2, :2]` for a kernel of 2 × 2. Multiply it "
    "by the kernel, number by number, and add up. That is the first number of the map.",
    use=as_array,
    without={ops.conv: CONV},
)
def convolve(image, kernel):
    """The map of an image and a kernel: a number for each window."""
    return np.einsum("rcij,ij->rc", np.lib.stride_tricks.sliding_window_view(image, kernel.shape), kernel)


def _looped(image, kernel, number, counts=None, step=(1, 1)):
    """The map by a loop, with `number(window)` for each window."""
    rows, columns = counts or [n - k + 1 for n, k in zip(image.shape, kernel.shape, strict=True)]
    out = np.zeros((rows, columns))
    for row, column in np.ndindex(rows, columns):
        down, right = row * step[0], column * step[1]
        out[row, column] = number(image[down : down + kernel.shape[0], right : right + kernel.shape[1]])
    return out


@convolve.mistake(
    "You turn the kernel around. In mathematics, that is what convolution means; in deep learning, the "
    "kernel is laid on the window as it is."
)
def flipped(image, kernel):
    return convolve.right(image, kernel[::-1, ::-1])


@convolve.mistake(
    "Your map is one row and one column too small. In 4 columns, a kernel of width 2 has 3 places: n − k + 1."
)
def one_too_few(image, kernel):
    return convolve.right(image, kernel)[:-1, :-1]


@convolve.mistake(
    "Your map is as large as the image. At the edge, the kernel would hang over; here it stays inside, so "
    "there are n − k + 1 places along each axis."
)
def as_large_as_the_image(image, kernel):
    out = np.zeros(image.shape)
    inside = convolve.right(image, kernel)
    out[: inside.shape[0], : inside.shape[1]] = inside
    return out


@convolve.mistake(
    "Your windows get smaller towards the edge, and no longer fit the kernel. The kernel stays inside the "
    "image, so there are n − k + 1 places along each axis."
)
def over_the_edge(image, kernel):
    return _looped(image, kernel, lambda window: (window * kernel).sum(), image.shape)


@convolve.mistake(
    "Your kernel is square, and this one is not: it has `kernel.shape[0]` rows and `kernel.shape[1]` columns."
)
def square_kernel(image, kernel):
    size = len(kernel)
    counts = [n - size + 1 for n in image.shape]
    out = np.zeros(counts)
    for row, column in np.ndindex(*counts):
        out[row, column] = (image[row : row + size, column : column + size] * kernel).sum()
    return out


@convolve.mistake(
    "There are zeros around your image. Here the kernel stays inside, so there are n − k + 1 places along "
    "each axis."
)
def zeros_around(image, kernel):
    rows, columns = kernel.shape
    around = [((rows - 1) // 2, rows // 2), ((columns - 1) // 2, columns // 2)]
    return convolve.right(np.pad(image, around), kernel)


@convolve.mistake("Your loop ends after its first round: does the `return` stand inside it?")
def returned_in_the_loop(image, kernel):
    out = np.zeros_like(convolve.right(image, kernel))
    out[0, 0] = convolve.right(image, kernel)[0, 0]
    return out


@convolve.mistake("`@` is the matrix product. Here each number is multiplied by its own weight: `*`.")
def matrix_product(image, kernel):
    return _looped(image, kernel, lambda window: (window @ kernel[: window.shape[1]]).sum())


@convolve.mistake("You take the mean of the products. Their sum is asked for.")
def mean(image, kernel):
    return convolve.right(image, kernel) / kernel.size


@convolve.mistake("Your windows lie side by side. They overlap: the next one begins one pixel further.")
def side_by_side(image, kernel):
    counts = [n // k for n, k in zip(image.shape, kernel.shape, strict=True)]
    return _looped(image, kernel, lambda window: (window * kernel).sum(), counts, kernel.shape)


@convolve.mistake(
    "This is a window of products, and a single number is needed for each place. Add them up: `.sum()`."
)
def not_summed(image, kernel):
    out = np.zeros((2, 2))
    out[0, 0] = image[: kernel.shape[0], : kernel.shape[1]] * kernel
    return out


@convolve.mistake(
    "A slice goes from its start to its end, and the end moves along: `image[row : row + height, …]`."
)
def end_stays(image, kernel):
    height, width = kernel.shape
    out = np.zeros((image.shape[0] - height + 1, image.shape[1] - width + 1))
    for row, column in np.ndindex(*out.shape):
        out[row, column] = (image[row:height, column:width] * kernel).sum()
    return out


@convolve.mistake(
    "You mix up rows and columns: the first index of an array counts the rows, and `shape[0]` is how many "
    "there are."
)
def rows_and_columns_swapped(image, kernel):
    rows, columns = (n - k + 1 for n, k in zip(image.shape, kernel.shape, strict=True))
    out = np.zeros((columns, rows))
    for row, column in np.ndindex(rows, columns):
        out[column, row] = (
            image[row : row + kernel.shape[0], column : column + kernel.shape[1]] * kernel
        ).sum()
    return out


@convolve.mistake(
    "You mix up rows and columns: the kernel has `shape[0]` rows and `shape[1]` columns, and so has each of "
    "its windows."
)
def kernel_transposed(image, kernel):
    return convolve.right(image, kernel.T)


@convolve.mistake(
    "The numbers are right, but they stand in one row. Make a map of them, with rows and columns."
)
def flat(image, kernel):
    return convolve.right(image, kernel).ravel()


@convolve.mistake("You add the weights to the pixels. Multiply each pixel by its weight.")
def added(image, kernel):
    return _looped(image, kernel, lambda window: (window + kernel).sum())


@convolve.mistake("You take the largest product. All of them are added up.")
def largest(image, kernel):
    return _looped(image, kernel, lambda window: (window * kernel).max())


@convolve.mistake(
    "You count the places along one axis and take them for both. An image may be wider than it is high: "
    "n − k + 1 for the rows, and again for the columns."
)
def square_map(image, kernel):
    counts = [image.shape[0] - kernel.shape[0] + 1] * 2
    return _looped(image, kernel, lambda window: (window * kernel).sum(), counts)


@convolve.mistake(
    "Each number of your map holds the ones before it, too. Begin the sum anew at each place of the kernel."
)
def running_total(image, kernel):
    inside = convolve.right(image, kernel)
    return inside.cumsum().reshape(inside.shape)


@convolve.mistake(
    "Your array holds whole numbers only, and drops what stands behind the point. Make it with `np.zeros`, "
    "without `dtype=int`."
)
def whole_numbers(image, kernel):
    return convolve.right(image, kernel).astype(int)


@convolve.mistake("`np.zeros` takes the shape as one tuple: `np.zeros((rows, columns))`.")
def two_lengths(image, kernel):
    return np.zeros(image.shape[0] - kernel.shape[0] + 1, image.shape[1] - kernel.shape[1] + 1)


# --- 2 All windows, and no copy -----------------------------------------------------------------------------


def counting(height, width, turned=False):
    """Makes an image that counts its pixels in memory; turned, its columns are read as rows."""

    def make():
        image = NDArray(np.arange(height * width).reshape(height, width))
        return {"image": image.permute((1, 0)) if turned else image}

    return make


def _windows_case(height, width, size, step, turned=False):
    make = counting(height, width, turned)
    return given(lambda: {**make(), "size": size, "step": step}, "image", "size", "step")


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
    _windows_case(4, 4, 3, 1),
    _windows_case(5, 7, 2, 2),
    _windows_case(6, 4, 3, 1, turned=True),
    otherwise="Four questions, one for each axis: how far in memory is it to the window below, to the window "
    "on the right, to the pixel below, to the pixel on the right?",
    compare=_windows,
    use=_seen,
)
def windows_of(image, size, step):
    """All windows of an image as a view: (rows, columns, size, size)."""
    rows, columns = ((n - size) // step + 1 for n in image.shape)
    down, right = image.strides
    return image.as_strided((rows, columns, size, size), (step * down, step * right, down, right))


def _counts(image, size, step):
    return tuple((n - size) // step + 1 for n in image.shape)


@windows_of.mistake(
    "You step from window to window by one pixel, whatever `step` is. The next window begins `step` pixels "
    "further."
)
def step_left_out(image, size, step):
    down, right = image.strides
    return image.as_strided((*_counts(image, size, step), size, size), (down, right, down, right))


@windows_of.mistake(
    "The strides of the two pairs of axes are exchanged: the first two lead from window to window, and the "
    "last two from pixel to pixel."
)
def strides_exchanged(image, size, step):
    down, right = image.strides
    strides = (down, right, step * down, step * right)
    return image.as_strided((*_counts(image, size, step), size, size), strides)


@windows_of.mistake(
    "Your strides are in another order than the axes: to the window below, to the window on the right, to "
    "the pixel below, to the pixel on the right."
)
def strides_interleaved(image, size, step):
    down, right = image.strides
    strides = (step * down, down, step * right, right)
    return image.as_strided((*_counts(image, size, step), size, size), strides)


@windows_of.mistake(
    "You step from window to window by `size` pixels, as if they lay side by side. The next window begins "
    "`step` pixels further."
)
def size_as_step(image, size, step):
    down, right = image.strides
    return image.as_strided(
        (*_counts(image, size, step), size, size), (size * down, size * right, down, right)
    )


@windows_of.mistake(
    "The pixel below is not `size` numbers away: the window lies in a wider image, and the way down is the "
    "image's own stride."
)
def size_as_width(image, size, step):
    down, right = image.strides
    strides = (step * down, step * right, size, 1)
    return image.as_strided((*_counts(image, size, step), size, size), strides)


@windows_of.mistake(
    "The view has four axes, so it needs four strides: two from window to window, two from pixel to pixel."
)
def two_strides(image, size, step):
    return image.as_strided((*_counts(image, size, step), size, size), image.strides)


@windows_of.mistake(
    "Inside a window, the pixels are neighbours. `step` is only for the way from one window to the next."
)
def step_everywhere(image, size, step):
    down, right = image.strides
    strides = (step * down, step * right, step * down, step * right)
    return image.as_strided((*_counts(image, size, step), size, size), strides)


@windows_of.mistake(
    "One window is missing along each axis: a window of 3 has 2 places in 4 pixels, (n − size) // step + 1."
)
def last_one_missing(image, size, step):
    return windows_of.right(image, size, step)[tuple(slice(0, (n - size) // step) for n in image.shape)]


@windows_of.mistake(
    "That would read beyond the end of the memory: too many windows. With a step there are "
    "(n − size) // step + 1 of them along an axis."
)
def too_many(image, size, step):
    down, right = image.strides
    rows, columns = (n - size + 1 for n in image.shape)
    return image.as_strided((rows, columns, size, size), (step * down, step * right, down, right))


@windows_of.mistake(
    "You mix up down and right. The first stride of an image leads to the row below, the second to the next "
    "column."
)
def down_and_right_swapped(image, size, step):
    right, down = image.strides
    return image.as_strided(
        (*_counts(image, size, step), size, size), (step * down, step * right, down, right)
    )


@windows_of.mistake(
    "You assume that a row lies right behind the one above it. This image is a view itself, so ask it for "
    "its own steps: `image.strides`."
)
def strides_assumed(image, size, step):
    width = image.shape[1]
    return image.as_strided((*_counts(image, size, step), size, size), (step * width, step, width, 1))


@windows_of.mistake(
    "The numbers are right, but they have been copied. Make a view of the same memory: "
    "`image.as_strided(shape, strides)`."
)
def copied(image, size, step):
    return NDArray(windows_of.right(image, size, step).numpy())


@windows_of.mistake(
    "This is an array of NumPy. Ask the image itself for the view: `image.as_strided(shape, strides)`."
)
def of_numpy(image, size, step):
    return windows_of.right(image, size, step).numpy()


@windows_of.mistake(
    "This is the shape and the strides. Give both to `image.as_strided`, and return the view that it makes."
)
def shape_and_strides(image, size, step):
    windows = windows_of.right(image, size, step)
    return windows.shape, windows.strides


@windows_of.mistake(
    "The axes are in another order: first (rows, columns) of windows, then (size, size) of the pixels in "
    "each."
)
def pixels_first(image, size, step):
    return windows_of.right(image, size, step).permute((2, 3, 0, 1))


@windows_of.mistake(
    "The two axes of windows have become one. Leave them apart: (rows, columns, size, size), four axes."
)
def in_one_row(image, size, step):
    rows, columns = _counts(image, size, step)
    return windows_of.right(image, size, step).reshape((rows * columns, size, size))


@windows_of.mistake(
    "The two axes of windows have become one. Leave them apart: (rows, columns, size, size), four axes."
)
def three_strides(image, size, step):
    (rows, columns), (down, right) = _counts(image, size, step), image.strides
    return image.as_strided((rows * columns, size, size), (step * right, down, right))


@windows_of.mistake(
    "You count the windows along one axis and take them for both. An image may be wider than it is high: "
    "(n − size) // step + 1 for the rows, and again for the columns."
)
def square_of_windows(image, size, step):
    (rows, _), (down, right) = _counts(image, size, step), image.strides
    return image.as_strided((rows, rows, size, size), (step * down, step * right, down, right))


@windows_of.mistake("`/` gives a float, and a shape is made of whole numbers. Round down with `//`.")
def float_lengths(image, size, step):
    rows, columns = ((n - size) / step + 1 for n in image.shape)
    down, right = image.strides
    return image.as_strided((rows, columns, size, size), (step * down, step * right, down, right))


@windows_of.mistake("The shape comes first, and the strides after it: `image.as_strided(shape, strides)`.")
def strides_first(image, size, step):
    down, right = image.strides
    strides = (step * down, step * right, down, right)
    return image.as_strided(strides, (*_counts(image, size, step), size, size))


@windows_of.mistake(
    "Your strides lead beyond the end of the memory. They count numbers here, and not bytes as in NumPy: "
    "take those of `image.strides`."
)
def strides_in_bytes(image, size, step):
    down, right = image.numpy().strides
    strides = (step * down, step * right, down, right)
    return image.as_strided((*_counts(image, size, step), size, size), strides)


@windows_of.mistake(
    "Inside each window, rows and columns are exchanged: first the way to the pixel below, then the way to "
    "the pixel on the right."
)
def windows_transposed(image, size, step):
    return windows_of.right(image, size, step).permute((0, 1, 3, 2))


# --- 3 Both gradients ---------------------------------------------------------------------------------------


def _library(image, kernel, out_grad):
    """Both gradients, by the library's own walk: of the image, and of the kernel."""
    x = Tensor(image[None, :, :, None], dtype="float64")
    k = Tensor(kernel[:, :, None, None], dtype="float64")
    y = ops.conv(x, k, padding=0)
    seed = Tensor(out_grad[None, :, :, None], dtype="float64")
    to_x, to_k = gradients(y, [x, k], seed)
    return to_x.numpy()[0, :, :, 0], to_k.numpy()[:, :, 0, 0]


GRADIENT_CASES = [
    given(named(image=image, kernel=kernel, out_grad=out_grad), "image", "kernel", "out_grad")
    for image, kernel, out_grad in (
        (SMALL, [[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0, 2.0], [0.0, -1.0, 0.5]]),
        (SQUARE, [[0.5, -1, 2], [0, 1, -2], [3, 1, 0]], [[2, 0, 1], [1, -1, 0], [0, 3, 1]]),
        (WIDE, [[1, 0.5], [-1, 2], [0, -3]], [[1, 0, 2, -1, 1], [0.5, 3, 0, 1, 0]]),
    )
]


@lecture.exercise(
    *GRADIENT_CASES,
    otherwise="A weight meets one pixel in each window. Add up: that pixel times what came back to the "
    "window. Which array slides over which?",
    use=as_array,
    without=WALKS,
)
def kernel_gradient(image, kernel, out_grad):
    """What comes back to the kernel, by the library's own walk."""
    return _library(image, kernel, out_grad)[1]


@kernel_gradient.mistake(
    "You turn `out_grad` around. The weight in the upper left corner meets the pixels in the order of the "
    "windows, so nothing is turned here."
)
def turned_out_grad(image, kernel, out_grad):
    return convolve.right(image, out_grad[::-1, ::-1])


@kernel_gradient.mistake(
    "This has the size of the map. What comes back to the kernel has its shape. Which array takes the place "
    "of the kernel?"
)
def forward_again(image, kernel, out_grad):
    return convolve.right(image, kernel)


@kernel_gradient.mistake(
    "This has the size of the map. Each weight collects from all windows: add up, weight by weight, with "
    "`slide`."
)
def forward_times_what_came_back(image, kernel, out_grad):
    return convolve.right(image, kernel) * out_grad


@kernel_gradient.mistake(
    "You leave out what came back to the windows. Each pixel is multiplied by the `out_grad` of its window."
)
def without_out_grad(image, kernel, out_grad):
    return convolve.right(image, np.ones_like(out_grad))


@kernel_gradient.mistake("You divide by the number of windows. Small effects add up, they are not averaged.")
def averaged(image, kernel, out_grad):
    return convolve.right(image, out_grad) / out_grad.size


@kernel_gradient.mistake("Each window overwrites what the one before it gave. Add up: `+=`.")
def only_the_last_window(image, kernel, out_grad):
    rows, columns = kernel.shape
    return image[-rows:, -columns:] * out_grad[-1, -1]


@kernel_gradient.mistake(
    "What comes back to a weight depends on the pixels that it met, and on no weight. Leave the kernel out."
)
def the_kernel_again(image, kernel, out_grad):
    return convolve.right(out_grad, kernel)


@kernel_gradient.mistake(
    "What comes back to a weight depends on the pixels that it met, and on no weight. Leave the kernel out."
)
def times_the_kernel(image, kernel, out_grad):
    return convolve.right(image, out_grad) * kernel


@kernel_gradient.mistake(
    "The numbers are right, but the result is turned around. Slide `out_grad` over the image as it is: "
    "nothing is turned here, and no margin is needed."
)
def turned_result(image, kernel, out_grad):
    return convolve.right(image, out_grad)[::-1, ::-1]


@kernel_gradient.mistake(
    "No margin is needed here. The image is larger than `out_grad`, and each weight met pixels inside of it "
    "only."
)
def with_a_margin(image, kernel, out_grad):
    rows, columns = kernel.shape
    return convolve.right(_with_margin(image, rows - 1, columns - 1), out_grad)


TRANSPOSED = "You swap rows and columns: leave `.T` out. The numbers stay where they are."


@kernel_gradient.mistake(TRANSPOSED)
def transposed_out_grad(image, kernel, out_grad):
    return convolve.right(image, out_grad.T)


@kernel_gradient.mistake(TRANSPOSED)
def transposed_result(image, kernel, out_grad):
    return convolve.right(image, out_grad).T


LARGER_ONE = "The image has to be the one that is slid over: it is the larger one. `slide(image, …)`."


@kernel_gradient.mistake(LARGER_ONE)
def the_image_as_kernel(image, kernel, out_grad):
    return convolve.right(out_grad, image)


@kernel_gradient.mistake(LARGER_ONE)
def the_other_way_round(image, kernel, out_grad):
    return np.zeros([n - k + 1 for n, k in zip(out_grad.shape, image.shape, strict=True)])


@kernel_gradient.mistake(
    "That is the shape of the image. What comes back to the kernel has the kernel's shape."
)
def that_of_the_image(image, kernel, out_grad):
    return _full(out_grad, kernel[::-1, ::-1])


@lecture.exercise(
    *GRADIENT_CASES,
    otherwise="Give `out_grad` a margin of zeros, as wide as the kernel minus 1, on each side. Slide the "
    "kernel over it, turned by half a turn.",
    use=as_array,
    without=WALKS,
)
def image_gradient(image, kernel, out_grad):
    """What comes back to the image, by the library's own walk."""
    return _library(image, kernel, out_grad)[0]


def _with_margin(out_grad, rows, columns):
    return np.pad(out_grad, ((rows, rows), (columns, columns)))


def _full(out_grad, kernel):
    rows, columns = kernel.shape
    return convolve.right(_with_margin(out_grad, rows - 1, columns - 1), kernel)


@image_gradient.mistake(
    "The kernel has to be turned by half a turn: a pixel lies further left in a window that begins further "
    "right."
)
def not_turned(image, kernel, out_grad):
    return _full(out_grad, kernel)


@image_gradient.mistake(
    "This is smaller than the image. Give `out_grad` a margin of zeros first: `np.pad(out_grad, …)`."
)
def no_margin(image, kernel, out_grad):
    rows, columns = kernel.shape
    return _full(out_grad, kernel[::-1, ::-1])[rows - 1 : 1 - rows, columns - 1 : 1 - columns]


@image_gradient.mistake(
    "Your margin is as wide as the kernel, and so the result is larger than the image. The kernel minus 1 is "
    "enough: then the first window just touches a number."
)
def margin_too_wide(image, kernel, out_grad):
    rows, columns = kernel.shape
    return convolve.right(_with_margin(out_grad, rows, columns), kernel[::-1, ::-1])


@image_gradient.mistake(
    "Your margin is 1 for every kernel. It has to be the size of the kernel minus 1, for each axis."
)
def margin_of_one(image, kernel, out_grad):
    return convolve.right(_with_margin(out_grad, 1, 1), kernel[::-1, ::-1])


@image_gradient.mistake(
    "`np.pad(…, (a, b))` puts a before and b behind, along *each* axis. Give it a pair for each axis: "
    "`((a, a), (b, b))`."
)
def before_and_behind(image, kernel, out_grad):
    rows, columns = kernel.shape
    return convolve.right(np.pad(out_grad, (rows - 1, columns - 1)), kernel[::-1, ::-1])


@image_gradient.mistake("Where two windows overlap, the later one overwrites the earlier one. Add up: `+=`.")
def overwritten(image, kernel, out_grad):
    out = np.zeros(image.shape)
    rows, columns = kernel.shape
    for (row, column), came_back in np.ndenumerate(out_grad):
        out[row : row + rows, column : column + columns] = came_back * kernel
    return out


@image_gradient.mistake(
    "What comes back to a pixel depends on `out_grad` and the weights, not on pixels. Slide over `out_grad`."
)
def over_the_image(image, kernel, out_grad):
    return convolve.right(image, kernel[::-1, ::-1])


@image_gradient.mistake("You turn the kernel upside down, but not left to right. Both: `kernel[::-1, ::-1]`.")
def only_upside_down(image, kernel, out_grad):
    return _full(out_grad, kernel[::-1])


@image_gradient.mistake("You turn the kernel left to right, but not upside down. Both: `kernel[::-1, ::-1]`.")
def only_left_to_right(image, kernel, out_grad):
    return _full(out_grad, kernel[:, ::-1])


@image_gradient.mistake(
    "A transpose swaps rows and columns. Half a turn reverses both: `kernel[::-1, ::-1]`."
)
def transposed(image, kernel, out_grad):
    turned = kernel.T
    margins = [n - g + k - 1 for n, g, k in zip(image.shape, out_grad.shape, turned.shape, strict=True)]
    padded = np.pad(out_grad, [(m // 2, m - m // 2) for m in margins])
    return convolve.right(padded, turned)


@image_gradient.mistake(
    "You turn `out_grad` around. Its numbers stay where their windows are; the kernel is turned."
)
def other_one_turned(image, kernel, out_grad):
    return _full(out_grad[::-1, ::-1], kernel)


@image_gradient.mistake(
    "You use one margin for both axes. The kernel may be higher than it is wide: `kernel.shape[0] - 1` above "
    "and below, `kernel.shape[1] - 1` left and right."
)
def one_margin(image, kernel, out_grad):
    return convolve.right(np.pad(out_grad, kernel.shape[0] - 1), kernel[::-1, ::-1])


@image_gradient.mistake(
    "You exchange the margins. Above and below it is `kernel.shape[0] - 1`, left and right "
    "`kernel.shape[1] - 1`."
)
def margins_exchanged(image, kernel, out_grad):
    rows, columns = kernel.shape
    return convolve.right(_with_margin(out_grad, columns - 1, rows - 1), kernel[::-1, ::-1])


@image_gradient.mistake(
    "Your margin is on one side only. There are windows that end at a pixel and windows that begin there: "
    "put zeros on both sides."
)
def margin_on_one_side(image, kernel, out_grad):
    rows, columns = kernel.shape
    return convolve.right(np.pad(out_grad, ((rows - 1, 0), (columns - 1, 0))), kernel[::-1, ::-1])


@image_gradient.mistake("`np.pad` needs a pair for each axis: `((a, a), (b, b))`.")
def margin_in_one_row(image, kernel, out_grad):
    rows, columns = kernel.shape
    return np.pad(out_grad, (rows - 1, rows - 1, columns - 1, columns - 1))


@image_gradient.mistake("You turn one thing too many. Turn the kernel, and leave `out_grad` and the result.")
def turned_twice(image, kernel, out_grad):
    return _full(out_grad[::-1, ::-1], kernel[::-1, ::-1])


@image_gradient.mistake("You turn the kernel by a quarter. Half a turn reverses both axes: `[::-1, ::-1]`.")
def quarter_of_a_turn(image, kernel, out_grad):
    return _full(out_grad, np.rot90(kernel))


SLIDE = "You exchange the two inputs of `slide`: first what is slid over, with its margin, then the kernel."


@image_gradient.mistake(SLIDE)
def over_the_kernel(image, kernel, out_grad):
    rows, columns = kernel.shape
    return convolve.right(kernel[::-1, ::-1], _with_margin(out_grad, rows - 1, columns - 1))


@image_gradient.mistake(SLIDE)
def over_the_kernel_in_a_loop(image, kernel, out_grad):
    return np.zeros([n - k + 1 for n, k in zip(kernel.shape, (100, 100), strict=True)])


@image_gradient.mistake(
    "What comes back to a pixel depends on `out_grad` and the weights, not on pixels. Slide over `out_grad`."
)
def over_the_image_with_margin(image, kernel, out_grad):
    rows, columns = kernel.shape
    return convolve.right(_with_margin(image, rows - 1, columns - 1), kernel[::-1, ::-1])


@image_gradient.mistake(
    "What comes back to a pixel depends on `out_grad` and the weights, and on no pixel. Leave the image out."
)
def times_the_image(image, kernel, out_grad):
    return _full(out_grad, kernel[::-1, ::-1]) * image


@image_gradient.mistake(
    "That is the shape of the kernel. What comes back to the image has the image's shape."
)
def that_of_the_kernel(image, kernel, out_grad):
    return convolve.right(image, out_grad)


# --- 4 Pooling ----------------------------------------------------------------------------------------------

EVEN = [[1.0, 3, 2, 0, 5, 1], [0, 2, 4, 1, 1, 6], [7, 0, 1, 1, 2, 2], [3, 1, 0, 9, 0, 1]]
ODD = -np.random.default_rng(3).integers(1, 20, (5, 7)) / 2.0
THIRDS = np.random.default_rng(4).integers(-9, 9, (6, 9)) / 2.0


@lecture.exercise(
    given(named(image=EVEN), "image"),
    given(named(image=ODD), "image"),
    given(named(image=THIRDS[:, :8]), "image"),
    otherwise="The upper left number of the result is the largest of `image[:2, :2]`, the one beside it the "
    "largest of `image[:2, 2:4]`.",
    use=as_array,
    without={ops.max_pool2d: POOL},
)
def max_pool(image):
    """The largest number of each block of 2 × 2."""
    blocks = np.lib.stride_tricks.sliding_window_view(image, (2, 2))[::2, ::2]
    return blocks.max(axis=(2, 3))


def _blocks(image):
    rows, columns = (n // 2 for n in image.shape)
    return image[: 2 * rows, : 2 * columns].reshape(rows, 2, columns, 2)


@max_pool.mistake("This is the mean of each block. The largest number is asked for.")
def mean_pool(image):
    return _blocks(image).mean(axis=(1, 3))


@max_pool.mistake("Your blocks overlap. The next one begins 2 pixels further, so the result is half as long.")
def overlapping(image):
    return np.lib.stride_tricks.sliding_window_view(image, (2, 2)).max(axis=(2, 3))


@max_pool.mistake("You keep the upper left pixel of each block, however small it is. Take the largest.")
def corners(image):
    return _blocks(image)[:, 0, :, 0]


@max_pool.mistake(
    "`reshape` cuts the numbers in the order in which they lie in memory, so your blocks are pieces of a "
    "row. Cut into (rows, 2, columns, 2), and take the maximum along the axes of length 2."
)
def pieces_of_a_row(image):
    rows, columns = (n // 2 for n in image.shape)
    return image[: 2 * rows, : 2 * columns].reshape(rows, columns, 2, 2).max(axis=(2, 3))


@max_pool.mistake(
    "An odd row or column at the end makes no whole block, and is left out: "
    "`image[: 2 * rows, : 2 * columns]`."
)
def rest_kept(image):
    padded = np.pad(image, [(0, n % 2) for n in image.shape], constant_values=-np.inf)
    return _blocks(padded).max(axis=(1, 3))


@max_pool.mistake(
    "This image has an odd number of rows or columns, so it cannot be cut into blocks. Leave the last one "
    "out first: `image[: 2 * rows, : 2 * columns]`."
)
def does_not_divide(image):
    rows, columns = (n // 2 for n in image.shape)
    return image.reshape(rows, 2, columns, 2).max(axis=(1, 3))


@max_pool.mistake("You begin at 0, and all numbers of this block are below it. Begin with the block itself.")
def from_zero(image):
    return np.maximum(_blocks(image).max(axis=(1, 3)), 0)


@max_pool.mistake(
    "One number must be left of each block, and you took the maximum along one of its two axes only: "
    "`max(axis=(1, 3))`."
)
def one_axis(image):
    return _blocks(image).max(axis=1)


@max_pool.mistake("This is the smallest of each block. The largest is asked for.")
def smallest(image):
    return _blocks(image).min(axis=(1, 3))


@max_pool.mistake("This is the sum of each block. The largest number is asked for.")
def summed(image):
    return _blocks(image).sum(axis=(1, 3))


@max_pool.mistake("This is the largest number of the whole image. Each block has its own.")
def of_the_whole_image(image):
    return image.max()


@max_pool.mistake(
    "You pool along one axis only. A block has 2 rows and 2 columns, and one number comes out of it."
)
def only_down(image):
    rows = image.shape[0] // 2
    return image[: 2 * rows].reshape(rows, 2, -1).max(axis=1)


AXES = (
    "You take the maximum along the wrong axes. In (rows, 2, columns, 2), the two axes of a block are 1 and "
    "3: `max(axis=(1, 3))`."
)


@max_pool.mistake(AXES)
def last_axes(image):
    return _blocks(image).max(axis=(2, 3))


@max_pool.mistake(AXES)
def first_axes(image):
    return _blocks(image).max(axis=(0, 1))


@max_pool.mistake(
    "After the first `max` there is one axis less, and the others move up. Take both at once: "
    "`max(axis=(1, 3))`."
)
def one_after_the_other(image):
    return _blocks(image).max(axis=1).max(axis=1)


CROPPED = (
    "You always leave out the last row and the last column. This image has an even number of both, so each "
    "belongs to a block."
)


@max_pool.mistake(CROPPED)
def cropped_always(image):
    rows, columns = (n // 2 for n in image.shape)
    return image[:-1, :-1].reshape(rows, 2, columns, 2).max(axis=(1, 3))


@max_pool.mistake(CROPPED)
def cropped_before_counting(image):
    rows, columns = ((n - 1) // 2 for n in image.shape)
    return _blocks(image)[:rows, :, :columns].max(axis=(1, 3))


@max_pool.mistake("Python's `max` cannot compare whole rows of a block. Ask the array itself: `block.max()`.")
def max_of_python(image):
    return max(image[:2, :2])


@max_pool.mistake("`/` gives a float, and numbers of rows are whole numbers. Round down with `//`.")
def float_rows(image):
    rows, columns = (n / 2 for n in image.shape)
    return image.reshape(rows, 2, columns, 2).max(axis=(1, 3))


@max_pool.mistake("`/` gives a float, and a slice needs whole numbers. Round down with `//`.")
def float_slice(image):
    rows, columns = (n / 2 for n in image.shape)
    return image[: 2 * rows, : 2 * columns]


@max_pool.mistake(
    "You count the blocks along one axis and take them for both. An image may be wider than it is high."
)
def square_of_blocks(image):
    return _blocks(image).max(axis=(1, 3))[:, : image.shape[0] // 2]


@max_pool.mistake("This is the place of the largest number in its block. The number itself is asked for.")
def place_of_the_largest(image):
    blocks = _blocks(image).transpose(0, 2, 1, 3)
    return blocks.reshape(*blocks.shape[:2], 4).argmax(axis=2)


# --- 5 Shapes by hand ---------------------------------------------------------------------------------------

DIGITS = ((1, 8, 8), [("conv", 4, 3, 1, 1), ("pool", 2), ("flatten",), ("linear", 10)])
LARGER = (
    (3, 15, 22),
    [("conv", 6, 5, 2, 2), ("pool", 3), ("conv", 7, 2, 1, 0), ("flatten",), ("linear", 5)],
)
ROW = ((5,), [("linear", 3), ("linear", 2)])


@lecture.exercise(
    case(*DIGITS),
    case(*LARGER),
    case(*ROW),
    otherwise="Go through the layers one by one, with the shape so far. Compare your list with the one that "
    "is expected, from its beginning: which layer is the first to differ?",
    without={nn.Conv.__init__: BY_HAND, nn.Linear.__init__: BY_HAND},
)
def shapes_by_hand(shape, layers):
    """The shape after each layer, and how many numbers are learned."""
    return _walk(shape, layers)


def _length(n, size, stride, padding):
    return (n + 2 * padding - size) // stride + 1


def _conv_numbers(channels, out, size, places):
    return size * size * channels * out + out


def _linear_numbers(n, features):
    return n * features + features


def _walk(
    shape,
    layers,
    length=_length,
    conv_numbers=_conv_numbers,
    linear_numbers=_linear_numbers,
    pool=lambda c, h, w, size: (c, h // size, w // size),
    flatten=lambda c, h, w: c * h * w,
):
    """Shapes and numbers, with rules that may be wrong."""
    shapes, numbers = [], 0
    for name, *details in layers:
        if name == "conv":
            out, size, stride, padding = details
            channels, *sides = shape
            places = [length(n, size, stride, padding) for n in sides]
            numbers += conv_numbers(channels, out, size, places)
            shape = (out, *places)
        elif name == "pool":
            shape = pool(*shape, details[0])
        elif name == "flatten":
            shape = (flatten(*shape),)
        else:
            numbers += linear_numbers(shape[0], details[0])
            shape = (details[0],)
        shapes.append(shape)
    return shapes, numbers


@shapes_by_hand.mistake(
    "You leave out the biases: one for each channel that comes out, and for each feature."
)
def no_biases(shape, layers):
    return _walk(
        shape, layers, conv_numbers=lambda c, o, s, p: s * s * c * o, linear_numbers=lambda n, f: n * f
    )


@shapes_by_hand.mistake("A convolution has a bias for each channel that comes out. Yours has none.")
def no_bias_in_conv(shape, layers):
    return _walk(shape, layers, conv_numbers=lambda c, o, s, p: s * s * c * o)


@shapes_by_hand.mistake("A linear layer has a bias for each feature. Yours has none.")
def no_bias_in_linear(shape, layers):
    return _walk(shape, layers, linear_numbers=lambda n, f: n * f)


@shapes_by_hand.mistake("The padding stands on both sides of the image, so it counts twice: n + 2 · padding.")
def padding_once(shape, layers):
    return _walk(shape, layers, length=lambda n, k, s, p: (n + p - k) // s + 1)


@shapes_by_hand.mistake("You leave the padding out. It makes the image longer: n + 2 · padding.")
def no_padding(shape, layers):
    return _walk(shape, layers, length=lambda n, k, s, p: (n - k) // s + 1)


@shapes_by_hand.mistake("You leave the stride out. With stride 2 only every second place is taken.")
def no_stride(shape, layers):
    return _walk(shape, layers, length=lambda n, k, s, p: n + 2 * p - k + 1)


@shapes_by_hand.mistake(
    "You are one short along an axis: the first window counts too, (n + 2 · padding − size) // stride + 1."
)
def one_short(shape, layers):
    return _walk(shape, layers, length=lambda n, k, s, p: (n + 2 * p - k) // s)


@shapes_by_hand.mistake(
    "Each kernel looks at all channels that go in. So it has size · size · channels weights, and not only "
    "size · size."
)
def channels_forgotten(shape, layers):
    return _walk(shape, layers, conv_numbers=lambda c, o, s, p: s * s * o + o)


@shapes_by_hand.mistake(
    "You count one bias for the whole layer. Each channel that comes out has one of its own."
)
def a_single_bias(shape, layers):
    return _walk(shape, layers, conv_numbers=lambda c, o, s, p: s * s * c * o + 1)


@shapes_by_hand.mistake(
    "You exchange the channels that go in and those that come out: there is a kernel, and a bias, for each "
    "that comes out."
)
def channels_exchanged(shape, layers):
    return _walk(shape, layers, conv_numbers=lambda c, o, s, p: (s * s * o + 1) * c)


@shapes_by_hand.mistake("A kernel has size · size weights for each channel that goes in, and not only size.")
def one_row_of_a_kernel(shape, layers):
    return _walk(shape, layers, conv_numbers=lambda c, o, s, p: (s * c + 1) * o)


@shapes_by_hand.mistake("A convolution overwrites what was counted before it. Add its numbers: `+=`.")
def overwritten_by_a_conv(shape, layers):
    shapes, numbers = _walk(shape, layers)
    convs = [place for place, (name, *_) in enumerate(layers) if name == "conv"]
    return shapes, numbers - _walk(shape, layers[: convs[-1]])[1] if convs else numbers


@shapes_by_hand.mistake("You count the numbers of one layer only. Add up those of all layers: `+=`.")
def only_the_last_numbers(shape, layers):
    shapes, numbers = _walk(shape, layers)
    return shapes, numbers - _walk(shape, layers[:-1])[1]


@shapes_by_hand.mistake(
    "You count weights for each place of the map. The same kernel is used at all places: that is the point."
)
def a_kernel_for_each_place(shape, layers):
    return _walk(
        shape, layers, conv_numbers=lambda c, o, s, p: (s * s * c * o + o) * int(np.prod(p, dtype=int))
    )


@shapes_by_hand.mistake("Pooling divides the height and the width. The channels stay as they are.")
def channels_pooled(shape, layers):
    return _walk(shape, layers, pool=lambda c, h, w, s: (c // s, h // s, w // s))


@shapes_by_hand.mistake(
    "The blocks of a pooling do not overlap: the length is n // size, and a rest is left out."
)
def pool_overlaps(shape, layers):
    return _walk(shape, layers, pool=lambda c, h, w, s: (c, h - s + 1, w - s + 1))


@shapes_by_hand.mistake("A rest that makes no whole block is left out of a pooling: n // size, rounded down.")
def rounded_up(shape, layers):
    return _walk(shape, layers, pool=lambda c, h, w, s: (c, -(-h // s), -(-w // s)))


@shapes_by_hand.mistake("Flatten lays all channels in one row, too: channels · height · width numbers.")
def flatten_without_channels(shape, layers):
    return _walk(shape, layers, flatten=lambda c, h, w: h * w)


@shapes_by_hand.mistake(
    "The shape that goes in is in your list. Begin it with what comes out of the first layer."
)
def with_the_input(shape, layers):
    shapes, numbers = _walk(shape, layers)
    return [shape, *shapes], numbers


@shapes_by_hand.mistake(
    "Two things are asked for: the list of shapes, and how many numbers are learned altogether."
)
def only_the_shapes(shape, layers):
    return _walk(shape, layers)[0]


@shapes_by_hand.mistake("Return the shape after *each* layer, in a list, and not only the last one.")
def only_the_last(shape, layers):
    shapes, numbers = _walk(shape, layers)
    return shapes[-1], numbers


ONE_AXIS = (
    "A shape has one length for each axis. After `flatten` and `linear` there is one axis left: `(n,)`, with "
    "a comma."
)


@shapes_by_hand.mistake(ONE_AXIS)
def a_number_for_features(shape, layers):
    shapes, numbers = _walk(shape, layers)
    return [*shapes[:-1], shapes[-1][0]], numbers


@shapes_by_hand.mistake("Each layer has its shape in the list. That of `flatten` is missing.")
def without_flatten(shape, layers):
    shapes, numbers = _walk(shape, layers)
    return [s for s, (name, *_) in zip(shapes, layers, strict=True) if name != "flatten"], numbers


@shapes_by_hand.mistake(ONE_AXIS)
def a_number_for_a_shape(shape, layers):
    shapes, numbers = _walk(shape, layers)
    return [s if len(s) > 1 else s[0] for s in shapes], numbers


@shapes_by_hand.mistake(
    "After `flatten`, your shape is a number, and a number has no first item. One axis is a shape, too: "
    "`(n,)`, with a comma."
)
def a_number_after_flatten(shape, layers):
    shape = int(np.prod(shape))
    return [shape[0]], 0


@shapes_by_hand.mistake("The two are exchanged: first the list of shapes, then how many numbers are learned.")
def exchanged(shape, layers):
    return _walk(shape, layers)[::-1]


@shapes_by_hand.mistake(
    "You count a bias for each place of a map. A map has a single bias, the same for all of its places."
)
def a_bias_for_each_place(shape, layers):
    return _walk(
        shape, layers, conv_numbers=lambda c, o, s, p: s * s * c * o + o * int(np.prod(p, dtype=int))
    )


@shapes_by_hand.mistake(
    "You use the channels that come out twice, since you had changed `shape` already. Count the weights "
    "first."
)
def counted_too_late(shape, layers):
    return _walk(shape, layers, conv_numbers=lambda c, o, s, p: (s * s * o + 1) * o)


@shapes_by_hand.mistake("The size of a block stands in the layer: `details[0]`. It need not be 2.")
def always_pool_two(shape, layers):
    return _walk(shape, layers, pool=lambda c, h, w, s: (c, h // 2, w // 2))


@shapes_by_hand.mistake("The height and the width differ here, and each has its own length after the layer.")
def height_for_width(shape, layers):
    square = (shape[0], shape[1], shape[1]) if len(shape) == 3 else shape
    return _walk(square, layers)


FLOATS = "`/` gives a float, and a length is a whole number: round down with `//`."


@shapes_by_hand.mistake(FLOATS)
def float_in_pool(shape, layers):
    return _walk(shape, layers, pool=lambda c, h, w, s: (c, h / s, w / s))


@shapes_by_hand.mistake(FLOATS)
def float_in_conv(shape, layers):
    return _walk(shape, layers, length=lambda n, k, s, p: (n + 2 * p - k) / s + 1)


@shapes_by_hand.mistake(FLOATS)
def float_everywhere(shape, layers):
    return _walk(
        shape,
        layers,
        length=lambda n, k, s, p: (n + 2 * p - k) / s + 1,
        pool=lambda c, h, w, s: (c, h / s, w / s),
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
