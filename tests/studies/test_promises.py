"""The other parts of the study of uncertainty: promised thresholds, the far tail, regions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betainc
from scipy.stats import norm

from studies.uncertainty import guarantee, regions, tail
from studies.uncertainty.design import make_design
from studies.uncertainty.page import page
from studies.uncertainty.part import Kept
from studies.uncertainty.tail_models import MODELS, RATE, Cosines, Sums


def test_promises_are_counted():
    found = {}
    for true in ([0.009, 0.004], [0.011, 0.004], [0.02, float("nan")], [float("nan")] * 2):
        guarantee._count(found, "one/0.01/0.05", true, 0.01)
    assert found["one/0.01/0.05"] == {"draws": 4, "told": 2, "broken": 2, "of_rate": 2.0}


@pytest.mark.parametrize("broken", [40, 90])
def test_the_page_says_which_promises_are_broken_too_often(broken):
    tally = {"draws": 1000, "told": 900, "broken": broken, "of_rate": 450.0}
    spec = {"population": "normal, mild", "people": 30, "images": 5}
    text = page({"guarantee": [Kept(spec, 0, {"one/0.01/0.05": tally})]}, {})
    verdict = "ok" if broken == 40 else "broken too often"
    told = f"| 1 % | 0.05 | 1,000 | {broken / 10:.1f} | 6.7 | 90.0 | 0.50 | {verdict} |"
    assert told in text


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
