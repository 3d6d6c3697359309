r"""How far beta calibration of counted scores can be from that of the scores themselves.

Let L be the mean log-loss of the pairs, L̂ that of the bins, whose genuine and imposter pairs
stand at their mean scores, and θ̂ the coefficients fitted to L̂. In a bin, n scores between l and r
with mean m have Σ (s − m)² ≤ n (m − l)(r − m), so that Taylor's theorem bounds

    e = ∇L(θ̂) − ∇L̂(θ̂)  by  Σ n/2 (m − l)(r − m) max |φ″|,  φ = (p − y) x,

and the difference of the Hessians likewise. The logistic loss is self-concordant (Bach, 2010,
"Self-concordant analysis for logistic regression", proposition 2): with ε the length of e and ρ the
largest length of x, both in the metric of the inverse Hessian of L, ρ ε < 1 means that the optimum
θ of L exists and is no farther from θ̂ than −log(1 − ρ ε) / ρ. At a score with terms x, the log-odds
then differ by no more than that times the length of x.

Slopes at their bound of zero stay there if their gradient is too large for all of this to change
its sign; otherwise they are treated as free, which the inequalities of a constrained optimum allow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from faircal.calibrators.base import Calibrator
from faircal.calibrators.beta import EPS, BetaCalibrator
from faircal.calibrators.weighted_scores import Floats
from faircal.compute.counting import FilledBins, ScoreCounts

# What the searches for both fits may leave in the probabilities.
_SEARCH = 1e-9


def counting_bound(calibrator: Calibrator, counts: ScoreCounts, k: int) -> float:
    """Return how much a fit on the scores themselves may change any probability.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted on ``Samples.from_counts(counts)``, set k.
    counts : ScoreCounts
    k : int

    Returns
    -------
    bound : float
        No score of the calibrator's range has a probability farther than this from the one that
        the exact fit gives it. Infinite where the bins are too wide to tell; NaN for others than
        beta calibration.

    Examples
    --------
    >>> from faircal.calibrators import BetaCalibrator, Samples
    >>> from faircal.compute.counting import fine_edges
    >>> rng = np.random.default_rng(0)
    >>> genuine = rng.random(20_000) < 0.3
    >>> score = np.clip(rng.normal(genuine * 0.4, 0.15), -1, 1)
    >>> counts = ScoreCounts.zeros(1, fine_edges(-1.0, 1.0))
    >>> counts.add(score, genuine)
    >>> fitted = BetaCalibrator().fit_sets(Samples.from_counts(counts))[0]
    >>> bound = counting_bound(fitted, counts, 0)
    >>> exact = BetaCalibrator().fit(score, genuine)
    >>> bool(np.abs(exact.predict(score) - fitted.predict(score)).max() < bound < 1e-6)
    True
    """
    if not isinstance(calibrator, BetaCalibrator):
        return float("nan")
    filled = counts.means(k)
    if not (filled.genuine.any() and filled.imposter.any()):
        return 0.0  # the map is their fraction, and that is counted exactly
    bins = _BinParts.of(filled, calibrator.score_range)
    theta = np.array([calibrator.c_, calibrator.a_, calibrator.b_])
    grid = _unit(counts.edges, calibrator.score_range)
    problem = _Problem(bins, theta)
    free = theta > 0.0
    free[0] = True
    found = problem.bound(free, grid)
    if found is None and not free.all():
        found = problem.bound(np.ones(3, np.bool_), grid)
    return np.inf if found is None else found + _SEARCH


def _unit(scores: Floats, score_range: tuple[float, float]) -> Floats:
    """Return z, the scores mapped onto [0, 1] as beta calibration does."""
    low, high = score_range
    return np.clip((scores - low) / (high - low), EPS, 1.0 - EPS)


@dataclass(frozen=True, eq=False)
class _BinParts:
    """Genuine and imposter parts of the filled bins, (n,), in terms of z."""

    low: Floats
    high: Floats
    mean: Floats
    label: Floats
    share: Floats  # of all pairs
    variance: Floats  # at most; infinite where it is not known
    off: Floats  # how far the mean may be from the one kept

    @classmethod
    def of(cls, filled: FilledBins, score_range: tuple[float, float]) -> _BinParts:
        low, high = (_unit(ends, score_range) for ends in (filled.low, filled.high))
        span = score_range[1] - score_range[0]
        off = np.minimum(filled.slack / span + 4 * EPS, high - low)
        # Scores that are moved to the ends of the range have another mean than was counted.
        moved = (filled.low < score_range[0]) | (filled.high > score_range[1])
        parts = []
        for label, count, mean in (
            (0.0, filled.imposter, filled.imposter_mean),
            (1.0, filled.genuine, filled.genuine_mean),
        ):
            z = np.clip(_unit(mean, score_range), low, high)
            below, above = np.minimum(z + off, high) - low, high - np.maximum(z - off, low)
            # Two scores are as far below their mean as above; one score is its own mean.
            variance = np.where(count > 2, below * above, np.minimum(below, above) ** 2)
            variance[moved] = np.inf
            variance[(count == 1) & ~moved] = 0.0
            columns = (low, high, z, np.full_like(z, label), count / 1.0, variance, off)
            parts.append(np.stack(columns)[:, count > 0])
        table = np.hstack(parts)
        table[4] /= table[4].sum()
        return cls(*table)


@dataclass(frozen=True, eq=False)
class _Range:
    """Numbers known to within `wide` on either side of `mid`."""

    mid: Floats
    wide: Floats

    @classmethod
    def between(cls, one: Floats, other: Floats) -> _Range:
        return cls((one + other) / 2, np.abs(one - other) / 2)

    def __add__(self, other: _Range) -> _Range:
        return _Range(self.mid + other.mid, self.wide + other.wide)

    def __mul__(self, other: _Range) -> _Range:
        a, b = np.abs(self.mid), np.abs(other.mid)
        return _Range(self.mid * other.mid, a * other.wide + b * self.wide + self.wide * other.wide)

    def times(self, factor: float, plus: float = 0.0) -> _Range:
        return _Range(self.mid * factor + plus, self.wide * abs(factor))

    def seen_by(self, rows: Floats) -> _Range:
        """Return the combinations `rows` (r, 3) of these three, (3, n)."""
        return _Range(rows @ self.mid, np.abs(rows) @ self.wide)

    @property
    def largest(self) -> Floats:
        return np.abs(self.mid) + self.wide


class _Problem:
    """The bins seen from the coefficients θ̂ = (c, a, b) fitted to them."""

    def __init__(self, bins: _BinParts, theta: Floats) -> None:
        self._bins, self._theta = bins, theta
        ends = _terms(bins.low), _terms(bins.high)
        self._x = [_Range.between(low, high) for low, high in zip(*ends, strict=True)]
        # η′ and η″; p, q = p(1 − p) and their derivatives, all by z.
        rise, bend = (x.seen_by(theta[None]) for x in self._x[1:])
        p = _Range.between(*(_sigmoid(theta @ terms[0])[None] for terms in ends))
        q, tilt, square = p * p.times(-1.0, 1.0), p.times(-2.0, 1.0), rise * rise
        self._miss = [_Range(p.mid - bins.label, p.wide), q * rise, q * (tilt * square + bend)]
        flat = q.times(-6.0, 1.0)
        self._q = [q, q * tilt * rise, q * (flat * square + tilt * bend)]
        self._mean = _terms(bins.mean)[0]
        self._p = _sigmoid(theta @ self._mean)
        self.gradient = np.einsum("ji,i->j", self._mean, bins.share * (self._p - bins.label))

    def bound(self, free: npt.NDArray[np.bool_], grid: Floats) -> float | None:
        """Bound the probabilities with only these coefficients free; None where that fails."""
        rows = self._whitened(free)
        if rows is None:
            return None
        x = [of.seen_by(rows) for of in self._x]
        kept = 1.0 - float(np.linalg.norm(self._hessian_error(x)))
        if not kept > 0.0:
            return None
        left = np.where(self._theta > 0, self.gradient, np.minimum(self.gradient, 0.0))
        left[0] = self.gradient[0]
        error = np.linalg.norm(self._off(self._miss, x)) + np.linalg.norm(rows @ left)
        epsilon = error / np.sqrt(kept)
        rho = np.sqrt((x[0].largest ** 2).sum(axis=0).max() / kept)
        if not rho * epsilon < 1.0:
            return None
        away = -np.log1p(-rho * epsilon) / rho
        if not self._stays(~free, away, rho):
            return None
        return self._largest_change(rows, grid, away / np.sqrt(kept))

    def _whitened(self, free: npt.NDArray[np.bool_]) -> Floats | None:
        """Return the rows w for which the terms w · x have the identity as Hessian."""
        curvature = self._bins.share * self._p * (1.0 - self._p)
        hessian = np.einsum("ji,ki->jk", self._mean * curvature, self._mean)[np.ix_(free, free)]
        try:
            inverse = np.linalg.inv(np.linalg.cholesky(hessian))
        except np.linalg.LinAlgError:
            return None
        rows = np.zeros((len(inverse), 3))
        rows[:, free] = inverse
        return rows

    def _hessian_error(self, x: list[_Range]) -> Floats:
        """Bound the difference of the Hessians of L and L̂, entry by entry."""
        error = np.empty((len(x[0].mid), len(x[0].mid)))
        for i in range(len(error)):
            own = [_Range(of.mid[i], of.wide[i]) for of in x]
            error[i] = self._off(_product(self._q, own), x)
        return error

    def _off(self, f: list[_Range], g: list[_Range]) -> Floats:
        """Bound how far Σ f·g over the pairs is from the sum over the bins, each at its mean.

        `f` and `g` are functions of z with their first and second derivatives.
        """
        bins = self._bins
        _, first, second = _product(f, g)
        slip = bins.off * first.largest
        most = (bins.high - bins.low) * first.largest
        errors = []
        for sign in (1.0, -1.0):
            with np.errstate(invalid="ignore"):  # an infinite variance, and no second derivative
                curved = bins.variance / 2 * np.maximum(sign * second.mid + second.wide, 0.0)
            errors.append(np.einsum("ji,i->j", np.fmin(curved + slip, most), bins.share))
        return np.asarray(np.maximum(*errors), dtype=np.float64)

    def _stays(self, pinned: npt.NDArray[np.bool_], away: float, rho: float) -> bool:
        """Whether slopes that are zero must be so in the exact fit, too."""
        if not pinned.any():
            return True
        x = [of.seen_by(np.eye(3)[pinned]) for of in self._x]
        # By Cauchy and Schwarz; along the way the curvature grows by e^(ρ·away) at most.
        curved = x[0].largest ** 2 * self._q[0].largest
        bent = np.sqrt(np.einsum("ji,i->j", curved, self._bins.share))
        change = np.exp(rho * away) * bent * away
        return bool((self.gradient[pinned] > self._off(self._miss, x) + change).all())

    def _largest_change(self, rows: Floats, grid: Floats, away: float) -> float:
        """Bound the change of p between neighbours of `grid`, the largest of all."""
        places = np.unique(np.concatenate(([EPS], grid, [1.0 - EPS])))
        ends = _terms(places[:-1])[0], _terms(places[1:])[0]
        length = np.sqrt((_Range.between(*ends).seen_by(rows).largest ** 2).sum(axis=0))
        step = away * length
        low, high = (self._theta @ terms for terms in ends)
        return float((step * _curvature(low - step, high + step)).max())


def _product(f: list[_Range], g: list[_Range]) -> list[_Range]:
    """Return f·g with its two derivatives, of those of f and g."""
    first = f[1] * g[0] + f[0] * g[1]
    return [f[0] * g[0], first, f[2] * g[0] + (f[1] * g[1]).times(2.0) + f[0] * g[2]]


def _terms(z: Floats) -> Floats:
    """Return 1, log z and −log(1 − z), and their two derivatives: shape (3, 3, n).

    Each is monotone in z.
    """
    one, none = np.ones_like(z), np.zeros_like(z)
    up, down = 1.0 / z, 1.0 / (1.0 - z)
    return np.array([[one, np.log(z), -np.log1p(-z)], [none, up, down], [none, -(up**2), down**2]])


def _curvature(low: Floats, high: Floats) -> Floats:
    """Return the largest p(1 − p) of log-odds between `low` and `high`."""
    nearest = np.where((low < 0) & (high > 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    p = _sigmoid(-nearest)
    return p * (1.0 - p)


def _sigmoid(eta: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / (1.0 + np.exp(-eta)), dtype=np.float64)
