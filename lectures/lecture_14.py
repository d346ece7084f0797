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
check, ready, predict = lecture.check, lecture.ready, lecture.predict


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


FORMULA = "np.sqrt(2 / (fan_in + fan_out))"
ONE_WAY = (
    "This keeps the size in the {} pass, and does not look at the {} pass. Xavier takes the mean of `fan_in` and "
    "`fan_out`."
)
xavier_std.slip("This is the variance. Its root is the standard deviation.", "np.sqrt", "")
xavier_std.slip(ONE_WAY.format("forward", "backward"), FORMULA, "1 / np.sqrt(fan_in)")
xavier_std.slip(ONE_WAY.format("backward", "forward"), FORMULA, "1 / np.sqrt(fan_out)")
xavier_std.slip("You divide by the sum of the two. Their mean is half of it.", "2 /", "1 /")
xavier_std.slip(
    "√(6 / (fan_in + fan_out)) is where the *uniform* distribution of this variance ends. The standard "
    "deviation is smaller by √3.",
    *("2 /", "6 /"),
)
MEAN_FIRST = "You take the mean of two {}. Take the mean of `fan_in` and `fan_out` first: it is the number n in 1 / √n."
xavier_std.slip(MEAN_FIRST.format("standard deviations"), FORMULA, "(fan_in**-0.5 + fan_out**-0.5) / 2")
xavier_std.slip(MEAN_FIRST.format("variances"), FORMULA, "np.sqrt((1 / fan_in + 1 / fan_out) / 2)")
xavier_std.slip(
    "More inputs need *smaller* weights. Divide by the mean, do not multiply by it.",
    *(FORMULA, "np.sqrt((fan_in + fan_out) / 2)"),
)


@lecture.exercise(
    case(100),
    case(64),
    draws=drawn((8, 2, 3, 50, 400, 1)),
    otherwise="For 200 inputs it is 0.1. The mean square of the outputs is fan_in · variance, and the ReLU "
    "leaves half of it: which variance makes that 1?",
)
def kaiming_std(fan_in):
    return np.sqrt(2 / fan_in)


kaiming_std.slip("This is the variance. Its root is the standard deviation.", "np.sqrt", "")
kaiming_std.slip(
    "That is right for a layer without a ReLU. The ReLU takes away half of the mean square, so the variance "
    "must be twice as large.",
    *("2 /", "1 /"),
)
kaiming_std.slip(
    "You double the standard deviation. It is the *variance* that must be doubled, before you take the root.",
    *("np.sqrt(2 / fan_in)", "2 / np.sqrt(fan_in)"),
)
kaiming_std.slip(
    "The ReLU takes half away, so the weights must be larger to make up for it. Yours are smaller.",
    *("2 /", "0.5 /"),
)
kaiming_std.slip(
    "√(6 / fan_in) is where the *uniform* distribution of this variance ends. The standard deviation is "
    "smaller by √3.",
    *("2 /", "6 /"),
)
kaiming_std.slip(
    "More inputs need *smaller* weights. Divide by `fan_in`, do not multiply by it.", "2 / fan", "2 * fan"
)
kaiming_std.slip(
    "You take the root of the 2 alone. Both are under the root: √(2 / fan_in).", "2 / fan_in)", "2) / fan_in"
)


# --- 2 and 3 Optimisers -------------------------------------------------------------------------------------

#: Gradients, one after the other: always downhill, to and fro, of very different size, and none at all.
SLOPES = ((1, 2, 4, 3, 5), (1, 20, 2, -16, -1, 8, 0.5, 4), (1, -4, 2, 0.01, 3), (0, 1, 0, 0, 2, -1))
#: The learning rate of a step and a parameter: the same, falling as with a schedule, or each parameter its own.
RATES: tuple[Callable[[int, int], float], ...] = (
    lambda step, place: 0.1,
    lambda step, place: (1, 0.1, 0.1, 0.01)[step],
    lambda step, place: 0.1 * (place + 1),
)


def journey(
    widths: Sequence[int],
    slopes: Sequence[float] = SLOPES[0],
    rate: Callable[[int, int], float] = RATES[0],
    resting: bool = False,
    **options: float,
) -> Case:
    """A case: parameters of so many numbers, their gradients and learning rates in four steps, and the options.

    The first parameter may rest in the second step: it has no gradient then.
    """
    starts, numbers = cycle((2.0, 3.0, -1.0)), cycle(slopes)
    parameters = [[next(starts) for _ in range(width)] for width in widths]
    gradients = [[[float(next(numbers)) for _ in range(width)] for width in widths] for _ in range(4)]
    rates = [[round(rate(step, place), 2) for place in range(len(widths))] for step in range(4)]
    if resting:
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
FROM_SELF = "`rule` gets its options for this parameter. What stands in `self` may be another one."
HOLDS = (
    "`state` may hold arrays only, each under a name of its own: a line for `state[…]` of each running mean. It "
    "holds no tuple or list of them, and no plain number such as t."
)
UPHILL = "This goes uphill. The step is subtracted."


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

MEAN = 'momentum * state.get("u", 0) + (1 - momentum) * grad'
momentum_.slip(
    "You never put the new u into `state`, so each step begins with u = 0 again. Is there a line that sets "
    '`state["u"] = …`?',
    *('state["u"] = u', "u"),
)
momentum_.slip(
    "This is plain gradient descent. The step goes along u, and not along the gradient.",
    "lr * u",
    "lr * grad",
)
momentum_.slip(
    "You add the whole gradient, as many libraries do. Here u is a *mean*, so the new gradient counts "
    "(1 − momentum).",
    *("(1 - momentum) * grad", "grad"),
)
momentum_.slip(
    "The two shares are swapped: momentum is what the *old* u keeps, and 1 − momentum goes to the new gradient.",
    *(MEAN, '(1 - momentum) * state.get("u", 0) + momentum * grad'),
)
momentum_.slip(
    "Your u begins with the first gradient. Here it begins with 0, and even the first gradient counts only "
    "(1 − momentum).",
    *('"u", 0', '"u", grad'),
)
momentum_.slip(UPHILL, "p - lr", "p + lr")
momentum_.slip(
    "You keep u in the optimiser itself, so all parameters share one. `state` is there for this: each "
    "parameter has its own.",
    *(f'state["u"] = u = {MEAN}', 'self.u = u = momentum * getattr(self, "u", 0) + (1 - momentum) * grad'),
)
momentum_.slip(
    "You take a step along the *old* u, and compute the new one after that. First the new u, then the step.",
    ('state["u"] = u = ', 'u = state.get("u", 0 * grad)\n        state["u"] = '),
)
momentum_.slip("Where is the learning rate? The step is lr · u.", "lr * u", "u")
momentum_.slip(
    "The learning rate is in the running mean. It may change from step to step, and then older steps would "
    "keep their old rates. Take the mean of the gradients alone, and multiply by lr afterwards.",
    ("(1 - momentum) * grad", "(1 - momentum) * lr * grad"),
    ("lr * u", "u"),
)
momentum_.slip("Return the new p alone. u stays in `state`.", "lr * u", "lr * u, u")
momentum_.slip("This is the step itself. Return where p is after it: p − lr · u.", "p - lr", "lr")
momentum_.slip(HOLDS, "        return", '        state["t"] = t\n        return')
momentum_.slip(FROM_SELF, "lr * u", "self.lr * u")


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

M, V = 'state["m"] = m = beta1 * state.get("m", 0)', 'state["v"] = v = beta2 * state.get("v", 0)'
M_HAT, V_HAT = "m / (1 - beta1**t)", "v / (1 - beta2**t)"
adam.slip(
    "You use m and v as they are. They begin at 0, so at first they are too small: divide them by "
    "1 − beta1ᵗ and 1 − beta2ᵗ.",
    *((M_HAT, "m"), (V_HAT, "v")),
)
adam.slip("You correct m and not v. Both begin at 0, so divide v by 1 − beta2ᵗ, too.", V_HAT, "v")
adam.slip("You correct v and not m. Both begin at 0, so divide m by 1 − beta1ᵗ, too.", M_HAT, "m")
adam.slip("You correct v with beta1. Its share is beta2, so divide it by 1 − beta2ᵗ.", "beta2**t", "beta1**t")
adam.slip(
    "Only beta is raised to the power of t: `1 - beta1**t`, and not `(1 - beta1)**t`.",
    *((M_HAT, "m / (1 - beta1) ** t"), (V_HAT, "v / (1 - beta2) ** t")),
)
adam.slip("You square m. v is a mean of the squared *gradients*: `grad * grad`.", "grad * grad", "m * m")
adam.slip("Take the root of v̂ before you divide: v̂ is the mean of *squares*.", "v_hat**0.5", "v_hat")
adam.slip(
    "v is a mean of *squared* gradients: `grad * grad`. Here it is a mean of the gradients.",
    *("grad * grad", "grad"),
)
adam.slip(
    "eps stands outside of the root: (root of v̂) + eps. Under the root it would weigh more where gradients "
    "are small.",
    *("(v_hat**0.5 + eps)", "(v_hat + eps) ** 0.5"),
)
adam.slip("Where is eps? Without it, a gradient of 0 would be divided by 0.", " + eps", "")
adam.slip(
    "You divide by 1 − beta in every step. The correction fades as t grows: it is 1 − beta to the power of t.",
    *(("beta1**t", "beta1"), ("beta2**t", "beta2")),
)
adam.slip(
    "You put the corrected means back into `state`. There m and v stay as they are; m̂ and v̂ are only for "
    "this step.",
    *(("m_hat = ", 'state["m"] = m_hat = '), ("v_hat = ", 'state["v"] = v_hat = ')),
)
adam.slip(
    "You divide the gradient of this step by the root of v̂. The step goes along the mean, m̂.",
    *("lr * m_hat", "lr * grad"),
)
adam.slip(
    "You never put m and v into `state`, so each step begins with 0 again.",
    *(('state["m"] = m', "m"), ('state["v"] = v', "v")),
)
adam.slip('You keep m and not v: a line must set `state["v"]`, too.', 'state["v"] = v', "v")
adam.slip('You keep v and not m: a line must set `state["m"]`, too.', 'state["m"] = m', "m")
adam.slip(
    "m and v need two places in `state`: yours share one, or one of them reads the other's.",
    *('state.get("v", 0)', 'state.get("m", 0)'),
)
adam.slip(UPHILL, "p - lr", "p + lr")
adam.slip(
    "The first step has t = 1, and the `t` that you get counts so already. Do not add 1 to it.",
    *(("beta1**t", "beta1 ** (t + 1)"), ("beta2**t", "beta2 ** (t + 1)")),
)
adam.slip(
    "You keep the means in the optimiser itself, so all parameters share them. `state` is there for this: "
    "each parameter has its own.",
    ("        " + M, '        state = self.own = getattr(self, "own", {})\n        ' + M),
)
adam.slip(
    "You count the steps yourself, for all parameters together. Take `t`: it counts those of this parameter.",
    ("        " + M, '        self.steps = t = getattr(self, "steps", 0) + 1\n        ' + M),
)
adam.slip(
    "A rule gets arrays on which NumPy's functions do not work. The root is `** 0.5`, which works for all.",
    *("v_hat**0.5", "np.sqrt(v_hat)"),
)
adam.slip(
    "A rule gets arrays that are no Tensors, so operators such as `ndl.sqrt` refuse them. The root is "
    "`** 0.5`, which works for both.",
    *("v_hat**0.5", "ndl.sqrt(v_hat)"),
)
adam.slip(
    "In Python a power is `**`: `beta1**t`, `grad**2`. The sign `^` means something else.",
    "beta1**t",
    "beta1 ^ t",
)
adam.slip(
    "A bracket is missing: divide by `(v_hat**0.5 + eps)`. You divide first, and add eps after that.",
    *("(v_hat**0.5 + eps)", "v_hat**0.5 + eps"),
)
adam.slip("Return the new p alone. m and v stay in `state`.", "+ eps)", "+ eps), m, v")
adam.slip(FROM_SELF, "lr * m_hat", "self.lr * m_hat")
adam.slip(HOLDS, "        return", '        state["t"] = t\n        return')
for pair in ("(m, v)", "[m, v]"):
    adam.slip(
        HOLDS,
        (M, f'm, v = state.get("mv", {pair.replace("m, v", "0, 0")})\n        m = beta1 * m'),
        (V, "v = beta2 * v"),
        ("m_hat = ", f'state["mv"] = {pair}\n        m_hat = '),
    )


# --- 4 BatchNorm --------------------------------------------------------------------------------------------

TRAINED, GRADIENTS, STATE = "the output in training", "the gradients in training", "the layer's Tensors"
USED, AFTER_USE, GRADIENTS_IN_USE = (
    "the output in use",
    "the layer's Tensors after use",
    "the gradients in use",
)
AGAIN = "the output in training, after use"
#: Mean and spread of columns; the last one is the same in each row.
COLUMNS = ((2.0, 1.0), (10.0, 3.0), (0.1, 0.02), (7.0, 0.0))


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
    if what in (USED, AFTER_USE, GRADIENTS_IN_USE, AGAIN):
        out = layer.eval()(x)
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
        st.sampled_from((TRAINED, USED, STATE, GRADIENTS, AFTER_USE, GRADIENTS_IN_USE, AGAIN)),
        st.sampled_from(((0,), (0, 1), (0, 1, 2), (2,), (3, 0))),
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

OUT = "(x - mean) / (var + 1e-5) ** 0.5 * self.weight + self.bias"
ROOT = "(var + 1e-5) ** 0.5"
OF_X, OF_SQUARES = "mean = x.mean(axes=(0,))", "var = ((x - mean) ** 2).mean(axes=(0,))"
FOLLOW_MEAN = "self.running_mean = 0.9 * self.running_mean + 0.1 * mean.detach()"
FOLLOW_VAR = "self.running_var = 0.9 * self.running_var + 0.1 * var.detach()"
IN_USE = "mean, var = self.running_mean, self.running_var"
batch_norm.slip(
    "You normalise each row. A feature is a column: its mean is over the batch, `axes=(0,)`. What you wrote "
    "is close to a LayerNorm.",
    (OF_X, "mean = x.mean(axes=(1,)).reshape((x.shape[0], 1))"),
    (OF_SQUARES, "var = ((x - mean) ** 2).mean(axes=(1,)).reshape((x.shape[0], 1))"),
    ("mean.detach()", "mean.detach().mean()"),
    ("var.detach()", "var.detach().mean()"),
)
batch_norm.slip(
    "You take one mean for all features together. Each column needs its own: `axes=(0,)`.",
    *((OF_X, "mean = x.mean()"), (OF_SQUARES, "var = ((x - mean) ** 2).mean()")),
)
batch_norm.slip(
    "In use, you still take the mean and variance of the batch. After `eval()`, `self.training` is False, "
    "and the running ones take their place.",
    *(IN_USE, f"{OF_X}; {OF_SQUARES}"),
)
batch_norm.slip(
    "The running mean and variance change in use, too. They follow only in training, where `self.training` "
    "is True.",
    *(IN_USE, f"{OF_X}; {OF_SQUARES}; old = {IN_USE[12:]}; {FOLLOW_MEAN}; {FOLLOW_VAR}; mean, var = old"),
)
batch_norm.slip(
    "You never ask for `self.training`. After `eval()` it is False: then the running mean and variance are "
    "used, and they stay as they are.",
    *("self.training", "True"),
)
batch_norm.slip(
    "The running mean and variance stay as they were. In training they move a tenth of the way to those of "
    "the batch.",
    *((FOLLOW_MEAN, ""), (FOLLOW_VAR, "")),
)
batch_norm.slip(
    "The shares are swapped: nine tenths of the running mean stay, and the newest batch counts one tenth.",
    (FOLLOW_MEAN, "self.running_mean = 0.1 * self.running_mean + 0.9 * mean.detach()"),
    (FOLLOW_VAR, "self.running_var = 0.1 * self.running_var + 0.9 * var.detach()"),
)
batch_norm.slip("The running mean is right. Let the running variance follow, too.", FOLLOW_VAR, "")
batch_norm.slip(
    "The mean of `x - mean` is 0: above and below cancel. Take the mean of its squares.",
    *(OF_SQUARES, "var = (x - mean).mean(axes=(0,))"),
)
batch_norm.slip(
    "This is the mean of the squares of x. Subtract the mean before you square.",
    *("((x - mean) ** 2)", "(x**2)"),
)
batch_norm.slip("You divide by the variance. Divide by its root, the standard deviation.", " ** 0.5", "")
batch_norm.slip(
    "A feature that is the same for the whole batch has the variance 0, and you divide by it. Add 1e-5 under "
    "the root.",
    *(ROOT, "var**0.5"),
)
batch_norm.slip("Add 1e-5 to the variance, under the root, and not to the root.", ROOT, "(var**0.5 + 1e-5)")
batch_norm.slip("You divide, and that is right. But subtract the mean first.", "(x - mean) /", "x /")
batch_norm.slip(
    "At the end comes what is learned: times `self.weight`, plus `self.bias`.",
    *(" * self.weight + self.bias", ""),
)
batch_norm.slip(
    "In use, too, what is learned comes at the end: times `self.weight`, plus `self.bias`.",
    *(IN_USE, f"return (x - self.running_mean) / {ROOT.replace('var', 'self.running_var')}"),
)
batch_norm.slip("Where is the bias? At the end: times `self.weight`, plus `self.bias`.", " + self.bias", "")
batch_norm.slip(
    "First times `self.weight`, and *then* plus `self.bias`. You add the bias before you multiply.",
    *(OUT, f"((x - mean) / {ROOT} + self.bias) * self.weight"),
)
batch_norm.slip(
    "No bracket around weight and bias: times `self.weight`, and then plus `self.bias`.",
    *("self.weight + self.bias", "(self.weight + self.bias)"),
)
batch_norm.slip(
    "A bracket is missing: `(var + 1e-5) ** 0.5`. A power comes before the sum.", ROOT, "(var + 1e-5**0.5)"
)
batch_norm.slip(
    "A bracket is missing: `(x - mean) / …`. Dividing comes before subtracting.",
    *(OUT, f"(x - mean / {ROOT}) * self.weight + self.bias"),
)
batch_norm.slip(
    "You take the running mean and variance in training, too. There the batch is normalised by its own; the "
    "running ones only follow.",
    *("self.training", "False"),
)
CUT = "What comes out is right, but its gradient is not: "
batch_norm.slip(
    CUT + "the mean is detached. It must go through the mean; detach it only for the running one.",
    *(OF_X, OF_X + ".detach()"),
)
batch_norm.slip(
    CUT + "your variance has no history. Compute it of Tensors, and detach it only for the running one.",
    *(OF_SQUARES, OF_SQUARES + ".detach()"),
)
batch_norm.slip(
    CUT + "mean and variance depend on x, so the gradient must go through them. Detach them only for the "
    "running ones.",
    *((OF_X, OF_X + ".detach()"), (OF_SQUARES, OF_SQUARES + ".detach()")),
)
batch_norm.slip(
    CUT + "weight and bias are learned, so it must reach them, too. Multiply by `self.weight` itself.",
    *("self.weight + self.bias", "self.weight.detach() + self.bias.detach()"),
)
batch_norm.slip(
    "The running mean keeps its history, so each step keeps the graphs of all steps before (lecture 06). Add "
    "`mean.detach()` and `var.detach()` to it.",
    *(("mean.detach()", "mean"), ("var.detach()", "var")),
)
NO_TENSORS = (
    "`running_mean` and `running_var` must stay Tensors: what is a number or an array of NumPy is not saved with "
    "the network."
)
batch_norm.slip(
    NO_TENSORS,
    (FOLLOW_VAR, f"{FOLLOW_VAR}; self.running_mean = self.running_mean.numpy()"),
    ("if self.training:", "self.running_mean = ndl.Tensor(self.running_mean, requires_grad=False)\n"
     "        if self.training:"),
)  # fmt: skip
batch_norm.slip(
    "You divide the sum of squares by n − 1. BatchNorm divides by n: it is the mean of the squares.",
    *(OF_SQUARES, OF_SQUARES + " * (len(x) / max(1, len(x) - 1))"),
)
batch_norm.slip(
    "The running variance, too, is that of the batch as it is: the sum of squares divided by n, and not by n − 1.",
    *("0.1 * var.detach()", "0.1 * var.detach() * (len(x) / max(1, len(x) - 1))"),
)
batch_norm.slip(
    "After `eval()` this name has no value: only the training branch gives it one. In use, take "
    "`self.running_mean` and `self.running_var`.",
    *(IN_USE, "pass"),
)
batch_norm.slip(
    "NumPy's functions refuse Tensors. The root of a Tensor is `** 0.5`.", ROOT, "np.sqrt(var + 1e-5)"
)
batch_norm.slip(
    "Tensors say `axes=`, not `axis=` as in NumPy: `x.mean(axes=(0,))`.", OF_X, "mean = x.mean(axis=0)"
)


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


class Square(nn.Module):
    def forward(self, x: ndl.Tensor) -> Any:
        return x * x


def normed() -> nn.Module:
    return nn.BatchNorm1d(3)


def passed(answer: Any, make: Callable[[], nn.Module], x: np.ndarray) -> Any:
    """What a residual module gives for x, in training and in use, and what derivatives go through it."""
    inputs, branch = ndl.Tensor(x), Counted(make())
    module = answer(branch)
    out = module(inputs)
    if not isinstance(out, ndl.Tensor):
        return out
    found = named("Tensor")(output=out.numpy(), **{"calls of the branch": branch.calls})
    if out.requires_grad:
        (out * constant(np.cos(np.arange(x.size)).reshape(x.shape))).sum().backward()
    leaves = {"x": inputs, **{name.replace("fn.inner", "fn"): p for name, p in module.named_parameters()}}
    for name, leaf in leaves.items():
        found[f"gradient of {name}"] = None if leaf.grad is None else leaf.grad.numpy()
    found["in use"] = module.eval()(inputs).numpy()
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

SUM = "self.fn(x) + x"
residual.slip("This is only the branch. Add the input to it.", SUM, "self.fn(x)")
residual.slip(
    "You multiply the two. The input is *added*: then a 1 stands in the derivative.", " + x", " * x"
)
residual.slip("The input is added to the branch, and not subtracted from it.", " + x", " - x")
residual.slip(
    "You call the branch twice, one after the other. Call it once, and add the input.",
    *(SUM, "self.fn(self.fn(x)) + x"),
)
residual.slip(
    "You call the branch twice. Its work is done twice, and a BatchNorm in it follows twice. Call it once.",
    *(SUM, "self.fn(x) + x + 0 * self.fn(x)"),
)
residual.slip(
    "The output is right, but the input is detached: its gradient can only go through the branch. The other "
    "way is what a residual is for.",
    *(" + x", " + x.detach()"),
)


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


AT_ZERO = "last.weight.data = ndl.init.zeros(dim)"
NORM = "nn.BatchNorm1d(hidden), nn.ReLU()"
BLOCK = "nn.Sequential(Residual(nn.Sequential(*into, *back)), nn.ReLU())"
FIRST_AT_ZERO = "into[1].weight.data = ndl.init.zeros(hidden)\n    return"
residual_block.slip(
    "At first your block changes its input already. The last BatchNorm must begin with the weight 0: "
    "`last.weight.data = …`.",
    *(AT_ZERO, ""),
)
residual_block.slip(
    "Both BatchNorms begin with the weight 0. Then no gradient comes through the branch, and it never "
    "learns from x. Only the last one begins so.",
    *("return", FIRST_AT_ZERO),
)
residual_block.slip(
    "`nn.ReLU()` makes a module, and takes nothing. Put it behind the Residual: "
    "`nn.Sequential(Residual(…), nn.ReLU())`.",
    *(BLOCK, "nn.ReLU(Residual(nn.Sequential(*into, *back)))"),
)
residual_block.slip(
    "`last.weight` must stay a Parameter, or it is never learned. Give it new numbers: `last.weight.data = …`.",
    *("last.weight.data", "last.weight"),
)
residual_block.slip(
    "`Residual` takes one module. Put the five into an `nn.Sequential` first.",
    *("Residual(nn.Sequential(*into, *back))", "Residual(*into, *back)"),
)
residual_block.slip(
    "A Linear draws its weights from the generator that it gets. Give both of them `rng=rng`, so that "
    "everyone gets the same.",
    *(("dim, hidden, rng=rng)", "dim, hidden)"), ("hidden, dim, rng=rng", "hidden, dim")),
)
residual_block.slip(
    "The last BatchNorm is not in the branch. It comes after the second Linear.",
    "rng=rng), last]",
    "rng=rng)]",
)
residual_block.slip(
    "A list is not a module. Put its parts together with `nn.Sequential`.",
    *(BLOCK, "[Residual(nn.Sequential(*into, *back)), nn.ReLU()]"),
)
residual_block.slip(
    "You make the second Linear first, so the two draw each other's weights.",
    ("    into", "    second = nn.Linear(hidden, dim, rng=rng)\n    into"),
    ("[nn.Linear(hidden, dim, rng=rng), last]", "[second, last]"),
)
residual_block.slip(
    "A ReLU comes after the sum, too: put one behind the Residual.",
    *(BLOCK, "Residual(nn.Sequential(*into, *back))"),
)
residual_block.slip(
    "The ReLU at the end stands inside the branch. It comes after the sum, so put it behind the Residual.",
    *(BLOCK, "Residual(nn.Sequential(*into, *back, nn.ReLU()))"),
)
residual_block.slip(
    "Nothing is added to the input: the branch is there, but no Residual around it.", "(Residual(", "(("
)
residual_block.slip(
    "The ReLU inside the branch is missing: without it, two linear layers are like one.",
    *(NORM, "nn.BatchNorm1d(hidden)"),
)
residual_block.slip(
    "The first BatchNorm is missing. The branch is Linear, BatchNorm, ReLU, Linear, BatchNorm.",
    *(NORM, "nn.ReLU()"),
)
residual_block.slip(
    "You set the last *Linear* to 0. Then the BatchNorm after it divides by almost nothing. Set the weight "
    "of the last BatchNorm to 0.",
    (AT_ZERO, ""),
    ("return", "back[0].weight.data *= 0\n    back[0].bias.data *= 0\n    return"),
)
residual_block.slip(
    "The ReLU stands before the BatchNorm. In this block it comes after it: Linear, BatchNorm, ReLU.",
    *(NORM, "nn.ReLU(), nn.BatchNorm1d(hidden)"),
)
residual_block.slip(
    "The first BatchNorm gets `hidden` features, and the last one `dim`: each is as wide as the Linear "
    "before it.",
    *("nn.BatchNorm1d(hidden)", "nn.BatchNorm1d(dim)"),
)
