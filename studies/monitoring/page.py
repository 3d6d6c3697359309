"""The page of the study, from what is kept alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scipy.stats import beta

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
    text = _FRONT
    for part, heading in (("quiet", _QUIET), ("changed", _CHANGED), ("limits", _LIMITS)):
        of_part = [row for row in rows if row["setting"]["part"] == part]
        if of_part:
            text += heading + "".join(map(_quiet if part == "quiet" else _changed, of_part))
    (folder / PAGE).write_text(text, encoding="utf-8")


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
