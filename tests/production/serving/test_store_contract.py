"""What every store promises, over SQLite and PostgreSQL, plain and encrypted."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from faircal._base.errors import ConflictError, DataError, ParameterError, StorageError
from faircal.production.serving.store import Decision, TemplateInfo, open_store
from faircal.production.serving.store.records import MOST_DIMENSIONS

START = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
OTHER_KEY = bytes(32)


def vectors(count, size=8, seed=0):
    return np.random.default_rng(seed).normal(size=(count, size)).astype(np.float32) * 3


def decision(number, **fields):
    made = Decision(
        id=f"d{number}",
        at=START + timedelta(seconds=number),
        kind="verify",
        key="gate 4",
        model="abc",
        score=0.25,
        probability=1 / 3,
        threshold=0.5,
        same=False,
        left_cluster=3,
        right_cluster=0,
        left_outside=True,
        right_outside=False,
        prior=0.1,
        left="anna",
        right=None,
    )
    return replace(made, **fields)


def test_templates_come_back_as_they_were_given(store):
    given = vectors(2)
    before = datetime.now(UTC)
    store.enrol("anna", given[0])
    store.enrol("Борис 2/π", given[1])
    found = store.vectors(["anna", "nobody", "Борис 2/π", "anna"])
    assert found.keys() == {"anna", "Борис 2/π"}
    np.testing.assert_array_equal(found["anna"], given[0])
    np.testing.assert_array_equal(found["Борис 2/π"], given[1])
    assert found["anna"].dtype == np.float32
    assert store.count() == 2
    assert store.vectors([]) == {}
    info = store.info("anna")
    assert info == TemplateInfo("anna", info.enrolled_at, 8)
    assert before - timedelta(seconds=1) < info.enrolled_at <= datetime.now(UTC)
    assert info.enrolled_at.utcoffset() == timedelta(0)
    assert store.info("nobody") is None


def test_an_id_is_enrolled_once_unless_replaced(store):
    first, second = vectors(2)
    store.enrol("anna", first)
    with pytest.raises(ConflictError, match="'anna' already; replace it"):
        store.enrol("anna", second)
    np.testing.assert_array_equal(store.vectors(["anna"])["anna"], first)
    store.enrol("anna", second, replace=True)
    np.testing.assert_array_equal(store.vectors(["anna"])["anna"], second)
    store.enrol("new", first, replace=True)
    assert store.count() == 2
    assert [name for name, _ in store.search(second, 1)] == ["anna"]


def test_ids_are_compared_exactly(store):
    names = [
        "a",
        "A",
        "a ",
        "ä",
        "a\u0308",
        "%",
        "_",
        "'; DROP TABLE templates; --",
        "../a",
        "x" * 200,
    ]
    given = vectors(len(names))
    for name, vector in zip(names, given, strict=True):
        store.enrol(name, vector)
    for name, vector in zip(names, given, strict=True):
        np.testing.assert_array_equal(store.vectors([name])[name], vector)
    assert [info.id for info in store.templates(None, 100)] == sorted(names)
    assert store.delete("A")
    assert store.info("a") is not None


def test_other_ids_and_vectors_are_refused(store):
    with pytest.raises(ParameterError, match="printable text of 1 to 200"):
        store.enrol("a\0b", [1.0])
    with pytest.raises(DataError, match="vector"):
        store.enrol("anna", [np.nan, 1])
    with pytest.raises(DataError, match="probe"):
        store.search([np.nan, 1], 1)
    with pytest.raises(ParameterError, match="limit"):
        store.search([1, 2], 0)
    assert store.count() == 0


def test_templates_of_a_store_have_one_dimension(store):
    assert store.search([1, 2, 3], 5) == []
    store.enrol("anna", [1, 2, 3])
    with pytest.raises(DataError, match=r"expected 3 numbers, .* found 2"):
        store.enrol("ben", [1, 2])
    with pytest.raises(DataError, match=r"probe: expected 3 numbers, .* found 2"):
        store.search([1, 2], 5)


def test_the_longest_vectors_can_be_kept_and_searched(store):
    given = vectors(2, MOST_DIMENSIONS)
    store.enrol("anna", given[0])
    store.enrol("ben", given[1])
    np.testing.assert_array_equal(store.vectors(["ben"])["ben"], given[1])
    assert store.search(given[0], 1) == [("anna", pytest.approx(1, abs=1e-6))]


def test_templates_are_listed_page_by_page(store):
    for name in ("c", "a", "d", "b"):
        store.enrol(name, [1, 2])
    assert [info.id for info in store.templates(None, 2)] == ["a", "b"]
    assert [info.id for info in store.templates("b", 2)] == ["c", "d"]
    assert [info.id for info in store.templates("bb", 1)] == ["c"]
    assert store.templates("d", 2) == []
    with pytest.raises(ParameterError, match="limit"):
        store.templates(None, 0)


def test_search_gives_the_best_by_cosine(store):
    given = vectors(50)
    probe = vectors(1, seed=1)[0]
    for number, vector in enumerate(given):
        store.enrol(f"t{number:02}", vector)
    store.delete("t07")
    cosines = given @ probe / np.linalg.norm(given, axis=1) / np.linalg.norm(probe)
    cosines[7] = -2
    order = np.argsort(-cosines)[:5]
    found = store.search(probe, 5)
    assert [name for name, _ in found] == [f"t{number:02}" for number in order]
    np.testing.assert_allclose([cosine for _, cosine in found], cosines[order], atol=1e-6)
    assert len(store.search(probe, 100)) == 49


def test_equal_cosines_come_in_order_of_ids(store):
    for name in ("c", "a", "d", "b"):
        store.enrol(name, [0, 2] if name != "d" else [1, 1])
    assert [name for name, _ in store.search([0, 1], 2)] == ["a", "b"]
    assert [name for name, _ in store.search([0, 1], 4)] == ["a", "b", "c", "d"]


def test_what_is_deleted_is_gone(store):
    store.enrol("anna", [1, 2])
    store.enrol("ben", [2, 1])
    assert store.delete("anna")
    assert not store.delete("anna")
    assert not store.delete("nobody")
    assert store.vectors(["anna"]) == {}
    assert store.info("anna") is None
    assert [name for name, _ in store.search([1, 2], 5)] == ["ben"]
    store.enrol("anna", [1, 2])
    assert [name for name, _ in store.search([1, 2], 5)] == ["anna", "ben"]


def test_processes_see_each_others_changes(store, place, monkeypatch):
    other = open_store(*place)
    try:
        store.enrol("anna", [1, 0])
        store.enrol("ben", [0, 1])
        assert [name for name, _ in other.search([1, 0], 2)] == ["anna", "ben"]
        other.delete("anna")
        other.enrol("ben", [1, 1], replace=True)
        assert store.search([1, 0], 2) == [("ben", pytest.approx(0.5**0.5))]
        monkeypatch.setattr("faircal.production.serving.store._REMEMBERED", 1)
        for name in ("c", "d", "e"):
            store.enrol(name, [1, 0])
            store.delete(name)
        assert [name for name, _ in other.search([1, 0], 9)] == ["ben"]
        store.check()
        assert [name for name, _ in store.search([1, 0], 9)] == ["ben"]
    finally:
        other.close()


def test_a_store_opened_again_has_everything(store, place):
    store.enrol("anna", [1, 2])
    store.record([decision(1)])
    store.put_state("watch", b"\0\1")
    store.close()
    again = open_store(*place)
    try:
        assert [name for name, _ in again.search([1, 2], 5)] == ["anna"]
        assert again.decision("d1") == decision(1)
        assert again.get_state("watch") == b"\0\1"
    finally:
        again.close()


def test_the_key_must_be_the_right_one(store, place):
    url, key = place
    if key is None:
        with pytest.raises(StorageError, match="is not encrypted, but a key was given"):
            open_store(url, OTHER_KEY)
    else:
        with pytest.raises(StorageError, match="is encrypted, and no key was given"):
            open_store(url)
        with pytest.raises(StorageError, match="is encrypted with another key"):
            open_store(url, OTHER_KEY)
    with pytest.raises(ParameterError, match="32 bytes"):
        open_store(url, b"short")


def test_decisions_come_back_in_order_of_recording(store):
    made = [decision(number) for number in (3, 1, 2)]
    made += [
        decision(4, score=None, probability=None, threshold=None, same=None, left_cluster=None)
    ]
    made += [decision(5, kind="enrol", left="Борис", right="anna", genuine=True)]
    store.record(made[:3])
    store.record([])
    store.record(made[3:])
    assert store.decisions(None, 10) == made
    assert store.decisions("d3", 2) == made[1:3]
    assert store.decisions("d5", 2) == []
    assert store.decision("d1") == made[1]
    assert store.decision("d9") is None
    with pytest.raises(ParameterError, match="after: expected the id of a decision that is kept"):
        store.decisions("d9", 2)


def test_decisions_are_recorded_all_or_none(store):
    store.record([decision(1)])
    with pytest.raises(StorageError):
        store.record([decision(2), decision(1)])
    assert store.decisions(None, 10) == [decision(1)]
    with pytest.raises(ParameterError, match="time zone"):
        store.record([decision(2, at=datetime(2026, 3, 1))])


def test_states_are_recorded_with_their_decisions_or_not_at_all(store):
    store.record([decision(1)], {"batch/d1": b"pairs"})
    assert store.get_state("batch/d1") == b"pairs"
    with pytest.raises(StorageError):
        store.record([decision(2), decision(1)], {"batch/d2": b"pairs"})
    assert store.get_state("batch/d2") is None


def test_numbers_that_are_none_are_kept_as_none(store):
    store.record([decision(1, score=float("nan"), probability=np.float64(0.5), same=np.True_)])
    assert store.decision("d1") == decision(1, score=None, probability=0.5, same=True)


def test_feedback_is_kept(store):
    store.record([decision(1), decision(2)])
    assert store.feedback("d2", True) == decision(2, genuine=True)
    assert store.decision("d2").genuine is True
    assert store.feedback("d2", False) == decision(2, genuine=False)
    assert store.decision("d1").genuine is None
    assert store.feedback("d9", True) is None


def test_old_decisions_can_be_forgotten(store):
    store.record([decision(number) for number in range(5)])
    names = ("batch/d1", "batch/d1/genuine", "batch/d4", "batch/d4/genuine", "d1")
    for name in names:
        store.put_state(name, b"pairs")
    assert store.forget_before(START + timedelta(seconds=3)) == 3
    assert [one.id for one in store.decisions(None, 10)] == ["d3", "d4"]
    kept = [store.get_state(name) for name in names]
    assert kept == [None, None, b"pairs", b"pairs", b"pairs"]


def test_many_old_decisions_go_part_by_part(store, monkeypatch):
    monkeypatch.setattr("faircal.production.serving.store._PART", 2)
    parts = []

    def others(pause):  # between two parts somebody else can write
        parts.append(len(store.decisions(None, 10)))
        store.put_state("other", bytes([len(parts)]))

    monkeypatch.setattr("faircal.production.serving.store.sleep", others)
    store.record([decision(number) for number in range(6)])
    assert store.forget_before(START + timedelta(seconds=5)) == 5
    assert parts == [4, 2]
    assert [one.id for one in store.decisions(None, 10)] == ["d5"]


def test_a_state_is_changed_by_one_at_a_time(store, place):
    assert not store.change_state("count", lambda before: before + b"x")
    assert store.get_state("count") is None
    store.put_state("count", b"")
    other = open_store(*place)
    try:
        threads = [
            threading.Thread(
                target=lambda one: [
                    one.change_state("count", lambda before: before + b"x") for _ in range(10)
                ],
                args=(one,),
            )
            for one in (store, other, store)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        other.close()
    assert store.get_state("count") == b"x" * 30


def test_states_are_kept_by_name(store):
    assert store.get_state("watch") is None
    store.put_state("watch", b"one")
    store.put_state("watch", b"two")
    store.put_state("other", b"")
    assert store.get_state("watch") == b"two"
    assert store.get_state("other") == b""


def test_many_threads_can_use_a_store(store):
    faults = []

    def work(part):
        try:
            for number in range(10):
                store.enrol(f"{part}-{number}", [part + 1, number + 1])
                assert store.vectors([f"{part}-{number}"])
                assert store.search([part + 1, number + 1], 1)[0][1] > 0.99999
                store.record([decision(part * 100 + number)])
                if number % 2:
                    assert store.delete(f"{part}-{number}")
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert store.count() == 30
    assert len(store.decisions(None, 100)) == 60


def test_one_id_enrolled_at_once_is_enrolled_once(store):
    outcomes = []
    ready = threading.Barrier(4)

    def work(number):
        ready.wait()
        try:
            store.enrol("anna", [number + 1, 1])
            outcomes.append("enrolled")
        except ConflictError:
            outcomes.append("conflict")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["conflict"] * 3 + ["enrolled"]


def test_a_closed_store_says_so(store):
    store.enrol("anna", [1, 2])
    store.close()
    store.close()
    with pytest.raises(StorageError):
        store.enrol("ben", [1, 2])
    with pytest.raises(StorageError):
        store.search([1, 2], 1)
