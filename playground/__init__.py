"""The playground: a small network learns in the browser, live.

`settings` says what you can choose, `trainer` trains with `needle`, and `stage_data` packs what the browser
draws. None of them knows Streamlit, so you can use them in a notebook too. `controls`, `stage`, `graphs` and
`pictures` are parts of a page, and `pages` puts them together. `reading`, `values`, `functions` and
`expression` are the Explorer's small language. `testing` opens the app in a real browser.
"""
