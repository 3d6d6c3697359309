"""What all findings come to, in one sentence."""

from __future__ import annotations

import pytest

from faircal.production.monitoring.findings import Finding, summary


def finding(name="scores", statistic=0.0, *, alarm=False, enough=True, **details):
    found = {"tolerance": 0.02, **details}
    return Finding(name, name.title(), statistic, 0.5, 0.01, alarm, enough, "", found)


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        ([finding()], "Nothing has changed beyond what is tolerated"),
        ([finding(statistic=0.1)], "No alarm yet: scores moved"),
        ([finding(statistic=0.1, enough=False), finding()], "Nothing has changed"),
        ([finding(enough=False)], "Not enough to tell: 1 pair."),
        ([finding(statistic=0.1, alarm=True)], "Recalibration is due: scores"),
        ([finding("calibration", alarm=True, only_prior=True)], "Another --prior is due"),
        (
            [finding("calibration", alarm=True, only_prior=True), finding(alarm=True)],
            "Recalibration is due: calibration, scores",
        ),
    ],
)
def test_in_words(findings, said):
    assert summary(findings, 1).startswith(said)
