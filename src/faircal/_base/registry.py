"""Named things that can be added to, and messages about names and numbers that are wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Integral
from typing import TypeVar

from faircal._base.errors import ParameterError

T = TypeVar("T")


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return the hint that ends an "unknown name" message.

    Examples
    --------
    >>> did_you_mean("isotnic", ["beta", "isotonic"])
    'did you mean isotonic? (known: beta, isotonic)'
    """
    listed = list(names)
    close = difflib.get_close_matches(name, listed, n=1)
    listing = f"known: {', '.join(listed)}" if listed else "there are none"
    return f"did you mean {close[0]}? ({listing})" if close else listing


def check_integer(name: str, value: object, least: int, why: str = "") -> None:
    """Raise `ParameterError` unless `value` is a whole number of `least` or more; `why` so many.

    Examples
    --------
    >>> check_integer("n_init", 0, 1)
    Traceback (most recent call last):
    ...
    faircal.ParameterError: n_init: expected a whole number of 1 or more, found 0
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        reason = f" ({why})" if why else ""
        raise ParameterError(
            f"{name}: expected a whole number of {least} or more{reason}, found {value!r}"
        )


def device_kind(name: str) -> str:
    """Return a device without its number: auto, cpu or cuda.

    Examples
    --------
    >>> device_kind("cuda:1")
    'cuda'
    """
    kind = name.partition(":")[0]
    if kind not in ("auto", "cpu", "cuda"):
        raise ParameterError(f"device: expected auto, cpu or cuda, found {name!r}")
    return kind


def short(error: Exception) -> str:
    """Return the first line of an error's text, cut to fit a message."""
    return str(error).partition("\n")[0][:160] or type(error).__name__


class Registry(dict[str, T]):
    """Things by name, filled by registration, with helpful look-up errors.

    Parameters
    ----------
    kind : str
        What the things are, in the singular; used in messages.

    Examples
    --------
    >>> shapes = Registry[type]("shape")
    >>> shapes.register("round", float)
    >>> shapes["round"]
    <class 'float'>
    >>> shapes["rund"]
    Traceback (most recent call last):
    ...
    faircal.ParameterError: unknown shape 'rund'; did you mean round? (known: round)
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def register(self, name: str, thing: T) -> None:
        """Add `thing` under `name`; a name can be taken only once."""
        if name in self:
            raise ParameterError(f"{self.kind} {name!r} is registered already; choose another name")
        self[name] = thing

    def __missing__(self, name: str) -> T:
        hint = did_you_mean(str(name), self)
        raise ParameterError(f"unknown {self.kind} {name!r}; {hint}")
