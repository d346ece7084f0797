// The playground's worker: Python in the page's browser takes the place of the server, and says the same. From the
// page come JSON as text, and runs to import as bytes. To it go messages as bytes.

import { fail, startGraphviz, startPython } from "./python.js";

// What only some questions need is loaded when they are asked.
const NEEDS = { gif: loadPillow, ...Object.fromEntries(["forward", "gradient", "steps", "program", "passes"].map(
  (name) => [name, startGraphviz])) };

const waiting = []; // what the page says before Python is there
const loop = new MessageChannel(); // its messages come after those of the page that are here already
let python;
let line;
let nextTurn; // of setTimeout
let isTurnNear = false;

self.onmessage = ({ data }) => (line ? take(data) : waiting.push(data));
loop.port1.onmessage = guarded(turn);

try {
  python = await startPython();
  line = python.pyimport("playground.server.worker").Line(post);
  waiting.forEach(take);
} catch (error) {
  fail(error);
}

function take(said) {
  const { what } = typeof said === "string" ? JSON.parse(said) : {};
  const take = guarded(() => {
    line.take(said);
    wake();
  });
  if (NEEDS[what]) NEEDS[what](python).catch(console.warn).then(take); // the answer will say what is missing
  else take();
}

function wake() {
  clearTimeout(nextTurn);
  if (!isTurnNear) loop.port2.postMessage(null);
  isTurnNear = true;
}

function turn() {
  isTurnNear = false;
  const rest = line.turn();
  if (rest > 0) nextTurn = setTimeout(wake, 1000 * rest);
  else wake();
}

function post(message) {
  const view = message.getBuffer("u8");
  const { buffer } = view.data.slice();
  view.release();
  self.postMessage(buffer, [buffer]);
}

// Python catches its own errors: what comes here is the end of it, such as too little memory.
function guarded(what) {
  return () => {
    try {
      what();
    } catch (error) {
      fail(error);
    }
  };
}

async function loadPillow() {
  await python.loadPackage("pillow", { messageCallback: () => {} });
}
