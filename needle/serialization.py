"""Saving and loading: Tensors in a file that holds numbers and text only.

Files are in the format of `safetensors <https://huggingface.co/docs/safetensors>`_: reading one runs nothing,
whoever wrote it. Tensors and arrays lie in it by name, so that other programs can read them. How they were
nested, and the numbers and words between them, is JSON text in the file's metadata.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from .autograd import Tensor, check_device

__all__ = ["load", "save"]

STRUCTURE = "needle.structure"  # the entry of the metadata that holds the JSON text

# The format's types of numbers, and the type of a Tensor that holds such numbers exactly. (NumPy lacks BF16:
# it is the upper half of a float32.)
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

    If this is interrupted, the file that was at `path` is still there: the new one takes its place only when
    it is whole.

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
        If there is anything else in `state`. The message says where.
    ValueError
        If `state` contains itself.
    """
    from safetensors.numpy import save as to_bytes

    arrays: dict[str, np.ndarray] = {}
    try:
        structure = _take_apart(state, (), arrays)
    except RecursionError:
        raise ValueError("save: the state contains itself, or is nested too deeply") from None
    _write(Path(path), to_bytes(arrays, metadata={STRUCTURE: json.dumps(structure)}))


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
        arrays = {name: _array(name, **view) for name, view in deserialize(content)}
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        text = (header.get("__metadata__") or {}).get(STRUCTURE)
        if text is None:
            return {name: _tensor(array, device, requires_grad=False) for name, array in arrays.items()}
    except SafetensorError as error:
        raise ValueError(f"load: {path} {_what_is_wrong(content)} ({error})") from None
    except OverflowError as error:
        raise ValueError(f"load: {path}: {error}") from None
    try:
        return _put_together(json.loads(text), arrays, device)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError, RecursionError):
        raise ValueError(
            f"load: {path} was changed after it was saved: its structure does not fit its Tensors"
        ) from None


# In the JSON text lists, numbers and words stand for themselves. Everything else is a dict with an entry that
# says what it is: "tensor", "array", "dict" or "tuple".


def _take_apart(state: Any, where: tuple, arrays: dict[str, np.ndarray]) -> Any:
    """What the JSON text says of `state`, whose Tensors and arrays go into `arrays`."""
    match state:
        case None | bool() | int() | float() | str():
            return state
        case np.generic() if state.dtype.kind in "biuf":
            return state.item()
        case Tensor():
            return {"tensor": _put(state.numpy(), where, arrays), "requires_grad": state.requires_grad}
        case np.ndarray():
            return {"array": _put(state, where, arrays)}
        case dict():
            wrong = [key for key in state if not isinstance(key, str)]
            if wrong:
                key = wrong[0]
                raise TypeError(
                    f"save: {_place(where)} has the key {key!r}; keys must be strings: {str(key)!r}"
                )
            return {"dict": {key: _take_apart(value, (*where, key), arrays) for key, value in state.items()}}
        case list() | tuple():
            items = [_take_apart(value, (*where, i), arrays) for i, value in enumerate(state)]
            return items if isinstance(state, list) else {"tuple": items}
    way_out = ""
    if hasattr(state, "state_dict"):
        way_out = ": save its state_dict()"
    elif isinstance(state, np.random.Generator):
        way_out = ": save its bit_generator.state"
    raise TypeError(
        f"save: {_place(where)} is a {type(state).__name__}; what can be saved are dicts, lists and tuples "
        f"of Tensors, NumPy arrays, numbers, strings, bools and None{way_out}"
    )


def _put(array: np.ndarray, where: tuple, arrays: dict[str, np.ndarray]) -> str:
    """Add an array under a name that tells where it was, such as ``model.modules.0.weight``."""
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise TypeError(f"save: {_place(where)} holds {array.dtype}; convert it to a type of numbers first")
    name = ".".join(map(str, where)) or "state"
    name = name.encode(errors="replace").decode()  # half of a surrogate pair, which no file can hold
    while name in arrays or name == "__metadata__":  # "a.b" may be the key "a.b", or "b" in "a"
        name += "'"
    arrays[name] = np.asarray(array, order="C")
    return name


def _place(where: tuple) -> str:
    return "state" + "".join(f"[{key!r}]" for key in where)


def _put_together(structure: Any, arrays: dict[str, np.ndarray], device: Any) -> Any:
    match structure:
        case list():
            return [_put_together(item, arrays, device) for item in structure]
        case {"tensor": name, "requires_grad": requires_grad}:
            return _tensor(arrays[name], device, bool(requires_grad))
        case {"array": name}:
            return arrays[name].copy()  # which can be written to
        case {"dict": items}:
            return {key: _put_together(value, arrays, device) for key, value in items.items()}
        case {"tuple": items}:
            return tuple([_put_together(item, arrays, device) for item in items])
        case dict():
            raise ValueError("no such structure")
    return structure


def _array(name: str, dtype: str, shape: list[int], data: bytes) -> np.ndarray:
    if dtype not in STORED_AS:
        raise OverflowError(f"{name!r} holds {dtype} numbers, which needle cannot read")
    array = np.frombuffer(data, STORED_AS[dtype]).reshape(shape)
    return (array.astype("<u4") << 16).view("<f4") if dtype == "BF16" else array


def _tensor(array: np.ndarray, device: Any, requires_grad: bool) -> Tensor:
    if array.dtype.name == "uint64" and array.size and array.max() > np.iinfo("int64").max:
        raise OverflowError("a uint64 number is too large for int64, the widest type of a Tensor")
    dtype = HELD_AS.get(array.dtype.name, array.dtype.name)
    return Tensor(array, device=device, dtype=dtype, requires_grad=requires_grad)


def _what_is_wrong(content: bytes) -> str:
    if not content:
        return "is empty"
    if content[:1] == b"\x80" or content[:2] == b"PK":
        return "looks like a pickle, which needle never reads; save it as safetensors where it comes from"
    return "is not a safetensors file, or is cut off or damaged"


def _write(path: Path, content: bytes) -> None:
    """Write a file beside `path`, then let it take the place of that one, with the same permissions."""
    path = path.resolve()  # what a link points to, not the link
    unfinished = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        with open(unfinished, "xb") as file:
            if path.exists():
                os.chmod(unfinished, path.stat().st_mode & 0o7777)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
