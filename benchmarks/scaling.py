"""What several workers gain, measured here and predicted for 10,000: ``python -m benchmarks.scaling``.

Each network learns from batches of one size with 1, 2, … workers, and each worker has one thread. The table
says how long a step takes, how much of that is communication, and how much each worker hands over. Beside it
stands a model with four constants, which are measured on this machine:

- a step on b items computes for ``fixed + b * per_item`` seconds;
- a message of m bytes takes ``latency + m / bandwidth`` seconds.

With n workers on a batch of B items, each has B / n of them, or one if there are more workers than items. In
a ring all-reduce of S bytes each sends 2 (n - 1) messages of S / n bytes, one after the other:

    step(n) = fixed + max(B / n, 1) * per_item + 2 (n - 1) (latency + S / n / bandwidth)

Whatever n is, no worker sends more than 2 S bytes; but it waits for the latency 2 (n - 1) times. The model
gives each worker a processor of its own, so it does not hold for more workers than this machine can run at
once: the table has a dash there.

Patarasuk and Yuan (2009), "Bandwidth optimal all-reduce algorithms for clusters of workstations".
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

ONE_THREAD = {"THREADS": "1"}  # see __init__.py
SECONDS = 3.0  # for which steps are timed, at least 20 of them; the first ten, with compilations, are not
FIRST, LEAST = 10, 20
PARTS = (1, 2, 4)  # of a batch, to find the constants of the computation
SIZES = (1_000, 10_000_000)  # bytes of two messages, to find those of the communication
PREDICTED = (1, 2, 4, 8, 16, 32, 100, 316, 1_000, 3_162, 10_000)


@dataclass(frozen=True)
class Costs:
    """The constants of the model, in seconds, bytes and bytes a second."""

    fixed: float
    per_item: float
    latency: float
    bandwidth: float

    def step(self, workers: int, items: float, size: float) -> float:
        """The seconds of a step of so many workers: a batch of `items`, gradients of `size` bytes."""
        return self.fixed + max(items / workers, 1) * self.per_item + self.all_reduce(workers, size)

    def all_reduce(self, workers: int, size: float) -> float:
        """The seconds of a ring all-reduce."""
        return 2 * (workers - 1) * (self.latency + size / workers / self.bandwidth)


def networks() -> dict[str, tuple[Callable[[], Any], tuple[int, ...], int]]:
    """What learns: for each name how to make the model, the shape of an item, and the size of a batch."""
    from needle import nn
    from needle.apps.models import CNN

    def mlp(*sizes: int) -> Callable[[], nn.Module]:
        def make() -> nn.Module:
            layers: list[nn.Module] = []
            for inputs, outputs in pairwise(sizes):
                layers += [nn.Linear(inputs, outputs), nn.ReLU()]
            return nn.Sequential(*layers[:-1])

        return make

    return {
        "CNN, 16 channels, 28 x 28": (lambda: CNN(28), (1, 28, 28), 64),
        "784-500-10": (mlp(784, 500, 10), (784,), 512),
        "2-8-8-2": (mlp(2, 8, 8, 2), (2,), 16),
    }


def learn(name: str, parts: int) -> dict[str, float]:
    """Train a network on one worker of several, on the `parts`-th part of its batch, and time the steps."""
    import numpy as np

    import needle as ndl
    from needle import nn
    from needle.apps.training import learning_step

    workers = ndl.parallel.Workers()
    make, shape, items = networks()[name]
    rng = np.random.default_rng(0)
    own = workers.share(np.arange(items // parts))
    x = ndl.Tensor(rng.random((items, *shape), "float32")[own], requires_grad=False)
    y = ndl.Tensor(rng.integers(2, size=items)[own], requires_grad=False)
    np.random.seed(0)
    model = make()
    workers.same_values(model)
    step = learning_step(model, nn.SoftmaxLoss(), ndl.optim.Adam(model.parameters()), workers=workers)
    seconds: list[float] = []
    communication: list[float] = []
    end = time.perf_counter() + SECONDS
    while workers.same(len(seconds) < FIRST + LEAST or time.perf_counter() < end):
        before, began = workers.seconds, time.perf_counter()
        step(x, y)
        seconds.append(time.perf_counter() - began)
        communication.append(workers.seconds - before)
    return {
        "step": median(seconds[FIRST:]),
        "communication": median(communication[FIRST:]),
        "bytes": workers.bytes / workers.steps,
        "items": items,
        "gradients": 4 * sum(int(np.prod(p.shape)) for p in model.parameters()),
    }


def send(size: int, rounds: int = 200) -> dict[str, float]:
    """The seconds of a message between two workers: half of there and back, at best."""
    import numpy as np
    from mpi4py import MPI

    world, message = MPI.COMM_WORLD, np.zeros(size, np.uint8)
    other, found = 1 - world.Get_rank(), []
    for _ in range(rounds):
        world.Barrier()
        began = time.perf_counter()
        for turn in range(2):
            if turn == world.Get_rank():
                world.Send(message, other)
            else:
                world.Recv(message, other)
        found.append((time.perf_counter() - began) / 2)
    return {"message": min(found)}


def on_workers(count: int, *words: Any) -> dict[str, float]:
    """Start so many workers, let them do what the words say, and return what worker 0 has found."""
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    if mpiexec is None:
        raise SystemExit("The program mpiexec is missing, which starts the workers: pip install -e '.[mpi]'")
    program = [sys.executable, "-m", "benchmarks.scaling", "--do", *map(str, words)]
    command = [mpiexec, "-n", str(count), *program]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ONE_THREAD})
    if run.returncode:
        raise SystemExit(run.stderr or run.stdout)
    return json.loads(run.stdout.splitlines()[-1])


def message_costs() -> tuple[float, float]:
    """Measure latency and bandwidth: they are the same for all networks."""
    small, large = [on_workers(2, "send", size)["message"] for size in SIZES]
    return small, (SIZES[1] - SIZES[0]) / (large - small)


def constants(name: str, latency: float, bandwidth: float) -> Costs:
    """Measure what a network's computing costs, and put it together with what messages do."""
    alone = [on_workers(1, "learn", name, parts) for parts in PARTS]
    items = [found["items"] / parts for found, parts in zip(alone, PARTS, strict=True)]
    seconds = [found["step"] for found in alone]
    per_item = max((seconds[0] - seconds[-1]) / (items[0] - items[-1]), 0.0)
    return Costs(max(seconds[-1] - per_item * items[-1], 0.0), per_item, latency, bandwidth)


def main() -> None:
    """Measure, print the tables, and draw the picture if one is wanted."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scaling", description=(__doc__ or "").partition(":")[0] + "."
    )
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[1, 2, 4], help="how many to measure with (default: 1 2 4)"
    )
    parser.add_argument(
        "--picture", metavar="PATH", help="draw measured and predicted speed-up into this file"
    )
    parser.add_argument("--do", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if min(args.workers) < 1:
        parser.error(f"--workers: must be whole numbers of at least 1, got {min(args.workers)}")
    if args.do:
        what, *words = args.do
        found = learn(words[0], int(words[1])) if what == "learn" else send(int(words[0]))
        from mpi4py import MPI

        if MPI.COMM_WORLD.Get_rank() == 0:
            print(json.dumps(found))
        return
    if args.picture and not Path(args.picture).resolve().parent.is_dir():
        parser.error(f"--picture: there is no folder {Path(args.picture).parent}")
    processors = os.cpu_count() or 1
    latency, bandwidth = message_costs()
    print(f"{processors} processors; a thread for each worker; medians of {LEAST} steps or more")
    print(f"a message: {1e6 * latency:.3g} µs + {bandwidth / 1e9:.3g} GB/s")
    curves = {}
    for name in networks():
        costs = constants(name, latency, bandwidth)
        print(f"\n{name}: {1e3 * costs.fixed:.3g} ms + {1e6 * costs.per_item:.3g} µs an item")
        print(
            f"  {'workers':>8}{'ms a step':>12}{'of it comm.':>12}{'MB a step':>12}"
            f"{'speed-up':>10}{'model':>8}"
        )
        measured = {n: on_workers(n, "learn", name, 1) for n in args.workers}
        first = on_workers(1, "learn", name, 1) if 1 not in measured else measured[1]
        size, items = first["gradients"], first["items"]
        alone = costs.step(1, items, size)
        for n, found in measured.items():
            model = f"{alone / costs.step(n, items, size):.2f}" if n <= processors else "-"
            print(
                f"  {n:>8}{1e3 * found['step']:>12.3g}{1e3 * found['communication']:>12.3g}"
                f"{found['bytes'] / 1e6:>12.3g}{first['step'] / found['step']:>10.2f}{model:>8}"
            )
        predicted = {n: alone / costs.step(n, items, size) for n in PREDICTED}
        print("  predicted:", ", ".join(f"{n:,}: {x:.3g}" for n, x in predicted.items()))
        curves[name] = predicted, {n: first["step"] / found["step"] for n, found in measured.items()}
    if args.picture:
        draw(curves, args.picture)


def draw(curves: dict[str, tuple[dict[int, float], dict[int, float]]], path: str) -> None:
    """Draw for each network the predicted speed-up as a line, and the measured one as dots."""
    import viz

    (ax,) = viz.panels(1, width=6.5, height=4.2)
    for (name, (predicted, measured)), style in zip(curves.items(), ("-", "--", ":"), strict=True):
        (line,) = ax.plot([*predicted], [*predicted.values()], style, label=name)
        ax.plot([*measured], [*measured.values()], "o", color=line.get_color())
    ax.set(xscale="log", yscale="log", xlabel="workers", ylabel="times as fast as one; dots are measured")
    ax.legend()
    figure: Any = ax.figure
    figure.savefig(path)


if __name__ == "__main__":
    main()
