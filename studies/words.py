"""Markdown: tables, numbers, the names of metrics and sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

TITLES = {
    "auroc": "AUROC",
    "tpr@0.001": "TPR@0.1%",
    "tpr@0.01": "TPR@1%",
    "nll": "NLL",
    "ks": "KS global",
    "ks_mean": "KS mean",
    "ks_aad": "KS AAD",
    "fpr_aad@0.001": "FPR AAD@0.1%",
    "fpr_aad@0.01": "FPR AAD@1%",
    "fpr_mad@0.01": "FPR MAD@1%",
}
#: Two metrics stand for fairness: calibration within groups, and equal false positives.
FAIR = ("ks_mean", "fpr_aad@0.01")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], text: int = 1) -> str:
    """Return a table; all columns after the first `text` are of numbers."""
    lines = [header, ["---"] * text + ["---:"] * (len(header) - text), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def number(value: float, digits: int = 2) -> str:
    """Return a number as tables show it; a dash where there is none.

    Examples
    --------
    >>> number(0.456), number(float("nan"))
    ('0.46', '–')
    """
    return "–" if np.isnan(value) else f"{value:.{digits}f}".replace("-", "−")


def signed(value: float, digits: int = 2) -> str:
    """Return a number with its sign.

    Examples
    --------
    >>> signed(0.5), signed(-0.25)
    ('+0.50', '−0.25')
    """
    return "–" if np.isnan(value) else f"{value:+.{digits}f}".replace("-", "−")


def between(interval: tuple[float, float], digits: int = 2) -> str:
    """Return the ends of an interval.

    Examples
    --------
    >>> between((-0.25, 1.5)), between((float("nan"), float("nan")))
    ('−0.25 to 1.50', '–')
    """
    low, high = interval
    return "–" if np.isnan(low) else f"{number(low, digits)} to {number(high, digits)}"


def percent(value: float) -> str:
    """Return a share as tables show it.

    Examples
    --------
    >>> percent(91.6)
    '92 %'
    """
    return "–" if np.isnan(value) else f"{number(value, 0)} %"
