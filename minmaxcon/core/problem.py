"""The constrained problem: objective, constraints, geometry and data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.core.constraint import ConstraintFamily, StochasticMinMaxConstraint, check_convexity, family_of
from minmaxcon.core.level import LevelProblem, Proximal
from minmaxcon.core.source import Source
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry import DistanceGenerator

__all__ = ["MinMaxProblem", "numbers"]


@dataclass(frozen=True, eq=False)
class MinMaxProblem:
    r"""Minimise :math:`f_0(x)` over X subject to :math:`f_i(x) \le b_i`, every :math:`f_i` a max of expectations.

    Attributes
    ----------
    objective : StochasticMinMaxConstraint
        :math:`f_0`; its bound is the level r that moves during a solve.
    constraints : sequence of StochasticMinMaxConstraint
        :math:`f_1..f_m` with their bounds. A bound of shape (R,) makes the problem one of R runs, solved together.
    primal : DistanceGenerator
        The set X and its geometry.
    data : Source
        The samples of z.
    start : array_like (d,), optional
        Where solvers start; the generator's centre by default. Best is a point that satisfies the constraints strictly.
    proximal : Proximal, optional
        A term added to every function, see :meth:`with_proximal`.
    name : str
        What reports call the problem.
    details : object
        What the plug-in wants to keep with the problem (its data sets, say), a frozen value best; solvers do not look
        at it.

    Raises
    ------
    InvalidInput
        If a part is not of its kind, there is no constraint, a bound is not finite, bounds disagree about the number of
        runs, the convexity that a function declares contradicts itself, or the start is no point of the primal set.
    """

    objective: StochasticMinMaxConstraint
    constraints: Sequence[StochasticMinMaxConstraint]
    primal: DistanceGenerator
    data: Source
    start: Any = None
    proximal: Proximal | None = None
    name: str = "problem"
    details: Any = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        _check_parts(self)
        object.__setattr__(self, "constraints", tuple(self.constraints))
        if not self.constraints:
            raise InvalidInput("constraints", self.constraints, "a constrained problem needs at least one constraint.")
        for constraint in self.constraints:
            _checked_bound(constraint)
        if self.start is not None:
            start = numbers("start", self.start)
            if start.shape != (self.primal.dimension,):
                need = f"must have shape ({self.primal.dimension},), the dimension of primal; change one of them."
                raise InvalidInput("start", start.shape, need)
            if not (np.isfinite(start).all() and self.primal.contains(start, 1e-6)):
                raise InvalidInput("start", self.start, "must be a finite point of the primal set.")
        sizes = {np.size(c.bound) for c in self.constraints if np.ndim(c.bound) == 1}
        if self.proximal is not None and np.ndim(self.proximal.center) == 2:
            sizes.add(np.shape(self.proximal.center)[0])
        if len(sizes) > 1:
            raise InvalidInput("bounds", sorted(sizes), "vectors of bounds must have one length, the number of runs.")
        object.__setattr__(self, "_runs", next(iter(sizes), None))

    @property
    def runs(self) -> int | None:
        """Number R of runs where a bound is a vector, else None."""
        found: int | None = self.__dict__["_runs"]
        return found

    @property
    def modulus(self) -> float:
        """The largest modulus of a function, infinite where one declares none; 0 where the problem is convex."""
        return max(function.modulus for function in (self.objective, *self.constraints))

    @cached_property
    def family(self) -> ConstraintFamily:
        """Objective and constraints, in this order, evaluated together."""
        return family_of([self.objective, *self.constraints])

    @cached_property
    def constraint_family(self) -> ConstraintFamily:
        """The constraints without the objective."""
        return family_of(self.constraints)

    def bounds(self, runs: int | None = None) -> Any:
        """Return the constraints' bounds as an ndarray (R, m); R is the problem's own number of runs by default."""
        count = (self.runs or 1) if runs is None else runs
        columns = [np.broadcast_to(np.asarray(c.bound, dtype=np.float64), (count,)) for c in self.constraints]
        return np.stack(columns, axis=-1)

    def start_point(self, runs: int | None = None) -> Array:
        """Return the starting point of each run, shape (R, d), of the data's engine and precision."""
        runs = (self.runs or 1) if runs is None else runs
        point = np.asarray(self.primal.center if self.start is None else self.start, dtype=np.float64)
        return namespace(self.data.like).asarray(np.tile(point, (runs, 1)), self.data.like)

    def at_level(self, r: Any) -> LevelProblem:
        """Return the level problem at r, a vector (R,) of levels, or a number for all runs.

        Raises
        ------
        InvalidInput
            If levels and bounds disagree about the number of runs.
        """
        level = np.asarray(r, dtype=np.float64)
        if level.ndim == 0:
            level = np.full(self.runs or 1, level)
        if level.ndim != 1 or self.runs not in (None, level.size):
            raise InvalidInput("r", r, f"give one level for each of the {self.runs or 1} runs, or a number.")
        bounds = np.concatenate([level[:, None], self.bounds(level.size)], axis=1)
        return LevelProblem(self.family, bounds, self.primal, self.data, self.proximal)

    def feasibility(self, runs: int | None = None) -> LevelProblem:
        """Return the problem of violating the constraints least, without the objective."""
        bounds = self.bounds(runs)
        return LevelProblem(self.constraint_family, bounds, self.primal, self.data, self.proximal, has_objective=False)

    def with_proximal(self, center: Any, weight: float) -> MinMaxProblem:
        r"""Return the problem with :math:`\hat\rho V(x, \tilde x)` added to every function.

        Parameters
        ----------
        center : array_like (d,) or (R, d)
            :math:`\tilde x`.
        weight : float
            :math:`\hat\rho > 0`.
        """
        if not (np.isfinite(weight) and weight > 0):
            raise InvalidInput("weight", weight, "the proximal weight must be positive and finite.")
        return self._again(proximal=Proximal(np.asarray(center), float(weight)))

    def with_bounds(self, *bounds: Any) -> MinMaxProblem:
        """Return the problem with other bounds, one per constraint, each a number or a vector (R,)."""
        if len(bounds) != len(self.constraints):
            raise InvalidInput("bounds", bounds, f"give one for each of the {len(self.constraints)} constraints.")
        constraints = [c.with_bound(b) for c, b in zip(self.constraints, bounds, strict=True)]
        return self._again(constraints=tuple(constraints))

    def take(self, runs: Any) -> Self:
        """Return the problem of some of the runs."""
        constraints = [
            c.with_bound(np.asarray(c.bound)[runs]) if np.ndim(c.bound) == 1 else c for c in self.constraints
        ]
        proximal = None if self.proximal is None else self.proximal.take(runs)
        return self._again(constraints=tuple(constraints), proximal=proximal)

    def _again(self, **changes: Any) -> Self:
        """Replace fields and keep the families: they do not depend on bounds or on the proximal term."""
        other = replace(self, **changes)
        for kept in ("family", "constraint_family"):
            if kept in self.__dict__:
                other.__dict__[kept] = self.__dict__[kept]
        return other


def numbers(argument: str, value: Any) -> Any:
    """Return ``value`` as a float64 array, or raise :class:`InvalidInput` in the argument's name."""
    try:
        return np.asarray(to_numpy(value), dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(argument, value, "must be an array of numbers, equally many in each row.") from None


def _check_parts(problem: MinMaxProblem) -> None:
    """Refuse what is no objective, constraint, set or source, in the name of the argument."""
    kind = "a StochasticMinMaxConstraint"
    if not isinstance(problem.objective, StochasticMinMaxConstraint):
        raise InvalidInput("objective", problem.objective, f"must be {kind}.")
    constraints: Any = problem.constraints
    if not isinstance(constraints, Iterable) or isinstance(constraints, (str, bytes)):
        raise InvalidInput("constraints", constraints, f"must be a list, each entry {kind}; put a single one in [ ].")
    if not isinstance(constraints, Sequence):
        object.__setattr__(problem, "constraints", tuple(constraints))  # an iterator can be looked at only once
    for i, constraint in enumerate(problem.constraints):
        if not isinstance(constraint, StochasticMinMaxConstraint):
            raise InvalidInput(f"constraints[{i}]", constraint, f"must be {kind}.")
    for function in (problem.objective, *problem.constraints):
        check_convexity(function)
    if not isinstance(problem.primal, DistanceGenerator):
        raise InvalidInput("primal", problem.primal, "must be a DistanceGenerator such as Ball(3, 1.0).")
    if not isinstance(problem.data, Source):
        raise InvalidInput("data", problem.data, 'must be a Source; wrap arrays: Finite({"name": array}).')


def _checked_bound(constraint: StochasticMinMaxConstraint) -> None:
    remedy = "must be finite: a number or a vector (R,)."
    try:
        bound = np.asarray(constraint.bound, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"bound of {constraint.name}", constraint.bound, remedy) from None
    if bound.ndim > 1 or bound.size == 0 or not np.isfinite(bound).all():
        raise InvalidInput(f"bound of {constraint.name}", constraint.bound, remedy)
