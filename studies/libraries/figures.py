"""What was measured beside other libraries, in words and tables."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from scipy.stats import binom

from studies.words import table

Row = Mapping[str, Any]
#: Of lines.
WIDTH = 116
_KEPT, _SPACE = re.compile(r"`[^`]+`|\d %"), "\N{UNIT SEPARATOR}"

_MAPS = """\
{pairs:,} pairs (`faircal simulate bfw-like`) to fit on, a quarter as many to apply the maps to.
Time: processor seconds of one fit, its and ours, and how many times as long it takes. Isotonic: all
three call scikit-learn's `isotonic_regression`, so that the same comes out by construction; times
differ by what each does around it."""
_INTERVALS = """\
{people} people, {imposters:,} imposter pairs, a threshold with a true FPR of {fpr}; {draws} times
with other people. Of {draws} intervals that are right, {few} to {many} hold by chance. Bootstrap:
{bootstraps} draws of rows. The interval over people is {width:.1f} times as wide."""
_PROMISES = """\
Such people and pairs, {draws} times; and as many pairs of which no two share a person. Asked for
was P(FPR ≤ {fpr}) ≥ {confidence}, so of {draws} promises {allowed} may be broken, and by chance up
to {most}. MAPIE tried {thresholds} thresholds."""
_KINDS = {"sharing": "share people", "apart": "share nobody"}
_PROCEDURES = {
    "bonferroni_holm": "MAPIE {version}, default",
    "fixed_sequence": "MAPIE {version}, `fixed_sequence`",
}


def measured_parts(rows: Sequence[Row]) -> dict[str, str]:
    """Return the parts of the page that tell what was measured."""
    found = {(row["name"], row["library"]): row for row in rows}
    if not found:
        return {}
    return {
        "maps": _maps([found["maps", name] for name in ("scikit-learn", "netcal")]),
        "same": _same(found),
        "intervals": _intervals(found["coverage", "fairlearn"]),
        "promises": _promises(found["promises", "mapie"]),
    }


def _maps(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        for name, each in row["values"]["maps"].items():
            seconds, ours = each["seconds"], each["ours"]
            took = f"{seconds:.3f} / {ours:.3f} = {seconds / ours:.1f}"
            who = f"{row['library']} {row['version']}"
            lines.append((name, who, tiny(each["apart"]), took))
    told = table(("Map", "Library", "Difference", "Time"), lines, text=4)
    return _with(told, _MAPS.format(pairs=rows[0]["values"]["pairs"]))


def _with(told: str, note: str) -> str:
    return f"{told}\n\n{wrapped(note)}"


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def _same(found: Mapping[tuple[str, str], Row]) -> str:
    rates, ks = found["rates", "fairlearn"], found["ks", "mapie"]
    lir, bob = found["costs", "lir"], found["costs", "bob"]
    lines = [
        ("FPR by group", f"Fairlearn {rates['version']}", tiny(rates["values"]["apart"])),
        ("KS", f"MAPIE {ks['version']}, not scaled", tiny(ks["values"]["apart"])),
        ("Cllr", f"LiR {lir['version']}", tiny(lir["values"]["apart"]["cllr"])),
        ("Cllr", f"bob {bob['version']}", tiny(bob["values"]["apart"]["cllr"])),
        ("minimum Cllr", f"LiR {lir['version']}", tiny(lir["values"]["apart"]["minimum"])),
    ]
    return table(("Figure", "Library", "Difference"), lines, text=3)


def _intervals(row: Row) -> str:
    values = row["values"]
    draws, level = values["draws"], values["confidence"]
    lines = [
        (f"Fairlearn {row['version']}, bootstrap of rows", _of(values["theirs"], values)),
        ("faircal, over people", _of(values["ours"], values)),
    ]
    few, many = (int(end) for end in binom.interval(0.95, draws, level))
    told = {**values, "fpr": _percent(values["fpr"]), "few": few, "many": many}
    title = f"Intervals at {_percent(level)}"
    return _with(table((title, "Held the true FPR"), lines), _INTERVALS.format(**told))


def _promises(row: Row) -> str:
    values = row["values"]
    draws, risk = values["draws"], 1 - values["confidence"]
    lines = []
    for kind, title in _KINDS.items():
        each = values[kind]
        told = {
            procedure.format(version=row["version"]): each["theirs"][name]
            for name, procedure in _PROCEDURES.items()
        }
        told["faircal"] = each["ours"]
        lines += [
            (title, who, _of(found["broken"], values), _percent(found["rate"], 1))
            for who, found in told.items()
        ]
    header = ("Pairs", "Who promised", "Broken", "Mean FPR")
    note = _PROMISES.format(
        draws=draws,
        fpr=_percent(values["fpr"]),
        confidence=_percent(values["confidence"]),
        allowed=round(draws * risk),
        most=int(binom.ppf(0.99, draws, risk)),
        thresholds=values["thresholds"],
    )
    return _with(table(header, lines, text=2), note)


def _of(count: int, values: Row) -> str:
    return f"{count} of {values['draws']}"


def wrapped(text: str, first: str = "", rest: str = "") -> str:
    """Break lines, but neither code nor a number from its %."""
    whole = _KEPT.sub(lambda found: found[0].replace(" ", _SPACE), " ".join(text.split()))
    lines = textwrap.fill(
        whole,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines.replace(_SPACE, " ")


def tiny(value: float) -> str:
    """Say how large a difference is.

    Examples
    --------
    >>> tiny(0.0), tiny(1e-16), tiny(2.86e-9), tiny(0.25)
    ('none', 'rounding', '3 × 10⁻⁹', '0.25')
    """
    if value == 0:
        return "none"
    if value < 1e-14:
        return "rounding"
    if value > 1e-3:
        return f"{value:.2g}"
    front, exponent = f"{value:.0e}".split("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{front} × 10{raised}"
