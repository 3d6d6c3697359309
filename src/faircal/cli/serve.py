"""``faircal serve``."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from faircal.cli.options import note

if TYPE_CHECKING:
    from faircal.about.operating import On
    from faircal.serving import Service, Settings

#: For ``--database``: keep nothing.
NONE = "none"


@click.command(epilog="Example: faircal serve faces.faircal --keys keys.json --port 8000")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port; 0 is any that is free.",
)
@click.option(
    "--database",
    default=None,
    metavar="PATH|URL|none",
    help="SQLite file or postgresql:// URL for templates and the audit trail; none: keep nothing  "
    "[default: MODEL with .db for its ending]",
)
@click.option(
    "--encryption-key-file",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="32 bytes (as they are, hex or Base64) that templates are encrypted with.",
)
@click.option(
    "--keys",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="API keys, made with 'faircal keys'; without, only this machine may use the service.",
)
@click.option(
    "--threshold",
    type=float,
    default=None,
    help="Decide at this threshold  [default: MODEL's operating point]",
)
@click.option(
    "--on",
    type=click.Choice(["score", "probability"]),
    default="score",
    show_default=True,
    help="What --threshold is on.",
)
@click.option(
    "--prior",
    type=float,
    default=None,
    help="Share of genuine pairs to give probabilities for  [default: that of the fit]",
)
@click.option(
    "--max-batch",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="Most pairs of a batch.",
)
@click.option(
    "--max-body",
    type=click.IntRange(1024),
    default=64 * 1024 * 1024,
    show_default=True,
    help="Most bytes of a request.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0),
    default=0.0,
    help="Most requests a second of one key, or address without keys  [default: 0, no limit]",
)
@click.option(
    "--burst",
    type=click.FloatRange(0),
    default=0.0,
    help="Requests at once after a pause  [default: twice --rate]",
)
@click.option(
    "--false-alarms",
    type=float,
    default=0.01,
    show_default=True,
    help="Chance that monitoring ever raises an alarm while nothing changes.",
)
@click.option(
    "--keep-decisions",
    type=float,
    default=None,
    metavar="DAYS",
    help="Delete lines of the audit trail that are older  [default: none are]",
)
@click.option(
    "--network",
    default=None,
    metavar="N",
    help="Take pictures, too, by the network that MODEL was made for; see 'faircal embed --list'.",
)
@click.option("--detector", default=None, help="mtcnn, dlib or none  [default: the network's]")
@click.option("--preset", default=None, help="What an .onnx network takes; see 'faircal embed'.")
@click.option(
    "--access-log/--no-access-log", default=True, show_default=True, help="Log a line a request."
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="What goes to standard error.",
)
@click.option("--page/--no-page", default=True, show_default=True, help="A page for people at /.")
def command(
    model: Path,
    host: str,
    port: int,
    database: str | None,
    encryption_key_file: Path | None,
    keys: Path | None,
    threshold: float | None,
    on: On,
    prior: float | None,
    max_batch: int,
    max_body: int,
    rate: float,
    burst: float,
    false_alarms: float,
    keep_decisions: float | None,
    network: str | None,
    detector: str | None,
    preset: str | None,
    access_log: bool,
    log_level: str,
    page: bool,
) -> None:
    """Serve MODEL over HTTP: verify, enrol, identify; see /openapi.json of the running service.

    The address is printed when requests are taken. MODEL is read again when it changes, on SIGHUP,
    and on POST /v1/model, without a request being dropped. SIGTERM ends the service when all
    requests under way are answered and the audit trail is written.
    """
    from faircal.files import existing
    from faircal.serving import Settings
    from faircal.serving.app import check_installed
    from faircal.serving.store import read_key

    check_installed()
    existing(model)
    settings = Settings(
        model=model,
        database=_database(model, database),
        encryption_key=None if encryption_key_file is None else read_key(encryption_key_file),
        keys=keys,
        host=host,
        port=port,
        threshold=threshold,
        on=on,
        prior=prior,
        max_pairs=max_batch,
        max_body=max_body,
        rate=rate,
        burst=burst,
        false_alarms=false_alarms,
        keep_days=keep_decisions,
        network=network,
        detector=detector,
        preset=preset,
        page=page,
        access_log=access_log,
    )
    _serve(settings, log_level)


def _database(model: Path, told: str | None) -> str | None:
    if told == NONE:
        return None
    return str(model.with_suffix(".db")) if told is None else told


def _serve(settings: Settings, log_level: str) -> None:
    from faircal.serving import Service
    from faircal.serving.logs import start_logging
    from faircal.serving.server import run

    start_logging(log_level)
    if hasattr(signal, "SIGHUP"):  # until it is listened for, it would end the process
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    service = Service(settings)
    note(_summary(settings, service))
    for text in _notes(settings, service):
        note(f"note: {text}")
    run(service, click.echo)


def _summary(settings: Settings, service: Service) -> str:
    """Say what is served, in one line; a database's URL may have a password in it, and is not."""
    from faircal.serving.keys import KeyRing

    loaded, point = service.loaded, service.judge.point
    promise = f"FPR {point.fpr:g} promised, {point.within}" if point.promised else "no promise"
    scheme, mark, _ = (settings.database or NONE).partition("://")
    kind = "PostgreSQL" if mark and scheme.startswith("postgres") else "SQLite"
    sealed = "not encrypted" if settings.encryption_key is None else "encrypted"
    database = NONE if settings.database is None else f"{kind} ({sealed})"
    keys = NONE if settings.keys is None else len(KeyRing.load(settings.keys).keys)
    return (
        f"model {loaded.digest[:16]} ({loaded.model.name}), same where {point.on} >= "
        f"{point.threshold:.6g} ({promise}), prior {loaded.prior:.6g}, database {database}, "
        f"keys {keys}"
    )


def _notes(settings: Settings, service: Service) -> list[str]:
    found = []
    if settings.keys is None:
        found.append("there are no keys: whoever can reach this machine's ports may do everything")
    if settings.database is None:
        found.append("there is no storage: no templates, no audit trail")
    elif settings.encryption_key is None:
        found.append("templates are not encrypted; give --encryption-key-file to have them so")
    if service.watch is None:
        found.append("the model file has no population: pairs are not monitored, nor placed")
    return found
