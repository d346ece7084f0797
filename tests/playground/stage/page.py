"""What a person does and sees on the playground's page, for its tests."""

from __future__ import annotations

import base64
import io
import json
import math
import re
import struct
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Error, TimeoutError

from playground.results.take_home import from_file

BLUE, ORANGE = np.array([47, 111, 222]), np.array([224, 138, 30])
INK, WHITE = np.array([29, 36, 51]), np.array([255, 255, 255])

#: Pixels from a dot's middle.
OFF = (-2, 0, 2)

#: Keeps the newest message of each kind, as it came.
HEAR = """
window.heard = {};
const hear = ({ data }) => {
  if (!(data instanceof ArrayBuffer)) return;
  const [, kind] = /"kind":"(\\w+)"/.exec(new TextDecoder().decode(new Uint8Array(data, 4, 40)));
  heard[kind] = data;
};
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    if (this.url.endsWith("/live")) this.addEventListener("message", hear);
  }
};
window.Worker = class extends Worker {
  constructor(...given) {
    super(...given);
    window.worker = this;
    this.addEventListener("message", hear);
  }
};
"""
TAKE = """kind => {
  const bytes = new Uint8Array(heard[kind]);
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}"""
#: Where the network's neurons and links lie in the window.
LAYOUT = """async ({ layers, shown, inputs }) => {
  const { layOut, linkUnder, placeLinks } = await import(new URL("stage/layout.js", document.baseURI).href);
  const canvas = document.querySelector("canvas[data-canvas=network]");
  const { left, top } = canvas.getBoundingClientRect();
  const tiles = [...document.querySelectorAll(".tiles > .tile")];
  const scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / 14;
  const { clientWidth, clientHeight } = canvas;
  const layout = layOut({ layers, welcome: { shown } }, tiles.length, clientWidth, clientHeight, scale);
  const row = (input) => tiles.findIndex(({ dataset }) => dataset.input === inputs[input].text);
  const neurons = layers.map((_, l) => Array.from({ length: layout.shown[l] },
    (_, n) => [left + layout.x(l), top + (l ? layout.neuron(l, n) : layout.row(row(n)))]));
  const all = placeLinks(layout, row);
  const links = all.map((link) => {  // a place at which no other link is nearer
    const { layer, from, to, x0, y0, x1, y1 } = link;
    const at = (s) => [x0 * ((1 - s) ** 3 + 1.5 * s * (1 - s) ** 2) + x1 * (s ** 3 + 1.5 * s * s * (1 - s))
      + 1.5 * s * (1 - s) ** 2 * x1 + 1.5 * s * s * (1 - s) * x0, y0 + (y1 - y0) * s * s * (3 - 2 * s)];
    const s = [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8].find((s) => [-2, 2].every((off) =>
      linkUnder(all, at(s)[0], at(s)[1] + off) === link)) ?? 0.5;
    const [x, y] = at(s);
    return [`${layer},${from},${to}`, [left + x, top + y]];
  });
  return { size: layout.size, neurons, links: Object.fromEntries(links) };
}"""


# ---- what a person does and sees ---------------------------------------------------------------------------


class Line:
    """The line between a page and the server, in the test's hands; make it before the page is visited.

    Parameters
    ----------
    page : Page
    say : callable, optional
        Gives what the server gets in the place of the page's message.

    Attributes
    ----------
    said : list of dict
        What the page has said.
    """

    def __init__(self, page, say=lambda message: message):
        self.said = []
        self._say = say
        self._is_cut = False
        page.route_web_socket(re.compile("/live$"), self._open)

    def openings(self):
        """What the page said to open each line."""
        return [message for message in self.said if message["do"] == "open"]

    def cut(self, code=None):
        """Break the line, without a word to the server: for good, or once if the page gets a code."""
        self._is_cut = code is None
        self._page_end.close(code=code or 1001)

    def _open(self, page_end):
        if self._is_cut:
            page_end.close(code=1001)
            return
        server = page_end.connect_to_server()
        self._page_end = page_end
        page_end.on_message(lambda text: server.send(self._to_server(text)))
        server.on_message(page_end.send)

    def _to_server(self, text):
        self.said.append(json.loads(text))
        return json.dumps(self._say(self.said[-1]))


def visit(page, address, **settings):
    page.goto(f"{address}/?{urlencode(settings)}" if settings else f"{address}/")
    is_shown(page)


def is_shown(page):
    page.wait_for_function(
        """() => window.heard.picture && document.fonts.status === "loaded"
            && document.querySelector("[data-status=line]").textContent !== "Connecting …" """
    )
    painted(page)


def painted(page):
    """Wait until everything is painted that came so far."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def until(page, condition, what, seconds=40):
    for _ in range(seconds * 20):
        if condition():
            return
        page.wait_for_timeout(50)
    pytest.fail(f"still not so after {seconds} s: {what}")


def address_now(page):
    """The address that the page shows, asked of the page: events about it may be late on a busy machine."""
    try:
        return page.wait_for_function("location.href").json_value()  # waits 30 s at most
    except TimeoutError:
        raise
    except Error:  # it is between two documents
        return page.url


def canvas(page, name):
    return page.locator(f"canvas[data-canvas={name}]")


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def select(page, label, choice):
    page.get_by_role("combobox", name=label).select_option(choice)


def figure(page, name):
    return page.locator(f"[data-figure={name}]").inner_text()


def number(text):
    return float(text.replace(",", "").replace("−", "-").removesuffix(" %"))


def epochs(page):
    return int(number(figure(page, "epochs")))


def losses(page):
    return number(figure(page, "train_loss")), number(figure(page, "test_loss"))


def status(page):
    return page.locator("[data-status=line]").inner_text()


def says(page, words):
    until(page, lambda: words in status(page), f"the line says {words!r}")


def query(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(address_now(page)).query).items()}


def address_says(page, **settings):
    until(page, lambda: settings.items() <= query(page).items(), f"the address has {settings}")


def heard(page, kind):
    """The header and the arrays of the server's newest message of a kind."""
    data = base64.b64decode(page.evaluate(TAKE, kind))
    (length,) = struct.unpack_from("<I", data)
    header, at, arrays = json.loads(data[4 : 4 + length]), 4 + length, {}
    for name, kind_, shape in header["arrays"]:
        count = math.prod(shape)
        array = np.frombuffer(data, np.dtype(kind_).newbyteorder("<"), count, at)
        arrays[name] = array.reshape(shape)
        at += array.nbytes + -array.nbytes % 4
    return header, arrays


def forget(page, kind):
    """Let the next message of a kind be known from those that came before."""
    page.evaluate("kind => { delete heard[kind]; }", kind)


def hears(page, kind):
    until(page, lambda: page.evaluate("kind => kind in heard", kind), f"the server sends another {kind}")
    painted(page)


def weights(page, layer=1):
    return heard(page, "picture")[1][f"weights_{layer}"]


def step(page, times=1):
    for _ in range(times):
        painted(page)
        before = epochs(page)
        button(page, "Step").click()
        until(page, lambda before=before: epochs(page) == before + 1, "an epoch is over")


def begins_anew(page):
    until(page, lambda: epochs(page) == 0, "a new training begins")


def play(page, condition, what):
    """Play until something is so, and pause."""
    button(page, "Play").click()
    until(page, condition, what, seconds=90)
    pause(page)


def pause(page):
    """Pause, and wait until the last picture is shown."""
    button(page, "Pause").click()
    until(page, lambda: figure(page, "speed") == "paused", "the speed says paused")
    until(page, lambda: not heard(page, "picture")[0]["playing"], "the last picture has come")
    painted(page)


def is_backed_up(page, steps=None):
    """Wait until the page has a backup of what it shows, or of so many steps at least."""

    def of():
        header, arrays = heard(page, "backup")
        return from_file(arrays["file"].tobytes()).steps, header["playing"]

    now = heard(page, "picture")[0]
    wanted = (lambda: of()[0] >= steps) if steps else (lambda: of() == (now["steps"], False))
    until(page, lambda: page.evaluate("Boolean(heard.backup)") and wanted(), "there is a backup")


def learned(trainer, count):
    for _ in range(count):
        trainer.epoch()
    return trainer


def shows_losses_of(page, trainer):
    wanted = pytest.approx(trainer.figures[:2], abs=2e-4, rel=2e-4)
    until(page, lambda: losses(page) == wanted, f"the losses are {trainer.figures[:2]}, not {losses(page)}")


# ---- pixels ------------------------------------------------------------------------------------------------


def pixels(page, name, paper=WHITE):
    """A canvas's colours on paper: rows, columns, channels."""
    painted(page)
    data = canvas(page, name).evaluate("canvas => canvas.toDataURL()")
    image = Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2]))).convert("RGBA")
    rgba = np.asarray(image).astype(float)
    share = rgba[..., 3:] / 255
    return rgba[..., :3] * share + np.array(paper) * (1 - share)


def same(a, b):
    return a.shape == b.shape and np.array_equal(a, b)


def is_near(colours, colour, tolerance=20):
    return np.max(np.abs(np.asarray(colours) - colour), axis=-1) <= tolerance


def frame(page):
    """Where the plane lies in its canvas, as in plane.js: its left and top edge and its side."""
    width, height, scale = canvas(page, "plane").evaluate(
        """canvas => [canvas.clientWidth, canvas.clientHeight,
            parseFloat(getComputedStyle(document.documentElement).fontSize) / 14]"""
    )
    left = math.floor(22 * scale + 0.5)
    return left, 2, math.floor(min(width - left - 2, height - 2 - 18 * scale))


def place(page, x1, x2):
    """A point of the plane in the window."""
    left, top, side = frame(page)
    box = canvas(page, "plane").bounding_box()
    return box["x"] + left + (x1 + 6) / 12 * side, box["y"] + top + (6 - x2) / 12 * side


def plane(page, paper=WHITE):
    """The pixels of the plane without its axes."""
    left, top, side = frame(page)
    return pixels(page, "plane", paper)[top : top + side, left : left + side]


def shaded(values, paper=WHITE):
    """The colours of values from -1 to 1."""
    values = np.clip(np.nan_to_num(values), -1, 1)[..., None]
    share = 0.62 * np.abs(values) ** 0.9
    return np.where(values < 0, ORANGE, BLUE) * share + np.array(paper) * (1 - share)


def middles(side):
    """Points of the plane at the middles of its pixels: shape (side, side, 2)."""
    along = (np.arange(side) + 0.5) / side * 12 - 6
    return np.stack(np.meshgrid(along, -along), axis=-1)


def unlike(page, f, paper=WHITE):
    """The share of pixels whose colour is not that of a function of points: dots and lines count, too."""
    picture = plane(page, paper)
    points = middles(len(picture))
    wanted = shaded(f(points.reshape(-1, 2)).reshape(points.shape[:2]), paper)
    return np.mean(np.max(np.abs(picture - wanted), axis=-1) > 8)


def shows_map(page, f, what, dotted=0.04):
    until(page, lambda: unlike(page, f) < dotted, what)


def dots(page, points, labels):
    """The share of points that have a dot of their class's colour: not all, since some hide others."""
    picture = plane(page)
    side = len(picture)
    columns, rows = ((points * [1, -1] + 6) / 12 * side).astype(int).T.clip(2, side - 3)
    colours = np.where(np.asarray(labels)[:, None] > 0, BLUE, ORANGE)
    near = [is_near(picture[rows + down, columns + right], colours) for down in OFF for right in OFF]
    return np.mean(np.any(near, axis=0))


def diagram(page):
    scene, _ = heard(page, "scene")
    welcome, _ = heard(page, "welcome")
    given = {"layers": scene["layers"], "shown": welcome["shown"], "inputs": scene["inputs"]}
    return page.evaluate(LAYOUT, given)


def hover_neuron(page, layer, index):
    page.mouse.move(*diagram(page)["neurons"][layer][index])


def open_link(page, layer, start, end):
    page.mouse.click(*diagram(page)["links"][f"{layer},{start},{end}"])
    return page.get_by_role("spinbutton", name=re.compile("weight$"))


def open_bias(page, layer, index):
    places = diagram(page)
    x, y = places["neurons"][layer][index]
    page.mouse.click(x - places["size"] / 2, y + places["size"] / 2)
    return page.get_by_role("spinbutton", name=re.compile("bias$"))


def choose_nothing(page):
    page.keyboard.press("Escape")
    page.mouse.move(0, 0)


def more(page):
    button(page, "More").click()


# ---- places ----


def overlap(a, b):
    beside = a["x"] + a["width"] <= b["x"] + 0.5 or b["x"] + b["width"] <= a["x"] + 0.5
    above = a["y"] + a["height"] <= b["y"] + 0.5 or b["y"] + b["height"] <= a["y"] + 0.5
    return not (beside or above)


def inside(box, width, height):
    return (
        box["x"] >= 0
        and box["y"] >= 0
        and box["x"] + box["width"] <= width
        and box["y"] + box["height"] <= height
    )


#: Controls and texts that overlap others, lie outside the page, or hold more than they show.
FAULTS = """() => {
  const seen = (at) => at.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const name = (at) => at.ariaLabel || Object.values(at.dataset).join() || at.id
    || at.innerText?.trim().slice(0, 30) || at.className;
  const visible = (at) => { // the part of its box that a frame which scrolls lets see
    const box = at.getBoundingClientRect();
    const frame = at.closest(".diagram-frame, .data")?.getBoundingClientRect();
    if (!frame) return box;
    const [left, top] = [Math.max(box.left, frame.left), Math.max(box.top, frame.top)];
    const [right, bottom] = [Math.min(box.right, frame.right), Math.min(box.bottom, frame.bottom)];
    return { left, top, right, bottom, width: Math.max(0, right - left), height: Math.max(0, bottom - top) };
  };
  const controls = [...document.querySelectorAll(
    "a, button, select, input, [data-canvas=loss], [data-canvas=plane], dd, dt, figcaption b, .scale, "
    + "[data-note=counts], .status, .pulse span, label, .group, h2")]
    .filter((at) => seen(at) && !at.closest("[popover]:not(:popover-open)") && at.type !== "file")
    .map((at) => ({ at, box: visible(at) })).filter(({ box }) => box.width && box.height);
  const isFixed = (at) => { // the bar of a phone lies above the page
    const bar = at.closest(".transport");
    return Boolean(bar) && getComputedStyle(bar).position === "fixed";
  };
  const faults = [];
  for (const { at, box } of controls) {
    if (box.left < -0.5 || box.right > innerWidth + 0.5) faults.push(`${name(at)} lies outside the page`);
    const isText = at.matches("button, a, dd, dt, b, h2, .group, label");
    if (isText && at.clientWidth && at.scrollWidth > at.clientWidth + 1)
      faults.push(`${name(at)} is cut off`);
  }
  const pairs = controls.flatMap((one, i) => controls.slice(i + 1).map((other) => [one, other]));
  for (const [{ at: a, box: p }, { at: b, box: q }] of pairs) {
    if (a.contains(b) || b.contains(a) || isFixed(a) !== isFixed(b)) continue;
    const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (wide > 1 && high > 1) faults.push(`${name(a)} overlaps ${name(b)}`);
  }
  if (document.scrollingElement.scrollWidth > innerWidth) faults.push("the page scrolls sideways");
  return faults;
}"""
