"""Scoring a stream of pairs into a file."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from faircal._base.jobs import Progress, silent
from faircal.data.ahead import ahead
from faircal.methods import Method
from faircal.production.scoring.adding import Adding
from faircal.production.scoring.prior import Parts, Shift
from faircal.production.scoring.table import score_part
from faircal.production.scoring.work import Work


def score_stream(
    model: Method,
    stream: Parts,
    out: Path,
    *,
    keep: Sequence[str] = (),
    columns: Collection[str] | None = None,
    shift: Shift | None = None,
    adding: Adding | None = None,
    about: Mapping[str, Any],
    resume: bool = False,
    progress: Progress = silent,
) -> int:
    """Score all pairs of `stream` and write them to `out`; return how many there are.

    One thread reads, one scores, one writes. What is scored is kept in ``OUT.parts/`` by segments
    until all is done.

    Parameters
    ----------
    model : Method
    stream : PairStream or Cut
    out : Path
        Ends in ``.parquet`` or ``.csv``.
    keep : sequence of str
        Columns to carry over (`score_part`).
    columns : collection of str, optional
        What is read of the pairs (`PairStream.parts`).
    shift : Shift, optional
        Moves probabilities to another share of genuine pairs.
    adding : Adding, optional
        More columns.
    about : mapping
        Model, data and options, by name: what must be the same for a run to go on.
    resume : bool
        Go on where an earlier run stopped.
    progress : callable

    Raises
    ------
    KeyboardInterrupt
        Its text says whether ``--resume`` can go on.
    """
    work: Work | None = None
    try:
        with Work.start(out, about, resume) as work:
            scored = _scored(model, stream, keep, columns, shift, adding, work.pairs)
            with closing(ahead(scored, 1)) as tables:
                for table in tables:
                    work.write(table)
                    progress("scoring pairs", work.pairs, len(stream), "")
            return work.pairs
    except KeyboardInterrupt as error:
        kept = 0 if work is None else work.kept
        hint = f"{kept} pairs are kept, --resume goes on from there"
        raise KeyboardInterrupt(hint if kept else "nothing is written") from error


def _scored(
    model: Method,
    stream: Parts,
    keep: Sequence[str],
    columns: Collection[str] | None,
    shift: Shift | None,
    adding: Adding | None,
    start: int,
) -> Generator[pa.Table, None, None]:
    with closing(stream.parts(start, columns)) as parts:
        for part in parts:
            yield score_part(model, part, keep, shift, adding)
