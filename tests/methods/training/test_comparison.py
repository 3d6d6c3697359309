"""FTC's network: its training against a plain loop, its scores against NumPy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from scipy.special import log_softmax, softmax
from sklearn.metrics import roc_auc_score
from torch.nn import functional

from faircal.methods.training import comparison, networks
from faircal.methods.training.networks import dropout_mask
from faircal.methods.training.session import Stage

SIZES = [8, 16, 12, 2]


def logits_of(weights, x, masks=None):
    """Return the outputs for the rows of `x`, in double precision."""
    x = x.astype(np.float64)
    hidden = list(zip(weights[:-2:2], weights[1:-2:2], strict=True))
    for i, (weight, bias) in enumerate(hidden):
        x = np.maximum(x @ weight.T.astype(np.float64) + bias, 0)
        if masks is not None:
            x = x * masks[i]
    return x @ weights[-2].T.astype(np.float64) + weights[-1]


def scored(weights, pairs, dropout=0.0, seed=0):
    vectors, left, right = pairs[:3]
    return comparison.score(weights, vectors, left, right, dropout=dropout, seed=seed, device="cpu")


@pytest.fixture
def weights():
    """A network with outputs that are far from equal."""
    rng = np.random.default_rng(1)
    shapes = [s for a, b in pairwise(SIZES) for s in ((b, a), (b,))]
    return [(rng.normal(size=shape) / 2).astype(np.float32) for shape in shapes]


@pytest.fixture
def spied(monkeypatch):
    """Return two lists: the batches of the training, and the masks of its dropout."""
    batches, masks = [], []
    step, draw = Stage.step, networks.dropout_mask

    def spy_step(self, batch):
        batches.append(batch.clone())
        step(self, batch)

    def spy_mask(*arguments):
        masks.append(draw(*arguments))
        return masks[-1]

    monkeypatch.setattr(Stage, "step", spy_step)
    monkeypatch.setattr(networks, "dropout_mask", spy_mask)
    return batches, masks


# ------------------------------------------------------------------ training


def test_what_comes_out_of_a_training(compare):
    weights, losses = compare()
    assert [array.shape for array in weights] == [(16, 8), (16,), (12, 16), (12,), (2, 12), (2,)]
    assert {array.dtype for array in weights} == {np.dtype(np.float32)}
    assert list(losses) == ["loss", "cross-entropy", "fairness"]


def slow_fairness(logits, genuine, group):
    total = 0.0
    for i in range(3):
        for j in range(3):
            of_i, of_j = np.flatnonzero(group == i), np.flatnonzero(group == j)
            for a in of_i:
                for b in of_j:
                    if genuine[a] == genuine[b]:
                        total += ((logits[a] - logits[b]) ** 2).sum() / (len(of_i) * len(of_j))
    return total


@pytest.mark.parametrize("fairness", [0.0, 0.25, 0.5])
def test_the_losses_by_numpy(compare, pairs, fairness):
    vectors, left, right, genuine, group, _ = pairs
    weights, losses = compare(
        epochs=1, batch_size=40, dropout=0.0, learning_rate=0.0, fairness=fairness
    )
    logits = logits_of(weights, np.abs(vectors[left] - vectors[right]))
    # Pairs of two groups (−1) count in the cross-entropy, and not in the fairness.
    entropy = -log_softmax(logits, axis=1)[np.arange(40), genuine.astype(int)].mean()
    penalty = slow_fairness(logits, genuine, group)
    assert (group < 0).any()
    assert losses["cross-entropy"] == pytest.approx(entropy, rel=1e-5)
    assert losses["fairness"] == pytest.approx(penalty, rel=1e-4)
    expected = (1 - fairness) * entropy + fairness * penalty
    assert losses["loss"] == pytest.approx(expected, rel=1e-4)


def test_losses_are_batch_by_batch(compare, pairs, spied):
    vectors, left, right, genuine, group, _ = pairs
    weights, losses = compare(epochs=1, batch_size=16, dropout=0.0, learning_rate=0.0)
    logits = logits_of(weights, np.abs(vectors[left] - vectors[right]))
    batches = [batch.numpy() for batch in spied[0]]
    assert [len(batch) for batch in batches] == [16, 16, 8]
    each = [slow_fairness(logits[b], genuine[b], group[b]) * len(b) / 40 for b in batches]
    assert losses["fairness"] == pytest.approx(sum(each), rel=1e-4)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_training_is_a_plain_loop(compare, pairs, spied, dropout):
    vectors, left, right, genuine, group, n_groups = pairs
    found, _ = compare(dropout=dropout)
    batches, masks = (list(seen) for seen in spied)
    first, _ = compare(dropout=dropout, learning_rate=0.0)
    assert len(batches) == 9
    assert len(masks) == (18 if dropout else 0)
    masks = masks or [1.0] * 18

    parameters = [torch.from_numpy(array.copy()).requires_grad_() for array in first]
    adam = torch.optim.Adam(parameters, lr=1e-3, weight_decay=1e-3)
    x = torch.from_numpy(np.abs(vectors[left] - vectors[right]))
    label, member = torch.from_numpy(genuine.astype(int)), torch.from_numpy(group)
    for i, batch in enumerate(batches):
        h = torch.relu(functional.linear(x[batch], *parameters[0:2])) * masks[2 * i]
        h = torch.relu(functional.linear(h, *parameters[2:4])) * masks[2 * i + 1]
        logits = functional.linear(h, *parameters[4:6])
        y, g = label[batch], member[batch]
        share = torch.zeros(len(batch))
        for k in range(n_groups):
            share[g == k] = 1 / max(int((g == k).sum()), 1)
        apart = (logits[:, None] - logits[None]).square().sum(2)
        alike = (y[:, None] == y[None]) * share[:, None] * share[None]
        loss = 0.5 * functional.cross_entropy(logits, y) + 0.5 * (apart * alike).sum()
        adam.zero_grad()
        loss.backward()
        adam.step()
    for ours, start, theirs in zip(found, first, parameters, strict=True):
        assert np.abs(ours - start).max() > 1e-3
        np.testing.assert_allclose(ours, theirs.detach(), atol=2e-5)


def test_dropout_is_on_in_training(compare):
    one, _ = compare(dropout=0.0)
    two, _ = compare(dropout=0.3)
    assert not any(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_it_learns_who_is_the_same(compare):
    rng = np.random.default_rng(5)
    person = np.arange(60) % 12
    vectors = rng.normal(size=(12, 8))[person] + 0.1 * rng.normal(size=(60, 8))
    left, right = rng.integers(0, 60, (2, 300))
    right[:150] = (left[:150] + 12 * rng.integers(1, 5, 150)) % 60  # the same person
    genuine = person[left] == person[right]
    data = vectors.astype(np.float32), left, right, genuine, (person[left] % 2).astype(np.int32), 2
    weights, losses = compare(*data, epochs=40, learning_rate=0.01, fairness=0.05)
    assert losses["cross-entropy"] < 0.4  # log 2 = 0.69 is chance
    assert roc_auc_score(genuine, scored(weights, data)) > 0.95


# ------------------------------------------------------------------- scoring


def test_scores_by_numpy(weights, pairs):
    vectors, left, right = pairs[:3]
    found = scored(weights, pairs)
    logits = logits_of(weights, np.abs(vectors[left] - vectors[right]))
    assert found.dtype == np.float64
    assert np.ptp(found) > 0.2
    np.testing.assert_allclose(found, softmax(logits, axis=1)[:, 1], atol=1e-5)


def test_a_score_by_hand():
    # |z₁ − z₂| = (1, 2); hidden: 1·1 + 2·2 − 1 = 4 and −3, of which ReLU makes 0;
    # logits 4·0 + 0 and 4·½ + 1 = 3: the probability of "same" is 1/(1 + e⁻³).
    weights = [
        np.array([[1, 2], [-1, -1]], np.float32),
        np.array([-1, 0], np.float32),
        np.array([[0, 5], [0.5, 7]], np.float32),
        np.array([0, 1], np.float32),
    ]
    vectors = np.array([[3, 1], [2, 3]], np.float32)
    found = scored(weights, (vectors, np.array([0, 1]), np.array([1, 0])))
    np.testing.assert_allclose(found, [0.9525741268224334] * 2, rtol=1e-12)


def test_scores_are_the_same_the_other_way_round(weights, pairs):
    vectors, left, right = pairs[:3]
    np.testing.assert_array_equal(
        scored(weights, (vectors, left, right)), scored(weights, (vectors, right, left))
    )


@pytest.mark.parametrize("block", [1, 7, 20, 39, 40, 41])
def test_blocks_change_nothing(weights, pairs, monkeypatch, empty_is_nan, block):
    whole = scored(weights, pairs)
    monkeypatch.setattr(comparison, "_BLOCK", block)
    np.testing.assert_allclose(scored(weights, pairs), whole, atol=1e-6)


def test_no_pairs_no_scores(weights, pairs):
    empty = np.empty(0, dtype=np.intp)
    assert scored(weights, (pairs[0], empty, empty)).shape == (0,)


def test_scoring_changes_no_weights(weights, pairs):
    before = [array.copy() for array in weights]
    scored(weights, pairs, dropout=0.3)
    for a, b in zip(before, weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_scores_with_dropout_on(weights, pairs):
    plain, one, same, other = (
        scored(weights, pairs, dropout, seed)
        for dropout, seed in ((0.0, 1), (0.3, 1), (0.3, 1), (0.3, 2))
    )
    np.testing.assert_array_equal(one, same)
    assert (one != plain).mean() > 0.9
    assert (one != other).mean() > 0.9
    np.testing.assert_array_equal(plain, scored(weights, pairs, 0.0, 2))  # no seed matters


def test_scores_with_dropout_on_by_numpy(weights, pairs, monkeypatch):
    vectors, left, right = pairs[:3]
    x = np.abs(vectors[left] - vectors[right])
    monkeypatch.setattr(comparison, "_BLOCK", 25)  # every block draws on
    generator = torch.Generator().manual_seed(3)
    expected = []
    for rows in (x[:25], x[25:]):
        masks = [dropout_mask((len(rows), n), 0.3, generator).numpy() for n in SIZES[1:-1]]
        expected += list(softmax(logits_of(weights, rows, masks), axis=1)[:, 1])
    np.testing.assert_allclose(scored(weights, pairs, 0.3, 3), expected, atol=1e-5)
