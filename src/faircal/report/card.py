"""The model card: what a model file says of itself, as Markdown or as one page of HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from faircal._version import __version__
from faircal.methods import Method
from faircal.methods.classifier import FairCalClassifier
from faircal.report.card_facts import card_facts
from faircal.report.card_parts import Part, Sheet, parts_of
from faircal.report.rendering import render, resource
from faircal.report.svg import score_histogram

__all__ = ["card_facts", "card_html", "card_markdown"]

#: What would be markup, or a table's border, in a text that data or a file brings.
_MARKUP = re.compile(r"([\\`*\[\]#|~])")


def card_markdown(model: Method | FairCalClassifier, *, file: str | Path | None = None) -> str:
    """Return the model card as Markdown.

    Parameters
    ----------
    model : Method or FairCalClassifier
        Fitted, or read by `faircal.load_model`.
    file : path, optional
        The file that it was read from: its hash, size and format are then told, too.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> print(card_markdown(faircal.Baseline().fit(cal)).splitlines()[0])
    # Model card: Baseline
    """
    facts = card_facts(model, file=file)
    lines = [f"# Model card: {_md(facts['model']['title'])}"]
    for part in parts_of(facts):
        lines += ["", f"## {part.title}", *_section(part)]
    return "\n".join(lines) + "\n"


def card_html(model: Method | FairCalClassifier, *, file: str | Path | None = None) -> str:
    """Return the model card as one page of HTML that needs nothing else, no network either.

    Parameters
    ----------
    model : Method or FairCalClassifier
    file : path, optional
        As for `card_markdown`.
    """
    facts = card_facts(model, file=file)
    return render(
        "card.html",
        title=facts["model"]["title"],
        kind=facts["model"]["kind"],
        simulated=facts["population"]["simulated"],
        parts=parts_of(facts),
        chart=_chart(facts["population"]["scores"]),
        style=resource("page.css") + resource("card.css"),
        version=__version__,
    )


def _chart(scores: Mapping[str, Any] | None) -> Markup | None:
    """Draw the scores that `card_facts` tells of; None where there are none of either kind."""
    if scores is None or not (sum(scores["genuine"]) and sum(scores["imposter"])):
        return None
    return Markup(  # noqa: S704 - svg.py escapes all text
        score_histogram(
            scores["edges"],
            scores["genuine"],
            scores["imposter"],
            title="Similarity of calibration pairs",
            x_label="similarity (cosine)",
            width=420,  # narrow enough that text can be read on a phone
        )
    )


def _section(part: Part) -> Iterator[str]:
    for text in part.words:
        yield from ("", _md(text))
    if part.points:
        yield from ("", *(f"- {_md(point)}" for point in part.points))
    if part.facts:
        yield from ("", *_lines(("", ""), part.facts))
    for table in part.tables:
        yield from ("", f"### {_md(table.title)}", "", *_table(table))


def _table(table: Sheet) -> Iterator[str]:
    return _lines(table.columns, table.rows)


def _lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(map(_md, columns))} |"
    # Names to the left, numbers to the right; of facts both are words.
    right = "---:" if any(columns) else "---"
    yield f"| {' | '.join(['---', *[right] * (len(columns) - 1)])} |"
    for row in rows:
        yield f"| {' | '.join(map(_md, row))} |"


def _md(text: str) -> str:
    r"""Return text that is no markup, in Markdown or in the HTML that may be made of it.

    Examples
    --------
    >>> print(_md("a|b <script> *c*"))
    a\|b &lt;script&gt; \*c\*
    """
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(r"\\\1", escaped)
