"""Telling a model where it is from: counts, groups, limits; the same data gives the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import faircal
from faircal import Baseline, DataError, FairCal, NotFittedError, Oracle, ParameterError
from faircal.data import ClassifierRows, Dataset, Feature, open_stream
from faircal.data.columns import Column
from faircal.data.dataset_folder import save_dataset
from faircal.methods.classifier import FairCalClassifier
from faircal.methods.modelfile import decode, encode
from faircal.model import About, OperatingPoint, Provenance
from faircal.production.describe import describe
from faircal.production.monitoring import survey


@pytest.fixture(scope="module")
def faces():
    return faircal.simulate("small", seed=0, people=80, images=240, pairs=640, dimension=16)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    given = rng.dirichlet(np.ones(2), 100)
    where = Column.of(["north"] * 99 + ["south"])
    features = rng.normal(size=(100, 2)).astype(np.float32)
    codes = (rng.random(100) < given[:, 1]).astype(np.int64)
    return ClassifierRows("rows", given, codes, ("a", "b"), features, (), {"where": where})


def changed(data, **images):
    found = replace(data.images, **images)
    return Dataset.assemble(data.name, found, data.pairs, dict(data.features))


def limits(model, data):
    return describe(model, data).provenance.limits


class TestFaces:
    def test_what_is_told(self, faces):
        model = FairCal(n_clusters=3).fit(faces)
        about = describe(
            model, faces, intended_use="a door", limits=["not for minors"], settings={"a": (1, 2)}
        )
        assert model.about_ is about
        told = about.provenance
        assert told.counts == {
            "pairs": len(faces),
            "genuine": int(faces.genuine.sum()),
            "imposters": int((~faces.genuine).sum()),
            "images": len(faces.used_images()),
            "people": len(np.unique(faces.images.identity.take(faces.used_images()))),
        }
        column = faces.images.attributes["gender"]
        found = np.bincount(column.take(faces.used_images()))
        assert told.groups["gender"] == dict(zip(column.names, found.tolist(), strict=True))
        assert told.data_sha256 == faces.hash()
        assert told.feature == faces.feature
        assert told.simulated
        assert told.settings == {"a": [1, 2]}
        assert told.versions["faircal"] == faircal.__version__
        assert told.intended_use == "a door"
        assert told.limits[0] == "not for minors"
        assert about.population is None
        assert survey(model, faces).genuine_counts.sum() == told.counts["genuine"]
        assert model.about_.provenance is told

    def test_it_stays_in_the_file(self, faces):
        model = FairCal(n_clusters=3).fit(faces)
        describe(model, faces, intended_use="a door", settings={"x": np.int64(3), "y": np.inf})
        survey(model, faces)
        blob = encode(model)
        again = decode(blob)
        assert again.about_.provenance == model.about_.provenance
        assert encode(again) == blob

    def test_same_input_same_bytes(self, faces):
        blobs = []
        for _ in range(2):
            model = FairCal(n_clusters=3).fit(faces)
            describe(model, faces, intended_use="a door")
            survey(model, faces)
            blobs.append(encode(model))
        assert blobs[0] == blobs[1]

    def test_an_operating_point_stays_and_a_fit_forgets(self, faces):
        model = Baseline().fit(faces)
        model.about_ = About(operating_point=OperatingPoint(0.4))
        assert describe(model, faces).operating_point == OperatingPoint(0.4)
        assert model.fit(faces).about_.provenance is None

    def test_many_values_are_no_groups(self, faces):
        who = Column.of([f"id {i % 60}" for i in range(len(faces.images))])
        data = changed(faces, attributes={**faces.images.attributes, "badge": who})
        assert set(describe(Baseline().fit(data), data).provenance.groups) == {
            "ethnicity",
            "gender",
        }

    def test_a_stream_counts_the_same(self, faces, tmp_path):
        stream = open_stream(save_dataset(faces, tmp_path / "faces"), batch=100)
        model = Baseline().fit(stream)
        told, steps = [], []
        told.append(describe(model, stream, progress=lambda *step: steps.append(step)).provenance)
        told.append(describe(model, faces).provenance)
        assert told[0].counts == told[1].counts
        assert told[0].groups == told[1].groups
        assert told[0].simulated
        assert told[0].data_sha256 == stream.fingerprint()
        assert ("counting calibration pairs", 100, 640, "") in steps

    def test_scores_only(self, faces):
        sides = {"left": np.arange(640), "right": 640 + np.arange(640)}
        pairs = replace(faces.pairs, **sides)
        column = faces.images.attributes["gender"]
        codes = np.concatenate([column.take(faces.pairs.left), column.take(faces.pairs.right)])
        images = replace(
            faces.images,
            ids=faces.images.ids.take(np.zeros(1280, int)),
            identity=None,
            attributes={"gender": Column(codes, column.names)},
            crossed=("gender",),
            by_side=True,
        )
        features = {"score": Feature(None, faces.scores)}
        data = Dataset.assemble("scores", images, pairs, features)
        told = describe(Baseline().fit(data), data).provenance
        assert told.counts["images"] is told.counts["people"] is None
        assert sum(told.groups["gender"].values()) == 1280
        assert any("Nobody knows who" in text for text in told.limits)


class TestLimits:
    def test_simulated_and_few_people(self, faces):
        said = " ".join(limits(Baseline().fit(faces), faces))
        assert "The people are simulated" in said
        assert "It rests on 80 people, which are few" in said
        assert "fewer than 20 people of" not in said
        assert "Probabilities hold where 33.3 % of the pairs are genuine" in said
        assert "427 imposter pairs can't show a false-positive rate below about 0.70 %" in said

    def test_groups_that_are_missing_or_few(self, faces):
        column = faces.images.attributes["gender"]
        codes = np.where(np.arange(len(column)) % 5 == 0, -1, column.codes).astype(np.int32)
        one = int(faces.used_images()[1])
        codes[one] = 2
        names = (*column.names, "X", "Y")
        data = changed(faces, attributes={"gender": Column(codes, names)}, crossed=("gender",))
        said = limits(Baseline().fit(data), data)
        assert "gender: nobody of Y was among the calibration pairs." in said
        assert any(text.startswith("gender: fewer than 20 people of X (1);") for text in said)
        assert any(text.startswith("gender is not known of 20.0 % of the images") for text in said)

    def test_no_attribute_and_nobody_known(self, faces):
        data = changed(faces, attributes={}, crossed=(), identity=None)
        said = " ".join(limits(Baseline().fit(data), data))
        assert "No attribute came with the data" in said
        assert "Nobody knows who is in the images" in said

    def test_attributes_in_use(self, faces):
        said = limits(Oracle(attribute="gender").fit(faces), faces)
        assert "In use it must be told gender of both images of every pair." in said
        assert any("yardstick" in text for text in said)
        assert not any("must be told" in text for text in limits(Baseline().fit(faces), faces))

    def test_a_rate(self, faces):
        model = faircal.FSN(n_clusters=2, target_fpr=0.01).fit(faces)
        assert any("false-positive rate of 1.0 %" in text for text in limits(model, faces))


class TestClassifiers:
    def test_rows(self, rows):
        model = FairCalClassifier(n_clusters=2)
        names = np.array(rows.classes)[rows.codes]
        model.fit_calibration(rows.probabilities, names, features=rows.features)
        about = describe(model, rows, intended_use="triage")
        assert about.population is None
        assert about.provenance.counts == {"rows": 100, "classes": 2, "units": None}
        assert about.provenance.groups == {"where": {"north": 99, "south": 1}}
        assert any("south (1)" in text for text in about.provenance.limits)
        assert about.provenance.data_sha256 == rows.hash()


class TestWrongUse:
    def test_not_fitted(self, faces):
        for step in (describe, survey):
            with pytest.raises(NotFittedError, match="call fit first"):
                step(Baseline(), faces)

    @pytest.mark.parametrize("words", [{"intended_use": 3}, {"limits": "text"}, {"limits": [3]}])
    def test_no_text(self, faces, words):
        with pytest.raises(ParameterError, match="expected a text"):
            describe(Baseline().fit(faces), faces, **words)

    def test_other_data(self, faces, rows):
        with pytest.raises(ParameterError, match="Dataset or PairStream"):
            describe(Baseline().fit(faces), rows)


class TestProvenance:
    @pytest.mark.parametrize(
        "value",
        [
            None,
            [],
            {"other": 1},
            {"data": 3},
            {"counts": {"pairs": -1}},
            {"counts": {"pairs": True}},
            {"counts": {"pairs": 1.5}},
            {"groups": {"a": 3}},
            {"groups": {"a": {"b": "c"}}},
            {"simulated": 1},
            {"settings": []},
            {"versions": {"numpy": 2}},
            {"intended_use": None},
            {"limits": "text"},
            {"limits": [1]},
        ],
    )
    def test_of_another_kind(self, value):
        with pytest.raises(DataError, match="provenance"):
            Provenance.from_json(value)

    def test_back(self):
        told = Provenance("d", "h", "f", {"people": None}, {"a": {"b": 3}}, limits=("x",))
        assert Provenance.from_json(told.as_json()) == told

    @pytest.mark.parametrize(
        "point",
        [
            [],
            {"threshold": 0.4, "fpr": "x"},
            {"threshold": 0.4, "on": 3},
            {"threshold": 0.4, "source": {}},
            {"threshold": 0.4, "measured": {}},
            {"threshold": 0.4, "measured": [3]},
            {"threshold": 0.4, "measured": [{"fpr": []}]},
            {"threshold": "0.4"},
            {"threshold": None},
        ],
    )
    def test_points_of_another_kind(self, point):
        header = {"provenance": None, "population": None, "operating_point": point}
        with pytest.raises((DataError, ParameterError)):
            About.restore(header, {})
