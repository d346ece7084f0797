"""Lecture 02, modules and parameters: what its exercises ask for, the usual mistakes, and its predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from needle import nn
from needle.autograd import Tensor
from needle.optim import Adam

from .checking import Lecture, Names, case, given, values

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict


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
    network: Callable[[Tensor], Tensor], parameters: Iterable[nn.Parameter], points: Any, labels: Any
) -> list[float]:
    """Fit a network of one output to labels of -1 and 1, and return the loss of each step."""
    inputs = Tensor(points, requires_grad=False)
    wanted = Tensor(np.reshape(labels, (-1, 1)), requires_grad=False)
    optimiser = Adam(list(parameters), lr=0.05)
    losses = []
    for _ in range(150):
        loss = ((network(inputs) - wanted) ** 2).sum() / len(points)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


# --- 1 A module of your own ---------------------------------------------------------------------------------


class _Word(str):
    """A text that messages show without quotes."""

    __repr__ = str.__str__


def _tried_out(answer: Any, x: Tensor) -> Any:
    module = answer()
    found = {name for name, _ in module.named_parameters()}
    mine = {"scale", "shift"} & set(vars(module))
    kinds = {name: type(vars(module)[name]).__name__ for name in mine} | dict.fromkeys(found, "Parameter")
    attributes = [_Word(f"{name} is a {kind}") for name, kind in sorted(kinds.items())]  # set in any order
    result = module(x)
    if result is ...:
        return ...
    module.scale, module.shift = nn.Parameter([5.0]), nn.Parameter([-1.0])
    return {"result": result, "attributes": attributes, "with scale 5 and shift -1": module(x)}


class Affine(nn.Module):
    """scale · x + shift."""

    def __init__(self):
        self.scale = nn.Parameter([3.0])
        self.shift = nn.Parameter([2.0])

    def forward(self, x):
        return self.shift - x * -self.scale


affine = lecture.exercise(
    given(lambda: {"x": Tensor([1.0, 10.0])}, "x"),
    given(lambda: {"x": Tensor([[0.0], [-1.0]])}, "x"),
    otherwise="For x = 10 the result is 3 · 10 + 2, which is 32. Which numbers does your `forward` use?",
    use=_tried_out,
    form="Affine()({})",
)(Affine)


@affine.mistake(
    "A Tensor is data. What shall be learned is an `nn.Parameter`: a module finds those, and only those."
)
class AsTensors(nn.Module):
    def __init__(self):
        self.scale, self.shift = Tensor([3.0]), Tensor([2.0])

    def forward(self, x):
        return self.scale * x + self.shift


@affine.mistake("Plain numbers are settings, and nothing learns them. Wrap each in `nn.Parameter([...])`.")
class AsNumbers(nn.Module):
    def __init__(self):
        self.scale, self.shift = 3.0, 2.0

    def forward(self, x):
        return self.scale * x + self.shift


@affine.mistake(
    "You make the parameters in `forward`, so they are new at every call, and nothing that was learned "
    "stays. Make them in `__init__`."
)
class MadeInForward(nn.Module):
    def forward(self, x):
        return nn.Parameter([3.0]) * x + nn.Parameter([2.0])


@affine.mistake(
    "Your `forward` does not use `self.scale` and `self.shift`: when they are changed to 5 and -1, it still "
    "computes with 3 and 2."
)
class NotUsed(nn.Module):
    def __init__(self):
        self.scale, self.shift = nn.Parameter([3.0]), nn.Parameter([2.0])

    def forward(self, x):
        return nn.Parameter([3.0]) * x + nn.Parameter([2.0])


@affine.mistake(
    "In a method, say `self.scale` and `self.shift`. Without `self.`, these are other names, and nobody has "
    "set them."
)
class WithoutSelf(nn.Module):
    def __init__(self):
        self.scale, self.shift = nn.Parameter([3.0]), nn.Parameter([2.0])

    def forward(self, x):
        return scale * x + shift  # type: ignore[name-defined]  # noqa: F821


class LocalNames(nn.Module):
    def __init__(self):
        scale = nn.Parameter([3.0])  # noqa: F841
        self.shift = nn.Parameter([2.0])

    def forward(self, x):
        return self.scale * x + self.shift


LocalNames.__name__ = "Affine"  # as the exception says it
affine.mistake(
    "In `__init__`, write `self.scale = ...` and `self.shift = ...`: a name without `self.` is gone when "
    "`__init__` ends."
)(LocalNames)


@affine.mistake(
    "For x = 10 the result is 3 · 10 + 2, which is 32. So which of the two numbers is the scale, and which "
    "is the shift?"
)
class NumbersSwapped(nn.Module):
    def __init__(self):
        self.scale, self.shift = nn.Parameter([2.0]), nn.Parameter([3.0])

    def forward(self, x):
        return self.scale * x + self.shift


@affine.mistake("`*` multiplies number by number. `@` is the matrix product, which is not needed here.")
class MatrixProduct(nn.Module):
    def __init__(self):
        self.scale, self.shift = nn.Parameter([3.0]), nn.Parameter([2.0])

    def forward(self, x):
        return x @ self.scale + self.shift


@affine.mistake("Look at `forward`: `scale` multiplies x, and `shift` is added.")
class Swapped(nn.Module):
    def __init__(self):
        self.scale, self.shift = nn.Parameter([3.0]), nn.Parameter([2.0])

    def forward(self, x):
        return self.shift * x + self.scale


@affine.mistake("Your `forward` gives None back. Is a `return` missing?")
class NothingReturned(nn.Module):
    def __init__(self):
        self.scale, self.shift = nn.Parameter([3.0]), nn.Parameter([2.0])

    def forward(self, x):
        return None


@affine.mistake("Look at `forward`: where is `shift`?")
class WithoutShift(nn.Module):
    def __init__(self):
        self.scale, self.shift = nn.Parameter([3.0]), nn.Parameter([2.0])

    def forward(self, x):
        return self.scale * x


# --- 2 Registration -----------------------------------------------------------------------------------------


def _shelved(answer: Any, steps: tuple[str, ...]) -> Any:
    """What stands on the shelves after these assignments, and which attributes are not kept."""
    module = answer()
    if module.__setattr__("size", 1) is ...:
        return ...
    module, kept = answer(), {}
    for step in steps:
        name, what = step.split(" = ")
        kinds: dict[str, Callable[[], Any]] = {
            "Parameter": lambda: nn.Parameter([1.0]),
            "Tensor": lambda: Tensor([1.0]),
            "module": answer,
        }
        value: Any = kinds[what]() if what in kinds else None if what == "None" else int(what)
        setattr(module, name, value)
        kept[name] = value
    lost = [name for name, value in kept.items() if getattr(module, name, ...) is not value]
    return {
        "_parameters": list(module._parameters),
        "_modules": list(module._modules),
        "attributes not kept": lost,
    }


class Registering(Shelves):
    """Notes its parameters and modules: after each assignment it goes through all its attributes."""

    def __setattr__(self, name, value):
        self.__dict__[name] = value
        mine = {key: item for key, item in vars(self).items() if key not in ("_parameters", "_modules")}
        self._parameters.clear()
        self._modules.clear()
        self._parameters.update({key: p for key, p in mine.items() if isinstance(p, nn.Parameter)})
        self._modules.update({key: part for key, part in mine.items() if isinstance(part, Shelves)})


registering = lecture.exercise(
    case(("weight = Parameter", "size = 3")),
    case(("first = module", "weight = Parameter", "mean = Tensor")),
    case(("weight = Parameter", "bias = Parameter")),
    case(("bias = Parameter", "bias = None")),
    case(("part = module", "part = Parameter")),
    otherwise="Go through the assignments one by one: what should stand on which shelf after each?",
    use=_shelved,
    form="A Registering module, after {},",
)(Registering)


@registering.mistake(
    "The shelves are right, but the attribute itself is not there. Keep it, too: "
    "`object.__setattr__(self, name, value)`."
)
class NotKept(Shelves):
    def __setattr__(self, name, value):
        self._parameters.pop(name, None)
        self._modules.pop(name, None)
        if isinstance(value, nn.Parameter):
            self._parameters[name] = value
        elif isinstance(value, Shelves):
            self._modules[name] = value


@registering.mistake(
    "`weight` is on its shelf, but it was not kept as an attribute. `object.__setattr__(self, name, value)` "
    "belongs to every case, and not only to the last."
)
class KeptOnlyOffTheShelves(Shelves):
    def __setattr__(self, name, value):
        self._parameters.pop(name, None)
        self._modules.pop(name, None)
        if isinstance(value, nn.Parameter):
            self._parameters[name] = value
        elif isinstance(value, Shelves):
            self._modules[name] = value
        else:
            object.__setattr__(self, name, value)


@registering.mistake(
    "There may be nothing to take off the shelf, and `del` or `pop(name)` stops then. `pop(name, None)` "
    "does not."
)
class DeletesWhatIsNotThere(Shelves):
    def __setattr__(self, name, value):
        del self._parameters[name]


SHELVES = (
    "The shelves are two dictionaries, `self._parameters` and `self._modules`. Write "
    "`self._parameters[name] = value`."
)


@registering.mistake(SHELVES)
class WithoutTheLine(Shelves):
    def __setattr__(self, name, value):
        self.parameters[name] = value  # type: ignore[attr-defined]


@registering.mistake(SHELVES)
class Appends(Shelves):
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        if isinstance(value, nn.Parameter):
            self._parameters.append(value)  # type: ignore[attr-defined]


@registering.mistake(
    "`self.name = value` inside `__setattr__` calls `__setattr__` again, and so on for ever. Use "
    "`object.__setattr__(self, name, value)`."
)
class CallsItself(Shelves):
    def __setattr__(self, name, value):
        setattr(self, name, value)


@registering.mistake(
    "What was there before under this name is still on its shelf. First take it off both: "
    "`self._parameters.pop(name, None)`, and the same for `self._modules`."
)
class Stale(Shelves):
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        if isinstance(value, nn.Parameter):
            self._parameters[name] = value
        elif isinstance(value, Shelves):
            self._modules[name] = value


@registering.mistake(
    "The second has replaced the first. Put it into the dictionary that is there: "
    "`self._parameters[name] = value`."
)
class NewDictionary(Shelves):
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        if isinstance(value, nn.Parameter):
            self.__dict__["_parameters"] = {name: value}
        elif isinstance(value, Shelves):
            self.__dict__["_modules"] = {name: value}


@registering.mistake("Where are the modules? A value that is a `Shelves` belongs on the shelf `_modules`.")
class ModulesForgotten(Shelves):
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        self._parameters.pop(name, None)
        if isinstance(value, nn.Parameter):
            self._parameters[name] = value


@registering.mistake(
    "A number or a Tensor that is no `nn.Parameter` belongs on no shelf. Look at what kind of value it is."
)
class Everything(Shelves):
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        self._modules.pop(name, None)
        self._parameters.pop(name, None)
        (self._modules if isinstance(value, Shelves) else self._parameters)[name] = value


@registering.mistake(
    "Every Parameter is a Tensor, but not every Tensor is a Parameter. Ask for `nn.Parameter`."
)
class TensorsToo(Shelves):
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        self._modules.pop(name, None)
        self._parameters.pop(name, None)
        if isinstance(value, Tensor):
            self._parameters[name] = value
        elif isinstance(value, Shelves):
            self._modules[name] = value


@registering.mistake(
    "Nothing is on the shelves. Ask `isinstance(value, nn.Parameter)`, for `is` would ask whether it is the "
    "class itself. And if you take the old one off, do it first: later, it is the new one."
)
class NothingShelved(Shelves):
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


# --- 3 Named parameters -------------------------------------------------------------------------------------

#: The library's own way of registering, under the name that the lecture's later cells build on.
Module: Any = Registering


def layer(weight: float, **parts: Any) -> Any:
    """A module with one weight, and these parts."""
    module = Module()
    module.weight = nn.Parameter([weight])
    for name, part in parts.items():
        setattr(module, name, part)
    return module


def flat() -> dict[str, Any]:
    net = layer(1.0)
    net.bias = nn.Parameter([2.0])
    return {"net": net}


def nested() -> dict[str, Any]:
    return {"net": layer(1.0, first=layer(2.0), last=layer(3.0, inner=layer(4.0)))}


def hollow() -> dict[str, Any]:
    """A network that has no parameters of its own."""
    net = Module()
    net.encoder = layer(1.0, inner=layer(2.0, core=layer(3.0)))
    return {"net": net}


def _by_path(answer: Any, net: Any) -> Any:
    found = answer(net)
    if found is ...:
        return ...
    found = list(found.items() if isinstance(found, Mapping) else found) if _many(found) else found
    if not isinstance(found, list) or not all(isinstance(x, (tuple, list)) and len(x) == 2 for x in found):
        return found
    return dict(found)


def _same_pairs(expected: Any, got: Any, names: Names) -> str:
    """As `values`, of what `_by_path` gives."""
    if isinstance(expected, Mapping) and got is None:
        return "the type is None, but should be list"
    if isinstance(expected, Mapping) and not isinstance(got, Mapping):
        return "it should be a list of pairs, each a path and what is there"
    return values(expected, got, names)


def _many(found: Any) -> bool:
    return isinstance(found, (list, tuple, Mapping)) or hasattr(found, "__next__")


def _listed(answer: Any, net: Any, wanted: str = "its pairs") -> Any:
    """The pairs, or what they are in: the lecture goes on with a list."""
    if wanted == "its pairs":
        return _by_path(answer, net)
    found = answer(net)
    if isinstance(found, (list, tuple)):
        return _Word("a list of pairs")
    return _Word("a generator" if hasattr(found, "__next__") else f"a {type(found).__name__}")


def _listed_pairs(expected: Any, got: Any, names: Names) -> str:
    if isinstance(expected, str) and isinstance(got, str):
        return "" if expected == got else f"it is {got}, but should be {expected}"
    return _same_pairs(expected, got, names)


@lecture.exercise(
    given(flat, "net"),
    given(nested, "net"),
    given(hollow, "net"),
    given(lambda: {**flat(), "wanted": "its type"}, "net", "wanted"),
    otherwise="Write the paths of this net on paper: one for each parameter, from the net down to it.",
    compare=_listed_pairs,
    use=_listed,
    form="named_parameters({})",
)
def named_parameters(module):
    """Pairs of path and parameter, with a list of what is still to be visited."""
    found, waiting = [], [("", module)]
    while waiting:
        path, part = waiting.pop(0)
        found += [(path + name, parameter) for name, parameter in part._parameters.items()]
        waiting += [(f"{path}{name}.", inner) for name, inner in part._modules.items()]
    return found


@named_parameters.mistake(
    "These are the module's own parameters. Go on with the modules on its other shelf, and with theirs."
)
def own_only(module):
    return list(module._parameters.items())


@named_parameters.mistake(
    "You go one level down, and no further. Call `named_parameters` itself for each module inside."
)
def one_level(module):
    found = list(module._parameters.items())
    for name, part in module._modules.items():
        found += [(f"{name}.{own}", parameter) for own, parameter in part._parameters.items()]
    return found


@named_parameters.mistake(
    "You go through the modules inside, and forget the parameters of the module itself."
)
def children_only(module):
    return [
        (f"{name}.{own}", parameter)
        for name, part in module._modules.items()
        for own, parameter in [*part._parameters.items(), *children_only(part)]
    ]


@named_parameters.mistake(
    "Several parameters have the same name now. Put the name of the module before the paths that come from "
    "it."
)
def without_path(module):
    found = list(module._parameters.items())
    for part in module._modules.values():
        found += without_path(part)
    return found


@named_parameters.mistake(
    "What `named_parameters` gives for a part is a list itself. Go through it, and add its pairs one by one, "
    "with the part's name before each path."
)
def lists_in_a_list_of_pairs(module):
    pairs = list(module._parameters.items())
    for part in module._modules.values():
        pairs.append(lists_in_a_list_of_pairs(part))
    return pairs


DICTIONARIES = (
    "`_parameters` and `_modules` are dictionaries: going through one gives its names alone. Take `.items()` "
    "for pairs or `.values()`, and put what you find into a list of your own."
)


@named_parameters.mistake(DICTIONARIES)
def names_for_modules(module):
    pairs = list(module._parameters.items())
    for part in module._modules:
        pairs += names_for_modules(part)
    return pairs


@named_parameters.mistake(DICTIONARIES)
def appended_to_the_shelf(module):
    pairs = module._parameters
    for name, part in module._modules.items():
        for path, parameter in part._parameters.items():
            pairs.append((f"{name}.{path}", parameter))
    return pairs


@named_parameters.mistake(DICTIONARIES)
def through_the_names(module):
    pairs = list(module._parameters.items())
    for name, part in module._modules:
        pairs += [(f"{name}.{path}", parameter) for path, parameter in through_the_names(part)]
    return pairs


@named_parameters.mistake(DICTIONARIES)
def added_to_a_dictionary(module):
    return module._parameters + list(module._modules.values())


@named_parameters.mistake(DICTIONARIES)
def dictionary_added(module):
    return [] + module._parameters


LIST_OF_ITEMS = (
    "What `.items()` gives is no list, and nothing can be added to it. Make a list of it: "
    "`list(module._parameters.items())`."
)


@named_parameters.mistake(LIST_OF_ITEMS)
def only_items(module):
    return module._parameters.items()


@named_parameters.mistake(LIST_OF_ITEMS)
def added_to_items(module):
    pairs = module._parameters.items()
    pairs += list(module._modules.items())
    return pairs


@named_parameters.mistake(
    "The paths are right, but this is a dictionary, and later cells need a list of pairs: `list(...items())`."
)
def in_a_dictionary(module):
    return dict(named_parameters.right(module))


@named_parameters.mistake(
    "The paths are right, but this is a generator, which can be gone through only once. Collect the pairs in "
    "a list."
)
def in_a_generator(module):
    yield from named_parameters.right(module)


@named_parameters.mistake("There should be a dot between two names of a path: `last.inner.weight`.")
def without_dots(module):
    found = list(module._parameters.items())
    for name, part in module._modules.items():
        found += [(name + path, parameter) for path, parameter in without_dots(part)]
    return found


@named_parameters.mistake("These are the paths alone. Give a pair for each: its path and the parameter.")
def paths_only(module):
    return [path for path, _ in named_parameters.right(module)]


@named_parameters.mistake(
    "The path begins with a dot. Only between two names should there be one: the net itself has no name."
)
def leading_dot(module):
    return [("." + path, parameter) for path, parameter in named_parameters.right(module)]


# --- 4 Training and use -------------------------------------------------------------------------------------


def three_deep() -> tuple[Any, Any]:
    """A network with a part within a part, and another one of the same class."""
    net_class: Any = type("Net", (Module,), {})
    part_class: Any = type("Part", (Module,), {})
    net, other = net_class(), net_class()
    net.part, net.part.inner, net.last = part_class(), part_class(), part_class()
    return net, other


def _modes(expected: Any, got: Any, names: Names) -> str:
    wrong = [name for name in expected if expected[name] != got[name]]
    return f"{wrong[0]}: {got[wrong[0]]}, but should be {expected[wrong[0]]}" if wrong else ""


def _switched(answer: Any, make: Callable[[], tuple[Any, Any]], training: bool) -> Any:
    net, other = make()
    parts = {"net": net, "net.part": net.part, "net.part.inner": net.part.inner, "net.last": net.last}
    for part in parts.values():
        type(part).training = "not switched"
    if answer(net, training) is ...:
        return ...
    return {name: _Word(part.training) for name, part in {**parts, "another net": other}.items()}


@lecture.exercise(
    case(three_deep, False),
    case(three_deep, True),
    otherwise="Which of the modules has the wrong mode, and by which way does your function come to it?",
    compare=_modes,
    use=_switched,
    form="set_training(net, {1})",
)
def set_training(module, training):
    """Set the mode of a module and of all inside it."""
    waiting = [module]
    while waiting:
        part = waiting.pop()
        part.training = training
        waiting += part._modules.values()


@set_training.mistake("Only the net itself is switched. Its parts have a `training` of their own.")
def top_only(module, training):
    module.training = training


@set_training.mistake("The net itself is not switched, only what is inside it.")
def inside_only(module, training):
    for part in module._modules.values():
        part.training = training
        inside_only(part, training)


@set_training.mistake(
    "Nothing is switched. Before you go on to the parts, set `module.training` of the module itself."
)
def nothing_set(module, training):
    for part in module._modules.values():
        nothing_set(part, training)


@set_training.mistake(
    "Going through a dictionary gives its names, and a name has no such attribute: use `.values()`."
)
def through_the_names_only(module, training):
    module.training = training
    for part in module._modules:
        through_the_names_only(part, training)


@set_training.mistake("You call `eval` or `train`, and this net has none yet: you are just writing it.")
def calls_what_it_writes(module, training):
    if training:
        module.train()
    else:
        module.eval()


@set_training.mistake(
    "You switch the net and its direct parts. But parts have parts: call `set_training` for each of them."
)
def two_levels_only(module, training):
    module.training = training
    for part in module._modules.values():
        part.training = training


@set_training.mistake(
    "You set it on the class, and every other net of this class is switched with it. Set it on the module: "
    "`module.training = training`."
)
def on_the_class(module, training):
    type(module).training = training
    for part in module._modules.values():
        on_the_class(part, training)


@set_training.mistake("It is the wrong way round: False means that the net is used, and not trained.")
def inverted(module, training):
    set_training.right(module, not training)


@set_training.mistake("You always switch to use. The second argument says to which of the two.")
def always_off(module, training):
    set_training.right(module, False)


@set_training.mistake("You always switch to training. The second argument says to which of the two.")
def always_on(module, training):
    set_training.right(module, True)


@set_training.mistake("A `return` inside the loop ends it after the first part. Leave it out.")
def ends_after_the_first(module, training):
    module.training = training
    for part in module._modules.values():
        return ends_after_the_first(part, training)


# --- 5 Modules in a list ------------------------------------------------------------------------------------


def _parts_by_path(answer: Any, name: str, value: Any) -> Any:
    return _by_path(lambda value: answer(name, value), value)


def _named(*labels: str, value: Callable[..., Any]) -> Callable[[], dict[str, Any]]:
    """A case whose value holds these layers. The value itself is shown, and not called by a name."""

    def make() -> dict[str, Any]:
        layers = {label: layer(float(place)) for place, label in enumerate(labels)}
        return {**layers, "its name": "layers", "its value": value(*layers.values())}

    return make


@lecture.exercise(
    given(_named("a", value=lambda a: a), "its name", "its value"),
    given(_named("a", "b", value=lambda a, b: [a, b]), "its name", "its value"),
    given(_named("a", "b", value=lambda a, b: [3, a, "relu", b]), "its name", "its value"),
    given(_named("a", "b", "c", value=lambda a, b, c: [a, [b, [c]]]), "its name", "its value"),
    given(_named("a", "b", value=lambda a, b: (a, b)), "its name", "its value"),
    given(_named(value=lambda: 3), "its name", "its value"),
    otherwise="Write the paths of this value on paper: `layers`, then a dot and the place in each list.",
    compare=_same_pairs,
    use=_parts_by_path,
)
def parts_in(name, value):
    """All modules in a value, with their paths."""

    def walk(path: str, item: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(item, Shelves):
            yield path, item
        for place, inner in enumerate(item if isinstance(item, (list, tuple)) else ()):
            yield from walk(f"{path}.{place}", inner)

    return list(walk(name, value))


@parts_in.mistake("A value that is itself a module is there, too: its path is just the name.")
def lists_only(name, value):
    return [] if isinstance(value, Shelves) else parts_in.right(name, value)


@parts_in.mistake(
    "Nothing is found. These modules are of the class `Shelves`, and not `nn.Module`: ask "
    "`isinstance(value, Shelves)`."
)
def nothing_found(name, value):
    return []


@parts_in.mistake("Your list holds lists. Join what you get for each item: `pairs += parts_in(...)`.")
def lists_in_a_list(name, value):
    if isinstance(value, (list, tuple)):
        return [lists_in_a_list(f"{name}.{place}", item) for place, item in enumerate(value)]
    return [(name, value)] if isinstance(value, Shelves) else []


@parts_in.mistake(
    "Go through a value only if it is a list or a tuple. Where there is no module, give back an empty list."
)
def goes_through_all(name, value):
    return [pair for place, item in enumerate(value) for pair in goes_through_all(f"{name}.{place}", item)]


@parts_in.mistake(
    "For a value that is neither a module nor a list, yours gives None. Where there is no module, give back "
    "an empty list."
)
def none_for_the_rest(name, value):
    if isinstance(value, Shelves):
        return [(name, value)]
    if isinstance(value, (list, tuple)):
        return [pair for i, x in enumerate(value) for pair in none_for_the_rest(f"{name}.{i}", x)]
    return None


@parts_in.mistake("Each path begins with the name of the attribute: `layers.0`, and not `0`.")
def without_name(name, value):
    if isinstance(value, Shelves):
        return [(name, value)]
    return [(path.removeprefix(name + "."), part) for path, part in parts_in.right(name, value)]


@parts_in.mistake("A list may hold another list. Call `parts_in` itself for each item.")
def not_deeper(name, value):
    if isinstance(value, (list, tuple)):
        return [(f"{name}.{place}", x) for place, x in enumerate(value) if isinstance(x, Shelves)]
    return parts_in.right(name, value)


@parts_in.mistake("Not everything in a list is a module: leave out numbers and texts.")
def everything_in_it(name, value):
    if isinstance(value, (list, tuple)):
        return [(f"{name}.{place}", item) for place, item in enumerate(value)]
    return parts_in.right(name, value)


@parts_in.mistake(
    "You count the modules only. The path has the item's place in the list, whatever stands before."
)
def counted_anew(name, value):
    if isinstance(value, (list, tuple)):
        found = [item for item in value if isinstance(item, (list, tuple, Shelves))]
        return [pair for place, item in enumerate(found) for pair in counted_anew(f"{name}.{place}", item)]
    return parts_in.right(name, value)


@parts_in.mistake("One pair is not yet a list of pairs. Put it into brackets: `[(name, value)]`.")
def one_pair(name, value):
    return (name, value) if isinstance(value, Shelves) else parts_in.right(name, value)


@parts_in.mistake('The place is a number, and `+` joins texts only. Write `f"{name}.{place}"`.')
def text_plus_number(name, value):
    if isinstance(value, (list, tuple)):
        return [text_plus_number(name + "." + place, item) for place, item in enumerate(value)]
    return parts_in.right(name, value)


@parts_in.mistake("A tuple holds things just as a list does: `isinstance(value, (list, tuple))`.")
def no_tuples(name, value):
    return [] if isinstance(value, tuple) else parts_in.right(name, value)
