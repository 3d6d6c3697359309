"""What a method is shown of a dataset, on a few pairs written down by hand."""

from __future__ import annotations

import numpy as np
import pytest

import faircal
from faircal import DataError, MissingExtraError
from faircal.data import Groups
from faircal.methods import Method, Needs, Output
from faircal.methods.inputs import Space, declared

#: Images 1 and 3 occur in no pair; image 5 is of nobody knows whom.
VECTORS = np.array([[3, 4], [9, 9], [0, 2], [7, 7], [1, 0], [0, -5]], dtype=np.float32)
LEFT, RIGHT = [4, 0, 5], [2, 2, 4]
PEOPLE = ["cleo", "x", "ann", "y", "ann", None]
GROUPS = ["A", "A", "B", "A", "B", None]


def dataset(**more):
    return faircal.Dataset(
        embeddings=VECTORS,
        pairs={"left": LEFT, "right": RIGHT, "genuine": [1, 0, 0], "fold": [1, 2, 2]},
        attributes={"identity": PEOPLE, "ethnicity": GROUPS},
        **more,
    )


def method(**needs):
    """Return a method that keeps what it is shown."""

    class Sees(Method):
        name, title = "sees", "Sees"

        def __init__(self):
            pass

        def _fit(self, inputs):
            self.inputs_ = inputs

        def _apply(self, inputs):
            self.inputs_ = inputs
            return Output(inputs.score, inputs.score)

        def _get_state(self):
            return {}

        def _set_state(self, state):
            pass

    Sees.needs = Needs(**needs)
    return Sees()


def shown(data=None, **needs):
    return method(**needs).fit(dataset() if data is None else data).inputs_


class TestImages:
    def test_those_that_occur_ascending(self):
        assert shown(embeddings=True).images.tolist() == [0, 2, 4, 5]

    def test_positions_are_places_among_them(self):
        inputs = shown(embeddings=True)
        left, right = inputs.positions()
        assert left.tolist() == [2, 0, 3]
        assert right.tolist() == [1, 1, 2]
        assert inputs.images[left].tolist() == LEFT
        assert inputs.images[right].tolist() == RIGHT

    def test_identities_are_codes_for_each_of_them(self):
        inputs = shown(embeddings=True, identities=True)
        cleo, ann, also_ann, nobody = inputs.identity.tolist()
        assert ann == also_ann != cleo
        assert min(ann, cleo) >= 0
        assert nobody == -1

    def test_groups_of_images_as_pairs_tell_them(self):
        inputs = shown(embeddings=True, groups_to_fit=True)
        groups = inputs.groups
        assert groups.names == ("A", "B")
        assert inputs.of_images(groups).tolist() == [0, 1, 1, -1]

    def test_groups_of_images_of_other_codes(self):
        inputs = shown(embeddings=True)
        left, right = np.array([7, 5, 9], np.int32), np.array([6, 6, 7], np.int32)
        groups = Groups(tuple("abcdefghij"), left, right)
        assert inputs.of_images(groups).tolist() == [5, 6, 7, 9]


class TestVectors:
    def test_of_unit_length(self):
        found = shown(embeddings=True).vectors()
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, [[0.6, 0.8], [0, 1], [1, 0], [0, -1]], rtol=1e-6)

    def test_as_stored(self):
        inputs = shown(dataset(normalize=False), embeddings=True)
        np.testing.assert_array_equal(inputs.vectors(), VECTORS[[0, 2, 4, 5]])

    def test_of_the_space_that_was_fitted_on(self):
        inputs = shown(embeddings=True)
        space = Space.of(inputs.embeddings)
        assert space == Space(dimension=2, normalize=True)
        np.testing.assert_array_equal(inputs.vectors(space), inputs.vectors())

    def test_of_another_dimension(self):
        with pytest.raises(DataError, match="expected 3-d embeddings, as in fitting, found 2; use"):
            shown(embeddings=True).vectors(Space(3, True))

    def test_scaled_or_not(self):
        with pytest.raises(DataError, match=r"fitted with normalize=False, the data .*=True; load"):
            shown(embeddings=True).vectors(Space(2, False))


class TestDeclared:
    @pytest.mark.parametrize("what", ["embeddings", "groups", "identities"])
    def test_what_is_not_declared_is_not_shown(self, what):
        everything = {"embeddings": True, "groups_to_fit": True, "identities": True}
        flag = "groups_to_fit" if what == "groups" else what
        inputs = shown(**{**everything, flag: False})
        given = {
            "embeddings": inputs.embeddings,
            "groups": inputs.groups,
            "identities": inputs.identity,
        }
        with pytest.raises(DataError, match=f"uses {what} without a word in its .* 'needs'"):
            declared(given.pop(what), what)
        if what != "embeddings":
            assert [declared(other, name) is other for name, other in given.items()] == [True, True]

    def test_neither_labels_nor_identities_to_apply(self):
        fitted = method(embeddings=True, identities=True, groups_to_fit=True).fit(dataset())
        assert fitted.inputs_.genuine.tolist() == [True, False, False]
        fitted.apply(dataset())
        assert fitted.inputs_.genuine.tolist() == []
        assert fitted.inputs_.identity is None
        assert fitted.inputs_.groups is None


class TestNeeds:
    def test_an_extra_that_is_not_installed(self):
        needs = Needs(extra="no_such_package")
        said = "no_such_package, which is not installed: pip install 'faircal[no_such_package]'"
        assert needs.uninstalled() == said
        reason = method(extra=needs.extra).unusable_reason(dataset(), "ethnicity")
        assert reason == f"it needs {said}"
        with pytest.raises(
            MissingExtraError, match=r"^method sees needs no_such_package, which"
        ) as e:
            needs.check_installed("sees")
        assert "\n" not in str(e.value)

    @pytest.mark.parametrize("extra", [None, "numpy"])
    def test_nothing_lacks(self, extra):
        needs = Needs(extra=extra)
        assert needs.uninstalled() is None
        assert method(extra=extra).unusable_reason(dataset(), None) is None
        needs.check_installed("sees")

    def test_several_attributes(self):
        several = method(groups_to_fit=True, several_attributes=True)
        assert several.unusable_reason(dataset(), "a+b") is None
        assert several.unusable_reason(dataset(), "a").endswith("and there is one: a")

    def test_identities_of_a_table_that_knows_no_images(self, tmp_path):
        path = tmp_path / "scores.csv"
        lines = ("genuine,score,left_identity,right_identity", "1,0.9,a,a", "0,0.1,a,b")
        path.write_text("\n".join(lines))
        data = faircal.load(path)
        assert data.images.identity is not None
        assert "who is in each image" in method(identities=True).unusable_reason(data, None)
        assert method(identities=True).unusable_reason(data, None, fitting=False) is None

    def test_a_fit_says_so_before_anything_else(self):
        with pytest.raises(MissingExtraError, match="needs no_such_package"):
            method(extra="no_such_package", embeddings=True).fit(dataset())
