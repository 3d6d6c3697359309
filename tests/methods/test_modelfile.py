"""The model file: whatever is wrong with one is a single clear ModelFileError."""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from pathlib import Path

import numpy as np
import pytest

import faircal
from faircal import Baseline, DataError, FairCal, ModelFileError, Oracle, ParameterError, load_model
from faircal._base.container import MAGIC, VERSION
from faircal.calibrators import HistogramCalibrator
from faircal.methods import METHODS, Method
from faircal.methods.modelfile import decode, encode

FRONT = struct.Struct("<8sIQ")


@pytest.fixture(scope="session")
def model(parts):
    return FairCal(n_clusters=4, calibrator="isotonic").fit(parts[0])


@pytest.fixture(scope="session")
def blob(model):
    return encode(model)


def sealed(body):
    """Return `body` with a checksum that is right."""
    return body + hashlib.sha256(body).digest()


def opened(blob):
    _, _, length = FRONT.unpack_from(blob)
    end = FRONT.size + length
    return json.loads(blob[FRONT.size : end]), blob[end:-32]


def built(header, arrays, version=VERSION):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-(FRONT.size + len(text)) % 64)
    return sealed(FRONT.pack(MAGIC, version, len(text)) + text + arrays)


def with_header(blob, change):
    header, arrays = opened(blob)
    change(header)
    return built(header, arrays)


def refused(blob, match=None):
    with pytest.raises(ModelFileError, match=match) as caught:
        decode(blob)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert len(message) < 1000


def test_these_helpers_rebuild_a_good_file(blob, model, parts):
    assert built(*opened(blob)) == with_header(blob, lambda header: None)
    again = decode(built(*opened(blob)))
    np.testing.assert_array_equal(again.predict_proba(parts[1]), model.predict_proba(parts[1]))


class TestLayout:
    def test_arrays_are_aligned_and_sorted(self, blob, model):
        header, arrays = opened(blob)
        assert (len(blob) - 32 - len(arrays)) % 64 == 0
        names = sorted(header["arrays"])
        assert names.index("bank.own") < names.index("centers")
        start = 0
        for name in names[: names.index("centers")]:
            dtype, shape = header["arrays"][name]
            start += -(-np.dtype(dtype).itemsize * int(np.prod(shape)) // 64) * 64
        found = np.frombuffer(arrays, np.float32, model.cluster_centers_.size, start)
        np.testing.assert_array_equal(found, model.cluster_centers_.ravel())

    def test_header_is_plain_json(self, blob, model):
        header, _ = opened(blob)
        assert header["method"] == "faircal"
        assert header["faircal"] == faircal.__version__
        assert header["parameters"] == model.get_params()
        assert header["score_range"] == [-1.0, 1.0]

    def test_nothing_but_json_and_arrays(self, name, make, parts):
        """Whatever the method: no room for a pickle, or for anything else that runs."""
        header, arrays = opened(encode(make(name).fit(parts[0])))
        sizes = [np.dtype(dtype).itemsize * math.prod(n) for dtype, n in header["arrays"].values()]
        assert len(arrays) == sum(-(-size // 64) * 64 for size in sizes)
        assert {np.dtype(dtype).kind for dtype, _ in header["arrays"].values()} <= set("fib")

    def test_no_embedding_and_nobody_inside(self, name, make, parts):
        """A model knows the groups it shifts or maps at most, no image and nobody by name."""
        if name == "falcon":
            return  # its kernel is made of calibration images, as its documentation says
        calibration, _ = parts
        blob = encode(make(name).fit(calibration))
        if name != "dsn":  # moments of cosines with each group: a matrix each
            assert len(blob) < 30_000 < calibration.embeddings.vectors.nbytes
        for who in calibration.images.identity.names:
            assert json.dumps(who).encode() not in blob  # by chance numbers hold any three letters
        for vector in calibration.embeddings.rows(calibration.used_images()):
            assert vector[:4].tobytes() not in blob

    def test_no_labels_and_no_attributes_inside(self, blob, parts):
        for text in (*parts[0].images.attributes, "African", "Asian", "genuine"):
            assert text.encode() not in blob


class TestDamage:
    def test_truncated(self, blob):
        for length in range(0, len(blob), 97):
            refused(blob[:length], "cut off|checksum")

    def test_flipped_bytes(self, blob):
        positions = np.random.default_rng(0).choice(len(blob), 200, replace=False)
        for position in (*positions, *range(FRONT.size)):
            damaged = bytearray(blob)
            damaged[position] ^= 1 << int(position % 8)
            refused(bytes(damaged), "not a faircal model|newer|no format 0|checksum")

    def test_something_behind(self, blob):
        refused(blob + b"\0", "checksum")

    @pytest.mark.parametrize("junk", [b"", b"x", MAGIC, b"PK\x03\x04" * 100, b"\x80\x04" * 100])
    def test_foreign(self, junk):
        refused(junk, "not a faircal model file")

    def test_wrong_magic_with_a_right_checksum(self, blob):
        refused(sealed(b"FAIRCUL\n" + blob[8:-32]), "not a faircal model file")

    @pytest.mark.parametrize("version", [VERSION + 1, 2**32 - 1])
    def test_newer_version(self, blob, version):
        refused(built(*opened(blob), version=version), f"format {version} by a newer faircal")

    @pytest.mark.parametrize("length", [2**64 - 1, 2**63, 10**9, "one too many"])
    def test_header_length_beyond_the_file(self, blob, length):
        length = len(blob) - 32 - FRONT.size + 1 if length == "one too many" else length
        body = FRONT.pack(MAGIC, VERSION, length) + blob[FRONT.size : -32]
        refused(sealed(body), "header is longer than the file")

    @pytest.mark.parametrize("length", [0, 1, 20])
    def test_header_length_too_short(self, blob, length):
        refused(sealed(FRONT.pack(MAGIC, VERSION, length) + blob[FRONT.size : -32]), "not JSON")

    @pytest.mark.parametrize(
        "text", [b"{", b"not json", b"\xff\xfe{}", b"{} {}", b"[" * 100_000, b'{"a":' * 100_000]
    )
    def test_header_not_json(self, text):
        refused(built(text, b""), "header is not JSON")

    @pytest.mark.parametrize("text", [b"[]", b"null", b"3", b'"text"', b"[" * 50 + b"]" * 50])
    def test_header_not_an_object(self, text):
        refused(built(text, b""), "header is not an object")


class TestRightChecksumWrongContent:
    @pytest.mark.parametrize(
        "key", ["method", "parameters", "score_range", "values", "notes", "figures", "arrays"]
    )
    @pytest.mark.parametrize("value", [None, 7, "text", [], [[[]]], {"a": {}}, 1e999])
    def test_wrong_kind_of_entry(self, blob, key, value):
        def change(header):
            header[key] = value

        changed = with_header(blob, change)
        if (key, value) == ("notes", []):
            assert isinstance(decode(changed), Method)
        else:
            refused(changed, "cannot be rebuilt|damaged")

    @pytest.mark.parametrize(
        "key", ["method", "parameters", "score_range", "values", "notes", "figures", "arrays"]
    )
    def test_missing_entry(self, blob, key):
        refused(with_header(blob, lambda header: header.pop(key)), f"'{key}'")

    @pytest.mark.parametrize(
        "key", ["centers", "cluster_sizes", "bank.own", "inertia", "n_iter", "normalize"]
    )
    def test_missing_state(self, blob, key):
        def change(header):
            part = "values" if key in header["values"] else "arrays"
            header[part][f"not-{key}"] = header[part].pop(key)

        refused(with_header(blob, change), "cannot be rebuilt")

    @pytest.mark.parametrize("dtype", ["object", "O", "|O", "V8", "U8", "datetime64", "no", 3])
    def test_wrong_dtype(self, blob, dtype):
        def change(header):
            header["arrays"]["bank.own"][0] = dtype

        refused(with_header(blob, change), "array of unknown kind")

    @pytest.mark.parametrize(
        "shape",
        [[5], [3], [0], [10**30], [0, 10**30], [2**62, 4], [-1], [4.0], [None], "4", None, [[4]]],
    )
    def test_wrong_shape(self, blob, shape):
        def change(header):
            header["arrays"]["cluster_sizes"][1] = shape

        refused(with_header(blob, change))

    @pytest.mark.parametrize(
        ("key", "shape"), [("centers", [2, 64]), ("centers", [128]), ("centers", [128, 1])]
    )
    def test_arrays_that_do_not_fit_together(self, blob, key, shape):
        def change(header):
            header["arrays"][key][1] = shape

        refused(with_header(blob, change), "centers: expected|cluster_sizes: expected")

    def test_arrays_too_short_or_long(self, blob):
        header, arrays = opened(blob)
        for wrong in (arrays[:-64], arrays + bytes(64), arrays + b"\0", b""):
            refused(built(header, wrong), "arrays do not fill it")

    @pytest.mark.parametrize("name", ["fsn", "gst", "oracle"])
    def test_state_that_does_not_fit_together(self, name, make, parts):
        blob = encode(make(name).fit(parts[0]))

        def change(header):
            if "groups" in header["values"]:
                header["values"]["groups"].append("Martian")
            else:
                header["arrays"]["shifts"][1] = [1, *header["arrays"]["shifts"][1]]

        refused(with_header(blob, change), "(shifts|bank): expected")

    def test_unknown_method(self, blob):
        def change(header):
            header["method"] = "faircall"

        refused(with_header(blob, change), "unknown method 'faircall'; did you mean faircal")

    def test_unknown_parameter(self, blob):
        def change(header):
            header["parameters"]["n_cluster"] = 4

        refused(with_header(blob, change), "no parameter 'n_cluster'; did you mean n_clusters")

    @pytest.mark.parametrize(
        "calibrator",
        ["bogus", None, 3, {"calibrator": "beta"}, {"calibrator": "isotonic", "parameters": 1}],
    )
    def test_wrong_calibrator(self, blob, calibrator):
        def change(header):
            header["parameters"]["calibrator"] = calibrator

        refused(with_header(blob, change), "cannot be rebuilt")

    def test_calibrator_of_another_kind(self, blob):
        def change(header):
            header["parameters"]["calibrator"] = "beta"

        refused(with_header(blob, change), "another kind of calibrator")

    @pytest.mark.parametrize("bounds", [[1, -1], [0, 0], [0], [0, 1, 2], ["a", "b"], [0, 10**400]])
    def test_wrong_score_range(self, blob, bounds):
        def change(header):
            header["score_range"] = bounds

        refused(with_header(blob, change), "cannot be rebuilt")

    @pytest.mark.parametrize("value", [1e999, float("nan"), "x", None, []])
    @pytest.mark.parametrize("key", ["n_iter"])
    def test_wrong_number(self, blob, key, value):
        def change(header):
            header["values"][key] = value

        refused(with_header(blob, change), "cannot be rebuilt|not JSON")

    def test_text_from_the_file_stays_on_one_short_line(self, blob):
        def change(header):
            header["faircal"] = "1.0\nTraceback:\r\x0b\u2028" + "x" * 5000
            header["method"] = "a\nb" * 2000

        refused(with_header(blob, change), "written by faircal 1.0 Traceback")


class TestOtherVersions:
    def test_newer_schema(self, blob):
        def change(header):
            header.update(schema=2, faircal="9.1\x1b[2J", method={"new": "kind"})

        refused(with_header(blob, change), r"newer faircal \(9.1\?\[2J\) in schema 2; .* upgrade")

    @pytest.mark.parametrize("schema", [True, -1, "1", None, 1.0, [1]])
    def test_schema_of_another_kind(self, blob, schema):
        refused(with_header(blob, lambda header: header.update(schema=schema)), "schema")

    def test_a_file_without_about_and_schema(self, blob, model, parts):
        def change(header):
            del header["about"], header["schema"]

        old = decode(with_header(blob, change))
        assert old.about_.provenance is old.about_.population is old.about_.operating_point is None
        np.testing.assert_array_equal(old.predict_proba(parts[1]), model.predict_proba(parts[1]))

    def test_same_model_same_bytes(self, blob):
        assert encode(decode(blob)) == blob


class TestHostileParameters:
    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("n_clusters", 10**9),
            ("n_clusters", 3),
            ("n_clusters", True),
            ("min_pairs", -1),
            ("random_state", "0"),
            ("n_init", [1]),
            ("calibrator", {"calibrator": ["isotonic"], "parameters": {}}),
            ("calibrator", "histogram:n_bins=1e99999"),
        ],
    )
    def test_parameters(self, blob, key, value):
        refused(with_header(blob, lambda header: header["parameters"].update({key: value})))

    @pytest.mark.parametrize("bins", [0, -5, 1.5, "10", 10**400, True])
    def test_parameter_of_a_calibrator(self, parts, bins):
        blob = encode(Baseline(HistogramCalibrator(n_bins=5)).fit(parts[0]))

        def change(header):
            header["parameters"]["calibrator"]["parameters"]["n_bins"] = bins

        if bins == 10**400:  # any whole number: nothing is made of it
            assert decode(with_header(blob, change)).calibrator.n_bins == bins
        else:
            refused(with_header(blob, change))

    @pytest.mark.parametrize("device", ["cuda:99", "os.system", 3, None, ["cpu"]])
    def test_device_is_chosen_here(self, make, parts, device):
        pytest.importorskip("torch")
        blob = encode(make("ftc", attribute="gender").fit(parts[0]))
        loaded = decode(
            with_header(blob, lambda header: header["parameters"].update(device=device))
        )
        assert loaded.device == "auto"

    @pytest.mark.parametrize("text", ["false", 0, None, []])
    def test_truth(self, blob, text):
        refused(
            with_header(blob, lambda header: header["values"].update(normalize=text)), "true or"
        )

    def test_unsorted_knots(self, parts):
        model = Baseline("isotonic").fit(parts[0])
        model.calibrator_.knots_ = model.calibrator_.knots_[::-1].copy()
        refused(encode(model), "arrays that make a map")

    def test_numbers_that_are_none(self, parts):
        model = decode(encode(FairCal(n_clusters=4).fit(parts[0])))  # whose centres nobody shares
        model.cluster_centers_[0, 0] = np.nan
        with pytest.raises(DataError, match="centers: expected finite numbers"):
            encode(model)

    def test_lengths_that_lie(self, blob):
        def change(header):
            header["arrays"]["bank.values_lengths"], header["arrays"]["bank.knots_lengths"] = (
                ["int64", [1, 5]],
                ["float64", [5]],
            )

        refused(with_header(blob, change), "as many as their lengths say")


def test_fuzz(name, make, parts):
    """100 changes a method, half with a right checksum: refused in one line, or a whole model."""
    blob = encode(make(name, calibrator="histogram").fit(parts[0]))
    rng = np.random.default_rng(list(METHODS).index(name))
    header_end = FRONT.size + FRONT.unpack_from(blob)[2]
    refusals = 0
    for trial in range(100):
        body = bytearray(blob[:-32])
        for _ in range(rng.integers(1, 4)):
            end = header_end if trial % 4 else len(body)  # the header decides most
            at = int(rng.integers(min(end, len(body))))
            match rng.integers(4):
                case 0:
                    body[at] = rng.integers(256)
                case 1:
                    body[at] ^= 1 << int(rng.integers(8))
                case 2:
                    del body[at : at + int(rng.integers(1, 9))]
                case _:
                    body[at:at] = rng.bytes(int(rng.integers(1, 9)))
        changed = sealed(bytes(body)) if trial % 2 else bytes(body) + blob[-32:]
        if changed == blob:  # a byte was replaced by itself
            continue
        try:
            found = decode(changed)
        except ModelFileError as error:
            assert len(str(error).splitlines()) == 1
            refusals += 1
        else:
            assert trial % 2, "a wrong checksum was accepted"
            assert isinstance(found, Method)
    assert refusals > 50


class TestFiles:
    def test_path_is_named(self, blob, tmp_path):
        path = tmp_path / "m.faircal"
        path.write_bytes(blob[:-1])
        with pytest.raises(ModelFileError, match=r"m\.faircal: damaged"):
            load_model(path)

    def test_folder(self, tmp_path):
        with pytest.raises(ModelFileError, match="found a folder"):
            load_model(tmp_path)

    def test_what_is_no_file(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        for path in (tmp_path / "pipe", Path("/dev/zero")):
            with pytest.raises(ModelFileError, match="expected a model file, found none"):
                load_model(path)

    def test_a_large_file_of_another_kind_is_not_read(self, tmp_path):
        path = tmp_path / "film.faircal"
        with path.open("wb") as file:
            file.truncate(1 << 40)
        with pytest.raises(ModelFileError, match="not a faircal model file"):
            load_model(path)

    @pytest.mark.parametrize("error", [MemoryError(), OSError("input/output error")])
    def test_what_cannot_be_read(self, blob, tmp_path, monkeypatch, error):
        def fail(_):
            raise error

        monkeypatch.setattr("faircal.methods.modelfile.decode", fail)
        (tmp_path / "m.faircal").write_bytes(blob)
        with pytest.raises(ModelFileError, match=r"m\.faircal: cannot be read \("):
            load_model(tmp_path / "m.faircal")

    def test_missing(self, tmp_path):
        with pytest.raises(DataError, match="no such file"):
            load_model(tmp_path / "none.faircal")

    def test_saving_onto_a_folder(self, model, tmp_path):
        with pytest.raises(ParameterError, match="is a folder"):
            model.save(tmp_path)

    def test_saving_makes_folders_and_leaves_no_other_file(self, model, tmp_path):
        model.save(tmp_path / "a" / "b" / "m.faircal")
        model.save(str(tmp_path / "a" / "b" / "m.faircal"))
        assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["m.faircal"]

    def test_text_outside_ascii(self, parts, changed, tmp_path):
        columns = {"région": parts[0].images.attributes["ethnicity"]}
        calibration, test = (changed(part, attributes=columns) for part in parts)
        model = Oracle(attribute="région").fit(calibration)
        model.save(tmp_path / "m.faircal")
        found = load_model(tmp_path / "m.faircal")
        np.testing.assert_array_equal(found.predict_proba(test), model.predict_proba(test))


def test_nothing_in_the_package_can_unpickle():
    source = Path(faircal.__file__).parent
    files = sorted(source.rglob("*.py"))
    assert len(files) > 40
    # Weights that others publish are PyTorch's files: read in one place, without running anything.
    careful = 'torch.load(path, map_location="cpu", weights_only=True)'
    weights = source / "embedding" / "facenet.py"
    assert weights.read_text(encoding="utf-8").count(careful) == 1
    # Spark ships functions to its workers pickled: they come from the driver, never from a file.
    shipped = "cloudpickle.loads(make)"
    ships = source / "production" / "spark" / "pairs.py"
    assert ships.read_text(encoding="utf-8").count(shipped) == 1
    for path in files:
        text = path.read_text(encoding="utf-8")
        if path == weights:
            text = text.replace(careful, "")
        if path == ships:
            text = text.replace(shipped, "")
        for word in (
            "import pickle",
            "pickle.load",
            "joblib",
            "allow_pickle=True",
            "marshal",
            "shelve",
            "torch.load",
            "torch.save",
        ):
            assert word not in text, f"{path.name} has {word!r}"
