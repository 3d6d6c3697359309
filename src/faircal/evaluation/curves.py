"""Score histograms of a benchmark or audit: what figures and the explorer are drawn from.

``DIR/curves.parquet`` holds a row for each feature, method, fold, attribute and group, of scores
and of probabilities: edges, and between them the counts of genuine and imposter pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from faircal._base.errors import DataError, ParameterError
from faircal.metrics import Histogram, probability_edges, score_edges
from faircal.metrics.measures import Rankings
from faircal.metrics.results import GLOBAL, read_parquet

CURVES = "curves.parquet"
Of = Literal["score", "probability"]


class ScoreSource(NamedTuple):
    """Whose scores they are; fields that don't apply are empty."""

    feature: str = ""
    method: str = ""
    calibrator: str = ""
    clusters: str = ""
    fold: str = ""
    attribute: str = ""


class ScoreHistogram(NamedTuple):
    """The histogram of one group's scores (``of="score"``) or probabilities."""

    source: ScoreSource
    group: str
    of: str
    histogram: Histogram


_TEXTS = (*ScoreSource._fields, "group", "of")
_NUMBERS = {
    "edges": pa.float64(),
    "genuine": pa.int64(),
    "imposter": pa.int64(),
    "total": pa.float64(),
}
SCHEMA = pa.schema(
    [(name, pa.string()) for name in _TEXTS]
    + [(name, pa.list_(kind)) for name, kind in _NUMBERS.items()]
)


def make_curves(
    rankings: Rankings, source: ScoreSource, score_range: tuple[float, float]
) -> Iterator[ScoreHistogram]:
    """Count the scores and probabilities of all pairs and of each group."""
    same = rankings.scores is rankings.probabilities  # the method ranks by its probability
    for of, cut in (("score", rankings.scores), ("probability", rankings.probabilities)):
        likely = same or of == "probability"
        edges = probability_edges() if likely else score_edges(*score_range)
        for group, ranking in cut.items():
            yield ScoreHistogram(source, group, of, Histogram.of(ranking, edges))


class Curves:
    """The histograms of a run, looked up by what they are of.

    Attributes
    ----------
    rows : list of ScoreHistogram
    sources : list of ScoreSource
        Whose scores there are, with an empty `fold`.
    folds : list of str
        The test folds in order; one without a name where there are none.

    Examples
    --------
    >>> import faircal
    >>> pairs = {"score": [0.9, 0.2, 0.7, 0.1], "genuine": [1, 0, 1, 0], "groups": list("AABB")}
    >>> result = faircal.audit(**pairs)
    >>> result.curves.groups(), result.curves.get("A").n_imposter
    (['A', 'B'], 1)
    >>> histogram = result.curves.get()
    >>> float(histogram.fpr[histogram.edges == 0.15][0])
    0.5
    """

    def __init__(self, curves: Iterable[ScoreHistogram]) -> None:
        self.rows = list(curves)
        self._folds: dict[tuple[ScoreSource, str, str], dict[str, Histogram]] = {}
        for source, group, of, histogram in self.rows:
            key = source._replace(fold=""), group, of
            self._folds.setdefault(key, {})[source.fold] = histogram
        self.sources = list(dict.fromkeys(source for source, _, _ in self._folds))
        self.folds = list(dict.fromkeys(source.fold for source, *_ in self.rows))

    def groups(self, source: ScoreSource | None = None) -> list[str]:
        """Return the groups of a source; it may be left out where there is only one."""
        chosen = self._source(source)
        names = dict.fromkeys(group for of, group, _ in self._folds if of == chosen)
        return [group for group in names if group != GLOBAL]

    def has(self, of: Of, source: ScoreSource | None = None) -> bool:
        """Whether there are scores, or probabilities, of a source."""
        return (self._source(source), GLOBAL, of) in self._folds

    def get(
        self,
        group: str = GLOBAL,
        of: Of = "score",
        source: ScoreSource | None = None,
        fold: str | None = None,
    ) -> Histogram:
        """Return a histogram: of one test fold, or of all of them together.

        `source` may be left out where there is only one.
        """
        key = self._source(source), group, of
        folds = self._folds.get(key, {})
        if not folds or (fold is not None and fold not in folds):
            where = "" if fold is None else f", fold {fold}"
            raise DataError(f"there is no histogram of the {of} of {group!r}{where}; see sources")
        return reduce(add, folds.values()) if fold is None else folds[fold]

    def _source(self, source: ScoreSource | None) -> ScoreSource:
        if source is not None:
            return source._replace(fold="")
        if len(self.sources) != 1:
            raise ParameterError(
                f"expected the source of the curves: there are {len(self.sources)}; "
                "pass one of curves.sources"
            )
        return self.sources[0]


def as_table(curves: Iterable[ScoreHistogram]) -> pa.Table:
    """Return curves as an Arrow table, a histogram a row."""
    listed = list(curves)
    texts = zip(*((*source, group, of) for source, group, of, _ in listed), strict=True)
    columns: list[Any] = [pa.array(values, pa.string()) for values in texts] or [[]] * len(_TEXTS)
    for name, kind in _NUMBERS.items():
        arrays = [getattr(histogram, name) for *_, histogram in listed]
        columns.append(pa.array(arrays, pa.list_(kind)))
    return pa.table(columns, schema=SCHEMA)


def read_curves(folder: str | Path) -> Curves:
    """Read ``curves.parquet`` of a benchmark or audit; no curves where there is no such file."""
    path, curves = Path(folder) / CURVES, []
    for batch in read_parquet(path, SCHEMA).to_batches() if path.exists() else ():
        texts = zip(*(batch[name].to_pylist() for name in _TEXTS), strict=True)
        for i, (*source, group, of) in enumerate(texts):
            histogram = Histogram(*(batch[name][i].values.to_numpy() for name in _NUMBERS))
            curves.append(ScoreHistogram(ScoreSource._make(source), group, of, histogram))
    return Curves(curves)
