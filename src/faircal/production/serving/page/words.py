"""Numbers in words: probabilities as counts of pairs, likelihood ratios as strength of evidence."""

from __future__ import annotations

import math

#: From how many times likelier (or less likely) evidence is called what. Steps of ten and names
#: as forensic laboratories use them.
_STRENGTH = (
    (1e6, "extremely strong"),
    (1e4, "very strong"),
    (1e3, "strong"),
    (1e2, "moderately strong"),
    (10.0, "moderate"),
    (2.0, "weak"),
)
#: Beyond this many to one no count is told.
MOST = 10_000


def share_in_words(share: float) -> str:
    """Say a share as so many of a round number.

    Examples
    --------
    >>> for share in (0.973, 0.5, 0.0123, 0.00004, 0.9996, 1.0):
    ...     print(share_in_words(share))
    about 97 in 100
    about 50 in 100
    about 1 in 100
    fewer than 1 in 10,000
    about 9,996 in 10,000
    more than 9,999 in 10,000
    """
    rare = min(share, 1 - share)
    if rare < 1 / MOST:
        return f"fewer than 1 in {MOST:,}" if share < 0.5 else f"more than {MOST - 1:,} in {MOST:,}"
    of = next(of for of in (100, 1000, MOST) if round(rare * of) >= 1)
    count = round(rare * of)
    return f"about {count if share < 0.5 else of - count:,} in {of:,}"


def one_in(share: float) -> str:
    """Say a share of genuine pairs as people tell a chance.

    Examples
    --------
    >>> one_in(0.5), one_in(0.001), one_in(0.3), one_in(0.9)
    ('1 pair in 2', '1 pair in 1,000', '30 % of pairs', '90 % of pairs')
    """
    times = 1 / share
    if times >= 1.5 and abs(times - round(times)) < 0.005 * times:
        return f"1 pair in {round(times):,}"
    return f"{100 * share:.3g} % of pairs"


def decimals(value: float, digits: int = 3) -> str:
    """Return a number with a minus that is one, and no minus before nothing but zeros.

    Examples
    --------
    >>> decimals(-0.41239), decimals(-0.0001)
    ('−0.412', '0.000')
    """
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", "−")


def times(ratio: float) -> str:
    """Say how many times, in two figures; never more than a million.

    Examples
    --------
    >>> times(1.26), times(38.2), times(12_345.0), times(5e9)
    ('1.3', '38', '12,000', 'more than a million')
    """
    if ratio > 1e6:
        return "more than a million"
    if ratio < 10:
        return f"{ratio:.1f}"
    step = 10 ** (math.floor(math.log10(ratio)) - 1)
    return f"{round(ratio / step) * step:,}"


def evidence(log_likelihood_ratio: float, most: float = math.inf) -> str:
    """Say what a log-likelihood ratio (nats) means; beyond `most` to one only that it is more.

    Examples
    --------
    >>> evidence(math.log(250))
    'Moderately strong evidence that it is one person: a pair like this is about 250 times likelier
    among pairs of one person than among pairs of two.'
    >>> evidence(-20.0, most=700)
    'Moderately strong evidence that they are two people: a pair like this is more than 700 times
    likelier among pairs of two people than among pairs of one.'
    >>> evidence(0.1)
    'No evidence either way: a pair like this is about as likely among pairs of one person as among
    pairs of two.'
    """
    one, two, who = "pairs of one person", "pairs of two", "it is one person"
    if log_likelihood_ratio < 0:
        one, two, who = "pairs of two people", "pairs of one", "they are two people"
    ratio = math.exp(min(abs(log_likelihood_ratio), 700))
    told = min(ratio, most)
    name = next((name for least, name in _STRENGTH if told >= least), "")
    if not name:
        return (
            "No evidence either way: a pair like this is about as likely among pairs of one "
            "person as among pairs of two."
        )
    often = times(told)
    if not often.startswith("more"):
        often = f"{'about' if told == ratio else 'more than'} {often}"
    return (
        f"{name.capitalize()} evidence that {who}: a pair like this is {often} times likelier "
        f"among {one} than among {two}."
    )
