"""The cases: each runs one part of faircal on small seeded data, and on real data where it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from golden.recorder import Recorder
from golden.values import text_hash

CASES: dict[str, Callable[[Recorder], None]] = {}

REAL = Path(__file__).resolve().parents[2] / "shared" / "data"
CALIBRATORS = ("beta", "histogram", "isotonic", "platt", "temperature", "spline")
UNTRAINED = ("baseline", "faircal", "oracle", "gst", "fsn", "smooth")
#: Schedules with which the trained methods pass all their stages in a moment.
_STAGES = ("identity_epochs=2", "episodes=2", "restart_every=1", "discriminator_epochs=1")
_SHORT = ("width=8", "discriminator=[6]", *_STAGES, "debias_epochs=1", "update_epochs=1")
TRAINED = {
    "agenda": (*_SHORT, "stop_at=1", "squash=true"),
    "pass": (*_SHORT, "stop_at=1"),
    "multipass": (*_SHORT, "stop_at=1", 'n_discriminators={"gender": 1, "ethnicity": 2}'),
    "ftc": ("epochs=4", "hidden=[1, 0.5]"),
}
SIZES = ("--people", 160, "--pairs", 6000, "--dimension", 32)


def case(function: Callable[[Recorder], None]) -> Callable[[Recorder], None]:
    """Add a case, under the name of its function."""
    CASES[function.__name__] = function
    return function


def small(run: Recorder, name: str = "faces", *options: object) -> Path:
    """Simulate a small dataset folder for a case."""
    folder = run.work / name
    run.faircal(f"simulate-{name}", "simulate", "small", folder, *(options or SIZES))
    return folder


def fitted(run: Recorder, faces: Path, method: str = "faircal", *options: object) -> Path:
    """Fit a model on all folds but 5."""
    model = run.work / f"{method}.faircal"
    words = ("--method", method, "--leave-out", 5, "--out", model)
    run.faircal(f"fit-{method}", "fit", faces, *words, *options)
    return model


def scored(run: Recorder, model: Path, faces: Path, name: str = "scored.parquet") -> Path:
    """Score fold 5 with all that can be added and kept."""
    keep = ("--keep", "genuine,identity,fold,ethnicity,gender")
    add = ("--add", "log_likelihood_ratio,similarity,clusters,outside")
    run.faircal(name, "score", model, faces, "--fold", 5, *keep, *add, "--out", run.work / name)
    run.file(f"{name}/table", name)
    return run.work / name


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
        pairs = data.pairs
        run.values[f"{preset}/vectors"] = text_hash(np.asarray(data.embeddings.vectors).tolist())
        run.numbers(f"{preset}/left", pairs.left)
        run.numbers(f"{preset}/right", pairs.right)
        run.numbers(f"{preset}/genuine", pairs.genuine)
        run.numbers(f"{preset}/fold", pairs.fold)
    faces = small(run)
    run.file("images", "faces/images.csv")
    run.file("pairs", "faces/pairs.csv")
    run.faircal("check", "check", faces)
    run.faircal("check-gender", "check", faces, "--attribute", "gender")
    run.faircal("methods", "methods")


@case
def drawn_pairs(run: Recorder) -> None:
    """Pairs and folds that are drawn from identities, each kind of imposters."""
    faces = small(run)
    for kind in ("random", "group", "cross", "cluster", "matched", "hard"):
        words = ("--imposters", kind, "--ratio", 1, "--genuine", 5, "--folds", 4, "--seed", 2)
        out = run.work / f"{kind}.parquet"
        run.faircal(kind, "pairs", faces, *words, "--clusters", 5, "--out", out)
        run.file(f"{kind}/table", out.name)
    drawn = run.work / "drawn"
    run.faircal("into", "pairs", faces, "--size", 1000, "--out", drawn)
    run.faircal("check", "check", drawn)
    table = pq.read_table(run.work / "random.parquet")
    pq.write_table(table.drop_columns(["fold"]), run.work / "drawn" / "pairs.parquet")
    (run.work / "drawn" / "pairs.csv").unlink(missing_ok=True)
    import faircal

    run.numbers("folds", faircal.load(drawn, seed=4).pairs.fold)


@case
def fit_and_score(run: Recorder) -> None:
    """Every method without training through fit, score, card and ONNX."""
    faces = small(run)
    for method in UNTRAINED:
        clusters = () if method in ("baseline", "oracle", "gst") else ("--clusters", 12)
        if method == "smooth":
            clusters = ("--set", "n_regions=10", "--set", "n_dimensions=8")
        model = fitted(run, faces, method, *clusters)
        out = f"{method}.parquet"
        run.faircal(f"score-{method}", "score", model, faces, "--out", run.work / out)
        run.file(f"score-{method}/table", out)
        run.faircal(f"card-{method}", "card", model)
    for calibrator in CALIBRATORS:
        model = run.work / f"{calibrator}.faircal"
        words = ("--calibrator", calibrator, "--clusters", 8, "--seed", 1, "--out", model)
        run.faircal(f"fit-{calibrator}", "fit", faces, *words)
        run.faircal(calibrator, "score", model, faces, "--out", run.work / f"{calibrator}.csv")
        run.file(f"{calibrator}/table", f"{calibrator}.csv")
    model = run.work / "faircal.faircal"
    scored(run, model, faces)
    for prior in ("0.001", "estimate"):
        out = run.work / "prior.parquet"
        run.faircal(f"prior-{prior}", "score", model, faces, "--prior", prior, "--out", out)
        run.file(f"prior-{prior}/table", "prior.parquet")
    streamed = ("--clusters", 12, "--stream", "--out", run.work / "streamed.faircal")
    run.faircal("fit-streamed", "fit", faces, *streamed)
    run.faircal("card-streamed", "card", run.work / "streamed.faircal")


@case
def trained(run: Recorder) -> None:
    """The trained methods with very short schedules, on the processor."""
    try:
        import torch
    except ImportError:
        print("(no torch) ", end="")
        return
    torch.set_num_threads(1)
    faces = small(run, "faces", "--people", 80, "--pairs", 1500, "--dimension", 16)
    for method, parameters in TRAINED.items():
        given = [word for one in parameters for word in ("--set", one)]
        model = fitted(run, faces, method, "--device", "cpu", *given)
        out = f"{method}.parquet"
        run.faircal(f"score-{method}", "score", model, faces, "--out", run.work / out)
        run.file(f"score-{method}/table", out)


@case
def audits(run: Recorder) -> None:
    """Audits of scored tables and of a model: identities, threshold, label noise, streamed."""
    faces = small(run, "faces", "--people", 240, "--pairs", 20000, "--dimension", 32)
    model = fitted(run, faces, "faircal", "--clusters", 12)
    table = scored(run, model, faces)
    by = ("--attribute", "ethnicity")
    audit = ("audit", table, *by)
    run.faircal("plain", *audit, "--out", run.work / "plain")
    fixed = ("--threshold", 0.8, "--rates", "0.01,0.05", "--label-noise", 0.05)
    run.faircal("fixed", *audit, *fixed, "--out", run.work / "fixed")
    run.faircal("streamed", *audit, "--stream", "--out", run.work / "streamed")
    with_model = ("audit", faces, "--model", model, "--fold", 5)
    run.faircal(
        "model", *with_model, "--attribute", "ethnicity+gender", "--out", run.work / "model"
    )
    run.faircal("cosine", "audit", faces, *by, "--rates", "0.02,0.1", "--out", run.work / "cosine")
    nobody = pq.read_table(table).select(["genuine", "score", "left_ethnicity", "right_ethnicity"])
    pq.write_table(nobody, run.work / "nobody.parquet")
    words = ("audit", run.work / "nobody.parquet", *by)
    run.faircal("nobody", *words, "--out", run.work / "without")
    for name in ("plain", "fixed", "streamed", "model", "cosine", "without"):
        run.folder(f"{name}-folder", name)
    run.faircal("report", "report", run.work / "plain")
    run.folder("reported-folder", "plain")
    run.faircal("compare", "compare", run.work / "plain", run.work / "fixed", "--metrics", "ks")


@case
def benchmarks(run: Recorder) -> None:
    """Every method without training, sweeps, resuming, two jobs, thresholds from calibration."""
    faces = small(run)
    all_ = ("benchmark", faces, "--methods", ",".join(UNTRAINED), "--clusters", 10)
    smooth = ("--set", "smooth.n_regions=10", "--set", "smooth.n_dimensions=8")
    run.faircal("all", *all_, *smooth, "--jobs", 1, "--out", run.work / "all")
    run.folder("all-folder", "all")
    sweep = ("benchmark", faces, "--methods", "baseline,faircal", "--clusters", "5,10")
    sweep += ("--calibrators", "isotonic,spline", "--attribute", "ethnicity,gender")
    sweep += ("--threshold-on", "calibration", "--rates", "0.01,0.1", "--seed", 1)
    run.faircal("sweep", *sweep, "--jobs", 1, "--out", run.work / "sweep")
    run.folder("sweep-folder", "sweep")
    tuned = ("benchmark", faces, "--methods", "gst,fsn", "--retune", "--clusters", 8)
    run.faircal("retuned", *tuned, "--jobs", 2, "--out", run.work / "retuned")
    run.folder("retuned-folder", "retuned")
    run.faircal("resumed", *tuned, "--jobs", 2, "--resume", "--out", run.work / "retuned")
    run.folder("resumed-folder", "retuned")
    both = (run.work / "all", run.work / "all", "--method", "baseline,faircal")
    run.faircal("compare", "compare", *both, "--gate", exits=(0, 1))
    words = ("--metrics", "fpr,auroc", "--gate", "noninferior", "--margin", 0.01)
    run.faircal("noninferior", "compare", *both, *words, exits=(0, 1))
    run.faircal("report", "report", run.work / "all")


@case
def moved(run: Recorder) -> None:
    """Calibrated on one population, tested on another; and another preset."""
    here, there = small(run, "here"), small(run, "there", *SIZES, "--seed", 5)
    words = ("--calibrate-on", here, "--test-on", there, "--labels", "100,1000", "--people-apart")
    words += ("--methods", "baseline,faircal", "--clusters", 8, "--jobs", 1)
    run.faircal("moved", "benchmark", *words, "--out", run.work / "moved")
    run.folder("moved-folder", "moved")
    rfw = run.work / "rfw"
    sizes = ("--people", 800, "--pairs", 4000, "--dimension", 64)
    run.faircal("simulate", "simulate", "rfw-like", rfw, *sizes)
    words = ("--methods", "baseline,faircal,oracle,gst,fsn", "--clusters", 10, "--jobs", 1)
    run.faircal("rfw", "benchmark", rfw, *words, "--out", run.work / "rfw-results")
    run.folder("rfw-folder", "rfw-results")


@case
def thresholds(run: Recorder) -> None:
    """Thresholds by every rule, plans, and what they are kept in; the ONNX graph of a model."""
    faces = small(run, "faces", "--people", 300, "--pairs", 20000, "--dimension", 32)
    model = fitted(run, faces, "faircal", "--clusters", 12)
    asked = {
        "global": ("--fpr", 0.05),
        "groups": ("--fpr", 0.1, "--within", "groups", "--attribute", "gender"),
        "clusters": ("--fpr", 0.1, "--within", "clusters", "--clusters", 4),
        "measured": ("--fpr", 0.01, "--rule", "measured"),
        "prior": ("--fpr", 0.05, "--prior", 0.01, "--confidence", 0.9),
        "rare": ("--fpr", 0.0001),
    }
    for name, words in asked.items():
        run.faircal(name, "threshold", model, faces, "--fold", 5, *words, exits=(0, 1))
        if "--prior" not in words:
            run.faircal(f"{name}-cosine", "threshold", faces, *words, exits=(0, 1))
    decides = run.work / "decides.faircal"
    run.faircal("kept", "threshold", model, faces, *asked["global"], "--out", decides)
    run.faircal("card", "card", decides)
    words = ("--add", "decision", "--out", run.work / "decided.parquet")
    run.faircal("decided", "score", decides, faces, *words)
    run.file("decided/table", "decided.parquet")
    run.faircal("plan", "plan", "--rate", 0.01, "--within", 0.005, "--groups", 8)
    run.faircal("plan-ratio", "plan", "--rate", 0.001, "--ratio", 2, "--per-person", 50)
    run.faircal("plan-people", "plan", "--rate", 0.01, "--people", 200)
    run.faircal("plan-pilot", "plan", "--rate", 0.05, "--within", 0.02, "--pilot", faces)
    exported(run, decides, faces)


def exported(run: Recorder, model: Path, faces: Path) -> None:
    """Run the ONNX graph of a model on pairs of vectors."""
    import onnxruntime

    import faircal

    graph = run.work / "model.onnx"
    run.faircal("export", "export", model, "--onnx", graph)
    data = faircal.load(faces)
    vectors, rows = np.asarray(data.embeddings.vectors, dtype=np.float32), slice(0, 500)
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    sides = (vectors[data.pairs.left[rows]], vectors[data.pairs.right[rows]])
    given = dict(zip([x.name for x in session.get_inputs()], sides, strict=True))
    names = [x.name for x in session.get_outputs()]
    for name, numbers in zip(names, session.run(names, given), strict=True):
        run.numbers(f"onnx/{name}", numbers)


@case
def regions_and_choice(run: Recorder) -> None:
    """Regions of embedding space, and the choice of K and calibrator."""
    faces = small(run, "faces", "--people", 240, "--pairs", 12000, "--dimension", 16)
    model = fitted(run, faces, "baseline")
    words = ("--clusters", "3,6", "--rate", 0.05, "--false-discoveries", 0.2)
    run.faircal("regions", "regions", faces, *words, "--out", run.work / "regions")
    run.folder("regions-folder", "regions")
    words += ("--model", model)
    run.faircal("model", "regions", faces, *words, "--out", run.work / "of-model")
    run.folder("model-folder", "of-model")
    words = ("--clusters", "3,6", "--starts", 2, "--folds", 3)
    run.faircal("choose", "choose", faces, *words)
    run.faircal("choose-within", "choose", faces, *words, "--calibrators", "platt", "--within", 1)


@case
def monitored(run: Recorder) -> None:
    """Pairs in use that still fit a model, and others; with state, and labels."""
    faces = small(run)
    model = fitted(run, faces, "faircal", "--clusters", 8)
    same = scored(run, model, faces)
    others = small(run, "others", *SIZES, "--seed", 9)
    away = scored(run, model, others, "away.parquet")
    may = (0, 1)
    run.faircal("same", "monitor", model, same, "--out", run.work / "same", exits=may)
    run.folder("same-folder", "same")
    run.faircal("away", "monitor", model, same, away, "--ordered", exits=may)
    run.faircal("data", "monitor", model, others, exits=may)
    for night, table in enumerate((same, away)):
        words = (model, table, "--state", run.work / "state.watch", "--false-alarms", 0.05)
        run.faircal(f"night-{night}", "monitor", *words, exits=may)


@case
def score_tables(run: Recorder) -> None:
    """Tables of scores alone, with and without people, of another range; owners' layouts."""
    faces = small(run)
    table = scored(run, fitted(run, faces, "baseline"), faces)
    bare = pq.read_table(table)
    score = bare["similarity"].to_numpy()
    columns = ("genuine", "left_identity", "right_identity", "left_ethnicity", "right_ethnicity")
    bare = bare.select(columns).append_column("vendor", pa.array(50 + 50 * score))
    path = run.work / "vendor.parquet"
    pq.write_table(bare.append_column("other", pa.array(50 + 40 * score**3)), path)
    scale = ("--score-range", "0,100")
    by = ("--attribute", "ethnicity")
    run.faircal("check", "check", path, *scale)
    run.faircal("audit", "audit", path, *by, *scale, "--out", run.work / "audit")
    run.folder("audit-folder", "audit")
    words = ("--feature", "vendor", *scale, "--method", "oracle", *by)
    model = run.work / "vendor.faircal"
    run.faircal("fit", "fit", path, *words, "--out", model)
    words = ("--feature", "vendor", *scale, "--out", run.work / "rescored.csv")
    run.faircal("score", "score", model, path, *words)
    run.file("score/table", "rescored.csv")
    words = ("--methods", "baseline,oracle,gst", *by, *scale, "--jobs", 1)
    run.faircal("benchmark", "benchmark", path, *words, "--out", run.work / "results")
    run.folder("benchmark-folder", "results")
    words = ("--feature", "other", *scale, "--fpr", 0.1)
    run.faircal("threshold", "threshold", path, *words, exits=(0, 1))
    lines = zip(
        bare["left_identity"].to_pylist(),
        bare["right_identity"].to_pylist(),
        bare["vendor"].to_pylist(),
        strict=True,
    )
    text = "".join(f"{a} {b} probe/{b}/{i} {s!r}\n" for i, (a, b, s) in enumerate(lines))
    (run.work / "scores-dev").write_text(text)
    run.faircal("bob", "import", "bob", run.work / "scores-dev", "--out", run.work / "bob")
    run.file("bob/pairs", "bob/pairs.csv")


def class_rows(run: Recorder) -> Path:
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
    return run.work / "rows.parquet"


@case
def classifier(run: Recorder) -> None:
    """Rows of a classifier: fit, apply, audit, benchmark."""
    rows, model = class_rows(run), run.work / "classes.faircal"
    for name in ("dirichlet", "temperature", "vector", "matrix", "isotonic", "histogram"):
        words = ("--clusters", 4, "--calibrator", name, "--shrinkage", 50, "--out", model)
        run.faircal(f"fit-{name}", "classify", "fit", rows, *words)
        words = ("classify", "apply", model, rows, "--out", run.work / "applied.parquet")
        run.faircal(name, *words)
        run.file(f"{name}/table", "applied.parquet")
    run.faircal("fit", "classify", "fit", rows, "--clusters", 4, "--seed", 2, "--out", model)
    run.faircal("card", "card", model)
    audit = ("classify", "audit", rows, "--attribute", "site")
    run.faircal("audit", *audit, "--model", model, "--out", run.work / "audit")
    run.folder("audit-folder", "audit")
    words = ("--attribute", "site", "--clusters", 4, "--folds", 3, "--out", run.work / "results")
    run.faircal("benchmark", "classify", "benchmark", rows, *words)
    run.folder("benchmark-folder", "results")


@case
def python_names(run: Recorder) -> None:
    """The names of interfaces.md: methods, calibrators, metrics, audit, classifier."""
    import faircal

    folder = small(run)
    data = faircal.load(folder)
    cal, test = data.split(test_fold=5)
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
    people = np.asarray(csv.read_csv(folder / "images.csv")["identity"])
    left, right = people[np.asarray(test.pairs.left)], people[np.asarray(test.pairs.right)]
    side = {"left_identity": left, "right_identity": right}
    names = [groups.names[k] if k >= 0 else None for k in np.asarray(groups.pair)]
    for name, given in {"people": side, "nobody": {}}.items():
        audit = faircal.audit(
            probability=p, score=s, genuine=genuine, groups=names, threshold=0.7, **given
        )
        _audit(run, f"audit-{name}", audit)
    one = faircal.audit(score=s[~genuine], genuine=genuine[~genuine])
    _audit(run, "audit-one-class", one)


def _audit(run: Recorder, key: str, audit: object) -> None:
    pq.write_table(audit.table, run.work / "audit.parquet")
    run.file(f"{key}/table", "audit.parquet")
    for metric in ("fpr", "fnr", "ks"):
        for group in ("global", "Asian"):
            for what in ("value", "interval"):
                try:
                    number = getattr(audit, what)(metric, group=group)
                except Exception as error:  # which error is part of the surface
                    run.values[f"{key}/{what}-{metric}-{group}"] = type(error).__name__
                else:
                    run.numbers(f"{key}/{what}-{metric}-{group}", number)


@case
def python_classes(run: Recorder) -> None:
    """FairCalClassifier, on made-up rows and on CIFAR's probabilities."""
    import faircal

    table = pq.read_table(class_rows(run))
    probabilities = np.column_stack([table[f"p_c{k}"].to_numpy() for k in range(3)])
    features = np.column_stack([table[f"feature_{k}"].to_numpy() for k in range(4)])
    y = np.array(table["label"].to_pylist())
    for shrinkage in ("cv", 0, 100):
        model = faircal.FairCalClassifier(n_clusters=5, shrinkage=shrinkage, random_state=0)
        model.fit_calibration(probabilities[:2000], y[:2000], features=features[:2000])
        applied = model.calibrate(probabilities[2000:], features=features[2000:])
        run.numbers(f"shrinkage-{shrinkage}", applied)
    real = REAL / "cifar10-vgg" / "probabilities.npz"
    if not real.exists():
        print("(no CIFAR) ", end="")
        return
    cifar = np.load(real)
    p, y = cifar["probs"][:4000].astype(np.float64), cifar["labels"][:4000]
    p /= p.sum(axis=1, keepdims=True)
    model = faircal.FairCalClassifier(n_clusters=6, calibrator="temperature", random_state=0)
    model.fit_calibration(p[:2000], y[:2000], features=np.log(p[:2000] + 1e-6))
    run.numbers("cifar", model.calibrate(p[2000:], features=np.log(p[2000:] + 1e-6)))


@case
def real_lfw(run: Recorder) -> None:
    """Labeled Faces in the Wild through MobileFaceNet: the paper's measurements at K = 20."""
    faces = REAL / "lfw-mobilefacenet"
    if not faces.exists():
        print("(no LFW) ", end="")
        return
    words = ("--methods", "baseline,faircal,oracle,gst,fsn", "--clusters", 20, "--jobs", 1)
    run.faircal("benchmark", "benchmark", faces, *words, "--out", run.work / "results")
    run.folder("benchmark-folder", "results")
    model = fitted(run, faces, "faircal", "--clusters", 20)
    words = ("--model", model, "--fold", 5, "--attribute", "ethnicity", "--out", run.work / "audit")
    run.faircal("audit", "audit", faces, *words)
    run.folder("audit-folder", "audit")
    run.faircal("threshold", "threshold", model, faces, "--fold", 5, "--fpr", 0.01, exits=(0, 1))


@case
def real_rfw_scores(run: Recorder) -> None:
    """Scores of two networks on Racial Faces in the Wild."""
    table = REAL / "rfw-scores" / "scores.csv"
    if not table.exists():
        print("(no RFW) ", end="")
        return
    by = ("--attribute", "ethnicity")
    run.faircal("check", "check", table)
    run.faircal("audit", "audit", table, *by, "--out", run.work / "audit")
    run.folder("audit-folder", "audit")
    words = ("--methods", "baseline,oracle,gst", *by, "--jobs", 1, "--out", run.work / "results")
    run.faircal("benchmark", "benchmark", table, *words)
    run.folder("benchmark-folder", "results")
    words = ("--feature", "iresnet34", "--fpr", 0.01)
    run.faircal("threshold", "threshold", table, *words, exits=(0, 1))


@case
def spark(run: Recorder) -> None:
    """Fit, score, audit and benchmark by Spark's workers."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        print("(no Spark) ", end="")
        return
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    faces = small(run, "faces", "--people", 80, "--pairs", 2000, "--dimension", 16)
    engine = ("--engine", "spark", "--master", "local[1]")
    engine += ("--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.ui.enabled=false")
    model = fitted(run, faces, "faircal", "--clusters", 6, *engine)
    words = ("--keep", "genuine,identity,ethnicity", "--out", run.work / "scored")
    run.faircal("score", "score", model, faces, *words, *engine)
    run.file("score/table", "scored")
    words = ("--attribute", "ethnicity", "--out", run.work / "audit")
    run.faircal("audit", "audit", run.work / "scored", *words, *engine)
    run.folder("audit-folder", "audit")
    words = ("--methods", "baseline,faircal", "--clusters", 6, "--out", run.work / "results")
    run.faircal("benchmark", "benchmark", faces, *words, *engine)
    run.folder("benchmark-folder", "results")
