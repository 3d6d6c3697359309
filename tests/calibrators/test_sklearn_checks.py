"""Scikit-learn's own estimator checks.

They are written for estimators with a table X and a target y. Those that cannot apply to a
vector of scores and to labels of our names are listed with the reason; they must fail, so that
the list cannot outlive its reasons. The same behaviour is checked in our terms in the other files
here.
"""

from __future__ import annotations

from sklearn.utils.estimator_checks import check_estimator

NAMES = "the arguments of fit are called scores and genuine, not X and y"
TWO_AXES = "the check indexes the second axis of X, which a vector of scores does not have"
TWO_COLUMNS = "the check fits on two columns; scores are one"
THREE_CLASSES = "the check fits on three classes; genuine is 0 or 1"
NO_FEATURES = "scores are not features: there is no n_features_in_"

EXPECTED_FAILURES = {
    "check_fit_score_takes_y": NAMES,
    "check_sample_weight_equivalence_on_dense_data": NAMES,
    "check_dont_overwrite_parameters": TWO_AXES,
    "check_dtype_object": TWO_AXES,
    "check_f_contiguous_array_estimator": TWO_AXES,
    "check_methods_sample_order_invariance": TWO_AXES,
    "check_methods_subset_invariance": TWO_AXES,
    "check_fit2d_1sample": TWO_AXES,
    "check_fit2d_1feature": TWO_AXES,
    "check_dict_unchanged": TWO_AXES,
    "check_fit2d_predict1d": TWO_AXES,
    "check_estimator_sparse_array": "the check cannot make a sparse array of one dimension",
    "check_fit1d": "the check asks that a vector be refused; here it is the usual input",
    "check_sample_weights_shape": TWO_COLUMNS,
    "check_sample_weights_not_overwritten": TWO_COLUMNS,
    "check_sample_weights_pandas_series": TWO_COLUMNS,
    "check_estimators_nan_inf": TWO_COLUMNS,
    "check_estimators_dtypes": THREE_CLASSES,
    "check_sample_weights_not_an_array": THREE_CLASSES,
    "check_n_features_in": NO_FEATURES,
    "check_n_features_in_after_fitting": NO_FEATURES,
    "check_estimators_empty_data_messages": NO_FEATURES,
}


def test_scikit_learn_checks(calibrator):
    outcomes = check_estimator(
        calibrator, expected_failed_checks=EXPECTED_FAILURES, on_skip=None, on_fail=None
    )
    failed = {outcome["check_name"] for outcome in outcomes if outcome["status"] == "failed"}
    excused = {outcome["check_name"] for outcome in outcomes if outcome["status"] == "xfail"}
    passed = {outcome["check_name"] for outcome in outcomes if outcome["status"] == "passed"}
    assert not failed
    assert excused == set(EXPECTED_FAILURES)
    assert len(passed) >= 20
