"""Traces kept from one version to the next: ``python -m tests.solvers.test_golden`` writes them anew.

A change of the method changes them, and its author says so by writing them; nothing else may. To the bit they depend
on the machine's matrix products; the small ones here differ in the last places only.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from tests import cases
from tests.figures import Figure
from tests.solvers.averaging.rivals import small

KEPT = Path(__file__).with_name("golden.json")

SMD = mm.SMD(steps=60, batch_size=20)
CASES: dict[str, tuple[str, Callable[[], mm.Solver]]] = {
    "sfls, ball": ("fair_auc_inter", lambda: mm.SFLS(SMD, levels=3)),
    "sfls, simplex": ("portfolio", lambda: mm.SFLS(SMD, levels=3)),
    "sfls, inner ball": ("robust", lambda: mm.SFLS(SMD, levels=3)),
    "sfls, single samples": ("worst_group", lambda: mm.SFLS(mm.SMD(steps=60, batch_size=1), levels=3)),
    "extragradient": ("fair_auc_inter", lambda: mm.SFLS(mm.ExtraGradient(steps=30, batch_size=20), levels=2)),
    "variance reduction": ("fair_auc_inter", lambda: mm.SFLS(mm.VarianceReduced(epochs=2, batch_size=30), levels=2)),
    "mirror-prox": ("worst_group", lambda: mm.SFLS(mm.MirrorProx(steps=20), levels=2)),
    "iqrc": ("regression_weakly_convex", lambda: mm.IQRC(mm.SFLS(SMD, levels=2), iterations=2)),
    "conex": ("fair_auc_inter", lambda: small("conex", steps=120)),
    "primal-dual": ("portfolio", lambda: small("primal_dual", steps=120)),
    "switching": ("quadratic_infeasible_start", lambda: small("switching", steps=120)),
}


def traced(name: str) -> dict[str, Any]:
    """Return what a solve finds, as JSON knows it."""
    problem, solver = CASES[name]
    found = mm.solve(cases.problem(problem), solver(), seed=7)
    columns = {key: np.asarray(column) for key, column in found.trace.items()}
    trace = {key: one.astype(float).tolist() for key, one in columns.items() if one.dtype.kind in "biuf"}
    parts = {"x": found.x, "objective": found.objective, "constraints": found.constraints}
    bounds = {"lower": found.certificate.lower, "upper": found.certificate.upper}
    return {
        **{key: np.asarray(value, dtype=float).tolist() for key, value in {**parts, **bounds}.items()},
        "status": found.status.name,
        "steps": found.steps,
        "samples": found.samples,
        "trace": trace,
    }


@pytest.mark.parametrize("name", CASES)
def test_a_solve_gives_what_it_gave(name: str, figure: Figure) -> None:
    kept, found, worst = json.loads(KEPT.read_text())[name], traced(name), 0.0
    for key in ("status", "steps", "samples"):
        assert found[key] == kept[key], key
    assert found["trace"].keys() == kept["trace"].keys()
    for key, value in {**kept, **kept["trace"]}.items():
        if key not in ("status", "steps", "samples", "trace"):
            now = np.asarray({**found, **found["trace"]}[key])
            np.testing.assert_allclose(now, value, rtol=1e-8, atol=1e-9, err_msg=key)
            known = np.isfinite(now)
            apart = np.abs(now[known] - np.asarray(value)[known]) / (1.0 + np.abs(now[known]))
            worst = max(worst, float(apart.max(initial=0.0)))
    figure.total(1, "traces as they were kept")
    figure.largest("difference", worst)


if __name__ == "__main__":
    KEPT.write_text(json.dumps({name: traced(name) for name in CASES}, indent=1) + "\n")
