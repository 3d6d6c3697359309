"""From pixels to a network's input by hand; presets; descriptions of networks in TOML."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from faircal._base.errors import DataError, ParameterError
from faircal.embedding.preprocessing import (
    ARCFACE_POINTS,
    DLIB_POINTS,
    PRESETS,
    Preprocessing,
    read_description,
)

#: Two faces of 2 × 2 pixels: red, green, blue.
FACES = np.arange(2 * 2 * 2 * 3, dtype=np.uint8).reshape(2, 2, 2, 3) * 10


# -------------------------------------------------------------------- pixels


def test_nothing_is_changed_unless_told():
    made = Preprocessing(2)(FACES)
    assert made.dtype == np.float32
    assert made.shape == (2, 3, 2, 2)
    assert made.flags.c_contiguous
    for n, channel, y, x in np.ndindex(made.shape):
        assert made[n, channel, y, x] == FACES[n, y, x, channel]


def test_channels_are_turned_round():
    rgb, bgr = Preprocessing(2)(FACES), Preprocessing(2, channels="bgr")(FACES)
    np.testing.assert_array_equal(bgr, rgb[:, ::-1])
    np.testing.assert_array_equal(bgr[0, 0], FACES[0, :, :, 2])


def test_layout():
    made = Preprocessing(2, layout="nhwc")(FACES)
    np.testing.assert_array_equal(made, FACES)
    assert made.dtype == np.float32
    both = Preprocessing(2, layout="nhwc", channels="bgr")(FACES)
    np.testing.assert_array_equal(both, FACES[..., ::-1])
    assert both.flags.c_contiguous


@pytest.mark.parametrize(
    ("preset", "black", "grey", "white"),
    [
        ("arcface", 0.0, 128.0, 255.0),
        ("insightface", -1.0, 0.5 / 127.5, 1.0),
        ("mobilefacenet", -127.5 / 128, 0.5 / 128, 127.5 / 128),
        ("adaface", -1.0, 0.5 / 127.5, 1.0),
        ("facenet", -127.5 / 128, 0.5 / 128, 127.5 / 128),
    ],
)
def test_presets_give_pixels_these_values(preset, black, grey, white):
    pixels = np.array([0, 128, 255], np.uint8).reshape(1, 1, 3, 1).repeat(3, axis=3)
    made = PRESETS[preset](pixels)
    np.testing.assert_allclose(made[0, 0, 0], [black, grey, white], rtol=1e-6, atol=1e-7)


def test_the_faces_are_left_as_they_are():
    faces = FACES.copy()
    faces.flags.writeable = False
    for preset in PRESETS.values():
        preset(faces)
    np.testing.assert_array_equal(faces, FACES)


def test_presets():
    """As their owners use them."""
    sizes = {name: preset.size for name, preset in PRESETS.items()}
    assert sizes == {
        "arcface": 112,
        "insightface": 112,
        "mobilefacenet": 112,
        "adaface": 112,
        "facenet": 160,
    }
    assert [name for name, preset in PRESETS.items() if preset.channels == "bgr"] == ["adaface"]
    assert [name for name, preset in PRESETS.items() if preset.align == "box"] == ["facenet"]
    assert all(preset.points == ARCFACE_POINTS for preset in PRESETS.values())


@pytest.mark.parametrize(("points", "size"), [(ARCFACE_POINTS, 112), (DLIB_POINTS, 150)])
def test_templates_look_like_a_face(points, size):
    left_eye, right_eye, nose, left_mouth, right_mouth = points
    assert 0 < left_eye[0] < nose[0] < right_eye[0] < size
    assert 0 < left_eye[1] < nose[1] < left_mouth[1] < size
    assert left_mouth[0] < nose[0] < right_mouth[0]
    assert abs(left_eye[1] - right_eye[1]) < 1
    assert abs(left_mouth[1] - right_mouth[1]) < 1
    assert abs(np.mean([left_eye[0], right_eye[0]]) - size / 2) < 2


# -------------------------------------------------------------------- vectors


def test_unit_length_by_hand():
    made = Preprocessing(2).finish(np.array([[3, 4], [0, -2]], np.float32))
    np.testing.assert_allclose(made, [[0.6, 0.8], [0, -1]], rtol=1e-6)
    assert made.dtype == np.float32


def test_no_length_no_vector():
    made = Preprocessing(2).finish(np.array([[0, 0], [np.nan, 1], [1, 0]], np.float32))
    assert np.isnan(made[:2]).all()
    assert made[2].tolist() == [1, 0]


def test_vectors_stay_as_they_are_where_told():
    vectors = np.array([[3, 4], [0, 0]], np.float32)
    np.testing.assert_array_equal(Preprocessing(2, normalize=False).finish(vectors), vectors)


# -------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"size": 0}, "size: expected a whole number of 1 or more, found 0"),
        ({"size": 112.0}, "size: expected a whole number"),
        ({"size": "112"}, "size: expected a whole number"),
        ({"size": True}, "size: expected a whole number"),
        ({"margin": -1}, "margin: expected a whole number of 0 or more, found -1"),
        ({"margin": 2.5}, "margin: expected a whole number"),
        ({"margin": 112}, "margin: expected less than size 112, found 112"),
        ({"align": "eyes"}, "align: expected points or box, found 'eyes'"),
        ({"align": "point"}, "align: expected points or box, found 'point'"),
        ({"align": None}, "align: expected points or box, found None"),
        ({"channels": "RGB"}, "channels: expected rgb or bgr, found 'RGB'"),
        ({"channels": ["rgb"]}, "channels: expected"),
        ({"layout": "nwhc"}, "layout: expected nchw or nhwc, found 'nwhc'"),
        ({"mean": "127"}, "mean: expected a number, found '127'"),
        ({"mean": True}, "mean: expected a number"),
        ({"mean": [1, 2, 3]}, "mean: expected a number"),
        ({"mean": float("nan")}, "mean: expected a number"),
        ({"mean": float("inf")}, "mean: expected a number"),
        ({"scale": 0}, "scale: expected a number other than 0"),
        ({"scale": float("nan")}, "scale: expected a number"),
        ({"scale": None}, "scale: expected a number"),
        ({"points": ARCFACE_POINTS[:4]}, "points: expected five pairs"),
        ({"points": ()}, "points: expected five pairs"),
        ({"points": tuple((x, y, 0.0) for x, y in ARCFACE_POINTS)}, "points: expected five pairs"),
        ({"points": (*ARCFACE_POINTS[:4], (1.0,))}, "points: expected five pairs"),
        ({"points": (("a", "b"),) * 5}, "points: expected"),
        ({"points": ((float("nan"), 0.0), *ARCFACE_POINTS[1:])}, "points: expected"),
        ({"points": ((50.0, 50.0),) * 5}, "points: expected"),
        ({"flip": "yes"}, "flip: expected"),
        ({"flip": 1}, "flip: expected"),
        ({"normalize": "no"}, "normalize: expected"),
    ],
)
def test_settings_that_make_no_sense(setting, said):
    with pytest.raises(ParameterError) as caught:
        Preprocessing(**{"size": 112, **setting})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_presets_are_frozen_and_checked_when_changed():
    with pytest.raises(AttributeError):
        PRESETS["arcface"].size = 224
    with pytest.raises(ParameterError, match="margin"):
        replace(PRESETS["facenet"], margin=160)


def test_unknown_preset():
    with pytest.raises(ParameterError, match="unknown preset 'arcfase'; did you mean arcface"):
        PRESETS["arcfase"]


# -------------------------------------------------------------------- descriptions


@pytest.fixture
def describe(tmp_path):
    """Return a function that writes a description and reads it."""

    def describe(text):
        path = tmp_path / "mine.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_description(path)

    return describe


def test_the_shortest_description(describe, tmp_path):
    told = describe('file = "net.onnx"\npreset = "adaface"\n')
    assert told.name == "mine"
    assert told.file == tmp_path / "net.onnx"
    assert told.preprocessing == PRESETS["adaface"]


def test_a_preset_with_changes(describe):
    told = describe('file = "n.onnx"\npreset = "insightface"\nflip = true\nmean = 0\nscale = 1.5')
    assert told.preprocessing == replace(PRESETS["insightface"], flip=True, mean=0, scale=1.5)


def test_everything_told(describe, tmp_path):
    points = [[10.5, 20], [30, 20], [20, 30], [12, 40], [28, 40]]
    told = describe(f"""
        name = "net"
        file = "{tmp_path}/elsewhere/net.onnx"
        sha256 = "ABC"
        licence = "MIT"
        size = 48
        align = "box"
        margin = 4
        points = {points}
        channels = "bgr"
        mean = 1.5
        scale = 2
        layout = "nhwc"
        flip = true
        normalize = false
    """)
    assert (told.name, told.sha256) == ("net", "ABC")
    assert told.file == tmp_path / "elsewhere/net.onnx"
    expected = Preprocessing(
        48, "box", tuple(map(tuple, points)), 4, "bgr", 1.5, 2, "nhwc", True, False
    )
    assert told.preprocessing == expected


MINIMAL = 'file = "n.onnx"\nsize = 112\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected 'file', and 'preset' or 'size'"),
        ("size = 112", "expected 'file', and 'preset' or 'size'"),
        ('file = "n.onnx"', "expected 'file', and 'preset' or 'size'"),
        ("file = ", "not valid TOML"),
        ("file = 'a'\nfile = 'b'", "not valid TOML"),
        (b'file = "\xff"', "not valid TOML"),
        (b"\x00\x01\x02", "not valid TOML"),
        ("[preprocessing]\nsize = 112", "unknown key 'preprocessing'"),
        (MINIMAL + "sise = 3", "unknown key 'sise'; did you mean size?"),
        (MINIMAL + "Flip = true", "unknown key 'Flip'; did you mean flip?"),
        ("file = 3\nsize = 112", "'file' is 3; expected text in quotes"),
        (MINIMAL + "name = 3", "'name' is 3; expected text in quotes"),
        (MINIMAL + "sha256 = true", "'sha256' is True; expected text in quotes"),
        (MINIMAL + "licence = ['MIT']", "'licence' is ['MIT']; expected text in quotes"),
        ('file = "n.onnx"\npreset = 1', "'preset' is 1; expected text in quotes"),
        ('file = "n.onnx"\npreset = "arc"', "unknown preset 'arc'"),
        ('file = "n.onnx"\nsize = 0', "size: expected a whole number"),
        ('file = "n.onnx"\nsize = "112"', "size: expected a whole number"),
        ('file = "n.onnx"\nsize = [112, 112]', "size: expected a whole number"),
        ('file = "n.onnx"\nsize = 112.5', "size: expected a whole number"),
        (MINIMAL + 'margin = "1"', "margin: expected a whole number"),
        (MINIMAL + "margin = 112", "margin: expected less than size"),
        (MINIMAL + "align = 1", "align: expected points or box, found 1"),
        (MINIMAL + 'align = "face"', "align: expected points or box"),
        (MINIMAL + 'channels = "gbr"', "channels: expected rgb or bgr"),
        (MINIMAL + 'layout = "NCHW"', "layout: expected nchw or nhwc"),
        (MINIMAL + "mean = [0.5, 0.5, 0.5]", "mean: expected a number"),
        (MINIMAL + "mean = nan", "mean: expected a number"),
        (MINIMAL + "scale = 0.0", "scale: expected a number other than 0"),
        (MINIMAL + "scale = inf", "scale: expected a number"),
        (MINIMAL + 'flip = "yes"', "flip: expected"),
        (MINIMAL + "normalize = 0", "normalize: expected"),
        (MINIMAL + "points = 5", "points: expected"),
        (MINIMAL + "points = [1, 2, 3, 4, 5]", "points: expected"),
        (MINIMAL + "points = [[1, 2], [3, 4]]", "points: expected five pairs"),
        (MINIMAL + "points = [[1, 2], [3, 4], [5, 6], [7, 8], [9]]", "points: expected five pairs"),
        (MINIMAL + 'points = [["1","2"],["3","4"],["5","6"],["7","8"],["9","1"]]', "points: "),
        (MINIMAL + "points = [[nan, 2], [3, 4], [5, 6], [7, 8], [9, 1]]", "points: expected"),
    ],
)
def test_bad_descriptions(describe, tmp_path, text, said):
    with pytest.raises(DataError) as caught:
        describe(text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'mine.toml'}: ")
    assert said in message
    assert "\n" not in message


def test_no_description(tmp_path):
    with pytest.raises(DataError, match="no such file or folder"):
        read_description(tmp_path / "mine.toml")


def test_a_folder_is_no_description(tmp_path):
    (tmp_path / "mine.toml").mkdir()
    with pytest.raises(DataError, match=r"mine\.toml: "):
        read_description(tmp_path / "mine.toml")
