"""Cohorts: who is in them, what goes with which data, and what is of no use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import faircal
from faircal import Cohort, DataError, Dataset
from faircal.data.dataset_folder import save_dataset


def cohort_of(data, rows=slice(None), **more):
    """Return images of a dataset as a cohort."""
    identity = data.images.identity
    return Cohort(
        embeddings=data.embeddings.vectors[rows],
        identity=np.array([f"other {name}" for name in identity.names])[identity.codes][rows],
        groups=np.array(data.image_groups().names)[data.image_groups().codes][rows],
        **more,
    )


@pytest.fixture(scope="module")
def data():
    return faircal.simulate("small", seed=0, people=80, images=320, pairs=1000, dimension=32)


@pytest.fixture(scope="module")
def others():
    return faircal.simulate("small", seed=1, people=80, images=320, pairs=1000, dimension=32)


@pytest.fixture(scope="module")
def cohort(others):
    return cohort_of(others)


class TestFolder:
    def test_is_what_was_written(self, others, tmp_path):
        folder = save_dataset(others, tmp_path / "others")
        (folder / "pairs.csv").unlink()
        found = faircal.load_cohort(folder, attribute="gender")
        seen = found.seen("embedding")
        expected = others.embeddings.rows(np.arange(320))
        np.testing.assert_array_equal(seen.vectors, expected)
        assert (found.name, found.provenance["seed"]) == (others.name, 1)
        assert seen.group_names == others.images.attributes["gender"].names
        assert found.counts() == {"F": (40, 160), "M": (40, 160)}

    def test_all_attributes_crossed(self, others, tmp_path):
        assert len(faircal.load_cohort(save_dataset(others, tmp_path / "a")).groups.names) == 8

    def test_no_identity(self, others, tmp_path):
        folder = save_dataset(others, tmp_path / "others")
        text = (folder / "images.csv").read_text().replace("identity", "somebody", 1)
        (folder / "images.csv").write_text(text)
        with pytest.raises(DataError, match="needs a column 'identity' in its images; add it"):
            faircal.load_cohort(folder)

    def test_no_attribute(self, others, tmp_path):
        bare = replace(others.images, attributes={}, crossed=())
        made = Dataset.assemble("bare", bare, others.pairs, others.features)
        with pytest.raises(DataError, match="needs groups, and there is no attribute column"):
            faircal.load_cohort(save_dataset(made, tmp_path / "a"))

    def test_unknown_attribute(self, others, tmp_path):
        with pytest.raises(DataError, match=r"'gendre' is not in the data; did you mean gender\?"):
            faircal.load_cohort(save_dataset(others, tmp_path / "a"), "gendre")

    def test_a_file(self, tmp_path):
        (tmp_path / "table.csv").write_text("genuine\n1\n")
        with pytest.raises(DataError, match="expected a dataset folder with a cohort, found a"):
            faircal.load_cohort(tmp_path / "table.csv")


class TestWithData:
    def test_parts_keep_it(self, data, cohort):
        with_it = data.with_cohort(cohort)
        calibration, test = with_it.split(5)
        for part in (calibration, test, calibration.subset(np.arange(9)), *with_it.parts()):
            assert part.cohort is with_it.cohort
        assert data.cohort is None
        assert with_it.with_cohort(None).cohort is None

    def test_it_is_in_the_fingerprint(self, data, cohort):
        marks = {
            data.hash(),
            data.with_cohort(cohort).hash(),
            data.with_cohort(cohort.subset(np.arange(200))).hash(),
        }
        assert len(marks) == 3
        assert data.with_cohort(cohort).with_cohort(None).hash() == data.hash()

    def test_on_loading(self, data, others, cohort, tmp_path):
        home, other = (save_dataset(d, tmp_path / d.name) for d in (data, cohort_folder(others)))
        for given in (cohort, other, str(other)):
            loaded = faircal.load(home, cohort=given)
            assert loaded.cohort.fingerprint() == loaded.select("embedding").cohort.fingerprint()
            assert len(loaded.cohort) == 320
        made = Dataset(
            embeddings=data.embeddings.vectors,
            pairs={"left": data.pairs.left, "right": data.pairs.right, "genuine": data.genuine},
            cohort=cohort,
        )
        assert len(made.cohort) == 320

    def test_scaled_as_the_data(self, data, others, cohort):
        raw = Dataset(
            embeddings=data.embeddings.vectors,
            pairs={"left": data.pairs.left, "right": data.pairs.right, "genuine": data.genuine},
            normalize=False,
            cohort=cohort,
        )
        seen = raw.cohort.seen("embedding")
        np.testing.assert_array_equal(seen.vectors, others.embeddings.vectors)

    def test_another_dimension(self, data, cohort):
        vectors = data.embeddings.vectors[:, :16]
        with pytest.raises(DataError, match=r"expected 16-d embeddings, .* found 32; use the same"):
            Dataset(embeddings=vectors, pairs=pairs_of(data), cohort=cohort)

    def test_other_networks(self, data, cohort):
        both = dict.fromkeys(["a", "b"], data.embeddings.vectors)
        with pytest.raises(DataError, match=r"expected embeddings of a, b, .* found embedding"):
            Dataset(embeddings=both, pairs=pairs_of(data), cohort=cohort)

    def test_scores_only(self, data, cohort):
        pairs = {**pairs_of(data), "score": data.scores}
        table = Dataset(embeddings=None, attributes={"x": np.arange(320)}, pairs=pairs)
        with pytest.raises(DataError, match="no embeddings that a cohort could go with"):
            table.with_cohort(cohort)


def pairs_of(data):
    return {"left": data.pairs.left, "right": data.pairs.right, "genuine": data.genuine}


def cohort_folder(data):
    return Dataset.assemble("other people", data.images, data.pairs, data.features)


class TestOfNoUse:
    def test_one_group(self, others):
        rows = np.flatnonzero(others.image_groups().codes == 0)
        with pytest.raises(DataError, match=r"expected two or more groups, found .* alone"):
            cohort_of(others, rows)

    def test_one_person_a_group(self, others):
        _, rows = np.unique(others.image_groups().codes, return_index=True)
        with pytest.raises(DataError, match="expected two or more people in a group, found one"):
            cohort_of(others, rows)

    @pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
    def test_vectors(self, others, value):
        vectors = others.embeddings.vectors.copy()
        vectors[[4, 6]] = value
        with pytest.raises(DataError, match=r"row 5: NaN, infinite or zero vector \(2 such"):
            Cohort(
                embeddings=vectors,
                identity=others.images.identity,
                groups=others.image_groups(),
            )

    def test_nobody_known(self, others):
        with pytest.raises(DataError, match="nobody in the cohort is identified"):
            Cohort(
                embeddings=others.embeddings.vectors,
                identity=[None] * 320,
                groups=others.image_groups(),
            )

    def test_lengths(self, others):
        with pytest.raises(DataError, match="for each of 320 images, found 320 and 3"):
            Cohort(
                embeddings=others.embeddings.vectors,
                identity=others.images.identity,
                groups=["F", "M", "F"],
            )


def test_unknown_people_are_left_out(others):
    identity = [None if row < 7 else str(row // 4) for row in range(320)]
    made = Cohort(
        embeddings=others.embeddings.vectors, identity=identity, groups=others.image_groups()
    )
    assert len(made) == 313
    assert made.notes == ("cohort: 7 images of unknown people are left out",)
    assert len(np.unique(made.seen("embedding").person)) == len(made.identity.names)
