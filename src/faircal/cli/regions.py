"""``faircal regions``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.help import Command, Part, option
from faircal.cli.options import (
    CommaList,
    check_folder,
    feature_option,
    fold_option,
    json_option,
    note,
    out_option,
    print_json,
    printable,
    progress_bars,
    seed_option,
    working,
)
from faircal.cli.source import Source, check_one_feature, fold_named, reads_data

if TYPE_CHECKING:
    from faircal.data import Dataset
    from faircal.evaluation.audit.regions import Regions


@click.command(
    cls=Command,
    examples={
        "Of a model": "faircal regions faces/ --model faces.faircal --out regions/",
        "At the threshold in use, with pictures as examples": "faircal regions faces/ "
        "--model faces.faircal --threshold 0.9 --pictures photos/ --out regions/",
        "Of the plain cosine, stricter, into the folder of an audit": "faircal regions faces/ "
        "--false-discoveries 0.01 --out audit/",
    },
    tables={
        "Files": {
            "DIR/regions.csv": "Each region: people, pairs, rates with intervals, whether it was "
            "found, example images.",
            "DIR/regions.json": "Settings, versions, hash of the data, what is said.",
            "DIR/figures/": "A map of the regions, their FPR, their calibration. Figures need the "
            "extra figures.",
        },
    },
    see=("audit", "report", "threshold", "how-to/regions"),
)
@reads_data
@option(
    "--model",
    part=Part.MEASURE,
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="the scores of DATA",
    help="Model file to ask; people must not be those it was fitted on.",
)
@out_option
@option(
    "--rate",
    part=Part.MEASURE,
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.01,
    help="False-positive rate of all pairs at which to look, as a share.",
)
@option(
    "--threshold",
    part=Part.MEASURE,
    type=float,
    show_default="where --rate is met",
    help="Threshold at which to look, on the scores, instead of a rate.",
)
@option(
    "--false-discoveries",
    "q",
    part=Part.MEASURE,
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    help="Share of what is found that may be chance, on average.",
)
@option(
    "--clusters",
    part=Part.MEASURE,
    type=CommaList(int),
    default="3,10,30,100",
    help="Numbers of regions to make, with commas, as far as there are people.",
)
@feature_option
@fold_option
@option(
    "--pictures",
    part=Part.OUTPUT,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    show_default="ids alone",
    help="Where the pictures are, to show examples: FOLDER/<image id>.",
)
@seed_option
@json_option
def command(
    source: Source,
    model: Path | None,
    out: Path,
    rate: float,
    threshold: float | None,
    q: float,
    clusters: tuple[int, ...],
    feature: str | None,
    fold: str | None,
    pictures: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    """Find where in embedding space it is worst, without attributes.

    Reads labelled pairs with embeddings. Images of one half of the people are clustered; the
    regions that look worst there are tested on the other half, for more false matches and for other
    calibration than the rest, and the other way round. What is found is kept to a share of false
    discoveries. Where DATA has attributes, it is said what the regions are made of; they are not
    used.

    Prints the regions that were found, and writes all of them with their figures. Look at the
    example images next: what do they have in common? In the folder of an audit of the same data,
    'faircal report' shows the regions too.
    """
    from faircal._base.files import file_digest
    from faircal.evaluation.audit.regions import find_regions
    from faircal.methods import load_method
    from faircal.metrics.results import versions

    started = time.perf_counter()
    check_folder(out)
    _check(clusters, {"--rate": rate, "--false-discoveries": q})
    fitted = None if model is None else load_method(model)
    data, whole = _pairs(source, feature, fold, measuring=fitted is None)
    said = None
    if fitted is not None:
        with working("scoring"):
            said = fitted.apply(data)
    with progress_bars() as update:
        found = find_regions(
            data,
            None if said is None else said.score,
            None if said is None else said.probability,
            rate=rate,
            threshold=threshold,
            q=q,
            resolutions=clusters,
            seed=seed,
            progress=update,
        )
    run: dict[str, Any] = {
        "kind": "regions",
        "dataset": data.name,
        "data": str(source.path),
        "data_sha256": data.hash(),
        "all_features_sha256": None if whole is None else whole.hash(),
        "model": None if model is None else str(model),
        "model_sha256": None if model is None else file_digest(model),
        "feature": data.feature,
        "fold": fold,
        "pairs": len(data),
        "rate": rate if threshold is None else None,
        "threshold": found.threshold,
        "false_discoveries": q,
        "clusters": list(clusters),
        "seed": seed,
        "regions": len(found.rows),
        "tested": found.tested,
        "words": found.words,
        "notes": found.notes,
        "versions": versions(),
        "wall_seconds": round(time.perf_counter() - started, 3),
    }
    paths = _write(out, found, run, pictures)
    for text in found.notes:
        note(f"note: {text}")
    if as_json:
        print_json({**run, "rows": [row._asdict() for row in found.rows]})
    else:
        for line in found.words:
            click.echo(printable(line))
        for path in paths:
            click.echo(str(path))


def _check(clusters: tuple[int, ...], shares: dict[str, float]) -> None:
    """Raise where an option is out of range; NaN passes the ranges of options."""
    from faircal._base.errors import ParameterError

    if not clusters or min(clusters) < 2:
        found = ",".join(map(str, clusters)) or "none"
        raise ParameterError(f"--clusters: expected numbers of 2 or more, found {found}")
    for name, share in shares.items():
        if not 0 < share < 1:
            raise ParameterError(f"{name}: expected a share between 0 and 1, found {share:g}")


def _pairs(
    source: Source, feature: str | None, fold: str | None, *, measuring: bool
) -> tuple[Dataset, Dataset | None]:
    """Return the pairs with one feature; where it was chosen also with all, as audits may be."""
    data = source.load([feature] if feature else (), measuring=measuring)
    check_one_feature(data.features, source.path)
    parts = [data, source.load(measuring=measuring)] if feature else [data]
    if fold is not None:
        parts = [part.split(fold_named(part, fold))[1] for part in parts]
    return parts[0], parts[1] if feature else None


def _write(out: Path, found: Regions, run: dict[str, Any], pictures: Path | None) -> list[Path]:
    """Write table, record and figures; return what to look at."""
    import json

    from faircal._base.errors import MissingExtraError
    from faircal._base.files import write_text
    from faircal.evaluation.audit.regions import RECORD, REGIONS, RegionRow
    from faircal.metrics.results import without_nan, write_rows
    from faircal.report.figures import Drawing
    from faircal.report.figures.regions import region_figures, region_montages

    out.mkdir(parents=True, exist_ok=True)
    write_rows(out / REGIONS, RegionRow, found.rows)
    write_text(out / RECORD, json.dumps(without_nan(run), indent=2, default=str) + "\n")
    figures = region_figures(found.rows)
    try:
        figures += region_montages(found.rows, pictures) if pictures is not None else []
        with working("drawing"):
            for figure in figures:
                Drawing(figure).save(out / "figures")
    except MissingExtraError as error:
        note(f"note: no figures: {error}")
        return [out / REGIONS]
    return [out / REGIONS, out / "figures"]
