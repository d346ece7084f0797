"""Lecture 14, modules, initialisers, optimisers: exercises, usual mistakes, predictions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from needle import nn, ops, optim
from needle.autograd import Tensor
from needle.init import randn, zeros
from needle.optim import Optimizer

from .checking import Lecture, case, given, is_tensor, to_numpy

WRITE = "This is the library's `{}`. Write your own, with operators such as `+` and `**`."

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict


def size_of(x: Any) -> float:
    """The root of the mean of the squares: how large a typical number in `x` is."""
    numbers = np.asarray(x.numpy() if is_tensor(x) else x, dtype="float64")
    return float(np.sqrt((numbers**2).mean()))


# --- 1 Xavier and Kaiming -----------------------------------------------------------------------------------


def _drawn(std: float, fan_in: int, fan_out: int) -> Tensor:
    return randn(fan_in, fan_out, std=float(std), rng=0, dtype="float64")


def named(kind: str) -> Any:
    """A kind of dict for what an answer does; a message calls it by the kind of answer that is wanted."""
    return type(kind, (dict,), {})


def _is_number(std: Any) -> bool:
    return isinstance(std, (bool, int, float, np.number))


def _both_ways(answer: Any, fan_in: int, fan_out: int) -> Any:
    """What an answer gives, and what weights of that size do to numbers of size 1, forward and backward."""
    std = answer(fan_in, fan_out)
    if not _is_number(std):
        return std
    weight = _drawn(std, fan_in, fan_out)
    there, back = (randn(200, n, rng=1, dtype="float64") for n in (fan_in, fan_out))
    found = [("std", std), ("size after the forward pass", size_of(there @ weight))]
    return named("number")([*found, ("size after the backward pass", size_of(back @ weight.transpose()))])


def _through_ten(answer: Any, fan_in: int) -> Any:
    """What an answer gives, and the size of numbers after ten such layers, each with a ReLU."""
    std = answer(fan_in)
    if not _is_number(std):
        return std
    rng = np.random.default_rng(0)
    x = randn(100, fan_in, rng=1, dtype="float64")
    for _ in range(10):
        x = ops.relu(x @ Tensor(rng.normal(0, abs(std), (fan_in, fan_in)), dtype="float64"))
    return named("number")({"std": std, "size after ten layers": size_of(x)})


@lecture.exercise(
    case(100, 100),
    case(64, 256),
    case(300, 75),
    otherwise="For 100 inputs and 100 outputs it is 0.1: take the mean of the two for n in 1 / √n.",
    use=_both_ways,
    form="xavier_std({}, {})",
)
def xavier_std(fan_in, fan_out):
    """The standard deviation that is between what the forward and the backward pass need."""
    return math.sqrt(2 / (fan_in + fan_out))


@xavier_std.mistake("This is the variance. Its root is the standard deviation.")
def variance_of_xavier(fan_in, fan_out):
    return 2 / (fan_in + fan_out)


@xavier_std.mistake(
    "This keeps the size in the forward pass, and does not look at the backward pass. Xavier takes the mean "
    "of `fan_in` and `fan_out`."
)
def forward_only(fan_in, fan_out):
    return 1 / math.sqrt(fan_in)


@xavier_std.mistake(
    "This keeps the size in the backward pass, and does not look at the forward pass. Xavier takes the mean "
    "of `fan_in` and `fan_out`."
)
def backward_only(fan_in, fan_out):
    return 1 / math.sqrt(fan_out)


@xavier_std.mistake("You divide by the sum of the two. Their mean is half of it.")
def sum_of_fans(fan_in, fan_out):
    return 1 / math.sqrt(fan_in + fan_out)


@xavier_std.mistake(
    "√(6 / (fan_in + fan_out)) is where the *uniform* distribution of this variance ends. The standard "
    "deviation is smaller by √3."
)
def bound_of_xavier(fan_in, fan_out):
    return math.sqrt(6 / (fan_in + fan_out))


@xavier_std.mistake(
    "You take the mean of two standard deviations. Take the mean of `fan_in` and `fan_out` first: it is the "
    "number n in 1 / √n."
)
def mean_of_stds(fan_in, fan_out):
    return (1 / math.sqrt(fan_in) + 1 / math.sqrt(fan_out)) / 2


@xavier_std.mistake(
    "You take the mean of two variances. Take the mean of `fan_in` and `fan_out` first: it is the number n "
    "in 1 / √n."
)
def mean_of_variances(fan_in, fan_out):
    return math.sqrt((1 / fan_in + 1 / fan_out) / 2)


@xavier_std.mistake("More inputs need *smaller* weights. Divide by the mean, do not multiply by it.")
def turned_around(fan_in, fan_out):
    return math.sqrt((fan_in + fan_out) / 2)


@lecture.exercise(
    case(100),
    case(64),
    case(400),
    otherwise="For 200 inputs it is 0.1. The mean square of the outputs is fan_in · variance, and the ReLU "
    "leaves half of it: which variance makes that 1?",
    use=_through_ten,
    form="kaiming_std({})",
)
def kaiming_std(fan_in):
    """The standard deviation that keeps the size of numbers through layers with a ReLU."""
    return math.sqrt(2 / fan_in)


@kaiming_std.mistake("This is the variance. Its root is the standard deviation.")
def variance_of_kaiming(fan_in):
    return 2 / fan_in


@kaiming_std.mistake(
    "That is right for a layer without a ReLU. The ReLU takes away half of the mean square, so the variance "
    "must be twice as large."
)
def without_the_relu(fan_in):
    return 1 / math.sqrt(fan_in)


@kaiming_std.mistake(
    "You double the standard deviation. It is the *variance* that must be doubled, before you take the root."
)
def doubled_after_the_root(fan_in):
    return 2 / math.sqrt(fan_in)


@kaiming_std.mistake(
    "The ReLU takes half away, so the weights must be larger to make up for it. Yours are smaller."
)
def halved(fan_in):
    return math.sqrt(1 / (2 * fan_in))


@kaiming_std.mistake(
    "√(6 / fan_in) is where the *uniform* distribution of this variance ends. The standard deviation is "
    "smaller by √3."
)
def bound_of_kaiming(fan_in):
    return math.sqrt(6 / fan_in)


@kaiming_std.mistake("More inputs need *smaller* weights. Divide by `fan_in`, do not multiply by it.")
def more_with_more(fan_in):
    return math.sqrt(2 * fan_in)


@kaiming_std.mistake("You take the root of the 2 alone. Both are under the root: √(2 / fan_in).")
def root_of_two_alone(fan_in):
    return math.sqrt(2) / fan_in


# --- 2 and 3 Optimisers -------------------------------------------------------------------------------------


def driven(make: Callable[[], dict[str, Any]]) -> Any:
    """A case: parameters with their gradients step by step, and the options."""

    def named() -> dict[str, Any]:  # by names that no message takes for those of variables
        return {f"the {name}": value for name, value in make().items()}

    return given(named, "the parameters", "the gradients", "the options")


def _path(answer: Any, parameters: Sequence[Any], gradients: Sequence[Any], options: dict) -> Any:
    """Where each parameter is after each step."""

    def made() -> tuple[list[nn.Parameter], Any]:
        fresh = [nn.Parameter(start, dtype="float64") for start in parameters]
        return fresh, answer(fresh, **options)

    fresh, tried = made()  # first only to see what kind of thing the rule gives back
    start = Tensor(gradients[0][0], dtype="float64", requires_grad=False)
    first = tried.rule(fresh[0].detach(), start, {}, 1, **tried.options_of(tried.groups[0]))
    if not isinstance(first, Tensor):
        return first
    fresh, optimiser = made()
    places = named("array")()
    for step, grads in enumerate(gradients, start=1):
        for p, grad in zip(fresh, grads, strict=True):
            p.grad = Tensor(grad, dtype="float64", requires_grad=False)
        optimiser.step()
        places[f"step {step}"] = [number for p in fresh for number in p.numpy().tolist()]
    return places


def always_downhill() -> dict[str, Any]:
    return {"parameters": [[2.0]], "gradients": [[[1.0]], [[2.0]], [[4.0]]], "options": {"lr": 0.1}}


def to_and_fro() -> dict[str, Any]:
    return {
        "parameters": [[1.0, -1.0]],
        "gradients": [[[1.0, 20.0]], [[2.0, -16.0]], [[-1.0, 8.0]], [[0.5, 4.0]]],
        "options": {"lr": 0.5},
    }


def two_parameters() -> dict[str, Any]:
    return {
        "parameters": [[3.0], [5.0]],
        "gradients": [[[1.0], [-4.0]], [[2.0], [1.0]], [[3.0], [0.5]]],
        "options": {"lr": 0.01},
    }


def with_momentum() -> dict[str, Any]:
    return {**to_and_fro(), "options": {"lr": 0.2, "momentum": 0.5}}


OPTIMISER = "{} from {{}}, with the gradients {{}} step by step ({{}}),"


class Momentum(Optimizer):
    """Follows a running mean of the gradients."""

    def __init__(self, params, lr=0.01, momentum=0.9):
        super().__init__(params, lr=lr, momentum=momentum)

    def rule(self, p, grad, state, t, lr, momentum):
        state["u"] = u = momentum * state.get("u", 0) + (1 - momentum) * grad
        return p - lr * u


momentum_ = lecture.exercise(
    driven(always_downhill),
    driven(to_and_fro),
    driven(two_parameters),
    driven(with_momentum),
    otherwise="Two lines: the new u is a mean of the old u and the gradient, and p goes lr · u downhill. "
    'Keep u in `state["u"]`.',
    use=_path,
    without={optim.SGD.rule: WRITE.format("SGD")},
    form=OPTIMISER.format("Momentum"),
)(Momentum)


@momentum_.mistake(
    "You never put the new u into `state`, so each step begins with u = 0 again. Is there a line that sets "
    '`state["u"] = …`?'
)
class NeverKept(Momentum):
    def rule(self, p, grad, state, t, lr, momentum):
        return p - lr * (momentum * state.get("u", 0) + (1 - momentum) * grad)


@momentum_.mistake("This is plain gradient descent. The step goes along u, and not along the gradient.")
class Plain(Momentum):
    def rule(self, p, grad, state, t, lr, momentum):
        return p - lr * grad


@momentum_.mistake(
    "You add the whole gradient, as many libraries do. Here u is a *mean*, so the new gradient counts "
    "(1 − momentum)."
)
class AddedUp(Momentum):
    def rule(self, p, grad, state, t, lr, momentum):
        state["u"] = u = momentum * state.get("u", 0) + grad
        return p - lr * u


@momentum_.mistake(
    "The two shares are swapped: momentum is what the *old* u keeps, and 1 − momentum goes to the new "
    "gradient."
)
class SharesSwapped(Momentum):
    def rule(self, p, grad, state, t, lr, momentum):
        state["u"] = u = (1 - momentum) * state.get("u", 0) + momentum * grad
        return p - lr * u


@momentum_.mistake(
    "Your u begins with the first gradient. Here it begins with 0, and even the first gradient counts only "
    "(1 − momentum)."
)
class BeginsWithGradient(Momentum):
    def rule(self, p, grad, state, t, lr, momentum):
        state["u"] = u = momentum * state.get("u", grad) + (1 - momentum) * grad
        return p - lr * u


@momentum_.mistake("You divide u by 1 − momentumᵗ. That belongs to Adam; here the step is lr · u.")
class BiasCorrected(Momentum):
    def rule(self, p, grad, state, t, lr, momentum):
        return p + (super().rule(p, grad, state, t, lr, momentum) - p) / (1 - momentum**t)


@momentum_.mistake("This goes uphill. The step is subtracted.")
class Uphill(Momentum):
    def rule(self, p, grad, state, t, lr, momentum):
        return 2 * p - super().rule(p, grad, state, t, lr, momentum)


@momentum_.mistake(
    "You keep u in the optimiser itself, so all parameters share one. `state` is there for this: each "
    "parameter has its own."
)
class SharedByAll(Momentum):
    u: Any = 0

    def rule(self, p, grad, state, t, lr, momentum):
        self.u = momentum * self.u + (1 - momentum) * grad
        return p - lr * self.u


@momentum_.mistake(
    "You take a step along the *old* u, and compute the new one after that. First the new u, then the step."
)
class OneStepLate(Momentum):
    def rule(self, p, grad, state, t, lr, momentum):
        u = state.get("u", 0 * grad)
        state["u"] = momentum * u + (1 - momentum) * grad
        return p - lr * u


@momentum_.mistake("Where is the learning rate? The step is lr · u.")
class WithoutRate(Momentum):
    def rule(self, p, grad, state, t, lr, momentum):
        return super().rule(p, grad, state, t, 1.0, momentum)


@momentum_.mistake(
    'Before the first step there is no `state["u"]` yet. `state.get("u", 0)` gives 0 where nothing is kept.'
)
class NothingThereYet(Momentum):
    def rule(self, p, grad, state, t, lr, momentum):
        state["u"] = u = momentum * state["u"] + (1 - momentum) * grad
        return p - lr * u


@momentum_.mistake("Return the new p alone. u stays in `state`.")
class BothReturned(Momentum):
    def rule(self, p, grad, state, t, lr, momentum):
        moved = super().rule(p, grad, state, t, lr, momentum)
        return moved, state["u"]


@momentum_.mistake("This is the step itself. Return where p is after it: p − lr · u.")
class StepOnly(Momentum):
    def rule(self, p, grad, state, t, lr, momentum):
        return p - super().rule(p, grad, state, t, lr, momentum)


@momentum_.mistake("You return u. Return where p is after the step: p − lr · u.")
class VelocityOnly(Momentum):
    def rule(self, p, grad, state, t, lr, momentum):
        super().rule(p, grad, state, t, lr, momentum)
        return state["u"]


class Adam(Optimizer):
    """Algorithm 1 of Kingma and Ba (2015)."""

    beta1: float
    beta2: float

    def __init__(self, params, lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8):
        super().__init__(params, lr=lr, beta1=beta1, beta2=beta2, eps=eps)

    def rule(self, p, grad, state, t, lr, beta1, beta2, eps):
        m, v = self.means(grad, state, beta1, beta2)
        return p - lr * self.corrected(m, beta1, t) / (self.corrected(v, beta2, t) ** 0.5 + eps)

    def means(self, grad, state, beta1, beta2):
        state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * grad
        state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * grad * grad
        return state["m"], state["v"]

    def corrected(self, mean, beta, t):
        return mean / (1 - beta**t)


def with_large_eps() -> dict[str, Any]:
    return {**to_and_fro(), "options": {"lr": 0.1, "beta1": 0.5, "beta2": 0.75, "eps": 0.5}}


adam = lecture.exercise(
    driven(always_downhill),
    driven(to_and_fro),
    driven(two_parameters),
    driven(with_large_eps),
    otherwise="Go through the five lines of the algorithm one by one. After the first step, m̂ is the "
    "gradient and v̂ its square, so p has moved by lr. Does yours?",
    use=_path,
    without={optim.Adam.rule: WRITE.format("Adam")},
    form=OPTIMISER.format("Adam"),
)(Adam)


@adam.mistake(
    "You use m and v as they are. They begin at 0, so at first they are too small: divide them by "
    "1 − beta1ᵗ and 1 − beta2ᵗ."
)
class Uncorrected(Adam):
    def corrected(self, mean, beta, t):
        return mean


@adam.mistake("You correct m and not v. Both begin at 0, so divide v by 1 − beta2ᵗ, too.")
class OnlyMCorrected(Adam):
    def corrected(self, mean, beta, t):
        return mean if beta == self.beta2 else mean / (1 - beta**t)


@adam.mistake("You correct v and not m. Both begin at 0, so divide m by 1 − beta1ᵗ, too.")
class OnlyVCorrected(Adam):
    def corrected(self, mean, beta, t):
        return mean if beta == self.beta1 else mean / (1 - beta**t)


@adam.mistake("You correct v with beta1. Its share is beta2, so divide it by 1 − beta2ᵗ.")
class CorrectedAlike(Adam):
    def corrected(self, mean, beta, t):
        return mean / (1 - self.beta1**t)


@adam.mistake("Only beta is raised to the power of t: `1 - beta1**t`, and not `(1 - beta1)**t`.")
class PowerOfAll(Adam):
    def corrected(self, mean, beta, t):
        return mean / (1 - beta) ** t


@adam.mistake("You square m. v is a mean of the squared *gradients*: `grad * grad`.")
class SquareOfMean(Adam):
    def means(self, grad, state, beta1, beta2):
        m, _ = super().means(grad, {"m": state.get("m", 0)}, beta1, beta2)
        state["m"], state["v"] = m, beta2 * state.get("v", 0) + (1 - beta2) * m * m
        return m, state["v"]


@adam.mistake("Take the root of v̂ before you divide: v̂ is the mean of *squares*.")
class WithoutRoot(Adam):
    def rule(self, p, grad, state, t, lr, beta1, beta2, eps):
        m, v = self.means(grad, state, beta1, beta2)
        return p - lr * self.corrected(m, beta1, t) / (self.corrected(v, beta2, t) + eps)


@adam.mistake("v is a mean of *squared* gradients: `grad * grad`. Here it is a mean of the gradients.")
class NotSquared(Adam):
    def means(self, grad, state, beta1, beta2):
        m, _ = super().means(grad, state, beta1, beta2)
        state["v"] = beta2 * state.get("w", 0) + (1 - beta2) * grad
        state["w"] = state["v"]
        return m, state["v"]


@adam.mistake(
    "eps stands outside of the root: (root of v̂) + eps. Under the root it would weigh more where gradients "
    "are small."
)
class EpsUnderTheRoot(Adam):
    def rule(self, p, grad, state, t, lr, beta1, beta2, eps):
        m, v = self.means(grad, state, beta1, beta2)
        return p - lr * self.corrected(m, beta1, t) / (self.corrected(v, beta2, t) + eps) ** 0.5


@adam.mistake("Where is eps? Without it, a gradient of 0 would be divided by 0.")
class WithoutEps(Adam):
    def rule(self, p, grad, state, t, lr, beta1, beta2, eps):
        return super().rule(p, grad, state, t, lr, beta1, beta2, 0.0)


@adam.mistake(
    "You divide by 1 − beta in every step. The correction fades as t grows: it is 1 − beta to the power of t."
)
class SameEveryStep(Adam):
    def corrected(self, mean, beta, t):
        return mean / (1 - beta)


@adam.mistake("The betas are swapped: beta1 belongs to m, and beta2 to v.")
class BetasSwapped(Adam):
    def rule(self, p, grad, state, t, lr, beta1, beta2, eps):
        return super().rule(p, grad, state, t, lr, beta2, beta1, eps)


@adam.mistake(
    "You put the corrected means back into `state`. There m and v stay as they are; m̂ and v̂ are only for "
    "this step."
)
class CorrectedKept(Adam):
    def rule(self, p, grad, state, t, lr, beta1, beta2, eps):
        m, v = self.means(grad, state, beta1, beta2)
        state["m"], state["v"] = self.corrected(m, beta1, t), self.corrected(v, beta2, t)
        return p - lr * state["m"] / (state["v"] ** 0.5 + eps)


@adam.mistake("You divide the gradient of this step by the root of v̂. The step goes along the mean, m̂.")
class WithoutMean(Adam):
    def rule(self, p, grad, state, t, lr, beta1, beta2, eps):
        _, v = self.means(grad, state, beta1, beta2)
        return p - lr * grad / (self.corrected(v, beta2, t) ** 0.5 + eps)


@adam.mistake("You never put m and v into `state`, so each step begins with 0 again.")
class MeansNeverKept(Adam):
    def means(self, grad, state, beta1, beta2):
        return super().means(grad, {}, beta1, beta2)


@adam.mistake("This goes uphill. The step is subtracted.")
class AdamUphill(Adam):
    def rule(self, p, grad, state, t, lr, beta1, beta2, eps):
        return super().rule(p, grad, state, t, -lr, beta1, beta2, eps)


@adam.mistake("The first step has t = 1, and the `t` that you get counts so already. Do not add 1 to it.")
class CountsFromTwo(Adam):
    def corrected(self, mean, beta, t):
        return mean / (1 - beta ** (t + 1))


@adam.mistake(
    "You keep the means in the optimiser itself, so all parameters share them. `state` is there for this: "
    "each parameter has its own."
)
class MeansShared(Adam):
    def rule(self, p, grad, state, t, lr, beta1, beta2, eps):
        self.own: dict = getattr(self, "own", {})
        return super().rule(p, grad, self.own, t, lr, beta1, beta2, eps)


@adam.mistake(
    "A rule gets arrays on which NumPy's functions do not work. The root is `** 0.5`, which works for all."
)
class NumpyRoot(Adam):
    def rule(self, p, grad, state, t, lr, beta1, beta2, eps):
        _, v = self.means(grad, state, beta1, beta2)
        return np.sqrt(v)


@adam.mistake(
    "A rule gets arrays that are no Tensors, so operators such as `ndl.sqrt` refuse them. The root is "
    "`** 0.5`, which works for both."
)
class TensorRoot(Adam):
    def rule(self, p, grad, state, t, lr, beta1, beta2, eps):
        _, v = self.means(grad, state, beta1, beta2)
        return p - ops.sqrt(v)


@adam.mistake(
    'Before the first step `state` is empty. `state.get("m", 0)` gives 0 where nothing is kept yet.'
)
class EmptyAtFirst(Adam):
    def means(self, grad, state, beta1, beta2):
        state["m"] = beta1 * state["m"] + (1 - beta1) * grad
        return state["m"], state["v"]


@adam.mistake("In Python a power is `**`: `beta1**t`, `grad**2`. The sign `^` means something else.")
class Caret(Adam):
    def corrected(self, mean, beta, t):
        return mean / (1 - (beta ^ t))


@adam.mistake('You keep m and not v: a line must set `state["v"]`, too.')
class OnlyMKept(Adam):
    def means(self, grad, state, beta1, beta2):
        m, v = super().means(grad, state, beta1, beta2)
        del state["v"]
        return m, v


@adam.mistake('You keep v and not m: a line must set `state["m"]`, too.')
class OnlyVKept(Adam):
    def means(self, grad, state, beta1, beta2):
        m, v = super().means(grad, state, beta1, beta2)
        del state["m"]
        return m, v


@adam.mistake("m and v need two places in `state`: yours share one, or one of them reads the other's.")
class SamePlace(Adam):
    def means(self, grad, state, beta1, beta2):
        old = state.get("m", 0)
        state["m"] = beta1 * old + (1 - beta1) * grad
        return state["m"], beta2 * old + (1 - beta2) * grad * grad


@adam.mistake("Only the gradient is squared: `(1 - beta2) * grad**2`. You square its share, too.")
class ShareSquared(Adam):
    def means(self, grad, state, beta1, beta2):
        m, _ = super().means(grad, {"m": state.get("m", 0)}, beta1, beta2)
        state["m"], state["v"] = m, beta2 * state.get("v", 0) + ((1 - beta2) * grad) ** 2
        return m, state["v"]


@adam.mistake(
    "A bracket is missing: divide by `(v_hat**0.5 + eps)`. You divide first, and add eps after that."
)
class EpsAfterDividing(Adam):
    def rule(self, p, grad, state, t, lr, beta1, beta2, eps):
        return super().rule(p, grad, state, t, lr, beta1, beta2, 0.0) + eps


@adam.mistake("Return the new p alone. m and v stay in `state`.")
class AllReturned(Adam):
    def rule(self, p, grad, state, t, lr, beta1, beta2, eps):
        moved = super().rule(p, grad, state, t, lr, beta1, beta2, eps)
        return moved, state["m"], state["v"]


# --- 4 BatchNorm --------------------------------------------------------------------------------------------


def batches(what: str, count: int, *columns: tuple[float, float], rows: int = 4, scale: float = 1.0) -> Any:
    """A case: batches whose columns have these means and spreads, and what is looked at."""

    def make() -> dict[str, Any]:
        rng = np.random.default_rng(7)
        means, spreads = np.array(columns).T
        made = [(means + spreads * rng.normal(size=(rows, len(columns)))).round(1) for _ in range(count)]
        return {"the columns": [batch.T.tolist() for batch in made], "scale": scale, "what": PlainText(what)}

    return given(make, "what", "the columns", "scale")


class PlainText(str):
    """A text that a message shows without quotation marks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _by_column(numbers: Any) -> Any:
    """A Tensor for a message: column by column, with few digits."""
    if not isinstance(numbers, Tensor):
        return numbers
    columns = np.atleast_2d(numbers.numpy()).T
    return named("Tensor")({f"column {i}": column.round(5).tolist() for i, column in enumerate(columns)})


def _normalised(answer: Any, what: str, columns: Sequence[list], scale: float) -> Any:
    """What a layer gives that learns from some batches, each given by its columns."""
    layer = answer(len(columns[0]))
    for name in ("running_mean", "running_var"):  # as precise as the batches, so that `.data = …` works, too
        setattr(layer, name, Tensor(to_numpy(getattr(layer, name)), dtype="float64", requires_grad=False))
    layer.weight.data = layer.weight.data * scale
    layer.bias.data = layer.bias.data + (scale - 1)
    inputs = [Tensor(np.array(batch).T, dtype="float64") for batch in columns]
    outputs = [layer(x) for x in inputs]
    if not isinstance(outputs[0], Tensor) or what == "the output in training":
        return _by_column(outputs[-1])
    if what == "the gradient of x":
        target = Tensor(np.arange(float(inputs[0].size)).reshape(inputs[0].shape), dtype="float64")
        ((outputs[0] - target) ** 2).sum().backward()
        return _by_column(inputs[0].grad)
    if what == "the output in use":
        return _by_column(layer.eval()(inputs[-1]))
    if "after use" in what:
        layer.eval()(inputs[-1])
    running = [layer.running_mean, layer.running_var]
    found = [to_numpy(part).astype("float64").round(5).tolist() for part in running]
    history = any(getattr(part, "op", None) is not None for part in running)
    return dict(zip(("running_mean", "running_var", "with a history"), [*found, history], strict=True))


class BatchNorm(nn.BatchNorm1d):
    """The library's own."""


FOLLOWING = "running_mean and running_var"

batch_norm = lecture.exercise(
    batches("the output in training", 1, (0.0, 1.0), (10.0, 3.0)),
    batches("the output in training", 1, (2.0, 1.0), (4.0, 0.06), (7.0, 0.0), scale=3.0),
    batches("the gradient of x", 1, (0.0, 1.0), (10.0, 3.0)),
    batches(FOLLOWING, 1, (0.0, 1.0), (10.0, 3.0)),
    batches(FOLLOWING, 3, (5.0, 2.0), (0.0, 10.0), rows=3),
    batches("the output in use", 2, (5.0, 2.0), (0.0, 10.0), rows=3),
    batches(FOLLOWING + " after use", 2, (5.0, 2.0), (-1.0, 0.5), rows=3),
    otherwise="Take one column of a batch, and compute by hand: mean, variance, what comes out. Then compare "
    "with each line of your forward.",
    use=_normalised,
    without={
        nn.BatchNorm1d.forward: WRITE.format("BatchNorm1d"),
        ops.standardize: "`standardize` does it all for you. Write out the mean, the variance, the division.",
    },
    form="BatchNorm, {}, for batches with the columns {} (and the weight {}),",
)(BatchNorm)


class _Written(nn.Module):
    """BatchNorm with its parts, so that a mistake can change one of them."""

    def __init__(self, dim: int):
        self.weight = nn.Parameter(np.ones(dim))
        self.bias = nn.Parameter(np.zeros(dim))
        self.running_mean: Any = zeros(dim)
        self.running_var: Any = nn.BatchNorm1d(dim).running_var

    def forward(self, x: Tensor) -> Any:
        if self.training:
            mean, var = self.statistics(x)
            self.follow(mean.detach(), var.detach())
        else:
            mean, var = self.in_use(x)
        return self.scaled(self.normal(x, mean, var))

    def statistics(self, x: Tensor) -> tuple[Any, Any]:
        mean = x.mean(axes=(0,))
        return mean, ((x - mean) ** 2).mean(axes=(0,))

    def follow(self, mean: Any, var: Any) -> None:
        self.running_mean = 0.9 * self.running_mean + 0.1 * mean
        self.running_var = 0.9 * self.running_var + 0.1 * var

    def in_use(self, x: Tensor) -> tuple[Any, Any]:
        return self.running_mean, self.running_var

    def normal(self, x: Tensor, mean: Any, var: Any) -> Any:
        return (x - mean) / (var + 1e-5) ** 0.5

    def scaled(self, normal: Any) -> Any:
        return normal * self.weight + self.bias


@batch_norm.mistake(
    "You normalise each row. A feature is a column: its mean is over the batch, `axes=(0,)`. What you wrote "
    "is close to a LayerNorm."
)
class EachRow(_Written):
    def statistics(self, x):
        mean = x.mean(axes=(1,)).reshape((x.shape[0], 1))
        return mean, ((x - mean) ** 2).mean(axes=(1,)).reshape((x.shape[0], 1))

    def follow(self, mean, var):
        super().follow(mean.mean(), var.mean())


@batch_norm.mistake(
    "Your mean has one number for each row. A feature is a column, so it needs one for each column: "
    "`axes=(0,)`."
)
class RowsUnshaped(_Written):
    def statistics(self, x):
        mean = x.mean(axes=(1,))
        return mean, ((x - mean) ** 2).mean(axes=(1,))


@batch_norm.mistake("You take one mean for all features together. Each column needs its own: `axes=(0,)`.")
class OneForAll(_Written):
    def statistics(self, x):
        mean = x.mean()
        return mean, ((x - mean) ** 2).mean()


@batch_norm.mistake(
    "In training, a batch is normalised by its *own* mean and variance. The running ones only follow; they "
    "are for `eval()`."
)
class RunningInTraining(_Written):
    def forward(self, x):
        if self.training:
            mean, var = self.statistics(x)
            self.follow(mean.detach(), var.detach())
        return self.scaled(self.normal(x, self.running_mean, self.running_var))


@batch_norm.mistake(
    "In use, you still take the mean and variance of the batch. After `eval()`, `self.training` is False, "
    "and the running ones take their place."
)
class BatchInUse(_Written):
    def in_use(self, x):
        return self.statistics(x)


@batch_norm.mistake(
    "The running mean and variance change in use, too. They follow only in training, where `self.training` "
    "is True."
)
class FollowsInUse(_Written):
    def in_use(self, x):
        before = self.running_mean, self.running_var
        self.follow(*(part.detach() for part in self.statistics(x)))
        return before


@batch_norm.mistake(
    "You never ask for `self.training`. After `eval()` it is False: then the running mean and variance are "
    "used, and they stay as they are."
)
class AlwaysInTraining(_Written):
    def forward(self, x):
        mean, var = self.statistics(x)
        self.follow(mean.detach(), var.detach())
        return self.scaled(self.normal(x, mean, var))


@batch_norm.mistake(
    "The running mean and variance stay as they were. In training they move a tenth of the way to those of "
    "the batch."
)
class NeverFollows(_Written):
    def follow(self, mean, var):
        pass


@batch_norm.mistake(
    "The shares are swapped: nine tenths of the running mean stay, and the newest batch counts one tenth."
)
class RunningSwapped(_Written):
    def follow(self, mean, var):
        self.running_mean = 0.1 * self.running_mean + 0.9 * mean
        self.running_var = 0.1 * self.running_var + 0.9 * var


@batch_norm.mistake("The running mean is right. Let the running variance follow, too.")
class VarianceStays(_Written):
    def follow(self, mean, var):
        self.running_mean = 0.9 * self.running_mean + 0.1 * mean


@batch_norm.mistake(
    "Your running ones lose nothing: a tenth of the new is added to *all* of the old. Keep 0.9 of the old."
)
class NothingFades(_Written):
    def follow(self, mean, var):
        self.running_mean = self.running_mean + 0.1 * mean
        self.running_var = self.running_var + 0.1 * var


@batch_norm.mistake("The mean of `x - mean` is 0: above and below cancel. Take the mean of its squares.")
class NoSquares(_Written):
    def statistics(self, x):
        mean = x.mean(axes=(0,))
        return mean, (x - mean).mean(axes=(0,))


@batch_norm.mistake("This is the mean of the squares of x. Subtract the mean before you square.")
class SquaresOfX(_Written):
    def statistics(self, x):
        return x.mean(axes=(0,)), (x**2).mean(axes=(0,))


@batch_norm.mistake("You divide by the variance. Divide by its root, the standard deviation.")
class ByVariance(_Written):
    def normal(self, x, mean, var):
        return (x - mean) / (var + 1e-5)


@batch_norm.mistake(
    "A feature that is the same for the whole batch has the variance 0, and you divide by it. Add 1e-5 under "
    "the root."
)
class WithoutEpsilon(_Written):
    def normal(self, x, mean, var):
        return (x - mean) / var**0.5


@batch_norm.mistake("Add 1e-5 to the variance, under the root, and not to the root.")
class EpsilonOutside(_Written):
    def normal(self, x, mean, var):
        return (x - mean) / (var**0.5 + 1e-5)


@batch_norm.mistake("You divide, and that is right. But subtract the mean first.")
class NotCentred(_Written):
    def normal(self, x, mean, var):
        return x / (var + 1e-5) ** 0.5


@batch_norm.mistake("At the end comes what is learned: times `self.weight`, plus `self.bias`.")
class NothingLearned(_Written):
    def scaled(self, normal):
        return normal


@batch_norm.mistake(
    "First times `self.weight`, and *then* plus `self.bias`. You add the bias before you multiply."
)
class BiasFirst(_Written):
    def scaled(self, normal):
        return (normal + self.bias) * self.weight


@batch_norm.mistake("No bracket around weight and bias: times `self.weight`, and then plus `self.bias`.")
class WeightPlusBias(_Written):
    def scaled(self, normal):
        return normal * (self.weight + self.bias)


@batch_norm.mistake("Weight and bias are swapped: times `self.weight`, plus `self.bias`.")
class WeightAndBiasSwapped(_Written):
    def scaled(self, normal):
        return normal * self.bias + self.weight


@batch_norm.mistake("A bracket is missing: `(var + 1e-5) ** 0.5`. A power comes before the sum.")
class RootOfEpsilon(_Written):
    def normal(self, x, mean, var):
        return (x - mean) / (var + 1e-5**0.5)


@batch_norm.mistake(
    "A bracket is missing: you divide by the root of var alone, and only 1e-5 is multiplied by the weight. "
    "Write `(var + 1e-5) ** 0.5`."
)
class EpsilonTimesWeight(_Written):
    def forward(self, x):
        if self.training:
            self.follow(*(part.detach() for part in self.statistics(x)))
        mean, var = self.statistics(x) if self.training else self.in_use(x)
        return (x - mean) / var**0.5 + 1e-5 * self.weight + self.bias


@batch_norm.mistake("A bracket is missing: `(x - mean) / …`. Dividing comes before subtracting.")
class OnlyMeanDivided(_Written):
    def normal(self, x, mean, var):
        return x - mean / (var + 1e-5) ** 0.5


@batch_norm.mistake(
    "You take the running mean and variance in training, too. There the batch is normalised by its own; the "
    "running ones only follow."
)
class OnlyRunning(_Written):
    def forward(self, x):
        return self.scaled(self.normal(x, self.running_mean, self.running_var))


@batch_norm.mistake(
    "What comes out is right, but its gradient is not: the mean is detached. It must go through the mean; "
    "detach it only for the running one."
)
class MeanDetached(_Written):
    def statistics(self, x):
        mean = x.mean(axes=(0,)).detach()
        return mean, ((x - mean) ** 2).mean(axes=(0,))


@batch_norm.mistake("Where is the bias? At the end: times `self.weight`, plus `self.bias`.")
class WithoutBias(_Written):
    def scaled(self, normal):
        return normal * self.weight


@batch_norm.mistake(
    "What comes out is right, but its gradient is not. Mean and variance depend on x, so the gradient must "
    "go through them: detach them only for the running ones."
)
class Detached(_Written):
    def statistics(self, x):
        mean, var = super().statistics(x)
        return mean.detach(), var.detach()


@batch_norm.mistake(
    "The running mean keeps its history, so each step keeps the graphs of all steps before (lecture 06). Add "
    "`mean.detach()` and `var.detach()` to it."
)
class KeepsHistory(_Written):
    def forward(self, x):
        if self.training:
            mean, var = self.statistics(x)
            self.follow(mean, var)
            return self.scaled(self.normal(x, mean, var))
        return super().forward(x)


@batch_norm.mistake(
    "You divide the sum of squares by n − 1. BatchNorm divides by n: it is the mean of the squares."
)
class NMinusOne(_Written):
    def statistics(self, x):
        mean, var = super().statistics(x)
        return mean, var * (x.shape[0] / max(1, x.shape[0] - 1))


@batch_norm.mistake(
    "What comes out is right, but its gradient is not: your variance has no history. Compute it of Tensors."
)
class VarianceDetached(_Written):
    def statistics(self, x):
        mean, var = super().statistics(x)
        return mean, var.detach()


@batch_norm.mistake(
    "After `eval()` this name has no value: only the training branch gives it one. In use, take "
    "`self.running_mean` and `self.running_var`."
)
class OnlyInTraining(_Written):
    def forward(self, x):
        if self.training:
            mean, var = self.statistics(x)
            self.follow(mean.detach(), var.detach())
        return self.scaled(self.normal(x, mean, var))


@batch_norm.mistake("NumPy's functions refuse Tensors. The root of a Tensor is `** 0.5`.")
class RootOfNumpy(_Written):
    def normal(self, x, mean, var):
        return (x - mean) / np.sqrt(var + 1e-5)


@batch_norm.mistake("Tensors say `axes=`, not `axis=` as in NumPy: `x.mean(axes=(0,))`.")
class AxisOfNumpy(_Written):
    def statistics(self, x):
        return x.mean(axis=0), x


@batch_norm.mistake("A Tensor has no `var`. Write it out: the mean of the squares of `x - mean`.")
class AsksForVar(_Written):
    def statistics(self, x):
        return x.mean(axes=(0,)), x.var(axes=(0,))


# --- 5 Residual ---------------------------------------------------------------------------------------------


def _halves() -> nn.Module:
    layer = nn.Linear(3, 3, rng=0)
    return nn.Sequential(layer, nn.Tanh())


def _passed(answer: Any, make: Callable[[], nn.Module], x: np.ndarray) -> Any:
    """What a residual module gives for x, its gradient, and how many parameters it has."""
    inputs = Tensor(x, dtype="float64")
    module = answer(make())
    out = module(inputs)
    if not isinstance(out, Tensor):
        return out
    if out.requires_grad:
        out.sum().backward()
    found = {"output": out.numpy(), "gradient of x": None if inputs.grad is None else inputs.grad.numpy()}
    return named("Tensor")(found, parameters=len(module.parameters()))


class Residual(nn.Residual):
    """The library's own."""


residual = lecture.exercise(
    given(lambda: {"fn": nn.Tanh, "x": np.array([[1.0, -2.0, 0.5]])}, "fn", "x"),
    given(lambda: {"fn": _halves, "x": np.array([[0.0, 1.0, 3.0], [-1.0, 0.5, 0.25]])}, "fn", "x"),
    otherwise="`self.fn(x)` is what the branch computes. The input itself is added to it.",
    use=_passed,
    without={nn.Residual.forward: WRITE.format("Residual")},
    form="Residual({}())({})",
)(Residual)


class _Branch(nn.Module):
    def __init__(self, fn: nn.Module):
        self.fn = fn


@residual.mistake("This is only the branch. Add the input to it.")
class BranchOnly(_Branch):
    def forward(self, x):
        return self.fn(x)


@residual.mistake("You multiply the two. The input is *added*: then a 1 stands in the derivative.")
class Times(_Branch):
    def forward(self, x):
        return self.fn(x) * x


@residual.mistake("The input is added to the branch, and not subtracted from it.")
class Minus(_Branch):
    def forward(self, x):
        return self.fn(x) - x


@residual.mistake("Subtracting the branch is another network. Add it to the input.")
class BranchSubtracted(_Branch):
    def forward(self, x):
        return x - self.fn(x)


@residual.mistake("You call the branch twice, one after the other. Call it once, and add the input.")
class Twice(_Branch):
    def forward(self, x):
        return self.fn(self.fn(x)) + x


@residual.mistake(
    "The output is right, but the input is detached: its gradient can only go through the branch. The other "
    "way is what a residual is for."
)
class WayCut(_Branch):
    def forward(self, x):
        return self.fn(x) + x.detach()


def _built(answer: Any, dim: int, hidden: int) -> Any:
    """What a block gives at first, and after it has learned for three steps."""
    block = answer(dim, hidden, np.random.default_rng(0))
    if isinstance(block, (list, tuple)) and all(isinstance(part, nn.Module) for part in block):
        return [type(part).__name__ for part in block]
    if not isinstance(block, nn.Module):
        return block
    rng = np.random.default_rng(1)
    x = Tensor(rng.normal(size=(6, dim)), requires_grad=False)
    target = Tensor(rng.normal(size=(6, dim)), requires_grad=False)

    def outputs() -> list[float]:
        return block(x).numpy().mean(axis=0, dtype="float64").round(5).tolist()

    found: dict[str, Any] = named("Module")({"mean outputs at first": outputs()})
    for _ in range(3):
        loss = ((block(x) - target) ** 2).mean()
        loss.backward()
        for p in block.parameters():
            if p.grad is not None:
                p.data = p.data - 0.5 * p.grad.data
    found["after three steps"] = outputs()
    block.eval()
    found["in use"] = outputs()
    found["parameters"] = sum(p.size for p in block.parameters())
    return found


def _branch(dim: int, hidden: int, rng: Any) -> list[nn.Module]:
    """Linear, BatchNorm, ReLU, Linear, BatchNorm, of which the last begins with weight 0."""
    last = nn.BatchNorm1d(dim)
    first, second = nn.Linear(dim, hidden, rng=rng), nn.Linear(hidden, dim, rng=rng)
    last.weight.data = zeros(dim)
    return [first, nn.BatchNorm1d(hidden), nn.ReLU(), second, last]


@lecture.exercise(
    case(4, 2),
    case(3, 5),
    otherwise="Print your block, and compare it with the five modules of the list and the ReLU after the "
    "sum. Is the first Linear drawn before the second?",
    use=_built,
    form="residual_block({}, {}, rng)",
)
def residual_block(dim, hidden, rng):
    """relu(x + branch(x)), where the branch gives 0 at first."""
    return nn.Sequential(nn.Residual(nn.Sequential(*_branch(dim, hidden, rng))), nn.ReLU())


@residual_block.mistake(
    "At first your block changes its input already. The last BatchNorm must begin with the weight 0: "
    "`last.weight.data = …`."
)
def ordinary_start(dim, hidden, rng):
    branch = _branch(dim, hidden, rng)
    branch[4] = nn.BatchNorm1d(dim)
    return nn.Sequential(nn.Residual(nn.Sequential(*branch)), nn.ReLU())


@residual_block.mistake(
    "Both BatchNorms begin with the weight 0. Then no gradient comes through the branch, and it never "
    "learns from x. Only the last one begins so."
)
def both_at_zero(dim, hidden, rng):
    branch: list[Any] = _branch(dim, hidden, rng)
    branch[1].weight.data = zeros(hidden)
    return nn.Sequential(nn.Residual(nn.Sequential(*branch)), nn.ReLU())


@residual_block.mistake("You set the weight of the *first* BatchNorm to 0. It is the last one's.")
def first_at_zero(dim, hidden, rng):
    branch: list[Any] = _branch(dim, hidden, rng)
    branch[1].weight.data, branch[4] = zeros(hidden), nn.BatchNorm1d(dim)
    return nn.Sequential(nn.Residual(nn.Sequential(*branch)), nn.ReLU())


@residual_block.mistake(
    "`nn.ReLU()` makes a module, and takes nothing. Put it behind the Residual: "
    "`nn.Sequential(Residual(…), nn.ReLU())`."
)
def relu_of(dim, hidden, rng):
    relu: Any = nn.ReLU
    return relu(nn.Residual(nn.Sequential(*_branch(dim, hidden, rng))))


@residual_block.mistake(
    "`last.weight` must stay a Parameter, or it is never learned. Give it new numbers: "
    "`last.weight.data = …`."
)
def weight_replaced(dim, hidden, rng):
    branch: list[Any] = _branch(dim, hidden, rng)
    branch[4].weight = zeros(dim)
    return nn.Sequential(nn.Residual(nn.Sequential(*branch)), nn.ReLU())


@residual_block.mistake("`Residual` takes one module. Put the five into an `nn.Sequential` first.")
def not_put_together(dim, hidden, rng):
    residual_of: Any = nn.Residual
    return residual_of(*_branch(dim, hidden, rng))


@residual_block.mistake(
    "A Linear draws its weights from the generator that it gets. Give both of them `rng=rng`, so that "
    "everyone gets the same."
)
def without_rng(dim, hidden, rng):
    branch = _branch(dim, hidden, rng)
    branch[0], branch[3] = nn.Linear(dim, hidden), nn.Linear(hidden, dim)
    return nn.Sequential(nn.Residual(nn.Sequential(*branch)), nn.ReLU())


@residual_block.mistake("The last BatchNorm is not in the branch. It comes after the second Linear.")
def without_the_last_norm(dim, hidden, rng):
    branch = _branch(dim, hidden, rng)
    return nn.Sequential(nn.Residual(nn.Sequential(*branch[:4])), nn.ReLU())


@residual_block.mistake("A list is not a module. Put its parts together with `nn.Sequential`.")
def only_a_list(dim, hidden, rng):
    return [nn.Residual(nn.Sequential(*_branch(dim, hidden, rng))), nn.ReLU()]


@residual_block.mistake("You make the second Linear first, so the two draw each other's weights.")
def second_drawn_first(dim, hidden, rng):
    branch = _branch(dim, hidden, 0)
    branch[3] = nn.Linear(hidden, dim, rng=rng)
    branch[0] = nn.Linear(dim, hidden, rng=rng)
    return nn.Sequential(nn.Residual(nn.Sequential(*branch)), nn.ReLU())


@residual_block.mistake("A ReLU comes after the sum, too: put one behind the Residual.")
def without_the_last_relu(dim, hidden, rng):
    return nn.Residual(nn.Sequential(*_branch(dim, hidden, rng)))


@residual_block.mistake(
    "The ReLU at the end stands inside the branch. It comes after the sum, so put it behind the Residual."
)
def relu_inside(dim, hidden, rng):
    return nn.Residual(nn.Sequential(*_branch(dim, hidden, rng), nn.ReLU()))


@residual_block.mistake("Nothing is added to the input: the branch is there, but no Residual around it.")
def no_residual(dim, hidden, rng):
    return nn.Sequential(*_branch(dim, hidden, rng), nn.ReLU())


@residual_block.mistake("The ReLU inside the branch is missing: without it, two linear layers are like one.")
def without_the_inner_relu(dim, hidden, rng):
    branch = _branch(dim, hidden, rng)
    del branch[2]
    return nn.Sequential(nn.Residual(nn.Sequential(*branch)), nn.ReLU())


@residual_block.mistake(
    "The first BatchNorm is missing. The branch is Linear, BatchNorm, ReLU, Linear, BatchNorm."
)
def without_the_first_norm(dim, hidden, rng):
    branch = _branch(dim, hidden, rng)
    del branch[1]
    return nn.Sequential(nn.Residual(nn.Sequential(*branch)), nn.ReLU())


@residual_block.mistake(
    "You set the last *Linear* to 0. Then the BatchNorm after it divides by almost nothing. Set the weight "
    "of the last BatchNorm to 0."
)
def linear_at_zero(dim, hidden, rng):
    branch: list[Any] = _branch(dim, hidden, rng)
    branch[3].weight.data, branch[3].bias.data = zeros(hidden, dim), zeros(1, dim)
    branch[4] = nn.BatchNorm1d(dim)
    return nn.Sequential(nn.Residual(nn.Sequential(*branch)), nn.ReLU())


@residual_block.mistake(
    "The ReLU stands before the BatchNorm. In this block it comes after it: Linear, BatchNorm, ReLU."
)
def relu_first(dim, hidden, rng):
    branch = _branch(dim, hidden, rng)
    branch[1], branch[2] = branch[2], branch[1]
    return nn.Sequential(nn.Residual(nn.Sequential(*branch)), nn.ReLU())


@residual_block.mistake(
    "The first BatchNorm gets `hidden` features, and the last one `dim`: each is as wide as the Linear "
    "before it."
)
def norm_too_wide(dim, hidden, rng):
    branch = _branch(dim, hidden, rng)
    branch[1] = nn.BatchNorm1d(dim)
    return nn.Sequential(nn.Residual(nn.Sequential(*branch)), nn.ReLU())


@residual_block.mistake(
    "The two Linears are equal: each draws from the generator `rng` itself, so give both the same `rng`, "
    "and no seed."
)
def same_seed(dim, hidden, rng):
    branch = _branch(dim, hidden, rng)
    branch[0], branch[3] = nn.Linear(dim, hidden, rng=0), nn.Linear(hidden, dim, rng=0)
    return nn.Sequential(nn.Residual(nn.Sequential(*branch)), nn.ReLU())
