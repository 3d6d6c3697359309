"""What ``faircal compare`` says of SmoothFairCal on two real networks, written down by hand."""

from __future__ import annotations

from studies.words import TITLES, signed, table

_ABOUT = """\
SmoothFairCal as it is now less another method, seed 0, imposters within groups, nobody taken out,
on two real networks: that of this page, and the same pictures through dlib's. Made by `faircal
benchmark DATA --methods baseline,faircal,smooth,oracle --attribute ethnicity+gender --out run`,
then `faircal compare run run --method faircal,smooth --metrics fpr_aad,ks_mean,ks`, and written
down by hand. Intervals are 95 % ones, each alone; verdicts are corrected for all that one call
compares (Holm).
"""
_SAID = """\
Groups are better calibrated than with Baseline: one network shows it, the other only before the
correction. That they are better calibrated than with FairCal is not shown, nor that false-positive
rates are more equal than with either.
"""
_FIGURES = ("ks_mean", "fpr_aad@0.01")
#: By set and other method: difference, its interval and the verdict, of each figure.
_COMPARED = {
    ("lfw-mobilefacenet", "Baseline"): (
        (-0.87, -1.32, -0.20, "not told apart"),
        (-1.09, -2.00, 0.11, "not told apart"),
    ),
    ("lfw-mobilefacenet", "FairCal"): (
        (-0.54, -1.00, 0.14, "not told apart"),
        (-1.00, -2.32, 0.38, "not told apart"),
    ),
    ("lfw-mobilefacenet", "Oracle (knows groups)"): (
        (0.05, -0.27, 0.37, "not told apart"),
        (0.22, -0.65, 1.28, "not told apart"),
    ),
    ("lfw-dlib", "Baseline"): (
        (-5.71, -7.44, -3.25, "better"),
        (-1.80, -4.85, 0.61, "not told apart"),
    ),
    ("lfw-dlib", "FairCal"): (
        (-0.33, -0.95, 0.44, "not told apart"),
        (-0.06, -1.33, 1.12, "not told apart"),
    ),
    ("lfw-dlib", "Oracle (knows groups)"): (
        (-0.31, -0.87, 0.50, "not told apart"),
        (0.26, -0.91, 1.32, "not told apart"),
    ),
}


def compared() -> str:
    """Return the section's text and table."""
    header = ["set", "SmoothFairCal less"]
    for figure in _FIGURES:
        header += [TITLES[figure], f"{TITLES[figure]}, interval", f"{TITLES[figure]}, verdict"]
    rows = [
        [*where, *(cell for each in of for cell in _cells(*each))]
        for where, of in _COMPARED.items()
    ]
    return f"{_ABOUT}\n{table(header, rows, text=2)}\n\n{_SAID}"


def difference(other: str, metric: str) -> str:
    """Return the difference to another method on the real set of the page, and the verdict."""
    of = _COMPARED["lfw-mobilefacenet", other][_FIGURES.index(metric)]
    gap, interval, verdict = _cells(*of)
    return f"{gap} ({interval}), {verdict}"


def _cells(gap: float, low: float, high: float, verdict: str) -> tuple[str, str, str]:
    return signed(gap), f"{signed(low)} to {signed(high)}", verdict
