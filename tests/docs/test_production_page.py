"""What docs/how-to/service.md says of the service, beyond what it runs."""

from __future__ import annotations

import re
import shlex
import stat
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from faircal.cli.main import cli
from faircal.cli.serve import command as serve
from pages.parsing import ROOT, Page

PAGE = Page.read(ROOT / "docs" / "how-to" / "service.md")


def titled(title):
    (text,) = [block.text for block in PAGE.blocks if block.title == title]
    return text


def test_every_option_is_in_the_table():
    section = PAGE.text.partition("## Options\n")[2].partition("\n## ")[0]
    told = set(re.findall(r"`(--[\w-]+)`", section))
    known = {name for param in serve.params for name in param.opts if name.startswith("--")}
    assert known - {"--help"} <= told


def test_metrics_in_rules_and_prose_are_there():
    (listed,) = [block.text for block in PAGE.blocks if "faircal_batches_total" in block.text]
    prose = re.sub(r"^```.*?^```$", "", PAGE.text, flags=re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"\bfaircal_[a-z_]+", titled("alerts.yaml") + prose))
    assert len(named) >= 7
    assert named <= set(listed.split())  # which is what the running service told


def test_the_container_line_is_one():
    words = shlex.split(titled("container.sh"))
    told = serve.make_context("serve", words[words.index("faircal") + 1 :]).params
    assert told["keys"] == Path("/secrets/keys.json")


def test_a_key_file_that_others_may_read_stays_so(tmp_path):
    path = tmp_path / "keys.json"

    def keys(*words):
        with pytest.raises(SystemExit) as ended:
            cli.main(["keys", *words, "--keys", str(path)])
        assert ended.value.code in (0, None)

    keys("add", "a")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    keys("add", "b")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
