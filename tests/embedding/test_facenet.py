"""FaceNet against facenet-pytorch's, and weight files that are not what they should be."""

from __future__ import annotations

import copy
import os
import pickle
import runpy
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from faircal._base.errors import DataError, ModelFileError
from faircal.embedding.facenet import InceptionResnetV1, fill, load_facenet, read_weights

REFERENCE = runpy.run_path(str(Path(__file__).with_name("reference.py")))
CPU = torch.device("cpu")

#: Parameters that an embedding needs, and those of a published network with its last layer.
EMBEDDING = 23_482_624
PUBLISHED = {8631: 27_910_327, 10575: 28_907_599}

N_CLASSES = 7


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def package():
    return REFERENCE["facenet_pytorch"]()


@pytest.fixture(scope="module")
def reference(package):
    """The published class, with drawn weights and batch statistics that matter."""
    network = package.InceptionResnetV1(classify=True, num_classes=N_CLASSES).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                inputs = module.weight[0].numel()
                module.weight.normal_(0, (2 / inputs) ** 0.5, generator=generator)
                if module.bias is not None:
                    module.bias.normal_(0, 0.1, generator=generator)
            elif isinstance(module, nn.BatchNorm2d | nn.BatchNorm1d):
                module.running_mean.normal_(0, 0.2, generator=generator)
                module.running_var.uniform_(0.5, 2, generator=generator)
                module.weight.uniform_(0.5, 1.5, generator=generator)
                module.bias.normal_(0, 0.2, generator=generator)
    return network.requires_grad_(False)


@pytest.fixture(scope="module")
def weights(reference):
    return reference.state_dict()


@pytest.fixture(scope="module")
def file(weights, tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "facenet.pt"
    torch.save(weights, path)
    yield path
    path.unlink()  # it is large, and pytest keeps the folders of three runs


@pytest.fixture(scope="module")
def pictures():
    """Three pictures of a few large patches: fine noise would all look the same."""
    patches = torch.randn(3, 3, 4, 4, generator=torch.Generator().manual_seed(1))
    return nn.functional.interpolate(patches, (160, 160))


@pytest.fixture(scope="module")
def expected(reference, pictures):
    """What the published class gives without its last layer."""
    network = copy.copy(reference)
    network.classify = False
    with torch.inference_mode():
        return network(pictures)


def embed(network, pictures):
    with torch.inference_mode():
        return network(pictures)


def count(network):
    return sum(parameter.numel() for parameter in network.parameters())


def one_line(caught, path):
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(f"{path}: expected ")
    assert "; " in text
    return text


# -------------------------------------------------------------------- the network


def test_names_and_shapes_are_the_published_ones(reference):
    ours = {name: tuple(t.shape) for name, t in InceptionResnetV1().state_dict().items()}
    theirs = {name: tuple(t.shape) for name, t in reference.state_dict().items()}
    assert ours | {"logits.weight": (N_CLASSES, 512), "logits.bias": (N_CLASSES,)} == theirs
    assert list(ours) == [name for name in theirs if not name.startswith("logits.")]


def test_as_many_parameters_as_published(reference):
    n = count(InceptionResnetV1())
    assert n == EMBEDDING
    assert n == count(reference) - N_CLASSES * 513
    assert {classes: n + classes * 513 for classes in PUBLISHED} == PUBLISHED


def test_same_embeddings_as_the_reference(weights, pictures, expected):
    network = InceptionResnetV1().eval()
    network.load_state_dict({n: t for n, t in weights.items() if not n.startswith("logits.")})
    torch.testing.assert_close(embed(network, pictures), expected, rtol=0, atol=1e-5)


def test_a_loaded_network_gives_the_same_embeddings(file, pictures, expected):
    network = load_facenet(file, N_CLASSES, CPU)
    found = embed(network, pictures)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    # A comparison of vectors that hardly depend on the picture would prove little.
    assert (expected @ expected.T).fill_diagonal_(0).max() < 0.99
    assert found.shape == (3, 512)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.norm(dim=1), torch.ones(3))
    assert not network.training
    assert not any(parameter.requires_grad for parameter in network.parameters())
    assert not any(isinstance(module, nn.BatchNorm2d) for module in network.modules())


def test_fusing_twice_is_fusing_once(file, pictures):
    network = load_facenet(file, N_CLASSES, CPU)
    once = embed(network, pictures)
    network.fuse()
    assert torch.equal(embed(network, pictures), once)


def test_no_pictures_no_embeddings():
    assert embed(InceptionResnetV1().eval(), torch.empty(0, 3, 160, 160)).shape == (0, 512)


# -------------------------------------------------------------------- files


def test_a_file_of_another_training_set(tmp_path):
    path = tmp_path / "casia.pt"
    torch.save({"logits.bias": torch.zeros(10575)}, path)
    with pytest.raises(ModelFileError, match=r"on 8631 people, found .* on 10575; ") as caught:
        load_facenet(path, 8631, CPU)
    one_line(caught, path)


def test_a_file_without_the_last_layer(tmp_path):
    path = tmp_path / "headless.pt"
    torch.save({}, path)
    with pytest.raises(ModelFileError, match=r"missing or do not fit, the first 'conv2d_1a.conv.w"):
        load_facenet(path, 8631, CPU)


@pytest.mark.parametrize("as_zip", [True, False], ids=["zip", "before zip"])
@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.99])
def test_truncated(tmp_path, as_zip, part):
    path = tmp_path / "cut.pt"
    torch.save({"a": torch.zeros(100, 100)}, path, _use_new_zipfile_serialization=as_zip)
    assert read_weights(path).keys() == {"a"}
    os.truncate(path, int(part * path.stat().st_size))
    with pytest.raises(ModelFileError, match="damaged") as caught:
        read_weights(path)
    one_line(caught, path)


@pytest.mark.parametrize(
    "content", [b"<html>not found</html>\n", b"PK\x03\x04", b"\x80\x02}q\x00."]
)
def test_not_a_weight_file(tmp_path, content):
    path = tmp_path / "page.pt"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="of another kind") as caught:
        read_weights(path)
    one_line(caught, path)


class Code:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("how", [torch.save, lambda thing, path: path.write_bytes(thing)])
def test_code_in_a_file_is_refused_and_not_run(tmp_path, how):
    path, folder = tmp_path / "code.pt", tmp_path / "made"
    thing = {"a": torch.zeros(1), "b": Code(folder)}
    how(thing if how is torch.save else pickle.dumps(thing), path)
    with pytest.raises(ModelFileError, match="tensors alone") as caught:
        read_weights(path)
    one_line(caught, path)
    assert not folder.exists()


@pytest.mark.parametrize(
    "thing", [[torch.zeros(1)], {"a": 1.0}, {1: torch.zeros(1)}, {"state_dict": {}}, None]
)
def test_not_tensors_by_name(tmp_path, thing):
    path = tmp_path / "other.pt"
    torch.save(thing, path)
    with pytest.raises(ModelFileError, match="expected tensors by name") as caught:
        read_weights(path)
    one_line(caught, path)


def test_a_folder_or_nothing_at_all(tmp_path):
    with pytest.raises(ModelFileError, match="found a folder"):
        read_weights(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        read_weights(tmp_path / "none.pt")


# -------------------------------------------------------------------- tensors


@pytest.fixture
def layer():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (
            lambda w: w.pop("0.bias"),
            "1 tensor(s) that are missing or do not fit, the first '0.bias'",
        ),
        (lambda w: w.clear(), "6 tensor(s) that are missing or do not fit, the first '0.weight'"),
        (lambda w: w.update(x=w["0.bias"]), "1 tensor(s) that are missing or do not fit"),
        (lambda w: w.update({"a\nb": w["0.bias"]}), r"the first 'a\nb'"),
        (lambda w: w.update({"0.bias": torch.zeros(4)}), "the first '0.bias'"),
        (lambda w: w["0.bias"].fill_(torch.nan), "the first '0.bias'"),
        (lambda w: w.update({"0.bias": torch.zeros(3).long()}), "the first '0.bias'"),
        (lambda w: w.update({"0.bias": torch.zeros(3, device="meta")}), "the first '0.bias'"),
        (lambda w: w.update({"0.bias": torch.zeros(3).to_sparse()}), "the first '0.bias'"),
    ],
)
def test_tensors_that_do_not_fit(layer, change, fault):
    weights = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    change(weights)
    before = copy.deepcopy(layer.state_dict())
    with pytest.raises(ModelFileError) as caught:
        fill(layer, weights, Path("some.pt"), "a layer")
    assert fault in one_line(caught, "some.pt")
    for name, tensor in layer.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_tensors_that_fit(layer):
    weights = {name: 2 + tensor.double() for name, tensor in layer.state_dict().items()}
    del weights["1.num_batches_tracked"]
    fill(layer, weights, Path("some.pt"), "a layer")
    for name, tensor in layer.state_dict().items():
        if name in weights:
            assert tensor.dtype == torch.float32
            assert torch.equal(tensor, weights[name].float())
