"""Names: what the source of a program calls its arrays, loops and functions, and what its comments say.

In the source of ``relu(x @ W + b)``, `x`, `W` and `b` keep the names by which the function knows them;
`matmul1`, `add1` and `relu1` are called after their operators; loops have the variables i, j, k; and the
comment above them is ``# MatMul, Add, ReLU``.
"""

from __future__ import annotations

import keyword
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from ..backend_ndarray.scalar_functions import SCALAR_FUNCTIONS
from .lower import Maker, Nest

PAGE = 100  # characters in a line of the source, at most
_LETTERS = "ijklmnopqrstuvw"
_DEEPEST = 64  # loops


def letter_of(depth: int) -> str:
    """The variable of a loop inside of so many others."""
    return _LETTERS[depth] if depth < len(_LETTERS) else f"i{depth}"


#: Data types, as the source names them.
TYPES = ("float32", "float64", "int64", "int32", "uint8", "bool_")

_WORDS = """
np add_at int plus matmul add_matmul part local sgemm dgemm range abs inf nan
step scan s steps status start stop
cuda thread lane row item mark shares numbers warp_total block_total columns_total
"""

#: Names that mean something else in the source than a buffer.
RESERVED = {*keyword.kwlist, *TYPES, *_WORDS.split()}
RESERVED |= {name for depth in range(_DEEPEST) for name in (letter_of(depth), f"share{depth}")}
RESERVED |= {
    f"{name}_{t}" for name in (*SCALAR_FUNCTIONS, "local", "shares", "numbers") for t in (*TYPES, "bool")
}


class Names:
    """Names for the source, each once."""

    def __init__(self) -> None:
        self._used: set[str] = {*SCALAR_FUNCTIONS, *RESERVED}
        self._counts: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(1))

    def numbered(self, op: Any) -> str:
        """A name for what an operator computes on the way: `relu1`, `relu2` and so on."""
        base = words_of(op).lower()
        name = next(x for i in self._counts[base] if (x := f"{base}{i}") not in self._used)
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
        name = f"v{name}" if name[0].isdigit() or name.startswith("own_") else name
        if name in self._used and all_words[:1] != words[:1]:
            name = f"{name}_{all_words[0]}"
        numbered = (f"{name}_{number}" for number in count(2))
        found = name if name not in self._used else next(x for x in numbered if x not in self._used)
        self._used.add(found)
        return found


# Comments


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


def words_of(op: Any) -> str:
    """An operator's name without what only tells its kinds apart: "Add" for EWiseAdd and AddScalar."""
    return type(op).__name__.removeprefix("EWise").removesuffix("Scalar")


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


_MOST_WORDS = 3  # in the name of such a function


def name_for(nests: Iterable[Nest]) -> str:
    """What a function is called that computes this: ``linear_relu``."""
    makers = makers_of(_main(nests))
    modules = {maker.scope.name: None for maker in makers if maker.scope is not None}
    operators = {words_of(maker.op): None for maker in makers}
    return "_".join(list(modules or operators)[:_MOST_WORDS]).lower() or "copy"
