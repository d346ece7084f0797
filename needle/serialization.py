"""Saving and loading: Tensors in a file that holds numbers and text only.

A file is in the format of `safetensors <https://huggingface.co/docs/safetensors>`_: reading it runs nothing,
whoever wrote it. Tensors and arrays lie in it by name, so that other programs can read them; how they were
nested, and the numbers and words between them, is JSON text in the file's metadata.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from pathlib import Path
from typing import Any

import numpy as np

from .autograd import Tensor, check_device

__all__ = ["load", "save"]

STRUCTURE = "needle.structure"  # the entry of the metadata that holds the JSON text

# The data types of the format, and the one in which a Tensor can hold their numbers exactly. (bfloat16, which
# NumPy lacks, is the upper half of a float32.)
STORED_AS = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "BOOL": "?",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1",
}  # fmt: skip
HELD_AS = {
    "float16": "float32", "int16": "int32", "int8": "int32",
    "uint64": "int64", "uint32": "int64", "uint16": "int32",
}  # fmt: skip


def save(path: str | os.PathLike, state: Any) -> None:
    """Write `state` into a file that `load` reads back.

    The file at `path` is either the old one or the whole new one: what is written goes into another file of
    the same folder first, which takes the old one's place at the end.

    Parameters
    ----------
    path : str or path
        By custom ``….safetensors``.
    state : dict, list or tuple
        Nested as you like, down to Tensors, NumPy arrays, numbers, strings, bools and None: for example
        ``{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}``. A dict's keys
        must be strings. Whole numbers of any size stay exact.

    Raises
    ------
    TypeError
        If there is anything else in `state`; the sentence says where.
    ValueError
        If `state` contains itself.
    """
    from safetensors.numpy import save as to_bytes

    tensors: dict[str, np.ndarray] = {}
    try:
        structure = _taken_apart(state, (), tensors)
    except RecursionError:
        raise ValueError("save: the state contains itself, or is nested too deeply") from None
    _write_in_place_of(Path(path), to_bytes(tensors, metadata={STRUCTURE: json.dumps(structure)}))


def load(path: str | os.PathLike, device: Any = None) -> Any:
    """Read what `save`, or another program, wrote into a safetensors file.

    Parameters
    ----------
    path : str or path
    device : Device, optional
        Where the Tensors shall live. Default: `default_device()`.

    Returns
    -------
    object
        What was saved; its Tensors are leaves. From another program's file: a dict of Tensors by name. Half
        precision (float16, bfloat16) becomes float32, and whole numbers of a type that Tensors lack become
        int32 or int64.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is cut off, damaged or in another format.
    """
    from safetensors import SafetensorError, deserialize

    check_device(device)
    content = Path(path).read_bytes()
    try:
        stored = dict(deserialize(content))
    except SafetensorError as error:
        raise ValueError(f"load: {path} {_what_is_wrong(content)} ({error})") from None
    arrays = {name: _array(name, view, path) for name, view in stored.items()}
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    text = (header.get("__metadata__") or {}).get(STRUCTURE)
    try:
        if text is None:
            return {name: _tensor(array, device, requires_grad=False) for name, array in arrays.items()}
        return _put_together(json.loads(text), arrays, device)
    except OverflowError as error:
        raise ValueError(f"load: {path}: {error}") from None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise ValueError(
            f"load: {path} was changed after it was saved: its structure does not fit its Tensors"
        ) from None


# Apart, and together again: lists, numbers and words stand for themselves in JSON, anything else is a dict
# with one entry that says what it is.


def _taken_apart(state: Any, where: tuple, tensors: dict[str, np.ndarray]) -> Any:
    """What JSON shall say of `state`; its Tensors and arrays are put into `tensors`."""
    if state is None or isinstance(state, (bool, int, float, str)):
        return state
    if isinstance(state, np.generic) and state.dtype.kind in "biuf":
        return state.item()
    if isinstance(state, Tensor):
        name = _put(state.numpy(), where, tensors)
        return {"tensor": name, "requires_grad": state.requires_grad}
    if isinstance(state, np.ndarray):
        return {"array": _put(state, where, tensors)}
    if isinstance(state, dict):
        for key in state:
            if not isinstance(key, str):
                raise TypeError(
                    f"save: {_place(where)} has the key {key!r}; keys must be strings: {str(key)!r}"
                )
        return {"dict": {key: _taken_apart(value, (*where, key), tensors) for key, value in state.items()}}
    if isinstance(state, (list, tuple)):
        items = [_taken_apart(value, (*where, i), tensors) for i, value in enumerate(state)]
        return items if isinstance(state, list) else {"tuple": items}
    raise TypeError(
        f"save: {_place(where)} is a {type(state).__name__}; what can be saved are dicts, lists and tuples "
        "of Tensors, NumPy arrays, numbers, strings, bools and None" + _way_out(state)
    )


def _way_out(state: Any) -> str:
    if hasattr(state, "state_dict"):
        return ": save its state_dict()"
    if isinstance(state, np.random.Generator):
        return ": save its bit_generator.state"
    return ""


def _put(array: np.ndarray, where: tuple, tensors: dict[str, np.ndarray]) -> str:
    """Add an array under a name that tells where it was: ``model.modules.0.weight``."""
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise TypeError(f"save: {_place(where)} holds {array.dtype}; convert it to a type of numbers first")
    name = ".".join(map(str, where)) or "state"
    name = name.encode(errors="replace").decode()  # half of a surrogate pair, which no file can hold
    while name in tensors or name == "__metadata__":  # "a.b" may be the key "a.b", or "b" in "a"
        name += "'"
    tensors[name] = np.asarray(array, order="C")
    return name


def _place(where: tuple) -> str:
    return "state" + "".join(f"[{key!r}]" for key in where)


def _put_together(structure: Any, arrays: dict[str, np.ndarray], device: Any) -> Any:
    if isinstance(structure, list):
        return [_put_together(item, arrays, device) for item in structure]
    if not isinstance(structure, dict):
        return structure
    match structure:
        case {"tensor": name, "requires_grad": requires_grad}:
            return _tensor(arrays[name], device, bool(requires_grad))
        case {"array": name}:
            return arrays[name].copy()  # which can be written to
        case {"dict": items}:
            return {key: _put_together(value, arrays, device) for key, value in items.items()}
        case {"tuple": items}:
            return tuple([_put_together(item, arrays, device) for item in items])
    raise ValueError("no such structure")


def _array(name: str, view: dict[str, Any], path: str | os.PathLike) -> np.ndarray:
    dtype = view["dtype"]
    if dtype not in STORED_AS:
        raise ValueError(f"load: {path}: {name!r} holds {dtype} numbers, which needle cannot read")
    array = np.frombuffer(view["data"], STORED_AS[dtype]).reshape(view["shape"])
    return (array.astype("<u4") << 16).view("<f4") if dtype == "BF16" else array


def _tensor(array: np.ndarray, device: Any, requires_grad: bool) -> Tensor:
    dtype = HELD_AS.get(array.dtype.name, array.dtype.name)
    if array.dtype.name == "uint64" and array.size and array.max() > np.iinfo("int64").max:
        raise OverflowError("a uint64 number is too large for int64, the widest type of a Tensor")
    return Tensor(array, device=device, dtype=dtype, requires_grad=requires_grad)


def _what_is_wrong(content: bytes) -> str:
    if not content:
        return "is empty"
    if content[:1] == b"\x80" or content[:2] == b"PK":
        return "looks like a pickle, which needle never reads; save it as safetensors where it comes from"
    return "is not a safetensors file, or is cut off or damaged"


def _write_in_place_of(path: Path, content: bytes) -> None:
    """Replace the file at `path` by one with `content`, at once or, where that fails, not at all; who may
    read and write it stays as it was."""
    path = path.resolve()  # what a link points to, not the link
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(unfinished, "xb") as file:
            if path.exists():
                os.chmod(unfinished, stat.S_IMODE(path.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
