"""One bound for each side of the quadratic surrogate: what its solutions are, by scikit-learn, and its refusals."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc.target import side_bounds
from minmaxcon_problems.fair_auc.target.problem import Target
from minmaxcon_problems.fair_auc.target.side_bounds import solve_side_bounds
from tests.problems.fair_auc.by_pairs import DEFINITIONS, biased, masks_of, sklearn_auc, sklearn_gap
from tests.problems.fair_auc.fits import fit

Array = Any

ROWS = biased(0, 800)
TARGETS = np.array([0.02, 0.05, 1.0])


@pytest.fixture(autouse=True)
def few_bounds(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """A small grid of bounds and short levels; the whole search is for the slow tests."""
    if "slow" not in request.keywords:
        monkeypatch.setattr(side_bounds, "_KAPPAS", (0.08, 0.4))
        monkeypatch.setattr(side_bounds, "_SHIFTS", (-0.6, 0.0, 0.6))
        monkeypatch.setattr(side_bounds, "_STEPS", 100)


@cache
def bounded(metric: str) -> mm.Solution:
    return solve_side_bounds(ROWS, Target(metric=metric, max_gap=1.0, method="bounds"), TARGETS)


def judged(w: Array, metric: str) -> tuple[float, float]:
    scores, positive = ROWS.features @ w[:6], ROWS.label > 0
    return abs(sklearn_gap(scores, masks_of(ROWS, metric))), sklearn_auc(scores, positive, ~positive)


def test_every_target_is_met_and_the_looser_ones_cost_less() -> None:
    solution = bounded("intra_group")
    gaps, areas = np.array([judged(x, "intra_group") for x in solution.x]).T
    assert (gaps <= TARGETS).all()
    assert solution.constraints[:, 0] == pytest.approx(gaps - TARGETS, abs=1e-9)
    assert (np.diff(areas) >= -1e-9).all()
    assert areas[0] >= 0.8
    assert mm.Status.OUT_OF_REACH not in solution.status
    assert solution.runs == 3
    assert all(len(getattr(solution, name)) == 3 for name in ("status", "reason", "certificate", "objective"))


def test_without_a_target_nothing_is_given_up() -> None:
    """The last run is as good as the least squares solution of the AUC loss, in closed form."""
    positive, x = ROWS.label > 0, ROWS.features
    delta = x[positive].mean(axis=0) - x[~positive].mean(axis=0)
    spread = np.cov(x[positive].T, bias=True) + np.cov(x[~positive].T, bias=True)
    best = np.linalg.solve(spread + np.outer(delta, delta), delta)
    assert judged(bounded("intra_group").x[-1], "intra_group")[1] >= judged(best, "intra_group")[1] - 1e-3


def compare(metric: str) -> None:
    for j, gap in enumerate(TARGETS[:2]):
        following = fit(metric, float(gap), ROWS)
        true_gap, area = judged(following.parameters, metric)
        assert true_gap <= gap
        assert area >= judged(bounded(metric).x[j], metric)[1] - 0.005
    assert (np.array([judged(x, metric)[0] for x in bounded(metric).x]) <= TARGETS).all()


@pytest.mark.parametrize(
    "metric", ["intra_group", *(pytest.param(name, marks=pytest.mark.slow) for name in DEFINITIONS)]
)
def test_following_the_true_auc_gives_no_smaller_auc(metric: str) -> None:
    compare(metric)


@pytest.mark.rel
def test_fits_by_this_method() -> None:
    """As the method of a fit, with few pairs of bounds: its report is true."""
    found = fit("intra_group", 0.05, ROWS, method="bounds")
    gap, area = judged(found.parameters, "intra_group")
    assert found.train_gap.value == pytest.approx(gap, abs=1e-9)
    assert found.train_auc.value == pytest.approx(area, abs=1e-9)
    assert gap <= 0.05
    assert found.unconstrained_auc.value >= area
    assert np.isnan(found.surrogate["gap"])


def test_the_trace_is_that_of_the_runs_returned() -> None:
    """Each run's trace ends at the violation and within the levels of its own solve; none is mixed with another's."""
    solution = bounded("intra_group")
    for j in range(3):
        trace = solution[j].trace
        assert set(trace["run"]) == {j}
        assert (np.diff(trace["level"]) >= 0).all()  # one run's rows, in their order
        assert trace["objective"][-1] == pytest.approx(solution[j].objective, abs=1e-12)


def test_time_limit_callbacks_and_start_reach_both_solves() -> None:
    seen: list[Any] = []
    first: list[Any] = []

    def note(progress: mm.Progress) -> None:
        if not seen or progress.seconds < seen[-1]:  # the clock of a new solve
            first.append(np.asarray(progress.state.x)[:, :6].copy())
        seen.append(progress.seconds)

    begun = time.perf_counter()
    start = np.linspace(-0.2, 0.2, 6)
    found = fit("group", 0.05, ROWS, method="bounds", time_limit=0.4, callbacks=[note], start=start)
    assert time.perf_counter() - begun < 8.0  # a limit of 0.4 s; on an idle machine several seconds without
    assert len(first) == 2
    assert found.train_gap.value <= 1.0
    with pytest.raises(mm.InvalidInput, match=r"iterations=7.*bounds"):
        fit("group", 0.05, ROWS, method="bounds", iterations=7)
    with pytest.raises(mm.InvalidInput, match=r"start"):
        fit("group", 0.05, ROWS, method="bounds", start=np.ones(9))


def test_a_solve_without_a_level_has_a_trace_without_rows() -> None:
    target = Target(metric="group", max_gap=1.0, method="bounds", time_limit=1e-9)
    solution = solve_side_bounds(ROWS, target, TARGETS)
    assert solution.runs == 3
    assert {len(column) for column in solution.trace.values()} <= {0}


@pytest.mark.parametrize(
    "options, message",
    [
        ({"model": mm.MLP(6, 2)}, r"method='bounds'.*linear model.*following"),
        ({"objective": "logistic"}, r"method='bounds'.*quadratic AUC loss.*following"),
        ({"row_weight": np.ones(800)}, r"row_weight=.*no weights.*following"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(mm.InvalidInput, match=message):
        fit("group", 0.02, ROWS, method="bounds", **options)
