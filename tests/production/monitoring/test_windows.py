"""Windows of many lengths, and what is set aside for each look."""

import numpy as np
import pytest

from faircal.production.monitoring.windows import WindowLadder, share_of


def test_windows_are_the_last_blocks():
    rng = np.random.default_rng(0)
    blocks = rng.integers(0, 9, (70, 3))
    ladder, seen = WindowLadder(3, 1), []
    for number, block in enumerate(blocks, start=1):
        for look in ladder.add(block[None].copy(), 1):
            assert look.end == number
            expected = blocks[number - look.length : number].sum(axis=0)
            np.testing.assert_array_equal(look.counts, expected)
            seen.append((number, look.length))
    assert seen[:6] == [(1, 1), (2, 2), (4, 4), (8, 8), (10, 8), (12, 8)]
    assert (70, 8) in seen
    assert (68, 16) in seen
    assert (64, 64) in seen


def test_a_change_is_in_a_full_window_soon():
    """Within 20,000 pairs, of 500 a block, one of 16,000 has ended, whenever the change came."""
    for quiet in range(100, 140):
        ladder, longest = WindowLadder(1, 1), 0
        for number in range(quiet + 40):
            for look in ladder.add(np.array([[int(number >= quiet)]]), 1):
                if look.counts[0] == look.length:
                    longest = max(longest, look.length)
        assert longest >= 32 - 4 * (quiet % 8 != 0) * 4


def test_all_looks_together_have_the_whole_rate_at_most():
    total = sum(share_of(level, number) for level in range(60) for number in range(5000))
    assert 0.99 < total <= 1
    ladder = WindowLadder(1, 1)
    spent = sum(look.share for _ in range(5000) for look in ladder.add(np.array([[1]]), 1))
    assert spent <= 1


def test_it_goes_on_where_it_was():
    rng = np.random.default_rng(1)
    blocks = rng.integers(0, 5, (40, 2))
    straight, before = WindowLadder(2, 1), WindowLadder(2, 1)
    for block in blocks[:17]:
        straight.add(block[None].copy(), 1)
        before.add(block[None].copy(), 1)
    after = WindowLadder.restore(2, 1, before.get_state())
    for block in blocks[17:]:
        one, other = straight.add(block[None].copy(), 1), after.add(block[None].copy(), 1)
        assert [look.end for look in one] == [look.end for look in other]
        for mine, theirs in zip(one, other, strict=True):
            np.testing.assert_array_equal(mine.counts, theirs.counts)


@pytest.mark.parametrize("key", ["count", "blocks"])
def test_a_state_that_does_not_hold_together_is_refused(key):
    ladder = WindowLadder(2, 1)
    for _ in range(6):
        ladder.add(np.ones((1, 2), np.int64), 1)
    state = ladder.get_state()
    state[key] = state[key] + 2 if key == "count" else state[key][:-1]
    with pytest.raises(ValueError, match="fit"):
        WindowLadder.restore(2, 1, state)
