"""The model card: what a model file says of itself, as Markdown or as one page of HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, TypeGuard

from markupsafe import Markup

from faircal._base.errors import ParameterError
from faircal._base.files import check_output, write_text
from faircal._version import __version__
from faircal.methods import Method, load_model
from faircal.methods.classifier import FairCalClassifier
from faircal.model import one_line
from faircal.report.card_facts import card_facts
from faircal.report.cells import markdown_rows
from faircal.report.rendering import render, resource
from faircal.report.svg import histogram
from faircal.report.wording import percent

__all__ = ["ModelCard", "card_facts", "card_html", "card_markdown", "model_card"]

#: What would be markup, or a table's border; not ``_``, which many names have and is read as it is.
_MARKUP = re.compile(r"([\\`*\[\]#|~])")
#: Letters of a text that are shown, whatever a file says.
_LONGEST = 2000
_COUNTS = ("pairs", "genuine", "imposters", "images", "people", "rows", "classes", "units")
#: What is measured at an operating point; rates have intervals.
_RATES = {"fpr": "False-positive rate", "fnr": "False-negative rate"}
_MEASURED = {
    "people": "People",
    "imposters": "Imposter pairs",
    "fpr": _RATES["fpr"],
    "genuine": "Genuine pairs",
    "fnr": _RATES["fnr"],
}


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
        check_output(out)
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
        The file that it was read from: its hash, size and format are then reported, too.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> print(card_markdown(faircal.Baseline().fit(cal)).splitlines()[0])
    # Model card: Baseline
    """
    facts = _clean(card_facts(model, file=file))
    texts = [f"# Model card: {_md(facts['model']['title'])}"]
    for part in parts_of(facts):
        texts += [f"## {part.title}", *map(_md, part.words)]
        if part.points:
            texts.append("\n".join(f"- {_md(point)}" for point in part.points))
        if part.facts:
            texts.append(_rows(("", ""), part.facts, "---"))
        for table in part.tables:
            texts += [f"### {_md(table.title)}", _rows(table.columns, table.rows, "---:")]
    return "\n\n".join(texts) + "\n"


def _rows(columns: Sequence[str], rows: Sequence[Sequence[str]], side: str) -> str:
    """Return a table in Markdown, its columns but the first on one side."""
    rule = ["---", *[side] * (len(columns) - 1)]
    lines = [map(_md, columns), rule, *(map(_md, row) for row in rows)]
    return markdown_rows(lines).rstrip()


def _md(text: str) -> str:
    r"""Return text that is no markup, in Markdown or in the HTML that may be made of it.

    Examples
    --------
    >>> print(_md("a|b <script> *c*"))
    a\|b &lt;script&gt; \*c\*
    """
    return _MARKUP.sub(r"\\\1", escape(text, quote=False))


def card_html(model: Method | FairCalClassifier, *, file: str | Path | None = None) -> str:
    """Return the model card as one page of HTML that needs nothing else, no network either.

    Parameters
    ----------
    model : Method or FairCalClassifier
    file : path, optional
        As for `card_markdown`.
    """
    facts = _clean(card_facts(model, file=file))
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
        histogram(
            scores["edges"],
            {"genuine": scores["genuine"], "imposters": scores["imposter"]},
            title="Similarity of calibration pairs",
            x_label="similarity (cosine)",
            width=420,  # narrow enough that text can be read on a phone
        )
    )


def _clean(value: Any) -> Any:
    """Return facts with every text on one line, printable and not too long: a file may be hostile.

    Markdown and HTML then only have to escape.
    """
    if isinstance(value, dict):
        return {one_line(key, _LONGEST): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return one_line(value, _LONGEST) if isinstance(value, str) else value


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
    words: Sequence[str] = ()
    points: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    tables: Sequence[Sheet] = ()


def parts_of(facts: Mapping[str, Any]) -> list[CardSection]:
    """Return the sections of a card in the order in which they are read."""
    use = facts["intended_use"]
    no_stated_use = "Nobody has said what it is for: 'faircal fit --intended-use TEXT' does."
    limits = facts["limits"]
    return [
        _what(facts["model"]),
        CardSection("use", "Intended use", [use or no_stated_use]),
        _population(facts["population"]),
        *([_cohort(facts["cohort"])] if facts["cohort"] else []),
        _deciding(facts["operating_point"]),
        *([_evidence(facts["evidence"]["words"])] if facts["evidence"] else []),
        CardSection("limits", "Limits", [] if limits else ["The file says of none."], limits),
        CardSection("scope", "Not for", points=facts["out_of_scope"]),
        _diagnostics(facts["diagnostics"]),
        _provenance(facts["provenance"]),
        *([_file(facts["file"])] if facts["file"] else []),
    ]


def _what(model: Mapping[str, Any]) -> CardSection:
    facts = {"Method": f"{model['title']} ({model['method']})", "For": model["kind"]}
    if "classes" in model:
        facts |= {
            "Classes": model["classes"],
            "Features": model["features"],
            "Clusters": model["clusters"],
            "Shrinkage in use": model["shrinkage"],
        }
    else:
        facts |= {
            "Scores between": " and ".join(f"{end:g}" for end in model["score_range"]),
            "Embeddings": "needed" if model["needs_embeddings"] else "not needed",
            "Attributes in use": "needed" if model["needs_attributes_in_use"] else "never asked",
        }
    facts |= model["parameters"]
    return CardSection("what", "What it is", [model["what"]], facts=_facts(facts))


def _population(population: Mapping[str, Any]) -> CardSection:
    counts, scores = population["counts"], population["scores"]
    words = [] if counts else ["The file does not say whom it was calibrated on."]
    if population["simulated"]:
        words.append("The people are simulated: nothing here is about real ones.")
    order = [*(name for name in _COUNTS if name in counts), *sorted(set(counts) - set(_COUNTS))]
    facts = {name.capitalize(): counts[name] for name in order}
    if scores is not None and scores["clusters"]:
        facts["Clusters of images"] = scores["clusters"]
    sides = "Images" if counts.get("images") is not None else "Sides of pairs"
    unit = "Rows" if "rows" in counts else sides
    tables = []
    for attribute, of in population["groups"].items():
        everything = max(sum(of.values()), 1)
        rows = tuple((name, f"{n:,}", percent(n / everything)) for name, n in of.items())
        tables.append(Sheet(f"Groups by {attribute}", (attribute, unit, "Share"), rows))
    title = "Calibration population"
    return CardSection("population", title, words, facts=_facts(facts), tables=tables)


def _cohort(cohort: Mapping[str, Any]) -> CardSection:
    """Say whose vectors a model compares with; the file may say anything."""
    words = ["What the model needs of the vectors of these people is in its file."]
    if cohort.get("simulated"):
        words.append("They are simulated.")
    names = {"name": "Name", "provenance": "From", "licence": "Licence"}
    facts = {shown: cohort.get(key) for key, shown in names.items()}
    facts |= {key.capitalize(): cohort.get(key) for key in ("people", "images")}
    facts |= {"SHA-256": cohort.get("sha256")}
    groups = cohort.get("groups")
    counts = groups.items() if isinstance(groups, Mapping) else ()
    rows = tuple(
        (name, *(_value(of.get(key)) for key in ("people", "images")))
        for name, of in counts
        if isinstance(of, Mapping)
    )
    attribute = _value(cohort.get("attribute"))
    sheet = Sheet(f"Groups by {attribute}", (attribute, "People", "Images"), rows)
    return CardSection("cohort", "Cohort", words, facts=_facts(facts), tables=[sheet])


def _deciding(point: Mapping[str, Any] | None) -> CardSection:
    if point is None:
        words = ["The likeliest class is the decision."]
        return CardSection("deciding", "How it decides", words)
    words = [
        f"A pair counts as genuine where its {point['on']} is {_value(point['threshold'])} or more."
    ]
    if not point["in_file"]:
        words.append(
            "That is the default: no operating point is in the file. "
            "'faircal threshold MODEL DATA --fpr 0.001' finds one with a promised rate."
        )
    elif point["fpr"] is not None:
        rate, confidence = percent(point["fpr"]), point["confidence"]
        how = f", with {percent(confidence)} confidence" if confidence else ""
        how += f", {point['assumption']}" if point["assumption"] else ""
        words.append(
            f"Promised false-positive rate: {rate} ({point['within']}){how}."
            if point["within"]
            else f"At most {rate} false positives were counted there; no rate is promised."
        )
    if point["exceeded"]:
        names = ", ".join(point["exceeded"])
        words.append(f"It does not hold in every group: measured above that rate in {names}.")
    origin = {"Found by": "source", "Found on": "data", "Its SHA-256": "data_sha256"}
    given = {name: point[key] for name, key in origin.items() if point["in_file"] and point[key]}
    measured = point["measured"]
    shown = [key for key in _MEASURED if any(row.get(key) is not None for row in measured)]
    tables = [
        Sheet(
            "Rates measured there, with intervals",
            ("Of", *(_MEASURED[key] for key in shown)),
            tuple((row.get("name", ""), *(_cell(row, key) for key in shown)) for row in measured),
        )
    ]
    facts = _facts(given)
    return CardSection(
        "deciding", "How it decides", words, facts=facts, tables=tables if shown else []
    )


def _evidence(words: str) -> CardSection:
    return CardSection(
        "evidence", "How strong evidence can be", [f"{words[:1].upper()}{words[1:]}."]
    )


def _cell(row: Mapping[str, Any], key: str) -> str:
    """Return a count, or a rate in percent with its interval; the file may say anything."""
    values = [row.get(name) for name in (key, f"{key}_low", f"{key}_high")]
    if key not in _RATES or not _is_number(values[0]):
        return "–" if values[0] is None else _value(values[0])
    rate, *ends = (
        percent(value) if _is_number(value) and 0 <= value <= 1 else _value(value)
        for value in values
    )
    return f"{rate} ({' to '.join(ends)})" if all(map(_is_number, values)) else rate


def _diagnostics(diagnostics: Mapping[str, Any]) -> CardSection:
    facts = {key.replace("_", " "): value for key, value in diagnostics["figures"].items()}
    nothing = [] if diagnostics["notes"] or facts else ["Nothing was noted in the fit."]
    title = "Notes and figures of the fit"
    return CardSection("diagnostics", title, nothing, diagnostics["notes"], _facts(facts))


def _provenance(provenance: Mapping[str, Any] | None) -> CardSection:
    if provenance is None:
        missing = (
            "The file does not say where it is from: it is of an earlier version, or of a program "
            "that did not tell."
        )
        return CardSection("provenance", "Provenance", [missing])
    facts = {"Data": provenance["data"], "SHA-256 of the data": provenance["data_sha256"]}
    facts |= {"Network": provenance["feature"]} if provenance["feature"] else {}
    facts |= {f"Setting {key}": value for key, value in provenance["settings"].items()}
    facts |= {f"Version of {key}": value for key, value in provenance["versions"].items()}
    return CardSection("provenance", "Provenance", facts=_facts(facts))


def _file(file: Mapping[str, Any]) -> CardSection:
    facts = {
        "Name": file["name"],
        "SHA-256": file["sha256"],
        "Size": f"{file['bytes']:,} bytes",
        "Written by": f"faircal {file['written_by']}",
        "Format": f"{file['format']}, schema {file['schema']}",
    }
    return CardSection("file", "File", facts=_facts(facts))


def _facts(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, _value(value)) for name, value in values.items()]


def _value(value: Any) -> str:
    """Return a fact as people read it."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "none"
    if _is_number(value):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
    return one_line(value, _LONGEST)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
