"""audit.json: the schema, the same numbers as in Python, and nothing that is not JSON."""

from __future__ import annotations

import json

import pytest

import faircal
from faircal import DataError
from faircal.evaluation.curves import CURVES, as_table
from faircal.metrics import METRICS
from faircal.metrics.results import write_parquet, write_results, write_run
from faircal.report.machine import audit_record, write_audit_json
from faircal.report.store import ResultsFolder
from faircal.report.words import summary

KEYS = [
    *("faircal", "kind", "dataset", "simulated", "pairs", "data_sha256"),
    *("data_sha256_of", "streamed", "attribute"),
    *("interval_kind", "level", "operating_points", "summary"),
    *("evidence", "notes", "settings", "versions"),
]
POINT = [
    *("feature", "condition", "threshold", "global_fpr", "global_fnr", "tied"),
    *("overall", "groups"),
    *("worst", "best", "ratio", "told_apart", "over_groups"),
]
GROUP = [
    *("group", "people", "effective_people", "genuine", "imposter", "caution"),
    *("fpr", "fnr"),
    *(name for name, metric in METRICS.items() if metric.headline),
]
RATE = ["value", "low", "high", "errors", "trials", "enough", "reason"]


def arrays():
    """A has 40 of 400 strangers wrong and B 4 of 400; C has 5 pairs of each kind."""
    score, genuine, groups, who = [], [], [], []
    for name, wrong, n in (("A", 40, 400), ("B", 4, 400), ("C", 1, 5)):
        score += [0.9] * wrong + [0.1] * (n - wrong) + [0.2] * wrong + [0.8] * (n - wrong)
        genuine += [0] * n + [1] * n
        groups += [name] * (2 * n)
        who += [f"{name}{i % 35}" for i in range(2 * n)]
    identities = {"left_identity": who, "right_identity": who}
    return {"score": score, "genuine": genuine, "groups": groups, **identities}


@pytest.fixture
def audited(tmp_path):
    def make(threshold=0.5, **more):
        found = faircal.audit(
            **(arrays() | more), threshold=threshold, dataset="d", feature="f", attribute="group"
        )
        write_results(tmp_path, found.rows)
        write_parquet(tmp_path / CURVES, as_table(found.curves.rows))
        run = {
            "kind": "audit",
            "people": found.people,
            "effective_people": found.effective_people(),
            "pairs": 1610,
            "interval_kind": found.interval_kind,
            "data_sha256": "0" * 64,
            "notes": ["a note"],
            "settings": {"threshold": threshold},
            "versions": {"faircal": "1"},
        }
        write_run(tmp_path, run)
        return found, ResultsFolder.read(tmp_path)

    return make


def strictly(text):
    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def test_schema(audited):
    _, store = audited()
    record = audit_record(store)
    assert list(record) == KEYS
    for point in record["operating_points"]:
        assert list(point) == POINT
        for group in (point["overall"], *point["groups"]):
            assert list(group) == GROUP
            assert group["fpr"] is None or list(group["fpr"]) == RATE
            assert list(group["fnr"]) == RATE
    conditions = [point["condition"] for point in record["operating_points"]]
    rates = [f"global_{kind}={rate}" for kind in ("fpr", "fnr") for rate in ("0.001", "0.01")]
    assert conditions == ["", *rates]
    assert record["attribute"] == "group"
    assert record["notes"] == ["a note"]


def test_values_by_hand(audited):
    _, store = audited()
    point = audit_record(store)["operating_points"][0]
    a, b, c = point["groups"]
    assert (a["people"], a["genuine"], a["imposter"], a["caution"]) == (35, 400, 400, None)
    assert (a["fpr"]["value"], a["fpr"]["errors"], a["fpr"]["trials"]) == (0.1, 40, 400)
    assert b["fpr"]["value"] == 0.01
    assert c["fpr"] == {
        "value": None,
        "low": None,
        "high": None,
        "errors": 1,
        "trials": 5,
        "enough": False,
        "reason": "only 5 pairs of strangers: not enough data (100 are needed)",
    }
    assert c["caution"].startswith("only 10 people (fewer than 30)")
    assert point["threshold"] == 0.5
    assert point["worst"] == {"fpr": "A", "fnr": "A"}
    assert point["best"] == {"fpr": "B", "fnr": "B"}
    assert point["ratio"] == {"fpr": 10, "fnr": 10}
    assert point["told_apart"] == {"fpr": True, "fnr": True}
    assert a["ks"] == {
        "value": None,
        "low": None,
        "high": None,
        "trials": 800,
        "enough": False,
        "reason": "no probabilities: calibration cannot be measured",
    }


def test_the_same_numbers_as_in_python(audited):
    found, store = audited(probability=arrays()["score"])
    told = 0
    for point in audit_record(store)["operating_points"]:
        for entry in (point["overall"], *point["groups"]):
            for metric in ("fpr", "fnr"):
                if entry[metric] is None:
                    assert point["global_fnr"] is not None
                    continue
                where = {"group": entry["group"], "condition": point["condition"]}
                assert entry[metric]["enough"] is found.result(metric, **where).reportable
                if entry[metric]["enough"]:
                    told += 1
                    assert entry[metric]["value"] == found.value(metric, **where)
                    ends = entry[metric]["low"], entry[metric]["high"]
                    assert ends == found.interval(metric, **where)
            if entry["ks"]["enough"]:
                assert entry["ks"]["value"] == found.value("ks", group=entry["group"])
            else:
                assert entry["group"] == "C"
    assert told > 10


def test_at_a_global_rate_more_pairs_are_needed(audited):
    _, store = audited()
    points = {p["condition"]: p for p in audit_record(store)["operating_points"]}
    assert points["global_fpr=0.001"]["groups"][0]["fpr"]["reason"] == (
        "only 400 pairs of strangers: not enough data (3,000 are needed)"
    )
    assert points["global_fpr=0.001"]["groups"][0]["fnr"]["enough"]
    assert not points["global_fnr=0.001"]["groups"][0]["fnr"]["enough"]
    assert points["global_fpr=0.01"]["groups"][0]["fpr"]["enough"]
    assert points["global_fpr=0.001"]["worst"]["fpr"] is None
    assert points["global_fpr=0.001"]["told_apart"]["fpr"] is None


def test_one_class_is_null_and_valid(audited):
    _, store = audited(genuine=[0] * len(arrays()["score"]))
    path = write_audit_json(store)
    record = strictly(path.read_text("utf-8"))
    for point in record["operating_points"]:
        assert point["overall"]["fnr"]["value"] is None
        assert point["overall"]["fnr"]["reason"] == "no pairs of one person: nothing to say"


def test_without_groups(audited, tmp_path):
    _, store = audited(groups=None)
    record = audit_record(store)
    assert record["operating_points"][0]["groups"] == []
    assert record["operating_points"][0]["told_apart"] == {"fpr": None, "fnr": None}


def test_written_twice_is_the_same(audited):
    _, store = audited()
    path = write_audit_json(store)
    assert path.name == "audit.json"
    first = path.read_bytes()
    assert strictly(first) == audit_record(store)
    assert write_audit_json(ResultsFolder.read(store.folder)).read_bytes() == first


def test_the_summary_is_that_of_the_report(audited):
    _, store = audited()
    said = audit_record(store)["summary"]
    assert said == vars(summary(store, "group"))


def test_of_audits_only(audited):
    _, store = audited()
    write_run(store.folder, {"kind": "benchmark"})
    with pytest.raises(DataError, match="holds a benchmark; give the folder of an audit"):
        write_audit_json(ResultsFolder.read(store.folder))
