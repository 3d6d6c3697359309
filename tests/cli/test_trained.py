"""Methods that train networks, on the command line: options, checkpoints, progress, tables."""

from __future__ import annotations

import json
import os
import pty
import re
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow.csv as pacsv
import pytest
from threadpoolctl import threadpool_limits

import faircal
from faircal.cli.main import main
from faircal.data.simulation import PRESETS
from faircal.methods import METHODS, make_method
from faircal.metrics.results import read_results

pytestmark = pytest.mark.usefixtures("without_figures")

pytest.importorskip("torch")

TRAINED = [name for name, method in METHODS.items() if method.needs.training]
TITLES = [method.title for method in METHODS.values()]
CHECKPOINT = Path("m.faircal.checkpoint")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Networks this small are slower on two."""
    with threadpool_limits(1), pytest.MonkeyPatch.context() as patch:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            patch.setenv(name, "1")  # for processes of their own
        yield


def settings(parameters, method=""):
    """Return the options ``--set`` that give a method these parameters."""
    dot = "." if method else ""
    words = (f"{method}{dot}{name}={json.dumps(value)}" for name, value in parameters.items())
    return list(chain.from_iterable(("--set", word) for word in words))


@pytest.fixture
def fit_words(world, short_schedules):
    """Return a function that gives the words of a short fit; the working folder has the data."""

    def words(method="ftc", *more, **parameters):
        sets = settings(short_schedules[method] | parameters)
        return ["fit", "faces", "--method", method, *sets, "--out", "m.faircal", *more]

    return words


@pytest.fixture(scope="session")
def bench_sets(short_schedules):
    """The options ``--set`` of a short benchmark of all methods."""
    return [
        word for name, values in short_schedules.items() for word in settings(values, method=name)
    ]


# ------------------------------------------------------------------- fit, score, audit


def parameters_of(path):
    """Return the parameters of a model as JSON has them: lists, no tuples."""
    return json.loads(json.dumps(faircal.load_model(path).get_params()))


@pytest.mark.parametrize("method", TRAINED)
def test_fit_score_audit(method, fit_words, short_schedules, run_here):
    done = run_here(fit_words(method, "--json"))
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert (said["model"], said["method"]) == ("m.faircal", method)
    assert all(np.isfinite(value) for value in said["figures"].values())
    assert not CHECKPOINT.exists()

    data = faircal.load("faces")
    assert short_schedules[method].items() <= parameters_of("m.faircal").items()
    here = make_method(method, **short_schedules[method]).fit(data).apply(data)
    assert np.ptp(here.score) > 0
    done = run_here(
        ["score", "m.faircal", "faces", "--keep", "genuine,ethnicity", "--out", "s.csv"]
    )
    assert done.code == 0, done.err
    scored = pacsv.read_csv("s.csv")
    np.testing.assert_array_equal(scored["score"], here.score)
    np.testing.assert_array_equal(scored["probability"], here.probability)

    for words in (["s.csv", "--attribute", "ethnicity"], ["faces", "--model", "m.faircal"]):
        done = run_here(["audit", *words, "--attribute", "ethnicity", "--out", "audit"])
        assert done.code == 0, done.err
        (ks,) = [
            row.value
            for row in read_results(Path("audit"))
            if (row.group, row.metric) == ("global", "ks")
        ]
        assert ks == pytest.approx(faircal.metrics.ks(here.probability, data.genuine), abs=1e-12)


def test_every_kind_of_value_can_be_set(fit_words, run_here):
    values = {
        "hidden": [2, 0.5],
        "dropout": 0.1,
        "epochs": 1,
        "dropout_when_scoring": True,
        "calibrated_range": [-1, 1],
        "preset": "paper-code",
        "device": "cpu",
    }
    loaded = values | {"device": "auto"}  # a model goes to other machines
    done = run_here(fit_words("ftc", "--seed", "3", "--calibrator", "platt", **values))
    assert done.code == 0, done.err
    parameters = parameters_of("m.faircal")
    assert loaded.items() <= parameters.items()
    assert (parameters["random_state"], parameters["calibrator"]) == (3, "platt")


@pytest.mark.parametrize(
    ("method", "counts"),
    [
        ("agenda", 2),
        ("agenda", {"ethnicity+gender": 2}),
        ("multipass", 2),
        ("multipass", {"gender": 2}),
        ("multipass", {"gender": 1, "ethnicity": 3}),
    ],
)
def test_discriminators_are_a_number_or_a_mapping(method, counts, fit_words, run_here):
    values = {"n_discriminators": counts, "stop_together": True, "squash": False}
    done = run_here(fit_words(method, **values))
    assert done.code == 0, done.err
    assert values.items() <= parameters_of("m.faircal").items()


def test_fit_is_the_same_every_time(fit_words, run_here):
    blobs = set()
    for _ in range(2):
        assert run_here(fit_words("pass")).code == 0
        blobs.add(Path("m.faircal").read_bytes())
    assert len(blobs) == 1
    assert run_here(fit_words("pass", "--seed", "1")).code == 0
    assert Path("m.faircal").read_bytes() not in blobs


# ------------------------------------------------------------------------------ resume


@pytest.mark.parametrize(("method", "at"), [("ftc", 3), ("agenda", 2), ("pass", 2)])
def test_an_interrupted_fit_goes_on(
    method, at, fit_words, run_here, monkeypatch, checkpoints_at_once, epochs, interrupt_at
):
    assert run_here(fit_words(method)).code == 0
    whole, all_epochs = Path("m.faircal").read_bytes(), len(epochs)
    Path("m.faircal").unlink()

    epochs.clear()
    with monkeypatch.context() as patch:
        interrupt_at(patch, "fit", at)
        done = run_here(fit_words(method))
    assert done.code == 1
    (line,) = done.err.split("\n", 1)[1].splitlines()  # after that of the terminal's ^C
    assert line == "faircal: interrupted; it goes on with --resume"
    assert CHECKPOINT.exists()
    assert not Path("m.faircal").exists()
    kept = len(epochs) - 1  # the last was told of, then came the interrupt, not the checkpoint

    epochs.clear()
    done = run_here(fit_words(method, "--resume"))
    assert done.code == 0, done.err
    assert len(epochs) == all_epochs - kept < all_epochs
    assert Path("m.faircal").read_bytes() == whole
    assert not CHECKPOINT.exists()


KILLS_ITSELF = """
import os, signal
from faircal._base import jobs
from faircal.methods.training.session import TrainingSession

jobs.EVERY = 0.0
offer = TrainingSession.offer

def offer_and_die(self, epoch, optimiser):
    offer(self, epoch, optimiser)
    if epoch == 3:
        os.kill(os.getpid(), signal.SIGKILL)

TrainingSession.offer = offer_and_die
"""


def test_a_killed_fit_goes_on(fit_words, run_command, run_here, epochs):
    assert run_here(fit_words("ftc")).code == 0
    whole = Path("m.faircal").read_bytes()
    Path("m.faircal").unlink()
    Path("kills.py").write_text(KILLS_ITSELF)
    run_command("--plugin", "kills.py", *fit_words("ftc"), code=-9)
    assert CHECKPOINT.exists()
    assert not Path("m.faircal").exists()
    epochs.clear()
    assert run_here(fit_words("ftc", "--resume")).code == 0
    assert len(epochs) == 4 - 3
    assert Path("m.faircal").read_bytes() == whole


def test_without_resume_an_old_checkpoint_is_not_lost(fit_words, run_here, epochs):
    CHECKPOINT.write_text("of a training that took days")
    done = run_here(fit_words("ftc"))
    assert done.code == 2
    assert "go on with --resume, or delete it" in done.err
    assert not epochs
    assert CHECKPOINT.read_text() == "of a training that took days"
    assert not Path("m.faircal").exists()


def test_interrupted_before_there_is_a_checkpoint(fit_words, run_here, monkeypatch, interrupt_at):
    interrupt_at(monkeypatch, "fit", 1)
    done = run_here(fit_words("ftc"))
    assert done.code == 1
    assert done.err.splitlines()[-1] == "faircal: interrupted; nothing is written"
    assert not CHECKPOINT.exists()


def test_benchmark_goes_on_with_a_training(
    world, short_schedules, run_here, monkeypatch, checkpoints_at_once, epochs
):
    words = ["benchmark", "faces", "--methods", "ftc", "--jobs", "1", "--out", "b"]
    words += settings(short_schedules["ftc"], method="ftc")
    assert run_here(words).code == 0
    whole = Path("b/results.csv").read_bytes()
    assert len(epochs) == 2 * 4

    @contextmanager
    def bars():
        def update(what, done, total, label):
            if len(epochs) >= 3:
                raise KeyboardInterrupt

        yield update

    epochs.clear()
    with monkeypatch.context() as patch:
        patch.setattr("faircal.cli.benchmark.progress_bars", bars)
        done = run_here(words)
    assert done.code == 1
    assert "goes on with --resume" in done.err.splitlines()[-1]
    assert len(list(Path("b").rglob("*.checkpoint"))) == 1
    epochs.clear()
    assert run_here([*words, "--resume"]).code == 0
    assert len(epochs) == 2 * 4 - 2
    assert Path("b/results.csv").read_bytes() == whole
    assert not list(Path("b").rglob("*.checkpoint"))


# --------------------------------------------------------------- benchmark, demo, tables


def labels_in_order(text, labels):
    """Return those of `labels` that start a line, in the order in which they do."""
    starts = [re.split(r"\s{2,}", line.strip())[0] for line in text.splitlines()]
    return [start for start in starts if start in labels]


def test_all_methods_in_the_order_of_the_paper(world, bench_sets, run_here):
    words = ["benchmark", "faces", "--clusters", "3", "--jobs", "1", "--out", "b", *bench_sets]
    done = run_here(words)
    assert done.code == 0, done.err
    rows = read_results(Path("b"))
    assert list(dict.fromkeys(row.method for row in rows)) == [n for n in METHODS if n != "cohort"]
    titles = [title for title in TITLES if title != METHODS["cohort"].title]  # the data has none
    assert labels_in_order(done.out, TITLES) == titles * 2
    (line,) = [line for line in done.err.splitlines() if "GPU" in line]
    assert line.startswith("note: networks are trained for agenda, pass, multipass, ftc: ")


@pytest.mark.parametrize("words", [["faces", "--methods", "baseline"], ["scores.csv"]])
def test_nothing_is_said_where_nothing_trains(words, world, run_here):
    done = run_here(["benchmark", *words, "--jobs", "1", "--out", "b"])
    assert done.code == 0
    assert "train" not in done.err


def test_the_note_names_only_what_will_train(world, short_schedules, run_here):
    words = ["benchmark", "faces", "--attribute", "gender", "--clusters", "3", "--jobs", "1"]
    for name in ("agenda", "pass", "ftc"):
        words += settings(short_schedules[name], method=name)
    done = run_here([*words, "--out", "b"])
    assert done.code == 0, done.err
    assert "note: networks are trained for agenda, pass, ftc: " in done.err
    assert "note: multipass is left out: it takes two or more attributes" in done.err


def test_benchmark_with_settings(world, run_here):
    words = ["benchmark", "faces", "--methods", "baseline,ftc", "--jobs", "2", "--out", "b"]
    done = run_here([*words, "--set", "ftc.epochs=1", "--set", "ftc.hidden=[1]", "--json"])
    assert done.code == 0, done.err
    run = json.loads(Path("b/run.json").read_text())
    assert run["settings"]["parameters"] == {"ftc": {"epochs": 1, "hidden": [1]}}
    labels = {row["label"] for row in json.loads(done.out)["tables"]}
    assert labels == {"Baseline", "FTC"}


@pytest.fixture
def tiny_demo(monkeypatch, short_schedules):
    """A population and schedules for ``demo --all`` that take a moment."""
    preset = replace(PRESETS["small"], people=200, images=800, pairs=2400, dimension=16)
    monkeypatch.setitem(PRESETS, "tiny", preset)
    monkeypatch.setattr("faircal.workflows.benchmark.DEMO_OF_ALL", "tiny")
    for name, values in short_schedules.items():
        presets = METHODS[name].presets
        monkeypatch.setitem(presets, "paper", replace(presets["paper"], **values))


def test_demo_of_everything(tiny_demo, tmp_path, run_here):
    words = ["demo", "--all", "--out", str(tmp_path / "demo")]
    done = run_here(words)
    assert done.code == 0, done.err
    assert "2400 pairs; simulated, no real people" in done.err
    rows = read_results(tmp_path / "demo")
    assert list(dict.fromkeys(row.method for row in rows)) == list(METHODS)
    assert labels_in_order(done.out, TITLES) == TITLES * 3
    page = (tmp_path / "demo/report.html").read_text("utf-8")
    tables = re.findall(r"<table.*?</table>", page, re.DOTALL)
    assert len(tables) >= 3
    for table in tables[1:4]:  # after the explorer's, which the page fills in
        cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", table, re.DOTALL)
        found = [re.sub(r"<.*?>", "", cell).strip() for cell in cells]
        assert [label for label in found if label in TITLES] == TITLES


def test_demo_of_what_is_installed(tiny_demo, tmp_path, run_here, monkeypatch):
    monkeypatch.setattr("faircal.methods.base.find_spec", lambda package: None)
    words = ["demo", "--all", "--out", str(tmp_path / "demo")]
    done = run_here(words)
    assert done.code == 0, done.err
    assert {row.method for row in read_results(tmp_path / "demo")} == set(METHODS) - set(TRAINED)
    for name in TRAINED:
        assert f"note: {name} is left out: it needs torch, which is not installed: pip" in done.err


def test_the_demo_of_all_has_a_population_to_train_on():
    from faircal.workflows import benchmark

    assert PRESETS[benchmark.DEMO_OF_ALL].pairs < benchmark.DEMO_SIZE["pairs"] / 10


# ---------------------------------------------------------------------- without the extra


def test_without_the_extra_it_is_said_how_to_install_it(fit_words, run_here, monkeypatch):
    monkeypatch.setattr("faircal.methods.base.find_spec", lambda package: None)
    words = ["benchmark", "faces", "--methods", "baseline,pass", "--out", "b"]
    for command, method in ((fit_words("ftc"), "ftc"), (words, "pass")):
        done = run_here(command)
        assert done.code == 2
        assert done.err == (
            f"faircal: method {method} needs torch, which is not installed: "
            "pip install 'faircal[torch]'\n"
        )
    assert not Path("m.faircal").exists()
    assert not Path("b").exists()


def test_methods_lists_all_with_their_extra(run_here):
    done = run_here(["methods", "--json"])
    rows = json.loads(done.out)
    assert [row["method"] for row in rows] == list(METHODS)
    assert {row["method"]: row["extra"] for row in rows if row["extra"]} == dict.fromkeys(
        TRAINED, "torch"
    )
    assert [row["method"] for row in rows if not row["no_training"]] == TRAINED
    lines = run_here(["methods"]).out.splitlines()
    for name, method in METHODS.items():
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert method.title in line.split()
        assert line.rstrip().endswith("torch") == (name in TRAINED)


def test_help_says_how_to_go_on(run_here):
    assert "--resume" in run_here(["fit", "--help"]).out
    assert "--resume" in run_here(["benchmark", "--help"]).out
    assert "--all" in run_here(["demo", "--help"]).out


# ---------------------------------------------------------------------------- terminal


@pytest.fixture
def on_terminal(monkeypatch):
    """Return a function that runs a command with standard error on a pseudo-terminal.

    It gives what was shown there.
    """
    ours, theirs = pty.openpty()
    shown = []

    def read():
        try:
            while block := os.read(ours, 65536):
                shown.append(block)
        except OSError:  # how Linux says that the other end is closed
            pass

    def run(words):
        reader = threading.Thread(target=read)
        reader.start()
        with os.fdopen(theirs, "w") as terminal, monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", terminal)
            patch.setenv("TERM", "xterm")
            patch.setenv("COLUMNS", "200")
            with pytest.raises(SystemExit) as stop:
                main(words)
        reader.join()
        assert stop.value.code == 0, shown
        return b"".join(shown).decode()

    yield run
    os.close(ours)


def frames(shown):
    """Cut what was shown into frames, each drawn over the one before; colours taken off."""
    drawn = re.split(r"(?:\x1b\[1A\x1b\[2K)+|\x1b\[1A\r?\x1b\[2K", shown)
    return [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", frame) for frame in drawn]


def test_a_terminal_shows_the_stages_of_a_training(fit_words, on_terminal):
    seen = frames(on_terminal(fit_words("pass")))
    last = [frame for frame in seen if "1 identity" in frame][-1]
    for stage, n in (
        ("1 identity", 2),
        ("2 discriminators", 2),
        ("3 debiasing", 2),
        ("4 update", 2),
    ):
        (line,) = [line for line in last.splitlines() if stage in line]
        assert f"{n}/{n}" in line
        assert re.search(r"loss \d", line)
    assert "debiasing" in last
    assert "identity" in last


def test_no_bar_is_left_when_all_is_done(world, on_terminal):
    *seen, last = frames(on_terminal(["fit", "faces", "--clusters", "1", "--out", "m.faircal"]))
    assert any("fitting faircal" in frame for frame in seen)
    assert any("describing" in frame for frame in seen)
    assert last.startswith("next: faircal threshold m.faircal")


def test_a_terminal_shows_the_cells_that_train(world, short_schedules, on_terminal):
    words = ["benchmark", "faces", "--methods", "baseline,ftc", "--jobs", "1", "--out", "b"]
    words += settings(short_schedules["ftc"], method="ftc")
    seen = frames(on_terminal(words))
    for fold in (1, 2):
        cell = f"ftc, embedding, fold {fold}"
        running = [line for frame in seen for line in frame.splitlines() if "/4 " in line]
        assert any(cell in line and "comparing: loss" in line for line in running)
    last = [frame for frame in seen if "benchmark" in frame][-1]
    assert "4/4" in last
    assert "comparing" not in last


def test_no_terminal_no_bars(fit_words, run_here):
    done = run_here(fit_words("ftc"))
    assert done.code == 0
    assert "comparing" not in done.err
    assert "\x1b" not in done.err
