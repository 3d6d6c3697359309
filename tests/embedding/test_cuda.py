"""The same numbers on a GPU as on the CPU, within what float32 products on a GPU allow."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from faircal.embedding.facenet import InceptionResnetV1, load_facenet  # noqa: E402
from faircal.embedding.networks import NETWORKS, FaceNet  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A file of drawn weights in the published layout, with spreads that keep numbers alive."""
    rng = torch.Generator().manual_seed(0)
    drawn = {}
    for name, value in InceptionResnetV1().state_dict().items():
        if name.endswith("running_var"):
            drawn[name] = torch.rand(value.shape, generator=rng) + 0.5
        elif value.dtype.is_floating_point:
            fan = value[0].numel() if value.dim() > 1 else 1
            drawn[name] = torch.randn(value.shape, generator=rng) * (2 / fan) ** 0.5
        else:
            drawn[name] = value
    drawn["logits.weight"], drawn["logits.bias"] = torch.zeros(7, 512), torch.zeros(7)
    path = tmp_path_factory.mktemp("weights") / "drawn.pt"
    torch.save(drawn, path)
    return path


def test_facenet(weights):
    numbers = torch.randn(16, 3, 160, 160, generator=torch.Generator().manual_seed(1))
    on = {}
    for name in ("cpu", "cuda"):
        device = torch.device(name)
        with torch.inference_mode():
            on[name] = load_facenet(weights, 7, device)(numbers.to(device)).cpu().numpy()
    np.testing.assert_allclose(np.linalg.norm(on["cuda"], axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(on["cuda"], on["cpu"], atol=2e-3)  # TF32
    assert np.sum(on["cuda"] * on["cpu"], axis=1).min() > 0.9999


def test_the_network_as_it_is_used(weights):
    faces = np.random.default_rng(0).integers(0, 256, (5, 160, 160, 3), dtype=np.uint8)
    how = NETWORKS["facenet-webface"].preprocessing
    cpu, gpu = (FaceNet("drawn", how, weights, name, n_classes=7) for name in ("cpu", "cuda"))
    assert cpu.parallel
    assert not gpu.parallel
    assert np.sum(cpu(faces) * gpu(faces), axis=1).min() > 0.9999


def test_mtcnn():
    from faircal.embedding.detectors import MtcnnDetector

    pytest.importorskip("facenet_pytorch", reason="no weights of MTCNN beside the GPU")
    skimage = pytest.importorskip("skimage", reason="no photograph beside the GPU")
    photo = skimage.data.astronaut()
    (cpu, *_), (gpu, *_) = (MtcnnDetector(name)(photo) for name in ("cpu", "cuda"))
    np.testing.assert_allclose(gpu.box, cpu.box, atol=0.5)
    np.testing.assert_allclose(gpu.points, cpu.points, atol=0.5)
