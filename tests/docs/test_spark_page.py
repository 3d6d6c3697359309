"""What docs/how-to/spark.md says, beyond what it runs."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from faircal.cli.main import cli
from faircal.cli.score import command as score_command
from pages.parsing import ROOT, Page

PAGE = Page.read(ROOT / "docs" / "how-to" / "spark.md")


def commands():
    """The commands for a cluster, which the page shows and does not run."""
    (text,) = [block.text for block in PAGE.blocks if block.title == "on-spark.sh"]
    return [shlex.split(line)[1:] for line in text.splitlines()]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_commands_are_ones(words):
    group, given = cli, words
    while isinstance(group, click.Group):
        found, words = group.get_command(click.Context(group), words[0]), words[1:]
        assert found is not None, words
        group = found
    group.make_context(group.name, words)  # an option that is not there is an error
    assert "--engine" in given


def test_the_options_of_spark_are_in_the_table():
    table = PAGE.text.partition("| option | unless told | |\n")[2].partition("\n\n")[0]
    told = set(re.findall(r"^\| `(--[\w-]+)`", table, flags=re.MULTILINE))
    known = {name for param in score_command.params for name in param.opts}
    assert told == {"--master", "--conf", "--embeddings"}
    assert told <= known
