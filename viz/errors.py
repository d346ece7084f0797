"""Where an operation failed: the graph up to there, drawn from the exception."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from types import FrameType

from needle.autograd import Value
from needle.graph import Op
from needle.nn import Module

from .drawing import Drawing, check_size, scaled
from .facts import showing
from .names import caller_names, names_of
from .operators import symbol
from .plain import Graph
from .trace import Failure, trace

__all__ = ["draw_error"]

NOT_READ = ("needle", "viz", "IPython", "ipykernel")  # packages whose functions' variables say nothing


def draw_error(
    error: BaseException | None = None,
    *,
    names: Mapping[str, Value] | None = None,
    legend: bool = True,
    rankdir: str = "LR",
    limit: int | None = None,
    depth: int | None = None,
    style: str = "needle",
    show: Collection[str] | None = None,
) -> Drawing:
    """Draw the graph up to the operation that failed: the operator in red, and the shapes that met there.

    Parameters
    ----------
    error : exception, optional
        By default the one that is handled at the moment (within ``except``), else the last one that was
        shown by Python or a notebook. What it was raised from is looked at as well.
    names : dict from str to Tensor, optional
        What to call the variables. By default they are called as in the caller, and as in the functions that
        the exception passed through.
    legend, rankdir, limit, depth, style, show
        As for `draw`. A group with the failing operator in it is always open.

    Returns
    -------
    Drawing

    Raises
    ------
    ValueError
        If there is no exception, or no operator raised it.

    Examples
    --------
    >>> model(x)  # ValueError: matmul: (8, 4) @ (5, 2): inner sizes 4 and 5 differ
    >>> viz.draw_error()

    In a script, which ends there:

    >>> try:
    ...     model(x)
    ... except ValueError as error:
    ...     viz.draw_error(error).save("error.svg")
    """
    check_size("limit", limit, 1)
    check_size("depth", depth, 0)
    failed = _of_operator(_given_or_last(error))
    known = names_of(names, sys._getframe(1))
    if names is None:
        known = _with_names_on_the_way(known, failed)
    failure = Failure(failed)
    known[failure] = type(failed).__name__
    graph, opened = scaled(lambda limit: trace([failure], known, limit=limit), limit, depth)
    title = f"graph up to {symbol(failure.op)}, which failed: {failure.message}"
    return Drawing(
        showing(graph, show),
        title,
        opened=opened | _around(graph),
        legend=legend,
        rankdir=rankdir,
        style=style,
    )


def _around(graph: Graph) -> set[str]:
    """The groups that the failing operator is in."""
    parents = {group.key: group.parent for group in graph.groups}
    group = next((variable.group for variable in graph.variables if variable.kind == "failed"), "")
    found: set[str] = set()
    while group:
        found.add(group)
        group = parents[group]
    return found


def _given_or_last(error: BaseException | None) -> BaseException:
    if error is not None:
        if not isinstance(error, BaseException):
            raise TypeError(f"draw_error: needs an exception, got {type(error).__name__}")
        return error
    last = sys.exception() or getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if last is None:
        raise ValueError(
            "draw_error: no exception was shown yet; within `except … as error:` call draw_error(error)"
        )
    return last


def _of_operator(error: BaseException) -> BaseException:
    """The exception that an operator raised: `error`, or one that it was raised from."""
    for candidate in _chain(error):
        if isinstance(getattr(candidate, "op", None), (Op, Module, str)) and getattr(
            candidate, "inputs", None
        ):
            return candidate
    raise ValueError(
        f"draw_error: {type(error).__name__} ({error}) has no graph: it was not raised by an operator on "
        "Tensors"
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and what it was raised from or while handling, and the parts of groups; each once."""
    waiting, seen = [error], set()
    while waiting:
        candidate = waiting.pop(0)
        if id(candidate) in seen:
            continue
        seen.add(id(candidate))
        yield candidate
        parts = candidate.exceptions if isinstance(candidate, BaseExceptionGroup) else ()
        waiting += filter(None, [candidate.__cause__, candidate.__context__, *parts])


def _with_names_on_the_way(known: dict[Value, str], error: BaseException) -> dict[Value, str]:
    """Names for what has none yet, from the functions that the exception passed through, the outermost first.

    A name that stands for something else already is not given again.
    """
    known = dict(known)
    taken = set(known.values())
    for frame in _frames(error):
        for value, name in caller_names(frame).items():
            if value not in known and name not in taken:
                known[value] = name
                taken.add(name)
    return known


def _frames(error: BaseException) -> Iterator[FrameType]:
    traceback = error.__traceback__
    while traceback is not None:
        package = str(traceback.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if package not in NOT_READ:
            yield traceback.tb_frame
        traceback = traceback.tb_next
