"""The reference itself: problems with answers on paper, its errors, and that nothing else needs cvxpy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from minmaxcon.errors import MissingDependency
from minmaxcon.geometry import (
    Ball,
    BallBlock,
    Box,
    DistanceGenerator,
    DualPoint,
    PerspectiveGenerator,
    Simplex,
    interval,
)
from minmaxcon.reference import (
    ReferenceFailed,
    dual_prox_objective,
    prox_objective,
    reference_dual_prox,
    reference_linear_minimum,
    reference_prox,
    reference_support,
)
from minmaxcon.reference.solver import conic_minimum, feasible_point, load_cvxpy, minimize


def test_prox_on_paper() -> None:
    point, objective = reference_prox(Ball(2, 2.0, [1.0, 1.0]), np.array([1.0, 1.0]), np.array([-30.0, -40.0]), 1.0)
    np.testing.assert_allclose(point, [2.2, 2.6], atol=1e-7)
    assert objective == pytest.approx(-30.0 * 2.2 - 40.0 * 2.6 + 2.0, rel=1e-9)


def test_prox_with_a_penalty_on_paper() -> None:
    center = np.array([1.0, 2.0])
    point, objective = reference_prox(
        Ball(2, 1.0), np.array([1.0, 0.0]), np.array([4.0, 8.0]), 0.5, center=center, weight=6.0
    )
    np.testing.assert_allclose(point, [0.5, 0.5], atol=1e-6)
    assert objective == pytest.approx(6.0 + 0.5 + 3.0 * 2.5, rel=1e-9)


def test_entropic_prox_on_paper() -> None:
    point, _ = reference_prox(Simplex(2), np.array([0.25, 0.75]), np.array([0.0, np.log(9.0)]), 1.0)
    np.testing.assert_allclose(point, [0.75, 0.25], atol=1e-6)


def test_linear_minimum_on_paper() -> None:
    point, value = reference_linear_minimum(Box([-1.0, 0.0], [1.0, 3.0]), np.array([2.0, -1.0]))
    np.testing.assert_allclose(point, [-1.0, 3.0], atol=1e-7)
    assert value == pytest.approx(-5.0, rel=1e-8)


def test_dual_prox_on_paper() -> None:
    generator = PerspectiveGenerator([None, None], 2.0)
    anchor = generator.point(np.array([0.25, 0.75]), np.zeros(0))
    point, objective = reference_dual_prox(generator, anchor, np.array([np.log(3.0), 0.0]), np.zeros(0), 2.0)
    np.testing.assert_allclose(point.weights, [0.5, 0.5], atol=1e-6)
    assert objective == pytest.approx(-0.5 * np.log(3.0) + 0.5 * np.log(2.0) + 0.5 * np.log(2.0 / 3.0), rel=1e-8)


def test_support_on_paper() -> None:
    generator = PerspectiveGenerator([interval(2.0, 0.5), BallBlock(2, 5.0)])
    _, value = reference_support(generator, np.array([1.0, -9.0]), np.array([1.5, 3.0, 4.0]))
    assert value == pytest.approx(max(1.0 + 1.125, -9.0 + 25.0), rel=1e-8)


def test_objectives_on_paper() -> None:
    u, anchor, g = np.array([1.0, 0.0]), np.array([0.0, 0.0]), np.array([2.0, 5.0])
    assert prox_objective(Ball(2, 9.0), u, anchor, g, 0.25) == pytest.approx(2.0 + 2.0)
    center = np.array([0.0, 1.0])
    assert prox_objective(Ball(2, 9.0), u, anchor, g, 0.25, center=center, weight=3.0) == pytest.approx(4.0 + 3.0)
    generator = PerspectiveGenerator([None, interval(2.0, 0.5)], 3.0)
    point = generator.point(np.array([0.5, 0.5]), np.array([2.0]))
    start = generator.point(np.array([0.25, 0.75]), np.array([1.0]))
    relative = 3.0 * (0.5 * np.log(2.0) + 0.5 * np.log(2.0 / 3.0)) + 0.5 * 0.5
    found = dual_prox_objective(generator, point, start, np.array([1.0, 2.0]), np.array([4.0]), 0.1)
    assert found == pytest.approx(-1.5 - 4.0 + relative / 0.1 + 0.5 * 2.0)


def test_points_are_in_the_set() -> None:
    rng = np.random.default_rng(50)
    generator = PerspectiveGenerator([interval(2.0), BallBlock(2, 5.0)])
    anchor = DualPoint(np.log([0.5, 0.5]), np.array([0.5, 0.5]), np.zeros(3))
    for _ in range(5):
        point, _ = reference_dual_prox(
            generator, anchor, 9.0 * rng.standard_normal(2), 9.0 * rng.standard_normal(3), 1.0
        )
        assert point.weights.sum() == pytest.approx(1.0, abs=1e-15)
        assert abs(point.inner[0]) <= 2.0
        assert np.linalg.norm(point.inner[1:]) <= 5.0 * (1.0 + 1e-15)
        found, _ = reference_prox(Ball(3, 1.0), np.zeros(3), 9.0 * rng.standard_normal(3), 1.0)
        assert np.linalg.norm(found) <= 1.0 + 1e-15


class Drifting(Ball):
    """A ball whose prox moves points although nothing pulls."""

    def project(self, u: np.ndarray) -> np.ndarray:
        return 0.9 * u


class Empty(Ball):
    """A ball whose cvxpy form allows no point."""

    def cvxpy_constraints(self, cp: object, u: object) -> list[object]:
        return [*super().cvxpy_constraints(cp, u), u >= 5.0]


def test_a_prox_that_contradicts_the_set_is_named() -> None:
    with pytest.raises(ReferenceFailed, match=r"prox of Ball\(dimension=2.*compare its cvxpy_constraints"):
        reference_prox(Drifting(2, 1.0), np.zeros(2), np.array([1.0, 0.0]), 1.0)


def test_an_empty_set_is_named() -> None:
    with pytest.raises(ReferenceFailed, match=r"Ball\(dimension=2, radius=1\) empty"):
        reference_prox(Empty(2, 1.0), np.zeros(2), np.array([1.0, 0.0]), 1.0)


class EmptyBlock(BallBlock):
    """An inner set whose cvxpy form allows no variable."""

    def cvxpy_constraints(self, cp: object, a: object, y: object) -> list[object]:
        return [*super().cvxpy_constraints(cp, a, y), a >= y + 9.0, a <= -9.0]


def test_an_empty_dual_set_is_named() -> None:
    generator = PerspectiveGenerator([EmptyBlock(2, 1.0), None])
    anchor = generator.point(np.array([0.5, 0.5]), np.zeros(2))
    with pytest.raises(ReferenceFailed, match="found the dual set empty; check the blocks' cvxpy_constraints"):
        reference_dual_prox(generator, anchor, np.zeros(2), np.zeros(2), 1.0)


def test_a_program_without_a_point_is_named_by_its_status() -> None:
    assert conic_minimum(2, lambda cp, x: (cp.sum_squares(x - 1.0), [])) == pytest.approx([1.0, 1.0], abs=1e-6)
    with pytest.raises(ReferenceFailed, match="ended with status 'infeasible'; scale the problem's numbers"):
        conic_minimum(2, lambda cp, x: (cp.sum(x), [x >= 1.0, x <= 0.0]))


def test_a_point_outside_is_not_taken_for_a_solution() -> None:
    with pytest.raises(ReferenceFailed, match="moved the solver's point"):
        feasible_point(Ball(2, 1.0), np.array([3.0, 0.0]))


def test_an_unbounded_program_is_an_error() -> None:
    cp = load_cvxpy("a test")
    with pytest.raises(ReferenceFailed, match="unbounded"):
        minimize(cp, cp.Variable(), [])


@pytest.mark.parametrize("package", ["cvxpy", "clarabel"])
def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"{package} is needed for .*prox.*minmaxcon\[reference\]"):
        reference_prox(Ball(2, 1.0), np.zeros(2), np.ones(2), 1.0)


def test_importing_the_reference_does_not_import_cvxpy() -> None:
    code = "import sys, minmaxcon.reference, minmaxcon.geometry; sys.exit('cvxpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_plug_in_needs_only_value_gradient_and_cvxpy_form() -> None:
    """The program is built from what a new geometry declares; its prox only cleans up the solver's rounding."""

    class Doubled(Ball):
        """A generator twice as strong: the prox of the parent at half the step."""

        def value(self, u: np.ndarray) -> np.ndarray:
            return 2.0 * super().value(u)

        def gradient(self, u: np.ndarray) -> np.ndarray:
            return 2.0 * super().gradient(u)

        def cvxpy_value(self, cp: object, u: object) -> object:
            return 2.0 * super().cvxpy_value(cp, u)

    anchor, g = np.array([0.1, -0.2]), np.array([0.3, 0.4])
    generator: DistanceGenerator = Doubled(2, 1.0)
    point, _ = reference_prox(generator, anchor, g, 1.0)
    np.testing.assert_allclose(point, Ball(2, 1.0).prox(anchor, g, 0.5), atol=1e-6)
