"""A process that is killed at any moment has lost nothing it acknowledged."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from faircal.production.serving.store import open_store

#: Imports once, then forks for every line it reads: url, key, first number. The child enrols and
#: records until it is killed, and says what is done after it is.
WORKER = """
import os, sys
from datetime import datetime, UTC
import numpy as np
from faircal.production.serving.store import Decision, open_store

def say(text):
    os.write(1, f"{text}\\n".encode())

def work(url, key, first):
    store = open_store(url, bytes.fromhex(key) or None)
    number = int(first)
    while True:
        store.enrol(f"t{number}", np.full(64, number + 1, np.float32))
        say(f"t{number}")
        left = f"t{number}"
        store.record([Decision(f"d{number}", datetime.now(UTC), "enrol", "k", "m", left=left)])
        say(f"d{number}")
        number += 1

while line := sys.stdin.readline():
    child = os.fork()
    if not child:
        try:
            say(os.getpid())
            work(*line.rstrip("\\n").split("\\t"))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    say(f"ended by {os.WTERMSIG(status)}")
"""


@pytest.fixture(scope="module")
def worker():
    """What starts processes that work on a store."""
    command = [sys.executable, "-c", WORKER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as started:
        yield started
        started.stdin.close()


def killed_after(worker, lines, url, key, first):
    """Run work, kill it with -9 once it has told of `lines`; return all that it told of."""
    worker.stdin.write(f"{url}\t{(key or b'').hex()}\t{first}\n")
    worker.stdin.flush()
    pid = int(worker.stdout.readline())
    told = [worker.stdout.readline().strip() for _ in range(lines)]
    os.kill(pid, signal.SIGKILL)
    while (line := worker.stdout.readline()) and not line.startswith("ended"):
        told.append(line.strip())
    assert line == f"ended by {signal.SIGKILL:d}\n"
    return told


@pytest.mark.parametrize("place", ["sqlite", "postgres-sealed"], indirect=True)
def test_kill_9_loses_no_acknowledged_enrolment_and_no_decision(place, worker):
    url, key = place
    told, moments = [], np.random.default_rng(0)
    for start in range(0, 400_000, 100_000):
        told += killed_after(worker, int(moments.integers(5, 60)), url, key, start)
    store = open_store(url, key)
    try:
        templates = [one for one in told if one.startswith("t")]
        assert len(templates) >= 6
        found = store.vectors(templates)
        assert set(templates) - found.keys() == set()
        for name, vector in found.items():
            np.testing.assert_array_equal(vector, np.full(64, int(name[1:]) + 1))
        kept = {one.id for one in store.decisions(None, 100_000)}
        assert {one for one in told if one.startswith("d")} - kept == set()
        assert len(store.search(np.ones(64), 100_000)) == store.count()
        store.enrol("after", np.ones(64))
    finally:
        store.close()
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
