// Python for the Explorer. The page asks for functions of playground/results/explorer.py, with text; it gets text.

import { fail, lastLine, say, startGraphviz, startPython } from "../python/python.js";

const DRAWN_BY_MATPLOTLIB = "memory";

const started = start();

async function start() {
  const python = await startPython();
  await startGraphviz(python);
  return { python, explorer: python.pyimport("playground.results.explorer") };
}

started.then(() => postMessage({ ready: true }), fail);

self.onmessage = async ({ data: { id, name, given } }) => {
  try {
    const { python, explorer } = await started;
    if (given.view === DRAWN_BY_MATPLOTLIB && !("matplotlib" in python.loadedPackages)) {
      say("matplotlib is loading", 0.5);
      await python.loadPackage("matplotlib", { messageCallback: () => {} });
      python.pyimport("viz.kept"); // which finds the fonts, for some seconds
    }
    postMessage({ working: true });
    postMessage({ id, answer: explorer[name].callKwargs(given) });
  } catch (error) {
    postMessage({ id, error: lastLine(error) });
  }
};
