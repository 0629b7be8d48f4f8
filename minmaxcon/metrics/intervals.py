r"""Confidence intervals of AUCs, of their gaps and of paired differences, which hold for small and separated sets.

An AUC is a mean of structural components :math:`V_i = \Pr_{G'}(h_i > h') + \frac12 \Pr_{G'}(h_i = h')` of the members
of G and, likewise, of those of G'; its variance follows from theirs [1]_. A row that belongs to several sets adds up
its components, which gives the covariance of any two AUCs on the same rows.

**One AUC.** DeLong's variance is 0 where two sets are separated, and wild where they are small. The variance of the
components of each set, n members, is therefore shrunk towards :math:`\frac34\theta(1-\theta)`, three quarters of the
largest possible one [2]_, which counts as two members:

.. math:: S^* = \frac{k S + 2\cdot\frac34\theta(1-\theta)}{k + 2}, \qquad
    k = \frac{n-1}{n}\frac{\left(\sum_i (V_i-\theta)^2\right)^2}{\sum_i (V_i-\theta)^4},

k being the number of members that S is known from. The end points are those of Wilson's score interval for
:math:`\sum S^*/n` in the place of a binomial variance: the numbers p with
:math:`(\theta-p)^2 = z^2\,\frac{p(1-p)}{\theta(1-\theta)}\sum S^*/n`. They never leave [0, 1], and never meet unless a
set is compared with itself.

Wilson's end point towards the nearer edge, 0 or 1, is too near where few errors are seen: of two members one is ranked
wrongly with probability .1 where the AUC is .95, and Wilson's interval for 1/2 ends at .92. Of
:math:`\theta(1-\theta)/\sum S^*/n` observations with less than ten errors it is therefore the further one of Wilson's
and that of Clopper and Pearson at twice the tail probability, as in the modified interval of [4]_; at 95% both agree
for about ten errors.

**A difference** of two statistics has the interval of Newcombe's square-and-add method with correlation (MOVER [3]_)
from the end points of both. The correlation is known from few members only where sets are small: it is multiplied by
:math:`k^2/(k^2+2^2)`, k being the smaller number of rows that a statistic is known from. The difference of an AUC gap
and the bound 0 is folded: see :meth:`AUCStatistic.__abs__`.

**Weights** are those of sampling: a row of weight 2 counts twice, and remains one observation. The size of a set is
then Kish's :math:`(\sum w)^2/\sum w^2`.

References
----------
.. [1] E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, Comparing the areas under two or more correlated receiver
   operating characteristic curves: a nonparametric approach, Biometrics 44 (1988), 837-845.
.. [2] Z. W. Birnbaum and O. M. Klose, Bounds for the variance of the Mann-Whitney statistic, Annals of Mathematical
   Statistics 28 (1957), 933-945.
.. [3] R. G. Newcombe, MOVER-R confidence intervals for ratios and products of two independently estimated quantities,
   Statistical Methods in Medical Research 25 (2016), 1774-1778; G. Y. Zou and A. Donner, Construction of confidence
   limits about effect measures: a general approach, Statistics in Medicine 27 (2008), 1693-1702.
.. [4] L. D. Brown, T. T. Cai and A. DasGupta, Interval estimation for a binomial proportion, Statistical Science 16
   (2001), 101-133.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minmaxcon.checks import number
from minmaxcon.errors import InvalidInput
from minmaxcon.metrics.auc import (
    Mask,
    Pair,
    checked_mask,
    checked_pair_weights,
    checked_pairs,
    checked_row_weight,
    checked_scores,
)

__all__ = ["AUCEstimate", "AUCStatistic", "auc_gap_with_interval", "auc_with_interval"]

Floats = NDArray[np.float64]

_PRIOR_MEMBERS, _PRIOR_SHARE = 2.0, 0.75
"""How many members the variance that is shrunk to counts for, and its share of the largest possible one.

By simulation these are the smallest of a grid at which intervals cover for sets of 2 to 50 members whose scores differ
in shape and spread; see the tests of coverage.
"""

_FEW_ERRORS = 10.0
"""Errors below which Wilson's end point near an edge may be too near to it."""

_ROUNDING = 1e-13
"""By how much sums of products of weights may be off, in shares of pairs."""

_AREA = "Wilson score interval, modified, DeLong variance shrunk"
_DIFFERENCE = "MOVER of Wilson score intervals, modified, DeLong covariance"
_NEW_ROWS = "for new rows"


@dataclass(frozen=True, slots=True)
class AUCEstimate:
    """An AUC, or a difference of AUCs, with its confidence interval; undefined values are NaN and say why.

    Attributes
    ----------
    value : float
        The estimate, in [0, 1], or in [-1, 1] for a signed difference; NaN where a set is empty.
    lower, upper : float
        End points of the interval, within the same range; NaN where there is no interval.
    standard_error : float
        DeLong's standard error; NaN where a set has fewer than two members. For a gap, that of the signed difference.
    counts : tuple of int
        Sizes of the sets, in the order of the arguments.
    reason : str
        Empty, or why the value or its interval is undefined.
    method : str
        How the interval was made.
    p_value : float or None
        For a signed difference, one less the largest confidence at which its interval excludes 0; else None.

    Examples
    --------
    >>> from minmaxcon.metrics import auc_with_interval
    >>> found = auc_with_interval([0.9, 0.7, 0.6, 0.4], [0.5, 0.3, 0.2, 0.1])
    >>> found.value, bool(found.lower < found.value < found.upper), found.counts
    (0.9375, True, (4, 4))
    """

    value: float
    lower: float
    upper: float
    standard_error: float
    counts: tuple[int, ...]
    reason: str = ""
    method: str = ""
    p_value: float | None = None

    @property
    def defined(self) -> bool:
        """Whether the value is a number."""
        return not math.isnan(self.value)

    def for_new_rows(self, share: float) -> AUCEstimate:
        r"""Return the estimate with an interval for the same measure of new rows.

        The interval of an estimate is about the population that its rows were drawn from. New rows are a draw of their
        own, whose chance comes on top: with n rows and m new ones, in the same proportions, the difference of both
        values has :math:`1 + n/m` times the variance, so that the end points move away from the value by
        :math:`\sqrt{1 + n/m}`. An estimate without an interval has none for new rows.

        Parameters
        ----------
        share : float
            m / n: the number of new rows over the number of rows that the estimate is from.

        Raises
        ------
        InvalidInput
            The share is not positive and finite, or the estimate is for new rows already.

        Examples
        --------
        >>> from minmaxcon.metrics import auc_with_interval
        >>> found = auc_with_interval([0.9, 0.7, 0.6, 0.4], [0.5, 0.3, 0.2, 0.1])
        >>> found.lower > found.for_new_rows(0.5).lower
        True
        """
        share = number("share", share, "must be positive and finite: new rows for each row.", above=0.0)
        if self.method.endswith(_NEW_ROWS):
            remedy = "applies once: the interval is for new rows already; start from that of the population."
            raise InvalidInput("share", share, remedy)
        if math.isnan(self.value) or math.isnan(self.lower) or math.isnan(self.upper):
            return self
        wider, least = math.sqrt(1.0 + 1.0 / share), 0.0 if self.p_value is None else -1.0
        return replace(
            self,
            lower=max(least, self.value - wider * (self.value - self.lower)),
            upper=min(1.0, self.value + wider * (self.upper - self.value)),
            method=f"{self.method}, {_NEW_ROWS}" if self.method else _NEW_ROWS,
            p_value=None,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON knows them: None in the place of NaN."""
        plain = {name: None if isinstance(v, float) and math.isnan(v) else v for name, v in asdict(self).items()}
        return {**plain, "counts": list(self.counts)}

    def __str__(self) -> str:
        if not self.defined:
            return f"undefined ({self.reason})"
        if math.isnan(self.lower):
            return f"{self.value:.4f} (no interval: {self.reason})"
        p = "" if self.p_value is None else f", p = {self.p_value:.2g}"
        return f"{self.value:.4f} [{self.lower:.4f}, {self.upper:.4f}]{p}"


Ends = Callable[[float], tuple[float, float]]


@dataclass(frozen=True, slots=True, eq=False)
class AUCStatistic:
    """An AUC or a combination of AUCs of the same n rows, from which intervals at any confidence follow.

    ``first - second`` is a difference, paired through the rows, also of two scores of the same rows; ``abs`` of a
    difference is a gap.

    Intervals hold for sets of few members too, as simulations show (``docs/figures/intervals.py``), with one exception
    that is known: those of a difference of two AUCs whose sets overlap in opposite places, AUC(A; A or B) less
    AUC(B; A or B), are too short where A and B hardly mix and have fewer than about 100 members. Take the interval of
    AUC(A; B) there: of sets of one size the difference is that less one half. No metric that has a name is of this
    kind.

    Attributes
    ----------
    value : float
        The statistic; NaN where a set is empty.
    share : ndarray (n,)
        Each row's share in the error; the sum of squares is DeLong's variance.
    counts : tuple of int
        Sizes of the sets.
    reason : str
        Empty, or why the value or its interval is undefined.

    Examples
    --------
    >>> import numpy as np
    >>> label = np.array([True, True, True, False, False, False])
    >>> one = AUCStatistic.of(np.array([3.0, 2, 1, 2, 0, 0]), label, ~label)
    >>> other = AUCStatistic.of(np.array([3.0, 2, 1, 5, 0, 6]), label, ~label)
    >>> (one - other).estimate().value > 0
    True
    """

    value: float
    share: Floats
    counts: tuple[int, ...]
    reason: str
    method: str
    variance: float
    ends: Ends
    signed: bool = False

    @classmethod
    def of(
        cls, scores: Any, own: Any, other: Any, row_weight: Any = None, names: Sequence[str] = ("G", "G'")
    ) -> AUCStatistic:
        """Return the AUC of two sets of rows.

        Parameters
        ----------
        scores : array (n,)
            Score of every row, in any unit.
        own, other : boolean array (n,)
            The set that should score higher, and the other one; they may overlap.
        row_weight : array (n,), optional
            Positive weights of the rows.
        names : two str
            How messages call the sets.

        Raises
        ------
        InvalidInput
            Scores that are not finite numbers, masks that are not boolean or of another length, or weights that are
            not positive.
        """
        array = checked_scores("scores", scores, (1,))
        pair = checked_mask("own", own, array.size), checked_mask("other", other, array.size)
        return cls.of_pairs(array, [pair], row_weight, [names])[0]

    @classmethod
    def of_pairs(
        cls, scores: Any, pairs: Sequence[Pair], row_weight: Any = None, names: Sequence[Sequence[str]] | None = None
    ) -> tuple[AUCStatistic, ...]:
        """Return the AUC of each pair of sets of rows, which are sorted once.

        Arguments and errors are those of :meth:`of`, with a pair of masks, and a pair of names, for each AUC.

        Examples
        --------
        >>> import numpy as np
        >>> label, old = np.array([True, True, False, False]), np.array([True, False, True, False])
        >>> every, within = AUCStatistic.of_pairs([4, 2, 3, 1], [(label, ~label), (label & old, ~label & old)])
        >>> every.value, within.value
        (0.75, 1.0)
        """
        array = checked_scores("scores", scores, (1,))
        weight = checked_row_weight(row_weight, array.size)
        masks = checked_pairs(pairs, array.size)
        order = _Order(array, weight)
        called = [("G", "G'")] * len(masks) if names is None else names
        if len(called) != len(masks):
            raise InvalidInput("names", called, f"give a pair of names for each of the {len(masks)} pairs.")
        return tuple(_area(order, a, b, name) for (a, b), name in zip(masks, called, strict=True))

    def __sub__(self, other: AUCStatistic) -> AUCStatistic:
        """Return the difference of two statistics of the same rows; that of one and itself is 0 for certain."""
        if other is self:
            nothing = np.zeros_like(self.share)
            return AUCStatistic(
                0.0 * self.value, nothing, 2 * self.counts, self.reason, _DIFFERENCE, 0.0, _point(0.0), signed=True
            )
        value, share = self.value - other.value, self.share - other.share
        product = math.sqrt(self.variance * other.variance)
        correlation = min(1.0, max(-1.0, float(self.share @ other.share) / product)) if product > 0 else 0.0
        known = min(_effective(self.share), _effective(other.share))
        correlation *= known**2 / (known**2 + _PRIOR_MEMBERS**2)

        def ends(z: float) -> tuple[float, float]:
            """Return the end points by the square-and-add method."""
            (low, high), (other_low, other_high) = self.ends(z), other.ends(z)
            below, above = self.value - low, high - self.value
            other_below, other_above = other.value - other_low, other_high - other.value
            return (
                value - _added(below, other_above, correlation),
                value + _added(above, other_below, correlation),
            )

        variance = max(self.variance + other.variance - 2.0 * correlation * product, 0.0)
        undefined = [part.reason for part in (self, other) if math.isnan(part.value)]
        reason = " and ".join(undefined or filter(None, (self.reason, other.reason)))
        return AUCStatistic(value, share, self.counts + other.counts, reason, _DIFFERENCE, variance, ends, signed=True)

    def __abs__(self) -> AUCStatistic:
        """Return the absolute value of a difference, its interval folded at 0.

        Where the signed interval contains 0 the lower end is 0 and the upper end the larger of the two distances, so
        that the folded interval covers the true gap whenever the signed one covers the signed difference. The value
        itself is biased upwards near 0, as an absolute value is.
        """

        def ends(z: float) -> tuple[float, float]:
            low, high = self.ends(z)
            nearest = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
            return nearest, max(abs(low), abs(high))

        share = self.share if self.value >= 0 else -self.share
        return AUCStatistic(abs(self.value), share, self.counts, self.reason, self.method, self.variance, ends)

    def estimate(self, confidence: float = 0.95) -> AUCEstimate:
        """Return the value with its interval of the given confidence, in (0, 1), and, of a difference, its p-value."""
        quantile = _quantile(confidence)
        if math.isnan(self.value) or self.reason:
            return AUCEstimate(self.value, math.nan, math.nan, math.nan, self.counts, self.reason)
        low, high = self.ends(quantile)
        least = -1.0 if self.signed else 0.0
        error = math.sqrt(float(self.share @ self.share))
        p = self._p_value() if self.signed else None
        return AUCEstimate(
            self.value, max(least, low), min(1.0, high), error, self.counts, method=self.method, p_value=p
        )

    def _p_value(self) -> float:
        """Return one less the largest confidence at which the interval excludes 0, by bisection for its quantile."""
        low, high = 0.0, 40.0
        if self.value == 0.0:
            return 1.0
        for _ in range(45):
            middle = 0.5 * (low + high)
            first, last = self.ends(middle)
            low, high = (low, middle) if first <= 0.0 <= last else (middle, high)
        return math.erfc(low / math.sqrt(2.0))


def _effective(share: Floats) -> float:
    """Return the number of rows that a statistic is known from."""
    squares = np.square(share)
    fourth = float(squares @ squares)
    return float(squares.sum()) ** 2 / fourth if fourth > 0 else 0.0


def _added(one: float, other: float, correlation: float) -> float:
    return math.sqrt(max(one * one + other * other - 2.0 * correlation * one * other, 0.0))


def _quantile(confidence: float) -> float:
    """Return the normal quantile of a two-sided interval."""
    confidence = number(
        "confidence", confidence, "must lie strictly between 0 and 1, such as 0.95.", above=0.0, below=1.0
    )
    return NormalDist().inv_cdf(0.5 + confidence / 2.0)


class _Order:
    """Rows in the order of their scores: where the scores that tie with each begin and end, and what each row weighs.

    AUCs are computed in this order, in which memory is read from front to back; shares get back that of the rows.
    """

    def __init__(self, scores: NDArray[Any], weight: Floats | None) -> None:
        self.rows = np.argsort(scores)
        ordered = scores[self.rows]
        new = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if scores.size else np.arange(0)
        lengths = np.diff(new, append=scores.size)
        self.start = np.repeat(new, lengths)
        self.stop = np.repeat(new + lengths, lengths)
        self.mass = None if weight is None else weight[self.rows]

    def below(self, others: Mask, places: NDArray[np.intp]) -> Floats:
        """Return twice the mass of ``others`` below the rows at ``places``, ties one half: exact without weights."""
        mass = others if self.mass is None else np.where(others, self.mass, 0.0)
        before = np.concatenate([[0.0], np.cumsum(mass, dtype=np.float64)])
        found: Floats = before[self.start[places]] + before[self.stop[places]]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Members:
    """A set of rows: where its members are in the order of the scores, what each weighs, and all together."""

    places: NDArray[np.intp]
    mass: Floats | float
    total: float
    size: float

    @classmethod
    def of(cls, order: _Order, inside: Mask) -> _Members:
        places = np.flatnonzero(inside)
        if order.mass is None:
            return cls(places, 1.0, float(places.size), float(places.size))
        mass = order.mass[places]
        total = float(mass.sum())
        return cls(places, mass, total, total**2 / float(mass @ mass) if mass.size else 0.0)  # Kish's size

    @property
    def bessel(self) -> float:
        """The factor that makes the sum of squares of a set's components DeLong's unbiased variance."""
        return math.sqrt(self.size / (self.size - 1.0))


def _apart(components: Floats, value: float) -> Floats:
    """Return how far components lie from their mean; what rounding leaves of none is none, or it counts as chance."""
    difference = components - value
    difference[np.abs(difference) <= _ROUNDING] = 0.0
    return difference


def _area(order: _Order, own: Mask, other: Mask, names: Sequence[str]) -> AUCStatistic:
    """Return the AUC of checked arguments."""
    in_a, in_b = own[order.rows], other[order.rows]
    a, b = _Members.of(order, in_a), _Members.of(order, in_b)
    n, counts = own.size, (a.places.size, b.places.size)
    undefined, reason = _why_undefined(counts, (a.size, b.size), names)
    if undefined:
        return AUCStatistic(math.nan, np.zeros(n), counts, reason, _AREA, 0.0, _point(math.nan))
    wins, losses = order.below(in_b, a.places), order.below(in_a, b.places)
    value = min(1.0, float((a.mass * wins).sum()) / (2.0 * a.total * b.total))
    if reason:
        return AUCStatistic(value, np.zeros(n), counts, reason, _AREA, 0.0, _point(math.nan))
    ordered = np.zeros(n)
    ordered[a.places] = a.mass / a.total * a.bessel * _apart(wins / (2.0 * b.total), value)
    ordered[b.places] += b.mass / b.total * b.bessel * _apart(1.0 - losses / (2.0 * a.total), value)
    share = np.empty(n)
    share[order.rows] = ordered
    in_both = in_a & in_b
    overlap = bool(in_both.any())
    # Rows of both sets meet each other in this share of the pairs, half of which they win whatever the scores are.
    known = _Members.of(order, in_both).total ** 2 / (a.total * b.total) if overlap else 0.0
    free = 1.0 - known
    if free <= 1e-12:
        return AUCStatistic(value, np.zeros(n), counts, "", _AREA, 0.0, _point(value))
    inner = min(1.0, max(0.0, (value - 0.5 * known) / free))
    binomial = inner * (1.0 - inner)
    ratio = variance = 0.0  # the variance over the binomial one, and itself
    apart = [_Members.of(order, rows) for rows in (in_a & ~in_b, in_both, in_b & ~in_a)] if overlap else [a, b]
    for part in apart:
        if part.places.size:
            squares = np.square(ordered[part.places] / free)
            spread, fourth = float(squares.sum()), float(squares @ squares)
            members = max(part.size - 1.0, 0.0) / part.size * spread * spread / fourth if fourth > 0 else 0.0
            prior = _PRIOR_MEMBERS * _PRIOR_SHARE / part.size
            ratio += (members * (spread / binomial if binomial > 0 else 0.0) + prior) / (members + _PRIOR_MEMBERS)
            variance += (members * spread + prior * binomial) / (members + _PRIOR_MEMBERS)

    def ends(z: float) -> tuple[float, float]:
        """Return the end points of Wilson's interval with 1 / ratio observations, the one near an edge modified."""
        w = z * z * ratio
        centre = (inner + 0.5 * w) / (1.0 + w)
        half = math.sqrt(w * binomial + 0.25 * w * w) / (1.0 + w)
        low, high = max(0.0, centre - half), min(1.0, centre + half)
        if inner <= 0.5 and inner < _FEW_ERRORS * ratio:
            low = min(low, _exact_low(inner / ratio, (1.0 - inner) / ratio, z))
        if inner >= 0.5 and 1.0 - inner < _FEW_ERRORS * ratio:
            high = max(high, 1.0 - _exact_low((1.0 - inner) / ratio, inner / ratio, z))
        return 0.5 * known + free * low, 0.5 * known + free * high

    return AUCStatistic(value, share, counts, "", _AREA, free * free * variance, ends)


def _exact_low(successes: float, failures: float, z: float) -> float:
    """Return the lower end of the interval of Clopper and Pearson, with twice the tail probability of z."""
    from scipy.special import betaincinv

    return float(betaincinv(successes, failures + 1.0, math.erfc(z / math.sqrt(2.0)))) if successes > 0 else 0.0


def _point(value: float) -> Ends:
    """Return the interval of what is known for certain, or not at all."""

    def ends(_: float) -> tuple[float, float]:
        return value, value

    return ends


def _why_undefined(counts: tuple[int, ...], sizes: tuple[float, ...], names: Sequence[str]) -> tuple[bool, str]:
    """Return whether the value is undefined, and why it or its interval is."""
    for least, one, both in ((1, "is empty", "are empty"), (2, "has one member only", "have one member only")):
        lacking = [name for name, count in zip(names, counts, strict=True) if count < least]
        if lacking:
            return least == 1, f"{' and '.join(lacking)} {one if len(lacking) == 1 else both}"
    lacking = [name for name, size in zip(names, sizes, strict=True) if size < 1.5]
    return False, f"the weights of {' and '.join(lacking)} leave one member only" if lacking else ""


def auc_with_interval(
    scores_a: Any, scores_b: Any, confidence: float = 0.95, *, weights: tuple[Any, Any] | None = None
) -> AUCEstimate:
    r"""Return the AUC between two disjoint sets with its score interval.

    Parameters
    ----------
    scores_a, scores_b : array (n_a,) and (n_b,)
        Scores of the two sets, in any unit.
    confidence : float
        Coverage asked for, in (0, 1).
    weights : pair of array (n_a,) and (n_b,), optional
        Positive weights of the samples.

    Returns
    -------
    AUCEstimate
        With ``counts = (n_a, n_b)``; undefined where a set is empty, no interval where one has a single member.

    Raises
    ------
    InvalidInput
        Scores that are not finite numbers, weights that are not positive, or a confidence outside (0, 1).
    """
    _quantile(confidence)
    a, b = checked_scores("scores_a", scores_a, (1,)), checked_scores("scores_b", scores_b, (1,))
    pair = checked_pair_weights(weights, (a.size, b.size))
    first = np.arange(a.size + b.size) < a.size
    mass = None if pair is None else np.concatenate(pair)
    return AUCStatistic.of(np.concatenate([a, b]), first, ~first, mass, ("scores_a", "scores_b")).estimate(confidence)


def auc_gap_with_interval(
    scores: Any, pair_1: Pair, pair_2: Pair, confidence: float = 0.95, *, row_weight: Any = None
) -> AUCEstimate:
    r"""Return :math:`|AUC(G_1, G_1') - AUC(G_2, G_2')|` with its interval.

    Parameters
    ----------
    scores : array (n,)
        Score of every row, in any unit.
    pair_1, pair_2 : two boolean arrays (n,) each
        Masks of :math:`(G_1, G_1')` and :math:`(G_2, G_2')`; any of the four may overlap.
    confidence : float
        Coverage asked for, in (0, 1).
    row_weight : array (n,), optional
        Positive weights of the rows.

    Returns
    -------
    AUCEstimate
        With the four sizes as ``counts``; undefined where a set is empty, no interval where one has a single member.

    Raises
    ------
    InvalidInput
        As in :func:`auc_gap`; or a confidence outside (0, 1).
    """
    _quantile(confidence)
    names = (("G1", "G1'"), ("G2", "G2'"))
    one, other = AUCStatistic.of_pairs(scores, (pair_1, pair_2), row_weight, names)
    return abs(one - other).estimate(confidence)
