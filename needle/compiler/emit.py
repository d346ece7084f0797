"""Emit: the source of a program as instructions of LLVM, the compiler that makes machine code of them.

``add1 = matmul1[j] + b[j]``, a line in the source of ``relu(x @ W + b)``, becomes ::

    %1 = getelementptr inbounds float, float* %matmul1, i64 %j
    %2 = load float, float* %1
    %3 = getelementptr inbounds float, float* %b, i64 %j
    %4 = load float, float* %3
    %5 = fadd float %2, %4
    store float %5, float* %add1

The source is Python, so Numba could compile it alone. But any Python might stand there, so it looks at each
line for some 25 ms. What does stand there is a small part of Python: loops over ranges, assignments, `if`,
arithmetic and calls. The type of an expression follows from those of its operands. So one walk through the
syntax tree is enough. Numba does the rest: it knows how to add and to convert numbers of all types, makes a
function that Python can call, and keeps it on disk.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import NativeValue, intrinsic, models, register_model, unbox

from ..backend_ndarray import blas

#: LLVM unrolls loops whose lengths it knows. If a loop and those in it have more iterations than this, it
#: would spend minutes on that, so it is told to leave the outer one as it is.
_UNROLLED = 4096
_NOT_UNROLLED = "llvm.loop.unroll.disable"

_BLAS_BITS = 64 if "64" in blas.library()[2] else 32  # of the whole numbers that it takes

_OPERATORS: dict[type, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.USub: operator.neg, ast.Not: operator.not_,
}  # fmt: skip

#: An expression: its type, as Numba calls it, and its value in LLVM.
Value = tuple[Any, Any]


class Flat(types.Type):
    """The type of a flat array, of which machine code knows nothing but where it begins.

    Numba's own arrays also come with their lengths, strides and owners: seven arguments for each, which took
    most of the time to compile a function of many parameters, and of the time to call it.
    """

    def __init__(self, dtype: Any):
        self.dtype = numba.from_dtype(np.dtype(dtype))
        super().__init__(f"Flat({self.dtype})")


@register_model(Flat)
class _FlatModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Flat):
        super().__init__(manager, kind, manager.lookup(kind.dtype).get_data_type().as_pointer())


@unbox(Flat)
def _unboxed(kind: Flat, array: Any, c: Any) -> Any:
    """Where the numbers of an array begin. In NumPy's struct, that comes right after the head of any object.

    Nobody asks whether it is an array of this type: the source of the call, in `host.py`, gives no other.
    """
    place = c.builder.gep(array, [ir.Constant(ir.IntType(64), object.__basicsize__)])
    data = c.context.get_value_type(kind)
    return NativeValue(c.builder.load(c.builder.bitcast(place, data.as_pointer())))


def emitted(function: ast.FunctionDef, names: dict[str, Any], file: str) -> Callable:
    """A function for Numba, which does what a function of generated source does.

    Parameters
    ----------
    function : ast.FunctionDef
    names : dict
        What it calls, by name.
    file : str
        What Numba takes for its source, beside which it keeps the machine code.
    """

    def define(kinds: tuple) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return Emitter(context, builder, names).function(function, signature.args, given)

        return types.int64(*kinds), generate

    listed = "".join([f"{x.arg}, " for x in function.args.args])
    made: dict[str, Any] = {"define": define, "__name__": __name__}
    exec(f"def body(context, {listed}): return define(({listed}))", made)
    made["body"] = intrinsic(made["body"])
    exec(compile(f"def whole({listed}): return body({listed})", file, "exec"), made)
    return made["whole"]


class Emitter:
    """Writes the instructions of one function. A method with the name of a class of `ast` is for such nodes.

    Parameters
    ----------
    context, builder
        Numba's knowledge of the machine, and what adds instructions to the function.
    names : dict
        What the function calls, by name.
    """

    def __init__(self, context: Any, builder: Any, names: dict[str, Any]):
        self.context, self.builder, self.names = context, builder, names
        self._values: dict[str, Value] = {}  # by name: arguments, arrays, and variables of loops
        self._variables: dict[str, Value] = {}  # other variables: places on the stack, until LLVM moves them
        self._calls: dict[
            tuple, tuple
        ] = {}  # for a function and types of operands: its signature, and a caller

    def function(self, node: ast.FunctionDef, kinds: Iterable[Any], given: Iterable[Any]) -> Any:
        """The body of a function with these arguments; what it returns, or 0."""
        for argument, kind, value in zip(node.args.args, kinds, given, strict=True):
            self._values[argument.arg] = kind, value
        for x in self.builder.function.args:
            # No array that is written overlaps another argument: the program owns it, and sees to that in
            # each call (`Program.see_own`). Numba's own pointers overlap nothing either.
            if isinstance(x.type, ir.PointerType):
                x.add_attribute("noalias")
        whole = ir.IntType(64)
        self._status = cgutils.alloca_once_value(self.builder, ir.Constant(whole, 0))
        self._end = self.builder.append_basic_block("end")
        self._all(node.body, self._end)
        self.builder.position_at_end(self._end)
        return self.builder.load(self._status)

    # Statements

    def _all(self, statements: list[ast.stmt], then: Any) -> None:
        """Some statements, after which the program goes on at `then`."""
        for x in statements:
            getattr(self, type(x).__name__)(x)
        if not self.builder.block.is_terminated:
            self.builder.branch(then)

    def Assign(self, node: ast.Assign) -> None:
        self._set(node.targets[0], self._value(node.value))

    def AugAssign(self, node: ast.AugAssign) -> None:
        self._set(node.target, self._operation(node.op, node.target, node.value))

    def Expr(self, node: ast.Expr) -> None:
        self._value(node.value)

    def For(self, node: Any) -> None:
        """A loop over a range, which counts by one."""
        builder = self.builder
        whole = ir.IntType(64)
        start, stop = [ir.Constant(whole, 0), *[self._as(types.int64, x) for x in node.iter.args]][-2:]
        before, (head, body, behind) = builder.block, self._blocks("for", "body", "behind")
        builder.branch(head)
        builder.position_at_end(head)
        i = builder.phi(whole)
        i.add_incoming(start, before)
        builder.cbranch(builder.icmp_signed("<", i, stop), body, behind)
        builder.position_at_end(body)
        self._values[node.target.id] = types.int64, i
        (last,) = self._blocks("last")
        self._all(node.body, last)
        builder.position_at_end(last)
        i.add_incoming(builder.add(i, ir.Constant(whole, 1), flags=["nsw"]), last)
        back = builder.branch(head)
        if _iterations(node) > _UNROLLED and any(isinstance(x, ast.For) for x in node.body):
            back.set_metadata("llvm.loop", self._not_unrolled())
        builder.position_at_end(behind)

    def If(self, node: ast.If) -> None:
        then, behind = self._blocks("then", "behind")
        self.builder.cbranch(self._as(types.boolean, node.test), then, behind)
        self.builder.position_at_end(then)
        self._all(node.body, behind)
        self.builder.position_at_end(behind)

    def Return(self, node: Any) -> None:
        self.builder.store(self._as(types.int64, node.value), self._status)
        self.builder.branch(self._end)

    def _blocks(self, *names: str) -> list[Any]:
        return [self.builder.append_basic_block(name) for name in names]

    def _not_unrolled(self) -> Any:
        """What a loop says of itself so that LLVM leaves it as it is."""
        module = self.builder.module
        name, leave = [module.add_metadata([x]) for x in (str(len(module.metadata)), _NOT_UNROLLED)]
        found = module.add_metadata([name, leave])  # by its name it is no copy of another loop's, …
        found.operands = (found, leave)  # … and LLVM wants a node whose first operand is the node itself
        return found

    def _set(self, target: Any, value: Value) -> None:
        """Write to an element of an array, or to a variable, whose type is that of its first value."""
        if isinstance(target, ast.Subscript):
            kind, place = self._place(target)
            self.context.pack_value(self.builder, kind, self._cast(value, kind), place)
            return
        kind, name = value[0], target.id
        if isinstance(kind, Flat):
            self._values[name] = value
            return
        if name not in self._variables:
            place = cgutils.alloca_once(self.builder, self.context.get_value_type(kind))
            self._variables[name] = kind, place
        kind, place = self._variables[name]
        self.builder.store(self._cast(value, kind), place)

    # Expressions

    def _value(self, node: ast.AST) -> Value:
        return getattr(self, type(node).__name__)(node)

    def _cast(self, value: Value, kind: Any) -> Any:
        """A value as one of another type."""
        return self.context.cast(self.builder, value[1], value[0], kind)

    def _as(self, kind: Any, node: ast.AST) -> Any:
        return self._cast(self._value(node), kind)

    def _from(self, array: ast.AST, start: ast.AST) -> Value:
        """The rest of an array from a place on."""
        kind, data = self._value(array)
        return kind, self.builder.gep(data, [self._as(types.int64, start)], inbounds=True)

    def _place(self, node: Any) -> Value:
        """Where an element of an array is, and its type."""
        kind, place = self._from(node.value, node.slice)
        return kind.dtype, place

    def Constant(self, node: ast.Constant) -> Value:
        kind = {bool: types.boolean, int: types.int64, float: types.float64}[type(node.value)]
        return kind, self.context.get_constant(kind, node.value)

    def Name(self, node: ast.Name) -> Value:
        name = node.id
        if name in self._variables:
            kind, place = self._variables[name]
            return kind, self.builder.load(place)
        if name in self._values:
            return self._values[name]
        return types.float64, self.context.get_constant(types.float64, self.names[name])  # inf or nan

    def Subscript(self, node: ast.Subscript) -> Value:
        kind, place = self._place(node)
        return kind, self.context.unpack_value(self.builder, kind, place)

    def BinOp(self, node: ast.BinOp) -> Value:
        return self._operation(node.op, node.left, node.right)

    def UnaryOp(self, node: ast.UnaryOp) -> Value:
        return self._operation(node.op, node.operand)

    def Compare(self, node: ast.Compare) -> Value:
        pairs = zip(node.ops, pairwise([node.left, *node.comparators]), strict=True)
        return self._and([self._operation(op, *pair) for op, pair in pairs])

    def BoolOp(self, node: ast.BoolOp) -> Value:
        assert isinstance(node.op, ast.And)
        return self._and([self._value(x) for x in node.values])

    def _and(self, answers: list[Value]) -> Value:
        """Whether all answers are true. ``select`` takes no notice of the second if the first is false: an
        `int64` of NaN, say, is nothing that LLVM may look at."""
        found = answers[0][1]
        for _, answer in answers[1:]:
            found = self.builder.select(found, answer, ir.Constant(found.type, 0))
        return types.boolean, found

    def _operation(self, op: Any, *operands: ast.AST) -> Value:
        return self._call(_OPERATORS[type(op)], [self._value(x) for x in operands])

    def _call(self, function: Any, values: list[Value]) -> Value:
        """Call a function or an operator that Numba knows."""
        kinds = tuple([kind for kind, _ in values])
        if (function, kinds) not in self._calls:
            known = self.context.typing_context.resolve_value_type(function)
            signature = known.get_call_type(self.context.typing_context, kinds, {})
            self._calls[function, kinds] = signature, self.context.get_function(known, signature)
        signature, call = self._calls[function, kinds]
        given = [self._cast(x, kind) for x, kind in zip(values, signature.args, strict=True)]
        return signature.return_type, call(self.builder, given)

    def Call(self, node: Any) -> Value:
        name = node.func.id
        function = self.names[name]
        if isinstance(function, partial):  # one of the methods below
            return function(self, *node.args)
        if isinstance(function, type):  # a data type
            kind = numba.from_dtype(np.dtype(function))
            return kind, self._as(kind, node.args[0])
        return self._call(function, [self._value(x) for x in node.args])

    # Functions that are written here, and not called

    def part(self, array: ast.AST, start: ast.AST, size: ast.AST) -> Value:
        """``array[start : start + size]``."""
        return self._from(array, start)

    def local(self, size: Any, dtype: str) -> Value:
        """An array of the function's own. Nobody else reads it, so LLVM can keep its numbers in registers."""
        whole = Flat(dtype)
        kind = self.context.get_data_type(whole.dtype)
        with self.builder.goto_entry_block():
            place = self.builder.alloca(ir.ArrayType(kind, size.value))
        place.align = 64
        return whole, self.builder.bitcast(place, kind.as_pointer())

    def plus(self, total: ast.AST, x: ast.AST) -> Value:
        """A sum, where LLVM is free to add up the numbers of a loop in any order."""
        number, a = self._value(total)
        b = self._as(number, x)
        if not isinstance(number, types.Float):
            return number, self.builder.add(a, b)
        return number, self.builder.fadd(a, b, flags=("contract", "reassoc", "nsz"))

    def maximum(self, *operands: ast.AST) -> Value:
        """The larger one, or NaN if one is: an instruction of LLVM's, of which it makes vector instructions.

        It makes none of a comparison, as the table has it.
        """
        return self._extreme("llvm.maximum", *operands)

    def minimum(self, *operands: ast.AST) -> Value:
        """The smaller one, likewise."""
        return self._extreme("llvm.minimum", *operands)

    def _extreme(self, name: str, x: ast.AST, y: ast.AST) -> Value:
        number, a = self._value(x)
        known = self.builder.module.declare_intrinsic(name, [a.type], ir.FunctionType(a.type, [a.type] * 2))
        return number, self.builder.call(known, [a, self._as(number, y)], fastmath=("nsz",))

    def matmul(self, *operands: ast.AST) -> Value:
        """A matrix product by NumPy's own BLAS: ``out = a @ b`` for matrices in flat storage.

        `gemm` is the address of its routine. Of `a` and `b` we are told the storage, where the matrix begins,
        how far its rows are apart, and whether it is turned: then its columns lie side by side, and not its
        rows. Of `out` we are told the storage and where it begins. The sizes are (m, n, p), for (m, n) times
        (n, p).
        """
        return self._product(operands, lambda kind: ir.Constant(kind, 1), 0)

    def add_matmul(self, scale: ast.AST, *operands: ast.AST) -> Value:
        """``out += scale * (a @ b)``; the rest is as of `matmul`."""
        return self._product(operands, lambda _: self._value(scale)[1], 1)

    def _product(self, operands: Any, scale: Callable, kept: float) -> Value:
        """Call BLAS: ``out = scale * (a @ b) + kept * out``."""
        builder, whole, flag = self.builder, ir.IntType(_BLAS_BITS), ir.IntType(32)
        gemm, a, b, out, sizes = operands
        m, n, p = [ir.Constant(whole, x.value) for x in sizes.elts]

        def place(matrix: Any) -> Any:
            return self._from(*matrix.elts[:2])[1]

        def turned(matrix: Any) -> Any:
            return ir.Constant(flag, 112 if matrix.elts[3].value else 111)  # BLAS's own numbers for that

        def width(matrix: Any) -> Any:
            return ir.Constant(whole, matrix.elts[2].value)

        target = place(out)
        number = target.type.pointee
        given = [ir.Constant(flag, 101), turned(a), turned(b), m, p, n, scale(number)]  # 101: by rows
        given += [place(a), width(a), place(b), width(b), ir.Constant(number, kept), target, p]
        routine = ir.FunctionType(ir.VoidType(), [x.type for x in given])
        builder.call(builder.inttoptr(self._value(gemm)[1], routine.as_pointer()), given)
        return types.none, None


def _iterations(node: Any) -> int:
    """How often the innermost statement of nested loops runs. A loop of unknown length counts once."""
    stop = node.iter.args[-1]
    length: int = getattr(stop, "value", 1)
    return length * max([_iterations(x) for x in node.body if isinstance(x, ast.For)], default=1)
