"""On a standalone cluster: the numbers of one machine, also when a worker dies on the way."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections import Counter
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import faircal
from faircal.data.dataset_folder import save_dataset
from faircal.metrics.results import Result

pytest.importorskip("pyspark")

SIZES = {"people": 160, "images": 1600, "pairs": 24_000, "dimension": 64}
#: Row groups of the pairs, and so tasks; each takes a tenth of a second or two.
N_TASKS = 24
#: Seconds that a job may take; it takes about twenty.
PATIENCE = 300


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with data whose pairs can be cut into many tasks, a model, and its scores."""
    home = tmp_path_factory.mktemp("home")
    data = faircal.simulate("bfw-like", seed=5, **SIZES)
    faces = save_dataset(data, home / "faces")
    pairs = pyarrow.csv.read_csv(faces / "pairs.csv")
    pq.write_table(pairs, faces / "pairs.parquet", row_group_size=len(data) // N_TASKS)
    (faces / "pairs.csv").unlink()
    faircal.FairCal(n_clusters=20).fit(data).save(home / "m.faircal")
    return home


#: What is done on the cluster in one session; its arguments are the folder and the master.
SCRIPT = """
import json, sys
from pathlib import Path
import faircal
from faircal.production.spark import audit, open_pairs, score, write
from faircal.production.spark.session import SparkEngine

home = Path(sys.argv[1])
model = faircal.load_model(home / "m.faircal")
with SparkEngine(sys.argv[2]).session() as spark:
    pairs = open_pairs(spark, home / "faces")
    write(score(model, pairs), home / "scored.parquet")
    found = audit(pairs, model=model, attribute="ethnicity", threshold=0.5)
(home / "audit.json").write_text(json.dumps(found.rows))
"""


@pytest.fixture(scope="module")
def done(cluster, home):
    """The folder, with what `SCRIPT` wrote there."""
    said = cluster.run(home, cluster.url, program=("-c", SCRIPT))
    assert said == ""
    return home


def check(home, scored):
    """Assert that each pair was scored once, as one machine scores it."""
    data = faircal.load(home / "faces")
    p = faircal.load_model(home / "m.faircal").predict_proba(data)
    ids = np.asarray(data.images.ids)
    sides = zip(ids[data.pairs.left], ids[data.pairs.right], strict=True)
    expected = dict(zip(sides, p, strict=True))
    assert len(expected) == len(data)  # no pair twice
    found = pq.read_table(scored)
    pairs = list(zip(found["left"].to_pylist(), found["right"].to_pylist(), strict=True))
    assert len(pairs) == len(expected)
    assert set(pairs) == set(expected)
    there = found["probability"].to_numpy()
    np.testing.assert_allclose(there, [expected[pair] for pair in pairs], rtol=0, atol=1e-6)


def test_scores_are_those_of_one_machine(done):
    check(done, done / "scored.parquet")


def test_audit_is_that_of_one_machine(done):
    data = faircal.load(done / "faces")
    output = faircal.load_model(done / "m.faircal").apply(data)
    names, people = np.asarray(data.people.names), data.people
    exact = faircal.audit(
        score=output.score,
        probability=output.probability,
        genuine=data.genuine,
        groups=data.groups("ethnicity"),
        left_identity=names[people.left],
        right_identity=names[people.right],
        threshold=0.5,
    )
    found = [Result(*row) for row in json.loads((done / "audit.json").read_text())]
    assert [row.what for row in found] == [row.what for row in exact.rows]
    for here, there in zip(exact.rows, found, strict=True):
        assert there.withheld == here.withheld
        np.testing.assert_allclose(there[11:19], here[11:19], rtol=1e-9, atol=1e-9)


class Driver:
    """What a running driver says of its work on its pages."""

    def __init__(self, process, port):
        self.process, self._port = process, port

    def ask(self, path=""):
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/api/v1/applications{path}") as answer:
                return json.load(answer)
        except (URLError, ConnectionError, ValueError):  # not there yet, starting, or gone
            return []

    def scoring(self):
        """Return the stage that scores and writes, while it is at work, with its tasks."""
        for application in self.ask():
            for stage in self.ask(f"/{application['id']}/stages?status=active"):
                if stage["numTasks"] >= N_TASKS and stage["name"].startswith("parquet"):
                    found = self.ask(f"/{application['id']}/stages/{stage['stageId']}")
                    return found[0] if found else None
        return None

    def wait(self, what):
        """Wait until the stage that scores is as told, and return it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.process.poll() is None:
            stage = self.scoring()
            if stage is not None and what(stage):
                return stage
            time.sleep(0.02)
        raise AssertionError(f"the job is over too early\n{self.process.log.read_text()}")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def tasks_of(stage, executor, status):
    tasks = stage["tasks"].values()
    return [of for of in tasks if of["executorId"] == executor and of["status"] == status]


def logged(folder):
    """Return the events of Spark's log, in their order."""
    files = [path for path in sorted(folder.rglob("events_*")) if path.is_file()]
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def test_a_worker_killed_in_mid_job_costs_nothing(cluster, home):
    """This goes last: only one worker is left after it."""
    port, events = free_port(), home / "events"
    events.mkdir()
    size = (home / "faces" / "pairs.parquet").stat().st_size
    settings = {
        "spark.sql.files.maxPartitionBytes": size // N_TASKS,
        "spark.ui.enabled": "true",
        "spark.ui.port": port,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }
    conf = [word for item in settings.items() for word in ("--conf", "{}={}".format(*item))]
    words = ("score", home / "m.faircal", home / "faces", "--out", home / "killed.parquet")
    started = cluster.start(*words, "--engine", "spark", "--master", cluster.url, *conf)
    driver = Driver(started, port)
    driver.wait(lambda stage: stage["executorSummary"])
    # A worker has a folder for each of its executors, named by its number.
    (application,) = driver.ask()
    (folder,) = (cluster.folder / "work0" / application["id"]).iterdir()
    worker, executor = cluster.workers[0], folder.name
    # Something it has written, and something it is at: it can't end that while it is stopped.
    driver.wait(lambda stage: tasks_of(stage, executor, "SUCCESS"))
    worker.send(signal.SIGSTOP)
    stage = driver.wait(lambda stage: tasks_of(stage, executor, "RUNNING"))
    worker.kill()
    assert driver.process.process.wait(timeout=PATIENCE) == 0, driver.process.log.read_text()
    check(home, home / "killed.parquet")
    assert cluster.state()["aliveworkers"] == 1

    ends = [of for of in logged(events) if of["Event"] == "SparkListenerTaskEnd"]
    ends = [of for of in ends if of["Stage ID"] == stage["stageId"]]
    lost = [of for of in ends if of["Task End Reason"]["Reason"] == "ExecutorLostFailure"]
    done = [of for of in ends if of["Task End Reason"]["Reason"] == "Success"]
    assert [of["Task Info"]["Executor ID"] for of in lost] == [executor]
    assert len(ends) == len(lost) + len(done)
    assert Counter(of["Task Info"]["Index"] for of in done) == Counter(range(stage["numTasks"]))
    shares = Counter(of["Task Info"]["Executor ID"] for of in done)
    assert shares[executor] >= 1
    assert shares.total() - shares[executor] > 1
