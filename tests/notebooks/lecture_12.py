"""Lecture 12: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

import numba

ALONE = numba.config.NUMBA_NUM_THREADS == 1
RACE = (
    "(This machine gives Numba one thread only, so here you will not see it go wrong.)\n"
    "all threads: was there ever another sum? False\n"
    if ALONE
    else "all threads: was there ever another sum? True\n"
)

FROM = "from numba import njit, prange\nfrom lectures.lecture_12 import is_compact, place_of, to_index\n"
COUNT = FROM + "def count(votes, parties):\n    counts = np.zeros(parties, np.int64)\n"
NEGATE = FROM + "def negate(a, shape, strides, out):\n"
FAST = (
    "    if is_compact(shape, strides):\n        for i in prange(out.size):\n            out[i] = -a[i]\n"
    "        return\n"
)
ROWS = FROM + "def by_rows(a, b, out):\n    (m, n), p = a.shape, b.shape[1]\n"
TILES = FROM + "def by_tiles(a, b, out, t):\n    (m, n), p = a.shape, b.shape[1]\n"
FUSED = FROM + "def loss_and_slopes(x, y, w, b):\n    n, loss, by_w, by_b = len(x), 0.0, 0.0, 0.0\n"

SHOWN = [
    ("two-steps", "no error, no warning, and a wrong sum", "hook-code", "one thread: 1000000.0\n" + RACE),
    (
        "exercise-races",
        "Four of six orders lose a number",
        "orders-code",
        "AABB 7\nABAB 4\nABBA 3\nBAAB 4\nBABA 3\nBBAA 7\n",
    ),
    (
        "reductions",
        "the first column is `total[0]`, and every iteration writes there",
        "finder-code",
        "(0, 'read', 'total[0]') (0, 'read', 'x[0]') (0, 'write', 'total[0]') …\nraces: ['total[0]'] []\n"
        "<PictureFigure size 520x320 with 2 Axes>",
    ),
    (
        "largest",
        "Numba recognises `total += …` on a plain variable",
        "total-code",
        "1000000.0 and never another sum: True\nraces: []\n",
    ),
    ("exercise-count", "private to its iteration", "largest-code", "(0.0, 999.0)"),
    (
        "count-solution",
        "it needs no luck",
        "election",
        "[249579 250003 249974 250444] the same as NumPy's count: True\n",
    ),
    (
        "loop-index",
        "All threads write their index into the same buffer",
        "buffer-code",
        "races: ['index[0]', 'index[1]']\n",
    ),
    (
        "exercise-negate",
        "Numba refuses",
        "loop-index-code",
        "digits of 0 to 12, added up in plain Python: 51\nby Numba: Overwrite of parallel loop index\n",
    ),
    (
        "exercise-negate",
        "the compiler sees jumps where there are neighbours",
        "negate-code",
        "as NumPy: True True\nthe fast path is more than twice as fast: True\n",
    ),
    ("order-of-loops", "and the result is the same", "ladder-code", "the same product: True\n"),
    (
        "why-rows",
        "no line is fetched for a single number",
        "ladder-drag",
        "<ladder, with ways to drag>",
    ),
    ("exercise-fused", "Each pass moves eight million bytes", "passes-code", "{'reads': 10, 'writes': 5}"),
    ("verify", "finds the slopes itself", "verify-code", "as backward(): True\nraces: []\n"),
    (
        "pay-off",
        "NumPy against your kernel",
        "pay-off-code",
        "ahead of NumPy: True\n<side_by_side, with ways to drag>",
    ),
    ("train", "around the line y = 2x − 1", "train-code", "w = 2.00, b = -1.00, loss = 0.010\n"),
]

CPU = "__import__('needle.backend_ndarray.ndarray_backend_numba_cpu', fromlist=['x'])"
OTHERS = (
    "import numpy as np\nfrom numba import njit, prange\n@njit(parallel=True)\ndef f(x):\n"
    "    a, b, c = 0.0, 1.0, 9.0\n    for i in prange(x.size):\n        a -= x[i]\n        b *= x[i]\n"
    "        c = min(c, x[i])\n    return a, b, c\n"
)

TRUE = [
    ("hook", "adds up a million ones", "ones.size == 1_000_000 and ones.sum() == 1e6"),
    (
        "hook",
        "each on a processor of its own",
        "__import__('numba').get_num_threads() <= __import__('os').cpu_count()",
    ),
    (
        "two-steps",
        "it is two: *read* the total",
        "[what for _, what, _ in summing[:3:2]] == ['read', 'write']",
    ),
    ("exercise-races", "everything happens in order", "find([summing[0], summing[2]]) == []"),
    ("exercise-races", "Reading alone is harmless", "find([(0, 'read', 'x[0]'), (1, 'read', 'x[0]')]) == []"),
    ("reductions", "every iteration writes there", "(lab.touched(summing)[:, 0] == 2).all()"),
    (
        "reductions",
        "each iteration has places of its own",
        "((lab.touched(doubling) > 0).sum(axis=0) == 1).all()",
    ),
    (
        "largest",
        "It also recognises `-=`, `*=`, `max` and `min`",
        f"exec({OTHERS!r}, names := {{}}) or names['f'](np.arange(1.0, 5.0)) == (-10, 24, 1)",
    ),
    (
        "exercise-count",
        "a race on two",
        "find(lab.notes_of(lab.an_iteration_per_vote, np.array([1, 0, 1]), 2)) == ['counts[1]']",
    ),
    ("count-solution", "`add_rows`", f"'share' in {CPU}.__doc__ and hasattr({CPU}, 'add_rows')"),
    (
        "buffers",
        "element number 3 has the index (1, 1), so it lies at place 1 · 1 + 1 · 3 = 4",
        "[to_index(3, turned[0], k := np.empty(2, int)) or k.tolist(), place_of(k, turned[1])] == [[1, 1], 4]"
        " and np.arange(6).reshape(2, 3).T[1, 1] == 4",
    ),
    (
        "loop-index",
        "One writes (2, 0), another (0, 1)",
        "[to_index(i, turned[0], k := np.empty(2, int)) or k.tolist() for i in (4, 1)] == [[2, 0], [0, 1]]",
    ),
    (
        "loop-index",
        "In plain Python you may do that",
        "exec('halves = []\\nfor i in range(4):\\n    i //= 2\\n    halves.append(i)', names := {})"
        " or names['halves'] == [0, 0, 1, 1]",
    ),
    (
        "exercise-negate",
        "makes a *float* of an unsigned and a signed number",
        "np.result_type(np.uint64, np.int64) == np.float64",
    ),
    (
        "exercise-negate",
        "element `i` simply lies at place `i`",
        "[is_compact(*view) for view in (compact, transposed)] == [True, False]",
    ),
    ("negate-solution", "`map_aligned` and `map_strided`", f"{CPU}.map_aligned is not {CPU}.map_strided"),
    ("order-of-loops", "it uses vectors", "kernel.lanes > 1"),
    (
        "order-of-loops",
        "one number at a time, in the order that you wrote",
        "ndl.diagnose(njit(total_of), (1000,), dtype='float64').kernels[0].lanes == 1",
    ),
    (
        "order-of-loops",
        "does the same for its reductions",
        f"'reorder=True' in __import__('inspect').getsource({CPU}.reduce)",
    ),
    (
        "largest",
        "with floating-point numbers, only for the last digits",
        "0 < abs(sum(x.tolist()) - sum(x[::-1].tolist())) < 1e-9 * abs(x).sum()",
    ),
    ("order-of-loops", "64 bytes: eight numbers", "a.itemsize * 8 == 64"),
    (
        "order-of-loops",
        "The scale beside it counts the steps, from 0 on",
        "[lab.order_of_reading(walk, 16)[place] for walk, place in ((naive, (1, 0)), (in_rows, (0, 1)))]"
        " == [1, 1] and left.images[0].colorbar.vmin == 0",
    ),
    (
        "order-of-loops",
        "If you go down a column, each number is on another line",
        "lab.lines_loaded((('b', 16 * k) for k in range(16)), 99) == 16",
    ),
    ("why-rows", "The rows are ahead of `naive` by far", "speed['rows'] > 2"),
    (
        "why-rows",
        "only for small ones its own `multiply`, which goes by rows",
        f"{CPU}.SMALL > 0 and 'sum of rows' in {CPU}.multiply.__doc__",
    ),
    ("why-rows", "`copy_tiles`", f"'TILE' in {CPU}.copy_tiles.__code__.co_names"),
    (
        "exercise-product",
        "its lines are used up while they are at hand",
        "[lab.record(kernel, np.ones((6, 16)), np.ones((16, 16)), np.zeros((6, 16)), *t).lines_loaded()"
        " for kernel, t in ((tiles, (8,)), (naive, ()))] == [80, 1572]",
    ),
    (
        "fusion",
        "with tiles of 256 you are back at `naive`",
        "(lab.order_of_reading(tiles, 16, 16) == lab.order_of_reading(naive, 16)).all()",
    ),
    ("exercise-fused", "moves eight million bytes", "x.nbytes == y.nbytes == 8_000_000"),
    ("train", "60 steps of learning, each over all million points", "x.size == 1_000_000"),
]

NEAR_MISSES = {
    "races": [
        (
            "def races(notes):\n    by_place = {}\n    for i, what, place in notes:\n"
            "        by_place.setdefault(place, set()).add(i)\n"
            "    return [place for place, who in by_place.items() if len(who) > 1]",
            "It takes a write",
        ),
        (
            "def races(notes):\n    owner, found = {}, set()\n    for i, what, place in notes:\n"
            "        if what == 'write' and owner.setdefault(place, i) != i:\n            found.add(place)\n"
            "    return list(found)",
            "You look for two that write",
        ),
        (
            "from collections import Counter\ndef races(notes):\n"
            "    seen = Counter(place for _, _, place in notes)\n"
            "    return list({p for _, what, p in notes if what == 'write' and seen[p] > 1})",
            "count iterations, not notes",
        ),
        (
            "def races(notes):\n    found = []\n    before = (None, None, None)\n"
            "    for i, what, place in notes:\n"
            "        if place == before[2] and i != before[0] and 'write' in (what, before[1]):\n"
            "            found.append(place)\n        before = (i, what, place)\n    return list(set(found))",
            "compare a note with the next one only",
        ),
        (
            "def races(notes):\n    readers, found = {}, set()\n    for i, what, place in notes:\n"
            "        if what == 'read':\n            readers.setdefault(place, set()).add(i)\n"
            "        elif readers.get(place, set()) - {i}:\n            found.add(place)\n"
            "    return list(found)",
            "a read that comes before a write",
        ),
        (
            "def races(notes):\n    return list({place for _, what, place in notes if what == 'write'})",
            "places that are written",
        ),
        (
            "def races(notes):\n    found = []\n    for i, what, place in notes:\n"
            "        if any(j != i and p == place and 'write' in (what, w) for j, w, p in notes):\n"
            "            found.append(place)\n    return found",
            "once, however often",
        ),
        (
            "def races(notes):\n    found = []\n    for i, a, p in notes:\n        for j, b, q in notes:\n"
            "            if p == q and i < j and 'write' in (a, b):\n                found.append(p)\n"
            "    return found",
            "once, however often",
        ),
        (
            "def races(notes):\n    writes = {(i, p) for i, what, p in notes if what == 'write'}\n"
            "    reads = {(i, p) for i, what, p in notes if what == 'read'}\n"
            "    return list({p for i, p in writes for j, q in reads if p == q and i != j})",
            "even if nobody reads",
        ),
        (
            "def races(notes):\n    for i, a, p in notes:\n"
            "        if any(i != j and p == q and 'write' in (a, b) for j, b, q in notes):\n"
            "            return [p]\n    return []",
            "Does your `return` stand inside the loop",
        ),
        (
            "def races(notes):\n    who, written = {}, set()\n    for i, what, place in notes:\n"
            "        array = place.split('[')[0]\n        who.setdefault(array, set()).add(i)\n"
            "        if what == 'write':\n            written.add(array)\n"
            "    return [array for array in who if len(who[array]) > 1 and array in written]",
            "with its index",
        ),
        ("def races(notes):\n    return 'total[0]'", "Return a list"),
    ],
    "count": [
        (
            COUNT + "    for i in prange(len(votes)):\n        party = votes[i]\n"
            "        counts[party] = counts[party] + 1\n    return counts",
            "let an iteration own a *party*",
        ),
        (
            COUNT + "    for i in prange(len(votes)):\n        for p in range(parties):\n"
            "            if votes[i] == p:\n                counts[p] += 1\n    return counts",
            "let an iteration own a *party*",
        ),
        (
            COUNT + "    for p in range(parties):\n        for vote in votes:\n"
            "            counts[p] += vote == p\n    return counts",
            "Right, but on one thread",
        ),
        ("def count(votes, parties):\n    return np.bincount(votes, minlength=parties)", "on one thread"),
        (
            COUNT + "    for p in prange(parties):\n        for vote in votes:\n"
            "            counts[p] = vote == p or counts[p]\n    return counts",
            "at most one vote",
        ),
        (
            COUNT + "    for _ in prange(1):\n        for vote in votes:\n            counts[vote] += 1\n"
            "    return counts",
            "nothing to share",
        ),
        (
            COUNT + "    for p in prange(parties):\n        pass\n"
            "    return np.bincount(votes, minlength=parties)",
            "nothing to share",
        ),
        (
            COUNT + "    n = 0\n    for p in prange(parties):\n        n += (votes == p).sum()\n"
            "        counts[p] = n\n    return counts",
            "goes on from party to party",
        ),
        (
            COUNT + "    for p in prange(parties):\n        counts[p] = sum(1 for v in votes if v == p)\n"
            "    return counts",
            "what Numba cannot compile",
        ),
        (
            COUNT + "    for p in prange(parties):\n        counts[p] = votes.size\n    return counts",
            "Every party gets every vote",
        ),
        (
            COUNT + "    for p in prange(parties):\n"
            "        counts[p] = np.bincount(votes, minlength=parties)[p]\n    return counts",
            "Count them yourself",
        ),
        (
            COUNT + "    for i in prange(votes.size):\n        mine = np.zeros(parties, np.int64)\n"
            "        mine[votes[i]] += 1\n        counts += mine\n    return counts",
            "Numba does know `counts += …`",
        ),
        (
            COUNT + "    for p in prange(len(votes)):\n        for vote in votes:\n"
            "            if vote == p:\n                counts[p] += 1\n    return counts",
            "It should be `prange(parties)`",
        ),
        (
            COUNT + "    for p in prange(parties):\n        for vote in votes:\n"
            "            counts[p] += vote == p\n        return counts",
            "Does your `return` stand inside the loop",
        ),
        (
            COUNT + "    for p in prange(parties):\n        for vote in votes:\n"
            "            counts[p] += vote == p\n    votes[0] = 0\n    return counts",
            "Leave the arrays that you are given",
        ),
    ],
    "negate": [
        (
            NEGATE + FAST + "    place = np.zeros(len(shape), np.int64)\n    for i in prange(out.size):\n"
            "        to_index(i, shape, place)\n        out[i] = -a[place_of(place, strides)]",
            "*inside* the loop",
        ),
        (NEGATE + "    out = -a", "still full of zeros"),
        (
            NEGATE + FAST + "    for i in prange(out.size):\n        index = np.zeros(len(shape), np.int64)\n"
            "        to_index(i, strides, index)\n        out[i] = -a[place_of(index, shape)]",
            "have changed places",
        ),
        (
            NEGATE + FAST + "    for i in prange(out.size):\n        index = np.zeros(len(shape))\n"
            "        to_index(i, shape, index)\n        out[i] = -a[place_of(index, strides)]",
            "The buffer holds floats",
        ),
        (
            NEGATE + "    for k in prange(out.size):\n        out[k] = -a[k % a.size]",
            "You always take the fast",
        ),
        (
            NEGATE + "    for i in prange(out.size):\n        if is_compact(shape, strides):\n"
            "            out[i] = -a[i]\n        else:\n            where = np.zeros(len(shape), np.int64)\n"
            "            to_index(i, shape, where)\n            out[i] = -a[place_of(where, strides)]",
            "once, before the loop",
        ),
        (
            NEGATE + FAST + "    for i in prange(out.size):\n        place = 0\n"
            "        for axis in range(len(shape) - 1, -1, -1):\n"
            "            place += (i % shape[axis]) * strides[axis]\n            i = i // shape[axis]\n"
            "        out[i] = -a[place]",
            "`i` belongs to the loop",
        ),
        (
            NEGATE + FAST + "    for i in prange(out.size):\n        rest, place = i, 0\n"
            "        for axis in range(len(shape) - 1, -1, -1):\n"
            "            place += (rest % shape[axis]) * strides[axis]\n"
            "            rest = rest // shape[axis]\n"
            "        out[i] = -a[place]",
            "only by another name",
        ),
        (
            NEGATE + FAST.replace("prange", "range") + "    for i in range(out.size):\n"
            "        index = np.zeros(len(shape), np.int64)\n        to_index(i, shape, index)\n"
            "        out[i] = -a[place_of(index, strides)]",
            "Right, but on one thread",
        ),
        (
            NEGATE + FAST + "    for i in prange(out.size):\n        index = np.zeros(len(shape), np.int64)\n"
            "        place = place_of(to_index(i, shape, index), strides)\n        out[i] = -a[place]",
            "gives nothing back",
        ),
        (
            NEGATE + FAST + "    for i in prange(out.size):\n        where = to_index(i, shape)\n"
            "        out[i] = -a[place_of(where, strides)]",
            "gives nothing back",
        ),
        (
            NEGATE + FAST + "    for i in prange(out.size):\n        index = np.zeros(2, np.int64)\n"
            "        to_index(i, shape, index)\n        out[i] = -a[place_of(index, strides)]",
            "The buffer needs `len(shape)` places",
        ),
        (
            NEGATE + FAST + "    rows, columns = shape[0], shape[1]\n    for r in prange(rows):\n"
            "        for c in range(columns):\n"
            "            out[r * columns + c] = -a[r * strides[0] + c * strides[1]]",
            "right for two axes",
        ),
        (
            NEGATE + FAST.replace("out.size", "a.size") + "    for i in prange(len(a)):\n"
            "        index = np.zeros(len(shape), np.int64)\n        to_index(i, shape, index)\n"
            "        out[i] = -a[place_of(index, strides)]",
            "The view has `out.size` elements",
        ),
        (
            NEGATE + FAST + "    for i in prange(out.size):\n        index = np.zeros(len(shape), np.int64)\n"
            "        to_index(i, shape, index)\n        place = place_of(index, strides)\n"
            "        a[place] = -a[place]\n        out[i] = a[place]",
            "Leave the arrays that you are given",
        ),
    ],
    "by_rows": [
        (
            ROWS + "    for i in prange(m):\n        for j in range(p):\n            total = 0.0\n"
            "            for k in range(n):\n                total += a[i, k] * b[k, j]\n"
            "            out[i, j] = total",
            "still the order of `naive`",
        ),
        (
            ROWS + "    for j in prange(p):\n        for k in range(n):\n            y = b[k, j]\n"
            "            for i in range(m):\n                out[i, j] += a[i, k] * y",
            "Now `i` runs fastest",
        ),
        (
            ROWS + "    for k in prange(n):\n        for i in range(m):\n            x = a[i, k]\n"
            "            for j in range(p):\n                out[i, j] += x * b[k, j]",
            "Every `k` adds to all of `out`",
        ),
        (
            ROWS + "    for i in range(m):\n        for k in range(n):\n            out[i] += a[i, k] * b[k]",
            "`prange` in the outermost loop",
        ),
        (
            ROWS + "    for i in range(m):\n        for k in prange(n):\n            for j in range(p):\n"
            "                out[i, j] += a[i, k] * b[k, j]",
            "Every `k` adds to all of `out`",
        ),
        (
            ROWS + "    line = np.empty(p)\n    for i in prange(m):\n        line[:] = 0\n"
            "        for k in range(n):\n            for j in range(p):\n"
            "                line[j] += a[i, k] * b[k, j]\n        out[i] = line",
            "*inside* the loop over `i`",
        ),
        (ROWS + "    return a @ b", "still full of zeros"),
        (
            ROWS + "    total = 0.0\n    for i in prange(m):\n        for k in range(n):\n"
            "            for j in range(p):\n                total += a[i, k] * b[k, j]",
            "still full of zeros",
        ),
    ],
    "by_tiles": [
        (
            TILES + "    for j in range(0, p, t):\n        out[:, j : j + t] = a @ b[:, j : j + t]",
            "write the loops yourself",
        ),
        (
            TILES + "    for i in range(m):\n        for j in range(p):\n            for k in range(n):\n"
            "                out[i, j] += a[i, k] * b[k, j]",
            "`j0` *and* `k0`",
        ),
        (
            TILES + "    for j0 in range(0, p, t):\n        for i in range(m):\n"
            "            for j in range(j0, min(j0 + t, p)):\n                for k in range(n):\n"
            "                    out[i, j] += a[i, k] * b[k, j]",
            "`j0` *and* `k0`",
        ),
        (
            TILES + "    for k0 in range(0, n, t):\n        for j0 in range(0, p, t):\n"
            "            for k in range(k0, min(k0 + t, n)):\n"
            "                for j in range(j0, min(j0 + t, p)):\n                    for i in range(m):\n"
            "                        out[i, j] += a[i, k] * b[k, j]",
            "your `i` runs fastest",
        ),
        (
            TILES + "    for j0 in range(p // t):\n        for k0 in range(n // t):\n"
            "            for i in range(m):\n                for j in range(j0 * t, (j0 + 1) * t):\n"
            "                    for k in range(k0 * t, (k0 + 1) * t):\n"
            "                        out[i, j] += a[i, k] * b[k, j]",
            "The narrow tiles at the end are missing",
        ),
        (
            TILES + "    for j0 in range(0, p, t):\n        for k0 in range(0, n, t):\n"
            "            for i in range(m):\n                for j in range(j0, min(j0 + t, p)):\n"
            "                    out[i, j] = (a[i, k0 : k0 + t] * b[k0 : k0 + t, j]).sum()",
            "the next tile replaces",
        ),
        (
            TILES + "    for i in range(m):\n        for k0 in range(0, n, t):\n"
            "            for j0 in range(0, p, t):\n                for k in range(k0, min(k0 + t, n)):\n"
            "                    for j in range(j0, min(j0 + t, p)):\n"
            "                        out[i, j] += a[i, k] * b[k, j]",
            "`i` is outermost",
        ),
        (
            TILES + "    for k0 in range(0, n, t):\n        for j0 in range(0, p, t):\n"
            "            for i in range(m):\n                for j in range(t):\n"
            "                    for k in range(t):\n"
            "                        out[i, j0 + j] += a[i, k0 + k] * b[k0 + k, j0 + j]",
            "The last tile may be narrower",
        ),
        (
            TILES + "    for s in range(0, p, t):\n        for i in range(m):\n"
            "            for j in range(s, min(s + t, p)):\n"
            "                for k in range(s, min(s + t, n)):\n"
            "                    out[i, j] += a[i, k] * b[k, j]",
            "Only the tiles on the diagonal",
        ),
        (
            TILES + "    t = 8\n    for j0 in range(0, p, t):\n        for k0 in range(0, n, t):\n"
            "            for i in range(m):\n                for j in range(j0, min(j0 + t, p)):\n"
            "                    for k in range(k0, min(k0 + t, n)):\n"
            "                        out[i, j] += a[i, k] * b[k, j]",
            "Leave `t` as it comes",
        ),
        (
            TILES + "    for j0 in range(0, p, t):\n        for k0 in range(0, n, t):\n"
            "            for i in range(m):\n                for k in range(k0, min(k0 + t, n)):\n"
            "                    out[i, j0 : j0 + t] += a[i, k] * b[k, j0 : j0 + t]",
            "Keep `k` innermost",
        ),
        (
            TILES + "    for j0 in prange(0, p, t):\n        for k0 in range(0, n, t):\n"
            "            for i in range(m):\n                for j in range(j0, min(j0 + t, p)):\n"
            "                    for k in range(k0, min(k0 + t, n)):\n"
            "                        out[i, j] += a[i, k] * b[k, j]",
            "No threads here",
        ),
        (
            TILES + "    for k0 in prange(0, n, t):\n        for j0 in range(0, p, t):\n"
            "            for i in range(m):\n                for j in range(j0, min(j0 + t, p)):\n"
            "                    for k in range(k0, min(k0 + t, n)):\n"
            "                        out[i, j] += a[i, k] * b[k, j]",
            "No threads here",
        ),
        (TILES + "    out = a @ b", "still full of zeros"),
        (
            "from lectures.lecture_12 import naive\n" + TILES + "    for j in range(0, p, t):\n"
            "        for k in range(0, n, t):\n"
            "            naive(a[:, k : k + t], b[k : k + t, j : j + t], out[:, j : j + t])",
            "what Numba cannot compile",
        ),
    ],
    "loss_and_slopes": [
        (
            "def loss_and_slopes(x, y, w, b):\n    d = w * x + b - y\n"
            "    return np.mean(d**2), 2 * np.mean(d * x), 2 * np.mean(d)",
            "NumPy's way",
        ),
        (
            FUSED + "    sums = np.zeros(2)\n    for i in prange(n):\n        d = w * x[i] + b - y[i]\n"
            "        loss += d * d\n        sums[0] += d * x[i]\n        sums[1] += d\n"
            "    return loss / n, 2 * sums[0] / n, 2 * sums[1] / n",
            "three plain variables",
        ),
        (
            FUSED + "    for i in range(n):\n        d = w * x[i] + b - y[i]\n        loss += d * d / n\n"
            "        by_w += 2 * d * x[i] / n\n        by_b += 2 * d / n\n    return loss, by_w, by_b",
            "on one thread",
        ),
        (
            FUSED + "    for i in prange(n):\n        loss += (w * x[i] + b - y[i]) ** 2\n"
            "    for i in prange(n):\n        d = w * x[i] + b - y[i]\n        by_w += 2 * d * x[i]\n"
            "        by_b += 2 * d\n    return loss / n, by_w / n, by_b / n",
            "each loop reads `x` from memory again",
        ),
        (
            FUSED + "    for i in prange(n):\n        d = w * x[i] + b - y[i]\n        loss += d * d / n\n"
            "        by_w += d * x[i] / n\n        by_b += d / n\n    return loss, by_w, by_b",
            "lack their 2",
        ),
        (
            FUSED + "    d = np.zeros(n)\n    for i in prange(n):\n        d[i] = w * x[i] + b - y[i]\n"
            "        loss += d[i] ** 2\n        by_w += 2 * d[i] * x[i]\n        by_b += 2 * d[i]\n"
            "    return loss / n, by_w / n, by_b / n",
            "makes an array",
        ),
        (
            FUSED + "    for i in prange(n):\n        d = y[i] - w * x[i] - b\n        loss += d * d\n"
            "        by_w += 2 * d * x[i]\n        by_b += 2 * d\n    return loss / n, by_w / n, by_b / n",
            "both slopes change their sign",
        ),
        (
            FUSED + "    for i in prange(n):\n        d = w * x[i] + b - y[i]\n        loss += d * d\n"
            "        by_w += 2 * d * x[i]\n        by_b += 2 * d\n    return loss, by_w, by_b",
            "divide by `x.size`",
        ),
        (
            FUSED
            + "    for i in prange(n):\n        d = w * x[i] + b - y[i]\n        loss = d * d / n + loss\n"
            "        by_w += 2 * d * x[i] / n\n        by_b += 2 * d / n\n    return loss, by_w, by_b",
            "the total comes first",
        ),
        (
            FUSED + "    sums = np.zeros(3)\n    for i in prange(n):\n        d = w * x[i] + b - y[i]\n"
            "        sums += np.array([d * d, 2 * d * x[i], 2 * d]) / n\n    return sums",
            "Numba does know `totals += …`",
        ),
        (
            FUSED
            + "    for i in prange(n):\n        loss += (w * x[i] + b - y[i]) ** 2 / n\n    return loss",
            "That is the loss alone",
        ),
        (
            FUSED + "    for i in prange(n):\n        d = w * x[i] + b - y[i]\n        loss += d * d\n"
            "        by_w += 2 * d * x[i]\n        by_b += 2 * d\n"
            "        return loss / n, by_w / n, by_b / n",
            "Does your `return` stand inside the loop",
        ),
        (
            FUSED + "    for i in prange(n):\n        d = w * x[i] - y[i]\n        loss += d * d\n"
            "        by_w += 2 * d * x[i]\n        by_b += 2 * d\n    return loss / n, by_w / n, by_b / n",
            "Your `d` has no `b`",
        ),
        (
            FUSED + "    for i in prange(n):\n        d = w * x[i] + b - y[i]\n        loss += d * d\n"
            "        by_w += 2 * d * x[i]\n        by_b += 2 * d\n    return by_w / n, by_b / n, loss / n",
            "other order",
        ),
    ],
}
