"""The paper's numbers: all there, in our words, main table before appendix."""

from __future__ import annotations

import csv
import math
from collections import Counter
from importlib.resources import files

import pytest

from faircal.report.paper.published import (
    Quantity,
    entries,
    features,
    groups,
    look_up,
    properties,
)

#: Rows of each table, as method-details 5.1 lists them.
ROWS = {
    "global_performance_beta": 96,
    "fair_calibration_ks": 128,
    "predictive_equality_at_fpr_beta": 192,
    "subgroup_calibration_rfw_ks_ethnicity": 80,
    "subgroup_calibration_bfw_ks_att": 144,
    "equal_opportunity_at_fnr_beta": 192,
    "fair_calibration_ks_ijbc": 64,
    "global_performance_beta_ijbc": 48,
    "predictive_equality_at_fpr_beta_ijbc": 96,
    **{f"global_performance_beta_{end}": 32 for end in ("auroc", "1e-3fpr", "1e-2fpr")},
    **{f"fair_calibration_ks_{end}": 32 for end in ("mean", "aad", "mad", "std")},
    **{f"predictive_equality_at_fpr_beta_{end}": 64 for end in ("aad", "mad", "std")},
    **{f"equal_opportunity_at_fpr_beta_{end}": 64 for end in ("aad", "mad", "std")},
}


def test_every_row_of_the_paper_is_there():
    assert Counter(entry.table for entry in entries()) == ROWS
    assert sum(ROWS.values()) == len(entries()) == 1648


def test_numbers_are_the_printed_percent_as_fractions():
    text = files("faircal.report.paper").joinpath("published.csv").read_text(encoding="utf-8")
    for row, entry in zip(csv.DictReader(text.splitlines()), entries(), strict=True):
        assert f"{100 * entry.printed.mean:.2f}" == f"{float(row['mean']):.2f}"
        if row["std"]:
            assert f"{100 * entry.printed.std:.2f}" == f"{float(row['std']):.2f}"
        else:
            assert math.isnan(entry.printed.std)


@pytest.mark.parametrize(
    ("group", "condition", "metric", "mean", "std"),
    [
        ("global", "", "auroc", 0.8826, 0.0019),
        ("global", "fpr=0.001", "tpr", 0.1842, 0.0128),
        ("all", "", "ks_mean", 0.0637, None),
        ("all", "global_fpr=0.01", "fpr_mad", 0.0102, None),
        ("all", "global_fnr=0.01", "fnr_std", 0.0067, 0.0015),
        ("African", "", "ks", 0.0616, math.nan),
        ("global", "", "ks", 0.0078, math.nan),
    ],
)
def test_numbers_are_found_by_our_names(group, condition, metric, mean, std):
    printed = look_up(Quantity("rfw", "facenet-vggface2", "baseline", group, condition, metric))
    assert printed.mean == mean
    if std is not None:
        assert printed.std == pytest.approx(std, nan_ok=True)


@pytest.mark.parametrize(
    ("method", "condition", "metric", "mean", "std"),
    [
        ("agenda", "", "ks_mean", 0.1321, 0.0104),
        ("agenda", "", "ks_mad", 0.1291, 0.0047),
        ("pass", "", "ks_mean", 0.1316, 0.0290),
        ("pass", "global_fpr=0.01", "fpr_mad", 0.1018, 0.0231),
    ],
)
def test_means_that_the_appendix_cuts_short_are_those_of_the_main_tables(
    method, condition, metric, mean, std
):
    found = look_up(Quantity("bfw", "facenet-webface", method, "all", condition, metric))
    assert found == (mean, std)


def test_what_the_paper_does_not_print_is_nan():
    found = look_up(Quantity("rfw", "arcface", "faircal", "global", "", "auroc"))
    assert math.isnan(found.mean)
    assert math.isnan(found.std)


def test_means_and_standard_deviations_are_joined():
    quantities = {entry.quantity for entry in entries()}
    with_std = [q for q in quantities if look_up(q).std > 0]
    assert (len(quantities), len(with_std)) == (1040, 608)


def test_features_and_groups_in_the_papers_order():
    assert features("rfw") == ("facenet-vggface2", "facenet-webface")
    assert features("bfw") == ("facenet-webface", "arcface")
    assert groups("rfw") == ("African", "Asian", "Caucasian", "Indian")
    assert groups("bfw")[:3] == ("African Female", "African Male", "Asian Female")
    assert groups("ijbc") == ()


def test_properties():
    rows = properties()
    assert len(rows) == 16
    assert [method for _, method, has in rows if all(has)] == ["FairCal"]
    assert rows[-2] == ("post-training", "Oracle", [True, True, True, False, False, True])
