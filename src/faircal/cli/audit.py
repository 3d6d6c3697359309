"""``faircal audit``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from faircal.cli import label_noise as noise
from faircal.cli.audit_run import (
    Measured,
    Wanted,
    measure_on_spark,
    measure_streamed,
    measure_whole,
)
from faircal.cli.engine import Engine, engine_options
from faircal.cli.help import Command, Part, option
from faircal.cli.options import (
    attribute_option,
    check_folder,
    features_option,
    fold_option,
    json_option,
    note,
    out_option,
    print_json,
    progress_bars,
    rates_option,
    resume_option,
)
from faircal.cli.running import PAIR_FILES, all_files_option
from faircal.cli.source import Source, check_checkpoint, reads_data, stream_option

#: In the output folder: what was counted so far of an audit that takes long.
PARTIAL = "audit.partial"


@click.command(
    cls=Command,
    examples={
        "A vendor's table of scores, at the threshold in use": "faircal audit scores.csv "
        "--attribute ethnicity --threshold 0.4 --out audit/",
        "A model, on the fold that it was not fitted on": "faircal audit faces/ "
        "--model faces.faircal --fold 5 --attribute ethnicity+gender --out audit/",
        "Scores from 0 to 100, at other global rates": "faircal audit scores.csv "
        "--score-range 0,100 --rates 0.0001,0.001 --out audit/",
        "What if 5 % of the labels of groups are wrong": "faircal audit scores.csv "
        "--attribute ethnicity --label-noise 0.05 --out audit/",
        "Many pairs, on a Spark cluster": "faircal audit scored/ --attribute ethnicity "
        "--out audit/ --engine spark --master spark://host:7077",
    },
    tables={
        "Files": {
            **PAIR_FILES,
            "audit.json": "For machines: rates, intervals, what differs between groups.",
            "matrix.csv": "FPR of every two groups.",
            "label_noise.csv": "With --label-noise: how far figures move.",
            "audit.partial": "Counts so far of a long audit; removed at the end.",
        },
    },
    see=(
        "score",
        "threshold",
        "regions",
        "compare",
        "report",
        "tutorials/audit",
        "explanation/report",
        "how-to/label-noise",
        "how-to/big-data",
        "how-to/spark",
    ),
)
@reads_data
@attribute_option
@out_option
@option(
    "--model",
    part=Part.MEASURE,
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="the scores of DATA",
    help="Model file to score the pairs with first; people must not be those it was fitted on.",
)
@option(
    "--threshold",
    part=Part.MEASURE,
    type=float,
    show_default="global rates alone",
    help="Threshold in use, on the scores: error rates of 'score >= threshold' are counted there.",
)
@rates_option
@features_option
@fold_option
@noise.label_noise_option
@stream_option
@engine_options
@resume_option
@all_files_option
@json_option
def command(
    source: Source,
    attribute: str | None,
    out: Path,
    model: Path | None,
    threshold: float | None,
    rates: tuple[float, ...],
    features: tuple[str, ...],
    fold: str | None,
    label_noise: float | None,
    stream: bool,
    engine: Engine,
    resume: bool,
    all_files: bool,
    as_json: bool,
) -> None:
    """Measure scores by group.

    Reads a table of scores, anybody's, or a dataset folder, whose pairs a model may score first.
    Error rates, AUROC and calibration are measured of all pairs and of every group, and how unequal
    groups are. A table may carry a column probability beside its scores; it is then measured too.

    Intervals know that pairs share people where the data names them (identity, or left_identity and
    right_identity); else they take pairs as independent, and that is said.

    Prints the error rates of groups, and writes a report: report.html for people, audit.json for
    machines, and the raw numbers behind them. Open report.html next. 'faircal compare' tells two
    audits apart.

    Without enough data that is said instead of a number: under 100 pairs, at a global rate r under
    3 / r; and, where people are known, under 20 effective people (25 at an FPR of 1 %, 78 at
    0.1 %). The raw numbers leave nothing out.

    Labels of groups may be wrong: --label-noise 0.05 draws 5 % of them anew, 200 times, and shows
    how far error rates and gaps move (label_noise.csv), and what they would be if as many labels
    are wrong already.

    Of many pairs only counts in fine bins are kept: memory grows with the number of people, not
    with that of pairs. How far numbers can then be from the exact ones is said with them. The
    counts so far are in OUT/audit.partial: an interrupted audit goes on with --resume.

    With --engine spark the pairs are counted by Spark's workers: the same counts, and the same
    files (see the guide 'On a Spark cluster' in the documentation). DATA may also be a folder of
    Parquet files, as 'faircal score --engine spark' writes one.
    """
    from faircal._base.files import file_digest
    from faircal.methods import load_method
    from faircal.report import ResultsFolder, write_all
    from faircal.report.machine import audit_record

    started = time.perf_counter()
    engine.check(source, resume=resume, label_noise=label_noise)
    check_folder(out)
    check_checkpoint(out / PARTIAL, resume, "an audit")
    fitted = None if model is None else load_method(model)
    about = {
        "features": list(features),
        "fold": fold,
        "score_range": source.score_range,
        "normalize": not source.raw,
        "device": source.device,
        "model": model,
        "model_sha256": None if model is None else file_digest(model),
    }
    wanted = Wanted(source, fitted, attribute, features, fold, threshold, rates, about, label_noise)
    measured = _measured(wanted, engine, out / PARTIAL, stream or resume, resume)
    _write(out, measured, wanted, round(time.perf_counter() - started, 3))
    (out / PARTIAL).unlink(missing_ok=True)
    store = ResultsFolder.read(out)
    with progress_bars() as update:
        report = write_all(store, all_files=all_files, progress=update)
    paths = {name: str(path) for name, path in report.paths.items()}
    for text in (*measured.notes, *filter(None, [report.missing])):
        note(f"note: {text}")
    note(f"intervals: {measured.audits[0].interval_kind}")
    if as_json:
        rows = [row._asdict() for each in measured.audits for row in each.intervals()]
        where = {"report": paths["report"], "files": paths}
        wrong = noise.record(measured.label_noise)
        print_json({**where, **audit_record(store), "audit": rows, **wrong})
    else:
        from faircal.cli.audit_table import show

        show(store)
        noise.show(measured.label_noise)
        for name, path in paths.items():
            click.echo(f"{name}: {path}")


def _measured(
    wanted: Wanted, engine: Engine, partial: Path, stream: bool, resume: bool
) -> Measured:
    if engine.is_spark:
        return measure_on_spark(wanted, engine)
    streamed = stream or wanted.source.is_long()
    noise.check_in_memory(wanted.label_noise, streamed)
    return measure_streamed(wanted, partial, resume) if streamed else measure_whole(wanted)


def _write(out: Path, measured: Measured, wanted: Wanted, wall_time: float) -> None:
    from faircal._base.files import output_folder
    from faircal.evaluation.audit.matrix import write_matrix
    from faircal.evaluation.curves import CURVES, as_table, write_curves
    from faircal.metrics.results import (
        REPLICATES,
        versions,
        without_nan,
        write_clusters,
        write_intervals,
        write_replicates,
        write_results,
        write_run,
    )

    audits, about = measured.audits, measured.about
    folder = output_folder(out)
    write_clusters(folder, [])  # of a benchmark that was here before
    write_results(folder, [row for audit in audits for row in audit.rows])
    write_intervals(folder, [row for audit in audits for row in audit.intervals()])
    write_curves(folder / CURVES, as_table(curve for audit in audits for curve in audit.curves))
    write_replicates(folder / REPLICATES, [row for audit in audits for row in audit.replicates()])
    write_matrix(folder, measured.matrix)
    noise.write(folder, measured.label_noise)
    settings = {
        "attribute": audits[0].attribute or None,
        **wanted.about,
        "features": [found.feature for found in audits],
        "threshold": wanted.threshold,
        "rates": list(wanted.rates),
        "label_noise": wanted.label_noise,
    }
    write_run(
        folder,
        {
            "kind": "audit",
            "dataset": about.name,
            "simulated": bool(about.provenance.get("simulated", False)),
            "groups": measured.shares,
            "people": audits[0].people,
            "effective_people": audits[0].effective_people(),
            "effective_people_genuine": audits[0].effective_people("fnr"),
            "attributes": list(measured.shares),
            "interval_kind": audits[0].interval_kind,
            "settings": settings,
            "notes": measured.notes,
            **without_nan(measured.data),
            "wall_time_s": wall_time,
            "versions": versions(),
        },
    )
