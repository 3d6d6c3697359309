"""The page's answer: what is said of a pair, in words and numbers; live counters.

Probabilities become counts of pairs, likelihood ratios strength of evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from faircal._base.errors import StorageError
from faircal.model import OperatingPoint, Population
from faircal.production.scoring.judging import Judge
from faircal.production.serving.service import Service
from faircal.production.serving.verification import Verification
from faircal.report.svg import histogram

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
#: Beyond this many to one no count is reported.
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


#: Groups that are named in a sentence.
_MOST_NAMES = 8


@dataclass(frozen=True)
class Answer:
    """The numbers behind what the template says of one pair, and draws.

    `among` are, of the genuine and of the imposter calibration pairs, how many there are, and how
    many are as far or further on the wrong side of this one.
    """

    result: Verification
    #: How far evidence goes, and why; what to do where the model file has no bounds.
    bounds: str
    among: list[tuple[int, int]]
    histogram: Markup | None

    @property
    def power(self) -> float:
        """The likelihood ratio as a power of ten."""
        return self.result.log_likelihood_ratio / math.log(10)

    @property
    def ratio(self) -> float:
        """The likelihood ratio, or one to it, whichever is larger."""
        return math.exp(min(abs(self.result.log_likelihood_ratio), 700))

    @property
    def strength(self) -> str:
        """What evidence of this ratio is called; empty where it is none."""
        return next((name for least, name in _STRENGTH if self.ratio >= least), "")


def answer(result: Verification, judge: Judge) -> Answer:
    """Return the numbers behind the answer to a pair."""
    about = judge.model.about_
    population, bounds = about.population, sentence(about.evidence_note)
    if population is None:
        return Answer(result, bounds, [], None)
    genuine, imposter = population.genuine_counts, population.imposter_counts
    # Bins are taken entire: the one that the pair falls into counts as beyond it, on both sides.
    at = int(np.searchsorted(population.score_edges, result.similarity, side="right")) - 1
    at = min(max(at, 0), len(imposter) - 1)
    among = [
        (int(genuine.sum()), int(genuine[: at + 1].sum())),
        (int(imposter.sum()), int(imposter[at:].sum())),
    ]
    return Answer(result, bounds, among, _histogram(result, population))


def rule(point: OperatingPoint) -> str:
    """Say when a pair is taken for one person.

    Examples
    --------
    >>> rule(OperatingPoint(0.5, "probability", "default"))
    'a pair is taken for one person where its probability is at least 0.5'
    >>> rule(OperatingPoint(0.41234, fpr=0.001, confidence=0.95, within="global"))
    'a pair is taken for one person where its score is at least 0.4123, so that at most 0.1 % of
    pairs of two people are (95 % sure)'
    """
    text = f"a pair is taken for one person where its {point.on} is at least {point.threshold:.4g}"
    if point.promised and point.fpr is not None:
        text += f", so that at most {100 * point.fpr:.3g} % of pairs of two people are"
        if point.confidence is not None:
            text += f" ({100 * point.confidence:.3g} % sure)"
        if point.assumption:
            text += f", {point.assumption}"
        if point.exceeded:  # all pairs together keep to it, and these do not
            text += f"; measured above that among {_listed(point.exceeded)}"
    return text


def _listed(names: tuple[str, ...]) -> str:
    """Say names, of many only the first few."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def probability(value: float) -> str:
    """Return a probability in four digits that never rounds to certainty.

    Examples
    --------
    >>> probability(0.5), probability(1 - 1e-9)
    ('0.5000', 'over 0.9999')
    """
    if 0 < value < 1 / MOST:
        return f"under {1 / MOST:.4f}"
    if 1 - 1 / MOST < value < 1:
        return f"over {1 - 1 / MOST:.4f}"
    return f"{value:.4f}"


def _histogram(result: Verification, population: Population) -> Markup:
    point = result.point
    # A threshold on something else than the cosine has no place on its axis.
    on_axis = point.on == "score" and result.score == result.similarity
    marks = {"this pair": result.similarity, "threshold": point.threshold if on_axis else None}
    return Markup(  # noqa: S704 - svg.py escapes all text
        histogram(
            population.score_edges,
            {"genuine": population.genuine_counts, "imposters": population.imposter_counts},
            title="This pair among the calibration pairs",
            marks={name: at for name, at in marks.items() if at is not None},
            x_label="similarity (cosine)",
            width=380,
            height=220,
        )
    )


def live(service: Service) -> dict[str, str]:
    """Return what the service counts now, in words, by the name the page has for it."""
    counts, monitor = service.counts, service.monitor
    texts = {
        "requests": f"{counts.requests:,}",
        "pairs": f"{counts.pairs:,}",
        "same": _percent(counts.same, counts.pairs),
        "outside": _percent(counts.outside, counts.placed),
    }
    if service.store is not None:
        try:
            texts["templates"] = f"{service.store.count():,}"
        except StorageError:
            texts["templates"] = "–"  # it is away, and nobody can tell
    words = "On. It has not looked yet." if monitor.verdict is None else monitor.verdict.words
    off = "Off: the model file has no population to hold pairs against."
    return {**texts, "monitor": off if monitor.watch is None else words}


def _percent(part: int, total: int) -> str:
    return f"{100 * part / total:.3g} %" if total else "–"


def sentence(text: str) -> str:
    """Return words as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."
