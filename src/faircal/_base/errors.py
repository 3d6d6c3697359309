"""The error tree: every error that faircal raises on purpose.

    FairCalError
    ├── DataError          the data cannot be used (bad value, missing column, unknown id …)
    ├── ParameterError     an argument, option or setting is wrong (also a ValueError)
    ├── NotFittedError     a method was asked to predict before it was fitted
    ├── ModelFileError     a model file is damaged, foreign or from a newer version
    ├── MissingExtraError  a package is needed that an extra of faircal brings
    └── StorageError       templates or decisions can't be read or kept
        ├── StorageUnavailableError   the database does not answer: it may later
        ├── StorageFullError   there is no room left
        └── ConflictError      there is such a template already

Each message is one line that says what was expected, what was found, where, and what to do.
The command line prints that line and exits with 2.
"""

from __future__ import annotations


class FairCalError(Exception):
    """Root of the tree: catch this to catch everything faircal raises on purpose."""


class DataError(FairCalError, ValueError):
    """The data cannot be used; the message names the file, the column or row, and the remedy."""


class ParameterError(FairCalError, ValueError):
    """An argument, option or setting is wrong; the message says what was expected."""


class NotFittedError(FairCalError, AttributeError):
    """A method or calibrator was asked to predict before ``fit``."""


class ModelFileError(FairCalError):
    """A model file is damaged, is not a faircal model, or is from a newer version."""


class MissingExtraError(FairCalError, ImportError):
    """A package is needed that is not installed; the message says how to install it."""


class StorageError(FairCalError):
    """Templates or decisions can't be read or kept; the message says why and what to do."""


class StorageUnavailableError(StorageError):
    """The database does not answer; trying again later may help."""


class StorageFullError(StorageError):
    """There is no room left to write; nothing was written."""


class ConflictError(StorageError):
    """There is a template of this name already."""


# Users meet the errors as faircal.DataError, wherever this file is.
for _error in (FairCalError, *FairCalError.__subclasses__(), *StorageError.__subclasses__()):
    _error.__module__ = "faircal"
del _error
