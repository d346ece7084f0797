// The loss on a plane through all weights, with its contours and the way that the training took.

import { theme } from "./colours.js";
import { Board, MapImage, traceContour } from "./draw.js";
import { element } from "./words.js";

const LEVELS = 9;
const EDGE = 8;

export class Surface {
  constructor(place, { arrays, shapes, axes }) {
    const [side] = shapes.loss;
    this.side = side;
    this.axes = axes;
    this.path = arrays.path;
    // The rows come from the lowest y on and the picture begins with the highest. Losses differ by powers of ten.
    this.heights = Float32Array.from(arrays.loss, (_, i) =>
      Math.log10(Math.max(1e-9, arrays.loss[(side - 1 - Math.floor(i / side)) * side + (i % side)])));
    [this.low, this.high] = [Math.min(...this.heights), Math.max(...this.heights)];
    const canvas = element("canvas", {
      className: "surface", role: "img", ariaLabel: "The loss surface and the path of the training" });
    place.append(canvas, element("p", { className: "inside-words", textContent: axes.words }));
    this.board = new Board(canvas, () => this.paint());
  }

  paint() {
    if (!this.board.width) return;
    const pen = this.board.clear();
    const size = Math.min(this.board.width, this.board.height) - 2 * EDGE;
    const image = new MapImage(this.side);
    const range = this.high - this.low || 1;
    image.shade(this.heights.map((height) => (this.high - height) / range), theme.shades); // deep is blue
    image.drawLattice(pen, EDGE, EDGE, size);
    pen.strokeStyle = theme.ink;
    for (let i = 1; i < LEVELS; i++) {
      pen.beginPath();
      traceContour(pen, this.heights, this.side, EDGE, EDGE, size, this.low + (i / LEVELS) * range);
      pen.globalAlpha = 0.3;
      pen.lineWidth = 1;
      pen.stroke();
    }
    pen.globalAlpha = 1;
    this.#paintPath(pen, size);
  }

  #paintPath(pen, size) {
    const { xs, ys } = this.axes;
    const x = (value) => EDGE + ((value - xs[0]) / (xs.at(-1) - xs[0])) * size;
    const y = (value) => EDGE + ((ys.at(-1) - value) / (ys.at(-1) - ys[0])) * size;
    pen.beginPath();
    for (let i = 0; i < this.path.length; i += 2) pen.lineTo(x(this.path[i]), y(this.path[i + 1]));
    pen.lineJoin = "round";
    pen.lineWidth = 2.5;
    pen.strokeStyle = theme.negative;
    pen.stroke();
    const dot = (at, colour) => {
      pen.beginPath();
      pen.arc(x(this.path[at]), y(this.path[at + 1]), 5, 0, 2 * Math.PI);
      pen.fillStyle = colour;
      pen.strokeStyle = theme.paper;
      pen.lineWidth = 1.5;
      pen.fill();
      pen.stroke();
    };
    dot(0, theme.muted);
    dot(this.path.length - 2, theme.negative);
  }
}
