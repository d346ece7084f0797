"""What a person takes home: a script, a notebook and a file repeat a run, or go on with it, to the last bit.

Most runs here are not compiled, and so are repeated in this process. The slow tests compile.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest
from safetensors.numpy import save as to_safetensors

import needle as ndl
from playground.results import as_python, take_home
from playground.results.take_home import CannotImport, from_file, to_file
from playground.server import messages
from playground.training.points import Point
from playground.training.settings import Layer, Settings
from playground.training.trainer import MOST_CHANGES, Trainer

SAME = "the same as in the playground"


def digest(trainer):
    return as_python.digest(trainer.model.parameters())


def change(trainer, **values):
    assert trainer.retune(dataclasses.replace(trainer.settings, **values))


def play(trainer, epochs=2):
    """Learn for a few epochs; compiled after the first one, where something compiles."""
    for _ in range(epochs):
        trainer.epoch()
        if COMPILES:
            trainer.wait()


COMPILES: list[bool] = []  # not empty while something compiles: nobody else may wait for it


# ---- runs


def plain():
    trainer = Trainer(Settings(points=60))
    play(trainer, 3)
    return trainer


def eventful():
    settings = Settings(
        points=47, train_share=0.6, optimiser="adam", batch_size=8, regularisation="l2",
        regularisation_rate=0.01,
        schedule="cosine", period=12, hidden=(5, Layer(3, "relu", 0, "layernorm")), seed=3, noise=0.2,
        own=(Point(1, 1, 1),), initialisation="kaiming",
    )  # fmt: skip
    trainer = Trainer(settings)
    trainer.set_bias(1, 2, 0.3)  # before the first step
    play(trainer)
    change(trainer, own=(Point(1, 1, 1), Point(-1, 2.5, -1), Point(0.125, 3, 1)))
    trainer.set_weight(1, 0, 2, 0.7)
    trainer.step()
    change(trainer, seed=5)
    change(trainer, own=(Point(1, 1, 1), Point(-1, 2.5, -1)))
    trainer.step()
    change(trainer, learning_rate=0.1)
    trainer.set_bias(2, 1, -0.1)
    play(trainer)
    change(trainer, batch_size=5, regularisation_rate=0.03)
    play(trainer)
    trainer.set_weight(3, 2, 0, 9.0)
    play(trainer)
    trainer.travel(5)
    play(trainer)
    change(trainer, schedule="steps", period=2)
    trainer.travel(4)
    trainer.set_weight(1, 1, 1, -0.5)
    play(trainer)
    trainer.travel(2)
    trainer.travel(None)
    trainer.step()
    trainer.step()
    return trainer


def with_dropout():
    hidden = (Layer(5, "", 0.3, "batchnorm"), Layer(4, "sigmoid", 0.1))
    inputs = ("x1", "maximum(x2, abs(x1))", "exp(-x1**2) + pi", "where(x1 > 0, 1, x2)")
    trainer = Trainer(
        Settings(points=50, hidden=hidden, inputs=inputs, batch_size=7, optimiser="momentum", weights_seed=9)
    )
    play(trainer)
    trainer.travel(1)
    play(trainer)
    return trainer


def eager():
    trainer = Trainer(Settings(points=40, compiled=False, optimiser="rmsprop", initialisation="uniform"))
    play(trainer, 3)
    return trainer


def switched():
    trainer = Trainer(Settings(points=45, regularisation="l1", regularisation_rate=0.01, hidden=(3,)))
    play(trainer, 3)
    change(trainer, compiled=False)
    play(trainer)
    change(trainer, compiled=True)
    play(trainer, 3)
    return trainer


def painted():
    trainer = Trainer(Settings(dataset="own", hidden=(), initialisation="zeros"))
    change(trainer, own=tuple(Point(i / 8, -i / 8, (-1) ** i) for i in range(-20, 21)))
    play(trainer)
    return trainer


def repainted():
    """Points come, go and come back: in the middle, all of them, and several times between two steps."""
    some = tuple(Point(i / 8, -i / 8, (-1) ** i) for i in range(-20, 21))
    trainer = Trainer(Settings(dataset="own", own=some, hidden=(3,), seed=4))
    for own in (some[:9] + some[17:], some, some[::-1], (), some[5:25], some[:30], (*some, *some[:7])):
        change(trainer, own=own)
        trainer.step()
    for own in (some[3:], some[:20], some[1:40:2]):
        change(trainer, own=own)
    play(trainer)
    trainer.travel(trainer.epochs - 1)
    change(trainer, own=some[2:])
    play(trainer)
    return trainer


def regression():
    trainer = Trainer(
        Settings(dataset="multi-gaussian", points=40, hidden=(4,), schedule="warm-up", period=4)
    )
    play(trainer, 3)
    return trainer


def own_numbers():
    trainer = Trainer(
        Settings(dataset="own", own=tuple(Point(i / 8, -i / 8, i / 20) for i in range(-20, 21)))
    )
    play(trainer)
    change(trainer, own=trainer.settings.own[5:])
    play(trainer)
    return trainer


def untouched():
    return Trainer(Settings(points=40))


def looking_back():
    trainer = eventful()
    trainer.travel(3)
    assert trainer.looks_back
    return trainer


def brought_back():
    trainer = Trainer(Settings(points=50, optimiser="momentum"))
    play(trainer, 4)
    trainer.travel(1)
    trainer.set_weight(1, 0, 0, 0.25)
    change(trainer, batch_size=7)
    play(trainer)
    trainer.bring_back()
    play(trainer)
    return trainer


RUNS = [
    plain,
    eventful,
    brought_back,
    with_dropout,
    eager,
    switched,
    painted,
    repainted,
    regression,
    own_numbers,
    untouched,
    looking_back,
]
SOON = [eventful, brought_back, with_dropout, painted, repainted, own_numbers]
SOME_LATER = [make if make in SOON else pytest.param(make, marks=pytest.mark.slow) for make in RUNS]


@pytest.fixture
def compiles(what_compiles, monkeypatch):
    what_compiles()
    monkeypatch.setattr("playground.training.trainer.FIRST_EPOCHS", 0)
    COMPILES.append(True)
    yield
    COMPILES.clear()


# ---- the script and the notebook


def said_by(code):
    """What a program prints, in this process: for runs that nothing was compiled in."""
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(code, "a script", "exec"), {})
    return out.getvalue().splitlines()


def run_elsewhere(code, tmp_path):
    """What a program prints, in a process of its own."""
    path = tmp_path / "run.py"
    path.write_text(code, "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert not done.stderr
    return done.stdout.splitlines()


def cells_of(notebook):
    return [cell for cell in json.loads(notebook)["cells"] if cell["cell_type"] == "code"]


def assert_told(trainer, lines):
    assert lines == [f"steps {trainer.steps:,}, train loss {trainer_loss(trainer):.6f}", SAME]


def trainer_loss(trainer):
    points, labels = trainer.train
    return np.mean((trainer.predict(points) - labels) ** 2) / 2


@pytest.mark.parametrize("make", SOME_LATER)
def test_the_script_repeats_the_run(make):
    trainer = make().copy()  # as an answer is made
    assert_told(trainer, said_by(as_python.as_script(trainer)))


def test_the_script_of_another_run_is_not_the_same():
    trainer = plain()
    script = as_python.as_script(trainer)
    trainer.set_weight(1, 0, 0, 0.5)
    other = as_python.digest(trainer.model.parameters())
    assert said_by(script.replace(digest(plain()), other))[-1] == "not the same"


def test_the_notebook_repeats_the_run():
    trainer = with_dropout()
    code = [cell["source"] for cell in cells_of(as_python.as_notebook(trainer))]
    assert_told(trainer, said_by("\n\n".join(code[:-1])))
    assert code[-1].startswith("import viz\n")


def test_a_notebook_is_one():
    import nbformat

    notebook = nbformat.reads(as_python.as_notebook(painted()), as_version=4)
    nbformat.validate(notebook)
    kinds = [cell.cell_type for cell in notebook.cells]
    assert kinds == ["markdown", "code"] * 6


def test_the_script_of_a_plain_run_is_short():
    script = as_python.as_script(plain())
    for word in ("schedule", "rate", "dropout", "own[chosen, 2]])\n\n\n\n", "weight ="):
        assert word not in script
    assert script.count("\n") < 100
    assert max(map(len, script.splitlines())) <= 120


@pytest.mark.slow
def test_a_plain_run_in_a_process_of_its_own(tmp_path):
    trainer = plain()
    assert_told(trainer, run_elsewhere(as_python.as_script(trainer), tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("make", RUNS)
def test_the_script_repeats_a_compiled_run(make, compiles, tmp_path):
    trainer = make()
    if make not in (eager, untouched):
        assert ("compiled", True) in [what[1:] for what in trainer.changes]
    assert_told(trainer.copy(), run_elsewhere(as_python.as_script(trainer.copy()), tmp_path))


@pytest.mark.slow
def test_the_notebook_repeats_a_compiled_run(compiles, tmp_path):
    from nbclient import NotebookClient
    from nbformat import reads

    trainer = eventful()
    notebook = reads(as_python.as_notebook(trainer), as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert_told(trainer, outputs[-2][0].text.splitlines())
    assert "image/png" in str(outputs[-1])


def test_a_run_that_was_changed_too_often_is_not_told():
    trainer = plain()
    trainer.changes = [(i, "batch_size", 10 + i % 2) for i in range(MOST_CHANGES + 1)]
    for tell in (as_python.as_script, as_python.as_notebook):
        with pytest.raises(as_python.TooManyChanges, match="changed by hand more than 500 times"):
            tell(trainer)
    assert from_file(to_file(trainer)).changes == trainer.changes


# ---- the file


@pytest.mark.parametrize("make", SOME_LATER)
def test_a_file_goes_on_where_the_run_was(make):
    trainer = make().copy()
    other = from_file(to_file(trainer))
    assert (other.settings, other.first, other.changes) == (trainer.settings, trainer.first, trainer.changes)
    assert (other.steps, other.epochs) == (trainer.steps, trainer.epochs)
    assert digest(other) == digest(trainer)
    assert not other.looks_back
    ours, theirs = (np.array([[at, *pair] for at, pair in x.losses.items()]) for x in (other, trainer))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    for _ in range(2):
        trainer.epoch()
        other.epoch()
        assert digest(other) == digest(trainer)
    trainer.travel(trainer.epochs - 1)
    other.travel(trainer.epochs)
    trainer.epoch()
    other.epoch()
    assert digest(other) == digest(trainer)
    assert_told(other, said_by(as_python.as_script(other)))
    assert digest(from_file(to_file(other))) == digest(other)


@pytest.mark.slow
@pytest.mark.parametrize("make", [switched, with_dropout])
def test_a_file_of_a_compiled_run_goes_on(make, compiles, tmp_path):
    trainer = make()
    play(trainer, 4)
    assert trainer.is_compiled
    other = from_file(to_file(trainer))
    assert digest(other) == digest(trainer)
    for _ in range(2):
        other._choose_compiled()
        other.wait()
    other._is_chosen = False
    play(trainer)
    play(other)
    assert other.is_compiled
    assert digest(other) == digest(trainer)
    assert_told(other, run_elsewhere(as_python.as_script(other), tmp_path))


def test_a_run_that_diverged_can_be_kept():
    trainer = Trainer(Settings(points=40, dataset="plane", activation="linear", learning_rate=50))
    while not trainer.trouble:
        trainer.epoch()
    other = from_file(to_file(trainer))
    assert other.trouble
    messages.picture(other, False, watch=["histograms"])


def test_a_run_of_many_points_fits_into_a_file():
    settings = Settings(points=5000, own=tuple(Point(i / 1000, 0.5, 1) for i in range(5000)))
    data = to_file(Trainer(settings))
    assert len(data) < take_home.MOST_BYTES
    assert from_file(data).settings == settings


def test_a_run_whose_points_changed_often_can_be_kept_and_told():
    rng = np.random.default_rng(0)
    points = [Point(*map(float, place), 1.0) for place in rng.uniform(-6, 6, (7500, 2)).round(4)]
    owns = [tuple(points[i : i + 5000 - i % 7]) for i in range(0, 2505, 5)]  # some go, and others come
    trainer = Trainer(Settings(own=owns[-1]))
    trainer.first = dataclasses.replace(trainer.settings, own=owns[0])
    trainer.changes = [(i, "own", own) for i, own in enumerate(owns[1:])]
    assert len(trainer.changes) == MOST_CHANGES
    script = as_python.as_script(trainer)
    assert len(script) < 500_000
    data = to_file(trainer)
    assert len(data) < 500_000
    other = from_file(data)
    assert (other.first, other.settings) == (trainer.first, trainer.settings)
    assert other.changes == trainer.changes
    assert as_python.as_script(other) == script


def test_a_run_that_would_not_be_read_is_not_given_away(monkeypatch):
    trainer = painted()
    size = len(to_file(trainer))
    monkeypatch.setattr(take_home, "MOST_BYTES", size)
    assert to_file(trainer)
    monkeypatch.setattr(take_home, "MOST_BYTES", size - 1)
    said = rf"would have {size:,} bytes; at most {size - 1:,} are read. Take a script home instead\."
    with pytest.raises(as_python.TooManyChanges, match=said):
        to_file(trainer)


# ---- files that are none


@pytest.fixture(scope="module")
def good():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ndl.compiler, "scan_is_ready", lambda step, *batches: False)
        return to_file(eventful())


@pytest.fixture(scope="module")
def content(good, tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "good.safetensors"
    path.write_bytes(good)
    return lambda: ndl.load(path, device=ndl.cpu())


def is_usable(trainer):
    """Whether what was imported can be shown, told, kept and played."""
    messages.scene(trainer)
    messages.picture(trainer, True, watch=["histograms"])
    trainer.epoch(at_most=0.1)
    messages.picture(trainer, True)
    to_file(trainer)
    as_python.as_script(trainer)
    return True


def imported(data):
    """A usable trainer, or None if the file cannot be imported. Anything else is a mistake."""
    try:
        trainer = from_file(data)
    except CannotImport as error:
        return None if str(error).endswith(".") else str(error)
    assert is_usable(trainer)
    return trainer


@pytest.mark.parametrize("share", [0, 0.00001, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
def test_a_truncated_file(good, share):
    assert imported(good[: int(share * len(good))]) is None


@pytest.mark.parametrize(
    "data",
    [
        b"PK\x03\x04" + b"\0" * 100,
        b"\x80\x04\x95" + b"\0" * 100,
        b"\x89PNG\r\n\x1a\n" + b"\0" * 100,
        b"\xff" * 1000,
        b"\0" * 1000,
        b"{}" * 10,
        (2**63).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"{}",
        (10**6).to_bytes(8, "little") + b"[" * 10**6,
        np.random.default_rng(0).bytes(10_000),
        b"\0" * (take_home.MOST_BYTES + 1),
    ],
    ids=lambda data: ascii(data[:8]),
)
def test_what_is_no_such_file(data):
    assert imported(data) is None


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"model": {}},
        {"playground": 1},
        [],
        [1, 2],
        3,
        None,
        "playground",
        {
            "playground": 1,
            "first_settings": {},
            "settings": {},
            "model": {},
            "run": {},
            "changes": [],
            "losses": 1,
        },
    ],
    ids=str,
)
def test_other_states(state, tmp_path):
    ndl.save(tmp_path / "x", state)
    assert imported((tmp_path / "x").read_bytes()) is None


def test_files_of_other_programs():
    assert imported(to_safetensors({})) is None
    assert imported(to_safetensors({"weight": np.zeros((2, 2), "f4")}, metadata={"format": "pt"})) is None
    for text in ("", "[", "{}", "[" * 5000, "1e999", '{"dict": {"playground": 1}}', '{"tensor": "x"}'):
        data = to_safetensors({"x": np.zeros(2, "f4")}, metadata={"needle.structure": text})
        assert imported(data) is None


def put(*path):
    """Something that puts a value at a place of a content."""
    *folders, last = path[:-1]

    def edit(content):
        for name in folders:
            content = content[name]
        content[last] = path[-1]

    return edit


def drop(*path):
    def edit(content):
        for name in path[:-1]:
            content = content[name]
        del content[path[-1]]

    return edit


def floats(*shape, value=0.5, dtype="f4"):
    return np.full(shape, value, dtype)


WEIGHT = "modules.0.modules.0.weight"
PCG = {"bit_generator": "PCG64", "has_uint32": 0, "uinteger": 0}

BROKEN = {
    "the format": [put("playground", x) for x in (1, 3, 0, "2", None, [], 1.5, "x" * 9999)],
    "the first settings": [
        put("first_settings", x)
        for x in ({}, [], None, "circle", {"seed": "-1"}, {"foo": "1"}, {"points": "10000"}, {"hidden": "4"})
    ],
    "the settings": [
        put("settings", x) for x in ({}, None, {"seed": "4"}, {"learning_rate": "nan"}, [["seed", "3"]],
        {"own": 3})
    ],
    "parts": [drop(x) for x in ("playground", "first_settings", "settings", "model", "run", "changes",
    "losses")],
    "parts of the run": [
        drop("run", x)
        for x in ("order", "order_rng", "position", "steps", "epochs", "optimizer", "dropout")
    ],
    "steps": [put("run", "steps", x) for x in (-1, 0, 1.5, "3", None, True, 2**60, 10**400, [],
    float("nan"))],
    "epochs": [put("run", "epochs", x) for x in (-1, 1.0, "3", None, False, 10**9, 10**400, [])],
    "the position": [put("run", "position", x) for x in (-1, 1.5, "3", None, 10**9, 10**400, [])],
    "the order": [
        put("run", "order", x)
        for x in (None, 3, "012", [], [0], np.arange(5), floats(29), np.zeros(29, int), [10**400] * 29,
        [[0]] * 29)
    ],
    "the randomness": [
        put("run", name, x)
        for name in ("order_rng", "dropout")
        for x in (
            None, {}, [], "PCG64", {"bit_generator": "MT19937"}, {**PCG, "state": {}}, {**PCG, "state": None},
            {**PCG, "state": {"state": "1", "inc": 1}}, {**PCG, "state": {"state": 10**400, "inc": 1}},
            {**PCG, "state": {"state": -1, "inc": 1}},
            {**PCG, "state": {"state": 1, "inc": 1}, "uinteger": 10**400},
            {**PCG, "state": {"state": 1, "inc": 1}, "has_uint32": "x"},
        )
    ],
    "the weights": [
        put("model", {}), put("model", None), put("model", 3), drop("model", WEIGHT), put("model", WEIGHT,
        3.0),
        put("model", WEIGHT, floats(3, 5)), put("model", WEIGHT, floats(5, 2)), put("model", WEIGHT, None),
        put("model", WEIGHT, floats(2, 5, 1)), put("model", "another", floats(2, 5)), put("model", WEIGHT,
        floats()),
    ],
    "the optimiser": [
        put("run", "optimizer", None), put("run", "optimizer", {}), put("run", "optimizer", []),
        *[put("run", "optimizer", name, None) for name in ("state", "updates", "options", "groups")],
        *[put("run", "optimizer", "updates", 0, x) for x in (-1, 1.5, "1", None, 2**60, 10**400)],
        *[put("run", "optimizer", "options", "lr", x) for x in ("0.1", None, [], -1.0)],
        *[put("run", "optimizer", "state", 0, x) for x in (None, {}, {"m": 3})],
        drop("run", "optimizer", "state", 0),
    ],
    "the changes": [
        put("changes", x)
        for x in (
            None, 3, "changes", [3], [[]], [[1, "weight"]], [["1", "batch_size", "5"]], [[-1, "batch_size",
            "5"]],
            [[1.5, "batch_size", "5"]], [[True, "batch_size", "5"]], [[1, "batch_size", 5]],
            [[1, "batch_size", "0"]], [[1, "hidden", "5"]], [[1, "foo", "5"]], [[1, [], "5"]], [[1, None,
            None]],
            [[1, "weight", [1, 2, 3]]], [[1, "weight", [1, 2, 3, 4]]], [[1, "weight", [1, -2, 3, 4.0]]],
            [[1, "weight", "1234"]], [[1, "bias", None]], [[1, "learning_rate", "nan"]],
            *([[1, "own", x]] for x in (None, 3, [], [[]], "", "1,1,1", [[0], "1,2"], [[0], None])),
            *([[1, "own", [gone, ""]]] for gone in (None, 0, [1], [-1], ["0"], [[0]], [0.5], [10**400])),
            [[1, "own", [[], "_".join(["1,1,1"] * 5000)]]], [[1, "batch_size", "5"]] * (MOST_CHANGES + 2),
            [[1, "compiled", True]], [[10**400, "weight", [10**400, 1, 1]]], [[1, "__class__", "x"]],
        )
    ],
    "the losses": [
        put("losses", x)
        for x in (
            None, 3, "x", [], [[1, 2]], [[1, 2, "x"]], floats(3), floats(2, 3), floats(1, 3, value=np.nan),
            floats(1, 3, value=np.inf), floats(2, 2, 3), np.arange(6000, dtype="f4").reshape(-1, 3),
        )
    ],
}  # fmt: skip


@pytest.mark.parametrize("part", BROKEN)
def test_a_file_that_was_changed(part, content, tmp_path):
    path = tmp_path / "x"
    for number, edit in enumerate(BROKEN[part]):
        state = content()
        edit(state)
        ndl.save(path, state)
        assert imported(path.read_bytes()) is None, f"{part} {number}"


ODD = {
    "weights that are no numbers": put("model", WEIGHT, floats(2, 5, value=np.nan)),
    "infinite weights": put("model", WEIGHT, floats(2, 5, value=np.inf)),
    "huge weights": put("model", WEIGHT, floats(2, 5, value=3e38)),
    "weights of double precision": put("model", WEIGHT, floats(2, 5, dtype="f8", value=1e300)),
    "whole weights": put("model", WEIGHT, np.ones((2, 5), int)),
    "a rate of its own": put("run", "optimizer", "options", "lr", 1e300),
    "an infinite rate": put("run", "optimizer", "options", "lr", float("inf")),
    "a rate that is no number": put("run", "optimizer", "options", "lr", float("nan")),
    "epochs of long ago": put("run", "epochs", 0),
    "another position": put("run", "position", 1),
    "many steps": put("run", "steps", 2**53 - 1),
    "edits of no neuron": put("changes", [[1, "weight", [10**9, 10**9, 10**9, 1e300]]]),
    "edits out of order": put("changes", [[9, "batch_size", "5"], [1, "batch_size", "7"]]),
    "a number for a word": put("run", "dropout", {**PCG, "state": {"state": 1, "inc": 1}, "more": 3}),
    "losses that are no numbers": put("losses", np.array([[0, np.nan, np.inf]], "f4")),
    "losses of double precision": put("losses", np.array([[0, 1e300, -1e300]])),
    "losses later than now": put("losses", np.array([[1e9, 1, 1]], "f4")),
    "losses before the beginning": put("losses", np.array([[-5, 1, 1]], "f4")),
}


@pytest.mark.parametrize("name", ODD)
def test_a_file_with_odd_numbers_is_usable_or_none(name, content, tmp_path):
    state = content()
    ODD[name](state)
    ndl.save(tmp_path / "x", state)
    imported((tmp_path / "x").read_bytes())


def flipped(data, seed):
    """The same bytes with some of their bits turned round, a few of them in the header."""
    rng = np.random.default_rng(seed)
    numbers = np.frombuffer(data, np.uint8).copy()
    for _ in range(rng.integers(1, 4)):
        numbers[rng.integers(len(numbers))] ^= 1 << rng.integers(8)
    return numbers.tobytes()


@pytest.mark.parametrize(
    "seeds",
    [range(15), *[pytest.param(range(i, i + 100), marks=pytest.mark.slow) for i in range(100, 900, 100)]],
)
def test_flipped_bits(good, seeds):
    for seed in seeds:
        imported(flipped(good, seed))
