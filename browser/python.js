// Python in a web worker: Pyodide, NumPy, and our own wheel, as `make site` has put them beside this folder. The page
// has a PythonWorker.

export const SITE = new URL("../", import.meta.url);
const STEPS = 3; // of what is loaded, for the bar

// Resolves to Pyodide with needle on its path.
export async function startPython() {
  let done = 0;
  const step = (words) => say(words, done++ / STEPS);
  step("Python is loading");
  const { loadPyodide } = await import(new URL("pyodide/pyodide.mjs", SITE));
  step("Python starts");
  const env = { OPENBLAS_NUM_THREADS: "1", MPLBACKEND: "agg" }; // in a worker there is no page to draw on
  const indexURL = new URL("pyodide/", SITE).href;
  const python = await loadPyodide({ indexURL, packages: ["needle_notebooks"], env });
  step("needle starts");
  return python;
}

// Lets `viz` draw graphs in a Python that was started here.
export async function startGraphviz(python) {
  await python.pyimport("viz").in_browser(await import(new URL("drawings/graphviz.js", SITE)));
}

// Tells the page what is being loaded, and which part of all is there.
export function say(loading, share) {
  postMessage({ loading, share });
}

// Tells the page that this is the end.
export function fail(error) {
  console.warn(error);
  postMessage({ failed: lastLine(error) });
  close();
}

// Of a traceback, the line that says what is wrong.
export function lastLine({ message }) {
  return message.trim().split("\n").at(-1);
}
