"""Read from LLVM's optimised code which loops over numbers became vector instructions.

LLVM marks the loops that it has vectorised, and there an operation says how many numbers it is about::

    %7 = fadd <8 x float> %5, %6

Two things would mislead who searched for that alone. A vectorised loop has a scalar one beside it for the
numbers that are left over, which bears the same mark. And ``call <8 x float> @llvm.sin.v8f32`` looks like one
instruction, but processors have none for it: it becomes eight calls of the C library's ``sinf``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Functions that are calls of the C library, if Intel's library of vector functions (SVML) has not taken
# their place: `__svml_sinf8`.
C_LIBRARY = frozenset(
    ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf", "erfc", "exp",
     "exp10", "exp2", "expm1", "fmod", "hypot", "ldexp", "lgamma", "log", "log10", "log1p", "log2", "pow",
     "powi", "sin", "sincos", "sinh", "tan", "tanh", "tgamma")
)  # fmt: skip

_LABEL = re.compile(r'^("[^"]+"|[-\w.$]+):', re.MULTILINE)
_TARGET = re.compile(r'label %("[^"]+"|[-\w.$]+)')
_MARK = re.compile(r"!llvm\.loop (!\d+)")
_NUMBER = re.compile(r"\b(?:float|double)\b")
_VECTOR = re.compile(r"<(?:vscale x )?(\d+) x (float|double)>")
_CALL = re.compile(r"\bcall\b[^@\n]*@(?:llvm\.)?(\w+)")


@dataclass(frozen=True)
class Loop:
    """An innermost loop over floating-point numbers.

    Attributes
    ----------
    lanes : int
        How many numbers an instruction is about; 1 where the loop was not vectorised.
    dtype : str
        Of these numbers: float32 or float64.
    calls : frozenset of str
        Functions of the C library that are called for each number.
    """

    lanes: int
    dtype: str
    calls: frozenset[str]


def number_loops(code: str) -> list[Loop]:
    """The innermost loops over floating-point numbers in a module of LLVM's; no loops over what is left."""
    marked = _vectorised_marks(code)
    loops = []
    for function in re.findall(r"^define .*?^}", code, re.MULTILINE | re.DOTALL):
        for header, body in _innermost_loops(_blocks(function)):
            is_unrolling_rest = ".prol" in header or ".epil" in header
            if not _NUMBER.search(body) or is_unrolling_rest:
                continue
            vectorised = not marked.isdisjoint(_MARK.findall(body))
            vectors = [(int(lanes), kind == "float") for lanes, kind in _VECTOR.findall(body)]
            if vectorised and not vectors:
                continue  # the numbers left over by a vectorised loop
            names = {name if name in C_LIBRARY else name.removesuffix("f") for name in _CALL.findall(body)}
            calls = frozenset(names & C_LIBRARY)
            single = (1, bool(re.search(r"\bfloat\b", body)))
            lanes, is_float32 = max(vectors) if vectorised and not calls else single
            loops.append(Loop(lanes, "float32" if is_float32 else "float64", calls))
    return loops


def _vectorised_marks(code: str) -> set[str]:
    """The names of the marks, such as ``!7``, that say that a loop was vectorised."""
    said = set(re.findall(r'^(!\d+) = !\{!"llvm\.loop\.isvectorized", i32 1\}', code, re.MULTILINE))
    marks = re.findall(r"^(!\d+) = distinct !\{(.*)\}$", code, re.MULTILINE)
    return {name for name, says in marks if not said.isdisjoint(says.split(", "))}


def _blocks(function: str) -> dict[str, str]:
    """The basic blocks of a function by their labels, the first one first."""
    first, *rest = _LABEL.split(function.partition("\n")[2])
    blocks = {"": first} if first.strip() else {}
    return blocks | dict(zip(rest[::2], rest[1::2], strict=True))


def _innermost_loops(blocks: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The label at which each loop without another one inside begins, and its code."""
    successors = {label: _TARGET.findall(code) for label, code in blocks.items()}
    predecessors: dict[str, list[str]] = {label: [] for label in blocks}
    for label, following in successors.items():
        for target in following:
            predecessors[target].append(label)
    bodies: dict[str, set[str]] = {}
    for latch, header in _edges_back(successors):
        body = bodies.setdefault(header, {header})
        waiting = [latch]
        while waiting:
            label = waiting.pop()
            if label not in body:
                body.add(label)
                waiting += predecessors[label]
    for header, body in bodies.items():
        if len(body & bodies.keys()) == 1:
            yield header, "".join(code for label, code in blocks.items() if label in body)


def _edges_back(successors: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    """The edges to a block on the way from the first block to where the edge begins."""
    entry = next(iter(successors))
    way = {entry: iter(successors[entry])}
    seen = {entry}
    while way:
        label = next(reversed(way))
        for target in way[label]:
            if target in way:
                yield label, target
            elif target not in seen:
                seen.add(target)
                way[target] = iter(successors[target])
                break
        else:
            del way[label]
