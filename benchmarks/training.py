"""Training of FTC and AGENDA: against the limit of matrix products and the straightforward way.

python -m benchmarks training                               on the CPU, within `make bench`
python -m benchmarks.training --device cuda --out FILE      on a machine with a GPU

The second writes what it measured to FILE as JSON.

Epochs that both sides are timed over are the same, and nothing stops early (`stop_at` is 1). The
straightforward way is too slow to be timed over a whole schedule: it is timed over a part whose
stages are in the same proportions, and its time multiplied. On the CPU so is ours.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import faircal
from benchmarks import straightforward
from benchmarks.machine import sgemm_rate
from benchmarks.straightforward import ImageData, PairData
from faircal import AGENDA, FTC
from faircal._base.jobs import Job, Progress, silent
from faircal.methods.debiasing import DebiasingRecipe
from faircal.methods.ftc import ComparisonRecipe
from faircal.methods.training import comparison, debiasing, session

#: AGENDA's 50, 10 × 25, 100 × 5 and 100 × 5 epochs, and a 50th part of each stage.
AGENDA_FULL = replace(AGENDA.presets["paper"], stop_at=1.0)
AGENDA_PARTS = 50
AGENDA_PART = replace(
    AGENDA_FULL, identity_epochs=1, episodes=2, restart_every=2, discriminator_epochs=5
)

#: Epochs of FTC that the straightforward way is timed over.
FTC_EPOCHS = {"cpu": 1, "cuda": 5}

#: Of the DataLoader, where it has any.
WORKERS = min(4, os.cpu_count() or 1)

#: What was measured, for a file.
Raw = dict[str, float]

Row = tuple[str, str]


# ------------------------------------------------------------------ data


def rfw_like() -> PairData:
    """Return the calibration pairs of one fold of rfw-like."""
    cal, _ = faircal.simulate("rfw-like", seed=0).split(1)
    used, groups = cal.used_images(), cal.groups()
    left, right = (np.searchsorted(used, side) for side in (cal.pairs.left, cal.pairs.right))
    vectors = cal.embeddings.rows(used)
    return PairData(vectors, left, right, cal.genuine, groups.pair, len(groups.names))


def bfw_like() -> ImageData:
    """Return the 20,000 images of bfw-like, with the eight groups of ethnicity and gender."""
    data = faircal.simulate("bfw-like", seed=0, pairs=20_000)
    parts = [data.images.attributes[name].codes for name in ("ethnicity", "gender")]
    vectors = data.embeddings.rows(np.arange(len(data.images)))
    return ImageData(vectors, data.images.identity.codes, 2 * parts[0] + parts[1])


# ------------------------------------------------------------------ measuring


def product_rate(device: str) -> float:
    """Floating-point operations per second of a large float32 `torch.mm`, the best of some."""
    side = 8192 if device == "cuda" else 2048
    a, b = torch.randn(2, side, side, device=device)
    out = torch.empty_like(a)
    best = float("inf")
    for _ in range(6):
        wait(device)
        start = time.perf_counter()
        torch.mm(a, b, out=out)
        wait(device)
        best = min(best, time.perf_counter() - start)
    return 2 * side**3 / best


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def timed(device: str, work: Callable[[], float]) -> tuple[float, float]:
    """Return the seconds that `work` took, and what it returned."""
    wait(device)
    start = time.perf_counter()
    found = work()
    wait(device)
    return time.perf_counter() - start, found


def train_ftc(
    data: PairData, recipe: ComparisonRecipe, device: str, progress: Progress = silent
) -> float:
    """Train FTC our way; return the mean loss of the last epoch."""
    _, losses = comparison.train(
        data.vectors,
        data.left,
        data.right,
        data.genuine,
        data.group,
        data.n_groups,
        recipe=recipe,
        seed=0,
        device=device,
        mixed_precision=False,
        job=Job(progress),
    )
    return losses["loss"]


def train_agenda(data: ImageData, recipe: DebiasingRecipe, device: str) -> float:
    """Train AGENDA our way; return the mean loss of the last epoch of stage 3."""
    _, figures = debiasing.train(
        data.vectors,
        data.identity,
        {"group": data.group},
        recipe=recipe,
        seed=0,
        device=device,
        mixed_precision=False,
        job=Job(),
    )
    return figures["stage_3_loss"]


def unrecorded() -> AbstractContextManager[object]:
    """Take every step on a GPU as it comes: none is recorded as a CUDA graph."""
    return patch.object(session, "_WARM_UP", 2**62)


def products(recipe: ComparisonRecipe, dimension: int) -> float:
    """Floating-point operations of the matrix products that one pair costs in training.

    2 × inputs × outputs of each layer going forward; as many for the gradient of its weights, and
    for that of its inputs, which the first layer does without.
    """
    layers = list(pairwise(recipe.sizes(dimension)))
    return sum(2.0 * a * b * (2 if i == 0 else 3) for i, (a, b) in enumerate(layers))


def epochs_of_ftc(data: PairData, recipe: ComparisonRecipe, device: str) -> list[float]:
    """Return the seconds of each epoch but the first."""
    ends: dict[int, float] = {}

    def progress(_what: str, done: int, _total: int, _label: str) -> None:
        ends.setdefault(done, time.perf_counter())

    train_ftc(data, recipe, device, progress)
    return [b - a for a, b in pairwise(ends.values())]


# ------------------------------------------------------------------ figures


def share_of_limit(data: PairData, device: str, raw: Raw) -> list[Row]:
    """How near FTC's training comes to doing matrix products only; limit and training in turn.

    The limit is the best that was seen of a library, before, between and after the trainings.
    """
    seconds: dict[str, list[float]] = {name: [] for name in FTC.presets}
    libraries = {"torch.mm": lambda: product_rate(device)}
    if device == "cpu":
        libraries["NumPy"] = sgemm_rate
    limits = {name: rate() for name, rate in libraries.items()}
    rounds, epochs = (3, 3) if device == "cpu" else (1, 10)
    for _ in range(rounds):
        for name, recipe in FTC.presets.items():
            seconds[name] += epochs_of_ftc(data, replace(recipe, epochs=epochs + 1), device)
            limits |= {name: max(limits[name], rate()) for name, rate in libraries.items()}
    raw |= {f"limit_{name}": rate for name, rate in limits.items()}
    where = "GPU, no TF32" if device == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    rows = []
    for name, recipe in FTC.presets.items():
        rate = len(data) * products(recipe, data.vectors.shape[1])
        median, best = statistics.median(seconds[name]), min(seconds[name])
        raw |= {f"ftc_{name}_epoch": median, f"ftc_{name}_epoch_best": best}
        for library, limit in limits.items():
            what = f"FTC ({name}), {where}: products per second / {library}'s, median (best) epoch"
            rows.append((what, f"{rate / median / limit:.2f} ({rate / best / limit:.2f})"))
    figure = ", ".join(f"{rate / 1e9:,.0f}" for rate in limits.values())
    return [*rows, (f"    large products of {', '.join(limits)}: GFLOP/s", figure)]


def against_straightforward(
    what: str,
    device: str,
    raw: Raw,
    ours: Callable[[Any], float],
    plain: Callable[[Any, int], float],
    part: Any,
    full: Any,
    times: int,
    steps: int,
) -> list[Row]:
    """Compare a training of ours with the straightforward one.

    Parameters
    ----------
    ours, plain : callable
        Train by a recipe (`plain` also with a number of workers) and return a loss.
    part, full : recipe
        The epochs that are timed, and those of the whole schedule, `times` as many.
    steps : int
        Of the whole schedule.
    """
    key = what.split(",")[0].lower()
    if device == "cuda":
        ours(part), plain(part, 0)  # libraries set themselves up
    part_took, our_loss = timed(device, lambda: ours(part))
    plain_took, plain_loss = timed(device, lambda: plain(part, 0))
    workers_took, _ = timed(device, lambda: plain(part, WORKERS))
    took = timed(device, lambda: ours(full))[0] if device == "cuda" else part_took * times
    raw |= {
        f"{key}_ours": took,
        f"{key}_ours_part": part_took,
        f"{key}_plain_part": plain_took,
        f"{key}_plain_part_workers": workers_took,
        f"{key}_times": times,
        f"{key}_steps": steps,
        f"{key}_loss_ratio": our_loss / plain_loss,
    }
    how = f"its time × {times}" if device == "cuda" else f"both times × {times}"
    rows = [
        (f"{what}: DataLoader's time / ours ({how})", f"{plain_took * times / took:.1f}"),
        (f"    with {WORKERS} workers", f"{workers_took * times / took:.1f}"),
        ("    last loss, ours / straightforward", f"{our_loss / plain_loss:.3f}"),
    ]
    if device == "cuda":
        with unrecorded():
            slow, _ = timed(device, lambda: ours(part))
        raw[f"{key}_unrecorded_part"] = slow
        rows += [
            (f"    unrecorded steps (time × {times}) / ours", f"{slow * times / took:.1f}"),
            ("    steps per second, recorded, all included", f"{steps / took:,.0f}"),
        ]
    return rows


def ftc_rows(data: PairData, device: str, raw: Raw) -> list[Row]:
    full = FTC.presets["paper"]
    part = replace(full, epochs=FTC_EPOCHS[device])
    return against_straightforward(
        f"FTC, {full.epochs} epochs of {len(data):,} pairs",
        device,
        raw,
        lambda recipe: train_ftc(data, recipe, device),
        lambda recipe, workers: straightforward.train_ftc(data, recipe, device, workers),
        part,
        full,
        full.epochs // part.epochs,
        full.epochs * -(-len(data) // full.batch_size),
    )


def agenda_rows(data: ImageData, device: str, raw: Raw) -> list[Row]:
    rows = len(data) - round(AGENDA_FULL.validation * len(data))
    return against_straightforward(
        f"AGENDA, 1,300 epochs, {len(data):,} images",
        device,
        raw,
        lambda recipe: train_agenda(data, recipe, device),
        lambda recipe, workers: straightforward.train_agenda(data, recipe, device, workers),
        AGENDA_PART,
        AGENDA_FULL,
        AGENDA_PARTS,
        1300 * -(-rows // AGENDA_FULL.batch_size),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", type=Path, help="file that what was measured is written to, JSON")
    options = parser.parse_args()
    device, raw, rows = options.device, Raw(), list[Row]()
    pairs, images = rfw_like(), bfw_like()
    name = torch.cuda.get_device_name() if device == "cuda" else platform.processor() or "CPU"
    for bench, data in ((share_of_limit, pairs), (ftc_rows, pairs), (agenda_rows, images)):
        start = time.perf_counter()
        rows += bench(data, device, raw)
        raw[f"seconds_{bench.__name__}"] = time.perf_counter() - start
        print(f"{bench.__name__}: {raw}", flush=True)
        if options.out is not None:
            found = {"machine": name, "torch": torch.__version__, "rows": rows, "raw": raw}
            options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"\n{name}, PyTorch {torch.__version__}")
    for what, figure in rows:
        print(f"{what:<88}{figure:>12}")


if __name__ == "__main__":
    main()
