"""Lecture 20: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

SENT = "each worker has a total of 1111.0 1111.0 1111.0 1111.0\n"

SHOWN = [
    ("share-intro", "a batch of ten points", "batch-code",
     "points: (10, 2) in float64\nlabels: [0 0 0 1 1 0 1 1 0 1]\n"),
    ("share-solution", "the first two get three each", "shards-code",
     "worker 0 has 3 points, with labels [0 1 0]\nworker 1 has 3 points, with labels [0 0 1]\n"
     "worker 2 has 2 points, with labels [0 1]\nworker 3 has 2 points, with labels [1 1]\n"),
    ("exercise-average", "So it is not the same", "means-code",
     "mean of the four means: 37.83\nmean of all ten:        38.5\n"),
    ("sum-loss", "To 12 digits it is the gradient of the whole batch", "gradients-code",
     "42 numbers; the weighted mean is right: True\nthe plain mean is right: False\n"),
    ("sum-loss", "Everybody divides at the end", "sum-code",
     "numbers that each brings: 43 and points in the end: 10.0\ndivided at the end, it is right: True\n"),
    ("ring", "worker 0 sends and receives three times as much", "collect-code",
     SENT + "sent: [300, 100, 100, 100] received: [300, 100, 100, 100]\n"),
    ("rounds-solution", "it is the part before: one less each time", "ready-code",
     "round 0 of adding: workers 0 to 3 send parts [0, 1, 2, 3]\n"
     "round 1 of adding: workers 0 to 3 send parts [3, 0, 1, 2]\n"
     "round 2 of adding: workers 0 to 3 send parts [2, 3, 0, 1]\n"),
    ("processes", "The busiest worker sent 300 numbers before. Now each sends 150", "ring-at-work-code",
     SENT + "sent: [150, 150, 150, 150] received: [150, 150, 150, 150]\n"
     "worker 0 waits for a message from worker 3, and nobody will send one: no mail is under way\n"),
    ("cost", "The very same function", "processes-code", SENT),
    ("exercise-seconds", "never more than twice", "cost-code",
     "  2 workers: each sends 1.0 times its numbers\n  4 workers: each sends 1.5 times its numbers\n"
     " 10 workers: each sends 1.8 times its numbers\n 40 workers: each sends 1.95 times its numbers\n"
     "400 workers: 1.995\n"),
    ("machine", "Drag `workers` first", "curve-code",
     "the fastest: 200 workers\n<scaling, with workers and latency and bandwidth to drag>"),
    ("machine", "Then it measures those as well", "machine-code", "<bars, with shown to drag>"),
    ("library", "they differ in the last bits", "pay-off-code",
     "the four are the same to the last bit: True\nand the same as one alone: False\n"
     "but the largest difference is below 1e-12: True\nwhile a weight has moved by more than 1: True\n"),
    ("exercise-together", "So with small shards, BatchNorm does something else", "variances-code",
     "weighted mean of the variances: 0.235\nvariance of the batch:          0.549\n"),
    ("together-solution", "plus the variance of the means", "together-code", "as in the whole batch: True\n"),
]  # fmt: skip

TRUE = [
    ("title", "1,000 times 4 GB arrive at its cable", "1e9 * 4 == 4e9"),
    ("title", "nearly seven minutes", "6.5 < 1000 * 4e9 / 10e9 / 60 < 7"),
    ("exercise-average", "With 10 points and 4 workers, equal parts are impossible", "10 % 4 != 0"),
    (
        "share-solution",
        "The library then gives all items to everybody",
        "ndl.parallel.Workers.share(type('Two', (), {'rank': 1, 'size': 4})(), [7, 8]) == [7, 8]"
        " and share([7, 8], 3, 4) == []",
    ),
    (
        "processes",
        "all but two of the cells below work with them",
        "sum('if workers.processes' in cell for cell in In[:-1]) == 2",
    ),
    (
        "average-solution",
        "`np.average(gradients, axis=0, weights=sizes)` does the same",
        "np.allclose(np.average(found, axis=0, weights=[3, 3, 2, 2]), average(found, [3, 3, 2, 2]))",
    ),
    (
        "gradients",
        "L = (3·L₀ + 3·L₁ + 2·L₂ + 2·L₃) / 10",
        "np.isclose((lambda m: sum(len(part(y, k, 4)) * mean_loss(m, part(x, k, 4), part(y, k, 4)).item()"
        " for k in range(4)) / 10 - mean_loss(m, x, y).item())(network()), 0, atol=1e-12)",
    ),
    (
        "gradients",
        "a network with 42 weights",
        "len(whole) == sum(p.size for p in network().parameters()) == 42",
    ),
    (
        "sum-loss",
        "In the plain mean, some numbers are off by more than 1 %",
        "(np.abs(np.mean(found, axis=0) - whole) > 0.01 * np.abs(whole)).sum() > 1",
    ),
    (
        "sum-loss",
        "the batch's loss is the sum of the shards' losses, and the gradients are simply added",
        "(lambda g: np.allclose(sum(g(part(x, k, 4), part(y, k, 4)) for k in range(4)), g(x, y), rtol=1e-10))"
        "(lambda x, y: (lambda m: [(mean_loss(m, x, y) * len(y)).backward(),"
        " flat([p.grad for p in m.parameters()])][1])(network()))",
    ),
    ("ring", "With 1,000 workers it would be 999 times", "1000 - 1 == 999"),
    (
        "halves",
        "all cables are busy all the time",
        "(lambda h: all(len(h(step, 4)[1]) == 4 for step in range(1, 7)))"
        "(sys.modules['lectures.lecture_20'].holdings)",
    ),
    (
        "exercise-ring",
        "They are *views*",
        "(lambda a: all(np.shares_memory(a, part) for part in np.array_split(a, 4)))(np.ones(9))",
    ),
    (
        "team-code",
        "workers = team(4, install=False)",
        "repr(workers).startswith('4 workers, each a ' + ('process' if workers.processes else 'thread'))",
    ),
    ("exercise-seconds", "There are 2(n − 1) rounds", "seconds(4, 0, 1.0, 1.0) == 6"),
    (
        "exercise-seconds",
        "less than 8 GB leave each machine, in 0.8 seconds",
        "0.79 < seconds(1000, 4e9, 0, 10e9) < 0.8",
    ),
    (
        "seconds-solution",
        "nearly 2·n·latency + 2·size/bandwidth",
        "np.isclose(seconds(5000, 1e8, 1e-5, 1e10), 2 * 5000 * 1e-5 + 2 * 1e8 / 1e10, rtol=1e-3)",
    ),
    (
        "machine",
        "a step takes longer with 10,000 workers than with ten",
        "step_time(10_000, 10, 10) > step_time(10, 10, 10)",
    ),
    (
        "machine",
        "One of them lifts the middle of the curve, the other its right end",
        "[[round(step_time(n, 10, 10) / step_time(n, *better), 1) for better in ((1, 10), (10, 100))]"
        " for n in (2, 100, 10_000)] == [[1.0, 1.0], [1.1, 2.3], [5.5, 1.1]]",
    ),
    (
        "train",
        "Only three of its lines differ from a training on one machine",
        "__import__('inspect').getsource(train).count('workers.') == 3",
    ),
    (
        "train",
        "100 steps, with batches of ten points",
        "set(map(len, [points[10 * k % 200 : 10 * k % 200 + 10] for k in range(100)])) == {10}",
    ),
    (
        "library",
        "the two methods that `train` calls",
        "all(hasattr(ndl.parallel.Workers, z) for z in ('share', 'average_gradients'))",
    ),
    (
        "library",
        "so threads cannot stand in here",
        "not workers.processes or max(differences) < 1e-12",
    ),
    (
        "together-solution",
        "The variance of a batch is the mean of the variances, plus the variance of the means",
        "np.isclose(feature.var(), np.average(variances, weights=sizes)"
        " + np.average((np.array(means) - feature.mean()) ** 2, weights=sizes))",
    ),
    (
        "exercise-together",
        "So with small shards, BatchNorm does something else",
        "(lambda rng: all(np.average([p.var() for p in ps], weights=[3, 3, 2, 2]) <= np.concatenate(ps).var()"
        " for ps in (np.split(rng.normal(size=10), [3, 6, 8]) for _ in range(99))))(np.random.default_rng(1))"
        # without the weights it may be larger, so the prediction says that they are there
        " and np.mean([100, 100, 0, 0]) > np.var([-10, 10, -10, 10, 0, 0, 0, 0, 0, 0])",
    ),
    (
        "summary",
        "all but the ring: MPI brings an all-reduce of its own",
        "'allreduce' in (source := __import__('inspect').getsource(ndl.parallel))"
        " and all(name in source for name in ('def share', 'def average', 'def standardize'))",
    ),
    (
        "exercise-together",
        "the mean of the squared distances from *another* place c is v + (m − c)²",
        "np.isclose(((feature - 0.7) ** 2).mean(), feature.var() + (feature.mean() - 0.7) ** 2)",
    ),
    (
        "norm",
        "lets every BatchNorm in a model do that, forward and backward",
        "not workers.processes"
        " or [np.allclose(found, expected, rtol=1e-9) for found in (apart, agreed)] == [False, True]",
    ),
    (
        "larger-rule",
        "The batch of 256 is far behind at the same rate",
        "errors['batch of 256, rate 0.05'] > 3 * errors['batch of 16, rate 0.05']",
    ),
    (
        "larger-rule",
        "Five epochs are 25 steps now, and not 400",
        "(5 * (1280 // 256), 5 * (1280 // 16)) == (25, 400)",
    ),
    (
        "larger-rule",
        "one step goes about as far as the 16 small ones",
        "errors['batch of 256, rate 0.8'] < errors['batch of 16, rate 0.05'] + 10",
    ),
    (
        "larger-rule",
        "the fourth bar shows how the rule ends",
        "errors['batch of 1,280, rate 4.0'] > 2 * errors['batch of 256, rate 0.8'] and 1280 / 16 * 0.05 == 4",
    ),
    (
        "exercise-rounds",
        "Step 1 in the picture is round 0 of adding, step 4 is round 0 of handing on",
        "(lambda h: all(((k + 1) % 4, adding(k, 0, 4)) in h(1, 4)[1] and"
        " ((k + 1) % 4, handing_on(k, 0, 4)) in h(4, 4)[1] for k in range(4)))"
        "(sys.modules['lectures.lecture_20'].holdings)",
    ),
    ("summary", "There are 1,998 rounds instead of 18", "(2 * 999, 2 * 9) == (1998, 18)"),
]

RING = (
    "from lectures.lecture_20 import to_add, to_hand_on\nadding, handing_on = to_add.right, "
    "to_hand_on.right\n\n\ndef ring_all_reduce(worker, numbers):\n    n, k = worker.size, worker.rank\n"
)
PARTS = "    parts = np.array_split(numbers.copy(), n)\n"
AROUND = (
    "    for which in adding, handing_on:\n        for r in range(n - 1):\n"
    "            worker.send(parts[which(k, r, n)], (k + 1) % n)\n"
    "            came = worker.receive((k - 1) % n)\n            i = which(k - 1, r, n)\n"
    "            parts[i] = parts[i] + came if which is adding else came\n"
    "    return np.concatenate(parts)"
)

NEAR_MISSES = {
    "share": [
        (
            "def share(items, rank, workers):\n    size = len(items) // workers\n"
            "    first = rank * size\n    return items[first : first + size]",
            "The last items go to nobody",
        ),
        (
            "import math\n\n\ndef share(items, rank, workers):\n    size = math.ceil(len(items) / workers)\n"
            "    return items[rank * size :][:size]",
            "rounded the size up",
        ),
        (
            "def share(items, rank, workers):\n    size = len(items) // workers\n    if rank < workers - 1:\n"
            "        return items[rank * size : rank * size + size]\n    return items[rank * size :]",
            "goes to the last worker",
        ),
        ("def share(items, rank, workers):\n    return items[:: workers]", "gets the same items"),
        ("def share(items, rank, workers):\n    return items[rank]", "one single item"),
        ("def share(items, rank, workers):\n    return items[rank - 1 :: workers]", "Ranks begin at 0"),
        ("def share(items, rank, workers):\n    return items[rank::4]", "You count with four workers"),
        ("def share(items, rank, workers):\n    return items", "Every worker gets all"),
        (
            "def share(items, rank, workers):\n"
            "    return [items[i] for i in range(rank, len(items), workers)]",
            "Cut it with a slice",
        ),
        ("def share(items, rank, workers):\n    return [x for x in items[rank:]]", "a step is missing"),
        ("def share(items, rank, workers):\n    return items[rank:workers]", "there are two colons"),
        ("def share(items, rank, workers):\n    return items[rank : len(items) : rank]", "is your step"),
        (
            "def share(items, rank, workers):\n    n = len(items) / workers\n"
            "    return items[rank * n : (rank + 1) * n]",
            "needs whole numbers",
        ),
    ],
    "average": [
        ("def average(gradients, sizes):\n    return np.mean(gradients, axis=0)", "counts every part alike"),
        (
            "def average(gradients, sizes):\n    total = 0\n    for k in range(len(sizes)):\n"
            "        total = total + gradients[k] * sizes[k]\n    return total",
            "Divide it by the number of all points",
        ),
        (
            "def average(gradients, sizes):\n"
            "    return np.mean([g * s for g, s in zip(gradients, sizes)], axis=0)",
            "not of workers",
        ),
        ("def average(gradients, sizes):\n    return np.average(gradients)", "Everything became one number"),
        (
            "def average(gradients, sizes):\n    return np.sum(gradients, axis=0) / np.sum(sizes)",
            "by its own size",
        ),
        (
            "def average(gradients, sizes):\n    total = gradients[0]\n    total *= sizes[0]\n"
            "    for g, s in zip(gradients[1:], sizes[1:]):\n        total += g * s\n    return total / "
            "sum(sizes)",
            "Leave the inputs as they are",
        ),
        ("def average(gradients, sizes):\n    return np.average(gradients, weights=sizes)", "which axis"),
        (
            "def average(gradients, sizes):\n    w = np.array(sizes) / sum(sizes)\n    return w @ gradients",
            "only if gradients are rows",
        ),
        (
            "def average(gradients, sizes):\n    total = 0\n    for g, s in gradients, sizes:\n"
            "        total += g * s\n    return total / sum(sizes)",
            "one after the other",
        ),
        (
            "def average(gradients, sizes):\n"
            "    return (np.array(gradients) * sizes).sum(axis=0) / sum(sizes)",
            "along the last axis",
        ),
        (
            "def average(gradients, sizes):\n    total = np.zeros(gradients[0].shape, dtype='float32')\n"
            "    for g, s in zip(gradients, sizes):\n        total += g * s\n    return total / sum(sizes)",
            "turn them into float32",
        ),
        ("def average(gradients, sizes):\n    return np.dot(sizes, gradients) / sum(sizes)", "`np.dot`"),
        (
            "def average(gradients, sizes):\n"
            "    return [sum(s * g[k] for s, g in zip(sizes, gradients)) / sum(sizes) for k in range(2)]",
            "but in a list",
        ),
        (
            "def average(gradients, sizes):\n    (a, b, c, d), (p, q, r, s) = gradients, sizes\n"
            "    return (p * a + q * b + r * c + s * d) / (p + q + r + s)",
            "need not be four workers",
        ),
    ],
    "to_add": [
        ("def to_add(rank, r, workers):\n    return (rank + r) % workers", "You count up"),
        ("def to_add(rank, r, workers):\n    return rank", "its own part in every round"),
        ("def to_add(rank, r, workers):\n    return -r + rank", "modulo `workers`"),
        ("def to_add(rank, r, workers):\n    return (rank + 4 - r) % 4", "You count with four workers"),
        ("def to_add(rank, r, workers):\n    return abs(r - rank) % workers", "you drop the sign"),
        ("def to_add(rank, r, workers):\n    return (rank + workers - r - 1) % workers", "one round ahead"),
    ],
    "to_hand_on": [
        ("def to_hand_on(rank, r, workers):\n    return (rank + workers - r) % workers", "the adding rounds"),
        ("def to_hand_on(rank, r, workers):\n    return (rank + r + 1) % workers", "You count up"),
        ("def to_hand_on(rank, r, workers):\n    return rank - r + 1", "Past the end"),
        ("def to_hand_on(rank, r, workers):\n    return (rank + 5 - r) % 4", "You count with four workers"),
        (
            "def to_hand_on(rank, r, workers):\n    return (rank + 1) % workers",
            "the same part in every round",
        ),
    ],
    "ring_all_reduce": [
        (
            RING + PARTS + "    for r in range(n - 1):\n"
            "        worker.send(parts[adding(k, r, n)], (k + 1) % n)\n"
            "        parts[adding((k - 1) % n, r, n)] += worker.receive((k - 1) % n)\n"
            "    return np.concatenate(parts)",
            "handed on",
        ),
        (
            RING + "    total = numbers.copy()\n    for _ in range(n - 1):\n"
            "        worker.send(numbers, (k + 1) % n)\n"
            "        numbers = worker.receive((k - 1) % n)\n        total += numbers\n    return total",
            "whole arrays go around",
        ),
        (
            RING + PARTS + "    for r in range(n - 1):\n"
            "        came = worker.receive((k - 1) % n)\n"
            "        parts[adding((k - 1) % n, r, n)] += came\n"
            "        worker.send(parts[adding(k, r, n)], (k + 1) % n)\n    return np.concatenate(parts)",
            "a deadlock",
        ),
        (
            RING + PARTS + "    for which in adding, handing_on:\n        for r in range(n - 1):\n"
            "            worker.send(parts[which(k, r, n)], (k + 1) % n)\n"
            "            parts[which(k - 1, r, n)] += worker.receive((k - 1) % n)\n"
            "    return np.concatenate(parts)",
            "complete parts come, and you add them",
        ),
        (
            RING + PARTS + "    for which in adding, handing_on:\n        for r in range(n - 1):\n"
            "            worker.send(parts[which(k, r, n)], k + 1)\n"
            "            parts[which(k - 1, r, n)] = worker.receive((k - 1) % n)\n"
            "    return np.concatenate(parts)",
            "no worker after it",
        ),
        (
            RING + PARTS + "    for which in adding, handing_on:\n        for r in range(n - 1):\n"
            "            worker.send(parts[which(k, r, n)], (k + 1) % n)\n"
            "            parts[which(k - 1, r, n)] += worker.receive((k + 1) % n)\n"
            "    return np.concatenate(parts)",
            "receive from the left",
        ),
        (
            RING + "    parts = np.array_split(numbers, n)\n    for r in range(n - 1):\n"
            "        worker.send(parts[adding(k, r, n)], (k + 1) % n)\n"
            "        parts[adding((k - 1) % n, r, n)] += worker.receive((k - 1) % n)\n"
            "    return np.concatenate(parts)",
            "Leave the inputs as they are",
        ),
        (
            RING + "    if k:\n        worker.send(numbers, 0)\n        return worker.receive(0)\n"
            "    total = numbers.copy()\n    for other in range(1, n):\n        total += "
            "worker.receive(other)\n    for other in range(1, n):\n        worker.send(total, other)\n    "
            "return total",
            "everything goes through worker 0",
        ),
        (
            RING + PARTS + "    for r in range(n):\n        worker.send(parts[adding(k, r, n)], (k + 1) % "
            "n)\n        parts[adding(k - 1, r, n)] += worker.receive((k - 1) % n)\n"
            "    for r in range(n - 1):\n        worker.send(parts[handing_on(k, r, n)], (k + 1) % n)\n"
            "        parts[handing_on(k - 1, r, n)] = worker.receive((k - 1) % n)\n"
            "    return np.concatenate(parts)",
            "One round of adding too many",
        ),
        (
            RING + PARTS + "    for r in range(n - 1):\n        worker.send(parts[adding(k, r, n)], (k + 1) "
            "% n)\n        parts[adding(k - 1, r, n)] += worker.receive((k - 1) % n)\n"
            "    for r in range(n - 1):\n        worker.send(parts[handing_on(k, r, n)], (k + 1) % n)\n"
            "        parts[handing_on(k - 1, r, n)] = worker.receive((k - 1) % n)\n    return parts",
            "Put them together again",
        ),
        (
            RING + PARTS + "    for which in adding, handing_on:\n        for r in range(n - 1):\n"
            "            worker.send(parts[which(k, r, n)], (k - 1) % n)\n"
            "            came = worker.receive((k + 1) % n)\n            i = which((k + 1) % n, r, n)\n"
            "            parts[i] = parts[i] + came if which is adding else came\n"
            "    return np.concatenate(parts)",
            "You send to the left",
        ),
        (
            RING + PARTS + "    for r in range(n - 1):\n        worker.send(adding(k, r, n), (k + 1) % n)\n"
            "        parts[adding(k - 1, r, n)] += worker.receive((k - 1) % n)\n"
            "    return np.concatenate(parts)",
            "the *number* of the part",
        ),
        (
            RING + PARTS + "    for r in range(n - 1):\n        worker.send(parts[adding(k, r, n)], (k + 1) "
            "% n)\n        parts[adding(k, r, n)] += worker.receive((k - 1) % n)\n"
            "    for r in range(n - 1):\n        worker.send(parts[handing_on(k, r, n)], (k + 1) % n)\n"
            "        parts[handing_on(k - 1, r, n)] = worker.receive((k - 1) % n)\n"
            "    return np.concatenate(parts)",
            "ask `adding(left, …)`",
        ),
        (
            RING + PARTS + "    for r in range(n - 1):\n        worker.send(parts[adding(k, r, n)], (k + 1) "
            "% n)\n        parts[adding(k - 1, r, n)] += worker.receive((k - 1) % n)\n"
            "    for r in range(n - 1):\n        worker.send(parts[handing_on(k, r, n)], (k + 1) % n)\n"
            "        parts[handing_on(k, r, n)] = worker.receive((k - 1) % n)\n"
            "    return np.concatenate(parts)",
            "ask `handing_on(left, …)`",
        ),
        (
            RING + PARTS + "    for which in adding, handing_on:\n        for r in range(n - 1):\n"
            "            worker.send(parts[which(k, r, n)], (k - 1) % n)\n"
            "            came = worker.receive((k + 1) % n)\n            i = which((k - 1) % n, r, n)\n"
            "            parts[i] = parts[i] + came if which is adding else came\n"
            "    return np.concatenate(parts)",
            "You send to the left",
        ),
        (
            RING + PARTS + "    for which in adding, handing_on:\n        for r in range(n - 1):\n"
            "            worker.send(parts[which(k, r, n)], (k + 1) % n)\n        for r in range(n - 1):\n"
            "            came = worker.receive((k - 1) % n)\n            i = which((k - 1) % n, r, n)\n"
            "            parts[i] = parts[i] + came if which is adding else came\n"
            "    return np.concatenate(parts)",
            "You send all parts before anything has come",
        ),
        (
            RING + "    n = 4\n" + PARTS + "    for which in adding, handing_on:\n"
            "        for r in range(n - 1):\n            worker.send(parts[which(k, r, n)], (k + 1) % n)\n"
            "            came = worker.receive((k - 1) % n)\n            i = which((k - 1) % n, r, n)\n"
            "            parts[i] = parts[i] + came if which is adding else came\n"
            "    return np.concatenate(parts)",
            "You count with four workers",
        ),
        (
            "import threading\n\nlock, all_seen = threading.Lock(), {}\n\n\n"
            "def ring_all_reduce(worker, numbers):\n    with lock:\n"
            "        seen = all_seen.setdefault(id(worker.send.func.__self__), {})\n"
            "        seen[worker.rank] = worker.send.func.__self__, numbers\n"
            "    while len(seen) < worker.size:\n        pass\n"
            "    return sum(x for _, x in seen.values())",
            "look into each other's memory",
        ),
        (RING + PARTS + AROUND.replace("n - 1)", "3)", 1), "You count with four workers"),
        (RING + "    parts = np.split(numbers, n)\n" + AROUND, "need not divide into parts of equal length"),
        (
            RING + "    parts = list(numbers.reshape(n, -1))\n" + AROUND,
            "need not divide into parts of equal length",
        ),
        (
            RING
            + "    m = len(numbers) // n\n    parts = [numbers[i * m : i * m + m] for i in range(n)]\n"
            + AROUND,
            "The last numbers are in no part",
        ),
        (
            RING + "    parts = np.array_split(numbers.astype(np.float32), n)\n" + AROUND,
            "turn them into float32",
        ),
        (
            RING + PARTS + "    for which in adding, handing_on:\n        for r in range(n - 1):\n"
            "            if k or which is adding:\n"
            "                worker.send(parts[which(k, r, n)], (k + 1) % n)\n"
            "            came = worker.receive((k - 1) % n)\n            i = which(k - 1, r, n)\n"
            "            parts[i] = parts[i] + came if which is adding else came\n"
            "    return np.concatenate(parts)",
            "a message that nobody sends",
        ),
        (
            RING + PARTS + "    going = parts[k]\n    for r in range(n - 1 or 1):\n"
            "        worker.send(going, (k + 1) % n)\n        i = (k - 1 - r) % n\n"
            "        going = parts[i] = parts[i] + worker.receive((k - 1) % n)\n"
            "    for r in range(n - 1):\n        worker.send(going, (k + 1) % n)\n"
            "        going = parts[(k - r) % n] = worker.receive((k - 1) % n)\n"
            "    return np.concatenate(parts)",
            "One worker alone has no neighbour",
        ),
        (RING + PARTS + "    worker.send((k + 1) % n, parts[k])\n    return numbers", "then to whom"),
        (RING + PARTS + "    worker.send(parts[k])\n    return numbers", "Say to whom"),
    ],
    "seconds": [
        (
            "def seconds(workers, size, latency, bandwidth):\n    part = size / workers\n"
            "    return (workers - 1) * (latency + part / bandwidth)",
            "rounds of adding alone",
        ),
        (
            "def seconds(workers, size, latency, bandwidth):\n"
            "    return 2 * workers * latency + 2 * size / bandwidth",
            "`workers - 1` rounds of each kind",
        ),
        (
            "def seconds(workers, size, latency, bandwidth):\n    rounds = 2 * workers - 2\n"
            "    return rounds * latency + rounds * size / bandwidth",
            "one part, not the whole array",
        ),
        (
            "def seconds(workers, size, latency, bandwidth):\n    rounds = 2 * workers - 2\n"
            "    return rounds * (size / workers) / bandwidth + latency",
            "in every round",
        ),
        (
            "def seconds(workers, size, latency, bandwidth):\n    rounds = 2 * workers - 2\n"
            "    return rounds * (latency + bandwidth * size / workers)",
            "divide the bytes by it",
        ),
        (
            "def seconds(workers, size, latency, bandwidth):\n    share = 2 * (workers - 1) / workers\n"
            "    return share * (latency + size / bandwidth)",
            "divide the latency by the workers",
        ),
        (
            "def seconds(workers, size, latency, bandwidth):\n    waiting = 2 * (workers - 1) * latency\n"
            "    return waiting + size / bandwidth",
            "The latencies are right",
        ),
        (
            "def seconds(workers, size, latency, bandwidth):\n    return latency + size / bandwidth",
            "one message, with the whole array",
        ),
        (
            "def seconds(workers, size, latency, bandwidth):\n    message = latency + size / workers / "
            "bandwidth\n    return 2 * (workers - 1) * (message + message)",
            "You count each message twice",
        ),
        (
            "def seconds(workers, size, latency, bandwidth):\n    message = latency + size // workers / "
            "bandwidth\n    return 2 * (workers - 1) * message",
            "You round a part to whole bytes",
        ),
        (
            "def seconds(workers, size, latency, bandwidth):\n    part = np.ceil(size / workers)\n"
            "    return 2 * (workers - 1) * (latency + part / bandwidth)",
            "You round a part to whole bytes",
        ),
    ],
    "together": [
        (
            "def together(means, variances, sizes):\n    w = [s / sum(sizes) for s in sizes]\n"
            "    return sum(a * b for a, b in zip(w, means)), sum(a * b for a, b in zip(w, variances))",
            "How far the shards lie apart is missing",
        ),
        (
            "def together(means, variances, sizes):\n    n = sum(sizes)\n"
            "    m = sum(s * x for s, x in zip(sizes, means)) / n\n"
            "    return m, sum(s * (v + x - m) for s, v, x in zip(sizes, variances, means)) / n",
            "it has cancelled out",
        ),
        (
            "def together(means, variances, sizes):\n    n = sum(sizes)\n"
            "    m = sum(s * x for s, x in zip(sizes, means)) / n\n"
            "    return m, sum(s * (v - (x - m) ** 2) for s, v, x in zip(sizes, variances, means)) / n",
            "You subtract the spread",
        ),
        (
            "def together(means, variances, sizes):\n    n = sum(sizes)\n"
            "    m = sum(s * x for s, x in zip(sizes, means)) / n\n"
            "    return m, sum(s * (v + (x - m) ** 2) for s, v, x in zip(sizes, variances, means)) / (n - 1)",
            "one less than the number of points",
        ),
        (
            "def together(means, variances, sizes):\n    n = len(means)\n    m = sum(means) / n\n"
            "    return m, sum(variances) / n + sum((x - m) ** 2 for x in means) / n",
            "Every shard counts alike",
        ),
        (
            "def together(means, variances, sizes):\n    n = sum(sizes)\n"
            "    m = sum(s * x for s, x in zip(sizes, means)) / n\n"
            "    return m, sum(s * (v + x * x) for s, v, x in zip(sizes, variances, means)) / n",
            "Subtract the square",
        ),
        (
            "def together(means, variances, sizes):\n    n = sum(sizes)\n"
            "    m = sum(s * x for s, x in zip(sizes, means)) / n\n"
            "    return m, sum(s * (x - m) ** 2 for s, x in zip(sizes, means)) / n",
            "forgets the variances in the shards",
        ),
        (
            "def together(means, variances, sizes):\n    m = np.average(means, axis=0, weights=sizes)\n"
            "    return m, np.average(variances, axis=0, weights=sizes) + np.var(means, axis=0)",
            "is to be weighted, too",
        ),
        (
            "def together(means, variances, sizes):\n    m = np.average(means, weights=sizes)\n"
            "    v = np.average(variances, weights=sizes)\n"
            "    return m, v + np.average([(x - m) ** 2 for x in means], weights=sizes)",
            "along which axis",
        ),
        (
            "def together(means, variances, sizes):\n"
            "    m, v, n = np.array(means), np.array(variances), np.array(sizes)\n"
            "    mean = np.sum(m * n) / np.sum(n)\n"
            "    return mean, np.sum((v + (m - mean) ** 2) * n) / np.sum(n)",
            "along which axis",
        ),
    ],
}
