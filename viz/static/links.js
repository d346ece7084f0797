// The edges from row to row while groups are open: from a value to the operator that uses it. If one of them
// is in a closed group, the edge ends at the box of that group.

import { create, middle, mix, round } from "./picture.js";
import { outward } from "./sheet.js";

const ARROW = 6;

export class Links {
  constructor(drawing) {
    this.drawing = drawing;
    this.element = create("g", { class: "links" });
  }

  // One link for each pair of boxes. Links between closed groups are in the picture of the whole. If there
  // would be too many, they lead to the frames around their ends.
  choose() {
    const { data, openness } = this.drawing;
    const opened = [...openness.keys()].sort().join();
    if (opened === this.opened) return;
    this.opened = opened;
    let depth = Math.max(0, ...[...openness.keys()].map((key) => this.drawing.wayTo(key).length));
    do {
      const chosen = new Map();
      for (const { from, to, again } of data.links) {
        const [tail, head] = [from, to].map(([key, home]) => this.end(key, home, depth));
        if (tail && head && (tail.inOpen || head.inOpen)) {
          chosen.set(`${tail.path}>${head.path}`, { tail, head, again });
        }
      }
      this.links = [...chosen.values()];
      depth -= 1;
    } while (this.links.length > data.most && depth >= 0);
    for (const link of this.links) {
      link.line = create("path", { class: link.again ? "again" : "" });
      link.arrow = create("path", { class: `arrow ${link.again ? "again" : ""}` });
    }
    this.element.replaceChildren(...this.links.flatMap(({ line, arrow }) => [line, arrow]));
  }

  // What stands for a part of a group when only groups down to a depth count as open.
  end(key, home, depth) {
    let { sheet } = this.drawing;
    const around = [];
    for (const group of this.drawing.wayTo(home)) {
      const node = sheet.nodes.get(group);
      if (!node) return undefined;
      if (!node.openness || around.length === depth) {
        const beside = !node.openness && sheet.nodes.get(key);
        return this.describe(beside || node, around);
      }
      around.push(node);
      sheet = node.inside.sheet;
    }
    return this.describe(sheet.nodes.get(key), around);
  }

  describe(node, around) {
    if (!node) return undefined;
    const path = [...around, node].map(({ key }) => key).join("/");
    return { node, around, path, inOpen: around.length > 0 || node.openness > 0 };
  }

  // The place of an end in the picture of the whole. While a group opens, it moves out of the group's box.
  boxOf({ node, around }) {
    return around.reduceRight((box, group) => {
      const inside = outward(group, box);
      const sides = Object.keys(box);
      return Object.fromEntries(
        sides.map((side) => [side, mix(group.place[side], inside[side], group.openness)]),
      );
    }, node.place);
  }

  draw() {
    this.choose();
    const [along, across] = this.drawing.data.sideways ? [1, 0] : [0, 1];
    const sides = [["left", "right"], ["top", "bottom"]];
    const ends = new Map(); // those at each box, to be spread over its side
    for (const link of this.links) {
      for (const [end, other] of [[link.tail, link.head], [link.head, link.tail]]) {
        end.box = this.boxOf(end);
        if (!ends.has(end.path)) ends.set(end.path, []);
        ends.get(end.path).push({ end, other });
      }
    }
    for (const here of ends.values()) {
      const [low, high] = sides[along].map((side) => here[0].end.box[side]);
      here.sort((a, b) => middle(a.other.box)[along] - middle(b.other.box)[along]);
      here.forEach(({ end }, i) => {
        end.at = mix(low, high, (i + 1) / (here.length + 1));
      });
    }
    for (const { tail, head, line, arrow } of this.links) {
      const forwards = middle(tail.box)[across] <= middle(head.box)[across];
      const [before, after] = forwards ? sides[across] : [...sides[across]].reverse();
      const [from, to] = [tail.box[after], head.box[before]];
      const tip = to - (forwards ? ARROW : -ARROW);
      const bend = 0.4 * (tip - from);
      const point = (x, y) => (across ? [x, y] : [y, x]).map(round).join();
      const [start, end] = [tail.at, head.at];
      const curve = [point(start, from + bend), point(end, tip - bend), point(end, tip)];
      line.setAttribute("d", `M${point(start, from)}C${curve.join(" ")}`);
      arrow.setAttribute("d", `M${point(end, to)}L${point(end - 2.4, tip)}L${point(end + 2.4, tip)}Z`);
    }
  }
}
