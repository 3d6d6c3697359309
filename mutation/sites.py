"""Statements of a tree's functions; mutants drawn of them, and found again in another tree."""

from __future__ import annotations

import ast
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

from mutation.edits import faults, header, shape

#: The numerics that mutants are drawn of; what is left out reads, writes or prints.
_NUMERICS = """
compute/[!_]*.py compute/_numba.py calibrators/*.py calibrators/classes/*.py
metrics/*.py metrics/intervals/*.py methods/*.py methods/smooth/*.py
methods/classifier/maps.py methods/classifier/cross_fitting.py methods/classifier/estimator.py
evaluation/curves.py evaluation/audit/rates.py evaluation/audit/region*.py
evaluation/audit/label_noise.py evaluation/compare/paired.py evaluation/compare/verdicts.py
evaluation/classes/measuring.py evaluation/thresholds/*.py evaluation/tuning/*.py
production/monitoring/comparing.py production/monitoring/counts.py
production/monitoring/population.py production/monitoring/windows.py
data/pairing/imposters.py data/pairing/matched.py
"""
_LEFT_OUT = {"modelfile.py", "inputs.py", "device.py", "__init__.py", "catalogue.py"}
_FOR_PEOPLE = {"__repr__", "__str__", "_repr_html_", "__sklearn_tags__"}
#: How many statements before and after one help to recognise it.
_NEAR = 3


@dataclass(frozen=True, eq=False)
class Site:
    """A statement in a function: the `index`-th there that reads alike."""

    path: str
    function: str
    statement: ast.stmt
    text: str
    index: int
    near: frozenset[int]

    @cached_property
    def shape(self) -> str:
        """The statement without its names."""
        return shape(self.statement)

    @property
    def name(self) -> str:
        """The function's own name, without its class."""
        return self.function.rsplit(".", 1)[-1]

    @property
    def lines(self) -> range:
        """The lines of the statement, up to the block in it."""
        first = self.statement
        body = getattr(first, "body", None)
        end = body[0].lineno - 1 if body else first.end_lineno
        return range(first.lineno, max(first.lineno, end or 0) + 1)


def sites(tree: Path, path: Path) -> list[Site]:
    """Return all statements in functions of a file."""
    module = ast.parse(path.read_text("utf-8"))
    return [
        site
        for name, statements in _functions(module, "")
        for site in _of_function(str(path.relative_to(tree)), name, statements)
    ]


def _functions(node: ast.AST, inside: str) -> Iterator[tuple[str, list[ast.stmt]]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{inside}.{child.name}".lstrip(".")
            if not isinstance(child, ast.ClassDef) and child.name not in _FOR_PEOPLE:
                yield name, list(_statements(child.body))
            yield from _functions(child, name)
        elif isinstance(child, ast.stmt):
            yield from _functions(child, inside)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            continue
        yield statement
        for block in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, block, []))
        for handler in getattr(statement, "handlers", []):
            yield from _statements(handler.body)


def _of_function(path: str, name: str, statements: list[ast.stmt]) -> Iterator[Site]:
    marks = [crc32(shape(statement).encode()) for statement in statements]
    texts: Counter[str] = Counter()
    for i, statement in enumerate(statements):
        text = ast.unparse(header(statement))
        near = frozenset(marks[max(0, i - _NEAR) : i] + marks[i + 1 : i + 1 + _NEAR])
        yield Site(path, name, statement, text, texts[text], near)
        texts[text] += 1


def choose(tree: Path, seed: int, count: int) -> list[dict[str, Any]]:
    """Draw mutants, spread evenly over the statements of the numerics, at most one in each."""
    source = tree / "src" / "faircal"
    paths = sorted({path for pattern in _NUMERICS.split() for path in source.glob(pattern)})
    every = [
        site
        for path in paths
        if path.name not in _LEFT_OUT
        for site in sites(tree, path)
        if faults(site.statement)
    ]
    # Not for secrets.  The same draw on every machine.
    rng = random.Random(seed)  # noqa: S311
    drawn = [every[int((i + rng.random()) * len(every) / count)] for i in range(count)]
    return [_described(i, site, rng) for i, site in enumerate(drawn)]


def _described(number: int, site: Site, rng: random.Random) -> dict[str, Any]:
    wrong = faults(site.statement)
    edit = rng.randrange(len(wrong))
    return _record(number, site, wrong[edit], edit)


def _record(number: int, site: Site, wrong: ast.stmt, edit: int) -> dict[str, Any]:
    return {
        "id": number,
        "path": site.path,
        "function": site.function,
        "before": site.text,
        "after": ast.unparse(wrong),
        "index": site.index,
        "edit": edit,
        "shape": site.shape,
        "near": sorted(site.near),
    }


def relocate(root: Path, mutants: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the mutants that a tree still has: where they are, and how they read now."""
    tree = Tree(root)
    places = ((mutant, tree.find(mutant)) for mutant in mutants)
    return [
        _record(mutant["id"], place.site, place.wrong, mutant["edit"])
        for mutant, place in places
        if place.site is not None and place.wrong is not None
    ]


@dataclass(frozen=True)
class Place:
    """Where a mutant is in a tree: how sure that is, and the faulty statement."""

    how: str
    site: Site | None = None
    wrong: ast.stmt | None = None


class Tree:
    """A tree in which mutants are looked for."""

    def __init__(self, root: Path):
        self.root = root
        self.sites = [
            site for path in sorted(root.glob("src/faircal/**/*.py")) for site in sites(root, path)
        ]
        self._texts, self._shapes = defaultdict(list), defaultdict(list)
        for site in self.sites:
            self._texts[site.text].append(site)
            self._shapes[site.shape].append(site)

    def find(self, mutant: dict[str, Any]) -> Place:
        """Return where a mutant is: the same words first, else the same shape under other names."""
        for how, candidates in (
            ("same", self._texts[mutant["before"]]),
            ("renamed", self._shapes[mutant["shape"]]),
        ):
            best = self._best(mutant, candidates, least=1 if how == "same" else 2)
            if best is None:
                continue
            wrong = faults(best.statement)
            if mutant["edit"] >= len(wrong):
                continue
            fault = wrong[mutant["edit"]]
            if how == "same" and ast.unparse(fault) != mutant["after"]:
                continue
            here = (best.path, best.function) == (mutant["path"], mutant["function"])
            return Place(how if here or how == "renamed" else "moved", best, fault)
        return Place("missing")

    def _best(self, mutant: dict[str, Any], candidates: list[Site], least: int) -> Site | None:
        """Return the one that has most in common with the mutant; None where two have as much."""
        if not candidates:
            return None
        ranked = sorted(candidates, key=lambda site: self._alike(mutant, site), reverse=True)
        top = self._alike(mutant, ranked[0])
        tied = [site for site in ranked if self._alike(mutant, site) == top]
        if top[0] < least and (len(candidates) > 1 or least > 1):
            return None
        if len({(site.path, site.function) for site in tied}) > 1:
            return None
        return tied[min(mutant["index"], len(tied) - 1)]

    @staticmethod
    def _alike(mutant: dict[str, Any], site: Site) -> tuple[int, int]:
        function = mutant["function"]
        same = 3 * (site.name == function.rsplit(".", 1)[-1])
        same += Path(site.path).name == Path(mutant["path"]).name
        return same + len(site.near & set(mutant["near"])), site.function == function
