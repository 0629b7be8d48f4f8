"""Needs of solvers and oracles, compared with a problem before any work."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from minmaxcon.core.level import LevelProblem
from minmaxcon.core.problem import MinMaxProblem
from minmaxcon.errors import Unsupported

__all__ = ["Needs"]


_ANY_WEIGHT = sys.float_info.max
"""Proximal weight, for this check, of a solver whose weight follows the declared modulus, whatever that is."""


@dataclass(frozen=True, slots=True)
class Needs:
    r"""Properties that a problem must have; by default none but a problem without a true measure.

    Attributes
    ----------
    finite : bool
        Finite data.
    convex : bool
        Functions that are convex with their proximal term: :math:`\rho \le \hat\rho` for the declared modulus.
    euclidean : bool
        A Euclidean set X, which has a projection.
    mirror : bool
        Inner blocks with mirror coordinates, in which anchors mix.
    measure : bool
        A true measure, refreshed at points that the solver names. A solver without this need would solve the surrogates
        at the start instead, and is refused such a problem.
    unregularised : bool
        No proximal term, because the solver adds one.
    added : float
        The weight of the proximal term that the solver adds; the largest float where it exceeds any declared modulus.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> mm.MirrorProx().needs.finite, mm.IQRC().needs.missing(mm.load_problem("toy"))
    (True, None)
    """

    finite: bool = False
    convex: bool = False
    euclidean: bool = False
    mirror: bool = False
    measure: bool = False
    unregularised: bool = False
    added: float = 0.0

    def missing(self, problem: MinMaxProblem | LevelProblem) -> str | None:
        """Return the first need that a problem does not meet, with the remedy, or None.

        Parameters
        ----------
        problem : MinMaxProblem or LevelProblem
            The problem.
        """
        if problem.surrogate and not self.measure:
            return (
                "an ordinary problem: the constraints of this one stand in for true measures, to be refreshed. "
                "Use SuccessiveApproximation(), --solver successive"
            )
        if self.measure and not problem.surrogate:
            return "a RefreshedProblem, whose measure says what is true: use SFLS() or IQRC()"
        if self.finite and problem.data.size is None:
            return "finite data: on a stream use SMD or ExtraGradient, or gather the samples"
        if self.euclidean and not problem.primal.euclidean:
            return f"a Euclidean set, which {problem.primal!r} is not: use SFLS() or IQRC(), or a ball or box"
        if self.unregularised and problem.proximal is not None:
            return "a problem without a proximal term, as it adds one: leave it out, or use SFLS()"
        loosest = max(problem.family.constraints, key=lambda function: function.modulus)
        added = self.added + (0.0 if problem.proximal is None else problem.proximal.least)
        if self.convex and loosest.modulus > added:
            limit = f" of at most the proximal term's weight, {added:g}" if added < _ANY_WEIGHT else ""
            proximal = (
                f"declare a weak_convexity{limit}, or use SFLS(), which needs no such claim"
                if added
                else "use IQRC(oracle=...) with a weight above a weak_convexity that is declared"
            )
            return (
                f"convex functions, or its averages mean nothing, but {loosest.name!r} is not declared convex: declare "
                f"convex = True where it is, or {proximal}"
            )
        for function in problem.family.constraints:
            if self.mirror and function.dual is not None and not function.dual.mirrored:
                return (
                    f"inner blocks with mirror coordinates, and {function.dual!r} of {function.name!r} gives none: "
                    "override mirror() and unmirror(), or use an oracle that has one anchor, such as MirrorProx or SMD"
                )
        return None

    def check(self, method: str, problem: MinMaxProblem | LevelProblem) -> None:
        """Refuse a problem that does not meet these needs, in the name of the method.

        Raises
        ------
        Unsupported
            The message names the method, the problem, what is missing and the remedy.
        """
        missing = self.missing(problem)
        if missing is not None:
            name = repr(problem.name) if isinstance(problem, MinMaxProblem) else "this level problem"
            raise Unsupported(f"{method} cannot solve {name}. It needs {missing}.")
