"""Train the base classifiers of every set and split, and leave what they say as ``.npz`` files.

python -m studies classes prepare --data FOLDER [--faces lfw-mobilefacenet] [SET …]
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from studies.classes.made import MADE
from studies.classes.table import TRAIN, Float32, Int64, Prepared, Table, save, split
from studies.classes.tables import TABLES, Maker, faces

#: Splits of a set; each is dealt with its own seed, 0, 1, …
SPLITS = 10
#: From inputs, labels of the rows to train on, those rows and a seed to probabilities, features.
Base = Callable[[Float32, Int64, Int64, int], tuple[Float32, Float32]]


def main(arguments: Sequence[str]) -> int:
    """Prepare what is asked for; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m studies classes prepare", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("sets", nargs="*", metavar="set", help="[all]")
    parser.add_argument("--data", type=Path, required=True, help="where the files go")
    parser.add_argument("--faces", type=Path, help="the folder lfw-mobilefacenet")
    options = parser.parse_args(arguments)
    makers: dict[str, Maker] = {**TABLES, **MADE}
    if options.faces is not None:
        makers = {"faces": partial(faces, options.faces), **makers}
    unknown = [name for name in options.sets if name not in makers]
    if unknown:
        parser.error(f"unknown set {unknown[0]!r}; expected one of {', '.join(makers)}")
    with threadpool_limits(1):
        for name in options.sets or makers:
            table = makers[name]()
            for base in bases_of(table):
                started = time.perf_counter()
                path = save(prepare(table, base), options.data)
                seconds = time.perf_counter() - started
                rows, dims = table.inputs.shape
                said = f"{rows} rows, {dims} inputs, {len(table.classes)} classes, "
                said += f"{len(table.group_names)} groups, {path.stat().st_size / 1e6:.1f} MB"
                sys.stderr.write(f"{path.name}: {said}, {seconds:.0f} s\n")
    return 0


def bases_of(table: Table) -> tuple[str, ...]:
    """Return the base classifiers of a set."""
    if table.given is not None:
        return ("given",)
    return ("logistic", "network" if table.name == "digits" else "boosting")


def prepare(table: Table, base: str, splits: int = SPLITS) -> Prepared:
    """Train a base classifier in every split; return what it says of rows it has not seen."""
    parts = np.array([split(table.units, seed) for seed in range(splits)])
    said = np.full((splits, *table.codes.shape, len(table.classes)), np.nan, np.float32)
    features: list[Float32] = []
    for seed in range(splits):
        if table.given is not None:
            probabilities, seen = table.given.astype(np.float32), table.inputs
        else:
            rows = np.flatnonzero(parts[seed] == TRAIN)
            probabilities, seen = BASES[base](table.inputs, table.codes[rows], rows, seed)
        said[seed] = probabilities
        said[seed, parts[seed] == TRAIN] = np.nan
        features.append(seen)
    own = base == "network"  # its features differ from split to split
    return Prepared(table, base, parts, said, np.array(features) if own else _shared(table))


def _shared(table: Table) -> Float32:
    """Return the inputs as features: columns of the same spread, unit vectors as they are."""
    if table.given is not None or table.name == "faces":
        return table.inputs
    return _scaled(table.inputs, np.arange(len(table.inputs)))


def _scaled(inputs: Float32, rows: Int64) -> Float32:
    spread = inputs[rows].std(axis=0)
    spread[spread == 0] = 1
    scaled: Float32 = (inputs - inputs[rows].mean(axis=0)) / spread
    return scaled


def _logistic(inputs: Float32, codes: Int64, rows: Int64, seed: int) -> tuple[Float32, Float32]:
    from sklearn.linear_model import LogisticRegression

    del seed  # nothing in it is random
    scaled = _scaled(inputs, rows)
    model = LogisticRegression(max_iter=2000).fit(scaled[rows], codes)
    return _complete(model, scaled, codes), inputs


def _boosting(inputs: Float32, codes: Int64, rows: Int64, seed: int) -> tuple[Float32, Float32]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(early_stopping=False, random_state=seed)
    model.fit(inputs[rows], codes)
    return _complete(model, inputs, codes), inputs


def _network(inputs: Float32, codes: Int64, rows: Int64, seed: int) -> tuple[Float32, Float32]:
    """Train a network of two hidden layers; the second, 32 wide, gives the features."""
    from sklearn.neural_network import MLPClassifier

    scaled = _scaled(inputs, rows)
    model = MLPClassifier((64, 32), random_state=seed, max_iter=150, n_iter_no_change=150)
    with warnings.catch_warnings():
        # It is trained for a fixed time, as networks are; that it could go on is no fault.
        warnings.simplefilter("ignore")
        model.fit(scaled[rows], codes)
    layer = scaled
    for weights, intercept in zip(model.coefs_[:-1], model.intercepts_[:-1], strict=True):
        layer = np.maximum(layer @ weights + intercept, 0)
    return _complete(model, scaled, codes), layer.astype(np.float32)


def _complete(model: Any, inputs: Float32, codes: Int64) -> Float32:
    if len(model.classes_) != codes.max() + 1:
        raise SystemExit("a class is missing among the rows to train on: take more rows")
    return np.asarray(model.predict_proba(inputs), np.float32)


BASES: dict[str, Base] = {"logistic": _logistic, "boosting": _boosting, "network": _network}
