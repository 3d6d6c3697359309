"""The losses, against numbers worked out by hand and slow versions written from the formulas."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

import torch

from faircal.methods.training.networks import (
    attribute_entropy,
    individual_fairness,
    squashed,
    uniformity,
)

LN3 = math.log(3)
moderate = settings(max_examples=80, derandomize=True)


def slow_fairness(outputs, genuine, group):
    """Sum over (i, j) of [Σ over a in i, b in j with y_a = y_b of ‖o_a − o_b‖²] / (n_i n_j)."""
    total = outputs.new_zeros(())
    present = {int(g) for g in group if g >= 0}
    members = {i: [a for a, g in enumerate(group) if g == i] for i in present}
    for i, j in product(present, repeat=2):
        for a in members[i]:
            for b in members[j]:
                if genuine[a] == genuine[b]:
                    distance = (outputs[a] - outputs[b]).square().sum()
                    total = total + distance / (len(members[i]) * len(members[j]))
    return total


def batch_of(n, n_groups, seed, dtype=torch.float64):
    rng = np.random.default_rng(seed)
    outputs = torch.tensor(rng.normal(size=(n, 2)), dtype=dtype)
    genuine = torch.from_numpy(rng.integers(0, 2, n))
    return outputs, genuine, torch.from_numpy(rng.integers(-1, n_groups, n))


# ------------------------------------------------------- individual fairness


def test_fairness_between_groups_by_hand():
    # Group 0: a (genuine), b (imposter); group 1: c (genuine); the last pair is in no group.
    # (0,1) and (1,0): ‖a − c‖² / (2·1) = 8/2 each; (0,0) and (1,1): nothing but a with itself.
    outputs = torch.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, 2.0], [99.0, -99.0]], requires_grad=True)
    label, group = torch.tensor([1, 0, 1, 1]), torch.tensor([0, 0, 1, -1])
    loss = individual_fairness(outputs, label, group, 2)
    assert loss.item() == pytest.approx(8.0, rel=1e-6)
    # The loss is ‖a − c‖²: its gradient is 2(a − c) at a and the opposite at c.
    loss.backward()
    expected = [[-4.0, -4.0], [0.0, 0.0], [4.0, 4.0], [0.0, 0.0]]
    np.testing.assert_allclose(outputs.grad, expected, atol=1e-5)


def test_fairness_within_a_group_by_hand():
    # i = j counts, and the denominator counts all 3·3 pairs, not the 5 with equal labels:
    # (‖a − b‖² + ‖b − a‖²) / 9 = 8/9.
    outputs = torch.tensor([[0.0, 0.0], [2.0, 0.0], [5.0, 5.0]])
    loss = individual_fairness(outputs, torch.tensor([1, 1, 0]), torch.tensor([0, 0, 0]), 1)
    assert loss.item() == pytest.approx(8 / 9, rel=1e-6)


@moderate
@given(
    n=st.integers(1, 9),
    n_groups=st.integers(1, 5),
    seed=st.integers(0, 2**31),
    scale=st.sampled_from([1e-3, 1.0, 30.0]),
)
def test_fairness_is_the_slow_sum(n, n_groups, seed, scale):
    outputs, genuine, group = batch_of(n, n_groups, seed)
    outputs = (outputs * scale).requires_grad_()
    fast = individual_fairness(outputs, genuine, group, n_groups)
    slow = slow_fairness(outputs, genuine, group)
    assert fast.item() == pytest.approx(slow.item(), rel=1e-12, abs=1e-15 * scale**2)
    if slow.requires_grad:
        (by_fast,) = torch.autograd.grad(fast, outputs)
        (by_slow,) = torch.autograd.grad(slow, outputs)
        np.testing.assert_allclose(by_fast, by_slow, rtol=1e-10, atol=1e-13 * scale)


@pytest.mark.parametrize("seed", range(5))
def test_fairness_in_single_precision(seed):
    outputs, genuine, group = batch_of(60, 4, seed, torch.float32)
    outputs.requires_grad_()
    fast = individual_fairness(outputs, genuine, group, 4)
    exact = outputs.detach().double().requires_grad_()
    slow = slow_fairness(exact, genuine, group)
    assert fast.dtype == torch.float32
    assert fast.item() == pytest.approx(slow.item(), rel=1e-5)
    fast.backward()
    slow.backward()
    np.testing.assert_allclose(outputs.grad, exact.grad, rtol=1e-4, atol=1e-5)


def test_fairness_of_outputs_far_from_zero():
    outputs, genuine, group = batch_of(60, 4, 0, torch.float32)
    outputs = (outputs + 1e4).requires_grad_()
    slow = slow_fairness(outputs.detach().double(), genuine, group)
    fast = individual_fairness(outputs, genuine, group, 4)
    assert fast.item() == pytest.approx(slow.item(), rel=1e-4)
    exact = outputs.detach().double().requires_grad_()
    slow_fairness(exact, genuine, group).backward()
    fast.backward()
    np.testing.assert_allclose(outputs.grad, exact.grad, rtol=0, atol=1e-2)


def test_fairness_gradient_by_differences():
    outputs, genuine, group = batch_of(7, 3, 1)
    outputs.requires_grad_()
    assert torch.autograd.gradcheck(lambda o: individual_fairness(o, genuine, group, 3), outputs)


@pytest.mark.parametrize("label", [0, 1])
def test_fairness_with_one_label_only(label):
    outputs, _, group = batch_of(8, 3, 2, torch.float32)
    outputs.requires_grad_()
    genuine = torch.full((8,), label)
    fast = individual_fairness(outputs, genuine, group, 3)
    assert fast.item() == pytest.approx(slow_fairness(outputs, genuine, group).item(), rel=1e-5)
    fast.backward()
    assert torch.isfinite(outputs.grad).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fairness_when_all_are_in_no_group(dtype):
    outputs, genuine, _ = batch_of(8, 3, 3, dtype)
    outputs.requires_grad_()
    loss = individual_fairness(outputs, genuine, torch.full((8,), -1), 3)
    assert loss.item() == 0
    loss.backward()
    assert not outputs.grad.any()


def test_groups_that_are_absent_change_nothing():
    outputs, genuine, group = batch_of(12, 2, 4)
    few = individual_fairness(outputs, genuine, group, 2)
    many = individual_fairness(outputs, genuine, torch.where(group == 1, 6, group), 9)
    assert few.item() > 0
    assert many.item() == pytest.approx(few.item(), rel=1e-14)


def test_pairs_in_no_group_change_nothing():
    outputs, genuine, group = batch_of(20, 3, 5)
    inside = group >= 0
    assert 0 < inside.sum() < 20
    alone = individual_fairness(outputs[inside], genuine[inside], group[inside], 3)
    assert individual_fairness(outputs, genuine, group, 3).item() == pytest.approx(alone.item())


def test_labels_may_be_true_and_false():
    outputs, genuine, group = batch_of(12, 3, 6)
    whole = individual_fairness(outputs, genuine, group, 3)
    assert individual_fairness(outputs, genuine.bool(), group.int(), 3) == whole


# ----------------------------------------------------------- discriminators


def test_attribute_entropy_by_hand():
    # Probabilities 1/4 and 3/4: −log(3/4) and −log(1/4).
    logits = torch.tensor([[0.0, LN3], [0.0, LN3]], dtype=torch.float64)
    assert attribute_entropy(logits[:1], torch.tensor([1]), False).item() == pytest.approx(
        0.2876820724517809
    )
    both = attribute_entropy(logits, torch.tensor([1, 0]), False)
    assert both.item() == pytest.approx((0.2876820724517809 + 1.3862943611198906) / 2)


def test_attribute_entropy_squashed_by_hand():
    # sigmoid: 1/2 and 3/4; softmax: 1/(1 + e^¼) = 0.437823 and 0.562177; their difference is
    # 0.124353, so that −log of the last softmax is log(1 + e^∓0.124353).
    logits = torch.tensor([[0.0, LN3]], dtype=torch.float64)
    right, wrong = (attribute_entropy(logits, torch.tensor([g]), True).item() for g in (1, 0))
    assert right == pytest.approx(0.6329023941, abs=1e-9)
    assert wrong == pytest.approx(0.7572553959, abs=1e-9)


def test_uniformity_by_hand():
    # Of 1/4 and 3/4: −½ (log ¼ + log ¾) = ½ log(16/3). Of two equal ones: log 2. Then the mean.
    logits = torch.tensor([[0.0, LN3], [5.0, 5.0]], dtype=torch.float64)
    assert uniformity(logits[:1], False).item() == pytest.approx(0.8369882167858358)
    assert uniformity(logits, False).item() == pytest.approx(0.7650676986728905)


def test_uniformity_squashed_by_hand():
    # 0.437823 and 0.562177, as above: −½ (log 0.437823 + log 0.562177). No third softmax here.
    logits = torch.tensor([[0.0, LN3]], dtype=torch.float64)
    assert uniformity(logits, True).item() == pytest.approx(0.7009394199, abs=1e-9)


@pytest.mark.parametrize(
    ("groups", "low", "high", "lowest", "chance"),
    [
        (2, 0.269, 0.731, 0.489, 0.693),
        (4, 0.109, 0.475, 1.170, 1.386),
        (8, 0.050, 0.280, 1.927, 2.079),
    ],
)
def test_what_squashing_can_reach(groups, low, high, lowest, chance):
    sure = torch.full((1, groups), -1e4, dtype=torch.float64)
    sure[0, 0] = 1e4  # certain of the first group
    assert round(squashed(sure)[0, 0].item(), 3) == high
    assert round(squashed(-sure)[0, 0].item(), 3) == low
    first = torch.tensor([0])
    assert round(attribute_entropy(sure, first, True).item(), 3) == lowest
    equal = torch.zeros(1, groups, dtype=torch.float64)
    assert round(attribute_entropy(equal, first, True).item(), 3) == chance
    assert round(uniformity(equal, True).item(), 3) == chance
    assert round(uniformity(equal, False).item(), 3) == chance


@moderate
@given(seed=st.integers(0, 2**31), groups=st.integers(2, 8), scale=st.sampled_from([0.1, 3, 100]))
def test_squashing_keeps_within_its_range(seed, groups, scale):
    rng = np.random.default_rng(seed)
    logits = torch.from_numpy(rng.normal(size=(5, groups)) * scale)
    low, high = 1 / (1 + (groups - 1) * math.e), math.e / (math.e + groups - 1)
    p = squashed(logits)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-12)
    assert p.min() >= low - 1e-12
    assert p.max() <= high + 1e-12
    group = torch.from_numpy(rng.integers(0, groups, 5))
    floor = math.log(math.exp(high) + (groups - 1) * math.exp((1 - high) / (groups - 1))) - high
    assert attribute_entropy(logits, group, True).item() >= floor - 1e-12
    for squash in (True, False):
        assert uniformity(logits, squash).item() >= math.log(groups) - 1e-12


@pytest.mark.parametrize("squash", [True, False])
def test_discriminator_losses_as_numpy_has_them(squash):
    rng = np.random.default_rng(7)
    z, group = rng.normal(size=(6, 5)), rng.integers(0, 5, 6)

    def softmax(x):
        return np.exp(x) / np.exp(x).sum(1, keepdims=True)

    p = softmax(1 / (1 + np.exp(-z))) if squash else softmax(z)
    logits = torch.from_numpy(z)
    expected = -np.log(p).sum(1).mean() / 5
    assert uniformity(logits, squash).item() == pytest.approx(expected, rel=1e-12)
    q = softmax(p) if squash else p
    expected = -np.log(q[np.arange(6), group]).mean()
    found = attribute_entropy(logits, torch.from_numpy(group), squash)
    assert found.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("squash", [True, False])
def test_discriminator_gradients_by_differences(squash):
    logits = torch.from_numpy(np.random.default_rng(8).normal(size=(4, 3))).requires_grad_()
    group = torch.tensor([0, 2, 1, 1])
    assert torch.autograd.gradcheck(lambda z: attribute_entropy(z, group, squash), logits)
    assert torch.autograd.gradcheck(lambda z: uniformity(z, squash), logits)


@pytest.mark.parametrize("squash", [True, False])
def test_certain_discriminators_give_finite_losses(squash):
    logits = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    loss = uniformity(logits, squash) + attribute_entropy(logits, torch.tensor([1]), squash)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert torch.isfinite(loss)
    assert torch.isfinite(gradient).all()
