"""What a job is, what does it, and how fast that is: the numbers that `sizing` starts from."""

from __future__ import annotations

from dataclasses import dataclass

from faircal._base.registry import check_whole
from faircal.production.spark.readers import PART

#: Pairs of a task: long enough to hide its start, short enough that a lost one is no loss.
_PAIRS = 4_000_000
#: Tasks for each core at least, so that a slow one holds nobody up.
_WAVES = 6


@dataclass(frozen=True)
class Rates:
    """Measured figures; give those of your machines where you have them.

    Parameters
    ----------
    read, shuffle, score, write : float
        Processor seconds for a million pairs: from Parquet to Python, sorted to tiles, scored by
        FairCal, from Python to Parquet.
    vector : float
        Seconds more, for a million pairs and each hundred numbers of a vector.
    load, tile : float
        Seconds to load a gigabyte of vectors, and for each tile besides.
    worker : float
        Bytes that a Python worker takes before it has any data.
    image : float
        Bytes that is known of an image besides its vector, in each worker: id, person, attributes,
        length, clusters.
    pair : float
        Bytes that a pair takes while it is worked on, of which a task has a part (2¹⁸).
    """

    read: float = 0.4
    shuffle: float = 0.75
    score: float = 0.5
    write: float = 0.5
    vector: float = 0.06
    load: float = 1.0
    tile: float = 0.05
    worker: float = 350e6
    image: float = 80.0
    pair: float = 200.0


@dataclass(frozen=True)
class Job:
    """What is to be done; see `plan`."""

    templates: int
    pairs: int
    dimension: int
    number_bytes: int
    text: int
    kept: tuple[str, ...]

    @property
    def row(self) -> int:
        """Bytes of a vector."""
        return self.dimension * self.number_bytes

    @property
    def vectors(self) -> int:
        """Bytes of all vectors."""
        return self.templates * self.row


@dataclass(frozen=True)
class Cluster:
    """What does it; see `plan`."""

    executors: int
    cores: int
    task_memory: float
    heap: float
    price: float
    rates: Rates

    def __post_init__(self) -> None:
        check_whole("executors", self.executors, 1)
        check_whole("cores", self.cores, 1)

    @property
    def all_cores(self) -> int:
        """Cores of all executors."""
        return self.executors * self.cores

    @property
    def own(self) -> float:
        """Bytes of a worker that has no images."""
        return self.rates.worker + self.rates.pair * PART

    def tasks(self, pairs: int) -> int:
        """Return how many tasks so many pairs are divided into."""
        return max(_WAVES * self.all_cores, -(-pairs // _PAIRS))


def size(count: float) -> str:
    """Print a number of bytes.

    Examples
    --------
    >>> size(15_130_000_000), size(999), size(1e6)
    ('15.1 GB', '999 B', '1 MB')
    """
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 999.5 or unit == "TB":
            break
        count /= 1000
    return f"{count:,.0f} {unit}" if unit == "B" or count >= 99.95 else f"{count:.3g} {unit}"


def duration(hours: float) -> str:
    """Print a time.

    Examples
    --------
    >>> duration(0.005), duration(0.5), duration(30)
    ('18 s', '30 min', '30 h')
    """
    if hours < 1 / 30:
        return f"{3600 * hours:.0f} s"
    return f"{60 * hours:.0f} min" if hours < 2 else f"{hours:,.0f} h"
