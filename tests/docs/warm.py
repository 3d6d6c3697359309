"""The command ``faircal`` of pages: a process forked from one that has imported everything.

`Warm` puts a program of that name into a folder. It passes its words, folder, environment and
outputs to the process that waits at a socket (this file, run), which forks; the exit code comes
back. A service is started as ever, since others send it signals.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """\
#!{python} -IS
import json, os, socket, sys
if "serve" in sys.argv[1:2]:
    os.execv({real!r}, [{real!r}, *sys.argv[1:]])
order = {{"words": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
line = socket.socket(socket.AF_UNIX)
line.connect({path!r})
socket.send_fds(line, [b"x"], [1, 2])
line.sendall(json.dumps(order).encode() + b"\\n")
sys.exit(int(line.makefile().readline() or 1))
"""


class Warm:
    """The waiting process, and the folder with the program."""

    def __init__(self):
        self._made = tempfile.TemporaryDirectory(prefix="faircal-warm-")
        self.folder = Path(self._made.name)
        path = self.folder / "socket"
        self._listening = socket.create_server(str(path), family=socket.AF_UNIX)
        single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(self._listening.fileno())],
            pass_fds=[self._listening.fileno()],
            env=os.environ | single | {"PYTHONPATH": str(Path(__file__).parents[2])},
        )
        program = self.folder / "faircal"
        real = str(Path(sys.executable).with_name("faircal"))
        program.write_text(PROGRAM.format(python=sys.executable, real=real, path=str(path)))
        program.chmod(0o755)

    def stop(self):
        self._process.kill()
        self._process.wait()
        self._listening.close()
        self._made.cleanup()


def wait(listening):
    """Fork a command for each that asks; another fork waits for its end and tells the code."""
    from tests.forked import import_everything

    import_everything()
    while True:
        asking, _ = listening.accept()
        if os.fork() == 0:
            os._exit(serve(asking))
        asking.close()
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def serve(asking):
    from faircal.cli.main import main
    from tests.forked import become, end_with

    _, (out, err), _, _ = socket.recv_fds(asking, 1, 2)
    order = json.loads(asking.makefile().readline())
    child = os.fork()
    if not child:
        asking.close()
        become(order, out, err)
        end_with(main)
    _, status = os.waitpid(child, 0)
    asking.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    return 0


if __name__ == "__main__":
    wait(socket.socket(fileno=int(sys.argv[1])))
