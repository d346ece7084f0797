"""What `needle.jit` makes of training steps and formulas, beside NumPy by hand, torch and ``jax.jit``.

The last column sets needle beside the fastest of the three. Two columns are shown but are no measure: needle
without the compiler (``eager``), and jax where it too runs all the steps in one call (``lax.scan``). Whatever
is not installed is left out; ``pip install jax`` adds jax.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numba
import numpy as np

import needle as ndl
from needle import nn, optim
from needle.apps.mlp_resnet import MLPResNet
from playground.training.settings import Settings
from playground.training.trainer import Trainer

from . import THREADS, first_calls, in_jax, in_numpy, in_torch
from .timing import Case, torch
from .training import initial, mlp_step, step_name, step_of, tensor, training_data

RIVALS = ("eager", "NumPy", "torch", "jax", "lax.scan")
BEST_OF = ("NumPy", "torch", "jax")
LIBRARIES = (
    {"NumPy": in_numpy} | ({"torch": in_torch} if torch else {}) | ({"jax": in_jax} if in_jax.jax else {})
)

LEARNING_RATE = 1e-9  # so small that all contenders keep the same weights, however often they run
COMPARED_STEPS = 5  # taken with a learning rate that shows in the loss
STEPS_IN_A_CALL = 1000
COMPARED_EPOCHS = 5
FRESH_PROCESSES = 5


def notes() -> Iterator[str]:
    """Yield what the figures depend on: who multiplies matrices, with how many threads."""
    if not hasattr(ndl, "jit"):
        yield "needle has no jit yet: its column stays empty"
    if not hasattr(ndl, "scan"):
        yield "needle has no scan yet: that line's column stays empty"
    yield f"Numba {numba.__version__}, {numba.config.NUMBA_NUM_THREADS} threads"
    yield from blas()
    if torch:
        library = "MKL" if torch.backends.mkl.is_available() else "its own BLAS"
        yield f"torch {torch.__version__}: {library}, {torch.get_num_threads()} threads"
    if in_jax.jax:
        yield f"jax {in_jax.jax.__version__}: Eigen, {THREADS} threads"


def blas() -> Iterator[str]:
    """Yield the libraries that multiply matrices for NumPy and SciPy, which Numba calls."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        found = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        yield f"NumPy {np.__version__}: {found['name']} {found['version']}"
        return
    for library in threadpool_info():
        if library["user_api"] == "blas":
            owner = Path(library["filepath"]).parent.name.removesuffix(".libs")
            name, version, threads = (library[key] for key in ("internal_api", "version", "num_threads"))
            yield f"{owner}: {name} {version}, {threads} threads"


def cases() -> Iterator[Case]:
    """Yield the lines of this group."""
    yield network_step((2, 8, 8, 2), batch=10)
    yield many_steps((2, 8, 8, 2), batch=10)
    yield network_step((784, 100, 10), batch=100)
    yield network_step((784, 500, 10), batch=128)
    yield residual_step(inputs=64, hidden=256, blocks=3, batch=32)
    yield residual_step(inputs=784, hidden=100, blocks=3, batch=100)
    yield cnn_step(batch=64)
    yield six_operators(numbers=1_000_000)
    yield softmax(rows=1000, columns=1000)
    yield layer_norm(rows=1000, columns=1000)
    yield attention(batch=8, steps=128, width=64, heads=4)
    yield playground_epochs("circle", (4, 2))
    yield playground_epochs("spiral", (8,) * 6)
    yield from fresh_processes()


def training_case(name: str, needle_step: Callable, function: str, parameters, x, y, lr: float) -> Case:
    """A step of training in each library.

    Parameters
    ----------
    needle_step : callable
        ``needle_step(parameters, lr)`` returns ``step(x, y)``.
    function : str
        What the modules of the other libraries call it.
    lr : float
        The learning rate of the steps whose losses are compared.
    """
    makers = {"eager": needle_step}
    if hasattr(ndl, "jit"):
        makers = {"needle": lambda parameters, lr: ndl.jit(needle_step(parameters, lr)), **makers}
    makers |= {library: getattr(module, function) for library, module in LIBRARIES.items()}

    def run(library: str, lr: float) -> Callable:
        constant = LIBRARIES[library].constant if library in LIBRARIES else tensor
        return partial(makers[library](parameters, lr), constant(x), constant(y))

    return Case(
        name,
        {library: run(library, LEARNING_RATE) for library in makers},
        compared={library: partial(several, run(library, lr), COMPARED_STEPS) for library in makers},
    )


def several(run: Callable, times: int) -> np.ndarray:
    """The numbers that some runs return."""
    return np.array([number(run()) for _ in range(times)])


def number(result) -> float:
    """A loss of any library."""
    return float(result.detach().numpy() if hasattr(result, "detach") else result)


def network_step(sizes: tuple[int, ...], batch: int) -> Case:
    """Forward, softmax loss, backward and update of a ReLU network with layers of these sizes."""
    x, y, weights = training_data(sizes, batch)
    return training_case(step_name(sizes, batch), mlp_step, "mlp_step", weights, x, y, lr=0.01)


def many_steps(sizes: tuple[int, ...], batch: int) -> Case:
    """The same step on one batch after the other; needle takes them all in one call."""
    X, Y, weights = training_data(sizes, STEPS_IN_A_CALL, batch)
    lr = 0.01

    def one_by_one(step: Callable, constant: Callable) -> Callable:
        pairs = [(constant(x), constant(y)) for x, y in zip(X, Y, strict=True)]
        return lambda: np.array([number(step(x, y)) for x, y in pairs])

    contenders = {"eager": one_by_one(mlp_step(weights, lr), tensor)}
    if hasattr(ndl, "scan"):
        contenders = {
            "needle": partial(ndl.scan, ndl.jit(mlp_step(weights, lr)), tensor(X), tensor(Y))
        } | contenders
    for library, module in LIBRARIES.items():
        contenders[library] = one_by_one(module.mlp_step(weights, lr), module.constant)
    if in_jax.jax:
        steps = in_jax.mlp_steps(weights, lr)
        contenders["lax.scan"] = partial(steps, in_jax.constant(X), in_jax.constant(Y))
    name = f"… one of {STEPS_IN_A_CALL:,} in a call"
    return Case(name, contenders, calls=dict.fromkeys(contenders, STEPS_IN_A_CALL))


def residual_step(inputs: int, hidden: int, blocks: int, batch: int) -> Case:
    """A step of the residual network of `needle.apps.mlp_resnet`, without dropout, with Adam."""
    rng = np.random.default_rng(0)
    x, y = rng.random((batch, inputs), dtype="float32"), rng.integers(10, size=batch)

    def model() -> nn.Module:
        return MLPResNet(inputs, hidden, blocks, drop_prob=0.0)

    name = f"step of residual MLP {inputs}-{hidden}, batch {batch}, Adam"
    needle_step = partial(step_of, model, optim.Adam)
    return training_case(name, needle_step, "residual_step", initial(model), x, y, lr=1e-3)


def cnn_step(batch: int) -> Case:
    """A step of a small convolutional network on images of 8 x 8 pixels."""
    rng = np.random.default_rng(0)
    x, y = rng.random((batch, 1, 8, 8), dtype="float32"), rng.integers(10, size=batch)

    def model() -> nn.Module:
        layers: list[nn.Module] = []
        for channels in ((1, 8), (8, 16)):
            layers += [nn.Conv(*channels, 3), nn.ReLU(), nn.MaxPool2d(2)]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(16 * 2 * 2, 10))

    needle_step = partial(step_of, model, optim.SGD)
    return training_case(
        f"step of a CNN, batch {batch}", needle_step, "cnn_step", initial(model), x, y, lr=0.1
    )


def formula(name: str, function: Callable, arrays: list[np.ndarray], in_library: str, *args) -> Case:
    """A function of Tensors without gradients, compiled and not, and what the other libraries call it."""
    tensors = [tensor(array) for array in arrays]
    contenders = {"needle": without_graph(ndl.jit(function), tensors)} if hasattr(ndl, "jit") else {}
    contenders["eager"] = without_graph(function, tensors)
    for library, module in LIBRARIES.items():
        contenders[library] = getattr(module, in_library)(*args)
    return Case(name, contenders)


def without_graph(function: Callable, tensors: list[ndl.Tensor]) -> Callable:
    """A call of the function that no gradient will be asked of."""

    def run() -> ndl.Tensor:
        with ndl.no_grad():
            return function(*tensors)

    return run


def six_operators(numbers: int) -> Case:
    """Six elementwise operators on two large arrays."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=numbers).astype("float32") for _ in range(2)]
    return formula(
        f"tanh(x) * y + exp(-x) * x, {numbers:,} numbers",
        lambda x, y: ndl.tanh(x) * y + ndl.exp(-x) * x,
        arrays,
        "six_operators",
        *arrays,
    )


def softmax(rows: int, columns: int) -> Case:
    """A softmax over each row."""
    x = np.random.default_rng(0).normal(size=(rows, columns)).astype("float32")
    return formula(f"softmax of rows, {rows} x {columns}", ndl.softmax, [x], "softmax", x)


def layer_norm(rows: int, columns: int) -> Case:
    """Layer normalisation of each row."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, columns)).astype("float32")
    layer = nn.LayerNorm1d(columns)
    arrays = [rng.normal(size=columns).astype("float32") for _ in range(2)]
    layer.weight.data, layer.bias.data = map(ndl.Tensor, arrays)
    return formula(f"layer norm of rows, {rows} x {columns}", layer, [x], "layer_norm", x, *arrays)


def attention(batch: int, steps: int, width: int, heads: int) -> Case:
    """Causal self-attention with several heads, forward."""
    np.random.seed(0)
    layer = nn.AttentionLayer(width, heads, width // heads, prenorm=False, bias=True)
    x = np.random.default_rng(0).normal(size=(batch, steps, width)).astype("float32")
    parameters = [p.numpy() for p in layer.parameters()]
    name = f"attention, {heads} heads, width {width}, {steps} steps, batch {batch}"
    return formula(name, layer, [x], "attention", x, parameters, heads)


def playground_epochs(dataset: str, hidden: tuple[int, ...]) -> Case:
    """The playground's trainer: epochs of 25 steps, each with the figures at its end."""
    settings = Settings(dataset=dataset, hidden=hidden)
    makers = {"needle": needle_epoch}
    makers |= {library: module.playground_epoch for library, module in LIBRARIES.items()}
    if in_jax.jax:
        makers["lax.scan"] = in_jax.playground_epoch_scanned
    return Case(
        f"playground, epochs of {dataset} {'-'.join(map(str, hidden))}",
        {library: make(Trainer(settings)) for library, make in makers.items()},
        compared={
            library: partial(several, make(Trainer(settings)), COMPARED_EPOCHS)
            for library, make in makers.items()
        },
        rate=True,
    )


def needle_epoch(trainer: Trainer) -> Callable:
    """An epoch as the trainer learns it; it returns the first of the figures. From the second on, it is
    compiled."""
    is_compiled = False

    def epoch() -> float:
        nonlocal is_compiled
        figures = trainer.epoch()
        if not is_compiled:
            trainer.wait()
            is_compiled = True
        if trainer.trouble:  # then nothing is learned, and nothing would be timed
            raise RuntimeError(trainer.trouble)
        return figures.train_loss

    return epoch


def fresh_processes() -> Iterator[Case]:
    """Yield how long the first call takes: nothing on disk, then all of it there, then in the background."""
    names = (["needle"] if hasattr(ndl, "jit") else []) + (["jax"] if in_jax.jax else [])
    if not names:
        return
    with TemporaryDirectory() as folder:
        caches = Path(folder)
        # A folder with needle's own kernels, and nothing else: what a person has who has used needle before.
        kernels = caches / "kernels"
        in_fresh_process("eager()", kernels)

        def empty(function: str) -> float:
            with TemporaryDirectory(dir=folder) as cache:
                shutil.copytree(kernels, cache, dirs_exist_ok=True)
                return in_fresh_process(f"{function}()", Path(cache))

        def filled(function: str) -> Callable[[], float]:
            cache = caches / function
            shutil.copytree(kernels, cache)
            in_fresh_process(f"{function}()", cache)
            return partial(in_fresh_process, f"{function}()", cache)

        def case(name: str, contenders: dict[str, Callable]) -> Case:
            return Case(name, contenders, stopwatch=True, rounds=FRESH_PROCESSES)

        step = "-".join(map(str, first_calls.SMALL))
        yield case(f"first call of {step}, empty cache", {name: partial(empty, name) for name in names})
        yield case(f"first call of {step}, from disk", {name: filled(name) for name in names})
        if "needle" in names and not first_calls.in_background():
            names.remove("needle")
        hidden = len(first_calls.DEEP) - 2
        name = f"{hidden} layers of {first_calls.DEEP[1]}: the longest call, empty cache"
        yield case(name, {name: partial(empty, f"{name}_deep") for name in names})


def in_fresh_process(call: str, cache: Path | None = None) -> float:
    """What a call of a function of `first_calls` returns in a new interpreter.

    It has its caches in the folder `cache`; without one, where this process has them.
    """
    program = f"from benchmarks import first_calls; print(first_calls.{call})"
    places = {"NUMBA_CACHE_DIR": str(cache), "JAX_COMPILATION_CACHE_DIR": str(cache)} if cache else {}
    environment = {
        **os.environ,
        **places,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    if run.returncode:
        raise RuntimeError(f"{call} in a new process: {run.stderr.strip().rpartition(chr(10))[2]}")
    return float(run.stdout)
