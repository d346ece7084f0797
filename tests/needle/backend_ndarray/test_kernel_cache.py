"""Compiled kernels on disk, in other processes, after a fork and in many threads at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distributions
from pathlib import Path

import numpy as np
import pytest
from numba.core import event

import needle
from needle import backend_ndarray as nd
from needle.backend_ndarray import ndarray_backend_numba_cpu as backend
from needle.backend_ndarray import numba_kernels
from needle.backend_ndarray.scalar_functions import ScalarFunction

PACKAGE = Path(needle.__file__).parent
fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

#: Prints how many functions were compiled, and the results.
COMPUTE = """
    import sys
    import numpy as np
    from numba.core import event
    from needle import backend_ndarray as nd

    with event.install_recorder("numba:compile") as compiled:
        for dtype in sys.argv[1:]:
            x = nd.array(np.arange(1, 61).reshape(4, 15), dtype)
            print((x * 2 + x).numpy().tolist())
    print(len(compiled.buffer), "compiled", file=sys.stderr)
"""


def expected(dtype="float32"):
    x = np.arange(1, 61, dtype=dtype).reshape(4, 15)
    return f"{(x * 2 + x).tolist()}\n"


def start(code, *arguments, **environment):
    """A new process, on the copy of the package that PYTHONPATH may name."""
    command = [sys.executable, "-P", "-c", textwrap.dedent(code), *arguments]
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment = {"PYTHONPATH": str(PACKAGE.parent)} | {k: str(v) for k, v in environment.items()}
    return subprocess.Popen(
        command, env=kept | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process):
    """What it printed, and what it said on the side."""
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, err
    return out, err


def run(code, *arguments, **environment):
    return finish(start(code, *arguments, **environment))


def compute(*dtypes, **environment):
    """How many functions a new process compiles to get the right results; it complains about nothing."""
    dtypes = dtypes or ("float32",)
    out, err = run(COMPUTE, *dtypes, **environment)
    assert out == "".join(map(expected, dtypes))
    count, word, *rest = err.split()
    assert (word, rest) == ("compiled", []), err
    return int(count)


def stamps(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.nb?")}


def copy_of_the_package(folder):
    """A copy to change or to hide folders from, and the environment in which it is used."""
    shutil.copytree(PACKAGE, folder / "needle", ignore=shutil.ignore_patterns("__pycache__"))
    return {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": 1}


# Other processes


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache that holds what `COMPUTE` needs."""
    folder = tmp_path_factory.mktemp("cache")
    assert compute(NUMBA_CACHE_DIR=folder) > 0
    return folder


def test_a_second_process_compiles_nothing(filled):
    before = stamps(filled)
    assert len(before) >= 2 * 2  # an index and the code of two kernels
    assert compute(NUMBA_CACHE_DIR=filled) == 0
    assert stamps(filled) == before


@pytest.mark.slow
def test_processes_that_fill_the_same_cache_at_once(tmp_path):
    dtypes = ["float32", "float64", "int64", "int32"]
    processes = [start(COMPUTE, dtype, NUMBA_CACHE_DIR=tmp_path) for dtype in dtypes]
    for dtype, (out, _) in zip(dtypes, map(finish, processes), strict=True):
        assert out == expected(dtype)
    assert compute(*dtypes, NUMBA_CACHE_DIR=tmp_path) == 0


@pytest.mark.slow
def test_processes_that_compile_the_same_kernels_at_once(tmp_path):
    for out, _ in map(finish, [start(COMPUTE, "float32", NUMBA_CACHE_DIR=tmp_path) for _ in range(2)]):
        assert out == expected()
    assert compute(NUMBA_CACHE_DIR=tmp_path) == 0


DAMAGES = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_cache_is_mended(filled, tmp_path, damage):
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    (index,) = tmp_path.rglob("*zip_number_last*.nbi")
    (code,) = tmp_path.rglob("*zip_aligned*.nbc")
    damaged = {path: damage(path.read_bytes()) for path in (index, code)}
    for path, data in damaged.items():
        path.write_bytes(data)
    assert compute(NUMBA_CACHE_DIR=tmp_path) > 0
    assert all(path.read_bytes() != data for path, data in damaged.items())
    assert compute(NUMBA_CACHE_DIR=tmp_path) == 0


# Where the package cannot be written


@pytest.fixture
def read_only(tmp_path):
    """A package beside which nothing can be kept, not even by root: a file is where the folder would be."""
    environment = copy_of_the_package(tmp_path)
    (tmp_path / "needle" / "backend_ndarray" / "__pycache__").touch()
    return environment


@pytest.mark.skipif(sys.platform != "linux", reason="the user's cache folder is elsewhere")
@pytest.mark.slow
def test_the_users_cache_folder_is_used_where_the_package_cannot_be_written(read_only, tmp_path):
    read_only |= {"XDG_CACHE_HOME": tmp_path / "home"}
    assert compute(**read_only) > 0
    assert stamps(tmp_path / "home")
    assert compute(**read_only) == 0


@pytest.mark.slow
def test_kernels_work_without_any_folder(read_only):
    nowhere = dict.fromkeys(("XDG_CACHE_HOME", "HOME", "LOCALAPPDATA"), os.devnull)
    assert compute(**read_only, **nowhere) > 0


# Other sources


@pytest.mark.slow
def test_a_change_of_the_table_is_seen(tmp_path):
    environment = copy_of_the_package(tmp_path) | {"NUMBA_CACHE_DIR": tmp_path / "cache"}
    table = tmp_path / "needle" / "backend_ndarray" / "scalar_functions.py"
    code = """
        from needle import backend_ndarray as nd
        print(nd.elementwise("sqrt", nd.array([16.0])).numpy())
    """
    assert run(code, **environment)[0] == "[4.]\n"
    written, row = table.read_text(), "lambda x: math.sqrt(x)"
    assert row in written
    table.write_text(written.replace(row, row + " + 1"))
    assert run(code, **environment)[0] == "[5.]\n"
    table.write_text(written)
    assert run(code, **environment)[0] == "[4.]\n"


@pytest.mark.slow
def test_kernels_that_different_processes_compiled_are_not_mixed_up(tmp_path):
    """Each process compiles one kernel, as its first: Numba gives what it calls the same number."""
    code = """
        import sys
        import numpy as np
        from needle import backend_ndarray as nd

        a = nd.array(np.arange(12).reshape(3, 4))
        for name in sys.argv[1:]:
            print(nd.elementwise(name, a, a[1:2]).numpy()[2].tolist())
    """
    names = ("add", "multiply", "maximum")
    single = [run(code, name, NUMBA_CACHE_DIR=tmp_path)[0] for name in names]
    assert single == ["[12.0, 14.0, 16.0, 18.0]\n", "[32.0, 45.0, 60.0, 77.0]\n", "[8.0, 9.0, 10.0, 11.0]\n"]
    assert run(code, *names, NUMBA_CACHE_DIR=tmp_path)[0] == "".join(single)


def test_rows_of_ones_own_are_not_mixed_up():
    """What has the same name may mean something else, in this process or in the next."""
    a, out = nd.array([2.0, 3.0], device=nd.cpu()), nd.empty((2,), device=nd.cpu())
    for python, expected in [(lambda x: x * x, [4, 9]), (lambda x: x + x, [4, 6])]:
        backend.map(ScalarFunction("mine", python, np.square))(a._handle, out._handle)
        assert out.numpy().tolist() == expected
    backend.map(ScalarFunction("sqrt", lambda x: x, np.sqrt))(a._handle, out._handle)
    assert out.numpy().tolist() == [2, 3]
    for number in (5, 6):  # as the cell of a notebook that is run again
        scope = {"__name__": __name__}
        exec(f"def template(a, out):\n    for i in range(out.size):\n        out[i] = a[i] + {number}", scope)
        numba_kernels.Kernel(scope["template"], "aa")[a.dtype](a._handle.buffer, out._handle.buffer)
        assert out.numpy().tolist() == [2 + number, 3 + number]


# Forks and threads

LARGE = """
    import os, sys, threading
    import numpy as np
    from needle import backend_ndarray as nd
    from needle.backend_ndarray import numba_kernels

    numba_kernels._threads_work = True
    a = nd.array(np.ones((600, 500)))

    def work(times=10):
        for _ in range(times):
            assert (a + a).sum().numpy() == 600_000
            assert (a * 2.0).sum(0).numpy().tolist() == [1200.0] * 500
            assert (a.permute((1, 0)) + 1).compact().numpy().sum() == 600_000

    work(1)
"""
HAS_TBB = any(distribution.name == "tbb" for distribution in distributions())
layers = pytest.mark.parametrize("layer", ["workqueue", "omp", *["tbb"] * HAS_TBB])


def run_with_threads(code, layer):
    if layer == "omp":
        pytest.importorskip("numba.np.ufunc.omppool", exc_type=ImportError)
    code = textwrap.dedent(LARGE) + textwrap.dedent(code)
    return run(code, NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS=2)[0]


if HAS_TBB:

    @pytest.mark.slow
    @pytest.mark.parametrize("order", ["torch, needle", "needle, torch"])
    def test_threads_sleep_although_torch_has_loaded_openmp(order, torch):
        """OpenMP's threads would keep the processors busy, so Numba must not use them, in either order."""
        code = f"""
            import sys, {order}
            import numpy as np

            x = needle.Tensor(np.ones((600, 600)))
            x + x
            from numba import threading_layer
            print(threading_layer(), "numba.np.ufunc.omppool" in sys.modules)
        """
        environment = {
            "NUMBA_NUM_THREADS": 2,
            "NUMBA_THREADING_LAYER": "default",
            "OMP_WAIT_POLICY": "active",
        }
        assert run(code, **environment)[0] == "tbb False\n"


@pytest.mark.slow
@layers
def test_many_threads_with_large_arrays(layer):
    code = """
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        from numba.np.ufunc.parallel import threading_layer
        print(threading_layer())
    """
    assert run_with_threads(code, layer) == f"{layer}\n"


@pytest.mark.slow
@fork
@layers
def test_forks_after_threads(layer):
    code = """
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        child = os.fork()
        if child == 0:
            work(2)
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        with ProcessPoolExecutor(2, get_context("fork")) as pool:
            print(list(pool.map(work, [1, 2, 3])))
        work(2)
    """
    assert run_with_threads(code, layer) == "7\n[None, None, None]\n"


@pytest.mark.slow
@fork
def test_a_fork_while_a_kernel_is_compiled(tmp_path):
    """The child must not wait for a lock that a thread of its parent held."""
    code = """
        import os, threading
        from needle import backend_ndarray as nd
        from needle.backend_ndarray import numba_kernels

        a = nd.array([1.0, 2.0])
        a - 1
        begun, compiled = threading.Event(), numba_kernels.Kernel._compiled

        def announced(*arguments):
            begun.set()
            return compiled(*arguments)

        numba_kernels.Kernel._compiled = announced
        thread = threading.Thread(target=a.tanh)
        thread.start()
        begun.wait()
        child = os.fork()
        if child == 0:
            os._exit(int((a + 1).sum().numpy()))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert run(code, NUMBA_CACHE_DIR=tmp_path)[0] == "5\n"


def test_threads_that_need_the_same_kernel_compile_it_once():
    kernel = numba_kernels.Kernel(backend.map_aligned, "aa", ScalarFunction("own", lambda x: x - 3, None))
    barrier = threading.Barrier(6)

    def ask(_):
        barrier.wait()
        return kernel[np.dtype("float32")]

    with event.install_recorder("numba:compile") as compiled, ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(ask, range(6)))) == 1
    names = [
        recorded.data["dispatcher"].py_func.__name__ for _, recorded in compiled.buffer if recorded.is_start
    ]
    assert names.count("map_aligned_own_float32") == 1


def test_needle_comes_without_numba():
    code = """
        import sys
        import needle as ndl

        x = ndl.Tensor([1.0, 2.0], device=ndl.cpu_numpy())
        (x * x).sum().backward()
        print("numba" in sys.modules, end=" ")
        ndl.Tensor([1.0])
        print("numba" in sys.modules)
    """
    assert run(code)[0] == "False True\n"


def test_kernels_run_where_compiling_is_switched_off():
    program = (
        "import needle as ndl; x = ndl.Tensor([1.0, 2.0]); (x * x).sum().backward(); print(x.grad, x + x)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    )
    assert result.stdout == "needle.Tensor([2. 4.]) needle.Tensor([2. 4.])\n", result.stderr
