"""Who runs Graphviz: the program `dot`, the package pygraphviz, or in a browser @viz-js/viz."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

__all__ = ["CannotRender", "in_browser", "run"]

NO_RENDERER = (
    "This drawing needs Graphviz, which is not here: `pip install pygraphviz` brings it along "
    "(or install the program `dot` from graphviz.org)."
)

NOT_IN_BROWSER = (
    "This drawing needs Graphviz, which is not here yet: `await viz.in_browser(address)` takes it from the "
    "address of @viz-js/viz's file viz.js."
)

LONGEST = 20  # seconds for a layout, which usually takes one or two. If all edges cross it may take hours.

BEGINS = rb"(?=<\?xml )"  # each SVG, in the output for several graphs

# pygraphviz runs in a process of its own: Graphviz is not safe under threads, writes its complaints to the
# terminal, and holds up the whole interpreter while it searches for a layout.
_WORKER = """
import pickle, sys
kind, *sys.path = sys.argv[1:]
from pygraphviz import AGraph
for source in pickle.load(sys.stdin.buffer):
    with AGraph(string=source) as graph:
        pickle.dump(graph.draw(format=kind, prog="nop2"), sys.stdout.buffer)
"""

_hung: set[str] = set()  # each `PATH` on which `dot` did not answer: it is not called there again
_viz_js: Any = None  # Graphviz in a browser


class CannotRender(RuntimeError):
    """Graphviz is missing, failed, or found no layout in time. The message says which, and what to do."""


async def in_browser(module: Any) -> None:
    """Draw graphs by @viz-js/viz: Graphviz as WebAssembly, for Python that runs in a browser (Pyodide).

    Parameters
    ----------
    module : str or JavaScript module
        The address of its file ``viz.js``, or what JavaScript's ``import(address)`` gives. Where the page's
        policy forbids `eval`, as a strict one does, only the latter works.

    Examples
    --------
    >>> await viz.in_browser("../files/viz.js")
    """
    global _viz_js
    if isinstance(module, str):
        from js import URL, location
        from pyodide.code import run_js

        address = URL.new(module, location.href).href
        module = await run_js(f"import({json.dumps(address)})")
    _viz_js = await module.instance()


def run(kind: str, sources: Sequence[str]) -> list[bytes]:
    """Run Graphviz on each text. Its engine "nop2" keeps given positions."""
    if not sources:
        return []
    if _viz_js is not None or sys.platform == "emscripten":
        return [_with_viz_js(kind, source) for source in sources]
    has_pygraphviz = importlib.util.find_spec("pygraphviz") is not None
    path = os.environ.get("PATH", "")
    if not (has_pygraphviz and path in _hung):
        try:
            return _with_dots(kind, sources)
        except FileNotFoundError:
            if not has_pygraphviz:
                raise CannotRender(NO_RENDERER) from None
        except CannotRender as error:
            if not has_pygraphviz:
                raise
            if isinstance(error.__cause__, subprocess.TimeoutExpired):
                _hung.add(path)
            warnings.warn(f"{error} The package pygraphviz draws instead.", stacklevel=2)
    return _with_pygraphviz(kind, sources)


def _with_dots(kind: str, sources: Sequence[str]) -> list[bytes]:
    """Run the installed `dot` on several texts, in one call for each processor.

    A call takes longer to begin than to draw a small graph.
    """
    processors = os.cpu_count() or 1
    with ThreadPoolExecutor(processors) as pool:
        if kind == "svg" and len(sources) > processors:
            shares = [sources[i::processors] for i in range(processors)]
            try:
                texts = list(pool.map(lambda share: _with_dot(kind, "\n".join(share)), shares))
            except CannotRender as error:  # one by one, so that a graph that fails spoils no other
                if isinstance(error.__cause__, subprocess.TimeoutExpired):
                    raise
            else:
                parts = [re.split(BEGINS, text)[1:] for text in texts]
                if list(map(len, parts)) == list(map(len, shares)):
                    return [parts[i % processors][i // processors] for i in range(len(sources))]
        return list(pool.map(lambda source: _with_dot(kind, source), sources))


def _with_dot(kind: str, source: str) -> bytes:
    """Run the installed `dot`."""
    no_window = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # which Windows would open for a moment
    try:
        done = subprocess.run(
            ["dot", "-Knop2", f"-T{kind}"],
            input=source.encode(), capture_output=True, check=True, timeout=LONGEST, creationflags=no_window,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise _took_too_long("dot", LONGEST) from error
    except subprocess.CalledProcessError as error:
        raise _failure("dot", error.stderr) from error
    except FileNotFoundError:
        raise
    except OSError as error:  # such as a file that cannot be executed
        raise _failure("dot", str(error).encode()) from error
    return done.stdout


def _with_pygraphviz(kind: str, sources: Sequence[str]) -> list[bytes]:
    command = [sys.executable, "-I", "-S", "-c", _WORKER, kind, *sys.path]
    seconds = LONGEST + len(sources)
    try:
        done = subprocess.run(command, input=pickle.dumps(sources), capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise _took_too_long("pygraphviz", seconds) from error
    output = BytesIO(done.stdout)
    pictures = [] if done.returncode else [pickle.load(output) for _ in sources]
    if not pictures or not all(pictures):
        raise _failure("pygraphviz", done.stderr)
    return pictures


def _with_viz_js(kind: str, source: str) -> bytes:
    if _viz_js is None:
        raise CannotRender(NOT_IN_BROWSER)
    if kind != "svg":
        raise CannotRender(f"A browser cannot write a graph as .{kind}: save it as .svg or .html.")
    try:
        done = _viz_js.render(source, engine="nop2", format=kind)
    except Exception as error:  # of JavaScript, such as too little memory
        raise _failure("Graphviz", str(error).encode()) from error
    if done.status != "success":
        said = [problem.message for problem in done.errors]
        raise _failure("Graphviz", "\n".join(said).encode())
    return done.output.encode()


def _took_too_long(program: str, seconds: float) -> CannotRender:
    return CannotRender(
        f"{program} found no layout within {seconds:.0f} seconds: perhaps too many edges cross each other. "
        "Draw a part of the graph, such as an earlier Tensor, or less of it (limit=, depth=)."
    )


def _failure(program: str, said: bytes) -> CannotRender:
    lines = said.decode(errors="replace").strip().splitlines()
    why = lines[-1].rstrip(".") if lines else "it stopped without a word"
    return CannotRender(f"{program} could not draw this graph: {why}.")
