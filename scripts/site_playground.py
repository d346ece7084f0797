"""The playground's part of the site: its page, with Python in a web worker in the place of the server."""

from __future__ import annotations

import re
import shutil
import struct
from importlib.util import find_spec
from pathlib import Path

from playground.server import messages
from playground.training.lessons import LESSONS
from playground.training.settings import FIELDS, Settings
from playground.training.trainer import Trainer

ROOT = Path(__file__).resolve().parent.parent
STAGE = ROOT / "playground" / "stage"
WORKER = ROOT / "browser" / "playground.js"
FONT = "static/static/media/SourceSansVF-Upright*.woff2"  # in Streamlit, from which the app has it
#: The page asks nobody else, and runs no script but its own.
POLICY = (
    "default-src 'none'; script-src 'self'; worker-src 'self'; connect-src 'self'; font-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'"
)
#: The pages that need no server, in the place of the app's.
PAGES = {"../": "Start", "../explorer/": "Explorer"}


def add_playground(site: Path) -> None:
    """Write ``playground`` in the folder of the site."""
    folder = site / "playground"
    shutil.copytree(STAGE, folder / "stage", ignore=shutil.ignore_patterns("index.html"))
    shutil.copy(WORKER, site / "python")
    (folder / "index.html").write_text(page((STAGE / "index.html").read_text("utf-8")), "utf-8")
    (folder / "first").mkdir()
    addresses = {name: {"dataset": name} for name in FIELDS["dataset"].for_page()["choices"]}
    addresses |= {name: {**lesson.settings, "lesson": name} for name, lesson in LESSONS.items()}
    for name, address in addresses.items():
        settings, _ = Settings().changed(address)
        (folder / "first" / f"{name}.bin").write_bytes(first_messages(settings))
    streamlit = find_spec("streamlit")
    for font in Path(streamlit.origin or "").parent.glob(FONT) if streamlit else ():
        shutil.copy(font, folder / "stage" / "font.woff2")


def page(html: str) -> str:
    """The app's page as a page of the site."""
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n  <meta name="site" content="../">'
        '\n  <script type="module" src="../keep.js"></script>'
    )
    html = html.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n  {head}', 1)
    links = "".join(f'\n      <a href="{address}">{title}</a>' for address, title in PAGES.items())
    others = re.compile(r'(?<=aria-current="page">Playground</a>).*?(?=\s*</nav>)', re.DOTALL)
    return others.sub(links, html)


def first_messages(settings: Settings) -> bytes:
    """What the page shows until Python is there: each message after its length."""
    trainer = Trainer(settings)
    parts = [messages.welcome("", ""), messages.scene(trainer), messages.picture(trainer, playing=False)]
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)
