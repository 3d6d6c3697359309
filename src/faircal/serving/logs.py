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
    # It tells of every start, stop and odd client; what counts we tell ourselves.
    logging.getLogger("uvicorn.error").setLevel("CRITICAL" if level != "debug" else "DEBUG")


def _one_line(record: logging.LogRecord) -> bool:
    """Keep messages to one line, and leave traces out: they could quote what was sent."""
    record.msg, record.args = " ".join(record.getMessage().split()), None
    record.exc_info = record.exc_text = record.stack_info = None
    return True
