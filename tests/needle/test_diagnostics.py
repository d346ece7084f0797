"""What `diagnose` says of kernels whose machine code is known, and that nothing is disturbed by asking."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import njit, prange

import needle as ndl
from needle.backend_ndarray import cpu
from needle.diagnostics import _vectors

THREADS = numba.get_num_threads()
PAGE = Path(__file__).parents[2] / "docs" / "numba.md"


@pytest.fixture
def threads(monkeypatch):
    """The device uses threads, if Numba has only one."""
    monkeypatch.setattr("needle.backend_ndarray.numba_kernels._threads_work", True)


def shared(*lines: str) -> str:
    """The verdict on loops in these lines."""
    if THREADS == 1:
        return "1: Numba has no more here"
    return f"{THREADS} share the loop{'s' * (len(lines) > 1)} `{'`, `'.join(lines)}`"


# Needle's own kernels


@pytest.mark.parametrize("name", ["add", "exp"])
def test_a_kernel_that_is_arithmetic_becomes_vector_instructions(name):
    (kernel,) = ndl.diagnose(name, *[(100,)] * (1 + (name == "add"))).kernels
    assert kernel.name == f"{'zip' if name == 'add' else 'map'}_aligned({name})"
    assert kernel.types == "float32"
    assert kernel.lanes >= 4
    assert kernel.vectors == f"{kernel.lanes} float32 at once ({32 * kernel.lanes}-bit vectors)"


def test_half_as_many_float64_fit_in():
    (single,), (double,) = (
        ndl.diagnose("add", (100,), (100,), dtype=dtype).kernels for dtype in ("float32", "float64")
    )
    assert double.types == "float64"
    assert double.lanes * 2 == single.lanes


# Whatever vector form a row of the table has, these are calls of the C library: LLVM writes the loop over
# `sin` with vectors, and calls `sinf` for each number of them in the end.
@njit
def waves(x, out):
    for i in range(x.size):
        out[i] = np.sin(x[i])


@njit
def powers(x, out):
    for i in range(x.size):
        out[i] = x[i] ** out[i]


@pytest.mark.parametrize(("function", "name"), [(waves, "sin"), (powers, "pow")])
def test_a_call_for_each_number_is_no_vector_instruction(function, name):
    (kernel,) = ndl.diagnose(function, (100,), (100,)).kernels
    assert kernel.lanes == 1
    assert kernel.vectors == f"one number at a time: each needs a call of {name}"


def test_a_small_array_has_one_thread(threads):
    diagnosis = ndl.diagnose("add", (10,), (10,))
    (kernel,) = diagnosis.kernels
    assert kernel.threads == 1
    assert kernel.verdict == "1: needle asks for more from 262144 numbers on"
    assert diagnosis.nanoseconds > 0
    assert diagnosis.ratio == diagnosis.nanoseconds / diagnosis.reference_nanoseconds


def test_a_large_array_is_divided(threads):
    (kernel,) = ndl.diagnose("add", (600, 600), (600, 600)).kernels
    assert kernel.threads == THREADS
    assert kernel.verdict == shared("for i in prange(out.size)")
    assert kernel.lanes >= 4
    assert kernel.compile_seconds > 0


def test_all_kernels_of_a_function_in_the_order_of_their_calls():
    diagnosis = ndl.diagnose(lambda a, b: ndl.exp(a + b.transpose()), (8, 9), (9, 8))
    strided, aligned = diagnosis.kernels
    assert (strided.name, aligned.name) == ("zip_strided(add)", "map_aligned(exp)")
    assert diagnosis.arguments == "(8, 9), (9, 8), float32"


def test_what_numpy_does_is_no_kernel():
    diagnosis = ndl.diagnose(ndl.ops.matmul, (64, 64), (64, 64))
    assert diagnosis.kernels == ()
    assert "BLAS" in diagnosis.notes[0]


def test_arrays_that_a_function_brings_along_stay_on_their_device():
    diagnosis = ndl.diagnose(lambda a: a + ndl.ones(3), (3,))
    assert len(diagnosis.kernels) == 1
    assert diagnosis.ratio is None
    assert diagnosis.notes[0].startswith("Not compared with NumPy: add: operands are on")


def test_lazy_mode_does_not_matter(mode):
    assert [kernel.name for kernel in ndl.diagnose("exp", (3,)).kernels] == ["map_aligned(exp)"]


# Functions compiled by oneself


@njit(parallel=True)
def scaled(x, y):
    for i in prange(x.size):
        y[i] = 2 * x[i]


@njit(parallel=True)
def race(x, y):
    for i in prange(x.size):
        y[:] += x[i]


@njit(parallel=True)
def fused(x, y):
    z = x * y + 1
    return np.sum(np.exp(z))


@njit(parallel=True)
def nested(x, out):
    for i in prange(x.shape[0]):
        row = np.empty(4)
        for j in prange(x.shape[1]):
            row[0] = x[i, j]
        out[i] = row[0]


@njit(parallel=True)
def first(x):
    return x[0]


@njit(parallel=True)
def by_threads(x):
    for i in prange(x.size):
        x[i] = numba.get_num_threads()


@pytest.mark.parametrize(
    ("function", "shapes", "expected"),
    [
        (scaled, [(100,), (100,)], shared("for i in prange(x.size)")),
        pytest.param(race, [(100,), (2,)], shared("for i in prange(x.size)"), marks=pytest.mark.slow),
        pytest.param(
            *(fused, [(100,), (100,)], shared("z = x * y + 1", "return np.sum(np.exp(z))")),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(nested, [(9, 5), (9,)], shared("for i in prange(x.shape[0])")), marks=pytest.mark.slow
        ),
    ],
)
def test_the_parallel_report(function, shapes, expected):
    diagnosis = ndl.diagnose(function, *shapes)
    (kernel,) = diagnosis.kernels
    assert kernel.verdict == expected
    assert kernel.threads == THREADS
    assert kernel.name == diagnosis.name == function.__name__
    assert kernel.types.startswith("array(float32, ")
    assert diagnosis.reference == "plain Python"
    assert diagnosis.reference_nanoseconds > 0


@pytest.mark.skipif(THREADS == 1, reason="says so first")
def test_nothing_to_divide():
    (kernel,) = ndl.diagnose(first, (3,)).kernels
    assert kernel.threads == 1
    assert kernel.verdict.startswith("1: Numba found no loop to divide")


def test_a_function_that_was_not_asked_to_be_parallel():
    (kernel,) = ndl.diagnose(waves, (100_000,), (100_000,)).kernels
    assert (kernel.threads, kernel.verdict) == (1, "1: it was compiled without parallel=True")


@pytest.mark.slow
def test_threads_that_disagree_with_one_are_told():
    notes = ndl.diagnose(by_threads, (100,)).notes
    assert any("race" in note for note in notes) == (THREADS > 1)
    assert numba.get_num_threads() == THREADS


# How it is said


def test_the_report_has_a_line_for_each_thing():
    diagnosis = ndl.diagnose("sin", (100,))
    assert repr(diagnosis) == str(diagnosis)
    assert skeleton(str(diagnosis)) == ["sin of", "map_aligned(sin),", "vectors", "threads", "time:"]


@pytest.mark.slow
def test_the_documentation_shows_such_a_report():
    ((call, shown),) = re.findall(r">>> ndl\.diagnose\((.*?)\)\n(.*?)\n```", PAGE.read_text(), re.DOTALL)
    assert call == '"exp", (1000, 1000)'
    assert skeleton(shown) == skeleton(str(ndl.diagnose("exp", (1000, 1000))))


def skeleton(report: str) -> list[str]:
    title, *lines = report.splitlines()
    return [title.partition("(")[0].strip(), *(line.split()[0] for line in lines)]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["expp", (3,)], ValueError, r"no operator or scalar function 'expp', but abs, add"),
        (["exp"], TypeError, r"needs at least one shape"),
        (["exp", (3,), "float32"], TypeError, r"needs shapes \(tuples\) and numbers, got str"),
        ([3, (3,)], TypeError, r"needs the name of an operator.* got int"),
        ([ndl.ops.matmul, (3, 4), (3, 4)], ValueError, r"inner sizes 4 and 3 differ"),
    ],
)
def test_mistakes(arguments, error, message):
    with pytest.raises(error, match=message):
        ndl.diagnose(*arguments)


def test_a_function_may_return_several_tensors():
    (kernel,) = ndl.diagnose(lambda x: ndl.split(ndl.exp(x), 0), (2, 3)).kernels
    assert kernel.name == "map_aligned(exp)"


def test_other_data_types():
    with pytest.raises(TypeError, match="int32 must be float32 or float64"):
        ndl.diagnose("exp", (3,), dtype="int32")


# What asking leaves behind


def test_other_threads_compute_meanwhile():
    x = np.linspace(-1, 1, 100, dtype="float32")
    stop, wrong = threading.Event(), []

    def compute():
        tensor = ndl.Tensor(x)
        while not stop.wait(0.001):  # without a pause it keeps the compiler from the interpreter for long
            if not np.array_equal((tensor * tensor).numpy(), x * x):
                wrong.append("a result")

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        names = [kernel.name for kernel in ndl.diagnose("exp", (100,)).kernels]
    finally:
        stop.set()
        thread.join()
    assert names == ["map_aligned(exp)"]  # not the other thread's
    assert wrong == []


def test_versions_are_put_back():
    Kernel = cpu().Kernel
    x = ndl.Tensor(np.ones(3))
    x + x
    with Kernel.watch() as called:
        x + x
        x + x
    (((_, dtype), kernel),) = called.items()
    assert dtype == np.float32
    assert kernel[dtype].__name__ == "zip_aligned_add_float32"
    called.clear()
    x + x
    assert called == {}


# Reading LLVM's code

CODE = """
define void @f(ptr %a) {{
entry:
  {before}
  br label %{label}

{label}:                                      ; preds = %entry
  %2 = {operation}
  br i1 %3, label %rest, label %{label}

rest:
  %5 = fadd float %4, %4
  br i1 %6, label %done, label %rest
}}
"""


@pytest.mark.parametrize(
    ("operation", "lanes", "words"),
    [
        ("fadd <8 x float> %1, %1", 8, "8 float32 at once (256-bit vectors)"),
        ("fmul <2 x double> %1, %1", 2, "2 float64 at once (128-bit vectors)"),
        ("call <8 x float> @llvm.sqrt.v8f32(<8 x float> %1)", 8, "8 float32 at once (256-bit vectors)"),
        ("call <8 x float> @__svml_sinf8(<8 x float> %1)", 8, "8 float32 at once (256-bit vectors)"),
        (
            "call <8 x float> @llvm.sin.v8f32(<8 x float> %1)",
            1,
            "one number at a time: each needs a call of sin",
        ),
        ("call double @log1p(double %1)", 1, "one number at a time: each needs a call of log1p"),
        ("fadd float %1, %1", 1, "one number at a time"),
    ],
)
def test_a_vectorised_loop_is_read(operation, lanes, words):
    assert _vectors(CODE.format(operation=operation, label="vector.body", before="")) == (lanes, words)


def test_vectors_outside_of_a_vectorised_loop_are_none():
    code = CODE.format(operation="fadd float %1, %1", label="loop", before="%1 = fadd <2 x float> %0, %0")
    assert _vectors(code) == (1, "one number at a time")


def test_a_function_that_writes_beyond_its_array_gets_an_error_before_it_can():
    @numba.njit(parallel=True)
    def copied(a, out):
        for i in numba.prange(a.size):
            out[i] = a[i]

    with pytest.raises(IndexError, match="out of bounds"):
        ndl.diagnose(copied, (1_000_000,), (10,))


def test_a_ufunc_gets_an_error_with_the_way_out():
    for function in (np.exp, numba.vectorize(lambda x: x + 1)):
        with pytest.raises(TypeError, match=r"'exp'.*numba\.njit.* ufunc"):
            ndl.diagnose(function, (10,))
