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

    `progress` is called as it goes on. Its state is written to the file `checkpoint` every so many
    seconds; to remove that is its owner's, when what came of the work is in safety. `resume` says
    whether to go on from a checkpoint that is there: True makes one of other work an error,
    None passes over it. `notes` take what the user should know afterwards.
    """

    progress: Progress = silent
    checkpoint: Path | None = None
    resume: bool | None = True
    notes: list[str] = field(default_factory=list)
    every: float = field(default_factory=lambda: EVERY)
