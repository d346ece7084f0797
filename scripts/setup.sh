#!/bin/sh
# Makes .venv and installs this checkout into it, editable. `make` runs it when pyproject.toml or
# constraints.txt has changed; PYTHON names the interpreter to use (default: python3).
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
version='import sys; print("%d.%d" % sys.version_info[:2])'

stop() {
    printf '%s\n' "$@" >&2
    exit 1
}

found=$("$python" -c "$version" 2>/dev/null) || stop \
    "No '$python' that runs was found; the set-up needs Python 3.11 or newer." \
    "Install it (https://www.python.org, or your system's packages), or name yours: make PYTHON=python3.12 app"

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || stop \
    "'$python' is Python $found; the set-up needs 3.11 or newer." \
    "If a newer one is installed, name it: make PYTHON=python3.12 app"

"$python" -c 'import venv, ensurepip' 2>/dev/null || stop \
    "'$python' cannot make a virtual environment: its modules venv and ensurepip (which brings pip) are missing." \
    "On Debian and Ubuntu: sudo apt install python3-venv. Elsewhere: install a complete Python."

# An environment that broke off, lost its Python or was made by another version is made anew.
if [ "$(.venv/bin/python -c "$version" 2>/dev/null)" != "$found" ] ||
    ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    echo "Making .venv with Python $found …"
    "$python" -m venv --clear .venv || stop "'$python -m venv .venv' failed; the lines above say why."
fi

echo "Installing into .venv (a few minutes the first time) …"
# The build tool comes first so that it, too, is one of the versions in constraints.txt.
install() {
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "$@" || stop \
        "pip could not install what pyproject.toml asks for; the lines above say why." \
        "The first set-up needs a network; after mending the cause, run the same command again."
}
install setuptools
install --no-build-isolation --editable '.[notebooks,app,book,mpi,dev]'
touch .venv/.ready
