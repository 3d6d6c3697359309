"""FairCal for any classifier: clusters of its features, a calibration map for each."""

from faircal.methods.classifier.estimator import FairCalClassifier
from faircal.methods.classifier.maps import SetMaps

__all__ = ["FairCalClassifier", "SetMaps"]
