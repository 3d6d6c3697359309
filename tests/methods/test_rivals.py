"""S-norm, AS-norm, FALCON and demographic score normalisation, once more in plain loops."""

from __future__ import annotations

from math import erf, sqrt

import numpy as np
import pytest

import faircal
from faircal import DSN, FALCON, ASNorm, BetaCalibrator, Cohort, DataError, ParameterError, SNorm
from faircal.methods import make_method


@pytest.fixture(scope="module")
def small():
    """(calibration, test), each with cross-group pairs; 80 people of 8 groups in all."""
    return faircal.simulate("small", seed=1, people=80, images=240, pairs=640, dimension=16).split(
        3
    )


@pytest.fixture(scope="module")
def cohort():
    others = faircal.simulate("small", seed=5, people=80, images=160, pairs=240, dimension=16)
    column = others.image_groups("ethnicity")
    return Cohort(
        embeddings=others.embeddings.vectors,
        identity=others.images.identity,
        groups=[column.names[code] for code in column.codes],
    )


def units(vectors):
    return [v / np.sqrt((v * v).sum()) for v in np.asarray(vectors, np.float64)]


def average(rows):
    total = np.sum(rows, axis=0)
    return total / np.sqrt((total * total).sum())


def pairs_of(data):
    """(left, right, score, genuine) of each pair."""
    p = data.pairs
    return list(zip(p.left, p.right, data.scores, data.genuine, strict=True))


def people_of(data, of=None):
    """One vector for each person of the images in pairs, of those images in `of` if given."""
    unit, who = units(data.embeddings.vectors), data.images.identity.codes
    used = [i for i in data.used_images() if of is None or i in of]
    return {p: average([unit[i] for i in used if who[i] == p]) for p in {who[i] for i in used}}


def standardised(score, x, others, k=None):
    cosines = sorted((float(x @ other) for other in others), reverse=True)[:k]
    mean = sum(cosines) / len(cosines)
    return (score - mean) / sqrt(sum((c - mean) ** 2 for c in cosines) / len(cosines))


def check(model, calibration, test, fitted, applied):
    """Compare decision scores with `applied`, probabilities with a map of `fitted`."""
    np.testing.assert_allclose(model.decision_scores(test), applied, rtol=0, atol=1e-9)
    again = BetaCalibrator(score_range=model.calibrator_.score_range)
    again.fit(fitted, calibration.genuine)
    found = model.predict_proba(test)
    np.testing.assert_allclose(found, again.predict(applied), rtol=0, atol=1e-6)


@pytest.mark.parametrize("k", [None, 7, 500])
@pytest.mark.parametrize("with_cohort", [False, True])
def test_score_normalisation(small, cohort, k, with_cohort):
    calibration, test = small
    unit, who = units(calibration.embeddings.vectors), calibration.images.identity.codes
    people = people_of(calibration)
    if with_cohort:
        calibration = calibration.with_cohort(cohort)
        images = units(next(iter(cohort.embeddings.values())).vectors)
        people = {
            f"cohort {p}": average([images[i] for i in np.flatnonzero(cohort.identity.codes == p)])
            for p in set(cohort.identity.codes)
        }
    model = (SNorm() if k is None else ASNorm(k=k)).fit(calibration)

    def scores(data, leave_out):
        result = []
        for left, right, s, _ in pairs_of(data):
            out = {who[left], who[right]} if leave_out else set()
            others = [vector for person, vector in people.items() if person not in out]
            z = [standardised(s, unit[image], others, k) for image in (left, right)]
            result.append(sum(z) / 2)
        return result

    check(model, calibration, test, scores(calibration, True), scores(test, False))


@pytest.mark.parametrize("variant", ["group", "cdf"])
def test_statistics_of_the_group(small, variant):
    calibration, test = small
    in_cal, in_test = calibration.groups("ethnicity"), test.groups("ethnicity")

    def moments(group, genuine):
        """Of the calibration pairs within a group; group −1 stands for all."""
        values = [
            s
            for (_, _, s, g), a, b in zip(
                pairs_of(calibration), in_cal.left, in_cal.right, strict=True
            )
            if g == genuine and (group == -1 or a == b == group)
        ]
        mean = sum(values) / len(values)
        return mean, sqrt(sum((v - mean) ** 2 for v in values) / len(values))

    def cdf(s, mean, std):
        return (1 + erf((s - mean) / std / sqrt(2))) / 2

    def normalised(s, group):
        (mean, std), genuine = moments(group, False), moments(group, True)
        if variant == "group":
            return (s - mean) / std
        return cdf(s, *genuine) - 1 + cdf(s, mean, std)

    def scores(data, groups):
        sides = zip(pairs_of(data), groups.left, groups.right, strict=True)
        return [(normalised(s, a) + normalised(s, b)) / 2 for (_, _, s, _), a, b in sides]

    assert in_test.cross.any()
    model = DSN("ethnicity", variant=variant).fit(calibration)
    check(model, calibration, test, scores(calibration, in_cal), scores(test, in_test))


def test_statistics_of_the_image(small, with_unknown):
    calibration, test = map(with_unknown, small)
    unit, who = units(calibration.embeddings.vectors), calibration.images.identity.codes
    column = calibration.image_groups("ethnicity")
    people = {
        code: people_of(calibration, set(np.flatnonzero(column.codes == code)))
        for code in range(len(column.names))
    }
    people[-1] = people_of(calibration)

    def scores(data, leave_out):
        result = []
        for left, right, s, _ in pairs_of(data):
            out = {who[left], who[right]} if leave_out else set()
            z = [
                standardised(
                    s,
                    unit[image],
                    [v for p, v in people[column.codes[other]].items() if p not in out],
                )
                for image, other in ((left, right), (right, left))
            ]
            result.append(sum(z) / 2)
        return result

    assert test.groups("ethnicity").unknown.any()
    model = DSN("ethnicity", variant="image").fit(calibration)
    check(model, calibration, test, scores(calibration, True), scores(test, False))


@pytest.mark.parametrize("rate", [1e-3, 0.07])
@pytest.mark.parametrize(
    ("kernel", "kernel_of"),
    [
        ("linear", lambda x, y: x @ y),
        ("polynomial", lambda x, y: (0.5 * (x @ y) + 1) ** 3),
        ("rbf", lambda x, y: np.exp(-0.5 * ((x - y) ** 2).sum())),
    ],
)
def test_thresholds_of_images(small, kernel, kernel_of, rate):
    calibration, test = small
    unit, who = units(calibration.embeddings.vectors), calibration.images.identity.codes
    used = calibration.used_images()
    wanted = [
        np.quantile([unit[i] @ unit[j] for j in used if who[j] != who[i]], 1 - rate) for i in used
    ]
    gram = np.array([[kernel_of(unit[i], unit[j]) for j in used] for i in used])
    weights = np.linalg.solve(gram + 0.3 * np.eye(len(used)), wanted)

    def threshold(i):
        return sum(w * kernel_of(unit[i], unit[j]) for w, j in zip(weights, used, strict=True))

    def scores(data):
        t = {i: threshold(i) for i in data.used_images()}
        return [0.6 * s + 0.4 * (1 - t[a] - t[b]) for a, b, s, _ in pairs_of(data)]

    model = FALCON(kernel=kernel, ridge=0.3, gamma=0.5, omega=0.6, target_fpr=rate)
    model.fit(calibration)
    check(model, calibration, test, scores(calibration), scores(test))


def test_more_images_than_the_regression_takes(small):
    calibration, test = small
    model = FALCON(max_images=50).fit(calibration)
    assert model.images_.shape == (50, 16)
    assert model.diagnostics_.notes == ["learnt from 50 of 192 images (max_images)"]
    assert model.diagnostics_.choices == model.diagnostics_.notes
    whole = FALCON().fit(calibration).decision_scores(test)
    assert np.corrcoef(model.decision_scores(test), whole)[0, 1] > 0.9


def test_small_groups_take_the_statistics_of_all(small, changed):
    """Too few people for a group's own statistics: the same as an unknown group."""
    calibration, test = small
    column = calibration.images.attributes["ethnicity"]
    few = np.isin(calibration.images.identity.codes, calibration.images.identity.codes[:3])
    codes = np.where(few, len(column.names), column.codes).astype(np.int32)
    named = type(column)(codes, (*column.names, "Few"))
    unknown = type(column)(np.where(few, -1, codes).astype(np.int32), column.names)
    scores = []
    for one in (named, unknown):
        a, b = (changed(part, attributes={"ethnicity": one}) for part in (calibration, test))
        model = DSN(variant="image").fit(a)
        assert "Few" not in model.groups_
        scores.append(model.decision_scores(b))
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize("name", ["snorm", "asnorm", "dsn"])
def test_monotone_in_the_score(name, small, changed):
    """Of two pairs of the same images the one with the higher score is the likelier one."""
    calibration, test = small
    model = make_method(name).fit(calibration)
    inputs = model._inputs(test, fitting=False)
    higher = model._scores(_With(inputs, inputs.score + 0.01))
    assert (higher > model._scores(inputs)).all()


class _With:
    """Inputs with other scores."""

    def __init__(self, inputs, score):
        self._inputs, self.score = inputs, score

    def __getattr__(self, name):
        return getattr(self._inputs, name)


@pytest.mark.parametrize(
    ("name", "parameters", "match"),
    [
        ("asnorm", {"k": 1}, "k: expected a whole number of 2 or more"),
        ("falcon", {"kernel": "rdf"}, "did you mean rbf"),
        ("falcon", {"omega": 1.5}, "omega: expected a weight from 0 to 1"),
        ("falcon", {"ridge": 0.0}, "ridge: expected a number"),
        ("dsn", {"variant": "grup"}, "did you mean group"),
    ],
)
def test_parameters(small, name, parameters, match):
    with pytest.raises(ParameterError, match=match):
        make_method(name, **parameters).fit(small[0])


@pytest.mark.parametrize("name", ["snorm", "asnorm"])
def test_too_few_people_to_compare_with(small, name):
    calibration = small[0]
    who = calibration.images.identity.codes
    few = np.isin(who, np.unique(who[calibration.pairs.left])[:3])
    rows = np.flatnonzero(few[calibration.pairs.left] & few[calibration.pairs.right])
    with pytest.raises(DataError, match="expected 4 people or more, found "):
        make_method(name).fit(calibration.subset(rows))
