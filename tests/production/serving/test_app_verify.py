"""One pair over HTTP."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

import faircal
from faircal.data import Embeddings
from faircal.production.scoring.judging import Judge


def body(vectors, left=0, right=1, **more):
    return {"left": vectors[left].tolist(), "right": vectors[right].tolist(), **more}


def expected(model, vectors, **settings):
    judge = Judge.of(model, **settings)
    return judge(Embeddings(vectors[:2]), np.array([0]), np.array([1]))


def test_a_pair_is_judged_as_the_model_judges_it(client, fitted_model, vectors):
    said = client.post("/v1/verify", json=body(vectors)).json()
    judged = expected(fitted_model, vectors)
    assert said["similarity"] == pytest.approx(judged.similarity[0], abs=1e-6)
    assert said["score"] == pytest.approx(judged.score[0], abs=1e-6)
    assert said["probability"] == pytest.approx(judged.probability[0], abs=1e-6)
    assert said["log_likelihood_ratio"] == pytest.approx(judged.log_likelihood_ratio[0], abs=1e-4)
    assert said["same"] == bool(judged.same[0])
    assert said["decision"] == ("same" if said["same"] else "different")
    assert said["clusters"] == judged.places.cluster[:2].tolist()
    assert said["outside"] == judged.places.outside[:2].tolist()
    assert said["out_of_population"] == any(said["outside"])
    assert said["model"] == client.service.in_use.digest
    assert said["operating_point"] == {
        "threshold": 0.5,
        "on": "probability",
        "source": "default",
        "fpr": None,
        "promised": False,
        "assumption": "",
    }


@pytest.mark.parametrize("on", ["score", "probability"])
def test_probability_and_decision_at_another_share(start, fitted_model, vectors, on):
    client = start(threshold=0.0 if on == "score" else 0.5, on=on)
    plain = client.post("/v1/verify", json=body(vectors)).json()
    rare = client.post("/v1/verify", json=body(vectors, prior=0.001)).json()
    judged = expected(fitted_model, vectors, prior=0.001)
    assert rare["probability"] == pytest.approx(judged.probability[0], rel=1e-4)
    assert rare["prior"] == 0.001
    assert rare["log_likelihood_ratio"] == plain["log_likelihood_ratio"]
    assert plain["same"]
    # A decision on the score stays; one on the probability is on the one that is told.
    assert rare["same"] == (on == "score")


def test_a_told_threshold_is_used_and_told(start, vectors):
    client = start(threshold=2.0, on="score")
    said = client.post("/v1/verify", json=body(vectors, 0, 0)).json()
    assert not said["same"]
    assert said["operating_point"]["threshold"] == 2.0
    assert said["operating_point"]["source"] == "told"


def test_images_out_of_the_population_are_told_and_counted(start, fitted_model, tmp_path, vectors):
    model = copy.copy(fitted_model)
    people = model.about_.population
    nowhere = replace(people, reach=np.zeros_like(people.reach))
    model.about_ = replace(model.about_, population=nowhere)
    model.save(tmp_path / "narrow.faircal")
    client = start(model=tmp_path / "narrow.faircal")
    said = client.post("/v1/verify", json=body(vectors)).json()
    assert (said["outside"], said["out_of_population"]) == ([True, True], True)
    assert "faircal_out_of_population_share 1.0" in client.get("/metrics").text


def test_a_model_without_population_places_nothing(start, data, tmp_path, vectors):
    path = tmp_path / "plain.faircal"
    faircal.Baseline().fit(data[0]).save(path)
    client = start(model=path)
    said = client.post("/v1/verify", json=body(vectors)).json()
    assert said["clusters"] is said["outside"] is said["out_of_population"] is None
    assert client.get("/v1/monitor").json()["monitored"] is False


def test_groups_where_the_method_needs_them(start, data, tmp_path, vectors):
    path = tmp_path / "oracle.faircal"
    faircal.Oracle().fit(data[0]).save(path)
    client = start(model=path)
    refused = client.post("/v1/verify", json=body(vectors))
    assert refused.status_code == 422
    assert "left_group" in refused.json()["error"]["message"]
    group = next(iter(data[0].groups().names))
    fine = client.post("/v1/verify", json=body(vectors, left_group=group, right_group=group))
    assert fine.status_code == 200
    assert client.post("/v1/identify", json={"embedding": [1.0] * 128}).status_code == 422


def test_pictures_are_refused_where_no_network_was_named(client):
    said = client.post("/v1/verify", json={"left": {"image": "AAAA"}, "right": {"image": "AAAA"}})
    assert said.status_code == 422
    assert "--network" in said.json()["error"]["message"]


def test_the_description_names_every_route_and_asks_for_nothing_from_elsewhere(client):
    found = client.get("/openapi.json").json()
    assert {"/v1/verify", "/v1/verify/batch", "/v1/templates", "/v1/identify"} <= set(
        found["paths"]
    )
    assert found["paths"]["/v1/verify"]["post"]["requestBody"]["required"]
    assert "bearer" in found["components"]["securitySchemes"]
    assert client.get("/docs").status_code == 404


def test_every_decision_is_in_the_trail_without_a_vector(client, vectors):
    made = [client.post("/v1/verify", json=body(vectors, 0, k)).json() for k in range(5)]
    lines = client.get("/v1/decisions").json()["decisions"]
    assert [line["id"] for line in lines] == [each["id"] for each in made]
    assert [line["score"] for line in lines] == [each["score"] for each in made]
    assert set(lines[0]) == {
        "id", "at", "kind", "key", "model", "score", "probability", "threshold", "on", "same",
        "left_cluster", "right_cluster", "left_outside", "right_outside", "prior", "left", "right",
        "genuine",
    }  # fmt: skip


def test_counters_and_metrics(client, vectors):
    for k in range(3):
        client.post("/v1/verify", json=body(vectors, 0, k))
    counts = client.service.counts
    assert counts.pairs == 3
    assert sum(counts.probabilities) == 3
    text = client.get("/metrics").text
    assert "faircal_pairs_total 3.0" in text
    assert 'faircal_requests_total{method="POST",route="/v1/verify",status="200"} 3.0' in text
    client.get("/v1/monitor")
    assert 'faircal_recalibration_due{finding="any"} 0.0' in client.get("/metrics").text


def test_health_and_readiness(client):
    assert client.get("/healthz").json() == {"status": "alive"}
    assert client.get("/readyz").json() == {"status": "ready"}
    assert client.get("/v1/model").json()["card"]["model"]["method"] == "faircal"
