// Python in a web worker: Pyodide, NumPy, and our own wheel. `make site` writes `site.json`, which says where
// they are.

export const SITE = new URL("../", import.meta.url);
const STEPS = 4; // of what is loaded, for the bar

// Resolves to Pyodide with needle on its path. `say` is told what is being loaded, and which part of all is there.
export async function startPython(say) {
  let done = 0;
  const step = (words) => say(words, done++ / STEPS);
  const { pyodide, wheel } = await (await got(new URL("site.json", SITE))).json();
  const home = new URL(pyodide, SITE).href;
  step("Python is loading");
  const wheelBytes = got(new URL(wheel, SITE)).then((answer) => answer.arrayBuffer());
  const { loadPyodide } = await import(`${home}pyodide.mjs`);
  step("Python starts");
  const python = await loadPyodide({ indexURL: home, packages: ["numpy"], env: { OPENBLAS_NUM_THREADS: "1" } });
  step("needle is unpacked");
  python.unpackArchive(await wheelBytes, "wheel");
  step("needle starts");
  return python;
}

async function got(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address.pathname.split("/").pop()} could not be loaded (${answer.status}).`);
  return answer;
}
