"""Numbers beside numbers: the same data, given to faircal and to a library in its interpreter.

All data are simulated, with fixed seeds. Seconds are processor time on one core, the best of a few
fits in one run: their ratio is what counts.
"""

from __future__ import annotations

import datetime
import math
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import faircal
from faircal.evaluation.thresholds.guarantee import guarantee
from faircal.evaluation.thresholds.imposters import ImposterSet
from studies.libraries.asking import ask
from studies.libraries.claims import read
from studies.uncertainty.design import Design, make_design
from studies.uncertainty.laws import Law
from studies.uncertainty.populations import POPULATIONS

Row = dict[str, Any]
Asked = Callable[..., Any]

#: Pairs of the fits, and how often each is timed.
PAIRS, TIMES = 250_000, 3
#: People, images of each, draws of the FPR's interval and of promised thresholds.
PEOPLE, IMAGES, INTERVALS, PROMISES = 60, 2, 100, 300
FPR, CONFIDENCE, BOOTSTRAPS, THRESHOLDS = 0.05, 0.95, 100, 101
#: Procedures of MAPIE for trying many thresholds: its default, and the one for a fixed order.
PROCEDURES = ("bonferroni_holm", "fixed_sequence")
_MAPS = {
    "beta": faircal.BetaCalibrator,
    "isotonic": faircal.IsotonicCalibrator,
    "platt": faircal.PlattCalibrator,
}


class Drawn(NamedTuple):
    """Scores of people drawn anew again and again, by one design; and what is true of them."""

    design: Design
    law: Law
    scores: NDArray[np.float64]  # a row a draw, imposters first

    @property
    def genuine(self) -> NDArray[np.bool_]:
        """Which pairs are genuine."""
        return np.arange(self.scores.shape[1]) >= self.design.imposter.shape[1]

    @classmethod
    def of(cls, draws: int) -> Drawn:
        """Draw from the model of `faircal.simulate`."""
        population, design = POPULATIONS["faircal.simulate"], make_design(PEOPLE, IMAGES)
        scores = [
            np.concatenate(population.draw(np.random.default_rng([7, k]), design, 0.0))
            for k in range(draws)
        ]
        return cls(design, population.law(0.0), np.array(scores))

    def apart(self) -> Drawn:
        """As many pairs of the same law, nobody in two of them."""
        rng = np.random.default_rng(7)
        counts = self.design.imposter.shape[1], self.design.genuine.shape[1]
        laws = self.law.imposter, self.law.genuine
        drawn = [
            rng.choice(self.law.scores, size=(len(self.scores), count), p=law)
            for count, law in zip(counts, laws, strict=True)
        ]
        scores, cell = np.concatenate(drawn, axis=1), self.law.edges[1] - self.law.edges[0]
        return self._replace(scores=scores + cell * (rng.random(scores.shape) - 0.5))


def measure(pythons: Mapping[str, str]) -> list[Row]:
    """Measure all that the named interpreters allow."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="faircal-libraries-") as folder, threadpool_limits(1):
        for (name, library), part in PARTS.items():
            if library not in pythons:
                continue
            start = time.monotonic()
            said = _Asker(pythons[library], library)
            values = part(said, Path(folder))
            rows.append(
                {
                    "kind": "measured",
                    "name": name,
                    "library": library,
                    "version": said.version,
                    "faircal": faircal.__version__,
                    "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
                    "values": values,
                }
            )
            sys.stderr.write(f"{name}, {library}: {time.monotonic() - start:.0f} s\n")
    return rows


class _Asker:
    """Calls probes of one library."""

    def __init__(self, python: str, library: str) -> None:
        self._python, self._library = python, read(library)
        self.version = ""

    def __call__(self, call: str, **told: Any) -> Any:
        answer = ask(self._python, self._library, call=call, arguments=told)
        self.version = answer["versions"][self._library.distributions[0]]
        return answer["told"]


def _maps(said: Asked, folder: Path) -> Row:
    """One map on the same scores: how far probabilities are apart, and seconds."""
    data = faircal.simulate("bfw-like", pairs=PAIRS, seed=0)
    cal, test = data.split(test_fold=5)
    score, new = ((each.scores + 1) / 2 for each in (cal, test))
    there, out = folder / "maps.npz", folder / "given.npz"
    np.savez(there, score=score, genuine=cal.genuine, new=new)
    seconds = said("calibrate", data=str(there), out=str(out), times=TIMES)
    given, found = np.load(out), {}
    for name in seconds:
        ours = [
            _timed(_MAPS[name](score_range=(0.0, 1.0)), score, cal.genuine) for _ in range(TIMES)
        ]
        apart = np.abs(ours[0][0].predict(new) - given[name])
        found[name] = {
            "apart": float(apart.max()),
            "mean_apart": float(apart.mean()),
            "seconds": seconds[name],
            "ours": min(took for _, took in ours),
        }
    return {"pairs": len(score), "maps": found}


def _timed(
    calibrator: faircal.BetaCalibrator, score: NDArray[np.float64], genuine: NDArray[np.bool_]
) -> tuple[faircal.BetaCalibrator, float]:
    start = time.process_time()
    calibrator.fit(score, genuine)
    return calibrator, time.process_time() - start


def _rates(said: Asked, folder: Path) -> Row:
    """FPR by group at one threshold."""
    data = faircal.simulate("small", seed=0)
    groups = data.groups("ethnicity")
    within = groups.pair >= 0
    names = np.asarray(groups.names)[groups.pair[within]]
    told = {"score": data.scores[within], "genuine": data.genuine[within]}
    there = folder / "rates.npz"
    np.savez(there, **told, group=names, threshold=0.5)
    theirs = said("rates", data=str(there))
    ours = faircal.audit(**told, groups=names, threshold=0.5)
    apart = [abs(rate - ours.value("fpr", group=name)) for name, rate in theirs.items()]
    return {"pairs": int(within.sum()), "groups": len(apart), "apart": max(apart)}


def _coverage(said: Asked, folder: Path) -> Row:
    """How often an interval of the FPR holds the true one, other people each time."""
    drawn = Drawn.of(INTERVALS)
    at = drawn.law.threshold(FPR)
    there = folder / "coverage.npz"
    np.savez(there, score=drawn.scores, genuine=drawn.genuine, threshold=at)
    theirs = np.array(said("coverage", data=str(there), times=BOOTSTRAPS))
    left, right = drawn.design.pairs
    ours = np.array([
        faircal.audit(
            score=score, genuine=drawn.genuine, threshold=at,
            left_identity=left, right_identity=right,
        ).interval("fpr")
        for score in drawn.scores
    ])  # fmt: skip
    true = drawn.law.fpr(at)
    return {
        **_setting(drawn),
        "draws": INTERVALS,
        "bootstraps": BOOTSTRAPS,
        "theirs": _holding(theirs, true),
        "ours": _holding(ours, true),
        "width": float(np.median(np.ptp(ours, axis=1)) / np.median(np.ptp(theirs, axis=1))),
    }


def _holding(ends: NDArray[np.float64], true: float) -> int:
    return int(np.count_nonzero((ends[:, 0] <= true) & (true <= ends[:, 1])))


def _promises(said: Asked, folder: Path) -> Row:
    """How often the true FPR at a promised threshold is above what was promised."""
    sharing = Drawn.of(PROMISES)
    apart = sharing.apart()
    strangers = np.arange(2 * sharing.design.imposter.shape[1]).reshape(2, -1)
    known = sharing.design.owner[sharing.design.imposter]
    return {
        **_setting(sharing),
        "draws": PROMISES,
        "thresholds": THRESHOLDS,
        "sharing": _promised(said, folder, sharing, known),
        "apart": _promised(said, folder, apart, strangers),
    }


def _promised(said: Asked, folder: Path, drawn: Drawn, people: NDArray[np.int64]) -> Row:
    """Promises of both, for one kind of pairs."""
    there = folder / "promises.npz"
    np.savez(there, score=(drawn.scores + 1) / 2, genuine=drawn.genuine)
    grid = np.linspace(0.5, 1.0, THRESHOLDS)[
        ::-1
    ]  # from the safest: the order in which they are tried
    found: Row = {}
    for procedure in PROCEDURES:
        given = said(
            "thresholds", data=str(there), grid=grid.tolist(), fpr=FPR,
            confidence=CONFIDENCE, procedure=procedure,
        )  # fmt: skip
        found[procedure] = _broken([math.nan if at is None else 2 * at - 1 for at in given], drawn)
    count = drawn.design.imposter.shape[1]
    ours = [
        guarantee(ImposterSet(score[:count], *people), fpr=FPR, confidence=CONFIDENCE).threshold
        for score in drawn.scores
    ]
    return {"ours": _broken(ours, drawn), "theirs": found}


def _broken(thresholds: list[float], drawn: Drawn) -> Row:
    told = [drawn.law.fpr(at) for at in thresholds if not math.isnan(at)]
    broken = sum(rate > FPR * (1 + 1e-9) for rate in told)
    return {"told": len(told), "broken": broken, "rate": float(np.mean(told))}


def _setting(drawn: Drawn) -> Row:
    return {
        "people": PEOPLE,
        "imposters": int(drawn.design.imposter.shape[1]),
        "fpr": FPR,
        "confidence": CONFIDENCE,
    }


def _costs(said: Asked, folder: Path) -> Row:
    """Cllr of the same log-likelihood ratios."""
    p, genuine, prior = _calibrated()
    llr = faircal.log_likelihood_ratio(p, calibrated_at=prior)
    there = folder / "costs.npz"
    np.savez(there, llr=llr, genuine=genuine)
    theirs = said("costs", data=str(there))
    ours = {
        "cllr": faircal.metrics.cllr(llr, genuine, of="llr"),
        "minimum": faircal.metrics.min_cllr(llr, genuine),
    }
    apart = {name: abs(value - ours[name]) for name, value in theirs.items()}
    return {"pairs": len(p), "ours": ours, "apart": apart}


def _ks(said: Asked, folder: Path) -> Row:
    """KS of the same probabilities."""
    p, genuine, _ = _calibrated()
    there = folder / "ks.npz"
    np.savez(there, probability=p, genuine=genuine.astype(int))
    ours = faircal.metrics.ks(p, genuine)
    return {"pairs": len(p), "ours": ours, "apart": abs(said("ks", data=str(there)) - ours)}


def _calibrated() -> tuple[NDArray[np.float64], NDArray[np.bool_], float]:
    cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    p = faircal.Baseline().fit(cal).predict_proba(test)
    return p, test.genuine, float(cal.genuine.mean())


#: What is measured, with which library.
PARTS: dict[tuple[str, str], Callable[[Asked, Path], Row]] = {
    ("maps", "scikit-learn"): _maps,
    ("maps", "netcal"): _maps,
    ("rates", "fairlearn"): _rates,
    ("coverage", "fairlearn"): _coverage,
    ("promises", "mapie"): _promises,
    ("ks", "mapie"): _ks,
    ("costs", "lir"): _costs,
    ("costs", "bob"): _costs,
}
