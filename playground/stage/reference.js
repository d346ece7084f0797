// A link of TensorFlow Playground: all of its settings stand behind the # of the address.

// Its names of what both have, and ours.
const NAMES = {
  activation: "activation", regularization: "regularisation", regularizationRate: "regularisation_rate",
  learningRate: "learning_rate", batchSize: "batch_size", noise: "noise", percTrainData: "train_share",
  networkShape: "hidden", showTestData: "test_points", discretize: "discretise", initZero: "initialisation",
  problem: "dataset", dataset: "dataset", regDataset: "dataset",
};
const INPUTS = {
  x: "x1", y: "x2", xSquared: "x1**2", ySquared: "x2**2", xTimesY: "x1*x2", sinX: "sin(x1)", sinY: "sin(x2)",
  cosX: "cos(x1)", cosY: "cos(x2)",
};
const DATA_SETS = { gauss: "gaussian", "reg-plane": "plane", "reg-gauss": "multi-gaussian" };
const BUTTONS = { playButton: "play", stepButton: "step", resetButton: "reset", numHiddenLayers: "hidden" };
const HIDE = "_hide"; // the end of a control's name, if it may be hidden

// Turns such a link into an address of ours. Returns the names in it that mean nothing here; null for another link.
export function readReference() {
  const given = new Map(new URLSearchParams(location.hash.slice(1)));
  const isKnown = (name) => name in NAMES || name in INPUTS;
  if (![...given.keys()].some(isKnown)) return null;
  const address = new URLSearchParams(location.search);
  const isOn = (name, byDefault = "false") => (given.get(name) ?? byDefault) !== "false";
  for (const [name, ours] of Object.entries(NAMES)) {
    if (given.has(name)) address.set(ours, inOurWords(name, given.get(name)));
  }
  if (["problem", "dataset", "regDataset"].some((name) => given.has(name))) {
    const isRegression = given.get("problem") === "regression";
    const data = isRegression ? given.get("regDataset") ?? "reg-plane" : given.get("dataset") ?? "circle";
    address.set("dataset", DATA_SETS[data] ?? data);
  }
  if (Object.keys(INPUTS).some((name) => given.has(name))) {
    const used = Object.keys(INPUTS).filter((name) => isOn(name, String(name === "x" || name === "y")));
    address.set("inputs", used.map((name) => INPUTS[name]).join(","));
  }
  const controlOf = (name) => name.endsWith(HIDE) && { ...NAMES, ...BUTTONS }[name.slice(0, -HIDE.length)];
  const hidden = [...given.keys()].filter((name) => given.get(name) === "true").map(controlOf).filter(Boolean);
  if (hidden.length) address.set("hide", hidden.join(","));
  history.replaceState(null, "", `?${address}`);
  return [...given.keys()].filter((name) => !isKnown(name) && !controlOf(name) && isOn(name));
}

function inOurWords(name, value) {
  if (name === "noise" || name === "percTrainData") return String(value / 100);
  if (name === "networkShape") return value.replaceAll(",", "-");
  if (name === "initZero") return value === "false" ? "glorot" : "zeros";
  if (name === "showTestData" || name === "discretize") return value === "false" ? "off" : "on";
  return value.toLowerCase();
}

// What came from the link and differs from what is here by default; and what was left out.
export function toldOfReference({ welcome, scene }, leftOut) {
  const names = [...new URLSearchParams(scene.address).keys()].map((name) => welcome.fields[name].label.toLowerCase());
  const rest = leftOut.length ? ` Left out: ${leftOut.join(", ")}.` : "";
  return `From the link of TensorFlow Playground: ${names.join(", ") || "what is here by default"}.${rest}`;
}
