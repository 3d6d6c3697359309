"""The reference of the command line, made from what ``--help`` prints."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import click

from faircal.cli.help import COMMANDS, Manual, Section, manual_of
from faircal.cli.main import cli

_DOCS = Path(__file__).parents[1] / "docs"


def command_pages() -> Iterator[tuple[str, str]]:
    """Every page of the reference of commands, with its text."""
    for each in manuals():
        yield f"reference/commands/{page_of(each.name)}", _page(each)


@cache
def manuals() -> list[Manual]:
    """The manuals of all commands, those of groups before their own."""
    return [manual_of(context_of(path)) for path in command_paths()]


def command_paths() -> list[tuple[str, ...]]:
    """Return the words of every command and sub-command; those of a group before its own."""
    paths: list[tuple[str, ...]] = [()]
    for name in COMMANDS:
        command = context_of((name,)).command
        inner = command.commands if isinstance(command, click.Group) else {}
        paths += [(name,), *((name, each) for each in inner)]
    return paths


def context_of(path: Iterable[str]) -> click.Context:
    """Return the context of a command, such as ``["classify", "fit"]``, as its own help has it."""
    ctx = cli.make_context("faircal", [], resilient_parsing=True)
    for name in path:
        group = ctx.command
        command = group.get_command(ctx, name) if isinstance(group, click.Group) else None
        if command is None:
            raise ValueError(f"there is no command {' '.join(path)!r}")
        ctx = command.make_context(name, [], parent=ctx, resilient_parsing=True)
    return ctx


def title_of(page: str) -> str:
    """Return the title of a page of the documentation, such as ``how-to/pairs``."""
    first = (_DOCS / f"{page}.md").read_text("utf-8").partition("\n")[0]
    return first.removeprefix("# ")


def page_of(name: str) -> str:
    """Return the file of a command's page."""
    words = name.split()[1:]
    return f"{'-'.join(words) or 'index'}.md"


def _page(told: Manual) -> str:
    title = told.name if " " in told.name else "Commands"
    lines = [f"# {title}", "", _text(told.summary), ""]
    lines += ["```text", f"{told.name} {told.takes}", "```", ""]
    for paragraph in told.description:
        lines += [_text(paragraph), ""]
    for section in told.sections:
        lines += [f"## {_text(section.title)}", "", *_section(section, told.name), ""]
    return "\n".join(lines)


def _section(section: Section, name: str) -> Iterator[str]:
    if section.rows:
        yield from ("| | |", "| --- | --- |")
    for term, text in section.rows:
        yield f"| {_term(term, section.title, name)} | {_text(text)} |"
    for what, command in section.examples:
        yield from (f"{_text(what)}:", "", "```sh", command, "```", "")


def _term(term: str, title: str, name: str) -> str:
    """Return a term as code; a command or a page of the documentation is a link."""
    code = _code(term)
    if title == "See also" and "/" in term:
        return f"[{title_of(term)}](../../{term}.md)"
    if title == "See also":
        return f"[{code}]({page_of(term)})"
    if re.fullmatch(r"[a-z]+", term) and any(each.name == f"{name} {term}" for each in manuals()):
        return f"[{code}]({page_of(f'{name} {term}')})"
    return code


#: Commands and options in a text.
_CODE = re.compile(r"('(?:faircal [^']+|--[^']+)'|(?<![\w-])--[a-z][a-z-]*)")


def _text(text: str) -> str:
    """Return words in which Markdown finds nothing of its own; every option is code."""
    parts = _CODE.split(text)
    parts[::2] = map(_plain, parts[::2])
    parts[1::2] = (_code(part.strip("'")) for part in parts[1::2])
    return "".join(parts)


def _code(text: str) -> str:
    """Return code that is cut between words and between choices only, where lines are short."""
    words = (map(_plain, re.split(r"(?<=\|)", word)) for word in text.split(" "))
    spans = ("<wbr>".join(f'<span class="whole">{part}</span>' for part in word) for word in words)
    return f"<code>{' '.join(spans)}</code>"


def _plain(text: str) -> str:
    text = html.escape(text, quote=False).replace("|", "&#124;")
    return re.sub(r"([*_\[\]])", r"\\\1", text)
