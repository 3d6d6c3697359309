"""Enrolment, deletion, 1:1 against a template and 1:N."""

from __future__ import annotations

import math
from dataclasses import replace
from urllib.parse import quote

import numpy as np
import pytest

from faircal.metrics import EvidenceBounds
from faircal.production.serving.verification import posteriors


def enrol(client, name, vector, **more):
    return client.post("/v1/templates", json={"id": name, "embedding": vector.tolist(), **more})


def test_enrol_tell_and_delete(client, vectors):
    made = enrol(client, "anna", vectors[0])
    assert made.status_code == 201
    assert made.json()["id"] == "anna"
    assert made.json()["dimension"] == vectors.shape[1]
    told = client.get("/v1/templates/anna").json()
    assert set(told) == {"id", "enrolled_at", "dimension"}
    assert client.delete("/v1/templates/anna").status_code == 204
    assert client.delete("/v1/templates/anna").status_code == 404
    assert client.get("/v1/templates/anna").status_code == 404
    kinds = [line["kind"] for line in client.get("/v1/decisions").json()["decisions"]]
    assert kinds == ["enrol", "delete"]


def test_the_same_id_again_is_a_conflict_unless_replaced(client, vectors):
    assert enrol(client, "anna", vectors[0]).status_code == 201
    assert enrol(client, "anna", vectors[1]).status_code == 409
    assert enrol(client, "anna", vectors[1], replace=True).status_code == 201
    said = client.post("/v1/templates/anna/verify", json={"embedding": vectors[1].tolist()})
    plain = client.post(
        "/v1/verify", json={"left": vectors[0].tolist(), "right": vectors[1].tolist()}
    )
    assert said.json().keys() == {*plain.json(), "template"}
    assert said.json()["similarity"] == pytest.approx(1)


def test_without_an_id_one_is_made(client, vectors):
    made = client.post("/v1/templates", json={"embedding": vectors[0].tolist()}).json()
    assert client.get(f"/v1/templates/{made['id']}").status_code == 200


def test_lists_go_on_where_they_ended(client, vectors):
    for k in range(5):
        enrol(client, f"p{k}", vectors[k])
    first = client.get("/v1/templates", params={"limit": 3}).json()
    rest = client.get("/v1/templates", params={"limit": 3, "after": first["next"]}).json()
    assert [each["id"] for each in first["templates"] + rest["templates"]] == [
        f"p{k}" for k in range(5)
    ]
    assert (first["count"], rest["next"]) == (5, None)


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "a/b", "C:\\x", "%2e%2e", "a b", "Jürgen", "'; DROP TABLE templates;--",
     "verify", "x/verify", "?q=1#f", "\U0001f600", "a" * 200],
)  # fmt: skip
def test_ids_are_data(client, vectors, name):
    assert enrol(client, name, vectors[0]).status_code == 201
    path = f"/v1/templates/{quote(name, safe='')}"
    assert client.get(path).json()["id"] == name
    said = client.post(f"{path}/verify", json={"embedding": vectors[0].tolist()})
    assert said.json()["template"] == name
    assert client.delete(path).status_code == 204


@pytest.mark.parametrize("name", ["", "a" * 201, "a\x00b", "a\nb", 7, None, ["a"], "\u202e"])
def test_odd_ids_are_refused(client, vectors, name):
    assert enrol(client, name, vectors[0]).status_code == 422


def test_a_template_on_one_side(client, vectors):
    enrol(client, "anna", vectors[0])
    pair = {"left": {"template": "anna"}, "right": vectors[1].tolist()}
    by_id = client.post("/v1/verify", json=pair).json()
    plain = client.post("/v1/verify", json={**pair, "left": vectors[0].tolist()}).json()
    assert by_id["score"] == pytest.approx(plain["score"], abs=1e-6)
    line = client.get("/v1/decisions").json()["decisions"][-2]
    assert (line["left"], line["right"]) == ("anna", None)
    refused = client.post("/v1/verify", json={**pair, "left": {"template": "nobody"}})
    assert refused.status_code == 404
    assert "nobody" not in refused.text


def test_identify_ranks_by_score_and_its_posteriors_add_up(client, vectors):
    for k in range(30):
        enrol(client, f"p{k}", vectors[k])
    asked = {"embedding": vectors[7].tolist(), "limit": 30, "enrolled_prior": 0.3}
    said = client.post("/v1/identify", json=asked).json()
    scores = [each["score"] for each in said["candidates"]]
    assert scores == sorted(scores, reverse=True)
    assert said["candidates"][0]["id"] == "p7"
    total = sum(each["posterior"] for each in said["candidates"]) + said["nobody"]
    assert total == pytest.approx(1)
    ratios = np.array([each["log_likelihood_ratio"] for each in said["candidates"]])
    by_hand = 0.3 / 30 * np.exp(ratios) / (0.7 + 0.3 / 30 * np.exp(ratios).sum())
    assert [each["posterior"] for each in said["candidates"]] == pytest.approx(by_hand.tolist())
    assert said["enrolled"] == 30


def test_identify_among_nobody(client, vectors):
    said = client.post("/v1/identify", json={"embedding": vectors[0].tolist()}).json()
    assert (said["candidates"], said["nobody"], said["enrolled"]) == ([], 1.0, 0)


def test_identify_says_where_it_rests_on_evidence_at_a_bound(client, vectors):
    model = client.service.in_use.model
    for k in range(5):
        enrol(client, f"p{k}", vectors[k])
    asked = {"embedding": vectors[3].tolist(), "limit": 5}
    said = client.post("/v1/identify", json=asked).json()
    best = said["candidates"][0]
    assert (best["id"], best["at_bound"], said["nobody_at_bound"]) == ("p3", True, True)
    assert best["log_likelihood_ratio"] == model.about_.evidence.high
    # The likeliest of five beforehand equal ones, by what the people of calibration can show.
    assert said["nobody"] >= 0.5 / (0.5 + 0.5 * np.exp(model.about_.evidence.high))
    model.about_ = replace(model.about_, evidence=None)
    said = client.post("/v1/identify", json=asked).json()
    assert said["candidates"][0]["at_bound"] is said["nobody_at_bound"] is None


def test_posteriors_by_hand():
    bounds = EvidenceBounds(-math.log(4), math.log(20), 4.0, 20.0)
    _, nobody = posteriors(np.log([9.0, 1.0]), enrolled=4, enrolled_prior=0.5, bounds=bounds)
    assert nobody == pytest.approx(0.5 / (1.75 + 2 * 0.125 / 4))  # two were not judged
    likely, nobody = posteriors(np.log([9.0, 1.0]), enrolled=4, enrolled_prior=0.5)
    assert likely == pytest.approx([0.125 * 9 / 1.75, 0.125 / 1.75])
    assert nobody == pytest.approx(0.5 / 1.75)


def test_without_storage_templates_are_refused_and_pairs_are_not(start, vectors):
    client = start(database=None)
    assert enrol(client, "anna", vectors[0]).json()["error"]["code"] == "no_storage"
    for path in ("/v1/templates", "/v1/templates/a", "/v1/decisions"):
        assert client.get(path).status_code == 409
    assert client.post("/v1/identify", json={"embedding": [1.0] * 128}).status_code == 409
    pair = {"left": vectors[0].tolist(), "right": vectors[1].tolist()}
    assert client.post("/v1/verify", json=pair).status_code == 200
    assert client.get("/readyz").status_code == 200
