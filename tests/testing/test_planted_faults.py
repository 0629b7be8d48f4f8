"""Every planted fault is caught by the check that should catch it, and the sound original passes the same check."""

from __future__ import annotations

import pytest

from minmaxcon.testing.parts import suite_names
from tests.testing.planted_faults import FAULTS, Fault, found


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_planted_fault_is_caught_by_its_check(fault: Fault) -> None:
    caught = found(fault.faulty(), fault.check)
    assert caught.status == "failed", caught.seen
    assert caught.expected
    assert caught.seen
    assert not caught.seen.startswith("raised"), str(caught)
    assert len(str(caught)) < 1500
    sound = found(fault.sound(), fault.check)
    assert sound.status == "passed", str(sound)


def test_every_check_is_proved_by_a_fault() -> None:
    """Purity is one piece of code for all geometries, so that it is proved once for them."""
    proved = {(fault.faulty().kind, fault.check) for fault in FAULTS.values()}
    shared = {"pure", "run_axis", "precision", "engines"}
    geometries = {"generator", "block", "dual"}
    for kind in (*geometries, "constraint", "problem", "oracle", "solver"):
        for name in suite_names(kind):
            if kind in geometries and name in shared:
                assert ("generator", name) in proved
            else:
                assert (kind, name) in proved, f"no planted fault proves {kind}: {name}"
