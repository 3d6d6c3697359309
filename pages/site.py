"""What MkDocs asks of us: the pages of the reference, made from the code, search and formulas.

The reference has a page for every public name (`MODULES`), for every command of ``faircal``, and
for the files at the root of the project that readers look for (`PROJECT`). Search finds a page
first by the word that it is about (`keywords`).
"""

from __future__ import annotations

import html
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pages.commands import command_pages, manuals, page_of
from pages.parsing import ROOT

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

#: Modules whose public names have pages, and what they are for. A name that several of them have
#: is on the page of the first.
MODULES = {
    "faircal": "what most programs need",
    "faircal.metrics": "measuring scores and probabilities",
    "faircal.figures": "figures: a table, words and a plot each",
    "faircal.methods": "methods by name, and what one of your own is made of",
    "faircal.calibrators": "maps from score to probability, and what one of your own is made of",
    "faircal.evaluation.classes": "comparing and auditing classifiers",
    "faircal.data": "datasets, their parts and their files",
    "faircal.data.simulation": "simulated faces",
    "faircal.data.importers": "datasets as their owners ship them",
    "faircal.embedding": "from pictures to vectors",
    "faircal.data.pairing": "from identities to pairs",
    "faircal.evaluation.tuning": "choosing clusters and calibrator",
    "faircal.evaluation.benchmark": "comparing methods, fold by fold or population by population",
    "faircal.evaluation.audit": "measuring anybody's scores",
    "faircal.metrics.intervals": "how certain that is",
    "faircal.evaluation.thresholds": "thresholds with a promise",
    "faircal.evaluation.compare": "differences between runs",
    "faircal.production.scoring": "scoring pairs of any number, and all there is to say of one",
    "faircal.report": "tables and pages of a finished run",
    "faircal.production.onnx": "ONNX",
    "faircal.production.monitoring": "does a model still fit?",
    "faircal.production.spark": "the same on a Spark cluster",
}

#: Pages that are files at the root of the project.
PROJECT = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "ROADMAP.md": "project/roadmap.md",
}

#: How addresses of pages begin that are seldom meant: whoever searches wants to do something, and
#: not to know why we decided something.
SELDOM = ("decisions/", "project/", "study-", "benchmarks", "mutation-testing")
#: How addresses begin that name what their pages are about.
NAMED = ("tutorials/", "how-to/", "explanation/", "reference/commands/")


@dataclass(frozen=True)
class Symbol:
    """A public name: its module, where it is defined, and its first sentence."""

    module: str
    name: str
    home: str
    summary: str

    @property
    def page(self) -> str:
        """The page's path in the documentation."""
        return f"reference/python/{self.module}.{self.name}.md"

    @property
    def statement(self) -> str:
        """What a program writes to have it."""
        return f"from {self.module} import {self.name}"


@cache
def symbols() -> list[Symbol]:
    """Every public name once, in the order of the modules."""
    found: dict[str, Symbol] = {}
    for module in MODULES:
        imported = importlib.import_module(module)
        for name in imported.__all__:
            thing = getattr(imported, name)
            if inspect.ismodule(thing) or name.startswith("__"):
                continue
            home, summary = f"{imported.__name__}.{name}", ""
            if inspect.isclass(thing) or inspect.isfunction(thing):
                home = f"{thing.__module__}.{thing.__qualname__}"
                summary = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
            found.setdefault(home, Symbol(module, name, home, summary))
    return list(found.values())


def _symbol_page(symbol: Symbol) -> str:
    return (
        f"---\ntitle: {symbol.name}\n---\n\n::: {symbol.home}\n"
        "    options:\n      heading_level: 1\n      show_root_heading: true\n"
    )


def _python_pages() -> Iterator[tuple[str, str]]:
    """Every page of the reference of Python, with its text."""
    every = symbols()
    lines = ["# Python", "", "Every public name, by module. Names are imported when they are used."]
    for module, purpose in MODULES.items():
        own = [symbol for symbol in every if symbol.module == module]
        lines += ["", f"## {module}", "", f"{purpose[0].upper()}{purpose[1:]}.", ""]
        lines += ["| name | |", "| --- | --- |"]
        for symbol in own:
            link = symbol.page.removeprefix("reference/python/")
            summary = symbol.summary.replace("|", "\\|")
            lines.append(f"| [`{symbol.name}`]({link}) | {summary} |")
            yield symbol.page, _symbol_page(symbol)
    yield "reference/python/index.md", "\n".join(lines) + "\n"


def _project_pages() -> Iterator[tuple[str, str]]:
    """Files of the project's root, with links that lead from where they are on the site."""
    for file, page in PROJECT.items():
        text = (ROOT / file).read_text("utf-8")
        for other, there in PROJECT.items():
            text = text.replace(f"]({other}", f"]({there.removeprefix('project/')}")
        text = text.replace("](README.md", "](../index.md")
        yield page, re.sub(r"\]\(docs/", "](../", text)


def generated() -> dict[str, str]:
    """All pages that are made from the code, by their paths."""
    return dict([*_python_pages(), *command_pages(), *_project_pages()])


def _python_menu() -> list[Any]:
    every = symbols()
    modules: list[Any] = [
        {module: [{s.name: s.page} for s in every if s.module == module]} for module in MODULES
    ]
    return ["reference/python/index.md", *modules]


def _commands_menu() -> list[Any]:
    pages = [(manual.name, f"reference/commands/{page_of(manual.name)}") for manual in manuals()]
    return [pages[0][1], *({name: page} for name, page in pages[1:])]


def _titles(folder: str) -> list[Any]:
    """The pages of a folder by their titles: that named index, then in the order of its links."""
    docs = ROOT / "docs"
    index = docs / folder / "index.md"
    links = re.findall(r"\(([\w-]+\.md)\)", index.read_text("utf-8")) if index.exists() else []
    order = dict.fromkeys([docs / folder / name for name in ("index.md", *links)])
    pages = sorted((docs / folder).glob("*.md"))
    found: list[Any] = []
    for path in [*(path for path in order if path in pages), *(p for p in pages if p not in order)]:
        place = path.relative_to(docs).as_posix()
        title = path.read_text("utf-8").partition("\n")[0].lstrip("# ")
        found.append(place if path.stem == "index" else {title: place})
    return found


#: Words in the menu of ``mkdocs.yml``, and the menus that they stand for.
MENUS: dict[str, Callable[[], list[Any]]] = {
    "PYTHON": _python_menu,
    "COMMANDS": _commands_menu,
    "GALLERY": lambda: _titles("gallery"),
    "DECISIONS": lambda: _titles("decisions"),
}


def _filled(entry: Any) -> Any:
    """Return an entry of the menu with what words in it stand for."""
    if isinstance(entry, list):
        return [_filled(each) for each in entry]
    if isinstance(entry, dict):
        return {title: _filled(each) for title, each in entry.items()}
    return MENUS[entry]() if entry in MENUS else entry


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put pages that are made, or that lie in folders of many, into the menu."""
    config.nav = _filled(config.nav)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from the code."""
    from mkdocs.structure.files import File

    for path, text in generated().items():
        files.append(File.generated(config, path, content=text))
    return files


#: A symbol's page as it is made: a box, and in it the heading.
_BOX = re.compile(r'(<div class="doc doc-object[^"]*">)\s*(<h1 .*?</h1>)', re.DOTALL)


def on_page_content(html_: str, page: Page, **_: Any) -> str:
    """Say below a symbol's heading how it is imported.

    The heading comes out of the box of what it heads, else page and symbol are two in search.
    """
    for symbol in symbols():
        if symbol.page == page.file.src_uri:
            how = f"<p>To import it: <code>{html.escape(symbol.statement)}</code></p>"
            return _BOX.sub(rf"\2\n{how}\n\1", html_, count=1)
    return html_


def on_post_page(output: str, **_: Any) -> str:
    """Give the theme's search a name, and no stop of the tab key where nothing is to be seen."""
    dialog, results = 'data-md-component="search" role="dialog"', 'class="md-search__scrollwrap"'
    output = output.replace(dialog, f'{dialog} aria-label="Search"')
    return output.replace(f'{results} tabindex="0"', f'{results} tabindex="-1"')


def keywords(address: str) -> list[str]:
    """Return the words that a page is about: those of its name.

    A name that begins with another (``FairCalError``) has none: it is not what ``FairCal`` asks
    for, but a rarer word, which search would put first.
    """
    place = PurePosixPath(address)
    if place.stem == "index":
        return []
    if address.startswith("reference/python/"):
        name = place.stem.removeprefix("faircal.").lower()
        top = {each.name.lower() for each in symbols() if each.module == "faircal"}
        begins = [other for other in top if name.startswith(other)]
        return begins if begins == [name] else []
    return place.stem.split("-") if address.startswith(NAMED) else []


def on_page_context(*_: Any, page: Page, config: MkDocsConfig, **__: Any) -> None:
    """Tell search, which has just read a page, what it is about and whether it is often meant."""
    words = keywords(page.url)
    boost = 0.3 if page.url.startswith(SELDOM) else 2 if words else 1
    search: Any = config.plugins["material/search"]
    for entry in reversed(search.search_index.entries):
        address, _, section = entry["location"].partition("#")
        if address != page.url:
            break
        entry["boost"] = boost
        if words and not section:
            entry["tags"] = words


def formula(source: str, *_: Any, **__: Any) -> str:
    """Turn a formula of LaTeX into MathML, which browsers show without help."""
    from latex2mathml.converter import convert

    return f'<div class="formula">{convert(source.strip(), display="block")}</div>'
