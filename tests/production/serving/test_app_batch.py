"""Many pairs over HTTP, in JSON and Arrow."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from faircal.data import Embeddings
from faircal.production.scoring.judging import Judge

ARROW = "application/vnd.apache.arrow.stream"
COLUMNS = [
    "score", "similarity", "probability", "log_likelihood_ratio", "same", "at_bound",
    "left_cluster", "right_cluster", "left_outside", "right_outside",
]  # fmt: skip


def stream(table, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as out:
        out.write_table(table, max_chunksize=7)
    return sink.getvalue().to_pybytes()


def fixed(matrix):
    return pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), matrix.shape[1])


def send(client, table, accept=None, **options):
    headers = {"Content-Type": ARROW, **({"Accept": accept} if accept else {})}
    return client.post("/v1/verify/batch", content=stream(table, **options), headers=headers)


def read(answer):
    assert answer.status_code == 200, answer.text
    return pa.ipc.open_stream(answer.content).read_all()


@pytest.fixture
def pairs(vectors):
    return np.ascontiguousarray(vectors[:20]), np.ascontiguousarray(vectors[20:40])


@pytest.fixture
def judged(fitted_model, pairs):
    both = Embeddings(np.concatenate(pairs))
    return Judge.of(fitted_model)(both, np.arange(20), np.arange(20, 40))


def check(table, judged, tolerance=1e-6):
    assert table.column_names == COLUMNS
    for name in COLUMNS[:4]:
        assert table[name].to_numpy() == pytest.approx(getattr(judged, name), abs=tolerance)
    for name in ("same", "at_bound"):
        assert table[name].to_pylist() == getattr(judged, name).tolist()
    assert table["left_cluster"].to_pylist() == judged.places.cluster[:20].tolist()
    assert table["right_outside"].to_pylist() == judged.places.outside[20:].tolist()


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 1e-6), ("float64", 1e-6), ("float16", 0.05)]
)
def test_fixed_size_lists_of_every_float(client, pairs, judged, dtype, tolerance):
    left, right = (side.astype(dtype) for side in pairs)
    check(read(send(client, pa.table({"left": fixed(left), "right": fixed(right)}))), judged,
          tolerance)  # fmt: skip


def test_lists_of_equal_lengths(client, pairs, judged):
    left, right = (pa.array(side.tolist(), pa.list_(pa.float32())) for side in pairs)
    check(read(send(client, pa.table({"left": left, "right": right}))), judged)


def test_dictionaries_of_vectors(client, pairs, judged):
    rows = pa.array(np.arange(20, dtype=np.int32)[::-1])
    left = pa.DictionaryArray.from_arrays(rows, fixed(pairs[0][::-1].copy()))
    check(read(send(client, pa.table({"left": left, "right": fixed(pairs[1])}))), judged)


def test_ids_of_templates(client, pairs, judged):
    for k, vector in enumerate(pairs[0]):
        made = {"id": f"t{k}", "embedding": vector.tolist()}
        assert client.post("/v1/templates", json=made).status_code == 201
    names = pa.array([f"t{k}" for k in range(20)])
    for left in (names, names.dictionary_encode()):
        check(read(send(client, pa.table({"left": left, "right": fixed(pairs[1])}))), judged)
    unknown = pa.array(["t0"] * 3 + ["nobody"] + ["t0"] * 16)
    refused = send(client, pa.table({"left": unknown, "right": fixed(pairs[1])}))
    assert (refused.status_code, refused.json()["error"]["where"]) == (404, "left[3]")


def test_json_of_both_kinds_says_the_same(client, pairs, judged):
    left, right = (side.tolist() for side in pairs)
    one = client.post("/v1/verify/batch", json={"left": left, "right": right}).json()
    other = client.post(
        "/v1/verify/batch",
        json={"pairs": [{"left": a, "right": b} for a, b in zip(left, right, strict=True)]},
    ).json()
    assert one["probability"] == pytest.approx(judged.probability.tolist(), abs=1e-6)
    assert one["probability"] == other["probability"]
    assert one["pairs"] == 20


def test_the_answer_is_of_the_kind_that_is_accepted(client, pairs):
    table = pa.table({"left": fixed(pairs[0]), "right": fixed(pairs[1])})
    assert send(client, table, accept="application/json").json()["pairs"] == 20
    found = client.post(
        "/v1/verify/batch",
        json={"left": pairs[0].tolist(), "right": pairs[1].tolist()},
        headers={"Accept": ARROW},
    )
    assert read(found).column_names == COLUMNS
    about = read(found).schema.metadata
    assert about[b"faircal.model"].decode() == client.service.in_use.digest


def test_the_share_of_genuine_pairs_comes_as_metadata(client, pairs, judged):
    sides = pa.table({"left": fixed(pairs[0]), "right": fixed(pairs[1])})
    lists = {"left": pairs[0].tolist(), "right": pairs[1].tolist(), "prior": 0.01}
    wanted = client.post("/v1/verify/batch", json=lists).json()
    found = read(send(client, sides.replace_schema_metadata({"faircal.prior": "0.01"})))
    assert found["probability"].to_pylist() == pytest.approx(wanted["probability"])
    assert found["probability"].to_numpy() != pytest.approx(judged.probability)
    assert found.schema.metadata[b"faircal.prior"] == b"0.01"
    for wrong in ("1", "nan", "", "half", "0.5" + "0" * 100):
        refused = send(client, sides.replace_schema_metadata({"faircal.prior": wrong}))
        assert refused.status_code == 422
        assert refused.json()["error"]["where"] == "faircal.prior"


def test_groups_of_one_side_only_are_refused(client, pairs):
    sides = {"left": fixed(pairs[0]), "right": fixed(pairs[1])}
    groups = pa.array(["A"] * 20)
    refused = send(client, pa.table({**sides, "left_group": groups}))
    assert (refused.status_code, refused.json()["error"]["where"]) == (422, "right_group")
    both = {"left_group": groups, "right_group": groups}
    assert send(client, pa.table({**sides, **both})).status_code == 200


def bad_tables(pairs):
    left = pairs[0]
    spoilt = left.copy()
    spoilt[4, 2] = np.nan
    zero = left.copy()
    zero[5] = 0
    rows = left.tolist()
    ragged = [*rows[:6], rows[6][:-1], *rows[7:]]
    holes = [*rows[:7], None, *rows[8:]]
    inner = [*rows[:8], [None, *rows[8][1:]], *rows[9:]]
    floats = pa.list_(pa.float32())
    yield "nan", fixed(spoilt), 422, "left[4]"
    yield "zero", fixed(zero), 422, "left[5]"
    yield "ragged", pa.array(ragged, floats), 422, "left[6]"
    yield "null", pa.array(holes, floats), 422, "left[7]"
    yield "null within", pa.array(inner, floats), 422, "left[8]"
    yield "null in fixed", pa.array(holes, pa.list_(pa.float32(), 128)), 422, "left[7]"
    yield "short", fixed(left[:, :64].copy()), 422, "left"
    yield "integers", pa.array([[1] * 128] * 20), 422, "left"
    yield "numbers", pa.array(range(20)), 422, "left"
    yield "nested", pa.array([[[1.0]]] * 20), 422, "left"
    yield "empty lists", pa.array([[]] * 20, floats), 422, "left"


@pytest.mark.parametrize("number", range(11))
def test_what_cannot_be_used_is_named_by_its_row(client, pairs, number):
    _, left, status, where = list(bad_tables(pairs))[number]
    refused = send(client, pa.table({"left": left, "right": fixed(pairs[1])}))
    assert (refused.status_code, refused.json()["error"].get("where")) == (status, where)


def test_compressed_streams_are_refused(client, pairs):
    table = pa.table({"left": fixed(pairs[0]), "right": fixed(pairs[1])})
    for codec in ("zstd", "lz4"):
        refused = send(client, table, compression=codec)
        assert refused.status_code == 422
        assert "compress" in refused.json()["error"]["message"]


def test_other_columns_too_many_rows_and_no_rows(start, pairs):
    client = start(max_pairs=10)
    sides = {"left": fixed(pairs[0]), "right": fixed(pairs[1])}
    assert send(client, pa.table(sides)).status_code == 413
    lists = {"left": pairs[0].tolist(), "right": pairs[1].tolist()}
    assert client.post("/v1/verify/batch", json=lists).status_code == 413
    assert send(client, pa.table({**sides, "name": pa.array(range(20))})).status_code == 422
    assert send(client, pa.table({"left": sides["left"]})).status_code == 422
    assert send(client, pa.table(sides).slice(0, 0)).status_code == 422


def test_damaged_streams_are_refused_whatever_is_damaged(client, pairs):
    whole = stream(pa.table({"left": fixed(pairs[0][:3]), "right": fixed(pairs[1][:3])}))
    rng = np.random.default_rng(0)
    for k in range(150):
        cut = bytearray(whole)
        if k % 3 == 0:
            cut = cut[: rng.integers(0, len(cut))]
        for place in rng.integers(0, min(len(cut), 900) or 1, 6 if k % 3 else 0):
            cut[place] = rng.integers(0, 256)
        said = client.post("/v1/verify/batch", content=bytes(cut), headers={"Content-Type": ARROW})
        assert said.status_code < 500, k


def test_a_batch_is_recorded_and_takes_feedback(client, pairs):
    table = pa.table({"left": fixed(pairs[0]), "right": fixed(pairs[1])})
    about = read(send(client, table)).schema.metadata
    name = about[b"faircal.id"].decode()
    lines = client.get("/v1/decisions").json()["decisions"]
    assert [(line["id"], line["score"]) for line in lines] == [(name, None)]
    told = client.post("/v1/feedback", json={"decision": f"{name}.3", "genuine": True})
    assert told.status_code == 200
    found = client.get(f"/v1/decisions/{name}").json()["decisions"]
    assert [line["genuine"] for line in found[2:5]] == [None, True, None]
    csv = client.get("/v1/decisions", params={"format": "csv"}).text.splitlines()
    assert len(csv) == 21
    for wrong in ("20", "-1", "x", "³"):
        refused = client.post("/v1/feedback", json={"decision": f"{name}.{wrong}", "genuine": True})
        assert refused.status_code == 404
