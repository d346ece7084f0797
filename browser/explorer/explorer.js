// The Explorer's page. What is written goes to Python as text, is read there by a small language, and is never run
// as code; what comes back is HTML in which Python has escaped it.

import { putPicture } from "../drawings/drawings.js";
import { entriesOf, readAddress, writeAddress } from "./address.js";
import { Asking } from "./asking.js";

const SHARPNESS = 2; // pixels of a PNG for each of the page
const LARGEST = 16_000; // pixels of a PNG, across or down: more is more than a canvas holds

const part = (id) => document.getElementById(id);
const [text, value, remarks, remark, picture] = ["text", "value", "remarks", "remark", "picture"].map(part);

const choices = await (await fetch(new URL("choices.json", import.meta.url))).json();
const entries = entriesOf(choices);
let state = {};
let leaf = ""; // of the second order

// ---- what is chosen ----

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function pills(place, options, onChoose) {
  place.querySelectorAll("label").forEach((old) => old.remove());
  for (const [name, words] of options) {
    const input = element("input", { type: "radio", name: place.id, value: name });
    input.addEventListener("change", () => onChoose(name));
    place.append(element("label", {}, input, words));
  }
}

function choose(place, name) {
  for (const input of place.querySelectorAll("input")) input.checked = input.value === name;
}

// Makes the page show the state.
function showState() {
  if (text.value !== state.text) text.value = state.text;
  fit();
  showExample();
  choose(part("view"), state.view);
  for (const name of ["style", "rankdir"]) part(name).value = state[name];
}

function showExample() {
  const example = Object.keys(choices.examples).find((name) => choices.examples[name] === text.value);
  choose(part("examples"), example);
}

function fit() {
  text.rows = Math.min(Math.max(text.value.split("\n").length, 6), 18);
}

function take(changes) {
  Object.assign(state, changes);
  showState();
  writeAddress(entries, state);
  show();
}

function setUp() {
  const { examples, views, styles, directions, help, adjoint } = choices;
  pills(part("examples"), Object.keys(examples).map((name) => [name, name]), (name) => take({ text: examples[name] }));
  part("examples").title = adjoint;
  pills(part("view"), Object.entries(views), (view) => take({ view }));
  for (const [name, options] of [["style", styles], ["rankdir", directions]]) {
    const select = part(name);
    for (const [key, words] of Object.entries(options)) select.append(new Option(words, key));
    select.addEventListener("change", () => take({ [name]: select.value }));
  }
  for (const paragraph of help.trim().split("\n\n")) {
    const pieces = paragraph.split("`").map((piece, i) => (i % 2 ? element("code", {}, piece) : piece));
    part("help").append(element("p", {}, ...pieces));
  }
  text.addEventListener("input", () => {
    fit();
    showExample();
  });
  text.addEventListener("change", () => take({ text: text.value }));
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) take({ text: text.value });
  });
  part("run").addEventListener("click", () => take({ text: text.value }));
  addEventListener("popstate", goToAddress);
}

function goToAddress() {
  const { state: read, said } = readAddress(entries);
  state = read;
  sayIn(part("problem"), said);
  showState();
  show();
}

// ---- what is shown ----

function sayIn(place, words) {
  place.textContent = words;
  place.hidden = !words;
}

function say(words, share) {
  const place = part("loading");
  place.hidden = !words;
  if (words) place.replaceChildren(`${words} …`, element("progress", { value: share, ariaLabel: words }));
}

function sayAll(said) {
  remarks.replaceChildren(...said.map(([kind, words]) => element("p", { className: kind }, words)));
}

let wanted = false;
let busy = false;

// Shows what the state asks for. What changes meanwhile is shown next, and what lies between is passed over.
async function show() {
  wanted = true;
  if (busy) return;
  busy = true;
  while (wanted) {
    wanted = false;
    document.body.ariaBusy = true;
    try {
      await showOnce();
    } catch (error) {
      fail(error);
    }
  }
  document.body.ariaBusy = false;
  busy = false;
}

let shown = ""; // the drawing that is there

async function showOnce() {
  if (asking.isOver) asking.begin();
  await asking.ready;
  if (text.value !== state.text) {
    state.text = text.value; // what was typed while Python was loading
    writeAddress(entries, state);
  }
  const result = JSON.parse(await asking.ask("compute", { text: state.text }));
  if (wanted) return;
  value.innerHTML = result.html;
  sayAll(result.remarks);
  const isRight = "leaves" in result;
  showLeaves(isRight && state.view === "second" ? result.leaves : []);
  part("drawn").hidden = !isRight && !result.fails;
  part("view").hidden = !isRight;
  part("look").hidden = true;
  const given = isRight ? asked() : { ...asked(), view: "error", leaf: "" };
  if (part("drawn").hidden || JSON.stringify(given) === shown) {
    part("look").hidden = given.view === "memory";
    return;
  }
  const drawn = JSON.parse(await asking.ask("draw", given));
  if (wanted) return;
  const words = isRight ? drawn.remark : drawn.remark || "The graph up to the operation that failed:";
  sayIn(remark, words);
  if (drawn.html) await putPicture(picture, drawn.html);
  else picture.replaceChildren();
  picture.dataset.view = given.view;
  shown = JSON.stringify(given);
  showFiles(given, Boolean(drawn.html));
}

// What `draw` and `save` are given.
function asked() {
  return { text: state.text, view: state.view, look: state.style, direction: state.rankdir, leaf };
}

function showLeaves(leaves) {
  if (!leaves.includes(leaf)) leaf = leaves[0] ?? "";
  const place = part("leaf");
  place.hidden = !leaves.length;
  pills(place, leaves.map((name) => [name, name]), (name) => {
    leaf = name;
    show();
  });
  choose(place, leaf);
}

function fail(error) {
  const again = element("button", {}, "Try again");
  again.addEventListener("click", show);
  value.replaceChildren();
  const ways = ["The ", element("a", { href: "../" }, "other pages"), " of this site may still work."];
  remarks.replaceChildren(
    element("p", { className: "error" }, error.message),
    element("p", { className: "line" }, again, ...(asking.isOver ? ways : [])),
  );
  picture.replaceChildren();
  shown = "";
  part("look").hidden = true;
}

// ---- what is taken home ----

function showFiles(given, isDrawn) {
  part("look").hidden = !isDrawn || given.view === "memory";
  const kinds = given.view === "steps" ? ["html"] : ["svg", "png", "html"];
  part("files").replaceChildren(...kinds.map((kind) => {
    const button = element("button", { title: `Save the drawing as .${kind}` }, kind.toUpperCase());
    button.addEventListener("click", () => save(given, kind));
    return button;
  }));
}

async function save(given, kind) {
  try {
    const file = await asking.ask("save", { ...given, kind: kind === "png" ? "svg" : kind });
    const types = { svg: "image/svg+xml", html: "text/html" };
    const blob = kind === "png" ? await asPng(file) : new Blob([file], { type: types[kind] });
    const link = element("a", { href: URL.createObjectURL(blob), download: `${given.view}.${kind}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  } catch (error) {
    sayIn(remark, error.message);
  }
}

async function asPng(svg) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  await image.decode();
  const scale = Math.min(SHARPNESS, LARGEST / image.width, LARGEST / image.height);
  const canvas = element("canvas", { width: image.width * scale, height: image.height * scale });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((resolve) => canvas.toBlob(resolve));
}

setUp();
const asking = new Asking(say);
goToAddress();
