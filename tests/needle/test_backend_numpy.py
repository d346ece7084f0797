"""``NEEDLE_BACKEND=np``: needle on NumPy's own arrays, as the course's first homework uses it."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NEEDLE = ROOT / "needle"

# Whatever does not depend on the array library, and what holds for NumPy's alone.
FILES = [
    "under_numpy.py",
    "ops/test_operators.py",
    "ops/test_indexing.py",
    "ops/test_special_values.py",
    "test_tensor.py",
    "test_autograd.py",
    "test_writes.py",
    "test_copies.py",
    "test_lazy.py",
    "test_graph_memory.py",
    "test_mistakes.py",
    "init/test_init.py",
    "nn/test_modules.py",
    "nn/test_layers.py",
    "nn/test_sequence.py",
    "nn/test_transformer.py",
    "nn/test_encoder_decoder.py",
    "optim/test_optim.py",
    "test_gradcheck.py",
    "apps/test_simple_ml.py",
    "test_course_faults.py",
    "test_course_names.py",
    "data/test_loading.py",
    "data/test_files.py",
    "test_serialization.py",
]
# What takes long and is the same with any arrays.
SLOW = ["central_differences", "random_graphs", "100_000", "mnist"]


def run(*command, **environment):
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"NEEDLE_BACKEND": "np"} | environment,
    )


@pytest.mark.slow
def test_the_tests_pass_on_numpys_arrays(tmp_path):
    report = tmp_path / "report.xml"
    result = run(
        *["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"],
        *["-k", " and ".join(f"not {name}" for name in SLOW)],
        *[str(HERE / name) for name in FILES],
    )
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr
    (suite,) = ET.parse(report).iter("testsuite")
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")
    run_in = {
        case.get("classname").removeprefix("tests.needle.").replace(".", "/") + ".py"
        for case in suite.iter("testcase")
        if case.find("skipped") is None
    }
    assert run_in == set(FILES)
    assert int(suite.get("tests")) - int(suite.get("skipped")) > 1500


@pytest.mark.parametrize("backend", ["np", "nd"])
@pytest.mark.parametrize(
    ("folder", "module"),
    [(NEEDLE, "apps.simple_ml"), (NEEDLE / "apps", "simple_ml")],
    ids=["apps", "simple_ml"],
)
def test_apps_are_found_where_the_course_looks_for_them(folder, module, backend):
    code = f"""
import sys
sys.path.append({str(folder)!r})
import numpy as np
import needle as ndl
from {module} import loss_err, nn_epoch, parse_mnist, softmax_loss
loss = softmax_loss(ndl.Tensor(np.zeros((2, 4))), ndl.init.one_hot(4, [1, 2]))
np.testing.assert_allclose(loss.numpy(), np.log(4), rtol=1e-6)
print(ndl.BACKEND)
"""
    result = run("-W", "error", "-c", code, NEEDLE_BACKEND=backend)
    assert (result.returncode, result.stdout.strip()) == (0, backend), result.stderr


def test_another_backend_is_refused():
    result = run("-c", "import needle", NEEDLE_BACKEND="tf")
    assert result.returncode != 0
    assert "NEEDLE_BACKEND=tf: there is no such array library; use nd (the default) or np" in result.stderr
