"""How long a drawing takes: from a Tensor to an SVG element, Graphviz's layout included."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter

import numpy as np

import needle as ndl
import viz
from needle import nn

from .timing import Case

RIVALS = ()


def cases() -> Iterator[Case]:
    """Yield the lines of this group."""
    for name, make in {"chain": chain, "loop": loop, "residual network": network}.items():
        for nodes in (100, 1_000, 10_000):
            output = make(nodes)
            count = len(ndl.autograd.find_topo_sort([output]))
            for what, draw in {"graph": viz.draw, "with gradient": viz.draw_gradient}.items():
                contenders = {"needle": partial(seconds, draw, output)}
                yield Case(f"{name} of {count:,} nodes, {what}", contenders, stopwatch=True)


def seconds(draw: Callable[..., viz.Drawing], output: ndl.Tensor) -> float:
    """The seconds that a picture of a Tensor's graph takes."""
    start = perf_counter()
    draw(output).svg()
    return perf_counter() - start


def chain(nodes: int) -> ndl.Tensor:
    """One product after the other."""
    y = ndl.Tensor([1.0])
    for _ in range(nodes - 1):
        y = y * 1.0001
    return y


def loop(nodes: int) -> ndl.Tensor:
    """A sum that a loop adds up."""
    x, total = ndl.Tensor([2.0]), ndl.Tensor([0.0])
    for _ in range(nodes // 2 - 1):
        total = total + x * x
    return total


def network(nodes: int) -> ndl.Tensor:
    """Residual blocks with LayerNorm, each of which is 11 nodes."""
    rng = np.random.default_rng(0)

    def block() -> nn.Module:
        return nn.Residual(nn.Sequential(nn.LayerNorm1d(8), nn.Linear(8, 8, rng=rng), nn.ReLU()))

    model = nn.Sequential(*[block() for _ in range(nodes // 11)])
    return model(ndl.Tensor(np.ones((4, 8)))).sum()
