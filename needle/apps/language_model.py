"""A language model that learns which word, or which character, comes next.

``python -m needle.apps.language_model`` learns Shakespeare's sonnets character by character; ``--data FILE``
any other text, and ``--data ptb`` the Penn Treebank word by word. ``--model`` is an rnn, lstm, gru or
transformer.
"""

from __future__ import annotations

import math

import numpy as np

import needle as ndl
from needle import nn
from needle.apps import text
from needle.apps.models import LanguageModel
from needle.apps.simple_ml import text_epoch
from needle.apps.training import (
    Training,
    command,
    explained,
    finding_data,
    number,
    options,
    start,
    whole,
)


@command
def main(argv: list[str] | None = None) -> dict[str, float]:
    """The command. Returns the last epoch's metrics."""
    parser = options(__doc__, epochs=20, batch_size=16, lr=0.005, weight_decay=0.0)
    parser.add_argument("--data", default="sonnets", help="sonnets, ptb, or a text file")
    parser.add_argument(
        "--model", choices=["rnn", "lstm", "gru", "transformer"], default="lstm", help="its kind"
    )
    parser.add_argument("--embedding-size", type=whole(1), default=32, help="numbers that stand for a word")
    parser.add_argument("--hidden-size", type=whole(1), default=128, help="features inside the network")
    parser.add_argument("--num-layers", type=whole(1), default=1, help="layers of the network")
    parser.add_argument(
        "--seq-len", type=whole(1), default=32, help="steps in time that are learned from at once"
    )
    parser.add_argument(
        "--clip", type=number(0, above=True), default=1.0, help="how long the gradients of a step may be"
    )
    args, device = start(parser, argv)

    if args.data == "ptb":
        with finding_data():
            corpus = ndl.data.ptb()
        words = "\n".join(corpus.dictionary.idx2word)
        vocabulary, train, test = len(corpus.dictionary), np.array(corpus.train), np.array(corpus.test)
    else:
        with explained(parser):
            letters, train, test = text.read(text.SONNETS if args.data == "sonnets" else args.data)
        words, vocabulary = letters.letters, len(letters)
    with explained(parser):
        model = LanguageModel(
            args.embedding_size,
            vocabulary,
            args.hidden_size,
            args.num_layers,
            args.model,
            args.seq_len,
            device=device,
        )
        train_batches, test_batches = [ndl.data.batchify(x.tolist(), args.batch_size) for x in (train, test)]
    optimizer = ndl.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
    steps = max(math.ceil((len(train_batches) - 1) / args.seq_len), 1)  # of an epoch
    training = Training(
        args,
        model,
        optimizer,
        lambda epochs: ndl.optim.CosineLR(optimizer, epochs * steps),
        data=text.fingerprint(words, train, test),
    )

    def one_epoch(batches, **more):
        return text_epoch(batches, model, args.seq_len, nn.SoftmaxLoss(), device=device, **more)

    metrics = training.run(
        lambda progress: one_epoch(
            train_batches, opt=optimizer, clip=args.clip, schedule=training.schedule, progress=progress
        ),
        lambda: one_epoch(test_batches),
    )
    print(f"by frequency alone: loss {text.frequency_loss(train, test):.4f}")
    return metrics


if __name__ == "__main__":
    main()
