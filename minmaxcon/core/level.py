r"""The level problem :math:`H = \min_{x \in X}\max_i f_i(x) + d_x(x) - b_i` that an oracle solves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.checks import finite_array
from minmaxcon.core.constraint import ConstraintFamily, Evaluation, check_evaluation, check_real
from minmaxcon.core.source import Source, in_double
from minmaxcon.geometry import DistanceGenerator, DualPoint, PerspectiveGenerator
from minmaxcon.geometry.perspective import EntropyWeight

__all__ = ["LevelProblem", "Proximal", "expectations", "real_evaluation"]

_SCORES_AT_ONCE = 2**22  # runs x rows of an exact pass: 32 MiB of scores in float64


@dataclass(frozen=True, eq=False, slots=True)
class Proximal:
    r"""The proximal term :math:`d_x(x) = \hat\rho V(x, \tilde x)`.

    In a Euclidean set it is :math:`\frac{\hat\rho}2|x-\tilde x|^2`.

    Attributes
    ----------
    center : ndarray (d,) or (R, d)
        :math:`\tilde x`.
    weight : float or ndarray (R,)
        :math:`\hat\rho > 0`, one for all runs or one each.

    Raises
    ------
    InvalidInput
        If one is no finite, real number or array of them.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> term = mm.core.Proximal(np.zeros((1, 2)), 3.0)
    >>> term.value(mm.Ball(2, 1.0), np.array([[1.0, 0.0]]))
    array([1.5])
    """

    center: Any
    weight: Any

    def __post_init__(self) -> None:
        """Refuse what is no real number; traced arrays have no values yet."""
        for name in ("center", "weight"):
            value = getattr(self, name)
            if not (hasattr(value, "dtype") and namespace(value).traced):
                finite_array(name, value, "must be finite, of real numbers.")

    @property
    def least(self) -> float:
        """The smallest weight."""
        return float(np.min(self.weight))

    def value(self, primal: DistanceGenerator, x: Array) -> Array:
        """:math:`d_x(x)`, shape (...,)."""
        xp = namespace(x)
        weight = self.weight if np.ndim(self.weight) == 0 else xp.asarray(self.weight, x)
        return weight * primal.divergence(x, xp.asarray(self.center, x))

    def gradient(self, primal: DistanceGenerator, x: Array) -> Array:
        r""":math:`\hat\rho(\nabla\omega(x) - \nabla\omega(\tilde x))`, shape (..., d)."""
        center, weight = self.parts(x)
        return weight * (primal.gradient(x) - primal.gradient(center))

    def parts(self, like: Array) -> tuple[Array, Any]:
        """Return centre and weight as a prox takes them: a number, or a column (R, 1) of the engine of ``like``."""
        xp = namespace(like)
        if np.ndim(self.weight) == 0:
            weight = self.weight if xp.traced else float(self.weight)
        else:
            weight = xp.asarray(self.weight[:, None], like)
        return xp.asarray(self.center, like), weight

    def take(self, runs: Any) -> Proximal:
        """Return the term of some of the runs."""
        center = self.center if np.ndim(self.center) == 1 else self.center[runs]
        return Proximal(center, self.weight if np.ndim(self.weight) == 0 else self.weight[runs])


def expectations(family: ConstraintFamily, x: Array, data: Source) -> Evaluation:
    """Exact means over finite data, by one pass in pieces of bounded memory.

    Parameters
    ----------
    family : ConstraintFamily
        The constraints.
    x : array (R, d)
        One point per run.
    data : Source
        Finite data.

    Returns
    -------
    Evaluation
        F (R, k), G (R, p) and a pullback that makes a second pass when there is more than one piece; where the data are
        streamed it reads them once more. A family that knows its means makes no pass.
    """
    if family.knows_means(data):
        found = real_evaluation(family.means(x, data))
        check_evaluation(family, found, tuple(x.shape[:-1]))
        return found
    rows = max(1024, _SCORES_AT_ONCE // max(1, int(x.shape[0])))
    if data.streamed:
        return _streamed(family, x, data, rows)
    parts = [(share, real_evaluation(family.evaluate(x, batch))) for share, batch in data.chunks(rows)]
    check_evaluation(family, parts[0][1], tuple(x.shape[:-1]))
    if len(parts) == 1:
        return parts[0][1]
    mean = sum(share * part.F for share, part in parts)
    moment = sum(share * part.G for share, part in parts)

    def pullback(y: Array, a: Array) -> Array:
        return sum(share * part.pullback(y, a) for share, part in parts)

    return Evaluation(mean, moment, pullback)


def _streamed(family: ConstraintFamily, x: Array, data: Source, rows: int) -> Evaluation:
    """Return the means of data of which no two pieces are kept."""

    def means(batch: Any) -> tuple[Array, Array]:
        part = real_evaluation(family.evaluate(x, batch))
        check_evaluation(family, part, tuple(x.shape[:-1]))
        return part.F, part.G

    def pullback(y: Array, a: Array) -> Array:
        return data.summed(lambda batch: (real_evaluation(family.evaluate(x, batch)).pullback(y, a),), rows)[0]

    mean, moment = data.summed(means, rows)
    return Evaluation(mean, moment, pullback)


def real_evaluation(found: Evaluation) -> Evaluation:
    """Refuse values and gradients that are no real numbers of floating point, before arithmetic meets them."""
    check_real("F", found.F, "evaluate gives F")
    check_real("G", found.G, "evaluate gives G", whole=True)

    def pullback(y: Array, a: Array) -> Array:
        gradient = found.pullback(y, a)
        check_real("pullback", gradient, "pullback gives a gradient", whole=True)
        return gradient

    return Evaluation(found.F, found.G, pullback)


@dataclass(frozen=True, eq=False)
class LevelProblem:
    """What an oracle is asked to solve: the largest of several functions, each minus its bound.

    Attributes
    ----------
    family : ConstraintFamily
        The functions :math:`f_i`, evaluated together.
    bounds : ndarray (R, k)
        :math:`b_i` of each run; column 0 is the level r when ``has_objective``.
    primal : DistanceGenerator
        The set X and its generator.
    data : Source
        The samples.
    proximal : Proximal or None
        The term :math:`d_x`.
    has_objective : bool
        Whether function 0 is an objective at level r.
    surrogate : bool
        Whether functions stand in for true measures, see :attr:`MinMaxProblem.surrogate`.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> import numpy as np
    >>> level = mm.load_problem("toy").at_level(1.5)
    >>> level.runs, level.values(np.array([[1.0]])).round(2)  # f_0 - r and f_1 - b_1
    (1, array([[1., 1.]]))
    """

    family: ConstraintFamily
    bounds: Any
    primal: DistanceGenerator
    data: Source
    proximal: Proximal | None = None
    has_objective: bool = True
    surrogate: bool = False

    @property
    def runs(self) -> int:
        """Number R of runs."""
        return int(self.bounds.shape[0])

    @property
    def modulus(self) -> float:
        """The declared modulus of the functions, less the least weight of a proximal term; at most 0 when convex."""
        declared = max(function.modulus for function in self.family.constraints)
        return declared - (0.0 if self.proximal is None else self.proximal.least)

    def dual(self, entropy_weight: EntropyWeight = "free") -> PerspectiveGenerator:
        """Return the dual generator of these functions with the entropy weight K."""
        return PerspectiveGenerator([c.dual for c in self.family.constraints], entropy_weight)

    def take(self, runs: Sequence[int] | Any) -> LevelProblem:
        """Return the problem of some of the runs."""
        proximal = None if self.proximal is None else self.proximal.take(runs)
        return replace(self, bounds=self.bounds[runs], proximal=proximal)

    def values(self, x: Array) -> Any:
        """Exact :math:`f_i(x) + d_x(x)` on finite data, an ndarray (R, k), in float64 whatever the data's precision.

        Parameters
        ----------
        x : array (R, d)
            One point per run.
        """
        x = namespace(x).double(x)
        return self.values_of(expectations(self.family, x, in_double(self.data)), x)

    def values_of(self, found: Evaluation, x: Array) -> Any:
        """Return :meth:`values` at points x (R, d) in float64 where the means are ``found``."""
        value = self.dual().support(found.F, found.G)
        if self.proximal is not None:
            value = value + self.proximal.value(self.primal, x)[..., None]
        return np.asarray(to_numpy(value), dtype=np.float64)

    def lagrangian(self, x: Array, weights: Array, scaled: Array) -> tuple[Array, Array]:
        r"""The Lagrangian at fixed duals and its gradient in x, on the full data.

        .. math:: \Phi(x) = \sum_i y_i (E F_i - b_i) + \langle a, E\,G\rangle - \sum_i y_i g_i(a_i/y_i) + d_x(x)

        Parameters
        ----------
        x : array (R, d)
            One point per run.
        weights : array (R, k)
            y.
        scaled : array (R, p)
            a.

        Returns
        -------
        value : array (R,)
            The Lagrangian.
        gradient : array (R, d)
            Its gradient.
        """
        value, gradient, _ = self.lagrangian_terms(x, weights, scaled)
        return value, gradient

    def lagrangian_terms(self, x: Array, weights: Array, scaled: Array) -> tuple[Array, Array, Array]:
        r"""Return value and gradient of :meth:`lagrangian`, and the sum of the sizes of the terms of the value (R,).

        What the value loses by rounding is a share of that sum, however much the terms cancel.
        """
        value, size, slope = self.lagrangian_at(x, weights, scaled)
        return value, slope(), size

    def lagrangian_at(self, x: Array, weights: Array, scaled: Array) -> tuple[Array, Array, Callable[[], Array]]:
        """Return the value of :meth:`lagrangian`, the size of its terms, and a function that gives its gradient.

        The gradient takes a pass of its own.
        """
        return self.lagrangian_of(weights, scaled, x)(x)

    def lagrangian_of(
        self, weights: Array, scaled: Array, like: Array
    ) -> Callable[..., tuple[Array, Array, Callable[[], Array]]]:
        """Return :meth:`lagrangian_at` as a function of points like ``like``: the part of the duals is found once.

        Its second argument are the means at the points, where they are known.
        """
        xp, dual, proximal = namespace(like), self.dual(), self.proximal
        penalty = dual.penalty(_dual_point(dual, weights, scaled))
        bounds, sizes = xp.asarray(self.bounds, like), xp.abs(scaled)

        def at(x: Array, found: Evaluation | None = None) -> tuple[Array, Array, Callable[[], Array]]:
            found = expectations(self.family, x, self.data) if found is None else found
            value = xp.dot(weights, found.F - bounds) + xp.dot(scaled, found.G) - penalty
            size = xp.dot(weights, xp.abs(found.F) + xp.abs(bounds)) + xp.dot(sizes, xp.abs(found.G))
            size = size + xp.abs(penalty)
            if proximal is None:
                return value, size, lambda: found.pullback(weights, scaled)
            extra = proximal.value(self.primal, x)
            value, size = value + extra, size + xp.abs(extra)
            return value, size, lambda: found.pullback(weights, scaled) + proximal.gradient(self.primal, x)

        return at


def _dual_point(dual: PerspectiveGenerator, weights: Array, scaled: Array) -> DualPoint:
    xp = namespace(weights)
    spread = dual.spread(weights)
    inner = scaled / xp.where(spread > 0, spread, spread + 1.0)
    return dual.point(weights, inner)
