"""FTC's network: how two embeddings differ goes in, "same" or "not the same" comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from faircal.compute.device import choose_device
from faircal.methods.ftc import ComparisonRecipe
from faircal.methods.training.networks import Perceptron, forward, individual_fairness
from faircal.methods.training.session import Stage, TrainingSession, new_generator, working_on

Float32 = NDArray[np.float32]
Rows = NDArray[np.intp]

#: Pairs scored at a time.
_BLOCK = 8192


def train(
    session: TrainingSession,
    recipe: ComparisonRecipe,
    vectors: Float32,
    left: Rows,
    right: Rows,
    genuine: NDArray[np.bool_],
    group: NDArray[np.int32],
    n_groups: int,
) -> tuple[list[Float32], dict[str, float]]:
    """Train the network on all pairs; return its weights and biases, and the last losses.

    Parameters
    ----------
    session : TrainingSession
    recipe : ComparisonRecipe
    vectors : ndarray of shape (n_images, d)
    left, right : ndarray of shape (n_pairs,)
        Rows of `vectors`.
    genuine, group : ndarray of shape (n_pairs,)
        `group` is −1 for pairs that belong to none.
    n_groups : int
    """
    network = Perceptron(session, recipe.sizes(vectors.shape[1]), torch.relu)
    session.restore(recipe, n_groups, arrays=(vectors, left, right, genuine, group))
    images, first, second = (session.tensor(a) for a in (vectors, left, right))
    label, member = session.tensor(genuine.astype(np.int64)), session.tensor(group)

    # (1 − λ) CE + λ L_fair. L_fair is taken on logits, as the authors do, and is not divided by
    # the number of couples of groups.
    def losses(batch: Tensor) -> Mapping[str, Tensor]:
        x = difference(images, first[batch], second[batch])
        logits = network(x, recipe.dropout).float()
        entropy = functional.cross_entropy(logits, label[batch])
        fairness = individual_fairness(logits, label[batch], member[batch], n_groups)
        loss = (1 - recipe.fairness) * entropy + recipe.fairness * fairness
        return {"loss": loss, "cross-entropy": entropy, "fairness": fairness}

    Stage(
        session,
        "comparing",
        network.parameters,
        losses,
        rows=len(left),
        batch_size=recipe.batch_size,
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        epochs=recipe.epochs,
    ).run()
    weights = [tensor.detach().cpu().numpy() for tensor in network.parameters]
    return weights, session.losses["comparing"]


def difference(images: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return |z₁ − z₂|, element by element."""
    return (images[left] - images[right]).abs_()


def score(
    weights: Sequence[Float32],
    vectors: Float32,
    left: Rows,
    right: Rows,
    *,
    dropout: float,
    seed: int,
    device: str,
) -> NDArray[np.float64]:
    """Return the network's probability of "same" for each pair.

    `dropout` is 0, unless it is to stay on: the authors never left training mode.
    """
    chosen = choose_device(device)
    with working_on(chosen), torch.inference_mode():
        generator = new_generator(chosen, seed)
        tensors = [torch.from_numpy(weight).to(chosen) for weight in weights]
        layers = list(zip(tensors[::2], tensors[1::2], strict=True))
        images = torch.from_numpy(vectors).to(chosen)
        first, second = torch.from_numpy(left).to(chosen), torch.from_numpy(right).to(chosen)
        probability = np.empty(len(left))
        for start in range(0, len(left), _BLOCK):
            block = slice(start, start + _BLOCK)
            x = difference(images, first[block], second[block])
            logits = forward(layers, x, torch.relu, dropout, generator).double()
            probability[block] = torch.softmax(logits, 1)[:, 1].cpu().numpy()
    return probability
