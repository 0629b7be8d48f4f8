"""Problems of one's own, by autograd: a portfolio in a few lines, and a logistic score with a bounded mean gap."""

# small
import numpy as np

import minmaxcon as mm


class Spread(mm.StochasticMinMaxConstraint):  # f_0 = E <x, returns>^2
    name, convex = "mean square", True

    def terms(self, x, batch):
        return ((x @ batch["returns"].T) ** 2).mean(-1), None


class Shortfall(mm.StochasticMinMaxConstraint):  # f_1 = max over |alpha| <= 0.1 of E <alpha - returns, x>
    name, convex, bound, dual = "worst mean loss", True, -0.2, mm.BallBlock(4, radius=0.1)

    def terms(self, x, batch):
        return -(x @ batch["returns"].mean(0)), x  # F and G


returns = np.random.default_rng(0).normal([0.1, 0.2, 0.3, 0.4], [0.1, 0.5, 0.8, 1.2], size=(500, 4))
data = mm.Finite({"returns": returns}, engine="torch")
portfolio = mm.MinMaxProblem(Spread(), [Shortfall()], mm.Simplex(4), data, name="portfolio")
print(mm.solve(portfolio, seed=0))
# end of the small one

# start
import torch

from minmaxcon.testing import check_constraint, check_problem


class LogisticLoss(mm.StochasticMinMaxConstraint):
    """f_0 = E log(1 + exp(-label <x, features>)): no inner variables."""

    name = "logistic loss"
    convex = True

    def terms(self, x, batch):
        margins = batch["label"] * (x @ batch["features"].T)  # (..., B)
        return torch.nn.functional.softplus(-margins).mean(-1), None

    def cvxpy_value(self, cp, x, data):  # x is a cvxpy variable (d,)
        ((_, rows),) = data.chunks(data.size)  # all rows at once
        signed = (rows["label"][:, None] * rows["features"]).numpy()
        return cp.sum(cp.logistic(-signed @ x)) / data.size


class MeanGap(mm.StochasticMinMaxConstraint):
    """f_1 = max over alpha in [-1, 1] of alpha E[score contrast]."""

    name = "mean gap"
    convex = True
    dual = mm.interval(1.0)

    def __init__(self, bound):
        self.bound = bound

    def terms(self, x, batch):
        scores = x @ batch["features"].T
        moment = (scores * batch["contrast"]).mean(-1, keepdim=True)  # (..., 1)
        return torch.zeros_like(moment[..., 0]), moment

    def cvxpy_value(self, cp, x, data):  # f, not a and G: the maximum over alpha carried out
        ((_, rows),) = data.chunks(data.size)
        return cp.abs((rows["contrast"] @ rows["features"]).numpy() / data.size @ x)


rng = np.random.default_rng(0)
group = rng.random(2000) < 0.3
features = rng.normal(size=(2000, 3)) + 0.8 * group[:, None]
noisy = features @ [1.0, -0.5, 0.5] + rng.logistic(size=2000)
label = np.where(noisy > 0, 1.0, -1.0)
# One over the share in the whole data, never in the batch.
contrast = group / group.mean() - ~group / (~group).mean()
arrays = {"features": features, "label": label, "contrast": contrast}

problem = mm.MinMaxProblem(
    objective=LogisticLoss(),
    constraints=[MeanGap(bound=0.1)],
    primal=mm.Ball(3, radius=5.0),
    data=mm.Finite(arrays, engine="torch"),
    name="logistic score with a bounded mean gap",
)
solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=500)), seed=0)
print(solution)
# end

# check
report = check_problem(problem)
report.raise_if_failed()
print(report.summary)


class Forgetful(MeanGap):
    """The same with a mistake that is easily made: the means over the members of a group that are in the batch."""

    def terms(self, x, batch):
        scores, group = x @ batch["features"].T, (batch["contrast"] > 0).to(x.dtype)
        gap = (scores * group).sum(-1) / group.sum() - (scores * (1 - group)).sum(-1) / (1 - group).sum()
        return 0.0 * gap, gap[..., None]


for failure in check_constraint(Forgetful(bound=0.1), problem.primal, problem.data).failures:
    print(failure)
# end of the check
