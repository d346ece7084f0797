"""Lecture 16: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

SHOWN = [
    (
        "drag-intro",
        "It is large only where ink begins",
        "edge-code",
        "array([[0., 3., 3., 0.],\n       [0., 3., 3., 0.]])",
    ),
    ("how-long", "and the first place counts, too", "length-code", "(1, 14, 14, 1)"),
    (
        "way-back",
        "the matrix costs a copy, five times as large as the digit",
        "stored-code",
        "windows: (6, 6, 3, 3) with 64 numbers in memory\n"
        "matrix:  (36, 9) with 324 numbers in memory\none map, three ways: True\n",
    ),
    (
        "exercise-gradients",
        "each of them adds such a copy of the kernel to the gradient",
        "one-code",
        "array([[0., 1., 2., 3., 0.],\n       [0., 4., 5., 6., 0.],\n       [0., 7., 8., 9., 0.],\n"
        "       [0., 0., 0., 0., 0.],\n       [0., 0., 0., 0., 0.]], dtype=float32)",
    ),
    ("exercise-pool", "The convolution has the same 4,640 for any size", "weights-code", "4640 and 131584\n"),
    (
        "exercise-shapes",
        "the last layer must know how many numbers arrive",
        "model",
        "(16, 8, 8)\n(32, 8, 8)\n(32, 4, 4)\n(32, 4, 4)\n(32, 2, 2)\n(128,)\n(10,)\n"
        "numbers to learn, by hand: 15338 and in the library: 15338\n",
    ),
]

#: The two layers with the rows of their first weights in the order of the shuffled pixels.
TWIN = (
    "[twin := nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)), "
    "twin.load_state_dict(two_layers.state_dict()), "
    "setattr(twin[1].weight, 'data', ndl.Tensor(two_layers[1].weight.numpy()[order])), twin][-1]"
)
#: The kernels of the network that began near 0, by their number.
QUIET = "(lambda number: quiet[0].weight.numpy()[:, :, 0, number])"
#: A row of three pixels and a kernel of two weights, with what comes back.
ROW = (
    "(lambda x, k, g: ndl.gradients(ndl.conv(x, k, padding=0), [x, k], g))("
    "*[ndl.Tensor(np.array(numbers, 'float64').reshape(shape), dtype='float64') for numbers, shape in "
    "(([2, 3, 5], (1, 1, 3, 1)), ([7, 11], (1, 2, 1, 1)), ([13, 17], (1, 1, 2, 1)))])"
)

TRUE = [
    ("hook", "ten handwritten digits", "sorted(y[:10].tolist()) == list(range(10))"),
    ("hook", "8 × 8 pixels each", "X.shape[1:] == (1, 8, 8)"),
    ("hook", "the same 64 pixels in another order", "sorted(order.tolist()) == list(range(64))"),
    ("learn-intro", "32 hidden features", "two_layers[1].weight.shape == (64, 32)"),
    (
        "exercise-convolve",
        "As well as before, give or take a few digits",
        "abs(int(mistakes(two_layers, test_X).sum()) - int(mistakes(another, shuffle(test_X)).sum())) <= 6",
    ),
    (
        "exercise-convolve",
        "Shuffle the weights in the same way, and all sums are what they were",
        f"np.allclose({TWIN}(ndl.Tensor(shuffle(test_X))).numpy(), two_layers(ndl.Tensor(test_X)).numpy(), "
        "atol=1e-3)",
    ),
    (
        "exercise-convolve",
        "1\\cdot1 + 2\\cdot2 + 0\\cdot3 + 1\\cdot4 = 9",
        "slide(np.array([[1, 2, 0, 1], [0, 1, 3, 2], [2, 0, 1, 1]]), np.array([[1, 2], [3, 4]]))[0, 0] == 9",
    ),
    ("exercise-convolve", "has 3 places", "slide(np.ones((3, 4)), np.ones((2, 2))).shape == (2, 3)"),
    (
        "how-long",
        "the map is the same map, one place further right",
        "np.array_equal(slide(np.pad(zero, ((0, 0), (1, 0))), KERNELS['left edge'])[:, 1:], "
        "slide(zero, KERNELS['left edge']))",
    ),
    (
        "how-long",
        "After three more convolutions nothing would be left",
        "[8 - 2 * times for times in (1, 2, 3, 4)] == [6, 4, 2, 0]",
    ),
    (
        "how-long",
        "Orange is where ink *ends*",
        "slide(np.array([[1, 1, 1, 0, 0, 0]] * 4), KERNELS['left edge']).min() == -3",
    ),
    (
        "how-long",
        "With k = 3 and p = 1, the map is as large as the image",
        "ndl.conv(ndl.Tensor(images[:1]), ndl.Tensor(np.ones((3, 3, 1, 1))), padding=1).shape == "
        "images[:1].shape",
    ),
    (
        "exercise-windows",
        "36 for a digit and 12,780 for all of the new ones",
        "(6 * 6, 36 * len(test_X)) == (36, 12_780)",
    ),
    (
        "exercise-windows",
        "A 4 × 4 image has the strides (4, 1)",
        "counted.shape == (4, 4) and counted.strides == (4, 1)",
    ),
    ("exercise-windows", "Nothing is copied", "counted.as_strided((4,), (5,)).storage is counted.storage"),
    (
        "stored",
        "lies at 4 + 2 = 6",
        "views(counted, 3, 1).strides == (4, 1, 4, 1) and views(counted, 3, 1).numpy()[1, 0, 0, 2] == 6",
    ),
    (
        "stored",
        "four windows read this cell",
        "int((views(counted, 3, 1).numpy() == 6).sum()) == 4",
    ),
    (
        "stored",
        "from the second pixel to the third it is 1, and from the third to the fourth it is 2",
        "np.diff(views(counted, 3, 1).numpy()[0, 0].ravel())[1:3].tolist() == [1, 2]",
    ),
    (
        "exercise-windows",
        "the diagonal: four numbers",
        "counted.as_strided((4,), (5,)).numpy().tolist() == np.diag(counted.numpy()).tolist()",
    ),
    (
        "way-back",
        "does it for some pictures at a time",
        "ndl.ops.ops_convolution.COLUMNS < 10**7 and 'step = max(1, COLUMNS' in "
        "__import__('inspect').getsource(ndl.ops.ops_convolution.Conv.compute)",
    ),
    ("way-back", "x_1 g_0 + x_2 g_1", f"{ROW}[1].numpy().ravel().tolist() == [2*13 + 3*17, 3*13 + 5*17]"),
    (
        "exercise-gradients",
        "g_0 k_1 + g_1 k_0",
        f"{ROW}[0].numpy().ravel().tolist() == [13*7, 13*11 + 17*7, 17*11]",
    ),
    (
        "gradients-solution",
        "two calls of `conv`",
        "[source := viz.draw_gradient(ndl.conv(x, k, padding=0)).source, source.count('conv stride') == 3 "
        "and 'flip axes=(0, 1)' in source and 'pad' in source][-1]",
    ),
    (
        "channels",
        "So a kernel has three axes now, and a fourth counts the kernels",
        "conv.weight.shape == (3, 3, 16, 32) and conv.bias.shape == (32,)",
    ),
    (
        "channels",
        "It takes pictures as (pictures, channels, height, width), and pads so that the size stays",
        "conv(ndl.Tensor(np.zeros((5, 16, 7, 9)))).shape == (5, 32, 7, 9)",
    ),
    ("exercise-pool", "28 times as many", "round(numbers_in(linear) / numbers_in(conv)) == 28"),
    (
        "care",
        "only the largest number of a block gets something",
        "[b := ndl.Tensor(np.array([1.0, 5, 3, 4]).reshape(1, 2, 2, 1)), ndl.gradients("
        "ndl.max_pool2d(b, 2), [b])[0].numpy().ravel().tolist()][-1] == [0, 1, 0, 0]",
    ),
    (
        "care",
        "It learns 1,370 numbers; the two layers of the beginning had 2,410",
        "(numbers_in(eight_kernels(0)), numbers_in(two_layers)) == (1370, 2410)",
    ),
    (
        "exercise-shapes",
        "this network reads about as well as the two layers, with little more than half of the numbers",
        "abs(np.mean(counts['in order']) / 355 - mistakes(two_layers, test_X).mean()) < 0.03 "
        "and 0.5 < 1370 / 2410 < 0.6",
    ),
    (
        "exercise-shapes",
        "the network makes many more mistakes",
        "sum(counts['shuffled']) > 1.3 * sum(counts['in order'])",
    ),
    ("honest", "99 of 100", "0.983 < 1 - wrong.mean() < 0.998"),
    ("honest", "One more mistake among 355 digits is 0.3 %", "round(100 / len(test_y), 1) == 0.3"),
    ("honest", "between 98.9 and 99.4 %", "[round(100 * (1 - n / 355), 1) for n in (4, 2)] == [98.9, 99.4]"),
    ("quiet", "hardly any learning", "min(alike) > 0.9 and pairs.shape == (3, 3, 20)"),
    (
        "learned-read",
        "Number 6 answers at the lower edge of a stroke",
        f"[e := {QUIET}(6), e[0].mean() > 0.3 and e[2].mean() < -0.3][-1]",
    ),
    (
        "learned-read",
        "number 3 at an upper edge",
        f"[e := {QUIET}(3), e[2].mean() > 0.3 and e[0].mean() < -0.1][-1]",
    ),
    (
        "learned-read",
        "number 4 at a right edge",
        f"[e := {QUIET}(4), e[:, 0].mean() > 0.3 and e[:, 2].mean() < -0.3][-1]",
    ),
    (
        "learned-read",
        "Numbers 0 and 7 have stayed near zero",
        f"max(abs({QUIET}(n)).max() for n in (0, 7)) < 0.1 * abs(quiet[0].weight.numpy()).max()",
    ),
    (
        "learned-read",
        "their biases below zero, so their ReLU lets nothing through",
        "max(quiet[0].bias.numpy().ravel()[[0, 7]]) < 0 and "
        "not quiet[1](quiet[0](ndl.Tensor(X))).numpy()[:, [0, 7]].any()",
    ),
    (
        "moved-read",
        "The two layers read more than half of the digits wrongly",
        "mistakes(two_layers, moved_X).mean() > 0.5",
    ),
    ("moved-read", "they still read most of the digits", "mistakes(model, moved_X).mean() < 0.35"),
    (
        "drag-intro",
        "−1 in its first row, 0 in the second and 1 in the third, and *mean* is nine times 1/9",
        "KERNELS['top edge'].tolist() == [[-1] * 3, [0] * 3, [1] * 3] and np.all(KERNELS['mean'] * 9 == 1)",
    ),
    (
        "quiet",
        "exactly the same pattern, perhaps stronger or weaker",
        "np.isclose(np.corrcoef(start[..., 0].ravel(), 3 * start[..., 0].ravel())[0, 1], 1)",
    ),
    (
        "summary",
        "it does as well with fewer numbers; where it is not, it makes more mistakes",
        "numbers_in(eight_kernels(0)) < numbers_in(two_layers) and max(counts['in order']) / 355 < 0.06 "
        "and min(counts['shuffled']) > max(counts['in order'])",
    ),
    (
        "summary",
        "224 numbers",
        "numbers_in(nn.Conv(3, 8, 3, rng=0)) == 3 * 3 * 3 * 8 + 8 == 224",
    ),
]

SLIDE = "from lectures.lecture_16 import convolve\nslide = convolve.right\n"

#: A right answer, for near misses that differ in one place.
BY_HAND = """def shapes_by_hand(shape, layers):
    shapes, total = [], 0
    for kind, *rest in layers:
        if kind == 'conv':
            o, k, s, p = rest
            c, h, w = shape
            total += (k * k * c + 1) * o
            shape = (o, (h + 2 * p - k) // s + 1, (w + 2 * p - k) // s + 1)
        elif kind == 'pool':
            c, h, w = shape
            shape = (c, h // rest[0], w // rest[0])
        elif kind == 'flatten':
            shape = (shape[0] * shape[1] * shape[2],)
        else:
            total += (shape[0] + 1) * rest[0]
            shape = (rest[0],)
        shapes.append(shape)
    return shapes, total
"""

NEAR_MISSES = {
    "convolve": [
        (
            "def convolve(image, kernel):\n    h, w = kernel.shape\n    rows, columns = image.shape\n"
            "    out = np.zeros((rows - h + 1, columns - w + 1))\n    for r in range(rows - h + 1):\n"
            "        for c in range(columns - w + 1):\n            for i in range(h):\n"
            "                for j in range(w):\n"
            "                    out[r, c] += image[r + i, c + j] * kernel[h - 1 - i, w - 1 - j]\n"
            "    return out",
            "You turn the kernel around",
        ),
        (
            "def convolve(image, kernel):\n    h, w = kernel.shape\n"
            "    out = np.zeros((image.shape[0] - h, image.shape[1] - w))\n"
            "    for r, c in np.ndindex(*out.shape):\n"
            "        out[r, c] = np.sum(image[r:r + h, c:c + w] * kernel)\n    return out",
            "one row and one column too small",
        ),
        (
            "def convolve(image, kernel):\n    h, w = kernel.shape\n"
            "    out = np.zeros((image.shape[0] - h + 1, image.shape[1] - w + 1))\n"
            "    for r, c in np.ndindex(*out.shape):\n"
            "        out[r, c] = np.sum(image[r:r + h, c:c + w] @ kernel)\n    return out",
            "the matrix product",
        ),
        (
            "def convolve(image, kernel):\n    h, w = kernel.shape\n"
            "    return np.array([[(image[r:r + h, c:c + w] * kernel).mean() for c in "
            "range(image.shape[1] - w + 1)] for r in range(image.shape[0] - h + 1)])",
            "You take the mean",
        ),
        (
            "def convolve(image, kernel):\n    h, w = kernel.shape\n"
            "    return [(image[r:r + h, c:c + w] * kernel).sum() for r in range(image.shape[0] - h + 1) "
            "for c in range(image.shape[1] - w + 1)]",
            "they stand in one row",
        ),
        (
            "def convolve(image, kernel):\n    out = np.zeros(image.shape)\n"
            "    for r, c in np.ndindex(*image.shape):\n"
            "        out[r, c] = (image[r:r + kernel.shape[0], c:c + kernel.shape[1]] * kernel).sum()\n"
            "    return out",
            "Your windows get smaller towards the edge",
        ),
        (
            "def convolve(image, kernel):\n    k = len(kernel)\n"
            "    out = np.zeros((image.shape[0] - k + 1, image.shape[1] - k + 1))\n"
            "    for r, c in np.ndindex(*out.shape):\n"
            "        out[r, c] = (image[r:r + k, c:c + k] * kernel).sum()\n    return out",
            "Your kernel is square",
        ),
        (
            "def convolve(image, kernel):\n    images = ndl.Tensor(image[None, :, :, None])\n"
            "    kernels = ndl.Tensor(kernel[:, :, None, None])\n"
            "    return ndl.conv(images, kernels, padding=0).numpy()[0, :, :, 0]",
            "the library's own convolution",
        ),
        (
            "def convolve(image, kernel):\n"
            "    h, w = kernel.shape\n"
            "    n = len(image) - h + 1\n"
            "    out = np.zeros((n, n))\n"
            "    for r, c in np.ndindex(n, n):\n"
            "        out[r, c] = np.vdot(image[r:r + h, c:c + w], kernel)\n"
            "    return out",
            "You count the places along one axis",
        ),
        (
            "def convolve(image, kernel):\n"
            "    h, w = kernel.shape\n"
            "    out = np.zeros((image.shape[0] - h + 1, image.shape[1] - w + 1))\n"
            "    total = 0\n"
            "    for r, c in np.ndindex(*out.shape):\n"
            "        total += (image[r:r + h, c:c + w] * kernel).sum()\n"
            "        out[r, c] = total\n"
            "    return out",
            "holds the ones before it",
        ),
        (
            "def convolve(image, kernel):\n"
            "    h, w = kernel.shape\n"
            "    out = np.zeros((image.shape[0] - h + 1, image.shape[1] - w + 1), dtype=int)\n"
            "    for r, c in np.ndindex(*out.shape):\n"
            "        out[r, c] = (image[r:r + h, c:c + w] * kernel).sum()\n"
            "    return out",
            "holds whole numbers only",
        ),
        (
            "def convolve(image, kernel):\n"
            "    rows, columns = image.shape[0] - len(kernel) + 1, image.shape[1] - kernel.shape[1] + 1\n"
            "    out = np.zeros(rows, columns)\n"
            "    return out",
            "the shape as one tuple",
        ),
    ],
    "windows_of": [
        (
            "def windows_of(image, size, step):\n    H, W = image.shape\n"
            "    return image.as_strided(((H - size) // step + 1, (W - size) // step + 1, size, size), "
            "(image.strides * 2))",
            "You step from window to window by one pixel",
        ),
        (
            "def windows_of(image, size, step):\n    H, W = image.shape\n"
            "    return image.as_strided(((H - size) // step + 1, (W - size) // step + 1, size, size), "
            "(W * step, step, W, 1))",
            "This image is a view itself",
        ),
        (
            "def windows_of(image, size, step):\n    a = image.numpy()\n"
            "    every = np.lib.stride_tricks.sliding_window_view(a, (size, size))[::step, ::step]\n"
            "    return ndl.NDArray(every)",
            "they have been copied",
        ),
        (
            "def windows_of(image, size, step):\n"
            "    every = np.lib.stride_tricks.sliding_window_view(image.numpy(), (size, size))\n"
            "    return every[::step, ::step]",
            "This is an array of NumPy",
        ),
        (
            "def windows_of(image, size, step):\n    (H, W), (a, b) = image.shape, image.strides\n"
            "    return image.as_strided((H - size + 1, W - size + 1, size, size), "
            "(a * step, b * step, a, b))",
            "read beyond the end of the memory",
        ),
        (
            "def windows_of(image, size, step):\n    (H, W), (a, b) = image.shape, image.strides\n"
            "    return image.as_strided(((H - size) // step + 1, (W - size) // step + 1, size, size), "
            "(a * step, a, b * step, b))",
            "in another order than the axes",
        ),
        (
            "def windows_of(image, size, step):\n"
            "    R, C = ((n - size) // step + 1 for n in image.shape)\n"
            "    a, b = image.strides\n"
            "    return image.as_strided((R, C, size, size), (4 * step * a, 4 * step * b, 4 * a, 4 * b))",
            "They count numbers here",
        ),
        (
            "def windows_of(image, size, step):\n"
            "    R, C = ((n - size) // step + 1 for n in image.shape)\n"
            "    a, b = image.strides\n"
            "    return image.as_strided((R * C, size, size), (b * step, a, b))",
            "The two axes of windows have become one",
        ),
        (
            "def windows_of(image, size, step):\n"
            "    R, C = ((n - size) // step + 1 for n in image.shape)\n"
            "    a, b = image.strides\n"
            "    return image.as_strided((R, R, size, size), (a * step, b * step, a, b))",
            "You count the windows along one axis",
        ),
        (
            "def windows_of(image, size, step):\n"
            "    R, C = ((n - size) // step + 1 for n in image.shape)\n"
            "    a, b = image.strides\n"
            "    return image.as_strided((R, C, size, size), (a * step, b * step, b, a))",
            "rows and columns are exchanged",
        ),
        (
            "def windows_of(image, size, step):\n"
            "    R, C = ((n - size) // step + 1 for n in image.shape)\n"
            "    a, b = image.strides\n"
            "    return image.as_strided((step * a, step * b, a, b), (R, C, size, size))",
            "The shape comes first",
        ),
        (
            "def windows_of(image, size, step):\n"
            "    counts = [(n - size) / step + 1 for n in image.shape]\n"
            "    strides = [step * n for n in image.strides]\n"
            "    return image.as_strided((*counts, size, size), (*strides, *image.strides))",
            "Round down with `//`",
        ),
    ],
    "kernel_gradient": [
        (
            SLIDE
            + "def kernel_gradient(image, kernel, out_grad):\n    return slide(image, np.rot90(out_grad, 2))",
            "nothing is turned here",
        ),
        (
            SLIDE + "def kernel_gradient(image, kernel, out_grad):\n    return slide(out_grad, image)",
            "it is the larger one",
        ),
        (
            "def kernel_gradient(image, kernel, out_grad):\n    out = np.zeros(kernel.shape)\n"
            "    rows, columns = out_grad.shape\n    for i, j in np.ndindex(*kernel.shape):\n"
            "        out[i, j] = image[i:i + rows, j:j + columns].sum()\n    return out",
            "what came back to the windows",
        ),
        (
            "def kernel_gradient(image, kernel, out_grad):\n    out = np.zeros(kernel.shape)\n"
            "    rows, columns = out_grad.shape\n    for i, j in np.ndindex(*kernel.shape):\n"
            "        out[i, j] = (image[i:i + rows, j:j + columns] * out_grad).mean()\n    return out",
            "they are not averaged",
        ),
        (
            "def kernel_gradient(image, kernel, out_grad):\n    h, w = kernel.shape\n"
            "    for r, c in np.ndindex(*out_grad.shape):\n"
            "        out = image[r:r + h, c:c + w] * out_grad[r, c]\n    return out",
            "Add up: `+=`",
        ),
        (
            "def kernel_gradient(image, kernel, out_grad):\n"
            "    x, g = (ndl.Tensor(a[None, :, :, None]) for a in (image, out_grad))\n"
            "    k = ndl.Tensor(kernel[:, :, None, None])\n"
            "    (to_k,) = ndl.gradients(ndl.conv(x, k, padding=0), [k], g)\n"
            "    return to_k.numpy()[:, :, 0, 0]",
            "the library's own walk back",
        ),
        (
            SLIDE + "def kernel_gradient(image, kernel, out_grad):\n"
            "    h, w = kernel.shape\n"
            "    return slide(np.pad(out_grad, ((h - 1, h - 1), (w - 1, w - 1))), image)",
            "the result is turned around",
        ),
        (
            SLIDE + "def kernel_gradient(image, kernel, out_grad):\n"
            "    h, w = kernel.shape\n"
            "    return slide(np.pad(image, ((h - 1, h - 1), (w - 1, w - 1))), out_grad)",
            "No margin is needed here",
        ),
        (
            SLIDE + "def kernel_gradient(image, kernel, out_grad):\n"
            "    return kernel * slide(image, out_grad)",
            "and on no weight",
        ),
        (
            "def kernel_gradient(image, kernel, out_grad):\n"
            "    x, g = (ndl.Tensor(a[None, :, :, None]) for a in (image, out_grad))\n"
            "    y = ndl.conv(x, ndl.Tensor(kernel[:, :, None, None]), padding=0)\n"
            "    return y.op.gradient(g, y)[1].numpy()[:, :, 0, 0]",
            "the library's own walk back",
        ),
    ],
    "image_gradient": [
        (
            "def image_gradient(image, kernel, out_grad):\n    out = np.zeros(image.shape)\n"
            "    h, w = kernel.shape\n    for r, c in np.ndindex(*out_grad.shape):\n"
            "        out[r:r + h, c:c + w] += out_grad[r, c] * kernel[::-1, ::-1]\n    return out",
            "The kernel has to be turned by half a turn",
        ),
        (
            SLIDE + "def image_gradient(image, kernel, out_grad):\n"
            "    pads = [(n - 1, n - 1) for n in kernel.shape]\n"
            "    return slide(np.pad(out_grad, pads), np.flipud(kernel))",
            "but not left to right",
        ),
        (
            SLIDE + "def image_gradient(image, kernel, out_grad):\n"
            "    pads = [(n, n) for n in kernel.shape]\n"
            "    return slide(np.pad(out_grad, pads), np.rot90(kernel, 2))",
            "Your margin is as wide as the kernel",
        ),
        (
            SLIDE + "def image_gradient(image, kernel, out_grad):\n"
            "    return slide(np.pad(out_grad, len(kernel) - 1), np.flip(kernel))",
            "one margin for both axes",
        ),
        (
            "def image_gradient(image, kernel, out_grad):\n    out = np.zeros(image.shape)\n"
            "    h, w = kernel.shape\n    for r, c in np.ndindex(*out_grad.shape):\n"
            "        out[r:r + h, c:c + w] = out_grad[r, c] * kernel\n    return out",
            "Add up: `+=`",
        ),
        (
            SLIDE + "def image_gradient(image, kernel, out_grad):\n    h, w = kernel.shape\n"
            "    return slide(np.pad(out_grad, (h - 1, w - 1)), np.flip(kernel))",
            "a pair for each axis",
        ),
        (
            SLIDE + "def image_gradient(image, kernel, out_grad):\n"
            "    h, w = kernel.shape\n"
            "    return slide(np.pad(out_grad, ((h - 1, h - 1), (w - 1, w - 1))), kernel)[::-1, ::-1]",
            "one thing too many",
        ),
        (
            SLIDE + "def image_gradient(image, kernel, out_grad):\n"
            "    h, w = kernel.shape\n"
            "    return slide(np.pad(out_grad, ((w - 1, w - 1), (h - 1, h - 1))), np.flip(kernel))",
            "You exchange the margins",
        ),
        (
            SLIDE + "def image_gradient(image, kernel, out_grad):\n"
            "    h, w = kernel.shape\n"
            "    return slide(np.pad(out_grad, ((h - 1, 0), (w - 1, 0))), np.flip(kernel))",
            "on one side only",
        ),
        (
            SLIDE + "def image_gradient(image, kernel, out_grad):\n"
            "    h, w = kernel.shape\n"
            "    return slide(np.pad(out_grad, ((h - 1, h - 1), (w - 1, w - 1))), np.rot90(kernel))",
            "by a quarter",
        ),
        (
            SLIDE + "def image_gradient(image, kernel, out_grad):\n"
            "    h, w = kernel.shape\n"
            "    return image * slide(np.pad(out_grad, ((h - 1, h - 1), (w - 1, w - 1))), np.flip(kernel))",
            "Leave the image out",
        ),
        (
            "def image_gradient(image, kernel, out_grad):\n"
            "    h, w = kernel.shape\n"
            "    big = np.pad(out_grad, ((h - 1, h - 1), (w - 1, w - 1)))\n"
            "    out = np.zeros((h - big.shape[0] + 1, w - big.shape[1] + 1))\n"
            "    for r, c in np.ndindex(*out.shape):\n"
            "        out[r, c] = (np.flip(kernel)[r:r + h, c:c + w] * big).sum()\n"
            "    return out",
            "You exchange the two inputs",
        ),
        (
            "def image_gradient(image, kernel, out_grad):\n"
            "    x, g = (ndl.Tensor(a[None, :, :, None]) for a in (image, out_grad))\n"
            "    y = ndl.conv(x, ndl.Tensor(kernel[:, :, None, None]), padding=0)\n"
            "    return y.op.gradient(g, y)[0].numpy()[0, :, :, 0]",
            "the library's own walk back",
        ),
    ],
    "max_pool": [
        (
            "def max_pool(image):\n    r, c = image.shape[0] // 2, image.shape[1] // 2\n"
            "    out = np.zeros((r, c))\n    for i in range(r):\n        for j in range(c):\n"
            "            out[i, j] = image[2 * i:2 * i + 2, 2 * j:2 * j + 2].mean()\n    return out",
            "This is the mean",
        ),
        (
            "def max_pool(image):\n    r, c = image.shape[0] // 2, image.shape[1] // 2\n"
            "    out = np.zeros((r, c))\n    for i in range(2 * r):\n        for j in range(2 * c):\n"
            "            out[i // 2, j // 2] = max(out[i // 2, j // 2], image[i, j])\n    return out",
            "You begin at 0",
        ),
        (
            "def max_pool(image):\n    h, w = image.shape\n"
            "    return image.reshape(h // 2, 2, w // 2, 2).max(axis=(1, 3))",
            "it cannot be cut into blocks",
        ),
        (
            "def max_pool(image):\n    return np.array([[image[i:i + 2, j:j + 2].max() "
            "for j in range(0, image.shape[1], 2)] for i in range(0, image.shape[0], 2)])",
            "makes no whole block",
        ),
        (
            "def max_pool(image):\n    h, w = (n // 2 * 2 for n in image.shape)\n"
            "    return image[:h:2, :w:2]",
            "You keep the upper left pixel",
        ),
        (
            "def max_pool(image):\n"
            "    r, c = (n // 2 for n in image.shape)\n"
            "    blocks = image[:2 * r, :2 * c].reshape(r, 2, c, 2)\n"
            "    return np.amax(blocks, axis=(2, 3))",
            "along the wrong axes",
        ),
        (
            "def max_pool(image):\n"
            "    r, c = (n // 2 for n in image.shape)\n"
            "    blocks = image[:2 * r, :2 * c].reshape(r, 2, c, 2)\n"
            "    return blocks.max(axis=1).max(axis=1)",
            "the others move up",
        ),
        (
            "def max_pool(image):\n"
            "    r, c = (n // 2 for n in image.shape)\n"
            "    return image[:-1, :-1].reshape(r, 2, c, 2).max(axis=(1, 3))",
            "You always leave out the last row",
        ),
        (
            "def max_pool(image):\n"
            "    image = image[:-1, :-1]\n"
            "    r, c = (n // 2 for n in image.shape)\n"
            "    return np.array([[image[2 * i:2 * i + 2, 2 * j:2 * j + 2].max() for j in range(c)] "
            "for i in range(r)])",
            "You always leave out the last row",
        ),
        (
            "def max_pool(image):\n"
            "    r, c = (n // 2 for n in image.shape)\n"
            "    return np.array([[max(image[2 * i:2 * i + 2, 2 * j:2 * j + 2]) for j in range(c)] "
            "for i in range(r)])",
            "cannot compare whole rows",
        ),
        (
            "def max_pool(image):\n"
            "    n = len(image) // 2\n"
            "    return np.array([[image[2 * i:2 * i + 2, 2 * j:2 * j + 2].max() for j in range(n)] "
            "for i in range(n)])",
            "You count the blocks along one axis",
        ),
        (
            "def max_pool(image):\n"
            "    r, c = image.shape[0] / 2, image.shape[1] / 2\n"
            "    return image[:2 * r, :2 * c].reshape(r, 2, c, 2).max(axis=(1, 3))",
            "a slice needs whole numbers",
        ),
    ],
    "shapes_by_hand": [
        (
            "def shapes_by_hand(shape, layers):\n    shapes, total = [], 0\n    for kind, *rest in layers:\n"
            "        if kind == 'conv':\n            o, k, s, p = rest\n            c, h, w = shape\n"
            "            total += k * k * c * o\n"
            "            shape = (o, (h + 2 * p - k) // s + 1, (w + 2 * p - k) // s + 1)\n"
            "        elif kind == 'pool':\n            c, h, w = shape\n"
            "            shape = (c, h // rest[0], w // rest[0])\n"
            "        elif kind == 'flatten':\n            shape = (int(np.prod(shape)),)\n"
            "        else:\n            total += shape[0] * rest[0]\n            shape = (rest[0],)\n"
            "        shapes.append(shape)\n    return shapes, total",
            "You leave out the biases",
        ),
        (
            "def shapes_by_hand(shape, layers):\n    shapes, total = [], 0\n    for kind, *rest in layers:\n"
            "        if kind == 'conv':\n            o, k, s, p = rest\n            c, h, w = shape\n"
            "            total += k * k * c * o + o\n"
            "            shape = (o, (h + p - k) // s + 1, (w + p - k) // s + 1)\n"
            "        elif kind == 'pool':\n            c, h, w = shape\n"
            "            shape = (c, h // rest[0], w // rest[0])\n"
            "        elif kind == 'flatten':\n            shape = (int(np.prod(shape)),)\n"
            "        else:\n            total += (shape[0] + 1) * rest[0]\n            shape = (rest[0],)\n"
            "        shapes.append(shape)\n    return shapes, total",
            "it counts twice",
        ),
        (
            "def shapes_by_hand(shape, layers):\n    shapes, total = [], 0\n    for kind, *rest in layers:\n"
            "        if kind == 'conv':\n            o, k, s, p = rest\n            c, h, w = shape\n"
            "            total += k * k * o + o\n"
            "            shape = (o, (h + 2 * p - k) // s + 1, (w + 2 * p - k) // s + 1)\n"
            "        elif kind == 'pool':\n            c, h, w = shape\n"
            "            shape = (c, h // rest[0], w // rest[0])\n"
            "        elif kind == 'flatten':\n            shape = (int(np.prod(shape)),)\n"
            "        else:\n            total += (shape[0] + 1) * rest[0]\n            shape = (rest[0],)\n"
            "        shapes.append(shape)\n    return shapes, total",
            "looks at all channels that go in",
        ),
        (BY_HAND.replace("h // rest[0], w // rest[0]", "h // 2, w // 2"), "It need not be 2"),
        (
            BY_HAND.replace(
                "(k * k * c + 1) * o",
                "k * k * c * o + o * ((h + 2 * p - k) // s + 1) * ((w + 2 * p - k) // s + 1)",
            ),
            "You count a bias for each place",
        ),
        (
            BY_HAND.replace(
                "            c, h, w = shape\n            total += (k * k * c + 1) * o\n",
                "            c, h, w = shape\n",
            ).replace(
                "(w + 2 * p - k) // s + 1)\n",
                "(w + 2 * p - k) // s + 1)\n            total += (k * k * shape[0] + 1) * o\n",
            ),
            "you had changed `shape` already",
        ),
        (BY_HAND.replace("return shapes, total", "return total, shapes"), "The two are exchanged"),
        (BY_HAND.replace("total += (k", "total = (k"), "A convolution overwrites"),
        (BY_HAND.replace("total += (shape", "total = (shape"), "one layer only"),
        (
            BY_HAND.replace("        shapes.app", "        if kind != 'flatten':\n            shapes.app"),
            "of `flatten`",
        ),
        (BY_HAND.replace("h // rest[0], w // rest[0]", "h / rest[0], w / rest[0]"), "round down with `//`"),
        (
            BY_HAND.replace("(shape[0] * shape[1] * shape[2],)", "shape[0] * shape[1] * shape[2]"),
            "a number has no first item",
        ),
        (BY_HAND.replace("(w + 2 * p - k)", "(h + 2 * p - k)"), "its own length"),
        (
            "from needle import nn\n"
            "def shapes_by_hand(shape, layers):\n"
            "    x, shapes, total = ndl.Tensor(np.zeros((1, *shape))), [], 0\n"
            "    for kind, *rest in layers:\n"
            "        if kind == 'conv':\n"
            "            layer = nn.Conv(x.shape[1], *rest, rng=0)\n"
            "        elif kind == 'linear':\n"
            "            layer = nn.Linear(x.shape[1], rest[0], rng=0)\n"
            "        else:\n"
            "            layer = nn.MaxPool2d(rest[0]) if rest else nn.Flatten()\n"
            "        x = layer(x)\n"
            "        shapes.append(x.shape[1:])\n"
            "        total += sum(p.numpy().size for p in layer.parameters())\n"
            "    return shapes, total",
            "the library's own layer",
        ),
    ],
}
