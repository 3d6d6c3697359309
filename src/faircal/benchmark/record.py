"""The record of a run: everything needed to know, and to repeat, how results were made."""

from __future__ import annotations

from typing import Any

from faircal.benchmark.settings import Plan
from faircal.data import Dataset, crossing_identities
from faircal.results import versions


def make_record(data: Dataset, plan: Plan, jobs: int) -> dict[str, Any]:
    """Return what ``run.json`` says besides the fits and the time."""
    groups = {attribute: data.groups(attribute) for attribute in plan.attributes if attribute}
    return {
        "kind": "benchmark",
        "dataset": data.name,
        "simulated": bool(data.provenance.get("simulated", False)),
        "provenance": dict(data.provenance),
        "pairs": len(data),
        "images": len(data.images) if data.has_images else None,
        "folds": data.fold_names,
        "settings": plan.settings.as_json(),
        "attributes": list(plan.attributes),
        "groups": {attribute: found.shares() for attribute, found in groups.items()},
        "left_out": dict(plan.left_out),
        "notes": [
            *data.notes,
            *(f"warning: {fault}" for fault in crossing_identities(data)),
            *(note for name, found in groups.items() for note in found.unknown_note(name)),
        ],
        "data_sha256": plan.data_hash,
        "fingerprint": plan.fingerprint,
        "jobs": jobs,
        "versions": versions(),
    }
