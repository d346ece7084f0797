"""Modes of a block of code: `lazy`, `no_grad`, `scope`, and for drawings `remember_constants`.

They hold within their ``with`` block and only in the thread that entered it, because they live in a context
variable: threads that train side by side do not disturb one another. `scope` is the block; a `Scope` is what
nodes remember of it.
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
#: call of a module makes one. With a NamedTuple, ``x + x`` on a scalar takes 4 % longer, and `no_grad` 20 %.
LAZY = 0  #: whether operators only build the graph; None if `needle.autograd.LAZY_MODE` decides
GRAD = 1  #: whether results keep the graph that gradients need
SCOPE = 2  #: the innermost block, a `Scope`, or None
CONSTANTS = 3  #: whether the results of constants alone remember their operator

#: The current mode, a tuple (lazy, grad, scope, constants).
mode: ContextVar[tuple[bool | None, bool, Scope | None, bool]] = ContextVar(
    "needle_mode", default=(None, True, None, False)
)


#: Whether nodes remember the line that made them.
remembers_lines = False
_files: set[str] = set()  # of this package: no line in them is the user's
_frame = sys._getframe


def remember_lines() -> None:
    """From now on nodes remember the line that made them. `import viz` asks for it: drawings show it."""
    global remembers_lines
    _files.update(str(path) for path in Path(__file__).parent.rglob("*.py"))
    remembers_lines = True


def line_of_user(frames: int) -> tuple[Any, int]:
    """Where in the program an operator was called: a code object, and the instruction in it.

    That is the first frame outside of this package, of those that are at least so many frames away. To look
    at one takes a twentieth of the time of a small operation. So `viz.lines` finds the line, if it is shown.
    """
    try:
        frame: Any = _frame(frames)
        while (code := frame.f_code).co_filename in _files:
            frame = frame.f_back
    except (ValueError, AttributeError):  # there are not so many
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

    It is in the place of `lazy`: while a function is traced, only its graph is built.
    """
    lazy = mode.get()[LAZY]
    return None if lazy is None or isinstance(lazy, bool) else lazy


@contextmanager
def no_grad(enabled: bool = True):
    """Within this block results are constants: no graph is kept.

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
    """Within this block results of constants remember `op` and `inputs`, though no gradient flows to them.

    A drawing of gradients needs that: the adjoint of W in ``X @ W`` uses the transpose of X, and X is often
    data. Outside of the block such results remember nothing, so that memory is freed.
    """
    lazy, grad, scope, _ = mode.get()
    token = mode.set((lazy, grad, scope, True))
    try:
        yield
    finally:
        mode.reset(token)


class scope:  # in small letters: it is used as `lazy` and `no_grad` are
    """Within this block nodes remember that they belong together; drawings show them as a group.

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
        if not isinstance(owner, str) and not hasattr(owner, "__weakref__"):
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
    """One call of a module, or one named block: nodes remember in which of them they were made.

    It keeps neither the module nor its input alive: a result may outlive its model without holding the
    parameters.

    Attributes
    ----------
    name : str
        The block's name, or the name of the module's class.
    who : str or weak reference to a Module
        Two scopes with the same `who` are of the same block or module.
    outer : Scope or None
        The call or block around it.
    given : sequence of weak references to arrays
        Those that the module was called with. Empty for a module within another one.
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
