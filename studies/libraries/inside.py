"""Checks claims inside a library's interpreter: ``python inside.py QUESTION.json ANSWER.json``.

Runs wherever the library does, so it uses the standard library alone. A name is imported where that
works; where what it depends on is not installed, the source is read instead.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import platform
import re
import sys
import warnings
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

#: Folders of a distribution that are not what its users call.
_LEFT_OUT = {"tests", "test", "examples", "docs", "doc"}


def main() -> None:
    """Answer a question file."""
    warnings.simplefilter("ignore")
    sys.path.pop(0)  # the files beside this one are none of the library's
    asked, answer = Path(sys.argv[1]), Path(sys.argv[2])
    question = json.loads(asked.read_text("utf-8"))
    told: dict[str, Any] = {"python": platform.python_version()}
    names = question["distributions"]
    told["versions"] = {name: metadata.version(name) for name in names}
    told["environment"] = sorted(environment(), key=str.lower)
    source = Source(names)
    probes = _module(question["probes"]) if question.get("probes") else None
    told["found"] = {
        claim["key"]: checked(claim, source, probes) for claim in question.get("claims", ())
    }
    if "call" in question:
        told["told"] = getattr(probes, question["call"])(question["with"])
    answer.write_text(json.dumps(told), encoding="utf-8")


def environment() -> set[str]:
    """Return name and version of all that is installed; not where it came from."""
    return {f"{each.metadata['Name']}=={each.version}" for each in metadata.distributions()}


class Source:
    """The Python files of some distributions, read but not run."""

    def __init__(self, distributions: list[str]) -> None:
        self.distributions = distributions
        self._trees: dict[str, ast.Module] = {}
        for name in distributions:
            for file in metadata.files(name) or ():
                if file.suffix == ".py" and not _LEFT_OUT & set(file.parts):
                    self._read(file)
            self._read_editable(name)

    def _read(self, file: metadata.PackagePath) -> None:
        dotted = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
        self._add(dotted, Path(str(file.locate())))

    def _read_editable(self, name: str) -> None:
        """A package that is developed here lists no files of its own."""
        found = importlib.util.find_spec(name) if name == "faircal" else None
        root = Path(found.origin).parent if found and found.origin else None
        for path in sorted(root.rglob("*.py")) if root else ():
            parts = path.relative_to(root.parent).with_suffix("").parts
            self._add(".".join(parts).removesuffix(".__init__"), path)

    def _add(self, dotted: str, path: Path) -> None:
        try:
            self._trees[dotted] = ast.parse(path.read_text("utf-8", "replace"))
        except (OSError, SyntaxError, ValueError):
            return

    @cached_property
    def names(self) -> set[str]:
        """All names of classes, functions and parameters."""
        found = set()
        for tree in self._trees.values():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    found.add(node.name)
                elif isinstance(node, ast.arg):
                    found.add(node.arg)
        return found

    def defines(self, dotted: str, parameter: str | None) -> bool:
        """Whether a file defines the name (with the parameter, where one is given)."""
        module, _, name = dotted.rpartition(".")
        if dotted in self._trees and parameter is None:
            return True
        if module not in self._trees:
            outer, _, inner = module.rpartition(".")  # a method
            node = _child(self._trees[outer], inner) if outer in self._trees else None
        else:
            node = self._trees[module]
        node = None if node is None else _child(node, name)
        if node is None or parameter is None:
            return node is not None
        function = _child(node, "__init__") if isinstance(node, ast.ClassDef) else node
        return function is not None and any(
            isinstance(part, ast.arg) and part.arg == parameter for part in ast.walk(function)
        )


def _child(tree: ast.AST, name: str) -> ast.AST | None:
    for node in ast.iter_child_nodes(tree):
        if getattr(node, "name", None) == name:
            return node
        if isinstance(node, ast.Assign) and any(
            isinstance(to, ast.Name) and to.id == name for to in node.targets
        ):
            return node
    return None


def checked(claim: dict[str, Any], source: Source, probes: Any) -> dict[str, Any]:
    """Return whether all that is said of a claim is so, and what was found."""
    found: list[str] = []
    right = True
    for name in claim.get("has", ()):
        how = _there(name, source)
        right &= how is not None
        found.append(f"{name}: {how or 'not found'}")
    if "lacks" in claim:
        pattern = re.compile(claim["lacks"], re.IGNORECASE)
        hits = sorted(name for name in source.names if pattern.search(name))
        right &= not hits
        found.append(f"names like {claim['lacks']}: {', '.join(hits[:5]) or 'none'}")
    if "states" in claim:
        said = " ".join(" ".join(map(_described, source.distributions)).split())
        hit = re.search(claim["states"], said, re.IGNORECASE)
        right &= hit is not None
        found.append(f"metadata: {hit.group(0) if hit else 'not said'}")
    if "run" in claim:
        try:
            told = getattr(probes, claim["run"])()
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
        right &= told == claim["gives"]
        found.append(f"{claim['run']}: {json.dumps(told)}")
    return {"passed": bool(right), "found": "; ".join(found)}


def _there(name: str, source: Source) -> str | None:
    """Return how a name was found: ``imported``, ``read``, or not at all."""
    match = re.fullmatch(r"([\w.]+)(?:\((\w+)\))?", name)
    if match is None:
        raise ValueError(f"{name!r}: expected a dotted name, or one with (parameter)")
    dotted, parameter = match.groups()
    try:
        thing = _imported(dotted)
        if parameter is not None and parameter not in inspect.signature(thing).parameters:
            return None
    except (ImportError, AttributeError, ValueError, TypeError):
        return "read" if source.defines(dotted, parameter) else None
    return "imported"


def _imported(dotted: str) -> Any:
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        module = ".".join(parts[:cut])
        try:
            thing = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name and not f"{module}.".startswith(f"{error.name}."):
                raise  # it is there, but something that it needs is not
            continue
        for part in parts[cut:]:
            thing = getattr(thing, part)
        return thing
    raise ImportError(dotted)


def _described(distribution: str) -> str:
    return metadata.distribution(distribution).read_text("METADATA") or ""


def _module(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("probes", path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
