"""What is true of every importer: a folder is made whole or not at all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faircal._base.errors import DataError, ParameterError
from faircal.data.importers import (
    Import,
    read_bfw,
    read_bob,
    read_folder,
    read_ijbc,
    read_lfw,
    read_rfw,
)
from faircal.data.importers.base import absent, keep_images

BFW = (
    "fold,p1,p2,label,id1,id2,att1,att2\n"
    "1,a/n1/1.jpg,a/n1/2.jpg,1,n1,n1,a,a\n2,a/n1/1.jpg,b/n2/1.jpg,0,n1,n2,a,b\n"
)
READERS = {"rfw": read_rfw, "bfw": read_bfw, "ijbc": read_ijbc, "lfw": read_lfw}
READERS |= {"folder": read_folder, "bob": read_bob}


@pytest.fixture
def sources(write, tmp_path):
    """The smallest source of each layout, with its pictures, and how it is read."""
    write("rfw/txts/Asian/Asian_pairs.txt", "m.0a\t1\t2\nm.0a\t1\tm.0b\t1\n")
    for name in ("m.0a/m.0a_0001", "m.0a/m.0a_0002", "m.0b/m.0b_0001"):
        write(f"rfw/data/Asian/{name}.jpg")
    write("bfw/bfw-v0.1.5-datatable.csv", BFW)
    for name in ("a/n1/1", "a/n1/2", "b/n2/1"):
        write(f"bfw/{name}.jpg")
    rows = "TEMPLATE_ID,SUBJECT_ID,FILENAME\n1,1,img/1.jpg\n2,1,img/2.jpg\n"
    write("ijbc/protocols/ijbc_11_covariate_probe_reference.csv", rows)
    write("ijbc/protocols/ijbc_11_covariate_matches.csv", "1,2\n")
    write("ijbc/images/img/1.jpg")
    write("ijbc/images/img/2.jpg")
    write("lfw/pairs.txt", "1\t1\nA_B\t1\t2\nA_B\t1\tC_D\t1\n")
    for name in ("A_B/A_B_0001", "A_B/A_B_0002", "C_D/C_D_0001"):
        write(f"lfw/lfw/{name}.jpg")
    write("folder/ann/1.jpg")
    write("bob", "a a p1 0.5\na b p2 0.1\n")
    return tmp_path


@pytest.mark.parametrize("layout", READERS)
def test_saved(layout, sources, save):
    made = save(READERS[layout](sources / layout))
    assert made.about["imported"]["layout"] == layout
    assert made.about["imported"]["from"] == str(sources / layout)
    assert "images.csv" in made.files


@pytest.mark.parametrize("layout", READERS)
def test_the_same_source_gives_the_same_bytes(layout, sources, save):
    one, two = (save(READERS[layout](sources / layout), name) for name in ("one", "two"))
    assert one.files == two.files
    for name in one.files:
        assert (one.folder / name).read_bytes() == (two.folder / name).read_bytes()


@pytest.mark.parametrize("layout", READERS)
def test_relative_source(layout, sources, save, monkeypatch):
    """``embed`` must find the pictures from wherever it is called."""
    monkeypatch.chdir(sources)
    made = save(READERS[layout](layout))
    assert made.about["imported"]["from"] == str(sources / layout)


@pytest.mark.parametrize("layout", READERS)
def test_a_folder_with_something_in_it_stays_as_it_is(layout, sources, tmp_path, write):
    kept = write("made/data/mine.txt", "mine")
    with pytest.raises(ParameterError, match="there is something already; choose a new folder"):
        READERS[layout](sources / layout).save(kept.parent)
    assert [path.name for path in (tmp_path / "made").rglob("*")] == ["data", "mine.txt"]
    assert kept.read_text() == "mine"


@pytest.mark.parametrize("layout", READERS)
def test_an_empty_folder_is_filled(layout, sources, tmp_path, save):
    (tmp_path / "made/data").mkdir(parents=True)
    assert "dataset.json" in save(READERS[layout](sources / layout)).files


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("layout", READERS)
def test_interrupted_at_the_last_file(layout, sources, tmp_path, monkeypatch, error):
    """Nothing is left, no temporary folder either."""

    def fail(*_):
        raise error

    found = READERS[layout](sources / layout)
    monkeypatch.setattr("faircal.data.importers.base.write_about", fail)
    (tmp_path / "made").mkdir()
    with pytest.raises(type(error)):
        found.save(tmp_path / "made/data")
    assert list((tmp_path / "made").iterdir()) == []


@pytest.mark.parametrize("layout", READERS)
def test_the_source_stays_as_it_is(layout, sources, save):
    before = {path: path.stat().st_mtime_ns for path in sources.rglob("*")}
    save(READERS[layout](sources / layout))
    assert {path: path.stat().st_mtime_ns for path in before} == before


# ----------------------------------------------------------------------------- Import


def an_import(tmp_path, **more):
    images = pa.table({"image_id": ["a", "b", "c"], "identity": ["p", "p", "q"]})
    pairs = pa.table({"left": ["a", "a"], "right": ["b", "c"], "genuine": [True, False]})
    return Import("test", "Test", tmp_path, images, **{"pairs": [pairs], **more})


def test_counts_of_parts(tmp_path, save):
    part = pa.table({"left": ["a"], "right": ["b"], "genuine": [True]})
    found = an_import(tmp_path, pairs=iter([part, part.slice(0, 0), part]))
    assert len(save(found).rows("pairs")) == 2
    assert found.counts == {"images": 3, "pairs": 2, "genuine": 2}


def test_notes_of_parts_are_written(tmp_path, save):
    """A note that is known only when all pairs have been gone through."""

    def parts():
        yield pa.table({"left": ["a"], "right": ["b"], "genuine": [True]})
        found.notes.append("late")

    found = an_import(tmp_path, pairs=parts())
    assert save(found).about["notes"] == ["late"]


def test_fault_in_a_late_part(tmp_path, refused):
    def parts():
        yield pa.table({"left": ["a"], "right": ["b"], "genuine": [True]})
        raise DataError("line 7: bad; correct it")

    refused(lambda: an_import(tmp_path, pairs=parts()), "line 7")


def test_without_pairs(tmp_path, save):
    assert save(an_import(tmp_path, pairs=None)).files == ["dataset.json", "images.csv"]


def test_no_pair_is_left(tmp_path, refused):
    refused(lambda: an_import(tmp_path, pairs=[], notes=["all gone"]), "no usable pair", "all gone")


def test_dropping_images(tmp_path, save):
    found = an_import(tmp_path)
    keep_images(found, np.array([True, True, True]), "nothing")
    assert (found.notes, found.dropped) == ([], {})
    keep_images(found, np.array([True, True, False]), "too dark")
    made = save(found)
    assert made.rows("dropped") == [("c", "too dark")]
    assert made.rows("pairs") == [("a", "b", "true")]
    assert made.about["notes"] == [
        "1 of 3 images dropped: too dark (c); with them 1 of 2 pairs",
    ]


def test_dropping_images_without_pairs(tmp_path):
    found = an_import(tmp_path, pairs=None)
    keep_images(found, np.array([False, True, True]), "too dark")
    assert found.notes == ["1 of 3 images dropped: too dark (a)"]


def test_dropping_images_twice(tmp_path, save):
    found = an_import(tmp_path)
    keep_images(found, np.array([True, True, False]), "one")
    keep_images(found, np.array([True, False]), "other")
    assert found.dropped == {"c": "one", "b": "other"}
    assert [len(part) for part in found.pairs] == [0]


def test_absent(tmp_path, write):
    write("a/1.jpg")
    (tmp_path / "a/2.jpg").mkdir()
    said = []
    missing = absent(tmp_path, ["a/1.jpg", "a/2.jpg", "b"], lambda *words: said.append(words))
    # A folder is no picture.
    assert missing.tolist() == [False, True, True]
    assert said[-1][2] == 0


# ------------------------------------------------------------------------- attributes


@pytest.mark.parametrize(
    ("column", "written"),
    [
        (pa.array(["F", "M"]).dictionary_encode(), "F"),
        (pa.array(["F", "M"], pa.large_string()), "F"),
        (pa.array([1, 2]), "1"),
        (pa.array([True, False]), "true"),
    ],
    ids=["categories", "long text", "numbers", "true and false"],
)
@pytest.mark.parametrize("layout", ["lfw", "folder", "bob"])
def test_attributes_of_a_parquet(layout, sources, save, column, written):
    who = {"lfw": ["A_B", "C_D"], "folder": ["ann", "bob"], "bob": ["a", "b"]}[layout]
    path = sources / "people.parquet"
    pq.write_table(pa.table({"identity": who, "kind": column}), path)
    made = save(READERS[layout](sources / layout, attributes=path))
    assert made.rows("images")[0][-1] == written


def test_identities_that_are_numbers(write, tmp_path, save):
    """A table made elsewhere has 7 where the folder has 7."""
    write("photos/7/1.jpg")
    pq.write_table(pa.table({"identity": [7], "kind": ["x"]}), tmp_path / "people.parquet")
    made = save(read_folder(tmp_path / "photos", attributes=tmp_path / "people.parquet"))
    assert made.rows("images") == [("7/1.jpg", "7", "x")]


@pytest.mark.parametrize("name", ["identity", "kind"])
def test_lists_are_no_attributes(sources, refused, name):
    columns = {"identity": ["ann"], "kind": ["x"]} | {name: [[1, 2]]}
    path = sources / "people.parquet"
    pq.write_table(pa.table(columns), path)
    refused(lambda: read_folder(sources / "folder", attributes=path), str(path), f"'{name}'")
