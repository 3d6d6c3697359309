"""CohortFairCal: scores shifted by how alike strangers of each image's own kind look."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal._base.container import prefixed, unprefixed
from faircal._base.errors import DataError, ParameterError
from faircal.calibrators import Calibrator, make_calibrator, sigmoid
from faircal.calibrators.prior import SHARE_FIGURE
from faircal.compute import Engine
from faircal.compute.gaussians import mixture_shares
from faircal.compute.threads import each, one_blas_thread
from faircal.data import Dataset
from faircal.data.cohort import FEW
from faircal.methods.base import Claims, Method, Needs, Output, check_truth
from faircal.methods.inputs import Float64, ImageValues, Inputs, Space, declared
from faircal.methods.likeness import CohortImages, Likeness, cosines_of
from faircal.methods.trait_maps import KINDS, LabelledTraits, TraitMap, choose_map

Codes = NDArray[np.integer]

#: Genuine pairs, pairs of the cohort, and random strangers that a fit goes by, at most.
_GENUINE, _STRANGERS, _RANDOM = 50_000, 40_000, 30_000
#: Parts that people are held out in, and pairs scored at a time.
_PARTS, _PAIRS = 5, 16384
#: Images by which it is told how far all lie from the cohort, about.
_MOVED_BY = 2000
#: Scores that are this far off cosines have been rounded.
_ROUNDED = 0.01
#: An image below this trust is not represented; so large a part of images is worth a note.
_TRUSTED, _MANY = 0.5, 0.2
#: What is taken where nothing says how many pairs are genuine.
_HALF = (
    "all calibration pairs are genuine, so the share of genuine pairs in use is unknown and "
    "probabilities are for one half; set share_genuine, or score with --prior"
)
#: Standard deviations of closeness by which a cohort may be off before that is worth a note.
_OFF = 3.0


@dataclass(eq=False, repr=False)
class CohortFairCal(Method):
    """Fair without anybody's attributes: a balanced cohort of public people tells who looks alike.

    A *cohort* is some tens of people of each group, run once through the user's network; nobody
    else's group is asked for. With c(x) the mean of the three highest cosines of image x with
    people of the cohort, a pair's score s is shifted to

        z = s − ½ (c(x) + c(x')),

    a global calibrator turns z into log-odds T(z), and a regression with a ridge shifts and tilts
    these by three standardised traits φ of each image (`Likeness`):

        P = sigmoid(u₀ + (φ + φ')·u + max(v₀ + (φ + φ')·v, 0) T(z)).

    It is fitted on the user's genuine pairs against pairs of strangers within groups of the cohort,
    every group weighing the same. No imposter pair of the user's is used; strangers drawn at random
    among their images tell how far the cohort's scores lie off theirs, as of other cameras. Shift
    and regression are each taken only where they are better on people held out. An image that the
    cohort does not represent is neither shifted nor tilted.

    Parameters
    ----------
    calibrator : str or Calibrator
        What T comes from; see `faircal.calibrators`.
    share_genuine : float, optional
        Share of genuine pairs that probabilities are for. None: that of the calibration pairs, or
        one half, with a note, where all of these are genuine.
    random_state : int
        Seed of the pairs drawn and of the people held out.

    Attributes
    ----------
    likeness_ : Likeness
        What the cohort tells of an image. It holds the mean vector of each of its people.
    map_ : TraitMap
        The map, of the ``kind`` that was chosen: plain, shifted or learned.

    Examples
    --------
    >>> import faircal
    >>> from faircal.data.pairing import draw_cohort
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> model = faircal.CohortFairCal().fit(draw_cohort(cal, 5, "ethnicity+gender", 0))
    >>> p = model.predict_proba(test)
    >>> bool((p >= 0).all() and (p <= 1).all())
    True
    """

    name = "cohort"
    title = "CohortFairCal"
    needs = Needs(embeddings=True, imposters=False, folds=True, cohort="required")
    claims = Claims(improves_accuracy=True, fairly_calibrated=True, predictive_equality=True)

    calibrator: str | Calibrator = "beta"
    share_genuine: float | None = None
    random_state: int = 0

    def check_parameters(self) -> None:
        """Raise `ParameterError` where a parameter's value cannot be."""
        super().check_parameters()
        share: Any = self.share_genuine
        number = isinstance(share, Real) and not isinstance(share, bool)
        if share is not None and not (number and 0 < float(share) < 1):
            raise ParameterError(
                f"share_genuine: expected a number between 0 and 1 or None, found {share!r}"
            )

    def _fit(self, inputs: Inputs) -> None:
        self.space_ = Space.of(declared(inputs.embeddings, "embeddings"))
        cohort, rng = declared(inputs.cohort, "a cohort"), np.random.default_rng(self.random_state)
        progress = inputs.job.progress
        with one_blas_thread():
            progress("fitting", 0, 3, "how alike strangers look")
            unit = cohort.embeddings.unit(np.arange(len(cohort.person)))
            images = CohortImages.of(unit, cohort.person, cohort.group)
            own = _OwnImages.of(inputs, images.likeness)
            self.likeness_ = own.likeness
            _check_scores(inputs, own)
            # Genuine pairs of the user's, strangers of the cohort as they would look there.
            pairs = self._pairs(inputs, own, images, rng)
            progress("fitting", 1, 3, "choosing the map on people held out")
            kind, held_out = choose_map(pairs, self.calibrator)
            progress("fitting", 2, 3, f"the {kind} map")
            self.map_ = TraitMap.fit(kind, pairs, self.calibrator)
        self._set_values()
        progress("fitting", 3, 3, "")
        for tried in held_out:
            if len(tried.losses):
                loss = float(tried.losses.mean())
                self.diagnostics_.figures[f"held_out_loss_{tried.kind}"] = loss
        why = "by people held out" if len(held_out[0].losses) else "too few people to hold any out"
        taken = f"the {kind} map is taken, of {', '.join(KINDS)}: {why}"
        self.diagnostics_.note(taken, choice=True)
        self.diagnostics_.notes.extend(_unrepresented(own.values[:, -1], "calibration images"))
        if kind != "plain" and (few := int((images.sizes < FEW).sum())):
            self.diagnostics_.note(
                f"warning: {few} of {len(images.sizes)} groups of the cohort have fewer than {FEW} "
                f"people (the smallest {images.sizes.min()}), so little is known of who looks like "
                "them, and probabilities may be worse than Baseline's; add people"
            )

    def _pairs(
        self, inputs: Inputs, own: _OwnImages, images: CohortImages, rng: np.random.Generator
    ) -> LabelledTraits:
        # Pairs in an order of their own, so that the given one changes no digit.
        left, right = np.sort(np.stack(inputs.positions())[:, inputs.genuine], axis=0)
        order = np.lexsort((right, left))
        taken = order[np.sort(rng.permutation(len(order))[:_GENUINE])]
        left, right, score = left[taken], right[taken], inputs.score[inputs.genuine][taken]
        fold = declared(inputs.folds, "folds")(_PARTS, self.random_state)
        part = fold[inputs.genuine][taken]
        # People of the cohort in parts, too, every group in all of them.
        one, two, weight = images.strangers(_STRANGERS, rng)
        parts = 1 + images.parts(_PARTS, rng)[images.person]
        offset = self._offset(own, images, rng)
        share = self.diagnostics_.figures[SHARE_FIGURE] = self._share(inputs)
        weight *= len(taken) * (1 - share) / share
        trusted = np.ones((len(one), 1))
        sides = [np.hstack([values, trusted]) for values in images.sides(one, two)]
        own_people = len(np.unique(own.person[left]))
        return LabelledTraits(
            score=np.concatenate([score, images.cosine(one, two) + offset.score]),
            left=np.concatenate([own.values[left], sides[0] + offset.values]),
            right=np.concatenate([own.values[right], sides[1] + offset.values]),
            genuine=np.repeat([True, False], [len(taken), len(one)]),
            weight=np.concatenate([np.ones(len(taken)), weight]),
            part=np.concatenate([np.stack([part, part], 1), np.stack([parts[one], parts[two]], 1)]),
            unit=float(weight.sum() / len(images.group) + len(taken) / own_people),
        )

    def _share(self, inputs: Inputs) -> float:
        """Return the share of genuine pairs that probabilities are for."""
        if self.share_genuine is None and inputs.share_genuine == 1:
            self.diagnostics_.note(_HALF)
            return 0.5
        return self.share_genuine or inputs.share_genuine

    def _offset(self, own: _OwnImages, images: CohortImages, rng: np.random.Generator) -> _Offset:
        """Return how far the user's images lie off the cohort's, by strangers at random.

        The cohort's kinds weigh as often as they are among the user's images. What the difference
        of z may owe to chance is not taken for one.
        """
        shares = own.shares_of_kinds()
        one, two = _strangers(images.person, rng)
        group = images.group[images.person]
        weight = shares[group] / np.bincount(group)[group]
        values, others = images.sides(one, two)
        z = images.cosine(one, two) - (values[:, 0] + others[:, 0]) / 2
        people = np.stack([images.person[one], images.person[two]])
        mean, variance = _mean(z, weight[one] * weight[two], people)
        left, right = _strangers(own.person, rng)
        own_z = cosines_of(own.unit, left, right)
        own_z -= (own.values[left, 0] + own.values[right, 0]) / 2
        trust = own.values[:, -1] + 1e-9
        people = np.stack([own.person[left], own.person[right]])
        own_mean, own_variance = _mean(own_z, trust[left] * trust[right], people)
        off = own_mean - mean
        sure = max(1 - 4 * (variance + own_variance) / max(off**2, np.finfo(float).tiny), 0.0)
        of_cohort = np.average(values, axis=0, weights=weight[one])
        of_values = np.average(own.values[:, :-1], axis=0, weights=trust) - of_cohort
        spread = np.average((values[:, 0] - of_cohort[0]) ** 2, weights=weight[one]) ** 0.5
        if abs(of_values[0]) > _OFF * spread:
            away = "further from" if of_values[0] < 0 else "closer to"
            self.diagnostics_.note(
                f"warning: calibration images are {abs(of_values[0]) / spread:.0f} standard "
                f"deviations {away} the cohort than its own images are: it is of other cameras or "
                "another network, and probabilities may not hold; take a cohort prepared as yours"
            )
        # s = z + ½ (c + c'): the cohort's scores are off by what z is, and c of both images.
        self.diagnostics_.figures["offset_of_the_cohort"] = float(off * sure)
        return _Offset(float(off * sure + of_values[0]), np.append(of_values, 0.0))

    def _apply(self, inputs: Inputs) -> Output:
        # Of each image: what it adds to score, log-odds and slope, and its trust.
        added = self._values.at(declared(inputs.embeddings, "embeddings"), inputs.images)
        score, probability = inputs.score, np.empty(len(inputs))

        def work(block: slice) -> None:
            both = added[inputs.left[block]] + added[inputs.right[block]]
            probability[block] = sigmoid(self.map_.log_odds(score[block], both))

        each(work, len(inputs), _PAIRS)
        return Output(probability, probability)

    def remarks(self, data: Dataset, output: Output) -> list[str]:  # noqa: ARG002
        """Say how many of the images in use the cohort does not represent."""
        inputs = self._inputs(data, fitting=False)
        if not len(inputs):
            return []
        values = self._values.at(declared(inputs.embeddings, "embeddings"), inputs.images)
        return _unrepresented(values[inputs.images, -1], "images in use")

    def _set_values(self) -> None:
        def work(unit: Float64, _: Engine) -> Float64:
            values = self.likeness_(unit)
            return np.column_stack([self.map_.of_images(values), values[:, -1]])

        self._values = ImageValues(self.space_, work, np.float64, 4, unit=True)

    def _get_state(self) -> dict[str, Any]:
        return {
            **prefixed("cohort", self.likeness_.get_state()),
            **prefixed("calibrator", self.map_.calibrator.get_state()),
            "kind": self.map_.kind,
            "range": list(self.map_.calibrator.score_range),
            "effects": self.map_.effects,
            "mean": self.map_.mean,
            "scale": self.map_.scale,
            "normalize": self.space_.normalize,
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        self.likeness_ = Likeness.restore(unprefixed("cohort", state))
        low, high = map(float, state["range"])
        calibrator = make_calibrator(self.calibrator, (low, high))
        calibrator.set_state(unprefixed("calibrator", state))
        names = ("effects", "mean", "scale")
        effects, mean, scale = (np.asarray(state[name], np.float64) for name in names)
        finite = all(np.isfinite(one).all() for one in (effects, mean, scale))
        if not finite or effects.shape != (2, 4) or mean.shape != (3,) or scale.shape != (3,):
            raise DataError("effects: expected finite numbers, (2, 4), of three traits; fit again")
        if not (scale > 0).all():
            raise DataError(f"scale: expected numbers above 0, found {scale}")
        if state["kind"] not in KINDS:
            raise DataError(f"kind: expected one of {', '.join(KINDS)}, found {state['kind']!r}")
        self.map_ = TraitMap(state["kind"], calibrator, effects, mean, scale)
        normalize = check_truth("normalize", state["normalize"])
        self.space_ = Space(self.likeness_.people.shape[1], normalize)
        self._set_values()


class _Offset(NamedTuple):
    """What is added to a cohort's scores, and to the numbers of its images, (4,)."""

    score: float
    values: Float64


@dataclass(frozen=True, eq=False)
class _OwnImages:
    """The user's calibration images: unit vectors, people, and their numbers by the cohort."""

    unit: Float64
    person: Codes
    likeness: Likeness
    values: Float64

    @classmethod
    def of(cls, inputs: Inputs, likeness: Likeness) -> _OwnImages:
        unit = declared(inputs.embeddings, "embeddings").unit(inputs.images)
        likeness = likeness.among(unit[:: max(len(unit) // _MOVED_BY, 1)])
        person = declared(inputs.folds, "folds").people[inputs.images]
        return cls(unit, person, likeness, likeness(unit))

    def shares_of_kinds(self) -> Float64:
        """Return the share of each kind among the images, by expectation-maximisation."""
        kinds = self.likeness.kinds(self.unit @ self.likeness.centers.T)
        trust = self.values[:, -1]
        # One image of each kind is imagined: none is ruled out.
        return mixture_shares(kinds, trust, imagined=1.0)


def _strangers(person: Codes, rng: np.random.Generator) -> Codes:
    """Return pairs of images of two people at random, (2, n)."""
    pairs = rng.integers(0, len(person), (2, _RANDOM))
    return pairs[:, person[pairs[0]] != person[pairs[1]]]


def _mean(z: Float64, weight: Float64, people: Codes) -> tuple[float, float]:
    """Return the mean over pairs of `people`, (2, n), and its variance."""
    mean = float(np.average(z, weights=weight))
    # A person's pairs are right or wrong together: each adds their sum, squared.
    sums = np.bincount(people.ravel(), np.tile(weight * (z - mean), 2) / weight.sum())
    return mean, float(sums @ sums)


def _check_scores(inputs: Inputs, own: _OwnImages) -> None:
    """Raise unless scores are cosines, and of strangers, too: so the cohort's are compared."""
    sides = (np.searchsorted(inputs.images, of[:_STRANGERS]) for of in (inputs.left, inputs.right))
    off = float(np.abs(inputs.score[:_STRANGERS] - cosines_of(own.unit, *sides)).max())
    if off > _ROUNDED:
        raise DataError(
            f"method cohort compares cosines, and the scores of the pairs are off by up to "
            f"{off:.3g}; leave out the column 'score'"
        )
    if (own.person == own.person[0]).all():
        raise DataError("expected images of two or more people in pairs, found one; add others")


def _unrepresented(trust: Float64, what: str) -> list[str]:
    """Say so where many images are none of the cohort's kinds."""
    share = float((trust < _TRUSTED).mean())
    if share < _MANY:
        return []
    note = (
        f"{100 * share:.0f} % of {what} are unlike all groups of the cohort: they keep the plain "
    )
    return [f"{note}map, for which no fairness is claimed; add people like them to the cohort"]
