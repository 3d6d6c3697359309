"""``faircal plan``."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.options import feature_option, json_option, note, out, print_json, printable

if TYPE_CHECKING:
    from faircal.data import Dataset
    from faircal.uncertainty.planning import Alike, Metric, Plan

METRICS: tuple[Metric, ...] = ("fpr", "fnr")


@click.command(epilog="Example: faircal plan --rate 0.01 --within 0.005 --groups 8 --images 5")
@click.option("--rate", type=float, required=True, help="The error rate that is expected.")
@click.option("--within", type=float, default=None, help="Wanted: half the interval's width.")
@click.option(
    "--ratio", type=float, default=None, help="Or: times the rate that its upper end may be."
)
@click.option(
    "--people",
    type=click.IntRange(3),
    default=None,
    help="The other way round: what so many people of a group will give.",
)
@click.option(
    "--groups", type=click.IntRange(1), default=1, show_default=True, help="Number of groups."
)
@click.option(
    "--images",
    type=click.IntRange(2),
    default=5,
    show_default=True,
    help="Images of each person.",
)
@click.option(
    "--per-person",
    type=click.IntRange(1),
    default=None,
    help="Imposter pairs that each person is in  [default: all within the group]",
)
@click.option(
    "--level", type=float, default=0.95, show_default=True, help="Confidence of the interval."
)
@click.option(
    "--pilot",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DATA",
    help="Labelled pairs with identities: how alike are pairs that share people?",
)
@click.option(
    "--attribute", default=None, help="Use the pilot's pairs within groups of this attribute."
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
    """Say how many people, images and pairs an interval of an error rate needs, in each group.

    For the FPR and for the FNR: the fewest people with whom the interval is as narrow as --within
    or --ratio wants it, or what --people will give. Pairs that share people are alike, and how much
    widens the interval: typical figures are taken, or those of --pilot, which should be of the same
    network and of a hundred people or more.
    """
    from faircal.errors import ParameterError
    from faircal.uncertainty.planning import expect, people_needed, plan, typical

    if sum(value is not None for value in (within, ratio, people)) != 1:
        raise ParameterError("expected one of --within, --ratio and --people; give just one")
    if pilot is None and (attribute is not None or feature is not None):
        raise ParameterError("--attribute and --feature: are for --pilot; give it too")
    seen = {} if pilot is None else _pilot(pilot, attribute, feature)
    rows: list[dict[str, Any]] = []
    plans: list[Plan] = []
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
    for text in dict.fromkeys(_notes(rows)):
        note(f"note: {text}")
    if as_json:
        print_json({"rate": rate, "level": level, "groups": groups, "plans": rows})
    else:
        _show(plans, rate, groups, level)


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    notes = [f"correlations of pairs that share people: {row['correlations_from']}" for row in rows]
    notes += [
        f"{row['metric'].upper()}: under {row['least_people']} people a rate of {row['rate']:g} is"
        " not told; plan with no fewer"
        for row in rows
        if row["people"] < row["least_people"]
    ]
    return notes


def _show(plans: list[Plan], rate: float, groups: int, level: float) -> None:
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
    out().print(table)


def _pilot(path: Path, attribute: str | None, feature: str | None) -> dict[Metric, Alike]:
    """Return how alike pairs of the pilot are: all of them, or those within groups."""
    import numpy as np

    from faircal.auditing import Scored
    from faircal.cli.source import Source, check_one_feature
    from faircal.errors import DataError
    from faircal.uncertainty.crowd import Crowd
    from faircal.uncertainty.dependence import Dependence
    from faircal.uncertainty.planning import FEWEST_PEOPLE, Alike

    data: Dataset = Source(path, None, False).load([feature] if feature else (), measuring=True)
    check_one_feature(data.features, path)
    pairs = Scored.of_data(data, None, attribute)
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
