"""Cohorts of real faces, where they are there: who is in both, by the network's own scores.

Each set has some pictures twice under two names, and strangers who look very much alike.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import faircal
from faircal import Cohort, DataError
from faircal.data.cohort_overlap import join_cohort
from faircal.data.pairing import draw_cohort

HOME = Path(__file__).parents[3] / "shared" / "data"
SETS = [
    pytest.param(
        name, marks=pytest.mark.skipif(not (HOME / name).exists(), reason="real data is not here")
    )
    for name in ("lfw-mobilefacenet", "lfw-dlib")
]


@pytest.fixture(scope="module", params=SETS)
def whole(request):
    return faircal.load(HOME / request.param)


@pytest.fixture(scope="module")
def apart(whole):
    """The pairs of some people, and others of the same collection as a cohort."""
    with_cohort = draw_cohort(whole, 36)
    return with_cohort.with_cohort(None), with_cohort.cohort


@pytest.mark.parametrize("noise", [0, 0.05])
def test_pictures_under_other_names(whole, apart, noise):
    data, cohort = apart
    rng, people = np.random.default_rng(0), len(cohort.identity.names)
    rows = data.used_images()[:: len(data.used_images()) // 5][:5]
    vectors = whole.embeddings.rows(rows)
    vectors += noise * rng.normal(size=vectors.shape) / np.sqrt(vectors.shape[1])
    of_data = whole.image_groups()
    public = Cohort(
        embeddings=np.concatenate([cohort.seen("embedding").vectors, vectors]),
        identity=[*np.array(cohort.identity.names)[cohort.identity.codes], *"vwxyz"],
        groups=[
            *np.array(cohort.groups.names)[cohort.groups.codes],
            *np.array(of_data.names)[of_data.codes[rows]],
        ],
    )
    left = join_cohort(data, public).cohort.identity.names
    assert not set("vwxyz") & set(left)
    # Besides, only those whose picture is in the data under another name.
    assert people - 3 <= len(left) <= people


def test_another_collection_is_no_other_network(whole, apart):
    """Of one group alone on one side, and all others on the other."""
    data, cohort = apart
    groups = data.groups()
    for code in range(len(groups.names)):
        rows = np.flatnonzero(cohort.groups.codes != code)
        inside = data.subset((groups.left == code) & (groups.right == code))
        assert join_cohort(inside, cohort.subset(rows)).cohort is not None


def test_another_network(apart):
    data, cohort = apart
    turned = np.roll(cohort.seen("embedding").vectors, 17, axis=1)
    other = Cohort(embeddings=turned, identity=cohort.identity, groups=cohort.groups)
    with pytest.raises(DataError, match="another network, or prepared in another way"):
        join_cohort(data, other)
