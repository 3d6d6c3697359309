"""``faircal embed``: folders of photos and imported ones, what it says, and what it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import faircal
from faircal.data.tables import read_table
from faircal.embedding.networks import NETWORKS

image = pytest.importorskip("PIL.Image")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper  # noqa: E402 (what may be missing comes first)

PEOPLE, SHOTS = 12, 3
SIZE = 32


def write_network(path):
    """Write an ONNX network: the means of 16 parts of each channel, 48 numbers."""
    pool = {"kernel_shape": [8, 8], "strides": [8, 8]}
    nodes = [
        helper.make_node("AveragePool", ["data"], ["pooled"], **pool),
        helper.make_node("Flatten", ["pooled"], ["fc1"]),
    ]
    inputs = [helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 3, SIZE, SIZE])]
    outputs = [helper.make_tensor_value_info("fc1", TensorProto.FLOAT, [1, 48])]
    graph = helper.make_graph(nodes, "stand-in", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)
    path.with_suffix(".toml").write_text(
        f'file = "{path.name}"\nsize = {SIZE}\nmean = 127.5\nscale = 127.5\n'
    )


@pytest.fixture(scope="module")
def home_once(tmp_path_factory):
    """Photos of twelve people, three of each, that a network tells apart; one more is no photo."""
    home = tmp_path_factory.mktemp("home")
    rng = np.random.default_rng(0)
    for person in range(PEOPLE):
        folder = home / f"photos/p{person:02}"
        folder.mkdir(parents=True)
        face = rng.integers(0, 256, (4, 4, 3)).repeat(8, axis=0).repeat(8, axis=1)
        for shot in range(SHOTS):
            pixels = np.clip(face + rng.normal(0, 20, face.shape), 0, 255).astype(np.uint8)
            image.fromarray(pixels).save(folder / f"{shot}.png")
    write_network(home / "net.onnx")
    return home


@pytest.fixture
def home(home_once, tmp_path, monkeypatch):
    """A folder to work in, with the photos and the network in it."""
    for name in ("photos", "net.onnx", "net.toml"):
        (tmp_path / name).symlink_to(home_once / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRCAL_WEIGHTS", str(tmp_path / "weights"))
    return tmp_path


EMBED = ["embed", "photos", "--network", "net.toml", "--detector", "none", "--device", "cpu"]
OUT = ["--out", "faces"]


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def refused(done, *words):
    """Assert that there is one line, which holds `words`, and code 2."""
    assert done.code == 2, done.err
    assert done.out == ""
    assert done.err.startswith("faircal: ")
    assert done.err.count("\n") == 1
    for word in words:
        assert word in done.err


# -------------------------------------------------------------------- folders of photos


def test_a_new_folder(home, run_here):
    done = run_here([*EMBED, *OUT])
    assert done.code == 0, done.err
    assert done.out == "faces\n"
    assert done.err == "net: 36 images, 48-d; make pairs with 'faircal pairs'\n"
    assert sorted(contents(home / "faces")) == [
        "dataset.json",
        "embeddings",
        "embeddings/net.npy",
        "images.csv",
    ]
    images = read_table(Path("faces/images.csv"))
    assert images["image_id"][4].as_py() == "p01/1.png"
    assert images["identity"][4].as_py() == "p01"
    vectors = np.load("faces/embeddings/net.npy")
    assert vectors.shape == (36, 48)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    with image.open("photos/p01/1.png") as picture:
        pixels = (np.asarray(picture, dtype=float) - 127.5) / 127.5
    means = pixels.reshape(4, 8, 4, 8, 3).mean(axis=(1, 3)).transpose(2, 0, 1).ravel()
    np.testing.assert_allclose(vectors[4], means / np.linalg.norm(means), atol=1e-5)


def test_embed_pairs_check_benchmark(home, run_here):
    """The way from photos to figures, as the README tells it."""
    assert run_here([*EMBED, *OUT]).code == 0
    done = run_here(["pairs", "faces", "--seed", "1"])
    assert done.code == 0, done.err
    done = run_here(["check", "faces"])
    assert done.code == 0, done.err
    assert "net" in done.out
    data = faircal.load("faces")
    assert data.scores[data.genuine].mean() > data.scores[~data.genuine].mean() + 0.3
    done = run_here(["benchmark", "faces", "--methods", "baseline", "--jobs", "1", "--out", "b"])
    assert done.code == 0, done.err


def test_attributes_of_a_new_folder(home, run_here):
    lines = [f"p{person:02},{'00' + str(person % 2)}" for person in range(PEOPLE)]
    Path("who.csv").write_text("identity,site\n" + "\n".join(lines) + "\n")
    done = run_here([*EMBED, *OUT, "--attributes", "who.csv"])
    assert done.code == 0, done.err
    assert "site" in read_table(Path("faces/images.csv")).column_names


def test_json(home, run_here):
    (home / "photos").unlink()
    make_some(home / "photos")
    done = run_here([*EMBED, *OUT, "--json", "--name", "mine"])
    assert done.code == 0, done.err
    assert json.loads(done.out) == {
        "folder": "faces",
        "embeddings": "faces/embeddings/mine.npy",
        "images": 4,
        "dimension": 48,
        "dropped": {"b/broken.jpg": "picture cannot be read"},
        "pairs": 0,
        "dropped_pairs": 0,
    }
    assert done.err == "1 files that are no pictures were passed over\n"


def make_some(root):
    """Write four small photos, a broken one and a note."""
    for name in ("a/1.png", "a/2.png", "b/1.png", "b/2.png"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        image.new("RGB", (SIZE, SIZE), (90, 30 * len(name), int(path.stem) * 40)).save(path)
    (root / "b/broken.jpg").write_text("no picture")
    (root / "b/notes.txt").write_text("no picture, and not called one")


def test_what_is_dropped_is_said(home, run_here):
    (home / "photos").unlink()
    make_some(home / "photos")
    done = run_here([*EMBED, *OUT])
    assert done.code == 0, done.err
    assert done.err.splitlines() == [
        "1 files that are no pictures were passed over",
        "1 of 5 images dropped (1 × picture cannot be read):",
        "  b/broken.jpg: picture cannot be read",
        "all are listed in faces/dropped.csv; to try them again, choose a new folder",
        "net: 4 images, 48-d; make pairs with 'faircal pairs'",
    ]
    assert read_table(Path("faces/dropped.csv"))["image_id"].to_pylist() == ["b/broken.jpg"]


def test_names_of_any_kind(home, run_here):
    """Commas, quotes, accents and leading zeros in the names of people and files."""
    (home / "photos").unlink()
    for person in ("007", "Zoë, the 2nd", 'Ann "A."', "p p"):
        for shot in ("01", "é, ü"):
            path = home / "photos" / person / f"{shot}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            image.new("RGB", (SIZE, SIZE), (len(person) * 10, 99, len(shot) * 20)).save(path)
    (home / "photos/007/broken.png").write_text("so that the tables are written anew")
    done = run_here([*EMBED, *OUT])
    assert done.code == 0, done.err
    images = read_table(Path("faces/images.csv"))
    assert len(images) == len(np.load("faces/embeddings/net.npy")) == 8
    assert set(images["identity"].to_pylist()) == {"007", "Zoë, the 2nd", 'Ann "A."', "p p"}
    assert all(Path("photos", name).is_file() for name in images["image_id"].to_pylist())


def test_an_empty_folder_given_stays_when_nothing_comes_of_it(home, run_here):
    Path("faces").mkdir()
    refused(run_here([*EMBED, *OUT, "--name", "a/b"]), "name")
    assert Path("faces").is_dir()
    assert contents(home / "faces") == {}


def test_no_numbers_of_faces_in_what_is_said(home, run_here):
    done = run_here(["--verbose", *EMBED, *OUT])
    assert done.code == 0
    assert "0." not in done.out + done.err
    assert "[" not in done.out + done.err
    assert "0." not in json.dumps(json.loads(Path("faces/dataset.json").read_text())["notes"])


# -------------------------------------------------------------------- real faces


def test_real_faces_with_dlib(home, run_here):
    """No file is needed, and the network's own detector is taken."""
    pytest.importorskip("dlib")
    data = pytest.importorskip("skimage.data")
    Path("real/collins").mkdir(parents=True)
    astronaut = image.fromarray(data.astronaut())
    astronaut.save("real/collins/a.png")
    astronaut.rotate(8).save("real/collins/b.png")
    image.fromarray(data.coffee()).save("real/collins/cup.png")
    done = run_here(["embed", "real", "--network", "dlib", "--out", "faces"])
    assert done.code == 0, done.err
    assert "1 of 3 images dropped (1 × no face found)" in done.err
    assert "collins/cup.png: no face found" in done.err
    vectors = np.load("faces/embeddings/dlib.npy")
    assert vectors.shape == (2, 128)
    assert np.linalg.norm(vectors[0] - vectors[1]) < 0.4
    record = json.loads(Path("faces/dataset.json").read_text())["embeddings"]["dlib"]
    assert record["detector"]["name"] == "dlib"
    assert record["weights_sha256"] == NETWORKS["dlib"].weights.sha256


# -------------------------------------------------------------------- imported folders


def test_an_imported_folder(home, run_here):
    assert run_here(["import", "folder", "photos", "--out", "faces"]).code == 0
    assert run_here(["pairs", "faces"]).code == 0
    pairs = len(read_table(Path("faces/pairs.csv")))
    done = run_here([*EMBED, *OUT])
    assert done.code == 0, done.err
    assert done.err == f"net: 36 images, 48-d, {pairs:,} pairs\n"
    assert len(faircal.load("faces").scores) == pairs


def test_pairs_go_with_their_images(home, run_here):
    (home / "photos").unlink()
    make_some(home / "photos")
    assert run_here(["import", "folder", "photos", "--out", "faces"]).code == 0
    pairs = "left,right,genuine\na/1.png,a/2.png,1\na/1.png,b/broken.jpg,0\nb/1.png,b/2.png,1\n"
    Path("faces/pairs.csv").write_text(pairs)
    done = run_here([*EMBED, *OUT])
    assert done.code == 0, done.err
    assert "(1 × picture cannot be read); with them 1 pairs:" in done.err
    assert done.err.endswith("net: 4 images, 48-d, 2 pairs\n")


def test_a_second_network_beside_the_first(home, run_here):
    assert run_here([*EMBED, *OUT]).code == 0
    done = run_here([*EMBED, *OUT, "--name", "other"])
    assert done.code == 0, done.err
    first, second = (Path(f"faces/embeddings/{name}.npy") for name in ("net", "other"))
    assert first.read_bytes() == second.read_bytes()


def test_embedded_already(home, run_here):
    assert run_here([*EMBED, *OUT]).code == 0
    before = contents(home / "faces")
    refused(run_here([*EMBED, *OUT]), "net.npy is there already", "--name", "--restart")
    assert contents(home / "faces") == before
    assert run_here([*EMBED, *OUT, "--restart"]).code == 0
    assert contents(home / "faces") == before


def test_the_wrong_folder_of_pictures(home, run_here):
    assert run_here(["import", "folder", "photos", "--out", "faces"]).code == 0
    before = contents(home / "faces")
    Path("wrong").mkdir()
    refused(
        run_here(["embed", "wrong", *EMBED[2:], *OUT]),
        "wrong: found no picture such as p00/0.png",
        f"imported from {home / 'photos'}",
    )
    assert contents(home / "faces") == before


def test_options_change_no_byte(home, run_here):
    for jobs, batch in ((1, 1), (3, 5), (2, 64)):
        out = f"out{jobs}"
        done = run_here([*EMBED, "--jobs", str(jobs), "--batch", str(batch), "--out", out])
        assert done.code == 0, done.err
    found = [Path(f"out{jobs}/embeddings/net.npy").read_bytes() for jobs in (1, 2, 3)]
    assert found[0] == found[1] == found[2]


# -------------------------------------------------------------------- stopping and going on


@pytest.fixture
def counted(monkeypatch):
    """A list that grows by the number of faces of each call of a network."""
    from faircal.embedding.networks import Network

    calls, call = [], Network.__call__

    def count(self, faces):
        calls.append(len(faces))
        return call(self, faces)

    monkeypatch.setattr(Network, "__call__", count)
    return calls


@pytest.mark.parametrize("attributes", [False, True])
def test_the_same_command_goes_on(home, run_here, monkeypatch, counted, attributes, interrupt_at):
    words = [*EMBED, *OUT, "--jobs", "1", "--batch", "4"]
    if attributes:
        lines = [f"p{person:02},{'xy'[person % 2]}" for person in range(PEOPLE)]
        Path("who.csv").write_text("identity,site\n" + "\n".join(lines) + "\n")
        words += ["--attributes", "who.csv"]
    with monkeypatch.context() as patch:
        interrupt_at(patch, "embed", 12)
        done = run_here(words)
    assert done.code == 1
    assert done.err.splitlines()[-1] == (
        "faircal: interrupted; the same command again goes on from here"
    )
    assert not Path("faces/embeddings/net.npy").exists()
    counted.clear()
    done = run_here(words)
    assert done.code == 0, done.err
    assert sum(counted) == 36 - 12
    assert len(np.load("faces/embeddings/net.npy")) == 36
    assert not [name for name in contents(home / "faces") if ".partial" in name or ".tmp" in name]


KILLS_ITSELF = """
import os, signal
from faircal.embedding.run import VectorStore

put, calls = VectorStore.put, []

def put_and_die(self, *found):
    put(self, *found)
    calls.append(found)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)

VectorStore.put = put_and_die
"""


def test_a_killed_command_goes_on(home, run_here, run_command, counted):
    assert run_here([*EMBED, "--jobs", "1", "--batch", "4", "--out", "whole"]).code == 0
    Path("kills.py").write_text(KILLS_ITSELF)
    words = [*EMBED, "--jobs", "1", "--batch", "4", *OUT]
    run_command("--plugin", "kills.py", *words, code=-9)
    assert not Path("faces/embeddings/net.npy").exists()
    counted.clear()
    assert run_here(words).code == 0
    assert sum(counted) == 36 - 3 * 4
    assert contents(home / "faces").keys() == contents(home / "whole").keys()
    whole, found = (Path(f"{name}/embeddings/net.npy").read_bytes() for name in ("whole", "faces"))
    assert found == whole


def test_other_settings_do_not_go_on(home, run_here, monkeypatch, interrupt_at):
    with monkeypatch.context() as patch:
        interrupt_at(patch, "embed", 4)
        assert run_here([*EMBED, *OUT, "--jobs", "1", "--batch", "4"]).code == 1
    Path("other.toml").write_text(f'file = "net.onnx"\nsize = {SIZE}\nname = "net"\n')
    words = [*EMBED, *OUT]
    words[words.index("net.toml")] = "other.toml"
    refused(run_here(words), "other settings or pictures", "--restart")
    assert run_here([*words, "--restart"]).code == 0


# -------------------------------------------------------------------- lists and help


def test_help(run_here):
    done = run_here(["embed", "--help"])
    assert done.code == 0
    assert "Nothing is downloaded" in done.out
    assert "\n  faircal embed" in done.out


# -------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["embed", "photos", "--network", "dlip"], "unknown network 'dlip'; did you mean dlib?"),
        ([*EMBED[:4], "--detector", "mtcn"], "unknown detector 'mtcn'; did you mean mtcnn?"),
        (
            ["embed", "photos", "--network", "net.onnx", "--preset", "arcfase"],
            "unknown preset 'arcfase'; did you mean arcface?",
        ),
        (["embed", "photos", "--network", "net.onnx"], "net.onnx: say what the network takes"),
        (
            ["embed", "photos", "--network", "net.onnx", "--preset", "arcface"],
            "takes input of shape [1, 3, 32, 32]",
        ),
        (["embed", "photos", "--network", "nothing.onnx", "--preset", "arcface"], "nothing.onnx"),
        (["embed", "photos", "--network", "nothing.toml"], "nothing.toml: no such file"),
        (["embed", "photos", "--network", "photos"], "unknown network 'photos'"),
        (["embed", "nothing", *EMBED[2:]], "nothing: no such file or folder"),
        (["embed", "net.onnx", *EMBED[2:]], "expected a folder with a sub-folder"),
        (["embed", "empty", *EMBED[2:]], "expected pictures"),
        ([*EMBED, "--device", "tpu"], "device: expected auto, cpu or cuda, found 'tpu'"),
        ([*EMBED, "--device", "cuda"], "device: this onnxruntime has no CUDA"),
        ([*EMBED, "--jobs", "0"], "--jobs"),
        ([*EMBED, "--batch", "0"], "--batch"),
        ([*EMBED, "--batch", "many"], "--batch"),
        ([*EMBED, "--weights", "net.onnx"], "--weights: is for networks known by name"),
        ([*EMBED, "--name", "../up"], "name"),
        ([*EMBED, "--name", "a/b"], "name"),
        ([*EMBED, "--attributes", "nothing.csv"], "nothing.csv: no such file"),
        ([*EMBED, "--attributes", "strangers.csv"], "names none of the 36 images"),
        (["embed", "photos"], "--network"),
        (["embed", "--network", "dlib"], "IMAGES"),
    ],
)
def test_one_line_and_nothing_written(home, run_here, words, said):
    Path("empty").mkdir()
    Path("strangers.csv").write_text("identity,site\nnobody,x\n")
    before = contents(home)
    if "cuda" in words:
        onnxruntime = pytest.importorskip("onnxruntime")
        if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
            pytest.skip("this machine has a GPU")
    refused(run_here([*words, *OUT]), said)
    assert contents(home) == before


def test_weights_that_are_not_here(home, run_here):
    done = run_here(["embed", "photos", "--network", "arcface", *OUT])
    refused(
        done,
        "arcfaceresnet100-8.onnx",
        "github.com/onnx/models",
        "Apache-2.0",
        str(home / "weights"),
    )
    assert not Path("faces").exists()


def test_given_weights_that_are_not_there_or_others(home, run_here):
    words = ["embed", "photos", "--network", "arcface", *OUT]
    refused(run_here([*words, "--weights", "nothing.onnx"]), "nothing.onnx: no such file")
    refused(run_here([*words, "--weights", "net.onnx"]), "net.onnx: expected SHA-256")
    assert not Path("faces").exists()


def test_out_is_a_file(home, run_here):
    refused(run_here([*EMBED, "--out", "net.onnx"]), "net.onnx", "is a file")
    refused(run_here([*EMBED, "--out", "net.onnx/faces"]), "net.onnx is a file")


def test_out_has_something_else_in_it(home, run_here):
    Path("faces").mkdir()
    Path("faces/notes.txt").write_text("mine")
    refused(run_here([*EMBED, *OUT]), "faces: there is something already; choose a new folder")
    assert contents(home / "faces") == {"notes.txt": b"mine"}


def test_an_empty_folder_can_be_filled(home, run_here):
    Path("faces").mkdir()
    assert run_here([*EMBED, *OUT]).code == 0


def test_nobody_anywhere(home, run_here):
    """Nothing is left of a folder that would be of no use."""
    pytest.importorskip("dlib")
    (home / "photos").unlink()
    make_some(home / "photos")
    (home / "photos/b/notes.txt").unlink()
    before = contents(home)
    words = [word if word != "none" else "dlib" for word in EMBED]
    refused(
        run_here([*words, *OUT]),
        "no picture gave a vector (4 × no face found, 1 × picture cannot be read)",
        "--detector",
    )
    assert contents(home) == before


def test_an_imported_folder_in_which_nobody_is_found_stays(home, run_here):
    pytest.importorskip("dlib")
    (home / "photos").unlink()
    make_some(home / "photos")
    assert run_here(["import", "folder", "photos", "--out", "faces"]).code == 0
    before = contents(home / "faces")
    words = [word if word != "none" else "dlib" for word in EMBED]
    refused(run_here([*words, *OUT]), "no picture gave a vector")
    assert contents(home / "faces") == before


# -------------------------------------------------------------------- without extras

MISSING = [
    ("PIL", "dlib", [], "'faircal embed' needs PIL", "embed"),
    ("dlib", "dlib", [], "network dlib needs dlib", "embed"),
    ("onnxruntime", "arcface", [], "network arcface needs onnxruntime", "embed"),
    ("onnxruntime", "net.toml", [], "network net needs onnxruntime", "embed"),
    ("torch", "facenet-vggface2", [], "network facenet-vggface2 needs torch", "torch"),
    ("torch", "net.toml", ["--detector", "mtcnn"], "detector mtcnn needs torch", "torch"),
    ("dlib", "net.toml", ["--detector", "dlib"], "detector dlib needs dlib", "embed"),
]


@pytest.mark.parametrize(("module", "network", "more", "said", "extra"), MISSING)
def test_without_a_package(home, run_here, monkeypatch, module, network, more, said, extra):
    monkeypatch.setitem(sys.modules, module, None)
    done = run_here(["embed", "photos", "--network", network, *more, *OUT])
    assert done.code == 2
    assert done.out == ""
    also = "; or choose --detector dlib" if said.startswith("detector mtcnn") else ""
    assert done.err == (
        f"faircal: {said}, which is not installed: pip install 'faircal[{extra}]'{also}\n"
    )
    assert not Path("faces").exists()


WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(
    ["PIL", "onnxruntime", "onnx", "dlib", "torch", "face_recognition_models", "facenet_pytorch"]
))
from faircal.cli.main import main
main(sys.argv[1:])
"""


def without_extras(*words):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_nothing_installed(home):
    done = without_extras("embed", "photos", "--network", "dlib", "--out", "faces")
    assert done.returncode == 2
    assert done.stderr == (
        "faircal: 'faircal embed' needs PIL, which is not installed: pip install 'faircal[embed]'\n"
    )
    assert not Path("faces").exists()
