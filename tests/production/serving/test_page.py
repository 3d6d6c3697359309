"""The page without a browser: what it says, what it refuses, and what it never gives away."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
from dataclasses import replace
from html import unescape

import httpx
import numpy as np
import pytest
from fastapi import FastAPI

import faircal
from faircal._base.errors import DataError, StorageFullError, StorageUnavailableError
from faircal.metrics import EvidenceBounds
from faircal.model import About, OperatingPoint, Population
from faircal.production.describe import describe
from faircal.production.monitoring import Verdict, survey
from faircal.production.scoring.judging import Judge
from faircal.production.serving.access import KeyRing
from faircal.production.serving.page import page_router
from faircal.production.serving.page.answer import (
    answer,
    one_in,
    probability,
    rule,
    share_in_words,
)
from faircal.production.serving.page.form import read_file, read_numbers, read_share
from faircal.production.serving.service import Service, ServiceSettings
from faircal.production.serving.verification import Verification

UNLIKE = "unlike those the model was calibrated on: do not rely on the probability"
UNKNOWN = "The model file does not say on whom it was calibrated"


class Client:
    """Asks an application without a server."""

    def __init__(self, app):
        self._app = app

    def get(self, path):
        return self.ask("GET", path)

    def post(self, path, **what):
        return self.ask("POST", path, **what)

    def ask(self, method, path, **what):
        async def asked():
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
                return await http.request(method, path, **what)

        return asyncio.run(asked())


@pytest.fixture(scope="module")
def fitted():
    """A model that knows its population, and two pairs that it never saw: genuine, imposter."""
    cal, test = faircal.simulate("small", seed=0, people=80, pairs=1200).split(test_fold=5)
    model = faircal.FairCal(n_clusters=5).fit(cal)
    describe(model, cal, intended_use="tests")
    survey(model, cal)
    judge = Judge.of(model)
    pairs = test.pairs
    said = judge(test.embeddings, pairs.left, pairs.right).probability
    vectors = test.embeddings.vectors
    found = {}
    for name, best in (("same", int(np.argmax(said))), ("different", int(np.argmin(said)))):
        found[name] = vectors[pairs.left[best]], vectors[pairs.right[best]]
    return model, found


@pytest.fixture
def serve(fitted, tmp_path):
    """Return a function that gives a client of a page, and its service."""
    services = []

    def start(model=None, store=None, **settings):
        path = tmp_path / "m.faircal"
        (model or fitted[0]).save(path)
        service = Service(ServiceSettings(path, **settings), store=store)
        services.append(service)
        app = FastAPI()
        app.include_router(page_router(service))
        return Client(app), service

    yield start
    for service in services:
        service.close()


def text_of(vector):
    return json.dumps([float(value) for value in vector])


def filled(pair, **more):
    """The fields of a form as a browser sends them."""
    sides = {
        f"{side}_{name}": value
        for side, vector in zip(("left", "right"), pair, strict=True)
        for name, value in (("kind", "numbers"), ("numbers", text_of(vector)))
    }
    return {"prior": "", **sides, **more}


def post(client, fields, files=None, **headers):
    parts = {name: (None, value) for name, value in fields.items()}
    return client.post("/", files={**parts, **(files or {})}, headers=headers)


def plain(answered):
    """The text of a page, in one line."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answered.text)))


# ------------------------------------------------------------------------- what it says


def test_the_page_is_there_before_anything_is_asked(serve):
    client, service = serve()
    found = client.get("/")
    assert found.status_code == 200
    words = plain(found)
    assert "Are these two faces of one person?" in words
    assert f"{service.in_use.dimension} numbers" in words
    assert "Pairs compared" in words
    assert service.in_use.digest[:12] in words
    assert "Photos are not taken here" in words
    assert "Enrolled" not in words  # there is no storage
    assert "simulated people" in words


@pytest.mark.parametrize("name", ["same", "different"])
def test_says_of_a_pair_what_the_model_says(serve, fitted, name):
    client, service = serve()
    found = post(client, filled(fitted[1][name]))
    assert found.status_code == 200
    words = plain(found)
    said = service.verify(*fitted[1][name])
    assert said.same == (name == "same")
    assert ("Same person" in words) == said.same
    assert "simulated people" in words
    assert ("Different people" in words) == (not said.same)
    assert f"{share_in_words(said.probability)[6:]} such pairs" in words.replace("\xa0", " ")
    assert f"{said.similarity:.4f}".replace("-", "−") in words
    assert service.counts.pairs == 2


@pytest.mark.parametrize("on", ["score", "probability"])
def test_another_share_of_genuine_pairs_changes_the_probability(serve, fitted, on):
    client, _ = serve(threshold=0.5, on=on)
    pair = fitted[1]["same"]
    usual, rare = (plain(post(client, filled(pair, prior=p))) for p in ("", "1 in 1,000,000"))
    assert "1 pair in 1,000,000 is genuine" in rare
    chances = [
        re.search(r"(\S+ (?:than )?[\d,]+ in [\d,]+) such", t.replace("\xa0", " "))[1]
        for t in (usual, rare)
    ]
    assert chances[0] != chances[1]
    ratios = [re.search(r"([−\d.]+) nats", t)[1] for t in (usual, rare)]
    assert ratios[0] == ratios[1]
    # A decision on the score stays; one on the probability is on the one that is told.
    assert ("Same person" in rare) == (on == "score")
    assert f"where its {on} is at least 0.5" in rare


def test_a_face_from_elsewhere_is_warned_of(serve, fitted):
    client, service = serve()
    left = fitted[1]["same"][0]
    strange = -fitted[0].about_.population.centers.sum(axis=0)  # where nobody was
    assert service.verify(left, strange).outside == (False, True)
    assert f"The second face is {UNLIKE}" in plain(post(client, filled((left, strange))))
    assert f"Both faces are {UNLIKE}" in plain(post(client, filled((strange, 2 * strange))))
    assert UNLIKE not in plain(post(client, filled(fitted[1]["same"])))


def test_that_recalibration_is_due_is_said_above_the_answer(serve, fitted, tmp_path):
    client, service = serve()
    words = "Recalibration is due: <scores> (after 500 pairs)."
    service.monitor.verdict = Verdict(False, (), 500, 0, words)
    assert 'id="due"' not in client.get("/").text
    service.monitor.verdict = Verdict(True, (), 500, 0, words)
    for page in (client.get("/"), post(client, filled(fitted[1]["same"]))):
        said = plain(page)
        assert words in said
        assert "may no longer hold" in said
        assert "<scores>" not in page.text
    assert said.index(words) < said.index("Same person", said.index("Skip to"))
    ring = KeyRing.at(tmp_path / "keys.json")
    ring.add("gate", ["verify"])
    client, service = serve(keys=tmp_path / "keys.json")
    service.monitor.verdict = Verdict(True, (), 500, 0, words)
    assert 'id="due"' not in client.get("/").text  # what is counted is for those who have a key


def test_a_model_without_a_population_says_so(serve, fitted):
    model = faircal.FairCal(n_clusters=5)
    model.__dict__.update(fitted[0].__dict__)
    model.about_ = About()
    client, _ = serve(model)
    words = plain(post(client, filled(fitted[1]["same"])))
    assert UNKNOWN in words
    assert "no counted scores" in words


def test_enrolled_names_and_embeddings_mix(serve, fitted, tmp_path):
    client, service = serve(database=str(tmp_path / "db.sqlite"))
    left, right = fitted[1]["same"]
    service.enrol("Ada <b>", left)
    fields = filled((left, right), left_kind="name", left_name="Ada <b>", left_numbers="")
    found = post(client, fields)
    assert "Same person" in plain(found)
    assert "<b>" not in found.text
    assert 'value="Ada &lt;b&gt;"' in found.text
    service.recorder.close()
    made = [one for one in service.store.decisions(None, 10) if one.kind == "verify"]
    assert [(one.left, one.right) for one in made] == [("Ada <b>", None)]


def test_files_of_numbers(serve, fitted):
    client, _ = serve()
    left, right = fitted[1]["same"]
    fields = {"left_kind": "numbers", "right_kind": "numbers", "right_numbers": text_of(right)}
    found = post(client, fields, {"left_file": ("x.json", text_of(left))})
    assert "Same person" in plain(found)


def test_photos_are_embedded_and_never_come_back(serve, fitted, monkeypatch):
    client, service = serve()
    seen = []

    def embed(picture):
        seen.append(picture)
        if picture == b"nobody":
            raise DataError("no face was found in the picture; send one that shows a face")
        return fitted[1]["same"][len(seen) % 2]

    monkeypatch.setattr(Service, "takes_pictures", True)
    monkeypatch.setattr(service, "embed", embed)
    fields = {"left_kind": "photo", "right_kind": "photo"}
    photos = {
        f"{side}_photo": (f"{side}.jpg", f"pixels of {side}".encode()) for side in ("left", "right")
    }
    found = post(client, fields, photos)
    assert "Same person" in plain(found)
    assert seen == [b"pixels of left", b"pixels of right"]
    assert "pixels" not in found.text
    assert ".jpg" not in found.text
    found = post(client, fields, {**photos, "right_photo": ("x.jpg", b"nobody")})
    assert found.status_code == 422
    assert 'id="right_photo-wrong"' in found.text
    assert "no face was found" in found.text


# --------------------------------------------------------------------- what is wrong with it


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("left_numbers", "", "found nothing"),
        ("left_numbers", "1 2 x", "value 3 is not a number"),
        ("right_numbers", "[1, 2", "not complete"),
        ("right_numbers", "[[1, 2]]", "no plain list of numbers"),
        ("right_numbers", '{"a": 1}', "no plain list of numbers"),
        ("right_numbers", "[true, false]", "no plain list of numbers"),
        ("left_numbers", "[" * 100_000, "not complete"),
        ("left_numbers", "1 nan", "value 2: expected a finite number"),
        ("left_numbers", "1e39 1", "value 1: expected a finite number"),
        ("left_numbers", "1e30 1e30", "moderate size"),
        ("left_numbers", "0 0 0", "not all 0"),
        ("left_numbers", "[1e999, 1]", "expected a finite number"),
        ("left_numbers", "[1" + "0" * 400 + ", 1]", "too large"),
        ("left_numbers", "1 2 3", "numbers, found 3"),
        ("prior", "2", "share between 0 and 1"),
        ("prior", "often", "share between 0 and 1"),
        ("prior", "1 in 0", "share between 0 and 1"),
    ],
)
def test_what_is_wrong_is_named_at_its_field(serve, fitted, field, value, words):
    client, service = serve()
    fields = filled(fitted[1]["same"], **{"prior": "0.25", field: value})
    found = post(client, fields)
    assert found.status_code == 422
    told = re.search(rf'id="{field}-wrong">(.*?)</p>', found.text, re.DOTALL)
    assert words in unescape(told[1]).lower()
    tag = re.search(rf'<(?:input|textarea)[^>]* id="{field}"[^>]*>', found.text)[0]
    assert 'aria-invalid="true"' in tag
    assert f"{field}-wrong" in re.search(r'aria-describedby="([^"]*)"', tag)[1].split()
    assert f'<a href="#{field}">' in found.text  # from the summary
    for other, kept in fields.items():
        if not other.endswith("kind") and other != field:
            assert kept in unescape(found.text), other  # all else is still filled in
    assert service.counts.pairs == 0


def test_every_fault_is_told_at_once(serve, tmp_path):
    client, _ = serve(database=str(tmp_path / "db.sqlite"))
    fields = {"left_kind": "name", "left_name": "../nobody", "right_kind": "photo", "prior": "x"}
    found = post(client, fields)
    assert "3 things are not right yet" in found.text
    assert "there is no template of this name" in found.text
    assert "takes no photos" in found.text


@pytest.mark.parametrize("content", [b"\xff\xd8\xff\xe0 a photo", b"\x93NUMPY\x01\x00v\x00{}"])
def test_other_files_are_refused(content):
    with pytest.raises(DataError, match="file"):
        read_file(content)


def test_errors_never_hold_the_numbers():
    for text in ("0.123456 0.654321 oops", "[0.123456, 0.654321", '{"x": [0.123456]}'):
        with pytest.raises(DataError) as error:
            read_numbers(text)
        assert "123456" not in str(error.value)
        assert "oops" not in str(error.value)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StorageUnavailableError("the database is away; try later"), 503),
        (StorageFullError("full"), 507),
    ],
)
def test_trouble_with_the_store_keeps_the_form(serve, fitted, monkeypatch, error, status):
    client, service = serve()

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(service, "verify", fail)
    found = post(client, filled(fitted[1]["same"]))
    assert found.status_code == status
    assert str(error) in found.text
    assert text_of(fitted[1]["same"][0]) in unescape(found.text)


def test_groups_are_asked_for_where_the_model_needs_them(serve):
    cal, test = faircal.simulate("small", seed=0, people=80, pairs=1200).split(test_fold=5)
    model = faircal.Oracle(attribute="ethnicity").fit(cal)
    client, _ = serve(model)
    pair = [test.embeddings.vectors[side[0]] for side in (test.pairs.left, test.pairs.right)]
    found = post(client, filled(pair))
    assert found.status_code == 422
    assert "Group (ethnicity)" in found.text
    assert 'id="left_group-wrong"' in found.text
    name = test.groups("ethnicity").names[0]
    assert post(client, filled(pair, left_group=name, right_group=name)).status_code == 200


# ------------------------------------------------------------------------ who may ask


def test_keys(serve, fitted, tmp_path):
    ring = KeyRing.at(tmp_path / "keys.json")
    good, other = ring.add("desk", ["verify"]), ring.add("door", ["enrol"])
    client, service = serve(keys=tmp_path / "keys.json")
    page = client.get("/").text
    tag = re.search(r'<input[^>]* id="key"[^>]*>', page)[0]
    assert 'type="password"' in tag
    assert 'autocomplete="off"' in tag
    pair = fitted[1]["same"]
    for key, status, words in (
        ("", 401, "a key is needed"),
        ("wrong <i>", 401, "this key is not known"),
        ("schlüssel", 401, "this key is not known"),
        (other, 403, "not good for verifying"),
    ):
        found = post(client, filled(pair, key=key))
        assert (found.status_code, words in found.text.lower()) == (status, True), key
        assert 'id="key-wrong"' in found.text
        assert not key or key not in unescape(found.text)  # a key never comes back
        assert text_of(pair[0]) in unescape(found.text)
        assert "data-live" not in found.text
        assert service.in_use.digest[:12] not in found.text
    assert service.counts.pairs == 0
    found = post(client, filled(pair, key=good))
    assert "Same person" in found.text
    assert good not in found.text
    assert "data-live" in found.text


def test_model_and_counters_are_for_those_who_have_a_key(serve, tmp_path):
    key = KeyRing.at(tmp_path / "keys.json").add("door", ["enrol"])
    client, service = serve(keys=tmp_path / "keys.json")
    page = client.get("/").text
    assert service.in_use.digest[:12] not in page
    assert "data-live" not in page
    for path in ("/live", "/card"):
        assert client.get(path).status_code == 401
        assert client.ask("GET", path, headers={"X-API-Key": "x"}).status_code == 401
        assert client.ask("GET", path, headers={"X-API-Key": key}).status_code == 200
    looked = post(client, {"wanted": "look", "key": key})
    assert "data-live" in looked.text
    assert service.in_use.digest[:12] in looked.text
    assert "model card" in post(client, {"wanted": "card", "key": key}).text
    for wanted in ("look", "card"):
        assert post(client, {"wanted": wanted, "key": "x"}).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://elsewhere.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:9"}, 403),
        ({"Origin": "http://localhost"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({}, 200),
    ],
)
def test_forms_from_other_sites_are_not_read(serve, fitted, headers, status):
    client, service = serve()
    found = post(client, filled(fitted[1]["same"]), **headers)
    assert found.status_code == status
    assert service.counts.pairs == (status == 200)
    assert ("another site" in found.text) == (status == 403)


def test_the_form_is_no_way_round_the_rate_limit(serve, fitted):
    client, _ = serve(rate=1e-6, burst=2)
    said = [post(client, filled(fitted[1]["same"])).status_code for _ in range(3)]
    assert said == [200, 200, 429]


def test_what_is_no_form_is_refused_in_words(serve):
    client, _ = serve(max_body=10_000)
    for content, kind, status in (
        (b"{}", "application/json", 415),
        (b"left_kind=numbers", "application/x-www-form-urlencoded", 415),
        (b"x", "multipart/form-data", 400),
        (b"x", "multipart/form-data; boundary=b", 400),
        (
            b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--",
            "multipart/form-data; boundary=b",
            400,
        ),
        (b"x" * 10_001, "multipart/form-data; boundary=b", 413),
    ):
        found = client.post("/", content=content, headers={"Content-Type": kind})
        assert found.status_code == status, content
        assert "Back to the page" in found.text
    many = {f"f{i}": (None, "x") for i in range(100)}
    assert client.post("/", files=many).status_code == 400


# ----------------------------------------------------------------- what it gives away


def test_nothing_comes_from_elsewhere(serve, fitted):
    client, _ = serve()
    for found in (client.get("/"), post(client, filled(fitted[1]["same"])), client.get("/card")):
        rules = dict(
            part.strip().split(" ", 1)
            for part in found.headers["content-security-policy"].split(";")
        )
        assert rules["default-src"] == "'none'"
        assert rules["frame-ancestors"] == "'none'"
        assert "unsafe" not in found.headers["content-security-policy"]
        assert found.headers["cache-control"] == "no-store"
        assert "set-cookie" not in found.headers
        links = re.findall(r'(?:src|href|action)="([^"]*)"', found.text)
        assert all(link.startswith(("/", "#", "data:,")) for link in links)
        assert not re.search(r"\son\w+=|\sstyle=", found.text)
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", found.text)


def test_static_files_may_be_kept_by_their_address(serve):
    client, _ = serve()
    addresses = re.findall(r'"(/static/[^"]+)"', client.get("/").text)
    assert len(addresses) == 3
    for address in addresses:
        found = client.get(address)
        assert found.status_code == 200
        assert "immutable" in found.headers["cache-control"]
        assert found.headers["x-content-type-options"] == "nosniff"
    for odd in ("routes.py", "..%2froutes.py", "templates%2fpage.html", "__init__.py"):
        assert client.get(f"/static/{odd}").status_code == 404


def test_counters_follow(serve, fitted, tmp_path):
    client, _ = serve(database=str(tmp_path / "db.sqlite"))
    before = client.get("/live").json()
    assert (before["pairs"], before["same"], before["templates"]) == ("0", "–", "0")
    post(client, filled(fitted[1]["same"]))
    post(client, filled(fitted[1]["different"]))
    after = client.get("/live").json()
    assert (after["pairs"], after["same"]) == ("2", "50 %")
    page = client.get("/").text
    for name, text in after.items():
        assert f'data-live="{name}">{text}<' in page


def test_counters_without_a_database_that_answers(serve, fitted, monkeypatch, tmp_path):
    client, service = serve(database=str(tmp_path / "db.sqlite"))

    def away():
        raise StorageUnavailableError("away")

    monkeypatch.setattr(service.store, "count", away)
    assert client.get("/live").json()["templates"] == "–"
    assert client.get("/").status_code == 200


def test_the_card_is_the_models(serve):
    client, _ = serve()
    found = client.get("/card")
    assert found.status_code == 200
    assert "tests" in plain(found)  # what it is meant for


def test_nothing_of_a_face_is_logged(serve, fitted, caplog):
    client, _ = serve()
    pair = fitted[1]["same"]
    with caplog.at_level(logging.DEBUG):
        post(client, filled(pair))
        post(client, filled(pair, right_numbers=text_of(pair[1])[:-9]))
    number = text_of(pair[0]).split(",")[3].strip()
    assert number not in caplog.text


# --------------------------------------------------------------------------- in words


def verified(**more):
    numbers = {"similarity": 0.5, "score": 0.5, "probability": 0.9, "log_likelihood_ratio": 2.0}
    rest = {"id": "i", "same": True, "point": OperatingPoint(0.4), "clusters": (0, 2)}
    last = {"outside": (False, False), "model": "m", "prior": 0.5, "at_bound": False}
    return Verification(**{**numbers, **rest, **last, **more})


def population(genuine, imposter):
    edges = np.linspace(0, 1, len(genuine) + 1)
    none = np.zeros((0, 2), np.float32)
    counts = [np.array(values, np.int64) for values in (genuine, imposter)]
    return Population(none, np.zeros(0, np.float32), edges, *counts)


class Known:
    """Stands for a judge: the page asks for the population only."""

    def __init__(self, found):
        self.model = type("Model", (), {"about_": About(population=found)})


@pytest.fixture
def shown(serve, fitted, monkeypatch):
    """Return a function that gives the page's words on a pair, of a model of some population."""
    client, service = serve()

    def show(people=None, evidence=None, **more):
        about = About(population=people, evidence=evidence)
        monkeypatch.setattr(service.in_use.model, "about_", about)
        monkeypatch.setattr(service, "verify", lambda *_, **__: verified(**more))
        return plain(post(client, filled(fitted[1]["same"])))

    return show


def test_where_a_pair_lies_is_counted_by_hand(shown):
    # 0.6 lies in the third bin: 1 + 2 + 3 of 10 genuine ones, 20 + 10 of 99 imposters.
    words = shown(population([1, 2, 3, 4], [40, 29, 20, 10]), similarity=0.6)
    for line in (
        "Of its 10 calibration pairs of one person, about 60 in 100 are as alike as this, or less.",
        "Of its 99 calibration pairs of two people, about 30 in 100 are as alike as this, or more.",
    ):
        assert line in words
    words = shown(population([1, 0], [1, 0]), similarity=2.0)
    for line in (
        "Of its 1 calibration pairs of one person, all are as alike as this, or less.",
        "None of its 1 calibration pairs of two people are as alike as this, or more.",
    ):
        assert line in words
    assert "knows no calibration pairs of one" in shown(population([0, 0], [1, 1]))


def test_evidence_at_a_bound_is_at_least_that(shown):
    bounds = EvidenceBounds(-math.log(30), math.log(200), 40.0, 300.0)
    few = shown(evidence=bounds, log_likelihood_ratio=bounds.high, at_bound=True)
    assert (
        "Moderately strong evidence that it is one person: a pair like this is at least 200 times "
        "likelier among pairs of one person than among pairs of two people." in few
    )
    assert "300 people in imposter pairs and 40 in genuine ones" in few
    assert "200 to 1 for one person, 30 to 1 against" in few
    assert "such pairs are of one person (or more)" in few
    many = shown(evidence=bounds, log_likelihood_ratio=2.0)
    assert "Weak evidence" in many
    assert "about 7.4 times" in many
    assert "at least 7.4" not in many
    against = shown(evidence=bounds, log_likelihood_ratio=bounds.low, at_bound=True)
    assert "Moderate evidence that they are two people" in against
    assert "at least 30 times likelier among pairs of two people than among" in against
    assert "(or fewer)" in against


def test_a_model_without_bounds_says_so(shown):
    words = shown(log_likelihood_ratio=2000.0, at_bound=None)
    assert "more than a million times" in words
    assert "The model file has no bounds on evidence" in words
    assert "fit it again to have them" in words
    assert "No evidence either way" in shown(log_likelihood_ratio=0.0)


def test_a_threshold_is_drawn_where_it_is_on_the_axis():
    known = Known(population([9, 9], [9, 9]))
    assert "threshold" in answer(verified(), known).histogram
    on = OperatingPoint(0.4, "probability")
    assert "threshold" not in answer(verified(point=on), known).histogram
    assert "threshold" not in answer(verified(score=0.7), known).histogram


def test_what_was_only_counted_is_not_called_a_promise():
    counted = OperatingPoint(0.4, fpr=0.001, confidence=0.95)
    assert "at most" not in rule(counted)
    assert not verified(point=counted).as_json()["operating_point"]["promised"]
    promised = OperatingPoint(0.4, fpr=0.001, confidence=0.95, within="global")
    assert "at most 0.1 %" in rule(promised)
    assert verified(point=promised).as_json()["operating_point"]["promised"]


def test_groups_where_a_promise_does_not_hold_are_named():
    rows = tuple({"name": name, "fpr_low": low} for name, low in (("<b>A", 0.002), ("B", 0.0001)))
    point = OperatingPoint(0.4, fpr=0.001, confidence=0.95, within="global", measured=rows)
    assert rule(point).endswith("(95 % sure); measured above that among <b>A")
    assert "measured above" not in rule(replace(point, fpr=0.003))
    many = tuple({"name": f"g{n}", "fpr_low": 0.1} for n in range(11))
    assert rule(replace(point, measured=many)).endswith("g6, g7 and 3 more")


def test_clusters_and_scores_in_words(shown):
    assert "Clusters 0 and 2" in shown()  # as the API has them
    assert "Score (cosine) 0.5000" in shown()
    assert "Log-likelihood ratio −2.00 nats (−0.87 in powers of ten)" in shown(
        log_likelihood_ratio=-2.0
    )
    assert "Clusters both in 4" in shown(clusters=(4, 4))
    assert "Score (what the model ranks by) 0.7000" in shown(score=0.7)
    assert "Clusters" not in shown(clusters=None)


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.004, 0.0096, 0.5, 0.9951, 1 - 1e-9, 1.0])
def test_a_probability_never_becomes_certain(value):
    if 0 < value < 1:
        assert probability(value) not in ("0.0000", "1.0000")
        assert not re.search(r"\b0 in|\b(\d[\d,]*) in \1\b", share_in_words(value))


def test_shares_as_people_write_them():
    assert read_share(" 0.2 ") == read_share("20 %") == read_share("1/5") == read_share("1 in 5")
    assert read_share("1e-3") == read_share("1 in 1,000") == 0.001
    assert read_share(one_in(0.001)) == 0.001  # as the page itself says it
    assert read_share("") is None
    for odd in ("0", "1", "-0.1", "1,5", "0x1", "1 in", "nan", "5 in 3", "١/٢ of"):
        with pytest.raises(DataError, match="share"):
            read_share(odd)


def test_words_of_shares():
    assert one_in(1 / 3) == "1 pair in 3"
    assert one_in(0.75) == "75 % of pairs"
    point = OperatingPoint(0.3, fpr=1e-4, within="groups")
    assert rule(point).endswith("at most 0.01 % of pairs of two people are")
