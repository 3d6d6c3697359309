"""On a GPU: steps that are recorded are the steps themselves."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

import faircal
from faircal.methods.training import session

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

KINDS = {
    "ftc": lambda **more: faircal.FTC(epochs=8, **more),
    "ftc-code": lambda **more: faircal.FTC(preset="paper-code", epochs=8, **more),
    "agenda": lambda **more: faircal.AGENDA(identity_epochs=3, episodes=3, **more),
    "multipass": lambda **more: faircal.MultiPASS(identity_epochs=3, episodes=3, **more),
}


@pytest.fixture(scope="module")
def parts():
    return faircal.simulate("small", seed=0).split(test_fold=5)


@pytest.fixture(params=KINDS)
def make(request):
    return KINDS[request.param]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one.weights_, other.weights_, strict=True))


def test_recorded_steps_have_the_bits_of_plain_ones(make, parts, monkeypatch):
    recorded = make().fit(parts[0])

    class Plain:
        def __init__(self, step, *_):
            self.step = step

        def take(self, times):
            for _ in range(times):
                self.step()

    monkeypatch.setattr(session, "Recorded", Plain)
    assert same(recorded, make().fit(parts[0]))


def test_repeatable(make, parts):
    assert same(make().fit(parts[0]), make().fit(parts[0]))


def test_scores_are_those_of_a_cpu(make, parts):
    model = make(device="cuda").fit(parts[0])
    found = model.decision_scores(parts[1])
    model.device = "cpu"
    if not getattr(model.recipe_, "dropout_when_scoring", False):
        np.testing.assert_allclose(model.decision_scores(parts[1]), found, atol=1e-5)


def test_interrupted_and_resumed(make, parts, tmp_path, monkeypatch):
    monkeypatch.setattr("faircal._base.jobs.EVERY", 0.0)
    calls = []

    def stop(*call):
        calls.append(call)
        if len(calls) == 5:
            raise KeyboardInterrupt

    path = tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        make().fit(parts[0], progress=stop, checkpoint=path)
    assert same(make().fit(parts[0], checkpoint=path), make().fit(parts[0]))


def test_one_training_at_a_time(make, parts):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(3) as pool:
        models = list(pool.map(lambda _: make().fit(parts[0]), range(3)))
    assert same(models[0], models[1])
    assert same(models[0], models[2])
