// The edges of a drawing: which there are while some groups are open, and the ways that they take.
//
// An edge between two boxes of one picture goes where Graphviz led it, as long as no box is in its way. Any
// other one goes the shortest way around the boxes: through the frames of the open groups that its ends are
// in, and around everything else.

import { create, middle, round, widthOf } from "./picture.js";
import { border, pointFromEnd, shortestWay, written } from "./ways.js";

const CUT = "cut"; // the look of the line from a variable to what was cut from it
const ARROW = [6.5, 2.4]; // length, and half of the width
const APART = 7; // points between edges that come in side by side …
const SPREAD = 18; // … but at most so many between the first and the last
const LABEL = 8; // from the tip of an arrow to its label
const BESIDE = 2; // between a line and its label
const WALL = [4, 6]; // the points from a frame to the near and the far side of its wall
// Where an edge comes into a frame and where it leaves one, by the direction of the row.
const SIDES = { LR: ["left", "right"], RL: ["right", "left"], TB: ["top", "bottom"], BT: ["bottom", "top"] };

export class Edges {
  constructor(drawing) {
    this.drawing = drawing;
    this.element = create("g", { class: "edges" });
  }

  draw() {
    this.choose();
    const moving = Boolean(this.drawing.finish);
    this.element.style.display = moving ? "none" : ""; // ways are sought when everything has its place
    if (!moving) this.lead();
  }

  // Finds the ends of all edges, in the pictures that they are in now, and what Graphviz drew for them.
  choose() {
    const { drawing } = this;
    const opened = [...drawing.openness.keys()].sort().join();
    if (opened === this.opened) return;
    this.opened = opened;
    this.sheets = drawing.sheets();
    for (const { sheet } of this.sheets.values()) sheet.release();
    this.edges = shownEdges(drawing).map((edge) => {
      const [tail, head] = [edge.from, edge.to].map((key) => {
        const { sheet, frames } = this.sheets.get(drawing.pictureWith(key));
        return { key, sheet, frames };
      });
      tail.node = tail.sheet.nodes.get(edge.from);
      const operator = edge.look === CUT ? undefined : head.sheet.nodes.get(`${edge.to}_op`);
      head.node = operator ?? head.sheet.nodes.get(edge.to);
      const laidOut = tail.sheet === head.sheet ? head.sheet.take(edge) : undefined;
      return { ...edge, tail, head, laidOut };
    });
    for (const place of this.sheets.values()) this.edges.push(...this.results(place));
  }

  // All edges that can be seen.
  seen() {
    const laidOut = [...this.drawing.sheets().values()].flatMap(({ sheet }) => sheet.edges);
    return [...laidOut.filter(({ element }) => element.style.display !== "none"), ...(this.led ?? [])].map(
      ({ from, to, element }) => ({ from: from.split("_for_")[0], to, element }),
    );
  }

  // The edges of a picture from operators to their results.
  results({ sheet, frames }) {
    const { uses, variables } = this.drawing.data;
    const failed = new Set(uses.filter(([, , , look]) => look.includes("failed")).map(([, to]) => to));
    return sheet.results.map((laidOut) => {
      const [tail, head] = [laidOut.from, laidOut.to].map((key) => {
        return { key, sheet, frames, node: sheet.nodes.get(key) };
      });
      const look = `${variables[head.key][1] ? "back" : ""} ${failed.has(head.key) ? "failed" : ""}`;
      return { label: "", look, tail, head, laidOut };
    });
  }

  // Leads each edge that Graphviz did not lead, or whose way is not free any more.
  lead() {
    const led = this.edges.filter(({ head, laidOut }) => {
      const free = laidOut && head.sheet.isFree(laidOut);
      if (laidOut) laidOut.element.style.display = free ? "" : "none";
      return !free;
    });
    const boxes = new Map(); // by picture: its boxes on the whole sheet
    for (const { sheet, frames } of this.sheets.values()) boxes.set(sheet, sheet.boxes(frames));
    this.aim(led, boxes);
    this.led = led.map((edge) => {
      const [from, to] = [edge.tail, edge.head].map(({ node }) => node.key);
      return { from, to, element: this.line(edge, boxes) };
    });
    this.element.replaceChildren(...this.led.map(({ element }) => element));
  }

  // Lets the edges that come into one box end side by side, in the order in which they come.
  aim(led, boxes) {
    const arriving = new Map();
    for (const edge of led) {
      const { tail, head } = edge;
      for (const end of [tail, head]) end.box = boxes.get(end.sheet).get(end.node);
      tail.at = nearest(tail.box, middle(head.box));
      head.at = nearest(head.box, tail.at);
      if (!arriving.has(edge.head.node)) arriving.set(edge.head.node, []);
      arriving.get(edge.head.node).push(edge);
    }
    for (const edges of arriving.values()) {
      const ways = edges.map(({ tail, head }) => [head.at[0] - tail.at[0], head.at[1] - tail.at[1]]);
      const [dx, dy] = ways.reduce(([x, y], [u, v]) => [x + u, y + v]);
      const length = Math.hypot(dx, dy) || 1;
      const [px, py] = [-dy / length, dx / length];
      const across = new Map(edges.map((edge, i) => [edge, -ways[i][0] * px - ways[i][1] * py]));
      const step = Math.min(APART, SPREAD / (edges.length - 1 || 1));
      edges.sort((a, b) => across.get(a) - across.get(b)).forEach((edge, i) => {
        const by = (i - (edges.length - 1) / 2) * step;
        edge.head.at = [edge.head.at[0] + by * px, edge.head.at[1] + by * py];
        edge.side = Math.sign(2 * i - edges.length + 1); // its label is on the outer side
        if (Math.abs(px) > Math.abs(py) ? px < 0 : py < 0) edge.side *= -1;
      });
    }
  }

  line({ tail, head, label, look, side }, boxes) {
    const within = new Set([tail.node, head.node, ...tail.frames, ...head.frames]);
    const pictures = [tail, head].flatMap(({ frames }) => frames.map((frame) => frame.inside.sheet));
    const obstacles = [...new Set([this.drawing.sheet, ...pictures])].flatMap((sheet) =>
      [...boxes.get(sheet)].filter(([part]) => !within.has(part)).map(([, box]) => box),
    );
    const walls = this.walls(tail, head, boxes);
    const way = shortestWay(tail.at, head.at, [...obstacles, ...walls])
      ?? shortestWay(tail.at, head.at, obstacles) ?? [tail.at, head.at];
    const tip = border(way.at(-1), way.at(-2), head.box, head.node.round);
    way[0] = border(way[0], way[1], tail.box, tail.node.round);
    way[way.length - 1] = tip;
    const group = create("g", { class: `edge led ${look}` });
    if (look !== CUT) {
      const { at, direction } = pointFromEnd(way, ARROW[0]);
      way[way.length - 1] = at;
      const [long, wide] = ARROW;
      const angle = round((direction * 180) / Math.PI);
      group.append(create("path", {
        class: "arrow", d: `M0,0L${-long},${wide}V${-wide}Z`,
        transform: `translate(${tip.map(round)}) rotate(${angle})`,
      }));
    }
    group.prepend(create("path", { d: written(way) }));
    if (label) group.append(this.words(way, label, side));
    return group;
  }

  // The sides of frames that an edge along its row does not go through: it comes into a frame where the row
  // comes in, and leaves it where the row does. So a skip connection is inside of the module that it belongs to.
  walls(tail, head, boxes) {
    const { rankdir } = this.drawing.data;
    const [from, to] = [tail, head].map(({ key }) => this.drawing.rowOf(key));
    if (from !== to) return [];
    const [comesIn, goesOut] = SIDES[from % 2 ? [...rankdir].reverse().join("") : rankdir];
    const around = ({ frames }, other, open) => frames.filter((frame) => !other.frames.includes(frame)).flatMap(
      (frame) => sidesOf([...boxes.values()].find((some) => some.has(frame)).get(frame), open),
    );
    return [...around(tail, head, goesOut), ...around(head, tail, comesIn)];
  }

  // The label, beside the last part of a way: above it for a side of -1, or to the left if the way is steep. An
  // edge in the middle has it on the side that it comes from.
  words(way, label, side) {
    const half = [widthOf(label, "9px Helvetica, Arial, sans-serif") / 2, 4.5];
    const reach = (x, y) => half[0] * Math.abs(x) + half[1] * Math.abs(y);
    const { direction } = pointFromEnd(way, LABEL);
    const [dx, dy] = [Math.cos(direction), Math.sin(direction)];
    const { at: [x, y] } = pointFromEnd(way, LABEL + reach(dx, dy));
    const isFlat = Math.abs(dx) > Math.abs(dy);
    const outer = side || ((isFlat ? dy : dx) < 0 ? 1 : -1);
    const turn = outer * Math.sign(isFlat ? dx : -dy) * (reach(-dy, dx) + BESIDE);
    const text = create("text", { x: round(x - turn * dy), y: round(y + turn * dx + 3), "text-anchor": "middle" });
    text.textContent = label;
    return text;
  }
}

// The sides of a frame as thin boxes just outside of it, but for the one that is open.
function sidesOf({ left, right, top, bottom }, open) {
  const [near, far] = WALL;
  const sides = {
    left: { left: left - far, right: left - near, top, bottom },
    right: { left: right + near, right: right + far, top, bottom },
    top: { left, right, top: top - far, bottom: top - near },
    bottom: { left, right, top: bottom + near, bottom: bottom + far },
  };
  return Object.keys(sides).filter((side) => side !== open).map((side) => sides[side]);
}

// The point nearest to another one on the line in the middle of a long box, where half a circle would fit around
// each end; in a circle, its centre.
function nearest({ left, right, top, bottom }, [x, y]) {
  const radius = Math.min(right - left, bottom - top) / 2;
  const within = (at, low, high) => Math.min(Math.max(at, low + radius), high - radius);
  return [within(x, left, right), within(y, top, bottom)];
}

// The edges of the graph, in which each closed group is one box. `fold` in viz/groups.py has the same rule:
// uses by a closed group are one edge from each box, and many uses of the same closed group are one edge. A cut
// shows while both of its ends are there.
function shownEdges(drawing) {
  const { uses, groups, beside, several, variables } = drawing.data;
  const between = new Map();
  const cuts = [];
  for (const [from, to, label, look] of uses) {
    if (look === CUT) {
      if ([from, to].every((key) => key in beside || !drawing.hides(key))) cuts.push({ from, to, label, look });
      continue;
    }
    const [box, into] = [from, to].map((key) => drawing.hides(key));
    if (box && box === into) continue;
    const edge = { from: box && !(from in beside) ? box : from, to: into ?? to, label, look };
    const ends = `${edge.from}>${edge.to}`;
    if (!between.has(ends)) between.set(ends, []);
    between.get(ends).push(edge);
  }
  const edges = [...between.values()].flatMap((alike) => {
    const [first] = alike;
    if (first.to in groups) return [{ ...first, label: "", look: first.look.replace("failed", "") }];
    if (!(first.from in groups) || alike.length <= several) return alike;
    return [{ ...first, label: `${alike.length} times` }];
  });
  for (const to of Object.keys(beside)) {
    const from = drawing.hides(to);
    if (from) edges.push({ from, to, label: "", look: variables[to][1] ? "back" : "" });
  }
  return [...edges, ...cuts];
}
