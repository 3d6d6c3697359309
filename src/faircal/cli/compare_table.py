"""What ``faircal compare`` prints: a table of differences, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from faircal.cli.options import print_table, printable

if TYPE_CHECKING:
    from rich.table import Table

    from faircal.evaluation.compare import Comparison, GateVerdict


def show(found: Sequence[Comparison]) -> None:
    """Print a table for each feature, attribute and couple of methods."""

    def where(each: Comparison) -> tuple[str, str, str, str]:
        return each.feature, each.attribute, each.method_a, each.method_b

    for _, rows in groupby(found, where):
        print_table(_table(list(rows)), names=2, blocks=[1, 1, 2, 1, 1])


def conclude(found: Sequence[Comparison], gate: GateVerdict | None, margin: float | None) -> None:
    """Say how to read the table, what was found, and what would have been noticed."""
    level = found[0].difference.level
    family = found[0].family
    lines = [
        f"Differences are B less A; intervals are {100 * level:g} % ones, of each alone.",
        f"p is corrected for the {family} comparisons that tell anything (Holm).",
        *_counted(found),
        *_noticeable(found),
        *_gated(found, gate, margin),
    ]
    for line in lines:
        click.echo(printable(line))


def _table(rows: list[Comparison]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from faircal.evaluation.compare import whom
    from faircal.report.tables import method_title
    from faircal.report.wording import metric_title

    first = rows[0]
    methods = [method_title(name) for name in (first.method_a, first.method_b)]
    same = methods[0] if methods[0] == methods[1] else f"{methods[0]} (A) and {methods[1]} (B)"
    title = ", ".join(filter(None, (first.feature, same))) + f": A and B{_units(rows)}"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=Text(printable(title)))
    table.add_column("")
    table.add_column(Text(printable(first.attribute or "pairs")))
    for name in ("A", "B", "B − A", "interval", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    last = ""
    for row in rows:
        named = metric_title(row.metric, row.condition)
        head = Text(printable(named if named != last else ""))
        table.add_row(head, Text(printable(whom(row.group))), *_cells(row), _verdict(row))
        last = named
    return table


def _units(rows: Sequence[Comparison]) -> str:
    """Say what is printed in percent: all, or all but a few that are no shares."""
    from faircal.report.wording import metric_title

    plain = dict.fromkeys(metric_title(row.metric) for row in rows if not _share(row.metric))
    if all(not _share(row.metric) for row in rows):
        return ""
    return ", percent" + (f" ({', '.join(plain)} as it is)" if plain else "")


def _cells(row: Comparison) -> list[str]:
    if not row.told:
        return ["–"] * 5
    ends, metric = row.difference, row.metric
    low, high = (_number(end, metric, sign=True) for end in (ends.low, ends.high))
    return [
        _number(row.a, metric),
        _number(row.b, metric),
        _number(ends.value, metric, sign=True),
        f"{low} to {high}",
        "<0.001" if row.corrected < 0.001 else f"{row.corrected:.3f}",
    ]


def _verdict(row: Comparison) -> str:
    if row.no_errors:
        return "no error in either"
    return "the same" if row.same else row.verdict


def _counted(found: Sequence[Comparison]) -> list[str]:
    verdicts = ("worse", "better", "not told apart", "not enough data", "not known")
    counts = {name: sum(each.verdict == name for each in found) for name in verdicts}
    lines = [", ".join(f"{count} {name}" for name, count in counts.items() if count) + "."]
    if counts["not enough data"]:
        lines.append("Not enough data is no good news: such values may be worse by any amount.")
    return lines


def _noticeable(found: Sequence[Comparison]) -> list[str]:
    """Say how large a worsening would have been noticed: the largest over groups."""
    from faircal.evaluation.compare import whom
    from faircal.report.wording import metric_title

    lines = []
    told = [each for each in found if each.told and each.verdict != "worse" and not each.same]
    for (metric, condition), rows in _by_metric(told).items():
        worst = max(rows, key=lambda each: each.detectable)
        least = min(rows, key=lambda each: each.detectable)
        ends = dict.fromkeys((least.group, worst.group))
        said = [
            f"{_size(row.detectable, metric, '.2g')} ({whom(row.group)})"
            for row in (least, worst)[: len(ends)]
        ]
        lines.append(f"  {metric_title(metric, condition)}: {' to '.join(said)}")
    if lines:
        lines.insert(0, "A worsening would have been noticed, 8 times in 10, from this size on:")
    return lines


def _by_metric(found: Sequence[Comparison]) -> dict[tuple[str, str], list[Comparison]]:
    kinds: dict[tuple[str, str], list[Comparison]] = {}
    for each in found:
        kinds.setdefault((each.metric, each.condition), []).append(each)
    return kinds


def _gated(
    found: Sequence[Comparison], gate: GateVerdict | None, margin: float | None
) -> list[str]:
    if gate is None:
        return []
    if margin is None:
        if gate.passed:
            untold = sum(not each.told for each in found)
            but = f", but {untold} values could not be judged" if untold else ""
            return [f"gate: passed; nothing has been shown to be worse{but}"]
        return [f"gate: failed; worse: {_named(gate)}"]
    sizes = {_share(each.metric): _size(margin, each.metric, "g") for each in found}
    size = " or ".join(sizes[share] for share in (True, False) if share in sizes)
    if gate.passed:
        return [
            f"gate: passed; everything has been shown to be worse by less than {size}, if at all"
        ]
    return [f"gate: failed; not shown to be worse by less than {size}: {_named(gate)}"]


def _named(gate: GateVerdict) -> str:
    from faircal.evaluation.compare import whom
    from faircal.report.wording import metric_title

    kinds = _by_metric(gate.against)
    return "; ".join(
        f"{metric_title(*kind)} of {', '.join(dict.fromkeys(whom(row.group) for row in rows))}"
        for kind, rows in kinds.items()
    )


def _share(metric: str) -> bool:
    """Whether a metric is a share, told in percent; ratios, bits and losses are not."""
    from faircal.report.tables import unit_of

    return unit_of(metric) > 1


def _size(value: float, metric: str, how: str) -> str:
    return f"{100 * value:{how}} points" if _share(metric) else f"{value:{how}}"


def _number(value: float, metric: str, sign: bool = False) -> str:
    if value != value:
        return "–"
    unit, digits = (100, 2) if _share(metric) else (1, 4)
    shown = round(unit * value, digits) + 0.0  # no −0
    return f"{shown:+.{digits}f}" if sign else f"{shown:.{digits}f}"
