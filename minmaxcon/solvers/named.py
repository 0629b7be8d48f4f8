"""Solvers by name, and the solver that fits a problem."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from minmaxcon.checks import choice
from minmaxcon.core import MinMaxProblem, Needs, Solver
from minmaxcon.core.problem import require_problem
from minmaxcon.errors import InvalidInput
from minmaxcon.oracles.extragradient import ExtraGradient
from minmaxcon.oracles.mirror_prox import MirrorProx
from minmaxcon.oracles.variance_reduced import VarianceReduced
from minmaxcon.solvers.averaging.conex import ConEx
from minmaxcon.solvers.averaging.primal_dual import PrimalDual
from minmaxcon.solvers.averaging.switching import SwitchingSubgradient
from minmaxcon.solvers.iqrc import IQRC
from minmaxcon.solvers.sfls import SFLS
from minmaxcon.solvers.successive.solver import SuccessiveApproximation

__all__ = ["AUTO", "automatic", "named_solver", "solver_names"]

AUTO = "auto"
"""The name that stands for whatever :func:`automatic` takes for a problem."""

_NAMED: Mapping[str, Callable[[], Solver]] = {
    "sfls": SFLS,
    "sfls_mirror_prox": lambda: SFLS(oracle=MirrorProx()),
    "sfls_extragradient": lambda: SFLS(oracle=ExtraGradient()),
    "sfls_variance_reduced": lambda: SFLS(oracle=VarianceReduced()),
    "iqrc": IQRC,
    "conex": ConEx,
    "switching_subgradient": SwitchingSubgradient,
    "primal_dual": PrimalDual,
    # An aim below the target by the tolerance's size, so that the true values end below it although no step is exact.
    "successive": lambda: SuccessiveApproximation(tolerance=1e-4, margin=2e-4),
}


_SMALL = 2**20
"""Rows x variables x runs up to which exact passes are preferred to samples, see :func:`automatic`."""


def automatic(problem: MinMaxProblem) -> Solver:
    """Return a solver that fits a problem: what :func:`minmaxcon.solve` uses where none is given.

    ===========================  ==============================================================
    problem                      solver
    ===========================  ==============================================================
    with a true measure          :class:`SuccessiveApproximation`, as named ``"successive"``
    convex, small finite data    ``SFLS(oracle=MirrorProx())``, by exact passes
    convex, else                 ``SFLS()``, by samples
    not declared convex          :class:`IQRC` with the same two; with a proximal term, which IQRC would add, as convex
    ===========================  ==============================================================

    Small is at most a million rows x variables x runs, and any size where the family knows its means without a pass
    (:meth:`minmaxcon.ConstraintFamily.knows_means`). Sums of the logarithms of the processor seconds to a feasible
    point within 1% of the optimum, as ``python docs/figures/choice.py`` printed them on a busy machine
    (:doc:`/experiments`):

    ==========================  =====  ======  ===========  ==================
    data                         auto  by SMD  mirror-prox  variance reduction
    ==========================  =====  ======  ===========  ==================
    the gallery, nine problems  -7.57   -4.00        -7.57               -3.49
    large data, 14 problems     -3.06   -1.10         1.35                5.38
    ==========================  =====  ======  ===========  ==================

    Exact passes win where they cost little, and nothing in them is random. Samples win where a pass is long.
    """
    require_problem(problem)
    if Needs(measure=True).missing(problem) is None:
        return named_solver("successive")
    rows, known = problem.data.size, problem.family.knows_means(problem.data)
    small = rows is not None and (known or rows * problem.primal.dimension * (problem.runs or 1) <= _SMALL)
    if problem.proximal is None and Needs(convex=True).missing(problem) is not None:
        return IQRC(oracle=SFLS(oracle=MirrorProx(steps=50), levels=3, growth=1.1, least_span=0.0)) if small else IQRC()
    return SFLS(oracle=MirrorProx()) if small else SFLS()


def solver_names() -> tuple[str, ...]:
    """Return the names of all solvers, ours first."""
    return tuple(_NAMED)


def named_solver(name: str, **settings: Any) -> Solver:
    """Return a solver by name, with its default settings but for those given.

    Parameters
    ----------
    name : str
        One of :func:`solver_names`.
    **settings
        Arguments of the solver's class, or of its oracle's, or of that one's: the outermost part that has a setting of
        this name takes it, so that ``steps`` reaches the SMD inside an SFLS.

    Raises
    ------
    UnknownName
        There is no such solver; the message suggests the nearest name.
    InvalidInput
        No part of it has such a setting, or a part refuses the value.

    Examples
    --------
    >>> named_solver("sfls", steps=100, tolerance=0.1).oracle.steps
    100
    """
    choice("solver", name, _NAMED)
    left = dict(settings)
    changed: Solver = _changed(_NAMED[name](), left)
    for setting, value in left.items():
        raise InvalidInput(setting, value, f"solver {name!r} has no such setting; leave it out.")
    return changed


def _changed(part: Any, settings: dict[str, Any]) -> Any:
    """Return a solver or oracle made again with those settings that it or its oracle has; they are taken out."""
    known = [argument for argument in inspect.signature(type(part)).parameters if hasattr(part, argument)]
    changes = {argument: settings.pop(argument) for argument in known if argument in settings}
    if "oracle" in known and "oracle" not in changes:
        changes["oracle"] = _changed(part.oracle, settings)
    return type(part)(**{argument: getattr(part, argument) for argument in known} | changes)
