"""How Sphinx makes the book, a part of ``make site``: `scripts/make_book.py` gathers its pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.errors import ExtensionError

project = "needle"
author = "the needle-notebooks authors"
copyright = f"2026, {author}"
html_title = "needle"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
html_theme = "furo"
pygments_style = "tango"
pygments_dark_style = "github-dark"
html_static_path = ["static"]
html_css_files = ["book.css"]
html_favicon = str(Path(__file__).parent / "icon.svg")
html_extra_path = ["beside"]  # the pictures of the table of contents
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"
templates_path: list[str] = []

# Notebooks run here, on fresh kernels. A drawing comes as a piece of a page, which moves without a kernel;
# the widget beside it would ask the web for its scripts.
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_mime_priority_overrides = [("html", "text/html", 0)]
nb_ipywidgets_js: dict[str, Any] = {}
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = True

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say them
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
default_role = "code"  # what a docstring puts in `single` quotes
copybutton_selector = "div.highlight pre"


def visit_math(translator: Any, node: nodes.Element) -> None:
    """Write mathematics as MathML, which browsers draw themselves."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    tex = node.astext().replace(r"\tfrac", r"\frac").replace("{aligned}", "{split}")  # these it knows
    written = convert(tex, display=display)
    if unknown := re.search(r">(&|\\\w+)<", written):
        raise ExtensionError(f"latex2mathml does not know {unknown[1]} in this formula: {node.astext()}")
    translator.body.append(written)
    raise nodes.SkipNode


def give_each_a_line(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Describe attributes that share a line one by one, as napoleon does with parameters."""

    def one_by_one(field: re.Match[str]) -> str:
        return "\n".join(f":{field['kind']} {name}:{field['text']}" for name in field["names"].split(", "))

    field = r"(?m)^:(?P<kind>ivar|vartype) (?P<names>\w+(?:, \w+)+):(?P<text>.*(?:\n +.*)*)"
    lines[:] = re.sub(field, one_by_one, "\n".join(lines)).split("\n")


def leave_out_widgets(app: Any, env: Any) -> None:
    """Leave out the state of widgets, half of a page: its pictures move without it."""
    for page in env.nb_metadata.values():
        page.get("js_files", {}).pop("ipywidgets_state", None)


def setup(app: Any) -> None:
    """Add the drawing of mathematics, the last touch to docstrings, and what pages can do without."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    app.connect("autodoc-process-docstring", give_each_a_line, priority=900)  # after napoleon
    app.connect("env-updated", leave_out_widgets)
