"""The losses of the trained methods."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def individual_fairness(outputs: Tensor, genuine: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """FTC's penalty: pairs with the same label should get the same outputs, whatever their groups.

    The sum over all ordered pairs (i, j) of groups, i = j too, of the mean over a in i, b in j of
    [y_a = y_b] ‖o_a − o_b‖². With weights w_a = 1/n_i for a in group i the double sum is, for each
    label, Σ_a Σ_b w_a w_b ‖o_a − o_b‖² = 2 W Σ_a w_a ‖o_a − ō‖², where W = Σ_a w_a and ō is the
    weighted mean: exact, and linear in the size of the batch.

    Parameters
    ----------
    outputs : Tensor of shape (n, 2)
        Logits.
    genuine : Tensor of shape (n,), bool or integer
    group : Tensor of shape (n,), integer
        The group that both images belong to; −1 for pairs that count in none.
    n_groups : int
    """
    member = group[:, None] == torch.arange(n_groups, device=group.device)
    member = member.to(outputs.dtype)
    weight = (member / member.sum(0).clamp_min(1)).sum(1)
    penalty = outputs.new_zeros(())
    for label in (0, 1):
        w = weight * (genuine == label)
        total = w.sum()
        mean = (w[:, None] * outputs).sum(0) / total.clamp_min(torch.finfo(w.dtype).tiny)
        penalty = penalty + 2 * total * (w * (outputs - mean).square().sum(1)).sum()
    return penalty


def attribute_entropy(logits: Tensor, group: Tensor, squash: bool) -> Tensor:
    """Cross-entropy of a discriminator.

    With `squash` as the authors ran it: the discriminator ends in softmax(sigmoid(·)), and the
    cross-entropy takes that for logits and applies softmax once more.
    """
    return functional.cross_entropy(squashed(logits) if squash else logits, group)


def uniformity(logits: Tensor, squash: bool) -> Tensor:
    """Cross-entropy of a discriminator's output to the uniform distribution.

    Mean over the batch of −(1/G) Σ_g log p_g: least where the discriminator knows nothing.
    """
    log_p = squashed(logits).log() if squash else functional.log_softmax(logits, 1)
    return -log_p.mean()


def squashed(logits: Tensor) -> Tensor:
    """softmax(sigmoid(·)): probabilities that can't come near 0 or 1."""
    return torch.softmax(torch.sigmoid(logits), 1)
