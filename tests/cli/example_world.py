"""What examples of the manuals name: data, tables, models, results, each made when it is needed.

Things are called as examples call them: ``faces/``, ``scores.csv``, ``~/RFW``. Each is made once,
by a command of faircal or by a function, and given to an example as a copy.
"""

from __future__ import annotations

import os
import shlex
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

import faircal
from faircal.data.tables import read_table
from tests.cohorts import own_and_cohort, write_cohort, write_own
from tests.data.importers import makers
from tests.embedding.makers import write_facenet, write_onnx

#: Options whose value is written and not read.
WRITTEN = ("--out", "--onnx", "--state")

_ONE = "--jobs 1"  # without processes beside it, which import everything anew
_TINY = "--people 80 --images 400 --pairs 2000"
_WATCHED = "--add clusters,outside,decision --keep genuine"

#: Things that a command makes; what it names in its turn is made before.
COMMANDS = {
    "faces/": "simulate small faces/ --people 560 --images 2240 --pairs 10000",
    "few/": f"simulate small few/ {_TINY}",
    "here/": f"simulate small here/ --seed 1 {_TINY}",
    "there/": f"simulate small there/ --seed 2 {_TINY}",
    "new-pairs/": f"simulate small new-pairs/ --seed 3 {_TINY}",
    "new-people/": "simulate small new-people/ --seed 9 --people 1600 --images 6400 --pairs 28000",
    "simulated/": "simulate rfw-like simulated/ --people 80 --images 400 --pairs 1600",
    "rfw/": "import rfw ~/RFW --out rfw/",
    "africans/": "import rfw ~/africans --out africans/",
    "bfw/": "import bfw ~/BFW --out bfw/",
    "fitted.faircal": "fit faces/ --clusters 5 --leave-out 5 --out fitted.faircal",
    "faces.faircal": "threshold fitted.faircal faces/ --fold 5 --fpr 0.01 --out faces.faircal",
    "today.parquet": f"score faces.faircal today/ {_WATCHED} --out today.parquet",
    "results/": f"benchmark few/ --methods baseline,faircal --clusters 5 {_ONE} --out results/",
    "results-old/": f"benchmark new-people/ --methods baseline {_ONE} --attribute gender "
    "--out results-old/",
    "audit/": "audit few/ --attribute ethnicity --out audit/",
    "audit-old/": "audit here/ --attribute ethnicity --out audit-old/",
    "audit-new/": "audit there/ --attribute ethnicity --out audit-new/",
    "classes.faircal": "classify fit rows.csv --clusters 5 --out classes.faircal",
    "calibrated.parquet": "classify apply classes.faircal new-rows.csv --out calibrated.parquet",
    "keys.json": "keys add gate-4 --keys keys.json --scope verify,enrol",
}

#: Things that a function writes, given the world and the path.
FUNCTIONS = {
    "~/RFW": lambda _, path: makers.write_rfw(path),
    "~/africans": lambda _, path: makers.write_rfw(path, ["African"]),
    "~/BFW": lambda _, path: makers.write_bfw(path),
    "~/LFW": lambda _, path: makers.write_lfw(path),
    "~/IJB-C": lambda _, path: makers.write_ijbc(path),
    "~/photos": lambda _, path: makers.write_photos(path),
    "~/albums": lambda _, path: makers.write_photos(path, below="2019"),
    "crops/": lambda _, path: makers.write_photos(path, size=112),
    "people.csv": lambda _, path: makers.write_people(path),
    "scores-dev": lambda _, path: makers.write_bob(path),
    "mine.onnx": lambda _, path: write_onnx(path),
    "weights/": lambda _, path: write_facenet(path),
    "templates.key": lambda _, path: path.write_bytes(bytes(range(32))),
    "rows.csv": lambda _, path: write_rows(path, seed=0),
    "new-rows.csv": lambda _, path: write_rows(path, seed=1),
    "test.csv": lambda _, path: write_rows(path, seed=2),
    "other-names.csv": lambda _, path: write_rows(path, seed=0, other_names=True),
    "features.npy": lambda _, path: np.save(path, features(ROWS)),
    "scores.csv": lambda _, path: write_scores(path),
    "percents.csv": lambda _, path: write_scores(path, low=0, high=100),
}

ROWS = 300


def gate_and_cohort():
    """Return pairs of some people at a gate, and a cohort of others of the same network."""
    people = faircal.simulate("small", seed=5, people=800, images=2400, pairs=7000)
    return own_and_cohort(people, "ethnicity")


FUNCTIONS["gate/"] = lambda _, path: write_own(gate_and_cohort()[0], path)
FUNCTIONS["cohort/"] = lambda _, path: write_cohort(gate_and_cohort()[1], path)


def made(name):
    """Register the function that makes a thing."""
    return lambda function: FUNCTIONS.setdefault(name, function)


class World:
    """A folder of things, of which there are as many as were needed so far.

    Parameters
    ----------
    folder : Path
    run : callable
        Runs a command; see `tests.forked`.
    start : callable
        Starts the service; see `tests.serving.running`.
    """

    def __init__(self, folder, run, start):
        self.folder, self._run, self.start = folder, run, start
        self._there = set()
        (folder / "home").mkdir()

    def environment(self, folder=None):
        """Return what to set for a command in a folder: whose home it is, where weights are."""
        home = (folder or self.folder) / "home"
        return {
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local/share"),
            "SHELL": "/bin/bash",
            "FAIRCAL_WEIGHTS": str(self.folder / "weights"),
        }

    def run(self, words, folder=None, *, figures=False):
        """Run a command, ``~`` in whose words is the folder's home."""
        place = folder or self.folder
        words = [str(path_of(place, word)) if word.startswith("~/") else word for word in words]
        return self._run(*words, cwd=place, environment=self.environment(place), figures=figures)

    def need(self, name):
        """Return the path of a thing, made now unless it is there."""
        path = path_of(self.folder, name)
        if name not in self._there:
            if name in FUNCTIONS:
                FUNCTIONS[name](self, path)
            else:
                words = shlex.split(COMMANDS[name])
                for other in things(words):
                    if other != name:
                        self.need(other)
                self.run(words)
            self._there.add(name)
        return path

    def give(self, name, folder, source=None):
        """Copy a thing into a folder; `source` is the thing that it is to be, under this name."""
        found, target = self.need(source or name), path_of(folder, name)
        if found.is_dir():
            shutil.copytree(found, target)
        else:
            shutil.copy(found, target)


def path_of(folder, name):
    """Return where a thing lies in a folder; ``~`` is the home in it."""
    return Path(folder, name.replace("~/", "home/"))


def things(words):
    """Return the things that the words of a command name in order to read them."""
    return list(
        dict.fromkeys(
            word
            for before, word in pairwise(["", *words])
            if before not in WRITTEN and (word in COMMANDS or word in FUNCTIONS)
        )
    )


# ----------------------------------------------------------------------------- tables


def write_scores(path, n=12_000, low=-1.0, high=1.0):
    """Write a vendor's table: labels, scores within a range, both people and their groups."""
    rng = np.random.default_rng(0)
    genuine = rng.random(n) < 0.3
    cosine = np.clip(rng.normal(np.where(genuine, 0.7, 0.05), 0.12), -1, 1)
    groups = rng.choice(["Asian", "Black", "White"], n)
    left = np.arange(n) - (np.arange(n) % 20 == 1)  # some people are in two pairs
    table = {
        "genuine": genuine.astype(int),
        "score": low + (high - low) * (cosine + 1) / 2,
        "left_identity": left,
        "right_identity": np.where(genuine, left, n + np.arange(n)),
        "left_ethnicity": groups,
        "right_ethnicity": groups,
    }
    pacsv.write_csv(pa.table(table), path)


def features(n, seed=0):
    """Return what a classifier worked with."""
    return np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32)


def write_rows(path, seed, other_names=False):
    """Write rows of a classifier of three classes that is too sure of itself."""
    rng = np.random.default_rng(seed)
    logits = features(ROWS, seed) + rng.normal(size=(ROWS, 3))
    p = np.exp(2 * logits)
    p /= p.sum(axis=1, keepdims=True)
    label = (logits + rng.gumbel(size=(ROWS, 3))).argmax(axis=1)
    table = {f"p_{name}": p[:, i] for i, name in enumerate("abc")}
    table["diagnosis" if other_names else "label"] = np.array(list("abc"))[label]
    if not other_names:
        table |= {f"feature_{i}": column for i, column in enumerate(features(ROWS, seed).T)}
    table["patient"] = [f"p{i // 2}" for i in range(ROWS)]
    table["sex"] = rng.choice(["F", "M"], ROWS // 2).repeat(2)
    table["site"] = rng.choice(["north", "south"], ROWS // 2).repeat(2)
    pacsv.write_csv(pa.table(table), path)


# -------------------------------------------------------------- what needs other things


@made("mine.py")
def write_plugin(_, path):
    """Write the method of the documentation under another name."""
    code = faircal.methods.__doc__.split("::\n\n")[1].split("\n\nOn the command line")[0]
    lines = [line.removeprefix("    ") for line in code.splitlines()]
    text = "\n".join(lines).replace('"doubtful", "Doubtful"', '"mine", "Mine"')
    assert '"mine"' in text
    path.write_text(text + "\n", encoding="utf-8")


@made("results-new/")
def change_nothing(world, path):
    """Copy the results of before: of this update it can be shown that it is no worse."""
    shutil.copytree(world.need("results-old/"), path)


@made("photos/")
def write_pictures(world, path):
    """Write a picture of each image of ``faces/``."""
    names = read_table(world.need("faces/") / "images.csv")["image_id"].to_pylist()
    makers.write_photos(path, ["all"], shots=1, size=32)
    for name in names:
        os.link(path / "all" / "1.jpg", path / name)


@made("embedded/")
def write_unpaired(world, path):
    """Write images with embeddings and no pairs, as ``faircal embed`` leaves them."""
    shutil.copytree(world.need("few/"), path)
    (path / "pairs.csv").unlink()


@made("rfw-embedded/")
def write_embedded_rfw(world, path):
    """Write RFW with vectors of one of the paper's networks."""
    embed(world.need("rfw/"), path, ["facenet-webface"])


@made("rfw-other/")
def write_other_rfw(world, path):
    """Write RFW with vectors whose names are not those of networks."""
    embed(world.need("rfw/"), path, ["webface", "zoo"])


@made("bfw-embedded/")
def write_embedded_bfw(world, path):
    """Write BFW with vectors of one of the paper's networks."""
    embed(world.need("bfw/"), path, ["facenet-webface"])


def embed(source, path, names):
    """Copy a dataset and give each person a direction, each image one near it."""
    shutil.copytree(source, path)
    people = read_table(path / "images.csv")["identity"].to_pylist()
    known = {person: number for number, person in enumerate(dict.fromkeys(people))}
    rows = [known[person] for person in people]
    (path / "embeddings").mkdir()
    for seed, name in enumerate(names):
        rng = np.random.default_rng(seed)
        vectors = rng.normal(size=(len(known), 16))[rows] + rng.normal(size=(len(rows), 16))
        np.save(path / "embeddings" / f"{name}.npy", vectors.astype(np.float32))


@made("today/")
def leave_those_fitted_on(world, path):
    """Write pairs of the people of ``faces/`` whom the model does not know."""
    shutil.copytree(world.need("faces/"), path)
    pairs = read_table(path / "pairs.csv")
    pacsv.write_csv(pairs.filter(pc.field("fold") == 5), path / "pairs.csv")


@made("monday.parquet")
def first_half(world, path):
    """Write the first half of what was scored today."""
    scored = pq.read_table(world.need("today.parquet"))
    pq.write_table(scored.slice(0, len(scored) // 2), path)


@made("tuesday.parquet")
def second_half(world, path):
    """Write the second half of what was scored today."""
    scored = pq.read_table(world.need("today.parquet"))
    pq.write_table(scored.slice(len(scored) // 2), path)


@made("decisions.csv")
def export_decisions(world, path):
    """Let a service decide pairs of ``today/``, and export its audit trail."""
    data = faircal.load(world.need("today/"))
    vectors = data.embeddings.vectors
    service = world.start(world.need("faces.faircal"), log=world.folder / "service.log")
    with service, service.client() as client:
        left, right = data.pairs.left[:300], data.pairs.right[:300]
        pairs = {"left": vectors[left].tolist(), "right": vectors[right].tolist()}
        client.post("/v1/verify/batch", json=pairs).raise_for_status()
        path.write_text(client.get("/v1/decisions?format=csv").raise_for_status().text)
        assert service.end() == 0
    (world.folder / "faces.db").unlink()
