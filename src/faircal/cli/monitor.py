"""``faircal monitor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from faircal.cli.help import Command, Part, argument, option
from faircal.cli.options import (
    check_file,
    check_folder,
    feature_option,
    json_option,
    note,
    print_json,
    printable,
    progress_bars,
    working,
)

if TYPE_CHECKING:
    from faircal.cli.monitor_read import Folder, Scored
    from faircal.cli.monitor_state import Kept
    from faircal.methods import Method

#: Unless told, and unless a state says otherwise.
_FALSE_ALARMS = 0.01


@click.command(
    cls=Command,
    examples={
        "A file that was scored, once": "faircal monitor faces.faircal today.parquet",
        "Every night, with a report": "faircal monitor faces.faircal today.parquet "
        "--state faces.watch --out watch/",
        "Decisions that the service exported": "faircal monitor faces.faircal decisions.csv "
        "--state faces.watch",
        "Some days in the order of time, for machines": "faircal monitor faces.faircal "
        "monday.parquet tuesday.parquet --json",
    },
    tables={
        "What is watched": {
            "clusters": "The share of images in each cluster.",
            "scores": "How scores are spread.",
            "outside": "The share of images outside of the calibration population.",
            "calibration": "Whether probabilities mean what they say, where a column genuine has "
            "labels.",
        },
        "Files": {
            "DIR/report.html": "What changed, and since when.",
            "DIR/monitor.json": "The same for machines.",
            "DIR/monitor.csv": "The numbers, a row for each.",
            "--state FILE": "Counts between calls, and which files were seen; nobody's data.",
        },
    },
    exits={
        0: "All is quiet, or there is not enough data yet.",
        1: "Recalibration is due: an alarm was raised.",
        2: "Something can't be read, or wrong usage; one line on standard error says what.",
    },
    see=("score", "serve", "fit", "threshold", "how-to/monitoring"),
)
@argument(
    "model", type=click.Path(path_type=Path), help="Model file that the pairs were scored with."
)
@argument(
    "scores",
    type=click.Path(path_type=Path),
    nargs=-1,
    required=True,
    help="One or more, in the order of time: files that 'faircal score' wrote, exports of the "
    "service's decisions, or dataset folders, which are scored on the way.",
)
@option(
    "--state",
    part=Part.MONITORING,
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="each call begins anew",
    help="File that keeps counts between calls: each adds what is new.",
)
@option(
    "--false-alarms",
    part=Part.MONITORING,
    type=click.FloatRange(0, 0.5, min_open=True),
    metavar="SHARE",
    show_default=str(_FALSE_ALARMS),
    help="Chance that all tests together ever raise an alarm while nothing changes.",
)
@option(
    "--ordered",
    part=Part.MONITORING,
    is_flag=True,
    help="Pairs within each file are in the order of time, too. Without it they are taken in "
    "random order, unless they have a column at.",
)
@option(
    "--prior",
    part=Part.PRIOR,
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    show_default="that of the fit",
    help="Share of genuine pairs that the files were scored for with --prior.",
)
@feature_option
@option(
    "--out",
    part=Part.OUTPUT,
    type=click.Path(path_type=Path),
    metavar="DIR",
    show_default="no report",
    help="Folder to write a report to.",
)
@json_option
def command(
    model: Path,
    scores: tuple[Path, ...],
    out: Path | None,
    false_alarms: float | None,
    state: Path | None,
    prior: float | None,
    ordered: bool,
    feature: str | None,
    as_json: bool,
) -> int:
    """Tell whether pairs in use still are what a model was calibrated for.

    Reads MODEL, which says what its calibration population was like, and pairs in use, and compares
    the two. Score with --add clusters,outside to have clusters watched, and with --keep genuine
    where labels are known.

    Prints what was found; the exit code tells a job. At an alarm, look at what it is of: a camera,
    a detector, other people, another share of genuine pairs. Then collect labelled pairs of those
    who come now, and run 'faircal fit' and 'faircal threshold' on them.

    With --state a nightly job adds the day's file to what was seen before, and false alarms stay at
    the rate that was set, however long it runs.
    """
    from faircal.cli.monitor_read import open_all
    from faircal.cli.monitor_table import show
    from faircal.production.monitoring.report import Monitored, write_monitoring
    from faircal.production.scoring import Shift, fitted_share

    _check(scores, model, out, state)
    fitted, kept = _begin(model, state, false_alarms)
    shift = None if prior is None else Shift(fitted_share(fitted), prior)
    empty = [path for path in scores if _is_header_only(path)]  # a night without decisions
    scores = tuple(path for path in scores if path not in empty)
    with working("opening"):
        sources = open_all(scores, fitted, kept.population, feature, shift, kept.model_sha256)
    _check_new(sources, kept)
    if state is None and len(sources) == 1 and not (ordered or sources[0].timed):
        kept.look_once(fitted)  # nothing comes before or after: all of it at once is surest
    counted = _count(sources, kept, ordered)
    verdict = kept.watch.verdict()
    notes = [f"{path}: there are no pairs in it" for path in empty]
    notes += [text for source in sources for text in source.notes]
    notes += sorted(
        {found.details["caveat"] for found in verdict.findings if found.details.get("caveat")}
    )
    provenance = fitted.about_.provenance
    found = Monitored(
        verdict=verdict,
        population=kept.population,
        timeline=kept.timeline,
        model={
            "name": model.name,
            "method": fitted.title,
            "sha256": kept.model_sha256,
            "data": provenance.data if provenance else "",
            "simulated": bool(provenance and provenance.simulated),
        },
        false_alarms=kept.false_alarms,
        sources=counted,
        notes=notes,
    )
    paths = {} if out is None else write_monitoring(out, found)
    if state is not None:  # the last, so that a call that failed can be made again
        kept.save(state)
    for text in notes:
        note(f"note: {printable(text)}")
    if as_json:
        print_json({**found.as_json(), "files": {key: str(path) for key, path in paths.items()}})
    else:
        show(found)
        for name, path in paths.items():
            click.echo(f"{name}: {path}")
    return int(found.verdict.due)


def _check(scores: tuple[Path, ...], model: Path, out: Path | None, state: Path | None) -> None:
    """Raise where something can't be written, or would overwrite what is read."""
    from faircal._base.errors import ParameterError

    if out is not None:
        check_folder(out)
    if state is not None:
        check_file(state)
        if state.resolve() in {path.resolve() for path in (model, *scores)}:
            raise ParameterError(f"--state {state}: is read by this command; choose another path")
    if len({path.resolve() for path in scores}) < len(scores):
        raise ParameterError("SCORES: a file is given twice; give each once")


def _is_header_only(path: Path) -> bool:
    """Say whether a file is a CSV table with names of columns and no row."""
    if path.suffix != ".csv" or not path.is_file():
        return False
    with path.open("rb") as file:
        return b"probability" in file.readline(1 << 16) and not file.readline(1 << 16).strip()


def _begin(path: Path, state: Path | None, false_alarms: float | None) -> tuple[Method, Kept]:
    """Read the model, and begin to watch it, or go on from a state."""
    from faircal._base.errors import DataError
    from faircal._base.files import file_digest
    from faircal.cli.monitor_state import Kept
    from faircal.methods import load_method

    fitted = load_method(path)
    population = fitted.about_.population
    if population is None or not population.watchable:
        raise DataError(
            f"{path}: does not say what its calibration population was like, as models of earlier "
            "versions don't; fit it again ('faircal fit'; in Python call faircal.describe before "
            "save)"
        )
    digest = file_digest(path)
    if state is not None and state.exists():
        return fitted, Kept.load(state, fitted, population, digest, false_alarms)
    rate = _FALSE_ALARMS if false_alarms is None else false_alarms
    return fitted, Kept.begin(fitted, population, digest, rate)


def _check_new(sources: list[Scored | Folder], kept: Kept) -> None:
    """Raise where something was counted before."""
    from faircal._base.errors import DataError

    with working("looking for what was counted before"):
        for source in sources:
            digest = source.digest
            if digest in kept.files:
                raise DataError(
                    f"{source.path}: was counted before, in this call or in an earlier one with "
                    "the same --state; leave it out"
                )
            kept.files.append(digest)


def _count(sources: list[Scored | Folder], kept: Kept, ordered: bool) -> dict[str, int]:
    """Go through all pairs; return how many there were, by path."""
    from faircal.cli.monitor_order import in_random_order

    counted: dict[str, int] = {}
    total, done = sum(map(len, sources)), 0
    with progress_bars() as update:
        for source in sources:
            counted[str(source.path)] = 0
            timed = ordered or source.timed
            chunks = source.chunks()
            if not timed:
                update("reading", 0, 1, source.name)
                chunks = in_random_order(chunks, len(source))
            for number, chunk in enumerate(chunks):
                update("reading", 0, 0, "")
                kept.add(chunk, source.name, joins=bool(number) and not timed)
                counted[str(source.path)] += len(chunk.labelled)
                done += len(chunk.labelled)
                update("counting", done, total, source.name)
        update("counting", 0, 0, "")
    return counted
