"""Pictures instead of embeddings: through a made-up network, and photographs through dlib's."""

from __future__ import annotations

import base64
import io
import struct
import zlib

import numpy as np
import pytest

from faircal._base.errors import DataError, ParameterError
from faircal.embedding.preprocessing import Preprocessing
from faircal.production.serving import pictures as module
from faircal.production.serving.pictures import Embedder
from faircal.production.serving.service import Service, ServiceSettings

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
        Service(ServiceSettings(model_path, network="made-up", detector="none"))


# ------------------------------------------------------------- photographs, a real network


def photograph(pixels, **options):
    """Return the bytes of a picture of these pixels."""
    found = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(found, "JPEG", **options)
    return found.getvalue()


@pytest.fixture(scope="module")
def photos():
    """Two photographs of Eileen Collins (NASA), one of Grace Hopper (US Navy), and a cup."""
    samples = pytest.importorskip("skimage.data")
    cbook = pytest.importorskip("matplotlib.cbook")
    with Image.open(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)) as opened:
        hopper = np.array(opened.convert("RGB"))
    collins, cup = samples.astronaut(), samples.coffee()
    darker = (collins[:, ::-1] * 0.7).astype(np.uint8)
    pixels = {"collins": collins, "darker": darker, "hopper": hopper, "cup": cup}
    return {name: photograph(each, quality=92) for name, each in pixels.items()}


def traces(photo):
    """Yield pieces of a photo, as bytes and in base64, that are nowhere by chance."""
    for start in range(600, len(photo) - 72, len(photo) // 7):
        piece = photo[start : start + 72]
        yield piece[:24]
        yield from (base64.b64encode(piece[shift:])[:32] for shift in range(3))


def test_photographs_are_judged_and_leave_no_trace(spawner, fitted_model, tmp_path, photos):
    pytest.importorskip("dlib")
    fitted_model.save(tmp_path / "m.faircal")
    (tmp_path / "temporary").mkdir()
    running = spawner.start(
        tmp_path / "m.faircal",
        *("--network", "dlib", "--log-level", "debug"),
        log=tmp_path / "log",
        first="import os, tempfile\n"
        f"os.environ['TMPDIR'] = tempfile.tempdir = {str(tmp_path / 'temporary')!r}",
    )
    told = []
    with running, running.client() as client:

        def ask(path, **body):
            said = client.post(path, json=body)
            told.append(said.content)
            return said

        made = ask("/v1/templates", id="collins", **sent(photos["collins"]))
        assert (made.status_code, made.json()["dimension"]) == (201, 128)
        genuine = ask("/v1/templates/collins/verify", **sent(photos["darker"])).json()
        imposter = ask("/v1/templates/collins/verify", **sent(photos["hopper"])).json()
        assert genuine["similarity"] > 0.95 > imposter["similarity"]
        both = ask("/v1/verify", left=sent(photos["collins"]), right=sent(photos["hopper"])).json()
        assert both["similarity"] == pytest.approx(imposter["similarity"], abs=1e-4)
        found = ask("/v1/identify", **sent(photos["darker"])).json()
        assert found["candidates"][0]["similarity"] == pytest.approx(genuine["similarity"])
        nobody = ask("/v1/templates", id="cup", **sent(photos["cup"]))
        assert (nobody.status_code, nobody.json()["error"]["where"]) == (422, "image")
        assert "no face" in nobody.json()["error"]["message"]
        files = {f"{side}_photo": (f"{side}.jpg", photos["darker"]) for side in ("left", "right")}
        kinds = {"left_kind": "photo", "right_kind": "photo"}
        page = client.post("/", files=files, data=kinds)
        assert page.status_code == 200
        told.append(page.content)
        during = everything(tmp_path)
        assert running.end() == 0
    assert list((tmp_path / "temporary").iterdir()) == []
    left = [during, everything(tmp_path), *told]
    for photo in photos.values():
        for trace in traces(photo):
            assert not any(trace in text for text in left)
    assert "Traceback" not in running.said()


def everything(folder):
    """Return the bytes of all files in a folder."""
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
