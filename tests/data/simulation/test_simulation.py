"""The simulated presets: sizes, folds, pairs, reproducibility, and the Baseline's figures."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import rankdata

import faircal.data
from faircal._base.errors import ParameterError
from faircal.data.simulation import PRESETS, PopulationModel, SimulatedGroup, simulate
from faircal.data.simulation.draw import SimulatedPeople, share_out

SEEDS = range(2)


@pytest.fixture(scope="module")
def small():
    return simulate("small")


@pytest.fixture(scope="module")
def rfw():
    return simulate("rfw-like")


@pytest.fixture(scope="module")
def bfw():
    return simulate("bfw-like")


@pytest.fixture(params=list(PRESETS))
def data(request, small, rfw, bfw):
    return {"small": small, "rfw-like": rfw, "bfw-like": bfw}[request.param]


def auroc(score, genuine):
    rank = rankdata(score)
    n = int(genuine.sum())
    return (rank[genuine].sum() - n * (n + 1) / 2) / (n * (len(score) - n))


def auroc_of_folds(data):
    folds = [data.pairs.fold == fold for fold in data.fold_names]
    return np.mean([auroc(data.scores[fold], data.genuine[fold]) for fold in folds])


def group_fpr(data):
    """False positive rate of each group at 5 % over all pairs together."""
    threshold = np.quantile(data.scores[~data.genuine], 0.95)
    groups = data.groups()
    imposters = np.where(data.genuine, -1, groups.pair)
    above = data.scores >= threshold
    return {name: above[imposters == code].mean() for code, name in enumerate(groups.names)}


def same(a, b):
    return (
        a.embeddings.vectors.tobytes() == b.embeddings.vectors.tobytes()
        and a.pairs.left.tobytes() == b.pairs.left.tobytes()
        and a.pairs.right.tobytes() == b.pairs.right.tobytes()
        and a.pairs.genuine.tobytes() == b.pairs.genuine.tobytes()
        and a.pairs.fold.tobytes() == b.pairs.fold.tobytes()
    )


# ------------------------------------------------------------------ reproducibility


@pytest.mark.parametrize("preset", ["small"])
def test_the_same_seed_gives_the_same_bytes(preset, small, rfw):
    first = {"small": small, "rfw-like": rfw}[preset]
    again = simulate(preset, 0)
    assert same(first, again)
    assert first.hash() == again.hash()


def test_bytes_do_not_depend_on_global_state(small):
    np.random.seed(99)  # noqa: NPY002
    assert same(small, simulate("small"))


def test_another_seed_differs(small):
    other = simulate("small", seed=1)
    assert not np.array_equal(small.embeddings.vectors, other.embeddings.vectors)
    assert not np.array_equal(small.pairs.left, other.pairs.left)


def test_other_pairs_leave_the_embeddings_alone(small):
    fewer = simulate("small", pairs=1_000)
    assert np.array_equal(small.embeddings.vectors, fewer.embeddings.vectors)
    assert len(fewer.pairs) == 1_000


# ------------------------------------------------------------------ shape of the data


@pytest.mark.parametrize(
    ("preset", "people", "images", "dimension", "pairs", "genuine", "groups"),
    [
        ("small", 200, 2_000, 128, 8_000, 2_667, 8),
        ("rfw-like", 12_000, 40_000, 512, 24_000, 12_000, 4),
        ("bfw-like", 800, 20_000, 512, 890_000, 233_596, 8),
    ],
)
def test_sizes(preset, people, images, dimension, pairs, genuine, groups, small, rfw, bfw):
    data = {"small": small, "rfw-like": rfw, "bfw-like": bfw}[preset]
    assert len(data.images.identity.names) == people
    assert data.embeddings.vectors.shape == (images, dimension)
    assert data.embeddings.vectors.dtype == np.float32
    assert (len(data.pairs), int(data.genuine.sum())) == (pairs, genuine)
    assert len(data.groups().names) == groups
    assert data.fold_names == [1, 2, 3, 4, 5]
    assert np.ptp(np.bincount(data.pairs.fold)[1:]) <= 0.01 * len(data.pairs)


def test_it_says_that_it_is_simulated(data):
    assert data.name.endswith("(simulated)")
    assert data.provenance["simulated"] is True
    assert data.provenance["preset"] in data.name
    assert json.loads(json.dumps(data.provenance)) == data.provenance


def test_embeddings_have_unit_length(data):
    np.testing.assert_allclose(data.embeddings.norms, 1, atol=1e-5)


def test_labels_agree_with_identities(data):
    identity = data.images.identity.codes
    assert np.array_equal(
        identity[data.pairs.left] == identity[data.pairs.right], data.pairs.genuine
    )


def test_every_person_has_one_group_and_at_least_two_images(data):
    identity = data.images.identity.codes
    assert np.bincount(identity).min() >= 2
    for column in data.images.attributes.values():
        assert len(np.unique(identity * 10 + column.codes)) == identity.max() + 1


def test_folds_share_no_person(data):
    identity = data.images.identity.codes
    people = np.concatenate([identity[data.pairs.left], identity[data.pairs.right]])
    seen = np.unique(10 * people.astype(np.int64) + np.tile(data.pairs.fold, 2))
    assert len(np.unique(seen // 10)) == len(seen)


def test_no_pair_twice_mirrored_or_with_itself(data):
    low = np.minimum(data.pairs.left, data.pairs.right)
    high = np.maximum(data.pairs.left, data.pairs.right)
    assert (low < high).all()
    assert len(np.unique(low * len(data.images) + high)) == len(low)
    assert 0.4 < (low == data.pairs.left).mean() < 0.6


def test_columns_are_coded_as_if_read_from_a_table(small):
    column = small.images.attributes["ethnicity"]
    names = np.array(column.names)[column.codes]
    read = faircal.data.columns.Column.of(names)
    assert read.names == column.names
    assert np.array_equal(read.codes, column.codes)
    assert list(small.images.identity.names) == sorted(small.images.identity.names)


def test_rfw_like_pairs_stay_inside_groups(rfw):
    groups = rfw.groups("ethnicity")
    assert not groups.cross.any()
    assert not groups.unknown.any()
    each = np.bincount(2 * groups.pair + rfw.genuine)
    assert (each == 3_000).all()


def test_bfw_like_has_imposters_across_groups(bfw):
    cross = bfw.groups().cross
    assert not bfw.genuine[cross].any()
    assert 0.55 < cross[~bfw.genuine].mean() < 0.65
    for attribute in ("ethnicity", "gender"):
        assert bfw.groups(attribute).cross.any()


# ------------------------------------------------------------------ the Baseline's figures


@pytest.mark.parametrize("seed", SEEDS)
def test_rfw_like_baseline(seed):
    data = simulate("rfw-like", seed)
    assert 0.84 <= auroc_of_folds(data) <= 0.88
    fpr = group_fpr(data)
    assert fpr["Caucasian"] == min(fpr.values())
    assert max(fpr.values()) >= 10 * fpr["Caucasian"]
    assert min(fpr["African"], fpr["Asian"]) > fpr["Indian"]


@pytest.mark.parametrize("seed", SEEDS)
def test_small_baseline(seed):
    data = simulate("small", seed)
    assert 0.93 <= auroc_of_folds(data) <= 0.97
    fpr = group_fpr(data)
    assert max(fpr.values()) >= 10 * min(fpr.values())
    assert min(fpr, key=fpr.get).startswith("Caucasian")


def test_bfw_like_baseline(bfw):
    assert 0.955 <= auroc_of_folds(bfw) <= 0.968
    fpr = group_fpr(bfw)
    assert max(fpr, key=fpr.get) == "Asian F"
    assert fpr["Asian F"] >= 10 * min(fpr["Caucasian F"], fpr["Caucasian M"])


# ------------------------------------------------------------------ size options and errors


def test_other_sizes_follow_in_proportion():
    data = simulate("bfw-like", people=160, dimension=64)
    assert data.embeddings.vectors.shape == (4_000, 64)
    assert len(data.pairs) == 178_000
    assert data.provenance["people"] == 160


@pytest.mark.parametrize("preset", PRESETS)
def test_the_least_sizes_work(preset):
    cells = PRESETS[preset].splits * len(PRESETS[preset].population.groups)
    data = simulate(preset, people=2 * cells, images=4 * cells, dimension=16)
    for fold in data.fold_names:
        part = data.subset(data.pairs.fold == fold)
        pair = part.groups().pair
        counts = np.bincount(2 * pair[pair >= 0] + part.genuine[pair >= 0])
        assert counts.min() > 0
    assert simulate(preset, people=2 * cells, pairs=4 * cells, dimension=16).provenance["pairs"]


def test_every_possible_pair_can_be_drawn():
    with pytest.raises(ParameterError, match="expected at most") as caught:
        simulate("small", people=80, pairs=10**6)
    most = int(str(caught.value).split("at most ")[1].split(",")[0])
    data = simulate("small", people=80, pairs=most)
    assert len(data.pairs) == most
    with pytest.raises(ParameterError):
        simulate("small", people=80, pairs=most + 1)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"preset": "smal"}, "unknown preset 'smal'; did you mean small?"),
        ({"preset": "small", "seed": -1}, "seed: expected a whole number of 0 or more"),
        ({"preset": "small", "seed": 1.5}, "seed: expected a whole number"),
        ({"preset": "small", "people": 10}, "people: expected a whole number of 80 or more"),
        ({"preset": "small", "people": True}, "people: expected a whole number"),
        ({"preset": "small", "images": 300}, "images: expected a whole number of 400 or more"),
        ({"preset": "small", "pairs": 3}, "pairs: expected a whole number of 160 or more"),
        ({"preset": "small", "pairs": 10**7}, "pairs: expected at most"),
        ({"preset": "small", "dimension": 3}, "dimension: expected a whole number of 16 or more"),
    ],
)
def test_bad_parameters_say_what_was_expected(arguments, text):
    with pytest.raises(ParameterError) as caught:
        simulate(**arguments)
    message = str(caught.value)
    assert message.startswith(text)
    assert "\n" not in message


# ------------------------------------------------------------------ the model and the layout


def test_concentration_raises_imposter_scores():
    groups = tuple(
        SimulatedGroup((name,), alpha) for name, alpha in [("a", 0.0), ("b", 0.3), ("c", 0.6)]
    )
    model = PopulationModel(("group",), groups, 1, 0.0, 0.0, 0.0, 50.0, 50.0)
    group = np.repeat(np.arange(3), 300)
    vectors = model.embed(group, np.arange(900), 128, np.random.default_rng(0))
    means = [
        (vectors[group == code][:150] * vectors[group == code][150:]).sum(axis=1).mean()
        for code in range(3)
    ]
    # Without noise the expected cosine of two people is their group's α.
    np.testing.assert_allclose(means, [0, 0.3, 0.6], atol=0.04)


def test_group_directions_have_unit_length_and_share_what_groups_share():
    centres = PRESETS["bfw-like"].population.centres()
    gram = (centres[:, None] * centres[None]).sum(axis=2)
    np.testing.assert_allclose(np.diag(gram), 1, atol=1e-6)
    assert gram[0, 1] == pytest.approx(0.6)  # African F and African M
    assert gram[0, 2] == pytest.approx(0.4)  # African F and Asian F
    assert gram[0, 3] == pytest.approx(0.0)  # African F and Asian M


def test_partners_are_exactly_the_pairs_of_their_kind():
    layout = SimulatedPeople.of(people=9, images=22, splits=2, groups=2)
    split, group = layout.split[layout.person], layout.group[layout.person]
    i, j = np.triu_indices(22, 1)
    person = layout.person
    together = split[i] == split[j]
    genuine, alike = person[i] == person[j], group[i] == group[j]
    expected = {
        "genuine": genuine,
        "within": together & alike & ~genuine,
        "across": together & ~alike,
    }
    for kind, partners in layout.runs().items():
        rows = [(a, b) for a in range(22) for b in range(partners.first[a], partners.last[a])]
        assert rows == list(zip(i[expected[kind]], j[expected[kind]], strict=True))


def test_share_out_is_even():
    assert share_out(10, 4).tolist() == [2, 3, 2, 3]
    assert share_out(3, 5).sum() == 3
