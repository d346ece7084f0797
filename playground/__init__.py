"""The playground: a small network learns in the browser, live.

`README.md` beside this file says how to read it.
"""
