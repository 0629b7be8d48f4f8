r"""The quadratic AUC surrogate in min-max form (Lemma 1, with the paper's errors corrected).

For a pair of subsets (G, G') with scores h,

.. math::
    E[c_1(h - h' - c_2)^2 \mid G, G'] = \min_{a,b}\max_\alpha E F + \alpha E G - c_1\alpha^2,

    F = c_1c_2^2 + \frac{1_G}{\Pr G}\big(c_1(h-a)^2 - 2c_1c_2h\big)
        + \frac{1_{G'}}{\Pr G'}\big(c_1(h-b)^2 + 2c_1c_2h\big),
    \qquad G = 2c_1h\Big(\frac{1_G}{\Pr G} - \frac{1_{G'}}{\Pr G'}\Big),

so a single sample, of whatever group, gives unbiased F, G and gradients. The primal point is
:math:`x = (w, a_0, b_0, a_1, b_1, \dots)`: parameters, then a slot for each member of each pair. A batch carries
``features`` (B, p) and ``weights`` (B, slots), the entries :math:`1_G/\Pr G` of each slot.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import Array, Constant, namespace, to_numpy
from minmaxcon.checks import instance, instances, positive

__all__ = ["AUCConstraint", "AUCFamily", "GroupMoments", "Layout"]


@dataclass(frozen=True)
class Layout:
    """The setting that all constraints of one fair AUC problem share.

    Attributes
    ----------
    model : Model
        The scoring model, with d parameters.
    pairs : int
        Number of pairs (G, G') over all constraints; pair j has slots 2j (G) and 2j + 1 (G').
    c1, c2 : float
        Scale and margin of the loss.
    radius : float
        Radius of the ball of parameters.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> layout = mm.load_problem("fair_auc", data="loanapp", kappa=0.1).constraints[0].layout
    >>> layout.pairs, layout.c1, layout.c2
    (5, 0.5, 1.0)
    """

    model: mm.Model
    pairs: int
    c1: float
    c2: float
    radius: float

    @property
    def dimension(self) -> int:
        """Length of x."""
        return self.model.dimension + 2 * self.pairs


class AUCConstraint(mm.StochasticMinMaxConstraint):
    r"""The sum of the quadratic AUC losses of one or several pairs.

    Parameters
    ----------
    layout : Layout
        The problem's layout.
    pairs : sequence of int
        Which pairs are summed.
    reach : float
        Largest absolute value of an inner variable, :math:`I_\alpha`.
    bound : float or array (R,)
        The bound; ignored for the objective.
    name : str
        For reports.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> problem = mm.load_problem("fair_auc", data="loanapp", kappa=0.1)
    >>> type(problem.constraints[0]).__name__, problem.constraints[0].bound
    ('AUCConstraint', 1.1)
    """

    def __init__(self, layout: Layout, pairs: Sequence[int], reach: float, bound: Any = 0.0, name: str = "auc") -> None:
        self.layout = instance("layout", layout, Layout, "must be a Layout.")
        chosen = instances("pairs", pairs, int | np.integer, "must be numbers of pairs of the layout.")
        self.pairs, self.bound, self.name = tuple(map(int, chosen)), bound, name
        reach, size = positive("reach", reach), len(self.pairs)
        self.dual = mm.BoxBlock([-reach] * size, [reach] * size, layout.c1)
        self.convex = layout.model.linear

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        """See :meth:`minmaxcon.StochasticMinMaxConstraint.evaluate`; closed-form gradients."""
        found = AUCFamily([self]).evaluate(x, batch)
        return mm.Evaluation(found.F[..., 0], found.G, lambda y, a: found.pullback(y[..., None], a))

    @classmethod
    def fuse(cls, constraints: Sequence[AUCConstraint]) -> AUCFamily:
        """All pairs of all constraints in one set of matrix products."""
        return AUCFamily(constraints)

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        """The convex quadratic of a linear model, from group means and covariances; other models have no cvxpy form."""
        if not isinstance(self.layout.model, mm.Linear):
            return super().cvxpy_value(cp, x, data)
        return _moments_of(data).cvxpy_value(cp, x, self.layout, self.pairs)


class AUCFamily(mm.ConstraintFamily):
    """Several :class:`AUCConstraint` of one layout, evaluated together.

    Scores are computed once; first and second moments of all slots come from two products with the weights, and 0/1
    owner matrices add the slots up to constraints.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> level = mm.load_problem("fair_auc", data="loanapp", kappa=0.1).at_level(0.3)
    >>> type(level.family).__name__, len(level.family.constraints)
    ('AUCFamily', 3)
    """

    def __init__(self, constraints: Sequence[AUCConstraint]) -> None:
        constraints = instances("constraints", constraints, AUCConstraint, "must be a sequence of AUCConstraint.")
        if not constraints:
            raise mm.InvalidInput("constraints", constraints, "give at least one.")
        super().__init__(constraints)
        self.layout = layout = constraints[0].layout
        if any(other.layout is not layout for other in constraints):
            raise mm.Unsupported(
                "fair AUC constraints of different layouts cannot share a problem: build them together."
            )
        c1, c2 = layout.c1, layout.c2
        pairs = [pair for constraint in constraints for pair in constraint.pairs]
        self.slots = np.array([slot for pair in pairs for slot in (2 * pair, 2 * pair + 1)])
        self.owner = np.repeat(np.arange(len(constraints)), [2 * len(c.pairs) for c in constraints])
        self._all = bool(np.array_equal(self.slots, np.arange(2 * layout.pairs)))
        sign = np.tile([-1.0, 1.0], len(pairs))  # -1 for a member of G, +1 for one of G'
        self._slope, self._shift = Constant(2.0 * c1 * c2 * sign), Constant(c2 * sign)
        owner = np.eye(len(constraints))[self.owner]
        self._owner, self._curvature = Constant(owner), Constant(2.0 * c1 * owner.T)
        self._constant = Constant([c1 * c2**2 * len(c.pairs) for c in constraints])
        # G_j = 2 c1 (m_G - m_G'), one column a pair
        self._difference = Constant(np.kron(np.eye(len(pairs)), [[2.0 * c1], [-2.0 * c1]]))
        self._tilt, self._shares = Constant(2.0 * c2 * sign), Constant(c1 * owner)  # slope and owner, c1 moved over

    def _columns(self, weights: Array) -> Array:
        return weights if self._all else namespace(weights).take(weights, self.slots)

    def _split(self, x: Array) -> tuple[Array, Array]:
        size = self.layout.model.dimension
        offsets = x[..., size:]
        return x[..., :size], offsets if self._all else namespace(x).take(offsets, self.slots)

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        """See :meth:`minmaxcon.ConstraintFamily.evaluate`."""
        features, weights = batch["features"], self._columns(batch["weights"])
        w, offset = self._split(x)
        scores, score_pullback = self.layout.model.evaluate(w, features)
        xp, rows = namespace(scores), int(features.shape[0])
        # Sums over the rows: what takes them to the constraints divides by their number, where numbers are fewest. A
        # sum down the columns takes seven times as long as a product with ones.
        shares, difference, curved = _divided(rows, self._shares, self._difference, self._curvature)
        mass = xp.matmul(_ones(rows).row(scores), weights)
        first, second = xp.matmul(scores, weights), xp.matmul(scores * scores, weights)
        centred = offset * mass - first  # c1 E(h - a)^2 = c1 (second + a (a mass - 2 first))
        losses = second + offset * (centred - first) + self._tilt.row(first) * first
        difference = difference.like(first)

        def pullback(y: Array, a: Array) -> Array:
            matmul, turned = xp.matmul, weights.T
            curvature = matmul(y, curved.like(y))
            constant = curvature * (self._shift.row(y) - offset) + matmul(a, difference.T)
            gradient = score_pullback(matmul(constant, turned) + scores * matmul(curvature, turned))
            return xp.concat([gradient, self._scatter(curvature * centred)])

        values = xp.matmul(losses, shares.like(first)) + self._constant.row(first)
        return mm.Evaluation(values, xp.matmul(first, difference), pullback)

    def _scatter(self, gradient: Array) -> Array:
        """Put the gradient of this family's slots into the place of all slots."""
        if self._all:
            return gradient
        xp = namespace(gradient)
        place = np.zeros((self.slots.size, 2 * self.layout.pairs))
        place[np.arange(self.slots.size), self.slots] = 1.0
        return gradient @ xp.asarray(place, gradient)

    def knows_means(self, data: mm.Source) -> bool:
        """For a linear model and more rows than moments have numbers a feature: the moments give all means."""
        size, model = self.layout.model.dimension, self.layout.model
        rows = self.slots.size * size  # of features, as many numbers as the moments have
        return isinstance(model, mm.Linear) and size <= _SUMMED and data.size is not None and rows <= data.size

    def means(self, x: Array, data: mm.Source) -> mm.Evaluation:
        r"""See :meth:`minmaxcon.ConstraintFamily.means`: from the moments m, S and the mass of each slot.

        .. math:: E[c_1(h - a)^2 1_G/\Pr G] = c_1\big(w'Sw + (\langle m, w\rangle - a)^2 + (E[1_G/\Pr G] - 1)a^2\big)
        """
        c1, slots = self.layout.c1, self.slots
        w, offset = self._split(x)
        xp, groups = namespace(x), _moments_of(data).groups
        turned, centers, members = groups.turned(w), groups.means.like(w), groups.members.like(w)[slots]
        first = groups.scores(w, slots)
        away, mass = first - offset, xp.take(groups.masses.like(w), groups.group[slots])
        spread = xp.take(xp.dot(turned, w[..., None, :]), groups.group[slots])
        slope, owner, difference = self._slope.like(first), self._owner.like(first), self._difference.like(first)
        losses = c1 * (spread + away * away + (mass - 1.0) * offset * offset) + slope * first

        def pullback(y: Array, a: Array) -> Array:
            curvature = y @ self._curvature.like(y)
            constant = curvature * (self._shift.like(y) + away) + a @ difference.T
            # What slots of one group pull at, its mean and covariance, is gathered before the products.
            gradient = (constant @ members) @ centers + ((curvature @ members)[..., None, :] @ turned)[..., 0, :]
            return xp.concat([gradient, self._scatter(curvature * (offset * mass - first))])

        return mm.Evaluation(losses @ owner + self._constant.like(first), first @ difference, pullback)

    def refine(self, x: Array, data: mm.Source) -> Array:
        """Set every a and b to its minimiser, the mean score of its group."""
        xp = namespace(x)
        w = x[..., : self.layout.model.dimension]
        if self.knows_means(data):
            return xp.concat([w, _moments_of(data).groups.scores(w)])

        def means(batch: mm.Batch) -> tuple[Array]:
            scores = self.layout.model.evaluate(w, batch["features"])[0]
            return (scores @ (batch["weights"] / batch["weights"].shape[0]),)

        return xp.concat([w, *data.summed(means)])

    def lagrangian_minimizer(self, y: Any, a: Any, data: mm.Source, center: Any = None, weight: Any = 0.0) -> Any:
        """For a linear model: a linear system a run (with a multiplier where the ball of parameters binds)."""
        if not isinstance(self.layout.model, mm.Linear) or self.layout.model.dimension > _SOLVED:
            return None  # with many features the matrix costs more than the passes of a general method
        return _moments_of(data).lagrangian_minimizer(self, y, a, center, weight)


_MOMENTS: WeakKeyDictionary[mm.Source, tuple[Hashable, GroupMoments]] = WeakKeyDictionary()
"""The moments of data that are in use: every step of a solve asks for them, by families made anew."""


def _moments_of(data: mm.Source) -> GroupMoments:
    data = data.origin  # moments are summed in float64 whatever the precision of the rows
    state, kept = _state_of(data), _MOMENTS.get(data)
    if kept is None or kept[0] != state:
        kept = _MOMENTS[data] = (state, GroupMoments.of(data))
    return kept[1]


def _state_of(data: mm.Source) -> Hashable:
    """Return what changes when the rows do: NumPy's cannot be written into, and torch counts what is written."""
    return tuple((id(value), _writes(value)) for value in getattr(data, "arrays", {}).values())


def _writes(value: Any) -> int:
    """Return how often a tensor was written into; nobody counts it for those made in torch's inference mode."""
    counted = hasattr(value, "is_inference") and not value.is_inference()
    return int(value._version) if counted else 0


@lru_cache(maxsize=16)
def _ones(count: int) -> Constant:
    return Constant(np.ones(count))


@lru_cache(maxsize=64)
def _divided(rows: int, *constants: Constant) -> tuple[Constant, ...]:
    """Return constants of any shapes divided by a number of rows: made once for the batches of a solve."""
    return tuple(Constant(one.value / rows) for one in constants)


_SUMMED = 512
"""Features up to which moments stand for passes: they have as many numbers for each slot as their square."""

_SOLVED = 2000
"""Features up to which a Lagrangian's linear system is solved: time grows with their cube, memory with their square."""

_AT_ONCE = 2**20
"""Numbers of the matrices, one a run, that are made at once: 8 MiB."""


@dataclass(frozen=True, eq=False)
class GroupMoments:
    """Means (S, p) and population covariances (S, p, p) of the features in the group of each slot, and its mass (S,).

    Slots of the same group share one array's values. The mass is the mean of the slot's weights, 1 where they come from
    the same rows.
    """

    means: Any
    covariances: Any
    masses: Any

    @classmethod
    def of(cls, data: mm.Source) -> GroupMoments:
        """Compute the moments of finite data with ``features`` (n, p) and ``weights`` (n, S) by one pass."""

        def moments(batch: mm.Batch) -> tuple[Any, Any, Any]:
            raw = batch["features"]
            features: Any = raw if hasattr(raw, "tocsr") else np.asarray(to_numpy(raw), dtype=np.float64)
            weights = np.asarray(to_numpy(batch["weights"]), dtype=np.float64) * (1.0 / raw.shape[0])
            second = np.zeros((weights.shape[1], features.shape[1], features.shape[1]))
            # Rows of one cell are in the same slots, mostly with one weight in each: a product serves them all.
            for mine in _cells(weights > 0):
                own, products = weights[mine], dict[bytes, Any]()
                for s in np.flatnonzero(own[0]):
                    one, share = own[0, s], own[:, s] / own[0, s]
                    key = share.tobytes()
                    if key not in products:
                        part = features[mine]
                        if (share != 1).any():
                            root = np.sqrt(share)[:, None]
                            part = part.multiply(root).tocsr() if hasattr(raw, "tocsr") else part * root
                        product = part.T @ part
                        products[key] = product.toarray() if hasattr(product, "toarray") else product
                    second[s] += one * products[key]
            return np.asarray((features.T @ weights).T), second, weights.sum(axis=0)

        first, second, masses = data.summed(moments)
        return cls(first, second - first[:, :, None] * first[:, None, :], masses)

    @cached_property
    def groups(self) -> _Groups:
        """The groups that the slots stand for, each once."""
        moments = np.column_stack([self.masses, self.means, self.covariances.reshape(len(self.means), -1)])
        some: list[int] = []
        for s, own in enumerate(moments):  # equal but for rounding: one group
            if not any(np.abs(own - moments[t]).max() <= 1e-13 * np.abs(own).max() for t in some):
                some.append(s)
        group = np.array([np.abs(own - moments[some]).max(axis=1).argmin() for own in moments])
        numbers = (np.eye(len(some))[group], self.means[some], self.covariances[some], self.masses[some])
        return _Groups(group, *map(Constant, numbers))

    def lagrangian_minimizer(self, family: AUCFamily, y: Any, a: Any, center: Any = None, weight: Any = 0.0) -> Any:
        r"""Return the minimisers :math:`(w, a, b)` (R, d) of a linear model's Lagrangians over the ball of parameters.

        ``y`` (R, k) are the multipliers of the k constraints, ``a`` (R, p) their scaled inner variables, ``center``
        (R, d) and ``weight`` (R,) those of the proximal term. The offsets are eliminated in closed form; what is left
        is :math:`(Q + \lambda I)w = l` with :math:`\lambda \ge 0` and :math:`|w| \le R`.
        """
        layout, slots, d = family.layout, family.slots, family.layout.model.dimension
        runs = len(y)
        pull = 2.0 * layout.c1 * np.maximum(y, 0.0)[:, family.owner]
        old = np.zeros((runs, layout.dimension)) if center is None else np.asarray(center, dtype=np.float64)
        firm = np.broadcast_to(np.asarray(weight, dtype=np.float64).reshape(-1, 1), (runs, 1))
        members, means, covariances = (
            c.value for c in (self.groups.members, self.groups.means, self.groups.covariances)
        )
        members = members[slots]
        total = np.where(pull + firm > 0, pull + firm, 1.0)
        stiffness = pull * firm / total
        linear = -(family._slope.value * pull / (2.0 * layout.c1) + a @ family._difference.value.T)
        linear = (linear + stiffness * old[:, d + slots]) @ members @ means + firm * old[:, :d]
        shares, pulled = pull @ members, stiffness @ members
        w, some = np.empty((runs, d)), max(1, _AT_ONCE // d**2)
        for begin in range(0, runs, some):
            part = slice(begin, begin + some)
            matrices = (shares[part] @ covariances.reshape(-1, d * d)).reshape(-1, d, d)
            if firm.any():
                matrices += (means.T * pulled[part, None, :]) @ means
                matrices.reshape(-1, d * d)[:, :: d + 1] += firm[part]
            w[part] = _trust_regions(matrices, linear[part], layout.radius)
        offsets, scores = old[:, d:].copy(), self.groups.scores(w, slots)
        offsets[:, slots] = np.where(pull + firm > 0, (pull * scores + firm * old[:, d + slots]) / total, scores)
        return np.concatenate([w, offsets], axis=1)

    def cvxpy_value(self, cp: Any, x: Any, layout: Layout, pairs: Sequence[int]) -> Any:
        """The cvxpy expression of the summed losses of ``pairs`` at x = (w, a, b)."""
        d, c1, c2 = layout.model.dimension, layout.c1, layout.c2
        total: Any = 0.0
        for pair in pairs:
            delta = self.means[2 * pair] - self.means[2 * pair + 1]
            total = total + c1 * cp.square(delta @ x[:d]) - 2.0 * c1 * c2 * (delta @ x[:d]) + c1 * c2**2
            for slot in (2 * pair, 2 * pair + 1):
                root = _root(self.covariances[slot])
                total = (
                    total + c1 * cp.sum_squares(root @ x[:d]) + c1 * cp.square(self.means[slot] @ x[:d] - x[d + slot])
                )
        return total


@dataclass(frozen=True, eq=False)
class _Groups:
    """Groups of rows that the S slots stand for: U means, covariances and masses, each once.

    Attributes
    ----------
    group : ndarray (S,) of int
        The group of each slot.
    members : Constant (S, U)
        The same as zeros and ones.
    means, covariances, masses : Constant (U, p), (U, p, p), (U,)
        Those of the groups.
    """

    group: Any
    members: Constant
    means: Constant
    covariances: Constant
    masses: Constant

    def scores(self, w: Array, slots: Any = slice(None)) -> Array:
        """Return, for parameters w (..., p), the mean scores of some slots (..., s)."""
        return namespace(w).take(w @ self.means.like(w).T, self.group[slots])

    def turned(self, w: Array) -> Array:
        """Return, for parameters w (..., p), the products of every group's covariance with them (..., U, p)."""
        found = w.reshape((-1, w.shape[-1])) @ self.covariances.like(w)  # (U, R, p); faster than one long product
        return found.swapaxes(0, 1).reshape((*w.shape[:-1], *found.shape[::2]))


def _cells(inside: Any) -> Iterator[Any]:
    """Yield the rows that share a row of booleans (n, S), for each that there is."""
    packed = np.packbits(inside, axis=1)
    packed = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view(np.uint64)  # sorted fast as numbers
    found = np.unique(packed[:, 0] if packed.shape[1] == 1 else packed, axis=0, return_inverse=True)[1].reshape(-1)
    for c in range(int(found.max()) + 1):
        yield np.flatnonzero(found == c)


def _trust_regions(matrices: Any, linear: Any, radius: float) -> Any:
    r"""Minimise :math:`\frac12 w'Qw - l'w` over :math:`|w| \le R` for positive semidefinite Q (R, d, d), l (R, d)."""
    free, found = _inside(matrices, linear)
    for j in np.flatnonzero(~found | (np.linalg.norm(free, axis=1) > radius)):
        free[j] = _on_the_ball(matrices[j], linear[j], radius)
    return free


def _inside(matrices: Any, linear: Any) -> tuple[Any, Any]:
    """Return minima over all w, which mostly lie inside, for a tenth of the eigenbasis's work, and whether they are."""
    from scipy.linalg.lapack import dposv

    free, ridges = np.zeros_like(linear), 1e-12 * np.trace(matrices, axis1=1, axis2=2)
    for j in np.flatnonzero(ridges > 0):
        firm = matrices[j].copy()
        firm.flat[:: len(firm) + 1] += ridges[j]  # columns of zeros and ones are often dependent
        # Symmetric, and in the order of columns nothing is copied; where it is not positive definite, by rounding, the
        # solution is none, and too far from one.
        free[j] = dposv(firm.T, linear[j], lower=True, overwrite_a=True)[1]
    with np.errstate(all="ignore"):
        off = np.linalg.norm((matrices @ free[:, :, None])[:, :, 0] - linear, axis=1)
    return free, (off <= 1e-9 * np.linalg.norm(linear, axis=1)) & (ridges > 0)


def _on_the_ball(matrix: Any, linear: Any, radius: float) -> Any:
    """Return the minimum over the ball in the eigenbasis of the matrix."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, 0.0)
    parts = vectors.T @ linear
    floor = 1e-12 * max(float(values[-1]), 1e-300)
    flat = values <= floor
    free = np.where(flat, 0.0, parts / np.maximum(values, floor))
    # A slope in a direction without curvature (fewer samples than features) leads to the boundary.
    slope = np.linalg.norm(parts[flat]) > 1e-10 * np.linalg.norm(parts)
    if not slope and np.linalg.norm(free) <= radius:
        return vectors @ free

    def excess(shift: float) -> float:
        return float(np.linalg.norm(parts / (values + shift))) - radius

    high = float(np.linalg.norm(parts)) / radius
    low = 1e-14 * high
    if excess(low) <= 0:
        return vectors @ (parts / (values + low))
    from scipy.optimize import brentq

    return vectors @ (parts / (values + float(brentq(excess, low, high, xtol=1e-15 * high, rtol=1e-13))))


def _root(covariance: Any) -> Any:
    values, vectors = np.linalg.eigh(covariance)
    keep = values > 1e-12 * max(float(values[-1]), 1e-300)
    return np.sqrt(values[keep])[:, None] * vectors[:, keep].T
