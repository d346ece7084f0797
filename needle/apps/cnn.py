"""Convolutional networks: a small one learns to read digits, and ResNet9 learns CIFAR-10's photographs.

``python -m needle.apps.cnn`` trains on the 8 × 8 digits, with ``--data mnist`` on MNIST, with
``--data cifar10`` a ResNet9 on CIFAR-10.
"""

from __future__ import annotations

import needle as ndl
from needle.apps.commands import at_least, command, explained, options, start
from needle.apps.models import CNN, ResNet9
from needle.apps.training import train_on_images


def channels_first(images: ndl.Tensor) -> ndl.Tensor:
    """Turn (batch, height, width, channels) into (batch, channels, height, width)."""
    return images.permute((0, 3, 1, 2))


@command
def main(argv: list[str] | None = None) -> dict[str, float]:
    """Run the command, and return the last epoch's metrics."""
    parser = options(
        __doc__, epochs=10, batch_size=32, lr=0.003, weight_decay=0.01, jit=False, sync_batchnorm=False
    )
    parser.add_argument(
        "--data", choices=["digits", "mnist", "cifar10"], default="digits", help="what to learn"
    )
    parser.add_argument(
        "--channels", type=at_least(1), default=16, help="channels of the first layer (not with cifar10)"
    )
    args, device = start(parser, argv)

    if args.data == "cifar10":
        changes = [ndl.data.RandomFlipHorizontal(), ndl.data.RandomCrop(4)]
        with explained(parser, args.workers):
            train, test = ndl.data.cifar10(transforms=changes), ndl.data.cifar10(train=False)
        return train_on_images(args, train, test, ResNet9(device=device))
    with explained(parser, args.workers):
        train, test = [getattr(ndl.data, args.data)(train=part) for part in (True, False)]
        model = CNN(train[0][0].shape[0], args.channels, device=device)
    return train_on_images(args, train, test, model, channels_first)


if __name__ == "__main__":
    main()
