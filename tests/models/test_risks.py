"""Losses and risks: values and slopes by other formulas, cvxpy forms, temperatures, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import engine, to_numpy
from minmaxcon.data import population_weights
from minmaxcon.models import GroupRisk, LogisticLoss, Loss, Risk, SquaredLoss

LOSSES = {"logistic": LogisticLoss(), "squared": SquaredLoss()}


def by_definition(name: str, scores: Any, target: Any) -> Any:
    return np.logaddexp(0.0, -target * scores) if name == "logistic" else (scores - target) ** 2


def rows(seed: int = 0, n: int = 60, d: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 3
    return {
        "features": rng.normal(size=(n, d)) + group[:, None],
        "target": np.where(rng.random(n) < 0.4, 1.0, -1.0),
        "group_weights": population_weights(group[:, None] == np.arange(3)),
    }


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_values_and_slopes(name: str, kind: str) -> None:
    rng = np.random.default_rng(1)
    scores, target = 4 * rng.normal(size=(2, 50)), np.where(rng.random(50) < 0.5, 1.0, -1.0)
    create = engine(kind).create
    value, slope = LOSSES[name].evaluate(create(scores), create(target))
    assert to_numpy(value) == pytest.approx(by_definition(name, scores, target), rel=1e-12)
    step = 1e-6
    rise = by_definition(name, scores + step, target) - by_definition(name, scores - step, target)
    assert to_numpy(slope) == pytest.approx(rise / (2 * step), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("score", [-1e4, 1e4])
def test_no_score_overflows(score: float) -> None:
    with np.errstate(all="raise", under="ignore"):
        value, slope = LogisticLoss().evaluate(np.array([score]), np.array([1.0]))
    assert value[0] == max(-score, 0.0)
    assert slope[0] == (-1.0 if score < 0 else 0.0)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("temperature", [0.0, 0.3])
def test_cvxpy_forms_have_the_exact_values(name: str, temperature: float) -> None:
    cp = pytest.importorskip("cvxpy")
    data, model = rows(), mm.Linear(3)
    prior = np.array([0.5, 0.3, 0.2])
    worst = GroupRisk(model, LOSSES[name], 3, 1.0, temperature=temperature, prior=prior)
    problem = mm.MinMaxProblem(Risk(model, LOSSES[name]), [worst], mm.Ball(3, 2.0), mm.Finite(data))
    for point in problem.primal.sample(np.random.default_rng(0), 5):
        losses = by_definition(name, data["features"] @ point, data["target"])
        risks = np.array([losses[k::3].mean() for k in range(3)])
        soft = risks.max() if temperature == 0 else temperature * np.log(prior @ np.exp(risks / temperature))
        wanted = [losses.mean(), soft]
        x = cp.Variable(3)
        forms = [f.cvxpy_value(cp, x, problem.data) for f in (problem.objective, worst)]
        x.value = point
        assert all(form.is_convex() for form in forms)
        assert [float(form.value) for form in forms] == pytest.approx(wanted, rel=1e-9)
        assert problem.at_level(0.0).values(point[None])[0] == pytest.approx(wanted, rel=1e-9)


def test_a_network_has_a_risk_but_no_cvxpy_form() -> None:
    model = mm.mlp(3)
    risk = Risk(model, LogisticLoss())
    data = mm.Finite(rows(), engine="torch")
    ((_, batch),) = list(data.chunks())
    point = engine("torch").create(model.start(0))
    assert float(risk.evaluate(point, batch).F) == pytest.approx(np.log(2.0))  # its scores are 0
    assert risk.modulus == float("inf")
    with pytest.raises(mm.Unsupported, match="MLP"):
        risk.cvxpy_value(None, None, data)


def test_refusals() -> None:
    with pytest.raises(mm.InvalidInput, match="model"):
        Risk("linear", LogisticLoss())
    with pytest.raises(mm.InvalidInput, match="loss"):
        Risk(mm.Linear(2), "squared")
    with pytest.raises(mm.InvalidInput, match="temperature"):
        GroupRisk(mm.Linear(2), SquaredLoss(), 3, temperature=-1.0)
    with pytest.raises(TypeError, match="abstract"):
        Loss()


@pytest.mark.parametrize("table", [[0, 1], [[0.5, 0.5]], [["a"]], [[]], [[1, 0], [1, 0]]])
def test_membership_that_is_none(table: Any) -> None:
    with pytest.raises(mm.InvalidInput, match="membership"):
        population_weights(table)
