"""A run as a Python program and as a notebook, which repeat it to the last digit."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable
from textwrap import indent
from typing import Any

from needle import Tensor

from ..training import features
from ..training.points import MAKERS
from ..training.settings import Settings
from ..training.trainer import MOST_CHANGES, Trainer

__all__ = ["TooManyChanges", "as_notebook", "as_script", "digest"]


class TooManyChanges(ValueError):
    """A run that was changed by hand too often to be told, or to be kept in a file."""


def as_script(trainer: Trainer) -> str:
    """A Python program that repeats a run, with the same versions on the same machine to the last digit.

    Raises
    ------
    TooManyChanges
        If it was changed more often than `MOST_CHANGES` times.
    """
    first, *others = [f"# {words}\n{code}" for words, code in _cells(trainer)]
    return "\n\n\n".join([first.removeprefix("# "), *others]) + "\n"


def as_notebook(trainer: Trainer) -> str:
    """The same as a notebook, with the boundary drawn at its end."""
    cells = [
        *_cells(trainer),
        ("What the network decides, and the points that it has learned from.", _DRAWING),
    ]
    cells[0] = (cells[0][0].strip('"'), cells[0][1])
    both: list[dict[str, Any]] = []
    for words, code in cells:
        both += [
            {"cell_type": "markdown", "source": words},
            {"cell_type": "code", "source": code, "outputs": [], "execution_count": None},
        ]
    numbered = [{"id": f"cell-{number}", "metadata": {}, **cell} for number, cell in enumerate(both)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": numbered}
    return json.dumps(notebook, indent=1, ensure_ascii=False)


def digest(parameters: Iterable[Tensor]) -> str:
    """Sixteen digits that two networks share only if their parameters are the same to the last bit."""
    return hashlib.sha256(b"".join(p.numpy().tobytes() for p in parameters)).hexdigest()[:16]


_DRAWING = """\
import viz

viz.decision_boundary(lambda x: model(constant(inputs_of(x.numpy()))), train, train_labels)"""


def _cells(trainer: Trainer) -> list[tuple[str, str]]:
    """The parts of the program, each with a sentence about it."""
    if len(trainer.changes) > MOST_CHANGES:
        raise TooManyChanges(
            f"This run was changed by hand more than {MOST_CHANGES} times: too often for a script. "
            "Take the weights home instead; they go on from here."
        )
    settings = trainer.first
    changed = {what for _, what, _ in trainer.changes}
    return [
        (f'"""{_summary(trainer)}"""', _imports(settings)),
        ("The points, and what the network sees of them.", _data(settings)),
        ("The network and its optimiser.", _network(settings)),
        ("The training, with all that was changed on the way.", _training(trainer, settings, changed)),
        ("The result: the same numbers as in the playground.", _result(trainer)),
    ]


def _summary(trainer: Trainer) -> str:
    layers = "-".join(str(layer.neurons) for layer in trainer.settings.hidden) or "no hidden layer"
    return (
        f"A run of the needle playground: {trainer.first.dataset}, {layers}, {trainer.steps:,} steps.\n\n"
        "On the same machine, with the same versions, it repeats the run to the last digit."
    )


def _imports(settings: Settings) -> str:
    used = sorted({name for text in settings.inputs for name in features.functions_in(text)})
    functions = f"from needle.ops import {', '.join(used)}\n" if used else ""
    pi = "from math import pi\n" if any("pi" in text for text in settings.inputs) else ""
    return (
        f"import hashlib\n{pi}\nimport numpy as np\n\nimport needle as ndl\n"
        f"from needle import init, nn, optim\nfrom needle.data import toy\n{functions}"
    ).rstrip()


def _data(settings: Settings) -> str:
    make = MAKERS.get(settings.dataset)
    share = settings.train_share
    own = [tuple(point) for point in settings.own]
    if make is None:
        made = "    return own[chosen, :2], own[chosen, 2]"
    else:
        made = f"""\
    rng = np.random.default_rng([seed, 0])
    points, labels = toy.{make.__name__}({settings.points}, {settings.noise!r}, rng)
    (points, labels), _ = toy.train_test_split(points, labels, {share!r}, rng)
    return np.concatenate([points, own[chosen, :2]]), np.concatenate([labels, own[chosen, 2]])"""
    inputs = [_with_tensors(text) for text in settings.inputs]
    return f"""\
def points_with(own, seed):
    own = np.array(own, dtype=float).reshape(-1, 3)  # points that were painted: x1, x2, label
    chosen = np.diff(np.floor(np.arange(len(own) + 1) * {share!r} + 0.5)) > 0  # others are to test with
{made}


def coordinates(numbers):
    return ndl.Tensor(numbers, device=ndl.cpu_numpy(), dtype="float32", requires_grad=False)


def inputs_of(points):
    x1, x2 = map(coordinates, points.T)
    inputs = [{", ".join(inputs)}]
    return np.stack([x.numpy().astype("float32") for x in inputs], axis=1)


def constant(numbers):
    return ndl.Tensor(numbers, dtype="float32", requires_grad=False)


own, seed = {own!r}, {settings.seed}
train, train_labels = points_with(own, seed)
inputs = inputs_of(train)"""


def _with_tensors(text: str) -> str:
    """An input with its functions' arguments as Tensors, which `needle.ops` needs: exp(2), maximum(x1, 0)."""
    tree = ast.parse(text.strip(), mode="eval")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in calls:
        for i, argument in enumerate(call.args):
            names = {node.id for node in ast.walk(argument) if isinstance(node, ast.Name)}
            if not names - {"pi"}:
                call.args[i] = ast.Call(ast.Name("coordinates"), [argument], [])
    return ast.unparse(tree) if "coordinates" in ast.dump(tree) else text


_ACTIVATIONS = {
    "tanh": "nn.Tanh()",
    "relu": "nn.ReLU()",
    "sigmoid": "nn.Sigmoid()",
    "linear": "nn.Identity()",
}
_NORMALISATIONS = {"batchnorm": "nn.BatchNorm1d({})", "layernorm": "nn.LayerNorm1d({})"}
_FIRST_WEIGHTS = {
    "glorot": "init.xavier_uniform(*linear.weight.shape, rng=rng)",
    "kaiming": "init.kaiming_uniform(*linear.weight.shape, gain, rng=rng)",
    "uniform": "init.rand(*linear.weight.shape, low=-0.5, high=0.5, rng=rng)",
    "zeros": "init.zeros(*linear.weight.shape)",
}
_OPTIMISERS = {
    "sgd": "optim.SGD(model.parameters(), lr={!r})",
    "momentum": "optim.SGD(model.parameters(), lr={!r}, momentum=0.9, dampening=0.0)",
    "adam": "optim.Adam(model.parameters(), lr={!r})",
    "rmsprop": "optim.RMSProp(model.parameters(), lr={!r})",
}


def _network(settings: Settings) -> str:
    layers = []
    fan_in = len(settings.inputs)
    for layer in settings.hidden:
        parts = [f"nn.Linear({fan_in}, {layer.neurons})"]
        if layer.normalisation:
            parts.append(_NORMALISATIONS[layer.normalisation].format(layer.neurons))
        parts.append(_ACTIVATIONS[settings.activation_of(layer)])
        if layer.dropout:
            parts.append(f"nn.Dropout({layer.dropout!r}, rng=dropout)")
        layers.append(parts)
        fan_in = layer.neurons
    layers.append([f"nn.Linear({fan_in}, 1)", "nn.Identity()" if settings.is_regression else "nn.Tanh()"])
    model = "\n".join(f"    nn.Sequential({', '.join(parts)})," for parts in layers)
    loop = "for linear in linears:"
    if settings.initialisation == "kaiming":
        names = [settings.activation_of(layer) for layer in settings.hidden]
        gains = ["relu" if name == "relu" else "linear" for name in names] + ["linear"]
        loop = f"for linear, gain in zip(linears, {gains!r}):"
    has_dropout = any(layer.dropout for layer in settings.hidden)
    draws = f"dropout = np.random.default_rng([{settings.weights_seed}, 3])\n" if has_dropout else ""
    bias = 0.1 if settings.initialisation == "uniform" else 0.0
    return f"""\
{draws}model = nn.Sequential(
{model}
)
linears = [layer.modules[0] for layer in model.modules]
rng = np.random.default_rng([{settings.weights_seed}, 1])
{loop}
    linear.weight.data = {_FIRST_WEIGHTS[settings.initialisation]}
    linear.bias.data = init.constant(*linear.bias.shape, c={bias})
optimizer = {_OPTIMISERS[settings.optimiser].format(settings.learning_rate)}"""


_SCHEDULE = """\
def schedule_now():
    optimizer.lr, period = scheduling["learning_rate"], scheduling["period"]
    schedule = {
        "constant": lambda: optim.StepLR(optimizer, period, 1.0),
        "steps": lambda: optim.StepLR(optimizer, period, 0.5),
        "cosine": lambda: optim.CosineLR(optimizer, period),
        "warm-up": lambda: optim.WarmUp(optimizer, period),
    }[scheduling["schedule"]]()
    schedule.load_state_dict({**schedule.state_dict(), "t": epochs})
    return schedule


"""
_PENALTIES = {
    "none": "",
    "l1": "    for layer in model.modules:\n        loss = loss + ndl.abs(layer.modules[0].weight).sum() * "
    "rate\n",
    "l2": "    for layer in model.modules:\n        loss = loss + (layer.modules[0].weight**2).sum() * 0.5 "
    "* rate\n",
}
_EDIT = """\
layer, *place, number = value
numbers = linears[layer - 1].{what}.numpy().copy()
numbers[tuple(place)] = number
linears[layer - 1].{what}.data = constant(numbers)"""


def _training(trainer: Trainer, settings: Settings, changed: set[str]) -> str:
    """Only what this run needs: a run that nobody changed has a short program."""
    penalty = _PENALTIES[settings.regularisation]
    is_scheduled = settings.schedule != "constant" or bool({"schedule", "period"} & changed)
    rate, rate_given, rates = (
        (", rate", ", constant(rate)", ", constant(np.full(count, rate))") if penalty else ("", "", "")
    )
    begin = [f"batch_size, compiled = {settings.batch_size}, False"]
    if penalty:
        begin.append(f"rate = {settings.regularisation_rate!r}")
    if is_scheduled:
        begin += [f"scheduling, epochs = {_scheduling(settings)!r}, 0", "schedule = schedule_now()"]
    begun = "\n".join(begin)
    return f"""\
def learn(x, y{rate}):
    loss = ((model(x) - y) ** 2).sum() * (0.5 / y.shape[0])
{penalty}    loss.backward(create_graph=False)
    optimizer.step()


{_SCHEDULE if is_scheduled else ""}compiled_learn = ndl.jit(learn)
{begun}
changes = [{_listed(trainer)}]  # after so many steps: what, and its new value
shuffle = np.random.default_rng([{settings.weights_seed}, 2])
order, position, steps = np.arange(len(train)), len(train), 0
while True:
    while changes and changes[0][0] == steps:
        _, what, value = changes.pop(0)
{indent(_branches(trainer, settings, changed, is_scheduled), "        ")}
    if steps == {trainer.steps}:
        break
    if position >= len(order):
        order, position = shuffle.permutation(len(order)), 0
    until = changes[0][0] if changes else {trainer.steps}
    count = max(1, min(until - steps, (len(order) - position) // batch_size))
    batch = order[position : position + count * batch_size]
    x = constant(inputs[batch].reshape(count, -1, inputs.shape[1]))
    y = constant(train_labels[batch].reshape(count, -1, 1))
    with np.errstate(all="ignore"):
        if compiled:
            ndl.scan(compiled_learn, x, y{rates})
        else:
            for i in range(count):
                learn(x[i].detach(), y[i].detach(){rate_given})
    steps, position = steps + count, position + len(batch)
{indent(_END_OF_EPOCH, "    ") if is_scheduled else ""}""".rstrip()


_CHANGED_POINTS = """\
gone, came = value  # the places of points that went, and the points that came
for place in reversed(gone):
    del own[place]
own += came"""
_NEW_POINTS = """\
train, train_labels = points_with(own, seed)
inputs = inputs_of(train)
order, position = np.arange(len(train)), len(train)"""
_END_OF_EPOCH = """\
if position >= len(order):
    epochs += 1
    schedule.step()"""


def _branches(trainer: Trainer, settings: Settings, changed: set[str], is_scheduled: bool) -> str:
    """What to do about each kind of change that there was."""
    bodies = {
        "compiled": "compiled = value",
        "batch_size": "batch_size = value",
        "regularisation_rate": "rate = value",
        "learning_rate": "optimizer.lr = value",
        "own": f"{_CHANGED_POINTS}\n{_NEW_POINTS}",
        "seed": f"seed = value\n{_NEW_POINTS}",
        "weight": _EDIT.format(what="weight"),
        "bias": _EDIT.format(what="bias"),
    }
    if is_scheduled:
        again = "scheduling[what] = value\nschedule = schedule_now()"
        bodies |= dict.fromkeys(("learning_rate", "schedule", "period"), again)
    lines: list[str] = []
    for what, body in bodies.items():
        if what in changed:
            lines += [f"{'elif' if lines else 'if'} what == {what!r}:", indent(body, "    ")]
    return "\n".join(lines)


def _scheduling(settings: Settings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in ("learning_rate", "schedule", "period")}


def _listed(trainer: Trainer) -> str:
    entries = [repr((steps, what, _plain(what, value))) for steps, what, value in trainer.short_changes()]
    return ", ".join(entries) if len(entries) < 3 else "\n    " + ",\n    ".join(entries) + ",\n"


def _plain(what: str, value: Any) -> Any:
    if what != "own":
        return value
    gone, came = value
    return gone, [tuple(point) for point in came]


def _result(trainer: Trainer) -> str:
    return f"""\
outputs = model.eval()(constant(inputs_of(train))).numpy()[:, 0]
print(f"steps {{steps:,}}, train loss {{0.5 * np.mean((outputs - train_labels) ** 2):.6f}}")
digits = hashlib.sha256(b"".join(p.numpy().tobytes() for p in model.parameters())).hexdigest()[:16]
is_same = digits == "{digest(trainer.model.parameters())}"
print("the same as in the playground" if is_same else "not the same")"""
