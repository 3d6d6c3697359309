"""What the README shows works as it stands there."""

from __future__ import annotations

import dataclasses
import re
import shlex
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from faircal.data.writers import save_dataset

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def test_the_python_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, sure, classes, streamed = blocks("python")
    names = {}
    exec(compile(code, "README.md", "exec"), names)  # noqa: S102
    assert ((names["p"] >= 0) & (names["p"] <= 1)).all()
    assert (tmp_path / "faces.faircal").exists()
    save_dataset(names["data"], "faces/")
    exec(compile(streamed, "README.md", "exec"), names)  # noqa: S102
    assert len(names["p"]) == len(names["data"])
    exec(compile(sure, "README.md", "exec"), names)  # noqa: S102
    assert 0 < names["low"] < names["a"].value("fpr", group="Asian") < names["high"] < 1
    exec(compile(classes, "README.md", "exec"), names)  # noqa: S102
    assert names["p"].shape == (len(names["y_new"]), 10)
    assert names["model"].score(names["X_new"], names["y_new"]) > 0.9


def commands_of(first):
    """The words of the commands in the block that begins with the command `first`."""
    (text,) = [block for block in blocks("sh") if block.startswith(f"faircal {first} ")]
    return [shlex.split(line, comments=True) for line in text.splitlines()]


def test_the_commands_of_classifiers_run(tmp_path, run_command):
    rng = np.random.default_rng(0)
    p, x = rng.dirichlet([1, 1, 1], 400), rng.normal(size=(400, 3))
    table = {f"p_{name}": p[:, i] for i, name in enumerate("abc")}
    table |= {f"feature_{i}": x[:, i] for i in range(3)}
    table |= {"label": rng.choice(list("abc"), 400), "sex": rng.choice(["F", "M"], 400)}
    for name in ("rows.csv", "new.csv"):
        pacsv.write_csv(pa.table(table), tmp_path / name)
    commands = commands_of("classify")
    assert [words[2] for words in commands] == ["benchmark", "fit", "apply", "audit"]
    for words in commands:
        run_command(*words[1:], cwd=tmp_path)
    assert (tmp_path / "audit" / "report.html").exists()


def test_the_commands_run_one_after_the_other(tmp_path, run_command):
    commands = commands_of("simulate")
    assert [words[1] for words in commands] == [
        "simulate",
        "check",
        "fit",
        "score",
        "audit",
        "benchmark",
        "report",
    ]
    for words in commands:
        run_command(*words[1:], cwd=tmp_path)
    for made in ("scored.csv", "audit/report.html", "results/results.csv", "results/report.html"):
        assert (tmp_path / made).stat().st_size > 0


def test_how_sure_is_that(tmp_path, run_command):
    run = partial(run_command, cwd=tmp_path)
    run("simulate", "small", "faces/")
    run("simulate", "small", "here/", "--seed", "1")
    run("simulate", "small", "there/", "--seed", "2")
    run("fit", "faces/", "--method", "baseline", "--out", "faces.faircal")
    keep = "genuine,ethnicity"
    run("score", "faces.faircal", "faces/", "--out", "scored.csv", "--keep", keep)
    for name in ("before/", "after/"):
        run("audit", "faces/", "--attribute", "ethnicity", "--out", name)
    commands = commands_of("threshold")
    assert [words[1] for words in commands] == [
        "threshold",
        "plan",
        "compare",
        "regions",
        "benchmark",
        "audit",
        "score",
    ]
    for words in commands:
        more = ["--methods", "baseline"] if words[1] == "benchmark" else []
        run(*words[1:], *more)
    for made in ("regions/regions.csv", "moved/moving.csv", "audit/label_noise.csv"):
        assert (tmp_path / made).stat().st_size > 0


def write_rfw(folder):
    """Write a small RFW: two people a split, each with two real faces, changed a little."""
    skimage, image = pytest.importorskip("skimage"), pytest.importorskip("PIL.Image")
    face = skimage.data.astronaut()[30:230, 120:320].astype(int)
    rng = np.random.default_rng(0)
    for ethnicity in ("African", "Asian", "Caucasian", "Indian"):
        lines = []
        for split in range(10):
            one, two = f"m.0{split}a", f"m.0{split}b"
            lines += [f"{one}\t1\t2", f"{two}\t1\t2"]
            lines += [f"{one}\t1\t{two}\t1", f"{one}\t2\t{two}\t2"]
            for person in (one, two):
                place = folder / "test" / "data" / ethnicity / person
                place.mkdir(parents=True)
                tint = rng.integers(-40, 40, 3)
                for number in (1, 2):
                    pixels = np.clip(face + tint + rng.integers(-10, 10), 0, 255).astype("uint8")
                    image.fromarray(pixels).save(place / f"{person}_{number:04d}.jpg")
        lists = folder / "test" / "txts" / ethnicity
        lists.mkdir(parents=True)
        (lists / f"{ethnicity}_pairs.txt").write_text("\n".join(lines) + "\n")


def write_weights(folder):
    """Write drawn weights in the published layout where the network looks for its file."""
    torch = pytest.importorskip("torch")
    from faircal.embedding.facenet import InceptionResnetV1
    from faircal.embedding.networks import NETWORKS

    torch.manual_seed(0)
    weights = InceptionResnetV1().state_dict()
    weights |= {"logits.weight": torch.zeros(10575, 512), "logits.bias": torch.zeros(10575)}
    folder.mkdir(parents=True)
    torch.save(weights, folder / NETWORKS["facenet-webface"].weights.file)


def test_from_pictures_to_a_benchmark_in_three_lines_and_to_the_paper_in_one_more(
    tmp_path, run_command
):
    commands = commands_of("import")
    assert [words[1] for words in commands] == ["import", "embed", "benchmark"]
    write_rfw(tmp_path / "RFW")
    write_weights(tmp_path / "weights")
    few = ["--methods", "baseline,faircal", "--clusters", "5"]  # the others take minutes
    weights = {"FAIRCAL_WEIGHTS": str(tmp_path / "weights")}
    more = {"benchmark": few, "reproduce": [*few, "--calibrators", "beta", "--n-init", "1"]}
    for words in [*commands, *commands_of("reproduce")]:
        words = [word.replace("~", str(tmp_path)) for word in words]
        run_command(*words[1:], *more.get(words[1], []), cwd=tmp_path, environment=weights)
    assert np.load(tmp_path / "rfw/embeddings/facenet-webface.npy").shape == (160, 512)
    assert "ethnicity" in (tmp_path / "results/results.csv").read_text()
    page = (tmp_path / "paper/report.html").read_text("utf-8")
    assert "FaceNet (Webface)" in page
    assert "paper 86.71" in page  # FairCal's AUROC
    assert list(
        (tmp_path / "paper/figures").glob("fig-clusters*.png")
    )  # faces, from where they lie


def test_the_example_of_figures_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[1] / "docs" / "how-to" / "reproduce.md").read_text("utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    exec(compile(code, "reproduce.md", "exec"), {})  # noqa: S102
    assert "African" in capsys.readouterr().out
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".pdf", ".png", ".csv"}


def test_the_description_of_a_network_is_one(tmp_path):
    from faircal.embedding import PRESETS
    from faircal.embedding.preprocessing import read_description

    page = (Path(__file__).parents[1] / "docs" / "how-to" / "real-data.md").read_text("utf-8")
    (text,) = re.findall(r"^```toml\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    told = read_description(tmp_path / "mine.toml")
    assert (told.name, told.file) == ("mine", tmp_path / "mine.onnx")
    close = dataclasses.replace(told.preprocessing, points=PRESETS["insightface"].points)
    assert close == PRESETS["insightface"]


def test_links_lead_somewhere():
    root = Path(__file__).parents[1]
    for page in [*root.glob("*.md"), *root.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), (page.name, target)
