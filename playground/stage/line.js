// Who trains, and the line to it: the server, by a socket; or, if this is a page of the site, a web worker. Both take
// text or bytes, and give messages as bytes.

import { inSite } from "./site.js";

const PATIENCE = 3000; // milliseconds
const CANNOT = "This browser can't run Python: it needs WebAssembly and module workers. Take a newer browser: a current Firefox, Chrome, Edge or Safari can.";

// `hear` gets each message. `loads` is told what is being loaded, and which part of all is there.
export function openLine({ opened, hear, loads, closed }) {
  return inSite() ? new WorkerLine(opened, hear, loads, closed) : new SocketLine(opened, hear, closed);
}

// What to show until Python is there: messages that were recorded for this address when the site was made, if any were.
export async function recorded() {
  const lesson = new URLSearchParams(location.search).get("lesson");
  if (!inSite() || (location.search && !lesson)) return [];
  const answer = await fetch(`first/${encodeURIComponent(lesson ?? "default")}.bin`);
  const buffer = answer.ok ? await answer.arrayBuffer() : new ArrayBuffer();
  const messages = [];
  for (let at = 0; at < buffer.byteLength;) {
    const length = new DataView(buffer).getUint32(at, true);
    messages.push(buffer.slice(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return messages;
}

class SocketLine {
  #socket;

  constructor(opened, hear, closed) {
    const address = new URL("live", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    address.search = address.hash = "";
    this.#socket = new WebSocket(address);
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = opened;
    this.#socket.onmessage = ({ data }) => hear(data);
    this.#socket.onclose = ({ code, reason }) => {
      if (code === 4000) closed("This run is shown in another tab by now.", "Show it here");
      else if (code === 1013) closed(reason || "Too many people are here. Come back in a minute.", "Try again");
      else closed();
    };
  }

  get isOpen() {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  send(data) {
    this.#socket.send(data);
  }
}

// It is open at once: what is said before Python is there waits.
class WorkerLine {
  #worker = null;
  #said = []; // before the worker is there
  #end;

  constructor(opened, hear, loads, closed) {
    this.isOpen = true;
    this.#end = (why) => {
      this.#worker?.terminate();
      this.isOpen = false;
      closed(why, "Start again");
    };
    loads("Python is loading", 0);
    if (typeof WebAssembly === "undefined" || typeof Worker === "undefined") queueMicrotask(() => this.#end(CANNOT));
    else this.#start(hear, loads);
    queueMicrotask(opened);
  }

  async #start(hear, loads) {
    // What is loaded from then on is kept: a second visit works without a network. Where it can't be, Python starts.
    const late = new Promise((go) => setTimeout(go, PATIENCE));
    await Promise.race([late, import(inSite("keep.js")).then(({ kept }) => kept).catch(() => {})]);
    this.#worker = new Worker(inSite("python/playground.js"), { type: "module" });
    let isThere = false; // its script runs
    this.#worker.onmessage = ({ data }) => {
      isThere = true;
      if (data instanceof ArrayBuffer) hear(data);
      else if (data.failed) this.#end(`Python stopped: ${data.failed}.`);
      else loads(data.loading, data.share);
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      if (isThere) this.#end(`Python stopped: ${event.message}.`);
      else this.#end(event.message ? CANNOT : "Python could not be loaded. Is the network there?");
    };
    for (const data of this.#said) this.send(data);
  }

  send(data) {
    if (this.#worker) this.#worker.postMessage(data);
    else this.#said.push(data);
  }
}
