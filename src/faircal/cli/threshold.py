"""``faircal threshold``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from faircal.cli.help import Command, Part, argument, option
from faircal.cli.options import (
    attribute_option,
    calibrated_at_option,
    check_file,
    feature_option,
    fold_option,
    json_option,
    note,
    print_json,
    seed_option,
    working,
)
from faircal.cli.source import Source, check_one_feature, fold_named, reads_data

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from faircal.cli.threshold_found import Found
    from faircal.data import Dataset
    from faircal.evaluation.audit import ScoredPairs
    from faircal.evaluation.thresholds.guarantee import Guarantee, Rule, Scope
    from faircal.evaluation.thresholds.strangers import ImposterSet
    from faircal.methods import Method

#: A share of people that may be taken for others far more often, and be missing among few.
_KIND = 0.05
#: Exit code where no threshold can be promised.
REFUSED = 1


@click.command(
    cls=Command,
    examples={
        "At most 1 in 100 strangers, kept in the model file": "faircal threshold faces.faircal "
        "faces/ --fold 5 --fpr 0.01 --out faces.faircal",
        "In every group at once": "faircal threshold faces.faircal new-people/ --fpr 0.01 "
        "--within groups --attribute ethnicity --out faces.faircal",
        "In every region, without attributes": "faircal threshold faces.faircal new-people/ "
        "--fpr 0.01 --within clusters",
        "Of ready-made scores, more surely": "faircal threshold scores.csv --fpr 0.001 "
        "--confidence 0.99",
        "Where the counted rate is met, as papers do": "faircal threshold faces/ --fpr 0.01 "
        "--rule measured",
    },
    exits={
        0: "A threshold was found.",
        1: "No threshold can be promised, and the reason is told.",
    },
    see=("fit", "plan", "score", "serve", "how-to/threshold"),
)
@argument(
    "model",
    nargs=-1,
    type=click.Path(path_type=Path),
    metavar="[MODEL]",
    help="Model file that scores the pairs. Without it the scores are DATA's own.",
)
@reads_data
@option(
    "--fpr",
    part=Part.PROMISE,
    type=float,
    required=True,
    metavar="SHARE",
    help="The false-positive rate not to exceed, such as 0.001.",
)
@option(
    "--confidence",
    part=Part.PROMISE,
    type=float,
    default=0.95,
    metavar="SHARE",
    help="Probability that the promise holds, and that intervals do.",
)
@option(
    "--within",
    part=Part.PROMISE,
    type=click.Choice(["global", "groups", "clusters"]),
    default="global",
    help="Of what it is promised: all pairs, every group, or every cluster of images.",
)
@option(
    "--rule",
    part=Part.PROMISE,
    type=click.Choice(["promised", "measured"]),
    default="promised",
    help="Which FPR: what is promised of people to come, or what is counted in DATA.",
)
@option(
    "--clusters",
    part=Part.PROMISE,
    type=click.IntRange(1),
    show_default="those of MODEL",
    help="For --within clusters: number of clusters (K) to find in DATA.",
)
@attribute_option
@option(
    "--prior",
    part=Part.PRIOR,
    type=float,
    metavar="SHARE",
    show_default="that of the fit alone",
    help="Tell, too, what the threshold is as a probability at this share of genuine pairs.",
)
@calibrated_at_option
@option(
    "--out",
    part=Part.OUTPUT,
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="nothing is written",
    help="Write MODEL with this operating point inside; may be MODEL itself.",
)
@feature_option
@fold_option
@seed_option
@json_option
def command(
    model: tuple[Path, ...],
    source: Source,
    fpr: float,
    rule: Rule,
    confidence: float,
    within: Scope,
    attribute: str | None,
    clusters: int | None,
    prior: float | None,
    calibrated_at: float | None,
    out: Path | None,
    feature: str | None,
    fold: str | None,
    seed: int,
    as_json: bool,
) -> int:
    """Find a threshold with a guaranteed false-positive rate.

    Reads the labelled pairs of DATA, scored by MODEL or by themselves, and finds the lowest
    threshold at which the FPR is at most --fpr, with --confidence. The promise holds for people
    like those of DATA and knows that pairs share people; without identities it can't, and that is
    said. Choose the threshold on people whom MODEL was not fitted on, else it is too low.

    With --within groups or clusters the promise holds in all of them at once; clusters need no
    attribute, and a pair belongs to those of both its images. Clusters of too few people are put to
    their nearest.

    Prints the threshold, and what is measured at it: FPR and FNR of all pairs and of every group.
    With --out the operating point is kept in the model file, where 'faircal score --add decision',
    'faircal export' and 'faircal serve' find it.

    Where the rate is lower than what can be counted, the tail of the imposters' scores is
    extrapolated. Where that can't be done either there is no threshold, the reason is told, and
    the exit code is 1. --rule measured takes the threshold at which the counted FPR of all pairs is
    --fpr, as papers do, and promises nothing. 'faircal plan' says how many people a rate takes.
    """
    from faircal.cli.threshold_found import find_out, fitted_on
    from faircal.evaluation.audit import ScoredPairs
    from faircal.evaluation.thresholds.guarantee import counted, guarantee, imposters
    from faircal.methods import load_method

    _check(model, rule, within, clusters)
    _check_model(model, source, prior, calibrated_at, out)
    fitted = load_method(model[0]) if model else None
    data = source.load([feature] if feature else (), measuring=fitted is None)
    check_one_feature(data.features, source.path)
    notes: list[str] = []
    own = fitted is not None and fitted_on(fitted, data, fold)
    if fold is not None:
        notes += data.notes
        data = data.split(fold_named(data, fold))[1]
    output = None if fitted is None else fitted.apply(data)
    pairs = ScoredPairs.of_data(data, output, attribute or data.default_attribute)
    scores = pairs.ranked
    if scores is None:  # pragma: no cover  (a dataset has scores)
        raise click.UsageError("DATA has no scores")
    everybody = imposters(scores, pairs.genuine, pairs.people)
    with working("counting"):
        if rule == "measured":
            chosen = counted(everybody, fpr=fpr, confidence=confidence)
        else:
            sets = _sets(within, everybody, pairs, data, fitted, clusters, seed, fpr, confidence)
            top = data.score_range[1]
            chosen = guarantee(
                everybody,
                sets,
                fpr=fpr,
                confidence=confidence,
                scope=within,
                upper=top if scores.max() <= top else math.inf,
            )
        chosen = chosen.apart_from(scores)
        found = find_out(chosen, data, pairs, fitted, prior, calibrated_at, own)
    for text in notes + _notes(found, fitted, clusters):
        note(f"note: {text}")
    written = _write(found, fitted, out, fold)
    if as_json:
        for text in found.resolution():
            note(f"note: {text}")
        print_json({**found.as_json(), "out": written})
    else:
        from faircal.cli.threshold_table import show

        show(found, attribute or data.default_attribute or "pairs")
        if written is not None:
            click.echo(f"written: {written}")
    return REFUSED if chosen.refused else 0


def _check(model: tuple[Path, ...], rule: str, within: str, clusters: int | None) -> None:
    from faircal._base.errors import ParameterError

    if len(model) > 1:
        extra = " ".join(map(str, model))
        raise ParameterError(f"expected [MODEL] DATA, found {extra} before DATA; give one model")
    if clusters is not None and within != "clusters":
        raise ParameterError(f"--clusters {clusters}: is for --within clusters; give both")
    if rule == "measured" and within != "global":
        raise ParameterError(f"--rule measured: is of all pairs; leave --within {within} out")


def _check_model(
    model: tuple[Path, ...],
    source: Source,
    prior: float | None,
    calibrated_at: float | None,
    out: Path | None,
) -> None:
    """Raise where what needs a model has none, or what is to be written can't be."""
    from faircal._base.errors import ParameterError
    from faircal.calibrators.prior import check_share

    for name, value in (("--prior", prior), ("--calibrated-at", calibrated_at), ("--out", out)):
        if value is not None and not model:
            raise ParameterError(f"{name} {value}: expected a MODEL before DATA; give one")
    if prior is not None:
        check_share(prior, "--prior")
    if out is not None:
        check_file(out)
        source.check_kept(out)


def _write(found: Found, model: Method | None, out: Path | None, fold: str | None) -> str | None:
    """Write the model with the operating point, unless it is refused; return where to."""
    from dataclasses import replace

    if model is None or out is None:
        return None
    if found.chosen.refused:
        note(f"note: no threshold, so {out} is not written")
        return None
    model.about_ = replace(model.about_, operating_point=found.point(fold))
    model.save(out)
    return str(out)


def _sets(
    within: str,
    everybody: ImposterSet,
    pairs: ScoredPairs,
    data: Dataset,
    model: Method | None,
    clusters: int | None,
    seed: int,
    fpr: float,
    confidence: float,
) -> dict[str, ImposterSet] | None:
    from faircal._base.errors import DataError
    from faircal.evaluation.thresholds.guarantee import cluster_sets, group_sets

    if within == "global":
        return None
    if within == "groups":
        if pairs.groups is None:
            raise DataError(f"{data.where}: no groups: {data.why_no_groups()}")
        return group_sets(everybody, pairs.groups, pairs.genuine)
    centers, code = _clusters(data, model, clusters, seed)
    misses = ~pairs.genuine
    left, right = code[data.pairs.left[misses]], code[data.pairs.right[misses]]
    return cluster_sets(everybody, left, right, centers, fpr=fpr, confidence=confidence)


def _clusters(
    data: Dataset, model: Method | None, clusters: int | None, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return the centres, and the cluster of each image; −1 of those that are in no pair."""
    import numpy as np

    from faircal._base.errors import DataError, ParameterError
    from faircal.compute.clustering import kmeans
    from faircal.methods.clusters import ClusterMethod

    code = np.full(len(data.images), -1, np.int32)
    if clusters is None:
        if not isinstance(model, ClusterMethod):
            raise ParameterError(
                "--within clusters: expected a MODEL that has clusters, or their number;"
                " give --clusters"
            )
        images, found, _ = model.image_clusters(data)
        code[images] = found
        return model.cluster_centers_, code
    if data.embeddings is None:
        raise DataError(f"{data.where}: has no embeddings to cluster; use --within groups")
    images = data.used_images()
    vectors, engine = data.embeddings.rows(images), data.embeddings.engine
    made = kmeans(vectors, clusters, random_state=seed, engine=engine)
    code[images] = made.assign(vectors, engine)
    return made.centers, code


def _notes(found: Found, model: Method | None, clusters: int | None) -> list[str]:
    """Say what the promise rests on, and where it does not reach."""
    chosen, notes = found.chosen, []
    if not found.people_known:
        notes.append(
            "identities are unknown: pairs are taken as independent, and the threshold is too low"
            " where they share people; add identity (left_identity, right_identity)"
        )
    if model is not None and found.own_people is not False:
        notes.append(_of_people(found))
    if found.exceeded:
        notes.append(
            f"{', '.join(found.exceeded)}: measured above {100 * chosen.fpr:g} %, surely. A rate of"
            " all pairs is not one of every group; --within groups finds one for every group"
        )
    if clusters is not None:
        notes.append("clusters are those of this data: of other people's images they may differ")
    return notes + _unseen(chosen)


def _of_people(found: Found) -> str:
    if found.own_people:
        return (
            "WARNING: the model was fitted on these very people, on whom its scores are better than"
            " on others: the threshold is too low. Choose it on people left out:"
            " 'faircal fit --leave-out FOLD', then --fold FOLD here"
        )
    what = "the promise holds" if found.chosen.rule == "promised" else "rates hold"
    return (
        f"{what} for people whom the model was not fitted on; on those it was fitted on, scores"
        " are better than they will be"
    )


def _unseen(chosen: Guarantee) -> list[str]:
    """Say where a kind of people may be missing from the data altogether."""
    told = [row for row in chosen.rows if row not in chosen.refused]
    fewest = min((row.effective_people for row in told), default=math.inf)
    unseen = (1 - _KIND) ** fewest
    if chosen.rule == "measured" or unseen <= 1 - chosen.confidence:
        return []
    kind = f"one person in {1 / _KIND:.0f} is of a kind that is mistaken more often"
    chance = f"the chance is {100 * unseen:.0f} % that none of them is among {fewest:.0f} people"
    return [f"the promise is for people like these: if {kind}, {chance}"]
