"""Whether a graph says what its model says: both are asked about the same made-up pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import MissingExtraError, ModelFileError
from faircal._base.files import atomic_path, check_file, existing, file_digest
from faircal._base.registry import short
from faircal.calibrators.prior import shift_prior
from faircal.data import Embeddings, Groups
from faircal.methods import Method, load_method
from faircal.methods.clusters import model_centers, model_space
from faircal.production.onnx.export import Exported, export_onnx, share_of

Float32 = NDArray[np.float32]
Feed = dict[str, NDArray[Any]]

#: How far apart probabilities of the graph and of the model may be.
TOLERANCE = 1e-5
#: Length of made-up embeddings where the model takes any.
_DIMENSION = 128
#: Pairs that the graph is asked about at a time.
_BATCH = 10_000


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
        What `faircal.production.onnx.export_onnx` wrote for it.
    prior : float, optional
        That it was written for.
    pairs : int
    random_state : int
    """
    rng = np.random.default_rng(random_state)
    apart = differences(model, path, made_up(model, pairs, rng), rng, prior)
    return ExportAgreement(pairs, float(apart.max()))


def made_up(model: Method, pairs: int, rng: np.random.Generator) -> Float32:
    """Return vectors of `pairs` left images and then of as many right ones, (2 · pairs, d).

    They lie around the centres that the model knows; cosines are anything up to 1.
    """
    space, centers = model_space(model), model_centers(model)
    d = _DIMENSION if space is None else space.dimension
    vectors = rng.standard_normal((2 * pairs, d), dtype=np.float32) / np.float32(np.sqrt(d))
    if centers is not None:
        vectors += centers[rng.integers(len(centers), size=2 * pairs)]
    alike = rng.random((pairs, 1), dtype=np.float32)
    vectors[pairs:] = alike * vectors[:pairs] + (1 - alike) * vectors[pairs:]
    return vectors


def differences(
    model: Method,
    path: str | Path,
    vectors: Float32,
    rng: np.random.Generator,
    prior: float | None = None,
) -> NDArray[np.float64]:
    """Return how far probabilities of graph and model are apart, (n,); vectors are (2n, d)."""
    space = model_space(model)
    embeddings = Embeddings(vectors, space is None or space.normalize)
    left, right = np.arange(len(vectors)).reshape(2, -1)
    feed: Feed = {"left": vectors[left], "right": vectors[right]}
    groups = None
    if model.needs.groups_to_apply:
        names: tuple[str, ...] = getattr(model, "groups_", ())
        one, other = rng.integers(-1, len(names), (2, len(left)))
        other = np.where(rng.random(len(left)) < 0.7, one, other)
        groups = Groups(names, one.astype(np.int32), other.astype(np.int32))
        feed |= {"left_group": one, "right_group": other}
    expected = model.compare(embeddings, left, right, groups).probability
    share = share_of(model)
    if prior is not None and share is not None:
        expected = shift_prior(expected, calibrated_at=share, prior=prior)
    (probability,) = run(path, feed, "probability")
    return np.abs(np.asarray(probability, np.float64) - expected)


def run(path: str | Path, feed: Feed, *outputs: str) -> list[NDArray[Any]]:
    """Return outputs of a graph by onnxruntime on the processor, on one thread."""
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtraError(
            "running a graph needs onnxruntime, which is not installed: pip install 'faircal[onnx]'"
        ) from error
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
    check_file(out)
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
