"""FairCal for any classifier: clusters of its features, a calibration map for each."""

from faircal.classifier.estimator import FairCalClassifier
from faircal.classifier.maps import SetMaps

__all__ = ["FairCalClassifier", "SetMaps"]
