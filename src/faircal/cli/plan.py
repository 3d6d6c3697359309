"""``faircal plan``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli import options
from faircal.cli.help import Command, Part
from faircal.cli.printing import notes, percent, print_json, print_table

if TYPE_CHECKING:
    from faircal.evaluation.planning import SamplePlan


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
@Part.PRECISION.option(
    "--rate",
    type=float,
    required=True,
    metavar="SHARE",
    help="The error rate that is expected, such as 0.01.",
)
@Part.PRECISION.option(
    "--within",
    type=float,
    metavar="SHARE",
    show_default="none",
    help="Wanted: half the interval's width, such as 0.005.",
)
@Part.PRECISION.option(
    "--ratio",
    type=float,
    show_default="none",
    help="Or wanted: times the rate that the interval's upper end may be, such as 2.",
)
@Part.PRECISION.option(
    "--level",
    type=float,
    default=0.95,
    metavar="SHARE",
    help="Confidence of the interval.",
)
@Part.SAMPLE.option(
    "--people",
    type=click.IntRange(3),
    show_default="none",
    help="The other way round: say what so many people of a group will give.",
)
@Part.SAMPLE.option(
    "--groups",
    type=click.IntRange(1),
    default=1,
    help="Number of groups; each needs the people.",
)
@Part.SAMPLE.option(
    "--images",
    type=click.IntRange(2),
    default=5,
    help="Images of each person.",
)
@Part.SAMPLE.option(
    "--per-person",
    type=click.IntRange(1),
    show_default="all within the group",
    help="Imposter pairs that each person is in.",
)
@Part.DATA.option(
    "--pilot",
    type=click.Path(path_type=Path),
    metavar="DATA",
    show_default="typical figures",
    help="Labelled pairs with identities, which tell how alike pairs that share people are.",
)
@Part.DATA.option(
    "--attribute",
    show_default="all pairs",
    help="Take the pilot's pairs within groups of this attribute.",
)
@options.feature
@options.as_json
def command(as_json: bool, **how: Any) -> None:
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
    from faircal.evaluation.planning import plan_sample

    planned = plan_sample(**how)
    notes(planned.notes)
    if as_json:
        record = {name: how[name] for name in ("rate", "level", "groups")}
        print_json({**record, "plans": planned.as_json()})
    else:
        _show(planned)


def _show(planned: SamplePlan) -> None:

    where = "in one group" if planned.groups == 1 else f"in each of {planned.groups} groups"
    columns = ("people", "images each", "pairs", "as good as")
    print_table(
        ["rate", *columns, f"{100 * planned.level:g} % interval, %", "people in all"],
        [
            (
                plan.metric.upper(),
                f"{plan.people:,}",
                str(plan.images),
                f"{plan.pairs:,}",
                f"{math.floor(plan.effective_pairs):,} independent",
                percent(plan.low, plan.high, how=".3g"),
                f"{planned.groups * plan.people:,}",
            )
            for plan in planned.plans
        ],
        title=f"a rate of {100 * planned.rate:g} %, {where}",
    )
