"""``faircal check``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from faircal.cli.help import Command
from faircal.cli.options import (
    attribute_option,
    json_option,
    note,
    out,
    print_json,
    print_table,
    working,
)
from faircal.cli.source import Source, reads_data

if TYPE_CHECKING:
    from faircal.data import Dataset, Fault


@click.command(
    cls=Command,
    examples={
        "A dataset folder": "faircal check faces/",
        "A table of scores from 0 to 100": "faircal check scores.csv --score-range 0,100",
        "Groups of one attribute, for machines": "faircal check faces/ --attribute gender --json",
    },
    exits={0: "The data can be used; there may be warnings.", 2: "It can't be used, or not read."},
    see=("import", "pairs", "fit", "audit", "how-to/real-data", "reference/formats"),
)
@reads_data
@attribute_option
@json_option
def command(source: Source, attribute: str | None, as_json: bool) -> int:
    """Describe a dataset and find what is wrong with it.

    Prints how many pairs, images and people there are, features, folds, and how many genuine and
    imposter pairs each group has. Then what is wrong: every fault comes with a count, an example
    and what to do. Groups that are too small to say anything about are named. Writes nothing.

    Run it before anything else on new data. Next: 'faircal fit', 'faircal audit' or 'faircal
    benchmark'.
    """
    from faircal.data import find_faults

    fatal: list[Fault] = []
    loaded = source.load(on_fault=fatal.append)
    with working("checking"):
        about = describe(loaded, attribute)
        faults = fatal + find_faults(loaded, attribute)
    errors = [fault for fault in faults if fault.severity == "error"]
    if as_json:
        print_json({**about, "usable": not errors, "faults": [vars(fault) for fault in faults]})
    else:
        _show(about, faults)
    if errors:
        more = f" (and {len(errors) - 1} more, listed above)" if errors[1:] else ""
        note(f"faircal: {source.path}: {errors[0]}{more}")
    return 2 if errors else 0


def describe(data: Dataset, attribute: str | None) -> dict[str, Any]:
    """Return the facts about a dataset."""
    import numpy as np

    from faircal.data.faults import describe_groups

    genuine = data.pairs.genuine
    fold = data.pairs.fold
    attribute = attribute or data.default_attribute
    about: dict[str, Any] = {
        "name": data.name,
        "simulated": bool(data.provenance.get("simulated", False)),
        "pairs": len(data),
        "genuine": None if genuine is None else int(genuine.sum()),
        "imposter": None if genuine is None else int((~genuine).sum()),
        "images": len(data.images) if data.has_images else None,
        "identities": None if data.images.identity is None else len(data.images.identity.names),
        "features": {
            name: f"{f.embeddings.dimension}-d embeddings" if f.embeddings else "scores"
            for name, f in data.features.items()
        },
        "attributes": {name: list(c.names) for name, c in data.images.attributes.items()},
        "folds": {str(name): int(np.sum(fold == name)) for name in data.fold_names},
        "attribute": attribute,
        "groups": [],
    }
    if attribute is not None:
        about["groups"] = [vars(size) for size in describe_groups(data, attribute)]
        about |= data.groups(attribute).shares()
    return about


def _show(about: dict[str, Any], faults: list[Fault]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = out()
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column()
    facts.add_column(overflow="fold")
    facts.add_row("dataset", about["name"])
    labels = (
        ""
        if about["genuine"] is None
        else f" ({about['genuine']} genuine, {about['imposter']} imposter)"
    )
    facts.add_row("pairs", f"{about['pairs']}{labels}")
    for key in ("images", "identities"):
        facts.add_row(key, "unknown" if about[key] is None else str(about[key]))
    facts.add_row("features", ", ".join(f"{k} ({v})" for k, v in about["features"].items()))
    facts.add_row(
        "attributes",
        ", ".join(f"{k} ({len(v)} values)" for k, v in about["attributes"].items()) or "none",
    )
    facts.add_row("folds", ", ".join(f"{k}: {v} pairs" for k, v in about["folds"].items()))
    console.print(facts)
    if about["groups"]:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in (about["attribute"], "people", "genuine", "imposter"):
            table.add_column(name, justify="left" if name == about["attribute"] else "right")
        for row in about["groups"]:
            table.add_row(*("–" if value is None else str(value) for value in row.values()))
        print_table(table)
        cross, unknown, share = (
            about["cross_group_pairs"],
            about["unknown_pairs"],
            100 / about["pairs"],
        )
        console.print(
            f"cross-group pairs: {cross} ({cross * share:.1f} %), "
            f"of unknown group: {unknown} ({unknown * share:.1f} %)"
        )
    styles = {"error": "bold red", "warning": "yellow", "note": "dim"}
    for fault in faults:
        line = Text(fault.severity, style=styles[fault.severity]).append(
            f"  {fault}", style="default"
        )
        console.print(line, soft_wrap=True)
    if not any(fault.severity != "note" for fault in faults):
        console.print("no faults found")
