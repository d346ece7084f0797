"""Modes of a block of code: `lazy`, `no_grad`, `scope`, and for drawings `remember_constants`.

A mode holds within its ``with`` block and only in the thread that entered the block, because it is kept in a
context variable: threads that train at the same time do not affect one another. `scope` is the block; a
`Scope` is the record of that block which nodes keep.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import Any
from weakref import ref

from .graph import Node

#: The positions of the fields in a mode. A mode is a plain tuple because every operator reads it and every
#: call of a module makes one. With a NamedTuple, ``x + x`` on a scalar takes some 5 % longer, and
#: entering `no_grad` 22 %.
LAZY = 0  #: whether operators only build the graph; None if `needle.autograd.LAZY_MODE` decides
GRAD = 1  #: whether results keep the graph that gradients need
SCOPE = 2  #: the innermost block, a `Scope`, or None
CONSTANTS = 3  #: whether the results of constants alone remember their operator

#: The current mode, a tuple (lazy, grad, scope, constants).
mode: ContextVar[tuple[Any, bool, Scope | None, bool]] = ContextVar(
    "needle_mode", default=(None, True, None, False)
)


#: Whether nodes remember the line that made them.
remembers_lines = False
_files: set[str] = set()  # of this package: no line in them is the user's
_frame = sys._getframe


def remember_lines() -> None:
    """Let nodes remember the line of the program that made them. `import viz` calls this, to show them."""
    global remembers_lines
    _files.update(str(path) for path in Path(__file__).parent.rglob("*.py"))
    remembers_lines = True


def line_of_user(frames: int) -> tuple[Any, int]:
    """Where in the program an operator was called: a code object, and the instruction in it.

    The search begins `frames` stack frames up and stops at the first frame outside this package. Each frame
    takes a twentieth of the time of a small operation. The line number is computed later, by `viz.lines`, and
    only if a drawing shows it.
    """
    try:
        frame: Any = _frame(frames)
        while (code := frame.f_code).co_filename in _files:
            frame = frame.f_back
    except (ValueError, AttributeError):  # the stack is not that deep
        return _frame().f_code, 0
    return code, frame.f_lasti


@contextmanager
def lazy(enabled: bool = True):
    """Within this block only the graph is built: a value is computed when it is asked for.

    ``lazy(False)`` is the opposite: eager within the block, whatever `LAZY_MODE` says.
    """
    _, grad, scope, constants = mode.get()
    token = mode.set((enabled, grad, scope, constants))
    try:
        yield
    finally:
        mode.reset(token)


def tracing() -> Any:
    """The `needle.compiler.trace.Trace` that notes what this thread does; None if nothing is traced.

    The trace is stored in the mode's field `lazy`, because tracing builds the graph without computing.
    """
    lazy = mode.get()[LAZY]
    return None if lazy is None or isinstance(lazy, bool) else lazy


@contextmanager
def no_grad(enabled: bool = True):
    """Within this block, results are constants: they keep no graph.

    ``no_grad(False)`` is the opposite: the graph is kept, even inside a block of `no_grad`.
    """
    lazy, _, scope, constants = mode.get()
    token = mode.set((lazy, not enabled, scope, constants))
    try:
        yield
    finally:
        mode.reset(token)


@contextmanager
def remember_constants():
    """Within this block, results of constants keep `op` and `inputs`, though no gradient flows to them.

    A drawing of gradients needs that: the adjoint of W in ``X @ W`` uses the transpose of X, and X is often
    data. Outside the block, such results keep neither, so that memory is freed.
    """
    lazy, grad, scope, _ = mode.get()
    token = mode.set((lazy, grad, scope, True))
    try:
        yield
    finally:
        mode.reset(token)


class scope:  # in small letters: it is used as `lazy` and `no_grad` are
    """Within this block, nodes are marked as belonging together; drawings show them as a group.

    Each call of a module is such a block.

    Parameters
    ----------
    owner : str or Module
        The block's name, or the module that is called.
    given : sequence
        The arguments of that call.

    Examples
    --------
    >>> for t, x in enumerate(inputs, 1):
    ...     with ndl.scope(f"t = {t}"):
    ...         h = ndl.tanh(x @ W + h @ U)
    """

    __slots__ = ("given", "owner", "tokens")

    def __init__(self, owner: Any, given: Sequence[Any] = ()):
        if not isinstance(owner, str) and not hasattr(type(owner), "__weakref__"):
            raise TypeError(f"scope: needs a name or a module, got {owner!r}; write scope(str(…))")
        self.owner = owner
        self.given = given
        self.tokens: list = []  # more than one if recursion enters the same block again

    def __enter__(self) -> None:
        lazy, grad, outer, constants = mode.get()
        self.tokens.append(mode.set((lazy, grad, Scope(self.owner, outer, self.given), constants)))

    def __exit__(self, *error: object) -> None:
        mode.reset(self.tokens.pop())


class Scope:
    """One call of a module, or one named block. Each node keeps the scope in which it was made.

    A scope keeps neither the module nor its input alive, so a result that outlives its model does not hold
    the parameters in memory.

    Attributes
    ----------
    name : str
        The block's name, or the name of the module's class.
    who : str or weak reference to a Module
        The name of the block, or the module. Scopes of the same module have the same `who`.
    outer : Scope or None
        The call or block around it.
    given : sequence of weak references to arrays
        The arrays that the module was called with; empty if the call is inside the call of another module.
    number : int
        A serial number.
    """

    __slots__ = ("given", "name", "number", "outer", "who")
    numbers = count()

    def __init__(self, owner: Any, outer: Scope | None, given: Sequence[Any] = ()):
        self.outer = outer
        outermost = given and (outer is None or isinstance(outer.who, str))
        self.given = _weakly(given) if outermost else ()
        self.number = next(self.numbers)
        if isinstance(owner, str):
            self.name = owner
            self.who: str | ref = owner
        else:
            self.name = type(owner).__name__
            self.who = ref(owner)

    @property
    def owner(self) -> Any:
        """The name of the block; or the module, None once it is gone."""
        return self.who if isinstance(self.who, str) else self.who()

    def __reduce__(self):
        return Scope, (self.name, self.outer)  # a copy of a result does not copy its model


def _weakly(given: Sequence[Any]) -> list[ref]:
    """Weak references to the arrays of the nodes that a module is called with."""
    nodes: list[Any] = [x for x in given if isinstance(x, Node)]
    arrays = [node._data for node in nodes]
    return [ref(array) for array in arrays if type(array).__weakrefoffset__]
