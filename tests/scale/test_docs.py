"""Every block of Python in docs/how-to/spark.md runs, one after the other; its commands are ones."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from pathlib import Path

import click
import pyarrow.parquet as pq
import pytest

import faircal
from faircal.cli.main import cli
from faircal.cli.score import command as score_command
from faircal.scale.spark.sizing.planning import plan

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "how-to" / "spark.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)


def commands():
    lines = (line for block in blocks("sh") for line in block.splitlines())
    return [shlex.split(line)[1:] for line in lines if line]


@pytest.fixture(scope="module")
def done(spark, tmp_path_factory):
    """Run the page in one folder; return the folder, what was printed, and the names it made."""
    folder = tmp_path_factory.mktemp("docs")
    told = io.StringIO()
    names = {"spark": spark}
    with contextlib.chdir(folder), contextlib.redirect_stdout(told):
        for words in commands():
            if "--engine" not in words:  # the others would stop the session that they find
                with pytest.raises(SystemExit) as ended:
                    cli.main(words)
                assert ended.value.code in (0, None), words
        for block in blocks("python"):
            exec(compile(block, "docs/how-to/spark.md", "exec"), names)  # noqa: S102
    return folder, told.getvalue(), names


def test_all_blocks_run_and_leave_what_they_say(done):
    folder, told, names = done
    assert len(blocks("python")) >= 8
    assert (folder / "blocks" / "blocks.json").exists()
    assert (folder / "gallery" / "blocks.json").exists()
    assert pq.read_metadata(folder / "scored.parquet").num_rows == len(names["pairs"]) == 8000
    assert faircal.load_model(folder / "new.faircal").n_clusters == 20
    assert re.search(r"[\d,]+ pairs of strangers; 100,000 of one group", told)
    assert names["found"].value("fpr", group="Asian") < 0.05


def test_pairs_in_tiles_are_scored_alike(done):
    from faircal.scale.spark import pairs_of, score

    folder, _, names = done
    mapped = pairs_of(names["frame"], folder / "faces")
    one, two = (
        score(names["model"], pairs).toArrow().sort_by("right")
        for pairs in (mapped, names["tiled"])
    )
    assert one.num_rows == 2
    assert one.equals(two)


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_commands_are_ones(words):
    group = cli
    while isinstance(group, click.Group):
        found, words = group.get_command(click.Context(group), words[0]), words[1:]
        assert found is not None, words
        group = found
    group.make_context(group.name, words)  # an option that is not there is an error


def test_the_options_of_spark_are_in_the_table():
    table = TEXT.partition("| option | unless told | |\n")[2].partition("\n\n")[0]
    told = set(re.findall(r"^\| `(--[\w-]+)`", table, flags=re.MULTILINE))
    before = {"--engine"}
    known = {name for param in score_command.params for name in param.opts}
    assert told <= known
    spark_only = {"--master", "--conf", "--embeddings", "--blocks"}
    assert told | before == spark_only | before


def test_the_plan_is_what_is_printed(done):
    (shown,) = [text for text in blocks("text") if text.startswith("pairs ")]
    assert shown.strip() in done[1]
    assert shown.strip() == str(
        plan(10**7, 10**9, dimension=512, executors=25, cores=4, price=0.05)
    )


def test_the_table_of_bytes_is_the_studys():
    lines = (ROOT / "studies" / "spark" / "results.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    found = {
        (row["pairs"], row["templates"]): (row["shuffled"], row["with_vectors"])
        for row in rows
        if row["part"] == "tiles" and row["pairs_are"] == "at random"
    }
    shown = re.findall(
        r"^\| (\d+) billion \| (\d+) million \| ([\d.]+) GB \| ([\d.]+) TB \|$", TEXT, re.MULTILINE
    )
    assert len(shown) == 3
    for pairs, templates, shuffled, vectors in shown:
        moved, naive = found[int(pairs) * 10**9, int(templates) * 10**6]
        assert float(shuffled) == pytest.approx(moved / 1e9, rel=0.005)
        assert float(vectors) == pytest.approx(naive / 1e12, rel=0.01)


def test_links_go_somewhere():
    for link in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", TEXT):
        if "://" not in link:
            assert (ROOT / "docs" / "how-to" / link).exists(), link
    headings = {
        re.sub(r"[^\w\- ]", "", line.lstrip("# ")).lower().replace(" ", "-")
        for line in TEXT.splitlines()
        if line.startswith("#")
    }
    for anchor in re.findall(r"\]\(#([^)]+)\)", TEXT):
        assert anchor in headings, anchor


def test_the_readme_points_here():
    assert "docs/how-to/spark.md" in (ROOT / "README.md").read_text("utf-8")
