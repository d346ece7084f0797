"""The playground: a small network learns in the browser, live.

`settings` says what can be chosen, `trainer` trains with `needle`, `frame` packs what is to be seen; none of
them knows Streamlit, so a notebook can use them too. `controls`, `stage` and `graphs` are parts of a page;
`pages` puts them together, and `testing` opens the app in a real browser.
"""
