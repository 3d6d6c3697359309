"""Images, pairs, embeddings and datasets: frozen, validated once at the door."""

from faircal.data.dataset import Dataset, Memo
from faircal.data.faults import Fault, crossing_identities, find_faults
from faircal.data.groups import Groups
from faircal.data.labelled import Labelled, load_labelled
from faircal.data.readers import load
from faircal.data.stream import PairStream, open_stream
from faircal.data.types import Embeddings, Feature, Images, Pairs
from faircal.data.writers import save_dataset

__all__ = [
    "Dataset",
    "Embeddings",
    "Fault",
    "Feature",
    "Groups",
    "Images",
    "Labelled",
    "Memo",
    "PairStream",
    "Pairs",
    "crossing_identities",
    "find_faults",
    "load",
    "load_labelled",
    "open_stream",
    "save_dataset",
]
