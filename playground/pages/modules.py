"""The page on which networks show the tree of their modules, with their parameters and sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

import needle as ndl
import viz
from needle import Tensor, nn

from . import pictures
from .address import Entry, one_of, whole_number, write_address
from .opening import KEPT, open_page

__all__ = ["NETWORKS", "Built", "build", "entries_of", "page"]


@dataclass(frozen=True)
class Size:
    """A number that one chooses: its label, its limits and where it starts."""

    label: str
    low: int
    high: int
    start: int


@dataclass(frozen=True)
class Network:
    """A network that the page can build.

    Attributes
    ----------
    title, words : str
        What it is called, and what there is to see in it.
    sizes : dict from str to Size
        What one chooses, by the name of the builder's argument.
    build : callable
        Makes the network from these sizes.
    takes : callable
        The shape of its input, for these sizes.
    """

    title: str
    words: str
    sizes: dict[str, Size]
    build: Callable[..., nn.Module]
    takes: Callable[..., tuple[int, ...]]


_SEED: dict[str, Any] = {"device": ndl.cpu_numpy(), "rng": 0}
_PLACE: dict[str, Any] = {"device": ndl.cpu_numpy()}


def _layers(inputs: int, width: int, depth: int) -> nn.Module:
    widths = [inputs] + [width] * depth
    hidden = [
        part
        for fan_in, fan_out in pairwise(widths)
        for part in (nn.Linear(fan_in, fan_out, **_SEED), nn.ReLU())
    ]
    return nn.Sequential(*hidden, nn.Linear(width, 1, **_SEED), nn.Sigmoid())


def _residual(width: int, blocks: int) -> nn.Module:
    def block() -> nn.Module:
        inner = nn.Sequential(
            nn.Linear(width, width // 2, **_SEED),
            nn.BatchNorm1d(width // 2, **_PLACE),
            nn.ReLU(),
            nn.Linear(width // 2, width, **_SEED),
            nn.BatchNorm1d(width, **_PLACE),
        )
        return nn.Sequential(nn.Residual(inner), nn.ReLU())

    blocks_in_order = [block() for _ in range(blocks)]
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, width, **_SEED), *blocks_in_order, nn.Linear(width, 10, **_SEED)
    )


def _convolutions(channels: int, kernel: int) -> nn.Module:
    side = 8
    for _ in range(2):
        side = (side + 2 * ((kernel - 1) // 2) - kernel + 1) // 2
    return nn.Sequential(
        nn.Conv(1, channels, kernel, **_SEED),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv(channels, 2 * channels, kernel, **_SEED),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2 * channels * side**2, 10, **_SEED),
    )


def _transformer(features: int, heads: int, layers: int) -> nn.Module:
    return nn.Sequential(
        *(
            nn.TransformerLayer(features, heads, features // heads, 4 * features, **_SEED)
            for _ in range(layers)
        )
    )


def _recurrent(features: int, hidden: int, layers: int) -> nn.Module:
    return nn.LSTM(features, hidden, layers, **_SEED)


NETWORKS = {
    "layers": Network(
        "Fully connected",
        "Most parameters sit between two wide layers: double the width, and there are four times as many.",
        {
            "inputs": Size("Inputs", 1, 64, 2),
            "width": Size("Neurons in a layer", 1, 256, 8),
            "depth": Size("Hidden layers", 1, 8, 2),
        },
        _layers,
        lambda inputs, width, depth: (1, inputs),
    ),
    "residual": Network(
        "Residual",
        "Each block adds what it computes to its own input. On the way back, the gradient can take that "
        "addition and skip the layers inside the block.",
        {"width": Size("Features", 2, 256, 64), "blocks": Size("Blocks", 1, 8, 3)},
        _residual,
        lambda width, blocks: (2, 1, 8, 8),
    ),
    "convolutions": Network(
        "Small convnet",
        "A kernel is a small square of weights that slides over the whole image: the same few weights do "
        "their work at every place.",
        {"channels": Size("Channels", 1, 64, 8), "kernel": Size("Side of a kernel", 1, 5, 3)},
        _convolutions,
        lambda channels, kernel: (1, 1, 8, 8),
    ),
    "transformer": Network(
        "Transformer blocks",
        "Attention mixes the positions, and two linear maps work at each position alone. Both add to their "
        "input, so the shape stays.",
        {
            "features": Size("Features", 8, 256, 32),
            "heads": Size("Heads", 1, 8, 4),
            "layers": Size("Blocks", 1, 6, 1),
        },
        _transformer,
        lambda features, heads, layers: (1, 10, features),
    ),
    "recurrent": Network(
        "LSTM",
        "Four gates share one matrix for the input and one for the state. The length of the sequence "
        "changes nothing.",
        {
            "features": Size("Features", 1, 128, 16),
            "hidden": Size("State", 1, 128, 32),
            "layers": Size("Layers", 1, 4, 2),
        },
        _recurrent,
        lambda features, hidden, layers: (10, 1, features),
    ),
}


def _key(network: str, size: str) -> str:
    return f"modules_{network}_{size}"


# Sizes have one name in the address, whichever network is shown; each network keeps its own.
_SHOWN = Entry("network", "residual", one_of(NETWORKS))


# Words are as large as others of the page. On a narrow screen you scroll, so that you can read them.
_STYLE = (
    "<style>.st-key-modules_tree svg { min-width: 56rem !important; max-width: 69rem !important; }</style>"
)


def entries_of(network: str) -> dict[str, Entry]:
    """What the page's address holds while a network is shown: its name and its sizes."""
    sizes = NETWORKS[network].sizes
    return {"modules_network": _SHOWN} | {
        _key(network, name): Entry(name, size.start, whole_number(size.low, size.high))
        for name, size in sizes.items()
    }


class Built(NamedTuple):
    """A network that was built, and what the page says of it.

    Attributes
    ----------
    tree : Drawn
        The picture of its modules.
    parameters : int
    shapes : list of (str, tuple of int)
        What goes through: the input, then each module's name with the shape that comes out.
    """

    tree: pictures.Drawn
    parameters: int
    shapes: list[tuple[str, tuple[int, ...]]]


def page() -> None:
    """Choose a network and its sizes, and see its modules."""
    network = st.session_state.get("modules_network") or st.query_params.get(_SHOWN.name)
    entries = entries_of(network if network in NETWORKS else _SHOWN.default)
    open_page(
        "Modules", "Choose a network and change its sizes: the tree shows where its parameters are.", entries
    )
    st.html(_STYLE)
    st.pills(
        "Network",
        NETWORKS,
        format_func=lambda name: NETWORKS[name].title,
        key="modules_network",
        required=True,
        **KEPT,
    )
    network = st.session_state.modules_network
    chosen = NETWORKS[network]
    for key, entry in entries_of(network).items():
        st.session_state.setdefault(key, entry.default)
    with st.container(horizontal=True):
        for name, size in chosen.sizes.items():
            st.number_input(
                size.label,
                size.low,
                size.high,
                key=_key(network, name),
                width=170,
                help=f"{size.low} to {size.high}",
                **KEPT,
            )
    sizes = {name: st.session_state[_key(network, name)] for name in chosen.sizes}
    write_address(entries_of(network))
    try:
        built = build(network, **sizes)
    except ValueError as error:
        st.error(str(error), icon=":material/error:")
        return
    _show(built, chosen.words)


@st.cache_resource(max_entries=64, show_spinner="Building …")
def build(network: str, **sizes: int) -> Built:
    """Build a network of needle's modules and look into it.

    Parameters
    ----------
    network : str
        One of `NETWORKS`.
    **sizes : int
        One number for each of its sizes.

    Raises
    ------
    ValueError
        If the sizes don't fit each other.
    """
    if network == "transformer" and sizes["features"] % sizes["heads"]:
        raise ValueError(
            f"{sizes['features']} features can't be shared out evenly among {sizes['heads']} heads: choose a "
            "multiple."
        )
    chosen = NETWORKS[network]
    model = chosen.build(**sizes)
    parameters = sum(parameter.size for parameter in model.parameters())
    return Built(_tree(model), parameters, _shapes(model, chosen.takes(**sizes)))


def _tree(model: nn.Module) -> pictures.Drawn:
    return pictures.Drawn.of(viz.draw(model))


def _shapes(model: nn.Module, takes: tuple[int, ...]) -> list[tuple[str, tuple[int, ...]]]:
    """What goes through a model, module by module, found out by letting zeros through."""
    value = Tensor(np.zeros(takes), device=ndl.cpu_numpy(), dtype="float32", requires_grad=False)
    shapes = [("input", value.shape)]
    parts = model.modules if isinstance(model, nn.Sequential) else [model]
    with ndl.no_grad():
        for part in parts:
            value = part(value)
            value = value[0] if isinstance(value, tuple) else value
            shapes.append((type(part).__name__, value.shape))
    return shapes


def _show(built: Built, words: str) -> None:
    size = 4 * built.parameters
    kept = f"{size / 1e6:,.2f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"
    st.markdown(f"**{built.parameters:,} parameters**, {kept} as 32-bit numbers. {words}")
    pictures.show(built.tree, key="modules_tree")
    st.markdown("**What goes through**")
    arrows = " → ".join(f"{name} `{shape}`" for name, shape in built.shapes)
    st.markdown(arrows)
