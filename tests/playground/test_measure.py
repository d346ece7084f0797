"""The script that measures playgrounds, on one whose pictures are known."""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "measure_playground.py"

#: Shows a picture and an epoch each 250 ms while it plays, and repaints each picture twice.
PAGE = """<!doctype html><title>test</title>
<canvas width="100" height="100"></canvas><p>0</p><button>Play</button>
<script>
  const pen = document.querySelector("canvas").getContext("2d");
  let [epoch, timer, isAgain] = [0, null, false];
  const paint = () => {
    pen.fillStyle = `hsl(${40 * epoch} 80% 50%)`;
    pen.fillRect(0, 0, 100, 100);
    document.querySelector("p").textContent = epoch;
  };
  paint();
  document.querySelector("button").onclick = () => {
    if (timer) return void setTimeout(() => timer = clearInterval(timer), 300);
    timer = setInterval(() => { if (isAgain = !isAgain) epoch++; paint(); }, 125);
  };
</script>"""


@pytest.fixture
def script(monkeypatch):
    spec = importlib.util.spec_from_file_location("measure_playground", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "measure_playground", module)  # where dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def playground(script, tmp_path):
    (tmp_path / "index.html").write_text(PAGE)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield script.Playground(f"http://127.0.0.1:{server.server_port}", "/", "/", "canvas", "p", "button")
        server.shutdown()
        thread.join()


@pytest.mark.slow
@pytest.mark.browser
def test_each_page_of_a_class_is_counted(script, playground, browser, monkeypatch):
    monkeypatch.setattr(script, "CLASS_WARM_UP", 500)
    figures = dict(script.measure_class(browser, playground, 3, 3))
    for name in ("pictures/s each: fewest", "pictures/s each: median", "epochs/s each: most"):
        assert figures[name] == pytest.approx(4, abs=1.5)  # repaints counted, too, it would be 8
    # The last epoch comes within 250 ms before the timer ends, 300 ms after the click; or later.
    assert 0.05 < figures["pause until the epoch stands still: longest (s)"] < 2
    assert not browser.contexts


def test_processor_time_is_of_processes_that_were_started(script):
    busy, own = script.busy_seconds(None)
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    busier, more = script.busy_seconds(None)
    assert 0.1 < more - own <= busier - busy + 0.05
