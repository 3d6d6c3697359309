"""What shells propose for the values of options: names of registries, read when they are asked."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def registered(module: str, name: str, *, commas: bool = False) -> Completer:
    """Propose the names of a registry, or of a tuple, which is imported when somebody asks.

    With `commas` the value is a list, of which the last name is completed.
    """

    def known() -> Mapping[str, Any]:
        found = getattr(importlib.import_module(module), name)
        return found if isinstance(found, Mapping) else dict.fromkeys(found)

    return _completer(known, commas)


def among(*names: str, commas: bool = False) -> Completer:
    """Propose words."""
    return _completer(lambda: dict.fromkeys(names), commas)


def _completer(known: Callable[[], Mapping[str, Any]], commas: bool) -> Completer:
    def complete(
        _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        before, comma, word = incomplete.rpartition(",") if commas else ("", "", incomplete)
        return [
            CompletionItem(f"{before}{comma}{name}", help=_said(thing))
            for name, thing in known().items()
            if name.startswith(word) and name not in before.split(",")
        ]

    return complete


def _said(thing: Any) -> str | None:
    """Return what a registered thing says of itself, in a line."""
    text = getattr(thing, "what", None)
    if text is None and isinstance(thing, type):
        text = (inspect.getdoc(thing) or "").partition("\n")[0].replace("`", "")
    return text.rstrip(".") if isinstance(text, str) and text else None
