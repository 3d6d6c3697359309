"""Where the service keeps templates and decisions: SQLite in a file, or PostgreSQL."""

from __future__ import annotations

from faircal._base.errors import ParameterError
from faircal.production.serving.store.base import Store
from faircal.production.serving.store.encryption import read_key
from faircal.production.serving.store.records import Decision, TemplateInfo

__all__ = ["Decision", "Store", "TemplateInfo", "open_store", "read_key"]


def open_store(url: str, key: bytes | None = None) -> Store:
    """Open a store, and make it where there is none.

    Parameters
    ----------
    url : str
        ``sqlite:///faircal.db`` (``sqlite:////`` for a path from the root) or a path alone, or
        ``postgresql://user@host/database``.
    key : bytes, optional
        32 bytes that templates are encrypted with at rest; the same at every opening.

    Returns
    -------
    Store

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = open_store(f"{folder}/faircal.db")
    ...     store.enrol("anna", [3, 4])
    ...     found = store.search([1, 0], limit=1)
    ...     store.close()
    >>> [(name, round(cosine, 3)) for name, cosine in found]
    [('anna', 0.6)]
    """
    scheme, mark, rest = url.partition("://")
    if scheme in ("postgresql", "postgres") and mark:
        from faircal.production.serving.store.postgres import PostgresStore

        return PostgresStore(url, key)
    supported = not mark or (scheme == "sqlite" and rest.startswith("/"))
    path = rest.removeprefix("/") if mark else url
    if not supported or path in ("", ":memory:"):
        raise ParameterError(
            "store: expected a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE; "
            f"found {scheme + mark + '…' if mark else repr(url)}"
        )
    from faircal.production.serving.store.sqlite import SqliteStore

    return SqliteStore(path, key)
