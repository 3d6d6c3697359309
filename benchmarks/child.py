"""Run a command and write what it used, as JSON: ``python child.py OUT COMMAND…``.

A small process of its own, because the peak memory that Linux reports of a process is at least
that of the one it was started from.
"""

import json
import os
import sys
import time
from pathlib import Path

out, *command = sys.argv[1:]
start = time.perf_counter()
process = os.posix_spawnp(command[0], command, os.environ)
_, status, used = os.wait4(process, 0)
found = {
    "seconds": time.perf_counter() - start,
    "cpu": used.ru_utime + used.ru_stime,
    "peak": used.ru_maxrss * 1024,
}
Path(out).write_text(json.dumps(found), encoding="utf-8")
sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)
