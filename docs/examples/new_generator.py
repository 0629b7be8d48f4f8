"""A geometry of one's own: spend at most a budget, with the generalised Kullback-Leibler divergence."""

# small
import numpy as np

from minmaxcon.arrays import namespace
from minmaxcon.geometry import EuclideanGenerator
from minmaxcon.testing import check_generator


class Part(EuclideanGenerator):  # {u >= 0, |u|_2 <= 1} in three dimensions
    dimension, center, squared_diameter = 3, np.zeros(3), 0.5

    def project(self, u):
        u = namespace(u).maximum(u, 0.0)
        return u / namespace(u).maximum(self.norm(u), 1.0)[..., None]


report = check_generator(Part())
report.raise_if_failed()
print(report.summary)
# end of the small one

# start
import math

import minmaxcon as mm
from minmaxcon.arrays import to_numpy


class Budget(mm.DistanceGenerator):
    """The set {u >= 0, sum u <= s} with omega(u) = s sum_j (u_j ln(u_j / c) - u_j + c) and c = s / (2 d)."""

    def __init__(self, dimension, total):
        self.dimension, self.total, self.even = dimension, float(total), 0.5 * float(total) / dimension

    @property
    def center(self):
        return np.full(self.dimension, self.even)

    @property
    def squared_diameter(self):  # omega is convex: its maximum is at a corner, all on one coordinate or nothing spent
        return self.total**2 * max(math.log(2 * self.dimension) - 0.5, 0.5)

    def _log(self, u):  # 0 ln 0 = 0
        return namespace(u).log(namespace(u).maximum(u, 1e-37))

    def value(self, u):
        return self.total * namespace(u).sum(u * (self._log(u) - math.log(self.even)) - u + self.even)

    def gradient(self, u):
        return self.total * (self._log(u) - math.log(self.even))

    def prox(self, anchor, gradient, step, *, center=None, weight=0.0):
        xp = namespace(anchor)
        logits = self._log(anchor) - step * gradient / self.total
        if center is not None:
            logits = (logits + step * weight * self._log(center)) / (1.0 + step * weight)
        top = xp.max(logits, keepdims=True)  # no exponential overflows
        log_sum = top + xp.log(xp.sum(xp.exp(logits - top), keepdims=True))
        return xp.exp(logits - xp.maximum(log_sum - math.log(self.total), 0.0))  # scaled down if it costs too much

    def linear_minimum(self, g):  # all on the smallest coefficient, or nothing spent
        xp = namespace(g)
        corner = xp.asarray(self.total * np.eye(self.dimension)[to_numpy(xp.argmin(g))], g)
        point = xp.where(g < 0, corner, 0.0 * corner)
        return xp.dot(g, point), point

    def norm(self, u):
        return namespace(u).sum(namespace(u).abs(u))

    def dual_norm(self, g):
        return namespace(g).max(namespace(g).abs(g))

    def contains(self, u, tolerance=1e-9):
        return (u >= -tolerance).all(-1) & (namespace(u).sum(u) <= self.total + tolerance * self.dimension)

    def sample(self, rng, count):
        shares = rng.dirichlet(np.ones(self.dimension), count)
        shares[: count // 3][shares[: count // 3] < 0.5 / self.dimension] = 0.0  # a third on faces
        spent = np.minimum(1.5 * rng.random((count, 1)), 1.0)  # a third of all spend everything
        return self.total * spent * shares / shares.sum(axis=1, keepdims=True)

    def cvxpy_value(self, cp, u):
        return self.total * cp.sum(cp.kl_div(u, self.even))  # kl_div(u, c) is u ln(u / c) - u + c

    def cvxpy_constraints(self, cp, u):
        return [u >= 0, cp.sum(u) <= self.total]


report = check_generator(Budget(dimension=4, total=3.0))
report.raise_if_failed()
print(report.summary)
# end of the geometry


class Unscaled(Budget):
    """The same without the factor s: a mistake that is easily made, since at s = 1 nothing is wrong."""

    @property
    def squared_diameter(self):
        return super().squared_diameter / self.total

    def value(self, u):
        return super().value(u) / self.total

    def gradient(self, u):
        return super().gradient(u) / self.total

    def prox(self, anchor, gradient, step, *, center=None, weight=0.0):
        return super().prox(anchor, self.total * gradient, step, center=center, weight=weight)

    def cvxpy_value(self, cp, u):
        return super().cvxpy_value(cp, u) / self.total


for failure in check_generator(Unscaled(dimension=4, total=3.0)).failures:
    print(failure)
# end
