"""Sizes, first weights and passes through the networks, against PyTorch's own and NumPy."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from scipy import stats
from torch import nn
from torch.nn import functional

from faircal.methods.debiasing import AGENDA, PASS, MultiPASS
from faircal.methods.ftc import FTC
from faircal.methods.training import networks
from faircal.methods.training.networks import Perceptron, dropout_mask, linear


def shapes(network):
    return [tuple(tensor.shape) for tensor in network.parameters]


def count(tensors):
    return sum(tensor.numel() for tensor in tensors)


def rows(n, d, seed=0, dtype=np.float32):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(n, d)).astype(dtype))


def twin(network, activation):
    """Return PyTorch's own network of the same layers, with the same weights."""
    modules = []
    for weight, bias in network.layers:
        linear = nn.Linear(weight.shape[1], weight.shape[0])
        with torch.no_grad():
            linear.weight.copy_(weight)
            linear.bias.copy_(bias)
        modules += [linear, activation()]
    return nn.Sequential(*modules[:-1])


# -------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("preset", "sizes", "parameters"),
    [
        # 512·2048 + 2048 + 2048·2048 + 2048 + 2048·2 + 2
        ("paper", [512, 2048, 2048, 2], 5_251_074),
        # 512·1024 + 1024 + 1024·2048 + 2048 + 2048·2048 + 2048 + 2048·2 + 2
        ("paper-code", [512, 1024, 2048, 2048, 2], 6_824_962),
    ],
)
def test_comparison_network(new_session, preset, sizes, parameters):
    assert FTC.presets[preset].sizes(512) == sizes
    network = Perceptron(new_session(), FTC.presets[preset].sizes(512), torch.relu)
    expected = [s for a, b in pairwise(sizes) for s in ((b, a), (b,))]
    assert shapes(network) == expected
    assert count(network.parameters) == parameters


@pytest.fixture
def half_a_thousand():
    """40 images, 512-d, of 10 people and 8 groups (4 × 2)."""
    rng = np.random.default_rng(0)
    identity = (np.arange(40) % 10).astype(np.int32)
    crossed = (np.arange(40) % 8).astype(np.int32)
    vectors = rng.normal(size=(40, 512)).astype(np.float32)
    parts = {"ethnicity": crossed // 2, "gender": crossed % 2}
    return vectors, identity, {"ethnicity+gender": crossed}, parts


@pytest.mark.parametrize("preset", ["paper", "paper-code"])
@pytest.mark.parametrize(
    ("method", "several", "layers", "ensembles"),
    [
        # 256·128 + 128 + 128·8 + 8
        (AGENDA, False, [256, 128], [(8, 1, 33_928)]),
        # 256·128 + 128 + 128·64 + 64 + 64·8 + 8
        (PASS, False, [256, 128, 64], [(8, 2, 41_672)]),
        # the same, with 64·4 + 4 and 64·2 + 2 at the end
        (MultiPASS, True, [256, 128, 64], [(4, 2, 41_412), (2, 3, 41_282)]),
    ],
)
def test_debiasing_networks(
    half_a_thousand, new_debiasing, method, preset, several, layers, ensembles
):
    vectors, identity, crossed, parts = half_a_thousand
    training = new_debiasing(
        vectors, identity, parts if several else crossed, recipe=method.presets[preset]
    )
    assert shapes(training.map) == [(256, 512), (256,)]
    assert training.slope.tolist() == [0.25]  # one for all channels
    assert count(training.map_parameters) == 512 * 256 + 256 + 1
    n_people = len(set(training.people.tolist()))
    assert shapes(training.classifier) == [(n_people, 256), (n_people,)]
    assert len(training.ensembles) == len(ensembles)
    for ensemble, (groups, members, parameters) in zip(training.ensembles, ensembles, strict=True):
        assert len(ensemble) == members
        sizes = [*layers, groups]
        expected = [s for a, b in pairwise(sizes) for s in ((b, a), (b,))]
        for member in ensemble:
            assert shapes(member) == expected
            assert count(member.parameters) == parameters


def test_a_session_holds_every_parameter_once(half_a_thousand, new_debiasing):
    vectors, identity, _, parts = half_a_thousand
    training = new_debiasing(vectors, identity, parts, recipe=MultiPASS.presets["paper"])
    ours = [*training.map_parameters, *training.classifier.parameters]
    ours += [t for some in training.ensembles for member in some for t in member.parameters]
    held = [id(tensor) for tensor in training.session.tensors]
    assert sorted(held) == sorted(id(tensor) for tensor in ours)
    assert len(set(held)) == len(held)


# ------------------------------------------------------------ first weights


@pytest.mark.parametrize("inputs", [3, 64, 700])
def test_first_weights_are_drawn_as_pytorch_draws_them(new_session, inputs):
    network = Perceptron(new_session(), (inputs, 400, 5), torch.relu)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        like = nn.Linear(inputs, 400)
    bound = 1 / math.sqrt(inputs)
    for ours, theirs in zip(network.layers[0], (like.weight, like.bias), strict=True):
        values, others = (t.detach().numpy().ravel() for t in (ours, theirs))
        assert 0.98 * bound < np.abs(values).max() <= bound * (1 + 1e-6)
        assert stats.ks_2samp(values, others).pvalue > 1e-3
        assert stats.kstest(values, stats.uniform(-bound, 2 * bound).cdf).pvalue > 1e-3
    assert network.layers[1][0].abs().max() <= 1 / math.sqrt(400)  # inputs of its own layer


def test_first_weights_depend_on_the_seed_alone(new_session):
    one, same, other = (Perceptron(new_session(seed), (6, 5, 2), torch.relu) for seed in (1, 1, 2))
    for a, b, c in zip(one.parameters, same.parameters, other.parameters, strict=True):
        assert torch.equal(a, b)
        assert not torch.equal(a, c)
        assert a.requires_grad


def test_drawing_anew_changes_all_weights_in_place(new_session):
    network = Perceptron(new_session(), (6, 5, 2), torch.relu)
    tensors, before = network.parameters, [t.detach().clone() for t in network.parameters]
    network.draw()
    for tensor, now, old in zip(tensors, network.parameters, before, strict=True):
        assert now is tensor
        assert not (now == old).any()


def test_networks_of_a_session_differ(new_session):
    session = new_session()
    one, two = (Perceptron(session, (6, 5), torch.relu) for _ in range(2))
    assert not (one.parameters[0] == two.parameters[0]).any()
    assert [id(t) for t in session.tensors] == [id(t) for t in one.parameters + two.parameters]


# ------------------------------------------------------------------ forward


@pytest.mark.parametrize(
    ("activation", "module"), [(torch.relu, nn.ReLU), (functional.selu, nn.SELU)]
)
@pytest.mark.parametrize("sizes", [(7, 3), (7, 9, 2), (7, 9, 8, 3)])
def test_forward_is_that_of_a_sequential(new_session, activation, module, sizes):
    network = Perceptron(new_session(), sizes, activation)
    x = rows(11, 7)
    y = network(x)
    assert y.shape == (11, sizes[-1])
    assert (y < 0).any()  # nothing after the last layer
    expected = twin(network, module)(x)
    np.testing.assert_allclose(y.detach(), expected.detach(), rtol=1e-6, atol=1e-7)


def test_discriminators_use_selu(half_a_thousand, new_debiasing):
    vectors, identity, crossed, _ = half_a_thousand
    training = new_debiasing(vectors, identity, crossed, recipe=PASS.presets["paper"])
    member = training.ensembles[0][1]
    x = rows(5, 256).numpy().astype(np.float64)
    expected = x
    for i, (weight, bias) in enumerate(member.layers):
        expected = expected @ weight.detach().numpy().T + bias.detach().numpy()
        if i < 2:  # SELU, with the two numbers of its paper
            below = 1.6732632423543772 * np.expm1(np.minimum(expected, 0))
            expected = 1.0507009873554805 * np.where(expected > 0, expected, below)
    found = member(torch.from_numpy(x).float()).detach()
    np.testing.assert_allclose(found, expected, atol=1e-5)


# ------------------------------------------------------------------ dropout


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("dropout", [0.1, 0.3, 0.5, 0.9])
def test_the_share_that_is_kept(dropout):
    mask = dropout_mask((200, 2048), dropout, generator())
    assert mask.dtype == torch.float32
    kept = torch.tensor(1 / (1 - dropout), dtype=torch.float32).item()
    assert set(mask.unique().tolist()) == {0.0, kept}
    for lane in (slice(None), *(slice(i, None, 4) for i in range(4))):  # four share a number
        some = (mask.ravel()[lane] > 0).double()
        tolerance = 5 * math.sqrt(dropout * (1 - dropout) / len(some))
        assert abs(some.mean().item() - (1 - dropout)) < tolerance


def test_elements_are_kept_independently():
    kept = (dropout_mask((1000, 400), 0.3, generator()).numpy() > 0).ravel()
    for apart in (1, 2, 3, 4, 5, 400):  # within a random number, across numbers, down a column
        r = np.corrcoef(kept[:-apart], kept[apart:])[0, 1]
        assert abs(r) < 5 / math.sqrt(len(kept))


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 5), (7, 9), (2, 2), (1, 4), (0, 8)])
def test_masks_of_any_size(shape):
    mask = dropout_mask(shape, 0.5, generator())
    assert mask.shape == shape
    assert set(mask.unique().tolist()) <= {0.0, 2.0}


def test_no_dropout_keeps_all():
    assert torch.equal(dropout_mask((123, 45), 0.0, generator()), torch.ones(123, 45))


def test_masks_depend_on_the_seed_alone():
    drawn = generator(1)
    first, second = (dropout_mask((20, 21), 0.3, drawn) for _ in range(2))
    assert torch.equal(first, dropout_mask((20, 21), 0.3, generator(1)))
    assert not torch.equal(first, second)
    assert not torch.equal(first, dropout_mask((20, 21), 0.3, generator(2)))


@pytest.mark.parametrize("dropout", [0.999, 0.99999, 0.9999999, np.nextafter(1, 0)])
def test_dropout_near_one_leaves_out_nearly_all(dropout):
    share = (dropout_mask((300, 300), dropout, generator()) > 0).double().mean().item()
    assert share <= 0.002


@pytest.mark.parametrize("mixed_precision", [False, True])
@pytest.mark.parametrize("sizes", [(7, 2), (7, 9, 2), (7, 9, 5, 2)])
def test_a_network_with_dropout(new_session, mixed_precision, sizes):
    session = new_session()
    network = Perceptron(session, sizes, torch.relu)
    x = rows(13, 7)
    state = session.generator.get_state()
    with torch.autocast("cpu", torch.bfloat16, mixed_precision):
        y = network(x, 0.3).float()
    session.generator.set_state(state)
    expected = x
    for weight, bias in network.layers[:-1]:
        mask = dropout_mask((13, len(weight)), 0.3, session.generator)
        expected = torch.relu(expected @ weight.T + bias) * mask
    expected = expected @ network.layers[-1][0].T + network.layers[-1][1]
    tolerance = 0.05 if mixed_precision else 1e-6
    np.testing.assert_allclose(y.detach(), expected.detach(), atol=tolerance)
    found = torch.autograd.grad(y.square().sum(), network.parameters)
    wanted = torch.autograd.grad(expected.square().sum(), network.parameters)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=100 * tolerance, atol=10 * tolerance)


def test_dropout_of_nothing_is_the_network_itself(new_session):
    network = Perceptron(new_session(), (7, 9, 5, 2), torch.relu)
    x = rows(13, 7)
    assert torch.equal(network(x, 0.0), network(x))


def test_every_pass_leaves_out_others(new_session):
    network = Perceptron(new_session(), (7, 50, 2), torch.relu)
    x = rows(13, 7)
    assert not torch.equal(network(x, 0.3), network(x, 0.3))


# ------------------------------------------------------------------- linear


def one_layer(dtype, inputs=5, outputs=4, n=6):
    rng = np.random.default_rng(0)
    return [
        torch.tensor(rng.normal(size=shape), dtype=dtype, requires_grad=True)
        for shape in ((n, inputs), (outputs, inputs), (outputs,))
    ]


@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize("sizes", [(5, 4, 6), (512, 300, 200), (3, 1, 1), (1, 2, 7)])
@pytest.mark.parametrize("wanted", [(0, 1, 2), (1, 2), (1,), (0,)])
def test_a_linear_layer(monkeypatch, onednn, sizes, wanted):
    assert networks._ONEDNN is not None  # in the PyTorch that we test with
    if not onednn:
        monkeypatch.setattr(networks, "_ONEDNN", None)
    tensors = one_layer(torch.float32, *sizes)
    for i in {0, 1, 2} - set(wanted):
        tensors[i].requires_grad_(False)
    found, expected = linear(*tensors), functional.linear(*tensors)
    np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-5, atol=1e-4)
    towards = rows(*found.shape, seed=1)
    moved = [tensors[i] for i in wanted]
    ours = torch.autograd.grad((found * towards).sum(), moved)
    plain = torch.autograd.grad((expected * towards).sum(), moved)
    for a, b in zip(ours, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-4)


def test_a_linear_layer_in_double_precision():
    assert torch.autograd.gradcheck(linear, one_layer(torch.float64))
