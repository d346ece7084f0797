"""`draw_error`: the graph up to the operation that failed, drawn from the exception."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from types import FrameType

from needle.autograd import Value
from needle.graph import Op
from needle.nn import Module

from .constants import held
from .drawing import Drawing, drawing_of
from .graph_data import Graph
from .graph_reader import Failure, read_graph
from .names import caller_names, names_of
from .operators import symbol

__all__ = ["draw_error"]

NOT_READ = ("needle", "viz", "IPython", "ipykernel")  # the names in their functions say nothing to a reader


def draw_error(
    error: BaseException | None = None,
    *,
    names: Mapping[str, Value] | None = None,
    legend: bool = True,
    rankdir: str = "LR",
    limit: int | None = None,
    depth: int | None = None,
    style: str | None = None,
    show: Collection[str] | None = None,
) -> Drawing:
    """Draw the graph up to the operation that failed: the operator in red, and the shapes that met there.

    Parameters
    ----------
    error : exception, optional
        By default the one that you are handling (within ``except``), else the last one that Python or the
        notebook has shown. The exceptions that it was raised from count as well.
    names : dict from str to Tensor, optional
        What to call the variables. By default they have the names of your own variables, and of those in
        the functions that the exception passed through.
    legend, rankdir, limit, depth, style, show
        As for `draw`. The groups around the failing operator are always open.

    Returns
    -------
    Drawing

    Raises
    ------
    ValueError
        If there is no exception, or it was not raised by an operator.

    Examples
    --------
    >>> model(x)  # ValueError: matmul: (8, 4) @ (5, 2): inner sizes 4 and 5 differ
    >>> viz.draw_error()

    A script ends there, so it catches the exception:

    >>> try:
    ...     model(x)
    ... except ValueError as error:
    ...     viz.draw_error(error).save("error.svg")
    """
    failed = _of_operator(_given_or_last(error))
    known = names_of(names, sys._getframe(1))
    if names is None:
        known = _with_names_on_the_way(known, failed)
    failure = Failure(failed)
    # If a lazy operator failed on constants, new nodes stand for its operands: these are the reader's own.
    own = {held(x): x for x in known if x.is_leaf()}
    failure.inputs = [own.get(held(x), x) if x.is_leaf() and x not in known else x for x in failure.inputs]
    known[failure] = type(failed).__name__
    return drawing_of(
        lambda limit: read_graph([failure], known, limit=limit),
        lambda graph: f"graph up to {symbol(failure.op)}, which failed: {failure.message}",
        legend=legend, rankdir=rankdir, limit=limit, depth=depth, style=style, show=show,
        always_open=_around,
    )  # fmt: skip


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
            "draw_error: there was no exception yet; within `except … as error:` call draw_error(error)"
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


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, and those that it was raised from or while handling; each once."""
    seen: set[BaseException] = set()
    while error is not None and error not in seen:
        seen.add(error)
        yield error
        error = error.__cause__ or error.__context__


def _with_names_on_the_way(known: dict[Value, str], error: BaseException) -> dict[Value, str]:
    """The known names, and more from the functions that the exception passed through, the outermost first.

    A name that is taken already is not used again.
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
