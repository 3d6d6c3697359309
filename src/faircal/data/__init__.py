"""Images, pairs, embeddings and datasets: frozen, validated once at the door."""

from faircal.data.checking import find_faults
from faircal.data.classifier_rows import ClassifierRows, load_classifier_rows
from faircal.data.cohort import Cohort, CohortVectors
from faircal.data.dataset import Dataset, Memo
from faircal.data.dataset_folder import load, load_cohort, save_dataset
from faircal.data.folds import crossing_identities
from faircal.data.pair_files import PairFiles
from faircal.data.parts import PairParts
from faircal.data.stream import PairStream, open_stream
from faircal.data.types import Embeddings, Fault, Feature, Groups, Images, Pairs

__all__ = [
    "ClassifierRows",
    "Cohort",
    "CohortVectors",
    "Dataset",
    "Embeddings",
    "Fault",
    "Feature",
    "Groups",
    "Images",
    "Memo",
    "PairFiles",
    "PairParts",
    "PairStream",
    "Pairs",
    "crossing_identities",
    "find_faults",
    "load",
    "load_classifier_rows",
    "load_cohort",
    "open_stream",
    "save_dataset",
]
