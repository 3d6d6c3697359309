"""The page of the study, from what is kept alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scipy.stats import beta

from studies.monitoring.crowds import LOOKS, TOLD

PAGE = "study-monitoring.md"
Row = dict[str, Any]

_CHANGES = {
    "none": "nothing",
    "share_plus_20_points": "a group's share + 20 points",
    "share_times_1.2": "a group's share × 1.2",
    "imposters_plus_0.05": "imposters' cosines + 0.05",
}
_FRONT = """# Study: monitoring

Simulated streams only. A world of people is simulated once for each preset (`faircal.simulate`);
for each fit some of them calibrate a model, and pairs among *others* come in use. Written by
`python -m studies monitoring`; nothing here is typed by hand. What is done and why:
[decision 34](decisions/0034-monitoring.md). `false_alarms` is 0.01; a stream has 20,000 pairs,
looked at as they come. Intervals are 95 % (Clopper and Pearson), as if runs were independent; those
of one fit (10 to 20 fits in each row) share its calibration people.

Calibration: `small` 160 people and 6,400 pairs, `rfw-like` 7,000 and 19,000, `bfw-like` 640 and
40,000; in use 640, 3,600 and 960 others unless the table says so. *Told* is who is known to be in
the pairs: people, images only, or nobody.
"""
_CROWDS = """
## Crowds chosen to break promises

The crowds of the [study of intervals](study-uncertainty.md#what-is-judged). Some people calibrate
Baseline on a table of scores; others of the same crowd come in use. Nothing changes but who they
are. Each run draws everybody anew, with up to 20,000 pairs on either side, a quarter genuine. A
genuine pair has twice its person's effect and scores higher. One pair in ten comes with its label.
There are no embeddings: scores and labels are watched, clusters and images outside are not.

### Where it fails

"""
_CROWD_TABLE = """
A look at labels is right where probabilities are off for 1,000 more people of the crowd, too, by
more than is tolerated. It tells of a calibration on too few people, not of a change. With *one
dominating*, somebody else dominates those 1,000.

Why labels alarm: a label counts with one of its two people. Told images or nobody, labels count as
independent. That people of calibration are a sample, too, is left out. `monitor` says so where
it does not know the people. Audit first when labels of few people raise an alarm.

Why scores alarm with few people: their variance is estimated from few, and comes out too small by
chance. `monitor` says *too few people* only below six effective ones.

### All of it

Runs with a false alarm, where pairs are watched as they come, and where all are looked at once. The
interval is that of the larger. **Bold** is surely more than `false_alarms`. *By scores* has the
runs in which scores alarmed, told people, images, nobody; all other alarms are of labels. Two
numbers of people are those in calibration and in use.

| crowd | people | runs | people told | images told | nobody told | by scores |
| --- | ---: | ---: | --- | --- | --- | --- |
"""
_QUIET = """
## Nothing has changed

| data | method | told | besides | runs | with a false alarm | rate |
| --- | --- | --- | --- | ---: | ---: | --- |
"""
_CHANGED = """
## Something has changed

Found within 20,000 pairs of the change; *pairs* is the median of those found. The shortest window
has 500 pairs.

| data | method | told | change | besides | runs | found | share | pairs |
| --- | --- | --- | --- | --- | ---: | ---: | --- | ---: |
"""
_LIMITS = """
## Where people are too few, or the change too small

The same where less can be expected: few people in calibration or in use, nobody told, or a group's
share × 1.2, which moves regions' shares by 3 to 7 % of themselves.

| data | method | told | change | besides | runs | found | share | pairs |
| --- | --- | --- | --- | --- | ---: | ---: | --- | ---: |
"""


def interval(found: int, runs: int, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of a share after Clopper and Pearson.

    Examples
    --------
    >>> [round(end, 4) for end in interval(0, 1000)]
    [0.0, 0.0037]
    """
    tail = (1 - level) / 2
    low = 0.0 if found == 0 else float(beta.ppf(tail, found, runs - found + 1))
    high = 1.0 if found == runs else float(beta.ppf(1 - tail, found + 1, runs - found))
    return low, high


def write(rows: Sequence[Row], folder: Path) -> None:
    """Write the page."""
    text = _FRONT + _crowds([row for row in rows if row["setting"]["part"] == "crowds"])
    for part, heading in (("quiet", _QUIET), ("changed", _CHANGED), ("limits", _LIMITS)):
        of_part = [row for row in rows if row["setting"]["part"] == part]
        if of_part:
            text += heading + "".join(map(_quiet if part == "quiet" else _changed, of_part))
    (folder / PAGE).write_text(text, encoding="utf-8")


def _crowds(rows: list[Row]) -> str:
    """Return the part of crowds: where it fails, then a line for each, the worst first."""
    if not rows:
        return ""
    lines = []
    for told in TOLD:
        failing = [row for row in rows if _least(row, told) > row["setting"]["rate"]]
        by_scores, by_labels, right = (
            sum(_alarms(row, told, look, name) for row in rows for look in LOOKS)
            for name in ("scores", "calibration", "off")
        )
        runs = len(LOOKS) * sum(row["runs"] for row in rows)
        where = f" {'; '.join(map(_crowd, failing))}." if failing else ""
        lines.append(
            f"- **Told {told}**: surely too often in {len(failing)} of {len(rows)} rows"
            f"{':' if failing else '.'}{where} Of {runs:,} looks scores alarmed in {by_scores} and "
            f"labels in {by_labels}; {right} of the latter were right.\n"
        )
    for people in sorted({row["setting"]["use"] for row in rows}):
        of_size = [row for row in rows if row["setting"]["use"] == people]
        by_look = [sum(_alarms(row, "people", look) for row in of_size) for look in LOOKS]
        runs = sum(row["runs"] for row in of_size)
        shares = "; ".join(
            f"{look} {count}, {_share(count, runs)}"
            for look, count in zip(LOOKS, by_look, strict=True)
        )
        lines.append(
            f"- Told people, {people} in use, {len(of_size)} crowd{'s' * (len(of_size) > 1)}, "
            f"{runs:,} runs: {shares}.\n"
        )
    rows = sorted(rows, key=lambda row: [-_least(row, told) for told in TOLD])
    return _CROWDS + "".join(lines) + _CROWD_TABLE + "".join(map(_crowd_line, rows))


def _crowd(row: Row) -> str:
    return f"{row['setting']['crowd']} ({_people(row)})"


def _people(row: Row) -> str:
    both = row["setting"]["calibration"], row["setting"]["use"]
    return " → ".join(map(str, dict.fromkeys(both)))


def _alarms(row: Row, told: str, look: str, name: str = "any") -> int:
    return int(row["alarms"][f"{told}, {look}"].get(name, 0))


def _most(row: Row, told: str) -> int:
    return max(_alarms(row, told, look) for look in LOOKS)


def _least(row: Row, told: str) -> float:
    """Return the lower end of the interval of a rate, of the look with more alarms."""
    return interval(_most(row, told), row["runs"])[0]


def _crowd_line(row: Row) -> str:
    cells = []
    for told in TOLD:
        low, high = interval(_most(row, told), row["runs"])
        counts = ", ".join(str(_alarms(row, told, look)) for look in LOOKS)
        cell = f"{counts} ({low:.1%}–{high:.1%})"
        cells.append(f"**{cell}**" if low > row["setting"]["rate"] else cell)
    scores = ", ".join(
        str(max(_alarms(row, told, look, "scores") for look in LOOKS)) for told in TOLD
    )
    front = f"| {row['setting']['crowd']} | {_people(row)} | {row['runs']} |"
    return f"{front} {' | '.join(cells)} | {scores} |\n"


def _besides(stream: dict[str, Any]) -> str:
    parts = []
    if stream["quiet"]:
        parts.append(f"after {stream['quiet']:,} quiet pairs")
    if stream["use"]:
        parts.append(f"{stream['use']} people in use")
    if stream["genuine_share"]:
        parts.append(f"1 genuine pair in {round(1 / stream['genuine_share']):,}")
    if stream["labels"]:
        parts.append(f"labels of {stream['labels']:.0%}")
    if not stream["in_order"]:
        parts.append("a table, looked at once")
    return ", ".join(parts)


def _share(found: int, runs: int) -> str:
    low, high = interval(found, runs)
    return f"{found / runs:.1%} ({low:.1%}–{high:.1%})"


def _front(row: Row) -> str:
    setting = row["setting"]
    return f"| {setting['preset']} | {setting['method']} | {setting['stream']['known']} |"


def _quiet(row: Row) -> str:
    runs, found = row["runs"], row["any"]
    besides = _besides(row["setting"]["stream"])
    return f"{_front(row)} {besides} | {runs:,} | {found} | {_share(found, runs)} |\n"


def _changed(row: Row) -> str:
    runs, found, stream = row["runs"], row["any"] - row["early"], row["setting"]["stream"]
    what = f" {_CHANGES[stream['change']]} | {_besides(stream)} | {runs} | {found} |"
    pairs = "" if row["median_pairs"] is None else f"{row['median_pairs']:,}"
    return f"{_front(row)}{what} {_share(found, runs)} | {pairs} |\n"
