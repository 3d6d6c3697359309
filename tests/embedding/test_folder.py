"""Dataset folders: what is read, what is dropped with what, what is written, and when not."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faircal._base.errors import DataError, ParameterError
from faircal.data import load
from faircal.data.tables import read_table
from faircal.embedding import embed_folder, folder

pytest.importorskip("PIL")

#: A picture's red says which it is, so that its vector is known.
REDS = {"a/1.png": 10, "a/2.png": 20, "b/007.png": 30, "b/8.png": 40, "c/9.png": 50}
BLUE = (0, 0, 255)  # the detector sees no face there
PAIRS = [
    ("a/1.png", "a/2.png", 1),
    ("a/1.png", "b/007.png", 0),
    ("b/007.png", "b/8.png", 1),
    ("b/8.png", "c/9.png", 0),
    ("c/9.png", "a/2.png", 0),
]


@pytest.fixture
def root(tmp_path, save_picture):
    root = tmp_path / "pictures"
    for name, red in REDS.items():
        save_picture(root / name, (red, 100, 0))
    return root


@pytest.fixture
def data(tmp_path):
    """A dataset folder as an importer writes it."""
    data = tmp_path / "data"
    data.mkdir()
    lines = [f"{name},{name[0]},{'007' if name[0] == 'b' else '010'}" for name in REDS]
    (data / "images.csv").write_text("image_id,identity,site\n" + "\n".join(lines) + "\n")
    pairs = [f"{left},{right},{genuine},{1 + genuine}" for left, right, genuine in PAIRS]
    (data / "pairs.csv").write_text("left,right,genuine,fold\n" + "\n".join(pairs) + "\n")
    (data / "dataset.json").write_text(
        json.dumps({"name": "mine", "imported": {"layout": "x", "from": "/where/it/was"}})
    )
    return data


def reds(data, name="means"):
    """Return the red of each vector, which says whose it is."""
    return np.load(data / "embeddings" / f"{name}.npy")[:, 0].tolist()


def ids(data):
    (path,) = data.glob("images.*")
    return read_table(path)["image_id"].to_pylist()


def snapshot(folder):
    """Return every file's bytes, and every folder, hidden ones too."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def one_line(caught, *words):
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text
    return text


# -------------------------------------------------------------------- all is well


def test_a_folder_is_embedded(data, root, means, marked):
    before = snapshot(data)
    made = embed_folder(data, root, means(), marked)
    assert (made.name, made.images, made.dimension) == ("means", 5, 12)
    assert (made.pairs, made.dropped_pairs, made.dropped) == (5, 0, {})
    assert made.reasons() == {}
    assert reds(data) == list(REDS.values())
    vectors = np.load(data / "embeddings/means.npy")
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors[2], [30] * 4 + [100] * 4 + [0] * 4, rtol=1e-6)
    after = snapshot(data)
    assert set(after) == set(before) | {"embeddings", "embeddings/means.npy"}
    assert after["images.csv"] == before["images.csv"]
    about = json.loads(after["dataset.json"])
    assert about["name"] == "mine"
    assert about["imported"]["from"] == "/where/it/was"


def test_pairs_stay_as_they_are_where_nothing_is_dropped(data, root, means, marked):
    before = (data / "pairs.csv").read_bytes()
    embed_folder(data, root, means(), marked)
    assert (data / "pairs.csv").read_bytes() == before


def test_the_record_says_what_decides_the_vectors(data, root, means, marked):
    embed_folder(data, root, means(mean=3.0), marked)
    record = json.loads((data / "dataset.json").read_text())["embeddings"]["means"]
    assert record["network"] == "means"
    assert record["weights_sha256"] == "0" * 64
    assert record["preprocessing"]["mean"] == 3.0
    assert record["detector"] == {"name": "marked"}
    assert {"faircal", "PIL"} <= record["versions"].keys()
    text = json.dumps(record)
    assert "[" not in text.replace(json.dumps(record["preprocessing"]["points"]), "")


def test_scores_are_there_afterwards(data, root, means, marked):
    embed_folder(data, root, means(), marked)
    found = load(data)
    vectors = np.load(data / "embeddings/means.npy").astype(float)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    order = list(REDS)
    expected = [vectors[order.index(a)] @ vectors[order.index(b)] for a, b, _ in PAIRS]
    np.testing.assert_allclose(found.scores, expected, atol=1e-6)


def test_another_name(data, root, means, marked):
    assert embed_folder(data, root, means(), marked, name="mine").name == "mine"
    assert [path.name for path in (data / "embeddings").iterdir()] == ["mine.npy"]


@pytest.mark.parametrize("name", ["../up", "a/b", ".hidden", ""])
def test_a_network_whose_name_is_no_file_name(data, root, means, marked, name):
    """A description can call its network anything."""
    before, around = snapshot(data), snapshot(data.parent)
    with pytest.raises(ParameterError) as caught:
        embed_folder(data, root, means(name), marked)
    one_line(caught, "name")
    assert snapshot(data) == before
    assert snapshot(data.parent) == around


@pytest.mark.parametrize("name", ["../mine", "a/b", ".hidden", "/tmp/mine"])  # noqa: S108
def test_a_name_that_is_no_file_name(data, root, means, marked, name):
    before, around = snapshot(data), snapshot(data.parent)
    with pytest.raises(ParameterError) as caught:
        embed_folder(data, root, means(), marked, name=name)
    one_line(caught, "name")
    assert snapshot(data) == before
    assert snapshot(data.parent) == around


def test_without_pairs_and_without_an_about(data, root, means, marked):
    (data / "pairs.csv").unlink()
    (data / "dataset.json").unlink()
    made = embed_folder(data, root, means(), marked)
    assert (made.images, made.pairs) == (5, 0)
    assert not (data / "pairs.csv").exists()
    assert list(json.loads((data / "dataset.json").read_text())) == ["embeddings"]


@pytest.mark.parametrize("jobs", [1, 4])
@pytest.mark.parametrize("batch", [1, 2, 32])
def test_the_same_bytes_whatever_the_jobs_and_the_batch(
    data, root, means, marked, tmp_path, jobs, batch
):
    other = tmp_path / "other"
    shutil.copytree(data, other)
    embed_folder(data, root, means(), marked, jobs=1, batch=3)
    embed_folder(other, root, means(), marked, jobs=jobs, batch=batch)
    assert snapshot(other) == snapshot(data)


# -------------------------------------------------------------------- what is dropped


@pytest.fixture
def spoiled(root, save_picture):
    """Pictures of which one shows nobody, one is text, one is gone and one is black."""
    save_picture(root / "a/2.png", BLUE)
    (root / "b/8.png").write_text("no picture")
    (root / "c/9.png").unlink()
    return root


REASONS = {
    "a/2.png": "no face found",
    "b/8.png": "picture cannot be read",
    "c/9.png": "picture not found",
}


def test_images_without_a_vector_go_with_their_pairs(data, spoiled, means, marked):
    made = embed_folder(data, spoiled, means(), marked)
    assert made.dropped == REASONS
    assert made.reasons() == dict.fromkeys(REASONS.values(), 1)
    assert (made.images, made.pairs, made.dropped_pairs) == (2, 1, 4)
    assert ids(data) == ["a/1.png", "b/007.png"]
    assert reds(data) == [10, 30]
    pairs = read_table(data / "pairs.csv").to_pylist()
    assert pairs == [{"left": "a/1.png", "right": "b/007.png", "genuine": 0, "fold": 1}]
    dropped = read_table(data / "dropped.csv").to_pylist()
    assert dropped == [{"image_id": i, "reason": f"{why} (means)"} for i, why in REASONS.items()]
    assert not [name for name in snapshot(data) if name.endswith((".tmp", ".partial"))]


def test_no_vector(data, root, means, marked, save_picture):
    save_picture(root / "a/1.png", (0, 0, 0))
    made = embed_folder(data, root, means(), marked)
    assert made.dropped == {"a/1.png": "the network gave no usable vector"}
    made = embed_folder(data, root, means("again", normalize=True), marked)
    assert made.images == 4


def test_text_stays_as_it_is_written(data, spoiled, means, marked):
    """A site called 007 is not 7, and a missing one is still missing."""
    (data / "images.csv").write_text(
        "image_id,identity,site,note,number\n"
        'a/1.png,a,007,"one, two",1.50\n'
        "a/2.png,a,008,,2.50\n"
        'b/007.png,b,,"says ""no""",1e3\n'
        "b/8.png,b,010,NA,\n"
        "c/9.png,c,011,x,\n"
    )
    embed_folder(data, spoiled, means(), marked)
    text = (data / "images.csv").read_text().replace('"', "").splitlines()
    assert text == [
        "image_id,identity,site,note,number",
        "a/1.png,a,007,one, two,1.50",
        "b/007.png,b,,says no,1e3",
    ]
    images = read_table(data / "images.csv")
    assert images["note"].to_pylist() == ["one, two", 'says "no"']
    assert images["identity"].to_pylist() == ["a", "b"]
    assert images["site"].null_count == 1


def test_what_is_unknown_stays_unknown(data, root, means, marked, save_picture):
    """Dropping one image changes no value of another: neither its type nor that it is missing."""
    (data / "images.csv").write_text(
        "image_id,identity,site,age\n"
        "a/1.png,a,,31\na/2.png,a,x,\nb/007.png,b,NaN,40\nb/8.png,b,nan,41\nc/9.png,,y,7\n"
    )
    before = read_table(data / "images.csv")
    save_picture(root / "a/2.png", BLUE)
    embed_folder(data, root, means(), marked)
    after = read_table(data / "images.csv")
    assert after.to_pylist() == [row for row in before.to_pylist() if row["image_id"] != "a/2.png"]
    assert before["site"].null_count == after["site"].null_count == 3


def test_tables_in_parquet_stay_in_parquet(data, spoiled, means, marked):
    for stem in ("images", "pairs"):
        path = data / f"{stem}.csv"
        table = read_table(path)
        if stem == "images":
            table = table.set_column(2, "site", pa.array(["007"] * 5))
        pq.write_table(table, data / f"{stem}.parquet")
        path.unlink()
    schema = pq.read_schema(data / "pairs.parquet")
    made = embed_folder(data, spoiled, means(), marked)
    assert (made.images, made.pairs, made.dropped_pairs) == (2, 1, 4)
    assert ids(data) == ["a/1.png", "b/007.png"]
    assert pq.read_table(data / "images.parquet")["site"].to_pylist() == ["007"] * 2
    assert pq.read_table(data / "pairs.parquet")["left"].to_pylist() == ["a/1.png"]
    assert pq.read_schema(data / "pairs.parquet").names == schema.names
    assert not list(data.glob("*.csv")) or {p.name for p in data.glob("*.csv")} == {"dropped.csv"}


def test_a_second_network_that_drops_more_thins_the_first(
    data, root, means, marked, blind, save_picture
):
    save_picture(root / "c/9.png", BLUE)
    embed_folder(data, root, means("first"), blind)
    assert len(reds(data, "first")) == 5
    (root / "a/1.png").unlink()
    second = means("second", scale=2.0)
    before = {path: path.read_bytes() for path in data.rglob("*.*") if path.is_file()}
    with pytest.raises(DataError, match=r"1 pictures are missing .* first would lose"):
        embed_folder(data, root, second, marked)
    assert all(path.read_bytes() == content for path, content in before.items())
    save_picture(root / "a/1.png", BLUE)
    made = embed_folder(data, root, second, marked)
    assert made.dropped == {"a/1.png": "no face found", "c/9.png": "no face found"}
    assert ids(data) == ["a/2.png", "b/007.png", "b/8.png"]
    assert reds(data, "first") == [20, 30, 40]
    assert reds(data, "second") == [10, 15, 20]
    found = load(data)
    assert set(found.features) == {"first", "second"}
    assert list(json.loads((data / "dataset.json").read_text())["embeddings"]) == [
        "first",
        "second",
    ]


def test_dropped_grows(data, root, means, marked, save_picture):
    (data / "dropped.csv").write_text("image_id,reason\n007,picture not found\n")
    save_picture(root / "a/2.png", BLUE)
    embed_folder(data, root, means("first"), marked)
    save_picture(root / "b/8.png", BLUE)
    embed_folder(data, root, means("second"), marked)
    assert read_table(data / "dropped.csv").to_pylist() == [
        {"image_id": "007", "reason": "picture not found"},
        {"image_id": "a/2.png", "reason": "no face found (first)"},
        {"image_id": "b/8.png", "reason": "no face found (second)"},
    ]
    assert reds(data, "first") == [10, 30, 50]
    assert reds(data, "second") == [10, 30, 50]


def test_all_pictures_fail(data, root, means, marked, save_picture):
    for name in REDS:
        save_picture(root / name, BLUE)
    (root / "a/1.png").write_text("no picture")
    before = snapshot(data)
    with pytest.raises(DataError) as caught:
        embed_folder(data, root, means(), marked)
    one_line(
        caught,
        "no picture gave a vector (4 × no face found, 1 × picture cannot be read)",
        "try another --detector",
    )
    assert snapshot(data) == before


def test_after_all_failed_pairs_can_still_be_read(data, root, means, marked, save_picture):
    """A folder with ready-made scores is as good as it was."""
    pairs = read_table(data / "pairs.csv")
    lines = [",".join(map(str, row.values())) + ",0.5" for row in pairs.to_pylist()]
    (data / "pairs.csv").write_text("left,right,genuine,fold,score\n" + "\n".join(lines) + "\n")
    load(data)
    for name in REDS:
        save_picture(root / name, BLUE)
    with pytest.raises(DataError):
        embed_folder(data, root, means(), marked)
    assert len(load(data).scores) == 5


# -------------------------------------------------------------------- a list of pictures


def test_the_order_of_the_list_of_pictures_does_not_matter(data, root, means, marked):
    """One picture an image, listed in the images' order and in another."""
    made = {}
    for name, order in (("listed", list(REDS)), ("turned", list(REDS)[::-1])):
        lines = "".join(f"{image},{image}\n" for image in order)
        (data / "pictures.csv").write_text(f"image_id,path\n{lines}")
        embed_folder(data, root, means(name), marked)
        made[name] = np.load(data / f"embeddings/{name}.npy")
    np.testing.assert_allclose(made["turned"], made["listed"], rtol=1e-6)


def test_an_image_without_a_picture(data, root, means, marked):
    lines = "".join(f"{image},{image}\n" for image in list(REDS)[1:])
    (data / "pictures.csv").write_text(f"image_id,path\n{lines}")
    with pytest.raises(DataError) as caught:
        embed_folder(data, root, means(), marked)
    one_line(caught, "pictures.csv: an image of the images table has no picture")


def test_boxes_say_which_part(data, root, means, blind, save_picture):
    """Two images are in one picture, of which one half is red, the other green."""
    pixels = np.zeros((40, 80, 3), np.uint8)
    pixels[:, :40, 0], pixels[:, 40:, 1] = 200, 100
    save_picture(root / "both.png", pixels)
    (data / "images.csv").write_text("image_id,identity\nleft,a\nright,b\nwhole,c\n")
    (data / "pairs.csv").write_text("left,right,genuine\nleft,right,0\n")
    (data / "pictures.csv").write_text(
        "image_id,path,x,y,width,height\n"
        "left,both.png,0,0,40,40\nright,both.png,40,0,40,40\nwhole,both.png,,,,\n"
    )
    embed_folder(data, root, means(), blind)
    vectors = np.load(data / "embeddings/means.npy")
    np.testing.assert_allclose(vectors[0], [200] * 4 + [0] * 8, atol=1)
    np.testing.assert_allclose(vectors[1], [0] * 4 + [100] * 4 + [0] * 4, atol=1)
    assert vectors[2][[0, 5]].min() > 50


# -------------------------------------------------------------------- stopping and going on


@pytest.mark.parametrize("failure", [RuntimeError("the network failed"), KeyboardInterrupt()])
def test_an_interrupted_run_goes_on(data, root, means, marked, tmp_path, failure):
    whole = tmp_path / "whole"
    shutil.copytree(data, whole)
    embed_folder(whole, root, means(), marked)
    before = snapshot(data)

    def stop(what, done, total, label):
        if done == 2:
            raise failure

    with pytest.raises(type(failure)):
        embed_folder(data, root, means(), marked, jobs=1, batch=1, progress=stop)
    left = {name: content for name, content in snapshot(data).items() if "embeddings" not in name}
    assert left == before
    assert not list((data / "embeddings").glob("*.npy"))
    again = means()
    embed_folder(data, root, again, marked, jobs=1, batch=1)
    assert again.faces == 5 - 2
    assert snapshot(data) == snapshot(whole)


def interrupt(data, root, network, detector):
    network.fail_after = 2
    with pytest.raises(RuntimeError):
        embed_folder(data, root, network, detector, jobs=1, batch=1)


def test_other_settings_do_not_go_on(data, root, means, marked, blind, save_picture):
    interrupt(data, root, means(), marked)
    for network, detector in ((means(mean=1.0), marked), (means(), blind)):
        with pytest.raises(ParameterError) as caught:
            embed_folder(data, root, network, detector)
        one_line(caught, "other settings or pictures", "--restart")
    network = means(mean=1.0)
    embed_folder(data, root, network, marked, restart=True)
    assert network.faces == 5
    assert reds(data) == [9, 19, 29, 39, 49]


def test_what_is_there_is_not_replaced_unless_told(data, root, means, marked, save_picture):
    embed_folder(data, root, means(), marked)
    before = snapshot(data)
    network = means()
    with pytest.raises(DataError) as caught:
        embed_folder(data, root, network, marked)
    one_line(caught, "means.npy is there already", "--name", "--restart")
    assert network.faces == 0
    assert snapshot(data) == before
    save_picture(root / "a/1.png", (77, 100, 0))
    embed_folder(data, root, means(), marked, restart=True)
    assert reds(data) == [77, 20, 30, 40, 50]


def test_an_interrupted_run_leaves_the_folder_usable(data, root, means, marked):
    """Another embedding of the folder can be read while one is under way."""
    embed_folder(data, root, means("first"), marked)
    interrupt(data, root, means("second"), marked)
    assert list(load(data).features) == ["first"]


@pytest.mark.parametrize("name", ["embeddings.npy"])
def test_embeddings_without_a_name(data, root, means, marked, name):
    (data / name).write_bytes(b"x")
    before = snapshot(data)
    with pytest.raises(DataError) as caught:
        embed_folder(data, root, means(), marked)
    one_line(caught, f"{name} is there already", "embeddings/<name>.npy")
    assert snapshot(data) == before


KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from faircal.embedding import DETECTORS, embed_folder
from faircal.embedding.networks import Network
from faircal.embedding.preprocessing import Preprocessing

class Reds(Network):
    module = "numpy"
    def __init__(self):
        self.name, self.sha256 = "reds", "0" * 64
        self.preprocessing = Preprocessing(8, normalize=False)

    def run(self, faces):
        print(len(faces), flush=True)
        return faces.reshape(len(faces), -1)[:, :4].astype(np.float32)

def progress(what, done, total, label):
    if done >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

data, root = map(Path, sys.argv[1:3])
embed_folder(data, root, Reds(), DETECTORS["none"]("cpu"), jobs=1, batch=1, progress=progress)
"""


def test_a_killed_run_goes_on(data, root, tmp_path, monkeypatch, capsys):
    whole = tmp_path / "whole"
    shutil.copytree(data, whole)

    def run_here(folder):
        monkeypatch.setattr(sys, "argv", ["-c", str(folder), str(root), "99"])
        exec(KILLED, {})  # noqa: S102
        return capsys.readouterr().out

    run_here(whole)
    before = snapshot(data)
    command = [sys.executable, "-W", "error", "-c", KILLED, str(data), str(root), "3"]
    assert subprocess.run(command, check=False, timeout=120).returncode == -signal.SIGKILL
    assert not (data / "embeddings/reds.npy").exists()
    assert {name: content for name, content in snapshot(data).items() if name in before} == before
    assert len(run_here(data).split()) == 5 - 3
    assert snapshot(data) == snapshot(whole)


# -------------------------------------------------------------------- failing to write


def full_disk(*_, **__):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("what", ["write_dropped", "filter_table", "write_about"])
def test_a_failure_while_writing_leaves_the_folder_as_it_was(
    data, root, means, marked, monkeypatch, save_picture, what
):
    embed_folder(data, root, means("first"), marked)
    before = snapshot(data)
    save_picture(root / "a/1.png", BLUE)
    with monkeypatch.context() as patch:
        patch.setattr(folder, what, full_disk)
        with pytest.raises(OSError, match="No space left"):
            embed_folder(data, root, means("second"), marked)
    left = {n: c for n, c in snapshot(data).items() if not n.startswith("embeddings/.second")}
    assert left == before
    network = means("second")
    embed_folder(data, root, network, marked)  # goes on, and has nothing to embed
    assert network.faces == 0
    assert reds(data, "first") == reds(data, "second") == [20, 30, 40, 50]


def test_a_failure_while_vectors_are_written(data, root, means, marked, monkeypatch):
    embed_folder(data, root, means("first"), marked)
    before = snapshot(data)
    opened = np.lib.format.open_memmap

    def fails(path, *words, **more):
        return full_disk() if str(path).endswith("second.npy") else opened(path, *words, **more)

    with monkeypatch.context() as patch:
        patch.setattr(np.lib.format, "open_memmap", fails)
        with pytest.raises(OSError, match="No space left"):
            embed_folder(data, root, means("second"), marked)
    left = {n: c for n, c in snapshot(data).items() if not n.startswith("embeddings/.second")}
    assert left == before


# -------------------------------------------------------------------- finding the pictures


def test_the_wrong_folder(data, tmp_path, means, marked):
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    before = snapshot(data)
    with pytest.raises(DataError) as caught:
        embed_folder(data, wrong, means(), marked)
    one_line(
        caught,
        f"{wrong}: found no picture such as a/1.png",
        "imported from /where/it/was",
        "give the folder they lie in",
    )
    assert snapshot(data) == before


def test_the_wrong_folder_of_a_dataset_of_ones_own(data, tmp_path, means, marked):
    (data / "dataset.json").unlink()
    with pytest.raises(DataError) as caught:
        embed_folder(data, tmp_path / "nothing", means(), marked)
    assert "imported" not in one_line(caught, "found no picture such as a/1.png")


def test_the_folder_that_was_imported_or_the_one_inside(data, root, means, marked):
    """An importer notes where below its folder the pictures lie."""
    about = json.loads((data / "dataset.json").read_text())
    (data / "dataset.json").write_text(json.dumps({**about, "pictures": root.name}))
    embed_folder(data, root.parent, means("outer"), marked)
    embed_folder(data, root, means("inner"), marked)
    assert reds(data, "outer") == reds(data, "inner") == list(REDS.values())


def test_no_images_table(tmp_path, root, means, marked):
    with pytest.raises(DataError, match=r"expected images\.csv"):
        embed_folder(tmp_path, root, means(), marked)


def test_no_vector_is_in_a_message(data, root, means, marked, caplog, capfd):
    """Neither printed nor logged nor raised."""
    network = means()
    network.fail_after = 1
    with pytest.raises(RuntimeError):
        embed_folder(data, root, network, marked, jobs=1, batch=1)
    embed_folder(data, root, means(), marked)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_other_embeddings_of_another_number_of_rows(data, spoiled, means, marked):
    """They would be cut to the wrong rows; better to say so, and before hours of work."""
    (data / "embeddings").mkdir()
    np.save(data / "embeddings/other.npy", np.ones((3, 2), np.float32))
    before = snapshot(data)
    network = means()
    with pytest.raises(DataError) as caught:
        embed_folder(data, spoiled, network, marked)
    one_line(caught, "other.npy")
    assert (data / "embeddings/other.npy").read_bytes() == before["embeddings/other.npy"]


def test_pairs_without_sides(data, spoiled, means, marked):
    (data / "pairs.csv").write_text("one,two,genuine\na/1.png,a/2.png,1\n")
    with pytest.raises(DataError) as caught:
        embed_folder(data, spoiled, means(), marked)
    one_line(caught, "pairs.csv", "left")


def test_no_pair_is_left(data, root, means, marked, save_picture):
    """The folder can be read afterwards, or it is said that it can't."""
    (data / "pairs.csv").write_text("left,right,genuine\na/1.png,a/2.png,1\n")
    save_picture(root / "a/2.png", BLUE)
    try:
        made = embed_folder(data, root, means(), marked)
    except DataError as error:
        assert "pair" in str(error)
        return
    assert (made.pairs, made.dropped_pairs) == (0, 1)
    assert Path(data / "pairs.csv").read_text().count("\n") == 1


def test_pictures_that_come_back_are_taken(data, root, means, marked):
    """What was missing when a run stopped is looked for again when it goes on."""
    embed_folder(data, root, means("first"), marked)
    hidden = (root / "a/1.png").rename(root / "a/1.away")
    with pytest.raises(DataError, match="embed into a new folder"):
        embed_folder(data, root, means("second"), marked)
    hidden.rename(root / "a/1.png")
    network = means("second")
    made = embed_folder(data, root, network, marked)
    assert (made.images, made.dropped) == (5, {})
    assert network.sizes == [1]


def test_another_folder_does_not_go_on(data, root, means, marked, tmp_path):
    """The same names may be other pictures there."""
    network = means()
    network.fail_after = 0
    with pytest.raises(RuntimeError):
        embed_folder(data, root, network, marked)
    shutil.copytree(root, tmp_path / "other")
    with pytest.raises(ParameterError, match="--restart"):
        embed_folder(data, tmp_path / "other", means(), marked)


def test_images_that_change_meanwhile(data, root, means, marked):
    network = means()
    run = network.run

    def change(faces):
        text = (data / "images.csv").read_text()
        (data / "images.csv").write_text(text.replace("b/8.png", "b/9.png"))
        return run(faces)

    network.run = change
    with pytest.raises(DataError, match="its images changed"):
        embed_folder(data, root, network, marked)
    assert not (data / "embeddings/means.npy").exists()


def test_nothing_usable_leaves_the_folder_as_it_was(data, root, means, marked):
    embed_folder(data, root, means("first"), marked)
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    nothing = means("second")
    nothing.run = lambda faces: np.zeros((len(faces), 12), np.float32)
    with pytest.raises(DataError, match="no picture gave a vector"):
        embed_folder(data, root, nothing, marked)
    assert {path: path.read_bytes() for path in data.rglob("*") if path.is_file()} == before
