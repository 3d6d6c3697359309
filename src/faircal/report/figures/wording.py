"""What things are called in figures, captions and alternative texts."""

from __future__ import annotations

from collections.abc import Iterable

from faircal.metrics import FAIRNESS, METRICS
from faircal.metrics.results import GLOBAL, Condition
from faircal.report.tables import method_title

ALL_PAIRS = "all pairs"
#: What is neither in the registry of metrics nor over groups.
_TITLES = {"cllr": "Cllr", "min_cllr": "Min. Cllr"}


def percent(value: float) -> str:
    """Print a fraction: three digits, percent.

    Examples
    --------
    >>> percent(0.0123), percent(0.00004), percent(1), percent(float("nan"))
    ('1.23 %', '0.004 %', '100 %', 'not known')
    """
    return f"{100 * value:.3g} %" if value == value else "not known"


def titled(title: str, name: str) -> str:
    """Return a title with whose it is, where that says anything."""
    return title if name == method_title("") else f"{title}: {name}"


def group_name(group: str) -> str:
    """Return what a group is called."""
    return ALL_PAIRS if group == GLOBAL else group


def listed(values: dict[str, float]) -> str:
    """Return values by group in words."""
    return ", ".join(f"{group_name(group)} {percent(value)}" for group, value in values.items())


def left_out(groups: Iterable[str], why: str) -> str:
    """Return a sentence about groups that are not drawn, or nothing."""
    names = ", ".join(map(group_name, groups))
    return f" Not drawn, {why}: {names}." if names else ""


def metric_title(metric: str, condition: str = "", by: str = "") -> str:
    """Return what a metric of ``results.csv`` is called, under its condition.

    Examples
    --------
    >>> metric_title("ks_aad"), metric_title("auroc"), metric_title("tpr", "fpr=0.001")
    ('KS AAD', 'AUROC', 'TPR at 0.1 % FPR')
    >>> metric_title("fpr", "global_fpr=0.01", by=" by group")
    'FPR by group at 1 % global FPR'
    >>> metric_title("fpr_max_geomean"), metric_title("ir"), metric_title("min_cllr")
    ('FPR max / geometric mean', 'Inequity rate', 'Min. Cllr')
    """
    return _titled(metric) + by + _at(condition)


def _titled(metric: str) -> str:
    if metric in _TITLES:
        return _TITLES[metric]
    if metric in FAIRNESS:
        return FAIRNESS[metric].title
    name, _, over = metric.partition("_")
    title = METRICS[name].title if name in METRICS else name.upper()
    if over in FAIRNESS:
        return f"{title} {FAIRNESS[over].title}"
    return f"{title} {'mean' if over == 'mean' else over.upper()}" if over else title


def _at(condition: str) -> str:
    """Return a condition in words, ``global_fpr=0.01`` → `` at 1 % global FPR``."""
    if not condition:
        return ""
    under = Condition.of(condition)
    everyone = "global " if under.kind.startswith("global_") else ""
    return f" at {percent(under.rate)} {everyone}{under.metric.upper()}"
