"""A compiled step on the stand-in: from the third call on, it is some copies and one graph."""

import gc

import numpy as np
import on_stand_in
import pytest

counts = on_stand_in.counts

import needle as ndl  # noqa: E402
from needle import nn, optim  # noqa: E402
from needle.backend_ndarray import launching  # noqa: E402

CUDA = ndl.cuda()
COUNTED = [name for name, _ in counts._fields_ if name not in ("live", "most", "limit", "pools")]


class Side:
    """A network that learns, with the same numbers each time it is made."""

    def __init__(self, compiles):
        rng = np.random.default_rng(0)
        linear = [nn.Linear(a, b, device=CUDA, rng=rng) for a, b in ((2, 8), (8, 8), (8, 3))]
        self.model = nn.Sequential(linear[0], nn.ReLU(), linear[1], nn.Dropout(0.1, rng=rng), linear[2])
        self.optimizer = optim.Adam(self.model.parameters(), lr=0.05)
        self.step = ndl.jit(self.step) if compiles else self.step

    def step(self, x, y):
        loss = nn.SoftmaxLoss()(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss


def batch(number, count=()):
    rng = np.random.default_rng(number)
    x = ndl.Tensor(rng.normal(size=(*count, 12, 2)), device=CUDA, requires_grad=False)
    return x, rng.integers(0, 3, (*count, 12))


def counted(f, *arguments):
    """What a call returns, and what the driver was asked for meanwhile."""
    before = {name: getattr(counts, name) for name in COUNTED}
    result = f(*arguments)
    asked = {name: getattr(counts, name) - before[name] for name in COUNTED}
    return result, {name: times for name, times in asked.items() if times > 0}


def close(a, b):
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)


ours, theirs = Side(True), Side(False)
for number in range(3):  # as it is, since the optimiser makes its state; kernel by kernel; as a graph
    close(ours.step(*batch(number)), theirs.step(*batch(number)))
assert counts.graphs == 1
ours.optimizer.lr = theirs.optimizer.lr = 0.01
x, y = batch(3)
loss, asked = counted(ours.step, x, y)
# The labels, the numbers and what dropout draws are uploaded, which is an array of its own, as the loss is;
# x and the drawn numbers come to the graph by a copy, and the loss from it.
assert asked == {"allocations": 2, "uploads": 3, "copies": 3, "replays": 1}, asked
close(loss, theirs.step(x, y))
then = loss.numpy()
later = ours.step(*batch(4))
assert loss.numpy() == then != later.numpy(), "a result is overwritten by the next call"
close(later, theirs.step(*batch(4)))

# `scan` replays it for each batch.
xs, ys = batch(5, (4,))
losses, asked = counted(ndl.scan, ours.step, xs, ys)
assert asked.pop("replays") == 4, asked
assert asked.keys() == {"allocations", "uploads", "copies"}, asked
expected = [theirs.step(x, y).numpy() for x, y in zip(xs, ys, strict=True)]
np.testing.assert_allclose(losses.numpy(), expected, rtol=1e-4, atol=1e-6)

# Who holds a parameter keeps its numbers: the program takes other memory, and another graph.
snapshot = {name: (value, value.numpy()) for name, value in ours.model.state_dict().items()}
for number, expected in ((6, {"launches"}), (7, {"replays", "graphs"}), (8, {"replays"})):
    loss, asked = counted(ours.step, *batch(number))
    assert expected == {"launches", "replays", "graphs"} & asked.keys(), asked
    close(loss, theirs.step(*batch(number)))
for value, numbers in snapshot.values():
    np.testing.assert_array_equal(value.numpy(), numbers)
assert counts.graphs == 1  # of the two

# A label that names no class leaves all as it was.
before = [p.numpy() for p in ours.model.parameters()]
loss = ours.step(x, np.array([0, 1, 7] * 4))
with pytest.raises(IndexError, match="7"):
    loss.numpy()
for p, numbers in zip(ours.model.parameters(), before, strict=True):
    np.testing.assert_array_equal(p.numpy(), numbers)

# A Tensor that the function finds by its name, at another place.
factor = ndl.ones(3, device=CUDA)


@ndl.jit
def long(x):
    for _ in range(6):  # sums of columns and of rows in turn: no kernel does two of them
        x = ndl.tanh(x * factor).sum(0).reshape((3, 1)).broadcast_to((3, 3))
    return x


square = ndl.Tensor(np.eye(3), device=CUDA, requires_grad=False)
for value in (1, 1, 2, 2, 2):
    factor.data = ndl.Tensor(np.full(3, value), device=CUDA) if value != factor.numpy()[0] else factor
    close(long(square), long.function(square))
assert counts.graphs == 2

# Where the driver refuses to record, kernels are launched one by one.
with pytest.MonkeyPatch.context() as patch:
    patch.setattr(launching, "recording_stream", lambda: launching.STREAM)
    alone = ndl.jit(long.function)
    alone(square)
    with pytest.warns(RuntimeWarning, match="cuStreamBeginCapture: CUDA_ERROR_INVALID_VALUE"):
        close(alone(square), long(square))
    close(alone(square), long(square))

# Generated kernels are on disk by now, as the library's are: nothing is compiled again.
launching.to_ptx = None
close(ndl.jit(long.function)(square), long(square))

del ours, long
gc.collect()
assert counts.graphs == 0
