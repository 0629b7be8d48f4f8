"""The constrained problem: objective, constraints, geometry and data."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from minmaxcon.arrays import Array, namespace
from minmaxcon.checks import finite_array, instance, positive, whole
from minmaxcon.core.compiled import engine_family
from minmaxcon.core.constraint import ConstraintFamily, StochasticMinMaxConstraint, check_function, family_of
from minmaxcon.core.level import LevelProblem, Proximal
from minmaxcon.core.source import Source
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry import DistanceGenerator

__all__ = ["MinMaxProblem", "require_problem", "solution_point"]


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
        The plug-in's own value, such as a frozen dataclass with its data sets; solvers do not look at it.
    runs : int or None
        Number R of runs where a bound is a vector, else None.
    family : ConstraintFamily
        Objective and constraints, in this order, evaluated together.
    constraint_family : ConstraintFamily
        The constraints without the objective.

    Raises
    ------
    InvalidInput
        If a part is not of its kind, there is no constraint, a bound is not finite, bounds disagree about the number of
        runs, a function has no values or declares a convexity that contradicts itself, or the start is no point of the
        primal set.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> from minmaxcon.data import population_weights
    >>> from minmaxcon.models import GroupRisk, Linear, Risk, SquaredLoss
    >>> rng = np.random.default_rng(0)
    >>> features, group = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    >>> target = features @ [1.0, 2.0] + 0.3 * group
    >>> weights = population_weights(group[:, None] == [0, 1])
    >>> data = mm.Finite({"features": features, "target": target, "group_weights": weights})
    >>> worst = GroupRisk(Linear(2), SquaredLoss(), groups=2, bound=0.1)
    >>> problem = mm.MinMaxProblem(Risk(Linear(2), SquaredLoss()), [worst], mm.Ball(2, 3.0), data)
    >>> mm.solve(problem, seed=0).status.name
    'SOLVED'
    """

    objective: StochasticMinMaxConstraint
    constraints: Sequence[StochasticMinMaxConstraint]
    primal: DistanceGenerator
    data: Source
    start: Any = None
    proximal: Proximal | None = None
    name: str = "problem"
    details: Any = field(default=None, repr=False)

    runs: int | None = field(init=False, repr=False)
    family: ConstraintFamily = field(init=False, repr=False)
    constraint_family: ConstraintFamily = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_parts(self)
        object.__setattr__(self, "constraints", tuple(self.constraints))
        if not self.constraints:
            raise InvalidInput("constraints", self.constraints, "a constrained problem needs at least one constraint.")
        if self.start is not None:
            remedy = "must be a finite point of the primal set."
            start = finite_array("start", self.start, remedy)
            if start.shape != (self.primal.dimension,):
                need = f"must have shape ({self.primal.dimension},), the dimension of primal; change one of them."
                raise InvalidInput("start", start.shape, need)
            if not self.primal.contains(start, 1e-6):
                raise InvalidInput("start", self.start, remedy)
        object.__setattr__(self, "runs", self._count())
        families = family_of([self.objective, *self.constraints]), family_of(self.constraints)
        object.__setattr__(self, "family", engine_family(families[0], self.data))
        object.__setattr__(self, "constraint_family", engine_family(families[1], self.data))

    def _count(self) -> int | None:
        """Return the number of runs that bounds and proximal term agree on, None where there is a single one."""
        bounds = [_checked_bound(constraint) for constraint in self.constraints]
        sizes = {bound.size for bound in bounds if bound.ndim == 1}
        if self.proximal is not None and np.ndim(self.proximal.center) == 2:
            sizes.add(np.shape(self.proximal.center)[0])
        if len(sizes) > 1:
            raise InvalidInput("bounds", sorted(sizes), "vectors of bounds must have one length, the number of runs.")
        return next(iter(sizes), None)

    @property
    def surrogate(self) -> bool:
        """Whether constraints stand in for true measures, and say nothing far from where they were made; False here."""
        return False

    @property
    def modulus(self) -> float:
        """The largest modulus of a function, infinite where one declares none; 0 where the problem is convex."""
        return max(function.modulus for function in (self.objective, *self.constraints))

    def bounds(self, runs: int | None = None) -> Any:
        """Return the constraints' bounds as an ndarray (R, m); R is the problem's own number of runs by default."""
        count = (self.runs or 1) if runs is None else whole("runs", runs)
        columns = [np.broadcast_to(np.asarray(c.bound, dtype=np.float64), (count,)) for c in self.constraints]
        return np.stack(columns, axis=-1)

    def start_point(self, runs: int | None = None) -> Array:
        """Return the starting point of each run, shape (R, d), of the data's engine and precision."""
        runs = (self.runs or 1) if runs is None else whole("runs", runs)
        point = np.asarray(self.primal.center if self.start is None else self.start, dtype=np.float64)
        return namespace(self.data.like).asarray(np.tile(point, (runs, 1)), self.data.like)

    def at_level(self, r: Any) -> LevelProblem:
        """Return the level problem at r, a vector (R,) of levels, or a number for all runs.

        Raises
        ------
        InvalidInput
            If levels and bounds disagree about the number of runs.
        """
        # Solvers pass arrays, in which the level of a run that has none yet is infinite.
        level = r if type(r) is np.ndarray and r.dtype == np.float64 else finite_array("r", r, "must be finite.")
        if level.ndim == 0:
            level = np.full(self.runs or 1, level)
        if level.ndim != 1 or self.runs not in (None, level.size):
            raise InvalidInput("r", r, f"give one level for each of the {self.runs or 1} runs, or a number.")
        bounds = np.concatenate([level[:, None], self.bounds(level.size)], axis=1)
        return LevelProblem(self.family, bounds, self.primal, self.data, self.proximal, surrogate=self.surrogate)

    def feasibility(self, runs: int | None = None) -> LevelProblem:
        """Return the problem of violating the constraints least, without the objective."""
        kind = {"has_objective": False, "surrogate": self.surrogate}
        return LevelProblem(self.constraint_family, self.bounds(runs), self.primal, self.data, self.proximal, **kind)

    def with_proximal(self, center: Any, weight: Any) -> MinMaxProblem:
        r"""Return the problem with :math:`\hat\rho V(x, \tilde x)` added to every function.

        Parameters
        ----------
        center : array_like (d,) or (R, d)
            :math:`\tilde x`.
        weight : float or array_like (R,)
            :math:`\hat\rho > 0`, one for all runs or one each.
        """
        need = f"must be finite, of shape ({self.primal.dimension},) or one row per run."
        found = finite_array("center", center, need)
        if found.shape[-1:] != (self.primal.dimension,) or found.ndim > 2:
            raise InvalidInput("center", found.shape, need)
        if np.ndim(weight) == 0:
            return self._again(proximal=Proximal(found, positive("weight", weight)))
        need = "must be positive and finite: a number, or one per run where the centres are."
        weights = finite_array("weight", weight, need)
        if not (weights > 0).all() or weights.shape != found.shape[:-1]:
            raise InvalidInput("weight", weight, need)
        return self._again(proximal=Proximal(found, weights))

    def with_bounds(self, *bounds: Any) -> Self:
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

    def over(self, data: Source, wrapped: Callable[[ConstraintFamily], ConstraintFamily]) -> Self:
        """Return the problem on other data, its families evaluated as ``wrapped`` returns them."""
        families = {name: wrapped(getattr(self, name)) for name in ("family", "constraint_family")}
        return self._again(data=data, **families)

    def _again(self, **changes: Any) -> Self:
        """Return a copy with some fields changed; unless they are among them, the families stay as they are."""
        other = copy.copy(self)
        for name, value in changes.items():
            object.__setattr__(other, name, value)
        object.__setattr__(other, "runs", other._count())
        return other


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
        check_function(function)
    if not isinstance(problem.primal, DistanceGenerator):
        raise InvalidInput("primal", problem.primal, "must be a DistanceGenerator such as Ball(3, 1.0).")
    if problem.proximal is not None:
        instance("proximal", problem.proximal, Proximal, "must be a Proximal, or None; see with_proximal().")
    if not isinstance(problem.data, Source):
        raise InvalidInput("data", problem.data, 'must be a Source; wrap arrays: Finite({"name": array}).')


def _checked_bound(constraint: StochasticMinMaxConstraint) -> Any:
    """Return a bound as an ndarray, () or (R,), or refuse it in the constraint's name."""
    name, remedy = f"bound of {constraint.name}", "must be finite: a number or a vector (R,)."
    bound = finite_array(name, constraint.bound, remedy)
    if bound.ndim > 1 or bound.size == 0:
        raise InvalidInput(name, constraint.bound, remedy)
    return bound


def require_problem(problem: Any) -> None:
    """Refuse (InvalidInput) an argument ``problem`` that is none."""
    if not isinstance(problem, MinMaxProblem):
        raise InvalidInput("problem", problem, "must be a MinMaxProblem, such as load_problem() returns.")


def solution_point(problem: Any, x: Any, details: type | None = None) -> Any:
    """Return a solution of one run as a plug-in's ``evaluate`` reads it, a float64 array (d,) of finite numbers.

    Parameters
    ----------
    problem : MinMaxProblem
        What was given as the problem.
    x : array_like (d,)
        What was given as the solution; whether it lies in the set is not asked.
    details : type, optional
        The type of the details that the plug-in gives its problems: those of other plug-ins are refused.

    Raises
    ------
    InvalidInput
        If the problem is none, or another plug-in's, or x is no such point: one with a complex number, a boolean or a
        masked entry is none.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> mm.core.solution_point(mm.load_problem("toy"), [1])
    array([1.])
    """
    require_problem(problem)
    if details is not None:
        instance("problem", problem.details, details, "these are the details of a problem of another plug-in.")
    remedy = f"must be a point, {problem.primal.dimension} finite numbers."
    point = finite_array("x", x, remedy)
    if point.shape != (problem.primal.dimension,):
        raise InvalidInput("x", x, remedy)
    return point
