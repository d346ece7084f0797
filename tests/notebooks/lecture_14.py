"""Lecture 14: what its prose claims, and what proves it."""

from __future__ import annotations

SHOWN = [
    ("exercise-first-weights", "10⁹ times *smaller*", "ten-times", "the scores are 1e+09 times larger\n"),
    ("drag-intro", "A factor of √2 in each layer, and ten layers make it 32.", "sizes",
     "xavier_normal: std 0.10, your formula: 0.10\nkaiming_normal: std 0.14, your formula: 0.14\nafter ten "
     "layers: 1/36 with Xavier, 0.9 with Kaiming\n<PictureFigure size 500x330 with 1 Axes>"),
    ("exercise-momentum", "Further away with each step.", "over", "-1.5\n2.25\n-3.375\n5.0625\n"),
    ("adam", "The tiny ε keeps you", "first-step", "array([-0.1, -0.1], dtype=float32)"),
    ("no-winner", "Here Adam takes three times as many steps as before.", "turned-valley",
     "          straight   turned\nSGD            169      169\nmomentum        51       51\nAdam          "
     "  46      140\n"),
    ("exercise-batch-norm", "In training, nothing is left of a batch of one row.", "single",
     "in training: [[0. 0. 0.]]\nin use:      [[ 4.74 -1.9   8.54]]\n"),
]  # fmt: skip

DRAGGED = "(lambda scale, bend: [line.get_ydata() for line in layers(scale, bend).lines[:2]])"
PARTS = "[deep_net(scale) for scale in (1, 10)]"
#: What training leaves of a network with weights of this scale.
TRAINED = (
    "(lambda scale: (lambda net: (train(net, ndl.optim.SGD(net.parameters(), lr=0.1)), net))"
    "(deep_net(scale)))"
)
#: How large the gradients of its hidden layers are in the first step, with BatchNorm.
FIRST_STEPS = (
    "(lambda scale: (lambda net: (nn.SoftmaxLoss()(net(ndl.Tensor(X[:50])), y[:50]).backward(), "
    "[size_of(p.grad) for p in net.parameters() if p.ndim == 2])[1])(deep_net(scale, norm=nn.BatchNorm1d)))"
)
#: Five steps of an optimiser of this library along given gradients, and of one of torch.
GRADS = "[[1.0, 20.0], [2.0, -16.0], [-1.0, 8.0], [0.5, 4.0], [3.0, 0.01]]"
OURS = (
    "(lambda make: (lambda p: (lambda o: [(setattr(p, 'grad', ndl.Tensor(g)), o.step(), "
    f"p.numpy().tolist())[2] for g in {GRADS}])(make([p])))(nn.Parameter([1.0, -1.0])))"
)
TORCHS = (
    "(lambda torch, make: (lambda p: (lambda o: [(setattr(p, 'grad', torch.tensor(g)), o.step(), "
    f"p.detach().tolist())[2] for g in {GRADS}])(make(torch, [p])))"
    "(torch.tensor([1.0, -1.0], requires_grad=True)))"
)
WITH_TORCH = "__import__('importlib.util').util.find_spec('torch') is None or "
TORCH = "__import__('torch')"

TRUE = [
    ("hook", "eight hidden layers of 100 units", "sum(isinstance(p, nn.ReLU) for p in deep_net(1)) == 8"),
    ("hook", "their mean is 0 and a typical one is about 1",
     "abs(X.mean()) < 1e-3 and abs(size_of(X) - 1) < 1e-3"),
    ("hook", "but all its first weights are ten times larger",
     "all(np.allclose(10 * a.numpy(), b.numpy()) for a, b in zip(*(n.parameters() for n in PARTS)))"),
    ("what-a-layer-does", "One reads most digits. The other has learned nothing",
     "TRAINED(1)[0] > 0.85 and TRAINED(10)[0] < 0.11"),
    ("what-a-layer-does", "it answers 0 for every picture, and one digit in ten *is* a 0",
     "np.isnan(TRAINED(10)[1](pictures).numpy()).all() and 0.09 < (test_y == 0).mean() < 0.11"),
    ("exercise-first-weights", "One step throws the weights so far away that the next loss is `nan`",
     "(lambda net, sgd, loss: (loss(net).backward(), sgd(net).step(), np.isfinite(size_of(net[0].weight)) "
     "and size_of(net[0].weight) > 1000 and np.isnan(loss(net).item()))[2])(deep_net(10), lambda net: "
     "ndl.optim.SGD(net.parameters(), lr=0.1), lambda net: nn.SoftmaxLoss()(net(ndl.Tensor(X[:50])), "
     "y[:50]))"),
    ("exercise-first-weights",
     "the scores are 10⁹ times *smaller*, nearly the same for every picture, and nothing moves",
     "(lambda share, net: share < 0.15 and max(abs(a.numpy() - b.numpy()).max() for a, b in "
     "zip(net.parameters(), deep_net(0.1).parameters())) < 1e-6)(*TRAINED(0.1))"),
    ("exercise-first-weights", "A ReLU sets about half of the numbers to 0",
     "(lambda x: abs(size_of(np.maximum(x, 0)) ** 2 - 0.5) < "
     "0.02)(np.random.default_rng(0).normal(size=10000))"),
    ("library-weights", "The uniform ones draw from an interval, with the same standard deviation",
     "all(abs(getattr(ndl.init, kind + '_uniform')(100, 5000, rng=0).numpy().std() - getattr(ndl.init, "
     "kind + '_normal')(100, 5000, rng=0).numpy().std()) < 1e-3 for kind in ('xavier', 'kaiming'))"),
    ("library-weights", "`nn.Linear` begins with `kaiming_uniform`",
     "np.array_equal(nn.Linear(64, 100, rng=3).weight.numpy(), ndl.init.kaiming_uniform(64, 100, "
     "rng=3).numpy())"),
    ("drag-intro", "ten layers make it 32", "round(2 ** (10 / 2)) == 32"),
    ("drag-intro", "At 1, both lines are nearly level",
     "all(max(line) < 5 * min(line) for line in DRAGGED(1.0, 'relu'))"),
    ("saturated", "the activations double from layer to layer, and training ends in `nan`",
     "(lambda line: (abs(line[1:] / line[:-1] - 2) < 0.4).all())(DRAGGED(2.0, 'relu')[0]) and "
     "np.isnan(TRAINED(2)[1](pictures).numpy()).all()"),
    ("saturated", "With tanh the activations cannot grow beyond 1", "max(DRAGGED(30.0, 'tanh')[0][:8]) <= 1"),
    ("saturated", "From right to left they get about three times larger with each layer",
     "(lambda line: 2.5 < (line[0] / line[7]) ** (1 / 7) < 3.5)(DRAGGED(10.0, 'tanh')[1])"),
    ("valley", "Nearly nine of ten outputs of each tanh are stuck at −1 or 1",
     "all(0.86 < (abs(deep_net(10, nn.Tanh)[:k](pictures).numpy()) > 0.97).mean() < 0.91 for k in (2, 4, "
     "6))"),
    ("saturated", "At a half they halve, and the network learns little",
     "(lambda line: (abs(line[1:8] / line[:7] - 0.5) < 0.1).all())(DRAGGED(0.5, 'relu')[0]) and "
     "TRAINED(0.5)[0] < 0.6"),
    ("valley", "multiply them by about 14, which is 10 · √2, and the units let a fifth of that through",
     "(lambda net: all(13.5 < 10 * size_of(net[k + 1].weight) < 14.5 and 0.18 < size_of(1 - net[: k + "
     "1](pictures).numpy() ** 2) < 0.21 for k in range(1, 15, 2)))(deep_net(10, nn.Tanh))"),
    ("valley", "a hundred times steeper across (b) than along (a)", "valley(0, 1) == 100 * valley(1, 0)"),
    ("exercise-momentum", "the rate has to stay below 2/100",
     "abs(1 - 0.0201 * 100) > 1 > abs(1 - 0.0199 * 100)"),
    ("exercise-momentum", "A step multiplies b by 1 − 100 · lr",
     "abs(b.item() - (1 - 100 * 0.025) ** 4) < 1e-4"),
    ("adam", "after t steps, they add up to 1 − βᵗ",
     "all(abs(sum(0.1 * 0.9**k for k in range(t)) - (1 - 0.9**t)) < 1e-9 for t in range(1, 9))"),
    ("momentum-solution", "`ndl.optim.SGD(params, lr, momentum=0.9)` does the same",
     "np.allclose(OURS(lambda p: Momentum(p, lr=0.1)), OURS(lambda p: ndl.optim.SGD(p, lr=0.1, "
     "momentum=0.9)))"),
    ("momentum-solution",
     "Then u is ten times larger for a momentum of 0.9, and you take a rate ten times smaller",
     WITH_TORCH + "np.allclose(OURS(lambda p: Momentum(p, lr=0.1)), "
     "TORCHS(TORCH, lambda torch, p: torch.optim.SGD(p, lr=0.01, momentum=0.9)), atol=1e-5)"),
    ("adam", "By default β₁ is 0.9 and β₂ is 0.999",
     "(lambda o: (o.beta1, o.beta2))(ndl.optim.Adam([nn.Parameter([1.0])])) == (0.9, 0.999)"),
    ("adam-rule-solution", "`ndl.optim.Adam` gives the same numbers, and so does PyTorch's",
     "np.allclose(OURS(lambda p: Adam(p, lr=0.1)), OURS(lambda p: ndl.optim.Adam(p, lr=0.1)), atol=1e-6) "
     "and (" + WITH_TORCH + "np.allclose(OURS(lambda p: Adam(p, lr=0.1)), "
     "TORCHS(TORCH, lambda torch, p: torch.optim.Adam(p, lr=0.1)), atol=1e-5))"),
    ("race-words", "SGD is not even halfway after 40 steps",
     "walk('SGD', 40)[-1][0] < -0.9 and all(walk(name, 40)[-1][0] > -0.3 for name in ('momentum', 'Adam'))"),
    ("race-words", "Momentum swings from side to side, less and less",
     "sum(a[1] * b[1] < 0 for a, b in zip(walk('momentum', 40), walk('momentum', 40)[1:])) >= 6 and "
     "max(abs(b) for a, b in walk('momentum', 40)[20:]) < 0.12"),
    ("exercise-batch-norm", "its running mean has gone only a tenth of the way from 0",
     "np.allclose(layer.running_mean.numpy(), 0.1 * one.numpy()[0])"),
    ("batch-norm-solution", "`state_dict()` finds them",
     "'running_mean' in BatchNorm(2).state_dict() and len(BatchNorm(2).parameters()) == 2"),
    ("batch-norm-solution", "The library's `nn.BatchNorm1d` does the same",
     "np.allclose(BatchNorm(64)(pictures).numpy(), nn.BatchNorm1d(64)(pictures).numpy(), atol=1e-4)"),
    ("layer-norm", "Both learn. The large one is slower", "(lambda large, small: 0.5 < large < small - "
     "0.05 and small > 0.85)(*[train(net, ndl.optim.SGD(net.parameters(), lr=0.1)) for net in "
     "(deep_net(scale, norm=nn.BatchNorm1d) for scale in (10, 0.1))])"),
    ("layer-norm", "BatchNorm makes the outputs independent of the scale of the weights",
     "np.allclose(*[deep_net(scale, norm=nn.BatchNorm1d)[:2](pictures).numpy() for scale in (1, 10)], "
     "atol=1e-3)"),
    ("layer-norm", "the first steps are about equally long in both networks",
     "(lambda steps: all(0.5 < a / b < 2 for a, b in zip(*steps)))([FIRST_STEPS(k) for k in (10, 0.1)])"),
    ("layer-norm", "mean and variance of each *row*",
     "np.allclose(nn.LayerNorm1d(64)(pictures).numpy().mean(axis=1), 0, atol=1e-4)"),
    ("exercise-residual", "more than a hundred million times smaller than what came back to the last",
     "ways['plain'][-1] > 1e8 * ways['plain'][0] and ways['residual'][0] > ways['residual'][-1]"),
    ("exercise-residual", "each branch gives 0 at first", "np.allclose(residual_block(64, 32, "
     "np.random.default_rng(0))(pictures).numpy(), np.maximum(pictures.numpy(), 0))"),
    ("residual-solution", "the gradient of the last weight is not 0, so it moves in the first step",
     "(lambda block: (((block(pictures) - 1) ** 2).sum().backward(), [bool(abs(p.grad.numpy()).max() > 0) "
     "for p in block.parameters()])[1])(residual_block(64, 32, np.random.default_rng(0))) == [False] * 6 + "
     "[True] * 2"),
    ("open-block", "The branch has a Dropout, too", "'Dropout' in str(ResidualBlock(32, 16)[0])"),
    ("pay-off", "Ten times through the 1,442 digits", "len(X) == 1442 and -(-1442 // 50) == 29"),
    ("pay-off", "with a rate that falls to 0", "schedule.t == 290 and adam.lr < 1e-9"),
    ("what-is-left", "More than 97 of 100", "right > 0.97 and wrong.sum() <= 10"),
    ("title", "reads more than 97 of 100 new digits", "right > 0.97"),
]  # fmt: skip
TRUE = [
    (
        cell,
        words,
        x.replace("DRAGGED", DRAGGED)
        .replace("PARTS", PARTS)
        .replace("TRAINED", TRAINED)
        .replace("FIRST_STEPS", FIRST_STEPS)
        .replace("OURS", OURS)
        .replace("TORCHS", TORCHS)
        .replace("TORCH,", TORCH + ","),
    )
    for cell, words, x in TRUE
]
