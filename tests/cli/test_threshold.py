"""``faircal threshold``: what it promises, what it refuses, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import faircal
from faircal.production.serving.page.answer import rule

SIZES = ("--people", "120", "--images", "960", "--pairs", "9000", "--dimension", "16")


@pytest.fixture(scope="module")
def faces(tmp_path_factory, run_command):
    folder = tmp_path_factory.mktemp("threshold") / "faces"
    run_command("simulate", "small", folder, *SIZES)
    return str(folder)


@pytest.fixture(scope="module")
def model(faces):
    path = f"{faces}.faircal"
    faircal.FairCal(n_clusters=4).fit(faircal.load(faces)).save(path)
    return path


def test_the_threshold_is_at_the_end_and_keeps_the_promise(faces, run_here):
    done = run_here(["threshold", faces, "--fpr", "0.05"])
    assert done.code == 0, done.err
    words = done.out.splitlines()
    assert words[-2] == "FPR at most 5 % in all pairs, with 95 % confidence (model-based)"
    threshold = float(words[-1].removeprefix("threshold: "))
    data = faircal.load(faces)
    counted = (data.scores[~data.genuine] >= threshold).mean()
    assert 0 < counted < 0.05
    lines = [text.split() for text in words if text.strip().startswith("global ")]
    assert len(lines) == 3  # measured; the heading of what is promised, and what is
    assert all(f"{100 * counted:.3g}" in line for line in (lines[0], lines[2]))


def test_every_group_has_a_row_with_its_interval(faces, run_here):
    done = run_here(["threshold", faces, "--fpr", "0.2", "--within", "groups", "--json"])
    found = json.loads(done.out)
    data = faircal.load(faces)
    groups = data.groups()
    assert [row["name"] for row in found["rows"]] == ["global", *groups.names]
    assert (found["scope"], found["fpr"], found["confidence"]) == ("groups", 0.2, 0.95)
    assert found["people_known"] is True
    for g, row in enumerate(found["rows"][1:]):
        scores = data.scores[(groups.pair == g) & ~data.genuine]
        assert row["imposters"] == len(scores)
        if found["told_threshold"] is not None:
            assert row["errors"] == (scores >= found["told_threshold"]).sum()
        if row["rate"] is not None:
            assert row["low"] <= row["rate"] <= row["high"]
    refused = [row for row in found["rows"] if row["status"].startswith("refused")]
    assert done.code == bool(refused)
    assert (found["threshold"] is None) == bool(refused)


def test_a_model_brings_scores_and_clusters(faces, model, run_here):
    done = run_here(["threshold", model, faces, "--fpr", "0.1", "--within", "clusters", "--json"])
    assert done.code == 0, done.out + done.err
    found = json.loads(done.out)
    data = faircal.load(faces)
    scores = faircal.load_model(model).decision_scores(data)[~data.genuine]
    whole, *rows = found["rows"]
    assert whole["errors"] == (scores >= found["threshold"]).sum()
    assert 2 <= len(rows) <= 4
    assert all(row["upper"] <= 0.1 for row in rows)
    # A pair counts for the clusters of both its images.
    assert len(scores) < sum(row["imposters"] for row in rows) <= 2 * len(scores)
    assert "people whom the model was not fitted on" in done.err


def test_clusters_can_be_found_in_the_data(faces, run_here):
    done = run_here(["threshold", faces, "--fpr", "0.1", "--within", "clusters", "--clusters", "3"])
    assert done.code == 0, done.out + done.err
    assert "in every cluster" in done.out


def test_what_cannot_be_promised_is_refused_with_exit_1(faces, run_here):
    done = run_here(["threshold", faces, "--fpr", "1e-7"])
    assert done.code == 1
    assert "threshold: " not in done.out
    assert "no threshold promises an FPR of at most 1e-05 %" in done.out
    assert "BELOW RESOLUTION: an FPR of 1e-05 % is lower than these pairs can show" in done.out
    assert "imposter pairs (now " in done.out
    assert "--rule measured promises nothing" in done.out


def test_few_people_cannot_speak_for_all_kinds(tmp_path, run_here):
    rng = np.random.default_rng(0)
    left, right = np.triu_indices(32, 1)
    pairs = zip(left, right, 0.2 * rng.normal(size=len(left)), strict=True)
    lines = ["genuine,score,left_identity,right_identity", "1,0.9,p0,p0"]
    lines += [f"0,{score:.6f},p{a},p{b}" for a, b, score in pairs]
    (tmp_path / "few.csv").write_text("\n".join(lines) + "\n")
    done = run_here(["threshold", str(tmp_path / "few.csv"), "--fpr", "0.05"])
    assert done.code == 0, done.out + done.err
    assert "If more than 9.4 % of people were mistaken far more often" in done.err
    assert "identities are unknown" not in done.err


def test_few_people_are_not_enough_data(world, run_here):
    done = run_here(["threshold", "faces", "--fpr", "0.1"])
    assert done.code == 1
    assert "not enough data" in " ".join(done.out.split())


def unidentified(path, identities=0):
    """Write 2000 pairs, of which the last `identities` say who is in them."""
    rng = np.random.default_rng(0)
    lines = ["genuine,score,id1,id2"]
    for i in range(2000):
        who = (f"p{i}", f"{'pq'[i >= 50]}{i}") if i >= 2000 - identities else ("", "")
        lines.append(f"{int(i < 50)},{0.2 * rng.normal() + 0.5 * (i < 50):.4f},{','.join(who)}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize("rule", ["promised", "measured"])
def test_without_people_there_is_no_promise_that_does_not_say_so(tmp_path, run_here, rule):
    table = unidentified(tmp_path / "scores.csv")
    words = ["threshold", table, "--fpr", "0.01", "--rule", rule]
    done = run_here(words)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert "nobody in the imposter pairs is identified" in line
    assert "left_identity and right_identity" in line
    assert "--assume-independent" in line
    done = run_here([*words, "--assume-independent"])
    assert done.code == 0, done.err
    *_, promise, threshold = done.out.splitlines()
    assert promise.endswith(", assuming that no two pairs share a person")
    assert threshold.startswith("threshold: ")
    found = json.loads(run_here([*words, "--assume-independent", "--json"]).out)
    assert found["assumption"] == "assuming that no two pairs share a person"
    assert found["promise"] == promise
    assert not found["people_known"]
    # Their number would be that of the pairs.
    assert {row["effective_people"] for row in found["rows"]} == {None}
    with pytest.raises(faircal.DataError, match="nobody in the imposter pairs is identified"):
        faircal.find_threshold(table, fpr=0.01, rule=rule)


def test_some_without_an_identity_are_an_assumption_too(tmp_path, run_here):
    table = unidentified(tmp_path / "scores.csv", identities=1560)
    done = run_here(["threshold", table, "--fpr", "0.05"])
    assert done.code == 0, done.err
    assert done.out.splitlines()[-2].endswith(
        ", assuming that those without an identity (20 % of the imposter pairs) are all different"
    )


def test_many_without_an_identity_are_refused_unless_that_is_asked_for(tmp_path, run_here):
    table = unidentified(tmp_path / "scores.csv", identities=1500)
    done = run_here(["threshold", table, "--fpr", "0.05"])
    assert (done.code, done.out) == (2, "")
    assert "without an identity is in 23.1 % of the imposter pairs" in done.err
    done = run_here(["threshold", table, "--fpr", "0.05", "--assume-independent"])
    assert done.code == 0, done.err
    assert "(23.1 % of the imposter pairs) are all different" in done.out.splitlines()[-2]
    done = run_here(["audit", table, "--out", str(tmp_path / "audit")])
    assert done.code == 0, done.err
    assert "in 25 % of the pairs somebody has no identity" in done.out


def test_identities_that_occur_once_are_no_people(tmp_path, run_here):
    table = unidentified(tmp_path / "scores.csv", identities=2000)
    done = run_here(["threshold", table, "--fpr", "0.05"])
    assert (done.code, done.out) == (2, "")
    assert "in one imposter pair alone, as if identities were ids of images" in done.err
    done = run_here(["threshold", table, "--fpr", "0.05", "--assume-independent"])
    assert done.code == 0, done.err
    assert done.out.splitlines()[-2].endswith(", assuming that no two pairs share a person")
    refused = run_here(
        ["threshold", table, "--fpr", "0.05", "--assume-independent", "--rule", "people"]
    )
    assert (refused.code, refused.out) == (2, "")
    assert "--assume-independent" not in refused.err


def test_columns_that_may_name_people_are_said(tmp_path, run_here):
    path = Path(unidentified(tmp_path / "scores.csv"))
    path.write_text(path.read_text().replace("left_identity,right_identity", "probe_id,gallery"))
    rows = [f"{line}g{i}" for i, line in enumerate(path.read_text().splitlines()[1:])]
    path.write_text("genuine,score,probe_id,gallery\n" + "\n".join(rows) + "\n")
    done = run_here(["threshold", str(path), "--fpr", "0.05"])
    assert (done.code, done.out) == (2, "")
    assert "none of which is known to name people" in done.err
    assert "gallery" in done.err
    capitals = path.read_text().replace("probe_id,gallery", "Left_Identity,Right_Identity")
    path.write_text(capitals)
    assert (
        "in 100 % of the imposter pairs" in run_here(["threshold", str(path), "--fpr", "0.05"]).err
    )


def test_ties_are_named(tmp_path, run_here):
    rng = np.random.default_rng(0)
    lines = ["genuine,score,left_identity,right_identity"]
    for i in range(4000):
        one, other = rng.choice(100, 2, replace=False)
        lines.append(
            f"{int(i < 50)},{min(rng.poisson(2), 9) / 10},p{one},p{one if i < 50 else other}"
        )
    (tmp_path / "scores.csv").write_text("\n".join(lines) + "\n")
    done = run_here(["threshold", str(tmp_path / "scores.csv"), "--fpr", "0.1", "--json"])
    result = json.loads(done.out)
    scores = np.array([float(line.split(",")[1]) for line in lines[51:]])
    below = scores[scores < result["threshold"]].max()
    assert result["tied"] == int((scores == below).sum()) > 100
    assert f"{result['tied']:,} imposter pairs are tied at the score just below" in done.err
    # Half a step below the score, as the threshold itself.
    assert result["rows"][0]["own_threshold"] == result["threshold"]


def test_the_assumption_stays_with_the_model(faces, tmp_path, run_here):
    data = faircal.load(faces)
    pairs = {"score": data.scores, "genuine": data.genuine}
    path, out = tmp_path / "scores.csv", tmp_path / "m.faircal"
    pd.DataFrame(pairs).to_csv(path, index=False)
    faircal.Baseline().fit(faircal.load(path)).save(out)
    words = ["threshold", out, path, "--fpr", "0.2", "--assume-independent", "--out", out]
    assert run_here(list(map(str, words))).code == 0
    point = faircal.load_model(out).about_.operating_point
    assert point.assumption == "assuming that no two pairs share a person"
    card = run_here(["card", str(out)]).out
    assert "confidence, assuming that no two pairs share a person" in card
    assert rule(point).endswith("(95 % sure), assuming that no two pairs share a person")


def audited(faces, threshold, attribute, model=None):
    data = faircal.load(faces)
    said = {"score": data.scores} if model is None else {"score": model.decision_scores(data)}
    who = [np.array(data.people.names)[codes] for codes in (data.people.left, data.people.right)]
    return data, faircal.audit(
        genuine=data.genuine,
        groups=data.groups(attribute),
        left_identity=who[0],
        right_identity=who[1],
        threshold=threshold,
        **said,
    )


@pytest.mark.parametrize("within", ["global", "groups", "clusters"])
def test_what_is_measured_is_that_of_an_audit_whatever_is_promised(faces, model, within, run_here):
    words = ["--fpr", "0.1", "--within", within, "--attribute", "gender", "--confidence", "0.9"]
    done = run_here(["threshold", model, faces, *words, "--json"])
    assert done.code == 0, done.err
    found = json.loads(done.out)
    data, audit = audited(faces, found["threshold"], "gender", faircal.load_model(model))
    assert [row["name"] for row in found["measured"]] == ["global", *data.groups("gender").names]
    for row in found["measured"]:
        genuine, imposters = audit.trials[row["name"]]
        assert (row["genuine"], row["imposters"]) == (genuine, imposters)
        for metric in ("fpr", "fnr"):
            assert row[metric] == audit.value(metric, group=row["name"])
            low, high = audit.interval(metric, group=row["name"], level=0.9)
            assert row[f"{metric}_low"] == pytest.approx(low)
            assert row[f"{metric}_high"] == pytest.approx(high)
    assert found["extrapolated"] == found["refused"] == found["needed"] == []
    assert found["below_resolution"] is False


def test_groups_of_few_people_are_not_enough_data(faces, run_here):
    """120 people in eight groups, of whom five in each are in a fold."""
    done = run_here(["threshold", faces, "--fpr", "0.1", "--fold", "1", "--json"])
    rows = {row["name"]: row for row in json.loads(done.out)["measured"]}
    assert rows["global"]["fpr"] is not None
    few = [row for name, row in rows.items() if name != "global"]
    assert len(few) > 1
    assert {row["fpr"] for row in few} == {None}
    assert all("not enough data" in row["fpr_lacking"] for row in few)
    done = run_here(["threshold", faces, "--fpr", "0.1", "--fold", "1"])
    lines = [line for line in done.out.splitlines() if few[0]["name"] in line]
    assert lines[0].count("not enough data") == 2


def test_the_plain_threshold_is_counted_and_promises_nothing(faces, run_here):
    done = run_here(["threshold", faces, "--fpr", "0.05", "--rule", "measured", "--json"])
    assert done.code == 0, done.err
    found = json.loads(done.out)
    data = faircal.load(faces)
    imposters = np.sort(data.scores[~data.genuine])
    errors = (imposters >= found["threshold"]).sum()
    most = int(0.05 * len(imposters))
    assert errors == most == found["rows"][0]["errors"]
    assert found["rule"] == "measured"
    assert found["rows"][0]["upper"] > 0.05
    promised = json.loads(run_here(["threshold", faces, "--fpr", "0.05", "--json"]).out)
    assert promised["threshold"] > found["threshold"]
    done = run_here(["threshold", faces, "--fpr", "0.05", "--rule", "measured"])
    assert "counted in all pairs, not promised" in done.out


def test_the_plain_threshold_is_refused_where_an_audit_would_tell_nothing(faces, run_here):
    done = run_here(["threshold", faces, "--fpr", "1e-6", "--rule", "measured"])
    assert done.code == 1
    assert "not enough data" in done.out
    assert "threshold: " not in done.out


def test_what_cannot_be_resolved_is_told_to_machines(faces, run_here):
    done = run_here(["threshold", faces, "--fpr", "1e-7", "--json"])
    assert done.code == 1
    found = json.loads(done.out)
    assert found["below_resolution"] is True
    assert found["refused"] == ["global"]
    assert 1e-7 < found["resolved"] < 0.05
    (need,) = found["needed"]
    assert need["people"] - need["more_people"] == found["rows"][0]["people"]
    assert need["imposters"] > 1e7
    assert found["threshold"] is None
    assert found["measured"] == []
    assert "BELOW RESOLUTION" in done.err


@pytest.mark.parametrize("same", [True, False])
def test_the_model_is_written_with_the_operating_point(faces, model, same, tmp_path, run_here):
    start = tmp_path / "m.faircal"
    start.write_bytes(Path(model).read_bytes())
    out = start if same else tmp_path / "with.faircal"
    words = ["--fpr", "0.1", "--within", "groups", "--attribute", "gender", "--out", str(out)]
    done = run_here(["threshold", str(start), faces, *words, "--json"])
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["out"] == str(out)
    again, data = faircal.load_model(out), faircal.load(faces)
    point = again.about_.operating_point
    assert (point.threshold, point.on, point.fpr) == (found["threshold"], "score", 0.1)
    assert (point.within, point.confidence, point.promised) == ("groups", 0.95, True)
    assert (point.data, point.data_sha256) == (data.name, data.hash())
    assert list(point.measured) == found["measured"]
    np.testing.assert_array_equal(
        again.predict_proba(data), faircal.load_model(model).predict_proba(data)
    )
    assert {path.name for path in tmp_path.iterdir()} == {start.name, out.name}
    if not same:
        assert start.read_bytes() == Path(model).read_bytes()


def test_a_fold_is_named_in_the_operating_point(faces, model, tmp_path, run_here):
    out = tmp_path / "m.faircal"
    words = ["--fpr", "0.3", "--fold", "1", "--rule", "measured", "--out", str(out)]
    assert run_here(["threshold", model, faces, *words]).code == 0
    point = faircal.load_model(out).about_.operating_point
    assert point.data.endswith(", fold 1")
    assert (point.within, point.promised) == ("", False)


@pytest.mark.parametrize("fold", ["5", "1", None])
def test_people_of_the_fit_are_known_by_their_fingerprint(faces, tmp_path, fold, run_here):
    made, out = tmp_path / "m.faircal", tmp_path / "out.faircal"
    words = ["--method", "baseline", "--leave-out", "5", "--out", str(made)]
    assert run_here(["fit", str(faces), *words]).code == 0
    picked = [] if fold is None else ["--fold", fold]
    words = [str(made), str(faces), *picked, "--fpr", "0.1", "--json", "--out", str(out)]
    done = run_here(["threshold", *words])
    if fold == "5":
        assert json.loads(done.out)["own_people"] is False
        assert "whom the model was not fitted on" not in done.err
        return
    assert (done.code, done.out, out.exists()) == (2, "", False)
    assert done.err.count("\n") == 1
    assert "the model was fitted on these very people" in done.err
    assert "'faircal fit --leave-out FOLD', then --fold FOLD here" in done.err


def test_groups_above_the_rate_are_named(tmp_path, run_here):
    rng = np.random.default_rng(0)
    lines = ["score,genuine,ethnicity"]
    for name, shift in (("A", 0.0), ("B", 0.1)):
        scores = np.clip(np.append(rng.normal(shift, 0.1, 2000), rng.normal(0.6, 0.1, 200)), -1, 1)
        lines += [f"{score},{int(i >= 2000)},{name}" for i, score in enumerate(scores)]
    table = tmp_path / "scores.csv"
    table.write_text("\n".join(lines) + "\n")
    done = run_here(["threshold", str(table), "--fpr", "0.1", "--json", "--assume-independent"])
    assert json.loads(done.out)["exceeded"] == ["B"]
    assert "note: B: measured above 10 %, surely" in done.err
    words = ["threshold", str(table), "--fpr", "0.1", "--within", "groups", "--json"]
    done = run_here([*words, "--assume-independent"])
    assert json.loads(done.out)["exceeded"] == []


def test_a_refused_threshold_is_not_written(faces, model, tmp_path, run_here):
    out = tmp_path / "m.faircal"
    done = run_here(["threshold", model, faces, "--fpr", "1e-7", "--out", str(out)])
    assert done.code == 1
    assert not out.exists()
    assert f"no threshold, so {out} is not written" in done.err


def test_the_threshold_as_a_probability(faces, model, run_here):
    """FairCal ranks by the probability; at another share it is another, the ratio is the same."""
    words = ["threshold", model, faces, "--fpr", "0.1"]
    found = json.loads(run_here([*words, "--prior", "0.001", "--json"]).out)
    at, told = found["threshold"], found["at_threshold"]
    share = faircal.load_model(model).diagnostics_.figures["calibrated_at"]
    ratio = np.log(at / (1 - at)) - np.log(share / (1 - share))
    assert told["probability"] == at
    assert told["log_likelihood_ratio"] == pytest.approx(ratio)
    odds = np.exp(ratio) * 0.001 / 0.999
    assert told["at_prior"] == pytest.approx(odds / (1 + odds))
    plain = json.loads(run_here([*words, "--json"]).out)["at_threshold"]
    assert plain["log_likelihood_ratio"] == told["log_likelihood_ratio"]
    assert plain["at_prior"] is None
    assert "at a share of 0.001 (--prior)" in run_here([*words, "--prior", "0.001"]).out


def test_a_score_through_its_calibrator(faces, tmp_path, run_here):
    path = tmp_path / "b.faircal"
    model = faircal.Baseline().fit(faircal.load(faces))
    model.save(path)
    words = ["threshold", str(path), faces, "--fpr", "0.1", "--json"]
    found = json.loads(run_here(words).out)
    (said,) = model.calibrator_.predict(np.array([found["threshold"]]))
    told = found["at_threshold"]
    assert told["probability"] == pytest.approx(said, rel=1e-9)
    share = model.diagnostics_.figures["calibrated_at"]
    odds = said / (1 - said) * (1 - share) / share
    assert told["log_likelihood_ratio"] == pytest.approx(np.log(odds))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["faces"], "Missing option '--fpr'"),
        (["faces", "--fpr", "2"], "fpr: expected a rate between 0 and 0.5, found 2"),
        (["faces", "--fpr", "0.1", "--confidence", "95"], "confidence: expected between"),
        (["a", "b", "faces", "--fpr", "0.1"], "expected [MODEL] DATA, found a b before DATA"),
        (["faces", "--fpr", "0.1", "--attribute", "gendr"], "did you mean gender"),
        (["faces", "--fpr", "0.1", "--rule", "measured", "--within", "groups"], "is of all pairs"),
        (["faces", "--fpr", "0.1", "--out", "m.faircal"], "--out m.faircal: expected a MODEL"),
        (["faces", "--fpr", "0.1", "--prior", "0.1"], "--prior 0.1: expected a MODEL"),
        (["faircal.faircal", "faces", "--fpr", "0.1", "--prior", "1"], "--prior: expected a share"),
        (["faircal.faircal", "faces", "--fpr", "0.1", "--out", "faces"], "faces is a folder"),
        (
            ["baseline.faircal", "scores.csv", "--fpr", "0.1", "--out", "scores.csv"],
            "is read by this command",
        ),
        (["faces", "--fpr", "0.1", "--clusters", "3"], "is for --within clusters"),
        (["faces", "--fpr", "0.1", "--within", "clusters"], "give --clusters"),
        (
            [
                *("scores.csv", "--fpr", "0.1", "--assume-independent"),
                *("--within", "clusters", "--clusters", "2"),
            ],
            "has no embeddings to cluster",
        ),
        (["plain", "--fpr", "0.1", "--within", "groups"], "plain: no groups: "),
        (["two", "--fpr", "0.1"], "choose one with --feature"),
        (["none", "--fpr", "0.1"], "none"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(world, run_here, words, said):
    done = run_here(["threshold", *words])
    assert done.code == 2, done.out
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert done.out == ""
