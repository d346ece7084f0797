// A drawing that you can pan, zoom and search, and whose groups open and close.

import { Edges } from "./edges.js";
import { Hover } from "./hover.js";
import { attribute, create, extent, extentOfText, middle, mix, readPicture, round } from "./picture.js";
import { Sheet } from "./sheet.js";

const NATURAL = 4 / 3; // pixels of a point: letters are never drawn larger unless one zooms
const LEGEND = 1.15; // pixels of a point of the legend
const SIGN = 28; // points across
const READABLE = 9 / 11; // the scale at which values, 11 points high, are 9 pixels high: no smaller one is chosen
const ZOOM = [0.05, 6];
const MARGIN = 12; // between a picture and the edge of the view
const SHORTEST = 120; // a view, in pixels
const DURATION = 280; // milliseconds

const PAGE = `
  <div class="card" part="card">
    <div class="tools">
      <label class="search"><input type="search" placeholder="Search" aria-label="Search the drawing"
        autocomplete="off" spellcheck="false"><span class="count" role="status"></span></label>
      <span class="space"></span>
      <button data-do="all" hidden></button>
      <button data-do="out" title="Smaller (−)" aria-label="Zoom out">−</button>
      <button data-do="in" title="Larger (+)" aria-label="Zoom in">+</button>
      <button data-do="fit" title="Show all of it, or if that is too small to read, its beginning; again: all of it (0)">Fit</button>
    </div>
    <div class="view" tabindex="0" role="group">
      <svg><g class="world"></g></svg>
      <div class="hint" aria-hidden="true"></div>
    </div>
    <details class="legend"><summary>Legend</summary></details>
    <div class="about" role="tooltip" hidden></div>
  </div>
  <div class="paper"><slot></slot></div>`;

class Drawing {
  constructor(host, data, css) {
    this.data = data;
    this.host = host;
    this.root = host.attachShadow({ mode: "open" });
    this.root.innerHTML = `<style>${css}${data.dark}</style>${PAGE}`;
    const part = (selector) => this.root.querySelector(selector);
    [this.card, this.view, this.world] = [part(".card"), part(".view"), part(".world")];
    [this.field, this.count, this.hint] = [part("input"), part(".count"), part(".hint")];
    for (const [name, value] of Object.entries(data.colours)) this.card.style.setProperty(`--${name}`, value);
    this.view.setAttribute("aria-label", data.title);
    this.sideways = ["TB", "BT"].includes(data.rankdir);
    this.openable = Object.keys(data.groups).filter((key) => this.pictureOf(key) in data.pictures);
    this.openness = new Map(data.open.filter((key) => this.openable.includes(key)).map((key) => [key, 1]));
    this.look = undefined; // the picture's scale and place in the view
    this.whole = true; // all of it is in view
    this.moved = false; // by hand
    this.made = new Map(); // sheets, by the key of their picture
    this.sheet = this.sheetFor("");
    this.edges = new Edges(this);
    this.world.append(this.sheet.element, this.edges.element);
    this.rings = this.world.appendChild(create("g", { class: "rings" }));
    this.hover = new Hover(this, part(".about"));
    this.addLegend();
    this.measureAll();
    this.listen();
    this.resize();
  }

  // Graphviz drew a table of signs, each followed by its words. Here it has as many columns as fit.
  addLegend() {
    const legend = this.root.querySelector(".legend");
    const { pictures } = this.data;
    const { loose } = "legend" in pictures ? readPicture(pictures.legend) : this.sheet;
    const entries = [[]];
    for (const element of loose) {
      entries.at(-1).push(element);
      if (element.tagName === "text" && entries.at(-1).length > 1) entries.push([]);
    }
    entries.pop();
    if (!entries.length) return void legend.remove();
    const signs = entries.map((entry) => {
      const [sign, words] = [entry[0], entry.at(-1)];
      const { left, right } = sign.tagName === "text" ? extentOfText(sign) : extent(sign);
      words.setAttribute("x", (left + right) / 2 + SIGN / 2 + 4);
      const width = SIGN + 8 + extentOfText(words).right - attribute(words, "x");
      const look = { viewBox: [(left + right - SIGN) / 2, attribute(words, "y") - 13, width, 20].map(round) };
      const size = { width: round(width * LEGEND), height: round(20 * LEGEND) };
      return create("svg", { ...look, ...size, role: "img", "aria-label": words.textContent }, ...entry);
    });
    const list = document.createElement("div");
    const widest = Math.max(...signs.map((sign) => attribute(sign, "width")));
    list.style.gridTemplateColumns = `repeat(auto-fill, ${widest}px)`;
    list.append(...signs);
    legend.append(list);
    legend.open = true;
  }

  // Lets the keyboard reach a variable: the first of them with Tab, the others with arrows.
  makeReachable({ element, key, words }) {
    const { about, rounds } = this.data;
    if (key in rounds) {
      element.setAttribute("tabindex", 0);
      element.setAttribute("role", "button");
      element.setAttribute("aria-label", `Look into ${words.trim()}`);
      element.dataset.rounds = key;
    }
    if (!(key in about)) return;
    element.setAttribute("tabindex", this.reachable ? -1 : 0);
    this.reachable = true;
    element.setAttribute("role", "img");
    element.setAttribute("aria-label", `${words.trim()}, ${about[key].facts}`);
  }

  makeButton(element, key, isOpen) {
    const { title } = this.data.groups[key];
    const says = { role: "button", tabindex: 0, "aria-expanded": isOpen, "data-toggle": key };
    says["aria-label"] = `${isOpen ? "Close" : "Open"} ${title}`;
    for (const [name, value] of Object.entries(says)) element.setAttribute(name, value);
  }

  // -- The graph --

  // A group and its twins share a picture.
  pictureOf(key) {
    return key && this.data.groups[key].twins[0];
  }

  // The row of a node of a picture: a variable, its operator, a mention beside an operator, a group.
  rowOf(node) {
    const { groups, variables } = this.data;
    return groups[node]?.row ?? variables[node.replace(/^.*_for_/, "").replace(/_op$/, "")][1];
  }

  // The outermost closed group that hides a variable.
  hides(key) {
    return this.wayTo(this.data.variables[key][0]).find((group) => !this.openness.get(group));
  }

  // The picture that a box is in now. Some variables are drawn beside the group that hides them.
  pictureWith(key) {
    const { groups, variables, beside } = this.data;
    if (key in groups) return groups[key].parent;
    const box = this.hides(key);
    if (!box) return variables[key][0];
    return beside[key] ? "" : groups[box].parent;
  }

  // -- Sheets --

  sheetFor(key) {
    const sheet = new Sheet(this, key);
    const picture = this.pictureOf(key);
    this.made.set(picture, [...(this.made.get(picture) ?? []), sheet]);
    return sheet;
  }

  // Measures everything. All sheets that are seen are made first, since twins are measured together.
  measureAll() {
    this.sheet.make();
    this.measured = new Set();
    this.measure(this.sheet);
  }

  measure(sheet) {
    if (this.measured.has(sheet)) return;
    const made = this.made.get(this.pictureOf(sheet.key));
    const alike = made.filter((other) => other === sheet || this.openness.get(other.key));
    for (const one of alike) this.measured.add(one);
    sheet.measure(alike);
  }

  // All sheets that are seen, by key, each with the open groups around it, the outermost first.
  sheets() {
    const seen = new Map([["", { sheet: this.sheet, frames: [] }]]);
    for (const { sheet, frames } of seen.values()) { // which grows on the way
      for (const node of sheet.groups) {
        if (node.openness) seen.set(node.key, { sheet: node.inside.sheet, frames: [...frames, node] });
      }
    }
    return seen;
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
      this.measureAll();
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

  // At first, open as many levels of groups, from the outermost on, as can be read in the page's width.
  openWhatFits() {
    const show = (keys) => {
      this.openness = new Map(keys.map((key) => [key, 1]));
      this.measureAll();
      this.setWidth();
      return this.lookAtAll().scale >= READABLE;
    };
    const levels = this.data.levels.map((keys) =>
      keys.filter((key) => this.openable.includes(key) && this.data.groups[key].size > 1),
    );
    this.data.levels = []; // only at first
    let fitting = [];
    show(fitting);
    for (const keys of levels) {
      if (!show(keys)) break;
      fitting = keys;
    }
    show(fitting);
  }

  toggle(key) {
    const hadFocus = this.root.activeElement?.dataset.toggle === key;
    const open = !this.isOpen(key);
    const twins = this.data.groups[key].twins;
    const done = this.set(twins.filter((twin) => this.openable.includes(twin)), open, key);
    if (hadFocus) this.buttonOf(key, open)?.focus({ preventScroll: true });
    return done;
  }

  buttonOf(key, isOpen) {
    return this.world.querySelector(`[data-toggle="${CSS.escape(key)}"][aria-expanded="${isOpen}"]`);
  }

  // The groups from the outermost one down to this one.
  wayTo(key) {
    return key ? [...this.wayTo(this.data.groups[key].parent), key] : [];
  }

  anchor(key) {
    return key === undefined ? undefined : this.sheet.find(key, this.data.groups[key].parent);
  }

  // Where to look once groups are open: at everything, as long as it can be read, else at the same group.
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

  // The look nearest to `look` that shows a box, or as much of its beginning as fits, and stays within the
  // picture.
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

  // Look at everything, unless it would be too small to read; then at the beginning.
  firstLook() {
    const all = this.lookAtAll();
    this.whole = all.scale >= READABLE;
    if (this.whole) return all;
    const key = Object.keys(this.data.about)[0]; // each variable comes after its operands
    const shown = key && (this.hides(key) ?? key);
    const box = shown && this.sheet.find(shown, this.pictureWith(shown));
    return box ? this.lookAt(box, READABLE) : all;
  }

  // -- Size --

  // An iframe grows with its content, so its own height says nothing: there the screen is the measure.
  get tallest() {
    const page = window.parent === window ? innerHeight : Math.min(screen.availHeight, 900);
    return Math.max(SHORTEST, 0.7 * page);
  }

  get size() {
    return { width: this.view.clientWidth, height: this.view.clientHeight };
  }

  // The height of the view when the picture is drawn at a scale.
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
    if (this.data.levels.length) this.openWhatFits();
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

  // The whole, or its beginning if the whole is too small to read. The second time it is the whole all the same.
  fit() {
    this.moved = false;
    const first = this.firstLook();
    const again = this.fitted === this.look;
    if (again) this.whole = true;
    const end = again ? this.lookAtAll() : first;
    this.setHeight(end);
    this.travel(end).then(() => (this.fitted = this.look));
  }

  travel(end) {
    const start = { ...this.look };
    return this.animate((share) => this.moveTo(blend(start, end, share)));
  }

  // Calls `step` with shares from 0 to 1, or only with 1 if the reader wants no motion. A second call ends
  // the first.
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
        if (share === 1) this.finish();
        else {
          step(1 - (1 - share) ** 3);
          frame = requestAnimationFrame(tick);
        }
      };
      frame = requestAnimationFrame(tick);
    });
  }

  draw() {
    this.sheet.draw();
    this.edges.draw();
    this.drawLook();
    this.drawRings();
  }

  drawLook() {
    const { x, y, scale } = this.look;
    this.world.setAttribute("transform", `translate(${round(x)} ${round(y)}) scale(${scale.toFixed(4)})`);
  }

  // -- Searching --

  // Everything that can be found, once each, the outermost first.
  get findable() {
    if (this.index) return this.index;
    const { groups, pictures, variables } = this.data;
    const found = new Map();
    for (const picture of ["", ...this.openable].filter((key) => this.pictureOf(key) === key)) {
      for (const { key, words } of readPicture(pictures[picture]).nodes.values()) {
        if (!words || key.includes("_for_") || found.has(key)) continue;
        const home = groups[key]?.parent ?? variables[key.replace(/_op$/, "")][0];
        found.set(key, { home, key, words: words.toLowerCase().replaceAll("\u00a0", " ") });
      }
    }
    this.index = [...found.values()];
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
    const { home, key } = this.found[this.current];
    const closed = key in this.data.beside ? [] : this.wayTo(home).filter((group) => !this.isOpen(group));
    const twins = closed.flatMap((group) => this.data.groups[group].twins);
    if (closed.length) await this.set(twins.filter((twin) => this.openable.includes(twin)), true, closed[0]);
    const box = this.sheet.find(key, this.pictureNow(this.found[this.current]));
    const end = this.look.scale < READABLE ? this.lookAt(box, 1) : this.lookThatShows(box);
    this.whole &&= end.scale === this.look.scale;
    this.setHeight(end);
    this.drawRings();
    await this.travel(end);
  }

  bringIntoView(key) {
    const box = this.sheet.find(key, this.pictureWith(key));
    if (box) this.moveTo(this.lookThatShows(box));
  }

  // The picture that a found node is in now.
  pictureNow({ key, home }) {
    return key in this.data.beside ? this.pictureWith(key) : home;
  }

  lookAt(box, scale) {
    const [x, y] = middle(box);
    const look = { scale, x: this.size.width / 2 - scale * x, y: this.heightAt(scale) / 2 - scale * y };
    return this.lookThatShows(box, look);
  }

  // A ring around each find, and a dashed one around the closed group that hides it.
  drawRings() {
    const found = this.found ?? [];
    const at = this.current < 0 ? `${found.length} found` : `${this.current + 1} of ${found.length}`;
    this.count.textContent = this.searched ? (found.length ? at : "none") : "";
    const rings = new Map();
    found.forEach((one, i) => {
      const { home, key } = one;
      const closed = this.wayTo(home).find((group) => !this.isOpen(group));
      const hiding = key in this.data.beside ? undefined : closed;
      const [shown, within] = hiding ? [hiding, this.data.groups[hiding].parent] : [key, this.pictureNow(one)];
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
      const box = target.closest("[data-rounds]");
      if (box && !this.dragged) this.hover.open(box.dataset.rounds);
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
    const node = target.closest(".node")?.dataset.key;
    const away = key in arrows && arrows[key].map((by) => -Math.sign(by));
    if ((key === "Enter" || key === " ") && button) this.toggle(button.dataset.toggle);
    else if ((key === "Enter" || key === " ") && node in this.data.rounds) this.hover.open(node);
    else if (node && away && this.hover.go(node, away)) this.whole = false;
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

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

// Brings every drawing on the page to life that waits for this version. If it fails, the picture stays.
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
