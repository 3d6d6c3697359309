"""Requests of somebody who means harm: none is answered with 5xx, none is repeated anywhere."""

from __future__ import annotations

import base64
import gzip
import json
import logging
import zlib

import numpy as np
import pytest

from faircal.production.serving.bodies import Refused, only
from faircal.production.serving.service import Service, ServiceSettings

D = 128
#: A number that is in no answer and no log unless something of the request is.
MARK = 0.73219456
GOOD = [MARK, *([0.25] * (D - 1))]
DEEP = 100_000


@pytest.fixture(scope="module")
def client(fitted_model, connect, tmp_path_factory):
    """One service for all of them: what one leaves behind, the others meet."""
    folder = tmp_path_factory.mktemp("hostile")
    fitted_model.save(folder / "m.faircal")
    service = Service(
        ServiceSettings(folder / "m.faircal", database=str(folder / "s.db"), page=False)
    )
    opened = connect(service)
    yield opened
    opened.close()


def raw(left="[1]", right=None):
    right = json.dumps(GOOD) if right is None else right
    return f'{{"left": {left}, "right": {right}}}'.encode()


def wrong_vectors():
    number = repr(MARK)
    rest = ",".join(["0.25"] * (D - 1))
    for first in (
        "NaN", "Infinity", "-Infinity", "1e999", "null", "true", f'"{number}"', "[]", "{}",
        f"[{number}]", "9" * 400, "9" * 5000, "1e39", "-1e300", '"\\u0000"', "0x10", "01", "+1",
        "'1'", ".5", "1.", "nan",
    ):  # fmt: skip
        yield f"[{first},{rest}]"
    yield from ("[]", "{}", "null", "true", "7", '"abc"', f'"{number}"', "[[1,2],[3,4]]")
    yield json.dumps([0.0] * D)
    yield json.dumps([1e-30] * D)
    yield json.dumps([1e30] * D)
    yield json.dumps(GOOD[:-1])
    yield json.dumps([*GOOD, 1.0])
    yield json.dumps([GOOD])
    yield '{"template": 7}'
    yield '{"template": "nobody"}'
    yield '{"template": "a", "image": "AAAA"}'
    yield '{"template": "../../../etc/passwd"}'
    yield '{"template": "a\\u0000b"}'
    yield '{"image": "%%%"}'
    yield '{"image": 7}'
    yield '{"image": ""}'
    yield f'{{"image": "{base64.b64encode(b"x" * 100).decode()}"}}'
    yield '{"path": "/etc/passwd"}'
    yield "[" * DEEP + "]" * DEEP
    yield '{"a":' * 5000 + "1" + "}" * 5000


WRONG_VECTORS = list(wrong_vectors())


@pytest.mark.parametrize("number", range(len(WRONG_VECTORS)))
def test_wrong_vectors(client, caplog, number):
    left = WRONG_VECTORS[number]
    with caplog.at_level(logging.DEBUG):
        said = post(client, "/v1/verify", raw(left))
    assert 400 <= said.status_code < 500, said.text
    assert set(said.json()) == {"error"}
    quiet(said, caplog)


def wrong_bodies():
    good = json.dumps(GOOD)
    yield b""
    yield b"{"
    yield b"null"
    yield b"[]"
    yield b'"text"'
    yield b"7"
    yield b"\xff\xfe{}"
    yield raw(good).decode().encode("utf-16")
    yield b"\xef\xbb\xbf" + b"{"
    yield b'{"left": "\xff"}'
    yield b'{"left": "\\ud800"}'
    yield b"{}"
    yield b'{"left": [1]}'
    yield raw(good)[:-1] + b', "extra": 1}'
    yield raw(good)[:-1] + b', "prior": 0}'
    yield raw(good)[:-1] + b', "prior": 1}'
    yield raw(good)[:-1] + b', "prior": "0.5"}'
    yield raw(good)[:-1] + b', "prior": 1e-300}'
    yield raw(good)[:-1] + b', "prior": true}'
    yield raw(good)[:-1] + b', "left_group": 7}'
    yield raw(good)[:-1] + b', "left_group": "' + b"x" * 5000 + b'"}'
    yield b'{"left": ' + good.encode() + b', "left": [1], "right": ' + good.encode() + b"}"
    yield raw(good) + b"garbage"
    yield raw(good).replace(b'"', b"'")
    yield b"[" * DEEP
    yield b'{"' + b"k" * 300_000 + b'": 1}'
    yield b" " * 2_000_000
    yield gzip.compress(raw(good))
    yield zlib.compress(b"0" * 1_000_000)
    yield b"\x80\x04\x95" + b"pickle" * 10


PATHS = (
    "/v1/verify", "/v1/verify/batch", "/v1/templates", "/v1/identify", "/v1/feedback", "/v1/model",
    "/v1/templates/a/verify",
)  # fmt: skip


def post(client, path, body, **headers):
    kind = headers.pop("kind", "application/json")
    return client.post(path, content=body, headers={"Content-Type": kind, **headers})


def quiet(said, caplog):
    for text in (said.text, caplog.text):
        assert str(MARK)[:7] not in text
        assert "0.25" not in text


WRONG_BODIES = list(wrong_bodies())


@pytest.mark.parametrize("number", range(len(WRONG_BODIES)))
def test_wrong_bodies_on_every_route(client, caplog, number):
    body = WRONG_BODIES[number]
    with caplog.at_level(logging.DEBUG):
        for path in PATHS:
            said = post(client, path, body)
            # An empty object is all that a reload needs.
            assert 400 <= said.status_code < 500 or (path, body) == ("/v1/model", b"{}"), said.text
            quiet(said, caplog)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("lefft", "'lefft'"),
        ("\u00e9t\u00e9", "'\u00e9t\u00e9'"),
        ("a\n\x1b[2J\u202e\ud800", r"'a\n\x1b[2J\u202e\ud800'"),
        ("k" * 40, f"'{'k' * 40}'"),
        ("k" * 41, "'\u2026'"),
        ("\n" * 30, "'\u2026'"),
        (f"{MARK}", "'\u2026'"),
        (f"-{MARK}", "'\u2026'"),
        ("", "'\u2026'"),
    ],
)
def test_an_unknown_field_is_named_where_its_name_is_a_short_word(name, shown):
    with pytest.raises(Refused) as found:
        only({"left": 1, name: 2}, "left", "right")
    assert found.value.message == f"unknown field {shown}; expected left, right"


def test_where_a_body_stops_being_json_is_told(client):
    said = post(client, "/v1/verify", b'{"left": [1,\n NaN]}').json()["error"]["message"]
    assert said == (
        "the body is not JSON (UTF-8, no NaN or Infinity), at line 2, column 2; correct it"
    )


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Encoding": "gzip"}, 415),
        ({"Content-Encoding": "br"}, 415),
        ({"Content-Encoding": "zstd, gzip"}, 415),
        ({"kind": "text/plain"}, 415),
        ({"kind": "application/x-www-form-urlencoded"}, 415),
        ({"kind": "multipart/form-data; boundary=x"}, 415),
        ({"kind": ""}, 415),
        ({"kind": "application/json; charset=utf-8"}, 200),
        ({"Content-Length": "99999999999999999999"}, 400),
        ({"Content-Length": "999999999"}, 413),
        ({"Content-Length": "-1"}, 400),
        ({"Content-Length": "1e3"}, 400),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1:8000"}, 200),
        ({"Host": "[::1]:8000"}, 200),
        ({"Host": "localhost"}, 200),
        ({"Accept": "text/" + "x" * 5000}, 200),
    ],
)
def test_headers(client, headers, status):
    assert post(client, "/v1/verify", raw(json.dumps(GOOD)), **headers).status_code == status


def test_a_body_in_pieces_is_cut_off_at_the_limit(client):
    async def pieces():
        for _ in range(64):
            yield b" " * 65536

    sent = client.post("/v1/verify", content=pieces(), headers={"Content-Type": "application/json"})
    assert sent.status_code == 413


def test_a_body_without_length_is_asked_for_one(client):
    request = client.build_request(
        "POST", "/v1/verify", headers={"Content-Type": "application/json"}
    )
    del request.headers["content-length"]
    assert client.send(request).status_code == 411


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/v1/../../etc/passwd", "/v1/templates/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
     "/v1/templates/%00", "/v1/templates/", "/v1/templates/%ff%fe", "//", "/v1/verify/",
     "/static/../app.py", "/v1/decisions/%00", "/v1/decisions/../../x", "/%0d%0aX: y",
     "/v1/templates?limit=0", "/v1/templates?limit=abc", "/v1/templates?limit=99999999999",
     "/v1/templates?after=%00", "/v1/decisions?limit=-1", "/v1/decisions?after=" + "a" * 300,
     "/v1/templates/" + "a" * 5000],
)  # fmt: skip
def test_addresses(client, path):
    assert 400 <= client.get(path).status_code < 500


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE", "FOO", "DELETE"])
def test_methods(client, method):
    assert client.request(method, "/v1/verify").status_code == 405


def test_the_reload_takes_no_other_file(client):
    said = client.post("/v1/model", json={"path": "/etc/passwd"})
    assert said.status_code == 403
    fine = client.post("/v1/model", json={"path": str(client.service.settings.model)})
    assert fine.json() == {"swapped": False, "model": client.service.in_use.digest}


def test_random_bytes_and_random_json(client):
    rng = np.random.default_rng(0)
    whole = bytearray(raw(json.dumps(GOOD)))
    for k in range(100):
        body = bytearray(whole)
        for place in rng.integers(0, len(body), 1 + k % 5):
            body[place] = rng.integers(0, 256)
        assert post(client, "/v1/verify", bytes(body)).status_code < 500


def test_an_error_of_ours_tells_nothing_but_a_number(client, caplog, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError(f"secret {MARK}")

    monkeypatch.setattr(client.service, "verify", broken)
    with caplog.at_level(logging.DEBUG):
        said = post(client, "/v1/verify", raw(json.dumps(GOOD)))
    assert said.status_code == 500
    quiet(said, caplog)
    assert "secret" not in said.text + caplog.text
    number = said.headers["x-request-id"]
    assert number in said.json()["error"]["message"]
    assert f"unexpected RuntimeError id={number}" in caplog.text
