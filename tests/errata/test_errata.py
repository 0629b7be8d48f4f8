"""The errata of Yao, Lin and Yang (2023): each test shows the printed form failing and the corrected one holding.

The numbers are those of docs/errata.rst. Everything is NumPy and brute force, independent of the library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from math import fsum, log, sqrt

import numpy as np
import pytest

from tests.errata.instances import OWNER, Array, FairAUC, Path, mean_f, mean_g, mirror_descent, pair_loss

LEVEL = 0.3


def descend(seed: int, steps: int = 60, scale: float = 0.1) -> tuple[FairAUC, Path]:
    """Run noise-free mirror descent from a random start with steps that fall like 1 / sqrt(t + 1)."""
    problem, rng = FairAUC.random(seed), np.random.default_rng(seed)
    eta = scale / np.sqrt(np.arange(steps) + 1.0)
    return problem, mirror_descent(problem, LEVEL, eta, 2 * eta, 0.3 * rng.normal(size=problem.size))


def upper_bound(problem: FairAUC, path: Path, weights: Array) -> float:
    """U = max_i u_i + (g_i + indicator)^*(v_i) with u and v averaged by the weights, which sum to one."""
    return float(np.max(weights @ path.f + OWNER @ problem.conjugate(weights @ path.g)))


@pytest.mark.parametrize("c1", [0.25, 0.5, 1.0, 2.0])
def test_01_the_penalty_is_c1_alpha_squared(c1: float) -> None:
    for seed in range(20):
        problem, rng = FairAUC.random(seed), np.random.default_rng(seed)
        h = problem.features @ rng.normal(size=2)
        left, right = problem.pairs()[0]
        mean_left, mean_right = h[left].mean(), h[right].mean()
        interval = max(abs(mean_left), abs(mean_right), abs(mean_left - mean_right))
        grid = np.linspace(-interval, interval, 200_001)
        outer, slope = mean_f(h, mean_left, mean_right, left, right, c1, 1.0), mean_g(h, left, right, c1)
        exact = pair_loss(h, left, right, c1, 1.0)
        corrected = outer + np.max(grid * slope - c1 * grid**2)
        printed = outer + np.max(grid * slope - grid**2)
        assert corrected == pytest.approx(exact, rel=1e-8)
        if c1 == 1.0:
            assert printed == corrected
        else:
            assert abs(printed - exact) > 0.2 * c1 * (mean_left - mean_right) ** 2


def test_02_u_weights_every_term_by_tau() -> None:
    problem, path = descend(seed=0)
    tau = path.tau
    offset = 0.05 * np.sum(path.x**2, axis=1)  # rho_hat/2 |x_t - x_tilde|^2 with x_tilde = 0 and rho_hat = 0.1

    def closed_form(u: Array, v: Array, shift: float) -> float:
        return float(np.max(u + OWNER @ problem.conjugate(v))) + shift

    corrected = closed_form(tau @ path.f / tau.sum(), tau @ path.g / tau.sum(), tau @ offset / tau.sum())
    printed = closed_form(path.f.sum(0) / tau.sum(), path.g.sum(0) / tau.sum(), offset.sum() / tau.sum())

    def definition(y: Array, alpha: Array) -> float:
        """The expression that U maximises: the tau-weighted mean of Phi(x_t, y) - d_y(y) + d_x(x_t)."""
        owned = OWNER.T @ y
        values = path.f @ y + path.g @ (owned * alpha) - owned @ (problem.c1 * alpha**2) + offset
        return float(tau @ values / tau.sum())

    rng = np.random.default_rng(1)
    best = max(definition(rng.dirichlet([0.3] * 3), rng.uniform(-1, 1, 5)) for _ in range(4000))
    active = np.argmax(tau @ path.f / tau.sum() + OWNER @ problem.conjugate(tau @ path.g / tau.sum()))
    attained = definition(np.eye(3)[active], np.clip(tau @ path.g / tau.sum() / (2 * problem.c1), -10, 10))
    assert corrected == pytest.approx(attained, abs=1e-12)
    assert best <= corrected + 1e-12
    assert abs(printed - attained) > 0.5


def test_03_the_output_is_the_step_weighted_average() -> None:
    broken = {"uniform": 0, "weighted": 0}
    for seed in range(60):
        problem, path = descend(seed)
        weights = path.tau / path.tau.sum()
        bound = upper_bound(problem, path, weights)
        broken["uniform"] += problem.worst(LEVEL, path.x.mean(axis=0)) > bound + 1e-9
        broken["weighted"] += problem.worst(LEVEL, weights @ path.x) > bound + 1e-9
    assert broken["weighted"] == 0
    assert broken["uniform"] >= 5


def test_04_tau_uses_the_diameter_of_the_dual_set() -> None:
    # The unified step with one gamma minimises gamma (<g_x, x> - <u, y>) + V_x / (2 D_x^2) + V_y / (2 D_y^2).
    u, start, gamma = np.array([1.0, -0.5, 0.2]), np.array([0.2, 0.5, 0.3]), 0.3
    squared_x, squared_y = 3.0**2 / 2, log(3)  # a ball of radius 3, and the entropy on the simplex

    def objective(y: Array) -> float:
        return float(-gamma * u @ y + np.sum(y * np.log(y / start)) / (2 * squared_y))

    def step(tau: float) -> Array:
        moved: Array = start * np.exp(tau * u)
        return np.asarray(moved / moved.sum())

    corrected, printed = step(2 * squared_y * gamma), step(2 * squared_x * gamma)
    rng = np.random.default_rng(0)
    assert min(objective(y) for y in rng.dirichlet([1, 1, 1], 5000)) >= objective(corrected)
    assert objective(printed) > objective(corrected) + 0.05


def test_05_the_proximal_term_vanishes_from_the_bound_only_at_its_centre() -> None:
    # Mirror descent on <c, x> + rho/2 |x - centre|^2; the claimed bound on the step-weighted sum of gaps has no d_x.
    lost = 0
    for rho in (0.1, 1.0, 5.0):
        for distance in (0.3, 1.0, 3.0):
            centre, c, eta = np.array([distance, 0.0]), np.array([0.1, 0.2]), 1 / np.sqrt(np.arange(50) + 1.0)

            def gap_and_bound(start: Array, rho: float, centre: Array, c: Array, eta: Array) -> tuple[float, float]:
                x, best, gap = start, centre - c / rho, 0.0

                def value(z: Array) -> float:
                    return float(c @ z + rho / 2 * np.sum((z - centre) ** 2))

                for step in eta:
                    gap += step * (value(x) - value(best))
                    x = (x - step * c + step * rho * centre) / (1 + step * rho)
                return gap, float(np.sum((best - start) ** 2) / 2 + np.sum(eta**2) * np.sum(c**2) / 2)

            gap, bound = gap_and_bound(centre, rho, centre, c, eta)
            assert gap <= bound
            gap, bound = gap_and_bound(np.zeros(2), rho, centre, c, eta)
            lost += gap > bound
            assert gap <= bound + eta[0] * rho / 2 * distance**2
    assert lost >= 3


def test_06_the_confidences_of_all_levels_sum_to_delta() -> None:
    delta = 0.1
    printed = fsum(delta / 2**k for k in range(60))
    corrected = fsum(delta / 2 ** (k + 1) for k in range(60))
    # Failures of the levels that exclude each other: the union bound is then attained.
    assert printed == pytest.approx(2 * delta)
    assert corrected <= delta
    assert corrected == pytest.approx(delta)


def level_set(
    value: Callable[[float], float], level: float, theta: float, tolerance: float, errors: Iterable[float]
) -> list[tuple[float, float]]:
    """Run Algorithm 1 with U = H + error; give (r, H(r)) of every iteration, the halting one last."""
    visited = []
    for error in errors:
        visited.append((level, value(level)))
        upper = value(level) + error
        if upper >= -tolerance:
            break
        level += upper / (2 * theta)
    return visited


def test_07_the_gap_is_relative_to_the_first_level() -> None:
    # f_0 = |x|, f_1 - b_1 = x - 1 on [-2, 2]: f* = 0, H(r) = -r for r in [0, 1], attained at x = 0.
    first, theta, epsilon = 0.5, 2.0, 0.1
    tolerance = first * epsilon / theta
    accuracy = (theta - 1) / (2 * theta**2 * (theta + 1)) * first * epsilon
    visited = level_set(lambda r: -r, first, theta, tolerance, repeat(0.0))
    answers = [1e-6] + [0.999 * accuracy] * (len(visited) - 1)
    for (level, value), x in zip(visited, answers, strict=True):
        assert max(abs(x) - level, x - 1) - value <= accuracy  # the oracle keeps its promise
    assert abs(answers[-1]) / first <= epsilon
    assert abs(answers[-1]) / abs(answers[0]) > 1000 * epsilon


def test_08_outer_iterations_grow_like_log_one_over_epsilon() -> None:
    theta = 2.0
    counts = [len(level_set(lambda r: -r, 0.5, theta, 0.5 * 10.0**-k / theta, repeat(0.0))) for k in range(1, 9)]
    for k, count in enumerate(counts, start=1):
        assert count <= 2 + log(theta * 10.0**k) / -log(1 - 1 / (2 * theta))
    increments = np.diff(counts)
    assert increments.max() - increments.min() <= 1  # the same number of levels for every further digit


@pytest.mark.parametrize("theta", [0.6, 1.0, 2.0])
def test_09_an_oracle_error_that_allows_theta_one(theta: float) -> None:
    epsilon, infeasible_beyond = 0.1, 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        slopes, levels = rng.uniform(0.02, 1, 4), rng.uniform(-1, 1, 4)
        best = float(np.max(levels))

        def value(r: float, slopes: Array = slopes, levels: Array = levels) -> float:
            """Convex, non-increasing, slopes in [-1, 0), root at best: a level-set function."""
            return float(np.max(slopes * (levels - r)))

        first = best + 1.0
        tolerance = 4 * theta / (6 * theta - 1) * epsilon * abs(value(first))
        accuracy = tolerance * (2 * theta - 1) / (4 * theta)
        assert accuracy > 0
        errors = accuracy * rng.choice([-1.0, 1.0], 10_000)
        for level, at_level in level_set(value, first, theta, tolerance, errors):
            assert level > best
            assert at_level + accuracy <= 1e-12  # the worst answer the oracle may give is feasible
        assert level - best <= epsilon * (first - best) + 1e-12
        visited = level_set(value, first, theta, tolerance, repeat(-3 * accuracy))
        infeasible_beyond += visited[-1][1] + 3 * accuracy > 0
    assert infeasible_beyond > 0  # three times the error is too much: the constant is not idle
    printed = (theta - 1) / (2 * theta**2 * (theta + 1)) * epsilon
    assert (printed <= 0) == (theta <= 1)  # no oracle reaches accuracy 0


def worst_constraint(problem: FairAUC, count: int = 300) -> tuple[float, float]:
    """Give max(f_1, f_2) at the constant model, and its minimum over random models of many sizes."""
    rng = np.random.default_rng(0)
    models = rng.normal(size=(count, 2)) * 10.0 ** rng.uniform(-3, 0.5, (count, 1))
    return float(max(problem.by_pairs(np.zeros(2))[1:])), min(float(max(problem.by_pairs(w)[1:])) for w in models)


def test_10_c1_one_is_infeasible_below_kappa_one() -> None:
    for seed in range(5):
        constant, least = worst_constraint(FairAUC.random(seed, c1=1.0))
        assert min(constant, least) >= 2.0 - 1e-12 > 1 + 0.99  # kappa = 0.99
        constant, _ = worst_constraint(FairAUC.random(seed, c1=0.5))
        assert constant < 1 + 0.01  # already kappa = 0.01 leaves slack


def test_11_strict_feasibility_needs_kappa_above_zero() -> None:
    for seed in range(5):
        constant, least = worst_constraint(FairAUC.random(seed, c1=0.5, c2=1.0))
        assert (
            min(constant, least) >= 1.0 - 1e-12
        )  # kappa = 0, c1 c2^2 = 0.5: the lemma's condition holds, yet no slack
        assert constant < 1 + 0.01  # any kappa > 0 leaves some


def test_12_the_surrogate_bounds_the_indicator_only_if_c1_c2_squared_is_one() -> None:
    t = np.linspace(-3, 3, 6001)
    for c1, c2, bounds in [(0.5, 1.0, False), (0.25, 1.5, False), (1.0, 1.0, True), (0.25, 2.0, True)]:
        assert bool(np.all(c1 * (t - c2) ** 2 >= (t <= 0))) is bounds


def test_13_rho_hat_must_exceed_the_weak_convexity_modulus() -> None:
    rng, units, radius, c1 = np.random.default_rng(3), 2, 3.0, 0.5
    positive = np.arange(24) % 2 == 0
    features = rng.normal(size=(24, 2)) + positive[:, None]

    def loss(w: Array) -> float:
        scores = 1 / (1 + np.exp(-features @ w[: 2 * units].reshape(units, 2).T)) @ w[2 * units :]
        return pair_loss(scores, positive, ~positive, c1, 1.0)

    ends = [(p, p + 0.3 * rng.normal(size=6)) for p in rng.uniform(-radius, radius, (2000, 6))]
    bends = np.array([loss((p + q) / 2) - (loss(p) + loss(q)) / 2 for p, q in ends])
    squares = np.array([np.sum((p - q) ** 2) for p, q in ends])

    def excess(rho: float) -> float:
        """Above 0 where loss + rho/2 |.|^2 violates midpoint convexity somewhere."""
        return float(np.max(bends - rho / 8 * squares))

    # |Hessian of h| <= |v| max|sigmoid''| |xi|^2 + |xi|/4 a unit, and |h - h' - c2| <= units * radius + 1.
    norm, reach = np.max(np.linalg.norm(features, axis=1)), radius + 1.5
    modulus = 2 * c1 * (units * reach + 1) * 2 * (reach * norm**2 / (6 * sqrt(3)) + norm / 4)
    assert excess(1e-5) > 0.01
    assert excess(1.0) > 0
    assert excess(modulus) <= 0


def test_14_the_gradient_bound_needs_the_full_diameter() -> None:
    radius, slope, rho = 2.0, 1.5, 0.7
    half_diameter = sqrt(radius**2 / 2)  # D_x of the paper: sqrt(max - min of |x|^2 / 2) on the ball
    x, centre, gradient = np.array([radius, 0.0]), np.array([-radius, 0.0]), np.array([slope, 0.0])
    assert np.linalg.norm(gradient + rho * (x - centre)) > slope + 2 * rho * half_diameter
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(3, 1000, 2))
    unit = directions / np.linalg.norm(directions, axis=2, keepdims=True)
    norms = np.linalg.norm(slope * unit[0] + rho * radius * (unit[1] - unit[2]), axis=1)
    assert np.max(norms) <= slope + rho * 2 * radius
    assert np.max(norms) > slope + 2 * rho * half_diameter


def test_15_weak_convexity_holds_for_alpha_in_the_interval_only() -> None:
    rng = np.random.default_rng(0)
    xi, left = rng.normal(size=40), np.arange(40) % 2 == 0
    w = np.linspace(-4, 4, 401)
    scores = 1 / (1 + np.exp(-np.outer(w, xi)))

    def modulus(alpha: float, weight_f: float = 1.0) -> float:
        """Minus the least second difference quotient of weight_f E F + alpha E G (here c1 = 1/2, a = b = 1/2)."""
        values = [
            weight_f * mean_f(h, 0.5, 0.5, left, ~left, 0.5, 1.0) + alpha * mean_g(h, left, ~left, 0.5) for h in scores
        ]
        return -float(np.min(np.diff(values, n=2))) / float(w[1] - w[0]) ** 2

    inside = [modulus(alpha) for alpha in np.linspace(-1, 1, 9)]
    finite = modulus(0.0) + max(modulus(1.0, 0.0), modulus(-1.0, 0.0))
    assert max(inside) <= finite + 1e-9
    assert modulus(100.0) > 10 * finite
    assert modulus(1000.0) == pytest.approx(10 * modulus(100.0), rel=0.1)  # no rho serves all of R


def test_16_auc_of_all_against_all_is_one_half_only_with_ties_counted_half() -> None:
    rng = np.random.default_rng(0)
    for scores in (rng.normal(size=25), rng.integers(0, 4, size=40).astype(float)):
        above, tie = scores[:, None] > scores[None, :], scores[:, None] == scores[None, :]
        assert above.mean() < 0.5 - 0.25 / scores.size  # a point ties with itself at least
        assert above.mean() == pytest.approx((1 - tie.mean()) / 2, abs=1e-15)
        assert above.mean() + tie.mean() / 2 == pytest.approx(0.5, abs=1e-15)


def test_17_the_order_of_the_g_vector() -> None:
    problem, rng = FairAUC.random(0), np.random.default_rng(5)
    w = rng.normal(size=2)
    h = problem.features @ w
    _, reverse_1, forward_2, reverse_2, forward_1 = problem.pairs()  # (G1', G1), (G2, G2'), (G2', G2), (G1, G1')
    x = np.concatenate([w, problem.left @ h, problem.right @ h])
    f, corrected = problem.terms(x)
    order = [problem.pairs()[0], forward_1, reverse_2, forward_2, reverse_1]
    printed = np.array([mean_g(h, left, right, problem.c1) for left, right in order])
    y, alpha = rng.dirichlet([1, 1, 1]), rng.normal(size=5)
    # phi-tilde of the appendix, written out; alpha_1 belongs to (G1', G1), alpha_2 to (G2, G2'), and so on.
    bilinear = y[0] * alpha[0] * mean_g(h, *problem.pairs()[0], problem.c1)
    bilinear += y[1] * (alpha[1] * mean_g(h, *reverse_1, problem.c1) + alpha[2] * mean_g(h, *forward_2, problem.c1))
    bilinear += y[2] * (alpha[3] * mean_g(h, *reverse_2, problem.c1) + alpha[4] * mean_g(h, *forward_1, problem.c1))
    dual = (OWNER.T @ y) * alpha
    assert dual @ corrected == pytest.approx(bilinear, abs=1e-12)
    assert abs(dual @ printed - bilinear) > 0.1
    # The maximum over a symmetric interval does not see the sign, which is why the slip went unnoticed.
    assert f + OWNER @ problem.conjugate(printed) == pytest.approx(problem.by_pairs(w), abs=1e-12)


def test_18_the_prox_has_the_square_of_the_distance() -> None:
    # The proof of the prox lemma prints (alpha - alpha')/tau, with V_y of the paper: (alpha - alpha')^2/tau.
    u, v, tau, weight = np.array([0.3, -0.2, 0.1]), np.array([0.9, -0.4, 0.7, 0.2, -0.8]), 0.5, 18.0
    y0, alpha0 = np.array([0.5, 0.2, 0.3]), np.array([0.4, -0.3, 0.1, 0.6, -0.5])
    grid = np.linspace(-1, 1, 20_001)[:, None]

    def objective(y: Array, alpha: Array) -> float:
        owned = OWNER.T @ y
        near = weight * np.sum(y * np.log(y / y0)) + owned @ (alpha - alpha0) ** 2
        return float(-u @ y - owned @ (v * alpha) + near / tau + owned @ alpha**2)

    def solution(power: int) -> tuple[Array, Array]:
        inner = -grid * v + (grid - alpha0) ** power / tau + grid**2
        y = y0 * np.exp(-(OWNER @ inner.min(axis=0) - u) * tau / weight)
        return y / y.sum(), grid[inner.argmin(axis=0), 0]

    best = objective(*solution(2))
    rng = np.random.default_rng(0)
    y, alpha = solution(2)
    for _ in range(2000):
        near = rng.dirichlet(200 * y)
        assert objective(near, np.clip(alpha + 0.1 * rng.normal(size=5), -1, 1)) >= best - 1e-9
    assert objective(*solution(1)) > best + 0.1


def test_18_the_upper_bound_is_a_maximum_in_every_block() -> None:
    problem, path = descend(seed=4)
    weights = path.tau / path.tau.sum()
    u, v = weights @ path.f, weights @ path.g
    u[2] = u.max() + 0.1  # make the block with the misprint decide
    alpha = np.linspace(-1, 1, 20_001)[:, None]
    inner = alpha * v - problem.c1 * alpha**2
    corrected = np.max(u + OWNER @ inner.max(axis=0))
    printed = max(*(u + OWNER @ inner.max(axis=0))[:2], (u + OWNER @ inner.min(axis=0))[2])
    assert corrected >= u[2] > printed  # alpha = 0 alone already gives u_2


def test_18_g_of_a_constant_score_has_both_groups_and_the_factor_two() -> None:
    rng = np.random.default_rng(0)
    left, c1 = np.arange(30) % 3 == 0, 0.5
    right, constant, h = ~left, np.full(30, 1.7), rng.normal(size=30) + left

    def printed_for_constants(scores: Array) -> float:
        """The proof of Lemma 2: the indicator of G1' in both terms, and c1 where 2 c1 belongs."""
        return float(np.mean(c1 * scores * left / left.mean() - c1 * scores * left / right.mean()))

    assert mean_g(constant, left, right, c1) == pytest.approx(0, abs=1e-12)
    assert abs(printed_for_constants(constant)) > 0.1
    # With c1 in place of 2 c1 the value of the pair loss is lost.
    outer = mean_f(h, h[left].mean(), h[right].mean(), left, right, c1, 1.0)
    slope, exact = mean_g(h, left, right, c1), pair_loss(h, left, right, c1, 1.0)
    assert outer + slope**2 / (4 * c1) == pytest.approx(exact, abs=1e-12)
    assert abs(outer + (slope / 2) ** 2 / (4 * c1) - exact) > 0.01


def test_19_shares_of_a_split_sum_to_one() -> None:
    rows = 32_561
    order = np.random.default_rng(0).permutation(rows)

    def split(train: float, validation: float) -> int:
        """Give how many rows two disjoint parts of these shares would hold."""
        return int(train * rows) + int(validation * rows)

    assert split(0.9, 0.9) > order.size
    assert order.size - 1 <= split(0.9, 0.1) <= order.size


def test_20_the_second_point_of_a_pair_is_in_the_second_set() -> None:
    problem = FairAUC.random(0)
    h = problem.features @ np.array([1.0, -0.5])
    g1, g1_prime = problem.cell(1, 1), problem.cell(-1, -1)
    printed_event = np.outer(g1 & g1_prime, np.ones_like(g1))  # z in G1 and z in G1', z' free
    corrected_event = np.outer(g1, g1_prime)
    assert printed_event.sum() == 0  # nothing to condition on
    losses = problem.c1 * (h[:, None] - h[None, :] - problem.c2) ** 2
    mean = losses[corrected_event].mean()
    assert mean == pytest.approx(pair_loss(h, g1, g1_prime, problem.c1, problem.c2), abs=1e-12)


def test_21_the_two_gradients_are_those_of_f_and_of_g() -> None:
    problem, rng = FairAUC.random(0), np.random.default_rng(0)
    x, tiny = rng.normal(size=problem.size), 1e-6
    shifts = tiny * np.eye(problem.size)
    differences = [(problem.terms(x + s)[0] - problem.terms(x - s)[0]) / (2 * tiny) for s in shifts]
    of_f = np.array(differences)[:, 0]
    of_g = np.array([(problem.terms(x + s)[1] - problem.terms(x - s)[1]) / (2 * tiny) for s in shifts])[:, 0]
    nothing, first = np.zeros(3), np.eye(5)[0]
    assert problem.gradient(x, nothing, first) == pytest.approx(of_g, abs=1e-8)
    assert np.max(np.abs(of_f - of_g)) > 0.1


def test_22_u_is_computed_once_after_the_loop() -> None:
    problem = FairAUC.random(0)
    eta = 0.1 / np.sqrt(np.arange(60) + 1.0)
    level = -1.0
    path = mirror_descent(problem, level, eta, 2 * eta, np.zeros(problem.size))
    least = -level  # f_0 is a mean of squares, so P(r, x) >= -r for every x, and so is H(r)
    weights = path.tau / path.tau.sum()
    assert upper_bound(problem, path, weights) >= least
    # Inside the loop, after t + 1 of the T terms: the sums over all T divide what is not there yet.
    inside = [upper_bound(problem, path, np.where(np.arange(60) <= t, weights, 0)) for t in range(60)]
    assert inside[0] < least
    assert sum(value < least for value in inside) > 20
    assert inside[-1] == upper_bound(problem, path, weights)


def test_the_instances_themselves() -> None:
    """The closed forms used above agree with brute force over pairs, and the gradient with differences."""
    for seed in range(10):
        problem, rng = FairAUC.random(seed), np.random.default_rng(seed)
        w = rng.normal(size=2)
        h = problem.features @ w
        f, g = problem.terms(np.concatenate([w, problem.left @ h, problem.right @ h]))
        assert f + OWNER @ problem.conjugate(g) == pytest.approx(problem.by_pairs(w), abs=1e-12)
        x, y, dual = rng.normal(size=problem.size), rng.dirichlet([1, 1, 1]), rng.normal(size=5)

        def saddle(z: Array, problem: FairAUC = problem, y: Array = y, dual: Array = dual) -> float:
            f, g = problem.terms(z)
            return float(y @ f + dual @ g)

        shifts = 1e-6 * np.eye(problem.size)
        numeric = [(saddle(x + s) - saddle(x - s)) / 2e-6 for s in shifts]
        assert problem.gradient(x, y, dual) == pytest.approx(np.array(numeric), abs=1e-7)
