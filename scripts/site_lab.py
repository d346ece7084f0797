"""The lectures in JupyterLite, which is JupyterLab without a server: a part of the site.

A kernel has all that the lectures need when it starts, so nothing is installed while a reader waits.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from make_book import COLAB
from nbformat import NotebookNode
from site_python import BROWSER, FILES, KEPT, PYODIDE_KERNEL, jupyterlite

ROOT = Path(__file__).resolve().parent.parent
#: What draws widgets on the page, each in the wheel that brings it.
EXTENSIONS = ("jupyterlab_widgets", "anywidget")
#: From the page to the folder of the site.
FROM_PAGE = "../../"
#: JupyterLite's worker loads a script that starts Python. Ours has started it before: see `kernel.js`.
NO_SCRIPT = "data:text/javascript,"
#: What a kernel would get from the network when it starts. It is in its library, or a lecture does without.
IS_THERE = ["comm", "ipykernel", "ipython", "jedi", "micropip", "piplite", "pyodide_kernel", "sqlite3", "ssl"]
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension:tracker": {"autoStartDefaultKernel": True},
    # A reload ends the kernel, so the notebook has to hold what a widget shows.
    "@jupyter-widgets/jupyterlab-manager:plugin": {"saveState": True},
}

BADGE = (
    "[← Read it in the book](../../book/{page}.html) · [Open it in Colab]({colab}), which has Numba and more "
    "than one processor"
)
KEEP = (
    "**Keep your work.** This page computes in your browser, and keeps what you write there, for this "
    "address only: no server gets it. To have it elsewhere, choose *File → Download*; to bring it here, drag "
    "the file into the list on the left. To begin anew, close the notebook, delete it in that list, and open "
    "it again. A private window forgets everything when you close it. When the page was loaded anew, as "
    "after a long sleep, what you wrote is there, but Python has begun anew: choose *Run → Run All Cells*."
)


def edition(notebook: NotebookNode, name: str) -> NotebookNode:
    """A lecture as JupyterLite shows it: its badge asks no other server, and it says where work stays."""
    here = nbformat.from_dict(notebook)
    for cell in here.cells:
        if "badge" in cell.metadata.get("tags", []):
            cell.source = BADGE.format(page=name, colab=COLAB.search(cell.source)[0])
        if cell.id == "keep-your-work":
            cell.source = KEEP
    here.metadata["kernelspec"] = {"name": "python", "display_name": "Python (Pyodide)", "language": "python"}
    return here


def build_lab(site: Path) -> None:
    """Write JupyterLite with the lectures into the folder ``lab`` of the site."""
    lab = site / "lab"
    kernel = {"pyodideUrl": NO_SCRIPT, "loadPyodideOptions": {"packages": IS_THERE}}
    page = {
        "appName": "needle",
        "exposeAppInBrowser": True,
        "faviconUrl": f"{FROM_PAGE}icon.svg",
        "litePluginSettings": {"@jupyterlite/pyodide-kernel-extension:kernel": kernel},
    }
    extensions = [str(KEPT / name) for name in FILES["wheels"] if name.startswith(EXTENSIONS)]
    extensions.append(str(jupyterlite() / PYODIDE_KERNEL))
    with TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "contents").mkdir()
        for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
            lecture = edition(nbformat.read(path, as_version=4), path.stem)
            nbformat.write(lecture, folder / "contents" / path.name)
        options = {
            "contents": ["contents"],
            "output_dir": str(lab.resolve()),
            "cache_dir": "cache",
            "apps": ["lab"],
            "ignore_sys_prefix": ["federated_extensions"],
            "federated_extensions": extensions,
            "no_sourcemaps": True,
            "no_unused_shared_packages": True,
        }
        for name, content in (
            ("jupyter_lite_config.json", {"LiteBuildConfig": options}),
            ("jupyter-lite.json", {"jupyter-lite-schema-version": 0, "jupyter-config-data": page}),
            ("overrides.json", SETTINGS),
        ):
            (folder / name).write_text(json.dumps(content), "utf-8")
        command = [sys.executable, "-m", "jupyterlite_core", "build"]
        variables = os.environ | {"PYTHONPATH": str(jupyterlite())}
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=variables)
        if done.returncode:
            sys.exit(f"JupyterLite could not be built:\n{done.stdout}{done.stderr}")
    start = lab / "lab" / "index.html"
    text = start.read_text("utf-8").replace("<title>JupyterLite<", "<title>needle · lectures<")
    for name in ("lab.js", "lab.css"):
        shutil.copy(BROWSER / name, site)
    shutil.copy(BROWSER / "kernel.js", site / "python")
    ours = f'<link rel="stylesheet" href="{FROM_PAGE}lab.css"><script src="{FROM_PAGE}lab.js"></script>'
    ours += f'<script type="module" src="{FROM_PAGE}keep.js"></script>'
    start.write_text(text.replace("</head>", f"{ours}</head>", 1), "utf-8")
