"""The weak convexity modulus: lower bounds with witnesses that prove them, and the warning of a proximal weight."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.core.modulus import modulus_near
from tests import cases
from tests.problem_library import HalfSquare, Linear, RobustRegression, whole

Array = Any


class Saddle(mm.StochasticMinMaxConstraint):
    """f(x) = 1/2 <x, H x> + <E c, x>, whose modulus is minus the least eigenvalue of H."""

    def __init__(self, hessian: Array, modulus: float = np.inf, bound: Any = 0.0, name: str = "saddle") -> None:
        self.hessian, self.weak_convexity, self.bound, self.name = np.asarray(hessian), modulus, bound, name

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        slope, H = batch["costs"].mean(0), self.matrix(x)
        value = 0.5 * ((x @ H) * x).sum(-1) + x @ slope
        return mm.Evaluation(value, x[..., :0], lambda y, _: y[..., None] * (x @ H + slope))

    def matrix(self, x: Array) -> Array:
        return self.hessian if isinstance(x, np.ndarray) else x.new_tensor(self.hessian)


class Worst(Saddle):
    r"""f(x) = max over |alpha| <= s of alpha 1/2 <x, H x>: the worst alpha is at an end of the interval."""

    def __init__(self, hessian: Array, reach: float) -> None:
        super().__init__(hessian, name="worst")
        self.dual = mm.interval(reach, 1.0)

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        H = self.matrix(x)
        moment = 0.5 * ((x @ H) * x).sum(-1)[..., None]
        return mm.Evaluation(0.0 * x.sum(-1), moment, lambda _, a: a * (x @ H))


def rotated(*eigenvalues: float, seed: int = 0) -> Array:
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(eigenvalues),) * 2))[0]
    return basis @ np.diag(eigenvalues) @ basis.T


def problem(
    objective: Any, *others: Any, primal: Any = None, engine: str = "numpy", d: int = 3, **more: Any
) -> mm.MinMaxProblem:
    data = cases.finite("points", "costs", engine=engine, d=d)
    return mm.MinMaxProblem(
        objective, list(others) or [Linear(50.0)], mm.Ball(d, 2.0) if primal is None else primal, data, **more
    )


@pytest.mark.parametrize("engine", ["numpy", "torch"])
def test_the_modulus_of_a_quadratic_is_minus_its_least_eigenvalue(engine: str) -> None:
    d = 12
    spectrum = np.linspace(-0.7, 3.0, d)
    found = mm.estimate_modulus(problem(Saddle(rotated(*spectrum)), engine=engine, d=d), seed=3)
    assert found.value == pytest.approx(0.7, abs=1e-3)
    assert found.value <= 0.7  # a lower bound
    assert found.each.tolist() == [found.value, 0.0]
    assert found.exact
    assert found.witness.function == 0
    assert found.witness.name == "saddle"
    assert "rho >= 0.7" in str(found) or "rho >= 0.69" in str(found)


def test_the_worst_inner_variable_is_found() -> None:
    """alpha H has the least eigenvalue -s max |H|, with alpha of the sign that makes it so."""
    for spectrum in ((-0.1, 0.2, 0.9), (-0.9, 0.2, 0.1)):
        found = mm.estimate_modulus(problem(HalfSquare(), Worst(rotated(*spectrum), 2.0)))
        assert found.each[1] == pytest.approx(1.8, abs=1e-3)
        assert abs(found.witnesses[1].alpha) == pytest.approx(2.0)
        assert found.each[0] == 0.0


def test_witnesses_prove_their_number_by_other_means() -> None:
    """Values alone, along the chord: a function that is rho-weakly convex has an integral of slopes that says so."""
    case = cases.problem("regression_weakly_convex")
    found = mm.estimate_modulus(case, rounds=12, seed=0)
    arrays = whole(case.data)

    def gradient(x: Array) -> Array:
        error = arrays["points"] @ x - arrays["target"]
        return arrays["points"].T @ (2.0 * error / (1.0 + error**2)) / len(error)

    worst = found.witness
    chord = worst.x - worst.y
    quotient = -(gradient(worst.x) - gradient(worst.y)) @ chord / (chord @ chord)
    assert quotient == pytest.approx(worst.modulus, abs=1e-6)
    assert case.primal.contains(worst.x)
    assert case.primal.contains(worst.y)

    def least(x: Array) -> float:
        error = arrays["points"] @ x - arrays["target"]
        bend = 2.0 * (1.0 - error**2) / (1.0 + error**2) ** 2
        return float(np.linalg.eigvalsh((arrays["points"].T * bend) @ arrays["points"] / len(error))[0])

    sampled = max(-least(x) for x in case.primal.sample(np.random.default_rng(0), 3000))
    assert 0.7 * sampled <= found.value <= float(case.objective.weak_convexity)
    assert found.refuted == ()


def test_a_declaration_that_is_too_small_is_refuted() -> None:
    H = rotated(-0.7, 1.0, 2.0)
    found = mm.estimate_modulus(problem(Saddle(H, 0.5, name="modest"), Saddle(H, 0.71, 9.0), Saddle(H, np.inf, 9.0)))
    assert found.refuted == ("modest",)
    assert found.declared.tolist() == [0.5, 0.71, np.inf]
    assert "refuted" in str(found)


@pytest.mark.parametrize("name", [name for name, case in cases.PROBLEMS.items() if case.convex])
def test_nothing_is_found_of_convex_problems(name: str) -> None:
    """Kinks, flat directions and rounding are not mistaken for concavity, on any geometry."""
    found = mm.estimate_modulus(cases.problem(name), pairs=8, rounds=1)
    assert found.value == 0.0
    assert found.refuted == ()


def test_on_the_simplex_the_unit_is_the_divergence() -> None:
    """phi = -omega has modulus 1 in units of V, and no bound in units of the Euclidean distance."""

    class Concave(Saddle):
        def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
            return mm.Evaluation(-(x * np.log(x)).sum(-1), x[..., :0], lambda y, _: -y[..., None] * (np.log(x) + 1.0))

    found = mm.estimate_modulus(problem(Concave(np.eye(3)), primal=mm.Simplex(3)), rounds=2)
    assert found.value == pytest.approx(1.0, abs=1e-4)
    assert found.value <= 1.0


class Well(Saddle):
    """f(x) = log(1 + |x - c|^2 / w^2): concave away from c alone, where the curvature is at most 1 / (4 w^2)."""

    def __init__(self) -> None:
        super().__init__(np.eye(3), name="well")

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        offset = (x - np.array([1.0, 0.0, 0.0])) / 0.1
        inside = 1.0 + (offset**2).sum(-1)
        return mm.Evaluation(np.log(inside), x[..., :0], lambda y, _: (y / inside)[..., None] * 2.0 * offset / 0.1)


def test_near_points() -> None:
    """Curvature is local: f'' = 2 (w^2 - t^2) / (w^2 + t^2)^2 along the ray, least at t^2 = 3 w^2."""
    well = problem(Well())
    far = mm.estimate_modulus(well, around=np.array([-1.5, 0.0, 0.0]))
    near = mm.estimate_modulus(well, around=np.array([[1.17, 0.0, 0.0], [1.0, 0.17, 0.0]]))
    assert 0.9 * 25.0 <= near.value <= 25.0 + 1e-6
    assert 0.0 < far.value < 1.0
    assert np.linalg.norm(far.witness.x - [-1.5, 0.0, 0.0]) < 0.5


def test_the_same_seed_gives_the_same_bits() -> None:
    case = cases.problem("regression_weakly_convex")
    one, two, other = (mm.estimate_modulus(case, rounds=1, seed=seed) for seed in (4, 4, 5))
    assert one.value == two.value != other.value
    assert one.witness.x.tolist() == two.witness.x.tolist()


def streaming() -> mm.MinMaxProblem:
    costs = cases.arrays()["costs"]
    stream = mm.Stream(lambda: iter([{"costs": cost} for cost in costs]))
    return mm.MinMaxProblem(Saddle(rotated(-0.7, 1.0, 2.0)), [Linear(9.0)], mm.Ball(3, 2.0), stream)


def test_an_empty_stream_is_refused() -> None:
    with pytest.raises(mm.DataError, match="the stream is empty: there is nothing to take gradients over"):
        mm.estimate_modulus(replace(streaming(), data=mm.Stream(lambda: iter([]))))


def test_a_stream_is_judged_by_a_block() -> None:
    found = mm.estimate_modulus(streaming(), rows=50)
    assert found.value == pytest.approx(0.7, abs=1e-3)
    assert not found.exact
    assert found.samples == 50
    assert "proves nothing" in str(found)


@pytest.mark.parametrize(
    "settings, named",
    [
        ({"pairs": 0}, "pairs"),
        ({"rounds": -1}, "rounds"),
        ({"seed": 1.5}, "seed"),
        ({"rows": True}, "rows"),
        ({"around": [1.0]}, "around"),
        ({"around": [9.0, 0.0, 0.0]}, "around"),
    ],
)
def test_bad_arguments(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(mm.InvalidInput, match=named):
        mm.estimate_modulus(cases.problem("quadratic"), **settings)


@pytest.mark.parametrize("problem", [None, 3, "toy", np.zeros(3)], ids=str)
def test_what_takes_a_problem_refuses_anything_else(problem: Any) -> None:
    for function, arguments in ((mm.estimate_modulus, ()), (mm.kkt_residual, (0, 0)), (mm.stationarity, (0,))):
        with pytest.raises(mm.InvalidInput, match=r"problem=.*must be a MinMaxProblem, such as load_problem"):
            function(problem, *arguments)


def small(weight: float) -> mm.IQRC:
    return mm.IQRC(oracle=mm.SFLS(oracle=mm.SMD(steps=20, batch_size=10), levels=1), weight=weight, iterations=1)


def undeclared() -> mm.MinMaxProblem:
    return problem(Saddle(rotated(-0.7, 1.0, 2.0)), start=np.array([0.1, 0.2, -0.1]))


def test_a_weight_below_what_is_declared_is_warned_of() -> None:
    case = cases.problem("regression_weakly_convex")
    modulus = float(case.objective.weak_convexity)
    for weight in (1e-5, modulus):
        with pytest.warns(
            mm.WeakConvexityWarning, match=r"weight=.* is not above 2\.95.*declared by 'robust regression'"
        ):
            mm.solve(case, small(weight))
    mm.solve(case, small(1.001 * modulus))  # warnings are errors here


def test_a_weight_below_what_two_points_prove_is_warned_of() -> None:
    found = modulus_near(undeclared(), undeclared().start_point())
    assert 0.6 <= found.value <= 0.7
    with pytest.warns(mm.WeakConvexityWarning, match=r"weight=1e-05 .* two points near the start .*'saddle'"):
        mm.solve(undeclared(), small(1e-5))
    mm.solve(undeclared(), small(0.71))


def test_the_probe_is_cheap_and_leaves_no_trace() -> None:
    calls: list[int] = []

    class Counted(Saddle):
        def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
            calls.append(int(x.shape[0]))
            return super().evaluate(x, batch)

    counted = problem(Counted(rotated(-0.7, 1.0, 2.0)), start=np.array([0.1, 0.2, -0.1]))
    modulus_near(counted, counted.start_point())
    assert sum(calls) <= 2 * 12  # two functions, a dozen gradients each
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.WeakConvexityWarning)
        probed = mm.solve(undeclared(), small(0.1), seed=2)
    silent = replace(undeclared(), objective=Saddle(rotated(-0.7, 1.0, 2.0), 0.0))
    plain = mm.solve(silent, small(0.1), seed=2)
    assert probed.samples == plain.samples
    # declared convex, lower bounds are claimed; the points are the same bits
    assert probed.x.tolist() == plain.x.tolist()


class OneRun(Saddle):
    """A function that is made for one point, as surrogates of an observation are."""

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        if len(x) != 1:
            raise IndexError(f"{len(x)} points for 1 run")
        return super().evaluate(x, batch)


def test_functions_that_are_made_for_one_run() -> None:
    single = problem(OneRun(rotated(-0.7, 1.0, 2.0)), start=np.array([0.1, 0.2, -0.1]))
    with pytest.warns(mm.WeakConvexityWarning, match="weight=0.1 "):
        mm.solve(single, small(0.1))
    apart, together = (
        mm.estimate_modulus(one, pairs=4, rounds=1, together=one is not single) for one in (single, undeclared())
    )
    assert apart.value == pytest.approx(together.value, abs=1e-9)
    assert 0.6 <= apart.value <= 0.7


def test_a_stream_is_not_probed() -> None:
    solution = mm.solve(streaming(), small(1e-5))
    assert np.isfinite(solution.x).all()


def test_the_modulus_of_a_regression_declared_too_small_is_refuted() -> None:
    case = cases.problem("regression_weakly_convex")
    found = mm.estimate_modulus(replace(case, objective=RobustRegression(0.1)))
    assert found.refuted == ("robust regression",)
