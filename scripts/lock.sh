#!/bin/sh
# Writes constraints.txt: the newest releases that pyproject.toml admits and that work together, as pip
# resolves them in an empty environment. PYTHON should be the oldest version that pyproject.toml supports, down
# to its last number, so that every pin also installs on the newer ones.
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"${PYTHON:-python3}" -m venv "$scratch/venv"
python=$scratch/venv/bin/python
"$python" - >"$scratch/requirements.txt" <<'END'
import tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
extras = project["optional-dependencies"]
print(*project["dependencies"], *extras["notebooks"], *extras["app"], *extras["book"], *extras["mpi"], *extras["dev"], sep="\n")
END
"$python" -m pip install --quiet --disable-pip-version-check --upgrade --requirement "$scratch/requirements.txt"
{
    echo "# The exact versions that make and CI install; \`make lock\` writes this file."
    "$python" -m pip list --disable-pip-version-check --format=freeze --exclude pip
} >"$scratch/constraints.txt"
mv "$scratch/constraints.txt" constraints.txt
echo "constraints.txt: $(grep -c == constraints.txt) versions"
