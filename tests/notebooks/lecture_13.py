"""Lecture 13: what its prose claims, and what proves it."""

from __future__ import annotations

from collections.abc import Sequence


def kernel(name: str, *lines: str, inputs: str = "a") -> str:
    """The source of an answer: a kernel with these lines."""
    return f"from numba import cuda, float32\ndef {name}(out, {inputs}):\n    " + "\n    ".join(lines)


def tiles(*lines: str) -> str:
    """The source of an answer to the last exercise, with these lines after the first five."""
    first = (
        "a_tile = cuda.shared.array((tile, tile), float32)",
        "b_tile = cuda.shared.array((tile, tile), float32)",
        "x, y = cuda.threadIdx.x, cuda.threadIdx.y",
        "column, row = cuda.grid(2)",
        "total = float32(0)",
    )
    body = "\n        ".join([*first, *lines])
    return (
        "from numba import cuda, float32\ndef tiled_product(tile):\n    def product(out, a, b):\n        "
        f"{body}\n    return product"
    )


IN_BLOCK, X_Y = "i = cuda.threadIdx.x", "x, y = cuda.threadIdx.x, cuda.threadIdx.y"
GRID = "i = cuda.grid(1)"
T_I = "t, i = cuda.threadIdx.x, cuda.grid(1)"
CACHE = "cache = cuda.shared.array({}, float32)"
WAIT = "cuda.syncthreads()"
QUARTER = "out[i] = cache[t] / (cache[0] + cache[1] + cache[2] + cache[3])"
LOAD_EIGHT = ["cache[t] = 0", "if i < a.size:", "    cache[t] = a[i]"]
HALVE = ["step = 4", "while step > 0:", "    if t < step:", "        cache[t] = cache[t] + cache[t + step]"]
WRITE_ONE = ["if t == 0:", "    out[cuda.blockIdx.x] = cache[0]"]
LOAD_SIX = ["if i < a.size:", "    cache[t] = a[i]"]
REST = ["if t < 2:", "    if i + 4 < a.size:", "        cache[t + 4] = a[i + 4]"]
SLIDE = ["if i < out.size:", "    out[i] = cache[t] + cache[t + 1] + cache[t + 2]"]
STEPS = "for k in range(0, a.shape[1], tile):"
LOAD_TILES = ["    a_tile[y, x] = a[row, k + x]", "    b_tile[y, x] = b[k + y, column]"]
MULTIPLY = ["    for j in range(tile):", "        total = total + a_tile[y, j] * b_tile[j, x]"]


def tiles_with(
    *load: str,
    before: Sequence[str] = (),
    add: Sequence[str] = ("total += a_tile[y, j] * b_tile[j, x]",),
    write: str = "out[row, column] = total",
) -> str:
    """The source of an answer to the last exercise: right, but for what is given."""
    loads = [f"    {line}" for line in load] or LOAD_TILES
    inner = ["    for j in range(tile):", *(f"        {line}" for line in add)]
    return tiles(
        STEPS, *(f"    {line}" for line in before), *loads, f"    {WAIT}", *inner, f"    {WAIT}", write
    )


SHOWN = [
    (
        "first-kernel",
        "`ripples` ran 4,096 times, once for each point",
        "hook-code",
        "4096 threads have run\n<PictureFigure size 520x460 with 2 Axes>",
    ),
]


def traffic(name: str, reads: int, writes: int, shared_reads: int = 0) -> str:
    """An expression: how often the kernel of an exercise reads and writes in its first case."""
    return (
        f"[(lambda t: (t.count('read'), t.count('write'), t.count('read', True)))(lecture_13.run({name}, "
        f"*[lecture_13.lecture.exercises['{name}'].cases[0].make()[n] for n in "
        f"lecture_13.lecture.exercises['{name}'].cases[0].chosen]).trace) "
        f"for lecture_13 in [__import__('lectures.lecture_13', fromlist=['run'])]] == "
        f"[({reads}, {writes}, {shared_reads})]"
    )


def of_h100(expression: str) -> str:
    """An expression about what was measured on an H100; `h` is the lecture's module."""
    return f"(lambda h: {expression})(__import__('lectures.lecture_13', fromlist=['launches']))"


TRUE = [
    ("hook", "64 by 64 points", "drawn.arrays['out'].shape == (64, 64)"),
    (
        "first-kernel",
        "Here is one block of six threads",
        "len(viz.trace_kernel(squares, 1, 6, np.zeros(6)).threads) == 6",
    ),
    ("exercise-zip", "six reads and six writes", traffic("fahrenheit", 6, 6)),
    ("guards", "Two reads and one write for each thread", traffic("descend", 12, 6)),
    (
        "exercise-guard",
        "The tracer refuses such an access",
        "len((t := viz.trace_kernel(unguarded, 1, 8, np.zeros(5), np.arange(5.0))).out_of_bounds) == 6 and "
        "t.arrays['out'].tolist() == [0, 2, 4, 6, 8]",
    ),
    ("exercise-map-2d", "Grey threads have nothing to do", traffic("relu", 5, 5)),
    (
        "exercise-guard",
        "launches eight threads for five numbers, and tries other sizes, too",
        "[(c.make()['launch'].block, c.make()['a'].size) for c in __import__('lectures.lecture_13', "
        "fromlist=['lecture']).lecture.exercises['relu'].cases] == [(8, 5), (8, 7), (4, 4)]",
    ),
    (
        "exercise-map-2d",
        "`cuda.threadIdx.x` goes from 0 to 3 and `cuda.threadIdx.y` from 0 to 2",
        "[max(n) for n in zip(*viz.trace_kernel(squares, 1, (4, 3), np.zeros(6)).threads)] == [3, 2, 0]",
    ),
    ("exercise-blocks", "each number is fetched again wherever it is used", traffic("add_bias", 12, 6)),
    ("exercise-blocks", "rounded up, so 3 blocks with 12 threads", "(math.ceil(10 / 4), 4 * 3) == (3, 12)"),
    (
        "exercise-broadcast",
        "thread 2, 1 has pixel 1, 2",
        "[x.index for x in viz.trace_kernel(negative, 1, (4, 3), np.zeros((2, 3)), np.zeros((2, 3)))"
        ".accesses if x.thread == (2, 1, 0)] == [(1, 2)] * 2",
    ),
    (
        "blocks-kernel-solution",
        "it has a short name: `i = cuda.grid(1)`",
        "viz.trace_kernel(type(squares)(compile('def k(out, a):\\n i = cuda.grid(1)\\n if i < a.size:\\n  "
        "out[i] = min(a[i] + 0.25, 1)', '', 'exec').co_consts[0], {'cuda': cuda, 'min': min}), 3, 4, "
        "np.zeros(10), np.arange(10.0)).accesses == "
        "viz.trace_kernel(brighter, 3, 4, np.zeros(10), np.arange(10.0)).accesses",
    ),
    ("race", "8 reads of global memory, and 40 of shared memory", traffic("shares", 8, 8, 40)),
    (
        "shared-kernel-solution",
        "the same numbers would take 40 reads of global memory instead of 8",
        "8 * (4 + 1) == 40",
    ),
    (
        "exercise-sum",
        "The tracer finds it even where the result is right, as for thread 3",
        "len((t := viz.trace_kernel(too_early, 1, 4, np.zeros(4), np.array([1.0, 2, 3, 4]))).races) == 4 and "
        "np.allclose(t.arrays['out'], [1 / 1, 2 / 3, 3 / 6, 4 / 10])",
    ),
    (
        "exercise-sum",
        "two threads meet at one place",
        "len(viz.trace_kernel(too_early, 1, 4, np.zeros(4), np.ones(4)).races) == 4",
    ),
    (
        "exercise-sliding",
        "A sum of 8 takes 3 rounds, and one of 1,024 takes 10",
        "2**3 == 8 and 2**10 == 1024",
    ),
    (
        "exercise-sliding",
        "their totals are added up by a second launch of the same kernel",
        "viz.trace_kernel(block_sum, 1, 8, np.zeros(1), viz.trace_kernel(block_sum, 5, 8, np.zeros(5), "
        "np.arange(40.0)).arrays['out']).arrays['out'][0] == sum(range(40))",
    ),
    ("product", "12 reads of global memory: six for each block", traffic("sliding_sum", 12, 8, 24)),
    ("product", "Without the cache there would be 24", "8 * 3 == 24"),
    (
        "exercise-tiles",
        "Every number is fetched four times: 128 reads, for 32 numbers",
        "plain.count('read') == 128 and {len([x for x in plain.accesses if (x.array, x.index) == place]) "
        "for place in {(x.array, x.index) for x in plain.accesses if x.kind == 'read'}} == {4} and "
        "len({(x.array, x.index) for x in plain.accesses if x.kind == 'read'}) == 32",
    ),
    (
        "exercise-tiles",
        "the column of `b` moves, and the row of `a` stays",
        "[{x.index[0] for x in plain.accesses if x.array == 'a' and x.thread[1] == y} for y in range(4)] == "
        "[{0}, {1}, {2}, {3}]",
    ),
    (
        "exercise-tiles",
        "Drag only `y`: now the column stays",
        "[{i.index[1] for i in plain.accesses if i.array == 'b' and i.thread[0] == x} for x in range(4)] == "
        "[{0}, {1}, {2}, {3}]",
    ),
    (
        "traffic",
        "It writes to `out` only once, at the end",
        "{sum(x.thread == thread and x.block == (0, 0, 0) and x.array == 'out' for x in viz.trace_kernel("
        "ready(tiled_product)(2), (2, 2), (2, 2), np.zeros((4, 4)), plain.arrays['a'], plain.arrays['b'])"
        ".accesses) for thread in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]} == {1}",
    ),
    ("traffic", "64 reads of global memory instead of 128", traffic("tiled_product", 64, 16, 128)),
    ("gpu", "1,024, 512, 256, 128", "list(reads.values()) == [1024, 512, 256, 128]"),
    ("gpu", "that is 2 · n³ / tile", "list(reads.values()) == [2 * 8**3 // tile for tile in (1, 2, 4, 8)]"),
    (
        "gpu",
        "If there is none, the next cell says why",
        "ndl.cuda().enabled() == (not ndl.cuda().why())",
    ),
    (
        "gpu-memory",
        "neighbouring threads still read neighbouring numbers",
        "[[x.index[0] for x in viz.trace_kernel(four_numbers, 1, 4, np.zeros(16), np.ones(16), np.ones(16))"
        ".accesses if x.array == 'a' and x.thread[0] == thread] for thread in range(4)] == "
        "[[thread, 4 + thread, 8 + thread, 12 + thread] for thread in range(4)]",
    ),
    (
        "gpu-memory",
        "The second one gives each thread four numbers",
        "[x.kind for x in viz.trace_kernel(four_numbers, 1, 1, np.zeros(4), np.ones(4), np.ones(4)).accesses]"
        " == 8 * ['read'] + 4 * ['write']",
    ),
    (
        "gpu-memory",
        "it is right for any size of the grid",
        "all((viz.trace_kernel(in_a_loop, grid, 4, np.zeros(9), np.ones(9), np.ones(9)).arrays['out'] == 2)"
        ".all() for grid in (1, 2, 3, 4))",
    ),
    (
        "gpu-launch",
        "3,027 gigabytes a second",
        of_h100("round(12 * 2**26 / h.ADDITIONS_OF_H100['four numbers a thread'] / 1e9) == 3027"),
    ),
    (
        "gpu-launch",
        "The loop is slowest",
        of_h100("max(h.ADDITIONS_OF_H100, key=h.ADDITIONS_OF_H100.get) == 'a loop over the grid'"),
    ),
    (
        "gpu-launch",
        "each thread goes round it only once",
        "[x.kind for x in viz.trace_kernel(in_a_loop, 2, 4, np.zeros(8), np.ones(8), np.ones(8)).accesses]"
        " == 8 * ['read', 'read', 'write']",
    ),
    (
        "gpu-tiles",
        "That takes 24 µs (millionths of a second), time enough for the H100 to add six million numbers",
        of_h100(
            "h.LAUNCHES_OF_H100['by Numba'] == 24e-6 and "
            "6e6 < 24e-6 / h.ADDITIONS_OF_H100['four numbers a thread'] * 2**26 < 7e6"
        ),
    ),
    ("gpu-tiles", "takes 3.9 µs", of_h100("h.LAUNCHES_OF_H100['by the driver alone'] == 3.9e-6")),
    (
        "gpu-tiles",
        "to add 1,000 numbers takes as long as to add 100,000",
        of_h100("100_000 / 2**26 * h.ADDITIONS_OF_H100['four numbers a thread'] < 3.9e-6"),
    ),
    (
        "gpu-end",
        "5 times as fast as tiles of 16 × 16 for the smaller matrices, and 7 times for the larger ones",
        of_h100(
            "[round(times['16 × 16 tiles, 1 a thread'] / times['cuBLAS']) "
            "for times in h.PRODUCTS_OF_H100.values()] == [5, 7]"
        ),
    ),
    (
        "gpu-end",
        "For each multiplication, a thread of yours reads two numbers from shared memory",
        "128 == 2 * 4**3",  # as the tracer counts them, see "traffic"
    ),
    (
        "gpu-end",
        "This takes half of the time",
        of_h100(
            "all(0.4 < times['64 × 64 tiles, 16 a thread'] / times['16 × 16 tiles, 1 a thread'] < 0.5 "
            "for times in h.PRODUCTS_OF_H100.values())"
        ),
    ),
    (
        "gpu-end",
        "it goes this one step further: it lets each thread compute several numbers",
        "all(word in open(__import__('importlib.util', fromlist=['find_spec']).find_spec("
        "'needle.backend_ndarray.ndarray_backend_numba_cuda').origin, encoding='utf-8').read()"
        ".partition('def product(')[2].partition('\\n\\n\\n')[0] "
        "for word in ('a_tile', 'b_tile', 'cuda.syncthreads()', 'totals[i, j] +='))",
    ),
]

NEAR_MISSES = {
    "fahrenheit": [
        (
            kernel(
                "fahrenheit",
                IN_BLOCK,
                "if i < 1:",
                "    while i < a.size:",
                "        out[i] = a[i] * 1.8 + 32",
                "        i += 1",
            ),
            "does the work of others",
        ),
        (
            kernel("fahrenheit", "for k in range(len(a)):", "    out[k] = a[k] * 1.8 + 32"),
            "Leave the loop out",
        ),
        (
            kernel("fahrenheit", "out[cuda.blockIdx.x] = a[cuda.blockIdx.x] * 1.8 + 32"),
            "All threads write to one",
        ),
        (kernel("fahrenheit", IN_BLOCK, "out = a[i] * 1.8 + 32"), "only makes a new name"),
        (kernel("fahrenheit", IN_BLOCK, "out[i] = (32 + a[i]) * 1.8"), "First times 1.8"),
        (kernel("fahrenheit", "out[:] = a * 1.8 + 32"), "compute with a whole array"),
        (kernel("fahrenheit", "return [1.8 * x + 32 for x in a]"), "cannot all `return`"),
        (kernel("fahrenheit", "i = cuda.threadIdx", "out[i] = a[i] * 1.8 + 32"), "Take `cuda.threadIdx.x`"),
    ],
    "descend": [
        (kernel("descend", IN_BLOCK, "out[i] = g[i] * 0.1 + w[i]", inputs="w, g"), "goes uphill"),
        (kernel("descend", IN_BLOCK, "out[i] = w[i]", "out[i] -= g[i]", inputs="w, g"), "a tenth"),
        (kernel("descend", IN_BLOCK, "w[i] -= g[i] / 10", "out[i] = w[i]", inputs="w, g"), "change an input"),
        (kernel("descend", IN_BLOCK, "out[i] = g[i] * -0.1", inputs="w, g"), "starting point is missing"),
        (kernel("descend", "out[:] = w - 0.1 * g", inputs="w, g"), "compute with a whole array"),
        (kernel("descend", IN_BLOCK, "return w[i] - 0.1 * g[i]", inputs="w, g"), "cannot all `return`"),
        (
            kernel("descend", "for i in range(w.size):", "    out[i] = w[i] - 0.1 * g[i]", inputs="w, g"),
            "Leave the loop",
        ),
    ],
    "relu": [
        (
            kernel(
                "relu", IN_BLOCK, "for k in range(len(a)):", "    if i == 0:", "        out[k] = max(0, a[k])"
            ),
            "does the work of others",
        ),
        (kernel("relu", GRID, "out[i] = a[i] if a[i] > 0 else 0"), "more threads than numbers"),
        (
            kernel("relu", IN_BLOCK, "if i > a.size:", "    return", "out[i] = max(a[i], 0)"),
            "One thread too many",
        ),
        (kernel("relu", IN_BLOCK, "x = a[i]", "if i < len(a):", "    out[i] = max(x, 0)"), "read is not"),
        (
            kernel("relu", IN_BLOCK, "if a[i] > 0:", "    if i < a.size:", "        out[i] = a[i]"),
            "before you know that there is one",
        ),
        (kernel("relu", IN_BLOCK, "if i < 5 and a[i] > 0:", "    out[i] = a[i]"), "size of the first case"),
        (
            kernel("relu", IN_BLOCK, "if i < a.size:", "    a[i] = max(a[i], 0)", "    out[i] = a[i]"),
            "change an input",
        ),
    ],
    "negative": [
        (
            kernel("negative", X_Y, "if y < len(a) and x < a.shape[1]:", "    out[y, x] = 0 - a[y, x]"),
            "Below black there is nothing",
        ),
        (
            kernel(
                "negative",
                "i, j = cuda.grid(2)",
                "if i < len(a) and j < a.shape[1]:",
                "    out[i, j] = 1 - a[i, j]",
            ),
            "threads are turned round",
        ),
        (kernel("negative", "x, y = cuda.grid(2)", "out[y, x] = 1 - a[y, x]"), "in both directions"),
        (
            kernel(
                "negative",
                X_Y,
                "if x < a.shape[0]:",
                "    if y < a.shape[1]:",
                "        out[y, x] = 1 - a[y, x]",
            ),
            "Rows first",
        ),
        (
            kernel("negative", X_Y, "if x >= a.shape[1]:", "    return", "out[y, x] = 1 - a[y, x]"),
            "rows have no guard",
        ),
        (
            kernel("negative", X_Y, "if max(x, y) < a.size:", "    out[y, x] = 1 - a[y, x]"),
            "counts all pixels",
        ),
    ],
    "add_bias": [
        (
            kernel(
                "add_bias",
                X_Y,
                "if y < len(a) and x < a.shape[1]:",
                "    out[y, x] = bias[y] + a[y, x]",
                inputs="a, bias",
            ),
            "chose the bias by the row",
        ),
        (
            kernel(
                "add_bias",
                X_Y,
                "if y < len(a) and x < bias.size:",
                "    out[y, x] = a[y, x] + bias[0, x]",
                inputs="a, bias",
            ),
            "one axis",
        ),
        (
            kernel(
                "add_bias", X_Y, "if x < bias.size:", "    out[y, x] = a[y, x] + bias[x]", inputs="a, bias"
            ),
            "rows have no",
        ),
        (
            kernel(
                "add_bias",
                "y = cuda.threadIdx.y",
                "if y < len(a):",
                "    for x in range(bias.size):",
                "        out[y, x] = a[y, x] + bias[x]",
                inputs="a, bias",
            ),
            "whole row",
        ),
    ],
    "brighter": [
        (
            kernel(
                "brighter",
                GRID,
                "while i < len(a) and cuda.threadIdx.x == 0:",
                "    out[i] = min(1, 0.25 + a[i])",
                "    i += 1",
                "    if i % cuda.blockDim.x == 0:",
                "        return",
            ),
            "does the work of others",
        ),
        (
            kernel("brighter", IN_BLOCK, "if i < len(a):", "    out[i] = min(1, 0.25 + a[i])"),
            "begin again at 0",
        ),
        (
            kernel(
                "brighter",
                "i = cuda.threadIdx.x + cuda.blockIdx.x",
                "if i < len(a):",
                "    out[i] = min(1, 0.25 + a[i])",
            ),
            "Thread 1 of block 0 and thread 0",
        ),
        (
            kernel(
                "brighter",
                "i = 4 * cuda.blockIdx.x + cuda.threadIdx.x",
                "if i < len(a):",
                "    out[i] = min(1, 0.25 + a[i])",
            ),
            "Not every launch",
        ),
        (kernel("brighter", GRID, "out[i] = min(1, 0.25 + a[i])"), "without a number"),
        (kernel("brighter", GRID, "if i < 10:", "    out[i] = a[i] + 1 / 4"), "nothing is brighter than 1"),
        (kernel("brighter", GRID, "if i < len(a):", "    out[i] = max(1, a[i] + 1 / 4)"), "at least 1"),
    ],
    "shares": [
        (kernel("shares", CACHE.format(4), T_I, "cache[t] = a[i]", QUARTER, WAIT), "Who is first"),
        (kernel("shares", CACHE.format(4), T_I, "cache[i] = a[i]", WAIT, QUARTER), "room for one block"),
        (
            kernel(
                "shares",
                T_I,
                "total = 0",
                "for k in range(i - t, i - t + 4):",
                "    total += a[k]",
                "out[i] = a[i] / total",
            ),
            "fetches all four",
        ),
        (
            kernel(
                "shares",
                CACHE.format(4),
                T_I,
                "cache[t] = a[i]",
                WAIT,
                "total = 0",
                "for k in range(4):",
                "    total += cache[k]",
                "out[i] = a[i] / total",
            ),
            "spare a read",
        ),
        (
            kernel(
                "shares",
                CACHE.format(4),
                T_I,
                "if t == 0:",
                "    for k in range(4):",
                "        cache[k] = a[i + k]",
                f"    {WAIT}",
                QUARTER,
            ),
            "Only thread 0",
        ),
        (
            kernel(
                "shares", CACHE.format(4), T_I, "cache[t] = a[i]", WAIT, QUARTER.replace("out[i]", "out[t]")
            ),
            "whole grid",
        ),
        (kernel("shares", CACHE.format(4), T_I, WAIT, "cache[t] = a[i]", QUARTER), "comes too early"),
        (kernel("shares", "cache = np.zeros(4)", T_I, "cache[t] = a[i]", WAIT, QUARTER), "cache of its own"),
    ],
    "block_sum": [
        *(
            (
                kernel(
                    "block_sum",
                    CACHE.format(8),
                    T_I,
                    *LOAD_EIGHT,
                    WAIT,
                    *lines,
                    f"    {WAIT}",
                    "    step //= 2",
                    WRITE_ONE[0],
                    write,
                ),
                hint,
            )
            for lines, write, hint in (
                ([*HALVE[:2], "    if i < step:", HALVE[3]], WRITE_ONE[1], "in block 0 only"),
                (HALVE, "    out[i] = cache[0]", "the number of the block"),
                ([*HALVE[:3], "        cache[t] = cache[t + step]"], WRITE_ONE[1], "own number is lost"),
                ([*HALVE[:2], "    if t <= step:", HALVE[3]], WRITE_ONE[1], "Too many threads add"),
            )
        ),
        (
            kernel(
                "block_sum", CACHE.format(8), T_I, *LOAD_EIGHT, WAIT, *HALVE, "    step //= 2", *WRITE_ONE
            ),
            "A round begins",
        ),
        (
            kernel(
                "block_sum",
                CACHE.format(8),
                T_I,
                *LOAD_EIGHT,
                *HALVE,
                f"    {WAIT}",
                "    step //= 2",
                *WRITE_ONE,
            ),
            "Before the loop",
        ),
        (
            kernel(
                "block_sum",
                CACHE.format(8),
                T_I,
                *LOAD_EIGHT,
                WAIT,
                *HALVE,
                f"        {WAIT}",
                "    step //= 2",
                *WRITE_ONE,
            ),
            "must not stand in the `if`",
        ),
        (
            kernel(
                "block_sum",
                CACHE.format(8),
                T_I,
                *LOAD_EIGHT,
                WAIT,
                "if t == 0:",
                "    for k in range(1, 8):",
                "        cache[0] += cache[k]",
                "    out[cuda.blockIdx.x] = cache[0]",
            ),
            "thread 0 adds all eight",
        ),
        (
            kernel(
                "block_sum",
                CACHE.format(8),
                T_I,
                "cache[t] = a[i]",
                WAIT,
                *HALVE,
                f"    {WAIT}",
                "    step //= 2",
                *WRITE_ONE,
            ),
            "puts a 0 there",
        ),
        (
            kernel(
                "block_sum",
                CACHE.format(8),
                T_I,
                *LOAD_EIGHT,
                WAIT,
                *HALVE,
                f"    {WAIT}",
                "    step //= 2",
                "out[cuda.blockIdx.x] = cache[0]",
            ),
            "One is enough",
        ),
        (
            kernel("block_sum", GRID, "if i < a.size:", "    cuda.atomic.add(out, cuda.blockIdx.x, a[i])"),
            "queue up",
        ),
        (
            kernel(
                "block_sum",
                CACHE.format(8),
                T_I,
                *LOAD_EIGHT[1:],
                WAIT,
                *HALVE,
                f"    {WAIT}",
                "    step //= 2",
                *WRITE_ONE,
            ),
            "Let them put a 0",
        ),
        (
            kernel(
                "block_sum",
                CACHE.format(8),
                T_I,
                *LOAD_EIGHT,
                WAIT,
                *HALVE,
                f"    {WAIT}",
                "    step //= 2",
                WRITE_ONE[0].replace("t ", "i "),
                WRITE_ONE[1],
            ),
            "Only block 0",
        ),
        (
            kernel(
                "block_sum",
                "if cuda.threadIdx.x == 0:",
                "    first, total = 8 * cuda.blockIdx.x, 0",
                "    for i in range(first, min(first + 8, a.size)):",
                "        total += a[i]",
                "    out[cuda.blockIdx.x] = total",
            ),
            "while seven wait",
        ),
        (
            kernel("block_sum", "b = cuda.blockIdx.x", GRID, "if i < len(a):", "    out[b] = out[b] + a[i]"),
            "overwrite each other",
        ),
    ],
    "sliding_sum": [
        (
            kernel(
                "sliding_sum",
                CACHE.format(6),
                T_I,
                *LOAD_SIX,
                "if i + 2 < len(a):",
                "    cache[t + 2] = a[i + 2]",
                WAIT,
                *SLIDE,
            ),
            "fetch a second number, two places further on",
        ),
        (
            kernel("sliding_sum", CACHE.format(4), T_I, *LOAD_SIX, WAIT, *SLIDE),
            "The cache is too small",
        ),
        (
            kernel(
                "sliding_sum",
                GRID,
                "if i < out.size:",
                "    total = 0",
                "    for k in range(3):",
                "        total += a[i + k]",
                "    out[i] = total",
            ),
            "fetches three numbers",
        ),
        (kernel("sliding_sum", CACHE.format(6), T_I, *LOAD_SIX, WAIT, *SLIDE), "belong to nobody"),
        (kernel("sliding_sum", CACHE.format(6), T_I, *LOAD_SIX, *REST, *SLIDE), "wait for them"),
        (
            kernel(
                "sliding_sum",
                CACHE.format(6),
                T_I,
                *LOAD_SIX,
                "if t >= 2:",
                "    cache[t + 2] = a[i + 2]",
                WAIT,
                *SLIDE,
            ),
            "needs a guard of its own",
        ),
        (
            kernel("sliding_sum", CACHE.format(6), T_I, *LOAD_SIX, *REST, WAIT, SLIDE[1].strip()),
            "shorter than `a` by two",
        ),
        (
            kernel("sliding_sum", CACHE.format(6), T_I, "if i < out.size:", LOAD_SIX[1], *REST, WAIT, *SLIDE),
            "too narrow a guard",
        ),
        (
            kernel(
                "sliding_sum",
                CACHE.format(6),
                T_I,
                *LOAD_SIX,
                "if i < 2:",
                "    cache[t + 4] = a[i + 4]",
                WAIT,
                *SLIDE,
            ),
            "in block 0 only",
        ),
        (
            kernel(
                "sliding_sum",
                CACHE.format(6),
                T_I,
                *LOAD_SIX,
                *REST[:2],
                "        cache[4 + t] = a[4 + t]",
                WAIT,
                *SLIDE,
            ),
            "Count in the grid",
        ),
        (
            kernel(
                "sliding_sum",
                CACHE.format(6),
                T_I,
                "if i >= len(a):",
                "    return",
                "cache[t] = a[i]",
                *REST,
                WAIT,
                *SLIDE,
            ),
            "must still come to the barrier",
        ),
    ],
    "tiled_product": [
        (tiles_with("a_tile[y, x] = a[row, k + x]", "b_tile[y, x] = b[k + x, column]"), "`a` is right"),
        (tiles_with("a_tile[y, x] = a[row, k + y]", "b_tile[y, x] = b[k + y, column]"), "`b` is right"),
        (tiles_with(add=["total += a_tile[row, k + j] * b_tile[k + j, column]"]), "only `tile` rows"),
        (tiles(STEPS, *LOAD_TILES, f"    {WAIT}", *MULTIPLY, "out[row, column] = total"), "second barrier"),
        (tiles(STEPS, *LOAD_TILES, *MULTIPLY, f"    {WAIT}", "out[row, column] = total"), "multiply before"),
        (
            tiles(
                "for k in range(a.shape[1]):",
                "    total += a[row, k] * b[k, column]",
                "out[row, column] = total",
            ),
            "its row and its column from global",
        ),
        (
            tiles(
                STEPS,
                "    a_tile[y, x] = a[y, k + x]",
                "    b_tile[y, x] = b[k + y, x]",
                f"    {WAIT}",
                *MULTIPLY,
                f"    {WAIT}",
                "out[row, column] = total",
            ),
            "from the first rows",
        ),
        (
            tiles(
                STEPS,
                *LOAD_TILES,
                f"    {WAIT}",
                "    for j in range(tile):",
                "        out[row, column] = out[row, column] + a_tile[y, j] * b_tile[j, x]",
                f"    {WAIT}",
            ),
            "add up in `out`",
        ),
        (tiles_with("a_tile[y, x] = a[row, k]", "b_tile[y, x] = b[k, column]"), "number of its own"),
        (tiles_with("a_tile[y, x] = a[row, k + y]", "b_tile[y, x] = b[k + x, column]"), "y counts down"),
        (
            tiles_with("a_tile[y, x] = a[row, tile * k + x]", "b_tile[y, x] = b[tile * k + y, column]"),
            "already counts numbers",
        ),
        (tiles_with("a_tile[y, x], b_tile[y, x] = a[row, column], b[row, column]"), "loads the same tiles"),
        (
            tiles_with("a_tile[row, column], b_tile[row, column] = a[row, k + x], b[k + y, column]"),
            "only `tile` rows",
        ),
        (tiles_with(add=["total += a_tile[row, j] * b_tile[j, column]"]), "only `tile` rows"),
        (tiles_with(add=["total += a_tile[j, y] * b_tile[x, j]"]), "go down `a_tile`"),
        (tiles_with(add=["total += a_tile[y, x] * b_tile[y, x] / tile"]), "a whole row of `a_tile`"),
        (
            tiles_with(add=["total += a_tile[y, j] * b_tile[j, x]", "out[row, column] = total"]),
            "after the last",
        ),
        (tiles_with(before=["total = 0"]), "what the last step adds"),
        (tiles_with(write="out[column, row] = total"), "on its side"),
        (tiles_with(write="out[y, x] = total"), "first tile of `out`"),
    ],
}
