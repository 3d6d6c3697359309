"""Where pairs are and how they are read: what every workflow begins with."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faircal._base.errors import FairCalError, ParameterError
from faircal._base.jobs import Progress, silent, step
from faircal.data.dataset import Dataset
from faircal.data.dataset_folder import load
from faircal.data.long_tables import open_table
from faircal.data.stream import PairStream, open_stream
from faircal.data.tables import find_table, is_table, table_files

#: With more pairs than this, fits and audits count them part by part.
MOST_PAIRS = 10_000_000


@dataclass(frozen=True)
class PairFiles:
    """A dataset folder or a score table, with how to read it.

    Attributes
    ----------
    path : Path
    score_range : tuple of two float, optional
        Lowest and highest value that ready-made scores can have; −1 to 1 unless given, or any
        where scores are only measured.
    normalize : bool
        Scale embeddings to unit length.
    device : str, optional
        Where heavy work is done: "cpu" (the default) or "cuda".

    Examples
    --------
    >>> PairFiles.of("faces/").how([])["normalize"]
    True
    """

    path: Path
    score_range: tuple[float, float] | None = None
    normalize: bool = True
    device: str | None = None

    @classmethod
    def of(cls, data: PairFiles | str | Path) -> PairFiles:
        """Return it, or the path as it is read by default."""
        return data if isinstance(data, PairFiles) else cls(Path(data))

    def how(self, features: Sequence[str], measuring: bool = False) -> dict[str, Any]:
        """Return how to read the data, by the names of `load`.

        For `measuring` alone scores may be in any range: those of some methods leave the cosine's.
        """
        return {
            "features": features or None,
            "score_range": self.score_range or (None if measuring else (-1.0, 1.0)),
            "normalize": self.normalize,
            "device": self.device or "cpu",
        }

    def load(
        self,
        features: Sequence[str] = (),
        *,
        measuring: bool = False,
        progress: Progress = silent,
        **more: Any,
    ) -> Dataset:
        """Read the data; `more` goes to `faircal.load`."""
        with step(progress, f"reading {self.path}"):
            return load(self.path, **self.how(features, measuring), **more)

    def open(
        self,
        features: Sequence[str] = (),
        *,
        measuring: bool = False,
        progress: Progress = silent,
        **more: Any,
    ) -> PairStream:
        """Open the data, to go through its pairs part by part; `more` goes to `open_stream`."""
        with step(progress, f"reading {self.path}"):
            return open_stream(self.path, **self.how(features, measuring), **more)

    def load_one(self, feature: str | None, **more: Any) -> Dataset:
        """Read the data with one feature: the one named, or the only one."""
        data = self.load([feature] if feature else (), **more)
        check_one_feature(data.features, self.path)
        return data

    def open_one(self, feature: str | None, **more: Any) -> PairStream:
        """Open the data with one feature: the one named, or the only one."""
        stream = self.open([feature] if feature else (), **more)
        check_one_feature(stream.features, self.path)
        return stream

    def is_long(self) -> bool:
        """Whether there are more pairs than are held in memory; what can't be read is not."""
        try:
            table = self.path if is_table(self.path) else find_table(self.path, "pairs")
            size = sum(file.stat().st_size for file in table_files(table))
            # The shortest line of CSV is "1,0": a short file need not be gone through twice.
            least = 4 * MOST_PAIRS if table.suffix == ".csv" else 0
            return size > least and open_table(table).n_rows > MOST_PAIRS
        except (FairCalError, OSError):
            return False  # reading it will say what is wrong

    def check_kept(self, out: Path, *others: Path) -> None:
        """Raise where `out` is a file that is read: the data, a part of it, or one of `others`."""
        target, data = out.resolve(), self.path.resolve()
        inside = target.parent in (data, data / "embeddings") and target.exists()
        read = inside and target.stem in ("images", "pairs", "embeddings", "dataset")
        read |= inside and target.suffix == ".npy"
        if read or target in (data, *(path.resolve() for path in others)):
            raise ParameterError(f"--out {out}: is read by this command; choose another path")


def fold_named(data: Dataset, text: str) -> Any:
    """Return the fold that prints as `text`; the text itself where there is none."""
    return next((name for name in data.fold_names if str(name) == text), text)


def check_one_feature(features: Collection[str], path: Path) -> None:
    """Raise where there are several features and nobody said which."""
    if len(features) > 1:
        raise ParameterError(
            f"{path}: has several features ({', '.join(features)}); choose one with --feature"
        )
