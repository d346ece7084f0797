"""What a network says about itself when it learns no more, or learns by heart."""

from __future__ import annotations

import numpy as np

from .settings import Settings
from .trainer import Trainer

__all__ = ["hint"]

#: Epochs over which the loss must have stood still, and by which share of itself it may have moved.
_EPOCHS = 20
_STILL = 1e-3
#: A network is good with so small a share of wrong points, or of the labels' own variance.
_GOOD = 0.05
#: It has learned something with so few wrong points, even where the noise lets no network do better.
_BETTER_THAN_CHANCE = 0.4
#: A layer whose weights are all smaller than this passes nothing on.
_NEAR_0 = 0.05
#: By which factor, and by how much besides, the test loss rises where a network learns by heart.
_RISE, _RISE_BESIDES = 1.15, 0.01
_LAST = 5  # losses that are averaged: one alone may be an outlier


def hint(trainer: Trainer) -> str | None:
    """What hinders a network, and what helps; None if nothing does, or while it shows an earlier moment.

    The first of these that holds: it learns its points by heart; many hidden units are 0 for every point
    (ReLU) or at one end of their range for every point (tanh, sigmoid), where their gradients are 0; a
    penalty holds the weights near 0; the loss stands still.
    """
    if trainer.trouble or trainer.looks_back or not len(trainer.train[0]):
        return None
    said = _learns_by_heart(trainer)
    if said or _is_good(trainer):
        return said
    stands_still = _stands_still(trainer)
    return _units_that_learn_nothing(trainer, stands_still) or (_why_still(trainer) if stands_still else None)


def _learns_by_heart(trainer: Trainer) -> str | None:
    entries = _losses(trainer)
    if len(entries) < _LAST:
        return None
    tests = [test for _, (_, test) in entries]
    best = int(np.argmin(tests))  # the first NaN where there are no test points: then nothing follows
    epoch, (train_then, test_then) = entries[best]
    train_now, test_now = np.mean([pair for _, pair in entries[-_LAST:]], axis=0)
    rises = test_now > _RISE * test_then + _RISE_BESIDES
    if not (rises and train_now < train_then and trainer.epochs >= epoch + _EPOCHS):
        return None
    settings = trainer.settings
    penalty = "a higher penalty rate" if settings.has_penalty else "L2"
    when = f"since epoch {epoch:,}" if epoch else "from the start"
    noise = _noise(settings)
    what = f"the noise of {100 * noise:g} %" if noise else "its points"
    return (
        f"The test loss has risen {when}, but the training loss fell: this network learns {what} by heart. "
        f"{'Less noise, more' if noise else 'More'} points or {penalty} may help."
    )


def _is_good(trainer: Trainer) -> bool:
    if trainer.settings.is_regression:
        return bool(trainer.figures.train_loss <= _GOOD * np.var(trainer.train[1]) / 2)
    return trainer.figures.train_error <= _GOOD


def _units_that_learn_nothing(trainer: Trainer, stands_still: bool) -> str | None:
    settings = trainer.settings
    names = [settings.activation_of(layer) for layer in settings.hidden]
    layers = zip(names, trainer.learner.outputs(trainer.train_inputs), trainer.learner.linears, strict=False)
    for number, (name, values, linear) in enumerate(layers, start=1):
        if name == "relu":
            idle = np.all(values == 0, axis=0)
            what = "0 for every point"
            way_out = "Press Reset for other first weights; a lower learning rate keeps more units alive."
        elif name in ("tanh", "sigmoid"):
            low = -1 if name == "tanh" else 0
            idle = np.all(values < low + 0.01, axis=0) | np.all(values > 0.99, axis=0)
            what = "at one end of its range for every point"
            way_out = "Choose a lower learning rate and press Reset."
        else:
            continue
        if settings.has_penalty:  # it may have put them to sleep on purpose
            idle &= np.abs(linear.weight.numpy()).max(axis=0) > _NEAR_0
        count, all_of_them = int(idle.sum()), values.shape[1]
        if 2 * count > all_of_them or (count and stands_still):
            are, they = ("unit is", "it learns") if count == 1 else ("units are", "they learn")
            what = what if count == 1 else what.replace("its", "their")
            return f"Layer {number}: {count} of {all_of_them} {are} {what}, so {they} nothing. {way_out}"
    return None


def _why_still(trainer: Trainer) -> str | None:
    settings = trainer.settings
    sizes = [np.abs(linear.weight.numpy()).max() for linear in trainer.learner.linears]
    if settings.has_penalty and min(sizes) < _NEAR_0:
        said = "The penalty holds the weights near 0, so the network learns nothing."
        return f"{said} Choose a lower penalty rate."
    noise = _noise(settings)
    if settings.is_regression or (noise and trainer.figures.train_error < _BETTER_THAN_CHANCE):
        return None
    ways = ["a lower penalty rate"] if settings.has_penalty else []
    ways += [f"less noise than {100 * noise:g} %"] if noise else []
    said = ", ".join([*ways, "more neurons", "more inputs"])
    return f"The loss stands still. {said[0].upper()}{said[1:]} or another learning rate may help."


def _noise(settings: Settings) -> float:
    """The noise in the points. Those that somebody painted or uploaded have none of ours."""
    return 0.0 if settings.dataset == "own" else settings.noise


def _losses(trainer: Trainer) -> list[tuple[int, tuple[float, float]]]:
    """The losses since the points are these: the first moment is from then."""
    since = trainer.moments.items()[0][0]
    return [entry for entry in trainer.losses.items() if entry[0] >= since]


def _stands_still(trainer: Trainer) -> bool:
    entries = _losses(trainer)
    if not entries:  # the first points were painted just now
        return False
    now, (loss, _) = entries[-1]
    before = [pair[0] for epoch, pair in entries if epoch <= now - _EPOCHS]
    return bool(before) and abs(before[-1] - loss) <= _STILL * abs(loss)
