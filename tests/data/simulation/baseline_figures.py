"""Measure what the presets were tuned by: the Baseline's figures, with code of its own.

    python tests/simulation/baseline_figures.py [PRESET ...] [--seeds 0 1 2 3 4]

Prints the table of docs/explanation/simulation.md: raw cosines for accuracy and false positives,
one global beta calibration for KS; per test fold, then the mean over folds and over seeds, in
percent. The last columns are shares and numbers of pairs for 100 K-means clusters, calibration part
of fold 5.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from scipy.optimize import minimize
from sklearn.cluster import KMeans
from sklearn.metrics import roc_auc_score, roc_curve

from faircal.data.simulation import PRESETS, simulate


def curve(score, genuine):
    """False positive rates, true positive rates and thresholds of the whole ROC."""
    fpr, tpr, threshold = roc_curve(genuine, score, drop_intermediate=False)
    return fpr, tpr, np.minimum(threshold, 1.0)


def fpr_by_group(score, genuine, group, n_groups, rate):
    """False positive rate of each group at the threshold of a global rate."""
    fpr, _, threshold = curve(score, genuine)
    at = np.interp(rate, fpr, threshold)
    found = []
    for code in range(n_groups):
        fpr, _, threshold = curve(score[group == code], genuine[group == code])
        found.append(np.interp(-at, -threshold, fpr))
    return np.array(found)


def beta_calibrator(score, genuine):
    """Maximum-likelihood beta calibration with slopes that are not negative."""

    def features(s):
        z = np.clip((s + 1) / 2, 1e-12, 1 - 1e-12)
        return np.stack([np.log(z), -np.log(1 - z), np.ones_like(z)], axis=1)

    x, sign = features(score), np.where(genuine, -1.0, 1.0)

    def loss(w):
        margin = sign * (x * w).sum(axis=1)
        pull = sign / (1 + np.exp(-margin))
        return np.logaddexp(0, margin).mean(), (x * pull[:, None]).mean(axis=0)

    bounds = [(0, None), (0, None), (None, None)]
    options = {"ftol": 1e-14, "gtol": 1e-9, "maxiter": 1000}
    w = minimize(loss, [1, 1, 0], jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return lambda s: 1 / (1 + np.exp(-(features(s) * w).sum(axis=1)))


def ks(probability, genuine):
    """Largest gap between summed probabilities and summed labels, over the number of pairs."""
    order = np.argsort(probability, kind="stable")
    return np.abs(np.cumsum(probability[order] - genuine[order])).max() / len(order)


def deviations(name, values):
    gap = np.abs(values - values.mean())
    return {f"{name} AAD": gap.mean(), f"{name} MAD": gap.max()}


def fold_figures(data, fold):
    test = data.pairs.fold == fold
    groups = data.groups()
    score, genuine, group = data.scores[test], data.genuine[test], groups.pair[test]
    fpr, tpr, _ = curve(score, genuine)
    row = {"AUROC": roc_auc_score(genuine, score)}
    row |= {f"TPR@{rate:g}": np.interp(rate, fpr, tpr) for rate in (0.001, 0.01)}
    n = len(groups.names)
    for rate in (0.001, 0.01):
        row |= deviations(f"FPR@{rate:g}", fpr_by_group(score, genuine, group, n, rate))
    at_5 = fpr_by_group(score, genuine, group, n, 0.05)
    row |= {f"FPR@0.05 {name}": value for name, value in zip(groups.names, at_5, strict=True)}
    p = beta_calibrator(data.scores[~test], data.genuine[~test])(score)
    by_group = np.array([ks(p[group == code], genuine[group == code]) for code in range(n)])
    row |= {"KS global": ks(p, genuine), "KS mean": by_group.mean()} | deviations("KS", by_group)
    return row | {f"KS {name}": v for name, v in zip(groups.names, by_group, strict=True)}


def cluster_figures(data, n_clusters=100):
    calibration, _ = data.split(5)
    used = calibration.used_images()
    fitted = KMeans(n_clusters, n_init=1, random_state=0).fit(data.embeddings.vectors[used])
    cluster = np.zeros(len(data.images), dtype=int)
    cluster[used] = fitted.labels_
    a, b = cluster[calibration.pairs.left], cluster[calibration.pairs.right]
    pairs = np.bincount(a, minlength=n_clusters) + np.bincount(b[a != b], minlength=n_clusters)
    few, middle, many = np.percentile(pairs, [0, 50, 100]) / 100
    return {"straddle": (a != b).mean(), "fewest": few, "median": middle, "most": many}


def figures(preset, seed):
    data = simulate(preset, seed)
    rows = [fold_figures(data, fold) for fold in data.fold_names]
    mean = {key: np.mean([row[key] for row in rows]) for key in rows[0]}
    at_5 = [value for key, value in mean.items() if key.startswith("FPR@0.05")]
    imposters = np.where(data.genuine, -1, data.groups().pair)
    above = data.scores >= np.quantile(data.scores[~data.genuine], 0.95)
    pooled = [above[imposters == code].mean() for code in range(len(at_5))]
    ratios = {"ratio": max(at_5) / min(at_5), "ratio pooled": max(pooled) / min(pooled)}
    return mean | {key: value / 100 for key, value in ratios.items()} | cluster_figures(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("presets", nargs="*", default=list(PRESETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    options = parser.parse_args()
    for preset in options.presets:
        rows = [figures(preset, seed) for seed in options.seeds]
        sys.stdout.write(f"\n{preset}: mean over seeds (least to largest)\n")
        for key in rows[0]:
            values = 100 * np.array([row[key] for row in rows])
            spread = f"({values.min():.2f} to {values.max():.2f})"
            sys.stdout.write(f"{key:24} {values.mean():8.2f} {spread}\n")


if __name__ == "__main__":
    main()
