"""Convolutional networks: a small one that learns to read digits, and ResNet9 for CIFAR-10's photographs.

``python -m needle.apps.cnn`` trains on scikit-learn's digits, with ``--data mnist`` on MNIST, with
``--data cifar10`` a ResNet9 on CIFAR-10.
"""

from __future__ import annotations

import needle as ndl
from needle.apps.models import CNN, ResNet9
from needle.apps.training import command, explained, finding_data, options, start, train_on_images, whole


def channels_first(images: ndl.Tensor) -> ndl.Tensor:
    """(batch, height, width, channels) as (batch, channels, height, width)."""
    return images.permute((0, 3, 1, 2))


@command
def main(argv: list[str] | None = None) -> dict[str, float]:
    """The command. Returns the last epoch's metrics."""
    parser = options(__doc__, epochs=10, batch_size=32, lr=0.003, weight_decay=0.01)
    parser.add_argument(
        "--data", choices=["digits", "mnist", "cifar10"], default="digits", help="what to see"
    )
    parser.add_argument("--channels", type=whole(1), default=16, help="of the first layer (not with cifar10)")
    args, device = start(parser, argv)

    if args.data == "cifar10":
        flips = [ndl.data.RandomFlipHorizontal(), ndl.data.RandomCrop(4)]
        with finding_data():
            train, test = ndl.data.cifar10(transforms=flips), ndl.data.cifar10(train=False)
        return train_on_images(args, train, test, ResNet9(device=device))
    with finding_data():
        train, test = [getattr(ndl.data, args.data)(train=part) for part in (True, False)]
    with explained(parser):
        model = CNN(train[0][0].shape[0], args.channels, device=device)
    return train_on_images(args, train, test, model, channels_first)


if __name__ == "__main__":
    main()
