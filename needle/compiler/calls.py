"""Calls: the source of what a program does around its computation.

The source is written for one program, so a call checks only the guards that this program needs (see
`surroundings.py`). For a step of training it reads like this; the guards about modules are left out here::

    def call(x0, x1):
        now_mode = mode.get()
        if not (now_mode is mode0 or …): return AGAIN
        a0 = x0._data
        if not (type(a0) is NDArray and a0.shape == (10, 2) and …): return AGAIN
        …
        n_optimizer_lr = owner0.lr
        with lock:
            for tensor, data in owned:
                if tensor._data is not data or references(data) != 4:
                    own()
                    break
            result0 = storage0()
            step(…, result0.buffer, work0, state0, n_optimizer_lr)
        outcome0 = tensor_of0(result0, now_mode[2])
        return outcome0
"""

from __future__ import annotations

import functools
import math
import re
import sys
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import autograd
from ..autograd import Tensor
from ..backend_ndarray.strides import compact_strides
from ..backend_selection import NDArray
from ..graph import Spec
from ..modes import GRAD, LAZY, SCOPE, mode
from ..stand_ins import Number
from .codegen import Part
from .lower import Buffer, Call
from .surroundings import ABSENT, PLAIN, Binding, same
from .trace import Input, Outcome, Trace, with_tensors

if TYPE_CHECKING:
    from .program import Program

#: What `call` returns if a guard fails: the caller then looks for another program, or traces again.
AGAIN = object()

#: How many references there are to the array of a Tensor, while nobody else holds it and we count them: the
#: Tensor's, that of `owned`, a variable's, and the counter's.
REFERENCES = 4


class Counts:
    """The number of updates that an optimiser has made to some parameters, if it is the same for all.

    Attributes
    ----------
    written : dict
        The counts that the last call wrote. If the optimiser's counts still equal them, `number` is valid;
        this comparison takes a third of the time that reading all counts takes.
    number : int
        The count in `written`.
    """

    def __init__(self, params: list[Any]):
        self.params = params
        self.written: dict[Any, int] = {}
        self.number = 0

    def read(self, updates: dict[Any, int]) -> int | None:
        """Return the common count, or None if the parameters have different counts."""
        found = {updates.get(p, 0) for p in self.params}
        return found.pop() if len(found) == 1 else None

    def write(self, updates: dict[Any, int], number: int) -> None:
        """Set the count of every parameter to `number`."""
        self.written, self.number = dict.fromkeys(self.params, number), number
        updates.update(self.written)


class CallWriter:
    """Writes the function `call` of a program, which checks guards, collects inputs, computes and returns.

    Attributes
    ----------
    call : callable
        Takes the leaves of the arguments; returns the result, or `AGAIN` if a guard fails.
    asks : callable
        Checks the guards without computing; returns `AGAIN` if one of them fails.
    """

    def __init__(self, program: Program, leaves: list[Any]):
        self.program = program
        self.names: dict[str, Any] = {
            "ABSENT": ABSENT, "AGAIN": AGAIN, "Tensor": Tensor, "Trace": Trace, "array": np.ndarray,
            "mode": mode, "NDArray": NDArray, "references": sys.getrefcount, "inf": math.inf,
            "nan": math.nan, "program": program, "owned": program.owned, "lock": program.lock,
            "now": program._now, "fill": with_tensors, "own": program.own, "same": same,
            "fixed": program.fixed_data, "flat": np.ascontiguousarray,
        }  # fmt: skip
        self._known: dict[tuple[str, int], str] = {}  # the names of objects, by their ids
        self._numbers: Counter[str] = Counter()
        self.lines: list[str] = []
        self.leaves = [f"x{i}" for i in range(len(leaves))]
        self._counted: dict[Any, tuple[str, str]] = {}
        self.tensors: set[str] = set()  # the leaves that were asked whether they are Tensors
        self.values: dict[Buffer, str] = {}  # where the numbers of inputs are found
        self._given_tensors = {x.tensor for _, x in program._given}
        self._ask(leaves)
        self.asks = self._function("asks")
        self._compute()
        self._hand_out()
        self.call = self._function("call")

    def _function(self, name: str) -> Callable:
        body = "\n".join(f"    {line}" for line in self.lines)
        source = f"def {name}({', '.join(self.leaves)}):\n{body}\n"
        exec(compile(source, f"<needle {name}>", "exec"), self.names)
        return self.names[name]

    def name(self, base: str, value: Any) -> str:
        """A global name for an object, the same each time."""
        if (base, id(value)) not in self._known:
            name = f"{base}{self._numbers[base]}"
            self._numbers[base] += 1
            self.names[name] = value
            self._known[base, id(value)] = name
        return self._known[base, id(value)]

    def ask(self, *conditions: str) -> None:
        """Add guards: `call` returns `AGAIN` unless all these conditions hold."""
        if conditions:
            self.lines.append(f"if not ({' and '.join(conditions)}): return AGAIN")

    # Guards: is everything as it was during the trace?

    def _ask(self, leaves: list[Any]) -> None:
        usual, grad = self.name("mode", mode.get()), mode.get()[GRAD]
        self.lines.append("now_mode = mode.get()")
        self.ask(
            f"(now_mode is {usual} or now_mode[{GRAD}] is {grad} and type(now_mode[{LAZY}]) is not Trace)"
        )
        for leaf, value in zip(self.leaves, leaves, strict=True):
            if isinstance(value, (int, float)):
                self.ask(f"type({leaf}) is {type(value).__name__}")
        self._ask_which(leaves)
        self._ask_inputs()
        self._ask_surroundings()
        self._ask_optimizers()
        self._ask_numbers()

    def _ask_which(self, leaves: list[Any]) -> None:
        """Guard which arguments are one and the same Tensor, and which of them are also closed over.

        Both must be as in the trace, because gradients and writes depend on it.
        """
        program = self.program
        found = [
            (x, value)
            for x, value in zip(self.leaves, leaves, strict=True)
            if not isinstance(value, (int, float))
        ]
        if len(found) == 2:
            self.ask(f"{found[0][0]} is not {found[1][0]}")
        elif len(found) > 2:
            self.ask(f"len({{{', '.join(f'id({x})' for x, _ in found)}}}) == {len(found)}")
        known = program.around.tensors
        inside = self.name("known", frozenset(known)) if known else ""
        bound = [self._expression(x) for x in known if id(x) in program.around.bound]
        for leaf, value in found:
            if isinstance(value, Tensor) and value in known:
                self.ask(f"{leaf} is {self._expression(value)}")
            elif isinstance(value, Tensor):
                if value in program._state_tensors:
                    self.ask(f"{leaf} is {self.name('tensor', value)}")
                elif known:
                    others = [f"{leaf} is not {x}" for x in bound]
                    self.ask(f"isinstance({leaf}, Tensor)", f"{leaf} not in {inside}", *others)
                    self.tensors.add(leaf)

    def _expression(self, value: Any) -> str:
        """The expression by which `call` finds a closed-over Tensor or array, or the gradient of one."""
        bound: Binding | None = self.program.around.bound.get(id(value))
        if bound is None or (isinstance(value, Tensor) and value in self.program._state_tensors):
            return self.name("tensor", value)
        if isinstance(bound.holder, Tensor):
            return f"{self._expression(bound.holder)}.grad"
        return bound.source(self.name("names", bound.holder))

    def _ask_inputs(self) -> None:
        program = self.program
        used = {buffer for buffer, _ in program._given}
        fixed = {buffer: i for i, (buffer, _) in enumerate(program.fixed)}
        closed_over: dict[bool, list[Tensor]] = {True: [], False: []}
        for number, (buffer, x) in enumerate(program._inputs):
            if x.tensor is None:
                self._ask_array(buffer, x)
                continue
            bound = program.around.bound.get(id(x.tensor))
            if bound is not None and isinstance(bound.holder, Tensor) and buffer not in used:
                continue  # a gradient from before, which is not needed
            tensor = self.leaves[x.leaf] if x.leaf is not None else self._expression(x.tensor)
            if x.leaf is None and (bound is None or x.tensor in program._state_tensors):
                closed_over[bool(x.tensor.requires_grad)].append(x.tensor)
            else:
                self._ask_tensor(f"a{number}", tensor, x)
                self.values[buffer] = _storage_of(f"a{number}")
            if buffer in fixed:
                self.ask(f"{tensor}._data is fixed[{fixed[buffer]}]")
                self.values[buffer] = _storage_of(f"fixed[{fixed[buffer]}]")
            self._ask_grad(tensor, x)
        for wanted, tensors in closed_over.items():
            if tensors:
                self.lines.append(f"for tensor in {self.name('tensors', tensors)}:")
                self.lines.append(f"    if tensor.requires_grad is not {wanted}: return AGAIN")

    def _ask_array(self, buffer: Buffer, x: Input) -> None:
        if x.leaf is not None:
            holder = self.leaves[x.leaf]
        elif id(x.array) in self.program.around.bound:
            holder = self._expression(x.array)
        else:
            holder = self.name("array_", x.array)
        self.ask(f"type({holder}) is array", f"{holder}.shape == {x.cell.shape}")
        self.ask(f"{holder}.dtype == {self.name('dtype', x.array.dtype)}")
        self.values[buffer] = f"flat({holder}, {self.name('dtype', x.cell.dtype)}).reshape(-1)"

    def _ask_tensor(self, data: str, tensor: str, x: Input) -> None:
        cell = x.cell
        if tensor not in self.tensors:
            self.ask(f"isinstance({tensor}, Tensor)")
        self.lines.append(f"{data} = {tensor}._data")
        dtype, device = self.name("dtype", cell.dtype), self.name("device", cell.device)
        self.ask(
            f"type({data}) is NDArray", f"{data}.shape == {cell.shape}", f"{data}.dtype is {dtype}",
            f"{data}.device is {device}", f"{tensor}.requires_grad is {bool(x.tensor.requires_grad)}",
        )  # fmt: skip

    def _ask_grad(self, tensor: str, x: Input) -> None:
        """Guard whether an input has a gradient from before the call, if the function may have read it."""
        around, found = self.program.around, self.program.trace
        learned = any(x.tensor in o._updates or x.tensor in o.params for o in around.optimizers)
        is_used = x.tensor.grad is not None and x.tensor.grad in self._given_tensors  # by a step
        if around.reads_grad or (learned and (is_used or x.tensor not in found.new_grads)):
            self.ask(f"{tensor}.grad is {'not ' if x.tensor in found.old_grads else ''}None")

    def _ask_surroundings(self) -> None:
        """Guard that everything the function can reach is still the same."""
        program, around = self.program, self.program.around
        inputs = {id(x.array if x.tensor is None else x.tensor): x for _, x in program._inputs}
        for owner, keys, _ in around.sizes:
            self.ask(f"len({self.name('attributes', vars(owner))}) == {len(keys)}")
        for place in around.watched.values():
            value, x = place.value, inputs.get(id(place.value))
            if value is ABSENT and place.key is None:
                continue  # a cell that is not set, and so not read
            is_input = x is not None and x.tensor not in program._state_tensors
            if is_input and around.bound.get(id(value)) is place:
                continue  # another Tensor or array may be here: the guards on inputs check it
            now, then = place.source(self.name("names", place.holder)), self.name("value", value)
            plain = isinstance(value, PLAIN)
            self.ask(f"({now} is {then} or same({now}, {then}))" if plain else f"{now} is {then}")
        used = program._state_tensors.union(x.tensor for _, x in program._given)
        for place in around.grads:
            is_fixed = around.bound.get(id(place.value)) is not place or place.value in program._state_tensors
            if is_fixed and place.value in used:
                self.ask(f"{self._expression(place.holder)}.grad is {self._expression(place.value)}")
        held = [(holder, then) for holder, then, _ in around.held if not self._is_optimizers(holder)]
        if held:
            holders = self.name("held", [holder for holder, _ in held])
            # The snapshots stand first, since their `==` answers at once and that of Tensors takes long.
            self.ask(f"{self.name('then', [then for _, then in held])} == {holders}")

    def _is_optimizers(self, holder: Any) -> bool:
        """Whether a container is a group of an optimiser; `_ask_numbers` guards its numbers one by one."""
        return any(holder is group for o in self.program.around.optimizers for group in o.groups)

    def _ask_optimizers(self) -> None:
        """Guard that optimisers have the same groups, and keep their states in the same Tensors."""
        for optimizer in self.program.around.optimizers:
            owner = self.name("owner", optimizer)
            state = {p: dict(memory) for p, memory in optimizer.state.items()}
            self.ask(f"{owner}.state == {self.name('state', state)}")
            groups = optimizer.groups
            self.ask(f"len({owner}.groups) == {len(groups)}")
            for i, group in enumerate(groups):
                then = self.name("group", group)
                self.ask(f"{owner}.groups[{i}] is {then}", f"len({then}) == {len(group)}")

    def _ask_numbers(self) -> None:
        program, found = self.program, self.program.trace
        used = [*found.answers, *program._formulas, *[t.text for _, _, t in found.counts]]
        used += [x.text for x in program.returned_numbers]
        words = set(re.findall(r"\w+", " ".join(used)))
        for name, source in found.numbers.items():
            if name not in words:
                continue
            if source.kind == "leaf":
                self.lines.append(f"n_{name} = {self.leaves[source.key]}")
            elif source.kind == "count":
                counts, updates = self._counts(source.owner, source.key)
                self.lines.append(f"n_{name} = {counts}.number")
                self.lines.append(f"if {updates} != {counts}.written: n_{name} = {counts}.read({updates})")
                self.ask(f"n_{name} is not None")
            else:
                owner = self.name("owner", source.owner)
                dot = f".{source.key}" if source.kind == "attribute" else f"[{source.key!r}]"
                self.lines.append(f"n_{name} = {owner}{dot}")
                self.ask(f"type(n_{name}) is {self.name('type', found.types[name])}")
                if issubclass(found.types[name], np.generic):
                    self.lines.append(f"n_{name} = n_{name}.item()")
        for text, answer in found.answers.items():
            if answer is None or isinstance(answer, bool):
                self.ask(f"({self.formula(text)}) is {answer}")
            else:
                then = self.name("answer", answer)
                self.ask(f"same({self.formula(text)}, {then})")

    def _counts(self, optimizer: Any, params: list[Any]) -> tuple[str, str]:
        """The names of the `Counts` of some parameters, and of the dictionary that holds all counts."""
        key = (optimizer, frozenset(params))
        if key not in self._counted:
            self._counted[key] = self.name("counts", Counts(params)), self.name("owner", optimizer)
        counts, owner = self._counted[key]
        return counts, f"{owner}._updates"

    def formula(self, text: str) -> str:
        """A formula in which each number has the name that `call` gives it, such as ``n_lr``."""
        numbers = self.program.trace.numbers
        return re.sub(r"[^\W\d]\w*", lambda word: f"n_{word[0]}" if word[0] in numbers else word[0], text)

    # Then compute

    def _compute(self) -> None:
        program = self.program
        self.lines.append("with lock:")
        if program.states:
            self.lines += self.own_lines()
        arguments = {buffer.name: self.values[buffer] for buffer, _ in program._given}
        for i, (buffer, draw) in enumerate(program._draws):
            arguments[buffer.name] = f"drawn{i}"
            self.lines.append(f"    drawn{i} = {self.name('draw', draw)}()._handle.buffer")
        for buffer in program._constants:
            arguments[buffer.name] = self.name("constant", buffer.data)
        for name, store in program._storage.items():
            arguments[name] = self.name(name if name.isidentifier() else "store", store)
        for i, (buffer, spec) in enumerate(program.results):
            arguments[buffer.name] = f"result{i}.buffer"
            storage = self.name(
                "storage", functools.partial(spec.device.mod.Array, buffer.size, buffer.dtype)
            )
            self.lines.append(f"    result{i} = {storage}()")
        arguments |= {name: self.formula(text) for text, name in program._formulas.items()}
        arrays = f"dict({', '.join(f'{k}={v}' for k, v in arguments.items())})"
        if any(isinstance(part, Call) for part in program.parts):
            self.lines.append(f"    arrays = {arrays}")
            arrays = "arrays"
        if self.lines[-1] == "with lock:":
            self.lines[-1:] = []  # nothing is computed
        for part in program.parts:
            if isinstance(part, Part):
                call = f"{part.name}({', '.join(arguments[name] for name in part.arguments)})"
                if part.checks:
                    self.lines.append(f"    status = {call}")
                    failed = f"program.failed({self.name('part', part)}, status, {arrays})"
                    self.lines.append(f"    if status: {failed}")
                else:
                    self.lines.append(f"    {call}")
            else:
                self.names["compute"] = program._compute
                self.lines.append(f"    compute({self.name('part', part)}, {arrays})")

    def give(self, part: Part, kernel: Callable) -> None:
        """Let `call` compute a part by this kernel."""
        self.names[part.name] = kernel

    def own_lines(self) -> list[str]:
        """Lines that check that only the program holds the arrays it is about to overwrite."""
        return [
            "    for tensor, data in owned:",
            f"        if tensor._data is not data or references(data) != {REFERENCES}:",
            "            own()",
            "            break",
            "    tensor = data = None",
        ]

    def _hand_out(self) -> None:
        """Write the updates of counts and gradients, and return the result."""
        program, found = self.program, self.program.trace
        updated: dict[tuple[int, str], tuple[Any, str, list]] = {}
        for optimizer, p, t in found.counts:
            updated.setdefault((id(optimizer), t.text), (optimizer, t.text, []))[2].append(p)
        for optimizer, text, params in updated.values():
            counts, updates = self._counts(optimizer, params)
            self.lines.append(f"    {counts}.write({updates}, {self.formula(text)})")
        for number, (_, spec) in enumerate(program.results):
            tensor_of = self.name("tensor_of", maker_of(spec))
            self.lines.append(f"outcome{number} = {tensor_of}(result{number}, now_mode[{SCOPE}])")
        outcomes = [f"outcome{number}" for number in range(len(program.results))]
        leaves = f"[{', '.join(self.leaves)}]"
        grads = outcomes[len(outcomes) - len(program._with_grad) :]
        for p, outcome in zip(program._with_grad, grads, strict=True):
            self.lines.append(f"now({self.name('tensor', p)}, {leaves}).grad = {outcome}")
        for p in program._without_grad:
            if program._input_of[p].leaf is not None or id(p) in program.around.bound:
                self.lines.append(f"now({self.name('tensor', p)}, {leaves}).grad = None")
        if params := [
            p for p in program._without_grad
            if program._input_of[p].leaf is None and id(p) not in program.around.bound
        ]:  # fmt: skip
            self.lines.append(f"for p in {self.name('params', params)}:")
            self.lines.append("    if p.grad is not None: p.grad = None")
        template = program._template
        tensors = iter(outcomes)
        found_ = [self.formula(x.text) if isinstance(x, Number) else next(tensors) for x in program.returned]
        if type(template) is Outcome:
            self.lines.append(f"return {found_[template.number]}")
        elif template is None:
            self.lines.append("return None")
        else:
            self.lines.append(
                f"return fill({self.name('template', template)}, [{', '.join(found_)}], "
                f"lambda tensor: now(tensor, {leaves}))"
            )


def _storage_of(array: str) -> str:
    """The expression for the flat storage of an array."""
    return f"({array} if {array}._compact else {array}.compact())._handle.buffer"


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
