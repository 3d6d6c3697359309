"""The command as a process: address, signals, one-line errors."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time
from dataclasses import replace

import httpx
import pytest

import faircal
from faircal.cli.main import main
from faircal.model import OperatingPoint
from faircal.production.serving.access import KeyRing
from faircal.production.serving.app import summary
from faircal.production.serving.service import Service, ServiceSettings
from faircal.production.serving.store import open_store


@pytest.fixture
def serve(spawner, model_path, tmp_path):
    """Start the command; return the process and a client of it."""
    with contextlib.ExitStack() as opened:

        def begin(*options):
            started = spawner.start(model_path, *options, log=tmp_path / "log")
            running = opened.enter_context(started)
            return running, opened.enter_context(running.client())

        yield begin


def test_a_life_with_load_swap_and_end(serve, data, model_path, vectors):
    process, client = serve("--no-page")
    pair = {"left": vectors[0].tolist(), "right": vectors[1].tolist()}
    codes, stop = [], threading.Event()

    def ask():
        with httpx.Client(base_url=client.base_url, timeout=20) as own:
            while not stop.is_set():
                codes.append(own.post("/v1/verify", json=pair).status_code)

    asking = threading.Thread(target=ask)
    asking.start()
    assert client.get("/readyz").status_code == 200
    made = {"id": "anna", "embedding": vectors[0].tolist()}
    assert client.post("/v1/templates", json=made).status_code == 201
    before = client.get("/v1/model").json()["model"]
    faircal.Baseline().fit(data[0]).save(model_path)
    process.signal(signal.SIGHUP)
    for _ in range(200):
        if client.get("/v1/model").json()["model"] != before:
            break
        time.sleep(0.02)
    assert client.get("/v1/model").json()["model"] != before
    stop.set()
    asking.join()
    assert set(codes) == {200}
    assert process.end() == 0
    told = process.said()
    assert "no keys" in told
    assert f"model {before[:16]} (faircal), same where probability >= 0.5 (no promise)" in told
    assert "database SQLite (not encrypted), keys none\n" in told
    assert "POST /v1/verify 200" in told
    assert str(vectors[0][0])[:6] not in told
    store = open_store(str(model_path.with_suffix(".db")))
    kinds = [line.kind for line in store.decisions(None, 100_000)]
    assert (kinds.count("verify"), kinds.count("enrol")) == (len(codes), 1)
    assert store.count() == 1
    store.close()


def test_what_is_served_is_told_without_its_secrets(model_path, tmp_path):
    model = faircal.load_model(model_path)
    point = OperatingPoint(0.41, fpr=0.001, confidence=0.95, within="groups")
    model.about_ = replace(model.about_, operating_point=point)
    model.save(model_path)
    key = KeyRing.at(tmp_path / "keys.json").add("gate", ["verify"])
    settings = ServiceSettings(
        model_path,
        database="postgresql://me:pass-word@host/faces",
        encryption_key=b"k" * 32,
        keys=tmp_path / "keys.json",
        prior=0.01,
    )
    service = Service(settings, store=open_store(str(tmp_path / "s.db")))
    said = summary(service)
    digest = service.in_use.digest[:16]
    service.close()
    assert said == (
        f"model {digest} ({model.name}), same where score >= 0.41 (FPR 0.001 promised, groups), "
        "prior 0.01, database PostgreSQL (encrypted), keys 1"
    )
    assert key not in said


def test_lies_and_dawdlers_on_the_wire(serve):
    process, client = serve("--no-page", "--database", "none", "--no-access-log")
    port = client.base_url.port

    def say(text, more=b""):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
            line.sendall(text)
            for start in range(0, len(more), 65536):
                try:
                    line.sendall(more[start : start + 65536])
                except OSError:  # it has hung up already
                    break
            try:
                return line.recv(200)
            except OSError:
                return b""

    assert say(b"GET / nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
    endless = say(b"GET /healthz HTTP/1.1\r\nX: ", b"a" * 2_000_000)
    assert endless == b"" or endless.startswith(b"HTTP/1.1 400")
    head = b"POST /v1/verify HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    lying = say(
        head + b"Transfer-Encoding: chunked\r\n\r\n", (b"10000\r\n" + b" " * 65536 + b"\r\n") * 40
    )
    assert lying == b"" or lying.startswith(b"HTTP/1.1 413")
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(head + b"Content-Length: 50\r\n\r\n{")  # and hangs up
    assert client.get("/healthz").status_code == 200
    assert process.end() == 0


def refused(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        main(["serve", *words])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.count("\n") == 1
    return said


def test_what_cannot_be_served_is_one_line(capsys, model_path, tmp_path):
    model = str(model_path)
    assert "faircal keys add" in refused(capsys, model, "--host", "0.0.0.0")  # noqa: S104
    assert "no such file" in refused(capsys, str(tmp_path / "none.faircal"))
    (tmp_path / "bad.faircal").write_bytes(b"no model")
    assert "bad.faircal" in refused(capsys, str(tmp_path / "bad.faircal"))
    assert "share" in refused(capsys, model, "--prior", "2")
    assert "no such file" in refused(capsys, model, "--keys", str(tmp_path / "none.json"))
    assert "network" in refused(capsys, model, "--network", "nonsense")


def test_a_port_in_use_is_one_line(model_path):
    from faircal._base.errors import ParameterError
    from faircal.production.serving.server import address, bind

    first = bind("127.0.0.1", 0)
    try:
        port = first.getsockname()[1]
        assert address(first) == f"http://127.0.0.1:{port}"
        with pytest.raises(ParameterError, match=f"{port} .*in use"):
            bind("127.0.0.1", port)
    finally:
        first.close()
    with pytest.raises(ParameterError, match="cannot listen"):
        bind("no such host", 0)
