"""What docs/how-to/classifier-options.md says, beyond what it runs."""

from __future__ import annotations

from faircal.calibrators.classes import CLASS_CALIBRATORS
from pages.parsing import ROOT

TEXT = (ROOT / "docs" / "how-to" / "classifier-options.md").read_text("utf-8")


def test_every_calibrator_is_in_the_table():
    for name in CLASS_CALIBRATORS:
        assert f"| `{name}` |" in TEXT
