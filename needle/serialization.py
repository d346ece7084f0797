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
from .backend_ndarray.shapes import DTYPES

__all__ = ["as_bytes", "load", "save"]

STRUCTURE = "needle.structure"  # the entry of the metadata that holds the JSON text
# The format's names of the types that NumPy and Tensors can hold.
READABLE = {"BOOL", "F16", "F32", "F64", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64"}


def save(path: str | os.PathLike, state: Any) -> None:
    """Write `state` into a file that `load` reads back. An interrupted save leaves the old file in place.

    Parameters
    ----------
    path : str or path
        By custom ``….safetensors``.
    state : dict, list or tuple
        Nested as you like, down to Tensors, NumPy arrays, numbers, strings, bools and None: for example
        ``{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}``.
        A dict's keys must be strings.

    Raises
    ------
    TypeError
        If there is anything else in `state`. The message says where.
    ValueError
        If `state` contains itself.
    """
    _write(Path(path), as_bytes(state))


def as_bytes(state: Any) -> bytes:
    """What `save` writes into its file, with the same errors."""
    from safetensors.numpy import save as to_bytes

    arrays: dict[str, np.ndarray] = {}
    try:
        structure = _take_apart(state, (), arrays)
    except RecursionError:
        raise ValueError("save: the state contains itself, or is nested too deeply") from None
    return to_bytes(arrays, metadata={STRUCTURE: json.dumps(structure)})


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
        What was saved; its Tensors are leaves. From another program's file: a dict of Tensors by name, where
        float16 becomes float32, and whole numbers of a type that Tensors lack become int64.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is cut off, damaged, in another format, or holds numbers that do not fit a Tensor.
    """
    from safetensors import SafetensorError, safe_open

    check_device(device)
    with open(path, "rb") as file:
        start = file.read(2)
    arrays = {}
    try:
        with safe_open(path, framework="np") as opened:
            for name in opened.keys():  # noqa: SIM118  (it is no dict)
                dtype = opened.get_slice(name).get_dtype()
                if dtype not in READABLE:
                    raise ValueError(
                        f"load: {path}: {name!r} holds {dtype}, which needle lacks; save it as F32"
                    )
                arrays[name] = opened.get_tensor(name)
            text = (opened.metadata() or {}).get(STRUCTURE)
    except SafetensorError as error:
        wrong = "is not a safetensors file, or is cut off or damaged"
        if start == b"PK" or start[:1] == b"\x80":
            wrong = "looks like a pickle, which needle never reads; let its writer save safetensors"
        raise ValueError(f"load: {path} {wrong} ({error})") from None
    foreign = {"dict": {name: {"tensor": name, "requires_grad": False} for name in arrays}}
    try:
        return _put_together(foreign if text is None else json.loads(text), arrays, device)
    except OverflowError as error:
        raise ValueError(f"load: {path}: {error}") from None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise ValueError(f"load: {path} was changed after it was saved: its parts do not fit") from None


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
            if state.dtype.kind not in "biuf" or state.dtype.itemsize > 8:
                raise TypeError(f"save: {_place(where)} holds {state.dtype}; convert it to numbers first")
            return {"array": _put(state, where, arrays)}
        case dict():
            if wrong := [key for key in state if not isinstance(key, str)]:
                raise TypeError(f"save: {_place(where)} has the key {wrong[0]!r}; keys must be strings")
            return {"dict": {key: _take_apart(value, (*where, key), arrays) for key, value in state.items()}}
        case list() | tuple():
            items = [_take_apart(value, (*where, i), arrays) for i, value in enumerate(state)]
            return items if isinstance(state, list) else {"tuple": items}
    raise TypeError(
        f"save: {_place(where)} is a {type(state).__name__}; what can be saved are dicts, lists and tuples "
        "of Tensors, NumPy arrays, numbers, strings, bools and None. Of a model or an optimizer, save its "
        "state_dict(); of a random generator, its bit_generator.state"
    )


def _place(where: tuple) -> str:
    return "state" + "".join(f"[{key!r}]" for key in where)


def _put(array: np.ndarray, where: tuple, arrays: dict[str, np.ndarray]) -> str:
    """Add an array under a name that tells where it was, such as ``model.modules.0.weight``."""
    name = ".".join(map(str, where)) or "state"
    name = name.encode(errors="replace").decode()  # half of a surrogate pair, which no file can hold
    while name in arrays or name == "__metadata__":  # "a.b" may be the key "a.b", or "b" in "a"
        name += "'"
    arrays[name] = np.asarray(array, order="C")
    return name


def _put_together(structure: Any, arrays: dict[str, np.ndarray], device: Any) -> Any:
    """Build what `_take_apart` took apart."""
    match structure:
        case list():
            return [_put_together(item, arrays, device) for item in structure]
        case {"tensor": name, "requires_grad": requires_grad}:
            array = arrays[name]
            if array.dtype == "uint64" and (array > np.iinfo("int64").max).any():
                raise OverflowError(
                    f"{name!r} holds a uint64 number too large for int64, Tensors' widest type"
                )
            wider = "float32" if array.dtype == "float16" else "int64"
            dtype = array.dtype if array.dtype in DTYPES else wider
            return Tensor(array, device=device, dtype=dtype, requires_grad=bool(requires_grad))
        case {"array": name}:
            return arrays[name]
        case {"dict": items}:
            return {key: _put_together(value, arrays, device) for key, value in items.items()}
        case {"tuple": items}:
            return tuple([_put_together(item, arrays, device) for item in items])
        case dict():
            raise ValueError("no such structure")
    return structure


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
