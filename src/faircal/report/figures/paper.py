"""The figures of the paper, in its order and form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from faircal._base.errors import ParameterError
from faircal.evaluation.benchmark import EXPERIMENTS
from faircal.evaluation.curves import Curves, Of, ScoreSource
from faircal.metrics.results import GLOBAL
from faircal.report.figures.base import FigureRecord, FigureScope, panels, slug, tell_apart
from faircal.report.figures.curves import FprCurves
from faircal.report.figures.distributions import Violins
from faircal.report.figures.regions import Montage
from faircal.report.figures.robustness import (
    NO_GROUP,
    DrawnCluster,
    Robustness,
    by_calibrator,
    by_method,
    read_clusters,
)
from faircal.report.store import ResultsFolder, Variant
from faircal.report.wording import method_title, rounded

PictureOf = Callable[[str], Path | None]

_FIRST = ("baseline", "agenda", "ftc", "fsn", "faircal")
_SECOND: tuple[tuple[str, Of, str], ...] = (
    ("baseline", "score", "Baseline"),
    ("baseline", "probability", "Baseline + calibration"),
    ("oracle", "probability", "Oracle"),
    ("faircal", "probability", "FairCal"),
)
_COMPARED = ("baseline", "fsn", "faircal", "oracle")
_CLUSTERED = "faircal"
_DEVIATIONS = ("mean", "aad", "mad", "std")
_ACCURACY = (
    ("auroc", "", "auroc"),
    ("tpr", "fpr=0.001", "1e-3fpr"),
    ("tpr", "fpr=0.01", "1e-2fpr"),
)


def paper_figures(
    store: ResultsFolder, dataset: str, picture_of: PictureOf | None = None
) -> list[FigureRecord]:
    """Return the paper's figures of one dataset, as far as they were run.

    Parameters
    ----------
    store : ResultsFolder
        What ``faircal reproduce`` wrote.
    dataset : {"rfw", "bfw", "ijbc"}
    picture_of : callable, optional
        From an image's id to its file, or None where there is none. Without it there are no
        montages.

    Examples
    --------
    >>> import faircal
    >>> from faircal.report.store import LabelledResults
    >>> audit = faircal.audit(score=[0.9, 0.2, 0.7, 0.1], genuine=[1, 0, 1, 0], groups=list("AABB"))
    >>> store = ResultsFolder(Path(), LabelledResults(audit.rows), {}, audit.curves, [], [])
    >>> paper_figures(store, "rfw")  # none of the paper's methods was run
    []
    """
    if dataset not in EXPERIMENTS:
        raise ParameterError(f"dataset must be one of {', '.join(EXPERIMENTS)}; found {dataset!r}")
    title = store.results.dataset if store.simulated else EXPERIMENTS[dataset].title
    return tell_apart(_Paper(_named(store), title, picture_of).figures())


def _named(store: ResultsFolder) -> ResultsFolder:
    """Return the store with groups called as in the paper, where two don't become one."""
    if store.simulated or "paper" not in store.run:
        return store
    from faircal.report.paper.published import group_name

    groups = {curve.group for curve in store.curves.rows if curve.group != GLOBAL}
    names = {group: group_name(group) for group in groups}
    if len(set(names.values())) < len(names):
        return store
    curves = [
        curve._replace(group=names.get(curve.group, curve.group)) for curve in store.curves.rows
    ]
    return replace(store, curves=Curves(curves))


class _Paper:
    """The figures of one dataset."""

    def __init__(self, store: ResultsFolder, dataset: str, picture_of: PictureOf | None) -> None:
        self.store, self.dataset, self.picture_of = store, dataset, picture_of
        self.attribute = store.results.attributes[0]  # of the tables
        self.last = store.curves.folds[-1] if store.curves.folds else None
        #: The features in the paper's order, with its names where they are its own.
        self.features = {name: name for name in store.results.features}
        if "paper" in store.run:
            from faircal.report.paper.published import Matched

            self.features = {feature.name: feature.title for feature in Matched.of(store).features}

    def figures(self) -> Iterator[FigureRecord]:
        """Give all figures, also ones that show nothing."""
        curves = self.store.curves
        attributes = {source.attribute for source in curves.sources}
        also_by = self.store.run.get("settings", {}).get("also_by") or ()
        # The first figures are by ethnicity where that is there: the paper shows BFW by it, too.
        shown_by = next(
            (name for name in (*also_by, "ethnicity") if name in attributes), self.attribute
        )
        sources = {
            feature: {
                source.method: source
                for source in FigureScope(self.store, feature, shown_by).sources
                if curves.groups(source)
            }
            for feature in self.features
        }
        for feature in self.features:
            yield from self._rates(feature, sources[feature])
        for feature in self.features:
            yield from self._distributions(feature, sources[feature])
        for feature in self.features:
            yield from self._montages(feature)
        yield from self._robustness()

    def _titled(self, title: str, feature: str) -> str:
        name = self.features.get(feature, feature)
        return f"{title} ({', '.join(filter(None, (self.dataset, name)))})"

    def _rates(self, feature: str, sources: dict[str, ScoreSource]) -> list[FigureRecord]:
        ran = [name for name in _FIRST if name in sources]
        curves, last = self.store.curves, self.last
        return panels(
            [FprCurves(curves, sources[name], last, height=0.18) for name in ran],
            [method_title(name) for name in ran],
            key=slug("fig-thr_vs_fpr", feature),
            title=self._titled("False-positive rate of each group", feature),
            columns=5,
            share_y=True,
        )

    def _distributions(self, feature: str, sources: dict[str, ScoreSource]) -> list[FigureRecord]:
        curves = self.store.curves
        ran = [
            (sources[name], of, title)
            for name, of, title in _SECOND
            if name in sources and curves.has(of, sources[name])
        ]
        return panels(
            [Violins(curves, source, self.last, of=of) for source, of, _ in ran],
            [title for *_, title in ran],
            key=slug("fig-distributions_fpr_thresholds", feature),
            title=self._titled("Scores of each group", feature),
            columns=4,
            share_y=True,
        )

    def _montages(self, feature: str) -> list[FigureRecord]:
        store, picture_of = self.store, self.picture_of
        members = [m for m in store.members if (m.feature, m.method) == (feature, _CLUSTERED)]
        if picture_of is None or not members:
            return []
        fold = members[-1].fold
        clusters = read_clusters(store.clusters, _CLUSTERED, feature, self.attribute, fold)
        figures, names = [], []
        for cluster in telling_clusters(clusters, 4):
            in_cluster = [m for m in members if (m.fold, m.cluster) == (fold, cluster.name)]
            figures.append(
                Montage([picture_of(member.image_id) for member in in_cluster], in_cluster)
            )
            whose = f": {rounded(cluster.share)} {cluster.majority}"
            names.append(f"Cluster {cluster.name}{whose * (cluster.majority != NO_GROUP)}")
        return panels(
            figures,
            names,
            key=slug("fig-clusters", feature),
            title=self._titled("Faces of four clusters", feature),
            columns=2,
        )

    def _robustness(self) -> Iterator[FigureRecord]:
        results = self.store.results
        calibrators = [
            name
            for kind in ("beta", "histogram", "isotonic")
            for name in dict.fromkeys(variant.calibrator for variant in results.variants)
            if name.startswith(kind)
        ]
        maps = by_calibrator(results, _CLUSTERED, calibrators)
        methods = by_method(results, _COMPARED)
        swept = {v.clusters for line in methods.values() for v in line if v.clusters}
        if len(swept) < 2:
            return
        for over in _DEVIATIONS:
            yield from self._sweep(f"ks_{over}", "", f"ks_{over}", maps)
        for metric, under, name in _ACCURACY:
            yield from self._sweep(metric, under, name, methods, share_y=False)
        for over in _DEVIATIONS:
            yield from self._sweep(f"ks_{over}", "", f"ks_{over}_vs_other_methods", methods)

    def _sweep(
        self,
        metric: str,
        under: str,
        name: str,
        lines: dict[str, list[Variant]],
        share_y: bool = True,
    ) -> list[FigureRecord]:
        figures = [
            Robustness(self.store.results, feature, self.attribute, metric, lines, under)
            for feature in self.features
        ]
        return panels(
            figures,
            [title or self.dataset for title in self.features.values()],
            key=slug(f"fig-robustness_{name}"),
            title=self._titled(figures[0].title, ""),
            columns=4,
            share_y=share_y,
        )


def telling_clusters(clusters: list[DrawnCluster], n: int) -> list[DrawnCluster]:
    """Choose clusters to look at: of the larger half, the purest, of different groups first."""
    by_size = sorted((c for c in clusters if c.images), key=lambda c: c.images, reverse=True)
    larger = by_size[: max(n, (len(by_size) + 1) // 2)]
    purest = sorted(larger, key=lambda cluster: (-cluster.share, -cluster.images))
    first = {c.majority: c for c in reversed(purest)}.values()
    rest = [cluster for cluster in purest if cluster not in first]
    return [*sorted(first, key=purest.index), *rest][:n]
