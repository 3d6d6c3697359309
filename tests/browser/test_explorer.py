"""The explorer: its numbers are Python's at every threshold, and its controls do their work."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

import faircal
from faircal.metrics import probability_edges, score_edges

#: Fewer genuine pairs than this, and no FNR is shown; fewer imposters, and no FPR.
ENOUGH = 100
#: Parts of the slider's way to look at.
PLACES = (0.0, 0.13, 0.37, 0.5, 0.58, 0.71, 0.9, 1.0)
VIEWS = [
    ("benchmark", 0),
    ("benchmark", 1),
    ("audit", 0),
    ("hundred", 0),
    ("hundred", 1),
    ("hostile", 0),
]


@pytest.fixture
def opened(explore):
    """Return a function that opens a view of a report; gives explorer, what it shows, report."""

    def open_view(name, index=0):
        explorer, report = explore(name)
        explorer.choose_view(index)
        return explorer, list(report.views.values())[index], report

    return open_view


def at_threshold(view, scale, threshold):
    """What Python counts with one threshold for all methods of a view."""
    return {
        (method, *where): found
        for method, scored in view.items()
        for where, found in scored.rates(scale, threshold).items()
    }


def lowest_edge(scored, rate, score_range):
    """The lowest edge of a method's histogram that at most `rate` of all imposters reach."""
    of_probabilities = np.array_equal(scored.score, scored.probability)
    edges = probability_edges() if of_probabilities else score_edges(*score_range)
    imposters = np.sort(scored.score[~scored.genuine])
    passing = len(imposters) - np.searchsorted(imposters, edges)
    return next(
        edge
        for edge, count in zip(edges, passing.tolist(), strict=True)
        if Fraction(count, len(imposters)) <= rate
    )


def said_rate(explorer):
    """The global rate that the page says, as an exact fraction."""
    return Fraction(explorer.said.removesuffix("%").strip()) / 100


def at_global_rate(view, rate, score_range):
    """What Python counts with each method's own threshold for a global rate."""
    return {
        where: found
        for method, scored in view.items()
        for where, found in at_threshold(
            {method: scored}, "score", lowest_edge(scored, rate, score_range)
        ).items()
    }


def expected(explorer, view, report, scale):
    """What Python counts for the place where the slider is."""
    if scale == "fpr":
        return at_global_rate(view, said_rate(explorer), report.score_range)
    assert float(explorer.said) == explorer.threshold
    return at_threshold(view, scale, explorer.threshold)


def check_numbers(explorer, counted):
    """The table has exactly these numbers: in full, and rounded in its text."""
    cells = explorer.cells()
    assert cells.keys() == counted.keys()
    for where, (rate, pairs) in counted.items():
        value, text = cells[where]
        if pairs < ENOUGH:
            assert (value, text) == (None, f"too few pairs ({pairs})"), where
        else:
            assert value == pytest.approx(rate, rel=0, abs=1e-12), where
            check_text(text, rate)


def check_text(text, rate):
    """`text` is `rate` in percent, rounded to as many digits as it has."""
    shown = re.fullmatch(r"(\d+(?:\.(\d+))?)\s*%", text)
    assert shown, text
    half = 0.5 * 10.0 ** -len(shown[2] or "")
    assert abs(float(shown[1]) - 100 * rate) <= half + 1e-9, (text, rate)


@pytest.mark.parametrize(("name", "index"), VIEWS)
def test_the_numbers_are_those_of_python(opened, name, index):
    explorer, view, report = opened(name, index)
    scales = explorer.scales()
    assert "fpr" in scales
    assert ("score" in scales) == (len(view) == 1)
    assert ("probability" in scales) == all(s.probability is not None for s in view.values())
    for scale in scales:
        explorer.choose_scale(scale)
        check_numbers(explorer, expected(explorer, view, report, scale))
        places = set()
        for part in PLACES:
            explorer.move(part)
            places.add(explorer.threshold)
            check_numbers(explorer, expected(explorer, view, report, scale))
        assert len(places) >= len(PLACES) - 2


def test_groups_large_and_small_are_among_them(report):
    """What the test above is about: numbers, and too few pairs for one of either kind."""
    pairs = [
        {where: n for where, (_, n) in scored.rates("score", 0).items()}
        for view in report("benchmark").views.values()
        for scored in [view["Baseline"]]
    ]
    crossed = {metric: n for (group, metric), n in pairs[1].items() if group == "Asian F"}
    assert min(pairs[0].values()) > ENOUGH
    assert crossed["fnr"] < ENOUGH == crossed["fpr"]


@pytest.mark.parametrize("scale", ["score", "probability", "fpr"])
def test_the_slider_moves_by_keys(opened, scale):
    explorer, view, report = opened("audit")
    explorer.choose_scale(scale)
    low, high, step = (
        float(explorer.slider.get_attribute(name)) for name in ("min", "max", "step")
    )
    explorer.press("Home")
    assert explorer.threshold == low
    check_numbers(explorer, expected(explorer, view, report, scale))
    explorer.press("ArrowRight", "ArrowUp", "ArrowRight")
    assert explorer.threshold == pytest.approx(low + 3 * step)
    check_numbers(explorer, expected(explorer, view, report, scale))
    explorer.press("PageUp")
    assert explorer.threshold > low + 3 * step
    check_numbers(explorer, expected(explorer, view, report, scale))
    explorer.press("End")
    assert explorer.threshold == high
    check_numbers(explorer, expected(explorer, view, report, scale))
    explorer.press("ArrowLeft", "PageDown")
    assert explorer.threshold < high - step
    check_numbers(explorer, expected(explorer, view, report, scale))


@pytest.mark.parametrize("value", [0.25, 0.3, 0.35])
def test_the_slider_takes_a_value(opened, value):
    explorer, view, report = opened("audit")
    explorer.type(value)
    assert explorer.threshold == value
    check_numbers(explorer, expected(explorer, view, report, "score"))


def test_an_audit_opens_at_its_threshold(opened):
    explorer, view, _ = opened("audit")
    assert explorer.threshold == 0.4
    (scored,) = view.values()
    found = faircal.audit(
        score=scored.score, genuine=scored.genuine, groups=scored.group, threshold=0.4
    )
    for (_, group, metric), (value, _) in explorer.cells().items():
        if value is not None:
            assert value == found.value(metric, group=group)


def test_a_global_rate_is_kept_by_every_method(opened):
    explorer, view, report = opened("benchmark")
    explorer.choose_scale("fpr")
    for part in PLACES:
        explorer.move(part)
        rate = said_rate(explorer)
        cells = explorer.cells()
        assert all(cells[method, "global", "fpr"][0] <= float(rate) for method in view)
        thresholds = explorer.page.locator("#explorer-table tfoot td").all_inner_texts()
        assert [float(text) for text in thresholds] == [
            lowest_edge(scored, rate, report.score_range) for scored in view.values()
        ]


def markers(explorer):
    """(method, group, metric) of the markers that can be seen, to where they are."""
    return {
        tuple(where): (x, y)
        for *where, x, y in explorer.page.eval_on_selector_all(
            "#explorer-chart .marker",
            """all => all.filter(m => getComputedStyle(m).display !== "none").map(m => {
              const box = m.getBoundingClientRect();
              const {method, group, metric} = m.dataset;
              return [method, group, metric, box.x + box.width / 2, box.y + box.height / 2];
            })""",
        )
    }


def numbers(explorer):
    """The cells that have a number."""
    return {where: value for where, (value, _) in explorer.cells().items() if value is not None}


def test_the_chart_shows_the_numbers_of_the_table(opened):
    explorer, _, _ = opened("benchmark", 1)
    for part in (0.3, 0.6):
        explorer.move(part)
        seen, shown = markers(explorer), numbers(explorer)
        assert seen.keys() == shown.keys()
        for metric in ("fpr", "fnr"):
            order = sorted(
                (w for w in shown if w[2] == metric), key=lambda w: (shown[w], seen[w][0])
            )
            xs = [seen[where][0] for where in order]
            assert xs == sorted(xs)
            assert xs[0] < xs[-1]


@pytest.mark.parametrize("method", ["Baseline", "FairCal", "Oracle"])
def test_a_method_is_switched_off_and_on(opened, method):
    explorer, view, report = opened("benchmark")
    whole, drawn = explorer.cells(), markers(explorer)
    box = explorer.page.get_by_role("checkbox", name=method, exact=True)
    box.uncheck()
    rest = {where: value for where, value in whole.items() if where[0] != method}
    assert explorer.cells() == rest
    assert markers(explorer).keys() == {where for where in drawn if where[0] != method}
    explorer.move(0.4)
    others = {name: scored for name, scored in view.items() if name != method}
    check_numbers(explorer, expected(explorer, others, report, explorer.scales()[0]))
    box.check()
    check_numbers(explorer, expected(explorer, view, report, explorer.scales()[0]))
    assert markers(explorer).keys() == drawn.keys()


def test_all_methods_off_and_reset(opened):
    explorer, _, _ = opened("benchmark")
    before, start = explorer.cells(), explorer.threshold
    for box in explorer.page.locator("input[name=method]").all():
        box.uncheck()
    assert explorer.cells() == {}
    assert markers(explorer) == {}
    explorer.choose_scale("fpr")
    explorer.move(1.0)
    assert explorer.cells() == {}
    explorer.page.get_by_role("button", name="Reset").click()
    assert explorer.cells() == before
    assert explorer.threshold == start
    assert explorer.page.locator("input[name=scale]").first.is_checked()
    assert all(box.is_checked() for box in explorer.page.locator("input[name=method]").all())


@pytest.mark.parametrize("name", ["benchmark", "hundred"])
def test_a_view_is_chosen(explore, name):
    explorer, report = explore(name)
    options = explorer.page.locator("#explorer-view option").all_inner_texts()
    assert len(options) == len(report.views)
    several = len({feature for feature, _ in report.views}) > 1
    for (feature, attribute), option in zip(report.views, options, strict=True):
        assert all(part in option for part in attribute.split("+"))
        assert not several or feature in option
    seen = []
    for index in (1, 0, 1):
        explorer.choose_view(index)
        seen.append(explorer.cells())
        view = list(report.views.values())[index]
        check_numbers(explorer, expected(explorer, view, report, explorer.scales()[0]))
    assert seen[0] == seen[2] != seen[1]


def test_scales_can_be_changed_to_and_fro(opened):
    explorer, view, report = opened("audit")
    assert explorer.scales() == ["score", "probability", "fpr"]
    for scale in ("fpr", "score", "probability", "fpr", "probability", "score"):
        explorer.choose_scale(scale)
        check_numbers(explorer, expected(explorer, view, report, scale))
        explorer.move(0.6)
        check_numbers(explorer, expected(explorer, view, report, scale))


def test_the_sentences_name_the_groups_that_fare_worst_and_best(opened):
    explorer, view, _ = opened("benchmark")
    explorer.move(0.5)
    said = explorer.page.locator("#explorer-ratios li").all_inner_texts()
    assert len(said) == len(view)
    for sentence, (method, scored) in zip(said, view.items(), strict=True):
        rates = scored.rates("probability", explorer.threshold)
        groups = sorted(
            (rate, round(rate * pairs), pairs, group)
            for (group, metric), (rate, pairs) in rates.items()
            if metric == "fpr" and group != "global"
        )
        (low, few, of_few, best), *_, (high, many, of_many, worst) = groups
        assert groups[0][0] < groups[1][0] <= groups[-2][0] < groups[-1][0]  # no ties
        assert sentence.startswith(f"{method}: {worst} is matched wrongly")
        assert f"{high / low:.1f} times as often as {best}" in sentence
        assert f"{many} of {of_many} pairs against {few} of {of_few}" in sentence


def tip(explorer):
    """The words beside a marker; none where they are not shown."""
    box = explorer.page.locator("#explorer-tip")
    return box.inner_text() if box.is_visible() else ""


def check_tip(explorer, where, view, scale):
    """The tip has the method, the group, the number of the table and the counts behind it."""
    method, group, metric = where
    text = tip(explorer)
    assert method in text
    assert ("All pairs" if group == "global" else group) in text
    assert explorer.cells()[where][1] in text
    rate, pairs = view[method].rates(scale, explorer.threshold)[group, metric]
    assert f"{round(rate * pairs):,} of {pairs:,} pairs" in text


def test_pointing_at_a_marker_shows_its_numbers(opened):
    explorer, view, _ = opened("benchmark")
    for box in explorer.page.locator("input[name=method]").all()[1:]:
        box.uncheck()  # so that no marker is on top of another one
    explorer.move(0.4)
    assert tip(explorer) == ""
    found = markers(explorer)
    assert len(found) == 10
    for where in found:
        explorer.page.locator("#explorer-chart").scroll_into_view_if_needed()
        explorer.page.mouse.move(*markers(explorer)[where])
        check_tip(explorer, where, view, "probability")
    explorer.page.mouse.move(5, 5)
    assert tip(explorer) == ""


def test_markers_are_reached_by_keys(opened):
    explorer, view, _ = opened("audit")
    explorer.choose_scale("probability")
    explorer.slider.focus()
    while not explorer.page.evaluate("() => document.activeElement.closest('#explorer-plot')"):
        explorer.page.keyboard.press("Tab")
    shown = {where: explorer.cells()[where] for where in numbers(explorer)}
    seen = []
    for _ in shown:
        on = explorer.page.locator(".marker.on")
        where = tuple(on.get_attribute(f"data-{name}") for name in ("method", "group", "metric"))
        check_tip(explorer, where, view, "probability")
        seen.append(where)
        explorer.page.keyboard.press("ArrowRight")
    assert sorted(seen) == sorted(shown)
    explorer.page.keyboard.press("Escape")
    assert tip(explorer) == ""
    explorer.page.keyboard.press("ArrowRight")
    assert tip(explorer) != ""
    explorer.page.keyboard.press("Tab")
    assert tip(explorer) == ""


def focused(page):
    """What has the focus (its id, or name and value), and whether one can see that it has."""
    return page.evaluate(
        """() => {
          const on = document.activeElement;
          const inner = on.querySelector("table")?.id;
          const name = on.id || (on.name ? `${on.name} ${on.value}` : inner || on.tagName);
          const {outlineStyle, outlineWidth} = getComputedStyle(on);
          return [name, outlineStyle !== "none" && parseFloat(outlineWidth) >= 1];
        }"""
    )


def test_is_used_by_keys_alone(explore):
    explorer, _ = explore("benchmark")
    page, seen = explorer.page, []
    while "explorer-table" not in seen:
        page.keyboard.press("Tab")
        name, visible = focused(page)
        assert visible, name
        assert name != "BODY", seen
        seen.append(name)
        before = explorer.cells()
        if name.startswith("scale"):
            page.keyboard.press("ArrowRight")
            assert explorer.cells() != before
        if name == "method GST":
            page.keyboard.press("Space")
            assert explorer.methods() == ["Baseline", "FSN", "FairCal", "Oracle"]
        if name == "threshold":
            page.keyboard.press("ArrowLeft")
            assert explorer.cells() != before
        if name == "explorer-view":
            page.keyboard.press("ArrowDown")
            assert explorer.cells().keys() != before.keys()
    methods = [f"method {name}" for name in ("Baseline", "GST", "FSN", "FairCal", "Oracle")]
    ends = ["threshold", "explorer-reset", "explorer-plot", "explorer-table"]
    controls = [name for name in seen if name not in ("A", "SUMMARY")]
    assert controls[0] == "explorer-view"
    assert sorted(controls[1:]) == sorted(["scale probability", *methods, *ends])


def test_hostile_names_are_shown_as_they_are(opened):
    explorer, view, report = opened("hostile")
    (shown, *_), groups = view.values(), {group for _, group, _ in explorer.cells()}
    assert groups == {"global", *(group for group in shown.group if group)}
    words = explorer.page.locator("#explorer-table").inner_text()
    assert all(group in words for group in groups - {"global"})
    ((_, attribute),) = report.views
    assert attribute in explorer.page.locator("body").inner_text()
    explorer.move(0.5)
    explorer.page.mouse.move(*next(iter(markers(explorer).values())))
