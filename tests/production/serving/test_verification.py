"""Model files that a service can't use: one line each, that names the file and what to do."""

from __future__ import annotations

import os

import numpy as np
import pytest

import faircal
from faircal._base.errors import ModelFileError
from faircal.calibrators.prior import SHARE_FIGURE
from faircal.methods import load_method
from faircal.production.serving.verification import ModelInUse


def refused(path):
    with pytest.raises(ModelFileError) as found:
        ModelInUse.read(path)
    assert str(found.value).startswith(str(path))
    return str(found.value)


def test_a_pipe_is_no_model_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "m.faircal")
    assert "expected a model file" in refused(tmp_path / "m.faircal")


def test_a_model_without_its_share_is_to_be_fitted_again(model_path):
    model = load_method(model_path)
    del model.diagnostics_.figures[SHARE_FIGURE]
    model.save(model_path)
    assert refused(model_path).endswith("fit it again")


def test_a_model_of_other_scores_is_refused(tmp_path):
    rows = np.arange(40)
    scores = {"score": rows / 40, "genuine": rows > 20, "left": rows, "right": rows + 40}
    data = faircal.Dataset(pairs=scores, attributes={"ethnicity": ["a"] * 80}, score_range=(0, 1))
    faircal.Baseline().fit(data).save(tmp_path / "m.faircal")
    assert "fit it on embeddings" in refused(tmp_path / "m.faircal")
