"""The paper's experiments as settings of a benchmark, one for each of its datasets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from faircal._base.errors import DataError
from faircal._base.registry import Registry
from faircal.data import Dataset
from faircal.evaluation.benchmark.settings import BenchmarkSettings, Sweep, servable
from faircal.methods import METHODS

#: The numbers of clusters of the paper's robustness figures.
CLUSTERS = (1, 5, 10, 15, 20, 25, 50, 75, 100, 150, 250, 500)


@dataclass(frozen=True)
class Experiment:
    """What the paper did with one dataset.

    Parameters
    ----------
    title : str
        The dataset as the paper calls it.
    attributes : tuple of str
        What makes the groups: the first of these that the data has.
    also_by : tuple of str
        What makes those of the figures of false-positive rates, likewise.
    methods : tuple of str
        In the order of its tables. Where it knows two attributes, its "PASS" is MultiPASS.
    n_bins : int
        Bins of histogram calibration.
    parameters : mapping from attribute to parameters by method
        What methods are given where these are the groups, for the paper's settings.
    """

    title: str
    attributes: tuple[str, ...]
    also_by: tuple[str, ...]
    methods: tuple[str, ...]
    n_bins: int
    parameters: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def calibrators(self) -> tuple[str, ...]:
        """The calibrators that FairCal is tried with."""
        return "beta", f"histogram:n_bins={self.n_bins}", "isotonic"


def _methods(debiasing: str) -> tuple[str, ...]:
    return "baseline", "agenda", debiasing, "ftc", "gst", "fsn", "faircal", "oracle"


EXPERIMENTS: Registry[Experiment] = Registry("experiment")
EXPERIMENTS.register("rfw", Experiment("RFW", ("ethnicity",), (), _methods("pass"), 10))
EXPERIMENTS.register(
    "bfw",
    Experiment(
        "BFW",
        ("e+g", "ethnicity+gender", "att"),
        ("e", "ethnicity"),
        _methods("multipass"),
        25,
        # Three discriminators for gender, as MultiPASS has by itself for a column of that name.
        {"e+g": {"multipass": {"n_discriminators": {"g": 3}}}},
    ),
)
EXPERIMENTS.register(
    "ijbc", Experiment("IJB-C", ("skin_tone+gender",), (), _methods("multipass"), 25)
)


def paper_settings(
    data: Dataset,
    experiment: Experiment,
    *,
    training: bool = True,
    methods: tuple[str, ...] = (),
    attribute: str | None = None,
    clusters: tuple[int, ...] = CLUSTERS,
    calibrators: tuple[str, ...] = (),
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    **more: Any,
) -> tuple[BenchmarkSettings, dict[str, str]]:
    """Return the settings of an experiment on `data`, and the methods left out with the reason.

    FairCal runs with each calibrator and number of clusters, FSN with each number of clusters,
    all others once; what is not given is as in the paper.

    Parameters
    ----------
    data : Dataset
    experiment : Experiment
    training : bool
        Whether to run the methods that train networks.
    methods : tuple of str
        In place of the paper's; one that can't run is then an error.
    attribute : str, optional
        In place of the paper's.
    clusters, calibrators : tuple
        In place of the paper's.
    parameters : mapping from method to its parameters, optional
        Besides the paper's.
    **more
        Further fields of `BenchmarkSettings`.
    """
    by = attribute or _present(data, experiment.attributes) or data.default_attribute
    if by is None:
        raise DataError(f"{data.where}: the experiment compares groups, and {data.why_no_groups()}")
    also = _present(data, experiment.also_by)
    left_out: dict[str, str] = {}
    names = methods or experiment.methods
    if not methods:
        offered = [name for name in names if training or not METHODS[name].needs.training]
        names, left_out = servable(data, offered, tuple(data.features), (by,))
        left_out |= {
            name: "it trains a network" for name in experiment.methods if name not in offered
        }
    tried = calibrators or experiment.calibrators
    swept = BenchmarkSettings(calibrators=tried, clusters=clusters)
    calibrator, main = swept.main_calibrator, swept.main_clusters
    settings = BenchmarkSettings(
        methods=names,
        calibrators=(calibrator,),
        clusters=(main,),
        attributes=(by,),
        also_by=() if also in (None, by) else (str(also),),
        parameters=_joined(experiment.parameters.get(by, {}), parameters or {}, names),
        sweeps={
            "faircal": Sweep(tried, clusters),
            "fsn": Sweep((calibrator,), clusters),
        },
        **more,
    )
    return settings, left_out


def _joined(
    papers: Mapping[str, Mapping[str, Any]],
    given: Mapping[str, Mapping[str, Any]],
    methods: tuple[str, ...],
) -> dict[str, dict[str, Any]]:
    """Return the parameters of methods: the paper's of those that run, with those given on top."""
    parameters = {name: dict(of) for name, of in papers.items() if name in methods}
    return parameters | {name: {**parameters.get(name, {}), **of} for name, of in given.items()}


def _present(data: Dataset, attributes: tuple[str, ...]) -> str | None:
    """Return the first of `attributes` whose columns the data has."""
    columns = set(data.images.attributes)
    return next((name for name in attributes if columns.issuperset(name.split("+"))), None)
