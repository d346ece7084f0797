"""The course's small applications: a two-layer network made of Tensors alone, and loops that train networks.

``python -m needle.apps.simple_ml`` trains the two-layer network on the 8 × 8 digits, with
``--data mnist`` on MNIST. The loops train and evaluate networks on images and on text.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import needle as ndl
from needle import nn
from needle.apps.commands import at_least, command, explained, options, start
from needle.apps.training import Averages, Training, learning_step, loss_module, on_device_of, run_epoch
from needle.data.idx import read_mnist


def parse_mnist(image_filename: str, label_filename: str) -> tuple[np.ndarray, np.ndarray]:
    """Read images and labels in MNIST's format, gzipped.

    The format is that of http://yann.lecun.com/exdb/mnist/: big-endian, a magic number, sizes, then bytes.

    Parameters
    ----------
    image_filename, label_filename : str

    Returns
    -------
    X : numpy.ndarray, float32, shape (examples, 784)
        Pixels from 0.0 (black) to 1.0 (white).
    y : numpy.ndarray, uint8, shape (examples,)
        Digits, 0 to 9.

    Raises
    ------
    ValueError
        If a file is not in MNIST's format or is cut off, or if the two do not belong together.
    """
    images, labels = read_mnist(image_filename, label_filename)
    examples, height, width = images.shape
    return images.reshape(examples, height * width).astype(np.float32) / 255, labels


def softmax_loss(Z: ndl.Tensor, y_one_hot: ndl.Tensor) -> ndl.Tensor:
    """The mean cross entropy of softmax(Z): the mean of logsumexp(Z) - (Z * y_one_hot).sum() of each row.

    `needle.nn.SoftmaxLoss` takes logits of -inf, too.

    Parameters
    ----------
    Z : Tensor, shape (batch, classes)
        Logits.
    y_one_hot : Tensor, shape (batch, classes)
        1 at the true class of each example, 0 elsewhere.

    Returns
    -------
    Tensor, shape ()

    Raises
    ------
    ValueError
        If the shapes differ.
    """
    if Z.shape != y_one_hot.shape:
        raise ValueError(
            f"softmax_loss: Z has shape {Z.shape}, y_one_hot has shape {y_one_hot.shape}; they must be equal"
        )
    return (ndl.logsumexp(Z, axes=(1,)).sum() - (Z * y_one_hot).sum()) / Z.shape[0]


def nn_epoch(
    X: np.ndarray, y: np.ndarray, W1: ndl.Tensor, W2: ndl.Tensor, lr: float = 0.1, batch: int = 100
) -> tuple[ndl.Tensor, ndl.Tensor]:
    """One epoch of stochastic gradient descent for the network relu(X @ W1) @ W2.

    The examples come in the order in which they are given.

    Parameters
    ----------
    X : numpy.ndarray, shape (examples, inputs)
    y : numpy.ndarray of integers, shape (examples,)
    W1 : Tensor, shape (inputs, hidden)
    W2 : Tensor, shape (hidden, classes)
    lr : float
        The learning rate.
    batch : int
        Examples per step.

    Returns
    -------
    tuple of Tensor
        The new W1 and W2; the given ones stay as they are.
    """
    W1, W2 = ndl.Tensor(W1), ndl.Tensor(W2)
    optimizer = ndl.optim.SGD([W1, W2], lr=lr)
    for i in range(0, len(X), batch):
        part = slice(i, i + batch)
        inputs = ndl.Tensor(X[part], device=W1.device, dtype=W1.dtype, requires_grad=False)
        targets = ndl.init.one_hot(W2.shape[1], y[part], device=W1.device, dtype=W2.dtype)
        loss = softmax_loss(ndl.relu(inputs @ W1) @ W2, targets)
        loss.backward(create_graph=False)
        optimizer.step()
    return W1, W2


def loss_err(h: ndl.Tensor, y: np.ndarray) -> tuple[np.ndarray, float]:
    """The softmax loss of the logits `h` for the labels `y`, and the share of wrong predictions."""
    y_one_hot = ndl.init.one_hot(h.shape[-1], y, device=h.device, dtype=h.dtype)
    return softmax_loss(h, y_one_hot).numpy(), np.mean(h.numpy().argmax(axis=1) != y)


# Images


def epoch_general_cifar10(dataloader, model, loss_fn=nn.SoftmaxLoss(), opt=None) -> tuple[float, float]:  # noqa: B008
    """Go through labelled images once: train the model if there is an optimiser, else evaluate it.

    Parameters
    ----------
    dataloader : iterable of (images, labels)
        Images are moved to the model's device.
    model : Module
        From images to logits.
    loss_fn : Module, or its class
    opt : Optimizer, optional

    Returns
    -------
    tuple of float
        The accuracy, and the mean loss of an image.
    """
    model.train() if opt is not None else model.eval()
    batches = ((on_device_of(model, X), y) for X, y in dataloader)
    loss_fn = loss_module(loss_fn)
    learn = None if opt is None else learning_step(model, loss_fn, opt)
    averages = run_epoch(batches, model, loss_fn, learn)
    return averages.accuracy, averages.loss


def train_cifar10(
    model,
    dataloader,
    n_epochs=1,
    optimizer=ndl.optim.Adam,
    lr=0.001,
    weight_decay=0.001,
    loss_fn=nn.SoftmaxLoss,
) -> tuple[float, float]:
    """Train a model on labelled images. First this seeds NumPy's random numbers with 4, as the course does.

    Parameters
    ----------
    model : Module
    dataloader : iterable of (images, labels)
    n_epochs : int
    optimizer : class of an Optimizer
    lr, weight_decay : float
        The optimiser's options.
    loss_fn : Module, or its class

    Returns
    -------
    tuple of float
        The last epoch's accuracy and mean loss.
    """
    np.random.seed(4)
    opt = optimizer(model.parameters(), lr=lr, weight_decay=weight_decay)
    for _ in range(_at_least_one(n_epochs)):
        result = epoch_general_cifar10(dataloader, model, loss_fn, opt)
    return result


def evaluate_cifar10(model, dataloader, loss_fn=nn.SoftmaxLoss) -> tuple[float, float]:
    """The accuracy and the mean loss of a model on labelled images. This too seeds NumPy with 4 first."""
    np.random.seed(4)
    return epoch_general_cifar10(dataloader, model, loss_fn)


# Text


def epoch_general_ptb(
    data,
    model,
    seq_len=40,
    loss_fn=nn.SoftmaxLoss(),  # noqa: B008
    opt=None,
    clip=None,
    device=None,
    dtype="float32",
) -> tuple[float, float]:
    """Go through a text once: train the model if there is an optimiser, else evaluate it.

    The hidden state goes on from one part of the text to the next; gradients do not go back.

    Parameters
    ----------
    data : array of shape (steps, batch)
        Numbers of words from `needle.data.batchify`: each column is a text.
    model : LanguageModel
    seq_len : int
        How many steps the model is shown at once.
    loss_fn : Module, or its class
    opt : Optimizer, optional
    clip : float, optional
        The largest length of a step's gradients; see `Optimizer.clip_grad_norm`.
    device, dtype
        Of the inputs.

    Returns
    -------
    tuple of float
        The accuracy, and the mean loss of a word.
    """
    loss_fn = loss_module(loss_fn)
    learn = None if opt is None else learning_step(recurrent(model), loss_fn, opt, clip)
    averages = text_epoch(data, model, seq_len, loss_fn, learn, device, dtype)
    return averages.accuracy, averages.loss


def recurrent(model: nn.Module) -> Callable[..., tuple]:
    """The model of a text, whose state goes on from part to part, while gradients do not go back."""

    def logits_of(X: ndl.Tensor, hidden=None) -> tuple:
        logits, state = model(X, hidden)
        return logits, _detached(state)

    return logits_of


def text_epoch(
    data,
    model,
    seq_len,
    loss_fn,
    learn=None,
    device=None,
    dtype="float32",
    schedule=None,
    progress=iter,
    workers=None,
) -> Averages:
    """`epoch_general_ptb` with a step of training, a schedule, what shows progress in an iterable, and
    workers that share the columns of the text."""
    hidden: Any = ()  # the state is there from the second part on
    forward = recurrent(model)

    def logits_of(X):
        nonlocal hidden
        logits, *hidden = forward(X, *hidden)
        return logits

    def learn_on(X, y):
        nonlocal hidden
        # The first part has no state. It comes once in an epoch, and is not worth a program of its own.
        step = learn if hidden else inspect.unwrap(learn)
        logits, loss, *hidden = step(X, y, *hidden)
        return logits, loss

    model.train() if learn is not None else model.eval()
    starts = range(0, len(data) - 1, seq_len)
    columns = data.shape[1]
    if workers is not None:
        data = data[:, workers.share(np.arange(columns))]
    batches = (ndl.data.get_batch(data, i, seq_len, device=device, dtype=dtype) for i in progress(starts))
    sizes = [columns] * len(starts)
    return run_epoch(batches, logits_of, loss_fn, learn and learn_on, schedule, workers, sizes)


def _detached(state):
    """Cut a hidden state (None, a Tensor, or a tuple of them) off from its history."""
    if isinstance(state, (tuple, list)):
        return tuple([_detached(part) for part in state])
    return state if state is None else state.detach()


def train_ptb(
    model,
    data,
    seq_len=40,
    n_epochs=1,
    optimizer=ndl.optim.SGD,
    lr=4.0,
    weight_decay=0.0,
    loss_fn=nn.SoftmaxLoss,
    clip=None,
    device=None,
    dtype="float32",
) -> tuple[float, float]:
    """Train a language model.

    Parameters
    ----------
    model : LanguageModel
    data : array of shape (steps, batch)
        Numbers of words from `needle.data.batchify`.
    seq_len : int
        How many steps the model is shown at once.
    n_epochs : int
    optimizer : class of an Optimizer
    lr, weight_decay : float
        The optimiser's options.
    loss_fn : Module, or its class
    clip : float, optional
        The largest length of a step's gradients.
    device, dtype
        Of the inputs.

    Returns
    -------
    tuple of float
        The last epoch's accuracy and mean loss.
    """
    opt = optimizer(model.parameters(), lr=lr, weight_decay=weight_decay)
    for _ in range(_at_least_one(n_epochs)):
        result = epoch_general_ptb(data, model, seq_len, loss_fn, opt, clip, device, dtype)
    return result


def evaluate_ptb(
    model, data, seq_len=40, loss_fn=nn.SoftmaxLoss, device=None, dtype="float32"
) -> tuple[float, float]:
    """The accuracy and the mean loss of a language model on a text."""
    return epoch_general_ptb(data, model, seq_len, loss_fn, device=device, dtype=dtype)


def _at_least_one(n_epochs: int) -> int:
    if n_epochs < 1:
        raise ValueError(f"n_epochs must be 1 or more, got {n_epochs}")
    return n_epochs


# The command


class TwoLayers(nn.Module):
    """relu(X @ W1) @ W2, the network of `nn_epoch`.

    Parameters
    ----------
    inputs, hidden, classes : int
    device
        Of the parameters.
    """

    def __init__(self, inputs: int, hidden: int, classes: int = 10, device=None):
        self.W1 = nn.Parameter(ndl.init.randn(inputs, hidden, std=hidden**-0.5, device=device))
        self.W2 = nn.Parameter(ndl.init.randn(hidden, classes, std=classes**-0.5, device=device))

    def forward(self, X: ndl.Tensor) -> ndl.Tensor:
        """Logits of shape (batch, classes)."""
        return ndl.relu(X @ self.W1) @ self.W2


@command
def main(argv: list[str] | None = None) -> dict[str, float]:
    """Run the command, and return the last epoch's metrics."""
    parser = options(__doc__, epochs=20, batch_size=100, lr=0.2)
    parser.add_argument("--data", choices=["digits", "mnist"], default="digits", help="what to learn to read")
    parser.add_argument("--hidden-dim", type=at_least(1), default=100, help="features between the layers")
    args, device = start(parser, argv)

    with explained(parser, args.workers):
        datasets = [getattr(ndl.data, args.data)(train=part) for part in (True, False)]
    (X, y), test = [(images.reshape(len(images), -1), labels) for images, labels in (d[:] for d in datasets)]
    model = TwoLayers(X.shape[1], args.hidden_dim, device=device)

    workers = args.workers
    share = (lambda items: items) if workers is None else workers.share

    def learn(progress: Callable) -> Averages:
        for i in progress(range(0, len(X), args.batch_size)):
            part = share(np.arange(i, min(i + args.batch_size, len(X))))
            model.W1.data, model.W2.data = nn_epoch(X[part], y[part], model.W1, model.W2, args.lr, len(part))
            if workers is not None:
                # A step of plain SGD is W - lr * gradient. So the mean of the workers' W after the step is
                # what the mean of their gradients would have given.
                workers.average_values([model.W1, model.W2], weight=len(part))
        return evaluate(X, y)

    def evaluate(X: np.ndarray, y: np.ndarray) -> Averages:
        part = share(np.arange(len(X)))
        with ndl.no_grad():
            loss, error = loss_err(model(ndl.Tensor(X[part], device=device)), y[part])
        if workers is not None and workers.size > 1:
            n, loss, error = workers.sum(len(part) * np.array([1.0, loss, error]))
            loss, error = loss / n, error / n
        return Averages(1 - float(error), float(loss), [float(loss)])

    return Training(args, model).run(learn, lambda: evaluate(*test))


if __name__ == "__main__":
    main()
