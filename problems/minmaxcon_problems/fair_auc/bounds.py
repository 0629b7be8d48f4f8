r"""The bounds of fair AUC problems, :math:`1 + \kappa` or ``max_gap`` on the true gap, and the details they keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import minmaxcon as mm
from minmaxcon.checks import finite_array, positive

from .metrics import FairnessMetric

__all__ = ["KAPPA", "MAX_GAP", "Details", "checked_gap", "checked_kappa", "least_kappa", "resolved_bound"]

KAPPA, MAX_GAP = 0.1, 0.02
"""Defaults where neither is given: the one of problems, the other of targets and the estimator."""

_LARGEST_KAPPA = 1e6


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Details:
    """The details that a fair AUC problem keeps: all that its evaluation needs besides the solution.

    The model's parameters come first in x. ``dataset`` is a :class:`Dataset`, or a :class:`LargeDataset` whose rows are
    on disk; it is None on a stream, and for rows that have no test part. The bound is a float or ndarray (R,): one of
    ``kappa`` and ``max_gap`` is None. ``objective`` names what is minimised, and ``alpha`` is the strength of the
    penalty that is added to it.
    """

    metric: FairnessMetric
    model: mm.Model
    dataset: Any = None
    kappa: Any = None
    max_gap: Any = None
    c1: float = 0.5
    c2: float = 1.0
    objective: str = "quadratic_auc"
    alpha: float = 0.0


def resolved_bound(
    kappa: Any = None,
    max_gap: Any = None,
    *,
    c1: float = 0.5,
    c2: float = 1.0,
    default: Literal["kappa", "max_gap"],
    single: bool = False,
) -> tuple[Any, Any]:
    """Return kappa and max_gap, checked, one of them None.

    ``default`` takes its default, 0.1 or 0.02, where neither is given; ``single`` asks for one number, a gap of at most
    1. Raises InvalidInput where both are given, or one is out of range.
    """
    if kappa is not None and max_gap is not None:
        raise mm.InvalidInput("max_gap", max_gap, "is another way to bound unfairness than kappa: give one.")
    if kappa is None and max_gap is None:
        kappa, max_gap = (KAPPA, None) if default == "kappa" else (None, MAX_GAP)
    return (checked_kappa(kappa, c1, c2, single), None) if max_gap is None else (None, checked_gap(max_gap, single))


def least_kappa(c1: float, c2: float) -> float:
    r"""Return :math:`2c_1c_2^2 - 1`, below which no model satisfies both constraints.

    Their maximum is at least :math:`2c_1c_2^2` whatever the scores. Raises InvalidInput unless both are positive.
    """
    return float(2.0 * positive("c1", c1) * positive("c2", c2) ** 2 - 1.0)


def checked_kappa(kappa: Any, c1: float, c2: float, single: bool = False) -> Any:
    """Return kappa as a float or ndarray (R,), or refuse one that no model can meet.

    Raises InvalidInput for what is not finite, or below the least feasible kappa, which the message names.
    """
    c1, c2 = positive("c1", c1), positive("c2", c2)
    numbers = _numbers(
        "kappa",
        kappa,
        "must be a number of at least -1." if single else "must be a finite number or a list of them.",
        single,
    )
    if (numbers > _LARGEST_KAPPA).any():
        raise mm.InvalidInput("kappa", kappa, f"at most {_LARGEST_KAPPA:g}; a bound so loose leaves out nothing.")
    least = least_kappa(c1, c2)
    if (numbers < least - 1e-12).any():
        raise mm.InvalidInput(
            "kappa",
            float(numbers.min()),
            f"infeasible: with c1={c1:g} and c2={c2:g} no model has a kappa below {least:g} (the constant model has "
            f"exactly that), and solvers need one above it; use kappa > {least:g} or a smaller c1*c2^2.",
        )
    return numbers if numbers.ndim else float(numbers)


def checked_gap(max_gap: Any, single: bool = False) -> Any:
    """Return targets as a float or ndarray (R,); raises InvalidInput if one is negative or not a finite number."""
    several = "must be a number of at least 0, such as 0.02, or a list of them."
    remedy = "must be a number between 0 and 1." if single else several
    numbers = _numbers("max_gap", max_gap, remedy, single)
    if (numbers < 0).any() or (single and numbers > 1):
        raise mm.InvalidInput("max_gap", max_gap, remedy)
    return numbers if numbers.ndim else float(numbers)


def _numbers(name: str, value: Any, remedy: str, single: bool) -> Any:
    numbers = finite_array(name, value, remedy)
    if numbers.ndim > (0 if single else 1) or numbers.size == 0:
        raise mm.InvalidInput(name, value, remedy)
    return numbers
