"""Tiny trainings that pass through all that a real one does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from faircal._base.jobs import Job
from faircal.methods.debiasing import AGENDA, MultiPASS
from faircal.methods.ftc import FTC

FTC_SCALED = {"hidden": (2, 1.5), "epochs": 3, "batch_size": 16}
SCALED = {
    "width": 4,
    "identity_epochs": 2,
    "episodes": 3,
    "restart_every": 2,
    "discriminator_epochs": 2,
    "debias_epochs": 1,
    "update_epochs": 2,
    "stop_at": 0.45,  # some runs of stage 4 stop early, at once or halfway, and others do not
    "update_rate": 0.03,
    "batch_size": 16,
}


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Networks this small are slower on two."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def empty_is_nan(monkeypatch):
    """Let `numpy.empty` give NaN, so that what is never written shows."""
    monkeypatch.setattr(np, "empty", lambda shape, dtype=float: np.full(shape, np.nan, dtype))


@pytest.fixture
def new_session():
    """Return a function that makes a session on the CPU."""
    pytest.importorskip("torch")
    from faircal.compute.device import choose_device
    from faircal.methods.training.session import TrainingSession

    def build(seed=0, job=None, mixed_precision=False, device="cpu"):
        return TrainingSession(choose_device(device), seed, job or Job(), mixed_precision)

    return build


@pytest.fixture
def pairs():
    """Arguments of `comparison.train`: 40 pairs of 30 images in three groups, some in none."""
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(30, 8)).astype(np.float32)
    left, right = rng.integers(0, 30, (2, 40))
    group = rng.integers(-1, 3, 40).astype(np.int32)
    return vectors, left, right, rng.random(40) < 0.5, group, 3


@pytest.fixture
def images():
    """Arguments of `debiasing.train`: 45 images of 9 people; half their groups can be told."""
    rng = np.random.default_rng(4)
    identity = rng.permutation(np.arange(45) % 9).astype(np.int32)
    attributes = {
        "ethnicity": (identity % 3).astype(np.int32),
        "gender": (identity % 2).astype(np.int32),
    }
    vectors = rng.normal(size=(9, 6))[identity] + rng.normal(size=(45, 6))
    return vectors.astype(np.float32), identity, attributes


@pytest.fixture
def compare(pairs, new_session):
    """Return a function that trains a tiny FTC."""
    from faircal.methods.training.comparison import train
    from faircal.methods.training.session import working_on

    def run(*data, seed=0, device="cpu", mixed_precision=False, job=None, **changes):
        recipe = replace(FTC.presets["paper"], **(FTC_SCALED | changes))
        session = new_session(seed, job, mixed_precision, device)
        with working_on(session.device), session:
            return train(session, recipe, *(data or pairs))

    return run


@pytest.fixture
def debiasing_recipe():
    """Return a function that gives a tiny recipe of AGENDA or MultiPASS."""

    def build(method=AGENDA, preset="paper", **changes):
        small = {"discriminator": (5,) if method is AGENDA else (5, 4)}
        return replace(method.presets[preset], **(SCALED | small | changes))

    return build


@pytest.fixture
def new_debiasing(images, new_session, debiasing_recipe):
    """Return a function that makes a `Debiasing`, not yet run."""
    from faircal.methods.training.debiasing import Debiasing

    def build(*data, session=None, recipe=None, **changes):
        recipe = recipe or debiasing_recipe(**changes)
        return Debiasing(session or new_session(), recipe, *(data or images))

    return build


@pytest.fixture
def debias(images, debiasing_recipe, new_session):
    """Return a function that trains a tiny AGENDA, or MultiPASS."""
    from faircal.methods.training.debiasing import train
    from faircal.methods.training.session import working_on

    def run(*data, seed=0, device="cpu", mixed_precision=False, job=None, **changes):
        session = new_session(seed, job, mixed_precision, device)
        with working_on(session.device), session:
            return train(session, debiasing_recipe(**changes), *(data or images))

    return run


@pytest.fixture(params=["ftc", "agenda", "multipass", "multipass-code"])
def training(request, compare, debias, images):
    """Each kind of training in turn, as a function of seed, job and so on."""
    if request.param == "ftc":
        return compare
    vectors, identity, attributes = images
    kind = {"method": MultiPASS}
    if request.param == "agenda":
        kind, attributes = {}, {"ethnicity": attributes["ethnicity"]}
    if request.param == "multipass-code":
        kind["preset"] = "paper-code"

    def run(**options):
        return debias(vectors, identity, attributes, **kind, **options)

    return run
