"""The study of uncertainty: whether intervals cover, and promises hold.

`parts.py` lists the parts; each is one file with its cells (numbers in, numbers out, a seed) and
one with its section of the page. `running.py` runs cells in processes and keeps their rows in
``studies/uncertainty.jsonl``; `page.py` writes ``docs/study-uncertainty.md`` from that file alone.
For coverage, `populations.py` draws people and scores whose `laws.py` are known, `design.py` says
who is paired with whom, and `pairwise.py` has the textbook intervals beside ours.
Promises are judged a second time, apart from these (`judged.py`): of `real_people.py`, drawn from
real sets, and of `newcomers.py`.
"""
