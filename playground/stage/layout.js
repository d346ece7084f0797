// Where the network's parts lie in its diagram, and what lies under the mouse.

const HEAD = 58; // pixels above the neurons, for letters of the usual size: the layers' headers
const LABEL = 54; // left of the inputs' tiles: their names
const LINK_REACH = 7;

// `rows` is the number of rows that the inputs' tiles take, and `scale` the size of letters.
export function layOut({ layers, welcome: { shown: most } }, rows, width, height, scale) {
  const head = HEAD * scale;
  const label = LABEL * scale;
  const shown = layers.map(({ neurons }) => Math.min(neurons, most));
  const tallest = Math.max(rows, ...layers.slice(1).map(({ neurons }, l) => shown[l + 1] + (neurons > most ? 1 : 0)));
  const pitch = Math.min(112 * scale, (height - head) / Math.max(5, tallest));
  const columns = layers.length - 1;
  const room = (width - label) / (columns + 0.75);
  const size = Math.round(Math.max(16, Math.min(76 * scale, pitch * 0.74, room * 0.62)));
  const first = label + size / 2;
  const step = (width - Math.max(size, 56 * scale) / 2 - 6 - first) / columns;
  const middle = head + (height - head) / 2;
  const x = (l) => Math.round(first + l * step);
  return {
    shown, size, step, x,
    row: (r) => middle + (r - (rows - 1) / 2) * pitch, // of the inputs' tiles
    neuron: (l, n) => middle + (n - (shown[l] - 1) / 2) * pitch,
    below: (l) => middle + (shown[l] / 2) * pitch + Math.min(14, (pitch - size) / 2 + 10),
  };
}

// All links that are drawn, with their ends in pixels. `inputRow` tells in which row an input's tile lies.
export function placeLinks(layout, inputRow) {
  const links = [];
  const y = (l, n) => (l === 0 ? layout.row(inputRow(n)) : layout.neuron(l, n));
  const half = layout.size / 2;
  for (let layer = 1; layer < layout.shown.length; layer++) {
    const fan = layout.shown[layer - 1];
    const apart = Math.min(2.5, (0.5 * layout.size) / fan); // between the ends of two links into one neuron
    for (let from = 0; from < fan; from++) {
      for (let to = 0; to < layout.shown[layer]; to++) {
        links.push({
          kind: "link", layer, from, to,
          x0: layout.x(layer - 1) + half, y0: y(layer - 1, from),
          x1: layout.x(layer) - half, y1: y(layer, to) + (from - (fan - 1) / 2) * apart,
        });
      }
    }
  }
  return links;
}

export function traceLink(pen, { x0, y0, x1, y1 }) {
  const bend = (x0 + x1) / 2;
  pen.moveTo(x0, y0);
  pen.bezierCurveTo(bend, y0, bend, y1, x1, y1);
}

export function linkUnder(links, x, y) {
  let best = null;
  let reach = LINK_REACH;
  for (const link of links) {
    if (x < link.x0 || x > link.x1) continue;
    const { s, height } = alongLink(link, x);
    const slope = Math.abs((link.y1 - link.y0) * 6 * s * (1 - s) / (link.x1 - link.x0));
    const distance = Math.abs(y - height) / Math.hypot(1, slope);
    if (distance < reach) [reach, best] = [distance, link];
  }
  return best;
}

// The link's height at x: its curve is symmetric, so a few steps of halving find the place.
function alongLink({ x0, y0, x1, y1 }, x) {
  const bend = (x0 + x1) / 2;
  let [low, high] = [0, 1];
  for (let i = 0; i < 12; i++) {
    const s = (low + high) / 2;
    const at = x0 * (1 - s) ** 3 + bend * 3 * s * (1 - s) + x1 * s ** 3;
    if (at < x) low = s;
    else high = s;
  }
  const s = (low + high) / 2;
  return { s, height: y0 + (y1 - y0) * s * s * (3 - 2 * s) };
}
