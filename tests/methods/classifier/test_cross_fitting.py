"""What an estimator says, put in the order of the classes."""

from __future__ import annotations

import numpy as np
import pytest

from faircal._base.errors import DataError
from faircal.methods.classifier.inputs import class_probabilities, cross_fitted


class Says:
    """An estimator that gives the same row of probabilities, or margins, to everybody."""

    def __init__(self, classes, **given):
        self.classes_ = np.array(classes)
        for name, row in given.items():
            setattr(self, name, lambda X, row=row: np.tile(row, (len(X), *[1] * np.ndim(row))))


ROWS = np.zeros((2, 1))


def test_columns_are_those_of_the_classes():
    said = Says([2, 1], predict_proba=[0.7, 0.3])
    found = class_probabilities(said, ROWS, np.array([0, 1, 2]))
    np.testing.assert_array_equal(found, [[0.0, 0.3, 0.7]] * 2)
    turned = class_probabilities(said, ROWS, np.array([2, 0, 1]))
    np.testing.assert_array_equal(turned, [[0.7, 0.0, 0.3]] * 2)


def test_margins():
    two = Says(["no", "yes"])
    two.decision_function = lambda X: np.full(len(X), np.log(3.0))
    classes = np.array(["no", "yes"])
    np.testing.assert_allclose(class_probabilities(two, ROWS, classes), [[0.25, 0.75]] * 2)
    three = Says([0, 1, 2], decision_function=np.log([1.0, 2.0, 5.0]))
    found = class_probabilities(three, ROWS, np.arange(3))
    np.testing.assert_allclose(found, [[0.125, 0.25, 0.625]] * 2)


def test_a_class_that_nobody_knows():
    with pytest.raises(DataError, match="found 7 in row 1"):
        class_probabilities(Says([0, 7], predict_proba=[0.5, 0.5]), ROWS, np.array([0, 1]))


def test_what_has_no_classes():
    with pytest.raises(DataError, match="expected a fitted classifier"):
        class_probabilities(object(), ROWS, np.array([0, 1]))


def test_every_row_is_asked_about_once():
    X, y = np.arange(10.0)[:, None], np.array([0, 1] * 5)

    class Knows:
        """Remembers its rows; of others it is not sure."""

        def get_params(self, deep=True):
            return {}

        def fit(self, X, y):
            self.classes_, self.seen = np.array([0, 1]), set(X[:, 0])
            return self

        def predict_proba(self, X):
            known = np.array([x in self.seen for x in X[:, 0]])
            return np.where(known[:, None], [1.0, 0.0], [0.5, 0.5])

    np.testing.assert_array_equal(cross_fitted(Knows(), X, y, np.array([0, 1]), 5), 0.5)
