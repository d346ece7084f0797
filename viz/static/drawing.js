// A drawing that can be panned, zoomed and searched, and whose groups open and close.
//
// Graphviz laid out several pictures: the whole with all groups closed, and the inside of each group. An open
// group shows its inside in a frame at its place, and the picture around it is stretched to make room, across
// and down: f(x) = x + the integral of s, where s(x) is the largest stretch that any open group needs at x.
// f never falls and its slope is at least 1, so boxes that are moved by f(centre) - centre, and kept rigid,
// cannot meet if they did not meet before.

const SVG = "http://www.w3.org/2000/svg";
const NATURAL = 4 / 3; // pixels of a point: letters are never drawn larger unless one zooms
const LEGEND = 1.15; // pixels of a point of the legend
const READABLE = 0.7; // a smaller scale is not chosen for a picture that has just been opened further
const ZOOM = [0.05, 6];
const BAR = 22; // height of the title of an open group
const GAP = 10; // between a frame and what it holds
const MARGIN = 12; // between a picture and the edge of the view
const VISIBLE = 0.15; // of a picture at a smaller scale nothing can be made out
const SHORTEST = 120; // a view, in pixels
const DURATION = 280; // milliseconds

// ---- Pictures as Graphviz draws them -------------------------------------------------------------------

const numbers = (text) => (text.match(/-?\d+\.?\d*(?:e-?\d+)?/gi) ?? []).map(Number);

function pairs(text) {
  const flat = numbers(text);
  return Array.from({ length: flat.length >> 1 }, (_, i) => [flat[2 * i], flat[2 * i + 1]]);
}

function boundsOf(points) {
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (const [x, y] of points) {
    box.left = Math.min(box.left, x);
    box.right = Math.max(box.right, x);
    box.top = Math.min(box.top, y);
    box.bottom = Math.max(box.bottom, y);
  }
  return box;
}

const attribute = (element, name) => Number(element.getAttribute(name));
const pointsOf = (shape) => pairs(shape.getAttribute("d") ?? shape.getAttribute("points"));

function extent(shape) {
  if (shape.tagName !== "ellipse") return boundsOf(pointsOf(shape));
  const [cx, cy, rx, ry] = ["cx", "cy", "rx", "ry"].map((name) => attribute(shape, name));
  return boundsOf([[cx - rx, cy - ry], [cx + rx, cy + ry]]);
}

const SHAPES = "ellipse, path, polygon, polyline";

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
  const between = group.classList.contains("between-rows");
  return { element: group, tail, head, paths, heads, texts, between };
}

// A picture: its nodes, edges and grounds (the frames of its rows), their bounds, and what stands loose: the
// legend.
function readPicture(text) {
  const graph = new DOMParser().parseFromString(text, "image/svg+xml").querySelector("g.graph");
  const of = (kind) => [...graph.querySelectorAll(`g.${kind}`)];
  const nodes = new Map(
    of("node").map((element) => {
      const box = extent(element.querySelector(SHAPES));
      const words = [...element.querySelectorAll("text")].map((word) => word.textContent);
      return [element.dataset.key, { key: element.dataset.key, element, box, words: words.join(" ") }];
    }),
  );
  const edges = of("edge").map(readEdge).filter((edge) => nodes.has(edge.tail) && nodes.has(edge.head));
  const grounds = of("cluster").map((element) => ({ element, box: extent(element.querySelector(SHAPES)) }));
  const boxes = [...nodes.values(), ...grounds].map(({ box }) => box);
  const corners = boxes.flatMap((box) => [[box.left, box.top], [box.right, box.bottom]]);
  const box = boundsOf([...corners, ...edges.flatMap((edge) => edge.paths.flatMap((path) => path.points))]);
  const loose = [...graph.children].slice(1).filter((element) => !["g", "a"].includes(element.tagName));
  return { nodes, edges, grounds, box, loose };
}

// ---- Stretching ----------------------------------------------------------------------------------------

// The function f of the first lines, for intervals [from, to, length that it must have].
function stretch(intervals) {
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

const mix = (a, b, share) => a + (b - a) * share;
const middle = (box) => [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
const round = (x) => Math.round(x * 100) / 100;

function create(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const ruler = document.createElement("canvas").getContext("2d");

function widthOf(text, font) {
  ruler.font = font;
  return ruler.measureText(text).width;
}

// ---- One picture on the page, with the pictures inside its open groups ----------------------------------

class Sheet {
  constructor(drawing, key) {
    this.drawing = drawing;
    this.key = key;
    const picture = readPicture(drawing.data.pictures[key]);
    Object.assign(this, picture);
    this.element = create("g", { class: "sheet" });
    this.groundLayer = this.element.appendChild(create("g"));
    this.edgeLayer = this.element.appendChild(create("g"));
    this.nodeLayer = this.element.appendChild(create("g"));
    this.groundLayer.append(...picture.grounds.map(({ element }) => document.importNode(element, true)));
    this.grounds = picture.grounds.map(({ box }, i) => {
      const element = this.groundLayer.children[i];
      const [shape, title] = [element.querySelector("path, polygon"), element.querySelector("text")];
      return { box, shape, title, points: pointsOf(shape) };
    });
    this.edges = this.edges.flatMap((edge) => this.strands(edge));
    this.edgeLayer.append(...this.edges.map((edge) => edge.element));
    this.nodeLayer.append(...[...this.nodes.values()].map((node) => node.element));
    this.groups = [...this.nodes.values()].filter((node) => node.key in drawing.data.groups);
    for (const node of this.groups) this.prepare(node);
  }

  // An edge stands for all that goes from one box to another: one strand for each port that it will lead to.
  strands(edge) {
    const { groups } = this.drawing.data;
    const [backwards] = edge.heads.map(({ atHead }) => !atHead);
    const ends = backwards ? [edge.head, edge.tail] : [edge.tail, edge.head];
    const [from, to] = ends.map((key) => key.split("_for_")[0]);
    const out = groups[from]?.out[to] ?? [];
    const into = groups[to]?.in[from] ?? [];
    const names = [...new Set([...out, ...into])];
    if (edge.between) return [{ ...edge, ports: into.length ? [, `in_${into[0]}`] : [] }];
    // A result that is drawn beside its group is drawn inside as well.
    if (!names.length) return [{ ...edge, ports: backwards ? [, to] : [to] }];
    return names.map((name, i) => {
      const strand = i ? readEdge(edge.element.cloneNode(true)) : edge;
      const ports = [out.includes(name) ? name : out[0], into.includes(name) ? name : into[0]];
      const keys = [ports[0] && `out_${ports[0]}`, ports[1] && `in_${ports[1]}`];
      return { ...strand, spare: i > 0, ports: backwards ? keys.reverse() : keys };
    });
  }

  // A group's box becomes a button, with a sign that it can be opened.
  prepare(node) {
    node.group = this.drawing.data.groups[node.key];
    node.element.classList.add("group");
    if (!(node.key in this.drawing.data.pictures)) {
      const size = node.group.size.toLocaleString();
      const why = `${size} nodes, more than this drawing holds: draw with a higher limit=`;
      node.element.append(create("title", {}, why));
      node.element.classList.add("sealed");
      return;
    }
    const { right, top } = node.box;
    const stroke = node.element.querySelector("path, polygon").getAttribute("stroke");
    const sign = create("g", { class: "sign", transform: `translate(${right - 1} ${top + 1})` });
    const plus = create("path", { d: "M-3.2,0H3.2M0,-3.2V3.2", stroke });
    sign.append(create("circle", { r: 6.5, stroke }), plus);
    node.element.append(sign);
    this.drawing.makeButton(node.element, node.key, false);
  }

  // The frame, title and inside of a group, made when it is first opened.
  inside(node) {
    if (node.inside) return node.inside;
    const sheet = new Sheet(this.drawing, node.key);
    const shape = node.element.querySelector("path, polygon");
    const [stroke, fill] = ["stroke", "fill"].map((name) => shape.getAttribute(name));
    const ground = create("rect", { class: "ground", rx: 8, fill: "var(--ground)" });
    const frame = create("rect", { class: "frame", rx: 8, stroke, fill, "fill-opacity": 0.3 });
    const back = create("g", {}, ground, frame);
    const bar = create("g", { class: "bar" });
    const hit = create("rect", { height: BAR, rx: 8, fill, "fill-opacity": 0.01 });
    const sign = create("path", { d: `M${GAP},${BAR / 2}h7`, stroke, "stroke-width": 1.6 });
    const title = create("text", { x: GAP + 13, y: BAR / 2 + 4, "font-size": 11, "font-weight": "bold" });
    title.textContent = node.group.title;
    bar.append(hit, sign, title);
    this.drawing.makeButton(bar, node.key, true);
    this.groundLayer.append(back);
    const clip = create("g", { class: "inside" }, sheet.element);
    this.nodeLayer.append(clip, bar);
    const titleWidth = widthOf(node.group.title, "bold 11px Helvetica, Arial, sans-serif") + 3 * GAP + 13;
    node.inside = { sheet, back, bar, hit, clip, ground, frame, titleWidth };
    return node.inside;
  }

  // How large all of it is with the groups as open as they are now, from the innermost outwards.
  measure() {
    const { openness } = this.drawing;
    const across = [];
    const down = [];
    for (const node of this.groups) {
      node.openness = openness.get(node.key) ?? 0;
      if (!node.openness) continue;
      const { left, right, top, bottom } = node.box;
      const { sheet, titleWidth } = this.inside(node);
      sheet.measure();
      node.full = {
        width: Math.max(right - left, sheet.width + 2 * GAP, titleWidth),
        height: Math.max(bottom - top, sheet.height + BAR + GAP),
      };
      node.width = mix(right - left, node.full.width, node.openness);
      node.height = mix(bottom - top, node.full.height, node.openness);
      across.push([left, right, node.width]);
      down.push([top, bottom, node.height]);
    }
    this.toX = stretch(across);
    this.toY = stretch(down);
    const [left, right] = [this.box.left, this.box.right].map(this.toX);
    const [top, bottom] = [this.box.top, this.box.bottom].map(this.toY);
    this.bounds = { left, right, top, bottom };
    this.width = right - left;
    this.height = bottom - top;
    for (const node of this.nodes.values()) this.shift(node);
  }

  // Where a node stands now: `place`, the box that it takes up, in the coordinates of this picture.
  shift(node) {
    const { left, right, top, bottom } = node.box;
    if (!node.openness) {
      const [x, y] = middle(node.box);
      node.by = [this.toX(x) - x, this.toY(y) - y];
      const [dx, dy] = node.by;
      node.place = { left: left + dx, right: right + dx, top: top + dy, bottom: bottom + dy };
      return;
    }
    const x = (this.toX(left) + this.toX(right)) / 2;
    const y = (this.toY(top) + this.toY(bottom)) / 2;
    const [w, h] = [node.width / 2, node.height / 2];
    node.place = { left: x - w, right: x + w, top: y - h, bottom: y + h };
    const [cx, cy] = middle(node.box);
    node.by = [x - cx, y - cy];
    const { bounds, width, height } = node.inside.sheet;
    const scale = Math.min((node.width - 2 * GAP) / (node.full.width - 2 * GAP), 1);
    const above = Math.max(0, (node.height - BAR - GAP - scale * height) / 2);
    node.scale = scale;
    node.origin = [
      x - (scale * width) / 2 - scale * bounds.left,
      node.place.top + BAR + above - scale * bounds.top,
    ];
  }

  // Puts everything where `measure` found that it belongs.
  draw() {
    for (const { box, shape, title, points } of this.grounds) {
      const [left, right] = [box.left, box.right].map((x) => this.toX(x) - x);
      const [top, bottom] = [box.top, box.bottom].map((y) => this.toY(y) - y);
      const [cx, cy] = middle(box);
      setPath(shape, points.map(([x, y]) => [x + (x < cx ? left : right), y + (y < cy ? top : bottom)]));
      title?.setAttribute("transform", `translate(${round(left)} ${round(top)})`);
    }
    for (const node of this.nodes.values()) {
      node.element.setAttribute("transform", `translate(${node.by.map(round)})`);
      if (node.inside) this.drawInside(node);
    }
    for (const edge of this.edges) this.drawEdge(edge);
  }

  drawInside(node) {
    const { sheet, back, bar, hit, clip, ground, frame } = node.inside;
    const { openness } = node;
    for (const element of [back, bar, clip]) element.style.display = openness ? "" : "none";
    node.element.style.display = openness === 1 ? "none" : "";
    node.element.style.opacity = 1 - openness;
    if (!openness) return;
    for (const element of [back, bar, clip]) element.style.opacity = openness;
    const { left, top } = node.place;
    for (const rect of [ground, frame]) {
      const place = { x: left, y: top, width: node.width, height: node.height };
      for (const [name, value] of Object.entries(place)) rect.setAttribute(name, round(value));
    }
    bar.setAttribute("transform", `translate(${round(left)} ${round(top)})`);
    hit.setAttribute("width", round(node.width));
    clip.setAttribute("transform", `translate(${node.origin.map(round)}) scale(${node.scale})`);
    sheet.draw();
  }

  drawEdge({ element, tail, head, paths, heads, texts, ports, between, spare }) {
    const nodes = [this.nodes.get(tail), this.nodes.get(head)];
    if (spare) element.style.display = nodes.some((node, i) => node.openness && ports[i]) ? "" : "none";
    const follows = nodes.map((node, i) => (point) => follow(node, point, ports[i], nodes[1 - i], between));
    for (const { element: path, points } of paths) {
      const moved = this.bend(points, follows[0](points[0]), follows[1](points.at(-1)));
      for (const arrow of heads) this.aim(arrow, follows[arrow.atHead ? 1 : 0], points, moved);
      setPath(path, moved);
    }
    for (const { element: text, at } of texts) {
      const by = [this.toX(at[0]) - at[0], this.toY(at[1]) - at[1]];
      text.setAttribute("transform", `translate(${by.map(round)})`);
    }
  }

  // A curve with new ends. Where it goes around something it does so still: how far each control point is off
  // the straight line is stretched. So a straight edge stays straight.
  bend(points, first, last) {
    const [toX, toY] = [this.toX, this.toY];
    const moved = points.map(([x, y]) => [toX(x), toY(y)]);
    moved[0] = first;
    moved[moved.length - 1] = last;
    for (let i = 0; i + 3 < points.length; i += 3) {
      for (const j of [1, 2]) {
        const line = (ends, axis) => mix(ends[i][axis], ends[i + 3][axis], j / 3);
        const [x, y] = points[i + j];
        moved[i + j] = [
          line(moved, 0) + toX(x) - toX(line(points, 0)),
          line(moved, 1) + toY(y) - toY(line(points, 1)),
        ];
      }
    }
    for (let i = 3; i + 3 < points.length; i += 3) smooth(moved, i);
    return moved;
  }

  // Turns the arrow at an end of a moved curve into its new direction, with the tip on the node.
  aim({ element, points, atHead }, follow, before, moved) {
    const [end, near] = atHead ? [-1, -2] : [0, 1];
    const from = before.at(end);
    const away = ([x, y]) => Math.hypot(x - from[0], y - from[1]);
    const tip = points.reduce((a, b) => (away(b) > away(a) ? b : a));
    const to = follow(tip);
    const direction = ([x, y], [u, v]) => Math.atan2(v - y, u - x);
    const angle = direction(moved.at(near), to);
    const turn = ((angle - direction(from, tip)) * 180) / Math.PI;
    const by = [to[0] - tip[0], to[1] - tip[1]].map(round);
    element.setAttribute("transform", `translate(${by}) rotate(${round(turn)} ${tip.map(round)})`);
    moved.splice(end, 1, [to[0] - away(tip) * Math.cos(angle), to[1] - away(tip) * Math.sin(angle)]);
  }

  // The nodes of a key in this picture and in the open groups of it, as boxes in its own coordinates.
  find(key, inPicture) {
    if (this.key === inPicture) return this.nodes.get(key)?.place;
    for (const node of this.groups) {
      const place = node.openness && node.inside.sheet.find(key, inPicture);
      if (!place) continue;
      const [x, y] = node.origin;
      const { scale } = node;
      return {
        left: x + scale * place.left,
        right: x + scale * place.right,
        top: y + scale * place.top,
        bottom: y + scale * place.bottom,
      };
    }
    return undefined;
  }
}

// Where a point on the border of a node is now: it moves with the node. At an open group an edge is led on to
// the border of the port inside that faces the other node; one between rows, to the frame above the port.
function follow(node, [x, y], portKey, other, between) {
  const { box, place, openness } = node;
  const along = (at, low, high, newLow, newHigh) => {
    if (at <= low) return newLow + at - low;
    if (at >= high) return newHigh + at - high;
    return mix(newLow, newHigh, (at - low) / (high - low));
  };
  const border = [
    along(x, box.left, box.right, place.left, place.right),
    along(y, box.top, box.bottom, place.top, place.bottom),
  ];
  const port = openness && node.inside.sheet.nodes.get(portKey)?.place;
  if (!port) return border;
  const [atX, atY] = [0, 1].map((axis) => (at) => node.origin[axis] + node.scale * at);
  const [px, py] = middle(port);
  if (between) return [mix(border[0], atX(px), openness), border[1]];
  const across = place.left >= other.place.right || place.right <= other.place.left;
  const end = across
    ? [atX(place.left >= other.place.right ? port.left : port.right), atY(py)]
    : [atX(px), atY(place.top >= other.place.bottom ? port.top : port.bottom)];
  return [mix(border[0], end[0], openness), mix(border[1], end[1], openness)];
}

// Lets a curve run through a joint without a bend.
function smooth(points, i) {
  const [before, joint, after] = [points[i - 1], points[i], points[i + 1]];
  const length = Math.hypot(after[0] - before[0], after[1] - before[1]);
  if (!length) return;
  const along = [(after[0] - before[0]) / length, (after[1] - before[1]) / length];
  for (const [j, sign] of [[i - 1, -1], [i + 1, 1]]) {
    const away = sign * Math.hypot(points[j][0] - joint[0], points[j][1] - joint[1]);
    points[j] = [joint[0] + away * along[0], joint[1] + away * along[1]];
  }
}

function setPath(element, points) {
  const written = points.map((point) => point.map(round).join(","));
  if (element.tagName === "polygon") element.setAttribute("points", written.join(" "));
  else element.setAttribute("d", `M${written[0]}C${written.slice(1).join(" ")}`);
}

// ---- The drawing: what is open, where one looks, what one searches ---------------------------------------

const PAGE = `
  <div class="card" part="card">
    <div class="tools">
      <label class="search"><input type="search" placeholder="Search" aria-label="Search the drawing"
        autocomplete="off" spellcheck="false"><span class="count" role="status"></span></label>
      <span class="space"></span>
      <button data-do="all" hidden></button>
      <button data-do="out" title="Smaller (−)" aria-label="Zoom out">−</button>
      <button data-do="in" title="Larger (+)" aria-label="Zoom in">+</button>
      <button data-do="fit" title="Show all of it (0)">Fit</button>
    </div>
    <div class="view" tabindex="0" role="group">
      <svg><g class="world"></g></svg>
      <div class="hint" aria-hidden="true"></div>
    </div>
    <details class="legend"><summary>Legend</summary></details>
  </div>
  <div class="paper"><slot></slot></div>`;

class Drawing {
  constructor(host, data, css) {
    this.data = data;
    this.host = host;
    this.root = host.attachShadow({ mode: "open" });
    this.root.innerHTML = `<style>${css}</style>${PAGE}`;
    const part = (selector) => this.root.querySelector(selector);
    [this.card, this.view, this.world] = [part(".card"), part(".view"), part(".world")];
    [this.field, this.count, this.hint] = [part("input"), part(".count"), part(".hint")];
    for (const [name, value] of Object.entries(data.colours)) this.card.style.setProperty(`--${name}`, value);
    this.card.classList.toggle("dark", luminance(data.colours.ground) < 0.5);
    this.view.setAttribute("aria-label", data.title);
    this.openable = Object.keys(data.groups).filter((key) => key in data.pictures);
    this.openness = new Map(data.open.filter((key) => this.openable.includes(key)).map((key) => [key, 1]));
    this.look = undefined; // the picture's scale and place in the view
    this.whole = true; // all of it is in view
    this.moved = false; // by hand
    this.sheet = new Sheet(this, "");
    this.world.append(this.sheet.element);
    this.rings = this.world.appendChild(create("g", { class: "rings" }));
    this.addLegend();
    this.sheet.measure();
    this.listen();
    this.resize();
  }

  addLegend() {
    const legend = this.root.querySelector(".legend");
    const { pictures } = this.data;
    const { loose } = "legend" in pictures ? readPicture(pictures.legend) : this.sheet;
    if (!loose.length) return legend.remove();
    const corners = loose.flatMap((element) => {
      if (element.tagName !== "text") {
        const box = extent(element);
        return [[box.left, box.top], [box.right, box.bottom]];
      }
      const [x, y] = [attribute(element, "x"), attribute(element, "y")];
      return [[x, y - 8], [x + (attribute(element, "textLength") || 120), y + 4]];
    });
    const { left, top, right, bottom } = boundsOf(corners);
    const [width, height] = [right - left + 4, bottom - top + 4];
    const look = { viewBox: [left - 2, top - 2, width, height].map(round), width: round(width * LEGEND) };
    legend.append(create("svg", { ...look, role: "img", "aria-label": "Legend" }, ...loose));
    legend.open = true;
    return legend;
  }

  makeButton(element, key, isOpen) {
    const { title } = this.data.groups[key];
    const says = { role: "button", tabindex: 0, "aria-expanded": isOpen, "data-toggle": key };
    says["aria-label"] = `${isOpen ? "Close" : "Open"} ${title}`;
    for (const [name, value] of Object.entries(says)) element.setAttribute(name, value);
  }

  // -- Opening and closing --

  isOpen(key) {
    return (this.openness.get(key) ?? 0) > 0.5;
  }

  // Opens or closes groups. `about` is the group that keeps its place on the page, if there is one.
  async set(keys, open, about) {
    this.finish?.();
    const before = this.anchor(about);
    const from = new Map(keys.map((key) => [key, this.openness.get(key) ?? 0]));
    const apply = (share) => {
      for (const key of keys) {
        const value = mix(from.get(key), open ? 1 : 0, share);
        if (value) this.openness.set(key, value);
        else this.openness.delete(key);
      }
      this.sheet.measure();
    };
    const start = { ...this.look };
    apply(1);
    this.setWidth();
    const end = this.lookAfter(about, before);
    this.setHeight(end);
    await this.animate((share) => {
      apply(share);
      this.look = blend(start, end, share);
      this.draw();
    });
    this.refresh();
  }

  // At first, as many groups are open, from the outermost on, as can be read in the page's width.
  openWhatFits() {
    this.data.fitting = false;
    const keys = this.openable.filter((key) => this.openness.has(key) && this.data.groups[key].size > 1);
    this.openness.clear();
    const fits = () => {
      this.sheet.measure();
      this.setWidth();
      return this.lookAtAll().scale >= READABLE;
    };
    fits();
    const waiting = keys.filter((key) => !this.data.groups[key].parent);
    for (const key of waiting) {
      this.openness.set(key, 1);
      if (fits()) waiting.push(...keys.filter((inner) => this.data.groups[inner].parent === key));
      else this.openness.delete(key);
    }
    fits();
  }

  toggle(key) {
    const hadFocus = this.root.activeElement?.dataset.toggle === key;
    const open = !this.isOpen(key);
    const done = this.set([key], open, key);
    if (hadFocus) this.buttonOf(key, open)?.focus({ preventScroll: true });
    return done;
  }

  buttonOf(key, isOpen) {
    return this.world.querySelector(`[data-toggle="${CSS.escape(key)}"][aria-expanded="${isOpen}"]`);
  }

  // The path of groups from the outermost one to a group, itself included.
  wayTo(key) {
    return key ? [...this.wayTo(this.data.groups[key].parent), key] : [];
  }

  anchor(key) {
    return key === undefined ? undefined : this.sheet.find(key, this.data.groups[key].parent);
  }

  // Where to look once groups are open: at all of it as long as that can be read, else at the same group.
  lookAfter(about, before) {
    const all = this.lookAtAll();
    const after = this.anchor(about);
    if (!after) return this.firstLook();
    this.whole = !this.moved && all.scale >= READABLE;
    if (this.whole) return all;
    const { scale, x, y } = this.look;
    const room = (this.size.width - 2 * MARGIN) / (after.right - after.left);
    const readable = Math.min(scale, Math.max(room, READABLE));
    const look = {
      scale: readable,
      x: x + scale * before.left - readable * after.left,
      y: y + scale * before.top - readable * after.top,
    };
    return this.lookThatShows(after, look);
  }

  // The look nearest to `look` that shows a box, or as much of its beginning as there is room for, and beside
  // it nothing but the picture.
  lookThatShows(box, look = this.look) {
    const { scale } = look;
    const { bounds } = this.sheet;
    const into = (at, low, high, first, last, room) => {
      const [from, to] = [at + scale * low, at + scale * high];
      if (from < MARGIN || to - from > room - 2 * MARGIN) at += MARGIN - from;
      else if (to > room - MARGIN) at -= to - room + MARGIN;
      if (scale * (last - first) <= room - 2 * MARGIN) return (room - scale * (first + last)) / 2;
      return Math.max(Math.min(at, MARGIN - scale * first), room - MARGIN - scale * last);
    };
    return {
      scale,
      x: into(look.x, box.left, box.right, bounds.left, bounds.right, this.size.width),
      y: into(look.y, box.top, box.bottom, bounds.top, bounds.bottom, this.heightAt(scale)),
    };
  }

  lookAtAll() {
    const { sheet, tallest } = this;
    const room = [(this.size.width - 2 * MARGIN) / sheet.width, (tallest - 2 * MARGIN) / sheet.height];
    const scale = Math.min(NATURAL, ...room);
    return this.lookThatShows(sheet.bounds, { scale, x: 0, y: 0 });
  }

  // At all of it, unless nothing could be made out; then at its beginning.
  firstLook() {
    const all = this.lookAtAll();
    this.whole = all.scale >= VISIBLE;
    if (this.whole) return all;
    const places = [...this.sheet.nodes.values()].map(({ place }) => place);
    const first = places.reduce((a, b) => (b.left + b.top < a.left + a.top ? b : a));
    return this.lookThatShows(first, { scale: READABLE, x: 0, y: 0 });
  }

  // -- Size --

  // A frame grows with what is in it, so its own height says nothing: there the screen is the measure.
  get tallest() {
    const page = window.parent === window ? innerHeight : Math.min(screen.availHeight, 900);
    return Math.max(SHORTEST, 0.7 * page);
  }

  get size() {
    return { width: this.view.clientWidth, height: this.view.clientHeight };
  }

  // How high the view is when the picture is drawn at a scale.
  heightAt(scale) {
    const needed = this.sheet.height * Math.min(scale, NATURAL) + 2 * MARGIN;
    return Math.ceil(Math.min(this.tallest, Math.max(SHORTEST, needed)));
  }

  setWidth() {
    this.card.style.maxWidth = `${Math.ceil(Math.max(this.sheet.width * NATURAL + 2 * MARGIN, 460)) + 2}px`;
  }

  setHeight(look) {
    this.view.style.height = `${this.heightAt(look.scale)}px`;
  }

  resize() {
    if (!this.host.clientWidth) return;
    if (this.data.fitting) this.openWhatFits();
    this.setWidth();
    if (!this.look) this.look = this.firstLook();
    else this.look = this.whole ? this.lookAtAll() : this.lookThatShows(this.sheet.bounds);
    this.setHeight(this.look);
    this.draw();
    this.refresh();
  }

  // -- Looking --

  moveTo(look) {
    this.look = look;
    this.drawLook();
  }

  zoom(factor, [x, y] = [this.size.width / 2, this.size.height / 2]) {
    const scale = Math.max(ZOOM[0], Math.min(ZOOM[1], this.look.scale * factor));
    const by = scale / this.look.scale;
    this.moved = true;
    this.whole = false;
    this.moveTo({ scale, x: x - by * (x - this.look.x), y: y - by * (y - this.look.y) });
  }

  pan(dx, dy) {
    this.moved = true;
    this.whole = false;
    this.moveTo({ ...this.look, x: this.look.x + dx, y: this.look.y + dy });
  }

  fit() {
    this.moved = false;
    this.whole = true;
    const end = this.lookAtAll();
    this.setHeight(end);
    this.travel(end);
  }

  travel(end) {
    const start = { ...this.look };
    return this.animate((share) => this.moveTo(blend(start, end, share)));
  }

  // Calls `step` with shares from 0 to 1; at once with 1 where motion is not wanted. A second one ends the
  // first.
  animate(step) {
    this.finish?.();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches || document.hidden) {
      step(1);
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      let frame;
      const began = performance.now();
      this.finish = () => {
        this.finish = undefined;
        cancelAnimationFrame(frame);
        step(1);
        resolve();
      };
      const tick = (now) => {
        const share = Math.min(1, Math.max(0, (now - began) / DURATION));
        if (share === 1) return this.finish();
        step(1 - (1 - share) ** 3);
        frame = requestAnimationFrame(tick);
        return undefined;
      };
      frame = requestAnimationFrame(tick);
    });
  }

  draw() {
    this.sheet.draw();
    this.drawLook();
    this.drawRings();
  }

  drawLook() {
    const { x, y, scale } = this.look;
    this.world.setAttribute("transform", `translate(${round(x)} ${round(y)}) scale(${scale.toFixed(4)})`);
  }

  // -- Searching --

  // Everything that can be found, the outermost first, and once. A port is found where it comes from.
  get findable() {
    if (this.index) return this.index;
    const seen = new Set();
    this.index = ["", ...this.openable].flatMap((picture) =>
      [...readPicture(this.data.pictures[picture]).nodes.values()]
        .filter(({ key, words }) => words && !/^in_|^out_|_for_/.test(key) && !seen.has(key) && seen.add(key))
        .map(({ key, words }) => ({ picture, key, words: words.toLowerCase().replaceAll("\u00a0", " ") })),
    );
    return this.index;
  }

  search(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (node) => words.every((word) => node.words.includes(word));
    this.found = words.length ? this.findable.filter(matches) : [];
    this.current = -1;
    this.searched = words.length > 0;
    this.drawRings();
  }

  async next(step) {
    const { length } = this.found ?? [];
    if (!length) return;
    this.current = this.current < 0 && step < 0 ? length - 1 : (this.current + step + length) % length;
    const { picture, key } = this.found[this.current];
    const closed = this.wayTo(picture).filter((group) => !this.isOpen(group));
    if (closed.length) await this.set(closed, true, closed[0]);
    const box = this.sheet.find(key, picture) ?? this.sheet.find(picture, this.data.groups[picture].parent);
    const end = this.look.scale < READABLE ? this.lookAt(box, 1) : this.lookThatShows(box);
    this.whole &&= end.scale === this.look.scale;
    this.setHeight(end);
    this.drawRings();
    await this.travel(end);
  }

  lookAt(box, scale) {
    const [x, y] = middle(box);
    const look = { scale, x: this.size.width / 2 - scale * x, y: this.heightAt(scale) / 2 - scale * y };
    return this.lookThatShows(box, look);
  }

  // A ring around what was found, and a dashed one around the closed group that hides it.
  drawRings() {
    const found = this.found ?? [];
    const at = this.current < 0 ? `${found.length} found` : `${this.current + 1} of ${found.length}`;
    this.count.textContent = this.searched ? (found.length ? at : "none") : "";
    const rings = new Map();
    found.forEach(({ picture, key }, i) => {
      const hiding = this.wayTo(picture).find((group) => !this.isOpen(group));
      const [shown, within] = hiding ? [hiding, this.data.groups[hiding].parent] : [key, picture];
      if (this.isOpen(shown) && shown in this.data.groups && !hiding && i !== this.current) return;
      const name = `${within}/${shown}`;
      const kind = i === this.current ? "current" : hiding ? "hiding" : "match";
      if (kind === "current" || !rings.has(name)) rings.set(name, [this.sheet.find(shown, within), kind]);
    });
    this.rings.replaceChildren(
      ...[...rings.values()].filter(([box]) => box).map(([{ left, right, top, bottom }, kind]) =>
        create("rect", {
          class: kind, rx: 8, x: round(left - 4), y: round(top - 4),
          width: round(right - left + 8), height: round(bottom - top + 8),
        }),
      ),
    );
  }

  // -- The person --

  refresh() {
    const all = this.root.querySelector("[data-do=all]");
    all.hidden = !this.openable.length;
    this.allOpen = this.openable.every((key) => this.isOpen(key));
    all.textContent = this.allOpen ? "Close all" : "Open all";
    this.drawRings();
  }

  do(what) {
    if (what === "in") this.zoom(1.3);
    else if (what === "out") this.zoom(1 / 1.3);
    else if (what === "fit") this.fit();
    else if (what === "all") {
      this.moved = false;
      this.set(this.openable, !this.allOpen);
    }
  }

  listen() {
    const { view, root, field } = this;
    root.querySelector(".tools").addEventListener("click", ({ target }) => this.do(target.dataset.do));
    view.addEventListener("click", ({ target }) => {
      const button = target.closest("[data-toggle]");
      if (button && !this.dragged) this.toggle(button.dataset.toggle);
    });
    view.addEventListener("dblclick", ({ target }) => target.closest("[data-toggle]") || this.fit());
    view.addEventListener("keydown", (event) => this.key(event));
    field.addEventListener("input", () => this.search(field.value));
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") {
        field.value = "";
        this.search("");
        view.focus({ preventScroll: true });
      }
      event.stopPropagation(); // a notebook has shortcuts of one letter
    });
    this.listenToPointers();
    let width = 0;
    new ResizeObserver(() => {
      if (width !== (width = this.host.clientWidth)) this.resize();
    }).observe(this.host);
  }

  key(event) {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrows = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    const button = target.closest("[data-toggle]");
    if ((key === "Enter" || key === " ") && button) this.toggle(button.dataset.toggle);
    else if (key in arrows) this.pan(...arrows[key]);
    else if (key === "+" || key === "=") this.do("in");
    else if (key === "-") this.do("out");
    else if (key === "0") this.fit();
    else if (key === "/") this.field.focus({ preventScroll: true });
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  listenToPointers() {
    const { view } = this;
    const pointers = new Map();
    const at = ({ clientX, clientY }) => {
      const { left, top } = view.getBoundingClientRect();
      return [clientX - left, clientY - top];
    };
    view.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      pointers.set(event.pointerId, at(event));
      if (pointers.size === 1) this.dragged = false;
    });
    view.addEventListener("pointermove", (event) => {
      if (!event.buttons) pointers.delete(event.pointerId); // it was let go outside
      const from = pointers.get(event.pointerId);
      if (!from) return;
      const to = at(event);
      const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
      if (!this.dragged && pointers.size === 1 && Math.hypot(dx, dy) < 4) return;
      if (!this.dragged) view.setPointerCapture(event.pointerId);
      this.dragged = true;
      this.finish?.();
      view.classList.add("dragging");
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      pointers.set(event.pointerId, to);
      if (!other) return void this.pan(dx, dy);
      const apart = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]);
      const centre = [(to[0] + other[0]) / 2, (to[1] + other[1]) / 2];
      this.pan(dx / 2, dy / 2);
      if (apart(from)) this.zoom(apart(to) / apart(from), centre);
    });
    const up = ({ pointerId }) => {
      pointers.delete(pointerId);
      if (!pointers.size) view.classList.remove("dragging");
    };
    view.addEventListener("pointerup", up);
    view.addEventListener("pointercancel", up);
    view.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return void this.showHint();
      event.preventDefault();
      this.finish?.();
      this.knowsZoom = true;
      const lines = event.deltaMode ? 16 : 1;
      this.zoom(Math.exp(-Math.max(-60, Math.min(60, event.deltaY * lines)) / 120), at(event));
    }, { passive: false });
  }

  showHint() {
    if (this.knowsZoom) return;
    const mac = /Mac|iPhone|iPad/.test(navigator.platform);
    this.hint.textContent = `${mac ? "⌘" : "Ctrl"} + scroll to zoom, drag to move`;
    this.hint.classList.add("shown");
    clearTimeout(this.hiding);
    this.hiding = setTimeout(() => this.hint.classList.remove("shown"), 1200);
  }
}

function blend(from, to, share) {
  return Object.fromEntries(["scale", "x", "y"].map((name) => [name, mix(from[name], to[name], share)]));
}

function luminance(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16) / 255);
  return 0.3 * r + 0.6 * g + 0.1 * b;
}

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

// Brings to life every drawing on the page that waits for this version. If that fails, its picture stays.
export function start(version, css) {
  const waiting = `[data-needle-drawing="${version}"]:not([data-needle-taken])`;
  for (const host of document.querySelectorAll(waiting)) {
    host.dataset.needleTaken = "";
    unpack(host.dataset.needleData)
      .then((data) => new Drawing(host, data, css))
      .catch((error) => {
        host.shadowRoot?.replaceChildren(document.createElement("slot"));
        console.warn("This drawing stays a picture:", error);
      });
  }
}
