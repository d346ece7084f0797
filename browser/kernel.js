// A kernel of JupyterLite loads this in the place of Pyodide's script: it starts with all that lectures need.

self.loadPyodide = async (options) => {
  const drawings = import("../drawings/graphviz.js"); // loads beside Python
  importScripts(`${options.indexURL}pyodide.js`); // has the true `loadPyodide`
  const python = await self.loadPyodide({
    ...options,
    packages: ["needle-notebooks", "matplotlib", "pillow", "sqlite3"],
    stdLibURL: `${options.indexURL}python_kernel.zip`,
  });
  await python.pyimport("viz").in_browser(await drawings);
  return python;
};
