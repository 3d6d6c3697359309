"""Pairs read part by part are those that are read at once."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircal._base.errors import DataError, ParameterError
from faircal.data import Dataset, load, open_stream
from faircal.data.columns import Column
from faircal.data.parts import combinations
from faircal.data.stream import ahead

SUFFIXES = ("csv", "parquet")


def write(table, path, row_group=7):
    if path.suffix == ".csv":
        pacsv.write_csv(table, path)
    else:
        pq.write_table(table, path, row_group_size=row_group)


@pytest.fixture(params=SUFFIXES)
def pairs_file(request, faces, folder):
    """The pairs of the folder, as CSV or as Parquet with small row groups."""
    path = folder / f"pairs.{request.param}"
    (folder / "pairs.csv").unlink()
    write(pa.table(faces.pairs), path)
    return path


@pytest.fixture
def scores(faces):
    """A score table with everything that one can have."""
    n = len(faces.left)
    rng = np.random.default_rng(1)
    group, gender, who = (
        np.array(faces.images[key]) for key in ("ethnicity", "gender", "identity")
    )
    return pa.table(
        {
            "genuine": faces.pairs["genuine"],
            "score": rng.uniform(-1, 1, n),
            "other": rng.uniform(-1, 1, n),
            "probability": rng.uniform(0, 1, n),
            "fold": faces.pairs["fold"],
            "left_identity": who[faces.left],
            "right_identity": who[faces.right],
            "left_ethnicity": group[faces.left],
            "right_ethnicity": group[faces.right],
            "site": np.array(["x", "y", ""])[np.arange(n) * 3 // n],
            "split": np.arange(n) % 2,
            "gender": gender[faces.left],
        }
    )


def text(column, rows):
    return [column.names[code] if code >= 0 else None for code in column.take(rows)]


def described(data, names=None):
    """Return all that is known of each pair, in words and numbers, by column."""
    found = {"genuine": data.pairs.genuine, "probability": data.pairs.probability}
    found["fold"] = None if data.drawn_folds else data.pairs.fold
    for side in ("left", "right"):
        rows = getattr(data.pairs, side)
        found[side] = data.images.ids.take(pa.array(rows)).to_pylist()
        for name, column in data.images.attributes.items():
            found[f"{side} {name}"] = text(column, rows)
        if data.images.identity is not None:
            found[f"{side} identity"] = text(data.images.identity, rows)
    for name in data.features:
        found[f"score {name}"] = data.select(name).scores
    return {key: list(values) for key, values in found.items() if values is not None}


def joined(parts):
    found = {}
    for part in parts:
        for key, values in described(part).items():
            found.setdefault(key, []).extend(values)
    return found


def check_same(opened, whole, start=0):
    parts = list(opened.parts(start))
    assert all(0 < len(part) <= opened.batch for part in parts)
    expected = {key: values[start:] for key, values in described(whole).items()}
    assert joined(parts) == (expected if start < len(whole) else {})
    for part in parts:
        for name in ("name", "where", "score_range", "feature", "provenance", "default_attribute"):
            assert getattr(part, name) == getattr(whole, name), name
        assert not part.drawn_folds
        assert part.has_images == whole.has_images
    return parts


BATCHES = [1, 7, 66, 67]


class TestSameAsLoad:
    @pytest.mark.parametrize("batch", BATCHES)
    def test_folder(self, batch, pairs_file, folder):
        whole, opened = load(folder), open_stream(folder, batch=batch)
        parts = check_same(opened, whole)
        assert len(opened) == len(whole)
        assert len(parts) == -(-len(whole) // batch)
        assert all(part.images is opened.images for part in parts)
        assert all(part.embeddings is opened.embeddings for part in parts)

    @pytest.mark.parametrize("batch", BATCHES)
    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_table(self, batch, suffix, scores, tmp_path):
        path = tmp_path / f"scores.{suffix}"
        write(scores, path)
        for features in (None, ["other", "score"]):
            whole = load(path, features=features)
            opened = open_stream(path, features=features, batch=batch)
            check_same(opened, whole)
            assert (opened.images, opened.embeddings, opened.has_images) == (None, None, False)
            assert opened.default_attribute == "ethnicity+site+gender"
            assert set(opened.attributes) == set(whole.images.attributes)

    @pytest.mark.parametrize("row_group", [1, 5, 66, 100])
    def test_row_groups_of_any_length(self, row_group, faces, folder):
        (folder / "pairs.csv").unlink()
        write(pa.table(faces.pairs), folder / "pairs.parquet", row_group)
        whole = load(folder)
        for start in (0, 1, 5, 33, 65, 66):
            check_same(open_stream(folder, batch=9), whole, start)

    def test_gone_through_again(self, pairs_file, folder):
        opened = open_stream(folder, batch=5)
        assert joined(opened.parts()) == joined(opened.parts())

    @pytest.mark.parametrize("start", [1, 7, 65])
    def test_from_a_pair_on(self, start, pairs_file, folder):
        check_same(open_stream(folder, batch=7), load(folder), start)

    def test_nothing_is_left(self, pairs_file, folder):
        assert list(open_stream(folder).parts(66)) == []

    def test_scores_in_a_folder(self, pairs_file, folder, faces):
        faces.pairs["score"] = np.linspace(0, 100, len(faces.left))
        write(pa.table(faces.pairs), pairs_file)
        for limits in ((0, 100), None):
            whole = load(folder, score_range=limits)
            check_same(open_stream(folder, score_range=limits, batch=7), whole)
        (folder / "embeddings.npy").unlink()
        opened = open_stream(folder, score_range=(0, 100), batch=7)
        check_same(opened, load(folder, score_range=(0, 100)))
        assert opened.embeddings is None

    def test_without_labels_and_folds(self, pairs_file, folder):
        write(pq_or_csv(pairs_file).select(["left", "right"]), pairs_file)
        opened = open_stream(folder, batch=7)
        parts = check_same(opened, load(folder))
        assert (opened.has_folds, opened.fold_names) == (False, [])
        assert all(part.pairs.genuine is None and part.pairs.fold is None for part in parts)

    def test_one_of_several_features(self, pairs_file, folder, faces):
        (folder / "embeddings.npy").unlink()
        (folder / "embeddings").mkdir()
        np.save(folder / "embeddings/a.npy", faces.vectors[:, :2])
        np.save(folder / "embeddings/b.npy", faces.vectors)
        opened, whole = open_stream(folder, batch=7), load(folder)
        assert list(opened.features) == list(whole.features)
        assert (opened.feature, opened.select("a").feature) == (whole.feature, "a")
        check_same(opened.select("a"), whole.select("a"))
        check_same(open_stream(folder, features=["a"], batch=7), load(folder, features=["a"]))
        with pytest.raises(ParameterError, match="unknown feature 'c'; known: a, b"):
            opened.select("c")

    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_any_scores_are_in_the_range_found(self, suffix, scores, tmp_path):
        path = tmp_path / f"scores.{suffix}"
        wide = pa.array(np.linspace(-7, 300, len(scores)))
        write(scores.set_column(1, "score", wide), path)
        opened = open_stream(path, score_range=None, batch=7)
        assert opened.score_range == (-7, 300)
        check_same(opened, load(path, score_range=None))


def pq_or_csv(path):
    return pacsv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)


#: Columns of CSV files whose type one row decides.
ODD = {
    "fold": [["1", "2", "x"], ["1", "2.0", "3"], ["1", "2", "2.5"], ["01", "1", "2"], ["01", "a"]],
    "genuine": [["1", "0", "true"], ["1.0", "0", "0"], ["01", "1", "0"], ["TRUE", "false", "0"]],
    "group": [
        ["1", "2", "x"],
        ["5", "true", "0"],
        ["1", "true", "0"],
        ["2020-01-01", "2020-01-01 10:00:00"],
        ["", "nan", "1"],
        ["01", "1", "2"],
        ["10:00:00", "1"],
        ["", ""],
    ],
    "score": [["0", "1", "0.5"], ["1e-1", "1", "0"]],
}


@pytest.fixture
def small_blocks(monkeypatch):
    """Read CSV files in blocks of few lines."""
    monkeypatch.setattr("faircal.data.long_tables.BLOCK", 64)


class TestCsvTypes:
    """A column's type is that of the whole file, however it is cut into blocks."""

    @pytest.mark.parametrize("first", [False, True])
    @pytest.mark.parametrize(
        ("column", "values"), [(name, values) for name in ODD for values in ODD[name]]
    )
    def test_one_row_decides(self, column, values, first, tmp_path, small_blocks):
        n = 60
        columns = {
            "genuine": ["1", "0"] * (n // 2),
            "score": [f"{i / n}" for i in range(n)],
            "group": ["a", "b"] * (n // 2),
            "fold": [f"{1 + i % 3}" for i in range(n)],
        }
        odd = [values[-1], *values[:-1] * n][:n]
        columns[column] = odd if first else odd[::-1]
        path = tmp_path / "scores.csv"
        lines = [",".join(columns), *map(",".join, zip(*columns.values(), strict=True))]
        path.write_text("\n".join(lines) + "\n")
        opened, whole = open_stream(path, batch=11), load(path)
        assert opened.fold_names == whole.fold_names
        assert {part.pairs.fold.dtype.kind for part in check_same(opened, whole)} == {
            whole.pairs.fold.dtype.kind
        }

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n"])
    def test_ends_of_lines(self, end, folder, small_blocks):
        path = folder / "pairs.csv"
        expected = load(folder)
        lines = path.read_text().splitlines()
        for last in ("", end):
            path.write_bytes((end.join(lines) + last).encode())
            check_same(open_stream(folder, batch=10), expected)

    def test_a_line_longer_than_a_block(self, folder, small_blocks):
        path = folder / "pairs.csv"
        expected = load(folder)
        lines = path.read_text().splitlines()
        path.write_text("\n".join([f"{lines[0]},note", *(f"{x},{'y' * 200}" for x in lines[1:])]))
        check_same(open_stream(folder, batch=10), expected)

    def test_ids_stay_as_they_are_written(self, folder, faces, small_blocks):
        """In every block ``007`` is not 7, and 12 is 12 beside ``x``."""
        names = [f"{i:02}" if i % 3 else f"n{i}" if i % 2 else str(i) for i in range(12)]
        pacsv.write_csv(pa.table(faces.images | {"image_id": names}), folder / "images.csv")
        named = {"left": np.array(names)[faces.left], "right": np.array(names)[faces.right]}
        pacsv.write_csv(pa.table(faces.pairs | named), folder / "pairs.csv")
        check_same(open_stream(folder, batch=4), load(folder))

    def test_row_numbers_of_pandas_are_no_column(self, folder, small_blocks):
        path = folder / "pairs.csv"
        expected = load(folder)
        head, *lines = path.read_text().splitlines()
        numbered = [f"{i},{line}" for i, line in enumerate(lines)]
        path.write_text("\n".join([f",{head}", *numbered]) + "\n")
        check_same(open_stream(folder, batch=10), expected)


class TestFolds:
    @pytest.mark.parametrize("named", [False, True])
    @pytest.mark.parametrize("batch", [4])
    def test_one_fold_or_all_others(self, batch, named, pairs_file, folder):
        if named:
            table = pq_or_csv(pairs_file)
            names = ["1" if fold == 1 else f"f{fold}" for fold in table["fold"].to_pylist()]
            write(table.set_column(3, "fold", pa.array(names)), pairs_file)
        whole = load(folder)
        for fold in whole.fold_names:
            rest, one = whole.subset(whole.pairs.fold != fold), whole.only(fold)
            for opened, expected in (
                (open_stream(folder, batch=batch, fold=fold), one),
                (open_stream(folder, batch=batch, leave_out=str(fold)), rest),
            ):
                assert len(opened) == len(expected)
                for start in (0, 1, len(expected) - 1):
                    check_same(opened, expected, start)

    def test_of_a_score_table_keeps_row_numbers(self, scores, tmp_path):
        path = tmp_path / "scores.parquet"
        write(scores, path)
        check_same(open_stream(path, batch=5, fold=2), load(path).only(2))

    def test_is_kept_where_the_column_is_not_asked_for(self, pairs_file, folder):
        opened = open_stream(folder, batch=5, fold=2)
        assert sum(map(len, opened.parts(columns=()))) == len(load(folder).only(2))

    def test_unknown(self, pairs_file, folder):
        with pytest.raises(ParameterError, match="faces: no fold 'x'; expected one of 1, 2, 3"):
            open_stream(folder, fold="x")

    def test_no_column(self, pairs_file, folder):
        write(pq_or_csv(pairs_file).drop_columns("fold"), pairs_file)
        with pytest.raises(DataError, match=rf"{pairs_file.name}: has no column 'fold' .* add it"):
            open_stream(folder, leave_out=1)

    def test_nothing_is_left(self, pairs_file, folder):
        table = pq_or_csv(pairs_file)
        write(table.set_column(3, "fold", pa.array([1] * len(table))), pairs_file)
        with pytest.raises(DataError, match="no pairs are left but those of fold '1'"):
            open_stream(folder, leave_out=1)

    def test_one_of_two(self, folder):
        with pytest.raises(ParameterError, match="fold and leave_out"):
            open_stream(folder, fold=1, leave_out=2)


class TestGroups:
    @pytest.mark.parametrize(
        "attribute", ["ethnicity", "ethnicity+site", "site+gender", "split", None]
    )
    def test_of_a_table(self, attribute, scores, tmp_path):
        path = tmp_path / "scores.csv"
        write(scores, path)
        whole, opened = load(path).groups(attribute), open_stream(path, batch=5)
        names = opened.group_names(attribute)
        assert names == whole.names
        attribute = attribute or opened.default_attribute
        parts = [part.groups(attribute).renamed(names) for part in opened.parts()]
        for side in ("left", "right"):
            codes = np.concatenate([getattr(part, side) for part in parts])
            np.testing.assert_array_equal(codes, getattr(whole, side))

    def test_of_a_folder(self, pairs_file, folder):
        whole, opened = load(folder), open_stream(folder, batch=5)
        assert opened.default_attribute == whole.default_attribute == "ethnicity+gender"
        assert opened.group_names() == whole.groups().names

    def test_many_values_make_no_groups(self, scores, tmp_path):
        """No part has over 100 values, but the table does."""
        path = tmp_path / "scores.parquet"
        long = pa.concat_tables([scores] * 2)
        long = long.set_column(9, "site", pa.array([f"s{i}" for i in range(len(long))]))
        write(long, path)
        whole, opened = load(path), open_stream(path, batch=10)
        assert opened.default_attribute == whole.default_attribute == "ethnicity+gender"
        check_same(opened, whole)
        assert opened.group_names("site") == whole.groups("site").names

    def test_unknown(self, scores, folder, tmp_path):
        path = tmp_path / "scores.csv"
        write(scores, path)
        for place in (path, folder):
            with pytest.raises(DataError, match=f"{place.name}: attribute 'gendr' is not in"):
                open_stream(place).group_names("gendr")

    def test_none(self, tmp_path):
        path = tmp_path / "scores.csv"
        path.write_text("genuine,score\n1,0.5\n")
        opened = open_stream(path)
        assert opened.default_attribute is None
        with pytest.raises(DataError, match=f"scores.csv: {load(path).why_no_groups()}"):
            opened.group_names()


class TestColumns:
    """Only what is asked for is read."""

    def test_of_a_table(self, scores, tmp_path):
        path = tmp_path / "scores.parquet"
        write(scores, path)
        whole = described(load(path))
        for columns, found in (
            ((), {"left", "right", "score score"}),
            (("genuine", "fold"), {"left", "right", "score score", "genuine", "fold"}),
            (
                ("ethnicity", "identity"),
                {"left", "right", "score score"}
                | {f"{side} {n}" for side in ("left", "right") for n in ("ethnicity", "identity")},
            ),
        ):
            parts = joined(open_stream(path, batch=9).parts(columns=columns))
            assert parts == {key: whole[key] for key in found}

    def test_of_a_folder(self, pairs_file, folder):
        (part,) = open_stream(folder).parts(columns=("genuine",))
        assert part.pairs.genuine is not None
        assert part.pairs.fold is None


# ------------------------------------------------------------------------------ errors


def error_of(read):
    with pytest.raises(DataError) as caught:
        read()
    return str(caught.value)


def spoil(column, value, row):
    def spoiled(table):
        values = table[column].to_pylist()
        values[row] = value
        at = table.column_names.index(column)
        return table.set_column(at, column, pa.array(values))

    return spoiled


@pytest.mark.parametrize("batch", [7, 30])
class TestErrors:
    """What `load` says is said, with rows counted in the file."""

    @pytest.mark.parametrize(
        ("column", "value"),
        [("left", "nobody"), ("right", None), ("genuine", 2), ("genuine", None), ("fold", None)],
    )
    @pytest.mark.parametrize("row", [30, 65])
    def test_pairs(self, column, value, row, batch, pairs_file, folder):
        write(spoil(column, value, row)(pq_or_csv(pairs_file)), pairs_file)
        said = error_of(lambda: list(open_stream(folder, batch=batch).parts()))
        expected = error_of(lambda: load(folder))
        assert f"row {row + 1}: " in said
        assert said.replace(f" up to row {min(66, (row // batch + 1) * batch)}", "") == expected

    @pytest.mark.parametrize("suffix", SUFFIXES)
    @pytest.mark.parametrize(
        ("column", "value"),
        [("score", 1.5), ("score", None), ("probability", -1.0), ("genuine", 7), ("fold", None)],
    )
    def test_table(self, column, value, suffix, batch, scores, tmp_path):
        path = tmp_path / f"scores.{suffix}"
        write(spoil(column, value, 30)(scores), path)
        said = error_of(lambda: list(open_stream(path, batch=batch).parts()))
        assert said.replace(f" up to row {min(66, (30 // batch + 1) * batch)}", "") == error_of(
            lambda: load(path)
        )

    def test_unusable_vector(self, batch, pairs_file, folder, faces):
        faces.vectors[7] = np.nan
        np.save(folder / "embeddings.npy", faces.vectors)
        said = error_of(lambda: list(open_stream(folder, batch=batch).parts()))
        assert said == error_of(lambda: load(folder))
        assert "embeddings.npy, row 8 (image i07): NaN, infinite or zero vector" in said

    def test_unusable_vector_that_no_pair_uses(self, batch, pairs_file, folder, faces):
        faces.vectors[7] = 0
        np.save(folder / "embeddings.npy", faces.vectors)
        table = pq_or_csv(pairs_file)
        used = pc.or_(pc.equal(table["left"], "i07"), pc.equal(table["right"], "i07"))
        write(table.filter(pc.invert(used)), pairs_file)
        check_same(open_stream(folder, batch=batch), load(folder))


class TestBadFiles:
    @pytest.mark.parametrize(
        "spoiled",
        [
            lambda t: t.drop_columns("left"),
            lambda t: t.slice(0, 0),
            lambda t: t.append_column("score", pa.array(["high"] * len(t))),
        ],
    )
    def test_pairs(self, spoiled, pairs_file, folder):
        write(spoiled(pq_or_csv(pairs_file)), pairs_file)
        assert error_of(lambda: list(open_stream(folder).parts())) == error_of(lambda: load(folder))

    @pytest.mark.parametrize(
        "spoiled",
        [
            lambda t: t.drop_columns("genuine"),
            lambda t: t.drop_columns(["score", "other", "probability"]),
            lambda t: t.drop_columns("right_ethnicity"),
            lambda t: t.drop_columns("left_identity"),
            lambda t: t.append_column("a+b", pa.array(["x"] * len(t))),
            lambda t: t.slice(0, 0),
        ],
    )
    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_table(self, spoiled, suffix, scores, tmp_path):
        path = tmp_path / f"scores.{suffix}"
        write(spoiled(scores), path)
        assert error_of(lambda: open_stream(path)) == error_of(lambda: load(path))

    @pytest.mark.parametrize("row", [1, 20, 66])
    @pytest.mark.parametrize("line", ["i00", "i00,i01,1,1,1"])
    def test_a_line_that_does_not_fit(self, line, row, folder, small_blocks):
        path = folder / "pairs.csv"
        lines = path.read_text().splitlines()
        lines[row] = line
        path.write_text("\n".join(lines) + "\n")
        said = error_of(lambda: open_stream(folder))
        assert said == error_of(lambda: load(folder))
        assert f"Row #{row + 1}: Expected 4 columns" in said

    @pytest.mark.parametrize("row", [1, 60])
    def test_no_text(self, row, scores, tmp_path, small_blocks):
        path = tmp_path / "scores.csv"
        write(scores, path)
        lines = path.read_bytes().splitlines()
        lines[row] = lines[row].replace(b'"F"', b"\xff").replace(b'"M"', b"\xff")
        path.write_bytes(b"\n".join(lines))
        said = error_of(lambda: open_stream(path))
        assert said == error_of(lambda: load(path))
        assert "column 'gender' is not UTF-8 text" in said

    def test_empty(self, tmp_path):
        path = tmp_path / "scores.csv"
        path.write_text("")
        assert error_of(lambda: open_stream(path)) == error_of(lambda: load(path))

    def test_a_column_twice(self, pairs_file, folder):
        table = pq_or_csv(pairs_file).rename_columns(["left", "right", "genuine", "genuine"])
        write(table, pairs_file)
        said = error_of(lambda: open_stream(folder))
        assert said == f"{pairs_file}: column 'genuine' appears more than once; rename one of them"

    def test_damaged_within(self, folder, faces):
        """The end of a Parquet file is sound, so that opening it goes well."""
        (folder / "pairs.csv").unlink()
        pairs_file = folder / "pairs.parquet"
        pq.write_table(pa.table(faces.pairs), pairs_file, compression="zstd")
        data = bytearray(pairs_file.read_bytes())
        data[4:60] = b"\xff" * 56
        pairs_file.write_bytes(data)
        opened = open_stream(folder)
        said = error_of(lambda: list(opened.parts()))
        assert f"{pairs_file}: cannot be read" in said
        assert "repair or export it again" in said

    def test_cut_off(self, folder, faces):
        (folder / "pairs.csv").unlink()
        pairs_file = folder / "pairs.parquet"
        pq.write_table(pa.table(faces.pairs), pairs_file)
        pairs_file.write_bytes(pairs_file.read_bytes()[:500])
        for read in (open_stream, load):  # in Arrow's words, which are not the same
            said = error_of(lambda read=read: read(folder))
            assert f"{pairs_file}: cannot be read" in said
            assert "repair or export it again" in said

    @pytest.mark.parametrize("path", ["nowhere", "faces/pairs.txt"])
    def test_no_table(self, path, folder, tmp_path):
        (folder / "pairs.txt").write_text("")
        assert error_of(lambda: open_stream(tmp_path / path)) == error_of(
            lambda: load(tmp_path / path)
        )

    def test_batch_of_none(self, folder):
        with pytest.raises(ParameterError, match="batch: expected at least 1 pair, found 0"):
            open_stream(folder, batch=0)


# ------------------------------------------------------------------------------ the thread


def readers():
    return [thread for thread in threading.enumerate() if thread.name == "faircal-ahead"]


def test_closing_early_ends_the_thread(pairs_file, folder):
    parts = open_stream(folder, batch=1).parts()
    next(parts)
    assert len(readers()) == 1
    parts.close()
    assert readers() == []


def test_reading_is_at_most_three_parts_ahead(folder, monkeypatch):
    built = []
    assemble = Dataset.assemble

    def counting(*args, **more):
        built.append(len(built))
        return assemble(*args, **more)

    monkeypatch.setattr(Dataset, "assemble", counting)
    parts = open_stream(folder, batch=2).parts()
    for taken in range(1, 20):
        next(parts)
        assert len(built) <= taken + 3
    parts.close()


def test_the_fingerprint_changes_with_a_file(folder, tmp_path):
    seen = {open_stream(folder).fingerprint()}
    assert open_stream(folder).fingerprint() in seen
    for name in ("pairs.csv", "images.csv"):
        path = folder / name
        path.write_text(path.read_text() + "\n")
        seen.add(open_stream(folder).fingerprint())
    (folder / "dataset.json").write_text("{}")
    seen.add(open_stream(folder).fingerprint())
    vectors = np.load(folder / "embeddings.npy").astype(np.float16)
    np.save(folder / "embeddings.npy", vectors)
    seen.add(open_stream(folder).fingerprint())
    assert len(seen) == 5


@settings(max_examples=40)
@given(
    n=st.integers(1, 40),
    batch=st.integers(1, 45),
    row_group=st.integers(1, 45),
    start=st.integers(0, 40),
    suffix=st.sampled_from(SUFFIXES),
    whole_ids=st.booleans(),
    seed=st.integers(0, 5),
)
def test_any_cut(tmp_path_factory, n, batch, row_group, start, suffix, whole_ids, seed):
    rng = np.random.default_rng(seed)
    folder = tmp_path_factory.mktemp("cut")
    ids = rng.permutation(20 if seed % 2 else 10**9)[:6] if seed % 2 else rng.integers(0, 10**9, 6)
    names = ids if whole_ids else [f"{i}" if i % 2 else f"p/{i}.jpg" for i in ids]
    write(pa.table({"image_id": names, "g": list("aabbcc")}), folder / f"images.{suffix}")
    np.save(folder / "embeddings.npy", rng.normal(size=(6, 3)).astype(np.float32))
    sides = {side: np.asarray(names)[rng.integers(0, 6, n)] for side in ("left", "right")}
    pairs = pa.table(sides | {"genuine": rng.integers(0, 2, n), "fold": rng.integers(1, 4, n)})
    write(pairs, folder / f"pairs.{suffix}", row_group)
    opened = open_stream(folder, batch=batch)
    check_same(opened, load(folder), min(start, n))


def test_a_line_that_ends_in_quotes_without_a_line_end(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text('genuine,score,ethnicity\n1,0.9,"a"\n0,0.2,"a\nb"', encoding="utf-8")
    (part,) = open_stream(path).parts()
    assert part.scores.tolist() == load(path).scores.tolist() == [0.9, 0.2]
    assert part.groups("ethnicity").names == load(path).groups("ethnicity").names


def test_one_fold_is_picked_once(pairs_file):
    stream = open_stream(pairs_file.parent)
    first, second, *_ = stream.fold_names
    for pick in (stream.only, stream.without):
        with pytest.raises(ParameterError, match="a fold is picked already"):
            pick(first).without(second)


def test_scores_evenly_picked(tmp_path):
    path = tmp_path / "scores.parquet"
    score = np.random.default_rng(0).uniform(-1, 1, 1000)
    pq.write_table(pa.table({"genuine": score > 0, "score": score}), path)
    np.testing.assert_array_equal(open_stream(path, batch=77).sample(), score)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("faircal.data.stream._SAMPLED", 100)
        np.testing.assert_array_equal(open_stream(path, batch=77).sample(), score[::10])


def test_combinations_that_occur():
    columns = [Column.of(["b", "a", "b"]), Column.of(["x", "", "x"])]
    assert combinations(columns) == {("b", "x")}
    assert combinations([Column.of(["", ""])]) == set()


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "faircal-ahead"]


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 50])
def test_the_same_items(n, depth):
    assert list(ahead(iter(range(n)), depth)) == list(range(n))
    assert threads() == []


def test_items_are_made_in_another_thread():
    assert next(ahead(threading.current_thread() for _ in range(1))) is not threading.main_thread()


def test_an_error_comes_out_after_the_items_before_it():
    def items():
        yield 1
        yield 2
        raise KeyError("x")

    found = []
    with pytest.raises(KeyError, match="x"):
        found.extend(ahead(items()))
    assert threads() == []
    taken = ahead(items())
    assert [next(taken), next(taken)] == [1, 2]


def test_it_is_at_most_so_far_ahead():
    made, wanted = [], threading.Semaphore(0)

    def items():
        for n in range(100):
            made.append(n)
            wanted.release()
            yield n

    taken = ahead(items(), 2)
    for count in range(1, 20):
        next(taken)
        # Taken, two that wait, and one that is being handed over.
        assert len(made) <= count + 3
    for _ in range(22):
        assert wanted.acquire(timeout=60)  # and it does work ahead
    taken.close()


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("taken", [1, 3])
def test_closing_ends_the_thread_and_closes_the_items(taken, depth):
    closed = threading.Event()

    def items():
        try:
            while True:
                yield 0
        finally:
            closed.set()

    work = ahead(items(), depth)
    for _ in range(taken):
        next(work)
    work.close()
    assert closed.is_set()
    assert threads() == []


def test_closing_in_its_own_thread():
    """As the garbage collector may."""
    suspended, closed = threading.Event(), threading.Event()

    def items():
        yield 0
        suspended.wait()
        work.close()
        closed.set()

    work = ahead(items())
    assert next(work) == 0
    suspended.set()
    assert closed.wait(20)


def test_one_behind_the_other():
    """Closing the last closes all."""
    work = ahead(n + 1 for n in ahead(iter(range(1000))))
    assert next(work) == 1
    assert len(threads()) == 2
    work.close()
    assert threads() == []


def test_nothing_begins_before_the_first_item_is_asked_for():
    work = ahead(iter(range(3)))
    assert threads() == []
    work.close()
