"""The CUDA device: on Numba's simulator, on a GPU if there is one, and what it says where it cannot work."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import pytest

import needle as ndl
from needle.backend_ndarray import device as devices

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(HERE / "stand_in")]
import cuda_suite  # noqa: E402
import on_stand_in  # noqa: E402

HAS_GPU = ndl.cuda().enabled() and "NUMBA_ENABLE_CUDASIM" not in os.environ
WITHOUT = {name: value for name, value in os.environ.items() if name != "NUMBA_ENABLE_CUDASIM"}

simulator = pytest.param({"NUMBA_ENABLE_CUDASIM": "1"}, id="simulator")
gpu = pytest.param({}, id="GPU", marks=pytest.mark.skipif(not HAS_GPU, reason="no GPU here"))

# What takes the simulator half a minute each and runs no kernel of its own: elsewhere it runs.
NOT_SIMULATED = [
    "reduced_axes_stay",
    "logsoftmax_takes_axes",
    "(many_steps and sequences)",
    "(right_passes and 3)",
]
# Operators that run no kernel which others do not run, and longest: they are among MORE_FILES.
SELDOM = ["LSTMSteps-first", "Conv-first", "StandardizeAdjoint-first", "GELU-first", "LogSoftmax-first"]


def python(*command, **environment):
    return subprocess.run(
        [sys.executable, "-W", "error", *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=WITHOUT | environment,
    )


def passing(place, report, files, without, markers="not slow"):
    """Run test files with `cuda()` as the default device; the file of each test that passed."""
    result = python(
        *["-m", "pytest", f"--junitxml={report}", *(["-p", "on_stand_in"] if "STAND_IN" in place else [])],
        *cuda_suite.arguments(files, without, markers),
        **place,
        **cuda_suite.environment(),
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",  # to load them takes a second, and none is needed
    )
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr
    cases = [case for case in ET.parse(report).iter("testcase") if case.find("skipped") is None]
    return [case.get("classname").removeprefix("tests.needle.").replace(".", "/") + ".py" for case in cases]


@pytest.mark.parametrize("place", [simulator, gpu])
def test_arrays_and_operators(place, tmp_path):
    passed = passing(place, tmp_path / "report.xml", cuda_suite.FILES, [*cuda_suite.NEVER, *SELDOM])
    assert set(passed) == {file.partition("::")[0] for file in cuda_suite.FILES}
    assert len(passed) > 100


@pytest.mark.slow
@pytest.mark.parametrize("place", [simulator, gpu])
def test_what_the_device_does_of_its_own(place, tmp_path):
    passed = passing(place, tmp_path / "report.xml", cuda_suite.FILES, cuda_suite.NEVER, markers="slow")
    assert set(passed) >= {"backend_ndarray/under_cuda.py", "compiler/under_cuda.py", "ops/test_operators.py"}


@pytest.mark.slow
@pytest.mark.parametrize("place", [simulator, gpu])
@pytest.mark.parametrize("files", cuda_suite.MORE_FILES.values(), ids=cuda_suite.MORE_FILES)
def test_gradients_and_what_builds_on_them(place, files, tmp_path):
    without = [*cuda_suite.NEVER, *NOT_SIMULATED] if place else cuda_suite.NEVER
    passed = passing(place, tmp_path / "report.xml", files, without)
    assert set(passed) == set(files)
    assert len(passed) > 500


# On the stand-in for a GPU: kernels as they are compiled for one, in blocks of a GPU's size

stand_in = pytest.mark.skipif(
    not on_stand_in.possible(),
    reason="needs numba-cuda with its toolkit, and gcc: pip install 'numba-cuda[cu13]'",
)


@stand_in
@pytest.mark.slow
def test_compiled_kernels_compute_what_numpys_do(tmp_path):
    files = [*cuda_suite.FILES[:1], "backend_ndarray/under_cuda.py", "backend_ndarray/test_ndarray.py"]
    without = [
        *cuda_suite.NEVER,
        "Sin-",
        "Cos-",
    ]  # whose reduction of large angles the stand-in does not know
    passed = passing(on_stand_in.build(), tmp_path / "report.xml", files, without)
    assert set(passed) == {file.partition("::")[0] for file in files}
    assert len(passed) > 250


@stand_in
@pytest.mark.slow
@pytest.mark.parametrize("test", ["memory", "compiling", "graphs", "products", "rows", "training"])
def test_on_the_stand_in(test):
    result = python(
        str(HERE / "stand_in" / f"run_{test}.py"), **on_stand_in.build() | cuda_suite.environment()
    )
    assert result.returncode == 0, result.stderr[-5000:]
    assert result.stderr == ""


# What it says where it cannot work

ASK = "import sys, needle as ndl; print(ndl.cuda().why(), ndl.cuda().enabled(), 'numba' in sys.modules)"


def test_without_a_driver_it_says_so_at_once_and_without_numba():
    result = python(
        "-c", f"import ctypes\ndef CDLL(name): raise OSError(name)\nimport numpy\nctypes.CDLL = CDLL\n{ASK}"
    )
    assert result.stderr == ""
    assert re.fullmatch(
        r"There is no NVIDIA driver here[^.]*NUMBA_ENABLE_CUDASIM=1 [^.]*\. False False\n", result.stdout
    )


def test_the_simulator_is_enabled():
    assert python("-c", ASK, NUMBA_ENABLE_CUDASIM="1").stdout == " True True\n"


@pytest.fixture
def first_kernel(monkeypatch):
    """Sets what happens when a new `CudaDevice` runs its first kernel, with driver and package there."""
    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    monkeypatch.setattr(devices, "_has_driver", lambda: True)
    monkeypatch.setattr(devices, "find_spec", lambda name: object())

    def set_to(try_out):
        monkeypatch.setitem(sys.modules, devices._CUDA_KERNELS, SimpleNamespace(try_out=try_out))

    return set_to


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            RuntimeError("[222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
            "newer than",
        ),
        (RuntimeError("ptxas application ptx input, line 9\nfatal : Unsupported .version 9.5"), "newer than"),
        (RuntimeError("the provided PTX was compiled with an unsupported toolchain."), "newer than"),
        (
            ImportError("Error at driver init: Call to cuInit results in CUDA_ERROR_NO_DEVICE (100)"),
            "no GPU",
        ),
        (
            AttributeError("module 'numpy' has no attribute 'row_stack'"),
            "numba-cuda 0.30.4 and NumPy 2.4.6 do",
        ),
        (
            RuntimeError('"cuda" is an NVIDIA driver library and can only be found via system search.'),
            "no NVIDIA driver",
        ),
        (ModuleNotFoundError("No module named 'cuda.bindings'"), "cuda-bindings is missing"),
        (ImportError("\nCUDA driver library cannot be found.\nEnsure"), "no NVIDIA driver"),
        (
            RuntimeError('Failure finding "libnvrtc.so.13 or libnvrtc.so.12": No such file'),
            "compiles is missing",
        ),
        (
            OSError("libNVVM cannot be found. Do `conda install cudatoolkit`:\nno such file"),
            "compiles is missing",
        ),
        (ZeroDivisionError("a surprise\nof two lines"), "ZeroDivisionError: a surprise of two lines"),
        (RuntimeError(""), "RuntimeError"),
        (RuntimeError("long " * 1000), "RuntimeError: long"),
    ],
    ids=repr,
)
def test_every_failure_is_one_sentence(first_kernel, error, sentence, capfd):
    def try_out():
        raise error

    first_kernel(try_out)
    device = devices.CudaDevice()
    assert not device.enabled()
    why = device.why()
    assert sentence in why
    assert why.endswith(".")
    assert "\n" not in why
    assert len(why) < 400
    with pytest.raises(
        ndl.backend_ndarray.DeviceUnavailable, match=r"cuda\(\) is not available here: .*cpu\(\)"
    ):
        device.zeros(2)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("numba_cuda", r"The package numba-cuda is missing: pip install .*\.$"),
        ("llvmlite", "There is no Numba here"),
    ],
)
def test_the_missing_package_is_named(missing, words, first_kernel, monkeypatch):
    first_kernel(lambda: None)
    monkeypatch.setattr(devices, "find_spec", lambda name: None if name == missing else name)
    assert re.match(words, devices.CudaDevice().why())


def test_the_first_kernel_runs_once_whoever_asks(first_kernel):
    calls, go = [], threading.Event()

    def try_out():
        calls.append(None)
        go.wait(60)

    first_kernel(try_out)
    device = devices.CudaDevice()
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(device.enabled())) for _ in range(3)]
    for thread in threads:
        thread.start()
    go.set()
    for thread in threads:
        thread.join()
    assert answers == [True] * 3
    assert device.why() == ""
    assert len(calls) == 1


def test_the_device_survives_pickle():
    assert pickle.loads(pickle.dumps(ndl.cuda())) is ndl.cuda()
