"""Studies: what a method of ours does on simulated and on real faces, as it comes out.

`parts.py` lists the cells of each part, `sets.py` makes their data, `contenders.py` their methods,
`cells.py` runs one and keeps its numbers in ``results.jsonl`` (numbers only: no score of a pair, no
vector). `page.py` writes ``docs/study-smooth.md`` from that file alone, `pictures.py` draws.
"""
