"""A browser, pages opened in it, and the explorer of a page as its reader uses it."""

from __future__ import annotations

import re
import runpy
import shutil
import sys
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from faircal.report import write_report

REPORTS = runpy.run_path(str(Path(__file__).with_name("reports.py")))
DESK = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "reduce"}
#: Fewer genuine pairs than this, and no FNR is shown; fewer imposters, and no FPR.
ENOUGH = 100


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """Return a function that gives a report by name, made when it is first asked for.

    It is made as where Matplotlib is not installed, in a moment. Where figures are asked for, a
    copy is written again with them: what was measured is the same.
    """

    @cache
    def plain(name):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "matplotlib", None)
            patch.setitem(sys.modules, "matplotlib.figure", None)
            return REPORTS[name](tmp_path_factory.mktemp(name))

    @cache
    def with_figures(name):
        made = plain(name)
        folder = tmp_path_factory.mktemp(name) / "copy"
        shutil.copytree(made.path.parent, folder)
        return made._replace(path=write_report(folder))

    return lambda name, figures=False: (with_figures if figures else plain)(name)


@pytest.fixture
def visit(browser):
    """Return a function that opens a file in a new page, which lists in `faults` what went wrong.

    A fault is a message on the console, an error of the page, or a request besides the file's own.
    At the end of the test there may be none.
    """
    contexts, faults = [], []

    def open_page(path, **options):
        context = browser.new_context(**{**DESK, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.faults = faults
        own = Path(path).as_uri()
        page.on("console", lambda said: faults.append(f"console: {said.type}: {said.text}"))
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on(
            "dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss())
        )
        page.on(
            "request",
            lambda request: request.url != own and faults.append(f"request: {request.url}"),
        )
        page.goto(own)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


class Explorer:
    """The explorer of a page, as its reader uses it."""

    def __init__(self, page):
        self.page = page
        self.slider = page.locator("#explorer input[type=range]#threshold")

    def cells(self):
        """(method, group, metric) to the full value (None: not shown) and the text of its cell."""
        listed = self.page.eval_on_selector_all(
            "#explorer-table td[data-metric]",
            "cells => cells.map(c => [c.dataset.method, c.dataset.group, c.dataset.metric,"
            " c.dataset.value, c.innerText.trim()])",
        )
        found = {
            tuple(where): (float(value) if value else None, text) for *where, value, text in listed
        }
        assert len(found) == len(listed), "a number is in the table twice"
        return found

    def methods(self):
        """The methods in the table."""
        return list(dict.fromkeys(method for method, _, _ in self.cells()))

    def numbers(self):
        """The cells that have a number."""
        return {where: value for where, (value, _) in self.cells().items() if value is not None}

    def markers(self):
        """(method, group, metric) of the markers that can be seen, to where they are."""
        return {
            tuple(where): (x, y)
            for *where, x, y in self.page.eval_on_selector_all(
                "#explorer-chart .marker",
                """all => all.filter(m => getComputedStyle(m).display !== "none").map(m => {
                  const box = m.getBoundingClientRect();
                  const {method, group, metric} = m.dataset;
                  return [method, group, metric, box.x + box.width / 2, box.y + box.height / 2];
                })""",
            )
        }

    def scales(self):
        """The scales that are offered."""
        return self.page.eval_on_selector_all(
            "input[name=scale]", "boxes => boxes.map(b => b.value)"
        )

    def choose_scale(self, name):
        self.page.locator(f"input[name=scale][value={name}]").check()

    def choose_view(self, index):
        if self.page.locator("#explorer-view").is_visible():
            self.page.locator("#explorer-view").select_option(index=index)
        else:
            assert index == 0

    @property
    def threshold(self):
        """Where the slider is."""
        return float(self.slider.input_value())

    @property
    def said(self):
        """Where the slider is, as the page says it."""
        return self.page.locator("output#threshold-value").inner_text()

    @property
    def rate(self):
        """The global rate that the page says, as an exact fraction."""
        return Fraction(self.said.removesuffix("%").strip()) / 100

    def move(self, part):
        """Put the slider at `part` of its way, as a mouse does."""
        self.slider.evaluate(
            """(slider, part) => {
              slider.value = Number(slider.min) + part * (slider.max - slider.min);
              slider.dispatchEvent(new Event("input", {bubbles: true}));
            }""",
            part,
        )

    def type(self, value):
        """Put the slider at a value."""
        self.slider.fill(str(value))

    def press(self, *keys):
        """Move the slider by keys."""
        for key in keys:
            self.slider.press(key)

    def expected(self, view, report, scale):
        """What Python counts for the place where the slider is."""
        if scale == "fpr":
            return at_global_rate(view, self.rate, report.score_range)
        assert float(self.said) == self.threshold
        return at_threshold(view, scale, self.threshold)

    def check(self, view, report, scale=None):
        """The table has exactly Python's numbers: in full, and rounded in its text."""
        scale = scale or self.scales()[0]
        counted = self.expected(view, report, scale)
        # A rate that is asked for needs three expected errors (the rule of three).
        wanted = {"fpr": max(ENOUGH, -(-3 // self.rate))} if scale == "fpr" else {}
        cells = self.cells()
        assert cells.keys() == counted.keys()
        for where, (rate, pairs) in counted.items():
            value, text = cells[where]
            if pairs < wanted.get(where[2], ENOUGH):
                assert (value, text) == (None, f"not enough data ({pairs} pairs)"), where
            else:
                assert value == pytest.approx(rate, rel=0, abs=1e-12), where
                check_text(text, rate)


def check_text(text, rate):
    """`text` is `rate` in percent, rounded to as many digits as it has."""
    shown = re.fullmatch(r"(\d+(?:\.(\d+))?)\s*%", text)
    assert shown, text
    half = 0.5 * 10.0 ** -len(shown[2] or "")
    assert abs(float(shown[1]) - 100 * rate) <= half + 1e-9, (text, rate)


def at_threshold(view, scale, threshold):
    """What Python counts with one threshold for all methods of a view."""
    return {
        (method, *where): found
        for method, scored in view.items()
        for where, found in scored.rates(scale, threshold).items()
    }


def at_global_rate(view, rate, score_range):
    """What Python counts with each method's own threshold for a global rate."""
    return {
        where: found
        for method, scored in view.items()
        for where, found in at_threshold(
            {method: scored}, "score", scored.lowest_edge(rate, score_range)
        ).items()
    }


@pytest.fixture
def explore(visit, report):
    """Return a function that opens a view of a report; gives explorer, what it shows, report."""

    def open_view(name, index=0, figures=False, **options):
        made = report(name, figures)
        explorer = Explorer(visit(made.path, **options))
        explorer.choose_view(index)
        return explorer, list(made.views.values())[index], made

    return open_view
