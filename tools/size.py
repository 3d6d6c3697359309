"""How large the code is: `make size`; it fails where the code is larger than `LIMITS`.

Lines and files of ``src``, how long files are, how many functions have a docstring, how many
comment lines there are, and class names that are used more than once.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
#: Lines and files; all later features together have a tenth more. Lines of the longest file.
LINES, FILES, LONGEST = 66_000, 340, 600


class SourceFile(NamedTuple):
    """What is counted of one file."""

    path: str  # below src/faircal
    lines: int
    written: int  # lines that are not blank
    comments: int
    functions: int
    documented: int  # functions with a docstring
    classes: list[str]


def read(path: Path, root: Path) -> SourceFile:
    """Count one file."""
    text = path.read_text("utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    functions = [
        node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return SourceFile(
        path=str(path.relative_to(root)),
        lines=text.count("\n"),
        written=sum(bool(line.strip()) for line in text.splitlines()),
        comments=len({token.start[0] for token in tokens if token.type == tokenize.COMMENT}),
        functions=len(functions),
        documented=sum(ast.get_docstring(node) is not None for node in functions),
        classes=[node.name for node in nodes if isinstance(node, ast.ClassDef)],
    )


def package(file: SourceFile) -> str:
    """Return the first folder of a file, or its name where it lies at the top."""
    return file.path.split("/")[0]


def sources(tree: Path) -> list[SourceFile]:
    """Count the files of a tree."""
    source = tree / "src" / "faircal"
    return [read(path, source) for path in sorted(source.rglob("*.py"))]


def repeated_names(files: list[SourceFile]) -> dict[str, list[str]]:
    """Return the class names that are used more than once, with the files."""
    places = defaultdict(list)
    for file in files:
        for name in file.classes:
            places[name].append(file.path)
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


def within_limits(files: list[SourceFile]) -> bool:
    """Return whether the code is no larger than it may be, and class names stand once."""
    return (
        sum(file.lines for file in files) <= 1.1 * LINES
        and len(files) <= 1.1 * FILES
        and max(file.lines for file in files) <= LONGEST
        and not repeated_names(files)
    )


def report(files: list[SourceFile]) -> str:
    """Put the figures in words, one a line, then a line for each package."""
    lines, functions = sum(file.lines for file in files), sum(file.functions for file in files)
    comments, written = sum(file.comments for file in files), sum(file.written for file in files)
    documented = sum(file.documented for file in files)
    longest = max(files, key=lambda file: file.lines)
    repeated = repeated_names(files)
    said = [
        f"lines               {lines} (limit {LINES})",
        f"files               {len(files)} (limit {FILES})",
        f"median file         {statistics.median(file.lines for file in files):.0f} lines",
        f"longest file        {longest.lines} lines ({longest.path})",
        f"functions           {functions}, {documented / functions:.0%} with a docstring",
        (
            f"comment lines       {comments}, {comments / written:.1%} of written lines, "
            f"{comments / functions:.2f} a function"
        ),
        f"classes             {sum(len(file.classes) for file in files)}",
        f"names used twice    {len(repeated)}",
        *(f"  {name}: {', '.join(where)}" for name, where in repeated.items()),
        "",
    ]
    counts = Counter(package(file) for file in files)
    for name, count in sorted(counts.items()):
        own = sum(file.lines for file in files if package(file) == name)
        said.append(f"{name:20}{count:4} files {own:6} lines")
    return "\n".join(said)


if __name__ == "__main__":
    counted = sources(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
    print(report(counted))
    sys.exit(not within_limits(counted))
