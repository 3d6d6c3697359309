"""The file of a calibrated classifier: what it says, older ones, and hostile ones."""

from __future__ import annotations

import hashlib
import json
import struct
import tracemalloc

import numpy as np
import pytest

from faircal import ModelFileError
from faircal._base.container import MAGIC, VERSION
from faircal.methods.classifier import FairCalClassifier
from faircal.methods.modelfile import decode, encode
from faircal.model import About, Provenance

FRONT = struct.Struct("<8sIQ")


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    given, features = rng.dirichlet(np.ones(3), 200), rng.normal(size=(200, 2))
    labels = (given.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1)
    made = FairCalClassifier(n_clusters=2, shrinkage=5.0)
    return made.fit_calibration(given, np.array(["a", "b", "c"])[labels], features=features)


@pytest.fixture(scope="module")
def blob(model):
    return encode(model)


def changed(blob, change):
    end = FRONT.size + FRONT.unpack_from(blob)[2]
    header = json.loads(blob[FRONT.size : end])
    change(header)
    text = json.dumps(header).encode()
    text += b" " * (-(FRONT.size + len(text)) % 64)
    body = FRONT.pack(MAGIC, VERSION, len(text)) + text + blob[end:-32]
    return body + hashlib.sha256(body).digest()


def test_what_is_told_comes_back(model):
    model.about_ = About(Provenance("rows", "ab", counts={"rows": 200}, limits=("few",)))
    again = decode(encode(model))
    assert again.about_.provenance == model.about_.provenance
    assert encode(again) == encode(model)
    model.about_ = About()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("classes", ["a", "b"]),
        ("classes", ["a", "b", "b"]),
        ("classes", ["a", "b", 3]),
        ("classes", ["a", "b", ["c"]]),
        ("classes", [{}, {}, {}]),
        ("classes", [1, 2, 2**70]),
        ("classes", "abc"),
        ("classes", None),
        ("feature_names", "xy"),
        ("feature_names", [1, 2]),
        ("parameters", {}),
        ("parameters", None),
        ("about", {"provenance": 3, "operating_point": None, "population": None}),
        ("schema", 99),
    ],
)
def test_entries_of_another_kind(blob, key, value):
    with pytest.raises(ModelFileError, match=r"cannot be rebuilt|newer") as caught:
        decode(changed(blob, lambda header: header.update({key: value})))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("n_clusters", 1),
        ("n_clusters", -1),
        ("shrinkage", "nan"),
        ("shrinkage", "-1"),
        ("calibrator", {"class_calibrator": "dirichlet", "parameters": {"form": "../x"}}),
        ("calibrator", {"class_calibrator": "dirichlet", "parameters": {"estimator__x": 1}}),
        ("calibrator", {"class_calibrator": ["dirichlet"], "parameters": {}}),
        ("calibrator", {"calibrator": "beta", "parameters": {}}),
        ("calibrator", {"parameters": {}}),
        ("calibrator", "isotonic"),
    ],
)
def test_parameters(blob, key, value):
    with pytest.raises(ModelFileError, match="cannot be rebuilt"):
        decode(changed(blob, lambda header: header["parameters"].update({key: value})))


@pytest.mark.parametrize("name", ["weights", "pull", "all/coefficients", "0/coefficients"])
@pytest.mark.parametrize("value", [2.0, -1.0, 1e29, np.nan, -np.inf])
def test_maps_that_make_no_probabilities(model, name, value):
    state = {key: array.copy() for key, array in model._get_state().items()}
    state[f"maps/{name}"][...] = value
    copy = FairCalClassifier(n_clusters=2, shrinkage=5.0)
    copy._get_state = lambda: state
    copy.classes_, copy.feature_names_, copy.about_ = model.classes_, (), About()
    try:
        loaded = decode(encode(copy))
    except (ModelFileError, ValueError):
        return
    found = loaded.calibrate(np.eye(3), features=np.zeros((3, 2)))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_long_names_of_many_classes_take_no_memory(blob):
    """NumPy keeps all texts of an array as long as the longest: 400 GB here."""
    names = ["x" * 1_000_000, *map(str, range(100_000))]
    hostile = changed(blob, lambda header: header.update(classes=names))
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="short enough"):
        decode(hostile)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 * len(hostile)
