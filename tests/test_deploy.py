"""The container file and the systemd unit say what is true of this project."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from faircal.cli.serve import command

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "deploy" / "faircal.service"
CONTAINER = ROOT / "deploy" / "Containerfile"


def serving(words):
    """Parse what follows ``faircal serve``; an option that is not there is an error."""
    return command.make_context("serve", list(words), resilient_parsing=False).params


def unit():
    class Sections(dict):
        """A directive may come several times: the values are kept in a row."""

        def __setitem__(self, key, value):
            if isinstance(value, list) and key in self:
                self[key].extend(value)
            else:
                super().__setitem__(key, value)

    parser = configparser.RawConfigParser(strict=False, dict_type=Sections, interpolation=None)
    parser.optionxform = str
    parser.read(UNIT)
    return parser


def instructions():
    text = CONTAINER.read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def test_the_unit_starts_the_service():
    words = shlex.split(unit()["Service"]["ExecStart"])
    assert words[:2] == ["/opt/faircal/bin/faircal", "serve"]
    found = serving(words[2:])
    assert str(found["model"]) == "/etc/faircal/faces.faircal"
    assert unit()["Service"]["ExecReload"] == "/bin/kill -HUP $MAINPID"


def test_the_unit_writes_only_where_it_may():
    service = unit()["Service"]
    assert service["ProtectSystem"] == "strict"
    assert service["StateDirectory"] == "faircal"
    words = shlex.split(service["ExecStart"])
    assert words[words.index("--database") + 1].startswith("/var/lib/faircal/")
    assert service["LimitCORE"] == "0"


@pytest.mark.parametrize("level", [20])
def test_systemd_finds_nothing_wrong(tmp_path, level):
    if not shutil.which("systemd-analyze"):
        return  # the tests above read the unit by themselves
    copy = tmp_path / "faircal.service"
    text = UNIT.read_text().replace("/opt/faircal/bin/faircal", "/bin/true")
    copy.write_text(text)
    found = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, timeout=60
    )
    assert (found.returncode, found.stderr) == (0, "")
    words = ["systemd-analyze", "security", "--offline=true", f"--threshold={level}", str(copy)]
    found = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stdout[-200:]


def test_what_the_container_copies_is_there():
    for word, rest in instructions():
        if word == "COPY" and not rest.startswith("--from"):
            for path in rest.split()[:-1]:
                assert (ROOT / path).exists(), path


def test_the_container_installs_extras_that_there_are():
    text = CONTAINER.read_text()
    (extras,) = re.findall(r'"\.\[([\w,]+)\]"', text)
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {"serve", "postgres"} <= set(extras.split(",")) <= set(known)


def test_the_container_starts_the_service_as_nobody():
    last = dict(instructions())
    assert json.loads(last["ENTRYPOINT"]) == ["faircal", "serve"]
    found = serving(json.loads(last["CMD"]))
    assert found["host"] == "0.0.0.0"  # noqa: S104  (inside the container)
    assert found["keys"] is not None
    assert last["USER"] != "0"
    assert last["STOPSIGNAL"] == "SIGTERM"
