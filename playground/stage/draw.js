// Canvases that follow their size on the page, images of maps, contours, and the marks of an axis.

import { shadeOf, theme } from "./colours.js";
import { element } from "./words.js";

// A canvas whose unit is one CSS pixel, however fine the screen is. It asks the page for nothing while it paints. It is
// opaque: then the browser need not mix it with what lies below.
export class Board {
  constructor(canvas, onResize) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d", { alpha: false });
    this.width = this.height = 0;
    new ResizeObserver(([{ contentRect }]) => {
      this.width = contentRect.width;
      this.height = contentRect.height;
      this.ratio = window.devicePixelRatio || 1;
      canvas.width = Math.round(this.width * this.ratio);
      canvas.height = Math.round(this.height * this.ratio);
      this.clear(); // otherwise it is black until it is painted
      onResize();
    }).observe(canvas);
  }

  clear() {
    this.pen.setTransform(1, 0, 0, 1, 0, 0);
    this.pen.fillStyle = theme.paper;
    this.pen.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    return this.pen;
  }

  // A second canvas of the same size, for what seldom changes.
  layer(paint) {
    const canvas = new OffscreenCanvas(Math.max(1, this.canvas.width), Math.max(1, this.canvas.height));
    const pen = canvas.getContext("2d");
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    paint(pen);
    return canvas;
  }
}

// A small square picture that stays as it is. It is an image: browsers copy each canvas of a page in each frame.
export function stillImage(size, paint) {
  const canvas = element("canvas", { width: size, height: size });
  paint(canvas.getContext("2d"));
  return element("img", { src: canvas.toDataURL(), alt: "", draggable: false });
}

// Square maps, one below the other; colours between their values are interpolated. The values of a map are either the
// middles of its pixels, or the nodes of a lattice from edge to edge: then it is drawn from the middle of its first
// pixel to the middle of its last one.
export class MapImage {
  constructor(resolution, count = 1) {
    this.resolution = resolution;
    this.canvas = new OffscreenCanvas(resolution, resolution * Math.max(1, count));
    this.pen = this.canvas.getContext("2d");
    this.image = new ImageData(this.canvas.width, this.canvas.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  shade(values, shades, unit = 1) { // numbers from -unit to unit
    for (let i = 0; i < values.length; i++) this.pixels[i] = shades[shadeOf(values[i] / unit)];
    this.pen.putImageData(this.image, 0, 0);
  }

  shadeSmall(values, smallShades, at = 0) { // whole numbers from -127 to 127
    for (let i = 0; i < values.length; i++) this.pixels[at + i] = smallShades[values[i] + 128];
    this.pen.putImageData(this.image, 0, 0);
  }

  drawLattice(pen, left, top, size) {
    const last = this.resolution - 1;
    pen.drawImage(this.canvas, 0.5, 0.5, last, last, left, top, size, size);
  }

  drawPixels(pen, left, top, size, which = 0) {
    pen.drawImage(this.canvas, 0, which * this.resolution, this.resolution, this.resolution, left, top, size, size);
  }
}

// Values between the nodes of a lattice, `factor` times as fine, by straight interpolation.
export function refined(values, resolution, factor) {
  const fine = (resolution - 1) * factor + 1;
  const result = new Float32Array(fine * fine);
  for (let row = 0; row < fine; row++) {
    const top = Math.min(resolution - 2, Math.floor(row / factor));
    const down = row / factor - top;
    for (let column = 0; column < fine; column++) {
      const left = Math.min(resolution - 2, Math.floor(column / factor));
      const along = column / factor - left;
      const at = top * resolution + left;
      result[row * fine + column] = (values[at] * (1 - along) + values[at + 1] * along) * (1 - down)
        + (values[at + resolution] * (1 - along) + values[at + resolution + 1] * along) * down;
    }
  }
  return result;
}

// The value at a place of the lattice; column and row run from 0 to 1.
export function valueAt(values, resolution, column, row) {
  const x = Math.min(column * (resolution - 1), resolution - 1.001);
  const y = Math.min(row * (resolution - 1), resolution - 1.001);
  const [left, top] = [Math.floor(x), Math.floor(y)];
  const at = top * resolution + left;
  const mix = (a, b, share) => a + (b - a) * share;
  return mix(mix(values[at], values[at + 1], x - left),
    mix(values[at + resolution], values[at + resolution + 1], x - left), y - top);
}

// Adds the line on which the values are `level` to the pen's path, by marching squares. It reaches the edges.
export function traceContour(pen, values, resolution, left, top, size, level = 0) {
  const cell = size / (resolution - 1);
  for (let row = 0; row < resolution - 1; row++) {
    const y = top + row * cell;
    const above = row * resolution, below = above + resolution;
    for (let column = 0; column < resolution - 1; column++) {
      const a = values[above + column] - level, b = values[above + column + 1] - level;
      const c = values[below + column + 1] - level, d = values[below + column] - level;
      const x = left + column * cell;
      let found = 0;
      if (a > 0 !== b > 0) [xs[found], ys[found++]] = [x + (a / (a - b)) * cell, y];
      if (b > 0 !== c > 0) [xs[found], ys[found++]] = [x + cell, y + (b / (b - c)) * cell];
      if (c > 0 !== d > 0) [xs[found], ys[found++]] = [x + (d / (d - c)) * cell, y + cell];
      if (d > 0 !== a > 0) [xs[found], ys[found++]] = [x, y + (a / (a - d)) * cell];
      for (let i = 0; i < found; i += 2) {
        pen.moveTo(xs[i], ys[i]);
        pen.lineTo(xs[i + 1], ys[i + 1]);
      }
    }
  }
}

const xs = [0, 0, 0, 0], ys = [0, 0, 0, 0]; // where a contour crosses the sides of one cell

export function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  return Array.from({ length: Math.floor((high - low) / step + 1e-9) + 1 }, (_, i) => low + i * step);
}

export function line(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}
