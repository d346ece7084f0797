// Above the diagram: how many layers there are, and each layer's name and number of neurons.

import { openLayer } from "./editors.js";
import { element, keepChildren, write } from "./words.js";

const TIGHT = 64; // pixels for a layer below which its header has smaller letters

export class Heads {
  #made = []; // by layer: its header, which stays the same while there are so many layers
  #last = element("div", { className: "head last" }, element("span", { className: "title" }));

  constructor(stage) {
    this.stage = stage;
    this.heads = document.querySelector(".heads");
    this.layers = document.querySelector(".layer-count");
    this.count = new Counter("Network", "layer", (_, step) => this.#set((texts) =>
      (step > 0 ? [...texts, texts.at(-1)?.replace(/:.*/, "") ?? "4"] : texts.slice(0, -1))));
    this.layers.replaceChildren(element("span", { className: "counter" },
      this.count.number, this.count.minus, this.count.plus));
  }

  place(layout) {
    const { layers } = this.stage;
    this.heads.classList.toggle("tight", layout.step < TIGHT);
    keepChildren(this.heads, layers.slice(1).map((layer, i) => this.#head(layer, i + 1, layout)));
    const count = layers.length - 2;
    this.count.show(count, 0, this.stage.welcome.fields.hidden.most, count === 1 ? " hidden layer" : " hidden layers");
  }

  #head({ title, neurons }, l, layout) {
    const { stage } = this;
    const isLast = stage.isOutput({ layer: l });
    const { head, name, counter } = isLast ? { head: this.#last } : this.#made[l] ??= this.#make(l);
    head.style.left = `${layout.x(l)}px`;
    head.style.width = `${layout.step - 2}px`;
    write(head.querySelector(".title"), isLast ? title : title.replace(" ", "\u00a0"));
    if (isLast) return head;
    counter.show(neurons, 1, stage.welcome.fields.hidden.widest);
    keepChildren(head, stage.hides("hidden") ? [name] : [name, counter.place]);
    return head;
  }

  #make(l) {
    const name = element("button", {
      className: "title", title: "Activation, dropout and normalisation of this layer" });
    name.onclick = () => openLayer(this.stage, l, name);
    const counter = new Counter(`Layer ${l}`, "neuron", (count) =>
      this.#set((texts) => texts.with(l - 1, texts[l - 1].replace(/^\d+/, count))));
    counter.place = element("span", { className: "counter" }, counter.minus, counter.number, counter.plus);
    return { head: element("div", { className: "head" }, name), name, counter };
  }

  #set(change) {
    const texts = this.stage.setting("hidden").split("-").filter(Boolean);
    this.stage.set({ hidden: change(texts).join("-") });
  }
}

// A number, and the buttons that make it smaller and larger.
class Counter {
  #shown = 0;

  constructor(where, what, change) {
    const button = (sign, step, words) => {
      const made = element("button", {
        textContent: sign, title: `${words} ${what}`, ariaLabel: `${where}: ${words} ${what}` });
      made.onclick = () => change(this.#shown + step, step);
      return made;
    };
    this.minus = button("−", -1, "one fewer");
    this.number = element("b");
    this.plus = button("+", 1, "one more");
  }

  show(number, low, high, words = "") {
    this.#shown = number;
    write(this.number, number + words);
    this.minus.disabled = number - 1 < low;
    this.plus.disabled = number + 1 > high;
  }
}
