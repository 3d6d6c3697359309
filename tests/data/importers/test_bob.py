"""Score files of bob: four columns, five, or CSV."""

from __future__ import annotations

import numpy as np
import pytest

from faircal.data.importers import read_bob

#: claimed_id real_id probe_label score
FOUR = """ann ann ann/p1 0.91
ann bob bob/p1 -0.25
bob bob bob/p1 1e-1
bob ann ann/p1 0.125
"""
#: claimed_id model_label real_id probe_label score
FIVE = """ann ann_1 ann ann/p1 0.91
ann ann_2 bob bob/p1 -0.25
bob bob_1 bob bob/p1 1e-1
bob bob_1 ann ann/p1 0.125
"""
#: As ``bob bio pipeline simple`` writes it; only a probe has a session.
CSV = """probe_template_id,probe_subject_id,probe_gender,probe_session,bio_ref_template_id,\
bio_ref_subject_id,bio_ref_gender,score
ann/p1,ann,F,2,ann_1,ann,F,0.91
bob/p1,bob,M,2,ann_2,ann,F,-0.25
bob/p1,bob,M,2,bob_1,bob,M,1e-1
ann/p1,ann,F,2,bob_1,bob,M,0.125
"""


def test_four_columns(write, save):
    found = read_bob(write("scores-dev.txt", FOUR))
    made = save(found)
    assert made.files == ["dataset.json", "images.csv", "pairs.csv"]
    assert found.notes == []
    assert made.rows("images") == [
        ("model/ann", "ann"),
        ("ann/p1", "ann"),
        ("bob/p1", "bob"),
        ("model/bob", "bob"),
    ]
    assert made.header("pairs") == ["left", "right", "genuine", "score"]
    assert made.rows("pairs") == [
        ("model/ann", "ann/p1", "true", "0.91"),
        ("model/ann", "bob/p1", "false", "-0.25"),
        ("model/bob", "bob/p1", "true", "0.1"),
        ("model/bob", "ann/p1", "false", "0.125"),
    ]
    assert made.about["name"] == "scores-dev"
    assert made.about["imported"]["layout"] == "bob"


def test_five_columns(write, save):
    made = save(read_bob(write("scores-dev", FIVE), name="mine"))
    assert [row[0] for row in made.rows("pairs")] == [
        "model/ann_1",
        "model/ann_2",
        "model/bob_1",
        "model/bob_1",
    ]
    assert dict(made.rows("images")) == {
        "model/ann_1": "ann",
        "model/ann_2": "ann",
        "model/bob_1": "bob",
        "ann/p1": "ann",
        "bob/p1": "bob",
    }
    assert made.about["name"] == "mine"


def test_csv(write, save):
    """The pairs are those of five columns; what both sides have is an attribute."""
    found = read_bob(write("scores-dev.csv", CSV))
    (pairs,), (expected,) = found.pairs, read_bob(write("scores-dev", FIVE)).pairs
    assert pairs == expected
    made = save(found)
    assert made.header("images") == ["image_id", "identity", "gender"]
    assert sorted(made.rows("images")) == [
        ("ann/p1", "ann", "F"),
        ("bob/p1", "bob", "M"),
        ("model/ann_1", "ann", "F"),
        ("model/ann_2", "ann", "F"),
        ("model/bob_1", "bob", "M"),
    ]
    assert made.about["name"] == "scores-dev"
    data = made.load(embed=False)
    assert data.default_attribute == "gender"
    groups = data.groups("gender")
    assert [groups.names[code] for code in groups.left] == ["F", "F", "M", "M"]
    assert [groups.names[code] for code in groups.right] == ["F", "M", "M", "F"]


@pytest.mark.parametrize("key", ["probe_reference_id", "probe_key", "key"])
def test_csv_of_older_versions(write, key):
    text = CSV.replace("probe_template_id", key).replace("bio_ref_template", "bio_ref_reference")
    found = read_bob(write("scores-dev", text))
    assert found.images == read_bob(write("scores-dev.csv", CSV)).images


def test_csv_without_models_names_them_by_person(write):
    text = "probe_template_id,probe_subject_id,bio_ref_subject_id,score\np1,ann,ann,0.5\n"
    assert read_bob(write("s.csv", text)).images["image_id"].to_pylist() == ["model/ann", "p1"]


@pytest.mark.parametrize("unknown", ["", "None", "nan"])
def test_csv_with_unknown_attributes(write, unknown):
    found = read_bob(write("s.csv", CSV.replace(",M,", f",{unknown},")))
    assert set(found.images["gender"].to_pylist()) == {"F", None}


def test_attacks_are_dropped_and_counted(write, save):
    """Who shows a picture of ann is not ann, though bob files the probe under her name."""
    lines = CSV.splitlines()
    text = "\n".join(
        [
            f"{lines[0]},probe_attack_type",
            *(f"{line}," for line in lines[1:]),
            "attack/1,ann,F,2,ann_1,ann,F,0.8,print",
            "p9,ann,F,2,ann_1,ann,F,nan,",
        ]
    )
    made = save(read_bob(write("s.csv", text)))
    assert len(made.rows("pairs")) == 4
    assert all("attack" not in row[0] for row in made.rows("images"))
    assert made.about["notes"] == [
        "1 of 6 pairs dropped: presentation attacks",
        "1 of 6 pairs dropped: no score (failures)",
    ]


def test_ids_may_hold_commas(write):
    text = "probe_template_id,probe_subject_id,bio_ref_subject_id,score\n"
    text += '"Ash, Ann/1","Ash, Ann","Ash, Ann",0.5\n'
    found = read_bob(write("s.csv", text)).images
    assert found["identity"].to_pylist() == ["Ash, Ann", "Ash, Ann"]
    found = read_bob(write("t.csv", "Ash,Ann Ash,Ann p1 0.5\n")).images
    assert found["identity"].to_pylist() == ["Ash,Ann", "Ash,Ann"]


def test_loads(write, save):
    """The scores are bob's to the last bit; folds, of which bob knows none, are drawn."""
    scores = np.random.default_rng(0).uniform(-1, 1, 40)
    people = [f"c{i % 10}" for i in range(40)]
    lines = [
        f"{who} {who if i < 20 else people[i - 1]} {i} {score!r}"
        for i, (who, score) in enumerate(zip(people, scores.tolist(), strict=True))
    ]
    table = write(
        "people.csv", "identity,gender\n" + "".join(f"c{i},{'FM'[i % 2]}\n" for i in range(10))
    )
    data = save(read_bob(write("s", "\n".join(lines)), attributes=table)).load(embed=False)
    np.testing.assert_array_equal(data.scores, scores)
    assert data.genuine.tolist() == [i < 20 for i in range(40)]
    assert data.default_attribute == "gender"
    assert data.drawn_folds


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: "\n" + text.replace("\n", "\n \n"),
        lambda text: text.replace(" ", "\t").replace(",", ", "),
        lambda text: text.rstrip("\n"),
    ],
    ids=["Windows line ends", "BOM", "blank lines", "tabs, blanks", "no last line end"],
)
@pytest.mark.parametrize("plain", [FOUR, FIVE, CSV], ids=["four", "five", "CSV"])
def test_other_ways_to_write_it(write, plain, change):
    expected = read_bob(write("a", plain))
    found = read_bob(write("b", change(plain)))
    assert found.images == expected.images
    assert list(found.pairs) == list(expected.pairs)
    assert found.notes == []


@pytest.mark.parametrize("failure", ["nan", "NaN", "-nan"])
def test_failures_are_dropped_and_counted(write, save, failure):
    made = save(read_bob(write("s", FOUR + f"ann cat cat/p1 {failure}\n")))
    assert len(made.rows("pairs")) == 4
    assert all("cat" not in row for row in made.rows("images"))
    assert made.about["notes"] == ["1 of 5 pairs dropped: no score (failures)"]


def test_nothing_but_failures(write, refused):
    path = write("s", "ann ann p1 nan\nann bob p2 nan\n")
    refused(lambda: read_bob(path), str(path), "no usable pair is left", "2 of 2 pairs dropped")
    table = write("people.csv", "identity,gender\nann,F\n")
    refused(lambda: read_bob(path, attributes=table), "no usable pair is left")


def test_scores_of_another_range(write, save):
    found = read_bob(write("s", "ann ann p1 87.5\nann bob p2 -3\n"))
    assert found.notes == [
        (
            "scores lie between -3 and 87.5, not within [-1, 1]: "
            "use --score-range LOW,HIGH with every command"
        )
    ]
    data = save(found).load(embed=False, score_range=(-10, 100))
    assert data.scores.tolist() == [87.5, -3]


def test_scores_at_the_ends_of_the_range(write):
    assert read_bob(write("s", "ann ann p1 1\nann bob p2 -1.0\n")).notes == []


@pytest.mark.parametrize("name", ["007", "1.0", "true", "inf"])
def test_names_stay_what_they_are(write, save, name):
    """A client may be called anything: no name is read as a number."""
    text = f"{name} {name} p1 0.5\n{name} b p2 0.1\nb b p2 0.9\n"
    data = save(read_bob(write("s", text))).load(embed=False)
    assert data.images.identity.names == tuple(sorted([name, "b"]))
    assert data.images.identity.codes.min() == 0


# -------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FIVE + "bob bob_1 cat cat/p1\n", ("line 5", "expected 5 fields", "found 4", "bob")),
        (FOUR + "bob bob_1 cat cat/p1 0.1\n", ("line 5", "expected 4 fields", "found 5", "bob")),
        ("ann ann 0.5\n", ("line 1", "expected 4 or 5 fields", "found 3", "bob")),
        ("a b,c 0.5\n", ("line 1", "expected 4 or 5 fields", "found 3", "CSV with its header")),
        ("a b c d e f\n", ("line 1", "expected 4 or 5 fields", "found 6")),
        ("a b c x\n", ("line 1", "expected a score", "'x'", "correct or remove")),
        (FOUR + "\na a c inf\n", ("line 6", "expected a score", "'inf'", "correct or remove")),
        ("a a c -Infinity\n", ("line 1", "'-Infinity'")),
        ("a a c 1e400\n", ("line 1", "'1e400'")),
        ("a a c 0,5\n", ("line 1", "'0,5'")),
        (FIVE + "cat ann_1 cat cat/p1 0.1\n", ("line 5", "model/ann_1", "ann and cat", "corr")),
        (FOUR + "ann cat ann/p1 0.1\n", ("line 5", "ann/p1", "ann and cat", "correct one")),
        ("", ("empty", "copy it again")),
        ("\n \n", ("empty", "copy it again")),
        (b"BZh91AY&SY\xff\xfe\x00", ("as text", "copy it again")),
    ],
)
def test_bad_file(write, refused, text, words):
    path = write("scores-dev", text)
    refused(lambda: read_bob(path), str(path), *words)


HEADER = CSV.partition("\n")[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{HEADER}\n", ("no usable pair is left",)),
        ("a,b,c,0.5\n", ("line 1", "one column 'probe_template_id'", "a, b, c", "as bob wrote")),
        (CSV.replace("probe_subject", "who"), ("line 1", "'probe_subject_id'", "who_id", "as bob")),
        (CSV.replace("bio_ref_subject", "who"), ("line 1", "'bio_ref_subject_id'", "as bob")),
        (CSV.replace("score", "similarity"), ("line 1", "'score'", "similarity", "as bob")),
        (CSV.replace("gender", "a+b"), ("'a+b'", "rename")),
        (CSV + "p,ann,F,2,ann_1,ann,0.5\n", ("line 6", "expected 8 fields", "found 7", "remove")),
        (CSV + "p,ann,F,2,ann_1,ann,F,x\n", ("line 6", "expected a score", "'x'", "remove")),
        (CSV + "p,ann,F,2,ann_1,ann,F,\n", ("line 6", "column 'score': empty", "fill it in")),
        (CSV + ",ann,F,2,ann_1,ann,F,1\n", ("line 6", "'probe_template_id': empty", "fill")),
        (CSV + "p,,F,2,ann_1,ann,F,1\n", ("line 6", "'probe_subject_id': empty", "fill")),
        (
            CSV + "p,cat,F,2,ann_1,cat,F,1\n",
            ("line 6", "more than one identity (ann and cat)"),
        ),
        (
            CSV + "p,ann,F,2,ann_1,ann,M,1\n",
            ("line 6", "more than one gender (F and M)", "corr"),
        ),
        (CSV + 'p,"ann,F,2,ann_1,ann,M,1\n', ("cannot be read as CSV", "copy it again")),
    ],
)
def test_bad_csv(write, refused, text, words):
    path = write("scores-dev.csv", text)
    refused(lambda: read_bob(path), str(path), *words)


def test_no_file(tmp_path, refused):
    refused(lambda: read_bob(tmp_path / "none"), "none", "no such", "check")
    refused(lambda: read_bob(tmp_path), str(tmp_path), "found a folder", "give the file")
