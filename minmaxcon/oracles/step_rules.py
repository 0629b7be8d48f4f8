r"""Step sizes of stochastic mirror descent.

A rule keeps its own immutable memory and gives, at each step, the primal step :math:`\eta_t`, the dual step
:math:`\tau_t` and the averaging weight, each of shape (R, 1).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from minmaxcon.arrays import Array, namespace
from minmaxcon.checks import finite_array, number
from minmaxcon.core import LevelProblem
from minmaxcon.errors import InvalidInput, UnknownName
from minmaxcon.geometry import PerspectiveGenerator

__all__ = ["Adaptive", "InverseSqrt", "StepRule", "Theory", "step_rule"]


def _positive(name: str, value: Any) -> Any:
    remedy = "must be positive and finite: a number, or a vector with one per run."
    numbers = finite_array(name, value, remedy)
    if numbers.ndim > 1 or numbers.size == 0 or not (numbers > 0).all():
        raise InvalidInput(name, value, remedy)
    return float(numbers) if numbers.ndim == 0 else numbers


def _column(value: Any, x: Array) -> Any:
    """One number per run as a column like x; a plain number stays a Python float, which promotes no array."""
    return value if isinstance(value, float) else namespace(x).asarray(value[:, None], x)


Probe = Callable[[], tuple[Array, Array]]
"""Measures the mean squared dual norms of the stochastic gradients in x and in (y, a) over the sets, each (R,)."""


Kept = tuple[Array, ...] | None
"""Memory of a rule from one query to the next: arrays of one row a run."""


class StepRule(ABC):
    """A rule for step sizes.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.oracles import StepRule
    >>> class Fixed(StepRule):  # steps of one length, equal averaging weights
    ...     def start(self, problem, dual, x, probe, kept=None):
    ...         return None
    ...     def next(self, memory, problem, x, gradient, u, v):
    ...         return 0.05, 0.05, 1.0, memory
    >>> mm.solve(mm.load_problem("toy"), mm.SFLS(mm.SMD(step_rule=Fixed())), seed=0).status.name
    'SOLVED'
    """

    settings: tuple[Any, ...] = ()

    @property
    def runs(self) -> int | None:
        """Number of runs where a setting is a vector, else None."""
        return next((value.size for value in self.settings if not isinstance(value, float)), None)

    def take(self, runs: Any) -> Self:
        """Return the rule of some of the runs: vectors with one value per run are reduced to those."""
        if self.runs is None:
            return self

        def some(value: Any) -> Any:
            return value[runs] if isinstance(value, np.ndarray) and value.ndim == 1 else value

        other = copy.copy(self)
        for name, value in vars(self).items():
            setattr(other, name, some(value))
        other.settings = tuple(some(value) for value in self.settings)
        return other

    @abstractmethod
    def start(
        self, problem: LevelProblem, dual: PerspectiveGenerator, x: Array, probe: Probe, kept: Kept = None
    ) -> Any:
        """Return the memory at the start of a query.

        Parameters
        ----------
        problem : LevelProblem
            The level problem.
        dual : PerspectiveGenerator
            The dual generator.
        x : array (R, d)
            The starting points.
        probe : callable
            Measures gradients at points drawn from the sets; it draws from the data only when called.
        kept : tuple of array, optional
            What :meth:`kept` gave of the query before, zero in the rows of runs that had none.
        """

    def kept(self, memory: Any) -> Kept:
        """Return what the next query starts from, arrays of one row a run; by default nothing."""
        return None

    @abstractmethod
    def next(
        self, memory: Any, problem: LevelProblem, x: Array, gradient: Array, u: Array, v: Array
    ) -> tuple[Any, Any, Any, Any]:
        r"""Return :math:`\eta_t`, :math:`\tau_t`, the averaging weight (each (R, 1) or a number), and the memory.

        Parameters
        ----------
        memory : object
            The rule's memory.
        problem : LevelProblem
            The level problem, whose geometry has the norms.
        x, gradient : array (R, d)
            The primal point and stochastic gradient.
        u : array (R, k)
            Batch means of F less the bounds.
        v : array (R, p)
            Batch means of G.
        """


_Travel = tuple[Array, Array, Array, Array, Any, int]
"""Memory of :class:`Adaptive`: the start, squared distance, sums of squares, dual scale (R, 1), and steps taken."""


class Adaptive(StepRule):
    r"""Distance over gradients, the default: no step size to tune.

    .. math::
        \eta_t = \frac{\max(d_0, \max_{s\le t}\|x_s - x_0\|)}{\sqrt{\sum_{s\le t}\|g_{x,s}\|_*^2}}, \qquad
        \tau_t = \frac{cK}{\sqrt{\phi + \sum_{s\le t}(\max_i u_{s,i}^2 + |v_s|_2^2)}}

    with norm and dual norm of the geometry. Sums restart at each query, while the distance goes on from half of that of
    the query before, so that a query need not learn again how far the solution may lie. The averaging weight is
    :math:`t\eta_t`: the steps after the first few, which still carry the start, count most.

    Parameters
    ----------
    distance : float or array (R,)
        :math:`d_0`, a first guess of the distance to travel; small is safe (1e-3 gives the same results).
    dual_scale : float or array (R,)
        c; anything between 0.03 and 1 was found to work.
    floor : float
        :math:`\phi`, which keeps the first dual steps bounded.

    Raises
    ------
    InvalidInput
        If a setting is not positive.

    References
    ----------
    Ivgi, Hinder and Carmon (2023), "DoG is SGD's best friend: a parameter-free dynamic step size schedule".

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.oracles import Adaptive
    >>> mm.solve(mm.load_problem("toy"), mm.SFLS(mm.SMD(step_rule=Adaptive(distance=0.1))), seed=0).status.name
    'SOLVED'
    """

    def __init__(self, distance: Any = 1e-2, dual_scale: Any = 0.3, floor: float = 1.0) -> None:
        self.distance = _positive("distance", distance)
        self.dual_scale = _positive("dual_scale", dual_scale)
        self.floor = number("floor", floor, "must be positive and finite.", above=0.0)
        self.settings = (self.distance, self.dual_scale)

    def start(
        self, problem: LevelProblem, dual: PerspectiveGenerator, x: Array, probe: Probe, kept: Kept = None
    ) -> Any:
        """See :meth:`StepRule.start`."""
        xp = namespace(x)
        zero = xp.zeros((x.shape[0], 1), x)
        distance = zero + _column(self.distance, x) ** 2
        if kept is not None:
            distance = xp.maximum(distance, _KEPT * kept[0])
        scale = _column(self.dual_scale, x) * float(dual.entropy_weight)
        # the floor under the gradients only matters where they vanish, and bounds the step there
        return x, distance, zero + 1e-8, zero + self.floor, scale, 0

    def kept(self, memory: Any) -> Kept:
        """See :meth:`StepRule.kept`: the squared distance."""
        return (memory[1],)

    def next(
        self, memory: Any, problem: LevelProblem, x: Array, gradient: Array, u: Array, v: Array
    ) -> tuple[Any, Any, Any, Any]:
        """See :meth:`StepRule.next`."""
        xp, geometry = namespace(x), problem.primal
        travel: _Travel = memory
        origin, distance, gradients, duals, scale, steps = travel
        distance = xp.maximum(distance, geometry.squared_norm(x - origin)[..., None])
        gradients = gradients + geometry.squared_dual_norm(gradient)[..., None]
        duals = duals + (xp.row_max(u * u) + xp.row_dot(v, v))
        eta, steps = xp.sqrt(xp.number(distance / gradients)), steps + 1
        return eta, scale / xp.sqrt(xp.number(duals)), steps * eta, (origin, distance, gradients, duals, scale, steps)


_KEPT = 0.25
"""The share of the squared distance that the next query starts from."""


class _Falling(StepRule):
    r"""Steps and averaging weight that fall like :math:`1/\sqrt{t+1}`, from the scales with which a query starts."""

    def next(
        self, memory: Any, problem: LevelProblem, x: Array, gradient: Array, u: Array, v: Array
    ) -> tuple[Any, Any, Any, Any]:
        """See :meth:`StepRule.next`."""
        t, scale, dual_scale = memory
        weight = (t + 1.0) ** -0.5
        return _full(scale * weight, x), _full(dual_scale * weight, x), weight, (t + 1, scale, dual_scale)


class InverseSqrt(_Falling):
    r""":math:`\eta_t = c/\sqrt{t+1}` and :math:`\tau_t = c_y/\sqrt{t+1}`, averaging weight :math:`1/\sqrt{t+1}`.

    Parameters
    ----------
    scale : float or array (R,)
        c; the paper tunes it among 1e-2, 1e-1 and 1. A vector tries several in one solve.
    dual_scale : float or array (R,), optional
        :math:`c_y`; the paper does not give it. By default the same as ``scale``.

    Raises
    ------
    InvalidInput
        If a setting is not positive.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.oracles import InverseSqrt
    >>> mm.solve(mm.load_problem("toy"), mm.SFLS(mm.SMD(step_rule=InverseSqrt(scale=0.2))), seed=0).status.name
    'SOLVED'
    """

    def __init__(self, scale: Any = 0.1, dual_scale: Any = None) -> None:
        self.scale = _positive("scale", scale)
        self.dual_scale = self.scale if dual_scale is None else _positive("dual_scale", dual_scale)
        self.settings = (self.scale, self.dual_scale)

    def start(
        self, problem: LevelProblem, dual: PerspectiveGenerator, x: Array, probe: Probe, kept: Kept = None
    ) -> Any:
        """See :meth:`StepRule.start`."""
        return 0, _column(self.scale, x), _column(self.dual_scale, x)


class Theory(_Falling):
    r"""The steps of the theorem.

    :math:`\eta_t = 2D_x^2\gamma_t` and :math:`\tau_t = 2D_y^2\gamma_t` with :math:`\gamma_t = 1/(M\sqrt{t+1})`, which
    is also the averaging weight.

    Parameters
    ----------
    constant : float or array (R,), optional
        M, with :math:`M^2 = 2D_x^2M_x^2 + 2D_y^2M_y^2`. By default :math:`M_x^2, M_y^2` are measured at the start of
        each query: the largest mean squared dual norms of the stochastic gradients at a few points drawn from the sets
        (gradients at the start alone bound nothing), times ``safety``.
    safety : float
        Factor of the measured values.

    Raises
    ------
    InvalidInput
        If a setting is not positive.

    References
    ----------
    Nemirovski, Juditsky, Lan and Shapiro (2009).

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.oracles import Theory
    >>> found = mm.solve(mm.load_problem("toy"), mm.SFLS(mm.SMD(step_rule=Theory())), seed=0, budget=2000)
    >>> found.status.name
    'SOLVED'
    """

    def __init__(self, constant: Any = None, safety: float = 2.0) -> None:
        self.constant = None if constant is None else _positive("constant", constant)
        self.safety = number("safety", safety, "must be positive and finite.", above=0.0)
        self.settings = () if self.constant is None else (self.constant,)

    def start(
        self, problem: LevelProblem, dual: PerspectiveGenerator, x: Array, probe: Probe, kept: Kept = None
    ) -> Any:
        """See :meth:`StepRule.start`."""
        xp = namespace(x)
        primal_size, dual_size = problem.primal.squared_diameter, dual.squared_diameter
        if self.constant is None:
            in_x, in_y = probe()
            constant = xp.sqrt(2.0 * self.safety * (primal_size * in_x + dual_size * in_y) + 1e-12)[..., None]
        else:
            constant = _column(self.constant, x)
        return 0, 2.0 * primal_size / constant, 2.0 * dual_size / constant


def _full(step: Any, x: Array) -> Array:
    """A step size as an array (R, 1)."""
    return namespace(x).zeros((x.shape[0], 1), x) + step


_RULES: dict[str, type[StepRule]] = {"adaptive": Adaptive, "inverse_sqrt": InverseSqrt, "theory": Theory}


def step_rule(rule: str | StepRule) -> StepRule:
    """Return a step rule from its name (``"adaptive"``, ``"inverse_sqrt"``, ``"theory"``) or as it is."""
    if isinstance(rule, StepRule):
        return rule
    found = _RULES.get(str(rule))  # a list itself cannot be looked up
    if found is None:
        raise UnknownName("step_rule", rule, _RULES)
    return found()
