"""Scored pairs: a part as a table, and parts on their way to a file, kept to go on from.

``OUT.parts/`` beside the file OUT holds the pairs scored so far as Parquet parts, and ``run.json``,
which says what the run is about. A part appears when it is whole, so the parts that are there are
where a run goes on. In the end they are put together to one file, which is moved to OUT; until
then nothing is there.
"""

from __future__ import annotations

import errno
import json
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import atomic_path, output_folder, write_text
from faircal._base.jobs import Progress, silent
from faircal._base.registry import did_you_mean, short
from faircal.data import Dataset, PairParts
from faircal.data.columns import Column
from faircal.data.stream import ahead
from faircal.data.tables import decoded
from faircal.methods import Method, Output
from faircal.methods.prior import Float64, Shift, fitted_share
from faircal.metrics import EvidenceBounds, log_likelihood_ratio
from faircal.model import OperatingPoint, Places
from faircal.production.scoring.judging import Placing

_SIDES = ("left", "right")
#: Who is in an image; kept where the data tells: without it, intervals of an audit are too narrow.
IDENTITY = "identity"
#: Whether evidence is at least as strong as is said; beside likelihood ratios and another share.
AT_BOUND = "at_bound"
#: What can be added, and the columns that it comes to.
COLUMNS = {
    "log_likelihood_ratio": ("log_likelihood_ratio",),
    "similarity": ("similarity",),
    "clusters": ("left_cluster", "right_cluster"),
    "outside": ("left_outside", "right_outside"),
    "decision": ("decision",),
}
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: The file that parts are put together in.
_JOINED = "joined"
_OURS = re.compile(r"\.?(run\.json|run\.lock|part-\d{6}\.parquet|joined)(\..*)?")


@dataclass(frozen=True, eq=False)
class Adding:
    """What to say of pairs besides score and probability.

    Build it with `of`, which checks that the model can.

    Parameters
    ----------
    names : tuple of str
        Of `COLUMNS`.
    share : float
        Of genuine pairs, that the model was fitted at; NaN where nobody needs it.
    bounds : EvidenceBounds, optional
    placing : Placing, optional
    point : OperatingPoint, optional
    """

    names: tuple[str, ...]
    share: float
    bounds: EvidenceBounds | None
    placing: Placing | None
    point: OperatingPoint | None

    @classmethod
    def of(cls, model: Method, names: Sequence[str]) -> Adding:
        """Return what adds the columns of `names`.

        Raises
        ------
        ParameterError
            Where a name is unknown, or the model does not hold what it takes.
        """
        for name in names:
            if name not in COLUMNS:
                raise ParameterError(
                    f"--add {name}: no such column; {did_you_mean(name, list(COLUMNS))}"
                )
        placed = [name for name in names if name in ("clusters", "outside")]
        placing = Placing.of_model(model) if placed else None
        if placed and placing is None:
            raise ParameterError(
                f"--add {placed[0]}: the model says nothing of the images it was fitted on; "
                "fit it again, on embeddings"
            )
        point = model.about_.operating_point
        if "decision" in names and point is None:
            raise ParameterError(
                "--add decision: the model has no operating point; "
                "give it one with 'faircal threshold MODEL DATA --fpr RATE --out MODEL'"
            )
        share = float("nan")
        if "log_likelihood_ratio" in names:
            share = fitted_share(model, "--add log_likelihood_ratio")
        return cls(tuple(dict.fromkeys(names)), share, model.about_.evidence, placing, point)

    def places(self, part: Dataset) -> Places | None:
        """Say where the images of `part` lie, if asked to; the model is given their clusters."""
        if self.placing is None:
            return None
        if part.embeddings is None:
            raise DataError(
                f"{part.where}: has no embeddings, so nothing tells where images lie; "
                "leave clusters and outside out of --add"
            )
        return self.placing(part.embeddings, part.used_images())

    def columns(
        self, part: Dataset, output: Output, probabilities: Float64, places: Places | None
    ) -> dict[str, Any]:
        """Return the columns, a value a pair, in the order they were asked for.

        `probabilities` are for the share of genuine pairs that is wanted.
        """
        columns: dict[str, Any] = {}
        for name in self.names:
            if name == "decision" and self.point is not None:
                columns[name] = self.point.decide(output.score, probabilities).astype(np.int8)
            elif name == "log_likelihood_ratio":
                columns[name] = log_likelihood_ratio(
                    output.probability, calibrated_at=self.share, bounds=self.bounds
                )
            elif name == "similarity":
                columns[name] = part.scores
            elif places is not None:
                values = places.cluster if name == "clusters" else places.outside.astype(np.int8)
                for column, side in zip(COLUMNS[name], _SIDES, strict=True):
                    columns[column] = values[getattr(part.pairs, side)]
        return columns


def score_part(
    model: Method,
    part: Dataset,
    keep: Sequence[str] = (),
    shift: Shift | None = None,
    adding: Adding | None = None,
    notes: list[str] | None = None,
) -> pa.Table:
    """Return what `model` says of each pair: ``left``, ``right``, ``score``, ``probability``.

    Parameters
    ----------
    model : Method
    part : Dataset
    keep : sequence of str
        What to carry over: ``genuine``, ``fold``, and attributes (as ``left_NAME`` and
        ``right_NAME``). ``identity`` is in any case, where it is known.
    shift : Shift, optional
        Moves probabilities to another share of genuine pairs; scores stay.
    adding : Adding, optional
        More columns, after these two.
    notes : list of str, optional
        Takes what the model remarks on pairs and images such as these.
    """
    places = None if adding is None else adding.places(part)  # before the model looks for them
    output = model.apply(part)
    if notes is not None:
        notes.extend(model.remarks(part, output))
    ids = part.images.ids
    columns: dict[str, Any]
    if part.has_images:
        columns = {side: ids.take(pa.array(getattr(part.pairs, side))) for side in _SIDES}
    else:
        # A score table has no image ids: its row numbers, counted from 1, say which pair it is.
        columns = dict.fromkeys(_SIDES, np.asarray(ids)[part.pairs.left] + 1)
    probability = output.probability if shift is None else shift(output.probability)
    columns |= {"score": output.score, "probability": probability}
    if adding is not None:
        columns |= adding.columns(part, output, probability, places)
    columns |= _evidence(model, output, shift, "log_likelihood_ratio" in columns)
    if "genuine" in keep:
        columns["genuine"] = part.genuine.astype(np.int8)
    if "fold" in keep:
        columns["fold"] = pa.array(part.pairs.fold)
    known = part.images.identity is not None and IDENTITY not in keep
    for name in (*keep, IDENTITY) if known else keep:
        if name in ("genuine", "fold"):
            continue
        column = part.images.identity if name == IDENTITY else part.images.attributes[name]
        if column is None:
            raise DataError(f"{part.where}: --keep identity: the data does not tell who is in it")
        for side in _SIDES:
            codes = column.take(getattr(part.pairs, side))
            columns[f"{side}_{name}"] = decoded(Column(codes, column.names))
    return pa.table(columns)


def _evidence(model: Method, output: Output, shift: Shift | None, asked: bool) -> dict[str, Any]:
    """Return the share that probabilities are for, and where evidence is at a bound of the model.

    The latter where likelihood ratios are `asked` for, too.
    """
    bounds = model.about_.evidence
    columns: dict[str, Any] = {}
    if shift is not None:
        columns["prior"] = np.full(len(output.score), shift.prior)
    if bounds is not None and (asked or shift is not None):
        ratio = log_likelihood_ratio(output.probability, calibrated_at=fitted_share(model))
        columns[AT_BOUND] = bounds.reached(ratio).astype(np.int8)
    return columns


def needed_columns(model: Method, keep: Sequence[str], attributes: Collection[str]) -> set[str]:
    """Return what must be read of a score table besides its scores to score and keep columns.

    Labels and folds are read in any case: they are checked on the way. People are kept.
    """
    groups = attributes if model.needs.groups_to_apply else ()
    return {"genuine", "fold", "probability", IDENTITY, *keep, *groups}


@dataclass
class ScoredOutput:
    """The scored pairs of one run; `ScoredOutput.start` gives it to a ``with`` block.

    Attributes
    ----------
    out, folder : Path
        The file, and the folder of its parts.
    parts : list of Path
    pairs : int
        How many are written: ``--resume`` goes on from there.
    """

    out: Path
    folder: Path
    parts: list[Path] = field(default_factory=list)
    pairs: int = 0

    @classmethod
    @contextmanager
    def start(cls, out: Path, about: Mapping[str, Any], resume: bool) -> Iterator[ScoredOutput]:
        """Begin, or go on where `resume`; `about` says what must be the same to go on.

        When the block ends well OUT is there. When it raises, whole parts are kept, unless the
        data is at fault: it must change, and then they are worth nothing.
        """
        output = cls(out, out.with_name(f"{out.name}.parts"))
        folder = output.folder
        if resume and not folder.exists():
            raise ParameterError(
                f"--resume: there is no {folder} to go on from; leave --resume out"
            )
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        others = [name for name in names if not _OURS.fullmatch(name)]
        if others:
            raise ParameterError(f"{folder}: holds {others[0]}, which is not ours; move it away")
        try:
            output_folder(folder)
            with _locked(folder / "run.lock", out):
                output.parts = _parts_to_go_on_from(folder, about, resume)
                output.pairs = sum(map(rows_of, output.parts))
                try:
                    write_text(folder / "run.json", json.dumps({"about": dict(about)}, indent=2))
                    yield output
                    joined = folder / _JOINED
                    if out.suffix == ".parquet" and len(output.parts) == 1:
                        joined = output.parts[0]  # most runs: nothing is written twice
                    else:
                        join_parts(output.parts, joined, out.suffix)
                    joined.chmod(0o644)
                    joined.replace(out)
                except BaseException as error:
                    (folder / _JOINED).unlink(missing_ok=True)
                    # What is wrong with the data must be changed there, and then nothing kept is
                    # worth it.
                    at_fault = isinstance(error, DataError)
                    if (at_fault and not isinstance(error.__cause__, OSError)) or not output.pairs:
                        output.pairs = 0
                        shutil.rmtree(folder, ignore_errors=True)
                    raise
            shutil.rmtree(folder)
        except OSError as error:  # a disk that is full, say
            why = error.strerror or short(error)
            more = ", then go on with --resume" if output.pairs else ""
            remedy = "make room for it" if error.errno in _NO_ROOM else "choose another path"
            raise ParameterError(f"cannot write {out}: {why}; {remedy}{more}") from error

    def write(self, table: pa.Table) -> None:
        """Append scored pairs: they are a part of their own, which appears when it is whole."""
        path = self.folder / f"part-{len(self.parts):06d}.parquet"
        # Python's own file: its errors say what is wrong, such as a disk that is full.
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            pq.write_table(table, file, row_group_size=ROW_GROUP, **parquet_options(table.schema))
        self.parts.append(path)
        self.pairs += len(table)


def _parts_to_go_on_from(folder: Path, about: Mapping[str, Any], resume: bool) -> list[Path]:
    """Return the parts up to the first that is missing or damaged.

    Raises
    ------
    ParameterError
        Where there are some, and they are not those of the run that is asked for.
    """
    parts: list[Path] = []
    for number, path in enumerate(sorted(folder.glob("part-*.parquet"))):
        try:
            complete = path.name == f"part-{number:06d}.parquet" and rows_of(path) > 0
        except (OSError, pa.ArrowException):
            complete = False
        if not complete:
            break
        parts.append(path)
    if not parts:
        return []
    try:
        earlier = dict(json.loads((folder / "run.json").read_text("utf-8"))["about"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ParameterError(
            f"{folder}: cannot be read ({short(error)}); delete it to begin anew"
        ) from error
    if not resume:
        raise ParameterError(
            f"{folder} is there from a run that was interrupted; go on with --resume, or delete it"
        )
    for what, value in about.items():
        # As JSON has it: what were tuples are lists.
        if earlier.get(what) != json.loads(json.dumps(value)):
            raise ParameterError(
                f"--resume: {what} differs from that of the run in {folder}; "
                "give the same again, or delete the folder to begin anew"
            )
    return parts


@contextmanager
def _locked(path: Path, out: Path) -> Iterator[None]:
    """Hold a lock on a file; one that another run holds is an error."""
    with path.open("ab") as file:
        try:
            import fcntl
        except ImportError:  # not on Windows
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ParameterError(
                f"{out}: another run is writing it; wait for it to end or choose another path"
            ) from None
        yield


def score_stream(
    model: Method,
    stream: PairParts,
    out: Path,
    *,
    keep: Sequence[str] = (),
    columns: Collection[str] | None = None,
    shift: Shift | None = None,
    adding: Adding | None = None,
    about: Mapping[str, Any],
    resume: bool = False,
    progress: Progress = silent,
    notes: list[str] | None = None,
) -> int:
    """Score all pairs of `stream` and write them to `out`; return how many there are.

    One thread reads, one scores, one writes. What is scored is kept in ``OUT.parts/`` until all is
    done.

    Parameters
    ----------
    model : Method
    stream : Dataset or PairStream
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
    notes : list of str, optional
        Takes what the model remarks on the first part that is scored.

    Raises
    ------
    KeyboardInterrupt
        Its text says whether ``--resume`` can go on.
    """
    output: ScoredOutput | None = None
    try:
        with (
            ScoredOutput.start(out, about, resume) as output,
            closing(stream.parts(output.pairs, columns)) as parts,
        ):
            scored = (
                score_part(model, part, keep, shift, adding, None if number else notes)
                for number, part in enumerate(parts)
            )
            with closing(ahead(scored, 1)) as tables:
                for table in tables:
                    output.write(table)
                    progress("scoring pairs", output.pairs, len(stream), "")
            return output.pairs
    except KeyboardInterrupt as error:
        kept = 0 if output is None else output.pairs
        hint = f"{kept} pairs are kept, --resume goes on from there"
        raise KeyboardInterrupt(hint if kept else "nothing is written") from error


#: Rows of a row group.
ROW_GROUP = 1 << 20


def rows_of(part: Path) -> int:
    """Return how many rows a Parquet file has."""
    count: int = pq.read_metadata(part).num_rows
    return count


def join_parts(parts: Sequence[Path], path: Path, suffix: str) -> None:
    """Write the rows of Parquet files, in order, to one file: Parquet or CSV, as `suffix` says.

    A row group at a time, so that no more than one is in memory. Row groups are encoded again:
    Arrow has no way to copy their bytes, and doing that by hand takes a Thrift parser.
    """
    schema = pq.read_schema(parts[0])
    with path.open("wb") as file:
        csv = suffix == ".csv"
        options = {} if csv else parquet_options(schema)
        with (pacsv.CSVWriter if csv else pq.ParquetWriter)(file, schema, **options) as writer:
            for part in parts:
                with pq.ParquetFile(part) as source:
                    for number in range(source.num_row_groups):
                        writer.write_table(source.read_row_group(number))


def parquet_options(schema: pa.Schema) -> dict[str, Any]:
    """Return how scored pairs are written as Parquet.

    Measured on a million pairs: whole numbers packed by difference are as small as with Snappy in
    half the time, scores do not shrink, and a dictionary of ids costs more than it saves.
    """
    ids = {"left", "right"}
    integers = [c.name for c in schema if c.name in ids and pa.types.is_integer(c.type)]
    few = [c.name for c in schema if c.name not in ids and not pa.types.is_floating(c.type)]
    packed = [c.name for c in schema if pa.types.is_floating(c.type)] + integers
    return {
        "compression": {c.name: "none" if c.name in packed else "snappy" for c in schema},
        "use_dictionary": few or False,
        "column_encoding": dict.fromkeys(integers, "DELTA_BINARY_PACKED") or None,
    }
