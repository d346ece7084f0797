"""Several workers learn as one, go on to the bit when one was killed, and end with a word when one fails."""

from __future__ import annotations

import copy
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

import needle as ndl
from benchmarks import scaling
from needle import nn, parallel
from needle.apps import mlp_resnet
from needle.apps.together import run_together, way_out
from needle.apps.training import learning_step, run_epoch
from needle.autograd import Tensor

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("workers.py")
TIMEOUT = 400  # seconds
N = 3  # so many workers work together


def script():
    """The module that the workers run."""
    spec = spec_from_file_location("workers", SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def launch(mpi):
    """Starts Python as several workers."""

    def start(n, *words, **options):
        return subprocess.Popen(
            [mpi, "-n", str(n), sys.executable, *map(str, words)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    return start


@pytest.fixture(scope="module")
def together(launch):
    """Runs Python as several workers; returns the exit code, and what they wrote to stdout and to stderr."""

    def run(n, *words, fails=False):
        process = launch(n, *words)
        try:
            out, err = process.communicate(timeout=TIMEOUT)
        finally:
            process.kill()
        assert (process.returncode != 0) == fails, out + err
        return process.returncode, out, err

    return run


@pytest.fixture(scope="module")
def found(together, tmp_path_factory):
    """What each function of the script returned on worker 0 of N."""
    folder = tmp_path_factory.mktemp("found")
    together(N, "-m", "mpi4py", SCRIPT, "all", folder)  # it ends all if one fails
    return {path.stem: dict(np.load(path)) for path in folder.iterdir()}


# One process


@pytest.fixture
def alone(mpi):
    return parallel.Workers()


def test_a_worker_alone_keeps_everything(alone):
    assert (alone.rank, alone.size, repr(alone)) == (0, 1, "Workers(rank=0, size=1)")
    assert alone.share([1, 2, 3]) == [1, 2, 3]
    assert alone.same("value") == "value"
    assert alone.gather("value") == ["value"]
    np.testing.assert_array_equal(alone.sum([1.0, 2.0]), [1, 2])
    x = Tensor([1.0, 2.0])
    x.grad = gradient = Tensor([3.0, 4.0])
    alone.average_gradients([x], weight=5)
    assert x.grad is gradient
    alone.average_values([x])
    np.testing.assert_array_equal(x.numpy(), [1, 2])
    np.testing.assert_array_equal(alone.counters(), [2, 0, 0])
    np.testing.assert_array_equal(parallel.average(x, alone, 2).numpy(), [1, 2])
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    assert parallel.synchronise(model, alone) is model
    assert "_standardize" not in vars(model[1])


def test_a_copy_of_a_model_has_the_same_workers_and_they_stay_where_they_are(alone):
    alone.size = 2
    model = parallel.synchronise(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), alone)
    again = copy.deepcopy(model)
    assert again[1]._standardize.keywords["workers"] is alone
    assert again[1].weight is not model[1].weight
    with pytest.raises(TypeError, match="Workers cannot be pickled"):
        pickle.dumps(alone)


def test_weights_that_add_up_to_nothing_are_refused(alone, monkeypatch):
    alone.size = 2
    monkeypatch.setattr(alone, "_add_up", lambda array: None)
    x = Tensor([1.0, 2.0])
    x.grad = Tensor([3.0, 4.0])
    with pytest.raises(ValueError, match="weights add up to 0"):
        alone.average_gradients([x], weight=0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--epochs", "3"], "Nothing was saved; with --checkpoint PATH each epoch is"),
        (["--checkpoint", "a.st", "--lr", "1"], "with --checkpoint a.st --resume."),
        (["--checkp=a.st"], "with --checkpoint a.st --resume."),
        (["--checkpoint", "my runs/a.st"], "with --checkpoint 'my runs/a.st' --resume."),
    ],
)
def test_the_way_out_names_the_checkpoint_as_one_types_it(options, words):
    assert words in way_out(options)


def test_a_worker_alone_is_told_how_to_start_several(alone, capsys, monkeypatch):
    for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert run_together(lambda argv: argv, ["--data-parallel"]) == ["--data-parallel"]
    assert capsys.readouterr().err == (
        "--data-parallel: this is the only worker; mpiexec -n 4 … starts four\n"
    )
    monkeypatch.setenv("PMI_RANK", "0")
    run_together(lambda argv: argv, ["--data-parallel"])
    assert capsys.readouterr().err == ""


def test_a_communicator_may_be_passed(mpi):
    from mpi4py import MPI

    assert parallel.Workers(MPI.COMM_SELF).size == 1


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("items", [1, 2, 4, 5, 12])
def test_parts_are_even_and_none_is_empty(alone, items, size):
    parts = []
    alone.size = size
    for alone.rank in range(size):
        parts.append(alone.share(list(range(items))))
    if items < size:
        assert parts == [list(range(items))] * size
    else:
        assert sorted(item for part in parts for item in part) == list(range(items))
        assert {len(part) for part in parts} <= {items // size, items // size + 1}


def test_a_step_of_a_worker_alone_is_a_step(alone):
    results = []
    for workers in (None, alone):
        rng = np.random.default_rng(0)
        model = nn.Sequential(nn.Linear(4, 3, rng=rng), nn.BatchNorm1d(3))
        step = learning_step(model, nn.SoftmaxLoss(), ndl.optim.SGD(model.parameters(), lr=0.1), 0.5, workers)
        step(Tensor(rng.normal(size=(6, 4))), Tensor([0, 1, 2, 0, 1, 2], dtype="int64"))
        results.append([p.numpy() for p in model.parameters()])
    np.testing.assert_array_equal(
        np.concatenate([np.ravel(p) for p in results[0]]), np.concatenate([np.ravel(p) for p in results[1]])
    )


def test_standardize_of_a_worker_alone_is_standardize(alone):
    x = Tensor(np.random.randn(5, 3, 2), dtype="float64")
    ours, theirs = parallel.standardize(x, (0, 2), 1e-3, alone), ndl.ops.standardize(x, (0, 2), 1e-3)
    for i in range(3):
        np.testing.assert_allclose(ours[i].numpy(), theirs[i].numpy(), rtol=1e-12)


SMALL = ["--hidden-dim", "16", "--num-blocks", "1", "--batch-size", "100", "--quiet"]


def test_data_parallel_with_one_process_is_a_training_alone(mpi, capsys):
    metrics = [mlp_resnet.main([*SMALL, "--epochs", "2", *more]) for more in ([], ["--data-parallel"])]
    assert metrics[0] == metrics[1]
    assert "workers" not in capsys.readouterr().out


def test_average_needs_floats_and_no_compiler(alone):
    with pytest.raises(ValueError, match=r"average: needs floats, got int32; use .astype\('float32'\)"):
        parallel.average(Tensor([1], dtype="int32"), alone, 1)
    compiled = ndl.jit(lambda x: parallel.average(x, alone, 1) * 2)
    with pytest.raises(ValueError, match="cannot wait for other workers; run it without jit"):
        compiled(Tensor([1.0]))


def test_gradients_cannot_be_averaged_in_a_compiled_step(alone):
    alone.size = 2
    x = nn.Parameter(Tensor([1.0, 2.0]))

    @ndl.jit
    def step(y):
        (x * y).sum().backward()
        alone.average_gradients([x], weight=1)
        return x.grad

    with pytest.raises(ValueError, match="average_gradients: a compiled function cannot wait for other"):
        step(Tensor([3.0, 4.0]))


def test_averages_of_an_epoch_need_the_sizes_of_its_batches(alone):
    alone.size = 2
    batches = [(Tensor(np.eye(3)), Tensor([0, 1, 2], dtype="int64"))]
    with pytest.raises(ValueError, match="there were 1 batches, and batch_sizes has 0 numbers"):
        run_epoch(batches, nn.Linear(3, 3), nn.SoftmaxLoss(), workers=alone)


def test_a_compiled_step_is_refused(mpi, capsys):
    with pytest.raises(SystemExit):
        mlp_resnet.main(["--data-parallel", "--jit"])
    assert "--jit with --data-parallel: a compiled step cannot wait" in capsys.readouterr().err


def test_batch_norm_of_the_whole_batch_needs_workers(capsys):
    with pytest.raises(SystemExit):
        mlp_resnet.main(["--sync-batchnorm"])
    assert "error: --sync-batchnorm needs --data-parallel; a process alone" in capsys.readouterr().err


@pytest.mark.parametrize(
    "names", [("PMI_SIZE", "PMI_RANK"), ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")]
)
@pytest.mark.parametrize("rank", [0, 1])
def test_who_forgets_data_parallel_is_told_once(monkeypatch, capsys, names, rank):
    for name, value in zip(names, (3, rank), strict=True):
        monkeypatch.setenv(name, str(value))
    mlp_resnet.main([*SMALL, "--epochs", "1"])
    words = "MPI has started 3 processes, but without --data-parallel each of them learns alone"
    assert capsys.readouterr().err.count(words) == (rank == 0)


def test_without_mpi4py_the_message_names_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ImportError, match=r"Workers: needs mpi4py .* pip install 'needle-notebooks\[mpi\]'"):
        parallel.Workers()
    with pytest.raises(SystemExit):
        mlp_resnet.main(["--data-parallel"])
    message = capsys.readouterr().err
    assert "error: --data-parallel: Workers: needs mpi4py" in message
    assert "Traceback" not in message


def test_processors_are_shared_fairly():
    """Those that all may use are divided; those that one has to itself stay whole."""
    eight = set(range(8))
    assert parallel._fair_share(eight, [eight] * 4) == 2
    assert parallel._fair_share({0, 1, 2}, [{0, 1, 2}, {3, 4, 5}]) == 3
    assert parallel._fair_share({0}, [{0}, eight]) == 1
    assert parallel._fair_share(eight, [eight] * 20) == 1


@pytest.mark.parametrize("n", [2, 3, 8])
def test_the_model_of_a_step_counts_what_a_ring_sends(n):
    costs = scaling.Costs(fixed=5.0, per_item=2.0, latency=3.0, bandwidth=7.0)
    size, seconds = 60.0, 0.0
    have = np.random.default_rng(0).random((n, n))  # a row for each worker, a column for each part
    total = have.sum(0)
    for turn in range(2 * (n - 1)):
        sent = [(k, (k - turn) % n) for k in range(n)]
        for (k, part), number in zip(sent, [have[place] for place in sent], strict=True):
            to = (k + 1) % n, part
            have[to] = number + (have[to] if turn < n - 1 else 0)
        seconds += 3 + size / n / 7
    np.testing.assert_allclose(have, [total] * n)
    assert costs.all_reduce(n, size) == pytest.approx(seconds)
    assert costs.step(n, 4 * n, size) == pytest.approx(5 + 4 * 2 + seconds)
    assert costs.step(n, 1, size) == pytest.approx(5 + 2 + seconds)  # nobody has less than an item


def test_the_constants_of_the_model_are_found_and_its_predictions_printed_and_drawn(
    monkeypatch, capsys, tmp_path
):
    true = scaling.Costs(fixed=5e-3, per_item=2e-4, latency=3e-5, bandwidth=1e9)
    size = 1e6

    def measured(count, what, *words):
        if what == "send":
            return {"message": true.latency + words[0] / true.bandwidth}
        items = scaling.networks()[words[0]][2]
        took = {
            "step": true.step(count, items / words[1], size),
            "communication": true.all_reduce(count, size),
        }
        return took | {"bytes": size, "items": items, "gradients": size}

    monkeypatch.setattr(scaling, "on_workers", measured)
    monkeypatch.setattr(scaling.os, "cpu_count", lambda: 3)
    monkeypatch.setattr(sys, "argv", ["scaling", "--workers", "2", "4", "--picture", str(tmp_path / "x.svg")])
    scaling.main()
    out = capsys.readouterr().out
    assert out.count("a message: 31 µs + 1 GB/s") == 1
    assert out.count("5 ms + 200 µs an item") == 3
    rows = [line.split() for line in out.splitlines() if re.match(r" +[24] ", line)]
    assert len(rows) == 6
    for workers, *_, speed_up, model in rows:
        if workers == "4":  # more than there are processors
            assert model == "-"
        else:
            assert float(model) == pytest.approx(float(speed_up), abs=0.02)
    assert out.count("10,000: ") == 3
    assert "<svg" in (tmp_path / "x.svg").read_text()


def test_a_picture_needs_a_folder_before_anything_is_measured(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["scaling", "--picture", "no/such/x.svg"])
    with pytest.raises(SystemExit):
        scaling.main()
    assert "--picture: there is no folder no/such" in capsys.readouterr().err


@pytest.mark.parametrize("count", ["0", "-2"])
def test_a_number_of_workers_to_measure_with_is_checked(monkeypatch, capsys, count):
    monkeypatch.setattr(sys, "argv", ["scaling", f"--workers={count}"])
    with pytest.raises(SystemExit):
        scaling.main()
    assert f"--workers: must be whole numbers of at least 1, got {count}" in capsys.readouterr().err


# Several workers


@pytest.mark.slow
def test_workers_learn_what_one_learns_from_the_whole_batch(found):
    """A hundred steps of four networks, by two optimisers; all workers end with the same bits."""
    ours, alone = found["trainings"], script().trainings()
    assert ours.keys() == alone.keys()
    assert len({key.partition(" ")[0] for key in ours}) == 4
    for key, value in alone.items():
        np.testing.assert_allclose(ours[key], value, rtol=0, atol=1e-6, err_msg=key)
        if key.endswith("losses"):
            assert value[-20:].mean() < 0.95 * value[:20].mean(), f"{key}: nothing was learned"


@pytest.mark.slow
def test_gradients_are_averaged_by_weight(found):
    """Worker k counts k + 1; where no other has a gradient, the others count with 0."""
    found = found["means"]
    weights = np.arange(1, N + 1) / np.arange(1, N + 1).sum()
    mean = (weights * np.arange(N)).sum()
    np.testing.assert_allclose(found["grad 0"], np.full((2, 3), mean + 2), rtol=1e-6)
    np.testing.assert_allclose(found["grad 1"], np.full(4, 10 * weights[1]), rtol=1e-12)
    np.testing.assert_allclose(found["grad 2"], mean, rtol=1e-6)
    assert [found[f"grad {i}"].dtype for i in range(3)] == ["float32", "float64", "float32"]


@pytest.mark.slow
def test_the_gradient_of_an_average_is_that_of_the_loss_of_the_batch(found):
    found = found["derivatives"]
    np.testing.assert_allclose(found["gradient"], found["differences"], rtol=1e-7)
    assert np.abs(found["gradient"]).min() > 1e-3


@pytest.mark.slow
def test_in_lazy_mode_workers_meet_though_only_one_looks(found):
    found = found["lazily"]
    np.testing.assert_allclose(found["sum"], N)
    np.testing.assert_allclose(found["mean"], (N - 1) / 2)


@pytest.mark.slow
def test_synchronised_batch_norm_is_that_of_the_whole_batch(found):
    found, alone = found["normalised"], script().normalised()
    assert found.keys() == alone.keys()
    for key, value in alone.items():
        np.testing.assert_allclose(found[key], value, rtol=0, atol=1e-12, err_msg=key)


@pytest.mark.slow
def test_each_batch_is_shared_and_worker_0_draws_the_order(found):
    found = found["shared"]
    np.random.seed(0)
    orders = [np.random.permutation(11) for _ in range(2)]
    whole = np.split(orders[1], [5, 10])
    whole[2] = np.repeat(whole[2], N)  # the last item alone goes to everybody
    for i, batch in enumerate(whole):
        np.testing.assert_array_equal(found[f"batch {i}"], np.sort(batch))
    assert found["afterwards"][0] == np.random.rand()
    assert len(set(found["afterwards"])) == N


@pytest.mark.slow
def test_after_an_epoch_all_have_the_same_model(found):
    """Each worker's running means followed its own parts; then they are averaged."""
    np.testing.assert_allclose(found["buffers"]["mean"], np.full(3, (N - 1) / 2), rtol=1e-6)


@pytest.mark.slow
def test_workers_share_the_processors(found):
    threads = found["processors"]["threads"]
    assert len(threads) == N
    assert set(threads) == {max(len(parallel._processors()) // N, 1)}


@pytest.mark.slow
def test_steps_and_messages_of_workers_are_measured(mpi, monkeypatch):
    monkeypatch.chdir(ROOT)
    found = scaling.on_workers(2, "learn", "2-8-8-2", 1)
    assert 0 < found["communication"] < found["step"]
    assert found["items"] == 16
    assert found["gradients"] == 4 * (2 * 8 + 8 + 8 * 8 + 8 + 8 * 2 + 2)
    assert found["gradients"] < found["bytes"] < 1.1 * found["gradients"]  # and a few numbers beside them
    small, large = (scaling.on_workers(2, "send", size)["message"] for size in scaling.SIZES)
    assert 0 < small < large


# Commands

COMMANDS = {
    "simple_ml": ["--epochs", "2"],
    "mlp_resnet": [*SMALL, "--epochs", "2"],
    "cnn": ["--epochs", "1", "--channels", "4", "--sync-batchnorm"],
    "language_model": ["--epochs", "1", "--hidden-size", "16", "--batch-size", "17"],
    "gpt": ["--epochs", "1", "--dim", "16", "--dropout", "0", "--write", "20"],
}


def epoch_of(out: str) -> list[float]:
    """The losses and accuracies of the last line, as numbers."""
    *_, last = re.findall(r"test accuracy (.+)%, test loss (.+)", out)
    return [float(x) for x in last]


READING = """
import argparse, sys, time
from pathlib import Path
from needle.apps.commands import explained
from needle.parallel import Workers

folder, workers = Path(sys.argv[1]), Workers()
with explained(argparse.ArgumentParser(), workers):
    if workers.rank == 0:
        time.sleep(0.5)
        (folder / "data").write_text("downloaded")
    print((folder / "data").read_text())
    if len(sys.argv) > 2 and workers.rank == int(sys.argv[2]):
        raise ValueError("the data is not what it should be")
"""


@pytest.mark.slow
@pytest.mark.parametrize("fails", [None, 0, 1])
def test_what_worker_0_downloads_the_others_find(together, tmp_path, fails):
    words = [] if fails is None else [fails]
    _, out, err = together(2, "-c", READING, tmp_path, *words, fails=fails is not None)
    assert out.count("downloaded") == 2
    assert ("the data is not what it should be" in err) == (fails is not None)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_runs_with_several_workers(together, name):
    command = ["-m", f"needle.apps.{name}", *COMMANDS[name]]
    of_one = [word for word in command if word != "--sync-batchnorm"]
    alone = subprocess.run(
        [sys.executable, *of_one], cwd=ROOT, capture_output=True, text=True, check=True, timeout=TIMEOUT
    ).stdout
    _, out, err = together(2, *command, "--data-parallel")
    assert "Traceback" not in err
    for words in ("test accuracy ", "by frequency alone", "epoch 1/"):
        assert out.count(words) == alone.count(words)
    number = r"([\d.e+-]+)"
    line = f"a step of the last epoch took {number} ms, {number} ms of it for communication of {number} MB"
    (figures,) = re.findall(f"2 workers: {line}", out)
    of, took, size = map(float, figures)
    assert 0 < took < of
    assert size > 0
    if name == "mlp_resnet":  # dropout draws other numbers, and each worker normalizes its own part
        assert epoch_of(out)[0] == pytest.approx(epoch_of(alone)[0], abs=15)
    else:
        assert epoch_of(out) == pytest.approx(epoch_of(alone), rel=0.01)


@pytest.mark.slow
def test_errors_of_options_are_said_once(together, tmp_path):
    app = ["-m", "needle.apps.mlp_resnet", "--data-parallel"]
    code, out, err = together(2, *app, "--epochs", "0", fails=True)
    assert code == 2
    assert out == ""
    assert err.count("must be a whole number of at least 1, got 0") == err.count("usage:") == 1
    _, _, err = together(2, *app, "--batch-size", "3", fails=True)
    assert err.count("--batch-size 3: with 2 workers, some get a single item") == 1
    assert err.count("or a --batch-size of 4 or more") == 1
    there = tmp_path / "there"
    there.write_text("nothing")
    _, _, err = together(2, *app, "--checkpoint", there, fails=True)
    assert err.count("is there already") == 1
    _, _, err = together(2, *app, "--checkpoint", there, "--resume", fails=True)
    assert err.count("is not a safetensors file") == 1
    assert "Abort" not in err  # each worker has ended by itself
    _, _, err = together(2, *app, "--checkpoint", tmp_path / "no" / "x", fails=True)
    assert err.count("cannot be written") == 1
    code, _, err = together(2, *app, "--device", "cuda", fails=True)
    assert code == 1
    assert err.count("--device cuda: ") == len(err.splitlines()) == 1
    assert there.read_text() == "nothing"
    _, out, err = together(2, *app, "--help")
    assert out.count("--sync-batchnorm") == 2  # in the usage, and in its own line
    assert err == ""


# Trainings that are interrupted

TRAINING = [*SMALL, "--epochs", "4", "--data-parallel"]  # 15 steps in each epoch


@pytest.fixture(scope="module")
def whole(together, tmp_path_factory):
    """The checkpoint of a training of two workers that nobody interrupted."""
    path = tmp_path_factory.mktemp("whole") / "x"
    together(2, "-m", "needle.apps.mlp_resnet", *TRAINING, "--checkpoint", path)
    return path


def flat(state, name="state") -> dict:
    """Numbers, words and arrays of a nested state, by their places."""
    if isinstance(state, dict):
        return {k: v for key, part in state.items() for k, v in flat(part, f"{name}.{key}").items()}
    if isinstance(state, (list, tuple)):
        return {k: v for i, part in enumerate(state) for k, v in flat(part, f"{name}.{i}").items()}
    return {name: state.numpy() if isinstance(state, Tensor) else state}


def assert_same_state(path, other) -> None:
    """Two checkpoints hold the same bits."""
    ours, theirs = flat(ndl.load(path)), flat(ndl.load(other))
    assert ours.keys() == theirs.keys()
    assert sum(np.size(value) for value in ours.values()) > 1000
    for key, value in ours.items():
        np.testing.assert_array_equal(value, theirs[key], err_msg=key)


def resumed(together, path, n=2):
    return together(n, "-m", "needle.apps.mlp_resnet", *TRAINING, "--checkpoint", path, "--resume")


@pytest.mark.slow
def test_a_killed_worker_is_said_and_the_training_goes_on_to_the_bit(together, whole, tmp_path):
    path = tmp_path / "x"
    code, _, err = together(
        2, SCRIPT, "failing", "killed", 1, 40, *TRAINING, "--checkpoint", path, fails=True
    )
    assert code == 9
    (sentence,) = re.findall("One of the 2 workers failed or was killed.+", err)
    assert "The one that MPI names may be another." in sentence
    assert sentence.endswith(f"Go on after the last whole epoch with --checkpoint {path} --resume.")
    assert ndl.load(path)["epoch"] == 2
    resumed(together, path)
    assert_same_state(path, whole)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [1, -1])
def test_an_error_of_a_worker_ends_all_and_is_said_once(together, whole, tmp_path, rank):
    path = tmp_path / "x"
    began = time.perf_counter()
    _, _, err = together(2, SCRIPT, "failing", "error", rank, 20, *TRAINING, "--checkpoint", path, fails=True)
    assert time.perf_counter() - began < TIMEOUT / 2
    assert err.count("RuntimeError: this worker was made to fail") == 1
    (sentence,) = re.findall("Worker . of 2 failed.+", err)
    assert sentence == (
        f"Worker {max(rank, 0)} of 2 failed, with this error, and so all are ended. "
        f"Go on after the last whole epoch with --checkpoint {path} --resume."
    )
    resumed(together, path)
    assert_same_state(path, whole)


@pytest.mark.slow
def test_an_interrupted_write_leaves_the_checkpoint_before(together, whole, tmp_path):
    """The first is written at the begin, then one after each epoch: worker 0 dies within the third."""
    path = tmp_path / "x"
    together(2, SCRIPT, "killed_in_a_write", 3, *TRAINING, "--checkpoint", path, fails=True)
    (unfinished,) = tmp_path.glob(".x.*.part")
    assert 0 < unfinished.stat().st_size < path.stat().st_size
    assert ndl.load(path)["epoch"] == 1
    resumed(together, path)
    assert_same_state(path, whole)


@pytest.mark.slow
def test_with_another_number_of_workers_a_training_goes_on(together, tmp_path):
    path = tmp_path / "x"
    together(2, SCRIPT, "failing", "killed", 1, 20, *TRAINING, "--checkpoint", path, fails=True)
    _, out, err = resumed(together, path, n=3)
    assert err.count("the number of workers was 2, and is 3 now: the batches are the same") == 1
    assert "test accuracy" in out
    state = ndl.load(path)
    assert state["epoch"] == 4
    assert len(state["random"]) == 3
    assert len({tuple(random["state"]["key"].tolist()) for random in state["random"]}) == 3


@pytest.mark.slow
def test_ctrl_c_ends_all_with_a_word(launch, tmp_path):
    path = tmp_path / "x"
    words = ["--epochs", 1000, "--data-parallel", "--checkpoint", path]
    process = launch(2, "-m", "needle.apps.mlp_resnet", *SMALL[:-1], *words)
    try:
        assert process.stdout.readline().startswith("epoch 1/1000")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT)
    finally:
        process.kill()
    assert re.findall(r"stopped after \d+ of 1000 epochs; go on with --checkpoint .+ --resume", err)
    assert "Traceback" not in err
    assert "was killed" not in err
    assert ndl.load(path)["epoch"] >= 1


# A notebook

ENGINE = """
import numpy as np, runpy
found = runpy.run_path(script)["trained"]("cnn", "adam", __import__("needle").parallel.Workers())
"""


FAILING = """
for step in range(1000000):
    {call}
    if workers.rank == {rank} and step == 5:
        raise RuntimeError("this engine was made to fail")
"""


@pytest.fixture
def engines(mpi, monkeypatch):
    """Two engines of a notebook, which MPI has started."""
    import ipyparallel

    monkeypatch.setenv("PATH", f"{mpi.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with ipyparallel.Cluster(engines="mpi", n=2, log_level=40) as engines:
        yield engines


@pytest.mark.slow
@pytest.mark.parametrize(("call", "rank"), [("workers.sum(np.ones(3))", 1), ("workers.same(step)", 0)])
def test_after_an_error_on_an_engine_new_workers_go_on(engines, call, rank):
    import ipyparallel

    view = engines[:]
    begin = "import needle as ndl, numpy as np\nworkers = ndl.parallel.Workers()"
    view.execute(begin, block=True)
    running = view.execute(FAILING.format(call=call, rank=rank))
    end = time.monotonic() + TIMEOUT
    while running.progress == 0 and time.monotonic() < end:
        time.sleep(0.1)
    with pytest.raises(TimeoutError):
        running.get(timeout=2)  # one engine waits for the other, which has failed
    engines.cluster.signal_engines_sync(signal.SIGINT)
    with pytest.raises(ipyparallel.CompositeError) as error:
        running.get(timeout=60)
    assert "KeyboardInterrupt" in str(error.value)
    assert "this engine was made to fail" in str(error.value)
    view.execute(f"{begin}\ntotal = workers.sum(np.full(3, workers.rank + 1.0))")
    for total in view.pull("total").get(timeout=60):
        np.testing.assert_array_equal(total, [3, 3, 3])


@pytest.mark.slow
def test_engines_of_a_notebook_learn_as_one(engines):
    view = engines[:]
    view["script"] = str(SCRIPT)
    view.execute(ENGINE, block=True)
    found = view["found"]
    alone = script().trained("cnn", "adam")
    for theirs in found:
        for key, value in alone.items():
            np.testing.assert_allclose(theirs[key], value, rtol=0, atol=1e-6, err_msg=key)
