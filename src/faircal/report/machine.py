"""``audit.json``: what an audit found, for machines.

The object has these keys, in this order; more may be added, none is renamed or taken away. Rates
are fractions. What is undefined or withheld is null, never NaN.

``faircal``, ``kind``
    Version of faircal; ``"audit"``.
``dataset``, ``simulated``, ``pairs``, ``data_sha256``, ``data_sha256_of``, ``streamed``,
``attribute``
    What was audited. The hash is of the data's ``values`` or of its ``files``; `attribute` is null
    where the data names no groups.
``interval_kind``, ``level``
    How the intervals were made, and what they are meant to cover.
``operating_points``
    A list: for each feature the given threshold, where there is one, then the thresholds of the
    global false-positive and false-negative rates. Each has

    ``feature``, ``condition``, ``threshold``, ``global_fpr``, ``global_fnr``, ``tied``
        Which decision; `condition` as in ``results.csv``; the two rates are those that the
        threshold keeps to, else null. A score is accepted from the threshold on, and errors there
        are counted. `tied` pairs have one score and keep the rate from being met, else 0.
    ``overall``, ``groups``
        All pairs, and a list of the groups in the order of the data. Each has ``group``,
        ``people`` and ``effective_people`` (how many, each in equally many pairs, would tell as
        much; null where the data does not say), ``genuine`` and ``imposter`` (numbers of pairs),
        ``caution`` (a sentence where there are fewer than 30 people, else null), and ``fpr``,
        ``fnr``, ``ks`` and any other headline metric (`faircal.metrics.Metric`). Each of `fpr` and
        `fnr` has ``value``, ``low``, ``high``, ``errors``, ``trials``, ``enough`` and ``reason``.
        Without enough data (`faircal.metrics.intervals.sufficient_data`) `enough` is false,
        `reason` a sentence, and value, low and high are null; ``results.csv`` keeps the raw
        numbers. `errors` and `trials` are integers; `errors` is null where no threshold could be
        set. The others have ``value``, ``low``, ``high``, ``trials``, ``enough`` and ``reason``.
        `fpr` is null at a global false-negative rate, where it is not measured.
    ``over_groups``
        An object from measures over groups (``fpr_gap``, ``fpr_max_min``, ``fdr``, ``garbe``, …,
        as in ``results.csv``) to objects with ``value``, ``low``, ``high`` (null where undefined:
        a ratio where a group has no error), and ``not_enough``, a list of the groups that are part
        of it but have not enough data to be reported by themselves.
    ``worst``, ``best``, ``ratio``, ``told_apart``
        Objects with the keys ``fpr`` and ``fnr``: the group with the highest rate and the one
        with the lowest, of those with enough pairs; the one rate divided by the other (null
        where that is 0); whether intervals, widened to hold for all groups at once, are apart.
        Null where there are no two groups to compare.

``summary``
    The sentences of the report: lists ``who``, ``sure``, ``changes``, ``limits``.
``evidence``, ``notes``, ``settings``, ``versions``
    As in ``run.json``.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from faircal._base.errors import DataError
from faircal._base.files import write_text
from faircal._version import __version__
from faircal.metrics.catalogue import METRICS
from faircal.metrics.intervals import LEVEL
from faircal.metrics.intervals.sufficient_data import PeopleByGroup
from faircal.metrics.results import ALL, AUDIT, GLOBAL, Condition, Result, without_nan
from faircal.report.store import (
    RatesAtPoint,
    ResultsFolder,
    VariantResults,
    caution,
    conditions,
    pair_counts,
)
from faircal.report.tables import UNFAIRNESS
from faircal.report.words import summary


def write_audit_json(store: ResultsFolder) -> Path:
    """Write ``audit.json``, strict JSON, into the folder of an audit; return its path."""
    path, record = store.folder / AUDIT, audit_record(store)
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False, default=str)
    write_text(path, text + "\n")
    return path


def audit_record(store: ResultsFolder) -> dict[str, Any]:
    """Return an audit as an object for machines; the docstring of this file is its schema."""
    if store.kind != "audit":
        raise DataError(f"{store.folder}: holds a {store.kind}; give the folder of an audit")
    run, results = store.run, store.results
    attribute, variant = results.attributes[0], results.variants[0]
    measured = [VariantResults(store, attribute, feature, variant) for feature in results.features]
    record = {
        "faircal": __version__,
        "kind": "audit",
        "dataset": results.dataset,
        "simulated": store.simulated,
        "pairs": run.get("pairs"),
        "data_sha256": run.get("data_sha256"),
        "data_sha256_of": run.get("data_sha256_of"),
        "streamed": run.get("streamed", False),
        "attribute": attribute or None,
        "interval_kind": run.get("interval_kind"),
        "level": LEVEL,
        "operating_points": [
            _point(each, each.point(condition), groups)
            for each, groups in zip(measured, map(_groups, measured), strict=True)
            for condition in conditions(results, attribute)
        ],
        "summary": asdict(summary(store, attribute)),
        "evidence": run.get("evidence", {}),
        "notes": run.get("notes", []),
        "settings": run.get("settings", {}),
        "versions": run.get("versions", {}),
    }
    cleaned: dict[str, Any] = without_nan(record)
    return cleaned


def _point(
    measured: VariantResults, point: RatesAtPoint, counts: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return an operating point; of `counts`, what each group has there besides."""
    under, groups = Condition.of(point.condition), point.rates["fnr"].groups
    ties = measured.store.run.get("ties", {})
    rates = {
        group: {
            metric: _value(of.overall if group == GLOBAL else of.groups[group])
            for metric, of in point.rates.items()
        }
        for group in counts
    }
    # Of each rate; null where one is not measured.
    of_rates = {metric: point.rates.get(metric) for metric in ("fpr", "fnr")}
    small = [
        group for group in groups if any(group in rates.withheld for rates in point.rates.values())
    ]
    over = {name: measured.result(name, ALL, point.condition) for name in UNFAIRNESS}
    return {
        "feature": point.feature,
        "condition": point.condition,
        "threshold": point.threshold,
        "global_fpr": under.wanted("fpr"),
        "global_fnr": under.wanted("fnr"),
        "tied": ties.get(point.feature, {}).get(point.condition, 0),
        "overall": counts[GLOBAL] | rates[GLOBAL],
        "groups": [counts[group] | rates[group] for group in groups],
        **{
            name: {metric: getattr(rates, what, None) for metric, rates in of_rates.items()}
            for name, what in (
                ("worst", "worst"),
                ("best", "best"),
                ("ratio", "ratio"),
                ("told_apart", "differ"),
            )
        },
        "over_groups": {
            name: {
                "value": of.value,
                "low": of.low if math.isfinite(of.value) else None,
                "high": of.high if math.isfinite(of.value) else None,
                "not_enough": small,
            }
            for name, of in over.items()
            if of.key in measured.store.results.by_key
        },
    }


def _groups(measured: VariantResults) -> dict[str, dict[str, Any]]:
    """Return what all pairs and each group have at every operating point, with gaps for rates."""
    store, attribute = measured.store, measured.attribute
    people = PeopleByGroup.of(store.run, attribute)
    pairs = pair_counts(store, attribute, measured.feature)
    groups = {}
    for group in (GLOBAL, *store.results.groups[attribute]):
        genuine, imposter = pairs.get(group, (None, None))
        trials = sum(pairs.get(group, ()))
        of: dict[str, Any] = {
            "group": group,
            "people": people.people.get(group),
            "effective_people": people.effective["fpr"].get(group),
            "genuine": genuine,
            "imposter": imposter,
            "caution": caution(people.people.get(group)),
            "fpr": None,
            "fnr": None,
        }
        for metric in METRICS.values():
            if metric.headline:
                result = measured.result(metric.name, group)
                if math.isnan(result.value):
                    undefined = "no probabilities: calibration cannot be measured"
                    if metric.of == "score":
                        undefined = "undefined of these pairs"
                    result = result._replace(withheld=undefined if trials else "no pairs")
                of[metric.name] = _value(result) | {"trials": trials}
                del of[metric.name]["errors"]
        groups[group] = of
    return groups


def _value(result: Result) -> dict[str, Any]:
    shown = result.reportable
    return {
        "value": result.value if shown else None,
        "low": result.low if shown else None,
        "high": result.high if shown else None,
        "errors": _whole(result.errors),
        "trials": _whole(result.trials),
        "enough": shown,
        "reason": result.withheld or None,
    }


def _whole(count: float) -> float:
    """Return a count as an integer where it is one; audits of today only have such."""
    return int(count) if count.is_integer() else count
