"""Methods as graphs: what each ranks by and P(genuine), given the two images of each pair.

`PairInputs` is what every graph begins with: two vectors a pair, their cosine, nearest centres. A
method that is to be exported says what its graph is by `exports`, from any file::

    @exports(Doubtful)
    def doubtful(model, pairs):
        return pairs.similarity, 0.0 * pairs.similarity + model.share_

Those of faircal do so below.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import ParameterError
from faircal.calibrators.base import Calibrator
from faircal.methods import (
    DSN,
    FALCON,
    FSN,
    GST,
    ASNorm,
    Baseline,
    CohortFairCal,
    FairCal,
    Method,
    Oracle,
    SmoothFairCal,
    SNorm,
)
from faircal.methods.likeness import CLOSEST, Likeness
from faircal.methods.normalizing import LEAST_STD, GroupMoments, NormalizingMethod
from faircal.methods.smooth.features import FeatureMap
from faircal.methods.smooth.method import Profiler
from faircal.methods.trait_maps import DOUBT, FLOOR, UNKNOWN, WITHIN
from faircal.production.onnx.graph import DOUBLE, INTEGER, SINGLE, Graph, GraphValue, sigmoid
from faircal.production.onnx.maps import make_maps, set_maps

#: What lengths that are not known beforehand are called.
PAIRS, DIMENSION = "pairs", "dimension"
SideName = Literal["left", "right"]


class GraphSide:
    """One image of each pair.

    Parameters
    ----------
    graph : Graph
    name : {"left", "right"}
    dimension : int, optional
        Of embeddings, where the model knows it.
    normalize : bool
        Whether the model uses vectors of unit length.
    """

    def __init__(
        self, graph: Graph, name: SideName, dimension: int | None, normalize: bool
    ) -> None:
        shape = (PAIRS, dimension or DIMENSION)
        self.graph, self.name, self.normalize = graph, name, normalize
        self.given = graph.input(name, SINGLE, shape, f"embedding of the {name} image")
        self._nearest: list[tuple[NDArray[Any], GraphValue]] = []

    @cached_property
    def exact(self) -> GraphValue:
        """As given, in double precision, (n, d)."""
        return self.given.cast(DOUBLE)

    @cached_property
    def norm(self) -> GraphValue:
        """Euclidean length, (n,), rounded to single precision: faircal keeps it so."""
        squares = (self.exact * self.exact).sum(1)
        return self.graph.op("Sqrt", squares).cast(SINGLE)

    @cached_property
    def usable(self) -> GraphValue:
        """Whether a vector has a direction: not where it is zero, infinite or NaN, (n,)."""
        return (self.norm > 0.0) & (self.norm < np.inf)

    @cached_property
    def vectors(self) -> GraphValue:
        """As the model uses them, (n, d), single precision."""
        return self.given / self.norm.reshaped(-1, 1) if self.normalize else self.given

    @cached_property
    def rows(self) -> GraphValue:
        """The same numbers in double precision, (n, d)."""
        return self.vectors.cast(DOUBLE) if self.normalize else self.exact

    @cached_property
    def unit(self) -> GraphValue:
        """At unit length in double precision, (n, d)."""
        length = self.graph.op("Sqrt", (self.exact * self.exact).sum(1))
        return self.exact / length.reshaped(-1, 1)

    def moments(self, of_groups: GroupMoments) -> tuple[GraphValue, GraphValue]:
        """Return means and standard deviations of cosines with groups' people, (n, groups) each."""
        groups, d = of_groups.mean.shape
        # All quadratic forms in one product: columns of the groups' matrices side by side.
        matrices = of_groups.covariance.transpose(1, 0, 2).reshape(d, groups * d)
        products = (self.unit @ matrices).reshaped(0, groups, d) * self.unit.reshaped(0, 1, d)
        std = self.graph.op("Sqrt", products.sum(2).most(LEAST_STD**2))
        return self.unit @ of_groups.mean.T, std

    def nearest(self, centers: NDArray[Any]) -> GraphValue:
        """Return the nearest of `centers` (K, d) to each image, (n,); the first of equals."""
        for earlier, nearest in self._nearest:
            if np.array_equal(earlier, centers):
                return nearest
        exact = centers.astype(np.float64)
        # x·c − ½|c|² is largest for the nearest.
        near = self.rows @ exact.T - np.einsum("ij,ij->i", exact, exact) / 2  # (n, K)
        nearest = self.graph.op("ArgMax", near, kind=INTEGER, axis=1, keepdims=0)
        self._nearest.append((centers, nearest))
        return nearest

    def distance(self, centers: NDArray[np.float32]) -> GraphValue:
        """Return how far images are from their nearest centres, (n,), single precision."""
        away = self.vectors - self.graph.constant(centers, SINGLE).take(self.nearest(centers))
        return self.graph.op("Sqrt", (away * away).sum(1))


class PairInputs:
    """All that a method's graph can ask for; what it does not ask for is no input of the graph.

    Attributes
    ----------
    graph : Graph
    left, right : Side
    group_names : tuple of str
        Those that the codes of groups stand for; none where no groups were asked for.
    """

    def __init__(self, graph: Graph, dimension: int | None, normalize: bool) -> None:
        self.graph = graph
        self.left = GraphSide(graph, "left", dimension, normalize)
        self.right = GraphSide(graph, "right", dimension, normalize)
        self.group_names: tuple[str, ...] = ()

    @cached_property
    def similarity(self) -> GraphValue:
        """The cosine, (n,), in [−1, 1]."""
        dots = (self.left.exact * self.right.exact).sum(1)
        lengths = self.left.norm.cast(DOUBLE) * self.right.norm.cast(DOUBLE)
        return (dots / lengths).clipped(-1.0, 1.0)

    @cached_property
    def usable(self) -> GraphValue:
        """Whether both vectors have a direction, (n,)."""
        return self.left.usable & self.right.usable

    def clusters(self, centers: NDArray[Any]) -> tuple[GraphValue, GraphValue]:
        """Return the nearest centres of both images, (n,) each."""
        return self.left.nearest(centers), self.right.nearest(centers)

    def groups(self, names: tuple[str, ...]) -> tuple[GraphValue, GraphValue]:
        """Return the group of both images that are of one, (n,), and which pairs are of two, (n,).

        Groups come as places in `names`. A place after the last is a group that the model does not
        know, a negative one is unknown. The first value is a place in `names`, or their number
        where the pair is of no group.
        """
        left, right = self._group_inputs(names)
        same, labelled = left.equals(right), (left >= 0) & (right >= 0)
        group = (same & labelled & (left < len(names))).where(left, len(names))
        return group, ~same & labelled

    def side_groups(self, names: tuple[str, ...]) -> tuple[GraphValue, GraphValue]:
        """Return each image's place in `names`, (n,); their number where the group is not known."""
        left, right = (
            ((one >= 0) & (one < len(names))).where(one, len(names))
            for one in self._group_inputs(names)
        )
        return left, right

    def _group_inputs(self, names: tuple[str, ...]) -> list[GraphValue]:
        self.group_names = names
        meaning = "place of the group's name in metadata 'groups'; -1 where it is unknown"
        return [
            self.graph.input(f"{side}_group", INTEGER, (PAIRS,), meaning)
            for side in ("left", "right")
        ]


#: What a method's graph gives: score and probability of each pair, (n,) each.
Said = tuple[GraphValue, GraphValue]
Build = Callable[[Any, PairInputs], Said]
B = TypeVar("B", bound=Build)

_BUILDS: dict[type[Method], Build] = {}


def exports(method: type[Method]) -> Callable[[B], B]:
    """Say that a function gives the graph of `method` (use as a decorator)."""

    def register(build: B) -> B:
        _BUILDS[method] = build
        return build

    return register


def build_of(model: Method) -> Build:
    """Return the function that gives the graph of `model`'s method; an error where none does."""
    if model.needs.training:
        raise ParameterError(
            f"method {model.name} is trained, and a trained network is not exported; "
            "choose a method without training: faircal methods"
        )
    build = _BUILDS.get(type(model))  # not that of a parent: a child may score otherwise
    if build is None:
        raise ParameterError(
            f"method {model.name} has no graph: expected one of "
            f"{', '.join(sorted(method.name for method in _BUILDS))}; choose one of those, or say "
            "what its graph is with faircal.production.onnx.exports"
        )
    return build


def _only(graph: Graph, calibrator: Calibrator, score: GraphValue) -> GraphValue:
    return make_maps(graph, [calibrator]).probability(score)


@exports(Baseline)
def _baseline(model: Baseline, pairs: PairInputs) -> Said:
    return pairs.similarity, _only(pairs.graph, model.calibrator_, pairs.similarity)


@exports(FairCal)
def _faircal(model: FairCal, pairs: PairInputs) -> Said:
    k1, k2 = pairs.clusters(model.cluster_centers_)
    maps, sizes = set_maps(pairs.graph, model.calibrators_), model.cluster_sizes_
    # The lower cluster first, as in `SetCalibrators.mix`: the same sum whatever is on the left.
    low, high = k1.least(k2), k1.most(k2)
    p1, p2 = (maps.probability(pairs.similarity, k) for k in (low, high))
    table = pairs.graph.constant(sizes, DOUBLE)
    n1, n2 = table.take(low), table.take(high)
    probability = ((p1 - p2) * (n1 / (n1 + n2).most(1.0)) + p2).clipped(0.0, 1.0)
    return probability, probability


@exports(FSN)
def _fsn(model: FSN, pairs: PairInputs) -> Said:
    shifts = pairs.graph.constant(model.shifts_, DOUBLE)
    k1, k2 = pairs.clusters(model.cluster_centers_)
    score = pairs.similarity - (shifts.take(k1) + shifts.take(k2)) / 2.0
    return score, _only(pairs.graph, model.calibrator_, score)


@exports(Oracle)
def _oracle(model: Oracle, pairs: PairInputs) -> Said:
    group, cross = pairs.groups(model.groups_)
    within = set_maps(pairs.graph, model.calibrators_).probability(pairs.similarity, group)
    probability = cross.where(0.0, within)
    return probability, probability


@exports(GST)
def _gst(model: GST, pairs: PairInputs) -> Said:
    group, _ = pairs.groups(model.groups_)
    shift = pairs.graph.constant(np.append(model.shifts_, 0.0), DOUBLE).take(group)
    score = pairs.similarity - shift
    return score, _only(pairs.graph, model.calibrator_, score)


def _normalized(
    model: NormalizingMethod, pairs: PairInputs, *sides: tuple[GraphValue, GraphValue]
) -> Said:
    """Return the mean of both sides' (s − μ)/σ, and what the model's one map makes of it."""
    left, right = ((pairs.similarity - mean) / std for mean, std in sides)
    return _mapped(model, pairs, (left + right) / 2.0)


def _mapped(model: NormalizingMethod, pairs: PairInputs, score: GraphValue) -> Said:
    return score, _only(pairs.graph, model.calibrator_, score)


@exports(SNorm)
def _snorm(model: SNorm, pairs: PairInputs) -> Said:
    sides = [side.moments(model.moments_) for side in (pairs.left, pairs.right)]
    return _normalized(model, pairs, *((mean.column(0), std.column(0)) for mean, std in sides))


@exports(ASNorm)
def _asnorm(model: ASNorm, pairs: PairInputs) -> Said:
    k = min(model.k, len(model.people_))

    def moments(side: GraphSide) -> tuple[GraphValue, GraphValue]:
        highest = pairs.graph.constant([k], INTEGER)
        top = pairs.graph.op("TopK", side.unit @ model.people_.T, highest)  # (n, k)
        mean = top.sum(1) / float(k)
        variance = ((top * top).sum(1) / float(k) - mean * mean).most(LEAST_STD**2)
        return mean, pairs.graph.op("Sqrt", variance)

    return _normalized(model, pairs, moments(pairs.left), moments(pairs.right))


@exports(DSN)
def _dsn(model: DSN, pairs: PairInputs) -> Said:
    graph, (left, right) = pairs.graph, pairs.side_groups(model.groups_)
    if model.variant == "image":

        def entry(values: GraphValue, group: GraphValue) -> GraphValue:
            chosen = graph.op("GatherElements", values, group.reshaped(-1, 1), axis=1)
            return chosen.reshaped(-1)

        def moments(side: GraphSide, other: GraphValue) -> tuple[GraphValue, GraphValue]:
            mean, std = side.moments(model.moments_)
            return entry(mean, other), entry(std, other)

        sides = moments(pairs.left, right), moments(pairs.right, left)
        return _normalized(model, pairs, *sides)

    def of(row: int, group: GraphValue) -> tuple[GraphValue, GraphValue]:
        mean, std = (graph.constant(values[row], DOUBLE) for values in model.pairs_)
        return mean.take(group), std.take(group)

    if model.variant == "group":
        return _normalized(model, pairs, of(0, left), of(0, right))

    def cdf(mean: GraphValue, std: GraphValue) -> GraphValue:
        # Runtimes have no error function in double precision.
        z = (pairs.similarity - mean) / (std * np.sqrt(2.0))
        return (graph.op("Erf", z.cast(SINGLE)).cast(DOUBLE) + 1.0) / 2.0

    both = [cdf(*of(1, group)) - 1.0 + cdf(*of(0, group)) for group in (left, right)]
    return _mapped(model, pairs, (both[0] + both[1]) / 2.0)


@exports(FALCON)
def _falcon(model: FALCON, pairs: PairInputs) -> Said:
    def threshold(side: GraphSide) -> GraphValue:
        products = side.unit @ model.images_.T
        kernel = products
        if model.kernel == "rbf":
            kernel = ((products - 1.0) * (2 * model.gamma)).exp()
        elif model.kernel == "polynomial":
            base = products * model.gamma + 1.0
            kernel = base
            for _ in range(model.degree - 1):
                kernel = kernel * base
        return (kernel @ model.weights_[:, None]).reshaped(-1)

    both = threshold(pairs.left) + threshold(pairs.right)
    score = pairs.similarity * model.omega + (1.0 - both) * (1 - model.omega)
    return _mapped(model, pairs, score)


@exports(CohortFairCal)
def _cohort(model: CohortFairCal, pairs: PairInputs) -> Said:
    fitted = model.map_

    def added(side: GraphSide) -> GraphValue:
        traits, trust = _likeness(side, model.likeness_)
        away = (traits - fitted.mean) / fitted.scale
        clipped = _doubted(away.clipped(-WITHIN, WITHIN), FLOOR, DOUBT)
        learned = (clipped @ fitted.effects[:, 1:].T) * trust
        first = _doubted(away.columns(0, 1), FLOOR, DOUBT)
        shift = (trust * (first - UNKNOWN) + UNKNOWN) * (fitted.shift * fitted.scale[0])
        return side.graph.op("Concat", shift, learned, axis=1)  # (n, 3)

    both = added(pairs.left) + added(pairs.right)
    constant, slope = fitted.effects[:, 0]
    maps = make_maps(pairs.graph, [fitted.calibrator])
    log_odds = maps.log_odds(pairs.similarity - both.column(0))
    tilted = log_odds * (both.column(2) + slope).most(0.0)
    probability = sigmoid(tilted + (both.column(1) + constant))
    return probability, probability


def _likeness(side: GraphSide, likeness: Likeness) -> tuple[GraphValue, GraphValue]:
    """Return the three traits of an image, (n, 3), and how far it is trusted, (n, 1)."""
    most = min(max(CLOSEST), len(likeness.people))
    number = side.graph.constant([most], INTEGER)
    highest = side.graph.op("TopK", side.unit @ likeness.people.T, number)
    means = np.stack([np.arange(most) < k for k in CLOSEST], axis=1).astype(np.float64)
    means /= means.sum(axis=0)
    # Kinds by softmax of 2 x·c − |c|², which is as −|x − c|².
    to_centers, centers = side.unit @ likeness.centers.T, likeness.centers
    near = (to_centers * 2.0 - (centers**2).sum(axis=1)) * likeness.sharpness
    kinds = side.graph.op("Softmax", near, axis=1)
    own = (kinds * to_centers).sum(1).reshaped(-1, 1)
    sure = (kinds * kinds).sum(1).reshaped(-1, 1)
    closeness = _doubted(highest @ means, kinds @ likeness.levels, sure)
    traits = side.graph.op("Concat", closeness, own, axis=1)
    # The squared distance to the nearest centre, along the axes.
    places, centers = side.unit @ likeness.axes, centers @ likeness.axes
    nearest = ((places @ centers.T) * 2.0 - (centers**2).sum(axis=1)).max(1)  # (n, 1)
    distance = (places * places).sum(1).reshaped(-1, 1) - nearest
    near_end, end = likeness.far
    trust = ((distance * -1.0 + end) / (end - near_end)).clipped(0.0, 1.0)
    return traits, trust


def _doubted(
    values: GraphValue, floor: GraphValue | float, counting: GraphValue | float
) -> GraphValue:
    """Return what `likeness.doubted` does."""
    return values.most((values - floor) * counting + floor)


@exports(SmoothFairCal)
def _smooth(model: SmoothFairCal, pairs: PairInputs) -> Said:
    profiler, n = Profiler.of(model.feature_map_, model.effects_), len(model.feature_map_.mixture)
    (own1, e1, g1), (own2, e2, g2) = (
        _profile(side, profiler, model.feature_map_) for side in (pairs.left, pairs.right)
    )
    effects = (own1 + own2) / 2.0  # (n, 2): shift and tilt
    if n:
        share = e1 * g2 + g1 * e2  # (n, J): the pair's components, but for their sum
        mass = share.sum(1).reshaped(-1, 1)
        effects = effects + share @ model.effects_[:, 1 : 1 + n].T / mass
    shift, tilt = effects.column(0), effects.column(1).most(0.0)
    log_odds = make_maps(pairs.graph, [model.calibrator_]).log_odds(pairs.similarity)
    probability = sigmoid(shift + tilt * log_odds)
    return (pairs.similarity if model.ridge_ == np.inf else probability), probability


def _profile(
    side: GraphSide, profiler: Profiler, feature_map: FeatureMap
) -> tuple[GraphValue, GraphValue, GraphValue]:
    """Return an image's own shift and tilt, (n, 2), and its memberships e and g, (n, J) each."""
    centers, width = feature_map.centers, profiler.linear.shape[1]
    # All that is linear in the vectors is one product: shift, tilt and places; then regions.
    slopes = np.hstack([profiler.linear, (2 / feature_map.softness) * centers.T])
    level = -np.einsum("ij,ij->i", centers, centers) / feature_map.softness
    linear = side.rows @ slopes + np.concatenate([profiler.constant, level])  # (n, 2 + k + K)
    regions = side.graph.op("Softmax", linear.columns(width, slopes.shape[1]), axis=1)
    scale = np.sqrt(feature_map.axes.shape[1] / 2)
    shift_and_tilt = linear.columns(0, 2) + regions @ (scale * profiler.of_regions)
    if not len(feature_map.mixture):
        return shift_and_tilt, shift_and_tilt, shift_and_tilt
    # How likely each component makes images at their places (n, k), the likeliest 1: (n, J).
    places, mixture = linear.columns(2, width), feature_map.mixture
    n, k, _ = mixture.factors.shape
    factors = mixture.factors.transpose(2, 0, 1).reshape(k, n * k)
    middle = np.einsum("jab,jb->ja", mixture.factors, mixture.means).reshape(n * k)
    away = (places @ factors - middle).reshaped(0, n, k)  # (n, J, k)
    logs: GraphValue = (away * away).sum(2) * -0.5 + mixture.constants
    e = (logs - logs.max(1)).exp()
    return shift_and_tilt, e, e @ mixture.coupling
