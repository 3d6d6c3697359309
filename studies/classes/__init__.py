"""The study of classifiers: FairCalClassifier on groups that it never sees.

`tables.py` and `made.py` make the sets (real tables; digits and simulations), `prepare.py` trains
the base classifiers and leaves one ``.npz`` a set and classifier; these are not kept in the
project. `cell.py` calibrates and measures one split of one of them, `measures.py` is what is
measured, `running.py` runs cells in processes and keeps their numbers in ``studies/classes.jsonl``;
`tally.py` puts splits together, `page.py` writes ``docs/study-classes.md`` from that file alone.
"""
