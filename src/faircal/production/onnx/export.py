"""A model as one ONNX graph and file: from two embeddings to all that is said of a pair."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logit

from faircal._base.errors import MissingExtraError, NotFittedError, ParameterError
from faircal._base.files import atomic_path
from faircal._version import __version__
from faircal.calibrators.prior import SHARE_FIGURE, check_share
from faircal.data.dataset import COSINE_RANGE
from faircal.methods import Method
from faircal.methods.clusters import model_centers, model_space
from faircal.methods.modelfile import encode
from faircal.methods.prior import fitted_share
from faircal.metrics.calibration import NLL_EPS
from faircal.production.onnx.graph import Graph, GraphValue, Node, Port
from faircal.production.onnx.methods import PAIRS, PairInputs, Said, build_of

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, ValueInfoProto


#: Version of ONNX's operations, and of its files: onnxruntime reads both since 1.14.
OPSET, FORMAT = 18, 8
#: More than this an ONNX file cannot hold.
MOST_BYTES = 2**31 - 2**20


def check_installed() -> None:
    """Raise `MissingExtraError` where the package onnx is not installed."""
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "an ONNX graph needs onnx, which is not installed: pip install 'faircal[onnx]'"
        ) from error


def to_onnx(graph: Graph, name: str, words: str, metadata: Mapping[str, str]) -> ModelProto:
    """Return a graph as ONNX knows it, checked.

    Parameters
    ----------
    graph : Graph
    name, words : str
        What it is, in a word and in a sentence.
    metadata : mapping from str to str
    """
    check_installed()
    from onnx import checker, helper, numpy_helper

    if graph.size > MOST_BYTES:
        raise ParameterError(
            f"the maps of the model make a graph of {graph.size / 1e9:.1f} GB, and an ONNX file "
            "holds 2: fit with another calibrator (beta keeps three numbers a map)"
        )
    model = helper.make_model(
        helper.make_graph(
            [_node(node) for node in graph.nodes],
            name,
            [_port(port) for port in graph.inputs],
            [_port(port) for port in graph.outputs],
            [numpy_helper.from_array(array, key) for key, array in graph.arrays.items()],
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=FORMAT,
        producer_name="faircal",
        producer_version=__version__,
        doc_string=words,
    )
    helper.set_model_props(model, dict(metadata))
    checker.check_model(model, full_check=True)
    return model


def write(model: ModelProto, path: Path) -> None:
    """Write an ONNX file; it appears whole or not at all. The same graph gives the same bytes."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(model.SerializeToString(deterministic=True))


def _node(node: Node) -> NodeProto:
    from onnx import helper

    settings: dict[str, Any] = {
        key: _element(value) if isinstance(value, np.dtype) else value
        for key, value in node.settings.items()
    }
    return helper.make_node(node.operation, node.inputs, node.outputs, node.outputs[0], **settings)


def _port(port: Port) -> ValueInfoProto:
    from onnx import helper

    return helper.make_tensor_value_info(
        port.name, _element(port.kind), port.shape, doc_string=port.meaning
    )


def _element(kind: np.dtype[Any]) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(kind))


#: Above so many bytes a graph is called large.
LARGE = 200_000_000
#: What of a model's provenance goes into the graph's metadata.
_FACTS = ("data", "data_sha256", "feature", "counts", "intended_use", "limits", "simulated")


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes
    ----------
    path : Path
    bytes : int
    inputs, outputs : dict from str to str
        By name, what each is.
    metadata : dict from str to str
    notes : tuple of str
        What whoever uses the graph should know.
    """

    path: Path
    bytes: int
    inputs: dict[str, str]
    outputs: dict[str, str]
    metadata: dict[str, str]
    notes: tuple[str, ...]


def export_onnx(
    model: Method,
    path: str | Path,
    *,
    prior: float | None = None,
    model_sha256: str | None = None,
) -> Exported:
    """Write a fitted model as one ONNX graph, to be run by onnxruntime or another runtime.

    The graph takes embeddings ``left`` and ``right``, float32 of shape (pairs, d), and gives what
    `faircal.production.scoring.judging.Judge` gives: ``probability``, ``score``, ``similarity`` and
    ``log_likelihood_ratio`` in double precision, clusters, whether images are outside of the
    calibration population, and ``same``, the decision at the model's operating point. A method
    that needs groups takes ``left_group`` and ``right_group`` besides. A pair with a vector that
    is zero, infinite or NaN gets NaN.

    Parameters
    ----------
    model : Method
        Fitted, of a method without training.
    path : str or Path
    prior : float, optional
        Share of genuine pairs that probabilities are wanted for; that of the fit unless told.
    model_sha256 : str, optional
        Of the model file; that of the bytes that saving would write unless told.

    Examples
    --------
    >>> import faircal
    >>> data = faircal.simulate("small", seed=0)
    >>> model = faircal.FairCal(n_clusters=20).fit(data)
    >>> export_onnx(model, "model.onnx").outputs["probability"]  # doctest: +SKIP
    'P(genuine)'
    """
    check_installed()
    graph, notes = Graph(), []
    pairs, result = _pairs(model, graph)
    share = share_of(model)
    if share is None:
        if prior is not None:
            fitted_share(model, "prior")  # raises: nobody knows it
        notes.append("the model does not say at which share of genuine pairs it was fitted: the "
                     "graph has no log_likelihood_ratio; fit it again")  # fmt: skip
    _say(model, pairs, result, share, prior)
    if graph.size > LARGE:
        notes.append(f"the graph is large ({graph.size / 1e6:.0f} MB): its maps have a knot for "
                     "every score of calibration; beta keeps three numbers a map")  # fmt: skip
    metadata = _metadata(model, pairs, share, prior, model_sha256)
    words = f"{model.title} of faircal: from the embeddings of two images to P(genuine)"
    target = Path(path)
    write(to_onnx(graph, "faircal", words, metadata), target)
    return Exported(
        target,
        target.stat().st_size,
        {port.name: port.meaning for port in graph.inputs},
        {port.name: port.meaning for port in graph.outputs},
        metadata,
        tuple(notes),
    )


def _pairs(model: Method, graph: Graph) -> tuple[PairInputs, Said]:
    if not model._fitted:
        raise NotFittedError(f"{type(model).__name__} is not fitted yet; call fit first")
    build = build_of(model)
    if model.score_range_ != COSINE_RANGE:
        raise ParameterError(
            f"the model was fitted on scores in {model.score_range_}, which are no cosines of "
            "embeddings; fit it on embeddings"
        )
    space = model_space(model)
    pairs = PairInputs(graph, space and space.dimension, space is None or space.normalize)
    return pairs, build(model, pairs)


def share_of(model: Method) -> float | None:
    """Return the share of genuine pairs that a model was fitted at; None: it does not say."""
    share = model.diagnostics_.figures.get(SHARE_FIGURE)
    return None if share is None else check_share(share, "the model's share of genuine pairs")


def _say(
    model: Method, pairs: PairInputs, result: Said, share: float | None, prior: float | None
) -> None:
    """Declare the outputs."""
    graph, usable = pairs.graph, pairs.usable
    score, probability = (usable.where(value, np.nan) for value in result)

    def output(name: str, value: GraphValue, meaning: str) -> None:
        graph.output(name, value, (PAIRS,), meaning)

    shown = probability
    if share is not None and prior is not None:
        shown = _shifted(probability, share, check_share(prior, "prior"))
    output("probability", shown, "P(genuine)")
    output("score", score, "what the model ranks by")
    output("similarity", usable.where(pairs.similarity, np.nan), "cosine")
    if share is not None:
        clipped = probability.clipped(NLL_EPS, 1 - NLL_EPS)
        odds = (clipped / (1.0 - clipped)).log()
        ratio = usable.where(odds - float(logit(share)), np.nan)
        output("log_likelihood_ratio", ratio, "genuine over imposter, nats")
    point = model.about_.operating_point
    if point is not None:
        same = (score if point.on == "score" else shown) >= point.threshold
        output("same", same, "taken for genuine at the operating point")
    _say_places(model, pairs, output)


def _say_places(model: Method, pairs: PairInputs, output: Any) -> None:
    centers, population = model_centers(model), model.about_.population
    if centers is None:
        return
    for side in (pairs.left, pairs.right):
        cluster = side.usable.where(side.nearest(centers), -1)
        output(f"{side.name}_cluster", cluster, "nearest cluster; -1 where there is no vector")
    if population is None or not len(population.centers):
        return
    for side in (pairs.left, pairs.right):
        reach = pairs.graph.constant(population.reach).take(side.nearest(population.centers))
        within = side.usable & (side.distance(population.centers) <= reach)
        output(f"{side.name}_outside", ~within, "outside of the calibration population")


def _shifted(probability: GraphValue, before: float, after: float) -> GraphValue:
    """Return probabilities for another share of genuine pairs, as `shift_prior` does."""
    if before == after:
        return probability
    genuine = probability * (after / before)
    return genuine / (genuine + (1.0 - probability) * ((1 - after) / (1 - before)))


def _metadata(
    model: Method,
    pairs: PairInputs,
    share: float | None,
    prior: float | None,
    sha256: str | None,
) -> dict[str, str]:
    """Return what the file says of itself; whatever is no text is JSON."""
    point, provenance = model.about_.operating_point, model.about_.provenance
    facts_told = {} if provenance is None else provenance.as_json()
    facts = {
        "faircal_version": __version__,
        "model_sha256": sha256 or hashlib.sha256(encode(model)).hexdigest(),
        "method": model.name,
        "normalize": pairs.left.normalize,
        "calibrated_at": share,
        "prior": prior,
        "groups": list(pairs.group_names) or None,
        "attribute": getattr(model, "attribute_", None) if pairs.group_names else None,
        "threshold": None if point is None else point.threshold,
        "threshold_on": None if point is None else point.on,
        **{key: facts_told[key] for key in _FACTS if facts_told.get(key)},
    }
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in facts.items()
        if value is not None
    }
