"""What the paper prints, in the words of ``results.csv``, and a run beside it.

``published.csv`` and ``properties.csv`` hold the facts of its tables, in percent as printed.
`Matched` says which of a run's features, methods and groups are the paper's.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import NamedTuple

from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import did_you_mean
from faircal.evaluation.benchmark import EXPERIMENTS
from faircal.metrics.results import ALL, GLOBAL, RUN, ResultKey
from faircal.report.cells import TableValue
from faircal.report.store import LabelledResults, ResultsFolder, Variant
from faircal.report.tables import ColumnSpec

#: Datasets and features by our names, as the paper calls them; methods in the order of its tables.
DATASETS = {name: experiment.title for name, experiment in EXPERIMENTS.items()}
FEATURES = {
    "facenet-vggface2": "FaceNet (VGGFace2)",
    "facenet-webface": "FaceNet (Webface)",
    "arcface": "ArcFace",
}
#: What is reproduced.
PAPER = (
    "T. Salvador, S. Cairns, V. Voleti, N. Marshall and A. Oberman: FairCal: Fairness Calibration "
    "for Face Verification. International Conference on Learning Representations, 2022."
)
METHODS = ("baseline", "agenda", "pass", "ftc", "gst", "fsn", "faircal", "oracle")
NAN = float("nan")


class Quantity(NamedTuple):
    """What a number is of; fields as in ``results.csv``, groups as the paper calls them."""

    dataset: str
    feature: str
    method: str
    group: str
    condition: str
    metric: str


class Printed(NamedTuple):
    """A number as printed, and its standard deviation over folds (NaN where it isn't printed)."""

    mean: float
    std: float = NAN


class Entry(NamedTuple):
    """A number in one of the paper's tables."""

    table: str
    quantity: Quantity
    printed: Printed


def look_up(quantity: Quantity) -> Printed:
    """Return what the paper prints for a quantity; NaN where it prints nothing.

    The mean is that of the main table, since the appendix cuts some of them short; the standard
    deviation, which only the appendix has, is that of the same quantity.

    Examples
    --------
    >>> look_up(Quantity("rfw", "facenet-vggface2", "faircal", "global", "", "auroc"))
    Printed(mean=0.9058, std=0.0029)
    >>> look_up(Quantity("bfw", "arcface", "fsn", "African Female", "", "ks"))
    Printed(mean=0.0174, std=nan)
    >>> look_up(Quantity("rfw", "dlib", "faircal", "global", "", "auroc"))
    Printed(mean=nan, std=nan)
    """
    return _joined().get(quantity, Printed(NAN))


@cache
def entries() -> tuple[Entry, ...]:
    """Return every number of the paper's tables, in their order."""
    datasets = {title: name for name, title in DATASETS.items()}
    features = {title: name for name, title in FEATURES.items()}
    return tuple(
        Entry(
            row["table_label"].removeprefix("table:"),
            Quantity(
                datasets[row["dataset"]],
                features[row["feature"]],
                row["method"].lower(),
                *_place(row["condition"], row["metric"].lower()),
            ),
            Printed(_fraction(row["mean"]), _fraction(row["std"])),
        )
        for row in _rows("published.csv")
    )


def properties() -> list[tuple[str, str, list[bool]]]:
    """Return the paper's table of properties: kind, method, and whether it has each of six.

    The kind is ``"retraining"`` or ``"post-training"``.
    """
    return [
        (kind, method, [says == "yes" for says in answers])
        for kind, method, *answers in (row.values() for row in _rows("properties.csv"))
    ]


@cache
def features(dataset: str) -> tuple[str, ...]:
    """Return the features that the paper has for a dataset, in its order."""
    names = dict.fromkeys(of.feature for _, of, _ in entries() if of.dataset == dataset)
    return tuple(names)


@cache
def groups(dataset: str) -> tuple[str, ...]:
    """Return the groups of which the paper prints numbers, by its names and in its order."""
    names = dict.fromkeys(of.group for _, of, _ in entries() if of.dataset == dataset)
    return tuple(group for group in names if group not in (GLOBAL, ALL))


@cache
def _joined() -> dict[Quantity, Printed]:
    """Join the main tables' means and the appendix's standard deviations."""
    joined: dict[Quantity, Printed] = {}
    for _, quantity, printed in sorted(entries(), key=lambda entry: entry.printed.std >= 0):
        mean = joined[quantity].mean if quantity in joined else printed.mean
        joined[quantity] = Printed(mean, printed.std)
    return joined


def _rows(name: str) -> Iterator[dict[str, str]]:
    path = files("faircal.report.paper").joinpath(name)
    return csv.DictReader(path.read_text(encoding="utf-8").splitlines())


def _place(condition: str, metric: str) -> tuple[str, str, str]:
    """Return group, condition and metric as in ``results.csv``."""
    kind, _, value = condition.partition("=")
    if kind == "subgroup":
        return (GLOBAL if value == "Global" else value), "", metric
    rate = f"{kind}={_fraction(value.removesuffix('%')):g}" if value else ""
    return (ALL if "_" in metric else GLOBAL), rate, metric


def _fraction(percent: str) -> float:
    """Return printed percent as the nearest fraction."""
    return float(f"{percent}e-2") if percent else NAN


#: Other names of the paper's features.
_ALIASES = {
    "facenet": "facenet-vggface2",
    "vggface2": "facenet-vggface2",
    "webface": "facenet-webface",
}
#: Words of group names, as the owners of BFW, crossed attributes and our simulation have them.
_ETHNICITIES = {
    **dict.fromkeys(("african", "black", "b"), "African"),
    **dict.fromkeys(("asian", "a"), "Asian"),
    **dict.fromkeys(("caucasian", "white", "w"), "Caucasian"),
    **dict.fromkeys(("indian", "i"), "Indian"),
}
_GENDERS = {
    **dict.fromkeys(("female", "females", "f"), "Female"),
    **dict.fromkeys(("male", "males", "m"), "Male"),
}
#: With two attributes the paper's "PASS" is MultiPASS; what we call PASS it then lacks.
_PAPERS_METHOD = {dataset: {"multipass": "pass", "pass": ""} for dataset in ("bfw", "ijbc")}


class Match(NamedTuple):
    """Something of the run (`name`), how it is shown, and what the paper calls it ("" if not)."""

    name: str
    title: str
    paper: str


@dataclass(frozen=True, eq=False)
class Matched:
    """A run beside the paper: its features, groups and methods in the paper's order.

    Parameters
    ----------
    dataset : {"rfw", "bfw", "ijbc"}
    title : str
        The dataset, as people call it.
    results : LabelledResults
    attribute : str
        The first one of the run: the one that the tables are about.
    features, groups : list of Match
        Those of simulated data match nothing.
    variants : list of Variant
        The main variant of each method.
    simulated : bool
    """

    dataset: str
    title: str
    results: LabelledResults
    attribute: str
    features: list[Match]
    groups: list[Match]
    variants: list[Variant]
    simulated: bool

    @classmethod
    def of(cls, store: ResultsFolder) -> Matched:
        """Match what is in a store with the paper's experiment on the dataset ``run["paper"]``."""
        dataset, results = str(store.run.get("paper", "")), store.results
        if dataset not in DATASETS:
            raise DataError(
                f"{store.folder / RUN}: 'paper' is {dataset!r}, expected {', '.join(DATASETS)}; "
                "run 'faircal reproduce' again"
            )
        attribute = results.attributes[0]
        names, group_names = results.features, results.groups[attribute]
        if store.simulated:
            title = results.dataset
            matched, matched_groups = (
                [Match(name, name, "") for name in several] for several in (names, group_names)
            )
        else:
            title = DATASETS[dataset]
            matched = _match_features(names, dataset, store.run.get("published") or {})
            matched_groups = _match_groups(group_names, dataset)
        # In the paper's order of methods; other methods are before FairCal.
        place = {method: float(i) for i, method in enumerate(METHODS)}
        variants = sorted(
            store.main_variants.values(),
            key=lambda of: place.get(papers_method(dataset, of.method), place["faircal"] - 0.5),
        )
        return cls(
            dataset, title, results, attribute, matched, matched_groups, variants, store.simulated
        )

    def quantity(self, feature: Match, method: str, column: ColumnSpec) -> Quantity | None:
        """Return what the paper would print a number under; None where it can't have one."""
        group = self._papers_groups.get(column.group, column.group)
        name = papers_method(self.dataset, method)
        comparable = feature.paper and group and name and (column.group != ALL or self.same_groups)
        if not comparable:
            return None
        return Quantity(self.dataset, feature.paper, name, group, column.condition, column.metric)

    def value(self, feature: Match, variant: Variant, column: ColumnSpec) -> TableValue:
        """Look a value up, with the published one."""
        place = (self.attribute, column.group, column.condition, column.metric)
        key = ResultKey(feature.name, *variant, *place)
        value = TableValue(self.results.get(key).value, self.results.spread(key))
        quantity = self.quantity(feature, variant.method, column)
        if quantity is None:
            return value
        printed = look_up(quantity)
        return replace(value, published=printed.mean, published_std=printed.std)

    @cached_property
    def _papers_groups(self) -> dict[str, str]:
        return {match.name: match.paper for match in self.groups}

    @cached_property
    def same_groups(self) -> bool:
        """Whether the groups are the paper's: else numbers over groups are of something else.

        The paper prints no group of IJB-C; there they are skin tone by gender.
        """
        published = groups(self.dataset)
        if not published:
            return self.attribute == "skin_tone+gender"
        return sorted(match.paper for match in self.groups) == sorted(published)

    def variant(self, method: str) -> Variant | None:
        """Return the main variant of a method of the paper; None where it was not run."""
        named = ((papers_method(self.dataset, v.method), v) for v in self.variants)
        return next((variant for name, variant in named if name == method), None)


def papers_method(dataset: str, method: str) -> str:
    """Return the method of the paper's experiment on a dataset that a method of ours is; or ""."""
    return _PAPERS_METHOD.get(dataset, {}).get(method, method)


def check_networks(networks: Mapping[str, str], features: Iterable[str]) -> None:
    """Raise where a mapping from our features to the paper's networks has an unknown name."""
    our_features = list(features)
    for name, network in networks.items():
        if name not in our_features:
            raise ParameterError(
                f"there is no feature {name!r}; {did_you_mean(name, our_features)}"
            )
        if network not in FEATURES:
            hint = did_you_mean(str(network), FEATURES)
            raise ParameterError(
                f"the paper has no network {network!r} (of feature {name!r}); {hint}"
            )


def group_name(group: str) -> str:
    """Return a group's name as the paper writes it; as it is where a word is none of the paper's.

    Examples
    --------
    >>> group_name("black_females"), group_name("Asian M"), group_name("I F"), group_name("African")
    ('African Female', 'Asian Male', 'Indian Female', 'African')
    """
    words = group.lower().replace("_", " ").split()
    ethnicity = [_ETHNICITIES[word] for word in words if word in _ETHNICITIES]
    gender = [_GENDERS[word] for word in words if word in _GENDERS]
    all_named = len(ethnicity) + len(gender) == len(words)
    return " ".join(ethnicity + gender) if all_named else group


def _match_features(names: list[str], dataset: str, networks: Mapping[str, str]) -> list[Match]:
    """Match features by the networks that were named, else by their own names."""
    papers = {name: networks.get(name, _ALIASES.get(name.lower(), name.lower())) for name in names}
    matches = _matches(papers, FEATURES, features(dataset))
    times = Counter(match.title for match in matches)
    return [
        match._replace(title=f"{match.title}: {match.name}") if times[match.title] > 1 else match
        for match in matches
    ]


def _match_groups(names: list[str], dataset: str) -> list[Match]:
    """Match groups by the words of their names; two of the same words match none."""
    times = Counter(map(group_name, names))
    papers = {name: group_name(name) if times[group_name(name)] == 1 else "" for name in names}
    return _matches(papers, {group: group for group in groups(dataset)}, groups(dataset))


def _matches(
    papers: Mapping[str, str], titles: Mapping[str, str], order: Sequence[str]
) -> list[Match]:
    """Return what each name is in the paper, in its order; what is none of it comes last."""
    matches = [
        Match(name, titles.get(paper, name), paper if paper in titles else "")
        for name, paper in papers.items()
    ]
    place = {paper: i for i, paper in enumerate(order)}
    return sorted(matches, key=lambda match: place.get(match.paper, len(place)))
