"""Spark for the tests: a session in this process, and a small cluster of processes beside it.

Only one session can live in a process, so there are two ways:

- `spark` is that session, in local mode, shared by all tests of the process. Nobody may stop it or
  change its settings.
- `cluster` is a standalone cluster. Its driver is a subprocess: ``cluster.run("score", …)`` is a
  command of faircal, ``cluster.start(…)`` the same without waiting for its end; with
  ``program=("-c", text)`` it is a script.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pytest

#: Spark speaks to nobody but this machine, and its workers run this Python. Java compiles quickly
#: rather than well: what the tests run is over before the other way pays.
ENVIRONMENT = {
    "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "SPARK_LOCAL_IP": "127.0.0.1",
    "PYSPARK_PYTHON": sys.executable,
    "PYSPARK_DRIVER_PYTHON": sys.executable,
}
#: How long a cluster may take to start, in seconds; it takes about ten.
PATIENCE = 300


def need_spark():
    """Skip where Spark, or the Java that it runs on, is not installed."""
    pytest.importorskip("pyspark")
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        pytest.skip("Java is not installed")


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A session in local mode with two cores."""
    need_spark()
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        builder = SparkSession.builder.master("local[2]").appName("faircal tests")
        session = builder.config(map=settings).getOrCreate()
        try:
            yield session
        finally:
            session.stop()


@dataclass(frozen=True)
class Process:
    """A master, worker or driver: the leader of a session of processes, which it is killed with.

    A session, not a group: Spark's Python workers make a group of their own.
    """

    process: subprocess.Popen
    log: Path

    @classmethod
    def start(cls, words, log, environment):
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [str(word) for word in words],
                env=environment,
                cwd=log.parent,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return cls(process, log)

    def ids(self):
        """Return the processes of the session that are alive."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:  # it has ended meanwhile
                    continue
                state, session = fields[0], int(fields[3])
                if session == self.process.pid and state not in "ZX":
                    found.append(int(entry.name))
        return found

    def send(self, number):
        """Send a signal to all of the session, such as to stop it for a while."""
        for process in self.ids():
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(process, number)

    def kill(self):
        """End all of the session at once, as if the machine were switched off."""
        while self.ids():
            self.send(signal.SIGKILL)
        self.process.wait()

    def said(self, pattern, patience=PATIENCE):
        """Wait until the log has `pattern` and return the match."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            text = self.log.read_text(errors="replace")
            if found := re.search(pattern, text):
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError(f"{pattern!r} is not in {self.log}:\n{text}")


class Cluster:
    """A standalone master and two workers with one core each, all on this machine.

    Attributes
    ----------
    url : str
        What ``--master`` takes.
    workers : list of Process
        To be killed by tests; each with its executors and their Python processes.
    """

    def __init__(self, folder):
        import pyspark

        home = Path(pyspark.__file__).parent
        self.folder = folder
        self.environment = (
            os.environ
            | ENVIRONMENT
            | {
                "SPARK_HOME": str(home),
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",  # a port that is fixed
                "SPARK_LOCAL_DIRS": str(folder / "local"),
            }
        )
        self.workers = []
        self._class = home / "bin" / "spark-class"
        self._started = []

    def open(self):
        """Start all, and wait until the master knows both workers."""
        deploy = "org.apache.spark.deploy"
        master = self._start("master", f"{deploy}.master.Master", "--port", 0)
        self.url = master.said(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")[1]
        self._page = master.said(r"MasterUI' on port (\d+)")[1]
        for number in range(2):
            words = ("--cores", 1, "--memory", "1g", "--work-dir", self.folder / f"work{number}")
            words = (f"{deploy}.worker.Worker", *words, self.url)
            self.workers.append(self._start(f"worker{number}", *words))
        for worker in self.workers:
            worker.said("Successfully registered with master")
        assert self.state()["aliveworkers"] == len(self.workers)

    def _start(self, name, kind, *words):
        words = (self._class, kind, "--host", "127.0.0.1", "--webui-port", 0, *words)
        started = Process.start(words, self.folder / f"{name}.log", self.environment)
        self._started.append(started)
        return started

    def state(self):
        """What the master says of its workers and applications."""
        with urlopen(f"http://127.0.0.1:{self._page}/json/") as answer:
            return json.load(answer)

    def start(self, *words, program=("-m", "faircal")):
        """Start a command of faircal, or another program, as the driver; the log has its words."""
        log = self.folder / f"driver{len(self._started)}.log"
        started = Process.start((sys.executable, *program, *words), log, self.environment)
        self._started.append(started)
        return started

    def run(self, *words, **more):
        """Run a command to its end, which must be good; return what it said."""
        started = self.start(*words, **more)
        code = started.process.wait(timeout=PATIENCE)
        said = started.log.read_text()
        assert code == 0, said
        return said

    def stop(self):
        for started in reversed(self._started):
            started.kill()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster of the module's own: its tests may kill a worker."""
    need_spark()
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.open()
        yield made
    finally:
        made.stop()
