"""Every command says what it reads, does and writes; every example can be typed as it stands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

import faircal
from faircal.cli.help import (
    COMMANDS,
    EXIT_CODES,
    SECTIONS,
    Argument,
    Command,
    Manual,
    Option,
    Section,
    broken,
    manual_of,
    render,
)
from faircal.cli.main import cli
from pages.commands import command_paths, context_of

PATHS = command_paths()
DOCS = Path(faircal.__file__).parents[2] / "docs"
#: There is but one way to call it.
ONE_EXAMPLE = {("keys", "remove")}
SENTENCE = re.compile(r"[A-Z][^.!?]*[^.!? ]\.")


def manual(path):
    return manual_of(context_of(path))


def of_each_command(test):
    names = [" ".join(("faircal", *path)) for path in PATHS]
    return pytest.mark.parametrize("path", PATHS, ids=names)(test)


def words_of(example):
    """Return the words after ``faircal`` of the one call in an example."""
    (call,) = re.findall(r"(?:^|[(])faircal\b([^)>]*)", example.replace("\\\n", " "))
    return shlex.split(call)


def section(page, title):
    (found,) = [each for each in page.sections if each.title == title]
    return found


def test_all_commands_are_walked():
    assert {path[0] for path in PATHS if path} == set(COMMANDS)
    assert {"fit", "apply", "audit", "benchmark"} == {
        path[1] for path in PATHS if path[:-1] == ("classify",)
    }
    assert len(PATHS) > 35
    assert manual(["classify", "fit"]).name == "faircal classify fit"


def test_the_list_of_commands_is_in_sections():
    listed = [
        line.split()[0] for line in cli_help().splitlines() if re.match(r"  [a-z]+ +[A-Z]", line)
    ]
    assert [name for name in listed if name in COMMANDS] == list(COMMANDS)
    for title in SECTIONS:
        assert f"\n{title}:\n" in cli_help()


def cli_help(path=(), width=80):
    ctx = context_of(path)
    ctx.terminal_width = width - 2
    return ctx.get_help()


# ----------------------------------------------------------------------- the contract


@of_each_command
def test_what_it_is_in_a_sentence_then_more(path):
    page = manual(path)
    assert SENTENCE.fullmatch(page.summary), page.summary
    assert len(page.summary) <= (90 if not path else 75)
    assert page.description
    assert all(text.endswith((".", ":")) for text in page.description)
    if len(path) == 1:
        assert page.summary == COMMANDS[path[0]]


@of_each_command
def test_every_parameter_is_explained(path):
    ctx = context_of(path)
    command = ctx.command
    assert isinstance(command, Command)
    for each in command.params:
        assert isinstance(each, Option | Argument), each
        assert len(each.help) > 5
        assert each.help[-1] == ".", each.help
    page = manual(path)
    assert [term for term, _ in section(page, "General").rows][-1] == "-h, --help"
    assert ("Arguments" in {each.title for each in page.sections}) == any(
        isinstance(each, Argument) for each in command.params
    )


@of_each_command
def test_every_option_says_what_it_is_unless_given(path):
    ctx = context_of(path)
    for each in ctx.command.params:
        if isinstance(each, Option) and not each.is_flag:
            text = each.get_help_record(ctx)[1]
            assert ("[default: " in text) != ("required]" in text), (each.name, text)
            assert "[default: (" not in text


@of_each_command
def test_examples_can_be_typed_as_they_stand(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("photos").mkdir()  # where an option asks for a folder that is there
    examples = section(manual(path), "Examples").examples
    assert len(examples) >= (1 if path in ONE_EXAMPLE else 2)
    for what, example in examples:
        assert not what.endswith(".")
        words = words_of(example)
        root = cli.make_context("faircal", words)
        name, command, rest = cli.resolve_command(root, root._protected_args + root.args)
        if path:
            assert name == path[0]
        while isinstance(command, click.Group):
            root = command.make_context(name, rest, parent=root)
            name, command, rest = command.resolve_command(root, root._protected_args + root.args)
        if len(path) > 1:
            assert name == path[1]
        try:
            command.make_context(name, rest, parent=root)
        except click.exceptions.Exit as stop:  # an option that lists things
            assert stop.exit_code == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("fit faces/ --out m --clusters few", click.BadParameter),
        ("fit faces/", click.MissingParameter),
    ],
)
def test_an_example_that_is_none_would_be_found(words, problem):
    name, *rest = words.split()
    with pytest.raises(problem):
        context_of((name,)).command.make_context(name, rest)


@of_each_command
def test_exit_codes_and_what_to_see(path):
    page = manual(path)
    codes = dict(section(page, "Exit codes").rows)
    assert list(codes) == ["0", "1", "2"]
    assert EXIT_CODES[1] in codes["1"]
    for name in context_of(path).command.see:
        assert name in COMMANDS or (DOCS / f"{name}.md").is_file()
        assert name != " ".join(path)
    titles = [each.title for each in page.sections]
    assert len(titles) == len(set(titles))


@of_each_command
def test_no_file_of_the_repository_is_named(path):
    page = manual(path)
    text = " ".join(render(page, 100).split())
    assert not re.search(r"docs/|\.md\b(?!,| or)", text.replace("agreement.md", "")), text
    for name in re.findall(r"'faircal ([a-z]+)", text):
        assert name in COMMANDS


@of_each_command
@pytest.mark.parametrize("width", [80, 100])
def test_lines_fit(path, width):
    examples = {
        line.strip()
        for _, text in section(manual(path), "Examples").examples
        for line in text.splitlines()
    }
    for line in cli_help(path, width).splitlines():
        if line.strip() in examples or line.lstrip().startswith("# "):
            assert len(line) <= 78
        else:
            assert len(line) <= width - 2, line


def test_wide_terminals_are_used_up_to_a_hundred_columns(run_here, monkeypatch):
    for columns, most in (("80", 78), ("100", 98), ("200", 98)):
        monkeypatch.setenv("COLUMNS", columns)
        widest = max(map(len, run_here(["fit", "--help"]).out.splitlines()))
        assert most - 8 < widest <= most


# ------------------------------------------------------- names in words and in registries

LISTED = {
    ("choose", "calibrators"): "faircal.calibrators:CALIBRATORS",
    ("fit", "calibrator"): "faircal.calibrators:CALIBRATORS",
    ("benchmark", "calibrators"): "faircal.calibrators:CALIBRATORS",
    ("reproduce", "calibrators"): "faircal.calibrators:CALIBRATORS",
    ("classify fit", "calibrator"): "faircal.calibrators.classes:CLASS_CALIBRATORS",
    ("classify benchmark", "methods"): "faircal.evaluation.classes.methods:CLASS_METHODS",
    ("simulate", "preset"): "faircal.data.simulation:PRESETS",
    ("embed", "network"): "faircal.embedding:NETWORKS",
    ("embed", "detector"): "faircal.embedding:DETECTORS",
    ("embed", "preset"): "faircal.embedding:PRESETS",
    ("serve", "network"): "faircal.embedding:NETWORKS",
    ("serve", "detector"): "faircal.embedding:DETECTORS",
    ("serve", "preset"): "faircal.embedding:PRESETS",
    ("pairs", "imposters"): "faircal.data.pairing:IMPOSTERS",
    ("score", "add"): "faircal.production.scoring.run:COLUMNS",
    ("keys add", "scope"): "faircal.production.serving.access:SCOPES",
}


@pytest.mark.parametrize(("command", "name"), LISTED)
def test_help_names_all_there_are(command, name):
    import importlib

    module, _, registry = LISTED[command, name].partition(":")
    known = list(getattr(importlib.import_module(module), registry))
    (param,) = [each for each in context_of(command.split()).command.params if each.name == name]
    words = set(re.findall(r"[\w:-]+", param.help))
    assert set(known) <= words, set(known) - words


def test_tables_of_values_are_those_of_registries():
    from faircal.data.pairing import IMPOSTERS
    from faircal.data.simulation import PRESETS
    from faircal.embedding import PRESETS as INPUTS
    from faircal.evaluation.classes.methods import CLASS_METHODS
    from faircal.methods import properties
    from faircal.production.serving.access import SCOPES

    def terms(title, *path):
        return [term for term, _ in section(manual(path), title).rows]

    assert terms("Presets", "simulate") == list(PRESETS)
    assert terms("Presets", "embed") == list(INPUTS)
    assert terms("Kinds of imposters", "pairs") == list(IMPOSTERS)
    assert terms("Methods", "classify", "benchmark") == list(CLASS_METHODS)
    assert terms("Scopes", "keys") == terms("Scopes", "keys", "add") == list(SCOPES)
    columns = [name.replace("_", " ") for name in properties()[0]]
    assert terms("Columns", "methods") == columns[2:]


# ------------------------------------------------------------------------- the parts


def test_long_commands_are_broken_before_options():
    short = "faircal fit faces/ --out m"
    assert broken(short) == short
    long = "faircal fit faces/ " + " ".join(f"--set parameter_{i}=0.123" for i in range(6))
    lines = broken(long).splitlines()
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert all(line.startswith("    --") for line in lines[1:])
    assert max(map(len, lines)) <= 76
    assert shlex.split(broken(long).replace("\\\n", " ")) == shlex.split(long)


def test_a_page_is_rendered():
    page = Manual(
        "faircal fit",
        "[OPTIONS] DATA",
        "Fit a method.",
        ("Reads pairs. " * 6,),
        (
            Section(
                "Data", (("--a N", "One thing."), ("--much-longer-than-a-column X", "Another."))
            ),
            Section("Files", (("OUT", "The model."),)),
            Section("Examples", examples=(("Do it", "faircal fit faces/ \\\n    --out m"),)),
        ),
    )
    assert render(page, 60) == (
        "Usage: faircal fit [OPTIONS] DATA\n\n"
        "  Fit a method.\n\n"
        "  Reads pairs. Reads pairs. Reads pairs. Reads pairs. Reads\n"
        "  pairs. Reads pairs.\n\n"
        "Data:\n"
        "  --a N                   One thing.\n"
        "  --much-longer-than-a-column X\n"
        "                          Another.\n\n"
        "Files:\n"
        "  OUT                     The model.\n\n"
        "Examples:\n"
        "  # Do it\n"
        "  faircal fit faces/ \\\n"
        "      --out m\n"
    )


def test_groups_without_a_command_are_one_line(run_here):
    for group in ("import", "keys", "classify"):
        done = run_here([group])
        assert done.code == 2
        assert done.out == ""
        assert done.err == f"faircal: Missing command; see 'faircal {group} --help'\n"
