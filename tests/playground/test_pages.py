"""What all pages have in common, without a browser: whatever an address or a person asks for, they answer."""

from __future__ import annotations

import pytest

from playground.pages import classifier, digits, explorer, maths, modules, tensor
from playground.pages.pictures import Drawn

from .apps import address_of, plain, refused, run, said, start

LONG = "9" * 5000


@pytest.fixture(autouse=True)
def without_trees(monkeypatch):
    """The trees of modules take a second each, and have tests of their own."""
    monkeypatch.setattr(modules, "_tree", lambda model: Drawn(None, "<p>tree</p>"))


#: For each page: what an address may ask for, and does not get.
IMPOSSIBLE = {
    "maths": {"mode": "volume", "range": "0", "x": "nan", "y": "1e400", "f": "x" * 301, "g": "y" * 3000},
    "classifier": {"data": "<b>", "seed": "-1", "rate": "1e9", "gradient": "maybe", "w1": "inf", "b": LONG},
    "tensor": {"shape": "0, 4", "view": "a" * 201, "index": "-1,x"},
    "modules": {"network": "resnet152", "width": "1e3", "blocks": LONG},
    "digits": {"network": "$a$", "seed": "٣.٥"},
    "explorer": {"view": "all", "style": "neon", "rankdir": "XY", "text": "x" * 2001},
}


@pytest.mark.parametrize("page", IMPOSSIBLE)
def test_an_address_that_is_not_possible_is_told_in_one_quiet_line(page):
    app = start(page, **IMPOSSIBLE[page])
    (line,) = [line for line in said(app) if line.startswith("The page's address has ")]
    assert line.endswith("that isn't possible, so the defaults are used.")
    for name, value in IMPOSSIBLE[page].items():
        assert f"{name}={value[:30]}" in line
    assert not refused(app)
    assert not address_of(app)
    assert not [line for line in said(run(app)) if line.startswith("The page's address")]


@pytest.mark.parametrize(
    ("page", "address"),
    [
        ("maths", {"mode": "surface", "f": "x ** 3", "g": "x * y", "range": "6", "x": "1.5", "y": "-2.0"}),
        (
            "classifier",
            {"data": "xor", "seed": "3", "rate": "1.0", "gradient": "True", "w1": "-2", "b": "0.25"},
        ),
        ("tensor", {"shape": "2, 3, 4", "view": "a.permute(2, 0, 1)", "index": "3,1,2"}),
        ("modules", {"network": "transformer", "features": "64", "heads": "8", "layers": "2"}),
        ("digits", {"network": "layers", "seed": "7"}),
    ],
)
def test_an_address_brings_a_page_back(page, address):
    app = start(page, **address)
    assert address_of(app) == address
    assert not refused(app)
    assert not [line for line in said(app) if "address" in line]
    assert address_of(run(app)) == address


def test_what_an_address_says_is_no_markdown():
    (caption, *_) = start("digits", network="[a](//b.c)").caption
    assert r"\[a\]\(//b\.c\)" in caption.value
    assert "[a](//b.c)" in plain(caption.value)


@pytest.mark.parametrize("module", [classifier, digits, explorer, maths, modules, tensor])
def test_every_default_can_be_read_back(module):
    entries = (
        module.ENTRIES
        if hasattr(module, "ENTRIES")
        else {
            key: entry for network in modules.NETWORKS for key, entry in modules.entries_of(network).items()
        }
    )
    for entry in entries.values():
        assert entry.read(entry.write(entry.default)) == entry.default
