"""What a reader hands in where no server gives marks: a small sealed file, with the cells of each answer."""

import hmac
import json
import linecache
from importlib import metadata
from typing import Any

from .attempt import codes_of, unwrapped, within_reach


def seal(marks: dict[str, Any]) -> str:
    """The seal of a file of marks: HMAC-SHA256 of its JSON, with a key that anyone can read in the next lines.

    So it tells a file that is damaged, or edited by hand, and proves nothing. To run its answers again gives the mark.
    """
    text = json.dumps({key: marks[key] for key in marks if key != "seal"}, sort_keys=True)
    return hmac.new(b"the marks of the lectures", text.encode(), "sha256").hexdigest()


def version() -> str:
    """The version of the lectures that runs here; "" where it is not installed."""
    return next((found.version for found in metadata.distributions(name="needle-notebooks")), "")


def cells_of(answer: Any) -> list[str]:
    """The cells that an answer needs: those of the helpers that it reaches, and last the one that defines it."""
    # IPython keeps the source of a cell where Python looks for lines, and no file's time with it.
    kept = {name: lines[2] for name, lines in linecache.cache.items() if len(lines) > 2 and lines[1] is None}
    own = [code.co_filename for code in codes_of(unwrapped(answer)) if code.co_filename in kept][:1]
    reached = {code.co_filename for code in within_reach(answer)[0]}.difference(own) if own else ()
    return ["".join(kept[name]).rstrip() for name in [*(name for name in kept if name in reached), *own]]
