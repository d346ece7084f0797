"""What the groups compare needle with, written by hand in NumPy: each gradient is worked out on paper.

`in_torch` and `in_jax` have functions of the same names. All of them take NumPy arrays; a function that is
called ``…_step`` returns ``step(x, y)``, a step of training that returns the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

BETAS = 0.9, 0.999  # of Adam
MOMENTUM = 0.1  # of the running mean and variance
EPS = 1e-5  # of batch and layer normalisation

Arrays = list[np.ndarray]


def constant(array: np.ndarray) -> np.ndarray:
    """Return an array as this library's functions take it."""
    return array


def mlp_step(weights: Arrays, lr: float) -> Callable:
    """A ReLU network with softmax loss and stochastic gradient descent; the biases begin at 0."""
    weights = [weight.copy() for weight in weights]
    biases = [np.zeros((1, weight.shape[1]), "float32") for weight in weights]

    def step(x, y):
        activations = [x]
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            activations.append(np.maximum(activations[-1] @ weight + bias, 0))
        loss, gradient = softmax_loss(activations[-1] @ weights[-1] + biases[-1], y)
        for i in reversed(range(len(weights))):
            below = gradient @ weights[i].T * (activations[i] > 0) if i else None
            weights[i] -= lr * (activations[i].T @ gradient)
            biases[i] -= lr * gradient.sum(axis=0, keepdims=True)
            gradient = below
        return loss

    return step


def softmax_loss(logits: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The loss, and its gradient with respect to the logits."""
    rows = np.arange(len(labels))
    shifted = logits - logits.max(axis=1, keepdims=True)
    gradient = np.exp(shifted)
    sums = gradient.sum(axis=1, keepdims=True)
    loss = (np.log(sums).sum() - shifted[rows, labels].sum()) / len(labels)
    gradient /= sums
    gradient[rows, labels] -= 1
    gradient /= len(labels)
    return loss, gradient


def six_operators(x: np.ndarray, y: np.ndarray) -> Callable:
    """tanh(x) * y + exp(-x) * x, with two arrays for what lies between."""

    def run():
        result = np.tanh(x)
        result *= y
        other = np.negative(x)
        np.exp(other, out=other)
        other *= x
        result += other
        return result

    return run


def softmax(x: np.ndarray) -> Callable:
    """A softmax over rows."""

    def run():
        result = x - x.max(axis=1, keepdims=True)
        np.exp(result, out=result)
        result /= result.sum(axis=1, keepdims=True)
        return result

    return run


def layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> Callable:
    """Layer normalisation of rows."""

    def run():
        result = x - x.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", result, result) / np.float32(x.shape[1])
        result /= np.sqrt(variance + np.float32(EPS))[:, None]
        result *= weight
        result += bias
        return result

    return run


def attention(x: np.ndarray, parameters: Arrays, heads: int) -> Callable:
    """Causal self-attention with several heads."""
    batch, time, width = x.shape
    wq, bq, wk, bk, wv, bv, wo, bo = parameters
    rows = x.reshape(-1, width)
    later = np.triu(np.ones((time, time), bool), 1)
    scale = np.float32((width // heads) ** -0.5)

    def of_heads(projected):
        return projected.reshape(batch, time, heads, -1).transpose(0, 2, 1, 3)

    def run():
        q, k, v = (of_heads(rows @ w + b) for w, b in ((wq * scale, bq * scale), (wk, bk), (wv, bv)))
        scores = q @ k.transpose(0, 1, 3, 2)
        scores[..., later] = -np.inf
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = (scores @ v).transpose(0, 2, 1, 3).reshape(-1, width)
        return (mixed @ wo + bo).reshape(x.shape)

    return run


def cnn_step(parameters: Arrays, lr: float) -> Callable:
    """Two convolutions, each with ReLU and max pooling, and a linear layer; stochastic gradient descent.

    Images have shape (batch, channels, height, width), kernels (3, 3, channels in, channels out).
    """
    kernel1, bias1, kernel2, bias2, weight, bias3 = parameters = [p.copy() for p in parameters]

    def step(x, y):
        columns1 = windows(x.transpose(0, 2, 3, 1))
        relu1 = np.maximum(columns1 @ kernel1.reshape(-1, kernel1.shape[3]) + bias1, 0)
        pooled1 = pooled(relu1)
        columns2 = windows(pooled1)
        relu2 = np.maximum(columns2 @ kernel2.reshape(-1, kernel2.shape[3]) + bias2, 0)
        pooled2 = pooled(relu2)
        flat = pooled2.transpose(0, 3, 1, 2).reshape(len(x), -1)
        loss, d3 = softmax_loss(flat @ weight + bias3, y)

        batch, height, width, channels = pooled2.shape
        d_pooled2 = (d3 @ weight.T).reshape(batch, channels, height, width).transpose(0, 2, 3, 1)
        d2 = unpooled(d_pooled2, relu2, pooled2)
        d_columns2 = d2 @ kernel2.reshape(-1, kernel2.shape[3]).T
        d1 = unpooled(summed_windows(d_columns2, pooled1.shape), relu1, pooled1)
        gradients = (
            *kernel_gradients(columns1, d1, kernel1),
            *kernel_gradients(columns2, d2, kernel2),
            flat.T @ d3,
            d3.sum(axis=0, keepdims=True),
        )
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter -= lr * gradient
        return loss

    return step


def windows(images: np.ndarray) -> np.ndarray:
    """The 3 x 3 windows of images with the channels last, each as a row of numbers."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return view.transpose(0, 1, 2, 4, 5, 3).reshape(*images.shape[:3], -1)


def summed_windows(columns: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The gradient of `windows`: each window's numbers, added where they were taken from."""
    batch, height, width, channels = shape
    columns = columns.reshape(batch, height, width, 3, 3, channels)
    padded = np.zeros((batch, height + 2, width + 2, channels), "float32")
    for i in range(3):
        for j in range(3):
            padded[:, i : i + height, j : j + width] += columns[:, :, :, i, j]
    return padded[:, 1:-1, 1:-1]


def kernel_gradients(columns: np.ndarray, d: np.ndarray, kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The gradients with respect to a kernel and its bias."""
    d = d.reshape(-1, d.shape[-1])
    return (columns.reshape(len(d), -1).T @ d).reshape(kernel.shape), d.sum(axis=0)


CORNERS = [(slice(None), slice(i, None, 2), slice(j, None, 2)) for i in range(2) for j in range(2)]


def pooled(images: np.ndarray) -> np.ndarray:
    """The largest number of each 2 x 2 window."""
    a, b, c, d = (images[corner] for corner in CORNERS)
    return np.maximum(np.maximum(a, b), np.maximum(c, d))


def unpooled(d: np.ndarray, images: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """The gradient of ``pooled(relu(…))``. Numbers that are equally large are 0 here, where ReLU's is 0."""
    result = np.empty_like(images)
    d = d * (largest > 0)
    for corner in CORNERS:
        np.multiply(d, images[corner] == largest, out=result[corner])
    return result


def residual_step(parameters: Arrays, lr: float) -> Callable:
    """Linear, ReLU, residual blocks of two linear layers with batch normalisation, linear; Adam."""
    parameters = [p.copy() for p in parameters]
    means, squares = ([np.zeros_like(p) for p in parameters] for _ in range(2))
    running = [[np.zeros_like(p), np.ones_like(p)] for p in parameters if p.ndim == 1][::2]
    updates = 0

    def step(x, y):
        nonlocal updates
        weight, bias, *inner, last_weight, last_bias = parameters
        blocks = [inner[i : i + 8] for i in range(0, len(inner), 8)]
        statistics = iter(running)

        h = np.maximum(x @ weight + bias, 0)
        kept = []
        for w1, b1, g1, c1, w2, b2, g2, c2 in blocks:
            normal1, scale1 = standardized(h @ w1 + b1, next(statistics))
            middle = np.maximum(normal1 * g1 + c1, 0)
            normal2, scale2 = standardized(middle @ w2 + b2, next(statistics))
            out = np.maximum(h + normal2 * g2 + c2, 0)
            kept.append((h, normal1, scale1, middle, normal2, scale2, out))
            h = out
        loss, d = softmax_loss(h @ last_weight + last_bias, y)

        gradients = [h.T @ d, d.sum(axis=0, keepdims=True)]
        d = d @ last_weight.T
        for (w1, _, g1, _, w2, _, g2, _), (below, normal1, scale1, middle, normal2, scale2, out) in zip(
            reversed(blocks), reversed(kept), strict=True
        ):
            d *= out > 0
            d2 = standardized_gradient(d * g2, normal2, scale2)
            d_middle = d2 @ w2.T
            d_middle *= middle > 0
            d1 = standardized_gradient(d_middle * g1, normal1, scale1)
            gradients[:0] = [
                below.T @ d1,
                d1.sum(axis=0, keepdims=True),
                np.einsum("ij,ij->j", d_middle, normal1),
                d_middle.sum(axis=0),
                middle.T @ d2,
                d2.sum(axis=0, keepdims=True),
                np.einsum("ij,ij->j", d, normal2),
                d.sum(axis=0),
            ]
            d += d1 @ w1.T
        d *= kept[0][0] > 0
        gradients[:0] = [x.T @ d, d.sum(axis=0, keepdims=True)]

        updates += 1
        beta1, beta2 = BETAS
        size, root = lr / (1 - beta1**updates), (1 - beta2**updates) ** 0.5
        for p, m, v, gradient in zip(parameters, means, squares, gradients, strict=True):
            m *= beta1
            m += (1 - beta1) * gradient
            v *= beta2
            gradient *= gradient
            v += (1 - beta2) * gradient
            np.sqrt(v, out=gradient)
            gradient /= root
            gradient += 1e-8
            np.divide(m, gradient, out=gradient)
            gradient *= size
            p -= gradient
        return loss

    return step


def standardized(x: np.ndarray, running: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Columns with mean 0 and variance 1, and what they were multiplied by."""
    mean = x.mean(axis=0)
    x -= mean
    variance = np.einsum("ij,ij->j", x, x) / np.float32(len(x))
    for figure, batch in zip(running, (mean, variance), strict=True):
        figure *= 1 - MOMENTUM
        figure += MOMENTUM * batch
    scale = 1 / np.sqrt(variance + np.float32(EPS))
    x *= scale
    return x, scale


def standardized_gradient(d: np.ndarray, normal: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The gradient with respect to what `standardized` was given."""
    d -= d.mean(axis=0)
    d -= normal * (np.einsum("ij,ij->j", d, normal) / np.float32(len(d)))
    d *= scale
    return d


def playground_epoch(trainer) -> Callable:
    """An epoch as the playground's trainer learns it, with its figures at the end; it returns the first."""
    parameters = [p.numpy().copy() for p in trainer.model.parameters()]
    layers = list(zip(parameters[::2], parameters[1::2], strict=True))
    x, y, points, labels = playground_data(trainer)
    lr, size = np.float32(trainer.settings.learning_rate), trainer.settings.batch_size

    def step(batch_x, batch_y):
        activations = [batch_x]
        for weight, bias in layers:
            activations.append(np.tanh(activations[-1] @ weight + bias))
        gradient = (activations[-1] - batch_y) / np.float32(len(batch_x))
        for (weight, bias), (below, above) in zip(
            reversed(layers), reversed(list(pairwise(activations))), strict=True
        ):
            gradient *= 1 - above * above
            d_below = gradient @ weight.T if below is not batch_x else None
            weight -= lr * (below.T @ gradient)
            bias -= lr * gradient.sum(axis=0, keepdims=True)
            gradient = d_below

    order = playground_orders(trainer)

    def epoch():
        for chosen in batches(next(order), size):
            step(x[chosen], y[chosen])
        outputs = points
        for weight, bias in layers:
            outputs = np.tanh(outputs @ weight + bias)
        train, _ = [quality(outputs[part], labels[part]) for part in (slice(len(x)), slice(len(x), None))]
        return train[0]

    return epoch


def playground_data(trainer) -> tuple[np.ndarray, ...]:
    """Points and labels to learn from, and all points and labels: float32, labels as a column."""
    x, y = (np.asarray(part, "float32") for part in trainer.train)
    points, labels = (
        np.concatenate([a, b], dtype="float32") for a, b in zip(trainer.train, trainer.test, strict=True)
    )
    return x, y[:, None], points, labels[:, None]


def playground_orders(trainer):
    """Yield the order of the points in each epoch, as the trainer itself shuffles them."""
    rng = np.random.default_rng([trainer.settings.seed, 2])
    while True:
        yield rng.permutation(len(trainer.train[0]))


def batches(order: np.ndarray, size: int) -> Arrays:
    """The batches of an epoch."""
    return [order[i : i + size] for i in range(0, len(order), size)]


def quality(outputs: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """The mean of ½ (output - label)², and the share of points on the wrong side."""
    return float(np.mean(0.5 * (outputs - labels) ** 2)), float(np.mean((outputs > 0) != (labels > 0)))
