"""SmoothFairCal: every pair has its own map, shifted and tilted by where its images lie."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.container import prefixed, unprefixed
from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import check_integer
from faircal.calibrators import Calibrator, make_calibrator, sigmoid
from faircal.compute import Engine, kernels
from faircal.compute.engine import check_rows
from faircal.compute.threads import each, one_blas_thread
from faircal.data import Dataset
from faircal.methods.base import Claims, Method, Needs, Output, check_truth
from faircal.methods.inputs import Float64, ImageValues, Inputs, Space, declared
from faircal.methods.smooth.features import FeatureMap
from faircal.methods.smooth.regression import (
    RIDGES,
    LabelledPairs,
    SmoothSettings,
    TiltRegression,
    choose,
    some_rows,
)

#: Pairs in the regression, at most: some hundred coefficients gain nothing from more.
_MOST = 60_000
#: Nats by which imposters may be more or less alike in use than in the fit, and half of the fit's.
_ALIKE = 0.1
#: Part of the images in use, at most, that may be further away than one in a hundred of the fit.
_OUTSIDE = 0.2
#: What can be done; what is done.
_COHORT = "a cohort tells who is alike (--method cohort)"
_PLAIN = f"the map is the global calibrator's, as Baseline's; {_COHORT}"
#: Images whose profiles are worked out at a time; pairs that are scored at a time.
_IMAGES, _PAIRS = 512, 16384


@dataclass(eq=False, repr=False)
class SmoothFairCal(Method):
    """Like `FairCal` without attributes, but with one smooth map in place of clusters' maps.

    With T(s) the log-odds of one global calibrator, a pair with score s and features φ gets

        P = sigmoid(φ · u + max(φ · v, 0) T(s)),

    so that each pair shifts and tilts the global map; it stays monotone in the score whatever the
    pair. The features are a constant, the pair's components in a mixture that calibration
    imposters show (`faircal.methods.smooth.features`), and the mean of both images' traits:
    principal components and soft regions. All coefficients come from one convex fit, a logistic
    regression with a ridge. Components are hardly held back, so that the map is calibrated within
    each; how far traits are is chosen by cross-validation that holds people out, on criteria in
    which every component counts the same.

    It needs calibration imposters paired among people who are alike: only such pairs show groups.
    Where they show none, regions of embedding space stand in for components; and where errors of
    the map differ no less between those than the global map's, beyond the standard error over
    people, the model is the global map, as `Baseline`.

    Parameters
    ----------
    calibrator : str or Calibrator
        What T comes from; see `faircal.calibrators`.
    ridge : float, optional
        Price of the traits' coefficients, squared. None: chosen by cross-validation.
    n_components : int, optional
        Components of the mixture, 1 for none. None: 16 where people held out show any.
    n_dimensions : int
        Principal components, at most.
    n_regions : int
        Soft regions, around centres of K-means; fewer where images are few.
    random_state : int
        Seed of the mixture's start and of the people held out.

    Attributes
    ----------
    calibrator_ : Calibrator
        The global one.
    feature_map_ : Landscape
        Principal components, regions and mixture.
    effects_ : ndarray of shape (2, 1 + J + r + K)
        u and v.
    ridge_ : float
        Infinity where the map is the global one.
    association_ : float
        How much likelier calibration imposters are than strangers at random, by their components,
        in logs: 0 where they are random.
    diagnostics_ : Diagnostics
        What was chosen, what each part gained on people held out, and whether calibration
        imposters are alike at all.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> model = faircal.SmoothFairCal().fit(cal)
    >>> p = model.predict_proba(test)
    >>> bool((p >= 0).all() and (p <= 1).all())
    True
    """

    name = "smooth"
    title = "SmoothFairCal"
    needs = Needs(embeddings=True, folds=True)
    claims = Claims(improves_accuracy=True, fairly_calibrated=True, predictive_equality=True)

    calibrator: str | Calibrator = "beta"
    ridge: float | None = None
    n_components: int | None = None
    n_dimensions: int = 100
    n_regions: int = 100
    random_state: int = 0

    def check_parameters(self) -> None:
        """Raise `ParameterError` where a parameter's value cannot be."""
        super().check_parameters()
        check_integer("n_dimensions", self.n_dimensions, 1)
        check_integer("n_regions", self.n_regions, 1)
        if self.n_components is not None:
            check_integer("n_components", self.n_components, 1)
        ridge: Any = self.ridge
        number = isinstance(ridge, Real) and not isinstance(ridge, bool)
        if ridge is not None and not (number and 0 < float(ridge) < np.inf):
            raise ParameterError(f"ridge: expected a number above 0 or None, found {ridge!r}")

    def _fit(self, inputs: Inputs) -> None:
        self.space_ = Space.of(declared(inputs.embeddings, "embeddings"))
        folds = declared(inputs.folds, "folds")
        calibrator, vectors = make_calibrator(self.calibrator, inputs.score_range), inputs.vectors()
        with one_blas_thread():
            # φ: coordinates and regions of all images.
            feature_map = FeatureMap.fit(
                vectors, self.n_dimensions, self.n_regions, self.random_state
            )
            # In an order of their own, each once, so that the list changes no digit.
            traits, people = feature_map.traits(vectors), folds.people[inputs.images]
            pairs, order = LabelledPairs.of(inputs, vectors, traits, people)
            # The ridge and the number of components, on people held out.
            chosen = choose(
                pairs,
                feature_map,
                calibrator,
                lambda n: folds(n, self.random_state)[order],
                ridge=self.ridge,
                n_components=self.n_components,
                random_state=self.random_state,
                progress=inputs.job.progress,
            )
            inputs.job.progress("fitting all pairs", 0, 1, "")
            # The rest of φ: the mixture of the imposter pairs.
            feature_map = pairs.with_mixture(feature_map, chosen.n_components, self.random_state)
            # u and v: one convex fit, given T, the log-odds of the global calibrator.
            sample = pairs.sample(_MOST, self.random_state)
            plain = calibrator.fit_sets(inputs.samples())[0]  # Baseline's
            problem = TiltRegression(sample, feature_map, plain)
            self.calibrator_, self.feature_map_ = problem.calibrator, feature_map
            self.ridge_, self.effects_ = float(chosen.ridge), problem.fit(chosen.ridge)
            self._profiles = Profiler.of(feature_map, self.effects_).of_images(self.space_)
            self._describe(chosen, problem)
        inputs.job.progress("fitting all pairs", 1, 1, "")

    def _describe(self, chosen: SmoothSettings, problem: TiltRegression) -> None:
        figures, mixture = self.diagnostics_.figures, self.feature_map_.mixture
        if self.ridge_ < np.inf:
            figures["ridge"] = self.ridge_
        figures["pairs_in_regression"] = len(problem.pairs)
        figures["components"] = len(mixture)
        self.association_ = chosen.association
        if len(mixture):
            told = problem.pairs.associations(self.feature_map_, self.random_state)
            self.association_ = float(told.mean())
        figures["association"] = self.association_
        figures["shared_directions"] = len(self.feature_map_.shares)
        figures["share_of_pairs_where_score_is_kept_out"] = problem.log_odds(self.effects_)[1]
        if chosen.losses:
            figures["held_out_loss_of_global_map"] = chosen.plain
            figures["held_out_loss_with_components"] = chosen.losses[RIDGES[0]]
            figures["held_out_loss"] = chosen.losses.get(self.ridge_, chosen.plain)
            figures["gain"], figures["noise"] = chosen.gain, chosen.noise
        self._note(chosen)

    def _note(self, chosen: SmoothSettings) -> None:
        """Say why there is no map of its own, or what it cannot know."""
        note = self.diagnostics_.note
        random = (
            "strangers of calibration pairs are hardly more alike than chance makes them "
            f"({self.association_:.2f} nats), so no group of people shows"
        )
        unlike = self.n_components != 1 and self.association_ < _ALIKE / 2
        if not chosen.parts:
            if self.ridge_ == np.inf:
                note(f"too few people to hold out: {_PLAIN}")
            elif self.n_components is None:
                note("too few people to hold out: no components are looked for")
        elif self.ridge_ == np.inf and not unlike:
            note(
                "on people held out, errors of a map of its own differ no less between regions "
                f"than those of the global one (by {chosen.gain:.4f} less, standard error "
                f"{chosen.noise:.4f}): {_PLAIN}",
                choice=True,
            )
        elif self.ridge_ == np.inf:
            note(f"{random}: {_PLAIN}")
        elif unlike:
            note(f"{random}; where strangers in use are alike, {_COHORT}")

    def remarks(self, data: Dataset, output: Output) -> list[str]:
        """Say where images in use, or strangers paired in use, are not like those of the fit.

        A pair counts as one of strangers as far as the model takes it for one.
        """
        inputs = self._inputs(data, fitting=False)
        if not len(inputs):
            return []
        vectors = inputs.vectors(self.space_)
        remarks = []
        outside = float(self.feature_map_.outside(vectors).mean())
        if outside > _OUTSIDE:
            remarks.append(
                f"{outside:.0%} of these images lie further from the calibration images than 1% of "
                "those do: people unlike those of calibration, or far more people; probabilities "
                f"may not hold for them; {_COHORT}"
            )
        if len(self.feature_map_.mixture):
            remarks += self._of_strangers(inputs, vectors, output)
        return remarks

    def _of_strangers(
        self, inputs: Inputs, vectors: NDArray[np.float32], output: Output
    ) -> list[str]:
        left, right = inputs.positions()
        rows = some_rows(np.arange(len(left)), _MOST, self.random_state)
        points = self.feature_map_.mixture_points(self.feature_map_.coordinates(vectors))
        association = self.feature_map_.mixture.association(points, left[rows], right[rows])
        # Nobody says who is a stranger in use: a pair counts by its probability of being one.
        imposter = 1 - output.probability[rows]
        if imposter.sum() < 1:
            return []
        observed = float(imposter @ association / imposter.sum())
        if abs(observed - self.association_) <= max(_ALIKE, self.association_ / 2):
            return []
        how = "less" if observed < self.association_ else "more"
        remark = (
            f"strangers of these pairs are {how} alike than those of calibration pairs "
            f"({observed:.2f} against {self.association_:.2f} nats): the protocol of calibration "
            "is not that of use, and probabilities may not hold; calibrate on pairs as they come "
            "in use, or on faircal pairs --imposters matched"
        )
        return [remark]

    def _apply(self, inputs: Inputs) -> Output:
        # What pairs need of each image: its own shift and tilt, its memberships.
        profiles = self._profiles.at(declared(inputs.embeddings, "embeddings"), inputs.images)
        n = len(self.feature_map_.mixture)
        effects = np.ascontiguousarray(self.effects_[:, 1 : 1 + n])
        check_rows(int(inputs.images[0]), int(inputs.images[-1]), len(profiles))
        score, probability = inputs.score, np.empty(len(inputs))

        def tilt(block: slice) -> None:
            sides = (np.ascontiguousarray(side[block]) for side in (inputs.left, inputs.right))
            shift, slope = np.empty(len(score[block])), np.empty(len(score[block]))
            kernels.tilts(profiles, effects, *sides, shift, slope)
            # P = sigmoid(φ · u + max(φ · v, 0) T(s))
            # In place, in blocks that stay in the cache.
            np.maximum(slope, 0.0, out=slope)
            slope *= self.calibrator_.log_odds(score[block])
            shift += slope
            probability[block] = sigmoid(shift)

        each(tilt, len(inputs), _PAIRS)
        # The global map is Baseline's, also in what pairs are ranked by.
        return Output(score if self.ridge_ == np.inf else probability, probability)

    def _get_state(self) -> dict[str, Any]:
        return {
            **prefixed("calibrator", self.calibrator_.get_state()),
            **prefixed("landscape", self.feature_map_.get_state()),
            "effects": self.effects_,
            "ridge": self.ridge_ if self.ridge_ < np.inf else None,  # JSON has no infinity
            "association": self.association_,
            "normalize": self.space_.normalize,
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        calibrator = make_calibrator(self.calibrator, self.score_range_)
        self.calibrator_ = calibrator.set_state(unprefixed("calibrator", state))
        self.feature_map_ = FeatureMap.from_state(unprefixed("landscape", state))
        dimension, r = self.feature_map_.axes.shape
        r += len(self.feature_map_.centers)
        self.space_ = Space(dimension, check_truth("normalize", state["normalize"]))
        self.association_ = float(state["association"])
        self.ridge_ = np.inf if state["ridge"] is None else float(state["ridge"])
        self.effects_ = np.asarray(state["effects"], float)
        expected = (2, 1 + len(self.feature_map_.mixture) + r)
        if self.effects_.shape != expected or not np.isfinite(self.effects_).all():
            raise DataError(
                f"effects: expected finite numbers of shape {expected}, "
                f"found shape {self.effects_.shape}"
            )
        self._profiles = Profiler.of(self.feature_map_, self.effects_).of_images(self.space_)


@dataclass(frozen=True, eq=False)
class Profiler:
    """Works out what pairs need of an image; all that is linear in it is one product."""

    feature_map: FeatureMap
    linear: Float64
    constant: Float64
    of_regions: Float64

    @classmethod
    def of(cls, feature_map: FeatureMap, effects: Float64) -> Profiler:
        """Join what is linear in an image; `effects` are u and v."""
        n, r = len(feature_map.mixture), feature_map.axes.shape[1]
        constant, _, coordinates, regions = np.split(effects, [1, 1 + n, 1 + n + r], axis=1)
        linear = feature_map.axes @ np.hstack([coordinates.T, feature_map.directions])
        shift = -feature_map.mean @ linear
        shift[:2] += constant[:, 0]
        return cls(feature_map, linear, shift, np.ascontiguousarray(regions.T))

    def of_images(self, space: Space) -> ImageValues:
        """Return the profiles of images, each worked out once."""
        return ImageValues(space, self, np.float64, 2 + 2 * len(self.feature_map.mixture))

    def __call__(self, vectors: NDArray[np.float32], _: Engine) -> Float64:
        """Return the profiles of vectors, shape (n, 2 + 2J)."""

        def work(block: slice) -> Float64:
            points = vectors[block].astype(np.float64)
            projected = points @ self.linear + self.constant
            shift_and_tilt = projected[:, :2] + self.feature_map.regions(points) @ self.of_regions
            return np.hstack([shift_and_tilt, self.feature_map.memberships(projected[:, 2:])])

        with one_blas_thread():
            return np.concatenate(each(work, len(vectors), _IMAGES))
