"""What the lists of figures share: what there is to draw, and names for files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from faircal.evaluation.curves import ScoreSource
from faircal.methods import METHODS
from faircal.report.figures.base import Figure, Panels
from faircal.report.figures.wording import titled
from faircal.report.store import Store
from faircal.report.tables import Variant

Anything = Figure | Panels


def sources_of(store: Store, feature: str, attribute: str) -> list[ScoreSource]:
    """Return whose scores there are, in the order of the tables: yardsticks last."""
    found = [
        source
        for source in store.curves.sources
        if (source.feature, source.attribute) == (feature, attribute)
    ]
    return sorted(found, key=lambda source: Variant.of(source).yardstick)


def swept(store: Store) -> list[str]:
    """Return the methods that use clusters, in the order of the registry."""
    ran = {variant.method for variant in store.results.variants if variant.clusters}
    return [name for name in METHODS if name in ran] + sorted(ran - set(METHODS))


def slug(*words: str) -> str:
    """Join words to a name for files: letters, digits, ``-``, ``_`` and ``.`` only.

    Examples
    --------
    >>> slug("fig", "ethnicity+gender"), slug("roc", ""), slug("../<b>")
    ('fig-ethnicity-gender', 'roc', 'b')
    """
    safe = (re.sub(r"[^\w.]+", "-", word, flags=re.ASCII).strip("-.") for word in words)
    return "-".join(word for word in safe if word) or "figure"


def panels(
    figures: Sequence[Figure],
    names: Sequence[str],
    *,
    key: str,
    title: str,
    columns: int = 3,
    share_x: bool = False,
    share_y: bool = False,
) -> list[Anything]:
    """Return the figures that show something as panels; one alone as it is, and none as none."""
    kept = [(f, name) for f, name in zip(figures, names, strict=True) if not f.empty]
    if not kept:
        return []
    if len(kept) == 1:
        return [replace(kept[0][0], key=key, title=titled(title, kept[0][1]))]
    shown, shown_names = zip(*kept, strict=True)
    look: dict[str, Any] = {"columns": columns, "share_x": share_x, "share_y": share_y}
    return [Panels(shown, shown_names, key=key, title=title, **look)]


def tell_apart(figures: Iterable[Anything]) -> list[Anything]:
    """Return the figures that show something, each with a key of its own."""
    found: dict[str, Anything] = {}
    for figure in figures:
        if figure.empty:
            continue
        key, n = figure.key, 1
        while key.lower() in found:  # file systems may not tell capitals apart
            n += 1
            key = f"{figure.key}-{n}"
        found[key.lower()] = figure if key == figure.key else replace(figure, key=key)
    return list(found.values())
