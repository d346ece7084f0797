// Above the diagram: how many layers there are, and each layer's name and number of neurons.

import { openLayer } from "./editors.js";
import { element } from "./words.js";

const TIGHT = 64; // pixels for a layer below which its header has smaller letters

export class Heads {
  constructor(stage) {
    this.stage = stage;
    this.heads = document.querySelector(".heads");
    this.layers = document.querySelector(".layer-count");
  }

  place(layout) {
    const { layers } = this.stage;
    const label = document.activeElement?.getAttribute("aria-label");
    this.heads.classList.toggle("tight", layout.step < TIGHT);
    this.heads.replaceChildren(...layers.slice(1).map((layer, i) => this.#head(layer, i + 1, layout)));
    this.#placeLayers(layers.length - 2);
    // The button that was pressed is a new one by now.
    if (label) document.querySelector(`.counter [aria-label="${CSS.escape(label)}"]`)?.focus();
  }

  #head({ title, neurons }, l, layout) {
    const { stage } = this;
    const head = element("div", { className: "head" });
    head.style.left = `${layout.x(l)}px`;
    head.style.width = `${layout.step - 2}px`;
    if (stage.isOutput({ layer: l })) {
      head.classList.add("last");
      head.append(element("span", { className: "title", textContent: title }));
      return head;
    }
    const name = element("button", { className: "title", textContent: title.replace(" ", "\u00a0"),
      title: "Activation, dropout and normalisation of this layer" });
    name.onclick = () => openLayer(stage, l, name);
    head.append(name);
    if (stage.hides("hidden")) return head;
    const change = (count) => this.#set((texts) => texts.with(l - 1, texts[l - 1].replace(/^\d+/, count)));
    const { minus, number, plus } = counter(`Layer ${l}`, "neuron", neurons, 1, stage.welcome.fields.hidden.widest, change);
    head.append(element("span", { className: "counter" }, minus, number, plus));
    return head;
  }

  #placeLayers(count) {
    const change = (wanted) => this.#set((texts) =>
      (wanted > count ? [...texts, texts.at(-1)?.replace(/:.*/, "") ?? "4"] : texts.slice(0, -1)));
    const { minus, number, plus } = counter("Network", "layer", count, 0, this.stage.welcome.fields.hidden.most, change);
    number.append(count === 1 ? " hidden layer" : " hidden layers");
    this.layers.replaceChildren(element("span", { className: "counter" }, number, minus, plus));
  }

  #set(change) {
    const texts = this.stage.setting("hidden").split("-").filter(Boolean);
    this.stage.set({ hidden: change(texts).join("-") });
  }
}

// A number, and the buttons that make it smaller and larger.
function counter(where, what, count, low, high, change) {
  const button = (sign, wanted, words) => {
    const made = element("button", {
      textContent: sign, title: `${words} ${what}`, ariaLabel: `${where}: ${words} ${what}`,
      disabled: wanted < low || wanted > high,
    });
    made.onclick = () => change(wanted);
    return made;
  };
  return { minus: button("−", count - 1, "one fewer"), number: element("b", { textContent: count }),
    plus: button("+", count + 1, "one more") };
}
