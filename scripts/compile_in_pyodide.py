"""Cut and compile the wheels and the standard library in this folder: a program for Pyodide's Python.

Python starts in half the time if nothing is left to compile. In others' packages the bytecode takes the place
of the source. Ours have both, because lectures and drawings show lines of them.
"""

from __future__ import annotations

import marshal
import re
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

OURS = "needle_notebooks"
PLACE = "/lib/python3.12/site-packages/"
#: What no page reads: tests, what is for compilers, editors, windows and mail, other languages, more fonts.
NEEDLESS = re.compile(
    r"/(tests|f2py|distutils|labextensions|sample_data|images|afm|pdfcorefonts)/"
    r"|^pygments/lexers/(?!__init__|_mapping|python|special)"
    r"|^matplotlib/backends/_?backend_(gtk|qt|tk|wx|mac|webagg|nbagg|pgf|cairo)"
    r"|^(xmlrpc|wsgiref)/|^(imap|nntp|smtp|tel|pop|mail)(lib|netlib|box)\.py$"
    r"|/DejaVu(Serif|SansMono-)[^/]*$|\.(a|h|pxd|pyi)$"
)
#: What of ours no browser imports: its bytecode would only be loaded.
NOT_IMPORTED = re.compile(r"^playground/(pages|components)/|numba|cuda|mpi4py")
VALID_AS_IT_IS = 1  # a flag: Python doesn't compare the bytecode with its source


def compiled(source: bytes, name: str) -> bytes:
    """The bytecode of a file."""
    code = compile(source, PLACE + name, "exec", dont_inherit=True)
    flag = VALID_AS_IT_IS.to_bytes(4, "little")
    return MAGIC_NUMBER + flag + source_hash(source) + marshal.dumps(code)


def beside(name: str) -> str:
    """Where Python looks for the bytecode of a file whose source is there, too."""
    path = Path(name)
    return str(path.parent / "__pycache__" / f"{path.stem}.cpython-312.pyc")


for path in sorted(Path().iterdir()):
    ours = path.name.startswith(OURS)
    with ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if ours or not NEEDLESS.search(name)}
    with ZipFile(path, "w", ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in files.items():
            made = {name: content}
            if name.endswith(".py"):
                bytecode = compiled(content, name)
                if not ours:
                    made = {f"{name}c": bytecode}
                elif not NOT_IMPORTED.search(name):
                    made[beside(name)] = bytecode
            for each, what in made.items():
                # Without a time, it is the same at each build.
                archive.writestr(ZipInfo(each), what, ZIP_DEFLATED, 9)
