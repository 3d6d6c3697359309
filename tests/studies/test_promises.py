"""The other parts of the study of uncertainty: promised thresholds, the far tail, regions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import betainc
from scipy.stats import norm

from studies.uncertainty import crowds, guarantee, regions, tail
from studies.uncertainty.crowds import CROWDS
from studies.uncertainty.design import make_design
from studies.uncertainty.page import page
from studies.uncertainty.part import Kept
from studies.uncertainty.tail_models import MODELS, RATE, Cosines, Sums


def test_promises_are_counted_of_those_given():
    tally: dict[str, float] = {}
    nothing = float("nan")
    for true, extrapolated in ((0.9, 0), (1.5, 1), (2.5, 0), (nothing, 1)):
        guarantee.add(tally, true, extrapolated, covered=true < 2, width=0.5)
    assert tally == {
        "draws": 4, "given": 3, "extrapolated": 1, "broken": 2, "times": 4.0, "of_rate": 4.9,
        "covered": 2, "width": 2.0,
    }  # fmt: skip
    line = guarantee.Line("normal", 60, 0.01, tally)
    assert line.share("broken", "given") == pytest.approx(2 / 3)
    assert line.share("times", "broken") == 2


@pytest.mark.parametrize(("broken", "covered"), [(3, 930), (11, 930), (3, 890)])
def test_the_page_says_first_where_it_fails(broken, covered):
    names = ("draws", "given", "extrapolated", "broken", "times", "of_rate", "covered", "width")
    values = (1000, 90, 0, broken, 1.5 * broken, 45.0, covered, 1000.0)
    tally = dict(zip(names, values, strict=True))
    spec = {"crowd": "normal", "people": 60}
    text = page({"guarantee": [Kept(spec, 0, {"0.01": tally})]}, {})
    fails = broken == 11 or covered == 890
    verdict = "broken too often" if broken == 11 else "covers too little" if fails else "ok"
    shown = f"| 1,000 | 9.0 | 0.0 | {100 * broken / 90:.1f} | 11.1 | {broken / 10:.1f} | 1.5 | 0.50"
    assert f"{shown} | {covered / 10:.1f} | {verdict} |" in text
    assert text.index(f"In {int(fails)} of 1 settings") < text.index("All of it")


@pytest.mark.parametrize("name", ["0.3 · t₃", "wolves, 10 %, scores × 1.8", "ties"])
def test_crowds_draw_by_their_law(name, monkeypatch):
    monkeypatch.setattr(crowds, "_MANY", 200_000)
    crowd = replace(CROWDS[name])
    at = crowd.threshold(0.02)
    rates = [(crowd.draw(np.random.default_rng(seed), 200)[0] >= at).mean() for seed in range(16)]
    error = np.std(rates) / 4
    assert abs(np.mean(rates) - crowd.fpr(at)) < 4 * error
    assert 0.01 < crowd.fpr(at) < 0.03


def test_crowds_are_as_uneven_as_they_say():
    rng = np.random.default_rng(0)
    _, left, right = CROWDS["one dominating"].draw(rng, 100)
    of_person = np.bincount(np.concatenate([left, right])) / len(left)
    assert of_person[0] == pytest.approx(2 * 0.2 * 0.8 / (1 - 0.2**2), abs=0.05)
    _, left, right = CROWDS["siblings"].draw(rng, 100)
    assert ((left ^ 1) == right).mean() == pytest.approx(0.01, abs=0.005)
    _, left, right = CROWDS["two sites"].draw(rng, 100)
    assert (left % 2 == right % 2).all()


def test_tail_truths():
    assert Sums(0.1, 0.2).truth == pytest.approx(norm.isf(RATE), abs=1e-4)
    # Of two directions in d dimensions, P(cosine >= t) is half an incomplete beta function.
    at = Cosines(64).truth
    assert betainc(63 / 2, 1 / 2, 1 - at**2) / 2 == pytest.approx(RATE, rel=0.03)
    design = make_design(300, 1)
    drawn = np.concatenate(
        [Cosines(8).draw(np.random.default_rng(seed), design) for seed in range(12)]
    )
    assert (drawn >= 0.5).mean() == pytest.approx(betainc(7 / 2, 1 / 2, 0.75) / 2, rel=0.05)


@pytest.mark.parametrize("name", ["Laplace, people 20 %", "wolves, 5 %, + 1.5"])
def test_tail_models_draw_what_they_say(name):
    model = MODELS[name]
    scores = model.draw(np.random.default_rng(0), make_design(400, 2, 50_000))
    assert len(scores) == 50_000
    assert (scores >= model.truth).mean() <= 1e-3
    expected = 1 + (2 * 0.05 * 0.95 * 1.5**2 if "wolves" in name else 0)
    assert scores.var() == pytest.approx(expected, rel=0.15)


def test_regions_draw_an_unfair_one_where_asked():
    spec = {"model": "wolves", "people": 60, "rate": 0.01, "effect": 1.5}
    data, unfair = regions._draw(spec, [0])
    assert unfair.mean() == pytest.approx(0.2)
    score, left, right = data.scores, data.pairs.left, data.pairs.right
    imposter = ~data.genuine
    within = imposter & unfair[left] & unfair[right]
    gap = score[within].mean() - score[imposter & ~(unfair[left] & unfair[right])].mean()
    assert gap == pytest.approx(1.5 / 8, abs=0.1)
    assert not regions._draw({**spec, "effect": 0.0}, [0])[1].any()


@pytest.mark.parametrize("part", [guarantee.GUARANTEE, tail.TAIL, regions.REGIONS])
def test_cells_repeat_and_have_a_section_and_a_picture(part):
    from matplotlib import pyplot as plt

    spec, seed = part.cells(True)[0]
    spec = {**spec, "draws": 2}
    values = part.cell(spec, seed)
    assert values == part.cell(spec, seed)
    kept = [Kept(spec, seed, values)]
    assert "nan" not in part.section(kept)
    figure = part.picture(kept, plt)
    assert figure is not None
    plt.close(figure)
