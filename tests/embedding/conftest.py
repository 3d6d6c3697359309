"""Photographs of faces in the public domain, detectors, and stand-ins for networks."""

from __future__ import annotations

import importlib.util
import threading

import numpy as np
import pytest

from faircal.embedding.detectors import DETECTORS, Detector
from faircal.embedding.networks import Network, open_network
from faircal.embedding.pictures import Face
from faircal.embedding.preprocessing import Preprocessing


@pytest.fixture(scope="session")
def astronaut():
    """Eileen Collins, by NASA."""
    return pytest.importorskip("skimage.data").astronaut()


@pytest.fixture(scope="session")
def hopper():
    """Grace Hopper, by the US Navy."""
    image = pytest.importorskip("PIL.Image")
    cbook = pytest.importorskip("matplotlib.cbook")
    with image.open(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)) as opened:
        return np.array(opened.convert("RGB"))


@pytest.fixture(scope="session")
def coffee():
    """A cup, and nobody."""
    return pytest.importorskip("skimage.data").coffee()


@pytest.fixture(scope="session")
def dlib_detector():
    pytest.importorskip("dlib")
    pytest.importorskip("PIL")
    return DETECTORS["dlib"]("cpu")


@pytest.fixture(scope="module")
def one_thread():
    """PyTorch's threads wait for each other, for long where another process has the cores."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def mtcnn_detector(one_thread):
    if importlib.util.find_spec("facenet_pytorch") is None:
        pytest.skip("could not import 'facenet_pytorch'")
    return DETECTORS["mtcnn"]("cpu")


@pytest.fixture(scope="session")
def dlib_network():
    pytest.importorskip("dlib")
    return open_network("dlib", device="cpu")


class Means(Network):
    """Gives the mean colour of each of four quarters, 12 numbers; counts what it is asked for.

    A picture that is all black gives zeros: no usable vector.
    """

    parallel = True
    module = "numpy"

    def __init__(self, name="means", size=8, **how):
        self.name = name
        self.preprocessing = Preprocessing(size, **{"normalize": False, **how})
        self.sha256 = "0" * 64
        self.sizes = []
        self.fail_after = None
        self.failure = RuntimeError("the network failed")
        self._lock = threading.Lock()

    @property
    def faces(self):
        """How many faces it was given."""
        return sum(self.sizes)

    def run(self, faces):
        with self._lock:
            if self.fail_after is not None and len(self.sizes) >= self.fail_after:
                raise self.failure
            self.sizes.append(len(faces))
        n, half = len(faces), faces.shape[1] // 2
        quarters = self.preprocessing(faces).reshape(n, 3, 2, half, 2, half)
        return quarters.mean(axis=(3, 5)).reshape(n, 12)


@pytest.fixture
def means():
    """Return the class of a network that is quick, and whose vectors are known."""
    return Means


class Marked(Detector):
    """Finds one face, the whole picture, unless its first pixel is pure blue."""

    name = "marked"
    what = "a test's"

    def find(self, pixels):
        if not pixels.size or pixels[0, 0].tolist() == [0, 0, 255]:
            return []
        height, width = pixels.shape[:2]
        return [Face.without_points((0.0, 0.0, float(width), float(height)))]


@pytest.fixture
def marked():
    """A detector that says of pictures that begin in blue that they show no face."""
    pytest.importorskip("PIL")
    return Marked("cpu")


@pytest.fixture
def blind():
    pytest.importorskip("PIL")
    return DETECTORS["none"]("cpu")


@pytest.fixture(scope="session")
def save_picture():
    """Return a function that writes pixels, or one colour of 8 × 8, to a file."""
    image = pytest.importorskip("PIL.Image")

    def save(path, pixels, **options):
        pixels = np.asarray(pixels, dtype=np.uint8)
        if pixels.ndim == 1:
            pixels = np.broadcast_to(pixels, (8, 8, 3))
        path.parent.mkdir(parents=True, exist_ok=True)
        image.fromarray(np.ascontiguousarray(pixels)).save(path, **options)
        return path

    return save
