"""The unconstrained baseline: the largest AUC, whatever the gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import GradientBaseline, Rule, Strata, quadratic_loss

__all__ = ["Unconstrained"]


@dataclass(frozen=True, slots=True, eq=False)
class _LossAlone(Rule):
    strata: Strata
    c1: float
    c2: float

    def step(self, scores: Any, state: Any) -> tuple[Any, Any]:
        """See :meth:`Rule.step`."""
        return quadratic_loss(scores, self.strata, self.c1, self.c2)[1], state


@dataclass(frozen=True, kw_only=True)
class Unconstrained(GradientBaseline):
    r"""Minimise :math:`E[c_1(h - h' - c_2)^2]` over positives h and negatives h'.

    Strengths are ignored: there is one strength, 0. See :class:`GradientBaseline` for the settings.
    """

    name: ClassVar[str] = "unconstrained"

    def checked(self, strengths: Sequence[float]) -> Any:
        """Return the one strength, 0."""
        return np.zeros(1)

    def rule(self, strata: Strata, strengths: Any) -> Rule:
        """See :meth:`GradientBaseline.rule`."""
        return _LossAlone(strata, self.c1, self.c2)
