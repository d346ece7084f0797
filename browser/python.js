// Python in a web worker: Pyodide, NumPy, and our own wheel. `make site` writes `site.json`, which says where
// they are.

export const SITE = new URL("../", import.meta.url);
const STEPS = 4; // of what is loaded, for the bar

let about; // what site.json says

// Resolves to Pyodide with needle on its path. `say` is told what is being loaded, and which part of all is there.
export async function startPython(say) {
  let done = 0;
  const step = (words) => say(words, done++ / STEPS);
  about = await (await got(new URL("site.json", SITE))).json();
  const home = new URL(about.pyodide, SITE).href;
  step("Python is loading");
  const wheelBytes = got(new URL(about.wheel, SITE)).then((answer) => answer.arrayBuffer());
  const { loadPyodide } = await import(`${home}pyodide.mjs`);
  step("Python starts");
  const env = { OPENBLAS_NUM_THREADS: "1", MPLBACKEND: "agg" }; // in a worker there is no page to draw on
  const python = await loadPyodide({ indexURL: home, packages: ["numpy"], env });
  step("needle is unpacked");
  python.unpackArchive(await wheelBytes, "wheel");
  step("needle starts");
  return python;
}

// Lets `viz` draw graphs in a Python that was started here.
export async function startGraphviz(python) {
  const graphviz = import(new URL(about.graphviz, SITE));
  await python.pyimport("viz").in_browser(await graphviz);
}

async function got(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address.pathname.split("/").pop()} could not be loaded (${answer.status}).`);
  return answer;
}
