"""A small, safe language for computations on Tensors, in which the Explorer's texts are written.

The text is read with `ast` and evaluated here, node by node. It is never run as Python. A name stands for a
Tensor or a number, so a text can reach nothing else. Operators are built lazily first, so their shapes are
known, and those that are too large are refused before anything is allocated or computed.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NoReturn

import numpy as np

import needle as ndl
from needle import Tensor, ops
from needle.autograd import adjoints

from .functions import FUNCTIONS, MAKE_CONSTANTS
from .reading import DEEPEST, MOST_CHARACTERS, ExpressionError, read
from .values import (
    LARGEST_INTEGER,
    LARGEST_TENSOR,
    Budget,
    Datum,
    Number,
    arithmetic,
    tensor_of,
    variable,
    whole_number,
)

__all__ = ["FUNCTIONS", "MOST_CHARACTERS", "ExpressionError", "Result", "run"]

MOST_STEPS = 10_000  # each turn of a loop counts
ADJOINTS = 5  # together with all adjoints, so many times as many nodes and elements
MOST_REPEATS = 50

LIKE = 0.7  # from 0 to 1, how alike two names must be for one to be suggested

_MODULES = ("np", "numpy", "math", "torch", "ndl", "needle", "nn", "viz")

# Names that people know from elsewhere, and what to write instead.
_MEANT = {
    **dict.fromkeys(_MODULES, "all functions are there without it, such as exp(x)"),
    **dict.fromkeys(("pow", "power"), "write a ** b"),
    **dict.fromkeys(("dot", "mm", "bmm", "inner", "mul", "multiply"), "write a @ b or a * b"),
    **dict.fromkeys(("shape", "size", "ndim", "len", "dtype"), "the drawing shows it; write it in digits"),
    **dict.fromkeys(("numpy", "item", "show"), "the value of the last line is shown"),
    **dict.fromkeys(("array", "arange", "linspace", "range", "list"), "write the numbers: [0, 1, 2]"),
    "ln": "the natural logarithm is log(x)",
    "log2": "write log(x) / log(2)",
    "log10": "write log(x) / log(10)",
    "e": "write exp(1)",
    "tan": "write sin(x) / cos(x)",
    "square": "write x ** 2",
    "eye": "write its rows: [[1, 0], [0, 1]]",
    "data": "a value without its history is detach(x)",
    "grad": "the gradient of y with respect to x is grad(y, x)",
    "backward": "the gradients of the last line are shown anyway; to compute with one, write grad(y, x)",
    "var": "write mean((x - mean(x)) ** 2)",
    "std": "write sqrt(mean((x - mean(x)) ** 2))",
}
_LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")

#: What an operator raises for a user's mistake. Any other exception is a mistake of ours, and must be seen.
TROUBLES = (ArithmeticError, IndexError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True)
class Result:
    """What a text computes.

    Attributes
    ----------
    value : Tensor
        The value of its last line, computed, with its graph.
    name : str
        The name of the value, also in `names`.
    names : dict from str to Tensor
        All names. If h was assigned to several times, its earlier values are h₀, h₁ and so on.
    line : int
        The number of the last line.
    """

    value: Tensor
    name: str
    names: dict[str, Tensor]
    line: int

    @property
    def leaves(self) -> dict[str, Tensor]:
        """The variables that the value depends on, by name.

        One has no gradient if the value depends on it only in steps, as through a comparison.
        """
        if not self.value.requires_grad:
            return {}
        leading_there = set(ndl.autograd.find_topo_sort([self.value]))
        return {
            name: x
            for name, x in self.names.items()
            if x in leading_there and x.is_leaf() and x.requires_grad
        }

    def backward(self) -> None:
        """Set `grad` on every node that leads to the value: the derivative of the sum of its elements.

        Raises
        ------
        ExpressionError
            If the value is a constant, or if there would be too many adjoints, or too large ones. Nothing is
            computed then.
        """
        if not self.value.requires_grad:
            reason = f"{self.name} is a constant and has no gradient; compute it from numbers with a name"
            raise ExpressionError(reason, self.line, 1)
        try:
            with ndl.lazy():
                found = list(adjoints(self.value))
                partials = [partial for adjoint in found for _, partial in adjoint.partials]
                Budget(ADJOINTS).admit([*partials, *(adjoint.total for adjoint in found)])
        except TROUBLES as error:
            raise ExpressionError(f"the gradient can't be computed: {error}", self.line, 1) from None
        for node, _, total in found:
            node.grad = total


def run(text: str, *, seed: int = 0, given: Mapping[str, Tensor] | None = None) -> Result:
    """Run a text.

    A text is lines (or parts of lines, with ``;`` between them), each an assignment or an expression::

        X = [[1, 2], [3, 4]]       # numbers with a name are a variable, which gets a gradient
        W = randn(2, 3) / 10       # a variable too: it is computed from numbers alone
        y = constant([[1], [0]])   # not a variable
        h = relu(X @ W + y)
        for i in range(3):         # at most 50 times
            h = tanh(h) / 2
        h.sum()                    # the last line is the value: of an assignment, what was assigned

    ::

        statement   =  name = expr | name, name = expr, expr | name += expr (also -=, *=, /=, **=, @=)
                    |  for name in range(number): statements | expr
        expr        =  number | name | [expr, …] | (expr, …) | expr operator expr | -expr | +expr
                    |  expr[index, …] | function(expr, …, keyword=expr) | expr.function(…) | expr.T
        operator    =  + - * / ** @ < <= > >=
        index       =  whole number | start:stop:step

    The functions are those of `FUNCTIONS`; ``pi`` is a number. A function that takes a Tensor first is also a
    method of Tensors. You write axes and shapes as numbers. There are no strings, no other attributes, and
    nothing else of Python.

    Parameters
    ----------
    text : str
        At most `MOST_CHARACTERS` characters.
    seed : int
        For ``rand`` and ``randn``: the same text gives the same numbers.
    given : mapping from str to Tensor, optional
        Variables that have a value already, and keep it.

    Returns
    -------
    Result

    Raises
    ------
    ExpressionError
        If the text is not part of this language or beyond its limits, or if an operation fails.
    """
    tree = read(text)
    given = given or {}
    program = _Program(np.random.default_rng(seed), given=given, names=dict(given))
    try:
        with ndl.lazy(), ndl.no_grad(False):
            program.run(tree.body)
            return program.result(tree.body[-1])
    except ExpressionError as error:
        error.names = program.tensors()
        raise error.with_traceback(None) from None


@dataclass
class _Program:
    """A text that is running: what its names stand for, and what it has used up."""

    rng: np.random.Generator
    given: Mapping[str, Tensor] = field(default_factory=dict)
    value: Datum = None  # what the last statement stands for
    names: dict[str, Tensor | int] = field(default_factory=dict)
    earlier: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    constants: set[Tensor] = field(default_factory=set)  # they stay what they are under a name
    budget: Budget = field(default_factory=Budget)
    steps: int = 0
    depth: int = 0

    def tensors(self) -> dict[str, Tensor]:
        now = {name: x for name, x in self.names.items() if isinstance(x, Tensor)}
        return now | {name + str(i).translate(_LOWERED): x for (name, i), x in self.earlier.items()}

    def result(self, last: ast.stmt) -> Result:
        """The value of the last line, which has run."""
        names = self.tensors()
        value = self.value
        if value is None:
            _refuse(last, "the last line has no value; end with an expression, or with an assignment")
        if not isinstance(value, Tensor):
            value = self.apply(last, tensor_of, value)
        name = next((name for name, x in names.items() if x is value), None)
        if name is None:
            name = next(name for name in ("result", "value", "output", "last line") if name not in names)
        return Result(value, name, {**names, name: value}, last.lineno)

    # Statements

    def run(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.value = None
            match statement:
                case ast.Expr(value=expression):
                    self.value = self.evaluate(expression)
                case ast.Assign(targets=targets, value=expression):
                    value = self.evaluate(expression)
                    for target in targets:
                        self.assign(target, value)
                case ast.AugAssign(target=ast.Name(), op=sign, value=expression):
                    left = ast.Name(statement.target.id)  # type: ignore[union-attr]
                    left = ast.copy_location(left, statement.target)
                    result = ast.copy_location(ast.BinOp(left, sign, expression), statement)
                    self.assign(statement.target, self.evaluate(result))
                case ast.AugAssign(target=target):
                    self.assign(target, None)
                case ast.For(target=ast.Name(id=name), iter=repeats, body=body, orelse=[]):
                    for i in range(self.repeats(repeats)):
                        self.check_name(statement.target, name)
                        self.names[name] = i
                        self.run(body)
                case _:
                    _refuse(
                        statement,
                        f"{_word(statement)} isn't supported here; write assignments such as y = x + 1, "
                        "and for i in range(3):",
                    )

    def assign(self, target: ast.expr, value: Datum) -> None:
        match target:
            case ast.Name(id=name):
                self.check_name(target, name)
                value = self.apply(target, self.named, value)
                before = self.names.get(name)
                self.names[name] = self.value = value
                if isinstance(before, Tensor) and not self.has_name(before):
                    self.earlier[name, sum(name == other for other, _ in self.earlier)] = before
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                if not isinstance(value, list) or len(value) != len(targets):
                    got = f"{len(value)} values" if isinstance(value, list) else "one value"
                    _refuse(target, f"there are {len(targets)} names, but {got}; give each name a value")
                for one, x in zip(targets, value, strict=True):
                    self.assign(one, x)
            case _:
                _refuse(target, "only a name can be assigned to, such as y = x + 1; Tensors never change")

    def named(self, x: Datum) -> Tensor:
        """What a name will stand for: a new variable, if `x` was computed from numbers alone."""
        if isinstance(x, Tensor) and (x.requires_grad or x in self.constants or x.dtype.kind != "f"):
            return x
        return variable(x)

    def has_name(self, x: Tensor) -> bool:
        return any(x is other for named in (self.names, self.earlier) for other in named.values())

    def check_name(self, node: ast.AST, name: str) -> None:
        if name in FUNCTIONS or name == "range":
            _refuse(node, f"{name} is a function; choose another name")
        if name in self.given:
            _refuse(node, f"{name} has its value already; choose another name")

    def repeats(self, node: ast.expr) -> int:
        match node:
            case ast.Call(func=ast.Name(id="range"), args=[count], keywords=[]):
                return self.apply(node, whole_number, self.evaluate(count), "range", 0, MOST_REPEATS)
        _refuse(node, f"a loop goes over range(n), with a number n of at most {MOST_REPEATS}")

    # Expressions

    def evaluate(self, node: ast.expr) -> Datum:
        self.steps += 1
        if self.steps > MOST_STEPS:
            _refuse(node, f"more than {MOST_STEPS:,} steps; repeat less")
        if self.depth >= DEEPEST:
            _refuse(node, f"more than {DEEPEST} operations are nested; give parts of the expression a name")
        self.depth += 1
        try:
            return self._evaluate(node)
        finally:
            self.depth -= 1

    def _evaluate(self, node: ast.expr) -> Datum:
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return number if abs(number) <= LARGEST_INTEGER else float(number)
            case ast.Name(id=name):
                return self.look_up(node, name)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return [self.evaluate(part) for part in parts]
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                x = self.evaluate(operand)
                return self.apply(node, _negate, x) if isinstance(sign, ast.USub) else x
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
                return self.apply(
                    node, _combine, _OPERATORS[type(sign)], self.evaluate(left), self.evaluate(right)
                )
            case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _COMPARISONS:
                return self.apply(
                    node, _compare, _COMPARISONS[type(sign)], self.evaluate(left), self.evaluate(right)
                )
            case ast.Compare(ops=[_, _, *_]):
                _refuse(node, "compare two at a time: (0 < x) * (x < 1)")
            case ast.Subscript(value=of, slice=index):
                x = self.evaluate(of)
                if not isinstance(x, Tensor):
                    _refuse(node, "only a Tensor has parts [ ]; give the list a name first")
                return self.apply(node, ops.getitem, x, self.index(index))
            case ast.Attribute(value=of, attr="T"):
                return self.apply(node, ops.transpose, self.apply(of, tensor_of, self.evaluate(of)))
            case ast.Attribute(value=ast.Name(id=module)) if module in _MODULES and module not in self.names:
                self.look_up(node, module)
            case ast.Attribute(attr=name):
                way_out = "there are .T and calls such as .sum()"
                way_out = _MEANT.get(name) or (f"call it: .{name}()" if name in FUNCTIONS else way_out)
                _refuse(node, f"a Tensor has no value .{name} here; {way_out}")
            case ast.Call():
                return self.call(node)
        _refuse(
            node,
            f"{_word(node)} isn't supported here; there are numbers, names, lists, + - * / ** @ < <= > "
            ">=, x[i] and calls of functions",
        )

    def look_up(self, node: ast.expr, name: str) -> Tensor | Number:
        if name in self.names:
            return self.names[name]
        if name == "pi":
            return math.pi
        if name in FUNCTIONS:
            _refuse(node, f"{name} is a function; call it: {FUNCTIONS[name].usage}")
        way_out = _hint(name, [*self.names, *FUNCTIONS]) or (
            f"use {' or '.join(self.given)}" if self.given else f"write {name} = 1 in a line before"
        )
        _refuse(node, f"“{name}” has no value yet; {way_out}")

    def call(self, node: ast.Call) -> Datum:
        match node.func:
            case ast.Name(id=name):
                arguments = []
            case ast.Attribute(value=of, attr=name):
                arguments = [self.apply(of, tensor_of, self.evaluate(of))]
            case _:
                _refuse(node, "only functions can be called, by their names, such as exp(x)")
        function = FUNCTIONS.get(name)
        if function is None or (arguments and not function.is_method):
            hint = _hint(name, FUNCTIONS) or f"the functions are {', '.join(FUNCTIONS)}"
            what = "method of Tensors" if arguments else "function"
            _refuse(node, f"{name} isn't a {what} here; {hint}")
        keywords = {}
        arguments += [self.evaluate(argument) for argument in node.args]
        for argument in node.keywords:
            if argument.arg is None:
                _refuse(argument, "** before an argument isn't supported here; write each by its name")
            keywords[argument.arg] = self.evaluate(argument.value)
        result = self.apply(node, function, arguments, keywords, self.rng)
        if name in MAKE_CONSTANTS:
            self.constants.add(result)
        return result

    def index(self, node: ast.expr) -> Any:
        match node:
            case ast.Tuple(elts=parts):
                return tuple(self.index(part) for part in parts)
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*(part and self.index(part) for part in (lower, upper, step)))
        x = self.evaluate(node)
        return self.apply(node, whole_number, x, "an index", -LARGEST_TENSOR, LARGEST_TENSOR)

    def apply(self, node: ast.AST, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a function, checked and computed. An error names the place in the text."""
        try:
            result = function(*arguments)
            if isinstance(result, Tensor):
                self.budget.admit([result])
                if any(x.requires_grad or x in self.constants for x in _tensors_in(arguments)):
                    self.constants.add(result)
            return result
        except ExpressionError:
            raise
        except TROUBLES as error:
            _refuse(node, str(error), error)


def _hint(name: str, known: Iterable[str]) -> str:
    """What to write instead of a name; empty if nothing is known."""
    close = get_close_matches(name, known, n=1, cutoff=LIKE)
    return _MEANT.get(name) or (f"did you mean {close[0]}?" if close else "")


def _refuse(node: ast.AST, reason: str, error: Exception | None = None) -> NoReturn:
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    end = getattr(node, "end_col_offset", 0) if getattr(node, "end_lineno", line) == line else 0
    failure = error.with_traceback(None) if error and hasattr(error, "op") else None
    raise ExpressionError(reason, line, column + 1, end + 1, failure) from None


def _word(node: ast.AST) -> str:
    """The name of a piece of syntax, for a sentence that goes on with "isn't supported"."""
    kinds = {
        "AnnAssign": "an annotation",
        "Starred": "* before a value",
        "GeneratorExp": "for within brackets",
        "ListComp": "for within brackets",
        "Constant": "this constant",
        "For": "this kind of loop",
    }
    return kinds.get(type(node).__name__, "this")


def _tensors_in(thing: Any) -> Iterator[Tensor]:
    if isinstance(thing, Tensor):
        yield thing
    elif isinstance(thing, (list, tuple, dict)):
        for item in thing.values() if isinstance(thing, dict) else thing:
            yield from _tensors_in(item)


def _negate(x: Datum) -> Datum:
    return -x if isinstance(x, (int, float)) else ops.negate(tensor_of(x))


def _combine(function: Callable[[Any, Any], Any], x: Datum, y: Datum) -> Datum:
    """``x + y`` and the like: of two numbers a number, else a Tensor."""
    if isinstance(x, (int, float)) and isinstance(y, (int, float)):
        return arithmetic(function, x, y)
    return function(_operand(x), _operand(y))


def _compare(function: Callable[[Any, Any], Any], x: Datum, y: Datum) -> Tensor:
    if isinstance(x, (int, float)) and isinstance(y, (int, float)):
        raise TypeError("these are two numbers; compare a Tensor with a number or with another Tensor")
    return function(_operand(x), _operand(y))


def _operand(x: Datum) -> Number | Tensor:
    return x if isinstance(x, (int, float)) else tensor_of(x)


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
}
_COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
