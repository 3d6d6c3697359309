"""Benchmarks: ours against the plain alternative and the machine's own limit, in one run.

A part is a file with a function that gives figures (`figure.py`); `parts.py` lists them and runs
each in a process of its own. `kept.py` keeps accepted figures and compares, `page.py` writes
``docs/benchmarks.md``, `timing.py` measures.
"""
