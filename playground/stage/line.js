// Who trains, and the line to it: the server, by a socket; or, if this is a page of the site, a web worker. Both take
// text or bytes, and give messages as bytes.

import { inSite } from "./site.js";

// `hear` gets each message. `loads` is told what is being loaded, and which part of all is there.
export function openLine({ opened, hear, loads, closed }) {
  return inSite() ? new WorkerLine(opened, hear, loads, closed) : new SocketLine(opened, hear, closed);
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
  isOpen = true;
  #python;

  constructor(opened, hear, loads, closed) {
    const end = (why, way) => {
      this.isOpen = false;
      closed(why, way);
    };
    this.#python = import(inSite("python/python_worker.js")).then(({ PythonWorker }) =>
      new PythonWorker(inSite("python/playground.js"), { hear, loads, ended: (why) => end(why, "Start again") }));
    this.#python.catch(() => end()); // the network broke
    queueMicrotask(opened);
  }

  async send(data) {
    (await this.#python.catch(() => null))?.send(data);
  }
}
