"""What all tests share: skipping, Hypothesis, trainings that take a moment, commands, a browser."""

from __future__ import annotations

import os
import shutil
import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.forked import Commands

# No test depends on the clock: a busy machine is no fault of the code. In CI the examples are the
# same every time, elsewhere new ones are tried.
settings.register_profile(
    "faircal",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="FAIRCAL_NO_SKIP" in os.environ,
)
settings.load_profile("faircal")

# A shell that starts the tests in the background has them ignore Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

#: What a machine may rightly lack, as the reasons of skipped tests call it.
MAY_LACK = ("real data", "GPU")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped and os.environ.get("FAIRCAL_NO_SKIP") and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(word in reason for word in MAY_LACK):
            report.outcome = "failed"
            report.longrepr = f"FAIRCAL_NO_SKIP is set, but the test was skipped: {reason}"
    return report


@pytest.fixture(scope="session")
def short_schedules():
    """Parameters with which each trained method passes through all its stages in a moment."""
    pytest.importorskip("torch")
    debiasing = {
        "width": 8,
        "discriminator": [6],
        "identity_epochs": 2,
        "episodes": 2,
        "restart_every": 1,
        "discriminator_epochs": 1,
        "debias_epochs": 1,
        "update_epochs": 1,
        "stop_at": 1,
    }
    return {
        "agenda": debiasing | {"squash": True},
        "pass": debiasing,
        "multipass": debiasing | {"n_discriminators": {"gender": 1, "ethnicity": 2}},
        "ftc": {"epochs": 4, "hidden": [1, 0.5]},
    }


@pytest.fixture
def checkpoints_at_once(monkeypatch):
    """Write a checkpoint after every epoch, not every half minute."""
    monkeypatch.setattr("faircal._base.jobs.EVERY", 0.0)


@pytest.fixture
def epochs(monkeypatch):
    """A list that grows by the name of its stage with every epoch that is trained."""
    session = pytest.importorskip("faircal.methods.training.session", exc_type=ImportError)
    trained, epoch = [], session.Stage._epoch

    def count(stage):
        epoch(stage)
        trained.append(stage.name)

    monkeypatch.setattr(session.Stage, "_epoch", count)
    return trained


@pytest.fixture(scope="session")
def run_command(tmp_path_factory):
    """Return a function that runs a command as a process of its own; see `tests.forked`."""
    commands = Commands(tmp_path_factory.mktemp("commands"))
    try:
        yield commands.run
    finally:
        commands.stop()


@pytest.fixture(scope="module")
def browser():
    """Chromium without a window; not for longer, since it holds the thread's event loop."""
    api = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no browser: install chromium")
    with api.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield running
        running.close()
