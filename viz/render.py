"""DOT to pictures: with the system's `dot`, else with the Graphviz that pygraphviz brings along."""

from __future__ import annotations

import html
import importlib.util
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from io import BytesIO

from .dot import BETWEEN_ROWS
from .rising import RISING, risen
from .style import FONT, Style
from .text import has_known_width, text_width

__all__ = ["CannotRender", "lay_out", "paint_all", "render", "render_all", "tidy_svg"]

NO_RENDERER = (
    "This drawing needs Graphviz, which is not here: `pip install pygraphviz` brings it along "
    "(or install the program `dot` from graphviz.org)."
)

# Boxes and circles. Among more of them, edges between rows go straight, behind the boxes: the time to find
# ways around grows with the third power of their number, and is a second or so for this many.
MOST_TO_GO_AROUND = 90

# pygraphviz runs in a process of its own: Graphviz is not safe under threads, writes its complaints to the
# terminal, and holds up the whole interpreter while it searches for a layout.
_WORKER = """
import pickle, sys
engine, kind, *sys.path = sys.argv[1:]
from pygraphviz import AGraph
for source in pickle.load(sys.stdin.buffer):
    with AGraph(string=source) as graph:
        pickle.dump(graph.draw(format=kind, prog=engine), sys.stdout.buffer)
"""

LONGEST = 20  # seconds for a layout, which takes one or two. Among edges that all cross it may take hours.

PNG_DPI = 192
LARGEST_PNG = 32_767  # pixels: what is longer would be drawn smaller


class CannotRender(RuntimeError):
    """Graphviz is missing, failed, or found no layout in time. The message says which, and what to do."""


class _Broken(CannotRender):
    """Graphviz failed: another one, of another version, may not."""


def render(source: str, kind: str) -> bytes:
    """A picture of DOT text. See `render_all`."""
    return render_all([source], kind)[0]


def render_all(sources: Sequence[str], kind: str) -> list[bytes]:
    """Pictures of several DOT texts, faster than one by one.

    Rows of a drawing are laid out first, then edges between rows are led around the boxes, the shortest way.
    Graphviz does both at once when it is given the text by itself, but then goes a long way round.

    Parameters
    ----------
    sources : sequence of str
    kind : "svg", "png", "pdf" or "dot"

    Raises
    ------
    CannotRender
        If there is no Graphviz, or it fails.
    """
    sources = _with_rising_ones_laid_out(sources)
    texts = [source.splitlines() for source in sources]
    if kind == "png":
        for lines in texts:
            lines.insert(1, f"dpi={PNG_DPI};")  # sharp on a slide and in print
    between = [[line for line in lines if BETWEEN_ROWS in line] for lines in texts]
    rising = [i for i, source in enumerate(sources) if _rises(source)]
    whole = [i for i, edges in enumerate(between) if not edges and i not in rising]
    in_rows = [i for i, edges in enumerate(between) if edges and i not in rising]
    pictures = dict(zip(whole, _run("dot", kind, ["\n".join(texts[i]) for i in whole]), strict=True))

    within = ["\n".join(line for line in texts[i] if BETWEEN_ROWS not in line) for i in in_rows]
    routed = [
        "\n".join([*_all_but_the_end(laid_out, texts[i]), *between[i], "}"])
        for i, laid_out in zip(in_rows, _run("dot", "dot", within), strict=True)
    ]
    pictures |= zip(in_rows, _run("nop2", kind, routed), strict=True)
    pictures |= zip(rising, _run("nop2", kind, ["\n".join(texts[i]) for i in rising]), strict=True)
    if kind == "pdf":  # the same picture is the same file at any time
        pictures = {i: re.sub(rb"\(D:\d{14}", b"(D:19700101000000", pdf) for i, pdf in pictures.items()}
    return [pictures[i] for i in range(len(sources))]


def lay_out(source: str) -> str:
    """DOT text with the position of everything in it."""
    return render(source, "dot").decode()


def paint_all(laid_out: Sequence[str], kind: str, dpi: float = PNG_DPI) -> list[bytes]:
    """Pictures of DOT texts in which everything has its position; `dpi` is the sharpness of a PNG."""
    if kind == "png":
        laid_out = [source.replace("{", f"{{dpi={dpi:.0f};", 1) for source in laid_out]
    return _run("nop2", kind, laid_out)


def _rises(source: str) -> bool:
    return f'comment="{RISING}"' in source[:300]


def _with_rising_ones_laid_out(sources: Sequence[str]) -> list[str]:
    texts = list(sources)
    rising = [i for i, source in enumerate(sources) if _rises(source)]
    within = ["\n".join(line for line in sources[i].splitlines() if BETWEEN_ROWS not in line) for i in rising]
    for i, plain in zip(rising, _run("dot", "plain", within), strict=True):
        texts[i] = risen(sources[i], plain.decode())
    return texts


def _all_but_the_end(laid_out: bytes, lines: Sequence[str]) -> Iterator[str]:
    yield laid_out.decode().rstrip().removesuffix("}")
    if sum("shape=" in line for line in lines) > MOST_TO_GO_AROUND:
        yield "splines=line;"


def _run(engine: str, kind: str, sources: Sequence[str]) -> list[bytes]:
    """Graphviz on each text; its engine "nop2" keeps positions that are given, and leads the other edges."""
    if not sources:
        return []
    has_package = importlib.util.find_spec("pygraphviz")
    if shutil.which("dot"):
        try:
            return [_run_dot(engine, kind, source) for source in sources]
        except _Broken:
            if not has_package:
                raise
    if has_package:
        return _run_pygraphviz(engine, kind, sources)
    raise CannotRender(NO_RENDERER)


def _run_dot(engine: str, kind: str, source: str) -> bytes:
    keep = ["-Kneato", "-n2"] if engine == "nop2" else [f"-K{engine}"]
    done = _piped([shutil.which("dot") or "dot", *keep, f"-T{kind}"], source.encode(), LONGEST)
    if done.returncode:
        raise _failure("dot", done.stderr)
    return done.stdout


def _run_pygraphviz(engine: str, kind: str, sources: Sequence[str]) -> list[bytes]:
    command = [sys.executable, "-I", "-S", "-c", _WORKER, engine, kind, *sys.path]
    done = _piped(command, pickle.dumps(list(sources)), LONGEST + len(sources))
    if done.returncode:
        raise _failure("pygraphviz", done.stderr)
    output = BytesIO(done.stdout)
    pictures = [pickle.load(output) for _ in sources]
    if not all(pictures):
        raise _failure("pygraphviz", done.stderr)
    return pictures


def _piped(command: Sequence[str], given: bytes, seconds: float) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(command, input=given, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise CannotRender(
            f"Graphviz found no layout within {seconds:.0f} seconds: too many edges cross each other. Draw a "
            "part of the graph, such as an earlier Tensor, or less of it (limit=, depth=)."
        ) from None


def _failure(program: str, said: bytes) -> _Broken:
    lines = said.decode(errors="replace").strip().splitlines()
    return _Broken(
        f"{program} could not draw this graph: {lines[-1] if lines else 'it stopped without a word'}"
    )


def tidy_svg(svg: str, title: str, style: Style) -> str:
    """Graphviz's SVG, made fit to stand in a web page.

    - Only the ``<svg>`` element is kept, without comments, and without ids: the next drawing has them too.
      What a group of shapes stands for is said by ``data-key``, ``n1`` or ``n1->n2_op``, for scripts.
      All of it is ASCII, so that it survives a page that does not name its encoding.
    - It shrinks with the page, keeps its ground on a page of another colour, and has a title for screen
      readers.
    - Text that can be measured gets its width in Helvetica: where a browser has another font, it squeezes the
      text rather than letting it run out of its box.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<g) id="[^"]*"( class="[^"]*")>\s*<title>([^<]*)</title>', r'\1\2 data-key="\3">', svg)
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
