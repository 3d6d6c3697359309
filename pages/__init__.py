"""The documentation is run: a page is a program, and what it shows is what it printed.

`parsing.py` finds the blocks of a page, `running.py` runs them in order in an empty folder,
`comparing.py` holds what they printed against what the page shows, `figures.py` does so with
pictures, `writing.py` puts the real ones in. `claims.py` ties numbers in prose to their sources,
tables of studies, benchmarks and outputs. `site.py` makes the pages of the reference.

python -m pages                      run every page and say what differs
python -m pages docs/index.md        run one
python -m pages docs/index.md --write    put what it printed, and its pictures, into the page
python -m pages --claims --write     put numbers of their sources into the prose of every page
"""
