"""API keys: made, kept as hashes, compared, taken away."""

from __future__ import annotations

import hashlib
import hmac
import json
import stat

import pytest

from faircal._base.errors import DataError, ParameterError
from faircal.production.serving.access import KeyRing


@pytest.fixture
def path(tmp_path):
    return tmp_path / "keys.json"


@pytest.fixture
def ring(path):
    return KeyRing.at(path)


def test_a_key_is_known_by_its_hash_alone(ring, path):
    token = ring.add("gate 4", ["verify"])
    assert len(token) >= 43 + 4
    (line,) = json.loads(path.read_text())["keys"]
    assert line["name"] == "gate 4"
    assert line["scopes"] == ["verify"]
    assert line["sha256"] == hashlib.sha256(token.encode()).hexdigest()
    assert token not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["keys.json"]
    assert token not in repr(KeyRing.load(path).who(token))


def test_who_presents_a_key(ring, path):
    tokens = {
        name: ring.add(name, scopes) for name, scopes in (("a", ["verify"]), ("b", ["enrol"]))
    }
    in_use = KeyRing.load(path)
    assert {name: in_use.who(token).name for name, token in tokens.items()} == {"a": "a", "b": "b"}
    assert in_use.who(tokens["b"]).scopes == {"enrol"}
    wrong = ["", "x", tokens["a"][:-1], tokens["a"] + " ", tokens["a"].swapcase(), "é\ud800"]
    assert [in_use.who(each) for each in wrong] == [None] * len(wrong)


def test_the_hash_itself_opens_nothing(ring, path):
    ring.add("a", ["admin"])
    assert ring.who(json.loads(path.read_text())["keys"][0]["sha256"]) is None


def test_every_key_is_compared_in_constant_time(ring, monkeypatch):
    tokens = [ring.add(name, ["verify"]) for name in "abc"]
    compared = []
    compare = hmac.compare_digest
    monkeypatch.setattr(
        "faircal.production.serving.access.hmac.compare_digest",
        lambda *both: compared.append(both) or compare(*both),
    )
    ring.who(tokens[0])
    assert len(compared) == 3


def test_an_admin_may_do_everything_others_what_they_are_for(ring):
    admin = ring.who(ring.add("boss", ["admin"]))
    gate = ring.who(ring.add("gate", ["verify", "enrol"]))
    assert [admin.may(scope) for scope in ("verify", "enrol", "admin")] == [True, True, True]
    assert [gate.may(scope) for scope in ("verify", "enrol", "admin")] == [True, True, False]


def test_a_change_of_the_file_is_seen_by_those_that_run(ring, path):
    token = ring.add("a", ["verify"])
    running = KeyRing.load(path)
    assert running.who(token)
    other = KeyRing.load(path)
    later = other.add("b", ["verify"])
    other.remove("a")
    assert running.who(token) is None
    assert running.who(later).name == "b"


@pytest.mark.parametrize("damage", ["gone", "damaged", "open"])
def test_a_file_that_is_lost_in_use_lets_nobody_in(ring, path, damage):
    token = ring.add("a", ["verify"])
    running = KeyRing.load(path)
    if damage == "gone":
        path.unlink()
    elif damage == "damaged":
        path.write_text("{}")
    else:
        path.chmod(0o666)
    assert running.who(token) is None
    assert str(path) in running.fault


def test_names_are_given_once_and_scopes_are_known(ring):
    ring.add("a", ["verify"])
    with pytest.raises(ParameterError, match="there is a key 'a' already"):
        ring.add("a", ["verify"])
    with pytest.raises(ParameterError, match="no scope 'verfy'; did you mean verify"):
        ring.add("b", ["verfy"])
    with pytest.raises(ParameterError, match="a key needs a scope"):
        ring.add("b", [])
    for name in ("", "a\nb", "x" * 101):
        with pytest.raises(ParameterError, match="name of a key"):
            ring.add(name, ["verify"])
    with pytest.raises(ParameterError, match="no key 'c'"):
        ring.remove("c")


def content(**line):
    return json.dumps({"format": "faircal-keys", "version": 1, "keys": [line]})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"format": "faircal-keys", "version": 2, "keys": []}',
        content(),
        content(name="a", scopes=["root"], sha256="00" * 32),
        content(name="a", scopes=["verify"], sha256="00"),
        content(name="a", scopes=["verify"], sha256=7),
        content(name="", scopes=["verify"], sha256="00" * 32),
        content(name="a\0b", scopes=["verify"], sha256="00" * 32),
        "[" * 100_000,
        "\udcff",
    ],
)
def test_other_files_are_refused_in_one_line(path, text):
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    path.chmod(0o600)
    with pytest.raises(DataError, match="expected a file that 'faircal keys add' wrote"):
        KeyRing.load(path)


def test_a_file_that_others_may_write_is_refused(ring, path):
    ring.add("a", ["verify"])
    path.chmod(0o620)
    with pytest.raises(DataError, match="others may write it, and so make keys; run chmod 600"):
        KeyRing.load(path)


def test_a_file_that_is_not_there_is_one_clear_line(path):
    with pytest.raises(DataError, match="no such file"):
        KeyRing.load(path)


def test_a_file_that_can_not_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match="cannot write"):
        KeyRing.at(tmp_path / "file" / "keys.json").add("a", ["verify"])
