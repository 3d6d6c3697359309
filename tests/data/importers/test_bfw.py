"""BFW: ``bfw-v0.1.5-datatable.csv`` with all its columns, and the pictures it names."""

from __future__ import annotations

import csv
import io
import pickle

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faircal.data.importers import read_bfw

NAME = "bfw-v0.1.5-datatable.csv"
HEADER = "fold,p1,p2,label,id1,id2,att1,att2,vgg16,resnet50,senet50,a1,a2,g1,g2,e1,e2"
COLUMNS = HEADER.split(",")
AF = [f"asian_females/n000009/00{n}_01.jpg" for n in (10, 11, 12)]
WM = [f"white_males/n000012/00{n}_02.jpg" for n in (20, 21)]
IM = ["indian_males/n000020/0001_01.jpg"]
#: left, right, label, fold, vgg16: three genuine pairs, one imposter of a group, two across groups.
PAIRS = [
    (AF[0], AF[1], 1, 1, 0.91),
    (AF[1], AF[2], 1, 1, 0.82),
    (WM[0], WM[1], 1, 2, 0.75),
    (AF[0], WM[0], 0, 2, -0.125),
    (WM[1], IM[0], 0, 3, 0.5),
    (IM[0], AF[2], 0, 3, 0.25),
]


def row(left, right, label, fold, score):
    """Return one of the owners' rows; what is said of a side follows from its path."""
    said = []
    for path in (left, right):
        att, person, _ = path.split("/")
        ethnicity, gender = att.split("_")
        said.append((person, att, gender[0].upper(), ethnicity[0].upper()))
    (id1, att1, g1, e1), (id2, att2, g2, e2) = said
    values = (fold, left, right, label, id1, id2, att1, att2, score, score / 2, score / 4)
    values += (e1 + g1, e2 + g2, g1, g2, e1, e2)
    return dict(zip(COLUMNS, values, strict=True))


ROWS = [row(*pair) for pair in PAIRS]


def text_of(rows, names=None):
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, names or list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def changed(number, **values):
    """Return the rows with one of them (from 1) changed."""
    rows = [dict(each) for each in ROWS]
    rows[number - 1] |= values
    return rows


@pytest.fixture
def table(write):
    """Return a function that writes the owners' table."""
    return lambda rows=ROWS, name=f"BFW/{NAME}": write(name, text_of(rows))


@pytest.fixture
def bfw(table, write, tmp_path):
    """BFW with all its pictures."""
    table()
    for name in AF + WM + IM:
        write(f"BFW/{name}", "jpg")
    return tmp_path / "BFW"


def test_as_shipped(bfw, save):
    found = read_bfw(bfw)
    made = save(found)
    assert found.notes == []
    assert made.files == ["dataset.json", "images.csv", "pairs.csv"]
    assert made.header("images") == ["image_id", "identity", "att", "e", "g"]
    assert set(made.rows("images")) == {
        *((path, "n000009", "asian_females", "A", "F") for path in AF),
        *((path, "n000012", "white_males", "W", "M") for path in WM),
        (IM[0], "n000020", "indian_males", "I", "M"),
    }
    assert made.header("pairs") == ["left", "right", "genuine", "fold"]
    assert made.rows("pairs") == [
        (left, right, "true" if label else "false", str(fold))
        for left, right, label, fold, _ in PAIRS
    ]
    about = made.about
    assert about["name"] == "BFW"
    assert about["attribute"] == "att"
    assert about["pictures"] == "."
    assert about["imported"]["layout"] == "bfw"


def test_loads(bfw, save):
    data = save(read_bfw(bfw)).load()
    assert data.default_attribute == "att"
    assert set(data.images.attributes) == {"att", "e", "g"}
    assert data.groups().names == ("asian_females", "indian_males", "white_males")
    assert data.groups().cross.tolist() == [False, False, False, True, True, True]
    assert list(data.fold_names) == [1, 2, 3]


def test_scores_are_taken_over(table, save):
    """They need no pictures."""
    made = save(read_bfw(table(), score="resnet50"))
    assert made.header("pairs")[-1] == "score"
    assert "pictures" not in made.about
    data = made.load(embed=False)
    assert data.scores.tolist() == [pair[-1] / 2 for pair in PAIRS]
    assert data.default_attribute == "att"


def test_scores_of_another_range_are_noted(table):
    """As bob's are: reading the folder that was made needs --score-range."""
    notes = read_bfw(table(changed(1, vgg16=87.5)), score="vgg16").notes
    assert any("87.5" in note and "--score-range" in note for note in notes)


def images_and_pairs(path, **more):
    found = read_bfw(path, pictures=False, **more)
    return found.images.to_pylist(), pa.concat_tables(found.pairs).to_pylist()


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\n\n"),
        lambda text: text.rstrip("\n"),
        lambda text: "\n".join(
            f"{'ID' if i == 0 else i - 1},{line}" for i, line in enumerate(text.splitlines())
        ),
        lambda text: "\n".join(
            f"{'' if i == 0 else i - 1},{line}" for i, line in enumerate(text.splitlines())
        ),
        lambda text: text.replace("p1,p2,label", "path1,path2,same"),
        lambda text: text.replace(",1,n0", ",True,n0").replace(",0,n0", ",False,n0"),
        lambda text: text.replace(",1,n0", ",1.0,n0").replace(",0,n0", ",0.0,n0"),
    ],
    ids=[
        "Windows line ends",
        "BOM",
        "blank lines",
        "no last line end",
        "ID column",
        "column without a name",
        "the paper's names",
        "true and false",
        "labels with a point",
    ],
)
def test_other_ways_to_write_it(table, write, change):
    path = table()
    expected = images_and_pairs(path)
    assert images_and_pairs(write("BFW/other.csv", change(text_of(ROWS)))) == expected


@pytest.mark.parametrize("categorical", [False, True])
def test_parquet(table, tmp_path, categorical):
    frame = pd.read_csv(table())
    if categorical:
        words = ["p1", "p2", "id1", "id2", "att1", "att2", "g1", "g2", "e1", "e2"]
        frame = frame.astype(dict.fromkeys(words, "category"))
    path = tmp_path / "parquet/bfw-v0.1.5-datatable.parquet"
    path.parent.mkdir()
    frame.set_index("label", drop=False).rename_axis("ID").to_parquet(path)
    assert images_and_pairs(path, score="vgg16") == images_and_pairs(table(), score="vgg16")
    # A folder in which it lies does as well.
    assert images_and_pairs(path.parent) == images_and_pairs(table())


class Bomb:
    """Unpickled, it leaves a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("suffix", [".pkl", ".pickle"])
@pytest.mark.parametrize("given", ["file", "folder"])
def test_pickle_is_refused_unopened(write, tmp_path, refused, suffix, given):
    mark = tmp_path / "went-off"
    path = write(f"BFW/bfw-v0.1.5-datatable{suffix}", pickle.dumps(Bomb(mark)))
    source = path if given == "file" else path.parent
    refused(lambda: read_bfw(source), str(path), "pickle", "can run code", "CSV")
    assert not mark.exists()


def test_table_beside_a_pickle(bfw, write):
    write("BFW/bfw-v0.1.5-datatable.pkl", b"junk")
    assert len(read_bfw(bfw).images) == 6


def test_newer_table_beside_an_older(bfw, table):
    """The newer one is meant, or the user is asked; never the older, silently."""
    table(ROWS[:2], "BFW/bfw-v0.1.4-datatable.csv")
    found = read_bfw(bfw)
    assert len(found.images) == 6 or any("0.1.4" in note for note in found.notes)


# --------------------------------------------------------------------------- pictures


@pytest.mark.parametrize("home", ["bfw-cropped-aligned", "data/face-samples"])
def test_pictures_lower_down(bfw, save, home):
    (bfw / home).mkdir(parents=True)
    for name in ("asian_females", "white_males", "indian_males"):
        (bfw / name).rename(bfw / home / name)
    assert save(read_bfw(bfw)).about["pictures"] == home
    assert save(read_bfw(bfw / NAME), "again").about["pictures"] == home


def test_missing_picture(bfw, save):
    (bfw / IM[0]).unlink()
    made = save(read_bfw(bfw))
    assert made.rows("dropped") == [(IM[0], "picture not found")]
    assert made.about["notes"] == [
        f"1 of 6 images dropped: picture not found ({IM[0]}); with them 2 of 6 pairs"
    ]
    assert len(made.rows("pairs")) == 4


@pytest.mark.parametrize("group", ["asian_females", "white_males", "indian_males"])
def test_pictures_of_one_group_missing(bfw, tmp_path, save, group):
    (bfw / group).rename(tmp_path / "elsewhere")
    made = save(read_bfw(bfw))
    assert {row[0].partition("/")[0] for row in made.rows("dropped")} == {group}


def test_all_pictures_missing(bfw, refused):
    for path in bfw.rglob("*.jpg"):
        path.unlink()
    refused(lambda: read_bfw(bfw), str(bfw), "none of the 6 pictures", "--no-pictures")


def test_no_pictures_at_all(table, refused, save):
    path = table()
    refused(lambda: read_bfw(path), "found no pictures", AF[0], "--no-pictures")
    made = save(read_bfw(path, pictures=False))
    assert len(made.rows("pairs")) == 6
    assert "pictures" not in made.about


# -------------------------------------------------------------------------- odd tables


def test_labels_that_disagree_with_identities(table, save):
    found = read_bfw(table(changed(4, label=1)), pictures=False)
    assert found.notes == ["1 labels disagree with the identities; labels are kept"]
    assert save(found).rows("pairs")[3][2] == "true"


def test_unknown_attribute(table, save):
    rows = [
        each | {f"att{i}": "" for i in "12" if each[f"p{i}"] == IM[0]} | {"fold": 1}
        for each in ROWS
    ]
    made = save(read_bfw(table(rows), pictures=False))
    assert {row[0]: row[2] for row in made.rows("images")}[IM[0]] == ""
    assert made.load().groups().names == ("asian_females", "white_males")


def test_without_attributes(table, save):
    rows = [{k: v for k, v in each.items() if k[:3] != "att"} for each in ROWS]
    made = save(read_bfw(table(rows), pictures=False))
    assert "attribute" not in made.about
    assert made.load().default_attribute == "e+g"


def test_attribute_of_one_side_only(table, save):
    """Half an attribute is none: the folder that is made can be read."""
    rows = [{k: v for k, v in each.items() if k != "att2"} for each in ROWS]
    save(read_bfw(table(rows), pictures=False)).load()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"e1": "B"}, (AF[0], "more than one e (A and B)", "row", "correct")),
        ({"att1": "black_females"}, (AF[0], "more than one att", "row", "correct")),
        ({"id1": "n000099"}, (AF[0], "more than one identity", "row", "correct")),
        ({"label": 2}, ("label", "row 4", "expected 0, 1", "2", "correct or remove")),
        ({"label": ""}, ("label", "row 4", "correct or remove")),
        ({"fold": ""}, ("column 'fold', row 4", "empty")),
        ({"p1": ""}, ("p1", "row 4")),
        ({"p2": " "}, ("p2", "row 4")),
    ],
)
def test_bad_cell(table, refused, values, words):
    path = table(changed(4, **values))
    refused(lambda: read_bfw(path, pictures=False), str(path), *words)


def test_two_values_on_the_right_side(table, refused):
    """The row that is named counts pairs, not sides."""
    path = table(changed(2, e2="B"))
    refused(lambda: read_bfw(path, pictures=False), str(path), AF[2], "row 6: image")


@pytest.mark.parametrize("name", ["p1", "p2", "label", "id1", "id2", "fold"])
def test_missing_column(table, refused, name):
    path = table([{k: v for k, v in each.items() if k != name} for each in ROWS])
    refused(lambda: read_bfw(path, pictures=False), str(path), f"'{name}' is missing", "rename")


def test_column_under_both_names(table, refused):
    path = table([each | {"path1": each["p1"]} for each in ROWS])
    refused(lambda: read_bfw(path, pictures=False), str(path), "p1")


def test_ids_of_two_kinds(table):
    """Numbers on one side, names on the other: no two are alike, which is noted."""
    found = read_bfw(table([each | {"id1": 7} for each in ROWS[:1]]), pictures=False)
    assert found.notes == ["1 labels disagree with the identities; labels are kept"]


@pytest.mark.parametrize(
    ("score", "words"),
    [
        ("sphereface", ("column 'sphereface' is missing", "vgg16")),
        ("att1", ("column 'att1'", "expected numbers")),
    ],
)
def test_bad_score_column(table, refused, score, words):
    path = table()
    refused(lambda: read_bfw(path, score=score), str(path), *words)


@pytest.mark.parametrize("value", ["", "nan", "inf", "x"])
def test_bad_score(table, refused, value):
    path = table(changed(3, vgg16=value))
    refused(lambda: read_bfw(path, score="vgg16"), str(path), "column 'vgg16'", "correct")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("cannot be read", "export it again")),
        (text_of(ROWS).partition("\n")[0] + "\n", ("at least one row", "check")),
        (text_of(ROWS) + "1,a,b\n", ("Expected 17 columns, got 3", "export it again")),
        (text_of(ROWS).encode() + b"\xff" * 3, ("cannot be read", "export it again")),
    ],
    ids=["empty", "header alone", "wrong number of fields", "no text"],
)
def test_bad_file(write, refused, text, words):
    path = write(f"BFW/{NAME}", text)
    refused(lambda: read_bfw(path, pictures=False), str(path), *words)


def test_no_table(tmp_path, write, refused):
    write("other/readme.txt", "hello")
    refused(lambda: read_bfw(tmp_path / "other"), "expected bfw-v0.1.5-datatable.csv", "owners")
    refused(lambda: read_bfw(tmp_path / "other/readme.txt"), "expected a .csv", "convert")
    refused(lambda: read_bfw(tmp_path / "none"), "no such", "check")


def test_parquet_that_is_none(write, refused):
    path = write("BFW/bfw-datatable.parquet", "not parquet")
    refused(lambda: read_bfw(path), str(path), "cannot be read")
    pq.write_table(pa.table({"p1": [1]}), path)
    refused(lambda: read_bfw(path), str(path), "'p2' is missing")
