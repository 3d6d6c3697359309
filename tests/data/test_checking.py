"""Each kind of fault, planted once in a sound dataset."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from faircal.data import Dataset, Embeddings, Feature, find_faults
from faircal.data.checking import describe_groups
from faircal.data.columns import Column
from faircal.data.simulation import simulate


@pytest.fixture(scope="module")
def sound():
    """Large enough in every group: 8 groups of 30 people."""
    return simulate("small", people=240, images=1440, pairs=9600, dimension=16)


def rebuilt(data, *, pairs=None, images=None, vectors=None):
    """Return `data` with some parts changed."""
    features = {
        name: Feature(Embeddings(vectors)) if vectors is not None else feature
        for name, feature in data.features.items()
    }
    return Dataset.assemble(
        data.name,
        dataclasses.replace(data.images, **images or {}),
        dataclasses.replace(data.pairs, **pairs or {}),
        features,
        data.score_range,
    )


def only(data, **options):
    """Return the one fault of `data`; it reads as one sentence."""
    (fault,) = find_faults(data, **options)
    seen = f": {fault.count} (for example {fault.example})" if fault.example else ""
    assert str(fault) == f"{fault.what}{seen}; {fault.remedy}"
    return fault


def changed(array, rows, values):
    new = np.array(array)
    new[rows] = values
    return new


def with_pair(data, left, right, genuine):
    """Return `data` with one more pair, in the fold of its left image's first pair."""
    pairs = data.pairs
    fold = pairs.fold[np.flatnonzero((pairs.left == left) | (pairs.right == left))[0]]
    return rebuilt(
        data,
        pairs={
            "left": np.append(pairs.left, left),
            "right": np.append(pairs.right, right),
            "genuine": np.append(pairs.genuine, genuine),
            "fold": np.append(pairs.fold, fold),
        },
    )


def test_a_sound_dataset_has_none(sound):
    assert find_faults(sound) == []


def test_image_with_itself(sound):
    image = int(sound.pairs.left[0])
    fault = only(with_pair(sound, image, image, True))
    assert (fault.severity, fault.what, fault.count) == (
        "warning",
        "pairs of an image with itself",
        1,
    )
    assert fault.example == f"images {image} and {image}"


def test_duplicate(sound):
    left, right = int(sound.pairs.left[4]), int(sound.pairs.right[4])
    fault = only(with_pair(sound, left, right, sound.pairs.genuine[4]))
    assert (fault.severity, fault.what, fault.count) == ("warning", "duplicate pairs", 1)
    assert fault.example == f"row 9601: {left} – {right}"


def test_mirrored(sound):
    left, right = int(sound.pairs.left[4]), int(sound.pairs.right[4])
    fault = only(with_pair(sound, right, left, sound.pairs.genuine[4]))
    assert (fault.severity, fault.count) == ("warning", 1)
    assert fault.what == "mirrored pairs (left and right swapped)"
    assert fault.example == f"row 9601: {right} – {left}"


def test_labelled_both_ways(sound):
    """Of people whom nobody knows: else identities say which label is right."""
    left, right = int(sound.pairs.left[4]), int(sound.pairs.right[4])
    data = with_pair(sound, right, left, not sound.pairs.genuine[4])
    data = rebuilt(data, images={"identity": None})
    found = {fault.what: fault for fault in find_faults(data)}
    both = found["pairs labelled both genuine and imposter"]
    assert (both.count, both.severity) == (1, "warning")
    assert {f"{left}", f"{right}"} == set(both.example.removeprefix("images ").split(" and "))
    assert found["mirrored pairs (left and right swapped)"].count == 1


@pytest.mark.parametrize(
    ("was", "what"),
    [
        (True, "imposter pairs of one identity"),
        (False, "genuine pairs of two different identities"),
    ],
)
def test_labels_that_contradict_identities(sound, was, what):
    rows = np.flatnonzero(sound.pairs.genuine == was)[[3, 8]]
    data = rebuilt(sound, pairs={"genuine": changed(sound.pairs.genuine, rows, not was)})
    fault = only(data)
    assert (fault.severity, fault.what, fault.count) == ("warning", what, 2)
    one, other = (side[rows[0]] for side in (sound.pairs.left, sound.pairs.right))
    assert fault.example == f"images {one} and {other}"


def test_unknown_identity_contradicts_nothing(sound):
    row = np.flatnonzero(sound.pairs.genuine)[0]
    codes = changed(sound.images.identity.codes, sound.pairs.left[row], -1)
    data = rebuilt(sound, images={"identity": Column(codes, sound.images.identity.names)})
    assert find_faults(data) == []


def test_identities_that_cross_folds(sound):
    row = int(np.flatnonzero(sound.pairs.genuine & (sound.pairs.fold == 1))[0])
    data = rebuilt(sound, pairs={"fold": changed(sound.pairs.fold, row, 4)})
    fault = only(data)
    assert (fault.severity, fault.what, fault.count) == (
        "warning",
        "identities that cross folds",
        1,
    )
    who = sound.images.identity.codes[sound.pairs.left[row]]
    assert fault.example == f"identity {sound.images.identity.names[who]} is in folds 1, 4"


def test_drawn_folds_are_a_note(sound):
    data = rebuilt(sound, pairs={"fold": None})
    fault = only(data)
    assert fault.severity == "note"
    assert fault.what.startswith("folds drawn: 5")


def test_one_fold(sound):
    data = rebuilt(sound, pairs={"fold": np.ones(len(sound), dtype=int)})
    fault = only(data)
    assert (fault.severity, fault.what) == ("warning", "pairs in one fold only")
    assert (fault.count, fault.example) == (9600, "fold 1")


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_bad_vectors_in_use(sound, bad):
    rows = np.unique(sound.pairs.left)[[2, 5, 7]]
    vectors = changed(sound.embeddings.vectors, rows, bad)
    fault = only(rebuilt(sound, vectors=vectors))
    assert fault.severity == "error"
    assert fault.what == "NaN, infinite or zero vectors in embeddings 'embedding'"
    assert (fault.count, fault.example) == (3, f"image {rows[0]}")


def test_bad_vectors_that_no_pair_uses_are_a_note(sound):
    image = int(sound.pairs.left[0])
    rows = (sound.pairs.left != image) & (sound.pairs.right != image)
    vectors = changed(sound.embeddings.vectors, image, np.nan)
    data = rebuilt(sound.subset(rows), vectors=vectors)
    fault = only(data)
    assert (fault.severity, fault.count) == ("note", 1)
    assert fault.example == f"image {image}"


def test_equal_vectors(sound):
    vectors = changed(sound.embeddings.vectors, 7, sound.embeddings.vectors[3])
    fault = only(rebuilt(sound, vectors=vectors))
    assert (fault.severity, fault.count) == ("warning", 1)
    assert fault.what == "images with the same vector as another in embeddings 'embedding'"
    assert fault.example == "images 3 and 7"


@pytest.mark.parametrize("genuine", [True, False])
def test_one_class_only(sound, genuine):
    people = Column(np.full(1440, -1, dtype=np.int32), sound.images.identity.names)
    data = rebuilt(
        sound,
        pairs={"genuine": np.full(len(sound), genuine)},
        images={"identity": people, "attributes": {}, "crossed": ()},
    )
    faults = {fault.what: fault for fault in find_faults(data)}
    fault = faults["pairs of one class only"]
    # Genuine pairs alone will do for a method that takes its strangers from a cohort.
    assert fault.severity == ("warning" if genuine else "error")
    assert fault.example == ("all genuine" if genuine else "all imposter")


def test_no_labels(sound):
    data = rebuilt(sound, pairs={"genuine": None}, images={"attributes": {}, "crossed": ()})
    found = {fault.what: fault for fault in find_faults(data)}
    assert found["pairs without labels"].severity == "warning"
    assert found["pairs without labels"].count == 9600


def test_no_attribute(sound):
    fault = only(rebuilt(sound, images={"attributes": {}, "crossed": ()}))
    assert (fault.severity, fault.what) == ("note", "no groups")
    assert "there is no attribute column; add one" in fault.remedy


def test_group_too_small(sound):
    """Thirty people of a group, of whom one is moved to another group."""
    gender = sound.images.attributes["gender"]
    person = sound.images.identity.codes == 0
    codes = changed(gender.codes, person, 1 - gender.codes[person][0])
    attributes = dict(sound.images.attributes) | {"gender": Column(codes, gender.names)}
    data = rebuilt(sound, images={"attributes": attributes})
    fault = only(data)
    assert (fault.severity, fault.what) == ("warning", "groups too small to say anything about")
    assert fault.count == 1
    assert fault.example.startswith("'African F' has 29 people, ")
    assert "30 people, 30 genuine and 300 imposter pairs are needed" in fault.remedy
    assert find_faults(data, "gender") == []


def test_spelling(sound):
    gender = sound.images.attributes["gender"]
    column = Column(gender.codes, ("f", "F"))
    data = rebuilt(sound, images={"attributes": {"gender": column}, "crossed": ("gender",)})
    fault = only(data)
    assert (fault.severity, fault.what) == (
        "warning",
        "values of 'gender' that differ in capitals only",
    )
    assert fault.example == "'f' and 'F'"


def test_errors_come_first(sound):
    left, right = int(sound.pairs.left[4]), int(sound.pairs.right[4])
    data = rebuilt(
        with_pair(sound, left, right, sound.pairs.genuine[4]),
        vectors=changed(sound.embeddings.vectors, left, 0),
        pairs={"fold": None},
    )
    severities = [fault.severity for fault in find_faults(data)]
    assert severities == ["error", "warning", "note"]


def test_sizes_of_groups(sound):
    sizes = describe_groups(sound, "gender")
    assert [size.group for size in sizes] == ["F", "M"]
    assert [size.people for size in sizes] == [120, 120]
    groups = sound.groups("gender")
    for code, size in enumerate(sizes):
        inside = groups.pair == code
        assert size.genuine == (inside & sound.genuine).sum()
        assert size.imposter == (inside & ~sound.genuine).sum()


def test_a_table_of_scores_knows_no_images(tmp_path):
    from faircal.data import load

    path = tmp_path / "t.csv"
    path.write_text("genuine,score,g\n" + "1,0.5,a\n" * 40 + "0,0.1,a\n" * 400)
    assert [fault.severity for fault in find_faults(load(path))] == ["note"]
