// Keys, the list of them, and the notes that explain what is on the page.

import { keep, kept } from "./kept.js";
import { element } from "./words.js";

const KEPT = "needle-notes"; // in localStorage: the names of the hints that somebody has closed, or "off" for all

const WITH_OWN_KEYS = "input, select, textarea, dialog, [popover], .inside";

export function listenToKeys(stage, actions) {
  const keys = { " ": "play", s: "step", r: "reset", R: "reset", Escape: "output" };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest(WITH_OWN_KEYS)) return;
    if (event.key === "?") return document.querySelector("#keys").showModal();
    if (event.key === " " && event.target.closest("button, a, label")) return;
    const name = keys[event.key];
    if (!name || event.repeat || stage.hides(name)) return;
    if (event.key === " ") event.preventDefault(); // no scrolling
    actions[name](event);
  });
}

// Each hint closes by itself, all of them with one button; the question mark shows all again.
export function showNotes() {
  const button = document.querySelector("[data-toggle=notes]");
  const notes = Object.fromEntries([...document.querySelectorAll(".note")].map((note) => [note.dataset.hint, note]));
  const names = Object.keys(notes);
  const show = (open) => {
    for (const name of names) notes[name].hidden = !open.includes(name);
    document.documentElement.classList.toggle("notes", open.length > 0);
    button.ariaPressed = String(open.length > 0);
    keep("localStorage", KEPT, open.length ? names.filter((name) => !open.includes(name)).join(" ") : "off");
  };
  const open = () => names.filter((name) => !notes[name].hidden);
  for (const name of names) {
    const close = element("button", { className: "quiet", textContent: "×", ariaLabel: "Close this hint" });
    close.onclick = () => show(open().filter((other) => other !== name));
    notes[name].append(close);
  }
  document.querySelector("[data-close=notes]").onclick = () => show([]);
  button.onclick = () => show(button.ariaPressed === "true" ? [] : names);
  const closed = kept("localStorage", KEPT) ?? "";
  show(closed === "off" ? [] : names.filter((name) => !closed.split(" ").includes(name)));
}
