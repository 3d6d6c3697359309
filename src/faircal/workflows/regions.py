"""Where in embedding space it is worst, into a folder with the figures."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faircal._base.errors import MissingExtraError, ParameterError
from faircal._base.files import check_output, file_digest, write_text
from faircal._base.jobs import Progress, silent, step
from faircal.data import Dataset, PairFiles
from faircal.data.pair_files import check_one_feature, fold_named
from faircal.evaluation.audit.regions import (
    RECORD,
    REGIONS,
    RESOLUTIONS,
    RegionRow,
    Regions,
    find_regions,
)
from faircal.methods import load_method
from faircal.metrics.results import without_nan, write_rows
from faircal.model import versions
from faircal.report.figures import Drawing
from faircal.report.figures.regions import region_figures, region_montages


@dataclass(frozen=True)
class RegionsFolder:
    """Regions, and the files they were written to.

    Attributes
    ----------
    regions : Regions
    run : dict
        Settings, versions, hash of the data, what is said.
    paths : tuple of Path
        What to look at.
    missing : str
        Why there are no figures, where there are none.
    """

    regions: Regions
    run: dict[str, Any]
    paths: tuple[Path, ...]
    missing: str = ""


def regions_folder(
    data: PairFiles | str | Path,
    out: str | Path,
    *,
    model: str | Path | None = None,
    rate: float = 0.01,
    threshold: float | None = None,
    false_discoveries: float = 0.05,
    clusters: Sequence[int] = RESOLUTIONS,
    feature: str | None = None,
    fold: str | None = None,
    pictures: str | Path | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> RegionsFolder:
    """Find the regions of embedding space where it is worst, and write them with their figures.

    Parameters
    ----------
    data : PairFiles or path
        Labelled pairs with embeddings.
    out : path
        Folder to write to; that of an audit shows them on its page.
    model : path, optional
        Model file to ask; the scores of the data unless given.
    rate, threshold, seed
        As for `faircal.evaluation.audit.find_regions`.
    false_discoveries : float
        Share of what is found that may be chance, on average.
    clusters : sequence of int
        Numbers of regions to make.
    feature, fold : str, optional
        Which embeddings, and which pairs.
    pictures : path, optional
        Where the pictures are, to show examples.
    progress : callable

    Examples
    --------
    >>> import faircal
    >>> result = faircal.regions_folder("faces/", "regions/", model="m.faircal")  # doctest: +SKIP
    >>> result.regions.words  # doctest: +SKIP
    """
    started, out, files = time.perf_counter(), Path(out), PairFiles.of(data)
    check_output(out, folder=True)
    _check(clusters, {"--rate": rate, "--false-discoveries": false_discoveries})
    fitted = None if model is None else load_method(Path(model))
    pairs, all_features = _pairs(files, feature, fold, fitted is None, progress)
    output = None
    if fitted is not None:
        with step(progress, "scoring"):
            output = fitted.apply(pairs)
    regions = find_regions(
        pairs,
        None if output is None else output.score,
        None if output is None else output.probability,
        rate=rate,
        threshold=threshold,
        q=false_discoveries,
        resolutions=clusters,
        seed=seed,
        progress=progress,
    )
    run: dict[str, Any] = {
        "kind": "regions",
        "dataset": pairs.name,
        "data": str(files.path),
        "data_sha256": pairs.hash(),
        "all_features_sha256": None if all_features is None else all_features.hash(),
        "model": None if model is None else str(model),
        "model_sha256": None if model is None else file_digest(Path(model)),
        "feature": pairs.feature,
        "fold": fold,
        "pairs": len(pairs),
        "rate": rate if threshold is None else None,
        "threshold": regions.threshold,
        "false_discoveries": false_discoveries,
        "clusters": list(clusters),
        "seed": seed,
        "regions": len(regions.rows),
        "tested": regions.tested,
        "words": regions.words,
        "notes": regions.notes,
        "versions": versions(),
        "wall_seconds": round(time.perf_counter() - started, 3),
    }
    out.mkdir(parents=True, exist_ok=True)
    write_rows(out / REGIONS, RegionRow, regions.rows)
    write_text(out / RECORD, json.dumps(without_nan(run), indent=2, default=str) + "\n")
    try:
        with step(progress, "drawing"):
            _draw(regions, out, None if pictures is None else Path(pictures))
    except MissingExtraError as error:
        return RegionsFolder(regions, run, (out / REGIONS,), str(error))
    return RegionsFolder(regions, run, (out / REGIONS, out / "figures"))


def _check(clusters: Sequence[int], shares: Mapping[str, float]) -> None:
    """Raise where an option is out of range; NaN passes the ranges of options."""
    if not clusters or min(clusters) < 2:
        given = ",".join(map(str, clusters)) or "none"
        raise ParameterError(f"--clusters: expected numbers of 2 or more, found {given}")
    for name, share in shares.items():
        if not 0 < share < 1:
            raise ParameterError(f"{name}: expected a share between 0 and 1, found {share:g}")


def _pairs(
    files: PairFiles, feature: str | None, fold: str | None, measuring: bool, progress: Progress
) -> tuple[Dataset, Dataset | None]:
    """Return the pairs with one feature; where it was chosen also with all, as audits may be."""
    data = files.load([feature] if feature else (), measuring=measuring, progress=progress)
    check_one_feature(data.features, files.path)
    parts = [data, files.load(measuring=measuring, progress=progress)] if feature else [data]
    if fold is not None:
        parts = [part.split(fold_named(part, fold))[1] for part in parts]
    return parts[0], parts[1] if feature else None


def _draw(regions: Regions, out: Path, pictures: Path | None) -> None:
    """Write a map of the regions, their rates, and example images where pictures are at hand."""
    figures = region_figures(regions.rows)
    figures += region_montages(regions.rows, pictures) if pictures is not None else []
    for figure in figures:
        Drawing(figure).save(out / "figures")
