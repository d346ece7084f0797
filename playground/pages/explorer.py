"""The page on which an expression shows its graphs."""

from __future__ import annotations

import re
from functools import partial
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import streamlit as st

import viz
from needle import Tensor
from viz.render import LARGEST_PNG, PNG_DPI
from viz.text import number, rows_of

from ..colours import GRADIENT
from ..language.expression import FUNCTIONS, MOST_CHARACTERS, ExpressionError, Result, run
from ..language.not_finite import explain
from . import pictures
from .address import Entry, any_text, one_of, write_address
from .opening import KEPT, is_dark, open_page
from .words import as_text

__all__ = ["EXAMPLES", "page"]

EXAMPLES = {
    "One value, two paths": """\
v1 = 0
v2 = exp(v1)
v3 = v2 + 1
v4 = v2 * v3""",
    "Chain rule": """\
w, x, b = 2, 3, 1
y = (w * x + b) ** 2""",
    "Adjoints add up": """\
a = 3
b = a + a
c = b + b""",
    "Matrix product": """\
X = [[1, 2], [3, 4]]
W = [[1, 0], [2, 1]]
y = sum((X @ W) ** 2)""",
    "Softmax loss": """\
Z = [[2, 1, 0], [0, 3, 1]]     # logits
y = one_hot([0, 2], 3)         # labels
loss = mean(logsumexp(Z, axes=1) - sum(Z * y, axes=1))""",
    "XOR with ReLU": """\
X = constant([[0, 0], [0, 1], [1, 0], [1, 1]])
W = [[1, 1], [1, 1]]
c = [0, -1]
w = [1, -2]
y = relu(X @ W + c) @ w""",
    "Network with weight decay": """\
x = constant([[1, 2]])
y = constant([[1]])
W1 = [[0.5, -1, 1], [1, 0.5, -0.5]]
W2 = [[1], [2], [-1]]
h = relu(x @ W1)
L = sum((h @ W2 - y) ** 2) / 2
s = 0.05 * (sum(W1 ** 2) + sum(W2 ** 2))
J = L + s""",
    "A loop in time": """\
x = constant([1, 0, 2])
w, u = 0.5, 0.8
h = 0
for t in range(3):
    h = tanh(w * x[t] + u * h)""",
    "Infinity and NaN": """\
p = [0, 0.25, 0.75]
y = p * log(p)         # log(0) is -inf, and 0 * -inf is nan
entropy = -sum(y)""",
}

_ADJOINT = "The adjoint of a value is the derivative of the result with respect to that value."

VIEWS = {
    "forward": "Forward graph",
    "gradient": "Gradient graph",
    "second": "Second order",
    "steps": "Step through",
    "memory": "Memory",
}
STYLES = {"auto": "Match page", "needle": "needle", "d2l": "d2l", "print": "Print", "dark": "Dark"}
DIRECTIONS = {"LR": "From left to right", "TB": "From top to bottom"}

MOST_DRAWN = 300  # variables: the layout of so many takes a second or so
MOST_STEPPED = 100  # nodes: nobody steps through more

_STYLE = """
<style>
.st-key-expression textarea { font-family: "Source Code Pro", monospace; font-size: 0.9375rem;
    line-height: 1.5; min-height: 8.5rem; max-height: 27rem; }
.explorer { --gradient: GRADIENT; overflow-x: auto; }
.explorer table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.explorer th, .explorer td { padding: 3px 18px 3px 0; text-align: left; vertical-align: middle; }
.explorer th { font-size: 0.8125rem; font-weight: 400; opacity: .7; white-space: nowrap; }
.explorer td { white-space: nowrap; }
.explorer .value td { font-size: 1.35rem; padding-bottom: 10px; }
.explorer .gradient { color: color-mix(in srgb, var(--gradient) 80%, currentColor); }
.explorer .matrix { border: solid currentColor; border-width: 0 1px; border-radius: 3px; }
.explorer .matrix td { font-size: inherit; padding: 0 6px; text-align: right; }
.explorer pre { font-size: 0.875rem; line-height: 1.5; margin: 0; padding-bottom: 4px; }
.explorer pre i { font-style: normal; opacity: .5; user-select: none; }
.explorer pre mark { background: none; color: inherit; text-decoration: #d92d20 wavy underline 1.5px;
    text-underline-offset: 4px; }
@media (max-width: 640px) { .stMain .stHorizontalBlock { row-gap: 0.5rem; } }
</style>
""".replace("GRADIENT", GRADIENT)


def page() -> None:
    """Write an expression, and see its value, its gradients and their graphs."""
    open_page(
        "Explorer",
        "Write an expression or choose an example, and see its value, its gradients and their graphs.",
        ENTRIES,
    )
    st.html(_STYLE)
    state = st.session_state
    state.example = next((name for name, text in EXAMPLES.items() if text == state.expression), None)
    st.pills("Examples", EXAMPLES, key="example", help=_ADJOINT, on_change=_take_example)
    left, right = st.columns(2, gap="large")
    with left:
        text = _write()
    outcome = _outcome(text)
    with right:
        if isinstance(outcome, ExpressionError):
            _tell(outcome, text)
        else:
            _tell_values(outcome)
    if isinstance(outcome, Result):
        _show_views(text, outcome)
    elif outcome.failure:
        _show_error(text)
    write_address(ENTRIES)


@st.cache_resource(max_entries=16, show_spinner=False)
def _outcome(text: str) -> Result | ExpressionError:
    """What a text computes, with its gradients. Everybody who writes the same text shares it."""
    try:
        result = run(text)
        if result.value.requires_grad:
            result.backward()
    except ExpressionError as error:
        return error
    return result


# The text, its examples and what the address holds.

ENTRIES = {
    "expression": Entry("text", EXAMPLES["One value, two paths"], any_text(MOST_CHARACTERS)),
    "view": Entry("view", "forward", one_of(VIEWS)),
    "look": Entry("style", "auto", one_of(STYLES)),
    "direction": Entry("rankdir", "LR", one_of(DIRECTIONS)),
}


def _write() -> str:
    """Show the text to write in, and return it as it is now."""
    text = st.text_area(
        "Expression",
        key="expression",
        height="content",
        help=_HELP,  # no max_chars: the page would never hear of a text that is too long
        **KEPT,
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Run", icon=":material/play_arrow:", type="primary", key="run")
        st.caption("or Ctrl + Enter. The page's address keeps the text: share it.")
    return text


def _take_example() -> None:
    if st.session_state.example:
        st.session_state.expression = EXAMPLES[st.session_state.example]


_HELP = f"""
Give numbers a name, and they are a variable with a gradient: `W = [[1, 2], [3, 4]]`, `b = randn(3) / 10`.
Numbers within an expression are constants, and so is `constant([1, 2])`. The last line is the value. At most
{MOST_CHARACTERS:,} characters are read.

Operators: `+ - * / ** ^ @`, comparisons `< <= > >=`, parts `x[0, 1:]`, `x.T`, and `for i in range(3):`.

Functions, most of them methods too: {", ".join(f"`{name}`" for name in FUNCTIONS)}.
"""


# The result, in words and numbers.


def _tell(error: ExpressionError, text: str) -> None:
    """Say what is wrong, and where."""
    reason = error.reason if error.reason.endswith(("?", ".")) else error.reason + "."
    st.error(f"Line {error.line}: {as_text(reason)}", icon=":material/error:")
    lines = text.replace("\r\n", "\n").split("\n")
    rows = []
    for i in range(max(error.line - 2, 1), min(error.line + 1, len(lines)) + 1):
        line = lines[i - 1][:300]
        if i == error.line:
            before, marked = line[: error.column - 1], line[error.column - 1 : error.end_column - 1] or " "
            line = f"{escape(before)}<mark>{escape(marked)}</mark>{escape(line[error.end_column - 1 :])}"
        else:
            line = escape(line)
        rows.append(f"<i>{i:>2}  </i>{line}")
    st.html(f'<div class="explorer"><pre>{"<br>".join(rows)}</pre></div>')


def _tell_values(result: Result) -> None:
    """The value, and the leaves with their gradients."""
    name, value = escape(result.name), result.value
    head = f'<tr class="value"><td>{name}</td><td colspan="2">{_numbers(value)}</td></tr>'
    rows = "".join(
        f"<tr><td><b>{escape(leaf)}</b></td><td>{_numbers(x)}</td>"
        f'<td class="gradient">{"none" if x.grad is None else _numbers(x.grad)}</td></tr>'
        for leaf, x in result.leaves.items()
    )
    titles = f"<tr><th>variable</th><th>value</th><th>gradient of {name}</th></tr>" if rows else ""
    st.html(f'<div class="explorer"><table>{head}{titles}{rows}</table></div>')
    strange = explain(result)
    if strange:
        st.warning(as_text(strange), icon=":material/all_inclusive:")
    if not value.requires_grad:
        st.info("This value is a constant: no variable leads to it, so there is no gradient.")
    elif value.size > 1:
        name = as_text(result.name)
        st.caption(f"{name} has shape {value.shape}: gradients are those of the sum of its elements.")


def _numbers(tensor: Tensor) -> str:
    if not tensor.shape:
        return number(tensor.item())
    rows = rows_of(tensor.numpy())
    if len(rows) < 2:
        return escape(" ".join(cell for row in rows for cell in row))
    cells = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<table class="matrix">{cells}</table>'


# The result, drawn.


@st.fragment
def _show_views(text: str, result: Result) -> None:
    st.segmented_control("Show", VIEWS, format_func=VIEWS.__getitem__, key="view", required=True, **KEPT)
    write_address(ENTRIES)
    view, leaf = st.session_state.view, ""
    if view == "memory":
        memory = viz.memory(result.value, names=result.names)
        pictures.show(pictures.Drawn.of(memory), key="picture_memory")
        return
    if view != "forward" and not result.value.requires_grad:
        st.info("A constant has no gradient. Give a number or a list a name, and compute with it.")
        return
    if view == "second":
        leaf = _choose_leaf(result)
        if not leaf:
            return
    _show(text, view, leaf)


@st.fragment
def _show_error(text: str) -> None:
    st.caption("The graph up to the operation that failed:")
    _show(text, "error")


def _choose_leaf(result: Result) -> str:
    """Let the user choose the variable whose gradient is differentiated again; empty if there is none."""
    leaves = [name for name, x in result.leaves.items() if x.grad is not None and x.grad.requires_grad]
    if not leaves:
        st.info("No gradient depends on a variable here: all second derivatives are 0.")
        return ""
    if st.session_state.get("leaf") not in leaves:
        st.session_state.leaf = leaves[0]
    st.pills(
        "Differentiate once more the gradient of", leaves, format_func=as_text, key="leaf", required=True
    )
    leaf = st.session_state.leaf
    if result.leaves[leaf].size > 1:
        st.caption(f"The gradient of {as_text(leaf)} has several elements: their sum is differentiated.")
    return leaf


def _style() -> str:
    look = st.session_state.look
    return look if look != "auto" else "dark" if is_dark() else "needle"


@st.cache_resource(max_entries=48, show_spinner="Drawing …")
def _picture(text: str, view: str, style: str, direction: str, leaf: str) -> pictures.Drawn | Exception:
    """The graph of a text, or why there is none. Everybody who asks for the same graph shares it."""
    try:
        return pictures.Drawn.of(_graph(text, view, style, direction, leaf))
    except (viz.CannotRender, ValueError) as error:  # ValueError: too many steps
        return error.with_traceback(None)


def _graph(text: str, view: str, style: str, direction: str, leaf: str) -> viz.Drawing | viz.Steps:
    outcome = _outcome(text)
    options: dict[str, Any] = {"style": style, "rankdir": direction, "limit": MOST_DRAWN}
    if isinstance(outcome, ExpressionError):
        return viz.draw_error(outcome.failure, names=outcome.names, **options)
    options["names"] = dict(outcome.names)
    if view == "steps":
        return viz.steps(outcome.value, **options | {"limit": MOST_STEPPED})
    if view == "forward":
        return viz.draw(outcome.value, **options)
    if view == "gradient":
        return viz.draw_gradient(outcome.value, **options)
    gradient = outcome.leaves[leaf].grad
    options["names"] |= {f"{leaf}.grad": gradient}
    return viz.draw_gradient(gradient, **options)


def _show(text: str, view: str, leaf: str = "") -> None:
    """Show the picture, and below it the choices of its look and its file."""
    place = st.container()
    quiet: dict[str, Any] = {"label_visibility": "collapsed", **KEPT}
    with st.container(horizontal=True, gap="small"):
        st.selectbox("Style", STYLES, format_func=STYLES.__getitem__, key="look", width=150, **quiet)
        st.selectbox(
            "Direction", DIRECTIONS, format_func=DIRECTIONS.__getitem__, key="direction", width=190, **quiet
        )
        with place:
            drawn = _picture(text, view, _style(), st.session_state.direction, leaf)
            if isinstance(drawn, Exception):
                st.warning(as_text(str(drawn)), icon=":material/image_not_supported:")
                return
            pictures.show(drawn, key=f"picture_{view}")
        for kind in _kinds(drawn.picture):
            st.download_button(
                kind.upper(),
                partial(_file, drawn.picture, kind),
                file_name=f"{view}.{kind}",
                icon=":material/download:",
                key=f"download_{kind}",
                on_click="ignore",
            )
    write_address(ENTRIES)


def _kinds(picture: viz.Drawing | viz.Steps) -> list[str]:
    """The formats in which a picture can be saved."""
    if isinstance(picture, viz.Steps):
        return ["html"]  # a GIF would keep a processor busy for ten seconds
    points = [float(size) for size in re.findall(r'(?:width|height)="([\d.]+)pt"', picture.svg())[:2]]
    fits = max(points, default=0) * PNG_DPI / 72 <= LARGEST_PNG
    return ["svg", *(["png"] if fits else []), "pdf", "html"]


def _file(picture: viz.Drawing | viz.Steps, kind: str) -> bytes:
    with TemporaryDirectory() as folder:
        return picture.save(Path(folder) / f"graph.{kind}").read_bytes()
