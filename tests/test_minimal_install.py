"""The base package works with its declared dependencies and nothing else."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import textwrap
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest

import faircal
from faircal.methods import METHODS, make_method

SOURCE = Path(faircal.__file__).parent
#: Where a distribution and what is imported from it have different names.
IMPORTED_AS = {"scikit-learn": "sklearn"}
BLOCKED = (
    "pandas",
    "polars",
    "torch",
    "matplotlib",
    "betacal",
    "fairlearn",
    "pytest",
    "hypothesis",
    "PIL",
    "onnxruntime",
    "onnx",
    "dlib",
    "face_recognition_models",
    "facenet_pytorch",
    "skimage",
    "numba",
    "llvmlite",
    "faiss",
    "fastapi",
    "starlette",
    "pydantic",
    "uvicorn",
    "prometheus_client",
    "cryptography",
    "multipart",
    "psycopg",
    "psycopg_pool",
    "pgvector",
    "pyspark",
    "py4j",
)

TRAINED = [name for name, method in METHODS.items() if method.needs.extra == "torch"]
REMEDY = "needs torch, which is not installed: pip install 'faircal[torch]'"
NO_SPARK = "Spark needs pyspark, which is not installed: pip install 'faircal[spark]'"

#: What is in the package and imports PyTorch when it is imported.
WITH_TORCH = {
    f"faircal.methods.training.{name}"
    for name in ("comparison", "debiasing", "networks", "session")
} | {"faircal.embedding.facenet", "faircal.embedding.mtcnn"}
WITH_TORCH |= {f"faircal.compute.{name}" for name in ("_torch_kernels", "_torch_kmeans")}

HOOK = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked by this test", name=name)

sys.meta_path.insert(0, Blocker())
"""


def run(script, folder):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", HOOK + textwrap.dedent(script)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def command(words, folder, before=""):
    """Run a command; `before` is Python that is run first."""
    script = f"{textwrap.dedent(before)}\nfrom faircal.cli.main import main\nmain({words!r})"
    return run(script, folder)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a small dataset in it."""
    folder = tmp_path_factory.mktemp("home")
    sizes = ["--people", "80", "--images", "240", "--pairs", "700", "--dimension", "16"]
    found = command(["simulate", "small", "faces", *sizes], folder)
    assert found.returncode == 0, found.stderr
    return folder


def contents(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_the_hook_blocks(tmp_path):
    for name in BLOCKED:
        found = run(f"import {name}", tmp_path)
        assert found.returncode == 1
        assert f"{name} is blocked by this test" in found.stderr


def test_main_job_without_extras(tmp_path):
    script = """
        import faircal
        from faircal.evaluation.benchmark import BenchmarkSettings, run_benchmark
        from faircal.cli.main import main
        from faircal.report import write_report

        data = faircal.simulate("small", seed=0, people=80, images=240, pairs=700, dimension=16)
        calibration, test = data.split(test_fold=5)
        model = faircal.FairCal(n_clusters=4).fit(calibration)
        model.save("m.faircal")
        p = faircal.load_model("m.faircal").predict_proba(test)
        found = faircal.audit(
            probability=p, genuine=test.genuine, groups=test.groups("ethnicity"), threshold=0.5
        )
        assert 0 <= found.value("fpr", group="Asian") <= 1
        rows = run_benchmark(data, "out", BenchmarkSettings(clusters=(4,)), jobs=1)
        plain = {"baseline", "faircal", "fsn", "gst", "oracle", "smooth"}
        assert {row.method for row in rows} == plain | {"dsn", "snorm", "asnorm", "falcon"}
        assert write_report("out").stat().st_size > 1000
        assert not set(sys.modules) & set(%r)
        print("done")
    """
    found = run(script % (BLOCKED,), tmp_path)
    assert found.stderr == ""
    assert found.stdout == "done\n"
    assert (tmp_path / "out" / "results.csv").exists()
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    cohort = record["left_out"].pop("cohort")
    assert "it needs a cohort" in cohort
    assert record["left_out"] == dict.fromkeys(TRAINED, f"it {REMEDY}")


class TestWithoutTorch:
    def test_the_four_are_there(self):
        assert TRAINED == ["agenda", "pass", "multipass", "ftc"]

    def test_methods_lists_all(self, tmp_path):
        found = command(["methods"], tmp_path)
        assert found.returncode == 0, found.stderr
        listed = [line.split()[0] for line in found.stdout.splitlines() if line.strip()]
        assert [name for name in listed if name in METHODS] == list(METHODS)
        assert found.stdout.count("torch") == len(TRAINED)

    def test_benchmark_says_what_it_leaves_out(self, home, tmp_path):
        out = tmp_path / "out"
        found = command(["benchmark", "faces", "--clusters", "4", "--out", str(out)], home)
        assert found.returncode == 0, found.stderr
        for name in TRAINED:
            assert len(re.findall(rf"\b{name}\b.*{re.escape(REMEDY)}\n", found.stderr)) == 1
        assert "FairCal" in found.stdout
        assert json.loads((out / "run.json").read_text())["left_out"].keys() == {*TRAINED, "cohort"}

    @pytest.mark.parametrize("name", ["agenda", "ftc"])
    def test_asking_for_one_to_fit(self, home, name):
        before = contents(home)
        found = command(["fit", "faces", "--method", name, "--out", "m.faircal"], home)
        assert found.returncode == 2
        assert found.stdout == ""
        assert found.stderr == f"faircal: method {name} {REMEDY}\n"
        assert contents(home) == before

    @pytest.mark.parametrize("names", ["ftc", "baseline,pass"])
    def test_asking_for_one_to_benchmark(self, home, names):
        before = contents(home)
        found = command(["benchmark", "faces", "--methods", names, "--out", "out"], home)
        assert found.returncode == 2
        assert found.stdout == ""
        assert found.stderr == f"faircal: method {names.split(',')[-1]} {REMEDY}\n"
        assert contents(home) == before

    def test_demo_of_all_says_what_it_leaves_out_and_does_the_rest(self, tmp_path):
        before = """
            from dataclasses import replace
            from faircal.workflows import benchmark
            from faircal.data.simulation import PRESETS
            sizes = dict(people=200, images=800, pairs=2400, dimension=16)
            PRESETS.register("tiny", replace(PRESETS["small"], **sizes))
            benchmark.DEMO_OF_ALL = "tiny"
        """
        found = command(["demo", "--all", "--out", "demo"], tmp_path, before)
        assert found.returncode == 0, found.stderr
        for name in TRAINED:
            assert f"{name} is left out: it {REMEDY}" in found.stderr
        record = json.loads((tmp_path / "demo" / "run.json").read_text())
        assert record["dataset"] == "tiny (simulated)"
        done = {fit["method"] for fit in record["fits"]}
        assert done == set(METHODS) - set(TRAINED)

    def test_in_python(self, home):
        script = """
            import faircal
            data = faircal.load("faces")
            for kind in (faircal.FTC, faircal.AGENDA, faircal.PASS, faircal.MultiPASS):
                model = kind(random_state=3)
                try:
                    model.fit(data)
                except faircal.MissingExtraError as error:
                    print(error)
        """
        found = run(script, home)
        assert found.stderr == ""
        names = ("ftc", "agenda", "pass", "multipass")
        assert found.stdout.splitlines() == [f"method {name} {REMEDY}" for name in names]

    @pytest.mark.parametrize("name", ["agenda", "ftc"])
    def test_a_model_made_elsewhere_is_read_but_not_applied(
        self, home, tmp_path, short_schedules, name
    ):
        quick = make_method(name, **short_schedules[name])
        quick.fit(faircal.load(home / "faces")).save(tmp_path / "m.faircal")
        before = contents(home)
        model = str(tmp_path / "m.faircal")
        script = f"""
            import faircal
            from faircal.cli.main import main
            model = faircal.load_model({model!r})
            print(type(model).__name__, len(model.weights_))
            try:
                model.predict_proba(faircal.load("faces"))
            except faircal.MissingExtraError as error:
                print(error)
            main(["score", {model!r}, "faces", "--out", "scored.csv"])
        """
        found = run(script, home)
        assert found.stdout.splitlines() == [
            f"{METHODS[name].__name__} {len(quick.weights_)}",
            f"method {name} {REMEDY}",
        ]
        assert found.stderr == f"faircal: method {name} {REMEDY}\n"
        assert found.returncode == 2
        assert contents(home) == before


class TestWithoutSpark:
    def test_in_python(self, home):
        script = """
            import faircal
            from faircal.production import spark
            for name in spark.__all__:
                getattr(spark, name)
            for use in (
                lambda: spark.open_pairs(None, "faces"),
                lambda: spark.pairs_of(None, "faces"),
            ):
                try:
                    use()
                except faircal.MissingExtraError as error:
                    print(error)
        """
        before = contents(home)
        found = run(script, home)
        assert found.stderr == ""
        assert found.stdout == f"{NO_SPARK}\n" * 2
        assert contents(home) == before

    @pytest.mark.parametrize(
        "words",
        [
            ["score", "m.faircal", "faces", "--out", "scored.parquet"],
            ["audit", "faces", "--out", "out"],
        ],
        ids=lambda words: words[0],
    )
    def test_commands(self, home, words):
        made = command(["fit", "faces", "--method", "baseline", "--out", "m.faircal"], home)
        assert made.returncode == 0, made.stderr
        before = contents(home)
        found = command([*words, "--engine", "spark"], home)
        assert found.returncode == 2
        assert found.stdout == ""
        assert found.stderr == f"faircal: {NO_SPARK}\n"
        assert contents(home) == before


def test_importing_is_quick_because_it_imports_next_to_nothing(tmp_path):
    script = """
        import faircal
        print(sorted({"numpy", "scipy", "sklearn", "pyarrow", "click"} & set(sys.modules)))
    """
    assert run(script, tmp_path).stdout == "[]\n"


def test_torch_and_spark_are_imported_by_who_uses_them_alone(tmp_path):
    """Not by importing any other part, where they are installed."""
    script = f"""
        import importlib, pkgutil, sys
        import faircal
        names = [found.name for found in pkgutil.walk_packages(faircal.__path__, "faircal.")]
        assert {WITH_TORCH!r} < set(names)
        for name in set(names) - {WITH_TORCH!r}:
            importlib.import_module(name)
        assert "faircal.methods.trained" in sys.modules
        faircal.AGENDA(), faircal.PASS(), faircal.MultiPASS(), faircal.FTC().check_parameters()
        assert "faircal.production.spark.session" in sys.modules
        print(len(names), sorted({{"torch", "pyspark"}} & set(sys.modules)))
    """
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert found.stderr == ""
    count, imported = found.stdout.split()
    assert int(count) > 60
    assert imported == "[]"


def imports_of(path):
    seen = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            seen |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            seen.add(node.module.partition(".")[0])
    return seen


def test_nothing_undeclared_is_imported():
    declared = {
        re.match(r"[\w.-]+", line).group().lower()
        for line in requires("faircal")
        if "extra ==" not in line
    }
    allowed = {IMPORTED_AS.get(name, name) for name in declared} | {"faircal"}
    allowed |= set(sys.stdlib_module_names)
    extras = {
        "methods/training": {"torch"},
        "compute": {"torch", "triton", "numba", "llvmlite"},
        "embedding": {"torch", "PIL", "onnxruntime", "dlib"},
        "report": {"matplotlib", "PIL"},
        "production/onnx": {"onnx", "onnxruntime"},
        "production/spark": {"pyspark"},
        "production/serving": {
            *("fastapi", "starlette", "pydantic", "uvicorn", "prometheus_client", "cryptography"),
            *("psycopg", "psycopg_pool", "pgvector", "multipart", "anyio", "PIL", "pydantic_core"),
        },
    }
    seen = set()
    for path in SOURCE.rglob("*.py"):
        found = imports_of(path)
        below = path.relative_to(SOURCE).as_posix()
        extra = set().union(*(extras[name] for name in extras if below.startswith(f"{name}/")))
        assert found <= allowed | extra, path
        seen |= found
    assert {"numpy", "sklearn", "pyarrow", "torch"} <= seen


def test_torch_is_an_extra():
    declared = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())["project"]
    assert [line[:5] for line in declared["optional-dependencies"]["torch"]] == ["torch"]
    assert not any(line.startswith("torch") for line in declared["dependencies"])
