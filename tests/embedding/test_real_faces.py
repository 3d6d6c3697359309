"""Real photographs through detection, alignment and a real network: who is who.

Eileen Collins (NASA) and Grace Hopper (US Navy), both in the public domain, and dlib's network,
which comes with a package.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from faircal.data import load
from faircal.data.tables import read_table
from faircal.embedding import embed_folder
from faircal.embedding.networks import NETWORKS
from faircal.embedding.pictures import cut_face

image = pytest.importorskip("PIL.Image")
pytest.importorskip("PIL.ImageEnhance")

#: By how much the least alike pictures of one person are more alike than the most alike pictures
#: of two, as cosines.
MARGIN = 0.05


def variants(pixels):
    """Return a photograph as it is, mirrored, turned, darker and lighter."""
    from PIL import ImageEnhance, ImageOps

    whole = image.fromarray(pixels)
    turned = {
        f"turned {angle}": whole.rotate(angle, image.Resampling.BICUBIC) for angle in (-12, 12)
    }
    lit = {f"light {by}": ImageEnhance.Brightness(whole).enhance(by) for by in (0.6, 1.4)}
    return {"plain": whole, "mirrored": ImageOps.mirror(whole), **turned, **lit}


@pytest.fixture(scope="module")
def photos(astronaut, hopper, coffee, tmp_path_factory):
    """A folder with six pictures of each person, and one of a cup in Hopper's folder."""
    root = tmp_path_factory.mktemp("photos")
    for person, pixels in (("collins", astronaut), ("hopper", hopper)):
        (root / person).mkdir()
        for name, picture in variants(pixels).items():
            picture.save(root / person / f"{name}.png")
    image.fromarray(coffee).save(root / "hopper/cup.png")
    return root


def dataset(folder, root):
    """Write a dataset folder of all pictures below `root`, with all pairs; return their number."""
    folder.mkdir()
    ids = sorted(str(path.relative_to(root)) for path in root.rglob("*.png"))
    lines = [f"{name},{name.split('/')[0]}" for name in ids]
    (folder / "images.csv").write_text("\n".join(["image_id,identity", *lines]) + "\n")
    pairs = [f"{a},{b},{int(a.split('/')[0] == b.split('/')[0])}" for a, b in combinations(ids, 2)]
    (folder / "pairs.csv").write_text("\n".join(["left,right,genuine", *pairs]) + "\n")
    return len(pairs)


@pytest.fixture(scope="module", params=["dlib", "mtcnn"])
def embedded(request, photos, dlib_network, tmp_path_factory):
    detector = request.getfixturevalue(f"{request.param}_detector")
    folder = tmp_path_factory.mktemp("data") / request.param
    n_pairs = dataset(folder, photos)
    return folder, embed_folder(folder, photos, dlib_network, detector, jobs=1), n_pairs


def test_the_same_person_is_more_alike_than_another(embedded):
    """Whatever the light and the turn; 30 genuine pairs and 36 imposter pairs."""
    data = load(embedded[0])
    genuine, imposter = data.scores[data.genuine], data.scores[~data.genuine]
    assert (len(genuine), len(imposter)) == (2 * 15, 36)
    assert genuine.min() > imposter.max() + MARGIN


def test_one_persons_vectors_lie_close_together(embedded):
    """dlib says of vectors less than 0.6 apart that they show one person."""
    vectors = np.load(embedded[0] / "embeddings/dlib.npy")
    assert vectors.shape == (12, 128)
    apart = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    same = np.zeros((12, 12), bool)
    same[:6, :6] = same[6:, 6:] = True
    assert apart[same].max() < 0.35
    assert apart[~same].min() > 0.55


def test_the_cup_is_dropped_and_said_to_be(embedded):
    folder, made, n_pairs = embedded
    assert made.dropped == {"hopper/cup.png": "no face found"}
    assert (made.images, made.dimension) == (12, 128)
    assert (made.pairs, made.dropped_pairs) == (n_pairs - 12, 12)
    dropped = read_table(folder / "dropped.csv").to_pylist()
    assert dropped == [{"image_id": "hopper/cup.png", "reason": "no face found (dlib)"}]
    for table in ("images.csv", "pairs.csv"):
        assert "cup" not in (folder / table).read_text()
    assert sorted(path.name for path in (folder / "embeddings").iterdir()) == ["dlib.npy"]


def test_vectors_are_those_of_the_steps_by_hand(embedded, photos, dlib_network, request):
    """Detect, align, embed one after the other, without threads, stores or folders."""
    detector = request.getfixturevalue(f"{embedded[0].name}_detector")
    vectors = np.load(embedded[0] / "embeddings/dlib.npy")
    ids = read_table(embedded[0] / "images.csv")["image_id"].to_pylist()
    row = ids.index("hopper/mirrored.png")
    with image.open(photos / "hopper/mirrored.png") as picture:
        picture.load()
        face = detector(np.asarray(picture))[0]
        chip = cut_face(picture, face, dlib_network.preprocessing)
    np.testing.assert_allclose(vectors[row], dlib_network(chip[None])[0], atol=1e-5)


def test_our_alignment_is_dlibs(astronaut, hopper, dlib_detector, dlib_network):
    """Five points and Pillow in place of 68 points and dlib: the same person, near at hand."""
    dlib = pytest.importorskip("dlib")
    path = NETWORKS["dlib"].weights.find()
    theirs = dlib.face_recognition_model_v1(str(path))
    for pixels in (astronaut, hopper):
        (face,) = dlib_detector(pixels)
        left, top, right, bottom = (int(side) for side in face.box)
        marks = dlib_detector._mark(pixels, dlib.rectangle(left, top, right - 1, bottom - 1))
        chip = dlib.get_face_chip(pixels, marks, size=150, padding=0.25)
        made = cut_face(image.fromarray(pixels), face, dlib_network.preprocessing)
        assert np.abs(made.astype(float) - chip).mean() < 20
        expected = np.array(theirs.compute_face_descriptor(chip))
        assert np.linalg.norm(dlib_network(made[None])[0] - expected) < 0.2


def test_detectors_agree_on_who_it_is(
    astronaut, hopper, dlib_detector, mtcnn_detector, dlib_network
):
    """Embeddings by one detector can be compared with those by the other."""
    found = {}
    for (person, pixels), detector in product(
        (("collins", astronaut), ("hopper", hopper)), (dlib_detector, mtcnn_detector)
    ):
        chip = cut_face(image.fromarray(pixels), detector(pixels)[0], dlib_network.preprocessing)
        found[person, detector.name] = dlib_network(chip[None])[0]
    for person in ("collins", "hopper"):
        one, other = found[person, "dlib"], found[person, "mtcnn"]
        assert np.linalg.norm(one - other) < 0.4
