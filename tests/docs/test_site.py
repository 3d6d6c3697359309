"""The site: built strictly, whole, readable on a phone and without a network."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from functools import cache
from urllib.parse import unquote, urlsplit

import pytest

from faircal.cli.contents import PAGES
from pages.commands import manuals, page_of
from pages.parsing import ROOT, Page, every_page
from pages.site import MODULES, symbols

pytest.importorskip("mkdocs")
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as ``make docs`` builds it, by a process that knows no way out."""
    folder = tmp_path_factory.mktemp("site")
    nowhere = {f"{kind}_proxy": "http://127.0.0.1:9" for kind in ("http", "https", "HTTP", "HTTPS")}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, **nowhere, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@cache
def text_of(path):
    return path.read_text("utf-8")


def pages_of(site):
    return sorted(site.rglob("*.html"))


def test_every_page_is_there(site):
    for path in every_page()[1:]:
        page = path.relative_to(ROOT / "docs").with_suffix(".html")
        assert (site / page).exists(), page


@pytest.mark.parametrize("symbol", symbols(), ids=lambda s: f"{s.module}.{s.name}")
def test_every_public_name_has_a_page(site, symbol):
    page = text_of(site / symbol.page.replace(".md", ".html"))
    assert f'id="{symbol.home}"' in page
    assert html.escape(symbol.statement) in page
    first = re.sub(r"[^a-z]", "", symbol.summary.lower())[:40]
    assert first in re.sub(r"<[^>]+>|&\w+;|[^a-z]", "", page.lower())


def test_names_that_pages_import_are_public():
    for path in every_page():
        for block in Page.read(path).blocks:
            for module in re.findall(r"^\s*from (faircal[\w.]*) import", block.text, re.MULTILINE):
                assert module in MODULES, (path.name, module)


@pytest.mark.parametrize("manual", manuals(), ids=lambda m: m.name)
def test_every_command_has_a_page(site, manual):
    file = page_of(manual.name).replace(".md", ".html")
    page = re.sub(r"<[^>]+>", "", text_of(site / "reference" / "commands" / file))
    page = " ".join(html.unescape(page).split())
    for section in manual.sections:
        for term, _ in section.rows:
            assert PAGES.get(term, term) in page
        for _, command in section.examples:
            assert " ".join(command.split()) in page


def test_links_lead_somewhere(site):
    anchors = {path: set(re.findall(r'\bid="([^"]+)"', text_of(path))) for path in pages_of(site)}
    for path in anchors:
        if path.name == "404.html":
            continue
        for target in re.findall(r'\b(?:href|src)="([^"]+)"', text_of(path)):
            parts = urlsplit(html.unescape(target))
            if parts.scheme or not (parts.path or parts.fragment):
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = there / "index.html" if there.is_dir() else there
            assert there.exists(), (path, target)
            if parts.fragment and there in anchors:
                found = unquote(parts.fragment)
                assert found in anchors[there] or found.startswith("__"), (path, target)


def test_nothing_is_fetched(site):
    loads = re.compile(
        r'<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)="(https?:)?//[^"]*"'
    )
    for path in pages_of(site):
        assert not loads.search(text_of(path)), path


def test_pictures_have_words(site):
    seen = 0
    for path in pages_of(site):
        for tag in re.findall(r"<img\b[^>]*>", text_of(path)):
            words = re.search(r'\balt="([^"]+)"', tag)
            assert words, (path.name, tag)
            seen += 1
    assert seen > 20


def test_search_knows_every_page(site):
    index = json.loads(text_of(site / "search" / "search_index.json"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    for path in every_page()[1:]:
        assert path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() in found


@pytest.fixture
def visit(browser, site):
    """Return a function that opens a page from disk; nothing may go wrong or be fetched."""
    faults, contexts = [], []

    def open_page(name, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on("console", lambda said: said.type == "error" and faults.append(said.text))
        page.on(
            "request",
            lambda asked: asked.url.startswith("http") and faults.append(f"asked: {asked.url}"),
        )
        page.goto((site / name).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("predictive equality", "explanation/fairness.html"),
        ("beta calibration", "reference/python/faircal.BetaCalibrator.html"),
        ("forty people", "explanation/pitfalls.html"),
        ("faircal threshold", "reference/commands/threshold.html"),
    ],
)
def test_search_finds(visit, words, expected):
    page = visit("index.html", viewport={"width": 1200, "height": 900})
    page.locator("[data-md-component=search-query]").click()
    page.locator(".md-search-result__meta", has_text="Type to start searching").wait_for()
    page.locator("[data-md-component=search-query]").press_sequentially(words)
    page.locator(".md-search-result__link").first.wait_for()
    found = page.eval_on_selector_all(".md-search-result__link", "all => all.map(a => a.href)")
    assert any(expected in link for link in found), found
    page.locator(f'.md-search-result__link[href*="{expected}"]').first.click()
    page.wait_for_url(f"**/{expected}*")


WIDE = """() => [...document.querySelectorAll(".md-content *")].filter(e => {
  const box = e.getBoundingClientRect();
  if (box.width === 0 || box.right <= innerWidth + 1) return false;
  for (let p = e; p; p = p.parentElement)
    if (["auto", "scroll", "hidden"].includes(getComputedStyle(p).overflowX)) return false;
  return true;
}).map(e => e.outerHTML.slice(0, 120))"""


def test_pages_fit_a_phone(visit, site):
    page = visit("index.html", viewport=PHONE, device_scale_factor=2, is_mobile=True)
    for path in every_page()[1:]:
        name = path.relative_to(ROOT / "docs").with_suffix(".html")
        page.goto((site / name).as_uri(), wait_until="domcontentloaded")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], name
        assert page.evaluate(WIDE) == [], name
        size = page.evaluate(
            "parseFloat(getComputedStyle(document.querySelector('article')).fontSize)"
        )
        assert size >= 15, name


def test_the_menu_of_a_phone_leads_to_the_tutorials(visit):
    page = visit("index.html", viewport=PHONE, is_mobile=True, has_touch=True)
    page.locator("label.md-header__button[for=__drawer]").tap()
    page.locator(".md-nav--primary label.md-nav__title[for=__nav_1]").tap()  # up, to all sections
    page.locator(".md-nav--primary a:visible", has_text="Tutorials").tap()
    page.wait_for_url("**/tutorials/index.html*")
    page.locator("article a", has_text="photos").first.tap()
    page.wait_for_url("**/tutorials/photos.html*")
