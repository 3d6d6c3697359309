"""What many requests at once do to one: nothing, or a clear answer."""

from __future__ import annotations

import asyncio
import threading

import pytest

from faircal.production.serving import routes
from faircal.production.serving.access import KeyRing


def while_others_send(client, others, request):
    """Return the answer to `request` while others have sent part of a body, and send no more.

    `others`: (path, headers, bytes that came, bytes that are said to come) of each.
    """

    async def all_of_them():
        never = asyncio.Event()

        async def slowly(part):
            yield part
            await never.wait()

        slow = [
            asyncio.ensure_future(
                client._http.post(
                    path,
                    content=slowly(b"x" * came),
                    headers={"Content-Length": str(length), **headers},
                )
            )
            for path, headers, came, length in others
        ]
        await asyncio.sleep(0.05)
        said = await client._http.send(request)
        for each in slow:
            each.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        return said

    return client._runner.run(all_of_them())


@pytest.mark.parametrize("came", [0, 60_000])
def test_who_has_no_key_keeps_nobody_out(start, tmp_path, vectors, came):
    key = KeyRing.at(tmp_path / "keys.json").add("gate", ["verify"])
    client = start(keys=tmp_path / "keys.json", page=True, max_body=64_000)
    pair = {"left": vectors[0].tolist(), "right": vectors[1].tolist()}
    request = client.build_request("POST", "/v1/verify", json=pair, headers={"X-API-Key": key})
    form = {"Content-Type": "multipart/form-data; boundary=b"}
    said = while_others_send(client, [("/", form, came, 64_000)] * 24, request)
    assert said.status_code == 200


def test_slow_batches_keep_no_single_pair_out(start, vectors):
    client = start(max_body=64_000)
    pair = {"left": vectors[0].tolist(), "right": vectors[1].tolist()}
    request = client.build_request("POST", "/v1/verify", json=pair)
    batch = {"Content-Type": "application/json"}
    said = while_others_send(client, [("/v1/verify/batch", batch, 63_000, 64_000)] * 6, request)
    assert said.status_code == 200


def test_no_queue_grows_behind_a_database_that_hangs(start, monkeypatch):
    monkeypatch.setattr(routes, "_MOST_CALLS", 2)
    client, answers = start(), threading.Event()
    monkeypatch.setattr(client.service.store, "count", lambda: answers.wait(20) and 0)

    async def ask():
        waiting = [asyncio.ensure_future(client._http.get("/v1/templates")) for _ in range(2)]
        await asyncio.sleep(0.1)
        refused = await client._http.get("/v1/templates")
        alive = await client._http.get("/healthz")
        answers.set()
        return refused, alive, await asyncio.gather(*waiting)

    refused, alive, waited = client._runner.run(ask())
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "busy")
    assert refused.headers["retry-after"] == "1"
    assert [each.status_code for each in (alive, *waited)] == [200] * 3
    assert client.get("/v1/templates").status_code == 200


def test_requests_are_counted_and_not_those_that_only_watch(start):
    client = start(page=True)
    for path in ("/healthz", "/metrics", "/", "/live", "/v1/model", "/v1/templates/nobody"):
        client.get(path)
    assert client.service.counts.requests == 2
    assert client.get("/live").json()["requests"] == "2"
