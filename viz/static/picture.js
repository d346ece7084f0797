// Pictures as Graphviz draws them: read from their SVG, and stretched.

const SVG = "http://www.w3.org/2000/svg";

const numbers = (text) => (text.match(/-?\d+\.?\d*(?:e-?\d+)?/gi) ?? []).map(Number);

function pairs(text) {
  const flat = numbers(text);
  return Array.from({ length: flat.length >> 1 }, (_, i) => [flat[2 * i], flat[2 * i + 1]]);
}

export function boundsOf(points) {
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (const [x, y] of points) {
    box.left = Math.min(box.left, x);
    box.right = Math.max(box.right, x);
    box.top = Math.min(box.top, y);
    box.bottom = Math.max(box.bottom, y);
  }
  return box;
}

// The smallest box around boxes.
export function around(boxes) {
  return boundsOf(boxes.flatMap(({ left, right, top, bottom }) => [[left, top], [right, bottom]]));
}

export const attribute = (element, name) => Number(element.getAttribute(name));
export const pointsOf = (shape) => pairs(shape.getAttribute("d") ?? shape.getAttribute("points"));

export function extent(shape) {
  if (shape.tagName !== "ellipse") return boundsOf(pointsOf(shape));
  const [cx, cy, rx, ry] = ["cx", "cy", "rx", "ry"].map((name) => attribute(shape, name));
  return boundsOf([[cx - rx, cy - ry], [cx + rx, cy + ry]]);
}

export function extentOfText(text) {
  const left = attribute(text, "x");
  const guess = 0.6 * attribute(text, "font-size") * text.textContent.length; // its width is not known
  return { left, right: left + (attribute(text, "textLength") || guess) };
}

const SHAPES = "ellipse, path, polygon, polyline";

// An edge. It leads `from` a node `to` another, wherever Graphviz has its tail and its head.
function readEdge(group) {
  const [tail, head] = group.dataset.key.split("->");
  const paths = [...group.querySelectorAll("path")].map((element) => ({
    element,
    points: pairs(element.getAttribute("d")),
  }));
  const line = paths[0].points;
  const heads = [...group.querySelectorAll("polygon")].map((element) => {
    const points = pairs(element.getAttribute("points"));
    const away = ([x, y]) => Math.hypot(x - points[0][0], y - points[0][1]);
    return { element, points, atHead: away(line.at(-1)) < away(line[0]) };
  });
  const texts = [...group.querySelectorAll("text")].map((element) => ({
    element,
    at: [attribute(element, "x"), attribute(element, "y")],
  }));
  const [from, to] = heads.some(({ atHead }) => !atHead) ? [head, tail] : [tail, head];
  const label = texts.map(({ element }) => element.textContent).join("").trim();
  return { element: group, tail, head, from, to, label, paths, heads, texts };
}

// A picture: its nodes, edges and grounds (the frames of its rows), and the legend beside them.
export function readPicture(text) {
  const graph = new DOMParser().parseFromString(text, "image/svg+xml").querySelector("g.graph");
  const of = (kind) => [...graph.querySelectorAll(`g.${kind}`)];
  const nodes = new Map(
    of("node").map((element) => {
      const box = around([...element.querySelectorAll(SHAPES)].map(extent));
      const round = element.querySelector("ellipse") !== null;
      const words = [...element.querySelectorAll("text")].map((word) => word.textContent);
      return [element.dataset.key, { key: element.dataset.key, element, box, round, words: words.join(" ") }];
    }),
  );
  const edges = of("edge").map(readEdge).filter((edge) => nodes.has(edge.tail) && nodes.has(edge.head));
  const grounds = of("cluster").map((element) => ({ element, box: extent(element.querySelector(SHAPES)) }));
  const loose = [...graph.children].slice(1).filter((element) => !["g", "a"].includes(element.tagName));
  return { nodes, edges, grounds, loose };
}

// ---- Stretching ----------------------------------------------------------------------------------------

// The function f that sheet.js begins with, for intervals [from, to, the length it needs].
export function stretch(intervals) {
  const needed = intervals
    .filter(([from, to, length]) => length > to - from)
    .map(([from, to, length]) => ({ from, to, density: length / (to - from) - 1 }));
  if (!needed.length) return (x) => x;
  const stops = [...new Set(needed.flatMap(({ from, to }) => [from, to]))].sort((a, b) => a - b);
  const added = [0];
  const density = stops.slice(1).map((to, i) => {
    const here = needed.filter((interval) => interval.from < to && interval.to > stops[i]);
    const most = Math.max(0, ...here.map((interval) => interval.density));
    added.push(added[i] + most * (to - stops[i]));
    return most;
  });
  return (x) => {
    if (x <= stops[0]) return x;
    if (x >= stops.at(-1)) return x + added.at(-1);
    let [low, high] = [0, stops.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (stops[middle] <= x) low = middle;
      else high = middle;
    }
    return x + added[low] + density[low] * (x - stops[low]);
  };
}

export const mix = (a, b, share) => a + (b - a) * share;
export const middle = (box) => [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
export const round = (x) => Math.round(x * 100) / 100;

export function create(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const ruler = document.createElement("canvas").getContext("2d");

export function widthOf(text, font) {
  ruler.font = font;
  return ruler.measureText(text).width;
}

