"""Others' use of the processors is told from our own."""

from __future__ import annotations

import pytest

from benchmarks.disturbance import Watch, busy_seconds, share


def test_busy_is_all_but_idle_and_waiting():
    line = "cpu  1 2 4 8 16 32 64 128 256 512"  # the last two are counted in the first two
    assert busy_seconds(f"{line}\ncpu0 9 9 9 9 9 9 9 9 9 9\n", ticks=1) == 1 + 2 + 4 + 32 + 64 + 128


@pytest.mark.parametrize(
    ("busy", "own", "expected"),
    [(10.0, 10.0, 0.0), (14.0, 10.0, 0.2), (9.9, 10.0, 0.0), (20.0, 0.0, 1.0)],
)
def test_what_is_not_our_own_is_others(busy, own, expected):
    assert share(busy, own, seconds=10.0, cores=2) == pytest.approx(expected)


def test_a_watch_tells_a_share():
    watch = Watch()
    total = sum(i * i for i in range(200_000))
    assert total > 0
    assert watch.others() >= 0.0
