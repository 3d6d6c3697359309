"""What is worked out of each image: once, for those that are asked about, for as long as needed."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest

from faircal import DataError, Dataset
from faircal.methods import Method, Needs
from faircal.methods import inputs as inputs_module
from faircal.methods.inputs import ImageValues, Space

VECTORS = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)


class Sees(Method):
    """A method that keeps what it is shown."""

    name = title = "sees"
    needs = Needs(embeddings=True)

    def _fit(self, inputs):
        self.inputs_ = inputs

    _apply = _get_state = _set_state = None


def inputs(*pairs, vectors=VECTORS, normalize=False):
    """Return what methods are shown of pairs of images, the first one of them genuine."""
    left, right = zip(*pairs, strict=True)
    genuine = [i == 0 for i in range(len(pairs))]
    data = Dataset(
        embeddings=vectors,
        pairs={"left": left, "right": right, "genuine": genuine},
        normalize=normalize,
    )
    return Sees().fit(data).inputs_


def again(shown, *images):
    """Return the same with other images of the same embeddings."""
    return replace(shown, images=np.array(images))


def of(known, shown):
    """Return the values of the images that are shown."""
    return known.at(shown.embeddings, shown.images)


class Work:
    """Doubles vectors, or sums them up, and remembers how many it was given at a time."""

    def __init__(self, single=False):
        self.single, self.given = single, []

    def __call__(self, vectors, engine):
        self.given.append(len(vectors))
        return vectors.sum(axis=1) if self.single else 2.0 * vectors


@pytest.fixture
def work():
    return Work()


@pytest.fixture
def known(work):
    return ImageValues(Space(3, False), work, np.float64, 3)


def test_values_by_row_of_the_embeddings(known):
    found = of(known, inputs((7, 2), (2, 4)))
    assert found.shape == (9, 3)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found[[2, 4, 7]], 2.0 * VECTORS[[2, 4, 7]])


def test_one_number_for_each_image():
    found = of(ImageValues(Space(3, False), Work(single=True), np.float32), inputs((7, 2), (2, 4)))
    assert found.shape == (9,)
    np.testing.assert_array_equal(found[[2, 4, 7]], VECTORS[[2, 4, 7]].sum(axis=1))


def test_each_image_once(known, work):
    shown = inputs((7, 2), (2, 4))
    one = of(known, shown)
    assert of(known, shown) is one
    of(known, again(shown, 2, 5, 7))
    assert work.given == [3, 1]
    np.testing.assert_array_equal(of(known, shown)[[2, 4, 5, 7]], 2.0 * VECTORS[[2, 4, 5, 7]])


def test_vectors_are_of_unit_length_where_they_are_used_so():
    known = ImageValues(Space(3, True), Work(), np.float64, 3)
    found = of(known, inputs((0, 1), (2, 3), normalize=True))
    np.testing.assert_allclose(np.linalg.norm(found[:4], axis=1), 2.0, rtol=1e-6)


def test_other_embeddings_are_looked_at_anew(known, work):
    of(known, inputs((0, 1), (2, 3)))
    found = of(known, inputs((0, 1), (2, 3), vectors=VECTORS + 1))
    assert work.given == [4, 4]
    np.testing.assert_array_equal(found[:4], 2.0 * (VECTORS[:4] + 1))


@pytest.mark.usefixtures("any_labels")
def test_a_few_images_at_a_time(known, work, monkeypatch):
    monkeypatch.setattr(inputs_module, "_IMAGES", 2)
    found = of(known, inputs((0, 1), (2, 3), (4, 4)))
    assert work.given == [2, 2, 1]
    np.testing.assert_array_equal(found[:5], 2.0 * VECTORS[:5])


def test_vectors_are_not_kept_alive(known):
    shown = inputs((0, 1), (2, 3))
    there = weakref.ref(shown.embeddings)
    of(known, shown)
    del shown
    gc.collect()
    assert there() is None


@pytest.mark.parametrize(
    ("space", "match"),
    [(Space(4, False), "expected 4-d embeddings"), (Space(3, True), "normalize=True")],
)
def test_embeddings_of_another_space(work, space, match):
    known = ImageValues(space, work, np.float64, 3)
    with pytest.raises(DataError, match=match):
        of(known, inputs((0, 1), (2, 3)))
    assert work.given == []


def test_work_that_fails_is_done_again(work):
    def fails_once(vectors, engine):
        if not work.given:
            work(vectors, engine)
            raise RuntimeError("no memory")
        return work(vectors, engine)

    known, shown = ImageValues(Space(3, False), fails_once, np.float64, 3), inputs((0, 1), (2, 3))
    with pytest.raises(RuntimeError, match="no memory"):
        of(known, shown)
    np.testing.assert_array_equal(of(known, shown)[:4], 2.0 * VECTORS[:4])


def test_of_two_embeddings_at_a_time_none_is_forgotten(known, work):
    one, other = inputs((0, 1), (2, 3)), inputs((0, 1), (2, 3), vectors=VECTORS + 1)
    first = of(known, one)
    of(known, other)
    assert of(known, one) is first
    assert work.given == [4, 4]


def test_what_is_told_is_not_worked_out(known, work):
    shown = inputs((7, 2), (2, 4))
    known.remember(shown.embeddings, np.array([2, 7]), np.ones((2, 3)))
    found = of(known, shown)
    assert work.given == [1]
    np.testing.assert_array_equal(found[[2, 7]], 1.0)
    np.testing.assert_array_equal(found[4], 2.0 * VECTORS[4])
