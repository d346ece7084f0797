"""An answer that is tried on one case: what it did, whether that is right, and how a message says it."""

from __future__ import annotations

import dis
import io
import linecache
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from importlib import import_module
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from .comparison import exactly, is_tensor, show, shown_array, to_numpy, values
from .inputs import Case

if TYPE_CHECKING:
    from .exercise import Exercise

MOST_SECONDS = 20  # for an answer, in each case
HINT_SECONDS = 10  # for a mistake that may do the same


class WrongAnswer(AssertionError):
    """An answer is not right yet. The message says for which input, and why."""

    def _render_traceback_(self) -> list[str]:
        # IPython asks for this. The message alone helps; the lines of `check` would hide it.
        return [str(self)]


@dataclass(frozen=True)
class Outcome:
    """What a program did in a case: its result, or the exception that ended it, and what it printed."""

    result: Any = None
    error: BaseException | None = None
    printed: str = ""


class Attempt:
    """An answer that is tried on one case.

    Attributes
    ----------
    inputs : list
        What the answer was called with.
    names : dict
        What messages call things, by their id.
    got : Outcome
    expected : any
        The result of the lecture's own solution for the same inputs.
    called : list of function
        What the answer called of `Exercise.without`, and of a library what it should write itself.
    untried : bool
        Whether the stub's ``...`` is still there.
    wrong : str
        What is wrong, in words; "" if the answer is right in this case.
    fault : str
        What helps, if the answer broke a contract: it changes its inputs, say.
    """

    def __init__(self, exercise: Exercise, asked: Case, answer: Any, watch: bool = True):
        self.exercise, self.case, self.answer = exercise, asked, answer
        self.everything = asked.make()
        self.inputs = [self.everything[name] for name in asked.chosen]
        self.names = names_in(self.everything)
        before = [contract.before(self) for contract in exercise.contracts]
        functions = exercise.without if watch else ()
        own = exercise.own if watch else frozenset()
        with watched(functions, answer, own) as self.called, time_limit(MOST_SECONDS, answer):
            self.got = outcome(exercise.use, answer, *self.inputs)
        self.untried = self.got.error is None and untried(self.got.result)
        self.expected: Any = None
        self.wrong = self.fault = ""
        faults = [contract.after(self, was) for contract, was in zip(exercise.contracts, before, strict=True)]
        if self.untried:
            return
        for fault in faults:
            if fault:
                self.wrong, self.fault = fault
                return
        right = outcome(exercise.use, exercise.right, *self.inputs)
        if right.error is not None:
            raise right.error
        self.expected = right.result
        if self.got.error is not None:
            self.wrong = f"{type(self.got.error).__name__}: {self.got.error}"
            return
        self.wrong = exercise.compare(self.expected, self.got.result, self.names)
        for contract in exercise.contracts:
            if self.wrong:
                return
            if fault := contract.compare(self):
                self.wrong, self.fault = fault

    def is_like(self, program: Callable[..., Any]) -> bool:
        """Whether `program` does in this case what the answer did."""
        with time_limit(min(MOST_SECONDS, HINT_SECONDS), program):
            other = outcome(self.exercise.use, program, *self.inputs)
        if self.got.error is not None or other.error is not None:
            return pattern(self.got.error) == pattern(other.error)
        with suppress(Exception):  # what a wrong program gives back may be anything
            if not exactly(self.exercise.compare)(other.result, self.got.result, self.names):
                return True
            if not self.fault and type(self.got.result) is not type(self.expected) is not type(other.result):
                return type(other.result) is type(self.got.result) and (
                    show(other.result, self.names) == show(self.got.result, self.names)
                    or not values(other.result, self.got.result, self.names)
                )
        return False

    def message(self, where: str, hint: str) -> str:
        """All that is said of a wrong attempt, line by line. The inputs are shown as the answer got them."""
        everything = self.case.make()
        names = names_in(everything)
        inputs = [everything[name] for name in self.case.chosen]
        shown = [show(value, names, exact=True) for value in inputs]
        call = self.exercise.form.format(*shown) or f"{self.exercise.name}({', '.join(shown)})"
        failed = "stopped with an exception" if self.got.error is not None else "is not right yet"
        lines = [f"{call} {failed} ({where})."]
        if self.case.program:
            lines.append(line("made by", self.case.program))
        operands = [x for value in inputs for x in getattr(value, "inputs", ()) if id(x) in names]
        for value in {id(value): value for value in [*inputs, *operands]}.values():
            if is_tensor(value):
                lines.append(line("where", f"{show(value, names)} = {shown_array(value)}"))
            elif isinstance(value, np.ndarray) and id(value) in names:
                lines.append(line("where", f"{names[id(value)]} = {show(value, {}, exact=True)}"))
        if self.expected is not None:
            lines.append(line("expected", show(self.expected, self.names)))
        if self.got.error is not None:
            if number_and_text := line_of(self.got.error, self.answer):
                lines.append(line("at line", "{}: {}".format(*number_and_text)))
            lines.append(line("error", self.wrong))
        else:
            if self.expected is not None:
                lines.append(line("got", show(self.got.result, self.names)))
            lines.append(line("so", self.wrong))
        return "\n".join([*lines, line("hint", hint)])


def names_in(everything: Mapping[str, Any]) -> dict[int, str]:
    """What messages call the values of a case, by id: numbers and texts are shown themselves."""
    plain = (bool, int, float, complex, str, bytes, tuple, type(None))
    return {
        id(value): name
        for name, value in everything.items()
        if name.isidentifier() and not isinstance(value, plain)
    }


def line(label: str, text: str) -> str:
    """A line of a message; the lines of a longer text stay in its column."""
    return f"  {label + ':':<10}{text}".replace("\n", "\n" + " " * 12)


def outcome(program: Callable[..., Any], *inputs: Any) -> Outcome:
    """Call a program, and keep what it did. NumPy's warnings would only hide what the check says."""
    printed = io.StringIO()
    try:
        with np.errstate(all="ignore"), redirect_stdout(printed):
            result = program(*inputs)
        return Outcome(result=result, printed=printed.getvalue())
    except (Exception, StillRunning) as error:
        return Outcome(error=error, printed=printed.getvalue())


def as_array(answer: Callable[..., Any], *inputs: Any) -> Any:
    """What an answer gives, as an array, also if it is a list or tuple of numbers or a Tensor: for `use`."""
    found = answer(*inputs)
    if isinstance(found, (list, tuple)) and found and not any(item is ... for item in found):
        return np.array([to_numpy(item) for item in found])
    return to_numpy(found) if is_tensor(found) else found


def untried(result: Any) -> bool:
    """Whether a result still has a ``...`` of the stub in it."""
    return result is ... or (isinstance(result, (list, tuple)) and any(item is ... for item in result))


class StillRunning(BaseException):
    """An answer has not come to an end."""


@contextmanager
def time_limit(seconds: float, answer: Any = None) -> Iterator[None]:
    """Within this block, raise `StillRunning` after so many seconds.

    An answer that swallows it, as a bare ``except:`` does, gets it again and again: at last between two rounds of
    its loop, where no ``try`` is.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        with clock_watched(seconds, answer):
            yield
        return
    of_answer = set(codes_of(answer))
    rings = 0

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal rings
        if frame is not None and frame.f_code is stop.__code__:  # it rings again before it is answered
            return
        rings += 1
        if rings == 2:  # there was time to tidy up
            signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
        if rings > 1:
            while frame is not None and frame.f_code not in of_answer:
                frame = frame.f_back
            if frame is None:  # others may be busy with it
                return
        raise StillRunning(f"no answer after {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


TOOL = 4  # of those that may listen to `sys.monitoring`: none that is known takes this number


@contextmanager
def clock_watched(seconds: float, answer: Any) -> Iterator[None]:
    """A time limit where no signal comes: in a browser, on Windows, in threads.

    The answer's own code looks at the clock in each round of a loop, and when it is called. Python 3.11 forgets that
    it should look once it has raised, so there an answer that swallows this runs on.
    """
    codes = within_reach(answer)[0].union(codes_of(answer))
    end = time.monotonic() + seconds

    def look(*_: Any) -> None:
        if time.monotonic() > end:
            raise StillRunning(f"no answer after {seconds:g} seconds")

    def trace(frame: FrameType, *_: Any) -> Any:
        if frame.f_code in codes:
            look()
            return trace

    if sys.version_info < (3, 12):
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            yield
        finally:
            sys.settrace(before)
        return
    monitoring = sys.monitoring
    free = monitoring.get_tool(TOOL) is None  # otherwise an answer runs that another one waits for
    kinds = (monitoring.events.JUMP, monitoring.events.PY_START)
    if free:
        monitoring.use_tool_id(TOOL, "a time limit")
        for kind in kinds:
            monitoring.register_callback(TOOL, kind, look)
        for code in codes:
            monitoring.set_local_events(TOOL, code, sum(kinds))
    try:
        yield
    finally:
        if free:
            for code in codes:
                monitoring.set_local_events(TOOL, code, 0)
            monitoring.free_tool_id(TOOL)


LIBRARIES = {
    "needle", "numpy", "torch", "scipy", "functools", "_functools", "itertools", "math", "statistics", "jax", "autograd",
}  # fmt: skip


def plain_name(name: str) -> str:
    """A name without what differs from library to library: ``log_sum_exp``, ``logsumexp``, ``LogSumExp``."""
    return name.replace("_", "").lower()


@contextmanager
def watched(functions: Iterable[Callable], answer: Any, own: frozenset[str]) -> Iterator[list[Any]]:
    """Within this block, note which of these functions are called, by whatever name and from wherever.

    Also what the answer's own lines call of a library, or name there, if its name is in `own` (see `plain_name`).
    """
    codes = {getattr(function, "__code__", None): function for function in functions}
    called: list[Any] = []
    if not codes and not own:
        yield called
        return
    of_answer, named = within_reach(answer)

    def hear(name: str, library: str) -> None:
        if library and plain_name(name) in own:
            called.append(Library(f"{library}'s `{name}`"))

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code in codes:
            called.append(codes[frame.f_code])
        elif event == "c_call" and frame.f_code in of_answer:
            hear(argument.__name__, library_of(argument))
        elif event == "call" and frame.f_back and frame.f_back.f_code in of_answer:
            hear(frame.f_code.co_name, library(frame.f_globals.get("__name__")))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(before if callable(before) else None)
    for value in named:  # no profiler hears a ufunc, or what C code such as `map` calls
        hear(getattr(value, "__name__", ""), library_of(value))


class Library(str):
    """A function of a library that an answer called: whose, and its name."""


def library(module: Any) -> str:
    """The library that a module of this name is part of; "" if it is of none."""
    root = str(module).partition(".")[0]
    return root.strip("_") if root in LIBRARIES else ""


def library_of(value: Any) -> str:
    """The library that a function or class comes from; "" if it comes from none."""
    owner = getattr(value, "__self__", getattr(value, "__objclass__", None))
    places = (value, owner, type(owner), type(value))
    return next(filter(None, (library(getattr(x, "__module__", "")) for x in places)), "")


def within_reach(answer: Any) -> tuple[set[CodeType], list[Any]]:
    """All code of the reader's that an answer may run, and what this code names of a library.

    So it follows the reader's own helpers and classes, by their names, as defaults and in closures.
    """
    codes: set[CodeType] = set()
    named: list[Any] = []
    seen: dict[int, Any] = {}
    module, waiting = getattr(unwrapped(answer), "__module__", None), [answer]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if (inner := unwrapped(value)) is not value:
            waiting += [inner, *getattr(value, "args", ())]
        elif library_of(value):
            named.append(value)
        elif isinstance(value, type) and value.__module__ == module:
            waiting += [*vars(value).values(), *value.__bases__]
        elif isinstance(value, FunctionType) and value.__module__ == module:
            of_value = list(codes_of(value))
            codes.update(of_value)
            waiting += mentioned(of_value, value.__globals__)
            waiting += [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
            for cell in value.__closure__ or ():
                with suppress(ValueError):  # it is still empty
                    waiting.append(cell.cell_contents)
    return codes, named


def mentioned(codes: Iterable[CodeType], known: Mapping[str, Any]) -> Iterator[Any]:
    """What code names: global values, and what it takes from modules and classes, also by `getattr`.

    What it imports of a library is imported here, so this takes nothing of an answer's time.
    """
    local: dict[str, Any] = {}
    value: Any = None
    for step in (step for code in codes for step in dis.get_instructions(code)):
        kind, _, where = step.opname.partition("_")
        name = step.argval
        if kind == "STORE":
            local[name] = value
        elif step.opname == "IMPORT_NAME":
            with suppress(Exception):
                value = import_module(name) if library(name) else None
        elif where in ("GLOBAL", "NAME"):
            value = known.get(name)
        elif kind == "LOAD" and where.startswith(("FAST", "DEREF")):
            value = local.get(name)
        elif where in ("ATTR", "METHOD", "FROM") or (where == "CONST" and isinstance(name, str)):
            within = value if isinstance(value, (ModuleType, type)) else None
            itself = getattr(within, "__name__", "").endswith(f".{name}")  # after `import scipy.special`
            value = getattr(within, name, within if itself else None)
        else:
            continue
        yield value


def codes_of(answer: Any) -> Iterator[CodeType]:
    """The code of a function and of those in it, or of all methods of a class."""
    parts = list(vars(answer).values()) if isinstance(answer, type) else [answer]
    waiting = [getattr(f, "__code__", None) for x in parts for f in (x, unwrapped(x))]
    while waiting:
        code = waiting.pop()
        if isinstance(code, CodeType):
            yield code
            waiting += code.co_consts


def unwrapped(value: Any) -> Any:
    """The function in what was made of it: by `partial`, `lru_cache`, `property`, Numba, a decorator."""
    names = ("__wrapped__", "func", "py_func", "pyfunc", "__func__", "fget")
    inner = next((x for name in names if callable(x := getattr(value, name, None))), None)
    return value if inner is None else unwrapped(inner)


def names_used(codes: Iterable[CodeType]) -> set[str]:
    """All global names and attributes that code mentions, as plain names."""
    return {plain_name(name) for code in codes for name in code.co_names}


def pattern(error: BaseException | None) -> tuple[type, str]:
    """What two exceptions of the same mistake have in common: all but the names and numbers in them.

    Types that Python itself brings stay: it matters whether a list was called, or None taken apart.
    """
    if isinstance(error, RecursionError):
        return type(error), ""  # Python says where it noticed, which is chance
    kept = {"NoneType", "list", "tuple", "dict", "set", "str", "function"}
    return type(error), re.sub(
        r"'([^']*)'|\d+", lambda found: found[1] if found[1] in kept else "", str(error)
    )


def line_of(error: BaseException, answer: Any) -> tuple[int, str] | None:
    """The last line of the reader's own module that an error came through: its number and its text."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_globals.get("__name__") == getattr(answer, "__module__", None):
            text = linecache.getline(frame.f_code.co_filename, trace.tb_lineno).strip()
            found = (trace.tb_lineno, text) if text else None
        trace = trace.tb_next
    return found
