"""Bad input: one clear line on standard error, exit 2, nothing written.

Each case spoils the sound world of ``conftest.py`` in one way, runs a command, and says which words
must name the place and which the remedy.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from faircal.data import load
from faircal.methods import make_method

Spoil = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A command that must fail, what is spoilt before it, and what its message must hold."""

    name: str
    command: str
    place: str
    remedy: str
    spoil: Spoil | None = None
    #: Describes the data before it complains.
    prints: bool = False


# ------------------------------------------------------------------ ways to spoil


def text(path: str, content: str | bytes) -> Spoil:
    """Put `content` in place of the file."""
    data = content.encode() if isinstance(content, str) else content
    return lambda: Path(path).write_bytes(data)


def cut(path: str, length: int) -> Spoil:
    """Cut the file off after `length` bytes."""
    return lambda: Path(path).write_bytes(Path(path).read_bytes()[:length])


def patch(path: str, start: int, data: bytes) -> Spoil:
    """Overwrite bytes of the file."""

    def spoil() -> None:
        blob = bytearray(Path(path).read_bytes())
        blob[start : start + len(data)] = data
        Path(path).write_bytes(blob)

    return spoil


def remove(path: str) -> Spoil:
    """Remove the file."""
    return lambda: Path(path).unlink()


def several(*spoils: Spoil) -> Spoil:
    """Spoil more than one thing."""
    return lambda: [spoil() for spoil in spoils]


def column(path: str, name: str, values: object) -> Spoil:
    """Replace a column of a CSV file (None drops it; a function gets the old values)."""

    def spoil() -> None:
        table = pacsv.read_csv(path)
        old = table[name].to_pylist() if name in table.column_names else None
        columns = {key: table[key] for key in table.column_names}
        columns[name] = values(old) if callable(values) else values
        if values is None:
            del columns[name]
        pacsv.write_csv(pa.table(columns), path)

    return spoil


def cell(path: str, name: str, row: int, value: object) -> Spoil:
    """Replace one value of a CSV file, rows counted from 1."""

    def change(old: list[object]) -> list[str | None]:
        new = [None if v is None else str(v) for v in old]
        new[row - 1] = None if value is None else str(value)
        return new

    return column(path, name, change)


def array(path: str, change: Callable[[np.ndarray], np.ndarray]) -> Spoil:
    """Change the array in an NPY file."""
    return lambda: np.save(path, change(np.load(path)))


def value_at(row: int, value: float, dtype: type = np.float32) -> Callable:
    """Fill a row (counted from 1) with `value`."""

    def change(old: np.ndarray) -> np.ndarray:
        new = old.astype(dtype)
        new[row - 1] = value
        return new

    return change


def as_parquet(path: str, **columns: object) -> Spoil:
    """Turn a CSV file into Parquet, with these columns replaced."""

    def spoil() -> None:
        table = pacsv.read_csv(path)
        kept = {key: table[key] for key in table.column_names}
        pq.write_table(pa.table(kept | columns), Path(path).with_suffix(".parquet"))
        Path(path).unlink()

    return spoil


IMAGES, PAIRS, VECTORS = "faces/images.csv", "faces/pairs.csv", "faces/embeddings.npy"
MODEL = "faircal.faircal"
FIT = "fit faces --clusters 3 --out m.faircal"
SCORE = "score faircal.faircal faces --out s.csv"
BENCH = "benchmark faces --clusters 3 --jobs 1 --out b"
AUDIT = "audit scores.csv --out a"

USAGE = [
    Case("no command", "", "command", "faircal --help"),
    Case("unknown command", "fti faces", "'fti'", "did you mean fit?"),
    Case("unknown option before the command", "--nope check faces", "--nope", "faircal --help"),
    Case("unknown option", "check faces --atribute x", "--atribute", "--attribute"),
    Case("check without data", "check", "DATA", "faircal check --help"),
    Case("fit without --out", "fit faces", "--out", "faircal fit --help"),
    Case("score without --out", "score m faces", "--out", "faircal score --help"),
    Case("score without data", "score m --out s.csv", "DATA", "faircal score --help"),
    Case("audit without --out", "audit scores.csv", "--out", "faircal audit --help"),
    Case("benchmark without --out", "benchmark faces", "--out", "faircal benchmark --help"),
    Case("report without folder", "report", "DIR", "faircal report --help"),
    Case("simulate without folder", "simulate small", "DIR", "faircal simulate --help"),
    Case("methods with an argument", "methods faces", "faces", "faircal methods --help"),
    Case("option without its value", "check faces --attribute", "--attribute", "--help"),
]

DEMO = [
    Case("demo: negative seed", "demo --seed -1", "--seed", "x>=0"),
    Case("demo: out is a file", "demo --out notes.txt", "notes.txt", "give another path"),
    Case("demo: out below a file", "demo --out notes.txt/d", "notes.txt", "choose another path"),
]

SIMULATE = [
    Case("simulate: unknown preset", "simulate smal d", "'smal'", "did you mean small?"),
    Case("simulate: too few people", "simulate small d --people 3", "people", "80 or more"),
    Case("simulate: too few images", "simulate small d --images 9", "images", "400 or more"),
    Case("simulate: too many pairs", "simulate small d --pairs 9999999", "pairs", "fewer pairs"),
    Case("simulate: no pairs", "simulate small d --pairs 0", "--pairs", "x>=1"),
    Case("simulate: too few dimensions", "simulate small d --dimension 8", "dimension", "16"),
    Case("simulate: seed is a word", "simulate small d --seed abc", "--seed", "integer"),
    Case("simulate: out is a file", "simulate small notes.txt", "notes.txt", "another path"),
    Case("simulate: out below a file", "simulate small notes.txt/d", "notes.txt", "another path"),
    Case(
        "simulate: into a dataset of another layout",
        "simulate small two",
        "two: embeddings is there already",
        "choose another folder",
    ),
]

FOLDER = [
    Case("no such path", "check nowhere", "nowhere", "check the path"),
    Case("folder without images", FIT, "images.csv", "faircal import --help", remove(IMAGES)),
    Case("folder without pairs", FIT, "pairs.csv", "faircal pairs", remove(PAIRS)),
    Case(
        "images twice",
        "check faces",
        "images.csv and images.parquet",
        "remove one",
        text("faces/images.parquet", "x"),
    ),
    Case("images: empty file", "check faces", IMAGES, "export it again", text(IMAGES, "")),
    Case("images: header only", FIT, IMAGES, "check the export", text(IMAGES, "image_id,x\n")),
    Case("images: no ids", FIT, "'image_id'", "add or rename", column(IMAGES, "image_id", None)),
    Case(
        "images: empty id",
        "check faces",
        f"{IMAGES}, column 'image_id', row 3",
        "give every row an id",
        cell(IMAGES, "image_id", 3, None),
    ),
    Case(
        "images: id twice",
        "check faces",
        f"{IMAGES}, column 'image_id': id 'i01'",
        "an id of its own",
        cell(IMAGES, "image_id", 3, "i01"),
    ),
    Case(
        "images: ragged rows",
        "check faces",
        f"{IMAGES}: cannot be read (CSV parse error",
        "export it again",
        text(IMAGES, "image_id,identity\na,1\nb\n"),
    ),
    Case(
        "images: not UTF-8",
        "check faces",
        "column 'ethnicity' is not UTF-8",
        "export it again",
        text(IMAGES, "image_id,ethnicity\na,Bj\xf6rk\n".encode("latin-1")),
    ),
    Case(
        "images: column twice",
        "check faces",
        f"{IMAGES}: column 'gender'",
        "rename one",
        text(IMAGES, "image_id,gender,gender\na,F,F\n"),
    ),
    Case(
        "images: plus in a name",
        "check faces",
        f"{IMAGES}, column 'a+b'",
        "rename it",
        column(IMAGES, "a+b", ["x"] * 24),
    ),
    Case(
        "images: not Parquet",
        "check faces",
        "faces/images.parquet: cannot be read",
        "export it again",
        several(remove(IMAGES), text("faces/images.parquet", "no table")),
    ),
    Case(
        "images: Parquet cut off",
        "check faces",
        "faces/images.parquet: cannot be read",
        "export it again",
        several(as_parquet(IMAGES), cut("faces/images.parquet", 300)),
    ),
    Case(
        "images: ids are lists",
        "check faces",
        "faces/images.parquet, column 'image_id': expected text or numbers, found list",
        "convert or remove",
        as_parquet(IMAGES, image_id=[[i] for i in range(24)]),
    ),
    Case(
        "images: identities are lists",
        "check faces",
        "column 'identity': expected text or numbers",
        "convert or remove",
        as_parquet(IMAGES, identity=[[i] for i in range(24)]),
    ),
    Case("pairs: no left", FIT, f"{PAIRS}: column 'left'", "add", column(PAIRS, "left", None)),
    Case(
        "check: pairs without right",
        "check faces",
        f"{PAIRS}: column 'right'",
        "add or rename it",
        column(PAIRS, "right", None),
    ),
    Case("pairs: header only", FIT, PAIRS, "check the export", text(PAIRS, "left,right\n")),
    Case(
        "pairs: empty id",
        "check faces",
        f"{PAIRS}, column 'left', row 2",
        "give every row an id",
        cell(PAIRS, "left", 2, None),
    ),
    Case(
        "pairs: unknown image",
        FIT,
        f"{PAIRS}, column 'right', row 5: image 'i99'",
        "add the image or remove",
        cell(PAIRS, "right", 5, "i99"),
    ),
    Case(
        "check: unknown image",
        "check faces",
        "'right' of pairs.csv that are not among the images: 1 (for example row 5: 'i99')",
        "add the images or remove",
        cell(PAIRS, "right", 5, "i99"),
        prints=True,
    ),
    Case(
        "check: two faults, one line",
        "check faces",
        "row 7: 'i98'",
        "(and 1 more, listed above)",
        several(cell(PAIRS, "right", 5, "i99"), cell(PAIRS, "left", 7, "i98")),
        prints=True,
    ),
    Case(
        "check: all images unknown",
        "check faces",
        f"{PAIRS}, column 'left', row 1: image 'x'",
        "remove these pairs",
        column(PAIRS, "left", lambda old: ["x"] * len(old)),
    ),
    Case(
        "pairs: label is a word",
        FIT,
        f"{PAIRS}, column 'genuine', row 4: expected 0, 1, true or false, found 'yes'",
        "correct or remove",
        cell(PAIRS, "genuine", 4, "yes"),
    ),
    Case(
        "pairs: label is 2",
        "check faces",
        "column 'genuine', row 4",
        "correct or remove",
        cell(PAIRS, "genuine", 4, 2),
    ),
    Case(
        "pairs: label is missing",
        FIT,
        "column 'genuine', row 4",
        "correct or remove",
        cell(PAIRS, "genuine", 4, None),
    ),
    Case(
        "pairs: labels are lists",
        FIT,
        "faces/pairs.parquet, column 'genuine': expected text or numbers",
        "convert or remove",
        as_parquet(PAIRS, genuine=[[1]] * 132),
    ),
    Case(
        "pairs: fold is missing",
        BENCH,
        f"{PAIRS}, column 'fold', row 6",
        "drop the column to have folds drawn",
        cell(PAIRS, "fold", 6, None),
    ),
    Case(
        "pairs: score is a word",
        FIT,
        f"{PAIRS}, column 'score': expected numbers",
        "correct the column",
        column(PAIRS, "score", ["high"] * 132),
    ),
    Case(
        "pairs: score is NaN",
        "check faces",
        f"{PAIRS}, column 'score', row 3: expected a finite score",
        "correct or remove",
        column(PAIRS, "score", [0.5, 0.5, None, *[0.1] * 129]),
    ),
    Case(
        "pairs: score out of range",
        "check faces",
        f"{PAIRS}, column 'score', row 2: expected a score in [-1, 1], found 70",
        "--score-range",
        column(PAIRS, "score", [0.5, 70.0, *[0.1] * 130]),
    ),
    Case(
        "pairs: whose score?",
        "check two",
        "two/pairs.csv: column 'score' does not say which",
        "remove it or keep one",
        column("two/pairs.csv", "score", [0.5] * 132),
    ),
    Case("nothing to compare by", FIT, PAIRS, "embed the pictures", remove(VECTORS)),
    Case(
        "embeddings twice",
        "check faces",
        "embeddings.npy and embeddings are both there",
        "keep one",
        several(lambda: Path("faces/embeddings").mkdir(), text("faces/embeddings/one.npy", "x")),
    ),
    Case(
        "embeddings: empty folder",
        "check plain",
        "plain/embeddings",
        "add them",
        several(remove("plain/embeddings.npy"), lambda: Path("plain/embeddings").mkdir()),
    ),
    Case("embeddings: empty file", FIT, VECTORS, "numpy.save", text(VECTORS, "")),
    Case("embeddings: cut off", FIT, VECTORS, "numpy.save", cut(VECTORS, 200)),
    Case("embeddings: header cut off", FIT, VECTORS, "numpy.save", cut(VECTORS, 20)),
    Case("embeddings: text", "check faces", VECTORS, "numpy.save", text(VECTORS, "1 2 3\n")),
    Case("embeddings: 1-d", FIT, f"{VECTORS}: ", "shape", array(VECTORS, np.ravel)),
    Case("embeddings: 3-d", FIT, VECTORS, "(images, dimension)", array(VECTORS, lambda a: a[None])),
    Case(
        "embeddings: integers",
        "check faces",
        f"{VECTORS}: expected float16, float32 or float64, found int64",
        "astype('float32')",
        array(VECTORS, lambda a: a.astype(np.int64)),
    ),
    Case(
        "embeddings: objects",
        "check faces",
        VECTORS,
        "numpy.save",
        lambda: np.save(VECTORS, np.array([[None] * 4] * 24), allow_pickle=True),
    ),
    Case(
        "embeddings: a row too few",
        "check faces",
        f"{VECTORS}: expected 24 rows, one per row of images.csv, found 23",
        "in the same order",
        array(VECTORS, lambda a: a[:-1]),
    ),
    Case(
        "embeddings: NaN",
        FIT,
        f"{VECTORS}, row 2 (image i01)",
        "embed these images again",
        array(VECTORS, value_at(2, np.nan)),
    ),
    Case(
        "embeddings: infinite",
        SCORE,
        f"{VECTORS}, row 3 (image i02)",
        "embed these images again",
        array(VECTORS, value_at(3, np.inf)),
    ),
    Case(
        "embeddings: zero",
        BENCH,
        f"{VECTORS}, row 24 (image i23)",
        "drop their pairs",
        array(VECTORS, value_at(24, 0.0)),
    ),
    Case(
        "embeddings: too large for float32",
        "audit faces --out a",
        f"{VECTORS}, row 1 (image i00)",
        "drop their pairs",
        array(VECTORS, value_at(1, 1e300, np.float64)),
    ),
    Case(
        "check: NaN vectors",
        "check faces",
        "faces: NaN, infinite or zero vectors in embeddings 'embedding': 1 (for example image i01",
        "embed these images again",
        array(VECTORS, value_at(2, np.nan)),
        prints=True,
    ),
    Case(
        "dataset.json: not JSON",
        "check faces",
        "faces/dataset.json: not valid JSON",
        "correct or remove it",
        text("faces/dataset.json", "{name: x}"),
    ),
    Case(
        "dataset.json: a list",
        FIT,
        "faces/dataset.json: expected an object",
        "correct it",
        text("faces/dataset.json", "[1]"),
    ),
    Case(
        "check: one class only",
        "check faces",
        "faces: pairs of one class only: 132 (for example all imposter)",
        "add genuine pairs",
        column(PAIRS, "genuine", [0] * 132),
        prints=True,
    ),
    Case("check: unknown attribute", "check faces --attribute gendr", "'gendr'", "mean gender?"),
    Case("check: no attribute", "check plain --attribute age", "'age'", "there are none"),
]

TABLE = [
    Case("table: wrong suffix", "check notes.txt", "notes.txt", "convert it first"),
    Case("table: empty", AUDIT, "scores.csv", "export it again", text("scores.csv", "")),
    Case("table: header only", AUDIT, "scores.csv", "check", text("scores.csv", "genuine,score\n")),
    Case(
        "table: no labels",
        "check scores.csv",
        "scores.csv: column 'genuine'",
        "add or rename it",
        column("scores.csv", "genuine", None),
    ),
    Case(
        "table: label is a word",
        AUDIT,
        "scores.csv, column 'genuine', row 1",
        "correct or remove",
        cell("scores.csv", "genuine", 1, "match"),
    ),
    Case(
        "table: no score",
        "check scores.csv",
        "scores.csv: no column 'score'",
        "--features",
        text("scores.csv", "genuine,group\n1,a\n0,b\n"),
    ),
    Case(
        "table: unknown score column",
        f"{AUDIT} --features othr",
        "scores.csv: no column named 'othr'",
        "did you mean other?",
    ),
    Case(
        "table: score column is text",
        f"{AUDIT} --features left_ethnicity",
        "scores.csv, column 'left_ethnicity': expected numbers",
        "name another one",
    ),
    Case(
        "table: score is missing",
        "check scores.csv",
        "scores.csv, column 'score', row 9",
        "correct or remove",
        cell("scores.csv", "score", 9, None),
    ),
    Case(
        "table: score is infinite",
        AUDIT,
        "scores.csv, column 'score', row 9: expected a finite score, found inf",
        "correct or remove",
        cell("scores.csv", "score", 9, "inf"),
    ),
    Case(
        "table: score out of range",
        "benchmark scores.csv --out b",
        "scores.csv, column 'score', row 1: expected a score in [-1, 1], found 1.5",
        "--score-range",
        cell("scores.csv", "score", 1, 1.5),
    ),
    Case(
        "table: score out of the range given",
        f"{AUDIT} --score-range 2,3",
        "scores.csv, column 'score', row 1: expected a score in [2, 3]",
        "--score-range",
    ),
    Case(
        "table: probability above 1",
        AUDIT,
        "scores.csv, column 'probability', row 1",
        "found 1.2",
        column("scores.csv", "probability", [1.2] * 132),
    ),
    Case(
        "table: one side of an attribute",
        "check scores.csv",
        "scores.csv: column 'right_ethnicity'",
        "add or rename it",
        column("scores.csv", "right_ethnicity", None),
    ),
    Case(
        "table: one side of the identity",
        "check scores.csv",
        "scores.csv: column 'right_identity'",
        "add or rename it",
        column("scores.csv", "left_identity", ["p"] * 132),
    ),
    Case(
        "table: fold is missing",
        AUDIT,
        "scores.csv, column 'fold', row 1",
        "folds drawn",
        cell("scores.csv", "fold", 1, None),
    ),
    Case(
        "table: Parquet cut off",
        "audit scores.parquet --out a",
        "scores.parquet: cannot be read",
        "export it again",
        cut("scores.parquet", 500),
    ),
    Case("score range reversed", f"{AUDIT} --score-range 1,-1", "score_range", "low < high"),
    Case("score range of words", f"{AUDIT} --score-range a,b", "--score-range", "such as 0,100"),
    Case("score range of one", f"{AUDIT} --score-range 1", "--score-range", "LOW,HIGH"),
    Case("score range infinite", f"{AUDIT} --score-range 0,inf", "score_range", "low < high"),
]

FIT_CASES = [
    Case("fit: unknown method", f"{FIT} --method fairca", "'fairca'", "did you mean faircal?"),
    Case("fit: unknown calibrator", f"{FIT} --calibrator bta", "'bta'", "did you mean beta?"),
    Case("fit: no clusters", "fit faces --clusters 0 --out m", "--clusters", "x>=1"),
    Case("fit: clusters is a word", "fit faces --clusters all --out m", "--clusters", "integer"),
    Case("fit: too many clusters", "fit faces --clusters 99 --out m", "24", "(--clusters)"),
    Case("fit: negative seed", f"{FIT} --seed -1", "--seed", "x>=0"),
    Case("fit: option it takes not", f"{FIT} --method baseline", "--clusters", "leave it out"),
    Case(
        "fit: no attribute for it",
        "fit plain --method oracle --out m",
        "oracle",
        "choose another method",
    ),
    Case(
        "fit: unknown attribute",
        "fit faces --method oracle --attribute sex --out m",
        "'sex'",
        "known: ethnicity, gender",
    ),
    Case("fit: no embeddings for it", "fit scores.csv --out m", "scores", "choose another method"),
    Case("fit: several features", "fit two --out m", "two: has several", "--feature"),
    Case(
        "fit: unknown feature", "fit two --feature arx --out m", "two: no embeddings named", "arc?"
    ),
    Case("fit: unknown fold", f"{FIT} --leave-out 9", "no fold '9'", "expected one of 1, 2"),
    Case("fit: --set without value", f"{FIT} --set min_pairs", "--set", "name=value"),
    Case("fit: --set without name", f"{FIT} --set =3", "--set", "name=value"),
    Case("fit: unknown parameter", f"{FIT} --set min_pair=3", "'min_pair'", "mean min_pairs?"),
    Case("fit: parameter is a word", f"{FIT} --set min_pairs=few", "min_pairs", "whole number"),
    Case("fit: parameter is a fraction", f"{FIT} --set n_init=1.5", "n_init", "whole number"),
    Case("fit: parameter too small", f"{FIT} --set n_init=0", "n_init", "1 or more"),
    Case(
        "fit: rate is a word",
        "fit faces --method gst --set target_fpr=low --out m",
        "target_fpr",
        "a number",
    ),
    Case(
        "fit: rate above 1",
        "fit faces --method gst --set target_fpr=2 --out m",
        "target_fpr",
        "0",
    ),
    Case(
        "fit: one class only",
        FIT,
        "faces: expected genuine and imposter pairs, found one class only",
        "add the other class",
        column(PAIRS, "genuine", [0] * 132),
    ),
    Case("fit: no labels", FIT, "column 'genuine'", "add it", column(PAIRS, "genuine", None)),
    Case("fit: out is a folder", "fit faces --out two", "two", "the path of a file"),
    Case("fit: out below a file", "fit faces --out notes.txt/m", "notes.txt", "another path"),
    Case(
        "fit: one class is left, folds drawn",
        f"{FIT} --leave-out 1",
        "one class only",
        "add the other class",
        column(PAIRS, "fold", None),
    ),
]

# ------------------------------------------------------------------ methods that train

CHECKPOINT = "m.checkpoint"
FTC = "fit faces --method ftc --out m"
AGENDA = "fit faces --method agenda --out m"
MULTIPASS = "fit faces --method multipass --out m"


def stopped(**parameters: object) -> Spoil:
    """Leave the checkpoint of an FTC training that was interrupted in its third epoch."""

    def stop(what: str, done: int, total: int, label: str) -> None:
        if done == 3:
            raise KeyboardInterrupt

    def spoil() -> None:
        pytest.importorskip("torch")
        model = make_method("ftc", **{"epochs": 5, "hidden": [1], **parameters})
        with pytest.MonkeyPatch.context() as at_once, pytest.raises(KeyboardInterrupt):
            at_once.setattr("faircal._base.jobs.EVERY", 0.0)
            model.fit(load("faces"), progress=stop, checkpoint=CHECKPOINT)
        assert Path(CHECKPOINT).exists()

    return spoil


def one_group(path: str) -> Spoil:
    """Give all images the same gender."""
    return column(path, "gender", ["F"] * 24)


RESUMED = f"{FTC} --set epochs=5 --set hidden=[1] --resume"
TRAINED = [
    Case("ftc: unknown preset", f"{FTC} --set preset=papr", "'papr'", "did you mean paper?"),
    Case("ftc: preset is a list", f"{FTC} --set preset=[1]", "preset", "paper"),
    Case("ftc: unknown device", f"{FTC} --set device=gpu", "'gpu'", "auto, cpu or cuda"),
    Case(
        "ftc: no such GPU", f"{FTC} --set device=cuda:99", "'cuda:99'", "choose auto, cpu or cuda"
    ),
    Case("ftc: device of another kind", f"{FTC} --set device=meta", "'meta'", "auto, cpu or cuda"),
    Case("ftc: device is a number", f"{FTC} --set device=0", "device", "text"),
    Case("ftc: device is a list", f"{FTC} --set device=[0]", "device", "auto"),
    Case("ftc: hidden is a number", f"{FTC} --set hidden=4", "hidden", "a list of numbers"),
    Case("ftc: hidden is a word", f"{FTC} --set hidden=wide", "hidden", "a list of numbers"),
    Case("ftc: hidden is a mapping", f'{FTC} --set hidden={{"a":1}}', "hidden", "a list of numb"),
    Case("ftc: hidden is units", f"{FTC} --set hidden=[2048]", "hidden", "(4, 4) makes two"),
    Case("ftc: hidden of 0", f"{FTC} --set hidden=[4,0]", "hidden", "each above 0"),
    Case("ftc: hidden of words", f'{FTC} --set hidden=["a"]', "hidden", "multiples of the"),
    Case(
        "ftc: hidden of truth",
        f"{FTC} --set hidden=[true] --set epochs=1",
        "hidden",
        "multiples of the",
    ),
    Case("ftc: dropout of 1", f"{FTC} --set dropout=1", "dropout", "below 1"),
    Case("ftc: dropout is NaN", f"{FTC} --set dropout=NaN", "dropout", "below 1"),
    Case("ftc: dropout is a word", f"{FTC} --set dropout=some", "dropout", "a number"),
    Case("ftc: fairness below 0", f"{FTC} --set fairness=-0.1", "fairness", "from 0 to 1"),
    Case("ftc: negative epochs", f"{FTC} --set epochs=-1", "epochs", "1 or more"),
    Case("ftc: half an epoch", f"{FTC} --set epochs=0.5", "epochs", "whole number"),
    Case("ftc: epochs is a list", f"{FTC} --set epochs=[2]", "epochs", "whole number"),
    Case("ftc: batches of none", f"{FTC} --set batch_size=0", "batch_size", "1 or more"),
    Case("ftc: negative rate", f"{FTC} --set learning_rate=-1", "learning_rate", "0 or more"),
    Case("ftc: infinite rate", f"{FTC} --set learning_rate=Infinity", "learning_rate", "0 or more"),
    Case("ftc: range reversed", f"{FTC} --set calibrated_range=[1,0]", "calibrated_", "(low, high"),
    Case("ftc: range of one", f"{FTC} --set calibrated_range=[1]", "calibrated_range", "(low, hig"),
    Case("ftc: range is a number", f"{FTC} --set calibrated_range=1", "calibrated_range", "list"),
    Case(
        "ftc: range of words",
        f'{FTC} --set calibrated_range=["a","b"]',
        "calibrated_range",
        "(low, high)",
    ),
    Case(
        "ftc: precision is a number",
        f"{FTC} --set mixed_precision=1",
        "mixed_precision",
        "true or false",
    ),
    Case(
        "ftc: dropout when scoring is a word",
        f"{FTC} --set dropout_when_scoring=on",
        "dropout_when_scoring",
        "true or false",
    ),
    Case("ftc: unknown parameter", f"{FTC} --set epoch=2", "'epoch'", "did you mean epochs?"),
    Case("ftc: no clusters", f"{FTC} --clusters 3", "--clusters", "leave it out"),
    Case("ftc: unknown calibrator", f"{FTC} --calibrator bta", "'bta'", "did you mean beta?"),
    Case("ftc: unknown attribute", f"{FTC} --attribute gendr", "'gendr'", "did you mean gender?"),
    Case("ftc: attribute is a list", f"{FTC} --set attribute=[3]", "attribute", "text"),
    Case(
        "ftc: no groups",
        "fit plain --method ftc --out m",
        "plain: ftc cannot be used: it needs groups",
        "choose another method",
    ),
    Case(
        "ftc: scores only",
        "fit scores.csv --method ftc --out m",
        "scores.csv: ftc cannot be used: it needs embeddings",
        "choose another method",
    ),
    Case(
        "ftc: the training runs away",
        f"{FTC} --set epochs=3 --set learning_rate=1e30",
        "its loss is nan",
        "lower the learning rate",
    ),
    Case("agenda: squash is a word", f"{AGENDA} --set squash=yes", "squash", "true or false"),
    Case("agenda: stop at 2", f"{AGENDA} --set stop_at=2", "stop_at", "found 2"),
    Case("agenda: no width", f"{AGENDA} --set width=0", "width", "1 or more"),
    Case(
        "agenda: discriminator is a number",
        f"{AGENDA} --set discriminator=64",
        "discriminator",
        "a list of numbers",
    ),
    Case(
        "agenda: discriminator of a half",
        f"{AGENDA} --set discriminator=[0.5]",
        "discriminator",
        "whole number",
    ),
    Case(
        "agenda: no discriminators",
        f"{AGENDA} --set n_discriminators=0",
        "n_discriminators",
        "1 or more",
    ),
    Case(
        "agenda: discriminators in a list",
        f"{AGENDA} --set n_discriminators=[2]",
        "n_discriminators",
        "whole number",
    ),
    Case(
        "multipass: no discriminators for an attribute",
        f'{MULTIPASS} --set n_discriminators={{"gender":0}}',
        "n_discriminators",
        "1 or more",
    ),
    Case(
        "multipass: discriminators are words",
        f'{MULTIPASS} --set n_discriminators={{"gender":"two"}}',
        "n_discriminators",
        "whole number",
    ),
    Case(
        "multipass: discriminators of no attribute",
        f'{MULTIPASS} --set n_discriminators={{"gendr":2}}',
        "n_discriminators: unknown attribute 'gendr'",
        "did you mean gender?",
    ),
    Case(
        "agenda: negative epochs",
        f"{AGENDA} --set identity_epochs=-1",
        "identity_epochs",
        "0 or more",
    ),
    Case("agenda: negative episodes", f"{AGENDA} --set episodes=-1", "episodes", "0 or more"),
    Case("agenda: never anew", f"{AGENDA} --set restart_every=0", "restart_every", "1 or more"),
    Case("agenda: rate is a word", f"{AGENDA} --set debias_rate=slow", "debias_rate", "a number"),
    Case("agenda: all kept back", f"{AGENDA} --set validation=1", "validation", "below 1"),
    Case(
        "agenda: no identities",
        AGENDA,
        "faces: agenda cannot be used: it needs to know who is in each image",
        "choose another method",
        column(IMAGES, "identity", None),
    ),
    Case(
        "agenda: scores only",
        "fit scores.csv --method agenda --out m",
        "scores.csv: agenda cannot be used",
        "choose another method",
    ),
    Case(
        "agenda: one group",
        f"{AGENDA} --attribute gender",
        "two or more groups to tell apart, and gender has one",
        "choose another method",
        one_group(IMAGES),
    ),
    Case(
        "multipass: one group of an attribute",
        MULTIPASS,
        "two or more groups to tell apart, and gender has one",
        "choose another method",
        one_group(IMAGES),
    ),
    Case(
        "agenda: identities of few",
        AGENDA,
        "10 or more images of known identity and group",
        "choose another method",
        column(IMAGES, "identity", lambda old: [*old[:8], *[None] * 16]),
    ),
    Case(
        "multipass: one attribute",
        f"{MULTIPASS} --attribute gender",
        "faces: multipass cannot be used: it takes two or more attributes one by one",
        "choose another method",
    ),
    Case(
        "resume: trains nothing",
        "fit faces --method baseline --resume --out m",
        "there is no m.checkpoint",
        "leave --resume out",
    ),
    Case(
        "fit: a damaged table",
        "fit damaged.parquet --method baseline --out m",
        "damaged.parquet: cannot be read",
        "repair or export it again",
        text("damaged.parquet", b"PAR1 nothing PAR1"),
    ),
    Case("resume: no checkpoint", RESUMED, "there is no m.checkpoint", "leave --resume out"),
    Case(
        "resume: checkpoint is text",
        RESUMED,
        "m.checkpoint: not a checkpoint, or damaged",
        "delete it",
        text(CHECKPOINT, "junk"),
    ),
    Case(
        "resume: checkpoint is a model",
        RESUMED,
        "m.checkpoint: not a checkpoint, or damaged",
        "delete it",
        lambda: Path(CHECKPOINT).write_bytes(Path(MODEL).read_bytes()),
    ),
    Case(
        "resume: checkpoint cut off",
        RESUMED,
        "m.checkpoint: not a checkpoint, or damaged",
        "delete it",
        several(stopped(), cut(CHECKPOINT, 900)),
    ),
    Case(
        "resume: checkpoint damaged",
        RESUMED,
        "m.checkpoint: not a checkpoint, or damaged",
        "delete it",
        several(stopped(), patch(CHECKPOINT, 900, b"\xff\xff\xff")),
    ),
    Case(
        "resume: other epochs",
        RESUMED.replace("epochs=5", "epochs=6"),
        "m.checkpoint: the checkpoint is of another training",
        "delete it and train from the start",
        stopped(),
    ),
    Case(
        "resume: other seed",
        f"{RESUMED} --seed 1",
        "m.checkpoint: the checkpoint is of another training",
        "delete it and train from the start",
        stopped(),
    ),
    Case(
        "resume: other layers",
        RESUMED,
        "m.checkpoint: the checkpoint is of another training",
        "delete it and train from the start",
        stopped(hidden=[2]),
    ),
    Case(
        "resume: other precision",
        RESUMED,
        "m.checkpoint: the checkpoint is of another training",
        "delete it and train from the start",
        stopped(mixed_precision=True),
    ),
    Case(
        "resume: other groups",
        f"{RESUMED} --attribute gender",
        "m.checkpoint: the checkpoint is of another training",
        "delete it and train from the start",
        stopped(),
    ),
    Case(
        "resume: other data",
        RESUMED,
        "m.checkpoint: the checkpoint is of another training",
        "delete it and train from the start",
        several(stopped(), array(VECTORS, lambda a: a[:, ::-1])),
    ),
    Case(
        "resume: other method",
        "fit faces --method agenda --resume --out m",
        "m.checkpoint: the checkpoint is of another training",
        "delete it and train from the start",
        stopped(),
    ),
    # The checkpoint may be of days of work: a mistake in another command does not cost it.
    Case(
        "no resume: a checkpoint is there",
        FTC,
        "m.checkpoint is there from a fit that was interrupted",
        "go on with --resume, or delete it",
        text(CHECKPOINT, "days of work"),
    ),
    Case(
        "benchmark: multipass with one attribute",
        f"{BENCH} --methods multipass --attribute gender",
        "faces: method multipass cannot run: it takes two or more attributes",
        "leave it out",
    ),
    Case(
        "benchmark: multipass with attributes one by one",
        f"{BENCH} --methods multipass --attribute gender,ethnicity",
        "faces: method multipass cannot run: it takes two or more attributes",
        "leave it out",
    ),
    Case(
        "benchmark: agenda without identities",
        f"{BENCH} --methods baseline,agenda",
        "faces: method agenda cannot run: it needs to know who is in each image",
        "leave it out",
        column(IMAGES, "identity", None),
    ),
    Case(
        "benchmark: ftc of scores",
        "benchmark scores.csv --methods ftc --out b",
        "scores.csv: method ftc cannot run: it needs embeddings",
        "leave it out",
    ),
    Case(
        "benchmark: ftc is not run",
        f"{BENCH} --methods baseline --set ftc.epochs=1",
        "ftc",
        "leave them out",
    ),
    Case(
        "benchmark: ftc without epochs",
        f"{BENCH} --methods ftc --set ftc.epochs=0",
        "epochs",
        "1 or more",
    ),
    Case(
        "benchmark: ftc.hidden is a number",
        f"{BENCH} --methods ftc --set ftc.hidden=4",
        "hidden",
        "a list of numbers",
    ),
    Case(
        "benchmark: ftc.hidden is units",
        f"{BENCH} --methods ftc --set ftc.hidden=[2048]",
        "hidden",
        "(4, 4) makes two",
    ),
    Case(
        "benchmark: ftc's attribute",
        f"{BENCH} --methods ftc --set ftc.attribute=gender",
        "ftc.attribute is set by --attribute",
        "use that",
    ),
    Case(
        "benchmark: pass with a seed of its own",
        f"{BENCH} --methods pass --set pass.random_state=1",
        "pass.random_state is set by --seed",
        "use that",
    ),
    Case(
        "benchmark: unknown preset",
        f"{BENCH} --methods pass --set pass.preset=papercode",
        "'papercode'",
        "did you mean paper-code?",
    ),
    Case("demo: --all is a file", "demo --all --out notes.txt", "notes.txt", "give another path"),
]

NEWER = several(patch(MODEL, 8, struct.pack("<I", 99)))
SCORE_CASES = [
    Case("score: no model", "score nowhere faces --out s.csv", "nowhere", "check the path"),
    Case("score: model is a folder", "score two faces --out s.csv", "two", "give the .faircal"),
    Case("score: model is text", "score notes.txt faces --out s.csv", "notes.txt", "faircal fit"),
    Case("score: model is empty", SCORE, MODEL, "faircal fit", text(MODEL, "")),
    Case("score: model cut off", SCORE, MODEL, "fit it again", cut(MODEL, 700)),
    Case("score: model damaged", SCORE, MODEL, "fit it again", patch(MODEL, 400, b"\xff\xff")),
    Case("score: model from the future", SCORE, f"{MODEL}: written in format 99", "upgrade", NEWER),
    Case("score: no such data", f"score {MODEL} nowhere --out s.csv", "nowhere", "check the path"),
    Case("score: out has no suffix", f"score {MODEL} faces --out s", "--out s", ".parquet or .csv"),
    Case(
        "score: out is a folder",
        f"score {MODEL} faces --out d.csv",
        "d.csv",
        "path of a file",
        lambda: Path("d.csv").mkdir(),
    ),
    Case(
        "score: out below a file",
        f"score {MODEL} faces --out notes.txt/s.csv",
        "notes.txt",
        "another path",
    ),
    Case("score: other dimension", f"score {MODEL} wide --out s.csv", "4-d", "use the network"),
    Case("score: other scaling", f"{SCORE} --raw", "normalize", "same way"),
    Case("score: several features", f"score {MODEL} two --out s.csv", "two: has", "--feature"),
    Case("score: unknown feature", f"{SCORE} --feature arc", "named 'arc'", "known: embedding"),
    Case("score: unknown fold", f"{SCORE} --fold x", "no fold 'x'", "expected one of 1, 2"),
    Case("score: unknown column to keep", f"{SCORE} --keep gendr", "--keep gendr", "mean gender?"),
    Case(
        "score: label to keep is missing",
        f"{SCORE} --keep genuine",
        "'genuine'",
        "add it",
        column(PAIRS, "genuine", None),
    ),
    Case("score: unknown engine", f"{SCORE} --engine cloud", "--engine", "local"),
    Case(
        "score: no embeddings for it",
        f"score {MODEL} scores.csv --out s.csv",
        "scores",
        "choose another method",
    ),
    Case(
        "score: no attribute for it",
        "score oracle.faircal plain --out s.csv",
        "plain: attribute 'ethnicity' is not in the data",
        "there are none",
    ),
    Case(
        "score: other score range",
        "score baseline.faircal scores.csv --score-range -2,2 --out s.csv",
        "scores",
        "use the same score_range",
    ),
    Case(
        "score: other dimension, folds drawn",
        f"score {MODEL} wide --fold 1 --out s.csv",
        "4-d",
        "use the network",
        column("wide/pairs.csv", "fold", None),
    ),
]

AUDIT_CASES = [
    Case("audit: no such data", "audit nowhere --out a", "nowhere", "check the path"),
    Case("audit: unknown attribute", f"{AUDIT} --attribute ethnicty", "'ethnicty'", "ethnicity?"),
    Case("audit: threshold is a word", f"{AUDIT} --threshold high", "--threshold", "float"),
    Case("audit: threshold is NaN", f"{AUDIT} --threshold nan", "threshold", "finite"),
    Case("audit: rate above 1", f"{AUDIT} --rates 2", "rates", "0.01"),
    Case("audit: rates are words", f"{AUDIT} --rates low", "--rates", "commas"),
    Case("audit: rates are empty", f"{AUDIT} --rates 0.1,,0.2", "--rates", "commas"),
    Case("audit: unknown fold", f"{AUDIT} --fold 7", "no fold '7'", "expected one of 1, 2"),
    Case("audit: no model", f"{AUDIT} --model nowhere", "nowhere", "check the path"),
    Case("audit: model is text", f"{AUDIT} --model notes.txt", "notes.txt", "faircal fit"),
    Case(
        "audit: model of another dimension",
        f"audit wide --out a --model {MODEL}",
        "4-d",
        "use the network",
    ),
    Case(
        "audit: no labels",
        "audit faces --out a",
        "column 'genuine'",
        "add it",
        column(PAIRS, "genuine", None),
    ),
    Case("audit: out is a file", "audit faces --out notes.txt", "notes.txt", "another path"),
    Case("audit: out below a file", "audit faces --out notes.txt/a", "notes.txt", "another path"),
]

BENCHMARK = [
    Case("benchmark: no such data", "benchmark nowhere --out b", "nowhere", "check the path"),
    Case(
        "benchmark: one fold",
        BENCH,
        "two or more folds, found 1",
        "drop the column 'fold'",
        column(PAIRS, "fold", [1] * 132),
    ),
    Case("benchmark: unknown method", f"{BENCH} --methods faircla", "'faircla'", "mean faircal?"),
    Case("benchmark: unknown calibrator", f"{BENCH} --calibrators bet", "'bet'", "mean beta?"),
    Case("benchmark: unknown feature", f"{BENCH} --features arc", "'arc'", "known: embedding"),
    Case(
        "benchmark: unknown attribute",
        f"{BENCH} --attribute gender+sex",
        "'sex'",
        "known: ethnicity, gender",
    ),
    Case(
        "benchmark: method without embeddings",
        "benchmark scores.csv --methods faircal --out b",
        "method faircal cannot run",
        "leave it out",
    ),
    Case(
        "benchmark: method without attribute",
        "benchmark plain --methods oracle --out b",
        "method oracle cannot run",
        "leave it out",
    ),
    Case(
        "benchmark: too many clusters",
        "benchmark faces --clusters 3,99 --out b",
        "99",
        "(--clusters)",
    ),
    Case("benchmark: no clusters", "benchmark faces --clusters 0 --out b", "clusters", "1 or more"),
    Case(
        "benchmark: clusters is a word",
        "benchmark faces --clusters few --out b",
        "--clusters",
        "commas",
    ),
    Case(
        "benchmark: method twice",
        f"{BENCH} --methods gst,gst",
        "gst is given twice",
        "name it once",
    ),
    Case("benchmark: rate of 0", f"{BENCH} --rates 0", "rates", "between 0 and 1"),
    Case(
        "benchmark: unknown threshold",
        f"{BENCH} --threshold-on train",
        "--threshold-on",
        "'calibration'",
    ),
    Case("benchmark: no jobs", "benchmark faces --out b --jobs 0", "--jobs", "x>=1"),
    Case(
        "benchmark: two cohorts",
        f"{BENCH} --cohort faces --draw-cohort 3",
        "--cohort and --draw-cohort",
        "give one of them",
    ),
    Case(
        "benchmark: a cohort of too few people",
        f"{BENCH} --methods baseline --draw-cohort 9",
        "people drawn as a cohort: expected two or more people in a group",
        "add people",
    ),
    Case(
        "benchmark: other imposters of scores",
        "benchmark scores.csv --features score --calibration-imposters random --out b",
        "found ready-made scores",
        "take the imposters as given",
    ),
    Case("benchmark: no starts", f"{BENCH} --n-init 0", "--n-init", "x>=1"),
    Case("benchmark: negative seed", f"{BENCH} --seed -3", "--seed", "x>=0"),
    Case(
        "benchmark: --set without method",
        f"{BENCH} --set min_pairs=5",
        "--set",
        "method.name=value",
    ),
    Case(
        "benchmark: --set of no method",
        f"{BENCH} --set fcal.min_pairs=5",
        "'fcal'",
        "mean faircal?",
    ),
    Case("benchmark: --set of no parameter", f"{BENCH} --set faircal.min=5", "'min'", "known: "),
    Case(
        "benchmark: --set of a word",
        f"{BENCH} --set faircal.min_pairs=x",
        "min_pairs",
        "whole number",
    ),
    Case(
        "benchmark: no labels", BENCH, "column 'genuine'", "add it", column(PAIRS, "genuine", None)
    ),
    Case(
        "benchmark: one class only",
        BENCH,
        "one class only",
        "mix both classes",
        column(PAIRS, "genuine", [1] * 132),
    ),
    Case(
        "benchmark: one class in a fold",
        BENCH,
        "one class",
        "class",
        column(PAIRS, "genuine", lambda old: [1] * 66 + [0] * 66),
    ),
    Case(
        "benchmark: resume with another seed",
        "benchmark faces --methods baseline --seed 1 --resume --out results",
        "results",
        "without --resume",
    ),
    Case(
        "benchmark: resume with other data",
        "benchmark wide --methods baseline --resume --out results",
        "results: data, settings or plugins",
        "choose another folder",
    ),
    Case(
        "benchmark: resume of a spoilt run",
        "benchmark faces --methods baseline --resume --out results",
        ".json: not valid JSON",
        "run without --resume",
        lambda: [path.write_text("{") for path in Path("results").glob("parts/*/*.json")],
    ),
    Case(
        "benchmark: out is a file", "benchmark faces --out notes.txt", "notes.txt", "another path"
    ),
    Case(
        "benchmark: out below a file",
        "benchmark faces --out notes.txt/b",
        "notes.txt",
        "another path",
    ),
    Case(
        "benchmark: unknown method, folds drawn",
        f"{BENCH} --methods nope",
        "'nope'",
        "known: ",
        column(PAIRS, "fold", None),
    ),
]

RESULTS = "results/results.csv"
REPORT = [
    Case("report: no such folder", "report nowhere", "nowhere", "check the path"),
    Case("report: a file", "report notes.txt", "notes.txt/results.csv", "faircal benchmark"),
    Case("report: no results", "report faces", "faces/results.csv: not found", "faircal benchmark"),
    Case(
        "report: empty",
        "report results",
        RESULTS,
        "run the benchmark or audit again",
        text(RESULTS, ""),
    ),
    Case(
        "report: other columns",
        "report results",
        f"{RESULTS}: expected columns dataset",
        "run the benchmark or audit again",
        text(RESULTS, "a,b\n1,2\n"),
    ),
    Case(
        "report: value is a word",
        "report results",
        f"{RESULTS}, line 5",
        "again",
        cell(RESULTS, "value", 4, "high"),
    ),
    Case("report: row cut off", "report results", f"{RESULTS}, line ", "again", cut(RESULTS, 1000)),
    Case(
        "report: no rows",
        "report results",
        "results.csv has no rows",
        "again",
        lambda: Path(RESULTS).write_text(Path(RESULTS).read_text().splitlines()[0] + "\n"),
    ),
    Case(
        "report: run.json is not JSON",
        "report results",
        "results/run.json",
        "again",
        text("results/run.json", "no"),
    ),
    Case(
        "report: run.json is a list",
        "report results",
        "results/run.json: expected an object",
        "again",
        text("results/run.json", "[]"),
    ),
]

CASES = [
    *USAGE,
    *DEMO,
    *SIMULATE,
    *FOLDER,
    *TABLE,
    *FIT_CASES,
    *TRAINED,
    *SCORE_CASES,
    *AUDIT_CASES,
    *BENCHMARK,
    *REPORT,
]


# --------------------------------------------------------------------------- the tests


def tree(home: Path) -> dict[str, str]:
    """Return every path below `home` with a hash of its content."""
    return {
        str(path.relative_to(home)): "folder"
        if path.is_dir()
        else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(home.rglob("*"))
    }


def check_message(case: Case, err: str) -> None:
    assert err.endswith("\n")
    assert err.count("\n") == 1, err
    assert err.startswith("faircal: ")
    for word in (case.place, case.remedy):
        assert word in err


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_line_exit_2_and_nothing_written(case, world, run_here):
    if case.spoil is not None:
        case.spoil()
    before = tree(world)
    done = run_here(case.command.split())
    assert done.code == 2, done.err
    check_message(case, done.err)
    assert bool(done.out) == case.prints
    assert tree(world) == before


SAMPLE = (
    "unknown command",
    "demo: out below a file",
    "pairs: unknown image",
    "embeddings: too large for float32",
    "score: model damaged",
    "benchmark: too many clusters",
)


@pytest.mark.parametrize("name", SAMPLE)
def test_same_as_a_process_of_its_own(name, world, run_command):
    case = next(case for case in CASES if case.name == name)
    if case.spoil is not None:
        case.spoil()
    before = tree(world)
    done = run_command(*case.command.split(), code=2, cwd=world)
    check_message(case, done.stderr)
    assert not done.stdout
    assert tree(world) == before


def test_cases_are_many_and_distinct():
    assert len({case.name for case in CASES}) == len(CASES) >= 70
    assert len({(case.command, case.place, case.spoil) for case in CASES}) == len(CASES)


def test_verbose_shows_the_trace(world, run_here):
    done = run_here(["--verbose", "check", "nowhere"])
    assert done.code == 2
    assert "Traceback" in done.err
    assert done.err.splitlines()[-1].startswith("faircal: nowhere")


def test_anything_else_is_exit_1(world, run_here, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("the roof\nis on fire")

    monkeypatch.setattr("faircal.data.pair_files.load", fails)
    done = run_here(["check", "faces"])
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert "unexpected error (RuntimeError: the roof is on fire)" in done.err
    assert "--verbose" in done.err


@pytest.mark.parametrize(
    ("where", "hint"),
    [
        ("faircal.workflows.benchmark.run_benchmark", "and the benchmark goes on with --resume"),
        ("faircal.data.pair_files.load", "what is written stays"),
    ],
)
def test_interrupted_says_how_to_go_on(world, run_here, monkeypatch, where, hint):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, stopped)
    done = run_here(["benchmark", "faces", "--out", "b"])
    assert done.code == 1
    assert done.err.splitlines()[-1].endswith(hint)
