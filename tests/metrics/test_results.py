"""The results store: what is written reads back; what is spoilt is one clear error."""

from __future__ import annotations

import json
import math

import pytest

import faircal
from faircal.metrics.intervals import summarise
from faircal.metrics.results import (
    Result,
    Results,
    read_results,
    read_run,
    write_results,
    write_run,
)

ROW = Result("d, with comma", "net", "gst", "beta", "", "0", "1", "e", 'A "q"', "", "ks", 1 / 3)


def test_rows_read_back_exactly(tmp_path):
    rows = [ROW, ROW._replace(value=1e-300), ROW._replace(value=-0.1)]
    write_results(tmp_path, rows)
    assert repr(read_results(tmp_path)) == repr(rows)


def test_undefined_values_read_back_as_nan(tmp_path):
    write_results(tmp_path, [ROW._replace(value=float("nan"))])
    assert math.isnan(read_results(tmp_path)[0].value)


def test_what_is_known_of_a_value_reads_back(tmp_path):
    more = {"low": 0.05, "high": 0.2, "level": 0.95, "errors": 3.0, "trials": 30.0}
    row = ROW._replace(**more, people=12.5, effective=20.25, withheld="only 30 pairs, so far")
    write_results(tmp_path, [row])
    assert read_results(tmp_path) == [row]
    assert not row.reportable
    assert row._replace(withheld="").reportable


def test_results_are_looked_up_without_their_folds():
    values = {"1": 0.1, "2": 0.3, "mean": 0.2, "std": 0.1}
    rows = [ROW._replace(fold=fold, value=value) for fold, value in values.items()]
    results = Results([*rows, ROW._replace(fold="mean", group="all", condition="fpr=0.1")])
    assert results.get(ROW.key).value == 0.2
    assert results.spread(ROW.key) == 0.1
    assert ROW.key in results.by_key
    assert ROW.key._replace(metric="ece") not in results.by_key
    assert math.isnan(results.get(ROW.key._replace(metric="ece")).value)
    assert [key.group for key in results.by_key] == [ROW.group, "all"]
    assert (results.groups["other"], results.rates["fnr"]) == ([], [])
    assert (results.groups["e"], results.rates["fpr"]) == ([ROW.group], ["fpr=0.1"])


def test_summary_leaves_undefined_folds_out():
    folds = [ROW._replace(fold=str(i), value=v) for i, v in enumerate((1.0, float("nan"), 4.0))]
    *_, mean, std = summarise(folds)
    assert (mean.fold, mean.value) == ("mean", 2.5)
    assert (std.fold, std.value) == ("std", 1.5)


def test_summary_of_nothing_defined_is_undefined():
    *_, mean, std = summarise([ROW._replace(value=float("nan"))])
    assert math.isnan(mean.value)
    assert math.isnan(std.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("results.csv", b"a,b\n1,2\n", "expected columns dataset, feature"),
        ("results.csv", b"", "expected columns dataset, feature"),
        ("results.csv", b"\xff\xfe", "line 2: cannot be read"),
        (
            "results.csv",
            ",".join(Result._fields).encode() + b"\nx,1\n",
            "line 2: cannot be read",
        ),
        (
            "results.csv",
            ",".join(Result._fields).encode() + b"\n" + b"x," * 11 + b"high,,,,,,,,\n",
            "could not convert",
        ),
        ("run.json", b"{", "not valid JSON"),
        ("run.json", b"\xff", "not valid JSON"),
        ("run.json", b"[]", "expected an object"),
        ("run.json", b'{"fits": 3}', "'fits' is not a list"),
        ("run.json", b'{"fits": [3]}', "'fits' is not a list of objects"),
        ("run.json", b'{"settings": []}', "'settings' is not a dict"),
    ],
)
def test_spoilt_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    read = {"results.csv": read_results, "run.json": read_run}
    with pytest.raises(faircal.DataError, match=message) as caught:
        read[name](tmp_path)
    assert name in str(caught.value)
    assert "run the benchmark or audit again" in str(caught.value)


def test_a_folder_in_place_of_the_file(tmp_path):
    (tmp_path / "results.csv").mkdir()
    with pytest.raises(faircal.DataError, match="cannot be read"):
        read_results(tmp_path)


def test_the_record_is_plain_json(tmp_path):
    write_run(tmp_path, {"kind": "audit", "notes": ["a"]})
    assert json.loads((tmp_path / "run.json").read_text()) == read_run(tmp_path)
