"""DOT to pictures: with the system's `dot`, else with the Graphviz that pygraphviz brings along."""

from __future__ import annotations

import html
import importlib.util
import re
import shutil
import subprocess
import sys

import graphviz

from .dot import BETWEEN_ROWS
from .style import FONT, Style
from .text import has_known_width, text_width

__all__ = ["CannotRender", "render", "tidy_svg"]

NO_RENDERER = (
    "This drawing needs Graphviz, which is not here: `pip install pygraphviz` brings it along "
    "(or install the program `dot` from graphviz.org). Until then, here is the drawing as DOT text."
)

# Boxes and circles. Among more of them, edges between rows go straight, behind the boxes: the time to find
# ways around grows with the third power of their number, and is a second or so for this many.
MOST_TO_GO_AROUND = 90

# pygraphviz runs in a process of its own: Graphviz is not safe under threads, writes its complaints to the
# terminal, and holds up the whole interpreter while it searches for a layout.
_WORKER = """
import sys
engine, kind, *sys.path = sys.argv[1:]
from pygraphviz import AGraph
with AGraph(string=sys.stdin.buffer.read().decode()) as graph:
    sys.stdout.buffer.write(graph.draw(format=kind, prog=engine))
"""

PNG_DPI = 192
LARGEST_PNG = 32_767  # pixels: what is longer would be drawn smaller


class CannotRender(RuntimeError):
    """Graphviz is missing, or failed. The message says which, and what to do."""


def render(source: str, kind: str) -> bytes:
    """A picture of DOT text.

    Rows of a drawing are laid out first, then edges between rows are led around the boxes, the shortest way.
    Graphviz does both at once when it is given the text by itself, but then goes a long way round.

    Parameters
    ----------
    source : str
    kind : "svg", "png" or "pdf"

    Raises
    ------
    CannotRender
        If there is no Graphviz, or it fails.
    """
    lines = source.splitlines()
    between = [line for line in lines if BETWEEN_ROWS in line]
    if kind == "png":
        lines.insert(1, f"dpi={PNG_DPI};")  # sharp on a slide and in print
    if not between:
        return _run("dot", kind, "\n".join(lines))
    within = "\n".join(line for line in lines if BETWEEN_ROWS not in line)
    laid_out = _run("dot", "dot", within).decode().rstrip().removesuffix("}")
    if sum("shape=" in line for line in lines) > MOST_TO_GO_AROUND:
        laid_out += "splines=line;"
    return _run("nop2", kind, "\n".join([laid_out, *between, "}"]))


def _run(engine: str, kind: str, source: str) -> bytes:
    """One run of Graphviz; its engine "nop2" keeps positions that are given, and leads the other edges."""
    if shutil.which("dot"):
        return _run_dot(engine, kind, source)
    if importlib.util.find_spec("pygraphviz"):
        return _run_pygraphviz(engine, kind, source)
    raise CannotRender(NO_RENDERER)


def _run_dot(engine: str, kind: str, source: str) -> bytes:
    keep = {"engine": "neato", "neato_no_op": 2} if engine == "nop2" else {"engine": engine}
    try:
        return graphviz.pipe(format=kind, data=source.encode(), quiet=True, **keep)
    except graphviz.CalledProcessError as error:
        raise _failure("dot", error.stderr) from error


def _run_pygraphviz(engine: str, kind: str, source: str) -> bytes:
    command = [sys.executable, "-I", "-S", "-c", _WORKER, engine, kind, *sys.path]
    done = subprocess.run(command, input=source.encode(), capture_output=True)
    if done.returncode or not done.stdout:
        raise _failure("pygraphviz", done.stderr)
    return done.stdout


def _failure(program: str, said: bytes) -> CannotRender:
    lines = said.decode(errors="replace").strip().splitlines()
    return CannotRender(
        f"{program} could not draw this graph: {lines[-1] if lines else 'it stopped without a word'}"
    )


def tidy_svg(svg: str, title: str, style: Style) -> str:
    """Graphviz's SVG, made fit to stand in a web page.

    - Only the ``<svg>`` element is kept, without comments, and without ids: the next drawing has them too.
      All of it is ASCII, so that it survives a page that does not name its encoding.
    - It shrinks with the page, keeps its ground on a page of another colour, and has a title for screen
      readers.
    - Text that can be measured gets its width in Helvetica: where a browser has another font, it squeezes the
      text rather than letting it run out of its box.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<g) id="[^"]*"', r"\1", svg)
    svg = re.sub(r"<title>.*?</title>\n?", "", svg)
    svg = re.sub(r"<text ([^>]*)>([^<]*)</text>", _with_width, svg)
    svg = re.sub(r' font-family="[^"]*"', "", svg)
    look = f'role="img" font-family="{FONT}" '
    look += f'style="max-width:100%;height:auto;background:{style.background};border-radius:8px"'
    svg = svg.replace("<svg ", f"<svg {look} ", 1).replace(">", f">\n<title>{html.escape(title)}</title>", 1)
    return svg.encode("ascii", "xmlcharrefreplace").decode()


def _with_width(match: re.Match[str]) -> str:
    attributes = match[1].replace('xml:space="preserve" ', "")
    text = html.unescape(match[2]).strip(" \N{NO-BREAK SPACE}")
    size = re.search(r'font-size="([\d.]+)"', attributes)
    if not text or not size:
        return ""
    if all(map(has_known_width, text)):
        width = text_width(text, float(size[1]), bold='font-weight="bold"' in attributes)
        attributes += f' textLength="{width:.1f}" lengthAdjust="spacingAndGlyphs"'
    return f"<text {attributes}>{html.escape(text)}</text>"
