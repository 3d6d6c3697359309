"""Which of a run's features, methods and groups are the paper's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import did_you_mean
from faircal.metrics.results import ALL, RUN, ResultKey
from faircal.report.cells import TableValue
from faircal.report.paper.published import (
    DATASETS,
    FEATURES,
    METHODS,
    Quantity,
    features,
    groups,
    look_up,
)
from faircal.report.store import LabelledResults, ResultsFolder, Variant
from faircal.report.tables import ColumnSpec

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
        names, group_names = results.features, results.groups(attribute)
        if store.simulated:
            title, matched, matched_groups = results.dataset, _same(names), _same(group_names)
        else:
            title = DATASETS[dataset]
            matched = _match_features(names, dataset, store.run.get("published") or {})
            matched_groups = _match_groups(group_names, dataset)
        variants = _in_order(store.main_variants.values(), dataset)
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
        value = self.results.value(ResultKey(feature.name, *variant, *place))
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


def _in_order(variants: Iterable[Variant], dataset: str) -> list[Variant]:
    """Sort variants in the paper's order of methods; other methods are before FairCal."""
    place = {method: float(i) for i, method in enumerate(METHODS)}
    between = place["faircal"] - 0.5
    return sorted(
        variants, key=lambda variant: place.get(papers_method(dataset, variant.method), between)
    )


def check_networks(networks: Mapping[str, str], features: Iterable[str]) -> None:
    """Raise where a mapping from our features to the paper's networks has an unknown name."""
    known = list(features)
    for name, network in networks.items():
        if name not in known:
            raise ParameterError(f"there is no feature {name!r}; {did_you_mean(name, known)}")
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
    known = len(ethnicity) + len(gender) == len(words)
    return " ".join(ethnicity + gender) if known else group


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


def _same(names: list[str]) -> list[Match]:
    return [Match(name, name, "") for name in names]
