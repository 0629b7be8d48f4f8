r"""The followed AUC gap: the true measure, the score distributions frozen at a proximal point, and their constraints.

At :math:`w_s` let :math:`\Phi_G(t) = E_G\,\sigma((t - h_s)/\beta)`, with one bandwidth for all subsets of a run.
Then :math:`AUC_s = E_G\,\Phi_{G'}(h_s)` is the smoothed AUC of a pair, and

.. math:: M_s(w) = 1 - AUC_s + E_G[\Phi_{G'}(h_w)] - E_{G'}[\Phi_G(h_w)]

is an expectation over single samples that equals it at :math:`w_s` in value and in gradient: the constraints, in the
unit of the AUC, need linear time. The distributions are kept as tables on a grid of scores, read by linear
interpolation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon import metrics
from minmaxcon.arrays import Array, Constant, namespace, to_numpy
from minmaxcon.checks import number, whole

from .objectives import GaussNewton
from .ridge import NOISE

__all__ = [
    "AUCGapMeasure",
    "FollowedLoss",
    "FollowingAUC",
    "FollowingFamily",
    "FrozenDistributions",
    "RememberedScores",
]


_TAIL = 6.0
"""How many bandwidths the grid goes beyond the scores; farther out the distributions count as constant."""

_EXPONENT = 60.0
"""The logistic function is 0 or 1 to double precision beyond this."""


@dataclass(frozen=True, eq=False, slots=True)
class FrozenDistributions:
    r"""Smoothed distribution functions of the scores of P pairs of subsets, of each of R runs.

    The grid has its first point at ``low`` (R,) and the spacing ``width`` (R,); ``bandwidth`` (R,) is :math:`\beta`, in
    the unit of the scores. ``cdf`` and ``density`` (R, 2 P, bins) are :math:`\Phi_G` and its derivative at the grid
    points, for :math:`G_1, G_1', G_2, G_2'`, say, and ``aucs`` (R, P) the smoothed AUC of each pair.
    """

    low: Any
    width: Any
    bandwidth: Any
    cdf: Any
    density: Any
    aucs: Any

    @classmethod
    def of(
        cls, scores: Any, weights: Any, *, bandwidth: float, bins: int, row_weight: Any = None, noise: Any = 0.0
    ) -> FrozenDistributions:
        r"""Freeze the distributions of scores :math:`h_s` (R, n) of every sample.

        ``weights`` (n, 2 P) are :math:`1_G/\Pr(G)`, or any with the same means, two columns a pair; ``bandwidth`` is
        :math:`\beta` in standard deviations of all scores of the run, in which samples count ``row_weight`` (n,),
        equally by default. To its square ``noise`` (R,) is added. Masses are put on the two nearest of ``bins`` grid
        points, so that means are kept.
        """
        _runs, count = scores.shape
        low, high = scores.min(axis=1), scores.max(axis=1)
        least = 1e-12 * (1.0 + np.abs(high))  # for constant scores, which have no spread to measure by
        beta = np.maximum(np.sqrt((bandwidth * _spread(scores, row_weight)) ** 2 + noise), least)
        low, high = low - _TAIL * beta, high + _TAIL * beta
        width = (high - low) / (bins - 1)
        mass = _masses(scores, weights / count, low, width, bins)
        offset = (np.arange(2 * bins) - bins)[None, :] * (width / beta)[:, None]
        sigmoid = 1.0 / (1.0 + np.exp(-np.clip(offset, -_EXPONENT, _EXPONENT)))
        cdf, density = _convolved(mass, sigmoid, sigmoid * (1.0 - sigmoid) / beta[:, None])
        aucs = np.stack([(mass[:, g] * cdf[:, g + 1]).sum(axis=-1) for g in range(0, mass.shape[1], 2)], axis=-1)
        return cls(low, width, beta, cdf, density, aucs)

    def follow(self, scores: Any, weights: Any, signs: Sequence[float] = (1.0, -1.0)) -> tuple[Any, Any]:
        r"""Return the batch mean (R,) of :math:`\sum_p s_p M_s` over the pairs, and its slopes (R, B) in the scores.

        Scores :math:`h_w` are (R, B), since the tables of one point serve any number of runs, and weights
        :math:`1_G/\Pr(G)` (B, 2 P), two columns a pair. The default :math:`s_p` give the gap :math:`M_s(G_1, G_1') -
        M_s(G_2, G_2')`. The slopes include the factor 1/B.
        """
        bins = self.cdf.shape[-1]
        place = (scores - self.low[:, None]) / self.width[:, None]
        inside = (place >= 0.0) & (place <= bins - 1.0)
        place = np.clip(place, 0.0, bins - 1.0)
        index = np.minimum(place.astype(np.intp), bins - 2)
        part = place - index
        rows = np.arange(len(scores))[:, None] if len(self.low) > 1 else None  # one table serves all
        values = (1.0 - self.aucs) @ np.asarray(signs)
        slopes = np.zeros_like(scores)
        sides = [
            (2 * p + side, 2 * p + 1 - side, sign * (1 - 2 * side)) for p, sign in enumerate(signs) for side in (0, 1)
        ]
        for member, other, sign in sides:
            if sign == 0.0:
                continue
            mine = np.flatnonzero(weights[:, member])  # a subset has few of the samples, and reading takes long
            share = (sign / scores.shape[1]) * weights[mine, member]
            place = rows, index[:, mine], part[:, mine]
            values = values + _read(self.cdf[:, other], *place) @ share
            slopes[:, mine] += share * _read(self.density[:, other], *place)
        return values, np.where(inside, slopes, 0.0)


def _spread(scores: Any, row_weight: Any) -> Any:
    """Standard deviation (R,) of the scores of each run."""
    if row_weight is None:
        return scores.std(axis=1)
    share = row_weight / row_weight.sum()
    centred = scores - (scores @ share)[:, None]
    return np.sqrt((centred * centred) @ share)


def _read(table: Any, rows: Any, index: Any, part: Any) -> Any:
    """Interpolate each run's table, or the first where ``rows`` is None, between ``index`` and ``index + 1``."""
    if rows is None:
        left, right = table[0].take(index), table[0].take(index + 1)
    else:
        left, right = table[rows, index], table[rows, index + 1]
    return left + part * (right - left)


def _masses(scores: Any, shares: Any, low: Any, width: Any, bins: int) -> Any:
    """Weight of each subset on each grid point, (R, 2 P, bins): every sample split between its two neighbours."""
    place = (scores - low[:, None]) / width[:, None]
    index = np.minimum(place.astype(np.intp), bins - 2)
    part = place - index
    mass = np.empty((len(scores), shares.shape[1], bins))
    for g in range(shares.shape[1]):
        mine = np.flatnonzero(shares[:, g])
        share = shares[mine, g]
        for r in range(len(scores)):
            at, right = index[r, mine], part[r, mine] * share
            mass[r, g] = np.bincount(at, share - right, bins) + np.bincount(at + 1, right, bins)
    return mass


def _convolved(mass: Any, *kernels: Any) -> list[Any]:
    r"""``out[b] = sum_k mass[k] kernel(b - k)`` for the grid, each kernel given at offsets -bins .. bins - 1.

    All offsets that these sums use lie in the kernel's own period, so that what wraps around is added to other entries.
    """
    from scipy.fft import irfft, rfft  # NumPy's give the same bits in twice the time

    bins = mass.shape[-1]
    size = 2 * bins
    turned = rfft(mass, size)
    return [irfft(turned * rfft(kernel)[:, None, :], size)[..., bins:] for kernel in kernels]


class RememberedScores:
    """A model that keeps the last scores of rows, which measure, objective and constraints ask for at one point."""

    def __init__(self, model: mm.Model) -> None:
        self.model, self.dimension = model, model.dimension
        self._last: tuple[Any, Any, Any] | None = None

    def evaluate(self, w: Array, features: Array) -> tuple[Array, Callable[[Array], Array]]:
        """See :meth:`minmaxcon.Model.evaluate`."""
        if self.model.linear:  # whose scores cost no more than what is kept
            return self.model.evaluate(w, features)
        point = np.array(to_numpy(w))
        if self._last is None or self._last[1] is not features or not np.array_equal(self._last[0], point):
            self._last = point, features, self.model.evaluate(w, features)
        found: tuple[Array, Callable[[Array], Array]] = self._last[2]
        return found


class FollowingAUC(mm.StochasticMinMaxConstraint):
    r"""One side of the followed gap, :math:`\pm(M_s(G_1, G_1') - M_s(G_2, G_2')) \le b`, without inner variables.

    A batch carries ``features`` (B, p) and ``subsets`` (B, 4), the entries :math:`1_G/\Pr(G)`. The model's parameters
    come first in x, ``frozen`` holds the distributions at the proximal points of R runs, ``sign`` is 1.0 or -1.0, and
    ``bound`` is b, a float or array (R,) in the unit of the AUC.
    """

    def __init__(
        self,
        model: mm.Model | RememberedScores,
        frozen: FrozenDistributions,
        sign: float,
        bound: Any = 0.0,
        name: str = "AUC gap",
        gap: int = 0,
    ) -> None:
        self.model, self.frozen, self.sign, self.bound, self.name = model, frozen, float(sign), bound, name
        self.gap = gap

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        """See :meth:`minmaxcon.StochasticMinMaxConstraint.evaluate`; closed-form slopes in the scores."""
        found = FollowingFamily([self]).evaluate(x, batch)
        return mm.Evaluation(found.F[..., 0], found.G, lambda y, a: found.pullback(y[..., None], a))

    @classmethod
    def fuse(cls, constraints: Sequence[FollowingAUC]) -> FollowingFamily:
        """Both sides read the tables once."""
        return FollowingFamily(constraints)


class FollowingFamily(mm.ConstraintFamily):
    """The sides of followed gaps, evaluated together: scores are computed once, and each gap is read once."""

    def __init__(self, constraints: Sequence[FollowingAUC]) -> None:
        super().__init__(constraints)
        self.model, self.frozen = constraints[0].model, constraints[0].frozen
        if any(other.frozen is not self.frozen for other in constraints):
            raise mm.Unsupported("sides of one problem must follow the same distributions: make them together.")
        gaps = sorted({constraint.gap for constraint in constraints})
        #: of each side (columns) its sign in the row of its gap
        self._signs = Constant([[c.sign if c.gap == gap else 0.0 for c in constraints] for gap in gaps])
        self._pairs = []
        for gap in gaps:
            signs = [0.0] * self.frozen.aucs.shape[1]
            signs[2 * gap : 2 * gap + 2] = [1.0, -1.0]
            self._pairs.append(tuple(signs))

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        """See :meth:`minmaxcon.ConstraintFamily.evaluate`."""
        values, slopes_to_x = _followed(self.model, self.frozen, x, batch, "subsets", self._pairs)
        signs = self._signs.like(x)
        empty = namespace(x).zeros((*x.shape[:-1], 0), x)
        return mm.Evaluation(values @ signs, empty, lambda y, _a: slopes_to_x(y @ signs.T))


class FollowedLoss(mm.StochasticMinMaxConstraint):
    r"""The loss :math:`1 - M_s(D_+, D_-)`, which follows one minus the AUC from a proximal point on.

    A batch carries ``features`` (B, p) and ``weights`` (B, 2), the entries :math:`1_G/\Pr(G)` of the two classes, whose
    distributions at the proximal points of R runs are ``frozen``. The model's parameters come first in x. With a ridge
    the bandwidth depends on w, and weight decay is added: ``tilt`` (R, d) is the gradient of both at the proximal
    points ``center`` (R, d), and ``offset`` (R,) the value that decay has there.
    """

    name = "one minus the AUC"

    def __init__(
        self,
        model: mm.Model | RememberedScores,
        frozen: FrozenDistributions,
        tilt: Any = None,
        center: Any = None,
        offset: Any = None,
    ) -> None:
        self.model, self.frozen, self.tilt, self.center, self.offset = model, frozen, tilt, center, offset

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        """See :meth:`minmaxcon.StochasticMinMaxConstraint.evaluate`; closed-form slopes in the scores."""
        values, slopes_to_x = _followed(self.model, self.frozen, x, batch, "weights", [(-1.0,)])
        xp = namespace(x)
        empty = xp.zeros((*x.shape[:-1], 0), x)
        if self.tilt is None:
            return mm.Evaluation(1.0 + values[..., 0], empty, lambda y, _a: slopes_to_x(y[..., None]))
        tilt, center = xp.asarray(self.tilt, x), xp.asarray(self.center, x)
        rest = xp.zeros((*x.shape[:-1], x.shape[-1] - self.model.dimension), x)
        added = xp.sum(tilt * (x[..., : self.model.dimension] - center))
        if self.offset is not None:
            added = added + xp.asarray(self.offset, x)

        def pullback(y: Array, _a: Array) -> Array:
            return slopes_to_x(y[..., None]) + xp.concat([y[..., None] * tilt, rest])

        return mm.Evaluation(1.0 + values[..., 0] + added, empty, pullback)


def _followed(
    model: mm.Model | RememberedScores,
    frozen: FrozenDistributions,
    x: Array,
    batch: mm.Batch,
    name: str,
    signs: Sequence[Sequence[float]],
) -> tuple[Array, Callable[[Array], Array]]:
    r"""Return batch means (..., K) of :math:`\sum_p s_{kp} M_s` at x (..., d), and how factors (..., K) pull back.

    ``batch[name]`` are the entries :math:`1_G/\Pr(G)` of the P pairs, (B, 2 P), and ``signs`` are :math:`s_k`, K rows.
    The model's parameters come first in x; other variables get the gradient 0.
    """
    xp, size = namespace(x), model.dimension
    scores, score_pullback = model.evaluate(x[..., :size], batch["features"])
    read = np.asarray(to_numpy(scores), dtype=np.float64)
    weights = np.asarray(to_numpy(batch[name]))
    found = [frozen.follow(np.atleast_2d(read), weights, row) for row in signs]
    values = np.stack([value.reshape(read.shape[:-1]) for value, _ in found], axis=-1)
    slopes = [xp.asarray(slope.reshape(read.shape), x) for _, slope in found]

    single = cache(lambda: score_pullback(slopes[0]))

    def to_x(factor: Array) -> Array:
        if len(slopes) == 1:  # both sides of a gap have its gradient, but for a factor
            gradient = factor[..., 0, None] * single()
        else:
            gradient = score_pullback(sum(factor[..., k, None] * slope for k, slope in enumerate(slopes)))
        return xp.concat([gradient, xp.zeros((*x.shape[:-1], x.shape[-1] - size), x)])

    return xp.asarray(values, x), to_x


class AUCGapMeasure(mm.TrueMeasure):
    r"""Both sides :math:`\pm(AUC(G_1, G_1') - AUC(G_2, G_2'))` of true gaps on finite data, ties counted half.

    The data have ``features`` and ``subsets``, the entries :math:`1_G/\Pr(G)`, four a gap; where these are
    weighted, ``row_weight`` (n,) has the weights, which count in the standard deviation too. ``curvature`` is that of
    the objective, ``bandwidth`` the smoothing of the surrogates in standard deviations of the scores, ``bins`` the grid
    points of the frozen distributions. With ``follow_loss`` the objective is one minus the AUC of the classes in
    ``weights``, followed like the gap; ``ridge`` is the variance of noise in each feature that this AUC, but no gap,
    counts with (:mod:`.ridge`), and half of ``decay`` times the squared norm of w is added to that objective. Raises
    InvalidInput where a setting is out of range.
    """

    def __init__(
        self,
        model: mm.Model,
        data: mm.Source,
        curvature: GaussNewton | None = None,
        *,
        bandwidth: float = 0.1,
        bins: int = 4096,
        row_weight: Any = None,
        follow_loss: bool = False,
        ridge: float = 0.0,
        decay: float = 0.0,
    ) -> None:
        self.ridge, self.decay = ridge, decay
        remedy = "must be positive and finite: 0.1 is a tenth of the spread."
        self.model, self.data, self.gauss_newton = model, data, curvature
        self.scorer = RememberedScores(model)
        self.bandwidth = number("bandwidth", bandwidth, remedy, above=0.0)
        self.bins, self.row_weight = whole("bins", bins, 16), row_weight
        self.subsets = _column(data, "subsets")
        self.gaps = self.subsets.shape[1] // 4
        self._members = [np.flatnonzero(self.subsets[:, g]) for g in range(self.subsets.shape[1])]
        self._weights = [np.asarray(self.subsets[rows, g], float) for g, rows in enumerate(self._members)]
        self.classes: Any = _column(data, "weights") if follow_loss else None
        columns = range(2, self.subsets.shape[1], 4)
        self._trivial = [np.array_equal(self.subsets[:, g], self.subsets[:, g + 1]) for g in columns]

    def on(self, data: mm.Source) -> AUCGapMeasure:
        """See :meth:`minmaxcon.TrueMeasure.on`; ``data`` also hold ``positive`` and ``row_weight``, (n,) each."""
        weight, positive = _column(data, "row_weight"), _column(data, "positive") > 0
        curvature = None
        if self.gauss_newton is not None:
            classes = [np.flatnonzero(~positive), np.flatnonzero(positive)]
            curvature = self.gauss_newton.on(_column(data, "features"), classes, weight)
        return AUCGapMeasure(
            self.model,
            data,
            curvature,
            bandwidth=self.bandwidth,
            bins=self.bins,
            row_weight=weight,
            follow_loss=self.classes is not None,
            ridge=self.ridge,
            decay=self.decay,
        )

    def scores(self, x: Array) -> Any:
        """Return the scores (R, n) of all samples, in float64."""
        w = x[..., : self.model.dimension]
        parts = [to_numpy(self.scorer.evaluate(w, batch["features"])[0]) for _, batch in self.data.chunks()]
        return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts], axis=1)

    def observe(self, x: Array) -> mm.Observation:
        """See :meth:`minmaxcon.TrueMeasure.observe`."""
        return _Observed(self, self.scores(x), np.asarray(to_numpy(x), dtype=np.float64)[:, : self.model.dimension])

    def gap(self, scores: Any) -> Any:
        """Return the signed true gaps (R, K) of scores (R, n)."""
        known: dict[int, Any] = {}
        for k, trivial in enumerate(self._trivial):
            other = 0.5 if trivial else self._auc(scores, 4 * k + 2, 4 * k + 3)
            known[k] = self._auc(scores, 4 * k, 4 * k + 1) - other
        return np.stack([known[k] for k in range(self.gaps)], axis=-1)

    def _auc(self, scores: Any, g: int, other: int) -> Any:
        first, second = self._members[g], self._members[other]
        return metrics.auc(scores[:, first], scores[:, second], weights=(self._weights[g], self._weights[other]))

    def frozen(self, scores: Any, weights: Any, noise: Any = 0.0) -> FrozenDistributions:
        """Return the distributions of scores (R, n) in the subsets or classes of the weights (n, 2 P)."""
        return FrozenDistributions.of(
            scores, weights, bandwidth=self.bandwidth, bins=self.bins, row_weight=self.row_weight, noise=noise
        )

    def accuracy(self, scores: Any) -> Any:
        """Return the true AUC (R,) of scores (R, n) between the two classes; only where the loss is followed."""
        rows = [np.flatnonzero(self.classes[:, g]) for g in (0, 1)]
        weights = tuple(np.asarray(self.classes[mine, g], float) for g, mine in enumerate(rows))
        return metrics.auc(scores[:, rows[0]], scores[:, rows[1]], weights=(weights[0], weights[1]))

    def curvature(self, x: Array) -> Callable[[Any], Any] | None:
        """See :meth:`minmaxcon.TrueMeasure.curvature`."""
        many = x.shape[-1] > _FACTORED and self.model.linear  # the matrix would cost more than what it saves
        return None if self.gauss_newton is None or many else self.gauss_newton.at(x)


_FACTORED = 4000
"""Parameters of a linear model up to which its matrix of curvature is made."""


def _column(data: mm.Source, name: str) -> Any:
    return np.concatenate([np.asarray(to_numpy(batch[name])) for _, batch in data.chunks()])


def _both_sides(gaps: Any) -> Any:
    """Return gaps (R, K) and their negatives side by side, (R, 2 K)."""
    return np.stack([gaps, -gaps], axis=-1).reshape(len(gaps), -1)


class _Observed(mm.Observation):
    """The gap of one set of scores, and the constraints that follow it from there."""

    def __init__(self, measure: AUCGapMeasure, scores: Any, w: Any) -> None:
        self._model, self._frozen = measure.scorer, measure.frozen(scores, measure.subsets)
        self._loss, self._tilt, self._w, self._offset = None, None, w, None
        if measure.classes is not None:
            noise = NOISE * measure.ridge
            self._loss = measure.frozen(scores, measure.classes, noise * (w * w).sum(axis=1))
            smooth = 1.0 - self._loss.aucs[:, 0]
            self.objective = (smooth if noise else 1.0 - measure.accuracy(scores)), smooth
            if noise:
                # No factor of scores and bandwidth changes the loss: its slope in the bandwidth is that in a factor of
                # the scores alone, turned round.
                _, slopes = self._loss.follow(scores, measure.classes, (-1.0,))
                stretched = (slopes * scores).sum(axis=1)
                self._tilt = -(noise * stretched / self._loss.bandwidth**2)[:, None] * w
            if measure.decay:
                self._offset = 0.5 * measure.decay * (w * w).sum(axis=1)
                self._tilt = measure.decay * w + (0.0 if self._tilt is None else self._tilt)
                self.objective = self.objective[0] + self._offset, smooth + self._offset
        self.values = _both_sides(measure.gap(scores))
        self.smoothed = _both_sides(self._frozen.aucs[:, ::2] - self._frozen.aucs[:, 1::2])

    def surrogates(self) -> Sequence[mm.StochasticMinMaxConstraint]:
        """See :meth:`minmaxcon.Observation.surrogates`."""
        gaps = self.values.shape[1] // 2
        return [
            FollowingAUC(
                self._model, self._frozen, sign, name=f"AUC gap{f' {k + 1}' if gaps > 1 else ''}, {side}", gap=k
            )
            for k in range(gaps)
            for sign, side in ((1.0, "upper side"), (-1.0, "lower side"))
        ]

    def objective_surrogate(self) -> mm.StochasticMinMaxConstraint | None:
        """See :meth:`minmaxcon.Observation.objective_surrogate`."""
        return None if self._loss is None else FollowedLoss(self._model, self._loss, self._tilt, self._w, self._offset)
