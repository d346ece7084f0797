"""The set-up cell where it has to work: in a clean environment, outside the repository, without our package.

The real cell runs in a new virtual environment, in which pip really installs the wheel. All that the wheel
depends on is there already, lent by the environment of the tests; needle-notebooks itself is not.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from .conftest import LECTURES, ROOT

OURS = ("needle", "viz", "playground", "__editable__")

# What Colab puts in place before the first cell runs.
COLAB = """
import sys, types
sys.modules["google"] = types.ModuleType("google")
sys.modules["google.colab"] = types.ModuleType("google.colab")
"""

WHERE = "\nimport needle, lectures, viz\nprint(needle.__file__)\n"


class Environment:
    """A virtual environment without needle-notebooks, and an empty folder to work in."""

    def __init__(self, home: Path):
        venv.create(home / "venv", with_pip=False, symlinks=sys.platform != "win32")
        self.python = home / "venv" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
        self.packages = Path(subprocess.check_output([self.python, "-c", ask], text=True).strip())
        self.cwd = home / "work"
        self.cwd.mkdir()
        lent = home / "lent"
        lent.mkdir()
        for path in Path(sysconfig.get_path("purelib")).iterdir():
            if not path.name.startswith(OURS):
                (lent / path.name).symlink_to(path, target_is_directory=path.is_dir())
        (self.packages / "lent.pth").write_text(str(lent))

    def run(self, program: str) -> subprocess.CompletedProcess[str]:
        (self.cwd / "program.py").write_text(program)
        # As on a kernel, the working directory is on the path, which -c sees to.
        command = [self.python, "-c", "exec(open('program.py').read())"]
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PIP"))}
        offline = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "GIT_ALLOW_PROTOCOL": "file"}
        return subprocess.run(command, cwd=self.cwd, env=clean | offline, capture_output=True, text=True)


@pytest.fixture
def environment(tmp_path) -> Environment:
    return Environment(tmp_path)


@pytest.fixture(scope="module")
def from_wheel(set_up_cell, wheel) -> str:
    """The set-up cell with its one variable set to the wheel, as a lecturer would set it."""
    return set_address(set_up_cell, wheel.as_uri())


def set_address(cell: str, address: str) -> str:
    changed, times = re.subn(r'(?m)^ADDRESS = ".*"$', lambda _: f"ADDRESS = {address!r}", cell)
    assert times == 1
    return changed


@pytest.fixture(scope="module")
def colab(tmp_path_factory, from_wheel):
    """An environment in which the set-up cell was run as in Colab, and what it said."""
    environment = Environment(tmp_path_factory.mktemp("colab"))
    assert environment.run("import needle").returncode == 1, "the package must be absent at first"
    done = environment.run(COLAB + from_wheel + WHERE)
    assert done.returncode == 0, done.stderr
    return environment, done.stdout.splitlines()


@pytest.mark.slow
def test_colab_gets_the_package_installed_and_is_told_how_to_keep_work(colab):
    environment, (start, advice, path) = colab
    assert re.fullmatch(r"Installing needle from file:.*\.whl: this takes a moment\.", start)
    assert "Save a copy in Drive" in advice
    assert Path(path) == environment.packages / "needle" / "__init__.py"


@pytest.mark.slow
def test_where_the_package_is_the_cell_does_nothing(colab, set_up_cell):
    environment, _ = colab
    before = sorted((path, path.stat().st_mtime_ns) for path in environment.packages.iterdir())
    done = environment.run(set_address(set_up_cell, "file:///there/is/no.whl"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert before == sorted((path, path.stat().st_mtime_ns) for path in environment.packages.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["package", "module"])
def test_another_needle_that_is_installed_is_not_taken_for_ours(environment, set_up_cell, wheel, kind):
    other = environment.packages / ("needle.py" if kind == "module" else "needle/__init__.py")
    other.parent.mkdir(exist_ok=True)
    other.write_text("thread = 'cotton'\n")
    record = environment.packages / "needle-3.1.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: needle\nVersion: 3.1\n")
    assert environment.run("import needle; print(needle.thread)").stdout == "cotton\n"

    by_path = set_address(set_up_cell, str(wheel))
    done = environment.run(COLAB + by_path + WHERE)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.splitlines()[-1]) == environment.packages / "needle" / "__init__.py"


@pytest.mark.slow
def test_another_needle_in_the_working_folder_is_named_in_one_sentence(environment, from_wheel):
    other = environment.cwd / "needle.py"
    other.write_text("thread = 'cotton'\n")
    done = environment.run(from_wheel)
    assert done.returncode == 1
    ours = environment.packages / "lectures" / "checking" / "__init__.py"
    assert ours.is_file(), "it was installed all the same"
    *_, sentence = done.stderr.splitlines()
    remedy = f"rename {other}, then restart the kernel"
    assert sentence == f"ImportError: another needle hides the course's: {remedy}"

    other.unlink()
    assert environment.run(from_wheel + WHERE).returncode == 0


@pytest.fixture
def linked(environment) -> Environment:
    """An environment in which the package is installed as pip records it, without the time that pip takes."""
    for name in ("needle", "lectures", "viz"):
        (environment.packages / name).symlink_to(ROOT / name, target_is_directory=True)
    record = environment.packages / "needle_notebooks-0.1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: needle-notebooks\nVersion: 0.1.0\n")
    return environment


def test_another_needle_that_was_imported_before_asks_for_a_restart(linked, set_up_cell):
    nowhere = set_address(set_up_cell, "file:///there/is/no.whl")
    assert linked.run(nowhere + WHERE).returncode == 0
    (linked.cwd / "needle.py").write_text("")
    done = linked.run("import needle, os\nos.remove('needle.py')\n" + nowhere)
    assert done.returncode == 1
    assert "Installing" not in done.stdout
    assert done.stderr.splitlines()[-1].endswith("then restart the kernel")


def test_without_a_network_one_sentence_says_so(environment, set_up_cell):
    nowhere = set_address(set_up_cell, "file:///there/is/no/needle_notebooks-0-py3-none-any.whl")
    done = environment.run(nowhere)
    assert done.returncode == 1
    *_, sentence = done.stderr.splitlines()
    assert sentence.startswith("ImportError: pip could not install needle from file:///there/is/no/")
    assert sentence.endswith("is there a network?")
    assert "ERROR" in done.stdout, "what pip said is shown, too"


def test_nothing_installs_from_the_placeholder_without_saying_so(environment, set_up_cell):
    done = environment.run(set_up_cell)
    assert done.returncode == 1, "offline"
    placeholder, start, *_ = done.stdout.splitlines()
    assert placeholder == "The repository is not public yet: ADDRESS in this cell is a placeholder."
    assert start.startswith("Installing needle from https://github.com/")


def test_a_copy_of_the_repository_is_used_without_installing(environment, set_up_cell):
    """The working directory is notebooks/, as in JupyterLab, or any folder below the repository's."""
    nowhere = set_address(set_up_cell, "file:///there/is/no.whl")
    environment.cwd = environment.cwd / "copy" / "notebooks" / "mine"
    environment.cwd.mkdir(parents=True)
    root = environment.cwd.parent.parent
    for name in ("needle", "viz", "lectures"):
        (root / name).symlink_to(ROOT / name, target_is_directory=True)
    done = environment.run(nowhere + WHERE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(root / "needle" / "__init__.py")]


# The first lecture, and one whose drawings move by scripts of the wheel.
FEW = [path for path in LECTURES if path.stem[:2] in ("01", "05")]


@pytest.mark.slow
@pytest.mark.parametrize("lecture", FEW, ids=lambda path: path.stem, indirect=True)
def test_a_lecture_runs_from_its_set_up_on(environment, from_wheel, notebook, kernel):
    """On a kernel of the clean environment, with nothing of the repository in reach."""
    cells = {cell.id: cell for cell in notebook.cells}
    cells["set-up"].source = from_wheel
    with kernel(notebook, environment.cwd, environment.python) as client:
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
            for output in cell.get("outputs", []):
                assert output.output_type != "error", f"{cell.id}: {output.evalue}"
        where = type(cells["set-up"])(cell_type="code", source="print(ndl.__file__)", metadata={}, outputs=[])
        client.execute_cell(where, 0)
        assert Path(where.outputs[0].text.strip()).is_relative_to(environment.packages)
