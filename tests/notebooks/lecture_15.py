"""Lecture 15: what its prose claims, and what proves it."""

from __future__ import annotations

SHOWN = [
    ("exercise-batches", "The last batch is smaller.", "batches-shown",
     "a batch: points (16, 2) labels (16,)\na batch: points (16, 2) labels (16,)\n"
     "a batch: points (8, 2) labels (8,)\nbatches: 3\n"),
    ("exercise-batches", "`batches` does what the loader does", "same-as-loader",
     "the same songs in each batch: [True, True, True]\n"),
    ("read-curves", "In the first four epochs both losses fall", "curves",
     "epoch   1: seen 0.55  75%   new 0.59  71%\nepoch   4: seen 0.46  75%   new 0.52  78%\n"
     "epoch  20: seen 0.36  88%   new 0.57  76%\nepoch 200: seen 0.03 100%   new 1.71  63%\n"
     "<PictureFigure size 840x320 with 2 Axes>"),
    ("rule-words", "It was 82 % here", "rule",
     "the rule is right at 82% of the new songs\nmoods among the 40 songs: 6\n"),
    ("drag-words", "No better than a coin, and the same on both", "one-neuron", "seen 52%, new 49%\n"),
    ("exercise-table-words", "Here the tempo lies around 120", "diary",
     "142, -12.6, no\n161, -15.2, no\n107, -18.9, yes\n112, -7.5, no\n"),
]  # fmt: skip
PARTED = "np.array(history)[:, [0, 2]]"
GAINS = "[100 * (in_time - by_heart) for by_heart, in_time in friends]"
#: What the net of the sliders gets right, of its songs and of new ones.
SHARE = (
    "(lambda songs, neurons: [judge(quickly(neurons, SongSet(pool.points[:songs], pool.likes[:songs])), x)[1]"
    " for x in (DataLoader(SongSet(pool.points[:songs], pool.likes[:songs]), 400), new_loader)])"
)
#: Of how many moods a net says the opposite of the rule, too.
MOODS = (
    "(lambda net: (net(ndl.Tensor(seen.points[seen.moods])).numpy().argmax(1) == seen.likes[seen.moods])"
    ".sum())"
)

TRUE = [
    ("title", "about 100 % of the songs it has seen, and about 63 % of new ones",
     "f'{history[-1][1]:.0%} {history[-1][3]:.0%}' == '100% 63%'"),
    ("hook", "two hidden layers of 64 neurons",
     "network()[0].weight.shape == (2, 64) and network()[2].weight.shape == (64, 64)"),
    ("hook", "both stretched to lie between −1 and 1", "abs(seen.points).max() <= 1"),
    ("exercise-songs", "every square stands on orange and every dot on blue",
     "judge(net, seen_loader)[1] == 1"),
    ("exercise-songs", "more than a third is wrong", "judge(net, new_loader)[1] < 2 / 3"),
    ("exercise-songs", "4,482 numbers", "sum(p.numpy().size for p in model.parameters()) == 4482"),
    ("train-words", "Here is the net again", "judge(net, new_loader)[1] == history[-1][3]"),
    ("read-curves", "In the first four epochs both losses fall", f"({PARTED}[3] < {PARTED}[0] - 0.05).all()"),
    ("read-curves", "Then they part", f"{PARTED}[:, 1].argmin() == 3"),
    ("read-curves", "The blue one goes on towards 0", "history[-1][0] < 0.05"),
    ("read-curves", "In the end it is above 0.69, which is log 2", "history[-1][2] > np.log(2) > 0.69"),
    ("loop-solution", "`run_epoch` in `needle.apps.training` is this loop, for both",
     "(lambda one, other: abs(one.loss - other[0]) < 1e-5 and one.accuracy == other[1])"
     "(__import__('needle.apps.training').apps.training.run_epoch(new_loader, model, loss_fn), "
     "judge(model, new_loader))"),
    ("rule-words", "About 80 % is all that anybody can reach",
     "abs(lecture.ratings(100000, np.random.default_rng(0)).moods.mean() - 0.2) < 0.01"),
    ("moments-words", "has found the corners, and ignores the moods",
     f"(snapshot.load_state_dict(moments[4]), {MOODS}(snapshot))[1] == 1"),
    ("moments-words", "until every ring is on its own side",
     f"(snapshot.load_state_dict(moments[200]), {MOODS}(snapshot))[1] == 6"),
    ("moments-words", "is to keep the net of epoch 4", "best == 4"),
    ("three-sets-words", "From 63 % to 78 %, in about an eighth of the time",
     "f'{history[-1][3]:.0%} {judge(stopped, new_loader)[1]:.0%}' == '63% 78%' and last * 8 <= 200"),
    ("three-sets-words", "of what it has seen: 75 %", "judge(stopped, seen_loader)[1] == 0.75"),
    ("three-sets-words", "among 24 epochs you took the one", "last == 24 and stop(losses, 20) == (4, 24)"),
    ("three-sets-words", "It has given up five of the six moods", f"{MOODS}(stopped) == 1"),
    ("drag-read", "100 % of what it saw and 60 % of the rest",
     f"['{{:.0%}}'.format(s) for s in {SHARE}(20, 32)] == ['100%', '60%']"),
    ("drag-read", "From 40 songs on, each move to the right makes the gap smaller",
     "(lambda gaps: all(a > b for a, b in zip(gaps, gaps[1:])) and gaps[-1] < 0.05)"
     f"([(lambda s: s[0] - s[1])({SHARE}(n, 32)) for n in (40, 80, 160, 320)])"),
    ("drag-read", "4 neurons are the best of the five, and get 64 %",
     f"(lambda new: max(new, key=new.get) == 4 and f'{{new[4]:.0%}}' == '64%')"
     f"({{n: {SHARE}(20, n)[1] for n in (32, 8, 4, 2, 1)}})"),
    ("drag-read", "With one neuron, both numbers are bad", f"max({SHARE}(20, 1)) < 0.66"),
    ("drag-read", "if not in every step, but mostly because the first number falls",
     "(lambda many, few, fewer, one: many[0] - many[1] > few[0] - few[1] > one[0] - one[1] "
     "and few[0] - few[1] < fewer[0] - fewer[1] and many[0] - one[0] > 3 * (many[1] - one[1]))"
     f"(*({SHARE}(20, n) for n in (32, 4, 2, 1)))"),
    ("drag-read", "Small weights make small scores",
     "abs(decayed(ndl.Tensor(seen.points)).numpy()).max() < 1 "
     "< 9 < abs(model(ndl.Tensor(seen.points)).numpy()).max()"),
    ("predict-many", "with jitter",
     f"abs(judge(jittered, seen_loader)[1] - 0.8) < 0.05 and {MOODS}(jittered) == 1"),
    ("test-read", "Only the net with 400 songs came closer to the rule",
     "sorted(result, key=result.get)[-3:] == ['stopped', '400 songs', 'the rule']"),
    ("test-read", "Are 14 points typical?",
     "round(100 * (result['stopped'] - result['by heart'])) == 14 "
     "and result['by heart'] == min(result.values()) and f\"{result['stopped']:.0%}\" == '77%'"),
    ("friends-read", "Stopping in time helped with all five, but by 1 to 8 points, and not by 14",
     f"(round(min({GAINS})), round(max({GAINS}))) == (1, 8) and len(friends) == 5"),
    ("exercise-table-words", "the tempo lies around 120 and the loudness around −12",
     "(abs(np.mean([[float(x) for x in line.split(',')[:2]] for line in new_text.splitlines()], axis=0) "
     "- [120, -12]) < [3, 0.5]).all()"),
]  # fmt: skip
