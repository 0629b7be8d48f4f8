"""The problem behind a target: what it is made of, engines, networks, runs, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

import minmaxcon as mm
from minmaxcon.arrays import to_numpy
from minmaxcon_problems.fair_auc.bounds import checked_gap
from minmaxcon_problems.fair_auc.target.objectives import AUCObjective, LogisticObjective
from minmaxcon_problems.fair_auc.target.problem import Target, build_target_problem, observed, signed_bounds
from tests.cases import labelled
from tests.problems.fair_auc.by_pairs import biased, masks_of, sklearn_gap

Array = Any

ROWS = biased(2, n=400)


def build(metric: str = "inter_group", gap: Any = 0.02, **options: Any) -> mm.RefreshedProblem:
    of_rows = {name: options.pop(name) for name in ("rows", "row_weight", "engine", "dtype") if name in options}
    rows = of_rows.pop("rows", ROWS)
    return build_target_problem(rows, Target(metric=metric, max_gap=gap, **options), **of_rows)


def solved(problem: mm.MinMaxProblem, **options: Any) -> mm.Solution:
    return mm.solve(problem, mm.SuccessiveApproximation(margin=2e-4, iterations=30), **options)


@pytest.mark.parametrize("objective, variables", [("quadratic_auc", 2), ("logistic", 1), (AUCObjective(1.0, 0.5), 2)])
def test_parameters_come_first_and_the_objectives_variables_follow(objective: Any, variables: int) -> None:
    problem = build(objective=objective, gap=[0.01, 0.02, 0.03])
    assert problem.primal.dimension == 6 + variables
    assert problem.start.tolist() == [0.0] * (6 + variables)
    assert problem.runs == 3
    assert problem.bounds().tolist() == [[0.01, 0.01], [0.02, 0.02], [0.03, 0.03]]
    assert problem.details.max_gap.tolist() == [0.01, 0.02, 0.03]
    assert "biased" in problem.name
    assert "inter_group" in problem.name


def test_the_measure_is_the_true_gap() -> None:
    problem, masks = build("bpsn_bnsp"), masks_of(ROWS, "bpsn_bnsp")
    x = np.random.default_rng(0).normal(size=(3, 8))
    values = problem.measure.observe(x).values
    for r in range(3):
        gap = sklearn_gap(ROWS.features @ x[r, :6], masks)
        assert values[r] == pytest.approx([gap, -gap], abs=1e-12)


def test_every_target_of_one_solve_is_met_as_if_alone() -> None:
    gaps, masks = [0.0, 0.02, 1.0], masks_of(ROWS, "inter_group")
    few = mm.SuccessiveApproximation(margin=2e-4, iterations=12)
    many = mm.solve(build(gap=gaps), few)
    for j, gap in enumerate(gaps):
        alone = mm.solve(build(gap=gap), few)
        assert many.objective[j] == pytest.approx(alone.objective, abs=1e-9)
        assert many.x[j] == pytest.approx(alone.x, abs=1e-9)
        true = abs(sklearn_gap(ROWS.features @ many.x[j, :6], masks))
        bound = gap if gap < 1.0 else 2.0  # which no gap comes near
        assert many.constraints[j].max() == pytest.approx(true - bound, abs=1e-12)
        assert true <= gap or many.status[j] is mm.Status.OUT_OF_REACH
    assert (np.diff(many.objective[1:]) <= 1e-6).all()  # looser targets cost less


def test_goals_bound_the_gap_on_the_side_that_it_has_and_1_bounds_nothing() -> None:
    problem = build(gap=1.0)
    assert problem.bounds().tolist() == [[2.0, 2.0]]
    free = np.random.default_rng(1).normal(size=8)
    positive = observed(problem, free).values[0, 0] >= 0
    for x, sides in ((free, slice(None)), (-free, slice(None, None, -1))):  # the negative has the other sign
        bounds = signed_bounds(problem, x, [0.1, -0.05, 1.0]).bounds()
        assert bounds[:, :: 1 if positive else -1][:, sides].tolist() == [[0.1, 0.1], [-0.05, 2.0], [2.0, 2.0]]


def test_scores_of_another_scale_make_no_difference() -> None:
    """Features in other units and a ball as much larger: the same scores."""
    scaled = replace(ROWS, features=ROWS.features * 1e-3)
    one = solved(build())
    other = solved(build(rows=scaled, radius=1e4))
    assert other.objective == pytest.approx(one.objective, abs=1e-6)
    assert 1e-3 * other.x[:6] == pytest.approx(one.x[:6], abs=1e-5)


def test_engines_and_precisions_agree() -> None:
    double = solved(build())
    for engine, dtype in (("torch", "float64"), ("numpy", "float32")):
        other = solved(build(engine=engine, dtype=dtype))
        assert other.objective == pytest.approx(double.objective, abs=1e-3 if dtype == "float32" else 1e-8)
        assert other.constraints.max() <= 0


def test_defaults_of_models() -> None:
    linear, network = build(), build(model=mm.MLP(6, 3), seed=5)
    assert (linear.data.engine, linear.data.dtype) == ("numpy", "float64")
    assert (network.data.engine, network.data.dtype) == ("numpy", "float32")
    assert linear.primal.dimension == 6  # the default objective has no variables of its own
    plain = build(model=mm.MLP(6, 3), seed=5, objective="quadratic_auc")
    np.testing.assert_array_equal(plain.start[:-2], mm.MLP(6, 3).start(5))
    assert isinstance(linear.details.model, mm.Linear)


@pytest.mark.parametrize("model", [mm.Linear(6), mm.MLP(6, 2)], ids=["linear", "network"])
def test_sparse_rows_are_kept_for_linear_models_only(model: mm.Model) -> None:
    held = replace(ROWS, features=scipy.sparse.csr_array(ROWS.features))
    problem = build("group", rows=held, model=model)
    features = problem.data.arrays["features"]
    assert hasattr(features, "tocsr") == isinstance(model, mm.Linear)
    whole = features.toarray() if hasattr(features, "tocsr") else np.asarray(to_numpy(features))
    assert whole == pytest.approx(ROWS.features, abs=1e-6)


def test_a_followed_objective_starts_where_the_quadratic_loss_ends() -> None:
    """From constant scores there is nothing to follow."""
    before = solved(build(gap=1.0, objective="quadratic_auc"))
    problem, points = build(), []
    few = mm.SuccessiveApproximation(iterations=2)
    mm.solve(problem, few, callbacks=[lambda at: points.append((at.outcome, at.state.first))])
    assert not problem.start.any()  # loading solves nothing
    (begun, _), *_ = [(outcome.x[0], first) for outcome, first in points if first is None]
    np.testing.assert_allclose(begun, before.x[:6], atol=1e-6)
    assert [outcome.x.shape for outcome, _ in points] == [(1, 6)] * len(points)


def test_what_is_solved_first_is_within_the_clock_and_the_budget() -> None:
    """A time limit, a callback or a budget that ends it leaves a point of the problem itself."""
    problem = build(gap=[0.02, 0.05])
    stopped = mm.solve(problem, mm.SuccessiveApproximation(), callbacks=[lambda _: True])
    assert stopped.x.shape == (2, 6)
    assert stopped.steps == 0
    few = mm.solve(problem, mm.SuccessiveApproximation(), budget=2)
    assert few.steps == 2
    assert few.x[0].any()
    assert problem.first.details.objective == "quadratic_auc"


def test_a_start_of_the_callers_own_is_where_a_solve_begins() -> None:
    w = np.linspace(-0.1, 0.1, 6)
    states = mm.iterate(build(), mm.SuccessiveApproximation(), x0=w)
    assert next(states).first is None


def test_the_starting_point_meets_every_target() -> None:
    """A constant model has no gap, and every target has a model that meets it."""
    for model in (mm.Linear(6), mm.MLP(6, 2)):
        problem = build(model=model, objective="quadratic_auc")
        assert problem.measure.observe(problem.start_point()).values.tolist() == [[0.0, 0.0]]


@pytest.mark.rel
def test_any_network() -> None:

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(6, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    problem = build(model=mm.TorchModule(module, bound=50.0), gap=0.05)
    solution = mm.solve(problem, mm.SuccessiveApproximation(iterations=15))
    assert solution.feasible
    scores = problem.details.model.predict(solution.x[: problem.details.model.dimension], ROWS.features)
    assert abs(sklearn_gap(scores, masks_of(ROWS, "inter_group"))) <= 0.05 + 1e-3  # float32 against float64
    assert solution.objective < 0.4


# ------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    "bad", [-0.01, [0.02, -0.1], float("nan"), [0.1, float("inf")], [], [[0.1]], "small", None, {}]
)
def test_targets_out_of_range(bad: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=r"max_gap=.*at least 0.*0\.02"):
        checked_gap(bad)
    with pytest.raises(mm.InvalidInput, match="max_gap="):
        build(gap=bad)


def test_targets_in_range() -> None:
    assert checked_gap(0) == 0.0
    assert checked_gap(np.float32(0.5)) == 0.5
    assert checked_gap([0.1, 0.2]).tolist() == [0.1, 0.2]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"objective": "acu"}, r"(?i)objective.*acu.*auc"),
        ({"radius": float("nan")}, r"radius=.*positive and finite"),
        ({"radius": None}, r"radius=.*positive and finite"),
        ({"bandwidth": 0.0}, r"bandwidth=.*positive and finite"),
        ({"warmup_steps": 0}, r"warmup_steps=0: .*at least 1"),
        ({"warmup_steps": 2.5}, r"warmup_steps=2.5: .*whole number"),
        ({"row_weight": -np.ones(400)}, r"row_weight=.*positive"),
        ({"row_weight": np.ones(5)}, r"row_weight=.*400 rows"),
        ({"model": mm.TorchModule(torch.nn.Linear(6, 1), 9.0), "engine": "numpy"}, r"torch"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(mm.MinMaxConError, match=message):
        build(**options)


def test_empty_subsets_and_classes() -> None:
    rows = labelled(0)
    lacking = rows.select(np.flatnonzero((rows.label > 0) | (rows.group < 0)))
    with pytest.raises(mm.DataError, match=r"negative & protected.*: 0"):
        build("intra_group", rows=lacking)
    one = replace(rows, label=-np.ones(len(rows), int))
    with pytest.raises(mm.DataError, match="one class only"):
        build("group", rows=one)


def test_the_logistic_objective_may_be_given_as_an_object() -> None:
    named, given = (solved(build(objective=objective)) for objective in ("logistic", LogisticObjective()))
    assert named.x.tobytes() == given.x.tobytes()
