"""Cells that train networks: the same bytes however they are run, and no epoch lost."""

from __future__ import annotations

import json
import math
import signal
import threading
from collections import Counter
from concurrent.futures import Future
from dataclasses import replace
from importlib.metadata import version

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import faircal
from faircal import DataError, Dataset
from faircal.data.columns import Column
from faircal.evaluation.benchmark import BenchmarkSettings, cell, run, run_benchmark
from faircal.evaluation.benchmark.settings import make_plan
from faircal.methods import METHODS, make_method

torch = pytest.importorskip("torch")

ATTRIBUTE = "ethnicity+gender"
TRAINED = tuple(name for name, method in METHODS.items() if method.needs.training)
FOLDS = 3
#: That the short schedules come to, in each fold.
EPOCHS = {"ftc": 4, "agenda": 8, "pass": 8, "multipass": 10}


def left_out(plan):
    """Return who is left out, and why, but for those who need a cohort: the data has none."""
    return {name: why for name, why in plan.left_out.items() if "it needs a cohort" not in why}


@pytest.fixture(scope="module")
def data(in_folds):
    drawn = faircal.simulate("small", seed=1, people=80, images=400, pairs=1200, dimension=16)
    return in_folds(drawn, FOLDS)


@pytest.fixture(scope="module")
def settings(short_schedules):
    """Return a function that gives settings with short schedules for these methods."""

    def build(*methods, **more):
        parameters = {name: short_schedules[name] for name in methods if name in TRAINED}
        return BenchmarkSettings(
            **{"methods": methods, "parameters": parameters, "clusters": (5,)} | more
        )

    return build


@pytest.fixture(scope="module")
def finished(data, settings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    return folder, run_benchmark(data, folder, settings(*TRAINED, "baseline"), jobs=1)


def text(folder):
    return (folder / "results.csv").read_bytes()


def checkpoints(folder):
    return sorted(folder.rglob("*.checkpoint*"))


def interrupt(epochs, at):
    """Return a progress that interrupts the run when it is told of the `at`-th of its epochs."""
    epochs.clear()

    def progress(what, done, total, label):
        if what != "benchmark" and len(epochs) >= at:
            raise KeyboardInterrupt

    return progress


def rows_of(folder, method):
    """Return the lines of a method in ``results.csv``."""
    return [line for line in text(folder).splitlines() if f",{method},".encode() in line]


def test_neither_jobs_nor_repetition_change_a_byte(data, settings, finished, tmp_path):
    run_benchmark(data, tmp_path, settings(*TRAINED, "baseline"), jobs=2)
    assert text(tmp_path) == text(finished[0])


@pytest.mark.parametrize("method", TRAINED)
def test_values_are_those_of_the_method_on_the_left_out_fold(
    method, data, short_schedules, finished
):
    cal, test = data.split(test_fold=2)
    with threadpool_limits(1, user_api="blas"):
        model = make_method(method, attribute=ATTRIBUTE, **short_schedules[method]).fit(cal)
        probability = model.predict_proba(test)
    (row,) = [
        row
        for row in finished[1]
        if (row.method, row.fold, row.group, row.metric) == (method, "2", "global", "ks")
    ]
    assert row.value == faircal.metrics.ks(probability, test.genuine)
    assert (row.calibrator, row.clusters) == ("beta", "")


def test_another_seed_trains_other_networks(data, settings, finished, tmp_path):
    rows = run_benchmark(data, tmp_path, settings("ftc", seed=5), jobs=1)
    ours, others = (
        {row.fold: row.value for row in some if (row.method, row.metric) == ("ftc", "nll")}
        for some in (finished[1], rows)
    )
    assert ours.keys() == others.keys()
    assert not set(ours.values()) & set(others.values())


def test_the_record_says_how_the_trainings_went(finished):
    record = json.loads((finished[0] / "run.json").read_text())
    assert record["versions"]["torch"] == version("torch")
    assert not record["left_out"]
    figures = {name: [] for name in TRAINED}
    for fit in record["fits"]:
        if fit["method"] in figures:
            figures[fit["method"]].append(fit["figures"])
    assert {name: len(some) for name, some in figures.items()} == dict.fromkeys(TRAINED, FOLDS)
    expected = {
        "ftc": {"loss", "cross-entropy", "fairness"},
        "agenda": {"stage_1_loss", "stage_3_identity", f"discriminator_accuracy_{ATTRIBUTE}"},
        "pass": {"stage_2_loss", "stage_4_loss", f"discriminator_accuracy_{ATTRIBUTE}"},
        "multipass": {"discriminator_accuracy_ethnicity", "discriminator_accuracy_gender"},
    }
    for name, some in figures.items():
        for found in some:
            assert expected[name] <= found.keys()
            assert all(math.isfinite(value) for value in found.values())


def test_a_run_that_succeeded_leaves_no_checkpoints(
    data, settings, tmp_path, checkpoints_at_once, monkeypatch
):
    before, after = [], []
    parts_write = run.Parts.write

    def write(parts, *what):
        before.append(len(checkpoints(tmp_path)))
        parts_write(parts, *what)
        after.append(len(checkpoints(tmp_path)))

    monkeypatch.setattr(run.Parts, "write", write)
    run_benchmark(data, tmp_path, settings("ftc", "multipass"), jobs=1)
    assert set(before) == {1}  # there until what came of the training is in safety
    assert set(after) == {0}


# ------------------------------------------------------------------------- interrupted


@pytest.mark.parametrize(
    ("method", "at"),
    [("ftc", 2), ("ftc", 4), ("agenda", 2), ("pass", 4), ("multipass", 5), ("multipass", 7)],
)
def test_an_interrupted_training_goes_on_from_its_checkpoint(
    method, at, data, settings, finished, tmp_path, checkpoints_at_once, epochs
):
    stop = interrupt(epochs, at)
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(data, tmp_path, settings(method), jobs=1, progress=stop)
    assert not (tmp_path / "results.csv").exists()
    assert len(checkpoints(tmp_path)) == 1

    epochs.clear()
    run_benchmark(data, tmp_path, settings(method), jobs=1, resume=True)
    # The checkpoint holds all epochs but the one that was told of when the interrupt came.
    assert len(epochs) == FOLDS * EPOCHS[method] - (at - 1)
    assert rows_of(tmp_path, method) == rows_of(finished[0], method)
    assert not checkpoints(tmp_path)


def test_cells_that_ended_before_the_interrupt_are_not_trained_again(
    data, settings, tmp_path, checkpoints_at_once, epochs
):
    stop = interrupt(epochs, 4 + 3)  # in the second cell
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(data, tmp_path, settings("ftc"), jobs=1, progress=stop)
    assert len(list(tmp_path.glob("parts/*/*.json"))) == 1
    epochs.clear()
    rows = run_benchmark(data, tmp_path, settings("ftc"), jobs=1, resume=True)
    assert len(epochs) == (4 - 2) + (FOLDS - 2) * 4
    assert {row.fold for row in rows} == {*"123", "mean", "std"}


def test_without_resume_a_training_starts_from_zero(
    data, settings, tmp_path, checkpoints_at_once, epochs
):
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(data, tmp_path, settings("ftc"), jobs=1, progress=interrupt(epochs, 3))
    assert len(checkpoints(tmp_path)) == 1
    epochs.clear()
    run_benchmark(data, tmp_path, settings("ftc"), jobs=1)
    assert len(epochs) == FOLDS * 4
    assert not checkpoints(tmp_path)


def test_on_ctrl_c_all_workers_stop_at_their_next_epoch(
    data, settings, tmp_path, checkpoints_at_once
):
    """Ctrl-C reaches the main thread, which waits, while two others train."""
    endless = 5000
    told, both = Counter(), threading.Barrier(2)

    def progress(what, done, total, label):
        if what == "benchmark" or not total:
            return
        told[what] += 1
        if told[what] == 2 and len(told) <= 2:
            both.wait(timeout=60)  # two trainings are under way
            if what == min(told):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    parameters = {"ftc": {"epochs": endless, "hidden": [0.5]}}
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(
            data, tmp_path, settings("ftc", parameters=parameters), jobs=2, progress=progress
        )
    assert len(told) == 2
    assert max(told.values()) < endless
    assert not list(tmp_path.glob("parts/*/*.json"))
    assert len(checkpoints(tmp_path)) == 2  # each its own


def test_a_training_that_has_ended_is_not_lost_when_its_cell_is_measured(
    data, settings, tmp_path, monkeypatch, checkpoints_at_once, epochs
):
    """Ctrl-C comes after the last epoch: what was trained must be found again."""
    workers_told_to_stop = threading.Event()
    cancel, measured = Future.cancel, cell._measured

    def cancelling(waiting):
        workers_told_to_stop.set()
        return cancel(waiting)

    def measuring(*arguments):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        assert workers_told_to_stop.wait(timeout=60)
        return measured(*arguments)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Future, "cancel", cancelling)
        patch.setattr(cell, "_measured", measuring)
        run_benchmark(data, tmp_path, settings("ftc"), jobs=1)
    epochs.clear()
    run_benchmark(data, tmp_path, settings("ftc"), jobs=1, resume=True)
    assert len(epochs) == (FOLDS - 1) * 4  # of the other folds


def test_a_checkpoint_that_nothing_goes_on_from_is_gone_after_success(
    data, settings, tmp_path, checkpoints_at_once, epochs
):
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(data, tmp_path, settings("ftc"), jobs=1, progress=interrupt(epochs, 3))
    other = settings("ftc", parameters={"ftc": {"epochs": 1, "hidden": [1]}})
    run_benchmark(data, tmp_path, other, jobs=1, resume=True)
    assert not checkpoints(tmp_path)


def test_when_one_cell_fails_the_trainings_beside_it_stop(data, settings, tmp_path):
    endless = 5000
    told, both = Counter(), threading.Barrier(2)

    def progress(what, done, total, label):
        if what == "benchmark":
            return
        told[what] += 1
        if told[what] == 1 and len(told) <= 2:
            both.wait(timeout=60)
            if what == min(told):
                raise faircal.DataError("one cell failed")

    parameters = {"ftc": {"epochs": endless, "hidden": [0.5]}}
    with pytest.raises(faircal.DataError, match="one cell failed"):
        run_benchmark(
            data, tmp_path, settings("ftc", parameters=parameters), jobs=2, progress=progress
        )
    assert max(told.values()) < endless
    assert not list(tmp_path.glob("parts/*/*.json"))


@pytest.mark.parametrize("spoil", [lambda blob: blob[:-1], lambda blob: b""])
def test_a_checkpoint_that_is_of_no_use_is_passed_over(
    data, settings, finished, tmp_path, checkpoints_at_once, epochs, spoil
):
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(data, tmp_path, settings("ftc"), jobs=1, progress=interrupt(epochs, 3))
    (path,) = checkpoints(tmp_path)
    path.write_bytes(spoil(path.read_bytes()))
    run_benchmark(data, tmp_path, settings("ftc"), jobs=1, resume=True)
    assert rows_of(tmp_path, "ftc") == rows_of(finished[0], "ftc")
    assert not checkpoints(tmp_path)


def test_a_checkpoint_of_another_pytorch_is_passed_over(
    data, settings, tmp_path, checkpoints_at_once, epochs, monkeypatch
):
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(data, tmp_path, settings("ftc"), jobs=1, progress=interrupt(epochs, 3))
    epochs.clear()
    monkeypatch.setattr(torch, "__version__", "0.0.0")
    run_benchmark(data, tmp_path, settings("ftc"), jobs=1, resume=True)
    assert len(epochs) == 4 * len(data.fold_names)  # every one from its start


def test_what_cannot_be_trained_is_left_out(data, tmp_path, short_schedules):
    """Found out in the plan, not in the middle of the run."""
    column = data.images.attributes["gender"]
    one = Column(np.zeros_like(column.codes), ("F", "M"))
    images = replace(data.images, attributes={**data.images.attributes, "gender": one})
    flat = Dataset.assemble("flat", images, data.pairs, dict(data.features))
    plan = make_plan(flat, BenchmarkSettings())
    assert left_out(plan) == {
        "multipass": "it needs two or more groups to tell apart, and gender has one"
    }
    with pytest.raises(DataError, match="method multipass cannot run: it needs two or more"):
        make_plan(flat, BenchmarkSettings(methods=("multipass",)))
    nobody = replace(
        data.images, identity=Column(np.full(len(data.images), -1, dtype=np.int32), ())
    )
    plan = make_plan(
        Dataset.assemble("x", nobody, data.pairs, dict(data.features)), BenchmarkSettings()
    )
    assert list(left_out(plan)) == ["agenda", "pass", "multipass"]
    assert "10 or more images" in plan.left_out["agenda"]


# --------------------------------------------------------------------------- the cells


@pytest.fixture(scope="module")
def by_two_attributes(data, settings, tmp_path_factory):
    """A benchmark by each of two attributes: its folder, its rows, where checkpoints were kept."""
    from faircal.methods.training import comparison

    folder = tmp_path_factory.mktemp("attributes")
    kept, train = [], comparison.train

    def record(session, *given):
        kept.append(session.job.checkpoint)
        return train(session, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "train", record)
        chosen = settings("ftc", attributes=("ethnicity", "gender"))
        return folder, run_benchmark(data, folder, chosen, jobs=1), kept


def test_each_attribute_has_a_fit_and_a_checkpoint_of_its_own(by_two_attributes):
    _, rows, kept = by_two_attributes
    assert len(kept) == 2 * FOLDS
    assert len(set(kept)) == len(kept)
    assert len({path.parent for path in kept}) == 1
    of_attribute = [
        {row.fold: row.value for row in rows if (row.attribute, row.metric) == (name, "nll")}
        for name in ("ethnicity", "gender")
    ]
    assert len(of_attribute[0]) == FOLDS + 2
    assert not set(of_attribute[0].values()) & set(of_attribute[1].values())


def test_an_interrupt_in_the_fit_of_the_second_attribute(
    data, settings, by_two_attributes, tmp_path, checkpoints_at_once, epochs
):
    both = settings("ftc", attributes=("ethnicity", "gender"))
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(data, tmp_path, both, jobs=1, progress=interrupt(epochs, 4 + 3))
    assert len(checkpoints(tmp_path)) == 2  # of the first attribute too: its cell is not finished
    run_benchmark(data, tmp_path, both, jobs=1, resume=True)
    assert text(tmp_path) == text(by_two_attributes[0])
    assert not checkpoints(tmp_path)


@pytest.mark.parametrize(
    ("method", "parameter", "values"),
    [
        ("ftc", "hidden", ([1, 0.5], [1], [0.5, 1])),
        ("multipass", "n_discriminators", ({"gender": 1}, {"gender": 2}, {"ethnicity": 1}, 1)),
        ("pass", "discriminator", ([6], [6, 4])),
    ],
)
def test_lists_and_mappings_are_part_of_a_cell(
    method, parameter, values, data, short_schedules, tmp_path
):
    base = short_schedules[method]
    several = [
        BenchmarkSettings(methods=(method,), parameters={method: base | {parameter: value}})
        for value in values
    ]
    plans = [make_plan(data, settings) for settings in several]
    keys = {cell.key for plan in plans for cell in plan.cells}
    assert len(keys) == FOLDS * len(values)
    again = make_plan(data, several[0])
    assert [cell.key for cell in again.cells] == [cell.key for cell in plans[0].cells]
    if method != "ftc":
        return
    # A resumed run takes none of them for another.
    found = []
    for settings in several[:2]:
        run_benchmark(data, tmp_path, settings, jobs=1, resume=True)
        found.append(text(tmp_path))
    assert found[0] != found[1]
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["settings"]["parameters"][method][parameter] == values[1]


def test_trainings_stand_alone_and_start_first(data, settings):
    methods = ("baseline", "ftc", "faircal", "pass", "oracle", "fsn")
    batches = run._batches(make_plan(data, settings(*methods)).cells)
    trained = [METHODS[batch[0].method].needs.training for batch in batches]
    assert trained == sorted(trained, reverse=True)
    assert sum(trained) == 2 * FOLDS
    for batch, alone in zip(batches, trained, strict=True):
        assert len({(cell.feature, cell.fold) for cell in batch}) == 1
        names = {cell.method for cell in batch}
        assert len(batch) == 1 if alone else names in ({"baseline", "oracle"}, {"faircal", "fsn"})
    assert sum(map(len, batches)) == len(methods) * FOLDS


def test_a_training_has_one_thread(data, settings, tmp_path):
    before, seen = torch.get_num_threads(), {}

    def progress(what, done, total, label):
        if what != "benchmark" and total:
            seen[threading.get_ident()] = torch.get_num_threads()

    torch.set_num_threads(3)
    try:
        run_benchmark(data, tmp_path, settings("ftc", "pass"), jobs=2, progress=progress)
    finally:
        torch.set_num_threads(before)
    assert threading.get_ident() not in seen
    assert set(seen.values()) == {1}


def test_a_training_is_told_of_and_told_to_be_over(data, settings, tmp_path):
    told = []
    run_benchmark(
        data, tmp_path, settings("ftc"), jobs=1, progress=lambda *words: told.append(words)
    )
    assert told[0] == ("benchmark", 0, FOLDS, "start")
    assert told[-1][:3] == ("benchmark", FOLDS, FOLDS)
    first = [words[1:] for words in told if words[0] == "ftc, embedding, fold 1"]
    assert [done for done, _, _ in first] == [1, 2, 3, 4, 4, 0]
    assert first[-1][1] == 0  # over
    for _, total, label in first[:-1]:
        assert total == 4
        assert label.startswith("comparing: loss ")


# -------------------------------------------------------------- what the data can serve


def columns(data, *names):
    found = {name: data.images.attributes[name] for name in names if name != "identity"}
    found = {name: np.array(column.names)[column.codes] for name, column in found.items()}
    return found | ({"identity": data.images.identity.codes} if "identity" in names else {})


@pytest.mark.parametrize(
    ("attributes", "named"),
    [
        (("ethnicity",), "ethnicity"),
        (("ethnicity", "gender"), "ethnicity"),
        ((ATTRIBUTE, "gender"), "gender"),
    ],
)
def test_multipass_needs_attributes_to_take_one_by_one(attributes, named, data):
    reason = f"it takes two or more attributes one by one, and there is one: {named}"
    plan = make_plan(data, BenchmarkSettings(clusters=(5,), attributes=attributes))
    assert left_out(plan) == {"multipass": reason}
    with pytest.raises(faircal.DataError, match=f"method multipass cannot run: {reason}"):
        make_plan(data, BenchmarkSettings(methods=("multipass",), attributes=attributes))


def test_data_with_one_attribute_leaves_multipass_out(data, with_attributes):
    one = with_attributes(data, columns(data, "identity", "gender"))
    plan = make_plan(one, BenchmarkSettings(clusters=(5,)))
    assert set(left_out(plan)) == {"multipass"}
    assert {"agenda", "pass", "ftc"} <= {cell.method for cell in plan.cells}


def test_without_identities_ftc_alone_is_trained(data, with_attributes, settings, tmp_path):
    anonymous = with_attributes(data, columns(data, "ethnicity", "gender"))
    plan = make_plan(anonymous, BenchmarkSettings(clusters=(5,)))
    assert set(left_out(plan)) == {"agenda", "pass", "multipass"}
    for reason in left_out(plan).values():
        assert reason == "it needs to know who is in each image, and there is no column 'identity'"
    with pytest.raises(faircal.DataError, match="method pass cannot run: it needs to know who"):
        make_plan(anonymous, BenchmarkSettings(methods=("pass",)))
    rows = run_benchmark(anonymous, tmp_path, settings("ftc"), jobs=1)
    assert {row.method for row in rows} == {"ftc"}


def test_a_score_table_trains_nothing(data):
    pairs = data.pairs
    n = len(pairs.left)
    left = np.arange(n)
    identity = np.append(left, np.where(pairs.genuine, left, left + n))
    table = faircal.Dataset(
        pairs={
            "left": np.arange(n),
            "right": np.arange(n) + n,
            "genuine": pairs.genuine,
            "fold": pairs.fold,
            "score": data.scores,
        },
        attributes={"group": ["a", "b"] * n, "identity": identity},
    )
    plan = make_plan(table, BenchmarkSettings())
    for name in TRAINED:
        assert plan.left_out[name] == "it needs embeddings, and the data has scores only"
        with pytest.raises(faircal.DataError, match=f"method {name} cannot run: it needs embed"):
            make_plan(table, BenchmarkSettings(methods=(name,)))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"ftc": {"hidden": 4}}, "hidden: expected a list of numbers, found 4"),
        ({"ftc": {"preset": "papr"}}, "unknown preset 'papr'; did you mean paper"),
        ({"ftc": {"attribute": "gender"}}, "ftc.attribute is set by --attribute"),
        ({"pass": {"stop_at": 2}}, "stop_at: expected"),
        ({"agenda": {"n_discriminators": {"gender": 0}}}, "n_discriminators: expected a whole"),
        ({"multipass": {"random_state": 3}}, "multipass.random_state is set by --seed"),
    ],
)
def test_wrong_parameters_are_found_before_anything_is_trained(parameters, message, data):
    with pytest.raises(faircal.ParameterError, match=message):
        make_plan(data, BenchmarkSettings(clusters=(5,), parameters=parameters))
