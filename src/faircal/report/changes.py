"""What differs between two runs, in the sentences of ``faircal compare``."""

from __future__ import annotations

from collections.abc import Sequence

from faircal.evaluation.compare import ComparedRuns, Comparison, GateVerdict, group_title
from faircal.report.wording import is_share, metric_title


def comparison_words(compared: ComparedRuns, margin: float | None) -> list[str]:
    """Say how to read the values, what was found, and what would have been noticed."""
    comparisons = compared.comparisons
    first = comparisons[0]
    level = f"{100 * first.level:g} %"
    return [
        f"Differences are B less A; intervals are {level} ones, of each alone.",
        f"p is corrected for the {first.family:.0f} comparisons that tell anything (Holm).",
        *_counted(comparisons),
        *_noticeable(comparisons),
        *_gate_words(comparisons, compared.gate, margin),
    ]


def _counted(compared: Sequence[Comparison]) -> list[str]:
    verdicts = ("worse", "better", "not told apart", "not enough data", "not known")
    counts = {name: sum(each.verdict == name for each in compared) for name in verdicts}
    lines = [", ".join(f"{count} {name}" for name, count in counts.items() if count) + "."]
    if counts["not enough data"]:
        lines.append("Not enough data is no good news: such values may be worse by any amount.")
    return lines


def _noticeable(compared: Sequence[Comparison]) -> list[str]:
    """Say how large a worsening would have been noticed: the largest over groups."""
    lines = []
    not_worse = [
        each for each in compared if each.reportable and each.verdict != "worse" and not each.same
    ]
    for (metric, condition), rows in _by_metric(not_worse).items():
        worst = max(rows, key=lambda each: each.detectable)
        least = min(rows, key=lambda each: each.detectable)
        ends = dict.fromkeys((least.group, worst.group))
        sizes = [
            f"{_size(row.detectable, metric, '.2g')} ({group_title(row.group)})"
            for row in (least, worst)[: len(ends)]
        ]
        lines.append(f"  {metric_title(metric, condition)}: {' to '.join(sizes)}")
    if lines:
        lines.insert(0, "A worsening would have been noticed, 8 times in 10, from this size on:")
    return lines


def _by_metric(compared: Sequence[Comparison]) -> dict[tuple[str, str], list[Comparison]]:
    kinds: dict[tuple[str, str], list[Comparison]] = {}
    for each in compared:
        kinds.setdefault((each.metric, each.condition), []).append(each)
    return kinds


def _gate_words(
    compared: Sequence[Comparison], gate: GateVerdict | None, margin: float | None
) -> list[str]:
    if gate is None:
        return []
    if margin is None:
        if gate.passed:
            withheld = sum(not each.reportable for each in compared)
            but = f", but {withheld} values could not be judged" if withheld else ""
            return [f"gate: passed; nothing has been shown to be worse{but}"]
        return [f"gate: failed; worse: {_named(gate)}"]
    sizes = {is_share(each.metric): _size(margin, each.metric, "g") for each in compared}
    size = " or ".join(sizes[share] for share in (True, False) if share in sizes)
    if gate.passed:
        return [
            f"gate: passed; everything has been shown to be worse by less than {size}, if at all"
        ]
    return [f"gate: failed; not shown to be worse by less than {size}: {_named(gate)}"]


def _named(gate: GateVerdict) -> str:
    kinds = _by_metric(gate.against)
    return "; ".join(
        f"{metric_title(*kind)} of {', '.join(dict.fromkeys(group_title(r.group) for r in rows))}"
        for kind, rows in kinds.items()
    )


def _size(value: float, metric: str, how: str) -> str:
    return f"{100 * value:{how}} points" if is_share(metric) else f"{value:{how}}"
