"""The model card: what a model file says of itself, as Markdown or as one page of HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from faircal._base.errors import ParameterError
from faircal._base.files import check_file, write_text
from faircal._version import __version__
from faircal.methods import Method, load_model
from faircal.methods.classifier import FairCalClassifier
from faircal.model import one_line
from faircal.report.card_facts import card_facts
from faircal.report.rendering import render, resource
from faircal.report.svg import score_histogram
from faircal.report.wording import percent

__all__ = ["ModelCard", "card_facts", "card_html", "card_markdown", "model_card"]

#: What would be markup, or a table's border, in a text that data or a file brings.
_MARKUP = re.compile(r"([\\`*\[\]#|~])")


@dataclass(frozen=True)
class ModelCard:
    """What a model file says of itself, by name and as Markdown."""

    facts: dict[str, Any]
    markdown: str


def model_card(model: str | Path, out: str | Path | None = None) -> ModelCard:
    """Return the card of a model file; with `out` it is also written, as .md or .html.

    Examples
    --------
    >>> import faircal
    >>> print(faircal.model_card("m.faircal").markdown)  # doctest: +SKIP
    """
    model, out = Path(model), None if out is None else Path(out)
    if out is not None:
        if out.suffix not in (".md", ".html"):
            raise ParameterError(
                f"--out {out}: expected a name that ends in .md or .html; choose one"
            )
        if out.resolve() == model.resolve():
            raise ParameterError(f"--out {out}: is read by this command; choose another path")
        check_file(out)
    loaded = load_model(model)
    card = ModelCard(card_facts(loaded, file=model), card_markdown(loaded, file=model))
    if out is not None:
        write_text(out, card.markdown if out.suffix == ".md" else card_html(loaded, file=model))
    return card


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


def _section(part: CardSection) -> Iterator[str]:
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


#: Letters of a text that are shown, whatever a file says.
_LONGEST = 2000
_COUNTS = ("pairs", "genuine", "imposters", "images", "people", "rows", "classes", "units")
_RATES = {"fpr": "False-positive rate", "fnr": "False-negative rate"}


@dataclass(frozen=True)
class Sheet:
    """A table: the first column names the row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class CardSection:
    """A section: paragraphs, a list, facts by name, tables; any of them may be missing."""

    key: str
    title: str
    words: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    tables: tuple[Sheet, ...] = ()


def parts_of(facts: Mapping[str, Any]) -> list[CardSection]:
    """Return the sections of a card in the order in which they are read."""
    return [
        _what(facts["model"]),
        _use(facts["intended_use"]),
        _population(facts["population"]),
        *_deciding(facts["operating_point"]),
        _listed("limits", "Limits", facts["limits"], "The file says of none."),
        _listed("scope", "Not for", facts["out_of_scope"], ""),
        _diagnostics(facts["diagnostics"]),
        _provenance(facts["provenance"]),
        *([_file(facts["file"])] if facts["file"] else []),
    ]


def _what(model: Mapping[str, Any]) -> CardSection:
    facts = [("Method", f"{model['title']} ({model['method']})"), ("For", model["kind"])]
    if "classes" in model:
        features = model["features"]
        named = features if isinstance(features, int) else ", ".join(features)
        facts += [
            ("Classes", ", ".join(model["classes"])),
            ("Features", named),
            ("Clusters", model["clusters"]),
            ("Shrinkage in use", model["shrinkage"]),
        ]
    else:
        facts += [
            ("Scores between", " and ".join(f"{end:g}" for end in model["score_range"])),
            ("Embeddings", "needed" if model["needs_embeddings"] else "not needed"),
            ("Attributes in use", "needed" if model["needs_attributes_in_use"] else "never asked"),
        ]
    parameters = [(key, value) for key, value in model["parameters"].items()]
    return CardSection(
        "what", "What it is", (_text(model["what"]),), facts=_facts([*facts, *parameters])
    )


def _use(text: str) -> CardSection:
    missing = "Nobody has said what it is for: 'faircal fit --intended-use TEXT' does."
    return CardSection("use", "Intended use", (_text(text) or missing,))


def _population(population: Mapping[str, Any]) -> CardSection:
    counts, scores = population["counts"], population["scores"]
    words = [] if counts else ["The file does not say whom it was calibrated on."]
    if population["simulated"]:
        words.append("The people are simulated: nothing here is about real ones.")
    order = [*(name for name in _COUNTS if name in counts), *sorted(set(counts) - set(_COUNTS))]
    facts = [(name.capitalize(), counts[name]) for name in order]
    if scores is not None and scores["clusters"]:
        facts.append(("Clusters of images", scores["clusters"]))
    return CardSection(
        "population",
        "Calibration population",
        tuple(words),
        facts=_facts(facts),
        tables=tuple(_groups(population["groups"], counts)) + tuple(_scores(scores)),
    )


def _groups(groups: Mapping[str, Mapping[str, int]], counts: Mapping[str, Any]) -> Iterator[Sheet]:
    unit = "Rows" if "rows" in counts else "Images"
    if unit == "Images" and counts.get("images") is None:
        unit = "Sides of pairs"
    for attribute, of in groups.items():
        everything = max(sum(of.values()), 1)
        rows = tuple(
            (_text(name), f"{count:,}", percent(count / everything)) for name, count in of.items()
        )
        yield Sheet(f"Groups by {_text(attribute)}", (_text(attribute), unit, "Share"), rows)


def _scores(scores: Mapping[str, Any] | None) -> Iterator[Sheet]:
    if scores is not None:
        rows = tuple(
            (f"{100 * float(part):g} %", *(_cosine(of[kind]) for kind in ("genuine", "imposter")))
            for part, of in scores["quantiles"].items()
        )
        columns = ("Of the pairs", "Genuine", "Imposter")
        yield Sheet("Similarity that calibration pairs have at most", columns, rows)


def _cosine(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _deciding(point: Mapping[str, Any] | None) -> Iterator[CardSection]:
    if point is None:
        yield CardSection("deciding", "How it decides", ("The likeliest class is the decision.",))
        return
    least = _number(point["threshold"])
    words = [f"A pair counts as genuine where its {_text(point['on'])} is {least} or more."]
    if not point["in_file"]:
        words.append(
            "That is the default: no operating point is in the file. "
            "'faircal threshold MODEL DATA --fpr 0.001' finds one with a promised rate."
        )
    elif point["fpr"] is not None:
        words.append(_rate_in_words(point))
    if point["exceeded"]:
        names = ", ".join(map(_text, point["exceeded"]))
        words.append(f"It does not hold in every group: measured above that rate in {names}.")
    facts = [
        (name, point[key])
        for name, key in (
            ("Found by", "source"),
            ("Found on", "data"),
            ("Its SHA-256", "data_sha256"),
        )
        if point["in_file"] and point[key]
    ]
    yield CardSection(
        "deciding",
        "How it decides",
        tuple(words),
        facts=_facts(facts),
        tables=tuple(_measured(point["measured"])),
    )


def _rate_in_words(point: Mapping[str, Any]) -> str:
    rate = percent(point["fpr"])
    if not point["within"]:
        return f"At most {rate} false positives were counted there; no rate is promised."
    sure = f", with {percent(point['confidence'])} confidence" if point["confidence"] else ""
    return f"Promised false-positive rate: {rate} ({_text(point['within'])}){sure}."


def _measured(rows: Sequence[Mapping[str, Any]]) -> Iterator[Sheet]:
    kinds = {
        "people": "People",
        "imposters": "Imposter pairs",
        "fpr": _RATES["fpr"],
        "genuine": "Genuine pairs",
        "fnr": _RATES["fnr"],
    }
    shown = [key for key in kinds if any(row.get(key) is not None for row in rows)]
    if rows and shown:
        yield Sheet(
            "Rates measured there, with intervals",
            ("Of", *(kinds[key] for key in shown)),
            tuple(
                (_text(row.get("name", "")), *(_cell(row, key) for key in shown)) for row in rows
            ),
        )


def _cell(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if key not in _RATES or not _is_number(value):
        return _number(value)
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    known = _is_number(low) and _is_number(high)
    ends = f" ({_rate(low)} to {_rate(high)})" if known else ""
    return f"{_rate(value)}{ends}"


def _rate(value: Any) -> str:
    return percent(value) if 0 <= value <= 1 else _number(value)


def _listed(key: str, title: str, points: Sequence[str], missing: str) -> CardSection:
    said = tuple(map(_text, points))
    return CardSection(key, title, () if said or not missing else (missing,), said)


def _diagnostics(diagnostics: Mapping[str, Any]) -> CardSection:
    notes = tuple(map(_text, diagnostics["notes"]))
    facts = [(key.replace("_", " "), value) for key, value in diagnostics["figures"].items()]
    nothing = () if notes or facts else ("Nothing was noted in the fit.",)
    return CardSection("diagnostics", "Notes and figures of the fit", nothing, notes, _facts(facts))


def _provenance(provenance: Mapping[str, Any] | None) -> CardSection:
    if provenance is None:
        missing = "The file does not say where it is from: it is of an earlier version, or of a "
        return CardSection("provenance", "Provenance", (f"{missing}program that did not tell.",))
    facts = [("Data", provenance["data"]), ("SHA-256 of the data", provenance["data_sha256"])]
    facts += [("Network", provenance["feature"])] if provenance["feature"] else []
    facts += [(f"Setting {key}", value) for key, value in provenance["settings"].items()]
    facts += [(f"Version of {key}", value) for key, value in provenance["versions"].items()]
    return CardSection("provenance", "Provenance", facts=_facts(facts))


def _file(file: Mapping[str, Any]) -> CardSection:
    facts = [
        ("Name", file["name"]),
        ("SHA-256", file["sha256"]),
        ("Size", f"{file['bytes']:,} bytes"),
        ("Written by", f"faircal {file['written_by']}"),
        ("Format", f"{file['format']}, schema {file['schema']}"),
    ]
    return CardSection("file", "File", facts=_facts(facts))


def _facts(pairs: Sequence[tuple[Any, Any]]) -> tuple[tuple[str, str], ...]:
    return tuple((_text(name), _value(value)) for name, value in pairs)


def _value(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "none"
    return _number(value) if _is_number(value) else _text(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> str:
    if not _is_number(value):
        return "–" if value is None else _text(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _text(value: object) -> str:
    return one_line(value, _LONGEST)
