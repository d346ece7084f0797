"""What runs on a CUDA device: on Numba's simulator and on the stand-in (`test_cuda.py`), and on a GPU.

``make test-cuda``, or ``python tests/needle/backend_ndarray/cuda_suite.py``, runs all of it on a GPU, and
what only a GPU can, and says on which one.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]

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


def arguments(files: list[str], without: list[str], markers: str) -> list[str]:
    """The arguments of pytest that run test files with `cuda()` as the default device."""
    return [
        *["-q", "-p", "no:cacheprovider", "-p", "cuda_by_default", "-m", markers],
        *["-k", " and ".join(f"not {name}" for name in without)],
        *[str(ROOT / "tests" / "needle" / name) for name in files],
    ]


def environment() -> dict[str, str]:
    """The variables with which Python finds the plugins of these tests."""
    path = os.pathsep.join(filter(None, [str(HERE), str(HERE / "stand_in"), os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path}


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"


def main() -> None:
    """Run everything on the GPU of this machine, in as many processes as pytest-xdist finds processors."""
    sys.path.insert(0, str(ROOT))
    import needle as ndl

    why = ndl.cuda().why() or ("Numba's simulator is no GPU." if ndl.cuda().SIMULATED else "")
    if why:
        sys.exit(f"There is nothing to test: {why}")
    packages = ["numba", "numba-cuda", "numpy", "nvidia-cublas", "nvidia-cublas-cu12"]
    print(
        f"GPU: {ndl.cuda().about()}",
        f"Python {platform.python_version()}",
        *map(_version, packages),
        sep=", ",
    )
    print(ndl.cuda().why_not_cublas() or "cuBLAS multiplies matrices.", flush=True)
    spread = ["-n", "8"] if _version("pytest-xdist")[:3] != "no " else []
    files = [*FILES[1:], *(file for group in MORE_FILES.values() for file in group)]
    # Large arrays come first, alone: eight processes at once would not leave them the memory.
    for names, options in ((["backend_ndarray/on_gpu.py"], ["-rA"]), (files, spread)):
        command = [
            sys.executable,
            "-m",
            "pytest",
            *arguments(names, NEVER, ""),
            "-p",
            "no:benchmark",
            *options,
        ]
        result = subprocess.run([*command, *sys.argv[1:]], cwd=ROOT, env=os.environ | environment())
        if result.returncode:
            sys.exit(result.returncode)


if __name__ == "__main__":
    main()
