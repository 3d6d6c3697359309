"""What PostgreSQL alone does: servers that go and come back, several processes, foreign schemas."""

from __future__ import annotations

import os
import signal
import threading
from time import monotonic, sleep

import numpy as np
import pytest
from psycopg_pool import PoolTimeout

from faircal._base.errors import StorageError, StorageFullError, StorageUnavailableError
from faircal.production.serving.store import open_store

KEY = bytes(range(32))

#: Seconds in which a server that is away must be told: 1.5 to 2, and many for a busy machine.
BOUND = 15.0


@pytest.fixture
def url(postgres):
    return postgres.empty()


@pytest.fixture
def store(url):
    opened = open_store(url)
    yield opened
    opened.close()


def back_again(store):
    """Wait until the store answers; fail after half a minute."""
    end = monotonic() + 30
    while True:
        try:
            return store.check()
        except StorageUnavailableError:
            if monotonic() > end:
                raise
            sleep(0.05)


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "sealed"])
def test_a_server_that_goes_away_is_told_and_found_again(postgres, url, key):
    store = open_store(url, key)
    store.enrol("anna", [1, 2])
    postgres.stop()
    try:
        for ask in (
            lambda: store.enrol("ben", [1, 2]),
            lambda: store.search([1, 2], 1),
        ):
            start = monotonic()
            with pytest.raises(StorageUnavailableError, match="does not answer"):
                ask()
            assert monotonic() - start < BOUND
        start = monotonic()
        with pytest.raises(StorageUnavailableError):
            open_store(url, key)
        assert monotonic() - start < BOUND
    finally:
        postgres.start()
    back_again(store)
    store.enrol("ben", [2, 1])
    assert [name for name, _ in store.search([1, 2], 5)] == ["anna", "ben"]
    store.close()


def test_while_it_is_away_only_one_caller_waits(store, monkeypatch):
    told, all_told = [], threading.Event()

    def no_connection():
        waiting.append(1)
        all_told.wait(60)
        raise PoolTimeout

    def ask():
        with pytest.raises(StorageUnavailableError, match="does not answer"):
            store.check()
        told.append(1)
        if len(told) == 19:
            all_told.set()

    waiting = []
    with monkeypatch.context() as patch:
        patch.setattr(store, "_away", True)
        patch.setattr(store._pool, "connection", no_connection)
        threads = [threading.Thread(target=ask) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(told) == 20
    assert len(waiting) == 1
    store.check()


def test_a_server_that_hangs_is_told(postgres, store):
    store.enrol("anna", [1, 2])
    pids = [
        pid
        for (pid,) in postgres.run(
            "postgres", "SELECT pid FROM pg_stat_activity WHERE application_name = 'faircal'"
        )
    ]
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        start = monotonic()
        with pytest.raises(StorageUnavailableError, match="does not answer"):
            store.enrol("ben", [1, 2])
        assert monotonic() - start < BOUND
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    back_again(store)
    assert store.count() == 1


def test_connections_that_were_cut_are_renewed_unnoticed(postgres, store):
    store.enrol("anna", [1, 2])
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'faircal'"
    )
    assert postgres.run("postgres", cut) != []
    assert store.count() == 1


def test_stores_opened_at_once_make_one_schema(url):
    stores, faults = [], []
    ready = threading.Barrier(5)

    def work(number):
        ready.wait()
        try:
            stores.append(open_store(url))
            stores[-1].enrol(f"t{number}", [number + 1, 1])
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert {one.count() for one in stores} == {5}
    for one in stores:
        one.close()


def test_no_room_on_the_server_is_told_and_leaves_nothing(postgres, store):
    store.enrol("anna", [1, 2])
    postgres.run(
        "postgres",
        "CREATE FUNCTION faircal.full() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$",
    )
    postgres.run(
        "postgres",
        "CREATE TRIGGER no_room AFTER INSERT ON faircal.templates "
        "FOR EACH ROW EXECUTE FUNCTION faircal.full()",
    )
    with pytest.raises(StorageFullError, match="no room left on the server; nothing was written"):
        store.enrol("ben", [1, 2])
    assert store.count() == 1
    postgres.run("postgres", "DROP TRIGGER no_room ON faircal.templates")
    store.enrol("ben", [1, 2])
    assert store.count() == 2


def test_a_schema_of_another_program_is_refused(postgres, url):
    postgres.run("postgres", "CREATE SCHEMA faircal")
    postgres.run("postgres", "CREATE TABLE faircal.photos (x int)")
    with pytest.raises(StorageError, match="schema faircal of another program"):
        open_store(url)


def test_a_store_of_a_newer_version_is_refused(postgres, store, url):
    postgres.run("postgres", "UPDATE faircal.meta SET value = '2' WHERE name = 'version'")
    with pytest.raises(StorageError, match="expected a store of version 1; found 2"):
        open_store(url)


def test_an_empty_schema_made_by_the_administrator_is_used(postgres, url):
    postgres.run("postgres", "CREATE SCHEMA faircal")
    store = open_store(url)
    store.enrol("anna", [1, 2])
    store.close()


def test_an_unknown_database_or_user_is_one_clear_line(postgres):
    for url in (postgres.url("nowhere"), postgres.url("postgres").replace("postgres:", "nobody:")):
        with pytest.raises(StorageError, match="PostgreSQL at ") as caught:
            open_store(url)
        assert "check server, database, user and password" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_commits_are_durable_even_where_the_server_says_otherwise(postgres, url):
    postgres.run("postgres", "ALTER ROLE postgres SET synchronous_commit = off")
    try:
        store = open_store(url)
        with store._reading() as run:
            assert run("SHOW synchronous_commit").fetchone() == ("on",)
        store.close()
    finally:
        postgres.run("postgres", "ALTER ROLE postgres RESET synchronous_commit")


def test_deleted_rows_are_vacuumed_also_when_many_go(postgres, store):
    for number in range(30):
        store.enrol(f"t{number}", np.arange(1, 513) + number)
    for number in range(30):
        store.delete(f"t{number}")
    store.close()
    dead = "SELECT pg_stat_force_next_flush(), pg_relation_size('faircal.templates')"
    assert postgres.run("postgres", dead)[0][1] == 0


def test_an_encrypted_store_shows_no_vector_to_the_server(postgres, url):
    store = open_store(url, KEY)
    vector = np.random.default_rng(0).normal(size=64).astype(np.float32)
    store.enrol("anna", vector)
    ((kept,),) = postgres.run("postgres", "SELECT embedding FROM faircal.templates")
    store.close()
    raw = vector.tobytes()
    assert len(kept) == len(raw) + 12 + 16
    assert not any(raw[start : start + 8] in kept for start in range(0, len(raw), 8))
