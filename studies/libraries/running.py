"""The comparison with other libraries: check every statement, measure, write the page's tables.

python -m studies libraries                                 what this interpreter can import
python -m studies libraries --python lir=/venv/bin/python   some in interpreters of their own
python -m studies libraries --measure --python …            numbers too (some minutes)
python -m studies libraries --write                         the page alone, from what is kept

What is checked replaces what was kept of the same library; the others stay. What was installed
where it was checked is kept in ``environments/``, names and versions. A statement that does
not hold is kept as failed, told, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from studies.libraries import measuring
from studies.libraries.asking import ask
from studies.libraries.claims import LIBRARIES, Library
from studies.libraries.claims import read as library_of
from studies.libraries.page import PAGE, write

HERE = Path(__file__).parent
RESULTS, ENVIRONMENTS = HERE / "results.jsonl", HERE / "environments"
Row = dict[str, Any]


def main(arguments: Sequence[str]) -> int:
    """Check what is asked for; return 1 where a statement does not hold."""
    options = _options(arguments)
    rows = read(RESULTS)
    if not options.write:
        pythons = {**_here(), **dict(options.python)}
        found = []
        for name, python in pythons.items():
            checks, installed = checked(name, python)
            found += checks
            ENVIRONMENTS.mkdir(exist_ok=True)
            (ENVIRONMENTS / f"{name}.txt").write_text("\n".join(installed) + "\n", encoding="utf-8")
        if options.measure:
            found += measuring.measure(pythons)
        rows = _merged(rows, found)
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        RESULTS.write_text(text, encoding="utf-8")
    write(rows)
    sys.stdout.write(f"{PAGE}\n")
    failed = [row for row in rows if not row.get("passed", True)]
    for row in failed:
        sys.stderr.write(f"{row['library']}, {row['claim']}: {row['found']}\n")
    return 1 if failed else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m studies libraries", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--python", action="append", default=[], type=_pair, metavar="NAME=PATH", help="repeatable"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--measure", action="store_true", help="measure numbers too")
    how.add_argument("--write", action="store_true", help="write the page, check nothing")
    return parser.parse_args(arguments)


def _pair(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    if name not in LIBRARIES or not path:
        raise argparse.ArgumentTypeError(
            f"expected NAME=PATH with a name of {', '.join(LIBRARIES)}; found {text!r}"
        )
    return name, path


def _here() -> dict[str, str]:
    """The libraries that this interpreter has."""
    return {name: sys.executable for name in LIBRARIES if is_installed(library_of(name))}


def is_installed(library: Library) -> bool:
    """Whether this interpreter has all distributions of a library."""
    try:
        return all(metadata.version(name) for name in library.distributions)
    except metadata.PackageNotFoundError:
        return False


def checked(name: str, python: str) -> tuple[list[Row], list[str]]:
    """Check all that is said of a library; return a row for each claim, and what is installed."""
    library = library_of(name)
    told = ask(python, library, library.claims)
    version = told["versions"][library.distributions[0]]
    common = {
        "kind": "claim",
        "library": name,
        "title": library.title,
        "version": version,
        "python": told["python"],
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
    }
    rows = []
    for claim in library.claims:
        row = {**common, "claim": claim.key, "says": claim.text, "cell": dict(claim.cell)}
        rows.append({**row, "check": claim.check(name), **told["found"][claim.key]})
    first = {**common, "kind": "version", "licence": library.licence, "versions": told["versions"]}
    return [first, *rows], told["environment"]


def _merged(before: Sequence[Row], found: Sequence[Row]) -> list[Row]:
    """Put new rows in the place of those of the same library, or the same measurement."""
    new = {_place(row) for row in found}
    rows = [row for row in before if _place(row) not in new] + list(found)
    return sorted(
        rows, key=lambda row: (row["kind"] == "measured", LIBRARIES.index(row["library"]))
    )


def _place(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (row["library"], row["name"] if row["kind"] == "measured" else "")


def read(path: Path) -> list[Row]:
    """Return the rows that are kept."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]
