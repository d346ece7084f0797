// What the site's page shows until Python is there: messages that were recorded when the site was made, changed to
// other settings. What only Python knows stays empty: other points, and the answers of another network.

import { unpack } from "./messages.js";
import { part } from "./plane.js";

const USUAL = "circle"; // the record with the default settings
const DATA = ["noise", "points", "train_share", "seed", "own"];
const NETWORK = ["inputs", "hidden", "activation", "initialisation", "weights_seed"];
const records = new Map(); // by name: of a lesson or of a data set

// `given` are settings as the address has them. Resolves to a welcome, a scene and a picture.
export async function foreseen(given) {
  const [{ fields }, { settings: defaults }] = await record(USUAL);
  const chosen = Object.entries(given).map(([name, text]) => [name, possible(fields[name], text)])
    .filter(([name, text]) => text !== null && text !== defaults[name]);
  const address = chosen.length ? `?${new URLSearchParams(chosen)}` : "";
  const settings = { ...defaults, ...Object.fromEntries(chosen) };
  const { lesson, dataset } = settings;
  const ofLesson = lesson !== "none" && await record(lesson);
  const [welcome, known, picture] = ofLesson[1]?.settings.dataset === dataset ? ofLesson : await record(dataset);
  const scene = { ...known, settings, address };
  const differ = (names) => names.some((name) => settings[name] !== known.settings[name]);
  const isOther = differ(NETWORK);
  if (differ(DATA)) Object.assign(scene, withoutPoints(scene));
  if (isOther) Object.assign(scene, networkOf(welcome, scene));
  const shown = { ...picture, ...(isOther && withoutAnswers(welcome, scene)) };
  return [welcome, scene, { ...shown, ...((isOther || differ(DATA)) && withoutLosses(shown)) }];
}

// Two addresses hold the same if this is equal.
export function sorted(search) {
  const parts = new URLSearchParams(search);
  parts.sort();
  return String(parts);
}

function record(name) {
  if (!records.has(name)) records.set(name, read(name));
  return records.get(name);
}

// Each message comes after its length.
async function read(name) {
  const buffer = await (await fetch(`first/${name}.bin`)).arrayBuffer();
  const messages = [];
  for (let at = 0; at < buffer.byteLength;) {
    const length = new DataView(buffer).getUint32(at, true);
    messages.push(unpack(buffer.slice(at + 4, at + 4 + length)));
    at += 4 + length;
  }
  return messages;
}

// A setting's text as Python writes it; null if it can't be one. What is wrong with it, Python will tell.
function possible({ kind, choices, low, high, most, widest } = {}, text) {
  if (kind === "choice") return choices.includes(text) ? text : null;
  if (kind === "switch") return text === "on" || text === "off" ? text : null;
  if (kind === "number") return text.trim() && low <= +text && +text <= high ? String(+text) : null;
  if (!most) return kind ? text : null;
  const layers = text.split(/[\s,;×–-]+/).filter(Boolean);
  const isLayer = (layer) => /^\d+(:[\w.]+)*$/.test(layer) && parseInt(layer) >= 1 && parseInt(layer) <= widest;
  return layers.length <= most && layers.every(isLayer) ? layers.join("-") : null;
}

// Without the points, of which it is known only how many there are.
function withoutPoints({ settings: { dataset, points, train_share: share }, arrays }) {
  const made = dataset === "own" ? 0 : +points;
  const none = new Float32Array();
  const train = Math.round(made * share);
  return { arrays: { ...arrays, x1: none, x2: none, labels: none }, train, test: made - train, own: 0, own_test: 0 };
}

// The inputs and the layers, as the settings tell them.
function networkOf({ arrays: { known_maps: maps }, fields, thumbnail }, { arrays, layers, settings }) {
  const { known } = fields.inputs;
  const texts = settings.inputs.match(/(\((\([^()]*\)|[^()])*\)|[^,])+/g) ?? []; // a comma in brackets parts nothing
  const inputs_maps = new Int8Array(texts.length * thumbnail ** 2); // empty for those that are not known
  texts.forEach((text, i) => {
    const which = Object.keys(known).indexOf(text);
    if (which >= 0) inputs_maps.set(part(maps, which, thumbnail), i * thumbnail ** 2);
  });
  const inputs = texts.map((text) => ({ text, label: Object.hasOwn(known, text) ? known[text] : text }));
  const hidden = settings.hidden.split("-").filter(Boolean).map((text, i) => {
    const [neurons, ...rest] = text.split(":");
    const own_activation = rest.find((word) => fields.activation.choices.includes(word)) ?? "";
    const activation = own_activation || settings.activation;
    return {
      neurons: +neurons, activation, own_activation,
      title: `Layer ${i + 1} (${fields.activation.words[activation] ?? activation})`,
      dropout: +(rest.find((word) => word.startsWith("dropout"))?.slice("dropout".length) ?? 0),
      normalisation: rest.find((word) => fields.hidden.normalisations.includes(word)) ?? "",
    };
  });
  return {
    inputs, arrays: { ...arrays, inputs_maps },
    layers: [{ ...layers[0], neurons: texts.length }, ...hidden, layers.at(-1)],
  };
}

function withoutLosses({ arrays }) {
  const none = new Float32Array();
  return { arrays: { ...arrays, epochs: none, train: none, test: none }, figures: {}, trouble: null, hint: null };
}

// A network that answers 0 everywhere: its numbers are not known yet.
function withoutAnswers({ resolution, shown, thumbnail }, { layers }) {
  const arrays = { output: new Float32Array(resolution ** 2) };
  const shapes = {};
  const small = layers.slice(1, -1).reduce((sum, { neurons }) => sum + Math.min(neurons, shown), 0);
  arrays.maps = new Int8Array(small * thumbnail ** 2);
  layers.slice(1).forEach(({ neurons }, i) => {
    shapes[`weights_${i + 1}`] = [layers[i].neurons, neurons];
    arrays[`weights_${i + 1}`] = new Float32Array(layers[i].neurons * neurons);
    arrays[`biases_${i + 1}`] = new Float32Array(neurons);
  });
  return { arrays, shapes };
}
