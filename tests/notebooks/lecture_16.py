"""Lecture 16: what its prose claims, and what proves it."""

from __future__ import annotations

SHOWN = [
    ("drag-intro", "It is large only where ink begins", "edge-code",
     "array([[0., 3., 3., 0.],\n       [0., 3., 3., 0.]])"),
    ("how-long", "and the first place counts, too", "length-code", "(1, 14, 14, 1)"),
    ("way-back", "the matrix costs a copy, five times as large as the digit", "stored-code",
     "windows: (6, 6, 3, 3) with 64 numbers in memory\nmatrix:  (36, 9) with 324 numbers in memory\none "
     "map, three ways: True\n"),
    ("exercise-gradients", "each of them adds such a copy of the kernel to the gradient", "one-code",
     "array([[0., 1., 2., 3., 0.],\n       [0., 4., 5., 6., 0.],\n       [0., 7., 8., 9., 0.],\n       [0.,"
     " 0., 0., 0., 0.],\n       [0., 0., 0., 0., 0.]], dtype=float32)"),
    ("exercise-pool", "The convolution has the same 4,640 for any size", "weights-code", "4640 and 131584\n"),
    ("exercise-shapes", "the last layer must know how many numbers arrive", "model",
     "(16, 8, 8)\n(32, 8, 8)\n(32, 4, 4)\n(32, 4, 4)\n(32, 2, 2)\n(128,)\n(10,)\nnumbers to learn, by "
     "hand: 15338 and in the library: 15338\n"),
]  # fmt: skip

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
    ("exercise-convolve", "as well as before, give or take a few digits",
     "abs(int(mistakes(two_layers, test_X).sum()) - int(mistakes(another, shuffle(test_X)).sum())) <= 6"),
    ("exercise-convolve", "Shuffle the weights in the same way, and all sums are what they were",
     f"np.allclose({TWIN}(ndl.Tensor(shuffle(test_X))).numpy(), two_layers(ndl.Tensor(test_X)).numpy(), "
     "atol=1e-3)"),
    ("exercise-convolve", "1\\cdot1 + 2\\cdot2 + 0\\cdot3 + 1\\cdot4 = 9",
     "slide(np.array([[1, 2, 0, 1], [0, 1, 3, 2], [2, 0, 1, 1]]), np.array([[1, 2], [3, 4]]))[0, 0] == 9"),
    ("exercise-convolve", "has 3 places", "slide(np.ones((3, 4)), np.ones((2, 2))).shape == (2, 3)"),
    ("how-long", "the map is the same map, one place further right",
     "np.array_equal(slide(np.pad(zero, ((0, 0), (1, 0))), KERNELS['left edge'])[:, 1:], slide(zero, "
     "KERNELS['left edge']))"),
    ("how-long", "After three more convolutions nothing would be left",
     "[8 - 2 * times for times in (1, 2, 3, 4)] == [6, 4, 2, 0]"),
    ("how-long", "Orange is where ink *ends*",
     "slide(np.array([[1, 1, 1, 0, 0, 0]] * 4), KERNELS['left edge']).min() == -3"),
    ("how-long", "With k = 3 and p = 1, the map is as large as the image",
     "ndl.conv(ndl.Tensor(images[:1]), ndl.Tensor(np.ones((3, 3, 1, 1))), padding=1).shape == "
     "images[:1].shape"),
    ("exercise-windows", "36 for a digit and 12,780 for all of the new ones",
     "(6 * 6, 36 * len(test_X)) == (36, 12_780)"),
    ("exercise-windows", "A 4 × 4 image has the strides (4, 1)",
     "counted.shape == (4, 4) and counted.strides == (4, 1)"),
    ("exercise-windows", "Nothing is copied", "counted.as_strided((4,), (5,)).storage is counted.storage"),
    ("stored", "lies at 4 + 2 = 6",
     "views(counted, 3, 1).strides == (4, 1, 4, 1) and views(counted, 3, 1).numpy()[1, 0, 0, 2] == 6"),
    ("stored", "four windows read this cell", "int((views(counted, 3, 1).numpy() == 6).sum()) == 4"),
    ("stored", "from the second pixel to the third it is 1, and from the third to the fourth it is 2",
     "np.diff(views(counted, 3, 1).numpy()[0, 0].ravel())[1:3].tolist() == [1, 2]"),
    ("exercise-windows", "the diagonal: four numbers",
     "counted.as_strided((4,), (5,)).numpy().tolist() == np.diag(counted.numpy()).tolist()"),
    ("way-back", "does it for some pictures at a time", "ndl.ops.ops_convolution.COLUMNS < 10**7 and 'step "
     "= max(1, COLUMNS' in __import__('inspect').getsource(ndl.ops.ops_convolution.Conv.compute)"),
    ("way-back", "x_1 g_0 + x_2 g_1", f"{ROW}[1].numpy().ravel().tolist() == [2*13 + 3*17, 3*13 + 5*17]"),
    ("exercise-gradients", "g_0 k_1 + g_1 k_0",
     f"{ROW}[0].numpy().ravel().tolist() == [13*7, 13*11 + 17*7, 17*11]"),
    ("gradients-solution", "two calls of `conv`", "[source := viz.draw_gradient(ndl.conv(x, k, "
     "padding=0)).source, source.count('conv stride') == 3 and 'flip axes=(0, 1)' in source and 'pad' in "
     "source][-1]"),
    ("channels", "So a kernel has three axes now, and a fourth counts the kernels",
     "conv.weight.shape == (3, 3, 16, 32) and conv.bias.shape == (32,)"),
    ("channels", "It takes pictures as (pictures, channels, height, width), and pads so that the size stays",
     "conv(ndl.Tensor(np.zeros((5, 16, 7, 9)))).shape == (5, 32, 7, 9)"),
    ("exercise-pool", "28 times as many", "round(numbers_in(linear) / numbers_in(conv)) == 28"),
    ("care", "only the largest number of a block gets something",
     "[b := ndl.Tensor(np.array([1.0, 5, 3, 4]).reshape(1, 2, 2, 1)), ndl.gradients(ndl.max_pool2d(b, 2), "
     "[b])[0].numpy().ravel().tolist()][-1] == [0, 1, 0, 0]"),
    ("care", "It learns 1,370 numbers; the two layers of the beginning had 2,410",
     "(numbers_in(eight_kernels(0)), numbers_in(two_layers)) == (1370, 2410)"),
    ("exercise-shapes",
     "this network reads nearly as well as the two layers, with little more than half of the numbers",
     "0 <= np.mean(counts['in order']) - np.mean(counts['two layers']) < 0.02 * 355 and 0.5 < 1370 / 2410 "
     "< 0.6"),
    ("exercise-shapes",
     "with each of the five first weights, the network makes more mistakes on shuffled digits",
     "all(a < b for a, b in zip(counts['in order'], counts['shuffled'])) and len(counts['shuffled']) == 5"),
    ("honest", "99 of 100", "0.983 < 1 - wrong.mean() < 0.998"),
    ("honest", "One more mistake among 355 digits is 0.3 %", "round(100 / len(test_y), 1) == 0.3"),
    ("quiet", "hardly any learning", "min(alike) > 0.9 and pairs.shape == (3, 3, 20)"),
    ("learned-read", "Number 6 answers at the lower edge of a stroke",
     f"[e := {QUIET}(6), e[0].mean() > 0.3 and e[2].mean() < -0.3][-1]"),
    ("learned-read", "number 3 at an upper edge",
     f"[e := {QUIET}(3), e[2].mean() > 0.3 and e[0].mean() < -0.1][-1]"),
    ("learned-read", "number 4 at a right edge",
     f"[e := {QUIET}(4), e[:, 0].mean() > 0.3 and e[:, 2].mean() < -0.3][-1]"),
    ("learned-read", "Numbers 0 and 7 have stayed near zero",
     f"max(abs({QUIET}(n)).max() for n in (0, 7)) < 0.1 * abs(quiet[0].weight.numpy()).max()"),
    ("learned-read", "their biases below zero, so their ReLU lets nothing through",
     "max(quiet[0].bias.numpy().ravel()[[0, 7]]) < 0 and not quiet[1](quiet[0](ndl.Tensor(X))).numpy()[:, "
     "[0, 7]].any()"),
    ("moved-read", "The two layers read more than half of the digits wrongly",
     "mistakes(two_layers, moved_X).mean() > 0.5"),
    ("moved-read", "they still read most of the digits", "mistakes(model, moved_X).mean() < 0.35"),
    ("drag-intro", "−1 in its first row, 0 in the second and 1 in the third, and *mean* is nine times 1/9",
     "KERNELS['top edge'].tolist() == [[-1] * 3, [0] * 3, [1] * 3] and np.all(KERNELS['mean'] * 9 == 1)"),
    ("quiet", "exactly the same pattern, perhaps stronger or weaker",
     "np.isclose(np.corrcoef(start[..., 0].ravel(), 3 * start[..., 0].ravel())[0, 1], 1)"),
    ("summary", "it does nearly as well with fewer numbers; where it is not, it makes more mistakes",
     "numbers_in(eight_kernels(0)) < numbers_in(two_layers) and max(counts['in order']) / 355 < 0.07"),
    ("summary", "224 numbers", "numbers_in(nn.Conv(3, 8, 3, rng=0)) == 3 * 3 * 3 * 8 + 8 == 224"),
]  # fmt: skip
