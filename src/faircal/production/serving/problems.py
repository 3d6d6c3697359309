"""What is answered when a request can't be: one line of JSON.

Nothing of the request is in it but the short name of a field that nobody knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faircal._base.errors import (
    ConflictError,
    DataError,
    FairCalError,
    MissingExtraError,
    ModelFileError,
    ParameterError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
)


class Refused(Exception):  # noqa: N818  (an answer, rather than an error of ours)
    """A request that is answered with an error.

    Parameters
    ----------
    status : int
        Of HTTP.
    code : str
        For machines.
    message : str
        One line that says what was expected and what to do; never what was sent.
    where : str, optional
        The part of the request: ``left``, ``pairs[3].right``.
    headers : mapping, optional
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        where: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.where, self.headers = where, dict(headers or {})

    def as_json(self) -> dict[str, Any]:
        """Return the body of the answer."""
        error = {"code": self.code, "message": self.message}
        return {"error": error if self.where is None else {**error, "where": self.where}}


#: The first kind that fits: status, code, headers.
_ANSWERS: tuple[tuple[type[FairCalError], int, str, dict[str, str]], ...] = (
    (StorageUnavailableError, 503, "storage_away", {"Retry-After": "1"}),
    (StorageFullError, 507, "storage_full", {}),
    (ConflictError, 409, "conflict", {}),
    (StorageError, 503, "storage", {"Retry-After": "5"}),
    (ModelFileError, 409, "model", {}),
    (MissingExtraError, 409, "missing_extra", {}),
    (DataError, 422, "data", {}),
    (ParameterError, 422, "parameter", {}),
)


def answer_to(error: FairCalError, where: str | None = None) -> Refused:
    """Return what is answered to an error that faircal raised on purpose.

    >>> answer_to(StorageFullError("no room left")).status
    507
    """
    for kind, status, code, headers in _ANSWERS:
        if isinstance(error, kind):
            return Refused(status, code, " ".join(str(error).split()), where, headers)
    return Refused(422, "refused", " ".join(str(error).split()), where)


def unprocessable(message: str, where: str | None = None, code: str = "data") -> Refused:
    """Return the answer to a body that can't be used."""
    return Refused(422, code, message, where)


def too_many(max_pairs: int) -> Refused:
    """Return the answer to a batch of too many pairs."""
    return Refused(413, "too_many", f"expected at most {max_pairs:,} pairs; send several batches")
