"""The rows of a classifier: tables, and what is wrong with them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from faircal._base.errors import FairCalError
from faircal.data import load_classifier_rows

CLASSES = ("cat", "dog", "owl")
N = 12


@pytest.fixture
def columns():
    """Columns of twelve rows of three classes."""
    rng = np.random.default_rng(0)
    chance = rng.dirichlet(np.ones(3), N)
    return {
        "label": [CLASSES[i % 3] for i in range(N)],
        **{f"p_{name}": chance[:, i] for i, name in enumerate(CLASSES)},
        **{f"feature_{i}": rng.normal(size=N) for i in (0, 10, 2)},
        "sex": ["F", "M", None, "F"] * 3,
        "age": [30, 40, 50] * 4,
        "amount": np.linspace(0, 1, N),
        "identity": [f"u{i // 2}" for i in range(N)],
        "fold": [1 + i % 2 for i in range(N)],
    }


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Return a function that writes columns as a table, in the working folder."""
    monkeypatch.chdir(tmp_path)

    def write(columns, name="rows.csv"):
        if name.endswith(".csv"):
            pacsv.write_csv(pa.table(columns), name)
        else:
            pq.write_table(pa.table(columns), name)
        return name

    return write


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_a_table(columns, written, name):
    data = load_classifier_rows(written(columns, name))
    assert (data.name, data.classes, len(data)) == ("rows", CLASSES, N)
    np.testing.assert_allclose(data.probabilities[:, 1], columns["p_dog"], rtol=1e-12)
    np.testing.assert_allclose(data.probabilities.sum(axis=1), 1, rtol=0, atol=1e-15)
    assert data.codes.tolist() == [i % 3 for i in range(N)]
    assert data.codes.dtype == np.int64
    # By number: 2 comes before 10 whatever the order of the columns.
    wanted = np.stack([columns[f"feature_{i}"] for i in (0, 2, 10)], axis=1)
    np.testing.assert_allclose(data.features, wanted, rtol=1e-6)
    assert data.features.dtype == np.float32
    assert set(data.attributes) == {"sex", "age"}  # a fraction makes no groups
    assert data.grouping == ("sex",)  # nor does a number, unless asked for
    assert data.groups("sex+age").names[:2] == ("F 30", "F 40")
    assert (data.groups("sex").codes == -1).sum() == 3
    assert data.units.tolist() == [i // 2 for i in range(N)]
    assert data.fold.tolist() == columns["fold"]


def test_other_names(columns, written):
    renamed = {name.replace("p_", "prob."): values for name, values in columns.items()}
    renamed["truth"], renamed["patient"] = renamed.pop("label"), renamed.pop("identity")
    table = written(renamed)
    options = {"label": "truth", "probabilities": "prob.", "identity": "patient"}
    data = load_classifier_rows(table, features="amount,age", **options)
    assert data.classes == CLASSES
    assert data.features[:, 1].tolist() == columns["age"]
    assert "age" not in data.attributes
    assert len(data.identity.names) == N // 2
    np.save("vectors.npy", np.arange(2.0 * N).reshape(N, 2))
    data = load_classifier_rows(table, features="vectors.npy", **options)
    assert data.features.shape == (N, 2)
    np.save("p.npy", np.full((N, 3), [0.2, 0.3, 0.5], dtype=np.float32))
    renamed["truth"] = [0, 1, 2] * (N // 3)
    data = load_classifier_rows(written(renamed), label="truth", probabilities="p.npy")
    assert data.classes == ("0", "1", "2")
    assert data.codes.tolist() == renamed["truth"]
    np.testing.assert_allclose(data.probabilities[0], [0.2, 0.3, 0.5], rtol=1e-6)


@pytest.mark.parametrize("words", [("no", "yes"), ("0", "1"), ("False", "True")])
def test_two_classes_and_labels_of_all_kinds(written, words):
    no, yes = words
    for labels in ([no, yes, yes], *([[False, True, True]] * (no != "no"))):
        table = {f"p_{no}": [0.9, 0.2, 0.4], f"p_{yes}": [0.1, 0.8, 0.6], "label": labels}
        assert load_classifier_rows(written(table)).codes.tolist() == [0, 1, 1]


def test_labels_may_be_missing_where_they_are_not_needed(columns, written):
    columns["label"][3] = None
    data = load_classifier_rows(written(columns), need_labels=False)
    assert data.codes is None
    assert data.label.codes[3] == -1
    del columns["label"]
    assert load_classifier_rows(written(columns), need_labels=False).label is None


def test_the_hash_is_of_what_matters(columns, written):
    first = load_classifier_rows(written(columns)).hash()
    assert load_classifier_rows(written(columns, "rows.parquet")).hash() == first
    columns["sex"][0] = "M"
    assert load_classifier_rows(written(columns)).hash() != first


def softmaxed(columns, change):
    """Change the probabilities of all rows."""
    names = [f"p_{name}" for name in CLASSES]
    new = change(np.stack([columns[name] for name in names], axis=1))
    return columns | {name: new[:, i] for i, name in enumerate(names)}


def at(columns, name, row, value):
    """Change one value, rows counted from 1."""
    new = list(columns[name])
    new[row - 1] = value
    return columns | {name: new}


def without(columns, *names):
    return {name: values for name, values in columns.items() if name not in names}


BAD = {
    "logits": (lambda c: softmaxed(c, lambda p: 5 * np.log(p) + 9), "row 1:", "softmax first"),
    "percent": (lambda c: softmaxed(c, lambda p: 100 * p), "row 1:", "divide by 100"),
    "logarithms": (lambda c: softmaxed(c, np.log), "row 1:", "take the exponential"),
    "one sum": (lambda c: at(c, "p_dog", 5, 0.0), "row 5:", "correct or remove"),
    "one value": (lambda c: at(c, "p_dog", 5, -0.5), "'p_dog' (1 such rows)", "correct or remove"),
    "not a number": (
        lambda c: at(c, "p_owl", 4, np.nan),
        "row 4: expected class",
        "'p_owl' (1 such rows)",
    ),
    "no number": (lambda c: c | {"p_owl": ["x"] * N}, "'p_owl'", "correct or rename"),
    "no probabilities": (lambda c: without(c, "p_cat", "p_dog", "p_owl"), "p_CLASS", "--prob"),
    "one class column": (lambda c: without(c, "p_cat", "p_dog"), "(p_owl)", "add those"),
    "nameless class": (lambda c: c | {"p_": c["p_cat"]}, "p_cat, ", "rename them"),
    "same class": (lambda c: c | {"p_cat ": c["p_cat"]}, "p_cat, ", "rename them"),
    "no label column": (lambda c: without(c, "label"), "column 'label'", "add or rename"),
    "empty label": (lambda c: at(c, "label", 7, None), "row 7:", "fill it in"),
    "unknown class": (lambda c: at(c, "label", 7, "dgo"), "row 7: label 'dgo'", "mean dog?"),
    "one class": (lambda c: c | {"label": ["owl"] * N}, "'owl' only", "add rows"),
    "one row": (lambda c: {k: v[:1] for k, v in c.items()}, "found one", "add rows"),
    "no rows": (lambda c: {k: v[:0] for k, v in c.items()}, "found none", "check the export"),
    "missing feature": (lambda c: at(c, "feature_2", 9, None), "'feature_2', row 9", "correct or"),
    "huge feature": (lambda c: at(c, "feature_2", 9, 1e300), "'feature_2', row 9", "correct or"),
    "text feature": (lambda c: c | {"feature_2": ["x"] * N}, "'feature_2'", "correct or rename"),
    "empty fold": (lambda c: at(c, "fold", 2, None), "'fold', row 2", "drop the column"),
    "plus": (lambda c: c | {"a+b": ["x", "y"] * 6}, "'a+b'", "rename it"),
}


@pytest.mark.parametrize(("spoil", "place", "remedy"), BAD.values(), ids=BAD)
def test_bad_tables(columns, written, spoil, place, remedy):
    name = written(spoil(columns))
    with pytest.raises(FairCalError) as error:
        load_classifier_rows(name)
    message = str(error.value)
    assert place in message
    assert remedy in message
    assert "rows.csv" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "vec"}, "no feature columns 'vec…'"),
        ({"features": "sex"}, "'sex': expected numbers"),
        ({"features": "age,heigth"}, "'heigth' is missing"),
        ({"features": "age,age"}, "'age' is named more than once"),
        ({"features": "none.npy"}, "none.npy: no such file"),
        ({"features": "short.npy"}, "short.npy: expected 12 rows as in rows.csv, found 3"),
        ({"features": "flat.npy"}, "flat.npy: expected a matrix"),
        ({"features": "text.npy"}, "text.npy: cannot be read"),
        ({"features": "gap.npy"}, "gap.npy, column 2, row 3"),
        ({"identity": "patient"}, "'patient' is missing"),
        ({"label": "Label"}, "did you mean label?"),
        ({"probabilities": "probs"}, "name what they begin with by --probabilities"),
        ({"probabilities": ""}, "no columns of probabilities"),
        ({"probabilities": "short.npy"}, "short.npy: expected 12 rows as in rows.csv, found 3"),
        ({"probabilities": "gap.npy"}, "gap.npy, row 1: expected class probabilities"),
    ],
)
def test_bad_options(columns, written, tmp_path, options, message):
    table = written(columns)
    np.save("short.npy", np.ones((3, 2)))
    np.save("flat.npy", np.ones(N))
    gap = np.ones((N, 2))
    gap[2, 1] = np.inf
    np.save("gap.npy", gap)
    (tmp_path / "text.npy").write_text("no array")
    with pytest.raises(FairCalError, match=r"^[^\n]+$") as error:
        load_classifier_rows(table, **options)
    assert message in str(error.value)


def test_an_attribute_that_is_not_there(columns, written):
    data = load_classifier_rows(written(columns))
    with pytest.raises(FairCalError, match="did you mean sex"):
        data.groups("sexe")


def test_bad_files(tmp_path):
    with pytest.raises(FairCalError, match="no such file"):
        load_classifier_rows(tmp_path / "none.csv")
    np.save(tmp_path / "features.npy", np.eye(3))
    with pytest.raises(FairCalError, match=r"expected a \.csv"):
        load_classifier_rows(tmp_path / "features.npy")
    with pytest.raises(FairCalError, match="found a folder"):
        load_classifier_rows(tmp_path)
