"""Results of a solve: status, certificate, trace and solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from minmaxcon.core.runs import take_runs

__all__ = ["Certificate", "Solution", "Status"]


class Status(Enum):
    """How a solve ended. The value is the sentence a user reads; ``str(status)`` is the short name.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> solution = mm.solve(mm.load_problem("toy"), seed=0)
    >>> solution.status is mm.Status.SOLVED, str(solution.status)
    (True, 'solved')
    """

    SOLVED = (
        "A feasible point was found and proved optimal within the tolerance; where the problem is not convex, proved "
        "nearly stationary."
    )
    BUDGET = (
        "The search ended before a feasible point was proved optimal within the tolerance; give more levels, steps or "
        "time, or accept the certificate's gap. Where no feasible point was found yet, the one returned violates the "
        "constraints least."
    )
    INFEASIBLE = (
        "No point satisfies the constraints: the least violation is bounded below by a positive number; loosen the "
        "bounds. The point returned violates them least."
    )
    NOT_STRICTLY_FEASIBLE = (
        "No point satisfies the constraints with room to spare, which level-set methods need: the least violation is "
        "proved to be 0; loosen the bounds slightly. The point returned violates them least."
    )
    OUT_OF_REACH = (
        "No point was found whose true measure meets its target. The point returned comes nearest; loosen the target, "
        "or use more data or a richer model."
    )
    UNFINISHED = (
        "The time or the steps ended before a point was found that meets its target; give more. The point returned "
        "comes nearest, and nothing is known of what can be reached."
    )
    INCONSISTENT = (
        "A lower bound exceeds a value that it should bound, so a gradient or the declared convexity is wrong and "
        "nothing is proved; run `minmaxcon check` on the problem. The best point found is returned."
    )
    DIVERGED = "A value stopped being finite; the last good point is returned. Scale the data or take smaller steps."
    INTERRUPTED = "The solve was interrupted; the best feasible point so far is returned where there is one."

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Certificate:
    r"""Bounds on the optimal value: :math:`\text{lower} \le f^* \le \text{upper}`; never NaN.

    Attributes
    ----------
    kind : str
        ``"exact on the data"`` (finite data, each bound evaluated on all of it); ``"with confidence"`` (streams: bounds
        from samples that no iterate has seen, which hold together with probability ``confidence``); ``"estimate"``
        (streams that leave no such samples: ``upper`` estimates the objective of a point whose feasibility is an
        estimate too, and nothing is proved); ``"none"`` where no feasible point and no lower bound is known.
    upper : float
        The objective of the feasible point that is returned: exact on finite data, on streams a bound on it from above,
        or an estimate. Infinite where there is no such point.
    lower : float
        The largest lower bound found; minus infinity where there is none.
    confidence : float
        1 for bounds that are exact on the data; :math:`1 - \delta` for bounds with confidence; 0 where nothing is
        proved.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> found = mm.solve(mm.load_problem("toy"), seed=0).certificate
    >>> found.kind, round(found.gap, 3), bool(found.lower <= 1.0 <= found.upper)  # f* is 1
    ('exact on the data', 0.004, True)
    """

    kind: str
    upper: float
    lower: float
    confidence: float

    @property
    def gap(self) -> float:
        """``upper - lower``."""
        return self.upper - self.lower

    def __str__(self) -> str:
        if self.kind == "none":
            return "nothing is known of f*"
        if self.kind == "estimate":
            return f"objective about {self.upper:.6g}, an estimate that proves nothing"
        confidence = f" {self.confidence:g}" if self.kind == "with confidence" else ""
        return f"{self.lower:.6g} <= f* <= {self.upper:.6g} ({self.kind}{confidence})"


@dataclass(frozen=True, eq=False)
class Solution:
    r"""The result of a solve; of R runs at once when the problem's bounds are vectors.

    Attributes
    ----------
    x : ndarray (d,) or (R, d)
        The best feasible point found; where none was, the least infeasible one.
    objective : float or ndarray (R,)
        :math:`f_0(x)`: exact on finite data. On streams a bound from above with the certificate's confidence, or an
        estimate where that is 0.
    constraints : ndarray (m,) or (R, m)
        :math:`f_i(x) - b_i`, known as well as the objective; at most 0 where feasible.
    status : Status or tuple of Status
        How each run ended.
    certificate : Certificate or tuple of Certificate
        Bounds on each run's optimal value.
    reason : str or tuple of str
        The evidence behind the status, one sentence.
    trace : mapping
        Columns of equal length, one row a run and level (or outer iteration): see :meth:`records`.
    steps : int
        Oracle steps taken by the solve.
    samples : int
        Samples drawn.
    seconds : float
        Wall-clock time.
    settings : mapping
        Names and values of what was asked for.
    evidence : Evidence, optional
        Multipliers that prove each run's lower bound, or that it has no feasible point; see
        :func:`minmaxcon.core.proved`.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> solution = mm.solve(mm.load_problem("toy"), seed=0)
    >>> solution.status.name, bool(solution.constraints.max() <= 0)
    ('SOLVED', True)
    >>> round(float(solution.objective), 1), solution.certificate.kind
    (1.0, 'exact on the data')
    """

    x: Any
    objective: Any
    constraints: Any
    status: Any
    certificate: Any
    reason: Any
    trace: Mapping[str, Any]
    steps: int
    samples: int
    seconds: float
    settings: Mapping[str, Any] = field(default_factory=dict)
    evidence: Any = None

    @property
    def runs(self) -> int | None:
        """Number R of runs, or None for a single one."""
        return None if np.ndim(self.x) == 1 else int(np.shape(self.x)[0])

    @property
    def feasible(self) -> Any:
        """Whether every constraint holds at x, as far as its values are known: a bool, or an array (R,) of them."""
        largest = np.max(self.constraints, axis=-1, initial=-np.inf)
        return bool(largest <= 0) if self.runs is None else largest <= 0

    def __getitem__(self, run: int) -> Solution:
        """Return the solution of one run of several."""
        if self.runs is None:
            raise TypeError("this solution holds a single run; use it as it is")
        chosen = range(self.runs)[run]
        mine = np.asarray(self.trace["run"]) == chosen if "run" in self.trace else slice(None)
        return Solution(
            x=self.x[chosen],
            objective=float(self.objective[chosen]),
            constraints=self.constraints[chosen],
            status=self.status[chosen],
            certificate=self.certificate[chosen],
            reason=self.reason[chosen],
            trace={name: np.asarray(column)[mine] for name, column in self.trace.items()},
            steps=self.steps,
            samples=self.samples,
            seconds=self.seconds,
            settings=self.settings,
            evidence=None if self.evidence is None else take_runs(self.evidence, [chosen]),
        )

    def records(self) -> list[dict[str, Any]]:
        """Return the trace as rows."""
        names: Sequence[str] = list(self.trace)
        return [dict(zip(names, row, strict=True)) for row in zip(*self.trace.values(), strict=True)]

    def __str__(self) -> str:
        if self.runs is not None:
            return "\n".join(str(self[j]) for j in range(self.runs))
        worst = float(np.max(self.constraints, initial=-np.inf))
        return f"{self.status}: objective {self.objective:.6g}, largest f_i - b_i {worst:.3g}, {self.certificate}"
