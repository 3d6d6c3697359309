"""Tables as files, in every form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from faircal.files import output_folder, write_text
from faircal.report.formats import as_csv, document, latex, markdown
from faircal.report.tables import Table

TABLES, ALL_TABLES = "tables", "all-tables.tex"


def write_tables(numbered: Mapping[int, Table], folder: Path) -> list[Path]:
    """Write tables to ``folder/tables``; return the paths.

    ``NN-<key>`` as ``.md``, ``.csv`` and ``.tex``, with ``-compared.tex`` where published numbers
    stand beside ours; ``all-tables.tex`` is a document that holds all of them.
    """
    home = output_folder(folder / TABLES)
    texts = {
        home / f"{number:02d}-{table.key}{end}": text
        for number, table in numbered.items()
        for end, text in _forms(table)
    }
    texts[home / ALL_TABLES] = document(list(numbered.values()))
    for path, text in texts.items():
        write_text(path, text)
    for path in home.glob("[0-9][0-9]-*"):  # of an earlier run
        if path not in texts and path.is_file():
            path.unlink()
    return list(texts)


def _forms(table: Table) -> Iterator[tuple[str, str]]:
    yield ".md", markdown(table)
    yield ".csv", as_csv(table)
    yield ".tex", latex(table)
    if table.compared:
        yield "-compared.tex", latex(table, compared=True)
