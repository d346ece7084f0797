// What the page says to who trains, and hears: the line opens itself again when it breaks, and messages become objects.

import { keep, kept } from "./kept.js";
import { openLine, recorded } from "./line.js";
import { thinned } from "./thinned.js";

const LONGEST_PAUSE = 8000;
const WRITING = 500; // milliseconds between two changes of the address: browsers refuse many
const BROKEN = "The connection broke. Try again in a moment.";
const decoder = new TextDecoder();
const HALVES = new Float32Array(65536).map((_, bits) => halfOf(bits)); // all numbers of 16 bits
const KEPT = "needle-run"; // in sessionStorage: this tab's run, and the address it was shown at
const BACKUP = "needle-backup"; // also there: the run itself, as it came last

// A message is a length, a header of that length, and arrays one after the other. The arrays are views of the
// message: only numbers of 16 bits are copied, since not all browsers know them.
export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const message = JSON.parse(decoder.decode(new Uint8Array(buffer, 4, length)));
  const layouts = message.arrays;
  message.arrays = {};
  message.shapes = {};
  let at = 4 + length;
  for (const [name, type, shape] of layouts) {
    const Kind = { f2: Uint16Array, f4: Float32Array, i1: Int8Array, u1: Uint8Array }[type];
    const array = new Kind(buffer, at, shape.reduce((product, size) => product * size, 1));
    message.arrays[name] = type === "f2" ? widened(array) : array;
    message.shapes[name] = shape;
    at += array.byteLength + 3 & ~3;
  }
  return message;
}

export class Connection {
  #line = null;
  #isNew = true; // nobody has answered yet
  #pause = 0;
  #questions = new Map();
  #lastQuestion = 0;
  #token = null; // proves that a run is this page's: it stays in memory, since a duplicated tab copies the rest
  #keep = thinned(keepRun, WRITING);
  #backup = keptBackup(); // the run as a file, for a server that does not know it

  // `receive` gets each message but answers; `lost` gets a sentence, and a button's words if the line stays closed;
  // `loads` is told what is being loaded and how far, and nothing once it is there.
  constructor({ receive, lost, loads }) {
    this.receive = receive;
    this.lost = lost;
    this.loads = loads;
    addEventListener("pagehide", () => this.#keepBackup());
    document.addEventListener("visibilitychange", () => document.hidden && this.#keepBackup()); // for phones
    this.open();
  }

  open() {
    this.#line = openLine({
      opened: () => {
        const address = Object.fromEntries(new URLSearchParams(location.search));
        this.send({ do: "open", run: keptRun(), token: this.#token, address });
      },
      hear: (buffer) => this.#take(unpack(buffer)),
      loads: this.loads,
      closed: (why, way) => this.#closed(why, way),
    });
    if (this.#isNew && !this.#backup?.file.length) this.#show(recorded());
  }

  async #show(messages) {
    const all = (await messages).map(unpack);
    const isHere = all.some(({ kind, address }) => kind === "scene" && sorted(address) === sorted(location.search));
    if (this.#isNew && isHere) all.forEach(this.receive);
  }

  send(message) {
    if (this.#line.isOpen) this.#line.send(JSON.stringify(message));
  }

  sendFile(bytes) {
    if (this.#line.isOpen) this.#line.send(bytes);
  }

  ask(what) {
    if (!this.#line.isOpen) return Promise.reject(new Error(BROKEN));
    return new Promise((resolve, reject) => {
      const id = ++this.#lastQuestion;
      this.#questions.set(id, { resolve, reject });
      this.send({ do: "ask", what, id });
    });
  }

  #take(message) {
    if (message.kind === "answer") {
      const question = this.#questions.get(message.id);
      this.#questions.delete(message.id);
      if (message.error) question?.reject(new Error(message.error));
      else question?.resolve(message);
      return;
    }
    if (message.kind === "backup") {
      this.#backup = { run: this.run, playing: message.playing, file: message.arrays.file };
      return;
    }
    if (message.kind === "welcome") {
      this.#pause = 0;
      this.#isNew = false;
      this.loads();
      this.run = message.run;
      if (message.is_lost) this.#bringBack();
      this.#token = message.token;
    }
    this.receive(message);
    if (message.kind === "scene") this.#keep(this.run, message.address);
  }

  // To a new server, or to one that has forgotten this page's run in the meantime.
  #bringBack() {
    if (!this.#backup?.file.length || this.#backup.run !== keptRun()) return;
    this.sendFile(this.#backup.file);
    if (this.#backup.playing) this.send({ do: "play" });
    this.#backup.run = this.run;
  }

  #keepBackup() {
    if (!this.#backup) return;
    const { file, ...rest } = this.#backup;
    keep("sessionStorage", BACKUP, JSON.stringify({ ...rest, file: btoa(latin(file)) }));
  }

  #closed(why, way) {
    for (const { reject } of this.#questions.values()) reject(new Error(BROKEN));
    this.#questions.clear();
    this.lost(why ?? "Connecting again …", way);
    if (way) return;
    this.#pause = Math.min(LONGEST_PAUSE, 2 * this.#pause + 250);
    setTimeout(() => this.open(), this.#pause * (0.75 + Math.random() / 2));
  }
}

function sorted(search) {
  const parts = new URLSearchParams(search);
  parts.sort();
  return String(parts);
}

function widened(halves) {
  const array = new Float32Array(halves.length);
  for (let i = 0; i < array.length; i++) array[i] = HALVES[halves[i]];
  return array;
}

// A float16 from its bits: a sign, five of the exponent, ten of the fraction.
function halfOf(bits) {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, bits >> 10 & 31, (bits & 1023) / 1024];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction) * 2 ** (exponent - 15) : fraction * 2 ** -14);
}

function keepRun(run, address) {
  try {
    history.replaceState(null, "", address || location.pathname);
  } catch {
    return; // The browser has had enough of them: the next scene's address comes later.
  }
  keep("sessionStorage", KEPT, JSON.stringify({ run, address: location.search }));
}

function keptBackup() {
  const backup = JSON.parse(kept("sessionStorage", BACKUP));
  return backup && { ...backup, file: Uint8Array.from(atob(backup.file), (letter) => letter.charCodeAt(0)) };
}

// A letter for each byte.
function latin(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return text;
}

// A new address means a new run: then somebody chose a lesson or opened a link.
function keptRun() {
  const { run, address } = JSON.parse(kept("sessionStorage", KEPT)) ?? {};
  return address === location.search ? run : null;
}
