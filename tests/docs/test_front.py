"""The README and the pages of no folder do what they show; what is not run is known."""

from __future__ import annotations

import re

import pytest

from pages.parsing import ROOT, Page, every_page
from tests.docs.running import FOLDERS, check, programs

#: Pages with commands that no test can run: what installs faircal, and the tests themselves.
NOT_RUN = {"README.md", "docs/install.md"}


@pytest.mark.parametrize("path", programs())
def test_page(path, tmp_path, tools):
    check(path, tmp_path, tools)


def test_no_page_is_left_out():
    found = [each.values[0] for folder in (None, *FOLDERS) for each in programs(folder)]
    assert sorted(found) == sorted(p for p in every_page() if Page.read(p).is_program)
    assert len(found) > 40


def test_commands_that_are_not_run_are_those_we_know():
    texts = {}
    for path in every_page():
        shown = [block.text for block in Page.read(path).blocks if block.language == "console"]
        if shown:
            texts[path.relative_to(ROOT).as_posix()] = "".join(shown)
    assert texts.keys() <= NOT_RUN
    targets = re.findall(r"^\$ make (\w+)", "".join(texts.values()), flags=re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert {"demo", "test"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    extras = re.findall(r"\[([\w,]+)\]", texts["docs/install.md"])
    known = (ROOT / "pyproject.toml").read_text("utf-8")
    for extra in ",".join(extras).split(","):
        assert re.search(rf"^{extra} = \[", known, flags=re.MULTILINE), extra


@pytest.mark.parametrize("path", every_page(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_pictures_have_words(path):
    for image in Page.read(path).images:
        assert len(image.alt.split()) >= 4, image.target
        assert (path.parent / image.target).exists(), image.target


def test_links_of_the_readme_lead_somewhere():
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "ARCHITECTURE.md", "ROADMAP.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text("utf-8")):
            assert (ROOT / target).exists(), (name, target)


def test_citation_is_of_this_version():
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    version = (ROOT / "src" / "faircal" / "_version.py").read_text("utf-8")
    assert re.search(r"^version: (.+)$", text, flags=re.MULTILINE)[1] in version


def test_methods_of_the_readme_are_the_methods():
    from faircal.methods import METHODS

    table = (ROOT / "README.md").read_text("utf-8").partition("## Methods")[2]
    assert re.findall(r"^\| `(\w+)`", table, flags=re.MULTILINE) == list(METHODS)
