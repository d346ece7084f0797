// The diagram of the network: links, and neurons with their maps.

import { theme } from "./colours.js";
import { Board, MapImage } from "./draw.js";
import { openBias, openWeight } from "./editors.js";
import { Heads } from "./heads.js";
import { layOut, linkUnder, placeLinks, traceLink } from "./layout.js";
import { isNarrow } from "./menus.js";
import { sameThing } from "./stage.js";
import { write } from "./words.js";

const WIDEST = 3; // the weight from which on a link gets no wider
const BIAS = 8; // the size of the small square that shows a neuron's bias
// Pixels for a layer: where there is less, the diagram scrolls.
const NARROWEST = matchMedia("(pointer: coarse)").matches ? 64 : 56;
const REST = 105; // pixels beside the layers
const FIRST = { kind: "neuron", layer: 1, index: 0 };

export class Network {
  layout = null;
  #links = [];
  #pointer = null; // the mouse, in pixels of the diagram

  constructor(stage, tiles, repaint) {
    this.stage = stage;
    this.tiles = tiles;
    this.repaint = repaint;
    this.diagram = document.querySelector(".diagram");
    this.heads = new Heads(stage);
    this.note = document.querySelector("[data-note=network]");
    this.tip = document.querySelector(".tip");
    this.frame = document.querySelector(".diagram-frame");
    this.further = document.querySelector("[data-do=further]");
    this.frame.onscroll = () => this.#showFurther();
    this.canvas = document.querySelector("[data-canvas=network]");
    this.board = new Board(this.canvas, () => this.renew());
    this.#listen();
  }

  // The layers, the inputs or the size have changed.
  renew() {
    const { stage, board } = this;
    if (!stage.scene) return;
    this.diagram.style.minWidth = `${REST + NARROWEST * (stage.layers.length - 1)}px`;
    if (!board.width) return;
    this.layout = layOut(stage, this.tiles.rows, board.width, board.height, theme.scale);
    this.tiles.place(this.layout);
    this.#links = placeLinks(this.layout, (input) => this.tiles.rowOf(input));
    this.heads.place(this.layout);
    this.image = new MapImage(stage.welcome.thumbnail, this.layout.shown.slice(1, -1).reduce((sum, n) => sum + n, 0));
    this.outputImage = new MapImage(stage.welcome.resolution);
    this.#showFurther();
    this.repaint();
  }

  // Where the layers need more room than there is, a button leads on.
  #showFurther() {
    const { scrollWidth, clientWidth } = this.frame;
    this.further.hidden = scrollWidth < clientWidth + 8;
    write(this.further, this.#isAtEnd ? "‹" : "›");
    this.further.ariaLabel = this.#isAtEnd ? "Back to the inputs" : "Show the layers further right";
  }

  get #isAtEnd() {
    const { scrollLeft, scrollWidth, clientWidth } = this.frame;
    return scrollLeft + clientWidth > scrollWidth - 8;
  }

  goFurther() {
    const { scrollLeft, clientWidth } = this.frame;
    this.frame.scrollTo({ left: this.#isAtEnd ? 0 : scrollLeft + clientWidth / 2, behavior: "smooth" });
  }

  paint() {
    if (!this.layout) return;
    const pen = this.board.clear();
    this.#paintLinks(pen);
    this.#paintNeurons(pen);
    this.#paintRests(pen);
    write(this.note, this.stage.shown ? this.stage.describe(this.stage.shown) : "");
    this.#showTip();
  }

  // The number of what lies under the mouse, beside the mouse.
  #showTip() {
    const { hovered } = this.stage;
    this.tip.hidden = !this.#pointer || !hovered || !hovered.layer
      || Boolean(document.querySelector(".editor:popover-open"));
    if (this.tip.hidden) return;
    write(this.tip, this.stage.numberOf(hovered));
    const { x, y } = this.#pointer;
    const left = x + 14 + this.tip.offsetWidth < this.board.width ? x + 14 : x - 14 - this.tip.offsetWidth;
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${Math.max(0, y - 30)}px`;
  }

  // One path for each link: a path of many crossing curves takes the browser more than twice as long.
  #paintLinks(pen) {
    const { stage, layout } = this;
    for (const link of this.#links) {
      link.weight = stage.weightOf(link);
      if (!Number.isFinite(link.weight)) continue; // diverged
      const strength = strengthOf(link);
      pen.beginPath();
      traceLink(pen, link);
      pen.strokeStyle = link.weight < 0 ? theme.negative : theme.positive;
      pen.globalAlpha = 0.45 + 0.5 * Math.sqrt(strength);
      pen.lineWidth = this.#widthOf(strength);
      pen.stroke();
    }
    pen.globalAlpha = 1;
    if (stage.shown?.kind === "link") this.#paintChosenLink(pen);
  }

  #widthOf(strength) {
    return 0.5 + 0.13 * this.layout.size * strength;
  }

  #paintChosenLink(pen) {
    const link = this.#links.find((each) => sameThing(each, this.stage.shown));
    if (!link || !Number.isFinite(link.weight)) return;
    const width = this.#widthOf(strengthOf(link));
    pen.beginPath();
    traceLink(pen, link);
    pen.strokeStyle = theme.ink;
    pen.lineWidth = width + 4;
    pen.stroke();
    pen.strokeStyle = link.weight > 0 ? theme.positive : theme.negative;
    pen.lineWidth = width + 1.5;
    pen.stroke();
  }

  // Frames and biases are filled squares, which browsers paint faster than lines.
  #paintNeurons(pen) {
    const { stage, layout, image } = this;
    const { picture, shown } = stage;
    image.shadeSmall(picture.arrays.maps, theme.smallShades);
    this.outputImage.shade(picture.arrays.output, theme.shades);
    const { size } = layout;
    const last = layout.shown.length - 1;
    let which = 0;
    for (let layer = 1; layer <= last; layer++) {
      for (let index = 0; index < layout.shown[layer]; index++) {
        const [left, top] = [layout.x(layer) - size / 2, Math.round(layout.neuron(layer, index) - size / 2)];
        const isShown = shown?.kind === "neuron" && shown.layer === layer && shown.index === index;
        fillFrame(pen, left, top, size, isShown ? 3 : 1.5, isShown ? theme.ink : theme.edge);
        if (layer === last) this.outputImage.drawLattice(pen, left, top, size);
        else image.drawPixels(pen, left, top, size, which++);
        this.#paintBias(pen, left - BIAS / 2, top + size - BIAS / 2, stage.biasOf({ layer, index }));
      }
    }
  }

  #paintBias(pen, left, top, bias) {
    if (!Number.isFinite(bias)) return;
    fillFrame(pen, left, top, BIAS, 1.5, theme.paper);
    pen.globalAlpha = 0.3 + 0.7 * Math.min(1, Math.abs(bias));
    pen.fillStyle = bias < 0 ? theme.negative : theme.positive;
    pen.fillRect(left, top, BIAS, BIAS);
    pen.globalAlpha = 1;
  }

  #paintRests(pen) {
    const { layout, stage } = this;
    pen.fillStyle = theme.muted;
    pen.font = theme.font(12);
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    stage.layers.forEach(({ neurons }, l) => {
      const rest = neurons - layout.shown[l];
      if (l > 0 && rest > 0) pen.fillText(`+${rest} more`, layout.x(l), layout.below(l));
    });
  }

  // ---- mouse, touch and keys -------------------------------------------------------------------------------------

  #listen() {
    const { canvas, stage } = this;
    canvas.onpointermove = (event) => {
      if (event.pointerType !== "mouse" || !this.layout) return;
      const found = this.#under(event);
      canvas.style.cursor = found ? "pointer" : "";
      this.#pointer = { x: event.offsetX, y: event.offsetY };
      stage.point(found && { ...found, isBias: undefined }, "hovered");
      this.#showTip();
    };
    canvas.onpointerleave = () => {
      this.#pointer = null;
      stage.point(null, "hovered");
      this.#showTip();
    };
    canvas.onclick = (event) => {
      if (!this.layout) return;
      const found = this.#under(event);
      stage.point(found, "pinned");
      if (found?.kind === "link") openWeight(stage, found, event.clientX, event.clientY, this.#boxesOf(found));
      if (found?.isBias) openBias(stage, found, event.clientX, event.clientY, this.#boxesOf(found));
      else if (found?.kind === "neuron" && isNarrow.matches) {
        document.querySelector(".plane").scrollIntoView({ behavior: "smooth", block: "start" });
      }
    };
    canvas.onfocus = () => {
      if (canvas.matches(":focus-visible") && !stage.pinned && stage.picture) this.#choose(FIRST);
    };
    canvas.onkeydown = (event) => this.#key(event);
  }

  #under({ offsetX: x, offsetY: y, pointerType }) {
    const { layout } = this;
    const half = layout.size / 2;
    const near = pointerType === "touch" ? 14 : 7;
    for (let layer = 1; layer < layout.shown.length; layer++) {
      for (let index = 0; index < layout.shown[layer]; index++) {
        const [dx, dy] = [x - layout.x(layer), y - layout.neuron(layer, index)];
        const isBias = Math.max(Math.abs(dx + half), Math.abs(dy - half)) <= near;
        if (isBias || Math.max(Math.abs(dx), Math.abs(dy)) <= half + 2) return { kind: "neuron", layer, index, isBias };
      }
    }
    const link = linkUnder(this.#links, x, y);
    return link && { kind: "link", layer: link.layer, from: link.from, to: link.to };
  }

  #key(event) {
    const { stage, canvas } = this;
    const at = stage.pinned;
    if (!stage.picture) return;
    if (event.key === "Enter" && at) {
      const box = canvas.getBoundingClientRect();
      const [x, y] = this.#middleOf(at);
      const open = at.kind === "link" ? openWeight : openBias;
      return open(stage, at, box.left + x, box.top + y, this.#boxesOf(at));
    }
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    this.#choose(this.#neighbour(at ?? FIRST, event.key));
  }

  // Up and down go through a layer, or through the links into a neuron; left goes from a neuron to the first link
  // into it and on to where that begins; right goes the same way back.
  #neighbour(at, key) {
    const { shown } = this.layout;
    const within = (n, count) => Math.max(0, Math.min(count - 1, n));
    const down = { ArrowUp: -1, ArrowDown: 1 }[key] ?? 0;
    if (at.kind === "neuron") {
      if (down) return { ...at, index: within(at.index + down, shown[at.layer]) };
      if (key === "ArrowLeft") {
        if (at.layer === 0) return at;
        return { kind: "link", layer: at.layer, from: within(at.index, shown[at.layer - 1]), to: at.index };
      }
      if (at.layer === shown.length - 1) return at;
      return { kind: "link", layer: at.layer + 1, from: at.index, to: within(at.index, shown[at.layer + 1]) };
    }
    if (down) {
      const count = shown[at.layer];
      const next = within(at.from * count + at.to + down, shown[at.layer - 1] * count);
      return { ...at, from: Math.floor(next / count), to: next % count };
    }
    return key === "ArrowLeft" ? { kind: "neuron", layer: at.layer - 1, index: at.from }
      : { kind: "neuron", layer: at.layer, index: at.to };
  }

  // Where a neuron, or those at the ends of a link, lie in the window.
  #boxesOf({ kind, layer, index, from, to }) {
    const ends = kind === "link" ? [[layer - 1, from], [layer, to]] : [[layer, index]];
    const canvas = this.canvas.getBoundingClientRect();
    const half = this.layout.size / 2 + BIAS;
    return ends.map(([l, n]) => {
      const x = canvas.left + this.layout.x(l);
      const y = canvas.top + (l ? this.layout.neuron(l, n) : this.layout.row(this.tiles.rowOf(n)));
      return { left: x - half, right: x + half, top: y - half, bottom: y + half };
    });
  }

  #choose(at) {
    this.stage.point(at, "pinned");
    this.stage.say(this.stage.describe(at));
  }

  #middleOf(at) {
    if (at.kind === "neuron") return [this.layout.x(at.layer), at.layer ? this.layout.neuron(at.layer, at.index) : 60];
    const { x0, y0, x1, y1 } = this.#links.find((link) => sameThing(link, at));
    return [(x0 + x1) / 2, (y0 + y1) / 2];
  }
}

// From 0 to 1, and the same for the same weight in any network.
function strengthOf(link) {
  return Math.min(1, Math.abs(link.weight) / WIDEST);
}

function fillFrame(pen, left, top, size, width, colour) {
  pen.fillStyle = colour;
  pen.fillRect(left - width, top - width, size + 2 * width, size + 2 * width);
}
