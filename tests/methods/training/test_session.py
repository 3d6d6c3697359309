"""Stages against plain loops, progress, checkpoints, and going on after a stop."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from threadpoolctl import threadpool_limits
from torch.nn import functional

from faircal._base.container import MAGIC, cut, pack, unpack
from faircal._base.errors import ModelFileError, ParameterError
from faircal._base.jobs import Job
from faircal.compute.device import choose_device
from faircal.methods import FTC
from faircal.methods.training.debiasing import transform
from faircal.methods.training.networks import Perceptron
from faircal.methods.training.session import Stage, TrainingSession, working_on

N = 10
BATCHES = [4, 4, 2]


class Problem:
    """A small regression, and a second network that must stay as it is."""

    def __init__(self, session, **options):
        rng = np.random.default_rng(0)
        self.x = session.tensor(rng.normal(size=(N, 5)).astype(np.float32))
        self.y = session.tensor(rng.normal(size=(N, 2)).astype(np.float32))
        self.moving = Perceptron(session, (5, 4, 3), torch.relu)
        self.resting = Perceptron(session, (3, 2), torch.relu)
        self.batches = []
        settings = {"rows": N, "batch_size": 4, "learning_rate": 0.01, "epochs": 3, **options}
        self.stage = Stage(session, "learning", self.moving.parameters, self.losses, **settings)

    def losses(self, batch):
        self.batches.append(batch.tolist())
        return {"loss": self.loss(batch), "size": torch.tensor(float(len(batch)))}

    def loss(self, batch):
        return functional.mse_loss(self.resting(self.moving(self.x[batch])), self.y[batch])


def copies(tensors):
    return [tensor.detach().clone() for tensor in tensors]


def same(left, right):
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def same_arrays(left, right):
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


# -------------------------------------------------------------------- stages


def test_a_stage_moves_its_parameters_and_nothing_else(new_session):
    problem = Problem(new_session())
    before, resting = (copies(p.parameters) for p in (problem.moving, problem.resting))
    problem.stage.run()
    for old, new in zip(before, problem.moving.parameters, strict=True):
        assert not torch.equal(old, new)
    assert same(problem.resting.parameters, resting)
    assert all(tensor.grad is None for tensor in problem.resting.parameters)


def plain_loop(problem, weights, runs, **options):
    """Train as PyTorch's tutorials do, a new Adam for each run; return the weights."""
    now = copies(problem.moving.parameters)
    with torch.no_grad():
        for parameter, weight in zip(problem.moving.parameters, weights, strict=True):
            parameter.copy_(weight)
    for batches in runs:
        adam = torch.optim.Adam(problem.moving.parameters, lr=0.01, **options)
        for batch in batches:
            adam.zero_grad()
            problem.loss(torch.tensor(batch)).backward()
            adam.step()
    found = copies(problem.moving.parameters)
    with torch.no_grad():
        for parameter, weight in zip(problem.moving.parameters, now, strict=True):
            parameter.copy_(weight)
    return found


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("runs", [1, 3])
def test_a_run_is_a_plain_loop_with_a_new_adam(new_session, weight_decay, runs):
    problem = Problem(new_session(), weight_decay=weight_decay)
    before = copies(problem.moving.parameters)
    for _ in range(runs):
        problem.stage.run()
    steps = [problem.batches[9 * i : 9 * (i + 1)] for i in range(runs)]
    assert sum(map(len, steps)) == len(problem.batches) == 9 * runs
    after = copies(problem.moving.parameters)
    expected = plain_loop(problem, before, steps, weight_decay=weight_decay)
    for a, b in zip(after, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert same(after, plain_loop(problem, before, steps, weight_decay=weight_decay, fused=True))
    if runs > 1:  # an Adam that remembers the run before would end elsewhere
        whole = plain_loop(problem, before, [problem.batches], weight_decay=weight_decay)
        assert max((a - b).abs().max() for a, b in zip(after, whole, strict=True)) > 1e-3


def test_no_learning_rate_no_change(new_session):
    problem = Problem(new_session(), learning_rate=0.0, weight_decay=0.1)
    before = copies(problem.moving.parameters)
    problem.stage.run()
    assert same(problem.moving.parameters, before)


def test_every_epoch_takes_every_row_once(new_session):
    problem = Problem(new_session())
    problem.stage.run()
    epochs = [problem.batches[i : i + 3] for i in range(0, 9, 3)]
    assert len(problem.batches) == 9
    for epoch in epochs:
        assert [len(batch) for batch in epoch] == BATCHES  # what is left over is taken too
        assert sorted(row for batch in epoch for row in batch) == list(range(N))
    orders = {tuple(row for batch in epoch for row in batch) for epoch in epochs}
    assert len(orders) == 3  # shuffled each time
    assert tuple(range(N)) not in orders


@pytest.mark.parametrize(
    ("batch_size", "sizes"), [(1, [1] * 10), (5, [5, 5]), (10, [10]), (99, [10])]
)
def test_sizes_of_batches(new_session, batch_size, sizes):
    problem = Problem(new_session(), batch_size=batch_size, epochs=1)
    problem.stage.run()
    assert [len(batch) for batch in problem.batches] == sizes


def test_losses_are_means_over_rows(new_session):
    problem = Problem(new_session(), learning_rate=0.0)
    problem.stage.run()
    losses = problem.stage.session.losses["learning"]
    assert losses["loss"] == pytest.approx(problem.loss(torch.arange(N)).item(), rel=1e-5)
    assert losses["size"] == pytest.approx((4 * 4 + 4 * 4 + 2 * 2) / 10)


@pytest.mark.parametrize(
    ("answers", "epochs"),
    [([True], 0), ([False, True], 1), ([False, False, True], 2), ([False] * 3, 3)],
)
def test_stop_is_asked_before_each_epoch(new_session, answers, epochs):
    problem = Problem(new_session())
    asked = []

    def stop():
        asked.append(len(problem.batches))
        return answers[len(asked) - 1]

    problem.stage.run(stop=stop)
    assert len(problem.batches) == 3 * epochs
    assert asked == [3 * i for i in range(len(answers))]


def test_what_is_done_before_a_run(new_session):
    problem, calls = Problem(new_session()), []
    problem.stage.run(
        start=lambda: calls.append(("start", len(problem.batches))),
        prepare=lambda: calls.append(("prepare", len(problem.batches))),
    )
    assert calls == [("start", 0), ("prepare", 0)]


def test_a_run_that_goes_on_is_prepared_and_not_started(new_session, tmp_path):
    path = tmp_path / "state"
    first = Problem(new_session(job=Job(checkpoint=path, every=0)))
    first.stage.session.restore(FTC.presets["paper"], arrays=())
    first.stage.run(stop=lambda: len(first.batches) == 3)
    second = Problem(new_session(job=Job(checkpoint=path, every=0)))
    second.stage.session.restore(FTC.presets["paper"], arrays=())
    calls = []
    second.stage.run(lambda: calls.append("start"), lambda: calls.append("prepare"))
    assert calls == ["prepare"]
    assert len(second.batches) == 6  # two of three epochs were left


# ------------------------------------------------------------------ progress


def test_progress_of_a_stage(new_session):
    told = []
    problem = Problem(new_session(job=Job(lambda *call: told.append(call))), runs=2)
    problem.stage.run()
    problem.stage.run(stop=lambda: len(problem.batches) == 12)  # one epoch of three
    assert {call[0] for call in told} == {"learning"}
    assert [call[1] for call in told] == [1, 2, 3, 3, 4, 6]
    assert {call[2] for call in told} == {6}
    losses = problem.stage.session.losses["learning"]
    assert told[-1][3] == f"loss {losses['loss']:.4g}, size {losses['size']:.4g}"


def test_progress_of_each_training(training):
    told = []
    training(job=Job(lambda *call: told.append(call)))
    by_stage = {}
    for name, done, total, label in told:
        by_stage.setdefault(name, []).append((done, total, label))
    names = list(by_stage)
    assert names in (
        ["comparing"],
        ["1 identity", "2 discriminators", "3 debiasing", "4 update"],
    )
    for calls in by_stage.values():
        done, totals, labels = zip(*calls, strict=True)
        assert list(done) == sorted(done)
        assert len(set(totals)) == 1
        assert done[0] >= 1
        assert done[-1] == totals[0]
        assert "loss " in labels[-1]
        assert "nan" not in labels[-1]
    if names == ["comparing"]:
        assert by_stage["comparing"][0][1] == 3
        assert "cross-entropy " in by_stage["comparing"][-1][2]
        assert "fairness " in by_stage["comparing"][-1][2]
    else:
        assert by_stage["1 identity"][0][1] == 2
        assert by_stage["2 discriminators"][0][1] == 4  # episodes 0 and 2, two epochs each
        assert by_stage["3 debiasing"][0][1] == 3
        assert by_stage["4 update"][0][1] % 6 == 0
        assert "identity " in by_stage["3 debiasing"][-1][2]
        assert "debiasing " in by_stage["3 debiasing"][-1][2]


# --------------------------------------------------------------- checkpoints


class PulledPlugError(Exception):
    """Where a training is stopped."""


def stop_after(calls):
    """Return a progress function that raises at its call number `calls`."""
    left = [calls]

    def progress(*_):
        left[0] -= 1
        if left[0] == 0:
            raise PulledPlugError

    return progress


@pytest.fixture
def snapshots(monkeypatch):
    """Return a list to which every checkpoint is added as it is written."""
    written = []
    offer = TrainingSession.offer

    def spy(self, epoch, optimiser):
        offer(self, epoch, optimiser)
        if self.job.checkpoint is not None and self.job.checkpoint.exists():
            written.append(self.job.checkpoint.read_bytes())

    monkeypatch.setattr(TrainingSession, "offer", spy)
    return written


def test_going_on_after_a_stop_at_any_call(training, tmp_path):
    calls = []
    weights, figures = training(job=Job(lambda *call: calls.append(call)))
    path = tmp_path / "state"
    for stop in range(1, len(calls) + 1):
        with pytest.raises(PulledPlugError):
            training(job=Job(stop_after(stop), path, every=0))
        assert path.exists() == (stop > 1)  # the first is written after the first call
        again, told = training(job=Job(checkpoint=path))
        assert same_arrays(again, weights)
        assert told == figures
        path.unlink(missing_ok=True)


def test_going_on_from_every_checkpoint(training, tmp_path, snapshots):
    path = tmp_path / "state"
    weights, figures = training(job=Job(checkpoint=path, every=0))
    written = list(snapshots)
    assert len(written) == len(set(written)) >= 3
    for blob in written:
        path.write_bytes(blob)
        again, told = training(job=Job(checkpoint=path, every=1e9))
        assert same_arrays(again, weights)
        assert told == figures
        assert path.read_bytes() == blob  # it is its owner's to remove


def test_a_checkpoint_that_is_not_wanted(training, tmp_path):
    path = tmp_path / "state"
    training(job=Job(checkpoint=path, every=0))
    blob, calls = path.read_bytes(), []
    weights, figures = training()
    job = Job(lambda *call: calls.append(call), path, resume=False, every=1e9)
    again, told = training(job=job)
    assert same_arrays(again, weights)
    assert told == figures
    assert calls[0][1] == 1  # from the first epoch
    assert path.read_bytes() == blob  # there until another takes its place


def test_stopping_again_and_again(training, tmp_path):
    weights, figures = training()
    path, stop = tmp_path / "state", 0
    while True:
        stop += 1
        try:
            again, told = training(job=Job(stop_after(stop), path, every=0))
            break
        except PulledPlugError:
            continue
    assert stop > 3
    assert same_arrays(again, weights)
    assert told == figures


def test_progress_goes_on_where_it_stopped(training, tmp_path):
    whole = []
    training(job=Job(lambda *call: whole.append(call)))
    path, rest = tmp_path / "state", []
    with pytest.raises(PulledPlugError):
        training(job=Job(stop_after(len(whole)), path, every=0))
    training(job=Job(lambda *call: rest.append(call), path, every=0))
    assert [call[:3] for call in rest][-1] == whole[-1][:3]
    assert len(rest) < len(whole)
    for name in {call[0] for call in whole}:
        done = [call[1] for call in rest if call[0] == name]
        assert done == sorted(done)
        assert done[-1] == max(call[1] for call in whole if call[0] == name)


def test_checkpoints_change_no_number(training, tmp_path):
    plain, _ = training()
    saving, _ = training(job=Job(checkpoint=tmp_path / "state", every=0))
    assert same_arrays(plain, saving)
    assert [path.name for path in tmp_path.iterdir()] == ["state"]  # and nothing half written


def test_no_checkpoint_before_its_time(training, tmp_path, snapshots):
    training(job=Job(checkpoint=tmp_path / "state", every=1e9))
    assert snapshots == []


def test_what_is_in_a_checkpoint(training, tmp_path, snapshots, images, pairs):
    weights, _ = training(job=Job(checkpoint=tmp_path / "state", every=0))
    for blob in snapshots:
        assert blob.startswith(MAGIC)  # our own format: nothing in it can be run
        header, body = unpack(blob)
        assert set(header) == {"arrays", "epoch", "losses", "mark", "run"}
        for name in cut(header["arrays"], body):
            assert name == "generator" or name.startswith(("tensor.", "adam."))
        for vectors in (images[0], pairs[0]):
            assert not any(row.tobytes() in blob for row in vectors)
    if len(weights) == 3:  # M: nor are its new embeddings there
        mapped = transform(weights, images[0], "cpu")
        assert not any(row.tobytes() in snapshots[-1] for row in mapped)


def flipped(blob):
    at = len(blob) // 2
    return blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda blob: b"",
        lambda blob: blob[:10],
        lambda blob: blob[:-1],
        lambda blob: blob[: len(blob) // 2],
        lambda blob: blob + b"\0",
        lambda blob: b"\x80\x04N." + blob,
        lambda blob: b"some other file\n" * 40,
        flipped,
    ],
)
def test_a_damaged_checkpoint(compare, tmp_path, snapshots, damage):
    path = tmp_path / "state"
    compare(job=Job(checkpoint=path, every=0))
    path.write_bytes(damage(snapshots[0]))
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match=r"state: not a checkpoint, or damaged; ") as caught:
        compare(job=Job(checkpoint=path, every=0))
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before  # it is the user's to delete


def test_a_model_is_no_checkpoint(compare, tmp_path):
    path = tmp_path / "model.faircal"
    path.write_bytes(pack({"method": "ftc", "state": {}}, {"weights.0": np.zeros((2, 3))}))
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match=r"model\.faircal: not a checkpoint"):
        compare(job=Job(checkpoint=path))
    assert path.read_bytes() == before


def foreign(tmp_path, train, *data, **options):
    """Stop `train`, and go on with `data` and `options` instead; it must say that it can't."""
    path = tmp_path / "state"
    with pytest.raises(PulledPlugError):
        train(job=Job(stop_after(2), path, every=0))
    before = path.read_bytes()
    with pytest.raises(ParameterError, match=r"state: the checkpoint is of another") as caught:
        train(*data, job=Job(checkpoint=path), **options)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


FTC_CHANGES = [
    {"hidden": (1.5, 2)},
    {"dropout": 0.2},
    {"fairness": 0.4},
    {"epochs": 4},
    {"batch_size": 8},
    {"learning_rate": 0.1},
    {"weight_decay": 0.0},
]
DEBIASING_CHANGES = [
    {"width": 5},
    {"discriminator": (6,)},
    {"n_discriminators": 2},
    {"identity_epochs": 3},
    {"episodes": 4},
    {"restart_every": 1},
    {"discriminator_epochs": 3},
    {"debias_epochs": 2},
    {"debias_weight": 1.0},
    {"update_epochs": 1},
    {"stop_at": 0.6},
    {"stop_together": True},
    {"identity_rate": 0.1},
    {"discriminator_rate": 0.1},
    {"debias_rate": 0.1},
    {"update_rate": 0.1},
    {"batch_size": 8},
    {"validation": 0.3},
    {"squash": True},
]


def test_a_checkpoint_of_another_seed(training, tmp_path):
    foreign(tmp_path, training, seed=1)


@pytest.mark.parametrize("changes", FTC_CHANGES, ids=str)
def test_a_checkpoint_of_another_comparison(compare, tmp_path, changes):
    foreign(tmp_path, compare, **changes)


@pytest.mark.parametrize("changes", DEBIASING_CHANGES, ids=str)
def test_a_checkpoint_of_another_debiasing(debias, tmp_path, changes):
    foreign(tmp_path, debias, **changes)


@pytest.mark.parametrize("which", range(5))
def test_a_checkpoint_of_other_pairs(compare, pairs, tmp_path, which):
    data = [array.copy() for array in pairs[:5]]
    data[which][3] = {0: 0.5, 3: not data[3][3], 4: (data[4][3] + 1) % 3}.get(which, 29)
    assert not np.array_equal(data[which], pairs[which])
    foreign(tmp_path, compare, *data, pairs[5])


@pytest.mark.parametrize("which", ["vectors", "identity", "gender"])
def test_a_checkpoint_of_other_images(debias, images, tmp_path, which):
    vectors, identity, attributes = images
    if which == "vectors":
        vectors = np.nextafter(vectors, np.float32(9))
    elif which == "identity":
        identity = identity[::-1].copy()
    else:
        attributes = attributes | {"gender": 1 - attributes["gender"]}
    foreign(tmp_path, debias, vectors, identity, attributes)


def test_a_checkpoint_of_another_precision(training, tmp_path):
    foreign(tmp_path, training, mixed_precision=True)


def test_a_checkpoint_of_other_attributes(debias, images, tmp_path):
    # The names decide how many discriminators an attribute has.
    vectors, identity, attributes = images
    renamed = dict(zip(("gender", "ethnicity"), attributes.values(), strict=True))

    def train(*data, **options):
        return debias(*data, n_discriminators={"gender": 3}, **options)

    foreign(tmp_path, train, vectors, identity, renamed)


@pytest.mark.parametrize("checkpoint", [None, "state"])
def test_a_training_that_comes_to_nothing_says_so(debias, compare, tmp_path, checkpoint):
    job = Job(checkpoint=checkpoint and tmp_path / checkpoint, every=0)
    with pytest.raises(ParameterError, match=r"'1 identity': its loss is .*learning rate"):
        debias(identity_rate=1e38, job=job)
    with pytest.raises(ParameterError, match=r"'3 debiasing': its loss is .*learning rate"):
        debias(debias_rate=1e38, debias_epochs=3, seed=1)
    with pytest.raises(ParameterError, match=r"'comparing': its loss is .*learning rate"):
        compare(learning_rate=1e38)


# -------------------------------------------------------------- repeatability


def test_the_same_seed_the_same_bits(training):
    one, figures = training(seed=5)
    two, again = training(seed=5)
    assert same_arrays(one, two)
    assert figures == again


def test_another_seed_other_numbers(training):
    one, _ = training(seed=5)
    two, _ = training(seed=6)
    for a, b in zip(one, two, strict=True):
        assert not np.array_equal(a, b)


def test_no_global_random_numbers_are_used(training):
    def states():
        return torch.get_rng_state().numpy().tobytes(), np.random.get_state()[1].tobytes()  # noqa: NPY002

    before = states()
    one, _ = training()
    assert states() == before
    with torch.random.fork_rng():
        torch.manual_seed(99)
        two, _ = training()
    assert same_arrays(one, two)


def test_inputs_stay_as_they_are(training, images, pairs):
    arrays = [*pairs[:5], images[0], images[1], *images[2].values()]
    before = [array.copy() for array in arrays]
    training()
    assert same_arrays(arrays, before)


def test_mixed_precision_is_near(training):
    exact, expected = training()
    rough, figures = training(mixed_precision=True)
    assert not same_arrays(exact, rough)
    for a, b in zip(exact, rough, strict=True):
        assert b.dtype == np.float32
        assert np.isfinite(b).all()
        np.testing.assert_allclose(a, b, atol=0.05)
    assert set(figures) == set(expected)
    for name, value in expected.items():
        if "loss" in name:
            assert figures[name] == pytest.approx(value, rel=0.1)


def test_mixed_precision_is_repeatable(training):
    one, _ = training(mixed_precision=True)
    two, _ = training(mixed_precision=True)
    assert same_arrays(one, two)


# -------------------------------------------------------------------- devices


def test_the_device_that_auto_stands_for(monkeypatch):
    for there, kind in ((False, "cpu"), (True, "cuda")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert choose_device("auto") == torch.device(kind)
    assert choose_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["abacus", "", "cpu cuda", "cuda:99", "GPU", "cuda:x", "cpu:"])
def test_devices_that_are_not_there(name):
    with pytest.raises(ParameterError, match=r"^device: ") as caught:
        choose_device(name)
    text = str(caught.value)
    assert repr(name) in text
    assert "auto, cpu or cuda" in text
    assert "\n" not in text


@pytest.mark.parametrize("name", ["meta", "hpu", "mps", "mkldnn"])
def test_devices_that_nothing_is_trained_on(compare, name):
    with pytest.raises(ParameterError, match=rf"^device: .* found '{name}'"):
        compare(device=name)


def test_a_training_on_no_device_at_all(training):
    with pytest.raises(ParameterError, match=r"^device: .* found 'abacus'"):
        training(device="abacus")


def test_as_many_threads_as_blas_may_use():
    with threadpool_limits(1, "blas"), working_on(torch.device("cpu")):
        assert torch.get_num_threads() == 1


def test_the_threads_of_others_are_left_alone():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with threadpool_limits(1, "blas"):
            with working_on(torch.device("cpu")):
                with working_on(torch.device("cpu")):
                    assert torch.get_num_threads() == 1
                assert torch.get_num_threads() == 1  # one still works
            assert torch.get_num_threads() == 2
            with pytest.raises(PulledPlugError), working_on(torch.device("cpu")):
                raise PulledPlugError
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
