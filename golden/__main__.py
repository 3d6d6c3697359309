"""Record every number of a source tree, and compare two recordings."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from golden.compare import compare

HERE = Path(__file__).resolve().parent.parent


def record(folder: Path, tree: Path, only: list[str]) -> int:
    """Run the cases with the faircal of `tree`, each in a process of its own."""
    from golden.cases import CASES

    if unknown := set(only) - CASES.keys():
        print(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    paths = os.pathsep.join(map(str, (tree / "src", HERE)))
    environment = os.environ | one_thread | {"PYTHONPATH": paths, "GOLDEN_TREE": str(tree)}
    began, failed = time.monotonic(), []
    for name in only or CASES:
        print(f"{name:<20}", end="", flush=True)
        words = [sys.executable, "-m", "golden.recorder", name, str(folder.resolve())]
        with tempfile.TemporaryDirectory() as anywhere:  # not the checkout: it would be imported
            done = subprocess.run(words, env=environment, cwd=anywhere, check=False)  # noqa: S603
        if done.returncode:
            failed.append(name)
    print(f"{time.monotonic() - began:.0f} s; failed: {', '.join(failed) or 'none'}")
    return int(bool(failed))


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="golden", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run every case and keep its numbers")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--tree", type=Path, default=HERE, help="checkout to record")
    recording.add_argument("--only", default="", help="names of cases, with commas")
    comparing = commands.add_parser("compare", help="compare two recordings, number by number")
    comparing.add_argument("a", type=Path)
    comparing.add_argument("b", type=Path)
    comparing.add_argument("--accept", type=Path, help="TOML: [[accept]] case, key, reason")
    given = parser.parse_args()
    if given.command == "compare":
        return compare(given.a, given.b, given.accept)
    return record(given.folder, given.tree.resolve(), [x for x in given.only.split(",") if x])


if __name__ == "__main__":
    sys.exit(main())
