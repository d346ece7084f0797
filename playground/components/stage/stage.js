// The live picture of a training run: the plane, the network and the losses, drawn on three canvases.
//
// Messages come from feed.js. A message holds several moments: each repaint of the screen shows the next one.

const NEGATIVE = [224, 138, 30];
const POSITIVE = [47, 111, 222];
const NETWORK_PERIOD = 60; // milliseconds between two pictures of the network and the losses while it learns
const THEME_PERIOD = 400;
const stages = new WeakMap();

// Streamlit calls this when the stage comes into the page, and again when something about it changes.
export default function ({ parentElement }) {
  if (!stages.has(parentElement)) stages.set(parentElement, new Stage(parentElement));
  return () => {
    stages.get(parentElement)?.close();
    stages.delete(parentElement);
  };
}

// The browser's half of playground/stage_data.py: a list of frames that share everything but their moment.
function unpack(bytes) {
  const { buffer } = bytes.slice(); // a copy that begins at byte 0, so that the numbers are aligned
  const headerLength = new DataView(buffer).getUint32(0, true);
  const frame = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, headerLength)));
  let at = 4 + headerLength;
  const take = (Kind, count) => {
    const part = new Kind(buffer, at, count);
    at += part.byteLength;
    return part;
  };
  const numbers = (count) => take(Float32Array, count);
  const shades = (count) => take(Int8Array, count);

  frame.losses = { epochs: numbers(frame.history), train: numbers(frame.history), test: numbers(frame.history) };
  const count = frame.train + frame.test;
  frame.points = { x1: numbers(count), x2: numbers(count), labels: numbers(count) };
  frame.links = frame.layers.slice(1).map((width, i) => ({
    weights: numbers(frame.layers[i] * width),
    biases: numbers(width),
  }));
  const outputs = frame.moments.map(() => shades(frame.resolution ** 2));
  frame.neurons = frame.layers.slice(1, -1).map((width) =>
    Array.from({ length: Math.min(width, frame.shown) }, () => shades(frame.thumbnail ** 2)));
  return frame.moments.map((moment, i) => ({ ...frame, ...moment, output: outputs[i] }));
}

class Stage {
  constructor(root) {
    this.root = root;
    this.frames = []; // to be shown; the last one stays
    this.hovered = null; // a neuron or a link of the network
    this.pointers = {}; // where the mouse is, by canvas
    this.options = { log: false, test: false, discrete: false };
    this.speed = new Speedometer();
    this.pointLayer = null;
    this.find = (attribute, name) => root.querySelector(`[data-${attribute}="${name}"]`);
    this.canvases = Object.fromEntries(
      ["plane", "network", "loss"].map((name) => [name, this.find("canvas", name)]));

    this.receive = () => this.show(unpack(globalThis.needleMessage));
    globalThis.addEventListener("needle-message", this.receive);
    if (globalThis.needleMessage) this.receive();

    this.repaintLater = () => this.repaint();
    document.fonts.addEventListener("loadingdone", this.repaintLater); // canvases do not wait for their letters
    // Sizes are taken from here and the theme is read seldom: asking the page would make it lay itself out.
    this.sizes = {};
    this.resized = new ResizeObserver((entries) => {
      for (const { target, contentRect } of entries) {
        this.sizes[target.dataset.canvas] = [contentRect.width, contentRect.height];
      }
      this.repaint();
    });
    for (const [name, canvas] of Object.entries(this.canvases)) {
      this.resized.observe(canvas);
      canvas.onpointermove = (event) => this.point(name, [event.offsetX, event.offsetY]);
      canvas.onpointerleave = () => this.point(name, null);
    }
    for (const option of Object.keys(this.options)) {
      const box = this.find("option", option);
      box.checked = this.options[option];
      box.onchange = () => {
        this.options[option] = box.checked;
        this.repaint();
      };
    }
  }

  close() {
    globalThis.removeEventListener("needle-message", this.receive);
    this.resized.disconnect();
    document.fonts.removeEventListener("loadingdone", this.repaintLater);
    cancelAnimationFrame(this.pending);
  }

  show(frames) {
    this.frames = frames;
    this.repaint();
  }

  get frame() {
    return this.frames[0];
  }

  point(name, position) {
    this.pointers[name] = position;
    this.repaint();
  }

  repaint() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      if (!this.frames.length) return;
      this.paint();
      if (this.frames.length > 1) {
        this.frames.shift();
        this.repaint();
      }
    });
  }

  paint() {
    const now = performance.now();
    if (!this.theme || now - this.themeRead > THEME_PERIOD) {
      this.themeRead = now;
      const theme = readTheme(this.root.host ?? this.root);
      if (theme.key !== this.theme?.key) [this.theme, this.pointLayer] = [theme, null];
    }
    this.writeFigures();
    if (!this.sizes.plane?.[0]) return;
    if (!this.frame.playing || this.pointers.network || now - this.networkPainted > NETWORK_PERIOD) {
      this.networkPainted = now;
      this.paintNetwork(); // before the plane: it finds out which neuron's map the plane shows
      this.paintLosses();
    }
    this.paintPlane();
  }

  // A canvas cleared and scaled so that one unit is one CSS pixel, however fine the screen is.
  crisp(name) {
    const canvas = this.canvases[name];
    const [width, height] = this.sizes[name];
    const ratio = window.devicePixelRatio || 1;
    const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== across || canvas.height !== down) [canvas.width, canvas.height] = [across, down];
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    return [pen, width, height];
  }

  note(name, text) {
    const element = this.find("note", name);
    if (element.textContent !== text) element.textContent = text;
  }

  writeFigures() {
    const { frame } = this;
    const { figures } = frame;
    const write = (name, text) => {
      const element = this.find("figure", name);
      if (element.textContent !== text) element.textContent = text;
    };
    write("epochs", frame.epochs.toLocaleString("en"));
    write("train_loss", figures ? figures.train_loss.toFixed(4) : "not finite");
    write("test_loss", figures ? figures.test_loss.toFixed(4) : "not finite");
    write("accuracy", figures ? `${(100 * (1 - figures.test_error)).toFixed(1)} %` : "–");
    write("speed", this.speed.read(frame));
  }

  // ---- the plane ---------------------------------------------------------------------------------------------

  paintPlane() {
    const { frame, theme, hovered } = this;
    const [pen, width] = this.crisp("plane");
    const plot = { left: 26, top: 6, side: width - 26 - 8 };
    const neuron = hovered?.kind === "neuron" && hovered;
    const resolution = neuron ? frame.thumbnail : frame.resolution;
    const shades = neuron ? neuronMap(frame, neuron) : frame.output;

    const palette = this.options.discrete ? theme.discrete : theme.palette;
    pen.drawImage(shadeImage([shades], resolution, palette), plot.left, plot.top, plot.side, plot.side);
    pen.strokeStyle = theme.text;
    pen.lineWidth = 1.25;
    pen.globalAlpha = 0.75;
    traceBoundary(pen, shades, resolution, plot);
    pen.globalAlpha = 1;

    this.paintPoints(pen, plot, width);
    paintFrame(pen, plot, frame.domain, theme);
    this.note("map", neuron ? neuronName(frame, neuron) : "Output");
    this.note("plane", this.readPlane(plot, shades, resolution));
  }

  // Points only change with the data: they are drawn once and then copied.
  paintPoints(pen, plot, width) {
    const { frame, theme } = this;
    const { x1, x2, labels } = frame.points;
    const scale = plot.side / (frame.domain[1] - frame.domain[0]);
    const layer = this.pointLayer;
    const key = [pen.canvas.width, pen.canvas.height, this.options.test, frame.train, frame.test].join();
    if (!layer || layer.key !== key || !same(layer.x1, x1) || !same(layer.x2, x2) || !same(layer.labels, labels)) {
      const canvas = new OffscreenCanvas(pen.canvas.width, pen.canvas.height);
      const ink = canvas.getContext("2d");
      ink.setTransform(pen.getTransform());
      ink.beginPath();
      ink.rect(plot.left, plot.top, plot.side, plot.side);
      ink.clip();
      const radius = Math.max(2.2, Math.min(3.6, width / 130)) * (labels.length > 1500 ? 0.75 : 1);
      const dot = (i, isTest) => {
        ink.beginPath();
        ink.arc(plot.left + (x1[i] - frame.domain[0]) * scale, plot.top + (frame.domain[1] - x2[i]) * scale,
          radius, 0, 2 * Math.PI);
        ink.fillStyle = rgb(labels[i] > 0 ? POSITIVE : NEGATIVE);
        ink.strokeStyle = isTest ? theme.text : theme.background;
        ink.lineWidth = isTest ? 1.2 : 0.9;
        ink.fill();
        ink.stroke();
      };
      for (let i = 0; i < frame.train; i++) dot(i, false);
      if (this.options.test) for (let i = frame.train; i < labels.length; i++) dot(i, true);
      this.pointLayer = { key, canvas, x1, x2, labels };
    }
    pen.save();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.drawImage(this.pointLayer.canvas, 0, 0);
    pen.restore();
  }

  readPlane(plot, shades, resolution) {
    const [px, py] = this.pointers.plane ?? [-1, -1];
    const column = (px - plot.left) / plot.side;
    const row = (py - plot.top) / plot.side;
    if (column < 0 || column >= 1 || row < 0 || row >= 1) return "";
    const [low, high] = this.frame.domain;
    const shade = shades[Math.floor(row * resolution) * resolution + Math.floor(column * resolution)] / 127;
    const x1 = low + column * (high - low);
    const x2 = high - row * (high - low);
    return `x₁ ${signed(x1, 1)} · x₂ ${signed(x2, 1)} → ${signed(shade, 2)}`;
  }

  // ---- the network -------------------------------------------------------------------------------------------

  paintNetwork() {
    const { frame, theme } = this;
    const [pen, width, height] = this.crisp("network");
    const layout = layOut(frame, width, height);
    this.hovered = findHovered(layout, frame, this.pointers.network);

    const strongest = Math.max(1, ...frame.links.map(({ weights }) => maxAbs(weights)));
    forEachLink(layout, frame, (link) => {
      const strength = Math.abs(link.weight) / strongest;
      const isHovered = this.hovered?.kind === "link" && this.hovered.key === link.key;
      pen.beginPath();
      pen.moveTo(link.x0, link.y0);
      pen.bezierCurveTo(link.bend, link.y0, link.bend, link.y1, link.x1, link.y1);
      pen.strokeStyle = rgb(link.weight > 0 ? POSITIVE : NEGATIVE);
      pen.globalAlpha = isHovered ? 1 : 0.25 + 0.65 * Math.sqrt(strength);
      pen.lineWidth = (isHovered ? 1.5 : 0.6) + 0.11 * layout.size * strength;
      pen.stroke();
    });
    pen.globalAlpha = 1;

    const maps = [inputMaps(frame.thumbnail), ...frame.neurons, [thinned(frame)]];
    maps.forEach((layer, l) => {
      const shown = layer.slice(0, layout.shown[l]);
      const image = shadeImage(shown, frame.thumbnail, theme.palette);
      shown.forEach((_, n) => {
        const [x, y] = layout.centre(l, n);
        const half = layout.size / 2;
        const isHovered = this.hovered?.kind === "neuron" && this.hovered.layer === l && this.hovered.index === n;
        pen.drawImage(image, 0, n * frame.thumbnail, frame.thumbnail, frame.thumbnail,
          x - half, y - half, layout.size, layout.size);
        pen.beginPath();
        pen.roundRect(x - half - 0.5, y - half - 0.5, layout.size + 1, layout.size + 1, 3);
        pen.strokeStyle = isHovered ? theme.text : theme.edge;
        pen.lineWidth = isHovered ? 2 : 1.5;
        pen.stroke();
      });
    });

    pen.fillStyle = theme.muted;
    pen.font = `12px ${theme.font}`;
    pen.textAlign = "center";
    pen.textBaseline = "alphabetic";
    frame.layers.forEach((count, l) => {
      const last = l === frame.layers.length - 1;
      const label = l === 0 ? "input" : last ? "output" : layout.roomy ? count === 1 ? "1 neuron" : `${count} neurons` : `${count}`;
      pen.fillText(label, layout.x(l), 11);
      if (count > layout.shown[l]) {
        const [x, y] = layout.centre(l, layout.shown[l] - 1);
        pen.fillText(`+ ${count - layout.shown[l]}`, x, y + layout.size / 2 + 13);
      }
    });
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    ["x₁", "x₂"].forEach((label, n) => {
      const [x, y] = layout.centre(0, n);
      pen.fillText(label, x - layout.size / 2 - 6, y);
    });
    this.note("network", describe(frame, this.hovered));
  }

  // ---- the losses --------------------------------------------------------------------------------------------

  paintLosses() {
    const { frame, theme, options } = this;
    const { epochs, train, test } = frame.losses;
    const [pen, width, height] = this.crisp("loss");
    const plot = { left: 42, top: 6, right: width - 10, bottom: height - 20 };
    const highest = Math.max(...train, ...test, 1e-3);
    const lowest = options.log ? Math.max(1e-6, Math.min(...train, ...test)) : 0;
    const squash = options.log ? (value) => Math.log10(Math.max(value, lowest)) : (value) => value;
    const bottom = options.log ? Math.min(squash(lowest), squash(highest) - 0.3) : 0;
    const top = options.log ? squash(highest) + 0.05 : highest * 1.05;
    const lastEpoch = Math.max(10, epochs[epochs.length - 1] ?? 0);
    const x = (epoch) => plot.left + (epoch / lastEpoch) * (plot.right - plot.left);
    const y = (value) => plot.bottom - ((squash(value) - bottom) / (top - bottom)) * (plot.bottom - plot.top);

    pen.font = `11px ${theme.font}`;
    pen.fillStyle = theme.muted;
    pen.strokeStyle = theme.grid;
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const value of options.log ? decades(bottom, top) : ticks(0, top, 3)) {
      const level = Math.round(y(value)) + 0.5;
      line(pen, plot.left, level, plot.right, level);
      pen.fillText(shortNumber(value), plot.left - 6, level);
    }
    pen.textBaseline = "alphabetic";
    for (const epoch of ticks(0, lastEpoch, 5)) {
      pen.textAlign = epoch === 0 ? "left" : x(epoch) > plot.right - 12 ? "right" : "center";
      pen.fillText(shortNumber(epoch), x(epoch), height - 4);
    }

    const curve = (values, dashes, alpha) => {
      pen.beginPath();
      values.forEach((value, i) => pen.lineTo(x(epochs[i]), y(value)));
      pen.strokeStyle = theme.text;
      pen.globalAlpha = alpha;
      pen.lineWidth = 1.75;
      pen.lineJoin = "round";
      pen.setLineDash(dashes);
      pen.stroke();
      pen.setLineDash([]);
      pen.globalAlpha = 1;
    };
    curve(test, [5, 4], 0.7);
    curve(train, [], 1);

    const pointer = this.pointers.loss;
    let note = "over the epochs";
    if (pointer && epochs.length) {
      const epoch = ((pointer[0] - plot.left) / (plot.right - plot.left)) * lastEpoch;
      const i = nearest(epochs, epoch);
      pen.strokeStyle = theme.muted;
      pen.lineWidth = 1;
      line(pen, x(epochs[i]), plot.top, x(epochs[i]), plot.bottom);
      pen.fillStyle = theme.text;
      for (const values of [train, test]) {
        pen.beginPath();
        pen.arc(x(epochs[i]), y(values[i]), 3, 0, 2 * Math.PI);
        pen.fill();
      }
      note = `epoch ${epochs[i].toLocaleString("en")} · train ${train[i].toFixed(4)} · test ${test[i].toFixed(4)}`;
    }
    this.note("loss", note);
  }
}

// Frames and epochs per second over the last second of playing.
class Speedometer {
  constructor() {
    this.marks = [];
  }

  read(frame) {
    if (!frame.playing) {
      this.marks = [];
      return "paused";
    }
    const now = performance.now();
    if (this.marks.at(-1)?.steps !== frame.steps) this.marks.push({ now, steps: frame.steps, epochs: frame.epochs });
    while (this.marks.length > 2 && now - this.marks[0].now > 1000) this.marks.shift();
    const [first, last] = [this.marks[0], this.marks.at(-1)];
    const seconds = (last.now - first.now) / 1000;
    if (seconds < 0.3 || last.epochs < first.epochs) {
      if (last.epochs < first.epochs) this.marks = [];
      return this.text ?? "…";
    }
    if (!this.written || now - this.written > 250) {
      this.written = now;
      const rate = (last.epochs - first.epochs) / seconds;
      this.text = `${Math.round((this.marks.length - 1) / seconds)} frames/s · ${rate.toFixed(rate < 10 ? 1 : 0)} epochs/s`;
    }
    return this.text;
  }
}

// ---- colours ---------------------------------------------------------------------------------------------------

function readTheme(element) {
  const style = getComputedStyle(element);
  const read = (name, fallback) => style.getPropertyValue(name).trim() || fallback;
  const background = read("--st-background-color", "#ffffff");
  const text = read("--st-text-color", "#31333f");
  const font = read("--st-font", "sans-serif");
  const key = [background, text, font].join();
  if (key === readTheme.last?.key) return readTheme.last;

  const paper = parseColour(background);
  const ink = parseColour(text);
  const mix = (share) => rgb(ink.map((channel, i) => channel * share + paper[i] * (1 - share)));
  const shade = (value) => {
    const colour = value < 0 ? NEGATIVE : POSITIVE;
    const share = 0.72 * Math.abs(value) ** 0.9; // never the points' own colour: they must stay visible
    return colour.map((channel, i) => channel * share + paper[i] * (1 - share));
  };
  readTheme.last = {
    key, background, text, font,
    muted: mix(0.62), edge: mix(0.4), grid: mix(0.12),
    palette: palette(shade),
    discrete: palette((value) => shade(value < 0 ? -0.8 : 0.8)),
  };
  return readTheme.last;
}

// One RGBA word for each int8 shade, indexed by shade + 128.
function palette(shade) {
  const words = new Uint32Array(256);
  const bytes = new Uint8Array(words.buffer);
  for (let i = 0; i < 256; i++) {
    bytes.set([...shade(Math.max(-1, (i - 128) / 127)).map(Math.round), 255], 4 * i);
  }
  return words;
}

function parseColour(text) {
  const pen = new OffscreenCanvas(1, 1).getContext("2d");
  pen.fillStyle = text;
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
}

function rgb([red, green, blue]) {
  return `rgb(${Math.round(red)} ${Math.round(green)} ${Math.round(blue)})`;
}

// Square maps, one below the other, as an image.
function shadeImage(maps, resolution, colours) {
  const canvas = new OffscreenCanvas(resolution, Math.max(1, resolution * maps.length));
  const image = new ImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  maps.forEach((map, m) => {
    const start = m * map.length;
    for (let i = 0; i < map.length; i++) pixels[start + i] = colours[map[i] + 128];
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

// ---- the plane -------------------------------------------------------------------------------------------------

// The line where the shade is 0, by marching squares over the cells' centres.
function traceBoundary(pen, shades, resolution, plot) {
  const cell = plot.side / resolution;
  const at = (column, row) => shades[row * resolution + column] + 0.5; // never exactly 0
  pen.beginPath();
  for (let row = 0; row < resolution - 1; row++) {
    for (let column = 0; column < resolution - 1; column++) {
      const a = at(column, row), b = at(column + 1, row), c = at(column + 1, row + 1), d = at(column, row + 1);
      const crossings = [];
      if (a * b < 0) crossings.push([column + a / (a - b), row]);
      if (b * c < 0) crossings.push([column + 1, row + b / (b - c)]);
      if (c * d < 0) crossings.push([column + d / (d - c), row + 1]);
      if (d * a < 0) crossings.push([column, row + a / (a - d)]);
      for (let i = 0; i + 1 < crossings.length; i += 2) {
        const [[x0, y0], [x1, y1]] = [crossings[i], crossings[i + 1]];
        pen.moveTo(plot.left + (x0 + 0.5) * cell, plot.top + (y0 + 0.5) * cell);
        pen.lineTo(plot.left + (x1 + 0.5) * cell, plot.top + (y1 + 0.5) * cell);
      }
    }
  }
  pen.stroke();
}

function paintFrame(pen, plot, [low, high], theme) {
  pen.strokeStyle = theme.edge;
  pen.lineWidth = 1;
  pen.strokeRect(Math.round(plot.left) + 0.5, plot.top + 0.5, Math.round(plot.side) - 1, Math.round(plot.side) - 1);
  pen.font = `11px ${theme.font}`;
  pen.fillStyle = theme.muted;
  for (let value = Math.ceil(low); value <= high; value += 2) {
    const along = ((value - low) / (high - low)) * plot.side;
    pen.textAlign = "center";
    pen.textBaseline = "top";
    pen.fillText(minus(value), plot.left + along, plot.top + plot.side + 5);
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillText(minus(value), plot.left - 5, plot.top + plot.side - along);
  }
  pen.font = `italic 12px ${theme.font}`;
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";
  pen.fillText("x₁", plot.left + (plot.side * 7) / 12, plot.top + plot.side + 15);
  pen.fillText("x₂", plot.left - 12, plot.top + (plot.side * 5) / 12 + 4);
}

// ---- the network -----------------------------------------------------------------------------------------------

function layOut({ layers, shown: most }, width, height) {
  const top = 20;
  const shown = layers.map((count) => Math.min(count, most));
  const rows = Math.max(4, ...layers.map((count, l) => shown[l] + (count > shown[l] ? 1.4 : 0)));
  const pitch = Math.min(56, (height - top) / rows);
  const margin = { left: 24, right: 4 };
  const columns = layers.length - 1;
  const size = Math.min(40, pitch * 0.8, ((width - margin.left - margin.right) / (columns + 1)) * 0.7);
  const first = margin.left + size / 2;
  const last = width - Math.max(margin.right + size / 2, 22); // room for the word "output"
  const step = (last - first) / columns;
  const x = (l) => first + l * step;
  const centre = (l, n) => [x(l), top + (height - top) / 2 + (n - (shown[l] - 1) / 2) * pitch];
  return { shown, size, x, centre, roomy: step > 84 };
}

function forEachLink(layout, frame, visit) {
  frame.links.forEach(({ weights }, l) => {
    const width = frame.layers[l + 1];
    for (let from = 0; from < layout.shown[l]; from++) {
      for (let to = 0; to < layout.shown[l + 1]; to++) {
        const [x0, y0] = layout.centre(l, from);
        const [x1, y1] = layout.centre(l + 1, to);
        const half = layout.size / 2;
        visit({
          kind: "link", key: `${l},${from},${to}`, layer: l, from, to, weight: weights[from * width + to],
          x0: x0 + half, y0, x1: x1 - half, y1, bend: (x0 + x1) / 2,
        });
      }
    }
  });
}

function findHovered(layout, frame, pointer) {
  if (!pointer) return null;
  const [px, py] = pointer;
  for (let layer = 0; layer < frame.layers.length; layer++) {
    for (let index = 0; index < layout.shown[layer]; index++) {
      const [x, y] = layout.centre(layer, index);
      if (Math.max(Math.abs(px - x), Math.abs(py - y)) <= layout.size / 2 + 2) return { kind: "neuron", layer, index };
    }
  }
  let best = null;
  let reach = 6;
  forEachLink(layout, frame, (link) => {
    const t = (px - link.x0) / (link.x1 - link.x0);
    if (t < 0 || t > 1) return;
    for (let s = 0; s <= 1; s += 1 / 24) {
      const bx = link.x0 * ((1 - s) ** 3) + link.bend * 3 * s * (1 - s) + link.x1 * s ** 3;
      const by = link.y0 * ((1 - s) ** 3 + 3 * s * (1 - s) ** 2) + link.y1 * (s ** 3 + 3 * s ** 2 * (1 - s));
      const distance = Math.hypot(px - bx, py - by);
      if (distance < reach) [reach, best] = [distance, link];
    }
  });
  return best;
}

function neuronName(frame, { layer, index }) {
  if (layer === 0) return `Input x${"₁₂"[index]}`;
  return layer === frame.layers.length - 1 ? "Output" : `Layer ${layer}, neuron ${index + 1}`;
}

function neuronMap(frame, { layer, index }) {
  if (layer === 0) return inputMaps(frame.thumbnail)[index];
  return layer === frame.layers.length - 1 ? thinned(frame) : frame.neurons[layer - 1][index];
}

function describe(frame, hovered) {
  if (!hovered) return "hover a neuron or a link";
  if (hovered.kind === "link") {
    const ends = [{ layer: hovered.layer, index: hovered.from }, { layer: hovered.layer + 1, index: hovered.to }];
    return `${ends.map((end) => neuronName(frame, end)).join(" → ")}: weight ${signed(hovered.weight, 3)}`;
  }
  const name = neuronName(frame, hovered);
  return hovered.layer ? `${name}: bias ${signed(frame.links[hovered.layer - 1].biases[hovered.index], 3)}` : name;
}

function inputMaps(size) {
  const shade = (i) => Math.round(254 * ((i + 0.5) / size) - 127);
  return [
    Int8Array.from({ length: size * size }, (_, i) => shade(i % size)),
    Int8Array.from({ length: size * size }, (_, i) => -shade(Math.floor(i / size))),
  ];
}

// The output at the neurons' smaller size: the middle of each block of cells.
function thinned({ output, resolution, thumbnail }) {
  const block = resolution / thumbnail;
  const middle = Math.floor(block / 2);
  return Int8Array.from({ length: thumbnail * thumbnail }, (_, i) =>
    output[(Math.floor(i / thumbnail) * block + middle) * resolution + (i % thumbnail) * block + middle]);
}

// ---- small things ----------------------------------------------------------------------------------------------

function line(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  return Array.from({ length: Math.floor((high - low) / step + 1e-9) + 1 }, (_, i) => low + i * step);
}

function decades(low, high) {
  const all = [];
  for (let power = Math.floor(low); power <= high; power++) {
    for (const factor of high - low < 1.5 ? [1, 2, 5] : [1]) {
      const value = factor * 10 ** power;
      if (Math.log10(value) >= low && Math.log10(value) <= high) all.push(value);
    }
  }
  return all;
}

function nearest(sorted, wanted) {
  let best = 0;
  sorted.forEach((value, i) => {
    if (Math.abs(value - wanted) < Math.abs(sorted[best] - wanted)) best = i;
  });
  return best;
}

function same(a, b) {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}

function maxAbs(values) {
  return values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
}

function minus(value) {
  return String(value).replace("-", "−");
}

function signed(value, digits) {
  return (value > 0 ? "+" : "") + minus(value.toFixed(digits));
}

function shortNumber(value) {
  return value >= 10000 ? `${+(value / 1000).toPrecision(3)}k` : String(+value.toPrecision(2));
}
