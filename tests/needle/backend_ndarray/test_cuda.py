"""The CUDA device: on Numba's simulator, on a card if there is one, and what it says where it cannot work."""

from __future__ import annotations

import json
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
CARD = ndl.cuda().enabled() and "NUMBA_ENABLE_CUDASIM" not in os.environ
WITHOUT = {name: value for name, value in os.environ.items() if name != "NUMBA_ENABLE_CUDASIM"}

places = pytest.mark.parametrize(
    "place",
    [
        pytest.param({"NUMBA_ENABLE_CUDASIM": "1"}, id="simulator"),
        pytest.param({}, id="card", marks=pytest.mark.skipif(not CARD, reason="no GPU here")),
    ],
)

# Each operator once, what the device does of its own, and compiled programs.
FILES = [
    "ops/test_operators.py::test_first_and_second_derivatives_are_those_on_numpy",
    "backend_ndarray/under_cuda.py",
    "backend_ndarray/test_device.py",
    "compiler/under_cuda.py",
]
# All that operators do, and all that arrays, the walk backward and networks do.
MORE_FILES = {
    "operators": [
        "ops/test_indexing.py",
        "ops/test_special_values.py",
        "ops/test_operators.py",
        "test_gradcheck.py",
    ],
    "all else": [
        "backend_ndarray/test_ndarray.py",
        "test_course_faults.py",
        "init/test_init.py",
        "nn/test_modules.py",
        "test_writes.py",
        "backend_ndarray/test_views_and_handles.py",
        "test_tensor.py",
        "test_autograd.py",
        "nn/test_layers.py",
        "apps/test_training_memory.py",
    ],
}
# What is about the default device's name or the CPU's own kernels, and what takes the simulator minutes.
NEVER = ["test_names", "matmul_of_tiles", "ewise_or_scalar", "text_and_truth", "mixed_devices_are_named"]
NEVER += ["central_differences", "those_of_torch", "many_threads", "random_graphs", "100_000", "mnist"]
# What takes the simulator half a minute each and runs no kernel of its own: only a card runs these.
ON_A_CARD = [
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
        *["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "cuda_by_default", f"--junitxml={report}"],
        *["-m", markers, "-k", " and ".join(f"not {name}" for name in without)],
        *[str(ROOT / "tests" / "needle" / name) for name in files],
        **place,
        PYTHONPATH=os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")])),
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",  # to load them takes a second, and none is needed
    )
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr
    cases = [case for case in ET.parse(report).iter("testcase") if case.find("skipped") is None]
    return [case.get("classname").removeprefix("tests.needle.").replace(".", "/") + ".py" for case in cases]


@places
def test_arrays_and_operators(place, tmp_path):
    passed = passing(place, tmp_path / "report.xml", FILES, without=[*NEVER, *SELDOM])
    assert set(passed) == {file.partition("::")[0] for file in FILES}
    assert len(passed) > 100


@pytest.mark.slow
@places
def test_what_the_device_does_of_its_own(place, tmp_path):
    passed = passing(place, tmp_path / "report.xml", FILES, without=NEVER, markers="slow")
    assert set(passed) >= {"backend_ndarray/under_cuda.py", "compiler/under_cuda.py", "ops/test_operators.py"}


@pytest.mark.slow
@places
@pytest.mark.parametrize("files", MORE_FILES.values(), ids=MORE_FILES)
def test_gradients_and_what_builds_on_them(place, files, tmp_path):
    without = [*NEVER, *ON_A_CARD] if place else NEVER
    passed = passing(place, tmp_path / "report.xml", files, without)
    assert set(passed) == set(files)
    assert len(passed) > 500


@pytest.mark.slow
def test_blocks_of_a_cards_size():
    result = python(str(HERE / "cuda_blocks.py"), NUMBA_ENABLE_CUDASIM="1")
    assert result.returncode == 0, result.stderr


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


def test_numbas_own_reason_is_passed_on():
    patch = "from needle.backend_ndarray import device as d; d._has_driver = d.find_spec = lambda *a: True"
    result = python("-c", f"{patch}\n{ASK}", NUMBA_DISABLE_CUDA="1")
    assert result.stderr == ""
    assert re.fullmatch(r"CudaSupportError: [^\n]*NUMBA_DISABLE_CUDA=1[^\n]*\. False True\n", result.stdout)


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


def test_the_missing_package_is_named(first_kernel, monkeypatch):
    first_kernel(lambda: None)
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    assert re.match(r"The package numba-cuda is missing: pip install .*\.$", devices.CudaDevice().why())


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


# Machine code


@pytest.mark.slow
@pytest.mark.parametrize("capability", ["7.5", "9.0"])
def test_every_kernel_compiles_for_a_card(capability):
    result = python(str(HERE / "cuda_kernels.py"), capability)
    if result.returncode == 3:
        pytest.skip(f"no GPU toolchain here: {result.stdout.splitlines()[-1]}")
    assert result.returncode == 0, result.stderr
    kernels = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(kernels) > 300
    for kernel in kernels:
        float32_only = "float64" not in kernel["types"] and kernel["types"].startswith("(Array(float32")
        if float32_only and kernel["row"] not in ("sin", "cos"):  # of large angles, in CUDA's own library
            assert ".f64" not in kernel["ptx"], kernel
        if "product" in kernel["kernel"]:
            assert "__local_depot" not in kernel["ptx"], kernel  # totals are in registers
