"""What is measured is the thing itself: turns, threads, the memory of a child."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks.timing import command, our_threads, race

MB = 2**20


def test_works_take_turns_after_a_call_that_does_not_count():
    calls = []
    took = race({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=2)
    assert calls == list("ababab")
    assert set(took) == {"a", "b"}
    race({"a": lambda: calls.append("a")}, rounds=1, warm_up=False)
    assert len(calls) == 7


def test_what_runs_alone_too_has_one_thread_then():
    threads = []

    def work():
        found = threadpool_info()
        threads.append(max(library["num_threads"] for library in found))

    with threadpool_limits(2):
        race({"ours": lambda: None, "theirs": work}, rounds=1, also_alone=["theirs"])
    assert threads == [2, 1, 2, 1]


def test_threads_are_ours_to_set(monkeypatch):
    from faircal.compute import threads

    monkeypatch.delenv(threads.VARIABLE, raising=False)
    with our_threads(3):
        assert threads.n_threads() == 3
        assert threads._pool(os.getpid())._max_workers == 3
    assert threads.VARIABLE not in os.environ
    assert threads.n_threads() == len(os.sched_getaffinity(0))


def test_the_memory_of_a_command_is_its_own():
    ours = np.ones(200 * MB, dtype=np.uint8)  # a child would inherit the peak of this process
    small = command([sys.executable, "-c", "pass"])
    large = command([sys.executable, "-c", "b = bytearray(150 * 2**20)"])
    assert len(ours) == 200 * MB
    assert small.peak < 100 * MB
    assert 150 * MB < large.peak < 200 * MB
    assert small.cpu > 0
    assert small.seconds > 0


def test_a_command_that_fails_is_told_with_its_last_words():
    with pytest.raises(RuntimeError, match="ended with 3: no such luck"):
        command(
            [
                sys.executable,
                "-c",
                "import sys; print('no such luck', file=sys.stderr); sys.exit(3)",
            ]
        )
