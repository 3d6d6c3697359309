"""``faircal check``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from faircal.cli import options
from faircal.cli.help import Command
from faircal.cli.printing import (
    NONE,
    console,
    note,
    print_json,
    print_table,
    printable,
    progress_bars,
)

if TYPE_CHECKING:
    from faircal.data import Fault, PairFiles


@click.command(
    cls=Command,
    examples={
        "A dataset folder": "faircal check faces/",
        "A table of scores from 0 to 100": "faircal check scores.csv --score-range 0,100",
        "A cohort: people of known groups, without pairs": "faircal check cohort/ "
        "--attribute ethnicity",
        "Groups of one attribute, for machines": "faircal check faces/ --attribute gender --json",
    },
    exits={0: "The data can be used; there may be warnings.", 2: "It can't be used, or not read."},
    see=(
        "import",
        "pairs",
        "fit",
        "audit",
        "how-to/real-data",
        "how-to/cohort",
        "reference/formats",
    ),
)
@options.reads_data
@options.attribute
@options.as_json
def command(source: PairFiles, attribute: str | None, as_json: bool) -> int:
    """Describe a dataset and find what is wrong with it.

    Prints how many pairs, images and people there are, features, folds, and how many genuine and
    imposter pairs each group has. Then what is wrong: every fault comes with a count, an example
    and what to do. Groups that are too small to say anything about are named. Writes nothing.

    A folder without pairs is checked as a cohort: how balanced its groups are, and which are of too
    few people.

    Run it before anything else on new data. Next: 'faircal fit', 'faircal audit' or 'faircal
    benchmark'.
    """
    from faircal.data.checking import check_data

    with progress_bars() as update:
        checked = check_data(source, attribute, progress=update)
    errors = checked.errors
    if as_json:
        faults = [vars(fault) for fault in checked.faults]
        print_json({**checked.facts, "usable": not errors, "faults": faults})
    else:
        _show(checked.facts, checked.faults)
    if errors:
        more = f" (and {len(errors) - 1} more, listed above)" if errors[1:] else ""
        note(f"faircal: {source.path}: {errors[0]}{more}")
    return 2 if errors else 0


def _show(facts: dict[str, Any], faults: list[Fault]) -> None:
    lines = Table(box=None, show_header=False, pad_edge=False)
    lines.add_column()
    lines.add_column(overflow="fold")
    for name, words in _described(facts).items():
        lines.add_row(name, Text(printable(words)))
    terminal = console()
    terminal.print(lines)
    if facts["groups"]:
        print_table(
            [facts["attribute"], *list(facts["groups"][0])[1:]],
            [
                [NONE if value is None else str(value) for value in row.values()]
                for row in facts["groups"]
            ],
        )
    if facts["groups"] and "pairs" in facts:
        cross, unknown = facts["cross_group_pairs"], facts["unknown_pairs"]
        share = 100 / facts["pairs"]
        terminal.print(
            f"cross-group pairs: {cross} ({cross * share:.1f} %), "
            f"of unknown group: {unknown} ({unknown * share:.1f} %)"
        )
    styles = {"error": "bold red", "warning": "yellow", "note": "dim"}
    for fault in faults:
        line = Text(printable(fault.severity), style=styles[fault.severity])
        line.append(f"  {fault}", style="default")
        terminal.print(line, soft_wrap=True)
    if not any(fault.severity != "note" for fault in faults):
        terminal.print("no faults found")


def _described(facts: dict[str, Any]) -> dict[str, str]:
    """Return the facts about a dataset, or a cohort, in words."""
    features = ", ".join(f"{k} ({v})" for k, v in facts["features"].items())
    images, identities = (
        "unknown" if facts[name] is None else str(facts[name]) for name in ("images", "identities")
    )
    own = {"images": images, "identities": identities, "features": features}
    if "pairs" not in facts:
        licence = facts["licence"] or "unknown (dataset.json can say it)"
        return {"dataset": facts["name"], "kind": facts["kind"], **own, "licence": licence}
    labels = f" ({facts['genuine']} genuine, {facts['imposter']} imposter)"
    attributes = ", ".join(f"{k} ({len(v)} values)" for k, v in facts["attributes"].items())
    return {
        "dataset": facts["name"],
        "pairs": f"{facts['pairs']}{'' if facts['genuine'] is None else labels}",
        **own,
        "attributes": attributes or "none",
        "folds": ", ".join(f"{k}: {v} pairs" for k, v in facts["folds"].items()),
    }
