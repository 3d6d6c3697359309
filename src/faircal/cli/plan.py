"""``faircal plan``."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.help import Command, Part, option
from faircal.cli.options import (
    feature_option,
    json_option,
    note,
    print_json,
    print_table,
    printable,
)

if TYPE_CHECKING:
    from faircal.data import Dataset
    from faircal.metrics.intervals.planning import Alike, Metric, PeoplePlan

METRICS: tuple[Metric, ...] = ("fpr", "fnr")


@click.command(
    cls=Command,
    examples={
        "How many people for an FPR of 1 %, known to half a percent": "faircal plan --rate 0.01 "
        "--within 0.005",
        "The same in each of eight groups, with five images a person": "faircal plan --rate 0.01 "
        "--within 0.005 --groups 8 --images 5",
        "So that the upper end is at most twice the rate": "faircal plan --rate 0.001 --ratio 2",
        "The other way round: what 200 people will give": "faircal plan --rate 0.01 --people 200",
        "With how alike pairs are in data of the same network": "faircal plan --rate 0.01 "
        "--within 0.005 --pilot faces/ --attribute ethnicity",
    },
    see=("threshold", "audit", "compare", "how-to/plan", "explanation/uncertainty"),
)
@option(
    "--rate",
    part=Part.PRECISION,
    type=float,
    required=True,
    metavar="SHARE",
    help="The error rate that is expected, such as 0.01.",
)
@option(
    "--within",
    part=Part.PRECISION,
    type=float,
    metavar="SHARE",
    show_default="none",
    help="Wanted: half the interval's width, such as 0.005.",
)
@option(
    "--ratio",
    part=Part.PRECISION,
    type=float,
    show_default="none",
    help="Or wanted: times the rate that the interval's upper end may be, such as 2.",
)
@option(
    "--level",
    part=Part.PRECISION,
    type=float,
    default=0.95,
    metavar="SHARE",
    help="Confidence of the interval.",
)
@option(
    "--people",
    part=Part.SAMPLE,
    type=click.IntRange(3),
    show_default="none",
    help="The other way round: say what so many people of a group will give.",
)
@option(
    "--groups",
    part=Part.SAMPLE,
    type=click.IntRange(1),
    default=1,
    help="Number of groups; each needs the people.",
)
@option(
    "--images",
    part=Part.SAMPLE,
    type=click.IntRange(2),
    default=5,
    help="Images of each person.",
)
@option(
    "--per-person",
    part=Part.SAMPLE,
    type=click.IntRange(1),
    show_default="all within the group",
    help="Imposter pairs that each person is in.",
)
@option(
    "--pilot",
    part=Part.DATA,
    type=click.Path(path_type=Path),
    metavar="DATA",
    show_default="typical figures",
    help="Labelled pairs with identities, which tell how alike pairs that share people are.",
)
@option(
    "--attribute",
    part=Part.DATA,
    show_default="all pairs",
    help="Take the pilot's pairs within groups of this attribute.",
)
@feature_option
@json_option
def command(
    rate: float,
    within: float | None,
    ratio: float | None,
    people: int | None,
    groups: int,
    images: int,
    per_person: int | None,
    level: float,
    pilot: Path | None,
    attribute: str | None,
    feature: str | None,
    as_json: bool,
) -> None:
    """Say how many people and pairs a wanted interval needs.

    For the FPR and for the FNR, in each group: the fewest people with whom the interval of an error
    rate is as narrow as --within or --ratio wants it, or what --people will give. Give one of the
    three.

    Pairs that share people are alike, which widens the interval, however many pairs there are. How
    alike is taken from typical figures, or from --pilot, which should be of the same network and of
    a hundred people or more.

    Prints people, images, pairs, how many independent pairs they are as good as, and the interval.
    Writes nothing. Plan before you collect; then 'faircal threshold' or 'faircal audit'.
    """
    from faircal._base.errors import ParameterError
    from faircal.metrics.intervals.planning import expect, people_needed, plan, typical

    if sum(value is not None for value in (within, ratio, people)) != 1:
        raise ParameterError("expected one of --within, --ratio and --people; give just one")
    if pilot is None and (attribute is not None or feature is not None):
        raise ParameterError("--attribute and --feature: are for --pilot; give it too")
    seen = {} if pilot is None else _pilot(pilot, attribute, feature)
    rows: list[dict[str, Any]] = []
    plans: list[PeoplePlan] = []
    for metric in METRICS:
        alike = seen.get(metric) or typical(metric)
        how: dict[str, Any] = {"images": images, "per_person": per_person, "level": level}
        if people is not None:
            found = expect(rate, people, metric, **how, alike=alike)
        else:
            found = plan(rate, metric, within=within, ratio=ratio, **how, alike=alike)
        plans.append(found)
        both, one = (float(r) for r in alike.dependence.correlations(rate))
        rows.append(
            {
                **asdict(found),
                "half_width": found.half_width,
                "people_all_groups": groups * found.people,
                "pairs_all_groups": groups * found.pairs,
                "least_people": people_needed(rate, metric),
                "error_correlation_same_people": both,
                "error_correlation_one_person": one,
                "correlations_from": alike.source,
            }
        )
    for text in _notes(rows):
        note(f"note: {text}")
    if as_json:
        print_json({"rate": rate, "level": level, "groups": groups, "plans": rows})
    else:
        _show(plans, rate, groups, level)


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    of = "correlations of pairs that share people"
    sources = {row["metric"]: row["correlations_from"] for row in rows}
    if len(set(sources.values())) == 1:
        notes = [f"{of}: {source}" for source in set(sources.values())]
    else:
        notes = [f"{metric.upper()}: {of}: {source}" for metric, source in sources.items()]
    notes += [
        f"{row['metric'].upper()}: under {row['least_people']} people a rate of {row['rate']:g} is"
        " not told; plan with no fewer"
        for row in rows
        if row["people"] < row["least_people"]
    ]
    return notes


def _show(plans: list[PeoplePlan], rate: float, groups: int, level: float) -> None:
    from rich import box
    from rich.table import Table

    title = f"a rate of {100 * rate:g} %, in each of {groups} groups"
    if groups == 1:
        title = f"a rate of {100 * rate:g} %, in one group"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title)
    table.add_column("rate")
    columns = ("people", "images each", "pairs", "as good as", f"{100 * level:g} % interval, %")
    for name in (*columns, "people in all"):
        table.add_column(name, justify="right")
    for found in plans:
        table.add_row(
            found.metric.upper(),
            f"{found.people:,}",
            str(found.images),
            f"{found.pairs:,}",
            f"{math.floor(found.effective_pairs):,} independent",
            f"{100 * found.low:.3g} to {100 * found.high:.3g}",
            f"{groups * found.people:,}",
        )
    print_table(table)


def _pilot(path: Path, attribute: str | None, feature: str | None) -> dict[Metric, Alike]:
    """Return how alike pairs of the pilot are: all of them, or those within groups."""
    import numpy as np

    from faircal._base.errors import DataError
    from faircal.cli.source import Source, check_one_feature
    from faircal.evaluation.audit import ScoredPairs
    from faircal.metrics.intervals.crowd import Crowd
    from faircal.metrics.intervals.dependence import Dependence
    from faircal.metrics.intervals.planning import FEWEST_PEOPLE, Alike

    data: Dataset = Source(path, None, False).load([feature] if feature else (), measuring=True)
    check_one_feature(data.features, path)
    pairs = ScoredPairs.of_data(data, None, attribute)
    if pairs.people is None or pairs.ranked is None:
        raise DataError(f"{path}: expected identities, found none; add identity to plan with it")
    crowd, scores = Crowd.of(pairs.genuine, pairs.people), pairs.ranked
    if pairs.groups is not None:
        rows = np.flatnonzero(pairs.groups.pair >= 0)
        crowd, scores = crowd.part(rows), scores[rows]
    found: dict[Metric, Alike] = {}
    for metric in METRICS:
        rows, sharing, values = crowd.misses, crowd.miss_sharing, scores
        if metric == "fnr":
            rows, sharing, values = crowd.hits, crowd.hit_sharing, -scores
        if sharing.effective_people < FEWEST_PEOPLE:
            raise DataError(
                f"{path}: expected at least {FEWEST_PEOPLE} people (effective) for the"
                f" {metric.upper()}, found {sharing.effective_people:.0f}; use a larger pilot"
            )
        source = printable(f"{path.name}, {sharing.people} people")
        found[metric] = Alike(Dependence.of(values[rows], sharing), source)
    return found
