"""Questions that the reader answers before the next cell does.

A lecture's questions stand in the TOML file beside its module. One has answers to choose from, each with what
is said of it::

    ["sum or product"]
    question = "What is the derivative of `a * b` with respect to `a`?"
    right = "b"
    answers."a" = "No: …"
    answers."b" = "Yes. …"

``predict("sum or product")`` shows it. Each answer is a line that opens when you click it or press Enter on
it, and says whether it is right; another answer closes it. That is plain HTML without scripts, so it works in
JupyterLab, VS Code, Colab and exported pages.

In place of `answers`, a question may have `replies`: then the answer is typed into a box, `why` is said of the
right one, each reply of its wrong answer, and `otherwise` of all others. Where scripts do not run there is no
box, and the answer is folded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape
from string import Template
from typing import Any

STYLE = """\
<style>
.needle-predict { border-left: 3px solid #D97706; padding: 2px 12px; margin: 4px 0; max-width: 46em;
  font-family: system-ui, sans-serif; font-size: 14px; line-height: 1.5; color: inherit }
.needle-predict p { margin: 4px 0 }
.needle-predict details { border: 1px solid rgba(128, 128, 128, .45); border-radius: 6px;
  margin: 6px 0; padding: 0 10px }
.needle-predict summary { cursor: pointer; padding: 5px 0 }
.needle-predict details p { margin: 0 0 8px }
.needle-predict input, .needle-predict button { font: inherit; padding: 4px 8px; margin: 2px 4px 2px 0 }
</style>"""


class Question:
    """A question as a notebook shows it."""

    def __init__(self, words: str, page: str):
        self.words = words
        self.page = page

    def _repr_html_(self) -> str:
        return self.page

    def __repr__(self) -> str:
        return f"Predict: {self.words}"


def question(name: str, entries: Mapping[str, Any]) -> Question:
    """A question, of what stands under its name in the TOML file.

    Raises
    ------
    ValueError
        If its right answer is none of those to choose from.
    """
    words, right = entries["question"], entries["right"]
    if "answers" not in entries:
        return Question(words, _page(words, _box(entries)))
    answers = entries["answers"]
    if right not in answers:
        raise ValueError(f"{name}: {right!r} is none of the answers {list(answers)}")
    group = "needle-predict-" + re.sub(r"\W+", "-", name)  # one answer is open at a time
    lines = [
        f'<details name="{group}"><summary>{_html(answer)}</summary>'
        f"<p>{'✓' if answer == right else '✗'} {_html(reply)}</p></details>"
        for answer, reply in answers.items()
    ]
    return Question(words, _page(words, "\n".join(lines)))


def _box(entries: Mapping[str, Any]) -> str:
    """A folded answer, and a script that puts a box above it."""
    right, why, otherwise = entries["right"], entries["why"], entries["otherwise"]
    fold = f"<details><summary>Show the answer</summary><p>{_html(right)}. {_html(why)}</p></details>"
    table = {_plain(answer): "✗ " + _html(reply) for answer, reply in entries.get("replies", {}).items()}
    table[_plain(right)] = "✓ " + _html(why)
    return fold + BOX.substitute(
        table=_json(table), otherwise=_json("✗ " + _html(otherwise)), size=max(12, len(right))
    )


def _page(words: str, answers: str) -> str:
    return f'{STYLE}\n<div class="needle-predict"><p><b>Predict.</b> {_html(words)}</p>\n{answers}\n</div>'


#: Puts a box for the answer above the folded one. Numbers are equal if they are equal as numbers.
BOX = Template("""
<script>
(() => {
  const replies = new Map(Object.entries($table));
  const fold = document.currentScript.previousElementSibling;
  const form = document.createElement("form");
  form.innerHTML = `<input aria-label="Your answer" size="$size" autocomplete="off"><button>Answer</button>
    <p role="status" style="min-height: 1.5em"></p>`;
  const plain = (text) => {
    let short = text.trim().toLowerCase().replaceAll("−", "-").replace(/\\s+/g, " ");
    const inThousands = /^-?[1-9]\\d{0,2}([, ]\\d{3})+(\\.\\d+)?$$/.test(short);  // 4,640 or 4 640
    short = inThousands ? short.replace(/[, ]/g, "") : short.replace(",", ".");
    return short !== "" && isFinite(short) ? String(Number(short)) : short;
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const answer = plain(form.querySelector("input").value);
    form.querySelector("p").innerHTML = answer === "" ? "" : replies.get(answer) ?? $otherwise;
  });
  // A notebook takes single keys as commands unless they stay in the box.
  form.addEventListener("keydown", (event) => event.stopPropagation());
  fold.before(form);
})();
</script>""")


def _plain(answer: str) -> str:
    """An answer as the script compares it."""
    short = re.sub(r"\s+", " ", answer.strip().lower().replace("−", "-"))
    try:
        return f"{float(short):.15g}"
    except ValueError:
        return short


def _json(value: object) -> str:
    """A value inside a script: no text may end it."""
    return json.dumps(value, ensure_ascii=False).replace("</", "<\\/")


def _html(text: str) -> str:
    """Text as HTML, with code between backquotes."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
