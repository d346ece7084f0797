"""How fast needle is beside NumPy, torch and jax, where they are: ``python -m benchmarks [group …]``."""

import os

#: How many threads each library may use: all processors, or what the environment variable THREADS says.
THREADS = int(os.environ.get("THREADS") or os.cpu_count() or 1)

# Said before any of the libraries is imported.
for _variable in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NPROC",  # what jax reads
):
    os.environ[_variable] = str(THREADS)

# jax would take three quarters of a GPU's memory, and leave the others too little.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
