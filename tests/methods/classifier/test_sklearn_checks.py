"""Scikit-learn's own estimator checks, all of them, with nothing excepted."""

from __future__ import annotations

import os
import subprocess
import sys


def test_every_check_passes():
    """In a process of its own: arrays of other libraries have to be switched on at the start."""
    code = (
        "import warnings; warnings.simplefilter('error')\n"
        "from sklearn.utils.estimator_checks import check_estimator\n"
        "from faircal import FairCalClassifier\n"
        "found = check_estimator(FairCalClassifier(), on_skip=None)\n"
        "print(len(found) > 50, [one for one in found if one['status'] != 'passed'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == ["True []"], done.stdout + done.stderr
