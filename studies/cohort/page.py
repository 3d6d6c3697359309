"""The page of the study and its picture, from what is kept alone."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from faircal.methods import METHODS
from studies.cohort.conditions import REAL, SIMULATED, Cell
from studies.cohort.tally import METRICS, Condition, Tally
from studies.cohort.words import CAME_OUT, FAILS, FRONT, SECTIONS
from studies.words import TITLES, between, number, table

PAGE, PICTURE = "study-cohort.md", "study-cohort-groups.png"
DLIB = Condition("lfw-dlib")
_SHOWN = ("baseline", "faircal", "smooth", "snorm", "asnorm", "falcon", "dsn", "oracle", "cohort")
_COMPARED = ("cohort", "smooth", "faircal")
_PROTOCOLS = ("given", "random", "matched", "hard")
_FAIR = ("ks_mean", "fpr_aad@0.01")
#: Titles of what `_highest` gives.
_HIGHEST = ("highest FPR, Baseline", "highest FPR")
#: Shown apart, by group.
_WITHOUT = "36 without "


def write(rows: Mapping[Cell, Mapping[str, Any]], folder: Path) -> None:
    """Write the page and draw its picture."""
    tally = Tally(rows)
    (folder / PAGE).write_text(page(tally), encoding="utf-8")
    draw(tally, folder / "images")


def page(tally: Tally) -> str:
    """Return the page."""
    parts = {
        "both": _both(tally),
        "intervals": _intervals(tally),
        "protocols": _protocols(tally),
        "sizes": _sizes(tally),
        "conditions": _conditions(tally),
        "missing": _missing(tally),
        "norms": _norms(tally),
        "people": _people(tally),
        "simulated": _simulated(tally),
        "worse": _worse(tally),
    }
    sections = "\n".join(
        f"{SECTIONS[name]}\n{text}\n" for name, text in parts.items() if text.count("\n") > 1
    )
    front = FRONT.replace("{CAME_OUT}", CAME_OUT.strip())
    fails = FAILS.replace("{LEFT_OUT}", _harmed(tally))
    all_of_them = f"{SECTIONS['all']}\n{_differences(tally)}\n"
    return f"{_filled(tally, front)}\n{sections}\n{_filled(tally, fails)}\n{all_of_them}"


def _filled(tally: Tally, text: str) -> str:
    """Put numbers where the prose names them."""

    def value(match: re.Match[str]) -> str:
        gap, data, protocol, cohort, people, method, metric = match.groups()
        at, (what, _, group) = (
            Condition(data, protocol, cohort, int(people)),
            metric.partition(" of "),
        )
        if gap:
            return str(tally.difference(at, method, metric))
        if metric == "warned":
            return tally.warned(at, method)
        if metric == "kinds":
            return str(sum(row["kinds"].count("plain") for row in tally.of(at, method)))
        if group:
            return number(tally.by_group(at, method, ("fpr", "ks").index(what))[group], 1)
        return number(tally.mean(at, method, metric))

    filled = re.sub(r"\{(Δ ?)?" + r"\|".join([r"([^|{}]+)"] * 6) + r"\}", value, text)
    return "\n\n".join(map(_wrapped, filled.split("\n\n")))


def _wrapped(block: str) -> str:
    """Wrap a paragraph, or each item of a list, anew."""
    if block.lstrip().startswith(("#", "![")):
        return block
    hanging = "  " if block.lstrip().startswith("- ") else ""
    fill = partial(textwrap.fill, width=100, subsequent_indent=hanging,
                   break_long_words=False, break_on_hyphens=False)  # fmt: skip
    return "\n".join(fill(" ".join(item.split())) for item in re.split(r"\n(?=- )", block)) + (
        "\n" if block.endswith("\n") else ""
    )


def title(method: str) -> str:
    """Return what a method is called, and whether it knows groups."""
    known = METHODS[method]
    groups = known.needs.groups_to_fit or known.needs.groups_to_apply
    return known.title + (" (knows groups)" if groups else "")


def _values(tally: Tally, at: Condition, method: str) -> list[str]:
    return [number(tally.mean(at, method, metric)) for metric in METRICS]


def _row(tally: Tally, at: Condition, method: str, *first: str) -> list[str]:
    """Return a row: what stands first, values, differences, how many seeds."""
    values, gaps = _values(tally, at, method), _gaps(tally, at, method)
    return [*first, *values, *gaps, str(len(tally.of(at, method)))]


def _rows(rows: Sequence[Sequence[str]], *first: str) -> str:
    """Return a table of what `_row` gives, without rows of what was not run."""
    return table([*_header(*first), "seeds"], [r for r in rows if r[-1] != "0"], len(first))


def _gaps(tally: Tally, at: Condition, method: str, metrics: Sequence[str] = _FAIR) -> list[str]:
    if method == "baseline":
        return ["" for _ in metrics]
    return [str(tally.difference(at, method, metric)) for metric in metrics]


def _header(*first: str, gaps: Sequence[str] = _FAIR) -> list[str]:
    return [*first, *(TITLES[one] for one in METRICS), *(f"Δ {TITLES[one]}" for one in gaps)]


def _both(tally: Tally) -> str:
    """Both protocols on the real sets, the unlike cohort first."""
    rows, cohorts = [], (("36 moved", "an unlike cohort"), ("36", "the same collection"))
    for data in REAL:
        for protocol in ("given", "random"):
            at = Condition(data, protocol)
            rows += [_row(tally, at, m, data, protocol, title(m)) for m in _SHOWN[:-1]]
            for cohort, what in cohorts:
                name, where = f"**{title('cohort')}, {what}**", at._replace(cohort=cohort)
                rows.append(_row(tally, where, "cohort", data, protocol, name))
        at = Condition(data, "given", "none")
        for method in ("baseline", "faircal", "smooth", "dsn", "oracle"):
            name = f"{title(method)}, nobody taken out"
            rows.append(_row(tally, at, method, data, "given", name))
    return _rows(rows, "set", "calibration imposters", "method")


def _intervals(tally: Tally) -> str:
    rows = [
        [data, protocol, title(method)]
        + [between(tally.interval(at, method, metric)) for metric in ("ks", *_FAIR)]
        for data in REAL
        for protocol in ("given", "random")
        for at in [Condition(data, protocol)]
        for method in (*_COMPARED, "oracle")
    ]
    header = ["set", "calibration imposters", "method − Baseline"]
    header += [TITLES[one] for one in ("ks", *_FAIR)]
    return table(header, [row for row in rows if row[3] != "–"], 3)


def _protocols(tally: Tally) -> str:
    """Every method by protocol, one table a set and measure of fairness."""
    parts = []
    for data in REAL:
        header = ["method", *(f"{TITLES[m]}, {p}" for m in _FAIR for p in _PROTOCOLS)]
        header += [f"TPR@0.1%, {p}" for p in _PROTOCOLS]
        rows = [
            [title(method)]
            + [
                number(tally.mean(Condition(data, protocol), method, metric))
                for metric in (*_FAIR, "tpr@0.001")
                for protocol in _PROTOCOLS
            ]
            for method in _SHOWN
        ]
        parts.append(f"`{data}`:\n\n{table(header, rows)}\n")
    return "\n".join(parts)


def _size(at: Condition) -> int:
    return int(at.cohort.partition(" ")[0])


def _kinds(tally: Tally, at: Condition) -> str:
    kinds = [kind for row in tally.of(at, "cohort") for kind in row["kinds"]]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(sorted(kinds)))


def _sizes(tally: Tally) -> str:
    rows = []
    for data in (*REAL, *SIMULATED):
        there = tally.conditions(data=data, protocol="random", people=0)
        for at in sorted((one for one in there if one.cohort.isdigit()), key=_size):
            values = _values(tally, at, "cohort")
            gaps = _gaps(tally, at, "cohort", (*_FAIR, "tpr@0.001"))
            kinds = _kinds(tally, at)
            rows.append([data, at.cohort, kinds, *values, *gaps, *_highest(tally, at)])
    header = _header("set", "people a group", "map", gaps=(*_FAIR, "tpr@0.001"))
    return table([*header, *_HIGHEST], rows, 3)


def _highest(tally: Tally, at: Condition) -> list[str]:
    """Return the highest false-positive rate of a group, with Baseline and with the method."""
    both = (at.reference, "baseline"), (at, "cohort")
    rates = [tally.by_group(where, method, 0).values() for where, method in both]
    return [number(max(of, default=np.nan)) for of in rates]


def _conditions(tally: Tally) -> str:
    rows, metrics = [], (*_FAIR, "tpr@0.001")
    for data in (*REAL, *SIMULATED):
        changed = [
            at
            for at in tally.conditions(data=data, protocol="random", people=0)
            if at.cohort.partition(" ")[2].split(" ")[0] in ("out", "10", "moved")
        ]
        for at in [Condition(data), *changed] if changed else []:
            what = at.cohort.partition(" ")[2] or "as drawn"
            values, gaps = _values(tally, at, "cohort"), _gaps(tally, at, "cohort", metrics)
            rows.append([data, what, tally.warned(at, "cohort"), *values, *gaps])
    return table(_header("set", "cohort", "warned", gaps=metrics), rows, 3)


def _missing(tally: Tally) -> str:
    rows = []
    for at in _left_out(tally):
        group = at.cohort.removeprefix(_WITHOUT)
        base = at.reference
        fits = (base, "baseline"), (at, "cohort"), (at._replace(cohort="36"), "cohort")
        rates, errors = (
            [tally.by_group(where, method, what).get(group, np.nan) for where, method in fits]
            for what in (0, 1)
        )
        means = [tally.mean(where, method, "ks_mean") for where, method in fits[:2]]
        numbers = map(number, [*rates, rates[1] / max(rates[0], 1e-9), *errors])
        rows.append([at.data, group, tally.warned(at, "cohort"), *numbers,
                     *_highest(tally, at), *map(number, means)])  # fmt: skip
    header = ["set", "group left out", "warned"]
    header += ["its FPR, Baseline", "left out", "in", "left out, × Baseline's"]
    header += ["its KS, Baseline", "left out", "in"]
    return table([*header, *_HIGHEST, "KS mean, Baseline", "KS mean"], rows, 3)


def _left_out(tally: Tally) -> list[Condition]:
    there = [at for at in tally.conditions() if at.cohort.startswith(_WITHOUT)]
    return sorted(there, key=lambda at: ((*REAL, *SIMULATED).index(at.data), at.cohort))


def _harmed(tally: Tally) -> str:
    """Name groups whose rate is above 1 % and 1.5 times Baseline's where the cohort lacks them."""
    named = []
    for at in _left_out(tally):
        group = at.cohort.removeprefix(_WITHOUT)
        base = tally.by_group(at.reference, "baseline", 0)[group]
        rate = tally.by_group(at, "cohort", 0)[group]
        if rate > max(1.5 * base, 1.0):
            how = f"{number(rate, 1)} instead of {number(base, 1)} %"
            named.append(f"{_spelled(group)} (`{at.data}`, {how})")
    return ", ".join(named) or "nobody"


def _norms(tally: Tally) -> str:
    rows = []
    for cohort, what in (("36 high norm", "of high norm, too"), ("36 low norm", "of low norm")):
        at = Condition("lfw-mobilefacenet", "random", cohort)
        for method in ("baseline", "faircal", "cohort") if "high" in cohort else ("cohort",):
            name = f"{title(method)}, cohort {what}" if method == "cohort" else title(method)
            rows.append([name, *_values(tally, at, method), *_gaps(tally, at, method)])
    return table(_header("method"), [row for row in rows if row[1] != "–"])


def _people(tally: Tally) -> str:
    there = [at for at in tally.conditions() if at.people]
    rows = [
        _row(tally, at, m, at.data, str(at.people), title(m), tally.warned(at, m))
        for at in sorted(there, key=lambda at: (REAL.index(at.data), at.people))
        for m in ("baseline", *_COMPARED)
    ]
    return _rows(rows, "set", "own people", "method", "warned")


def _simulated(tally: Tally) -> str:
    rows = [
        _row(tally, Condition(data, protocol), m, data, protocol, title(m))
        for data in SIMULATED
        for protocol in _PROTOCOLS
        for m in _SHOWN
    ]
    return _rows(rows, "set", "calibration imposters", "method")


def _worse(tally: Tally) -> str:
    """Every row that is worse than Baseline by more than two standard errors."""
    rows, counted = [], dict.fromkeys(_COMPARED, 0)
    for at, method, metric in _compared(tally):
        counted[method] += 1
        gap = tally.difference(at, method, metric)
        if gap.is_worse(metric):
            people = str(at.people or "all")
            rows.append([title(method), at.data, at.protocol, at.cohort, people, TITLES[metric],
                         number(tally.mean(at.reference, "baseline", metric)),
                         number(tally.mean(at, method, metric)), str(gap),
                         tally.warned(at, method)])  # fmt: skip
    totals = []
    for method, n in counted.items():
        mine = [row for row in rows if row[0] == title(method)]
        silent = sum(row[-1] == "none" for row in mine)
        totals.append([title(method), f"{n:,}", str(len(mine)), str(silent)])
    summary = table(["method", "rows", "worse", "worse without a warning"], totals)
    header = ["method", "set", "imposters", "cohort", "own people", "measure"]
    listed = table([*header, "Baseline", "method", "difference", "warned"], rows, 6)
    return f"{summary}\n\n{listed}"


def _differences(tally: Tally) -> str:
    rows: dict[tuple[str, ...], list[str]] = {}
    for at, method, metric in _compared(tally):
        first = (title(method), *at[:3], str(at.people or "all"))
        gap = tally.difference(at, method, metric)
        told = f"**{gap}**" if gap.is_worse(metric) else str(gap)
        rows.setdefault(first, []).append(told)
    header = ["method", "set", "imposters", "cohort", "own people"]
    header += [TITLES[one] for one in METRICS]
    return table(header, [[*first, *gaps] for first, gaps in rows.items()], 5)


def _compared(tally: Tally) -> Iterator[tuple[Condition, str, str]]:
    for method in _COMPARED:
        for at in tally.conditions():
            if tally.of(at, method) and tally.of(at.reference, "baseline"):
                for metric in METRICS:
                    yield at, method, metric


def draw(tally: Tally, folder: Path) -> None:
    """Draw groups' false-positive rates where 1 % of all strangers pass."""
    base, own = (tally.by_group(DLIB, method, 0) for method in ("baseline", "cohort"))
    if not (base and own):
        return
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    order = sorted(base, key=lambda name: base[name])
    at = np.arange(len(order))
    figure, ax = plt.subplots(figsize=(8.5, 3.3))
    ax.axvline(1, color="#777777", linestyle="--", linewidth=1)
    for y, name in zip(at, order, strict=True):
        ax.plot([base[name], own[name]], [y, y], color="#cccccc", linewidth=2, zorder=1)
    for rates, colour, label in (
        (base, "#555555", "Baseline"),
        (own, "#d62728", "CohortFairCal, cohort of 36 people a group"),
    ):
        ax.scatter([rates[name] for name in order], at, s=60, color=colour, label=label, zorder=2)
        for y, name in zip(at, order, strict=True):
            ax.annotate(f"{rates[name]:.1f}", (rates[name], y), (0, 7), ha="center",
                        textcoords="offset points", fontsize=8, color=colour)  # fmt: skip
    ax.set(yticks=at, ylim=(-0.5, len(order) - 0.3), xlim=(-0.35, None))
    ax.set_yticklabels([_spelled(name) for name in order])
    ax.set_xlabel("strangers of the group who pass, %, where 1 % of all strangers pass")
    ax.legend(loc="lower right", frameon=False)
    ax.grid(visible=True, axis="x", alpha=0.3)
    figure.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / PICTURE, dpi=120, metadata={"Software": None})
    plt.close(figure)


def _spelled(group: str) -> str:
    ethnicity, _, gender = group.partition(" ")
    return f"{ethnicity} {'women' if gender == 'F' else 'men'}"
