"""Lecture 19, from a graph to one kernel: its exercises, the usual mistakes in them, and its predictions."""

from __future__ import annotations

import ast
import math
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from traceback import walk_tb
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

import viz
from needle import nn
from needle.autograd import Tensor
from needle.backend_selection import default_device

from .checking import Lecture, Names, case, given, kind, values

lecture = Lecture(__file__)
check, ready, predict = lecture.check, lecture.ready, lecture.predict

jax: Any = import_module("jax") if find_spec("jax") else None

Line = tuple[str, str, tuple[Any, ...]]  # what it is called, the function, the operands


# --- What the cells use -------------------------------------------------------------------------------------


def problem(sizes: Sequence[int], rows: int) -> tuple[nn.Module, Tensor, Tensor]:
    """A network with layers of these sizes, and a batch for it: the same numbers each time."""
    rng = np.random.default_rng(0)
    parts: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        parts += [nn.Linear(inputs, outputs, rng=rng), nn.ReLU()]
    x = Tensor(rng.normal(size=(rows, sizes[0])), dtype="float32", requires_grad=False)
    y = Tensor(rng.integers(sizes[-1], size=rows), requires_grad=False)
    return nn.Sequential(*parts[:-1]), x, y


#: The kernels that are no row of the table of scalar functions.
OTHER_KERNELS = (
    "matmul", "compact", "fill", "gather", "scatter_add", "one_hot", "scalar_setitem", "ewise_setitem",
    "from_numpy",
)  # fmt: skip


class Share(NamedTuple):
    """How a program's time is shared out.

    Attributes
    ----------
    kernels : int
        How many kernels were called.
    between : float
        Which part of the time passed outside of them, from 0 to 1.
    """

    kernels: int
    between: float


def between_kernels(run: Callable[..., Any], *operands: Any, seconds: float = 1.0) -> Share:
    """Run a program on its operands several times, and time each kernel in it; the fastest run counts.

    It is the processor's time that is taken, so other programs on the machine do not matter.
    """
    spent, calls, inside = 0.0, 0, False

    def watched(kernel: Callable) -> Callable:
        def call(*args: Any) -> Any:
            nonlocal spent, calls, inside
            if inside:  # a kernel that another one calls
                return kernel(*args)
            inside, start = True, time.thread_time()
            try:
                return kernel(*args)
            finally:
                spent, calls, inside = spent + time.thread_time() - start, calls + 1, False

        return call

    found: list[tuple[float, Share]] = []
    run(*operands)
    end = time.perf_counter() + seconds
    with _instead(watched):
        while len(found) < 5 or (len(found) < 50 and time.perf_counter() < end):
            spent, calls, start = 0.0, 0, time.thread_time()
            run(*operands)
            whole = time.thread_time() - start
            found.append((whole, Share(calls, 1 - spent / whole)))
    return min(found)[1]


@contextmanager
def _instead(of: Callable[[Callable], Callable]) -> Iterator[None]:
    """Within this block, each kernel of the default device is what `of` makes of it."""
    mod = default_device().mod
    with ExitStack() as stack:
        for name in OTHER_KERNELS:
            if kernel := getattr(mod, name, None):
                stack.enter_context(patch.object(mod, name, of(kernel)))
        for table in (mod.MAPS, mod.ZIPS, mod.REDUCES):
            stack.enter_context(patch.dict(table, {name: of(kernel) for name, kernel in table.items()}))
        yield


def race(contenders: dict[str, Callable[[], Any]], seconds: float = 0.4) -> dict[str, float]:
    """The shortest time that each program takes, in milliseconds. They take turns, in the same noise.

    Each runs twice before, so that nothing is compiled while we measure.
    """
    for _ in range(2):
        for run in contenders.values():
            run()
    best = dict.fromkeys(contenders, math.inf)
    end = time.perf_counter() + seconds * len(contenders)
    rounds = 0
    while rounds < 5 or time.perf_counter() < end:
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
        rounds += 1
    return {name: 1000 * x for name, x in best.items()}


def uncover(values: dict[str, float], xlabel: str) -> Any:
    """Measured bars, to uncover one by one: the first is known, so you can guess the others."""

    def bars(shown: int) -> Any:
        known = dict(list(values.items())[:shown])
        return viz.bars(known, xlabel=xlabel, title=list(known)[-1])

    return viz.drag(bars, frames=len(values), shown=range(1, len(values) + 1))


def rivals(model: nn.Module, x: Tensor, y: Tensor, lr: float = 0.1) -> dict[str, Callable[[], float]]:
    """The same step of training in torch, and in jax with ``jax.jit``, for those of them that are installed.

    Each begins with the numbers that the model has now, learns, and returns the loss.
    """
    weights = [p.numpy() for p in model.parameters()]
    made = {"torch": _in_torch, "jax": _in_jax}
    return {
        library: make(weights, x.numpy(), y.numpy().astype("int64"), lr)
        for library, make in made.items()
        if find_spec(library)
    }


def _in_torch(weights: list[np.ndarray], images: np.ndarray, labels: np.ndarray, lr: float) -> Callable:
    import torch

    parameters = [torch.tensor(weight, requires_grad=True) for weight in weights]
    x, y = torch.tensor(images), torch.tensor(labels)
    optimizer = torch.optim.SGD(parameters, lr=lr)

    def step() -> float:
        h = x
        for number in range(0, len(parameters), 2):
            h = h @ parameters[number] + parameters[number + 1]
            h = torch.relu(h) if number + 2 < len(parameters) else h
        loss = torch.nn.functional.cross_entropy(h, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def _in_jax(weights: list[np.ndarray], images: np.ndarray, labels: np.ndarray, lr: float) -> Callable:
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # for steps as small as these it is faster
    state = [jax.numpy.asarray(weight) for weight in weights]
    x, y = jax.numpy.asarray(images), jax.numpy.asarray(labels)

    def loss_of(parameters: list, x: Any, y: Any) -> Any:
        h = x
        for number in range(0, len(parameters), 2):
            h = h @ parameters[number] + parameters[number + 1]
            h = jax.nn.relu(h) if number + 2 < len(parameters) else h
        chosen = jax.numpy.take_along_axis(jax.nn.log_softmax(h), y[:, None], axis=1)
        return -chosen.mean()

    @partial(jax.jit, donate_argnums=0)
    def update(parameters: list, x: Any, y: Any) -> tuple[Any, list]:
        loss, grads = jax.value_and_grad(loss_of)(parameters, x, y)
        return loss, [p - lr * grad for p, grad in zip(parameters, grads, strict=True)]

    def step() -> float:
        nonlocal state
        loss, state = update(state, x, y)
        return float(loss)

    return step


# --- The engine ---------------------------------------------------------------------------------------------

#: How a line of Python writes a function of NumPy's.
SIGNS = {
    "add": "{} + {}",
    "subtract": "{} - {}",
    "multiply": "{} * {}",
    "divide": "{} / {}",
    "maximum": "max({}, {})",
    "greater": "({} > {})",
    "exp": "exp({})",
}


def in_array(name):
    """A number that lies in an array, at index i."""
    return f"{name}[i]"


def plain(name):
    """A number in a variable of its own."""
    return name


class Loops:
    """Lines as Python: one loop for each group of them.

    What a later loop reads lies in an array; all else is a plain variable.

    Attributes
    ----------
    source : str
        The function `program`, with the inputs and `out` as its parameters.
    """

    def __init__(self, lines: Sequence[Line], inputs: Sequence[str], groups: Sequence[Sequence[Line]]):
        self.inputs = inputs
        self.result = lines[-1][0]
        self.groups = groups
        self.totals = {name for name, function, _ in lines if function == "sum"}
        loop = {line[0]: number for number, group in enumerate(groups) for line in group}
        self.arrays = [
            name
            for name, *_ in lines
            if name not in self.totals
            and any(name in operands and loop[later] != loop[name] for later, _, operands in lines)
        ]
        source = [f"def program({', '.join(inputs)}, out):"]
        source += [f"    {name} = np.empty(len(out), np.float32)" for name in self.arrays]
        for group in groups:
            source += [f"    {name} = 0.0" for name, function, _ in group if function == "sum"]
            source.append("    for i in range(len(out)):")
            source += [f"        {self.statement(line)}" for line in group]
        self.source = "\n".join(source)

    def place(self, name: str) -> str:
        """Where a number is."""
        if name == self.result:
            return "out[i]"
        return in_array(name) if name in self.inputs or name in self.arrays else plain(name)

    def statement(self, line: Line) -> str:
        """A line as Python."""
        name, function, operands = line
        if function == "sum":
            return f"{name} += {self.place(operands[0])}"
        return statement.right(line, self.place)

    def __repr__(self) -> str:
        return self.source

    def moved(self, numbers: int = 1_000_000) -> dict[str, float]:
        """The megabytes that each line moves between memory and processor, for arrays of so many numbers.

        The statements run as plain Python, on small arrays that note what is read and written. What a round
        of a loop has read or written before is still in the processor, and counts once.
        """
        length = 8
        touched: set[tuple[Any, ...]] = set()
        names: dict[str, Any] = {"exp": math.exp, **dict.fromkeys(self.totals, 0.0)}
        for name in [*self.inputs, *self.arrays, "out"]:
            names[name] = Noted(name, length, touched)
        found = {}
        for group in self.groups:
            for line in group:
                found[line[0]] = 0.0
            for i in range(length):
                touched.clear()
                names["i"] = i
                for line in group:
                    before = len(touched)
                    exec(self.statement(line), names)
                    found[line[0]] += len(touched) - before
        return {name: 4 * count / length * numbers / 1e6 for name, count in found.items()}


class Noted:
    """An array that notes which of its numbers are read or written."""

    def __init__(self, name: str, length: int, touched: set):
        self.name = name
        self.numbers = [0.5] * length
        self.touched = touched

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, i: int) -> float:
        self.touched.add((self.name, i))
        return self.numbers[i]

    def __setitem__(self, i: int, value: float) -> None:
        self.touched.add((self.name, i))
        self.numbers[i] = value


# --- What exercises share -----------------------------------------------------------------------------------

NO_LIST = (
    'A text is asked for, one `str`. Put the pieces together: `f"…"` for a line, `"\\n".join(…)` for several.'
)


class InText(Exception):
    """Generated Python that does not run. The message says where."""


class Ran:
    """A generated text, and what it computed."""

    def __init__(self, text: str, found: Any):
        self.text = text
        self.found = found

    def __repr__(self) -> str:
        text = f"{self.text}\n" if "\n" in self.text else f"{self.text}   "
        return f"{text}which gives {self.found}"


class Words(str):
    """A text that a message shows as it stands, without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


class NoText:
    """What came in the place of a text."""

    def __init__(self, value: Any):
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


def ran_alike(expected: Any, got: Any, names: Names) -> str:
    """Whether two texts compute the same."""
    if isinstance(expected, NoText) and isinstance(got, NoText):
        return "" if kind(expected.value) == kind(got.value) else "the types differ"
    if isinstance(got, NoText):
        return f"the type is {kind(got.value)}, but should be str"
    if isinstance(expected, Ran) and isinstance(got, Ran):
        return values(expected.found, got.found, names)
    if isinstance(expected, Ran) or isinstance(got, Ran):
        return f"the type is {kind(got)}, but should be str"
    return values(expected, got, names)


def run_text(text: str, names: dict[str, Any]) -> None:
    """Run generated Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            code = compile(text, "<your text>", "exec")
        names["_text"] = names.get("_text", "") or text
        exec(code, names)
    except SyntaxError as error:
        said = (error.msg or "").replace("'", "’")
        raise InText(f"your text is no Python: {said}, in its line {error.lineno} of '{text}'") from None
    except NameError as error:
        number = [x for x, _ in walk_tb(error.__traceback__)][-1].f_lineno
        raise InText(
            f"no line gives {error.name} a value before this one: {_tidy(names['_text'], number)}"
        ) from None
    except Exception as error:
        said = re.sub(r"(?<=\w)'(?=\w)", "’", f"{type(error).__name__}, {error}")  # other quotes mean a name
        raise InText(f"{said}, when your text runs: '{names['_text'].rstrip()}'") from None


def _tidy(text: str, number: int) -> str:
    """A line of a text, written as Python itself would write it."""
    line = text.split("\n")[number - 1].strip()
    try:
        return ast.unparse(ast.parse(line))
    except SyntaxError:
        return line


# --- 1 A stand-in that takes notes --------------------------------------------------------------------------


def product(a, b):
    """One line."""
    return a * b


def example(a, b):
    """Three lines: the example of the lecture."""
    return np.maximum(a * b + a, 0)


def from_two(a):
    """A number stands first."""
    return 2 - a


def fourth_power(a):
    """A result that is used twice."""
    b = a * a
    return b * b


def _line(line: Any) -> str:
    """A line of notes as a message shows it."""
    if not isinstance(line, (tuple, list)) or len(line) != 3:
        return f"{line!r:.60}, which is no (name, function, operands)"
    name, function, operands = line
    if isinstance(operands, str) or not isinstance(operands, (tuple, list)):
        return f"({name!r}, {function!r}, {operands!r}), whose operands are no tuple"
    operands = ["a Box" if isinstance(x, NDArrayOperatorsMixin) else repr(x) for x in operands]
    function = repr(function) if isinstance(function, str) else f"the function {function.__name__}"
    return f"({name!r}, {function}, ({', '.join(operands)}))"


def _notes(answer: Any, f: Callable) -> Any:
    notes: list[Any] = []
    inputs = f.__code__.co_varnames[: f.__code__.co_argcount]
    result = f(*[answer(name, notes) for name in inputs])
    if result is ...:
        return result
    is_box = isinstance(result, NDArrayOperatorsMixin)
    what = f"a Box called {result.name}" if is_box else type(result).__name__.removesuffix("Type")
    return {"notes": [Words(_line(line)) for line in notes], "result": Words(what)}


def _recorded(f: Callable, program: str) -> Any:
    return given(lambda: {f.__name__: f}, f.__name__, program=program)


class Box(NDArrayOperatorsMixin):
    """Stands for an array: it computes nothing, and writes down what is asked of it."""

    def __init__(self, name, notes):
        self.name, self.notes = name, notes

    def __array_ufunc__(self, function, method, *operands):
        names = tuple(x.name if isinstance(x, Box) else x for x in operands)
        result = type(self)(f"t{len(self.notes) + 1}", self.notes)
        self.notes.append((result.name, function.__name__, names))
        return result

    def sum(self, **_):
        """The total."""
        result = type(self)(f"t{len(self.notes) + 1}", self.notes)
        self.notes.append((result.name, "sum", (self.name,)))
        return result


box = lecture.exercise(
    _recorded(product, "def product(a, b):\n    return a * b"),
    _recorded(example, "def example(a, b):\n    return np.maximum(a * b + a, 0)"),
    _recorded(from_two, "def from_two(a):\n    return 2 - a"),
    _recorded(fourth_power, "def fourth_power(a):\n    b = a * a\n    return b * b"),
    otherwise="Go through `a * b` by hand: which line should be in `notes`, and what does the next operator "
    "get?",
    use=_notes,
)(Box)


class _Noting(Box):
    """What mistakes have in common: they note something, and give something back."""

    def named(self, x):
        return x.name if isinstance(x, Box) else x

    def fresh(self):
        return f"t{len(self.notes) + 1}"

    def noted(self, name, function, operands):
        self.notes.append((name, function, operands))
        return type(self)(name, self.notes)

    def __array_ufunc__(self, function, method, *operands):
        return self.noted(self.fresh(), function.__name__, tuple(map(self.named, operands)))


@box.mistake(
    "Your notes hold the boxes themselves. Write down their names: `x.name`, where `x` is a Box, and `x` "
    "itself where it is a number."
)
class BoxesNoted(_Noting):
    def named(self, x):
        return x


@box.mistake("The line is noted, and then None is given back. Is a `return` missing?")
class NothingReturned(_Noting):
    def noted(self, name, function, operands):
        self.notes.append((name, function, operands))


@box.mistake("Nothing is noted. `self.notes.append(...)` adds a line.")
class NothingNoted(_Noting):
    def noted(self, name, function, operands):
        return type(self)(name, self.notes)


@box.mistake(
    "Two results have the same name. Count the lines that are there already: `len(self.notes)` grows with "
    "each."
)
class AlwaysT1(_Noting):
    def fresh(self):
        return "t1"


@box.mistake(
    "The line says one name, and the Box that you return has another: once the line is added, the list is "
    "longer. Make the name once, first, and use it for both."
)
class NamedTwice(_Noting):
    def noted(self, name, function, operands):
        self.notes.append((name, function, operands))
        return type(self)(self.fresh(), self.notes)


@box.mistake(
    "`+=` adds the three parts of the line, each by itself. `self.notes.append((..., ..., ...))` adds one "
    "tuple: mind the two pairs of brackets."
)
class PartsAdded(_Noting):
    def noted(self, name, function, operands):
        self.notes += (name, function, operands)
        return type(self)(name, self.notes)


@box.mistake("`append` takes one thing. Make a tuple of the three parts: mind the two pairs of brackets.")
class ThreeThingsAppended(_Noting):
    def noted(self, name, function, operands):
        add: Callable = self.notes.append
        add(name, function, operands)


@box.mistake("You noted a number as a text. Note a number as it is: 0, and not '0'.")
class NumbersAsText(_Noting):
    def named(self, x):
        return x.name if isinstance(x, Box) else str(x)


@box.mistake("The first result is called `t1`, as there is one line then. You begin with `t0`.")
class BeginsWithT0(_Noting):
    def fresh(self):
        return f"t{len(self.notes)}"


@box.mistake("You give back a name. The next operator needs a Box: `Box(name, self.notes)`.")
class NameReturned(_Noting):
    def noted(self, name, function, operands):
        self.notes.append((name, function, operands))
        return name


@box.mistake("You give back the line. The next operator needs a Box: `Box(name, self.notes)`.")
class LineReturned(_Noting):
    def noted(self, name, function, operands):
        self.notes.append((name, function, operands))
        return (name, function, operands)


@box.mistake(
    "The new Box has a list of its own, so what happens to it later is lost. Hand on the same list: "
    "`self.notes`."
)
class ListOfItsOwn(_Noting):
    def noted(self, name, function, operands):
        self.notes.append((name, function, operands))
        return type(self)(name, list(self.notes))


@box.mistake(
    "The new Box has a list of its own, so what happens to it later is lost. Hand on the same list: "
    "`self.notes`."
)
class EmptyListOfItsOwn(_Noting):
    def noted(self, name, function, operands):
        self.notes.append((name, function, operands))
        return type(self)(name, [])


@box.mistake("You noted the function itself. Note what it is called: `function.__name__`.")
class FunctionNoted(_Noting):
    def __array_ufunc__(self, function, method, *operands):
        return self.noted(self.fresh(), function, tuple(map(self.named, operands)))


@box.mistake(
    "You noted `method`, which says how the function is called. What it is called is `function.__name__`."
)
class MethodNoted(_Noting):
    def __array_ufunc__(self, function, method, *operands):
        return self.noted(self.fresh(), method, tuple(map(self.named, operands)))


@box.mistake(
    "The operands stand in the wrong order: 2 - a is not a - 2. Take them as they come in `operands`."
)
class SelfFirst(_Noting):
    def __array_ufunc__(self, function, method, *operands):
        others = [self.named(x) for x in operands if x is not self]
        return self.noted(self.fresh(), function.__name__, (self.name, *others))


@box.mistake(
    "An operand may be a plain number, and that has no `name`. Ask `isinstance(x, Box)` first, and note a "
    "number as it is."
)
class NumbersHaveNoName(_Noting):
    def named(self, x):
        return x.name


@box.mistake(
    "Here `function` is called on boxes, and NumPy asks the box again, without end. Do not call it: write "
    "down what it is called."
)
class CallsIt(_Noting):
    def __array_ufunc__(self, function, method, *operands):
        return function(*operands)


@box.mistake(
    "You give back the Box that was asked. But `a` is still needed as it is: make a new Box for the result, "
    "`Box(name, self.notes)`."
)
class ReturnsItself(_Noting):
    def noted(self, name, function, operands):
        self.notes.append((name, function, operands))
        return self


@box.mistake(
    "You give back the Box that was asked, under a new name. But `a` is still needed as it is: make a new "
    "Box for the result, `Box(name, self.notes)`."
)
class RenamesItself(_Noting):
    def noted(self, name, function, operands):
        self.notes.append((name, function, operands))
        self.name = name
        return self


@box.mistake('The operands are noted as one text. Keep them apart, in a tuple: `("a", "b")`.')
class OperandsAsText(_Noting):
    def noted(self, name, function, operands):
        return super().noted(name, function, ", ".join(map(str, operands)))


# --- 2 One line, as Python ----------------------------------------------------------------------------------

ARRAYS = {"a": [2.0, 3.0, 5.0], "b": [7.0, 11.0, 13.0], "t1": [17.0, 19.0, 23.0], "t2": [0.5, 0.0, -0.5]}


def _ran_statement(answer: Callable, line: Line, place: Callable) -> Any:
    text = answer(line, place)
    if not isinstance(text, str):
        return text if text is ... or text is None else NoText(text)
    is_array = place("a") != "a"
    names: dict[str, Any] = {"exp": math.exp, "t3": [0.0] * 3 if is_array else 0.0}
    names |= {name: list(x) if is_array else x[0] for name, x in ARRAYS.items()}
    before = {name: list(x) if is_array else x for name, x in names.items() if name != "exp"}
    run_text(f"for i in range(3):\n    {text}" if is_array else text, names)
    return Ran(text, {name: names[name] for name in before if names[name] != before[name]})


@lecture.exercise(
    case(("t1", "multiply", ("a", "b")), in_array),
    case(("t3", "maximum", ("t2", 0)), in_array),
    case(("t2", "subtract", ("t1", "b")), plain),
    case(("t3", "exp", ("t2",)), in_array),
    otherwise="Write down by hand what should come out for this line: the place of the result, ` = `, then "
    "the sign with its operands. Then compare, piece by piece.",
    compare=ran_alike,
    use=_ran_statement,
)
def statement(line, place):
    """A line as Python."""
    name, function, operands = line
    texts = [place(x) if isinstance(x, str) else str(x) for x in operands]
    return f"{place(name)} = {SIGNS[function].format(*texts)}"


def _texts(operands, place):
    return [place(x) if isinstance(x, str) else str(x) for x in operands]


WITHOUT_PLACE = (
    "The operands are arrays here, and you work with their names alone. Ask `place` where each number is: "
    '`place("a")` gives `a[i]`. Ask for the result, too.'
)


@statement.mistake(WITHOUT_PLACE)
def operands_without_place(line, place):
    name, function, operands = line
    return f"{place(name)} = {SIGNS[function].format(*operands)}"


@statement.mistake("The result needs its place, too: `place(name)` on the left side.")
def result_without_place(line, place):
    name, function, operands = line
    return f"{name} = {SIGNS[function].format(*_texts(operands, place))}"


@statement.mistake(WITHOUT_PLACE)
def no_place(line, place):
    name, function, operands = line
    return f"{name} = {SIGNS[function].format(*operands)}"


@statement.mistake(
    "A number such as 0 lies in no array: it stands in the text as it is. Ask `isinstance(x, str)` before "
    "you ask `place`."
)
def numbers_in_places(line, place):
    name, function, operands = line
    return f"{place(name)} = {SIGNS[function].format(*map(place, operands))}"


@statement.mistake(
    "Among the operands, 0 is a number and no text, so it cannot do what texts can. Ask `isinstance(x, str)`."
)
def numbers_like_texts(line, place):
    name, function, operands = line
    texts = [x if x.isdigit() else place(x) for x in operands]
    return f"{place(name)} = {SIGNS[function].format(*texts)}"


@statement.mistake(
    "`format` gets all operands as one thing. With a star it gets them one by one: `.format(*texts)`."
)
def without_a_star(line, place):
    name, function, operands = line
    return f"{place(name)} = {SIGNS[function].format(_texts(operands, place))}"


@statement.mistake("You write `[i]` yourself. Whether a number lies in an array is for `place` to say.")
def always_in_arrays(line, place):
    return statement.right(line, in_array)


@statement.mistake("The operands stand in the wrong order: t1 - b is not b - t1.")
def turned_around(line, place):
    name, function, operands = line
    return statement.right((name, function, operands[::-1]), place)


@statement.mistake("That is the right side alone. The result has to be kept: `place(name)`, then ` = `.")
def expression_alone(line, place):
    return statement.right(line, place).partition(" = ")[2]


@statement.mistake("`exp` has one operand only. Give `format` all there are: `.format(*texts)`.")
def two_operands(line, place):
    _, _, (_, _) = line
    return statement.right(line, place)


@statement.mistake(
    "This is what NumPy calls the function. How Python writes it stands in `SIGNS`, with {} for each operand."
)
def names_of_numpy(line, place):
    name, function, operands = line
    return f"{place(name)} = {function}({', '.join(_texts(operands, place))})"


@statement.mistake("The places {} are still empty. `.format(...)` fills them.")
def not_filled(line, place):
    name, function, _ = line
    return f"{place(name)} = {SIGNS[function]}"


@statement.mistake(NO_LIST)
def pieces(line, place):
    name, function, operands = line
    return [place(name), SIGNS[function].format(*_texts(operands, place))]


# --- 3 One loop for all -------------------------------------------------------------------------------------

EXAMPLE = [("t1", "multiply", ("a", "b")), ("t2", "add", ("t1", "a")), ("t3", "maximum", ("t2", 0))]
ONE_LINE = [("t1", "subtract", ("a", "b"))]
REUSED = [("t1", "multiply", ("a", "a")), ("t2", "add", (1, "t1")), ("t3", "divide", ("t1", "t2"))]


def _ran_function(answer: Callable, lines: list[Line], inputs: list[str]) -> Any:
    text = answer(lines, inputs)
    if not isinstance(text, str):
        return text if text is ... or text is None else NoText(text)
    names: dict[str, Any] = {"exp": math.exp}
    run_text(text, names)
    if "fused" not in names:
        raise InText("your text defines no function `fused`")
    arrays = {name: list(ARRAYS[name]) for name in inputs}
    names |= {"_arguments": [*arrays.values()], "_out": (out := [0.0] * 3)}
    run_text("fused(*_arguments, _out)", names)
    nodes = list(ast.walk(ast.parse(text)))
    loops = sum(isinstance(node, (ast.For, ast.While)) for node in nodes)
    used = {ast.unparse(node.value) for node in nodes if isinstance(node, ast.Subscript)}
    return Ran(text, {"out": out, "loops": loops, "arrays between": len(used - {*inputs, "out"})})


@lecture.exercise(
    case(EXAMPLE, ["a", "b"]),
    case(ONE_LINE, ["a", "b"]),
    case(REUSED, ["a"]),
    otherwise="Print your text and read it as a program. In which line does it do something else than you "
    "want?",
    compare=ran_alike,
    use=_ran_function,
    without={
        Loops.__init__: "`Loops` would write it for you. Put it together yourself: a `def`, a `for`, lines."
    },
)
def fuse(lines, inputs):
    """The text of one loop."""
    return _fused(lines, inputs)


def _fused(lines, inputs, place=None, head=None, between="", last=None):
    result = lines[-1][0]

    def usual(name):
        if name in inputs:
            return f"{name}[i]"
        return "out[i]" if name == result else name

    loop = "    for i in range(len(out)):"
    source = [head or f"def fused({', '.join(inputs)}, out):", loop]
    for number, line in enumerate(lines):
        source += [loop] if between and number else []
        source.append(f"        {statement.right(line, place or usual)}")
    return "\n".join(source + ([last] if last else []))


@fuse.mistake(
    "Your text asks for an array `t1[i]`, but there is none: only the inputs and `out` come as arrays. What "
    "lies between is a plain variable, `t1`."
)
def all_in_arrays(lines, inputs):
    result = lines[-1][0]
    return _fused(lines, inputs, lambda name: "out[i]" if name == result else in_array(name))


@fuse.mistake(
    "Your text asks for an array `t1[i]`, but there is none. What lies between is a plain variable, `t1`, "
    "and the last line writes `out[i]`."
)
def in_arrays_with_the_result(lines, inputs):
    return _fused(lines, inputs, in_array)


@fuse.mistake(
    "In the last line, too, only the inputs and the result lie in arrays: `t2` is a plain variable. So let "
    "`place` look at the name that it gets, and use the same `place` for all lines."
)
def last_line_in_arrays(lines, inputs):
    usual = _fused(lines[:-1], [*inputs, lines[-1][0]], lambda name: f"{name}[i]" if name in inputs else name)
    head = f"def fused({', '.join(inputs)}, out):"
    return "\n".join([head, *usual.split("\n")[1:], f"        {statement.right(lines[-1], in_array)}"])


@fuse.mistake(
    "It computes the right numbers, in one loop, but what lies between is still written into arrays. A plain "
    "variable will do: that is the whole point of fusion."
)
def arrays_of_its_own(lines, inputs):
    source = [f"def fused({', '.join(inputs)}, out):"]
    source += [f"    {name} = [0.0] * len(out)" for name, *_ in lines]
    source += ["    for i in range(len(out)):"]
    source += [f"        {statement.right(line, in_array)}" for line in lines]
    return "\n".join([*source, f"        out[i] = {lines[-1][0]}[i]"])


@fuse.mistake("`out` stays as it was. The last line's result belongs in `out[i]`.")
def out_not_written(lines, inputs):
    return _fused(lines, inputs, lambda name: in_array(name) if name in inputs else name)


@fuse.mistake(
    "Only the last result belongs in `out[i]`. The others are plain variables, each with its own name."
)
def all_into_out(lines, inputs):
    source = [f"def fused({', '.join(inputs)}, out):", "    for i in range(len(out)):"]
    for line in lines:
        text = statement.right(line, lambda name: in_array(name) if name in inputs else name)
        source.append(f"        out[i] = {text.partition(' = ')[2]}")
    return "\n".join(source)


@fuse.mistake(
    "Only the last result belongs in `out[i]`. In this program `t1` is still needed when `t2` is there: give "
    "each its own variable."
)
def one_place_for_all(lines, inputs):
    return _fused(lines, inputs, lambda name: in_array(name) if name in inputs else "out[i]")


@fuse.mistake(
    "Each line has a loop of its own here. When the first one is done, `t1` holds only its last number. "
    "Write `for` once, and all lines into it."
)
def a_loop_each(lines, inputs):
    return _fused(lines, inputs, between="loop")


@fuse.mistake("The inputs are arrays: at `i`, a number of `a` is `a[i]`.")
def inputs_as_variables(lines, inputs):
    result = lines[-1][0]
    return _fused(lines, inputs, lambda name: "out[i]" if name == result else name)


@fuse.mistake(
    "The inputs are arrays: at `i`, a number of `a` is `a[i]`. And the last line's result belongs in "
    "`out[i]`."
)
def all_plain(lines, inputs):
    return _fused(lines, inputs, plain)


@fuse.mistake("The function gets the inputs, and then `out`. Yours does not take `out`.")
def without_out(lines, inputs):
    return _fused(lines, inputs, head=f"def fused({', '.join(inputs)}):")


@fuse.mistake('`inputs` is a list. In the text, its names stand side by side: `", ".join(inputs)`.')
def the_list_itself(lines, inputs):
    return _fused(lines, inputs, head=f"def fused({inputs}, out):")


@fuse.mistake("The lines stand in the wrong order: `t2` is asked for before it is there.")
def reversed_lines(lines, inputs):
    source = _fused(lines, inputs).split("\n")
    return "\n".join(source[:2] + source[:1:-1])


@fuse.mistake("Python needs the lines of the loop indented by eight spaces: four for `def`, four for `for`.")
def not_indented(lines, inputs):
    return "\n".join(x.strip() if x.startswith("        ") else x for x in _fused(lines, inputs).split("\n"))


@fuse.mistake("There is no loop, so `i` is not known: `for i in range(len(out)):` comes before the lines.")
def no_loop(lines, inputs):
    source = _fused(lines, inputs).split("\n")
    return "\n".join([source[0], *[x[4:] for x in source[2:]]])


@fuse.mistake(
    "`out[i]` is written when the loop is over, so it is written once. Indent that line by eight spaces, too."
)
def written_once(lines, inputs):
    text = _fused(lines, inputs, lambda name: in_array(name) if name in inputs else name)
    return f"{text}\n    out[i] = {lines[-1][0]}"


@fuse.mistake(
    "`return` stands inside the loop, so it ends after one round. `out` is written; leave `return` out."
)
def returns_too_early(lines, inputs):
    return _fused(lines, inputs, last="        return out")


@fuse.mistake("This is the function itself. A text is asked for, so that other lines give another function.")
def no_text(lines, inputs):
    return lambda *arrays: None


@fuse.mistake(NO_LIST)
def list_of_lines(lines, inputs):
    return _fused(lines, inputs).split("\n")


@fuse.mistake("The check calls the function `fused`. Yours has another name.")
def another_name(lines, inputs):
    return _fused(lines, inputs, head=f"def program({', '.join(inputs)}, out):")


# --- 4 Refuse -----------------------------------------------------------------------------------------------


def an_if(a):
    """Asks in the middle."""
    return a * 0.5 if a * 2 > 1 else a


def a_not(x):
    """Asks in another way."""
    return x if x else x + x


class CarefulBox(Box):
    """A Box that does not let Python choose a way."""

    def __bool__(self):
        return refuse.right(self)


def _refused(answer: Callable, f: Callable) -> Any:
    class Asked(Box):
        def __bool__(self):
            return answer(self)

    notes: list[Line] = []
    (name,) = f.__code__.co_varnames
    try:
        f(Asked(name, notes))
    except TypeError as error:
        if "ellipsis" in str(error):
            return ...
        if "BaseException" in str(error):  # Python's own words
            return {"refused": "yes, by Python: what you raise is no error", "the message names it": False}
        if "should return bool" in str(error):
            return {"refused": "no, you returned something", "the message names it": False}
        name = notes[-1][0] if notes else name
        return {"refused": "yes", "the message names it": bool(re.search(rf"\b{name}\b", str(error)))}
    except (ValueError, RuntimeError) as error:
        if isinstance(error, RecursionError):
            raise
        return {"refused": "by another error than a TypeError", "the message names it": bool(str(error))}
    return {"refused": "no, Python went on", "the message names it": False}


@lecture.exercise(
    _recorded(an_if, "def an_if(a):\n    return a * 0.5 if a * 2 > 1 else a"),
    _recorded(a_not, "def a_not(x):\n    return x if x else x + x"),
    otherwise="Which line of yours runs when Python asks a Box whether it is true? It should `raise "
    "TypeError(...)`.",
    use=_refused,
)
def refuse(box):
    """There is no answer."""
    raise TypeError(f"the value of {box.name} is not known while the function is recorded")


@refuse.mistake(
    "Python gets an answer, and goes on along one branch as if nothing had happened. There is no right "
    "answer here, so `raise` an error."
)
def says_true(box):
    return True


@refuse.mistake(
    "Python gets an answer, and goes on along one branch as if nothing had happened. There is no right "
    "answer here, so `raise` an error."
)
def says_false(box):
    return False


@refuse.mistake(
    "`__bool__` has to answer with True or False, or to raise. Yours gives something else back. Write "
    "`raise TypeError(...)`, with your words in the brackets."
)
def gives_words(box):
    return f"{box.name} is not known"


@refuse.mistake(
    "`raise` needs an error to raise, and a text is none. Put your words into one: `raise TypeError(...)`."
)
def raises_words(box):
    words: Any = f"{box.name} is not known"
    raise words


@refuse.mistake("It is refused, good. But which value was asked for? Put `box.name` into the message.")
def names_nothing(box):
    raise TypeError("this number is not known yet")


@refuse.mistake(
    "It is refused, good. But by the other error: here a `TypeError` is asked for. Write `raise "
    "TypeError(...)`."
)
def another_error(box):
    raise ValueError(f"{box.name} is not known")


def _damped_by(answer: Callable, a: float, limit: float) -> Any:
    result = answer(np.array([a, -a]), np.float64(limit))
    if result is ...:
        return result
    notes: list[Line] = []
    answer(CarefulBox("a", notes), CarefulBox("limit", notes))
    return [float(x) for x in np.asarray(result).reshape(-1)]


@lecture.exercise(
    case(3.0, 2.0),
    case(3.0, 0.5),
    case(-1.5, 1.0),
    otherwise="`limit > 1` is 1 or 0 when you multiply by it. Which of the two results should stay, and "
    "which become 0?",
    use=_damped_by,
)
def damped(a, limit):
    """Both ways, and one of them counts."""
    large = limit > 1
    return large * (a * 0.5) + (1 - large) * (a + a)


@damped.mistake(
    "A Box was asked whether it is true: by `if`, `and`, `or`, `not`, or by `np.where`, which asks as well. "
    "Compute both results, and let `limit > 1` choose by multiplication."
)
def with_if(a, limit):
    return a * 0.5 if limit > 1 else a + a


@damped.mistake(
    "An array was asked whether it is true, by `and`, `or` or `not`. Compute both results, and let `limit > "
    "1` choose by multiplication."
)
def with_and_or(a, limit):
    return ((limit > 1) and a * 0.5) or (a + a)


NO_POSITION = (
    "Nobody knows yet which number the Box will be, so it can be no position in a list. Compute both "
    "results, and let `limit > 1` choose by multiplication."
)


@damped.mistake(NO_POSITION)
def by_position(a, limit):
    return (a + a, a * 0.5)[int(limit > 1)]


@damped.mistake(NO_POSITION)
def by_question(a, limit):
    return [a + a, a * 0.5][limit > 1]


@damped.mistake(NO_POSITION)
def by_question_in_a_tuple(a, limit):
    return (a + a, a * 0.5)[limit > 1]


@damped.mistake("You have the half for every limit. Where `limit > 1` is 0, `a + a` should come out.")
def half_always(a, limit):
    return a * 0.5


@damped.mistake("You have `a + a` for every limit. Where `limit > 1` is 1, `a * 0.5` should come out.")
def double_always(a, limit):
    return a + a


@damped.mistake("The two are swapped: where `limit > 1` is 1, `a * 0.5` should stay.")
def swapped(a, limit):
    large = limit > 1
    return large * (a + a) + (1 - large) * (a * 0.5)


@damped.mistake("At `limit = 1` itself, nothing is left: neither `limit > 1` nor `limit < 1` is 1 there.")
def not_at_the_limit(a, limit):
    return (limit > 1) * (a * 0.5) + (limit < 1) * (a + a)


@damped.mistake("Where `limit > 1` is 0, nothing is left. Add the other result, times `1 - (limit > 1)`.")
def other_forgotten(a, limit):
    return (limit > 1) * (a * 0.5)


@damped.mistake(
    "`a + a` is always added. Multiply it by `1 - (limit > 1)`, which is 0 where the half should stay."
)
def both_added(a, limit):
    return (limit > 1) * (a * 0.5) + (a + a)


# --- 5 Where a loop must end --------------------------------------------------------------------------------

SHARES = [("t1", "exp", ("a",)), ("t2", "sum", ("t1",)), ("t3", "divide", ("t1", "t2"))]
TWO_TOTALS = [
    ("t1", "sum", ("a",)),
    ("t2", "multiply", ("a", "a")),
    ("t3", "sum", ("t2",)),
    ("t4", "divide", ("t2", "t3")),
    ("t5", "subtract", ("t4", "t1")),
]
LATER = [
    ("t1", "sum", ("a",)),
    ("t2", "subtract", ("a", "t1")),
    ("t3", "multiply", ("t2", "t2")),
    ("t4", "sum", ("t3",)),
    ("t5", "divide", ("t2", "t4")),
    ("t6", "multiply", ("t5", "t3")),
]
BACK = [
    ("t1", "sum", ("a",)),
    ("t2", "subtract", ("a", "t1")),
    ("t3", "multiply", ("a", "a")),
    ("t4", "sum", ("t3",)),
    ("t5", "divide", ("t2", "t4")),
]


def _names(answer: Callable, lines: list[Line]) -> Any:
    found = answer(lines)
    if not isinstance(found, (list, tuple)) or not all(isinstance(group, (list, tuple)) for group in found):
        return found
    return [[line[0] if line in lines else f"{line} (no line)" for line in group] for group in found]


@lecture.exercise(
    case(EXAMPLE),
    case(SHARES),
    case(TWO_TOTALS),
    case(LATER),
    case(BACK),
    otherwise="For each line, say in which loop its operands are ready. A total is ready one loop later.",
    use=_names,
)
def groups(lines):
    """The loops, each with its lines."""
    return _grouped(
        lines, lambda loops, totals, number: max((loops[x] + (x in totals) for x in number), default=0)
    )


def _grouped(lines, rule):
    loops: dict[str, int] = {}
    totals: set[str] = set()
    found: list[list[Line]] = []
    for line in lines:
        name, function, operands = line
        loops[name] = rule(loops, totals, [x for x in operands if x in loops])
        totals |= {name} if function == "sum" else set()
        while len(found) <= loops[name]:
            found.append([])
        found[loops[name]].append(line)
    return found


@groups.mistake(
    "All lines are in one loop. But while it runs, a total is not complete: who reads it has to wait for the "
    "next loop."
)
def one_loop(lines):
    return [list(lines)]


@groups.mistake("Every line has a loop of its own. Lines without a total between them can share one.")
def one_each(lines):
    return [[line] for line in lines]


@groups.mistake(
    "You begin a new loop after each total, even where nobody reads it yet. Ask for each line which of its "
    "operands make it wait."
)
def after_each_total(lines):
    found: list[list[Line]] = [[]]
    for line in lines:
        found[-1].append(line)
        if line[1] == "sum":
            found.append([])
    return [group for group in found if group]


@groups.mistake(
    "You begin a new loop where a line has to wait, and never go back to an earlier one. But a line that "
    "waits for nothing goes into the first loop, wherever it is written."
)
def never_back(lines):
    return _grouped(
        lines,
        lambda loops, totals, number: max(
            [*loops.values(), *(loops[x] + (x in totals) for x in number)], default=0
        ),
    )


@groups.mistake(
    "The total itself need not wait: it is added up in the loop that computes its operand. Those who read it "
    "wait for the next."
)
def total_late(lines):
    loops: dict[str, int] = {}
    found: dict[int, list[Line]] = {}
    for line in lines:
        name, function, operands = line
        loops[name] = max(loops.get(x, 0) for x in operands) + (function == "sum")
        found.setdefault(loops[name], []).append(line)
    return [found[number] for number in sorted(found)]


@groups.mistake("These are the names alone. Put the whole lines into the lists: (name, function, operands).")
def names_alone(lines):
    return [[line[0] for line in group] for group in groups.right(lines)]


@groups.mistake("This is a dictionary. Return the lists that are in it, in a list: `list(found.values())`.")
def dictionary(lines):
    return dict(enumerate(groups.right(lines)))


@groups.mistake(
    "Inputs such as `a`, and numbers such as 0, are computed by no line, so your dictionary does not know "
    "them. `.get(x, 0)` gives 0 for what is not there."
)
def inputs_not_known(lines):
    raise KeyError("a")


@groups.mistake(
    "There is no such list yet. When a line is the first of its loop, append an empty list before."
)
def list_not_there(lines):
    return [][0]


@groups.mistake("Some of your loops are empty. Make a list only for a loop that has a line in it.")
def empty_loops(lines):
    found = groups.right(lines)
    return found + [[] for _ in lines[len(found) :]]


@groups.mistake(
    "You add the numbers of the loops up. But a line waits only for the latest of its operands: take the "
    "`max`."
)
def added_up(lines):
    return _grouped(lines, lambda loops, totals, known: sum(loops[x] + (x in totals) for x in known))


@groups.mistake(
    "You begin a new loop at each line that reads a total. If the total was complete before this loop began, "
    "the line can stay."
)
def at_each_reader(lines):
    totals = {line[0] for line in lines if line[1] == "sum"}
    found: list[list[Line]] = [[]]
    for line in lines:
        if totals & set(line[2]):
            found.append([])
        found[-1].append(line)
    return found


@groups.mistake("A total can be added up in the loop that computes its numbers. It needs no loop before it.")
def before_each_total(lines):
    loops: dict[str, int] = {}
    found: list[list[Line]] = []
    totals = set()
    for line in lines:
        name, function, operands = line
        loops[name] = max((loops[x] + (x in totals) for x in operands if x in loops), default=0)
        if function == "sum":
            loops[name] += 1
            totals.add(name)
        while len(found) <= loops[name]:
            found.append([])
        found[loops[name]].append(line)
    return [group for group in found if group]


@groups.mistake(
    "A line waits for its operands, also if they are no totals: what uses `t2` cannot be in an earlier loop "
    "than `t2`."
)
def only_direct(lines):
    totals = {line[0] for line in lines if line[1] == "sum"}
    waits = [any(x in totals for x in line[2]) for line in lines]
    found = [
        [line for line, late in zip(lines, waits, strict=True) if not late],
        [line for line, late in zip(lines, waits, strict=True) if late],
    ]
    return [group for group in found if group]


@groups.mistake(
    "You look at the last operand alone, or at the first. A line has to wait for all of them: take the `max`."
)
def earliest_operand(lines):
    return _grouped(
        lines, lambda loops, totals, known: min((loops[x] + (x in totals) for x in known), default=0)
    )


@groups.mistake(
    "You look at the last operand alone, or at the first. A line has to wait for all of them: take the `max`."
)
def last_operand(lines):
    return _grouped(lines, lambda loops, totals, known: ([0] + [loops[x] + (x in totals) for x in known])[-1])


@groups.mistake("This is the number of each loop. Return the loops themselves: a list of lists of lines.")
def numbers(lines):
    found = groups.right(lines)
    return [next(i for i, group in enumerate(found) if line in group) for line in lines]
