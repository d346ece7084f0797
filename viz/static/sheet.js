// One picture on the page, with the pictures inside its open groups.
//
// Graphviz laid out several pictures: the whole with all groups closed, and the inside of each group. An open
// group shows its inside in a frame at its place, and the picture around it is stretched to make room, across
// and down: f(x) = x + the integral of s, where s(x) is the largest stretch that any open group needs at x.
// The slope of f is at least 1. So boxes that move by f(centre) - centre, and keep their size, stay apart if
// they were apart before.

import { around, boundsOf, create, extentOfText, middle, mix, pointsOf } from "./picture.js";
import { readPicture, round, stretch, widthOf } from "./picture.js";
import { crosses } from "./ways.js";

const BAR = 22; // height of the title of an open group
const GAP = 10; // between a frame and what it holds
const STEPS = 8; // straight pieces of a curve

export class Sheet {
  constructor(drawing, key) {
    this.drawing = drawing;
    this.key = key;
    const picture = readPicture(drawing.data.pictures[drawing.pictureOf(key)]);
    this.loose = picture.loose;
    const row = drawing.data.groups[key]?.row;
    this.nodes = new Map([...picture.nodes].filter(([name]) => !key || drawing.rowOf(name) === row));
    this.edges = picture.edges.filter(({ from, to }) => this.nodes.has(from) && this.nodes.has(to));
    const reach = ({ nodes, edges }) => around([
      ...[...nodes.values()].map(({ box }) => box),
      ...edges.flatMap(({ paths }) => paths.map(({ points }) => boundsOf(points))),
    ]);
    const [whole, own] = [picture, this].map(reach);
    const { left, right, top, bottom } = whole; // along the rows, as long as that of a twin
    const box = drawing.sideways ? { ...own, top, bottom } : { ...own, left, right };
    this.grounds = key ? [] : picture.grounds;
    this.box = around([box, ...this.grounds.map((ground) => ground.box)]);
    this.element = create("g", { class: "sheet" });
    this.groundLayer = this.element.appendChild(create("g"));
    this.edgeLayer = this.element.appendChild(create("g"));
    this.nodeLayer = this.element.appendChild(create("g"));
    this.groundLayer.append(...this.grounds.map(({ element }) => document.importNode(element, true)));
    this.grounds = this.grounds.map(({ box }, i) => {
      const element = this.groundLayer.children[i];
      const [shape, title] = [element.querySelector("path, polygon"), element.querySelector("text")];
      return { box, shape, title, points: pointsOf(shape) };
    });
    this.edgeLayer.append(...this.edges.map((edge) => edge.element));
    this.nodeLayer.append(...[...this.nodes.values()].map((node) => node.element));
    this.uses = drawing.openable.length ? this.readUses() : [];
    this.results = drawing.openable.length ? this.edges.filter(({ from }) => from.endsWith("_op")) : [];
    for (const node of this.nodes.values()) node.isShown = true;
    this.groups = [...this.nodes.values()].filter((node) => node.key in drawing.data.groups);
    for (const node of this.groups) this.prepare(node);
    for (const node of this.nodes.values()) {
      drawing.makeReachable(node);
      if (node.key in drawing.data.rounds) this.addSign(node);
    }
  }

  // The edges that stand for uses of a value. In a large picture some of them begin at a mention of it.
  readUses() {
    return this.edges
      .filter(({ from }) => !from.endsWith("_op"))
      .map((edge) => {
        const mention = edge.from.includes("_for_") ? this.nodes.get(edge.from) : undefined;
        const [from, to] = [edge.from.split("_for_")[0], edge.to.replace(/_op$/, "")];
        return Object.assign(edge, { mention, ends: `${from}>${to}` });
      });
  }

  // Shows none of these edges until they are taken.
  release() {
    for (const use of this.uses) this.display(use, false);
  }

  take({ from, to, label }) {
    const use = this.uses.find((one) => !one.isShown && one.ends === `${from}>${to}` && one.label === label);
    if (use) this.display(use, true);
    return use;
  }

  display(use, isShown) {
    for (const part of use.mention ? [use, use.mention] : [use]) {
      part.isShown = isShown;
      part.element.style.display = isShown ? "" : "none";
    }
  }

  // Whether no box is on the way of an edge.
  isFree({ mention, from, to, moved }) {
    if (mention) return true;
    const others = [...this.nodes.values()].filter(({ key, isShown }) => isShown && key !== from && key !== to);
    return moved.every((points) => {
      const line = sampled(points);
      return others.every(({ place }) => line.every((at, i) => !i || !crosses(line[i - 1], at, place, -1)));
    });
  }

  // What lines from other pictures have to go around: nodes, and titles of frames, each with its box. `frames`
  // are the open groups around this picture.
  boxes(frames) {
    const titles = this.grounds.filter(({ title }) => title).map((ground) => {
      const { left, right } = extentOfText(ground.title);
      const [x, y] = [this.toX(ground.box.left) - ground.box.left, this.toY(ground.box.top) - ground.box.top];
      const baseline = Number(ground.title.getAttribute("y")) + y;
      return [ground, { left: left + x, right: right + x, top: baseline - 9, bottom: baseline + 2 }];
    });
    const nodes = [...this.nodes.values()].filter(({ isShown }) => isShown).map((node) => [node, node.place]);
    const bars = this.groups.filter(({ openness }) => openness).map(({ place, inside }) => {
      const { left, top } = place;
      return [inside, { left, right: left + inside.titleWidth, top, bottom: top + BAR - 4 }];
    });
    const outside = (box) => frames.reduceRight((inner, frame) => outward(frame, inner), box);
    return new Map([...nodes, ...bars, ...titles].map(([part, box]) => [part, outside(box)]));
  }

  // Turns a group's box into a button with a sign that it opens.
  prepare(node) {
    node.group = this.drawing.data.groups[node.key];
    node.element.classList.add("group");
    if (!this.drawing.openable.includes(node.key)) {
      const size = node.group.size.toLocaleString();
      const why = `${size} nodes, more than this drawing holds: draw with a higher limit=`;
      node.element.append(create("title", {}, why));
      node.element.classList.add("sealed");
      return;
    }
    this.addSign(node);
    this.drawing.makeButton(node.element, node.key, false);
  }

  // The sign of a box that there is more to see in it.
  addSign({ element, box: { right, top } }) {
    const stroke = element.querySelector("path, polygon").getAttribute("stroke");
    const sign = create("g", { class: "sign", transform: `translate(${right - 1} ${top + 1})` });
    const plus = create("path", { d: "M-3.2,0H3.2M0,-3.2V3.2", stroke });
    sign.append(create("circle", { r: 6.5, stroke }), plus);
    element.append(sign);
  }

  // The frame, title and inside of a group, made when it first opens.
  inside(node) {
    if (node.inside) return node.inside;
    const sheet = this.drawing.sheetFor(node.key);
    const shape = node.element.querySelector("path, polygon");
    const [stroke, fill] = ["stroke", "fill"].map((name) => shape.getAttribute(name));
    const ground = create("rect", { class: "ground", rx: 8, fill: "var(--ground)" });
    const frame = create("rect", { class: "frame", rx: 8, stroke, fill, "fill-opacity": 0.3 });
    const back = create("g", { "data-frame": node.key }, ...(this.key ? [] : [ground]), frame); // links show through inner frames
    const bar = create("g", { class: "bar" });
    const hit = create("rect", { height: BAR, rx: 8, fill, "fill-opacity": 0.01 });
    const sign = create("path", { d: `M${GAP},${BAR / 2}h7`, stroke, "stroke-width": 1.6 });
    const title = create("text", { x: GAP + 13, y: BAR / 2 + 4, "font-size": 11, "font-weight": "bold" });
    title.textContent = node.group.title;
    bar.append(hit, sign, title);
    this.drawing.makeButton(bar, node.key, true);
    this.groundLayer.append(back);
    const clip = create("g", { class: "inside" }, sheet.element);
    this.nodeLayer.append(bar, clip); // what is inside is not covered where it reaches into the bar
    const titleWidth = widthOf(node.group.title, "bold 11px Helvetica, Arial, sans-serif") + 3 * GAP + 13;
    node.inside = { sheet, back, bar, hit, clip, titleWidth };
    return node.inside;
  }

  // Makes the insides of the groups that are open.
  make() {
    for (const node of this.groups) if (this.drawing.openness.get(node.key)) this.inside(node).sheet.make();
  }

  // The size of everything with its groups as open as they are now, from the innermost outwards. A sheet and
  // those of its twins stretch together along their rows, so that their columns stay in line.
  measure(alike) {
    const needs = alike.map((sheet) => sheet.needs());
    const together = this.drawing.sideways ? "down" : "across";
    const all = needs.flatMap((need) => need[together]);
    alike.forEach((sheet, i) => sheet.fit({ ...needs[i], [together]: all }));
  }

  // The intervals that open groups stretch.
  needs() {
    const across = [];
    const down = [];
    for (const node of this.groups) {
      node.openness = this.drawing.openness.get(node.key) ?? 0;
      if (!node.openness) continue;
      const { left, right, top, bottom } = node.box;
      const { sheet, titleWidth } = this.inside(node);
      this.drawing.measure(sheet);
      node.full = {
        width: Math.max(right - left, sheet.width + 2 * GAP, titleWidth),
        height: Math.max(bottom - top, sheet.height + BAR + GAP),
      };
      node.width = mix(right - left, node.full.width, node.openness);
      node.height = mix(bottom - top, node.full.height, node.openness);
      across.push([left, right, node.width]);
      down.push([top, bottom, node.height]);
    }
    return { across, down };
  }

  fit({ across, down }) {
    this.toX = stretch(across);
    this.toY = stretch(down);
    const [left, right] = [this.box.left, this.box.right].map(this.toX);
    const [top, bottom] = [this.box.top, this.box.bottom].map(this.toY);
    this.bounds = { left, right, top, bottom };
    this.width = right - left;
    this.height = bottom - top;
    for (const node of this.nodes.values()) this.shift(node);
  }

  // The box that a node takes up now, in the coordinates of this picture.
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

  // Puts everything at the place that `measure` found for it.
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
      if (node.key in this.drawing.data.beside) {
        node.isShown = this.drawing.pictureWith(node.key) === this.key;
        node.element.style.display = node.isShown ? "" : "none";
      }
      if (node.inside) this.drawInside(node);
    }
    for (const edge of this.edges) this.drawEdge(edge);
  }

  drawInside(node) {
    const { sheet, back, bar, hit, clip } = node.inside;
    const { openness } = node;
    for (const element of [back, bar, clip]) element.style.display = openness ? "" : "none";
    node.element.style.display = openness === 1 ? "none" : "";
    node.element.style.opacity = 1 - openness;
    if (!openness) return;
    for (const element of [back, bar, clip]) element.style.opacity = openness;
    const { left, top } = node.place;
    for (const rect of back.children) {
      const place = { x: left, y: top, width: node.width, height: node.height };
      for (const [name, value] of Object.entries(place)) rect.setAttribute(name, round(value));
    }
    bar.setAttribute("transform", `translate(${round(left)} ${round(top)})`);
    hit.setAttribute("width", round(node.width));
    clip.setAttribute("transform", `translate(${node.origin.map(round)}) scale(${node.scale})`);
    sheet.draw();
  }

  drawEdge(edge) {
    const ends = [edge.tail, edge.head].map((key) => {
      const [dx, dy] = this.nodes.get(key).by;
      return ([x, y]) => [x + dx, y + dy];
    });
    edge.moved = edge.paths.map(({ element, points }) => {
      const moved = this.bend(points, ends[0](points[0]), ends[1](points.at(-1)));
      for (const arrow of edge.heads) this.aim(arrow, ends[arrow.atHead ? 1 : 0], points, moved);
      setPath(element, moved);
      return moved;
    });
    for (const { element: text, at } of edge.texts) {
      const by = [this.toX(at[0]) - at[0], this.toY(at[1]) - at[1]];
      text.setAttribute("transform", `translate(${by.map(round)})`);
    }
  }

  // A curve with new ends. It still goes around what it went around: the distances of its control points from
  // the straight line are stretched. So a straight edge stays straight.
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

  // The nodes with a key in this picture and in its open groups, as boxes in its own coordinates.
  find(key, inPicture) {
    if (this.key === inPicture) return this.nodes.get(key)?.place;
    for (const node of this.groups) {
      const place = node.openness && node.inside.sheet.find(key, inPicture);
      if (place) return outward(node, place);
    }
    return undefined;
  }
}

// A box inside an open group, in the coordinates of the picture around the group.
function outward({ origin: [x, y], scale }, { left, right, top, bottom }) {
  return {
    left: x + scale * left, right: x + scale * right, top: y + scale * top, bottom: y + scale * bottom,
  };
}

// Points on a curve, close to one another.
function sampled(points) {
  const line = [points[0]];
  for (let i = 0; i + 3 < points.length; i += 3) {
    const [a, b, c, d] = points.slice(i, i + 4);
    for (let step = 1; step <= STEPS; step += 1) {
      const share = step / STEPS;
      const blend = (p, q) => [mix(p[0], q[0], share), mix(p[1], q[1], share)];
      const [ab, bc, cd] = [blend(a, b), blend(b, c), blend(c, d)];
      line.push(blend(blend(ab, bc), blend(bc, cd)));
    }
  }
  return line;
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

