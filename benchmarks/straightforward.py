"""FTC and AGENDA as one would first write them: what ours are held against.

One pair or one image at a time through a `DataLoader`, `nn.Module` networks, the default Adam, a
loss that loops over pairs of groups, and M in the graph whether it moves or not: as the authors
did. The schedules are those of the recipes, so that both sides do the same epochs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, random_split

from faircal.methods.debiasing import DebiasingRecipe
from faircal.methods.ftc import ComparisonRecipe


@dataclass(frozen=True)
class PairData(Dataset):
    """Pairs, one at a time: |z₁ − z₂|, whether genuine, group."""

    vectors: NDArray[np.float32]
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    genuine: NDArray[np.bool_]
    group: NDArray[np.int32]
    n_groups: int

    def __len__(self) -> int:
        return len(self.left)

    def __getitem__(self, i: int) -> tuple[Tensor, int, int]:
        difference = np.abs(self.vectors[self.left[i]] - self.vectors[self.right[i]])
        return torch.from_numpy(difference), int(self.genuine[i]), int(self.group[i])


@dataclass(frozen=True)
class ImageData(Dataset):
    """Images, one at a time: vector, identity, group; both coded 0, 1, …."""

    vectors: NDArray[np.float32]
    identity: NDArray[np.int32]
    group: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.vectors)

    def __getitem__(self, i: int) -> tuple[Tensor, int, int]:
        return torch.from_numpy(self.vectors[i]), int(self.identity[i]), int(self.group[i])


def fairness(outputs: Tensor, genuine: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """Return FTC's penalty by its definition, a term for each pair of groups in the batch."""
    penalty = outputs.new_zeros(())
    for i, j in product(range(n_groups), repeat=2):
        a, b = group == i, group == j
        if a.any() and b.any():
            distance = (outputs[a][:, None] - outputs[b][None]).square().sum(2)
            same = genuine[a][:, None] == genuine[b][None]
            penalty = penalty + (distance * same).mean()
    return penalty


def train_ftc(data: PairData, recipe: ComparisonRecipe, device: str, workers: int) -> float:
    """Train FTC's network; return the mean loss of the last epoch."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    sizes = recipe.sizes(data.vectors.shape[1])
    for inputs, outputs in pairwise(sizes[:-1]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(), nn.Dropout(recipe.dropout)]
    network = nn.Sequential(*layers, nn.Linear(*sizes[-2:])).to(device)
    optimiser = torch.optim.Adam(
        network.parameters(), recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    loader = DataLoader(data, recipe.batch_size, shuffle=True, num_workers=workers)
    mean = 0.0
    for _ in range(recipe.epochs):
        total = 0.0
        for x, genuine, group in loader:
            y, member = genuine.to(device), group.to(device)
            outputs = network(x.to(device))
            loss = (1 - recipe.fairness) * functional.cross_entropy(outputs, y)
            loss = loss + recipe.fairness * fairness(outputs, y, member, data.n_groups)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.item() * len(x)
        mean = total / len(data)
    return mean


class StraightforwardAgenda:
    """AGENDA's four stages."""

    def __init__(self, data: ImageData, recipe: DebiasingRecipe, device: str, workers: int) -> None:
        torch.manual_seed(0)
        self.recipe, self.device = recipe, device
        held = round(recipe.validation * len(data))
        used, kept = random_split(data, [len(data) - held, held])
        self.loader = DataLoader(used, recipe.batch_size, shuffle=True, num_workers=workers)
        self.validation = DataLoader(kept, recipe.batch_size, num_workers=workers)
        self.groups = int(data.group.max()) + 1
        self.map = nn.Sequential(nn.Linear(data.vectors.shape[1], recipe.width), nn.PReLU())
        self.map.to(device)
        self.classifier = nn.Linear(recipe.width, int(data.identity.max()) + 1).to(device)

    def new_discriminator(self) -> None:
        """Draw the discriminator."""
        hidden = self.recipe.discriminator[0]
        layers = (nn.Linear(self.recipe.width, hidden), nn.SELU(), nn.Linear(hidden, self.groups))
        self.discriminator = nn.Sequential(*layers).to(self.device)

    def run(self) -> float:
        """Pass through the stages; return the mean loss of the last epoch of stage 3."""
        recipe, last = self.recipe, 0.0
        moved = [*self.map.parameters(), *self.classifier.parameters()]
        optimiser = torch.optim.Adam(moved, recipe.identity_rate)
        for _ in range(recipe.identity_epochs):
            self.epoch(optimiser, self.identity_loss)
        for episode in range(recipe.episodes):
            if episode % recipe.restart_every == 0:
                self.new_discriminator()
                theirs = self.discriminator.parameters()
                optimiser = torch.optim.Adam(theirs, recipe.discriminator_rate)
                for _ in range(recipe.discriminator_epochs):
                    self.epoch(optimiser, self.attribute_loss)
            optimiser = torch.optim.Adam(moved, recipe.debias_rate)
            for _ in range(recipe.debias_epochs):
                last = self.epoch(optimiser, self.debias_loss)
            optimiser = torch.optim.Adam(self.discriminator.parameters(), recipe.update_rate)
            for _ in range(recipe.update_epochs):
                if self.accuracy() > recipe.stop_at:
                    break
                self.epoch(optimiser, self.attribute_loss)
        return last

    def epoch(self, optimiser: torch.optim.Optimizer, loss_of: Any) -> float:
        """Take a step for every batch; return the mean loss."""
        total, n = 0.0, 0
        for batch in self.loader:
            x, identity, group = (column.to(self.device) for column in batch)
            optimiser.zero_grad()
            loss = loss_of(x, identity, group)
            loss.backward()
            optimiser.step()
            total += loss.item() * len(x)
            n += len(x)
        return total / n

    def identity_loss(self, x: Tensor, identity: Tensor, _group: Tensor) -> Tensor:
        """Stage 1: cross-entropy of the identities."""
        return functional.cross_entropy(self.classifier(self.map(x)), identity)

    def attribute_loss(self, x: Tensor, _identity: Tensor, group: Tensor) -> Tensor:
        """Stages 2 and 4: cross-entropy of the groups."""
        return functional.cross_entropy(self.discriminator(self.map(x)), group)

    def debias_loss(self, x: Tensor, identity: Tensor, _group: Tensor) -> Tensor:
        """Stage 3: identities, and groups that can't be told."""
        mapped = self.map(x)
        known = functional.log_softmax(self.discriminator(mapped), 1)
        entropy = functional.cross_entropy(self.classifier(mapped), identity)
        return entropy - self.recipe.debias_weight * known.mean()

    def accuracy(self) -> float:
        """Return the discriminator's accuracy on the images kept from training."""
        right = n = 0
        with torch.no_grad():
            for x, _, group in self.validation:
                guess = self.discriminator(self.map(x.to(self.device))).argmax(1)
                right += int((guess == group.to(self.device)).sum())
                n += len(x)
        return right / n


def train_agenda(data: ImageData, recipe: DebiasingRecipe, device: str, workers: int) -> float:
    """Train AGENDA's networks; return the mean loss of the last epoch of stage 3."""
    return StraightforwardAgenda(data, recipe, device, workers).run()
