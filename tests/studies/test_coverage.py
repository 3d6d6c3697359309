"""The coverage study: truths are true, tallies count, cells repeat, the page says what is kept."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import norm

from faircal.metrics import Ranking, auroc, brier, ece, ks, nll
from faircal.metrics.intervals import Uncertainty
from studies.__main__ import main
from studies.uncertainty import coverage_page, pairwise, running
from studies.uncertainty.coverage import cell
from studies.uncertainty.design import make_design
from studies.uncertainty.laws import Law, together
from studies.uncertainty.page import page, picture_name
from studies.uncertainty.part import Kept, key
from studies.uncertainty.parts import PARTS
from studies.uncertainty.populations import APART, POPULATIONS, Centroids, Effects
from studies.uncertainty.settings import Draw, make_setting
from studies.uncertainty.tallies import Tally, added

SMALL = {"population": "normal, medium", "people": 8, "images": 2, "imposters": 0}


def test_designs_hold_all_pairs_or_so_many():
    design = make_design(8, 0)  # 1, 2, … 6, 1, 2 images
    assert np.bincount(design.owner).tolist() == [1, 2, 3, 4, 5, 6, 1, 2]
    assert design.genuine.shape[1] == sum(m * (m - 1) // 2 for m in (1, 2, 3, 4, 5, 6, 1, 2))
    left, right = design.owner[design.imposter]
    assert (left != right).all()
    assert len(left) + design.genuine.shape[1] == 24 * 23 // 2
    assert make_design(8, 3, 100).imposter.shape == (2, 100)
    assert design.couple.max() + 1 == 8 * 7 // 2


@pytest.mark.parametrize("name", ["normal, strong", "wolves, 5 %"])
def test_drawn_scores_follow_the_law(name):
    population = POPULATIONS[name]
    law = population.law(0.3)
    design = make_design(400, 2, 30_000)
    drawn = [population.draw(np.random.default_rng(seed), design, 0.3) for seed in range(12)]
    imposter, genuine = (np.concatenate(scores) for scores in zip(*drawn, strict=True))
    for scores, mass in ((imposter, law.imposter), (genuine, law.genuine)):
        assert mass.sum() == pytest.approx(1)
        mean = mass @ law.scores
        assert scores.mean() == pytest.approx(mean, abs=0.08)
        assert scores.var() == pytest.approx(mass @ (law.scores - mean) ** 2, rel=0.08)
    at = law.threshold(0.01)
    assert (imposter >= at).mean() == pytest.approx(law.fpr(at), rel=0.2)
    assert (genuine < at).mean() == pytest.approx(law.fnr(at), abs=0.03)


def test_normal_laws_are_exact():
    law = Effects(0.1, 0.05, 0.3).law(0.0)
    assert law.threshold(0.01) == pytest.approx(norm.isf(0.01), abs=2e-3)
    assert law.auroc == pytest.approx(norm.cdf(3.5 / 2**0.5), abs=1e-6)


def test_counted_laws_agree_with_other_people(monkeypatch):
    monkeypatch.setattr("studies.uncertainty.populations._MANY", 800)
    monkeypatch.setattr("studies.uncertainty.populations._TIMES", 1)
    population = Centroids(12, 0.5, 0.6)
    law = population.law(0.0)
    imposter, genuine = population.draw(np.random.default_rng(0), make_design(600, 2), 0.0)
    at = law.threshold(0.05)
    assert (imposter >= at).mean() == pytest.approx(0.05, rel=0.1)
    assert (genuine < at).mean() == pytest.approx(law.fnr(at), abs=0.05)


def test_true_calibration_errors_are_those_of_many_pairs():
    population, share, tilt = POPULATIONS["wolves, 10 %"], 0.3, 0.7
    law = population.law(0.3)
    true = law.calibration(population.probability(law.scores, share, tilt), share)
    rng = np.random.default_rng(0)
    n = 200_000
    genuine = np.arange(n) < share * n
    cells = [rng.choice(len(m), n, p=m / m.sum()) for m in (law.imposter, law.genuine)]
    score = law.scores[np.where(genuine, cells[1], cells[0])]
    said = population.probability(score, share, tilt)
    for name, metric in (("ks", ks), ("ece", ece), ("brier", brier), ("nll", nll)):
        assert true[name] == pytest.approx(metric(said, genuine), rel=0.05), name
    assert law.auroc == pytest.approx(auroc(Ranking.of(score, genuine)), abs=0.002)


def test_plain_groups_are_calibrated_and_alike_where_said():
    truths = make_setting("wolves, 5 %", 8, 2, 0, False).truths()
    zero = [name for (_, _, name), (truth, _) in truths.items() if truth == 0]
    assert sorted(set(zero)) == ["ece", "fpr_aad", "fpr_gap", "fpr_mad", "fpr_std", "ks", "ks_aad"]
    differ = make_setting("wolves, 5 %", 8, 2, 0, True).truths()
    assert min(truth for truth, _ in differ.values()) > 0
    assert differ["plain", "0.01", "fpr"] == pytest.approx((0.01, 112 * 0.01), rel=0.01)


def test_all_groups_together():
    edges = np.array([0.0, 1.0, 2.0])
    laws = [Law(edges, np.array([p, 1 - p]), np.array([0.0, 1.0])) for p in (0.9, 0.6)]
    assert together(laws, [1, 3], [1, 1]).fpr(1.0) == pytest.approx((0.1 + 3 * 0.4) / 4)


def test_a_draw_puts_people_of_groups_apart():
    setting = make_setting("normal, medium", 8, 2, 0, True)
    drawn = Draw.of(setting, np.random.default_rng(0))
    people = [set(drawn.people.left[drawn.rows(g)]) for g in "ABCD"]
    assert [min(p) for p in people] == [0, 8, 16, 24]
    assert not people[0] & people[1]
    shifted = drawn.score[drawn.rows("D")], drawn.score[drawn.rows("A")]
    assert len(shifted[0]) == len(shifted[1])
    left, right = drawn.people.left, drawn.people.right
    assert ((left == right) == drawn.genuine).all()


def test_tallies_count_misses_on_both_sides_and_add_up():
    tally = Tally(truth=0.5, errors=3)
    for ends in ((0.4, 0.6), (0.6, 0.7), (0.1, 0.2), (float("nan"), float("nan"))):
        tally.add(ends, (0.45, 0.5))
    row = tally.row()
    assert (row["draws"], row["undefined"], row["covered"], row["above"]) == (3, 1, 1, 1)
    assert row["width"] == pytest.approx(0.4)
    total = added([row, row])
    assert (total["draws"], total["truth"], total["errors"]) == (6, 0.5, 3)
    assert total["pair_covered"] == 6


def test_pairwise_intervals_cover_independent_pairs():
    """They are textbook intervals: right where pairs are independent."""
    covered = np.zeros(3)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        said = rng.random(500)
        genuine = rng.random(500) < said
        low, high = pairwise.of_loss("brier", said, genuine)
        covered[0] += low <= 1 / 6 <= high
        low, high = pairwise.of_auroc(rng.normal(size=300), rng.normal(1, 1, size=60))
        covered[1] += low <= norm.cdf(0.5**0.5) <= high
        low, high = pairwise.of_rate(rng.binomial(400, 0.05) / 400, 400)
        covered[2] += low <= 0.05 <= high
    assert (covered / 200 > 0.91).all(), covered


def test_a_cell_repeats_and_counts_every_draw():
    spec = {**SMALL, "differ": True, "draws": 2}
    one, two = cell(spec, 1), cell(spec, 1)
    assert one == two
    assert one != cell({**spec, "draws": 1}, 2)
    json.dumps(one)
    assert set(one) == set(coverage_page._TITLES)
    for name, tally in one.items():
        assert tally["draws"] + tally["undefined"] == 2 * (2 if name.startswith("plain") else 1)
        assert tally["covered"] + tally["above"] <= tally["draws"]


def test_gaps_have_the_intervals_of_the_package(monkeypatch):
    asked = []
    made = Uncertainty.interval

    def asking(self, group, condition, metric, level=0.95):
        asked.append((group, condition, metric))
        return made(self, group, condition, metric, level)

    monkeypatch.setattr(Uncertainty, "interval", asking)
    found = cell({**SMALL, "differ": True, "draws": 1}, 1)
    assert ("all", "", "fpr_gap") in asked
    assert found["all/0.01/fpr_gap"]["draws"] == 1


def test_nobody_with_two_images_leaves_rates():
    found = cell({**SMALL, "images": 1, "differ": False, "draws": 1}, 0)
    assert {name.rpartition("/")[2].partition("_")[0] for name in found} == {"fpr"}


def row(**counts):
    full = {"truth": 0.01, "errors": 20.0, "draws": 100, "undefined": 0, "covered": 95}
    full |= {"above": 2, "width": 1.0, "pair_draws": 100, "pair_covered": 40, "pair_width": 0.5}
    return full | counts


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ({}, "ok"),
        ({"covered": 92}, "too low"),
        ({"covered": 99, "above": 0}, "too high"),
        ({"covered": 99, "above": 0, "errors": 9.0}, "ok"),
        ({"covered": 99, "above": 0, "truth": 0.0}, "ok"),
        ({"draws": 0, "covered": 0, "above": 0, "undefined": 100}, "undefined"),
    ],
)
def test_the_bar(counts, verdict):
    kept = Kept({**SMALL, "differ": True}, 0, {"plain/0.01/fpr": row(**counts)})
    (line,) = coverage_page.lines([kept])
    assert line.verdict == verdict


def test_the_page_adds_up_seeds_and_tells_failures():
    spec = {**SMALL, "differ": True}
    cells = [
        Kept(spec, seed, {"plain/0.01/fpr": row(covered=n, above=3), "plain//ks": row()})
        for seed, n in enumerate((93, 90))
    ]
    text = page({"coverage": cells}, {"coverage": "x.png"})
    assert "images/x.png" in text
    assert "| 2 | 1 | 0 | 1 |" in text
    told = "| FPR 1 % | normal, medium; 8 × 2; differ | 0.01 | 20.0 | 200 | 91.5 | 3.0 | 5.5"
    assert told in text
    assert "nan" not in text


def test_the_page_agrees_with_the_kept_rows():
    if not running.RESULTS.exists():
        pytest.skip("the study was not run yet")
    kept = running.read(running.RESULTS)
    pictures = {name: picture_name(name) for name, part in PARTS.items() if part.picture}
    found = {n: p for n, p in pictures.items() if (running.DOCS / "images" / p).exists()}
    text = (running.DOCS / "study-uncertainty.md").read_text("utf-8")
    assert text == page(kept, found), "run python -m studies uncertainty --write"


def test_kept_cells_are_not_run_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(running, "RESULTS", tmp_path / "rows.jsonl")
    monkeypatch.setattr(running, "DOCS", tmp_path / "docs")
    spec = {**SMALL, "differ": True, "draws": 1}
    task = ("coverage", spec, 0)
    running._run([task], running.RESULTS, 1)
    running._run([task, ("coverage", spec, 1)], running.RESULTS, 1)
    assert "1 of 2 cells are kept" in capsys.readouterr().err
    kept = running.read(running.RESULTS)["coverage"]
    assert [cell.seed for cell in kept] == [0, 1]
    assert main(["uncertainty", "--write"]) == 0
    assert (tmp_path / "docs" / "images" / "study-uncertainty-coverage.png").exists()
    assert "FPR gap, 1 %" in (tmp_path / "docs" / "study-uncertainty.md").read_text("utf-8")


@pytest.mark.parametrize("name", PARTS)
def test_parts_have_cells_once_each(name):
    for quick in (False, True):
        cells = PARTS[name].cells(quick)
        assert cells
        keys = {key(name, spec, seed) for spec, seed in cells}
        assert len(keys) == len(cells)
        assert json.loads(json.dumps([spec for spec, _ in cells])) == [spec for spec, _ in cells]


def test_every_population_is_studied_at_thirty_people():
    specs = [spec for spec, _ in PARTS["coverage"].cells(False)]
    thirty = {spec["population"] for spec in specs if spec["people"] == 30}
    assert thirty == set(POPULATIONS) == set(APART)


@pytest.mark.parametrize("wrong", [["nonsense"], ["--jobs", "0"]])
def test_wrong_use_is_told(wrong, capsys):
    with pytest.raises(SystemExit):
        main(["uncertainty", *wrong])
    assert "expected" in capsys.readouterr().err
