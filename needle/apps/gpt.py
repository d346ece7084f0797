"""A small GPT learns a text character by character, and writes on.

``python -m needle.apps.gpt`` learns Shakespeare's sonnets, ``--data FILE`` learns any other text.
"""

from __future__ import annotations

import numpy as np

import needle as ndl
from needle import nn
from needle.apps import text
from needle.apps.commands import at_least, command, explained, options, start
from needle.apps.training import Averages, Training, compiled, learning_step, run_epoch
from needle.backend_ndarray.device import generator


class GPT(nn.Module):
    """A decoder-only transformer: at each place of a sequence it says what comes next.

    Radford et al. (2019), "Language models are unsupervised multitask learners".

    Parameters
    ----------
    vocabulary : int
        How many different characters (or words) there are.
    context : int
        How many of them the model sees at most.
    dim : int
        The length of the vector that stands for each.
    num_layers, num_heads : int
    dropout : float
    device, dtype
        Of the parameters.
    """

    def __init__(
        self,
        vocabulary: int,
        context: int = 64,
        dim: int = 64,
        num_layers: int = 2,
        num_heads: int = 4,
        dropout: float = 0.0,
        device=None,
        dtype="float32",
    ):
        self.context = context
        self.embedding = nn.Embedding(vocabulary, dim, device=device, dtype=dtype)
        self.places = nn.LearnedEncoding(context, dim, device=device, dtype=dtype)
        self.layers = [
            nn.TransformerEncoderLayer(dim, num_heads, dropout=dropout, device=device, dtype=dtype)
            for _ in range(num_layers)
        ]
        self.norm = nn.LayerNorm1d(dim, device=device, dtype=dtype)
        self.linear = nn.Linear(dim, vocabulary, device=device, dtype=dtype)
        for module in self._children():  # as GPT-2's begin: sharper first guesses take long to unlearn
            if isinstance(module, (nn.Linear, nn.Embedding)):
                module.weight.data = ndl.init.randn(
                    *module.weight.shape, std=0.02, device=device, dtype=dtype
                )
            if isinstance(module, nn.Linear) and module.bias is not None:
                module.bias.data = ndl.init.zeros(*module.bias.shape, device=device, dtype=dtype)

    def forward(self, x: ndl.Tensor) -> ndl.Tensor:
        """
        Parameters
        ----------
        x : Tensor of whole numbers, shape (batch, time)
            At most `context` times.

        Returns
        -------
        Tensor, shape (batch, time, vocabulary)
            Logits of what follows each.
        """
        out = self.places(self.embedding(x))
        for layer in self.layers:
            out = layer(out, causal=True)
        return self.linear(self.norm(out))

    def generate(
        self, start, length: int, temperature: float = 1.0, top_k: int | None = None, rng=None
    ) -> list[int]:
        """Write on from `start`, one character (or word) after the other.

        Parameters
        ----------
        start : sequence of int
            What to begin with, at least one.
        length : int
            How many to write.
        temperature : float
            Below 1 the model prefers what is likely, above 1 it takes risks; at 0 it always takes the
            likeliest.
        top_k : int, optional
            Draw only from the `top_k` likeliest.
        rng : numpy.random.Generator or int, optional
            An int is the seed of a new one. Default: NumPy's global state.

        Returns
        -------
        list of int
            `start` and what follows.

        Raises
        ------
        ValueError
            If there is nothing to begin with, or for a temperature below 0 or a top_k below 1.
        """
        numbers = [int(i) for i in start]
        if not numbers:
            raise ValueError("generate: start is empty; begin with at least one character")
        if temperature < 0 or (top_k is not None and top_k < 1):
            raise ValueError(
                "generate: needs a temperature of 0 or more and a top_k of 1 or more, "
                f"got {temperature} and {top_k}"
            )
        source = generator(rng) or np.random
        training = self.training
        self.eval()
        try:
            with ndl.no_grad():
                for _ in range(length):
                    seen = ndl.Tensor([numbers[-self.context :]], device=self.linear.weight.device)
                    logits = self(seen).numpy()[0, -1]
                    numbers.append(_drawn(logits, temperature, top_k, source))
        finally:
            if training:
                self.train()
        return numbers


def _drawn(logits: np.ndarray, temperature: float, top_k: int | None, rng) -> int:
    """Draw one of the `top_k` likeliest classes, with probabilities softmax(logits / temperature)."""
    if temperature == 0:
        return int(logits.argmax())
    logits = logits.astype(np.float64) / temperature
    if top_k is not None and top_k < len(logits):
        logits[np.argsort(-logits, kind="stable")[top_k:]] = -np.inf
    powers = np.exp(logits - logits.max())
    return int(rng.choice(len(logits), p=powers / powers.sum()))


def windows(numbers: np.ndarray, context: int) -> ndl.data.NDArrayDataset:
    """Cut a text into parts, one every ``context // 2`` characters, each with the characters that follow.

    Raises
    ------
    ValueError
        If the text has no more than `context` characters.
    """
    if len(numbers) <= context:
        raise ValueError(
            f"windows: a text of {len(numbers)} characters has no part of {context} and one more; "
            f"use a longer text, or a context of at most {len(numbers) - 1}"
        )
    parts = np.lib.stride_tricks.sliding_window_view(numbers, context + 1)[:: max(context // 2, 1)]
    return ndl.data.NDArrayDataset(parts[:, :-1], parts[:, 1:])


@command
def main(argv: list[str] | None = None) -> dict[str, float]:
    """Run the command, and return the last epoch's metrics."""
    parser = options(__doc__, epochs=20, batch_size=16, lr=0.003, weight_decay=0.01, jit=False)
    parser.add_argument("--data", default="sonnets", help="sonnets, or a text file")
    parser.add_argument("--context", type=at_least(1), default=64, help="characters that it sees at most")
    parser.add_argument("--dim", type=at_least(1), default=64, help="numbers per character")
    parser.add_argument("--num-layers", type=at_least(1), default=2, help="layers of attention")
    parser.add_argument("--num-heads", type=at_least(1), default=4, help="heads of attention")
    parser.add_argument("--dropout", type=at_least(0.0), default=0.1, help="the probability of a zero")
    parser.add_argument(
        "--write", type=at_least(0), default=200, metavar="N", help="characters to write at the end"
    )
    parser.add_argument("--temperature", type=at_least(0.0), default=0.8, help="how boldly to write")
    parser.add_argument(
        "--top-k", type=at_least(1), default=20, metavar="N", help="draw from the N likeliest characters"
    )
    args, device = start(parser, argv)

    with explained(parser, args.workers):
        letters, train, test = text.read(text.SONNETS if args.data == "sonnets" else args.data)
        train_windows, test_windows = windows(train, args.context), windows(test, args.context)
        model = GPT(
            len(letters), args.context, args.dim, args.num_layers, args.num_heads, args.dropout, device=device
        )
    optimizer = ndl.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
    where = {"device": device, "workers": args.workers}
    train_loader = ndl.data.DataLoader(train_windows, args.batch_size, shuffle=True, **where)
    test_loader = ndl.data.DataLoader(test_windows, 32, **where)

    def schedule_for(epochs: int) -> ndl.optim.Schedule:
        steps = epochs * len(train_loader)
        warm_up = max(steps // 20, 1)
        rest = ndl.optim.CosineLR(optimizer, max(steps - warm_up, 1))
        return ndl.optim.WarmUp(optimizer, warm_up, then=rest)

    data = text.fingerprint(letters.letters, train, test)
    training = Training(args, model, optimizer, schedule_for, data)

    loss_fn = nn.SoftmaxLoss()

    def logits_of(X: ndl.Tensor) -> ndl.Tensor:
        return model(X).reshape((-1, len(letters)))

    step = compiled(learning_step(logits_of, loss_fn, optimizer, clip=1.0, workers=args.workers), args)

    def one_epoch(loader, learn=None, progress=iter) -> Averages:
        model.train() if learn is not None else model.eval()
        flat = ((X, y.reshape((-1,))) for X, y in progress(loader))
        shared = {"workers": args.workers, "batch_sizes": loader.sizes}
        return run_epoch(flat, logits_of, loss_fn, learn, training.schedule, **shared)

    metrics = training.run(
        lambda progress: one_epoch(train_loader, step, progress),
        lambda: one_epoch(test_loader),
    )
    if not training.leads:
        return metrics
    print(f"by frequency alone: loss {text.frequency_loss(train, test):.4f}")
    if args.write:
        begin = train[-args.context :]
        written = model.generate(begin, args.write, args.temperature, args.top_k)
        print(letters.decode(written[len(begin) :]))
    return metrics


if __name__ == "__main__":
    main()
