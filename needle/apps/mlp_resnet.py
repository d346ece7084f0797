"""A residual network of fully connected layers learns to read handwritten digits.

``python -m needle.apps.mlp_resnet --epochs 10`` trains it on the 8 × 8 digits, with ``--data mnist`` on
MNIST.
"""

from __future__ import annotations

import os

import numpy as np

import needle as ndl
from needle import nn
from needle.apps.commands import at_least, command, explained, options, start
from needle.apps.training import learning_step, on_device_of, run_epoch, train_on_images

__all__ = ["MLPResNet", "ResidualBlock", "epoch", "main", "train_mnist"]


def ResidualBlock(dim, hidden_dim, norm=nn.BatchNorm1d, drop_prob=0.1) -> nn.Sequential:
    """relu(x + f(x)), where f is Linear, norm, ReLU, Dropout, Linear, norm.

    Parameters
    ----------
    dim : int
        Inputs and outputs have shape (batch, dim).
    hidden_dim : int
        Features between the two linear layers.
    norm : class of a Module
        It is called with the number of features.
    drop_prob : float
        Dropout's probability of a zero.
    """
    return nn.Sequential(
        nn.Residual(
            nn.Sequential(
                nn.Linear(dim, hidden_dim),
                norm(hidden_dim),
                nn.ReLU(),
                nn.Dropout(drop_prob),
                nn.Linear(hidden_dim, dim),
                norm(dim),
            )
        ),
        nn.ReLU(),
    )


def MLPResNet(
    dim, hidden_dim=100, num_blocks=3, num_classes=10, norm=nn.BatchNorm1d, drop_prob=0.1
) -> nn.Sequential:
    """Linear, ReLU, residual blocks (half as wide inside), Linear.

    Parameters
    ----------
    dim : int
        Inputs have shape (batch, dim).
    hidden_dim : int
        Features between the blocks.
    num_blocks : int
    num_classes : int
        Outputs, logits, have shape (batch, num_classes).
    norm, drop_prob
        See `ResidualBlock`.
    """
    return nn.Sequential(
        nn.Linear(dim, hidden_dim),
        nn.ReLU(),
        *[ResidualBlock(hidden_dim, hidden_dim // 2, norm, drop_prob) for _ in range(num_blocks)],
        nn.Linear(hidden_dim, num_classes),
    )


def epoch(dataloader, model, opt=None) -> tuple[float, float]:
    """Go through labelled images once: train the model if there is an optimiser, else evaluate it.

    First this seeds NumPy's random numbers with 4, as the course does.

    Parameters
    ----------
    dataloader : iterable of (images, labels)
    model : Module
        From flattened images to logits.
    opt : Optimizer, optional

    Returns
    -------
    tuple of float
        The share of wrong predictions, and the mean of the batches' losses.
    """
    np.random.seed(4)
    model.train() if opt is not None else model.eval()
    batches = ((on_device_of(model, flat(X)), y) for X, y in dataloader)
    loss_fn = nn.SoftmaxLoss()
    learn = None if opt is None else learning_step(model, loss_fn, opt)
    averages = run_epoch(batches, model, loss_fn, learn)
    return 1 - averages.accuracy, float(np.mean(averages.batch_losses))


def flat(images: ndl.Tensor) -> ndl.Tensor:
    """Turn (batch, ...) into (batch, features)."""
    return images.reshape((images.shape[0], -1))


def train_mnist(
    batch_size=100,
    epochs=10,
    optimizer=ndl.optim.Adam,
    lr=0.001,
    weight_decay=0.001,
    hidden_dim=100,
    data_dir="data",
) -> tuple[float, float, float, float]:
    """Train an `MLPResNet` on MNIST, and test it.

    First this seeds NumPy's random numbers with 4, as the course does.

    Parameters
    ----------
    batch_size, epochs : int
    optimizer : class of an Optimizer
    lr, weight_decay : float
        The optimiser's options.
    hidden_dim : int
        Features between the blocks.
    data_dir : str
        The folder with MNIST's four files.

    Returns
    -------
    tuple of float
        The last epoch's training error (the share of wrong predictions) and training loss, then the test
        error and the test loss.
    """
    if epochs < 1:
        raise ValueError(f"train_mnist: epochs must be 1 or more, got {epochs}")
    np.random.seed(4)
    train, test = [
        ndl.data.MNISTDataset(
            os.path.join(data_dir, f"{part}-images-idx3-ubyte.gz"),
            os.path.join(data_dir, f"{part}-labels-idx1-ubyte.gz"),
        )
        for part in ("train", "t10k")
    ]
    train_loader = ndl.data.DataLoader(train, batch_size=batch_size, shuffle=True)
    test_loader = ndl.data.DataLoader(test, batch_size=batch_size)
    model = MLPResNet(28 * 28, hidden_dim)
    opt = optimizer(model.parameters(), lr=lr, weight_decay=weight_decay)
    for _ in range(epochs):
        trained = epoch(train_loader, model, opt)
    return *trained, *epoch(test_loader, model)


@command
def main(argv: list[str] | None = None) -> dict[str, float]:
    """Run the command, and return the last epoch's metrics."""
    parser = options(
        __doc__, epochs=10, batch_size=32, lr=0.002, weight_decay=0.0, jit=False, sync_batchnorm=False
    )
    parser.add_argument("--data", choices=["digits", "mnist"], default="digits", help="what to learn to read")
    parser.add_argument("--hidden-dim", type=at_least(2), default=256, help="features between the blocks")
    parser.add_argument("--num-blocks", type=at_least(0), default=3, help="how many residual blocks")
    args, device = start(parser, argv)

    with explained(parser, args.workers):
        train, test = [getattr(ndl.data, args.data)(train=part) for part in (True, False)]
        model = MLPResNet(train[0][0].size, args.hidden_dim, args.num_blocks).to(device)
    return train_on_images(args, train, test, model, flat)


if __name__ == "__main__":
    main()
