"""What a benchmark runs: its settings, and the plan of cells that they make of the data."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

from faircal._base.errors import DataError, ParameterError
from faircal._version import __version__
from faircal.calibrators import CALIBRATORS, make_calibrator
from faircal.data import Dataset
from faircal.data.summary import WrongPairs
from faircal.evaluation.benchmark.populations import Moving, label_counts, shared_features, unserved
from faircal.evaluation.benchmark.protocol import (
    CalibrationImposters,
    PreparedFolds,
    Protocol,
)
from faircal.methods import METHODS, make_method
from faircal.metrics import METRICS
from faircal.metrics.measures import RATES

ThresholdOn = Literal["test", "calibration"]


class Sweep(NamedTuple):
    """Calibrators and numbers of clusters: a method is run with each pair of them."""

    calibrators: tuple[str, ...]
    clusters: tuple[int, ...]


@dataclass(frozen=True)
class BenchmarkSettings:
    """The settings of a benchmark; an empty list means the default.

    Parameters
    ----------
    methods : tuple of str
        Every installed method that the data can serve by default.
    calibrators : tuple of str
    clusters : tuple of int
        Each is run; more than one is a sweep.
    features : tuple of str
        All of the data's by default.
    attributes : tuple of str
        ``a+b`` crosses; all columns crossed by default.
    threshold_on : {"test", "calibration"}
        Where operating thresholds come from: the test fold, as in the paper, or the calibration
        folds, as in use.
    retune : bool
        Fit methods that are made for one false-positive rate anew for each reported rate.
    parameters : mapping from method to its parameters
    n_init : int
        Starts of K-means.
    seed : int
    rates : tuple of float
        Global error rates at which groups are compared.
    sweeps : mapping from method to Sweep
        Calibrators and numbers of clusters of single methods, in place of those of all.
    also_by : tuple of str
        Attributes by which scores are counted for figures besides, without fitting anew.
    members : int
        Images listed of each cluster, nearest to its centre first, for montages.
    calibration_imposters : {"given", "random", "matched"}
        Imposter pairs of the calibration folds: as they are, or drawn anew by
        `faircal.data.pairing.redraw_imposters`. Test pairs stay.
    draw_cohort : int, optional
        At most so many people of each group are taken out of the calibration people of each fold,
        as a cohort (`faircal.data.pairing.draw_cohort`). A method that needs groups and has no
        calibration pairs of one any more is left out.
    cohort_attribute : str, optional
        What makes the groups of that cohort; the first of `attributes` by default.
    """

    methods: tuple[str, ...] = ()
    calibrators: tuple[str, ...] = ("beta",)
    clusters: tuple[int, ...] = (100,)
    features: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    threshold_on: ThresholdOn = "test"
    retune: bool = False
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    n_init: int = 1
    seed: int = 0
    rates: tuple[float, ...] = RATES
    sweeps: Mapping[str, Sweep] = field(default_factory=dict)
    also_by: tuple[str, ...] = ()
    members: int = 0
    calibration_imposters: CalibrationImposters = "given"
    draw_cohort: int | None = None
    cohort_attribute: str | None = None

    @property
    def protocol(self) -> Protocol:
        """What calibration pairs are made of those of the other folds."""
        attribute = self.cohort_attribute or next(iter(self.attributes), None)
        return Protocol(self.calibration_imposters, self.draw_cohort, attribute, self.seed)

    @property
    def main_calibrator(self) -> str:
        """The calibrator that figures show: the default where it is among them, else the first."""
        default = BenchmarkSettings.calibrators[0]
        return default if default in self.calibrators else self.calibrators[0]

    @property
    def main_clusters(self) -> int:
        """The number of clusters that figures show: the one nearest to the default."""
        return min(self.clusters, key=lambda k: abs(k - BenchmarkSettings.clusters[0]))


class Cell(NamedTuple):
    """One fit: a method on one feature with one fold left out.

    `main` says whether figures show it: then its scores are counted and kept.
    """

    feature: str
    fold: Any
    method: str
    calibrator: str
    clusters: int | None
    parameters: tuple[tuple[str, Any], ...]
    main: bool

    @property
    def label(self) -> str:
        """The cell in words, for progress."""
        clusters = "" if self.clusters is None else f", K = {self.clusters}"
        return f"{self.method}{clusters}, {self.feature}, fold {self.fold}"

    @property
    def key(self) -> str:
        """A file name for the cell, the same in every run."""
        text = json.dumps(self[:-1], default=str)
        return f"{self.method}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class Plan:
    """The cells of a benchmark in the order of its results, and what was left out and why.

    Where methods move to another population, `source_hash` is of the data they are fitted on, and
    `labels` says how many pairs of the other are labelled. `notes` say how calibration pairs were
    changed, and `drawn` has them by feature and fold, as far as they were needed to plan.
    """

    settings: BenchmarkSettings
    cells: tuple[Cell, ...]
    attributes: tuple[str | None, ...]
    left_out: Mapping[str, str]
    data_hash: str
    source_hash: str = ""
    labels: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    drawn: Mapping[tuple[str, Any], Dataset] = field(default_factory=dict)

    def split(self, data: Dataset, fold: Any) -> tuple[Dataset, Dataset]:
        """Return calibration pairs, as the settings want them, and test pairs of a fold."""
        calibration, test = data.split(fold)
        drawn = self.drawn.get((data.feature, fold))
        return self.settings.protocol(calibration) if drawn is None else drawn, test

    @property
    def fingerprint(self) -> str:
        """A hash of all that changes a cell's numbers besides the cell itself."""
        shared = {
            # All that changes a cell's numbers; methods and sweeps are in the cells themselves.
            "version": __version__,
            "data": self.data_hash,
            "attributes": self.attributes,
            "threshold_on": self.settings.threshold_on,
            "retune": self.settings.retune,
            "n_init": self.settings.n_init,
            "seed": self.settings.seed,
            "rates": self.settings.rates,
            "also_by": self.settings.also_by,
            "members": self.settings.members,
            "protocol": self.settings.protocol,
            "moving": (self.source_hash, self.labels),
            "plugins": plugin_hashes(),
        }
        return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()


def make_plan(data: Dataset, settings: BenchmarkSettings, moving: Moving | None = None) -> Plan:
    """Check `settings` against `data` and list the cells; what is wrong is raised here, at once.

    With `moving`, methods are fitted on its data in place of the other folds.
    """
    _check(settings)
    source = None if moving is None else moving.source
    folds = data.fold_names
    if len(folds) < 2:
        raise DataError(
            f"{data.where}: expected two or more folds, found {len(folds)}; "
            "give more, or drop the column 'fold' to have five drawn"
        )
    names = settings.features or tuple(data.features)
    if source is not None:
        names = tuple(shared_features(source, data, settings.features))
    features = tuple(data.select(name).feature for name in names)
    attributes = settings.attributes or (
        (data.default_attribute,) if data.default_attribute else ()
    )
    for attribute in (*attributes, *settings.also_by):
        data.groups(attribute)
    prepared = _prepared(data.select(features[0]), settings, attributes, source)
    methods, left_out = _methods(data, settings, features, attributes, source, prepared)
    cells: list[Cell] = []
    for feature, method in product(features, methods):
        taken = METHODS[method]._get_param_names()
        usual = Sweep(settings.calibrators, settings.clusters)
        calibrators, counts = settings.sweeps.get(method, usual)
        parameters = tuple(sorted(settings.parameters.get(method, {}).items()))
        cells += (
            Cell(
                feature,
                fold,
                method,
                calibrator,
                k,
                parameters,
                main=calibrator in ("", settings.main_calibrator)
                and k in (None, settings.main_clusters),
            )
            for calibrator in (calibrators if "calibrator" in taken else ("",))
            for k in (counts if "n_clusters" in taken else (None,))
            for fold in folds
        )
    for cell in cells:
        build_method(cell, settings).check_parameters()
    clusters = max((cell.clusters or 0 for cell in cells), default=0)
    for fold, part in zip(folds, prepared.parts, strict=True):
        where = f"{data.where}: without fold {fold}"
        _check_calibration(part, where, clusters if source is None else 0)
    plan = Plan(
        settings,
        tuple(cells),
        attributes or (None,),
        left_out,
        data.hash(),
        notes=prepared.notes,
        drawn={(features[0], fold): part for fold, part in zip(folds, prepared.parts, strict=True)}
        if settings.protocol.changes_pairs
        else {},
    )
    if moving is None or source is None:
        return plan
    _check_calibration(source, f"{source.where}: in all", clusters)
    labels = label_counts(min(map(len, prepared.parts)), moving.labels)
    return replace(plan, source_hash=source.hash(), labels=labels)


def _prepared(
    data: Dataset,
    settings: BenchmarkSettings,
    attributes: Sequence[str],
    source: Dataset | None,
) -> PreparedFolds:
    """Return the calibration pairs of each fold."""
    given, protocol = [data.split(fold)[0] for fold in data.fold_names], settings.protocol
    if settings.draw_cohort is not None and data.cohort is not None:
        raise ParameterError(
            f"{data.where}: has a cohort, and draw_cohort wants another; give one of --cohort and "
            "--draw-cohort"
        )
    if source is not None and protocol.changes_pairs:
        raise ParameterError(
            "calibration_imposters and draw_cohort are for calibration folds, and methods are "
            f"fitted on {source.where} here; leave them out"
        )
    return protocol.prepare(given, attributes)


def _methods(
    data: Dataset,
    settings: BenchmarkSettings,
    features: Sequence[str],
    attributes: Sequence[str],
    source: Dataset | None,
    prepared: PreparedFolds,
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the methods that run and, for those left out, the reason."""
    wanted, by = settings.methods or tuple(METHODS), attributes or (None,)
    methods, left_out = servable(data, wanted, features, by, source, prepared.parts)
    for name in settings.methods:
        if name in left_out:
            raise DataError(
                f"{data.where}: method {name} cannot run: {left_out[name]}; leave it out"
            )
    _check_parameters(settings, methods)
    if not prepared.lost_groups:
        return methods, left_out
    reason = (
        "it needs calibration pairs of each group, and the cohort leaves not both classes of "
        f"{', '.join(prepared.lost_groups)}"
    )
    left_out |= {name: reason for name in methods if METHODS[name].needs.groups_to_fit}
    methods = tuple(name for name in methods if name not in left_out)
    if not methods:
        raise DataError(f"{data.where}: no method can run: {reason}; draw a smaller cohort")
    return methods, left_out


def servable(
    data: Dataset,
    methods: Sequence[str],
    features: Sequence[str],
    attributes: Sequence[str | None],
    source: Dataset | None = None,
    parts: Sequence[Dataset] = (),
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return those of `methods` that `data` can serve and, for the others, the reason.

    They are fitted on `source` where there is one, else on `parts`: by default, all folds but one.
    """
    left_out: dict[str, str] = {}
    fitted = [source] if source is not None else parts
    fitted = fitted or [data.split(fold)[0] for fold in data.fold_names]
    for calibration, feature, attribute, name in product(fitted, features, attributes, methods):
        selected, method = calibration.select(feature), METHODS[name]
        missing = None
        if source is not None:
            missing = unserved(method, selected, data.select(feature), attribute)
        missing = missing or method.unusable_reason(selected, attribute)
        if missing is not None:
            left_out.setdefault(name, missing)
    return tuple(name for name in methods if name not in left_out), {
        name: left_out[name] for name in methods if name in left_out
    }


def _check(settings: BenchmarkSettings) -> None:
    for name in (*settings.methods, *settings.sweeps):
        METHODS[name].needs.check_installed(name)
    for calibrators, clusters in (
        (settings.calibrators, settings.clusters),
        *settings.sweeps.values(),
    ):
        for name in calibrators:
            make_calibrator(name)
        for k in clusters:
            if k < 1:
                raise ParameterError(f"clusters: expected 1 or more, found {k}")
    for rate in settings.rates:
        if not 0 < rate < 1:
            raise ParameterError(f"rates: expected rates between 0 and 1, found {rate:g}")
    for what in ("methods", "calibrators", "clusters", "features", "attributes", "rates"):
        values = getattr(settings, what)
        twice = [value for i, value in enumerate(values) if value in values[:i]]
        if twice:
            raise ParameterError(f"{what}: {twice[0]} is given twice; name it once")


#: Parameters that have a setting of their own, and how it is called.
_OWN_SETTING = {
    "n_clusters": "clusters",
    "calibrator": "calibrators",
    "random_state": "seed",
    "n_init": "n_init",
    "attribute": "attribute",
}


def _check_parameters(settings: BenchmarkSettings, methods: Sequence[str]) -> None:
    """Raise where a parameter would be set twice, or for a method that does not run."""
    for method, parameters in settings.parameters.items():
        METHODS[method]
        if method not in methods:
            raise ParameterError(
                f"parameters of {method} are set, but it is not run; leave them out"
            )
        for name in parameters:
            if name in _OWN_SETTING:
                option = f"--{_OWN_SETTING[name].replace('_', '-')}"
                raise ParameterError(
                    f"{method}.{name} is set by {option} for all methods; use that"
                )
            if name == "target_fpr" and settings.retune:
                raise ParameterError(
                    f"{method}.target_fpr is what --retune sets; leave out one of them"
                )


def _check_calibration(calibration: Dataset, where: str, clusters: int) -> None:
    """Raise where calibration pairs are of one class or can't be right, or images are too few."""
    if calibration.genuine.all() or not calibration.genuine.any():
        raise DataError(
            f"{where}, expected genuine and imposter pairs, found one class only; a benchmark "
            "measures both: mix both classes in every fold"
        )
    WrongPairs.of(calibration).check(where)
    images = len(calibration.used_images())
    if clusters > images:
        raise ParameterError(
            f"{where} there are {images} images for {clusters} clusters; choose fewer (--clusters)"
        )


def build_method(cell: Cell, settings: BenchmarkSettings, **more: Any) -> Any:
    """Return the unfitted method of a cell; `more` are parameters that it takes, if it does."""
    offered = {
        "calibrator": cell.calibrator,
        "n_clusters": cell.clusters,
        "n_init": settings.n_init,
        "random_state": settings.seed,
        **more,
    }
    takes = METHODS[cell.method]._get_param_names()
    taken = {key: value for key, value in offered.items() if key in takes}
    return make_method(cell.method, **{**taken, **dict(cell.parameters)})


def plugin_hashes() -> dict[str, str]:
    """Return the SHA-256 of each plugin's file by its name: when one changes, so may every number.

    What has no file (a notebook's) can't be hashed, and is left out.
    """
    registered = [*METHODS.values(), *CALIBRATORS.values(), *(m.function for m in METRICS.values())]
    modules = {getattr(thing, "__module__", "") for thing in registered}
    plugins = sorted(name for name in modules if name and name.partition(".")[0] != "faircal")
    files = (getattr(sys.modules.get(name), "__file__", None) for name in plugins)
    paths = (Path(file) for file in files if file is not None)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
