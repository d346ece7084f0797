"""`viz.steps` of a compiled function: from the function to its source, one frame for each pass.

The passes are those of `needle.compiler`. Here they run again, on statements that are lowered anew, and
between them the program is written down as if it were source. Of ``relu(x @ W + b)`` there are first three
operators, then five statements with loops of their own, then fewer and fewer loops. What a pass has changed
is marked by a sign and by colour: + is new, − is gone, ~ is changed.
"""

from __future__ import annotations

import copy
import html
import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from itertools import groupby, takewhile
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple

from needle.autograd import Tensor
from needle.compiler import Compiled
from needle.compiler.codegen import used_by
from needle.compiler.lower import Call, Nest, in_order, pending_in
from needle.compiler.names import Names, letter_of, words_of, wrapped
from needle.compiler.numpy_program import NumpyProgram
from needle.compiler.program import Program
from needle.compiler.schedule import Loop, LoopSchedule, contract, with_fused_loops
from needle.compiler.simplify import PASSES, cut
from needle.compiler.stand_ins import Number
from needle.compiler.trace import Constant

from .operators import applied, symbol
from .picture import Picture
from .program_data import PlainWriter, called, program_of, unfused
from .steps import STATIC, Steps
from .style import FOLLOW, FOLLOWS, Style, style_called
from .text import counted

__all__ = ["Line", "PassFrame", "ProgramSteps", "program_steps"]

ALIKE = 0.5  # the share of words that a line keeps if it is the same line, changed
INDENT = " " * 4
LONG = 60  # lines: of a longer frame only what is changed is shown, and what is around it
MARKS = {"+": "new", "−": "gone", "~": "changed"}
BOXES = {"new": "output", "gone": "failed", "changed": "adjoint"}  # whose colours they have


# The states of a program


class _Statement(NamedTuple):
    """A nest or a call as it was at some time, with the loops around it, and the loop of each of its axes."""

    key: Nest | Call  # as it is
    step: Any  # as it was
    around: Sequence[Loop] = ()
    loops: Sequence[Loop | None] = ()


class _State(NamedTuple):
    """A program between two passes. Neighbours share those of their loops that are `fused`."""

    name: str
    words: str
    statements: list[_Statement]
    fused: tuple[Loop, ...] = ()
    variables: frozenset = frozenset()


class _Passes:
    """Runs the passes of a program again, and keeps the states between them.

    The class that does so inherits from that of the program as well, and lowers as it does.
    """

    def __init__(self: Any, program: Program):
        self.trace = program.trace
        self.seen: list[_State] = []
        self._names = Names()
        self._lower(self.trace, {x.leaf: x.tensor for x in self.trace.inputs})
        self._name()

    def _schedule(self: Any, steps: list[Nest | Call], wanted: set) -> None:
        self.look("lower", "Each operator becomes statements, each in loops of its own.", steps)
        for run in PASSES if self.accumulates else PASSES[:-1]:
            steps = run(steps, wanted)
            self.look(*_said(run), steps)
        self.nests = steps
        if isinstance(self, NumpyProgram):
            return
        cut([x for x in steps if isinstance(x, Nest)])
        self.look(*_said(cut), steps)
        plan = with_fused_loops(steps, self.schedule_type)
        placed = list(_placed(plan.segments, plan))
        words = "Statements, and the loops of each, are put in the order in which they can share loops."
        self.seen.append(_State("order", words, placed))
        fused: tuple[Loop, ...] = ()
        for loop in dict.fromkeys(loop for x in placed for loop in x.around):
            inside = [x for x in placed if loop in x.around]
            if len(inside) > 1:
                fused = (*fused, loop)
                letter = letter_of(inside[0].around.index(loop))
                words = (
                    f"Now {len(inside)} statements share one loop over {letter}, of length {loop.length:,}."
                )
                self.seen.append(_State("fuse", words, placed, fused))
        contract(plan, steps)
        placed = list(_placed(plan.segments, plan))
        self.seen.append(_State(*_said(contract), placed, fused, frozenset(plan.variables)))

    def look(self, name: str, words: str, steps: Iterable[Nest | Call]) -> None:
        """Keep a state in which each statement has loops of its own."""
        plan = unfused(steps)
        self.seen.append(_State(name, words, list(_placed(plan.segments, plan))))


def _said(run: Any) -> tuple[str, str]:
    """What a pass of the compiler is called, and what it says of itself."""
    return run.__name__.strip("_").replace("_", " "), run.__doc__.partition("\n")[0]


def _placed(parts: Iterable[Any], plan: LoopSchedule, around: tuple[Loop, ...] = ()) -> Iterator[_Statement]:
    """The statements in parts of a schedule, as they are now."""
    for part in parts:
        if isinstance(part, Loop):
            yield from _placed(part.body, plan, (*around, part))
        elif isinstance(part, list):
            yield from _placed(part, plan, around)
        else:
            yield _Statement(part, copy.copy(part), around, plan.loops.get(part, ()))


# Written down


class _Writer:
    """Writes the states of a program as lines, each with the statement for whose sake it is there."""

    def __init__(self, passes: Any):
        self.passes = passes
        self.texts: dict[int, str] = {}  # of statements, by their ids
        nests = [x.step for state in passes.seen for x in state.statements if isinstance(x.step, Nest)]
        for nest in nests:
            for x in nest.accesses:
                if not x.buffer.name:  # no pass has kept it
                    op = nest.maker and nest.maker.op
                    x.buffer.name = passes._names.numbered(op) if op else passes._names.unique("value")
        _, kinds = used_by(nests)
        self.numbers = {text: (passes.formulas.get(text, text), kind) for text, kind in kinds.items()}

    def lines(self, state: _State) -> list[tuple[str, Any]]:
        """The statements of a state, in their loops."""
        plan = LoopSchedule(variables=set(state.variables))
        plan.loops = {x.step: list(x.loops) for x in state.statements}
        writer = PlainWriter(plan, self.numbers)
        lines: list[tuple[str, Any]] = []
        before: Sequence[Loop] = ()
        for key, step, around, _ in state.statements:
            pairs = zip(before, around, strict=False)
            shared = len(list(takewhile(lambda x: x[0] is x[1] and x[0] in state.fused, pairs)))
            for depth, loop in enumerate(around):
                writer.letters[loop] = letter = letter_of(depth)
                if depth >= shared:
                    lines.append((f"{INDENT * (depth + 1)}for {letter} in range({loop.length}):", key))
            if id(step) not in self.texts:
                self.texts[id(step)] = _call(step) if isinstance(step, Call) else writer.statement(step)
            before, indent = around, INDENT * (len(around) + 1)
            words = self.texts[id(step)].split(", ")
            lines += [(text, key) for text in wrapped(indent, words, ", ", indent + INDENT)]
        return lines

    def traced(self) -> list[tuple[str, Any]]:
        """A line for each operator of the graph, with the operator; and what the function leaves behind."""
        trace = self.passes.trace
        makers = [(x.step.maker, x.step) for x in self.passes.seen[0].statements if x.step.maker]
        made = {id(maker.op): step.written[-1].name for maker, step in makers}
        texts: dict[Any, str] = {x.cell: buffer.name for buffer, x in self.passes.inputs}
        left = [("return", x._data) for x in trace.returned if isinstance(x, Tensor)]
        left += [(f"{x.name}.grad =", grad) for x, grad in trace.grads if grad is not None]
        left += [(f"{texts[x.cell]} =", value) for x, value in trace.writes]
        lines: list[tuple[str, Any]] = []
        for cell in in_order(pending_in(x for _, x in left), lambda x: pending_in(x.operands or ()), texts):
            op: Any = cell.op
            numbers = [x.text for x in vars(op).values() if isinstance(x, Number)]
            operands = [texts[x] if x in texts else _constant(x) for x in cell.operands or ()]
            text = applied(" ".join([symbol(op), *numbers]), operands)
            texts[cell] = _constant(op.array) if type(op) is Constant else made.get(id(op), f"({text})")
            if id(op) in made:
                lines.append((f"{INDENT}{texts[cell]} = {text}  # {cell.shape}", op))
        return lines + [(f"{INDENT}{words} {texts.get(x) or _constant(x)}", None) for words, x in left]

    def lowered(self, traced: list[tuple[str, Any]]) -> Iterator[Line]:
        """The first state: the statements of each operator stand in the place of its line."""
        state, waiting = self.passes.seen[0], list(traced)
        for x in state.statements:
            ops, op = [op for _, op in waiting], x.step.maker and x.step.maker.op
            stop = len(ops) if op is None else ops.index(op) + 1 if op in ops else 0
            yield from [Line("−", text) for text, _ in waiting[:stop]]
            del waiting[:stop]
            yield from [Line("+", text) for text, _ in self.lines(state._replace(statements=[x]))]
        yield from [Line("−", text) for text, _ in waiting]


def _constant(x: Any) -> str:
    """An array that the function found: its number, if it holds one."""
    return f"{x.numpy().item():g}" if x.size == 1 else f"constant {x.shape}"


def _call(call: Call) -> str:
    written, read = (", ".join(x.name for x in buffers) for buffers in (call.written, call.read))
    return f"{written} = {words_of(call.op)}({read})  # by its own kernel"


# What a pass has changed


class Line(NamedTuple):
    """A line of a frame: its `sign` (of `MARKS`, or a space), its text, and if it is changed, that before."""

    sign: str
    text: str
    before: str = ""

    @property
    def indent(self) -> int:
        """How many spaces it begins with."""
        return len(self.text) - len(self.text.lstrip())

    def html(self) -> str:
        """The line as HTML; within a changed one, what is gone and what is new."""
        old, new = _words(self.before or self.text), _words(self.text)
        code = ""
        for tag, i, i_stop, j, j_stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            gone, words = html.escape("".join(old[i:i_stop])), html.escape("".join(new[j:j_stop]))
            code += words if tag == "equal" else f"<del>{gone}</del><ins>{words}</ins>"
        kind = MARKS.get(self.sign, "comment" if self.text.lstrip().startswith("#") else "same")
        return (
            f'<div class="line {kind}" style="--in:{self.indent}"><b>{self.sign}</b><span>{code}</span></div>'
        )


def compared(old: list[tuple[str, Any]], new: list[tuple[str, Any]]) -> list[Line]:
    """The lines of a program, marked against those of before; each comes with its statement."""
    found: list[Line] = []
    for tag, i, i_stop, j, j_stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            found += [Line(" ", text) for text, _ in new[j:j_stop]]
        else:
            found += _paired(old[i:i_stop], new[j:j_stop])
    return found


def _paired(old: list[tuple[str, Any]], new: list[tuple[str, Any]]) -> list[Line]:
    """Lines that have replaced others: the two that are most alike are one line, changed, and so on."""
    pairs = ((_alike(a, b), -i, -j) for i, a in enumerate(old) for j, b in enumerate(new))
    alike, i, j = max(pairs, default=(0, 0, 0))
    if alike < ALIKE:
        return [Line("−", text) for text, _ in old] + [Line("+", text) for text, _ in new]
    changed = Line("~", new[-j][0], old[-i][0])
    return [*_paired(old[:-i], new[:-j]), changed, *_paired(old[1 - i :], new[1 - j :])]


def _alike(a: tuple[str, Any], b: tuple[str, Any]) -> float:
    """The share of words that two lines of the same statement have in common."""
    x, y = (Counter(filter(str.isalnum, _words(text))) for text, _ in (a, b))
    return 2 * (x & y).total() / max(x.total() + y.total(), 1) if a[1] is b[1] else 0


@lru_cache(1 << 12)
def _words(text: str) -> list[str]:
    return re.findall(r"\w+|\s+|.", text.strip())


def _folded(lines: Sequence[Line]) -> Iterator[Line]:
    """A long frame without the lines that are far from all changed ones, and no loops around these."""
    kept = {j for i, line in enumerate(lines) for j in range(i - 2, i + 3) if line.sign != " "}
    kept |= {*range(len(lines))} if not kept or len(lines) < LONG else set()
    around: list[int] = []  # the lines that the present one is inside of
    for i, line in enumerate(lines):
        while around and lines[around[-1]].indent >= line.indent:
            around.pop()
        kept |= {*around} if i in kept else set()
        around.append(i)
    for is_kept, run in groupby(range(len(lines)), kept.__contains__):
        some = [lines[i] for i in run]
        indent = " " * some[0].indent
        yield from some if is_kept else [Line("⋮", f"{indent}# {counted(len(some), 'line')} as before")]


# The frames


@dataclass(frozen=True, repr=False)
class PassFrame(Picture):
    """What one pass has made of a program.

    Attributes
    ----------
    name : str
        That of the pass.
    title : str
    words : str
        What the pass does.
    lines : tuple of Line
        The program after it, and what is gone.
    """

    name: str
    title: str
    words: str
    lines: tuple[Line, ...]
    style: Style

    formats: ClassVar[tuple[str, ...]] = ("html",)

    def html(self) -> str:
        """The frame as a piece of a web page."""
        return _pages([self], self.style)

    def said(self) -> str:
        """What the pass does, and how many lines it has changed, as HTML."""
        words = re.sub("``(.+?)``", r"<code>\1</code>", html.escape(self.words))
        counts = Counter(line.sign for line in self.lines)
        marks = [f"<b>{sign}</b> {counts[sign]} {word}" for sign, word in MARKS.items() if counts[sign]]
        return f'<div class="equation">{words}</div><div class="note">{" &nbsp; ".join(marks)}</div>'

    def __str__(self) -> str:
        lines = [f"{x.sign} {x.text}".rstrip() for x in self.lines]
        return "\n".join([f"{self.title}. {self.words}", *lines])


def _pages(frames: Iterable[PassFrame], style: Style) -> str:
    """Frames one below the other; the player shows one at a time."""
    colours = {"ground": style.background, "ink": style.text, "quiet": style.quiet}
    for name, kind in BOXES.items():
        colours |= {name: style.boxes[kind].fill, f"{name}-sign": style.boxes[kind].line}
    look = ";".join(f"--{name}:{style.css(colour)}" for name, colour in colours.items())
    pages = "".join(
        f'<section class="page"><div class="heading">{html.escape(frame.title)}{frame.said()}</div>'
        f"{''.join(line.html() for line in _folded(frame.lines))}</section>"
        for frame in frames
    )
    scheme = f'" style="color-scheme:{style.scheme};' if style.scheme else f' {FOLLOWS}" style="'
    css = (STATIC / "pages.css").read_text("utf-8")
    return f'<style>{FOLLOW}{css}</style><div class="needle-pages{scheme}{look}">{pages}</div>'


class ProgramSteps(Steps):
    """All passes from a function to its source: a sequence of frames, which shows itself as a player.

    It holds plain data, and nothing of the function.

    Attributes
    ----------
    frames : tuple of PassFrame
    title : str
    """

    formats = ("html",)

    def __init__(self, frames: Sequence[PassFrame], title: str, style: Style):
        self.frames = tuple(frames)
        self.title = title
        self.style = style

    def __len__(self) -> int:
        return len(self.frames)

    def _picture(self, number: int) -> Any:
        return self.frames[number]

    def data(self) -> dict[str, Any]:
        """What the player needs: all frames, of which it shows one."""
        return {**self._data, "svg": self.strip()}

    @cached_property
    def _data(self) -> dict[str, Any]:
        order = list(dict.fromkeys(frame.name for frame in self.frames))
        each = {"phase": "forward", "marked": []}
        frames = [
            {**each, "title": x.title, "equations": x.said(), "place": order.index(x.name)}
            for x in self.frames
        ]
        own = {"title": self.title, "ordered": "Passes", "order": order, "frames": frames, "since": {}}
        return own | self._look()

    def _player(self, without_scripts: str, begin: str = "playAll(document)") -> str:
        return super()._player(self.strip(), begin)

    def strip(self) -> str:
        """The frames one below the other, as HTML without scripts."""
        return _pages(self.frames, self.style)

    def _instead(self) -> str:
        return ""

    def __str__(self) -> str:
        return "\n\n".join([self.title, *map(str, self.frames)])


def program_steps(function: str, compiled: Compiled, limit: int, style: str | None) -> ProgramSteps:
    """What `steps` shows of a compiled function."""
    program, look = program_of(function, compiled), style_called(style)
    passes: Any = type("Passes", (_Passes, type(program)), {})(program)
    lowered, *others = passes.seen
    if (count := len(lowered.statements)) > limit:
        raise ValueError(
            f"{function}: {called(compiled)} has {count:,} statements, more than limit={limit}; compile a "
            "smaller part of it, raise limit=, or look at the whole with viz.draw_schedule"
        )
    writer = _Writer(passes)
    name = getattr(compiled.function, "__name__", "").replace("<lambda>", "") or "f"
    head = f"def {name}({', '.join(inspect.signature(compiled.function).parameters)}):"
    traced, before = writer.traced(), [(head, None), *writer.lines(lowered)]
    words = "One line for each operator of the graph, with the shape of its result."
    found = [("trace", words, [Line(" ", head), *[Line(" ", text) for text, _ in traced]])]
    found.append(("lower", lowered.words, [Line(" ", head), *writer.lowered(traced)]))
    for state in others:
        now = [(head, None), *writer.lines(state)]
        if now != before:
            found.append((state.name, state.words, compared(before, now)))
        before = now
    before = [(text, None) for text, _ in before]
    source = [(text, None) for text in program.source.rstrip().split("\n")]
    if isinstance(program, NumpyProgram):
        words = "Each statement becomes a call of NumPy, so all loops are gone. They stand below."
        lines = [Line("+", text) for text, _ in source] + [Line("−", text) for text, _ in before]
    else:
        words = "What Numba compiles. It names the arguments and says where arrays are stored."
        lines = compared(before, source)
    found.append(("source", words, lines))
    frames: list[PassFrame] = []
    for name, same in groupby(found, itemgetter(0)):
        steps = list(same)
        for number, (_, words, lines) in enumerate(steps, start=1):
            title = name.capitalize() + f", {number} of {len(steps)}" * (len(steps) > 1)
            frames.append(PassFrame(name, title, words, tuple(lines), look))
    return ProgramSteps(frames, f"{called(compiled)}, pass by pass: {counted(len(frames), 'frame')}", look)
