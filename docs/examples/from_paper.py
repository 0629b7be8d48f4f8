"""From a paper's formula to a problem: orders whose expected loss is bounded for every distribution near the data."""

# start
import cvxpy as cp
import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import namespace
from minmaxcon.reference import solve_exact
from minmaxcon.testing import check_problem

COST, PRICE, SALVAGE = np.array([4.0, 5.0, 6.0]), np.array([7.0, 9.0, 12.0]), np.array([1.0, 2.0, 3.0])


def loss(orders, demand):
    """L(q; demand), (..., B), and its gradient in q, (..., B, 3): what is not sold goes at the salvage value."""
    xp = namespace(demand)
    sold, unsold = xp.asarray(COST - PRICE, demand), xp.asarray(PRICE - SALVAGE, demand)
    over = xp.maximum(orders[..., None, :] - demand, 0.0)
    return (orders @ sold)[..., None] + over @ unsold, sold + (over > 0) * unsold


def loss_cvxpy(cp, orders, data):
    """The same, (n,), as a cvxpy expression."""
    demand = data.arrays["demand"]
    unsold = [(PRICE - SALVAGE)[j] * cp.pos(orders[j] - demand[:, j]) for j in range(3)]
    return orders @ (COST - PRICE) + sum(unsold)


class MeanLoss(mm.StochasticMinMaxConstraint):
    """f_0 = E L."""

    name = "mean loss"
    convex = True

    def evaluate(self, x, batch):
        value, slope = loss(x[..., :3], batch["demand"])
        gradient = namespace(x).concat([slope.mean(-2), 0.0 * x[..., 3:]])
        return mm.Evaluation(value.mean(-1), x[..., :0], lambda y, _: y[..., None] * gradient)

    def cvxpy_value(self, cp, x, data):
        return cp.sum(loss_cvxpy(cp, x[:3], data)) / data.size


class RobustLoss(mm.StochasticMinMaxConstraint):
    """f_1 = eta + rho lambda + E lambda phi*((L - eta) / lambda), with phi*(s) = ((1 + s)_+^2 - 1) / 2."""

    name = "robust loss"
    convex = True

    def __init__(self, rho, bound):
        self.rho, self.bound = rho, bound

    def evaluate(self, x, batch):
        value, slope = loss(x[..., :3], batch["demand"])
        eta, scale = x[..., 3:4], x[..., 4:]  # (..., 1); lambda is a word of Python
        w = namespace(x).maximum(1.0 + (value - eta) / scale, 0.0)  # (phi*)': how much likelier a sample becomes
        mean, half_square = w.mean(-1)[..., None], 0.5 * (w * w).mean(-1)[..., None]
        F = eta + (self.rho - 0.5 + half_square) * scale
        in_orders = (w[..., None] * slope).mean(-2)
        gradient = namespace(x).concat([in_orders, 1.0 - mean, self.rho - 0.5 + mean - half_square])
        return mm.Evaluation(F[..., 0], x[..., :0], lambda y, _: y[..., None] * gradient)

    def cvxpy_value(self, cp, x, data):
        eta, scale = x[3], x[4]
        square = cp.quad_over_lin(cp.pos(loss_cvxpy(cp, x[:3], data) - eta + scale), scale)
        return eta + (self.rho - 0.5) * scale + 0.5 * square / data.size


rng = np.random.default_rng(0)
demand = rng.lognormal(sigma=[0.3, 0.4, 0.5], size=(400, 3))
problem = mm.MinMaxProblem(
    objective=MeanLoss(),
    constraints=[RobustLoss(rho=0.5, bound=-8.0)],
    primal=mm.Box(lower=[0, 0, 0, -15, 0.1], upper=[3, 3, 3, 5, 10]),  # q, eta, lambda
    data=mm.Finite({"demand": demand}),
    start=[0.9, 0.9, 0.9, -9.0, 2.0],
    name="newsvendor, robust to the distribution of demand",
)
# end of the problem

# compare
report = check_problem(problem)
report.raise_if_failed()
print(report.summary)

exact = solve_exact(problem)
solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=500), tolerance=0.1), seed=0)
print(solution)
print(f"exact optimum {exact.objective:.6f}, SFLS above it by {solution.objective - exact.objective:.1e}")

# The paper's own left-hand side at the solution: the largest mean loss over all distributions in the ball.
value, _ = loss(solution.x[:3], demand)
p = cp.Variable(len(value), nonneg=True)
ball = [cp.sum(p) == 1, 0.5 * len(value) * cp.sum_squares(p - 1 / len(value)) <= 0.5]
worst = cp.Problem(cp.Maximize(value @ p), ball).solve(solver=cp.CLARABEL)
print(f"mean loss at worst {worst:.4f}, f_1 {solution.constraints[0] - 8.0:.4f}, bound -8")
# end
