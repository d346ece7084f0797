"""Build the gallery: every kind of picture, from live objects, each beside the lines that draw it.

``make gallery`` writes it to build/gallery.html, a page that needs nothing else.
"""

from __future__ import annotations

import html
import inspect
import sys
import textwrap
import time
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import needle as ndl
import viz
from needle import nn, optim
from needle.apps.models import ResNet9
from needle.data import digits, toy

PAGE = Path(__file__).parent.parent / "build" / "gallery.html"

PICTURES: list[tuple[str, str, Callable[[], Any]]] = []  # chapter, caption, what draws it


def picture(chapter: str, caption: str) -> Callable:
    """Put a function that draws into the gallery."""

    def put(draw: Callable[[], Any]) -> Callable[[], Any]:
        PICTURES.append((chapter, caption, draw))
        return draw

    return put


# --- 04 Derivatives and a scalar engine ---------------------------------------------------------------------


@picture("04 Derivatives", "A central difference errs if the step is too large, and if it is too small")
def central_difference():
    steps = np.logspace(-12, 0, 60)
    slopes = [(np.sin(1 + e) - np.sin(1 - e)) / (2 * e) for e in steps]
    errors = np.abs(np.array(slopes) - np.cos(1))
    return viz.curve(errors, steps, log="xy", xlabel="step", ylabel="error")


@picture("04 Derivatives", "Drag the step e: too large is wrong, and too small is noise")
def drag_a_step():
    x = np.linspace(0, 6, 200)

    def slope(e):
        central = (np.sin(x + e) - np.sin(x - e)) / (2 * e)
        return viz.curve({"cos x": np.cos(x), "central difference": central}, x, title=f"e = {e:g}")

    return viz.drag(slope, e=(1e-16, 10), frames=18)


@picture("04 Derivatives", "Side by side: x³ through a magnifying glass, and the error of its slope")
def side_by_side():
    e = np.logspace(-12, 0, 60)
    near = np.linspace(-1e-15, 1e-15, 300)
    left, right = viz.panels(2)
    viz.curve((2 + near) ** 3 - 8, near, xlabel="x - 2", ylabel="x³ - 8", ax=left)
    error = abs(((2 + e) ** 3 - (2 - e) ** 3) / (2 * e) - 12)
    return viz.curve(error, e, log="xy", xlabel="e", ylabel="error", ax=right)


@picture("04 Derivatives", "Why the order matters: a is used twice, and so is b")
def used_twice():
    a = ndl.Tensor([3.0])
    b = a + a
    c = b + b
    c.backward()
    return viz.draw_gradient(c)


@picture("04 Derivatives", "y = 3 x1 + x2 with the gradients after backward")
def two_inputs():
    x1, x2 = ndl.Tensor([10.0]), ndl.Tensor([20.0])
    y = 3 * x1 + x2
    y.backward()
    return viz.draw(y)


# --- 05 The computational graph -----------------------------------------------------------------------------


def v1_to_v4():
    """The example of the lectures."""
    v1 = ndl.Tensor([0])
    v2 = ndl.exp(v1)
    v3 = v2 + 1
    v4 = v2 * v3
    return {"v1": v1, "v2": v2, "v3": v3, "v4": v4}


@picture("05 The computational graph", "The graph of v4 = exp(v1) * (exp(v1) + 1)")
def computational_graph():
    v1 = ndl.Tensor([0])
    v2 = ndl.exp(v1)
    v3 = v2 + 1
    v4 = v2 * v3
    return viz.draw(v4)


@picture("05 The computational graph", "The same from top to bottom")
def top_to_bottom():
    v = v1_to_v4()
    return viz.draw(v["v4"], names=v, rankdir="TB")


# --- 06 Eager, lazy, and memory -----------------------------------------------------------------------------


@picture("06 Eager, lazy, and memory", "A value that is not computed yet is hollow")
def lazy():
    x1, x2 = ndl.Tensor([3.0]), ndl.Tensor([4.0])
    with ndl.lazy():
        x3 = x1 * x2
        x4 = x3 + 1
    return viz.draw(x4)


@picture("06 Eager, lazy, and memory", "If you add up losses, you keep the history of each")
def accumulating():
    x = ndl.Tensor([2.0])
    sum_loss = ndl.Tensor([0.0])
    for _ in range(100):
        sum_loss = sum_loss + x * x
    return viz.draw(sum_loss)


@picture("06 Eager, lazy, and memory", "How many nodes are alive, with and without detach")
def nodes_alive():
    attached, detached = [], []
    for counts, cut in ((attached, False), (detached, True)):
        x, sum_loss = ndl.Tensor([2.0]), ndl.Tensor([0.0])
        before = ndl.autograd.TENSOR_COUNTER
        for _ in range(100):
            sum_loss = sum_loss + (x * x).detach() if cut else sum_loss + x * x
            sum_loss = sum_loss.detach() if cut else sum_loss
            counts.append(ndl.autograd.TENSOR_COUNTER - before)
    return viz.curve({"attached": attached, "detached": detached}, xlabel="step", ylabel="nodes alive")


@picture("06 Eager, lazy, and memory", "What that sum keeps in memory, in bytes")
def memory():
    x = ndl.Tensor(np.ones((100, 100)))
    sum_loss = ndl.Tensor([0.0])
    for _ in range(100):
        sum_loss = sum_loss + (x * x).sum()
    return viz.memory(sum_loss)


# --- 07 Reverse mode ----------------------------------------------------------------------------------------


@picture("07 Reverse mode", "The gradient graph below the graph: each adjoint under its variable")
def gradient_graph():
    v = v1_to_v4()
    return viz.draw_gradient(v["v4"], names=v)


@picture("07 Reverse mode", "Drag v1: values and adjoints follow")
def drag_an_input():
    def v4(v1):
        v2 = ndl.exp(v1)
        v3 = v2 + 1
        return v2 * v3

    return viz.drag(v4, v1=(-2, 2), frames=41)


@picture("07 Reverse mode", "The gradient of the gradient")
def second_order():
    v = v1_to_v4()
    v["v4"].backward()
    return viz.draw_gradient(v["v1"].grad, names=v)


@picture("07 Reverse mode", "Forward and backward, step by step")
def steps():
    v = v1_to_v4()
    return viz.steps(v["v4"], names=v)


# --- 08 Operators and their gradients -----------------------------------------------------------------------


@picture("08 Operators", "Summation and broadcasting are each other's gradient")
def duality():
    x = ndl.Tensor([[1.0, 2.0, 3.0]])
    y = x.broadcast_to((2, 3)).sum()
    return viz.draw_gradient(y)


@picture("08 Operators", "The gradients of a matrix product are matrix products")
def matrix_product():
    A = ndl.Tensor([[1.0, 2.0], [3.0, 4.0]])
    B = ndl.Tensor([[1.0, 0.0], [2.0, 1.0]])
    C = A @ B
    return viz.draw_gradient(C)


@picture("08 Operators", "The gradient of logsumexp is softmax")
def logsumexp():
    z = ndl.Tensor([[1.0, 2.0, 3.0]])
    s = ndl.logsumexp(z, axes=(1,))
    return viz.draw_gradient(s)


# --- 09 Softmax regression and a two-layer net --------------------------------------------------------------


@cache
def trained():
    """A network for handwritten digits, and the record of its training."""
    rng = np.random.default_rng(0)
    images, labels = digits()[:]
    test_images, test_labels = digits(train=False)[:]
    x, y = images.reshape(-1, 64), labels
    model = nn.Sequential(nn.Linear(64, 32, rng=rng), nn.ReLU(), nn.Linear(32, 10, rng=rng))
    optimizer, loss_of = optim.SGD(model.parameters(), lr=0.3), nn.SoftmaxLoss()
    train, test = [], []
    for _ in range(40):
        loss = loss_of(model(ndl.Tensor(x)), ndl.Tensor(y))
        train.append(loss.item())
        test.append(loss_of(model(ndl.Tensor(test_images.reshape(-1, 64))), ndl.Tensor(test_labels)).item())
        loss.backward(create_graph=False)
        optimizer.step()
    return model, train, test, test_images, test_labels


@picture("09 Softmax regression", "With a batch of 4, step by step: rows, columns, and what is summed")
def softmax_steps():
    X = ndl.Tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [2.0, 1.0, 0.0], [1.0, 1.0, 1.0]], requires_grad=False)
    W = ndl.Tensor([[0.5, -0.5], [0.0, 1.0], [1.0, 0.0]])
    y = ndl.Tensor([0, 1, 1, 0], requires_grad=False)
    Z = X @ W
    loss = nn.SoftmaxLoss()(Z, y)
    return viz.steps(loss)


@picture("09 Softmax regression", "Loss per epoch")
def losses():
    _, train, test, _, _ = trained()
    return viz.loss_curve(train, test, log=True)


@picture("09 Softmax regression", "What the network got wrong")
def wrong_predictions():
    model, _, _, images, labels = trained()
    guesses = model(ndl.Tensor(images.reshape(-1, 64))).numpy().argmax(axis=1)
    wrong = np.flatnonzero(guesses != labels)[:10]
    return viz.images(images[wrong], labels[wrong], guesses[wrong])


@picture("09 Softmax regression", "What each hidden unit looks for")
def hidden_units():
    model, _, _, _, _ = trained()
    return viz.weights(model[0].weight, image=(8, 8))


@picture("09 Softmax regression", "A sheet to draw on, and what the network says of it")
def sheet():
    model, _, _, images, _ = trained()

    def reads(image):
        return ndl.softmax(model(ndl.Tensor(image.reshape(1, 64))), 1).reshape((10,))

    return viz.pad(reads, start=images[0].reshape(8, 8))


# --- 10 Beside PyTorch --------------------------------------------------------------------------------------


@picture("10 Beside PyTorch", "J = L + s of a network with one hidden layer, as textbooks draw it")
def penalised():
    rng = np.random.default_rng(0)
    x = ndl.Tensor(rng.normal(size=(3, 1)), requires_grad=False)
    W1, W2 = ndl.Tensor(rng.normal(size=(2, 3))), ndl.Tensor(rng.normal(size=(1, 2)))
    z = W1 @ x
    h = ndl.relu(z)
    o = W2 @ h
    L = ((o - 1) ** 2).sum() / 2
    s = 0.1 / 2 * ((W1**2).sum() + (W2**2).sum())
    J = L + s
    return viz.draw(J, style="d2l")


@picture("10 Beside PyTorch", "L = (w x + b)² = 49, and where its gradients come from")
def square():
    w, x, b = ndl.Tensor([2.0]), ndl.Tensor([3.0]), ndl.Tensor([1.0])
    L = (w * x + b) ** 2
    return viz.draw_gradient(L)


@picture("10 Beside PyTorch", "The Jacobian of X @ W, row by row")
def jacobian():
    X = ndl.Tensor([[1.0, 2.0], [3.0, 4.0]])
    W = ndl.Tensor([[1.0, 0.0], [2.0, 1.0]])
    seeds = np.eye(4).reshape(4, 2, 2)
    rows = [ndl.gradients(X @ W, [X], ndl.Tensor(seed))[0].numpy().ravel() for seed in seeds]
    return viz.matrix(rows, title="Jacobian", xlabel="element of X", ylabel="element of X @ W")


# --- 11 Strides, views, broadcasting ------------------------------------------------------------------------


@picture("11 Strides", "An array, its memory, and the cell that an index reads")
def strides():
    x = ndl.Tensor(np.arange(12).reshape(3, 4)).cached_data
    return viz.strides(x, (1, 2))


@picture("11 Strides", "Its transpose is a view: other strides, the same memory")
def transposed():
    x = ndl.Tensor(np.arange(12).reshape(3, 4)).cached_data
    return viz.strides(x.permute((1, 0)), (2, 1))


@picture("11 Strides", "Every second column, from the last row up")
def sliced():
    x = np.arange(12.0).reshape(3, 4)
    return viz.strides(x[::-1, ::2])


@picture("11 Strides", "Broadcasting: a stride of 0")
def broadcast_view():
    x = ndl.Tensor(np.arange(4).reshape(1, 4)).cached_data
    return viz.strides(x.broadcast_to((3, 4)), (2, 1))


@picture("11 Strides", "Windows over a row, by strides that overlap")
def windows():
    return viz.strides(np.lib.stride_tricks.sliding_window_view(np.arange(7.0), 3))


@picture("11 Broadcasting", "(5, 1) + (5, 3)")
def stretched():
    return viz.broadcast((5, 1), (5, 3))


@picture("11 Broadcasting", "(3,) + (5, 3)")
def axis_added():
    return viz.broadcast((3,), (5, 3))


@picture("11 Broadcasting", "(2, 3, 1) + (7, 2, 1, 5)")
def four_axes():
    return viz.broadcast((2, 3, 1), (7, 2, 1, 5))


@picture("11 Broadcasting", "(2, 3) + (2, 4) is refused")
def refused():
    return viz.broadcast((2, 3), (2, 4))


# --- 12 Parallel CPU kernels --------------------------------------------------------------------------------


@picture("12 CPU kernels", "The same product in three ways, timed side by side")
def products():
    a, b = np.random.default_rng(0).random((2, 96, 96)).astype("float32")
    c = ndl.Tensor(a)
    ways = {
        "rows times columns": lambda: [[row @ column for column in b.T] for row in a],
        "NumPy": lambda: a @ b,
        "needle": lambda: c @ ndl.Tensor(b),
    }
    seconds = {}
    for name, product in ways.items():
        product()
        start = time.perf_counter()
        product()
        seconds[name] = time.perf_counter() - start
    return viz.bars(seconds, log=True, xlabel="seconds")


# --- 13 CUDA kernels ----------------------------------------------------------------------------------------


@picture("13 CUDA kernels", "zip: every thread reads two numbers and writes one")
def cuda_zip():
    def add(cuda, out, a, b):
        i = cuda.grid(1)
        if i < out.shape[0]:
            out[i] = a[i] + b[i]

    return viz.kernel_trace(add, 2, 4, np.zeros(6), np.arange(6.0), np.ones(6))


@picture("13 CUDA kernels", "A sum in shared memory")
def cuda_sum():
    def block_sum(cuda, out, a):
        cache = cuda.shared.array(4, "float64")
        i, local = cuda.grid(1), cuda.threadIdx.x
        cache[local] = a[i] if i < a.shape[0] else 0.0
        cuda.syncthreads()
        step = 2
        while step >= 1:
            if local < step:
                cache[local] += cache[local + step]
            cuda.syncthreads()
            step //= 2
        if local == 0:
            out[cuda.blockIdx.x] = cache[0]

    return viz.kernel_trace(block_sum, 2, 4, np.zeros(2), np.arange(8.0))


@picture("13 CUDA kernels", "A race: two threads write one element")
def cuda_race():
    def race(cuda, out, a):
        i = cuda.grid(1)
        out[i // 2] = a[i]

    return viz.kernel_trace(race, 1, 4, np.zeros(2), np.arange(4.0))


# --- 14 to 18 Networks --------------------------------------------------------------------------------------


def layers():
    """A deep network, with weights of one size that does not suit it."""
    rng = np.random.default_rng(0)
    parts = [part for _ in range(5) for part in (nn.Linear(64, 64, rng=rng), nn.Tanh())]
    return nn.Sequential(*parts, nn.Linear(64, 10, rng=rng))


@picture("14 Modules", "A residual network as a tree")
def tree():
    return viz.module_tree(ResNet9())


@picture("14 Modules", "Activations per layer")
def activations():
    x = np.random.default_rng(1).normal(size=(100, 64)).astype("float32")
    return viz.activations(layers(), x)


@picture("14 Modules", "Gradients per layer")
def gradients():
    x = np.random.default_rng(1).normal(size=(100, 64)).astype("float32")
    model = layers()
    loss = nn.SoftmaxLoss()(model(ndl.Tensor(x)), ndl.Tensor(np.arange(100) % 10))
    return viz.gradients(model, loss)


@picture("14 Modules", "Three optimisers on one surface")
def surface():
    def loss(x, y):
        return x**2 / 10 + y**2 * 2

    paths = {}
    for name, make in {
        "SGD": lambda p: optim.SGD(p, lr=0.35),
        "momentum": lambda p: optim.SGD(p, lr=0.05, momentum=0.8),
        "Adam": lambda p: optim.Adam(p, lr=0.6),
    }.items():
        place = nn.Parameter([-8.0, 2.0])
        optimizer, path = make([place]), [place.numpy()]
        for _ in range(25):
            loss(place[0], place[1]).backward(create_graph=False)
            optimizer.step()
            path.append(place.numpy())
        paths[name] = path
    return viz.loss_surface(loss, paths)


@picture("15 Training", "The boundary that a network has learned")
def boundary():
    rng = np.random.default_rng(0)
    points, labels = toy.spiral(300, noise=0.1, rng=rng)
    x, y = ndl.Tensor(points), ndl.Tensor(labels.reshape(-1, 1))
    sizes = (2, 24, 24, 1)
    parts = [part for n, m in pairwise(sizes) for part in (nn.Linear(n, m, rng=rng), nn.Tanh())]
    model = nn.Sequential(*parts)
    optimizer = optim.Adam(model.parameters(), lr=0.02)
    for _ in range(400):
        ((model(x) - y) ** 2).mean().backward(create_graph=False)
        optimizer.step()
    return viz.decision_boundary(model, points, labels)


@picture("16 Convolutions", "The filters of a layer")
def filters():
    return viz.filters(nn.Conv(1, 16, 5, rng=np.random.default_rng(0)))


@picture("17 Sequences", "A recurrent network, unrolled in time")
def unrolled():
    cell = nn.RNNCell(3, 4, bias=False, rng=np.random.default_rng(0))
    x = [ndl.Tensor(np.ones((2, 3)), requires_grad=False) for _ in range(3)]
    h = None
    for t in range(3):
        with ndl.scope(f"t = {t + 1}"):
            h = cell(x[t], h)
    return viz.draw(h, depth=0)


@picture("17 Sequences", "Its gradient, back through time")
def through_time():
    cell = nn.RNNCell(3, 4, bias=False, rng=np.random.default_rng(0))
    x = [ndl.Tensor(np.ones((2, 3)), requires_grad=False) for _ in range(3)]
    h = None
    for t in range(3):
        with ndl.scope(f"t = {t + 1}"):
            h = cell(x[t], h)
    return viz.draw_gradient(h, depth=0)


@picture("18 Attention", "Where each position looks")
def attention():
    rng = np.random.default_rng(0)
    q, k = (ndl.Tensor(rng.normal(size=(6, 8))) for _ in range(2))
    weights = ndl.softmax(q @ k.transpose() / 8**0.5)
    return viz.attention(weights, list("needle"))


# --- Scale --------------------------------------------------------------------------------------------------


def residual_loss():
    """The loss of ResNet9 for two images."""
    x = ndl.Tensor(np.random.default_rng(0).normal(size=(2, 3, 32, 32)))
    return nn.SoftmaxLoss()(ResNet9()(x), ndl.Tensor([3, 7]))


@picture("At every scale", "ResNet9 and its gradient; a click opens a group")
def resnet():
    return viz.draw_gradient(residual_loss(), depth=1)


@picture("At every scale", "A transformer of six layers")
def transformer():
    layers = [nn.TransformerEncoderLayer(8, 2) for _ in range(6)]
    outputs = nn.Sequential(*layers, nn.LayerNorm1d(8))(ndl.Tensor(np.random.normal(size=(10, 2, 8))))
    return viz.draw_gradient(outputs, depth=1)


@picture("At every scale", "Ten thousand nodes")
def ten_thousand():
    y = ndl.Tensor([1.0])
    for _ in range(10_000):
        y = y * 1.0001
    return viz.draw_gradient(y)


# --- Looks and facts ----------------------------------------------------------------------------------------


@picture("Looks", 'style="print": black and white')
def printed():
    v = v1_to_v4()
    return viz.draw_gradient(v["v4"], names=v, style="print")


@picture("Looks", 'style="dark"')
def dark():
    v = v1_to_v4()
    return viz.draw_gradient(v["v4"], names=v, style="dark")


@picture("Looks", "Shapes, data types, devices, bytes, and what needs a gradient")
def facts():
    x = ndl.Tensor(np.ones((2, 3)), dtype="float64")
    w = ndl.Tensor(np.ones((3, 2)), dtype="float64", requires_grad=False)
    y = (x @ w).sum()
    return viz.draw(y, show=("shape", "dtype", "device", "bytes", "requires_grad"))


@picture("Looks", "Where a value was detached")
def detached():
    x = ndl.Tensor([2.0])
    y = x * x
    z = y.detach() * x
    return viz.draw([y, z])


# --- Compiled functions -------------------------------------------------------------------------------------


@picture("Compiled functions", "Three operators become one loop: before fusion, and after")
def before_and_after_fusion():
    W, b = ndl.Tensor(np.ones((2, 8))), ndl.Tensor(np.zeros((1, 8)))
    layer = ndl.jit(lambda x: ndl.relu(x @ W + b))
    layer(ndl.Tensor(np.ones((10, 2))))
    return viz.draw_schedule(layer)


@picture(
    "Compiled functions", "From the graph to its source, pass by pass: + is new, − is gone, ~ is changed"
)
def passes():
    W, b = ndl.Tensor(np.ones((2, 8))), ndl.Tensor(np.zeros((1, 8)))
    layer = ndl.jit(lambda x: ndl.relu(x @ W + b))
    layer(ndl.Tensor(np.ones((10, 2))))
    return viz.steps(layer)


@picture("Compiled functions", "A compiled step of training: each group beside the lines that it became")
def compiled_step():
    rng = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(2, 8, rng=rng), nn.ReLU(), nn.Linear(8, 2, rng=rng))
    optimizer, loss_of = optim.SGD(model.parameters(), lr=0.1), nn.SoftmaxLoss()

    @ndl.jit
    def step(x, y):
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    x = ndl.Tensor(rng.normal(size=(10, 2)), requires_grad=False)
    step(x, ndl.Tensor(np.arange(10) % 2, requires_grad=False))
    return viz.draw(step)


# --- When something fails -----------------------------------------------------------------------------------


@picture("When something fails", "The graph up to the operation that failed")
def failed():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(5, 1))
    x = ndl.Tensor(np.ones((2, 4)))
    try:
        model(x)
    except ValueError as error:
        return viz.draw_error(error)


def shown(thing: Any) -> str:
    """A picture as HTML."""
    if hasattr(thing, "get_figure"):
        thing = thing.get_figure()
    return thing.html() if hasattr(thing, "html") else thing._repr_html_()


def lines_of(draw: Callable[[], Any]) -> str:
    """The body of a function, as you would type it."""
    source = inspect.getsource(draw)
    body = textwrap.dedent(source[source.index("():\n") + 4 :])
    before, _, drawn = body.rpartition("return ")
    return before + drawn


STYLE = """
:root { color-scheme: light dark; font-family: system-ui, sans-serif; }
:root { color: light-dark(#101828, #f2f5fa); background: light-dark(#fff, #11161f); }
body { margin: 0 auto; padding: 24px clamp(16px, 4vw, 56px); max-width: 1700px; }
h1 { font-size: 1.7rem; } h2 { margin-top: 3rem; font-size: 1.25rem; }
nav { columns: 14rem; font-size: .9rem; line-height: 1.7; }
nav a { display: block; color: light-dark(#1d5fd1, #6fa8ff); }
figure { margin: 1.2rem 0 2.4rem; } figcaption { margin-bottom: .5rem; }
figure > .picture { overflow-x: auto; }
details { margin-top: .5rem; font-size: .85rem; color: light-dark(#5d6b82, #aeb9ca); }
pre { background: light-dark(#f3f5f8, #222b3a); border-radius: 8px; padding: 10px 14px; overflow-x: auto; }
"""


def build(path: Path) -> int:
    """Write the gallery. Returns the number of its pictures."""
    np.random.seed(0)
    chapters: dict[str, list[str]] = {}
    for number, (chapter, caption, draw) in enumerate(PICTURES, 1):
        print(f"{number:3}/{len(PICTURES)}  {chapter}: {caption}", file=sys.stderr, flush=True)
        figure = (
            f'<figure id="{draw.__name__}"><figcaption>{html.escape(caption)}</figcaption>'
            f'<div class="picture">{shown(draw())}</div><details><summary>the lines that drew it</summary>'
            f"<pre>{html.escape(lines_of(draw))}</pre></details></figure>"
        )
        chapters.setdefault(chapter, []).append(figure)
    links = "".join(f'<a href="#{i}">{html.escape(name)}</a>' for i, name in enumerate(chapters))
    body = "".join(
        f'<h2 id="{i}">{html.escape(name)}</h2>{"".join(figures)}'
        for i, (name, figures) in enumerate(chapters.items())
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Gallery</title>'
        f"<style>{STYLE}</style><h1>Pictures of live objects</h1><nav>{links}</nav>{body}</html>\n",
        encoding="utf-8",
    )
    return len(PICTURES)


if __name__ == "__main__":
    build(PAGE)
    print(f"{PAGE}: open it in a browser")
