"""The networks of the trained methods, fully connected, weights as plain tensors; their losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from faircal.methods.training.session import TrainingSession

#: A dropout probability is rounded to this many-th parts; 16 random bits a unit are enough.
_PARTS = 2**16

#: oneDNN's x Wᵀ + b, which `torch.compile` uses on a CPU; not in every build of PyTorch.
_ONEDNN: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)


class Perceptron:
    """Linear layers with an activation between them; none after the last.

    Parameters
    ----------
    session : Session
        Its generator draws the weights, uniform in ±1/√(inputs) as is PyTorch's custom, and which
        units dropout keeps; its tensors hold the weights.
    sizes : sequence of int
        Inputs, hidden layers, outputs.
    activation : callable
    """

    def __init__(
        self, session: TrainingSession, sizes: Sequence[int], activation: Callable[[Tensor], Tensor]
    ) -> None:
        self.activation = activation
        self.layers = [
            (_empty(session, (outputs, inputs)), _empty(session, (outputs,)))
            for inputs, outputs in pairwise(sizes)
        ]
        self._generator = session.generator
        self.draw()
        session.tensors += self.parameters

    @property
    def parameters(self) -> list[Tensor]:
        """Weights and biases, layer by layer."""
        return [tensor for layer in self.layers for tensor in layer]

    def draw(self) -> None:
        """Draw the weights anew."""
        with torch.no_grad():
            for weight, bias in self.layers:
                bound = 1 / math.sqrt(weight.shape[1])
                weight.uniform_(-bound, bound, generator=self._generator)
                bias.uniform_(-bound, bound, generator=self._generator)

    def __call__(self, x: Tensor, dropout: float = 0.0) -> Tensor:
        """Return the outputs for the rows of `x`; with `dropout` after each hidden layer."""
        return forward(self.layers, x, self.activation, dropout, self._generator)


def forward(
    layers: Sequence[tuple[Tensor, Tensor]],
    x: Tensor,
    activation: Callable[[Tensor], Tensor],
    dropout: float,
    generator: torch.Generator,
) -> Tensor:
    """Pass the rows of `x` through `layers`, (weight, bias) each."""
    for weight, bias in layers[:-1]:
        x = activation(linear(x, weight, bias))
        if dropout:
            x = x * dropout_mask((len(x), len(weight)), dropout, generator)
    return linear(x, *layers[-1])


def _empty(session: TrainingSession, shape: tuple[int, ...]) -> Tensor:
    return torch.empty(shape, device=session.device, requires_grad=True)


def dropout_mask(shape: tuple[int, int], dropout: float, generator: torch.Generator) -> Tensor:
    """Return what dropout multiplies activations by: 0, or 1/(1 − dropout).

    Four elements share a 64-bit random number, which is several times quicker than one each.
    """
    n = shape[0] * shape[1]
    words = torch.empty(-(-n // 4), dtype=torch.int64, device=generator.device)
    words.random_(-(2**63), None, generator=generator)
    draws = words.view(torch.int16)[:n].view(shape)
    dropped = min(round(dropout * _PARTS), _PARTS - 1)
    # Draws are signed 16-bit numbers, from −2¹⁵ on: the lowest `dropped` of 2¹⁶ are dropped.
    kept = draws >= dropped - _PARTS // 2
    return kept.to(torch.float32).mul_(1 / (1 - dropout))


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return x Wᵀ + b, on a CPU by oneDNN where PyTorch has it.

    For the sizes of these networks oneDNN is up to a fifth faster, forward and backward, than the
    library that PyTorch uses by itself.
    """
    if (
        _ONEDNN is None
        or x.device.type != "cpu"
        or x.dtype != torch.float32
        or torch.is_autocast_enabled("cpu")
    ):
        return functional.linear(x, weight, bias)
    result: Tensor = _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return result


class _Linear(torch.autograd.Function):
    """A linear layer whose three products are oneDNN's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,), (x, weight) = gradients, ctx.saved_tensors
        wanted = ctx.needs_input_grad
        return (
            _product(gradient, weight.t()) if wanted[0] else None,
            _product(gradient.t(), x.t()) if wanted[1] else None,
            gradient.sum(0) if wanted[2] else None,
        )


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    result: Tensor = _ONEDNN(x, weight, bias, "none", [], "")
    return result


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
    # w_a = 1 / n_i for a pair of group i, and 0 for one of none.
    weight = (member / member.sum(0).clamp_min(1)).sum(1)
    penalty = outputs.new_zeros(())
    # y_a = y_b: each label by itself
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
