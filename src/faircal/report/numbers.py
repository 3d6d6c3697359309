"""Numbers as people read them in a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from faircal.report.tables import Results, Value, Variant

#: So many names are listed; of more, the first ones and how many there are.
_LISTED = 6


def percent(value: float) -> str:
    """Print a fraction as percent, with as many digits as say something near 0 and near 100.

    Examples
    --------
    >>> [percent(value) for value in (0, 0.00012, 0.0012, 0.034, 0.1431, 0.9993, 1)]
    ['0 %', '0.012 %', '0.12 %', '3.4 %', '14.3 %', '99.93 %', '100 %']
    """
    return f"{_hundredfold(value)} %"


def points(value: float) -> str:
    """Print a difference of fractions in percentage points.

    Examples
    --------
    >>> points(0.0155), points(0.004)
    ('1.6 points', '0.40 points')
    """
    return f"{_hundredfold(value)} points"


def ranged(value: Value, text: Callable[[float], str] = percent) -> str:
    """Print a value with its interval, where it has one.

    Examples
    --------
    >>> ranged(Value(0.04, low=0.023, high=0.056)), ranged(Value(0.04))
    ('4.0 % (2.3 % to 5.6 %)', '4.0 %')
    >>> ranged(Value(0.016, low=0.01, high=0.02), points)
    '1.6 points (1.0 to 2.0)'
    """
    if math.isnan(value.low) or math.isnan(value.high):
        return text(value.mean)
    low, high = (text(end).removesuffix(" points") for end in (value.low, value.high))
    return f"{text(value.mean)} ({low} to {high})"


def _hundredfold(value: float) -> str:
    hundredfold = 100 * value
    near = min(abs(hundredfold), abs(100 - hundredfold))
    if near < 1e-9:
        return f"{hundredfold:.0f}"
    if round(near, 2) >= 1:
        return f"{hundredfold:.1f}"
    # Two digits that count below 1 %; above 99 %, one of what is missing.
    return f"{hundredfold:.{(hundredfold < 50) - math.floor(math.log10(near))}f}"


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


def variant_name(results: Results, variant: Variant) -> str:
    """Return a variant's label as it stands in a sentence, ``FSN (K = 100, beta)``."""
    title, _, more = results.label(variant).partition(", ")
    return f"{title} ({more})" if more else title
