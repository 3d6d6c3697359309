"""RFW: ``test/txts/{E}/{E}_pairs.txt`` in blocks of genuine and imposter lines, and pictures."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircal._base.errors import DataError
from faircal.data.importers import read_rfw
from faircal.data.importers.pair_lists import ETHNICITIES

SPLITS, EACH = 10, 3


def person(ethnicity, split, which):
    """An id such as Freebase gives: each person is in one split of one ethnicity."""
    return f"m.0{ETHNICITIES.index(ethnicity)}{split:x}{'xnkjq'[which]}"


def lines_of(ethnicity, each=EACH):
    """Ten blocks of `each` genuine, then `each` imposter lines, tab separated."""
    lines = []
    for split in range(SPLITS):
        people = [person(ethnicity, split, which) for which in range(3)]
        lines += [f"{people[k % 3]}\t{k // 3 + 1}\t{k // 3 + 2}" for k in range(each)]
        lines += [
            f"{people[k % 3]}\t{k // 3 + 1}\t{people[(k + 1) % 3]}\t{k // 3 + 2}"
            for k in range(each)
        ]
    return lines


def picture(ethnicity, who, number):
    return f"{ethnicity}/{who}/{who}_{number:04d}.jpg"


@pytest.fixture
def rfw(write, tmp_path):
    """RFW with 10 blocks of 3 + 3 lines and all pictures."""
    for ethnicity in ETHNICITIES:
        text = "\n".join(lines_of(ethnicity)) + "\n"
        write(f"RFW/test/txts/{ethnicity}/{ethnicity}_pairs.txt", text)
        for split in range(SPLITS):
            for which in range(3):
                for number in (1, 2):
                    name = picture(ethnicity, person(ethnicity, split, which), number)
                    write(f"RFW/test/data/{name}", "jpg")
    return tmp_path / "RFW"


@pytest.fixture
def african(write, tmp_path):
    """Return a function that writes a folder with one pair list, of Africans."""

    def write_list(text):
        write("one/txts/African/African_pairs.txt", text)
        return tmp_path / "one"

    return write_list


def test_as_shipped(rfw, save):
    found = read_rfw(rfw)
    made = save(found)
    assert made.files == ["dataset.json", "images.csv", "pairs.csv"]
    assert found.notes == []
    assert made.header("images") == ["image_id", "identity", "ethnicity"]
    assert made.header("pairs") == ["left", "right", "genuine", "fold"]
    assert len(made.rows("images")) == 4 * SPLITS * 3 * 2
    first = ("African/m.000x/m.000x_0001.jpg", "African/m.000x", "African")
    assert made.rows("images")[0] == first
    pairs = made.rows("pairs")
    assert pairs[:6] == [
        ("African/m.000x/m.000x_0001.jpg", "African/m.000x/m.000x_0002.jpg", "true", "1"),
        ("African/m.000n/m.000n_0001.jpg", "African/m.000n/m.000n_0002.jpg", "true", "1"),
        ("African/m.000k/m.000k_0001.jpg", "African/m.000k/m.000k_0002.jpg", "true", "1"),
        ("African/m.000x/m.000x_0001.jpg", "African/m.000n/m.000n_0002.jpg", "false", "1"),
        ("African/m.000n/m.000n_0001.jpg", "African/m.000k/m.000k_0002.jpg", "false", "1"),
        ("African/m.000k/m.000k_0001.jpg", "African/m.000x/m.000x_0002.jpg", "false", "1"),
    ]
    # Two consecutive splits of 6 pairs, of each of four ethnicities, make a fold.
    assert Counter(row[3] for row in pairs) == dict.fromkeys("12345", 2 * 6 * 4)
    assert [row[3] for row in pairs[:60:6]] == list("1122334455")
    assert found.counts == {"images": 240, "pairs": 240, "genuine": 120}


def test_what_dataset_json_says(rfw, save):
    about = save(read_rfw(rfw)).about
    assert about == {
        "name": "RFW",
        "imported": {
            "layout": "rfw",
            "from": str(rfw),
            "folds": "consecutive splits joined in twos",
            "images": 240,
            "pairs": 240,
            "genuine": 120,
        },
        "notes": [],
        "pictures": "test/data",
        "attribute": "ethnicity",
    }


def test_loads(rfw, save):
    data = save(read_rfw(rfw)).load()
    assert data.name == "RFW"
    assert data.default_attribute == "ethnicity"
    assert data.groups().names == ETHNICITIES
    assert list(data.fold_names) == [1, 2, 3, 4, 5]
    assert not data.drawn_folds
    assert int(data.genuine.sum()) == 120
    assert not data.groups().cross.any()


def test_native_folds(rfw, save):
    made = save(read_rfw(rfw, folds=10))
    folds = [row[3] for row in made.rows("pairs")]
    assert folds[:60] == [str(split) for split in range(1, 11) for _ in range(6)]
    assert made.about["imported"]["folds"] == "ten as shipped"


def test_folder_with_data_and_txts(rfw, save):
    """The folder inside, ``test``, does as well."""
    made = save(read_rfw(rfw / "test"))
    assert made.about["pictures"] == "data"
    assert made.rows("pairs") == save(read_rfw(rfw), "again").rows("pairs")


def test_real_size_without_pictures(write, tmp_path, save):
    """6,000 lines an ethnicity in blocks of 300 + 300, 24,000 in all."""
    for ethnicity in ETHNICITIES:
        lines = lines_of(ethnicity, 300)
        assert len(lines) == 6000
        write(f"RFW/test/txts/{ethnicity}/{ethnicity}_pairs.txt", "\n".join(lines))
    found = read_rfw(tmp_path / "RFW", pictures=False)
    made = save(found)
    assert found.notes == []
    assert found.counts["pairs"] == 24_000
    counts = Counter((row[2], row[3]) for row in made.rows("pairs"))
    assert counts == {(kind, fold): 2400 for kind in ("true", "false") for fold in "12345"}
    assert "pictures" not in made.about


def test_numbers_are_padded_to_four_digits(african, save):
    """The paper's code wrote "_000" before the number, which is right below ten only."""
    folder = african("m.0xnkj\t9\t10\nm.0xnkj\t999\tm.0y\t1000\nm.0y\t12345\t0007\n")
    assert [row[:2] for row in save(read_rfw(folder, pictures=False)).rows("pairs")] == [
        ("African/m.0xnkj/m.0xnkj_0009.jpg", "African/m.0xnkj/m.0xnkj_0010.jpg"),
        ("African/m.0xnkj/m.0xnkj_0999.jpg", "African/m.0y/m.0y_1000.jpg"),
        ("African/m.0y/m.0y_12345.jpg", "African/m.0y/m.0y_0007.jpg"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\n\n  \n"),
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("\t", "  "),
    ],
    ids=["Windows line ends", "BOM", "blank lines", "no last line end", "blanks for tabs"],
)
def test_other_ways_to_write_it(african, change):
    plain = "m.0a\t1\t2\nm.0a\t1\tm.0b\t3\nm.0b\t1\t2\nm.0a\t2\tm.0b\t1\n"
    expected = read_rfw(african(plain), pictures=False)
    found = read_rfw(african(change(plain)), pictures=False)
    assert found.images == expected.images
    assert list(found.pairs) == list(expected.pairs)


# ------------------------------------------------------------------ people and splits


def test_person_of_two_ethnicities_is_two_people(write, tmp_path, save):
    for ethnicity in ("Asian", "Indian"):
        write(f"d/txts/{ethnicity}/{ethnicity}_pairs.txt", "m.0s\t1\t2\nm.0s\t1\tm.0t\t1\n")
    found = read_rfw(tmp_path / "d", pictures=False)
    identities = {row[1] for row in save(found).rows("images")}
    assert identities == {"Asian/m.0s", "Asian/m.0t", "Indian/m.0s", "Indian/m.0t"}
    assert "2 person ids occur in two ethnicities (m.0s, m.0t); each counts as two people" in (
        found.notes
    )


def test_ethnicity_that_is_not_there(rfw, save):
    (rfw / "test/txts/Indian/Indian_pairs.txt").unlink()
    found = read_rfw(rfw)
    assert found.notes == ["Indian_pairs.txt is not there: no pairs of that ethnicity"]
    assert save(found).load().groups().names == ETHNICITIES[:3]


@pytest.mark.parametrize("blocks", [1, 9])
def test_another_number_of_splits_is_noted(african, blocks):
    block = "m.0a\t1\t2\nm.0a\t1\tm.0b\t3\n"
    found = read_rfw(african(block * blocks), pictures=False)
    assert f"African_pairs.txt: expected 10 splits, found {blocks}" in found.notes


# --------------------------------------------------------------------------- pictures


def test_missing_picture(rfw, save):
    gone = picture("Asian", person("Asian", 0, 0), 1)
    (rfw / "test/data" / gone).unlink()
    found = read_rfw(rfw)
    made = save(found)
    assert made.rows("dropped") == [(gone, "picture not found")]
    assert all(gone not in row for row in made.rows("pairs"))
    # It is the left side of a genuine and an imposter pair.
    assert found.counts == {"images": 239, "pairs": 238, "genuine": 119}
    assert made.about["notes"] == [
        f"1 of 240 images dropped: picture not found ({gone}); with them 2 of 240 pairs"
    ]


def test_long_lists_are_cut(rfw):
    for split in range(5):
        (rfw / "test/data" / picture("Indian", person("Indian", split, 0), 1)).unlink()
    (text,) = read_rfw(rfw).notes
    assert text.startswith("5 of 240 images dropped")
    assert text.count(".jpg") == 3
    assert "…" in text


@pytest.mark.parametrize("ethnicity", ETHNICITIES)
def test_pictures_of_one_ethnicity_missing(rfw, save, ethnicity):
    """Wherever the missing pictures are, those that are there are used."""
    (rfw / "test/data" / ethnicity).rename(rfw / "elsewhere")
    found = read_rfw(rfw)
    save(found)
    assert found.counts["pairs"] == 180
    assert len(found.dropped) == 60


def test_all_pictures_missing(rfw, refused):
    for path in (rfw / "test/data").rglob("*.jpg"):
        path.unlink()
    refused(lambda: read_rfw(rfw), "test/data", "none of the 240 pictures", "--no-pictures")


def test_no_pictures_at_all(rfw, refused, save):
    (rfw / "test/data").rename(rfw / "elsewhere")
    refused(lambda: read_rfw(rfw), str(rfw), "m.000x_0001.jpg", "test/data", "--no-pictures")
    assert len(save(read_rfw(rfw, pictures=False)).rows("pairs")) == 240


def test_no_pair_left(african, write, refused):
    folder = african("m.0a\t1\t2\nm.0a\t1\tm.0b\t1\n")
    write("one/data/African/m.0b/m.0b_0001.jpg")
    refused(lambda: read_rfw(folder), str(folder), "no usable pair is left", "2 of 2 pairs")


# -------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("m.0a\t1", ("line 3", "expected 3 fields", "found 2", "correct or remove")),
        ("m.0a", ("line 3", "found 1", "correct or remove")),
        ("m.0a\t1\tm.0b\t2\t3", ("line 3", "found 5", "correct or remove")),
        ("m.0a\tone\t2", ("line 3", "number of a picture", "'one'", "correct or remove")),
        ("m.0a\t1\tm.0b\tx", ("line 3", "'x'")),
        ("m.0a\t-1\t2", ("line 3", "'-1'")),
        ("m.0a\t1.0\t2", ("line 3", "'1.0'")),
        ("m.0a\t²\t2", ("line 3", "'²'")),
        ("m.0a\t1_0\t2", ("line 3", "'1_0'")),
        pytest.param(f"m.0a\t{'9' * 5000}\t2", ("line 3",), id="a number of 5000 digits"),
        ("m.0a\t1\tm.0a\t2", ("line 3", "imposter", "m.0a twice", "correct or remove")),
    ],
)
def test_bad_line(african, refused, line, words):
    folder = african(f"m.0a\t1\t2\n\n{line}\nm.0a\t1\tm.0b\t2\n")
    refused(lambda: read_rfw(folder, pictures=False), "African_pairs.txt", *words)


@pytest.mark.parametrize("content", ["", "\n\r\n  \t\n", "\ufeff"])
def test_empty_list(african, refused, content):
    folder = african(content)
    refused(lambda: read_rfw(folder, pictures=False), "African_pairs.txt", "empty", "copy it again")


def test_list_that_is_no_text(african, refused):
    folder = african(b"m.0a\t\xff\xfe\t2\n")
    refused(lambda: read_rfw(folder, pictures=False), "African_pairs.txt", "as text", "copy")


def test_list_that_is_a_folder(tmp_path, refused):
    (tmp_path / "d/txts/African/African_pairs.txt").mkdir(parents=True)
    refused(lambda: read_rfw(tmp_path / "d"), "African_pairs.txt", "cannot be read", "copy")


def test_folder_that_is_not_there(tmp_path, refused):
    refused(lambda: read_rfw(tmp_path / "none"), str(tmp_path / "none"), "no such", "check")


def test_another_folder(tmp_path, write, refused):
    write("other/readme.txt", "hello")
    refused(lambda: read_rfw(tmp_path / "other"), "test/txts or txts", "as its owners ship it")
    refused(lambda: read_rfw(tmp_path / "other/readme.txt"), "test/txts", "owners")
    (tmp_path / "other/txts").mkdir()
    refused(lambda: read_rfw(tmp_path / "other"), "African/African_pairs.txt", "owners")


# --------------------------------------------------------------------------- property

names = st.text("abcxyz019_", min_size=1, max_size=4).map("m.0".__add__)
numbers = st.integers(1, 12_000)
genuine = st.tuples(names, numbers, numbers).map(lambda p: ((p[0], p[1]), (p[0], p[2])))
imposter = st.tuples(st.tuples(names, numbers), st.tuples(names, numbers)).filter(
    lambda p: p[0][0] != p[1][0]
)
blocks = st.lists(
    st.tuples(
        st.lists(genuine, min_size=1, max_size=3), st.lists(imposter, min_size=1, max_size=3)
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(ETHNICITIES), blocks, min_size=1))
def test_any_pairs_come_back(tmp_path_factory, world):
    folder = tmp_path_factory.mktemp("rfw")
    expected = []
    for ethnicity in ETHNICITIES:
        lines = []
        for split, (same, other) in enumerate(world.get(ethnicity, ())):
            for left, right in [*same, *other]:
                alike = left[0] == right[0]
                lines.append("\t".join(map(str, (*left, *right[alike:]))))
                sides = (picture(ethnicity, *left), picture(ethnicity, *right))
                expected.append((*sides, alike, split // 2 + 1))
        if lines:
            path = folder / f"txts/{ethnicity}/{ethnicity}_pairs.txt"
            path.parent.mkdir(parents=True)
            path.write_text("\n".join(lines))
    found = read_rfw(folder, pictures=False)
    pairs = pa.concat_tables(found.pairs).to_pylist()
    assert [tuple(pair.values()) for pair in pairs] == expected
    ids = found.images["image_id"].to_pylist()
    assert len(ids) == len(set(ids))
    assert set(ids) == {image for pair in expected for image in pair[:2]}
    for image in found.images.to_pylist():
        assert image["image_id"].startswith(image["identity"] + "/")
        assert image["identity"].startswith(image["ethnicity"] + "/m.0")


@settings(max_examples=40)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("rfw") / "txts/African/African_pairs.txt"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8", newline="")
    try:
        found = read_rfw(path.parents[2], pictures=False)
    except DataError as error:
        assert "African_pairs.txt" in str(error)
    else:
        assert len(found.images)


def ordered(n_splits, size):
    """Lines of a list in order: `size` genuine and `size` imposter pairs a split."""
    split = ["m.0a\t1\t2"] * size + ["m.0a\t1\tm.0b\t1"] * size
    return split * n_splits


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda lines: lines.insert(3, lines.pop(150)), ["found 11", "copy the file again"]),
        (lambda lines: lines.reverse(), ["found 11", "copy the file again"]),
        (lambda lines: lines.__delitem__(slice(200, 300)), ["found 9"]),
    ],
)
def test_a_list_in_disorder(write, tmp_path, spoil, words):
    """Splits are found by order: where that is lost, folds would be wrong."""
    lines = ordered(10, 100)
    spoil(lines)
    write("d/txts/African/African_pairs.txt", "\n".join(lines))
    with pytest.raises(DataError) as caught:
        read_rfw(tmp_path / "d", pictures=False)
    for word in ("African_pairs.txt", "expected 10 splits", *words):
        assert word in str(caught.value)


def test_an_excerpt_may_have_fewer_splits(write, tmp_path):
    write("d/txts/African/African_pairs.txt", "\n".join(ordered(3, 2) + ordered(1, 5)))
    found = read_rfw(tmp_path / "d", pictures=False)
    assert "African_pairs.txt: expected 10 splits, found 4" in found.notes
