"""``faircal keys``: keys are printed once, listed without secrets, and removed."""

from __future__ import annotations

import json

import pytest

from faircal.production.serving.access import KeyRing


@pytest.fixture
def path(tmp_path):
    return tmp_path / "keys.json"


def test_a_key_is_made_listed_and_removed(run_here, path):
    done = run_here(["keys", "add", "gate 4", "--keys", str(path), "--scope", "verify, enrol"])
    assert done.code == 0, done.err
    token = done.out.strip()
    assert KeyRing.load(path).who(token).scopes == {"verify", "enrol"}
    assert token not in done.err
    assert "gate 4 may verify, enrol; the key is shown this once only" in done.err

    done = run_here(["keys", "list", "--keys", str(path)])
    assert "gate 4" in done.out
    assert "verify, enrol" in done.out
    assert token not in done.out

    done = run_here(["keys", "remove", "gate 4", "--keys", str(path)])
    assert done.code == 0, done.err
    assert KeyRing.load(path).who(token) is None


def test_machines_get_json(run_here, path):
    added = json.loads(run_here(["keys", "add", "a[b]", "--keys", str(path), "--json"]).out)
    assert added["scopes"] == ["verify"]
    assert KeyRing.load(path).who(added["key"]).name == "a[b]"
    (listed,) = json.loads(run_here(["keys", "list", "--keys", str(path), "--json"]).out)
    assert listed.keys() == {"name", "scopes", "created"}
    assert listed["name"] == "a[b]"
    assert "a[b]" in run_here(["keys", "list", "--keys", str(path)]).out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["add", "b", "--scope", "root"], "no scope 'root'"),
        (["add", "b", "--scope", ","], "a key needs a scope"),
        (["add", "a"], "there is a key 'a' already"),
        (["remove", "b"], "no key 'b'"),
    ],
)
def test_mistakes_are_one_line_and_change_nothing(run_here, path, words, expected):
    run_here(["keys", "add", "a", "--keys", str(path)])
    before = path.read_bytes()
    done = run_here(["keys", *words, "--keys", str(path)])
    assert done.code == 2
    assert expected in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert done.out == ""
    assert path.read_bytes() == before


def test_a_file_that_is_not_there_can_only_be_added_to(run_here, path):
    for words in (["list"], ["remove", "a"]):
        done = run_here(["keys", *words, "--keys", str(path)])
        assert done.code == 2
        assert "no such file" in done.err
