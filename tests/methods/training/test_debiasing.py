"""AGENDA, PASS and MultiPASS: the split, the losses, and which stage runs when and moves what."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.nn import functional

from faircal.methods.debiasing import AGENDA, PASS, MultiPASS
from faircal.methods.training import debiasing
from faircal.methods.training.session import Stage

NAMES = {"1": "1 identity", "2": "2 discriminators", "3": "3 debiasing", "4": "4 update"}


def arrays(tensors):
    return [tensor.detach().numpy().astype(np.float64) for tensor in tensors]


def mapped_by(training, images):
    """Apply M by NumPy."""
    weight, bias, slope = arrays(training.map_parameters)
    z = images.numpy().astype(np.float64) @ weight.T + bias
    return np.where(z > 0, z, slope * z)


def selu(x):
    below = 1.6732632423543772 * np.expm1(np.minimum(x, 0))
    return 1.0507009873554805 * np.where(x > 0, x, below)


def told_by(member, x):
    """Return a discriminator's logits by NumPy."""
    tensors = arrays(member.parameters)
    for i in range(0, len(tensors), 2):
        x = x @ tensors[i].T + tensors[i + 1]
        x = selu(x) if i < len(tensors) - 2 else x
    return x


def squash(x):
    return softmax(1 / (1 + np.exp(-x)), axis=1)


def entropy(logits, labels):
    return -log_softmax(logits, axis=1)[np.arange(len(labels)), labels].mean()


def members_of(training, stage):
    """Return the discriminators (attribute, number) that a stage moves; [] where there are none."""
    moved = {id(tensor) for tensor in stage.parameters}
    return [
        (a, k)
        for a, ensemble in enumerate(training.ensembles)
        for k, member in enumerate(ensemble)
        if moved & {id(tensor) for tensor in member.parameters}
    ]


def whole_or_not_at_all(training, stage):
    """Return whether a stage moves all of a network's parameters or none, for each network."""
    moved = {id(tensor) for tensor in stage.parameters}
    networks = [training.map_parameters, training.classifier.parameters]
    networks += [member.parameters for some in training.ensembles for member in some]
    return all(len({id(t) in moved for t in tensors}) == 1 for tensors in networks)


@pytest.fixture
def runs(monkeypatch):
    """Return a list of all runs of stages in their order; nothing is trained."""
    seen = []

    def spy(self, start=None, prepare=None, stop=None):
        seen.append((self, start, prepare, stop))

    monkeypatch.setattr(Stage, "run", spy)
    return seen


# -------------------------------------------------------------------- the data


@pytest.mark.parametrize(
    ("validation", "held"), [(0.2, 9), (0.0, 0), (0.5, 22), (0.01, 0), (0.9, 40)]
)
def test_the_split(new_debiasing, images, validation, held):
    vectors, identity, attributes = images
    training = new_debiasing(validation=validation)
    assert len(training.held_images) == held  # of 45
    assert len(training.images) == 45 - held
    rows = {row.tobytes(): i for i, row in enumerate(vectors)}
    used = [rows[row.tobytes()] for row in training.images.numpy()]
    kept = [rows[row.tobytes()] for row in training.held_images.numpy()]
    assert sorted(used + kept) == list(range(45))
    for a, codes in enumerate(attributes.values()):
        assert training.groups[a].tolist() == codes[used].tolist()
        assert training.held_groups[a].tolist() == codes[kept].tolist()
    of_person = dict(zip(identity[used].tolist(), training.people.tolist(), strict=True))
    assert [of_person[code] for code in identity[used].tolist()] == training.people.tolist()
    assert sorted(of_person.values()) == list(range(len(of_person)))


def test_the_split_is_drawn_at_random(new_debiasing, new_session):
    one, same, other = (new_debiasing(session=new_session(seed)) for seed in (1, 1, 2))
    assert torch.equal(one.images, same.images)
    assert not torch.equal(one.images, other.images)


def test_people_are_those_of_the_training_images(new_debiasing, new_session, images):
    vectors, _, attributes = images
    alone = np.arange(100, 145, dtype=np.int32)  # an image each: nine people are held out
    training = new_debiasing(vectors, alone, attributes)
    assert training.classifier.parameters[0].shape == (36, 4)
    assert sorted(training.people.tolist()) == list(range(36))


def test_a_group_that_only_validation_images_have(new_debiasing, new_session, images):
    vectors, identity, attributes = images
    plain = new_debiasing()
    rows = {row.tobytes(): i for i, row in enumerate(vectors)}
    held = rows[plain.held_images[0].numpy().tobytes()]
    rare = attributes["gender"].copy()
    rare[held] = 2
    training = new_debiasing(vectors, identity, {"gender": rare})
    assert training.ensembles[0][0].parameters[-1].shape == (3,)


def test_an_image_is_left_to_train_on(new_debiasing, debias):
    share = np.nextafter(1, 0)
    assert len(new_debiasing(validation=share).images) == 1
    weights, _ = debias(validation=share)
    assert all(np.isfinite(array).all() for array in weights)


# ------------------------------------------------------------------ the losses


def test_new_embeddings_by_numpy(new_debiasing):
    training = new_debiasing()
    found = training.new_embeddings(training.images).detach()
    assert (found < 0).any()
    np.testing.assert_allclose(found, mapped_by(training, training.images), atol=1e-6)


def test_identity_loss_by_numpy(new_debiasing):
    training = new_debiasing()
    batch = torch.tensor([3, 1, 17, 30, 8])
    loss, mapped = training.identity_loss(batch)
    x = mapped_by(training, training.images[batch])
    np.testing.assert_allclose(mapped.detach(), x, atol=1e-6)
    weight, bias = arrays(training.classifier.parameters)
    expected = entropy(x @ weight.T + bias, training.people[batch].numpy())
    assert loss.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("squashing", [False, True])
def test_debias_loss_by_numpy(new_debiasing, squashing):
    training = new_debiasing(method=MultiPASS, squash=squashing)
    batch = torch.arange(3, 20)
    x = mapped_by(training, training.images[batch])
    total = 0.0
    for ensemble, n in zip(training.ensembles, (2, 3), strict=True):
        assert len(ensemble) == n
        of_members = []
        for member in ensemble:
            logits = told_by(member, x)
            log_p = np.log(squash(logits)) if squashing else log_softmax(logits, axis=1)
            of_members.append((-log_p.sum(1) / logits.shape[1]).mean())
        assert len(set(of_members)) == n
        total += max(of_members)  # of the batch's values, not image by image
    found = training.debias_loss(training.new_embeddings(training.images[batch]))
    assert found.item() == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("squashing", [False, True])
@pytest.mark.parametrize("members", [((0, 1),), ((0, 0), (1, 2)), ((0, 0), (0, 1), (1, 0))])
def test_attribute_loss_by_numpy(new_debiasing, squashing, members):
    training = new_debiasing(method=MultiPASS, squash=squashing)
    batch = torch.arange(3, 20)
    rng = np.random.default_rng(0)
    training.mapped.copy_(torch.from_numpy(rng.normal(size=training.mapped.shape)))
    x = training.mapped[batch].numpy().astype(np.float64)
    expected = 0.0
    for a, k in members:
        logits = told_by(training.ensembles[a][k], x)
        labels = training.groups[a][batch].numpy()
        expected += entropy(squash(logits) if squashing else logits, labels)
    assert training.attribute_loss(batch, members).item() == pytest.approx(expected, rel=1e-5)


def test_accuracy_by_numpy(new_debiasing):
    training = new_debiasing(method=MultiPASS, validation=0.5)
    training.run()
    training.figures()  # works out what M makes of the validation images
    x = mapped_by(training, training.held_images)
    found = {}
    for a, ensemble in enumerate(training.ensembles):
        for k, member in enumerate(ensemble):
            guess = told_by(member, x).argmax(1)
            found[a, k] = (guess == training.held_groups[a].numpy()).mean()
            assert training.accuracy(a, k) == pytest.approx(found[a, k])
    assert len(set(found.values())) > 1


def test_accuracy_without_validation_images(new_debiasing):
    assert new_debiasing(validation=0.0).accuracy(0, 0) == 0


def test_figures(debias, new_debiasing, monkeypatch):
    _, found = debias(method=MultiPASS)
    assert set(found) == {
        "stage_1_loss",
        "stage_2_loss",
        "stage_3_loss",
        "stage_3_identity",
        "stage_3_debiasing",
        "stage_4_loss",
        "discriminator_accuracy_ethnicity",
        "discriminator_accuracy_gender",
    }
    total = found["stage_3_identity"] + 10 * found["stage_3_debiasing"]
    assert found["stage_3_loss"] == pytest.approx(total, rel=1e-5)
    training = new_debiasing(method=MultiPASS)
    values = {(0, 0): 0.25, (0, 1): 0.5, (1, 0): 0.125, (1, 1): 0.75, (1, 2): 0.0}
    monkeypatch.setattr(training, "accuracy", lambda a, k: values[a, k])
    best = training.figures()
    assert best["discriminator_accuracy_ethnicity"] == 0.5
    assert best["discriminator_accuracy_gender"] == 0.75


@pytest.mark.parametrize("weight", [0.0, 3.0])
def test_the_weight_of_debiasing(debias, weight):
    _, found = debias(debias_weight=weight)
    total = found["stage_3_identity"] + weight * found["stage_3_debiasing"]
    assert found["stage_3_loss"] == pytest.approx(total, rel=1e-5)


# ------------------------------------------------------------- which stage when

PAPER = [
    # method, preset, runs of stages 1 to 4, epochs of each, rates of each
    (AGENDA, "paper", (1, 10, 100, 100), (50, 25, 5, 5), (1e-3, 1e-3, 1e-3, 1e-3)),
    (AGENDA, "paper-code", (1, 10, 100, 100), (50, 25, 5, 5), (1e-3, 1e-3, 1e-3, 1e-3)),
    (PASS, "paper", (1, 10, 100, 100), (100, 100, 5, 5), (1e-3, 1e-3, 1e-3, 1e-3)),
    (PASS, "paper-code", (1, 10, 100, 100), (100, 100, 5, 5), (1e-2, 1e-3, 1e-4, 1e-3)),
    (MultiPASS, "paper", (1, 10, 100, 200), (100, 100, 5, 5), (1e-3, 1e-3, 1e-3, 1e-3)),
    (MultiPASS, "paper-code", (1, 10, 100, 100), (100, 100, 5, 5), (1e-2, 1e-3, 1e-4, 1e-4)),
]


@pytest.mark.parametrize(("method", "preset", "counts", "epochs", "rates"), PAPER)
def test_the_schedule_of_the_paper(
    new_debiasing, images, runs, method, preset, counts, epochs, rates
):
    vectors, identity, attributes = images
    if method is not MultiPASS:
        attributes = {"ethnicity": attributes["ethnicity"]}
    training = new_debiasing(vectors, identity, attributes, recipe=method.presets[preset])
    training.run()
    assert runs[0][0].name == "1 identity"
    episode = -1
    for stage, start, prepare, enough in runs[1:]:
        if stage.name == "2 discriminators":
            assert (episode + 1) % 10 == 0
            assert start is not None
            assert prepare is not None
            assert enough is None
            everyone = [
                (a, k) for a, some in enumerate(training.ensembles) for k in range(len(some))
            ]
            assert members_of(training, stage) == everyone
        elif stage.name == "3 debiasing":
            episode += 1
            assert members_of(training, stage) == []
            assert enough is None
        else:
            assert prepare is not None
            assert enough is not None
            for a, k in members_of(training, stage):
                assert k == episode % len(training.ensembles[a])  # one at a time, in turn
    assert episode == 99
    for i, name in enumerate(NAMES.values()):
        of_name = [stage for stage, *_ in runs if stage.name == name]
        assert len(of_name) == counts[i]
        for stage in of_name:
            assert stage.epochs == epochs[i]
            assert stage.runs == counts[i]
            assert stage.batch_size == 400
            assert stage.rows == 36
            group = stage.optimiser.param_groups[0]
            assert group["lr"] == rates[i]
            assert group["weight_decay"] == 0
            assert group["betas"] == (0.9, 0.999)
            assert group["eps"] == 1e-8
            assert whole_or_not_at_all(training, stage)


@pytest.mark.parametrize(
    ("episodes", "restart_every", "order"),
    [
        (0, 3, "1"),
        (1, 3, "1 234"),
        (5, 2, "1 234 34 234 34 234"),
        (4, 3, "1 234 34 34 234"),
        (2, 1, "1 234 234"),
    ],
)
def test_the_order_of_stages(new_debiasing, runs, episodes, restart_every, order):
    training = new_debiasing(episodes=episodes, restart_every=restart_every, stop_together=True)
    training.run()
    assert "".join(stage.name[0] for stage, *_ in runs) == order.replace(" ", "")


@pytest.mark.parametrize(
    ("together", "turns"),
    [
        # ethnicity has two discriminators, gender three
        (
            False,
            [[(0, 0)], [(1, 0)], [(0, 1)], [(1, 1)], [(0, 0)], [(1, 2)], [(0, 1)], [(1, 0)]],
        ),
        (True, [[(0, 0), (1, 0)], [(0, 1), (1, 1)], [(0, 0), (1, 2)], [(0, 1), (1, 0)]]),
    ],
)
def test_whose_turn_it_is(new_debiasing, runs, together, turns):
    training = new_debiasing(method=MultiPASS, episodes=4, stop_together=together)
    training.run()
    updates = [members_of(training, stage) for stage, *_ in runs if stage.name == "4 update"]
    assert updates == turns


def test_new_discriminators_in_stage_2(new_debiasing, monkeypatch):
    training = new_debiasing(method=MultiPASS, discriminator_rate=0.0)  # drawn, and not taught
    ours = {id(t) for some in training.ensembles for member in some for t in member.parameters}
    run, seen = Stage.run, []

    def spy(self, *arguments, **options):
        before = [tensor.detach().clone() for tensor in training.session.tensors]
        run(self, *arguments, **options)
        if self.name == "2 discriminators":
            seen.append(before)
            for tensor, old in zip(training.session.tensors, before, strict=True):
                if id(tensor) in ours:
                    assert not (tensor == old).any()  # all of them, each number
                else:
                    assert torch.equal(tensor, old)

    monkeypatch.setattr(Stage, "run", spy)
    training.run()
    assert len(seen) == 2


# ------------------------------------------------------------ what a stage moves


@pytest.mark.parametrize("squashing", [False, True])
@pytest.mark.parametrize("together", [False, True])
def test_a_step_moves_what_its_stage_says_and_nothing_else(
    new_debiasing, monkeypatch, squashing, together
):
    training = new_debiasing(
        method=MultiPASS, squash=squashing, stop_together=together, episodes=6, stop_at=1.0
    )
    session, step, moves = training.session, Stage.step, {}

    def spy(self, batch):
        before = [tensor.detach().clone() for tensor in session.tensors]
        mapped = [t.numpy().tobytes() for t in (training.mapped, training.held_mapped)]
        step(self, batch)
        moved = [i for i, t in enumerate(session.tensors) if not torch.equal(t, before[i])]
        key = self.name, tuple(members_of(training, self))
        moves.setdefault(key, set()).update(moved)
        assert [t.numpy().tobytes() for t in (training.mapped, training.held_mapped)] == mapped

    monkeypatch.setattr(Stage, "step", spy)
    training.run()

    def places(tensors):
        return {i for i, t in enumerate(session.tensors) if any(t is u for u in tensors)}

    identity = places([*training.map_parameters, *training.classifier.parameters])
    assert len(identity) == 5
    of_member = {
        (a, k): places(member.parameters)
        for a, some in enumerate(training.ensembles)
        for k, member in enumerate(some)
    }
    assert moves.pop(("1 identity", ())) == identity
    assert moves.pop(("3 debiasing", ())) == identity
    assert moves.pop(("2 discriminators", tuple(of_member))) == set().union(*of_member.values())
    assert len(moves) == (6 if together else 5)
    for (name, members), moved in moves.items():
        assert name == "4 update"
        assert moved == set().union(*(of_member[member] for member in members))


def test_no_gradient_is_left_where_a_stage_moves_nothing(new_debiasing):
    training = new_debiasing(episodes=0)
    training.run()
    for ensemble in training.ensembles:
        for member in ensemble:
            assert all(tensor.grad is None for tensor in member.parameters)
    assert all(tensor.grad is not None for tensor in training.map_parameters)


def test_discriminators_learn_on_what_m_makes_now(new_debiasing, monkeypatch):
    training = new_debiasing(stop_at=1.0)
    step, steps = Stage.step, []

    def spy(self, batch):
        if self.name[0] in "24":
            with torch.no_grad():
                fresh = training.new_embeddings(training.images)
                held = training.new_embeddings(training.held_images)
            assert torch.equal(training.mapped, fresh)
            assert torch.equal(training.held_mapped, held)
        steps.append(self.name[0])
        step(self, batch)

    monkeypatch.setattr(Stage, "step", spy)
    training.run()
    assert set(steps) == set("1234")


class Plain:
    """The same training as one would write it with PyTorch's own modules."""

    def __init__(self, training):
        self.training, self.recipe = training, training.recipe
        self.m = nn.Sequential(nn.Linear(6, 4), nn.PReLU(1, init=0.25))
        self.c = nn.Linear(4, len(training.classifier.parameters[1]))
        self.e = [[self.discriminator(groups) for _ in range(n)] for groups, n in ((3, 2), (2, 3))]
        self.take((self.m, *training.map_parameters), (self.c, *training.classifier.parameters))

    @staticmethod
    def discriminator(groups):
        return nn.Sequential(
            nn.Linear(4, 5), nn.SELU(), nn.Linear(5, 4), nn.SELU(), nn.Linear(4, groups)
        )

    def take(self, *networks):
        with torch.no_grad():
            for module, *tensors in networks:
                for ours, theirs in zip(module.parameters(), tensors, strict=True):
                    ours.copy_(theirs)

    def new_discriminators(self):
        for some, ensemble in zip(self.e, self.training.ensembles, strict=True):
            for module, member in zip(some, ensemble, strict=True):
                self.take((module, *member.parameters))

    def told(self, a, k, x):
        z = self.e[a][k](x)
        return torch.softmax(torch.sigmoid(z), 1) if self.recipe.squash else z

    def begin(self, stage, members):
        rates = (
            self.recipe.identity_rate,
            self.recipe.discriminator_rate,
            self.recipe.debias_rate,
            self.recipe.update_rate,
        )
        if stage == 2:
            self.new_discriminators()
        modules = [self.m, self.c] if stage in (1, 3) else [self.e[a][k] for a, k in members]
        parameters = [tensor for module in modules for tensor in module.parameters()]
        self.adam = torch.optim.Adam(parameters, lr=rates[stage - 1])

    def step(self, stage, members, batch):
        x, person = self.training.images[batch], self.training.people[batch]
        if stage in (1, 3):
            loss = functional.cross_entropy(self.c(self.m(x)), person)
        if stage == 3:
            for a, some in enumerate(self.e):
                told = [self.told(a, k, self.m(x)) for k in range(len(some))]
                if not self.recipe.squash:
                    told = [torch.softmax(z, 1) for z in told]
                loss = loss + 10 * max(-p.log().mean() for p in told)
        if stage in (2, 4):
            loss = sum(
                functional.cross_entropy(
                    self.told(a, k, self.m(x).detach()), self.training.groups[a][batch]
                )
                for a, k in members
            )
        self.adam.zero_grad()
        loss.backward()
        self.adam.step()


@pytest.mark.parametrize("preset", ["paper", "paper-code"])
def test_the_whole_training_is_a_plain_loop(new_debiasing, monkeypatch, preset):
    training = new_debiasing(method=MultiPASS, preset=preset, stop_at=1.0, update_rate=1e-3)
    first = [tensor.detach().clone() for tensor in training.map_parameters]
    plain = Plain(training)
    run, step, fresh = Stage.run, Stage.step, []

    def spy_run(self, *arguments, **options):
        fresh.append(self)
        run(self, *arguments, **options)

    def spy_step(self, batch):
        stage, members = int(self.name[0]), members_of(training, self)
        if fresh.pop() is self:  # the first step of a run
            plain.begin(stage, members)
        fresh.append(None)
        plain.step(stage, members, batch)
        step(self, batch)

    monkeypatch.setattr(Stage, "run", spy_run)
    monkeypatch.setattr(Stage, "step", spy_step)
    training.run()
    for found, start, expected in zip(
        training.map_parameters, first, plain.m.parameters(), strict=True
    ):
        assert (found - start).abs().max() > 1e-3
        np.testing.assert_allclose(found.detach(), expected.detach(), atol=1e-4)
    for ensemble, some in zip(training.ensembles, plain.e, strict=True):
        for member, module in zip(ensemble, some, strict=True):
            for found, expected in zip(member.parameters, module.parameters(), strict=True):
                np.testing.assert_allclose(found.detach(), expected.detach(), atol=1e-4)


# ------------------------------------------------------------------ early stops


@pytest.fixture
def updates(new_debiasing, monkeypatch):
    """Return a function that runs a training with made-up accuracies.

    It gives for each run of stage 4 its members and how many epochs it took; `accuracy` is a
    function of attribute, number and epochs taken so far in the run.
    """

    def run(accuracy, **options):
        training = new_debiasing(
            **(
                {"method": MultiPASS, "stop_at": 0.95, "update_epochs": 5, "batch_size": 400}
                | options
            )
        )
        found, run_stage, step = [], Stage.run, Stage.step

        def spy_run(self, *arguments, **more):
            if self.name == "4 update":
                found.append([members_of(training, self), 0])
            run_stage(self, *arguments, **more)

        def spy_step(self, batch):  # an epoch is one step: all rows are one batch
            if self.name == "4 update":
                found[-1][1] += 1
            step(self, batch)

        with monkeypatch.context() as patch:
            patch.setattr(Stage, "run", spy_run)
            patch.setattr(Stage, "step", spy_step)
            patch.setattr(training, "accuracy", lambda a, k: accuracy(a, k, found[-1][1]))
            training.run()
        return [tuple(entry) for entry in found]

    return run


@pytest.mark.parametrize(
    ("accuracy", "epochs"), [(0.94, 5), (0.95, 5), (np.nextafter(0.95, 1), 0), (1.0, 0)]
)
@pytest.mark.parametrize("together", [False, True])
def test_stage_4_stops_above_its_limit(updates, accuracy, epochs, together):
    taken = updates(lambda a, k, n: accuracy, stop_together=together)
    assert len(taken) == (3 if together else 6)
    assert {count for _, count in taken} == {epochs}


@pytest.mark.parametrize("after", [1, 2, 4])
def test_accuracy_is_measured_before_each_epoch(updates, after):
    taken = updates(lambda a, k, n: 0.96 if n >= after else 0.5, method=AGENDA)
    assert {count for _, count in taken} == {after}


def test_attributes_stop_by_themselves(updates):
    # Ethnicity is good after one epoch, gender after three.
    taken = updates(lambda a, k, n: 0.96 if n >= (1, 3)[a] else 0.5, episodes=2)
    assert taken == [([(0, 0)], 1), ([(1, 0)], 3), ([(0, 1)], 1), ([(1, 1)], 3)]


def test_attributes_stop_together(updates):
    taken = updates(lambda a, k, n: 0.96 if n >= (1, 3)[a] else 0.5, episodes=2, stop_together=True)
    assert taken == [([(0, 0), (1, 0)], 3), ([(0, 1), (1, 1)], 3)]


def test_only_the_accuracy_of_whose_turn_it_is_counts(updates):
    taken = updates(lambda a, k, n: 1.0 if (a, k) == (1, 1) else 0.0, episodes=3)
    assert [count for members, count in taken if members == [(1, 1)]] == [0]
    assert {count for members, count in taken if members != [(1, 1)]} == {5}


def test_no_validation_images_no_early_stop(new_debiasing, monkeypatch):
    training = new_debiasing(validation=0.0, stop_at=0.0, episodes=1, batch_size=400)
    step, names = Stage.step, []

    def spy(self, batch):
        names.append(self.name[0])
        step(self, batch)

    monkeypatch.setattr(Stage, "step", spy)
    training.run()
    assert "".join(names) == "11" + "22" + "3" + "44" * 2


# ------------------------------------------------------------------- the result


def test_what_comes_out_of_a_training(debias):
    weights, _ = debias()
    assert [array.shape for array in weights] == [(4, 6), (4,), (1,)]
    assert {array.dtype for array in weights} == {np.dtype(np.float32)}
    assert weights[2][0] != 0.25  # the slope learns too


def test_no_epochs_give_the_first_weights(debias, new_debiasing):
    weights, figures = debias(identity_epochs=0, episodes=0)
    for found, expected in zip(weights, new_debiasing().map_parameters, strict=True):
        np.testing.assert_array_equal(found, expected.detach())
    assert not any(name.startswith("stage") for name in figures)


def test_transform_by_numpy(images):
    rng = np.random.default_rng(2)
    weights = [rng.normal(size=shape).astype(np.float32) for shape in ((4, 6), (4,))]
    weights.append(np.array([0.3], np.float32))
    z = images[0].astype(np.float64) @ weights[0].T + weights[1]
    found = debiasing.transform(weights, images[0], "cpu")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.where(z > 0, z, weights[2] * z), atol=1e-5)


def test_transform_by_hand():
    # 1·3 − 2·1 + 0 = 1 stays; 1·3 + 1·1 − 8 = −4 becomes −1 with the slope ¼.
    weights = [np.array([[1, -2], [1, 1]]), np.array([0, -8]), np.array([0.25])]
    weights = [array.astype(np.float32) for array in weights]
    found = debiasing.transform(weights, np.array([[3, 1]], np.float32), "cpu")
    np.testing.assert_array_equal(found, [[1, -1]])


@pytest.mark.parametrize("block", [1, 7, 44, 45, 46])
def test_blocks_change_nothing(debias, images, monkeypatch, empty_is_nan, block):
    weights, _ = debias()
    whole = debiasing.transform(weights, images[0], "cpu")
    monkeypatch.setattr(debiasing, "_BLOCK", block)
    found = debiasing.transform(weights, images[0], "cpu")
    np.testing.assert_allclose(found, whole, atol=1e-6)


def test_groups_are_harder_to_tell_and_people_are_not(debias):
    # Twenty people; their group is a dimension of its own.
    rng = np.random.default_rng(0)
    identity = (np.arange(400) % 20).astype(np.int32)
    group = (identity % 2).astype(np.int32)
    clean = np.column_stack([rng.normal(size=(20, 8))[identity], 3 * group - 1.5])
    vectors = (clean + 0.2 * rng.normal(size=(400, 9))).astype(np.float32)

    def train(weight):
        return debias(
            *(vectors, identity, {"group": group}),
            width=8,
            discriminator=(16,),
            identity_epochs=20,
            episodes=15,
            restart_every=5,
            discriminator_epochs=10,
            debias_epochs=3,
            debias_weight=weight,
            stop_at=0.9,
            batch_size=64,
            **{
                f"{stage}_rate": 0.01 for stage in ("identity", "discriminator", "debias", "update")
            },
        )

    _, before = train(0.0)
    weights, after = train(10.0)
    assert before["discriminator_accuracy_group"] == 1
    assert before["stage_3_debiasing"] > 2
    assert after["discriminator_accuracy_group"] < 0.95
    assert after["stage_3_debiasing"] < 0.9  # log 2 = 0.69 is where nothing can be told
    mapped = debiasing.transform(weights, vectors, "cpu")
    people = LogisticRegression(max_iter=2000).fit(mapped[:200], identity[:200])
    assert people.score(mapped[200:], identity[200:]) > 0.9
