"""``docs/study-classes.md``, from the kept rows alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from studies.classes.pictures import draw
from studies.classes.tally import HELPS, HURTS, UNCLEAR, Difference, Key, Row, Tally
from studies.classes.words import HEAD, HOW, PLAIN, SETS
from studies.words import between, number, signed, table

PAGE = "study-classes.md"
FAIRCAL, GLOBAL, ORACLE = "dirichlet/faircal", "dirichlet/global", "dirichlet/oracle"
_SHOWN = {
    "uncalibrated": "uncalibrated",
    GLOBAL: "global",
    FAIRCAL: "FairCal",
    "dirichlet/groupwise": "group-wise",
    ORACLE: "Oracle",
}
#: Title, factor and digits of a measure in tables.
_SCALES = {
    "nll": ("NLL, 10⁻³", 1000.0, 1),
    "top_ks_mean": ("KS mean, %", 100.0, 2),
    "top_ks_aad": ("KS AAD, %", 100.0, 2),
    "class_ks_mean": ("class KS mean, %", 100.0, 2),
    "excess": ("excess, 10⁻³", 1000.0, 1),
}
#: What the pictures show, for those who can't see them.
_WORDS = (
    "Differences of each set and model with intervals: FairCal less uncalibrated, FairCal less "
    "global, Oracle less global"
)
_MEASURES = ("nll", "top_ks_mean", "top_ks_aad", "class_ks_mean")


def write(rows: Iterable[Row], docs: Path) -> None:
    """Write the page and its pictures into `docs`."""
    tally = Tally(rows)
    docs.mkdir(parents=True, exist_ok=True)
    pictures = draw(tally, docs / "images")
    (docs / PAGE).write_text(page(tally, pictures), encoding="utf-8")


def page(tally: Tally, pictures: Sequence[str]) -> str:
    """Return the page, Markdown; `pictures` are names of files."""
    keys = tally.keys(tuple(SETS))
    shown = "".join(f"![{_WORDS}](images/{name})\n\n" for name in pictures)
    texts = [
        HEAD,
        f"## What came out\n\n{_summary(tally, keys)}\n\n{PLAIN}",
        f"{shown}{_verdicts(tally, keys)}\n",
        HOW,
        f"## The sets\n\n{_sets(tally, keys)}\n",
        f"## Values\n\n{_values(tally, keys)}\n",
        _against(tally, keys, FAIRCAL, "uncalibrated", "FairCal − uncalibrated"),
        _against(tally, keys, FAIRCAL, GLOBAL, "FairCal − global"),
        _against(
            tally, keys, ORACLE, GLOBAL, "Oracle − global: what knowing the groups would give"
        ),
        _clusters(tally, keys),
        _temperature(tally, keys),
        _groups(tally, keys),
        _truth(tally, keys),
    ]
    return "\n".join(text for text in texts if text)


def _summary(tally: Tally, keys: Sequence[Key]) -> str:
    """How often FairCal helps, in sentences."""
    sides = (("uncalibrated", "uncalibrated probabilities"), (GLOBAL, "one map for all"))
    lines = []
    for other, title in sides:
        parts = []
        for metric in _MEASURES[:3]:
            found = Counter(tally.difference(k, FAIRCAL, other, metric).verdict for k in keys)
            name = _SCALES[metric][0].split(",")[0]
            parts.append(f"{name} {found[HELPS]}, {found[UNCLEAR]}, {found[HURTS]}")
        lines.append(f"- against {title}: {'; '.join(parts)}")
    head = f"Of {len(keys)} pairs of set and classifier, FairCal (K = 20, Dirichlet) helps, makes "
    head += "no clear difference, hurts in"
    return head + "\n\n" + "\n".join(lines)


def _verdicts(tally: Tally, keys: Sequence[Key]) -> str:
    header = ["set", "classifier", "against uncalibrated: KS mean", "NLL"]
    header += ["against global: KS mean", "NLL", "Oracle against global: KS mean"]
    header += ["splits in which FairCal is the global map"]
    lines = []
    for key in keys:
        cells = [
            tally.difference(key, a, b, metric).verdict
            for a, b, metric in (
                (FAIRCAL, "uncalibrated", "top_ks_mean"),
                (FAIRCAL, "uncalibrated", "nll"),
                (FAIRCAL, GLOBAL, "top_ks_mean"),
                (FAIRCAL, GLOBAL, "nll"),
                (ORACLE, GLOBAL, "top_ks_mean"),
            )
        ]
        same = tally.same(key, FAIRCAL, GLOBAL)
        lines.append([*key, *cells, f"{same} of {len(tally.rows[key])}"])
    return table(header, lines, text=len(header))


def _sets(tally: Tally, keys: Sequence[Key]) -> str:
    header = ["set", "kind", "predicts", "hidden", "unit", "source", "rows", "units", "groups"]
    lines = []
    for name in dict.fromkeys(key[0] for key in keys):
        row = next(tally.rows[key][0] for key in keys if key[0] == name)
        sizes = [f"{sum(row['rows']):,}", f"{row['units']:,}", str(len(row["groups"]))]
        lines.append([name, *SETS[name], *sizes])
    return table(header, lines, text=6)


def _values(tally: Tally, keys: Sequence[Key]) -> str:
    """Means over splits, a table a measure."""
    texts = []
    for metric in _MEASURES:
        title, factor, digits = _SCALES[metric]
        chance = metric == "top_ks_mean"
        header = ["set", "classifier", *_SHOWN.values(), *(["chance"] if chance else [])]
        lines = []
        for key in keys:
            found = [tally.mean(key, name, metric) for name in _SHOWN]
            found += [tally.mean(key, FAIRCAL, "floor")] if chance else []
            lines.append([*key, *(number(factor * value, digits) for value in found)])
        texts.append(f"### {title}\n\n{table(header, lines, text=2)}")
    return "\n\n".join(texts)


def _against(tally: Tally, keys: Sequence[Key], a: str, b: str, title: str) -> str:
    header = ["set", "classifier"]
    for metric in _MEASURES:
        header += [_SCALES[metric][0], "95 %", "within"]
    lines = []
    for key in keys:
        cells: list[str] = []
        for metric in _MEASURES:
            cells += _cells(tally.difference(key, a, b, metric), metric)
        lines.append([*key, *cells])
    return f"## {title}\n\n{table(header, lines, text=2)}\n"


def _cells(found: Difference, metric: str) -> list[str]:
    _, factor, digits = _SCALES[metric]
    ends = between((factor * found.low, factor * found.high), digits)
    said = signed(factor * found.mean, digits)
    # Bold is what is clear: it can be found without reading every interval.
    shown = said if found.verdict == UNCLEAR else f"**{said}**"
    return [shown, ends, number(factor * found.within, digits)]


def _clusters(tally: Tally, keys: Sequence[Key]) -> str:
    clusters = {"5": "-5", "20": "", "50": "-50"}
    header = ["set", "classifier", *(f"KS mean, K = {k}" for k in clusters)]
    header += [f"NLL, K = {k}" for k in clusters]
    lines = [
        [
            *key,
            *(
                _cells(tally.difference(key, FAIRCAL + suffix, GLOBAL, metric), metric)[0]
                for metric in ("top_ks_mean", "nll")
                for suffix in clusters.values()
            ),
        ]
        for key in keys
    ]
    about = (
        "Differences to the global map (KS mean in %, NLL in 10⁻³); bold where the interval is\n"
    )
    about += "on one side of 0."
    return f"## Other numbers of clusters\n\n{about}\n\n{table(header, lines, text=2)}\n"


def _temperature(tally: Tally, keys: Sequence[Key]) -> str:
    header = [
        "set",
        "classifier",
        "KS mean, %",
        "95 %",
        "NLL, 10⁻³",
        "95 %",
        "Oracle: KS mean",
        "NLL",
    ]
    lines = []
    for key in keys:
        cells: list[str] = []
        for metric in ("top_ks_mean", "nll"):
            found = tally.difference(key, "temperature/faircal", "temperature/global", metric)
            cells += _cells(found, metric)[:2]
        for metric in ("top_ks_mean", "nll"):
            found = tally.difference(key, "temperature/oracle", "temperature/global", metric)
            cells.append(_cells(found, metric)[0])
        lines.append([*key, *cells])
    about = "One temperature a cluster (or a group) against one for all."
    return (
        f"## Temperature scaling: FairCal − global\n\n{about}\n\n{table(header, lines, text=2)}\n"
    )


def _groups(tally: Tally, keys: Sequence[Key]) -> str:
    header = [
        "set",
        "classifier",
        "group",
        "test rows",
        "uncalibrated",
        "global",
        "FairCal",
        "Oracle",
    ]
    names = ("uncalibrated", GLOBAL, FAIRCAL, ORACLE)
    lines = []
    for key in keys:
        for group, size in tally.rows[key][0]["groups"].items():
            found = [number(100 * tally.group(key, name, group), 2) for name in names]
            lines.append([*key, group, f"{size:,}", *found])
    return f"## KS of each group, %\n\n{table(header, lines, text=3)}\n"


def _truth(tally: Tally, keys: Sequence[Key]) -> str:
    known = [key for key in keys if "excess" in tally.rows[key][0]["values"][GLOBAL]]
    if not known:
        return ""
    header = ["set", *_SHOWN.values(), "FairCal − global", "95 %"]
    lines = []
    for key in known:
        found = [number(1000 * tally.mean(key, name, "excess"), 1) for name in _SHOWN]
        gap = _cells(tally.difference(key, FAIRCAL, GLOBAL, "excess"), "excess")[:2]
        lines.append([key[0], *found, *gap])
    about = "NLL above that of the true probabilities, in 10⁻³: what is left to gain."
    return f"## Where the truth is known\n\n{about}\n\n{table(header, lines)}\n"
