// What the page knows: the server's last messages, and what was chosen since then.

import { signed } from "./words.js";

const PATIENCE = { setting: 1000, playing: 400 }; // milliseconds for which a choice counts more than older messages

export class Stage {
  welcome = null;
  scene = null;
  picture = null;
  hovered = null; // a neuron or a link of the network, under the mouse …
  pinned = null; // … or chosen by a click, a tap or the keyboard
  tool = null; // "positive", "negative" or "erase" while painting
  wasPlaying = false; // when the server spoke last
  #loading = null;
  #wishes = new Map();

  constructor(onChange) {
    this.onChange = onChange; // called with "settings", "playing", "lesson", "shown" or "tool"
  }

  // What is being loaded, in words, before anybody can train. What is chosen meanwhile counts until then.
  get loading() {
    return this.#loading;
  }

  set loading(words) {
    if (this.#loading && !words) for (const wish of this.#wishes.values()) this.#end(wish);
    this.#loading = words;
  }

  // A setting's text: what was chosen a moment ago, or else what the server says.
  setting(name) {
    return this.#wishes.get(name)?.value ?? this.scene?.settings[name];
  }

  set(values) {
    for (const [name, text] of Object.entries(values)) this.#wish(name, text, PATIENCE.setting, "settings");
    this.connection.send({ do: "set", values });
  }

  get playing() {
    return this.#wishes.get("playing ")?.value ?? this.wasPlaying;
  }

  // Whether a lesson does without a control.
  hides(name) {
    return (this.setting("hide") ?? "").split(",").includes(name);
  }

  train(how, more = {}) { // "play", "pause", "step" or "reset"
    if (this.scene) this.scene.problems = []; // they were read
    this.#wish("playing ", how === "play", PATIENCE.playing, "playing");
    this.connection.send({ do: how, ...more });
  }

  get shown() {
    return this.hovered ?? this.pinned;
  }

  point(at, how) { // how: "hovered" or "pinned"
    if (sameThing(this[how], at)) return;
    this[how] = at;
    const neuron = this.shown?.kind === "neuron" ? this.shown : null;
    const wanted = neuron && !this.isOutput(neuron) ? [neuron.layer, neuron.index] : null;
    if (String(wanted) !== String(this.looked)) {
      this.looked = wanted;
      this.connection.send({ do: "look", neuron: wanted });
    }
    this.onChange("shown");
  }

  // Whether the server takes so large a file. If it does not, a line says so.
  admits({ size }, kind, why) {
    const most = this.welcome.largest[kind];
    if (size > most) this.tell(`This file is larger than ${most / 1e6} MB: ${why}`, "error");
    return size <= most;
  }

  watch(parts) {
    this.watched = parts;
    this.connection.send({ do: "watch", parts });
  }

  // After the line was broken: the server does not know any more what this page wants to see.
  resume() {
    if (this.looked) this.connection.send({ do: "look", neuron: this.looked });
    if (this.watched) this.watch(this.watched);
  }

  choose(tool) {
    this.tool = this.tool === tool ? null : tool;
    this.onChange("tool");
  }

  get layers() {
    return this.scene.layers;
  }

  isOutput({ layer }) {
    return layer === this.layers.length - 1;
  }

  nameOf({ kind = "neuron", layer, index, from, to }) {
    if (kind === "link") return [[layer - 1, from], [layer, to]].map((end) => this.#neuronName(...end)).join(" → ");
    return this.#neuronName(layer, index);
  }

  #neuronName(layer, index) {
    if (layer === 0) return `Input ${this.scene.inputs[index]?.label}`;
    return this.isOutput({ layer }) ? "Output" : `Layer ${layer}, neuron ${index + 1}`;
  }

  weightOf({ layer, from, to }) {
    return this.picture.arrays[`weights_${layer}`][from * this.layers[layer].neurons + to];
  }

  biasOf({ layer, index }) {
    return this.picture.arrays[`biases_${layer}`][index];
  }

  numberOf(at) {
    return at.kind === "link" ? `weight ${signed(this.weightOf(at), 3)}` : `bias ${signed(this.biasOf(at), 3)}`;
  }

  // A neuron or a link with its number; inputs have none.
  describe(at) {
    return at.layer ? `${this.nameOf(at)}: ${this.numberOf(at)}` : this.nameOf(at);
  }

  forgetWishes() {
    for (const { end } of this.#wishes.values()) clearTimeout(end);
    this.#wishes.clear();
  }

  // Another run is going to be shown: what was chosen belonged to this one.
  forget() {
    this.forgetWishes();
    this.tool = null;
    this.point(null, "hovered");
    this.point(null, "pinned");
  }

  #wish(name, value, patience, change) {
    clearTimeout(this.#wishes.get(name)?.end);
    const wish = { name, value, patience, change };
    this.#wishes.set(name, wish);
    if (!this.loading) this.#end(wish);
    this.onChange(change);
  }

  #end(wish) {
    wish.end = setTimeout(() => {
      this.#wishes.delete(wish.name);
      this.onChange(wish.change);
    }, wish.patience);
  }
}

export function sameThing(a, b) {
  return a === b || Boolean(a && b && a.kind === b.kind && a.layer === b.layer && a.index === b.index
    && a.from === b.from && a.to === b.to);
}
