"""Small runs whose reports are looked at, and what Python says of the numbers that they show."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from PIL import Image
from threadpoolctl import threadpool_limits

import faircal
from faircal.cli.main import main
from faircal.evaluation.benchmark import BenchmarkSettings, Sweep, run_benchmark
from faircal.evaluation.classes import audit_classes, write_class_audit
from faircal.methods import METHODS, make_method
from faircal.metrics import Ranking, probability_edges, rates_at_threshold, score_edges
from faircal.report import write_report

BENCHMARKED = ("baseline", "gst", "fsn", "faircal", "oracle")
HOSTILE = (
    '<script>alert("x")</script>',
    "\"><img src=x onerror=alert('y')> & </script><!-- ${z} {{ z }}",
    "__proto__",
    "NoSpace" * 20,
)


class Scored(NamedTuple):
    """The pairs of a report as one method scored them; the group of each, empty for none."""

    score: np.ndarray
    probability: np.ndarray | None
    genuine: np.ndarray
    group: np.ndarray

    def of(self, scale):
        """What a threshold on `scale` is compared with."""
        return self.probability if scale == "probability" else self.score

    def rates(self, scale, threshold):
        """(group, metric) to the rate and the number of pairs that it is a share of."""
        found = {}
        for group in ("global", *(g for g in dict.fromkeys(self.group) if g)):
            inside = np.ones(len(self.group), bool) if group == "global" else self.group == group
            ranking = Ranking.of(self.of(scale)[inside], self.genuine[inside])
            counts = rates_at_threshold(ranking, threshold)
            found[group, "fpr"] = float(counts.fpr), ranking.n_imposter
            found[group, "fnr"] = float(counts.fnr), ranking.n_genuine
        return found

    def lowest_edge(self, rate, score_range):
        """The lowest edge of the score's histogram that at most `rate` of all imposters reach."""
        of_probabilities = np.array_equal(self.score, self.probability)
        edges = probability_edges() if of_probabilities else score_edges(*score_range)
        imposters = np.sort(self.score[~self.genuine])
        passing = len(imposters) - np.searchsorted(imposters, edges)
        return next(
            edge
            for edge, count in zip(edges, passing.tolist(), strict=True)
            if Fraction(count, len(imposters)) <= rate
        )


class Report(NamedTuple):
    """A report, and by (feature, attribute) and method, as the page calls it, what it shows."""

    path: Path
    views: dict[tuple[str, str], dict[str, Scored]]
    score_range: tuple[float, float]


def _benchmark(folder, data, methods, attributes, more=None, **settings):
    """Run a benchmark; then fit its methods once more, fold by fold, and pool the test folds."""
    chosen = BenchmarkSettings(methods=methods, clusters=(5,), attributes=attributes, **settings)
    run_benchmark(data, folder, chosen, jobs=1, more=more)
    views = {
        (feature, attribute): {
            METHODS[name].title: _pooled(data.select(feature), name, attribute) for name in methods
        }
        for feature in data.features
        for attribute in attributes
    }
    return Report(write_report(folder), views, data.score_range)


def _pooled(data, name, attribute):
    offered = {"n_clusters": 5, "n_init": 1, "random_state": 0, "attribute": attribute}
    taken = {k: v for k, v in offered.items() if k in METHODS[name]._get_param_names()}
    parts = []
    for fold in data.fold_names:
        calibration, test = data.split(fold)
        with threadpool_limits(1, user_api="blas"):  # as the benchmark does: the same sums
            said = make_method(name, **taken).fit(calibration).apply(test)
        groups = test.groups(attribute)
        names = np.array([*groups.names, ""])[groups.pair]
        parts.append((said.score, said.probability, test.genuine, names))
    return Scored(*map(np.concatenate, zip(*parts, strict=True)))


def _audit(folder, table, features, *more):
    """Audit a score table whose groups are in the column ``group``."""
    file = folder / "scores.csv"
    pacsv.write_csv(pa.table(table), file)
    where = ["--features", ",".join(features), "--out", str(folder / "audit")]
    with pytest.raises(SystemExit) as left:
        main(["audit", str(file), *where, *more])
    assert left.value.code == 0
    genuine, group = np.asarray(table["genuine"]) == 1, np.asarray(table["group"])
    views = {
        (name, "group"): {"scores": Scored(table[name], table.get("probability"), genuine, group)}
        for name in features
    }
    data = faircal.load(file, features=features, score_range=None)
    return Report(folder / "audit/report.html", views, data.score_range)


def _score_table(seed, n=3000, names=("A", "B", "C")):
    """Return labels, groups (the last one small, some unknown) and a spread of scores around 0."""
    rng = np.random.default_rng(seed)
    genuine = np.arange(n) % 2
    group = rng.choice(
        [*names, ""], n, p=[*[0.9 / (len(names) - 1)] * (len(names) - 1), 0.05, 0.05]
    )
    shift = np.array([0.05 * [*names, ""].index(g) for g in group])
    return genuine, group, rng.normal(0.45 * genuine + shift, 0.18)


def benchmark(folder):
    data = faircal.simulate("small", seed=0, people=320, pairs=2000)
    return _benchmark(folder, data, BENCHMARKED, ("ethnicity", "ethnicity+gender"))


def reproduction(folder):
    """As of RFW: published numbers beside ours, and pictures of some clusters."""
    data = faircal.simulate("small", seed=1, people=80, images=480, pairs=1600)
    rng = np.random.default_rng(0)
    (folder / "photos").mkdir()
    for name in data.images.ids.to_pylist():
        pixels = rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "photos" / str(name), format="png")
    told = {
        "kind": "reproduce",
        "paper": "rfw",
        "published": {"embedding": "facenet-webface"},
        "simulated": False,
        "pictures": str(folder / "photos"),
    }
    sweeps = {"faircal": Sweep(("beta", "isotonic"), (1, 5))}
    methods = ("baseline", "faircal", "oracle")
    out = folder / "out"
    return _benchmark(out, data, methods, ("ethnicity",), told, sweeps=sweeps, members=9)


def audit(folder):
    genuine, group, score = _score_table(1)
    score = np.clip(score, -1, 1)
    probability = np.round(1 / (1 + np.exp(-12 * (score - 0.3))), 4)  # ties with the edges, too
    table = {"genuine": genuine, "group": group, "score": score, "probability": probability}
    return _audit(folder, table, ["score"], "--threshold", "0.4")


def hundred(folder):
    """Scores 0 to 100 of two features, many of them whole numbers."""
    table = dict(zip(("genuine", "group", "arc"), _score_table(2), strict=True))
    face = _score_table(3)[2]
    table["arc"] = np.clip(np.round(30 + 50 * table["arc"]), 0, 100)
    table["face"] = np.clip(40 + 40 * face, 0, 100)
    return _audit(folder, table, ["arc", "face"])


def classifier(folder):
    """A classifier that is too sure of one group; names that would be tags, many classes."""
    rng = np.random.default_rng(5)
    n, classes = 600, [f"class {i}" for i in range(9)] + [HOSTILE[0]]
    group = np.array(["North", "South", HOSTILE[1], "Tiny"])[np.minimum(np.arange(n) % 20 // 6, 3)]
    scores = 2 * rng.normal(size=(n, len(classes)))
    says = [np.exp(scores * np.where(group == "South", heat, 1)[:, None]) for heat in (1, 2, 1.5)]
    true, raw, ours = (each / each.sum(axis=1, keepdims=True) for each in says)
    codes = np.minimum((rng.random(n)[:, None] > true.cumsum(axis=1)).sum(axis=1), 9)
    found = audit_classes(
        {
            "uncalibrated": raw,
            "global": np.sqrt(raw) / np.sqrt(raw).sum(axis=1)[:, None],
            "f": ours,
        },
        codes,
        groups=group.tolist(),
        classes=classes,
        dataset="beasts",
        attribute="place",
    )
    titles = ("Uncalibrated", "Global", "FairCal")
    methods = {name: {"title": t} for name, t in zip(found.methods, titles, strict=True)}
    write_class_audit(folder, found, {"methods": methods})
    return Report(write_report(folder), {}, (0.0, 1.0))


def hostile(folder):
    genuine, group, score = _score_table(4, n=2400, names=HOSTILE)
    file = folder / "scores.csv"
    feature, attribute = HOSTILE[:2]
    table = {
        "genuine": genuine,
        "fold": np.arange(len(genuine)) // 2 % 2,
        feature: np.clip(score, -1, 1),
        attribute: group,
    }
    pacsv.write_csv(pa.table(table), file)
    data = faircal.load(file)
    return _benchmark(folder / "out", data, ("baseline", "oracle"), (attribute,))
