"""What the presets say, value by value, and what no recipe may say."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, asdict, replace

import pytest

from faircal._base.errors import ParameterError
from faircal.methods.debiasing import AGENDA, PASS, MultiPASS
from faircal.methods.ftc import FTC

# Copied by hand from the paper's appendices and from what is known of its authors' code.
FTC_PAPER = {
    "hidden": (4, 4),
    "dropout": 0.3,
    "fairness": 0.5,
    "epochs": 50,
    "batch_size": 200,
    "learning_rate": 0.001,
    "weight_decay": 0.001,
    "dropout_when_scoring": False,
    "calibrated_range": (0, 1),
}
AGENDA_PAPER = {
    "width": 256,
    "discriminator": (128,),
    "n_discriminators": 1,
    "identity_epochs": 50,
    "episodes": 100,
    "restart_every": 10,
    "discriminator_epochs": 25,
    "debias_epochs": 5,
    "debias_weight": 10,
    "update_epochs": 5,
    "stop_at": 0.9,
    "stop_together": False,
    "identity_rate": 0.001,
    "discriminator_rate": 0.001,
    "debias_rate": 0.001,
    "update_rate": 0.001,
    "batch_size": 400,
    "validation": 0.2,
    "squash": False,
}
PASS_PAPER = {
    "width": 256,
    "discriminator": (128, 64),
    "n_discriminators": 2,
    "identity_epochs": 100,
    "episodes": 100,
    "restart_every": 10,
    "discriminator_epochs": 100,
    "debias_epochs": 5,
    "debias_weight": 10,
    "update_epochs": 5,
    "stop_at": 0.95,
    "stop_together": False,
    "identity_rate": 0.001,
    "discriminator_rate": 0.001,
    "debias_rate": 0.001,
    "update_rate": 0.001,
    "batch_size": 400,
    "validation": 0.2,
    "squash": False,
}
CODE_RATES = {"identity_rate": 0.01, "discriminator_rate": 0.001, "debias_rate": 0.0001}
PRESETS = [
    (FTC, "paper", FTC_PAPER),
    (
        FTC,
        "paper-code",
        FTC_PAPER
        | {"hidden": (2, 4, 4), "dropout_when_scoring": True, "calibrated_range": (-1, 1)},
    ),
    (AGENDA, "paper", AGENDA_PAPER),
    (AGENDA, "paper-code", AGENDA_PAPER | {"squash": True}),
    (PASS, "paper", PASS_PAPER),
    (PASS, "paper-code", PASS_PAPER | CODE_RATES | {"update_rate": 0.001, "squash": True}),
    (MultiPASS, "paper", PASS_PAPER | {"n_discriminators": {"gender": 3}}),
    (
        MultiPASS,
        "paper-code",
        PASS_PAPER
        | CODE_RATES
        | {
            "n_discriminators": {"gender": 3},
            "update_rate": 0.0001,
            "stop_together": True,
            "squash": True,
        },
    ),
]
KINDS = [FTC, AGENDA, PASS, MultiPASS]
FTC_OTHER = {
    "hidden": (1.5,),
    "dropout": 0.0,
    "fairness": 0.0,
    "epochs": 7,
    "batch_size": 2,
    "learning_rate": 0.5,
    "weight_decay": 0.0,
    "dropout_when_scoring": None,  # the opposite of the preset
    "calibrated_range": (-2.0, 2.0),
}
DEBIASING_OTHER = {
    "width": 1,
    "discriminator": (),
    "n_discriminators": 5,
    "identity_epochs": 0,
    "episodes": 0,
    "restart_every": 1,
    "discriminator_epochs": 0,
    "debias_epochs": 0,
    "debias_weight": 0.0,
    "update_epochs": 0,
    "stop_at": 1.0,
    "stop_together": None,
    "identity_rate": 0.25,
    "discriminator_rate": 0.25,
    "debias_rate": 0.25,
    "update_rate": 0.25,
    "batch_size": 1,
    "validation": 0.0,
    "squash": None,
}


@pytest.mark.parametrize(("method", "preset", "table"), PRESETS)
def test_every_value_of_every_preset(method, preset, table):
    assert asdict(method(preset=preset).recipe()) == table


def test_there_are_two_presets_and_the_paper_is_the_first():
    for method in KINDS:
        assert list(method.presets) == ["paper", "paper-code"]
        assert method().recipe() == method.presets["paper"]


@pytest.mark.parametrize(
    ("method", "preset", "name", "other"),
    [
        (method, preset, name, other)
        for method in KINDS
        for preset in ("paper", "paper-code")
        for name, other in (FTC_OTHER if method is FTC else DEBIASING_OTHER).items()
    ],
)
def test_each_value_can_be_overridden_by_itself(method, preset, name, other):
    before = asdict(method.presets[preset])
    other = not before[name] if other is None else other
    assert other != before[name]
    after = asdict(method(preset=preset, **{name: other}).recipe())
    assert after == before | {name: other}


def test_an_unknown_preset():
    with pytest.raises(ParameterError, match=r"preset: unknown preset 'papr'; did you mean paper"):
        FTC(preset="papr").recipe()


def test_recipes_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        FTC.presets["paper"].epochs = 1


# --------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("hidden", "dimension", "sizes"),
    [
        ((4, 4), 512, [512, 2048, 2048, 2]),
        ((2, 4, 4), 512, [512, 1024, 2048, 2048, 2]),
        ((2, 4, 4), 128, [128, 256, 512, 512, 2]),  # the network it comes from
        ((0.5, 1.5), 6, [6, 3, 9, 2]),
        ((0.001,), 8, [8, 1, 2]),
        ((), 8, [8, 2]),
    ],
)
def test_hidden_layers_keep_their_ratio_to_the_input(hidden, dimension, sizes):
    assert replace(FTC.presets["paper"], hidden=hidden).sizes(dimension) == sizes


@pytest.mark.parametrize("preset", ["paper", "paper-code"])
def test_how_many_discriminators_an_attribute_has(preset):
    assert AGENDA.presets[preset].ensemble("ethnicity+gender") == 1
    assert PASS.presets[preset].ensemble("ethnicity") == 2
    assert PASS.presets[preset].ensemble("gender") == 2
    assert MultiPASS.presets[preset].ensemble("gender") == 3
    assert MultiPASS.presets[preset].ensemble("race") == 2


# ---------------------------------------------------------------- bad values

NOT_RATES = (-0.001, math.nan, math.inf, "0.1", True, 1 + 0j)
NOT_SHARES = (-0.1, 1.0, 2, math.nan, math.inf, "0.1", True)
NOT_FLAGS = (0, 1, "true", 1.0)


def not_counts(least):
    return (least - 1, least + 0.5, float(least), str(least), True, math.nan, math.inf)


FTC_BAD = {
    "hidden": (4, "44", [0], [-1], [65], [math.nan], [math.inf], ["4"], [[4]], [4, 0], [True]),
    "dropout": NOT_SHARES,
    "fairness": (-0.1, 1.1, math.nan, math.inf, "0.1", True),
    "epochs": not_counts(1),
    "batch_size": not_counts(1),
    "learning_rate": NOT_RATES,
    "weight_decay": NOT_RATES,
    "dropout_when_scoring": NOT_FLAGS,
    "calibrated_range": (
        *((0,), (0, 1, 2), (0.5, 1), (0, 0.5), (1, 0), 1, "01"),
        *((math.nan, 1), (-math.inf, 1), (0, math.inf), ("0", 1), (0, "1"), (None, 1), (False, 1)),
    ),
}
DEBIASING_BAD = {
    "width": not_counts(1),
    "discriminator": (128, "12", [0], [1.5], ["128"], [128, -1], [True]),
    "n_discriminators": (*not_counts(1), {"gender": 0}, {"gender": 1.5}, [2], {"gender": None}),
    "identity_epochs": not_counts(0),
    "episodes": not_counts(0),
    "restart_every": not_counts(1),
    "discriminator_epochs": not_counts(0),
    "debias_epochs": not_counts(0),
    "debias_weight": NOT_RATES,
    "update_epochs": not_counts(0),
    "stop_at": (-0.1, 1.01, math.nan, math.inf, "0.9", True),
    "stop_together": NOT_FLAGS,
    "identity_rate": NOT_RATES,
    "discriminator_rate": NOT_RATES,
    "debias_rate": NOT_RATES,
    "update_rate": NOT_RATES,
    "batch_size": not_counts(1),
    "validation": NOT_SHARES,
    "squash": NOT_FLAGS,
}


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [
        (method, name, value)
        for method in (FTC, MultiPASS)
        for name, values in (FTC_BAD if method is FTC else DEBIASING_BAD).items()
        for value in values
    ],
)
def test_a_bad_value_is_named(method, name, value):
    with pytest.raises(ParameterError, match=rf"^{name}: expected ") as caught:
        method(**{name: value}).recipe()
    assert repr(value) in str(caught.value) or isinstance(value, dict | list)
    assert "\n" not in str(caught.value)


def test_every_value_was_tried():
    assert set(FTC_BAD) == set(FTC_OTHER) == set(FTC_PAPER)
    assert set(DEBIASING_BAD) == set(DEBIASING_OTHER) == set(AGENDA_PAPER) == set(PASS_PAPER)


def test_the_message_does_not_forbid_what_is_allowed():
    assert AGENDA(stop_at=1.0).recipe().stop_at == 1
    with pytest.raises(ParameterError, match="stop_at: expected an accuracy from 0 to 1, found"):
        AGENDA(stop_at=1.5).recipe()
