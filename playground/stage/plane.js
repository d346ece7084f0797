// The plane: a map of what the network (or one neuron) answers everywhere, its boundary, and the points.

import { labelColour, theme } from "./colours.js";
import { Board, MapImage, line, refined, traceContour, valueAt } from "./draw.js";
import { grouped, minus, signed, write } from "./words.js";

const MARGIN = { left: 22, bottom: 18, top: 2, right: 2 };
const FINER = 5; // discretised, the map is drawn so many times as fine as it comes
const THINNING = 0.4; // units of the plane between two points of one stroke
const ERASER = 0.6; // its radius

export class Plane {
  #layer = null; // the points and the axes, painted once
  #wet = []; // points that were just painted: the server has not sent them back yet
  #probe = null; // where the plane is read, in units of the plane

  constructor(stage, repaint) {
    this.stage = stage;
    this.repaint = repaint;
    this.canvas = document.querySelector("[data-canvas=plane]");
    this.board = new Board(this.canvas, () => this.renew());
    this.notes = { map: document.querySelector("[data-note=map]"), plane: document.querySelector("[data-note=plane]") };
    this.back = document.querySelector("[data-do=output]");
    this.#listen();
  }

  // The points, the size, the theme or an option has changed.
  renew() {
    this.#layer = null;
    this.#wet = [];
    this.repaint();
  }

  paint() {
    const { board, stage } = this;
    if (!board.width) return;
    const pen = board.clear();
    const plot = this.plot;
    const { values, resolution, unit } = this.#values();
    const isDiscrete = stage.setting("discretise") === "on";
    const image = isDiscrete ? this.#image(refined(values, resolution, FINER), theme.discreteShades, unit)
      : this.#image(values, theme.shades, unit);
    image.drawLattice(pen, plot.left, plot.top, plot.size);
    pen.beginPath();
    const isOutput = values === stage.picture.arrays.output;
    traceContour(pen, isOutput && stage.picture.arrays.sums || values, resolution, plot.left, plot.top, plot.size);
    pen.strokeStyle = theme.ink;
    pen.lineWidth = 1.4;
    pen.globalAlpha = 0.75;
    pen.stroke();
    pen.globalAlpha = 1;

    this.#layer ??= board.layer((ink) => this.#paintStill(ink, plot));
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.drawImage(this.#layer, 0, 0);
    pen.setTransform(board.ratio, 0, 0, board.ratio, 0, 0);
    for (const [x1, x2, label] of this.#wet) this.#dot(pen, plot, x1, x2, label, theme.paper);
    this.#paintProbe(pen, plot);
    this.#write(values, resolution);
  }

  // In whole pixels, so that the edges are sharp.
  get plot() {
    const [left, bottom] = [Math.round(MARGIN.left * theme.scale), MARGIN.bottom * theme.scale];
    const size = Math.min(this.board.width - left - MARGIN.right, this.board.height - MARGIN.top - bottom);
    return { left, top: MARGIN.top, size: Math.floor(size) };
  }

  // What is shown: the output, or the neuron under the mouse; its small map until the large one has come. A value of
  // `unit` has the full colour: 1, or for an input the largest that it has.
  #values() {
    const { picture, welcome, shown, scene } = this.stage;
    const neuron = shown?.kind === "neuron" && !this.stage.isOutput(shown) ? shown : null;
    if (!neuron) return { values: picture.arrays.output, resolution: welcome.resolution, unit: 1 };
    if (String(picture.look) === String([neuron.layer, neuron.index])) {
      const values = picture.arrays.focus;
      const unit = neuron.layer === 0 ? values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) : 1;
      return { values, resolution: welcome.resolution, unit };
    }
    const small = neuron.layer === 0 ? part(scene.arrays.inputs_maps, neuron.index, welcome.thumbnail)
      : part(picture.arrays.maps, smallMapOf(this.stage, neuron), welcome.thumbnail);
    return { values: Float32Array.from(small, (shade) => shade / 127), resolution: welcome.thumbnail, unit: 1 };
  }

  #image(values, shades, unit) {
    const resolution = Math.round(Math.sqrt(values.length));
    if (this.image?.resolution !== resolution) this.image = new MapImage(resolution);
    this.image.shade(values, shades, unit);
    return this.image;
  }

  #paintStill(pen, plot) {
    const { scene } = this.stage;
    const { x1, x2, labels } = scene.arrays;
    const showsTest = this.stage.setting("test_points") === "on";
    pen.save();
    pen.beginPath();
    pen.rect(plot.left, plot.top, plot.size, plot.size);
    pen.clip();
    const rim = scene.is_regression ? theme.muted : theme.paper; // pale points need a darker one
    const firstOwn = labels.length - scene.own_test; // who paints a point wants to see it
    for (let i = 0; i < labels.length; i++) {
      if (i >= scene.train && i < firstOwn && !showsTest) continue;
      this.#dot(pen, plot, x1[i], x2[i], labels[i], i < scene.train ? rim : theme.ink);
    }
    pen.restore();
    this.#paintAxes(pen, plot);
  }

  #dot(pen, plot, x1, x2, label, rim) {
    const { domain: [low, high] } = this.stage.welcome;
    const scale = plot.size / (high - low);
    const count = this.stage.scene.train;
    pen.beginPath();
    pen.arc(plot.left + (x1 - low) * scale, plot.top + (high - x2) * scale,
      Math.max(2.2, plot.size / 125) * (count > 1000 ? 0.72 : 1), 0, 2 * Math.PI);
    pen.fillStyle = labelColour(label);
    pen.strokeStyle = rim;
    pen.lineWidth = 1;
    pen.fill();
    pen.stroke();
  }

  #paintAxes(pen, { left, top, size }) {
    const { domain: [low, high] } = this.stage.welcome;
    pen.strokeStyle = theme.edge;
    pen.lineWidth = 1;
    pen.strokeRect(left - 0.5, top - 0.5, size + 1, size + 1);
    pen.font = theme.font(11);
    pen.fillStyle = theme.muted;
    const along = (value) => ((value - low) / (high - low)) * size;
    for (let value = low; value <= high; value += 2) {
      pen.textAlign = value === low ? "left" : value === high ? "right" : "center";
      pen.textBaseline = "top";
      pen.fillText(minus(value), left + along(value), top + size + 5);
      pen.textAlign = "right";
      pen.textBaseline = value === low ? "bottom" : value === high ? "top" : "middle";
      pen.fillText(minus(value), left - 5, top + size - along(value));
    }
    pen.font = theme.font(12, "italic");
    pen.textAlign = "center";
    pen.textBaseline = "top";
    pen.fillText("x₁", left + along(3), top + size + 4);
    pen.textBaseline = "middle";
    pen.fillText("x₂", left - 12 * theme.scale, top + size - along(3));
  }

  #paintProbe(pen, { left, top, size }) {
    if (!this.#probe) return;
    const { domain: [low, high] } = this.stage.welcome;
    const x = left + ((this.#probe[0] - low) / (high - low)) * size;
    const y = top + ((high - this.#probe[1]) / (high - low)) * size;
    pen.strokeStyle = theme.ink;
    pen.lineWidth = 1;
    if (this.stage.tool === "erase") {
      pen.beginPath();
      pen.arc(x, y, (ERASER / (high - low)) * size, 0, 2 * Math.PI);
      pen.stroke();
    } else if (document.activeElement === this.canvas && this.canvas.matches(":focus-visible")) {
      line(pen, x - 7, y, x + 7, y);
      line(pen, x, y - 7, x, y + 7);
    }
  }

  #write(values, resolution) {
    const { stage } = this;
    const neuron = stage.shown?.kind === "neuron" ? stage.shown : null;
    const { at } = stage.picture;
    write(this.notes.map, (neuron ? stage.nameOf(neuron) : "Output") + (at === null ? "" : ` in epoch ${grouped(at)}`));
    this.back.hidden = stage.pinned?.kind !== "neuron" || stage.isOutput(stage.pinned);
    write(this.notes.plane, this.#probe ? this.#reading(values, resolution) : "");
  }

  #reading(values, resolution) {
    const { domain: [low, high] } = this.stage.welcome;
    const [x1, x2] = this.#probe;
    const value = valueAt(values, resolution, (x1 - low) / (high - low), (high - x2) / (high - low));
    return `x₁ ${signed(x1, 1)}  x₂ ${signed(x2, 1)}  →  ${signed(value, 2)}`;
  }

  // ---- reading and painting ------------------------------------------------------------------------------------

  #listen() {
    const { canvas } = this;
    let stroke = null; // the last point of the stroke that is being painted
    const apply = (place) => {
      if (stroke && Math.hypot(place[0] - stroke[0], place[1] - stroke[1]) < THINNING) return;
      stroke = place;
      this.#use(place);
    };
    canvas.onpointerdown = (event) => {
      const place = this.#probe = this.#place(event);
      this.repaint();
      if (!this.stage.tool || !place || event.button) return;
      canvas.setPointerCapture(event.pointerId);
      apply(place);
    };
    canvas.onpointermove = (event) => {
      this.#probe = this.#place(event);
      if (stroke && this.#probe) for (const part of event.getCoalescedEvents?.() ?? [event]) {
        const place = this.#place(part);
        if (place) apply(place);
      }
      this.repaint();
    };
    canvas.onpointerup = canvas.onpointercancel = () => { stroke = null; };
    const leave = () => {
      this.#probe = null;
      this.repaint();
    };
    canvas.onblur = leave;
    canvas.onpointerleave = ({ pointerType }) => pointerType === "mouse" && leave(); // what a finger reads stays
    canvas.onkeydown = (event) => this.#key(event);
  }

  // A place of the window in units of the plane; null outside of it, and before there is a picture.
  #place({ offsetX, offsetY }) {
    if (!this.stage.picture) return null;
    const { left, top, size } = this.plot;
    const { domain: [low, high] } = this.stage.welcome;
    const [column, row] = [(offsetX - left) / size, (offsetY - top) / size];
    if (column < 0 || column > 1 || row < 0 || row > 1) return null;
    return [low + column * (high - low), high - row * (high - low)];
  }

  #use([x1, x2]) {
    const { connection, tool } = this.stage;
    if (tool === "erase") return connection.send({ do: "erase", at: [x1, x2], radius: ERASER });
    const point = [+x1.toFixed(3), +x2.toFixed(3), tool === "positive" ? 1 : -1];
    this.#wet.push(point);
    connection.send({ do: "paint", points: [point] });
    this.repaint();
  }

  #key(event) {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (event.key === "Enter" && this.#probe && this.stage.tool) this.#use(this.#probe);
    if (!move || !this.stage.picture) return;
    event.preventDefault();
    const { domain: [low, high] } = this.stage.welcome;
    const step = event.shiftKey ? 1 : 0.25;
    this.#probe = (this.#probe ?? [0, 0]).map((x, i) => Math.max(low, Math.min(high, x + step * move[i])));
    this.repaint();
    const { values, resolution } = this.#values();
    this.stage.say(this.#reading(values, resolution));
  }
}

// Where a hidden neuron's small map lies among all of them.
export function smallMapOf({ layers, welcome }, { layer, index }) {
  let before = 0;
  for (let l = 1; l < layer; l++) before += Math.min(layers[l].neurons, welcome.shown);
  return before + index;
}

export function part(maps, which, thumbnail) {
  const size = thumbnail * thumbnail;
  return maps.subarray(which * size, (which + 1) * size);
}
