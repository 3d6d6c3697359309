"""What things are called, and numbers as people read them: in sentences, captions and figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from faircal.evaluation.classes.methods import CLASS_METHODS
from faircal.methods import METHODS
from faircal.metrics import CLASS_METRICS, DEVIATIONS, FAIRNESS, METRICS
from faircal.metrics.results import GLOBAL, Condition, Result

#: What is no share of anything: ratios, indices, costs.
_PLAIN = ("max_min", "max_geomean", "gini", "fdr", "ir", "garbe", "cllr", "min_cllr", "nll")


def is_share(metric: str) -> bool:
    """Whether a metric is a share, printed in percent; ratios, bits and losses are not.

    Examples
    --------
    >>> is_share("fpr_gap"), is_share("fpr_max_min"), is_share("cllr"), is_share("nll_mad")
    (True, False, False, False)
    """
    return not metric.endswith(_PLAIN) and not metric.startswith("nll_")


def method_title(name: str) -> str:
    """Return what a method is called; bare scores, as in audits, have no method."""
    methods = METHODS if name in METHODS else CLASS_METHODS
    return methods[name].title if name in methods else name or "scores"


def better_way(metric: str) -> str:
    """Return which way a metric is better, "" for neither; deviations over groups are lower.

    Examples
    --------
    >>> better_way("accuracy"), better_way("accuracy_mean"), better_way("accuracy_mad")
    ('higher', 'higher', 'lower')
    """
    base, _, over = metric.rpartition("_")
    if over in DEVIATIONS and over != "mean":
        return "lower"
    name = (base if over == "mean" else metric).removeprefix("top_")
    if name in CLASS_METRICS:
        return CLASS_METRICS[name].better
    return METRICS[name].better if name in METRICS else ""


def calibrator_title(name: str) -> str:
    """Return what a calibrator is called.

    Examples
    --------
    >>> calibrator_title("beta"), calibrator_title("histogram:n_bins=25")
    ('beta', 'histogram (n_bins = 25)')
    """
    kind, colon, setting = name.partition(":")
    return f"{kind} ({setting.replace('=', ' = ')})" if colon else kind


def rate_text(condition: str) -> str:
    """Print the rate of a condition, ``global_fpr=0.001`` → ``0.1 %``."""
    return f"{100 * Condition.of(condition).rate:g} %"


#: So many names are listed; of more, the first ones and how many there are.
_LISTED = 6


def percent(value: float) -> str:
    """Print a fraction as percent, with as many digits as say something near 0 and near 100.

    Examples
    --------
    >>> [percent(value) for value in (0, 0.00012, 0.0012, 0.034, 0.1431, 0.9993, 1)]
    ['0 %', '0.012 %', '0.12 %', '3.4 %', '14.3 %', '99.93 %', '100 %']
    """
    hundredfold = 100 * value
    near = min(abs(hundredfold), abs(100 - hundredfold))
    if near < 1e-9:
        return f"{hundredfold:.0f} %"
    if round(near, 2) >= 1:
        return f"{hundredfold:.1f} %"
    # Two digits that count below 1 %; above 99 %, one of what is missing.
    return f"{hundredfold:.{(hundredfold < 50) - math.floor(math.log10(near))}f} %"


def exact(value: float) -> str:
    """Print a threshold so that it reads back as the same number.

    Examples
    --------
    >>> exact(72.5), exact(73.0), exact(0.1 + 0.2)
    ('72.5', '73', '0.30000000000000004')
    """
    return repr(float(value)).removesuffix(".0")


def percentage_points(value: float) -> str:
    """Print a difference of fractions in percentage points.

    Examples
    --------
    >>> percentage_points(0.0155), percentage_points(0.004)
    ('1.6 points', '0.40 points')
    """
    return f"{percent(value).removesuffix(' %')} points"


def ranged(result: Result, text: Callable[[float], str] = percent) -> str:
    """Print a value with its interval, where it has one.

    Examples
    --------
    >>> ranged(Result(value=0.04, low=0.023, high=0.056)), ranged(Result(value=0.04))
    ('4.0 % (2.3 % to 5.6 %)', '4.0 %')
    >>> ranged(Result(value=0.016, low=0.01, high=0.02), percentage_points)
    '1.6 points (1.0 to 2.0)'
    """
    if math.isnan(result.low) or math.isnan(result.high):
        return text(result.value)
    low, high = (text(end).removesuffix(" points") for end in (result.low, result.high))
    return f"{text(result.value)} ({low} to {high})"


def times(ratio: float, down: bool = False) -> str:
    """Print how many times; never more than it is where it is to be rounded `down`.

    Examples
    --------
    >>> times(14.04), times(2.98), times(2.98, down=True)
    ('14', '3.0', '2.9')
    """
    digits = 0 if ratio >= 10 else 1
    if down:
        ratio = math.floor(ratio * 10**digits) / 10**digits
    return f"{ratio:,.{digits}f}"


def listing(names: Iterable[str]) -> str:
    """Print names in a row; of many only some, and how many more there are.

    Examples
    --------
    >>> listing(["A"]), listing("ABC"), listing("ABCDEFGHI")
    ('A', 'A, B and C', 'A, B, C, D, E, F and 3 more')
    """
    every = list(names)
    shown = every[:_LISTED]
    if len(every) > len(shown):
        shown.append(f"{len(every) - len(shown)} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


ALL_PAIRS = "all pairs"
#: What is neither in the registry of metrics nor over groups.
_TITLES = {"cllr": "Cllr", "min_cllr": "Min. Cllr"}


def rounded(value: float) -> str:
    """Print a fraction in percent, rounded to three digits.

    Examples
    --------
    >>> rounded(0.0123), rounded(0.00004), rounded(1), rounded(float("nan"))
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
    return ", ".join(f"{group_name(group)} {rounded(value)}" for group, value in values.items())


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
    base, _, over = metric.rpartition("_")
    name, _, measure = metric.partition("_")
    if metric in _TITLES:
        title = _TITLES[metric]
    elif metric in FAIRNESS or metric in CLASS_METRICS:
        title = (FAIRNESS if metric in FAIRNESS else CLASS_METRICS)[metric].title
    elif base in CLASS_METRICS and over in DEVIATIONS:
        title = f"{CLASS_METRICS[base].title} {'mean' if over == 'mean' else over.upper()}"
    elif name == "top" and measure:  # a metric of pairs, put to the top label
        title = f"Top-label {metric_title(measure)}"
    else:
        title = METRICS[name].title if name in METRICS else name.upper()
        if measure:
            over_groups = "mean" if measure == "mean" else measure.upper()
            title += f" {FAIRNESS[measure].title if measure in FAIRNESS else over_groups}"
    if not condition:
        return title + by
    under = Condition.of(condition)
    everyone = "global " if under.kind.startswith("global_") else ""
    return f"{title}{by} at {rate_text(condition)} {everyone}{under.metric.upper()}"
