// The page: connects its parts, and paints when there is something new.

import { leadBack } from "./addresses.js";
import { followTheme } from "./colours.js";
import { Connection } from "./connection.js";
import { Controls } from "./controls.js";
import { followTraining } from "./editors.js";
import { Figures } from "./figures.js";
import { listenToKeys, showNotes } from "./help.js";
import { Inside } from "./inside.js";
import { Lessons } from "./lessons.js";
import { Losses } from "./losses.js";
import { buildMenus, keepTransport, toggleMore } from "./menus.js";
import { Network } from "./network.js";
import { Plane } from "./plane.js";
import { readReference, toldOfReference } from "./reference.js";
import { Sharing } from "./sharing.js";
import { buildSheet, toggleSheet } from "./sheet.js";
import { inSite } from "./site.js";
import { Stage } from "./stage.js";
import { TakeHome } from "./take_home.js";
import { Tiles } from "./tiles.js";
import { element, grouped, write } from "./words.js";

const ALL = ["plane", "network", "losses", "words"];
const REST_PERIOD = 60; // milliseconds between two paintings of all but the plane, while it plays; or …
const REST_SHARE = 4; // … so many times as long as between two pictures, …
const REST_LONGEST = 700; // … but never longer
const NOTICE = 8000; // milliseconds for which a notice stays
const GUIDE = {
  positive: "Draw blue points into the plane. Press Blue again when you have done.",
  negative: "Draw orange points into the plane. Press Orange again when you have done.",
  erase: "Wipe points of yours off the plane. Press Erase again when you have done.",
  begin: "Press Play and watch the network learn to tell blue from orange.",
  empty: "Choose Blue or Orange, and paint points in the plane. Or upload a file with x1, x2 and a label in each row.",
  numbers: "Press Play and watch the network learn a number for each point: blue is positive, orange negative.",
  playing: "Change anything while it learns: click a link, add a neuron, choose other data. Too fast to watch? Choose a slower pace.",
  earlier: "This is an earlier moment. Play or Step goes on from here, and then what came later is gone.",
  paused: "Point at a neuron to see its answers large, or click the loss curve to go back in time.",
};

const find = (selector) => document.querySelector(selector);
const stage = new Stage(onChange);
const controls = new Controls(stage);
const tiles = new Tiles(stage);
const figures = new Figures(stage);
const plane = new Plane(stage, () => repaint("plane"));
const network = new Network(stage, tiles, () => repaint("network"));
const losses = new Losses(stage, () => repaint("losses"));
const lessons = new Lessons(stage);
const inside = new Inside(stage);
const sharing = new Sharing(stage);
let notice = null;
let remark = null; // of the scene, while it is new
let isNew = false; // a picture has come that is not painted yet
let isAsked = false; // and the next one is asked for
let leftOut = readReference(); // of a link of TensorFlow Playground; null once it was told, and without one
let pending = null;
let lastTaken = 0; // when the last picture was taken up
let allPainted = 0;
const stale = new Set(); // the parts that must be painted
const parts = document.querySelectorAll("#sheet, .network, .output, .inside-fold, #take-home"); // each needs a scene

for (const part of parts) part.inert = true;

stage.say = (text) => write(find("[data-note=spoken]"), text);
// The newest of notices and problems is what counts.
stage.tell = (text, tone = "info") => {
  clearTimeout(notice?.end);
  if (stage.scene) stage.scene.problems = [];
  notice = { text, tone, end: setTimeout(() => { notice = null; showStatus(); }, NOTICE) };
  showStatus();
};

new TakeHome(stage);
buildMenus();
keepTransport();
leadBack(document.querySelectorAll("#pages a:not([aria-current])"));
buildSheet();
showNotes();
followTheme(restyle);
document.fonts.addEventListener("loadingdone", restyle); // canvases don't wait for their letters
stage.connection = new Connection({ receive, lost, loads });

// ---- messages ----------------------------------------------------------------------------------------------------

function receive(message) {
  if (message.kind === "welcome") welcome(message);
  if (message.kind === "scene") takeScene(message);
  if (message.kind === "picture") takePicture(message);
  if (message.kind === "notice") stage.tell(message.text, message.tone);
}

function welcome(message) {
  stage.welcome = message;
  controls.build();
  lessons.build();
  sharing.build();
  stage.connection.send({ do: "ready" });
  stage.resume();
}

function takeScene(message) {
  for (const part of parts) part.inert = false;
  if (message.remark && message.remark !== stage.scene?.remark) {
    remark = message.remark;
    setTimeout(() => { remark = null; showStatus(); }, 2 * NOTICE); // a notice may hide it at first
  }
  stage.scene = message;
  if (message.problems.length) {
    clearTimeout(notice?.end);
    notice = null;
    stage.forgetWishes(); // what was refused must not stay in its field
  }
  if (stage.picture && !fits(stage.picture)) {
    stage.picture = null;
    stage.point(null, "hovered");
    stage.point(null, "pinned");
  }
  renewScene();
  tiles.answered();
  if (!stage.connection.hasAnswered) return; // while Python loads, a notice would not be seen
  if (leftOut && !message.problems.length) stage.tell(toldOfReference(stage, leftOut));
  leftOut = null;
}

function renewScene() {
  controls.show();
  tiles.renew();
  network.renew();
  plane.renew();
  lessons.show();
  sharing.show();
  repaint(...ALL);
  const { own, train, test } = stage.scene;
  find("[data-do=clear]").disabled = !own;
  const yours = own ? `. ${grouped(own)} of these ${own === 1 ? "is" : "are"} yours` : "";
  find("[data-note=counts]").replaceChildren(element("i", { className: "dot" }), `${grouped(train)} to learn from, `,
    element("i", { className: "dot test" }), `${grouped(test)} to test${yours}`);
  showStatus();
}

function restyle() {
  if (!stage.scene) return;
  controls.build();
  renewScene();
}

function takePicture(message) {
  isAsked = inSite() && !document.hidden; // a worker makes the next picture while this one is painted
  if (isAsked) stage.connection.send({ do: "ready" });
  isNew = true;
  stage.wasPlaying = message.playing;
  if (fits(message)) {
    stage.picture = message;
    figures.count(message);
  }
  repaint();
}

// Whether a picture belongs to the layers of the scene.
function fits(picture) {
  return Boolean(picture && stage.scene) && stage.layers.slice(1).every(({ neurons }, i) => {
    const [fanIn, fanOut] = picture.shapes[`weights_${i + 1}`] ?? [];
    return fanIn === stage.layers[i].neurons && fanOut === neurons;
  }) && !picture.shapes[`weights_${stage.layers.length}`];
}

// Where Python runs in this browser: what is being loaded, and which part of all is there; nothing once it is.
function loads(words, share) {
  stage.lostLine = null;
  stage.loading = words ?? null;
  find(".loading").value = share ?? 0;
  find(".loading").hidden = !words;
  showStatus();
}

// `way` is what a button says that opens the line again; without one it opens by itself.
function lost(text, way) {
  loads();
  stage.lostLine = text;
  showStatus();
  if (!way) return;
  const again = element("button", { className: "small", textContent: way });
  again.onclick = () => {
    again.remove();
    stage.connection.open();
  };
  find(".status").append(again);
}

// ---- painting ------------------------------------------------------------------------------------------------------

// What has changed is painted in the next frame: "plane", "network", "losses", "words", or all.
function repaint(...parts) {
  for (const part of parts) stale.add(part);
  pending ??= requestAnimationFrame(() => {
    pending = null;
    if (isNew) takeUp(performance.now());
    if (stage.picture) paint();
  });
}

// While it plays, the plane is painted with each picture, and the rest often enough to look live. Where pictures come
// seldom, the computer has much to do: then the rest makes room for them.
function takeUp(now) {
  if (!isAsked) stage.connection.send({ do: "ready" }); // first: the server makes the next picture meanwhile
  isNew = false;
  stale.add("plane");
  const period = Math.max(REST_PERIOD, Math.min(REST_LONGEST, REST_SHARE * (now - lastTaken)));
  lastTaken = now;
  if (stage.wasPlaying && now - allPainted < period) return; // the last picture is painted in any case
  allPainted = now;
  for (const part of ALL) stale.add(part);
}

function paint() {
  if (stale.has("plane")) plane.paint();
  if (stale.has("network")) network.paint();
  if (stale.has("losses")) losses.paint();
  if (stale.has("words")) {
    figures.paint();
    inside.paint();
    followTraining();
    lessons.follow();
    showPlaying();
    showStatus();
  }
  stale.clear();
}

function showPlaying() {
  const button = find("[data-do=play]");
  button.classList.toggle("playing", stage.playing);
  write(button.querySelector("span"), stage.playing ? "Pause" : "Play");
}

function showStatus() {
  const { picture, scene } = stage;
  const [text, tone] = stage.lostLine ? [stage.lostLine, "info"]
    : stage.loading ? [`${stage.loading} …${stage.playing ? " Then it plays." : ""}`, "guide"]
    : picture?.trouble && scene?.train ? [picture.trouble, "error"] // without points, the guide says what to do
    : scene?.problems.length ? [scene.problems.join(" "), "error"]
    : notice ? [notice.text, notice.tone]
    : remark ? [remark, "info"]
    : picture?.hint && !lessons.asks ? [picture.hint, "info"] : [GUIDE[guide()], "guide"];
  const line = find("[data-status=line]");
  if (line.textContent === text) return;
  line.textContent = find(".status").title = text;
  find(".status").dataset.tone = tone;
}

function guide() {
  if (stage.tool) return stage.tool;
  if (stage.scene && !stage.scene.train) return "empty";
  if (stage.playing) return "playing";
  if (stage.hides("play")) return "paused";
  if (stage.picture && stage.picture.at !== null) return "earlier";
  if (stage.picture?.epochs) return "paused";
  return stage.scene?.is_regression ? "numbers" : "begin";
}

function onChange(what) {
  if (what === "settings") {
    controls.show();
    plane.renew();
    repaint(...ALL);
  }
  if (what === "playing") {
    showPlaying();
    showStatus();
    repaint("words");
  }
  if (what === "lesson") repaint("words");
  if (what === "shown") repaint("network", "plane");
  if (what === "tool") {
    showTool();
    repaint("words");
  }
}

function showTool() {
  for (const button of document.querySelectorAll("[data-tool]")) {
    button.ariaPressed = String(button.dataset.tool === stage.tool);
  }
  plane.canvas.classList.toggle("paints", Boolean(stage.tool));
}

// Back to one of Streamlit's pages, which change the address without a new document; or, on the site, to an address
// of this page. There, a link to another address needs no new document either: Python goes on, with another run.
addEventListener("popstate", () => (inSite() && !location.hash ? move() : location.reload()));
window.navigation?.addEventListener("navigate", (event) => {
  const isOfThisPage = new URL(event.destination.url).pathname === location.pathname;
  const isLink = inSite() && event.canIntercept && event.navigationType === "push" && !event.hashChange;
  if (isLink && isOfThisPage) event.intercept({ handler: async () => move() });
});

function move() {
  for (const open of document.querySelectorAll(":popover-open")) open.hidePopover();
  stage.forget();
  lessons.forget();
  showTool();
  stage.connection.move();
}

// ---- buttons -------------------------------------------------------------------------------------------------------

const actions = {
  play: () => stage.train(stage.playing ? "pause" : "play"),
  step: () => stage.train("step"),
  reset: (event) => stage.train("reset", event.shiftKey ? {} : { weights_seed: anotherSeed() }),
  regenerate: () => stage.set({ seed: anotherSeed() }),
  clear: () => stage.set({ own: "" }),
  output: () => stage.point(null, "pinned"),
  inside: () => inside.toggle(),
  more: () => toggleMore(),
  further: () => network.goFurther(),
  program: () => inside.show("program"),
  controls: () => toggleSheet(),
  "close-sheet": () => toggleSheet(false),
};
listenToKeys(stage, actions);

document.addEventListener("click", (event) => {
  const { target } = event;
  if (target.closest(".inside-place")) return; // what the server draws has buttons of its own
  const button = target.closest("[data-do], [data-tool]");
  if (button?.dataset.tool) stage.choose(button.dataset.tool);
  else actions[button?.dataset.do]?.(event);
});

function anotherSeed() {
  return String(Math.floor(Math.random() * 1e6));
}

find("[data-file=points]").onchange = async ({ target }) => {
  const [file] = target.files;
  if (stage.admits(file, "points", "too large for points.")) {
    stage.connection.send({ do: "upload", text: await file.text() });
  }
  target.value = "";
};
