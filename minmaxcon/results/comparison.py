"""What a comparison of solvers holds: an entry for each solver and seed, with the path it took."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from minmaxcon.core import Status
from minmaxcon.results.compare_reference import Optimum

__all__ = ["Comparison", "Entry"]


@dataclass(frozen=True, eq=False)
class Entry:
    r"""One solver with one seed.

    Attributes
    ----------
    solver : str
        Its name.
    seed : int
        The seed.
    status : str
        Short name of the :class:`~minmaxcon.Status`, or ``"not run"`` where the solver does not take the problem.
    reason : str
        The evidence behind the status; why the solver was not run.
    seconds : float
        The solver's own time.
    samples, steps : int
        Samples and oracle steps.
    objective, violation : float
        Of the returned point, by a fresh exact pass; the solver's estimates on a stream.
    gap, relative_gap : float
        :math:`f_0 - f^*` and the same in units of the optimum's scale.
    upper, lower : float
        The certificate's bounds on :math:`f^*`.
    checkpoints, infeasible : int
        Points that the method itself looked at on the way, and how many of them violate a constraint by more than
        1e-9; ``checkpoints`` leaves the start out.
    path : tuple of mapping
        The start and these points: ``checkpoint`` (0 is the start), ``seconds``, ``samples``, ``steps``, ``objective``,
        ``gap``, ``relative_gap``, ``violation`` and ``estimate_violation``, that of the oracle's raw point where the
        method checks it before it moves there.
    settings : mapping
        The solver's settings.
    """

    solver: str
    seed: int
    status: str
    reason: str
    seconds: float = math.nan
    samples: int = 0
    steps: int = 0
    objective: float = math.nan
    violation: float = math.nan
    gap: float = math.nan
    relative_gap: float = math.nan
    upper: float = math.nan
    lower: float = math.nan
    checkpoints: int = 0
    infeasible: int = 0
    path: tuple[Mapping[str, Any], ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def ran(self) -> bool:
        """Whether the solver took the problem."""
        return bool(self.path)


@dataclass(frozen=True)
class Comparison:
    """Solvers side by side on one problem.

    Attributes
    ----------
    problem : str
        What it is called.
    optimum : Optimum
        What gaps are measured from, and in units of what.
    entries : tuple of Entry
        By solver and seed, in the order asked for.
    samples : int or None
        The common budget of samples.
    time_limit : float or None
        The common budget of seconds.
    """

    problem: str
    optimum: Optimum
    entries: tuple[Entry, ...]
    samples: int | None
    time_limit: float | None

    @property
    def interrupted(self) -> bool:
        """Whether a solve was ended by Ctrl-C, so that others are missing."""
        return any(entry.status == str(Status.INTERRUPTED) for entry in self.entries)
