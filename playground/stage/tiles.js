// The inputs as tiles: click to turn one on or off, or type one of your own.

import { theme } from "./colours.js";
import { MapImage, stillImage } from "./draw.js";
import { part } from "./plane.js";
import { element, keepChildren, write } from "./words.js";

export class Tiles {
  #shown = []; // texts, in the order of the rows
  #made = {}; // by text: the tiles so far
  #pointed = null; // the text of the tile that the mouse or the keyboard points at
  #wanted = []; // texts, as they were chosen last

  constructor(stage) {
    this.stage = stage;
    this.group = document.querySelector(".tiles");
    this.form = this.#makeForm();
  }

  get rows() {
    return this.#shown.length + (this.isFixed ? 0 : 1);
  }

  get isFixed() {
    return this.stage.hides("inputs");
  }

  rowOf(input) {
    return this.#shown.indexOf(this.stage.scene.inputs[input].text);
  }

  // The inputs' texts; if the server has not answered yet, those that were chosen.
  get #used() {
    const { scene } = this.stage;
    const chosen = this.stage.setting("inputs");
    const isWaiting = chosen !== scene.settings.inputs && chosen === this.#wanted.join(",");
    return isWaiting ? this.#wanted : scene.inputs.map(({ text }) => text);
  }

  // New inputs, or new colours.
  renew() {
    const { scene, welcome } = this.stage;
    const known = Object.keys(welcome.fields.inputs.known);
    const used = scene.inputs.map(({ text }) => text);
    const before = this.#made;
    this.#made = {};
    this.#shown = this.isFixed ? used : [...known, ...used.filter((text) => !known.includes(text))];
    const image = new MapImage(welcome.thumbnail);
    this.buttons = this.#shown.map((text) => {
      const index = used.indexOf(text);
      const label = scene.inputs[index]?.label ?? welcome.fields.inputs.known[text];
      const map = index >= 0 ? part(scene.arrays.inputs_maps, index, welcome.thumbnail)
        : part(welcome.arrays.known_maps, known.indexOf(text), welcome.thumbnail);
      image.shadeSmall(map, theme.smallShades);
      const size = 2 * welcome.thumbnail;
      const picture = stillImage(size, (pen) => image.drawPixels(pen, 0, 0, size));
      const button = this.#made[text] = before[text] ?? this.#makeTile(text, picture);
      Object.assign(button, {
        title: `${text}: click to turn it ${index >= 0 ? "off" : "on"}`, ariaLabel: `Input ${label}`,
        ariaPressed: String(index >= 0), disabled: this.isFixed,
      });
      write(button.querySelector("span"), label);
      const shown = button.querySelector("img");
      if (shown.src !== picture.src) shown.src = picture.src;
      button.classList.toggle("typed", !known.includes(text));
      return button;
    });
    keepChildren(this.group, [...this.buttons, ...(this.isFixed ? [] : [this.form])]);
    if (this.#pointed !== null) this.#point(this.#shown.includes(this.#pointed) ? this.#pointed : null);
  }

  // A tile stays the same while its input is there.
  #makeTile(text, picture) {
    const button = element("button", { className: "tile", data: { input: text } }, element("span"), picture);
    button.onclick = () => this.#toggle(text);
    button.onpointerenter = ({ pointerType }) => pointerType === "mouse" && this.#point(text);
    button.onfocus = () => button.matches(":focus-visible") && this.#point(text);
    button.onpointerleave = button.onblur = () => this.#point(null);
    return button;
  }

  #point(text) {
    this.#pointed = text;
    const index = this.stage.scene.inputs.findIndex((input) => input.text === text);
    this.stage.point(index >= 0 ? { kind: "neuron", layer: 0, index } : null, "hovered");
  }

  place(layout) {
    const half = layout.size / 2;
    const right = layout.x(0) + half;
    this.group.style.setProperty("--tile", `${layout.size}px`);
    [...this.buttons, this.form].forEach((tile, row) => {
      tile.style.top = `${Math.round(layout.row(row) - half)}px`;
      tile.style.width = `${right}px`;
    });
  }

  #toggle(text) {
    const used = this.#used;
    const wanted = used.includes(text) ? used.filter((other) => other !== text) : [...used, text];
    if (!wanted.length) return this.stage.tell("A network needs at least one input.");
    const known = Object.keys(this.stage.welcome.fields.inputs.known);
    const place = (input) => (known.includes(input) ? known.indexOf(input) : known.length + used.indexOf(input));
    this.#want(wanted.sort((a, b) => place(a) - place(b)));
  }

  #want(texts) {
    this.#wanted = texts;
    this.stage.set({ inputs: texts.join(",") });
  }

  #makeForm() {
    const input = element("input", { placeholder: "x1**2 + x2", ariaLabel: "An input of your own",
      title: "Type an expression of x1 and x2, such as x1**2 + x2**2 or cos(x1), and press Enter",
      autocomplete: "off", spellcheck: false, enterKeyHint: "done", data: { field: "own_input" } });
    const add = element("button", { textContent: "+", ariaLabel: "Add this input" });
    const form = element("form", { className: "tile own", noValidate: true }, input, add);
    form.onsubmit = (event) => {
      event.preventDefault();
      const text = input.value.trim().replaceAll("^", "**"); // as the server writes it
      if (!text) return this.answered();
      this.tried = text;
      this.#want([...this.#used, text]);
    };
    return form;
  }

  // The server has answered: a text that it took is a tile by now, the other stays to be mended.
  answered() {
    const input = this.form.querySelector("input");
    if (this.tried && this.stage.scene.inputs.some(({ text }) => text === this.tried)) input.value = "";
    input.setCustomValidity(this.tried && input.value ? this.stage.scene.problems.join(" ") : "");
    input.title = input.validationMessage || "Type an expression of x1 and x2 and press Enter";
    this.tried = null;
  }
}
