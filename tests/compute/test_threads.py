"""Blocks on all cores: order, errors, and matrix products held at one thread."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from faircal._base.errors import ParameterError
from faircal.compute import threads
from faircal.compute.threads import VARIABLE, each, n_threads, one_blas_thread

PATIENCE = 60  # seconds after which a test that hangs fails


def bounds(part):
    return part.start, part.stop


def blas_threads():
    """Of the libraries that NumPy and SciPy use; a test before may have loaded others."""
    return [pool["num_threads"] for pool in threads._libraries().info()]


class TestEach:
    @pytest.mark.parametrize("count", [1, 2, 5])
    @pytest.mark.parametrize(
        ("n", "block", "expected"),
        [
            (0, 4, []),
            (3, 4, [(0, 3)]),
            (4, 4, [(0, 4)]),
            (10, 4, [(0, 4), (4, 8), (8, 10)]),
            (3, 1, [(0, 1), (1, 2), (2, 3)]),
        ],
    )
    def test_blocks_are_the_same_for_any_number_of_threads(
        self, use_threads, count, n, block, expected
    ):
        use_threads(count)
        assert each(bounds, n, block) == expected

    def test_results_are_in_order_whoever_is_first(self, use_threads):
        use_threads(2)
        last_has_run = threading.Event()

        def work(part):
            if part.start == 0:
                assert last_has_run.wait(PATIENCE)
            elif part.start == 9:
                last_has_run.set()
            return part.start

        assert each(work, 10, 1) == list(range(10))

    def test_as_many_threads_as_told_and_shared_by_all_callers(self, use_threads):
        use_threads(3)
        lock, all_at_work = threading.Lock(), threading.Barrier(3)
        now, most, names = 0, 0, set()

        def work(part):
            nonlocal now, most
            with lock:
                now += 1
                most = max(most, now)
                names.add(threading.current_thread().name)
            if part.start < 3:  # each caller has three such blocks: three are at work together
                all_at_work.wait(PATIENCE)
            with lock:
                now -= 1
            return part.start

        with ThreadPoolExecutor(4) as callers:
            found = list(callers.map(lambda _: each(work, 12, 1), range(4)))
        assert found == [list(range(12))] * 4
        assert most == 3
        assert len(names) == 3

    def test_one_thread_is_the_callers_own(self, use_threads):
        use_threads(1)
        assert set(each(lambda part: threading.current_thread(), 5, 1)) == {
            threading.current_thread()
        }

    @pytest.mark.parametrize("count", [1, 3])
    def test_the_first_error_in_order_comes_out(self, use_threads, count):
        use_threads(count)
        later = threading.Event()

        def work(part):
            if part.start == 2:
                if count > 1:  # fails after a later block did
                    assert later.wait(PATIENCE)
                raise KeyError("block 2")
            if part.start == 3:
                later.set()
                raise ValueError("block 3")
            return part.start

        with pytest.raises(KeyError, match="block 2"):
            each(work, 8, 1)
        assert each(bounds, 2, 1) == [(0, 1), (1, 2)]  # and the threads go on

    def test_blocks_within_blocks_and_in_a_forked_child(self, python):
        # Were they given to the same threads, which all wait for them, this would never end.
        script = """
            import os
            from faircal.compute.threads import each
            def inner(part):
                return part.start
            def work(part):
                return sum(each(lambda p: sum(each(inner, 3, 1)) + p.start, 4, 1)) + part.start
            print(each(work, 6, 1))
            child = os.fork()  # has threads of its own
            if not child:
                os._exit(7 if each(inner, 4, 1) == [0, 1, 2, 3] else 1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
        # Newer Pythons warn of any fork beside threads.
        said = python(script, n_threads=2, options=())
        assert said == "[18, 19, 20, 21, 22, 23]\n7\n"


class TestNumberOfThreads:
    def test_as_told(self, use_threads):
        use_threads(3)
        assert n_threads() == 3

    def test_cores_unless_told(self, use_threads, monkeypatch):
        use_threads(1)
        monkeypatch.delenv(VARIABLE)
        n_threads.cache_clear()
        monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 2, 3, 9, 11}, raising=False)
        assert n_threads() == 5

    @pytest.mark.parametrize(("cores", "expected"), [(6, 6), (None, 1)])
    def test_where_the_system_does_not_say_which_it_may_use(
        self, use_threads, monkeypatch, cores, expected
    ):
        use_threads(1)
        monkeypatch.delenv(VARIABLE)
        n_threads.cache_clear()
        monkeypatch.delattr("os.sched_getaffinity", raising=False)
        monkeypatch.setattr("os.cpu_count", lambda: cores)
        assert n_threads() == expected

    @pytest.mark.parametrize("told", ["0", "-1", "two", "1.5", "", " 2"])
    def test_refused(self, use_threads, told):
        use_threads(told)
        with pytest.raises(ParameterError, match=rf"^{VARIABLE}: expected .*, found '{told}'; un"):
            each(bounds, 8, 1)


class TestOneBlasThread:
    @pytest.fixture(autouse=True)
    def two(self):
        with threadpool_limits(2, user_api="blas"):
            assert set(blas_threads()) == {2}
            yield

    def test_held_and_given_back(self):
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {2}

    def test_after_an_error(self):
        with pytest.raises(KeyError), one_blas_thread():
            raise KeyError
        assert set(blas_threads()) == {2}

    def test_within_itself(self):
        with one_blas_thread():
            with one_blas_thread():
                pass
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {2}

    def test_the_last_to_leave_gives_it_back(self):
        # Two who overlap: the one who came first leaves first.
        first_in, second_in, first_out = (threading.Event() for _ in range(3))

        def first():
            with one_blas_thread():
                first_in.set()
                assert second_in.wait(PATIENCE)
            first_out.set()

        def second():
            assert first_in.wait(PATIENCE)
            with one_blas_thread():
                second_in.set()
                assert first_out.wait(PATIENCE)
                return set(blas_threads())

        with ThreadPoolExecutor(2) as pool:
            ended, seen = pool.submit(first), pool.submit(second)
            ended.result(PATIENCE)
            assert seen.result(PATIENCE) == {1}
        assert set(blas_threads()) == {2}

    def test_many_come_and_go(self):
        def work(_):
            for _ in range(20):
                with one_blas_thread(), one_blas_thread():
                    seen = set(blas_threads())
                    assert seen == {1}, seen

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        assert set(blas_threads()) == {2}


def test_a_product_in_blocks_is_the_same_for_any_number_of_threads(use_threads):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(1000, 300)).astype(np.float32)
    b = rng.normal(size=(300, 70)).astype(np.float32)
    found = []
    for count in (1, 2, 3):
        use_threads(count)
        for limit in (1, 2):
            with threadpool_limits(limit, user_api="blas"), one_blas_thread():
                found.append(np.concatenate(each(lambda part: a[part] @ b, len(a), 96)))
    assert len({product.tobytes() for product in found}) == 1
