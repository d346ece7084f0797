"""From PTX to C: a kernel becomes a function ``body(thread, arguments)``, which one thread runs.

PTX is close to C: registers are variables, labels are labels, and each instruction is an assignment. What is
not listed here is an error.
"""

from __future__ import annotations

import re

HEAD = r"""
#include <math.h>
#include <string.h>
#include "thread.h"
#define BITS(TO, FROM) static inline TO FROM##_as_##TO(FROM x) { TO y; memcpy(&y, &x, sizeof y); return y; }
BITS(float, uint32_t) BITS(uint32_t, float) BITS(double, uint64_t) BITS(uint64_t, double)
static inline float least(float x, float y) { return fminf(x, y); }
"""

# The type of C for a type of PTX, and the letter of its registers.
TYPES = {
    "f32": "float", "f64": "double", "pred": "int",
    "b8": "uint8_t", "u8": "uint8_t", "s8": "int8_t", "b16": "uint16_t", "u16": "uint16_t", "s16": "int16_t",
    "b32": "uint32_t", "u32": "uint32_t", "s32": "int32_t",
    "b64": "uint64_t", "u64": "uint64_t", "s64": "int64_t",
}  # fmt: skip
WIDER = {"s32": "int64_t", "u32": "uint64_t", "s16": "int32_t", "u16": "uint32_t"}
BINARY = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^", "div": "/", "rem": "%"}
COMPARED = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}
ROUNDED = {"rni": "rint", "rmi": "floor", "rpi": "ceil", "rzi": "trunc"}
UNARY = {
    "neg": "-{x}", "sqrt": "sqrt{s}({x})", "rcp": "1 / {x}", "ex2": "exp2{s}({x})", "lg2": "log2{s}({x})",
    "rsqrt": "1 / sqrt{s}({x})", "sin": "sin{s}({x})", "cos": "cos{s}({x})", "not": "~{x}", "cvta": "{x}",
    "tanh": "tanh{s}({x})",
}  # fmt: skip


def c_source(ptx: str) -> str:
    """The kernel in a module of PTX, as C."""
    shared = re.findall(r"\.shared \.align (\d+) \.b8 (\w+)\[(\d+)\]", ptx)
    places = {name: f"(uint64_t)shared.{name}" for _, name, _ in shared}
    lines = [
        HEAD,
        "static struct { int none;",
        *[f"  char {name}[{size}] __attribute__((aligned({align})));" for align, name, size in shared],
        "} shared;",
        "void poison(void) { memset(&shared, 0xFF, sizeof shared); }",
        f"int waits = {int('bar.' in ptx or 'shfl.' in ptx)};",
    ]
    function = re.compile(
        r"(?:\.func\s*(?:\([^)]*\))?|\.entry)\s*(\w+)\(([^)]*)\)[^{;]*\{(.*?)\n\}", re.DOTALL
    )
    found = function.findall(re.sub(r"//.*", "", ptx))
    lines += [f"static void {name}(Thread *, void *, void **);" for name, _, _ in found if name != "kernel"]
    for name, parameters, code in found:
        if name == "kernel":
            lines.append(f"int parameters = {parameters.count('.param')};")
            lines.append("void body(Thread *t, void **arguments) {")
        else:
            lines.append(f"static void {name}(Thread *t, void *func_retval0, void **arguments) {{")
        lines += [*_statements(code, dict(places)), "end: return;", "}"]
    return "\n".join(lines)


def _statements(code: str, places: dict[str, str]) -> list[str]:
    lines = ["  uint32_t carry = 0;"]
    code = re.sub(r"\{(\s*%[^{};]*)\}", r"[[\1]]", code)  # several values; other braces hold declarations
    for text in re.split(
        r"[;\n](?![^\[]*\])|(?<=:)\s|(?=[{}])|(?<=[{}])", re.sub(r",\s*\n", ", ", _calls(code))
    ):
        text = " ".join(text.split())
        if not text or text.startswith(".pragma"):
            continue
        if text in "{}":
            lines.append(text)
        elif match := re.fullmatch(r"\.reg \.(\w+) %(\w+)<(\d+)>", text):
            kind, name, count = match.groups()
            lines.append(f"  {TYPES[kind]} {', '.join(f'{name}_{i} = 0' for i in range(int(count)))};")
        elif match := re.fullmatch(r"\.reg \.(\w+) ([%\w, ]+)", text):
            lines.append(f"  {TYPES[match[1]]} {_plain(match[2])};")
        elif match := re.fullmatch(r"\.param \.b(\d+) (\w+)", text):
            lines.append(f"  char {match[2]}[{int(match[1]) // 8}] __attribute__((aligned(8)));")
        elif match := re.fullmatch(r"\.param \.align (\d+) \.b8 (\w+)\[(\d+)\]", text):
            lines.append(f"  char {match[2]}[{match[3]}] __attribute__((aligned({match[1]})));")
        elif match := re.fullmatch(r"\.local \.align (\d+) \.b8 (\w+)\[(\d+)\]", text):
            lines.append(f"  char {match[2]}[{match[3]}] __attribute__((aligned({match[1]})));")
            places |= dict.fromkeys((match[2], "%SPL", "%SP"), f"(uint64_t){match[2]}")
        elif text.endswith(":"):
            lines.append(f"{_plain(text[:-1])}: ;")
        elif not text.startswith("."):
            lines.append(f"  {_statement(text, places)};")
    return lines


def _calls(code: str) -> str:
    """Calls on one line each: they stand on several."""
    return re.sub(r"call\.uni[^;]*;", lambda call: " ".join(call[0].split()), code)


def _parameter(place: str) -> str:
    """Where a parameter is: of this function, or of one that it calls."""
    name, _, offset = place.strip("[]").partition("+")
    if match := re.search(r"_param_(\d+)$", name):
        name = f"arguments[{match[1]}]"
    return f"((char *){name} + {offset or 0})"


def _plain(name: str) -> str:
    return re.sub(r"%(\w+?)(\d+)\b", r"\1_\2", name).replace("$", "_").replace("%", "")


def _statement(text: str, places: dict[str, str]) -> str:
    condition = ""
    if match := re.match(r"@(!?)(%\w+) (.*)", text):
        condition, text = f"if ({match[1]}{_plain(match[2])}) ", match[3]
    operation, _, rest = text.partition(" ")
    operands = [x.strip() for x in re.split(r",(?![^\[]*\])", rest)] if rest else []
    name, *marks = operation.split(".")
    return condition + _instruction(name, marks, operands, places, operation)


def _value(x: str, kind: str, places: dict[str, str]) -> str:
    """An operand, read as a type."""
    if x in places:
        return f"({TYPES[kind]}){places[x]}"
    if match := re.fullmatch(r"%(tid|ctaid|ntid|nctaid)\.([xyz])", x):
        return f"t->{match[1]}[{'xyz'.index(match[2])}]"
    if x.startswith("%"):
        variable = _plain(x)
        if re.match(r"%f\d", x) and kind in ("b32", "u32", "s32"):
            return f"({TYPES[kind]})float_as_uint32_t({variable})"
        if re.match(r"%fd\d", x) and kind in ("b64", "u64", "s64"):
            return f"({TYPES[kind]})double_as_uint64_t({variable})"
        if re.match(r"%r\d", x) and kind == "f32":
            return f"uint32_t_as_float({variable})"
        if re.match(r"%rd\d", x) and kind == "f64":
            return f"uint64_t_as_double({variable})"
        return f"({TYPES[kind]}){variable}"
    if match := re.fullmatch(r"0f([0-9A-Fa-f]{8})", x):
        return f"uint32_t_as_float(0x{match[1]}u)"
    if match := re.fullmatch(r"0d([0-9A-Fa-f]{16})", x):
        return f"uint64_t_as_double(0x{match[1]}ull)"
    if re.fullmatch(r"-?\d+", x):
        return f"({TYPES[kind]}){x}ll" if x != str(-(2**63)) else f"({TYPES[kind]})(-{2**63 - 1}ll - 1)"
    return _plain(x)


def _assigned(to: str, kind: str, value: str) -> str:
    """An assignment of a value of a type to a register, whose own type may be another one of that size."""
    if re.match(r"%f\d", to) and kind in ("b32", "u32", "s32"):
        value = f"uint32_t_as_float({value})"
    elif re.match(r"%fd\d", to) and kind in ("b64", "u64", "s64"):
        value = f"uint64_t_as_double({value})"
    elif re.match(r"%r\d", to) and kind == "f32":
        value = f"float_as_uint32_t({value})"
    elif re.match(r"%rd\d", to) and kind == "f64":
        value = f"double_as_uint64_t({value})"
    return f"{_plain(to)} = {value}"


def _address(x: str, places: dict[str, str]) -> str:
    base, _, offset = x.strip("[]").partition("+")
    return f"({_value(base, 'u64', places)} + {offset or 0})"


def _instruction(name: str, marks: list[str], operands: list[str], places: dict[str, str], whole: str) -> str:
    kind = marks[-1] if marks and marks[-1] in TYPES else "b32"
    s = "f" if kind == "f32" else ""

    def value(x: str, as_type: str = "") -> str:
        return _value(x, as_type or kind, places)

    if name in ("bra", "ret", "exit"):
        return f"goto {_plain(operands[0])}" if name == "bra" else "goto end"
    if name == "call":
        result, function, given = re.fullmatch(r"\((\w+)\), (\w+), \((.*)\)", ", ".join(operands)).groups()  # type: ignore[union-attr]
        return f"{function}(t, {result}, (void *[]){{ {given} }})"
    if name == "bar" or name == "barrier":
        return "t->barrier(t)"
    if name == "ld":
        count = {"v2": 2, "v4": 4}.get(next((mark for mark in marks if mark[0] == "v"), ""), 1)
        to, place = operands
        if "param" in marks:
            return _assigned(to, kind, f"*({TYPES[kind]} *){_parameter(place)}")
        targets = [x.strip() for x in to.strip("[] ").split(",")]
        if len(targets) != count:
            raise NotImplementedError(whole)
        address = _address(place, places)
        check = (
            f"if ({address} % {count * (4 if '32' in kind else 8)}) __builtin_trap(); " if count > 1 else ""
        )
        reads = [_assigned(x, kind, f"(({TYPES[kind]} *){address})[{i}]") for i, x in enumerate(targets)]
        return f"{{ {check}{'; '.join(reads)}; }}"
    if name == "st":
        place, given = operands
        if "param" in marks:
            return f"*({TYPES[kind]} *){_parameter(place)} = {value(given)}"
        values = [x.strip() for x in given.strip("[] ").split(",")]
        writes = [
            f"(({TYPES[kind]} *){_address(place, places)})[{i}] = {value(x)}" for i, x in enumerate(values)
        ]
        return f"{{ {'; '.join(writes)}; }}"
    if name in ("atom", "red"):
        to, place, x = operands if name == "atom" else ("", *operands)
        old, cell = (
            f"{TYPES[kind]} old = *cell",
            f"{TYPES[kind]} *cell = ({TYPES[kind]} *){_address(place, places)}",
        )
        step = {"add": f"old + {value(x)}", "min": f"{value(x)} < old ? {value(x)} : old"}[
            next(mark for mark in marks if mark in ("add", "min"))
        ]
        return f"{{ {cell}; {old}; *cell = {step}; {_assigned(to, kind, 'old') if to else ''}; }}"
    if name == "shfl":
        to, x, distance = operands[0].split("|")[0], operands[1], value(operands[2], "u32")
        lane = "(int)(t->number % 32)"
        source = {"down": f"{lane} + (int){distance}", "bfly": f"{lane} ^ (int){distance}"}[marks[1]]
        return _assigned(to, "b32", f"t->shuffle(t, {value(x, 'b32')}, {source})")
    if name == "setp":
        relation, to = marks[0], operands[0]
        x, y = (value(operand) for operand in operands[1:3])
        if relation in ("nan", "num"):
            test = f"({x} != {x} || {y} != {y})"
            return f"{_plain(to)} = {'!' if relation == 'num' else ''}{test}"
        if kind in ("f32", "f64") and relation.endswith("u") and relation[:-1] in COMPARED:
            return f"{_plain(to)} = {x} != {x} || {y} != {y} || {x} {COMPARED[relation[:-1]]} {y}"
        nan = f"{x} == {x} && {y} == {y} && " if kind in ("f32", "f64") and relation == "ne" else ""
        return f"{_plain(to)} = {nan}{x} {COMPARED[relation]} {y}"
    if name == "selp":
        to, x, y, test = operands
        return _assigned(to, kind, f"{_plain(test)} ? {value(x)} : {value(y)}")
    if name == "cvt":
        target, source = [mark for mark in marks if mark in TYPES]
        x = value(operands[1], source)
        how = next((ROUNDED[mark] for mark in marks if mark in ROUNDED), None)
        if how and source[0] == "f":
            x = f"{how}({x})"
        if "sat" in marks and target[0] == "f":
            x = f"({x} > 0 ? {x} < 1 ? {x} : 1 : 0)"
        if source[0] == "f" and target[0] in "us":
            x = _saturated(x, target)
        return _assigned(operands[0], target, f"({TYPES[target]})({x})")
    if not operands:
        raise NotImplementedError(whole)
    to, *given = operands
    if kind == "pred" and name in ("and", "or", "xor", "not", "mov"):
        x = [_plain(y) if y.startswith("%") else str(int(y) & 1) for y in given]
        symbols = {"not": f"!{x[0]}", "mov": x[0]}
        return f"{_plain(to)} = {symbols.get(name) or f'{x[0]} {BINARY[name]} {x[1]}'}"
    if name == "mov" and to.startswith("[["):  # a number in two halves
        low, high = (_plain(x) for x in to.strip("[] ").replace(" ", "").split(","))
        both = f"uint64_t all = {value(given[0], 'b64')}"
        return f"{{ {both}; {low} = (uint32_t)all; {high} = (uint32_t)(all >> 32); }}"
    if name == "mov" and given[0].startswith("[["):
        low, high = (_value(x, "u32", places) for x in given[0].strip("[] ").replace(" ", "").split(","))
        return _assigned(to, "b64", f"(uint64_t){low} | (uint64_t){high} << 32")
    if name == "mov":
        return _assigned(to, kind, value(given[0]))
    if name in UNARY:
        return _assigned(to, kind, f"({TYPES[kind]})({UNARY[name].format(x=value(given[0]), s=s)})")
    if name == "abs":
        x = value(given[0])
        return _assigned(to, kind, f"fabs{s}({x})" if kind[0] == "f" else f"{x} < 0 ? -{x} : {x}")
    if name in ("min", "max"):
        x, y = value(given[0]), value(given[1])
        call = (
            f"f{name}{s}({x}, {y})"
            if kind[0] == "f"
            else f"{x} {'<' if name == 'min' else '>'} {y} ? {x} : {y}"
        )
        return _assigned(to, kind, call)
    if name == "copysign":
        return _assigned(to, kind, f"copysign{s}({value(given[1])}, {value(given[0])})")
    if name in ("shl", "shr"):
        bits = 64 if "64" in kind else 32
        by, x = value(given[1], "u32"), value(given[0])
        beyond = f"{x} >> {bits - 1}" if name == "shr" and kind[0] == "s" else "0"
        return _assigned(
            to,
            kind,
            f"{by} > {bits - 1} ? {beyond} : ({TYPES[kind]})({x} {'<<' if name == 'shl' else '>>'} {by})",
        )
    if name == "bfi":
        new, old, start, length = given
        mask = f"((({length} >= 64 ? 0 : 1ull << {length}) - 1) << {start})"
        return _assigned(to, kind, f"({value(old)} & ~{mask}) | (({value(new)} << {start}) & {mask})")
    if name == "fma" or (name == "mad" and kind[0] == "f"):
        return _assigned(to, kind, f"fma{s}({', '.join(value(x) for x in given)})")
    if name in ("mul", "mad") and "cc" not in marks:
        x, y = value(given[0]), value(given[1])
        plus = (
            f" + {_value(given[2], kind.replace('32', '64') if 'wide' in marks else kind, places)}"
            if name == "mad"
            else ""
        )
        if "wide" in marks:
            return _assigned(to, kind.replace("32", "64"), f"({WIDER[kind]}){x} * ({WIDER[kind]}){y}{plus}")
        if "hi" in marks:
            wide = "__int128" if "64" in kind else "int64_t"
            wide = ("unsigned " if wide == "__int128" else "u") * (kind[0] == "u") + wide
            return _assigned(
                to,
                kind,
                f"({TYPES[kind]})((({wide}){x} * ({wide}){y}) >> {64 if '64' in kind else 32}){plus}",
            )
        if kind[0] == "s":  # as unsigned: it may wrap around
            unsigned = TYPES["u" + kind[1:]]
            return _assigned(
                to,
                kind,
                f"({TYPES[kind]})(({unsigned}){x} * ({unsigned}){y}{plus.replace('(', f'({unsigned})(', 1)})",
            )
        return _assigned(to, kind, f"{x} * {y}{plus}")
    if name == "mad":  # with carry
        x, y, z = (value(operand) for operand in given)
        total = f"uint64_t all = (uint64_t)(uint32_t)((uint64_t){x} * {y}) + {z}; carry = all >> 32"
        return f"{{ {total}; {_assigned(to, kind, '(uint32_t)all')}; }}"
    if name == "madc":
        x, y, z = (value(operand) for operand in given)
        return _assigned(to, kind, f"(uint32_t)(((uint64_t){x} * {y}) >> 32) + {z} + carry")
    if name in BINARY:
        x, y = value(given[0]), value(given[1])
        if kind[0] == "s" and name in ("add", "sub"):
            unsigned = TYPES["u" + kind[1:]]
            return _assigned(to, kind, f"({TYPES[kind]})(({unsigned}){x} {BINARY[name]} ({unsigned}){y})")
        return _assigned(to, kind, f"{x} {BINARY[name]} {y}")
    raise NotImplementedError(f"{whole} {', '.join(operands)}")


def _saturated(x: str, target: str) -> str:
    """A GPU converts NaN to 0, and what is too large to the largest number."""
    bits, signed = int(target[1:]), target[0] == "s"
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
    least = f"(-{2**63 - 1}ll - 1)" if low == -(2**63) else f"{low}ll"
    most = f"{high - 1}{'ull' if not signed else 'll'}"
    within = f"{x} >= {high}.0 ? {most} : {x} < {low}.0 ? {least} : ({TYPES[target]})({x})"
    return f"!({x} == {x}) ? 0 : {within}"
