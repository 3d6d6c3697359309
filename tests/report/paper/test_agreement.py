"""Agreement and claims: counted by hand on the paper's own numbers and on changed ones."""

from __future__ import annotations

import math

import pytest

from faircal.report.paper import Claim, reproduction
from faircal.report.paper.claims import CONTESTS, ClaimSide


def test_the_papers_own_numbers_agree_in_every_cell(make_store):
    made = reproduction(make_store("rfw"))
    assert [tuple(line) for line in made.agreement] == [
        ("Accuracy on RFW", 48, 48, 48),
        ("Fairness of calibration on RFW", 64, 64, 64),
        ("Predictive equality on RFW", 96, 96, 96),
        ("Equal opportunity on RFW", 96, 96, 96),
        ("In all", 304, 304, 304),
    ]
    assert [tuple(line) for line in made.differences] == [
        ("Calibration error by group on RFW", 80, 0, 0)
    ]


def test_every_published_number_counts_once(make_store):
    both = [reproduction(make_store(key)) for key in ("rfw", "bfw")]
    assert sum(made.agreement[-1].cells for made in both) == 608
    apart = [line for made in both for line in made.differences]
    apart += reproduction(make_store("ijbc")).differences
    assert sum(line.cells for line in apart) == 224 + 208


@pytest.mark.parametrize(("by", "one", "two"), [(1, 8, 8), (1.5, 0, 8), (-2, 0, 8), (2.5, 0, 0)])
def test_differences_are_counted_in_published_standard_deviations(make_store, by, one, two):
    def shifted(quantity, printed):
        moved = (quantity.feature, quantity.metric) == ("facenet-webface", "auroc")
        return printed.mean + by * printed.std if moved else printed.mean

    made = reproduction(make_store("bfw", shifted))
    assert made.agreement[0] == ("Accuracy on BFW", 48, 40 + one, 40 + two)
    value = made.tables[1].lines[0].values[0]
    assert value.difference == pytest.approx(by)


def test_numbers_without_a_standard_deviation_are_apart(make_store):
    made = reproduction(make_store("ijbc", lambda q, p: p.mean + 0.001 * (q.method == "gst")))
    assert made.agreement == []
    assert [line.cells for line in made.differences] == [64, 48, 96]
    assert made.differences[0].largest == pytest.approx(0.001)
    assert made.differences[0].median == 0


def test_the_paper_bears_its_claims_out_in_these_counts():
    def counts(*datasets):
        found = [[contest.count(ClaimSide.papers(key)) for contest in CONTESTS] for key in datasets]
        return [tuple(map(sum, zip(*same, strict=True))) for same in zip(*found, strict=True)]

    auroc, tpr, mean, apart, equality, opportunity, baseline, oracle = counts("rfw", "bfw")
    assert (auroc, tpr, mean, apart) == ((4, 4), (7, 8), (3, 4), (12, 12))
    assert (equality, opportunity) == ((18, 24), (0, 24))
    assert (baseline, oracle) == ((15, 24), (31, 52))
    auroc, tpr, mean, apart, equality, *_ = counts("ijbc")
    assert (auroc[0] + tpr[0], auroc[1] + tpr[1]) == (4, 6)
    assert (mean[0] + apart[0], mean[1] + apart[1]) == (8, 8)
    assert equality == (11, 12)


@pytest.mark.parametrize("dataset", ["rfw", "bfw", "ijbc"])
def test_the_papers_own_numbers_bear_out_its_claims(make_store, dataset):
    claims = reproduction(make_store(dataset)).claims
    assert len(claims) == 8
    for claim in claims:
        if claim.published_of and claim.of:
            assert (claim.won, claim.of) == (claim.published_won, claim.published_of)
        assert claim.holds in (True, None)
        assert "among" not in claim.text
    # Not judged: equal opportunity, which the paper does not claim.
    judged = {"rfw": 7, "bfw": 7, "ijbc": 6}[dataset]
    assert sum(claim.holds is True for claim in claims) == judged


def test_a_claim_that_fails_here(make_store):
    def worse(quantity, printed):
        bad = quantity.method == "faircal" and quantity.metric == "auroc"
        return printed.mean - 0.2 if bad else printed.mean

    claim = reproduction(make_store("rfw", worse)).claims[0]
    assert (claim.won, claim.of, claim.published_won, claim.published_of) == (0, 2, 2, 2)
    assert claim.holds is False


def test_a_tie_as_printed_is_best(make_store):
    def tied(quantity, printed):
        return (
            0.9 + 1e-6 * (quantity.method == "fsn") if quantity.metric == "auroc" else printed.mean
        )

    claim = reproduction(make_store("rfw", tied)).claims[0]
    assert (claim.won, claim.of) == (2, 2)


def test_a_method_the_paper_lacks_takes_no_part(make_store):
    rows = [row for row in make_store("rfw").results.rows if row.method == "faircal"]
    better = [row._replace(method="multipass", clusters="", value=0.99) for row in rows]
    claim = reproduction(make_store("rfw", extra=better)).claims[0]
    assert (claim.won, claim.of) == (2, 2)


def test_fewer_methods_are_said(make_store):
    def some(quantity, printed):
        return printed.mean if quantity.method in ("baseline", "fsn", "faircal") else None

    made = reproduction(make_store("rfw", some))
    assert made.claims[0].text.endswith("; among the 3 of the paper's 7 methods that were run")
    # The same methods on both sides: of these three the paper's FairCal is best in FNR, too.
    assert made.claims[5].published_won > 0
    assert (made.claims[7].of, made.claims[7].holds) == (0, None)
    assert "Methods of the paper that were not run: AGENDA, PASS, FTC, GST, Oracle." in made.notes


def test_without_faircal_nothing_can_be_said(make_store):
    def none(quantity, printed):
        return printed.mean if quantity.method != "faircal" else None

    claims = reproduction(make_store("rfw", none)).claims
    assert [claim.holds for claim in claims] == [None] * 8
    assert all(claim.of == 0 for claim in claims)


@pytest.mark.parametrize(
    ("counts", "holds"),
    [
        ((1, 2, 3, 4), False),
        ((3, 4, 6, 8), True),
        ((0, 0, 1, 1), None),
        ((1, 1, None, None), None),
        ((0, 6, 0, 12), None),
    ],
)
def test_a_claim_holds_in_at_least_the_papers_share(counts, holds):
    assert Claim("x", *counts).holds is holds


def test_on_simulated_data_nothing_is_compared(make_store):
    made = reproduction(make_store("rfw", simulated=True))
    assert (made.agreement, made.differences) == ([], [])
    assert all(claim.published_won is None and claim.holds is None for claim in made.claims)
    assert made.claims[0].won == 2
    for table in made.tables:
        assert table.simulated
        assert all(math.isnan(v.published) for line in table.lines for v in line.values)
    assert made.tables[1].headings[0].block == "facenet-vggface2"


def test_the_figures_are_drawn_when_asked_for(make_store, monkeypatch):
    asked = []

    def paper_figures(store, dataset, picture_of):
        assert picture_of("no-such-image") is None
        asked.append((store, dataset))
        return ["figure"]

    monkeypatch.setattr("faircal.report.figures.paper_figures", paper_figures)
    store = make_store("bfw")
    made = reproduction(store)
    assert asked == []
    assert made.figures == made.figures == ["figure"]
    assert asked == [(store, "bfw")]
