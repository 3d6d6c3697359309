"""MTCNN against facenet-pytorch's on pictures with and without faces, and its parts by hand."""

from __future__ import annotations

import runpy
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from faircal._base.errors import ModelFileError
from faircal.embedding import mtcnn
from faircal.embedding.mtcnn import MTCNN

REFERENCE = runpy.run_path(str(Path(__file__).with_name("reference.py")))
CPU = torch.device("cpu")

#: How many faces there are in each picture.
FACES = {
    "astronaut": 1,
    "hopper": 1,
    "both": 2,
    "grey": 1,
    "cut by the edge": 1,
    "large": 2,
    "coffee": 0,
    "noise": 0,
    "flat": 0,
    "black": 0,
    "smallest": 0,
}


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def pictures():
    data = pytest.importorskip("skimage.data")
    image = pytest.importorskip("PIL.Image")
    cbook = pytest.importorskip("matplotlib.cbook")
    astronaut = data.astronaut()
    with image.open(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)) as opened:
        hopper = np.array(opened.convert("RGB"))
    missing = len(hopper) - len(astronaut)
    both = np.hstack([np.pad(astronaut, ((0, missing), (0, 0), (0, 0))), hopper])
    grey = np.repeat(hopper.mean(2, keepdims=True), 3, axis=2).astype(np.uint8)
    noise = np.random.default_rng(0).integers(0, 256, (160, 240, 3), dtype=np.uint8)
    return {
        "astronaut": astronaut,
        "hopper": hopper,
        "both": both,
        "grey": grey,
        "cut by the edge": hopper[150:, 190:],
        "large": np.array(image.fromarray(both).resize((1300, 800))),
        "coffee": data.coffee(),
        "noise": noise,
        "flat": np.full((100, 140, 3), 128, np.uint8),
        "black": np.zeros((30, 90, 3), np.uint8),
        "smallest": noise[:20, :20],
    }


@pytest.fixture(scope="module")
def package():
    return REFERENCE["facenet_pytorch"]()


@pytest.fixture(scope="module")
def folder():
    return REFERENCE["weights_folder"]()


@pytest.fixture(scope="module")
def detector(folder):
    return MTCNN(folder, CPU)


@pytest.fixture(scope="module")
def reference(package):
    return package.MTCNN(keep_all=True)


def assert_same(faces, reference, picture):
    """Assert that these are the faces, within a hundredth of a pixel, that the reference finds."""
    image = pytest.importorskip("PIL.Image")
    boxes, scores, points = reference.detect(image.fromarray(picture), landmarks=True)
    if boxes is None:
        assert faces == []
        return
    assert len(faces) == len(boxes)
    for face, box, score, five in zip(faces, boxes, scores, points, strict=True):
        np.testing.assert_allclose(face.box, box.astype(float), rtol=0, atol=1e-2)
        np.testing.assert_allclose(face.points, five.astype(float), rtol=0, atol=1e-2)
        assert face.score == pytest.approx(score, abs=1e-5)


# -------------------------------------------------------------------- against the reference


@pytest.mark.parametrize("name", ["PNet", "RNet", "ONet"])
def test_names_and_shapes_are_the_published_ones(package, detector, name):
    theirs = getattr(package.models.mtcnn, name)(pretrained=False).state_dict()
    ours = getattr(detector, f"{name[0].lower()}_net").state_dict()
    assert {n: t.shape for n, t in ours.items()} == {n: t.shape for n, t in theirs.items()}


@pytest.mark.parametrize("name", FACES)
def test_same_faces_as_the_reference(detector, reference, pictures, name):
    faces = detector.detect(pictures[name])
    assert len(faces) == FACES[name]
    assert_same(faces, reference, pictures[name])


@pytest.mark.parametrize("seed", range(3))
def test_same_faces_in_collages(detector, reference, pictures, seed):
    """Faces of many sizes, turned, mirrored, dimmed and cut off, on top of each other."""
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(seed)
    height, width = rng.integers(120, 400, 2).tolist()
    collage = image.fromarray(pictures["coffee"]).resize((width, height))
    for name in rng.choice(["astronaut", "hopper"], 5):
        dimmed = (pictures[name] * rng.uniform(0.4, 1)).astype(np.uint8)
        tile = image.fromarray(np.ascontiguousarray(dimmed[:, :: rng.choice([1, -1])]))
        tile = tile.rotate(rng.uniform(-30, 30)).resize([int(rng.integers(60, 300))] * 2)
        collage.paste(tile, tuple(rng.integers(-60, (width, height)).tolist()))
    picture = np.array(collage)
    assert_same(detector.detect(picture), reference, picture)


def test_same_faces_with_other_settings(package, folder, pictures):
    picture = pictures["astronaut"][::2, ::2]
    reference = package.MTCNN(
        keep_all=True, min_face_size=40, factor=0.5, thresholds=(0.3, 0.2, 0.1)
    )
    ours = MTCNN(folder, CPU)
    ours.min_face, ours.factor, ours.thresholds = 40, 0.5, (0.3, 0.2, 0.1)
    assert_same(ours.detect(picture), reference, picture)


# -------------------------------------------------------------------- pictures


def test_a_face_lies_where_it_is(detector, pictures):
    (face,) = detector.detect(pictures["astronaut"])
    left, top, right, bottom = face.box
    (left_eye, right_eye, nose, left_mouth, right_mouth) = face.points
    assert 150 < left < left_eye[0] < nose[0] < right_eye[0] < right < 300
    assert left_mouth[0] < nose[0] < right_mouth[0]
    assert 50 < top < left_eye[1] < nose[1] < left_mouth[1] < bottom < 250
    assert face.points.shape == (5, 2)
    assert face.points.dtype == np.float64
    assert all(type(side) is float for side in face.box)
    assert type(face.score) is float
    assert 0.99 < face.score <= 1


def test_the_largest_face_comes_first(detector, pictures):
    first, second = detector.detect(pictures["both"])
    assert first.box[0] > 512 > second.box[2]  # Hopper on the right fills more of her picture


def test_a_face_cut_by_the_edge_reaches_beyond_it(detector, pictures):
    (face,) = detector.detect(pictures["cut by the edge"])
    assert min(face.box[:2]) < 0


@pytest.mark.parametrize(
    "shape", [(0, 0), (0, 50), (1, 1), (1, 500), (500, 1), (11, 12), (19, 19), (19, 400)]
)
def test_nothing_in_tiny_pictures(detector, shape):
    assert detector.detect(np.full((*shape, 3), 200, np.uint8)) == []


def test_any_layout_in_memory(detector, pictures):
    plain = pictures["astronaut"]
    mirrored = np.ascontiguousarray(plain[:, ::-1])[:, ::-1]
    locked = np.asfortranarray(plain)
    locked.flags.writeable = False
    (expected,) = detector.detect(plain)
    for picture in (mirrored, locked):
        (face,) = detector.detect(picture)
        assert face.box == expected.box


def test_several_threads_at_once(detector, pictures):
    names = ["astronaut", "both", "coffee", "grey"]
    alone = {name: detector.detect(pictures[name]) for name in set(names)}
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda name: detector.detect(pictures[name]), names))
    for name, faces in zip(names, together, strict=True):
        assert len(faces) == len(alone[name])
        for face, expected in zip(faces, alone[name], strict=True):
            np.testing.assert_allclose(face.box, expected.box, rtol=0, atol=1e-3)
            np.testing.assert_allclose(face.points, expected.points, rtol=0, atol=1e-3)


# -------------------------------------------------------------------- what is refused


def test_weights_of_another_network(folder, tmp_path):
    for name in ("pnet", "rnet", "onet"):
        shutil.copy(folder / f"{name}.pt", tmp_path)
    shutil.copy(folder / "rnet.pt", tmp_path / "onet.pt")
    with pytest.raises(ModelFileError) as caught:
        MTCNN(tmp_path, CPU)
    assert str(caught.value).startswith(f"{tmp_path / 'onet.pt'}: expected the weights of MTCNN's")
    assert "\n" not in str(caught.value)


# -------------------------------------------------------------------- the parts, by hand


def boxes(*rows):
    return np.array(rows, np.float32).reshape(-1, 4)


def test_overlap_of_two_boxes_as_a_part_of_both():
    # 10 × 10 each; shared 10 × 5 of 150 together, a third.
    pair = boxes([0, 0, 10, 10], [0, 5, 10, 15])
    scores = np.array([0.8, 0.9], np.float32)
    assert mtcnn._suppress(pair, scores, 0.34).tolist() == [1, 0]
    assert mtcnn._suppress(pair, scores, 0.33).tolist() == [1]


def test_overlap_of_two_boxes_as_a_part_of_the_smaller():
    # 10 × 10 and 5 × 10 pixels, where a box from 0 to 9 has ten; shared 4 × 10, four fifths.
    pair = boxes([0, 0, 9, 9], [6, 0, 10, 9])
    scores = np.array([0.9, 0.8], np.float32)
    assert mtcnn._suppress(pair, scores, 0.81, of_smaller=True).tolist() == [0, 1]
    assert mtcnn._suppress(pair, scores, 0.79, of_smaller=True).tolist() == [0]


def test_a_box_that_is_dropped_drops_no_other():
    # Each overlaps the next by three fifths, and the first the third by a third.
    row = boxes([0, 0, 4, 1], [1, 0, 5, 1], [2, 0, 6, 1])
    scores = np.array([0.9, 0.8, 0.7], np.float32)
    assert mtcnn._suppress(row, scores, 0.5).tolist() == [0, 2]


def test_equal_scores_and_no_boxes():
    pair, scores = boxes([0, 0, 9, 9], [0, 0, 9, 9]), np.ones(2, np.float32)
    assert mtcnn._suppress(pair, scores, 0.5).tolist() == [0]
    assert mtcnn._suppress(pair, scores, 0.5, of_smaller=True).tolist() == [1]
    assert mtcnn._suppress(boxes(), np.empty(0, np.float32), 0.5).size == 0


def test_a_box_made_square_keeps_its_centre():
    assert mtcnn._square(boxes([0, 0, 4, 10], [2, 3, 6, 5])).tolist() == [
        [-3, 0, 7, 10],
        [2, 2, 6, 6],
    ]


def test_a_candidate_outside_the_picture_is_dropped(detector):
    """The published code fails on such a one."""
    pixels = torch.zeros(1, 3, 50, 60)
    candidates = boxes([-40, 5, -5, 40], [10, 10, 40, 40], [70, 5, 90, 25], [-20, -20, 30, 30])
    left, (probability, shift) = mtcnn._look(detector.r_net, pixels, candidates, 24)
    assert left.tolist() == candidates[[1, 3]].tolist()
    assert (probability.shape, shift.shape) == ((2, 2), (2, 4))
