"""Which headers of model files this version reads, and how text of a file may be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faircal._base.errors import ModelFileError
from faircal._version import __version__

#: Of the header: 0 had no such entry, 1 says where a model is from (`About`).
SCHEMA = 1


def check_schema(header: Mapping[str, Any]) -> None:
    """Raise where the header is of a version that is not known yet."""
    schema = header.get("schema", 0)
    if type(schema) is not int or schema < 0:
        raise ModelFileError("damaged: its schema is no number; copy or fit it again")
    if schema > SCHEMA:
        writer = one_line(header.get("faircal", "?"), 20)
        raise ModelFileError(
            f"written by a newer faircal ({writer}) in schema {one_line(schema, 20)}; "
            f"this one ({__version__}) reads up to {SCHEMA}: upgrade"
        )


def one_line(text: object, most: int = 200) -> str:
    r"""Return `text` as one short line that can't steer a terminal: a file may say anything.

    Examples
    --------
    >>> one_line("two\nlines \x1b[2J")
    'two lines ?[2J'
    """
    line = " ".join(str(text).split())[:most]
    return "".join(letter if letter.isprintable() else "?" for letter in line)
