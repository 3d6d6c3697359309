"""``faircal export``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from faircal.cli import options
from faircal.cli.help import Command, Part, argument
from faircal.cli.printing import note, notes, print_json, printable, progress_bars

if TYPE_CHECKING:
    from faircal.production.onnx import ExportAgreement, Exported


@click.command(
    cls=Command,
    examples={
        "Write the graph, and try it out": "faircal export faces.faircal --onnx faces.onnx",
        "Probabilities where one pair in a hundred is genuine": "faircal export faces.faircal "
        "--prior 0.01 --onnx faces.onnx",
    },
    tables={
        "The graph": {
            "takes left, right": "Embeddings of both images of each pair: float32, (pairs, "
            "dimension), as the network gives them.",
            "gives": "probability, score, similarity, log_likelihood_ratio, clusters, whether an "
            "image is outside, and same: the decision. All are listed when it is written.",
        },
    },
    see=("fit", "threshold", "serve", "how-to/onnx"),
)
@argument("model", type=click.Path(path_type=Path), help="Model file, as 'faircal fit' writes it.")
@Part.OUTPUT.option(
    "--onnx",
    "target",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="File to write, such as faces.onnx; one that is there is replaced.",
)
@Part.PRIOR.option(
    "--prior",
    type=float,
    metavar="SHARE",
    show_default="that of the fit",
    help="Share of genuine pairs that probabilities are for, between 0 and 1; fixed in the graph.",
)
@options.as_json
def command(model: Path, target: Path, prior: float | None, as_json: bool) -> None:
    """Write a model as one ONNX graph.

    Reads MODEL and writes one file that does all it does: normalise, cosine, nearest clusters,
    probability, and the decision at the model's operating point, where it has one. It runs in
    onnxruntime without faircal, and holds no image and no embedding.

    Needs the extra onnx. Where onnxruntime is installed, graph and model are asked about the same
    made-up pairs before the file is written, and it is said how far they are apart. Methods that
    train a network cannot be exported. Find a threshold first ('faircal threshold --out'): it goes
    along.
    """
    from faircal._base.jobs import step
    from faircal.production.onnx import export_model

    with progress_bars() as progress, step(progress, "exporting"):
        written, agreement = export_model(model, target, prior=prior)
    notes(written.notes)
    if agreement is None:
        note("note: not tried out: onnxruntime is not installed (pip install 'faircal[onnx]')")
    if as_json:
        print_json(
            {**asdict(written), "agreement": None if agreement is None else asdict(agreement)}
        )
    else:
        _show(written, agreement)


def _show(written: Exported, agreement: ExportAgreement | None) -> None:
    click.echo(f"graph: {written.path} ({written.bytes / 1e6:.2f} MB)")
    for title, ports in (("takes", written.inputs), ("gives", written.outputs)):
        for name, meaning in ports.items():
            click.echo(f"{title} {name}: {meaning}")
            title = " " * len(title)
    if "groups" in written.metadata:
        click.echo(f"groups, from 0: {printable(written.metadata['groups'])}")
    if agreement is not None:
        click.echo(
            f"tried out on {agreement.pairs} made-up pairs: probabilities differ by at most "
            f"{agreement.largest:.1e}"
        )
