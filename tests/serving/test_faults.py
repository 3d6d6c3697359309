"""Processes killed, databases away, disks full, models swapped: nothing acknowledged is lost.

The service is a process of its own here, and what is asked of it goes over the wire.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import httpx
import numpy as np
import pytest

import faircal
from faircal.data import Embeddings
from faircal.describing import describe
from faircal.scoring.judging import Judge
from tests.serving.running import Running, Spawner, eventually

#: Seconds in which an answer must come, whatever is wrong; on a busy machine.
BOUND = 10.0


@pytest.fixture(scope="module")
def spawner(tmp_path_factory):
    made = Spawner(tmp_path_factory.mktemp("spawner"))
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request, tmp_path):
    if request.param == "postgres":
        return request.getfixturevalue("postgres").empty()
    return str(tmp_path / "store.db")


def is_sound(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def pair(vectors, left=0, right=1):
    return {"left": vectors[left].tolist(), "right": vectors[right].tolist()}


# ------------------------------------------------------------------------- kill -9


class Load:
    """Threads that enrol and verify until nobody answers any more."""

    def __init__(self, running, vectors, first):
        self._address, self._vectors, self._first = running.address, vectors, first
        self.enrolled, self.verified, self.wrong = {}, [], []
        self._threads = [
            threading.Thread(target=self._until_nobody_answers, args=(work, number))
            for number, work in enumerate([self._enrol, self._enrol, self._enrol, self._verify])
        ]
        for thread in self._threads:
            thread.start()

    def join(self):
        for thread in self._threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in self._threads)

    def _until_nobody_answers(self, work, number):
        with httpx.Client(base_url=self._address, timeout=30) as client:
            for count in range(100_000):
                try:
                    work(client, f"{self._first}-{number}-{count}", count)
                except httpx.TransportError:
                    return

    def _enrol(self, client, name, count):
        row = hash((name, count)) % len(self._vectors)
        body = {"id": name, "embedding": self._vectors[row].tolist()}
        said = client.post("/v1/templates", json=body)
        if said.status_code == 201:
            self.enrolled[name] = row
        else:
            self.wrong.append(said.text)

    def _verify(self, client, name, count):
        known = list(self.enrolled.items())
        if not known:
            return
        template, row = known[count % len(known)]
        probe = self._vectors[row].tolist()
        said = client.post("/v1/verify", json={"left": {"template": template}, "right": probe})
        if said.status_code == 200 and said.json()["similarity"] > 0.9999:
            self.verified.append(said.json()["id"])
        else:
            self.wrong.append(said.text)


def test_kill_9_under_load_loses_no_acknowledged_enrolment(
    spawner, database, model_path, tmp_path, vectors
):
    enrolled, moments = {}, np.random.default_rng()
    words = (model_path, "--database", database, "--no-page", "--no-access-log")
    for round_ in range(3):
        with spawner.start(*words, log=tmp_path / "log") as running:
            load = Load(running, vectors, f"round {round_}")
            eventually(lambda load=load: len(load.enrolled) > 5 and load.verified)
            time.sleep(moments.uniform(0, 0.6))
            running.kill()
            load.join()
        assert load.wrong == []
        enrolled |= load.enrolled
    with spawner.start(*words, log=tmp_path / "log") as running, running.client() as client:
        codes = {client.get(f"/v1/templates/{name}").status_code for name in enrolled}
        assert codes == {200}
        names = list(enrolled)
        batch = {"left": names, "right": [vectors[enrolled[name]].tolist() for name in names]}
        said = client.post("/v1/verify/batch", json=batch).json()
        np.testing.assert_allclose(said["similarity"], 1, atol=1e-5)
        more = {"id": "after", "embedding": vectors[0].tolist()}
        assert client.post("/v1/templates", json=more).status_code == 201
        found = client.post("/v1/identify", json={"embedding": vectors[0].tolist()}).json()
        assert found["enrolled"] >= len(enrolled) + 1
        running.end()
    assert "unexpected" not in (tmp_path / "log").read_text()
    if not database.startswith("postgresql"):
        assert is_sound(database)
