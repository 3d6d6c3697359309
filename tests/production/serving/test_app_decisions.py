"""The audit trail over time: what is labelled counts once, what is old goes, exports go on."""

from __future__ import annotations

import csv
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import faircal
from faircal._base.errors import ParameterError, StorageUnavailableError
from faircal.production.serving.audit_trail import Recorder
from faircal.production.serving.live_monitor import BackgroundJobs
from faircal.production.serving.service import ServiceSettings
from faircal.production.serving.store import Decision, open_store


def pair(vectors, k=0):
    return {"left": vectors[2 * k].tolist(), "right": vectors[2 * k + 1].tolist()}


def label(client, decision, genuine=True):
    said = client.post("/v1/feedback", json={"decision": decision, "genuine": genuine})
    assert said.status_code == 200
    return client.get("/v1/monitor").json()["feedback"]


def test_a_label_counts_once_however_often_it_is_sent(start, vectors):
    client = start()
    model = client.service.in_use.model  # of evidence at a bound labels say nothing
    model.about_ = replace(model.about_, evidence=None)
    single = client.post("/v1/verify", json=pair(vectors)).json()["id"]
    many = {side: [pair(vectors, k)[side] for k in range(3)] for side in ("left", "right")}
    batch = client.post("/v1/verify/batch", json=many).json()["id"]
    assert [label(client, single) for _ in range(3)] == [1, 1, 1]
    assert [label(client, f"{batch}.1") for _ in range(2)] == [2, 2]
    assert label(client, f"{batch}.2") == 3
    for name in (single, f"{batch}.1"):  # the contrary, told later, is refused and not kept
        said = client.post("/v1/feedback", json={"decision": name, "genuine": False})
        assert said.status_code == 409, said.text
        found = client.get(f"/v1/decisions/{name.partition('.')[0]}").json()["decisions"]
        assert [line["genuine"] for line in found if line["id"] == name] == [True]
    assert client.service.counts.feedback == 3


def test_a_label_of_evidence_at_a_bound_is_kept_and_not_monitored(start, vectors):
    client = start()
    said = [client.post("/v1/verify", json=pair(vectors, k)).json() for k in range(20)]
    surest, doubtful = (
        max(said, key=lambda each: sign * abs(each["log_likelihood_ratio"])) for sign in (1, -1)
    )
    assert (surest["at_bound"], doubtful["at_bound"]) == (True, False)
    assert [label(client, each["id"]) for each in (surest, doubtful)] == [0, 1]
    assert client.service.counts.feedback == 2


def test_a_label_of_another_models_decision_is_kept_and_not_monitored(start, data, vectors):
    client = start()
    before = client.post("/v1/verify", json=pair(vectors)).json()["id"]
    other = faircal.Baseline().fit(data[0])
    faircal.survey(other, data[0])
    other.save(client.service.settings.model)
    assert client.service.reload()
    assert label(client, before) == 0
    (line,) = client.get(f"/v1/decisions/{before}").json()["decisions"]
    assert line["genuine"] is True
    assert label(client, client.post("/v1/verify", json=pair(vectors)).json()["id"]) == 1


def test_an_export_goes_on_after_its_last_line(start, vectors):
    client = start()
    client.post("/v1/verify", json=pair(vectors))
    many = {side: [pair(vectors, k)[side] for k in range(3)] for side in ("left", "right")}
    client.post("/v1/verify/batch", json=many)
    first = client.get("/v1/decisions?format=csv").text.splitlines()
    last = first[-1].partition(",")[0]
    assert last.endswith(".2")
    new = client.post("/v1/verify", json=pair(vectors, 4)).json()["id"]
    rest = client.get(f"/v1/decisions?format=csv&after={last}").text.splitlines()
    assert [line.partition(",")[0] for line in rest] == ["id", new]


def test_decisions_that_are_too_old_go_with_their_pairs(start, vectors):
    client = start(keep_days=30)
    service, jobs = client.service, BackgroundJobs(client.service)
    many = {side: [pair(vectors, k)[side] for k in range(3)] for side in ("left", "right")}
    batch = client.post("/v1/verify/batch", json=many).json()["id"]
    client.post("/v1/verify", json=pair(vectors))
    service.recorder.flush()
    jobs._forget()
    kept = service.store.decisions(None, 10)
    assert kept[0].id == batch
    assert len(kept) == 2
    old = datetime.now(UTC) - timedelta(days=31)
    service.store.record([replace(kept[1], id="old", at=old)])
    jobs._forget()
    assert [line.id for line in service.store.decisions(None, 10)] == [line.id for line in kept]


@pytest.mark.parametrize("days", [0, -1, float("nan"), float("inf")])
def test_a_time_to_keep_decisions_is_checked(model_path, days):
    with pytest.raises(ParameterError, match="--keep-decisions"):
        ServiceSettings(model_path, keep_days=days)


def test_a_commit_whose_answer_got_lost_is_not_recorded_twice(tmp_path):
    store = open_store(str(tmp_path / "s.db"))
    write, calls = store.record, []

    def record(decisions, states=None):
        write(decisions, states)
        calls.append(len(decisions))
        if len(calls) == 1:
            raise StorageUnavailableError("the connection was cut")

    store.record = record
    recorder = Recorder(store)
    first, second = (Decision(name, datetime.now(UTC), "verify", "k", "m") for name in "ab")
    with pytest.raises(StorageUnavailableError):
        recorder._write([(first, {})])
    recorder._write([(first, {}), (second, {})])  # the next group has one more
    assert [line.id for line in store.decisions(None, 10)] == ["a", "b"]
    assert recorder.close()
    store.close()


def test_an_export_says_where_images_lie_and_which_templates_were_in_a_batch(start, vectors):
    client = start()
    for name, k in (("anna", 1), ("ben Ω", 3)):
        said = client.post("/v1/templates", json={"id": name, "embedding": vectors[k].tolist()})
        assert said.status_code < 300
    many = {"left": [vectors[0].tolist()] * 3, "right": ["anna", "ben Ω", "anna"], "prior": 0.01}
    told = client.post("/v1/verify/batch", json=many).json()
    client.post("/v1/feedback", json={"decision": f"{told['id']}.1", "genuine": False})
    single = client.post("/v1/verify", json=pair(vectors)).json()
    lines = list(csv.DictReader(client.get("/v1/decisions?format=csv").text.splitlines()))
    lines = [line for line in lines if line["kind"] == "verify"]
    assert [line["left"] for line in lines] == [""] * 4
    assert [line["right"] for line in lines] == ["anna", "ben Ω", "anna", ""]
    assert [line["genuine"] for line in lines] == ["", "0", "", ""]
    assert [float(line["prior"]) for line in lines] == [0.01] * 3 + [single["prior"]]
    for name in ("left_cluster", "right_cluster", "left_outside", "right_outside"):
        side, what = name.split("_")
        assert [int(line[name]) for line in lines[:3]] == [int(value) for value in told[name]]
        of_one = single["clusters" if what == "cluster" else "outside"][side == "right"]
        assert int(lines[3][name]) == of_one
