"""Lecture 12: what its prose claims, and what proves it."""

from __future__ import annotations

import numba

ALONE = numba.config.NUMBA_NUM_THREADS == 1
RACE = (
    "(This machine gives Numba one thread only, so here you will not see it go wrong.)\n"
    "all threads: was there ever another sum? False\n"
    if ALONE
    else "all threads: was there ever another sum? True\n"
)
SHARED = (
    "Numba: Variable last used in parallel loop may be written to simultaneously by multiple workers and may "
    "result in non-deterministic or unintended results.\n"
)
PER_VOTE = "def per_vote(votes, counts):\n    for i in prange(votes.size):\n        counts[votes[i]] += 1\n"

SHOWN = [
    ("two-steps", "a wrong sum, and nobody tells you", "hook-code", "one thread: 1000000.0\n" + RACE),
    ("exercise-races", "Four of six orders lose a number", "orders-code",
     "AABB 7\nABAB 4\nABBA 3\nBAAB 4\nBABA 3\nBBAA 7\n"),
    ("reductions", "the first column is `total[0]`, and every iteration writes there", "finder-code",
     "(0, 'read', 'total[0]') (0, 'read', 'x[0]') (0, 'write', 'total[0]') …\nraces: ['total[0]'] []\n"
     "<PictureFigure size 370x240 with 2 Axes>"),
    ("largest", "Numba recognises `total += …` on a plain variable", "total-code",
     "1000000.0 and never another sum: True\nraces: []\n"),
    ("read-after", "Numba said nothing", "largest-code", "(0.0, 999.0)"),
    ("exercise-count", "all of them write into the one `last`", "read-after-code", SHARED),
    ("count-solution", "no two iterations ever meet", "election",
     "[249579 250003 249974 250444] the same as NumPy's count: True\n"),
    ("helpers", "with three votes and three helpers", "tally-code",
     "[[0 0 1]\n [1 0 0]\n [0 0 1]]\nraces: []\n"),
    ("helpers", "the rows are added up at the end", "tally-use", "8 helpers, the same count: True\n"),
    ("loop-index", "All threads write their index into the same buffer", "buffer-code",
     "races: ['index[0]', 'index[1]']\n"),
    ("exercise-negate", "Numba refuses", "loop-index-code",
     "digits of 0 to 12, added up in plain Python: 51\nby Numba: Overwrite of parallel loop index\n"),
    ("exercise-negate", "it hides from the compiler that neighbours lie side by side", "negate-code",
     "as NumPy: True True\nthe fast path is more than twice as fast: True\n"),
    ("hoisted", "the allocation of the buffer is *hoisted* out of the loop", "sum-rows-code",
     "True True\nbuffers that each thread makes once: 1\n"),
    ("order-of-loops", "and the result is the same", "ladder-code", "the same product: True\n"),
    ("why-rows", "A line that is fetched is used to its end", "ladder-drag", "<ladder, with ways to drag>"),
    ("exercise-fused", "Each pass moves eight million bytes", "passes-code", "{'reads': 10, 'writes': 5}"),
    ("verify", "finds the slopes itself", "verify-code", "as backward(): True\nraces: []\n"),
    ("pay-off", "NumPy against your kernel", "pay-off-code",
     "ahead of NumPy: True\n<side_by_side, with ways to drag>"),
    ("train", "around the line y = 2x − 1", "train-code", "w = 2.00, b = -1.00, loss = 0.010\n"),
]  # fmt: skip

CPU = "__import__('needle.backend_ndarray.ndarray_backend_numba_cpu', fromlist=['x'])"
OTHERS = (
    "import numpy as np\nfrom numba import njit, prange\n@njit(parallel=True)\ndef f(x):\n"
    "    a, b, c = 0.0, 1.0, 9.0\n    for i in prange(x.size):\n        a -= x[i]\n        b *= x[i]\n"
    "        c = min(c, x[i])\n    return a, b, c\n"
)

TRUE = [
    ("hook", "adds up a million ones", "ones.size == 1_000_000 and ones.sum() == 1e6"),
    ("hook", "each on a processor of its own",
     "__import__('numba').get_num_threads() <= __import__('os').cpu_count()"),
    ("two-steps", "it is two: *read* the total",
     "[what for _, what, _ in summing[:3:2]] == ['read', 'write']"),
    ("exercise-races", "everything happens in order", "find([summing[0], summing[2]]) == []"),
    ("exercise-races", "Reading alone is harmless", "find([(0, 'read', 'x[0]'), (1, 'read', 'x[0]')]) == []"),
    ("reductions", "every iteration writes there", "(lab.touched(summing)[:, 0] == 2).all()"),
    ("reductions", "each iteration has places of its own",
     "((lab.touched(doubling) > 0).sum(axis=0) == 1).all()"),
    ("largest", "It also recognises `-=`, `*=`, `max` and `min`",
     f"exec({OTHERS!r}, names := {{}}) or names['f'](np.arange(1.0, 5.0)) == (-10, 24, 1)"),
    ("largest", "with floating-point numbers, only for the last digits",
     "0 < abs(sum(x.tolist()) - sum(x[::-1].tolist())) < 1e-9 * abs(x).sum()"),
    ("read-after", "Numba said nothing", "lab.run(njit(parallel=True)(largest.py_func),"
     " np.arange(1000.0))[1] == []"),
    ("exercise-count", "a race on two", f"exec({PER_VOTE!r}, names := {{'prange': prange}}) or "
     "find(lab.notes_of(names['per_vote'], np.array([1, 0, 1]), np.zeros(2))) == ['counts[1]']"),
    ("count-solution", "`add_rows`", f"'share' in {CPU}.__doc__ and hasattr({CPU}, 'add_rows')"),
    ("tally-solution", "iterations 0 and 3 both write into row 0",
     "find(lab.notes_of(faulty_tally, np.array([2, 0, 2, 2]), 3, 3)) == ['rows[0, 2]']"),
    ("buffers", "element number 3 has the index (1, 1), so it lies at place 1 · 1 + 1 · 3 = 4",
     "[to_index(3, turned[0], k := np.empty(2, int)) or k.tolist(), place_of(k, turned[1])] == [[1, 1], 4]"
     " and np.arange(6).reshape(2, 3).T[1, 1] == 4"),
    ("loop-index", "One writes (2, 0), another (0, 1)",
     "[to_index(i, turned[0], k := np.empty(2, int)) or k.tolist() for i in (4, 1)] == [[2, 0], [0, 1]]"),
    ("loop-index", "In plain Python you may do that",
     "exec('halves = []\\nfor i in range(4):\\n    i //= 2\\n    halves.append(i)', names := {})"
     " or names['halves'] == [0, 0, 1, 1]"),
    ("exercise-negate", "makes a *float* of an unsigned and a signed number",
     "np.result_type(np.uint64, np.int64) == np.float64"),
    ("exercise-negate", "element `i` simply lies at place `i`",
     "[is_compact(*view) for view in (compact, transposed)] == [True, False]"),
    ("negate-solution", "`map_aligned` and `map_strided`", f"{CPU}.map_aligned is not {CPU}.map_strided"),
    ("order-of-loops", "it uses vectors", "kernel.lanes > 1"),
    ("order-of-loops", "one number at a time, in the order that you wrote",
     "ndl.diagnose(njit(total_of), (1000,), dtype='float64').kernels[0].lanes == 1"),
    ("order-of-loops", "does the same for its reductions",
     f"'reorder=True' in __import__('inspect').getsource({CPU}.reduce)"),
    ("order-of-loops", "64 bytes: eight numbers", "a.itemsize * 8 == 64"),
    ("order-of-loops", "The scale on the right counts the steps, from 0 on",
     "[lab.order_of_reading(walk, 16)[place] for walk, place in ((naive, (1, 0)), (in_rows, (0, 1)))]"
     " == [1, 1] and right.images[0].colorbar.vmin == 0"),
    ("order-of-loops", "If you go down a column, each number is on another line",
     "len({16 * k // 8 for k in range(16)}) == 16"),
    ("why-rows", "The rows are far ahead of `naive`", "speed['rows'] > 2"),
    ("why-rows", "only for small ones its own `multiply`, which goes by rows",
     f"{CPU}.SMALL > 0 and 'sum of rows' in {CPU}.multiply.__doc__"),
    ("why-rows", "`copy_tiles`", f"'TILE' in {CPU}.copy_tiles.__code__.co_names"),
    ("exercise-product", "its lines are used while they are still at hand",
     "[lab.record(kernel, np.ones((6, 16)), np.ones((16, 16)), np.zeros((6, 16)), *t).lines_loaded()"
     " for kernel, t in ((tiles, (8,)), (naive, ()))] == [80, 1572]"),
    ("fusion", "with tiles of 256 you are back at `naive`",
     "(lab.order_of_reading(tiles, 16, 16) == lab.order_of_reading(naive, 16)).all()"),
    ("exercise-fused", "moves eight million bytes", "x.nbytes == y.nbytes == 8_000_000"),
    ("train", "60 steps of learning, each over all million points", "x.size == 1_000_000"),
]  # fmt: skip
