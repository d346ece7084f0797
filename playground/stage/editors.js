// The small editors that open in place: a weight, a bias, a layer.

import { thinned } from "./thinned.js";
import { capital, element } from "./words.js";

// `boxes` are the places of the window that the editor leaves free: the neurons whose number it changes.
export function openWeight(stage, link, x, y, boxes) {
  const { layer, from, to } = link;
  openNumber(`${stage.nameOf(link)}: weight`, () => stage.weightOf(link),
    (value) => stage.connection.send({ do: "weight", layer, from, to, value }), x, y, boxes);
}

export function openBias(stage, neuron, x, y, boxes) {
  if (!neuron.layer) return;
  openNumber(`${stage.nameOf(neuron)}: bias`, () => stage.biasOf(neuron),
    (value) => stage.connection.send({ do: "bias", layer: neuron.layer, to: neuron.index, value }), x, y, boxes);
}

const APART = 8; // pixels between an editor and a neuron
const LARGEST = 999_999; // more is no weight that anybody learns with
const IDLE = 1000; // milliseconds after somebody's last change, when the number follows the training again
let follow = () => {};

function openNumber(words, read, send, x, y, boxes) {
  const panel = document.querySelector("#editor");
  const value = read();
  const reach = Math.max(2, Math.ceil(2 * Math.abs(value)));
  const slider = element("input", { type: "range", min: -reach, max: reach, step: 0.01, value, ariaLabel: words });
  const number = element("input", { type: "number", step: 0.1, value: value.toFixed(3), ariaLabel: words });
  const sendSoon = thinned(send, 30);
  let changed = 0;
  const change = (from, to) => {
    changed = performance.now();
    if (!Number.isFinite(from.valueAsNumber)) return;
    to.value = from.value;
    sendSoon(Math.max(-LARGEST, Math.min(LARGEST, from.valueAsNumber)));
  };
  slider.oninput = () => change(slider, number);
  number.oninput = () => change(number, slider);
  number.onkeydown = ({ key }) => { if (key === "Enter") panel.hidePopover(); };
  panel.replaceChildren(element("p", { textContent: words }), slider, number);
  openAt(panel, x, y, boxes);
  number.focus();
  number.select();
  follow = () => {
    const now = read().toFixed(3);
    if (performance.now() - changed < IDLE || +number.value === +now) return;
    slider.value = number.value = now;
    if (document.activeElement === number) number.select(); // what one types takes its place
  };
  panel.ontoggle = ({ newState }) => { if (newState === "closed") follow = () => {}; };
}

// An open editor shows how the training changes its number.
export function followTraining() {
  follow();
}

export function openLayer(stage, l, button) {
  const panel = document.querySelector("#layer");
  const { fields } = stage.welcome;
  const { own_activation: activation, dropout, normalisation } = stage.layers[l];
  const words = (choice) => capital(fields.activation.words[choice] ?? choice);
  const choices = {
    activation: [
      ["", `${words(stage.setting("activation"))}, as all`],
      ...fields.activation.choices.map((choice) => [choice, words(choice)]),
    ],
    dropout: ["0", "0.1", "0.2", "0.3", "0.5"].map((share) => [share, share === "0" ? "None" : `${100 * share} %`]),
    normalisation: [
      ["", "None"],
      ...fields.hidden.normalisations.map((name) => [name, capital(name.replace("norm", ""))]),
    ],
  };
  const values = { activation, dropout: String(dropout), normalisation };
  if (stage.hides("activation")) delete choices.activation;
  const selects = Object.entries(choices).map(([name, offers]) => {
    const options = offers.map(([value, text]) => new Option(text, value));
    const select = element("select", { data: { field: `layer_${name}` } }, ...options);
    if (!offers.some(([value]) => value === values[name])) select.add(new Option(values[name], values[name]));
    select.value = values[name];
    select.onchange = () => {
      values[name] = select.value;
      const texts = stage.setting("hidden").split("-");
      const dropped = +values.dropout ? `dropout${values.dropout}` : "";
      const parts = [stage.layers[l].neurons, values.activation, dropped, values.normalisation];
      stage.set({ hidden: texts.with(l - 1, parts.filter(Boolean).join(":")).join("-") });
    };
    return element("label", {}, capital(name), select);
  });
  panel.replaceChildren(element("p", { textContent: `Layer ${l}` }), ...selects);
  const box = button.getBoundingClientRect();
  openAt(panel, box.left, box.bottom + 4);
}

// Opens a panel at a place of the window, moved so that all of it is seen, and that it covers none of the boxes.
export function openAt(panel, x, y, boxes = []) {
  if (!panel.matches(":popover-open")) panel.showPopover();
  const { width, height } = panel.getBoundingClientRect();
  const within = (low, value, high) => Math.max(low, Math.min(value, high));
  const places = [x, ...boxes.flatMap(({ left, right }) => [right + APART, left - width - APART])].flatMap((left) =>
    [y, ...boxes.flatMap(({ top, bottom }) => [bottom + APART, top - height - APART])].map((top) => ({
      left: within(8, left, document.body.clientWidth - width - 8), top: within(8, top, innerHeight - height - 8) })));
  const covers = ({ left, top }) => boxes.some((box) =>
    left < box.right && left + width > box.left && top < box.bottom && top + height > box.top);
  const far = ({ left, top }) => Math.abs(left - x) + Math.abs(top - y);
  const free = places.filter((place) => !covers(place)).sort((a, b) => far(a) - far(b));
  const { left, top } = free[0] ?? places[0];
  panel.style.left = `${left}px`;
  panel.style.top = `${top}px`;
}
