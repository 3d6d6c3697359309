"""Models as ONNX graphs that run without faircal: embeddings in, probabilities out."""

from faircal.exporting.checking import Agreement, check_export
from faircal.exporting.export import Exported, export_onnx
from faircal.exporting.maps import Maps, exports_maps
from faircal.exporting.methods import exports
from faircal.exporting.pairs import PairInputs

__all__ = [
    "Agreement",
    "Exported",
    "Maps",
    "PairInputs",
    "check_export",
    "export_onnx",
    "exports",
    "exports_maps",
]
