"""Lecture 14, modules, initialisers, optimisers: its exercises, and the usual mistakes in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import cycle
from typing import Any

import numpy as np
from hypothesis import strategies as st

import needle as ndl
from needle import nn, ops, optim

from .checking import Case, Lecture, case, drawn, is_tensor

WRITE = "This is the library's `{}`. Write your own, with operators such as `+` and `**`."

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade


def size_of(x: Any) -> float:
    """The root of the mean of the squares: how large a typical number in `x` is."""
    numbers = np.asarray(x.numpy() if is_tensor(x) else x, dtype="float64")
    return float(np.sqrt((numbers**2).mean()))


@cache
def named(kind: str) -> Any:
    """A kind of dict for what an answer does; a message calls it by the kind of answer that is wanted."""
    return type(kind, (dict,), {})


# --- 1 Xavier and Kaiming -----------------------------------------------------------------------------------

FANS = (8, 2, 3, 50, 100, 1)


@lecture.exercise(
    case(100, 100),
    case(64, 256),
    draws=drawn(FANS, FANS),
    otherwise="For 100 inputs and 100 outputs it is 0.1: take the mean of the two for n in 1 / √n.",
)
def xavier_std(fan_in, fan_out):
    return np.sqrt(2 / (fan_in + fan_out))


@lecture.exercise(
    case(100),
    case(64),
    draws=drawn((8, 2, 3, 50, 400, 1)),
    otherwise="For 200 inputs it is 0.1. The mean square of the outputs is fan_in · variance, and the ReLU "
    "leaves half of it: which variance makes that 1?",
)
def kaiming_std(fan_in):
    return np.sqrt(2 / fan_in)


# --- 2 and 3 Optimisers -------------------------------------------------------------------------------------

#: Gradients: always downhill, to and fro, of very different size, and none at all.
SLOPES = ((1, 2, 4, 3, 5), (1, 20, 2, -16, -1, 8, 0.5, 4), (1, -4, 2, 0.01, 3), (0, 1, 0, 0, 2, -1))
#: Learning rates of two parameters in four steps: the same, falling as with a schedule, or each its own.
RATES = ([[0.1, 0.1]] * 4, [[1, 1], [0.1, 0.1], [0.1, 0.1], [0.01, 0.01]], [[0.1, 0.2]] * 4)


def journey(
    widths: Sequence[int],
    slopes: Sequence[float] = SLOPES[0],
    lrs: Any = RATES[0],
    rests: bool = False,
    **options: float,
) -> Case:
    """A case: parameters of so many numbers, their gradients and learning rates in four steps, and the options.

    If the first parameter `rests`, it has no gradient in the second step.
    """
    starts, numbers = cycle((2.0, 3.0, -1.0)), cycle(slopes)
    parameters = [[next(starts) for _ in range(width)] for width in widths]
    gradients = [[[float(next(numbers)) for _ in range(width)] for width in widths] for _ in range(4)]
    rates = [lr[: len(widths)] for lr in lrs]
    if rests:
        gradients[1][0] = None  # type: ignore[call-overload]
    return case(parameters, gradients, rates, options)


def journeys(*options: dict[str, float]) -> st.SearchStrategy[Case]:
    """Cases with one of these options."""
    widths = st.sampled_from([(1,), (2,), (1, 1), (2, 1)])
    choices = (st.sampled_from(list(x)) for x in (SLOPES, RATES, (False, True), options))
    return st.tuples(widths, *choices).map(lambda x: journey(*x[:4], **x[4]))


def path(answer: Any, parameters: list, gradients: list, rates: list, options: dict) -> Any:
    """Where each parameter is after each step. Each has its own group, with the options and its own rate."""

    def made() -> tuple[list[nn.Parameter], Any]:
        fresh = [nn.Parameter(start, dtype="float64") for start in parameters]
        return fresh, answer([{"params": [p], **options, "lr": 0.1} for p in fresh])

    fresh, tried = made()  # first only to see what kind of thing the rule gives back
    start = ndl.Tensor(gradients[0][0], dtype="float64", requires_grad=False)
    first = tried.rule(fresh[0].detach(), start, {}, 1, **tried.options_of(tried.groups[0]))
    if not isinstance(first, ndl.Tensor):
        return first
    fresh, optimiser = made()
    places = named("array")()
    for step, (slopes, lrs) in enumerate(zip(gradients, rates, strict=True), start=1):
        for p, slope, lr, group in zip(fresh, slopes, lrs, optimiser.groups, strict=True):
            p.grad = slope and ndl.Tensor(slope, dtype="float64", requires_grad=False)
            group["lr"] = lr
        before = [p.detach() for p in fresh]
        numbers = [p.numpy().tolist() for p in fresh]
        optimiser.step()
        places[f"step {step}"] = [number for p in fresh for number in p.numpy().tolist()]
        if numbers != [p.numpy().tolist() for p in before]:
            places[f"an old p, changed in place by step {step}"] = True
    return places


OPTIMISER = "{} from {{}}, with the gradients {{}} and the lr {{}} step by step, and {{}},"


class Momentum(ndl.optim.Optimizer):
    def __init__(self, params, lr=0.01, momentum=0.9):
        super().__init__(params, lr=lr, momentum=momentum)

    def rule(self, p, grad, state, t, lr, momentum):
        state["u"] = u = momentum * state.get("u", 0) + (1 - momentum) * grad
        return p - lr * u


momentum_ = lecture.exercise(
    journey((1,), momentum=0.9),
    journey((2,), SLOPES[1], momentum=0.5),
    number=60,
    draws=journeys({"momentum": 0.9}, {"momentum": 0.5}, {"momentum": 0.0}),
    otherwise="Two lines: the new u is a mean of the old u and the gradient, and p goes lr · u downhill. "
    'Keep u in `state["u"]`.',
    use=path,
    without={optim.SGD.rule: WRITE.format("SGD")},
    form=OPTIMISER.format("Momentum"),
)(Momentum)


class Adam(ndl.optim.Optimizer):
    def __init__(self, params, lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8):
        super().__init__(params, lr=lr, beta1=beta1, beta2=beta2, eps=eps)

    def rule(self, p, grad, state, t, lr, beta1, beta2, eps):
        state["m"] = m = beta1 * state.get("m", 0) + (1 - beta1) * grad
        state["v"] = v = beta2 * state.get("v", 0) + (1 - beta2) * grad * grad
        m_hat = m / (1 - beta1**t)
        v_hat = v / (1 - beta2**t)
        return p - lr * m_hat / (v_hat**0.5 + eps)


LARGE_EPS: dict[str, Any] = {"beta1": 0.5, "beta2": 0.75, "eps": 0.5}
adam = lecture.exercise(
    journey((1,), beta1=0.9, beta2=0.999, eps=1e-8),
    journey((2,), SLOPES[1], **LARGE_EPS),
    number=60,
    draws=journeys(LARGE_EPS, {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}, {**LARGE_EPS, "eps": 1e-3}),
    otherwise="Go through the five lines of the algorithm one by one. After the first step, m̂ is the "
    "gradient and v̂ its square, so p has moved by lr. Does yours?",
    use=path,
    without={optim.Adam.rule: WRITE.format("Adam")},
    form=OPTIMISER.format("Adam"),
)(Adam)


# --- 4 BatchNorm --------------------------------------------------------------------------------------------

TRAINED, USED, AGAIN = "the output in training", "the output in use", "the output in training, after use"
GRADIENTS, GRADIENTS_IN_USE = "the gradients in training", "the gradients in use"
TINY = "the output in use, with a running variance of 0.00001"
STATE, AFTER_USE = "the layer's Tensors", "the layer's Tensors after use"
#: Mean and spread of columns. One is the same in each row, one is far from 0: there x² loses its digits.
COLUMNS = ((2.0, 1.0), (10.0, 3.0), (0.1, 0.02), (7.0, 0.0), (300.0, 1.0))


def batches(what: str, columns: Sequence[int], rows: Sequence[int], weight: float, bias: float) -> Case:
    """A case: batches of so many rows, with some of `COLUMNS`, a layer's weight and bias, what is looked at."""
    rng = np.random.default_rng(7)
    means, spreads = np.array([COLUMNS[column] for column in columns]).T
    made = [(means + spreads * rng.normal(size=(n, len(columns)))).round(2).tolist() for n in rows]
    learned = [[number + place for place in range(len(columns))] for number in (weight, bias)]
    return case(Words(what), made, *learned)


class Words(str):
    """A text that a message shows without quotation marks."""

    def __repr__(self) -> str:
        return str(self)


def constant(numbers: Any) -> ndl.Tensor:
    """A Tensor of these numbers, as for the data of a Parameter."""
    return ndl.Tensor(numbers, requires_grad=False)


def normalised(answer: Any, what: str, inputs: list, weight: list, bias: list) -> Any:
    """What a layer with this weight and bias gives, or has, that has learned from some batches."""
    layer = answer(len(weight))
    layer.weight.data, layer.bias.data = constant(weight), constant(bias)
    for batch in inputs:
        x = ndl.Tensor(batch)
        out = layer(x)
    if what == TINY:
        layer.running_var = constant([1e-5] * len(weight))
    if what not in (TRAINED, STATE, GRADIENTS):
        layer.eval()(x)  # once more below: it should stay in use
        out = layer(x)
    if what == AGAIN:
        out = layer.train()(x)
    if not isinstance(out, ndl.Tensor):
        return out
    found = named("Tensor")(output=out.numpy()) if "output" in what else named("Tensor")()
    if "gradients" in what:
        (out * constant(np.cos(np.arange(out.size)).reshape(out.shape))).sum().backward()
        for name, leaf in (("x", x), ("weight", layer.weight), ("bias", layer.bias)):
            found[name] = None if leaf.grad is None else leaf.grad.numpy()
    elif "Tensors" in what:
        kept = layer.state_dict()  # only the Tensors without a history are in it
        for name in ("weight", "bias", "running_mean", "running_var"):
            found[name] = kept[name].numpy() if name in kept else Words("not in state_dict()")
        found["number of Parameters"] = len(layer.parameters())
    if not np.allclose(x.numpy(), inputs[-1]):
        found["x is changed"] = x.numpy()
    return found


class BatchNorm(nn.Module):
    def __init__(self, dim):
        self.weight = nn.Parameter(np.ones(dim))
        self.bias = nn.Parameter(np.zeros(dim))
        self.running_mean = ndl.Tensor(np.zeros(dim), requires_grad=False)
        self.running_var = ndl.Tensor(np.ones(dim), requires_grad=False)

    def forward(self, x):
        if self.training:
            mean = x.mean(axes=(0,))
            var = ((x - mean) ** 2).mean(axes=(0,))
            self.running_mean = 0.9 * self.running_mean + 0.1 * mean.detach()
            self.running_var = 0.9 * self.running_var + 0.1 * var.detach()
        else:
            mean, var = self.running_mean, self.running_var
        return (x - mean) / (var + 1e-5) ** 0.5 * self.weight + self.bias


batch_norm = lecture.exercise(
    batches(TRAINED, (0, 1), (4,), 1.0, 0.0),
    batches(GRADIENTS, (0, 1), (4,), 1.0, 0.0),
    batches(STATE, (0, 1), (3,), 1.0, 0.0),
    draws=st.tuples(
        st.sampled_from((TRAINED, USED, STATE, GRADIENTS, AFTER_USE, GRADIENTS_IN_USE, AGAIN, TINY)),
        st.sampled_from(((0,), (0, 1), (0, 1, 2), (2,), (3, 0), (4,))),
        st.sampled_from(((3,), (4, 2), (2, 3, 4), (3, 1), (1,))),
        st.sampled_from((3.0, 1.0, -0.5)),
        st.sampled_from((2.0, -1.0, 0.0)),
    ).map(lambda x: batches(*x)),
    otherwise="Take one column of a batch, and compute by hand: mean, variance, what comes out. Then compare "
    "with each line of your forward.",
    use=normalised,
    without={
        nn.BatchNorm1d.forward: WRITE.format("BatchNorm1d"),
        ops.standardize: "`standardize` does it all for you. Write out the mean, the variance, the division.",
    },
    form="BatchNorm, {}, for the batches {}, with weight = {} and bias = {},",
)(BatchNorm)


# --- 5 Residual ---------------------------------------------------------------------------------------------


class Counted(nn.Module):
    """A branch that counts how often it is called."""

    def __init__(self, inner: nn.Module):
        self.inner, self.calls = inner, 0

    def forward(self, x: ndl.Tensor) -> Any:
        self.calls += 1
        return self.inner(x)


def linear_and_tanh() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 3, rng=0), nn.Tanh())


def normed() -> nn.Module:
    return nn.BatchNorm1d(3)


class Square(nn.Module):
    def forward(self, x: ndl.Tensor) -> Any:
        return x * x


def passed(answer: Any, make: Callable[[], nn.Module], x: np.ndarray) -> Any:
    """What a residual module gives for x, in training and in use, and what derivatives go through it."""
    inputs, branch = ndl.Tensor(x), Counted(make())
    module = answer(branch)
    out = module(inputs)
    if not isinstance(out, ndl.Tensor):
        return out
    found = named("Tensor")(output=out.numpy())
    if out.requires_grad:
        (out * constant(np.cos(np.arange(x.size)).reshape(x.shape))).sum().backward()
    leaves = {"x": inputs, **{name.replace("fn.inner", "fn"): p for name, p in module.named_parameters()}}
    for name, leaf in leaves.items():
        found[f"gradient of {name}"] = None if leaf.grad is None else leaf.grad.numpy()
    found["in use, for 2x"] = module.eval()(constant(2 * x)).numpy()
    found["calls of the branch"] = branch.calls
    if not np.allclose(inputs.numpy(), x):
        found["x is changed"] = inputs.numpy()
    return found


class Residual(nn.Module):
    def __init__(self, fn):
        self.fn = fn

    def forward(self, x):
        return self.fn(x) + x


residual = lecture.exercise(
    case(nn.Tanh, np.array([[1.0, -2.0, 0.5]])),
    draws=drawn(
        (nn.Tanh, Square, linear_and_tanh, normed),
        (np.array([[0.0, 1.0, 3.0], [-1.0, 0.5, 0.25]]), np.array([[2.0, 3.0, -1.0]]), np.zeros((2, 3))),
    ),
    number=15,
    otherwise="`self.fn(x)` is what the branch computes. The input itself is added to it.",
    use=passed,
    without={nn.Residual.forward: WRITE.format("Residual")},
    form="Residual({}())({})",
)(Residual)


def built(answer: Any, dim: int, hidden: int, seed: int) -> Any:
    """What a block gives at first, and after it has learned for three steps."""
    draws = np.random.default_rng(seed)
    block = answer(dim, hidden, draws)
    if isinstance(block, (list, tuple)) and all(isinstance(part, nn.Module) for part in block):
        return [type(part).__name__ for part in block]
    if not isinstance(block, nn.Module):
        return block
    rng = np.random.default_rng(1)
    x, target = (constant(rng.normal(size=(6, dim))) for _ in range(2))
    found = named("Module")({"at first": block(x).numpy()})
    for _ in range(3):
        ((block(x) - target) ** 2).mean().backward()
        for p in block.parameters():
            if p.grad is not None:
                p.data = p.data - 0.5 * p.grad.data
    found |= {"after three steps": block(x).numpy(), "in use": block.eval()(x).numpy()}
    found["parameters"] = sum(p.size for p in block.parameters())
    found["what `rng` draws next"] = draws.random()
    return found


@lecture.exercise(
    case(4, 2, 0),
    case(3, 5, 0),
    draws=drawn((3, 4, 2), (2, 4, 1), (0, 1)),
    number=15,
    otherwise="Print your block, and compare it with the five modules of the list and the ReLU after the "
    "sum. Is the first Linear drawn before the second?",
    use=built,
    form="residual_block({}, {}, np.random.default_rng({}))",
)
def residual_block(dim, hidden, rng):
    last = nn.BatchNorm1d(dim)
    last.weight.data = ndl.init.zeros(dim)
    into = [nn.Linear(dim, hidden, rng=rng), nn.BatchNorm1d(hidden), nn.ReLU()]
    back = [nn.Linear(hidden, dim, rng=rng), last]
    return nn.Sequential(Residual(nn.Sequential(*into, *back)), nn.ReLU())
