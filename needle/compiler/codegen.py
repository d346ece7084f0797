"""Codegen: the schedule as the source of a Python function, which Numba compiles.

Each loop of the schedule is a ``for`` over ``range``, each nest one assignment. Arrays are flat, as storage
is: element (k, j) of a matrix with 8 columns is ``W[8 * k + j]``. The nests of ``relu(x @ W + b)``, as
`schedule.py` has joined them, become

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

``local(8)`` is an array of the function's own; ``part(work, 0, 6400)`` is a part of an array that lies in
memory from call to call. A place that is needed twice has a name, ``at_ij = 64 * i + j``. Loops that are the
same but for their arrays are written once, as a function (`_with_functions`).

Lengths are written out as numbers, because the compiler makes better machine code of a loop when it knows how
long it is. To write out each iteration of a long loop would take it minutes, so it is not to know how long
that is, ``opaque(100)``; only that the variable is never negative, ``i = natural(i)``, since an index below 0
counts from the end. `runtime.py` defines these.
"""

from __future__ import annotations

import keyword
import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..backend_ndarray.scalar_functions import SCALAR_FUNCTIONS, written
from ..stand_ins import Number
from .lower import Access, Buffer, Maker, Nest
from .schedule import Loop, LoopSchedule, nests_in

_UNROLLED = 4096  # iterations up to which all lengths of loops are for the compiler to know
PAGE = 100  # characters in a line of the source, at most
_LETTERS = "ijklmnopqrstuvw"
_DEEPEST = 64  # loops


def letter_of(depth: int) -> str:
    """The variable of a loop inside of so many others."""
    return _LETTERS[depth] if depth < len(_LETTERS) else f"i{depth}"


#: Data types, as the source names them.
TYPES = ("float32", "float64", "int64", "int32", "uint8", "bool_")

#: Names in the source that mean something else than a buffer.
RESERVED = {*map(letter_of, range(_DEEPEST)), *keyword.kwlist, *TYPES, "range", "abs", "inf", "nan"}
RESERVED |= {"plus", "matmul", "add_matmul", "part", "local", "opaque", "natural", "sgemm", "dgemm"}
RESERVED |= {"step", "scan", "s", "steps", "status", "start", "stop", "state", "work"}
RESERVED |= {"cuda", "thread", "lane", "row", "item", "mark", "shares"}  # in kernels for a GPU
RESERVED |= {f"share{number}" for number in range(_DEEPEST)}
RESERVED |= {
    f"{name}_{t}" for name in (*SCALAR_FUNCTIONS, "local", "state", "work", "own") for t in (*TYPES, "bool")
}


#: A place in an array that is a sum of multiples of loop variables, such as ``8 * i + j``.
_PLACE = re.compile(r"\[((?:\d+ \* )?[a-z](?: \+ (?:\d+ \* )?[a-z]\b)*(?: \+ \d+)?)\]")


class Writer:
    """Writes the body of a function, line by line.

    Parameters
    ----------
    plan : LoopSchedule
    numbers : dict of str to (str, bool)
        For the formula of a Number its name, and whether that has the data type of all that uses it.
    from_first : bool
        Whether places are counted from the first one that a block uses of an array; see `starts`.

    Attributes
    ----------
    blocks : list of Block
    starts : list of dict of Buffer to int
        For each block, where in each array it begins to count.
    """

    def __init__(self, plan: LoopSchedule, numbers: dict[str, tuple[str, bool]], from_first: bool = False):
        self.plan = plan
        self.numbers = numbers
        self.from_first = from_first
        self.lines: list[str] = []
        self.letters: dict[Loop, str] = {}
        self.functions: set[tuple[str, str]] = set()
        self.checks: list[Nest] = []
        self.blocks: list[Block] = []
        self.starts: list[dict[Buffer, int]] = []
        self.routines: set[str] = set()  # of BLAS
        self.places: dict[Nest, tuple[int, int]] = {}  # the lines of each statement
        self.without_line = 0  # loops around what is written that have no line of their own
        self.commented = 0  # how many loops are around the parts that get a comment
        self._about = ""  # the comment written last
        self._is_large = False
        self._start: dict[Buffer, int] = {}

    def write(self, parts: Iterable[Any], depth: int = 0, shared: Loop | None = None) -> None:
        """Write loops and nests; of the loop `shared`, the iterations from `start` to `stop`."""
        indent = "    " * (depth + 1 - self.without_line)
        for part in parts:
            first = len(self.lines)
            if not depth:
                self._is_large = max(math.prod(nest.shape) for nest in nests_in([part])) > _UNROLLED
                self._start = _starts(nests_in([part])) if self.from_first else {}
                self.starts.append(self._start)
            about = by_module(nests_in([part])) if depth == self.commented else ""
            if about and about != self._about:
                self.lines += wrapped(f"{indent}# ", about.split(" "), " ", f"{indent}# ")
                self._about = about
            if isinstance(part, Loop):
                self.letters[part] = letter = letter_of(depth)
                self.lines.append(f"{indent}for {letter} in range({self.bounds(part, shared)}):")
                if not self.bounds(part, shared).isdecimal():
                    self.lines.append(f"{indent}    {letter} = natural({letter})")
                body = len(self.lines)
                self.write(part.body, depth + 1)
                self.name_places(part, body, f"{indent}    ")
            else:
                begin = len(self.lines)
                self.lines += wrapped(indent, self.statement(part).split(", "), ", ", f"{indent}    ")
                self.places[part] = begin, len(self.lines)
            if not depth:
                lines = {nest: self.places[nest] for nest in nests_in([part])}
                self.blocks.append(Block(first, len(self.lines), lines))

    def name_places(self, loop: Loop, body: int, indent: str) -> None:
        """Compute once, as ``at_ij``, a place that the body of a loop uses several times.

        The body is all lines from number `body` on.
        """
        letter = self.letters[loop]
        uses = Counter(place for line in self.lines[body:] for place in _PLACE.findall(line))
        first: list[str] = []
        for place, times in uses.items():
            steps = re.findall(r"(?:(\d+) \* )?([a-z])", place)
            letters = [x for _, x in sorted(steps, key=lambda step: -int(step[0] or 1))]
            if times > 1 and len(place) > 1 and letter == max(letters):
                name = f"at_{''.join(letters)}"
                name += "" if all(not x.startswith(f"{indent}{name} ") for x in first) else f"_{len(first)}"
                first.append(f"{indent}{name} = {place}")
                self.lines[body:] = [x.replace(f"[{place}]", f"[{name}]") for x in self.lines[body:]]
        self.lines[body:body] = first
        for nest in loop.nests():
            begin, end = self.places[nest]
            self.places[nest] = begin + len(first), end + len(first)

    def bounds(self, loop: Loop, shared: Loop | None) -> str:
        """What a loop runs over.

        A compiler that knows how long a loop is writes its iterations out, one after the other. For the few
        loops of a small network that is fast; for many it takes minutes.
        """
        if loop is shared:
            return "start, stop"
        holds_loops = any(isinstance(part, Loop) for part in loop.body)
        return f"opaque({loop.length})" if self._is_large and holds_loops else str(loop.length)

    def statement(self, nest: Nest) -> str:
        if nest.product:
            return self.product(nest)
        t = nest.out.buffer.dtype.name
        if nest.is_check:
            return self.check(nest)
        target = self.operand(nest.out, nest)
        operands = [self.operand(x, nest) for x in nest.reads]
        value = self.value(nest, operands, t)
        if nest.fold is None:
            return f"{target} = {value}"
        if nest.fold == "add":
            if not self.is_total(nest):
                return f"{target} += {value}"
            return f"{target} = {self.call('plus')}({target}, {value})"
        return f"{target} = {self.call(nest.fold, t)}({target}, {value})"

    def check(self, nest: Nest) -> str:
        """Leave with the number of the check."""
        self.checks.append(nest)
        x = self.operand(nest.reads[0], nest)
        if nest.function == "check_not_zero":
            return f"if {x} == 0: return {len(self.checks)}"
        _, low, stop = nest.reads
        whole = "" if nest.reads[0].buffer.dtype.kind != "f" else f" and {x} == int64({x})"
        return f"if not ({low} <= {x} < {stop}{whole}): return {len(self.checks)}"

    def is_total(self, nest: Nest) -> bool:
        """Whether the innermost loop adds up to one number. The compiler may then add in several lanes."""
        loops = self.plan.loops[nest]
        inner = max((loop for loop in loops if loop), key=lambda loop: self.letters[loop], default=None)
        return inner is not None and nest.out.strides[loops.index(inner)] == 0

    def value(self, nest: Nest, operands: list[str], t: str) -> str:
        name = nest.function
        if name == "copy":
            x = nest.reads[0]
            same = isinstance(x, Access) and x.buffer.dtype == nest.out.buffer.dtype
            return operands[0] if same or not isinstance(x, Access) else cast(operands[0], t)
        row = SCALAR_FUNCTIONS[name]
        if row.is_comparison:
            return f"{t}({written(row.text, *operands)})"
        if name in ("add", "subtract", "multiply", "divide", "negate"):
            return written(row.text, *operands)
        return f"{self.call(name, t)}({', '.join(operands)})"

    def call(self, name: str, dtype: str = "") -> str:
        """The name of a function that the source calls; see `runtime.function`."""
        self.functions.add((name, dtype))
        return function_name(name, dtype)

    def operand(self, x: Any, nest: Nest) -> str:
        if isinstance(x, Number):
            name, has_type = self.numbers[x.text]
            return name if has_type else f"{nest.out.buffer.dtype}({name})"
        if not isinstance(x, Access):
            return literal(x, nest.out.buffer.dtype)
        if x.buffer in self.plan.variables:
            return x.buffer.name
        if x.buffer.counts:
            return self.place(x, nest)
        return f"{x.buffer.name}[{self.place(x, nest)}]"

    def place(self, x: Access, nest: Nest) -> str:
        terms = []
        for loop, step in zip(self.plan.loops[nest], x.strides, strict=True):
            if step and loop is not None and self.letters[loop]:
                terms.append((step, self.letters[loop]))
        if x.via is not None:
            terms.append((x.step, self.operand(x.via, nest)))
        terms.sort(key=lambda term: -term[0])
        text = " + ".join(letter if step == 1 else f"{step} * {letter}" for step, letter in terms)
        offset = x.offset - self._start.get(x.buffer, 0)
        if offset:
            text = f"{text} + {offset}" if text else str(offset)
        return text or "0"

    def product(self, nest: Nest) -> str:
        """A call of BLAS. A matrix is turned if its columns, and not its rows, lie side by side."""
        m, n, p = nest.shape[-3:]
        a, b = nest.reads
        routine = "sgemm" if nest.out.buffer.dtype == np.float32 else "dgemm"
        self.routines.add(routine)
        operands = [routine]
        for x, (down, right), rows, columns in ((a, a.strides[-3:-1], m, n), (b, b.strides[-2:], n, p)):
            turned = right != 1 and columns > 1
            width = max(right, rows) if turned else max(down, columns)  # a single row has any
            operands.append(f"{x.buffer.name}, {self.place(x, nest)}, {width}, {turned}")
        operands.append(f"{nest.out.buffer.name}, {self.place(nest.out, nest)}, {m}, {n}, {p}")
        if nest.scales is None:
            return f"{self.call('matmul')}({', '.join(operands)})"
        factors = [self.operand(numbers[0], nest) for _, *numbers in nest.scales if numbers]
        minus = "-" * (sum(function == "negate" for function, *_ in nest.scales) % 2)
        scale = minus + (" * ".join(factors) or literal(1, nest.out.buffer.dtype))
        return f"{self.call('add_matmul')}({scale}, {', '.join(operands)})"


def _starts(nests: Iterable[Nest]) -> dict[Buffer, int]:
    """The first place of each array that statements use, if their loops only go up from it."""
    found: dict[Buffer, int] = {}
    for nest in nests:
        for x in nest.accesses:
            if not x.buffer.counts:
                first = x.offset if min(x.strides, default=0) >= 0 and x.step >= 0 else 0
                found[x.buffer] = min(first, found.get(x.buffer, first))
    return found


def function_name(name: str, dtype: str) -> str:
    """What the source calls a function of the runtime; most are for float32."""
    return name if dtype in ("", "float32") else f"{name}_{dtype}"


def makers_of(nests: Iterable[Any]) -> list[Maker]:
    """The operators that statements belong to, each once."""
    return list({id(nest.maker): nest.maker for nest in nests if nest.maker is not None}.values())


def _main(nests: Iterable[Nest]) -> list[Nest]:
    """Statements without those that only set initial values, if there are others."""
    found = list(nests)
    return [nest for nest in found if nest.sources] or found


def by_module(nests: Iterable[Nest]) -> str:
    """The operators of some statements: "Linear (MatMul, Add), ReLU (ReLU), Mul"."""
    found: dict[str, dict[str, None]] = {}
    for maker in makers_of(_main(nests)):
        module = maker.scope.name if maker.scope is not None else ""
        found.setdefault(module, {})[words_of(maker.op)] = None
    inside = [f"{module} ({', '.join(names)})" for module, names in found.items() if module]
    return ", ".join([*inside, *found.get("", ())])


def words_of(op: Any) -> str:
    """An operator's name without what only tells its kinds apart: "Add" for EWiseAdd and AddScalar."""
    return type(op).__name__.removeprefix("EWise").removesuffix("Scalar")


def wrapped(head: str, words: list[str], between: str, indent: str) -> list[str]:
    """Words in lines that are no longer than the page; `head` begins the first, `indent` the others."""
    lines, line = [], head + words[0]
    for word in words[1:]:
        if len(line) + len(between) + len(word) >= PAGE:
            lines.append(line + between.rstrip())
            line = indent + word
        else:
            line += between + word
    return [*lines, line]


def cast(text: str, dtype: str) -> str:
    """The expression `text`, converted to a data type."""
    return f"{dtype}({text} != 0)" if dtype == "bool" else f"{dtype}({text})"


def literal(x: float, dtype: np.dtype) -> str:
    """A number as source. Numba takes 0.5 for double precision, so its data type is written out."""
    if dtype.kind == "b":
        return str(bool(x))
    if dtype.kind != "f":
        return f"{dtype.name}({int(x)})"
    short = f"{float(x):g}" if x or math.copysign(1, x) > 0 else "-0.0"
    return f"{dtype.name}({short if float(short) == x or x != x else repr(float(x))})"


class Block(NamedTuple):
    """Lines of a part's source that belong together: a loop, or a single statement.

    Attributes
    ----------
    first, stop : int
        The first line, counted from 0, and the one behind the last.
    lines : dict of Nest to (int, int)
        What they compute: for each statement its first line, and the one behind its last.
    function : (int, int) or None
        Of a call: the lines of the function that is called, in which the statements are.
    """

    first: int
    stop: int
    lines: dict[Nest, tuple[int, int]]
    function: tuple[int, int] | None = None

    @property
    def nests(self) -> list[Nest]:
        """What they compute."""
        return list(self.lines)

    def moved(self, by: int) -> Block:
        """The same, so many lines further down."""
        lines = {nest: (first + by, stop + by) for nest, (first, stop) in self.lines.items()}
        return Block(self.first + by, self.stop + by, lines)


class Part(NamedTuple):
    """The source of a function that computes some of a program, up to a call or to the end.

    Attributes
    ----------
    name, source : str
        The source begins with the functions that this one calls; see `_with_functions`.
    arguments : list of str
    whole : set of str
        Those that are whole numbers, and not arrays or numbers with a point.
    functions : set of (str, str)
        What the source calls: the names of rows of the table, and data types.
    checks : list of Nest
        The function returns 0, or the number of the first of these that failed, counted from 1.
    length : int or None
        Of a part whose iterations threads can share: how many there are. The function then takes, before its
        other arguments, which to begin with and which to stop before.
    own : dict of str to (dtype, int)
        The storage that each thread needs for itself: data type and size by its name.
    blocks : list of Block
        Which lines compute what.
    form : str
        The source without names. Parts of the same form do the same to other arrays; "" has no other.
    original : str
        The name of an earlier part of the same form, if there is one: then the source only says that.
    """

    name: str
    source: str
    arguments: list[str]
    whole: set[str]
    functions: set[tuple[str, str]]
    checks: list[Nest]
    length: int | None
    own: dict[str, tuple[np.dtype, int]]
    blocks: list[Block]
    form: str
    original: str = ""

    def like(self, original: str) -> Part:
        """This part, as a call of an earlier one."""
        words = f"{self.name} is {original} again, for {', '.join(self.arguments)}"
        lines = wrapped("# ", words.split(" "), " ", "#     ")
        blocks = [Block(0, len(lines), dict.fromkeys(x.nests, (0, len(lines)))) for x in self.blocks]
        return self._replace(source="\n".join(lines) + "\n", blocks=blocks, original=original)

    @property
    def products(self) -> list[int]:
        """The multiplications of each matrix product that is left to BLAS."""
        nests = [nest for block in self.blocks for nest in block.nests]
        return [math.prod(nest.shape[-3:]) for nest in nests if nest.product]


def write_part(
    name: str,
    segment: list[Any] | Loop,
    plan: LoopSchedule,
    places: dict[Buffer, tuple[str, int]],
    arrays: list[str],
    formulas: dict[str, str],
    names: Names,
) -> Part:
    """Write a function.

    Parameters
    ----------
    name : str
    segment : list of Loop or Nest, or a Loop that threads can share
    plan : LoopSchedule
    places : dict
        The storage, and where in it they begin, of buffers that are no arguments of their own.
    arrays : list of str
        The names of arguments that are arrays.
    formulas : dict of str to str
        The names of Numbers by their formulas.
    names : Names
        All names of the program.
    """
    shared = segment if isinstance(segment, Loop) else None
    parts = segment if isinstance(segment, list) else [segment]
    used: dict[Buffer, None] = {}
    numbers: dict[str, set[str]] = {}
    for nest in nests_in(parts):
        used |= dict.fromkeys(x.buffer for x in nest.accesses)
        for x in nest.numbers:
            if isinstance(x, Number):
                numbers.setdefault(x.text, set()).add(nest.out.buffer.dtype.name)
    named = {text: (formulas[text], len(dtypes) == 1) for text, dtypes in numbers.items()}
    writer, twin = Writer(plan, named), Writer(plan, named, from_first=True)
    writer.write(parts, shared=shared)
    if len(writer.blocks) > 1:
        twin.write(parts, shared=shared)

    stored = [buffer for buffer in used if buffer in places]
    private: set[Buffer] = set()
    if shared is not None:
        private = {buffer for buffer in stored if is_of_one_iteration(buffer, shared, plan)}
    own: dict[str, tuple[np.dtype, int]] = {}
    lines = []
    for buffer in stored:
        store, start = places[buffer]
        if buffer in private:
            store = f"own_{buffer.dtype}"
            start = own.get(store, (buffer.dtype, 0))[1]
            own[store] = buffer.dtype, start + -(-buffer.size // 16) * 16
        if store != buffer.name:
            lines.append(f"    {buffer.name} = part({store}, {start}, {buffer.size})")
    for buffer in used:
        if buffer in plan.local:
            lines.append(f"    {buffer.name} = {writer.call('local', buffer.dtype.name)}({buffer.size})")
    for text, dtypes in numbers.items():
        if len(dtypes) == 1:
            note = "" if text == formulas[text] else f"  # {text}"
            lines.append(f"    {formulas[text]} = {next(iter(dtypes))}({formulas[text]}){note}")
    used_names = {buffer.name for buffer in used}
    storage = dict.fromkeys(places[buffer][0] for buffer in stored if buffer not in private)
    arguments = [x for x in arrays if x in used_names] + list(storage) + [formulas[text] for text in numbers]
    arguments += sorted(writer.routines)
    bounds = ["start", "stop"] if shared is not None else []
    given = {buffer.name: buffer.dtype.name for buffer in used if buffer not in plan.variables}
    whole = {formulas[text] for text, dtypes in numbers.items() if not any("float" in x for x in dtypes)}
    whole |= writer.routines
    given |= {formulas[text]: "whole" if formulas[text] in whole else "number" for text in numbers}
    given |= dict.fromkeys(writer.routines, "routine")
    variables = {buffer.name for buffer in used if buffer in plan.variables}
    form, order = _form([*lines, *writer.lines], given, variables)
    if all(places[buffer][0] == buffer.name for buffer in stored):
        arguments = [x for x in order if x in arguments]  # so that equal parts have equal orders
    head = [*_head(name, [*bounds, *own, *arguments]), *lines]
    body, blocks = _with_functions(writer, twin, head, given, variables, names)
    source = "\n".join([*body, "    return 0"]) + "\n"
    length = None if shared is None else shared.length
    form = "" if writer.checks else f"{bounds}{form}"
    return Part(name, source, arguments, whole, writer.functions, writer.checks, length, own, blocks, form)


_SHORT = 12  # lines that a function must save


def _with_functions(
    writer: Writer, twin: Writer, head: list[str], given: dict[str, str], variables: set[str], names: Names
) -> tuple[list[str], list[Block]]:
    """Put blocks that are the same but for the arrays that they use into functions.

    A network of many layers has many such blocks, and so has one of many steps in time, which use one part
    after the other of the same arrays. Written once, they are read once, and compiled once.

    Parameters
    ----------
    writer : Writer
        What it wrote.
    twin : Writer
        It wrote the same with places that count from the first one of a block, as functions do; a single
        block it need not write.
    head : list of str
        The lines before that.
    given : dict of str to str
        The names that a function can be given, and what tells their types apart.
    variables : set of str
        The names of plain variables.
    names : Names

    Returns
    -------
    lines : list of str
        The functions, the head, and what the writer wrote, with calls in it.
    blocks : list of Block
        Where the writer's blocks are among these lines.
    """
    if len(writer.blocks) < 2:
        return [*head, *writer.lines], [block.moved(len(head)) for block in writer.blocks]
    words = [set(_WORD.findall("\n".join(writer.lines[x.first : x.stop]))) for x in writer.blocks]
    users = Counter(word for found in words for word in found)
    forms = []
    for block, found in zip(twin.blocks, words, strict=True):
        # What may leave the step is no function, nor what shares a variable with other blocks.
        fits = "return" not in found and all(users[word] == 1 for word in found & variables)
        forms.append(_form(twin.lines[block.first : block.stop], given, variables) if fits else ("", []))
    times = Counter(text for text, _ in forms)
    functions: list[str] = []
    made: dict[str, tuple[str, int]] = {}  # for a form its function's name, and where that begins
    lines: list[str] = []
    places: list[tuple[Block, int, int | None]] = []  # with its first line, and that in a function
    for i, (text, used) in enumerate(forms):
        if (times[text] - 1) * text.count("\n") < _SHORT:
            block = writer.blocks[i]
            places.append((block, len(lines), None))
            lines += writer.lines[block.first : block.stop]
            continue
        block = twin.blocks[i]
        if text not in made:
            name = names.unique(_function_name(block.nests))
            functions += _head(name, used)
            functions.append(f"    # called {times[text]} times, for different arrays")
            made[text] = name, len(functions)
            functions += [*twin.lines[block.first : block.stop], "", ""]
        name, first = made[text]
        places.append((block, len(lines), first))
        starts = {x.name: (start, x.size - start) for x, start in twin.starts[i].items() if start}
        passed = [f"part({x}, {starts[x][0]}, {starts[x][1]})" if x in starts else x for x in used]
        lines += wrapped(f"    {name}(", [*passed[:-1], f"{passed[-1]})"], ", ", "        ")
    before = len(functions) + len(head)
    stops = [first for _, first, _ in places[1:]] + [len(lines)]
    blocks = []
    for (block, first, in_function), stop in zip(places, stops, strict=True):
        if in_function is None:
            blocks.append(block.moved(before + first - block.first))
        else:
            moved = block.moved(in_function - block.first)
            blocks.append(Block(before + first, before + stop, moved.lines, (moved.first, moved.stop)))
    return [*functions, *head, *lines], blocks


def _head(name: str, arguments: list[str]) -> list[str]:
    """The lines with which a function begins."""
    *others, last = arguments or [""]
    return wrapped(f"def {name}(", [*others, f"{last}):"], ", ", "    ")


_WORD = re.compile(r"[^\W\d]\w*")


def _form(lines: list[str], given: dict[str, str], variables: set[str]) -> tuple[str, list[str]]:
    """Lines without their names, so that equal ones do the same; and the names of what they are given."""
    numbers: dict[str, int] = {}

    def anonymous(word: re.Match) -> str:
        name = word[0]
        if name not in given and name not in variables:
            return name
        return f"{given.get(name, 'variable')}#{numbers.setdefault(name, len(numbers))}"

    text = "\n".join(_WORD.sub(anonymous, x) for x in lines if not x.lstrip().startswith("#"))
    text = re.sub(r",\n\s+", ", ", text)  # where a line is broken depends on the lengths of names
    return text, [name for name in numbers if name in given]


#: Words in the name of such a function.
_MOST_WORDS = 3


def _function_name(nests: list[Nest]) -> str:
    """What a function is called that computes this: ``linear_relu``."""
    makers = makers_of(_main(nests))
    modules = {maker.scope.name: None for maker in makers if maker.scope is not None}
    operators = {words_of(maker.op): None for maker in makers}
    return "_".join(list(modules or operators)[:_MOST_WORDS]).lower() or "copy"


def is_of_one_iteration(buffer: Buffer, loop: Loop, plan: LoopSchedule) -> bool:
    """Whether an array is written anew in each iteration of a loop, and read in none but the same."""
    return any(nest.out.buffer is buffer for nest in loop.nests()) and not any(
        x.strides[plan.loops[nest].index(loop)]
        for nest in loop.nests()
        for x in nest.accesses
        if x.buffer is buffer
    )


class Names:
    """Names for the source, each once."""

    def __init__(self) -> None:
        self._used: set[str] = {*SCALAR_FUNCTIONS, *RESERVED}
        self._counts: Counter[str] = Counter()

    def numbered(self, op: Any) -> str:
        """A name for what an operator computes on the way: `relu1`, `relu2` and so on."""
        base = words_of(op).lower()
        while True:
            self._counts[base] += 1
            name = f"{base}{self._counts[base]}"
            if name not in self._used:
                self._used.add(name)
                return name

    def unique(self, path: str) -> str:
        """A name for what is reached by a path: `weight_2` for ``model.modules[2].weight``.

        If that is taken, the path's first word is added: `weight_decoder` for ``decoder.weight``.
        """
        words = all_words = re.findall(r"[A-Za-z0-9_]+", path)
        if len(words) > 1:
            last = max((i for i, word in enumerate(words) if not word.isdigit()), default=0)
            between = [word for word in words[1:last] if word not in ("modules", "fn", "groups")]
            words = [words[last], *between, *words[last + 1 :]]
        name = "_".join(words) or "value"
        name = f"v{name}" if name[0].isdigit() or name.startswith("at_") else name
        if name in self._used and all_words[:1] != words[:1]:
            name = f"{name}_{all_words[0]}"
        number = 1
        found = name
        while found in self._used:
            number += 1
            found = f"{name}_{number}"
        self._used.add(found)
        return found
