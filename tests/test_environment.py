"""environment.yml, pyproject.toml and constraints.txt name the same dependencies."""

from __future__ import annotations

import contextlib
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]

# The one place that knows which names differ on conda-forge.
CONDA_NAME = {"graphviz": "python-graphviz", "matplotlib": "matplotlib-base"}
# Extras for those who change the code, make the book, train with several processes or own an NVIDIA GPU:
# `pip install` adds them anywhere.
EXTRAS_WITHOUT_CONDA = {"cuda", "cuda12", "book", "mpi", "dev"}


def split(requirement: str) -> tuple[str, str]:
    """Split ``"numpy>=2.0"`` into ``("numpy", ">=2.0")``, without its extras and its platforms."""
    name, bound = re.match(r"([A-Za-z0-9._-]+)(?:\[\w+\])?([^;]*)", requirement).groups()
    return name, bound


def from_pyproject() -> dict[str, str]:
    extras = PROJECT["optional-dependencies"]
    assert extras.keys() >= EXTRAS_WITHOUT_CONDA
    requirements = list(PROJECT["dependencies"])
    for extra in extras.keys() - EXTRAS_WITHOUT_CONDA:
        requirements += extras[extra]
    bounds = {"python": PROJECT["requires-python"]}
    for requirement in requirements:
        name, bound = split(requirement)
        bounds[CONDA_NAME.get(name, name)] = bound
    return bounds


def from_environment() -> dict[str, str]:
    text = (ROOT / "environment.yml").read_text()
    dependencies = text.partition("\ndependencies:\n")[2]
    entries = re.findall(r"^ +- ([a-z][^:\s]*)(?:  #.*)?$", dependencies, flags=re.MULTILINE)
    return dict(split(entry) for entry in entries if entry != "pip")


def test_environment_names_the_dependencies_and_bounds_of_pyproject() -> None:
    assert from_environment() == from_pyproject()


def test_environment_installs_the_checkout() -> None:
    assert (ROOT / "environment.yml").read_text().endswith("      - --editable .\n")


def test_a_dependency_has_one_bound() -> None:
    bounds: dict[str, set[str]] = {}
    for requirements in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        for name, bound in map(split, requirements):
            bounds.setdefault(name, set()).add(bound)
    several = {name: found for name, found in bounds.items() if len(found) > 1}
    assert several == {"numpy": {">=2.0", "<2.5"}}  # the second holds where numba-cuda needs it


@pytest.mark.parametrize("extra", ["", "notebooks", "app", "book", "mpi", "dev"])
def test_constraints_pin_every_dependency_within_its_bound(extra: str) -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.lower().split("==") for line in lines if not line.startswith("#"))
    for requirement in PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]:
        name, bound = split(requirement)
        assert bound.startswith(">=")
        assert release(pins[name]) >= release(bound.removeprefix(">="))


def test_every_pin_installs_on_the_first_release_of_the_oldest_python() -> None:
    """A pin may ask for Python 3.11.5, and Debian's is 3.11.2. What is installed tells what it asks for."""
    first = PROJECT["requires-python"].removeprefix(">=") + ".0"
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    seen, refused = 0, []
    for name, version in (line.split("==") for line in lines if not line.startswith("#")):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found = metadata.metadata(name)
            if found["Version"] == version:
                seen += 1
                if not SpecifierSet(found["Requires-Python"] or "").contains(first):
                    refused.append(f"{name} {version}: {found['Requires-Python']}")
    assert seen > len(lines) / 2
    assert refused == []


def release(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_constraints_hold_neither_torch_nor_an_address() -> None:
    text = (ROOT / "constraints.txt").read_text()
    assert not re.search(r"^(torch|nvidia-|needle)", text, flags=re.MULTILINE)
    assert "://" not in text
