// Asks Python, which runs in a worker: the page stays quick, and what takes too long can be stopped.

import { kept } from "../keep.js";

const NO_WEBASSEMBLY = "Python needs WebAssembly, which this browser doesn't have or has switched off.";
const LONGEST = 15; // seconds for an answer, not counting what is loaded
const PATIENCE = 2000; // milliseconds

export class Asking {
  // `say` is told what is being loaded, and which part of all is there; with no words, nothing is.
  constructor(say) {
    this.say = say;
    this.begin();
  }

  begin() {
    this.isOver = false;
    this.last = 0;
    this.asked = new Map();
    this.ready = new Promise((resolve, reject) => (this.started = { resolve, reject }));
    this.ready.catch(() => {}); // whoever asks hears of it
    if (typeof WebAssembly !== "object") return this.end(NO_WEBASSEMBLY);
    this.say("Python is loading", 0);
    // What is loaded from then on is kept: a second visit works without a network. Where it can't be, Python starts.
    const { asked } = this;
    const late = new Promise((go) => setTimeout(go, PATIENCE));
    Promise.race([kept, late]).then(() => asked === this.asked && this.start());
  }

  start() {
    this.worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.end(`Python stopped: ${event.message || "its files could not be loaded"}.`);
    };
  }

  // Resolves to what a function of Python returns: JSON or other text.
  async ask(name, given) {
    await this.ready;
    const id = ++this.last;
    this.worker.postMessage({ id, name, given });
    return new Promise((resolve, reject) => this.asked.set(id, { resolve, reject }));
  }

  hear({ loading, share, ready, failed, working, id, answer, error }) {
    clearTimeout(this.alarm);
    if (loading) return this.say(loading, share);
    if (failed) return this.end(`Python did not start: ${failed}`);
    this.say("");
    if (ready) this.started.resolve();
    if (working) this.alarm = setTimeout(() => this.giveUp(), 1000 * LONGEST);
    if (!id) return;
    if (error) this.asked.get(id).reject(new Error(error));
    else this.asked.get(id).resolve(answer);
    this.asked.delete(id);
  }

  giveUp() {
    const { asked } = this;
    this.worker?.terminate();
    this.begin();
    const why = new Error(`This took longer than ${LONGEST} seconds, so it was stopped. Write less, or look at another view.`);
    for (const { reject } of asked.values()) reject(why);
  }

  end(words) {
    clearTimeout(this.alarm);
    this.worker?.terminate();
    this.say("");
    this.isOver = true; // until somebody begins anew
    const why = new Error(words);
    this.started.reject(why);
    for (const { reject } of this.asked.values()) reject(why);
  }
}
