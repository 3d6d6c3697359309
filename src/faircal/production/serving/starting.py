"""Starting the service: the work of ``faircal serve``."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faircal._base.files import existing
from faircal.production.serving.app import check_installed
from faircal.production.serving.keys import KeyRing
from faircal.production.serving.service import Service
from faircal.production.serving.settings import ServiceSettings
from faircal.production.serving.store import read_key

#: For `database`: keep nothing.
NONE = "none"


def serve(
    model: str | Path,
    *,
    database: str | None = None,
    encryption_key_file: Path | None = None,
    log_level: str = "info",
    note: Callable[[str], None] = lambda _: None,
    ready: Callable[[str], None] = print,
    **settings: Any,
) -> None:
    """Serve a model over HTTP until the process is told to end.

    Parameters
    ----------
    model : path
        Model file.
    database : str, optional
        An SQLite file, a postgresql:// URL, or "none"; the model's path with .db unless given.
    encryption_key_file : path, optional
        File with the key that templates are encrypted with.
    log_level : str
    note : callable
        Called with what is served, and what its user should know.
    ready : callable
        Called with the address when requests are taken.
    **settings
        Further fields of `faircal.production.serving.ServiceSettings`.

    Examples
    --------
    >>> import faircal
    >>> faircal.serve("m.faircal", database="none", port=8000)  # doctest: +SKIP
    """
    check_installed()
    from faircal.production.serving.server import run, start_logging

    model = existing(model)
    chosen = ServiceSettings(
        model=model,
        database=_database(model, database),
        encryption_key=None if encryption_key_file is None else read_key(encryption_key_file),
        **settings,
    )
    start_logging(log_level)
    if hasattr(signal, "SIGHUP"):  # until it is listened for, it would end the process
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    service = Service(chosen)
    note(summary(chosen, service))
    for text in start_notes(chosen, service):
        note(f"note: {text}")
    run(service, ready)


def _database(model: Path, given: str | None) -> str | None:
    if given == NONE:
        return None
    return str(model.with_suffix(".db")) if given is None else given


def summary(settings: ServiceSettings, service: Service) -> str:
    """Say what is served, in one line; a database's URL may have a password in it, and is not."""
    in_use, point = service.in_use, service.in_use.judge.point
    promise = f"FPR {point.fpr:g} promised, {point.within}" if point.promised else "no promise"
    scheme, mark, _ = (settings.database or NONE).partition("://")
    kind = "PostgreSQL" if mark and scheme.startswith("postgres") else "SQLite"
    sealed = "not encrypted" if settings.encryption_key is None else "encrypted"
    database = NONE if settings.database is None else f"{kind} ({sealed})"
    keys = NONE if settings.keys is None else len(KeyRing.load(settings.keys).keys)
    return (
        f"model {in_use.digest[:16]} ({in_use.model.name}), same where {point.on} >= "
        f"{point.threshold:.6g} ({promise}), prior {in_use.prior:.6g}, database {database}, "
        f"keys {keys}"
    )


def start_notes(settings: ServiceSettings, service: Service) -> list[str]:
    """Say what is missing that a service should have."""
    notes = []
    if settings.keys is None:
        notes.append("there are no keys: whoever can reach this machine's ports may do everything")
    if settings.database is None:
        notes.append("there is no storage: no templates, no audit trail")
    elif settings.encryption_key is None:
        notes.append("templates are not encrypted; give --encryption-key-file to have them so")
    if service.monitor.watch is None:
        notes.append("the model file has no population: pairs are not monitored, nor placed")
    return notes
