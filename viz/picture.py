"""`Picture`: what all that draws gives back. It shows itself and saves itself."""

from __future__ import annotations

import html
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from .engines import CannotRender
from .style import Style, style_called

__all__ = ["LivePicture", "Picture"]

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
html {{ color-scheme: light dark; background: {background}; }}
body {{ margin: 0 auto; padding: 16px; max-width: 1800px; }}
</style>
{fragment}
</html>
"""


class Picture:
    """A picture. In a notebook it shows itself.

    Elsewhere, `html` gives a piece of a web page, and `save` writes a file.

    Attributes
    ----------
    title : str
        What it shows, in words.
    style : Style
        Only if it has a look of its own, and not the one that `set_style` has chosen.
    """

    title: str
    style: Style
    formats: ClassVar[tuple[str, ...]] = ("svg", "png", "pdf", "html")

    def html(self) -> str:
        """The picture as a piece of a web page that needs nothing else.

        Raises
        ------
        CannotRender
            If Graphviz is needed and missing.
        """
        raise NotImplementedError

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the picture to a file. Its suffix names the format; `formats` says which there are.

        Returns
        -------
        Path
            Where it was written.

        Raises
        ------
        ValueError
            For another suffix, and for a picture that is too large for its format.
        CannotRender
            If Graphviz is needed and missing.
        """
        path = Path(path)
        kind = path.suffix.lower().removeprefix(".")
        if kind not in self.formats:
            *others, last = (f".{x}" for x in self.formats)
            endings = f"{', '.join(others)} or {last}" if others else last
            raise ValueError(f"save: cannot write {path.name!r}; end the name in {endings}{self._instead()}")
        path.write_bytes(self._page().encode() if kind == "html" else self._file(kind))
        return path

    def _instead(self) -> str:
        """How to save in another format, as the end of a message."""
        return ""

    def _file(self, kind: str) -> bytes:
        """The content of a file of one of the `formats` but "html"."""
        raise NotImplementedError

    def _page(self) -> str:
        """A page of its own."""
        return self._as_page(self.html())

    def _as_page(self, fragment: str) -> str:
        style = getattr(self, "style", None) or style_called(None)
        background = style.css(style.background)
        return _PAGE.format(fragment=fragment, title=html.escape(self.title), background=background)

    def __repr__(self) -> str:
        return f"<{self.title}>"

    def _repr_html_(self) -> str:
        try:
            return self.html()
        except CannotRender as error:
            return f"<pre>{html.escape(self._in_words(error))}</pre>"

    def _in_words(self, error: CannotRender) -> str:
        """What takes the place of the picture where Graphviz is missing."""
        return str(error)


class LivePicture(Picture):
    """A picture that a running kernel moves: it has a `widget`, and is still where no kernel runs."""

    @property
    def widget(self) -> Any:
        """The picture as a widget (an `anywidget.AnyWidget`).

        Raises
        ------
        ImportError
            If the package anywidget is missing.
        """
        raise NotImplementedError

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget, and a piece of a page where there is no kernel."""
        shown = {"text/html": self._repr_html_(), "text/plain": repr(self)}
        try:
            bundle = self.widget._repr_mimebundle_(**kwargs)
        except (ImportError, CannotRender):
            return shown
        data, metadata = bundle or ({}, {})
        return {**data, **shown}, metadata
