"""Statements about libraries, as data: see ``claims/*.toml``.

A file has the library's name, its distributions and licence, what it has `none` of (columns of the
overview, see `COLUMNS`), and claims. A claim may say something (`says`), fill cells of the overview
(`cell`), and must be checkable, in one or more of these ways:

has      dotted names that must be there, ``module.function(parameter)`` for a parameter
lacks    a pattern that no class, function or parameter of the library may match
states   a pattern that its metadata must match
run      a function of ``probes/NAME.py``, and what it `gives`
read     a page of the project's owners that says so: read by us, no program checks it
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: Libraries in the order of the page; ours first.
LIBRARIES = (
    "faircal",
    "fairlearn",
    "aif360",
    "netcal",
    "scikit-learn",
    "mapie",
    "lir",
    "bob",
    "deepface",
    "insightface",
)
NONE = "–"


@dataclass(frozen=True)
class Column:
    """A column of the overview; a library that has none of it has no name like `pattern`."""

    title: str
    pattern: str = ""


COLUMNS: dict[str, Column] = {
    "map": Column("Fits maps", "calibrat|isotonic|platt"),
    "by": Column("Differ by", "calibrat|isotonic|platt"),
    "classes": Column("Classes", "calibrat|isotonic|platt"),
    "pairs": Column("Pairs", "genuine|impost|verification"),
    "rates": Column("By group", "by_group|sensitive_|protected|privileged"),
    "interval": Column("Interval over", "n_boot|bootstrap_ci|confidence_interval|variational"),
    "promise": Column("Promise over", "guarant|promise|target_level|risk_control"),
    "cllr": Column("Cllr", "(^|_)cllr"),
    "networks": Column("Networks", "detect_face|facenet|arcface"),
    "training": Column("Fair training", "adversar|debias|fairness|sensitive|reweighing"),
    "report": Column("Report", "report|to_html|plot"),
    "service": Column("Service", "^serve$|create_app|servicer|wsgi"),
    "watch": Column("Watches", "monitoring|drift"),
    "onnx": Column("ONNX", "(?<!nd)onnx"),
    "large": Column("Scale", "spark|dask|cuda|gpu"),
}


@dataclass(frozen=True)
class Claim:
    """A statement and how it is checked."""

    key: str
    says: str = ""
    cell: Mapping[str, str] = field(default_factory=dict)
    has: tuple[str, ...] = ()
    lacks: str | None = None
    states: str | None = None
    run: str | None = None
    gives: Any = None
    read: str | None = None

    def __post_init__(self) -> None:
        if not (self.has or self.lacks or self.states or self.run or self.read):
            raise ValueError(
                f"{self.key}: expected has, lacks, states, run or read: a way to check it"
            )
        unknown = set(self.cell) - set(COLUMNS)
        if unknown:
            raise ValueError(f"{self.key}: expected columns, found {sorted(unknown)}")

    @property
    def text(self) -> str:
        """What is said, with the figures that the check must give."""
        known = self.gives if isinstance(self.gives, dict) else {}
        text = self.says
        for name, value in known.items():
            text = text.replace(f"{{{name}}}", str(value))
        return text

    @property
    def question(self) -> dict[str, Any]:
        """What `inside` is asked."""
        asked: dict[str, Any] = {"key": self.key, "has": list(self.has)}
        for name in ("lacks", "states"):
            if (pattern := getattr(self, name)) is not None:
                asked[name] = pattern
        if self.run is not None:
            asked |= {"run": self.run, "gives": self.gives}
        return asked

    def check(self, library: str) -> str:
        """How it is checked, for the page."""
        parts = [", ".join(f"`{name}`" for name in self.has)] if self.has else []
        if self.run is not None:
            parts.append(f"run `{self.run}` of `probes/{probes_of(library).name}`")
        if self.lacks is not None:
            parts.append(f"no name like `{self.lacks}`")
        if self.states is not None:
            parts.append("its own metadata")
        if self.read is not None:
            parts.append(f"read by us, not by a program: <{self.read}>")
        return "; ".join(parts)


@dataclass(frozen=True)
class Library:
    """A library and what is said of it."""

    name: str
    title: str
    distributions: tuple[str, ...]
    licence: str
    claims: tuple[Claim, ...]


def probes_of(library: str) -> Path:
    """Return the file with the functions that are run in a library's interpreter."""
    return HERE / "probes" / f"{library.replace('-', '_')}.py"


def read(name: str) -> Library:
    """Read what is said of a library."""
    told = tomllib.loads((HERE / "claims" / f"{name}.toml").read_text("utf-8"))
    licence = told["licence"]
    claims = [Claim("licence", states=licence["states"])]
    claims += [
        Claim(f"none.{column}", cell={column: NONE}, lacks=COLUMNS[column].pattern)
        for column in told.get("none", ())
    ]
    claims += [Claim(**{**each, "has": tuple(each.get("has", ()))}) for each in told["claim"]]
    keys = [claim.key for claim in claims]
    if len(set(keys)) < len(keys):
        raise ValueError(f"{name}: expected one claim of each key, found {sorted(keys)}")
    return Library(
        name, told["title"], tuple(told["distributions"]), licence["name"], tuple(claims)
    )
