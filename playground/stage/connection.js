// What the page says to who trains, and hears: the line opens itself again when it breaks.

import { foreseen, sorted } from "./foreseen.js";
import { keep, kept } from "./kept.js";
import { openLine } from "./line.js";
import { unpack } from "./messages.js";
import { inSite } from "./site.js";
import { thinned } from "./thinned.js";

const LONGEST_PAUSE = 8000;
const WRITING = 500; // milliseconds between two changes of the address: browsers refuse many
const BROKEN = "The connection broke. Try again in a moment.";
const KEPT = "needle-run"; // in sessionStorage: this tab's run, and the address it was shown at
const BACKUP = "needle-backup"; // also there: the run itself, as it came last, …
const SHOWN = "needle-shown"; // … and what the page showed of it: a scene and a picture

export class Connection {
  #line = null;
  #isNew = true; // nobody has answered yet
  #pause = 0;
  #questions = new Map();
  #lastQuestion = 0;
  #token = null; // proves that a run is this page's: it stays in memory, since a duplicated tab copies the rest
  #keep = thinned(keepRun, WRITING);
  #backup = keptBackup(); // the run as a file, for a server that does not know it
  #shown = {}; // the newest scene and picture, as they came
  #foreseen = null; // the settings, while the page shows what Python is going to make of them

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
        this.#greet();
        if (inSite()) this.#bringBack(); // before all that is chosen until then
      },
      hear: (buffer) => this.#take(unpack(buffer), buffer),
      loads: this.loads,
      closed: (why, way) => this.#closed(why, way),
    });
    if (inSite() && this.#isNew) this.#foresee(keptShown());
  }

  // The page has another address by now: it shows another run, by the same line.
  move() {
    if (!this.#line.isOpen) return this.open();
    this.#greet();
    if (this.#isNew) this.#foresee();
  }

  #greet() {
    this.send({ do: "open", run: keptRun(), token: this.#token, address: ownSettings() });
  }

  // Until Python is there, shows what was shown before; or else what the settings are going to be.
  async #foresee(shown) {
    const settings = this.#foreseen = shown ? null : ownSettings();
    const [welcome, scene, picture] = await foreseen(settings ?? {});
    if (this.#isNew && settings === this.#foreseen) [welcome, ...(shown ?? [scene, picture])].forEach(this.receive);
  }

  async #foreseeOthers(values) {
    const settings = this.#foreseen = { ...this.#foreseen, ...values };
    const [, scene, picture] = await foreseen(settings);
    if (this.#isNew && settings === this.#foreseen) [scene, picture].forEach(this.receive);
  }

  // Whether what is shown came from Python, and was not foreseen.
  get hasAnswered() {
    return !this.#isNew;
  }

  send(message) {
    if (this.#line.isOpen) this.#line.send(JSON.stringify(message));
    if (this.#isNew && this.#foreseen && message.do === "set") this.#foreseeOthers(message.values);
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

  #take(message, buffer) {
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
      if (message.is_lost) {
        if (!inSite()) this.#bringBack();
        if (this.#backup?.run === keptRun()) this.#backup.run = this.run;
      }
      this.#token = message.token;
    }
    this.receive(message);
    if (message.kind === "scene" || message.kind === "picture") this.#shown[message.kind] = buffer;
    if (message.kind === "scene") this.#keep(this.run, message.address);
  }

  // To a new server, or to one that has forgotten this page's run in the meantime.
  #bringBack() {
    if (!this.#backup?.file.length || this.#backup.run !== keptRun()) return;
    this.sendFile(this.#backup.file);
    if (this.#backup.playing) this.send({ do: "play" });
  }

  #keepBackup() {
    if (!this.#backup) return;
    const { file, ...rest } = this.#backup;
    keep("sessionStorage", BACKUP, JSON.stringify({ ...rest, file: textOf(file) }));
    const { scene, picture } = this.#shown;
    if (!inSite() || !picture) return;
    keep("sessionStorage", SHOWN, JSON.stringify([scene, picture].map((buffer) => textOf(new Uint8Array(buffer)))));
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
  return backup && { ...backup, file: bytesOf(backup.file) };
}

// What this tab showed at this address; nothing at another one.
function keptShown() {
  const [scene, picture] = JSON.parse(kept("sessionStorage", SHOWN))?.map((text) => unpack(bytesOf(text).buffer)) ?? [];
  return scene && sorted(scene.address) === sorted(location.search) ? [scene, picture] : null;
}

function textOf(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}

function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

function ownSettings() {
  return Object.fromEntries(new URLSearchParams(location.search));
}

// A new address means a new run: then somebody chose a lesson or opened a link.
function keptRun() {
  const { run, address } = JSON.parse(kept("sessionStorage", KEPT)) ?? {};
  return address === location.search ? run : null;
}
