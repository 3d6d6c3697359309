"""``faircal serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from faircal.cli.help import Command, Part, argument
from faircal.cli.printing import note


@click.command(
    cls=Command,
    examples={
        "On this machine, without keys": "faircal serve faces.faircal",
        "With keys, and templates encrypted": "faircal serve faces.faircal --keys keys.json "
        "--encryption-key-file templates.key",
        "Keep nothing: verification alone": "faircal serve faces.faircal --keys keys.json "
        "--database none",
        "One of several processes, with PostgreSQL": "faircal serve faces.faircal "
        "--keys keys.json --database postgresql://faircal@db/faces --port 8001 --no-page",
        "Take pictures, too": "faircal serve faces.faircal --keys keys.json --network dlib",
    },
    tables={
        "Files": {
            "MODEL": "Read, and read again when it changes.",
            "MODEL with .db": "SQLite database of templates and decisions, unless --database says "
            "otherwise.",
        },
        "Signals": {
            "SIGTERM": "Ends the service, when requests under way are answered and the audit trail "
            "is written.",
            "SIGHUP": "Reads MODEL again.",
        },
    },
    exits={0: "The service was ended."},
    see=("keys", "threshold", "monitor", "export", "how-to/service", "tutorials/production"),
)
@argument("model", type=click.Path(path_type=Path), help="Model file, as 'faircal fit' writes it.")
@Part.ADDRESS.option(
    "--host",
    default="127.0.0.1",
    help="Address to listen on; without --keys only one of this machine.",
)
@Part.ADDRESS.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    help="Port to listen on; 0 is any that is free.",
)
@Part.ADDRESS.option(
    "--keys",
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="none: only this machine, for everything",
    help="File of API keys, made with 'faircal keys'. A change of it counts at once.",
)
@Part.STORAGE.option(
    "--database",
    metavar="PATH|URL|none",
    show_default="MODEL with .db for its ending",
    help="Where templates and the audit trail are kept: an SQLite file, a postgresql:// URL "
    "(extra postgres), or none: keep nothing.",
)
@Part.STORAGE.option(
    "--encryption-key-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="not encrypted",
    help="File with 32 bytes (as they are, hex or Base64) that templates are encrypted with; the "
    "same at every start.",
)
@Part.STORAGE.option(
    "--keep-decisions",
    "keep_days",
    type=float,
    metavar="DAYS",
    show_default="for ever",
    help="Days after which lines of the audit trail are deleted.",
)
@Part.DECISION.option(
    "--threshold",
    type=float,
    show_default="MODEL's operating point, else a probability of 0.5",
    help="Decide at this threshold: the same person where the value is at or above it.",
)
@Part.DECISION.option(
    "--on",
    type=click.Choice(["score", "probability"]),
    default="score",
    help="What --threshold is on.",
)
@Part.DECISION.option(
    "--prior",
    type=float,
    metavar="SHARE",
    show_default="that of the fit",
    help="Share of genuine pairs to give probabilities for, between 0 and 1.",
)
@Part.LIMITS.option(
    "--max-body",
    type=click.IntRange(1024),
    default=64 * 1024 * 1024,
    metavar="BYTES",
    help="Most bytes of a request.",
)
@Part.LIMITS.option(
    "--rate",
    type=click.FloatRange(0),
    default=0.0,
    show_default="0, no limit",
    help="Most requests a second of one key, or of one address without keys; twice as many may "
    "come at once after a pause.",
)
@Part.MONITORING.option(
    "--false-alarms",
    type=float,
    default=0.01,
    metavar="SHARE",
    help="Chance that monitoring ever raises an alarm while nothing changes.",
)
@Part.PICTURES.option(
    "--network",
    show_default="embeddings alone are taken",
    help="Take pictures, too, by the network that MODEL was made for: dlib, facenet-vggface2, "
    "facenet-webface, arcface, an .onnx or a .toml file; as in 'faircal embed'.",
)
@Part.PICTURES.option(
    "--detector",
    show_default="the network's",
    help="What finds faces: mtcnn, dlib or none.",
)
@Part.PICTURES.option(
    "--preset",
    show_default="none",
    help="What an .onnx network takes: arcface, insightface, mobilefacenet, adaface or facenet.",
)
@Part.ADDRESS.option(
    "--page/--no-page",
    default=True,
    help="Whether there is a page for people at /.",
)
@Part.LOGS.option(
    "--access-log/--no-access-log",
    default=True,
    help="Whether each request is a line of the log.",
)
@Part.LOGS.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    help="What goes to standard error.",
)
def command(model: Path, **settings: Any) -> None:
    """Serve a model over HTTP: verify, enrol, identify.

    Reads MODEL and answers requests until it is ended: is this pair one person, who of those
    enrolled is it, with score, probability, decision, and whether an image lies outside of the
    population that the model knows. Embeddings come in; with --network pictures too. Each answer is
    a line of the audit trail, without anything biometric. The service watches its own pairs.

    The address is printed when requests are taken; /openapi.json describes every route, / is a page
    for people. MODEL is read again when it changes, on SIGHUP, and on POST /v1/model, without a
    request being dropped. The service speaks plain HTTP: put a proxy with TLS before it, and give
    it keys first.

    Needs the extra serve. Find a threshold first ('faircal threshold --out').
    """
    from faircal.production.serving.app import serve

    serve(model, **settings, note=note, ready=click.echo)
