"""LFW: ``pairs.txt`` (View 2), ``people.txt`` and a folder of pictures a person."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircal._base.errors import DataError
from faircal.data.importers import read_lfw

#: Two folds of two genuine and two imposter pairs; names and numbers as the owners write them.
PAIRS = """2\t2
Abel_Pacheco\t1\t4
Akhmed_Zakayev\t1\t3
Abel_Pacheco\t1\tAkhmed_Zakayev\t2
Akhmed_Zakayev\t3\tAbdel_Madi_Shabneh\t1
Zhu_Rongji\t1\t12
Jean-Claude_Juncker\t1\t2
Zhu_Rongji\t8\tJean-Claude_Juncker\t1
Yuri_Malenchenko\t1\tZhu_Rongji\t2
"""
PEOPLE = """2
3
Abdel_Madi_Shabneh\t1
Abel_Pacheco\t4
Akhmed_Zakayev\t3
3
Jean-Claude_Juncker\t2
Yuri_Malenchenko\t2
Zhu_Rongji\t12
"""
SIZES = {
    line.split("\t")[0]: int(line.split("\t")[1]) for line in PEOPLE.splitlines() if "\t" in line
}


def image(name, number):
    return f"{name}/{name}_{number:04d}.jpg"


@pytest.fixture
def lfw(write, tmp_path):
    """LFW with all its files."""
    write("LFW/pairs.txt", PAIRS)
    write("LFW/people.txt", PEOPLE)
    for name, n in SIZES.items():
        for number in range(1, n + 1):
            write(f"LFW/lfw/{image(name, number)}", "jpg")
    return tmp_path / "LFW"


def test_as_shipped(lfw, save):
    found = read_lfw(lfw)
    made = save(found)
    assert found.notes == []
    assert made.files == ["dataset.json", "images.csv", "pairs.csv"]
    assert made.rows("pairs") == [
        (image("Abel_Pacheco", 1), image("Abel_Pacheco", 4), "true", "1"),
        (image("Akhmed_Zakayev", 1), image("Akhmed_Zakayev", 3), "true", "1"),
        (image("Abel_Pacheco", 1), image("Akhmed_Zakayev", 2), "false", "1"),
        (image("Akhmed_Zakayev", 3), image("Abdel_Madi_Shabneh", 1), "false", "1"),
        (image("Zhu_Rongji", 1), image("Zhu_Rongji", 12), "true", "2"),
        (image("Jean-Claude_Juncker", 1), image("Jean-Claude_Juncker", 2), "true", "2"),
        (image("Zhu_Rongji", 8), image("Jean-Claude_Juncker", 1), "false", "2"),
        (image("Yuri_Malenchenko", 1), image("Zhu_Rongji", 2), "false", "2"),
    ]
    # With people.txt all images are there, each with its person's fold.
    assert made.header("images") == ["image_id", "identity", "fold"]
    assert made.rows("images") == [
        (image(name, number), name, "1" if name[0] == "A" else "2")
        for name, n in SIZES.items()
        for number in range(1, n + 1)
    ]
    assert made.about["name"] == "LFW"
    assert made.about["pictures"] == "lfw"
    assert "attribute" not in made.about


def test_loads(lfw, save):
    data = save(read_lfw(lfw)).load()
    assert data.default_attribute is None
    assert "fold" not in data.images.attributes
    assert list(data.fold_names) == [1, 2]
    assert data.genuine.tolist() == [True, True, False, False] * 2


def test_without_people_txt(lfw, save):
    (lfw / "people.txt").unlink()
    made = save(read_lfw(lfw))
    assert made.header("images") == ["image_id", "identity"]
    used = {image for row in made.rows("pairs") for image in row[:2]}
    assert {row[0] for row in made.rows("images")} == used


@pytest.mark.parametrize("home", ["lfw-deepfunneled", "lfw_funneled", "lfw-funneled", "lfw-a", "."])
def test_other_releases_of_the_pictures(lfw, save, home):
    if home == ".":
        for path in (lfw / "lfw").iterdir():
            path.rename(lfw / path.name)
    else:
        (lfw / "lfw").rename(lfw / home)
    made = save(read_lfw(lfw))
    assert made.about["pictures"] == home
    assert made.about["notes"] == []


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\n\n"),
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("\t", " "),
    ],
    ids=["Windows line ends", "BOM", "blank lines", "no last line end", "blanks for tabs"],
)
def test_other_ways_to_write_it(lfw, write, change):
    expected = read_lfw(lfw)
    write("LFW/pairs.txt", change(PAIRS))
    write("LFW/people.txt", change(PEOPLE))
    found = read_lfw(lfw)
    assert found.images == expected.images
    assert list(found.pairs) == list(expected.pairs)
    assert found.notes == []


def test_owners_sizes(write, tmp_path, save):
    """View 2 has ten folds of 300 + 300 pairs."""
    lines = ["10\t300"]
    for fold in range(10):
        lines += [f"P{fold}_{k}\t1\t2" for k in range(300)]
        lines += [f"P{fold}_{k}\t1\tP{fold}_{(k + 1) % 300}\t2" for k in range(300)]
    write("LFW/pairs.txt", "\n".join(lines))
    found = read_lfw(tmp_path / "LFW", pictures=False)
    made = save(found)
    assert found.counts == {"images": 6000, "pairs": 6000, "genuine": 3000}
    assert [row[3] for row in made.rows("pairs")[::600]] == list(map(str, range(1, 11)))


# --------------------------------------------------------------------------- pictures


def test_missing_picture(lfw, save):
    gone = image("Abel_Pacheco", 1)
    (lfw / "lfw" / gone).unlink()
    made = save(read_lfw(lfw))
    assert made.rows("dropped") == [(gone, "picture not found")]
    assert made.about["notes"] == [
        f"1 of 24 images dropped: picture not found ({gone}); with them 2 of 8 pairs"
    ]
    assert made.about["imported"]["pairs"] == 6


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("people", [True, False])
def test_a_person_whose_folder_is_missing(lfw, save, name, people):
    """Whoever it is, the first in the list, too: the pictures of the others are used."""
    if not people:
        (lfw / "people.txt").unlink()
    (lfw / "lfw" / name).rename(lfw / "elsewhere")
    made = save(read_lfw(lfw))
    assert {row[0].partition("/")[0] for row in made.rows("dropped")} == {name}
    assert made.rows("pairs")


def test_all_pictures_missing(lfw, refused):
    for path in (lfw / "lfw").rglob("*.jpg"):
        path.unlink()
    refused(lambda: read_lfw(lfw), "none of the 24 pictures", "--no-pictures")


def test_no_pictures_at_all(lfw, refused, save):
    (lfw / "lfw").rename(lfw.parent / "elsewhere")
    refused(lambda: read_lfw(lfw), str(lfw), "found no pictures", "--no-pictures")
    made = save(read_lfw(lfw, pictures=False))
    assert len(made.rows("pairs")) == 8
    assert "pictures" not in made.about


# ------------------------------------------------------------------------- attributes


def test_attributes_of_people(lfw, write, save):
    table = write("people.csv", "identity,gender\nAbel_Pacheco,M\nZhu_Rongji,M\n")
    made = save(read_lfw(lfw, attributes=table))
    assert made.header("images") == ["image_id", "identity", "fold", "gender"]
    genders = {row[1]: row[3] for row in made.rows("images")}
    assert genders["Abel_Pacheco"] == genders["Zhu_Rongji"] == "M"
    assert genders["Akhmed_Zakayev"] == ""
    assert made.about["notes"] == [
        "8 of 24 images have no row in people.csv: their attributes are unknown"
    ]
    assert made.load().default_attribute == "gender"


# ------------------------------------------------------------------ bad input: pairs.txt


def replaced(line, text):
    """Return PAIRS with the line of that number put in place."""
    lines = PAIRS.splitlines()
    lines[line - 1] = text
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (replaced(1, "2\t3"), ("expected 12 pairs", "2 folds of 3", "found 8", "copy")),
        (replaced(1, "1\t2"), ("expected 4 pairs", "found 8", "copy")),
        (replaced(1, "8"), ("line 1", "'10 300'", "'8'", "View 2")),
        (replaced(1, "2\t2\t2"), ("line 1", "'10 300'", "View 2")),
        (replaced(1, "two\t2"), ("line 1", "whole number", "'two'")),
        (replaced(1, "2\t0"), ("expected 0 pairs", "copy")),
        ("0\t300", ("pairs.txt",)),
        ("2\t2", ("expected 8 pairs", "found 0")),
        (PAIRS + "Zhu_Rongji\t1\t2\n", ("expected 8 pairs", "found 9")),
        (PAIRS.partition("\n")[2], ("line 1", "'10 300'", "Abel_Pacheco 1 4", "View 2")),
        (replaced(4, "Zhu_Rongji\t1\t2"), ("line 4", "an imposter pair (4", "found 3", "copy")),
        (replaced(3, "A\t1\tB\t2"), ("line 3", "a genuine pair (3", "found 4", "copy")),
        (replaced(5, "A\t1\tA\t2"), ("line 5", "A twice", "correct or remove")),
        (replaced(9, "A\t1"), ("line 9", "found 2", "correct or remove")),
        (replaced(9, "A\tx\tB\t1"), ("line 9", "'x'", "correct or remove")),
        ("", ("empty", "copy")),
    ],
)
@pytest.mark.parametrize("pictures", [True, False])
def test_bad_pairs(lfw, write, refused, text, words, pictures):
    (lfw / "people.txt").unlink()
    write("LFW/pairs.txt", text)
    refused(lambda: read_lfw(lfw, pictures=pictures), "pairs.txt", *words)


def test_no_pairs_txt(lfw, refused):
    (lfw / "pairs.txt").unlink()
    refused(lambda: read_lfw(lfw), str(lfw), "pairs.txt", "owners")
    refused(lambda: read_lfw(lfw / "none"), "no such", "check")


# ----------------------------------------------------------------- bad input: people.txt


def test_person_that_people_txt_does_not_know(lfw, write, save):
    write("LFW/people.txt", PEOPLE.replace("Yuri_Malenchenko", "Somebody_Else"))
    found = read_lfw(lfw, pictures=False)
    assert (image("Yuri_Malenchenko", 1), "Yuri_Malenchenko", "") in save(found).rows("images")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("empty", "copy")),
        ("two\n", ("line 1", "number of folds", "'two'")),
        ("1\n1\nA\n", ("line 3", "a name and a number", "found 1", "copy")),
        ("1\n1\nA\tx\n", ("line 3", "number of images", "'x'")),
        ("1\n1\nA\t1\t2\n", ("line 3", "found 3")),
        ("2\n1\nA\t1\nB\t2\n", ("line 4", "number of people in fold 2")),
    ],
)
def test_bad_people(lfw, write, refused, text, words):
    write("LFW/people.txt", text)
    refused(lambda: read_lfw(lfw), "people.txt", *words)


@pytest.mark.parametrize("text", ["2\n", "2\n1\nA\t1\n", "1\n2\nA\t1\n"])
def test_people_txt_that_ends_early(lfw, write, refused, text):
    """There is no line 0 to look at."""
    write("LFW/people.txt", text)
    assert "line 0" not in refused(lambda: read_lfw(lfw), "people.txt")


@pytest.mark.parametrize(
    "text",
    [
        PEOPLE + "Zoe_Ball\t1\n",
        PEOPLE.replace("Jean-Claude_Juncker\t2", "Abel_Pacheco\t2"),
        PEOPLE.replace("Abdel_Madi_Shabneh\t1", "Abel_Pacheco\t2"),
    ],
    ids=["a line too many", "a person in two folds", "a person twice"],
)
def test_odd_people_are_not_passed_over(lfw, write, text):
    """They are refused by name."""
    write("LFW/people.txt", text)
    with pytest.raises(DataError) as caught:
        read_lfw(lfw, pictures=False)
    assert "Zoe_Ball" in str(caught.value) or "Abel_Pacheco" in str(caught.value)


# --------------------------------------------------------------------------- property

names = st.text("Abcd_-é", min_size=1, max_size=5)
numbers = st.integers(1, 600)
genuine = st.tuples(names, numbers, numbers).map(lambda p: ((p[0], p[1]), (p[0], p[2])))
imposter = st.tuples(st.tuples(names, numbers), st.tuples(names, numbers)).filter(
    lambda p: p[0][0] != p[1][0]
)


@st.composite
def views(draw):
    """Folds of equally many genuine and imposter pairs."""
    n = draw(st.integers(1, 3))
    part = st.tuples(
        st.lists(genuine, min_size=n, max_size=n), st.lists(imposter, min_size=n, max_size=n)
    )
    return n, draw(st.lists(part, min_size=1, max_size=4))


@settings(max_examples=60)
@given(views())
def test_any_pairs_come_back(tmp_path_factory, view):
    n, folds = view
    lines, expected = [f"{len(folds)}\t{n}"], []
    for fold, (same, other) in enumerate(folds, start=1):
        for left, right in [*same, *other]:
            alike = left[0] == right[0]
            lines.append("\t".join(map(str, (*left, *right[alike:]))))
            expected.append((image(*left), image(*right), alike, fold))
    folder = tmp_path_factory.mktemp("lfw")
    (folder / "pairs.txt").write_text("\n".join(lines), encoding="utf-8")
    found = read_lfw(folder, pictures=False)
    pairs = pa.concat_tables(found.pairs).to_pylist()
    assert [tuple(pair.values()) for pair in pairs] == expected
    assert set(found.images["image_id"].to_pylist()) == {i for p in expected for i in p[:2]}
