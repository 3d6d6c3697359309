"""A number of threads of one's choice, and Python of one's own: where packages may be missing."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from faircal.compute import threads

BLOCK = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked by this test", name=name)

sys.meta_path.insert(0, Blocker())
"""


@pytest.fixture
def use_threads(monkeypatch):
    """A function that sets the number of threads for the rest of a test."""

    def forget():
        threads.n_threads.cache_clear()
        threads._pool.cache_clear()

    def use(n):
        monkeypatch.setenv(threads.VARIABLE, str(n))
        forget()

    yield use
    forget()


@pytest.fixture(scope="session")
def python():
    """A function that runs a script in a Python of its own and returns what it prints."""

    def run(script, *, n_threads=None, without=(), options=("-W", "error")):
        environment = {key: value for key, value in os.environ.items() if key != threads.VARIABLE}
        if n_threads is not None:
            environment[threads.VARIABLE] = str(n_threads)
        found = subprocess.run(
            [sys.executable, *options, "-c", BLOCK.format(names=without) + textwrap.dedent(script)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert found.returncode == 0, found.stderr
        return found.stdout

    return run
