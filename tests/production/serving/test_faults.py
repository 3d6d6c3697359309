"""Processes killed, databases away, disks full, models swapped: nothing acknowledged is lost.

The service is a process of its own here, and what is asked of it goes over the wire.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

import faircal
from faircal._base.errors import StorageUnavailableError
from faircal.data import Embeddings
from faircal.production.describe import describe
from faircal.production.monitoring import survey
from faircal.production.scoring.judging import Judge
from faircal.production.serving.app import make_app
from faircal.production.serving.live_monitor import BackgroundJobs
from faircal.production.serving.server import _withheld
from faircal.production.serving.store import open_store
from tests.production.serving.running import eventually, small_disk

#: Seconds in which an answer must come, whatever is wrong; on a busy machine.
BOUND = 10.0


@pytest.fixture(params=["sqlite", "postgres"])
def database(request, tmp_path):
    if request.param == "postgres":
        return request.getfixturevalue("postgres").empty()
    return str(tmp_path / "store.db")


def is_sound(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def pair(vectors, left=0, right=1):
    return {"left": vectors[left].tolist(), "right": vectors[right].tolist()}


# ------------------------------------------------------------------------- kill -9


class Load:
    """Threads that enrol and verify until nobody answers any more."""

    def __init__(self, running, vectors, first):
        self._address, self._vectors, self._first = running.address, vectors, first
        self.enrolled, self.verified, self.wrong = {}, [], []
        self._threads = [
            threading.Thread(target=self._until_nobody_answers, args=(work, number))
            for number, work in enumerate([self._enrol, self._enrol, self._enrol, self._verify])
        ]
        for thread in self._threads:
            thread.start()

    def join(self):
        for thread in self._threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in self._threads)

    def _until_nobody_answers(self, work, number):
        with httpx.Client(base_url=self._address, timeout=30) as client:
            for count in itertools.count():
                try:
                    work(client, f"{self._first}-{number}-{count}", count)
                except httpx.TransportError:
                    return

    def _enrol(self, client, name, count):
        row = hash((name, count)) % len(self._vectors)
        body = {"id": name, "embedding": self._vectors[row].tolist()}
        said = client.post("/v1/templates", json=body)
        if said.status_code == 201:
            self.enrolled[name] = row
        else:
            self.wrong.append(said.text)

    def _verify(self, client, name, count):
        known = list(self.enrolled.items())
        if not known:
            time.sleep(0.01)
            return
        template, row = known[count % len(known)]
        probe = self._vectors[row].tolist()
        said = client.post("/v1/verify", json={"left": {"template": template}, "right": probe})
        if said.status_code == 200 and said.json()["similarity"] > 0.9999:
            self.verified.append(said.json()["id"])
        else:
            self.wrong.append(said.text)


def test_kill_9_under_load_loses_no_acknowledged_enrolment(
    spawner, database, model_path, tmp_path, vectors
):
    enrolled, moments = {}, np.random.default_rng()
    words = (model_path, "--database", database, "--no-page", "--no-access-log")
    for round_ in range(2):
        with spawner.start(*words, log=tmp_path / "log") as running:
            load = Load(running, vectors, f"round {round_}")
            eventually(lambda load=load: len(load.enrolled) > 5 and load.verified)
            time.sleep(moments.uniform(0, 0.4))
            running.kill()
            load.join()
        assert load.wrong == []
        enrolled |= load.enrolled
    with spawner.start(*words, log=tmp_path / "log") as running, running.client() as client:
        codes = {client.get(f"/v1/templates/{name}").status_code for name in enrolled}
        assert codes == {200}
        names = list(enrolled)
        batch = {"left": names, "right": [vectors[enrolled[name]].tolist() for name in names]}
        said = client.post("/v1/verify/batch", json=batch).json()
        np.testing.assert_allclose(said["similarity"], 1, atol=1e-5)
        more = {"id": "after", "embedding": vectors[0].tolist()}
        assert client.post("/v1/templates", json=more).status_code == 201
        found = client.post("/v1/identify", json={"embedding": vectors[0].tolist()}).json()
        assert found["enrolled"] >= len(enrolled) + 1
        running.end()
    assert "unexpected" not in (tmp_path / "log").read_text()
    if not database.startswith("postgresql"):
        assert is_sound(database)


# ------------------------------------------------------------------- database away


def timed(client, method, path, **options):
    """Ask; fail where the answer takes too long."""
    start = time.monotonic()
    said = client.request(method, path, **options)
    assert time.monotonic() - start < BOUND
    return said


def answers(running, vectors):
    """Return what is answered, by name, to all that needs the database; asked at once."""
    face = {"embedding": vectors[0].tolist()}
    known = {"left": {"template": "anna"}, "right": vectors[1].tolist()}
    label = {"decision": "x", "genuine": True}
    asked = {
        "enrol": ("POST", "/v1/templates", {"id": "ben", **face}),
        "verify": ("POST", "/v1/verify", pair(vectors)),
        "verify known": ("POST", "/v1/verify", known),
        "verify template": ("POST", "/v1/templates/anna/verify", face),
        "batch": ("POST", "/v1/verify/batch", {"pairs": [known, known]}),
        "identify": ("POST", "/v1/identify", face),
        "list": ("GET", "/v1/templates", None),
        "info": ("GET", "/v1/templates/anna", None),
        "delete": ("DELETE", "/v1/templates/carl", None),
        "trail": ("GET", "/v1/decisions", None),
        "csv": ("GET", "/v1/decisions?format=csv", None),
        "feedback": ("POST", "/v1/feedback", label),
        "ready": ("GET", "/readyz", None),
    }

    def ask(name):
        method, path, body = asked[name]
        with running.client() as client:
            return name, timed(client, method, path, json=body)

    with ThreadPoolExecutor(len(asked)) as threads:
        return dict(threads.map(ask, asked))


def keep_asking(client, vectors, until, seconds=30.0):
    """Verify until the answer's code is `until`; return the ids of the decisions on the way."""
    made = []

    def asked():
        said = timed(client, "POST", "/v1/verify", json=pair(vectors))
        if said.status_code == 200:
            made.append(said.json()["id"])
        return said if said.status_code == until else None

    return eventually(asked, seconds), made


def recorded(client):
    """Return the ids of all decisions in the trail."""
    lines = client.get("/v1/decisions?format=csv").text.splitlines()[1:]
    return {line.partition(",")[0] for line in lines}


def test_a_database_that_goes_away_is_told_and_found_again(
    spawner, postgres, model_path, tmp_path, vectors
):
    url = postgres.empty()
    words = (model_path, "--database", url, "--no-page", "--no-access-log")
    with spawner.start(*words, log=tmp_path / "log") as running, running.client() as client:
        anna = {"id": "anna", "embedding": vectors[0].tolist()}
        assert client.post("/v1/templates", json=anna).status_code == 201
        made = [client.post("/v1/verify", json=pair(vectors)).json()["id"]]
        postgres.stop()
        try:
            refused, more = keep_asking(client, vectors, until=503)
            assert refused.headers["retry-after"]
            assert "does not answer" in refused.json()["error"]["message"]
            found = answers(running, vectors)
            codes = {name: said.status_code for name, said in found.items()}
            assert codes == dict.fromkeys(codes, 503)
            assert all("retry-after" in said.headers for said in found.values())
            assert timed(client, "GET", "/healthz").status_code == 200
            assert timed(client, "GET", "/metrics").status_code == 200
            with pytest.raises(StorageUnavailableError) as at_start:
                open_store(url)
        finally:
            postgres.start()
        eventually(lambda: client.get("/readyz").status_code == 200)
        last, still = keep_asking(client, vectors, until=200)
        codes = {name: said.status_code for name, said in answers(running, vectors).items()}
        unknown = {"delete": 404, "feedback": 404}
        assert codes == dict.fromkeys(codes, 200) | {"enrol": 201, **unknown}
        assert {*made, *more, *still, last.json()["id"]} <= recorded(client)
        assert running.end() == 0
    assert str(at_start.value).startswith("PostgreSQL at")
    assert "check server, database, user and password" in str(at_start.value)
    assert "\n" not in str(at_start.value)
    assert "Traceback" not in running.said()
    assert "unexpected" not in running.said()


# ----------------------------------------------------------------------- full disk

#: The next best thing to a small disk: SQLite's own limit, which it tells the same way.
LIMITED = """
import os
from faircal.production.serving.store.sqlite import SqliteStore

def limited(self, patient=False, writing=SqliteStore._writing, exists=os.path.exists):
    pages = 60 if exists({ballast!r}) else 1_000_000
    self._writer.execute(f"PRAGMA max_page_count = {{pages}}")
    return writing(self, patient)

SqliteStore._writing = limited
"""


def fill(path):
    """Write until there is no room, or a megabyte."""
    with path.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        for size in (65536, 4096, 512, 1):
            while path.stat().st_size < 4_000_000 and file.write(bytes(size)) == size:
                pass


@pytest.mark.parametrize("kind", ["disk", "limit"])
def test_a_full_disk_is_told_and_nothing_is_lost(spawner, kind, model_path, tmp_path, vectors):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = small_disk(disk) if kind == "disk" else contextlib.nullcontext(False)
    with mount as mounted:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(1_000_000))
        first = "" if mounted else LIMITED.format(ballast=str(ballast))
        words = (model_path, "--database", disk / "store.db", "--no-page", "--no-access-log")
        with (
            spawner.start(*words, log=tmp_path / "log", first=first) as running,
            running.client() as client,
        ):
            done = []
            for number in range(5000):
                body = {"id": f"t{number}", "embedding": vectors[number % 9].tolist()}
                said = client.post("/v1/templates", json=body)
                if said.status_code != 201:
                    break
                done.append(f"t{number}")
            assert (said.status_code, said.json()["error"]["code"]) == (507, "storage_full")
            assert "no room left on the disk; nothing was written" in said.text
            assert len(done) > 5
            if mounted:
                fill(ballast)
            refused, made = keep_asking(client, vectors, until=507)
            assert "no room left" in refused.json()["error"]["message"]
            batch = {"pairs": [pair(vectors)] * 3}
            assert client.post("/v1/verify/batch", json=batch).status_code == 507
            assert client.get("/readyz").status_code == 503
            assert client.get("/healthz").status_code == 200
            assert client.get(f"/v1/templates/{done[0]}").status_code == 200
            assert is_sound(disk / "store.db")
            ballast.unlink()
            eventually(lambda: client.get("/readyz").status_code == 200)
            again = {"id": "again", "embedding": vectors[0].tolist()}
            assert client.post("/v1/templates", json=again).status_code == 201
            said = client.post("/v1/verify", json=pair(vectors))
            listed = client.get("/v1/templates?limit=1000").json()["templates"]
            kept = {one["id"] for one in listed}
            assert {*done, "again"} == kept
            assert {*made, said.json()["id"]} <= recorded(client)
            assert running.end() == 0
        assert is_sound(disk / "store.db")
    assert "no room left" in running.said()
    assert "unexpected" not in running.said()


# ---------------------------------------------------------------------- other models


@pytest.fixture(scope="module")
def models(data, tmp_path_factory):
    """Three model files, and by digest what each says of the first nine pairs."""
    import hashlib

    folder, said = tmp_path_factory.mktemp("models"), {}
    vectors = Embeddings(data[1].embeddings.vectors[:10])
    paths = []
    for seed in range(3):
        model = faircal.FairCal(n_clusters=3 + seed, random_state=seed).fit(data[0])
        describe(model, data[0])
        survey(model, data[0])
        paths.append(folder / f"{seed}.faircal")
        model.save(paths[-1])
        judged = Judge.of(model)(vectors, np.zeros(9, dtype=np.intp), np.arange(1, 10))
        said[hashlib.sha256(paths[-1].read_bytes()).hexdigest()] = judged
    return paths, said


class Asking:
    """Threads that verify all the time, and compare each answer with the model it names."""

    def __init__(self, running, vectors, said):
        self._running, self._vectors, self._said = running, vectors, said
        self.codes, self.wrong, self.digests = [], [], set()
        self._stop = threading.Event()
        works = (self._one, self._one, self._batch, self._identify)
        self._threads = [threading.Thread(target=self._run, args=(work,)) for work in works]
        for thread in self._threads:
            thread.start()

    def _run(self, work):
        with self._running.client() as client:
            count = 0
            while not self._stop.is_set():
                try:
                    work(client, count % 9)
                except Exception as error:
                    self.wrong.append(repr(error))
                count += 1

    def _one(self, client, number):
        found = self._answer(client.post("/v1/verify", json=pair(self._vectors, 0, number + 1)))
        self._compare(found, number)

    def _batch(self, client, number):
        pairs = [pair(self._vectors, 0, k + 1) for k in range(9)]
        found = self._answer(client.post("/v1/verify/batch", json={"pairs": pairs}))
        self._compare(found, slice(None))

    def _identify(self, client, number):
        body = {"embedding": self._vectors[number + 1].tolist()}
        found = self._answer(client.post("/v1/identify", json=body))
        self._compare({**found, **found["candidates"][0]}, number)

    def _answer(self, said):
        self.codes.append(said.status_code)
        found = said.json()
        self.digests.add(found["model"])
        return found

    def _compare(self, found, part):
        judged = self._said[found["model"]]
        for name in ("score", "probability", "log_likelihood_ratio", "same"):
            np.testing.assert_allclose(found[name], getattr(judged, name)[part], rtol=1e-6)

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()


def test_no_request_fails_or_mixes_models_while_they_are_swapped(
    spawner, models, tmp_path, vectors
):
    (paths, said), model = models, tmp_path / "m.faircal"
    digests, corrupt = list(said), tmp_path / "corrupt"
    model.write_bytes(paths[0].read_bytes())
    with (
        spawner.start(model, "--no-page", "--no-access-log", log=tmp_path / "log") as running,
        running.client() as client,
    ):
        anna = {"id": "anna", "embedding": vectors[0].tolist()}
        assert client.post("/v1/templates", json=anna).status_code == 201
        asking = Asking(running, vectors, said)

        def put(blob):
            corrupt.write_bytes(blob)
            corrupt.replace(model)

        def in_use():
            return client.get("/v1/model").json()["model"]

        try:
            for number in range(1, 7):
                which = number % 3
                put(paths[which].read_bytes())
                if number == 3:
                    running.signal(signal.SIGHUP)
                elif number != 5:  # it is found by itself, then
                    assert client.post("/v1/model", json={}).json()["model"] == digests[which]
                eventually(lambda which=which: in_use() == digests[which])
            for blob in (b"", b"no model", paths[1].read_bytes()[:-1] + b"?"):
                put(blob)
                refused = client.post("/v1/model", json={})
                assert refused.status_code == 409
                assert "the model in use stays" in refused.json()["error"]["message"]
                running.signal(signal.SIGHUP)
            model.unlink()
            assert client.post("/v1/model", json={}).status_code == 409
            model.mkdir()
            assert client.post("/v1/model", json={}).status_code == 409
            assert in_use() == digests[0]
        finally:
            asking.stop()
        counters = client.get("/metrics").text
        client.get("/v1/monitor")
        assert running.end() == 0
    assert asking.wrong == []
    assert set(asking.codes) == {200}
    assert len(asking.codes) > 100
    assert asking.digests == set(digests)
    assert "faircal_model_swaps_total 6.0" in counters
    assert "unexpected" not in running.said()


# ------------------------------------------------- moments that no process can be caught in


def test_what_is_done_is_recorded_even_where_recording_has_failed_meanwhile(client, vectors):
    service = client.service
    kept = service.store.enrol

    def enrol(*args, **options):
        kept(*args, **options)
        service.recorder._failure = StorageUnavailableError("gone meanwhile")

    service.store.enrol = enrol
    made = client.post("/v1/templates", json={"id": "anna", "embedding": vectors[0].tolist()})
    assert made.status_code == 201
    assert service.recorder.flush()
    assert [line.kind for line in service.store.decisions()] == ["enrol"]


def test_what_the_model_before_says_late_is_not_counted_for_the_new_one(client, models, vectors):
    service, before = client.service, client.service.in_use
    service.settings.model.write_bytes(models[0][0].read_bytes())
    assert service.reload()
    for number in range(20):
        service.verify(vectors[0], vectors[number], in_use=before)
    service.verify(vectors[0], vectors[1])
    assert client.get("/v1/monitor").json()["pairs"] == 1


def test_a_model_that_changes_while_the_service_starts_is_found(client, models):
    client.service.settings.model.write_bytes(models[0][1].read_bytes())
    jobs = BackgroundJobs(client.service)  # is made when the model was read
    jobs._poll()
    assert client.service.in_use.digest == list(models[1])[1]


def test_a_signal_may_come_before_the_service_is_ready(client):
    app = make_app(client.service)
    app.state.jobs.reload()


def test_others_logs_are_one_line_without_what_they_say():
    record = logging.LogRecord("asyncio", logging.ERROR, "", 1, "secret\n%s", ("0.73",), None)
    assert _withheld(record)
    assert record.getMessage() == "asyncio says something"
    record.exc_info = (ValueError, ValueError("secret"), None)
    assert _withheld(record)
    assert record.getMessage().endswith("(ValueError)")
    assert "secret" not in logging.Formatter().format(record)
