"""The service as a process of its own, what it says, and ways to talk to it."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

#: Imports once, then forks for every line it reads: the words of the command, where what it says on
#: standard output and error goes, and Python to run first. So a start takes tenths of a second.
SPAWNER = """
import json, os, sys
import faircal.cli.serve, faircal.production.serving.app, faircal.production.serving.server
import faircal.report.card, fastapi, uvicorn, prometheus_client
import psycopg_pool, pgvector.psycopg, cryptography
from faircal.cli.main import main

while line := sys.stdin.readline():
    words, out, err, first = json.loads(line)
    child = os.fork()
    if not child:
        for name, number in ((out, 1), (err, 2)):
            opened = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(opened, number)
        code = 1
        try:
            exec(first)
            main(words)
        except SystemExit as ended:
            code = ended.code
        finally:
            os._exit(code)
    print(child, flush=True)
    _, status = os.waitpid(child, 0)
    print("ended", os.waitstatus_to_exitcode(status), flush=True)
"""


class Running:
    """`faircal serve` as a process; used as a context, it is killed at the end.

    Parameters
    ----------
    spawner : Popen
        What forks it.
    words : sequence
        Arguments of the command, from the model on; the port is any that is free.
    log : Path
        Where its standard error goes.
    out : Path
        Where its standard output goes: the address.
    first : str
        Python that its process runs before.
    """

    def __init__(self, spawner, words, log, out, first):
        self.log, self._spawner, self._ended = log, spawner, False
        line = json.dumps([["serve", *map(str, words), "--port", "0"], str(out), str(log), first])
        spawner.stdin.write(line + "\n")
        spawner.stdin.flush()
        self.pid = int(spawner.stdout.readline())
        told = ""
        for _ in range(2000):
            told = out.read_text() if out.exists() else ""
            if told.endswith("\n") or not self.alive():
                break
            time.sleep(0.01)
        self.address = told.strip()
        if not self.address.startswith("http"):
            self.kill()
            raise RuntimeError(f"not started: {self.said()}")
        self.port = int(self.address.rpartition(":")[2])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def client(self, **options):
        """Return a client of it; close it."""
        return httpx.Client(base_url=self.address, timeout=30, **options)

    def said(self):
        """Return what it has written to standard error."""
        return self.log.read_text(errors="replace")

    def memory(self):
        """Return the most bytes of memory that it ever had."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        (line,) = [line for line in lines if line.startswith("VmHWM:")]
        return 1024 * int(line.split()[1])

    def alive(self):
        """Tell whether it has not ended."""
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state != "Z"

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        """End it with -9, now."""
        if not self._ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._wait()

    def end(self):
        """Ask it to end; return its exit code."""
        self.signal(signal.SIGTERM)
        return self._wait()

    def _wait(self):
        said, code = self._spawner.stdout.readline().split()
        assert said == "ended"
        self._ended = True
        return int(code)


class Spawner:
    """Starts services one after the other, quickly."""

    def __init__(self, folder):
        self._folder = Path(folder)
        self._process = subprocess.Popen(
            [sys.executable, "-c", SPAWNER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._count = 0

    def start(self, *words, log, first=""):
        """Return a service that runs; `first` is Python that its process runs before."""
        self._count += 1
        out = self._folder / f"out-{self._count}"
        return Running(self._process, words, Path(log), out, first)

    def close(self):
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


def eventually(test, seconds=30.0):
    """Return what `test` gives once it is true; fail where it does not come to be."""
    end = time.monotonic() + seconds
    while not (found := test()):
        assert time.monotonic() < end, "it did not come to be in time"
        time.sleep(0.02)
    return found


def say(port, request, more=(), patience=20.0):
    """Send bytes as they are; return the status and the body of the answer, (0, b"") if none."""
    with socket.create_connection(("127.0.0.1", port), timeout=patience) as line:
        try:
            line.sendall(request)
            for part in more:
                line.sendall(part)
        except OSError:  # it has hung up already; it may have said why
            pass
        found = b""
        try:
            while part := line.recv(65536):
                found += part
                if _is_whole(found):
                    break
        except OSError:
            pass
    head, _, body = found.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    return (int(words[1]) if len(words) > 1 else 0), body


def _is_whole(found):
    head, mark, body = found.partition(b"\r\n\r\n")
    if not mark:
        return False
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line[15:])
    if b"transfer-encoding: chunked" in head.lower():
        return body.endswith(b"0\r\n\r\n")
    return head.split(b" ", 2)[1] in (b"204", b"304")


@contextlib.contextmanager
def small_disk(folder: Path):
    """Mount a disk of 2 MB in `folder`; False where this machine does not allow it."""
    libc = ctypes.CDLL(None, use_errno=True)
    where = os.fsencode(folder)
    mounted = libc.mount(b"tmpfs", where, b"tmpfs", 0, b"size=2m") == 0
    try:
        yield mounted
    finally:
        if mounted and libc.umount2(where, 2) != 0:
            raise OSError(ctypes.get_errno(), f"cannot unmount {folder}")
