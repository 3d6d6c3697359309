"""The comparison with other libraries: every statement has a check, and the page says no more."""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

from studies.__main__ import main
from studies.libraries import inside, measuring, running
from studies.libraries.asking import AskingError, ask
from studies.libraries.claims import COLUMNS, LIBRARIES, NONE, Claim, Library, read
from studies.libraries.figures import tiny
from studies.libraries.page import OVERVIEW, PAGE, by_hand, filled, parts

ROWS = running.read(running.RESULTS)
CLAIMS = [row for row in ROWS if row["kind"] == "claim"]
FENCES = re.MULTILINE | re.DOTALL
HERE = [name for name in LIBRARIES if running.is_installed(read(name))]


def test_the_page_says_what_is_kept():
    text = PAGE.read_text("utf-8")
    assert text == filled(text, ROWS), "run python -m studies libraries --write"
    assert set(re.findall(r"<!-- libraries: ([\w-]+) -->", text)) == set(parts(ROWS))


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_claim_was_checked_as_it_stands_and_holds(name):
    library = read(name)
    kept = {row["claim"]: row for row in CLAIMS if row["library"] == name}
    assert list(kept) == [claim.key for claim in library.claims]
    for claim in library.claims:
        row = kept[claim.key]
        assert row["passed"], row["found"]
        assert (row["says"], row["cell"]) == (claim.text, dict(claim.cell))
        assert row["check"] == claim.check(name)
        assert "{" not in row["says"]


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_cell_of_the_overview_is_filled_by_one_claim(name):
    cells = [column for row in CLAIMS if row["library"] == name for column in row["cell"]]
    assert sorted(cells) == sorted(COLUMNS)
    assert sorted(column for columns in OVERVIEW.values() for column in columns) == sorted(COLUMNS)


def test_what_is_written_by_hand_names_nothing_that_was_not_checked():
    text = re.sub(r"^```.*?^```$", "", by_hand(PAGE.read_text("utf-8")), flags=FENCES)
    checked = " ".join(f"{row['says']} {row['check']}" for row in CLAIMS)
    for code in re.findall(r"`([^`]+)`", text):
        ours = code.startswith(("faircal", "FairCal", "python -m studies", "studies/", "--"))
        assert ours or re.search(rf"\b{re.escape(code)}\b", checked), code


def test_all_that_can_be_measured_was_and_figures_agree():
    found = {
        (row["name"], row["library"]): row["values"] for row in ROWS if row["kind"] == "measured"
    }
    assert set(found) == set(measuring.PARTS)
    for library in ("scikit-learn", "netcal"):
        assert all(each["apart"] < 1e-4 for each in found["maps", library]["maps"].values())
    assert found["rates", "fairlearn"]["apart"] == 0
    assert found["ks", "mapie"]["apart"] < 1e-8
    assert max(found["costs", "lir"]["apart"].values()) < 1e-12
    assert max(found["costs", "bob"]["apart"].values()) < 1e-12


@pytest.mark.parametrize("name", HERE)
def test_claims_about_what_is_installed_here_hold(name):
    failed = {
        row["claim"]: row["found"]
        for row in running.checked(name, sys.executable)[0]
        if not row.get("passed", True)
    }
    assert not failed


def test_rates_by_group_are_fairlearns():
    pytest.importorskip("fairlearn")
    parts_here = {("rates", "fairlearn"): measuring.PARTS["rates", "fairlearn"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measuring, "PARTS", parts_here)
        (row,) = measuring.measure({"fairlearn": sys.executable, "netcal": "not there"})
    assert row["values"]["apart"] == 0
    assert row["values"]["groups"] == 4


def library(*claims, distribution="click"):
    return Library("nothing", "Nothing", (distribution,), "", claims)


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        (Claim("there", has=("click.command", "click.Option.get_default")), True),
        (Claim("parameter", has=("click.echo(message)",)), True),
        (Claim("no such parameter", has=("click.echo(face)",)), False),
        (Claim("no such name", has=("click.command", "click.nothing")), False),
        (Claim("no such module", has=("click.nothing.at_all",)), False),
        (Claim("absent", lacks="cllr|isotonic"), True),
        (Claim("present, in other case", lacks="COMMAND"), False),
        (Claim("stated", states="Name: click"), True),
        (Claim("not stated", states="non-commercial research"), False),
        (Claim("read by hand", read="https://click.palletsprojects.com"), True),
    ],
    ids=lambda each: getattr(each, "key", None),
)
def test_kinds_of_check(claim, holds):
    (found,) = ask(sys.executable, library(claim), [claim])["found"].values()
    assert found["passed"] is holds, found


def test_what_can_not_be_imported_is_read(tmp_path, monkeypatch):
    """A package that needs another which is not there."""
    (tmp_path / "broken-1.0.dist-info").mkdir()
    meta = tmp_path / "broken-1.0.dist-info"
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (meta / "RECORD").write_text("broken/__init__.py,,\nbroken/part.py,,\nbroken/tests/t.py,,\n")
    (tmp_path / "broken" / "tests").mkdir(parents=True)
    (tmp_path / "broken" / "__init__.py").write_text("import not_there_at_all\n")
    source = "class Kind:\n    def __init__(self, size): ...\n    def method(self, deep): ...\n"
    (tmp_path / "broken" / "part.py").write_text(source)
    (tmp_path / "broken" / "tests" / "t.py").write_text("def spark(): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    claims = [
        Claim("class", has=("broken.part.Kind(size)",)),
        Claim("method", has=("broken.part.Kind.method(deep)",)),
        Claim("not", has=("broken.part.Kind(deep)",)),
        Claim("tests are not it", lacks="spark"),
    ]
    read_only = inside.Source(["broken"])
    found = [inside.checked(claim.question, read_only, None) for claim in claims]
    assert [each["passed"] for each in found] == [True, True, False, True]
    assert found[0]["found"] == "broken.part.Kind(size): read"


def test_an_interpreter_that_does_not_answer_is_told():
    with pytest.raises(AskingError, match="gave no answer"):
        ask(sys.executable, library(distribution="not-there-at-all"))


def test_claims_without_a_check_or_a_column_are_refused():
    with pytest.raises(ValueError, match="a way to check it"):
        Claim("empty", says="It is the best.")
    with pytest.raises(ValueError, match="expected columns"):
        Claim("column", cell={"beauty": "yes"}, lacks="x")


def test_a_statement_that_failed_is_not_on_the_page():
    row = {**CLAIMS[0], "library": "lir", "says": "It flies.", "cell": {"cllr": "wings"}}
    made = parts([{**row, "passed": False}])
    assert "flies" not in made["lir"]
    assert "wings" not in made["measuring"]
    made = parts([{**row, "passed": True}])
    assert "1. It flies." in made["lir"]
    assert "wings" in made["measuring"]


def test_a_statement_that_fails_is_kept_and_told(tmp_path, monkeypatch, capsys):
    kept, page = tmp_path / "results.jsonl", tmp_path / "page.md"
    page.write_text("<!-- libraries: faircal -->\n<!-- end -->\n")
    claims = (Claim("right", says="Yes.", has=("click.echo",)), Claim("wrong", lacks="echo"))
    monkeypatch.setattr(running, "RESULTS", kept)
    monkeypatch.setattr(running, "ENVIRONMENTS", tmp_path / "environments")
    monkeypatch.setattr(running, "library_of", lambda _: library(*claims))
    monkeypatch.setattr(running, "_here", lambda: {"faircal": sys.executable})
    monkeypatch.setattr(
        running, "write", lambda rows: page.write_text(filled(page.read_text(), rows))
    )
    assert main(["libraries"]) == 1
    assert "faircal, wrong: names like echo: " in capsys.readouterr().err
    passed = [json.loads(line).get("passed") for line in kept.read_text().splitlines()]
    assert passed == [None, True, False]
    assert "1. Yes." in page.read_text()
    installed = (tmp_path / "environments" / "faircal.txt").read_text().splitlines()
    assert f"click=={metadata.version('click')}" in installed


@pytest.mark.parametrize("given", ["lir", "lir=", "numpy=/usr/bin/python3"])
def test_interpreters_are_named_by_library(given, capsys):
    with pytest.raises(SystemExit):
        main(["libraries", "--python", given])
    assert "expected NAME=PATH" in capsys.readouterr().err


def test_differences_in_words():
    assert [tiny(x) for x in (0.0, 1e-16, 2.86e-9, 0.25)] == [
        "none",
        "rounding",
        "3 × 10⁻⁹",
        "0.25",
    ]
    assert NONE == "–"


@pytest.mark.parametrize("name", LIBRARIES)
def test_what_was_installed_is_kept_without_addresses(name):
    lines = (running.ENVIRONMENTS / f"{name}.txt").read_text("utf-8").splitlines()
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!-]+", line) for line in lines)
    (version,) = (row for row in ROWS if row["kind"] == "version" and row["library"] == name)
    for distribution, number in version["versions"].items():
        assert f"{distribution}=={number}".lower() in [line.lower() for line in lines]


def test_what_was_only_read_says_so():
    (row,) = (row for row in CLAIMS if row["claim"] == "server")
    assert "read by us, not by a program: <https://" in row["check"]


def test_every_package_of_a_library_has_its_version():
    assert "bob.bio.base 8.1.1, bob.bio.face" in parts(ROWS)["versions"]


def test_no_file_of_the_study_is_missing():
    claims = Path(running.HERE) / "claims"
    assert sorted(path.stem for path in claims.glob("*.toml")) == sorted(LIBRARIES)
    for name in LIBRARIES:
        for claim in read(name).claims:
            if claim.run is not None:
                probe = claim.check(name).rpartition("`probes/")[2].partition("`")[0]
                text = (claims.parent / "probes" / probe).read_text("utf-8")
                assert f"def {claim.run}(" in text
