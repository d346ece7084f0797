"""What a lecture shows in a browser, and does not show in the same words here: by lecture and cell, with why.

A cell that the lecture runs in another way there says so first (see ``without_numba`` in its TOML file). That
sentence is no difference, but what follows it may be.
"""

from __future__ import annotations

from importlib.util import find_spec

#: These always differ.
DIFFERENT = {
    "01": {"spread-hunt": "Hypothesis is an older one there, and tries other numbers"},
    "06": {"lazy-ask-code": "the device has another name"},
    "11": {"gigabyte": "its arrays are smaller"},
    "12": {"train-code": "it learns from fewer points"},
    "13": {"gpu-code": "it is Numba that is missing, and not the GPU"},
    "14": {
        "hook-code": "the last bits differ, and steps that are too long make much of them",
        "rescue-code": "the last bits differ, and steps that are too long make much of them",
    },
    "17": dict.fromkeys(
        ["first-question", "verse", "drag-temperature", "quotation"], "it has learned for fewer epochs"
    ),
    "19": {
        "layer": "loops are written, not drawn",
        "passes": "the compiler writes lines of NumPy",
        "step-code": "the compiler writes lines of NumPy",
    },
    "20": {
        "team-code": "the workers are played one after another",
        "machine-code": "such workers save no time",
        "pay-off-code": "it learns for fewer steps",
    },
}

#: These differ where a module is installed here that no browser has.
DIFFERENT_WITH = {
    "torch": {
        "10": [
            "mean-beside",
            "square",
            "twice",
            "in-parts",
            "matrices-beside",
            "vector-jacobian",
            "seven-compare",
            "loop-beside",
        ],
        "18": ["second-way-code"],
        "19": ["rivals-code"],
    },
    "mpi4py": {"20": ["library-code", "norm-code"]},
}

#: These show what was measured.
MAY_DIFFER = {"19": ["hook-code"]}


def differences(number: str) -> dict[str, str]:
    """The cells of a lecture that differ, each with the reason."""
    found = dict(DIFFERENT.get(number, {}))
    for module, cells in DIFFERENT_WITH.items():
        if find_spec(module):
            found |= dict.fromkeys(cells.get(number, []), f"there is no {module}")
    return found
