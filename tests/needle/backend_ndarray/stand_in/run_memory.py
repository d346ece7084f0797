"""Memory on the stand-in: who gives it back, and when. Whoever reads what was given back ends the process."""

import gc
import threading
from typing import ClassVar

import numpy as np
import on_stand_in
import pytest

counts = on_stand_in.counts

import needle as ndl  # noqa: E402
from needle import backend_ndarray as nd  # noqa: E402
from needle import nn, optim  # noqa: E402
from needle.backend_ndarray import launching  # noqa: E402

CUDA = ndl.cuda()
assert CUDA.enabled(), CUDA.why()


def array(*values):
    return nd.array(values, device=CUDA)


def live():
    gc.collect()
    return counts.live


def memory_goes_back_when_nobody_uses_it():
    before = live()
    a = nd.empty((1000,), device=CUDA)
    view = a[10:20]
    assert live() == before + 4000
    del a
    assert live() == before + 4000
    del view
    assert live() == before


class Node:
    """An object in a circle, which reads its array when it goes."""

    read: ClassVar[list] = []

    def __init__(self, array):
        self.array = array
        self.itself = self

    def __del__(self):
        Node.read.append(self.array.numpy())
        Node.saved = self.array


def arrays_in_circles_live_as_long_as_somebody_can_read_them():
    before = live()
    for step in range(20):
        Node(array(step, step))
        gc.collect()
        taken = array(-1, -1)  # it would lie where the dead array was
        assert Node.saved.numpy().tolist() == [step, step]
        assert taken.numpy().tolist() == [-1, -1]
    assert [read.tolist() for read in Node.read] == [[step, step] for step in range(20)]
    del taken
    Node.saved = None
    assert live() == before


def steps_of_a_network_whose_tensors_stand_in_circles(steps):
    rng = np.random.default_rng(0)
    model = nn.Sequential(
        nn.Linear(4, 8, device=CUDA, rng=rng), nn.ReLU(), nn.Linear(8, 3, device=CUDA, rng=rng)
    )
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = ndl.Tensor(rng.normal(size=(16, 4)), device=CUDA, requires_grad=False)
    y = ndl.Tensor(rng.integers(0, 3, 16), device=CUDA, requires_grad=False)
    after = []
    for _ in range(steps):
        loss = nn.SoftmaxLoss()(model(x), y)
        loss.backward()
        loss.itself = loss  # only the garbage collector finds that nobody uses the graph any more
        optimizer.step()
        del loss
        gc.collect()
        after.append(counts.live)
    assert len(set(after[2:])) == 1, after


def a_thread_enters_the_gpu_by_itself():
    found = []
    a = array(1, 2, 3)

    def work():
        found.append((a + a).numpy().tolist())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[2, 4, 6]] * 3


def a_launch_may_come_in_the_middle_of_another():
    """As when the garbage collector begins there, and an object that goes computes something."""
    a, call, found = array(1, 2), launching.call, []

    def interrupted(function, *arguments):
        if function.__name__ == "cuLaunchKernel" and not found:
            found.append(None)
            found[0] = (a + array(10, 10)).numpy().tolist()
        return call(function, *arguments)

    a + a
    launching.call = interrupted
    assert (a + a).numpy().tolist() == [2, 4]
    launching.call = call
    assert found == [[11, 12]]


def memory_that_runs_out_is_told_after_a_second_try():
    counts.limit = live() + 10000
    a = nd.empty((2000,), device=CUDA)  # 8,000 bytes
    said = r"no memory for 0\.0 MiB, 1500 numbers of type float32; .* of the GPU's .*needle\.cpu\(\)"
    with pytest.raises(MemoryError, match=said):
        nd.empty((1500,), device=CUDA)
    circle = Node(a)
    del a, circle
    Node.__del__ = lambda self: None
    waits = counts.waits
    assert (
        nd.full((1500,), 2, device=CUDA).numpy().sum() == 3000
    )  # what stood in a circle has been given back
    assert counts.waits == waits + 1
    counts.limit = 2**64 - 1


def an_empty_array_has_an_address():
    assert nd.empty((0, 3), device=CUDA).numpy().shape == (0, 3)
    assert (nd.empty((0, 3), device=CUDA) + 1).sum().numpy() == 0


def a_driver_without_a_pool_does_as_well():
    launching._gpu.pool = None
    before = live()
    a = array(1, 2) + array(3, 4)
    assert a.numpy().tolist() == [4, 6]
    del a
    assert live() == before


memory_goes_back_when_nobody_uses_it()
arrays_in_circles_live_as_long_as_somebody_can_read_them()
steps_of_a_network_whose_tensors_stand_in_circles(8)
a_thread_enters_the_gpu_by_itself()
a_launch_may_come_in_the_middle_of_another()
memory_that_runs_out_is_told_after_a_second_try()
an_empty_array_has_an_address()
a_driver_without_a_pool_does_as_well()
left = array(1, 2), ndl.Tensor([1.0], device=CUDA)  # live when the program ends, without a word
