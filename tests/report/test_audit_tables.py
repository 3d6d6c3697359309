"""What an audit's page shows besides: people, each group's errors, labels, regions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import faircal
from faircal.evaluation.audit.label_noise import LABEL_NOISE, LabelNoiseRow
from faircal.evaluation.audit.rates import MATRIX, MatrixRow
from faircal.evaluation.audit.regions import RECORD, REGIONS, RegionRow
from faircal.evaluation.curves import CURVES, as_table
from faircal.metrics.results import write_parquet, write_results, write_rows, write_run
from faircal.report.figures import GroupHeatmap
from faircal.report.store import ResultsFolder
from faircal.report.writing import FACES

CONDITION = "global_fpr=0.01"


def scored():
    """Scores of four groups by two attributes, each of 40 people."""
    rng = np.random.default_rng(3)
    score, genuine, groups, left, right = [], [], [], [], []
    for k, name in enumerate(("x F", "x M", "y F", "y M")):
        one = rng.integers(40, size=800)
        two = (one + rng.integers(1, 40, size=800)) % 40
        same = np.arange(400) % 40
        strangers = rng.normal(0.1 + 0.05 * k, 0.1, 800)
        score += [*strangers, *rng.normal(0.5, 0.1, 400)]
        genuine += [0] * 800 + [1] * 400
        groups += [name] * 1200
        left += [f"{name}{i}" for i in (*one, *same)]
        right += [f"{name}{i}" for i in (*two, *same)]
    return {
        "score": np.clip(score, -1, 1),
        "genuine": genuine,
        "groups": groups,
        "left_identity": left,
        "right_identity": right,
    }


@pytest.fixture
def audited(tmp_path):
    """Return a function that audits, writes and reads back."""

    def make(arrays, matrix=(), noise=(), threshold=None, **run):
        labels = {"dataset": "d", "feature": "f", "attribute": "a+b"}
        found = faircal.audit(**arrays, **labels, threshold=threshold)
        write_results(tmp_path, found.rows)
        write_parquet(tmp_path / CURVES, as_table(found.curves.rows))
        write_rows(tmp_path / MATRIX, MatrixRow, matrix)
        write_rows(tmp_path / LABEL_NOISE, LabelNoiseRow, noise)
        known = {
            "people": found.people,
            "effective_people": found.effective_people(),
            "interval_kind": found.interval_kind,
            "pairs": len(arrays["score"]),
        }
        write_run(tmp_path, {"kind": "audit", **known, **run})
        return found, ResultsFolder.read(tmp_path)

    return make


def tables(store):
    return {table.key: table for table in FACES.further(store, "a+b")}


def cells(table):
    """Return a table's values by row and column."""
    names = [heading.name for heading in table.headings]
    return {line.label: dict(zip(names, line.values, strict=True)) for line in table.lines}


def test_people_are_counted_by_group(audited):
    _, store = audited(scored(), groups={"a+b": {"pairs": 4800, "unknown_pairs": 12}})
    people = cells(tables(store)["population"])
    assert people["All pairs"]["People"].text == "160"
    assert people["x F"]["People"].text == "40"
    assert people["x F"]["Pairs of strangers"].text == "800"


def test_the_numbers_are_those_of_the_audit(audited):
    audit, store = audited(scored())
    made = tables(store)
    for metric in ("fpr", "fnr"):
        value = cells(made[f"groups-{metric}-{CONDITION}"])["scores"]["y M"]
        where = {"group": "y M", "condition": CONDITION}
        assert value.mean == audit.value(metric, **where)
        assert (value.low, value.high) == audit.interval(metric, **where)
    fair = cells(made[f"fairness-{CONDITION}"])["scores"]
    for label, metric in (("FPR max − min", "fpr_gap"), ("GARBE", "garbe"), ("FDR", "fdr")):
        assert fair[label].mean == audit.value(metric, group="all", condition=CONDITION)
    gap = audit.value("fpr_gap", group="all", condition=CONDITION)
    assert fair["FPR max − min"].text == f"{100 * gap:.2f}"
    garbe = audit.value("garbe", group="all", condition=CONDITION)
    assert fair["GARBE"].text == f"{garbe:.2f}"
    evidence = cells(made["groups-min_cllr"])["scores"]["y M"]
    assert evidence.text == f"{audit.value('min_cllr', group='y M'):.2f}"


def test_a_ratio_to_no_error_is_undefined(audited):
    audit, store = audited(scored(), threshold=0.5)
    assert audit.value("fpr", group="x F") == 0 < audit.value("fpr", group="y M")
    assert math.isinf(audit.value("fpr_max_min", group="all"))
    value = cells(tables(store)["fairness"])["scores"]["FPR max / min"]
    assert value.text == "undefined"
    assert value.interval == ""


def test_the_matrix_withholds_what_it_cannot_tell():
    at = ("f", "a+b", CONDITION)
    rows = [
        MatrixRow(*at, "x F", "x F", 800, 8, 0.01, 0.005, 0.02, 39),
        MatrixRow(*at, "x F", "y M", 600, 3, 0.005, 0.001, 0.02, 60),
        MatrixRow(*at, "y M", "y M", 800, 80, 0.1, 0.05, 0.2, 12, "only 12 people"),
        MatrixRow(*at, "x F", "y F", 20, 10, 0.5, 0.3, 0.7, 30, "only 20 pairs"),
    ]
    figure = GroupHeatmap(rows)
    assert figure.table["fpr"].to_pylist() == [0.01, 0.005]
    assert "not enough data: y M and y M, x F and y F" in figure.words
    texts = [text.get_text() for text in figure.plot().texts]
    assert sorted(texts) == sorted(["1.00", "800", "0.50", "600", "0.50", "600"])
    assert GroupHeatmap([row for row in rows if row.left_group == row.right_group]).empty


def test_label_noise_is_shown(audited):
    front = ("f", "a+b", "all", CONDITION, "fpr_gap", 0.05)
    gap = LabelNoiseRow(*front, 0.04, 0.03, 0.02, 0.035, 0.045, 0.044, 1.0)
    nan = float("nan")
    rows = [
        gap,
        gap._replace(metric="fpr_aad", condition="", corrected_never=gap.corrected),
        gap._replace(metric="fnr_gap", reliable=0.0),
        gap._replace(metric="fnr_aad", value=nan),
        gap._replace(
            metric="ks_gap", condition="", corrected=nan, corrected_never=nan, reliable=0.0
        ),
    ]
    _, store = audited(scored(), noise=rows)
    table = cells(tables(store)["label-noise"])
    at = "at a global FPR of 1 %"
    assert list(table) == [
        f"FPR gap {at}",
        "FPR AAD at the given threshold",
        f"FNR gap {at}",
        "KS gap",
    ]
    back = [row["If 5 % are wrong already"].text for row in table.values()]
    assert back == ["4.40 to 4.50", "4.50", "not known", "not known"]
    row = table[f"FPR gap {at}"]
    assert row["As labelled"].text == "4.00"
    assert row["With 5 % wrong"].interval == "2.00–3.50"


def test_label_noise_of_two_features_is_told_apart(audited, tmp_path):
    front = ("f", "a+b", "all", CONDITION, "fpr_gap", 0.05)
    one = LabelNoiseRow(*front, 0.04, 0.03, 0.02, 0.035, 0.045, 0.044, 1.0)
    found, _ = audited(scored(), noise=[one, one._replace(feature="g")])
    write_results(tmp_path, [*found.rows, *(row._replace(feature="g") for row in found.rows)])
    table = tables(ResultsFolder.read(tmp_path))["label-noise"]
    assert [line.block for line in table.lines] == ["f", "g"]


def test_regions_found_for_different_reasons_are_all_shown(audited, tmp_path):
    numbers = dict.fromkeys(RegionRow._fields, 0.01)
    texts = {"feature": "f", "like": "", "gap_like": "", "composition": "", "examples": "[]"}
    row = RegionRow(**{**numbers, **texts, "region": "A3-1", "found": 0.0, "gap_found": 1.0})
    rows = [
        row,
        row._replace(region="A3-2", found=1.0, gap_found=1.0, gap_like="A3-1"),
        row._replace(region="A3-3", found=1.0, gap_found=0.0, like="A3-2"),
        row._replace(region="A3-4", found=0.0, gap_found=0.0),
    ]
    write_rows(tmp_path / REGIONS, RegionRow, rows)
    (tmp_path / RECORD).write_text('{"data_sha256": "abc"}')
    for run, shown in (({"data_sha256": "abc"}, 2), ({"data_sha256": "other"}, 0), ({}, 0)):
        _, store = audited(scored(), **run)
        made = tables(store)
        told = [line.label for line in made["regions"].lines] if "regions" in made else []
        assert told == ["A3-1", "A3-2"][:shown]
    assert audited(scored(), data_sha256="abc", kind="benchmark")[1].regions == []


def test_a_benchmark_has_none(audited):
    _, store = audited(scored(), kind="benchmark")
    assert not {"population", f"groups-fnr-{CONDITION}"} & set(tables(store))
