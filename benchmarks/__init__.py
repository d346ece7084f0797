"""How fast needle is beside NumPy, and torch where it is installed: ``python -m benchmarks [group …]``."""

import os

# One thread for every library, said before any of them is imported: pools of threads that wait for work would
# take the processor from whoever's turn it is.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(_variable, "1")
