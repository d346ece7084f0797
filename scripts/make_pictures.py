"""Draw the README's pictures anew, from live objects: ``make pictures``. The playground needs Chromium."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

import needle as ndl
import viz
from needle import nn
from needle.data import digits
from playground.testing import chromium, serve

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"


def gradient_graph(path: Path) -> None:
    """Save the README's example with its gradient graph."""
    v1 = ndl.Tensor([0])
    v2 = ndl.exp(v1)
    v3 = v2 + 1
    v4 = v2 * v3
    v4.backward()
    viz.draw_gradient(v4).save(path)


def network(path: Path) -> None:
    """Save the README's network with its gradient, each module one box."""
    rng = np.random.default_rng(0)
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 64, rng=rng),
        nn.ReLU(),
        nn.Residual(nn.Sequential(nn.Linear(64, 64, rng=rng), nn.ReLU())),
        nn.Linear(64, 10, rng=rng),
    )
    images, labels = digits(train=False)[:2]
    loss = nn.SoftmaxLoss()(model(ndl.Tensor(images)), ndl.Tensor(labels))
    viz.draw_gradient(loss, depth=1).save(path)


def playground(path: Path) -> None:
    """Save what the playground shows while it learns the spiral, nearly done."""
    with serve() as (address, _), chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 720}, device_scale_factor=1.5)
        page.goto(f"{address}/?dataset=spiral&hidden=8-8-8&activation=relu&learning_rate=0.1")
        page.get_by_role("button", name="Close all").click()
        page.get_by_role("button", name="Play").click()
        accuracy = page.locator("[data-figure=accuracy]")
        while float(accuracy.inner_text().rstrip(" %").replace("–", "0")) < 97:
            page.wait_for_timeout(50)
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("button", name="Play").wait_for()
        page.mouse.move(0, 0)
        page.wait_for_timeout(1000)
        page.screenshot(path=path)
    with Image.open(path) as image:  # 256 colours are enough, and a third of the size
        image.convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT).save(path, optimize=True)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    pictures = {
        "v1v4_gradient.svg": gradient_graph,
        "digits_gradient.svg": network,
        "playground.png": playground,
    }
    for name, draw in pictures.items():
        print(f"docs/pictures/{name} …", flush=True)
        draw(FOLDER / name)
