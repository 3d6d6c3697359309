"""What the page says of a pair, of the model and of the service: all words and numbers of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from faircal.model import OperatingPoint, Population, Provenance
from faircal.production.scoring.judging import Judge
from faircal.production.serving.page.form import SIDES
from faircal.production.serving.page.pictures import dots, faces, scale
from faircal.production.serving.page.words import MOST, decimals, evidence, one_in, share_in_words
from faircal.production.serving.verified import Verified
from faircal.report.svg import score_histogram

#: Outside of the population no probability is worth its name: said in these words.
UNLIKE = (
    "unlike those the model was calibrated on: do not rely on the probability, the evidence or the "
    "decision."
)
UNKNOWN = (
    "The model file does not say on whom it was calibrated: nobody can tell whether these faces "
    "are like those."
)
#: Groups that are named in a sentence.
_MOST_NAMES = 8


@dataclass(frozen=True)
class Answer:
    """What is said of one pair: texts, and pictures of the same."""

    same: bool
    title: str
    rule: str
    chance: str
    share: str
    warnings: list[str]
    evidence: str
    beyond: str
    numbers: list[tuple[str, str]]
    among: list[str]
    histogram: Markup | None
    dots: Markup
    scale: Markup
    mark: Markup


def answer(said: Verified, judge: Judge) -> Answer:
    """Put what is said of a pair into words and pictures."""
    population = judge.model.about_.population
    ratio = said.log_likelihood_ratio
    most = _countable(ratio, population)
    return Answer(
        same=said.same,
        title="Same person" if said.same else "Different people",
        rule=rule(said.point),
        chance=share_in_words(said.probability).replace(
            " in ", "\N{NO-BREAK SPACE}in\N{NO-BREAK SPACE}"
        ),
        share=one_in(said.prior),
        warnings=_warnings(said),
        evidence=evidence(ratio, most),
        beyond=_beyond(ratio, most, population),
        numbers=_numbers(said),
        among=[] if population is None else among(said.similarity, population),
        histogram=None if population is None else _histogram(said, population),
        dots=dots(said.probability),
        scale=scale(ratio),
        mark=faces(said.same),
    )


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
        if point.exceeded:  # all pairs together keep to it, and these do not
            text += f"; measured above that among {_listed(point.exceeded)}"
    return text


def _listed(names: tuple[str, ...]) -> str:
    """Say names, of many only the first few."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _warnings(said: Verified) -> list[str]:
    if said.outside is None:
        return [UNKNOWN]
    unlike = [name for name, out in zip(SIDES.values(), said.outside, strict=True) if out]
    if len(unlike) == len(SIDES):
        return [f"Both faces are {UNLIKE}"]
    return [f"The {name} is {UNLIKE}" for name in unlike]


def _countable(ratio: float, population: Population | None) -> float:
    """Return the largest likelihood ratio that calibration pairs could show by counting.

    A share under 3 / n can't be told from none (the rule of three).
    """
    if population is None:
        return math.inf
    return max(int(_others(ratio, population).sum()) / 3, 2.0)


def _others(ratio: float, population: Population) -> NDArray[np.int64]:
    """Return the pairs of the kind that the evidence speaks against."""
    return population.imposter_counts if ratio > 0 else population.genuine_counts


def _beyond(ratio: float, most: float, population: Population | None) -> str:
    """Say where a likelihood ratio is larger than the calibration pairs can show."""
    if population is None or abs(ratio) <= math.log(most):
        return ""
    pairs, kind = int(_others(ratio, population).sum()), "two people" if ratio > 0 else "one person"
    return f"How much likelier, its {pairs:,} calibration pairs of {kind} are too few to tell."


def _numbers(said: Verified) -> list[tuple[str, str]]:
    if said.score == said.similarity:
        found = [("Score (cosine)", decimals(said.score, 4))]
    else:
        found = [
            ("Similarity (cosine)", decimals(said.similarity, 4)),
            ("Score (what the model ranks by)", decimals(said.score, 4)),
        ]
    nats = said.log_likelihood_ratio
    tens = decimals(nats / math.log(10), 2)
    found += [
        ("Probability", _probability(said.probability)),
        ("Log-likelihood ratio", f"{decimals(nats, 2)} nats ({tens} in powers of ten)"),
    ]
    if said.clusters is not None:
        one, other = said.clusters  # from 0 on, as everywhere else
        found.append(("Clusters", f"both in {one}" if one == other else f"{one} and {other}"))
    return found


def _probability(value: float) -> str:
    """Return a probability in four digits that never rounds to certainty."""
    if 0 < value < 1 / MOST:
        return f"under {1 / MOST:.4f}"
    if 1 - 1 / MOST < value < 1:
        return f"over {1 - 1 / MOST:.4f}"
    return f"{value:.4f}"


def among(similarity: float, population: Population) -> list[str]:
    """Say where a similarity lies among the calibration pairs: the histogram in words.

    Bins are taken whole, and the one that it falls into counts as being beyond it, on both sides.
    """
    at = int(np.searchsorted(population.score_edges, similarity, side="right")) - 1
    at = min(max(at, 0), len(population.imposter_counts) - 1)
    return [
        _tail(
            population.genuine_counts,
            slice(None, at + 1),
            "one person",
            "as alike as this, or less",
        ),
        _tail(
            population.imposter_counts, slice(at, None), "two people", "as alike as this, or more"
        ),
    ]


def _tail(counts: NDArray[np.int64], part: slice, who: str, what: str) -> str:
    total, found = int(counts.sum()), int(counts[part].sum())
    if not total:
        return f"The model knows no calibration pairs of {who}."
    if not found:
        return f"None of its {total:,} calibration pairs of {who} are {what}."
    share = share_in_words(found / total)
    if found == total:
        share = "all"
    return f"Of its {total:,} calibration pairs of {who}, {share} are {what}."


def _histogram(said: Verified, population: Population) -> Markup:
    point = said.point
    # A threshold on something else than the cosine has no place on its axis.
    on_axis = point.on == "score" and said.score == said.similarity
    return Markup(  # noqa: S704 - svg.py escapes all text
        score_histogram(
            population.score_edges,
            population.genuine_counts,
            population.imposter_counts,
            mark=said.similarity,
            threshold=point.threshold if on_axis else None,
            title="This pair among the calibration pairs",
            x_label="similarity (cosine)",
            width=380,
            height=220,
        )
    )


def model_facts(judge: Judge, digest: str) -> list[tuple[str, str]]:
    """Say in a few lines what model is in use; its card says the rest."""
    model, about = judge.model, judge.model.about_
    made = about.provenance
    found = [("Method", model.title)]
    if made is not None:
        found += [
            ("Calibrated on", _data(made)),
            ("Face network", "" if made.feature in _NO_NETWORK else made.feature),
            ("Counted", _counted(made.counts)),
            ("Meant for", made.intended_use),
        ]
    found += [
        ("Decision", sentence(rule(judge.point))),
        ("Share of genuine pairs", f"calibrated where {one_in(judge.calibrated_at)} is genuine"),
        ("Model file", f"SHA-256 {digest[:12]}…"),
    ]
    return [(name, value) for name, value in found if value]


#: What embeddings are called where nobody named the network.
_NO_NETWORK = ("embedding", "score")


def _data(made: Provenance) -> str:
    name = made.data or "data without a name"
    return f"{name} (simulated)" if made.simulated and "simulated" not in name else name


def _counted(counts: Any) -> str:
    wanted = {"pairs": "pairs", "people": "people", "images": "images"}
    return ", ".join(f"{counts[key]:,} {word}" for key, word in wanted.items() if counts.get(key))


def sentence(text: str) -> str:
    """Return words as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."
