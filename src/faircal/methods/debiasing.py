"""What AGENDA, PASS and MultiPASS share: new embeddings that groups can't be told from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, NotFittedError, ParameterError
from faircal._base.registry import check_integer, did_you_mean
from faircal.calibrators import Calibrator
from faircal.data import Dataset, Embeddings
from faircal.data.dataset import COSINE_RANGE
from faircal.methods.inputs import Inputs, declared
from faircal.methods.trained import (
    Recipe,
    TrainedMethod,
    check_flag,
    check_list,
    check_number,
    check_share,
    is_number,
)

if TYPE_CHECKING:
    from faircal.methods.training.session import TrainingSession

#: Images without which there is nothing to train on.
_FEWEST = 10


def _usable(
    identity: NDArray[np.int32], attributes: Mapping[str, NDArray[np.int32]]
) -> NDArray[np.bool_]:
    """Return which images have a known identity and known attributes."""
    usable: NDArray[np.bool_] = np.logical_and.reduce(
        [codes >= 0 for codes in (identity, *attributes.values())]
    )
    return usable


@dataclass(frozen=True)
class DebiasingRecipe(Recipe):
    """How the networks of AGENDA, PASS and MultiPASS are made and trained.

    Its fields are `DebiasingMethod`'s parameters of the same names.
    """

    width: int
    discriminator: tuple[int, ...]
    n_discriminators: int | Mapping[str, int]
    identity_epochs: int
    episodes: int
    restart_every: int
    discriminator_epochs: int
    debias_epochs: int
    debias_weight: float
    update_epochs: int
    stop_at: float
    stop_together: bool
    identity_rate: float
    discriminator_rate: float
    debias_rate: float
    update_rate: float
    batch_size: int
    validation: float
    squash: bool

    def __post_init__(self) -> None:
        for units in check_list("discriminator", self.discriminator):
            check_integer("discriminator", units, 1)
        counts = self.n_discriminators
        for name in counts if isinstance(counts, Mapping) else ():
            if not isinstance(name, str):
                raise ParameterError(
                    f"n_discriminators: expected names of attributes, found {name!r}"
                )
        for count in counts.values() if isinstance(counts, Mapping) else [counts]:
            check_integer("n_discriminators", count, 1)
        for name in ("width", "restart_every", "batch_size"):
            check_integer(name, getattr(self, name), 1)
        for name in ("identity", "discriminator", "debias", "update"):
            check_integer(f"{name}_epochs", getattr(self, f"{name}_epochs"), 0)
            check_number(f"{name}_rate", getattr(self, f"{name}_rate"), 0)
        check_integer("episodes", self.episodes, 0)
        check_number("debias_weight", self.debias_weight, 0)
        check_share("validation", self.validation)
        if not is_number(self.stop_at) or not 0 <= self.stop_at <= 1:
            raise ParameterError(
                f"stop_at: expected an accuracy from 0 to 1, found {self.stop_at!r}"
            )
        check_flag("stop_together", self.stop_together)
        check_flag("squash", self.squash)

    def ensemble(self, attribute: str) -> int:
        """Return the number of discriminators of `attribute`."""
        counts = self.n_discriminators
        return counts.get(attribute, 2) if isinstance(counts, Mapping) else counts


@dataclass(eq=False, repr=False)
class DebiasingMethod(TrainedMethod[DebiasingRecipe]):
    """Map embeddings to new ones that tell who somebody is and not of what group; then the cosine.

    A map M (linear, PReLU) and a classifier of identities are trained together (stage 1). Then, in
    episodes: new discriminators learn to tell the attribute from the new embeddings (stage 2, every
    few episodes); M and the classifier learn to keep identities and to leave the discriminators
    ignorant (stage 3); one discriminator of each ensemble learns on (stage 4), unless it is good
    already on images that are kept from training. The score of a pair is the cosine of its new
    embeddings; one global calibrator turns it into a probability.

    Images of unknown identity or group are left out of the training.

    Parameters
    ----------
    preset : {"paper", "paper-code"}
        ``paper``: as the text says. ``paper-code``: what its authors ran; see each method.
        Parameters that are None take the preset's values.
    attribute : str, optional
        Which attribute makes the groups; all columns (crossed, or one by one) by default.
    calibrator : str or Calibrator
    width : int
        Length of the new embeddings.
    discriminator : tuple of int
        Hidden layers of a discriminator.
    n_discriminators : int or mapping from attribute to int
        Size of the ensemble of an attribute. Those that a mapping does not name keep the preset's,
        or have 2.
    identity_epochs, discriminator_epochs, debias_epochs, update_epochs : int
        Of stages 1 to 4; the last is the most that a stage 4 takes.
    identity_rate, discriminator_rate, debias_rate, update_rate : float
        Adam's learning rate in stages 1 to 4.
    episodes, restart_every : int
        Passes through stages 2 to 4; discriminators are made anew every so many.
    debias_weight : float
        λ: weight of the discriminators' ignorance in stage 3.
    stop_at : float
        Accuracy above which a discriminator learns no further in stage 4.
    stop_together : bool
        Whether with several attributes all go on in stage 4 until all are above.
    batch_size : int
    validation : float
        Share of the images that is kept from training.
    squash : bool
        Whether discriminators end in softmax(sigmoid(·)) before their cross-entropy takes a
        softmax once more, as its authors had it.
    device : str
        ``auto`` is a GPU where there is one.
    mixed_precision : bool
        Multiply in bfloat16 when training.
    random_state : int
        The same seed on the same device gives the same model.
    """

    needs = replace(TrainedMethod.needs, identities=True)

    def __init_subclass__(cls, **more: Any) -> None:
        """Put the parameters, which are those of the family, into the help of each method."""
        super().__init_subclass__(**more)
        parameters = str(DebiasingMethod.__doc__).partition("    Parameters\n")[2].rstrip()
        before, heading, after = str(cls.__doc__).partition("    Examples\n")
        cls.__doc__ = f"{before}    Parameters\n{parameters}\n\n{heading}{after}"

    preset: str = "paper"
    attribute: str | None = None
    calibrator: str | Calibrator = "beta"
    width: int | None = None
    discriminator: tuple[int, ...] | None = None
    n_discriminators: int | Mapping[str, int] | None = None
    identity_epochs: int | None = None
    discriminator_epochs: int | None = None
    debias_epochs: int | None = None
    update_epochs: int | None = None
    identity_rate: float | None = None
    discriminator_rate: float | None = None
    debias_rate: float | None = None
    update_rate: float | None = None
    episodes: int | None = None
    restart_every: int | None = None
    debias_weight: float | None = None
    stop_at: float | None = None
    stop_together: bool | None = None
    batch_size: int | None = None
    validation: float | None = None
    squash: bool | None = None
    device: str = "auto"
    mixed_precision: bool = False
    random_state: int = 0

    @classmethod
    def _attributes(cls, attribute: str) -> Sequence[str]:
        """Return the attributes that discriminators are to tell: here one, crossed or not."""
        return (attribute,)

    @classmethod
    def unusable_reason(
        cls, data: Dataset, attribute: str | None, fitting: bool = True
    ) -> str | None:
        """Say why the method can't be used on the pairs of `data`, or None when it can."""
        missing = super().unusable_reason(data, attribute, fitting)
        if missing is not None or not fitting or data.images.identity is None or not len(data):
            return missing
        used = data.used_images()
        codes = {
            name: data.image_groups(name).take(used) for name in cls._attributes(str(attribute))
        }
        usable = _usable(data.images.identity.take(used), codes)
        if usable.sum() < _FEWEST:
            return (
                f"it needs {_FEWEST} or more images of known identity and group to train on, and "
                f"there are {int(usable.sum())}"
            )
        for name, of_images in codes.items():
            if len(np.unique(of_images[usable])) < 2:
                return f"it needs two or more groups to tell apart, and {name} has one"
        return None

    def _train(
        self, inputs: Inputs, session: TrainingSession
    ) -> tuple[list[NDArray[np.float32]], dict[str, float]]:
        from faircal.methods.training.debiasing import train

        identity = declared(inputs.identity, "identities")
        groups = declared(inputs.groups, "groups")
        attributes = {
            name: inputs.of_images(groups.parts.get(name, groups))
            for name in self._attributes(str(self.attribute_))
        }
        self._check_ensembles(attributes)
        # Both cross-entropies need a label: images that lack one can train neither.
        usable = _usable(identity, attributes)
        if not usable.all():
            self.diagnostics_.note(
                f"{int((~usable).sum())} of {len(usable)} images have an unknown identity or "
                "group: they are left out of the training"
            )
        # Codes 0, 1, …: a discriminator has an output for each group there is, and none for others.
        dense = {
            name: np.unique(codes[usable], return_inverse=True)[1].astype(np.int32)
            for name, codes in attributes.items()
        }
        vectors = inputs.vectors()[usable]
        return train(session, self.recipe_, vectors, identity[usable], dense)

    def _check_ensembles(self, attributes: Mapping[str, object]) -> None:
        """Raise where discriminators are asked for of an attribute that is not there."""
        given = self.n_discriminators if isinstance(self.n_discriminators, Mapping) else {}
        for name in given:
            if name not in attributes:
                hint = did_you_mean(name, attributes)
                raise ParameterError(f"n_discriminators: unknown attribute {name!r}; {hint}")

    def new_embeddings(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the new embeddings of `vectors` (of unit length, unless the data said not)."""
        vectors = np.asarray(vectors)
        if not self._fitted:
            raise NotFittedError(f"{type(self).__name__} is not fitted yet; call fit first")
        self.needs.check_installed(self.name)
        if vectors.ndim != 2 or vectors.shape[1] != self.space_.dimension:
            raise DataError(
                f"expected vectors of shape (n, {self.space_.dimension}), as in fitting, "
                f"found {vectors.shape}; use the network the model was made for"
            )
        return self._map(vectors)

    def _map(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        from faircal.methods.training.debiasing import transform

        return transform(self.weights_, vectors, self.device)

    def _score(self, inputs: Inputs) -> NDArray[np.float64]:
        # M is applied to each image once, and pairs are compared by the cosine of what it gives.
        mapped = Embeddings(self._map(inputs.vectors(self.space_)))
        return mapped.cosine(*inputs.positions())

    def _calibrated_range(self) -> tuple[float, float]:
        return COSINE_RANGE

    def _shapes(self) -> list[tuple[int, ...]]:
        width = self.recipe_.width
        return [(width, self.space_.dimension), (width,), (1,)]


# Presets: "paper" is what the paper says, "paper-code" what its authors ran, where they differ.
_AGENDA = DebiasingRecipe(
    width=256,
    discriminator=(128,),
    n_discriminators=1,
    identity_epochs=50,
    episodes=100,
    restart_every=10,
    discriminator_epochs=25,
    debias_epochs=5,
    debias_weight=10.0,
    update_epochs=5,
    stop_at=0.90,
    stop_together=False,
    identity_rate=1e-3,
    discriminator_rate=1e-3,
    debias_rate=1e-3,
    update_rate=1e-3,
    batch_size=400,
    validation=0.2,
    squash=False,
)


class AGENDA(DebiasingMethod):
    """Map embeddings to new ones that one discriminator can't tell groups from; then the cosine.

    `faircal.methods.debiasing.DebiasingMethod` says how it works. In the preset
    ``paper-code`` the discriminator ends in softmax(sigmoid(·)).

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> model = faircal.AGENDA(identity_epochs=5, episodes=1, attribute="ethnicity").fit(cal)
    >>> model.predict_proba(test).shape == (len(test),)
    True
    """

    name = "agenda"
    title = "AGENDA"
    presets: ClassVar = {"paper": _AGENDA, "paper-code": replace(_AGENDA, squash=True)}


_PASS = replace(
    AGENDA.presets["paper"],
    discriminator=(128, 64),
    n_discriminators=2,
    identity_epochs=100,
    discriminator_epochs=100,
    stop_at=0.95,
)
_PASS_CODE = replace(_PASS, squash=True, identity_rate=1e-2, debias_rate=1e-4)


class PASS(DebiasingMethod):
    """Map embeddings to new ones that an ensemble of discriminators can't tell groups from.

    `faircal.methods.debiasing.DebiasingMethod` says how it works. There are two
    discriminators: stage 3 heeds the one that is least ignorant, stage 4 teaches one after the
    other. In the preset ``paper-code`` they end in softmax(sigmoid(·)), and the learning rates of
    stages 1 and 3 are 10⁻² and 10⁻⁴ in place of 10⁻³.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> model = faircal.PASS(identity_epochs=5, episodes=1, discriminator_epochs=5).fit(cal)
    >>> model.predict_proba(test).shape == (len(test),)
    True
    """

    name = "pass"
    title = "PASS"
    presets: ClassVar = {"paper": _PASS, "paper-code": _PASS_CODE}


class MultiPASS(DebiasingMethod):
    """PASS with an ensemble of discriminators for each attribute of ``a+b``.

    `faircal.methods.debiasing.DebiasingMethod` says how it works. There are three
    discriminators for ``gender``, two for any other attribute. In the preset ``paper-code`` they
    end in softmax(sigmoid(·)), the learning rates of stages 1, 3 and 4 are 10⁻², 10⁻⁴ and 10⁻⁴ in
    place of 10⁻³, and stage 4 goes on until the discriminators of all attributes are good.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> model = faircal.MultiPASS(identity_epochs=5, episodes=1, discriminator_epochs=5).fit(cal)
    >>> model.predict_proba(test).shape == (len(test),)
    True
    """

    name = "multipass"
    title = "MultiPASS"
    needs = replace(DebiasingMethod.needs, several_attributes=True)
    presets: ClassVar = {
        "paper": replace(_PASS, n_discriminators={"gender": 3}),
        "paper-code": replace(
            _PASS_CODE, n_discriminators={"gender": 3}, update_rate=1e-4, stop_together=True
        ),
    }

    @classmethod
    def _attributes(cls, attribute: str) -> Sequence[str]:
        return attribute.split("+")
