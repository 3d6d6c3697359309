"""``faircal import``: each layout from the command line, as its owners ship it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import faircal

LAYOUTS = ("rfw", "bfw", "ijbc", "lfw", "folder", "bob")
BFW_HEADER = "fold,p1,p2,label,id1,id2,att1,att2,vgg16,resnet50,senet50,a1,a2,g1,g2,e1,e2\n"
BFW_ROWS = (
    "1,asian_females/n1/1.jpg,asian_females/n1/2.jpg,1,n1,n1,asian_females,asian_females,"
    "0.9,0.8,0.7,AF,AF,F,F,A,A\n"
    "2,asian_females/n1/1.jpg,white_males/n2/1.jpg,0,n1,n2,asian_females,white_males,"
    "0.1,0.2,0.3,AF,WM,F,M,A,W\n"
)
BFW = "bfw/bfw-v0.1.5-datatable.csv"
RFW = "rfw/test/txts/African/African_pairs.txt"
MATCHES = "ijbc/protocols/ijbc_11_covariate_matches.csv"
TEMPLATES = "ijbc/protocols/ijbc_11_covariate_probe_reference.csv"
FILES = {
    RFW: "m.0a\t1\t2\nm.0a\t1\tm.0b\t1\n" * 10,
    "rfw/test/data/African/m.0a/m.0a_0001.jpg": "",
    "rfw/test/data/African/m.0a/m.0a_0002.jpg": "",
    "rfw/test/data/African/m.0b/m.0b_0001.jpg": "",
    BFW: BFW_HEADER + BFW_ROWS,
    "bfw/asian_females/n1/1.jpg": "",
    "bfw/asian_females/n1/2.jpg": "",
    "bfw/white_males/n2/1.jpg": "",
    TEMPLATES: "TEMPLATE_ID,SUBJECT_ID,FILENAME,SKINTONE,GENDER\n"
    + "".join(f"{t},{t // 2},img/{t}.jpg,{t // 2 % 6 + 1},{t // 2 % 2}\n" for t in range(40)),
    MATCHES: "".join(f"{t},{t + 1}\n" for t in range(0, 40, 2)) + "0,39\n",
    **{f"ijbc/images/img/{t}.jpg": "" for t in range(40)},
    "lfw/pairs.txt": "1\t1\nA_B\t1\t2\nA_B\t1\tC_D\t1\n",
    "lfw/people.txt": "1\n2\nA_B\t2\nC_D\t1\n",
    "lfw/lfw/A_B/A_B_0001.jpg": "",
    "lfw/lfw/A_B/A_B_0002.jpg": "",
    "lfw/lfw/C_D/C_D_0001.jpg": "",
    "folder/ann/1.jpg": "",
    "folder/bob/1.JPG": "",
    "bob": "a a p1 0.5\na b p2 0.1\n",
    "people.csv": "identity,gender\nA_B,F\nC_D,M\nann,F\nbob,M\na,F\nb,M\n",
}
#: Images, pairs and genuine ones of each source.
COUNTS = {
    "rfw": (3, 20, 10),
    "bfw": (3, 2, 1),
    "ijbc": (40, 20, 20),
    "lfw": (3, 2, 1),
    "folder": (2, None, None),
    "bob": (3, 2, 1),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """One source of each layout; the working folder while the test runs."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


# ------------------------------------------------------------------------- done well


@pytest.mark.parametrize("layout", LAYOUTS)
def test_path_on_standard_output(layout, here, run_here):
    done = run_here(["import", layout, layout, "--out", "made"])
    assert done.code == 0
    assert done.out == "made\n"
    images, pairs, genuine = COUNTS[layout]
    last = done.err.splitlines()[-1]
    assert f"{images} images" in last
    if pairs is None:
        assert last.endswith("no pairs: make them with 'faircal pairs'")
    else:
        assert last.endswith(f"{pairs} pairs ({genuine} genuine)")
    assert "images.csv" in names("made")
    assert [name for name in names(".") if name.startswith(".")] == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_json(layout, here, run_here):
    done = run_here(["import", layout, layout, "--out", "made", "--json"])
    assert done.code == 0
    said = json.loads(done.out)
    images, pairs, genuine = COUNTS[layout]
    counts = {"images": images}
    if pairs is not None:
        counts |= {"pairs": pairs, "genuine": genuine}
    notes = said.pop("notes")
    assert said == {"folder": "made", **counts}
    assert notes == json.loads(Path("made/dataset.json").read_text())["notes"]
    assert done.err.splitlines() == notes


@pytest.mark.parametrize("layout", LAYOUTS)
def test_help_has_an_example(layout, run_here):
    done = run_here(["import", layout, "--help"])
    assert done.code == 0
    assert f"\n  faircal import {layout} " in done.out.partition("\nExamples:\n")[2]
    assert "--out" in done.out
    assert "SOURCE" in done.out


def test_help_lists_the_layouts(run_here):
    text = run_here(["import", "--help"]).out
    assert all(f"  {layout} " in text for layout in LAYOUTS)
    assert "\n  faircal import rfw" in text


@pytest.mark.parametrize("layout", ["rfw", "bfw", "ijbc", "lfw"])
def test_without_pictures(layout, here, run_here):
    for path in here.rglob("*.jpg"):
        path.unlink()
    done = run_here(["import", layout, layout, "--out", "made"])
    assert done.code == 2
    assert "--no-pictures" in done.err
    assert not Path("made").exists()
    assert run_here(["import", layout, layout, "--out", "made", "--no-pictures"]).code == 0
    assert "pictures" not in json.loads(Path("made/dataset.json").read_text())


def test_rfw_options(here, run_here):
    words = ["import", "rfw", "rfw", "--out"]
    run_here([*words, "five"])
    run_here([*words, "ten", "--folds", "10"])
    folds = []
    for name in ("five", "ten"):
        np.save(f"{name}/embeddings.npy", np.eye(3, dtype=np.float32) + 0.1)
        folds.append(list(faircal.load(name).fold_names))
    assert folds == [list(range(1, 6)), list(range(1, 11))]


def test_bfw_scores(here, run_here):
    done = run_here(["import", "bfw", BFW, "--score", "senet50", "--out", "made"])
    assert done.code == 0
    data = faircal.load("made")
    assert data.scores.tolist() == [0.7, 0.3]
    assert data.default_attribute == "att"


def test_ijbc_options(here, run_here):
    words = ["import", "ijbc", "ijbc", "--out"]
    run_here([*words, "one", "--seed", "1"])
    run_here([*words, "again", "--seed", "1"])
    run_here([*words, "two", "--seed", "2"])
    one, again, two = (Path(name, "images.csv").read_bytes() for name in ("one", "again", "two"))
    assert one == again
    assert one != two
    assert json.loads(Path("one/dataset.json").read_text())["imported"]["seed"] == 1


@pytest.mark.parametrize("layout", ["lfw", "folder", "bob"])
def test_attributes(layout, here, run_here):
    done = run_here(["import", layout, layout, "--attributes", "people.csv", "--out", "made"])
    assert done.code == 0
    assert '"gender"' in Path("made/images.csv").read_text().splitlines()[0]


@pytest.mark.parametrize("layout", ["folder", "bob"])
def test_name(layout, here, run_here):
    done = run_here(["import", layout, layout, "--name", "Mine", "--out", "made"])
    assert done.err.splitlines()[-1].startswith("Mine: ")
    assert json.loads(Path("made/dataset.json").read_text())["name"] == "Mine"


def test_check_takes_what_was_imported(here, run_here):
    """Scores make a dataset at once; the rest needs embeddings."""
    run_here(["import", "bob", "bob", "--attributes", "people.csv", "--out", "made"])
    done = run_here(["check", "made"])
    assert "gender" in done.out


# ------------------------------------------------------------------------- bad input


def rewrite(name, content):
    return lambda: Path(name).write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )


BAD = {
    "no such source": ("rfw nowhere", None, ("nowhere: no such", "check the path")),
    "another folder": ("rfw folder", None, ("test/txts or txts", "owners")),
    "RFW line": ("rfw rfw", rewrite(RFW, "m.0a\t1\n"), ("African_pairs.txt, line 1", "remove")),
    "RFW no text": ("rfw rfw", rewrite(RFW, b"\xff\xfe"), ("African_pairs.txt", "copy it again")),
    "RFW empty": ("rfw rfw", rewrite(RFW, ""), ("African_pairs.txt", "empty file", "copy")),
    "BFW column": ("bfw bfw --score sphereface", None, ("'sphereface' is missing", "rename")),
    "BFW pickle": ("bfw bfw.pkl", rewrite("bfw.pkl", b"x"), ("bfw.pkl", "pickle", "CSV")),
    "BFW label": (
        "bfw bfw",
        rewrite(BFW, BFW_HEADER + BFW_ROWS.replace(",0,n1", ",maybe,n1")),
        ("row 2", "'maybe'", "correct or remove"),
    ),
    "BFW empty": ("bfw bfw", rewrite(BFW, ""), (BFW, "export it again")),
    "IJB-C fields": ("ijbc ijbc", rewrite(MATCHES, "0,1\n2,3\n4,5,6\n"), (MATCHES, "3", "two")),
    "IJB-C id": ("ijbc ijbc", rewrite(MATCHES, "0,1\n2,x\n"), (MATCHES, "2", "x")),
    "IJB-C no id": ("ijbc ijbc", rewrite(MATCHES, "0,1\n2,\n"), (MATCHES, "copy")),
    "IJB-C none left": ("ijbc ijbc", rewrite(MATCHES, "90,91\n"), ("no usable pair", "90")),
    "LFW counts": (
        "lfw lfw",
        rewrite("lfw/pairs.txt", "2\t1\nA_B\t1\t2\nA_B\t1\tC_D\t1\n"),
        ("pairs.txt", "expected 4 pairs", "found 2", "copy"),
    ),
    "LFW people": ("lfw lfw", rewrite("lfw/people.txt", "x"), ("people.txt, line 1", "'x'")),
    "attributes": (
        "lfw lfw --attributes people.csv",
        rewrite("people.csv", "identity,g\nA_B,F\nA_B,M\n"),
        ("people.csv", "'A_B'", "a row of its own"),
    ),
    "no attributes": ("lfw lfw --attributes nothing.csv", None, ("nothing.csv: no such", "check")),
    "no photos": ("folder people.csv", None, ("people.csv", "sub-folder for each person")),
    "bob fields": ("bob bob", rewrite("bob", "a b\n"), ("bob, line 1", "4 or 5 fields")),
    "bob score": ("bob bob", rewrite("bob", "a a p x\n"), ("bob, line 1", "'x'", "remove")),
    "bob failures": ("bob bob", rewrite("bob", "a a p nan\n"), ("no usable pair", "failures")),
    "layout": ("rwf rfw", None, ("rwf", "see 'faircal import --help'")),
    "folds": ("rfw rfw --folds 7", None, ("--folds", "see 'faircal import rfw --help'")),
    "seed": ("ijbc ijbc --seed -1", None, ("--seed", "see 'faircal import ijbc --help'")),
    "option": ("folder folder --no-pictures", None, ("--no-pictures", "--help")),
}


@pytest.mark.parametrize(("command", "spoil", "words"), BAD.values(), ids=BAD)
def test_one_line_and_nothing_written(command, spoil, words, here, run_here):
    if spoil is not None:
        spoil()
    before = names(here)
    done = run_here(["import", *command.split(), "--out", "made"])
    assert done.code == 2
    assert done.out == ""
    assert len(done.err.splitlines()) == 1
    assert done.err.startswith("faircal: ")
    for word in words:
        assert word in done.err
    assert names(here) == before


@pytest.mark.parametrize("layout", LAYOUTS)
def test_out_is_needed(layout, here, run_here):
    done = run_here(["import", layout, layout])
    assert done.code == 2
    assert "--out" in done.err
    assert len(done.err.splitlines()) == 1


def test_no_layout(run_here):
    done = run_here(["import"])
    assert done.code == 2
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_full_folder_is_refused(layout, here, run_here):
    Path("made").mkdir()
    Path("made/mine.txt").write_text("mine")
    done = run_here(["import", layout, layout, "--out", "made"])
    assert done.code == 2
    assert done.err == "faircal: made: there is something already; choose a new folder\n"
    assert names("made") == ["mine.txt"]
    assert Path("made/mine.txt").read_text() == "mine"


def test_a_full_folder_is_refused_before_anything_is_read(here, run_here):
    """Reading may take minutes, and is for nothing."""
    Path("made").mkdir()
    Path("made/mine.txt").write_text("mine")
    Path(RFW).write_text("not even a pair list")
    assert "there is something already" in run_here(["import", "rfw", "rfw", "--out", "made"]).err


@pytest.mark.parametrize("target", ["people.csv", "people.csv/made"])
def test_a_file_in_the_way(target, here, run_here):
    done = run_here(["import", "bob", "bob", "--out", target])
    assert done.code == 2
    assert "people.csv" in done.err
    assert Path("people.csv").read_text() == FILES["people.csv"]


@pytest.mark.parametrize("target", [".", "link"])
def test_odd_targets(target, here, run_here, monkeypatch):
    """The folder one is in, when it is empty, and a link to an empty folder."""
    Path("empty").mkdir()
    if target == "link":
        Path("really").mkdir()
        Path("empty/link").symlink_to(here / "really")
    monkeypatch.chdir("empty")
    done = run_here(["import", "bob", "../bob", "--out", target])
    assert done.code in (0, 2), done.err
    assert [name for name in names(".") if name.startswith(".")] == []


# ---------------------------------------------------------------- as a process of its own


def test_as_a_process(here, run_command):
    done = run_command("import", "rfw", here / "rfw", "--out", here / "made", cwd=here)
    assert done.stdout == f"{here / 'made'}\n"
    assert done.stderr.splitlines()[-1] == "RFW: 3 images, 20 pairs (10 genuine)"


def test_a_bad_line_as_a_process(here, run_command):
    """Nothing but one line, from no thread or callback either."""
    (here / MATCHES).write_text("0,1\n2,3\n4,5,6\n")
    done = run_command("import", "ijbc", here / "ijbc", "--out", here / "made", code=2)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "matches.csv" in done.stderr
    assert not (here / "made").exists()
