"""The page about modules: parameters counted by hand, shapes on the way, and sizes that do not fit."""

from __future__ import annotations

import pytest

from playground.pages import modules
from playground.pages.pictures import Drawn

from .apps import address_of, refused, run, start

BY_HAND = {
    "layers": (2 * 8 + 8) + (8 * 8 + 8) + (8 + 1),
    "residual": (64 * 64 + 64) + 3 * (64 * 32 + 32 + 2 * 32 + 32 * 64 + 64 + 2 * 64) + (64 * 10 + 10),
    "convolutions": (9 * 8 + 8) + (9 * 8 * 16 + 16) + (64 * 10 + 10),
    "transformer": 3 * 64 + 4 * 32 * 32 + 64 + (32 * 128 + 128) + (128 * 32 + 32),
    "recurrent": (16 + 32 + 2) * 4 * 32 + (32 + 32 + 2) * 4 * 32,
}
OUT = {
    "layers": (1, 1),
    "residual": (2, 10),
    "convolutions": (1, 10),
    "transformer": (1, 10, 32),
    "recurrent": (10, 1, 32),
}


@pytest.fixture
def without_picture(monkeypatch):
    """Building draws, which takes half a second."""
    monkeypatch.setattr(modules, "_tree", lambda model: Drawn(None, "<p>tree</p>"))


@pytest.mark.parametrize("network", modules.NETWORKS)
def test_parameters_and_shapes(network, without_picture):
    sizes = modules.NETWORKS[network].sizes
    built = modules.build.__wrapped__(network, **{name: size.start for name, size in sizes.items()})
    assert built.parameters == BY_HAND[network]
    assert built.shapes[-1][1] == OUT[network]


@pytest.mark.parametrize("network", modules.NETWORKS)
@pytest.mark.parametrize("end", ["low", "high"])
def test_every_limit_can_be_built(network, end, without_picture):
    sizes = modules.NETWORKS[network].sizes
    built = modules.build.__wrapped__(network, **{name: getattr(size, end) for name, size in sizes.items()})
    assert 0 < built.parameters < 10**7


@pytest.mark.parametrize("kernel", range(1, 6))
def test_kernels_of_every_size(kernel, without_picture):
    assert modules.build.__wrapped__("convolutions", channels=2, kernel=kernel).shapes[-1][1] == (1, 10)


def test_the_tree_is_drawn_and_another_network_chosen(monkeypatch):
    app = start("modules")
    (picture,) = app.get("bidi_component")
    assert "17,962 parameters" in picture.proto.json
    assert "data-theme=" in picture.proto.json
    monkeypatch.setattr(modules, "_tree", lambda model: Drawn(None, "<p>tree</p>"))
    app.pills(key="modules_network").select("transformer")
    run(app)
    app.number_input(key="modules_transformer_heads").set_value(3)
    assert refused(run(app)) == ["32 features can't be shared out evenly among 3 heads: choose a multiple."]
    assert address_of(app) == {"network": "transformer", "heads": "3"}
