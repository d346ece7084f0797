// Python for a page, in a worker: the page stays quick, and hears how far Python is, and why it ends.

import { kept } from "../keep.js";

const PATIENCE = 3000; // milliseconds
const CANNOT = "This browser can't run Python: it needs WebAssembly and module workers. Take a newer browser: a current Firefox, Chrome, Edge or Safari can.";

export class PythonWorker {
  #worker; // a promise: what is said before it is there waits
  #isOver = false;

  // `loads` is told what is being loaded, and which part of all is there; `ended` gets a sentence, and `hear` all else
  // that the script says.
  constructor(script, { hear, loads, ended }) {
    loads("Python is loading", 0);
    this.#worker = this.#start(script, hear, loads, ended);
  }

  async #start(script, hear, loads, ended) {
    const isPossible = typeof WebAssembly !== "undefined" && typeof Worker !== "undefined";
    // What is loaded from then on is kept: a second visit works without a network. Where it can't be, Python starts.
    if (isPossible) await Promise.race([kept, new Promise((late) => setTimeout(late, PATIENCE))]);
    if (this.#isOver) return null;
    const end = (why) => {
      this.stop();
      ended(why);
    };
    if (!isPossible) return void queueMicrotask(() => end(CANNOT));
    const worker = new Worker(script, { type: "module" });
    let isThere = false; // its script runs
    worker.onmessage = ({ data }) => {
      isThere = true;
      if (data.loading) loads(data.loading, data.share);
      else if (data.failed) end(`Python stopped: ${data.failed}.`);
      else hear(data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      if (isThere) end(`Python stopped: ${event.message}.`);
      else end(event.message ? CANNOT : "Python could not be loaded. Is the network there?");
    };
    return worker;
  }

  async send(data) {
    (await this.#worker)?.postMessage(data);
  }

  async stop() {
    this.#isOver = true;
    (await this.#worker)?.terminate();
  }
}
