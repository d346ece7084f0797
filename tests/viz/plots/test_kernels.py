"""Kernels that are run thread by thread: what they compute, what they read and write, what they do wrong."""

from __future__ import annotations

import contextlib
import io
import math
import threading
from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.patches import FancyArrowPatch
from numba import cuda, float32

from viz import plots

from ...conftest import needs

SIDE = 2
THREADS = 8


@cuda.jit(device=True)
def half(x):
    return x / 2


@cuda.jit
def map_half(out, a):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = half(a[i])


@cuda.jit
def zip_add(out, a, b):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < out.shape[0]:
        out[i] = a[i] + b[i]


@cuda.jit
def reduce_sum(out, a):
    cache = cuda.shared.array(THREADS, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    cache[t] = a[i] if i < a.size else 0.0
    cuda.syncthreads()
    step = THREADS // 2
    while step > 0:
        if t < step:
            cache[t] += cache[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = cache[0]


@cuda.jit
def tiled(out, a, b):
    ours = cuda.shared.array((SIDE, SIDE), float32)
    theirs = cuda.shared.array((SIDE, SIDE), float32)
    i, j = cuda.grid(2)
    y, x = cuda.threadIdx.x, cuda.threadIdx.y
    total = 0.0
    for k in range(0, a.shape[1], SIDE):
        ours[y, x] = a[i, k + x]
        theirs[y, x] = b[k + y, j]
        cuda.syncthreads()
        for q in range(SIDE):
            total += ours[y, q] * theirs[q, x]
        cuda.syncthreads()
    out[i, j] = total


def puzzle(cuda):
    def call(out, a):
        i = cuda.threadIdx.x
        out[i] = a[i] + 10

    return call


def array(*shape: int) -> np.ndarray:
    return np.arange(math.prod(shape), dtype="float32").reshape(shape) + 1


def lines(ax, kind: str) -> int:
    return sum(patch.get_gid() == kind for patch in ax.patches)


# What threads compute, read and write


def test_map_is_traced_thread_by_thread(texts, drawn, legible) -> None:
    out, a = np.zeros(6, "float32"), array(6)
    trace = plots.trace_kernel(map_half, 2, 4, out, a)
    np.testing.assert_array_equal(trace.arrays["out"], a / 2)
    np.testing.assert_array_equal(out, 0)  # what was given stays as it was
    seen = [(x.block[0], x.thread[0], x.kind, x.array, x.index) for x in trace.accesses]
    expected = [
        (i // 4, i % 4, kind, name, (i,))
        for i in range(6)
        for kind, name in (("read", "a"), ("write", "out"))
    ]
    assert seen == expected
    ax = plots.kernel_trace(trace)
    assert (lines(ax, "read"), lines(ax, "write")) == (6, 6)
    assert (len(drawn(ax, "busy")), len(drawn(ax, "idle"))) == (6, 2)
    assert "map_half: 2 blocks of 4 threads" in texts(ax)
    assert "global memory: 6 reads and 6 writes" in texts(ax)
    legible(ax)


def test_the_users_kernel_and_module_stay_as_they_are() -> None:
    before = dict(globals())
    plots.kernel_trace(zip_add, 1, 4, array(4), array(4), array(4))
    assert all(globals()[name] is value for name, value in before.items())
    assert zip_add.py_func.__globals__["cuda"] is cuda
    assert threading.active_count() == len(threading.enumerate())


@settings(max_examples=15)
@given(n=st.integers(1, 20), block=st.integers(1, 6))
def test_traffic_is_what_a_count_by_hand_gives(n: int, block: int) -> None:
    grid = math.ceil(n / block)
    trace = plots.trace_kernel(zip_add, grid, block, np.zeros(n), array(n), array(n))
    counted: Counter = Counter()
    for b in range(grid):
        for t in range(block):
            if b * block + t < n:
                counted.update([("read", "a", b * block + t), ("read", "b", b * block + t)])
                counted.update([("write", "out", b * block + t)])
    assert Counter((x.kind, x.array, *x.index) for x in trace.accesses) == counted
    assert not trace.races
    assert not trace.out_of_bounds


def test_a_reduction_in_shared_memory_waits_at_its_barriers(texts, legible) -> None:
    a = array(14)
    trace = plots.trace_kernel(reduce_sum, 2, THREADS, np.zeros(2, "float32"), a)
    np.testing.assert_array_equal(trace.arrays["out"], [a[:8].sum(), a[8:].sum()])
    assert trace.phases == 5  # one barrier after loading, one after each of three steps
    assert trace.shapes["shared cache"] == (8,)
    assert not trace.races
    # By hand: 8 loads; in each step t < step threads read two and write one; one last read.
    assert trace.count("read", shared=True) == 2 * (2 * (4 + 2 + 1) + 1)
    assert trace.count("write", shared=True) == 2 * (8 + 4 + 2 + 1)
    assert (trace.count("read"), trace.count("write")) == (14, 2)
    ax = plots.kernel_trace(trace)
    assert [text for text in texts(ax) if text.startswith("phase")] == [f"phase {i}" for i in range(1, 6)]
    assert texts(ax).count("barrier") == 4
    legible(ax)


def test_cells_say_what_is_in_them_from_phase_to_phase(texts) -> None:
    def halve(cuda, out, a):
        cache = cuda.shared.array(2, "float64")
        i = cuda.threadIdx.x
        cache[i] = a[i] / 2
        cuda.syncthreads()
        if i == 0:
            cache[0] += cache[1]
        cuda.syncthreads()
        if i == 0:
            out[0] = cache[0]

    shown = texts(plots.kernel_trace(halve, 1, 2, np.zeros(2), np.array([31.0, 64.0])))
    cells = [words for words in shown if words.replace(".", "").isdecimal() and float(words) > 2]
    assert cells == ["31", "64", "15.5", "32", "47.5", "32", "47.5"]


def test_who_does_not_see_the_picture_gets_its_counts_and_mistakes_in_words() -> None:
    def shift(cuda, out, a):
        i = cuda.threadIdx.x
        out[i] = a[i + 1]

    said = plots.kernel_trace(shift, 1, 2, np.zeros(2), array(2)).figure.title
    assert said == (
        "shift: 1 block of 2 threads; global memory: 1 read and 2 writes; "
        "out of bounds: thread 1 of block 0 reads a[2], outside shape (2,)"
    )


def test_what_each_thread_does_is_said_where_all_do_the_same() -> None:
    def twice(cuda, out, a):
        cache = cuda.shared.array(4, float32)
        t = cuda.threadIdx.x
        cache[t] = a[t] * a[t]
        cuda.syncthreads()
        if t < 2:
            out[t] = cache[t] + cache[t + 2]

    def fill(cuda, out):
        out[cuda.threadIdx.x] = 1

    def counting(cuda, out):
        cuda.atomic.add(out, 0, 1)

    assert plots.trace_kernel(twice, 1, 4, np.zeros(2), array(4)).traffic() == [
        "global memory: 8 reads and 2 writes",
        "shared memory: 4 reads and 4 writes",
    ]
    assert plots.trace_kernel(fill, 1, 4, np.zeros(4)).traffic() == [
        "global memory: 0 reads and 4 writes (each thread: 1 write)"
    ]
    assert plots.trace_kernel(counting, 2, 3, np.zeros(1)).traffic() == [
        "global memory: 6 reads and 6 writes (each thread: 1 read and 1 write)"
    ]
    one = plots.trace_kernel(fill, 1, 1, np.zeros(1))
    assert str(one) == "fill: 1 block of 1 thread\nglobal memory: 0 reads and 1 write"
    assert plots.trace_kernel(lambda out: None, 1, 4, np.zeros(4)).traffic() == [
        "global memory: 0 reads and 0 writes"
    ]


@pytest.mark.parametrize(
    ("threads", "more"), [(3, []), (4, ["… and 1 more race"]), (5, ["… and 2 more races"])]
)
def test_races_beyond_the_third_are_counted(texts, threads: int, more: list[str]) -> None:
    def neighbour(cuda, out):
        t = cuda.threadIdx.x
        out[t] = out[(t + 1) % out.size]

    shown = texts(plots.kernel_trace(neighbour, 1, threads, np.zeros(threads)))
    assert [words for words in shown if "more race" in words] == more


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ((0, 1), r"out\[0, 1\]: needs 1 whole number for shape \(4,\), got 2$"),
        (0.5, r"out\[0.5\]: needs 1 whole number for shape \(4,\), such as `//` gives$"),
    ],
)
def test_an_index_that_does_not_fit_is_told_what_would(index, message: str) -> None:
    def at(cuda, out):
        out[index] = 1

    with pytest.raises(RuntimeError, match=message):
        plots.trace_kernel(at, 1, 1, np.zeros(4))
    with pytest.raises(RuntimeError, match=r"needs 2 whole numbers for shape \(2, 2\), got 3$"):
        plots.trace_kernel(lambda cuda, out: out[0, 0, 0], 1, 1, np.zeros((2, 2)))


def test_an_element_that_is_read_later_shows_from_the_start_what_it_holds(texts) -> None:
    def one_after_the_other(cuda, out, a):
        first = a[0]
        cuda.syncthreads()
        out[0] = first + a[1]

    shown = texts(plots.kernel_trace(one_after_the_other, 1, 1, np.zeros(1), np.array([31.0, 64.0])))
    assert [words for words in shown if words in ("31", "64", "95")] == ["31", "64", "31", "64", "95"]


def test_tiles_save_reads_of_global_memory(texts, legible) -> None:
    a, b = array(4, 4), array(4, 4) / 7
    trace = plots.trace_kernel(tiled, (2, 2), (SIDE, SIDE), np.zeros((4, 4)), a, b)
    np.testing.assert_allclose(trace.arrays["out"], a @ b, rtol=1e-6)
    assert not trace.races
    assert trace.count("read") == 2 * 4**3 / SIDE  # without tiles it is 2 * 4**3
    assert {"shared ours", "shared theirs"} <= set(trace.shapes)
    ax = plots.kernel_trace(trace, thread=((1, 0), (0, 1)))
    assert "lines of thread 0, 1 of block 1, 0 only" in texts(ax)
    assert lines(ax, "write") == 2 * 2 + 1
    legible(ax)


@pytest.mark.parametrize(
    "kernel",
    [puzzle, puzzle(cuda), lambda cuda, out, a: out.__setitem__(cuda.grid(1), a[cuda.grid(1)] + 10)],
    ids=[
        "a function of cuda that returns it",
        "with cuda in its closure",
        "with cuda as its first parameter",
    ],
)
def test_kernels_of_every_form_are_traced(kernel) -> None:
    trace = plots.trace_kernel(kernel, 1, 3, np.zeros(3), array(3))
    np.testing.assert_array_equal(trace.arrays["out"], [11, 12, 13])
    assert trace.count("read") == 3


def test_names_taken_from_the_package_are_replaced_as_well() -> None:
    scope: dict = {}
    source = (
        "import numba\nfrom numba.cuda import grid, threadIdx\n"
        "def k(out):\n    i = grid(1)\n    out[i] = threadIdx.x + numba.cuda.gridsize(1)\n"
    )
    exec(source, scope)
    trace = plots.trace_kernel(scope["k"], 2, 2, np.zeros(4))
    np.testing.assert_array_equal(trace.arrays["out"], [4, 5, 4, 5])


def test_places_and_sizes_are_cudas() -> None:
    def where(out):
        x, y, z = cuda.grid(3)
        width, height, _ = cuda.gridsize(3)
        number = x + width * (y + height * z)
        out[number, 0] = cuda.blockDim.x * cuda.blockIdx.x + cuda.threadIdx.x
        out[number, 1] = cuda.gridDim.z * 10 + cuda.blockDim.y
        out[number, 2] = cuda.laneid

    trace = plots.trace_kernel(where, (2, 1, 2), (2, 3), np.zeros((24, 3)))
    np.testing.assert_array_equal(trace.arrays["out"][:, 0], np.arange(24) % 4)
    np.testing.assert_array_equal(trace.arrays["out"][:, 1], 23)
    np.testing.assert_array_equal(np.unique(trace.arrays["out"][:, 2]), np.arange(6))


def test_local_arrays_belong_to_their_thread_and_are_no_traffic() -> None:
    def reverse(out, a):
        i = cuda.grid(1)
        own = cuda.local.array(2, float32)
        for j in range(2):
            own[1 - j] = a[i, j]
        for j in range(2):
            out[i, j] = own[j]

    trace = plots.trace_kernel(reverse, 1, 3, np.zeros((3, 2)), array(3, 2))
    np.testing.assert_array_equal(trace.arrays["out"], array(3, 2)[:, ::-1])
    assert len(trace.accesses) == 12


def test_rows_and_slices_are_views_that_are_traced() -> None:
    def rows(out, a):
        i = cuda.grid(1)
        row = a[i]
        out[i, :] = row[::-1]

    trace = plots.trace_kernel(rows, 1, 2, np.zeros((2, 3)), array(2, 3))
    np.testing.assert_array_equal(trace.arrays["out"], array(2, 3)[:, ::-1])
    assert [x.index for x in trace.accesses if x.kind == "read"][:3] == [(0, 2), (0, 1), (0, 0)]


# What they do wrong


def shifted(out, a):
    i = cuda.grid(1)
    out[i] = a[i + 1]


def test_what_lies_outside_is_refused_drawn_and_told(texts, drawn, legible) -> None:
    trace = plots.trace_kernel(shifted, 1, 4, np.full(4, 9.0), array(4))
    assert [(x.kind, x.array, x.index) for x in trace.out_of_bounds] == [("read", "a", (4,))]
    np.testing.assert_array_equal(trace.arrays["out"], [2, 3, 4, 0])
    ax = plots.kernel_trace(trace)
    assert len(drawn(ax, "outside")) == 1
    assert "out of bounds: thread 3 of block 0 reads a[4], outside shape (4,)" in " ".join(texts(ax))
    legible(ax)


def all_into_one(out, a):
    out[0] += a[cuda.grid(1)]


def atomically(out, a):
    cuda.atomic.add(out, 0, a[cuda.grid(1)])


def test_a_race_is_found_and_an_atomic_change_is_none(texts, drawn, legible) -> None:
    trace = plots.trace_kernel(all_into_one, 1, 4, np.zeros(1), array(4))
    assert [(race.array, race.index) for race in trace.races] == [("out", (0,))]
    ax = plots.kernel_trace(trace)
    assert len(drawn(ax, "race")) == 2  # above the threads and below
    assert any(text.startswith("race at out[0]: thread 0 of block 0") for text in texts(ax))
    legible(ax)
    safe = plots.trace_kernel(atomically, 2, 4, np.zeros(1), array(8))
    assert not safe.races
    np.testing.assert_array_equal(safe.arrays["out"], [36])
    assert (safe.count("read"), safe.count("write")) == (16, 8)
    ax = plots.kernel_trace(safe)
    assert lines(ax, "atomic") == 8
    legible(ax)


def test_what_is_said_fits_on_a_telephone(legible) -> None:
    ax = plots.kernel_trace(all_into_one, 1, 4, np.zeros(1), array(4))
    assert 72 * ax.figure.get_figwidth() < 390 * 72 / 96
    legible(ax)


def test_lines_among_matrices_cross_no_numbers() -> None:
    arrays = np.zeros((4, 4)), array(4, 4), array(4, 4)
    ax = plots.kernel_trace(tiled, 1, (2, 2), *arrays, thread=(0, (1, 1)))
    numbers = [text.get_position() for text in ax.texts if text.get_text().replace(",", "").isdigit()]
    lines = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    ways = [np.linspace(*np.reshape(line._posA_posB, (2, 2)), 30) for line in lines]
    nearest = np.linalg.norm(np.array(ways)[:, :, None] - np.array(numbers), axis=-1).min()
    assert nearest > 4  # points


def neighbours(out):
    cache = cuda.shared.array(4, float32)
    t = cuda.threadIdx.x
    cache[t] = t
    if out.shape[0] == 4:
        cuda.syncthreads()
    out[t] = cache[3 - t]


@pytest.mark.parametrize(("size", "races"), [(4, 0), (5, 4)])
def test_a_barrier_orders_what_would_be_a_race(size: int, races: int) -> None:
    trace = plots.trace_kernel(neighbours, 1, 4, np.zeros(size))
    assert len(trace.races) == races


def between_blocks(out):
    cuda.syncthreads()
    out[0] = cuda.blockIdx.x


def test_atomic_changes_are_the_simulators() -> None:
    def changes(out, seen):
        seen[cuda.threadIdx.x] = cuda.atomic.compare_and_swap(out, 0, 7)
        cuda.atomic.max(out, 1, cuda.threadIdx.x)
        cuda.atomic.xor(out, 2, 5)

    trace = plots.trace_kernel(changes, 1, 3, np.zeros(3, "int32"), np.zeros(3, "int32"))
    assert trace.arrays["out"].tolist() == [7, 2, 5]
    assert trace.arrays["seen"].tolist() == [0, 7, 7]
    assert trace.count("read") == 9
    assert not trace.races


def test_a_barrier_orders_nothing_between_blocks() -> None:
    assert len(plots.trace_kernel(between_blocks, 2, 1, np.zeros(1)).races) == 1
    assert not plots.trace_kernel(between_blocks, 1, 1, np.zeros(1)).races


def leaves_early(out, n):
    if cuda.threadIdx.x < n:
        cuda.syncthreads()
    out[cuda.threadIdx.x] = 1


def two_barriers(out, n):
    if cuda.threadIdx.x < n:
        cuda.syncthreads()
    else:
        cuda.syncthreads()


def fails(out, n):
    out[cuda.threadIdx.x] = 1 // (n - cuda.threadIdx.x)


def no_such(out, n):
    cuda.teleport()


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (leaves_early, "2 of 4 threads wait at syncthreads.. in line .*thread 2 ended without coming there"),
        (two_barriers, "different barriers"),
        (
            fails,
            r"thread 2 of block 0 raised ZeroDivisionError in line "
            rf"{fails.__code__.co_firstlineno + 1}, out\[cuda.threadIdx.x\] = 1 // .*: ",
        ),
        (no_such, "cuda.teleport cannot be traced"),
    ],
)
def test_kernels_that_cannot_go_on_raise_and_leave_no_thread_behind(kernel, message: str) -> None:
    before = threading.active_count()
    with pytest.raises(RuntimeError, match=message):
        plots.kernel_trace(kernel, 1, 4, np.zeros(4), 2)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: plots.kernel_trace(3, 1, 1), TypeError, "needs a kernel's Python function .* got int"),
        (
            lambda: plots.kernel_trace(shifted, 1, 4, array(4)),
            TypeError,
            r"parameters \(out, a\), but 1 argument is given",
        ),
        (lambda: plots.kernel_trace(shifted, 0, 4, 1, 2), TypeError, "grid: needs 1 to 3 whole numbers"),
        (lambda: plots.kernel_trace(shifted, 1, (1, 2, 3, 4), 1, 2), TypeError, "block: needs 1 to 3"),
        (lambda: plots.kernel_trace(shifted, 100, 100, 1, 2), ValueError, "10,000 threads are more than"),
        (
            lambda: plots.kernel_trace(shifted, 1, 1025, 1, 2),
            ValueError,
            "block: 1025 is 1,025 threads; CUDA has at most 1,024",
        ),
        (
            lambda: plots.kernel_trace(shifted, 1, (1, 1, 65), 1, 2),
            ValueError,
            "block: .1, 1, 65. .* 64 along z",
        ),
        (lambda: plots.kernel_trace(shifted, 1, (33, 32), 1, 2), ValueError, "is 1,056 threads; .* 1,024 in"),
        (
            lambda: plots.kernel_trace(shifted, 2**31, 1, 1, 2),
            ValueError,
            "2,147,483,648 threads are more than",
        ),
        (
            lambda: plots.kernel_trace(shifted, (1, 65535), 1, 1, 2),
            ValueError,
            "65,535 threads are more than",
        ),
        (
            lambda: plots.kernel_trace(shifted, 1, 3, array(4), array(4), thread=(0, 3)),
            IndexError,
            "no thread 3, the last is .2, 0, 0.",
        ),
        (
            lambda: plots.kernel_trace(shifted, 1, 3, array(4), array(4), thread=0),
            TypeError,
            "needs .blockIdx, threadIdx.",
        ),
    ],
)
def test_launches_that_are_none_are_refused(call, error, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def add(out, a, b):
    zip_add[1, 4](out, a, b)


def test_a_function_that_launches_a_kernel_is_told_to_trace_that_one() -> None:
    line = rf"in line {add.__code__.co_firstlineno + 1}, zip_add\[1, 4\]\(out, a, b\): "
    with pytest.raises(RuntimeError, match=rf"{line}.*trace that kernel instead"):
        plots.kernel_trace(add, 1, 4, np.zeros(4), array(4), array(4))


def test_a_thread_prints_once() -> None:
    def talks(out):
        print(cuda.threadIdx.x)
        cuda.syncthreads()
        print("after")

    words = io.StringIO()
    with contextlib.redirect_stdout(words):
        plots.trace_kernel(talks, 1, 2, np.zeros(2))
    assert words.getvalue().split() == ["0", "1", "after", "after"]


def test_an_attribute_is_not_a_function_of_that_name() -> None:
    def count(out):
        cuda.atomic.add(out, 0, 1)  # and not `add` above, which launches a kernel

    assert plots.trace_kernel(count, 1, 4, np.zeros(1)).arrays["out"] == 4


@pytest.fixture
def backend() -> ModuleType:
    """The backend for GPUs. To trace its kernels takes no GPU."""
    needs("numba-cuda with its toolkit", find_spec("cuda") is not None, "pip install 'numba-cuda[cu13]'")
    return import_module("needle.backend_ndarray.ndarray_backend_numba_cuda")


def test_the_backends_kernels_are_traced(backend) -> None:
    side = backend.TILE
    a, b = (np.random.default_rng(seed).random((side, side), "float32") for seed in (0, 1))
    product = backend.filled_in(backend.product_of_tiles, backend.names_for(np.dtype("float32")))
    trace = plots.trace_kernel(product, 1, (side, side), a.ravel(), b.ravel(), np.zeros(side**2), side, side)
    np.testing.assert_allclose(trace.arrays["out"], (a @ b).ravel(), rtol=1e-5)
    assert trace.count("read") == 2 * side**2
    assert not trace.races


def test_a_large_launch_is_drawn_in_part_and_counted_as_a_whole(texts, legible) -> None:
    ax = plots.kernel_trace(map_half, 8, 128, np.zeros(1000, "float32"), array(1000))
    assert "1 of 8 blocks drawn" in texts(ax)
    assert "lines of thread 0 of block 0 only" in texts(ax)
    assert "global memory: 1,000 reads and 1,000 writes" in texts(ax)
    assert len(ax.patches) < 400
    legible(ax)


def test_many_barriers_are_drawn_in_part(texts, legible) -> None:
    def steps(out):
        for _ in range(20):
            out[cuda.grid(1)] += 1
            cuda.syncthreads()

    ax = plots.kernel_trace(steps, 1, 2, np.zeros(2))
    assert any("more phases" in text for text in texts(ax))
    legible(ax)


def test_a_loop_of_barriers_that_does_not_end_is_stopped() -> None:
    def waits(out):
        while out[0] < 1:
            cuda.syncthreads()

    with pytest.raises(ValueError, match="more than 250 barriers; does its loop end"):
        plots.trace_kernel(waits, 1, 2, np.zeros(1))


def test_a_row_is_gone_through_element_by_element() -> None:
    def sum_rows(out, a):
        i = cuda.grid(1)
        for x in a[i]:
            out[i] += x

    trace = plots.trace_kernel(sum_rows, 1, 2, np.zeros(2), np.array([[1, 2, 3], [4, 5, 6]]))
    assert trace.arrays["out"].tolist() == [6, 15]
    read = [access.index for access in trace.accesses if (access.array, access.kind) == ("a", "read")]
    assert read == [(i, j) for i in range(2) for j in range(3)]


def test_the_same_launch_gives_the_same_trace() -> None:
    runs = [plots.trace_kernel(reduce_sum, 2, THREADS, np.zeros(2), array(16)).accesses for _ in range(2)]
    assert runs[0] == runs[1]
