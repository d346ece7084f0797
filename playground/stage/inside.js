// "Look inside": graphs and steps that the server draws, and pictures of activations, gradients and the loss.

import { Histograms } from "./histograms.js";
import { putHtml } from "./html.js";
import { inSite } from "./site.js";
import { Surface } from "./surface.js";
import { element } from "./words.js";

const TABS = {
  forward: ["From points to loss",
    "Every operation on the way from the points to the loss, with its present numbers: the computational graph. "
    + "To keep it small, it shows two of the training points and their loss, not the loss of all points."],
  gradient: ["The way back",
    "needle walks back from the loss and adds the operations that compute the gradient: the gradient graph. "
    + "A bar over a name means its adjoint, the derivative of the loss with respect to it. "
    + "Again you see two of the training points."],
  steps: ["Step by step", "Walk through one pass forward and one back, one operation at a time, for a single point. "
    + "The drawing follows you. Press Fit to see all of it."],
  histograms: ["Histograms", "How each layer's answers to the training points are spread, and below them its gradients. "
    + "Both move while the network learns."],
  surface: ["Landscape of the loss", "The bluer a place, the lower the loss there. "
    + "The orange line is the path that the training has taken, from the grey dot to now."],
  program: ["Compiled program", "The program that runs one training step: Python, which Numba has turned into machine code. "
    + "A kernel is a function that computes whole arrays, and BLAS is a library of fast kernels for matrices."],
  passes: ["Pass by pass", "How the compiler came to that program: the operations of one training step, then loops, "
    + "then fewer loops, then the source. A line with + is new, one with − is gone, and one with ~ is changed."],
};

export class Inside {
  #open = null; // the name of the tab, while the section is open
  #live = null; // what is painted with each picture

  constructor(stage) {
    this.stage = stage;
    this.section = document.querySelector("#inside");
    this.fold = document.querySelector("[data-do=inside]");
    this.panel = this.section.querySelector("[role=tabpanel]");
    this.tabs = Object.entries(TABS).map(([name, [title]]) => {
      const tab = element("button", { role: "tab", textContent: title, data: { inside: name } });
      tab.onclick = () => this.#choose(name);
      return tab;
    });
    this.section.querySelector("[role=tablist]").append(...this.tabs);
    this.last = "forward";
  }

  toggle() {
    this.section.hidden = !this.section.hidden;
    this.fold.ariaExpanded = String(!this.section.hidden);
    if (this.section.hidden) return this.#close();
    this.#choose(this.last);
    this.section.scrollIntoView({ behavior: "smooth", block: "nearest" });
  }

  show(name) {
    this.last = name;
    if (this.section.hidden) this.toggle();
    else this.#choose(name);
  }

  paint() {
    this.#live?.paint();
  }

  #close() {
    this.#open = this.#live = null;
    this.stage.watch([]);
    this.panel.replaceChildren();
  }

  #choose(name) {
    this.last = this.#open = name;
    for (const tab of this.tabs) tab.ariaSelected = String(tab.dataset.inside === name);
    this.#live = null;
    this.stage.watch(name === "histograms" ? ["histograms"] : []);
    const place = element("div", { className: "inside-place" });
    const again = element("button", {
      className: "small", textContent: "Draw again", title: "With the present numbers", hidden: name === "histograms" });
    again.onclick = () => this.#choose(name);
    const [, words] = TABS[name];
    this.panel.replaceChildren(element("p", { className: "inside-words" }, words, " ", again), place);
    if (name === "histograms") this.#live = new Histograms(this.stage, place);
    else this.#ask(name, place);
  }

  async #ask(name, place) {
    const waiting = element("p", { className: "waiting" }, element("progress"), " Drawing …");
    place.append(waiting);
    const began = performance.now();
    const clock = setInterval(() => {
      waiting.lastChild.data = ` Drawing … ${Math.round((performance.now() - began) / 1000)} s`;
    }, 1000);
    try {
      const answer = await this.stage.connection.ask(name);
      if (!place.isConnected) return;
      if (name === "surface") new Surface(place, answer);
      else if (inSite()) await putModules(place, answer.html);
      else putHtml(place, answer.html);
    } catch (error) {
      place.replaceChildren(element("p", { textContent: error.message }));
    } finally {
      clearInterval(clock);
      waiting.remove();
    }
  }
}

// The site lets no script run that is written into a page: the same scripts are modules there.
async function putModules(place, html) {
  const { putPicture } = await import(inSite("drawings/drawings.js"));
  await putPicture(place, html);
}
