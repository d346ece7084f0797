"""Draw the README's pictures anew, from live objects: ``make pictures``. The playground's needs Chromium."""

from __future__ import annotations

from pathlib import Path

import needle as ndl
import viz
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


def playground(path: Path) -> None:
    """Save what the playground shows after it has learned the spiral for a while."""
    with serve() as (address, _), chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 800}, device_scale_factor=1.5)
        page.goto(f"{address}/?dataset=spiral&hidden=8-8")
        page.get_by_role("button", name="Play").click()
        page.wait_for_timeout(15_000)
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("button", name="Play").wait_for()
        page.mouse.move(0, 0)
        page.wait_for_timeout(1000)
        page.screenshot(path=path)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for draw, name in ((gradient_graph, "v1v4_gradient.svg"), (playground, "playground.png")):
        print(f"docs/pictures/{name} …", flush=True)
        draw(FOLDER / name)
