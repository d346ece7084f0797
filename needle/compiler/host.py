"""Host: what Python does in each call before and after the machine code, as generated source.

The source has one line for each question and each array: a loop over them would take longer than they do.
For ``layer(x) = relu(x @ W + b)`` it is, shortened,

    def fits(leaves):
        return (
            type(leaves[0]._data) is array
            and W.requires_grad is True and like(W._data, looks_of_W)
            and b.requires_grad is True and like(b._data, looks_of_b)
        )

    def call(args, kwargs):
        leaves = taken(args, kwargs)
        if leaves is None: return again
        found = numbers(leaves) if fits(leaves) else None
        if found is None: return again
        x = leaves[0]._data._handle.buffer
        …
        result = new(80, float32)
        status = kernels[0](x, W, b, result.buffer)
        if status: failed(status)
        return finish(leaves, [tensor(result)], found)

`leaves` are the Tensors, arrays and numbers among the arguments, and `taken` finds them if these look as they
did. A step of training also asks for the state and the options of its optimiser; `numbers` computes what it
needs of them, and `finish` puts gradients where they belong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import inf, nan
from typing import Any
from weakref import finalize, proxy

import numpy as np

from .. import autograd
from ..autograd import Tensor, Value
from ..backend_ndarray.kernel_calls import check_number
from ..backend_ndarray.strides import compact_strides
from ..backend_selection import NDArray
from ..graph import Spec
from ..modes import GRAD, SCOPE, mode
from ..nn.module import Module
from .lower import Call
from .stand_ins import Option
from .structures import Fixed, Leaf, is_plain, mapped, with_items
from .trace import ABSENT, Input, one_at_a_time

#: What a call returns if the program does not fit: the caller looks for another one, or traces again.
AGAIN: Any = object()


class Host:
    """Writes the source of a program's calls.

    Attributes
    ----------
    source : str
        It has these functions:

        ``taken(args, kwargs)``: the leaves of a call's arguments; None if structure, shapes or types differ
        from those of the traced call.
        ``fits(leaves)``: whether needle's objects are as they were when the function was traced, but for
        their numbers.
        ``numbers(leaves)``: what the formulas make of the numbers of the host; what the function returns of
        them; and the new counts of updates. None if parameters that had one count of updates have several.
        ``collect(leaves, steps)``: all arrays of so many steps of `scan` by their names, and the storage of
        the results.
        ``finish(leaves, outcomes, numbers)``: puts gradients where they belong, and returns what the function
        returns.
        ``call(args, kwargs)``: all of this for one step; `AGAIN` if the program does not fit.
    names : dict of str to object
        The globals of the source. Those used in ``numbers`` begin with two underscores, because its variables
        have the names of the user's numbers.
    """

    def __init__(self, program: Any):
        self.program = program
        self.names: dict[str, Any] = {**_KNOWN, "__lock": program.lock, "__owned": program.owned}
        self.names |= {"__kept": program.kept, "__kernels": program.kernels}
        # Its functions know their names, which know them: a circle, which ends with the program.
        self.names["__program"] = proxy(program)
        finalize(program, self.names.clear).atexit = False
        self._leaves: list[str] = []
        self.arrays: dict[str, str] = {name: f"__kept[{name!r}]" for name in program.kept}
        collecting = self._collecting()
        storage = [f"r{i}" for i in range(len(program.results))]
        made = [
            f"{self.named(maker_of(spec))}({name}, scope)"
            for name, (_, spec) in zip(storage, program.results, strict=True)
        ]
        first = len(program.formulas) + len(program.returned_numbers)
        counting = [
            f"{self.named(optimizer)}._updates.update(__repeat({self.named(params)}, found[{first + i}]))"
            for i, ((optimizer, _), params) in enumerate(program.counts.items())
        ]
        functions = {
            "taken(args, kwargs)": self._taken(),
            "fits(leaves)": [
                "try:",
                *self._fits(),
                "except (AttributeError, KeyError, ValueError): return False",
            ],
            "numbers(__leaves)": self._numbers(),
            "collect(leaves, steps)": [
                *collecting,
                f"return {_dictionary(self.arrays)}, [{', '.join(storage)}]",
            ],
            "finish(leaves, outcomes, numbers)": self._finish(),
            "call(args, kwargs)": [
                "leaves = taken(args, kwargs)",
                "if leaves is None: return __again",
                "__one_at_a_time.acquire()",  # while another thread traces, Tensors hold no arrays
                "__lock.acquire()",
                "try:",
                "    try:",
                "        found = numbers(leaves) if fits(leaves) else None",
                "        if found is None: return __again",
                "        steps = 1",
                *[f"        {line}" for line in collecting],
                "    finally: __one_at_a_time.release()",
                *[f"    {line}" for line in [*self._computing(), *counting]],
                "finally: __lock.release()",
                f"scope = __mode()[{SCOPE}]",
                f"with __one_at_a_time: return finish(leaves, [{', '.join(made)}], found)",
            ],
        }
        self.source = "\n\n".join(
            ["\n    ".join([f"def {head}:", *body]) + "\n" for head, body in functions.items()]
        )
        exec(self.source, self.names)

    def named(self, x: Any) -> str:
        """A name for an object in the source."""
        self.names[name := f"__{len(self.names)}"] = x
        return name

    def _now(self, x: Input) -> str:
        """Source for the Tensor that an input has in this call; a `grad` is read from its owner."""
        found = self.program.trace
        if x.tensor in found.grad_of:
            return f"{self._now(found.input_of[found.grad_of[x.tensor][0]])}._grad"
        return self.named(x.tensor) if x.leaf is None else f"leaves[{x.leaf}]"

    def _taken(self) -> list[str]:
        (positional, named), given, grad = self.program.structure
        looks = [look for _, look in given]
        asks = [f"__mode()[{GRAD}] is {grad}", f"len(args) == {len(positional)}"]
        for i, x in enumerate(positional):
            asks += self._ask(x, f"args[{i}]", looks)
        asks += self._ask(named, "kwargs", looks) if named else ["not kwargs"]
        leaves = ", ".join([f"x{i}" for i in range(len(looks))])
        return ["if (", *_all(asks), f"): return [{leaves}]", "return None"]

    def _ask(self, template: Any, place: str, looks: list[Any]) -> list[str]:
        """Whether what is at a place looks as what was there when the function was traced."""
        if isinstance(template, (dict, list, tuple)):
            kind, keys = self.named(type(template)), list[Any](range(len(template)))
            asks = [f"type({place}) is {kind}"]
            if isinstance(template, dict):
                keys = [self.named(key) for key in template]
                asks.append(f"[*{place}] == [{', '.join(keys)}]")
                template = list(template.values())
            else:
                asks.append(f"len({place}) == {len(template)}")
            for key, x in zip(keys, template, strict=True):
                asks += self._ask(x, f"{place}[{key}]", looks)
            return asks
        if type(template) is not Leaf:
            return [f"{self.named(template)} == {place}"]
        leaf, look = f"x{template}", looks[template]
        if leaf in self._leaves:
            return [f"{place} is {leaf}"]
        self._leaves.append(leaf)
        if isinstance(look, type):
            return [f"type({leaf} := __number({place})) is {self.named(look)}"]
        if len(look) == 2:
            return [
                f"isinstance({leaf} := {place}, __host_array)",
                f"({leaf}.shape, {leaf}.dtype) == {self.named(look)}",
            ]
        others = [f"{leaf} is not {other}" for other in self._leaves[:-1]]
        data = f"{leaf}._data"
        return [
            f"isinstance({leaf} := {place}, __tensor)",
            *others,
            f"({data}.shape, {data}.dtype, {data}.device, {leaf}.requires_grad) == {self.named(look)}",
        ]

    def _fits(self) -> list[str]:
        asks = [*self._asks_of_grads(), *self._asks_of_tensors(), *self._asks_of_attributes()]
        return ["    return bool(", *_all([*asks, *self._asks_of_optimizers()] or ["True"]), "    )"]

    def _asks_of_grads(self) -> Iterator[str]:
        found, states = self.program.trace, [tensor for tensor, _ in self.program.states]
        for p, has in found.asked_grads.items():
            yield f"({self._now(found.input_of[p])}._grad is not None) is {has}"
        for grad, owners in found.grad_of.items():
            first, *others = [f"{self._now(found.input_of[p])}._grad" for p in owners]
            yield from [f"{other} is {first}" for other in others]
            if any(grad is tensor for tensor in states):
                yield f"{first} is {self.named(grad)}"
        for x, goes_on in found.ends:
            yield f"({self._now(x)}.op is not None) is {goes_on}"

    def _asks_of_tensors(self) -> Iterator[str]:
        program, found, named = self.program, self.program.trace, self.named
        used, own = {buffer for buffer, _ in program.given}, named(program.own_tensors)
        for buffer, x in program.inputs:
            is_grad = x.tensor in found.grad_of
            if x.tensor is None or (is_grad and buffer not in used):
                continue
            place, looks = self._now(x), named(x.cell.spec)
            if is_grad:
                yield f"__like({place}.realize_cached_data(), {looks})"
            elif x.leaf is not None and x.leaf not in program.bound:  # `taken` has asked what it looks like
                yield f"type({place}._data) is __array"
                yield f"{place} not in {own}"
            else:
                if x.leaf is not None:
                    yield f"{place} is {named(program.bound[x.leaf])}"
                yield f"{place}.requires_grad is {bool(x.tensor.requires_grad)}"
                kept = [
                    f"{place}._data is __owned[{i}][1] or "
                    for i, (tensor, _) in enumerate(program.states)
                    if tensor is x.tensor
                ]
                yield f"({''.join(kept)}__like({place}._data, {looks}))"

    def _asks_of_attributes(self) -> Iterator[str]:
        found, named = self.program.trace, self.named
        for holder, asked in found.asked.items():
            place = named(vars(holder))
            for name, x in asked.items():
                if x is not ABSENT:
                    here, kept = f"{place}[{name!r}]", mapped(_fixed, x)
                    if is_plain(x) or isinstance(x, (Module, Value)):
                        yield f"({here} is {named(x)} or {here} == {named(kept)})"
                    elif isinstance(x, dict):  # the order of keys counts, too
                        yield f"[*{here}.items()] == {named([*kept.items()])}"
                    else:
                        yield f"{here} == {named(kept)}"
                elif name == "__dict__":  # all of them, as `parameters` does
                    yield f"[*{place}] == {named([*vars(holder)])}"
                else:
                    yield f"{name!r} not in {place}"

    def _asks_of_optimizers(self) -> Iterator[str]:
        found, named = self.program.trace, self.named
        for optimizer in found.updates:
            place = named(optimizer)
            yield f"{place}.state == {named({p: dict(x) for p, x in optimizer.state.items()})}"
            for name in ("params", "groups"):
                yield f"{place}.{name} == {named([*vars(optimizer)[name]])}"
            for group in optimizer.groups:
                yield f"len({named(group)}) == {len(group)}"
                yield f"{named(group)}['params'] == {named([*group['params']])}"
        for holder, key, value in found.options.values():
            option = f"{named(holder)}[{key!r}]"
            if type(value) is Option:
                yield option  # any number but 0
            else:
                is_short = value is None or type(value) in (bool, int, float, str)
                yield f"{option} == {value!r}" if is_short else f"{named(Fixed(value))} == {option}"

    def _numbers(self) -> list[str]:
        program, found = self.program, self.program.trace
        texts = [*program.formulas, *[x.text for x in program.returned_numbers]]
        texts += [text for _, text in program.counts]
        checked = [text for _, _, text, _ in program.checks]
        words = set(re.findall(r"[^\W\d]\w*", " ".join([*texts, *checked])))
        lines = []
        for name, (kind, owner, *rest) in found.numbers.items():
            if name in words and kind == "count":
                lines.append(f"{name} = __count({self.named(owner)}, {self.named(rest[0])})")
                lines.append(f"if {name} is None: return None")
            elif name in words:
                source = f"__leaves[{owner}]" if kind == "leaf" else f"{self.named(owner)}[{rest[0]!r}]"
                lines.append(f"{name} = {source}")
        for row, dtype, text, is_last in program.checks:
            lines.append(f"__check({row!r}, {self.named(dtype)}, {text}, {is_last})")
        return [*lines, f"return [{', '.join(texts)}]"]

    def _collecting(self) -> list[str]:
        """Lines that fetch the arrays of a call, or of so many `steps`."""
        program, part = self.program, "" if self.program.on_gpu else ".buffer"
        lines = ["__program.see_own()"] * bool(program.states)
        for buffer, x in program.given:
            data = f"x{len(self.arrays)}"
            if x.tensor is None:
                text = f"__flat(leaves[{x.leaf}], {self.named(x.cell.dtype)}).reshape(-1)"
            else:
                lines.append(f"{data} = {self._now(x)}._data")
                text = f"({data} if {data}._compact else {data}.compact())._handle{part}"
            lines.append(f"{data} = {text}")
            self.arrays[buffer.name] = data
        lines += ["drawn = __program.draw(steps)"] * bool(program.draws)
        self.arrays |= {buffer.name: f"drawn[{i}]" for i, (buffer, _) in enumerate(program.draws)}
        for i, (buffer, spec) in enumerate(program.results):
            new, dtype = self.named(spec.device.mod.Array), self.named(buffer.dtype)
            lines.append(f"r{i} = {new}({buffer.size} * steps, {dtype})")
            self.arrays[buffer.name] = f"r{i}{part}"
        return lines

    def _computing(self) -> list[str]:
        """Lines that call the kernels, or the program's own method."""
        numbers = {name: f"found[{i}]" for i, name in enumerate(self.program.formulas.values())}
        if self.program.compute is not None:
            return [f"__program.compute({_dictionary(self.arrays)} | {_dictionary(numbers)})"]
        lines, values = [], self.arrays | numbers
        for i, part in enumerate(self.program.parts):
            if isinstance(part, Call):
                lines.append(f"__program.call({self.named(part)}, {_dictionary(self.arrays)})")
                continue
            lines.append(f"status = __kernels[{i}]({', '.join([values[name] for name in part.arguments])})")
            lines.append(
                f"if status: __program.failed({self.named(part)}, status, {_dictionary(self.arrays)})"
            )
        return lines

    def _finish(self) -> list[str]:
        program, found, lines = self.program, self.program.trace, list[str]()
        count = len(program.results) - program.grad_count
        grads = iter(range(count, len(program.results)))
        for x, grad in found.grads:
            lines.append(f"{self._now(x)}._grad = {None if grad is None else f'outcomes[{next(grads)}]'}")
        tensors, numbers = iter(range(count)), iter(range(len(program.formulas), 1 << 30))
        places = [
            f"outcomes[{next(tensors)}]" if isinstance(x, Tensor) else f"numbers[{next(numbers)}]"
            for x in found.returned
        ]
        return [f"result = {self._result(found.template, places)}", *lines, "return result"]

    def _result(self, x: Any, places: list[str]) -> str:
        """What makes a part of what the function returns; `places` are those of what it computed."""
        if type(x) is Leaf:
            return places[x]
        if isinstance(x, dict):
            items = ", ".join([f"{self.named(key)}: {self._result(y, places)}" for key, y in x.items()])
            return f"{{{items}}}" if type(x) is dict else f"__with_items({self.named(x)}, {{{items}}})"
        if isinstance(x, (list, tuple)):
            items = ", ".join([self._result(y, places) for y in x])
            if type(x) is list:
                return f"[{items}]"
            return f"({items},)" if type(x) is tuple and x else f"{self.named(type(x))}({items})"
        came = self.program.trace.input_of.get(x) if isinstance(x, Tensor) else None
        return self.named(x) if came is None else self._now(came)


def _dictionary(texts: dict[str, str]) -> str:
    """The source of a dictionary."""
    return f"{{{', '.join([f'{name!r}: {text}' for name, text in texts.items()])}}}"


def _all(asks: list[str]) -> list[str]:
    """Lines of one condition."""
    return [f"        {'and ' * bool(i)}{x}" for i, x in enumerate(asks)]


def _number(x: Any) -> Any:
    """A number of NumPy's as one of Python's; all else as it is."""
    return x.item() if isinstance(x, np.number) else x


def _is_like(data: Any, spec: Spec) -> bool:
    """Whether the array of a Tensor is there, and looks as it did."""
    return type(data) is NDArray and (data.shape, data.dtype, data.device) == spec


def _fixed(x: Any, _: str) -> Any:
    """What an attribute of a module, or a part of one, is compared with."""
    return x if isinstance(x, (Module, Value)) else Fixed(x)


def _common_count(optimizer: Any, params: list[Any]) -> int | None:
    """How often an optimiser has updated these parameters; None where that differs."""
    counts = {*map(optimizer._updates.get, params)}
    return (counts.pop() or 0) if len(counts) == 1 else None


def maker_of(spec: Spec) -> Callable:
    """A function that makes the Tensor of a result from its storage, as `Tensor.make_const` does.

    It sets all attributes itself instead of calling constructors, because each call takes a noticeable part
    of a small training step.
    """
    shape, dtype, device = spec
    strides, new = compact_strides(shape), object.__new__

    def tensor_of(storage: Any, scope: Any) -> Tensor:
        array = new(NDArray)
        array._handle, array.dtype, array.device, array.shape = storage, dtype, device, shape
        array.strides, array.offset, array._compact, array.base = strides, 0, True, None
        tensor = new(Tensor)
        tensor._data, tensor.requires_grad = array, False
        if scope is not None:
            tensor.scope = scope
        autograd.TENSOR_COUNTER += 1
        return tensor

    return tensor_of


#: What the source of every program names.
_KNOWN: dict[str, Any] = {
    "inf": inf,
    "nan": nan,
    "__again": AGAIN,
    "__array": NDArray,
    "__check": check_number,
    "__count": _common_count,
    "__flat": np.ascontiguousarray,
    "__host_array": np.ndarray,
    "__like": _is_like,
    "__mode": mode.get,
    "__number": _number,
    "__one_at_a_time": one_at_a_time,
    "__repeat": dict.fromkeys,
    "__tensor": Tensor,
    "__with_items": with_items,
}
