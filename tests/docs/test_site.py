"""The site: built strictly, whole, readable on a phone and without a network."""

from __future__ import annotations

import html
import itertools
import json
import os
import re
import subprocess
import sys
from functools import cache
from urllib.parse import unquote, urlsplit

import pytest

from pages.commands import manuals, page_of, title_of
from pages.parsing import ROOT, Page, every_page
from pages.site import MODULES, symbols
from tests.browser.test_pages import AXE

pytest.importorskip("mkdocs")
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1265, "height": 900}  # 1,280 less a scrollbar


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
    heading, _, below = page.partition(f'id="{symbol.home}"')
    assert "<h1" in heading[-10:]
    assert html.escape(symbol.statement) in re.sub(r"<[^>]+>", "", below.partition("<div")[0])
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
            linked = "/" in term and section.title == "See also"
            assert (title_of(term) if linked else term) in page
        for _, command in section.examples:
            assert " ".join(command.split()) in page


@pytest.mark.parametrize("manual", manuals(), ids=lambda m: m.name)
def test_every_option_is_code(site, manual):
    file = page_of(manual.name).replace(".md", ".html")
    page = text_of(site / "reference" / "commands" / file)
    article = page.partition("<article")[2].partition("</article>")[0]
    words = re.sub(r"<[^>]+>", "", re.sub(r"<code.*?</code>", "", article, flags=re.DOTALL))
    assert not re.search(r"--[a-z]|\\", words)


def test_the_gallery_is_in_the_order_of_its_cards(site):
    cards = re.findall(r'<strong><a href="([\w-]+\.html)"', text_of(site / "gallery/index.html"))
    assert len(cards) > 10
    for name, after in itertools.pairwise(cards):
        page = text_of(site / "gallery" / name)
        assert f'href="{after}" class="md-footer__link md-footer__link--next"' in page


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
    for symbol in symbols():  # a name and its page are one
        titles = [e["title"] for e in index["docs"] if e["location"] == symbol.page[:-3] + ".html"]
        assert len(titles) == 1
        assert titles[0].startswith(symbol.name)


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


def search(page, words):
    """Type words into the search; return the addresses that it finds, page by page."""
    page.locator("[data-md-component=search-query]").click()
    page.locator(".md-search-result__meta", has_text="Type to start searching").wait_for()
    page.locator("[data-md-component=search-query]").press_sequentially(words)
    page.locator(".md-search-result__meta", has_text="matching document").wait_for()
    links = page.locator(".md-search-result__item > .md-search-result__link")
    return links.evaluate_all("all => all.map(a => a.href)")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("predictive equality", "explanation/fairness.html"),
        ("beta calibration", "reference/python/faircal.BetaCalibrator.html"),
        ("forty people", "explanation/pitfalls.html"),
        ("faircal threshold", "reference/commands/threshold.html"),
        ("threshold group", "how-to/threshold.html"),
        ("threshold group", "reference/commands/threshold.html"),
        ("prior", "how-to/prior.html"),
        ("FairCal", "reference/python/faircal.FairCal.html"),
        ("FairCal n_clusters", "reference/python/faircal.FairCal.html"),
        ("FairCalError", "reference/python/faircal.FairCalError.html"),
        ("audit", "reference/commands/audit.html"),
        ("own network", "how-to/own-network.html"),
        ("onnx", "how-to/onnx.html"),
        ("shift_prior", "reference/python/faircal.shift_prior.html"),
        ("columns", "reference/formats.html"),
        ("threads", "decisions/0019-compute.html"),
    ],
)
def test_search_finds(visit, words, expected):
    page = visit("index.html", viewport=DESK)
    found = search(page, words)
    assert any(expected in link for link in found[:3]), found[:8]
    page.locator(f'.md-search-result__link[href*="{expected}"]').first.click()
    page.wait_for_url(f"**/{expected}*")


LOOKED_AT = (
    "index.html",
    "gallery/index.html",
    "how-to/threshold.html",
    "tutorials/classifier.html",
    "explanation/faircal.html",
    "reference/glossary.html",
    "reference/commands/threshold.html",
    "reference/python/faircal.FairCal.html",
)


def serious(page, part="html"):
    """What axe-core finds of serious or critical impact, without a look at style sheets' files."""
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("part => axe.run(part, {preload: false})", part)
    assert "color-contrast" in {rule["id"] for rule in found["passes"] + found["violations"]}
    return [
        f"{rule['id']}: {node['html'][:200]}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(visit, site, scheme):
    page = visit("index.html", viewport=DESK, color_scheme=scheme)
    for name in LOOKED_AT:
        page.goto((site / name).as_uri())
        assert serious(page) == [], name
    search(page, "threshold")
    page.wait_for_timeout(500)  # colours change slowly
    assert serious(page, ".md-search__output") == []


def test_the_tab_key_stops_nowhere_blindly(visit):
    page = visit("index.html", viewport=DESK)
    page.locator("[data-md-component=search-query]").wait_for()
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "query":
            break
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className").startswith("md-tabs__link")


def test_output_of_a_hundred_characters_fits(visit):
    page = visit("how-to/threshold.html", viewport=DESK)
    block = page.locator(".language-text pre > code").first
    block.evaluate("e => { e.textContent = 'x'.repeat(100); }")
    assert block.evaluate("e => e.scrollWidth - e.clientWidth") == 0
    assert page.locator(".language-text .md-code__nav:visible").count() == 0
    assert page.locator(".language-sh .md-code__nav:visible").count() > 0


def test_names_of_options_are_not_cut(visit):
    page = visit("reference/commands/threshold.html", viewport=PHONE, is_mobile=True)
    names = page.locator("td:first-child .whole")
    assert names.count() > 10
    assert names.evaluate_all("all => all.every(e => e.getClientRects().length === 1)")
    assert page.locator(".md-code__nav:visible").count() == 0


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
