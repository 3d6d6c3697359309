"""The figures of a benchmark's or an audit's report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from faircal.evaluation.curves import ScoreSource
from faircal.methods import METHODS
from faircal.metrics.results import Condition
from faircal.report.figures.base import Anything, Figure, Panels, panels, slug, tell_apart
from faircal.report.figures.clusters import ClusterComposition, ClusterShift
from faircal.report.figures.curves import CurvesFigure, DetCurves, FprCurves, RocCurves
from faircal.report.figures.dots import GroupRateDots, difference_figures
from faircal.report.figures.matrix import GroupHeatmap
from faircal.report.figures.regions import region_figures
from faircal.report.figures.reliability import ReliabilityDiagram
from faircal.report.figures.robustness import MovingCurves, Robustness, by_calibrator, by_method
from faircal.report.figures.violins import Violins
from faircal.report.findings import ReportableResults, VariantResults, main_condition
from faircal.report.store import ResultsFolder, Variant
from faircal.report.wording import method_title, metric_title


def standard_figures(store: ResultsFolder, attribute: str) -> list[Figure | Panels]:
    """Return the figures of a report by one attribute, as far as the data carries them.

    For each feature: what labelled pairs gain in another population, how methods differ from
    Baseline, false-positive rates and
    calibration errors by group, false-positive rates over all thresholds, distributions,
    reliability, ROC and DET curves with a panel per method, the clusters of the last fold, and how
    results depend on the number of clusters. In a reproduction those are left out that the paper
    has.

    Parameters
    ----------
    store : ResultsFolder
        What a benchmark or an audit wrote.
    attribute : str
        One of ``store.results.attributes``.

    Examples
    --------
    >>> from pathlib import Path
    >>> import faircal
    >>> from faircal.report.store import Results
    >>> score, genuine = [0.1, 0.3, 0.6, 0.2, 0.4, 0.8, 0.9, 0.7], [0, 0, 0, 0, 0, 1, 1, 1]
    >>> found = faircal.audit(score=score, genuine=genuine, groups=list("AAABBABB"), threshold=0.5)
    >>> run, rows = {"kind": "audit"}, Results(found.rows)
    >>> store = ResultsFolder(Path(), rows, run, found.curves, [], [], found.intervals())
    >>> [figure.key for figure in standard_figures(store, store.results.attributes[0])]
    ['distributions', 'roc']
    """
    figures: list[Anything] = []
    for feature in store.results.features:
        figures += _Standard(store, feature, attribute).figures()
    return tell_apart(figures)


def sources_of(store: ResultsFolder, feature: str, attribute: str) -> list[ScoreSource]:
    """Return whose scores there are, in the order of the tables: yardsticks last."""
    sources = [
        source
        for source in store.curves.sources
        if (source.feature, source.attribute) == (feature, attribute)
    ]
    return sorted(sources, key=lambda source: Variant.of(source).yardstick)


def swept(store: ResultsFolder) -> list[str]:
    """Return the methods that use clusters, in the order of the registry."""
    ran = {variant.method for variant in store.results.variants if variant.clusters}
    return [name for name in METHODS if name in ran] + sorted(ran - set(METHODS))


@dataclass(frozen=True, eq=False)
class _Standard:
    """The figures of one feature and attribute."""

    store: ResultsFolder
    feature: str
    attribute: str

    def figures(self) -> Iterator[Anything]:
        """Give all figures, also ones that show nothing."""
        yield from self._moving()
        yield from self._differences()
        yield from self._rates()
        yield from self._matrix()
        yield from self._curves()
        yield from self._clusters()
        yield from region_figures(self.store.regions, self.feature)
        if self.store.kind != "reproduce":
            yield from self._robustness()

    @cached_property
    def _told(self) -> ReportableResults:
        return ReportableResults(self.store)

    @cached_property
    def _small(self) -> tuple[str, ...]:
        """The groups without enough data for their curves to be shown."""
        variant = next(iter(self.store.main_variants.values()))
        of = VariantResults(self.store, self.attribute, self.feature, variant)
        return tuple(
            group
            for group in of.groups
            if any(of.insufficient_data(metric, group) for metric in ("fpr", "fnr"))
        )

    def _key(self, *words: str) -> str:
        """Return a key that names feature and attribute where there are several."""
        results = self.store.results
        feature = self.feature if len(results.features) > 1 else ""
        return slug(*words, feature, self.attribute if len(results.attributes) > 1 else "")

    def _titled(self, title: str) -> str:
        several = len(self.store.results.features) > 1
        return f"{title} ({self.feature})" if several and self.feature else title

    def _moving(self) -> Iterator[Anything]:
        """Give a panel for each method that moved to another population."""
        rows = self.store.moved
        variants = self.store.main_variants.values()
        yield from panels(
            [MovingCurves(rows, self.feature, self.attribute, variant) for variant in variants],
            [method_title(variant.method) for variant in variants],
            key=self._key("moving"),
            title=self._titled("KS by labelled pairs of the new population"),
        )

    def _differences(self) -> Iterator[Anything]:
        """Give how methods differ from Baseline, where a benchmark has several."""
        compared = self.store.compared(self.attribute)
        key, title = self._key("differences"), self._titled("Difference to Baseline")
        yield from difference_figures(compared, self.feature, key=key, title=title)

    def _rates(self) -> Iterator[Figure]:
        results = self.store.results
        if not results.groups(self.attribute):
            return
        point = main_condition(results, self.attribute)
        points = [] if point is None else [point]
        variants = list(self.store.main_variants.values())
        for metric, condition in [*(("fpr", point) for point in points), ("ks", "")]:
            title = metric_title(metric, condition, by=" by group")
            if metric == "fpr" and not condition:
                title += " at the given threshold"
            yield GroupRateDots(
                self._told,
                self.feature,
                self.attribute,
                metric,
                condition,
                variants,
                self.store.intervals,
                key=self._key("rates", metric),
                title=self._titled(title),
            )

    def _matrix(self) -> Iterator[Figure]:
        """Give who is taken for whom, at the operating point that the summary speaks of."""
        point = main_condition(self.store.results, self.attribute)
        rows = [row for row in self.store.matrix if row.condition == point]
        own = [r for r in rows if (r.feature, r.attribute) == (self.feature, self.attribute)]
        figure = GroupHeatmap(own, key=self._key("matrix"))
        yield replace(figure, title=self._titled(figure.title))

    @cached_property
    def _sources(self) -> list[ScoreSource]:
        return sources_of(self.store, self.feature, self.attribute)

    def _curves(self) -> Iterator[Anything]:
        """Give the figures that have a panel for each method."""
        curves = self.store.curves
        both, grouped, likely = [], [], []
        for source in self._sources:
            everybody = curves.get(source=source) if curves.has("score", source) else None
            groups = [group for group in curves.groups(source) if group not in self._small]
            if everybody is not None and everybody.n_imposter and groups:
                grouped.append(source)
            if everybody is not None and everybody.n_imposter and everybody.n_genuine:
                both.append(source)
            if source in both and curves.has("probability", source):
                likely.append(source)
        if self.store.kind != "reproduce":
            point = main_condition(self.store.results, self.attribute)
            rate = Condition.of(point).rate if point else 0.05  # what the summary speaks of
            upto = max(0.1, 2 * rate)
            yield from self._per_method(FprCurves, grouped, share=True, mark=rate, upto=upto)
            given = self.store.run.get("settings", {}).get("threshold")
            yield from self._per_method(Violins, both, rate=rate, threshold=given)
        yield from self._per_method(ReliabilityDiagram, likely, share=True)
        yield from self._per_method(RocCurves, both, share=True)
        yield from self._per_method(DetCurves, both, share=True)

    def _per_method(
        self,
        kind: type[CurvesFigure],
        sources: list[ScoreSource],
        share: bool = False,
        **more: Any,
    ) -> Iterator[Anything]:
        yield from panels(
            [kind(self.store.curves, source, without=self._small, **more) for source in sources],
            [method_title(source.method) for source in sources],
            key=self._key(kind._key),
            title=self._titled(kind._about),
            share_x=share,
            share_y=share,
        )

    def _clusters(self) -> Iterator[Figure]:
        rows = [row for row in self.store.clusters if row.feature == self.feature]
        fold = rows[-1].fold if rows else ""
        for method in dict.fromkeys(row.method for row in rows):
            for kind in (ClusterShift, ClusterComposition):
                figure = kind(rows, method, self.feature, self.attribute, fold)
                key = self._key(kind._key, method)
                yield replace(figure, key=key, title=self._titled(figure.title))

    def _robustness(self) -> Iterator[Anything]:
        results = self.store.results
        numbers = {variant.clusters for variant in results.variants if variant.clusters}
        mains = self.store.main_variants.values()
        if len(numbers) > 1:
            calibrator = next((v.calibrator for v in mains if v.calibrator), "")
            lines = by_method(results, [variant.method for variant in mains], calibrator)
            metrics = [("ks_mean", ""), ("ks_std", ""), ("auroc", "")]
            point = main_condition(results, self.attribute)
            metrics += [("fpr_aad", point)] if point else []
            yield from panels(
                [
                    Robustness(results, self.feature, self.attribute, metric, lines, under)
                    for metric, under in metrics
                ],
                [metric_title(*metric) for metric in metrics],
                key=self._key("robustness-methods"),
                title=self._titled("Results over the number of clusters"),
                columns=2,
            )
        by = {method: by_calibrator(results, method) for method in swept(self.store)}
        by = {method: lines for method, lines in by.items() if len(lines) > 1}
        yield from panels(
            [
                Robustness(results, self.feature, self.attribute, "ks_mean", lines)
                for lines in by.values()
            ],
            [method_title(method) for method in by],
            key=self._key("robustness-calibrators"),
            title=self._titled("KS mean by calibrator and number of clusters"),
            share_y=True,
        )
