"""What the compiler is compared with, written in jax as one would: see `in_numpy`. Written for jax 0.10.

Steps give their parameters away (``donate_argnums``), so that jax may write the new ones in their place. On
the processor, a call computes where it is called: that is faster here than to hand it to another thread. On a
GPU, whoever takes the time waits for the result, and products are of float32, not TF32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .in_numpy import BETAS, EPS, MOMENTUM, Arrays, batches, playground_data, playground_orders

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None
else:
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    jax.config.update("jax_default_matmul_precision", "highest")


def constant(array: np.ndarray):
    """Return an array as this library's functions take it."""
    return jnp.asarray(array)


def carried(update: Callable, state: Any) -> Callable:
    """A step that keeps its state between calls; ``update(state, *args)`` returns the next and a loss."""
    # What is given away must be nobody else's.
    state = jax.tree.map(lambda array: jnp.array(array, copy=True), state)
    compiled = jax.jit(update, donate_argnums=0)

    def step(*args):
        nonlocal state
        state, loss = compiled(state, *args)
        return loss

    return step


def descent(loss_of: Callable, lr: float) -> Callable:
    """A step of stochastic gradient descent: ``update(parameters, x, y)``."""

    def update(parameters, x, y):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
        return jax.tree.map(lambda p, gradient: p - lr * gradient, parameters, gradients), loss

    return update


def softmax_loss(logits, labels):
    """The mean cross entropy."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).mean()


def mlp_loss(layers, x, y):
    """The softmax loss of a ReLU network."""
    for weight, bias in layers[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = layers[-1]
    return softmax_loss(x @ weight + bias, y)


def mlp_layers(weights: Arrays) -> list:
    """Weights with biases, which begin at 0."""
    return [(weight, np.zeros(weight.shape[1], "float32")) for weight in weights]


def mlp_step(weights: Arrays, lr: float, optimizer: str = "SGD") -> Callable:
    """A ReLU network with softmax loss and stochastic gradient descent or Adam; the biases begin at 0."""
    layers = mlp_layers(weights)
    if optimizer == "SGD":
        return carried(descent(mlp_loss, lr), layers)

    def update(state, x, y):
        loss, gradients = jax.value_and_grad(mlp_loss)(state["parameters"], x, y)
        return adam(state, gradients, lr), loss

    return carried(update, adam_state(layers))


def adam_state(parameters: Any) -> dict[str, Any]:
    """The parameters and what Adam remembers beside them, before the first update."""
    zeros = jax.tree.map(np.zeros_like, parameters)
    return {"parameters": parameters, "means": zeros, "squares": zeros, "updates": np.int32(0)}


def adam(state: dict[str, Any], gradients: Any, lr: float) -> dict[str, Any]:
    """What follows on such a state after an update."""
    updates = state["updates"] + 1
    beta1, beta2 = BETAS

    def mean_of(beta, means, news):
        return jax.tree.map(lambda mean, new: beta * mean + (1 - beta) * new, means, news)

    means = mean_of(beta1, state["means"], gradients)
    squares = mean_of(beta2, state["squares"], jax.tree.map(jnp.square, gradients))

    def moved(p, m, v):
        m_hat, v_hat = m / (1 - beta1**updates), v / (1 - beta2**updates)
        return p - lr * m_hat / (jnp.sqrt(v_hat) + 1e-8)

    parameters = jax.tree.map(moved, state["parameters"], means, squares)
    return {"parameters": parameters, "means": means, "squares": squares, "updates": updates}


def mlp_steps(weights: Arrays, lr: float) -> Callable:
    """Many of these steps in a call: ``steps(X, y)`` with one more axis in front."""
    update = descent(mlp_loss, lr)

    def many(layers, X, y):
        return jax.lax.scan(lambda layers, batch: update(layers, *batch), layers, (X, y))

    return carried(many, mlp_layers(weights))


def compiled(function: Callable, *args) -> Callable:
    """Return a call of the compiled function."""
    call, args = jax.jit(function), jax.tree.map(constant, args)
    return lambda: call(*args)


def six_operators(x: np.ndarray, y: np.ndarray) -> Callable:
    """tanh(x) * y + exp(-x) * x."""
    return compiled(lambda x, y: jnp.tanh(x) * y + jnp.exp(-x) * x, x, y)


def softmax(x: np.ndarray) -> Callable:
    """A softmax over rows."""
    return compiled(lambda x: jax.nn.softmax(x, axis=1), x)


def layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> Callable:
    """Layer normalisation of rows."""

    def run(x, weight, bias):
        mean, variance = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + EPS) * weight + bias

    return compiled(run, x, weight, bias)


def attention(x: np.ndarray, parameters: Arrays, heads: int) -> Callable:
    """Causal self-attention with several heads."""

    def run(x, parameters):
        wq, bq, wk, bk, wv, bv, wo, bo = parameters
        q, k, v = ((x @ w + b).reshape(*x.shape[:2], heads, -1) for w, b in ((wq, bq), (wk, bk), (wv, bv)))
        return jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape) @ wo + bo

    return compiled(run, x, list(parameters))


def dot_product_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> Callable:
    """Attention of heads: softmax(q kᵀ / √dim) v, each of shape (batch, heads, time, dim)."""

    def run(q, k, v):
        return jax.nn.softmax(q @ k.swapaxes(2, 3) * q.shape[-1] ** -0.5) @ v

    return compiled(run, q, k, v)


def cnn_step(parameters: Arrays, lr: float) -> Callable:
    """Two convolutions, each with ReLU and max pooling, and a linear layer; stochastic gradient descent."""

    def loss_of(parameters, x, y):
        (*convolutions, (weight, bias)) = parameters
        x = x.transpose(0, 2, 3, 1)
        for kernel, shift in convolutions:
            x = jax.lax.conv_general_dilated(
                x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            x = jax.nn.relu(x + shift)
            batch, height, width, channels = x.shape
            x = x.reshape(batch, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))
        flat = x.transpose(0, 3, 1, 2).reshape(len(x), -1)
        return softmax_loss(flat @ weight + bias, y)

    return carried(
        descent(loss_of, lr), list(zip(parameters[::2], [b.ravel() for b in parameters[1::2]], strict=True))
    )


def residual_step(parameters: Arrays, lr: float) -> Callable:
    """Linear, ReLU, residual blocks of two linear layers with batch normalisation, linear; Adam."""
    vectors = [p for p in parameters if p.ndim == 1][::2]
    state = adam_state(list(parameters))
    state["running"] = [(np.zeros_like(p), np.ones_like(p)) for p in vectors]

    def loss_of(parameters, running, x, y):
        weight, bias, *inner, last_weight, last_bias = parameters
        running = iter(running)
        moved = []

        def batch_norm(x, gain, shift):
            mean, variance = x.mean(axis=0), x.var(axis=0)
            moved.append(
                tuple(
                    (1 - MOMENTUM) * old + MOMENTUM * new
                    for old, new in zip(next(running), (mean, variance), strict=True)
                )
            )
            return (x - mean) * jax.lax.rsqrt(variance + EPS) * gain + shift

        x = jax.nn.relu(x @ weight + bias)
        for i in range(0, len(inner), 8):
            w1, b1, g1, c1, w2, b2, g2, c2 = inner[i : i + 8]
            middle = jax.nn.relu(batch_norm(x @ w1 + b1, g1, c1))
            x = jax.nn.relu(x + batch_norm(middle @ w2 + b2, g2, c2))
        return softmax_loss(x @ last_weight + last_bias, y), moved

    def update(state, x, y):
        (loss, running), gradients = jax.value_and_grad(loss_of, has_aux=True)(
            state["parameters"], state["running"], x, y
        )
        return adam(state, gradients, lr) | {"running": running}, loss

    return carried(update, state)


def playground_epoch(trainer) -> Callable:
    """An epoch as the playground's trainer learns it, with its figures at the end; it returns the first."""
    return _playground_epoch(trainer, lambda update: _one_by_one(jax.jit(update, donate_argnums=0)))


def playground_epoch_scanned(trainer) -> Callable:
    """The same with all steps of an epoch in one call."""

    def all_at_once(update):
        def many(layers, batches):
            return jax.lax.scan(lambda layers, batch: (update(layers, batch), None), layers, batches)[0]

        compiled = jax.jit(many, donate_argnums=0)
        return lambda layers, batches: compiled(layers, np.stack(batches))

    return _playground_epoch(trainer, all_at_once)


def _one_by_one(update: Callable) -> Callable:
    def steps(layers, batches: Sequence):
        for chosen in batches:
            layers = update(layers, chosen)
        return layers

    return steps


def _playground_epoch(trainer, steps_of: Callable) -> Callable:
    parameters = [jnp.array(p.numpy()) for p in trainer.model.parameters()]
    layers = list(zip(parameters[::2], parameters[1::2], strict=True))
    x, y, points, labels = (constant(array) for array in playground_data(trainer))

    def outputs_of(layers, value):
        for weight, bias in layers:
            value = jnp.tanh(value @ weight + bias)
        return value

    def loss_of(layers, x, y):
        return jnp.sum((outputs_of(layers, x) - y) ** 2) * (0.5 / len(x))

    def update(layers, chosen):
        gradients = jax.grad(loss_of)(layers, x[chosen], y[chosen])
        lr = trainer.settings.learning_rate
        return jax.tree.map(lambda p, gradient: p - lr * gradient, layers, gradients)

    @jax.jit
    def measure(layers):
        outputs = outputs_of(layers, points)
        wrong = (outputs > 0) != (labels > 0)
        squares = 0.5 * (outputs - labels) ** 2
        return [part.mean() for a in (squares, wrong) for part in (a[: len(x)], a[len(x) :])]

    steps, orders = steps_of(update), playground_orders(trainer)

    def epoch():
        nonlocal layers
        layers = steps(layers, batches(next(orders).astype("int32"), trainer.settings.batch_size))
        train_loss, *_ = map(float, measure(layers))
        return train_loss

    return epoch
