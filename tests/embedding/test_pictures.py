"""Reading pictures of every kind, and cutting faces out: against Pillow and scikit-image."""

from __future__ import annotations

import io
import struct
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircal.embedding import pictures
from faircal.embedding.pictures import (
    Face,
    crop_around,
    cut_face,
    nearest_first,
    overlap,
    pixels_of,
    read_picture,
    similarity,
)
from faircal.embedding.preprocessing import ARCFACE_POINTS, DLIB_POINTS, Preprocessing

image = pytest.importorskip("PIL.Image")

TEMPLATES = {112: ARCFACE_POINTS, 150: DLIB_POINTS}


@pytest.fixture(scope="module")
def smooth():
    """A picture of 40 × 60 pixels whose colours change slowly: JPEG changes it little."""
    y, x = np.mgrid[:40, :60]
    return np.stack([4 * x, 6 * y, 128 + 0 * x], axis=2).astype(np.uint8)


@pytest.fixture
def saved(tmp_path):
    """Return a function that saves a Pillow picture and reads it with `read_picture`."""

    def saved(picture, name, least=None, **options):
        picture.save(tmp_path / name, **options)
        return read_picture(tmp_path / name, least)

    return saved


def distance(picture, pixels):
    assert picture is not None
    assert picture.mode == "RGB"
    found = pixels_of(picture)
    assert found.shape == pixels.shape
    return np.abs(found.astype(int) - pixels).max()


# -------------------------------------------------------------------- reading


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.ppm", "a.tif", "A.PNG"])
def test_lossless(saved, smooth, name):
    assert distance(saved(image.fromarray(smooth), name), smooth) == 0


@pytest.mark.parametrize("name", ["a.jpg", "a.jpeg", "a.webp"])
def test_lossy(saved, smooth, name):
    assert distance(saved(image.fromarray(smooth), name, quality=95), smooth) <= 8


def test_the_suffix_does_not_matter(saved, smooth):
    assert distance(saved(image.fromarray(smooth), "a.jpg", format="PNG"), smooth) == 0


def test_grey(saved, smooth):
    grey = smooth[..., 0]
    expected = np.repeat(grey[..., None], 3, axis=2)
    assert distance(saved(image.fromarray(grey), "a.png"), expected) == 0
    assert distance(saved(image.fromarray(grey), "a.jpg", quality=95), expected) <= 4
    assert saved(image.fromarray(grey), "b.jpg", least=10).mode == "RGB"


def test_black_and_white(saved, smooth):
    bits = image.fromarray(smooth[..., 0]).convert("1", dither=image.Dither.NONE)
    expected = np.repeat(np.where(smooth[..., :1] > 127, 255, 0), 3, axis=2)
    assert distance(saved(bits, "a.png"), expected) == 0


@pytest.mark.parametrize("name", ["a.png", "a.tif"])
def test_sixteen_bits_become_eight(saved, name):
    deep = np.linspace(0, 65535, 40 * 60).reshape(40, 60).astype(np.uint16)
    expected = np.repeat((deep >> 8)[..., None], 3, axis=2)
    assert distance(saved(image.fromarray(deep), name), expected) <= 1


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_alpha(saved, smooth, mode):
    """What is opaque is as it was."""
    picture = image.fromarray(smooth).convert(mode)
    picture.putalpha(255)
    assert distance(saved(picture, "a.png"), np.asarray(picture.convert("RGB"))) == 0


def test_palette(saved, smooth):
    palette = image.fromarray(smooth).quantize(32)
    expected = np.asarray(palette.convert("RGB"))
    assert distance(saved(palette, "a.gif"), expected) == 0
    assert distance(saved(palette, "a.png"), expected) == 0


def test_palette_with_transparency_is_quiet(saved, smooth):
    """Pillow warns of such a picture, with which nothing is wrong."""
    palette = image.fromarray(smooth).quantize(16)
    expected = np.asarray(palette.convert("RGB"))
    opaque = bytes([255] * 16)
    assert distance(saved(palette, "a.png", transparency=opaque), expected) == 0


def test_the_first_picture_of_several(saved, smooth):
    first, second = (image.fromarray(each).quantize(32) for each in (smooth, 255 - smooth))
    found = saved(first, "a.gif", save_all=True, append_images=[second])
    assert distance(found, np.asarray(first.convert("RGB"))) == 0


def test_cmyk(saved, smooth):
    cmyk = image.fromarray(smooth).convert("CMYK")
    assert distance(saved(cmyk, "a.jpg", quality=95), smooth) <= 12
    assert saved(cmyk, "b.jpg", least=10).size == (15, 10)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_turned_as_the_camera_said(tmp_path, kind, orientation):
    """By hand: what the EXIF standard says of row 0 and column 0."""
    upright = np.zeros((48, 32, 3), np.uint8)
    upright[:16, :16] = 255  # a white corner, top left
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: upright.transpose(1, 0, 2)[::-1],
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: upright.transpose(1, 0, 2)[:, ::-1],
    }[orientation]
    exif = image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "a"
    image.fromarray(np.ascontiguousarray(stored)).save(path, kind, exif=exif)
    assert distance(read_picture(path), upright) < 90


def exif_with(tag, kind, value=b"abcd"):
    """Return EXIF data that says the picture lies on its side, and one thing more."""
    entries = ((0x0112, 3, 1, struct.pack("<HH", 6, 0)), (tag, kind, 1, value))
    parts = [struct.pack("<HHI4s", *entry) for entry in entries]
    return b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<H", 2) + b"".join(parts) + b"\0\0\0\0"


@pytest.mark.parametrize(
    ("tag", "kind"),
    [(0x0100, 2), (0xA005, 1), (0x011A, 2), (0x010E, 11), (0x9999, 99)],
    ids=["width as text", "interoperability as bytes", "ratio as text", "text as number", "none"],
)
def test_odd_exif_spoils_no_picture(tmp_path, smooth, tag, kind):
    """A camera that writes a tag in a wrong way took a picture all the same."""
    path = tmp_path / "a.jpg"
    image.fromarray(smooth).save(path, quality=95, exif=exif_with(tag, kind))
    assert distance(read_picture(path), smooth.transpose(1, 0, 2)[:, ::-1]) <= 8


def test_unreadable(tmp_path, smooth):
    whole = io.BytesIO()
    image.fromarray(smooth).save(whole, "PNG")
    contents = {
        "empty": b"",
        "text": b"this is no picture\n",
        "cut": whole.getvalue()[:-40],
        "head": whole.getvalue()[:20],
        "zip": b"PK\x03\x04" + bytes(100),
    }
    for name, content in contents.items():
        path = tmp_path / f"{name}.png"
        path.write_bytes(content)
        assert read_picture(path) is None, name


def test_a_truncated_jpeg(saved, tmp_path, smooth):
    path = tmp_path / "a.jpg"
    image.fromarray(smooth).save(path)
    path.write_bytes(path.read_bytes()[:-100])
    assert read_picture(path) is None
    assert read_picture(path, 10) is None


def test_what_is_not_there(tmp_path):
    assert read_picture(tmp_path / "a.png") is None
    assert read_picture(tmp_path) is None
    assert read_picture(tmp_path / "a\0b.png") is None


def test_a_decompression_bomb(tmp_path, smooth, monkeypatch):
    path = tmp_path / "a.png"
    image.fromarray(smooth).save(path)
    monkeypatch.setattr(image, "MAX_IMAGE_PIXELS", 2400)
    assert read_picture(path) is not None
    monkeypatch.setattr(image, "MAX_IMAGE_PIXELS", 1000)
    assert read_picture(path) is None


def test_two_threads_leave_the_warnings_as_they_were(tmp_path, smooth, monkeypatch):
    """Filters of warnings belong to the process: the first to come must not go last."""
    path = tmp_path / "a.png"
    image.fromarray(smooth).save(path)
    opened, second_in, first_out = image.open, threading.Event(), threading.Event()

    def take_turns(file, **options):
        if threading.current_thread().name == "first":
            assert second_in.wait(10)
        else:
            second_in.set()
            assert first_out.wait(10)
        return opened(file, **options)

    monkeypatch.setattr(image, "open", take_turns)
    before = list(warnings.filters)

    def first():
        assert read_picture(path) is not None
        first_out.set()

    # The first is well inside before the second begins, and out before it ends.
    threads = [threading.Thread(target=first, name="first")]
    threads.append(threading.Thread(target=read_picture, args=(path,), name="second"))
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert list(warnings.filters) == before
    finally:
        warnings.filters[:] = before


@pytest.fixture(scope="module")
def seeds():
    """The bytes of one small picture in each format, with EXIF where it has a place."""
    rng = np.random.default_rng(0)
    picture = image.fromarray(rng.integers(0, 255, (24, 24, 3), dtype=np.uint8))
    exif = image.Exif()
    exif[0x0112], exif[0x010E] = 6, "a description"
    exif[0x8769] = {0x9003: "2020:01:01 00:00:00"}
    found = {}
    for kind in ("JPEG", "PNG", "GIF", "TIFF", "WEBP", "BMP", "PPM"):
        buffer = io.BytesIO()
        picture.save(buffer, kind, **({"exif": exif} if kind in ("JPEG", "PNG", "WEBP") else {}))
        found[kind] = buffer.getvalue()
    return found


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "TIFF", "WEBP", "BMP", "PPM"])
@pytest.mark.parametrize("seed", range(3))
def test_damage_never_raises(seeds, tmp_path, kind, seed):
    """A picture or None, whatever the bytes; Pillow's own warnings of them aside."""
    rng, path = np.random.default_rng(seed), tmp_path / "a"
    for _ in range(60):
        damaged = bytearray(seeds[kind])
        reach = min(len(damaged), int(rng.choice([60, 300, 10_000])))
        for place in rng.integers(0, reach, rng.integers(1, 9)):
            damaged[place] = rng.integers(0, 256)
        if rng.random() < 0.3:
            damaged = damaged[: rng.integers(len(damaged))]
        path.write_bytes(damaged)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = read_picture(path, 8 if rng.random() < 0.5 else None)
        assert found is None or found.mode == "RGB"


# -------------------------------------------------------------------- decoding small


@pytest.mark.parametrize("size", [(640, 480), (480, 640), (641, 487), (200, 1600), (113, 113)])
@pytest.mark.parametrize("least", [1, 50, 112, 160, 1000])
def test_both_sides_stay_at_the_least(tmp_path, size, least):
    path = tmp_path / "a.jpg"
    image.new("RGB", size, (10, 200, 90)).save(path)
    found = read_picture(path, least)
    shrunk = [whole / side for whole, side in zip(size, found.size, strict=True)]
    assert max(found.size) <= max(size)
    assert min(found.size) >= min(least, *size)
    assert shrunk[0] == pytest.approx(shrunk[1], rel=0.05)
    if min(size) >= 2 * least:
        assert min(shrunk) > 1.9
    if min(size) >= 8 * least:
        assert min(shrunk) > 7


def test_decoded_small_is_the_same_picture(tmp_path, astronaut):
    path = tmp_path / "a.jpg"
    image.fromarray(astronaut).save(path, quality=95)
    how = Preprocessing(112)
    whole, small = (cut_face(read_picture(path, least), None, how) for least in (None, 112))
    assert read_picture(path, 112).size == (128, 128)
    assert np.abs(whole.astype(float) - small).mean() < 3


def test_decoded_small_and_turned(tmp_path):
    upright = np.zeros((640, 320, 3), np.uint8)
    upright[:320] = 255
    exif = image.Exif()
    exif[0x0112] = 6
    path = tmp_path / "a.jpg"
    image.fromarray(np.ascontiguousarray(upright.transpose(1, 0, 2)[::-1])).save(path, exif=exif)
    found = pixels_of(read_picture(path, 80))
    assert found.shape == (160, 80, 3)
    assert found[:70].min() > 250
    assert found[90:].max() < 5


# -------------------------------------------------------------------- the whole picture, boxes


def test_a_crop_of_the_right_size_is_taken_as_it_is(astronaut):
    crop = astronaut[:112, :112]
    np.testing.assert_array_equal(cut_face(image.fromarray(crop), None, Preprocessing(112)), crop)


@pytest.mark.parametrize("shape", [(200, 200), (60, 60), (200, 100), (112, 113)])
def test_another_size_is_scaled_as_pillow_does(astronaut, shape):
    crop = image.fromarray(astronaut[: shape[0], : shape[1]])
    expected = np.asarray(crop.resize((112, 112), image.Resampling.BILINEAR))
    np.testing.assert_array_equal(cut_face(crop, None, Preprocessing(112)), expected)


def extract_face(picture, box, size, margin):
    """As facenet-pytorch's `extract_face` does with a picture of Pillow's, in its own words."""
    margin = [
        margin * (box[2] - box[0]) / (size - margin),
        margin * (box[3] - box[1]) / (size - margin),
    ]
    box = [
        int(max(box[0] - margin[0] / 2, 0)),
        int(max(box[1] - margin[1] / 2, 0)),
        int(min(box[2] + margin[0] / 2, picture.size[0])),
        int(min(box[3] + margin[1] / 2, picture.size[1])),
    ]
    return np.asarray(picture.crop(box).copy().resize((size, size), image.Resampling.BILINEAR))


BOXES = [
    (181.05, 62.16, 267.75, 172.05),  # MTCNN's, smaller than the input: scaled up
    (150.9, 20.2, 420.5, 390.7),  # larger: scaled down
    (-20.3, -7.5, 130.2, 200.9),  # reaches beyond the edge
    (400.0, 380.5, 530.0, 600.0),
    (100.0, 100.0, 260.0, 260.0),  # just the size
]


@pytest.mark.parametrize("margin", [0, 10])
@pytest.mark.parametrize("box", BOXES)
def test_a_box_is_cut_as_facenet_pytorch_does(astronaut, box, margin):
    picture = image.fromarray(astronaut)
    how = Preprocessing(160, align="box", margin=margin)
    made = cut_face(picture, Face.without_points(box), how)
    np.testing.assert_array_equal(made, extract_face(picture, box, 160, margin))


def test_a_box_is_cut_where_points_are_known_too(astronaut):
    picture, how = image.fromarray(astronaut), Preprocessing(160, align="box")
    points = np.array([[200.0, 100], [240, 100], [220, 120], [205, 140], [235, 140]])
    with_points = cut_face(picture, Face(BOXES[0], points, 1.0), how)
    without = cut_face(picture, Face.without_points(BOXES[0]), how)
    np.testing.assert_array_equal(with_points, without)


def test_without_points_the_box_is_cut(astronaut):
    picture = image.fromarray(astronaut)
    face = Face.without_points(BOXES[0])
    assert not face.has_points
    boxed = cut_face(picture, face, Preprocessing(112, align="box"))
    np.testing.assert_array_equal(cut_face(picture, face, Preprocessing(112)), boxed)


@pytest.mark.parametrize(
    "box", [(600, 10, 700, 90), (-90, -90, -10, -10), (511.9, 0, 513, 2), (5, 5, 5.2, 5.2)]
)
def test_a_box_outside_gives_something(astronaut, box):
    made = cut_face(image.fromarray(astronaut), Face.without_points(box), Preprocessing(112))
    assert made.shape == (112, 112, 3)


# -------------------------------------------------------------------- alignment

COLOURS = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0], [0, 255, 255]])


def dotted(points, size, radius):
    """Return a grey picture with a soft coloured dot at each point."""
    pixels = np.full((size[1], size[0], 3), 30.0)
    for (px, py), colour in zip(points, COLOURS, strict=True):
        near = [slice(max(int(p - radius) - 2, 0), int(p + radius) + 3) for p in (py, px)]
        y, x = np.mgrid[tuple(near)]
        weight = np.clip(radius + 0.5 - np.hypot(x - px, y - py), 0, 1)[..., None]
        pixels[tuple(near)] = (1 - weight) * pixels[tuple(near)] + weight * colour
    return pixels.round().astype(np.uint8)


def centres(pixels):
    """Return where the five dots are: the centre of what is nearest to each colour."""
    y, x = np.mgrid[: pixels.shape[0], : pixels.shape[1]]
    found = []
    for colour in COLOURS:
        weight = np.clip(1 - np.linalg.norm(pixels - colour.astype(float), axis=2) / 120, 0, None)
        assert weight.sum() > 0
        found.append([(weight * x).sum() / weight.sum(), (weight * y).sum() / weight.sum()])
    return np.array(found)


def moved(points, angle, factor, where):
    """Turn, scale and move points."""
    turn = factor * np.exp(1j * np.deg2rad(angle))
    z = (np.asarray(points) - np.mean(points, axis=0)) @ [1, 1j]
    return np.stack([(turn * z).real, (turn * z).imag], axis=1) + where


@given(
    angle=st.floats(-180, 180),
    factor=st.floats(0.6, 4.5),
    shift=st.tuples(st.floats(-30, 30), st.floats(-30, 30)),
    size=st.sampled_from([112, 150]),
)
@settings(max_examples=30)
def test_the_points_come_to_lie_on_the_template(angle, factor, shift, size):
    goal = TEMPLATES[size]
    points = moved(goal, angle, factor, np.array([300, 280]) + shift)
    picture = image.fromarray(dotted(points, (600, 560), max(3 * factor, 2.5)))
    face = Face((0, 0, 600, 560), points, 1.0)
    made = cut_face(picture, face, Preprocessing(size, points=goal))
    assert made.shape == (size, size, 3)
    assert np.abs(centres(made) - goal).max() < 1.0


@pytest.mark.parametrize("factor", [2.0, 3.0, 4.0, 5.0])
def test_a_large_face_lies_as_exactly_as_a_small_one(factor):
    """Pixels have a width: a picture that is shrunk on the way must not move by half of one."""
    points = moved(ARCFACE_POINTS, 10, factor, (350, 330))
    picture = image.fromarray(dotted(points, (701, 657), 3 * factor))
    made = cut_face(picture, Face((0, 0, 1, 1), points, 1.0), Preprocessing(112))
    assert np.abs(centres(made) - ARCFACE_POINTS).max() < 0.2


def skimage_aligned(pixels, points, goal, size):
    """Align as insightface does: the best similarity from the points to the template."""
    transform = pytest.importorskip("skimage.transform")
    made = transform.SimilarityTransform.from_estimate(points, np.asarray(goal))
    warped = transform.warp(
        pixels.astype(float), made.inverse, output_shape=(size, size), order=1, cval=0
    )
    return made, warped


def noisy_points(seed, angle=7.0, factor=0.9, noise=2.5):
    """Points of a real face: not those of the template, whatever the turn."""
    rng = np.random.default_rng(seed)
    return moved(ARCFACE_POINTS, angle, factor, (224, 122)) + rng.normal(0, noise, (5, 2))


def test_pixels_are_those_of_scikit_image_where_points_fit(astronaut):
    points = moved(ARCFACE_POINTS, 7, 0.9, (224, 122))
    _, expected = skimage_aligned(astronaut, points, ARCFACE_POINTS, 112)
    face = Face((0, 0, 1, 1), points, 1.0)
    made = cut_face(image.fromarray(astronaut), face, Preprocessing(112))
    assert np.abs(made - expected).max() <= 2


@pytest.mark.parametrize("seed", range(4))
def test_points_of_a_real_face_are_aligned_as_insightface_does(astronaut, seed):
    """The best similarity is the one that leaves the least error in the network's input."""
    points = noisy_points(seed)
    _, expected = skimage_aligned(astronaut, points, ARCFACE_POINTS, 112)
    face = Face((0, 0, 1, 1), points, 1.0)
    made = cut_face(image.fromarray(astronaut), face, Preprocessing(112))
    assert np.abs(made - expected).max() <= 2


def test_real_points_are_aligned_as_insightface_does(astronaut, dlib_detector):
    (face,) = dlib_detector(astronaut)
    _, expected = skimage_aligned(astronaut, face.points, ARCFACE_POINTS, 112)
    made = cut_face(image.fromarray(astronaut), face, Preprocessing(112))
    assert np.abs(made - expected).max() <= 2


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_similarity_is_that_of_scikit_image(seed):
    transform = pytest.importorskip("skimage.transform")
    rng = np.random.default_rng(seed)
    source = rng.normal(0, 20, (5, 2))
    target = moved(source, rng.uniform(-180, 180), rng.uniform(0.2, 5), rng.normal(0, 99, 2))
    target += rng.normal(0, 0.5, (5, 2))
    a, b = similarity(source, target)
    matrix = transform.SimilarityTransform.from_estimate(source, target).params
    ours = [[a.real, -a.imag, b.real], [a.imag, a.real, b.imag], [0, 0, 1]]
    np.testing.assert_allclose(matrix, ours, rtol=1e-6, atol=1e-6)


def test_what_lies_outside_the_picture_is_black(astronaut):
    points = moved(ARCFACE_POINTS, 0, 1.0, (10, 10))
    white = image.new("RGB", (60, 60), (255, 255, 255))
    made = cut_face(white, Face((0, 0, 1, 1), points, 1.0), Preprocessing(112))
    assert made[0, 0].tolist() == [0, 0, 0]
    assert made[70, 60].tolist() == [255, 255, 255]


@pytest.mark.parametrize("factor", [2.3, 4.0, 6.7])
def test_large_faces_are_averaged_not_sampled(factor):
    """Fine stripes become grey; without it they would become coarse ones."""
    stripes = np.zeros((900, 900, 3), np.uint8)
    stripes[:, ::2] = 255
    face = Face((0, 0, 1, 1), moved(ARCFACE_POINTS, 0, factor, (450, 450)), 1.0)
    made = cut_face(image.fromarray(stripes), face, Preprocessing(112)).astype(float)
    assert made[20:-20, 20:-20].std() < 45  # of samples: 127
    boxed = cut_face(
        image.fromarray(stripes), face.without_points((0, 0, 900, 900)), Preprocessing(112)
    )
    assert boxed.std() < 12


# -------------------------------------------------------------------- boxes by hand


def test_around_a_box():
    picture = image.fromarray(
        np.arange(100 * 80 * 3, dtype=np.uint32).astype(np.uint8).reshape(80, 100, 3)
    )
    part, box = crop_around(picture, (40, 30, 60, 50), 0.5)
    assert part.size == (40, 40)
    assert box == (10, 10, 30, 30)
    np.testing.assert_array_equal(pixels_of(part), pixels_of(picture)[20:60, 30:70])


def test_around_a_box_at_the_edge():
    part, box = crop_around(image.new("RGB", (100, 80)), (-10, 60, 30, 100), 0.5)
    assert part.size == (50, 40)
    assert box == (-10, 20, 30, 60)


@pytest.mark.parametrize(
    "box", [(300, 10, 350, 60), (10, 300, 60, 350), (-90, 10, -40, 60), (10, -90, 60, -40)]
)
def test_around_a_box_outside_there_is_nothing(box):
    """Lists have such boxes; one of them must not end a run over a million others."""
    part, _ = crop_around(image.new("RGB", (100, 80)), box, 0.5)
    assert 0 in part.size or min(part.size) >= 1


@given(
    corner=st.tuples(st.integers(0, 70), st.integers(0, 50)),
    size=st.tuples(st.integers(1, 30), st.integers(1, 30)),
    share=st.floats(0, 2),
)
@settings(max_examples=50)
def test_around_a_box_the_box_shows_the_same(corner, size, share):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (80, 100, 3), dtype=np.uint8)
    (x, y), (w, h) = corner, size
    part, (left, top, right, bottom) = crop_around(
        image.fromarray(pixels), (x, y, x + w, y + h), share
    )
    shown = pixels_of(part)[int(top) : int(bottom), int(left) : int(right)]
    np.testing.assert_array_equal(shown, pixels[y : y + h, x : x + w])


def test_overlap_by_hand():
    assert overlap((0, 0, 10, 10), (0, 0, 10, 10)) == 1
    assert overlap((0, 0, 10, 10), (0, 5, 10, 15)) == pytest.approx(50 / 150)
    assert overlap((0, 0, 10, 10), (2, 2, 4, 4)) == pytest.approx(0.04)
    assert overlap((0, 0, 10, 10), (10, 0, 20, 10)) == 0
    assert overlap((0, 0, 10, 10), (50, 50, 60, 60)) == 0
    assert overlap((0, 0, 0, 0), (0, 0, 0, 0)) == 0


boxes = st.tuples(*[st.integers(0, 50)] * 2, *[st.integers(1, 50)] * 2).map(
    lambda b: (b[0], b[1], b[0] + b[2], b[1] + b[3])
)


@given(one=boxes, other=boxes)
def test_overlap_is_symmetric_and_a_share(one, other):
    assert overlap(one, other) == overlap(other, one)
    assert 0 <= overlap(one, other) <= 1
    # By counting pixels.
    grid = np.zeros((2, 101, 101), bool)
    for layer, (left, top, right, bottom) in zip(grid, (one, other), strict=True):
        layer[top:bottom, left:right] = True
    assert overlap(one, other) == pytest.approx((grid[0] & grid[1]).sum() / grid.any(0).sum())


def test_nearest_first():
    far, near, touching, same = (
        Face.without_points(box)
        for box in ((50, 50, 60, 60), (2, 0, 12, 10), (9, 9, 30, 30), (0, 0, 10, 10))
    )
    assert nearest_first([far, touching, near, same], (0, 0, 10, 10)) == [same, near, touching]
    assert nearest_first([far], (0, 0, 10, 10)) == []
    assert nearest_first([], (0, 0, 10, 10)) == []


def test_pillow_is_imported_when_a_picture_is_read():
    assert "image" not in vars(pictures)
    assert "Image" not in vars(pictures)
