"""DOT to pictures, and what makes a picture fit to stand in a web page."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping

from . import engines
from .style import CODE_FONT, CODE_FONTS, CODE_WIDTH, FOLLOW, FOLLOWS, FONT, Style, dark_rules
from .text import has_known_width, text_width

__all__ = ["render", "render_all", "tidy_svg"]

PNG_DPI = 192  # sharp on a slide and in print
LARGEST_PNG = 32_767  # pixels: Graphviz scales a larger picture down


def render(source: str, kind: str) -> bytes:
    """Draw DOT text. See `render_all`."""
    return render_all([source], kind)[0]


def render_all(sources: Iterable[str], kind: str, dpi: float = PNG_DPI) -> list[bytes]:
    """Draw DOT texts in which everything has its place. Several at once are faster than one by one.

    Parameters
    ----------
    sources : iterable of str
    kind : "svg", "png" or "pdf"
    dpi : float
        The sharpness of a PNG.

    Raises
    ------
    CannotRender
        If Graphviz is missing or fails.
    """
    texts = list(sources)
    if kind == "png":
        texts = [text.replace("{", f"{{dpi={dpi:.0f};", 1) for text in texts]
    pictures = engines.run(kind, texts)
    if kind == "pdf":  # the same picture is the same file at any time
        pictures = [re.sub(rb"\(D:\d{14}", b"(D:19700101000000", pdf) for pdf in pictures]
    if kind == "svg":
        pictures = [_clusters_in_order(svg) for svg in pictures]
    return pictures


def _clusters_in_order(svg: bytes) -> bytes:
    """The same SVG with its clusters in the order of the DOT text, by which they are numbered.

    Graphviz draws them in the order in which their names lie in its memory, which changes from run to run.
    """
    parts = re.split(rb'(?=<g id="clust\d)|(?=<!-- )|(?=<g id="node)|(?=<g id="edge)', svg)
    numbers = [re.match(rb'<g id="clust(\d+)"', part) for part in parts]
    clusters = sorted((int(number[1]), i) for i, number in enumerate(numbers) if number)
    ordered = iter([parts[i] for _, i in clusters])
    return b"".join(next(ordered) if number else part for number, part in zip(numbers, parts, strict=True))


def tidy_svg(svg: str, title: str, style: Style, colours: Mapping[str, str] | None = None) -> str:
    """Graphviz's SVG, made fit to stand in a web page.

    - Only the ``<svg>`` element is kept, without comments, and without ids: the next drawing has them too.
      What a group of shapes stands for is said by ``data-key``, ``n1`` or ``n1->n2_op``, for scripts.
      All of it is ASCII, so that it survives a page that does not name its encoding.
    - It shrinks with the page, keeps its ground on a page of another colour, and has a title for screen
      readers. If its style has a dark twin, it is dark where the page is.
    - Text that can be measured gets its width in Helvetica: where a browser has another font, it squeezes the
      text rather than letting it run out of its box.

    `colours` says which colour takes the place of which on a dark page; by default, as the style says.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<g) id="[^"]*"( class="[^"]*")>\s*<title>([^<]*)</title>', r'\1\2 data-key="\3">', svg)
    svg = re.sub(r'(<g) id="[^"]*"', r"\1", svg)
    svg = re.sub(r"<title>.*?</title>\n?", "", svg)
    svg = re.sub(r"<text ([^>]*)>([^<]*)</text>", _with_width, svg)
    svg = re.sub(rf' font-family="(?!{CODE_FONT})[^"]*"', "", svg)
    svg = svg.replace(f'font-family="{CODE_FONT}', f'font-family="{CODE_FONTS}')
    look = f'role="img" font-family="{FONT}" '
    look += f'style="max-width:100%;height:auto;background:{style.background};border-radius:8px"'
    begin = f"<title>{html.escape(title)}</title>"
    if style.dark is not None:
        look = f'class="{FOLLOWS}" {look}'
        used = {x: twin for x, twin in (colours or style.twins).items() if f'"{x.lower()}"' in svg}
        ground = f"svg.{FOLLOWS}{{background:{style.css(style.background)}!important}}"
        rules = ground + dark_rules(used, f"svg.{FOLLOWS} ")
        # A program that knows no light-dark() passes over all of it, and draws the picture light.
        begin += f"\n<style>{FOLLOW}@supports (color:light-dark(red,red)){{{rules}}}</style>"
    svg = svg.replace("<svg ", f"<svg {look} ", 1).replace(">", f">\n{begin}", 1)
    return svg.encode("ascii", "xmlcharrefreplace").decode()


def _with_width(match: re.Match[str]) -> str:
    attributes = match[1].replace('xml:space="preserve" ', "")
    size = re.search(r'font-size="([\d.]+)"', attributes)
    if f'"{CODE_FONT}' in attributes and size:
        width = CODE_WIDTH * float(size[1]) * len(html.unescape(match[2]))
        return f'<text {attributes} textLength="{width:.1f}">{match[2]}</text>'
    text = html.unescape(match[2]).strip(" \N{NO-BREAK SPACE}")
    if not text or not size:
        return ""
    if len(text) > 1 and all(map(has_known_width, text)):  # a lone × pressed narrow would be a letter
        width = text_width(text, float(size[1]), bold='font-weight="bold"' in attributes)
        attributes += f' textLength="{width:.1f}" lengthAdjust="spacingAndGlyphs"'
    return f"<text {attributes}>{html.escape(text)}</text>"
