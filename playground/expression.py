"""A small, safe language for computations on Tensors, in which the Explorer's texts are written.

The text is read with `ast` and evaluated here, node by node. It is never run as Python. A name stands for a
Tensor or a number, so a text can reach nothing else. Operators are built lazily first, so their shapes are
known, and those that are too large are refused before anything is allocated or computed.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NoReturn

import numpy as np

import needle as ndl
from needle import Tensor, nn, ops
from needle.autograd import TensorTuple, Value, adjoints

from .reading import DEEPEST, LARGEST_NUMBER, MOST_CHARACTERS, ExpressionError, read

__all__ = ["FUNCTIONS", "MOST_CHARACTERS", "ExpressionError", "Result", "run"]

MOST_STEPS = 10_000  # each turn of a loop counts
LARGEST_INTEGER = 2**53  # larger whole numbers become floating-point numbers

MOST_AXES = 6
LARGEST_TENSOR = 10_000  # elements. A matrix product of such Tensors takes a million multiplications at most.
MOST_ELEMENTS = 200_000  # of all Tensors together
MOST_NODES = 400
ADJOINTS = 5  # together with all adjoints, so many times as many nodes and elements
MOST_REPEATS = 50

Number = int | float
Datum = Any  # what a piece of text can stand for: a Number, a Tensor, or a list of these

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
# Functions of one Tensor's elements, and the names of those that compare two Tensors.
_OF_TWO = {"max": "maximum", "min": "minimum"}

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
                _Budget(ADJOINTS).admit([*partials, *(adjoint.total for adjoint in found)])
        except TROUBLES as error:
            raise ExpressionError(f"the gradient cannot be computed: {error}", self.line, 1) from None
        for node, _, total in found:
            node.grad = total


def run(text: str, *, seed: int = 0) -> Result:
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

    Returns
    -------
    Result

    Raises
    ------
    ExpressionError
        If the text is not part of this language or beyond its limits, or if an operation fails.
    """
    tree = read(text)
    program = _Program(np.random.default_rng(seed))
    try:
        with ndl.lazy(), ndl.no_grad(False):
            program.run(tree.body)
            return program.result(tree.body[-1])
    except ExpressionError as error:
        error.names = program.tensors()
        raise error.with_traceback(None) from None


class _Budget:
    """Count nodes and elements, and compute only what stays within the limits."""

    def __init__(self, times: int = 1) -> None:
        self.most_nodes = times * MOST_NODES
        self.most_elements = times * MOST_ELEMENTS
        self.elements = 0
        self.known: set[Value] = set()

    def admit(self, values: Sequence[Value]) -> None:
        """Compute lazy nodes and all that leads to them.

        If they are too many or too large, raise ValueError before anything is computed.
        """
        new = []
        waiting = list(values)
        while waiting:
            node = waiting.pop()
            if node not in self.known:
                self.known.add(node)
                new.append(node)
                waiting += node.inputs
        if len(self.known) > self.most_nodes:
            raise ValueError(
                f"the graph would have more than {self.most_nodes:,} nodes, the most it may have; use fewer"
            )
        for node in new:
            tensors: Sequence[Any] = node.specs if isinstance(node, TensorTuple) else [node]
            for tensor in tensors:
                _check_shape(tensor.shape)
                self.elements += math.prod(tensor.shape)
        if self.elements > self.most_elements:
            raise ValueError(
                f"all Tensors together would have more than {self.most_elements:,} elements, the most that "
                "they may have; use smaller ones"
            )
        for value in values:
            value.realize_cached_data()


def _check_shape(shape: Sequence[int]) -> None:
    if len(shape) > MOST_AXES:
        raise ValueError(
            f"a shape of {len(shape)} axes has more axes than {MOST_AXES}, the most it may have; use fewer"
        )
    if math.prod(shape) > LARGEST_TENSOR:
        raise ValueError(
            f"a shape {tuple(shape)} has {math.prod(shape):,} elements; it may have at most "
            f"{LARGEST_TENSOR:,}, such as (100, 100)"
        )


@dataclass
class _Program:
    """A text that is running: what its names stand for, and what it has used up."""

    rng: np.random.Generator
    value: Datum = None  # what the last statement stands for
    names: dict[str, Tensor | int] = field(default_factory=dict)
    earlier: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    constants: set[Tensor] = field(default_factory=set)  # they stay what they are under a name
    budget: _Budget = field(default_factory=_Budget)
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
            value = self.apply(last, self.tensor, value)
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
                        f"{_word(statement)} not part of this language; write assignments such as y = x + 1, "
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

    def has_name(self, x: Tensor) -> bool:
        return any(x is other for named in (self.names, self.earlier) for other in named.values())

    def check_name(self, node: ast.AST, name: str) -> None:
        if name in FUNCTIONS or name == "range":
            _refuse(node, f"{name} is a function; choose another name")

    def repeats(self, node: ast.expr) -> int:
        match node:
            case ast.Call(func=ast.Name(id="range"), args=[count], keywords=[]):
                return self.apply(node, _whole, self.evaluate(count), "range", 0, MOST_REPEATS)
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
                return self.apply(node, self.negate, x) if isinstance(sign, ast.USub) else x
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
                return self.apply(
                    node, self.combine, _OPERATORS[type(sign)], self.evaluate(left), self.evaluate(right)
                )
            case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _COMPARISONS:
                return self.apply(
                    node, self.compare, _COMPARISONS[type(sign)], self.evaluate(left), self.evaluate(right)
                )
            case ast.Compare(ops=[_, _, *_]):
                _refuse(node, "compare two at a time: (0 < x) * (x < 1)")
            case ast.Subscript(value=of, slice=index):
                x = self.evaluate(of)
                if not isinstance(x, Tensor):
                    _refuse(node, "only a Tensor has parts [ ]; give the list a name first")
                return self.apply(node, ops.getitem, x, self.index(index))
            case ast.Attribute(value=of, attr="T"):
                return self.apply(node, ops.transpose, self.apply(of, self.tensor, self.evaluate(of)))
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
            f"{_word(node)} not part of this language; there are numbers, names, lists, + - * / ** @ < <= > "
            ">=, x[i] and calls of functions",
        )

    def look_up(self, node: ast.expr, name: str) -> Tensor | Number:
        if name in self.names:
            return self.names[name]
        if name == "pi":
            return math.pi
        if name in FUNCTIONS:
            _refuse(node, f"{name} is a function; call it: {FUNCTIONS[name].usage}")
        way_out = _hint(name, [*self.names, *FUNCTIONS]) or f"assign to it before: {name} = 1"
        _refuse(node, f"{name} has no value yet; {way_out}")

    def call(self, node: ast.Call) -> Datum:
        match node.func:
            case ast.Name(id=name):
                arguments = []
            case ast.Attribute(value=of, attr=name):
                arguments = [self.apply(of, self.tensor, self.evaluate(of))]
            case _:
                _refuse(node, "only functions can be called, by their names, such as exp(x)")
        function = FUNCTIONS.get(name)
        if function is None or (arguments and not function.is_method):
            hint = _hint(name, FUNCTIONS) or f"the functions are {', '.join(FUNCTIONS)}"
            what = "method of Tensors" if arguments else "function"
            _refuse(node, f"{name} is not a {what} of this language; {hint}")
        keywords = {}
        arguments += [self.evaluate(argument) for argument in node.args]
        for argument in node.keywords:
            if argument.arg is None:
                _refuse(
                    argument, "** before an argument is not part of this language; write each by its name"
                )
            keywords[argument.arg] = self.evaluate(argument.value)
        result = self.apply(node, function, self, arguments, keywords)
        if name in _MAKE_CONSTANTS:
            self.constants.add(result)
        return result

    def index(self, node: ast.expr) -> Any:
        match node:
            case ast.Tuple(elts=parts):
                return tuple(self.index(part) for part in parts)
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*(part and self.index(part) for part in (lower, upper, step)))
        return self.apply(node, _whole, self.evaluate(node), "an index", -LARGEST_TENSOR, LARGEST_TENSOR)

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

    # Operators

    def negate(self, x: Datum) -> Datum:
        return -x if isinstance(x, (int, float)) else ops.negate(self.tensor(x))

    def combine(self, function: Callable[[Any, Any], Any], x: Datum, y: Datum) -> Datum:
        """``x + y`` and the like: of two numbers a number, else a Tensor."""
        if isinstance(x, (int, float)) and isinstance(y, (int, float)):
            return _arithmetic(function, x, y)
        return function(self.operand(x), self.operand(y))

    def compare(self, function: Callable[[Any, Any], Any], x: Datum, y: Datum) -> Tensor:
        if isinstance(x, (int, float)) and isinstance(y, (int, float)):
            raise TypeError("these are two numbers; compare a Tensor with a number or with another Tensor")
        return function(self.operand(x), self.operand(y))

    def operand(self, x: Datum) -> Number | Tensor:
        return x if isinstance(x, (int, float)) else self.tensor(x)

    # Tensors

    def tensor(self, x: Datum) -> Tensor:
        """A Tensor as it is; a number or a list as a constant."""
        return x if isinstance(x, Tensor) else self.leaf(self.array(x))

    def named(self, x: Datum) -> Tensor:
        """What a name will stand for: a new variable, if `x` was computed from numbers alone."""
        if isinstance(x, Tensor) and (x.requires_grad or x in self.constants or x.dtype.kind != "f"):
            return x
        return self.variable(x)

    def variable(self, x: Datum) -> Tensor:
        """A new variable, with a gradient."""
        return Tensor.make_const(self.tensor(x), requires_grad=True)

    def constant(self, x: Datum) -> Tensor:
        """The same values without history or gradient."""
        return self.tensor(x).detach()

    def leaf(self, array: np.ndarray) -> Tensor:
        # On NumPy's device: no kernel is compiled while somebody waits.
        return Tensor(array, device=ndl.cpu_numpy(), dtype="float32", requires_grad=False)

    def array(self, x: Datum) -> np.ndarray:
        """Numbers in nested lists of equal lengths."""
        if isinstance(x, list) and any(isinstance(number, Tensor) for number in _flat(x)):
            raise TypeError("a list of Tensors is not a Tensor; join them: stack([a, b])")
        try:
            return np.array(x, dtype="float32")
        except ValueError:
            raise ValueError(
                "the rows have different lengths, so this list is not a Tensor; make them equally long"
            ) from None

    def filled(self, shape: tuple[int, ...], fill: Callable[[tuple[int, ...]], Any]) -> Tensor:
        """A new Tensor of a shape that is checked before it is filled."""
        if min(shape, default=1) < 1:
            raise ValueError(f"a shape has lengths of at least 1, not {shape}")
        _check_shape(shape)
        return self.leaf(fill(shape))

    def one_hot(self, labels: np.ndarray, classes: int) -> Tensor:
        _check_shape((*labels.shape, classes))
        return ndl.init.one_hot(classes, labels, device=ndl.cpu_numpy())

    def softmax_loss(self, logits: Tensor, labels: np.ndarray) -> Tensor:
        return nn.SoftmaxLoss()(logits, labels)

    def gradient(self, y: Tensor, x: Tensor) -> Tensor:
        for name, tensor in {"y": y, "x": x}.items():
            if not tensor.requires_grad:
                raise ValueError(
                    f"grad(y, x): {name} does not require a gradient, because it is a constant; give its "
                    "numbers a name, x = 2, and compute with that"
                )
        return ndl.gradients(y, [x])[0]


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
    """The name of a piece of syntax, for a sentence that goes on with "not part of this language"."""
    kinds = {
        "AnnAssign": "an annotation",
        "Starred": "* before a value",
        "GeneratorExp": "for within brackets",
        "ListComp": "for within brackets",
        "Constant": "this constant",
        "For": "this kind of loop",
    }
    return f"{kinds.get(type(node).__name__, 'this')} is"


def _flat(items: list) -> Iterator[Any]:
    for item in items:
        if isinstance(item, list):
            yield from _flat(item)
        else:
            yield item


def _tensors_in(thing: Any) -> Iterator[Tensor]:
    if isinstance(thing, Tensor):
        yield thing
    elif isinstance(thing, (list, tuple, dict)):
        for item in thing.values() if isinstance(thing, dict) else thing:
            yield from _tensors_in(item)


def _arithmetic(function: Callable[[Any, Any], Any], x: Number, y: Number) -> Number:
    """Combine two numbers in floating point, so that nothing can grow without bound."""
    if function is operator.matmul:
        raise TypeError("@ multiplies matrices, and these are numbers; use *")
    try:
        result = function(float(x), float(y))
    except OverflowError:
        result = math.inf
    except ZeroDivisionError:
        raise ValueError(f"{x:g} and {y:g} cannot be divided: the result would be infinite") from None
    if isinstance(result, complex):
        raise ValueError(f"({x:g}) ** {y:g} is not a real number; take the power of a positive number")
    if not abs(result) <= LARGEST_NUMBER:
        raise ValueError(
            f"the result is larger than {LARGEST_NUMBER:g}, the largest number; use smaller ones"
        )
    whole = isinstance(x, int) and isinstance(y, int) and function is not operator.truediv
    return int(result) if whole and result.is_integer() and abs(result) <= LARGEST_INTEGER else result


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


# Functions and what they take.


def _whole(x: Datum, what: str, low: int, high: int) -> int:
    if not isinstance(x, int) or not low <= x <= high:
        got = x if isinstance(x, (int, float)) else f"a {_kind(x)}"
        raise ValueError(
            f"{what} takes a whole number from {low:,} to {high:,}, not {got}; write it in digits"
        )
    return x


def _kind(x: Datum) -> str:
    return "Tensor" if isinstance(x, Tensor) else "list" if isinstance(x, list) else "number"


def _sizes(program: _Program, x: Datum) -> tuple[int, ...]:
    if len(x) == 1 and isinstance(x[0], list):
        (x,) = x
    return tuple(_whole(size, "a shape", -1, 10**9) for size in x)


def _axis(program: _Program, x: Datum) -> int:
    return _whole(x, "an axis", -MOST_AXES, MOST_AXES - 1)


def _axes(program: _Program, x: Datum) -> int | tuple[int, ...]:
    return tuple(_axis(program, axis) for axis in x) if isinstance(x, list) else _axis(program, x)


def _order(program: _Program, x: Datum) -> tuple[int, ...] | None:
    if len(x) == 1 and isinstance(x[0], list):
        (x,) = x
    return tuple(_axis(program, axis) for axis in x) or None


def _number(program: _Program, x: Datum) -> Number:
    if not isinstance(x, (int, float)):
        raise TypeError(f"a number is needed here, not a {_kind(x)}; write it in digits")
    return x


def _several(program: _Program, x: Datum) -> list[Tensor]:
    if not isinstance(x, list) or not x:
        raise TypeError("a list of Tensors is needed here, such as [a, b]")
    return [program.tensor(item) for item in x]


def _labels(program: _Program, x: Datum) -> np.ndarray:
    labels = x.numpy() if isinstance(x, Tensor) else program.array(x)
    if not (labels == np.rint(labels)).all():
        raise ValueError("labels are whole numbers, such as [0, 2]")
    return np.where(np.abs(labels) < 1e6, labels, -1).astype(int)


def _classes(program: _Program, x: Datum) -> int:
    return _whole(x, "the number of classes", 1, LARGEST_TENSOR)


def _tensor(program: _Program, x: Datum) -> Tensor:
    return program.tensor(x)


def _as_it_is(program: _Program, x: Datum) -> Datum:
    return x


#: How to read a parameter, by its name. All others are Tensors.
_READERS: dict[str, Callable[[_Program, Any], Any]] = {
    "shape": _sizes,
    "axis": _axis,
    "axes": _axes,
    "order": _order,
    "slope": _number,
    "low": _number,
    "high": _number,
    "tensors": _several,
    "labels": _labels,
    "classes": _classes,
    "values": _as_it_is,
}


@dataclass(frozen=True)
class Function:
    """A function of the language.

    Parameters
    ----------
    call : callable
        Takes the program, then the arguments.
    parameters : str
        Their names. ``axes=`` may be left out; ``*shape`` takes all arguments that are left.
    """

    call: Callable[..., Datum]
    parameters: str
    name: str = ""

    @property
    def usage(self) -> str:
        return f"{self.name}({', '.join(name.replace('=', '=…') for name in self.parameters.split())})"

    @property
    def is_method(self) -> bool:
        """Whether Tensors have it as a method too."""
        return self.parameters.split()[0] in ("a", "logits", "y")

    def __call__(self, program: _Program, arguments: list[Datum], keywords: dict[str, Datum]) -> Datum:
        if self.name in _OF_TWO and len(arguments) == 2 and _are_two(*arguments):
            raise TypeError(f"{self.name} takes one Tensor; of two, write {_OF_TWO[self.name]}(a, b)")
        given: dict[str, Datum] = {}
        waiting = list(arguments)
        for parameter in self.parameters.split():
            name = parameter.strip("*=")
            if parameter.startswith("*"):
                given[name] = [keywords.pop(name)] if name in keywords else waiting
                waiting = []
            elif waiting:
                given[name] = waiting.pop(0)
            elif name in keywords:
                given[name] = keywords.pop(name)
            elif not parameter.endswith("="):
                raise TypeError(f"{self.name}: {name} is missing; write {self.usage}")
        if waiting or keywords:
            most = len(arguments) - len(waiting)
            odd = f"{most} argument{'s' * (most != 1)}, not {len(arguments)}"
            odd = f"no argument {next(iter(keywords))}" if keywords else odd
            raise TypeError(f"{self.name} takes {odd}; write {self.usage}")
        return self.call(
            program, **{name: _READERS.get(name, _tensor)(program, x) for name, x in given.items()}
        )


def _are_two(a: Datum, b: Datum) -> bool:
    """Whether these are two values to compare, and not a value and its axes."""
    return isinstance(a, (int, float)) or isinstance(b, (float, Tensor))


def _of(function: Callable[..., Tensor], **renamed: str) -> Callable[..., Tensor]:
    """A function of needle as one of this language. `renamed` parameters have another name in needle."""

    def call(program: _Program, a: Datum, **others: Datum) -> Tensor:
        return function(a, **{renamed.get(name, name): x for name, x in others.items()})

    return call


def _table() -> dict[str, Function]:
    each = ["exp", "log", "sqrt", "abs", "sign", "sin", "cos", "tanh", "sigmoid", "relu", "gelu", "erf"]
    along = ["summation", "mean", "max", "min", "logsumexp", "softmax"]
    table = {name: Function(_of(getattr(ops, name)), "a") for name in [*each, "logsoftmax"]}
    table |= {name: Function(_of(getattr(ops, name)), "a axes=") for name in along}
    table |= {
        "sum": table["summation"],
        "argmax": Function(_of(ops.argmax, axis="axes"), "a axis="),
        "leaky_relu": Function(_of(ops.leaky_relu), "a slope="),
        "clip": Function(_of(ops.clip), "a low= high="),
        "maximum": Function(_of(ops.maximum), "a b"),
        "minimum": Function(_of(ops.minimum), "a b"),
        "where": Function(lambda program, condition, a, b: ops.where(condition, a, b), "condition a b"),
        "matmul": Function(_of(ops.matmul), "a b"),
        "transpose": Function(_of(ops.transpose, order="axes"), "a *order"),
        "permute": Function(lambda program, a, order: ops.permute(a, order or ()), "a *order"),
        "reshape": Function(_of(ops.reshape), "a *shape"),
        "broadcast_to": Function(_of(ops.broadcast_to), "a *shape"),
        "stack": Function(lambda program, tensors, axis=0: ops.stack(tensors, axis), "tensors axis="),
        "concatenate": Function(
            lambda program, tensors, axis=0: ops.concatenate(tensors, axis), "tensors axis="
        ),
        "softmax_loss": Function(_Program.softmax_loss, "logits labels"),
        "grad": Function(_Program.gradient, "y x"),
        "tensor": Function(lambda program, values: program.variable(values), "values"),
        "constant": Function(lambda program, values: program.constant(values), "values"),
        "detach": Function(lambda program, a: a.detach(), "a"),
        "ones": Function(lambda program, shape: program.filled(shape, np.ones), "*shape"),
        "zeros": Function(lambda program, shape: program.filled(shape, np.zeros), "*shape"),
        "rand": Function(lambda program, shape: program.filled(shape, program.rng.random), "*shape"),
        "randn": Function(
            lambda program, shape: program.filled(shape, program.rng.standard_normal), "*shape"
        ),
        "one_hot": Function(_Program.one_hot, "labels classes"),
    }
    table["Tensor"] = table["tensor"]
    return {name: Function(function.call, function.parameters, name) for name, function in table.items()}


_MAKE_CONSTANTS = ("constant", "detach", "one_hot")

#: All functions, by name.
FUNCTIONS = _table()
