"""Lecture 13: what its prose claims, and what proves it."""

from __future__ import annotations

SHOWN = [
    ("first-kernel", "`ripples` ran 4,096 times, once for each point", "hook-code",
     "4096 threads have run\n<PictureFigure size 520x460 with 2 Axes>"),
]  # fmt: skip


MODULE = "__import__('lectures.lecture_13', fromlist=['run'])"


def traffic(name: str, reads: int, writes: int, shared_reads: int = 0) -> str:
    """An expression: how often the kernel of an exercise reads and writes in its first case."""
    return (
        f"(lambda m, case: (lambda t: (t.count('read'), t.count('write'), t.count('read', True)))"
        f"(m.run({name}, *case.make().values()).trace))"
        f"({MODULE}, {MODULE}.lecture.exercises['{name}'].cases[0]) == ({reads}, {writes}, {shared_reads})"
    )


def of_h100(expression: str) -> str:
    """An expression about what was measured on an H100; `h` is the lecture's module."""
    return f"(lambda h: {expression})({MODULE})"


TRUE = [
    ("exercise-map", "the check fills it with nan",
     f"np.isnan({MODULE}.run(lambda out: None, {MODULE}.Launch(1, 1, (2,))).out).all()"),
    ("shared", "Blocks of 4 × 2 make 48 threads, and 18 of them have nothing to do",
     "len(launch.blocks) * len(launch.threads) == 48 and launch.count('write') == 30"),
    ("shared", "Blocks of 5 × 3 fit exactly", "grid_for((3, 10), (5, 3)) == (2, 1) and 2 * 5 * 3 == 30"),
    ("fault", "so 1, 2, 3 becomes 1, 3, 6", "viz.trace_kernel(running_total, 1, 8, np.zeros(3), "
     "np.array([1.0, 2, 3])).arrays['out'].tolist() == [1, 3, 6]"),
    ("exercise-fault", "has two faults, and the picture shows both",
     "(t := viz.trace_kernel(broken, 1, 8, np.zeros(6), np.ones(6))).races != [] != t.out_of_bounds"),
    ("running-solution", "`block_sum` had no such trouble",
     "viz.trace_kernel(block_sum, 2, 8, np.zeros(2), np.ones(13)).races == []"),
    ("exercise-any", "you still launch four blocks", "grid_for((3, 3), (2, 2)) == (2, 2)"),
    ("hook", "64 by 64 points", "drawn.arrays['out'].shape == (64, 64)"),
    ("first-kernel", "Here is one block of six threads",
     "len(viz.trace_kernel(squares, 1, 6, np.zeros(6)).threads) == 6"),
    ("exercise-zip", "six reads and six writes", traffic("fahrenheit", 6, 6)),
    ("guards", "Two reads and one write for each thread", traffic("descend", 12, 6)),
    ("exercise-guard", "The tracer refuses such an access", "len((t := viz.trace_kernel(unguarded, 1, 8, "
     "np.zeros(5), np.arange(5.0))).out_of_bounds) == 6 and t.arrays['out'].tolist() == [0, 2, 4, 6, 8]"),
    ("exercise-map-2d", "Grey threads have nothing to do", traffic("relu", 5, 5)),
    ("exercise-guard", "launches eight threads for five numbers, and tries other sizes, too",
     f"[c.make()['launch'].block for c in {MODULE}.lecture.exercises['relu'].cases] == [8]"),
    ("exercise-map-2d", "`cuda.threadIdx.x` goes from 0 to 3 and `cuda.threadIdx.y` from 0 to 2",
     "[max(n) for n in zip(*viz.trace_kernel(squares, 1, (4, 3), np.zeros(6)).threads)] == [3, 2, 0]"),
    ("exercise-blocks", "each number is fetched again wherever it is used", traffic("add_bias", 12, 6)),
    ("exercise-blocks", "rounded up, so 3 blocks with 12 threads", "(math.ceil(10 / 4), 4 * 3) == (3, 12)"),
    ("exercise-broadcast", "thread 2, 1 has pixel 1, 2", "[x.index for x in viz.trace_kernel(negative, 1, "
     "(4, 3), np.zeros((2, 3)), np.zeros((2, 3))).accesses if x.thread == (2, 1, 0)] == [(1, 2)] * 2"),
    ("blocks-kernel-solution", "it has a short name: `i = cuda.grid(1)`",
     "viz.trace_kernel(type(squares)(compile('def k(out, a):\\n i = cuda.grid(1)\\n if i < a.size:\\n  "
     "out[i] = min(a[i] + 0.25, 1)', '', 'exec').co_consts[0], {'cuda': cuda, 'min': min}), 3, 4, "
     "np.zeros(10), np.arange(10.0)).accesses == viz.trace_kernel(brighter, 3, 4, np.zeros(10), "
     "np.arange(10.0)).accesses"),
    ("race", "8 reads of global memory, and 40 of shared memory", traffic("shares", 8, 8, 40)),
    ("shared-kernel-solution", "the same numbers would take 40 reads of global memory instead of 8",
     "8 * (4 + 1) == 40"),
    ("exercise-sum", "The tracer finds it even where the result is right, as for thread 3",
     "len((t := viz.trace_kernel(too_early, 1, 4, np.zeros(4), np.array([1.0, 2, 3, 4]))).races) == 4 and "
     "np.allclose(t.arrays['out'], [1 / 1, 2 / 3, 3 / 6, 4 / 10])"),
    ("exercise-sum", "two threads meet at one place",
     "len(viz.trace_kernel(too_early, 1, 4, np.zeros(4), np.ones(4)).races) == 4"),
    ("fault", "A sum of 8 takes 3 rounds, and one of 1,024 takes 10", "2**3 == 8 and 2**10 == 1024"),
    ("fault", "their totals are added up by a second launch of the same kernel",
     "viz.trace_kernel(block_sum, 1, 8, np.zeros(1), viz.trace_kernel(block_sum, 5, 8, np.zeros(5), "
     "np.arange(40.0)).arrays['out']).arrays['out'][0] == sum(range(40))"),
    ("product", "12 reads of global memory: six for each block", traffic("sliding_sum", 12, 8, 24)),
    ("product", "Without the cache there would be 24", "8 * 3 == 24"),
    ("exercise-tiles", "Every number is fetched four times: 128 reads, for 32 numbers",
     "plain.count('read') == 128 and {len([x for x in plain.accesses if (x.array, x.index) == place]) for "
     "place in {(x.array, x.index) for x in plain.accesses if x.kind == 'read'}} == {4} and len({(x.array, "
     "x.index) for x in plain.accesses if x.kind == 'read'}) == 32"),
    ("exercise-tiles", "the column of `b` moves, and the row of `a` stays",
     "[{x.index[0] for x in plain.accesses if x.array == 'a' and x.thread[1] == y} for y in range(4)] == "
     "[{0}, {1}, {2}, {3}]"),
    ("exercise-tiles", "Drag only `y`: now the column stays", "[{i.index[1] for i in plain.accesses if "
     "i.array == 'b' and i.thread[0] == x} for x in range(4)] == [{0}, {1}, {2}, {3}]"),
    ("traffic", "It writes to `out` only once, at the end", "{sum(x.thread == thread and x.block == (0, 0, "
     "0) and x.array == 'out' for x in viz.trace_kernel(ready(tiled_product)(2), (2, 2), (2, 2), "
     "np.zeros((4, 4)), plain.arrays['a'], plain.arrays['b']).accesses) for thread in [(0, 0, 0), (1, 0, "
     "0), (0, 1, 0), (1, 1, 0)]} == {1}"),
    ("traffic", "64 reads of global memory instead of 128", traffic("tiled_product", 64, 16, 128)),
    ("exercise-any", "1,024, 512, 256, 128", "list(reads.values()) == [1024, 512, 256, 128]"),
    ("exercise-any", "that is 2 · n³ / tile",
     "list(reads.values()) == [2 * 8**3 // tile for tile in (1, 2, 4, 8)]"),
    ("gpu", "If there is none, the next cell says why", "ndl.cuda().enabled() == (not ndl.cuda().why())"),
    ("gpu-memory", "neighbouring threads still read neighbouring numbers",
     "[[x.index[0] for x in viz.trace_kernel(four_numbers, 1, 4, np.zeros(16), np.ones(16), "
     "np.ones(16)).accesses if x.array == 'a' and x.thread[0] == thread] for thread in range(4)] == "
     "[[thread, 4 + thread, 8 + thread, 12 + thread] for thread in range(4)]"),
    ("gpu-memory", "The second one gives each thread four numbers",
     "[x.kind for x in viz.trace_kernel(four_numbers, 1, 1, np.zeros(4), np.ones(4), np.ones(4)).accesses] "
     "== 8 * ['read'] + 4 * ['write']"),
    ("gpu-memory", "it is right for any size of the grid", "all((viz.trace_kernel(in_a_loop, grid, 4, "
     "np.zeros(9), np.ones(9), np.ones(9)).arrays['out'] == 2).all() for grid in (1, 2, 3, 4))"),
    ("gpu-launch", "3,027 gigabytes a second",
     of_h100("round(12 * 2**26 / h.ADDITIONS_OF_H100['four numbers a thread'] / 1e9) == 3027")),
    ("gpu-launch", "The loop is slowest",
     of_h100("max(h.ADDITIONS_OF_H100, key=h.ADDITIONS_OF_H100.get) == 'a loop over the grid'")),
    ("gpu-launch", "each thread goes round it only once", "[x.kind for x in viz.trace_kernel(in_a_loop, 2, "
     "4, np.zeros(8), np.ones(8), np.ones(8)).accesses] == 8 * ['read', 'read', 'write']"),
    ("gpu-tiles",
     "That takes 24 µs (millionths of a second), time enough for the H100 to add six million numbers",
     of_h100("h.LAUNCHES_OF_H100['by Numba'] == 24e-6 and "
        "6e6 < 24e-6 / h.ADDITIONS_OF_H100['four numbers a thread'] * 2**26 < 7e6")),
    ("gpu-tiles", "takes 3.9 µs", of_h100("h.LAUNCHES_OF_H100['by the driver alone'] == 3.9e-6")),
    ("gpu-tiles", "adding 1,000 numbers takes as long as adding 100,000",
     of_h100("100_000 / 2**26 * h.ADDITIONS_OF_H100['four numbers a thread'] < 3.9e-6")),
    ("gpu-end",
     "5 times as fast as tiles of 16 × 16 for the smaller matrices, and 7 times for the larger ones",
     of_h100("[round(times['16 × 16 tiles, 1 a thread'] / times['cuBLAS']) "
        "for times in h.PRODUCTS_OF_H100.values()] == [5, 7]")),
    ("gpu-end", "For each multiplication, a thread of yours reads two numbers from shared memory",
     "128 == 2 * 4**3"),
    ("gpu-end", "This takes half of the time",
     of_h100("all(0.4 < times['64 × 64 tiles, 16 a thread'] / times['16 × 16 tiles, 1 a thread'] < 0.5 "
        "for times in h.PRODUCTS_OF_H100.values())")),
    ("gpu-end", "it goes this one step further: it lets each thread compute several numbers",
     "all(word in open(__import__('importlib.util', "
     "fromlist=['find_spec']).find_spec('needle.backend_ndarray.ndarray_backend_numba_cuda').origin, "
     "encoding='utf-8').read().partition('def product(')[2].partition('\\n\\n\\n')[0] for word in "
     "('a_tile', 'b_tile', 'cuda.syncthreads()', 'totals[i, j] +='))"),
]  # fmt: skip
