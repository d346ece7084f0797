"""Lecture 02, modules and parameters: its exercises, and the usual mistakes in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

import needle as ndl
from needle import nn
from needle.optim import Adam

from .checking import NUMBERS, Case, Lecture, Names, arrays, case, drawn, kind, program_case, show, values

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade


class Shelves:
    """An object with two shelves: one for its parameters, one for the modules inside it."""

    training = True
    _parameters: dict[str, Any]
    _modules: dict[str, Any]

    def __new__(cls, *args, **kwargs):  # Python calls this before __init__
        self = object.__new__(cls)
        self.__dict__.update(_parameters={}, _modules={})
        return self


def learn(
    network: Callable[[ndl.Tensor], ndl.Tensor], parameters: Iterable[nn.Parameter], points: Any, labels: Any
) -> list[float]:
    """Fit a network of one output to labels of -1 and 1, and return the loss of each step."""
    inputs = ndl.Tensor(points, requires_grad=False)
    wanted = ndl.Tensor(np.reshape(labels, (-1, 1)), requires_grad=False)
    optimiser = Adam(list(parameters), lr=0.05)
    losses = []
    for _ in range(150):
        loss = ((network(inputs) - wanted) ** 2).sum() / len(points)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


class Word(str):
    """A text that messages show without quotes."""

    __repr__ = str.__str__


# --- 1 A module of your own ---------------------------------------------------------------------------------


def tried_out(answer: Any, numbers: Any, scale: float, shift: float) -> Any:
    """What a new module gives and keeps, and what it does with another scale and shift."""
    module, second, x = answer(), answer(), ndl.Tensor(numbers)
    found = {name: "Parameter" for name, _ in module.named_parameters()}
    set_itself = {name: type(vars(module)[name]).__name__ for name in {"scale", "shift"} & set(vars(module))}
    result = module(x)
    if result is ...:
        return ...
    parameters = {id(p) for p in module.parameters()}
    module.scale, module.shift = new = nn.Parameter([scale]), nn.Parameter([shift])
    changed = module(x)
    flows = isinstance(changed, ndl.Tensor) and changed.requires_grad
    return {
        "result": result,
        "attributes": {name: Word(what) for name, what in sorted((set_itself | found).items())},
        "with the other scale and shift": changed,
        "derivatives for x and these two": [d.numpy() for d in ndl.gradients((changed**2).sum(), [x, *new])]
        if flows
        else Word("none"),
        "the two are still there": (module.scale is new[0], module.shift is new[1]),
        "parameters after the calls": sorted(name for name, _ in module.named_parameters()),
        "shared with a second module": sum(id(p) in parameters for p in second.parameters()),
    }


class Affine(nn.Module):
    def __init__(self):
        self.scale = nn.Parameter([3.0])
        self.shift = nn.Parameter([2.0])

    def forward(self, x):
        return self.scale * x + self.shift


affine = lecture.exercise(
    case([1.0, 10.0], 5, -1),
    draws=drawn(arrays(), NUMBERS, NUMBERS),
    number=30,
    otherwise="For x = 10 the result is 3 · 10 + 2, which is 32. Which numbers does your `forward` use?",
    use=tried_out,
    form="Affine()({}), also after its scale is set to {} and its shift to {},",
)(Affine)


# --- 2 Registration -----------------------------------------------------------------------------------------


def filled() -> Shelves:
    """A module that has something on a shelf already."""
    part = Shelves()
    part._parameters["bias"] = 1.0
    return part


def after_steps(answer: Any, steps: Sequence[str]) -> Any:
    """What stands on the shelves after these assignments, each by the line that it is of."""
    module, second = answer(), answer()
    if second.__setattr__("size", 1) is ...:
        return ...
    second.weight = nn.Parameter([1.0])
    makers: dict[str, Callable[[], Any]] = {
        "Parameter": lambda: nn.Parameter([1.0]),
        "Tensor": lambda: ndl.Tensor([1.0]),
        "module": answer,
        "Shelves": filled,
        "[module]": lambda: [answer()],
        "Linear": lambda: nn.Linear(1, 1, rng=0),
        "None": lambda: None,
        "3": lambda: 3,
    }
    labels: dict[int, Word] = {}
    made: list[Any] = [None]
    kept: dict[str, Any] = {}
    for number, step in enumerate(steps, start=1):
        name, what = step.split(" = ")
        if what != "the one above":
            made.append(makers[what]())
            labels[id(made[-1])] = Word(f"the {what} of line {number}")
        kept[name] = made[-1]
        setattr(module, name, made[-1])
    return {
        "_parameters": {name: labels.get(id(x), x) for name, x in module._parameters.items()},
        "_modules": {name: labels.get(id(x), x) for name, x in module._modules.items()},
        "attributes not kept": [name for name, x in kept.items() if getattr(module, name, ...) is not x],
        "on the shelves of a module with a weight": [*second._parameters, *second._modules],
        "on the shelves of a Shelves": [list(x._parameters) for x in made if type(x) is Shelves],
    }


class Registering(Shelves):
    def __setattr__(self, name, value):
        self._parameters.pop(name, None)
        self._modules.pop(name, None)
        if isinstance(value, nn.Parameter):
            self._parameters[name] = value
        elif isinstance(value, Shelves):
            self._modules[name] = value
        object.__setattr__(self, name, value)


def steps_case(steps: Sequence[str]) -> Case:
    """A case of these assignments, which the message shows line by line."""
    lines = "\n".join(f"module.{step}" for step in steps)
    return Case(lambda: {"these lines": tuple(steps)}, ("these lines",), lines)


KINDS = ("Parameter", "module", "Tensor", "3", "None", "Shelves", "[module]", "Linear", "the one above")
one_step = st.tuples(st.sampled_from(("weight", "part", "_old")), st.sampled_from(KINDS)).map(" = ".join)
registering = lecture.exercise(
    steps_case(("weight = Parameter", "size = 3")),
    steps_case(("first = module", "weight = Parameter", "mean = Tensor")),
    draws=st.lists(one_step, min_size=1, max_size=4).map(steps_case),
    otherwise="Go through the assignments one by one: what should stand on which shelf after each?",
    use=after_steps,
    form="A Registering module",
)(Registering)


# --- 3 Named parameters -------------------------------------------------------------------------------------

#: A module that takes notes, under the name that the lecture's later cells build on.
Module: Any = Registering
PIECES = {"Module": Module, "Parameter": lambda value: nn.Parameter([value])}


def tree_case(lines: Sequence[str], *chosen: str, training: bool = False) -> Case:
    """A case of the modules that these lines make. Their shelves belong to it, and have to stay as they are."""
    asked = program_case(lines, PIECES)

    def make() -> dict[str, Any]:
        made = asked.make()
        shelves = {
            f"{shelf} of {name}": getattr(module, shelf)
            for name, module in made.items()
            if isinstance(module, Shelves)
            for shelf in ("_parameters", "_modules")
        }
        return {**made, **shelves, "training": training}

    return Case(make, chosen, asked.program)


def tree_lines(steps: Sequence[tuple[str, int, str]]) -> list[str]:
    """The lines of a program that makes a network. Each step adds to the module so many places from the end; -1 is `net`."""
    lines, modules = ["net = Module()"], ["net"]
    for number, (what, back, name) in enumerate(steps):
        parent, new = modules[-1 - back % len(modules)], "abcdefgh"[number]
        if what == "again":  # a module that is there already gets a second place, below the network itself
            lines.append(f"net.{name} = {modules[-1]}" if len(modules) > 1 else "net.size = 3")
        elif what in ("weight", "bias"):
            lines.append(f"{parent}.{what} = Parameter({number + 2})")
        else:
            modules.append(new)
            lines.append(f"{new} = Module()")
            if what != "module":
                lines.append(f"{new}.weight = Parameter({number + 2})")
            lines.append(
                f'{parent}._modules["{name}.0"] = {new}' if what == "noted" else f"{parent}.{name} = {new}"
            )
    return lines


one_part = st.tuples(
    st.sampled_from(("layer", "layer", "weight", "module", "bias", "noted", "layer", "again")),
    st.sampled_from((0, 0, 0, -1, -1, 1)),
    st.sampled_from(("first", "last", "inner", "head")),
)
tree_steps = st.lists(one_part, min_size=1, max_size=8)
FLAT = ("net = Module()", "net.weight = Parameter(1)", "net.bias = Parameter(2)")
modules_in_modules = (
    "net = Module(); net.weight = Parameter(1); net.first = Module(); net.first.weight = Parameter(2); "
    "net.last = Module(); net.last.inner = Module(); net.last.inner.weight = Parameter(4)"
)
NESTED = modules_in_modules.split("; ")


class Pairs(dict):
    """What the pairs of a list say, by their paths."""


def by_path(found: Any) -> Any:
    """A list of pairs as `Pairs`, whatever their order; anything else, or a path that comes twice, as it is."""
    if not isinstance(found, (list, tuple)):
        return found
    if not all(isinstance(x, (list, tuple)) and len(x) == 2 and isinstance(x[0], str) for x in found):
        return found
    pairs = Pairs(sorted(found, key=lambda pair: pair[0]))
    return pairs if len(pairs) == len(found) else found


def same_pairs(expected: Any, got: Any, names: Names) -> str:
    """Whether the paths are the same, and the very same object stands under each."""
    if not isinstance(got, Pairs):
        return (
            f"it is a {kind(got)}, but should be a list of pairs of a path and what is there, each path once"
        )
    for path in sorted({*expected, *got}):
        if path not in got:
            return f"{path!r} is missing"
        if path not in expected:
            return f"{path!r} should not be there"
        if expected[path] is not got[path]:
            return f"under {path!r} stands another object, {show(got[path], names)}"
    return ""


same_pairs.exactly = values  # type: ignore[attr-defined]  # two answers make copies of their own


@lecture.exercise(
    tree_case(FLAT, "net"),
    tree_case(NESTED, "net"),
    draws=tree_steps.map(lambda steps: tree_case(tree_lines(steps), "net")),
    otherwise="Write the paths of this net on paper: one for each parameter, from the net down to it.",
    compare=same_pairs,
    use=lambda answer, net: by_path(answer(net)),
)
def named_parameters(module):
    pairs = list(module._parameters.items())
    for name, part in module._modules.items():
        for path, parameter in named_parameters(part):
            pairs.append((f"{name}.{path}", parameter))
    return pairs


@named_parameters.mistake(
    "The path begins with a dot. Only between two names should there be one: the net itself has no name."
)
def leading_dot(module):
    return [("." + path, parameter) for path, parameter in named_parameters.right(module)]


@named_parameters.mistake(
    "You pass over what you have seen before. But here two paths lead to one module, and each of them belongs in "
    "the list."
)
def each_once(module):
    return [
        (path, p) for p, path in {p: path for path, p in reversed(named_parameters.right(module))}.items()
    ]


# --- 4 Training and use -------------------------------------------------------------------------------------


def modes(answer: Any, net: Any, training: bool) -> Any:
    """The mode of each module of the tree afterwards, and of another one of its class."""
    everything, waiting = {"net": net}, ["net"]
    for path in waiting:
        inside = {f"{path}.{name}": part for name, part in everything[path]._modules.items()}
        everything |= inside
        waiting += inside
    before = {path: dict(vars(part)) for path, part in everything.items()}
    try:
        if answer(net, training) is ...:
            return ...
        return {
            **{path: part.training for path, part in everything.items()},
            "another net": Module().training,
        }
    finally:  # leave all as it was, also where an answer has set it on a class
        for path, part in everything.items():
            vars(part).clear()
            vars(part).update(before[path])
        Shelves.training = True
        if "training" in vars(Module):
            del Module.training


def mode_case(parts: tuple[Sequence[tuple[str, int, str]], Sequence[int], bool]) -> Case:
    """A case of a network in which some modules have been switched before."""
    steps, switched, training = parts
    lines = tree_lines(steps)
    made = [line.split()[0] for line in lines if line.endswith("Module()")]
    lines += [f"{made[-1 - place % len(made)]}.training = False" for place in switched]
    return tree_case(lines, "net", "training", training=training)


@lecture.exercise(
    tree_case(NESTED, "net", "training"),
    draws=st.tuples(
        tree_steps, st.lists(st.sampled_from(range(6)), max_size=3), st.sampled_from((False, True))
    ).map(mode_case),
    otherwise="Which of the modules has the wrong mode, and by which way does your function come to it?",
    use=modes,
)
def set_training(module, training):
    module.training = training
    for part in module._modules.values():
        set_training(part, training)


# --- 5 Modules in a list ------------------------------------------------------------------------------------

values_of_all_kinds = (
    "a; [a, b]; [3, a, 'relu', b]; [a, [b, [a]]]; (a, b); [a, 3, a]; [[3, a], (b,)]; 3; []; 'relu'; None; "
    "[{'x': a}, b]; ([[[a]]], [b]); [b, [], [a, b], 'ab']; {'x': a}; {0: a}; {a}; [a, [a, a], a]; "
    "[None, [None, a]]; [range(2), a]; [a, b] * 6"
)
VALUES = values_of_all_kinds.split("; ")


def value_case(name: str, value: str) -> Case:
    """A case of this value, in which a and b are modules, and b has a part."""
    asked = tree_case(
        ("a, b = Module(), Module()", "b.inner = Module()", f"value = {value}"), "name", "value"
    )
    return Case(lambda: {**asked.make(), "name": name}, asked.chosen, asked.program)


@lecture.exercise(
    *(value_case("layers", value) for value in VALUES[:3]),
    draws=st.builds(value_case, st.sampled_from(("layers", "parts")), st.sampled_from(VALUES)),
    number=60,
    otherwise="Write the paths of this value on paper: its name, then a dot and the place in each list.",
    compare=same_pairs,
    use=lambda answer, name, value: by_path(answer(name, value)),
)
def parts_in(name, value):
    if isinstance(value, Shelves):
        return [(name, value)]
    pairs = []
    if isinstance(value, (list, tuple)):
        for place, item in enumerate(value):
            pairs += parts_in(f"{name}.{place}", item)
    return pairs


@parts_in.mistake("A value that is itself a module is there, too: its path is just the name.")
def lists_only(name, value):
    return [] if isinstance(value, Shelves) else parts_in.right(name, value)
