"""The prox of any generator as a convex program, with which closed forms are compared.

Every objective that is returned belongs to a point that lies in the set to rounding, so a closed form can be held
against it without an allowance for the solver's infeasibility: the minimiser's objective must not be larger.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.checks import finite_array, instance, number
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry import DistanceGenerator, DualPoint, InnerBlock, PerspectiveGenerator
from minmaxcon.reference.solver import ReferenceFailed, feasible_point, load_cvxpy, minimize

__all__ = [
    "dual_prox_objective",
    "prox_objective",
    "reference_dual_prox",
    "reference_linear_minimum",
    "reference_prox",
    "reference_support",
]


def prox_objective(
    generator: DistanceGenerator,
    point: Any,
    anchor: Any,
    gradient: Any,
    step: float,
    *,
    center: Any = None,
    weight: float = 0.0,
) -> float:
    r"""Return :math:`\langle g, u\rangle + V(u, u')/\eta + \hat\rho V(u, \tilde u)` at one point.

    The divergences are built from ``value`` and ``gradient``, never from the generator's own ``divergence``.

    Parameters
    ----------
    generator : DistanceGenerator
        The geometry.
    point, anchor, gradient : ndarray (d,)
        u, :math:`u'` and g.
    step : float
        :math:`\eta`.
    center : ndarray (d,), optional
        :math:`\tilde u`.
    weight : float
        :math:`\hat\rho`.

    Returns
    -------
    float
        The objective.

    Raises
    ------
    InvalidInput
        If an argument is not what it must be.
    """
    step = _step(step)
    point, anchor, gradient = _vectors(generator, point=point, anchor=anchor, gradient=gradient)
    if center is not None:
        (center,), weight = _vectors(generator, center=center), number("weight", weight, _WEIGHT, least=0.0)

    def divergence(base: Any) -> Any:
        return generator.value(point) - generator.value(base) - generator.gradient(base) @ (point - base)

    total = gradient @ point + divergence(anchor) / step
    return float(total if center is None else total + weight * divergence(center))


def reference_prox(
    generator: DistanceGenerator,
    anchor: Any,
    gradient: Any,
    step: float,
    *,
    center: Any = None,
    weight: float = 0.0,
) -> tuple[Any, float]:
    r"""Minimise :math:`\langle g, u\rangle + V(u, u')/\eta + \hat\rho V(u, \tilde u)` by a conic solver.

    Parameters
    ----------
    generator : DistanceGenerator
        The geometry; only its value, gradient and cvxpy form define the program.
    anchor, gradient : ndarray (d,)
        :math:`u'` and g.
    step : float
        :math:`\eta > 0`.
    center : ndarray (d,), optional
        :math:`\tilde u`.
    weight : float
        :math:`\hat\rho \ge 0`.

    Returns
    -------
    point : ndarray (d,)
        A minimiser, in the set to rounding.
    objective : float
        The objective at this point, see :func:`prox_objective`.

    Raises
    ------
    InvalidInput
        If an argument is not what it must be.
    MissingDependency
        If cvxpy is not installed.
    ReferenceFailed
        If the solver fails, or its point is far from the set.
    """
    cp = load_cvxpy("the reference prox")
    step = _step(step)
    anchor, gradient = _vectors(generator, anchor=anchor, gradient=gradient)
    if center is not None:
        (center,), weight = _vectors(generator, center=center), number("weight", weight, _WEIGHT, least=0.0)
    rate = 1.0 / step
    linear = gradient - rate * generator.gradient(anchor)
    if center is not None:
        rate += weight
        linear = linear - weight * generator.gradient(center)
    u = cp.Variable(generator.dimension)
    minimize(cp, generator.cvxpy_value(cp, u) + (linear / rate) @ u, generator.cvxpy_constraints(cp, u))
    point = feasible_point(generator, u.value)
    return point, prox_objective(generator, point, anchor, gradient, step, center=center, weight=weight)


def reference_linear_minimum(generator: DistanceGenerator, g: Any) -> tuple[Any, float]:
    r"""Minimise :math:`\langle g, u\rangle` over the set by a conic solver.

    Parameters
    ----------
    generator : DistanceGenerator
        The geometry.
    g : ndarray (d,)
        The linear term.

    Returns
    -------
    point : ndarray (d,)
        A minimiser, in the set to rounding.
    value : float
        The value there.

    Raises
    ------
    InvalidInput
        If an argument is not what it must be.
    MissingDependency
        If cvxpy is not installed.
    ReferenceFailed
        If the solver fails, or its point is far from the set.
    """
    cp = load_cvxpy("the reference minimum of a linear function")
    (g,) = _vectors(generator, g=g)
    u = cp.Variable(generator.dimension)
    minimize(cp, g @ u, generator.cvxpy_constraints(cp, u))
    point = feasible_point(generator, u.value)
    return point, float(g @ point)


def dual_prox_objective(
    generator: PerspectiveGenerator, point: DualPoint, anchor: DualPoint, u: Any, v: Any, step: float
) -> float:
    r"""Return :math:`-\langle u,y\rangle - \langle v,a\rangle + V_y/\tau + d_y` at one point of the dual set.

    Parameters
    ----------
    generator : PerspectiveGenerator
        The dual generator.
    point, anchor : DualPoint
        Where the objective is taken, and :math:`(y', a')`.
    u, v : ndarray (k,), (p,)
        The linear terms.
    step : float
        :math:`\tau`.

    Returns
    -------
    float
        The objective.

    Raises
    ------
    InvalidInput
        If an argument is not what it must be.
    """
    u, v = _terms(generator, u, v)
    step = _step(step)
    for name, value in (("point", point), ("anchor", anchor)):
        instance(name, value, DualPoint, _DUAL_POINT)
    linear = point.weights @ u + generator.scaled(point) @ v
    return float(generator.divergence(point, anchor) / step + generator.penalty(point) - linear)


def reference_dual_prox(
    generator: PerspectiveGenerator, anchor: DualPoint, u: Any, v: Any, step: float
) -> tuple[DualPoint, float]:
    r"""Minimise :math:`-\langle u,y\rangle - \langle v,a\rangle + V_y/\tau + d_y` jointly in y and a by a conic solver.

    Parameters
    ----------
    generator : PerspectiveGenerator
        The dual generator; its blocks' cvxpy forms define the program.
    anchor : DualPoint
        :math:`(y', a')`, one point with positive weights.
    u, v : ndarray (k,), (p,)
        The linear terms.
    step : float
        :math:`\tau > 0`.

    Returns
    -------
    point : DualPoint
        A minimiser, in the dual set to rounding.
    objective : float
        The objective at this point, see :func:`dual_prox_objective`.

    Raises
    ------
    InvalidInput
        If an argument is not what it must be.
    MissingDependency
        If cvxpy is not installed.
    ReferenceFailed
        If the solver fails.
    """
    cp = load_cvxpy("the reference prox of the dual generator")
    u, v = _terms(generator, u, v)
    step = _step(step)
    instance("anchor", anchor, DualPoint, _DUAL_POINT)
    point = _solve_dual(cp, generator, u, v, anchor, step)
    return point, dual_prox_objective(generator, point, anchor, u, v, step)


def reference_support(generator: PerspectiveGenerator, u: Any, v: Any) -> tuple[DualPoint, float]:
    r"""Maximise :math:`\langle u,y\rangle + \langle v,a\rangle - d_y` over the dual set by a conic solver.

    Parameters
    ----------
    generator : PerspectiveGenerator
        The dual generator.
    u, v : ndarray (k,), (p,)
        The linear terms.

    Returns
    -------
    point : DualPoint
        A maximiser, in the dual set to rounding.
    value : float
        The value there: at most the true maximum, which is the largest of ``generator.support(u, v)``.

    Raises
    ------
    InvalidInput
        If an argument is not what it must be.
    MissingDependency
        If cvxpy is not installed.
    ReferenceFailed
        If the solver fails.
    """
    cp = load_cvxpy("the reference support function")
    u, v = _terms(generator, u, v)
    point = _solve_dual(cp, generator, u, v)
    return point, float(point.weights @ u + generator.scaled(point) @ v - generator.penalty(point))


_WEIGHT = "must be finite and at least 0."
_DUAL_POINT = "must be a DualPoint, such as generator.center() returns."


def _step(value: Any) -> float:
    return number("step", value, "must be positive and finite.", above=0.0)


def _vector(name: str, value: Any, size: int) -> Any:
    remedy = f"must be a vector of {size} finite numbers."
    found = finite_array(name, value, remedy)
    if found.shape != (size,):
        raise InvalidInput(name, value, remedy)
    return found


def _vectors(generator: Any, **given: Any) -> list[Any]:
    """Return vectors of a geometry's space."""
    instance("generator", generator, DistanceGenerator, "must be a DistanceGenerator such as Ball(3, 1.0).")
    return [_vector(name, value, generator.dimension) for name, value in given.items()]


def _terms(generator: Any, u: Any, v: Any) -> tuple[Any, Any]:
    """Return the linear terms of a dual set."""
    instance("generator", generator, PerspectiveGenerator, "must be a PerspectiveGenerator.")
    return _vector("u", u, generator.levels), _vector("v", v, generator.inner_dimension)


def _solve_dual(
    cp: Any, generator: PerspectiveGenerator, u: Any, v: Any, anchor: DualPoint | None = None, step: float = 1.0
) -> DualPoint:
    """Solve the joint program, with the divergence from ``anchor`` if there is one."""
    y = cp.Variable(generator.levels, nonneg=True)
    inner = _by_level(generator)
    scaled = [cp.Variable(cut.stop - cut.start) for _, _, cut in inner]
    constraints = [cp.sum(y) == 1]
    total = -np.asarray(u) @ y
    for (i, block, cut), a in zip(inner, scaled, strict=True):
        constraints += block.cvxpy_constraints(cp, a, y[i])
        total = total + block.cvxpy_penalty(cp, a, y[i]) - np.asarray(v[cut]) @ a
    scale = 1.0
    if anchor is not None:
        # rel_entr(y, y') with the logarithm taken from the anchor, which stays finite where y' is tiny.
        relative = generator.entropy_weight * (-cp.sum(cp.entr(y)) - anchor.log_weights @ y)
        for (i, block, cut), a in zip(inner, scaled, strict=True):
            relative = relative + block.cvxpy_divergence(cp, a, y[i], anchor.inner[cut])
        total = total + relative / step
        scale = step / (1.0 + step)
    minimize(cp, scale * total, constraints)
    if y.value is None:
        raise ReferenceFailed("the reference solver found the dual set empty; check the blocks' cvxpy_constraints.")
    weights = np.maximum(y.value, 1e-300)
    weights /= weights.sum()
    joined = np.zeros(generator.inner_dimension)
    for (i, block, cut), a in zip(inner, scaled, strict=True):
        alpha = a.value / max(float(y.value[i]), 1e-12)
        # The nearest point of A: the block's prox without a linear term, at a step that leaves no room.
        joined[cut] = block.prox(np.zeros_like(alpha), alpha, 1e12)[0]
    return generator.point(weights, joined)


def _by_level(generator: PerspectiveGenerator) -> list[tuple[int, InnerBlock, slice]]:
    """Return index, block and slice of the inner variables of every level that has some."""
    found, begin = [], 0
    for i, block in enumerate(generator.blocks):
        if block is not None:
            found.append((i, block, slice(begin, begin + block.dimension)))
            begin += block.dimension
    return found
