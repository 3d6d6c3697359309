"""What comes from a file of the user's: its numbers are not mixed, nor made more of than is."""

from __future__ import annotations

import csv
import json

import pytest

import faircal
from faircal.data.dataset_folder import save_dataset
from faircal.methods.modelfile import _why_not

MINE = """
from faircal.calibrators import CALIBRATORS, PlattCalibrator
from faircal.methods import Method, Needs, Output, register
from faircal.metrics import METRICS, Metric, auroc

@register
class Mine(Method):
    name, title, needs = "mine", "Mine", Needs()
    def _fit(self, inputs): self.share_ = float(inputs.genuine.mean())
    def _apply(self, inputs): return Output(SIGN * inputs.score, 0 * inputs.score + self.share_)
    def _get_state(self): return {"share": self.share_}
    def _set_state(self, state): self.share_ = state["share"]

large = Metric("large", lambda ranking: 1e6, "probability", "lower", "Large", True)
METRICS.register("large", large)
"""


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugins")
    data = faircal.simulate("small", seed=0, people=120, images=400, pairs=1000)
    save_dataset(data, folder / "faces")
    return folder


def rows_of(folder, name):
    with (folder / "results" / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_resumed_run_takes_no_cell_of_other_code(faces, run_command):
    plugin, aurocs = faces / "mine.py", {}
    words = ("faces", "--methods", "mine", "--attribute", "ethnicity", "--out", "results")

    def run(sign, *more, code=0):
        plugin.write_text(MINE.replace("SIGN", sign), encoding="utf-8")
        front = ("--plugin", "mine.py", "benchmark", *words)
        return run_command(*front, *more, cwd=faces, figures=False, code=code)

    for sign in ("+1", "-1"):
        run(sign)
        aurocs[sign] = next(
            float(row["value"])
            for row in rows_of(faces, "results.csv")
            if (row["fold"], row["group"], row["metric"]) == ("mean", "global", "auroc")
        )
    assert aurocs["-1"] == pytest.approx(1 - aurocs["+1"])
    assert "plugins differ from those of the run" in run("+1", "--resume", code=2).stderr
    run("-1", "--resume")
    told = json.loads((faces / "results" / "run.json").read_text("utf-8"))
    assert list(told["plugins_sha256"]) == ["mine.py"]
    ours = {row["metric"] for row in rows_of(faces, "results.csv") if row["low"]}
    assert "auroc" in ours
    assert not any(metric.startswith("large") for metric in ours)


def test_no_verdict_on_a_metric_of_which_it_is_not_known_how_it_varies(faces, run_command):
    plugin = MINE.replace("SIGN", "+1").replace("ranking: 1e6", "ranking: auroc(ranking)")
    (faces / "other.py").write_text(plugin, encoding="utf-8")
    words = ("--methods", "baseline,faircal", "--clusters", "5", "--attribute", "ethnicity")
    front = ("--plugin", "other.py")
    run_command(*front, "benchmark", "faces", *words, "--out", "two", cwd=faces, figures=False)
    done = run_command(
        *(*front, "compare", "two", "two", "--method", "baseline,faircal"),
        *("--metrics", "auroc,large,large_mean,large_aad", "--json"),
        cwd=faces,
    )
    verdicts = {}
    for row in json.loads(done.stdout)["comparisons"]:
        verdicts.setdefault(row["metric"], set()).add(row["verdict"])
    assert verdicts.pop("auroc") <= {"worse", "better", "not told apart"}
    assert verdicts == {name: {"not known"} for name in ("large", "large_mean", "large_aad")}


def test_our_own_code_is_in_no_plugin(faces, run_command):
    run_command(
        "benchmark", "faces", "--methods", "baseline", "--out", "own", cwd=faces, figures=False
    )
    told = json.loads((faces / "own" / "run.json").read_text("utf-8"))
    assert told["plugins_sha256"] == {}


@pytest.mark.parametrize(
    ("header", "remedy"),
    [
        ({"method": "mine"}, "with its method first (--plugin)"),
        (
            {"method": "faircal", "parameters": {"calibrator": "normal"}},
            "with its calibrator first (--plugin)",
        ),
        ({"method": "faircal", "parameters": {"calibrator": "beta"}}, "fit it again"),
        ({"method": "faircal", "parameters": 3}, "fit it again"),
    ],
)
def test_a_model_of_a_plugin_says_what_it_needs(header, remedy):
    assert remedy in _why_not(header, ValueError("no"))
