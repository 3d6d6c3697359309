"""What other libraries do: each statement of docs/explanation/comparison.md has a check.

``claims/*.toml`` hold the statements as data, one file a library; `claims.py` reads them.
`asking.py` has them checked in the library's own interpreter, where `inside.py` runs with nothing
but the standard library and, where a statement is about what code does, the functions in
``probes/``. `measuring.py` compares numbers. What came out is in ``results.jsonl``, what was
installed there in ``environments/``; `page.py` and `figures.py` write the page's generated parts
from ``results.jsonl`` alone.
"""
