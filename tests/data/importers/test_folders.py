"""A folder with a sub-folder for each person."""

from __future__ import annotations

import os

import pytest

from faircal.data.importers import read_folder
from faircal.data.importers.folders import SUFFIXES
from faircal.data.tables import read_table


@pytest.fixture
def photos(write, tmp_path):
    """Return a function that makes a folder of these files."""

    def make(*names):
        for name in names:
            write(f"photos/{name}")
        return tmp_path / "photos"

    return make


def test_people(photos, save):
    found = read_folder(photos("bob/2.jpg", "ann/10.jpg", "ann/1.jpg", "007/x.png"))
    made = save(found)
    assert made.files == ["dataset.json", "images.csv"]
    assert made.rows("images") == [
        ("007/x.png", "007"),
        ("ann/1.jpg", "ann"),
        ("ann/10.jpg", "ann"),
        ("bob/2.jpg", "bob"),
    ]
    assert found.notes == []
    assert found.counts == {"images": 4}
    assert made.about["name"] == "photos"
    assert made.about["pictures"] == "."


def test_other_name(photos):
    assert read_folder(photos("a/1.jpg"), name="mine").name == "mine"


def test_name_of_the_folder_one_is_in(photos, monkeypatch):
    monkeypatch.chdir(photos("a/1.jpg"))
    assert read_folder(".").name == "photos"


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("change", [str.lower, str.upper, str.title])
def test_suffixes(photos, suffix, change):
    name = f"ann/1{change(suffix)}"
    assert read_folder(photos(name)).images["image_id"].to_pylist() == [name]


def test_nested_folders_are_part_of_the_person(photos, save):
    made = save(read_folder(photos("uk/ann/1.jpg", "fr/ann/1.jpg", "uk/2.jpg")))
    assert set(made.rows("images")) == {
        ("uk/ann/1.jpg", "uk/ann"),
        ("fr/ann/1.jpg", "fr/ann"),
        ("uk/2.jpg", "uk"),
    }


def test_loose_pictures_are_of_unknown_people(photos, save):
    made = save(read_folder(photos("1.jpg", "2.jpg", "ann/1.jpg")))
    assert ("1.jpg", "") in made.rows("images")
    assert made.about["notes"] == ["2 pictures lie in no person's folder: their person is unknown"]


def test_what_is_no_picture_is_counted(photos, save):
    folder = photos("ann/1.jpg", "ann/notes.txt", "readme", "ann/1.jpg.bak", "bob/jpg")
    made = save(read_folder(folder))
    assert made.rows("images") == [("ann/1.jpg", "ann")]
    assert made.about["notes"] == ["4 files that are no pictures were passed over"]


def test_hidden_files_and_folders_are_not_there(photos):
    folder = photos("ann/1.jpg", "ann/.2.jpg", ".git/3.jpg", "ann/.thumbs/4.jpg", ".DS_Store")
    found = read_folder(folder)
    assert found.images["image_id"].to_pylist() == ["ann/1.jpg"]
    assert found.notes == []


def test_odd_names_come_back(photos, save):
    names = ['ann/a,"b".jpg', "bob/ö 1.jpg", "c d/1.jpg", "nan/1.jpg", "e/'.jpg"]
    made = save(read_folder(photos(*names)))
    assert sorted(row[0] for row in made.rows("images")) == sorted(names)
    table = read_table(made.folder / "images.csv")
    assert sorted(table["image_id"].to_pylist()) == sorted(names)


def test_a_person_called_nan(photos, save):
    """Nan is a name."""
    made = save(read_folder(photos("nan/1.jpg", "bob/1.jpg")))
    table = read_table(made.folder / "images.csv")
    assert set(table["identity"].to_pylist()) == {"nan", "bob"}


def test_links_are_followed(photos, tmp_path, write):
    write("elsewhere/1.jpg")
    folder = photos("ann/1.jpg")
    (folder / "bob").symlink_to(tmp_path / "elsewhere")
    assert read_folder(folder).images["image_id"].to_pylist() == ["ann/1.jpg", "bob/1.jpg"]


def test_links_that_go_in_circles(photos):
    folder = photos("ann/1.jpg")
    (folder / "ann/again").symlink_to(folder)
    assert read_folder(folder).images["image_id"].to_pylist() == ["ann/1.jpg"]


def test_names_that_are_no_text(photos, tmp_path, refused):
    """Such a name, of an old file system, can't be written to a table."""
    folder = photos("ann/1.jpg")
    with open(os.fsencode(folder) + b"/ann/\xff.jpg", "w"):  # noqa: PTH123
        pass
    refused(lambda: read_folder(folder), "ann", "rename")


# ------------------------------------------------------------------------- attributes


@pytest.fixture
def people(photos):
    return photos("ann/1.jpg", "ann/2.jpg", "007/1.jpg", "loose.jpg")


def test_attributes_by_identity(people, write, save):
    table = write("people.csv", "gender,identity,age\nF,ann,young\nM,007,old\nX,nobody,old\n")
    made = save(read_folder(people, attributes=table))
    assert made.header("images") == ["image_id", "identity", "gender", "age"]
    assert sorted(made.rows("images")) == [
        ("007/1.jpg", "007", "M", "old"),
        ("ann/1.jpg", "ann", "F", "young"),
        ("ann/2.jpg", "ann", "F", "young"),
        ("loose.jpg", "", "", ""),
    ]
    assert (
        "1 of 4 images have no row in people.csv: their attributes are unknown"
        in (made.about["notes"])
    )


def test_attributes_by_image(people, write, save):
    text = "image_id,identity,fold,light\nann/1.jpg,someone,3,01\nloose.jpg,x,4,2\n"
    made = save(read_folder(people, attributes=write("images.csv", text)))
    # A person and a fold that the table names, too, are not the folder's to have.
    assert made.header("images") == ["image_id", "identity", "light"]
    rows = {row[0]: row[1:] for row in made.rows("images")}
    assert rows["ann/1.jpg"][0] == "ann"
    assert rows["loose.jpg"] == ("", "2")
    assert rows["ann/2.jpg"] == ("ann", "")


def test_attributes_make_the_default(people, write, save):
    table = write("people.csv", "identity,gender\nann,F\n007,M\n")
    made = save(read_folder(people, attributes=table))
    rows = "left,right,genuine,fold\nann/1.jpg,ann/2.jpg,1,1\nann/1.jpg,007/1.jpg,0,1\n"
    (made.folder / "pairs.csv").write_text(rows)
    assert made.load().default_attribute == "gender"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("identity,g\nann,F\nann,M\n", ("column 'identity'", "'ann'", "more than one row", "own")),
        ("image_id,g\na,F\na,F\n", ("column 'image_id'", "'a'", "more than one row")),
        ("identity,g\nAnn,F\n", ("column 'identity'", "none of the 4", "'Ann'", "spell them")),
        ("image_id,g\n1.jpg,F\n", ("column 'image_id'", "'1.jpg'", "spell them")),
        ("person,g\nann,F\n", ("column 'identity' is missing", "add or rename", "person")),
        ("identity,g\n", ("at least one row",)),
        ("identity,g\nann\n", ("cannot be read", "repair")),
        ("identity,g,g\nann,F,M\n", ("column 'g' appears more than once", "rename")),
        ("", ("cannot be read", "repair")),
    ],
)
def test_bad_attributes(people, write, refused, text, words):
    table = write("people.csv", text)
    refused(lambda: read_folder(people, attributes=table), str(table), *words)


@pytest.mark.parametrize("rows", [1, 2])
def test_attributes_of_nobody(people, write, refused, rows):
    """A row without a key, such as a spreadsheet leaves at its end, is named as that."""
    table = write("people.csv", "identity,g\nann,F\n" + ",M\n" * rows)
    text = refused(lambda: read_folder(people, attributes=table), str(table), "'identity'", "empty")
    assert "None" not in text


def test_attributes_that_are_not_there(people, tmp_path, refused):
    refused(lambda: read_folder(people, attributes=tmp_path / "n.csv"), "n.csv", "no such")
    refused(lambda: read_folder(people, attributes=tmp_path), "found a folder")
    refused(lambda: read_folder(people, attributes=people / "loose.jpg"), "expected a .csv")


def test_attribute_that_crosses(people, write, refused):
    """Reading the folder that was made would fail."""
    table = write("people.csv", "identity,a+b\nann,F\n")
    refused(lambda: read_folder(people, attributes=table), "people.csv", "a+b", "rename")


# -------------------------------------------------------------------------- bad input


def test_no_pictures(photos, tmp_path, refused):
    folder = photos("ann/notes.txt", ".hidden/1.jpg")
    refused(lambda: read_folder(folder), str(folder), "expected pictures", ".jpg", "check the path")
    refused(lambda: read_folder(folder / "ann/notes.txt"), "notes.txt", "a sub-folder for each")
    refused(lambda: read_folder(folder / "nobody"), "nobody", "no such", "check")


def test_the_target_may_lie_inside(photos):
    folder = photos("ann/1.jpg")
    read_folder(folder).save(folder / "data")
    assert sorted(path.name for path in folder.iterdir()) == ["ann", "data"]
