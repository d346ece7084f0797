# Everything a person does with this repository. Only python3 (with venv and pip) and make are presumed.
# PYTHON=python3.12 picks another Python for .venv; FLAGS goes on to the program that a target starts:
# `make test FLAGS="-k viz"`, `make lab FLAGS=--allow-root`, `make app FLAGS=--server.port=8600`.
.DEFAULT_GOAL := help
export PYTHON ?= python3

READY := .venv/.ready
RUN := .venv/bin/python -m
FLAGS ?=
# Tests run in a process per processor, each file in one of them, in the order of the folders: the files that
# take longest have few tests, and would come last if sorted by their number. FLAGS=-n0 runs them in one process.
# A process that dies, as one does whose test hangs (pyproject.toml), ends the run: it would try that test again.
WORKERS := -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder --max-worker-restart=0
# One thread for NumPy's products in each: with more, the processes would wait for each other's threads.
test test-slow: export OPENBLAS_NUM_THREADS := 1

.PHONY: help app class lab test test-cuda test-slow check format bench site serve gallery student marks contents pictures address lock setup

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

app: $(READY)  ## start the playground and print its address
	$(RUN) streamlit run app.py --server.address=localhost $(FLAGS)

class: $(READY)  ## start the playground for a class: PROCESSES=4 of them behind one address (needs nginx)
	.venv/bin/python scripts/serve_class.py $(if $(PROCESSES),--processes=$(PROCESSES)) $(FLAGS)

lab: $(READY)  ## open the lectures in JupyterLab
	PATH="$(CURDIR)/.venv/bin:$$PATH" $(RUN) jupyterlab --notebook-dir=notebooks $(FLAGS)

test: $(READY)  ## run all tests but the slow ones
	$(RUN) pytest $(WORKERS) $(FLAGS)

test-cuda: $(READY)  ## run on the GPU of this machine what the CUDA device does, and say on which
	.venv/bin/python tests/needle/backend_ndarray/cuda_suite.py $(FLAGS)

test-slow: $(READY)  ## run the slow tests
	$(RUN) pytest -m slow $(WORKERS) $(FLAGS)

check: $(READY)  ## check format, lint, spelling, types and that floors import only from below
	$(RUN) ruff format --check
	$(RUN) ruff check
	$(RUN) codespell_lib
	$(RUN) mypy
	$(RUN) pytest -q tests/test_floors.py

format: $(READY)  ## format the code and mend what the linter can
	$(RUN) ruff format
	$(RUN) ruff check --fix

bench: $(READY)  ## time needle against NumPy (and torch, jax where installed); THREADS=1 on one processor
	$(RUN) benchmarks $(FLAGS)

site: $(READY)  ## make the website: playground, lectures that run in the browser, and the book (build/site)
	.venv/bin/python scripts/make_site.py $(FLAGS)

serve: $(READY)  ## send the website from this machine, and print its address
	@test -e build/site/index.html || $(MAKE) site
	$(RUN) http.server --bind 127.0.0.1 --directory build/site $(FLAGS)

gallery: $(READY)  ## build a page of every kind of picture, from live objects
	.venv/bin/python scripts/make_gallery.py

student: $(READY)  ## write the lectures without solutions, as a course for nbgrader (build/notebooks/student)
	.venv/bin/python scripts/notebook_editions.py

marks: $(READY)  ## run the answers that students handed in as files: make marks FOLDER=…
	.venv/bin/python scripts/read_marks.py $(FOLDER) $(FLAGS)

pictures: $(READY)  ## draw the README's pictures anew
	.venv/bin/python scripts/make_pictures.py

contents: $(READY)  ## write the lectures' table of contents, with a picture each
	.venv/bin/python scripts/make_contents.py

address: $(READY)  ## write the repository's address everywhere: make address TO=owner/name
	.venv/bin/python scripts/address.py $(TO)

lock:  ## refresh the exact versions in constraints.txt
	@scripts/lock.sh

setup: $(READY)  ## only make .venv and install into it

$(READY): pyproject.toml constraints.txt scripts/setup.sh
	@scripts/setup.sh
