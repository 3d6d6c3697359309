"""The error tree: every error that faircal raises on purpose.

    FairCalError
    ├── DataError          the data cannot be used (bad value, missing column, unknown id …)
    ├── ParameterError     an argument, option or setting is wrong (also a ValueError)
    ├── NotFittedError     a method was asked to predict before it was fitted
    ├── ModelFileError     a model file is damaged, foreign or from a newer version
    └── MissingExtraError  a package is needed that an extra of faircal brings

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
