"""The house: every module imports from its own floor or a lower one, and never in a circle.

Read from the source with ``ast``; nothing is executed. Imports under ``if TYPE_CHECKING:`` never run, so
they are left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import indent
from unittest.mock import ANY

import pytest

ROOT = Path(__file__).parent.parent

# From the ground up; the longest matching prefix gives a module's floor.
HOUSE = {
    0: ("needle.backend_ndarray", "needle.backend_numpy", "needle.backend_selection"),
    1: ("needle.graph", "needle.modes", "needle.failures", "needle.reverse"),  # no operator, no Tensor
    2: ("needle.ops",),
    3: ("needle.autograd",),
    4: ("needle.init", "needle.gradcheck", "needle.diagnostics"),
    5: ("needle.nn", "needle.optim", "needle.data", "needle.serialization"),
    6: ("needle.compiler", "needle.parallel"),
    7: ("needle.apps", "needle"),  # "needle" is needle/__init__.py: the public names
    8: ("viz",),
    9: ("lectures", "playground", "playground.language"),
    10: ("playground.training",),
    11: ("playground.results",),
    12: ("playground.pages",),
    13: ("playground.server",),
    14: ("app",),
}
FLOORS = {module: floor for floor, modules in HOUSE.items() for module in modules}

# What a function may import: costly or optional packages that only some users of its module need, and
# a device's kernels, which are looked up when the device is first used. `needle` and `viz` themselves look up
# what not every program needs when it is first asked for, as what draws with matplotlib; a check looks up
# what an answer imports.
LOOKS_UP = ("needle", "viz", "lectures.checking.attempt")
HEAVY_OR_OPTIONAL = {
    "anywidget",
    "concurrent",  # a browser has no processes
    "multiprocessing",
    "IPython",
    "PIL",
    "matplotlib",
    "ipyparallel",
    "js",
    "mpi4py",
    "cuda",
    "graphviz",
    "numba",
    "playwright",
    "pooch",
    "psutil",
    "pyodide",
    "pygraphviz",
    "safetensors",
    "sklearn",
    "streamlit",
    "torch",
    "tqdm",
    "traitlets",
}
# needle.compiler.runtime imports Numba.
BACKENDS = "needle.backend_ndarray.ndarray_backend_"


@dataclass(frozen=True)
class Import:
    target: str
    line: int
    in_function: bool


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def source_files() -> Iterator[Path]:
    for package in ("needle", "viz", "lectures", "playground"):
        yield from sorted((ROOT / package).rglob("*.py"))
    yield ROOT / "app.py"


FILES = {module_name(path): path for path in source_files()}


def floor(module: str) -> int:
    """Return the floor of one of our modules; KeyError if nobody gave it one."""
    if module == "needle":
        return FLOORS["needle"]
    while module not in FLOORS:
        module = module.rpartition(".")[0]
        if module in ("", "needle"):
            raise KeyError("no floor")
    return FLOORS[module]


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def imports(source: str, module: str, is_package: bool, modules: set[str]) -> Iterator[Import]:
    """Yield what ``source``, the text of ``module``, imports; ``modules`` are the names of our own."""
    package = module if is_package else module.rpartition(".")[0]

    def visit(node: ast.AST, in_function: bool) -> Iterator[Import]:
        if is_type_checking(node):
            for child in node.orelse:
                yield from visit(child, in_function)
            return
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, in_function)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                yield Import(submodule if submodule in modules else base, node.lineno, in_function)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield Import(f"({ast.unparse(node)})", node.lineno, in_function)
        inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    yield from visit(ast.parse(source), False)


@cache
def imports_of(module: str) -> list[Import]:
    """Return what one of our modules imports."""
    path = FILES[module]
    return list(imports(path.read_text(), module, path.name == "__init__.py", set(FILES)))


def is_ours(target: str) -> bool:
    return target.partition(".")[0] in ("needle", "viz", "playground", "app")


@pytest.mark.parametrize("module", FILES)
def test_a_module_imports_only_from_its_own_floor_and_below(module: str) -> None:
    upward = [
        f"{module}:{found.line} imports {found.target}"
        for found in imports_of(module)
        if is_ours(found.target) and floor(found.target) > floor(module)
    ]
    assert upward == []


@pytest.mark.parametrize("module", FILES)
def test_a_function_imports_only_what_is_costly_or_optional(module: str) -> None:
    hidden = [
        f"{module}:{found.line} imports {found.target}"
        for found in imports_of(module)
        if found.in_function
        and found.target.partition(".")[0] not in HEAVY_OR_OPTIONAL
        and not (module.startswith("needle.backend_ndarray") and "import_module" in found.target)
        and not (module in LOOKS_UP and "import_module" in found.target)
        and (module, found.target) != ("playground.results.inside", "viz")  # a browser loads it for long
        and not (module.startswith("needle.compiler") and found.target == "needle.compiler.runtime")
        and not (module.startswith("needle.backend_ndarray") and found.target.startswith(BACKENDS))
    ]
    assert hidden == []


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {
        module: {found.target for found in imports_of(module) if not found.in_function} & set(FILES)
        for module in FILES
    }
    assert circle(graph) is None


def test_the_trainer_needs_no_streamlit() -> None:
    reached = everything_reached_from("playground.training.trainer")
    assert not {name for name in reached if name.startswith("streamlit")}


def everything_reached_from(module: str) -> set[str]:
    """Return what importing one of our modules runs: its imports, theirs, and the packages they lie in."""
    assert module in FILES
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name and name not in reached:
            reached.add(name)
            waiting.append(name.rpartition(".")[0])
            waiting += [
                found.target for found in (imports_of(name) if name in FILES else ()) if not found.in_function
            ]
    return reached


def circle(graph: dict[str, set[str]]) -> list[str] | None:
    """Return the nodes of some circle in ``graph``, or None if there is none."""
    finished: set[str] = set()

    def search(path: list[str]) -> list[str] | None:
        node = path[-1]
        for following in sorted(graph[node] - finished):
            if following in path:
                return path[path.index(following) :]
            if found := search([*path, following]):
                return found
        finished.add(node)
        return None

    for node in graph:
        if node not in finished and (found := search([node])):
            return found
    return None


def test_the_readme_shows_every_package_on_its_floor() -> None:
    shown: dict[str, int] = {}
    for number, names in re.findall(r"^\| (\d+) \| (.*) \|$", (ROOT / "README.md").read_text(), re.MULTILINE):
        for name in re.findall(r"`([\w/]+)(?:/|\.py)`", names):
            outside = name.startswith(("needle/", "viz", "lectures", "playground", "app"))
            shown[(name if outside else f"needle/{name}").replace("/", ".")] = int(number)
    packages = {f"needle.{path.parent.name}" for path in ROOT.glob("needle/*/__init__.py")}
    assert packages | {"viz", "lectures", "playground"} <= shown.keys()
    del shown["app"]  # on the roof of the playground's own floors
    assert shown == {module: floor(module) for module in shown}


# The reader of imports is itself held to what it must see.


def test_circles_are_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) is None


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("import needle.ops", "needle.ops"),
        ("from needle import ops", "needle.ops"),
        ("from needle import Tensor", "needle"),
        ("from . import autograd", "needle.autograd"),
        ("from .autograd import Tensor", "needle.autograd"),
        ("try:\n    import viz\nexcept ImportError:\n    pass", "viz"),
        ("importlib.import_module('viz')", "(importlib.import_module('viz'))"),
    ],
)
def test_every_way_to_import_is_seen(source: str, target: str) -> None:
    modules = {"needle", "needle.ops", "needle.autograd"}
    assert list(imports(source, "needle.graph", False, modules)) == [Import(target, ANY, False)]
    in_function = "def f():\n" + indent(source, "    ")
    assert list(imports(in_function, "needle.graph", False, modules)) == [Import(target, ANY, True)]


def test_imports_for_type_checkers_are_left_out() -> None:
    source = "if TYPE_CHECKING:\n    import viz\nelse:\n    import numpy"
    assert [found.target for found in imports(source, "needle.graph", False, set())] == ["numpy"]
