"""Find mutants in a tree, choose the tests that execute them, run those on each.

One Pytest collects all tests, once. Each mutant is a fork of it, in which the code of one function
is exchanged: nothing is imported anew, and no file is changed. What a test module computes when it
is imported is therefore without fault.
"""

from __future__ import annotations

import ast
import gc
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from mutation.sites import Place, Site, Tree
from mutation.watching import Lines, Watching

#: Tests of what numbers pass through later, or that start processes: never judges.
_NO_JUDGES = """
browser cli docs serving production scale spark report model embedding importing importers exporting
studies benchmarks benchmark training mutation golden deploy minimal_install real real_data
real_classes real_smooth about describing scoring onnx
"""
_PROCESSES = {"run_command", "browser"}
#: Tests of one mutant, at most, and the CPU seconds that they take together where nothing is wrong.
_TESTS, _SECONDS = 60, 10.0
#: CPU seconds for a fault that makes code slow.
_GRACE = 10.0
#: What a fork ends with where the fault is ours, not the mutant's.
_BROKEN = 3
#: The functions that exist, by file, name and first line.
Functions = dict[tuple[str, str, int], list[FunctionType]]


def is_judge(path: Path) -> bool:
    """Tell whether the tests of a file, or its doctests, may judge mutants; before and after."""
    words = {*path.parts, path.stem.removeprefix("test_")}
    return "monitoring" in words or not words & set(_NO_JUDGES.split())


def run(mutants: list[dict[str, Any]], root: Path, kept: Path | None) -> dict[str, Any]:
    """Return what becomes of each mutant in a tree.

    The file `kept` holds what tests execute, or gets it.
    """
    root = root.resolve()
    tree = Tree(root)
    places = [tree.find(mutant) for mutant in mutants]
    _say("found:", dict(Counter(place.how for place in places)))
    caches = Path(tempfile.mkdtemp(prefix="faircal-mutation-"))
    here = Path.cwd()
    try:
        _work_in(root, caches)
        runner = _Runner(tree, mutants, places, kept)
        judges = [
            str(path)
            for pattern in ("tests/**/test_*.py", "src/faircal/**/*.py")
            for path in sorted(root.glob(pattern))
            if is_judge(path.relative_to(root)) and ("test" in pattern or ">>>" in path.read_text())
        ]
        options = ["-q", "-s", "--tb=short", "-p", "no:cacheprovider", f"--rootdir={root}"]
        options += ["-p", "_hypothesis_pytestplugin", f"--basetemp={caches / 'tests'}"]
        status = pytest.main([*options, *judges], plugins=[runner])
    finally:
        os.chdir(here)
        shutil.rmtree(caches, ignore_errors=True)
    if len(runner.fates) < len(mutants):
        raise RuntimeError(f"pytest stopped before the end ({status})")
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in used)
    whole = {"tree": str(root), "cpu_seconds": round(cpu), "fail_without": runner.unsound}
    return whole | {"mutants": runner.fates}


def _work_in(root: Path, caches: Path) -> None:
    """Work in a tree without writing there: caches of Python, Numba, Hypothesis are elsewhere."""
    if "faircal" in sys.modules:
        raise RuntimeError("faircal is imported already, maybe that of another tree")
    path = [str(root / "src"), str(root)]
    os.environ |= {
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONPYCACHEPREFIX": f"{caches}/python",
        "NUMBA_CACHE_DIR": f"{caches}/numba",
        "HYPOTHESIS_STORAGE_DIRECTORY": f"{caches}/hypothesis",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    }
    sys.path[:0] = path
    sys.pycache_prefix, sys.dont_write_bytecode = f"{caches}/python", False
    os.chdir(root)


class _Runner:
    """In place of running the tests that were collected: some of them for every mutant."""

    def __init__(
        self, tree: Tree, mutants: list[dict[str, Any]], places: list[Place], kept: Path | None
    ):
        self._tree, self._jobs, self._kept = tree, list(zip(mutants, places, strict=True)), kept
        self._failed = ""
        self.fates: list[dict[str, Any]] = []
        self.unsound: list[str] = []

    def pytest_collection(self) -> None:
        """Let Hypothesis draw the same examples in every run, and shrink none."""
        from hypothesis import HealthCheck, Phase, settings

        settings.register_profile(
            "mutation",
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        settings.load_profile("mutation")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note the first failure."""
        if report.failed and not self._failed:
            self._failed = report.nodeid

    def pytest_runtestloop(self, session: Any) -> bool:
        """Watch all tests, then judge each mutant."""
        items = {
            item.nodeid: item
            for item in session.items
            if not _PROCESSES & set(getattr(item, "fixturenames", ()))
        }
        for site in {place.site for _, place in self._jobs if place.site}:
            importlib.import_module(_module_name(site.path))  # some are when they are used
        functions = _functions()
        gc.freeze()  # else a collection in a fork copies all
        if self._kept and self._kept.exists():
            tests = json.loads(self._kept.read_text())
        else:
            tests = in_fork(lambda: self._watch(list(items.values())), 7200)
            if self._kept:
                self._kept.write_text(json.dumps(tests, indent=0))
        _say("tests:", len(tests), "CPU seconds:", sum(test["seconds"] for test in tests.values()))
        for mutant, place in self._jobs:
            nodes = _chosen(mutant["id"], tests)
            self.fates.append(self._fate(mutant, place, [items[node] for node in nodes], functions))
            fate = self.fates[-1]
            fate["expected"] = round(sum(tests[node]["seconds"] for node in nodes), 2)
            _say(*(fate.get(key, "") for key in ("id", "fate", "seconds", "by")))
        killers = sorted({fate["by"] for fate in self.fates if fate.get("by")})
        self.unsound = in_fork(lambda: self._failing([items[node] for node in killers]), 1200)
        _say("fail without a fault:", self.unsound)
        return True

    def _failing(self, items: list[Any]) -> list[str]:
        """Return which tests fail although nothing is wrong."""
        failing = []
        for item, after in zip(items, [*items[1:], None], strict=True):
            self._failed = ""
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            failing += [self._failed] if self._failed else []
        return failing

    def _watch(self, items: list[Any]) -> dict[str, Any]:
        targets: dict[str, Lines] = defaultdict(lambda: defaultdict(list))
        for mutant, place in self._jobs:
            for site in _watched_sites(self._tree, place.site) if place.site else ():
                for line in site.lines:
                    targets[str(self._tree.root / site.path)][line].append(mutant["id"])
        watching = Watching(self._tree.root / "src", targets)
        items[0].config.pluginmanager.register(watching)
        for item, after in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        return watching.tests

    def _fate(
        self, mutant: dict[str, Any], place: Place, items: list[Any], functions: Functions
    ) -> dict[str, Any]:
        """Return what becomes of a mutant: killed, timeout, survived, or missing in the tree."""
        site, wrong = place.site, place.wrong
        fate = {"id": mutant["id"], "found": place.how, "fate": "missing", "old": mutant["path"]}
        if site is None or wrong is None:
            return fate | {"before": mutant["before"], "after": mutant["after"]}
        path = self._tree.root / site.path
        code = compile(faulty_module(path, site, wrong), str(path), "exec", dont_inherit=True)
        started = time.monotonic()

        def judge() -> str:
            (_exchange_compiled if _is_compiled(path) else _exchange)(code, functions)
            for item, after in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if self._failed:
                    break
            return self._failed

        by = in_fork(judge, (60 if _is_compiled(path) else _GRACE) + 2 * _SECONDS) if items else ""
        fate["fate"] = "timeout" if by is None else "killed" if by else "survived"
        fate |= {"by": by, "tests": len(items), "seconds": round(time.monotonic() - started, 1)}
        fate |= {"path": site.path, "function": site.function, "line": site.statement.lineno}
        return fate | {"before": site.text, "after": ast.unparse(wrong)}


def _say(*words: Any) -> None:
    print(*words, file=sys.stderr, flush=True)


def in_fork(work: Callable[[], Any], seconds: float) -> Any:
    """Return what `work` gives in a process of its own; None where it dies or takes too long."""
    with tempfile.NamedTemporaryFile() as answer, tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                for stream in (1, 2):
                    os.dup2(output.fileno(), stream)
                resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
                Path(answer.name).write_text(json.dumps(work()))
            except BaseException:
                traceback.print_exc()
                os._exit(_BROKEN)
            finally:
                os._exit(0)
        # The machine is shared: a second of CPU may take many.
        end = time.monotonic() + 15 * seconds
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
            time.sleep(0.02)
        if os.waitstatus_to_exitcode(ended[1]) == _BROKEN:
            output.seek(0)
            raise RuntimeError(output.read().decode(errors="replace"))
        text = Path(answer.name).read_text()
        return json.loads(text) if text else None


def _watched_sites(tree: Tree, site: Site) -> list[Site]:
    """Return the statements to watch for: in place of compiled code, which shows none, its uses."""
    if not _is_compiled(tree.root / site.path):
        return [site]
    names = {site.name}
    own = [other for other in tree.sites if other.path == site.path]
    while more := {other.name for other in own if _names(other) & names} - names:
        names |= more
    return [other for other in tree.sites if other.path != site.path and _names(other) & names]


def _is_compiled(path: Path) -> bool:
    return "\nimport numba" in path.read_text("utf-8")


def _names(site: Site) -> set[str]:
    every = ast.walk(ast.parse(site.text))
    return {getattr(node, "id", None) or getattr(node, "attr", "") for node in every}


def _chosen(number: int, tests: dict[str, dict[str, Any]]) -> list[str]:
    """Return the tests for a mutant: the quick that execute little else, of many functions."""
    nodes = [node for node, test in tests.items() if number in test["mutants"]]
    ranks: Counter[str] = Counter()
    for of in ("seconds", "functions"):
        for rank, node in enumerate(sorted(nodes, key=lambda node: (tests[node][of], node))):
            ranks[node] += rank
    again: Counter[str] = Counter()  # of the same function, with other parameters
    order = []
    for node in sorted(nodes, key=lambda node: (ranks[node], node)):
        function = node.split("[")[0]
        order.append((again[function], ranks[node], node))
        again[function] += 1
    chosen, seconds = [], 0.0
    for _, _, node in sorted(order):
        seconds += tests[node]["seconds"]
        if chosen and (seconds > _SECONDS or len(chosen) == _TESTS):
            break
        chosen.append(node)
    return chosen


def faulty_module(path: Path, site: Site, wrong: ast.stmt) -> ast.Module:
    """Return a file's code with a faulty statement in place of that of a site."""
    module, old = ast.parse(path.read_text("utf-8")), site.statement
    for node in ast.walk(wrong):
        if isinstance(node, ast.expr | ast.stmt):
            ast.copy_location(node, old)
    here = next(
        node
        for node in ast.walk(module)
        if type(node) is type(old)
        and (node.lineno, node.col_offset) == (old.lineno, old.col_offset)  # type: ignore[attr-defined]
    )
    for field in here._fields:
        if field not in ("body", "orelse"):
            setattr(here, field, getattr(wrong, field))
    return ast.fix_missing_locations(module)


def _functions() -> Functions:
    every: Functions = defaultdict(list)
    for thing in gc.get_objects():
        if type(thing) is FunctionType:  # isinstance would wake lazy modules
            every[_key(thing.__code__)].append(thing)
    return every


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _exchange(module: CodeType, functions: Functions) -> None:
    """Give all functions that exist of a module the code of the faulty one."""
    done = 0
    for code in _codes(module):
        for function in functions.get(_key(code), ()):
            if function.__code__.co_freevars == code.co_freevars:
                function.__code__ = code
                done += 1
    if not done:
        raise RuntimeError(f"no function of {module.co_filename} exists")


def _exchange_compiled(module: CodeType, _: Functions) -> None:
    """Compile a module with a fault, and put its functions where those without are."""
    import numba

    # Numba finds kept code by a function's operations, without its constants: nothing is kept.
    numba.config.CACHE_DIR = tempfile.mkdtemp(dir=os.environ["PYTHONPYCACHEPREFIX"])
    old = next(m for m in _modules() if getattr(m, "__file__", "") == module.co_filename)
    new = ModuleType(old.__name__)
    new.__file__ = old.__file__
    exec(module, vars(new))  # noqa: S102
    others = {id(vars(old).get(name)): thing for name, thing in vars(new).items()}
    for user in _modules():
        for name, thing in list(vars(user).items()):
            if callable(thing) and id(thing) in others:
                setattr(user, name, others[id(thing)])


def _module_name(path: str) -> str:
    name = ".".join(Path(path).relative_to("src").with_suffix("").parts)
    return name.removesuffix(".__init__")


def _modules() -> list[ModuleType]:
    return [
        module for name, module in sys.modules.items() if name.split(".")[0] in ("faircal", "tests")
    ]
