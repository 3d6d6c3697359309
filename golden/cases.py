"""The cases: each runs one part of faircal on small seeded data, and on real data where it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from golden.recorder import Recorder
from golden.values import text_hash

CASES: dict[str, Callable[[Recorder], None]] = {}

REAL = Path(__file__).resolve().parents[2] / "shared" / "data"
CALIBRATORS = ("beta", "histogram", "isotonic", "platt", "temperature", "spline")
UNTRAINED = {
    "baseline": "",
    "faircal": "--clusters 12",
    "oracle": "",
    "gst": "",
    "fsn": "--clusters 12",
    "smooth": "--set n_regions=10 --set n_dimensions=8",
}
_STAGES = (
    "--set width=8 --set discriminator=[6] --set identity_epochs=2 --set episodes=2 --set"
    " restart_every=1 --set discriminator_epochs=1 --set debias_epochs=1 --set update_epochs=1"
    " --set stop_at=1"
)
#: Schedules with which the trained methods pass all their stages in a moment.
TRAINED = {
    "agenda": f"{_STAGES} --set squash=true",
    "pass": _STAGES,
    "multipass": _STAGES + """ --set 'n_discriminators={"gender": 1, "ethnicity": 2}'""",
    "ftc": "--set epochs=4 --set 'hidden=[1, 0.5]'",
}
SIZES = "--people 160 --pairs 6000 --dimension 32"


def case(function: Callable[[Recorder], None]) -> Callable[[Recorder], None]:
    """Add a case, under the name of its function."""
    CASES[function.__name__] = function
    return function


def lacks(path: Path) -> bool:
    """Whether real data is absent, which is then said."""
    if not path.exists():
        print(f"(skipped: no {path}) ", end="")
    return not path.exists()


def simulate(run: Recorder, name: str = "faces", options: str = SIZES) -> None:
    """Simulate a small dataset folder for a case."""
    run.faircal(f"simulate-{name}", f"simulate small @{name} {options}")


def fit(run: Recorder, method: str, options: str = "", data: object = "@faces") -> None:
    """Fit a model on all folds but 5."""
    words = f"{data} --method {method} --leave-out 5 --out @{method}.faircal"
    run.faircal(f"fit-{method}", f"fit {words} {options}")


def score(run: Recorder, method: str, data: str = "faces", out: str = "scored.parquet") -> None:
    """Score fold 5 with all that can be added and kept."""
    words = "--fold 5 --keep genuine,identity,fold,ethnicity,gender"
    words += " --add log_likelihood_ratio,similarity,clusters,outside"
    run.faircal(out, f"score @{method}.faircal @{data} {words} --out @{out}")
    run.file(f"{out}/table", out)


def with_folder(run: Recorder, name: str, command: str, out: str = "") -> None:
    """Run a command that writes a folder of results, and record what is in it."""
    run.faircal(name, f"{command} --out @{out or name}")
    run.folder(f"{name}-folder", out or name)


@case
def simulated(run: Recorder) -> None:
    """What the presets draw, and what check says of it."""
    import faircal

    sizes = {
        "small": {},
        "rfw-like": {"people": 300, "pairs": 1200},
        "bfw-like": {"people": 80, "pairs": 2000, "dimension": 16},
    }
    for preset, size in sizes.items():
        data = faircal.simulate(preset, seed=3, **size)
        run.values[f"{preset}/vectors"] = text_hash(np.asarray(data.embeddings.vectors).tolist())
        for name in ("left", "right", "genuine", "fold"):
            run.numbers(f"{preset}/{name}", getattr(data.pairs, name))
    simulate(run)
    run.file("images", "faces/images.csv")
    run.file("pairs", "faces/pairs.csv")
    run.faircal("check", "check @faces")
    run.faircal("check-gender", "check @faces --attribute gender")
    run.faircal("methods", "methods")


@case
def drawn_pairs(run: Recorder) -> None:
    """Pairs and folds that are drawn from identities, each kind of imposters."""
    import faircal

    simulate(run)
    for kind in ("random", "group", "cross", "cluster", "matched", "hard"):
        words = "--ratio 1 --genuine 5 --folds 4 --seed 2 --clusters 5"
        run.faircal(kind, f"pairs @faces --imposters {kind} {words} --out @{kind}.parquet")
        run.file(f"{kind}/table", f"{kind}.parquet")
    run.faircal("into", "pairs @faces --size 1000 --out @drawn")
    run.faircal("check", "check @drawn")
    table = pq.read_table(run.work / "random.parquet")
    pq.write_table(table.drop_columns(["fold"]), run.work / "drawn" / "pairs.parquet")
    (run.work / "drawn" / "pairs.csv").unlink(missing_ok=True)
    run.numbers("folds", faircal.load(run.work / "drawn", seed=4).pairs.fold)


@case
def fit_and_score(run: Recorder) -> None:
    """Every method without training, every calibrator, priors, a streamed fit; model cards."""
    simulate(run)
    for method, options in UNTRAINED.items():
        fit(run, method, options)
        run.faircal(f"score-{method}", f"score @{method}.faircal @faces --out @{method}.parquet")
        run.file(f"score-{method}/table", f"{method}.parquet")
        run.faircal(f"card-{method}", f"card @{method}.faircal")
    for name in CALIBRATORS:
        words = f"--calibrator {name} --clusters 8 --seed 1 --out @{name}.faircal"
        run.faircal(f"fit-{name}", f"fit @faces {words}")
        run.faircal(name, f"score @{name}.faircal @faces --out @{name}.csv")
        run.file(f"{name}/table", f"{name}.csv")
    score(run, "faircal")
    for prior in ("0.001", "estimate"):
        words = f"--prior {prior} --out @prior.parquet"
        run.faircal(f"prior-{prior}", f"score @faircal.faircal @faces {words}")
        run.file(f"prior-{prior}/table", "prior.parquet")
    run.faircal("fit-streamed", "fit @faces --clusters 12 --stream --out @streamed.faircal")
    run.faircal("card-streamed", "card @streamed.faircal")


@case
def rivals(run: Recorder) -> None:
    """Score normalisation and its like, of the years after the paper."""
    simulate(run)
    methods = ("dsn", "dsn --set variant=cdf", "snorm", "asnorm --set k=20", "falcon")
    for number, method in enumerate(methods):
        words = f"fit @faces --method {method} --leave-out 5 --out @{number}.faircal"
        run.faircal(f"fit-{number}", words)
        run.faircal(f"score-{number}", f"score @{number}.faircal @faces --out @{number}.parquet")
        run.file(f"score-{number}/table", f"{number}.parquet")


@case
def trained(run: Recorder) -> None:
    """The trained methods with very short schedules, on the processor."""
    try:
        import torch
    except ImportError:
        print("(skipped: no torch) ", end="")
        return
    torch.set_num_threads(1)
    simulate(run, options="--people 80 --pairs 1500 --dimension 16")
    for method, options in TRAINED.items():
        fit(run, method, f"--device cpu {options}")
        run.faircal(f"score-{method}", f"score @{method}.faircal @faces --out @{method}.parquet")
        run.file(f"score-{method}/table", f"{method}.parquet")


@case
def audits(run: Recorder) -> None:
    """Audits of scored tables and of a model: identities, threshold, label noise, streamed."""
    simulate(run, options="--people 240 --pairs 20000 --dimension 32")
    fit(run, "faircal", "--clusters 12")
    score(run, "faircal")
    audit = "audit @scored.parquet --attribute ethnicity"
    with_folder(run, "plain", audit)
    with_folder(run, "fixed", f"{audit} --threshold 0.8 --rates 0.01,0.05 --label-noise 0.05")
    with_folder(run, "streamed", f"{audit} --stream")
    model = "--model @faircal.faircal --fold 5 --attribute ethnicity+gender"
    with_folder(run, "model", f"audit @faces {model}")
    with_folder(run, "cosine", "audit @faces --attribute ethnicity --rates 0.02,0.1")
    table = pq.read_table(run.work / "scored.parquet")
    table = table.select(["genuine", "score", "left_ethnicity", "right_ethnicity"])
    pq.write_table(table, run.work / "nobody.parquet")
    run.faircal("nobody", "audit @nobody.parquet --attribute ethnicity --out @without")
    run.folder("without-folder", "without")
    run.faircal("report", "report @plain")
    run.folder("reported-folder", "plain")
    run.faircal("compare", "compare @plain @fixed --metrics ks")


@case
def benchmarks(run: Recorder) -> None:
    """Every method without training, sweeps, resuming, two jobs, thresholds from calibration."""
    simulate(run)
    smooth = "--set smooth.n_regions=10 --set smooth.n_dimensions=8"
    words = f"--methods {','.join(UNTRAINED)} --clusters 10 {smooth} --jobs 1"
    with_folder(run, "all", f"benchmark @faces {words}")
    words = "--methods baseline,faircal --clusters 5,10 --calibrators isotonic,spline --jobs 1"
    words += " --attribute ethnicity,gender --threshold-on calibration --rates 0.01,0.1 --seed 1"
    with_folder(run, "sweep", f"benchmark @faces {words}")
    tuned = "benchmark @faces --methods gst,fsn --retune --clusters 8 --jobs 2"
    with_folder(run, "retuned", tuned)
    with_folder(run, "resumed", f"{tuned} --resume", "retuned")
    compare = "compare @all @all --method baseline,faircal"
    run.faircal("compare", f"{compare} --gate", exits=(0, 1))
    words = "--metrics fpr,auroc --gate noninferior --margin 0.01"
    run.faircal("noninferior", f"{compare} {words}", exits=(0, 1))
    run.faircal("report", "report @all")


@case
def moved(run: Recorder) -> None:
    """Calibrated on one population, tested on another; and another preset."""
    simulate(run, "here")
    simulate(run, "there", f"{SIZES} --seed 5")
    words = "--calibrate-on @here --test-on @there --labels 100,1000 --people-apart"
    with_folder(run, "moved", f"benchmark {words} --methods baseline,faircal --clusters 8 --jobs 1")
    run.faircal("simulate", "simulate rfw-like @rfw --people 800 --pairs 4000 --dimension 64")
    words = "--methods baseline,faircal,oracle,gst,fsn --clusters 10 --jobs 1"
    with_folder(run, "rfw", f"benchmark @rfw {words}", "rfw-results")


@case
def thresholds(run: Recorder) -> None:
    """Thresholds by every rule, plans, and what they are kept in; the ONNX graph of a model."""
    simulate(run, options="--people 300 --pairs 20000 --dimension 32")
    fit(run, "faircal", "--clusters 12")
    asked = {
        "global": "--fpr 0.05",
        "groups": "--fpr 0.1 --within groups --attribute gender",
        "clusters": "--fpr 0.1 --within clusters --clusters 4",
        "measured": "--fpr 0.01 --rule measured",
        "rare": "--fpr 0.0001",
    }
    model = "threshold @faircal.faircal @faces"
    for name, words in asked.items():
        run.faircal(name, f"{model} --fold 5 {words}", exits=(0, 1))
        run.faircal(f"{name}-cosine", f"threshold @faces {words}", exits=(0, 1))
    words = "--fold 5 --fpr 0.05 --prior 0.01 --confidence 0.9"
    run.faircal("prior", f"{model} {words}", exits=(0, 1))
    run.faircal("kept", f"{model} --fold 5 --fpr 0.05 --out @decides.faircal")
    run.faircal("card", "card @decides.faircal")
    words = "--add decision --out @decided.parquet"
    run.faircal("decided", f"score @decides.faircal @faces {words}")
    run.file("decided/table", "decided.parquet")
    run.faircal("plan", "plan --rate 0.01 --within 0.005 --groups 8")
    run.faircal("plan-ratio", "plan --rate 0.001 --ratio 2 --per-person 50")
    run.faircal("plan-people", "plan --rate 0.01 --people 200")
    run.faircal("plan-pilot", "plan --rate 0.05 --within 0.02 --pilot @faces")
    exported(run)


def exported(run: Recorder) -> None:
    """Run the ONNX graph of a model on pairs of vectors."""
    import onnxruntime

    import faircal

    run.faircal("export", "export @decides.faircal --onnx @model.onnx")
    data = faircal.load(run.work / "faces")
    vectors, rows = np.asarray(data.embeddings.vectors, dtype=np.float32), slice(0, 500)
    graph = str(run.work / "model.onnx")
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    sides = (vectors[data.pairs.left[rows]], vectors[data.pairs.right[rows]])
    given = dict(zip([x.name for x in session.get_inputs()], sides, strict=True))
    names = [x.name for x in session.get_outputs()]
    for name, numbers in zip(names, session.run(names, given), strict=True):
        run.numbers(f"onnx/{name}", numbers)


@case
def regions_and_choice(run: Recorder) -> None:
    """Regions of embedding space, and the choice of K and calibrator."""
    simulate(run, options="--people 240 --pairs 12000 --dimension 16")
    fit(run, "baseline")
    regions = "regions @faces --clusters 3,6 --rate 0.05 --false-discoveries 0.2"
    with_folder(run, "regions", regions)
    with_folder(run, "model", f"{regions} --model @baseline.faircal", "of-model")
    choose = "choose @faces --clusters 3,6 --starts 2 --folds 3"
    run.faircal("choose", choose)
    run.faircal("choose-within", f"{choose} --calibrators platt --within 1")


@case
def monitored(run: Recorder) -> None:
    """Pairs in use that still fit a model, and others; with state, and labels."""
    simulate(run)
    fit(run, "faircal", "--clusters 8")
    score(run, "faircal")
    simulate(run, "others", f"{SIZES} --seed 9")
    score(run, "faircal", "others", "away.parquet")
    monitor = "monitor @faircal.faircal"
    run.faircal("same", f"{monitor} @scored.parquet --out @same", exits=(0, 1))
    run.folder("same-folder", "same")
    run.faircal("away", f"{monitor} @scored.parquet @away.parquet --ordered", exits=(0, 1))
    run.faircal("data", f"{monitor} @others", exits=(0, 1))
    for night, table in enumerate(("scored", "away")):
        words = f"@{table}.parquet --state @state.watch --false-alarms 0.05"
        run.faircal(f"night-{night}", f"{monitor} {words}", exits=(0, 1))


@case
def score_tables(run: Recorder) -> None:
    """Tables of scores alone, with and without people, of another range; owners' layouts."""
    simulate(run)
    fit(run, "baseline")
    score(run, "baseline")
    scored = pq.read_table(run.work / "scored.parquet")
    similarity = scored["similarity"].to_numpy()
    people = ["left_identity", "right_identity"]
    table = scored.select(["genuine", *people, "left_ethnicity", "right_ethnicity"])
    table = table.append_column("vendor", pa.array(50 + 50 * similarity))
    table = table.append_column("other", pa.array(50 + 40 * similarity**3))
    pq.write_table(table, run.work / "vendor.parquet")
    scale = "@vendor.parquet --score-range 0,100"
    run.faircal("check", f"check {scale}")
    with_folder(run, "audit", f"audit {scale} --attribute ethnicity")
    words = "--feature vendor --method oracle --attribute ethnicity --out @vendor.faircal"
    run.faircal("fit", f"fit {scale} {words}")
    run.faircal("score", f"score @vendor.faircal {scale} --feature vendor --out @rescored.csv")
    run.file("score/table", "rescored.csv")
    words = "--methods baseline,oracle,gst --attribute ethnicity --jobs 1"
    with_folder(run, "benchmark", f"benchmark {scale} {words}", "results")
    run.faircal("threshold", f"threshold {scale} --feature other --fpr 0.1", exits=(0, 1))
    rows = table.select([*people, "vendor"]).to_pylist()
    lines = ("{left_identity} {right_identity} probe/{right_identity}/%d {vendor!r}\n",)
    text = "".join((lines[0] % i).format(**row) for i, row in enumerate(rows))
    (run.work / "scores-dev").write_text(text)
    run.faircal("bob", "import bob @scores-dev --out @bob")
    run.file("bob/pairs", "bob/pairs.csv")


def class_rows(run: Recorder) -> pa.Table:
    """Rows of a made-up classifier that is too sure of itself in one region."""
    rng = np.random.default_rng(11)
    n, labels = 3000, np.arange(3000) % 3
    site = rng.integers(0, 2, n)
    features = rng.normal(size=(n, 4)) + labels[:, None] * 0.8 + 3.0 * site[:, None]
    logits = 1.2 * np.eye(3)[labels] + rng.normal(size=(n, 3))
    logits *= np.where(site, 2.5, 1.0)[:, None]
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    table = {"label": [f"c{k}" for k in labels]}
    table |= {f"p_c{k}": p[:, k] for k in range(3)}
    table |= {f"feature_{k}": features[:, k] for k in range(4)}
    table |= {"site": [f"site {s}" for s in site], "identity": [f"u{i // 4}" for i in range(n)]}
    pq.write_table(pa.table(table), run.work / "rows.parquet")
    return pa.table(table)


@case
def classifier(run: Recorder) -> None:
    """Rows of a classifier: fit, apply, audit, benchmark."""
    class_rows(run)
    fitting = "classify fit @rows.parquet --clusters 4 --out @classes.faircal"
    for name in ("dirichlet", "temperature", "vector", "matrix", "isotonic", "histogram"):
        run.faircal(f"fit-{name}", f"{fitting} --calibrator {name} --shrinkage 50")
        run.faircal(name, "classify apply @classes.faircal @rows.parquet --out @applied.parquet")
        run.file(f"{name}/table", "applied.parquet")
    run.faircal("fit", f"{fitting} --seed 2")
    run.faircal("card", "card @classes.faircal")
    words = "@rows.parquet --attribute site"
    with_folder(run, "audit", f"classify audit {words} --model @classes.faircal")
    words = f"{words} --clusters 4 --folds 3"
    with_folder(run, "benchmark", f"classify benchmark {words}", "results")


@case
def python_names(run: Recorder) -> None:
    """The names of interfaces.md: methods, calibrators, metrics, audit."""
    import faircal

    simulate(run)
    cal, test = faircal.load(run.work / "faces").split(test_fold=5)
    methods = {
        "baseline": faircal.Baseline(),
        "faircal": faircal.FairCal(n_clusters=10, random_state=0),
        "oracle": faircal.Oracle(calibrator="isotonic"),
        "gst": faircal.GST(),
        "fsn": faircal.FSN(n_clusters=10),
    }
    for name, method in methods.items():
        model = method.fit(cal)
        model.save(run.work / f"{name}.faircal")
        loaded = faircal.load_model(run.work / f"{name}.faircal")
        run.numbers(f"{name}/probability", model.predict_proba(test))
        run.numbers(f"{name}/score", loaded.decision_scores(test))
    fair = methods["faircal"]
    run.numbers("centers", fair.cluster_centers_)
    p, s, genuine = fair.predict_proba(test), fair.decision_scores(test), test.genuine
    scores, labels = methods["baseline"].decision_scores(cal), cal.genuine
    for name in CALIBRATORS:
        calibrator = getattr(faircal, f"{name.title()}Calibrator")()
        run.numbers(f"calibrator-{name}", calibrator.fit(scores, labels).predict(np.sort(s)))
    for name in ("ks", "ece", "brier", "nll", "cllr"):
        run.numbers(f"metrics/{name}", getattr(faircal.metrics, name)(p, genuine))
    run.numbers("metrics/auroc", faircal.metrics.auroc(s, genuine))
    groups = test.groups("ethnicity")
    names = [groups.names[k] if k >= 0 else None for k in np.asarray(groups.pair)]
    images = csv.read_csv(run.work / "faces" / "images.csv")
    people = np.asarray(images["identity"])
    left, right = people[np.asarray(test.pairs.left)], people[np.asarray(test.pairs.right)]
    given = {"probability": p, "score": s, "genuine": genuine, "groups": names, "threshold": 0.7}
    _audit(run, "nobody", faircal.audit(**given))
    _audit(run, "people", faircal.audit(**given, left_identity=left, right_identity=right))
    _audit(run, "one-class", faircal.audit(score=s[~genuine], genuine=genuine[~genuine]))


def _audit(run: Recorder, name: str, audit: Any) -> None:
    pq.write_table(audit.table.select(range(12)), run.work / "audit.parquet")
    run.file(f"audit-{name}/table", "audit.parquet")
    for metric in ("fpr", "fnr", "ks"):
        for group in ("global", "Asian"):
            for what in ("value", "interval"):
                key = f"audit-{name}/{what}-{metric}-{group}"
                try:
                    number = getattr(audit, what)(metric, group=group)
                except Exception as error:  # which error is part of the surface
                    run.values[key] = type(error).__name__
                else:
                    run.numbers(key, number)


@case
def python_classes(run: Recorder) -> None:
    """FairCalClassifier, on made-up rows and on CIFAR's probabilities."""
    import faircal

    table = class_rows(run)
    p = np.column_stack([table[f"p_c{k}"].to_numpy() for k in range(3)])
    features = np.column_stack([table[f"feature_{k}"].to_numpy() for k in range(4)])
    y = np.array(table["label"].to_pylist())
    for shrinkage in ("cv", 0, 100):
        model = faircal.FairCalClassifier(n_clusters=5, shrinkage=shrinkage, random_state=0)
        model.fit_calibration(p[:2000], y[:2000], features=features[:2000])
        run.numbers(f"shrinkage-{shrinkage}", model.calibrate(p[2000:], features=features[2000:]))
    if lacks(REAL / "cifar10-vgg"):
        return
    cifar = np.load(REAL / "cifar10-vgg" / "probabilities.npz")
    p, y = cifar["probs"][:4000].astype(np.float64), cifar["labels"][:4000]
    p /= p.sum(axis=1, keepdims=True)
    features = np.log(p + 1e-6)
    model = faircal.FairCalClassifier(n_clusters=6, calibrator="temperature", random_state=0)
    model.fit_calibration(p[:2000], y[:2000], features=features[:2000])
    run.numbers("cifar", model.calibrate(p[2000:], features=features[2000:]))


@case
def real_lfw(run: Recorder) -> None:
    """Labeled Faces in the Wild through MobileFaceNet: the paper's measurements at K = 20."""
    faces = REAL / "lfw-mobilefacenet"
    if lacks(faces):
        return
    words = "--methods baseline,faircal,oracle,gst,fsn --clusters 20 --jobs 1"
    with_folder(run, "benchmark", f"benchmark {faces} {words}", "results")
    fit(run, "faircal", "--clusters 20", faces)
    model = "--model @faircal.faircal --fold 5 --attribute ethnicity"
    with_folder(run, "audit", f"audit {faces} {model}")
    words = f"@faircal.faircal {faces} --fold 5 --fpr 0.01"
    run.faircal("threshold", f"threshold {words}", exits=(0, 1))


@case
def real_rfw_scores(run: Recorder) -> None:
    """Scores of two networks on Racial Faces in the Wild."""
    table = REAL / "rfw-scores" / "scores.csv"
    if lacks(table):
        return
    run.faircal("check", f"check {table}")
    with_folder(run, "audit", f"audit {table} --attribute ethnicity")
    words = "--methods baseline,oracle,gst --attribute ethnicity --jobs 1"
    with_folder(run, "benchmark", f"benchmark {table} {words}", "results")
    run.faircal("threshold", f"threshold {table} --feature iresnet34 --fpr 0.01", exits=(0, 1))


@case
def spark(run: Recorder) -> None:
    """Fit, score and audit by Spark's workers."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        print("(skipped: no Spark) ", end="")
        return
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    simulate(run, options="--people 80 --pairs 2000 --dimension 16")
    engine = "--engine spark --master local[1] --conf spark.sql.shuffle.partitions=2"
    engine += " --conf spark.ui.enabled=false"
    fit(run, "faircal", f"--clusters 6 {engine}")
    words = f"--keep genuine,identity,ethnicity --out @scored {engine}"
    run.faircal("score", f"score @faircal.faircal @faces {words}")
    run.file("score/table", "scored")
    with_folder(run, "audit", f"audit @scored --attribute ethnicity {engine}")
