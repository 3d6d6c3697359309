"""``faircal card``, and what ``fit`` tells a model for it."""

from __future__ import annotations

import json

import faircal


def test_fit_tells_and_card_prints(world, run_here):
    words = ["fit", "faces", "--clusters", "2", "--out", "m.faircal"]
    told = ["--intended-use", "a door", "--limit", "no minors", "--limit", "no \x1b[2Jtwins"]
    assert run_here([*words, *told]).code == 0
    about = faircal.load_model("m.faircal").about_
    assert about.population is not None
    assert about.provenance.settings["n_clusters"] == 2
    assert about.provenance.settings["streamed"] is False
    done = run_here(["card", "m.faircal"])
    assert done.code == 0
    assert done.out.startswith("# Model card: FairCal\n")
    for expected in ("a door", "- no minors", "- no ?\\[2Jtwins", "| People | 8 |", "## File"):
        assert expected in done.out
    assert "\x1b" not in done.out


def test_a_streamed_fit_is_described_too(world, run_here):
    words = ["fit", "faces", "--method", "baseline", "--stream", "--out", "m.faircal"]
    assert run_here(words).code == 0
    told = faircal.load_model("m.faircal").about_.provenance
    assert told.settings["streamed"] is True
    assert told.counts["people"] == 8
    assert told.groups["gender"] == {"F": 12, "M": 12}


def test_files(world, run_here):
    for name in ("card.md", "card.html"):
        done = run_here(["card", "faircal.faircal", "--out", name])
        assert (done.code, done.out.strip()) == (0, name)
    assert (world / "card.md").read_text().startswith("# Model card")
    assert (world / "card.html").read_text().startswith("<!doctype html>")


def test_json(world, run_here):
    done = run_here(["card", "oracle.faircal", "--json"])
    facts = json.loads(done.out)
    assert facts["model"]["method"] == "oracle"
    assert facts["model"]["needs_attributes_in_use"] is True
    assert facts["file"]["bytes"] == (world / "oracle.faircal").stat().st_size
    assert facts["provenance"] is None


def test_wrong_use(world, run_here):
    (world / "bad.faircal").write_bytes(b"FAIRCAL\n" + bytes(100))
    cases = {
        ("none.faircal",): "no such file",
        ("bad.faircal",): "bad.faircal: damaged",
        ("faces",): "found a folder",
        ("faircal.faircal", "--out", "card.pdf"): "ends in .md or .html",
        ("faircal.faircal", "--out", "none/../faces"): "ends in .md or .html",
    }
    for words, expected in cases.items():
        done = run_here(["card", *words])
        assert done.code == 2
        assert expected in done.err
        assert len(done.err.splitlines()) == 1
        assert done.out == ""
