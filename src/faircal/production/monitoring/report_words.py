"""What monitoring comes to, in words: verdicts, what to do, what is promised, a glossary."""

from __future__ import annotations

from faircal.production.monitoring import Finding, Verdict

QUIET, DUE, WAIT = "quiet", "recalibration is due", "not enough data"
#: Classes of the page's style.
STATES = {QUIET: "quiet", DUE: "due", WAIT: "wait"}

GLOSSARY = {
    "Pair": "Two face images that were compared.",
    "Score": "What the model ranks pairs by; higher is more alike.",
    "Probability": "How likely the two images are of one person, as the model says.",
    "Calibration": "Making probabilities mean what they say: of pairs with 80 %, eight in ten are "
    "of one person. It was done on the calibration population.",
    "Cluster": "A region of embedding space: images that look alike to the network. The model may "
    "treat each in its own way.",
    "Occupancy": "The share of images that lie in each cluster: who is seen, without asking.",
    "Outside": "An image further from every cluster than nearly all images of calibration: a blur, "
    "a thing that is no face, or a kind of face that the model has not been calibrated for.",
    "Feedback": "Pairs of which it became known later whether they are of one person.",
    "Tolerance": "How far use may be from calibration before it matters. Less than that is not an "
    "alarm, however surely it is there.",
    "p-value": "The chance of finding as much as was found if use were just at the tolerance.",
    "Level": "The part of the false-alarm rate that this look may use up; an alarm is a p-value of "
    "at most the level.",
    "Recalibration": "Fitting the model again, on pairs of the people it is used on now.",
}

_DO = {
    "clusters": "other people, or other images of them, come than the model was calibrated for: "
    "collect labelled pairs of them and fit again ('faircal fit')",
    "outside": "many images are of a kind that was not in calibration: look at cameras, lighting "
    "and face detection first; where the images are sound, fit again with such people among them",
    "scores": "scores are spread in another way: where only the share of genuine pairs changed, "
    "'faircal score --prior estimate' is enough; where strangers score higher than they did, "
    "find a new threshold ('faircal threshold') and fit again",
    "calibration": "probabilities do not mean what they say any more: fit again with the labelled "
    "feedback ('faircal fit'), or, where only the share of genuine pairs changed, give it with "
    "--prior",
}


def verdict_of(finding: Finding) -> str:
    """Say what a finding comes to, in a word or two."""
    if finding.alarm:
        return "ALARM"
    return QUIET if finding.enough else WAIT


def headline(verdict: Verdict) -> str:
    """Say what all findings come to."""
    if verdict.due:
        return DUE
    return QUIET if any(finding.enough for finding in verdict.findings) else WAIT


def advice(verdict: Verdict) -> list[str]:
    """Say what to do; a sentence for each alarm.

    >>> advice(Verdict(False, (), 0, 0, ""))
    []
    """
    said = [
        f"{finding.title}: {_DO[finding.name]}." for finding in verdict.findings if finding.alarm
    ]
    if said:
        said.append(
            "An alarm stays until the model was fitted again; then begin a new --state, since what "
            "was counted was of the old model."
        )
    return said


def promise(false_alarms: float) -> str:
    """Say what is promised about false alarms."""
    return (
        f"While pairs in use stay as they were in calibration, or nearer than the tolerance, all "
        f"tests together raise an alarm in at most {100 * false_alarms:g} % of streams, however "
        "long they are and however often one looks."
    )
