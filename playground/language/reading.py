"""Read the text of an expression with `ast`, and let through only what is part of the language.

Two kinds of text are refused before Python sees them: what Python would read in its own way (quotes,
keywords, letters that look like others), and what its parser cannot take (deep brackets, huge numbers).
"""

from __future__ import annotations

import ast
import keyword
import re
import unicodedata

from needle import Tensor

__all__ = ["DEEPEST", "LARGEST_NUMBER", "MOST_CHARACTERS", "ExpressionError", "read"]

MOST_CHARACTERS = 2000
MOST_LINES = 60
LONGEST_LINE = 200
LONGEST_NAME = 30
DEEPEST = 40  # of nested operations, and of nested brackets
LARGEST_NUMBER = 1e30  # written or computed; a Tensor's own elements may well become infinite


class ExpressionError(ValueError):
    """A text that can't be run. The only exception that this module and `expression` raise.

    Attributes
    ----------
    reason : str
        What came, and what is possible.
    line, column, end_column : int
        Where it begins, counted from 1, and where on that line it ends.
    failure : Exception or None
        What an operator raised, with its `op` and `inputs`, so that the graph up to there can be drawn.
    names : dict from str to Tensor
        The Tensors that had a name by then.
    """

    def __init__(
        self, reason: str, line: int, column: int, end_column: int = 0, failure: Exception | None = None
    ) -> None:
        super().__init__(f"line {line}, column {column}: {reason}")
        self.reason = reason
        self.line = line
        self.column = column
        self.end_column = max(end_column, column + 1)
        self.failure = failure
        self.names: dict[str, Tensor] = {}


_TOKEN = re.compile(
    r"""(?P<space>[ ]+) | (?P<comment>\#.*) | (?P<newline>\n)
    | (?P<number>(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?) | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
    | (?P<open>[(\[]) | (?P<close>[)\]])
    | (?P<sign>\*\*=|[*+\-/@]=|\*\*|<=|>=|[-+*/@<>=,.:;^])""",
    re.VERBOSE | re.ASCII,
)
_REFUSED_SIGNS = {
    "==": "compare with <, <=, > or >=",
    "!=": "compare with <, <=, > or >=",
    "//": "divide with /",
    ":=": "assign with = on a line of its own",
    "->": "you can't define functions",
    "%": "there is no remainder",
    '"': "there is no text in quotes",
    "'": "there is no text in quotes",
    "{": "there are no sets and dictionaries; a list is written with [ ]",
    "}": "there are no sets and dictionaries; a list is written with [ ]",
    "\\": "a line goes on by itself inside brackets",
    "&": "multiply comparisons with *",
    "|": "add comparisons with +",
    "~": "subtract a comparison from 1",
    "<<": "multiply by a power of 2",
    ">>": "divide by a power of 2",
    "<>": "compare with <, <=, > or >=",
    "×": "multiply with *",
    "·": "multiply with *",
    "÷": "divide with /",
    "−": "subtract with -",
    "–": "subtract with -",
    "√": "write sqrt(x)",
    "²": "a power is written with **",
    "³": "a power is written with **",
    "≤": "compare with <=",
    "≥": "compare with >=",
}  # fmt: skip
_REFUSED_WORDS = {
    "lambda": "you can't define functions",
    "def": "you can't define functions",
    "class": "you can't define classes",
    "import": "there is nothing to import; all functions are there",
    "from": "there is nothing to import; all functions are there",
    "if": "use where(condition, a, b)",
    "else": "use where(condition, a, b)",
    "elif": "use where(condition, a, b)",
    "while": "repeat with for i in range(n)",
    "and": "multiply comparisons with *",
    "or": "use maximum(a, b)",
    "not": "subtract a comparison from 1",
    "None": "leave the argument out",
    "True": "write 1",
    "False": "write 0",
    "return": "the last line is the value",
    "print": "the last line is shown",
}


def read(text: str) -> ast.Module:
    """The syntax tree of a text, once its characters, words and brackets have been checked."""
    if len(text) > MOST_CHARACTERS:
        reason = f"the text has {len(text):,} characters; at most {MOST_CHARACTERS:,} are read. Shorten it"
        raise ExpressionError(reason, 1, 1)
    text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        reason = f"the text has {len(lines)} lines; at most {MOST_LINES} are read. Shorten it"
        raise ExpressionError(reason, MOST_LINES + 1, 1)
    for number, line in enumerate(lines, start=1):
        if len(line) > LONGEST_LINE:
            reason = f"the line has {len(line):,} characters; at most {LONGEST_LINE} are read. Break it up"
            raise ExpressionError(reason, number, LONGEST_LINE + 1)
    code = "\n".join(_without_comment(line, number) for number, line in enumerate(lines, start=1))
    _check_brackets(code)
    try:
        tree = ast.parse(code.replace("^", "**"))  # many write x^2
    except SyntaxError as error:
        at = error.lineno or 1
        line = lines[min(at, len(lines)) - 1]
        column = _written_at(line, max(error.offset or 1, 1) - 1) + 1
        why = _not_read((error.msg or "invalid syntax").split(" (")[0], line[column - 1 :].strip())
        raise ExpressionError(f"this can't be read: {why}", min(at, len(lines)), column) from None
    except (MemoryError, RecursionError):
        raise ExpressionError(
            "too many operations are nested; give parts of the expression a name", 1, 1
        ) from None
    if not tree.body:
        raise ExpressionError("there is nothing here yet; write an expression, such as 1 + 2", 1, 1)
    if "^" in code:
        for node in ast.walk(tree):
            if isinstance(node, (ast.expr, ast.stmt)):
                node.col_offset = _written_at(lines[node.lineno - 1], node.col_offset)
                end = (node.end_lineno or node.lineno) - 1
                node.end_col_offset = _written_at(lines[end], node.end_col_offset or 0)
    return tree


def _written_at(line: str, column: int) -> int:
    """Where a column of the line with ** for ^ is in the line as it was written; both count from 0."""
    at = 0
    for place, character in enumerate(line):
        at += 2 if character == "^" else 1
        if at > column:
            return place
    return len(line) + column - at


def _not_read(why: str, rest: str) -> str:
    """Why Python's parser could not go on at `rest`."""
    if why.startswith("cannot assign"):
        return "only a name can be assigned to, such as y = x + 1; you can't define functions"
    if why != "invalid syntax":
        return why
    if not rest:
        return "something is missing at the end of the line"
    return f"“{rest:.20}” doesn't fit here; put an operator or a new line before it, or delete it"


def _without_comment(line: str, number: int) -> str:
    """The line up to its comment, once everything in it is known to be part of the language."""
    code, before, signs = "", "space", 0
    while len(code) < len(line):
        at = len(code)
        if not line[at].isprintable():
            what = f"the character U+{ord(line[at]):04X} isn't supported; "
            way_out = "indent with spaces" if line[at] == "\t" else "delete it and type it again"
            raise ExpressionError(what + way_out, number, at + 1)
        for sign in (line[at : at + 2], line[at]):
            if sign in _REFUSED_SIGNS:
                raise ExpressionError(f"{sign} isn't supported here: {_REFUSED_SIGNS[sign]}", number, at + 1)
        match = _TOKEN.match(line, at)
        if match is None:
            raise ExpressionError(_not_a_character(line[at]), number, at + 1)
        kind, token = str(match.lastgroup), match[0]
        if kind == "comment":
            odd = next((i for i, character in enumerate(token) if not character.isprintable()), None)
            if odd is not None:
                reason = f"the character U+{ord(token[odd]):04X} isn't supported, not even in a comment"
                raise ExpressionError(f"{reason}; delete it", number, at + odd + 1)
            break
        reason = _refusal(kind, token, before)
        if reason:
            raise ExpressionError(reason, number, at + 1)
        signs = signs + 1 if kind == "sign" else signs if kind == "space" else 0
        if signs > 4:
            reason = f"{token} is one sign too many in a row; put brackets around a part, or take some away"
            raise ExpressionError(reason, number, at + 1)
        code, before = code + token, kind
    return code


def _refusal(kind: str, token: str, before: str) -> str:
    """Why a token is refused; empty if it is not."""
    if kind == "name":
        if before == "number":
            return f"{token} follows a number; write * between them, and numbers in decimal digits"
        if token in _REFUSED_WORDS:
            return f"{token} isn't supported here: {_REFUSED_WORDS[token]}"
        if keyword.iskeyword(token) and token not in ("for", "in"):
            return f"{token} is a word of Python that isn't supported here; choose another name"
        if token.startswith("_") or token.endswith("_") or "__" in token:
            return f"names begin and end with a letter or a digit and have no __ inside, unlike {token:.40}"
        if len(token) > LONGEST_NAME:
            return (
                f"a name has at most {LONGEST_NAME} letters, this one has {len(token)}; choose a shorter one"
            )
    elif kind == "number":
        if before in ("name", "number"):
            return f"{token:.40} follows a name or a number; write * between them"
        if len(token) > 1 and token.isdigit() and token.startswith("0"):
            return f"{token:.40} begins with 0; write the number without it"
        if not float(token) <= LARGEST_NUMBER:
            return f"the number {token:.40} is too large; at most {LARGEST_NUMBER:g} can be used"
    return ""


def _not_a_character(character: str) -> str:
    name = unicodedata.name(character, "a character").lower()
    return f"{character} ({name}) isn't supported here; use the letters a to z, digits and + - * / @ ( )"


def _check_brackets(code: str) -> None:
    """Refuse brackets that are nested too deep for Python's parser, or that do not match."""
    opened: list[tuple[str, int, int]] = []
    for number, line in enumerate(code.split("\n"), start=1):
        for at, character in enumerate(line, start=1):
            if character in "([":
                opened.append((character, number, at))
                if len(opened) > DEEPEST:
                    reason = (
                        f"brackets are nested more than {DEEPEST} deep; give parts of the expression a name"
                    )
                    raise ExpressionError(reason, number, at)
            elif character in ")]" and (not opened or opened.pop()[0] + character not in ("()", "[]")):
                raise ExpressionError(f"{character} closes no bracket; take it away", number, at)
    if opened:
        bracket, number, at = opened[-1]
        raise ExpressionError(
            f"{bracket} is never closed; close it with {')]'['(['.index(bracket)]}", number, at
        )
