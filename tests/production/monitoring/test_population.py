"""What is counted of the calibration population."""

import numpy as np
import pytest

import faircal
from faircal.data import open_stream
from faircal.data.dataset_folder import save_dataset
from faircal.production.monitoring import survey
from faircal.production.monitoring.population import OUTSIDE
from faircal.production.scoring.judging import Judge


@pytest.fixture(scope="module")
def parts():
    return faircal.simulate("small", seed=3).split(test_fold=5)


def test_counts_are_of_the_pairs(parts):
    cal, _ = parts
    found = survey(faircal.FairCal(n_clusters=20).fit(cal), cal)
    imposters, genuine = int((~cal.genuine).sum()), int(cal.genuine.sum())
    for way in range(2):
        assert found.ranked_counts[way].sum(axis=1).tolist() == [imposters, genuine]
    for pairs in (found.place_pairs, found.outside_pairs):
        assert pairs.sum(axis=(1, 2, 3)).tolist() == [imposters, genuine]
    for buckets in (found.place_buckets, found.outside_buckets):
        assert buckets.sum(axis=(1, 2)).tolist() == [2 * imposters, 2 * genuine]
    assert found.genuine_counts.sum() == genuine
    assert found.imposter_counts.sum() == imposters
    # A genuine pair is in the bucket of its person, an imposter pair in those of both, mostly two.
    assert found.ranked_buckets[0, 1].sum() == genuine
    assert 1.9 * imposters < found.ranked_buckets[0, 0].sum() <= 2 * imposters
    assert found.counted_by == "people"
    assert found.people == 160
    assert found.effects["clusters"] > 2  # ten images of a person lie together


def test_the_same_seed_gives_the_same_bytes(parts):
    cal, _ = parts
    model = faircal.Baseline().fit(cal)
    one, other = survey(model, cal), survey(model, cal)
    (values, arrays), (other_values, other_arrays) = one.parts(), other.parts()
    assert values == other_values
    assert list(arrays) == list(other_arrays)
    for key, value in arrays.items():
        assert value.tobytes() == other_arrays[key].tobytes()


@pytest.mark.parametrize("method", ["baseline", "faircal"])
def test_other_people_are_outside_as_often_as_told(method):
    data = faircal.simulate("small", seed=1, people=1200, images=6000, pairs=20_000)
    cal, test = data.split(test_fold=5)
    model = faircal.Baseline() if method == "baseline" else faircal.FairCal(n_clusters=50)
    model.fit(cal)
    survey(model, cal)
    found = Judge.of(model).places(test.embeddings)
    outside = found.outside[test.used_images()].mean()
    assert OUTSIDE / 3 < outside < 3 * OUTSIDE


def test_places_are_nearer_to_those_of_new_people_than_the_clustering_itself():
    """With few people K-means follows those it saw; what is counted must not."""
    nearer = []
    for seed in range(3):
        data = faircal.simulate("small", seed=seed, people=400, images=8000, pairs=16_000)
        cal, test = data.split(test_fold=5)
        model = faircal.FairCal(n_clusters=100, random_state=seed).fit(cal)
        found = survey(model, cal)
        beyond = [
            (distance > found.reach[clusters]).mean()
            for _, clusters, distance in map(model.image_clusters, (cal, test))
        ]
        told = found.outside_buckets[:, :, 1].sum() / found.outside_buckets.sum()
        nearer.append(abs(told - beyond[1]) < abs(beyond[0] - beyond[1]))
    assert sum(nearer) >= 2


def test_a_stream_is_counted_as_the_data_in_memory(parts, tmp_path):
    cal, _ = parts
    folder = save_dataset(cal, tmp_path / "faces")
    model = faircal.FairCal(n_clusters=10).fit(cal)
    streamed = survey(model, open_stream(folder, batch=1000))
    assert streamed.people == 160
    whole = survey(model, cal)
    assert streamed.ranked_counts.sum() == whole.ranked_counts.sum()
    np.testing.assert_allclose(streamed.reach, whole.reach, rtol=0.02)


def test_scores_alone_have_no_places(tmp_path):
    rng = np.random.default_rng(0)
    genuine = rng.random(3000) < 0.5
    score = np.clip(rng.normal(0.1 + 0.5 * genuine, 0.15), -1, 1)
    table = tmp_path / "scores.csv"
    rows = "\n".join(f"{int(g)},{s:.6f}" for g, s in zip(genuine, score, strict=True))
    table.write_text("genuine,score\n" + rows + "\n")
    data = faircal.load(table)
    model = faircal.Baseline().fit(data)
    for source in (data, open_stream(table, batch=500)):
        found = survey(model, source)
        assert len(found.centers) == 0
        assert found.watchable
        assert not found.stratified
        assert found.counted_by == "pairs"


def test_numbers_of_a_survey_are_what_they_were(parts):
    """Worked out once: whoever changes how calibration is counted or placed sees it here."""
    cal, _ = parts
    found = survey(faircal.FairCal(n_clusters=20).fit(cal), cal)
    effects = {"all_scores": 6.476, "scores": 5.079, "clusters": 6.251, "outside": 1.0}
    assert found.effects == pytest.approx(effects, rel=0.01)
    assert found.reach.mean() == pytest.approx(1.0302, rel=0.001)
    assert found.ranked_edges.shape == (11, 42)
    assert found.ranked_edges.mean() == pytest.approx(0.43925, rel=0.001)
    assert (found.stratum.max(), found.region.max()) == (10, 11)
    assert found.ranked_buckets.sum(axis=(2, 3)).tolist() == [[8486, 2133]] * 2
    assert found.place_pairs.sum(axis=(2, 3)).tolist() == [[46, 4220], [2133, 0]]
    assert found.outside_buckets[:, :, 1].sum(axis=1) == pytest.approx([53, 23], abs=2)
