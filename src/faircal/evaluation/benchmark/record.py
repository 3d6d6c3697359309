"""The record of a run: everything needed to know, and to repeat, how results were made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from faircal.data import Dataset, Groups, crossing_identities
from faircal.evaluation.benchmark.populations import Moving
from faircal.evaluation.benchmark.settings import Plan, plugin_hashes
from faircal.metrics.intervals import BY_PEOPLE, PAIR_WISE
from faircal.metrics.intervals.dyadic import IdentifiedPairs
from faircal.metrics.results import GLOBAL, versions


def make_record(
    data: Dataset, plan: Plan, jobs: int, moving: Moving | None = None
) -> dict[str, Any]:
    """Return what ``run.json`` says besides the fits and the time."""
    groups = {attribute: data.groups(attribute) for attribute in plan.attributes if attribute}
    source = {} if moving is None else moving.record(plan.labels, plan.source_hash)
    return {
        "kind": "benchmark",
        "dataset": data.name,
        "simulated": bool(data.provenance.get("simulated", False) or source.get("simulated")),
        "provenance": dict(data.provenance),
        "pairs": len(data),
        "images": len(data.images) if data.has_images else None,
        "folds": data.fold_names,
        "settings": asdict(plan.settings),
        "attributes": list(plan.attributes),
        "groups": {attribute: codes.shares() for attribute, codes in groups.items()},
        **_people(data, groups),
        "left_out": dict(plan.left_out),
        "notes": [
            *data.notes,
            *(() if moving is None else moving.notes_on(data)),
            *(f"warning: {fault}" for fault in crossing_identities(data)),
            *(note for name, codes in groups.items() for note in codes.unknown_note(name)),
        ],
        "data_sha256": plan.data_hash,
        "plugins_sha256": plugin_hashes(),
        "fingerprint": plan.fingerprint,
        "jobs": jobs,
        "versions": versions(),
        **({"moving": source} if source else {}),
    }


def _people(data: Dataset, groups: Mapping[str, Groups]) -> dict[str, Any]:
    """Count the people of all pairs and of each group, and how many they come to.

    By attribute; besides, as audits have it, those of the first one.
    """
    people = data.people
    if people is None:
        return {"people": None, "effective_people": None, "interval_kind": PAIR_WISE}
    everyone, named = IdentifiedPairs.of(data.genuine, people), len(people.names)
    # Two attributes may have groups of the same name, such as yes and no.
    by = {attribute: _counted(everyone, codes, named) for attribute, codes in groups.items()}
    first = next(iter(by.values()), None) or _counted(everyone, None, named)
    return {**first, "people_by": by, "interval_kind": BY_PEOPLE}


def _counted(
    everyone: IdentifiedPairs, groups: Groups | None, named: int
) -> dict[str, dict[str, float]]:
    """Count the people of all pairs and of the groups of one attribute."""
    identified = {GLOBAL: everyone}
    if groups is not None:
        parts = (np.flatnonzero(groups.pair == code) for code in range(len(groups.names)))
        identified |= zip(groups.names, map(everyone.part, parts), strict=True)
    return {
        "people": {name: each.named(named) for name, each in identified.items()},
        "effective_people": {
            name: round(each.imposter_dyads.effective_people, 1)
            for name, each in identified.items()
        },
        "effective_people_genuine": {
            name: round(each.genuine_dyads.effective_people, 1) for name, each in identified.items()
        },
    }
