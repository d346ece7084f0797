"""``python -m benchmarks [group …]`` times the groups (default: all) and prints their tables.

The environment variable THREADS says how many threads each library may use. The groups:
"""

from __future__ import annotations

import gc
import os
import platform
import sys

import numpy as np

import needle as ndl

from . import THREADS, arrays, compiler, cuda, drawings, imports, layers, orders, training
from .timing import ROUNDS, Case, torch

GROUPS = {
    "imports": imports,
    "arrays": arrays,
    "training": training,
    "orders": orders,
    "layers": layers,
    "compiler": compiler,
    "drawings": drawings,
    "cuda": cuda,
}
RIVALS = ("NumPy", "torch")


def main(names: list[str]) -> str | None:
    """Print the table of the named groups line by line; return what is wrong with the names."""
    if {"-h", "--help"} & {*names}:
        print(__doc__)
        for name, group in GROUPS.items():
            print(f"  {name:10} {group.__doc__.partition(chr(10))[0]}")
        return None
    if unknown := [name for name in names if name not in GROUPS]:
        return f"no group {', '.join(unknown)}; there are {', '.join(GROUPS)}"
    print(f"Python {platform.python_version()}, NumPy {np.__version__}", end=", ")
    print(f"torch {torch.__version__}" if torch else "no torch", f"{os.cpu_count()} CPUs", sep=", ")
    print(
        f"needle on {ndl.default_device()}; threads for each: {THREADS}; medians of {ROUNDS} rounds; "
        "2.0x: twice as long"
    )
    # What is imported is no garbage. To look at all of torch's objects again and again would take longer than
    # what is timed, and only because torch is here to be compared with.
    gc.collect()
    gc.freeze()
    for name in names or GROUPS:
        group = GROUPS[name]
        if reason := getattr(group, "why_not", str)():
            print(f"\n{name}: {reason}")
            continue
        rivals, best_of = getattr(group, "RIVALS", RIVALS), getattr(group, "BEST_OF", ())
        columns = ["needle"]
        for rival in rivals:
            columns += [rival] if best_of else [rival, f"of {rival}"]
        print(f"\n{name:48}", *(f"{column:>9}" for column in columns + ["of best"] * bool(best_of)))
        for note in getattr(group, "notes", tuple)():
            print(f"  {note}")
        for case in group.cases():
            print(f"{case.name:48}", end=" ", flush=True)
            case.run()
            figures = [figure(case, "needle")]
            for rival in rivals:
                figures += (
                    [figure(case, rival)] if best_of else [figure(case, rival), ratio(case.ratio(rival))]
                )
            if best_of:
                figures.append(ratio(case.ratio(case.fastest(best_of))))
            print(" ".join([*(f"{text:>9}" for text in figures), case.remark()]).rstrip(), flush=True)
    return None


def figure(case: Case, name: str) -> str:
    """What a contender needed as a person reads it: ``12.3 µs``, or ``81,000 /s``."""
    seconds = case.seconds(name)
    if seconds is None:
        return "-"
    if case.rate:
        return f"{1 / seconds:,.0f} /s"
    unit, scale = next((pair for pair in UNITS if seconds >= 1 / pair[1]), UNITS[-1])
    return f"{seconds * scale:.3g} {unit}"


UNITS = (("s", 1), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9))


def ratio(value: float | None) -> str:
    """A ratio as a person reads it: ``2.0x``."""
    return "-" if value is None else f"{value:.2g}x" if value < 100 else f"{value:.0f}x"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
