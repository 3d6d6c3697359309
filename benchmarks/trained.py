"""The trainings of `training.py` as parts of the suite, on the CPU."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import training
from benchmarks.figure import Figure, aside, ratio
from benchmarks.straightforward import ImageData, PairData
from faircal import FTC


def pairs(quick: bool) -> PairData:
    data = training.rfw_like()
    if not quick:
        return data
    few = slice(0, 1000)
    return replace(
        data,
        left=data.left[few],
        right=data.right[few],
        genuine=data.genuine[few],
        group=data.group[few],
    )


def images(quick: bool) -> ImageData:
    data = training.bfw_like()
    if not quick:
        return data
    few = slice(0, 1000)
    return replace(
        data, vectors=data.vectors[few], identity=data.identity[few], group=data.group[few]
    )


def limit_figures(quick: bool) -> list[Figure]:
    """How near FTC's training comes to doing matrix products only."""
    data, raw = pairs(quick), training.Raw()
    training.share_of_limit(data, "cpu", raw)
    libraries = [key.removeprefix("limit_") for key in raw if key.startswith("limit_")]
    made = []
    for preset, recipe in FTC.presets.items():
        work = len(data) * training.products(recipe, data.vectors.shape[1])
        for library in libraries:
            share = work / raw[f"ftc_{preset}_epoch"] / raw[f"limit_{library}"]
            what = f"FTC ({preset}): products a second / {library}'s, median epoch"
            made.append(ratio(f"{preset} {library}", what, share))
    for library in libraries:
        rate = raw[f"limit_{library}"] / 1e9
        made.append(aside(library, f"    large products of {library}", rate, "GFLOP/s"))
    return made


def ftc_figures(quick: bool) -> list[Figure]:
    """FTC against the straightforward training."""
    raw = training.Raw()
    training.ftc_rows(pairs(quick), "cpu", raw)
    return _against("ftc", "FTC, the paper's schedule", raw)


def agenda_figures(quick: bool) -> list[Figure]:
    """AGENDA against the straightforward training."""
    raw = training.Raw()
    training.agenda_rows(images(quick), "cpu", raw)
    return _against("agenda", "AGENDA, the paper's schedule", raw)


def _against(key: str, what: str, raw: training.Raw) -> list[Figure]:
    ours, times = raw[f"{key}_ours"], raw[f"{key}_times"]
    workers = training.WORKERS
    return [
        ratio(
            "speed-up", f"{what}: DataLoader's time / ours", raw[f"{key}_plain_part"] * times / ours
        ),
        ratio(
            "speed-up, workers",
            f"    with {workers} workers",
            raw[f"{key}_plain_part_workers"] * times / ours,
        ),
        aside("loss", "    last loss, ours / straightforward", raw[f"{key}_loss_ratio"]),
        aside("seconds", f"    ours, a part's time × {times:g}", ours, "s"),
    ]
