"""NumPy source: the loops of `lower.py` as calls of NumPy, one on each line.

On `cpu_numpy`, no loops are fused and nothing is compiled. Each nest that is still needed becomes one call of
NumPy. The five nests of ``relu(x @ W + b)``, for 10 rows and W of shape (2, 8), become

    matmul1 = add1 = np.empty((10, 8), "float32")


    def step(x, W, b, result):
        x = x.reshape(10, 2)
        W = W.reshape(2, 8)
        result = result.reshape(10, 8)
        # MatMul, Add, ReLU
        np.dot(x, W, out=matmul1)
        np.add(matmul1, b, out=add1)
        np.maximum(add1, 0, out=result)
        return 0

The lines above the function run once. Their arrays are kept between calls, so a step of training allocates
next to nothing. Arguments are flat, as storage is; the function gives them their shapes.

Five nests became three calls. NumPy's product overwrites `out`, so the nest that sets it to 0 is not needed.
The last operator writes into `result` itself, so the copy is not needed either. In the same way,
``W - lr * gradient`` is written into W at once. And `add1` shares its storage with `matmul1`, because nobody
reads the product after the sum (`_storage`).

Each access becomes a view of an array (`Writer.view`). Where its loops go through the axes in another order,
the view is a transpose, ``W.T``; where they skip numbers, it is a slice. An axis that does not move through
the array has length 1, as in ``b[:, None]``, and NumPy repeats it.
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from ..backend_ndarray.ndarray_backend_numpy import add_at, quiet
from ..backend_ndarray.scalar_functions import SCALAR_FUNCTIONS, written
from ..backend_ndarray.strides import compact_strides
from .lower import Access, Buffer, Nest, Shape, whole
from .names import Names, by_module, wrapped
from .simplify import cut
from .stand_ins import Number

_GIVEN = {row.name: row.numpy for row in SCALAR_FUNCTIONS.values()} | {"np": np, "add_at": add_at}


@dataclass
class NumpyPart:
    """A function in NumPy source. It returns 0, or the number of its first check that failed, from 1 on."""

    name: str
    source: str
    arguments: list[str]  # flat arrays, and then numbers of Python's
    checks: list[Nest]

    def load(self, kept: dict[str, Any]) -> None:
        """Run the source. It names the `kept` arrays, which are flat, too."""
        self.names: dict[str, Any] = {**_GIVEN, **kept}
        exec(compile(self.source, f"<needle {self.name}>", "exec"), self.names)
        self._function = self.names[self.name]

    def __call__(self, arrays: dict[str, Any]) -> int:
        """Call the function with arrays and numbers by their names, without NumPy's warnings."""
        return quiet.run(self._function, *[arrays[name] for name in self.arguments])


def write_numpy(
    name: str,
    nests: Iterable[Nest],
    given: list[Buffer],
    kept: Iterable[Buffer],
    formulas: dict[str, str],
    names: Names,
) -> NumpyPart:
    """Write a function for nests that `simplify` returned without the last of its passes.

    Others use the buffers that are `given` and `kept`, too: the given ones are arguments, the kept ones are
    there between calls. `formulas` has the names of Numbers by their formulas. `names` makes new names.
    """
    nests = [copy.copy(nest) for nest in nests]
    totals = {nest.out.buffer for nest in nests if nest.fold and nest.out.via is None}
    nests = [nest for nest in nests if nest.fold or nest.out.buffer not in totals]  # without initial values
    for nest in nests:
        nest.product = nest.is_product and not nest.numbers
    cut([nest for nest in nests if all(x.via is None for x in nest.accesses)])
    fixed = {*given, *kept, *[x for nest in nests for x in nest.buffers if x.is_iota]}
    storage = _storage(nests, fixed)
    for nest in nests:
        nest.change(lambda x: x._replace(buffer=storage[x.buffer]) if storage.get(x.buffer) in fixed else x)
    nests = [nest for nest in nests if not nest.is_copy or nest.written != nest.read]  # it is there already

    writer = Writer(nests, {*given}, formulas, names)
    body: list[str] = []
    for _, run in groupby(nests, key=lambda nest: nest.maker and nest.maker.scope):
        some = list(run)
        if about := by_module(some):
            body += wrapped("    # ", about.split(" "), " ", "    # ")
        for nest in some:
            body += wrapped("    ", writer.statement(nest).split(", "), ", ", " " * 8)
    once: list[str] = []  # what stands above the function
    head: list[str] = []
    for x, shape in writer.shapes.items():
        flat = f"np.arange({x.size})" if x.is_iota else x.name
        shaped = flat if shape == (x.size,) else _reshaped(flat, shape)
        if x in fixed and shaped != x.name:
            (head if x in writer.arguments else once).append(f"{x.name} = {shaped}")
        elif x not in fixed and x not in storage:
            alike = [other.name for other, place in storage.items() if place is x]
            lines = wrapped("", [x.name, *alike, f'np.empty({shape}, "{x.dtype}")'], " = ", "    ")
            once += [*[f"{line} \\" for line in lines[:-1]], lines[-1]]
    once += [f"{view} = {text}" for text, view in writer.views.items()]
    numbers = dict.fromkeys(formulas[x.text] for nest in nests for x in nest.numbers if isinstance(x, Number))
    arguments = [*[x.name for x in given if x in writer.shapes], *numbers]
    source = [*once, "", ""] if once else []
    source += wrapped(f"def {name}(", f"{', '.join(arguments)}):".split(", "), ", ", "    ")
    source += [*[f"    {line}" for line in head], *body, "    return 0\n"]
    return NumpyPart(name, "\n".join(source), arguments, writer.checks)


# Storage

#: The functions that may write their result over an operand. A function that a user has added
#: to the table may still need the operand after that.
_IN_PLACE = {row.name for row in SCALAR_FUNCTIONS.values() if isinstance(row.numpy, np.ufunc) or row.operator}
_IN_PLACE |= {"copy", "relu", "mask"}


def _storage(nests: list[Nest], fixed: set[Buffer]) -> dict[Buffer, Buffer]:
    """For each buffer that needs no storage of its own, the buffer whose storage it shares.

    A result that is copied to a `fixed` buffer later is written there at once. But it has to wait if a check
    stands between: the caller's arrays change only when all checks have passed. Any other result may
    overwrite an operand that nobody reads any more. In both cases, nobody else may use that storage while the
    result is needed.
    """
    users: dict[Buffer, set[int]] = defaultdict(set)  # the numbers of the nests that use a storage
    for i, nest in enumerate(nests):
        for x in nest.buffers:
            users[x].add(i)
    shapes, storage = _shapes(nests), dict[Buffer, Buffer]()
    for i, nest in enumerate(nests):
        out = nest.out.buffer
        if nest.is_check or out in fixed or min(users[out]) < i:
            continue
        options = [(storage.get(x, x), i) for x in nest.read if storage.get(x, x) not in fixed]
        for j in users[out]:
            is_copied = nests[j].is_copy and nests[j].read == [out] and nests[j].out.buffer in fixed
            if is_copied and not any(nest.is_check for nest in nests[i:j]):
                options.insert(0, (nests[j].out.buffer, j))
        for place, last in options:
            alike = place.dtype == out.dtype and shapes[place] == shapes[out]
            is_free = all(j <= i or j == last for j in users[place])
            meets = [x for x in nest.accesses[1:] if storage.get(x.buffer, x.buffer) is place]
            in_step = (
                not nest.fold and nest.function in _IN_PLACE and all(x[1:] == nest.out[1:] for x in meets)
            )
            if alike and is_free and (in_step or not meets):
                storage[out] = place
                users[place] |= users[out]
                break
    return storage


# Views


def _shape_of(x: Access, shape: Shape) -> Shape:
    """The shape that an array must have so that an access goes along its axes, or slices of them."""
    steps = {abs(step) for n, step in zip(shape, x.strides, strict=True) if step and n > 1}
    steps |= {x.step, x.strides[0]} if x.via is not None else set()
    ends = [1, *sorted(steps), x.buffer.size]
    fits = not any(end % step for step, end in pairwise(ends))
    return tuple([end // step for step, end in pairwise(ends) if end > step][::-1]) if fits else ()


def _shapes(nests: Iterable[Nest]) -> dict[Buffer, Shape]:
    """The shape of each buffer: of all that its accesses ask for, the one with the most axes."""
    found: dict[Buffer, Shape] = {}
    for nest in nests:
        for x in nest.accesses[nest.is_check :]:
            known = found.get(x.buffer, (x.buffer.size,) * (x.buffer.size > 1))
            found[x.buffer] = max(known, _shape_of(x, nest.shape), key=len)
    return found


def _reshaped(text: str, shape: Iterable[int]) -> str:
    return f"{text}.reshape({', '.join(map(str, shape)) or '()'})"


def _slices(x: Access, loops: list[tuple[int, int]], shape: Shape) -> str | None:
    """The slices of an array of this `shape` that select what the loops go through; None if none do."""
    items, left = [], list(loops)
    for n, width in zip(shape, compact_strides(shape), strict=True):
        first = x.offset // width % n
        if left and abs(left[0][1]) >= width:
            length, stride = left.pop(0)
            step = stride // width
            last = first + (length - 1) * step
            if stride % width or not 0 <= last < n:
                return None
            begin = "" if first == (0 if step > 0 else n - 1) else first
            end = last + step if 0 <= last + step < n else ""
            items.append(f"{begin}:{end}" + f":{step}" * (step != 1))
        else:
            items.append(str(first))
    return None if left else f"[{', '.join(items if loops else [*items, '...'])}]"


#: The ends of views' names.
_ENDS = {".T": "T", "[:, None]": "column", '.view("int32")': "bits", '.view("int64")': "bits"}


class Writer:
    """Writes a statement for each nest. `views` has the names of views, by the text that makes them."""

    def __init__(self, nests: list[Nest], arguments: set[Buffer], formulas: dict[str, str], names: Names):
        self.arguments = arguments
        self.formulas = formulas
        self.names = names
        self.views: dict[str, str] = {}
        self.checks: list[Nest] = []
        self.shapes = _shapes(nests)

    def view(self, x: Access, shape: Shape, axes: Iterable[int] | None = None, full: int = 0) -> str:
        """The view that an access goes through. Its axes are the loops `axes`; by default, all loops.

        A loop that does not move the access is an axis of length 1. It is left out if it comes before all
        others, because NumPy adds it itself. The last `full` axes have the lengths of their loops, always.
        """
        loops = [(shape[i], x.strides[i]) for i in (range(len(shape)) if axes is None else axes)]
        moving = [i for i, (n, step) in enumerate(loops) if step and n > 1]
        order = sorted(moving, key=lambda i: -abs(loops[i][1]))
        lengths, strides = [tuple([loops[i][k] for i in order]) for k in (0, 1)]
        text, size, own = x.buffer.name, x.buffer.dtype.itemsize, self.shapes[x.buffer]
        if x._replace(strides=strides) == whole(x.buffer, lengths) and math.prod(lengths) == x.buffer.size:
            text = text if lengths == own else _reshaped(text, lengths)
        elif (brackets := _slices(x, [loops[i] for i in order], own)) is not None:
            text += brackets
        else:
            steps = tuple([size * step for step in strides])
            text = f'np.ndarray({lengths}, "{x.buffer.dtype}", {text}, {size * x.offset}, {steps})'
        if order != moving:
            places = ", ".join([str(order.index(i)) for i in moving])
            text += ".T" if order == moving[::-1] else f".transpose({places})"
        behind = range(min([len(loops) - full, *moving]), len(loops))
        if any(i not in moving for i in behind):
            text += f"[{', '.join([':' if i in moving else 'None' for i in behind])}]"
        if any(n > 1 and not step for n, step in loops[len(loops) - full :]):
            text = f"np.broadcast_to({text}, {tuple([n for n, _ in loops])})"
        return self._named(x.buffer, text)

    def _all(self, buffer: Buffer, *shape: int) -> str:
        """All of a buffer in some shape."""
        text = buffer.name
        return text if shape == self.shapes[buffer] else self._named(buffer, _reshaped(text, shape))

    def _named(self, buffer: Buffer, text: str) -> str:
        """A view. If its array is kept between calls, the view is made once and gets a name."""
        if text == buffer.name or buffer in self.arguments:
            return text
        if text not in self.views:
            end = _ENDS.get(text.removeprefix(buffer.name), "view")
            self.views[text] = self.names.unique(f"{buffer.name}_{end}")
        return self.views[text]

    # Statements

    def statement(self, nest: Nest) -> str:
        """One call of NumPy."""
        x, axes = nest.reads[0], list(range(len(nest.shape)))
        if nest.is_check:
            return self._check(nest, x)
        if nest.out.via or (isinstance(x, Access) and x.via):
            return self._follow(nest, x)
        if nest.product:
            a = self.view(x, nest.shape, axes[:-1], 2)
            b = self.view(nest.reads[1], nest.shape, axes[:-3] + axes[-2:], 2)
            out = self.view(nest.out, nest.shape, axes[:-2] + axes[-1:], 2)
            return f"np.{'dot' if len(axes) == 3 else 'matmul'}({a}, {b}, out={out})"
        return self._fold(nest, x) if nest.fold else self._elementwise(nest)

    def _elementwise(self, nest: Nest) -> str:
        name, operands = nest.function, [self._operand(x, nest) for x in nest.reads]
        out = self.view(nest.out, nest.shape)
        places = out if out.endswith("]") else f"{out}[...]"
        if name == "copy":
            return f"{places} = {operands[0]}"
        if name == "relu":
            return f"np.maximum({operands[0]}, 0, out={out})"
        if name == "mask" and nest.out.buffer.dtype.kind == "f" and isinstance(nest.reads[0], Access):
            # The bits of a number times 0 or 1, because an infinity times 0 is not a number. np.where would
            # take ten times as long.
            bits = f'.view("int{8 * nest.out.buffer.dtype.itemsize}")'
            x, out = [
                self._named(y.buffer, f"{self.view(y, nest.shape)}{bits}") for y in nest.accesses[1::-1]
            ]
            return f"np.multiply({x}, {operands[1]} != 0, out={out})"
        if name == "mask":
            return f"{places} = np.where({operands[1]} != 0, {operands[0]}, 0)"
        row = SCALAR_FUNCTIONS[name]
        if row.operator and not isinstance(row.numpy, np.ufunc):
            return f"{places} = {written(row.text, *operands)}"
        known = f"np.{row.numpy.__name__}" if isinstance(row.numpy, np.ufunc) else name
        return f"{known}({', '.join(operands)}, out={out})"

    def _fold(self, nest: Nest, x: Any) -> str:
        is_copy = nest.function == "copy" and isinstance(x, Access)
        axes = sorted(range(len(nest.shape)), key=lambda i: -abs(x.strides[i]) if is_copy else i)
        kept = [i for i in axes if nest.out.strides[i]]
        folded = tuple([k for k, i in enumerate(axes) if i not in kept])
        axis = None if not kept else folded[0] if len(folded) == 1 else folded
        if is_copy:
            source = self.view(x, nest.shape, axes, len(axes))
        else:  # a number is folded, or a matrix is multiplied by a number
            operands = [self._operand(x, nest) for x in nest.reads]
            source = f"np.broadcast_to({' * '.join(operands)}, {nest.shape})"
        return f"np.{nest.fold}.reduce({source}, axis={axis}, out={self.view(nest.out, nest.shape, kept)})"

    def _follow(self, nest: Nest, x: Any) -> str:
        """Take the rows that an index names, or add to them."""
        outer, count, inner = nest.shape
        place: Any = x if nest.out.via is None else nest.out
        index, n = self._all(place.via.buffer, count), place.strides[0] // inner
        if place is x:
            ahead, behind = (outer,) * (outer > 1), (inner,) * (inner > 1)
            source = self._all(x.buffer, *ahead, n, *behind)
            out = self._all(nest.out.buffer, *ahead, count, *behind)
            if place.via.buffer.dtype != np.intp:  # in a browser
                index += ".astype(np.intp)"
            return f'np.take({source}, {index}, axis={len(ahead)}, out={out}, mode="clip")'
        values = self._all(x.buffer, x.buffer.size) if isinstance(x, Access) else self._operand(x, nest)
        out = self._all(place.buffer, place.buffer.size)
        if outer == inner == 1:
            return f"np.add.at({out}, {index}, {values})"
        return f"add_at({out}, {values}, {index}, {n}, {inner})"

    def _check(self, nest: Nest, x: Access) -> str:
        """Return the number of the check if it fails."""
        self.checks.append(nest)
        y = self.view(x, nest.shape)
        if nest.function == "check_not_zero":
            return f"if not {y}.all(): return {len(self.checks)}"
        test = f"{nest.reads[1]} <= {y}.min() <= {y}.max() < {nest.reads[2]}"
        if x.buffer.dtype.kind == "f":
            test = f"({test} and ({y} == np.trunc({y})).all())"
        return f"if not {test}: return {len(self.checks)}"

    def _operand(self, x: Any, nest: Nest) -> str:
        dtype = nest.out.buffer.dtype
        if isinstance(x, Access):
            return self.view(x, nest.shape)
        if isinstance(x, Number):
            text, kind = self.formulas[x.text], {"f": "float", "b": "int"}.get(dtype.kind, f"np.{dtype}")
            return text if dtype.kind == "f" and isinstance(x, float) else f"{kind}({text})"
        if dtype.kind != "f":
            return str(bool(x) if dtype.kind == "b" else int(x))
        with np.errstate(over="ignore"):
            text = str(dtype.type(x))  # beside an array, NumPy takes a number for one of its data type
        text = text.replace("inf", "np.inf").replace("nan", "np.nan")
        return text if text == "-0.0" else text.removesuffix(".0")
