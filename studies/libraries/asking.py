"""Asking a library in its own interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from studies.libraries.claims import Claim, Library, probes_of

INSIDE = Path(__file__).parent / "inside.py"


class AskingError(RuntimeError):
    """An interpreter did not answer."""


def ask(
    python: str,
    library: Library,
    claims: Sequence[Claim] = (),
    call: str | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Have claims checked, or a probe called, by an interpreter; return its answer."""
    question: dict[str, Any] = {
        "distributions": list(library.distributions),
        "claims": [claim.question for claim in claims],
    }
    probes = probes_of(library.name)
    if probes.exists():
        question["probes"] = str(probes)
    if call is not None:
        question |= {"call": call, "with": dict(arguments or {})}
    with tempfile.TemporaryDirectory(prefix="faircal-libraries-") as folder:
        asked, answer = Path(folder) / "question.json", Path(folder) / "answer.json"
        asked.write_text(json.dumps(question), encoding="utf-8")
        ran = _run([python, str(INSIDE), str(asked), str(answer)], folder)
        if not answer.exists():
            raise AskingError(f"{library.name}: {python} gave no answer\n{ran.stderr[-2000:]}")
        told: dict[str, Any] = json.loads(answer.read_text("utf-8"))
        return told


def _run(words: Sequence[str], home: str) -> subprocess.CompletedProcess[str]:
    """Run with a home of its own: some libraries write there when they are imported."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    quiet = {"HOME": home, "DEEPFACE_HOME": home, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    return subprocess.run(  # noqa: S603 - interpreters that the caller names
        list(words), env={**kept, **quiet}, capture_output=True, text=True, check=False
    )
