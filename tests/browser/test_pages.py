"""Reports as whole pages: nothing fetched, small screens, paper, no JavaScript, no mouse, axe."""

from __future__ import annotations

from pathlib import Path

import pytest

NAMES = ("benchmark", "reproduction", "audit", "hostile")
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "is_mobile": True,
    "has_touch": True,
    "device_scale_factor": 2,
}
AXE = Path(__file__).parent / "vendor/axe.min.js"
#: An A4 sheet less margins of 15 mm, in CSS pixels.
SHEET = {"width": 680, "height": 1009}


def serious(page, part="html"):
    """What axe-core finds of serious or critical impact, one line a fault."""
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("part => axe.run(part, {resultTypes: ['violations']})", part)
    assert len(found["passes"]) > 10  # it did look
    return [
        f"{violation['id']} ({violation['impact']}): {violation['help']}: {node['html'][:200]}"
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


def open_all(page):
    """Open whatever is folded."""
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")


def overflow(page):
    """By how many pixels the page is wider than its window, and what sticks out of it."""
    return page.evaluate(
        """() => {
          const room = innerWidth;
          const over = document.scrollingElement.scrollWidth - room;
          if (over <= 0) return null;
          const wide = (e) =>
            Math.max(e.getBoundingClientRect().right, e.scrollWidth) > room + 1;
          const inmost = [...document.body.querySelectorAll("*")].filter(
            (e) => wide(e) && ![...e.children].some(wide));
          return [over, ...inmost.slice(0, 5).map((e) => e.outerHTML.slice(0, 150))];
        }"""
    )


def cut_off(page):
    """Tables that are wider than where they stand and can't be scrolled to their end."""
    return page.evaluate(
        """() => [...document.querySelectorAll("table")].filter((table) => {
          if (!table.getClientRects().length) return false;
          for (let box = table.parentElement; box; box = box.parentElement)
            if (["auto", "scroll"].includes(getComputedStyle(box).overflowX))
              return box.getBoundingClientRect().right > innerWidth + 1;
          return table.getBoundingClientRect().right > innerWidth + 1;
        }).map((table) => table.outerHTML.slice(0, 150))"""
    )


def axe_finds_nothing(explorer):
    """Everything is open; and once more where the slider has moved."""
    open_all(explorer.page)
    for part in ("html", "#explorer"):
        found = serious(explorer.page, part)
        assert not found, "\n".join(found)
        explorer.move(0.7)


@pytest.mark.parametrize("name", NAMES)
def test_on_a_desk_it_opens_without_a_fault_and_axe_finds_none(explore, name):
    explorer, _, made = explore(name, figures=True)
    explorer.page.wait_for_load_state("networkidle")
    assert explorer.page.faults == []
    assert explorer.page.locator("#explorer").is_visible()
    assert made.path.stat().st_size < 5e6
    axe_finds_nothing(explorer)


@pytest.mark.parametrize("name", NAMES)
def test_it_fits_a_phone_and_axe_finds_no_fault(explore, name):
    explorer, *_ = explore(name, figures=True, **PHONE)
    for change in (lambda page: None, open_all):
        change(explorer.page)
        assert overflow(explorer.page) is None
        assert cut_off(explorer.page) == []
    axe_finds_nothing(explorer)


def test_a_fault_is_noticed(visit, tmp_path):
    """The recorder itself: an image from elsewhere, a script that fails, a word on the console."""
    spoilt = tmp_path / "spoilt.html"
    spoilt.write_text(
        "<img src=elsewhere.png><script>console.log('hm')</script><script>missing()</script>"
    )
    page = visit(spoilt)
    page.wait_for_load_state("networkidle")
    kinds = {fault.split(":")[0] for fault in page.faults}
    assert kinds == {"console", "error", "request"}
    page.faults.clear()


def test_axe_would_find_a_serious_fault(visit, report, tmp_path):
    """The scan itself: a slider that has lost its name."""
    page = visit(report("audit", figures=True).path)
    page.evaluate(
        """() => {
          const slider = document.querySelector("#threshold");
          ["aria-label", "aria-labelledby", "title"].forEach((a) => slider.removeAttribute(a));
          for (const label of [...slider.labels]) label.replaceWith(...label.childNodes);
        }"""
    )
    assert any("label" in fault for fault in serious(page))


def test_wide_tables_scroll_where_they_are(explore):
    explorer, *_ = explore("benchmark", figures=True, **PHONE)
    region = explorer.page.locator("[role=region]").filter(
        has=explorer.page.locator("#explorer-table")
    )
    last = explorer.page.locator("#explorer-table tbody tr").first.locator("td").last
    assert last.bounding_box()["x"] > 390
    region.focus()
    for _ in range(40):
        explorer.page.keyboard.press("ArrowRight")
    explorer.page.wait_for_function(
        "cell => cell.getBoundingClientRect().right <= innerWidth", arg=last.element_handle()
    )


def test_is_used_by_touch(explore):
    explorer, *_ = explore("benchmark", figures=True, **PHONE)
    page = explorer.page
    for control in page.locator("#explorer input, #explorer select, #explorer button").all():
        box = touchable(control)
        assert box["height"] >= 24, control.evaluate("e => e.outerHTML")
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    before = explorer.cells()
    explorer.slider.scroll_into_view_if_needed()
    box = explorer.slider.bounding_box()
    page.touchscreen.tap(box["x"] + 0.8 * box["width"], box["y"] + box["height"] / 2)
    assert explorer.cells() != before
    page.locator("#explorer input[name=method]").first.tap()
    assert len(explorer.methods()) == 4


def touchable(control):
    """The box of what a finger may hit: the control, with its label where that switches it."""
    return control.evaluate(
        """(control) => {
          const labels = control.matches("[type=checkbox], [type=radio]") ? control.labels : [];
          const boxes = [control, ...labels].map((e) => e.getBoundingClientRect());
          return boxes.reduce((a, b) => (b.height > a.height ? b : a)).toJSON();
        }"""
    )


def clipped(page):
    """Boxes that hide or scroll a part of what is in them, which paper can't show."""
    return page.evaluate(
        """() => [...document.querySelectorAll("main *")].filter((e) =>
          e.tagName !== "svg" && !e.classList.contains("unseen")
          && getComputedStyle(e).overflowX !== "visible"
          && e.clientWidth && e.scrollWidth > e.clientWidth + 1
        ).map((e) => e.outerHTML.slice(0, 150))"""
    )


@pytest.mark.parametrize("name", NAMES)
def test_prints(visit, report, name):
    page = visit(report(name, figures=True).path, viewport=SHEET)
    page.emulate_media(media="print")
    assert overflow(page) is None
    assert clipped(page) == []
    assert not page.evaluate(
        """() => [...document.querySelectorAll("details > :not(summary)")]
          .filter((e) => !e.checkVisibility({contentVisibilityAuto: true}))
          .map((e) => e.outerHTML.slice(0, 100))"""
    )
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert len(printed) > 20_000


@pytest.mark.parametrize("name", NAMES)
def test_without_javascript_the_rest_is_there(visit, report, name):
    with_it, without = (
        visit(report(name, figures=True).path, java_script_enabled=enabled)
        for enabled in (True, False)
    )
    for what in ("h2", "table", "svg, img"):
        selector = f":is({what}):not(#explorer *)"
        assert without.locator(selector).count() == with_it.locator(selector).count()
        assert without.locator(selector).first.is_visible()
    assert without.locator("#explorer").get_by_text("JavaScript").first.is_visible()


def test_a_reproduction_shows_published_numbers_claims_and_faces(visit, report):
    page = visit(report("reproduction", figures=True).path)
    text = page.inner_text("main")
    assert "paper 86.71" in text  # FairCal's AUROC on RFW, FaceNet (Webface)
    assert "FairCal has the highest AUROC" in text
    faces = page.locator("svg image")
    assert faces.count() >= 1
    sizes = faces.evaluate_all(
        "nodes => nodes.map((n) => { const b = n.getBBox(); return b.width * b.height; })"
    )
    assert min(sizes) > 100  # drawn, not blocked


class TestClassifier:
    """The page of a classifier: no explorer, no script, and everything else as on the others."""

    @pytest.fixture
    def path(self, report):
        return report("classifier", figures=True).path

    @pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])
    def test_opens_and_fits_without_a_fault_and_axe_finds_none(self, visit, path, options):
        page = visit(path, **options)
        page.wait_for_load_state("networkidle")
        assert page.faults == []
        for change in (lambda page: None, open_all):
            change(page)
            assert overflow(page) is None
            assert cut_off(page) == []
        found = serious(page)
        assert not found, "\n".join(found)
        assert page.locator("#explorer, script").count() == 0

    def test_prints(self, visit, path):
        page = visit(path, viewport=SHEET)
        page.emulate_media(media="print")
        assert overflow(page) is None
        assert clipped(page) == []
        assert page.get_by_text("Calibration error by class").first.is_visible()
        assert len(page.pdf(format="A4")) > 20_000

    def test_says_it_all_without_javascript_too(self, visit, path):
        page, without = (visit(path, java_script_enabled=enabled) for enabled in (True, False))
        text = page.locator("main").inner_text()
        assert without.locator("main").inner_text() == text
        summary = page.locator("#summary").inner_text()
        assert "is off most for South" in summary
        assert "against Uncalibrated (no calibration). Better: NLL down by" in summary
        assert "Tiny: only 60 rows: not enough data" in summary
        assert "<img src=x" in text  # a name, and no more
        links = page.locator("nav a")
        assert links.count() == 5
        for link in links.all():
            assert page.locator(link.get_attribute("href")).is_visible()
