"""A browser, reports to look at in it, and what Python says of the numbers that they show."""

from __future__ import annotations

import shutil
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from threadpoolctl import threadpool_limits

import faircal
from faircal.benchmark import Settings, run_benchmark
from faircal.cli.main import main
from faircal.methods import METHODS, make_method
from faircal.metrics import Ranking, rates_at_threshold
from faircal.report import write_report

BENCHMARKED = ("baseline", "gst", "fsn", "faircal", "oracle")
DESK = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "reduce"}
HOSTILE = (
    '<script>alert("x")</script>',
    "\"><img src=x onerror=alert('y')> & </script><!-- ${z} {{ z }}",
    "__proto__",
    "NoSpace" * 20,
)


class Scored(NamedTuple):
    """The pairs of a report as one method scored them; the group of each, empty for none."""

    score: np.ndarray
    probability: np.ndarray | None
    genuine: np.ndarray
    group: np.ndarray

    def of(self, scale):
        """What a threshold on `scale` is compared with."""
        return self.probability if scale == "probability" else self.score

    def rates(self, scale, threshold):
        """(group, metric) to the rate and the number of pairs that it is a share of."""
        found = {}
        for group in ("global", *(g for g in dict.fromkeys(self.group) if g)):
            inside = np.ones(len(self.group), bool) if group == "global" else self.group == group
            ranking = Ranking.of(self.of(scale)[inside], self.genuine[inside])
            counts = rates_at_threshold(ranking, threshold)
            found[group, "fpr"] = float(counts.fpr), ranking.n_imposter
            found[group, "fnr"] = float(counts.fnr), ranking.n_genuine
        return found


class Report(NamedTuple):
    """A report, and by (feature, attribute) and method, as the page calls it, what it shows."""

    path: Path
    views: dict[tuple[str, str], dict[str, Scored]]
    score_range: tuple[float, float]


def _benchmark(folder, data, methods, attributes):
    """Run a benchmark; then fit its methods once more, fold by fold, and pool the test folds."""
    settings = Settings(methods=methods, clusters=(5,), attributes=attributes)
    run_benchmark(data, folder, settings, jobs=1)
    views = {
        (feature, attribute): {
            METHODS[name].title: _pooled(data.select(feature), name, attribute) for name in methods
        }
        for feature in data.features
        for attribute in attributes
    }
    return Report(write_report(folder), views, data.score_range)


def _pooled(data, name, attribute):
    offered = {"n_clusters": 5, "n_init": 1, "random_state": 0, "attribute": attribute}
    taken = {k: v for k, v in offered.items() if k in METHODS[name]._get_param_names()}
    parts = []
    for fold in data.fold_names:
        calibration, test = data.split(fold)
        with threadpool_limits(1, user_api="blas"):  # as the benchmark does: the same sums
            said = make_method(name, **taken).fit(calibration).apply(test)
        groups = test.groups(attribute)
        names = np.array([*groups.names, ""])[groups.pair]
        parts.append((said.score, said.probability, test.genuine, names))
    return Scored(*map(np.concatenate, zip(*parts, strict=True)))


def _audit(folder, table, features, *more):
    """Audit a score table whose groups are in the column ``group``."""
    file = folder / "scores.csv"
    pacsv.write_csv(pa.table(table), file)
    where = ["--features", ",".join(features), "--out", str(folder / "audit")]
    with pytest.raises(SystemExit) as left:
        main(["audit", str(file), *where, *more])
    assert left.value.code == 0
    genuine, group = np.asarray(table["genuine"]) == 1, np.asarray(table["group"])
    views = {
        (name, "group"): {"scores": Scored(table[name], table.get("probability"), genuine, group)}
        for name in features
    }
    data = faircal.load(file, features=features, score_range=None)
    return Report(folder / "audit/report.html", views, data.score_range)


def _score_table(seed, n=3000, names=("A", "B", "C")):
    """Return labels, groups (the last one small, some unknown) and a spread of scores around 0."""
    rng = np.random.default_rng(seed)
    genuine = np.arange(n) % 2
    group = rng.choice(
        [*names, ""], n, p=[*[0.9 / (len(names) - 1)] * (len(names) - 1), 0.05, 0.05]
    )
    shift = np.array([0.05 * [*names, ""].index(g) for g in group])
    return genuine, group, rng.normal(0.45 * genuine + shift, 0.18)


def benchmark(folder):
    data = faircal.simulate("small", seed=0, people=80, pairs=2000)
    return _benchmark(folder, data, BENCHMARKED, ("ethnicity", "ethnicity+gender"))


def audit(folder):
    genuine, group, score = _score_table(1)
    score = np.clip(score, -1, 1)
    probability = np.round(1 / (1 + np.exp(-12 * (score - 0.3))), 4)  # ties with the edges, too
    table = {"genuine": genuine, "group": group, "score": score, "probability": probability}
    return _audit(folder, table, ["score"], "--threshold", "0.4")


def hundred(folder):
    """Scores 0 to 100 of two features, many of them whole numbers."""
    table = dict(zip(("genuine", "group", "arc"), _score_table(2), strict=True))
    face = _score_table(3)[2]
    table["arc"] = np.clip(np.round(30 + 50 * table["arc"]), 0, 100)
    table["face"] = np.clip(40 + 40 * face, 0, 100)
    return _audit(folder, table, ["arc", "face"])


def hostile(folder):
    genuine, group, score = _score_table(4, n=2400, names=HOSTILE)
    file = folder / "scores.csv"
    feature, attribute = HOSTILE[:2]
    table = {
        "genuine": genuine,
        "fold": np.arange(len(genuine)) // 2 % 2,
        feature: np.clip(score, -1, 1),
        attribute: group,
    }
    pacsv.write_csv(pa.table(table), file)
    data = faircal.load(file)
    return _benchmark(folder / "out", data, ("baseline", "oracle"), (attribute,))


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """Return a function that gives a report by name, made when it is first asked for.

    It is made as where Matplotlib is not installed, in a moment, unless figures are asked for.
    """
    makers = {make.__name__: make for make in (benchmark, audit, hundred, hostile)}

    @cache
    def make(name, figures):
        with pytest.MonkeyPatch.context() as patch:
            if not figures:
                patch.setitem(sys.modules, "matplotlib", None)
                patch.setitem(sys.modules, "matplotlib.figure", None)
            return makers[name](tmp_path_factory.mktemp(name))

    return lambda name, figures=False: make(name, figures)


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window."""
    api = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no browser: install chromium")
    with api.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield running
        running.close()


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
        page.set_default_timeout(5000)
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


@pytest.fixture
def explore(visit, report):
    """Return a function that opens a report by name; gives its explorer and the report."""

    def open_explorer(name, figures=False, **options):
        made = report(name, figures)
        return Explorer(visit(made.path, **options)), made

    return open_explorer
