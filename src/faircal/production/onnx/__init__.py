"""Models as ONNX graphs that run without faircal: embeddings in, probabilities out."""

from faircal.production.onnx.export import (
    ExportAgreement,
    Exported,
    check_export,
    export_model,
    export_onnx,
)
from faircal.production.onnx.maps import Maps, exports_maps
from faircal.production.onnx.methods import PairInputs, exports

__all__ = [
    "ExportAgreement",
    "Exported",
    "Maps",
    "PairInputs",
    "check_export",
    "export_model",
    "export_onnx",
    "exports",
    "exports_maps",
]
