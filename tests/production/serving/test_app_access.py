"""Keys, scopes, rates."""

from __future__ import annotations

import pytest

from faircal._base.errors import ParameterError
from faircal.production.serving.access import KeyRing, RateLimits
from faircal.production.serving.service import ServiceSettings


@pytest.fixture
def keys(tmp_path):
    ring = KeyRing.at(tmp_path / "keys.json")
    return {name: ring.add(name, [name]) for name in ("verify", "enrol", "admin")}


@pytest.fixture
def guarded(start, keys, tmp_path):
    """A service with keys, one for each scope."""
    return start(keys=tmp_path / "keys.json", host="0.0.0.0")  # noqa: S104


ROUTES = [
    ("POST", "/v1/verify", "verify"),
    ("POST", "/v1/verify/batch", "verify"),
    ("POST", "/v1/identify", "verify"),
    ("POST", "/v1/feedback", "verify"),
    ("POST", "/v1/templates/a/verify", "verify"),
    ("POST", "/v1/templates", "enrol"),
    ("GET", "/v1/templates", "enrol"),
    ("GET", "/v1/templates/a", "enrol"),
    ("DELETE", "/v1/templates/a", "enrol"),
    ("GET", "/v1/decisions", "admin"),
    ("GET", "/v1/decisions/a", "admin"),
    ("POST", "/v1/model", "admin"),
    ("GET", "/v1/model", None),
    ("GET", "/v1/monitor", None),
    ("GET", "/metrics", None),
]


def test_every_route_asks_for_its_key(guarded, keys):
    for method, path, scope in ROUTES:
        asks_for_its_key(guarded, keys, method, path, scope)


def asks_for_its_key(guarded, keys, method, path, scope):
    assert guarded.request(method, path).status_code == 401
    for wrong in ("fck_guess", "", " ", "Bearer", "x" * 10_000, "\xff"):
        headers = {"Authorization": f"Bearer {wrong}".encode("latin-1")}
        said = guarded.request(method, path, headers=headers)
        assert said.status_code == 401
        assert said.headers["www-authenticate"] == "Bearer"
    for name, key in keys.items():
        for headers in ({"Authorization": f"Bearer {key}"}, {"X-API-Key": key}):
            said = guarded.request(method, path, headers=headers)
            assert (said.status_code == 403) == (scope not in (None, name) and name != "admin")
            assert said.status_code != 401
    basic = {"Authorization": f"Basic {keys['admin']}"}
    assert guarded.request(method, path, headers=basic).status_code == 401


def test_health_needs_no_key_and_public_names_are_fine_with_keys(guarded, keys):
    assert guarded.get("/healthz").status_code == 200
    assert guarded.get("/readyz", headers={"Host": "faces.example"}).status_code == 200
    headers = {"Host": "faces.example", "X-API-Key": keys["verify"]}
    assert guarded.get("/v1/model", headers=headers).status_code == 200


def test_the_trail_and_the_log_name_the_key_and_never_tell_it(guarded, keys, vectors, caplog):
    caplog.set_level("INFO")
    pair = {"left": vectors[0].tolist(), "right": vectors[1].tolist()}
    guarded.post("/v1/verify", json=pair, headers={"X-API-Key": keys["verify"]})
    said = guarded.get("/v1/decisions", headers={"X-API-Key": keys["admin"]}).json()
    assert said["decisions"][0]["key"] == "verify"
    assert "POST /v1/verify 200" in caplog.text
    assert "key=verify" in caplog.text
    assert not any(key in caplog.text for key in keys.values())


def test_too_many_requests_are_told_when_to_come_again(start, keys, tmp_path):
    client = start(keys=tmp_path / "keys.json", rate=0.001, burst=2)
    headers = {"X-API-Key": keys["verify"]}
    codes = [client.get("/v1/model", headers=headers).status_code for _ in range(3)]
    assert codes == [200, 200, 429]
    assert int(client.get("/v1/model", headers=headers).headers["retry-after"]) > 1
    assert client.get("/v1/model", headers={"X-API-Key": keys["admin"]}).status_code == 200
    guesses = [client.get("/v1/model", headers={"X-API-Key": str(k)}).status_code for k in range(3)]
    assert guesses == [401, 401, 429]


def test_buckets_fill_with_time_and_forget_the_quiet():
    now = [0.0]
    buckets = RateLimits(10, 2, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(3)] == pytest.approx([0, 0, 0.1])
    now[0] = 0.1
    assert buckets.take("a") == 0
    for k in range(11_000):
        buckets.take(str(k))
    assert len(buckets._callers) == 10_000


def test_without_keys_only_this_machine(tmp_path):
    with pytest.raises(ParameterError, match="faircal keys add"):
        ServiceSettings(tmp_path / "m.faircal", host="0.0.0.0")  # noqa: S104
    assert ServiceSettings(tmp_path / "m.faircal", host="::1").host == "::1"
