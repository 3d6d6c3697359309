"""What AGENDA and MultiPASS are for, on simulated people that no training has seen.

PASS is the same scheme with MultiPASS's ensemble for one attribute. Fitted on 160 people (1600
images, 6400 pairs), measured on 640 others: AGENDA as the paper says, MultiPASS, which takes
longer, with fewer episodes. The limits leave room beyond the worst of five seeds
(0 to 4), which each test names.

A probe sees what the cosine sees: embeddings of unit length. Groups are hidden, not erased: one
that may stretch the directions with little variance, and has hundreds of people to learn from,
finds them.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid

import faircal
from faircal.data.types import cross

pytest.importorskip("torch")

SCHEDULES = {
    "AGENDA": {},
    "MultiPASS": {"episodes": 30, "discriminator_epochs": 50},
}


@pytest.fixture(scope="module")
def people():
    """(calibration, test): one fold and the four others."""
    data = faircal.simulate("small", seed=0, people=800, images=8000, pairs=32_000)
    return data.split(test_fold=1)[::-1]


@pytest.fixture(scope="module", params=SCHEDULES)
def model(request, people):
    return getattr(faircal, request.param)(**SCHEDULES[request.param]).fit(people[0])


@pytest.fixture(scope="module")
def images(people):
    """Return (vectors, group, half) of the images to be probed; `half` of the people are learnt."""
    test = people[1]
    rows = test.used_images()
    person = test.images.identity.codes[rows]
    half = np.random.default_rng(0).permutation(person.max() + 1) % 2 == 0
    group = cross(test.images.attributes, "ethnicity+gender").codes[rows]
    return test.embeddings.rows(rows), group, half[person]


def told(probe, vectors, group, half):
    """Return how much better than by chance a new probe tells groups from what the cosine sees."""
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    accuracy = probe.fit(vectors[half], group[half]).score(vectors[~half], group[~half])
    return accuracy - 1 / 8


def audited(score, test):
    return faircal.audit(
        score=score, genuine=test.genuine, groups=test.groups(), rates=(0.01, 0.05)
    )


def test_a_new_linear_probe_tells_groups_far_less(model, images):
    """0.62 of what it is on the raw embeddings."""
    vectors, group, half = images
    raw = told(LogisticRegression(max_iter=1000), vectors, group, half)
    new = told(LogisticRegression(max_iter=1000), model.new_embeddings(vectors), group, half)
    assert raw > 0.8
    assert new < 0.7 * raw


def test_groups_are_no_longer_where_their_means_are(model, images):
    """0.28 of what it is on the raw embeddings."""
    vectors, group, half = images
    raw = told(NearestCentroid(), vectors, group, half)
    new = told(NearestCentroid(), model.new_embeddings(vectors), group, half)
    assert raw > 0.7
    assert new < 0.35 * raw


@pytest.mark.parametrize("rate", [0.01, 0.05])
def test_false_positives_are_spread_more_evenly(model, people, rate):
    """0.68 of the baseline's spread."""
    test = people[1]
    raw, new = audited(test.scores, test), audited(model.decision_scores(test), test)
    under = {"group": "all", "condition": f"global_fpr={rate:g}"}
    assert new.value("fpr_aad", **under) < 0.8 * raw.value("fpr_aad", **under)


def test_accuracy_falls_and_people_can_still_be_told(model, people):
    """By 0.017 to 0.046."""
    test = people[1]
    raw, new = audited(test.scores, test), audited(model.decision_scores(test), test)
    assert raw.value("auroc") - 0.08 < new.value("auroc") < raw.value("auroc") - 0.008
