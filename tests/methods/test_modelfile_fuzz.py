"""10,000 hostile files: each is refused in one line or is a model that works; nothing is run."""

from __future__ import annotations

import hashlib
import json
import re
import struct
import sys
from dataclasses import replace

import numpy as np
import pytest

import faircal
from faircal import FairCalError, ModelFileError
from faircal._base.container import MAGIC, VERSION
from faircal.calibrators import BetaCalibrator
from faircal.data import ClassifierRows, Embeddings
from faircal.data.columns import Column
from faircal.methods import make_method
from faircal.methods.classifier import FairCalClassifier
from faircal.methods.modelfile import decode, encode
from faircal.model import OperatingPoint
from faircal.production.describe import describe
from faircal.production.monitoring import survey

FRONT = struct.Struct("<8sIQ")
MODELS = {
    "faircal": {"n_clusters": 3, "min_pairs": 4},
    "baseline": {"calibrator": "histogram:n_bins=4"},
    "smooth": {"n_components": 2, "ridge": 1.0, "n_dimensions": 3, "n_regions": 2},
    "fsn": {"n_clusters": 3, "calibrator": "isotonic"},
    "oracle": {"attribute": "gender", "calibrator": "spline"},
    "gst": {"attribute": "ethnicity", "calibrator": "platt"},
    "dsn": {"attribute": "gender"},
    "falcon": {"max_images": 20, "kernel": "rbf"},
}
CLASSIFIERS = {"classifier": "dirichlet", "classifier-isotonic": "isotonic"}
EACH = 1000
#: What stands in for any value of the header.
HOSTILE = [
    *(None, True, False, 0, -1, 1, 2, 7, 1e300, -1e300, 5e-324, 0.5, 2**31, 2**63, 2**64, 10**18),
    *(10**400, "", "x", "nan", "inf", "1e400", "../../etc/passwd", "__import__('os')", "\x1b[2J"),
    *("beta", "isotonic", "histogram", "cuda", "\u202e", "a" * 3000, [], {}, [[]], [[[[]]]], [0]),
    *([None], [1, 2, 3], {"a": {}}, {"mapping": {}}, {"mapping": 3}, {"calibrator": "beta"}),
    {"calibrator": "spline", "parameters": {"n_knots": 10**9}},
    {"calibrator": "histogram", "parameters": {"n_bins": 10**12}},
    {"calibrator": "beta", "parameters": {"score_range": [{"mapping": {}}, 1]}},
    ["float64", [10**18]],
    ["float64", [-1]],
    ["float64", [True]],
    ["bool", [0, 10**6]],
]
#: What stands in for a number in the text of the header.
NUMBERS = [
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e999",
    b"-0",
    b"9" * 400,
    b"9" * 5000,
    b"1E5",
    b"+1",
]
#: What no file may make the loader do.
FORBIDDEN = re.compile(
    r"import|open|exec|compile|marshal|pickle|subprocess|socket|ctypes|code\.|os\.|shutil|glob"
)


@pytest.fixture(scope="module")
def faces():
    return faircal.simulate("small", seed=0, people=80, images=240, pairs=640, dimension=16)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(120, 2)).astype(np.float32)
    given = rng.dirichlet(np.ones(3), 120)
    codes = (given.cumsum(axis=1) < rng.random((120, 1))).sum(axis=1)
    where = Column.of(["north" if x > 0 else "south" for x in features[:, 0]])
    return ClassifierRows(
        "rows", given, codes, ("a", "b", "c"), features, ("x", "y"), {"where": where}
    )


@pytest.fixture(scope="module")
def good(faces, rows):
    """Whole files of several methods, all with provenance and, but for classifiers, population."""
    found = {}
    for name, parameters in MODELS.items():
        model = make_method(name, **parameters).fit(faces)
        describe(model, faces, intended_use="a door", limits=["not for |<b>minors"])
        survey(model, faces)
        model.about_ = with_point(model.about_)
        found[name] = encode(model)
    for name, calibrator in CLASSIFIERS.items():
        model = FairCalClassifier(n_clusters=2, calibrator=calibrator, shrinkage=5.0)
        given, names = rows.probabilities, np.array(rows.classes)
        model.fit_calibration(given, names[rows.codes], features=rows.features, classes=names)
        describe(model, rows)
        found[name] = encode(model)
    return found


def with_point(about):
    measured = ({"name": "all", "imposters": 100, "fpr": 0.01, "fpr_low": 0.0, "fpr_high": 0.02},)
    return replace(about, operating_point=OperatingPoint(0.4, fpr=0.01, measured=measured))


def sealed(body):
    return bytes(body) + hashlib.sha256(body).digest()


def opened(blob):
    end = FRONT.size + FRONT.unpack_from(blob)[2]
    return blob[FRONT.size : end].rstrip(), blob[end:-32]


def built(text, arrays):
    text += b" " * (-(FRONT.size + len(text)) % 64)
    return sealed(FRONT.pack(MAGIC, VERSION, len(text)) + text + arrays)


# ---------------------------------------------------------------------- mutations


def flipped(blob, rng):
    body = bytearray(blob)
    for at in rng.integers(len(body), size=rng.integers(1, 6)):
        body[at] ^= 1 << int(rng.integers(8))
    return bytes(body)


def truncated(blob, rng):
    return blob[: int(rng.integers(len(blob)))]


def inserted(blob, rng):
    at = int(rng.integers(len(blob)))
    return blob[:at] + rng.bytes(int(rng.integers(1, 100))) + blob[at:]


def spliced(blob, rng, other):
    at, to = int(rng.integers(len(blob))), int(rng.integers(len(other)))
    joined = blob[:at] + other[to:]
    return sealed(joined[:-32]) if rng.random() < 0.5 and len(joined) > 32 else joined


def text_edited(blob, rng):
    """Change letters of the header; the checksum is right."""
    text, arrays = opened(blob)
    text = bytearray(text)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(text)))
        match rng.integers(4):
            case 0:
                text[at] = rng.choice(list(b'{}[]",:0123456789.eE-+\\ \x00\x1btrufalsn'))
            case 1:
                del text[at : at + int(rng.integers(1, 9))]
            case 2:
                text[at:at] = text[(start := int(rng.integers(len(text)))) : start + 40]
            case _:
                places = [m.span() for m in re.finditer(rb"(?<=[ \[:])-?\d[\d.e+-]*", text)]
                low, high = places[int(rng.integers(len(places)))]
                text[low:high] = NUMBERS[int(rng.integers(len(NUMBERS)))]
    return built(bytes(text), arrays)


def array_edited(blob, rng):
    """Change bytes of the arrays, often those that make numbers huge; the checksum is right."""
    text, arrays = opened(blob)
    body = bytearray(arrays)
    for at in rng.integers(len(body) // 8, size=rng.integers(1, 6)):
        match rng.integers(4):
            case 0:
                special = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e308, 1e29, 5e-324, -1.0])
                body[8 * at : 8 * at + 8] = np.float64(special).tobytes()
            case 1:
                body[8 * at : 8 * at + 8] = rng.bytes(8)
            case 2:
                body[8 * at : 8 * at + 8] = np.int64(rng.choice([2**62, -1, -(2**63)])).tobytes()
            case _:
                body[8 * at + 7] ^= 0x40
    return built(text, bytes(body))


def json_edited(blob, rng, other):
    """Change the structure of the header; the checksum is right."""
    text, arrays = opened(blob)
    header = json.loads(text)
    places = list(leaves(header, ()))
    for _ in range(rng.integers(1, 3)):
        path = places[int(rng.integers(len(places)))]
        parent = header
        for key in path[:-1]:
            parent = parent[key] if reaches(parent, key) else header
        if reaches(parent, path[-1]):
            match rng.integers(5):
                case 0:
                    del parent[path[-1]]
                case 1:
                    parent[path[-1]] = json.loads(opened(other)[0])
                case 2 if isinstance(parent, list):
                    parent.append(parent[path[-1]])
                case _:
                    parent[path[-1]] = HOSTILE[int(rng.integers(len(HOSTILE)))]
    return built(json.dumps(header).encode(), arrays)


def leaves(value, path):
    if path:
        yield path
    items = []
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield from leaves(item, (*path, key))


def reaches(value, key):
    inside = isinstance(value, dict) and key in value
    return inside or (isinstance(value, list) and isinstance(key, int) and key < len(value))


def mutant(blob, other, rng):
    match rng.integers(10):
        case 0:
            return flipped(blob, rng)
        case 1:
            return truncated(blob, rng)
        case 2:
            return inserted(blob, rng)
        case 3:
            return spliced(blob, rng, other)
        case 4 | 5:
            return text_edited(blob, rng)
        case 6:
            return array_edited(blob, rng)
        case _:
            return json_edited(blob, rng, other)


# ---------------------------------------------------------------------- what comes of them


@pytest.fixture(scope="module")
def watched():
    """Return a list; while it holds one thing, what the interpreter is asked for is added."""
    seen = []

    def hook(event, arguments):
        if seen and FORBIDDEN.match(event):
            seen.append((event, repr(arguments)[:200]))

    repr(BetaCalibrator())  # messages name calibrators: scikit-learn imports how to print them
    sys.addaudithook(hook)
    return seen


def used(model, faces, rows):
    """Use a model as anybody would; return its probabilities."""
    if isinstance(model, FairCalClassifier):
        return model.calibrate(rows.probabilities[:20], features=rows.features[:20])
    some = faces.subset(np.arange(20))
    attribute = getattr(model, "attribute_", "gender")
    groups = some.groups(attribute if attribute in ("gender", "ethnicity") else "gender")
    said = model.compare(
        Embeddings(faces.embeddings.vectors), some.pairs.left, some.pairs.right, groups
    )
    assert np.isfinite(said.score).all()
    return said.probability


@pytest.mark.parametrize("name", [*MODELS, *CLASSIFIERS])
def test_mutants(name, good, faces, rows, watched):
    blob, others = good[name], list(good.values())
    probability = used(decode(blob), faces, rows)
    assert np.isfinite(probability).all()
    rng = np.random.default_rng([*MODELS, *CLASSIFIERS].index(name))
    loaded = refused = 0
    for _ in range(EACH):
        changed = mutant(blob, others[int(rng.integers(len(others)))], rng)
        watched[:] = ["on"]
        try:
            model = decode(changed)
        except ModelFileError as error:
            model = None
            said = str(error)
            assert said.isprintable(), said
            assert len(said) < 1000
        finally:
            happened = watched[1:]
            watched.clear()
        assert happened == []
        if model is None:
            refused += 1
            continue
        loaded += 1
        try:
            with np.errstate(all="ignore"):
                probability = used(model, faces, rows)
        except FairCalError:
            continue
        assert np.isfinite(probability).all()
        assert probability.min() >= 0
        assert probability.max() <= 1
    assert refused > EACH / 2
    assert loaded > EACH / 50  # notes and the like may be anything


def test_ten_thousand_in_all():
    assert EACH * (len(MODELS) + len(CLASSIFIERS)) == 10_000
