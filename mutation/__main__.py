"""``python -m mutation``: see the package."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import mutation
from mutation.sites import choose, relocate


def main() -> int:
    """Draw mutants, find them again, run tests on them, or compare what became of them."""
    parser = argparse.ArgumentParser(
        prog="python -m mutation",
        description=mutation.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("choose", help="draw mutants of a tree")
    drawing.add_argument("--tree", type=Path, default=Path())
    drawing.add_argument("--seed", type=int, default=0)
    drawing.add_argument("--count", type=int, default=400)
    moving = commands.add_parser("relocate", help="describe mutants as a tree has them now")
    moving.add_argument("mutants", type=Path)
    moving.add_argument("--tree", type=Path, default=Path())
    running = commands.add_parser("run", help="run the tests on each mutant")
    running.add_argument("mutants", type=Path)
    running.add_argument("--tree", type=Path, default=Path())
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--tests", type=Path, help="what tests execute: kept here, or read")
    comparing = commands.add_parser("compare", help="compare the results of two trees")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    options = parser.parse_args()
    return int(globals()[f"_{options.command}"](options) or 0)


def _choose(options: argparse.Namespace) -> None:
    _print(choose(options.tree.resolve(), options.seed, options.count))


def _relocate(options: argparse.Namespace) -> None:
    mutants = json.loads(options.mutants.read_text())
    here = relocate(options.tree.resolve(), mutants)
    print(f"{len(here)} of {len(mutants)} are there", file=sys.stderr)
    _print(here)


def _print(mutants: list[dict[str, Any]]) -> None:
    print("[\n" + ",\n".join(json.dumps(mutant) for mutant in mutants) + "\n]")


def _run(options: argparse.Namespace) -> None:
    from mutation.run import run

    mutants = json.loads(options.mutants.read_text())
    kept = options.tests and options.tests.resolve()
    results = run(mutants, options.tree, kept)
    options.out.write_text(json.dumps(results, indent=1))
    _show(results)


def _share(fates: list[dict[str, Any]]) -> str:
    killed = sum(fate["fate"] in ("killed", "timeout") for fate in fates)
    return f"{killed} of {len(fates)} killed ({100 * killed / max(len(fates), 1):.1f} %)"


def _show(results: dict[str, Any]) -> None:
    fates = results["mutants"]
    present = [fate for fate in fates if fate["fate"] != "missing"]
    print(f"{_share(present)}; {results['cpu_seconds']} CPU seconds")
    print("found:", dict(Counter(fate["found"] for fate in fates)))
    print("fates:", dict(Counter(fate["fate"] for fate in fates)))
    survivors = [fate["old"].split("/")[2] for fate in fates if fate["fate"] == "survived"]
    print("survivors:", dict(Counter(survivors).most_common()))
    for fate in fates:
        if fate["fate"] in ("survived", "missing") or fate["found"] == "renamed":
            print(_line(fate))


def _line(fate: dict[str, Any]) -> str:
    where = f"{fate.get('path', fate['old'])}:{fate.get('line', '')} {fate.get('function', '')}"
    change = f"{fate.get('before', '')}  →  {fate.get('after', '')}".replace("\n    pass", "")
    return f"{fate['id']:>3} {fate['fate']}, {fate['found']}: {where}\n      {change}"


def _compare(options: argparse.Namespace) -> int:
    """Return 1 where a lower share of the mutants that both trees have is killed in the second."""
    before, after = (
        {fate["id"]: fate for fate in json.loads(path.read_text())["mutants"]}
        for path in (options.before, options.after)
    )
    both = [number for number in before if after[number]["fate"] != "missing"]
    for name, fates in (("before", before), ("after", after)):
        print(f"{name}, of {len(both)} in both: {_share([fates[number] for number in both])}")
    for number in both:
        if after[number]["fate"] == "survived" and before[number]["fate"] != "survived":
            print("no longer killed", _line(after[number]), f"was: {before[number].get('by', '')}")
    lost = sum(
        (before[number]["fate"] != "survived") - (after[number]["fate"] != "survived")
        for number in both
    )
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
