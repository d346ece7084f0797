"""Large blocks of memory are used again, but never while anyone still looks at them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import needle as ndl
from needle.backend_ndarray import memory
from needle.backend_ndarray.ndarray_backend_numpy import Array

N = memory.LARGE
FLOAT = np.dtype("float32")


@pytest.fixture
def blocks():
    return memory.Blocks()


def address(array: np.ndarray) -> int:
    return array.ctypes.data


def test_a_block_is_used_again_when_its_array_is_gone(blocks):
    first = blocks.array(N, FLOAT)
    second = blocks.array(N, FLOAT)
    places = {address(first), address(second)}
    assert len(places) == 2
    assert blocks.size == 0
    del first, second
    assert blocks.size == 2 * N * 4
    again = [blocks.array(N, FLOAT) for _ in range(3)]
    assert places < {address(array) for array in again}
    assert len({address(array) for array in again}) == 3
    assert blocks.size == 0


@pytest.mark.parametrize("look", [lambda a: a[5:], lambda a: memoryview(a), lambda a: a.reshape(2, -1).T])
def test_not_while_a_view_is_alive(blocks, look):
    array = blocks.array(N, FLOAT)
    place = address(array)
    view = look(array)
    del array
    assert blocks.size == 0
    assert address(blocks.array(N, FLOAT)) != place
    del view


def test_other_data_types_of_the_same_size_share_blocks(blocks):
    place = address(blocks.array(N, FLOAT))
    array = blocks.array(N // 2, np.dtype("float64"))
    assert (address(array), array.dtype, array.size) == (place, np.float64, N // 2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool"])
def test_arrays_are_aligned_and_writable(dtype):
    array = Array(N + 3, dtype).buffer
    assert array.shape == (N + 3,)
    assert array.dtype == dtype
    assert address(array) % memory.ALIGNMENT == 0
    array[...] = 1
    assert array.sum() == N + 3


def test_only_so_much_is_kept(monkeypatch):
    monkeypatch.setattr(memory, "KEPT", 10 * N * 4)
    blocks = memory.Blocks()
    arrays = [blocks.array(N + i, FLOAT) for i in range(40)]  # each of another size
    while arrays:
        arrays.pop()
        assert blocks.size <= 10 * N * 4 + 40 * 4
    assert blocks.size > 0
    del [blocks.array(11 * N, FLOAT)][0]  # larger than all that may be kept
    before = blocks.size
    assert before <= 10 * N * 4 + 40 * 4
    blocks.release()
    assert blocks.size == 0


def test_where_memory_runs_out_waiting_blocks_make_room(blocks, monkeypatch):
    del [blocks.array(N, FLOAT)][0]
    new, failures = memory._new, iter([True, False])

    def full_at_first(nbytes):
        if next(failures):
            raise MemoryError
        return new(nbytes)

    assert blocks.size == N * 4
    monkeypatch.setattr(memory, "_new", full_at_first)
    array = blocks.array(2 * N, FLOAT)
    assert array.size == 2 * N
    assert blocks.size == 0  # they were given back


def test_threads_never_share_a_block():
    wrong = []

    def work(mark):
        for _ in range(500):
            a, b = Array(N, FLOAT).buffer, Array(N, FLOAT).buffer
            a[:8], b[:8] = mark, -mark
            if (a[:8] != mark).any() or (b[:8] != -mark).any():
                wrong.append(mark)

    threads = [threading.Thread(target=work, args=(i + 1,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("device", [ndl.cpu(), ndl.cpu_numpy()], ids=str)
def test_a_loop_asks_for_no_new_memory(device):
    a = ndl.NDArray(np.ones((N, 2)), device=device)

    def step():
        return ((a + 1) * 2).sum()

    memory.blocks.release()
    step(), step()
    before = memory.blocks.size
    assert before > 0
    for _ in range(20):
        step()
        assert memory.blocks.size == before
    assert (a.numpy() == 1).all()
