"""What AGENDA, PASS and MultiPASS share: new embeddings that groups can't be told from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from faircal.calibrators import Calibrator
from faircal.data import Embeddings, Groups
from faircal.errors import DataError, NotFittedError, ParameterError
from faircal.methods.base import Inputs
from faircal.methods.trained import TrainedMethod
from faircal.registry import did_you_mean
from faircal.training.recipes import DebiasingRecipe

#: Images without which there is nothing to train on.
_FEWEST = 10


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
        Which attribute makes the groups; all columns (crossed, or one by one) unless told.
    calibrator : str or Calibrator
    width : int
        Length of the new embeddings.
    discriminator : tuple of int
        Hidden layers of a discriminator.
    n_discriminators : int or mapping from attribute to int
        Size of the ensemble of an attribute; 2 for those that a mapping does not name.
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

    def __init__(
        self,
        preset: str = "paper",
        attribute: str | None = None,
        calibrator: str | Calibrator = "beta",
        width: int | None = None,
        discriminator: tuple[int, ...] | None = None,
        n_discriminators: int | Mapping[str, int] | None = None,
        identity_epochs: int | None = None,
        discriminator_epochs: int | None = None,
        debias_epochs: int | None = None,
        update_epochs: int | None = None,
        identity_rate: float | None = None,
        discriminator_rate: float | None = None,
        debias_rate: float | None = None,
        update_rate: float | None = None,
        episodes: int | None = None,
        restart_every: int | None = None,
        debias_weight: float | None = None,
        stop_at: float | None = None,
        stop_together: bool | None = None,
        batch_size: int | None = None,
        validation: float | None = None,
        squash: bool | None = None,
        device: str = "auto",
        mixed_precision: bool = False,
        random_state: int = 0,
    ) -> None:
        self.preset = preset
        self.attribute = attribute
        self.calibrator = calibrator
        self.width = width
        self.discriminator = discriminator
        self.n_discriminators = n_discriminators
        self.identity_epochs = identity_epochs
        self.discriminator_epochs = discriminator_epochs
        self.debias_epochs = debias_epochs
        self.update_epochs = update_epochs
        self.identity_rate = identity_rate
        self.discriminator_rate = discriminator_rate
        self.debias_rate = debias_rate
        self.update_rate = update_rate
        self.episodes = episodes
        self.restart_every = restart_every
        self.debias_weight = debias_weight
        self.stop_at = stop_at
        self.stop_together = stop_together
        self.batch_size = batch_size
        self.validation = validation
        self.squash = squash
        self.device = device
        self.mixed_precision = mixed_precision
        self.random_state = random_state

    def _attributes(self, groups: Groups) -> Mapping[str, Groups]:
        """Return what discriminators are to tell, by name: here the groups, whatever made them."""
        return {str(self.attribute_): groups}

    def _train(self, inputs: Inputs) -> None:
        from faircal.training.debiasing import train

        identity = inputs.declared_identity()
        attributes = {
            name: inputs.of_images(groups)
            for name, groups in self._attributes(inputs.declared_groups()).items()
        }
        self._check_ensembles(attributes)
        known = np.logical_and.reduce([codes >= 0 for codes in (identity, *attributes.values())])
        if not known.all():
            self.diagnostics_.note(
                f"{int((~known).sum())} of {len(known)} images have an unknown identity or group: "
                "they are left out of the training"
            )
        if known.sum() < _FEWEST:
            raise DataError(
                f"{self.name} needs {_FEWEST} or more images of known identity and group to train "
                f"on, found {int(known.sum())}; add some"
            )
        dense = {}
        for name, codes in attributes.items():
            present, dense[name] = np.unique(codes[known], return_inverse=True)
            if len(present) < 2:
                raise DataError(
                    f"{self.name} needs two or more groups to tell apart, and all images of known "
                    f"{name} are of one; name another attribute"
                )
        self.weights_, self.diagnostics_.figures = train(
            inputs.vectors()[known],
            identity[known],
            {name: codes.astype(np.int32) for name, codes in dense.items()},
            recipe=self.recipe(),
            seed=self.random_state,
            device=self.device,
            mixed_precision=self.mixed_precision,
            job=inputs.job,
        )

    def _check_ensembles(self, attributes: Mapping[str, object]) -> None:
        """Raise where discriminators are asked for of an attribute that is not there."""
        given = self.n_discriminators if isinstance(self.n_discriminators, Mapping) else {}
        for name in given:
            if name not in attributes:
                hint = did_you_mean(name, attributes)
                raise ParameterError(f"n_discriminators: unknown attribute {name!r}; {hint}")

    def new_embeddings(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the new embeddings of `vectors` (of unit length, unless the data said not)."""
        if not hasattr(self, "weights_"):
            raise NotFittedError(f"{type(self).__name__} is not fitted yet; call fit first")
        self.needs.check_installed(self.name)
        if vectors.ndim != 2 or vectors.shape[1] != self.space_.dimension:
            raise DataError(
                f"expected vectors of shape (n, {self.space_.dimension}), as in fitting, "
                f"found {vectors.shape}; use the network the model was made for"
            )
        from faircal.training.debiasing import transform

        return transform(self.weights_, vectors, self.device)

    def _score(self, inputs: Inputs) -> NDArray[np.float64]:
        mapped = Embeddings(self.new_embeddings(inputs.vectors(self.space_)))
        return mapped.cosine(*inputs.positions())

    def _calibrated_range(self) -> tuple[float, float]:
        return -1.0, 1.0

    def _shapes(self) -> list[tuple[int, ...]]:
        width = self.recipe().width
        return [(width, self.space_.dimension), (width,), (1,)]
