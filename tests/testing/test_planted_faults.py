"""Every planted fault is caught by the check that should catch it, and the sound original passes the same check."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from minmaxcon.testing import Finding
from minmaxcon.testing.block import BLOCK, DUAL
from minmaxcon.testing.check import Part
from minmaxcon.testing.constraint import CONSTRAINT
from minmaxcon.testing.generator import GENERATOR
from minmaxcon.testing.oracle import ORACLE
from minmaxcon.testing.problem import PROBLEM
from minmaxcon.testing.solver import SOLVER
from tests.testing.planted_faults import FAULTS, Fault, found

TABLES = {
    "generator": GENERATOR,
    "block": BLOCK,
    "dual": DUAL,
    "constraint": CONSTRAINT,
    "problem": PROBLEM,
    "oracle": ORACLE,
    "solver": SOLVER,
}


@cache
def sound_finding(sound: Callable[[], Part], check: str) -> Finding:
    """Return what a check finds of a sound original, once for all faults that are told apart from it."""
    return found(sound(), check)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_planted_fault_is_caught_by_its_check(fault: Fault) -> None:
    caught = found(fault.faulty(), fault.check)
    assert caught.status == "failed", caught.seen
    assert caught.expected
    assert caught.seen
    assert not caught.seen.startswith("raised"), str(caught)
    assert len(str(caught)) < 1500
    sound = sound_finding(fault.sound, fault.check)
    assert sound.status == "passed", str(sound)


def test_every_check_is_proved_by_a_fault() -> None:
    """Purity is one piece of code for all that has calls, so that it is proved once for them."""
    proved = {(fault.faulty().checks, fault.check) for fault in FAULTS.values()}
    shared = {"pure", "run_axis", "precision", "engines"}
    for kind, table in TABLES.items():
        for check in table:
            once = check.name in shared and kind not in {"oracle", "solver"}
            proof = (GENERATOR if once else table, check.name)
            assert proof in proved, f"no planted fault proves {kind}: {check.name}"
