"""How long work tells of itself, and what it leaves behind to go on from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

#: Called with (what is done, steps done, steps in all, a few words more).
Progress = Callable[[str, int, int, str], None]

#: Seconds between two checkpoints.
EVERY = 30.0


def silent(what: str, done: int, total: int, label: str) -> None:
    """Show no progress."""


@contextmanager
def step(progress: Progress, what: str) -> Iterator[None]:
    """Tell `progress` that something is under way, as long as the block lasts."""
    progress(what, 0, 1, "")
    yield
    progress(what, 0, 0, "")


@dataclass(frozen=True)
class Job:
    """What long work, a training, a fit or an audit, is given besides its data.

    Parameters
    ----------
    progress : callable
        Called as the work goes on.
    checkpoint : Path, optional
        File that the state of the work is written to. It is its owner's to remove, when what
        came of the work is in safety.
    resume : bool, optional
        Whether to go on from the checkpoint where it is there already. True: it is an error where
        it is of other work; None: such a one is passed over.
    notes : list of str
        Takes what the user should know afterwards.
    every : float
        Seconds between two checkpoints.
    """

    progress: Progress = silent
    checkpoint: Path | None = None
    resume: bool | None = True
    notes: list[str] = field(default_factory=list)
    every: float = field(default_factory=lambda: EVERY)
