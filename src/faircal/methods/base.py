"""The contract of every method: what it needs, what it may see, what it gives."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from faircal.calibrators import make_calibrator
from faircal.data import Dataset, Embeddings, Groups, Memo
from faircal.errors import DataError, MissingExtraError, NotFittedError, ParameterError
from faircal.jobs import Job, Progress, silent
from faircal.metrics import ThresholdRule
from faircal.registry import check_whole, did_you_mean

Float64 = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True)
class Needs:
    """What a method needs, beyond scores and labels of calibration pairs.

    The command line, the benchmark and the table of properties read this; nothing asks for a
    method's name.

    Parameters
    ----------
    embeddings : bool
    groups_to_fit, groups_to_apply : bool
        The groups of the pairs, when fitting or when applying.
    several_attributes : bool
        Two or more attributes, whose groups are used one by one.
    identities : bool
        Who is in each image, when fitting.
    training : bool
        Whether networks are trained.
    extra : str, optional
        The extra of faircal that brings a package of the same name, without which nothing goes.
    """

    embeddings: bool = False
    groups_to_fit: bool = False
    groups_to_apply: bool = False
    several_attributes: bool = False
    identities: bool = False
    training: bool = False
    extra: str | None = None

    def missing(self, data: Dataset, attribute: str | None, fitting: bool = True) -> str | None:
        """Say what `data` lacks to fit this method, or to apply it; None when it lacks nothing.

        `attribute` is the one whose groups are to be used, None where there is none.
        """
        if self.uninstalled() is not None:
            return f"it needs {self.uninstalled()}"
        if self.embeddings and data.embeddings is None:
            return "it needs embeddings, and the data has scores only"
        if (self.groups_to_fit or self.groups_to_apply) and attribute is None:
            return f"it needs groups, and {data.why_no_groups()}"
        if self.several_attributes and "+" not in (attribute or ""):
            return f"it takes two or more attributes one by one, and there is one: {attribute}"
        if self.identities and fitting and (data.images.identity is None or not data.has_images):
            return "it needs to know who is in each image, and there is no column 'identity'"
        return None

    def uninstalled(self) -> str | None:
        """Say which package is not installed and how to install it; None where none lacks."""
        if self.extra is None or _is_installed(self.extra):
            return None
        return f"{self.extra}, which is not installed: pip install 'faircal[{self.extra}]'"

    def check_installed(self, method: str) -> None:
        """Raise `MissingExtraError` where a package is not installed that `method` needs."""
        if self.uninstalled() is not None:
            raise MissingExtraError(f"method {method} needs {self.uninstalled()}")


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


@dataclass(frozen=True)
class Claims:
    """What the paper's table of properties says a method achieves."""

    improves_accuracy: bool = False
    fairly_calibrated: bool = False
    predictive_equality: bool = False


@dataclass(frozen=True, eq=False)
class Inputs:
    """All that a method may see of a dataset: what it declares to need, and nothing else.

    Attribute-free methods get no `groups`; nobody gets labels or identities when predicting.
    `left` and `right` are rows of the embeddings, `images` those that occur, ascending;
    `identity` has a code for each of `images`, −1 where it is unknown.
    """

    score: Float64
    score_range: tuple[float, float]
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    images: NDArray[np.intp]
    genuine: NDArray[np.bool_]
    embeddings: Embeddings | None
    groups: Groups | None
    identity: NDArray[np.int32] | None
    memo: Memo
    job: Job

    def __len__(self) -> int:
        return len(self.score)

    def declared_embeddings(self) -> Embeddings:
        """Return the embeddings; an error where the method did not declare to need them."""
        return _declared(self.embeddings, "embeddings")

    def declared_groups(self) -> Groups:
        """Return the groups; an error where the method did not declare to need them."""
        return _declared(self.groups, "groups")

    def declared_identity(self) -> NDArray[np.int32]:
        """Return the identities; an error where the method did not declare to need them."""
        return _declared(self.identity, "identities")

    def vectors(self, like: Space | None = None) -> NDArray[np.float32]:
        """Return the vectors of `images`; an error where they are not of the space `like`."""
        embeddings = self.declared_embeddings()
        if like is not None:
            like.check(embeddings)
        return embeddings.rows(self.images)

    def positions(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return for the two images of each pair their positions in `images`."""
        return np.searchsorted(self.images, self.left), np.searchsorted(self.images, self.right)

    def of_images(self, groups: Groups) -> NDArray[np.int32]:
        """Return the group of each of `images`, as its pairs tell it."""
        code = np.empty(int(self.images[-1]) + 1, dtype=np.int32)
        code[self.left], code[self.right] = groups.left, groups.right
        return code[self.images]


def _declared(given: T | None, what: str) -> T:
    if given is None:
        raise DataError(f"the method uses {what} without a word in its class variable 'needs'")
    return given


class Space(NamedTuple):
    """What embeddings must have in common with those that a method was fitted on."""

    dimension: int
    normalize: bool

    @classmethod
    def of(cls, embeddings: Embeddings) -> Space:
        """Return the space of `embeddings`."""
        return cls(embeddings.dimension, embeddings.normalize)

    def check(self, embeddings: Embeddings) -> None:
        """Raise unless `embeddings` are of this space."""
        if embeddings.dimension != self.dimension:
            raise DataError(
                f"expected {self.dimension}-d embeddings, as in fitting, "
                f"found {embeddings.dimension}; use the network the model was made for"
            )
        if embeddings.normalize != self.normalize:
            raise DataError(
                f"the model was fitted with normalize={self.normalize}, the data was loaded with "
                f"normalize={embeddings.normalize}; load it the same way"
            )


@dataclass(frozen=True, eq=False)
class Output:
    """What a method says of each pair: `score` is what it ranks by, `probability` is P(genuine)."""

    score: Float64
    probability: Float64


@dataclass
class Diagnostics:
    """What happened in a fit that its user should know."""

    notes: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def note(self, text: str) -> None:
        """Add a sentence."""
        self.notes.append(text)


#: Parameters that are counts, wherever a method takes them, and the least they may be.
_LEAST = {"n_clusters": 1, "n_init": 1, "random_state": 0, "min_pairs": 1}


class Method(BaseEstimator, ABC):  # type: ignore[misc]
    """A way from scores to fair decisions: fitted on calibration pairs, applied to others.

    A new method is a subclass in one file, decorated with `faircal.methods.register`; it sets the
    four class variables, stores its parameters in ``__init__`` and fills in the abstract methods.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    needs: ClassVar[Needs]
    claims: ClassVar[Claims] = Claims()
    #: Whether the parameter ``target_fpr`` fits the method to one false-positive rate.
    fitted_to_rate: ClassVar[bool] = False
    #: A yardstick that no deployment could use: set apart in tables, never the best.
    yardstick: ClassVar[bool] = False

    _fitted: bool = False
    diagnostics_: Diagnostics
    score_range_: tuple[float, float]

    # ------------------------------------------------------------- for users

    def fit(
        self,
        data: Dataset,
        *,
        progress: Progress = silent,
        checkpoint: str | Path | None = None,
        resume: bool | None = True,
    ) -> Self:
        """Fit on the pairs of `data`, which must hold both classes.

        Parameters
        ----------
        data : Dataset
        progress : callable
            Called as a training goes on, with (stage, epochs done, epochs in all, losses).
        checkpoint : path, optional
            Where a training keeps its state, to go on from when it was interrupted; methods that
            train nothing need none. Remove the file when the model is saved.
        resume : bool, optional
            Whether to go on from the checkpoint where there is one. True: it is an error where it
            is of another training; None: such a one is passed over.
        """
        self._fitted = False  # half a fit is none
        self.check_parameters()
        self.diagnostics_ = Diagnostics()
        path = None if checkpoint is None else Path(checkpoint)
        job = Job(progress, path, resume, self.diagnostics_.notes)
        inputs = self._inputs(data, fitting=True, job=job)
        if inputs.genuine.all() or not inputs.genuine.any():
            raise DataError(
                f"{data.where}: expected genuine and imposter pairs, found one class only "
                f"({len(inputs)} pairs); add the other class"
            )
        if self.needs.groups_to_fit:
            self.attribute_ = self._attribute(data, fitting=True)
        self.score_range_ = inputs.score_range
        self._fit(inputs)
        self._fitted = True
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted

    def apply(self, data: Dataset) -> Output:
        """Return score and probability of each pair of `data`."""
        if not self._fitted:
            raise NotFittedError(f"{type(self).__name__} is not fitted yet; call fit first")
        if data.score_range != self.score_range_:
            raise ParameterError(
                f"{data.where}: the model was fitted on scores in {self.score_range_}, "
                f"these are in {data.score_range}; use the same score_range"
            )
        return self._apply(self._inputs(data, fitting=False))

    def predict_proba(self, data: Dataset) -> Float64:
        """Return P(genuine) of each pair, shape (n_pairs,)."""
        return self.apply(data).probability

    def decision_scores(self, data: Dataset) -> Float64:
        """Return what the method ranks by, shape (n_pairs,); higher is more alike."""
        return self.apply(data).score

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file (no pickle); `faircal.load_model` reads it."""
        from faircal.methods.modelfile import save_model

        save_model(self, path)

    @classmethod
    def unserved(cls, data: Dataset, attribute: str | None) -> str | None:
        """Say why the method can't be fitted on the pairs of `data`, or None when it can."""
        return cls.needs.missing(data, attribute)

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return what each parameter is unless told."""
        return {
            name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()
        }

    def check_parameters(self) -> None:
        """Raise `ParameterError` where a parameter's value cannot be; `fit` does this first."""
        parameters = self.get_params(deep=False)
        for name, least in _LEAST.items():
            if name in parameters:
                check_whole(name, parameters[name], least)
        if "calibrator" in parameters:
            make_calibrator(parameters["calibrator"], (-1.0, 1.0))
        if "target_fpr" in parameters:
            rate = parameters["target_fpr"]
            if not isinstance(rate, int | float) or not 0 < rate < 1:
                raise ParameterError(f"target_fpr: expected a rate between 0 and 1, found {rate!r}")
        rule = parameters.get("threshold_rule", "nearest")
        if rule not in get_args(ThresholdRule):
            hint = did_you_mean(str(rule), get_args(ThresholdRule))
            raise ParameterError(f"threshold_rule: unknown rule {rule!r}; {hint}")

    # ----------------------------------------------------- for those who add

    @abstractmethod
    def _fit(self, inputs: Inputs) -> None:
        """Set the fitted attributes (names end in ``_``)."""

    @abstractmethod
    def _apply(self, inputs: Inputs) -> Output:
        """Score pairs; `inputs.genuine` is empty here."""

    @abstractmethod
    def _get_state(self) -> dict[str, Any]:
        """Return the fitted state: arrays, numbers, text, lists of them."""

    @abstractmethod
    def _set_state(self, state: dict[str, Any]) -> None:
        """Restore what `_get_state` gave."""

    def _attribute(self, data: Dataset, fitting: bool) -> str | None:
        """Return the attribute whose groups the method may see: when applying, the fitted one."""
        fitted: str | None = None if fitting else getattr(self, "attribute_", None)
        return fitted or getattr(self, "attribute", None) or data.default_attribute

    def _inputs(self, data: Dataset, fitting: bool, job: Job | None = None) -> Inputs:
        needs = self.needs
        needs.check_installed(self.name)
        attribute = self._attribute(data, fitting)
        problem = (
            self.unserved(data, attribute)
            if fitting
            else needs.missing(data, attribute, fitting=False)
        )
        if problem is not None:
            raise DataError(
                f"{data.where}: {self.name} cannot be used: {problem}; choose another method"
            )
        groups = None
        if needs.groups_to_fit if fitting else needs.groups_to_apply:
            groups = data.groups(attribute)
        by_image = needs.embeddings or needs.identities
        images = data.used_images() if by_image else np.empty(0, dtype=np.intp)
        identity = data.images.identity if needs.identities and fitting else None
        return Inputs(
            score=data.scores,
            score_range=data.score_range,
            left=data.pairs.left,
            right=data.pairs.right,
            images=images,
            genuine=data.genuine if fitting else np.empty(0, dtype=bool),
            embeddings=data.embeddings if needs.embeddings else None,
            groups=groups,
            identity=None if identity is None else identity.take(images),
            memo=data.memo(),
            job=job or Job(),
        )
