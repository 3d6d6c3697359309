"""``faircal threshold``."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from faircal.cli.options import (
    feature_option,
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

    from faircal.auditing import Scored
    from faircal.data import Dataset
    from faircal.methods import Method
    from faircal.uncertainty.guarantee import Guarantee, Scope
    from faircal.uncertainty.strangers import Strangers

#: A share of people that may be taken for others far more often, and be missing among few.
_KIND = 0.05
#: Exit code where no threshold can be promised.
REFUSED = 1


@click.command(
    epilog="Example: faircal threshold faces.faircal new-people/ --fpr 1e-3 --within groups "
    "--attribute ethnicity"
)
@click.argument("model", nargs=-1, type=click.Path(path_type=Path), metavar="[MODEL]")
@reads_data
@click.option("--fpr", type=float, required=True, help="The false-positive rate not to exceed.")
@click.option(
    "--confidence",
    type=float,
    default=0.95,
    show_default=True,
    help="Probability that the promise holds.",
)
@click.option(
    "--within",
    type=click.Choice(["global", "groups", "clusters"]),
    default="global",
    show_default=True,
    help="Of what it is promised: all pairs, every group, or every cluster of images.",
)
@click.option(
    "--attribute",
    default=None,
    help="Attribute that makes the groups; a+b crosses  [default: all crossed]",
)
@click.option(
    "--clusters",
    type=click.IntRange(1),
    default=None,
    help="Clusters (K) to find in DATA  [default: those of MODEL]",
)
@feature_option
@click.option("--fold", default=None, help="Use the pairs of this fold only.")
@seed_option
@json_option
def command(
    model: tuple[Path, ...],
    source: Source,
    fpr: float,
    confidence: float,
    within: Scope,
    attribute: str | None,
    clusters: int | None,
    feature: str | None,
    fold: str | None,
    seed: int,
    as_json: bool,
) -> int:
    """Find the lowest threshold at which the FPR is at most --fpr, with --confidence.

    The scores are those of MODEL, or DATA's own. The promise holds for people like those of DATA
    and knows that pairs share people; without identities it can't, and that is said. With --within
    groups or clusters it holds in all of them at once; clusters need no attribute, and a pair
    belongs to those of both its images. Clusters of too few people are put to their nearest.

    Where the rate is lower than what can be counted, the tail of the imposters' scores is
    extrapolated. Where that can't be done either there is no threshold, the reason is told, and
    the exit code is 1.

    Choose it on people whom MODEL was not fitted on, else it is too low.
    """
    from faircal.auditing import Scored
    from faircal.methods import load_method
    from faircal.uncertainty.guarantee import guarantee, imposters

    _check(model, within, attribute, clusters)
    fitted = load_method(model[0]) if model else None
    data = source.load([feature] if feature else (), measuring=fitted is None)
    check_one_feature(data.features, source.path)
    notes: list[str] = []
    if fold is not None:
        notes += data.notes
        data = data.split(fold_named(data, fold))[1]
    output = None if fitted is None else fitted.apply(data)
    pairs = Scored.of_data(data, output, attribute or data.default_attribute)
    scores = pairs.ranked
    if scores is None:  # pragma: no cover  (a dataset has scores)
        raise click.UsageError("DATA has no scores")
    everybody = imposters(scores, pairs.genuine, pairs.people)
    with working("counting"):
        sets = _sets(within, everybody, pairs, data, fitted, clusters, seed, fpr, confidence)
        top = data.score_range[1]
        found = guarantee(
            everybody,
            sets,
            fpr=fpr,
            confidence=confidence,
            scope=within,
            upper=top if scores.max() <= top else math.inf,
        )
    for text in notes + _notes(found, pairs, fitted, clusters):
        note(f"note: {text}")
    if as_json:
        rows = [row._asdict() for row in found.rows]
        print_json({**asdict(found), "people_known": pairs.people is not None, "rows": rows})
    else:
        from faircal.cli.threshold_table import show

        show(found, data.name)
    return REFUSED if found.refused else 0


def _check(
    model: tuple[Path, ...], within: str, attribute: str | None, clusters: int | None
) -> None:
    from faircal.errors import ParameterError

    if len(model) > 1:
        extra = " ".join(map(str, model))
        raise ParameterError(f"expected [MODEL] DATA, found {extra} before DATA; give one model")
    if attribute is not None and within != "groups":
        raise ParameterError(f"--attribute {attribute}: is for --within groups; give both")
    if clusters is not None and within != "clusters":
        raise ParameterError(f"--clusters {clusters}: is for --within clusters; give both")


def _sets(
    within: str,
    everybody: Strangers,
    pairs: Scored,
    data: Dataset,
    model: Method | None,
    clusters: int | None,
    seed: int,
    fpr: float,
    confidence: float,
) -> dict[str, Strangers] | None:
    from faircal.errors import DataError
    from faircal.uncertainty.guarantee import cluster_sets, group_sets

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

    from faircal.clustering import kmeans
    from faircal.errors import DataError, ParameterError
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


def _notes(
    found: Guarantee, pairs: Scored, model: Method | None, clusters: int | None
) -> list[str]:
    """Say what the promise rests on, and where it does not reach."""
    notes = []
    if pairs.people is None:
        notes.append(
            "identities are unknown: pairs are taken as independent, and the threshold is too low"
            " where they share people; add identity (left_identity, right_identity)"
        )
    if model is not None:
        notes.append(
            "the promise holds for people whom the model was not fitted on; on those it was fitted"
            " on, scores are better than they will be"
        )
    if clusters is not None:
        notes.append("clusters are those of this data: of other people's images they may differ")
    told = [row for row in found.rows if row not in found.refused]
    fewest = min((row.effective_people for row in told), default=math.inf)
    unseen = (1 - _KIND) ** fewest
    if unseen > 1 - found.confidence:
        notes.append(
            f"the promise is for people like these: of a kind that one in {1 / _KIND:.0f} is of,"
            f" nobody is among {fewest:.0f} people with a probability of {100 * unseen:.0f} %"
        )
    lowest = found.resolved
    if found.extrapolated or found.refused:
        best = "" if math.isnan(lowest) else f" (down to {lowest:.2g})"
        notes.append(f"an FPR of {found.fpr:g} is below what can be counted in every set{best}")
    return notes
