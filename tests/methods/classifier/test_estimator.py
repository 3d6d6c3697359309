"""`FairCalClassifier` around estimators and on bare probabilities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import faircal
from faircal import FairCalClassifier, load_model
from faircal._base.errors import (
    DataError,
    FairCalError,
    ModelFileError,
    NotFittedError,
    ParameterError,
)
from faircal.calibrators.classes import CLASS_CALIBRATORS, DirichletCalibrator, OneVsRestHistogram
from faircal.metrics import multiclass_nll, top_label_ks


def group_ks(probabilities, rows):
    return np.mean(
        [
            top_label_ks(probabilities[rows.groups == g], rows.codes[rows.groups == g])
            for g in np.unique(rows.groups)
        ]
    )


@pytest.mark.parametrize("n_classes", [2, 10])
def test_groups_it_never_sees_fare_better_than_under_one_map(population, n_classes):
    rows, new = population(4000, n_classes), population(8000, n_classes, seed=1)
    model = FairCalClassifier().fit_calibration(rows.given, rows.codes, features=rows.features)
    fair = model.calibrate(new.given, features=new.features)
    one = DirichletCalibrator().fit(rows.given, rows.codes).predict(new.given)
    assert multiclass_nll(fair, new.codes) < multiclass_nll(one, new.codes) - 0.01
    assert group_ks(fair, new) < 0.8 * group_ks(one, new)


def test_where_groups_do_not_differ_it_is_the_map_of_all_rows(population):
    rows, new = population(3000, apart=0.0), population(3000, seed=1, apart=0.0)
    model = FairCalClassifier().fit_calibration(rows.given, rows.codes, features=rows.features)
    assert model.shrinkage_ == np.inf
    one = DirichletCalibrator().fit(rows.given, rows.codes).predict(new.given)
    np.testing.assert_allclose(model.calibrate(new.given, features=new.features), one, atol=1e-12)


def test_one_cluster_is_the_map_of_all_rows(population):
    rows = population(1000)
    model = FairCalClassifier(n_clusters=1)
    model.fit_calibration(rows.given, rows.codes, features=rows.features)
    one = DirichletCalibrator().fit(rows.given, rows.codes).predict(rows.given)
    found = model.calibrate(rows.given, features=rows.features)
    np.testing.assert_allclose(found, one, atol=1e-12)


def test_shrinkage_of_nothing_fits_clusters_by_themselves(population):
    rows = population(2000, 2)
    model = FairCalClassifier(n_clusters=4, shrinkage=0)
    model.fit_calibration(rows.given, rows.codes, features=rows.features)
    found = model.calibrate(rows.given, features=rows.features)
    clusters = model.clusters(rows.features)
    for k in range(4):
        own = clusters == k
        beta = faircal.BetaCalibrator(score_range=(0, 1)).fit(rows.given[own, 1], rows.codes[own])
        np.testing.assert_allclose(found[own, 1], beta.predict(rows.given[own, 1]), atol=1e-9)


@pytest.mark.parametrize("calibrator", list(CLASS_CALIBRATORS))
@pytest.mark.parametrize("n_classes", [2, 4])
def test_every_calibrator_works_and_comes_back_from_a_file(
    population, tmp_path, calibrator, n_classes
):
    rows, new = population(700, n_classes), population(300, n_classes, seed=1)
    model = FairCalClassifier(n_clusters=6, calibrator=calibrator)
    model.fit_calibration(rows.given, rows.codes, features=rows.features)
    found = model.calibrate(new.given, features=new.features)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    model.save(tmp_path / "m.faircal")
    again = load_model(tmp_path / "m.faircal")
    np.testing.assert_array_equal(again.calibrate(new.given, features=new.features), found)
    np.testing.assert_array_equal(again.clusters(new.features), model.clusters(new.features))
    again.save(tmp_path / "n.faircal")
    assert (tmp_path / "n.faircal").read_bytes() == (tmp_path / "m.faircal").read_bytes()


def test_the_same_seed_gives_the_same_bytes(population, tmp_path):
    rows = population(1500)
    for name in ("a", "b"):
        model = FairCalClassifier(n_clusters=5, random_state=3)
        model.fit_calibration(rows.given, rows.codes, features=rows.features)
        model.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("byte", [0, 9, 40, 400, -1, -40])
def test_a_damaged_file_is_one_clear_error(population, tmp_path, byte):
    rows = population(300)
    path = tmp_path / "m.faircal"
    FairCalClassifier(n_clusters=2).fit_calibration(
        rows.given, rows.codes, features=rows.features
    ).save(path)
    blob = bytearray(path.read_bytes())
    blob[byte] ^= 1
    path.write_bytes(blob)
    with pytest.raises(ModelFileError):
        load_model(path)


def test_classes_are_kept_in_a_file(population, tmp_path):
    rows = population(600)
    names = np.array(["cat", "ant", "bee"])
    model = FairCalClassifier(n_clusters=3)
    model.fit_calibration(rows.given, names[rows.codes], features=rows.features, classes=names)
    model.save(tmp_path / "m.faircal")
    assert load_model(tmp_path / "m.faircal").classes_.tolist() == ["cat", "ant", "bee"]


def test_the_order_of_columns_is_that_of_classes(population):
    rows = population(1000)
    names = np.array(["cat", "ant", "bee"])
    order = np.argsort(names)
    model = FairCalClassifier(n_clusters=4)
    told = clone(model).fit_calibration(
        rows.given, names[rows.codes], features=rows.features, classes=names
    )
    plain = clone(model).fit_calibration(
        rows.given[:, order], names[rows.codes], features=rows.features
    )
    np.testing.assert_allclose(
        told.calibrate(rows.given, features=rows.features)[:, order],
        plain.calibrate(rows.given[:, order], features=rows.features),
        atol=1e-6,
    )


def test_a_class_without_a_row_has_its_column(population):
    rows = population(600, 4)
    kept = rows.codes != 2
    model = FairCalClassifier(n_clusters=3)
    model.fit_calibration(rows.given[kept], rows.codes[kept], features=rows.features[kept])
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.calibrate(rows.given, features=rows.features).shape == (600, 4)


def test_one_column_is_the_second_of_two_classes(population):
    rows = population(800, 2)
    model = FairCalClassifier(n_clusters=3)
    both = clone(model).fit_calibration(rows.given, rows.codes, features=rows.features)
    one = clone(model).fit_calibration(rows.given[:, 1], rows.codes == 1, features=rows.features)
    assert one.classes_.tolist() == [False, True]
    np.testing.assert_allclose(
        one.calibrate(rows.given[:, 1], features=rows.features),
        both.calibrate(rows.given, features=rows.features),
        atol=1e-6,
    )


def test_units_are_held_out_together(population):
    """Rows that come ten times each look like ten times as many to those who do not know."""
    rows = population(300, 3, apart=0.0)
    ten = [np.repeat(part, 10, axis=0) for part in (rows.given, rows.codes, rows.features)]
    units = np.repeat(np.arange(300), 10)
    blind = FairCalClassifier().fit_calibration(*ten[:2], features=ten[2])
    aware = FairCalClassifier().fit_calibration(*ten[:2], features=ten[2], units=units)
    assert blind.shrinkage_ < aware.shrinkage_


def test_scale_of_features_does_not_matter(population):
    rows = population(1000)
    model = FairCalClassifier(n_clusters=5)
    far = rows.features * [1, 1e3, 1e-3, 5, 1] + [0, 1e4, 0, -3, 2]
    one = clone(model).fit_calibration(rows.given, rows.codes, features=rows.features)
    other = clone(model).fit_calibration(rows.given, rows.codes, features=far)
    same = one.clusters(rows.features) == other.clusters(far)
    assert same.mean() > 0.99
    np.testing.assert_allclose(
        other.cluster_centers_[:, 1], one.cluster_centers_[:, 1] * 1e3 + 1e4, rtol=1e-2
    )


def test_data_frames_are_asked_for_the_same_columns(population):
    rows = population(400)
    table = pd.DataFrame(rows.features, columns=list("abcde"))
    model = FairCalClassifier(n_clusters=3)
    model.fit_calibration(rows.given, rows.codes, features=table)
    assert model.feature_names_ == tuple("abcde")
    told = model.calibrate(rows.given, features=table)
    np.testing.assert_array_equal(model.calibrate(rows.given, features=table[list("edcba")]), told)
    np.testing.assert_array_equal(model.calibrate(rows.given, features=rows.features), told)
    with pytest.raises(DataError, match="no column 'a'"):
        model.calibrate(rows.given, features=table.rename(columns={"a": "x"}))


def test_more_clusters_than_different_rows(population):
    rows = population(50)
    model = FairCalClassifier(n_clusters=20)
    model.fit_calibration(rows.given, rows.codes, features=np.repeat(np.eye(5), 10, axis=0))
    assert model.n_clusters_ == 5
    constant = FairCalClassifier().fit_calibration(
        rows.given, rows.codes, features=np.ones((50, 2))
    )
    assert constant.n_clusters_ == 1


# ------------------------------------------------------------- around an estimator


def test_it_beats_the_estimator_that_it_wraps():
    X, y = load_digits(return_X_y=True)
    X, new, y, labels = train_test_split(X, y, random_state=0)
    forest = RandomForestClassifier(30, random_state=0)
    model = FairCalClassifier(forest, n_clusters=5).fit(X, y)
    plain = clone(forest).fit(X, y)
    assert log_loss(labels, model.predict_proba(new)) < log_loss(labels, plain.predict_proba(new))
    assert model.score(new, labels) > 0.94
    np.testing.assert_array_equal(
        model.predict(new), model.classes_[model.predict_proba(new).argmax(axis=1)]
    )


def test_a_frozen_estimator_stays_as_it_is():
    X, y = load_breast_cancer(return_X_y=True)
    X, held, y, labels = train_test_split(X, y, random_state=0, test_size=0.6)
    tree = make_pipeline(StandardScaler(), LogisticRegression(C=100)).fit(X, y)
    before = tree[-1].coef_.copy()
    model = FairCalClassifier(FrozenEstimator(tree), n_clusters=4).fit(held, labels)
    np.testing.assert_array_equal(tree[-1].coef_, before)
    direct = FairCalClassifier(n_clusters=4).fit_calibration(
        tree.predict_proba(held), labels, features=held
    )
    np.testing.assert_allclose(
        model.predict_proba(held),
        direct.calibrate(tree.predict_proba(held), features=held),
        atol=1e-12,
    )


def test_no_row_is_calibrated_by_a_copy_that_saw_it():
    """An estimator that knows its rows by heart is found to know nothing."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
    by_heart = RandomForestClassifier(50, random_state=0)
    model = FairCalClassifier(by_heart, n_clusters=2).fit(X, y)
    assert np.abs(model.predict_proba(X) - 0.5).max() < 0.3
    assert by_heart.fit(X, y).predict_proba(X).max() > 0.9


def test_grid_search_and_pipelines():
    X, y = make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)
    model = make_pipeline(StandardScaler(), FairCalClassifier(calibrator="temperature", cv=3))
    grid = {"faircalclassifier__n_clusters": [1, 3]}
    search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=2, error_score="raise").fit(X, y)
    assert search.best_params_["faircalclassifier__n_clusters"] in (1, 3)
    scores = cross_val_score(FairCalClassifier(LogisticRegression(), n_clusters=3), X, y, cv=2)
    assert scores.mean() > 0.5


def test_splitters_and_lists_of_splits():
    X, y = make_classification(120, 5, random_state=0)
    whole = np.arange(120)
    splits = [(whole[60:], whole[:60]), (whole[:60], whole[60:])]
    model = FairCalClassifier(n_clusters=2, cv=splits).fit(X, y)
    assert model.predict_proba(X).shape == (120, 2)
    with pytest.raises(DataError, match="row 60 never is"):
        FairCalClassifier(n_clusters=2, cv=splits[:1]).fit(X, y)
    with pytest.raises(ValueError, match="groups"):
        FairCalClassifier(n_clusters=2, cv=GroupKFold(2)).fit(X, y)


def test_decision_functions_are_enough():
    X, y = make_classification(400, 6, n_informative=4, n_classes=3, random_state=0)
    for labels in (y, y > 0):
        model = FairCalClassifier(LinearSVC(), n_clusters=2).fit(X, labels)
        assert model.score(X, labels) > 0.6
    with pytest.raises(DataError, match="neither"):
        FairCalClassifier(_NoProbabilities()).fit(X, y)


class _NoProbabilities(LogisticRegression):
    predict_proba = property()
    decision_function = property()


def test_a_class_with_one_row():
    X, y = make_classification(60, 5, random_state=0)
    y[3] = 2
    model = FairCalClassifier(n_clusters=2).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize(
    "features", [[0, 2], ["a", "c"], lambda fitted, X: np.asarray(X)[:, [0, 2]]]
)
def test_what_is_clustered(features):
    X, y = make_classification(200, 4, n_redundant=0, random_state=0)
    table = pd.DataFrame(X, columns=list("abcd"))
    told = FairCalClassifier(LogisticRegression(), n_clusters=3, features=features).fit(table, y)
    assert told.cluster_centers_.shape == (3, 2)
    plain = FairCalClassifier(LogisticRegression(), n_clusters=3, features=[0, 2]).fit(X, y)
    np.testing.assert_allclose(told.predict_proba(table), plain.predict_proba(X), atol=1e-12)


def test_a_function_gets_the_estimator_in_use():
    X, y = make_classification(200, 4, random_state=0)
    seen = []

    def penultimate(fitted, X):
        seen.append(fitted)
        return fitted[:-1].transform(X)

    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    model = FairCalClassifier(pipeline, n_clusters=3, features=penultimate).fit(X, y)
    model.predict_proba(X)
    assert all(one is model.estimator_ for one in seen)


def test_classes_of_a_frozen_estimator_may_come_in_any_order():
    X, y = make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)
    names = np.array(["cat", "ant", "bee"])

    class Turned(LogisticRegression):
        """As some libraries do: classes in the order in which they were met."""

        def fit(self, X, y):
            super().fit(X, y)
            self.turn_ = [1, 2, 0]
            self.classes_ = self.classes_[self.turn_]
            return self

        def predict_proba(self, X):
            return super().predict_proba(X)[:, self.turn_]

    turned, plain = Turned().fit(X, names[y]), LogisticRegression().fit(X, names[y])
    models = [
        FairCalClassifier(FrozenEstimator(one), n_clusters=3).fit(X, names[y])
        for one in (turned, plain)
    ]
    assert models[0].classes_.tolist() == ["bee", "cat", "ant"]
    np.testing.assert_allclose(
        models[0].predict_proba(X)[:, [2, 0, 1]], models[1].predict_proba(X), atol=1e-6
    )
    wrapped = FairCalClassifier(Turned(), n_clusters=3).fit(X, names[y])
    assert wrapped.score(X, names[y]) == pytest.approx(plain.score(X, names[y]), abs=0.1)


def test_probabilities_after_an_estimator_forget_it():
    X, y = make_classification(200, 4, random_state=0)
    model = FairCalClassifier(n_clusters=2).fit(X, y)
    p = np.full((200, 3), 1 / 3)
    model.fit_calibration(p, np.arange(200) % 3, features=X)
    with pytest.raises(NotFittedError, match="call calibrate"):
        model.predict_proba(X)


def test_metadata_routing():
    X, y = make_classification(200, 4, random_state=0)
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), FairCalClassifier(n_clusters=2, cv=2))
        assert cross_val_predict(model, X, y, cv=2, method="predict_proba").shape == (200, 2)
        FairCalClassifier().get_metadata_routing()


def test_names_of_columns_with_the_default_estimator():
    X, y = make_classification(200, 4, n_redundant=0, random_state=0)
    table = pd.DataFrame(X, columns=list("abcd"))
    named = FairCalClassifier(n_clusters=2, features=["a", "c"]).fit(table, y)
    numbered = FairCalClassifier(n_clusters=2, features=[0, 2]).fit(X, y)
    np.testing.assert_allclose(named.predict_proba(table), numbered.predict_proba(X), atol=1e-12)
    for features, says in (
        (["x"], "features: "),
        ([9], "features: .*9"),
        (0, "features: .*int"),
        (lambda fitted, X: csr_array(X), "sparse"),
        (lambda fitted, X: np.asarray(X)[:3], "expected 200 rows"),
    ):
        with pytest.raises(FairCalError, match=says):
            FairCalClassifier(n_clusters=2, features=features).fit(X, y)


def test_features_far_from_0():
    """Time stamps: in single precision they would all be the same."""
    rng = np.random.default_rng(0)
    p, where = rng.random(1000), rng.integers(0, 2, 1000)
    y = rng.random(1000) < np.where(where == 0, p, p**4)
    for scale, offset in ((1.0, 1e9), (1e-60, 0.0), (1e30, 0.0)):
        features = (scale * (where + 0.1 * rng.random(1000)) + offset)[:, None]
        model = FairCalClassifier(n_clusters=2).fit_calibration(p, y, features=features)
        assert model.n_clusters_ == 2
        assert len(set(model.clusters(features)[where == 0])) == 1


def test_more_rows_than_are_clustered(population, monkeypatch):
    rows = population(2000)
    monkeypatch.setattr("faircal.methods.classifier.estimator.MOST_CLUSTERED", 500)
    model = FairCalClassifier(n_clusters=6).fit_calibration(
        rows.given, rows.codes, features=rows.features
    )
    assert model.cluster_counts_.sum() == 2000
    # Clusters are the groups, which six centres find in a part of the rows as well.
    clusters = model.clusters(rows.features)
    together = np.mean(
        [np.bincount(clusters[rows.groups == g]).max() / (rows.groups == g).sum() for g in range(6)]
    )
    assert together > 0.8


@pytest.mark.parametrize("folds", [2, 5])
def test_rows_are_held_out_as_often_as_asked(folds):
    seen = []

    class Watched(LogisticRegression):
        def fit(self, X, y):
            seen.append(len(y))
            return super().fit(X, y)

    X, y = make_classification(100, 4, random_state=0)
    FairCalClassifier(Watched(), n_clusters=2, cv=folds).fit(X, y)
    assert seen == [100 - 100 // folds] * folds + [100]


def test_parameters_of_numpy_are_saved(population, tmp_path):
    rows = population(200)
    for calibrator in (
        DirichletCalibrator(off_diagonal=np.float32(0.125)),
        OneVsRestHistogram(n_bins=np.int64(7)),
    ):
        model = FairCalClassifier(n_clusters=np.int64(2), calibrator=calibrator, shrinkage=np.inf)
        model.fit_calibration(rows.given, rows.codes, features=rows.features)
        model.save(tmp_path / "m.faircal")
        again = load_model(tmp_path / "m.faircal")
        assert again.calibrator.get_params() == calibrator.get_params()
        assert again.shrinkage == np.inf


# --------------------------------------------------------------------- bad input


def test_bad_labels_and_estimators():
    X, y = make_classification(60, 4, random_state=0)
    for labels in (np.array([None, *y[1:]], dtype=object), np.array(["a", *y[1:]], dtype=object)):
        with pytest.raises(DataError, match="y: expected labels of one kind"):
            FairCalClassifier(LogisticRegression(), n_clusters=2).fit(X, labels)
    with pytest.raises(DataError, match="fit it first"):
        FairCalClassifier(FrozenEstimator(LogisticRegression())).fit(X, y)
    once = np.where(np.arange(60) == 7, 1, 0)
    with pytest.raises(DataError, match="two rows of class 1"):
        FairCalClassifier(n_clusters=2).fit(X, once)
    with pytest.raises(DataError, match="found 5 in row"):
        FairCalClassifier(FrozenEstimator(LogisticRegression().fit(X, y))).fit(X, y + 5 * (y == 0))
    with pytest.raises(DataError, match="sparse"):
        FairCalClassifier(LogisticRegression(), n_clusters=2).fit(csr_array(X), y)
    column = FairCalClassifier(LogisticRegression(), n_clusters=2).fit(X, y[:, None])
    assert column.classes_.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": 2.5}, "n_clusters"),
        ({"shrinkage": -1}, "shrinkage"),
        ({"shrinkage": "some"}, "shrinkage"),
        ({"shrinkage": np.nan}, "shrinkage"),
        ({"shrinkage": np.array([1.0, 2.0])}, "shrinkage"),
        ({"shrinkage": None}, "shrinkage"),
        ({"calibrator": "dirichle"}, "did you mean dirichlet"),
        ({"calibrator": 7}, "calibrator"),
        ({"n_init": 0}, "n_init"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_parameters(population, change, says):
    rows = population(50)
    with pytest.raises(ParameterError, match=says):
        FairCalClassifier(**change).fit_calibration(rows.given, rows.codes, features=rows.features)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"probabilities": np.full((50, 3), 0.5)}, "sum to 1"),
        ({"probabilities": np.full((50, 3), np.nan)}, "row 0"),
        ({"probabilities": np.full((49, 3), 1 / 3)}, "one class per row"),
        ({"y": ["a"] * 50}, "give classes="),
        ({"y": np.full(50, 3)}, "give classes="),
        ({"y": np.arange(50) % 2 + 1}, "give classes="),
        ({"y": np.array([None, 1] * 25)}, "of one kind"),
        ({"y": np.full(50, 1.5)}, "give classes="),
        ({"features": np.ones((49, 2))}, "expected 50 rows"),
        ({"features": np.full((50, 2), np.inf)}, "infinity"),
        ({"features": np.ones(50)}, "2D"),
        ({"classes": [0, 1]}, "classes: expected 3"),
        ({"classes": [0, 1, 1]}, "classes: expected 3"),
        ({"classes": [0, 1, 9]}, "found .*2.* in row"),
        ({"units": np.arange(49)}, "units"),
        ({"units": [None, 1] * 25}, "units: expected values of one kind"),
        ({"probabilities": np.empty((0, 3)), "y": [], "classes": [0, 1, 2]}, "one row at least"),
    ],
)
def test_bad_rows(population, change, says):
    rows = population(50)
    given = {"probabilities": rows.given, "y": rows.codes, "features": rows.features} | change
    with pytest.raises(DataError, match=says):
        FairCalClassifier(n_clusters=2).fit_calibration(**given)


def test_bad_new_rows(population):
    rows = population(100)
    model = FairCalClassifier(n_clusters=2)
    with pytest.raises(NotFittedError, match="fit_calibration"):
        model.calibrate(rows.given, features=rows.features)
    model.fit_calibration(rows.given, rows.codes, features=rows.features)
    with pytest.raises(DataError, match="expected 3 columns"):
        model.calibrate(rows.given[:, 0], features=rows.features)
    with pytest.raises(DataError, match="expected 5 columns"):
        model.calibrate(rows.given, features=rows.features[:, :2])
    with pytest.raises(DataError, match="expected 100 rows"):
        model.calibrate(rows.given, features=rows.features[:2])
    with pytest.raises(NotFittedError, match="call calibrate"):
        model.predict_proba(rows.features)
    assert model.calibrate(np.empty((0, 3)), features=np.empty((0, 5))).shape == (0, 3)


def test_classes_that_no_file_can_hold(population, tmp_path):
    rows = population(60)
    model = FairCalClassifier(n_clusters=2)
    model.fit_calibration(rows.given, rows.codes, features=rows.features, classes=[0, 1, 2])
    model.classes_ = np.array([1j, 2j, 3j])
    with pytest.raises(ParameterError, match="text or numbers"):
        model.save(tmp_path / "m.faircal")
    assert not list(tmp_path.iterdir())
