"""Pictures instead of embeddings; the network is a made-up one."""

from __future__ import annotations

import base64
import io
import struct
import zlib

import numpy as np
import pytest

from faircal.embedding.preprocessing import Preprocessing
from faircal.errors import DataError, ParameterError
from faircal.serving import Service, Settings
from faircal.serving import pictures as module
from faircal.serving.pictures import Embedder

Image = pytest.importorskip("PIL.Image")


class Network:
    """Gives a picture's own first pixels for its embedding."""

    name, preprocessing, wide = "made-up", Preprocessing(16), 128

    def __call__(self, faces):
        return faces.reshape(len(faces), -1)[:, : self.wide].astype(np.float32) + 1


@pytest.fixture
def network(monkeypatch):
    made = Network()
    monkeypatch.setattr(module, "open_network", lambda name, preset: made)
    return made


def picture(seed=0, size=(40, 30), kind="PNG"):
    pixels = np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)
    found = io.BytesIO()
    Image.fromarray(pixels).save(found, kind)
    return found.getvalue()


def bomb():
    """A picture of few bytes that says it has a billion pixels."""

    def chunk(kind, data):
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", 40_000, 25_000, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def sent(data):
    return {"image": base64.b64encode(data).decode()}


def test_pictures_can_be_verified_enrolled_and_identified(start, network):
    client = start(network="made-up", detector="none")
    said = client.post("/v1/verify", json={"left": sent(picture()), "right": sent(picture())})
    assert said.json()["similarity"] == pytest.approx(1)
    other = client.post("/v1/verify", json={"left": sent(picture()), "right": sent(picture(1))})
    assert other.json()["similarity"] < 0.99
    made = client.post("/v1/templates", json={"id": "anna", **sent(picture(kind="JPEG"))})
    assert made.status_code == 201
    found = client.post("/v1/identify", json=sent(picture(kind="JPEG"))).json()
    assert found["candidates"][0]["id"] == "anna"


@pytest.mark.parametrize("found", [b"", b"no picture", picture()[:-400], bomb(), b"%!PS-Adobe-3.0"])
def test_what_is_no_picture_is_refused(start, network, found):
    client = start(network="made-up", detector="none")
    said = client.post("/v1/verify", json={"left": sent(found), "right": sent(found)})
    assert (said.status_code, said.json()["error"]["where"]) == (422, "left")


def test_a_large_file_is_refused(start, network):
    client = start(network="made-up", detector="none", max_picture=1000)
    said = client.post("/v1/templates", json=sent(picture(size=(80, 80))))
    assert said.status_code == 422
    assert "1,000 bytes" in said.json()["error"]["message"]


def test_no_face_is_told(network, monkeypatch):
    embedder = Embedder("made-up", "none", None, 10**6)
    monkeypatch.setattr(embedder._detector, "blind", False, raising=False)
    monkeypatch.setattr(type(embedder._detector), "find", lambda self, pixels: [])
    with pytest.raises(DataError, match="no face"):
        embedder(picture())


def test_a_network_of_another_dimension_is_refused_at_the_start(model_path, network):
    network.wide = 64
    with pytest.raises(ParameterError, match="64-d"):
        Service(Settings(model_path, network="made-up", detector="none"))
