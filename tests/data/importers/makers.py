"""Small folders in the layouts that owners of face data ship, for tests that read them.

Pictures are of one face, Eileen Collins by NASA (public domain), in other tints, or are no
pictures at all where nobody looks into them.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from faircal.data.importers.ijbc import GENDERS, SKIN_TONES
from faircal.data.importers.pair_lists import ETHNICITIES

#: The people of `write_photos`, `write_lfw`, `write_bob` and `write_people`.
PEOPLE = ("ann", "bob", "cleo", "dan")


def portraits(seed=0):
    """Yield faces in tints of their own, without end."""
    face = pytest.importorskip("skimage.data").astronaut()[10:230, 110:330].astype(int)
    rng = np.random.default_rng(seed)
    while True:
        yield np.clip(face + rng.integers(-40, 40, 3), 0, 255).astype(np.uint8)


def write_photos(folder, people=PEOPLE, *, shots=2, size=220, below=""):
    """Write a folder for each person, with pictures in it, or in a folder `below` it."""
    image = pytest.importorskip("PIL.Image")
    for person, pixels in zip(people, portraits(), strict=False):
        for shot in range(1, shots + 1):
            path = folder / person / below / f"{shot}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            taken = np.clip(pixels + 8 * shot, 0, 255).astype(np.uint8)
            image.fromarray(taken).resize((size, size)).save(path)


def write_people(path):
    """Write a table with an attribute of each person."""
    lines = [f"{person},{'FM'[i % 2]}" for i, person in enumerate(PEOPLE)]
    path.write_text("\n".join(["identity,gender", *lines]) + "\n", encoding="utf-8")


def write_rfw(folder, ethnicities=ETHNICITIES):
    """Write RFW with two people a split, each with two pictures."""
    image = pytest.importorskip("PIL.Image")
    faces = portraits()
    for number, ethnicity in enumerate(ethnicities):
        lines = []
        for split in range(10):
            one, two = (f"m.0{number}{split}{letter}" for letter in "ab")
            lines += [f"{one}\t1\t2", f"{two}\t1\t2"]
            lines += [f"{one}\t1\t{two}\t1", f"{one}\t2\t{two}\t2"]
            for person in (one, two):
                place = folder / "test" / "data" / ethnicity / person
                place.mkdir(parents=True)
                for shot in (1, 2):
                    image.fromarray(next(faces)).save(place / f"{person}_{shot:04d}.jpg")
        _write(folder / f"test/txts/{ethnicity}/{ethnicity}_pairs.txt", lines)


def write_bfw(folder):
    """Write BFW with two people a fold of each group, pairs within groups, and no real picture."""
    header = "fold,p1,p2,label,id1,id2,att1,att2,vgg16,resnet50,senet50,a1,a2,g1,g2,e1,e2"
    lines, rng = [header], np.random.default_rng(0)
    groups = [f"{e}_{g}" for e in ("asian", "black", "indian", "white") for g in _SEXES]
    for number, group in enumerate(groups):
        ethnicity, sex = (word[0].upper() for word in group.split("_"))
        for fold in range(1, 6):
            people = [f"n{number:03}{fold}{which}" for which in (0, 1)]
            images = [f"{group}/{person}/000{n}_01.jpg" for person in people for n in (1, 2, 3)]
            for path in images:
                _write(folder / path, ["no picture"])
            for left, right in combinations(images, 2):
                id1, id2 = (path.split("/")[1] for path in (left, right))
                score = (0.6 if id1 == id2 else 0.1) + 0.1 * rng.normal()
                scores = [f"{score / part:.4f}" for part in (1, 2, 4)]
                said = [fold, left, right, int(id1 == id2), id1, id2, group, group, *scores]
                said += [ethnicity + sex] * 2 + [sex] * 2 + [ethnicity] * 2
                lines.append(",".join(map(str, said)))
    _write(folder / "bfw-v0.1.5-datatable.csv", lines)


_SEXES = ("females", "males")


def write_lfw(folder):
    """Write LFW with two folds of two people each, and no real picture."""
    lines = ["2\t1"]
    for one, two in (PEOPLE[:2], PEOPLE[2:]):
        lines += [f"{one}\t1\t2", f"{one}\t1\t{two}\t2"]
    _write(folder / "pairs.txt", lines)
    for person in PEOPLE:
        for shot in (1, 2):
            _write(folder / f"lfw/{person}/{person}_{shot:04d}.jpg", ["no picture"])


def write_bob(path):
    """Write a score file of bob: each person's model against a picture of each."""
    rng = np.random.default_rng(0)
    lines = [
        f"{claimed} {real} {real}/1 {0.6 * (claimed == real) + 0.1 * rng.normal():.4f}"
        for claimed in PEOPLE
        for real in PEOPLE
    ]
    _write(path, lines)


def write_ijbc(folder):
    """Write IJB-C, its covariate protocol: five subjects a group, and no real picture."""
    occlusions = ",".join(f"OCC{i}" for i in range(1, 19))
    header = (
        "TEMPLATE_ID,SUBJECT_ID,FILENAME,SIGHTING_ID,FACE_X,FACE_Y,FACE_WIDTH,FACE_HEIGHT,"
        f"FRAME_NUM,FACIAL_HAIR,AGE,INDOOR_OUTDOOR,SKINTONE,GENDER,YAW,ROLL,{occlusions}"
    )
    kinds = [(tone, sex) for tone in SKIN_TONES for sex in GENDERS for _ in range(5)]

    def line(template, subject, shot):
        tone, sex = kinds[subject]
        name = f"img/{subject}-{shot}.jpg"
        _write(folder / "images" / name, ["no picture"])
        facts = f"{name},7,4,10,100,120,-1,0,3,1,{tone},{sex},0,0,{','.join('0' * 18)}"
        return f"{template},{1000 + subject},{facts}"

    n = len(kinds)
    protocols = folder / "protocols"
    rows = [line(2 * subject + shot, subject, shot) for subject in range(n) for shot in (0, 1)]
    _write(protocols / "ijbc_11_covariate_probe_reference.csv", [header, *rows])
    pairs = [(2 * s, 2 * s + 1) for s in range(n)]
    pairs += [(t, (t + step) % (2 * n)) for t in range(2 * n) for step in (6, 13, 50)]
    _write(protocols / "ijbc_11_covariate_matches.csv", [f"{a},{b}" for a, b in pairs])


def _write(path: Path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
