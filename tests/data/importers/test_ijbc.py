"""IJB-C: tables of templates with the owners' whole header, pair lists of any length."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from faircal.data.importers import ijbc, read_ijbc
from faircal.data.importers.ijbc import GENDERS, SKIN_TONES

ABOUT = (
    "SUBJECT_ID,FILENAME,SIGHTING_ID,FACE_X,FACE_Y,FACE_WIDTH,FACE_HEIGHT,FRAME_NUM,FACIAL_HAIR,"
    "AGE,INDOOR_OUTDOOR,SKINTONE,GENDER,YAW,ROLL,"
) + ",".join(f"OCC{i}" for i in range(1, 19))
HEADER = "TEMPLATE_ID," + ABOUT
LIST = "protocols/ijbc_11_covariate_probe_reference.csv"
MATCHES = "protocols/ijbc_11_covariate_matches.csv"
METADATA = "protocols/ijbc_metadata.csv"

#: Five subjects of each of twelve groups, so that each fold gets one of each; two templates each.
SUBJECTS = {
    1000 + i: (tone, gender)
    for i, (tone, gender, _) in enumerate(
        (tone, gender, copy) for tone in SKIN_TONES for gender in GENDERS for copy in range(5)
    )
}


def line(subject, name, *, tone=None, gender=None, x="4.5", sighting=7):
    """Return one of the owners' lines, without a template."""
    known = SUBJECTS.get(subject, ("", ""))
    tone, gender = (known[0] if tone is None else tone), (known[1] if gender is None else gender)
    facts = f"{subject},{name},{sighting},{x},10,100.25,120,-1,0,3,1,{tone},{gender},-2.5,0.0"
    return f"{facts},{','.join('0' * 18)}"


def templates(subjects=tuple(SUBJECTS)):
    """Two templates of each subject, one picture each, numbered from 1."""
    return [
        f"{2 * i + which},{line(subject, f'img/{2 * i + which}.jpg')}"
        for i, subject in enumerate(subjects)
        for which in (1, 2)
    ]


def owner(template):
    return 1000 + (template - 1) // 2


N = 2 * len(SUBJECTS)
#: Each subject's genuine pair, and pairs of a template with others further on.
PAIRS = [(t, t + 1) for t in range(1, N, 2)] + [
    (t, (t + step) % N + 1) for t in range(1, N + 1) for step in (6, 13, 50)
]


def text_of(pairs):
    return "".join(f"{left},{right}\n" for left, right in pairs)


@pytest.fixture
def covariate(write, tmp_path):
    """Return a function that writes the covariate protocol, without pictures."""

    def make(rows=None, matches=None, metadata=None, header=HEADER):
        write(f"IJB-C/{LIST}", "\n".join([header, *(rows or templates())]) + "\n")
        write(f"IJB-C/{MATCHES}", text_of(PAIRS) if matches is None else matches)
        if metadata is not None:
            write(f"IJB-C/{METADATA}", metadata)
        return tmp_path / "IJB-C"

    return make


def read(folder, **more):
    return read_ijbc(folder, pictures=False, **more)


def folds_of(found):
    """Return each template's fold."""
    images = found.images.to_pydict()
    return dict(zip(images["image_id"], images["fold"], strict=True))


# ------------------------------------------------------------------------- as shipped


def test_covariate_protocol(covariate, write, save):
    folder = covariate()
    for template in range(1, N + 1):
        write(f"IJB-C/images/img/{template}.jpg", "jpg")
    found = read_ijbc(folder)
    fold = folds_of(found)
    made = save(found)
    assert made.files == ["dataset.json", "images.csv", "pairs.csv", "pictures.csv"]
    assert made.header("images") == ["image_id", "identity", "skin_tone", "gender", "fold"]
    assert made.rows("images") == [
        (
            str(template),
            str(owner(template)),
            SKIN_TONES[SUBJECTS[owner(template)][0]],
            GENDERS[SUBJECTS[owner(template)][1]],
            str(fold[template]),
        )
        for template in range(1, N + 1)
    ]
    expected = [
        (str(a), str(b), "true" if owner(a) == owner(b) else "false", str(fold[a]))
        for a, b in PAIRS
        if fold[a] == fold[b]
    ]
    assert made.header("pairs") == ["left", "right", "genuine", "fold"]
    assert made.rows("pairs") == expected
    lost = len(PAIRS) - len(expected)
    assert lost > 0
    assert made.about["notes"] == [
        f"{lost:,} of {len(PAIRS):,} pairs join subjects of two folds and are dropped"
    ]
    assert made.about["pictures"] == "images"
    imported = made.about["imported"]
    assert (imported["protocol"], imported["seed"]) == ("covariate", 0)
    assert (imported["images"], imported["pairs"]) == (N, len(expected))


def test_boxes(covariate, save):
    made = save(read(covariate()))
    assert made.header("pictures") == [
        "image_id",
        "path",
        "x",
        "y",
        "width",
        "height",
    ]
    assert made.rows("pictures")[0] == ("1", "img/1.jpg", "4.5", "10", "100.25", "120")
    assert len(made.rows("pictures")) == N


def test_loads(covariate, save):
    data = save(read(covariate())).load()
    assert data.default_attribute == "skin_tone+gender"
    assert len(data.groups().names) == 12
    assert list(data.fold_names) == [1, 2, 3, 4, 5]
    assert data.images.ids.to_pylist() == list(range(1, N + 1))


def test_protocols_folder_itself(covariate):
    folder = covariate()
    assert read(folder / "protocols").images == read(folder).images


def test_smaller_header(covariate):
    """Only what says which pictures a template has must be there."""
    rows = [f"{t},{owner(t)},img/{t}.jpg" for t in range(1, N + 1)]
    found = read(covariate(rows, header="template_id, subject_id ,filename"))
    assert found.images["skin_tone"].null_count == N
    assert found.pictures["x"].null_count == N
    assert f"{N} of {N} templates have no known gender" in found.notes


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\n\n"),
        lambda text: text.rstrip("\n"),
    ],
    ids=["Windows line ends", "BOM", "blank lines", "no last line end"],
)
@pytest.mark.parametrize("file", [LIST, MATCHES])
def test_other_ways_to_write_it(covariate, save, change, file):
    folder = covariate()
    expected = save(read(folder), "expected")
    path = folder / file
    path.write_bytes(change(path.read_text()).encode())
    made = save(read(folder))
    for stem in ("images", "pairs", "pictures"):
        assert made.rows(stem) == expected.rows(stem)


# ----------------------------------------------------------------------------- people


def test_most_frequent_value_is_a_subjects(covariate):
    rows = [
        f"1,{line(5, 'a.jpg', tone=6, gender=1)}",
        f"2,{line(5, 'b.jpg', tone=2, gender=1)}",
        f"3,{line(5, 'c.jpg', tone=6, gender=0)}",
    ]
    found = read(covariate(rows, "1,2\n"))
    assert found.images["skin_tone"].to_pylist() == ["dark_brown"] * 3
    assert found.images["gender"].to_pylist() == ["male"] * 3


def test_metadata_counts_too(covariate):
    rows = [f"{t},{line(5, 'a.jpg', tone='', gender='')}" for t in (1, 2)]
    about = "\n".join([ABOUT, *(line(5, "x.jpg", tone=1, gender=0) for _ in range(3))])
    about += "\n" + line(99, "other.jpg", tone=6, gender=1)
    found = read(covariate(rows, "1,2\n", about))
    assert found.images["skin_tone"].to_pylist() == ["light_pink"] * 2
    assert found.images["gender"].to_pylist() == ["female"] * 2
    assert "no known" not in " ".join(found.notes)


@pytest.mark.parametrize("tone", ["0", "7", "-1", "", "pink"])
def test_unknown_codes(covariate, save, tone):
    rows = templates()
    rows += [f"{900 + i},{line(7, 'u.jpg', tone=tone, gender=2)}" for i in range(3)]
    made = save(read(covariate(rows)))
    assert [row[2:4] for row in made.rows("images")[-3:]] == [("", "")] * 3
    assert made.about["notes"][:2] == [
        f"3 of {N + 3} templates have no known skin_tone",
        f"3 of {N + 3} templates have no known gender",
    ]


@pytest.mark.parametrize("tone", ["6.0", " 6"])
def test_codes_written_otherwise(covariate, tone):
    rows = [f"{t},{line(5, 'a.jpg', tone=tone)}" for t in (1, 2)]
    assert read(covariate(rows, "1,2\n")).images["skin_tone"].to_pylist() == ["dark_brown"] * 2


# ------------------------------------------------------------------------------ folds


def test_folds_share_no_subject(covariate):
    fold = folds_of(read(covariate()))
    of_subject = {}
    for template, number in fold.items():
        assert of_subject.setdefault(owner(template), number) == number


def test_folds_are_stratified(covariate):
    """Five subjects of each group and five folds: one of each in each."""
    images = read(covariate()).images.to_pylist()
    counts = Counter((i["skin_tone"], i["gender"], i["fold"]) for i in images)
    assert len(counts) == 12 * 5
    assert set(counts.values()) == {2}


def test_heavy_subjects_are_spread(covariate):
    """One subject of ten templates, ten of one: the eleventh joins a lighter fold."""
    rows = [f"{t},{line(1000, 'a.jpg')}" for t in range(10)]
    rows += [f"{t},{line(2000 + t, 'a.jpg', tone=1, gender=0)}" for t in range(10, 20)]
    images = read(covariate(rows, "1,2\n")).images.to_pylist()
    heavy = next(i["fold"] for i in images if i["identity"] == 1000)
    people = Counter(i["fold"] for i in images if i["identity"] != 1000)
    assert people[heavy] == 1
    assert sorted(people.values()) == [1, 2, 2, 2, 3]


def test_seed(covariate, save):
    folder = covariate()
    first, again, other = (folds_of(read(folder, seed=seed)) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert save(read(folder, seed=1)).about["imported"]["seed"] == 1


def test_order_of_lines_changes_nothing(covariate):
    expected = folds_of(read(covariate()))
    assert folds_of(read(covariate(templates()[::-1]))) == expected


# -------------------------------------------------------------------------- streaming


@pytest.mark.parametrize("block", [16, 64, 1000])
def test_blocks_change_nothing(covariate, save, monkeypatch, block):
    folder = covariate()
    expected = save(read(folder), "expected")
    monkeypatch.setattr(ijbc, "_BLOCK", block)
    made = save(read(folder))
    assert made.rows("pairs") == expected.rows("pairs")
    assert made.about == expected.about


def test_pairs_come_in_parts(covariate, monkeypatch):
    """No part holds more than a block of the file, and none is read before it is asked for."""
    folder = covariate()
    monkeypatch.setattr(ijbc, "_BLOCK", 64)
    said = []
    found = read(folder, progress=lambda *words: said.append(words))
    assert said == []
    parts = list(found.pairs)
    assert len(set(found.notes)) == len(found.notes)
    assert len(parts) > 20
    assert max(map(len, parts)) <= 64 // len("1,2\n")
    reading = [words for words in said if "reading pairs" in words[0]]
    assert reading[-1][2] == 0  # the bar goes


def test_long_lists_become_parquet(covariate, save, monkeypatch):
    folder = covariate()
    expected = save(read(folder), "expected")
    monkeypatch.setattr(ijbc, "_BLOCK", 64)
    monkeypatch.setattr("faircal.data.tables.MOST_CSV_ROWS", 30)
    made = save(read(folder))
    assert "pairs.parquet" in made.files
    assert "pairs.csv" not in made.files
    rows = pq.read_table(made.folder / "pairs.parquet")
    same = pacsv.read_csv(expected.folder / "pairs.csv")
    assert rows.to_pydict() == same.to_pydict()
    assert made.about["imported"] == expected.about["imported"]


def test_wide_ids(covariate, save):
    """Ids of more than 32 bits are told apart."""
    big = 2**40
    rows = [f"{big + t},{line(1000, 'a.jpg')}" for t in (1, 2)]
    rows += [f"{t},{line(1001, 'a.jpg')}" for t in (1, 2)]
    made = save(read(covariate(rows, f"{big + 1},{big + 2}\n1,2\n")))
    assert [row[:2] for row in made.rows("pairs")] == [(str(big + 1), str(big + 2)), ("1", "2")]


# --------------------------------------------------------------------------- pictures


@pytest.fixture
def pictured(covariate, write):
    """The covariate protocol with its pictures."""
    folder = covariate()
    for template in range(1, N + 1):
        write(f"IJB-C/images/img/{template}.jpg")
    return folder


def test_missing_picture(pictured, save):
    (pictured / "images/img/1.jpg").unlink()
    found = read_ijbc(pictured)
    made = save(found)
    assert made.rows("dropped") == [("1", "picture not found")]
    assert len(made.rows("images")) == len(made.rows("pictures")) == N - 1
    lost = (
        f"{sum(1 in pair for pair in PAIRS)} pairs dropped: a template without pictures or not in "
        "the template list (such as 1)"
    )
    assert made.about["notes"] == [
        f"1 of {N} images dropped: picture not found (1)",
        made.about["notes"][1],
        lost,
    ]
    fold = folds_of(found)
    usable = [(str(a), str(b)) for a, b in PAIRS if 1 not in (a, b) and fold[a] == fold[b]]
    assert [row[:2] for row in made.rows("pairs")] == usable


@pytest.mark.parametrize("gone", ["img", "frames"])
def test_a_folder_of_pictures_missing(covariate, write, save, gone):
    """Stills lie in one, frames of videos in the other; what is there is used."""
    rows = [
        f"{t},{line(1000 + (t > 2), f'{place}/{t}.jpg')}"
        for t, place in enumerate(("img", "img", "frames", "frames"), start=1)
    ]
    folder = covariate(rows, "1,2\n3,4\n")
    for t in (3, 4) if gone == "img" else (1, 2):
        write(f"IJB-C/images/{'frames' if gone == 'img' else 'img'}/{t}.jpg")
    made = save(read_ijbc(folder))
    assert len(made.rows("pairs")) == 1
    assert len(made.rows("dropped")) == 2


def test_all_pictures_missing(pictured, refused):
    for path in (pictured / "images/img").iterdir():
        path.unlink()
    refused(lambda: read_ijbc(pictured), f"none of the {N} pictures", "--no-pictures")


def test_no_pictures_at_all(covariate, refused):
    folder = covariate()
    refused(lambda: read_ijbc(folder), str(folder), "img/1.jpg", "--no-pictures")


# -------------------------------------------------------------------- bad pair lists


def with_line(number, text):
    """Return a pair list with `text` as the line of that number."""
    lines = text_of(PAIRS).splitlines()
    lines.insert(number - 1, text)
    return "\n".join(lines)


def test_unknown_templates_are_dropped_and_counted(covariate, save):
    made = save(read(covariate(matches=text_of([(5000, 1), *PAIRS, (2, 6000), (7, 7000)]))))
    assert made.about["notes"][1] == (
        "3 pairs dropped: a template without pictures or not in the template list (such as 5000)"
    )
    assert made.rows("pairs") == save(read(covariate()), "plain").rows("pairs")


@pytest.mark.parametrize("text", ["1,2,3", "1", "1,x", "x,1", "1.5,2", "1,", ",2", "9" * 30 + ",1"])
@pytest.mark.parametrize(("number", "block"), [(1, 1 << 22), (300, 1 << 22), (300, 64)])
def test_bad_line(covariate, refused, monkeypatch, number, text, block):
    monkeypatch.setattr(ijbc, "_BLOCK", block)
    folder = covariate(matches=with_line(number, text))
    said = refused(lambda: read(folder), MATCHES.partition("/")[2], "template id")
    assert f"line {number}:" in said or f"Row #{number}:" in said


def test_bad_line_says_nothing_on_the_side(covariate, refused, capfd):
    folder = covariate(matches=with_line(3, "1,2,3"))
    refused(lambda: read(folder), "Row #3", "expected two template ids")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_empty_pair_list(covariate, refused, text):
    folder = covariate(matches=text)
    refused(lambda: read(folder), MATCHES, "two template ids a line")


def test_no_pair_left(covariate, refused):
    folder = covariate(matches="5000,6000\n")
    refused(lambda: read(folder), str(folder), "no usable pair is left", "5000")


# --------------------------------------------------------------------- bad templates


@pytest.mark.parametrize("name", ["TEMPLATE_ID", "SUBJECT_ID"])
@pytest.mark.parametrize("value", ["", "x", "1.5"])
def test_bad_id(covariate, refused, name, value):
    rows = templates()
    fields = rows[3].split(",")
    fields[HEADER.split(",").index(name)] = value
    rows[3] = ",".join(fields)
    folder = covariate(rows)
    refused(lambda: read(folder), LIST, f"column '{name}'", "whole number", "copy it again")


@pytest.mark.parametrize("name", ["TEMPLATE_ID", "SUBJECT_ID", "FILENAME"])
def test_missing_column(covariate, refused, name):
    folder = covariate(header=HEADER.replace(name, "OTHER"))
    refused(lambda: read(folder), LIST, f"column '{name}' is missing", "rename")


def test_box_that_is_no_number(covariate, refused):
    folder = covariate([*templates(), f"999,{line(1000, 'a.jpg', x='left')}"])
    refused(lambda: read(folder), LIST, "FACE_X", "number")


@pytest.mark.parametrize("pictures", [True, False])
def test_picture_without_a_name(covariate, write, refused, pictures):
    folder = covariate([*templates(), f"999,{line(1000, '')}"])
    write("IJB-C/images/img/1.jpg")
    refused(lambda: read_ijbc(folder, pictures=pictures), LIST, "FILENAME")


def test_template_that_is_listed_twice(covariate, refused):
    folder = covariate([*templates(), f"1,{line(1059, 'img/1.jpg')}"])
    refused(lambda: read(folder), "protocols", "template 1 ", "listed twice", "copy")


def test_wrong_number_of_fields(covariate, refused):
    folder = covariate([*templates(), "1,2,3"])
    refused(lambda: read(folder), LIST, "Expected 34 columns, got 3", "export it again")


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ("SUBJECT_ID,GENDER\n1000,1\n", ("'SKINTONE' is missing",)),
        ("SUBJECT_ID,SKINTONE,GENDER\nx,1,1\n", ("SUBJECT_ID", "whole number")),
        ("", ("cannot be read",)),
    ],
)
def test_bad_metadata(covariate, refused, metadata, words):
    folder = covariate(metadata=metadata)
    refused(lambda: read(folder), METADATA, *words)


def test_metadata_header_in_any_case(covariate):
    """As the tables of templates may have it."""
    rows = [f"{t},{line(5, 'a.jpg', tone='', gender='')}" for t in (1, 2)]
    about = "subject_id, SkinTone ,gender\n5,1,0\n"
    assert read(covariate(rows, "1,2\n", about)).images["gender"].to_pylist() == ["female"] * 2


@pytest.mark.parametrize("name", [LIST, MATCHES])
def test_missing_file(covariate, refused, name):
    folder = covariate()
    (folder / name).unlink()
    refused(lambda: read(folder), "protocols", name.partition("/")[2], "owners")


def test_missing_folder(tmp_path, write, refused):
    refused(lambda: read(tmp_path / "none"), "no such", "check")
    write("other/readme.txt")
    refused(lambda: read(tmp_path / "other"), "ijbc_11_covariate_matches.csv", "owners")


def test_random_lists(covariate, save):
    """What is kept, dropped and counted adds up, whatever the pairs."""
    rng = np.random.default_rng(0)
    pairs = rng.integers(1, N + 20, size=(3000, 2))
    found = read(covariate(matches=text_of(pairs)))
    fold = folds_of(found)
    made = save(found)
    known = [(a, b) for a, b in pairs.tolist() if a in fold and b in fold]
    kept = [(a, b) for a, b in known if fold[a] == fold[b]]
    assert [row[:2] for row in made.rows("pairs")] == [(str(a), str(b)) for a, b in kept]
    assert made.about["notes"][0].startswith(f"{len(known) - len(kept):,} of 3,000 pairs")
    assert made.about["notes"][1].startswith(f"{3000 - len(known):,} pairs dropped")
