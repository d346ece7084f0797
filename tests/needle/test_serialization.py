"""ndl.save and ndl.load: what goes in comes out, nothing is lost by an interruption, no file is believed."""

from __future__ import annotations

import json
import math
import os
import pickle
import stat
import struct
import threading
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import needle as ndl
from needle import serialization
from needle.autograd import Tensor


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.safetensors"


def same(a, b) -> None:
    """Equal to the last bit, and of the same types all the way down."""
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, (Tensor, np.ndarray)):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert getattr(a, "requires_grad", None) == getattr(b, "requires_grad", None)
        a, b = (x.numpy() if isinstance(x, Tensor) else x for x in (a, b))
        assert a.tobytes() == b.tobytes()
    elif isinstance(a, float):
        assert struct.pack("d", a) == struct.pack("d", b)
    else:
        assert a == b


def round_trip(state, path):
    ndl.save(path, state)
    return ndl.load(path)


# There and back


def test_everything_that_can_be_saved(path):
    state = {
        "weights": {
            "modules.0.weight": Tensor([[1.0, -0.0], [math.nan, math.inf]]),
            "modules.0.bias": Tensor(3.5),
        },
        "buffers": [Tensor([1.0, 2.0], requires_grad=False), Tensor(np.zeros((0, 4)))],
        "arrays": (np.arange(6, dtype="uint16").reshape(2, 3), np.array(7.0), np.array([True, False])),
        "numbers": [0, -1, 2**200, 0.1, -0.0, math.nan, math.inf, -math.inf, 5e-324, True, False, None],
        "words": ["", 'a"\\\n\0', "ä→🙂", "tensor"],
        "nothing": [[], (), {}, [()], ({},)],
        "like the file's own words": {
            "tensor": "x",
            "array": {"dict": 1},
            "tuple": [1],
            "requires_grad": True,
        },
        "": {"": 1},
    }
    same(round_trip(state, path), state)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "bool"])
def test_every_dtype_of_a_tensor(dtype, path):
    values = Tensor(np.array([[0, 1, 1], [1, 0, 1]]) * (1 if dtype == "bool" else 100), dtype=dtype)
    same(round_trip([values], path), [values])


def test_what_is_not_contiguous_or_big_endian(path):
    base = np.arange(24.0).reshape(4, 6)
    for array in (base.T, base[::-1, ::2], np.broadcast_to(base[0], (3, 6)), base.astype(">f8")):
        (loaded,) = round_trip([array], path)
        np.testing.assert_array_equal(loaded, array)
        loaded[...] = 0  # it is a copy that can be written to
    turned = Tensor(base).transpose()
    np.testing.assert_array_equal(round_trip({"t": turned}, path)["t"].numpy(), base.T)


def test_other_kinds_of_dicts_tuples_and_numbers(path):
    Point = namedtuple("Point", "x y")
    state = [
        OrderedDict(a=1),
        Point(1, 2),
        np.float32(0.1),
        np.int64(-3),
        np.bool_(True),
        np.uint64(2**64 - 1),
    ]
    same(round_trip(state, path), [{"a": 1}, (1, 2), float(np.float32(0.1)), -3, True, 2**64 - 1])


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
states = st.recursive(
    leaves | st.builds(np.array, st.lists(st.floats(), max_size=3)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(state=states)
@settings(max_examples=40)
def test_any_state(state, tmp_path_factory):
    same(round_trip(state, tmp_path_factory.getbasetemp() / "any.safetensors"), state)


def test_the_states_of_random_generators(path):
    rng, other = np.random.default_rng(0), np.random.Generator(np.random.MT19937(1))
    np.random.seed(5)
    np.random.randn(3)
    state = round_trip([rng.bit_generator.state, other.bit_generator.state, np.random.get_state()], path)
    expected = [rng.random(3), other.random(3), np.random.randn(3)]
    rng, other = np.random.default_rng(9), np.random.Generator(np.random.MT19937(9))
    rng.bit_generator.state, other.bit_generator.state = state[:2]
    np.random.set_state(state[2])
    for drawn, wanted in zip([rng.random(3), other.random(3), np.random.randn(3)], expected, strict=True):
        np.testing.assert_array_equal(drawn, wanted)


def test_a_model_and_where_its_tensors_live(path):
    model = ndl.nn.Sequential(ndl.nn.Linear(3, 4), ndl.nn.Linear(4, 2))
    weights = {str(i): p for i, p in enumerate(model.parameters())}
    for device in [d for d in ndl.all_devices() if d.enabled() and d != ndl.cuda()]:
        ndl.save(path, {name: p.to(device) for name, p in weights.items()})
        for loaded in (ndl.load(path), ndl.load(path, device=device)):
            for name, p in weights.items():
                np.testing.assert_array_equal(loaded[name].numpy(), p.numpy())
        assert {p.device for p in loaded.values()} == {device}
        assert {p.device for p in ndl.load(path).values()} == {ndl.default_device()}
    with pytest.raises(TypeError, match="device"):
        ndl.load(path, device="cpu")


def test_a_loaded_tensor_is_a_leaf_that_can_be_trained(path):
    w = round_trip({"w": Tensor([2.0]) * 3}, path)["w"]
    assert w.is_leaf()
    (w * w).backward()
    np.testing.assert_array_equal(w.grad.numpy(), [12])


def test_a_lazy_tensor_is_computed(path):
    with ndl.lazy():
        state = {"x": Tensor([1.0, 2.0]) + 1}
        np.testing.assert_array_equal(round_trip(state, path)["x"].numpy(), [2, 3])


# Other programs


def test_other_programs_find_the_tensors_by_name(path):
    ndl.save(path, {"0.weight": Tensor([1.0]), "optimizer": {"u": [Tensor([2.0]), np.array([3])]}, "lr": 0.1})
    arrays = load_file(path)
    assert arrays.keys() == {"0.weight", "optimizer.u.0", "optimizer.u.1"}
    np.testing.assert_array_equal(arrays["optimizer.u.1"], [3])
    ndl.save(path, Tensor([1.0]))
    assert load_file(path).keys() == {"state"}


def test_names_that_would_be_the_same(path):
    state = {
        "a.b": Tensor([1.0]),
        "a": {"b": Tensor([2.0]), "b'": Tensor([3.0])},
        "__metadata__": Tensor([4.0]),
    }
    same(round_trip(state, path), state)
    assert len(load_file(path)) == 4


def test_a_foreign_file_is_a_flat_dict_of_tensors(path):
    save_file(
        {"w": np.ones((2, 3), "float32"), "half": np.array([1.5, -2], "float16"), "n": np.array(5, "int16"),
         "u": np.array([2**32 - 1], "uint32"), "b": np.array([True])},
        path, metadata={"format": "pt"},
    )  # fmt: skip
    loaded = ndl.load(path)
    assert {name: (x.shape, str(x.dtype)) for name, x in loaded.items()} == {
        "w": ((2, 3), "float32"), "half": ((2,), "float32"), "n": ((), "int64"),
        "u": ((1,), "int64"), "b": ((1,), "bool"),
    }  # fmt: skip
    assert not any(x.requires_grad for x in loaded.values())
    np.testing.assert_array_equal(loaded["half"].numpy(), [1.5, -2])
    assert loaded["u"].numpy() == 2**32 - 1


def file(header, content=b"") -> bytes:
    """A file in the safetensors format."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content


def test_whole_numbers_too_large_for_a_tensor(path):
    save_file({"x": np.array([2**63], "uint64")}, path)
    with pytest.raises(
        ValueError, match=r"state\.safetensors: 'x' holds a uint64 number too large for int64"
    ):
        ndl.load(path)
    save_file({"x": np.array([2**63 - 1], "uint64")}, path)
    assert ndl.load(path)["x"].numpy() == 2**63 - 1


@pytest.mark.parametrize("metadata", [{}, {"__metadata__": {}}, {"__metadata__": None}])
def test_a_foreign_file_without_metadata(metadata, path):
    path.write_bytes(
        file(metadata | {"x": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}, b"\x07\x09")
    )
    np.testing.assert_array_equal(ndl.load(path)["x"].numpy(), [7, 9])


@pytest.mark.parametrize(("dtype", "size"), [("BF16", 2), ("F8_E4M3", 1)])
def test_a_type_of_numbers_that_needle_does_not_know(dtype, size, path):
    path.write_bytes(file({"x": {"dtype": dtype, "shape": [1], "data_offsets": [0, size]}}, bytes(size)))
    with pytest.raises(ValueError, match=rf"state\.safetensors: 'x' holds {dtype}, which needle lacks"):
        ndl.load(path)


def test_torch_reads_it(path, torch):
    from safetensors.torch import load_file as load_torch

    ndl.save(path, {"w": Tensor([[1.0, 2.0]])})
    assert torch.equal(load_torch(path)["w"], torch.tensor([[1.0, 2.0]]))


# Refusals


class Sneaky:
    def state_dict(self):
        return {}


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"a": [1, {2, 3}]}, r"state\['a'\]\[1\] is a set; what can be saved"),
        ({"a": object()}, r"state\['a'\] is a object"),
        (1j, "state is a complex"),
        (b"bytes", "state is a bytes"),
        ({"m": Sneaky()}, r"state\['m'\] is a Sneaky.*save its state_dict\(\)"),
        ([np.random.default_rng()], r"state\[0\] is a Generator.*its bit_generator\.state"),
        ({"a": {1: 2}}, r"state\['a'\] has the key 1; keys must be strings"),
        ({None: 2}, "state has the key None"),
        ({"a": np.array(["x"])}, r"state\['a'\] holds <U1"),
        ({"a": np.array([{}])}, r"state\['a'\] holds object"),
        ({"a": np.array([1j])}, r"state\['a'\] holds complex128"),
        ({"a": np.array(["2020-01-01"], "datetime64[D]")}, r"state\['a'\] holds datetime64\[D\]"),
        (np.zeros(2, [("x", "f4")]), r"state holds \[\('x'"),
    ],
)
def test_what_cannot_be_saved_is_named_and_changes_nothing(state, words, path):
    ndl.save(path, {"old": 1})
    with pytest.raises(TypeError, match=f"save: {words}"):
        ndl.save(path, state)
    assert ndl.load(path) == {"old": 1}
    assert os.listdir(path.parent) == [path.name]


def test_a_state_that_contains_itself(path):
    state: dict = {}
    state["self"] = [state]
    with pytest.raises(ValueError, match="contains itself"):
        ndl.save(path, state)
    assert not path.exists()


def test_a_missing_file_and_a_missing_folder(path):
    with pytest.raises(FileNotFoundError, match=r"state\.safetensors"):
        ndl.load(path)
    with pytest.raises(FileNotFoundError):
        ndl.save(path / "nowhere" / "x", {})


def test_a_file_cut_off_anywhere(path):
    ndl.save(path, {"w": Tensor(np.arange(12.0).reshape(3, 4)), "epoch": 3, "u": [Tensor([1.0])]})
    whole = path.read_bytes()
    for n in range(len(whole)):
        path.write_bytes(whole[:n])
        with pytest.raises(ValueError, match=r"load: .*state\.safetensors is not a safetensors file"):
            ndl.load(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(ValueError, match="not a safetensors file, or is cut off or damaged"):
        ndl.load(path)


def test_a_header_with_any_byte_changed(path):
    state = {"w": Tensor([1.0, 2.0]), "epoch": 3, "t": (1, np.array([5]))}
    ndl.save(path, state)
    whole = path.read_bytes()
    messages = []
    for n in range(8 + int.from_bytes(whole[:8], "little")):
        path.write_bytes(whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :])
        try:
            ndl.load(path)  # another number or name is not to be seen, but nothing else may happen
        except ValueError as error:
            messages.append(str(error))
    assert len(messages) > 50
    assert all(message.startswith(f"load: {path}") for message in messages)


SPEC = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}

FOREIGN = {
    "text": (b"hello world, this is text", "not a safetensors file"),
    "a page": (b"<html>not found</html>", "not a safetensors file"),
    "zeros": (bytes(64), "not a safetensors file"),
    "a pickle": (pickle.dumps({"a": 1}), "looks like a pickle, which needle never reads"),
    "torch's": (b"PK\x03\x04" + bytes(60), "looks like a pickle"),
    "a huge header": (struct.pack("<Q", 2**63 - 1) + b"{}", "not a safetensors file"),
    "a header beyond the file": (struct.pack("<Q", 100) + b"{}", "not a safetensors file"),
    "no JSON": (file(b"{]"), "not a safetensors file"),
    "a list": (file([]), "not a safetensors file"),
    "Tensors beyond the file": (file({"x": SPEC}, b"1234"), "not a safetensors file"),
    "a shape beyond its numbers": (
        file({"x": SPEC | {"shape": [2**40]}}, bytes(8)),
        "not a safetensors file",
    ),
    "sizes that wrap around": (file({"x": SPEC | {"shape": [2**63, 4]}}, bytes(8)), "not a safetensors file"),
    "a negative size": (file({"x": SPEC | {"shape": [-2]}}, bytes(8)), "not a safetensors file"),
    "Tensors over each other": (file({"x": SPEC, "y": SPEC}, bytes(8)), "not a safetensors file"),
}


@pytest.mark.parametrize(("content", "words"), FOREIGN.values(), ids=FOREIGN)
def test_foreign_files(content, words, path):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"load: .*state\.safetensors .*{words}"):
        ndl.load(path)


@pytest.mark.parametrize(
    "structure",
    [
        "", "{", "null x", '{"tensor": "y", "requires_grad": true}',
        '{"tensor": ["x"], "requires_grad": true}',
        '{"tensor": "x"}', '{"array": "y"}', '{"dict": [1]}', '{"dict": 1}', '{"tuple": 3}', "{}",
        '{"what": 1}', '[{"os.system": "true"}]', "[" * 100_000, "[" * 100_000 + "]" * 100_000, "1" * 5000,
    ],
    ids=lambda text: text[:40],
)  # fmt: skip
def test_a_structure_that_does_not_fit(structure, path):
    path.write_bytes(file({"__metadata__": {serialization.STRUCTURE: structure}, "x": SPEC}, bytes(8)))
    with pytest.raises(ValueError, match="was changed after it was saved"):
        ndl.load(path)


def test_the_structure_is_json_in_the_metadata(path):
    ndl.save(path, {"w": Tensor([1.0]), "epoch": 3})
    with safe_open(path, framework="np") as opened:
        assert json.loads(opened.metadata()[serialization.STRUCTURE]) == {
            "dict": {"w": {"tensor": "w", "requires_grad": True}, "epoch": 3}
        }


# Interruptions


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("No space left on device"), KeyboardInterrupt()])
def test_an_interrupted_save_leaves_the_old_file(step, error, path, monkeypatch):
    ndl.save(path, {"old": 1})

    def interrupted(*args):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, step, interrupted)
        with pytest.raises(type(error)):
            ndl.save(path, {"new": Tensor(np.zeros(1000))})
    assert ndl.load(path) == {"old": 1}
    assert os.listdir(path.parent) == [path.name]
    ndl.save(path, {"new": 2})
    assert ndl.load(path) == {"new": 2}


def test_what_is_written_is_on_the_disk_before_it_takes_the_old_place(path, monkeypatch):
    calls = []

    def noting(name, do):
        monkeypatch.setattr(os, name, lambda *args: (calls.append(name), do(*args)))

    noting("fsync", os.fsync)
    noting("replace", os.replace)
    ndl.save(path, {"x": 1})
    assert calls == ["fsync", "replace"]


def test_readers_see_the_old_file_or_the_new_one(path):
    states = [{"x": np.full(50_000, float(i)), "i": i} for i in range(2)]
    ndl.save(path, states[0])
    stop = threading.Event()

    def write():
        i = 0
        while not stop.is_set():
            i = 1 - i
            ndl.save(path, states[i])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(50):
            loaded = ndl.load(path)
            assert (loaded["x"] == loaded["i"]).all()
    finally:
        stop.set()
        writer.join()


def test_links_and_permissions_are_those_of_any_other_file(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "latest"
    link.symlink_to(tmp_path / "real" / "state")
    ndl.save(link, {"x": 1})
    assert link.is_symlink()
    assert ndl.load(tmp_path / "real" / "state") == {"x": 1}
    (tmp_path / "plain").write_bytes(b"")
    modes = {stat.S_IMODE(p.stat().st_mode) for p in (link, tmp_path / "plain")}
    assert len(modes) == 1


def test_half_of_a_surrogate_pair_as_a_key(path):
    state = {chr(0xD800): np.arange(3), chr(0xDFFF): np.arange(2), "text": chr(0xD800)}
    ndl.save(path, state)
    same(ndl.load(path), state)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_the_mode_of_the_file_stays(mode, path):
    ndl.save(path, {"epoch": 1})
    path.chmod(mode)
    ndl.save(path, {"epoch": 2})
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert ndl.load(path) == {"epoch": 2}
