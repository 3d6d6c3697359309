"""The controls of the explorer: methods, views, scales, tips; by mouse and by keys alone."""

from __future__ import annotations

import pytest


def in_transit(page):
    """How many markers are on their way once the page has been laid out anew."""
    return page.evaluate(
        """async () => {
          for (let i = 0; i < 2; i += 1) await new Promise(requestAnimationFrame);
          return document.getAnimations().length;
        }"""
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda page: page.locator("input[name=method]").first.uncheck(),
        lambda page: page.locator("input[name=scale]").last.check(),
        lambda page: page.set_viewport_size({"width": 800, "height": 900}),
        lambda page: page.emulate_media(media="print"),
    ],
    ids=["method", "scale", "size", "print"],
)
def test_a_chart_drawn_anew_is_right_at_once(explore, change):
    """Markers may glide while the slider moves; in a new chart, on paper above all, they stand."""
    explorer, *_ = explore("benchmark", reduced_motion="no-preference")
    explorer.page.wait_for_function("() => !document.getAnimations().length")
    change(explorer.page)
    assert in_transit(explorer.page) == 0


@pytest.mark.parametrize("method", ["Baseline", "FairCal", "Oracle"])
def test_a_method_is_switched_off_and_on(explore, method):
    explorer, view, report = explore("benchmark")
    whole, drawn = explorer.cells(), explorer.markers()
    box = explorer.page.get_by_role("checkbox", name=method, exact=True)
    box.uncheck()
    rest = {where: value for where, value in whole.items() if where[0] != method}
    assert explorer.cells() == rest
    assert explorer.markers().keys() == {where for where in drawn if where[0] != method}
    explorer.move(0.4)
    others = {name: scored for name, scored in view.items() if name != method}
    explorer.check(others, report)
    box.check()
    explorer.check(view, report)
    assert explorer.markers().keys() == drawn.keys()


def test_all_methods_off_and_reset(explore):
    explorer, _, _ = explore("benchmark")
    before, start = explorer.cells(), explorer.threshold
    for box in explorer.page.locator("input[name=method]").all():
        box.uncheck()
    assert explorer.cells() == {}
    assert explorer.markers() == {}
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
    explorer, _, report = explore(name)
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
        explorer.check(view, report)
    assert seen[0] == seen[2] != seen[1]


def test_scales_can_be_changed_to_and_fro(explore):
    explorer, view, report = explore("audit")
    assert explorer.scales() == ["score", "probability", "fpr"]
    for scale in ("fpr", "score", "probability", "fpr", "probability", "score"):
        explorer.choose_scale(scale)
        explorer.check(view, report, scale)
        explorer.move(0.6)
        explorer.check(view, report, scale)


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


def test_pointing_at_a_marker_shows_its_numbers(explore):
    explorer, view, _ = explore("benchmark")
    explorer.move(0.4)
    assert tip(explorer) == ""
    found = explorer.markers()
    assert len(found) == 50  # five methods, close above each other
    for where in found:
        explorer.page.locator("#explorer-chart").scroll_into_view_if_needed()
        explorer.page.mouse.move(*explorer.markers()[where])
        check_tip(explorer, where, view, "probability")
    explorer.page.mouse.move(5, 5)
    assert tip(explorer) == ""


def test_markers_are_reached_by_keys(explore):
    explorer, view, _ = explore("audit")
    explorer.choose_scale("probability")
    while focused(explorer.page)[0] != "explorer-plot":
        assert focused(explorer.page)[0] != "BODY"  # the end of the page
        explorer.page.keyboard.press("Tab")
    shown = {where: explorer.cells()[where] for where in explorer.numbers()}
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
    explorer, *_ = explore("benchmark")
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


def test_hostile_names_are_shown_as_they_are(explore):
    explorer, view, report = explore("hostile")
    (shown, *_), groups = view.values(), {group for _, group, _ in explorer.cells()}
    assert groups == {"global", *(group for group in shown.group if group)}
    words = explorer.page.locator("#explorer-table").inner_text()
    assert all(group in words for group in groups - {"global"})
    ((_, attribute),) = report.views
    assert attribute in explorer.page.locator("body").inner_text()
    explorer.move(0.5)
    explorer.page.mouse.move(*next(iter(explorer.markers().values())))
