"""Conclusions from little: a Euclidean set from its projection, and a third party's inner block in every oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.geometry import EuclideanGenerator, entropy_weight_bound
from minmaxcon.testing import check_generator
from tests import cases
from tests.problem_library import HalfSquare, Linear, whole

Array = Any


class HalfBall(EuclideanGenerator):
    """{|u| <= 1, u_1 >= 0}: a projection, and nothing else that is not a number."""

    dimension, center, squared_diameter = 3, np.zeros(3), 0.5

    def project(self, u: Array) -> Array:
        xp = namespace(u)
        u = xp.maximum(u, xp.asarray(np.array([0.0, -np.inf, -np.inf]), u))
        return u / xp.maximum(xp.sqrt(xp.dot(u, u)), 1.0)[..., None]


def test_a_euclidean_set_follows_from_its_projection() -> None:
    report = check_generator(HalfBall())
    report.raise_if_failed()
    assert [found.check for found in report if found.status == "skipped"] == ["reference_forms"]
    rng = np.random.default_rng(0)
    points = HalfBall().sample(rng, 400)
    length = np.linalg.norm(points, axis=1)
    assert 0.2 < np.mean(length > 1 - 1e-9) < 0.9  # of the sphere, of the inside
    assert 0.2 < np.mean(points[:, 0] < 1e-9) < 0.8  # and of the disk
    outside = np.array([[-1e-6, 0, 0], [0, 1 + 1e-6, 0]])
    assert not HalfBall().contains(outside, 1e-7).any()
    assert HalfBall().contains(outside, 2e-6).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("engine", ["numpy", "torch"])
@pytest.mark.parametrize(
    "known", [mm.Ball(4, 3.0, [1.0, -2.0, 0.0, 5.0]), mm.Box([-1, 0, 2, 3], [1, 5, 2, 3.5]), mm.Box([2.0], [2.0])]
)
def test_the_derived_minimum_is_a_tight_lower_bound(known: Any, engine: str, dtype: str) -> None:
    drawn = np.random.default_rng(0).normal(size=(300, known.dimension))
    drawn[:2] *= [[0.0], [1e-20]]
    g = mm.Finite({"g": drawn}, engine=engine, dtype=dtype).arrays["g"]
    bound, point = EuclideanGenerator.linear_minimum(known, g)
    exact = to_numpy(known.linear_minimum(g)[0]).astype(float)
    allowed = (5e-8 if dtype == "float64" else 2e-3) * np.linalg.norm(to_numpy(g), axis=1)
    reach = np.sqrt(2 * known.squared_diameter) + (1e-7 if dtype == "float64" else 1e-3)
    rounding = 1e-15 if dtype == "float64" else 1e-6 * np.linalg.norm(to_numpy(g), axis=1) * 10
    assert (to_numpy(bound) <= exact + rounding).all()
    assert (to_numpy(bound) >= exact - allowed * reach - rounding).all()
    assert np.all(to_numpy(known.contains(point, 1e-4)))
    assert bound.dtype == g.dtype


def test_a_bound_from_a_derived_minimum_is_certified() -> None:
    """A problem on the half ball is solved, and the bound holds for every point of it."""
    data = cases.finite("points", "costs")
    problem = mm.MinMaxProblem(HalfSquare(), [Linear(0.5)], HalfBall(), data)
    solution = mm.solve(problem, mm.SFLS(oracle=mm.MirrorProx(steps=200)), seed=0)
    assert solution.status is mm.Status.SOLVED
    points = HalfBall().sample(np.random.default_rng(1), 2000)
    values = problem.at_level(np.zeros(2000)).values(points)
    feasible = values[values[:, 1] <= 0.5, 0]
    assert solution.certificate.lower <= feasible.min()


def test_geometries_without_a_projection_or_a_cvxpy_form_say_so() -> None:
    with pytest.raises(mm.Unsupported, match=r"^Simplex\(dimension=3\) is not Euclidean"):
        mm.Simplex(3).project(np.ones(3))
    with pytest.raises(mm.Unsupported, match=r"^HalfBall\(dimension=3\) .*cvxpy_constraints\(\)"):
        HalfBall().cvxpy_constraints(None, None)
    with pytest.raises(mm.Unsupported, match=r"^Simplex\(dimension=3\) has no cvxpy form: override cvxpy_value\(\)"):
        mm.DistanceGenerator.cvxpy_value(mm.Simplex(3), None, None)


class CoshBlock(mm.InnerBlock):
    """[-1, 1] with omega = cosh - 1, which is neither quadratic nor an entropy; no penalty."""

    dimension, radius, reach = 1, 1.0, 1.0
    start = np.zeros(1)
    maximum = float(np.cosh(1.0) - 1.0)

    def value(self, alpha: Array) -> Array:
        return np.cosh(alpha[..., 0]) - 1.0

    def penalty(self, alpha: Array) -> Array:
        return 0.0 * alpha[..., 0]

    def divergence(self, alpha: Array, anchor: Array) -> Array:
        a, b = alpha[..., 0], anchor[..., 0]
        return np.cosh(a) - np.cosh(b) - np.sinh(b) * (a - b)

    def prox(self, v: Array, anchor: Array, inverse_step: Array) -> tuple[Array, Array]:
        alpha = np.clip(np.arcsinh(np.sinh(anchor) + v / inverse_step), -1.0, 1.0)
        step = np.asarray(inverse_step)
        return alpha, -(v * alpha)[..., 0] + (step[..., 0] if step.ndim else step) * self.divergence(alpha, anchor)

    def maximize(self, v: Array) -> tuple[Array, Array]:
        return np.sign(v) + (v == 0), np.abs(v)[..., 0]

    def sample(self, rng: Any, count: int) -> Any:
        return rng.uniform(-1.0, 1.0, (count, 1))


class Mirrored(CoshBlock):
    """With h = cosh: m = sinh(alpha), and s the rest."""

    def mirror(self, alpha: Array) -> tuple[Array, Array]:
        m = np.sinh(alpha)
        return m, (m * alpha - np.cosh(alpha))[..., 0]

    def unmirror(self, m: Array) -> tuple[Array, Array]:
        alpha = np.arcsinh(m)
        return alpha, self.mirror(alpha)[1]


class AbsoluteCost(mm.StochasticMinMaxConstraint):
    """f(x) = |E <c, x>|."""

    convex = True

    def __init__(self, block: mm.InnerBlock, bound: float) -> None:
        self.dual, self.bound = block, bound

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        slope = batch["costs"].mean(0)
        return mm.Evaluation(0.0 * x[..., 0], (x @ slope)[..., None], lambda _, a: a * slope)


def problem_of(block: mm.InnerBlock) -> mm.MinMaxProblem:
    return mm.MinMaxProblem(HalfSquare(), [AbsoluteCost(block, 0.2)], mm.Ball(3, 4.0), cases.finite("points", "costs"))


def test_a_block_of_a_third_party_is_what_it_says() -> None:
    for block in (CoshBlock(), Mirrored()):
        check_generator(block).raise_if_failed()
    assert entropy_weight_bound([CoshBlock(), None]) == 2.0


def optimum() -> float:
    arrays = whole(cases.finite("points", "costs"))
    mean, cost = arrays["points"].mean(0), arrays["costs"].mean(0)
    excess = max(abs(mean @ cost) - 0.2, 0.0)  # the nearest point of the slab |<cost, x>| <= 0.2 to the mean
    spread = 0.5 * float(((arrays["points"] - mean) ** 2).sum(-1).mean())
    return spread + 0.5 * excess**2 / float(cost @ cost)


@pytest.mark.parametrize(
    "oracle",
    [mm.MirrorProx(steps=300), mm.VarianceReduced(epochs=60), pytest.param(mm.SMD(steps=1500), marks=pytest.mark.slow)],
    ids=lambda oracle: type(oracle).__name__,
)
def test_oracles_solve_with_it(oracle: mm.Oracle) -> None:
    problem = problem_of(Mirrored())
    solution = mm.solve(problem, mm.SFLS(oracle=oracle), seed=0)
    assert solution.status is mm.Status.SOLVED
    assert solution.certificate.lower <= optimum() + 1e-9
    assert solution.objective == pytest.approx(optimum(), rel=2e-2)


@pytest.mark.parametrize(
    "method, count",
    [("mirror", 1), ("unmirror", 1), ("cvxpy_divergence", 4), ("cvxpy_penalty", 3), ("cvxpy_constraints", 3)],
)
def test_what_a_block_does_not_give_is_named(method: str, count: int) -> None:
    with pytest.raises(mm.Unsupported, match=rf"^CoshBlock\(dimension=1\) .*override .*{method}\(\)"):
        getattr(CoshBlock(), method)(*[None] * count)


def test_an_oracle_that_needs_mirror_coordinates_refuses_a_block_without_them_by_name() -> None:
    """Taken as quadratic, as any block without a tag was, it would be solved wrongly without a word."""
    with pytest.raises(mm.Unsupported, match=r"CoshBlock\(dimension=1\) of .* gives none: override mirror"):
        mm.solve(problem_of(CoshBlock()), mm.SFLS(oracle=mm.VarianceReduced()), seed=0)
    assert (
        mm.solve(problem_of(CoshBlock()), mm.SFLS(oracle=mm.MirrorProx(steps=300)), seed=0).status is mm.Status.SOLVED
    )


@pytest.mark.parametrize("block", [Mirrored(), mm.BallBlock(2, 1.5), mm.BoxBlock([-1, 0], [2, 1]), mm.SimplexBlock(3)])
def test_mirror_coordinates_mix_divergences(block: mm.InnerBlock) -> None:
    """sum_j c_j B(., alpha_j) = B(., anchor) + e, with e the same for all points."""
    rng = np.random.default_rng(0)
    anchors, points = 0.9 * block.sample(rng, 3) + 0.1 * block.start, block.sample(rng, 50)
    shares = rng.dirichlet(np.ones(3))
    m, s = block.mirror(anchors)
    anchor, own = block.unmirror((shares @ m)[None])
    mixed = sum(share * block.divergence(points, anchors[j : j + 1]) for j, share in enumerate(shares))
    assert mixed == pytest.approx(block.divergence(points, anchor) + shares @ s - own, abs=1e-12)
