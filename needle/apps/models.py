"""The networks of the applications: a small CNN and ResNet9 for images, language models for text.

``python -m needle.apps.models`` shows them as trees, with the commands that train them.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any

import needle as ndl
from needle import nn
from needle.apps.commands import program

__all__ = ["CNN", "ConvBN", "LanguageModel", "ResNet9"]


def ConvBN(
    in_channels: int, out_channels: int, kernel_size: int, stride: int, device=None, dtype="float32"
) -> nn.Sequential:
    """Convolution, batch normalization, ReLU."""
    where = {"device": device, "dtype": dtype}
    return nn.Sequential(
        nn.Conv(in_channels, out_channels, kernel_size, stride, **where),
        nn.BatchNorm2d(out_channels, **where),
        nn.ReLU(),
    )


class ResNet9(nn.Module):
    """A residual network for photographs of shape (batch, 3, 32, 32), with 431,946 parameters.

    The course's small version of the network by Page (2018), "How to train your ResNet".

    Parameters
    ----------
    device, dtype
        Of the parameters.

    Attributes
    ----------
    model : Sequential
    """

    def __init__(self, device=None, dtype="float32"):
        where = {"device": device, "dtype": dtype}

        def residual(channels: int) -> nn.Residual:
            return nn.Residual(nn.Sequential(*[ConvBN(channels, channels, 3, 1, **where) for _ in range(2)]))

        self.model = nn.Sequential(
            ConvBN(3, 16, 7, 4, **where),
            ConvBN(16, 32, 3, 2, **where),
            residual(32),
            ConvBN(32, 64, 3, 2, **where),
            ConvBN(64, 128, 3, 2, **where),
            residual(128),
            nn.Flatten(),
            nn.Linear(128, 128, **where),
            nn.ReLU(),
            nn.Linear(128, 10, **where),
        )

    def forward(self, x: ndl.Tensor) -> ndl.Tensor:
        """Logits of shape (batch, 10)."""
        return self.model(x)


class CNN(nn.Module):
    """A small convolutional network for handwritten digits.

    Parameters
    ----------
    side : int
        Images have shape (batch, 1, side, side); `side` is a multiple of 4.
    channels : int
        Of the first layer; the second and third have twice as many.
    num_classes : int
    device, dtype
        Of the parameters.

    Attributes
    ----------
    model : Sequential
    """

    def __init__(self, side: int, channels: int = 16, num_classes: int = 10, device=None, dtype="float32"):
        if side % 4 or side < 4:
            raise ValueError(f"CNN: side must be a multiple of 4 (it is halved twice), got {side}")
        where = {"device": device, "dtype": dtype}
        self.model = nn.Sequential(
            ConvBN(1, channels, 3, 1, **where),
            ConvBN(channels, 2 * channels, 3, 1, **where),
            nn.MaxPool2d(2),
            ConvBN(2 * channels, 2 * channels, 3, 1, **where),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(2 * channels * (side // 4) ** 2, num_classes, **where),
        )

    def forward(self, x: ndl.Tensor) -> ndl.Tensor:
        """Logits of shape (batch, num_classes)."""
        return self.model(x)


class LanguageModel(nn.Module):
    """What word comes next: an embedding, a network over time, a linear layer.

    Parameters
    ----------
    embedding_size : int
        Numbers that stand for a word.
    output_size : int
        How many words there are.
    hidden_size : int
        Features inside the network.
    num_layers : int
    seq_model : str
        "rnn", "lstm", "gru" or "transformer".
    seq_len : int
        The longest sequence of a transformer.
    device, dtype
        Of the parameters.

    Raises
    ------
    ValueError
        If there is no such `seq_model`; if what the model is given does not have two axes.
    """

    def __init__(
        self,
        embedding_size: int,
        output_size: int,
        hidden_size: int,
        num_layers: int = 1,
        seq_model: str = "rnn",
        seq_len: int = 40,
        device=None,
        dtype="float32",
    ):
        recurrent = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
        where: dict[str, Any] = {"device": device, "dtype": dtype}
        self.embedding = nn.Embedding(output_size, embedding_size, **where)
        if seq_model in recurrent:
            self.model = recurrent[seq_model](embedding_size, hidden_size, num_layers, **where)
        elif seq_model == "transformer":
            self.model = nn.Transformer(
                embedding_size, hidden_size, num_layers, sequence_len=seq_len, **where
            )
        else:
            raise ValueError(
                f"LanguageModel: there is no seq_model {seq_model!r}; use rnn, lstm, gru or transformer"
            )
        features = embedding_size if seq_model == "transformer" else hidden_size
        self.linear = nn.Linear(features, output_size, **where)

    def forward(self, x: ndl.Tensor, h: Any = None) -> tuple[ndl.Tensor, Any]:
        """
        Parameters
        ----------
        x : Tensor, shape (seq_len, batch)
            Numbers of words.
        h : Tensor of shape (num_layers, batch, hidden_size), optional
            The state that an earlier call returned; of an LSTM a tuple (h, c). A transformer uses none.

        Returns
        -------
        logits : Tensor, shape (seq_len * batch, output_size)
            Time by time.
        h
            The state after the last word; of a transformer zeros.
        """
        if x.ndim != 2:
            raise ValueError(
                f"LanguageModel: x must have shape (seq_len, batch), got {x.shape}; "
                "of a single sequence: x.reshape((-1, 1))"
            )
        seq_len, batch = x.shape
        out, h = self.model(self.embedding(x), h)
        return self.linear(out.reshape((seq_len * batch, out.shape[2]))), h


#: The networks by name: how one is made, and the options of the command that trains it.
NETWORKS: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "cnn": (lambda: CNN(8), "cnn"),
    "resnet9": (ResNet9, "cnn --data cifar10"),
    **{
        kind: (
            functools.partial(LanguageModel, 32, 64, 128, seq_model=kind, seq_len=32),
            f"language_model --model {kind}",
        )
        for kind in ("rnn", "lstm", "gru", "transformer")
    },
}


def main(argv: list[str] | None = None) -> None:
    """Run the command: show a network, or all of them, with the command that trains each."""
    parser = argparse.ArgumentParser(
        prog=program(), description="The networks as trees, and the commands that train them."
    )
    parser.add_argument("network", nargs="?", choices=list(NETWORKS), help="the one to show (default: all)")
    chosen = parser.parse_args(argv).network
    for name in [chosen] if chosen else NETWORKS:
        make, command = NETWORKS[name]
        print(f"{name}, trained by: python -m needle.apps.{command}\n{make()}\n")


if __name__ == "__main__":
    main()
