"""Train a small network on points in the plane, in steps small enough to watch.

It knows nothing of the app, so it works in a notebook too::

    trainer = Trainer(Settings(dataset="spiral", hidden=(16, 16)))
    while trainer.epochs < 400:
        trainer.epoch()
    trainer.figures.test_error
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np

import needle as ndl
from needle import Tensor, optim
from needle.data import toy

from . import features
from .history import Thinned
from .network import Learner, constant, half_squares
from .points import MAKERS, difference
from .settings import DATA, FIELDS, LIVE, VIEW, Settings

__all__ = ["Figures", "Trainer"]

_Points = tuple[np.ndarray, np.ndarray]  # of shape (n, 2), and their labels

#: Epochs of a new network before its step is traced, so that they show at once.
FIRST_EPOCHS = 2
#: A run that was changed more often by hand can't be told as a script.
MOST_CHANGES = 500
#: The network computes with float32: a larger loss can't be told from infinity.
_LARGEST_LOSS = float(np.finfo("float32").max)
#: Of the points: with so few on the wrong side, outputs of exactly −1 and +1 are what was to be learned.
_FEW_WRONG = 0.1


class Figures(NamedTuple):
    """How good the network is: the mean of ½ (output - label)², and the share of points on the wrong side."""

    train_loss: float
    test_loss: float
    train_error: float
    test_error: float


class Trainer:
    """A network, its data and its optimiser.

    All randomness comes from the settings' two seeds: the data from `seed`, and from `weights_seed`, in
    independent streams, the first weights, the order of the batches, and dropout.

    Parameters
    ----------
    settings : Settings
        What to learn, with which network and how.
    before : Trainer, optional
        A trainer that is not needed any more. If its network is of the same kind, it is used again, with
        what is compiled for it.
    may_compile : callable, optional
        Asked, from time to time, whether this is a good moment to trace the step of a new network, which
        takes some tens of milliseconds. Default: it always is.

    Attributes
    ----------
    learner : Learner
        The network, its optimiser and its compiled step.
    train, test : tuple of numpy.ndarray
        Points of shape (n, 2) and labels of shape (n,). The user's own come last in each.
    steps, epochs : int
        Training steps and complete epochs so far.
    figures : Figures
        As they were when it was measured, which it is after each epoch; NaN where there are no points.
    losses : Thinned
        The train and the test loss after every epoch so far.
    moments : Thinned
        States after some of these epochs: `travel` goes back to them.
    first : Settings
        The settings that it began with.
    changes : list of tuple
        What was changed since: (steps until then, what, value). With `first`, they tell the whole run.
    is_compiled : bool
        Whether the last steps ran as compiled code.
    trouble : str or None
        Why the training stands still, in words. None while it runs.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        before: Trainer | None = None,
        may_compile: Callable[[], bool] = lambda: True,
    ) -> None:
        self._may_compile = may_compile
        self.first = self.settings = settings = settings or Settings()
        self._take(*self._make_data(settings))
        reused = before is not None and before.learner.fits(settings)
        self.learner: Learner = before.learner if before and reused else Learner(settings)
        self.learner.begin(settings, np.random.default_rng([settings.weights_seed, 1]))
        self._order_rng = np.random.default_rng([settings.weights_seed, 2])
        self._schedule = _schedule(self.learner.optimizer, settings, 0)

        self.steps = self.epochs = 0
        self._speed = 0.0  # steps a second, as far as is known
        self.losses: Thinned[tuple[float, float]] = Thinned(300)
        self.moments: Thinned[dict[str, Any]] = Thinned(60)
        self.changes: list[tuple[int, str, Any]] = []
        self._now: dict[str, Any] | None = None  # the state to come back to from an earlier moment, …
        self._then: list[tuple[int, str, Any]] = []  # … and the changes until that moment
        self._gone: dict[str, Any] | None = None  # what came later, where it went on from an earlier moment
        self.is_compiled = self._is_chosen = False
        self.trouble: str | None = None
        self._finish_epoch()

    @property
    def model(self) -> ndl.nn.Sequential:
        """The network."""
        return self.learner.model

    # ---- the data ------------------------------------------------------------------------------------------

    def _make_data(self, settings: Settings) -> tuple[tuple[_Points, _Points], list[np.ndarray]]:
        """Points, and what the network sees of them. FeatureError if an input has no value at one of them."""
        data = _data(settings)
        return data, [self._features(points) for points, _ in data]

    def _take(self, data: tuple[_Points, _Points], inputs: list[np.ndarray]) -> None:
        """Learn from these points."""
        (self.train, self.test), self._inputs = data, inputs
        self._all = constant(np.concatenate(self._inputs))
        self._order = np.arange(len(self.train[0]))
        self._position = len(self._order)  # where the next batch begins in `_order`

    def _features(self, points: np.ndarray) -> np.ndarray:
        return np.stack([features.evaluate(text, points) for text in self.settings.inputs], axis=1)

    @property
    def own_test(self) -> int:
        """How many of the user's own points are to test with."""
        return int(np.sum(~_learns(len(self.settings.own), self.settings.train_share)))

    @property
    def train_inputs(self) -> Tensor:
        """What the network sees of the points that it learns from: shape (n, inputs)."""
        return constant(self._inputs[0])

    @property
    def layer_names(self) -> list[str]:
        """What to call each layer but the inputs: "Layer 1 (tanh)", …, "Output (tanh)"."""
        settings = self.settings
        words = FIELDS["activation"].words
        names = [settings.activation_of(layer) for layer in settings.hidden]
        hidden = [f"Layer {number} ({words.get(name, name)})" for number, name in enumerate(names, start=1)]
        return [*hidden, f"Output ({'linear' if settings.is_regression else 'tanh'})"]

    # ---- changes -------------------------------------------------------------------------------------------

    def retune(self, settings: Settings) -> bool:
        """Go on with other settings, if a running training can take them over: see `LIVE` and `VIEW`.

        Returns
        -------
        bool
            False if these settings need a new `Trainer`. Then nothing has changed.

        Raises
        ------
        FeatureError
            If an input has no value at one of the new points. Then nothing has changed either.
        """
        changed = settings.different_from(self.settings)
        if not set(changed) <= LIVE | VIEW or settings.is_regression != self.settings.is_regression:
            return False
        has_new_data = bool(DATA & {*changed})
        if has_new_data:
            made = self._make_data(settings)
            self._forget_what_came_later()
            self._take(*made)
            self._gone = None  # it belongs to other points
        self.settings = settings
        for name in changed:
            if name not in VIEW | {"compiled"}:
                self._note(name, getattr(settings, name))
        if {"learning_rate", "schedule", "period"} & {*changed}:
            self._schedule = _schedule(self.learner.optimizer, settings, self.epochs)
        if has_new_data:
            self.measure()
            self._note_losses()
            self.moments.cut(-1)  # they belong to other points
            self.remember()
        self._speed = 0.0
        self._is_chosen = False
        return True

    def set_weight(self, layer: int, start: int, end: int, value: float) -> None:
        """Give a link another weight: from neuron `start` to neuron `end` of a layer, counted from 1."""
        self._set(layer, "weight", (start, end), value)

    def set_bias(self, layer: int, neuron: int, value: float) -> None:
        """Give a neuron of layer `layer`, counted from 1, another bias."""
        self._set(layer, "bias", (0, neuron), value)

    def _set(self, layer: int, name: str, place: tuple[int, int], value: float) -> None:
        if not math.isfinite(value) or not 1 <= layer <= len(self.learner.linears):
            raise ValueError(f"a {name} of layer {layer} can't become {value!r}")
        parameter = getattr(self.learner.linears[layer - 1], name)
        numbers = parameter.numpy().copy()
        if not all(0 <= i < size for i, size in zip(place, numbers.shape, strict=True)):
            raise ValueError(f"layer {layer} has no {name} at {place}")
        self._forget_what_came_later()
        numbers[place] = value
        parameter.data = constant(numbers)
        self._note(name, (layer, *place, float(numbers[place])))
        self.measure()

    def _note(self, what: str, value: Any) -> None:
        """Remember a change. Of several to the same thing in between two steps, the last one counts.

        One more than `MOST_CHANGES` are kept, to tell that there were too many.
        """
        now = self._now["steps"] if self._now else self.steps  # a setting is changed in the present
        place = value[:3] if what in ("weight", "bias") else ()
        for i, (steps, other, then) in enumerate(self.changes):
            if steps == now and other == what and (then[:3] if place else ()) == place:
                del self.changes[i]
                break
        if len(self.changes) <= MOST_CHANGES:
            self.changes.append((now, what, value))

    def short_changes(self) -> list[tuple[int, str, Any]]:
        """The changes, but of the user's own points only the `difference`, as large as the change."""
        own, told = self.first.own, []
        for steps, what, value in self.changes:
            if what == "own":
                own, value = value, difference(own, value)
            told.append((steps, what, value))
        return told

    # ---- learning ------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Learn from the next batch. After the last batch of an epoch, measure the figures."""
        self._learn(until=-math.inf)

    def epoch(self, at_most: float = math.inf) -> Figures:
        """Learn from the remaining batches of the current epoch, for `at_most` seconds at the longest."""
        target = self.epochs + 1
        deadline = time.perf_counter() + at_most
        while self.epochs < target and not self.trouble:
            self._learn(deadline)
            if time.perf_counter() >= deadline:
                break
        return self.figures

    def run_for(self, seconds: float) -> int:
        """Learn for about so many seconds, at least one step. Returns the number of steps."""
        deadline = time.perf_counter() + seconds
        before = self.steps
        while not self.trouble:
            self._learn(deadline)
            if time.perf_counter() >= deadline:
                break
        return self.steps - before

    def wait(self) -> None:
        """Wait until the steps are compiled, where that has begun."""
        self.learner.step.wait()

    def _learn(self, until: float) -> None:
        """Learn from the next batches of an epoch: as many as there seems to be time for, at least one."""
        if self.trouble:
            return
        self._forget_what_came_later()
        began = time.perf_counter()
        if self._position >= len(self._order):
            self._order = self._order_rng.permutation(len(self._order))
            self._position = 0
            self._is_chosen = self._is_chosen and self.is_compiled  # ask again until it is ready
        if not self._is_chosen:
            self._choose_compiled()
        rest = self._order[self._position :]
        size = min(self.settings.batch_size, len(rest))
        steps = int(max(1, min(len(rest) // size, self._speed and self._speed * (until - began))))
        chosen = rest[: steps * size]
        with np.errstate(all="ignore"):  # numbers that overflow are reported by `trouble`, in words
            batches = self._batches(chosen, steps)
            if self.is_compiled:
                ndl.scan(self.learner.step, *batches)
            else:
                for i in range(steps):
                    self.learner.step.function(*[batch[i].detach() for batch in batches])
        self._speed = steps / (time.perf_counter() - began)
        self.steps += steps
        self._position += len(chosen)
        if self._position >= len(self._order):
            self.epochs += 1
            self._schedule.step()
            self._finish_epoch()

    def _batches(self, chosen: np.ndarray, steps: int) -> list[Tensor]:
        inputs, labels = self._inputs[0][chosen], self.train[1][chosen]
        return [
            constant(inputs.reshape(steps, -1, inputs.shape[1])),
            constant(labels.reshape(steps, -1, 1)),
            constant(np.full(steps, self.settings.regularisation_rate)),
        ]

    def _choose_compiled(self) -> None:
        """Decide whether the epoch's steps run compiled: once all sizes of batches are ready.

        So what ran how is told by few words, and the run can be repeated to the last digit.
        """
        sizes = {min(self.settings.batch_size, len(self._order)), len(self._order) % self.settings.batch_size}
        if not self.learner.may_compile and self.epochs >= FIRST_EPOCHS:
            self.learner.may_compile = self._may_compile()
        ready = self.settings.compiled and self.learner.may_compile
        if ready:
            batches = [self._batches(self._order[:size], 1) for size in sizes - {0}]
            asked = [ndl.compiler.scan_is_ready(self.learner.step, *batch) for batch in batches]
            ready = all(asked)  # each was asked, and so begun
        if ready != self.is_compiled:
            self.is_compiled = ready
            self._note("compiled", ready)
        self._is_chosen = True

    # ---- what the network does -----------------------------------------------------------------------------

    def activations(self, points: np.ndarray) -> list[np.ndarray]:
        """The output of every layer at points of shape (n, 2).

        Returns
        -------
        list of numpy.ndarray
            One array of shape (n, neurons) for each layer; the last one is the network's output, (n, 1).
        """
        return self.learner.outputs(constant(self._features(points)))

    def predict(self, points: np.ndarray) -> np.ndarray:
        """The network's output at points of shape (n, 2): shape (n,)."""
        return self.activations(points)[-1][:, 0]

    def gradients(self) -> list[np.ndarray]:
        """The gradient of each layer's weights for the loss of all training points, without the penalty."""
        with self.learner.in_use():
            loss = half_squares(self.model(self.train_inputs), constant(self.train[1][:, None]))
            found = ndl.gradients(loss, [linear.weight for linear in self.learner.linears])
            return [gradient.numpy() for gradient in found]

    def graph(self, size: int = 2) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of the first few training points, and names for the Tensors on the way, to be drawn.

        Parameters
        ----------
        size : int
            How many points.

        Returns
        -------
        tuple
            The loss, and a dict of ``x`` and ``y`` (inputs and labels), ``W1``, ``b1``, ``h1`` (the first
            layer's weights, bias and result) and so on, ``output`` and ``loss``. Their gradients are those of
            this loss.
        """
        value = constant(self._inputs[0][:size])
        names = {"x": value, "y": constant(self.train[1][:size, None])}
        with self.learner.in_use():
            for number, (layer, title) in enumerate(
                zip(self.model.modules, self.layer_names, strict=True), 1
            ):
                linear = layer.modules[0]
                with ndl.scope(title):
                    value = layer(value)
                names |= {f"W{number}": linear.weight, f"b{number}": linear.bias, f"h{number}": value}
            names["output"] = names.pop(f"h{len(self.model.modules)}")
            with ndl.scope("Loss"):
                names["loss"] = half_squares(value, names["y"])
            names["loss"].backward(create_graph=False)  # replaces what the last batch has left
        return names["loss"], names

    # ---- moments -------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All that the next steps depend on besides the settings; `restore` takes it back."""
        return {
            **self.learner.state(),
            "order": self._order,
            "order_rng": self._order_rng.bit_generator.state,
            "position": self._position,
            "steps": self.steps,
            "epochs": self.epochs,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of a trainer with the same settings. ValueError if it does not fit."""
        order = np.asarray(state["order"], dtype=int)
        if sorted(order) != list(range(len(self._order))):
            raise ValueError("this state belongs to other points")
        self.learner.restore(state)
        self._order = order
        self._order_rng.bit_generator.state = state["order_rng"]
        self._position = state["position"]
        self.steps, self.epochs = state["steps"], state["epochs"]
        self._is_chosen = False
        self._schedule = _schedule(self.learner.optimizer, self.settings, self.epochs)
        self.measure()

    def copy(self) -> Trainer:
        """A trainer that is where this one is, to look at while this one goes on."""
        other = Trainer(self.settings)
        other.first, other.changes = self.first, list(self.changes)
        other.losses, other.moments = copy(self.losses), copy(self.moments)
        other.restore(self.state())
        other.is_compiled = self.is_compiled
        if self.looks_back:
            other._now, other._then = self._now, self._then
            other._forget_what_came_later()
        return other

    @property
    def looks_back(self) -> bool:
        """Whether it shows an earlier moment."""
        return self._now is not None

    def remember(self) -> None:
        """Keep the present state as a moment, and what was changed until then."""
        self.moments.add(self.epochs, {**self.state(), "changes": list(self.changes)})

    @property
    def epoch_share(self) -> float:
        """How far it is in the present epoch, from 0 to 1."""
        count = len(self._order)
        return self._position / count if self._position < count else 0.0

    def travel(self, epoch: int | None) -> None:
        """Go to the remembered moment nearest to an epoch, if there is one; None: back to the present."""
        if epoch is None:
            if self._now is not None:
                self.restore(self._now)
                self.figures = self._now["figures"]
                self._now = None
            return
        if not self.moments.items():
            return  # there were no points to learn from yet
        moment = self.moments.nearest(epoch)
        if self._now is None:
            self._now = {**self.state(), "figures": self.figures}
        self.restore(moment)
        self._then = moment["changes"]

    def _forget_what_came_later(self) -> None:
        """Go on from the moment that is shown."""
        if self._now is not None:
            kept = {"losses": copy(self.losses), "moments": copy(self.moments), "changes": self.changes}
            self._gone = {**self._now, **kept, "after": self.epochs}
            self._now = None
            self.losses.cut(self.epochs)
            self.moments.cut(self.epochs)
            self.changes = list(self._then)
            self._note_settings()

    @property
    def gone_after(self) -> int | None:
        """The epoch from which it went on, while `bring_back` can bring back what came later; else None."""
        return self._gone["after"] if self._gone else None

    def bring_back(self) -> None:
        """Be where it was before it went on from an earlier moment, with all that had come later."""
        if self._gone:
            gone, self._gone, self._now = self._gone, None, None
            self.restore(gone)
            self.figures, self.changes = gone["figures"], gone["changes"]
            self.losses, self.moments = gone["losses"], gone["moments"]
            self._note_settings()

    def _note_settings(self) -> None:
        """Note, of the settings that may change, those that the changes do not tell."""
        told = {what: value for _, what, value in self.changes}
        self.is_compiled = told.get("compiled", False)
        for name in LIVE - {"compiled"}:
            if told.get(name, getattr(self.first, name)) != getattr(self.settings, name):
                self._note(name, getattr(self.settings, name))

    # ---- figures -------------------------------------------------------------------------------------------

    def _finish_epoch(self) -> None:
        if self._gone and self.epochs > self._gone["epochs"]:
            self._gone = None  # the new curve has come as far
        self.measure()
        self._note_losses()
        if not self.trouble and self.moments.wants(self.epochs):
            self.remember()

    def _note_losses(self) -> None:
        train_loss, test_loss = self.figures[:2]
        if train_loss <= _LARGEST_LOSS and not test_loss > _LARGEST_LOSS:
            self.losses.add(self.epochs, (train_loss, test_loss))

    def measure(self) -> None:
        """Bring `figures` and `trouble` up to date, also within an epoch."""
        self.trouble = None
        split = len(self._order)
        outputs = self.learner.outputs(self._all)[-1][:, 0]
        train_loss, train_error = _quality(outputs[:split], self.train[1])
        test_loss, test_error = _quality(outputs[split:], self.test[1])
        self.figures = Figures(train_loss, test_loss, train_error, test_error)
        if not split:
            self.trouble = "There are no points to learn from. Paint some, or choose a data set."
        elif not (np.isfinite(outputs).all() and train_loss <= _LARGEST_LOSS):
            self.trouble = (
                f"Training diverged in epoch {self.epochs}: the loss overflowed. Choose a "
                f"learning rate below {self.learner.optimizer.lr:g} and press Reset."
            )
        elif self._is_stuck(outputs[:split], train_error):
            self.trouble = (
                f"Every output has been exactly −1 or +1 since epoch {self.epochs}, so all gradients are 0 "
                "and nothing moves. "
                f"Choose a learning rate below {self.learner.optimizer.lr:g} and press Reset."
            )

    def _is_stuck(self, outputs: np.ndarray, error: float) -> bool:
        are_all_at_the_end = bool(np.all(np.abs(outputs) == 1))
        return error > _FEW_WRONG and not self.settings.is_regression and are_all_at_the_end


def _data(settings: Settings) -> tuple[_Points, _Points]:
    """Points and labels to learn from, and others to test with.

    Of the user's own points, an even share is to test with.
    """
    own = np.array(settings.own, dtype=float).reshape(-1, 3)
    learns = _learns(len(own), settings.train_share)
    parts = [(own[chosen, :2], own[chosen, 2]) for chosen in (learns, ~learns)]
    make = MAKERS.get(settings.dataset)
    if make is None:
        return parts[0], parts[1]
    rng = np.random.default_rng([settings.seed, 0])
    made = toy.train_test_split(*make(settings.points, settings.noise, rng), settings.train_share, rng)
    (train, train_labels), (test, test_labels) = (
        (np.concatenate([a, c]), np.concatenate([b, d])) for (a, b), (c, d) in zip(made, parts, strict=True)
    )
    return (train, train_labels), (test, test_labels)


def _learns(count: int, share: float) -> np.ndarray:
    """Which of the user's own points are to learn from.

    They are spread evenly, so that one more point changes no other's part.
    """
    return np.diff(np.floor(np.arange(count + 1) * share + 0.5)) > 0


def _schedule(optimizer: optim.Optimizer, settings: Settings, epochs: int) -> optim.Schedule:
    """What sets the learning rate after each epoch, from an epoch on."""
    optimizer.lr = settings.learning_rate
    made = {
        "constant": lambda: optim.StepLR(optimizer, settings.period, 1.0),
        "steps": lambda: optim.StepLR(optimizer, settings.period, 0.5),
        "cosine": lambda: optim.CosineLR(optimizer, settings.period),
        "warm-up": lambda: optim.WarmUp(optimizer, settings.period),
    }[settings.schedule]()
    made.load_state_dict({**made.state_dict(), "t": epochs})
    return made


def _quality(outputs: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """The loss, and the share of points on the wrong side; NaN without points."""
    if not len(labels):
        return math.nan, math.nan
    with np.errstate(all="ignore"):
        loss = float(np.mean(0.5 * (outputs - labels) ** 2))
    return loss, float(np.mean((outputs > 0) != (labels > 0)))
