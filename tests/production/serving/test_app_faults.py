"""The database away or full, and another model while requests are under way."""

from __future__ import annotations

import threading
import time

import pytest

import faircal
from faircal._base.errors import ModelFileError, StorageFullError, StorageUnavailableError
from faircal.production.serving.audit_trail import TrailWriter
from faircal.production.serving.live_monitor import BackgroundJobs
from faircal.production.serving.store import open_store


class Faulty:
    """A store that fails when told to."""

    def __init__(self, inner):
        self._inner, self.fault = inner, None

    def __getattr__(self, name):
        method = getattr(self._inner, name)

        def call(*args, **kwargs):
            if self.fault is not None and name != "close":
                raise self.fault
            return method(*args, **kwargs)

        return call


@pytest.fixture
def faulty(tmp_path):
    return Faulty(open_store(str(tmp_path / "f.db")))


def pair(vectors, right=1):
    return {"left": vectors[0].tolist(), "right": vectors[right].tolist()}


@pytest.mark.parametrize(
    ("fault", "status"),
    [(StorageUnavailableError("gone; try later"), 503), (StorageFullError("no room"), 507)],
)
def test_nothing_is_decided_that_cannot_be_recorded(start, faulty, vectors, fault, status):
    client = start(store=faulty)
    asked = pair(vectors)
    made = {"id": "anna", "embedding": vectors[0].tolist()}
    assert client.post("/v1/verify", json=asked).status_code == 200
    assert client.service.recorder.flush()
    faulty.fault = fault
    assert client.post("/v1/templates", json=made).status_code == status
    client.post("/v1/verify", json=asked)  # may pass: its record waits, and is kept
    for _ in range(200):
        if client.service.recorder.failures:
            break
        threading.Event().wait(0.01)
    refused = client.post("/v1/verify", json=asked)
    assert refused.status_code == status
    assert ("retry-after" in refused.headers) == (status == 503)
    batch = {"left": [asked["left"]], "right": [asked["right"]]}
    assert client.post("/v1/verify/batch", json=batch).status_code == status
    assert client.get("/readyz").status_code in (503, 507)
    assert client.get("/healthz").status_code == 200
    assert client.get("/metrics").status_code == 200
    faulty.fault = None
    assert client.service.recorder.flush()
    assert client.post("/v1/verify", json=asked).status_code == 200
    assert client.get("/readyz").status_code == 200
    lines = client.get("/v1/decisions").json()["decisions"]
    assert len(lines) == client.service.counts.pairs


def test_a_full_queue_refuses():
    hold = threading.Event()
    trail = TrailWriter(lambda records: hold.wait(5), flush=0.001, most=3)
    for k in range(3):
        trail.put(k)
    with pytest.raises(StorageUnavailableError, match="slower"):
        trail.put(3)
    hold.set()
    assert trail.close()


def test_the_trail_keeps_the_order_and_survives_whatever_writing_raises():
    seen, faults = [], [RuntimeError("secret"), StorageUnavailableError("gone")]

    def write(records):
        if faults:
            raise faults.pop()
        seen.extend(records)

    trail = TrailWriter(write, flush=0.001)
    trail.put("a")
    assert trail.flush(5)
    trail.put("b")
    assert trail.close()
    assert (seen, trail.failures) == (["a", "b"], 2)


def test_another_model_is_taken_and_the_old_one_ends_what_it_began(client, data, vectors):
    before = client.service.in_use
    faircal.Baseline().fit(data[0]).save(client.service.settings.model)
    said = client.post("/v1/model", json={}).json()
    assert said["swapped"]
    assert said["model"] == client.service.in_use.digest != before.digest
    assert client.post("/v1/verify", json=pair(vectors)).json()["model"] == said["model"]
    one = client.service.verify(vectors[0], vectors[1], in_use=before)
    assert one.model == before.digest
    assert client.service.counts.swaps == 1


def test_a_model_of_another_dimension_is_refused_where_templates_are_enrolled(client, vectors):
    other = faircal.simulate("small", seed=1, people=80, pairs=1200, dimension=64)
    made = {"id": "anna", "embedding": vectors[0].tolist()}
    client.post("/v1/templates", json=made)
    before = client.service.in_use.digest
    faircal.FairCal(n_clusters=3).fit(other).save(client.service.settings.model)
    refused = client.post("/v1/model", json={})
    assert refused.status_code == 409
    assert "128-d" in refused.json()["error"]["message"]
    assert client.service.in_use.digest == before
    client.delete("/v1/templates/anna")
    assert client.post("/v1/model", json={}).json()["swapped"]
    assert client.post("/v1/verify", json=pair(vectors)).status_code == 422


@pytest.mark.parametrize("spoil", [b"", b"not a model", None])
def test_a_file_that_does_not_load_changes_nothing(client, vectors, spoil):
    path = client.service.settings.model
    if spoil is None:
        path.write_bytes(path.read_bytes()[:-1] + b"x")
    else:
        path.write_bytes(spoil)
    refused = client.post("/v1/model", json={})
    assert refused.status_code == 409
    assert client.post("/v1/verify", json=pair(vectors)).status_code == 200
    assert client.service.counts.refused_swaps == 1
    assert "faircal_model_swaps_refused_total 1.0" in client.get("/metrics").text
    path.unlink()
    assert client.post("/v1/model", json={}).status_code in (409, 422)


def test_the_jobs_takes_a_changed_file_once_and_a_bad_one_never(client, data):
    service, path = client.service, client.service.settings.model
    jobs = BackgroundJobs(service)
    jobs._poll()
    assert service.counts.swaps == 0
    faircal.Baseline().fit(data[0]).save(path)
    jobs._poll()
    jobs._poll()
    assert service.counts.swaps == 1
    path.write_bytes(b"bad")
    jobs._poll()
    jobs._poll()
    assert (service.counts.swaps, service.counts.refused_swaps) == (1, 1)


def test_no_request_fails_while_models_are_swapped(client, data, fitted_model, vectors):
    models = [faircal.Baseline().fit(data[0]), fitted_model]
    stop, swapped = threading.Event(), []

    def swap():
        while not stop.is_set():
            models[len(swapped) % 2].save(client.service.settings.model)
            swapped.append(client.service.reload())

    thread = threading.Thread(target=swap)
    thread.start()
    codes, end = [], time.monotonic() + 60
    while (len(codes) < 60 or sum(swapped) < 3) and time.monotonic() < end:
        codes.append(client.post("/v1/verify", json=pair(vectors, len(codes) % 9)).status_code)
    stop.set()
    thread.join()
    assert set(codes) == {200}
    assert sum(swapped) > 2


def test_what_was_seen_is_kept_over_a_restart(start, data, vectors):
    client = start()
    for k in range(4):
        client.post("/v1/verify", json=pair(vectors, k))
    made = client.post("/v1/verify", json=pair(vectors)).json()["id"]
    assert client.post("/v1/feedback", json={"decision": made, "genuine": True}).status_code == 200
    assert client.post("/v1/feedback", json={"decision": "x", "genuine": True}).status_code == 404
    assert client.get("/v1/monitor").json()["pairs"] == 5
    client.service.close()
    again = start()
    assert again.get("/v1/monitor").json()["pairs"] == 5
    assert again.get("/v1/monitor").json()["feedback"] == 1
    lines = again.get("/v1/decisions").json()["decisions"]
    assert [line["genuine"] for line in lines] == [None] * 4 + [True]


def test_an_unreadable_model_is_one_line(tmp_path):
    from faircal.production.serving.service import Service, ServiceSettings

    path = tmp_path / "m.faircal"
    path.write_bytes(b"nonsense")
    with pytest.raises(ModelFileError, match=r"m\.faircal"):
        Service(ServiceSettings(path))
