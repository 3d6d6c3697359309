"""``faircal audit``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli import options
from faircal.cli.help import Command, Part
from faircal.cli.printing import (
    NONE,
    note,
    notes,
    number,
    percent,
    print_json,
    print_table,
    printable,
    progress_bars,
)

if TYPE_CHECKING:
    from faircal.data import PairFiles
    from faircal.evaluation.audit.label_noise import LabelNoise, LabelNoiseRow
    from faircal.report.store import ResultsFolder, VariantResults


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
            **options.PAIR_FILES,
            "audit.json": "For machines: rates, intervals, what differs between groups.",
            "matrix.csv": "FPR of every two groups.",
            "label_noise.csv": "With --label-noise: how far figures move.",
            "audit.partial": "What a long audit has collected so far; removed at the end.",
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
@options.reads_data(engine=True)
@options.attribute
@options.out
@Part.MEASURE.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="the scores of DATA",
    help="Model file to score the pairs with first; people must not be those it was fitted on.",
)
@Part.MEASURE.option(
    "--threshold",
    type=float,
    show_default="global rates alone",
    help="Threshold in use, on the scores: error rates of 'score >= threshold' are counted there.",
)
@options.rates
@options.features
@options.fold
@options.imposters_from
@Part.MEASURE.option(
    "--label-noise",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    show_default="labels are taken as right",
    help="Show how far groups' figures move when this share of the labels of groups is wrong, such "
    "as 0.05.",
)
@options.stream
@options.resume
@options.all_files
@options.as_json
def command(source: PairFiles, out: Path, as_json: bool, **how: Any) -> None:
    """Measure scores by group.

    Reads a table of scores, anybody's, or a dataset folder, whose pairs a model may score first.
    Error rates, AUROC and calibration are measured of all pairs and of every group, and how unequal
    groups are. A table may carry a column probability beside its scores; it is then measured too.

    Intervals know that pairs share people where the data names them (identity, or left_identity and
    right_identity); else they take pairs as independent, and that is said.

    At a global rate the threshold is the lowest at which at most so many strangers pass (of an FNR:
    the highest). Errors are counted, and --threshold with a threshold that was printed counts the
    same ones.

    Prints the error rates of groups, and writes a report: report.html for people, audit.json for
    machines, and the raw numbers behind them. Open report.html next. 'faircal compare' tells two
    audits apart.

    Without enough data that is said instead of a number: under 100 pairs, at a global rate r under
    3 / r; and, where people are known, under 20 effective people (25 at an FPR of 1 %, 78 at
    0.1 %). The raw numbers leave nothing out.

    With --imposters-from genuine pairs are those of DATA, and imposters are strangers of the same
    group in a cohort: false-positive rates of every group of the cohort, though nobody in DATA has
    a group. Strangers of DATA tell whether both were photographed alike, and that is said.

    Labels of groups may be wrong: --label-noise 0.05 draws 5 % of them anew, 200 times, and shows
    how far error rates and gaps move (label_noise.csv), and what they would be if as many labels
    are wrong already.

    With --stream pairs are read part by part: the same numbers up to two million pairs. Of more
    only counts in fine bins are kept, and intervals take pairs as independent. What was collected
    so far is in OUT/audit.partial: an interrupted audit goes on with --resume.

    With --engine spark workers go through the pairs: the same numbers, and the same files (see the
    guide 'On a Spark cluster' in the documentation). DATA may also be a folder of
    Parquet files, as 'faircal score --engine spark' writes one.
    """
    from faircal.report.machine import audit_record
    from faircal.workflows.audit import audit_folder

    with progress_bars() as update:
        result, report = audit_folder(source, out, **how, progress=update)
    notes([*result.notes, *filter(None, [report.missing])])
    note(f"intervals: {result.audits[0].interval_kind}")
    noise = [row._asdict() for each in result.label_noise for row in each.rows]
    paths = {name: path for name, path in report.paths.items() if name != "results"}
    if as_json:
        rows = [row._asdict() for each in result.audits for row in each.rows]
        record = {"report": paths["report"], "files": paths, **audit_record(report.store)}
        print_json({**record, "audit": rows, **({"label_noise": noise} if noise else {})})
        return
    _show(report.store)
    for each in result.label_noise:
        _show_noise(each)
    for name, path in paths.items():
        click.echo(f"{name}: {path}")


def _show(store: ResultsFolder) -> None:
    """Print the error rates of each feature, and then what they say in words."""
    from faircal.report.store import VariantResults, main_condition
    from faircal.report.words import summary

    results = store.results
    attribute, variant = results.attributes[0], results.variants[0]
    condition = main_condition(results, attribute)
    for feature in results.features:
        if condition is not None:
            _show_rates(VariantResults(store, attribute, feature, variant), condition)
    for words in summary(store, attribute).who:
        click.echo(printable(words))


def _show_rates(measured: VariantResults, condition: str) -> None:
    """Print error rates and headline metrics of all pairs and of each group with enough data."""
    from faircal.metrics import METRICS
    from faircal.metrics.intervals.sufficient_data import NOT_ENOUGH, PeopleByGroup
    from faircal.metrics.results import GLOBAL
    from faircal.report.store import pair_counts
    from faircal.report.wording import exact, rate_text

    store, attribute = measured.store, measured.attribute
    threshold = measured.result("threshold", condition=condition).value
    at = f"threshold {exact(threshold)}"
    if math.isnan(threshold):
        at = "no threshold"
    elif condition:
        at += f" (global FPR at most {rate_text(condition)})"
    metrics = {"FPR": ("fpr", condition), "FNR": ("fnr", condition)}
    for metric in METRICS.values():
        if metric.headline and measured.result(metric.name).key in store.results.by_key:
            metrics[metric.title] = metric.name, ""
    people = PeopleByGroup.of(store.run, attribute)
    count, effective = people.people, people.effective["fpr"]
    pairs = pair_counts(store, attribute, measured.feature)
    rows = []
    for group in (GLOBAL, *store.results.groups[attribute]):
        cells = [str(count.get(group, NONE)), number(effective.get(group), ".0f")]
        cells += map(str, pairs.get(group, (NONE, NONE)))
        for name, under in metrics.values():
            result = measured.result(name, group, under)
            few = NOT_ENOUGH in result.withheld
            cells += (
                [percent(result.value), percent(result.low, result.high)]
                if result.reportable
                else [NONE, NOT_ENOUGH if few else NONE]
            )
        rows.append([group, *cells])
    columns = [column for title in metrics for column in (title, "interval")]
    print_table(
        [attribute or "pairs", "people", "effective", "genuine", "imposter", *columns],
        rows,
        title=f"{store.results.dataset}, {measured.feature}: error rates at {at}, percent",
        caption=_assumed(store.run["interval_kind"]),
        blocks=(4, *[2] * len(metrics)),  # a value, its interval
    )


def _assumed(kind: str) -> str:
    """Return what intervals of a kind assume of who is in the pairs, where that is anything."""
    if kind.startswith("identity-aware"):
        nameless = kind.partition("; in ")[2]
        return f"intervals: in {nameless}" if nameless else ""
    return "intervals assume that no two pairs share a person: too narrow where they do"


def _show_noise(noise: LabelNoise) -> None:
    """Print how far deviations over groups move, and how to read that."""
    from faircal.evaluation.audit.label_noise import LABEL_NOISE, over_groups

    shown = over_groups(noise.rows)
    where = ", ".join(filter(None, (shown[0].feature, shown[0].attribute))) if shown else ""
    doubtful = "? not to be relied on: so much noise can't be taken back from these data"
    print_table(
        ["over groups", "at", "as labelled", "would show as", "range of 95 %", "if so now"],
        [
            (
                row.name,
                row.condition or ("threshold" if row.of_rate else ""),
                percent(row.value, how=".3f"),
                percent(row.median, how=".3f"),
                percent(row.low, row.high, how=".3f"),
                row.taken_back(lambda value: percent(value, how=".3f")) + " ?" * _in_doubt(row),
            )
            for row in shown
        ],
        title=f"{where}: with {100 * noise.rate:g} % of labels wrong, percent",
        caption=doubtful if any(map(_in_doubt, shown)) else "",
        left=(0, 1),
        names=2,
        blocks=[1, 2, 1],
    )
    click.echo(
        "'as labelled' would show as the next two columns say if so many labels were made wrong; "
        "'if so now' is what the true groups show if so many are wrong already."
    )
    click.echo(f"All values are in {LABEL_NOISE}.")


def _in_doubt(row: LabelNoiseRow) -> bool:
    """Whether what the true groups would show can't be relied on."""
    return row.corrected == row.corrected and not row.reliable
