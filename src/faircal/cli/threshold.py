"""``faircal threshold``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli import options
from faircal.cli.help import Command, Part, argument
from faircal.cli.printing import (
    NONE,
    notes,
    number,
    percent,
    print_json,
    print_table,
    printable,
    progress_bars,
)

if TYPE_CHECKING:
    from faircal.data import PairFiles
    from faircal.evaluation.audit.rates import OperatingRates
    from faircal.evaluation.thresholds.finding import ThresholdResult
    from faircal.evaluation.thresholds.guarantee import GuaranteeRow

#: Exit code where no threshold can be promised.
REFUSED = 1
_SCOPES = {"global": "all pairs", "groups": "every group", "clusters": "every cluster"}


@click.command(
    cls=Command,
    examples={
        "At most 1 in 100 strangers, kept in the model file": "faircal threshold faces.faircal "
        "faces/ --fold 5 --fpr 0.01 --out faces.faircal",
        "In every group at once": "faircal threshold faces.faircal new-people/ --fpr 0.01 "
        "--within groups --attribute ethnicity --out faces.faircal",
        "In every region, without attributes": "faircal threshold faces.faircal new-people/ "
        "--fpr 0.01 --within clusters",
        "In every group of a public cohort, where nobody's own group is known": "faircal threshold "
        "faces.faircal gate/ --fpr 0.01 --imposters-from cohort/ --attribute ethnicity",
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
@options.reads_data
@Part.PROMISE.option(
    "--fpr",
    type=float,
    required=True,
    metavar="SHARE",
    help="The false-positive rate not to exceed, such as 0.001.",
)
@Part.PROMISE.option(
    "--confidence",
    type=float,
    default=0.95,
    metavar="SHARE",
    help="Probability that the promise holds, and that intervals do.",
)
@Part.PROMISE.option(
    "--within",
    type=click.Choice(["global", "groups", "clusters"]),
    show_default="global; groups with --imposters-from",
    help="Of what it is promised: all pairs, every group, or every cluster of images.",
)
@options.imposters_from
@Part.PROMISE.option(
    "--rule",
    type=click.Choice(["promised", "people", "measured"]),
    default="promised",
    help="Which FPR: what is promised of people to come together (model-based), what is promised of"
    " each but a few against half of those in DATA (assumes no law), or what is counted in DATA.",
)
@Part.PROMISE.option(
    "--clusters",
    type=click.IntRange(1),
    show_default="those of MODEL",
    help="For --within clusters: number of clusters (K) to find in DATA.",
)
@Part.PROMISE.option(
    "--assume-independent",
    is_flag=True,
    help="Where nobody is identified: take pairs as sharing no people, and say so.",
)
@options.attribute
@Part.PRIOR.option(
    "--prior",
    type=float,
    metavar="SHARE",
    show_default="that of the fit alone",
    help="Tell, too, what the threshold is as a probability at this share of genuine pairs.",
)
@Part.OUTPUT.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="nothing is written",
    help="Write MODEL with this operating point inside; may be MODEL itself.",
)
@options.feature
@options.fold
@options.seed
@options.as_json
def command(
    model: tuple[Path, ...], source: PairFiles, attribute: str | None, as_json: bool, **how: Any
) -> int:
    """Find a threshold with a guaranteed false-positive rate.

    Reads the labelled pairs of DATA, scored by MODEL or by themselves, and finds the lowest
    threshold at which the FPR is at most --fpr, with --confidence. The promise holds for people
    like those of DATA and knows that pairs share people. Without identities it can't, and DATA is
    refused; --assume-independent says that no two pairs share a person. People whom MODEL was
    fitted on are refused, too: on them the threshold would be too low.

    With --imposters-from genuine pairs are those of DATA, and imposters are strangers of the same
    group in a cohort. The promise is for every group of the cohort, though nobody in DATA has one,
    and holds as far as both were photographed alike. Strangers of DATA tell whether they were:
    where the promise is surely not kept, it is refused.

    With --within groups or clusters the promise holds in all of them at once; clusters need no
    attribute, and a pair belongs to those of both its images. Clusters of too few people are put to
    their nearest.

    Prints the threshold, and what is measured at it: FPR and FNR of all pairs and of every group.
    With --out the operating point is kept in the model file, where 'faircal score --add decision',
    'faircal export' and 'faircal serve' find it.

    Where the rate is lower than what can be counted, the tail of the imposters' scores is
    extrapolated. Where that can't be done either there is no threshold, the reason is told, and
    the exit code is 1. Both are model-based: how much people vary follows a law, estimated from
    those of DATA. --rule people assumes none and is about people, not pairs: of people to come, at
    most the share 1 - CONFIDENCE has an FPR above --fpr against the reference people, who are half
    of those in DATA. --rule measured takes the threshold at which the counted FPR of all pairs is
    --fpr, as papers do, and promises nothing. 'faircal plan' says how many people a rate takes.
    """
    from faircal._base.errors import ParameterError
    from faircal.evaluation.thresholds.finding import find_threshold

    if len(model) > 1:
        extra = " ".join(map(str, model))
        raise ParameterError(f"expected [MODEL] DATA, found {extra} before DATA; give one model")
    with progress_bars() as update:
        result = find_threshold(
            source,
            model=model[0] if model else None,
            attribute=attribute,
            **how,
            progress=update,
        )
    notes(result.notes)
    if as_json:
        notes(result.resolution())
        promise = None if result.chosen.refused else _conclusion(result)[-2]
        print_json({**result.as_json(), "promise": promise})
    else:
        _show(result, attribute or result.data.default_attribute or "pairs")
    return REFUSED if result.chosen.refused else 0


def _show(result: ThresholdResult, attribute: str) -> None:
    """Print the tables, then the threshold or why there is none; `attribute` makes the groups."""
    from faircal.report.wording import exact

    chosen = result.chosen
    if result.rates:
        at = exact(chosen.told_threshold)
        print_table(
            [
                attribute,
                "people",
                "imposters",
                "FPR (interval)",
                "genuine",
                "FNR (interval)",
                "TPR",
            ],
            [_rates(row) for row in result.rates],
            title=f"{result.data.name}: measured at threshold {at}, percent",
        )
    what = {
        "promised": "promised, model-based",
        "people": "of each person but a few",
        "measured": "counted, not promised",
    }[chosen.rule]
    confidence = f"{100 * chosen.confidence:g} % confidence"
    columns = ("effective people", "imposters", "errors", "FPR", "at most", "own threshold", "is")
    print_table(
        [chosen.scope, *columns],
        [_promise(row, result.people_known) for row in chosen.rows],
        title=f"FPR of {100 * chosen.fpr:g} %, {what}, at {confidence}",
    )
    for words in [*chosen.reasons(), *result.resolution(), *_meaning(result), *_conclusion(result)]:
        click.echo(printable(words))
    if result.written is not None:
        click.echo(f"written: {result.written}")


def _rates(row: OperatingRates) -> list[str]:
    from faircal.metrics.intervals.sufficient_data import NOT_ENOUGH

    def rate(value: float, low: float, high: float) -> str:
        if math.isnan(value):
            return NOT_ENOUGH
        return f"{percent(value, how='.3g')} ({percent(low, high, how='.3g')})"

    return [
        row.name,
        NONE if row.people is None else str(row.people),
        str(row.imposters),
        rate(row.fpr, row.fpr_low, row.fpr_high),
        str(row.genuine),
        rate(row.fnr, row.fnr_low, row.fnr_high),
        percent(1 - row.fnr, how=".3g"),
    ]


def _promise(row: GuaranteeRow, people_known: bool) -> list[str]:
    from faircal.metrics.intervals.sufficient_data import NOT_ENOUGH

    return [
        row.name,
        f"{row.effective_people:.0f}" if people_known else NONE,
        str(row.imposters),
        NONE if math.isnan(row.rate) else str(row.errors),
        NOT_ENOUGH if NOT_ENOUGH in row.status else percent(row.rate, how=".3g"),
        percent(row.upper, how=".3g"),
        _rounded_up(row.own_threshold),
        row.status.partition(":")[0],
    ]


def _meaning(result: ThresholdResult) -> list[str]:
    """Say what the threshold is as a likelihood ratio and as a probability."""
    meaning = result.meaning
    if meaning is None:
        return []
    share = f"the fit's share of genuine pairs ({meaning.calibrated_at:.3g})"
    ratio, likely = meaning.log_likelihood_ratio, f"{meaning.probability:.4g}"
    least = "" if not meaning.at_bound else "at least " if ratio > 0 else "at most "
    at = f"at the threshold: log-likelihood ratio {least}{ratio:.3f}, "
    at += f"probability {likely} at {share}"
    if meaning.prior is None:
        return [at]
    return [
        at,
        f"probability {least}{meaning.at_prior:.4g} at a share of {meaning.prior:g} (--prior)",
    ]


def _conclusion(result: ThresholdResult) -> list[str]:
    """Say the threshold, and what holds at it; or why there is none."""
    from faircal.metrics.intervals.sufficient_data import NOT_ENOUGH

    chosen, source = result.chosen, result.imposters_from
    confidence, rate = f"{100 * chosen.confidence:g} %", f"{100 * chosen.fpr:g} %"
    where = _SCOPES[chosen.scope]
    names = ", ".join(row.name for row in chosen.refused)
    assumption = f", {result.assumption}" if result.assumption else ""
    if chosen.rule == "measured":
        if names:
            return [
                f"no threshold has a counted FPR of {rate} that can be told: refused for {names}"
            ]
        at_most = f"{100 * chosen.rows[0].upper:.3g} %{assumption}"
        counted = (
            f"FPR of at most {rate} counted in all pairs, not promised: with {confidence} "
            "confidence"
        )
        return [f"{counted} it is at most {at_most}", f"threshold: {chosen.threshold!r}"]
    if not names:
        how = "extrapolated, model-based" if chosen.extrapolated else "model-based"
        promise = f"FPR at most {rate} in {where}, with {confidence} confidence ({how}){assumption}"
        if chosen.rule == "people":
            promise = (
                f"in {where} at least {confidence} of people have an FPR of at most {rate} against "
                "the reference people, half of those here, with "
                f"{confidence} confidence{assumption}"
            )
        if source is not None:
            name = source.sources.cohort.name
            promise += f", for people photographed as those of {name} are"
            return [source.comparison.words(), promise, f"threshold: {chosen.threshold!r}"]
        return [promise, f"threshold: {chosen.threshold!r}"]
    words = [f"no threshold promises an FPR of at most {rate} in {where}: refused for {names}"]
    if source is not None and source.comparison.unlike:
        return [source.comparison.words(), *words]
    if not math.isnan(chosen.told_threshold):
        words.append(f"for the others alone: {chosen.told_threshold!r}")
    if not any(NOT_ENOUGH in row.status for row in chosen.refused):
        words.append(f"--rule measured promises nothing and takes a counted FPR of {rate}")
    return words


def _rounded_up(value: float) -> str:
    """Return a threshold with five digits, rounded up: a higher one is as safe."""
    return number(math.ceil(value * 1e5) / 1e5 if value == value else value, ".5f")
