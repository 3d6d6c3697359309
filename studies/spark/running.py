"""The study of moving pairs on Spark: run what is missing, keep it, write the page.

python -m studies spark               both parts; what is kept is not run again
python -m studies spark simulated     hashing of up to 10⁸ images; a minute or two
python -m studies spark measured      shuffles in a Spark of its own, on two cores
python -m studies spark --again       run all again
python -m studies spark --write       the page alone, from what is kept
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from studies.spark.measuring import measure
from studies.spark.page import Row, write
from studies.spark.simulating import simulate

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
PARTS: dict[str, tuple[Callable[[], Iterator[Row]], tuple[str, ...]]] = {
    "simulated": (simulate, ("blocks", "shares", "tiles")),
    "measured": (measure, ("measured",)),
}


def read(path: Path = RESULTS) -> list[Row]:
    """Return the lines that are kept."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for and is not kept yet; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m studies spark", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)} [all]")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--again", action="store_true", help="run what is kept again")
    how.add_argument("--write", action="store_true", help="write the page, run nothing")
    options = parser.parse_args(arguments)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]!r}; expected one of {', '.join(PARTS)}")
    rows = read()
    for part in () if options.write else options.parts or PARTS:
        run, kinds = PARTS[part]
        if not options.again and any(row["part"] in kinds for row in rows):
            continue
        rows = [row for row in rows if row["part"] not in kinds]
        for row in run():
            rows.append(row)
            sys.stderr.write(f"{row}\n")
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        RESULTS.write_text(lines, encoding="utf-8")
    write(rows, HERE)
    sys.stdout.write(f"{HERE / 'README.md'}\n")
    return 0
