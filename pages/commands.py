"""The reference of the command line, made from what ``--help`` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import click

from faircal.cli.contents import PAGES
from faircal.cli.help import Manual, Section, manual_of
from faircal.cli.main import cli


def command_pages() -> Iterator[tuple[str, str]]:
    """Every page of the reference of commands, with its text."""
    for manual in manuals():
        yield f"reference/commands/{page_of(manual.name)}", _page(manual)


@cache
def manuals() -> list[Manual]:
    """The manuals of all commands, those of groups before their own."""
    return list(_below(click.Context(cli, info_name="faircal")))


def page_of(name: str) -> str:
    """Return the file of a command's page."""
    words = name.split()[1:]
    return f"{'-'.join(words) or 'index'}.md"


def _below(ctx: click.Context) -> Iterator[Manual]:
    yield manual_of(ctx)
    if isinstance(ctx.command, click.Group):
        for name in ctx.command.list_commands(ctx):
            command = ctx.command.get_command(ctx, name)
            if command is not None:
                yield from _below(click.Context(command, info_name=name, parent=ctx))


def _page(manual: Manual) -> str:
    title = manual.name if " " in manual.name else "Commands"
    lines = [f"# {title}", "", _text(manual.summary), ""]
    lines += ["```text", f"{manual.name} {manual.takes}", "```", ""]
    for paragraph in manual.description:
        lines += [_text(paragraph), ""]
    for section in manual.sections:
        lines += [f"## {section.title}", "", *_section(section, manual.name), ""]
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
    code = f"`{term}`".replace("|", "\\|")
    if term in PAGES:
        return f"[{PAGES[term]}](../../{term}.md)"
    if title == "See also":
        return f"[{code}]({page_of(term)})"
    if re.fullmatch(r"[a-z]+", term) and any(each.name == f"{name} {term}" for each in manuals()):
        return f"[{code}]({page_of(f'{name} {term}')})"
    return code


def _text(text: str) -> str:
    """Return words in which Markdown finds nothing of its own."""
    text = re.sub(r"'(faircal [^']+|--[^']+)'", r"`\1`", text)
    text = re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)(?![^`]*`)", r"`\1`", text)
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([*_<>\[\]|])", r"\\\1", part) for part in parts
    )
