"""The rival solvers, and what their tests share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from tests import cases

RIVALS: dict[str, Callable[..., Any]] = {
    "conex": mm.ConEx,
    "switching": mm.SwitchingSubgradient,
    "primal_dual": mm.PrimalDual,
}
each = pytest.mark.parametrize("rival", RIVALS)
# What the loop does that they share is tried of one every time, and of all as a promise.
one_of_them = pytest.mark.parametrize("rival", cases.promises(RIVALS, ["conex"]))


def small(rival: str, **settings: Any) -> Any:
    if rival == "switching":
        settings = {"test_size": 40, **settings}
    return RIVALS[rival](**{"steps": 120, "batch_size": 20, "evaluations": 4, "block": 30, **settings})


def bits(solution: mm.Solution) -> bytes:
    return b"".join(np.asarray(part).tobytes() for part in (solution.x, *solution.trace.values()))
