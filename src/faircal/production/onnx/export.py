"""A model as one ONNX graph and file: from two embeddings to all that is said of a pair."""

from __future__ import annotations

import hashlib
import importlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from faircal._base.errors import (
    MissingExtraError,
    ModelFileError,
    NotFittedError,
    ParameterError,
)
from faircal._base.files import atomic_path, check_output, existing, file_digest
from faircal._base.registry import short
from faircal._version import __version__
from faircal.calibrators.prior import check_share
from faircal.data import Embeddings, Groups
from faircal.data.dataset import COSINE_RANGE
from faircal.methods import Method, load_method
from faircal.methods.clusters import model_centers, model_space
from faircal.methods.modelfile import encode
from faircal.methods.prior import Shift, fitted_share
from faircal.metrics import EvidenceBounds
from faircal.metrics.calibration import NLL_EPS
from faircal.production.onnx.graph import Graph, GraphValue
from faircal.production.onnx.methods import PAIRS, PairInputs, Said, build_of
from faircal.production.scoring.run import AT_BOUND

Feed = dict[str, NDArray[Any]]

#: More than this an ONNX file cannot hold.
MOST_BYTES = 2**31 - 2**20


#: How far apart probabilities of the graph and of the model may be.
TOLERANCE = 1e-5
#: Length of made-up embeddings where the model takes any.
_DIMENSION = 128
#: Pairs that the graph is asked about at a time.
_BATCH = 10_000
#: What of a model's provenance goes into the graph's metadata.
_FACTS = ("data", "data_sha256", "feature", "counts", "intended_use", "limits", "simulated")


def _require(package: str) -> Any:
    """Import a package of the extra onnx."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(
            f"ONNX graphs need {package}, which is not installed: pip install 'faircal[onnx]'"
        ) from error


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
        Share of genuine pairs that probabilities are wanted for; that of the fit by default.
    model_sha256 : str, optional
        Of the model file; that of the bytes that saving would write by default.

    Examples
    --------
    >>> import faircal
    >>> data = faircal.simulate("small", seed=0)
    >>> model = faircal.FairCal(n_clusters=20).fit(data)
    >>> export_onnx(model, "model.onnx").outputs["probability"]  # doctest: +SKIP
    'P(genuine)'
    """
    _require("onnx")
    if not model._fitted:
        raise NotFittedError(f"{type(model).__name__} is not fitted yet; call fit first")
    build = build_of(model)
    if model.score_range_ != COSINE_RANGE:
        raise ParameterError(
            f"the model was fitted on scores in {model.score_range_}, which are no cosines of "
            "embeddings; fit it on embeddings"
        )
    graph, space, notes = Graph(), model_space(model), []
    pairs = PairInputs(graph, space and space.dimension, space is None or space.normalize)
    result = build(model, pairs)
    share = None
    if model.calibrated_at is not None or prior is not None:
        share = fitted_share(model, "prior")
    else:
        notes.append(
            "the model does not say at which share of genuine pairs it was fitted: the graph has "
            "no log_likelihood_ratio; fit it again"
        )
    if share is not None and model.about_.evidence is None:
        notes.append(model.about_.evidence_note)
    _say(model, pairs, result, share, prior)
    metadata = _metadata(model, pairs, share, prior, model_sha256)
    words = f"{model.title} of faircal: from the embeddings of two images to P(genuine)"
    target = Path(path)
    if graph.size > MOST_BYTES:
        raise ParameterError(
            f"the maps of the model make a graph of {graph.size / 1e9:.1f} GB, and an ONNX file "
            "holds 2: fit with another calibrator (beta keeps three numbers a map)"
        )
    onnx = graph.to_model("faircal", words, metadata)
    with atomic_path(target) as temporary:  # the same graph gives the same bytes
        temporary.write_bytes(onnx.SerializeToString(deterministic=True))
    return Exported(
        target,
        target.stat().st_size,
        {port.name: port.doc_string for port in graph.inputs},
        {port.name: port.doc_string for port in graph.outputs},
        metadata,
        tuple(notes),
    )


def _say(
    model: Method, pairs: PairInputs, result: Said, share: float | None, prior: float | None
) -> None:
    """Declare the outputs."""
    graph, usable = pairs.graph, pairs.usable
    score, probability = (usable.where(value, np.nan) for value in result)

    def output(name: str, value: GraphValue, meaning: str) -> None:
        graph.output(name, value, (PAIRS,), meaning)

    shown, bounds = probability, model.about_.evidence
    if share is not None and prior is not None:
        if bounds is not None:
            shown = usable.where(result[1].clipped(*bounds.ends(share)), np.nan)
        shown = _shifted(shown, share, check_share(prior, "prior"))
    output("probability", shown, "P(genuine)")
    output("score", score, "what the model ranks by")
    output("similarity", usable.where(pairs.similarity, np.nan), "cosine")
    if share is not None:
        _say_evidence(pairs, result[1], share, bounds)
    point = model.about_.operating_point
    if point is not None:
        same = (score if point.on == "score" else shown) >= point.threshold
        output("same", same, "taken for genuine at the operating point")
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


def _say_evidence(
    pairs: PairInputs, probability: GraphValue, share: float, bounds: EvidenceBounds | None
) -> None:
    """Declare the likelihood ratio and, where the model has bounds, whether it is at one."""
    # As `log_likelihood_ratio` does: at 0 and 1 log-odds are infinite.
    clipped = probability.clipped(NLL_EPS, 1 - NLL_EPS)
    ratio = (clipped / (1.0 - clipped)).log() - float(logit(share))
    if bounds is not None:
        beyond = ~((ratio > bounds.low) & (ratio < bounds.high))
        words = "whether evidence is at least as strong as is said"
        pairs.graph.output(AT_BOUND, pairs.usable & beyond, (PAIRS,), words)
        ratio = ratio.clipped(bounds.low, bounds.high)
    said = pairs.usable.where(ratio, np.nan)
    pairs.graph.output("log_likelihood_ratio", said, (PAIRS,), "genuine over imposter, nats")


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
    bounds = model.about_.evidence
    provenance_facts = {} if provenance is None else provenance.as_json()
    facts = {
        "faircal_version": __version__,
        "model_sha256": sha256 or hashlib.sha256(encode(model)).hexdigest(),
        "method": model.name,
        "normalize": pairs.left.normalize,
        "calibrated_at": share,
        "prior": prior,
        "evidence_bounds": bounds and bounds._asdict(),
        "groups": list(pairs.group_names) or None,
        "attribute": getattr(model, "attribute_", None) if pairs.group_names else None,
        "threshold": None if point is None else point.threshold,
        "threshold_on": None if point is None else point.on,
        **{key: provenance_facts[key] for key in _FACTS if provenance_facts.get(key)},
    }
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in facts.items()
        if value is not None
    }


# ------------------------------------------------------------------ graph against model


@dataclass(frozen=True)
class ExportAgreement:
    """How far apart the probabilities of a graph and of its model are.

    Attributes
    ----------
    pairs : int
        That both were asked about.
    largest : float
        The largest difference.
    """

    pairs: int
    largest: float

    @property
    def fine(self) -> bool:
        """Whether the graph is right."""
        return self.largest <= TOLERANCE


def check_export(
    model: Method,
    path: str | Path,
    *,
    prior: float | None = None,
    pairs: int = 10_000,
    random_state: int = 0,
) -> ExportAgreement:
    """Ask a graph and its model about the same made-up pairs, of people alike and unlike.

    Parameters
    ----------
    model : Method
    path : str or Path
        What `export_onnx` wrote for it.
    prior : float, optional
        That it was written for.
    pairs : int
    random_state : int
    """
    rng = np.random.default_rng(random_state)
    space, vectors = model_space(model), made_up(model, pairs, rng)
    left, right = np.arange(2 * pairs).reshape(2, -1)
    feed: Feed = {"left": vectors[left], "right": vectors[right]}
    groups = None
    if model.needs.groups_to_apply:
        names: tuple[str, ...] = getattr(model, "groups_", ())
        one, other = rng.integers(-1, len(names), (2, pairs))
        # Mostly within one group: pairs across groups all use the same map, and test no other.
        other = np.where(rng.random(pairs) < 0.7, one, other)
        groups = Groups(names, one.astype(np.int32), other.astype(np.int32))
        feed |= {"left_group": one, "right_group": other}
    embeddings = Embeddings(vectors, space is None or space.normalize)
    expected = model.compare(embeddings, left, right, groups).probability
    if prior is not None:
        expected = Shift.of(model, prior)(expected)
    (probability,) = run(path, feed, "probability")
    apart = np.abs(np.asarray(probability, np.float64) - expected)
    return ExportAgreement(pairs, float(apart.max()))


def made_up(model: Method, pairs: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return vectors of `pairs` left images and then of as many right ones, (2 · pairs, d).

    They lie around the centres of the model's clusters; cosines are anything up to 1.
    """
    space, centers = model_space(model), model_centers(model)
    d = _DIMENSION if space is None else space.dimension
    vectors = rng.standard_normal((2 * pairs, d), dtype=np.float32) / np.float32(np.sqrt(d))
    if centers is not None:
        vectors += centers[rng.integers(len(centers), size=2 * pairs)]
    alike = rng.random((pairs, 1), dtype=np.float32)
    vectors[pairs:] = alike * vectors[:pairs] + (1 - alike) * vectors[pairs:]
    return vectors


def run(path: str | Path, feed: Feed, *outputs: str) -> list[NDArray[Any]]:
    """Return outputs of a graph by onnxruntime on the processor, on one thread."""
    onnxruntime = _require("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what goes wrong, we say
    starts = range(0, max(len(feed["left"]), 1), _BATCH)
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        parts = [
            session.run(outputs, {key: rows[start : start + _BATCH] for key, rows in feed.items()})
            for start in starts
        ]
    except Exception as error:  # onnxruntime has no root of its errors
        raise ModelFileError(
            f"{path}: cannot be run by onnxruntime {onnxruntime.__version__} ({short(error)}); "
            "upgrade it"
        ) from error
    return [np.concatenate(several) for several in zip(*parts, strict=True)]


def export_model(
    model: str | Path, out: str | Path, *, prior: float | None = None
) -> tuple[Exported, ExportAgreement | None]:
    """Write a model file as one ONNX graph, once graph and model agree on made-up pairs.

    Parameters
    ----------
    model : path
        Model file.
    out : path
        File to write.
    prior : float, optional
        Share of genuine pairs that probabilities are for; that of the fit unless given.

    Returns
    -------
    Exported
    ExportAgreement or None
        None where onnxruntime is not installed, and nothing was asked.

    Examples
    --------
    >>> import faircal
    >>> faircal.export_model("m.faircal", "m.onnx")  # doctest: +SKIP
    """
    out = Path(out)
    check_output(out)
    fitted = load_method(existing(model))
    digest = file_digest(Path(model))
    with atomic_path(out) as temporary:
        written = export_onnx(fitted, temporary, prior=prior, model_sha256=digest)
        try:
            agreement = check_export(fitted, temporary, prior=prior)
        except MissingExtraError:
            agreement = None
        if agreement is not None and not agreement.fine:
            raise ModelFileError(
                f"{out}: not written: probabilities of graph and model differ by "
                f"{agreement.largest:.1g}; report it"
            )
    return replace(written, path=out), agreement
