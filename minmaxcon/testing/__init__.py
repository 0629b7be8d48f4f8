"""Checks of what the theory needs, for authors of problems, geometries, oracles and solvers.

Each ``check_*`` tries an object on drawn points and returns a :class:`Report`. A failure says what was expected, what
was seen, gives a counterexample small enough to read, and names the page that explains it.

>>> import minmaxcon as mm
>>> from minmaxcon.testing import check_generator
>>> check_generator(mm.Ball(3, 1.0)).passed
True
"""

from minmaxcon.testing.constraint import check_constraint
from minmaxcon.testing.generator import check_generator
from minmaxcon.testing.oracle import check_oracle
from minmaxcon.testing.parametrize import PendingCheck, parametrize_checks
from minmaxcon.testing.problem import check_problem
from minmaxcon.testing.report import CheckFailed, Finding, Report
from minmaxcon.testing.solver import check_solver

__all__ = [
    "CheckFailed",
    "Finding",
    "PendingCheck",
    "Report",
    "check_constraint",
    "check_generator",
    "check_oracle",
    "check_problem",
    "check_solver",
    "parametrize_checks",
]
