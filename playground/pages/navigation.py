"""The pages of the app that Streamlit runs. The playground itself is a page of its own: see `live`."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import streamlit as st

import playground
from playground.pages import TITLES, classifier, digits, explorer, maths, modules, tensor

_STAGE = Path(playground.__file__).parent / "stage"
_RELOAD = "export default function () { location.reload(); }"
_TELL = """export default async function ({ setStateValue }) {
  const { tell } = await import(new URL("stage/addresses.js", location.href).href);
  tell(setStateValue);
}"""

# Of two requests Streamlit runs the last, for the page that was shown when it was sent. What speaks soon
# after a click on a link would undo the click. So it waits, 30 s at most, until the page behind it is there.
_SAY_ON_ARRIVAL = """<script>
(() => {
  let link = null, clicked = 0;
  window.onclick = ({ target, defaultPrevented, timeStamp }) => {
    if (defaultPrevented && target.closest("a")) [link, clicked] = [target.closest("a"), timeStamp];
  };
  window.sayOnArrival = (say) => {
    if (link?.pathname === location.pathname || performance.now() > clicked + 30000) link = null;
    if (link) setTimeout(() => sayOnArrival(say), 50);
    else say();
  };
})();
</script>"""


def _playground() -> None:
    """Go to the playground, which has the app's first address, from an address that no page has."""
    st.components.v2.component("needle_reload", js=_RELOAD)(key="reload")


def _hear_addresses() -> None:
    """Let the browser say at which address this tab last saw each page, before this session began."""

    def keep() -> None:
        kept = st.session_state.addresses.kept
        st.session_state.kept_addresses = kept if isinstance(kept, Mapping) else {}

    st.components.v2.component("needle_addresses", js=_TELL)(key="addresses", on_kept_change=keep)


def _kept_address(name: str) -> dict[str, list[str]]:
    """What the browser has said of the page whose path ends so."""
    return parse_qs(str(st.session_state.get("kept_addresses", {}).get(name, "")).removeprefix("?"))


_PAGES = dict(zip(TITLES, (explorer, maths, classifier, tensor, modules, digits), strict=True))

# As on the playground's own page, and with words on a phone, too.
_STYLE = """
<style>
.st-key-pages { border-bottom: 1px solid color-mix(in srgb, currentColor 12%, transparent); gap: 0 1.1rem; }
.st-key-pages [data-testid="stPageLink-NavLink"] { background: none; padding: 0.25rem 0; }
.st-key-pages .stHtml a { color: inherit; display: block; font-size: 0.875rem; line-height: 2; }
.st-key-pages .stHtml a { text-decoration: none; }
.st-key-pages [aria-current="page"] p { font-weight: 600; }
.st-key-pages { min-height: 2rem; }
[data-testid="stSkeleton"] { visibility: hidden; }
[data-testid="stHeader"] { background: none; height: 0; }
</style>
"""

st.set_page_config(page_title="needle", page_icon=str(_STAGE / "icon.svg"), layout="wide")
first = st.Page(_playground, title="Playground", url_path="playground", default=True)
others = [st.Page(_PAGES[name].page, title=title, url_path=name) for name, title in TITLES.items()]
chosen = st.navigation([first, *others], position="hidden")
st.html(_STYLE)
st.html(_SAY_ON_ARRIVAL, unsafe_allow_javascript=True)
with st.container(horizontal=True, key="pages"):
    query = urlencode(_kept_address(""), doseq=True)
    st.html(f'<a href="./{"?" if query else ""}{escape(query)}">{first.title}</a>', width="content")
    for page in others:
        st.page_link(page, query_params=_kept_address(page.url_path), width="content")
chosen.run()
_hear_addresses()  # below all that it would move
