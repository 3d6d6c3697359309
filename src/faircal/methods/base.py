"""The contract of every method: what it needs, what it may see, what it gives."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from faircal._base.errors import DataError, MissingExtraError, NotFittedError, ParameterError
from faircal._base.jobs import Job, Progress, silent
from faircal._base.registry import check_integer, did_you_mean
from faircal.calibrators import make_calibrator
from faircal.calibrators.prior import SHARE_FIGURE
from faircal.data import CohortVectors, Dataset, Embeddings, Groups, Memo, PairParts, PairStream
from faircal.data.summary import WrongPairs, check_direction
from faircal.data.types import Scores, people_of
from faircal.methods.inputs import Inputs, PeopleFolds, check_classes
from faircal.methods.streaming import CountedFitting
from faircal.metrics import ThresholdRule
from faircal.model import About

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class Needs:
    """What a method needs, beyond scores and labels of calibration pairs.

    The command line, the benchmark and the table of properties read this; nothing asks for a
    method's name.

    Parameters
    ----------
    embeddings : bool
    imposters : bool
        Imposter pairs of one's own, beside the genuine ones that every method needs.
    groups_to_fit, groups_to_apply : bool
        The groups of the pairs, when fitting or when applying.
    several_attributes : bool
        Two or more attributes, whose groups are used one by one.
    identities : bool
        Who is in each image, when fitting.
    folds : bool
        Folds of people to choose by, when fitting: by identities, or by genuine pairs where they
        are not known.
    training : bool
        Whether networks are trained.
    cohort : {"required", "optional"}, optional
        People of known groups to compare with, when fitting: of a network's embeddings.
    extra : str, optional
        The extra of faircal that brings a package of the same name, without which nothing goes.
    """

    embeddings: bool = False
    imposters: bool = True
    groups_to_fit: bool = False
    groups_to_apply: bool = False
    several_attributes: bool = False
    identities: bool = False
    folds: bool = False
    training: bool = False
    cohort: Literal["required", "optional"] | None = None
    extra: str | None = None

    def uninstalled(self) -> str | None:
        """Say which package is not installed and how to install it; None where none lacks."""
        if self.extra is None:
            return None
        with suppress(ModuleNotFoundError):
            if find_spec(self.extra) is not None:
                return None
        return f"{self.extra}, which is not installed: pip install 'faircal[{self.extra}]'"

    def check_installed(self, method: str) -> None:
        """Raise `MissingExtraError` where a package is not installed that `method` needs."""
        uninstalled = self.uninstalled()
        if uninstalled is not None:
            raise MissingExtraError(f"method {method} needs {uninstalled}")


@dataclass(frozen=True)
class Claims:
    """What the paper's table of properties says a method achieves."""

    improves_accuracy: bool = False
    fairly_calibrated: bool = False
    predictive_equality: bool = False


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
    #: Those of `notes` that say what was chosen, and call nothing into question; not kept in files.
    choices: list[str] = field(default_factory=list, compare=False)

    def note(self, text: str, *, choice: bool = False) -> None:
        """Add a sentence; a `choice` says what was chosen, and calls nothing into question."""
        self.notes.append(text)
        if choice:
            self.choices.append(text)


#: Parameters that are counts, wherever a method takes them, and the least they may be.
_LEAST = {"n_clusters": 1, "n_init": 1, "random_state": 0, "min_pairs": 1}


class Method(BaseEstimator, ABC):  # type: ignore[misc]
    """A way from scores to fair decisions: fitted on calibration pairs, applied to others.

    A new method is a subclass in one file, listed in ``methods/__init__.py``; in a file of your own
    it is decorated with `faircal.methods.register`. It sets the class variables ``name``, ``title``
    and ``needs`` and fills in the abstract methods. Its parameters are the fields of a dataclass
    (without ``eq`` and ``repr``), or what its ``__init__`` stores; one that calibrates takes the
    parameter ``calibrator``, as all of ours do.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    needs: ClassVar[Needs]
    claims: ClassVar[Claims] = Claims()
    #: Whether the parameter ``target_fpr`` fits the method to one false-positive rate.
    fitted_to_rate: ClassVar[bool] = False
    #: A yardstick that no deployment could use: set apart in tables, never the best.
    yardstick: ClassVar[bool] = False
    #: Whether it can be fitted on pairs that come part by part: `_fit` then sees a `Fitting` only.
    streams: ClassVar[bool] = False

    _fitted: bool = False
    diagnostics_: Diagnostics
    score_range_: tuple[float, float]
    #: What the model file says besides: provenance, population, operating point.
    about_: About = About()

    # ------------------------------------------------------------- for users

    def fit(
        self,
        data: PairParts,
        *,
        progress: Progress = silent,
        checkpoint: str | Path | None = None,
        resume: bool | None = True,
    ) -> Self:
        """Fit on the pairs of `data`, of both classes unless the method needs no imposters.

        Where more than 1 % of the pairs contradict their identities or each other, or are of an
        image with itself, it is a `DataError`; fewer are counted in `diagnostics_`.

        Parameters
        ----------
        data : Dataset, PairStream or SparkPairs
            A stream is gone through part by part in bounded memory, pairs of Spark by its
            workers: their scores are counted in bins, and `diagnostics_` say how wide these are.
        progress : callable
            Called as the work goes on, with (stage, steps done, steps in all, a few words).
        checkpoint : path, optional
            Where a training, or a fit on a stream, keeps its state, to go on from when it was
            interrupted. Remove the file when the model is saved.
        resume : bool, optional
            Whether to go on from the checkpoint where there is one. True: it is an error where it
            is of another training; None: such a one is passed over.
        """
        self._fitted = False  # half a fit is none
        self.check_parameters()
        self.diagnostics_, self.about_ = Diagnostics(), About()
        path = None if checkpoint is None else Path(checkpoint)
        job = Job(progress, path, resume, self.diagnostics_.notes)
        inputs = (
            self._inputs(data, fitting=True, job=job)
            if isinstance(data, Dataset)
            else self._counting(data, job)
        )
        self.score_range_ = inputs.score_range
        self._fit(inputs)
        self.diagnostics_.figures.setdefault(SHARE_FIGURE, inputs.share_genuine)
        if isinstance(inputs, CountedFitting):
            self.diagnostics_.note(inputs.note())
        self._fitted = True
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted

    def apply(self, data: Dataset) -> Output:
        """Return score and probability of each pair of `data`."""
        if not self._fitted:
            raise NotFittedError(f"{type(self).__name__} is not fitted yet; call fit first")
        if not isinstance(data, Dataset):
            raise ParameterError(
                f"expected a Dataset, found {type(data).__name__}; a stream goes by its parts()"
            )
        if data.score_range != self.score_range_:
            raise ParameterError(
                f"{data.where}: the model was fitted on scores in {self.score_range_}, "
                f"these are in {data.score_range}; use the same score_range"
            )
        return self._apply(self._inputs(data, fitting=False))

    def compare(
        self,
        embeddings: Embeddings,
        left: NDArray[np.intp],
        right: NDArray[np.intp],
        groups: Groups | None = None,
        scores: Scores | None = None,
    ) -> Output:
        """Return score and probability of pairs of rows of `embeddings`: `apply` without a dataset.

        Parameters
        ----------
        embeddings : Embeddings
            As many rows as there are images; none may be NaN, infinite or zero.
        left, right : ndarray of shape (n_pairs,)
            Rows.
        groups : Groups, optional
            Of the pairs, for a method that needs them to be applied.
        scores : Scores, optional
            Of the pairs, where the caller wants the cosines, too: they are worked out once.

        Examples
        --------
        >>> import faircal
        >>> from faircal.data import Embeddings
        >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
        >>> model = faircal.FairCal(n_clusters=20).fit(cal)
        >>> first = Embeddings(test.embeddings.vectors[:3])
        >>> model.compare(first, np.array([0, 0]), np.array([1, 2])).probability.shape
        (2,)
        """
        if not self._fitted:
            raise NotFittedError(f"{type(self).__name__} is not fitted yet; call fit first")
        if self.needs.groups_to_apply and groups is None:
            raise ParameterError(f"method {self.name} needs the groups of the pairs; give them")
        return self._apply(
            Inputs(
                score_range=self.score_range_,
                images=np.arange(len(embeddings)),
                embeddings=embeddings if self.needs.embeddings else None,
                group_names=() if groups is None else groups.names,
                share_genuine=float("nan"),
                memo=Memo({}),
                job=Job(),
                scores=scores or Scores(None, embeddings, left, right),
                left=left,
                right=right,
                genuine=np.empty(0, dtype=bool),
                groups=groups if self.needs.groups_to_apply else None,
                identity=None,
            )
        )

    @property
    def calibrated_at(self) -> float | None:
        """The share of genuine pairs that probabilities hold for; None where the file lacks it."""
        return self.diagnostics_.figures.get(SHARE_FIGURE)

    def predict_proba(self, data: Dataset) -> Float64:
        """Return P(genuine) of each pair, shape (n_pairs,)."""
        return self.apply(data).probability

    def decision_scores(self, data: Dataset) -> Float64:
        """Return what the method ranks by, shape (n_pairs,); higher is more alike."""
        return self.apply(data).score

    def remarks(self, data: Dataset, output: Output) -> list[str]:  # noqa: ARG002
        """Say what of the pairs in use, and of what was said of them, calls the fit into question.

        Most methods can't tell.
        """
        return []

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file (no pickle); `faircal.load_model` reads it."""
        from faircal.methods.modelfile import save_model

        save_model(self, path)

    @classmethod
    def unusable_reason(
        cls, data: Dataset, attribute: str | None, fitting: bool = True
    ) -> str | None:
        """Say what `data` lacks to fit the method, or to apply it; None when it lacks nothing.

        `attribute` is the one whose groups are to be used, None where there is none.
        """
        needs, uninstalled = cls.needs, cls.needs.uninstalled()
        if uninstalled is not None:
            return f"it needs {uninstalled}"
        if needs.embeddings and data.embeddings is None:
            return "it needs embeddings, and the data has scores only"
        if (needs.groups_to_fit or needs.groups_to_apply) and attribute is None:
            return f"it needs groups, and {data.why_no_groups()}"
        if needs.several_attributes and "+" not in (attribute or ""):
            return f"it takes two or more attributes one by one, and there is one: {attribute}"
        if needs.identities and fitting and (data.images.identity is None or not data.has_images):
            return "it needs to know who is in each image, and there is no column 'identity'"
        if needs.cohort == "required" and fitting:
            if data.cohort is None:
                return "it needs a cohort: --cohort DIR, benchmark --draw-cohort N or load(cohort=)"
            if data.feature not in data.cohort.embeddings:
                return f"it needs a cohort, and {data.cohort.where} has no '{data.feature}'"
        return None

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return the default of each parameter."""
        return {
            name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()
        }

    def check_parameters(self) -> None:
        """Raise `ParameterError` where a parameter's value cannot be; `fit` does this first."""
        parameters = self.get_params(deep=False)
        for name, least in _LEAST.items():
            if name in parameters:
                check_integer(name, parameters[name], least)
        attribute = parameters.get("attribute")
        if not isinstance(attribute, str | None):
            raise ParameterError(
                f"attribute: expected text, the name of an attribute, found {attribute!r}"
            )
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
    def _fit(self, inputs: Any) -> None:
        """Set the fitted attributes (names end in ``_``).

        `inputs` are `Inputs`; where the method `streams`, all that it may use is a `Fitting`.
        """

    @abstractmethod
    def _apply(self, inputs: Inputs) -> Output:
        """Score pairs; `inputs.genuine` is empty here."""

    @abstractmethod
    def _get_state(self) -> dict[str, Any]:
        """Return the fitted state: arrays, numbers, text, lists of them."""

    @abstractmethod
    def _set_state(self, state: dict[str, Any]) -> None:
        """Restore what `_get_state` gave."""

    def _check(self, data: Dataset, fitting: bool) -> str | None:
        """Raise where the method can't be used on `data`; return the attribute it may see."""
        # When applying it is that of the fit.
        fitted: str | None = None if fitting else getattr(self, "attribute_", None)
        attribute = fitted or getattr(self, "attribute", None) or data.default_attribute
        problem = self.unusable_reason(data, attribute, fitting)
        if problem is not None:
            self.needs.check_installed(self.name)  # an error of its own: no data would do
            raise DataError(
                f"{data.where}: {self.name} cannot be used: {problem}; choose another method"
            )
        if fitting and self.needs.groups_to_fit:
            self.attribute_ = attribute
        return attribute

    def _inputs(
        self, data: Dataset, fitting: bool, job: Job | None = None, labels: bool | None = None
    ) -> Inputs:
        """Return what the method may see: the labels, too, by default when fitting."""
        attribute = self._check(data, fitting)
        needs, labels = self.needs, fitting if labels is None else labels
        genuine = data.genuine if labels else np.empty(0, dtype=bool)
        if labels:
            check_classes(int(genuine.sum()), len(genuine), data.where, needs.imposters)
            self.diagnostics_.notes += WrongPairs.of(data).check(data.where)
            self.diagnostics_.notes += check_direction(data)
        groups = None
        if needs.groups_to_fit if fitting else needs.groups_to_apply:
            groups = data.groups(attribute)
        by_image = needs.embeddings or needs.identities
        images = data.used_images() if by_image else np.empty(0, dtype=np.intp)
        identity = data.images.identity if needs.identities and fitting else None
        folds = None
        if needs.folds and fitting:
            people, _ = people_of(data.pairs, data.images)
            folds = PeopleFolds(people, data.pairs.left, data.pairs.right)
        return Inputs(
            cohort=self._cohort(data) if fitting else None,
            score_range=data.score_range,
            images=images,
            embeddings=data.embeddings if needs.embeddings else None,
            group_names=() if groups is None else groups.names,
            share_genuine=float(genuine.mean()) if labels else float("nan"),
            memo=data.memo,
            job=job or Job(),
            # The scores alone, where the method is not to see embeddings.
            scores=data.similarity[data.feature] if needs.embeddings else Scores(data.scores),
            left=data.pairs.left,
            right=data.pairs.right,
            genuine=genuine,
            groups=groups,
            identity=None if identity is None else identity.codes[images],
            folds=folds,
        )

    def _cohort(self, data: PairParts) -> CohortVectors | None:
        """Return what the method may see of the cohort."""
        if self.needs.cohort is None or data.cohort is None:
            return None
        return data.cohort.seen(data.feature)

    def check_streams(self, elsewhere: bool = False) -> None:
        """Raise unless the method can be fitted on pairs that are only counted, here or not."""
        if not self.streams:
            remedy = "load the data" + (" (--engine local)" if elsewhere else "")
            raise ParameterError(
                f"method {self.name} needs all pairs in memory; {remedy}, or choose another"
            )

    def _counting(self, data: PairParts, job: Job) -> CountedFitting:
        """Return what the method may see of pairs that are only counted."""
        self.check_streams(elsewhere=not isinstance(data, PairStream))
        attribute = self._check(data.head(), fitting=True)
        return CountedFitting.of(
            data,
            partial(self._inputs, fitting=True, labels=False),
            by_image=self.needs.embeddings,
            imposters=self.needs.imposters,
            group_names=data.group_names(attribute) if self.needs.groups_to_fit else (),
            settings={"method": self.name, **self.get_params(deep=False)},
            job=job,
            cohort=self._cohort(data),
        )


# ------------------------------------- checks of a state that a file has brought


def check_truth(name: str, value: object) -> bool:
    """Return a restored `value`; raise unless it is true or false."""
    if not isinstance(value, bool):
        raise DataError(f"{name}: expected true or false, found {value!r}")
    return value


def check_names(name: str, value: Any) -> tuple[str, ...]:
    """Return restored names; raise unless they are a list of different texts."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise DataError(f"{name}: expected a list of names")
    if len(set(value)) < len(value):
        raise DataError(f"{name}: expected different names, found one twice")
    return tuple(value)


def check_count(name: str, values: Any, expected: int) -> None:
    """Raise unless restored `values` are a list or 1-d array with one entry for each set."""
    if np.shape(values) != (expected,):
        raise DataError(f"{name}: expected {expected} entries, found shape {np.shape(values)}")
