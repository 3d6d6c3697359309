"""The data that commands read: the argument DATA, its options, and what long work on it keeps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.help import Part, argument, option
from faircal.cli.options import check_file, working
from faircal.cli.values import among

if TYPE_CHECKING:
    from faircal.data import Dataset, PairStream

#: With more pairs than this, ``fit`` and ``audit`` count them part by part.
MOST_PAIRS = 10_000_000
#: Pairs of a part.
BATCH = 1 << 20
#: What the argument DATA may be.
DATA_HELP = (
    "A dataset folder (images, pairs, embeddings), as 'faircal import', 'embed', 'pairs' and "
    "'simulate' write it; or a table of scores (.csv, .parquet, .npz)."
)


class ScoreRange(click.ParamType[Any]):
    """``LOW,HIGH``."""

    name = "low,high"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        """Split into two numbers."""
        if isinstance(value, tuple):
            return value
        try:
            low, high = map(float, str(value).split(","))
        except ValueError:
            self.fail(f"expected LOW,HIGH such as 0,100, found {value!r}", param, ctx)
        return low, high


def fold_named(data: Dataset, text: str) -> Any:
    """Return the fold that prints as `text`; the text itself where there is none."""
    return next((name for name in data.fold_names if str(name) == text), text)


def check_one_feature(features: Collection[str], path: Path) -> None:
    """Raise where there are several features and nobody said which."""
    from faircal._base.errors import ParameterError

    if len(features) > 1:
        raise ParameterError(
            f"{path}: has several features ({', '.join(features)}); choose one with --feature"
        )


@dataclass(frozen=True)
class Source:
    """The argument DATA with the options that say how to read it."""

    path: Path
    score_range: tuple[float, float] | None
    raw: bool
    device: str | None = None

    def load(
        self, features: Sequence[str] = (), *, measuring: bool = False, **more: Any
    ) -> Dataset:
        """Read the data; `more` goes to `faircal.load`.

        For `measuring` alone scores may be in any range: those of some methods leave the cosine's.
        """
        from faircal.data import load

        with working(f"reading {self.path}"):
            return load(self.path, **self.how(features, measuring), **more)

    def open(
        self, features: Sequence[str] = (), *, measuring: bool = False, **more: Any
    ) -> PairStream:
        """Open the data, to go through its pairs part by part; `more` goes to `open_stream`."""
        from faircal.data import open_stream

        with working(f"reading {self.path}"):
            return open_stream(self.path, **self.how(features, measuring), **more)

    def how(self, features: Sequence[str], measuring: bool) -> dict[str, Any]:
        """Return how to read the data, by the names of `load`."""
        return {
            "features": features or None,
            "score_range": self.score_range or (None if measuring else (-1.0, 1.0)),
            "normalize": not self.raw,
            "device": self.device or "cpu",
        }

    def check_kept(self, out: Path, *others: Path) -> None:
        """Raise where `out` is a file that is read: DATA, a part of it, or one of `others`."""
        from faircal._base.errors import ParameterError

        target, data = out.resolve(), self.path.resolve()
        inside = target.parent in (data, data / "embeddings") and target.exists()
        read = inside and target.stem in ("images", "pairs", "embeddings", "dataset")
        read |= inside and target.suffix in (".npy", ".npz")
        if read or target in (data, *(path.resolve() for path in others)):
            raise ParameterError(f"--out {out}: is read by this command; choose another path")

    def is_long(self) -> bool:
        """Whether there are more pairs than are held in memory; what can't be read is not."""
        from faircal._base.errors import FairCalError
        from faircal.data.long_tables import open_table
        from faircal.data.tables import find_table, is_table, table_files

        try:
            table = self.path if is_table(self.path) else find_table(self.path, "pairs")
            size = sum(file.stat().st_size for file in table_files([table]))
            # The shortest line of CSV is "1,0": a short file need not be gone through twice.
            least = 4 * MOST_PAIRS if table.suffix == ".csv" else 0
            return size > least and open_table(table).n_rows > MOST_PAIRS
        except (FairCalError, OSError):
            return False  # reading it will say what is wrong

    def open_one(self, feature: str | None, **more: Any) -> PairStream:
        """Open the data with one feature: the one named, or the only one."""
        stream = self.open([feature] if feature else (), **more)
        check_one_feature(stream.features, self.path)
        return stream

    def load_one(self, feature: str | None) -> Dataset:
        """Read the data with one feature: the one named, or the only one."""
        data = self.load([feature] if feature else ())
        check_one_feature(data.features, self.path)
        return data


def reads_data(
    function: Callable[..., Any] | None = None, *, required: bool = True
) -> Callable[..., Any]:
    """Add the argument DATA and the options that say how to read it; gives ``source``.

    Where DATA is not `required` and left out, the path of ``source`` is None.
    """
    if function is None:
        return partial(reads_data, required=required)

    @argument("data", type=click.Path(path_type=Path), required=required, help=DATA_HELP)
    @option(
        "--score-range",
        part=Part.DATA,
        type=ScoreRange(),
        show_default="-1,1; any where scores are only measured",
        help="Lowest and highest value that ready-made scores can have, such as 0,100.",
    )
    @option(
        "--raw",
        part=Part.DATA,
        is_flag=True,
        help="Keep embeddings as stored. Otherwise each is scaled to unit length.",
    )
    @option(
        "--device",
        part=Part.WORK,
        shell_complete=among("cpu", "cuda"),
        show_default="cpu; to train a network, cuda where there is one",
        help="Where heavy work is done: cpu, or cuda (a GPU; extra torch).",
    )
    @wraps(function)
    def reading(
        data: Path,
        score_range: tuple[float, float] | None,
        raw: bool,
        device: str | None,
        **rest: Any,
    ) -> Any:
        return function(source=Source(data, score_range, raw, device), **rest)

    return reading


stream_option = option(
    "--stream",
    part=Part.WORK,
    is_flag=True,
    help="Read the pairs part by part and count their scores in fine bins, in bounded memory. Done "
    f"by itself above {MOST_PAIRS:,} pairs.",
)


def check_checkpoint(path: Path, resume: bool, work: str) -> None:
    """Raise unless the checkpoint at `path` is there just when it is to be gone on from.

    `work` is what was interrupted, in words.
    """
    from faircal._base.errors import ParameterError

    check_file(path)
    if resume and not path.exists():
        raise ParameterError(f"--resume: there is no {path} to go on from; leave --resume out")
    if not resume and path.exists():
        raise ParameterError(
            f"{path} is there from {work} that was interrupted; go on with --resume, or delete it"
        )


@contextmanager
def kept_in(checkpoint: Path, work: str) -> Iterator[None]:
    """Say, where `work` is interrupted, whether it can go on.

    Where its data must change, and not merely couldn't be read, the checkpoint is worth nothing.
    """
    from faircal._base.errors import DataError

    try:
        yield
    except KeyboardInterrupt as error:
        hint = f"{work} goes on with --resume" if checkpoint.exists() else "nothing is written"
        raise KeyboardInterrupt(hint) from error
    except DataError as error:
        if not isinstance(error.__cause__, OSError):
            checkpoint.unlink(missing_ok=True)
        raise
