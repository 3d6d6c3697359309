"""A watch: quiet where nothing changed, loud where something did, and the same after a restart."""

import json
from dataclasses import replace

import numpy as np
import pytest

import faircal
from faircal._base.errors import DataError, ParameterError
from faircal.model import About
from faircal.production.monitoring import PairsInUse, Watch


def alarms(watch):
    return [found.name for found in watch.verdict().findings if found.alarm]


def cut(seen, rows):
    taken = {
        name: None if getattr(seen, name) is None else getattr(seen, name)[rows]
        for name in PairsInUse.__dataclass_fields__
        if name not in ("identified_by", "genuine")
    }
    return PairsInUse(**taken, identified_by=seen.identified_by)


def test_quiet_runs_are_quiet(use):
    """20 runs at a rate of 0.2: four alarms at most on average, and far fewer in fact."""
    loud = 0
    for seed in range(20):
        watch = Watch(use.model, false_alarms=0.2)
        seen, _ = use.draw(6000, np.random.default_rng(seed))
        watch.add(seen)
        loud += watch.verdict().due
    assert loud <= 4


@pytest.mark.parametrize("known", ["people", "nobody"])
def test_another_share_of_genuine_pairs_is_no_alarm(use, known):
    weights = np.where(use.genuine, 0.01, 1.0)
    watch = Watch(use.model)
    watch.add(use.draw(20_000, np.random.default_rng(0), weights, known=known)[0])
    verdict = watch.verdict()
    assert not verdict.due
    share = verdict.findings[1].details["share_genuine"]
    assert share < 0.03


def test_higher_imposter_scores_are_found(use):
    watch = Watch(use.model)
    watch.add(use.draw(20_000, np.random.default_rng(0), higher=0.05)[0])
    assert alarms(watch) == ["scores"]
    found = watch.verdict().findings[1]
    assert found.p_value <= found.level
    assert found.statistic > found.details["tolerance"]


def test_another_mix_of_people_is_found_in_the_clusters(use):
    weights = np.where(use.group == 1, 2.5, 1.0)
    watch = Watch(use.model)
    watch.add(use.draw(20_000, np.random.default_rng(0), weights)[0])
    assert "clusters" in alarms(watch)


def test_strange_images_are_found(use):
    seen, _ = use.draw(20_000, np.random.default_rng(0))
    strange = np.random.default_rng(1).random(20_000) < 0.1
    watch = Watch(use.model)
    watch.add(replace(seen, left_outside=seen.left_outside | strange))
    assert alarms(watch) == ["outside"]


def test_a_change_after_a_long_quiet_time_is_found_as_soon(use):
    rng = np.random.default_rng(2)
    watch = Watch(use.model)
    for _ in range(15):
        watch.add(use.draw(20_000, rng)[0])
    assert not watch.verdict().due
    watch.add(use.draw(20_000, rng, higher=0.05)[0])
    assert alarms(watch) == ["scores"]
    assert watch.verdict().findings[1].details["window_end"] <= 320_000


def test_alarms_stay(use):
    rng = np.random.default_rng(3)
    watch = Watch(use.model)
    watch.add(use.draw(10_000, rng, higher=0.2)[0])
    first = watch.verdict().findings[1]
    watch.add(use.draw(10_000, rng)[0])
    again = watch.verdict().findings[1]
    assert first.alarm
    assert first.details["window_end"] == again.details["window_end"]


@pytest.mark.parametrize("in_order", [True, False])
def test_it_goes_on_after_a_restart_as_if_nothing_had_been(use, in_order):
    rng = np.random.default_rng(4)
    parts = [use.draw(n, rng) for n in (1, 700, 3, 4200, 333, 2000)]
    straight = Watch(use.model, in_order=in_order)
    restarted = Watch(use.model, in_order=in_order)
    for seen, genuine in parts:
        for watch in (straight, restarted):
            watch.get_state()  # counts what waits
            watch.add(seen)
            watch.feedback(seen.probability, genuine, seen.left_person)
        state = restarted.get_state()
        arrays = {k: v for k, v in state.items() if isinstance(v, np.ndarray)}
        others = json.loads(json.dumps({k: v for k, v in state.items() if k not in arrays}))
        restarted = Watch.restore(use.model, {**others, **arrays})
    one, other = straight.verdict(), restarted.verdict()
    assert json.dumps(one.as_json()) == json.dumps(other.as_json())
    assert one.pairs == sum(len(seen) for seen, _ in parts)
    for key, value in straight.get_state().items():
        np.testing.assert_array_equal(value, restarted.get_state()[key])


def test_pairs_one_by_one_are_counted_like_a_batch(use):
    seen, _ = use.draw(2000, np.random.default_rng(5))
    batch, single = (Watch(use.model, in_order=False) for _ in range(2))
    batch.add(seen)
    for row in range(2000):
        single.add(cut(seen, slice(row, row + 1)))
    np.testing.assert_array_equal(batch.get_state()["pairs.part"], single.get_state()["pairs.part"])


def test_the_state_is_small_and_has_nothing_by_pair(use):
    watch = Watch(use.model)
    watch.add(use.draw(100_000, np.random.default_rng(6))[0])
    arrays = [v for v in watch.get_state().values() if isinstance(v, np.ndarray)]
    assert sum(array.nbytes for array in arrays) < 1_500_000
    assert all(array.dtype.kind == "i" for array in arrays)


def test_a_sorted_batch_is_no_change(use):
    rng = np.random.default_rng(7)
    seen, genuine = use.draw(12_000, rng)
    order = np.lexsort((seen.left_cluster, genuine))
    watch = Watch(use.model)
    watch.add(cut(seen, order))
    assert not watch.verdict().due


def test_tables_in_no_order_are_looked_at_once(use):
    rng = np.random.default_rng(8)
    seen, genuine = use.draw(12_000, rng)
    order = np.lexsort((seen.left_cluster, genuine))
    watch = Watch(use.model, in_order=False)
    for start in range(0, 12_000, 1000):
        watch.add(cut(seen, order[start : start + 1000]))
    verdict = watch.verdict()
    assert not verdict.due
    assert verdict.findings[0].details["window_pairs"] == 12_000
    loud = Watch(use.model, in_order=False)
    loud.add(use.draw(12_000, rng, higher=0.05)[0])
    assert alarms(loud) == ["scores"]


def test_a_handful_of_people_tells_nothing(use):
    seen, _ = use.draw(5000, np.random.default_rng(9))
    same = np.zeros(5000, np.int64)
    watch = Watch(use.model)
    watch.add(replace(seen, score=seen.score * 0 + 0.9, left_person=same, right_person=same))
    found = watch.verdict().findings[1]
    assert not found.alarm
    assert not found.enough


@pytest.mark.parametrize(
    ("spoil", "name", "words"),
    [
        (lambda p: p / (p + (1 - p) / 20), "calibration", "--prior"),
        (lambda p: p**4 / (p**4 + (1 - p) ** 4), "calibration", "too sure"),
    ],
)
def test_feedback_tells_probabilities_that_do_not_hold(use, spoil, name, words):
    seen, genuine = use.draw(4000, np.random.default_rng(10))
    watch = Watch(use.model)
    watch.feedback(seen.probability, genuine, seen.left_person)
    quiet = watch.verdict()
    assert not quiet.due
    assert quiet.feedback == 4000
    watch = Watch(use.model)
    watch.feedback(spoil(seen.probability), genuine, seen.left_person)
    assert alarms(watch) == [name]
    assert words in watch.verdict().findings[3].words


def test_labels_that_come_sorted_are_no_alarm(use):
    seen, genuine = use.draw(4000, np.random.default_rng(12))
    order = np.argsort(genuine, kind="stable")
    watch = Watch(use.model)
    watch.feedback(seen.probability[order], genuine[order])
    assert not watch.verdict().due


def test_little_is_not_enough(use):
    watch = Watch(use.model)
    verdict = watch.verdict()
    assert [found.enough for found in verdict.findings] == [False] * 4
    assert "Not enough" in verdict.words
    watch.add(cut(use.seen, slice(0, 499)))
    watch.feedback([0.5], [True])
    assert not any(found.enough for found in watch.verdict().findings)
    watch.add(cut(use.seen, slice(0, 1)))
    assert watch.verdict().findings[1].enough


def test_scores_alone_are_watched_too(use):
    seen, _ = use.draw(20_000, np.random.default_rng(11), higher=0.2)
    watch = Watch(use.model)
    watch.add(PairsInUse(seen.score, seen.probability))
    assert alarms(watch) == ["scores"]
    assert "unknown" in watch.verdict().findings[0].words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"score": np.array([np.nan])}, "score"),
        ({"left_cluster": np.array([500])}, "cluster"),
        ({"left_cluster": np.array([-2])}, "cluster"),
        ({"right_person": np.array([1, 2])}, "right_person"),
        ({"left_outside": np.array([True, False])}, "left_outside"),
    ],
)
def test_pairs_that_cannot_be_are_refused(use, change, words):
    watch = Watch(use.model)
    with pytest.raises(DataError, match=words):
        watch.add(replace(cut(use.seen, slice(0, 1)), **change))
    assert watch.verdict().pairs == 0


@pytest.mark.parametrize(
    ("probability", "genuine"), [([1.5], [1]), ([np.nan], [1]), ([0.5], [1, 0]), ([0.5], [2])]
)
def test_labels_that_cannot_be_are_refused(use, probability, genuine):
    with pytest.raises(DataError):
        Watch(use.model).feedback(probability, genuine)


def test_settings_that_cannot_be_are_refused(use):
    for rate in (0.0, 1.0, "0.1", True):
        with pytest.raises(ParameterError, match="false_alarms"):
            Watch(use.model, false_alarms=rate)
    unknown = faircal.Baseline()
    unknown.about_ = About()
    with pytest.raises(DataError, match="survey"):
        Watch(unknown)


def test_a_state_of_another_watch_is_refused(use):
    watch = Watch(use.model)
    watch.add(cut(use.seen, slice(0, 1200)))
    state = watch.get_state()
    spoilt = [
        {},
        {**state, "version": 9},
        {**state, "pairs.count": 7},
        {**state, "pairs.part": np.zeros(3)},
    ]
    for bad in (*spoilt, {key: value for key, value in state.items() if key != "pairs.blocks"}):
        with pytest.raises(DataError, match="new watch"):
            Watch.restore(use.model, bad)


def test_numbers_of_a_changed_stream_are_what_they_were(use):
    """Worked out once: whoever changes how pairs are counted or compared sees it here."""
    rng = np.random.default_rng(20)
    weights = np.where(use.group == 1, 1.3, 1.0) * np.where(use.genuine, 0.5, 1.0)
    seen, genuine = use.draw(9000, rng, weights, higher=0.02)
    watch = Watch(use.model)
    watch.add(replace(seen, left_outside=seen.left_outside | (rng.random(9000) < 0.05)))
    odds = seen.probability**1.3
    watch.feedback(odds / (odds + (1 - seen.probability) ** 1.3), genuine, seen.left_person)
    numbers = {
        found.name: (found.statistic, found.p_value, found.details["share_genuine"])
        for found in watch.verdict().findings
    }
    expected = {
        "clusters": (0.0, 0.4926, 0.2468),
        "scores": (0.009361, 0.07725, 0.2468),
        "outside": (0.02959, 0.0003278, 0.2468),
        "calibration": (1.3225, 0.006148, 0.2044),
    }
    for name, values in expected.items():
        assert numbers[name] == pytest.approx(values, rel=0.01), name
