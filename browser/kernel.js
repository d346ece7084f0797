// A lecture's kernel, in its worker: Python starts at once with all that lectures need, and JupyterLite's own script,
// whose address the page sends, finds it there. The page is told what goes wrong: JupyterLite says it nowhere.

const SITE = new URL("../", location.href).href;

const tell = (error) => postMessage({ trouble: String(error.message ?? error) });

importScripts(`${SITE}packed.js`);
self.fetch = fetchUnpacked; // no service worker does so, the first time

// Its name is not `start`: JupyterLite's script calls a function of this name, if there is one.
async function startPython() {
  const drawings = import(`${SITE}drawings/graphviz.js`); // loads beside Python
  importScripts(`${SITE}pyodide/pyodide.js`);
  const python = await loadPyodide({
    indexURL: `${SITE}pyodide/`,
    packages: ["needle-notebooks", "matplotlib", "pillow", "sqlite3"],
    stdLibURL: `${SITE}pyodide/python_kernel.zip`,
  });
  await python.pyimport("viz").in_browser(await drawings);
  Object.defineProperty(python._api, "on_fatal", { get: () => tell, set() {} }); // JupyterLite's tells nobody
  return python;
}

const python = startPython();
python.catch(tell);

addEventListener("message", ({ data: { script } }) => {
  if (!script) return;
  importScripts(script);
  self.loadPyodide = () => python; // which that script asks for
});
