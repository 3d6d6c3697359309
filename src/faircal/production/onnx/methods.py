"""Methods as graphs: what each ranks by and P(genuine), given the two images of each pair.

A method that is to be exported says what its graph is by `exports`, from any file::

    @exports(Doubtful)
    def doubtful(model, pairs):
        return pairs.similarity, 0.0 * pairs.similarity + model.share_

Those of faircal do so below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from faircal._base.errors import ParameterError
from faircal.calibrators.base import Calibrator
from faircal.methods import FSN, GST, Baseline, FairCal, Method, Oracle, SmoothFairCal
from faircal.methods.smooth.landscape import Landscape
from faircal.methods.smooth.method import Profiler
from faircal.production.onnx.graph import DOUBLE, Graph, Value, sigmoid
from faircal.production.onnx.maps import bank_maps, make_maps
from faircal.production.onnx.pairs import PairInputs, Side

#: What a method's graph gives: score and probability of each pair, (n,) each.
Said = tuple[Value, Value]
Build = Callable[[Any, PairInputs], Said]
B = TypeVar("B", bound=Build)

_BUILDS: dict[type[Method], Build] = {}


def exports(method: type[Method]) -> Callable[[B], B]:
    """Say that a function gives the graph of `method` (use as a decorator)."""

    def known(build: B) -> B:
        _BUILDS[method] = build
        return build

    return known


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
            f"{', '.join(sorted(known.name for known in _BUILDS))}; choose one of those, or say "
            "what its graph is with faircal.production.onnx.exports"
        )
    return build


def _only(graph: Graph, calibrator: Calibrator, score: Value) -> Value:
    return make_maps(graph, [calibrator]).probability(score)


@exports(Baseline)
def _baseline(model: Baseline, pairs: PairInputs) -> Said:
    return pairs.similarity, _only(pairs.graph, model.calibrator_, pairs.similarity)


@exports(FairCal)
def _faircal(model: FairCal, pairs: PairInputs) -> Said:
    k1, k2 = pairs.clusters(model.cluster_centers_)
    maps, sizes = bank_maps(pairs.graph, model.bank_), model.cluster_sizes_
    # The lower cluster first, as in the bank: the same sum whichever image is on the left.
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
    found = bank_maps(pairs.graph, model.bank_).probability(pairs.similarity, group)
    probability = cross.where(0.0, found)
    return probability, probability


@exports(GST)
def _gst(model: GST, pairs: PairInputs) -> Said:
    group, _ = pairs.groups(model.groups_)
    shift = pairs.graph.constant(np.append(model.shifts_, 0.0), DOUBLE).take(group)
    score = pairs.similarity - shift
    return score, _only(pairs.graph, model.calibrator_, score)


@exports(SmoothFairCal)
def _smooth(model: SmoothFairCal, pairs: PairInputs) -> Said:
    profiler, n = Profiler.of(model.landscape_, model.effects_), len(model.landscape_.mixture)
    (own1, e1, g1), (own2, e2, g2) = (
        _profile(side, profiler, model.landscape_) for side in (pairs.left, pairs.right)
    )
    effects = (own1 + own2) / 2.0  # (n, 2): shift and tilt
    if n:
        share = e1 * g2 + g1 * e2  # (n, J): the pair's components, but for their sum
        mass = share.sum(1).reshaped(-1, 1)
        effects = effects + share @ model.effects_[:, 1 : 1 + n].T / mass
    shift, tilt = effects.column(0), effects.column(1).most(0.0)
    log_odds = make_maps(pairs.graph, [model.calibrator_]).log_odds(pairs.similarity)
    probability = sigmoid(shift + tilt * log_odds)
    return probability, probability


def _profile(side: Side, profiler: Profiler, landscape: Landscape) -> tuple[Value, Value, Value]:
    """Return an image's own shift and tilt, (n, 2), and its memberships e and g, (n, J) each."""
    centers, width = landscape.centers, profiler.linear.shape[1]
    # All that is linear in the vectors is one product: shift, tilt and places; then regions.
    slopes = np.hstack([profiler.linear, (2 / landscape.softness) * centers.T])
    level = -np.einsum("ij,ij->i", centers, centers) / landscape.softness
    found = side.rows @ slopes + np.concatenate([profiler.constant, level])  # (n, 2 + k + K)
    regions = side.graph.op("Softmax", found.columns(width, slopes.shape[1]), axis=1)
    scale = np.sqrt(landscape.axes.shape[1] / 2)
    own = found.columns(0, 2) + regions @ (scale * profiler.of_regions)
    if not len(landscape.mixture):
        return own, own, own
    e = _likelihoods(found.columns(2, width), landscape)
    return own, e, e @ landscape.mixture.coupling


def _likelihoods(places: Value, landscape: Landscape) -> Value:
    """Return how likely each component makes images at `places` (n, k), the likeliest 1: (n, J)."""
    mixture = landscape.mixture
    n, k, _ = mixture.factors.shape
    factors = mixture.factors.transpose(2, 0, 1).reshape(k, n * k)
    middle = np.einsum("jab,jb->ja", mixture.factors, mixture.means).reshape(n * k)
    away = (places @ factors - middle).reshaped(0, n, k)  # (n, J, k)
    found: Value = (away * away).sum(2) * -0.5 + mixture.constants
    return (found - found.max(1)).exp()
