"""Problems whose constraints stand in for true measures, and are refreshed at the points that a solver names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from minmaxcon.arrays import Array
from minmaxcon.checks import whole
from minmaxcon.core.constraint import StochasticMinMaxConstraint
from minmaxcon.core.problem import MinMaxProblem
from minmaxcon.core.source import Source
from minmaxcon.errors import InvalidInput, Unsupported

__all__ = ["Observation", "RefreshedProblem", "TrueMeasure"]


class Observation(ABC):
    r"""What a true measure says at points :math:`\tilde x`, shape (R, d).

    Attributes
    ----------
    values : ndarray (R, m)
        The true :math:`t_i(\tilde x)`, in the unit of the bounds.
    smoothed : ndarray (R, m)
        The values that the surrogates have at :math:`\tilde x`: those of a smooth form of the measure.
    objective : tuple of ndarray (R,), or None
        Where the measure brings an objective of its own, its true value and that of its smooth form; else the
        problem's objective is minimised as it is.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> class Seen(mm.Observation):  # t(x) = x_1, rounded to tenths
    ...     def __init__(self, x):
    ...         self.values, self.smoothed = x[:, :1].round(1), x[:, :1]
    ...     def surrogates(self):
    ...         return []  # m constraints, see RefreshedProblem
    >>> seen = Seen(np.array([[0.12, 5.0]]))
    >>> seen.values, seen.smoothed
    (array([[0.1]]), array([[0.12]]))
    """

    values: Any
    smoothed: Any
    objective: tuple[Any, Any] | None = None

    @abstractmethod
    def surrogates(self) -> Sequence[StochasticMinMaxConstraint]:
        r"""Return m constraints of R runs that follow the measure from :math:`\tilde x` on.

        In value and gradient they equal the smooth form of the measure at :math:`\tilde x`; by how much that
        differs from the truth is corrected by the solver, which shifts the bounds.
        """

    def objective_surrogate(self) -> StochasticMinMaxConstraint | None:
        """Return the objective that follows the measure's own from here on; None where it has none."""
        return None


class TrueMeasure(ABC):
    r"""Quantities :math:`t_i(x)` that a user cares about and that no convex expectation equals: a share of pairs, say.

    A plug-in implements :meth:`observe`; solvers minimise :math:`f_0` subject to :math:`t_i(x) \le b_i` by solving with
    surrogates, and look at the measure again at every new point.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> class Seen(mm.Observation):  # t(x) = x_1, rounded to tenths
    ...     def __init__(self, x):
    ...         self.values, self.smoothed = x[:, :1].round(1), x[:, :1]
    ...     def surrogates(self):
    ...         return []  # m constraints, see RefreshedProblem
    >>> class Rounded(mm.TrueMeasure):
    ...     def observe(self, x):
    ...         return Seen(x)
    >>> Rounded().observe(np.array([[0.12, 5.0]])).values
    array([[0.1]])
    """

    @abstractmethod
    def observe(self, x: Array) -> Observation:
        """Measure points x (R, d) on finite data, exactly."""

    def on(self, data: Source) -> TrueMeasure:
        """Return the same measure on other finite data; what makes a measure fit for streams, block by block.

        Parameters
        ----------
        data : Source
            What :meth:`Source.block` of the problem's stream gives.

        Raises
        ------
        Unsupported
            Unless the plug-in overrides it.
        """
        raise Unsupported(f"{type(self).__name__} measures on finite data: override on() to follow a stream in blocks.")

    def curvature(self, x: Array) -> Callable[[Any], Any] | None:
        r"""Return :math:`g \mapsto B^{-1} g` for a positive definite model B of the objective's curvature at x (R, d).

        Step lengths are measured in its norm. The function maps an ndarray (R, k, d) to one of the same shape. The
        default, None, stands for the identity.
        """
        return None


@dataclass(frozen=True, eq=False)
class RefreshedProblem(MinMaxProblem):
    r"""Minimise :math:`f_0(x)` over X subject to :math:`t_i(x) \le b_i`, the :math:`t_i` being true measures.

    The ``constraints`` hold the bounds :math:`b_i`, and the surrogates at the starting point, which say nothing far
    from it: :class:`minmaxcon.SuccessiveApproximation` refreshes them at every step.

    Attributes
    ----------
    measure : TrueMeasure
        Observes the :math:`t_i`.
    first : RefreshedProblem, optional
        A problem on finite data, of one run, that a solve from ``start`` solves first, by at most ``first_steps`` steps
        within its own clock: it then begins at the first d coordinates of the point found. For objectives that have no
        slope at a start that costs no work, such as a rate at constant scores.
    first_steps : int
        Largest number of these steps.

    Raises
    ------
    InvalidInput
        If the measure is missing, or ``first`` has too few coordinates; and whatever :class:`MinMaxProblem` refuses.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> class First(mm.StochasticMinMaxConstraint):  # f(x) = x_1, the surrogate
    ...     name, convex, bound = "first", True, 0.3
    ...     def evaluate(self, x, batch):
    ...         return mm.Evaluation(x[..., 0], x[..., :0], lambda y, a: y[..., None] * np.eye(x.shape[-1])[0])
    >>> class Seen(mm.Observation):  # t(x) = x_1, rounded to tenths
    ...     def __init__(self, x):
    ...         self.values, self.smoothed = x[:, :1].round(1), x[:, :1]
    ...     def surrogates(self):
    ...         return [First()]
    >>> class Rounded(mm.TrueMeasure):
    ...     def observe(self, x):
    ...         return Seen(x)
    >>> toy = mm.load_problem("toy")
    >>> problem = mm.RefreshedProblem(toy.objective, [First()], toy.primal, toy.data, measure=Rounded())
    >>> mm.solve(problem, seed=0).constraints.round(3)  # t(x) - b
    array([0.])
    """

    measure: TrueMeasure = field(kw_only=True)
    first: RefreshedProblem | None = field(default=None, kw_only=True, repr=False)
    first_steps: int = field(default=60, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "first_steps", whole("first_steps", self.first_steps))
        if self.first is not None and self.first.primal.dimension < self.primal.dimension:
            need = f"must have at least {self.primal.dimension} coordinates, those of the problem that it begins."
            raise InvalidInput("first", self.first.primal.dimension, need)
        if not isinstance(self.measure, TrueMeasure):
            raise InvalidInput("measure", self.measure, "give a TrueMeasure: without one, use MinMaxProblem.")

    @property
    def surrogate(self) -> bool:
        """True: only a solver that refreshes the constraints solves this problem."""
        return True

    def on(self, data: Source) -> RefreshedProblem:
        """Return the problem on other finite data, a block of its stream, where its measure can be taken there."""
        return replace(self, data=data, measure=self.measure.on(data))

    def refreshed(self, observation: Observation) -> MinMaxProblem:
        r"""Return the problem with the surrogates of an observation, as an ordinary problem of the same bounds."""
        surrogates = observation.surrogates()
        if len(surrogates) != len(self.constraints):
            raise InvalidInput(
                "surrogates", len(surrogates), f"give one for each of the {len(self.constraints)} constraints."
            )
        constraints = [new.with_bound(old.bound) for new, old in zip(surrogates, self.constraints, strict=True)]
        return MinMaxProblem(
            observation.objective_surrogate() or self.objective,
            constraints,
            self.primal,
            self.data,
            start=self.start,
            name=self.name,
            details=self.details,
        )
