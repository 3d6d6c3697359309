"""DSN: demographic score normalisation, by the statistics of an image's or a pair's group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import did_you_mean
from faircal.calibrators import Calibrator
from faircal.methods.base import Claims, Needs, check_names
from faircal.methods.inputs import Float64, ImageValues, Inputs, declared
from faircal.methods.normalizing import (
    LEAST_PEOPLE,
    CohortPeople,
    GroupMoments,
    Moments,
    NormalizingMethod,
    PairSides,
    paired,
)

Variant = Literal["image", "group", "cdf"]


@dataclass(eq=False, repr=False)
class DSN(NormalizingMethod):
    """Demographic score normalisation (Linghu et al., IJCB 2024): normalise by groups' statistics.

    Every mean and (population) standard deviation is of calibration data. `variant` says of what:

    - ``image``, their M1.1 and M2.1 on both sides, since no image of ours is the enrolled one: the
      cosines of each image with people (each a vector, as in `SNorm`) of the other image's group,
      s' = ½ ((s − μ_l) / σ_l + (s − μ_r) / σ_r). In the fit the pair's people are not among them.
    - ``group``, their M3: imposter pairs within group g, s' = (s − μ_g) / σ_g.
    - ``cdf``, their M5: normal distributions of genuine and of imposter pairs within group g,
      s' = Φ((s − μ_g⁺) / σ_g⁺) − 1 + Φ((s − μ_g⁻) / σ_g⁻).

    A cross-group pair gets the mean of what its two groups make of it. For an unknown group, or one
    of fewer than four people (``image``) or two pairs, all of the calibration data stands in. One
    global calibrator turns s' into a probability.

    Parameters
    ----------
    attribute : str, optional
        Which attribute makes the groups (``a+b`` crosses); all columns crossed by default.
    variant : {"image", "group", "cdf"}
    calibrator : str or Calibrator

    Attributes
    ----------
    groups_ : tuple of str
        Groups with statistics of their own.
    pairs_ : Moments
        Of imposter pairs, and of genuine ones for ``cdf``, by group; the last of all pairs.
    moments_ : GroupMoments
        Of people, for ``image``, by group; the last of all people.

    References
    ----------
    Y. Linghu, T. de Freitas Pereira, C. Ecabert, S. Marcel, M. Günther: Score normalization for
    demographic fairness in face recognition. IJCB 2024.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> faircal.DSN("ethnicity").fit(cal).decision_scores(test).shape == (len(test),)
    True
    """

    name = "dsn"
    title = "DSN"
    needs = Needs(embeddings=True, groups_to_fit=True, groups_to_apply=True, folds=True)
    claims = Claims(predictive_equality=True)

    attribute: str | None = None
    variant: Variant = "image"
    calibrator: str | Calibrator = "beta"

    def check_parameters(self) -> None:
        """Raise `ParameterError` where a parameter's value cannot be."""
        super().check_parameters()
        if self.variant not in get_args(Variant):
            hint = did_you_mean(str(self.variant), get_args(Variant))
            raise ParameterError(f"variant: unknown variant {self.variant!r}; {hint}")

    def _fit_scores(self, inputs: Inputs) -> Float64:
        if self.variant == "image":
            return self._fit_images(inputs)
        groups = declared(inputs.groups, "groups")
        classes = [~inputs.genuine, inputs.genuine][: 1 + (self.variant == "cdf")]
        names = [
            name
            for code, name in enumerate(groups.names)
            if all(np.unique(inputs.score[of & (groups.pair == code)]).size > 1 for of in classes)
        ]
        self._set_groups(inputs, names)
        pair = groups.renamed(self.groups_).pair
        sets = [pair == code for code in range(len(names))] + [np.ones(len(pair), bool)]
        scores = [[inputs.score[of & inside] for inside in sets] for of in classes]
        # (imposters, genuine pairs) × groups, the last of which is all pairs.
        self.pairs_ = Moments(
            np.array([[part.mean() for part in row] for row in scores]),
            np.maximum(np.array([[part.std() for part in row] for row in scores]), 1e-9),
        )
        return self._scores(inputs)

    def _fit_images(self, inputs: Inputs) -> Float64:
        sides, groups = PairSides.of(inputs), declared(inputs.groups, "groups")
        of_image = inputs.of_images(groups)
        names = [
            name
            for code, name in enumerate(groups.names)
            if len(np.unique(sides.person[of_image == code])) >= LEAST_PEOPLE
        ]
        self._set_groups(inputs, names)
        code = inputs.of_images(groups.renamed(self.groups_))
        every = np.full(len(code), len(names))
        # Everybody is there twice: in their group, and in the last one, of all.
        inside = code >= 0
        image = np.concatenate([np.flatnonzero(inside), np.arange(len(code))])
        group = np.concatenate([code[inside], every])
        people = CohortPeople.of(sides.unit, sides.person[image], group, image)
        if len(np.unique(sides.person)) < LEAST_PEOPLE:
            raise DataError(f"images: expected {LEAST_PEOPLE} people or more; add people")
        self._set_moments(GroupMoments.of(people))
        theirs = np.where(inside, code, len(names))[sides.partner]
        return paired(people.held_out(sides, theirs), inputs.score)

    def _set_groups(self, inputs: Inputs, names: list[str]) -> None:
        self.groups_ = tuple(names)
        without = [name for name in inputs.group_names if name not in names]
        if without:
            self.diagnostics_.note(f"groups on the statistics of all: {', '.join(without)}")

    def _scores(self, inputs: Inputs) -> Float64:
        groups = declared(inputs.groups, "groups").renamed(self.groups_)
        left, right = (np.where(c < 0, len(self.groups_), c) for c in (groups.left, groups.right))
        if self.variant == "image":
            values = self._values.at(declared(inputs.embeddings, "embeddings"), inputs.images)
            n = len(self.groups_) + 1
            image, other = (
                np.concatenate(two) for two in ((inputs.left, inputs.right), (right, left))
            )
            return paired(Moments(values[image, other], values[image, n + other]), inputs.score)
        group = np.concatenate([left, right])
        moments = [Moments(*row) for row in zip(*self.pairs_, strict=True)]
        of_sides = [Moments(one.mean[group], one.std[group]) for one in moments]
        if self.variant == "group":
            return paired(of_sides[0], inputs.score)
        twice = np.concatenate([inputs.score, inputs.score])
        cdf = ndtr(of_sides[1].z(twice)) - 1 + ndtr(of_sides[0].z(twice))
        return np.asarray(cdf.reshape(2, -1).sum(axis=0) / 2)

    def _set_moments(self, moments: GroupMoments) -> None:
        self.moments_ = moments
        width = 2 * len(moments.mean)
        self._values = ImageValues(self.space_, moments, np.float64, width, unit=True)

    def _get_state(self) -> dict[str, Any]:
        own: dict[str, NDArray[Any]] = (
            self.moments_.get_state() if self.variant == "image" else self.pairs_._asdict()
        )
        groups = {"attribute": self.attribute_, "groups": list(self.groups_)}
        return {**super()._get_state(), **groups, "dimension": self.space_.dimension, **own}

    def _set_state(self, state: dict[str, Any]) -> None:
        (self.attribute_,) = check_names("attribute", [state["attribute"]])
        self.groups_ = check_names("groups", state["groups"])
        self._restore(state, int(state["dimension"]))
        n = len(self.groups_) + 1
        if self.variant == "image":
            moments = GroupMoments.restore(state)
            if moments.mean.shape != (n, self.space_.dimension):
                raise DataError(f"mean: expected {n} rows, found shape {moments.mean.shape}")
            self._set_moments(moments)
            return
        self.pairs_ = Moments(*(np.asarray(state[k], np.float64) for k in ("mean", "std")))
        expected = (1 + (self.variant == "cdf"), n)
        shapes = {values.shape for values in self.pairs_}
        if shapes != {expected} or (self.pairs_.std <= 0).any():
            raise DataError(f"std: expected numbers above 0 of shape {expected}, found {shapes}")
