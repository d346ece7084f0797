"""Lecture 14: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

MOMENTUM = (
    "class Momentum(ndl.optim.Optimizer):\n"
    "    def __init__(self, params, lr=0.01, momentum=0.9):\n"
    "        super().__init__(params, lr=lr, momentum=momentum)\n"
    "    def rule(self, p, grad, state, t, lr, momentum):\n"
)
ADAM = (
    "class Adam(ndl.optim.Optimizer):\n"
    "    def __init__(self, params, lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8):\n"
    "        super().__init__(params, lr=lr, beta1=beta1, beta2=beta2, eps=eps)\n"
    "    def rule(self, p, grad, state, t, lr, beta1, beta2, eps):\n"
    "        m = beta1 * state.get('m', grad * 0) + (1 - beta1) * {g}\n"
    "        v = beta2 * state.get('v', grad * 0) + (1 - beta2) * {g2}\n"
    "        state.update(m=m, v=v)\n"
    "        {m_hat} = m / {one}\n"
    "        {v_hat} = v / {two}\n"
    "        return p - lr * m / {by}"
)
NORM = (
    "class BatchNorm(ndl.nn.Module):\n"
    "    def __init__(self, dim):\n"
    "        self.weight = ndl.nn.Parameter(np.ones(dim))\n"
    "        self.bias = ndl.nn.Parameter(np.zeros(dim))\n"
    "        self.running_mean = ndl.Tensor(np.zeros(dim), requires_grad=False)\n"
    "        self.running_var = ndl.Tensor(np.ones(dim), requires_grad=False)\n"
    "    def forward(self, x):\n"
    "        mu, var = self.running_mean, self.running_var\n"
    "        if self.training:\n"
    "            mu = {mu}\n"
    "            var = ((x - mu) * (x - mu)).mean({axes})\n"
    "            {follow}\n"
    "        return {end}"
)
FOLLOW = (
    "self.running_mean = self.running_mean * 0.9 + {mu} * 0.1; "
    "self.running_var = self.running_var * 0.9 + {var} * 0.1"
)
BLOCK = (
    "def residual_block(dim, hidden, rng):\n"
    "    nn = ndl.nn\n"
    "    a = nn.Linear(dim, hidden, rng=rng)\n"
    "    b = nn.Linear(hidden, dim, rng=rng)\n"
    "    last = nn.BatchNorm1d(dim)\n"
    "    {start}\n"
    "    branch = nn.Sequential({branch})\n"
    "    return {block}"
)


def an_adam(**changed: str) -> str:
    """Adam written out, with something changed in it."""
    usual = {
        "g": "grad", "g2": "grad ** 2", "m_hat": "m", "v_hat": "v", "one": "(1 - beta1 ** t)",
        "two": "(1 - beta2 ** t)", "by": "(v ** 0.5 + eps)",
    }  # fmt: skip
    return ADAM.format(**usual | changed)


def a_norm(mean: str = "mu.detach()", var: str = "var.detach()", **changed: str) -> str:
    """BatchNorm written out, with something changed in it."""
    usual = {
        "mu": "x.mean(0)", "axes": "0", "follow": FOLLOW.format(mu=mean, var=var),
        "end": "self.weight * ((x - mu) / (var + 1e-5) ** 0.5) + self.bias",
    }  # fmt: skip
    return NORM.format(**usual | changed)


def a_block(**changed: str) -> str:
    """A residual block written out, with something changed in it."""
    usual = {
        "start": "last.weight.data = ndl.init.zeros(dim)",
        "branch": "a, nn.BatchNorm1d(hidden), nn.ReLU(), b, last",
        "block": "nn.Sequential(nn.Residual(branch), nn.ReLU())",
    }
    return BLOCK.format(**usual | changed)


SHOWN = [
    ("exercise-first-weights", "10⁹ times *smaller*", "ten-times", "the scores are 1e+09 times larger\n"),
    (
        "drag-intro",
        "A factor of √2 in each layer, and ten layers make it 32.",
        "sizes",
        "xavier_normal: std 0.10, your formula: 0.10\nkaiming_normal: std 0.14, your formula: 0.14\n"
        "after ten layers: 1/36 with Xavier, 0.9 with Kaiming\n<PictureFigure size 500x330 with 1 Axes>",
    ),
    ("exercise-momentum", "Further away with each step.", "over", "-1.5\n2.25\n-3.375\n5.0625\n"),
    ("adam", "The tiny ε keeps you", "first-step", "array([-0.1, -0.1], dtype=float32)"),
    (
        "no-winner",
        "Here Adam takes three times as many steps as before.",
        "turned-valley",
        "          straight   turned\nSGD            169      169\nmomentum        51       51\n"
        "Adam            46      140\n",
    ),
    (
        "exercise-batch-norm",
        "In training, a batch of one is wiped out.",
        "single",
        "in training: [[0. 0. 0.]]\nin use:      [[ 4.74 -1.9   8.54]]\n",
    ),
]

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
    (
        "hook",
        "their mean is 0 and a typical one is about 1",
        "abs(X.mean()) < 1e-3 and abs(size_of(X) - 1) < 1e-3",
    ),
    (
        "hook",
        "only that all its first weights are ten times larger",
        "all(np.allclose(10 * a.numpy(), b.numpy()) for a, b in zip(*(n.parameters() for n in PARTS)))",
    ),
    (
        "what-a-layer-does",
        "One reads most digits. The other has learned nothing",
        "TRAINED(1)[0] > 0.85 and TRAINED(10)[0] < 0.11",
    ),
    (
        "what-a-layer-does",
        "it says 0 to every picture, and one digit in ten *is* a 0",
        "np.isnan(TRAINED(10)[1](pictures).numpy()).all() and 0.09 < (test_y == 0).mean() < 0.11",
    ),
    (
        "exercise-first-weights",
        "One step throws the weights so far away that the next loss is `nan`",
        "(lambda net, sgd, loss: (loss(net).backward(), sgd(net).step(), "
        "np.isfinite(size_of(net[0].weight)) and size_of(net[0].weight) > 1000 and "
        "np.isnan(loss(net).item()))[2])"
        "(deep_net(10), lambda net: ndl.optim.SGD(net.parameters(), lr=0.1), "
        "lambda net: nn.SoftmaxLoss()(net(ndl.Tensor(X[:50])), y[:50]))",
    ),
    (
        "exercise-first-weights",
        "the scores are 10⁹ times *smaller*, nearly the same for every picture, and nothing moves",
        "(lambda share, net: share < 0.15 and "
        "max(abs(a.numpy() - b.numpy()).max() for a, b in "
        "zip(net.parameters(), deep_net(0.1).parameters())) < 1e-6)(*TRAINED(0.1))",
    ),
    (
        "exercise-first-weights",
        "A ReLU sets about half of the numbers to 0",
        "(lambda x: abs(size_of(np.maximum(x, 0)) ** 2 - 0.5) < 0.02)"
        "(np.random.default_rng(0).normal(size=10000))",
    ),
    (
        "library-weights",
        "The uniform ones draw from an interval, with the same standard deviation",
        "all(abs(getattr(ndl.init, kind + '_uniform')(100, 5000, rng=0).numpy().std() - "
        "getattr(ndl.init, kind + '_normal')(100, 5000, rng=0).numpy().std()) < 1e-3 "
        "for kind in ('xavier', 'kaiming'))",
    ),
    (
        "library-weights",
        "`nn.Linear` begins with `kaiming_uniform`",
        "np.array_equal(nn.Linear(64, 100, rng=3).weight.numpy(), "
        "ndl.init.kaiming_uniform(64, 100, rng=3).numpy())",
    ),
    ("drag-intro", "ten layers make it 32", "round(2 ** (10 / 2)) == 32"),
    (
        "drag-intro",
        "At 1, both lines are nearly level",
        "all(max(line) < 5 * min(line) for line in DRAGGED(1.0, 'relu'))",
    ),
    (
        "saturated",
        "the activations double from layer to layer, and training ends in `nan`",
        "(lambda line: (abs(line[1:] / line[:-1] - 2) < 0.4).all())(DRAGGED(2.0, 'relu')[0]) and "
        "np.isnan(TRAINED(2)[1](pictures).numpy()).all()",
    ),
    ("saturated", "With tanh the activations cannot grow beyond 1", "max(DRAGGED(30.0, 'tanh')[0][:8]) <= 1"),
    (
        "saturated",
        "From right to left they get about three times larger with each layer",
        "(lambda line: 2.5 < (line[0] / line[7]) ** (1 / 7) < 3.5)(DRAGGED(10.0, 'tanh')[1])",
    ),
    (
        "valley",
        "Nearly nine of ten outputs of each tanh are stuck at −1 or 1",
        "all(0.86 < (abs(deep_net(10, nn.Tanh)[:k](pictures).numpy()) > 0.97).mean() < 0.91 "
        "for k in (2, 4, 6))",
    ),
    (
        "saturated",
        "At a half they halve, and the network learns little",
        "(lambda line: (abs(line[1:8] / line[:7] - 0.5) < 0.1).all())(DRAGGED(0.5, 'relu')[0]) and "
        "TRAINED(0.5)[0] < 0.6",
    ),
    (
        "valley",
        "multiply them by about 14, which is 10 · √2, and the units let a fifth of that through",
        "(lambda net: all(13.5 < 10 * size_of(net[k + 1].weight) < 14.5 and "
        "0.18 < size_of(1 - net[: k + 1](pictures).numpy() ** 2) < 0.21 for k in range(1, 15, 2)))"
        "(deep_net(10, nn.Tanh))",
    ),
    (
        "valley",
        "it is a hundred times steeper across than along",
        "valley(0, 1) == 100 * valley(1, 0)",
    ),
    (
        "exercise-momentum",
        "the rate has to stay below 2/100",
        "abs(1 - 0.0201 * 100) > 1 > abs(1 - 0.0199 * 100)",
    ),
    (
        "exercise-momentum",
        "A step multiplies b by 1 − 100 · lr",
        "abs(b.item() - (1 - 100 * 0.025) ** 4) < 1e-4",
    ),
    (
        "adam",
        "after t steps, they add up to 1 − βᵗ",
        "all(abs(sum(0.1 * 0.9**k for k in range(t)) - (1 - 0.9**t)) < 1e-9 for t in range(1, 9))",
    ),
    (
        "momentum-solution",
        "`ndl.optim.SGD(params, lr, momentum=0.9)` does the same",
        "np.allclose(OURS(lambda p: Momentum(p, lr=0.1)), "
        "OURS(lambda p: ndl.optim.SGD(p, lr=0.1, momentum=0.9)))",
    ),
    (
        "momentum-solution",
        "Then u is ten times larger for a momentum of 0.9, and you take a rate ten times smaller",
        WITH_TORCH + "np.allclose(OURS(lambda p: Momentum(p, lr=0.1)), "
        "TORCHS(TORCH, lambda torch, p: torch.optim.SGD(p, lr=0.01, momentum=0.9)), atol=1e-5)",
    ),
    (
        "adam",
        "By default β₁ is 0.9 and β₂ is 0.999",
        "(lambda o: (o.beta1, o.beta2))(ndl.optim.Adam([nn.Parameter([1.0])])) == (0.9, 0.999)",
    ),
    (
        "adam-rule-solution",
        "`ndl.optim.Adam` gives the same numbers, and so does PyTorch's",
        "np.allclose(OURS(lambda p: Adam(p, lr=0.1)), OURS(lambda p: ndl.optim.Adam(p, lr=0.1)), atol=1e-6) "
        "and (" + WITH_TORCH + "np.allclose(OURS(lambda p: Adam(p, lr=0.1)), "
        "TORCHS(TORCH, lambda torch, p: torch.optim.Adam(p, lr=0.1)), atol=1e-5))",
    ),
    (
        "race-words",
        "SGD is not even halfway after 40 steps",
        "walk('SGD', 40)[-1][0] < -0.9 and "
        "all(walk(name, 40)[-1][0] > -0.3 for name in ('momentum', 'Adam'))",
    ),
    (
        "race-words",
        "Momentum swings from side to side, less and less",
        "sum(a[1] * b[1] < 0 for a, b in zip(walk('momentum', 40), walk('momentum', 40)[1:])) >= 6 and "
        "max(abs(b) for a, b in walk('momentum', 40)[20:]) < 0.12",
    ),
    (
        "exercise-batch-norm",
        "its running mean has gone only a tenth of the way from 0",
        "np.allclose(layer.running_mean.numpy(), 0.1 * one.numpy()[0])",
    ),
    (
        "batch-norm-solution",
        "`state_dict()` finds them",
        "'running_mean' in BatchNorm(2).state_dict() and len(BatchNorm(2).parameters()) == 2",
    ),
    (
        "batch-norm-solution",
        "The library's `nn.BatchNorm1d` does the same",
        "np.allclose(BatchNorm(64)(pictures).numpy(), nn.BatchNorm1d(64)(pictures).numpy(), atol=1e-4)",
    ),
    (
        "layer-norm",
        "Both learn. The large one is slower",
        "(lambda large, small: 0.5 < large < small - 0.05 and small > 0.85)"
        "(*[train(net, ndl.optim.SGD(net.parameters(), lr=0.1)) "
        "for net in (deep_net(scale, norm=nn.BatchNorm1d) for scale in (10, 0.1))])",
    ),
    (
        "layer-norm",
        "BatchNorm makes the outputs independent of the scale of the weights",
        "np.allclose(*[deep_net(scale, norm=nn.BatchNorm1d)[:2](pictures).numpy() for scale in (1, 10)], "
        "atol=1e-3)",
    ),
    (
        "layer-norm",
        "the first steps are about equally long in both networks",
        "(lambda steps: all(0.5 < a / b < 2 for a, b in zip(*steps)))([FIRST_STEPS(k) for k in (10, 0.1)])",
    ),
    (
        "layer-norm",
        "mean and variance of each *row*",
        "np.allclose(nn.LayerNorm1d(64)(pictures).numpy().mean(axis=1), 0, atol=1e-4)",
    ),
    (
        "exercise-residual",
        "more than a hundred million times smaller than what came back to the last",
        "ways['plain'][-1] > 1e8 * ways['plain'][0] and ways['residual'][0] > ways['residual'][-1]",
    ),
    (
        "exercise-residual",
        "each branch gives 0 at first",
        "np.allclose(residual_block(64, 32, np.random.default_rng(0))(pictures).numpy(), "
        "np.maximum(pictures.numpy(), 0))",
    ),
    (
        "residual-solution",
        "the gradient of the last weight is not 0, so it moves in the first step",
        "(lambda block: (((block(pictures) - 1) ** 2).sum().backward(), "
        "[bool(abs(p.grad.numpy()).max() > 0) for p in block.parameters()])[1])"
        "(residual_block(64, 32, np.random.default_rng(0))) == [False] * 6 + [True] * 2",
    ),
    ("open-block", "The branch has a Dropout, too", "'Dropout' in str(ResidualBlock(32, 16)[0])"),
    ("pay-off", "Ten times through the 1,442 digits", "len(X) == 1442 and -(-1442 // 50) == 29"),
    ("pay-off", "with a rate that falls to 0", "schedule.t == 290 and adam.lr < 1e-9"),
    ("what-is-left", "More than 97 of 100", "right > 0.97 and wrong.sum() <= 10"),
    ("title", "reads more than 97 of 100 new digits", "right > 0.97"),
]
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

NEAR_MISSES = {
    "xavier_std": [
        ("def xavier_std(fan_in, fan_out):\n    return 1 / ((fan_in + fan_out) / 2)", "This is the variance"),
        ("def xavier_std(fan_in, fan_out):\n    return fan_in ** -0.5", "does not look at the backward pass"),
        ("def xavier_std(fan_in, fan_out):\n    return fan_out ** -0.5", "does not look at the forward pass"),
        (
            "def xavier_std(fan_in, fan_out):\n    return (fan_in + fan_out) ** -0.5",
            "Their mean is half of it",
        ),
        (
            "def xavier_std(fan_in, fan_out):\n    return np.mean([n ** -0.5 for n in (fan_in, fan_out)])",
            "the mean of two standard deviations",
        ),
        (
            "def xavier_std(fan_in, fan_out):\n    limit = np.sqrt(6 / (fan_in + fan_out))\n    return limit",
            "where the *uniform* distribution",
        ),
    ],
    "kaiming_std": [
        ("def kaiming_std(fan_in):\n    return 2 / fan_in", "This is the variance"),
        ("def kaiming_std(fan_in):\n    return fan_in ** -0.5", "without a ReLU"),
        ("def kaiming_std(fan_in):\n    return 2 * np.sqrt(1 / fan_in)", "You double the standard deviation"),
        ("def kaiming_std(fan_in):\n    return np.sqrt(0.5 / fan_in)", "Yours are smaller"),
        ("def kaiming_std(fan_in):\n    return np.sqrt(2) / fan_in", "Both are under the root"),
    ],
    "Momentum": [
        (
            MOMENTUM + "        u = state.get('u', 0)\n        u = momentum * u + (1 - momentum) * grad\n"
            "        return p - lr * u",
            "never put the new u into `state`",
        ),
        (
            MOMENTUM + "        state['u'] = momentum * state.get('u', 0) + grad\n"
            "        return p - lr * state['u']",
            "You add the whole gradient",
        ),
        (
            MOMENTUM + "        u = state.setdefault('u', 0)\n"
            "        state['u'] = (1 - momentum) * u + momentum * grad\n        return p - lr * state['u']",
            "The two shares are swapped",
        ),
        (
            MOMENTUM + "        self.v = momentum * getattr(self, 'v', 0) + (1 - momentum) * grad\n"
            "        return p - lr * self.v",
            "You keep u in the optimiser itself",
        ),
        (
            MOMENTUM + "        step = lr * state.get('u', 0) + grad * 0\n"
            "        state['u'] = momentum * state.get('u', 0) + (1 - momentum) * grad\n"
            "        return p - step",
            "along the *old* u",
        ),
        (
            MOMENTUM + "        state['u'] = momentum * state['u'] + (1 - momentum) * grad\n"
            "        return p - lr * state['u']",
            "Before the first step",
        ),
        (
            MOMENTUM + "        u = state['u'] = (1 - momentum) * grad + momentum * state.get('u', grad)\n"
            "        return p - lr * u",
            "begins with the first gradient",
        ),
    ],
    "Adam": [
        (an_adam(one="1", two="1"), "You use m and v as they are"),
        (an_adam(one="1"), "You correct v and not m"),
        (an_adam(two="1"), "You correct m and not v"),
        (an_adam(two="(1 - beta1 ** t)"), "You correct v with beta1"),
        (an_adam(one="(1 - beta1) ** t", two="(1 - beta2) ** t"), "Only beta is raised"),
        (an_adam(g2="m ** 2"), "You square m"),
        (an_adam(by="(v + eps)"), "Take the root of v̂"),
        (an_adam(by="(v + eps) ** 0.5"), "eps stands outside of the root"),
        (an_adam(one="(1 - beta1)", two="(1 - beta2)"), "The correction fades"),
        (an_adam(by="np.sqrt(v)"), "NumPy's functions do not work"),
        (an_adam(by="(v ** 0.5)"), "Where is eps?"),
        (an_adam(one="(1 - beta1 ** (t + 1))", two="(1 - beta2 ** (t + 1))"), "Do not add 1 to it"),
        (
            an_adam(m_hat="m = state['m']", v_hat="v = state['v']"),
            "You put the corrected means back",
        ),
        (an_adam(one="(1 - beta1 ^ t)", two="(1 - beta2 ^ t)"), "In Python a power is `**`"),
        (an_adam(g2="grad ^ 2"), "In Python a power is `**`"),
        (an_adam().replace("m=m, v=v", "m=m"), "You keep m and not v"),
        (an_adam().replace("m=m, v=v", "v=v"), "You keep v and not m"),
        (an_adam().replace("state.get('v'", "state.get('m'"), "need two places"),
        (an_adam(by="v ** 0.5 + eps"), "A bracket is missing"),
        (an_adam(by="(ndl.sqrt(v) + eps)"), "operators such as `ndl.sqrt` refuse them"),
    ],
    "BatchNorm": [
        (
            a_norm(
                mu="x.mean(1).reshape((x.shape[0], 1))",
                axes="1).reshape((x.shape[0], 1)",
                mean="mu.detach().mean()",
                var="var.detach().mean()",
            ),
            "You normalise each row",
        ),
        (a_norm(mu="x.mean()", axes=""), "one mean for all features"),
        (a_norm(end="self.weight * ((x - mu) / (var + 1e-5)) + self.bias"), "You divide by the variance"),
        (a_norm(mean="mu", var="var"), "keeps its history"),
        (a_norm(mu="x.mean(0).detach()", axes="0).detach("), "What comes out is right, but its gradient"),
        (a_norm(follow="pass"), "stay as they were"),
        (a_norm(end="(x - mu) / (var + 1e-5) ** 0.5"), "At the end comes what is learned"),
        (a_norm().replace("if self.training", "if True"), "You never ask for `self.training`"),
        (a_norm(mu="x.mean(axis=0)"), "Tensors say `axes=`"),
        (a_norm(mu="x.mean(1)", axes="1"), "one number for each row"),
        (a_norm().replace("(x - mu) * (x - mu)", "x - mu"), "above and below cancel"),
        (a_norm().replace("(x - mu) * (x - mu)", "x * x"), "Subtract the mean before you square"),
        (a_norm().replace(" * 0.9 +", " +"), "lose nothing"),
        (a_norm(axes="0).detach("), "your variance has no history"),
        (a_norm(end="self.weight * ((x - mu) / (var + 1e-5) ** 0.5 + self.bias)"), "You add the bias before"),
        (a_norm(end="(x - mu) / (var + 1e-5) ** 0.5 * (self.weight + self.bias)"), "No bracket around"),
        (a_norm(end="(x - mu) / (var + 1e-5) ** 0.5 * self.bias + self.weight"), "are swapped"),
        (a_norm(end="self.weight * ((x - mu) / (var + 1e-5 ** 0.5)) + self.bias"), "A bracket is missing"),
        (a_norm().replace("if self.training", "if False"), "the running mean and variance in training"),
        (a_norm(end="(x - mu) / var ** 0.5 + 1e-5 * self.weight + self.bias"), "only 1e-5 is multiplied"),
        (a_norm(end="self.weight * (x - mu / (var + 1e-5) ** 0.5) + self.bias"), "before subtracting"),
        (a_norm(mu="x.mean(0).detach()"), "the mean is detached"),
        (a_norm(end="(x - mu) / np.sqrt(var + 1e-5)"), "NumPy's functions refuse Tensors"),
        (
            a_norm().replace("        mu, var = self.running_mean, self.running_var\n", ""),
            "After `eval()` this name has no value",
        ),
    ],
    "Residual": [
        (
            "class Residual(ndl.nn.Module):\n    def __init__(self, fn):\n        self.fn = fn\n"
            "    def forward(self, x):\n        return self.fn(x)",
            "This is only the branch",
        ),
        (
            "class Residual(ndl.nn.Module):\n    def __init__(self, fn):\n        self.fn = fn\n"
            "    def forward(self, x):\n        return x * self.fn(x)",
            "You multiply the two",
        ),
        (
            "class Residual(ndl.nn.Module):\n    def __init__(self, fn):\n        self.fn = fn\n"
            "    def forward(self, x):\n        h = self.fn(x)\n        return x + self.fn(h)",
            "You call the branch twice",
        ),
        (
            "class Residual(ndl.nn.Module):\n    def __init__(self, fn):\n        self.fn = fn\n"
            "    def forward(self, x):\n        return ndl.Tensor(x.numpy(), dtype=x.dtype) + self.fn(x)",
            "the input is detached",
        ),
    ],
    "residual_block": [
        (a_block(start="pass"), "The last BatchNorm must begin with the weight 0"),
        (a_block(start="last.bias.data = ndl.init.zeros(dim)"), "The last BatchNorm must begin"),
        (a_block(start="last.weight = ndl.init.zeros(dim)"), "must stay a Parameter"),
        (
            a_block(
                start="norm, last.weight.data = nn.BatchNorm1d(hidden), ndl.init.zeros(dim)\n"
                "    norm.weight.data = ndl.init.zeros(hidden)",
                branch="a, norm, nn.ReLU(), b, last",
            ),
            "Both BatchNorms begin",
        ),
        (
            a_block(
                start="norm = nn.BatchNorm1d(hidden)\n    norm.weight.data = ndl.init.zeros(hidden)",
                branch="a, norm, nn.ReLU(), b, last",
            ),
            "the *first* BatchNorm",
        ),
        (a_block(block="nn.ReLU(nn.Residual(branch))"), "takes nothing"),
        (a_block(block="nn.Residual(*branch)"), "`Residual` takes one module"),
        (a_block(block="[nn.Residual(branch), nn.ReLU()]"), "A list is not a module"),
        (a_block(branch="a, nn.BatchNorm1d(hidden), nn.ReLU(), b"), "The last BatchNorm is not"),
        (
            a_block().replace("hidden, rng=rng", "hidden"),
            "Give both of them `rng=rng`",
        ),
        (a_block(block="nn.Residual(branch)"), "A ReLU comes after the sum"),
        (a_block(block="nn.Sequential(branch, nn.ReLU())"), "Nothing is added to the input"),
        (a_block(branch="a, nn.BatchNorm1d(hidden), b, last"), "The ReLU inside the branch is missing"),
        (a_block(branch="a, nn.ReLU(), nn.BatchNorm1d(hidden), b, last"), "stands before the BatchNorm"),
        (
            a_block(start="b.weight.data *= 0; b.bias.data *= 0"),
            "You set the last *Linear* to 0",
        ),
    ],
}
