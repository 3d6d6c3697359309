"""The paper's experiment again, into a folder with every table and figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from faircal._base.errors import DataError
from faircal._base.files import check_output, existing
from faircal._base.jobs import Progress, silent
from faircal.data import Dataset, PairFiles
from faircal.data.dataset_folder import picture_home
from faircal.evaluation.benchmark import EXPERIMENTS, paper_settings, run_benchmark
from faircal.evaluation.benchmark.experiments import CLUSTERS
from faircal.evaluation.benchmark.run import ignore_note
from faircal.report.paper import check_networks
from faircal.report.writing import WrittenReport, make_report
from faircal.workflows.benchmark import written_stays


def reproduce(
    paper: str,
    data: PairFiles | str | Path,
    out: str | Path,
    *,
    training: bool = True,
    clusters: Sequence[int] = (),
    features: Sequence[str] = (),
    networks: Mapping[str, str] | None = None,
    pictures: str | Path | Literal[False] | None = None,
    jobs: int | None = None,
    resume: bool = False,
    seed: int = 0,
    progress: Progress = silent,
    note: Callable[[str], None] = ignore_note,
    **more: Any,
) -> WrittenReport:
    """Repeat the paper's experiment on RFW, BFW or IJB-C.

    Parameters
    ----------
    paper : {"rfw", "bfw", "ijbc"}
    data : PairFiles or path
    out : path
        Folder to write to.
    training : bool
        Whether to run the methods that train networks.
    clusters : sequence of int
        Numbers of clusters; the paper's unless given.
    features : sequence of str
    networks : mapping, optional
        Which of the paper's networks made a feature, where its name does not say.
    pictures : path or False, optional
        Folder of the pictures, to show faces of some clusters; where they were imported from
        unless given. False shows none.
    jobs, resume, seed, progress, note
        As for `faircal.workflows.benchmark.benchmark`.
    **more
        Further arguments of `faircal.evaluation.benchmark.paper_settings`.

    Examples
    --------
    >>> import faircal
    >>> faircal.reproduce("rfw", "rfw/", "paper-rfw/", training=False)  # doctest: +SKIP
    """
    check_output(Path(out), folder=True)
    loaded = PairFiles.of(data).load(features, seed=seed, progress=progress)
    published = dict(networks or {})
    check_networks(published, loaded.features)
    settings, left_out = paper_settings(
        loaded,
        EXPERIMENTS[paper],
        training=training,
        clusters=tuple(clusters) or CLUSTERS,
        members=25,
        seed=seed,
        **more,
    )
    place = None if pictures is False else _pictures(loaded, pictures or None)
    record = {
        "kind": "reproduce",
        "paper": paper,
        "published": published,
        "pictures": None if place is None else str(place.resolve()),
        "left_out": left_out,
    }
    with written_stays("the experiment"):
        run_benchmark(
            loaded,
            out,
            settings,
            jobs=jobs,
            resume=resume,
            progress=progress,
            note=note,
            more=record,
        )
        return make_report(out, progress=progress)


def _pictures(data: Dataset, given: str | Path | None) -> Path | None:
    """Return the folder of the pictures: the one given, or where they were imported from."""
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
            "or --pictures none"
        )
    return place
