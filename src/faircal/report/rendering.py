"""Pages from templates: what comes from data is escaped, and can't turn the text round it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

#: Letters that turn the direction of what follows: a name with one would turn a sentence round.
_TURNING = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))


def resource(name: str) -> str:
    """Return a template, style or script of the report."""
    return files("faircal.report").joinpath(name).read_text(encoding="utf-8")


def render(
    template: str, filters: Mapping[str, Callable[..., Any]] | None = None, **values: Any
) -> str:
    """Return the page that a template, by name, makes of `values`."""
    environment = Environment(
        loader=FunctionLoader(resource),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters or {}
    return environment.get_template(template).render(values).translate(_TURNING)


def sentences(template: str, filters: Mapping[str, Callable[..., Any]], **values: Any) -> list[str]:
    """Return the sentences that a template of text makes of `values`: a blank line ends one.

    Nothing is escaped: pages do that with what they are given. A value has no line breaks, lest a
    name ends a sentence.
    """
    environment = Environment(
        loader=FunctionLoader(resource),
        autoescape=False,  # noqa: S701 - no markup
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: " ".join(value.split("\n")) if isinstance(value, str) else value,
    )
    environment.filters |= filters
    text = environment.get_template(template).render(values)
    return [
        " ".join(sentence.split()) for sentence in re.split(r"\n\s*\n", text) if sentence.strip()
    ]
