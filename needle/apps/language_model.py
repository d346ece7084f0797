"""A language model learns which word, or which character, comes next.

``python -m needle.apps.language_model`` learns Shakespeare's sonnets character by character, ``--data FILE``
learns any other text, and ``--data ptb`` learns the Penn Treebank word by word. ``--model`` chooses an rnn,
lstm, gru or transformer.
"""

from __future__ import annotations

import math

import numpy as np

import needle as ndl
from needle import nn
from needle.apps import text
from needle.apps.commands import at_least, command, explained, options, start
from needle.apps.models import LanguageModel
from needle.apps.simple_ml import recurrent, text_epoch
from needle.apps.training import Training, compiled, learning_step


@command
def main(argv: list[str] | None = None) -> dict[str, float]:
    """Run the command, and return the last epoch's metrics."""
    parser = options(__doc__, epochs=20, batch_size=16, lr=0.005, weight_decay=0.0, jit=False)
    parser.add_argument("--data", default="sonnets", help="sonnets, ptb, or a text file")
    parser.add_argument(
        "--model", choices=["rnn", "lstm", "gru", "transformer"], default="lstm", help="the kind of network"
    )
    parser.add_argument("--embedding-size", type=at_least(1), default=32, help="numbers per word")
    parser.add_argument("--hidden-size", type=at_least(1), default=128, help="features inside the network")
    parser.add_argument("--num-layers", type=at_least(1), default=1, help="layers of the network")
    parser.add_argument("--seq-len", type=at_least(1), default=32, help="words to learn from at once")
    parser.add_argument(
        "--clip", type=at_least(1e-6), default=1.0, help="the largest length of a step's gradients"
    )
    args, device = start(parser, argv)

    with explained(parser, args.workers):
        if args.data == "ptb":
            corpus = ndl.data.ptb()
            words, vocabulary = "\n".join(corpus.dictionary.idx2word), len(corpus.dictionary)
            train, test = np.array(corpus.train), np.array(corpus.test)
        else:
            letters, train, test = text.read(text.SONNETS if args.data == "sonnets" else args.data)
            words, vocabulary = letters.letters, len(letters)
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
        if min(len(train_batches), len(test_batches)) < 2:
            raise ValueError(
                f"--batch-size {args.batch_size}: each column needs two words or more, but there are "
                f"{len(train)} to learn from and {len(test)} to test with; use fewer columns or a longer text"
            )
    optimizer = ndl.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
    steps = max(math.ceil((len(train_batches) - 1) / args.seq_len), 1)  # of an epoch
    training = Training(
        args,
        model,
        optimizer,
        lambda epochs: ndl.optim.CosineLR(optimizer, epochs * steps),
        data=text.fingerprint(words, train, test),
    )

    loss_fn = nn.SoftmaxLoss()
    step = learning_step(recurrent(model), loss_fn, optimizer, args.clip, workers=args.workers)
    learn = compiled(step, args)

    def one_epoch(batches, **more):
        shared = {"device": device, "workers": args.workers}
        return text_epoch(batches, model, args.seq_len, loss_fn, **shared, **more)

    metrics = training.run(
        lambda progress: one_epoch(train_batches, learn=learn, schedule=training.schedule, progress=progress),
        lambda: one_epoch(test_batches),
    )
    if training.leads:
        print(f"by frequency alone: loss {text.frequency_loss(train, test):.4f}")
    return metrics


if __name__ == "__main__":
    main()
