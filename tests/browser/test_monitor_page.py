"""The report of monitoring in a browser: axe, keyboard, phone, paper."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from faircal.production.monitoring.report import write_monitoring

PAGES = runpy.run_path(str(Path(__file__).with_name("test_pages.py")))
MADE = runpy.run_path(str(Path(__file__).parents[1] / "production/monitoring/test_report.py"))
PHONE, SHEET = PAGES["PHONE"], PAGES["SHEET"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    model = {"name": "faces.faircal", "method": "FairCal", "sha256": "ab" * 32}
    found = MADE["MonitoringResult"](
        MADE["verdict"](),
        MADE["POPULATION"],
        MADE["TIMELINE"],
        {**model, "data": "gate", "simulated": True},
        0.01,
        {"monday.csv": 2000},
        ["people are unknown"],
    )
    return write_monitoring(tmp_path_factory.mktemp("monitor"), found)["report"]


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])
def test_opens_fits_and_axe_finds_no_serious_fault(visit, path, options):
    page = visit(path, **options)
    page.wait_for_load_state("networkidle")
    for change in (lambda page: None, PAGES["open_all"]):
        change(page)
        assert PAGES["overflow"](page) is None
        assert PAGES["cut_off"](page) == []
    found = PAGES["serious"](page)
    assert not found, "\n".join(found)
    assert page.locator("svg").count() == 5
    widest = max(box.bounding_box()["width"] for box in page.locator("svg").all())
    assert widest <= page.viewport_size["width"]  # whole on a phone, without scrolling


def test_by_keyboard_alone_one_comes_to_everything(visit, path):
    page = visit(path)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    labels = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        labels.add(page.evaluate("document.activeElement.getAttribute('aria-label')"))
    assert "What was tested" in labels
    assert "Figure: Do probabilities mean what they say?" in labels
    summary = page.locator("#clusters summary")
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator("#clusters tbody tr").first.is_visible()


def test_prints_with_its_tables(visit, path):
    page = visit(path, viewport=SHEET)
    page.emulate_media(media="print")
    assert PAGES["overflow"](page) is None
    assert PAGES["clipped"](page) == []
    assert len(page.pdf(format="A4")) > 20_000
