"""From pictures to embeddings: detect, align, embed."""

from faircal.embedding.detectors import DETECTORS, Detector
from faircal.embedding.folder import Embedded, embed_folder
from faircal.embedding.networks import NETWORKS, Network, open_network
from faircal.embedding.preprocessing import PRESETS, Preprocessing

__all__ = [
    "DETECTORS",
    "NETWORKS",
    "PRESETS",
    "Detector",
    "Embedded",
    "Network",
    "Preprocessing",
    "embed_folder",
    "open_network",
]
