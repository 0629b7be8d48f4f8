"""Settings: each value out of range is refused in one line that names it, and each one provably changes the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from tests import cases

Array = Any

NOT_COUNTS = [0, -3, 1.5, np.nan, np.inf, True, "many", None]
NOT_POSITIVE = [0.0, -1.0, np.nan, np.inf, "much"]
NOT_SHARES = [0.0, 1.0, -0.5, 2.0, np.nan, "much", None]

REFUSED: dict[tuple[Callable[..., Any], str], list[Any]] = {
    (mm.SMD, "steps"): [value for value in NOT_COUNTS if value is not None],
    (mm.SMD, "batch_size"): NOT_COUNTS,
    (mm.SMD, "block"): [value for value in NOT_COUNTS if value is not None],
    (mm.SMD, "mixing"): [-0.1, 1.1, np.nan, "much", None],
    (mm.SMD, "entropy_weight"): [0.0, -2.0, np.nan, np.inf, "free!", None],
    (mm.SMD, "step_rule"): ["adaptiv", "", None, 3],
    (mm.SFLS, "oracle"): [mm.IQRC(), "smd", 3],
    (mm.SFLS, "tolerance"): NOT_SHARES,
    (mm.SFLS, "delta"): NOT_SHARES,
    (mm.SFLS, "theta"): [0.5, 0.1, -1.0, np.nan, np.inf, "much"],
    (mm.SFLS, "levels"): NOT_COUNTS,
    (mm.SFLS, "searches"): NOT_COUNTS,
    (mm.SFLS, "oracle_error"): [-1e-9, np.nan, np.inf, "much"],
    (mm.SFLS, "slack"): [-1e-9, np.nan, np.inf, "much"],
    (mm.SFLS, "growth"): [0.99, np.nan, np.inf, "much"],
    (mm.SFLS, "least_span"): [-1e-9, 1.001, np.nan, np.inf, "much"],
    (mm.IQRC, "oracle"): [mm.SMD(), "sfls", 3],
    (mm.IQRC, "weight"): NOT_POSITIVE,
    (mm.IQRC, "tolerance"): NOT_POSITIVE,
    (mm.IQRC, "iterations"): NOT_COUNTS,
    (mm.IQRC, "output"): ["first", None, 3],
    (mm.Adaptive, "distance"): [*NOT_POSITIVE, [], [[1.0]], [1.0, -1.0], [1.0, np.nan]],
    (mm.Adaptive, "dual_scale"): [*NOT_POSITIVE, [0.1, 0.0]],
    (mm.Adaptive, "floor"): [*NOT_POSITIVE, [0.1, 0.2]],
    (mm.InverseSqrt, "scale"): [*NOT_POSITIVE, [0.1, 0.0]],
    (mm.InverseSqrt, "dual_scale"): [*NOT_POSITIVE, [0.1, 0.0]],
    (mm.Theory, "constant"): [*NOT_POSITIVE, [0.1, 0.0]],
    (mm.Theory, "safety"): [*NOT_POSITIVE, [0.1, 0.2]],
}


@pytest.mark.parametrize("build, name", REFUSED, ids=lambda value: getattr(value, "__name__", value))
def test_values_out_of_range_are_refused_by_name(build: Callable[..., Any], name: str) -> None:
    for value in REFUSED[build, name]:
        with pytest.raises(mm.InvalidInput) as caught:
            build(**{name: value})
        message = str(caught.value)
        assert message.startswith(f"{name}=")
        assert "\n" not in message
        assert caught.value.argument == name


def test_a_misspelt_rule_is_corrected() -> None:
    with pytest.raises(mm.UnknownName, match="did you mean 'adaptive'"):
        mm.SMD(step_rule="adaptiv")


@pytest.mark.parametrize(
    "arguments",
    [
        {"seed": -1},
        {"seed": 1.5},
        {"seed": True},
        {"time_limit": 0.0},
        {"time_limit": np.inf},
        {"time_limit": "1"},
        {"budget": 0},
        {"budget": 2.5},
        {"budget": True},
        {"solver": 3},
        {"solver": mm.SMD()},
    ],
)
def test_arguments_of_solve_out_of_range_are_named(arguments: dict[str, Any]) -> None:
    with pytest.raises(mm.InvalidInput, match=f"^{next(iter(arguments))}="):
        mm.solve(cases.problem("fair_auc_inter"), **arguments)


def two_queries(**settings: Any) -> bytes:
    """Two queries of which the second has warm duals: what every setting of mirror descent can change."""
    problem = cases.problem("fair_auc_inter")
    smd = mm.SMD(**{"steps": 150, "batch_size": 7, **settings})
    start = mm.Start(problem.start_point(), None, mm.Position.start(np.random.default_rng(0)))
    found = smd.query(problem.at_level(0.4), start)
    found = smd.query(problem.at_level(0.35), found.next)
    return b"".join(np.asarray(part).tobytes() for part in (found.x, found.weights, found.scaled, found.upper))


OTHER_RULES: dict[str, Any] = {
    "adaptive": mm.Adaptive(),
    "distance": mm.Adaptive(distance=0.05),
    "dual_scale": mm.Adaptive(dual_scale=0.5),
    "floor": mm.Adaptive(floor=2.0),
    "inverse_sqrt": mm.InverseSqrt(),
    "inverse_sqrt_scale": mm.InverseSqrt(0.2),
    "inverse_sqrt_dual": mm.InverseSqrt(0.1, 0.3),
    "theory": mm.Theory(),
    "theory_safety": mm.Theory(safety=3.0),
    "theory_constant": mm.Theory(constant=100.0),
}


def test_every_setting_of_mirror_descent_matters() -> None:
    found = {name: two_queries(step_rule=rule) for name, rule in OTHER_RULES.items()}
    for name, value in (("steps", 160), ("batch_size", 8), ("mixing", 0.2), ("entropy_weight", 3.0)):
        found[name] = two_queries(**{name: value})
    for rule in ("theorem", "paper"):
        found[rule] = two_queries(entropy_weight=rule)
    assert found["adaptive"] == two_queries() == two_queries(block=13)
    assert len(set(found.values())) == len(found)


def test_adaptive_steps_are_the_formula() -> None:
    r"""eta_t = max(d_0, max |x_s - x_0|) / sqrt(sum |g_s|^2); tau_t = c K / sqrt(floor + sum (max u^2 + |v|^2)).

    The averaging weight is t eta_t, and the next query starts from half of the distance.
    """
    problem = cases.problem("fair_auc_inter")
    level, rng = problem.at_level(0.4), np.random.default_rng(0)
    rule = mm.Adaptive(distance=0.1, dual_scale=0.7, floor=2.0)
    x0 = problem.start_point()
    memory = rule.start(level, level.dual(5.0), x0, lambda: (x0, x0))
    distance, gradients, duals = 0.1, 0.0, 2.0
    for t in range(1, 21):
        x, g = x0 + 0.1 * rng.normal(size=x0.shape), rng.normal(size=x0.shape)
        u, v = rng.normal(size=(1, 3)), rng.normal(size=(1, 5))
        eta, tau, weight, memory = rule.next(memory, level, x, g, u, v)
        distance = max(distance, float(np.linalg.norm(x - x0)))
        gradients, duals = gradients + float(np.sum(g**2)), duals + float(np.max(u**2) + np.sum(v**2))
        assert eta.item() == pytest.approx(distance / np.sqrt(gradients), rel=1e-7)
        assert tau.item() == pytest.approx(0.7 * 5.0 / np.sqrt(duals), rel=1e-12)
        assert weight.item() == pytest.approx(t * eta.item(), rel=1e-12)
    (kept,) = rule.kept(memory)
    assert kept.item() == pytest.approx(distance**2)
    again = rule.start(level, level.dual(5.0), x0, lambda: (x0, x0), (kept,))
    assert rule.next(again, level, x0, g, u, v)[0].item() == pytest.approx(distance / 2 / np.linalg.norm(g))


@pytest.mark.parametrize("rule", [mm.InverseSqrt(0.2, 0.7), mm.Theory(constant=9.0)], ids=["inverse_sqrt", "theory"])
def test_falling_steps_are_the_formula(rule: mm.StepRule) -> None:
    """c / sqrt(t + 1); 2 D^2 / (M sqrt(t + 1)) with each set's own diameter: erratum 4."""
    problem = cases.problem("fair_auc_inter")
    level, x0 = problem.at_level(0.4), problem.start_point()
    dual = level.dual("theorem")
    memory = rule.start(level, dual, x0, lambda: (x0, x0))
    first = (
        (0.2, 0.7)
        if isinstance(rule, mm.InverseSqrt)
        else (2 * problem.primal.squared_diameter / 9.0, 2 * dual.squared_diameter / 9.0)
    )
    for t in range(5):
        eta, tau, weight, memory = rule.next(memory, level, x0, x0, x0, x0)
        assert eta.item() == pytest.approx(first[0] / np.sqrt(t + 1))
        assert tau.item() == pytest.approx(first[1] / np.sqrt(t + 1))
        assert weight == pytest.approx(1 / np.sqrt(t + 1))


def test_a_network_of_settings_is_shown() -> None:
    solution = mm.solve(cases.problem("fair_auc_inter"), mm.IQRC(iterations=1), budget=100)
    settings = solution.settings["solver"]
    assert settings["name"] == "IQRC"
    assert settings["oracle"]["name"] == "SFLS"
    assert settings["oracle"]["oracle"]["step_rule"]["name"] == "Adaptive"


@pytest.mark.parametrize("oracle", [mm.SMD, mm.ExtraGradient, mm.VarianceReduced])
def test_batches_that_no_memory_holds_and_weights_that_are_no_numbers_are_refused(oracle: Any) -> None:
    with pytest.raises(mm.InvalidInput, match="batch_size"):
        oracle(batch_size=10**9)
    with pytest.raises(mm.InvalidInput, match="entropy_weight"):
        oracle(entropy_weight=True)
