"""Lecture 19, from a graph to one kernel: its exercises, the usual mistakes in them, its races."""

from __future__ import annotations

import ast
import math
import re
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from traceback import walk_tb
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st
from numpy.lib.mixins import NDArrayOperatorsMixin

import viz
from needle import nn
from needle.autograd import Tensor
from needle.backend_selection import default_device

from .checking import Case, Lecture, Names, case, drawn, graphs, kind, program_case, values

lecture = Lecture(__file__)
check, ready, predict, grade = lecture.check, lecture.ready, lecture.predict, lecture.grade

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


processor_time = getattr(time, "thread_time", time.perf_counter)  # a browser has no such clock

#: The kernels that are no row of the table of scalar functions.
KERNELS = (
    "matmul", "compact", "fill", "gather", "scatter_add", "one_hot", "scalar_setitem", "ewise_setitem",
    "from_numpy",
)  # fmt: skip


class Share(NamedTuple):
    """How many kernels a program called, and which part of its time passed outside of them (0 to 1)."""

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
            inside, start = True, processor_time()
            try:
                return kernel(*args)
            finally:
                spent, calls, inside = spent + processor_time() - start, calls + 1, False

        return call

    found: list[tuple[float, Share]] = []
    run(*operands)
    end = time.perf_counter() + seconds
    mod = default_device().mod
    with ExitStack() as stack:
        for name in KERNELS:
            if kernel := getattr(mod, name, None):
                stack.enter_context(patch.object(mod, name, watched(kernel)))
        for table in (mod.MAPS, mod.ZIPS, mod.REDUCES):
            stack.enter_context(patch.dict(table, {name: watched(kernel) for name, kernel in table.items()}))
        while len(found) < 5 or (len(found) < 50 and time.perf_counter() < end):
            spent, calls, start = 0.0, 0, processor_time()
            run(*operands)
            whole = processor_time() - start
            found.append((whole, Share(calls, 1 - spent / whole)))
    return min(found)[1]


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
    """Lines as Python, in `source`: one loop for each group of them.

    What a later loop reads lies in an array; all else is a plain variable.
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

        What a round of a loop has read or written before is still in the processor, and counts once.
        """
        found = {}
        for group in self.groups:
            touched: set[str] = set()
            for name, _, operands in group:
                places = {self.place(x) for x in (name, *operands) if isinstance(x, str)}
                places = {place for place in places if place.endswith("[i]")} - touched
                found[name] = 4 * len(places) * numbers / 1e6
                touched |= places
        return found


# --- What exercises share -----------------------------------------------------------------------------------


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


def ran_alike(expected: Any, got: Any, names: Names) -> str:
    """Whether two texts compute the same."""
    if isinstance(expected, Ran) and isinstance(got, Ran):
        return values(expected.found, got.found, names)
    return "" if kind(expected) == kind(got) else f"the type is {kind(got)}, but should be str"


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


def _found(text: str, variables: dict[str, Any], *arrays: str) -> Ran:
    """A text, and what it left behind: numbers, loops, arrays of its own."""
    nodes = list(ast.walk(ast.parse(text)))
    loops = sum(isinstance(node, (ast.For, ast.While, ast.comprehension)) for node in nodes)
    used = {ast.unparse(node.value) for node in nodes if isinstance(node, ast.Subscript)}
    return Ran(text, variables | {"loops": loops, "arrays between": len(used - {*arrays})})


def _tidy(text: str, number: int) -> str:
    """A line of a text, written as Python itself would write it."""
    line = text.split("\n")[number - 1].strip()
    try:
        return ast.unparse(ast.parse(line))
    except SyntaxError:
        return line


# --- 1 A stand-in that takes notes --------------------------------------------------------------------------


def _line(line: Any) -> str:
    """A line of notes as a message shows it."""
    if not isinstance(line, (tuple, list)) or len(line) != 3:
        return f"{line!r:.60}, which is no (name, function, operands)"
    name, function, operands = line
    if not isinstance(operands, tuple):
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


def _function(*lines: str) -> Case:
    """A case of a function `f`, whose text the message shows."""
    return program_case(["\n".join(lines)], {"np": np}, "f")


def _written(lines: list[str]) -> Case:
    """A function of a graph's lines: what they begin with are its parameters."""
    parameters = [line[0] for line in lines if line[0] in "ab"]
    body = [f"    {line}" for line in lines[len(parameters) :]]
    return _function(f"def f({', '.join(parameters)}):", *body, f"    return {lines[-1][0]}")


OPERATORS = ["{a} * {b}", "{a} + {b}", "np.maximum({a}, 0)", "2 - {a}", "{a} > 1", "np.exp({a})", "0.5 / {a}"]


class Box(NDArrayOperatorsMixin):
    def __init__(self, name, notes):
        self.name, self.notes = name, notes

    def __array_ufunc__(self, function, method, *operands):
        names = tuple(x.name if isinstance(x, Box) else x for x in operands)
        result = Box(f"t{len(self.notes) + 1}", self.notes)
        self.notes.append((result.name, function.__name__, names))
        return result


box = lecture.exercise(
    _function("def f(a, b):", "    return a * b"),
    _function("def f(a, b):", "    return np.maximum(a * b + a, 0)"),
    draws=graphs("{}", OPERATORS).map(_written),
    otherwise="Go through `a * b` by hand: which line should be in `notes`, and what does the next operator get?",
    use=_notes,
    form="Box, asked by {},",
)(Box)


# --- 2 One line, as Python ----------------------------------------------------------------------------------

ARRAYS = {"a": [2.0, 3.0, 5.0], "b": [7.0, 11.0, 13.0], "t1": [17.0, 19.0, 23.0], "t2": [0.5, 0.0, -0.5]}
ARRAYS["limit"] = [-3.0, 1.5, 0.5]


def _ran_statement(answer: Callable, line: Line, place: Callable) -> Any:
    text = answer(line, place)
    if not isinstance(text, str):
        return text
    is_array = place("a") != "a"
    names: dict[str, Any] = {"exp": math.exp, "t3": [0.0] * 3 if is_array else 0.0}
    names |= {name: list(x) if is_array else x[0] for name, x in ARRAYS.items()}
    before = {name: list(x) if is_array else x for name, x in names.items() if name != "exp"}
    run_text(f"for i in range(3):\n    {text}" if is_array else text, names)
    return _found(text, {name: names[name] for name in before if names[name] != before[name]}, *before)


@lecture.exercise(
    case(("t1", "multiply", ("a", "b")), in_array),
    case(("t3", "maximum", ("t2", 0)), in_array),
    draws=drawn(
        [
            *(("t2", "subtract", ("t1", "b")), ("t3", "exp", ("t2",)), ("t3", "divide", (1, "a"))),
            *(("t3", "multiply", ("a", 0.5)), ("t1", "subtract", (1, "b")), ("t2", "greater", (2.5, "a"))),
            *(("t3", "add", ("b", "b")), ("t3", "maximum", (0, "t2")), ("t3", "divide", ("b", "a"))),
            ("t3", "maximum", (-2, "limit")),
        ],
        [in_array, plain],
    ),
    otherwise="Write down by hand what should come out for this line: the place of the result, ` = `, then the sign with its operands. Then compare, piece by piece.",
    compare=ran_alike,
    use=_ran_statement,
)
def statement(line, place):
    name, function, operands = line
    texts = [place(x) if isinstance(x, str) else str(x) for x in operands]
    return f"{place(name)} = {SIGNS[function].format(*texts)}"


# --- 3 One loop for all -------------------------------------------------------------------------------------

EXAMPLE = [("t1", "multiply", ("a", "b")), ("t2", "add", ("t1", "a")), ("t3", "maximum", ("t2", 0))]
write = statement.right


def lines_of(program: list[str]) -> list[Line]:
    """A graph's lines, such as ``t1 = multiply a b``, as notes; those of its inputs are left out."""
    steps = [line.split() for line in program if len(line.split()) > 3]
    return [
        (name, function, tuple(float(x) if x[0].isdigit() else x for x in operands))
        for name, _, function, *operands in steps
    ]


def noted(*operators: str, leaves: Sequence[str] = ("a", "b")) -> st.SearchStrategy[list[Line]]:
    """Programs as notes, of these operators."""
    names = [f"t{number}" for number in range(1, 9)]
    return graphs("{}", operators, names=names, leaves=leaves).map(lines_of)


FUSED = ("multiply {a} {b}", "add {a} {b}", "maximum {a} 0", "subtract 2 {a}", "divide {a} 4")


def _ran_function(answer: Callable, lines: list[Line], inputs: list[str]) -> Any:
    text = answer(lines, inputs)
    if not isinstance(text, str):
        return text
    names: dict[str, Any] = {"exp": math.exp}
    run_text(text, names)
    if "fused" not in names:
        raise InText("your text defines no function `fused`")
    length = 2 + len(lines) % 2
    arrays = {name: x[:length] for name, x in zip(inputs, ARRAYS.values(), strict=False)}
    arrays["out"] = [0.0] * length
    run_text("fused(*_arrays)", names | {"_arrays": [*arrays.values()]})
    return _found(text, arrays, *arrays)


@lecture.exercise(
    case(EXAMPLE, ["a", "b"]),
    draws=st.sampled_from([["a", "b"], ["x", "at1"], ["t", "sum"]]).flatmap(
        lambda inputs: noted(*FUSED, leaves=inputs).map(lambda lines: case(lines, inputs))
    ),
    otherwise="Print your text and read it as a program. In which line does it do something else than you want?",
    compare=ran_alike,
    use=_ran_function,
    without={
        Loops.__init__: "`Loops` would write it for you. Put it together yourself: a `def`, a `for`, lines."
    },
)
def fuse(lines, inputs):
    result = lines[-1][0]

    def place(name):
        if name in inputs:
            return f"{name}[i]"
        return "out[i]" if name == result else name

    source = [f"def fused({', '.join(inputs)}, out):", "    for i in range(len(out)):"]
    source += [f"        {write(line, place)}" for line in lines]
    return "\n".join(source)


# --- 4 Refuse -----------------------------------------------------------------------------------------------


def damp(a, limit):
    """The lecture's function that asks."""
    return a * 0.5 if limit > 1 else a + a


def _refused(answer: Callable, f: Callable) -> Any:
    notes: list[Line] = []
    (name,) = f.__code__.co_varnames
    yes = {"refused": "yes", "the message names it": True}
    try:
        with patch.object(Box, "__bool__", lambda box: answer(box), create=True):
            f(Box(name, notes))
    except TypeError as error:
        if "ellipsis" in str(error):
            return ...
        if "BaseException" in str(error):  # Python's own words
            return {"refused": "yes, by Python: what you raise is no error", "the message names it": False}
        if "should return bool" in str(error):
            return {"refused": "no, you returned something", "the message names it": False}
        asked = notes[-1][0] if notes else name
        named = {x for x in [name, *(line[0] for line in notes)] if re.search(rf"\b{x}\b", str(error))}
        # "a" is a word of English, too
        return yes | {"the message names it": asked in named and named <= {asked, "a"}}
    except (ValueError, RuntimeError, AssertionError, SystemExit) as error:
        if isinstance(error, RecursionError):
            raise
        return {"refused": "by another error than a TypeError", "the message names it": bool(str(error))}
    return {"refused": "no, Python went on", "the message names it": False}


@lecture.exercise(
    _function("def f(a):", "    return a * 0.5 if a * 2 > 1 else a"),
    draws=st.sampled_from(
        [
            *(("x = x + 1", "return x if x else -x"), ("return x if not x else x + x",)),
            *(("return x and x * 2",), ("y = x * x", "z = y + x", "return y if z > x else z")),
        ]
    ).map(
        lambda lines: _function(
            "def f(x):", *[f"    {line.replace('y', 'x').replace('z', 'x')}" for line in lines]
        )
    ),
    otherwise="Which line of yours runs when Python asks a Box whether it is true? It should `raise TypeError(...)`.",
    use=_refused,
)
def refuse(box):
    raise TypeError(f"the value of {box.name} is not known while the function is recorded")


def _damped_by(answer: Callable, a: float, limit: float) -> Any:
    known: dict[Any, Any] = {"a": np.array([a, -a]), "limit": np.float64(limit)}
    result = answer(known["a"].copy(), known["limit"])
    if result is ...:
        return result
    notes: list[Line] = []
    with patch.object(Box, "__bool__", refuse.right, create=True):
        box = answer(Box("a", notes), Box("limit", notes))
    for name, function, operands in notes:  # the recorded program, on the same numbers
        known[name] = getattr(np, function)(*[known.get(x, x) for x in operands])
    recorded = known[box.name] if isinstance(box, Box) else box
    if np.array_equal(recorded, result):
        return [float(x) for x in np.asarray(result).reshape(-1)]
    return {"with numbers": result, "what is recorded gives": recorded}


@lecture.exercise(
    case(3.0, 2.0),
    case(3.0, 0.5),
    draws=drawn([-1.5, 2.0, 0.5, 0.0], [1.0, 3.0, -1.0, 0.0, 1.5]),
    otherwise="`limit > 1` is 1 or 0 when you multiply by it. Which of the two results should stay, and which become 0?",
    use=_damped_by,
)
def damped(a, limit):
    large = limit > 1
    return large * (a * 0.5) + (1 - large) * (a + a)


# --- 5 Where a loop must end --------------------------------------------------------------------------------

SHARES = [("t1", "exp", ("a",)), ("t2", "sum", ("t1",)), ("t3", "divide", ("t1", "t2"))]


def _names(answer: Callable, lines: list[Line]) -> Any:
    found = answer(lines)
    if not isinstance(found, (list, tuple)) or not all(isinstance(group, (list, tuple)) for group in found):
        return found
    return [[line[0] if line in lines else f"{line} (no line)" for line in group] for group in found]


@lecture.exercise(
    case(EXAMPLE),
    case(SHARES),
    case([("t3", "exp", ("t2",))]),
    draws=noted("sum {a}", "multiply {a} {b}", "subtract {a} {b}", "maximum {a} 0").map(case),
    number=250,
    otherwise="For each line, say in which loop its operands are ready. A total is ready one loop later.",
    use=_names,
)
def groups(lines):
    ready_in, found = {}, []
    for line in lines:
        name, function, operands = line
        loop = max((ready_in[x] for x in operands if x in ready_in), default=0)
        if loop == len(found):
            found.append([])
        found[loop].append(line)
        ready_in[name] = loop + 1 if function == "sum" else loop
    return found
