"""Measure how live the playground is, in headless Chromium: ``python scripts/measure_playground.py``.

At every repaint of the screen, the script looks at the canvas of the output. A frame counts when it differs
from the one before. Epochs are read from the page. Times run from a click to the first frame that differs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

from playground.testing import chromium, serve

CASES = {
    "circle, 4-2": "",
    "spiral, 6 x 8": "?dataset=spiral&hidden=8-8-8-8-8-8",
}

#: Runs in the page and keeps a list of the times at which the picture changed.
WATCH = """
() => {
  let host = null;
  const find = (selector) => {
    if (!host?.isConnected) {
      host = [...document.querySelectorAll("*")].find((node) => node.shadowRoot?.querySelector(".stage"));
    }
    return host?.shadowRoot.querySelector(selector);
  };
  const watch = (window.watch = {changes: [], blanks: 0, epochs: () =>
    Number(find('[data-figure="epochs"]').textContent.replaceAll(",", ""))});
  const small = new OffscreenCanvas(48, 48);
  const pen = small.getContext("2d", {willReadFrequently: true});
  const look = () => {
    const canvas = find('[data-canvas="plane"]');
    if (!canvas) return (watch.blanks += 1, 0);
    pen.clearRect(0, 0, 48, 48);
    pen.drawImage(canvas, 0, 0, 48, 48);
    return pen.getImageData(0, 0, 48, 48).data.reduce((hash, byte) => (Math.imul(hash, 31) + byte) | 0, 7);
  };
  let before = look();
  const check = () => {
    const now = look();
    if (now !== before) watch.changes.push(performance.now());
    before = now;
    requestAnimationFrame(check);
  };
  requestAnimationFrame(check);
}
"""


def measure(page, address: str, seconds: float, process: int) -> dict[str, float]:
    """The figures of one case, by their names."""
    began = time.perf_counter()
    page.goto(address)
    page.locator("canvas[data-canvas=plane]").wait_for()
    play = page.get_by_role("button", name="Play")
    play.wait_for()
    figures = {"interactive after (s)": time.perf_counter() - began}
    page.wait_for_timeout(1500)
    page.evaluate(WATCH)

    def until_it_shows(action) -> float:
        """Milliseconds from an action in the page to the first changed picture."""
        before = page.evaluate("() => performance.now()")
        action()
        page.wait_for_function("(before) => watch.changes.at(-1) > before", arg=before, polling=5)
        return page.evaluate("(before) => watch.changes.find((at) => at > before) - before", before)

    figures["play to first picture (ms)"] = until_it_shows(lambda: play.dispatch_event("click"))
    page.wait_for_timeout(1500)

    cpu, start = _cpu_seconds(process), time.perf_counter()
    state = "() => [performance.now(), watch.changes.length, watch.epochs()]"
    at0, frames0, epochs0 = page.evaluate(state)
    page.wait_for_timeout(1000 * seconds)
    at1, frames1, epochs1 = page.evaluate(state)
    figures["server CPU (cores)"] = (_cpu_seconds(process) - cpu) / (time.perf_counter() - start)
    figures["frames/s"] = 1000 * (frames1 - frames0) / (at1 - at0)
    figures["epochs/s"] = 1000 * (epochs1 - epochs0) / (at1 - at0)

    reset = page.get_by_role("button", name="Reset")
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Play").wait_for()
    page.wait_for_timeout(1000)
    figures["reset to picture (ms)"] = until_it_shows(lambda: reset.dispatch_event("click"))
    delays = []
    for name in ("gaussian", "xor", "simple", "diag", "split"):
        page.wait_for_timeout(600)
        choice = page.get_by_role("radio", name=name)
        delays.append(until_it_shows(lambda choice=choice: choice.dispatch_event("click")))
    figures["control to picture (ms)"] = statistics.median(delays)
    figures["repaints without a canvas"] = page.evaluate("() => watch.blanks")
    return figures


def _cpu_seconds(process: int) -> float:
    """The processor time that a process has used (Linux; NaN elsewhere)."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure every case and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10, help="how long frames are counted (default: 10)")
    arguments = parser.parse_args()
    with serve() as (address, process), chromium() as browser:
        for name, query in CASES.items():
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            print(name)
            for figure, value in measure(page, address + "/" + query, arguments.seconds, process).items():
                print(f"  {figure:28} {value:8.1f}", flush=True)
            page.close()


if __name__ == "__main__":
    main()
