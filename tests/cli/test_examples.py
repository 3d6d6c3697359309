"""Every example of every manual works: each is run in a folder with what it names.

`HOW` says of those that are not run as they stand what is done to them, and why.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

from pages.commands import manuals
from tests.cli.example_world import WRITTEN, World, path_of, things
from tests.production.serving.running import Spawner

#: What examples are of, and what pictures and networks are made with.
NEEDED = ("dlib", "fastapi", "matplotlib", "onnx", "onnxruntime", "PIL", "skimage", "torch")
MISSING = [name for name in NEEDED if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


@dataclass(frozen=True)
class How:
    """What is done to an example.

    Attributes
    ----------
    more : str
        Words that are added: of an option that is given twice, the last counts.
    given : dict
        Things of the world that stand for those that it names.
    also : tuple of str
        Things that it needs and does not name as what it reads.
    without : tuple of str
        Things that it names and makes.
    weights : bool
        Whether drawn weights of a network lie where those of its owners would.
    figures : bool
        Whether it draws.
    """

    more: str = ""
    given: dict[str, str] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    weights: bool = False
    figures: bool = False


#: What takes long with the number of people, images and pairs.
FEW = {"faces/": "few/"}
NO_KEYS = How(without=("keys.json",))
PERCENTS = How(given={"scores.csv": "percents.csv"})
RFW = {"rfw/": "rfw-embedded/"}
UNPAIRED = How(given={"faces/": "embedded/"})
#: Two methods, the second with few clusters, in one process.
QUICK = "--methods baseline,faircal --clusters 5 --jobs 1"
PAPER = "--methods baseline --jobs 1 --pictures none"
CHOOSE = How(more="--clusters 2,5 --calibrators beta", given=FEW)

HOW = {
    # what is named is made by it
    "faircal simulate small faces/": How(without=("faces/",)),
    "faircal keys add gate-4 --keys keys.json --scope verify,enrol": NO_KEYS,
    "faircal keys add gate-4 --keys keys.json": NO_KEYS,
    "DESK=$(faircal keys add desk --keys keys.json --scope verify,enrol)": NO_KEYS,
    # what is named is, here, of another kind than elsewhere
    "faircal import folder ~/photos --level 1 --out faces/": How(given={"~/photos": "~/albums"}),
    "faircal pairs faces/": UNPAIRED,
    "faircal pairs faces/ --imposters matched": UNPAIRED,
    "faircal pairs faces/ --imposters group --attribute ethnicity --out faces-within/": UNPAIRED,
    "faircal check scores.csv --score-range 0,100": PERCENTS,
    "faircal audit scores.csv --score-range 0,100 --rates 0.0001,0.001 --out audit/": PERCENTS,
    "faircal classify fit rows.csv --label diagnosis --identity patient --features features.npy "
    "--out classes.faircal": How(given={"rows.csv": "other-names.csv"}),
    "faircal regions faces/ --model faces.faircal --threshold 0.9 --pictures photos/ "
    "--out regions/": How(figures=True),
    # a network: one that is drawn, on few pictures, on a CPU
    "faircal embed ~/RFW --network facenet-webface --out rfw/": How(
        more="--detector none",
        given={"~/RFW": "~/africans", "rfw/": "africans/"},
        also=("rfw/",),
        weights=True,
    ),
    "faircal embed ~/photos --network facenet-webface --device cuda --batch 256 --out faces/": How(
        more="--device cpu", weights=True
    ),
    # seconds or minutes, or hours: smaller
    "faircal simulate bfw-like bfw/": How(
        more="--people 80 --images 400 --pairs 2000", without=("bfw/",)
    ),
    "faircal choose faces/ --leave-out 5": CHOOSE,
    "faircal choose faces/ --clusters 5,10,20,40 --calibrators beta": CHOOSE,
    "faircal choose faces/ --within 1 --leave-out 5": CHOOSE,
    "faircal fit faces/ --method ftc --attribute ethnicity --set epochs=20 --out ftc.faircal": How(
        more="--set epochs=4", given=FEW
    ),
    "faircal fit faces/ --method ftc --attribute ethnicity --set epochs=20 --out ftc.faircal "
    "--resume": How(more="--set epochs=4", given=FEW),
    "faircal --plugin mine.py benchmark faces/ --methods baseline,faircal,mine --out results/": How(
        more="--clusters 5 --jobs 1", given=FEW
    ),
    "faircal benchmark faces/ --out results/": How(more=QUICK, given=FEW),
    "faircal benchmark faces/ --methods baseline,faircal,oracle --attribute ethnicity+gender "
    "--out results/": How(more="--clusters 5 --jobs 1", given=FEW),
    "faircal benchmark faces/ --methods faircal --clusters 10,25,50,100 --out sweep/": How(
        more="--clusters 2,5 --jobs 1", given=FEW
    ),
    "faircal benchmark faces/ --cohort cohort/ --cohort-attribute ethnicity --out results/": How(
        more="--methods baseline,cohort --jobs 1"
    ),
    "faircal benchmark faces/ --threshold-on calibration --out results/": How(
        more=QUICK, given=FEW
    ),
    "faircal benchmark faces/ --calibration-imposters random --out results/": How(
        more=QUICK, given=FEW
    ),
    "faircal benchmark faces/ --draw-cohort 36 --out results/": How(
        more=f"{QUICK} --draw-cohort 2", given=FEW
    ),
    "faircal benchmark --calibrate-on here/ --test-on there/ --labels 100,1000 --out moved/": How(
        more=QUICK
    ),
    "faircal benchmark faces/ --out results/ --resume": How(more=QUICK, given=FEW),
    "faircal classify benchmark rows.csv --attribute sex --out results/": How(
        more="--clusters 5 --calibrator temperature"
    ),
    "faircal classify benchmark rows.csv --attribute sex --methods global,faircal --clusters 50 "
    "--calibrator temperature --out results/": How(more="--clusters 5"),
    "faircal reproduce rfw rfw/ --no-training --out paper-rfw/": How(more=PAPER, given=RFW),
    "faircal reproduce bfw bfw/ --out paper-bfw/": How(more=PAPER, given={"bfw/": "bfw-embedded/"}),
    "faircal reproduce rfw rfw/ --as webface=facenet-webface --as zoo=arcface "
    "--out paper-rfw/": How(more=PAPER, given={"rfw/": "rfw-other/"}),
    "faircal reproduce rfw simulated/ --no-training --clusters 20,100 --n-init 1 --out look/": How(
        more=f"{QUICK} --calibrators beta", figures=True
    ),
    "faircal reproduce rfw rfw/ --no-training --out paper-rfw/ --resume": How(
        more=PAPER, given=RFW
    ),
}

MINUTES = "it takes minutes: tests/cli/test_trained.py runs it on few people"
CLUSTER = "there is no Spark cluster: tests/scale has a small one, and runs such commands on it"
POSTGRES = "there is no PostgreSQL server called db: tests/serving has one of its own"

#: Examples that are not run, and why.
NOT_RUN = {
    "faircal demo": MINUTES,
    "faircal demo --out /tmp/demo --seed 3": MINUTES,
    "faircal demo --all --out demo-all/": MINUTES,
    "faircal fit faces/ --out faces.faircal --engine spark --master spark://host:7077": CLUSTER,
    "faircal score faces.faircal new-pairs/ --out scored --engine spark "
    "--master spark://host:7077": CLUSTER,
    "faircal audit scored/ --attribute ethnicity --out audit/ --engine spark "
    "--master spark://host:7077": CLUSTER,
    "faircal serve faces.faircal --keys keys.json --database postgresql://faircal@db/faces "
    "--port 8001 --no-page": POSTGRES,
}


def every_example():
    """Return all examples of all manuals, each once and in one line."""
    texts = [
        text for manual in manuals() for section in manual.sections for _, text in section.examples
    ]
    assert len(texts) > 100
    return list(dict.fromkeys(" ".join(text.replace("\\\n", " ").split()) for text in texts))


EXAMPLES = every_example()
SERVICES = [text for text in EXAMPLES if text.startswith("faircal serve ")]
RESUMED = [text for text in EXAMPLES if text.endswith(" --resume")]
IN_A_SHELL = [text for text in EXAMPLES if re.search(r"[$<>]", text)]
PLAIN = [text for text in EXAMPLES if text not in (*SERVICES, *RESUMED, *IN_A_SHELL)]

#: What a shell finds afterwards.
FOUND = {
    "DESK=$(faircal keys add desk --keys keys.json --scope verify,enrol)": 'test -n "$DESK"',
}
#: Where a command tells of its progress, and how far it gets until somebody stops it.
STOPPED = {
    "fit": ("fit", 3),
    "score": ("score", 600),
    "benchmark": ("benchmark", 3),
    "reproduce": ("reproduce", 3),
}


def of(texts):
    """Return a mark that runs a test with each of these examples, unless it is left out."""
    texts = [text for text in texts if text not in NOT_RUN]
    return pytest.mark.parametrize("text", texts, ids=[t.removeprefix("faircal ") for t in texts])


@pytest.fixture(scope="module")
def spawner(tmp_path_factory):
    started = Spawner(tmp_path_factory.mktemp("spawner"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory, run_command, request):
    def start(*words, **how):
        return request.getfixturevalue("spawner").start(*words, **how)

    return World(tmp_path_factory.mktemp("examples"), run_command, start)


@pytest.fixture
def words(text, world, tmp_path):
    """The words of the example after ``faircal``; what it names is in the folder of the test."""
    how = HOW.get(text, How())
    (call,) = re.findall(r"(?:^|[(])faircal\b([^)>]*)", text)
    found = shlex.split(f"{call} {how.more}")
    (tmp_path / "home").mkdir()
    needed = [*things(found), *how.also]
    assert set(needed) >= {*how.given, *how.without}
    for name in needed:
        if name not in how.without:
            world.give(name, tmp_path, how.given.get(name))
    if how.weights:
        world.need("weights/")
    return found


def check_written(words, folder):
    """Assert that what a command was told to write is there."""
    last = {before: word for before, word in pairwise(words) if before in WRITTEN}
    for name in last.values():
        assert path_of(folder, name).exists(), name


@of(PLAIN)
def test_example(text, words, world, tmp_path):
    world.run(words, tmp_path, figures=HOW.get(text, How()).figures)
    check_written(words, tmp_path)


@of(RESUMED)
@pytest.mark.usefixtures("checkpoints_at_once")
def test_example_goes_on(text, words, world, tmp_path, run_here, interrupt_at, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("faircal.data.Dataset.BATCH", 500)
        patch.setattr("faircal.production.scoring.run.ROW_GROUP", 500)
        interrupt_at(patch, *STOPPED[words[0]])
        stopped = run_here([word for word in words if word != "--resume"])
    assert stopped.code == 1
    assert "--resume" in stopped.err
    world.run(words, tmp_path, figures=HOW.get(text, How()).figures)
    check_written(words, tmp_path)


@of(IN_A_SHELL)
@pytest.mark.usefixtures("words")
def test_example_in_a_shell(text, world, tmp_path):
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{text}\n{FOUND[text]}"],
        cwd=tmp_path,
        env={**os.environ, **world.environment(tmp_path), "PATH": programs},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@of(SERVICES)
def test_service(words, spawner, tmp_path):
    there = f"os.chdir({str(tmp_path)!r})"
    with spawner.start(*words[1:], log=tmp_path / "log", first=there) as service:
        with service.client() as client:
            assert client.get("/readyz").status_code == 200
        assert service.end() == 0


def test_all_that_is_said_of_examples_is_said_of_one():
    assert set(NOT_RUN) <= set(EXAMPLES)
    assert set(HOW) <= set(EXAMPLES) - set(NOT_RUN)
    assert set(FOUND) == set(IN_A_SHELL) - set(NOT_RUN)
    assert len(NOT_RUN) <= 8
