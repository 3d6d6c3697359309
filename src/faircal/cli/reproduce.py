"""``faircal reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.options import (
    CommaList,
    check_folder,
    features_option,
    jobs_option,
    json_option,
    note,
    out_option,
    parse_methods,
    parse_settings,
    resume_option,
    seed_option,
    set_option,
)
from faircal.cli.running import benchmark_and_show, goes_on
from faircal.cli.source import Source, reads_data

if TYPE_CHECKING:
    from faircal.data import Dataset


@click.command(
    epilog="Example: faircal reproduce rfw faces/ --no-training --out rfw/, where faces/ is what "
    "'faircal simulate rfw-like faces/' wrote."
)
@click.argument("paper", metavar="{rfw|bfw|ijbc}", type=click.Choice(["rfw", "bfw", "ijbc"]))
@reads_data
@out_option
@click.option(
    "--methods",
    type=CommaList(),
    default=(),
    help="Methods  [default: the paper's]",
)
@click.option(
    "--no-training",
    is_flag=True,
    help="Leave out the methods that train networks: hours without a GPU.",
)
@click.option(
    "--clusters",
    type=CommaList(int),
    default=(),
    help="Numbers of clusters of FairCal and FSN  [default: the paper's twelve, 1 to 500]",
)
@click.option(
    "--calibrators",
    type=CommaList(),
    default=(),
    help="Calibrators of FairCal  [default: beta, histogram, isotonic]",
)
@click.option(
    "--n-init", type=click.IntRange(1), default=10, show_default=True, help="Starts of K-means."
)
@features_option
@click.option("--attribute", default=None, help="Attribute; a+b crosses  [default: the paper's]")
@click.option(
    "--as",
    "names",
    multiple=True,
    metavar="FEATURE=NETWORK",
    help="Which of the paper's networks made a feature: facenet-vggface2, facenet-webface or "
    "arcface  [default: by its name]",
)
@click.option(
    "--pictures",
    type=click.Path(path_type=Path),
    default=None,
    help="Folder of the pictures, for the faces of some clusters  [default: where they were "
    "imported from]",
)
@click.option("--no-pictures", is_flag=True, help="Show no faces.")
@set_option
@jobs_option
@resume_option
@seed_option
@json_option
def command(
    paper: str,
    source: Source,
    out: Path,
    no_training: bool,
    clusters: tuple[int, ...],
    features: tuple[str, ...],
    names: tuple[str, ...],
    parameters: tuple[str, ...],
    pictures: Path | None,
    no_pictures: bool,
    jobs: int | None,
    resume: bool,
    seed: int,
    as_json: bool,
    **more: Any,
) -> None:
    """Repeat the paper's whole experiment on DATA, with every table and figure.

    Features, methods, calibrators, numbers of clusters and folds are the paper's for RFW, BFW or
    IJB-C. Writes results.csv, run.json, tables/ (Markdown, CSV, LaTeX), figures/ (PDF, PNG, CSV),
    agreement.md and report.html: each number beside the published one, and which of the paper's
    claims hold here. On simulated data nothing is compared.

    An interrupted run goes on with --resume.
    """
    from faircal.benchmark import EXPERIMENTS, paper_settings
    from faircal.benchmark.experiments import CLUSTERS
    from faircal.report.paper import check_networks

    check_folder(out)
    loaded = source.load(features, seed=seed)
    published = {name: str(network) for name, network in parse_settings(names, "--as").items()}
    check_networks(published, loaded.features)
    settings, left_out = paper_settings(
        loaded,
        EXPERIMENTS[paper],
        training=not no_training,
        clusters=clusters or CLUSTERS,
        parameters=parse_methods(parameters),
        members=25,
        seed=seed,
        **more,
    )
    place = None if no_pictures else _pictures(loaded, pictures)
    record = {
        "kind": "reproduce",
        "paper": paper,
        "published": published,
        "pictures": None if place is None else str(place.resolve()),
        "left_out": left_out,
    }
    with goes_on("the experiment"):
        benchmark_and_show(
            loaded, out, settings, jobs=jobs, resume=resume, as_json=as_json, more=record
        )
    if place is not None:
        note("note: the report shows faces of some clusters; --no-pictures leaves them out")
    elif not no_pictures:
        note("note: the pictures are not at hand: no montages of clusters")


def _pictures(data: Dataset, given: Path | None) -> Path | None:
    """Return the folder of the pictures: the one given, or where they were imported from."""
    from faircal.data.readers import picture_home
    from faircal.errors import DataError
    from faircal.files import existing

    imported = data.provenance.get("imported")
    origin = imported.get("from") if isinstance(imported, dict) else None
    root = existing(given) if given is not None else Path(origin) if origin else None
    if root is None:
        return None
    paths = [str(name) for name in data.images.ids.to_pylist()]
    place = picture_home(root, paths, data.provenance)
    if place is None and given is not None:
        raise DataError(
            f"{given}: found no picture such as {paths[0]}; give the folder they lie in, "
            "or --no-pictures"
        )
    return place
