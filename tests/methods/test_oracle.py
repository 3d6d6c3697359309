"""Oracle against method-details 2.3: one calibrator per true group, 0 for mixed pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from faircal import Baseline, BetaCalibrator, DataError, Oracle, load_model
from faircal.data.columns import Column


def group_of_pairs(data, attributes):
    """The two sides' groups of each pair as text; None where unknown."""
    sides = []
    for side in (data.pairs.left, data.pairs.right):
        columns = [data.images.attributes[name] for name in attributes]
        sides.append(
            [
                None
                if any(column.codes[i] < 0 for column in columns)
                else " ".join(column.names[column.codes[i]] for column in columns)
                for i in side
            ]
        )
    return list(zip(*sides, strict=True))


@pytest.mark.parametrize("attribute", ["ethnicity", "gender", "ethnicity+gender", None])
def test_each_group_by_its_own_map(parts, with_unknown, attribute):
    calibration, test = map(with_unknown, parts)
    names = (attribute or "ethnicity+gender").split("+")
    model = Oracle(attribute=attribute).fit(calibration)
    in_cal, in_test = group_of_pairs(calibration, names), group_of_pairs(test, names)
    overall = BetaCalibrator().fit(calibration.scores, calibration.genuine)
    maps = {}
    for group in {left for left, right in in_cal if left == right and left is not None}:
        rows = np.array([pair == (group, group) for pair in in_cal])
        maps[group] = BetaCalibrator().fit(calibration.scores[rows], calibration.genuine[rows])
    expected, kinds = [], set()
    for score, (left, right) in zip(test.scores, in_test, strict=True):
        if left is None or right is None:
            kinds.add("unknown")
            expected.append(overall.predict([score])[0])
        elif left != right:
            kinds.add("cross")
            expected.append(0.0)
        else:
            expected.append(maps[left].predict([score])[0])
    assert "cross" in kinds
    assert ("unknown" in kinds) == ("ethnicity" in names)
    np.testing.assert_allclose(model.predict_proba(test), expected, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(model.decision_scores(test), model.predict_proba(test))
    assert model.groups_ == tuple(sorted(maps))


def test_mixed_pairs_are_exactly_0(parts):
    calibration, test = parts
    cross = test.groups("ethnicity").cross
    probability = Oracle(attribute="ethnicity").fit(calibration).predict_proba(test)
    assert cross.any()
    assert (probability[cross] == 0).all()
    assert (probability[~cross] > 0).any()


def test_genuine_pairs_of_two_groups_are_counted(parts):
    calibration, test = parts
    model = Oracle(attribute="ethnicity").fit(calibration)
    assert model.remarks(test, model.apply(test)) == []
    labels = test.genuine.copy()
    labels[np.flatnonzero(test.groups("ethnicity").cross)[:3]] = True
    wrong = test.with_pairs(replace(test.pairs, genuine=labels))
    (remark,) = model.remarks(wrong, model.apply(wrong))
    assert remark.startswith(f"3 of {labels.sum()} genuine pairs are of two groups and get proba")
    unknown = test.with_pairs(replace(test.pairs, genuine=None))
    assert model.remarks(unknown, model.apply(unknown)) == []


def test_group_not_seen_when_fitting(parts, changed):
    calibration, test = parts
    column = calibration.images.attributes["ethnicity"]
    asian = column.names.index("Asian")
    fewer = Column(np.where(column.codes == asian, 0, column.codes).astype(np.int32), column.names)
    model = Oracle().fit(changed(calibration, attributes={"ethnicity": fewer}))
    assert "Asian" not in model.groups_
    whole = changed(test, attributes={"ethnicity": column})
    groups = whole.groups("ethnicity")
    inside = groups.pair == asian
    expected = Baseline().fit(calibration).predict_proba(test)
    probability = model.predict_proba(whole)
    assert inside.any()
    np.testing.assert_allclose(probability[inside], expected[inside], rtol=0, atol=1e-9)
    # A pair of two groups is cross-group also when one of them is new.
    assert (probability[groups.cross] == 0).all()


def test_small_and_one_class_groups_use_the_global_map(parts):
    calibration, test = parts
    groups = calibration.groups("ethnicity")
    one_class = (groups.pair == groups.names.index("Asian")) & calibration.genuine
    few = groups.pair == groups.names.index("Indian")
    few[np.flatnonzero(few)[::40]] = False
    kept = calibration.subset(~one_class & ~few)
    model = Oracle(attribute="ethnicity").fit(kept)
    assert model.diagnostics_.notes == ["groups on the global calibrator: Asian, Indian"]
    expected = Baseline().fit(kept).predict_proba(test)
    inside = np.isin(
        test.groups("ethnicity").pair, [groups.names.index("Asian"), groups.names.index("Indian")]
    )
    np.testing.assert_allclose(
        model.predict_proba(test)[inside], expected[inside], rtol=0, atol=1e-9
    )


def test_names_decide_not_codes(parts, changed):
    calibration, test = parts
    column = test.images.attributes["ethnicity"]
    turned = Column((len(column.names) - 1 - column.codes).astype(np.int32), column.names[::-1])
    model = Oracle(attribute="ethnicity").fit(calibration)
    found = model.predict_proba(changed(test, attributes={"ethnicity": turned}))
    np.testing.assert_array_equal(found, model.predict_proba(test))


def test_attribute_can_be_changed_before_fitting_again(parts):
    calibration, test = parts
    model = Oracle(attribute="ethnicity").fit(calibration)
    model.set_params(attribute="gender").fit(calibration)
    assert model.groups_ == ("F", "M")
    expected = Oracle(attribute="gender").fit(calibration).predict_proba(test)
    np.testing.assert_allclose(model.predict_proba(test), expected, rtol=0, atol=1e-9)


def test_the_fitted_attribute_is_the_one_applied(parts, changed):
    calibration, test = parts
    model = Oracle().fit(
        changed(calibration, attributes={"gender": calibration.images.attributes["gender"]})
    )
    expected = Oracle(attribute="gender").fit(calibration).predict_proba(test)
    np.testing.assert_allclose(model.predict_proba(test), expected, rtol=0, atol=1e-9)


def test_unknown_attribute(parts):
    with pytest.raises(DataError, match=r"attribute 'ethnicty' is not in the data; did you mean"):
        Oracle(attribute="ethnicty").fit(parts[0])


def test_an_attribute_that_nobody_filled_in(parts, changed, tmp_path):
    column = Column(np.full(len(parts[0].images), -1, dtype=np.int32), ())
    calibration, test = (changed(part, attributes={"ethnicity": column}) for part in parts)
    model = Oracle(attribute="ethnicity").fit(calibration)
    expected = Baseline().fit(calibration).predict_proba(test)
    np.testing.assert_array_equal(model.predict_proba(test), expected)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").predict_proba(test), expected)
