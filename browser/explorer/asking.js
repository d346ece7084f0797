// Asks Python, which runs in a worker: what takes too long can be stopped.

import { PythonWorker } from "../python/python_worker.js";

const LONGEST = 15; // seconds for an answer, not counting what is loaded

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
    this.python = new PythonWorker(new URL("worker.js", import.meta.url), {
      hear: (said) => this.hear(said),
      loads: (words, share) => {
        clearTimeout(this.alarm);
        this.say(words, share);
      },
      ended: (why) => this.end(why),
    });
  }

  // Resolves to what a function of Python returns: JSON or other text.
  async ask(name, given) {
    await this.ready;
    const id = ++this.last;
    this.python.send({ id, name, given });
    return new Promise((resolve, reject) => this.asked.set(id, { resolve, reject }));
  }

  hear({ ready, working, id, answer, error }) {
    clearTimeout(this.alarm);
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
    this.python.stop();
    this.begin();
    const why = new Error(`This took longer than ${LONGEST} seconds, so it was stopped. Write less, or look at another view.`);
    for (const { reject } of asked.values()) reject(why);
  }

  end(words) {
    clearTimeout(this.alarm);
    this.say("");
    this.isOver = true; // until somebody begins anew
    const why = new Error(words);
    this.started.reject(why);
    for (const { reject } of this.asked.values()) reject(why);
  }
}
