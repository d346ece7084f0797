"""Lecture 20: what its prose claims, and what proves it."""

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
    ("quiet-fault", "The busiest worker sent 300 numbers before. Now each sends 150", "ring-at-work-code",
     SENT + "sent: [150, 150, 150, 150] received: [150, 150, 150, 150]\n"
     "worker 0 waits for a message from worker 3, and nobody will send one: no mail is under way\n"),
    ("quiet-fault", "the mean of the losses of *all* points", "faulty-mean-code", "5.5 5.5 5.5 5.5\n"),
    ("cost", "the very same function", "processes-code", SENT),
    ("exercise-seconds", "never more than twice", "cost-code",
     "  2 workers: each sends 1.0 times its numbers\n  4 workers: each sends 1.5 times its numbers\n"
     " 10 workers: each sends 1.8 times its numbers\n 40 workers: each sends 1.95 times its numbers\n"
     "400 workers: 1.995\n"),
    ("machine", "Drag `workers` first", "curve-code",
     "the fastest: 200 workers\n<scaling, with workers and latency and bandwidth to drag>"),
    ("machine", "Then it measures those as well", "machine-code", "<bars, with shown to drag>"),
    ("buckets-latency", "6 + 4 · 6.3 = 31.2 ms", "buckets-code",
     "buckets: 1  ms: 43.8\nbuckets: 2  ms: 34.8\nbuckets: 4  ms: 31.2\nbuckets: 8  ms: 35.4\n"
     "<rings_of, with buckets to drag>"),
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
    ("share-solution", "The library then gives all items to everybody",
     "ndl.parallel.Workers.share(type('Two', (), {'rank': 1, 'size': 4})(), [7, 8]) == [7, 8] and "
     "share([7, 8], 3, 4) == []"),
    ("processes", "all but two of the cells below work with them",
     "sum('if workers.processes' in cell for cell in In[:-1]) == 2"),
    ("average-solution", "`np.average(gradients, axis=0, weights=sizes)` does the same",
     "np.allclose(np.average(found, axis=0, weights=[3, 3, 2, 2]), average(found, [3, 3, 2, 2]))"),
    ("gradients", "L = (3·L₀ + 3·L₁ + 2·L₂ + 2·L₃) / 10",
     "np.isclose((lambda m: sum(len(part(y, k, 4)) * mean_loss(m, part(x, k, 4), part(y, k, 4)).item() "
     "for k in range(4)) / 10 - mean_loss(m, x, y).item())(network()), 0, atol=1e-12)"),
    ("gradients", "a network with 42 weights",
     "len(whole) == sum(p.size for p in network().parameters()) == 42"),
    ("sum-loss", "In the plain mean, some numbers are off by more than 1 %",
     "(np.abs(np.mean(found, axis=0) - whole) > 0.01 * np.abs(whole)).sum() > 1"),
    ("sum-loss", "the batch's loss is the sum of the shards' losses, and the gradients are simply added",
     "(lambda g: np.allclose(sum(g(part(x, k, 4), part(y, k, 4)) for k in range(4)), g(x, y), "
     "rtol=1e-10))(lambda x, y: (lambda m: [(mean_loss(m, x, y) * len(y)).backward(), flat([p.grad for "
     "p in m.parameters()])][1])(network()))"),
    ("ring", "With 1,000 workers it would be 999 times", "1000 - 1 == 999"),
    ("halves", "all cables are busy all the time",
     "(lambda h: all(len(h(step, 4)[1]) == 4 for step in range(1, "
     "7)))(sys.modules['lectures.lecture_20'].holdings)"),
    ("exercise-ring", "They are *views*",
     "(lambda a: all(np.shares_memory(a, part) for part in np.array_split(a, 4)))(np.ones(9))"),
    ("team-code", "workers = team(4, install=False)",
     "repr(workers).startswith('4 workers, each a ' + ('process' if workers.processes else 'thread'))"),
    ("exercise-seconds", "There are 2(n − 1) rounds", "seconds(4, 0, 1.0, 1.0) == 6"),
    ("exercise-seconds", "less than 8 GB leave each machine, in 0.8 seconds",
     "0.79 < seconds(1000, 4e9, 0, 10e9) < 0.8"),
    ("seconds-solution", "nearly 2·n·latency + 2·size/bandwidth",
     "np.isclose(seconds(5000, 1e8, 1e-5, 1e10), 2 * 5000 * 1e-5 + 2 * 1e8 / 1e10, rtol=1e-3)"),
    ("mean-of-all-solution", "With three points and four workers, worker 3 has none",
     "(lambda parts: len(parts[3]) == 0 and threads.run(mean_of_all, parts) == [2.0] * "
     "4)([share(losses[:3], k, 4) for k in range(4)])"),
    ("buckets-latency", "the bytes take 18 ms in both cases",
     "all(np.isclose(n * overlap(n)[1][0], 18 + rest) for n, rest in ((4, 7.2), (8, 14.4)))"),
    ("buckets-latency", "Here that would be four", "100 / 25 == 4"),
    ("buckets-latency", "With one of them, the cable is idle for 24 ms",
     "overlap(1)[0] == [24] and overlap(4)[0][0] == 6 and overlap(8)[0][0] == 3"),
    ("machine", "a step takes longer with 10,000 workers than with ten",
     "step_time(10_000, 10, 10) > step_time(10, 10, 10)"),
    ("machine", "One of them lifts the middle of the curve, the other its right end",
     "[[round(step_time(n, 10, 10) / step_time(n, *better), 1) for better in ((1, 10), (10, 100))] for "
     "n in (2, 100, 10_000)] == [[1.0, 1.0], [1.1, 2.3], [5.5, 1.1]]"),
    ("train", "Only three of its lines differ from a training on one machine",
     "__import__('inspect').getsource(train).count('workers.') == 3"),
    ("train", "100 steps, with batches of ten points",
     "set(map(len, [points[10 * k % 200 : 10 * k % 200 + 10] for k in range(100)])) == {10}"),
    ("library", "the two methods that `train` calls",
     "all(hasattr(ndl.parallel.Workers, z) for z in ('share', 'average_gradients'))"),
    ("library", "so threads cannot stand in here", "not workers.processes or max(differences) < 1e-12"),
    ("together-solution",
     "The variance of a batch is the mean of the variances, plus the variance of the means",
     "np.isclose(feature.var(), np.average(variances, weights=sizes) + np.average((np.array(means) - "
     "feature.mean()) ** 2, weights=sizes))"),
    # without the weights it may be larger, so the prediction says that they are there
    ("exercise-together", "So with small shards, BatchNorm does something else",
     "(lambda rng: all(np.average([p.var() for p in ps], weights=[3, 3, 2, 2]) <= "
     "np.concatenate(ps).var() for ps in (np.split(rng.normal(size=10), [3, 6, 8]) for _ in "
     "range(99))))(np.random.default_rng(1)) and np.mean([100, 100, 0, 0]) > np.var([-10, 10, -10, 10, "
     "0, 0, 0, 0, 0, 0])"),
    ("summary", "all but the ring: MPI brings an all-reduce of its own",
     "'allreduce' in (source := __import__('inspect').getsource(ndl.parallel)) and all(name in source "
     "for name in ('def share', 'def average', 'def standardize'))"),
    ("exercise-together", "the mean of the squared distances from *another* place c is v + (m − c)²",
     "np.isclose(((feature - 0.7) ** 2).mean(), feature.var() + (feature.mean() - 0.7) ** 2)"),
    ("norm", "lets every BatchNorm in a model do that, forward and backward",
     "not workers.processes or [np.allclose(found, expected, rtol=1e-9) for found in (apart, agreed)] "
     "== [False, True]"),
    ("larger-rule", "The batch of 256 is far behind at the same rate",
     "errors['batch of 256, rate 0.05'] > 3 * errors['batch of 16, rate 0.05']"),
    ("larger-rule", "Five epochs are 25 steps now, and not 400",
     "(5 * (1280 // 256), 5 * (1280 // 16)) == (25, 400)"),
    ("larger-rule", "one step goes about as far as the 16 small ones",
     "errors['batch of 256, rate 0.8'] < errors['batch of 16, rate 0.05'] + 10"),
    ("larger-rule", "the fourth bar shows how the rule ends",
     "errors['batch of 1,280, rate 4.0'] > 2 * errors['batch of 256, rate 0.8'] and 1280 / 16 * 0.05 == "
     "4"),
    ("exercise-rounds", "Step 1 in the picture is round 0 of adding, step 4 is round 0 of handing on",
     "(lambda h: all(((k + 1) % 4, adding(k, 0, 4)) in h(1, 4)[1] and ((k + 1) % 4, handing_on(k, 0, "
     "4)) in h(4, 4)[1] for k in range(4)))(sys.modules['lectures.lecture_20'].holdings)"),
    ("summary", "There are 1,998 rounds instead of 18", "(2 * 999, 2 * 9) == (1998, 18)"),
]  # fmt: skip
