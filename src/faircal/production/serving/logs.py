"""What the service writes to standard error: a line each, and nothing of what was sent."""

from __future__ import annotations

import logging
import sys

_FORMAT = "%(asctime)s %(levelname)s %(message)s"


def start_logging(level: str) -> None:
    """Send what the service and its server say to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORMAT))
    handler.addFilter(_one_line)
    for name in ("faircal", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
    # They tell of every start, odd client and failed connection; what counts we tell ourselves.
    for name in ("uvicorn.error", "psycopg.pool"):
        logging.getLogger(name).setLevel("CRITICAL" if level != "debug" else "DEBUG")
    others = logging.StreamHandler(sys.stderr)
    others.setFormatter(logging.Formatter(_FORMAT))
    others.addFilter(_withheld)
    logging.getLogger().handlers = [others]


def _withheld(record: logging.LogRecord) -> bool:
    """Say who of all others said something, not what: it could quote what was sent."""
    kind = record.exc_info[0] if record.exc_info else None
    record.msg = f"{record.name} says something" + (f" ({kind.__name__})" if kind else "")
    record.args = None
    return _one_line(record)


def _one_line(record: logging.LogRecord) -> bool:
    """Keep messages to one line, and leave traces out: they could quote what was sent."""
    record.msg, record.args = " ".join(record.getMessage().split()), None
    record.exc_info = record.exc_text = record.stack_info = None
    return True
