"""The service: single verifies at a fixed pace, and batches through Arrow, on loopback."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import faircal
from benchmarks.figure import Figure, aside
from benchmarks.load import pace, request
from faircal.data import Embeddings

_ARROW = "application/vnd.apache.arrow.stream"
_BATCH = 10_000
_RATE = 500


@contextmanager
def server(model: Path, *options: str) -> Iterator[str]:
    """Start ``faircal serve`` on a free port; give its address, and stop it at the end."""
    words = [sys.executable, "-m", "faircal", "serve", str(model), "--port", "0", *options]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        if process.stdout is None:
            raise RuntimeError("the service has no output")
        for line in process.stdout:
            if "http://" in line:
                yield line[line.index("http://") :].split()[0].rstrip("/")
                break
        else:
            raise RuntimeError("the service did not start")
    finally:
        process.terminate()
        process.wait(30)


def figures(quick: bool) -> list[Figure]:
    seconds = 2 if quick else 60
    found = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for dimension in (128, 512):
            model, vectors = _model(home, dimension, quick)
            options = "--database", str(home / f"{dimension}.db"), "--rate", "0"
            with server(model, *options) as address:
                if dimension == 512:
                    found += _singles(address, vectors, seconds)
                found += _batches(address, vectors, dimension, model, 3 if quick else 20)
    return found


def _model(home: Path, dimension: int, quick: bool) -> tuple[Path, NDArray[np.float32]]:
    preset = "small" if quick else "bfw-like"
    data = faircal.simulate(preset, seed=0, dimension=dimension)
    calibration, test = data.split(test_fold=5)
    fitted = faircal.FairCal(n_clusters=20 if quick else 100).fit(calibration)
    faircal.survey(fitted, calibration)
    path = home / f"{dimension}.faircal"
    fitted.save(path)
    return path, test.embeddings.rows(test.used_images())


def _singles(address: str, vectors: NDArray[np.float32], seconds: float) -> list[Figure]:
    rng = np.random.default_rng(0)
    bodies = [
        json.dumps({"left": vectors[i].tolist(), "right": vectors[j].tolist()}).encode()
        for i, j in rng.integers(0, len(vectors), (200, 2))
    ]
    requests = [request("/v1/verify", body) for body in bodies]
    pace(address, requests, rate=_RATE, seconds=1)
    load = pace(address, requests, rate=_RATE, seconds=seconds)
    what = f"{_RATE} single verifies a second for {seconds:g} s, 512-d, JSON"
    return [
        Figure("single-p99", f"{what}: p99", load.ms(0.99), "lower", goal=25.0, unit="ms"),
        aside("single-p50", f"{what}: median", load.ms(0.5), "ms"),
        aside("single-worst", f"{what}: slowest", load.ms(1.0), "ms"),
        Figure("single-failed", f"{what}: failed", load.failed, "lower", goal=0),
    ]


def _batches(
    address: str, vectors: NDArray[np.float32], dimension: int, model: Path, rounds: int
) -> list[Figure]:
    rng = np.random.default_rng(1)
    left, right = (vectors[rng.integers(0, len(vectors), _BATCH)] for _ in range(2))
    found = []
    for name, kind in (("float32", np.float32), ("float16", np.float16)):
        body = _arrow(left.astype(kind), right.astype(kind))
        rate = _BATCH / _posting(address, body, rounds)
        what = f"batches of {_BATCH:,} pairs through Arrow, {dimension}-d {name}"
        goal = 2e5 if name == "float32" and dimension == 128 else None
        found.append(
            Figure(f"arrow-{dimension}-{name}", what, rate, "higher", goal=goal, unit="pairs/s")
        )
    fitted = faircal.load_model(model)
    both = Embeddings(np.concatenate([left, right]))
    rows = np.arange(_BATCH), np.arange(_BATCH, 2 * _BATCH)
    started = time.perf_counter()
    for _ in range(rounds):
        fitted.compare(Embeddings(both.vectors), *rows)
    alone = _BATCH * rounds / (time.perf_counter() - started)
    names = _enrol(address, vectors[: 100 if rounds < 10 else 1000])
    chosen = [pa.array(rng.choice(names, _BATCH)) for _ in range(2)]
    rate = _BATCH / _posting(address, _stream(chosen), rounds)
    what = f"batches of {_BATCH:,} pairs of enrolled templates through Arrow, {dimension}-d"
    found.append(Figure(f"ids-{dimension}", what, rate, "higher", goal=2e5, unit="pairs/s"))
    what = f"the same pairs compared in this process, {dimension}-d"
    return [*found, aside(f"alone-{dimension}", what, alone, "pairs/s")]


def _arrow(left: NDArray[np.floating], right: NDArray[np.floating]) -> bytes:
    width = left.shape[1]
    columns = [
        pa.FixedSizeListArray.from_arrays(pa.array(side.ravel()), width) for side in (left, right)
    ]
    return _stream(columns)


def _enrol(address: str, vectors: NDArray[np.float32]) -> list[str]:
    """Enrol templates; return their names."""
    place, names = urlsplit(address), [f"person-{i}" for i in range(len(vectors))]
    line = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
    for name, vector in zip(names, vectors, strict=True):
        body = json.dumps({"id": name, "embedding": vector.tolist()})
        line.request("POST", "/v1/templates", body, {"content-type": "application/json"})
        answer = line.getresponse()
        answer.read()
        if answer.status != 201:
            raise RuntimeError(f"enrolment was answered with {answer.status}")
    line.close()
    return names


def _stream(columns: list[pa.Array]) -> bytes:
    batch = pa.record_batch(columns, names=["left", "right"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _posting(address: str, body: bytes, rounds: int) -> float:
    """Return the seconds a batch when two clients send them one after the other."""
    place, errors = urlsplit(address), list[int]()

    def client() -> None:
        line = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
        for _ in range(rounds):
            line.request("POST", "/v1/verify/batch", body, {"content-type": _ARROW})
            answer = line.getresponse()
            table = answer.read()
            if answer.status != 200 or not table:
                errors.append(answer.status)
        line.close()

    threads = [threading.Thread(target=client) for _ in range(2)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise RuntimeError(f"batches were answered with {errors[0]}")
    return (time.perf_counter() - started) / (2 * rounds)
