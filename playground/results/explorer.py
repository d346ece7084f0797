"""What the Explorer shows of an expression: its value and gradients, its graphs, its memory.

The app's page and the site's are made of this.
"""

from __future__ import annotations

import json
from functools import lru_cache
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import viz
from needle import Tensor
from viz.text import number, rows_of

from ..language.expression import FUNCTIONS, MOST_CHARACTERS, ExpressionError, Result, run
from ..language.not_finite import explain

__all__ = [
    "ADJOINT", "DIRECTIONS", "EXAMPLES", "HELP", "STYLES", "VIEWS", "as_file", "as_html", "compute", "draw",
    "leaves_of", "marked", "nothing_to_draw", "of_leaf", "outcome", "picture", "remarks", "save", "sentence",
    "table",
]  # fmt: skip

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

ADJOINT = "The adjoint of a value is the derivative of the result with respect to that value."
NO_GRADIENT = "A constant has no gradient. Give a number or a list a name, and compute with it."
NO_SECOND = "No gradient depends on a variable here: all second derivatives are 0."

HELP = f"""
Give numbers a name, and they are a variable with a gradient: `W = [[1, 2], [3, 4]]`, `b = randn(3) / 10`.
Numbers within an expression are constants, and so is `constant([1, 2])`. The last line is the value. At most
{MOST_CHARACTERS:,} characters are read.

Operators: `+ - * / ** ^ @`, comparisons `< <= > >=`, parts `x[0, 1:]`, `x.T`, and `for i in range(3):`.

Functions, most of them methods too: {", ".join(f"`{name}`" for name in FUNCTIONS)}.
"""


@lru_cache(maxsize=16)
def outcome(text: str) -> Result | ExpressionError:
    """What a text computes, with its gradients, or why it does not. Who asks for the same text shares it."""
    try:
        result = run(text)
        if result.value.requires_grad:
            result.backward()
    except ExpressionError as error:
        return error
    return result


# In words and numbers.


def sentence(error: ExpressionError) -> str:
    """What is wrong."""
    end = "" if error.reason.endswith(("?", ".")) else "."
    return f"Line {error.line}: {error.reason}{end}"


def marked(error: ExpressionError, text: str) -> str:
    """Where it is wrong: the lines around it, as HTML."""
    lines = text.replace("\r\n", "\n").split("\n")
    rows = []
    for i in range(max(error.line - 2, 1), min(error.line + 1, len(lines)) + 1):
        line = lines[i - 1][:300]
        if i == error.line:
            before, place = line[: error.column - 1], line[error.column - 1 : error.end_column - 1] or " "
            line = f"{escape(before)}<mark>{escape(place)}</mark>{escape(line[error.end_column - 1 :])}"
        else:
            line = escape(line)
        rows.append(f"<i>{i:>2}  </i>{line}")
    return f'<div class="explorer"><pre>{"<br>".join(rows)}</pre></div>'


def table(result: Result) -> str:
    """The value, and the variables with their gradients, as HTML."""
    name, value = escape(result.name), result.value
    head = f'<tr class="value"><td>{name}</td><td colspan="2">{_numbers(value)}</td></tr>'
    rows = "".join(
        f"<tr><td><b>{escape(leaf)}</b></td><td>{_numbers(x)}</td>"
        f'<td class="gradient">{"none" if x.grad is None else _numbers(x.grad)}</td></tr>'
        for leaf, x in result.leaves.items()
    )
    titles = f"<tr><th>variable</th><th>value</th><th>gradient of {name}</th></tr>" if rows else ""
    return f'<div class="explorer"><table>{head}{titles}{rows}</table></div>'


def _numbers(tensor: Tensor) -> str:
    if not tensor.shape:
        return number(tensor.item())
    rows = rows_of(tensor.numpy())
    if len(rows) < 2:
        return escape(" ".join(cell for row in rows for cell in row))
    cells = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<table class="matrix">{cells}</table>'


def remarks(result: Result) -> list[tuple[str, str]]:
    """What else is to be said of a value, each with its kind: "warning", "info" or "caption"."""
    not_finite = explain(result)
    said = [("warning", not_finite)] if not_finite else []
    if not result.value.requires_grad:
        said.append(("info", "This value is a constant: no variable leads to it, so there is no gradient."))
    elif result.value.size > 1:
        shape = f"{result.name} has shape {result.value.shape}"
        said.append(("caption", f"{shape}: gradients are those of the sum of its elements."))
    return said


# Drawn.


def leaves_of(result: Result) -> list[str]:
    """The variables whose gradient can be differentiated once more."""
    return [name for name, x in result.leaves.items() if x.grad is not None and x.grad.requires_grad]


def nothing_to_draw(result: Result, view: str) -> str:
    """Why a view shows nothing; empty if it shows something."""
    if view not in ("forward", "memory") and not result.value.requires_grad:
        return NO_GRADIENT
    return NO_SECOND if view == "second" and not leaves_of(result) else ""


def of_leaf(result: Result, leaf: str) -> str:
    """What is to be said of the second order; mostly nothing."""
    several = result.leaves[leaf].size > 1
    return f"The gradient of {leaf} has several elements: their sum is differentiated." if several else ""


@lru_cache(maxsize=48)
def picture(
    text: str, view: str, style: str | None = None, direction: str = "LR", leaf: str = ""
) -> viz.Picture:
    """What a view shows of a text; for a text that is wrong, the graph up to the mistake.

    Parameters
    ----------
    text, view : str
    style : str or None
        As for `viz.draw`, and so is `direction` as its ``rankdir``.
    direction : str
    leaf : str
        Of the second order, the variable whose gradient is differentiated once more.

    Raises
    ------
    ValueError
        If there are too many steps.
    """
    found = outcome(text)
    options: dict[str, Any] = {"style": style, "rankdir": direction, "limit": MOST_DRAWN}
    if isinstance(found, ExpressionError):
        return viz.draw_error(found.failure, names=found.names, **options)
    if view == "memory":
        return viz.memory(found.value, names=found.names)
    options["names"] = dict(found.names)
    if view == "steps":
        return viz.steps(found.value, **options | {"limit": MOST_STEPPED})
    if view == "forward":
        return viz.draw(found.value, **options)
    if view == "gradient":
        return viz.draw_gradient(found.value, **options)
    gradient = found.leaves[leaf].grad
    options["names"] |= {f"{leaf}.grad": gradient}
    return viz.draw_gradient(gradient, **options)


def as_html(shown: Any) -> str:
    """A picture as a piece of a page in which scripts run: steps need no picture for where they do not.

    In graphs words are text anyway; in figures they become text, so that they have the page's font.
    """
    if isinstance(shown, viz.Steps):
        return shown.html(still=False)
    return shown.html() if isinstance(shown, viz.Drawing) else shown.html(as_text=True)


def as_file(shown: viz.Picture, kind: str) -> bytes:
    """A picture as it is saved."""
    with TemporaryDirectory() as folder:
        return shown.save(Path(folder) / f"graph.{kind}").read_bytes()


# For a page that asks from outside Python.


def compute(text: str) -> str:
    """What a text computes, as JSON: HTML, remarks, and the variables of the second order."""
    found = outcome(text)
    if isinstance(found, ExpressionError):
        said = [("error", sentence(found))]
        return json.dumps({"html": marked(found, text), "remarks": said, "fails": found.failure is not None})
    return json.dumps({"html": table(found), "remarks": remarks(found), "leaves": leaves_of(found)})


def draw(text: str, view: str, look: str, direction: str, leaf: str) -> str:
    """What a view shows, as JSON: HTML, or a sentence in its place, perhaps a remark."""
    found, remark = outcome(text), ""
    if isinstance(found, Result):
        nothing = nothing_to_draw(found, view)
        if nothing:
            return json.dumps({"remark": nothing})
        if view == "second":
            remark = of_leaf(found, leaf)
    try:
        html = as_html(picture(text, view, _style(look), direction, leaf))
    except (viz.CannotRender, ValueError) as error:  # ValueError: too many steps
        return json.dumps({"remark": str(error)})
    return json.dumps({"html": html, "remark": remark})


def save(text: str, view: str, look: str, direction: str, leaf: str, kind: str) -> str:
    """The file of a view."""
    return as_file(picture(text, view, _style(look), direction, leaf), kind).decode()


def _style(look: str) -> str | None:
    return None if look == "auto" else look
