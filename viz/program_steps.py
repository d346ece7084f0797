"""`viz.steps` of a compiled function: from the function to its source, one frame for each pass.

The passes are those of `needle.compiler`. Here they run again, on statements that are lowered anew, and after
each pass the program is written down as if it were source. Of ``relu(x @ W + b)`` there are first three
operators, then five statements with loops of their own, then fewer and fewer loops. A sign and a colour mark
what a pass has changed: + is new, − is gone, ~ is changed.
"""

from __future__ import annotations

import html
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import groupby, pairwise, takewhile
from typing import Any, ClassVar, NamedTuple

from needle.autograd import Tensor
from needle.compiler import Compiled
from needle.compiler.codegen import Writer, used_by
from needle.compiler.lower import Call, Nest, in_order, pending_in
from needle.compiler.names import Names, letter_of, words_of, wrapped
from needle.compiler.numpy_program import NumpyProgram
from needle.compiler.program import Program
from needle.compiler.schedule import Loop, LoopSchedule, contract, paths, with_fused_loops
from needle.compiler.simplify import cut
from needle.compiler.stand_ins import Number
from needle.compiler.trace import Constant

from .operators import applied, symbol
from .picture import Picture
from .program_data import called, program_of, unfused
from .steps import STATIC, Steps
from .style import FOLLOW, FOLLOWS, Style, style_called
from .text import counted

__all__ = ["Line", "PassFrame", "ProgramSteps", "program_steps"]

INDENT = " " * 4
LONG = 60  # lines: of a longer frame only what is changed is shown, and what is around it
MARKS = {"+": "new", "−": "gone", "~": "changed"}
BOXES = {"new": "output", "gone": "failed", "changed": "adjoint"}  # whose colours they have

_WORD = re.compile(r"\w+|\s+|.")

#: A line of a program, and the statement or operator for whose sake it is there.
Written = tuple[str, Any]


# The program after each pass


class _Passes:
    """Runs the passes of a program again, and writes the program down after each of them.

    `seen` has, for each pass, its name, what it does, and the program after it. The class that runs is made
    of this one and of the program's own, so it lowers as the program does.
    """

    def __init__(self: Any, program: Program, head: str):
        self.trace, self.head = program.trace, head
        self.seen: list[tuple[str, str, list[Written]]] = []
        self.buffer_names: list[str] = []
        for self.writes in (False, True):  # the first run only finds the names of all buffers
            self._names = Names()
            self._lower(self.trace, {x.leaf: x.tensor for x in self.trace.inputs})

    def _schedule(self: Any, steps: list[Nest | Call], wanted: set) -> None:
        users = [(x, step.maker) for step in steps for x in (*step.written, *step.read)]
        if not self.writes:
            super()._schedule(steps, wanted)  # type: ignore[misc]
            self._name()
            for x, maker in users:
                if not x.name:  # no pass has kept it
                    x.name = self._names.numbered(maker.op) if maker else self._names.unique("value")
            self.buffer_names = [x.name for x, _ in users]
            return
        for (x, _), name in zip(users, self.buffer_names, strict=True):
            x.name = name
        words = "One line for each operator of the graph, with the shape of its result."
        self.seen.append(("trace", words, [(self.head, None), *self.traced(steps)]))
        self.look("lower", "Each operator becomes statements, each in loops of its own.", unfused(steps))
        for run in self.passes:
            steps = run(steps, wanted)
            self.look(*_said(run), unfused(steps))
        if isinstance(self, NumpyProgram):
            return
        cut([x for x in steps if isinstance(x, Nest)])
        self.look(*_said(cut), unfused(steps))
        plan = with_fused_loops(steps, self.schedule_type)
        words = "Statements, and the loops of each, are put in the order in which they can share loops."
        self.look("order", words, plan)
        placed = [*paths(plan.segments)]
        fused: list[Loop] = []
        for loop in dict.fromkeys(loop for _, around in placed for loop in around):
            depths = [around.index(loop) for _, around in placed if loop in around]
            if len(depths) > 1:
                fused.append(loop)
                over = f"{letter_of(depths[0])}, of length {loop.length:,}"
                self.look("fuse", f"Now {len(depths)} statements share one loop over {over}.", plan, fused)
        contract(plan, steps)
        self.look(*_said(contract), plan, fused)

    def look(self: Any, name: str, words: str, plan: LoopSchedule, fused: Sequence[Loop] = ()) -> None:
        """Write the program down as it is now. Neighbours share those of their loops that are `fused`."""
        placed = [*paths(plan.segments)]
        nests = [step for step, _ in placed if isinstance(step, Nest)]
        writer = Writer(plan, used_by(nests, self.formulas)[1])
        lines: list[Written] = [(self.head, None)]
        before: Sequence[Loop] = ()
        for step, around in placed:
            pairs = zip(before, around, strict=False)
            shared = len(list(takewhile(lambda x: x[0] is x[1] and x[0] in fused, pairs)))
            for depth, loop in enumerate(around):
                writer.letters[loop] = letter = letter_of(depth)
                if depth >= shared:
                    lines.append((f"{INDENT * (depth + 1)}for {letter} in range({loop.length}):", step))
            text = _call(step) if isinstance(step, Call) else writer.statement(step)
            before, indent = around, INDENT * (len(around) + 1)
            lines += [(x, step) for x in wrapped(indent, text.split(", "), ", ", indent + INDENT)]
        if lines != self.seen[-1][-1]:
            self.seen.append((name, words, lines))

    def traced(self: Any, steps: Iterable[Nest | Call]) -> Iterator[Written]:
        """A line for each operator of the graph, with the operator; and what the function leaves behind."""
        trace = self.trace
        made = {id(step.maker.op): step.written[-1].name for step in steps if step.maker}
        texts: dict[Any, str] = {x.cell: buffer.name for buffer, x in self.inputs}
        left = [("return", x._data) for x in trace.returned if isinstance(x, Tensor)]
        left += [(f"{x.name}.grad =", grad) for x, grad in trace.grads if grad is not None]
        left += [(f"{texts[x.cell]} =", value) for x, value in trace.writes]
        for cell in in_order(pending_in(x for _, x in left), lambda x: pending_in(x.operands or ()), texts):
            op: Any = cell.op
            numbers = [x.text for x in vars(op).values() if isinstance(x, Number)]
            operands = [texts.get(x) or _constant(x) for x in cell.operands or ()]
            text = applied(" ".join([symbol(op), *numbers]), operands)
            texts[cell] = _constant(op.array) if type(op) is Constant else made.get(id(op), f"({text})")
            if id(op) in made:
                yield f"{INDENT}{texts[cell]} = {text}  # {cell.shape}", op
        for words, x in left:
            yield f"{INDENT}{words} {texts.get(x) or _constant(x)}", None


def _said(run: Any) -> tuple[str, str]:
    """What a pass of the compiler is called, and what it says of itself."""
    return run.__name__.strip("_").replace("_", " "), run.__doc__.partition("\n")[0]


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
        code = ""
        old, new = (_WORD.findall(x.strip()) for x in (self.before or self.text, self.text))
        for is_same, gone, come in _blocks(old, new):
            before, now = (html.escape("".join(words)) for words in (gone, come))
            code += now if is_same else f"<del>{before}</del><ins>{now}</ins>"
        kind = MARKS.get(self.sign, "comment" if self.text.lstrip().startswith("#") else "same")
        style = f"--in:{self.indent}"
        return f'<div class="line {kind}" style="{style}"><b>{self.sign}</b><span>{code}</span></div>'


def compared(old: list[Written], new: list[Written]) -> Iterator[Line]:
    """The lines of a program, marked against those of before.

    What is gone stands above what is new of the same operator.
    """
    for is_same, gone, come in _blocks(old, new):
        if is_same:
            yield from [Line(" ", text) for text, _ in come]
            continue
        for is_alike, before, now in _blocks(gone, come, _begins):
            if is_alike:
                yield from [Line("~", text, x) for (x, _), (text, _) in zip(before, now, strict=True)]
                continue
            for text, key in now:
                while any(_operator(x) is _operator(key) for _, x in before):
                    yield Line("−", before.pop(0)[0])
                yield Line("+", text)
            yield from [Line("−", text) for text, _ in before]


def _blocks(old: list, new: list, look: Callable = lambda x: x) -> Iterator[tuple[bool, list, list]]:
    """Two lists in pieces, which look the same in both, or not."""
    matcher = SequenceMatcher(None, [*map(look, old)], [*map(look, new)], autojunk=False)
    for tag, i, i_stop, j, j_stop in matcher.get_opcodes():
        yield tag == "equal", old[i:i_stop], new[j:j_stop]


def _begins(line: Written) -> Any:
    """What a changed line keeps: its statement and its first word."""
    word = _WORD.match(line[0].strip())
    return line[1], word and word[0]


def _operator(key: Any) -> Any:
    """The operator for whose sake a line is there."""
    return (key.maker and key.maker.op) if isinstance(key, (Nest, Call)) else key


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
    """What one pass has made of a program."""

    name: str  # of the pass
    title: str
    words: str  # what the pass does
    lines: tuple[Line, ...]  # the program after it, and what is gone
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
    """All passes from a function to its source: a sequence of `frames`, which shows itself as a player.

    It holds plain data, and nothing of the function.
    """

    formats = ("html",)

    def __init__(self, frames: Sequence[PassFrame], title: str, style: Style):
        self.frames, self.title, self.style = tuple(frames), title, style

    def __len__(self) -> int:
        return len(self.frames)

    def _picture(self, number: int) -> Any:
        return self.frames[number]

    def data(self) -> dict[str, Any]:
        """What the player needs: all frames, of which it shows one."""
        return {**self._data, "svg": self.strip()}

    @cached_property
    def _data(self) -> dict[str, Any]:
        order = list(dict.fromkeys(x.name for x in self.frames))
        said = [(x.title, x.said(), order.index(x.name)) for x in self.frames]
        frames = [
            {"phase": "forward", "marked": [], "title": title, "equations": words, "place": place}
            for title, words, place in said
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
    if (count := len(program.nests)) > limit:
        raise ValueError(
            f"{function}: {called(compiled)} has {count:,} statements, more than limit={limit}; compile a "
            "smaller part of it, raise limit=, or look at the whole with viz.draw_schedule"
        )
    name = getattr(compiled.function, "__name__", "").replace("<lambda>", "") or "f"
    head = f"def {name}({', '.join(inspect.signature(compiled.function).parameters)}):"
    passes: Any = type("Passes", (_Passes, type(program)), {})(program, head)
    seen, source = passes.seen, [(text, None) for text in program.source.rstrip().split("\n")]
    found = [
        (name, words, [*compared(old, now)]) for (*_, old), (name, words, now) in pairwise(seen[:1] + seen)
    ]
    last = [(text, None) for text, _ in seen[-1][-1]]
    if isinstance(program, NumpyProgram):
        words = "Each statement becomes a call of NumPy, so all loops are gone. They stand below."
        found.append(("source", words, [*compared([], source), *compared(last, [])]))
    else:
        words = "What is compiled. It names the arguments, and makes small arrays of its own."
        found.append(("source", words, [*compared(last, source)]))
    counts, number = Counter(name for name, *_ in found), Counter[str]()
    frames: list[PassFrame] = []
    for name, words, lines in found:
        number[name] += 1
        title = name.capitalize() + f", {number[name]} of {counts[name]}" * (counts[name] > 1)
        frames.append(PassFrame(name, title, words, tuple(lines), look))
    return ProgramSteps(frames, f"{called(compiled)}, pass by pass: {counted(len(frames), 'frame')}", look)
