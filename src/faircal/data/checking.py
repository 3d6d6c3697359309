"""What a dataset is like, and what is wrong with it: the work of ``faircal check``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from faircal._base.jobs import Progress, silent, step
from faircal.data.dataset import Dataset
from faircal.data.faults import Fault, describe_groups, find_faults
from faircal.data.pair_files import PairFiles


@dataclass(frozen=True)
class CheckedData:
    """The facts about a dataset, by name, and its faults, the fatal ones first."""

    facts: dict[str, Any]
    faults: list[Fault]

    @property
    def errors(self) -> list[Fault]:
        """Faults with which the data can't be used."""
        return [fault for fault in self.faults if fault.severity == "error"]


def check_data(
    data: PairFiles | str | Path, attribute: str | None = None, *, progress: Progress = silent
) -> CheckedData:
    """Describe a dataset and find what is wrong with it.

    Parameters
    ----------
    data : PairFiles or path
    attribute : str, optional
        The attribute that makes the groups.
    progress : callable

    Examples
    --------
    >>> import faircal
    >>> faircal.check_data("faces/").facts["pairs"]  # doctest: +SKIP
    """
    fatal: list[Fault] = []
    loaded = PairFiles.of(data).load(on_fault=fatal.append, progress=progress)
    with step(progress, "checking"):
        return CheckedData(describe_data(loaded, attribute), fatal + find_faults(loaded, attribute))


def describe_data(data: Dataset, attribute: str | None = None) -> dict[str, Any]:
    """Return the facts about a dataset, by name."""
    genuine = data.pairs.genuine
    fold = data.pairs.fold
    attribute = attribute or data.default_attribute
    about: dict[str, Any] = {
        "name": data.name,
        "simulated": bool(data.provenance.get("simulated", False)),
        "pairs": len(data),
        "genuine": None if genuine is None else int(genuine.sum()),
        "imposter": None if genuine is None else int((~genuine).sum()),
        "images": len(data.images) if data.has_images else None,
        "identities": None if data.images.identity is None else len(data.images.identity.names),
        "features": {
            name: f"{f.embeddings.dimension}-d embeddings" if f.embeddings else "scores"
            for name, f in data.features.items()
        },
        "attributes": {name: list(c.names) for name, c in data.images.attributes.items()},
        "folds": {str(name): int(np.sum(fold == name)) for name in data.fold_names},
        "attribute": attribute,
        "groups": [],
    }
    if attribute is not None:
        about["groups"] = [vars(size) for size in describe_groups(data, attribute)]
        about |= data.groups(attribute).shares()
    return about
