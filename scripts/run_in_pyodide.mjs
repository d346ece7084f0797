// Runs a file of Python in Pyodide, with a folder as its current one: node run_in_pyodide.mjs PYODIDE FILE FOLDER

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [pyodide, file, folder] = process.argv.slice(2).map((path) => resolve(path));
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: pyodide });
python.mountNodeFS("/mnt", folder);
python.FS.chdir("/mnt");
python.runPython(readFileSync(file, "utf-8"), { filename: file });
