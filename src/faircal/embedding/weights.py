"""Files of weights: where they are looked for, their checksums, and what to do without them."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path

from faircal._base.errors import DataError, MissingExtraError, ModelFileError
from faircal._base.files import file_digest


@dataclass(frozen=True)
class Weights:
    """A file that somebody else publishes, and that faircal never downloads.

    `origin` is its address, or the command that installs it: an installed `package` may have it in
    a folder `inside`. Without a known `sha256` the
    checksum of the file at hand identifies it.
    """

    file: str
    sha256: str | None
    origin: str
    licence: str
    package: str | None = None
    inside: str = ""

    def find(self, given: Path | None = None, *, option: str = "") -> Path:
        """Return the verified file: `given`, else the package's, else that of the cache folder.

        `option` is that of the command line that gives one.
        """
        path = given or self._installed() or cache_folder() / self.file
        if given is not None and not given.is_file():
            raise DataError(f"{given}: no such file of weights; check the path")
        if not path.is_file():
            raise MissingExtraError(f"{self.file} is needed and not here: {self._remedy(option)}")
        checksum = file_digest(path)
        if self.sha256 not in (None, checksum):
            raise ModelFileError(
                f"{path}: expected SHA-256 {self.sha256}, found {checksum}; "
                f"it is damaged or another file: get it again ({self.origin})"
            )
        return path

    def _remedy(self, option: str) -> str:
        """Say what to do without the file."""
        if self.package:
            return f"{self.origin} (licence: {self.licence})"
        named = f", or name it with {option} FILE" if option else ""
        checksum = f", SHA-256 {self.sha256}" if self.sha256 else ""
        return (
            f"get {self.origin} (licence: {self.licence}{checksum}) and put it into "
            f"{cache_folder()}{named}"
        )

    def _installed(self) -> Path | None:
        spec = _find(self.package) if self.package else None
        if spec is None or spec.origin is None:
            return None
        path = Path(spec.origin).parent / self.inside / self.file
        return path if path.is_file() else None


def _find(module: str) -> ModuleSpec | None:
    """Return where a module is, without importing it; None where it is not."""
    try:
        return importlib.util.find_spec(module)
    except (ImportError, ValueError):  # kept away on purpose
        return None


def cache_folder() -> Path:
    """Return the folder where weights are looked for: ``$FAIRCAL_WEIGHTS``, or the user's cache."""
    setting = os.environ.get("FAIRCAL_WEIGHTS")
    if setting:
        return Path(setting)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "faircal" / "weights"


def require(module: str, extra: str, what: str, instead: str = "") -> None:
    """Raise unless `module` can be imported; the message says which extra brings it."""
    if _find(module) is None:
        also = f"; {instead}" if instead else ""
        raise MissingExtraError(
            f"{what} needs {module}, which is not installed: pip install 'faircal[{extra}]'{also}"
        )
