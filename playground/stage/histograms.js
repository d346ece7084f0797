// How the activations and the gradients of each layer are spread: one column for each layer.

import { theme } from "./colours.js";
import { Board, line } from "./draw.js";
import { element, minus } from "./words.js";

const ROWS = { hist: "Activations", grad: "Gradients" };
const HEIGHT = 130; // of one histogram

export class Histograms {
  constructor(stage, place) {
    this.stage = stage;
    const canvas = element("canvas", { className: "histograms", role: "img",
      ariaLabel: "Histograms of the activations and the gradients of each layer" });
    place.append(canvas);
    this.board = new Board(canvas, () => this.paint());
  }

  paint() {
    const { picture, layers } = this.stage;
    if (!picture?.arrays.hist_1 || !this.board.width) return;
    const pen = this.board.clear();
    const count = layers.length - 1;
    const width = Math.min(460, this.board.width / count);
    Object.entries(ROWS).forEach(([name, words], row) => {
      for (let l = 1; l <= count; l++) {
        const box = { left: (l - 1) * width + 4, top: row * (HEIGHT + 46) + 22, width: width - 16 };
        const title = width > 150 ? `${words}, ${layers[l].title}` : `${words} ${l}`;
        this.#paintOne(pen, box, title, picture.arrays[`${name}_${l}`], picture[`${name}_range`][l - 1]);
      }
    });
  }

  #paintOne(pen, { left, top, width }, title, counts, [low, high]) {
    const most = Math.max(1, ...counts);
    const bar = width / counts.length;
    pen.font = theme.font(12);
    pen.textBaseline = "alphabetic";
    pen.textAlign = "left";
    pen.fillStyle = theme.ink;
    pen.fillText(title, left, top - 7, width);
    counts.forEach((count, i) => {
      const height = (count / most) * HEIGHT;
      const middle = low + ((i + 0.5) / counts.length) * (high - low);
      pen.fillStyle = middle < 0 ? theme.negative : theme.positive;
      pen.fillRect(left + i * bar, top + HEIGHT - height, Math.max(1, bar - 1), height);
    });
    pen.strokeStyle = theme.edge;
    line(pen, left, top + HEIGHT + 0.5, left + width, top + HEIGHT + 0.5);
    pen.font = theme.font(11);
    pen.fillStyle = theme.muted;
    pen.fillText(readable(low), left, top + HEIGHT + 14);
    pen.textAlign = "right";
    pen.fillText(readable(high), left + width, top + HEIGHT + 14);
  }
}

function readable(value) {
  return minus(Math.abs(value) >= 0.01 || value === 0 ? +value.toPrecision(2) : value.toExponential(0));
}
