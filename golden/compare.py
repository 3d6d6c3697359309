"""Comparing two recordings, number by number."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from golden import values
from golden.values import Values

SHOWN = 5


@dataclass
class Difference:
    """How far one case of two recordings differs."""

    numbers: int = 0
    differing: int = 0
    largest: float = 0.0
    relative: float = 0.0
    changed: list[str] = field(default_factory=list)
    missing: dict[str, list[str]] = field(default_factory=lambda: {"A": [], "B": []})
    accepted: list[str] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Whether nothing differs but what was accepted."""
        return not (self.changed or self.missing["A"] or self.missing["B"])


def case_difference(a: Values, b: Values, accept: list[dict[str, str]]) -> Difference:
    """Compare the values of one case; `accept` holds patterns of keys that may differ, and why."""
    found = Difference()
    for key in sorted(a.keys() | b.keys()):
        reason = next((x["reason"] for x in accept if fnmatchcase(key, x["key"])), None)
        if key in a and key in b:
            _add(found, key, a[key], b[key], reason)
        elif reason is None:
            found.missing["B" if key in a else "A"].append(key)
        else:
            found.accepted.append(f"{key} (on one side): {reason}")
    return found


def _add(found: Difference, key: str, a: Any, b: Any, reason: str | None) -> None:
    size = 1 if isinstance(a, str) else len(a)
    found.numbers += size
    if isinstance(a, str) or isinstance(b, str) or len(a) != len(b):
        differs = 0 if isinstance(a, str) and isinstance(b, str) and a == b else max(size, 1)
        text = f"{key}: {_brief(a)} -> {_brief(b)}"
        absolute = relative = 0.0
    else:
        same = (a.view(np.int64) == b.view(np.int64)) | (np.isnan(a) & np.isnan(b))
        differs = int((~same).sum())
        x, y = a[~same], b[~same]
        apart = np.abs(x - y)
        absolute = _largest(apart)
        relative = _largest(apart / np.maximum(np.abs(x), np.abs(y)).clip(min=1e-300))
        text = f"{key}: {x[0]!r} -> {y[0]!r} ({differs} of {size})" if differs else ""
    if differs and reason is not None:
        found.accepted.append(f"{text}: {reason}")
    elif differs:
        found.differing += differs
        found.changed.append(text)
        found.largest = max(found.largest, absolute)
        found.relative = max(found.relative, relative)


def _largest(sizes: Any) -> float:
    finite = sizes[np.isfinite(sizes)]
    return (
        float(finite.max())
        if len(finite) == len(sizes) and len(sizes)
        else float("inf") * bool(len(sizes))
    )


def _brief(value: Any) -> str:
    return repr(value) if isinstance(value, str) else f"{len(value)} numbers"


def compare(a: Path, b: Path, accept: Path | None = None) -> int:
    """Compare two folders, print what differs case by case, and give the exit code."""
    listed = tomllib.loads(accept.read_text("utf-8"))["accept"] if accept else []
    names = sorted({f.stem for folder in (a, b) for f in folder.glob("*.parquet")})
    total, bad = Difference(), not names
    for name in names:
        sides = [folder / f"{name}.parquet" for folder in (a, b)]
        if not all(side.exists() for side in sides):
            print(f"{name}: only in {next(s for s in sides if s.exists()).parent}")
            bad = True
            continue
        patterns = [x for x in listed if fnmatchcase(name, x["case"])]
        one = case_difference(*map(values.read, sides), patterns)
        _show(name, one)
        total.numbers += one.numbers
        total.differing += one.differing
        bad |= not one.equal
    print(f"all: {total.numbers:,} numbers in {len(names)} cases, {total.differing:,} differ")
    return int(bad)


def _show(name: str, one: Difference) -> None:
    line = f"{name}: {one.numbers:,} numbers, {one.differing:,} differ"
    if one.differing:
        line += f", by at most {one.largest:.3g}, relatively {one.relative:.3g}"
    print(line)
    for title, keys in (
        ("differs", one.changed),
        ("not in A", one.missing["A"]),
        ("not in B", one.missing["B"]),
        ("accepted", one.accepted),
    ):
        for key in keys[:SHOWN]:
            print(f"    {title}: {key}")
        if len(keys) > SHOWN:
            print(f"    {title}: {len(keys) - SHOWN:,} more")
