// What is said of a node that the pointer or the keyboard is at, with its operands and consumers lit up.

import { middle } from "./picture.js";

const BESIDE_NODE = 10; // pixels between a node and what is said of it

export class Hover {
  constructor(drawing, card) {
    this.drawing = drawing;
    this.card = card;
    const { view } = drawing;
    const nodeAt = ({ target }) => target.closest?.(".node")?.dataset.key;
    view.addEventListener("pointerover", (event) => this.show(event.buttons ? undefined : nodeAt(event)));
    view.addEventListener("pointerleave", () => this.show(this.focused));
    const hide = () => {
      this.close();
      this.show();
    };
    view.addEventListener("pointerdown", hide);
    view.addEventListener("click", (event) => { // a tap, where nothing hovers
      if (!drawing.dragged && !event.target.closest("[data-toggle], [data-rounds]")) this.show(nodeAt(event));
    });
    view.addEventListener("wheel", hide, { passive: true });
    addEventListener("scroll", hide, { passive: true });
    view.addEventListener("focusin", (event) => {
      this.focused = nodeAt(event);
      if (event.target.matches(":focus-visible")) this.show(this.focused);
    });
    view.addEventListener("focusout", () => {
      this.focused = undefined;
      this.show();
    });
  }

  // The variable that a node stands for: an operator for its result, a mention for what it mentions.
  variableOf(node) {
    return node?.replace(/_for_.*$/, "").replace(/_op$/, "");
  }

  // All nodes that can be seen, by key.
  nodes() {
    const seen = new Map();
    for (const { sheet } of this.drawing.sheets().values()) {
      for (const node of sheet.nodes.values()) if (node.isShown && node.openness !== 1) seen.set(node.key, node);
    }
    return seen;
  }

  show(node) {
    const { world } = this.drawing;
    const key = this.variableOf(node);
    if (key === this.shown || this.opened) return;
    this.shown = key;
    for (const element of world.querySelectorAll(".lit")) element.classList.remove("lit");
    world.classList.toggle("choosing", key !== undefined);
    const about = this.drawing.data.about[key];
    this.card.hidden = !about;
    if (key === undefined) return;
    const nodes = this.nodes();
    this.light(key, nodes);
    if (!about) return;
    this.card.replaceChildren(...this.words(about));
    this.place(nodes.get(node) ?? nodes.get(key));
  }

  // Lights up a variable with its operator, and the edges and nodes on both sides of it.
  light(key, nodes) {
    const own = new Set([key, `${key}_op`]);
    const lit = new Set(own);
    for (const { from, to, element } of this.drawing.edges.seen()) {
      if (!own.has(from) && !own.has(to)) continue;
      element.classList.add("lit");
      for (const end of [from, to]) lit.add(end).add(end.replace(/_op$/, ""));
    }
    for (const { from, to, element } of this.drawing.edges.seen()) {
      if (lit.has(from) && to === from.replace(/_op$/, "")) element.classList.add("lit");
    }
    for (const [name, { element }] of nodes) {
      if (lit.has(name) || (name.includes("_for_") && own.has(this.variableOf(name)))) element.classList.add("lit");
    }
  }

  // Shows one of the rounds that a box stands for: the first, the last, or any other by its number.
  open(key) {
    this.show();
    const rounds = this.drawing.data.rounds[key];
    const node = this.nodes().get(key);
    const [first, last] = ["First", "Last"].map((name) => make("button", "", name));
    const field = make("input", "");
    Object.assign(field, { type: "number", min: 1, max: rounds.length, value: 1, ariaLabel: "Number" });
    const table = make("table", "");
    const fill = (number) => {
      const wanted = Math.max(1, Math.min(rounds.length, Math.round(number) || 1));
      if (field !== this.card.getRootNode().activeElement) field.value = wanted;
      table.replaceChildren(...rounds[wanted - 1].map(([name, madeOf, value]) =>
        make("tr", "", make("th", "", name), make("td", "", `= ${madeOf}`), make("td", "", value && `= ${value}`))));
    };
    first.addEventListener("click", () => fill(1));
    last.addEventListener("click", () => fill(rounds.length));
    field.addEventListener("input", () => fill(Number(field.value)));
    this.card.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close(node);
      event.stopPropagation(); // a notebook has shortcuts of one letter
    });
    const of = make("span", "facts", `of ${rounds.length.toLocaleString("en")}`);
    this.card.replaceChildren(make("div", "rounds", first, field, of, last), table);
    this.card.hidden = false;
    this.card.classList.add("opened");
    this.opened = key;
    fill(1);
    this.place(node);
    field.focus({ preventScroll: true });
    field.select();
  }

  close(node) {
    this.opened = undefined;
    this.card.classList.remove("opened");
    this.card.hidden = true;
    node?.element.focus({ preventScroll: true });
  }

  words({ name, facts, numbers, part, line, of }) {
    const parts = [make("div", "facts", ...(name ? [make("b", "", name), " "] : []), facts)];
    if (numbers) {
      const rows = numbers.map((row) => make("tr", "", ...row.map((cell) => make("td", "", cell))));
      parts.push(make("table", "", ...rows));
      if (part) parts.push(make("div", "facts", part));
    }
    if (line) {
      const [file, number, text] = line;
      parts.push(make("div", "facts", `${of} ${file}, line ${number}`.trim()));
      if (text) parts.push(make("code", "", text));
    }
    return parts;
  }

  // Below a node, or above it if there is no room.
  place(node) {
    if (!node) return;
    const { card } = this;
    const at = node.element.getBoundingClientRect();
    const { width, height } = card.getBoundingClientRect();
    const below = at.bottom + BESIDE_NODE;
    const top = below + height <= innerHeight ? below : Math.max(4, at.top - BESIDE_NODE - height);
    const left = Math.max(4, Math.min(at.left, document.documentElement.clientWidth - width - 4));
    Object.assign(card.style, { left: `${left}px`, top: `${top}px` });
  }

  // Moves the focus to the nearest variable in a direction. Whether there is one.
  go(from, [dx, dy]) {
    const nodes = this.nodes();
    const [x, y] = centre(nodes.get(from));
    const far = (node) => {
      const [u, v] = centre(node);
      const along = (u - x) * dx + (v - y) * dy;
      return along > 1 ? along + 3 * Math.abs((u - x) * dy - (v - y) * dx) : Infinity;
    };
    const others = [...nodes.values()].filter(({ element, key }) => element.hasAttribute("tabindex") && key !== from);
    const next = others.reduce((a, b) => (far(b) < far(a) ? b : a), nodes.get(from));
    if (next.key === from || far(next) === Infinity) return false;
    next.element.focus({ preventScroll: true });
    this.drawing.bringIntoView(next.key);
    this.show();
    this.show(next.key);
    return true;
  }
}

function make(tag, className, ...children) {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...children);
  return element;
}

function centre(node) {
  return middle(node.element.getBoundingClientRect());
}
