"""dlib's detector on photographs in the public domain, with MTCNN as a second opinion."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from faircal._base.errors import MissingExtraError, ParameterError
from faircal.embedding.detectors import DETECTORS, five_points
from faircal.embedding.pictures import Face

image = pytest.importorskip("PIL.Image")


def as_seen(points):
    """Whether the points lie as those of an upright face do."""
    left_eye, right_eye, nose, left_mouth, right_mouth = points
    return (
        left_eye[0] < nose[0] < right_eye[0]
        and left_mouth[0] < nose[0] < right_mouth[0]
        and max(left_eye[1], right_eye[1]) < nose[1] < min(left_mouth[1], right_mouth[1])
    )


@pytest.mark.parametrize("name", ["astronaut"])
def test_points_are_mtcnns_within_a_few_pixels(request, dlib_detector, mtcnn_detector, name):
    picture = request.getfixturevalue(name)
    (face,), (other,) = dlib_detector(picture), mtcnn_detector(picture)
    # Hopper's face is twice as wide as the astronaut's.
    width = face.box[2] - face.box[0]
    assert np.linalg.norm(face.points - other.points, axis=1).max() < 0.07 * width
    assert as_seen(face.points)
    assert as_seen(other.points)
    assert face.has_points


def test_the_box_holds_the_points(dlib_detector, astronaut, hopper):
    for picture in (astronaut, hopper):
        (face,) = dlib_detector(picture)
        left, top, right, bottom = face.box
        assert ((face.points > (left, top)) & (face.points < (right, bottom))).all()
        assert all(type(side) is float for side in face.box)
        assert face.points.shape == (5, 2)
        assert face.points.dtype == np.float64


def test_a_sure_face_comes_before_a_doubtful_one(dlib_detector, mtcnn_detector, astronaut):
    """However large that is: dlib takes the helmet for a face, in the mirror for a large one."""
    for picture in (astronaut, np.ascontiguousarray(astronaut[:, ::-1])):
        for detector in (dlib_detector, mtcnn_detector):
            faces = detector(picture)
            assert faces[0].score == max(face.score for face in faces) > 0.5


@pytest.fixture(scope="module")
def both(astronaut, hopper):
    """The astronaut on the left, Hopper, larger, on the right."""
    missing = len(hopper) - len(astronaut)
    return np.hstack([np.pad(astronaut, ((0, missing), (0, 0), (0, 0))), hopper])


def test_several_faces_largest_first(dlib_detector, astronaut, hopper, both):
    first, second, *_ = dlib_detector(both)  # then doubtful ones
    assert first.box[0] > 512 > second.box[2]
    (alone,) = dlib_detector(astronaut)
    np.testing.assert_allclose(second.points, alone.points, atol=2)
    (alone,) = dlib_detector(hopper)
    np.testing.assert_allclose(first.points, np.add(alone.points, [512, 0]), atol=8)


def test_nobody(dlib_detector, mtcnn_detector, coffee):
    assert dlib_detector(coffee) == []
    assert mtcnn_detector(coffee) == []
    assert dlib_detector(np.full((200, 200, 3), 128, np.uint8)) == []


@pytest.mark.parametrize("shape", [(1, 1), (1, 500), (500, 1), (5, 5), (19, 30), (0, 0), (0, 40)])
def test_nothing_in_tiny_pictures(dlib_detector, shape):
    assert dlib_detector(np.full((*shape, 3), 90, np.uint8)) == []


@pytest.mark.parametrize("factor", [3, 4])
def test_a_large_picture_gives_points_in_its_own_pixels(dlib_detector, astronaut, factor):
    """It is shrunk to look at: 1536 pixels in steps of two, 2048 too."""
    (small,) = dlib_detector(astronaut)
    side = 512 * factor
    large = np.asarray(image.fromarray(astronaut).resize((side, side), image.Resampling.BICUBIC))
    face = dlib_detector(large)[0]
    assert as_seen(face.points)
    # From centre of pixel to centre of pixel.
    back = (face.points + 0.5) / factor - 0.5
    np.testing.assert_allclose(back, small.points, atol=3)
    np.testing.assert_allclose(np.array(face.box) / factor, small.box, atol=12)


def test_shrunk_points_are_where_they_were(dlib_detector, astronaut):
    """A picture of whole squares of pixels, shrunk, is the picture itself."""
    (small,) = dlib_detector(astronaut)
    large = astronaut.repeat(4, axis=0).repeat(4, axis=1)  # looked at in half its size
    face = dlib_detector(large)[0]
    np.testing.assert_allclose((face.points + 0.5) / 4 - 0.5, small.points, atol=2)


def test_a_small_face_is_found_in_twice_the_size(dlib_detector, astronaut):
    small = np.asarray(image.fromarray(astronaut).resize((256, 256), image.Resampling.LANCZOS))
    (face,) = dlib_detector(small)
    assert face.box[2] - face.box[0] < 80
    (whole,) = dlib_detector(astronaut)
    np.testing.assert_allclose(face.points, whole.points / 2, atol=3)


def test_any_layout_in_memory(dlib_detector, astronaut):
    (expected,) = dlib_detector(astronaut)
    locked = np.asfortranarray(astronaut)
    locked.flags.writeable = False
    (face,) = dlib_detector(locked)
    assert face.box == expected.box


def test_several_threads_at_once(dlib_detector, astronaut, hopper):
    alone = [dlib_detector(picture)[0].points for picture in (astronaut, hopper)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(dlib_detector, [astronaut, hopper] * 3))
    for found, expected in zip(together, alone * 3, strict=True):
        np.testing.assert_array_equal(found[0].points, expected)


def test_what_is_sure_comes_before_what_is_larger(dlib_detector, monkeypatch):
    """A doubtful large one, a sure small one, a sure larger one."""
    dlib = pytest.importorskip("dlib")

    class Finds:
        def run(self, pixels, times, least):
            boxes = [dlib.rectangle(0, 0, side, side) for side in (99, 29, 49)]
            return boxes, [0.4, 1.0, 0.9], [0, 0, 0]

    monkeypatch.setattr(dlib_detector, "_find", Finds())
    faces = dlib_detector(np.zeros((120, 120, 3), np.uint8))
    assert [face.box[2] for face in faces] == [50, 30, 100]


def test_five_points_of_sixty_eight():
    points = np.stack([np.arange(68.0), 100 + np.arange(68.0)], axis=1)
    expected = [[38.5, 138.5], [44.5, 144.5], [30, 130], [48, 148], [54, 154]]
    np.testing.assert_array_equal(five_points(points), expected)


def test_none_is_the_whole_picture(blind):
    (face,) = blind(np.zeros((20, 30, 3), np.uint8))
    assert face.box == (0, 0, 30, 20)
    assert not face.has_points
    assert blind.blind
    assert blind.settings() == {"name": "none"}


def test_names():
    assert list(DETECTORS) == ["mtcnn", "dlib", "none"]
    assert [name for name, kind in DETECTORS.items() if kind.blind] == ["none"]
    with pytest.raises(ParameterError, match="unknown detector 'mtccn'; did you mean mtcnn"):
        DETECTORS["mtccn"]


@pytest.mark.parametrize(("name", "module"), [("dlib", "dlib"), ("mtcnn", "torch")])
def test_without_its_package(monkeypatch, name, module):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(MissingExtraError, match=f"^detector {name} needs {module}, which is not"):
        DETECTORS[name]("cpu")


def test_mtcnn_says_its_settings(mtcnn_detector):
    """What the record says is what the detector has."""
    made, said = mtcnn_detector._mtcnn, mtcnn_detector.settings()
    assert said["min_face"] == made.min_face
    assert tuple(said["thresholds"]) == made.thresholds
    assert said["factor"] == made.factor


def test_a_face_without_points():
    face = Face.without_points((1.0, 2.0, 3.0, 4.0))
    assert not face.has_points
    assert face.score == 1
    assert Face((0, 0, 1, 1), np.zeros((5, 2)), 0.5).has_points
