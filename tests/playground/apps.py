"""Pages without a browser: start one from an address, run it, read what it says."""

from __future__ import annotations

import json
import re

from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from .hostile import HOSTILE

# Each start would read the metadata of all installed packages in search of components, for 0.15 s.
manifest_scanner.scan_component_manifests = list


def _script(name):
    from importlib import import_module

    import_module(f"playground.pages.{name}").page()


def start(page, **address):
    """The page of this name, opened at an address."""
    app = AppTest.from_function(_script, default_timeout=60, args=(page,))
    for name, value in address.items():
        app.query_params[name] = value
    return run(app)


def run(app):
    app.run()
    assert not app.exception
    return app


def said(app):
    """What the quiet lines say, as it is read."""
    return [plain(caption.value) for caption in app.caption]


def refused(app):
    return [plain(error.value) for error in app.error]


def plain(markdown):
    return re.sub(r"\\(.)", r"\1", markdown)


def address_of(app):
    return {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}


def shown(app):
    """What the page's own element shows."""
    (element,) = app.get("bidi_component")
    return json.loads(element.proto.json)


def takes_any_text(app, key):
    """Whatever is written into a field, the page shows an element or a sentence, and not both."""
    for texts in HOSTILE.values():
        app.text_input(key=key).set_value(texts[-1][:2000])
        run(app)
        assert len(refused(app)) + len(app.get("bidi_component")) == 1
