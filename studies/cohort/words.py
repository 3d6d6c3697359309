"""The prose of the page.

``{set|imposters|cohort|people|method|measure}`` stands for a number, with Δ before it for its
difference to Baseline; a measure ``fpr of G`` or ``ks of G`` is that of a group.
"""

FRONT = """# Study: a cohort

Fair without anybody's attributes where imposters were drawn at random: `cohort`
([CohortFairCal](decisions/0040-cohort.md)) beside every method that can be had without training,
on two real networks and three simulated populations. Written by `python -m studies cohort` from
`studies/cohort.jsonl`; no number here is typed by hand.

## What came out

{CAME_OUT}

## What is measured

- **Sets.** `lfw-mobilefacenet` (Labeled Faces in the Wild, 128-d, eight groups of gender ×
  ethnicity) and `lfw-dlib` (the same pictures, dlib's network, strongly biased, six groups): real.
  `small`, `rfw-like`, `bfw-like`: simulated (640, 12,000 and 800 people). Five folds that share no
  person; each is tested once, on its pairs as given. On the real sets these join people of one
  group.
- **Calibration imposters.** *given*: as the set has them, on the real sets within a group;
  *random*: any two people of the calibration folds, which is what most users have; *matched*,
  *hard*: of people who look alike ([pairs](how-to/pairs.md)). As many as keep the share of genuine
  pairs.
- **Cohort.** Up to 36 people a group are taken out of the calibration folds, all where there are
  fewer; they are in no pair of any method, not Baseline's either. With 36 hardly a pair of Black
  women is left in calibration: methods that know groups then have nothing to learn of them. So
  methods stand below once more *with nobody taken out*, Oracle as a yardstick.
  Groups of all others are hidden from `cohort`, S-norm, AS-norm, FALCON, FairCal and
  SmoothFairCal.
- **Numbers** are percent, mean over five folds and as many seeds as the table says, three where it
  does not (simulated: each another population). *KS
  mean* is the calibration error of a group, mean over groups; *FPR AAD@1%* is how far groups'
  false-positive rates lie from their mean, on average, where 1 % of all imposters pass. Less is
  better but for AUROC and TPR. Δ is the difference to Baseline on the same pairs ± its standard
  error over folds (simulated: over folds of populations). Five folds are few: two standard errors
  are less sure than the usual 95 %.
- Defaults throughout; FairCal has 100 clusters, a fifth of the images where there are fewer than
  500. SmoothFairCal is the one that falls back where it gains nothing; it has no rows with other
  cohorts than 36 a group.
- **Not measured:** simulated populations with another number of own people; intervals over people
  for AUROC and TPR.
- **Not blind.** `cohort` was developed on these two real sets: its ridge, its floor and how many
  closest people count were set with them in view. All its rows are of one version. Protocols, sizes
  and conditions were set before they were run. Other networks may come out otherwise.

![Groups' false-positive rates where 1 % of all strangers pass](images/study-cohort-groups.png)

*`lfw-dlib`, calibrated on random imposters: the share of each group's strangers who pass the one
threshold at which 1 % of all strangers do. Mean over five folds and three draws of the cohort.
Nobody's group was known but that of the cohort's people.*
"""

SECTIONS = {
    "both": """## Both protocols side by side

An *unlike cohort* comes from elsewhere: its vectors are moved by one common direction, 0.35 of the
spread of the set, and each by noise of 0.3 of it. *The same collection* is as drawn.
""",
    "intervals": """## Intervals over people

People of each test fold drawn anew with replacement, 200 times, both methods on the same draws; the
middle 95 % of the difference to Baseline, one draw of the cohort. Not covered: other people to
calibrate on, other networks. (Drawing anew raises KS and AAD of all methods, so that differences
are what to look at.)
""",
    "protocols": """## Every protocol
""",
    "sizes": """## How many people

`random` imposters. *Map* is what `cohort` chose on people held out, of the fits: plain (that of the
score alone), shifted, or learned. *Highest FPR* is that of the group where it is highest, at a
global 1 %.
""",
    "conditions": """## Out of balance, wrong labels, another domain

36 people a group, `random` imposters. *Out of balance*: every second group keeps a tenth of its
people (4 of 36). *10 % wrong*: one person in ten of the cohort has another group's label. *Moved*,
*moved far*: a common shift of 0.35 and 0.7 of the spread of the set, noise of 0.3 and 0.6.
*Warned*: of how many fits there was a warning, at the fit or in use.
""",
    "missing": """## A group missing

Each group of the real sets left out of the cohort in turn; everything else stays. FPR and KS are
the group's own, at a global 1 %; *in* is with the group in the cohort; *highest FPR* is that of any
group.
""",
    "norms": """## A cohort of poorer pictures

The length of this network's vectors tells the quality of a picture. Here one's own pictures are the
better half of `lfw-mobilefacenet`, in calibration and test, and those of the cohort the worse half.
`random` imposters.
""",
    "people": """## Few people of one's own

So many people who are in a genuine pair calibrate, and nobody else; 36 people a group in the
cohort, `random` imposters.
""",
    "simulated": """## Simulated populations

Groups are cleanly apart here, which flatters every method that tells them apart. `small` and
`bfw-like` have pairs of one group as given, in part.
""",
    "worse": """## Everything that is worse than Baseline

`cohort`, `smooth` and `faircal` in every set, protocol, cohort and size above, in all five
measures: what is worse by more than two standard errors. With so many rows some are by chance.
FairCal warns where clusters have few pairs, and where imposters look paired at random or were the
hardest.
""",
    "all": """## All differences to Baseline

± standard error; what is worse by more than two of them is bold.
""",
}

CAME_OUT = """
Two real networks; numbers of `lfw-mobilefacenet` first, then of `lfw-dlib`.

- **Random imposters, a cohort from elsewhere** (simulated: moved by a common shift and noise; 36
  people a group). KS mean {lfw-mobilefacenet|random|36|0|baseline|ks_mean} and
  {lfw-dlib|random|36|0|baseline|ks_mean} with Baseline,
  {lfw-mobilefacenet|random|36 moved|0|cohort|ks_mean} and
  {lfw-dlib|random|36 moved|0|cohort|ks_mean} with `cohort`; FPR AAD@1%
  {lfw-mobilefacenet|random|36|0|baseline|fpr_aad@0.01} and
  {lfw-dlib|random|36|0|baseline|fpr_aad@0.01}, then
  {lfw-mobilefacenet|random|36 moved|0|cohort|fpr_aad@0.01} and
  {lfw-dlib|random|36 moved|0|cohort|fpr_aad@0.01}.
- **Random imposters, a cohort of the same collection** (36 people a group): KS mean
  {lfw-mobilefacenet|random|36|0|cohort|ks_mean} and {lfw-dlib|random|36|0|cohort|ks_mean}, FPR
  AAD@1% {lfw-mobilefacenet|random|36|0|cohort|fpr_aad@0.01} and
  {lfw-dlib|random|36|0|cohort|fpr_aad@0.01}, TPR@0.1%
  {lfw-mobilefacenet|random|36|0|baseline|tpr@0.001} →
  {lfw-mobilefacenet|random|36|0|cohort|tpr@0.001} and
  {lfw-dlib|random|36|0|baseline|tpr@0.001} → {lfw-dlib|random|36|0|cohort|tpr@0.001}. Oracle as
  given, nobody taken out, knows every group: KS mean
  {lfw-mobilefacenet|given|none|0|oracle|ks_mean} and {lfw-dlib|given|none|0|oracle|ks_mean}, FPR
  AAD@1% {lfw-mobilefacenet|given|none|0|oracle|fpr_aad@0.01} and
  {lfw-dlib|given|none|0|oracle|fpr_aad@0.01}.
- **Imposters as given**, within groups: `cohort` takes no imposter of one's own, and comes out the
  same within groups (KS mean {lfw-mobilefacenet|given|36|0|cohort|ks_mean} and
  {lfw-dlib|given|36|0|cohort|ks_mean}). With nobody taken out for a cohort, SmoothFairCal has
  {lfw-mobilefacenet|given|none|0|smooth|ks_mean} and {lfw-dlib|given|none|0|smooth|ks_mean}, FPR
  AAD@1% {lfw-mobilefacenet|given|none|0|smooth|fpr_aad@0.01} and
  {lfw-dlib|given|none|0|smooth|fpr_aad@0.01}: where imposters are of people who are alike, it needs
  no cohort.
- **The next best on random imposters is AS-norm with the same cohort**: KS mean
  {lfw-mobilefacenet|random|36|0|asnorm|ks_mean} and {lfw-dlib|random|36|0|asnorm|ks_mean}, FPR
  AAD@1% {lfw-mobilefacenet|random|36|0|asnorm|fpr_aad@0.01} and
  {lfw-dlib|random|36|0|asnorm|fpr_aad@0.01}; on `lfw-dlib` false-positive rates are as equal.
  FairCal ({lfw-mobilefacenet|random|36|0|faircal|ks_mean} and
  {lfw-dlib|random|36|0|faircal|ks_mean}) and FALCON
  ({lfw-mobilefacenet|random|36|0|falcon|ks_mean} and {lfw-dlib|random|36|0|falcon|ks_mean}) gain
  little there or lose.
- **Ten people a group**: KS mean {lfw-mobilefacenet|random|10|0|cohort|ks_mean} and
  {lfw-dlib|random|10|0|cohort|ks_mean}, FPR AAD@1%
  {lfw-mobilefacenet|random|10|0|cohort|fpr_aad@0.01} and
  {lfw-dlib|random|10|0|cohort|fpr_aad@0.01}. **Five**:
  {lfw-mobilefacenet|random|5|0|cohort|ks_mean} and {lfw-dlib|random|5|0|cohort|ks_mean}, and
  {lfw-mobilefacenet|random|5|0|cohort|fpr_aad@0.01} and
  {lfw-dlib|random|5|0|cohort|fpr_aad@0.01}.
- **Thirty people of one's own** in calibration, 36 a group in the cohort: KS mean
  {lfw-mobilefacenet|random|36|30|cohort|ks_mean} and {lfw-dlib|random|36|30|cohort|ks_mean}, with
  Baseline {lfw-mobilefacenet|random|36|30|baseline|ks_mean} and
  {lfw-dlib|random|36|30|baseline|ks_mean}; FPR AAD@1%
  {lfw-mobilefacenet|random|36|30|cohort|fpr_aad@0.01} and
  {lfw-dlib|random|36|30|cohort|fpr_aad@0.01}.
- A group that the cohort lacks, and a cohort out of balance, cost most: [where it
  fails](#where-it-fails).
"""

FAILS = """## Where it fails

- **A group that is missing gains little, and may lose.** Left out of the cohort, its own FPR at a
  global 1 % is above 1 % and more than 1.5 times Baseline's for: {LEFT_OUT}. There is a warning
  only where the images can be told to be of no group of the cohort, which on these networks is
  rare. No KS mean is above Baseline's.
- **A cohort out of balance** (every second group with 4 people of 36) loses part of the gain: FPR
  AAD@1% {lfw-mobilefacenet|random|36 out of balance|0|cohort|fpr_aad@0.01} on `lfw-mobilefacenet`
  and {lfw-dlib|random|36 out of balance|0|cohort|fpr_aad@0.01} on `lfw-dlib`, instead of
  {lfw-mobilefacenet|random|36|0|cohort|fpr_aad@0.01} and
  {lfw-dlib|random|36|0|cohort|fpr_aad@0.01} (Baseline
  {lfw-mobilefacenet|random|36|0|baseline|fpr_aad@0.01} and
  {lfw-dlib|random|36|0|baseline|fpr_aad@0.01}). One label in ten that is wrong costs next to
  nothing.
- **Calibration over all pairs is not its strength.** With imposters as given on
  `lfw-mobilefacenet` its KS global is {lfw-mobilefacenet|given|36|0|cohort|ks}, Baseline's
  {lfw-mobilefacenet|given|36|0|baseline|ks} ({Δ lfw-mobilefacenet|given|36|0|cohort|ks}); on
  simulated `small` with matched ones {small|matched|36|0|cohort|ks}, Baseline's
  {small|matched|36|0|baseline|ks}. Nothing warns: it is calibrated to strangers of the cohort, each
  group weighing the same, not to one's own imposters.
- **A cohort from elsewhere** keeps most of the gain in equality, less in accuracy: TPR@0.1% on
  `lfw-mobilefacenet` {lfw-mobilefacenet|random|36 moved|0|cohort|tpr@0.001} instead of
  {lfw-mobilefacenet|random|36|0|cohort|tpr@0.001} (Baseline
  {lfw-mobilefacenet|random|36|0|baseline|tpr@0.001}). **Moved twice as far**, groups are worse
  calibrated than with Baseline on `lfw-mobilefacenet`: KS mean
  {lfw-mobilefacenet|random|36 moved far|0|cohort|ks_mean} instead of
  {lfw-mobilefacenet|random|36|0|baseline|ks_mean} (fits with a warning:
  {lfw-mobilefacenet|random|36 moved far|0|cohort|warned}); on `lfw-dlib`
  {lfw-dlib|random|36 moved far|0|cohort|ks_mean} instead of
  {lfw-dlib|random|36|0|baseline|ks_mean}; on simulated `bfw-like`
  {bfw-like|random|36 moved far|0|cohort|ks_mean} instead of
  {bfw-like|random|36|0|baseline|ks_mean} (fits with a warning:
  {bfw-like|random|36 moved far|0|cohort|warned}). FPR AAD@1% on the real sets is
  {lfw-mobilefacenet|random|36 moved far|0|cohort|fpr_aad@0.01} and
  {lfw-dlib|random|36 moved far|0|cohort|fpr_aad@0.01}.
- **Very few people a group** are mostly not used: with three,
  {lfw-mobilefacenet|random|3|0|cohort|kinds} of 15 fits on `lfw-mobilefacenet` keep to the plain
  map, and FPR AAD@1% stays at {lfw-mobilefacenet|random|3|0|cohort|fpr_aad@0.01}. On simulated
  `bfw-like` they are, and groups are worse calibrated than with Baseline: KS mean
  {bfw-like|random|5|0|cohort|ks_mean} instead of {bfw-like|random|5|0|baseline|ks_mean} with five.
  Under ten people a group there is a warning.
- **It is not the best everywhere.** With imposters as given, SmoothFairCal has better calibrated
  groups on both real sets, with nobody taken out (KS mean
  {lfw-mobilefacenet|given|none|0|smooth|ks_mean} and {lfw-dlib|given|none|0|smooth|ks_mean}), and
  FairCal on simulated `rfw-like` ({rfw-like|given|36|0|faircal|ks_mean}, `cohort`
  {rfw-like|given|36|0|cohort|ks_mean}). AS-norm has the higher TPR@0.1% on `rfw-like` and
  `bfw-like` ({rfw-like|random|36|0|asnorm|tpr@0.001} and {bfw-like|random|36|0|asnorm|tpr@0.001},
  `cohort` {rfw-like|random|36|0|cohort|tpr@0.001} and {bfw-like|random|36|0|cohort|tpr@0.001}).
- **Methods that know groups** (Oracle, DSN) need pairs of every group, imposters within it, too:
  with random imposters, or with a group's people taken out, they lose most here. That says nothing
  against them on pairs as given.
- **Not shown**: other real sets than pictures of LFW, networks of today's accuracy, groups other
  than those labelled, a cohort from another real collection (that of poorer pictures comes
  nearest).
"""
