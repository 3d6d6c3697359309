"""Embeddings that tell who somebody is and not of what group: AGENDA, PASS and MultiPASS.

All three are one scheme. A map M gives new embeddings, a classifier C tells identities from them,
ensembles of discriminators E tell the attributes. AGENDA has one discriminator, PASS an ensemble,
MultiPASS an ensemble for each attribute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from faircal.compute.device import choose_device
from faircal.methods.debiasing import DebiasingRecipe
from faircal.methods.training.networks import Perceptron, attribute_entropy, uniformity
from faircal.methods.training.session import (
    Losses,
    Stage,
    TrainingSession,
    working_on,
)

Float32 = NDArray[np.float32]
Codes = NDArray[np.int32]

#: Discriminators, each by the numbers of its attribute and of its place in the ensemble.
Members = tuple[tuple[int, int], ...]

#: Slope of M's activation below 0, before training.
_SLOPE = 0.25

#: Images mapped at a time.
_BLOCK = 65536


def train(
    session: TrainingSession,
    recipe: DebiasingRecipe,
    vectors: Float32,
    identity: Codes,
    attributes: Mapping[str, Codes],
) -> tuple[list[Float32], dict[str, float]]:
    """Train M on all images; return its weight, bias and slope, and figures of how it went.

    Parameters
    ----------
    session : TrainingSession
    recipe : DebiasingRecipe
    vectors : ndarray of shape (n_images, d)
    identity : ndarray of shape (n_images,)
        Codes.
    attributes : mapping from name to ndarray of shape (n_images,)
        Codes 0, 1, …; all must be known.
    """
    training = Debiasing(session, recipe, vectors, identity, attributes)
    session.restore(recipe, *attributes, arrays=(vectors, identity, *attributes.values()))
    training.run()
    weights = [tensor.detach().cpu().numpy() for tensor in training.map_parameters]
    return weights, training.figures()


class Debiasing:
    """The four stages of one training."""

    def __init__(
        self,
        session: TrainingSession,
        recipe: DebiasingRecipe,
        vectors: Float32,
        identity: Codes,
        attributes: Mapping[str, Codes],
    ) -> None:
        self.session = session
        self.recipe = recipe
        self.names = tuple(attributes)
        # A random part of the images is kept to measure discriminators on: stage 4 stops by it.
        order = torch.randperm(len(vectors), generator=session.generator, device=session.device)
        held = order[: int(recipe.validation * len(vectors))]
        used = order[len(held) :]
        images = session.tensor(vectors)
        self.images, self.held_images = images[used], images[held]
        people = session.tensor(identity.astype(np.int64))[used]
        self.people = torch.unique(people, return_inverse=True)[1]
        codes = [session.tensor(column.astype(np.int64)) for column in attributes.values()]
        self.groups = [column[used] for column in codes]
        self.held_groups = [column[held] for column in codes]

        self.map = Perceptron(session, (vectors.shape[1], recipe.width), torch.relu)
        self.slope = torch.full((1,), _SLOPE, device=session.device, requires_grad=True)
        session.tensors.append(self.slope)
        n_people = int(self.people.max()) + 1
        self.classifier = Perceptron(session, (recipe.width, n_people), torch.relu)
        self.ensembles = [
            [
                Perceptron(
                    session,
                    (recipe.width, *recipe.discriminator, int(column.max()) + 1),
                    functional.selu,
                )
                for _ in range(recipe.ensemble(name))
            ]
            for name, column in zip(attributes, codes, strict=True)
        ]
        # M rests while discriminators learn: what it makes of the images is worked out once.
        self.mapped = torch.empty(len(used), recipe.width, device=session.device)
        self.held_mapped = torch.empty(len(held), recipe.width, device=session.device)
        self._make_stages()

    @property
    def map_parameters(self) -> list[Tensor]:
        """Weight, bias and slope of M."""
        return [*self.map.parameters, self.slope]

    def new_embeddings(self, images: Tensor) -> Tensor:
        """Apply M: linear, then PReLU."""
        return functional.prelu(self.map(images), self.slope)

    def identity_loss(self, batch: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cross-entropy of the identities, and the new embeddings it is taken on."""
        mapped = self.new_embeddings(self.images[batch])
        logits = self.classifier(mapped).float()
        return functional.cross_entropy(logits, self.people[batch]), mapped

    def debias_loss(self, mapped: Tensor) -> Tensor:
        """Return the sum over attributes of the largest loss that a discriminator gives."""
        squash = self.recipe.squash
        # L_deb: the largest over the ensemble of the batch's −(1/G) Σ_g log p_g.
        losses = [
            torch.stack([uniformity(member(mapped).float(), squash) for member in ensemble])
            for ensemble in self.ensembles
        ]
        return torch.stack([of_ensemble.max() for of_ensemble in losses]).sum()

    def attribute_loss(self, batch: Tensor, members: Members) -> Tensor:
        """Return the sum of the cross-entropies of discriminators (attribute, number)."""
        mapped = self.mapped[batch]
        return torch.stack(
            [
                attribute_entropy(
                    self.ensembles[a][k](mapped).float(), self.groups[a][batch], self.recipe.squash
                )
                for a, k in members
            ]
        ).sum()

    def accuracy(self, attribute: int, number: int) -> float:
        """Return a discriminator's accuracy on the validation images; 0 where there are none."""
        if not len(self.held_mapped):
            return 0.0
        with torch.no_grad():
            guess = self.ensembles[attribute][number](self.held_mapped).argmax(1)
            return float((guess == self.held_groups[attribute]).float().mean())

    # -------------------------------------------------------------- stages

    def run(self) -> None:
        """Pass through the stages."""
        recipe = self.recipe
        self._identity.run()  # stage 1: M and C learn who is who
        for episode in range(recipe.episodes):
            if episode % recipe.restart_every == 0:  # stage 2: E, drawn anew, learns the groups
                self._discriminators.run(start=self._draw_discriminators, prepare=self._rest)
            self._debias.run()  # stage 3: M and C, CE + λ L_deb; E is not stepped
            # Stage 4: one discriminator of each ensemble learns on, while it is not good enough.
            for members in self.turn(episode):
                self._update(members).run(prepare=self._rest, stop=partial(self._accurate, members))

    def turn(self, episode: int) -> list[Members]:
        """Return the discriminators that learn in stage 4 of an episode: one of each ensemble.

        Those in one list learn, and stop, together.
        """
        members = tuple((a, episode % len(ensemble)) for a, ensemble in enumerate(self.ensembles))
        return [members] if self.recipe.stop_together else [(member,) for member in members]

    def _make_stages(self) -> None:
        recipe = self.recipe
        moved = [*self.map_parameters, *self.classifier.parameters]
        everyone = tuple(
            (a, k) for a, ensemble in enumerate(self.ensembles) for k in range(len(ensemble))
        )

        def identity(batch: Tensor) -> Mapping[str, Tensor]:
            return {"loss": self.identity_loss(batch)[0]}

        def debias(batch: Tensor) -> Mapping[str, Tensor]:
            entropy, mapped = self.identity_loss(batch)
            # CE(identity) + λ L_deb: who it is, kept; of what group, forgotten.
            ignorance = self.debias_loss(mapped)
            loss = entropy + recipe.debias_weight * ignorance
            return {"loss": loss, "identity": entropy, "debiasing": ignorance}

        stage = partial(Stage, self.session, rows=len(self.images), batch_size=recipe.batch_size)
        self._identity = stage(
            "1 identity",
            moved,
            identity,
            learning_rate=recipe.identity_rate,
            epochs=recipe.identity_epochs,
        )
        self._discriminators = stage(
            "2 discriminators",
            self._parameters(everyone),
            self._attribute_losses(everyone),
            learning_rate=recipe.discriminator_rate,
            epochs=recipe.discriminator_epochs,
            runs=-(-recipe.episodes // recipe.restart_every),
        )
        self._debias = stage(
            "3 debiasing",
            moved,
            debias,
            learning_rate=recipe.debias_rate,
            epochs=recipe.debias_epochs,
            runs=recipe.episodes,
        )
        updates = {
            members: stage(
                "4 update",
                self._parameters(members),
                self._attribute_losses(members),
                learning_rate=recipe.update_rate,
                epochs=recipe.update_epochs,
                runs=recipe.episodes * len(self.turn(0)),
            )
            for episode in range(recipe.episodes)
            for members in self.turn(episode)
        }
        self._update = updates.__getitem__

    def _parameters(self, members: Members) -> list[Tensor]:
        return [tensor for a, k in members for tensor in self.ensembles[a][k].parameters]

    def _attribute_losses(self, members: Members) -> Losses:
        return lambda batch: {"loss": self.attribute_loss(batch, members)}

    def _draw_discriminators(self) -> None:
        for ensemble in self.ensembles:
            for member in ensemble:
                member.draw()

    def _rest(self) -> None:
        """Work out what M, which now rests, makes of all images."""
        with torch.no_grad():
            for images, mapped in (
                (self.images, self.mapped),
                (self.held_images, self.held_mapped),
            ):
                mapped.copy_(self.new_embeddings(images))

    def _accurate(self, members: Members) -> bool:
        return all(self.accuracy(a, k) > self.recipe.stop_at for a, k in members)

    def figures(self) -> dict[str, float]:
        """Return the last losses, and how well attributes are recognised in validation images."""
        self._rest()
        losses = self.session.losses
        figures = {
            f"stage_{stage[0]}_{key.replace('-', '_')}": value
            for stage in sorted(losses)
            for key, value in losses[stage].items()
        }
        measured = self.ensembles if len(self.held_mapped) else []
        for a, (name, ensemble) in enumerate(zip(self.names, measured, strict=False)):
            best = max(self.accuracy(a, k) for k in range(len(ensemble)))
            figures[f"discriminator_accuracy_{name}"] = best
        return figures


def transform(weights: Sequence[Float32], vectors: Float32, device: str) -> Float32:
    """Return the new embeddings of `vectors`, by the weight, bias and slope of M."""
    chosen = choose_device(device)
    with working_on(chosen), torch.inference_mode():
        weight, bias, slope = (torch.from_numpy(array).to(chosen) for array in weights)
        mapped = np.empty((len(vectors), len(weight)), dtype=np.float32)
        for start in range(0, len(vectors), _BLOCK):
            block = np.array(vectors[start : start + _BLOCK], dtype=np.float32)
            x = torch.from_numpy(block).to(chosen)
            new = functional.prelu(functional.linear(x, weight, bias), slope)
            mapped[start : start + _BLOCK] = new.cpu().numpy()
    return mapped
