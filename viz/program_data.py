"""A compiled function as plain data: its operators, the groups that they were fused to, and the source.

A *group* is what became one loop, or a few statements in a row that need none. A *unit* is an operator, or
as much of it as one group computes; arrays that come from outside and that are left behind are units too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from needle.compiler import Compiled
from needle.compiler.codegen import Line, Part, Writer, used_by
from needle.compiler.lower import Access, Buffer, Call, Nest
from needle.compiler.names import makers_of, words_of
from needle.compiler.numpy_program import NumpyProgram
from needle.compiler.program import Program
from needle.compiler.schedule import Loop, LoopSchedule, nests_in
from needle.compiler.stand_ins import Number

from .operators import symbol
from .text import counted, elide

__all__ = [
    "Fused", "Listing", "ProgramData", "SourceLine", "Stored", "Unit", "called", "loop_of",
    "program_of", "read_program", "read_schedule", "separate_source", "unfused",
]  # fmt: skip

LONGEST_FORMULA = 22  # characters of a number that is computed by the host
MOST_NAMED = 3  # of the arrays that an operator makes


class Unit(NamedTuple):
    """A box of the graph.

    Attributes
    ----------
    key : str
    kind : str
        "operator", "blas", "call", "check", "input", "constant", "state" or "result".
    words : str
        The operator's sign, or the array's name.
    module : str
        The module that uses the operator; empty for none.
    facts : str
        Where its numbers live.
    group : str
        The key of its group; empty for what comes from outside.
    operands : tuple of str
        The keys of the units whose numbers it reads.
    """

    key: str
    kind: str
    words: str
    module: str = ""
    facts: str = ""
    group: str = ""
    operands: tuple[str, ...] = ()


class Fused(NamedTuple):
    """A group. Its `label`, such as "3", stands at the group and at its lines."""

    key: str
    label: str
    title: str


class SourceLine(NamedTuple):
    """A line of source, the label of its group, and the keys of the units whose statement it is.

    Where the schedule is drawn, a `letter` tells the operators of a group apart.
    """

    text: str
    label: str = ""
    units: tuple[str, ...] = ()
    letter: str = ""


class Listing(NamedTuple):
    """Source with a title. `marked` are names of arrays that have another size in the other listing."""

    title: str
    lines: tuple[SourceLine, ...]
    marked: tuple[str, ...] = ()


class Stored(NamedTuple):
    """Where the numbers of an operator live before and after fusion, in words."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class ProgramData:
    """All that a drawing of a compiled function shows.

    Attributes
    ----------
    name : str
        What the function is called.
    units : tuple of Unit
        Each after its operands; empty where the schedule is drawn.
    operators : int
        How many there are. A copy into a result is a statement, and no operator.
    groups : tuple of Fused
    listings : tuple of Listing
        The generated source; or the source before and after fusion.
    stored : tuple of Stored
        What was an array and became smaller.
    """

    name: str
    units: tuple[Unit, ...]
    operators: int
    groups: tuple[Fused, ...]
    listings: tuple[Listing, ...]
    stored: tuple[Stored, ...] = ()


def read_program(program: Program, name: str) -> ProgramData:
    """The graph of operators with its groups, and the source."""
    reader = _Reader(program)
    reader.read_graph()
    listing = Listing("the generated source", reader.lines())
    units = tuple(reader.units.values())
    return ProgramData(name, units, len(makers_of(program.nests)), reader.groups(), (listing,))


def read_schedule(program: Program, name: str) -> ProgramData:
    """The source as it was lowered, and as it is after fusion."""
    reader = _Reader(program)
    stored = reader.stored()
    marked = tuple(x.name for x in stored)
    letters = reader.letters()
    before = Listing(
        "lowered: each statement has loops of its own", _with(letters, reader.separate_lines()), marked
    )
    after = Listing("fused: loops along the same axis are one", _with(letters, reader.lines()), marked)
    operators = len(makers_of(program.nests))
    return ProgramData(name, (), operators, reader.groups(), (before, after), stored)


class _Reader:
    """Reads a program."""

    def __init__(self, program: Program):
        if isinstance(program, NumpyProgram):
            raise ValueError(
                "On cpu_numpy a compiled function is lines of NumPy: it has no loops that could be drawn. "
                "Print its source"
            )
        self.program = program
        self.plan = program.plan
        self.units: dict[str, Unit] = {}
        self.blocks = [(part, block) for part in program.parts for block in _blocks_of(part)]
        self.label = self._labels()
        self.group = {
            nest: label
            for (_, block), label in zip(self.blocks, self.label, strict=True)
            if not isinstance(block, Call)
            for nest in block
        }
        makers = [nest.maker for nest in self.group if nest.maker is not None]
        self.numbers = {id(maker): i for i, maker in enumerate({id(x): x for x in makers}.values())}
        self.unit_of = {nest: self._key(nest) for nest in self.group}
        self.uses: dict[Buffer, list[Access]] = defaultdict(list)  # before fusion
        for before in self.plan.lowered.values():
            for x in before.accesses:
                self.uses[x.buffer].append(x)
        self.by_unit: dict[str, list[Nest]] = defaultdict(list)
        for nest, key in self.unit_of.items():
            self.by_unit[key].append(nest)

    # Groups

    def _labels(self) -> list[str]:
        """The label of each block's group.

        What only puts first numbers into arrays belongs to the loop that goes on with them. Single
        statements in a row are one group.
        """
        labels: list[str] = [""] * len(self.blocks)
        number = 0
        was_single = False
        for i, (_, block) in enumerate(self.blocks):
            if not isinstance(block, Call) and _only_fills(block):
                continue
            single = not isinstance(block, Call) and loop_of(self.program, block) is None
            single = single and not _has_product(block)
            number += not (single and was_single)
            was_single = single
            labels[i] = str(number)
        for i in reversed(range(len(labels))):
            if not labels[i]:
                filled = {nest.out.buffer for nest in self.blocks[i][1]}
                labels[i] = next(
                    (labels[j] for j in range(i + 1, len(labels)) if self._uses(j, filled)), str(number)
                )
        return labels

    def _uses(self, number: int, buffers: set[Buffer]) -> bool:
        block = self.blocks[number][1]
        if isinstance(block, Call):
            return not buffers.isdisjoint([*block.read, *block.written])
        return any(x.buffer in buffers for nest in block for x in nest.accesses)

    def groups(self) -> tuple[Fused, ...]:
        """What each group is, in words."""
        found: dict[str, list[Any]] = defaultdict(list)
        for (part, block), label in zip(self.blocks, self.label, strict=True):
            found[label].append((part, block))
        return tuple(
            Fused(f"g{label}", label, f"{label}: {self._title(found[label])}")
            for label in sorted(found, key=int)
        )

    def _title(self, blocks: Sequence[tuple[Any, Any]]) -> str:
        part, block = blocks[-1]
        if isinstance(block, Call):
            return "own kernel"
        loops = [loop_of(self.program, block) for _, block in blocks if not isinstance(block, Call)]
        longest = loops[-1]
        if longest is None:
            return "BLAS" if _has_product(block) else "no loop"
        shared = ", threads share it" if part.length is not None else ""
        return f"loop of {longest.length:,}{shared}"

    # Units

    def _key(self, nest: Nest) -> str:
        """The key of the unit that a statement belongs to."""
        buffer = nest.out.buffer
        if nest.maker is None and not buffer.is_ours:
            return f"out_{buffer.name}"
        if nest.maker is None:
            return f"copy_{buffer.name}"
        what = "check" if nest.is_check else "n"
        return f"{what}{self.numbers[id(nest.maker)]}in{self.group[nest]}"

    def read_graph(self) -> None:
        """Collect the units, each after its operands."""
        writers: dict[Buffer, str] = {}  # the unit that wrote a buffer last
        states = {buffer: tensor for tensor, buffer in self.program.states}
        done: dict[str, dict[str, None]] = defaultdict(dict)  # the operands of each unit

        def writer(buffer: Buffer) -> str:
            if buffer not in writers:
                writers[buffer] = self._outside(buffer, buffer in states)
            return writers[buffer]

        for (_, block), label in zip(self.blocks, self.label, strict=True):
            if isinstance(block, Call):
                key = f"call{len(self.units)}"
                names = ", ".join(x.name for x in block.written)
                operands = tuple(dict.fromkeys(writer(x) for x in block.read))
                module = _module(block.maker)
                self.units[key] = Unit(key, "call", symbol(block.op), module, names, f"g{label}", operands)
                writers.update(dict.fromkeys(block.written, key))
                continue
            for nest in block:
                key = self.unit_of[nest]
                self.units.setdefault(key, self._unit(key, nest))
                for x in (*nest.reads, *[x.via for x in nest.accesses]):
                    if isinstance(x, Access) and not x.buffer.is_iota:
                        found = writer(x.buffer)
                        if found != key:
                            done[key][found] = None
                buffer = nest.out.buffer
                if nest.fold is not None and writers.get(buffer, key) != key:
                    done[key][writers[buffer]] = None
                writers[buffer] = key
                if not buffer.is_ours and nest.maker is not None and not nest.is_check:
                    # An operator, such as a product of BLAS, writes it at once.
                    out = f"out_{buffer.name}"
                    self.units[out] = self._left(out, buffer, self.units[key].group)
                    done[out][key] = None
                    writers[buffer] = out
        before: dict[str, Unit] = {}
        for key, unit in self.units.items():
            operands = tuple(x for x in done[key] if x in self.units) or unit.operands
            before[key] = unit._replace(operands=operands)
        self.units = _in_order(before)

    def _outside(self, buffer: Buffer, is_state: bool) -> str:
        """The unit of an array that comes from outside."""
        key = f"in_{buffer.name}"
        shapes = {b: x.cell.shape for b, x in self.program.inputs}
        shape = shapes.get(buffer, (self.plan.sizes.get(buffer, buffer.size),))
        kind = "constant" if buffer.data is not None else "state" if is_state else "input"
        self.units[key] = Unit(key, kind, buffer.name, "", _shape(shape))
        return key

    def _left(self, key: str, buffer: Buffer, group: str) -> Unit:
        """The unit of an array that is left behind."""
        specs = {b: spec.shape for b, spec in self.program.results}
        if buffer in specs:
            return Unit(key, "result", buffer.name, "", _shape(specs[buffer]), group)
        return Unit(key, "state", buffer.name, "", "updated in place", group)

    def _unit(self, key: str, nest: Nest) -> Unit:
        group = f"g{self.group[nest]}"
        if nest.maker is None:
            if not nest.out.buffer.is_ours:
                return self._left(key, nest.out.buffer, group)
            return Unit(key, "operator", "copy", "", self._lives(self.by_unit[key]), group)
        nests = self.by_unit[key]
        kind = "check" if nest.is_check else "blas" if _has_product(nests) else "operator"
        formulas = {x.text: None for other in nests for x in other.numbers if isinstance(x, Number)}
        numbers = [x if len(x) <= LONGEST_FORMULA else self.program.formulas[x] for x in formulas]
        words = " ".join([symbol(nest.maker.op), *numbers])
        words = f"check: {words}" if kind == "check" else words
        facts = "" if kind == "check" else self._lives(nests)
        return Unit(key, kind, words, _module(nest.maker), facts, group)

    def _lives(self, nests: Iterable[Nest]) -> str:
        """Where what an operator computes lives: ``add1: a variable``."""
        nests = list(nests)
        made = {nest.out.buffer: None for nest in nests if nest.out.buffer.is_ours}
        read = {
            x.buffer
            for nest, key in self.unit_of.items()
            if key != self.unit_of[nests[0]]
            for x in nest.sources
        }
        handed_on = [buffer for buffer in made if buffer in read] or list(made)[-1:]
        few = [f"{x.name}: {self._storage(x)}" for x in handed_on[:MOST_NAMED]]
        return "; ".join(few)

    def _storage(self, buffer: Buffer) -> str:
        if buffer in self.plan.variables:
            return "a variable"
        whole = self.plan.sizes[buffer]
        if buffer.size < whole:
            return f"{buffer.size:,} of {counted(whole, 'number')}"
        return _shape(self._shape_before(buffer))

    def _shape_before(self, buffer: Buffer) -> tuple[int, ...]:
        """The shape of an array before fusion, by the loops that go through it: that with the most axes."""
        shapes = [_shape_of(x, self.plan.sizes[buffer]) for x in self.uses[buffer]]
        return max(shapes, key=len)

    def stored(self) -> tuple[Stored, ...]:
        """What was an array, and is less now."""
        found = []
        for buffer in {nest.out.buffer: None for nest in self.group if not nest.is_check}:
            whole = self.plan.sizes[buffer]
            if not buffer.is_ours or buffer.is_iota or (buffer.size == whole and buffer in self.plan.work):
                continue
            shape = self._shape_before(buffer)
            after = "a plain variable" if buffer in self.plan.variables else f"a row of {buffer.size:,}"
            found.append(
                Stored(buffer.name, f"an array {shape}" if shape else "an array of one number", after)
            )
        return tuple(found)

    # Lines

    def letters(self) -> dict[str, str]:
        """A letter for each unit, from a on in each group."""
        counts: dict[str, int] = defaultdict(int)
        found = {}
        for nest in self.plan.lowered:
            key, label = self.unit_of[nest], self.group[nest]
            if key not in found:
                more, last = divmod(counts[label], 26)
                found[key] = (chr(96 + more) if more else "") + chr(97 + last)
                counts[label] += 1
        return found

    def lines(self) -> tuple[SourceLine, ...]:
        """The generated source, part by part."""
        found: list[SourceLine] = []
        first = 0  # the number of the part's first block
        for part in self.program.parts:
            if found:
                found += [SourceLine("")]
            if isinstance(part, Call):
                text = f"# {words_of(part.op)}, by its own kernel"
                found.append(SourceLine(text, self.label[first]))
                first += 1
                continue
            for line in part.lines:
                label = "" if line.block is None else self.label[first + line.block]
                units = tuple([self.unit_of[nest] for nest in line.nests])
                found.append(SourceLine(line.text, label, units))
            first += len(part.blocks)
        return tuple(found)

    def separate_lines(self) -> tuple[SourceLine, ...]:
        """The source before fusion: each statement with its own loops, and the label of its group."""
        return tuple(
            SourceLine(line.text.removeprefix("    "), self.group[nest], (self.unit_of[nest],))
            for nest, lines in separate_source(self.program)
            for line in lines
        )


def called(compiled: Compiled) -> str:
    """The name of a compiled function."""
    name = getattr(compiled.function, "__name__", "")
    return "the function" if name in ("", "<lambda>") else elide(name, 40)


def program_of(function: str, compiled: Any) -> Program:
    """The program of a compiled function, for `function`.

    Raises
    ------
    TypeError
        If it is no compiled function.
    ValueError
        If it was not called yet.
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(
            f"{function}: needs a function that ndl.jit returned, got {type(compiled).__name__}; write "
            f"viz.{function}(ndl.jit(f)) after a first call"
        )
    if compiled.program is None:
        name = called(compiled)
        raise ValueError(
            f"{function}: {name} is not compiled yet, because the shapes that it gets are not known. Call it "
            f"once, as {name}(…), and draw it then"
        )
    return compiled.program


def loop_of(program: Program, block: list[Nest]) -> Loop | None:
    """The loop that a block of the source is; None for a single statement."""
    for segment in program.plan.segments:
        for part in segment if isinstance(segment, list) else [segment]:
            if isinstance(part, Loop) and next(nests_in([part])) in block:
                return part
    return None


def unfused(steps: Iterable[Nest | Call]) -> LoopSchedule:
    """A schedule in which each statement has loops of its own."""
    plan = LoopSchedule()
    for step in steps:
        part: Any = step
        if isinstance(step, Nest):
            loops = [Loop(step.shape[axis]) for axis in step.axes]
            plan.loops[step] = [*loops, *[None] * (len(step.shape) - len(loops))]
            for loop in reversed(loops):
                loop.body, part = [part], loop
        plan.segments.append(part)
    return plan


def separate_source(program: Program) -> list[tuple[Nest, list[Line]]]:
    """The source as it would be if each statement kept loops of its own, as it was lowered.

    Returns
    -------
    list of (Nest, list of Line)
        For each statement of the program its lines.
    """
    lowered = program.plan.lowered
    plan = unfused(lowered.values())
    writer = Writer(plan, used_by(lowered.values(), program.formulas)[1])
    return list(zip(lowered, writer.write_blocks(plan.segments), strict=True))


def _shape_of(x: Access, size: int) -> tuple[int, ...]:
    """The shape of a compact array of `size` numbers, by the strides of an access: ``(10, 8)`` for (8, 1)."""
    shape, outer = [], size
    for stride in sorted({s for s in x.strides if s > 0}, reverse=True):
        if outer % stride:
            return (size,)
        shape.append(outer // stride)
        outer = stride
    return tuple(shape) if outer == 1 else (size,)


def _with(letters: Mapping[str, str], lines: Iterable[SourceLine]) -> tuple[SourceLine, ...]:
    return tuple(line._replace(letter=letters[line.units[0]] if line.units else "") for line in lines)


def _blocks_of(part: Part | Call) -> Sequence[Any]:
    return [part] if isinstance(part, Call) else part.blocks


def _only_fills(block: list[Nest]) -> bool:
    """Whether statements only put numbers into arrays, in which others are summed later."""
    return all(
        nest.function == "copy"
        and nest.fold is None
        and nest.out.buffer.is_ours
        and not any(isinstance(x, Access) for x in nest.reads)
        for nest in block
    )


def _has_product(nests: Iterable[Nest]) -> bool:
    return any(nest.product for nest in nests)


def _module(maker: Any) -> str:
    return "" if maker is None or maker.scope is None else elide(maker.scope.name, 24)


def _shape(shape: tuple[int, ...]) -> str:
    return str(tuple(shape)) if shape else "a number"


def _in_order(units: Mapping[str, Unit]) -> dict[str, Unit]:
    """The units, each after its operands."""
    found: dict[str, Unit] = {}
    waiting: set[str] = set()
    stack = list(units)[::-1]
    while stack:
        key = stack[-1]
        ahead = [x for x in units[key].operands if x not in found and x not in waiting]
        if key in found or not ahead:
            stack.pop()
            found.setdefault(key, units[key])
            waiting.discard(key)
        else:
            waiting.add(key)
            stack.extend(reversed(ahead))
    return found
