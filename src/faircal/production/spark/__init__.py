"""FairCal on a Spark cluster: the same methods, the same numbers, pairs of any number.

Ids move, vectors don't: workers map embeddings from shared storage, or hold a copy. It works in
your own session and changes none of its settings::

    from faircal.production.spark import audit, open_pairs, score

    pairs = open_pairs(spark, "/shared/faces")
    scored = score(faircal.load_model("faces.faircal"), pairs)      # a lazy DataFrame
    found = audit(pairs, model=model, attribute="ethnicity")        # an ordinary Audit
    model = faircal.FairCal().fit(pairs)                            # an ordinary model

The extra ``spark`` brings PySpark; Java 17 must be there.
"""

from __future__ import annotations

import importlib
from typing import Any

#: Public names, and the modules that they are imported from when they are used.
_HOME = {
    "SparkPairs": "pairs",
    "audit": "auditing",
    "open_pairs": "opening",
    "pairs_of": "opening",
    "score": "scoring",
    "write": "scoring",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
