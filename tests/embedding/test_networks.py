"""Networks: small ONNX graphs against onnxruntime called by hand, FaceNet, dlib's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from faircal._base.errors import DataError, MissingExtraError, ModelFileError, ParameterError
from faircal._base.files import file_digest
from faircal.embedding import networks
from faircal.embedding.networks import NETWORKS, FaceNet, OnnxNetwork, open_network
from faircal.embedding.preprocessing import PRESETS, Preprocessing

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402 (what may be missing comes first)

RNG = np.random.default_rng(0)
WEIGHT, BIAS = RNG.normal(size=(12, 5)), RNG.normal(size=5)
FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16


def save_graph(path, nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(nodes, "stand-in", inputs, outputs, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def stand_in(path, shape=(None, 3, 112, 112), *, kind=FLOAT, name="data", outcome=(5,)):
    """Write a network: the means of the four quarters of each channel, then a linear layer."""
    shape = list(shape)
    numbers = np.float16 if kind == HALF else np.float32
    nodes, last = [], name
    if shape[1] != 3:
        nodes.append(helper.make_node("Transpose", [name], ["turned"], perm=[0, 3, 1, 2]))
        last = "turned"
    half = shape[2] // 2
    pool = {"kernel_shape": [half, half], "strides": [half, half]}
    nodes += [
        helper.make_node("AveragePool", [last], ["pooled"], **pool),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w", "b"], ["vectors"]),
        helper.make_node("Reshape", ["vectors", "shape"], ["fc1"]),
    ]
    weights = [
        numpy_helper.from_array(WEIGHT.astype(numbers), "w"),
        numpy_helper.from_array(BIAS.astype(numbers), "b"),
        numpy_helper.from_array(np.array([-1, *outcome]), "shape"),
    ]
    inputs = [helper.make_tensor_value_info(name, kind, shape)]
    outputs = [helper.make_tensor_value_info("fc1", kind, [shape[0], *outcome])]
    return save_graph(path, nodes, inputs, outputs, weights)


def by_numpy(numbers):
    """Return what the stand-in gives for input of shape (n, 3, size, size)."""
    n, half = len(numbers), numbers.shape[2] // 2
    means = numbers.astype(np.float64).reshape(n, 3, 2, half, 2, half).mean(axis=(3, 5))
    return means.reshape(n, 12) @ WEIGHT + BIAS


def by_onnxruntime(path, numbers):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: numbers})[0]


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def faces(astronaut):
    """Ten crops of 112 × 112 pixels, all different, none of them symmetric."""
    corners = np.random.default_rng(1).integers(0, 400, (10, 2)).tolist()
    return np.stack([astronaut[y : y + 112, x : x + 112] for y, x in corners])


@pytest.fixture(scope="module")
def planes(faces):
    return np.ascontiguousarray(faces.transpose(0, 3, 1, 2), dtype=np.float32)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("FAIRCAL_WEIGHTS", str(folder))
    return folder


def know(monkeypatch, name, path, **changes):
    """Let the known network `name` have the checksum of a stand-in."""
    known = NETWORKS[name]
    weights = replace(known.weights, sha256=file_digest(path))
    monkeypatch.setitem(NETWORKS, name, replace(known, weights=weights, **changes))


def one_line(caught, *words):
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text
    return text


# -------------------------------------------------------------------- numbers


@pytest.mark.parametrize("batch", [None, "N", 1, 4, 10, 16])
def test_numbers_of_any_batch(tmp_path, faces, planes, batch):
    """A zoo's network may take one face at a time, or four; all get a vector, in order."""
    path = stand_in(tmp_path / "n.onnx", (batch, 3, 112, 112))
    made = open_network(str(path), preset="arcface", device="cpu")(faces)
    assert (made.shape, made.dtype) == ((10, 5), np.float32)
    np.testing.assert_allclose(made, unit(by_numpy(planes)), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, rtol=1e-6)


def test_numbers_are_those_of_onnxruntime(tmp_path, faces, planes):
    how = Preprocessing(112, normalize=False)
    for name, shape in (("one", (1, 3, 112, 112)), ("many", (None, 3, 112, 112))):
        path = stand_in(tmp_path / f"{name}.onnx", shape)
        made = OnnxNetwork(name, how, path, "cpu")(faces)
        batches = [planes] if shape[0] is None else np.split(planes, len(planes))
        expected = np.concatenate([by_onnxruntime(path, batch) for batch in batches])
        np.testing.assert_array_equal(made, expected)


def test_fewer_faces_than_a_batch(tmp_path, faces, planes):
    path = stand_in(tmp_path / "n.onnx", (4, 3, 112, 112))
    network = open_network(str(path), preset="arcface", device="cpu")
    for n in (1, 3, 4, 5, 8):
        np.testing.assert_allclose(network(faces[:n]), unit(by_numpy(planes[:n])), atol=1e-5)


@pytest.mark.parametrize("preset", ["insightface", "adaface", "mobilefacenet"])
def test_presets_reach_the_network(tmp_path, faces, planes, preset):
    path = stand_in(tmp_path / "n.onnx", name="input.1")
    made = open_network(str(path), preset=preset, device="cpu")(faces)
    how = PRESETS[preset]
    numbers = (planes - how.mean) / how.scale
    ordered = numbers if how.channels == "rgb" else numbers[:, ::-1]
    np.testing.assert_allclose(made, unit(by_numpy(ordered)), atol=1e-5)


def test_channels_last(tmp_path, faces, planes):
    path = stand_in(tmp_path / "n.onnx", (None, 112, 112, 3))
    made = OnnxNetwork("n", Preprocessing(112, layout="nhwc"), path, "cpu")(faces)
    np.testing.assert_allclose(made, unit(by_numpy(planes)), atol=1e-5)


def test_half_precision(tmp_path, faces, planes):
    path = stand_in(tmp_path / "n.onnx", kind=HALF)
    how = Preprocessing(112, mean=127.5, scale=127.5)
    made = OnnxNetwork("n", how, path, "cpu")(faces)
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, unit(by_numpy((planes - 127.5) / 127.5)), atol=5e-3)


@pytest.mark.parametrize("outcome", [(5, 1, 1), (1, 5), (1, 1, 5)])
def test_more_axes_than_needed(tmp_path, faces, planes, outcome):
    path = stand_in(tmp_path / "n.onnx", outcome=outcome)
    made = open_network(str(path), preset="arcface", device="cpu")(faces)
    np.testing.assert_allclose(made, unit(by_numpy(planes)), atol=1e-5)


def test_flip_adds_the_vector_of_the_mirrored_face(tmp_path, faces, planes):
    path = stand_in(tmp_path / "n.onnx")
    plain, mirrored = by_numpy(planes), by_numpy(planes[..., ::-1])
    assert np.abs(plain - mirrored).max() > 1
    for normalize in (True, False):
        made = OnnxNetwork("n", Preprocessing(112, flip=True, normalize=normalize), path, "cpu")(
            faces
        )
        expected = unit(plain + mirrored) if normalize else plain + mirrored
        np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-4)
        both = OnnxNetwork("n", Preprocessing(112, flip=True, normalize=normalize), path, "cpu")(
            faces[:, :, ::-1]
        )
        np.testing.assert_allclose(both, made, rtol=1e-4, atol=1e-4)


def test_the_first_of_several_outputs(tmp_path, faces, planes):
    path = stand_in(tmp_path / "n.onnx")
    model = onnx.load(path)
    model.graph.output.append(helper.make_tensor_value_info("pooled", FLOAT, None))
    onnx.save(model, path)
    made = open_network(str(path), preset="arcface", device="cpu")(faces)
    np.testing.assert_allclose(made, unit(by_numpy(planes)), atol=1e-5)


def test_several_threads_at_once(tmp_path, faces):
    network = open_network(str(stand_in(tmp_path / "n.onnx")), preset="arcface", device="cpu")
    assert network.parallel
    alone = network(faces)
    with ThreadPoolExecutor(4) as pool:
        for made in pool.map(network, [faces] * 12):
            np.testing.assert_array_equal(made, alone)


def test_free_height_and_width(tmp_path, faces, planes):
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", FLOAT, ["n", 3, "h", "w"])
    y = helper.make_tensor_value_info("y", FLOAT, ["n", 3])
    path = save_graph(tmp_path / "n.onnx", nodes, [x], [y])
    made = OnnxNetwork("n", Preprocessing(112, normalize=False), path, "cpu")(faces)
    np.testing.assert_allclose(made, planes.mean(axis=(2, 3)), rtol=1e-4)


# -------------------------------------------------------------------- by name


@pytest.mark.parametrize("batch", [1, None])
def test_arcface_of_the_zoo(cache, monkeypatch, faces, planes, batch):
    path = stand_in(cache / "arcfaceresnet100-8.onnx", (batch, 3, 112, 112))
    know(monkeypatch, "arcface", path)
    network = open_network("arcface", device="cpu")
    assert (network.name, network.sha256) == ("arcface", file_digest(path))
    assert network.preprocessing == PRESETS["arcface"]
    # The zoo's takes values from 0 to 255, red first.
    np.testing.assert_allclose(network(faces), unit(by_numpy(planes)), atol=1e-5)


def test_given_weights(tmp_path, cache, monkeypatch, faces):
    path = stand_in(tmp_path / "elsewhere.onnx")
    know(monkeypatch, "arcface", path)
    assert open_network("arcface", weights=path, device="cpu")(faces).shape == (10, 5)


def test_another_file_under_the_name(cache):
    path = stand_in(cache / "arcfaceresnet100-8.onnx")
    with pytest.raises(ModelFileError) as caught:
        open_network("arcface", device="cpu")
    one_line(caught, str(path), "expected SHA-256 f3a6bc28", file_digest(path), "onnx/models")


def test_an_unknown_name():
    with pytest.raises(ParameterError) as caught:
        open_network("arcfase")
    one_line(caught, "unknown network 'arcfase'; did you mean arcface?", "dlib, facenet-vggface2")


def test_every_known_network_says_what_it_needs():
    assert list(NETWORKS) == ["dlib", "facenet-vggface2", "facenet-webface", "arcface"]
    for known in NETWORKS.values():
        assert known.detector in ("dlib", "mtcnn")
        assert known.needs[1] in ("embed", "torch")


@pytest.mark.parametrize("name", list(NETWORKS))
def test_a_known_network_has_its_own_preset(name):
    with pytest.raises(ParameterError) as caught:
        open_network(name, preset="arcface")
    one_line(caught, "--preset: is for an .onnx file", name)


@pytest.mark.parametrize("name", list(NETWORKS))
def test_the_package_is_asked_for_before_the_weights(monkeypatch, cache, name):
    module, extra = NETWORKS[name].needs
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(MissingExtraError) as caught:
        open_network(name)
    assert str(caught.value) == (
        f"network {name} needs {module}, which is not installed: pip install 'faircal[{extra}]'"
    )


# -------------------------------------------------------------------- files


def test_a_file_without_a_preset(tmp_path):
    path = stand_in(tmp_path / "mine.onnx")
    with pytest.raises(ParameterError) as caught:
        open_network(str(path))
    one_line(caught, str(path), "--preset (arcface, insightface", "TOML")


def test_a_file_is_called_as_it_is_called(tmp_path):
    path = stand_in(tmp_path / "my net.v2.onnx")
    assert open_network(str(path), preset="arcface", device="cpu").name == "my net.v2"


def test_no_file(tmp_path):
    with pytest.raises(DataError) as caught:
        open_network(str(tmp_path / "mine.onnx"), preset="arcface")
    one_line(caught, "mine.onnx: no such file; check the path")


@pytest.mark.parametrize("suffix", [".onnx", ".toml"])
def test_weights_are_for_known_networks(tmp_path, suffix):
    with pytest.raises(ParameterError) as caught:
        open_network(f"mine{suffix}", preset="arcface", weights=tmp_path)
    one_line(caught, "--weights: is for networks known by name")


@pytest.mark.parametrize("content", [b"", b"no network", bytes(1000), b"\x08\x07\x12\x99"])
def test_not_an_onnx_file(tmp_path, content):
    path = tmp_path / "mine.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        open_network(str(path), preset="arcface", device="cpu")
    one_line(caught, f"{path}: cannot be read as an ONNX network", "get it again")


def test_a_cut_file(tmp_path):
    path = stand_in(tmp_path / "mine.onnx")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ModelFileError, match="cannot be read as an ONNX network"):
        open_network(str(path), preset="arcface", device="cpu")


@pytest.mark.parametrize(
    "shape", [(None, 3, 160, 160), (None, 112, 112, 3), (1, 3, 112, 96), (None, 3, 128, 128)]
)
def test_another_size(tmp_path, shape):
    path = identity_graph(tmp_path / "mine.onnx", [("data", list(shape))])
    with pytest.raises(ModelFileError) as caught:
        open_network(str(path), preset="arcface", device="cpu")
    text = one_line(
        caught, f"{path}: takes input of shape [", "fails with [1, 3, 112, 112]", "--preset"
    )
    assert all(str(side) in text for side in shape[1:])


def identity_graph(path, inputs, kind=FLOAT):
    nodes = [helper.make_node("Identity", [inputs[0][0]], ["y"])]
    values = [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs]
    y = helper.make_tensor_value_info("y", kind, inputs[0][1])
    return save_graph(path, nodes, values, [y])


def test_two_inputs(tmp_path):
    shape = [None, 3, 112, 112]
    path = identity_graph(tmp_path / "mine.onnx", [("a", shape), ("b", shape)])
    with pytest.raises(ModelFileError) as caught:
        open_network(str(path), preset="arcface", device="cpu")
    one_line(caught, str(path), "takes 2 inputs")


def test_no_input(tmp_path):
    value = numpy_helper.from_array(np.ones(3, np.float32))
    nodes = [helper.make_node("Constant", [], ["y"], value=value)]
    y = helper.make_tensor_value_info("y", FLOAT, [3])
    path = save_graph(tmp_path / "mine.onnx", nodes, [], [y])
    with pytest.raises(ModelFileError) as caught:
        open_network(str(path), preset="arcface", device="cpu")
    one_line(caught, str(path))


@pytest.mark.parametrize("shape", [[None, 3], [None, 3 * 112 * 112], [1, None, 3, 112, 112]])
def test_not_pictures(tmp_path, shape):
    path = identity_graph(tmp_path / "mine.onnx", [("a", shape)])
    with pytest.raises(ModelFileError, match="takes input of shape"):
        open_network(str(path), preset="arcface", device="cpu")


@pytest.mark.parametrize("kind", [TensorProto.UINT8, TensorProto.DOUBLE, TensorProto.INT64])
def test_other_numbers(tmp_path, kind):
    path = identity_graph(tmp_path / "mine.onnx", [("a", [None, 3, 112, 112])], kind)
    with pytest.raises(ModelFileError) as caught:
        open_network(str(path), preset="arcface", device="cpu")
    one_line(caught, str(path), "takes tensor(", "expected float or float16")


def test_an_empty_batch_in_the_graph(tmp_path):
    """Some exporters write 0 where they mean: as many as there are. onnxruntime then takes none."""
    path = stand_in(tmp_path / "n.onnx", (0, 3, 112, 112))
    with pytest.raises(ModelFileError) as caught:
        open_network(str(path), preset="arcface", device="cpu")
    one_line(caught, str(path), "takes input of shape [0, 3, 112, 112]")


def test_not_one_vector_a_face(tmp_path, faces):
    nodes = [helper.make_node("ReduceMean", ["x"], ["y"], axes=[0], keepdims=0)]
    x = helper.make_tensor_value_info("x", FLOAT, [None, 3, 112, 112])
    y = helper.make_tensor_value_info("y", FLOAT, [3, 112, 112])
    path = save_graph(tmp_path / "mine.onnx", nodes, [x], [y])
    with pytest.raises(ModelFileError) as caught:
        open_network(str(path), preset="arcface", device="cpu")
    one_line(caught, f"{path}: gave an output of shape (3, 112, 112) for 1 faces")


# -------------------------------------------------------------------- descriptions


def test_a_described_network(tmp_path, faces, planes):
    path = stand_in(tmp_path / "net.onnx", (None, 112, 112, 3))
    toml = tmp_path / "mine.toml"
    toml.write_text(
        f'file = "net.onnx"\nsize = 112\nlayout = "nhwc"\nchannels = "bgr"\nmean = 10\nscale = 2\n'
        f'normalize = false\nflip = true\nname = "other"\nsha256 = "{file_digest(path).upper()}"\n'
    )
    network = open_network(str(toml), device="cpu")
    assert network.name == "other"
    numbers = (planes[:, ::-1] - 10) / 2
    expected = by_numpy(numbers) + by_numpy(numbers[..., ::-1])
    np.testing.assert_allclose(network(faces), expected, rtol=1e-4, atol=1e-3)


def test_a_described_network_with_another_checksum(tmp_path):
    path = stand_in(tmp_path / "net.onnx")
    toml = tmp_path / "mine.toml"
    toml.write_text(f'file = "net.onnx"\npreset = "arcface"\nsha256 = "{"0" * 64}"\n')
    with pytest.raises(ModelFileError) as caught:
        open_network(str(toml))
    one_line(caught, f"{path}: expected SHA-256 {'0' * 64}, found {file_digest(path)}")


def test_a_described_network_that_is_not_there(tmp_path):
    toml = tmp_path / "mine.toml"
    toml.write_text('file = "net.onnx"\npreset = "arcface"\n')
    with pytest.raises(DataError, match=r"net\.onnx: no such file"):
        open_network(str(toml))


def test_a_preset_beside_a_description(tmp_path):
    with pytest.raises(ParameterError) as caught:
        open_network(str(tmp_path / "mine.toml"), preset="arcface")
    one_line(caught, "--preset: is for an .onnx file; put 'preset' into the TOML file")


# -------------------------------------------------------------------- devices


def test_cuda_without_cuda(tmp_path):
    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this machine has a GPU")
    path = stand_in(tmp_path / "mine.onnx")
    for device in ("cuda", "cuda:0"):
        with pytest.raises(ParameterError) as caught:
            open_network(str(path), preset="arcface", device=device)
        one_line(caught, "device: this onnxruntime has no CUDA", "onnxruntime-gpu", "choose cpu")


@pytest.mark.parametrize("device", ["gpu", "", "tpu", "CPU"])
def test_no_such_device(tmp_path, device):
    path = stand_in(tmp_path / "mine.onnx")
    with pytest.raises(ParameterError) as caught:
        open_network(str(path), preset="arcface", device=device)
    one_line(caught, f"device: expected auto, cpu or cuda, found {device!r}")


def test_which_gpu():
    both = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    assert networks._cuda(both, "auto") == (both[0], {"device_id": 0})
    assert networks._cuda(both, "cuda") == (both[0], {"device_id": 0})
    assert networks._cuda(both, "cuda:2") == (both[0], {"device_id": 2})
    assert networks._cuda(both, "cpu") is None
    assert networks._cuda(both[1:], "auto") is None
    with pytest.raises(ParameterError, match="cuda:0"):
        networks._cuda(both, "cuda:x")


def test_a_gpu_that_does_not_work(tmp_path, monkeypatch, faces):
    """onnxruntime then takes the CPU, and says so in its log alone."""
    import onnxruntime

    both = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    path = stand_in(tmp_path / "mine.onnx")
    plain = open_network(str(path), preset="arcface", device="cpu")
    session = onnxruntime.InferenceSession

    def on_the_cpu(path, options, providers):
        return session(path, options, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: both)
    monkeypatch.setattr(onnxruntime, "InferenceSession", on_the_cpu)
    found = open_network(str(path), preset="arcface", device="auto")
    assert found.parallel
    np.testing.assert_array_equal(found(faces), plain(faces))
    with pytest.raises(ParameterError, match="CUDA does not work here"):
        open_network(str(path), preset="arcface", device="cuda")


def test_weights_beside_the_graph_count_in_the_checksum(tmp_path):
    path = stand_in(tmp_path / "mine.onnx")
    sums = [open_network(str(path), preset="arcface", device="cpu").sha256]
    for content in (b"one", b"two"):
        (tmp_path / "mine.onnx.data").write_bytes(content)
        sums.append(open_network(str(path), preset="arcface", device="cpu").sha256)
    assert len(set(sums)) == 3


def test_unusable_numbers(tmp_path):
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[2, 3], keepdims=0),
        helper.make_node("Sub", ["m", "m"], ["zero"]),
        helper.make_node("Div", ["m", "zero"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", FLOAT, [None, 3, 112, 112])
    y = helper.make_tensor_value_info("y", FLOAT, [None, 3])
    path = save_graph(tmp_path / "mine.onnx", nodes, [x], [y])
    with pytest.raises(ModelFileError) as caught:
        open_network(str(path), preset="arcface", device="cpu")
    one_line(caught, str(path), "NaN or infinite")


def test_one_number_is_no_vector(tmp_path):
    nodes = [helper.make_node("ReduceMean", ["x"], ["y"], axes=[1, 2, 3], keepdims=0)]
    x = helper.make_tensor_value_info("x", FLOAT, [None, 3, 112, 112])
    y = helper.make_tensor_value_info("y", FLOAT, [None])
    path = save_graph(tmp_path / "mine.onnx", nodes, [x], [y])
    with pytest.raises(ModelFileError) as caught:
        open_network(str(path), preset="arcface", device="cpu")
    one_line(caught, str(path), "one number")


def test_a_size_that_the_graph_does_not_say(tmp_path):
    """A network of any height and width by its input, which then takes one only."""
    weight = numpy_helper.from_array(np.ones((3 * 112 * 112, 4), np.float32), "w")
    nodes = [
        helper.make_node("Flatten", ["x"], ["f"]),
        helper.make_node("MatMul", ["f", "w"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", FLOAT, [None, 3, None, None])
    y = helper.make_tensor_value_info("y", FLOAT, [None, 4])
    path = save_graph(tmp_path / "mine.onnx", nodes, [x], [y], [weight])
    assert open_network(str(path), preset="arcface", device="cpu")
    with pytest.raises(ModelFileError) as caught:
        open_network(str(path), preset="facenet", device="cpu")
    one_line(caught, str(path), "[1, 3, 160, 160]", "--preset")


# -------------------------------------------------------------------- FaceNet


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Weights in the published layout, drawn: as FaceNet's constructor draws them."""
    torch = pytest.importorskip("torch")
    from faircal.embedding.facenet import InceptionResnetV1

    before = torch.get_num_threads()
    torch.set_num_threads(1)  # threads wait for each other where another process has the cores
    with torch.random.fork_rng():
        torch.manual_seed(0)
        weights = InceptionResnetV1().state_dict()
    weights |= {"logits.weight": torch.zeros(7, 512), "logits.bias": torch.zeros(7)}
    path = tmp_path_factory.mktemp("facenet") / "drawn.pt"
    torch.save(weights, path)
    yield path
    torch.set_num_threads(before)
    path.unlink()  # it is large, and pytest keeps the folders of three runs


def test_facenet_by_name(drawn, monkeypatch, astronaut):
    torch = pytest.importorskip("torch")
    from faircal.embedding.facenet import load_facenet

    know(monkeypatch, "facenet-vggface2", drawn, open=partial(FaceNet, n_classes=7))
    network = open_network("facenet-vggface2", weights=drawn, device="cpu")
    assert network.sha256 == file_digest(drawn)
    crops = np.stack([astronaut[y : y + 160, y : y + 160] for y in (0, 100, 200)])
    made = network(crops)
    assert (made.shape, made.dtype) == ((3, 512), np.float32)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, rtol=1e-5)
    numbers = (torch.from_numpy(crops.transpose(0, 3, 1, 2).astype(np.float32)) - 127.5) / 128
    with torch.inference_mode():
        expected = load_facenet(drawn, 7, torch.device("cpu"))(numbers)
    np.testing.assert_allclose(made, expected, atol=1e-6)


def test_facenet_of_the_other_training_set(drawn):
    """The file of CASIA-WebFace has no known checksum; its last layer tells it apart."""
    with pytest.raises(ModelFileError) as caught:
        open_network("facenet-webface", weights=drawn, device="cpu")
    one_line(caught, "expected a network trained on 10575 people, found one trained on 7")


def test_facenet_on_a_device_that_is_not_here(drawn, monkeypatch):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    know(monkeypatch, "facenet-vggface2", drawn, open=partial(FaceNet, n_classes=7))
    for device in ("cuda", "tpu"):
        with pytest.raises(ParameterError) as caught:
            open_network("facenet-vggface2", weights=drawn, device=device)
        one_line(caught, "device: ")


# -------------------------------------------------------------------- dlib's


def test_dlib_gives_what_dlib_gives(dlib_network, astronaut):
    dlib = pytest.importorskip("dlib")
    chips = np.stack([astronaut[y : y + 150, y : y + 150] for y in (0, 100)])
    made = dlib_network(chips)
    assert (made.shape, made.dtype) == ((2, 128), np.float32)
    path = NETWORKS["dlib"].weights.find()
    theirs = dlib.face_recognition_model_v1(str(path))
    expected = [np.array(theirs.compute_face_descriptor(chip)) for chip in chips]
    np.testing.assert_allclose(made, expected, atol=1e-6)


def test_dlib_knows_no_cuda():
    pytest.importorskip("dlib")
    with pytest.raises(ParameterError) as caught:
        open_network("dlib", device="cuda")
    one_line(caught, "device: network dlib has no CUDA here; choose auto or cpu")


def test_dlib_on_a_device_that_is_none():
    pytest.importorskip("dlib")
    with pytest.raises(ParameterError) as caught:
        open_network("dlib", device="tpu")
    one_line(caught, "device: expected auto, cpu or cuda")


def test_dlib_with_another_file(tmp_path):
    pytest.importorskip("dlib")
    path = tmp_path / "mine.dat"
    path.write_bytes(b"no network")
    with pytest.raises(ModelFileError, match="expected SHA-256 55533b28"):
        open_network("dlib", weights=Path(path))
