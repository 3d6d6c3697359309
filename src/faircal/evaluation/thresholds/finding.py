"""Finding a threshold: what is promised of it, what is measured at it, and what it means."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, FairCalError, ParameterError
from faircal._base.files import check_output
from faircal._base.jobs import Progress, silent, step
from faircal.calibrators.prior import check_share
from faircal.data import Cohort, Dataset, PairFiles
from faircal.data.columns import UNKNOWN
from faircal.data.pair_files import check_one_feature, fold_named
from faircal.data.summary import WrongPairs, check_direction
from faircal.evaluation.audit import ScoredPairs
from faircal.evaluation.audit.rates import OperatingRates, rates_at
from faircal.evaluation.thresholds.guarantee import (
    COUNTED,
    EXTRAPOLATED,
    OF_PEOPLE,
    REFUSED,
    Guarantee,
    Rule,
    Scope,
    cluster_sets,
    counted,
    group_sets,
    guarantee,
    imposters,
)
from faircal.evaluation.two_sources import CohortImposters, StrangerComparison
from faircal.methods import Method, load_method
from faircal.methods.clusters import ClusterMethod
from faircal.methods.prior import Shift, fitted_share, probability_at
from faircal.metrics import Ranking, counted_threshold, log_likelihood_ratio
from faircal.metrics.results import GLOBAL
from faircal.model import OperatingPoint
from faircal.model.operating_point import above

#: What is assumed of pairs where nobody is identified, or not everybody.
INDEPENDENT = "assuming that no two pairs share a person"
_NAMELESS = "assuming that those without an identity ({} of the imposter pairs) are all different"
#: The largest share of imposter pairs of which that is assumed without being asked for.
_MOST_NAMELESS = 0.2
#: So many identities, each of which occurs once, are no people.
_MANY_ONCE = 200
#: Why nothing is measured on people whom the model was fitted on, and what to do.
OWN_PEOPLE = (
    "the model was fitted on these very people, on whom its scores are better than on others; take "
    "people left out: 'faircal fit --leave-out FOLD', then --fold FOLD here"
)


class ThresholdMeaning(NamedTuple):
    """What the threshold says: a probability at one share of genuine pairs or another.

    `probability` holds at the share that the model was fitted at (`calibrated_at`); the
    log-likelihood ratio (nats) holds at any. `at_prior` is None where no other share was asked for.
    The last three are within the bounds of the model on evidence; `at_bound` is None without any.
    """

    probability: float
    calibrated_at: float
    log_likelihood_ratio: float
    prior: float | None
    at_prior: float | None
    at_bound: bool | None


@dataclass(frozen=True, eq=False)
class ThresholdResult:
    """A threshold, or why there is none, and what was measured at it.

    Attributes
    ----------
    chosen : Guarantee
    data : Dataset
    assumption : str
        What the promise assumes of who is in the pairs, as the end of its sentence; empty where
        everybody in the imposter pairs is identified.
    rates : list of OperatingRates
        What was measured at the threshold; empty where there is none.
    meaning : ThresholdMeaning, optional
        None where the score does not tell the probability.
    own_people : bool, optional
        Whether the model was fitted on the people of the pairs; None where nothing tells.
    tied : int
        Imposter pairs that have the score just below the threshold: a lower one passes all of them.
    imposters_from : CohortImposters, optional
        The cohort whose imposters were counted, and what that rests on; None where they are those
        of the data.
    notes : tuple of str
        What the promise rests on, and where it does not reach.
    written : Path, optional
        The model file with the operating point, where one was written.
    """

    chosen: Guarantee
    data: Dataset
    assumption: str
    rates: list[OperatingRates]
    meaning: ThresholdMeaning | None
    own_people: bool | None = None
    tied: int = 0
    imposters_from: CohortImposters | None = None
    notes: tuple[str, ...] = ()
    written: Path | None = None

    @property
    def people_known(self) -> bool:
        """Whether people of the imposter pairs are identified."""
        return self.assumption != INDEPENDENT

    @property
    def exceeded(self) -> tuple[str, ...]:
        """Groups whose FPR is surely above the wanted one, where no group was promised any."""
        rows = [row.as_json() for row in self.rates]
        return () if self.chosen.scope == "groups" else above(rows, self.chosen.fpr)

    def as_json(self) -> dict[str, Any]:
        """Return everything by name."""
        chosen = self.chosen
        # Without people their number is that of the pairs, which says nothing.
        unknown = {} if self.people_known else {"people": None, "more_people": None}
        nobody = {} if self.people_known else {"people": None, "effective_people": None}
        return {
            **asdict(chosen),
            "below_resolution": bool(chosen.needed),
            "extrapolated": [row.name for row in chosen.extrapolated],
            "refused": [row.name for row in chosen.refused],
            "model_based": chosen.rule == "promised",
            "heavy_tailed": [row.name for row in chosen.rows if row.heavy_tailed],
            "reason": "; ".join(chosen.reasons()) or None,
            "people_known": self.people_known,
            "assumption": self.assumption,
            "tied": self.tied,
            "own_people": self.own_people,
            "imposters_from": None
            if self.imposters_from is None
            else self.imposters_from.as_json(),
            "exceeded": list(self.exceeded),
            "rows": [row._asdict() | nobody for row in chosen.rows],
            "needed": [need._asdict() | unknown for need in chosen.needed],
            "measured": [row.as_json() for row in self.rates],
            "at_threshold": None if self.meaning is None else self.meaning._asdict(),
            "out": None if self.written is None else str(self.written),
        }

    def point(self, fold: str | None = None) -> OperatingPoint:
        """Return what goes into the model file."""
        chosen, name = self.chosen, self.data.name
        return OperatingPoint(
            threshold=chosen.threshold,
            on="score",
            source=f"faircal threshold --rule {chosen.rule}",
            fpr=chosen.fpr,
            confidence=chosen.confidence,
            within=chosen.scope if chosen.rule == "promised" else "",
            data=name if fold is None else f"{name}, fold {fold}",
            data_sha256=self.data.hash(),
            assumption=self.assumption,
            measured=tuple(row.as_json() for row in self.rates),
        )

    def resolution(self) -> list[str]:
        """Say, where the wanted rate is below what the data can resolve, how far and what lacks."""
        chosen = self.chosen
        if not chosen.needed:
            return []
        every = "" if chosen.scope == "global" else f" in every {chosen.scope.removesuffix('s')}"
        lowest = f"the lowest they can show{every} is {_percent(chosen.resolved)}"
        if math.isnan(chosen.resolved):
            lowest = f"they are of too few people to show any{every}"
        below = (
            f"BELOW RESOLUTION: an FPR of {_percent(chosen.fpr)} is lower than these pairs can "
            f"show by counting; {lowest}"
        )
        worst = max(chosen.needed, key=lambda need: need.more_people)
        who = f"{worst.people:,} people (now {worst.people - worst.more_people:,}) and "
        where = "all pairs" if worst.name == GLOBAL else worst.name
        take = (
            f"to count it, {where} would take about {who if self.people_known else ''}"
            f"{worst.imposters:,} imposter pairs (now {worst.imposters - worst.more_imposters:,})"
        )
        return [below, take]


def find_threshold(
    data: PairFiles | str | Path,
    *,
    fpr: float,
    model: str | Path | None = None,
    confidence: float = 0.95,
    within: Scope | None = None,
    imposters_from: Cohort | str | Path | None = None,
    rule: Rule = "promised",
    clusters: int | None = None,
    attribute: str | None = None,
    prior: float | None = None,
    feature: str | None = None,
    fold: str | None = None,
    seed: int = 0,
    assume_independent: bool = False,
    out: str | Path | None = None,
    progress: Progress = silent,
) -> ThresholdResult:
    """Find the lowest threshold whose false-positive rate is at most `fpr`, with `confidence`.

    Parameters
    ----------
    data : PairFiles or path
        Labelled pairs of people whom the model was not fitted on.
    fpr : float
        The false-positive rate not to exceed.
    model : path, optional
        Model file that scores the pairs; else the scores are the data's own.
    confidence : float
    within : {"global", "groups", "clusters"}, optional
        Of what it is promised: of all pairs unless given, of groups with a cohort.
    imposters_from : Cohort or path, optional
        Take the imposter pairs of this cohort in place of those of the data: a promise for each of
        its groups. See `faircal.evaluation.two_sources`.
    rule : {"promised", "people", "measured"}
        Which rate: what is promised of people to come, together, by a law of how people vary; what
        each but a share of 1 - `confidence` has against the reference people, half of those in
        `data`, by no law; or what is counted.
    clusters : int, optional
        For `within` clusters: how many to find in the data; those of the model unless given.
    attribute : str, optional
        The attribute that makes the groups: of the cohort, where imposters are from one.
    prior : float, optional
        Tell, too, what the threshold is as a probability at this share of genuine pairs.
    feature, fold : str, optional
        Which scores, and which pairs.
    seed : int
    assume_independent : bool
        Take pairs as independent where nobody is identified; such data is refused otherwise.
    out : path, optional
        Write the model with this operating point inside.
    progress : callable

    Examples
    --------
    >>> import faircal
    >>> result = faircal.find_threshold("faces/", fpr=0.01, model="m.faircal")  # doctest: +SKIP
    >>> result.chosen.threshold  # doctest: +SKIP
    """
    files, out = PairFiles.of(data), None if out is None else Path(out)
    if clusters is not None and within != "clusters":
        raise ParameterError(f"--clusters {clusters}: is for --within clusters; give both")
    if within is None:
        of_groups = imposters_from is not None and rule != "measured"
        within = "groups" if of_groups else "global"
    if rule == "measured" and within != "global":
        raise ParameterError(f"--rule measured: is of all pairs; leave --within {within} out")
    _check_model(model, files, prior, out)
    fitted = None if model is None else load_method(Path(model))
    loaded = files.load([feature] if feature else (), measuring=fitted is None, progress=progress)
    check_one_feature(loaded.features, files.path)
    notes: list[str] = []
    own_people = fitted is not None and fitted_on(fitted, loaded, fold)
    if own_people and imposters_from is None:
        raise DataError(f"{loaded.where}: {OWN_PEOPLE}")
    if fold is not None:
        loaded = loaded.split(fold_named(loaded, fold))[1]
        notes += loaded.notes
    notes += WrongPairs.of(loaded).check(loaded.where)
    notes += check_direction(loaded)
    source = None
    if imposters_from is not None:
        with step(progress, "pairing the cohort"):
            source = CohortImposters.of(loaded, imposters_from, fitted, attribute, seed)
        notes += source.notes()
        loaded = source.data
    output = None if fitted is None else fitted.apply(loaded)
    pairs = ScoredPairs.of_data(loaded, output, attribute or loaded.default_attribute)
    assumption = _assumption(pairs, loaded, rule, assume_independent)
    with step(progress, "counting"):
        chosen = _chosen(
            pairs,
            loaded,
            fitted,
            fpr=fpr,
            confidence=confidence,
            within=within,
            rule=rule,
            clusters=clusters,
            seed=seed,
        )
        if source is not None:
            chosen = _unlike_refused(chosen, source.comparison)
        at = chosen.told_threshold
        result = ThresholdResult(
            chosen,
            loaded,
            assumption,
            [] if math.isnan(at) else rates_at(pairs, at, level=confidence),
            None if fitted is None else _meaning(at, pairs, fitted, prior),
            own_people,
            _tied_below(at, pairs),
            source,
        )
    notes += _notes(result, fitted, clusters)
    if fitted is not None and out is not None:
        if chosen.refused:
            notes.append(f"no threshold, so {out} is not written")
        else:
            fitted.about_ = replace(fitted.about_, operating_point=result.point(fold))
            fitted.save(out)
            result = replace(result, written=out)
    return replace(result, notes=tuple(notes))


def _check_model(
    model: str | Path | None,
    files: PairFiles,
    prior: float | None,
    out: Path | None,
) -> None:
    """Raise where what needs a model has none, or what is to be written can't be."""
    for name, value in (("--prior", prior), ("--out", out)):
        if value is not None and model is None:
            raise ParameterError(f"{name} {value}: expected a MODEL before DATA; give one")
    if prior is not None:
        check_share(prior, "--prior")
    if out is not None:
        check_output(out)
        files.check_kept(out)


def _assumption(pairs: ScoredPairs, data: Dataset, rule: Rule, assume_independent: bool) -> str:
    """Return what is assumed of who is in the imposter pairs; refuse where that is everything."""
    if pairs.genuine.all():
        return ""  # there are none, which is said elsewhere
    sides = np.full((2, 1), UNKNOWN)
    if pairs.people is not None:
        sides = np.stack([pairs.people.left, pairs.people.right])[:, ~pairs.genuine]
    unknown = sides == UNKNOWN
    share, once = float(unknown.any(axis=0).mean()), False
    if not share:
        once = sides.size >= _MANY_ONCE and len(np.unique(sides)) == sides.size
    allowed = assume_independent and (rule != "people" or not (unknown.all() or once))
    if (share > _MOST_NAMELESS or once) and not allowed:
        who = "nobody in the imposter pairs is identified"
        if once:
            who = "everybody is in one imposter pair alone, as if identities were ids of images"
        elif not unknown.all():
            who = f"somebody without an identity is in {_percent(share)} of the imposter pairs"
        names = ", ".join(data.images.attributes)
        other = f"; found the columns {names}, none of which is known to name people"
        raise DataError(
            f"{data.where}: {who}, and pairs that share people are worth fewer"
            f"{other if names and unknown.all() else ''}; add identities (left_identity and "
            "right_identity, or identity of images)"
            + ("" if rule == "people" and not allowed else ", or give --assume-independent")
        )
    if unknown.all() or once:
        return INDEPENDENT
    return _NAMELESS.format(_percent(share)) if share else ""


def _chosen(
    pairs: ScoredPairs,
    data: Dataset,
    model: Method | None,
    *,
    fpr: float,
    confidence: float,
    within: Scope,
    rule: Rule,
    clusters: int | None,
    seed: int,
) -> Guarantee:
    """Return the threshold by the rule that is asked for, of what is asked for."""
    scores = pairs.ranked
    if scores is None:  # pragma: no cover  (a dataset has scores)
        raise DataError(f"{data.where}: has no scores")
    all_imposters = imposters(scores, pairs.genuine, pairs.people)
    if rule == "measured":
        chosen = counted(all_imposters, fpr=fpr, confidence=confidence)
        if chosen.refused:
            return chosen
        at = float(counted_threshold(Ranking.of(scores, pairs.genuine), "fpr", fpr))  # an audit's
        return replace(chosen, threshold=at, told_threshold=at)
    sets = None
    if within == "groups":
        if pairs.groups is None:
            raise DataError(f"{data.where}: no groups: {data.why_no_groups()}")
        sets = group_sets(all_imposters, pairs.groups, pairs.genuine)
    elif within == "clusters":
        centers, code = _clusters(data, model, clusters, seed)
        misses = ~pairs.genuine
        left, right = code[data.pairs.left[misses]], code[data.pairs.right[misses]]
        sets = cluster_sets(all_imposters, left, right, centers, fpr=fpr, confidence=confidence)
    top = data.score_range[1]
    upper = top if scores.max() <= top else math.inf
    chosen = guarantee(
        all_imposters, sets, fpr=fpr, confidence=confidence, scope=within, upper=upper, rule=rule
    )
    return chosen.apart_from(scores)


def _tied_below(threshold: float, pairs: ScoredPairs) -> int:
    """Return how many imposter pairs have the highest score below a threshold."""
    if pairs.ranked is None:  # pragma: no cover  (a dataset has scores)
        return 0
    below = pairs.ranked[~pairs.genuine & (pairs.ranked < threshold)]
    return int((below == below.max()).sum()) if len(below) else 0


def _unlike_refused(chosen: Guarantee, comparison: StrangerComparison) -> Guarantee:
    """Refuse what was promised of a cohort that the data is not photographed like.

    How much higher rates are in the data shows at common scores alone; at those that are promised
    of it was up to five times as much in simulations.
    """
    if not comparison.unlike or chosen.rule == "measured":
        return chosen
    why = (
        f"{REFUSED}the data's strangers pass at least {comparison.low:.3g} times as often as the"
        " cohort's"
    )
    rows = tuple(
        row._replace(status=why) if row.status in (COUNTED, EXTRAPOLATED, OF_PEOPLE) else row
        for row in chosen.rows
    )
    return replace(chosen, threshold=math.nan, rows=rows)


def _clusters(
    data: Dataset, model: Method | None, clusters: int | None, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return the centres, and the cluster of each image; −1 of those that are in no pair."""
    code = np.full(len(data.images), -1, np.int32)
    if clusters is None:
        if not isinstance(model, ClusterMethod):
            raise ParameterError(
                "--within clusters: expected a MODEL that has clusters, or their number;"
                " give --clusters"
            )
        images, of_images, _ = model.image_clusters(data)
        code[images] = of_images
        return model.cluster_centers_, code
    if data.embeddings is None:
        raise DataError(f"{data.where}: has no embeddings to cluster; use --within groups")
    images = data.used_images()
    vectors, engine = data.embeddings.rows(images), data.embeddings.engine
    made = engine.kmeans(vectors, clusters, random_state=seed)
    code[images] = engine.assign(vectors, made.centers)
    return made.centers, code


def fitted_on(model: Method, data: Dataset, fold: str | None) -> bool | None:
    """Say whether `model` was fitted on these people; None where nothing tells.

    Its file knows the fingerprint of what it was fitted on, and which fold was left out.
    """
    made = model.about_.provenance
    if made is None:
        return None
    left_out = made.settings.get("leave_out")
    if left_out is None:
        return True if data.hash() == made.data_sha256 else None
    try:
        rest = data.split(fold_named(data, str(left_out)))[0]
    except FairCalError:  # no such fold: other data
        return None
    return fold != str(left_out) if rest.hash() == made.data_sha256 else None


def _meaning(
    at: float, pairs: ScoredPairs, model: Method, prior: float | None
) -> ThresholdMeaning | None:
    """Return what a threshold is as a probability and as a likelihood ratio."""
    if prior is None and model.calibrated_at is None:
        return None  # an old model, and nobody needs to know
    share = fitted_share(model)
    if math.isnan(at) or pairs.score is None or pairs.probability is None:
        return None
    probability = probability_at(at, pairs.score, pairs.probability)
    if math.isnan(probability):
        return None
    bounds = model.about_.evidence
    (ratio,) = log_likelihood_ratio([probability], calibrated_at=share, bounds=bounds)
    moved = None
    if prior is not None:
        moved = float(Shift.of(model, prior)(np.array([probability]))[0])
    at_bound = None if bounds is None else bool(bounds.reached(ratio))
    return ThresholdMeaning(probability, share, float(ratio), prior, moved, at_bound)


def _notes(result: ThresholdResult, model: Method | None, clusters: int | None) -> list[str]:
    """Say what the promise rests on, and where it does not reach."""
    chosen, notes = result.chosen, []
    if not result.people_known:
        notes.append("the threshold is too low where pairs share people; add their identities")
    if model is not None and result.own_people and result.imposters_from is not None:
        notes.append(
            "the model was fitted on the people of the genuine pairs, on whom the FNR is lower than"
            " on others; the imposters are those of the cohort"
        )
    elif model is not None and result.own_people is None:
        what = "the promise holds" if chosen.rule == "promised" else "rates hold"
        notes.append(
            f"{what} for people whom the model was not fitted on; on those it was fitted on, scores"
            " are better than they will be"
        )
    if result.exceeded:
        notes.append(
            f"{', '.join(result.exceeded)}: measured above {100 * chosen.fpr:g} %, surely. A rate"
            " of all pairs is not one of every group; --within groups finds one for every group"
        )
    if result.tied > 1 and not chosen.refused:
        notes.append(
            f"{result.tied:,} imposter pairs are tied at the score just below the threshold: any"
            " lower one passes all of them"
        )
    if clusters is not None:
        notes.append("clusters are those of this data: of other people's images they may differ")
    if chosen.rule == "promised" and result.people_known:
        notes += _conditions(chosen)
    return notes


def _conditions(chosen: Guarantee) -> list[str]:
    """Say what a promise by a law takes for granted."""
    reported = [row for row in chosen.rows if row not in chosen.refused]
    fewest = min((row.effective_people for row in reported), default=math.nan)
    if math.isnan(fewest):
        return []
    notes = []
    if heavy := [row.name for row in reported if row.heavy_tailed]:
        notes.append(
            f"{', '.join(heavy)}: a few people score far higher or lower than the others, so the"
            " threshold is set as if more such people were missing from the data; the interval of"
            " the measured FPR allows for heavier tails still, and may reach above the promise"
        )
    kind = -math.log(1 - chosen.confidence) / fewest  # the rule of three
    notes.append(
        "model-based: how much people differ is taken from these people and a law. If more than"
        f" {100 * kind:.2g} % of people were mistaken far more often, some of them would be among"
        f" these {fewest:.0f}, with {100 * chosen.confidence:g} % confidence; fewer may be missing,"
        " and the promise need not hold with them. --rule people assumes no law"
    )
    return notes


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"
