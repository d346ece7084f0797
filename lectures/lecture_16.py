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

from .checking import Case, Lecture, Names, arrays, as_array, case, given, kind, values, whole

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade

#: Nine numbers each: what they answer to is what they are called.
KERNELS = {
    "left edge": np.array([[-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]]),
    "top edge": np.array([[-1.0, -1.0, -1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]),
    "mean": np.full((3, 3), 1 / 9),
}


def named(**arrays: Any) -> Any:
    """Makes the inputs of a case, copied from these arrays."""
    return lambda: {name: np.array(array, dtype="float64") for name, array in arrays.items()}


CONV = "This is the library's own convolution. Here you write one yourself, with NumPy."
WALK = "This is the library's own walk back. Write the gradient yourself: `slide` is enough."
WALKS: dict[Callable, str] = {gradients: WALK, Tensor.backward: WALK, ops.Conv.gradient: WALK}
POOL = "This is the library's own pooling. Here you write it yourself, with NumPy."
BY_HAND = "This is the library's own layer. Here you work the shapes and the numbers out by hand."
READY = ("conv", *(f"{name}{axes}d" for name in ("conv", "convolve", "correlate") for axes in (1, 2, 3)))
READY += ("convolve", "correlate", "fftconvolve", "oaconvolve")
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
    if whole := draw(st.sampled_from([None, "image", "kernel"])):
        made[whole] = made[whole].astype(int)  # a picture may hold whole numbers
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


def shapes_and_count(expected: Any, got: Any, names: Names) -> str:
    """Whether all lengths and the count are right, and the shapes are tuples."""
    if difference := whole(expected, got, names):
        return difference
    if lists := [shape for shape in got[0] if not isinstance(shape, tuple)]:
        return f"{lists[0]!r} should be a tuple"
    return ""


shapes_and_count.exactly = values  # type: ignore[attr-defined]


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
    compare=shapes_and_count,
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
