"""What ``faircal threshold`` prints: what is measured and what is promised at the threshold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from faircal.cli.options import print_table, printable

if TYPE_CHECKING:
    from rich.table import Table

    from faircal.cli.threshold_found import Found
    from faircal.evaluation.audit.operating import OperatingRates
    from faircal.evaluation.thresholds.guarantee import Guarantee, GuaranteeRow

_SCOPES = {"global": "all pairs", "groups": "every group", "clusters": "every cluster"}


def show(found: Found, attribute: str) -> None:
    """Print the tables, then the threshold or why there is none; `attribute` makes the groups."""
    chosen = found.chosen
    if found.rates:
        title = f"{found.data.name}: measured at threshold {_number(chosen.told_threshold)}"
        print_table(_measured(found, f"{title}, percent", attribute))
    print_table(_promised(chosen))
    why = [f"{row.name} is {row.status}" for row in chosen.refused]
    for text in [*why, *found.resolution(), *_meant(found), *_words(chosen)]:
        click.echo(printable(text))


def _table(title: str, first: str, names: tuple[str, ...]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    # Names come from the data: as text they can't be taken for markup.
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), title=Text(printable(title)))
    table.add_column(Text(printable(first)), overflow="fold")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _measured(found: Found, title: str, attribute: str) -> Table:
    from rich.text import Text

    names = ("people", "imposters", "FPR (interval)", "genuine", "FNR (interval)", "TPR")
    table = _table(title, attribute, names)
    for row in found.rates:
        table.add_row(Text(printable(row.name)), *_rates(row))
    return table


def _rates(row: OperatingRates) -> list[str]:
    from faircal.metrics.intervals.enough import NOT_ENOUGH

    def rate(value: float, low: float, high: float) -> str:
        if math.isnan(value):
            return NOT_ENOUGH
        return f"{_percent(value)} ({_percent(low)} to {_percent(high)})"

    return [
        "–" if row.people is None else str(row.people),
        str(row.imposters),
        rate(row.fpr, row.fpr_low, row.fpr_high),
        str(row.genuine),
        rate(row.fnr, row.fnr_low, row.fnr_high),
        _percent(1 - row.fnr),
    ]


def _promised(chosen: Guarantee) -> Table:
    from rich.text import Text

    promised = chosen.rule == "promised"
    what = "promised" if promised else "counted, not promised"
    title = f"FPR of {100 * chosen.fpr:g} %, {what}, at {100 * chosen.confidence:g} % confidence"
    names = ("effective people", "imposters", "errors", "FPR", "at most", "own threshold", "is")
    table = _table(title, chosen.scope, names)
    for row in chosen.rows:
        table.add_row(Text(printable(row.name)), *_cells(row))
    return table


def _cells(row: GuaranteeRow) -> list[str]:
    from faircal.metrics.intervals.enough import NOT_ENOUGH

    told = not math.isnan(row.rate)
    return [
        f"{row.effective_people:.0f}",
        str(row.imposters),
        str(row.errors) if told else "–",
        NOT_ENOUGH if NOT_ENOUGH in row.status else _percent(row.rate),
        _percent(row.upper),
        _number(row.own_threshold),
        row.status.partition(":")[0],
    ]


def _meant(found: Found) -> list[str]:
    """Say what the threshold is as a likelihood ratio and as a probability."""
    meaning = found.meaning
    if meaning is None:
        return []
    share = f"the fit's share of genuine pairs ({meaning.calibrated_at:.3g})"
    ratio, likely = meaning.log_likelihood_ratio, f"{meaning.probability:.4g}"
    at = f"at the threshold: log-likelihood ratio {ratio:.3f}, probability {likely} at {share}"
    if meaning.prior is None:
        return [at]
    return [at, f"probability {meaning.at_prior:.4g} at a share of {meaning.prior:g} (--prior)"]


def _words(found: Guarantee) -> list[str]:
    from faircal.metrics.intervals.enough import NOT_ENOUGH

    sure, rate = f"{100 * found.confidence:g} %", f"{100 * found.fpr:g} %"
    where = _SCOPES[found.scope]
    names = ", ".join(row.name for row in found.refused)
    if found.rule == "measured":
        if names:
            return [
                f"no threshold has a counted FPR of {rate} that can be told: refused for {names}"
            ]
        at_most = f"{100 * found.rows[0].upper:.3g} %"
        said = f"FPR of at most {rate} counted in all pairs, not promised: with {sure} confidence"
        return [f"{said} it is at most {at_most}", f"threshold: {found.threshold!r}"]
    if not names:
        how = " (extrapolated)" if found.extrapolated else ""
        promise = f"FPR at most {rate} in {where}, with {sure} confidence{how}"
        return [promise, f"threshold: {found.threshold!r}"]
    words = [f"no threshold promises an FPR of at most {rate} in {where}: refused for {names}"]
    if not math.isnan(found.told_threshold):
        words.append(f"for the others alone: {found.told_threshold!r}")
    if not any(NOT_ENOUGH in row.status for row in found.refused):
        words.append(f"--rule measured promises nothing and takes a counted FPR of {rate}")
    return words


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.3g}"


def _number(value: float) -> str:
    """Return a threshold with five digits, rounded up: a higher one is as safe."""
    return "–" if math.isnan(value) else f"{math.ceil(value * 1e5) / 1e5:.5f}"
