"""Which tests execute which mutants: a plugin of Pytest that traces the lines they stand on."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

#: Lines of a file, each with the numbers of the mutants on it.
Lines = dict[int, list[int]]
#: Seconds of CPU and by the clock, while it is watched, after which a test is no judge.
_LONGEST, _STUCK = 4.0, 120.0


class TooLong(BaseException):
    """A test takes too long to judge."""


class Watching:
    """Notes, for each test that passes, what it takes and which mutants it executes."""

    def __init__(self, source: Path, targets: dict[str, Lines]):
        self.tests: dict[str, dict[str, Any]] = {}
        self._source, self._targets = str(source), targets
        self._codes: dict[int, tuple[CodeType, Lines | None]] = {}
        self._hit: set[int] = set()
        self._entered: set[int] = set()
        self._of_fixtures: dict[Any, set[int]] = defaultdict(set)
        self._seconds_of_fixtures: dict[Any, float] = defaultdict(float)
        self._setup = 0.0
        self._failed: set[str] = set()

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        del event, argument
        code = frame.f_code
        entry = self._codes.get(id(code))
        if entry is None:
            entry = self._codes[id(code)] = (code, self._lines_of(code))
        lines = entry[1]
        if lines is None:
            return None
        self._entered.add(id(code))
        return self._line if lines and not self._hit.issuperset(chain(*lines.values())) else None

    def _lines_of(self, code: CodeType) -> Lines | None:
        """Return the mutants of a function; None where it is not ours."""
        if not code.co_filename.startswith(self._source):
            return None
        targets = self._targets.get(code.co_filename, {})
        return {line: targets[line] for *_, line in code.co_lines() if line in targets}

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        del argument
        if event == "line":
            lines = self._codes[id(frame.f_code)][1] or {}
            self._hit.update(lines.get(frame.f_lineno, ()))
        return self._line

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Note what a fixture executes for all tests that share it, not for the first alone."""
        outer, self._hit = self._hit, set()
        started = time.process_time()
        try:
            return (yield)
        finally:
            seconds = time.process_time() - started
            self._setup += seconds
            longest = max(seconds, self._seconds_of_fixtures[fixturedef])
            self._seconds_of_fixtures[fixturedef] = longest
            self._of_fixtures[fixturedef] |= self._hit
            self._hit |= outer

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[Any]:
        """Trace a test."""
        self._hit, self._entered, self._setup = set(), set(), 0.0
        for number, timer, limit in (
            (signal.SIGPROF, signal.ITIMER_PROF, _LONGEST),
            (signal.SIGALRM, signal.ITIMER_REAL, _STUCK),
        ):
            signal.signal(number, _too_long)
            signal.setitimer(timer, limit)
        threading.settrace(self._call)
        sys.settrace(self._call)
        started = time.process_time()
        try:
            return (yield)
        finally:
            sys.settrace(None)
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._note(item, time.process_time() - started)

    def _note(self, item: Any, seconds: float) -> None:
        if item.nodeid in self._failed:
            return
        shared = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
        seconds -= self._setup
        for fixture in chain(*shared.values()):
            self._hit |= self._of_fixtures[fixture]
            seconds += self._seconds_of_fixtures[fixture]
        self.tests[item.nodeid] = {
            "seconds": round(seconds, 3),
            "functions": len(self._entered),
            "mutants": sorted(self._hit),
        }

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Remember what does not pass: it cannot judge."""
        if report.outcome != "passed":
            self._failed.add(report.nodeid)


def _too_long(*_: Any) -> None:
    raise TooLong
