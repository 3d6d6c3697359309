"""Work ahead in a thread: the same items, errors where they are taken, an end when it is closed."""

from __future__ import annotations

import threading

import pytest

from faircal.data.stream import ahead


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "faircal-ahead"]


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 50])
def test_the_same_items(n, depth):
    assert list(ahead(iter(range(n)), depth)) == list(range(n))
    assert threads() == []


def test_items_are_made_in_another_thread():
    assert next(ahead(threading.current_thread() for _ in range(1))) is not threading.main_thread()


def test_an_error_comes_out_after_the_items_before_it():
    def items():
        yield 1
        yield 2
        raise KeyError("x")

    found = []
    with pytest.raises(KeyError, match="x"):
        found.extend(ahead(items()))
    assert threads() == []
    taken = ahead(items())
    assert [next(taken), next(taken)] == [1, 2]


def test_it_is_at_most_so_far_ahead():
    made, wanted = [], threading.Semaphore(0)

    def items():
        for n in range(100):
            made.append(n)
            wanted.release()
            yield n

    taken = ahead(items(), 2)
    for count in range(1, 20):
        next(taken)
        # Taken, two that wait, and one that is being handed over.
        assert len(made) <= count + 3
    for _ in range(22):
        assert wanted.acquire(timeout=60)  # and it does work ahead
    taken.close()


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("taken", [1, 3])
def test_closing_ends_the_thread_and_closes_the_items(taken, depth):
    closed = threading.Event()

    def items():
        try:
            while True:
                yield 0
        finally:
            closed.set()

    work = ahead(items(), depth)
    for _ in range(taken):
        next(work)
    work.close()
    assert closed.is_set()
    assert threads() == []


def test_one_behind_the_other():
    """Closing the last closes all."""
    work = ahead(n + 1 for n in ahead(iter(range(1000))))
    assert next(work) == 1
    assert len(threads()) == 2
    work.close()
    assert threads() == []


def test_nothing_begins_before_the_first_item_is_asked_for():
    work = ahead(iter(range(3)))
    assert threads() == []
    work.close()
