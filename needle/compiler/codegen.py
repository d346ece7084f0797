"""Codegen: the schedule as the source of a Python function.

Each loop of the schedule becomes a ``for`` over ``range``, and each nest becomes one statement. Arrays are
flat, as storage is: element (j, k) of a matrix with 8 columns is ``W[8 * j + k]``. The nests of
``relu(x @ W + b)``, as `schedule.py` has fused them, become

    def step(x, W, b, result):
        matmul1 = local(8)
        # MatMul, Add, ReLU
        for i in range(10):
            for j in range(8):
                matmul1[j] = float32(0)
            for j in range(2):
                for k in range(8):
                    matmul1[k] += x[2 * i + j] * W[8 * j + k]
            for j in range(8):
                add1 = matmul1[j] + b[j]
                relu1 = relu(add1)
                result[8 * i + j] = relu1
        return 0

``local(8)`` makes an array that exists during the call; larger ones are kept from call to call, and are
arguments. Loops that do the same to different arrays are written once, as a function (`_with_functions`).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ..backend_ndarray.scalar_functions import SCALAR_FUNCTIONS, written
from .lower import Access, Buffer, Nest
from .names import TYPES, Names, by_module, letter_of, name_for, wrapped
from .schedule import Loop, LoopSchedule, nests_in
from .stand_ins import Number


class Line(NamedTuple):
    """A line of source, and where it comes from, which drawings show."""

    text: str
    nests: tuple[Nest, ...] = ()  # the nest whose statement it is; in a function, one for each call
    block: int | None = None  # the number of the block that it belongs to


class Writer:
    """Writes the body of a function. A *block* of it is an outermost loop or a single statement.

    Parameters
    ----------
    plan : LoopSchedule
    numbers : dict of str to (str, str)
        For the formula of each Number: its name, and its type.
    from_first : bool
        Whether a block counts places in an array from the first one that it uses; see `_starts`.
    """

    def __init__(self, plan: LoopSchedule, numbers: dict[str, tuple[str, str]], from_first: bool = False):
        self.plan = plan
        self.numbers = numbers
        self.from_first = from_first
        self.lines: list[Line] = []
        self.routines: set[str] = set()  # of BLAS
        self.checks: list[Nest] = []
        self.letters: dict[Loop, str] = {}
        self.without_line = 0  # how many of the loops around have no line, as threads take their iterations
        self.commented = 0  # inside of how many loops comments are written
        self._about = ""  # the comment written last
        self._start: dict[Buffer, int] = {}

    def add(self, *texts: str, nest: Nest | None = None) -> None:
        """Add lines; `nest` is whose statement they are."""
        self.lines += [Line(text, () if nest is None else (nest,)) for text in texts]

    def write_blocks(self, parts: Iterable[Any], shared: Loop | None = None) -> list[list[Line]]:
        """Write loops and statements, each as a block. The loop `shared` runs from `start` to `stop`."""
        blocks = []
        for part in parts:
            nests = list(nests_in([part]))
            self._start = _starts(nests) if self.from_first else {}
            self.lines = []
            self.write([part], shared=shared)
            blocks.append(self.lines)
        return blocks

    def write(self, parts: Iterable[Any], depth: int = 0, shared: Loop | None = None) -> None:
        """Write loops and statements; `depth` loops are around them."""
        indent = "    " * (depth + 1 - self.without_line)
        for part in parts:
            if depth == self.commented:
                self.comment([part], indent)
            if isinstance(part, Loop):
                self.letters[part] = letter = letter_of(depth)
                bounds = "start, stop" if part is shared else part.length
                self.add(f"{indent}for {letter} in range({bounds}):")
                self.write(part.body, depth + 1)
            else:
                self.add(*wrapped(indent, self.statement(part).split(", "), ", ", f"{indent}    "), nest=part)

    def comment(self, parts: Iterable[Any], indent: str) -> None:
        """Write a comment that names the operators of some parts, unless the last one named the same."""
        about = by_module(nests_in(parts))
        if about and about != self._about:
            self.add(*wrapped(f"{indent}# ", about.split(" "), " ", f"{indent}# "))
            self._about = about

    def statement(self, nest: Nest) -> str:
        """The line of a nest: an assignment, a check or a call of BLAS."""
        if nest.product:
            return self.product(nest)
        if nest.is_check:
            return self.check(nest)
        t = nest.out.buffer.dtype.name
        target = self.operand(nest.out, nest)
        value = self.value(nest, [self.operand(x, nest) for x in nest.reads], t)
        if nest.fold is None:
            return f"{target} = {value}"
        if nest.fold != "add":
            return f"{target} = {typed(nest.fold, t)}({target}, {value})"
        if self.is_total(nest):
            return f"{target} = plus({target}, {value})"
        return f"{target} += {value}"

    def check(self, nest: Nest) -> str:
        """If a check fails, the function returns the number of this check, counted from 1."""
        self.checks.append(nest)
        x = self.operand(nest.reads[0], nest)
        if nest.function == "check_not_zero":
            return f"if {x} == 0: return {len(self.checks)}"
        _, low, stop = nest.reads
        whole = "" if nest.reads[0].buffer.dtype.kind != "f" else f" and {x} == int64({x})"
        return f"if not ({low} <= {x} < {stop}{whole}): return {len(self.checks)}"

    def is_total(self, nest: Nest) -> bool:
        """Whether the innermost loop adds to one total. `plus` lets the compiler do so in any order."""
        loops = self.plan.loops[nest]
        inner = max((loop for loop in loops if loop), key=lambda loop: self.letters[loop], default=None)
        return inner is not None and nest.out.strides[loops.index(inner)] == 0

    def value(self, nest: Nest, operands: list[str], t: str) -> str:
        """What a statement computes, in the data type `t`."""
        name = nest.function
        if name == "copy":
            x, (text,) = nest.reads[0], operands
            if not isinstance(x, Access) or x.buffer.dtype == nest.out.buffer.dtype:
                return text
            return f"{t}({text} != 0)" if t == "bool" else f"{t}({text})"
        row = SCALAR_FUNCTIONS[name]
        if row.is_comparison:
            return f"{t}({written(row.text, *operands)})"
        if name in ("add", "subtract", "multiply", "divide", "negate"):
            return written(row.text, *operands)
        return f"{typed(name, t)}({', '.join(operands)})"

    def operand(self, x: Any, nest: Nest) -> str:
        """What a statement reads or writes: a number, a variable or an element of an array."""
        if isinstance(x, Number):
            name, kind = self.numbers[x.text]
            return name if kind == nest.out.buffer.dtype.name else f"{nest.out.buffer.dtype}({name})"
        if not isinstance(x, Access):
            return literal(x, nest.out.buffer.dtype)
        if x.buffer in self.plan.variables:
            return x.buffer.name
        if x.buffer.is_iota:
            return self.place(x, nest)
        return f"{x.buffer.name}[{self.place(x, nest)}]"

    def place(self, x: Access, nest: Nest) -> str:
        """The index of an access: ``8 * i + j``."""
        steps = zip(self.plan.loops[nest], x.strides, strict=True)
        terms = [(step, self.letters[loop]) for loop, step in steps if step and loop and self.letters[loop]]
        if x.via is not None:
            terms.append((x.step, self.operand(x.via, nest)))
        terms.sort(key=lambda term: -term[0])
        text = " + ".join(letter if step == 1 else f"{step} * {letter}" for step, letter in terms)
        offset = x.offset - self._start.get(x.buffer, 0)
        if offset:
            text = f"{text} + {offset}" if text else str(offset)
        return text or "0"

    def product(self, nest: Nest) -> str:
        """A call of BLAS. A matrix is turned if neighbours in a column lie side by side, and not in a row."""
        m, n, p = nest.shape[-3:]
        a, b = nest.reads
        routine = "sgemm" if nest.out.buffer.dtype == np.float32 else "dgemm"
        self.routines.add(routine)
        operands = [routine]
        for x, (down, right), rows, columns in ((a, a.strides[-3:-1], m, n), (b, b.strides[-2:], n, p)):
            turned = right != 1 and columns > 1
            width = max(right, rows) if turned else max(down, columns)  # a single row has any
            operands.append(f"({x.buffer.name}, {self.place(x, nest)}, {width}, {turned})")
        operands += [f"({nest.out.buffer.name}, {self.place(nest.out, nest)})", f"({m}, {n}, {p})"]
        if nest.scales is None:
            return f"matmul({', '.join(operands)})"
        factors = [self.operand(x, nest) for x in nest.scales] or [literal(1, nest.out.buffer.dtype)]
        scale = "-" * (nest.fold == "subtract") + " * ".join(factors)
        return f"add_matmul({scale}, {', '.join(operands)})"


def _starts(nests: Iterable[Nest]) -> dict[Buffer, int]:
    """The first place that statements use in each array; 0 if a loop goes through the array backwards."""
    found: dict[Buffer, int] = {}
    for nest in nests:
        for x in nest.accesses:
            if not x.buffer.is_iota:
                first = x.offset if min(x.strides, default=0) >= 0 and x.step >= 0 else 0
                found[x.buffer] = min(first, found.get(x.buffer, first))
    return found


def typed(name: str, dtype: str) -> str:
    """What the source calls something that there is for each data type, such as a row of the table."""
    return name if dtype == "float32" else f"{name}_{dtype}"


def rows_in(source: str) -> dict[str, tuple[str, str]]:
    """The rows of the table that a source calls: by what it calls them, the row and a data type."""
    known = {typed(row, t): (row, t) for row in SCALAR_FUNCTIONS for t in (*TYPES, "bool")}
    return {word: known[word] for word in _WORD.findall(source) if word in known}


def literal(x: float, dtype: np.dtype) -> str:
    """A number as source, with its data type: 0.5 alone is in double precision."""
    if dtype.kind == "b":
        return str(bool(x))
    if dtype.kind != "f":
        return f"{dtype.name}({int(x)})"
    short = f"{float(x):g}" if x or math.copysign(1, x) > 0 else "-0.0"
    return f"{dtype.name}({short if float(short) == x or x != x else repr(float(x))})"


@dataclass(frozen=True, eq=False)
class Part:
    """The source of a function that computes a segment of the schedule.

    Attributes
    ----------
    length : int or None
        Of a loop whose iterations threads share: how many there are. The function then takes two more
        arguments, ahead of the others: the iteration to begin with, and the one to stop before.
    own : dict of str to (dtype, int)
        Storage that each thread needs for itself: data type and size.
    form : str
        The source with all names of arrays replaced by their types. Two parts of the same form do the same to
        different arrays, so only the first is written and compiled. It is "" if there can be no other.
    original : str
        The name of that first part, if this is a later one.
    """

    name: str
    lines: list[Line]  # they begin with the functions that this one calls; see `_with_functions`
    blocks: list[list[Nest]]  # the statements of each block, which is a loop or a single statement
    arguments: dict[str, str]  # names and types: "float32*" is an array
    checks: list[Nest]  # the function returns 0, or the number of the first that failed, counted from 1
    length: int | None = None
    own: dict[str, tuple[np.dtype, int]] = field(default_factory=dict)
    form: str = ""
    original: str = ""

    def like(self, original: str) -> Part:
        """This part, as a call of an earlier one."""
        words = f"{self.name} is {original} again, for {', '.join(self.arguments)}"
        nests, last = tuple(chain(*self.blocks)), len(self.blocks) - 1
        lines = [Line(x, nests, last) for x in wrapped("# ", words.split(" "), " ", "#     ")]
        return replace(self, lines=lines, original=original)

    @property
    def source(self) -> str:
        """The lines as one text."""
        return joined(self.lines)

    @property
    def products(self) -> list[int]:
        """The multiplications of each matrix product that is left to BLAS."""
        return [math.prod(nest.shape[-3:]) for nest in chain(*self.blocks) if nest.product]


def joined(lines: Iterable[Line]) -> str:
    """Lines as one text."""
    return "".join([f"{line.text}\n" for line in lines])


def used_by(
    nests: Iterable[Nest], formulas: dict[str, str]
) -> tuple[list[Buffer], dict[str, tuple[str, str]]]:
    """The buffers that statements use; and for the formula of each Number, its name and type as an argument.

    The type is that of the statements that use it, or int64 if they compute with whole numbers. If they have
    several types, it is int64 if one of these is int64, else float64; each statement converts it.
    """
    buffers: dict[Buffer, None] = {}
    kinds: dict[str, str] = {}
    for nest in nests:
        buffers |= dict.fromkeys(nest.buffers)
        dtype = nest.out.buffer.dtype
        kind = dtype.name if dtype.kind == "f" else "int64"
        for text in [x.text for x in nest.numbers if isinstance(x, Number)]:
            both = {kind, kinds.get(text, kind)}
            kinds[text] = kind if len(both) == 1 else "int64" if "int64" in both else "float64"
    return list(buffers), {text: (formulas.get(text, text), kind) for text, kind in kinds.items()}


def write_part(
    name: str,
    segment: list[Any] | Loop,
    plan: LoopSchedule,
    kept: Container[Buffer],
    formulas: dict[str, str],
    names: Names,
) -> Part:
    """Write a function. Its arguments have the order in which the source uses them: see `Part.form`.

    Parameters
    ----------
    name : str
    segment : list of Loop or Nest, or a Loop that threads can share
    plan : LoopSchedule
    kept : container of Buffer
        What the program keeps from call to call. If each iteration of a shared loop writes it anew, each
        thread has it for itself.
    formulas : dict of str to str
        The names of Numbers by their formulas.
    names : Names
        All names of the program.
    """
    shared = segment if isinstance(segment, Loop) else None
    parts = segment if isinstance(segment, list) else [segment]
    used, numbers = used_by(nests_in([segment]), formulas)
    writer = Writer(plan, numbers)
    blocks = writer.write_blocks(parts, shared)
    kinds = {x.name: "variable" if x in plan.variables else f"{x.dtype}*" for x in used}
    kinds |= dict(numbers.values())
    kinds |= dict.fromkeys(writer.routines, "int64")  # addresses

    made: dict[str, str] = {}  # the arrays that are no arguments, and what makes them
    own: dict[str, tuple[np.dtype, int]] = {}
    for x in used:
        if x in plan.local:
            made[x.name] = f"{typed('local', x.dtype.name)}({x.size})"
        elif x in kept and shared is not None and is_of_one_iteration(x, shared, plan):
            own[x.name] = x.dtype, x.size
    first = [f"    {name} = {text}" for name, text in made.items()]
    first += [f"    # {number} is {text}" for text, (number, _) in numbers.items() if text != number]
    form, order = _form([*map(Line, first), *chain(*blocks)], kinds)
    arguments = {name: kinds[name] for name in order if name not in made | own}
    bounds = ["start", "stop"] if shared is not None else []
    functions, body = _with_functions(writer, parts, blocks, kinds, names)
    head = map(Line, [*head_of(name, [*bounds, *own, *arguments]), *first])
    return Part(
        name,
        lines=[*functions, *head, *body, Line("    return 0")],
        blocks=[list(nests_in([part])) for part in parts],
        arguments=arguments,
        checks=writer.checks,
        length=None if shared is None else shared.length,
        own=own,
        form="" if writer.checks else f"{bounds}{form}",
    )


_SHORT = 12  # lines that a function must save
_WORD = re.compile(r"[^\W\d]\w*")


def _with_functions(
    writer: Writer, parts: list[Any], blocks: list[list[Line]], kinds: dict[str, str], names: Names
) -> tuple[list[Line], list[Line]]:
    """Functions for the blocks that are the same but for their arrays, and the lines of all blocks.

    A network of many layers has many such blocks. So has one of many steps in time, where each block uses
    another part of the same arrays. As a function, they are read once and compiled once. It is given just the
    part of an array that the block uses, and counts places from there: a second writer writes it so.
    """
    twins = Writer(writer.plan, writer.numbers, from_first=True).write_blocks(parts)
    words = [set(_WORD.findall(joined(lines))) for lines in blocks]
    users = Counter(word for own in words for word in own)
    forms: list[tuple[str, list[str]]] = []
    alike: dict[str, list[int]] = defaultdict(list)  # for each form the numbers of its blocks
    for i, (twin, own) in enumerate(zip(twins, words, strict=True)):
        # A block that may leave the step is no function, nor one that shares a variable with other blocks.
        shares = any(users[word] > 1 and kinds.get(word) == "variable" for word in own)
        forms.append(("", []) if shares or "return" in own else _form(twin, kinds))
        alike[forms[i][0]].append(i)
    functions: list[Line] = []
    for form, numbers in alike.items():
        if (len(numbers) - 1) * form.count("\n") < _SHORT:
            continue
        first, nests = numbers[0], [list(nests_in([parts[i]])) for i in numbers]
        name = names.unique(name_for(nests[0]))
        in_calls = dict(zip(nests[0], zip(*nests, strict=True), strict=True))  # the statement of each call
        head = [*head_of(name, forms[first][1]), f"    # called {len(numbers)} times, for different arrays"]
        body = [x._replace(block=first, nests=in_calls[x.nests[0]] if x.nests else ()) for x in twins[first]]
        functions += [*map(Line, head), *body, Line(""), Line("")]
        for i, own_nests in zip(numbers, nests, strict=True):
            starts = {x.name: (start, x.size - start) for x, start in _starts(own_nests).items() if start}
            given = [f"part({x}, {starts[x][0]}, {starts[x][1]})" if x in starts else x for x in forms[i][1]]
            call = wrapped(f"    {name}(", [*given[:-1], f"{given[-1]})"], ", ", "        ")
            blocks[i] = list(map(Line, call))
    return functions, [line._replace(block=i) for i, lines in enumerate(blocks) for line in lines]


def head_of(name: str, arguments: list[str]) -> list[str]:
    """The lines with which a function begins."""
    *others, last = arguments or [""]
    return wrapped(f"def {name}(", [*others, f"{last}):"], ", ", "    ")


def _form(lines: list[Line], kinds: dict[str, str]) -> tuple[str, list[str]]:
    """Lines with types in the place of names, so that equal ones do the same; and the names of the arrays."""
    numbers: dict[str, int] = {}

    def anonymous(word: re.Match) -> str:
        name = word[0]
        return f"{kinds[name]}#{numbers.setdefault(name, len(numbers))}" if name in kinds else name

    text = "\n".join(_WORD.sub(anonymous, x.text) for x in lines if not x.text.lstrip().startswith("#"))
    text = re.sub(r",\n\s+", ", ", text)  # where a line is broken depends on the lengths of names
    return text, [name for name in numbers if kinds[name] != "variable"]


def is_of_one_iteration(buffer: Buffer, loop: Loop, plan: LoopSchedule) -> bool:
    """Whether each iteration of a loop writes an array anew and reads only what it has written itself."""
    return any(nest.out.buffer is buffer for nest in nests_in([loop])) and not any(
        x.strides[plan.loops[nest].index(loop)]
        for nest in nests_in([loop])
        for x in nest.accesses
        if x.buffer is buffer
    )
