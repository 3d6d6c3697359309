"""The numbers of the explorer: they are Python's, at every threshold."""

from __future__ import annotations

import json

import pytest

import faircal
from faircal.metrics import wilson
from faircal.metrics.proportions import joint_level

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


@pytest.mark.parametrize(("name", "index"), VIEWS)
def test_the_numbers_are_those_of_python(explore, name, index):
    explorer, view, report = explore(name, index)
    scales = explorer.scales()
    assert "fpr" in scales
    assert ("score" in scales) == (len(view) == 1)
    assert ("probability" in scales) == all(s.probability is not None for s in view.values())
    for scale in scales:
        explorer.choose_scale(scale)
        explorer.check(view, report, scale)
        places = set()
        for part in PLACES:
            explorer.move(part)
            places.add(explorer.threshold)
            explorer.check(view, report, scale)
        assert len(places) >= len(PLACES) - 2


def test_groups_large_and_small_are_among_them(report):
    """What the test above is about: numbers, and too few pairs for one of either kind."""
    pairs = [
        {where: n for where, (_, n) in scored.rates("score", 0).items()}
        for view in report("benchmark").views.values()
        for scored in [view["Baseline"]]
    ]
    crossed = {metric: n for (group, metric), n in pairs[1].items() if group == "Asian F"}
    assert min(pairs[0].values()) > 100
    assert crossed["fnr"] < 100 == crossed["fpr"]


@pytest.mark.parametrize("scale", ["score", "probability", "fpr"])
def test_the_slider_moves_by_keys(explore, scale):
    explorer, view, report = explore("audit")
    explorer.choose_scale(scale)
    low, high, step = (
        float(explorer.slider.get_attribute(name)) for name in ("min", "max", "step")
    )
    explorer.press("Home")
    assert explorer.threshold == low
    explorer.check(view, report, scale)
    explorer.press("ArrowRight", "ArrowUp", "ArrowRight")
    assert explorer.threshold == pytest.approx(low + 3 * step)
    explorer.check(view, report, scale)
    explorer.press("PageUp")
    assert explorer.threshold > low + 3 * step
    explorer.check(view, report, scale)
    explorer.press("End")
    assert explorer.threshold == high
    explorer.check(view, report, scale)
    explorer.press("ArrowLeft", "PageDown")
    assert explorer.threshold < high - step
    explorer.check(view, report, scale)


@pytest.mark.parametrize("value", [0.25, 0.3, 0.35])
def test_the_slider_takes_a_value(explore, value):
    explorer, view, report = explore("audit")
    explorer.type(value)
    assert explorer.threshold == value
    explorer.check(view, report, "score")


def test_an_audit_opens_at_its_threshold(explore):
    explorer, view, _ = explore("audit")
    assert explorer.threshold == 0.4
    (scored,) = view.values()
    found = faircal.audit(
        score=scored.score, genuine=scored.genuine, groups=scored.group, threshold=0.4
    )
    for (_, group, metric), (value, _) in explorer.cells().items():
        if value is not None:
            assert value == found.value(metric, group=group)


def test_a_global_rate_is_kept_by_every_method(explore):
    explorer, view, report = explore("benchmark")
    explorer.choose_scale("fpr")
    for part in PLACES:
        explorer.move(part)
        rate = explorer.rate
        cells = explorer.cells()
        assert all(cells[method, "global", "fpr"][0] <= float(rate) for method in view)
        thresholds = explorer.page.locator("#explorer-table tfoot td").all_inner_texts()
        assert [float(text) for text in thresholds] == [
            scored.lowest_edge(rate, report.score_range) for scored in view.values()
        ]


def test_the_chart_shows_the_numbers_of_the_table(explore):
    explorer, _, _ = explore("benchmark", 1)
    for part in (0.3, 0.6):
        explorer.move(part)
        seen, shown = explorer.markers(), explorer.numbers()
        assert seen.keys() == shown.keys()
        for metric in ("fpr", "fnr"):
            order = sorted(
                (w for w in shown if w[2] == metric), key=lambda w: (shown[w], seen[w][0])
            )
            xs = [seen[where][0] for where in order]
            assert xs == sorted(xs)
            assert xs[0] < xs[-1]


def test_the_sentences_name_the_groups_that_fare_worst_and_best(explore):
    explorer, view, _ = explore("benchmark")
    explorer.move(0.2)
    said = explorer.page.locator("#explorer-ratios li").all_inner_texts()
    assert len(said) == len(view)
    shown = json.loads(explorer.page.locator("#explorer-data").text_content())["views"][0]
    # Pairs share people: of 100 of them so many tell something new.
    effective = [dict(zip(shown["groups"], each, strict=True)) for each in shown["effective"]]
    for sentence, (method, scored), new in zip(said, view.items(), effective, strict=True):
        rates = scored.rates("probability", explorer.threshold)
        groups = sorted(
            (rate, round(rate * pairs), pairs, group)
            for (group, metric), (rate, pairs) in rates.items()
            if metric == "fpr" and group != "global"
        )
        (low, few, of_few, best), *_, (high, many, of_many, worst) = groups
        assert groups[0][0] < groups[1][0] <= groups[-2][0] < groups[-1][0]  # no ties
        level = joint_level(len(groups))
        ends = [
            wilson(count * new[group][1], of * new[group][1], level)
            for count, of, group in ((many, of_many, worst), (few, of_few, best))
        ]
        assert 0 < new[worst][1] <= 1
        apart = ends[0][0] > ends[1][1]
        times = f"{high / low:.{0 if high >= 10 * low else 1}f}"
        told = f"{worst} is matched wrongly {times} times as often as {best}"
        untold = f"the data does not tell the groups apart (most in {worst}, least in {best}"
        assert sentence.startswith(f"{method}: {told if apart else untold}")
        assert f"{many} of {of_many} pairs against {few} of {of_few}" in sentence
