"""What comparing two recordings finds."""

import numpy as np
import pytest

from golden import values
from golden.compare import compare

BASE = {
    "audit/fpr[group=Asian F]": np.array([0.25]),
    "scores": np.array([0.5, np.nan, 3.0]),
    "verdict": "worse",
}


@pytest.fixture
def result(tmp_path, capsys):
    """Compare `BASE` with other values: the exit code, and what was printed."""

    def compared(other, accept=None):
        for name, recorded in (("a", BASE), ("b", other)):
            (tmp_path / name).mkdir()
            values.write(tmp_path / name / "audits.parquet", recorded)
        file = tmp_path / "accept.toml"
        file.write_text(accept or "")
        code = compare(tmp_path / "a", tmp_path / "b", file if accept else None)
        return code, capsys.readouterr().out

    return compared


def test_equal_with_nan_equal_to_nan(result):
    code, said = result(dict(reversed(BASE.items())))
    assert code == 0
    assert "all: 5 numbers in 1 cases, 0 differ" in said


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"scores": np.array([0.5, np.nan, np.nextafter(3.0, 4.0)])}, "5 numbers, 1 differ"),
        ({"scores": np.array([0.5, 0.0, 3.0])}, "by at most inf"),
        ({"scores": np.array([0.5, np.nan])}, "scores: 3 numbers -> 2 numbers"),
        ({"verdict": "better"}, "verdict: 'worse' -> 'better'"),
        ({"verdict": np.array([1.0])}, "verdict: 'worse' -> 1 numbers"),
        ({"new": np.array([1.0])}, "not in A: new"),
    ],
)
def test_a_difference_is_found(result, change, line):
    code, said = result(BASE | change)
    assert code == 1
    assert line in said


def test_a_missing_key_is_found(result):
    code, said = result({k: v for k, v in BASE.items() if k != "scores"})
    assert code == 1
    assert "not in B: scores" in said


def test_accepted_differences_are_listed_and_no_others(result):
    accept = '[[accept]]\ncase = "aud*"\nkey = "audit/*"\nreason = "rounded before"\n'
    code, said = result(BASE | {"audit/fpr[group=Asian F]": np.array([0.2])}, accept)
    assert code == 0
    assert "accepted: audit/fpr[group=Asian F]: " in said
    assert "rounded before" in said


def test_what_is_not_accepted_still_fails(result):
    accept = '[[accept]]\ncase = "other"\nkey = "*"\nreason = "elsewhere"\n'
    assert result(BASE | {"verdict": "better"}, accept)[0] == 1


def test_a_case_on_one_side_is_found(tmp_path, capsys):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    values.write(tmp_path / "a" / "audits.parquet", BASE)
    assert compare(tmp_path / "a", tmp_path / "b") == 1
    assert "audits: only in" in capsys.readouterr().out


def test_rows_are_known_by_what_identifies_them():
    rows = [
        {"group": "A", "metric": "fpr", "value": 0.1, "reason": "only 3 pairs: not enough data"},
        {"group": "B", "metric": "fpr", "value": None, "enough": False},
    ]
    flat = values.flatten("t", rows)
    assert flat.keys() == values.flatten("t", rows[::-1]).keys()
    assert flat["t[group=A,metric=fpr]/value"] == [0.1]
    assert not any(key.endswith("reason") for key in flat)
