"""What the watch is told of requests, and what is kept of it."""

from __future__ import annotations

import numpy as np
import pytest

import faircal
from faircal.production.monitoring.pairs_in_use import number_of
from faircal.production.serving import live_monitor


@pytest.fixture
def told(monkeypatch):
    """What a watch is told, instead of counting it."""
    found = []
    monkeypatch.setattr(
        "faircal.production.monitoring.Watch.add", lambda self, seen: found.append(seen)
    )
    return found


def test_the_watch_knows_which_pairs_of_batches_share_an_image(start, vectors, told):
    client = start()
    gallery = vectors[1:4].tolist()
    for probe in (vectors[0], vectors[9], vectors[0]):
        many = {"left": [probe.tolist()] * 3, "right": gallery}
        assert client.post("/v1/verify/batch", json=many).status_code == 200
    client.service.monitor.feed()
    assert [seen.identified_by for seen in told] == ["images"] * 3
    first, second, third = (seen.left_person for seen in told)
    assert len(set(first)) == len(set(second)) == 1
    assert first[0] == third[0] != second[0]
    for seen in told:
        np.testing.assert_array_equal(seen.right_person, told[0].right_person)
    assert len({first[0], *told[0].right_person}) == 4


def test_of_one_face_against_many_few_pairs_are_counted(start, vectors, told):
    client = start()
    service = client.service
    rows = np.arange(1, 101)
    embeddings = service.in_use.embeddings(vectors[:201])
    service.verify_many(embeddings, np.zeros(100, np.intp), rows)
    service.verify_many(embeddings, rows, rows + 100)
    service.monitor.feed()
    assert [len(seen) for seen in told] == [live_monitor.MOST_OF_ONE, 100]


def test_templates_of_batches_are_people(start, vectors, told):
    client = start()
    for k in range(3):
        body = {"id": f"t{k}", "embedding": vectors[k].tolist()}
        assert client.post("/v1/templates", json=body).status_code < 300
    many = {"left": ["t0", "t0"], "right": ["t1", "t2"]}
    assert client.post("/v1/verify/batch", json=many).status_code == 200
    one = {"left": {"template": "t0"}, "right": {"template": "t2"}}
    assert client.post("/v1/verify", json=one).status_code == 200
    client.service.monitor.feed()
    single, batch = told
    assert batch.identified_by == single.identified_by == "people"
    assert batch.left_person[0] == batch.left_person[1] == single.left_person[0]
    assert batch.right_person[1] == single.right_person[0]


def test_labels_tell_whose_template_it_was(start, vectors, monkeypatch):
    client = start()
    client.post("/v1/templates", json={"id": "anna", "embedding": vectors[1].tolist()})
    people = []
    monkeypatch.setattr(
        "faircal.production.monitoring.Watch.feedback",
        lambda self, said, truth, who: people.append(who),
    )
    for right in ({"template": "anna"}, vectors[1].tolist()):
        said = client.post("/v1/verify", json={"left": vectors[0].tolist(), "right": right})
        label = {"decision": said.json()["id"], "genuine": True}
        assert client.post("/v1/feedback", json=label).status_code == 200
    assert people[0].tolist() == [number_of("anna")]
    assert people[1] is None


def test_what_waits_to_be_counted_is_bounded(start, vectors, monkeypatch):
    monkeypatch.setattr(live_monitor, "_MOST_WAITING", 4)
    monkeypatch.setattr(live_monitor, "_MOST_BATCHES", 2)
    service = start().service
    for _ in range(9):
        service.verify(vectors[0], vectors[1])
    rows = np.arange(2)
    for _ in range(3):
        service.verify_many(service.in_use.embeddings(vectors[:4]), rows, rows + 2)
    service.monitor.update()
    assert service.monitor.watch.pairs == 4 + 2 * 2


def test_each_model_and_place_has_a_state_of_its_own(start, data, vectors, model_path):
    first, second = (start(port=port).service for port in (8001, 8002))
    for service, count in ((first, 3), (second, 5)):
        for _ in range(count):
            service.verify(vectors[0], vectors[1])
        service.monitor.save()
    assert start(port=8001).service.monitor.watch.pairs == 3
    assert start(port=8002).service.monitor.watch.pairs == 5

    ours, other = model_path.read_bytes(), faircal.Baseline().fit(data[0])
    faircal.survey(other, data[0])
    other.save(model_path)
    assert first.reload()
    assert first.monitor.watch.pairs == 0
    model_path.write_bytes(ours)  # the model before is taken again
    assert first.reload()
    assert first.monitor.watch.pairs == 3
